"""Designs in Verilog, simulated: judged live by an exported library, offline by `vectors`, `check` and `coverage`."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import Run

from softfloat import export

pytestmark = [pytest.mark.exhaustive, pytest.mark.simulator]

DESIGNS = Path(__file__).parents[2] / "docs" / "designs"
MAC = "--op", "mac", "--format", "bfloat16", "--accumulator", 'fma("float32")'


class Benches(NamedTuple):
    """The unit and its bench as programs: the right one, and the one that loses the sticky bit."""

    right: Path
    faulty: Path


def needs(*tools: str) -> None:
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Benches:
    needs("verilator", "g++", "make", "gcc")
    if not DESIGNS.is_dir():
        pytest.skip("docs/designs is not here")
    folder = tmp_path_factory.mktemp("designs")
    golden = folder / "golden"
    export.write(golden, functions=[], formats=["bfloat16"], accumulators=['fma("float32")'], lengths=[1])
    sources = [golden / "sf_pkg.sv", DESIGNS / "bench.sv", DESIGNS / "bfloat16_mac.sv", golden / "libsf.o"]
    for name, sticky in (("right", 1), ("faulty", 0)):
        command = ["verilator", "--binary", "-Wno-fatal", "--top-module", "bench", "--Mdir", folder / name]
        command += [f"-GSTICKY={sticky}", *sources, "-LDFLAGS", "-lm"]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return Benches(folder / "right" / "Vbench", folder / "faulty" / "Vbench")


def simulated(bench: Path, rows: Path, device: Path) -> str:
    """What a bench says of the rows of a file; it writes the unit's."""
    done = subprocess.run([bench, f"+rows={rows}", f"+device={device}"], capture_output=True, text=True, check=True)
    return done.stdout


def vectors(file: Path, *options: str) -> Path:
    run = Run("vectors", "mac", *MAC[2:], *options, "-o", str(file))
    assert run.status == 0
    return file


@pytest.mark.parametrize("options", [(), ("--seed", "3", "-n", "100000"), ("--level", "1")])
def test_the_right_unit_passes(benches: Benches, tmp_path: Path, options: tuple[str, ...]) -> None:
    rows, device = vectors(tmp_path / "rows.txt", *options), tmp_path / "device.txt"
    found = re.search(r"^(\d+) rows, (\d+) wrong$", simulated(benches.right, rows, device), re.MULTILINE)
    assert found
    assert int(found[1]) == rows.read_bytes().count(b"\n") - 1 > 9999
    assert found[2] == "0"
    assert device.read_bytes().partition(b"\n")[0] == rows.read_bytes().partition(b"\n")[0]
    report: dict[str, Any] = Run("check", str(device), "--nan", "payload", "--json").document
    assert (report["rows"], report["mismatches"]) == (int(found[1]), 0)
    if "--level" in options:
        assert Run("coverage", str(device)).status == 0  # the corner rows reach everything


def test_the_faulty_unit_is_condemned(benches: Benches, tmp_path: Path) -> None:
    rows, device = vectors(tmp_path / "rows.txt"), tmp_path / "device.txt"
    live = simulated(benches.faulty, rows, device)
    found = re.search(r"^10000 rows, (\d+) wrong$", live, re.MULTILINE)
    assert found
    run = Run("check", str(device), "--nan", "payload", "--json")
    report = run.document
    assert (run.status, report["mismatches"]) == (1, int(found[1]))
    assert report["wrong_results"] > 0
    assert report["missing_flags"]["INEXACT"] > 100
    assert not report["extra_flags"]
    assert [x["name"] for x in report["causes"]] == ["no alignment sticky, 3 guard bits"]
    assert report["causes"][0]["share"] == 1


LE = """
module le_unit (input clk, input [2:0] rm, input [15:0] a, b, output reg [0:0] result, output reg [4:0] flags);
  wire nan = a[14:0] > 15'h7c00 || b[14:0] > 15'h7c00;
  wire zeros = a[14:0] == 0 && b[14:0] == 0;
  wire le = a[15] != b[15] ? (a[15] || zeros) : a[15] ? a[14:0] >= b[14:0] : a[14:0] <= b[14:0];
  always @(posedge clk) begin
    result <= le MASK;
    flags <= nan ? 5'b10000 : 5'b0;
  end
endmodule
"""

RUN = """
import sys
from pathlib import Path
from cocotb_tools.runner import get_runner
sys.path.insert(0, str(Path("sf").resolve()))
runner = get_runner("icarus")
runner.build(sources=[Path("le_unit.sv")], hdl_toplevel="le_unit", build_args=["-g2012"])
runner.test(hdl_toplevel="le_unit", test_module="sf_cocotb", results_xml=str(Path("results.xml").resolve()))
"""


@pytest.mark.parametrize(("mask", "failures"), [("&& !nan", 0), ("", 1)])
def test_the_cocotb_bench_judges_a_unit(tmp_path: Path, mask: str, failures: int) -> None:
    needs("iverilog", "vvp", "gcc")
    if importlib.util.find_spec("cocotb_tools") is None:
        pytest.skip("cocotb is not installed")
    export.write(tmp_path / "sf", functions=["le"], formats=["float16"])
    (tmp_path / "le_unit.sv").write_text(LE.replace("MASK", mask))
    subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, check=not failures)
    results = (tmp_path / "results.xml").read_text()
    assert results.count("<testcase ") == 1
    assert results.count("<failure") == failures
