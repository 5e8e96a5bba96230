"""Outputs in a line, and small grids that become such, against the plain loop: the same codes, flags and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from covering import Case, label, over, resolved
from faster import SERVED, both_ways
from unit_cases import BF16, CASES, E2M1, E5M2, E5M6, HALF, SINGLE, drawn

from softfloat import Format, bits
from softfloat.accumulators import (
    Accumulator,
    Alignment,
    amd_mfma,
    amp,
    arm_bfdot,
    chunked,
    compensated,
    exact,
    fixed_point,
    fma,
    mul_add,
    pairwise,
    tensor_core,
)
from softfloat.engine import lines, plain, products, small, unit_ways
from softfloat.engine.unit_ways import UnitWay

DRAWS = {"rounding": "stochastic", "seed": 3}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Which calls of a unit's loop for lines did what they were asked, however little work there is."""
    monkeypatch.setattr(unit_ways, "LEAST_LINE", 0)
    monkeypatch.setattr(small, "product", lambda *_: None)
    monkeypatch.setattr(small, "total", lambda *_: None)
    found: list[bool] = []
    run = lines.run

    def watched(line: Any, planned: Any, way: Any, *rest: Any) -> Any:
        done = run(line, planned, way, *rest)
        if isinstance(way, UnitWay) or way.compensates:
            found.append(done is not None)
        return done

    monkeypatch.setattr(lines, "run", watched)
    return found


PANEL, PANELS = 128, 12
"""Outputs that lines look at together, at most, and how many times."""


def far_apart(rng: np.random.Generator, fmt: Format, length: int) -> np.ndarray[Any, Any]:
    """Panels of numbers of one or two magnitudes each, from one end of the format to the other."""
    ends = np.linspace(fmt.emin - fmt.mantissa_bits + 1, fmt.emax, 9).astype(int)
    shape = PANEL, length
    powers = np.concatenate([rng.choice(rng.choice(ends, rng.integers(1, 3)), shape) for _ in range(PANELS)])
    x = np.ldexp(rng.uniform(1, 2, powers.shape) * rng.choice([-1.0, 1.0], powers.shape), powers)
    x = np.where(rng.random(x.shape) < 0.2, 0.0, x)
    codes: np.ndarray[Any, Any] = bits.encode(x, fmt, overflow="saturate")[0]
    return codes


ENDS: list[Case] = [
    *CASES,
    (tensor_core("B200", E2M1, instruction="mxf4nvf4").replace(alignment=Alignment(3, group=2)), E2M1, {}),
    (fixed_point(40, -24, cut="toward_zero"), BF16, {}),
    (exact(SINGLE).replace(block=4), SINGLE, {}),
]


@pytest.mark.parametrize("count", [False, True])
@over(ENDS, 2)
def test_ends_of_what_is_served(case: Case, count: bool, served: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs whose operands, sums and c lie as far apart as formats allow, a panel at a time."""
    accumulator, fmt, options, rng = resolved(case)
    monkeypatch.setattr(lines, "PIECE", 1)
    a, b = far_apart(rng, fmt, 32), far_apart(rng, fmt, 32)
    zeros = rng.random(a.shape) < 0.3  # beside large numbers; others are small
    large = bits.encode(fmt.max / 4, fmt)[0]
    x = np.where(zeros, 0, bits.encode(fmt.tiny, fmt)[0] + 1).astype(fmt.dtype)
    y = np.where(zeros, large, bits.encode(fmt.tiny * 4, fmt)[0] + 1).astype(fmt.dtype)
    c = far_apart(rng, accumulator.partials, 1)[:, 0]
    for one, other in ((a, b), (x, y)):
        both_ways(monkeypatch, bits.vecdot, one, other, fmt, accumulator, c, count=count, **options)
        both_ways(monkeypatch, bits.vecdot, one, other, fmt, accumulator, count=count, **options)
    assert any(served) or count or accumulator.partials.max < 1e3


NEAR_ENDS: list[Case] = [
    (arm_bfdot(), BF16, {}),
    (amd_mfma("CDNA2", BF16), BF16, {}),
    *(
        (compensated(SINGLE, "two_term"), BF16, {"rounding": mode})
        for mode in ("nearest_even", "toward_zero", "to_odd")
    ),
    *((compensated("tfloat32"), "tfloat32", {"rounding": mode}) for mode in ("nearest_even", "toward_positive")),
    *((compensated(E5M6, "neumaier"), BF16, {"rounding": mode}) for mode in ("nearest_even", "to_odd")),
]


@pytest.mark.parametrize("count", [False, True])
@pytest.mark.parametrize("case", NEAR_ENDS, ids=label)
def test_sums_near_the_ends_of_the_carrier(
    case: Case, count: bool, served: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums that overflow in float32, though no product does; products whose quanta do; and those with bits below its normal numbers."""
    accumulator, fmt, options, rng = resolved(case)
    for first, second in ((62, 62), (63, 61), (55, 54), (30, 30), (-40, -40), (-55, -54), (-60, -62)):
        signs = rng.choice([-1.0, 1.0], (2, 40, 12))
        a, b = (
            bits.encode(rng.uniform(1, 1.99, (40, 12)) * sign * 2.0**power, fmt)[0]
            for sign, power in zip(signs, (first, second), strict=True)
        )
        both_ways(monkeypatch, bits.vecdot, a, b, fmt, accumulator, count=count, **options)
        both_ways(monkeypatch, bits.matmul, a, b.T, fmt, accumulator, count=count, **options)
        positive = (x & (fmt.sign_bit - 1) for x in (a, b))
        both_ways(monkeypatch, bits.vecdot, *positive, fmt, accumulator, count=count, **options)
    assert any(served)


def test_exact_sums_of_more_bits_than_steps_put_together(served: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """2^120 + 2^60 + 2^-20 - 2^120 is 2^60 (0x5D800000), and inexact."""
    fmt, how = Format.from_name(BF16), exact(SINGLE).replace(block=5)
    block = [2.0**60, 2.0**30, 2.0**-10, 0.0, -(2.0**60)]
    a = np.tile(bits.encode([*block, 0.0], fmt)[0], (70, 1))
    b = a & (fmt.sign_bit - 1)
    both_ways(monkeypatch, bits.vecdot, a, b, fmt, how)
    codes, flags = bits.vecdot(a, b, fmt, how)
    assert (set(codes.tolist()), set(flags.tolist())) == ({0x5D800000}, {1})
    assert served


@pytest.mark.parametrize("fmt", [HALF, E5M2, BF16, SINGLE])
@pytest.mark.parametrize("method", ["kahan", "neumaier", "two_term"])
def test_compensated_sums_that_overflow(
    fmt: str, method: str, served: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some outputs of a line, at its start, in the middle or at the end; what comes after is not what the method says."""
    how, kind, rng = compensated(fmt, method), Format.from_name(fmt), np.random.default_rng(25)
    codes = drawn(rng, kind, (100, 30), 1.0)
    for row, places in ((0, [0, 1]), (37, [5, 29]), (99, [28, 29]), (64, [0, 1, 2])):
        codes[row, places] = kind.max_code
    for overflow in ("infinity", "saturate"):
        both_ways(monkeypatch, bits.sum, codes, fmt, how, 1, overflow=overflow)
        both_ways(monkeypatch, bits.cumsum, codes, fmt, how, 1, overflow=overflow)
    assert any(served)


# -- small grids -------------------------------------------------------------------------------------------------------


@SERVED
@pytest.mark.parametrize("options", [{}, DRAWS], ids=str)
def test_a_sum_of_a_grid_that_overflows_is_done_again_alone(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, run, rng = [], plain.run, np.random.default_rng(32)
    monkeypatch.setattr(unit_ways, "LEAST_WORK", 0)
    a, b = (drawn(rng, Format.from_name(HALF), (70, 70), 0.01) for _ in range(2))
    a[3], b[:, 5] = bits.encode(200.0, HALF)[0], bits.encode(200.0, HALF)[0]
    with monkeypatch.context() as patch:
        patch.setattr(plain, "run", lambda problem, *rest: (asked.append(problem.b.shape[1]), run(problem, *rest)))
        bits.matmul(a, b, HALF, compensated(HALF), **options)
    assert asked == [1]
    both_ways(monkeypatch, bits.matmul, a, b, HALF, compensated(HALF), **options)


@pytest.mark.parametrize("options", [{}, DRAWS, {**DRAWS, "count": True}, {"daz": True, "count": True}], ids=str)
@pytest.mark.parametrize(
    "how", [chunked(6, compensated(HALF), SINGLE), compensated(SINGLE, "neumaier"), pairwise(HALF)], ids=repr
)
def test_grids_of_few_columns(how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As many outputs side by side as the plain loop takes, some rows at a time, whatever serves them."""
    monkeypatch.setattr(products, "SPREAD", 700)
    monkeypatch.setattr(unit_ways, "LEAST_LINE", 0)
    monkeypatch.setattr(unit_ways, "LEAST_WORK", 0)
    rng, fmt = np.random.default_rng(31), Format.from_name(HALF)
    for columns in (1, 3, products.NARROW - 1, products.NARROW):
        a, b = drawn(rng, fmt, (50, 21), 1.0), drawn(rng, fmt, (21, columns), 1.0)
        c = drawn(rng, how.partials, (50, columns), 1.0)
        both_ways(monkeypatch, bits.matmul, a, b, fmt, how, c, **options)
        a[7, 3] = bits.encode(np.inf, fmt)[0]
        both_ways(monkeypatch, bits.matmul, np.stack([a, a[::-1]]), np.stack([b, b]), fmt, how, **options)


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("options", [{}, DRAWS, {"count": True}], ids=str)
@pytest.mark.parametrize("how", [compensated(HALF), mul_add(HALF), fma(HALF).replace(chains=2)], ids=repr)
def test_convolutions_of_few_windows(
    how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Grids whose outputs lie apart among those of the call."""
    rng, fmt = np.random.default_rng(28), Format.from_name(HALF)
    inputs, weights = drawn(rng, fmt, (2, 5, 6, 4), 1.0), drawn(rng, fmt, (2, 3, 2, 6), 1.0)
    channels_first = inputs.transpose(0, 3, 1, 2), weights.transpose(3, 2, 0, 1)
    for layout, x, w in (("NHWC", inputs, weights), ("NCHW", *channels_first)):
        both_ways(monkeypatch, bits.conv2d, x, w, HALF, how, groups=2, layout=layout, **options)


@SERVED
def test_small_grids_are_served(served: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of them is left to the plain loop, but that of an output with an infinity."""
    run, asked = plain.run, []

    def watched(problem: Any, *rest: Any) -> None:
        asked.append(problem.b.shape[1])
        run(problem, *rest)

    monkeypatch.setattr(plain, "run", watched)
    a, b = np.full((3, 5, 19), 0x3C00, np.uint16), np.full((3, 19, 7), 0x3555, np.uint16)
    for how in (compensated(HALF), chunked(5, HALF, SINGLE), pairwise(HALF), amp("half", mode="aligned")):
        bits.matmul(a, b, HALF, how)
        bits.matmul(a[0], b[0], HALF, how)
    bits.matmul(a, b, HALF, fma(HALF), count=True)
    assert not asked
    a[1, 2, 3] = 0x7C00
    bits.matmul(a, b, HALF, compensated(HALF))
    assert asked == [7]
    assert any(served)
