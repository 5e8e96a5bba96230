"""What rows of operations on blocks reach: bins against exact fractions, and proofs that no row is in a bin."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Run

from softfloat import BLOCK_ROSTER, bits
from softfloat.accumulators import exact, tensor_core
from softfloat.reference import dequantize_block
from softfloat.testing.vectors.block_measures import SPREADS, block_dimensions, measure_blocks
from softfloat.testing.vectors.coverage import Coverage
from softfloat.testing.vectors.distributions import draw_operands
from softfloat.testing.vectors.operations import Case, resolve

FP4 = tensor_core("B200", "float4_e2m1fn", instruction="mxf4nvf4")
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("block_scale", "mxfp4", {}),
    ("block_scale", "nvfp4", {}),
    ("block_scale", "mxfp8_e4m3", {"rule": "rceil"}),
    ("block_quantize", "mxfp4", {}),
    ("block_quantize", "mxfp8_e5m2", {}),
    ("block_quantize", "nvfp4", {"tensor_scale": 0.5}),
    ("block_quantize", "mxint8", {}),
    ("block_dequantize", "mxfp4", {}),
    ("block_dequantize", "nvfp4", {}),
    ("block_dequantize", "mxint8", {}),
    ("block_vecdot", "mxfp4", {"accumulator": exact("float32"), "length": 64}),
    ("block_vecdot", "nvfp4", {"accumulator": FP4, "length": 64}),
]


def label(case: Case, operands: list[Any], name: str) -> str:
    """The bin of the only row."""
    dimension = next(x for x in block_dimensions(case) if x.name == name)
    place = int(measure_blocks(case, operands, *case.run(operands))[name][0])
    return dimension.bins[place] if place >= 0 else "none"


@pytest.mark.parametrize("name", ["mxfp4_e2m1", "mxfp6_e3m2", "mxint8"])
def test_ties_of_elements(name: str) -> None:
    """How x / scale lies between two elements, by fractions."""
    fmt = BLOCK_ROSTER[name]
    case = resolve("block_quantize", name)
    known = sorted({Fraction(v) for v in dequantize_block(range(1 << fmt.element.bits), 127, fmt) if v >= 0})
    random = np.random.default_rng(1)
    middles = [(a + b) / 2 for a, b in itertools.pairwise(known)]
    aims = [*known, *middles, *(m + Fraction(s, 2**18) for m in middles for s in (-1, 1))]
    scales = random.integers(60, 200, len(aims))
    x = np.array([math.ldexp(float(v), int(s) - 127) for v, s in zip(aims, scales, strict=True)], np.float32)
    operands = [x.view(np.uint32), scales.astype(np.uint8)]
    found = measure_blocks(case, operands, *case.run(operands))["rounding"]
    bins = next(d.bins for d in block_dimensions(case) if d.name == "rounding")
    for value, place in zip(aims, found.tolist(), strict=True):
        if value == 0 or value > known[-1]:
            continue
        low = max(v for v in known if v <= value)
        high = min((v for v in known if v > value), default=low)
        middle, odd = (low + high) / 2, known.index(low) % 2
        wanted = "exact" if value == low else "below half" if value < middle else "above half"
        wanted = f"tie, {'odd' if odd else 'even'}" if value == middle and value != low else wanted
        assert bins[place] == wanted, value


@pytest.mark.parametrize(
    ("x", "scale", "wanted"),
    [(0.0, 127, "zero"), (0.25, 127, "became zero"), (0.5, 127, "subnormal"), (1.0, 127, "normal"), (6.0, 127, "largest"),
     (7.5, 127, "saturated"), (math.nan, 127, "NaN"), (1.0, 255, "scale NaN"), (math.inf, 127, "largest"), (2.0, 128, "normal")],
)  # fmt: skip
def test_what_becomes_of_an_element(x: float, scale: int, wanted: str) -> None:
    operands = [np.float32([x]).view(np.uint32), np.array([scale], np.uint8)]
    assert label(resolve("block_quantize", "mxfp4"), operands, "element") == wanted


@pytest.mark.parametrize(
    ("largest", "significand", "place"),
    [(4.0, "power of two", 0), (6.0, "largest element", 31), (np.nextafter(np.float32(4), 0, dtype=np.float32), "next below a power", 5),
     (np.nextafter(np.float32(6), 9, dtype=np.float32), "next above it", 0), (np.float32(4) + np.float32(2.0**-21), "next above a power", 3),
     (5.0, "other", 31)],
)  # fmt: skip
def test_the_largest_of_a_block(largest: float, significand: str, place: int) -> None:
    x = np.full((1, 32), 0.5, np.float32)
    x[0, place] = -np.float32(largest)
    case, operands = resolve("block_scale", "mxfp4"), [x.view(np.uint32)]
    assert label(case, operands, "significand of the largest") == significand
    assert label(case, operands, "place of the largest") == (
        "first" if place == 0 else "last" if place == 31 else "inside"
    )
    assert label(case, operands, "largest") == "normal"
    field = bits.quantize(x, "mxfp4")[0].scales[0, 0]
    assert label(case, operands, "exponent field of the scale") == str(field)


@pytest.mark.parametrize(("scales", "wanted"), [((127, 127), "0"), ((127, 128), "1"), ((120, 127), "2 to 7"), ((100, 120), "8 to 23"),
                                                ((1, 250), "24 and more"), ((255, 255), "none")])  # fmt: skip
def test_exponents_between_blocks(scales: tuple[int, int], wanted: str) -> None:
    case = resolve("block_vecdot", "mxfp4", accumulator=exact("float32"), length=64)
    one = np.full((1, 64), 2, np.uint8)
    operands = [one, one, np.array([scales], np.uint8), np.full((1, 2), 127, np.uint8)]
    assert label(case, operands, "exponents between blocks") == wanted
    assert wanted in (*SPREADS, "none")
    assert label(case, operands, "scales of a") == ("a NaN" if 255 in scales else "all ordinary")


@pytest.mark.parametrize(("operation", "fmt", "more"), CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_what_is_called_unreachable_is_not_reached(operation: str, fmt: str, more: dict[str, Any]) -> None:
    """Whatever rows are drawn; and of scales and elements the rest is reached."""
    case = resolve(operation, fmt, **more)
    coverage = Coverage(case)
    for name in ("bits", "normal", "corners"):
        operands = draw_operands(case, name, 400, 3)
        coverage.add(operands, *case.run(operands))
    reasons: dict[tuple[str, str], str] = {}
    for dimension in coverage.dimensions:
        for place, bin_ in enumerate(dimension.bins):
            reason = coverage.reason(dimension.name, bin_)
            if reason:
                reasons[dimension.name, bin_] = reason
                assert not coverage.counts[dimension.name][place], (dimension.name, bin_, reason)
    assert reasons or (operation, fmt) == ("block_scale", "nvfp4")
    if operation == "block_vecdot":
        return
    coverage.fill()
    left = {x.name: coverage.fillable(x.name) for x in coverage.dimensions}
    assert not any(left.values()), left


def test_the_command(tmp_path: Path) -> None:
    """Rows of level 2 reach every bin that can be reached; some rows do not."""
    file = tmp_path / "rows.txt"
    for level, status in (("2", 0), (None, 1)):
        more = ["--level", level] if level else ["--count", "50"]
        assert Run("vectors", "block_dequantize", "--format", "mxfp4", "--output", str(file), *more).status == 0
        found = Run("coverage", str(file), "--op", "block_dequantize", "--format", "mxfp4")
        assert found.status == status
        assert "exponent field of the scale" in found.out
