// Rows of `softfloat vectors mac` through bfloat16_mac, each result and its flags compared at once with the golden model, by DPI-C.
//
// +rows=FILE: a b clear result flags, of which the first three are read. +device=FILE: the same rows as the unit answered, for
// `softfloat check`; before them the first line of +rows, which says what they are. The model adds to what the unit had before, so that a wrong sum counts once.

module bench #(
    parameter STICKY = 1
);
  import sf_pkg::*;

  typedef struct packed {
    logic [15:0] a, b;
    logic        clear;
  } row_t;

  logic clk = 0, reset = 1, valid = 0, done;
  row_t row = 0;
  logic [31:0] sum;
  logic [4:0] flags;
  bfloat16_mac #(.STICKY(STICKY)) unit (.clk, .reset, .valid, .clear(row.clear), .a(row.a), .b(row.b), .done, .sum, .flags);

  row_t waiting[$];
  logic [31:0] previous = 0;
  int rows, device, checked = 0, wrong = 0;

  task automatic compare();
    row_t asked = waiting.pop_front();
    shortint unsigned a[SF_LENGTH], b[SF_LENGTH];
    byte unsigned raised;
    logic [31:0] c, wanted;
    c = asked.clear ? 0 : previous;
    a[0] = asked.a;
    b[0] = asked.b;
    wanted = sf_dot_fma_float32_bfloat16_add(1, a, b, c, SF_NEAREST_EVEN, raised);
    if (sum !== wanted || flags !== raised[4:0]) begin
      wrong++;
      if (wrong <= 3)
        $display("row %0d: %h * %h + %h = %h %h, the unit says %h %h", checked, asked.a, asked.b, c, wanted, raised, sum, flags);
    end
    $fdisplay(device, "%h %h %0d %h %h", asked.a, asked.b, asked.clear, sum, {3'b0, flags});
    previous = sum;
    checked++;
  endtask

  task automatic cycle();
    #1 clk = 1;
    #1 clk = 0;
    if (done) compare();
  endtask

  initial begin
    string rows_file, device_file, line;
    logic [31:0] a, b, clear, result, unused;
    if (!$value$plusargs("rows=%s", rows_file) || !$value$plusargs("device=%s", device_file))
      $fatal(1, "+rows=FILE and +device=FILE are missing");
    rows = $fopen(rows_file, "r");
    device = $fopen(device_file, "w");
    if (rows == 0 || device == 0) $fatal(1, "+rows or +device cannot be opened");
    repeat (2) cycle();
    reset = 0;
    while ($fgets(line, rows) != 0) begin
      if ($sscanf(line, "%h %h %h %h %h", a, b, clear, result, unused) != 5) begin
        $fwrite(device, "%s", line);
        continue;
      end
      row = '{a[15:0], b[15:0], clear[0]};
      valid = 1;
      waiting.push_back(row);
      cycle();
    end
    valid = 0;
    repeat (3) cycle();
    $fclose(device);
    $display("%0d rows, %0d wrong", checked, wrong);
    $finish;
  end
endmodule
