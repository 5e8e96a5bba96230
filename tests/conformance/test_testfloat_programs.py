"""Berkeley TestFloat's own programs, float64 and the command line: they check its rows of level 1, and it checks theirs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from commands import Run

MODES = ("near_even", "near_maxMag", "minMag", "min", "max", "odd")
TO_INTEGERS = tuple(f"f64_to_{kind}" for kind in ("ui32", "ui64", "i32", "i64"))
FROM_INTEGERS = tuple(f"{kind}_to_f64" for kind in ("ui32", "ui64", "i32", "i64"))
ONE_MODE = tuple(f"f64_{name}" for name in ("rem", "eq", "le", "lt", "eq_signaling", "le_quiet", "lt_quiet"))
WIDENING = "f16_to_f64", "f32_to_f64"
TINY = "f64_mul", "f64_to_f16", "f64_to_f32", "f64_mulAdd"
"""Functions to which it matters when tininess is looked for."""
ROUNDING = "f64_add", "f64_sub", "f64_div", "f64_sqrt", *TINY[:3], *FROM_INTEGERS
WHOLE = "f64_roundToInt", *TO_INTEGERS


@pytest.fixture
def programs() -> Path:
    """The folder of testfloat_gen and testfloat_ver, made with SoftFloat's usual specialization, 8086-SSE."""
    folder = os.environ.get("TESTFLOAT")
    if not folder:
        pytest.skip("TESTFLOAT names no folder of TestFloat's programs")
    return Path(folder)


def assert_both_ways(programs: Path, folder: Path, function: str, mode: str, *, tininess: str, exact: bool) -> None:
    """Rows of either side are right to the other, codes of NaNs and flags included."""
    theirs, ours = folder / "theirs.txt", folder / "ours.txt"
    told = [f"-r{mode}", f"-tininess{tininess}", "-exact" if exact else "-notexact"]
    options = ["--rounding", mode, "--tininess", tininess, "--nan-policy", "x86", *["--exact"] * exact]
    with theirs.open("wb") as file:
        subprocess.run([programs / "testfloat_gen", "-level", "1", *told, function], stdout=file, check=True)
    assert theirs.stat().st_size
    checked = Run("check", str(theirs), "--op", function, *options)
    assert checked.status == 0, (function, mode, tininess, exact, checked.out)
    assert Run("vectors", function, *options, "--level", "1", "-o", str(ours)).status == 0
    with ours.open("rb") as file:
        found = subprocess.run(
            [programs / "testfloat_ver", *told, function], stdin=file, capture_output=True, text=True
        )
    assert found.returncode == 0, (function, mode, tininess, exact, found.stdout[-1000:])


@pytest.mark.parametrize("function", [*ONE_MODE, *WIDENING])
def test_functions_that_round_nothing(programs: Path, tmp_path: Path, function: str) -> None:
    assert_both_ways(programs, tmp_path, function, "near_even", tininess="after", exact=False)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", ROUNDING)
def test_functions_that_round(programs: Path, tmp_path: Path, function: str, mode: str) -> None:
    for tininess in ("after", "before") if function in TINY else ("after",):
        assert_both_ways(programs, tmp_path, function, mode, tininess=tininess, exact=False)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", WHOLE)
def test_functions_that_round_to_integers(programs: Path, tmp_path: Path, function: str, mode: str) -> None:
    for exact in (False, True):
        assert_both_ways(programs, tmp_path, function, mode, tininess="after", exact=exact)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", MODES)
def test_fused(programs: Path, tmp_path: Path, mode: str) -> None:
    """Six million rows each way."""
    for tininess in ("after", "before"):
        assert_both_ways(programs, tmp_path, "f64_mulAdd", mode, tininess=tininess, exact=False)
