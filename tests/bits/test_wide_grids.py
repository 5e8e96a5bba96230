"""Sums in wide formats by the loops that are generated, in grids and of few outputs, against sums one operation after another by integers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from covering import Case, over, resolved
from faster import SERVED, both, same, same_counts

from softfloat import Accumulator, Format, bits, float64
from softfloat.accumulators import chunked, compensated, exact, fma, mul_add, pairwise
from softfloat.engine import wide_sums

MODES = (
    "nearest_even", "nearest_away", "nearest_zero", "nearest_up", "toward_zero", "toward_positive", "toward_negative", "to_odd",
)  # fmt: skip
DRAWS: list[dict[str, Any]] = [
    {"rounding": "stochastic", "seed": 7, "sr_bits": 52},
    {"rounding": "stochastic", "seed": 7, "sr_bits": 4},
    {"rounding": "up_or_down", "seed": 7},
]
LONG, LONGEST, SHORT, CLIPPED, SMALL = (
    Format(f"e{exponent}m{fraction}", exponent, fraction)
    for exponent, fraction in ((11, 40), (11, 51), (11, 10), (9, 52), (8, 30))
)
"""Others than float64: between that and half, a bit shorter than that, as short as half, of fewer exponents."""
HOW = [
    fma(float64),
    mul_add(float64),
    pairwise(float64),
    *(compensated(float64, method) for method in ("kahan", "neumaier", "two_term")),
    exact(float64),
    *(fma(fmt) for fmt in (LONG, LONGEST, CLIPPED)),
    *(mul_add(fmt) for fmt in (LONGEST, SHORT)),
    pairwise(CLIPPED),
    compensated(SMALL),
    compensated(LONGEST, "neumaier"),
    compensated(LONG, "two_term"),
    exact(LONGEST),
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"rounding": "toward_negative", "ftz": True, "daz": True},
    {"overflow": "saturate"},
]
JOINED = [
    *(chunked(7, fmt, fmt) for fmt in (float64, LONG)),
    *(fma(fmt).replace(name="chains", chains=3) for fmt in (float64, CLIPPED)),
]
CASES: list[Case] = [
    (how, how.partials, given) for how in [*HOW, *JOINED] for given in (*({"rounding": mode} for mode in MODES), *DRAWS)
]
SHAPES = [((9, 23, 11), 1.0), ((2, 3, 40, 10), 2.0**200), ((17, 5, 8), 2.0**-200)]


def codes_of(values: np.ndarray, fmt: Format) -> np.ndarray:
    codes: np.ndarray = bits.encode(values, fmt)[0]
    return codes


def operands(
    shape: tuple[int, ...], scale: float, seed: int, fmt: Format = float64
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers whose sums are exact, tied, cancelled, or anything; and what they begin with."""
    random, scale = np.random.default_rng(seed), scale if fmt.exponent_bits > 8 else scale**0.1
    *many, rows, length, columns = shape
    a, b = random.standard_normal((*many, rows, length)), random.standard_normal((*many, length, columns))
    a[..., 0, :], b[..., 0] = np.round(a[..., 0, :] * 8), np.round(b[..., 0] * 8)
    tied = 2.0 ** random.integers(-fmt.p - 1, 2, (*many, length)) * random.choice([-1.0, 1.0], (*many, length))
    a[..., 1, :], b[..., 1] = tied, 2.0 ** random.integers(-1, 2, (*many, length))
    a[..., 2, 1::2] = -a[..., 2, : length // 2 * 2 : 2]
    b[..., 1::2, 2] = b[..., : length // 2 * 2 : 2, 2]
    start = np.round(random.standard_normal((*many, rows, columns)) * 4)
    return tuple(codes_of(x, fmt) for x in (a * scale, b * scale, start * scale**2))


@over(CASES, 0)
def test_same_bits_flags_and_counts(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four random bits many meet a fraction of as many exactly, which the first sixteen leave open."""
    how, fmt, options, _ = resolved(case)
    for seed, (shape, scale) in enumerate(SHAPES):
        a, b, c = operands(shape, scale, seed, fmt)
        given = options | ({"stream": seed} if "seed" in options else {"daz": seed == 1})
        for start in (None, c):
            product = partial(bits.matmul, a, b, fmt, how, start, **given)
            same(both(monkeypatch, product))
            if len(shape) == 3:
                same_counts(both(monkeypatch, partial(product, count=True)))
        same(both(monkeypatch, partial(bits.sum, a, fmt, how, -1, **given)))


@pytest.mark.parametrize(
    "how", [fma(float64), mul_add(float64), pairwise(float64), fma(SHORT), fma(LONG), pairwise(CLIPPED)], ids=repr
)
def test_random_bits_after_the_first_sixteen_decide(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    fmt = how.partials
    a, b = (codes_of(random.standard_normal(shape), fmt) for shape in ((96, 128), (128, 96)))
    found = both(monkeypatch, partial(bits.matmul, a, b, fmt, how, rounding="stochastic", seed=1, sr_bits=52))
    same(found)
    fewer, _ = bits.matmul(a, b, fmt, how, rounding="stochastic", seed=1, sr_bits=16)
    assert (fewer != found[0][0]).any()


LINES = {"one": 1, "few": 5, "many": 150}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("outputs", LINES.values(), ids=LINES)
@over(CASES, 1)
def test_outputs_in_a_line(case: Case, outputs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with operands of its own, or with one for all; sums so far; counts; infinity and 2^-1060 in some of them."""
    how, fmt, given, _ = resolved(case)
    a, b, c = operands((outputs + 2, 40, outputs + 2), 1.0, outputs, fmt)
    a, b, start = a[:outputs], b.T[:outputs].copy(), c[0, :outputs]
    plain, odd = (a, b), (a.copy(), b.copy())
    odd[0][0, 3], odd[1][-1, 30] = codes_of(np.array(np.inf), fmt), 5
    for x, y in (plain, odd):
        for begins in (None, start):
            same(both(monkeypatch, partial(bits.vecdot, x, y, fmt, how, begins, **given)))
        same(both(monkeypatch, partial(bits.matmul, x, y[0], fmt, how, **given)))
        if how.block == 1:
            same(both(monkeypatch, partial(bits.cumsum, x, fmt, how, 1, **given)))
    same_counts(both(monkeypatch, partial(bits.vecdot, *plain, fmt, how, start, count=True, **given)))


@pytest.mark.parametrize(("rounding", "fmt"), [("nearest_even", float64), ("to_odd", float64), ("nearest_even", LONG)])
def test_few_long_sums_in_pairs(rounding: str, fmt: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole subtrees side by side, and what is left."""
    a, b, c = operands((3, 6000, 3), 1.0, 12, fmt)
    given: dict[str, Any] = {"rounding": rounding}
    product = partial(bits.vecdot, a, b.T.copy(), fmt, pairwise(fmt), c[0], **given)
    same(both(monkeypatch, product))
    if fmt == float64:  # of others the way that is held against takes long
        same_counts(both(monkeypatch, partial(product, count=True)))
        same(both(monkeypatch, partial(bits.sum, a, fmt, pairwise(fmt), 1, **given)))


@pytest.mark.parametrize("rounding", MODES)
def test_exact_sums_of_several_parts(rounding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left when large products cancel, in the second and third part; ties that a last bit decides; sums that no three numbers hold."""
    random = np.random.default_rng(11)
    for spread in (0, 30, 60, 100, 200):
        a = random.standard_normal((20, 30)) * 2.0 ** random.integers(-spread, spread + 1, (20, 30))
        b = random.standard_normal((30, 9))
        a[:, 15:], b[15:] = -a[:, :15], b[:15]
        a[10:, 29] *= 1 + 2.0**-52
        a[15:, 14], b[14] = 2.0 ** random.integers(-160, -50, 5), 1.0
        b[:, 4], b[15:, 4] = 1.0, 0.0
        a[:3, :3] = [[1, 2.0**-53, 2.0**-140], [1, 2.0**-53, -(2.0**-140)], [-1, -(2.0**-53), 0]]
        a[:3, 3:15] = 0.0
        x, y = a.view(np.uint64), b.view(np.uint64)
        same(both(monkeypatch, partial(bits.matmul, x, y, float64, exact(float64), rounding=rounding)))
        same(both(monkeypatch, partial(bits.matmul, x, y[:, 4], float64, exact(float64), rounding=rounding)))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("how", HOW, ids=repr)
def test_numbers_beyond_what_loops_serve(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """In operands, or in what sums begin with; in all products of a batch, or in one."""
    fmt = how.partials
    a, b, c = operands((3, 5, 9, 10), 1.0, 4, fmt)
    for odd in (
        fmt.smallest_subnormal * 3,
        2.0 ** (fmt.emin // 2),
        2.0 ** (fmt.emax * 3 // 5),
        fmt.max,
        np.inf,
        -np.inf,
        np.nan,
    ):
        for place in range(3):
            x = [z.copy() for z in (a, b, c)]
            x[place][1, 2, 3] = codes_of(np.array(odd), fmt)
            for options in OPTIONS:
                for of_one in (x, [z[1] for z in x]):
                    same(both(monkeypatch, partial(bits.matmul, *of_one[:2], fmt, how, of_one[2], **options)))


def test_operands_and_outputs_of_other_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among them one of 16 bits whose numbers float32 has not: its codes once were read as numbers; and calls of a few numbers."""
    short, random = Format("e11m4", 11, 4), np.random.default_rng(8)
    x, y = random.standard_normal((12, 30)), random.standard_normal((30, 9))
    for first, second, out in (
        (short, "float16", float64),
        (LONG, "float32", float64),
        ("float16", float64, "float16"),
        (float64, LONG, LONG),
        (float64, float64, LONG),
    ):
        a, b = bits.encode(x, first)[0], bits.encode(y, second)[0]
        for options in OPTIONS:
            for how in (fma(float64), mul_add(float64), fma(LONG), mul_add("bfloat16")):
                given: dict[str, Any] = options | {"out_format": out}
                for rows in (12, 1):
                    same(both(monkeypatch, partial(bits.matmul, a[:rows], b, (first, second), how, **given)))
                same(both(monkeypatch, partial(bits.sum, a[:1], first, how, 0, **given)))


@SERVED
@over(CASES, 2)
def test_ordinary_numbers_are_served(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no integers are asked: of one product, whatever its size, of many, and of few outputs."""
    how, fmt, given, _ = resolved(case)

    def refused(*_: Any) -> None:
        raise AssertionError("a sum was done one operation after another")

    drawn_exactly = how.block > 1 and "seed" in given  # by the long accumulator
    if how in HOW and not drawn_exactly:  # others are joined from several
        monkeypatch.setattr(wide_sums, "_sum", refused)
    random = np.random.default_rng(1)
    for shape in ((3, 4), (60, 70), *[(2, 5, 6)] * (how.compensation is None or "seed" not in given)):
        a = codes_of(random.standard_normal(shape), fmt)
        bits.matmul(a, a.swapaxes(-1, -2).copy(), fmt, how, **given)
    bits.vecdot(a[0], a[0], fmt, how, **given)
