"""One block taken apart, in Python and by the command; block formats compared."""

from __future__ import annotations

from fractions import Fraction

import pytest
from commands import Run

from softfloat import BLOCK_ROSTER, BlockFormat, Format
from softfloat.display import inspect_block
from softfloat.status import Flags


def test_a_block() -> None:
    found = inspect_block(["0.5", "-1.75", "3", "44"], "mxfp4")
    assert (found.rule, found.scale, found.scale_value, found.tensor_scale) == ("floor", 0x82, Fraction(8), None)
    assert found.codes == (0x0, 0x8, 0x1, 0x7)
    assert found.elements == (0.0, -0.0, 0.5, 6.0)
    assert found.values == (0.0, -0.0, 4.0, 48.0)
    assert found.flags[3] == Flags.INEXACT
    assert all(text in found._repr_html_() for text in ("0x82 = 2^3", "mxfp4_e2m1", "44", "INEXACT"))
    tensor = inspect_block(["1", "6"], "nvfp4", "torchao")
    assert tensor.tensor_scale is not None
    assert tensor.scale == 0x7E
    voided = inspect_block(["nan", "1"], "mxfp4")
    assert voided.as_dict()["scale"] == {"code": "0xff", "value": "nan"}
    assert inspect_block(["1.3"], "mxint8", rounding="stochastic", seed=3).rounding == "stochastic"
    with pytest.raises(ValueError, match="has 1 to 16 numbers, got 17"):
        inspect_block(["1"] * 17, "nvfp4")


def test_a_block_whose_scales_have_no_1() -> None:
    far = Format("e5m3_beyond", exponent_bits=5, mantissa_bits=3, bias=40)
    found = inspect_block([str(far.max), "0"], BlockFormat("far", element="float4_e2m1fn", scale=far, block=4))
    assert found.elements == (6.0, 0.0)
    assert found.values == (6 * float(found.scale_value), 0.0)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_command(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    run = Run("inspect", "-f", "mxfp4", "--rule", "rceil", "0.5", "-1.75", "44")
    assert (run.status, run.err) == (0, "")
    assert "0x82 = 2^3, by the rule" in " ".join(run.out.split())
    assert max(map(len, run.out.splitlines())) <= width
    document = Run("inspect", "-f", "nvfp4", "0.5", "3", "--json").document["block"]
    assert (document["format"], document["rule"], len(document["elements"])) == ("nvfp4", "te", 2)
    (element,) = Run("inspect", "-f", "mxfp8_e4m3", "3", "--json").document["block"]["elements"]
    assert element == {"given": "3", "code": "0x7c", "element": "384", "value": "3", "flags": []}


def test_the_command_refuses() -> None:
    Run("inspect", "-f", "mxfp4", "0x3").assert_error("0x3 is a code")
    Run("inspect", "-f", "mxfp4", "1", "--rule", "te").assert_error("rule 'te'")
    Run("inspect", "-f", "mxfp4", "1", "--rule", "fluor").assert_error("unknown scale rule 'fluor'", "floor")
    Run("inspect", "0x3c00", "--rule", "floor").assert_error("--rule is for block formats")


@pytest.mark.parametrize("width", [40, 79, 80, 120])
def test_block_formats_are_compared(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    run = Run("formats", "--format", *BLOCK_ROSTER)
    assert (run.status, run.err) == (0, "")
    assert max(map(len, run.out.splitlines())) <= width
    assert all(name in run.out for name in BLOCK_ROSTER)
    if width >= 80:
        assert run.out.split("nvfp4", 1)[1].split()[:4] == ["16", "4.5", "6", "float4_e2m1fn"]
    document = Run("formats", "-f", "mxint8", "fp4", "nvfp4", "--json").document
    assert [row["name"] for row in document["formats"]] == ["float4_e2m1fn"]
    first, second = document["block_formats"]
    assert (first["element"]["coding"], first["block"], first["tensor_scale"]) == ("twos_complement", 32, None)
    assert (second["element"]["name"], second["scale"], second["tensor_scale"]) == (
        "float4_e2m1fn",
        "float8_e4m3fn",
        "float32",
    )
