// A multiply-accumulate unit, one row each cycle: sum <= (clear ? +0 : sum) + a * b, rounded once.
//
// a and b are bfloat16, the sum is binary32. Ties go to even. Operands and results may be subnormal. A NaN result is 7fc00000; signalling NaNs,
// inf * 0 (whatever is added to it) and inf - inf are invalid. Tininess is detected after rounding.
// flags: 4 invalid, 3 division by zero (never), 2 overflow, 1 underflow, 0 inexact.
//
// STICKY = 0 plants a fault: what is shifted out of the smaller summand is forgotten.

module bfloat16_mac #(
    parameter STICKY = 1
) (
    input  logic        clk,
    input  logic        reset,
    input  logic        valid,
    input  logic        clear,
    input  logic [15:0] a,
    input  logic [15:0] b,
    output logic        done,
    output logic [31:0] sum,
    output logic [4:0]  flags
);
  // Leading zeros of 28 bits; 28 if there is no one among them.
  function automatic logic [4:0] zeros(input logic [27:0] x);
    zeros = 28;
    for (int i = 0; i < 28; i++) if (x[i]) zeros = 5'(27 - i);
  endfunction

  // -- 1: multiply significands; the exponent is that of bit 15 ---------------------------------------------------------

  wire [7:0] exponent_a = a[14:7], exponent_b = b[14:7];
  wire nan_a = &exponent_a && a[6:0] != 0, nan_b = &exponent_b && b[6:0] != 0;
  wire infinite_a = &exponent_a && a[6:0] == 0, infinite_b = &exponent_b && b[6:0] == 0;
  wire zero_a = a[14:0] == 0, zero_b = b[14:0] == 0;

  logic valid1, clear1, sign1, nan1, infinite1, invalid1;
  logic [15:0] product1;
  logic signed [11:0] exponent1;

  always_ff @(posedge clk) begin
    valid1 <= valid && !reset;
    clear1 <= clear;
    sign1 <= a[15] ^ b[15];
    product1 <= {8'b0, exponent_a != 0, a[6:0]} * {8'b0, exponent_b != 0, b[6:0]};
    exponent1 <= 12'(exponent_a) + 12'(exponent_a == 0) + 12'(exponent_b) + 12'(exponent_b == 0) - 12'sd253;
    nan1 <= nan_a || nan_b || (infinite_a && zero_b) || (zero_a && infinite_b);
    infinite1 <= infinite_a || infinite_b;
    invalid1 <= (nan_a && !a[6]) || (nan_b && !b[6]) || (infinite_a && zero_b) || (zero_a && infinite_b);
  end

  // -- 2: normalise the product -----------------------------------------------------------------------------------------

  wire [4:0] zeros1 = zeros({product1, 12'b0});

  logic valid2, clear2, sign2, nan2, infinite2, invalid2;
  logic [23:0] product2;
  logic signed [11:0] exponent2;

  always_ff @(posedge clk) begin
    valid2 <= valid1 && !reset;
    clear2 <= clear1;
    sign2 <= sign1;
    product2 <= {product1, 8'b0} << zeros1;
    exponent2 <= product1 == 0 ? -12'sd1000 : exponent1 - 12'(zeros1);
    nan2 <= nan1;
    infinite2 <= infinite1;
    invalid2 <= invalid1;
  end

  // -- 3: add, round, keep ----------------------------------------------------------------------------------------------

  wire [31:0] c = clear2 ? 32'b0 : sum;
  wire nan_c = &c[30:23] && c[22:0] != 0, infinite_c = &c[30:23] && c[22:0] == 0;
  wire [23:0] significand_c = {c[30:23] != 0, c[22:0]};
  wire [4:0] zeros_c = zeros({significand_c, 4'b0});
  wire [23:0] normal_c = significand_c << zeros_c;
  wire signed [11:0] exponent_c =
      significand_c == 0 ? -12'sd1000 : 12'(c[30:23]) + 12'(c[30:23] == 0) - 12'sd127 - 12'(zeros_c);

  // the smaller of both goes to the right, as far as the larger's exponent says
  wire swap = exponent_c > exponent2 || (exponent_c == exponent2 && normal_c > product2);
  wire [23:0] larger = swap ? normal_c : product2, smaller = swap ? product2 : normal_c;
  wire signed [11:0] exponent = swap ? exponent_c : exponent2;
  wire [11:0] distance = exponent - (swap ? exponent2 : exponent_c);
  wire [26:0] shifted = distance > 26 ? 27'b0 : {smaller, 3'b0} >> distance;
  wire [26:0] back = distance > 26 ? 27'b0 : shifted << distance;
  wire sticky = STICKY != 0 && back != {smaller, 3'b0};
  wire subtract = sign2 != c[31];
  wire [27:0] aligned = {1'b0, shifted[26:1], shifted[0] | sticky};
  wire [27:0] total = subtract ? {1'b0, larger, 3'b0} - aligned : {1'b0, larger, 3'b0} + aligned;

  // one bit above the significand's 24, and all below, at unbounded exponent; then as a binary32 has them
  wire [4:0] shift = zeros(total);
  wire [27:0] normal = total << shift;
  wire signed [11:0] top = exponent + 12'sd1 - 12'(shift);
  wire up_unbounded = normal[3] && (normal[4] || normal[2:0] != 0);
  wire tiny = top < -12'sd126 && !(top == -12'sd127 && &normal[27:4] && up_unbounded);
  wire subnormal = top < -12'sd126;
  wire [11:0] lower = subnormal ? -12'sd126 - top : 12'd0;
  wire [27:0] lowered = lower > 27 ? 28'b0 : normal >> lower;
  wire [27:0] raised = lower > 27 ? 28'b0 : lowered << lower;
  wire rest = lowered[2:0] != 0 || raised != normal;
  wire inexact = lowered[3] || rest;
  wire up = lowered[3] && (lowered[4] || rest);
  wire [8:0] field = subnormal ? 9'b0 : 9'(top + 12'sd127);
  wire [31:0] rounded = {field, lowered[26:4]} + 32'(up);
  wire overflow = rounded[31] || &rounded[30:23];
  wire zero = total == 0;
  wire sign = zero ? (subtract ? 1'b0 : sign2) : swap ? c[31] : sign2;

  wire both_infinite = infinite2 && infinite_c && subtract;
  wire nan = nan2 || nan_c || both_infinite;
  wire invalid = invalid2 || (nan_c && !c[22]) || (both_infinite && !nan2);

  always_ff @(posedge clk) begin
    done <= valid2 && !reset;
    if (reset) begin
      sum <= 0;
      flags <= 0;
    end else if (valid2) begin
      if (nan) begin
        sum <= 32'h7fc00000;
        flags <= {invalid, 4'b0};
      end else if (infinite2 || infinite_c) begin
        sum <= {infinite2 ? sign2 : c[31], 31'h7f800000};
        flags <= 0;
      end else if (zero) begin
        sum <= {sign, 31'b0};
        flags <= 0;
      end else begin
        sum <= {sign, overflow ? 31'h7f800000 : rounded[30:0]};
        flags <= {2'b0, overflow, tiny && inexact, inexact || overflow};
      end
    end
  end
endmodule
