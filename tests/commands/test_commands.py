"""The command line: output, exit status, and errors of one line."""

import contextlib
import dataclasses
import importlib.metadata
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from fractions import Fraction
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from commands import HANG, Run, without_compiling

import softfloat
from softfloat import ROSTER, bits, display, engine
from softfloat.accumulators import PRESETS, TENSOR_CORES
from softfloat.commands import main
from softfloat.commands.reproduce import LOOPS
from softfloat.experiments import accumulation, claims, figures
from softfloat.experiments.claims import Verdict
from softfloat.formats import NAMED
from softfloat.progress import Shown


@dataclasses.dataclass
class Full:
    run: Run
    report: claims.Report
    plot: Path


@pytest.fixture(scope="module")
def full(tmp_path_factory) -> Full:
    """One complete run of `reproduce --json --plot`."""
    plot = tmp_path_factory.mktemp("plots") / "sums.png"
    reports = []
    reproduce = claims.reproduce
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "reproduce", lambda *a, **b: reports.append(reproduce(*a, **b)) or reports[-1])
        run = Run("reproduce", "--json", "--plot", str(plot))
    return Full(run, reports[0], plot)


@pytest.fixture
def ready(monkeypatch, full) -> Full:
    """`reproduce` answers at once, with the report of the complete run."""
    monkeypatch.setattr(claims, "reproduce", answering(full.report))
    return full


def answering(report: claims.Report):
    """`claims.reproduce` with a report that is there already."""

    def reproduce(seed, progress, told, *, quick):
        for claim in report.claims:
            told(claim)
        return report

    return reproduce


# -- reproduce -------------------------------------------------------------------------------------------------------


def test_reproduce_prints_one_json_document(full):
    assert full.run.status == 0
    assert full.run.err == ""
    document = full.run.document
    assert document["passed"] is True
    assert document["seed"] == 0
    assert document["version"] == softfloat.__version__
    assert document["counts"]["FAILED"] == 0
    assert sum(document["counts"].values()) == len(document["claims"])
    by_id = {claim["id"]: claim for claim in document["claims"]}
    assert set(by_id["6"]) == {"id", "source", "statement", "published", "exact", "emulated", "verdict", "note"}
    assert (by_id["6"]["published"], by_id["6"]["emulated"], by_id["6"]["verdict"]) == (
        "0.0004833",
        "0.00048828125",
        "typo",
    )
    assert by_id["12"]["verdict"] == "not numeric"
    sums = document["running_sums"]
    assert (sums["nearest_even"], sums["stalled_after"], sums["count"]) == (0.25, 2181, 10_000)
    assert len(sums["stochastic"]) == 20
    assert sums["spread"]["mean"] == pytest.approx(np.mean(sums["stochastic"]))
    assert Fraction(sums["spread"]["expectation"]) == Fraction(16_780_000, 2**24)
    assert document["overflow"][1]["value"] == "nan"
    assert document["overflow"][1]["flags"] == ["INEXACT", "OVERFLOW", "INVALID"]
    assert document["underflow"][0]["code"] == 1
    assert document["plot"] == str(full.plot)
    assert document["plots"] == [str(full.plot)]


def test_the_grid_of_sums_covers_formats_and_modes(full):
    cells = {(cell["format"], cell["rounding"]): cell for cell in full.run.document["swamping"]}
    assert len(cells) == 5 * 7
    assert cells["float16", "nearest_even"]["stalled_after"] == 2181
    assert cells["tfloat32", "nearest_even"]["stalled_after"] == 2181  # as many bits of precision as half
    assert cells["bfloat16", "nearest_even"]["final"] == 0.03125
    assert cells["float32", "nearest_even"]["stalled_after"] is None
    assert cells["float8_e5m2", "toward_positive"]["final"] == "inf"
    assert {cell["verdict"] for cell in cells.values()} == {"reproduced"}


def test_the_plot_is_a_picture(full):
    from matplotlib.image import imread

    pixels = imread(full.plot)
    assert pixels.shape == (1050, 1200, 4)
    colours = {
        tuple(colour) for colour in np.unique((pixels[..., :3] * 255).round().astype(int).reshape(-1, 3), axis=0)
    }
    assert {(0xD5, 0x5E, 0x00), (0x00, 0x72, 0xB2), (0, 0, 0), (255, 255, 255)} <= colours
    assert [path.name for path in full.plot.parent.iterdir()] == ["sums.png"]


def test_the_document_holds_long_sums(full):
    found = full.run.document["accumulation"]
    assert {name: len(rows) for name, rows in found.items()} == {"dots": 39, "chunks": 34, "blocks": 39, "sums": 52}
    assert set(found["dots"][0]) == {"accumulator", "length", "error", "swamped", "format", "settings"}
    assert set(found["chunks"][0]) == {"inner", "outer", "length", "chunk", "error", "settings", "accumulator"}
    assert set(found["blocks"][0]) == {"accumulator", "output", "length", "error", "bound"}
    assert set(found["sums"][0]) == {"format", "rounding", "length", "runs", "error", "bound", "accumulator"}
    for name in ("blocks", "sums"):
        assert all(row["error"] <= row["bound"] for row in found[name])


def test_the_report_tells_of_long_sums(monkeypatch, ready):
    monkeypatch.setenv("COLUMNS", "80")
    lines = [line.strip() for line in Run("reproduce").out.splitlines()]
    dots, chunks = ready.report.accumulation.dots, ready.report.accumulation.chunks
    longest = [row for row in dots if row.length == 2**16]
    cells = [cell for row in longest for cell in (f"{row.error:.1e}", f"{row.swamped:.0%}")]
    assert ["65536", *cells] in [line.split() for line in lines]
    middle = [f"{row.error:.1e}" for row in chunks if row.chunk == 256]
    assert ["256", *middle] in [line.split() for line in lines]
    assert sum(bool(re.match(r"b?float16 +\d+ +\d", line)) for line in lines) == 14
    monkeypatch.setenv("COLUMNS", "60")
    out = " ".join(Run("reproduce").out.split())
    assert f"chunk 256, added in float16 {middle[0]}, added in float32 {middle[1]}" in out


def test_a_broken_bound_is_exit_status_1(monkeypatch, full):
    found = full.report.accumulation
    broken = dataclasses.replace(found.blocks[0], error=2 * found.blocks[0].bound)
    found = dataclasses.replace(found, blocks=(broken, *found.blocks[1:]))
    report = dataclasses.replace(full.report, accumulation=found)
    monkeypatch.setattr(claims, "reproduce", answering(report))
    run = Run("reproduce")
    assert run.status == 1
    assert "1 error bounds FAILED" in run.out
    assert Run("reproduce", "--json").document["passed"] is False


@pytest.mark.parametrize("width", [40, 60, 80, 119, 120, 200])
def test_the_report_fits_the_terminal(monkeypatch, ready, width):
    monkeypatch.setenv("COLUMNS", str(width))
    run = Run("reproduce")
    assert run.status == 0
    assert run.err == ""
    assert "\x1b" not in run.out
    assert max(map(len, run.out.splitlines())) <= width
    for text in ("0.0004833", "0.00048828125", "66504", "2181", "1.000166", "typo", "not numeric"):
        assert text in run.out
    assert " ".join(run.out.split()).endswith("38 reproduced, 8 typos, 2 not numeric, 0 FAILED")
    assert len(re.findall(r"(?<!\d) reproduced", run.out)) == 38
    assert "MindSpore" in run.out
    if width >= 80:
        assert "OFLO 0x1 DIV0 0x0 INV 0x1" in run.out


@pytest.mark.parametrize(
    "command", ["formats", "accumulators", "accumulators tensor_core", "inspect 0.1", "hardware --list", "reproduce"]
)
def test_what_is_piped_is_not_broken_into_lines(monkeypatch, ready, command):
    """As on a terminal that is wider than everything; and no line is filled up with spaces to the width of one."""
    monkeypatch.setenv("COLUMNS", "9999")
    wide = Run(*command.split()).out
    monkeypatch.delenv("COLUMNS")
    piped = Run(*command.split())
    assert (piped.status, piped.err) == (0, "")
    assert max(map(len, piped.out.splitlines())) < 2000
    if command == "reproduce":  # where a terminal has columns of one width in all tables
        lines = piped.out.splitlines()
        for claim in ready.report.claims:
            assert any(claim.statement in line and claim.exact in line and claim.emulated in line for line in lines)
    else:
        assert [x.rstrip() for x in piped.out.splitlines()] == [x.rstrip() for x in wide.splitlines()]
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, Run(*command.split()).out.splitlines())) <= 80


def test_the_seed_reaches_the_experiments(monkeypatch, full):
    seeds = []
    monkeypatch.setattr(claims, "reproduce", lambda seed, *_, **__: seeds.append(seed) or full.report)
    assert Run("reproduce", "--seed", "0x11", "--json").status == 0
    assert Run("reproduce", "--json").status == 0
    assert seeds == [17, 0]


def test_a_failed_claim_is_exit_status_1(monkeypatch, full):
    broken = dataclasses.replace(full.report.claims[0], verdict=Verdict.FAILED)
    report = dataclasses.replace(full.report, claims=(broken, *full.report.claims[1:]))
    monkeypatch.setattr(claims, "reproduce", answering(report))
    run = Run("reproduce")
    assert run.status == 1
    assert "1 FAILED" in run.out
    run = Run("reproduce", "--json")
    assert run.status == 1
    assert run.document["passed"] is False


def test_a_failed_running_sum_is_exit_status_1(monkeypatch, full):
    cell = dataclasses.replace(full.report.swamping[0], verdict=Verdict.FAILED)
    report = dataclasses.replace(full.report, swamping=(cell, *full.report.swamping[1:]))
    monkeypatch.setattr(claims, "reproduce", answering(report))
    run = Run("reproduce")
    assert run.status == 1
    assert "1 running sums FAILED" in run.out


def test_a_wrong_subtraction_is_exit_status_1(monkeypatch, full):
    subtract = bits.sub

    def sub(*operands, **options):
        codes, flags = subtract(*operands, **options)
        return codes ^ codes.dtype.type(1), flags

    sums = {"nearest_even": full.report.nearest, "stochastic": full.report.stochastic}
    monkeypatch.setattr(bits, "sub", sub)
    monkeypatch.setattr(claims, "running_sum", lambda *_, rounding="nearest_even", **__: sums[rounding])
    monkeypatch.setattr(claims, "sums_across", lambda *_, **__: ())
    monkeypatch.setattr(accumulation, "measure", lambda *_: full.report.accumulation)
    run = Run("reproduce", "--json")
    assert run.status == 1
    failed = {claim["id"] for claim in run.document["claims"] if claim["verdict"] == "FAILED"}
    assert {"6", "8a", "8b", "8c", "8d", "9", "16b"} <= failed
    assert failed.isdisjoint({"1", "2", "10a", "10b", "17a"})


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".PNG"])
def test_other_kinds_of_plot(ready, tmp_path, suffix):
    path = tmp_path / f"sums{suffix}"
    assert Run("reproduce", "--json", "--plot", str(path)).status == 0
    starts = {".svg": b"<?xml", ".pdf": b"%PDF", ".PNG": b"\x89PNG"}
    assert path.read_bytes().startswith(starts[suffix])
    assert path.stat().st_size > 10_000


def test_a_plot_replaces_a_file_only_when_complete(monkeypatch, ready, tmp_path):
    path = tmp_path / "sums.png"
    path.write_text("old", encoding="utf-8")

    def refuse(*_):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        Run("reproduce", "--json", "--plot", str(path)).assert_error(
            "cannot write the plot", "Permission denied", "sums.png"
        )
    assert path.read_text(encoding="utf-8") == "old"
    assert [x.name for x in tmp_path.iterdir()] == ["sums.png"]
    assert Run("reproduce", "--plot", str(path)).status == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_plot_of_everything(ready, tmp_path):
    from matplotlib.image import imread

    folder, sums = tmp_path / "plots", tmp_path / "sums.svg"
    run = Run("reproduce", "--json", "--plots", str(folder), "--plot", str(sums))
    assert (run.status, run.err) == (0, "")
    assert run.document["plots"] == [str(sums), *(str(folder / name) for name in figures.PLOTS)]
    assert sorted(path.name for path in folder.iterdir()) == sorted(figures.PLOTS)
    for name in figures.PLOTS:
        pixels = (imread(folder / name)[..., :3] * 255).round().astype(int)
        assert pixels.shape[1] == 1200
        colours = pixels @ (1 << 16, 1 << 8, 1)
        assert {0xD55E00, 0x0072B2, 0x000000, 0xFFFFFF} <= set(np.unique(colours).tolist())
        for edge in (colours[:3], colours[-3:], colours[:, :3], colours[:, -3:]):
            assert (edge == 0xFFFFFF).all()  # nothing is cut off
    assert "Plot written to" in Run("reproduce", "--plots", str(folder)).out


def test_folders_that_plots_cannot_go_to(monkeypatch, tmp_path):
    monkeypatch.setattr(claims, "reproduce", never)
    (tmp_path / "file").write_text("", encoding="utf-8")
    Run("reproduce", "--plots", str(tmp_path / "file")).assert_error("cannot write the plot", "file")
    Run("reproduce", "--plots", str(tmp_path / "missing" / "folder")).assert_error("cannot write the plot", "missing")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    Run("reproduce", "--plots", str(tmp_path / "folder")).assert_error('pip install "numba-softfloat[plot]"')


def never(*_, **__):
    raise AssertionError("the experiments ran before the plot's path was checked")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sums.gif", [".gif", ".png, .svg, .pdf"]),
        ("sums", ["without suffix", ".png, .svg, .pdf"]),
        ("missing/sums.png", ["no folder", "missing"]),
        ("folder.png", ["is a folder"]),
    ],
)
def test_plots_that_cannot_be_written(monkeypatch, tmp_path, name, words):
    monkeypatch.setattr(claims, "reproduce", never)
    (tmp_path / "folder.png").mkdir()
    Run("reproduce", "--plot", str(tmp_path / name)).assert_error(*words)


def test_a_folder_without_permission(monkeypatch, tmp_path):
    monkeypatch.setattr(claims, "reproduce", never)
    monkeypatch.setattr(os, "access", lambda *_: False)
    Run("reproduce", "--plot", str(tmp_path / "sums.png")).assert_error("not writable")


def test_without_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setattr(claims, "reproduce", never)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    Run("reproduce", "--plot", str(tmp_path / "sums.png")).assert_error('pip install "numba-softfloat[plot]"')


def test_a_bar_only_on_a_terminal(monkeypatch, full):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def reproduce(seed, progress, told, *, quick):
        progress("sums in bfloat16", 0.25)
        return answering(full.report)(seed, progress, told, quick=quick)

    monkeypatch.setattr(claims, "reproduce", reproduce)
    monkeypatch.setenv("TERM", "xterm")
    out, err = io.StringIO(), Terminal()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert main(["reproduce", "--json"]) == 0
    assert re.search(r"sums in bfloat16.* 25 %", err.getvalue())
    assert json.loads(out.getvalue())["passed"] is True
    out, err = io.StringIO(), Terminal()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert main(["reproduce"]) == 0
    assert "\x1b" not in out.getvalue()
    assert "largest FP16" in out.getvalue()
    assert "largest FP16" not in err.getvalue()


def test_lines_about_progress_where_nobody_watches(monkeypatch, full, capsys):
    """One for each name; a name that stays is told again when some time has passed."""
    steps = [("sums in bfloat16", 0.25), ("sums in bfloat16", 0.25), ("long sums", 0.5)]

    def reproduce(seed, progress, told, *, quick):
        for step in steps:
            progress(*step)
        return full.report

    monkeypatch.setattr(claims, "reproduce", reproduce)
    monkeypatch.setattr("softfloat.progress.SECONDS_BETWEEN_NAMES", 0.0)
    for seconds, told in ((1e9, [steps[0], steps[2]]), (0.0, steps)):
        monkeypatch.setattr("softfloat.progress.SECONDS_BETWEEN_LINES", seconds)
        assert main(["reproduce", "--json"]) == 0
        lines = [
            *(f"softfloat reproduce: {name}, {share:.0%} done" for name, share in told),
            "softfloat reproduce: done",
        ]
        assert capsys.readouterr().err.splitlines() == lines
    monkeypatch.setattr("softfloat.progress.SECONDS_BETWEEN_NAMES", 1e9)
    assert main(["reproduce", "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_the_bar_is_away_while_something_is_printed() -> None:
    """From `clear` to the next update: what a pipe delivers late would stand in the line of a bar that came back at once."""
    happened = []

    class Recorded:
        def __getattr__(self, name):
            return lambda *_, **__: happened.append(name) or 0

    shown = Shown("softfloat reproduce", Recorded())
    shown.update("long sums", 0.5, "compiling loop 1, once")
    shown.clear()
    assert happened == ["add_task", "update", "start", "stop"]
    shown.update("long sums", 0.5)
    assert happened[4:] == ["update", "start"]


def test_loops_are_counted_while_they_are_compiled(monkeypatch, full, capsys):
    """Of all that the command takes, kept ones among them, on standard error where nobody watches."""
    from numba.core import event

    def reproduce(seed, progress, told, *, quick):
        progress("sums in bfloat16", 0.25)
        for kept in (False, True, False):
            with event.trigger_event(engine.loop_event(), data={"kept": kept}):
                pass
        return full.report

    monkeypatch.setattr(claims, "reproduce", reproduce)
    for kind in ("NAMES", "LINES"):
        monkeypatch.setattr(f"softfloat.progress.SECONDS_BETWEEN_{kind}", 0.0)
    for loops, of in ((12, (" of 12", " of 12")), (2, (" of 2", "")), (None, ("", ""))):
        monkeypatch.setattr(engine, "available", lambda known=loops is not None: (known, known))
        monkeypatch.setitem(LOOPS, ("tutorials", True), loops)
        assert main(["reproduce", "--json", "--quick"]) == 0
        details = [f"compiling loop 1{of[0]}, once", f"1{of[0]} loops are there", f"2{of[0]} loops are there"]
        details += [f"compiling loop 3{of[1]}, once", f"3{of[1]} loops are there"]
        name, *lines, end = capsys.readouterr().err.splitlines()
        assert (name, end) == ("softfloat reproduce: sums in bfloat16, 25% done", "softfloat reproduce: done")
        assert lines == [f"softfloat reproduce: sums in bfloat16: {detail}, 25% done" for detail in details]


TAKEN = """
from numba.core import event
from softfloat import engine
from softfloat.commands import main
from softfloat.commands.reproduce import LOOPS
with event.install_recorder(engine.loop_event()) as recorder:
    main({arguments})
print("\\nloops", sum(x.is_start for _, x in recorder.buffer))
"""


@pytest.mark.skipif(not all(engine.available()), reason="other loops")
@pytest.mark.parametrize(
    ("document", "quick"), [key if key[1] else pytest.param(*key, marks=pytest.mark.sampled(2)) for key in LOOPS]
)
def test_as_many_loops_as_are_announced(document: str, quick: bool) -> None:
    """In a process of its own, whether they are kept or not. Where this fails, LOOPS takes the other number."""
    arguments = ["reproduce", document, *["--quick"] * quick]
    done = subprocess.run(
        [sys.executable, "-c", TAKEN.format(arguments=arguments)],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    )
    assert done.stdout.splitlines()[-1] == f"loops {LOOPS[document, quick]}"


def test_quick_has_the_claims_alone(monkeypatch, full):
    sums = {"nearest_even": full.report.nearest, "stochastic": full.report.stochastic}
    monkeypatch.setattr(claims, "running_sum", lambda *_, rounding="nearest_even", **__: sums[rounding])
    monkeypatch.setattr(claims, "sums_across", never)
    monkeypatch.setattr(accumulation, "measure", never)
    told, steps = [], []
    report = claims.reproduce(0, lambda *step: steps.append(step), told.append, quick=True)
    assert tuple(told) == report.claims
    assert [claim.id for claim in report.claims] == [claim.id for claim in full.report.claims]
    assert (report.swamping, report.accumulation.dots) == ((), ())
    assert [name for name, _ in steps] == list(claims.TENTHS)[: claims.QUICK]
    document = Run("reproduce", "--quick", "--json").document
    assert [claim["id"] for claim in document["claims"]] == [claim.id for claim in full.report.claims]
    assert document["swamping"] == []
    out = Run("reproduce", "--quick").out
    assert "largest FP16" in out
    assert "Twenty stochastic sums" not in out
    assert re.search(r"\d+ reproduced, ", out.splitlines()[-1])
    Run("reproduce", "--quick", "--plots", "folder").assert_error("--quick", "--plots")


def test_each_step_is_named_and_each_claim_told_before_the_next(monkeypatch, full):
    happened = []
    sums = {"nearest_even": full.report.nearest, "stochastic": full.report.stochastic}
    monkeypatch.setattr(claims, "running_sum", lambda *_, rounding="nearest_even", **__: sums[rounding])
    monkeypatch.setattr("softfloat.experiments.swamping.running_sum", lambda *_, **__: full.report.nearest)
    for name in ("dot_swamping", "chunking", "block_fma_bounds", "stochastic_sums"):
        monkeypatch.setattr(accumulation, name, lambda *, seed: ())
    claims.reproduce(0, lambda name, share: happened.append((name, share)), lambda claim: happened.append(claim.id))
    steps = [x for x in happened if isinstance(x, tuple)]
    assert [name for name, _ in steps] == list(claims.TENTHS)
    shares = [share for _, share in steps]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert 0 < shares[-1] < 1
    ids = [x for x in happened if isinstance(x, str)]
    assert ids == [claim.id for claim in full.report.claims]
    places = [happened.index(one) for one in (steps[0], "1", "9", *steps[1:4], "10a", steps[4], "12", "19b", steps[5])]
    assert places == sorted(places)


# -- inspect ---------------------------------------------------------------------------------------------------------


def inspected(*arguments: str) -> dict:
    run = Run("inspect", "--json", *arguments)
    assert run.status == 0, run.err
    assert run.err == ""
    (value,) = run.document["values"]
    return value


def test_inspect_one():
    one = inspected("0x3c00", "--format", "float16")
    assert one == {
        "format": "float16",
        "code": "0x3c00",
        "pattern": "0.01111.0000000000",
        "sign": 0,
        "exponent_field": 15,
        "exponent": 0,
        "fraction": 0,
        "value": "1",
        "hex": "0x1p+0",
        "class": "positiveNormal",
        "below": {"code": "0x3bff", "value": "0.99951171875", "spacing": "0.00048828125"},
        "above": {"code": "0x3c01", "value": "1.0009765625", "spacing": "0.0009765625"},
    }


def test_inspect_a_number_says_what_rounding_cost():
    found = inspected("0.1")
    assert (found["code"], found["given"], found["flags"]) == ("0x2e66", "0.1", ["INEXACT"])
    assert found["error_ulps"] == pytest.approx(-0.4)
    up = inspected("0.1", "--rounding", "toward_positive")
    assert (up["code"], up["error_ulps"]) == ("0x2e67", pytest.approx(0.6))
    stochastic = {inspected("0.1", "-r", "SR", "--seed", str(seed))["code"] for seed in range(20)}
    assert stochastic == {"0x2e66", "0x2e67"}


def test_inspect_rounds_once():
    assert (
        inspected("0x1.0020000000000000000001p0")["code"] == "0x3c01"
    )  # a tie, and a little more than 53 bits can say
    assert inspected("0x1.002p0")["code"] == "0x3c00"
    assert inspected("1.00048828125000000000000000000001")["code"] == "0x3c01"


@pytest.mark.parametrize(
    ("text", "code", "flags"),
    [
        ("-0.0", "0x8000", []),
        ("-1e-8", "0x8000", ["INEXACT", "UNDERFLOW"]),
        ("1e-8", "0x0000", ["INEXACT", "UNDERFLOW"]),
        ("-.5", "0xb800", []),
        ("inf", "0x7c00", []),
        ("-inf", "0xfc00", []),
        ("65520", "0x7c00", ["INEXACT", "OVERFLOW"]),
        ("1e400", "0x7c00", ["INEXACT", "OVERFLOW"]),
        ("-1e5000", "0xfc00", ["INEXACT", "OVERFLOW"]),
        ("1e-5000", "0x0000", ["INEXACT", "UNDERFLOW"]),
        ("1/3", "0x3555", ["INEXACT"]),
        ("-0x1.8p1", "0xc200", []),
        ("0X.8P1", "0x3c00", []),
        ("6e-8", "0x0001", ["INEXACT", "UNDERFLOW"]),
    ],
)
def test_inspect_numbers(text, code, flags):
    found = inspected(text)
    assert (found["code"], found["flags"]) == (code, flags)


def test_what_overflows_has_no_error_in_ulps():
    for name in ("float16", "float4_e2m1fn", "float8_e4m3fn"):
        assert inspected("1e400", "-f", name)["error_ulps"] is None
    assert inspected("5.9", "-f", "float4_e2m1fn")["error_ulps"] == pytest.approx(0.05)


def test_inspect_nan():
    found = inspected("nan")
    assert (found["class"], found["value"], found["below"], found["above"], found["error_ulps"]) == (
        "quietNaN",
        "nan",
        None,
        None,
        None,
    )
    assert inspected("0x7c01")["class"] == "signalingNaN"


def test_inspect_at_the_ends():
    greatest = inspected("0x7bff")
    assert greatest["above"] == {"code": "0x7c00", "value": "inf", "spacing": None}
    assert inspected("0x7c00")["above"] is None
    assert inspected("0xfc00")["below"] is None
    assert inspected("0x7e", "-f", "float8_e4m3fn")["above"] is None  # 448, and no infinity
    assert inspected("0x7", "-f", "fp4")["value"] == "6"
    scale = inspected("0b0", "-f", "float8_e8m0fnu")
    assert (scale["sign"], scale["exponent"], scale["below"], scale["pattern"]) == (None, -127, None, "00000000")
    assert Fraction(scale["value"]) == Fraction(1, 2**127)
    assert inspected("0x80", "-f", "float8_e4m3fnuz")["class"] == "quietNaN"
    assert inspected("0x0", "-f", "float8_e4m3fnuz")["below"]["code"] == "0x81"
    smallest = inspected("0x8001")
    assert (smallest["exponent"], smallest["class"], smallest["above"]["code"]) == (-14, "negativeSubnormal", "0x8000")


NARROW = [fmt for fmt in ROSTER.values() if fmt.bits <= 8]


@pytest.mark.parametrize("fmt", NARROW, ids=str)
def test_every_narrow_code_against_ml_dtypes(fmt):
    codes = np.arange(1 << fmt.bits, dtype=np.uint8)
    values = codes.view(getattr(ml_dtypes, fmt.name)).astype(np.float64)
    ordered = sorted({x for x in values.tolist() if not math.isnan(x)})
    for code, value in zip(codes.tolist(), values.tolist(), strict=True):
        found = display.inspect_code(code, fmt)
        assert int(found.pattern.replace(".", ""), 2) == code
        if math.isnan(value):
            assert found.kind in ("quietNaN", "signalingNaN")
            assert (found.below, found.above, found.exponent) == (None, None, None)
            continue
        assert float(found.value) == value
        assert math.copysign(1, found.value) == math.copysign(1, value)
        place = ordered.index(value)
        for neighbour, at in ((found.below, place - 1), (found.above, place + 1)):
            if not 0 <= at < len(ordered):
                assert neighbour is None
                continue
            assert float(neighbour.value) == ordered[at]
            assert values[neighbour.code] == ordered[at]
            if math.isinf(ordered[at]) or math.isinf(value):
                assert neighbour.spacing is None
            else:
                assert neighbour.spacing == abs(Fraction(ordered[at]) - Fraction(value))
        if found.exponent is not None:
            fraction = Fraction(found.fraction_field, 1 << fmt.mantissa_bits)
            significand = found.hidden_bit + fraction
            sign = -1 if found.sign_field else 1
            assert sign * significand * Fraction(2) ** found.exponent == Fraction(value)


@pytest.mark.parametrize("name", ["float16", "float32", "bfloat16"])
def test_wide_codes_against_numpy(name):
    fmt = ROSTER[name]
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    rng = np.random.default_rng(3)
    edges = [0, 1, fmt.smallest_normal_code - 1, fmt.smallest_normal_code, fmt.one_code, fmt.max_code, fmt.inf_code]
    codes = np.array([*edges, *rng.integers(0, fmt.max_code, 100)]).astype(fmt.dtype)
    for code, value in zip(codes.tolist(), codes.view(dtype).astype(float).tolist(), strict=True):
        found = display.inspect_code(code, fmt)
        assert float(found.value) == value
        if math.isfinite(value):
            assert Fraction(found.decimal) == Fraction(value)
            assert float.fromhex(found.hexadecimal) == value
        if 0 < code < fmt.inf_code:
            assert (found.below.code, found.above.code) == (code - 1, code + 1)


@pytest.mark.parametrize("name", [*ROSTER, "half", "bf16"])
@pytest.mark.parametrize("width", [40, 80])
def test_inspect_prints_a_table_for_every_format(monkeypatch, name, width):
    monkeypatch.setenv("COLUMNS", str(width))
    run = Run("inspect", "0x1", "1.1", "--format", name)
    assert run.status == 0
    assert run.err == ""
    assert "\x1b" not in run.out
    assert max(map(len, run.out.splitlines())) <= width
    assert run.out.count("class") == 2
    assert run.out.count("ulp") == 1
    assert softfloat.Format.from_name(name).layout in run.out


def test_inspect_in_text():
    run = Run("inspect", "0.1")
    lines = [line.rstrip() for line in run.out.splitlines()]
    assert "bits         0 01011 1001100110" in lines
    assert "below        0x2e65 = 0.09991455078125, 2^-14 away" in lines
    assert "flags        INEXACT" in lines
    assert "error        -0.4 ulp" in lines
    assert "error        0, exact" in Run("inspect", "0.5").out


def test_fields_are_coloured_on_a_terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    shown = Run("inspect", "0x3c00").out
    fields = re.findall(r"\x1b\[38;5;(\d+)m([01]+)\x1b\[0m", shown)
    assert [digits for _, digits in fields] == ["0", "01111", "0000000000"]
    assert len({colour for colour, _ in fields}) == 3
    assert "\x1b" in Run("formats").out
    assert "\x1b" not in Run("inspect", "0x3c00", "--json").out


# -- formats ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 60, 79, 80, 100, 119, 120, 200])
def test_formats_compares_all(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    run = Run("formats")
    assert (run.status, run.err) == (0, "")
    assert "\x1b" not in run.out
    assert max(map(len, run.out.splitlines())) <= width
    for fmt in ROSTER.values():
        assert fmt.name in run.out
        words = run.out.split(fmt.name, 1)[1].split()
        if width >= 80:
            numbers = [fmt.bits, int(fmt.signed), fmt.exponent_bits, fmt.mantissa_bits, fmt.p, fmt.bias]
            assert words[:9] == [*map(str, numbers), str(fmt.emin), "to", str(fmt.emax)]
        if width >= 120:
            smallest = "none" if fmt.smallest_subnormal == fmt.tiny else f"2^{fmt.emin - fmt.mantissa_bits}"
            assert words[9:13] == [f"{fmt.max:.6g}", f"2^{fmt.emin}", smallest, f"2^{-fmt.mantissa_bits}"]
            assert 2.0 ** int(words[10][2:]) == fmt.smallest_normal
            assert 2.0 ** int(words[12][2:]) == fmt.eps
    assert run.out.count("zero") == 1  # float8_e8m0fnu has none
    assert run.out.count("(0x80)") == 3


def test_some_formats():
    names = lambda *arguments: [row["name"] for row in Run("formats", "--json", *arguments).document["formats"]]  # noqa: E731
    assert names() == list(NAMED)
    assert names("--format", "half", "e8m0") == ["float16", "float8_e8m0fnu"]
    assert names("-f", "fp4", "--format", "bf16", "half", "-f", "fp4") == ["float4_e2m1fn", "bfloat16", "float16"]
    run = Run("formats", "-f", "e4m3")
    assert "float8_e4m3fn" in run.out
    assert "bfloat16" not in run.out


def test_formats_as_json():
    document = Run("formats", "--json").document
    assert document["version"] == softfloat.__version__
    for row in document["formats"]:
        fmt = NAMED[row["name"]]
        rebuilt = {
            name: row[name]
            for name in ("exponent_bits", "mantissa_bits", "bias", "infinities", "nan", "subnormals", "signed", "zero")
        }
        assert softfloat.Format(fmt.name, signed_zero=row["signed_zero"], **rebuilt) == fmt
        for name in (
            "bits",
            "layout",
            "p",
            "emin",
            "emax",
            "max",
            "min",
            "smallest_normal",
            "smallest_subnormal",
            "eps",
        ):
            assert row[name] == getattr(fmt, name)


# -- accumulators ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 80, 120, 160])
def test_accumulators_lists_every_preset(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    run = Run("accumulators")
    assert (run.status, run.err) == (0, "")
    assert "\x1b" not in run.out
    assert max(map(len, run.out.splitlines())) <= width
    for preset in PRESETS.values():
        assert preset.example in run.out
        if width < 120:
            assert preset.meaning in " ".join(run.out.split())
            assert preset.source in " ".join(run.out.split())


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", list(PRESETS))
def test_accumulators_tells_of_one(monkeypatch, name, width):
    monkeypatch.setenv("COLUMNS", str(width))
    run = Run("accumulators", name)
    assert (run.status, run.err) == (0, "")
    assert max(map(len, run.out.splitlines())) <= width
    words = " ".join(run.out.split())
    for text in (PRESETS[name].example, PRESETS[name].meaning, PRESETS[name].source):
        assert " ".join(text.split()) in words
    assert "c and partials" in words


def test_accumulators_shows_hardware():
    lines = [line.split() for line in Run("accumulators", "tensor_core").out.splitlines()]
    for row in TENSOR_CORES:
        numbers = [str(x) for x in (row.block, row.fraction_bits, row.sum_bits)]
        assert [
            *row.architecture.split(),
            row.input,
            row.instruction,
            *numbers,
            *", ".join(row.outputs).split(),
        ] in lines
    assert "H200 is as H100" in Run("accumulators", "tensor_core").out
    amp = [line.split() for line in Run("accumulators", "amp").out.splitlines()]
    assert ["float16", "4", "16", "float16,", "float32"] in amp
    slic = Run("accumulators", "slic").out
    assert "pass is a phase for each" in slic


def test_accumulators_as_json():
    document = Run("accumulators", "--json").document
    assert set(document) == {"version", "presets"}
    assert [row["name"] for row in document["presets"]] == list(PRESETS)
    for row in document["presets"]:
        preset = PRESETS[row["name"]]
        assert (row["example"], row["meaning"], row["source"]) == (preset.example, preset.meaning, preset.source)
        assert row["description"].startswith(row["name"])
    document = Run("accumulators", "tensor_core", "--json").document
    assert len(document["presets"]) == 1
    assert document["tensor_cores"] == json.loads(json.dumps([row._asdict() for row in TENSOR_CORES]))
    assert document["same_as"]["L40S"] == "Ada"
    (half, *_) = Run("accumulators", "amp", "--json").document["datapaths"]
    assert half == {"inputs": ["float16"], "phase": 4, "pass": 16, "partials": ["float16", "float32"]}
    assert "pass" not in Run("accumulators", "slic", "--json").document["datapaths"][0]


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["inspect", "1", "--format", "float12"], ["float12", "float16", "float8_e4m3fn"]),
        (["inspect", "one"], ["'one'", "0x3c00", "1e-8"]),
        (["inspect", ""], ["neither a code nor a number"]),
        (["inspect", "0xzz"], ["0xzz"]),
        (["inspect", "0b12"], ["0b12"]),
        (["inspect", "1/0"], ["1/0"]),
        (["inspect", "0x10000"], ["0x10000", "0xffff"]),
        (["inspect", "0x10", "-f", "fp4"], ["float4_e2m1fn", "0xf"]),
        (["inspect", "1e99999999999"], ["exponent", "5000"]),
        (["inspect", "0x1p-99999"], ["exponent", "5000"]),
        (["inspect", "1", "--rounding", "up"], ["'up'", "toward_positive"]),
        (["inspect", "1", "--seed", "-1"], ["--seed", "2^64", "'-1'"]),
        (["inspect"], ["VALUE"]),
        (["reproduce", "--seed", "x"], ["--seed", "'x'"]),
        (["reproduce", "--seed", str(2**64)], ["--seed"]),
        (["reproduce", "--plot"], ["--plot"]),
        (["reproduce", "--plots"], ["--plots"]),
        (["accumulators", "kulisch"], ["'kulisch'", "tensor_core", "exact"]),
        (["accumulators", "amp", "slic"], ["slic"]),
        (["reproduce", "extra"], ["extra"]),
        (["formats", "--format", "e9x9"], ["'e9x9'", "float16", "float8_e4m3fn"]),
        (["formats", "--format"], ["--format"]),
        (["formats", "half"], ["half"]),
        (["multiply"], ["multiply", "reproduce", "inspect", "formats", "accumulators"]),
        (["insepct", "1"], ["insepct", "did you mean 'inspect'?"]),
        (["chekc", "x.txt"], ["did you mean 'check'?"]),
        (["inspect", "1", "--overflw", "saturate"], ["--overflw", "did you mean '--overflow'?"]),
        (["vectors", "add", "--fromat=half"], ["--fromat", "did you mean '--format'?"]),
        (["identify", "--pyton", "m:f"], ["--pyton", "did you mean '--python'?"]),
        (["vectors", "ad", "-f", "half"], ["did you mean 'add'?"]),
        (["vectors", "f16_mulad"], ["did you mean 'mulAdd'?"]),
        (["accumulators", "tensorcore"], ["did you mean 'tensor_core'?"]),
        (["inspect", "1", "-f", "mxfp4", "--rule", "florr"], ["did you mean 'floor'?"]),
        (["onnx", "rnu"], ["did you mean 'run'?"]),
        (["onnx", "run", "m.onnx", "--iner", "format"], ["did you mean '--inner'?"]),
        (["onnx", "run", "m.onnx", "--inner", "float23"], ["'float23'", "did you mean 'float32'?"]),
        (["inspect", "1", "--overflow", "saturated"], ["overflow", "saturate"]),
        (["inspect", "0x3c00", "--overflow", "saturate"], ["--overflow", "'0x3c00' is a code"]),
        (["inspect", "0 1110 1111111111"], ["1 5 10 bits"]),
        (["inspect", "0 11110 1111111111", "-f", "bfloat16"], ["1 8 7 bits"]),
    ],
)
def test_errors_are_one_line(arguments, words):
    Run(*arguments).assert_error(*words)


def test_words_that_are_like_no_other_are_not_guessed_at():
    assert "did you mean" not in Run("multiply").err
    assert "did you mean" not in Run("inspect", "1", "--quux").err


@pytest.mark.parametrize("arguments", [(), ("onnx",)])
def test_without_a_command_the_help_is_printed(arguments):
    run = Run(*arguments)
    assert (run.status, run.err) == (0, "")
    assert run.out == Run(*arguments, "--help").out


@pytest.mark.parametrize(
    ("arguments", "code", "flags"),
    [
        (("500", "-f", "e4m3fn", "--overflow", "saturate"), "0x7e", ["INEXACT", "OVERFLOW"]),
        (("500", "-f", "e4m3fn"), "0x7f", ["INEXACT", "OVERFLOW"]),
        (("inf", "-f", "e4m3fn", "--infinite-input", "saturate"), "0x7e", []),
        (("1e-7", "--ftz"), "0x0000", ["INEXACT", "UNDERFLOW"]),
        (("6.1035e-5", "--tininess", "before"), "0x0400", ["INEXACT", "UNDERFLOW"]),
        (("6.1035e-5",), "0x0400", ["INEXACT"]),
        (("1.0001", "-r", "stochastic", "--sr-bits", "1"), "0x3c00", ["INEXACT"]),
    ],
)
def test_inspect_rounds_as_it_is_told(arguments, code, flags):
    (found,) = Run("inspect", *arguments, "--json").document["values"]
    assert (found["code"], found["flags"]) == (code, flags)


@pytest.mark.parametrize("fmt", [name for name, fmt in ROSTER.items() if fmt.signed])
def test_inspect_reads_the_bits_that_it_prints(fmt):
    for code in (0, ROSTER[fmt].max_code, ROSTER[fmt].sign_bit):
        (line,) = [x for x in Run("inspect", hex(code), "-f", fmt).out.splitlines() if x.startswith("bits")]
        pattern = line.removeprefix("bits").strip()
        for text in (pattern, pattern.replace(" ", ".") if pattern.count(" ") > 1 else pattern):
            assert Run("inspect", text, "-f", fmt).out == Run("inspect", hex(code), "-f", fmt).out
    assert "11110" in Run("inspect", "0.11110").err + Run("inspect", "0.11110").out  # one point: a number


def test_a_folder_for_plots_is_not_made_without_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    Run("reproduce", "--plots", str(tmp_path / "plots")).assert_error("matplotlib")
    assert not (tmp_path / "plots").exists()


def test_version_and_help():
    run = Run("--version")
    assert (run.status, run.out, run.err) == (0, f"softfloat {softfloat.__version__}\n", "")
    for command in ([], ["reproduce"], ["inspect"], ["formats"], ["accumulators"]):
        run = Run(*command, "--help")
        assert run.status == 0
        assert run.out.startswith("usage: softfloat")
        assert run.err == ""


def test_interruption(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(claims, "reproduce", interrupted)
    run = Run("reproduce")
    assert (run.status, run.out, run.err) == (130, "", "")


@pytest.mark.parametrize("arguments", [["inspect", "1"], ["inspect", "1", "--json"], ["formats"], ["accumulators"]])
def test_output_that_nobody_reads(arguments):
    class Closed(io.StringIO):
        def write(self, _):
            raise BrokenPipeError

        flush = close = lambda self: None

    err = io.StringIO()
    with contextlib.redirect_stdout(Closed()), contextlib.redirect_stderr(err):
        assert main(arguments) == 141
    assert err.getvalue() == ""


# -- as a program ----------------------------------------------------------------------------------------------------


def python(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, **options)


def test_as_a_module():
    done = python("-m", "softfloat", "inspect", "-1e-8", "0x3c00")
    assert done.returncode == 0
    assert without_compiling(done.stderr) == ""
    assert python("-m", "softfloat.commands", "inspect", "-1e-8", "0x3c00").stdout == done.stdout
    assert "positiveNormal" in done.stdout
    assert "negativeZero" in done.stdout
    done = python("-m", "softfloat", "inspect", "one", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 2
    assert done.stderr.startswith("softfloat: error: ")
    assert done.stdout == ""


def test_a_terminal_without_the_multiplication_sign():
    done = python("-m", "softfloat", "inspect", "0x3c00", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "2^0 ? (1 + 0/1024)" in done.stdout


def test_the_command_line_is_light_until_it_works():
    heavy = ["numba", "rich", "matplotlib", "mpmath"]
    script = f"import sys, softfloat.commands; softfloat.commands.main(['--version']); print([x for x in {heavy} if x in sys.modules])"
    assert python("-c", script).stdout.splitlines()[-1] == "[]"


def test_the_installed_command_is_main():
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name="softfloat")
    assert entry.load() is main


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_an_error() -> None:
    command = [sys.executable, "-m", "softfloat", "inspect", "0.1", "--json"]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 2
    assert result.stderr.startswith("softfloat: error: cannot write the output")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "said"), [(ZeroDivisionError("by zero"), "Traceback"), (MemoryError(), "not enough memory")]
)
def test_a_mistake_in_the_program_is_no_verdict(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(claims, "reproduce", failing)
    run = Run("reproduce")
    assert (run.status, run.out) == (2, "")
    assert said in run.err


posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX descriptors and signals")


def shell(line: str, *arguments: str) -> subprocess.CompletedProcess:
    """A shell's command line, in which "$@" is the program."""
    command = ["sh", "-c", line, "sh", sys.executable, "-m", "softfloat", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@posix
def test_closed_standard_streams() -> None:
    done = shell('"$@" <&-', "check", "-", "--op", "f16_add")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "softfloat: error: cannot read -: standard input is closed\n"
    done = shell('"$@" >&-', "vectors", "f16_add", "-n", "1")
    assert (done.returncode, done.stderr) == (2, "softfloat: error: standard output is closed\n")
    done = shell('"$@" 2>&-', "vectors", "f16_add", "-n", "3")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3)
    for trouble in ("2>&-", "2>/dev/full" if Path("/dev/full").exists() else "2>&-"):
        done = shell(f'"$@" {trouble}', "check", "no file", "--op", "f16_add")
        assert (done.returncode, done.stdout) == (2, "")


@posix
def test_output_to_pipes(tmp_path: Path) -> None:
    rows = Run("vectors", "f16_add", "-n", "3").out
    Run("vectors", "f16_add", "-o", "").assert_error("file must be a path", "got ''")
    done = shell('"$@" | cat', "vectors", "f16_add", "-n", "3", "-o", "/dev/stdout")
    assert (done.stdout, without_compiling(done.stderr)) == (rows, "")
    pipe, copy = tmp_path / "rows.npz", tmp_path / "copy.npz"
    os.mkfifo(pipe)
    done = shell(f'cat {pipe} > {copy} & "$@"; wait', "vectors", "f16_add", "-n", "3", "-o", str(pipe))
    assert done.stdout == f"3 rows of add float16, nearest_even: {pipe}\n"
    assert sorted(x.name for x in tmp_path.iterdir()) == ["copy.npz", "rows.npz"]
    assert Run("check", str(copy), "--op", "f16_add").status == 0


@posix
@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_leaves_no_temporary_file(name: str, status: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("before", encoding="utf-8")
    command = [sys.executable, "-m", "softfloat", "vectors", "f16_add", "-n", "1_000_000_000", "-o", str(path)]
    number = getattr(signal, name)
    heeds = partial(signal.signal, number, signal.SIG_DFL)  # nohup's children ignore SIGHUP
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heeds
    ) as process:
        try:
            while process.poll() is None and not any(x.stat().st_size for x in tmp_path.iterdir() if x != path):
                time.sleep(0.05)
            process.send_signal(number)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, out, without_compiling(err)) == (status, "", "")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text(encoding="utf-8") == "before"


LOST = """
import ctypes, os, sys
from numba.core.codegen import JITCodeLibrary
from softfloat.commands import main
from softfloat.commands.reproduce import LOOPS
finalize = JITCodeLibrary.finalize
signalled = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), int(sys.argv[1])))
JITCodeLibrary.finalize = lambda library: (finalize(library), signalled())
sys.exit(main(["vectors", "f16_add", "-n", "500", "-o", sys.argv[2]]))
"""


@posix
@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_while_loops_compile_ends_the_command(name: str, status: int, tmp_path: Path) -> None:
    """Handled by a callback of LLVM's, whose exceptions ctypes prints and drops."""
    number = getattr(signal, name)
    heeds = partial(signal.signal, number, signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL)
    process = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    process.pop("NUMBA_DISABLE_JIT", None)
    command = [sys.executable, "-c", LOST, str(int(number)), str(tmp_path / "rows.txt")]
    done = subprocess.run(command, capture_output=True, text=True, env=process, preexec_fn=heeds)
    assert (done.returncode, done.stdout, without_compiling(done.stderr)) == (status, "", "")
    assert [x.name for x in tmp_path.iterdir() if x.name != "cache"] == []


@posix
def test_what_else_handles_signals_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    during = []
    monkeypatch.setattr(claims, "reproduce", lambda *_, **__: during.append(signal.getsignal(signal.SIGTERM)) or 1 / 0)
    before = signal.getsignal(signal.SIGTERM)
    try:
        for handler in (signal.SIG_DFL, signal.SIG_IGN):
            signal.signal(signal.SIGTERM, handler)
            assert Run("reproduce").status == 2
            assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert callable(during[0])
    assert during[1] is signal.SIG_IGN


def test_a_code_is_no_number() -> None:
    with pytest.raises(ValueError, match="is a code"):
        display.inspect_number("0x3c00", "float16")
    assert display.inspect_number(np.float32(0.1), "float16").code == 0x2E66
