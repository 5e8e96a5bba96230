"""Infinities and NaNs among the operands of products: loops that take them against the plain one, in codes, flags and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from faster import SERVED, both, same_counts
from operands import ordinary

import softfloat
from softfloat import Format, bits
from softfloat.accumulators import (
    Accumulator,
    Reduction,
    Stage,
    amp,
    chunked,
    compensated,
    exact,
    fma,
    mul_add,
    pairwise,
    tensor_core,
)
from softfloat.engine import plain

HALF, SINGLE, BRAIN = softfloat.float16, softfloat.float32, softfloat.bfloat16
E5M2, E4M3, E4M3FN = softfloat.float8_e5m2, softfloat.float8_e4m3, softfloat.float8_e4m3fn
DRAWN = {"rounding": "stochastic", "seed": 3}
CASES: list[tuple[Format, Accumulator, dict[str, Any]]] = [
    (HALF, fma(HALF), {}),
    (HALF, fma(HALF), DRAWN),
    (SINGLE, fma(HALF), {"rounding": "nearest_away", "daz": True}),
    (BRAIN, fma(BRAIN), {"rounding": "toward_negative"}),
    (HALF, fma(SINGLE), {"rounding": "to_odd"}),
    (SINGLE, fma(SINGLE), {}),
    (SINGLE, fma(SINGLE), DRAWN),
    (HALF, mul_add(HALF), {"rounding": "toward_positive", "tininess": "before"}),
    (E5M2, mul_add(E5M2), {"overflow": "saturate", "ftz": True}),
    (E4M3FN, mul_add(E4M3FN), {}),
    (SINGLE, mul_add(E4M3), {"rounding": "up_or_down", "seed": 5, "daz": True, "tininess": "before"}),
    (SINGLE, mul_add(SINGLE), {"rounding": "nearest_up"}),
    (HALF, pairwise(HALF), {}),
    (BRAIN, pairwise(BRAIN), {"rounding": "nearest_zero"}),
    (HALF, compensated(HALF, "kahan"), {}),
    (BRAIN, compensated(BRAIN, "neumaier"), {"rounding": "toward_zero"}),
    (SINGLE, compensated(SINGLE, "two_term"), {}),
    (HALF, chunked(4, HALF, SINGLE), {}),
    (HALF, chunked(8, mul_add(BRAIN), HALF), {"rounding": "nearest_away"}),
    (HALF, fma(HALF).replace(segments=8, reduction=(Reduction(Stage(SINGLE), sections=2), Reduction(Stage(HALF)))), {}),
    (BRAIN, fma(BRAIN).replace(chains=3), {}),
    (HALF, tensor_core("H100", HALF), {}),
    (HALF, tensor_core("A100", HALF), {"out_format": HALF}),
    (E4M3FN, tensor_core("H100", E4M3FN), {}),
    (HALF, exact(HALF), {}),
    (HALF, amp("half"), {}),
    (HALF, amp("half"), DRAWN),
    (
        HALF,
        amp("half"),
        {"rounding": "toward_zero", "overflow": "saturate"},
    ),  # infinities are stored as the largest number
    (HALF, fma(HALF), {"nan": "riscv", "overflow": "nan"}),
    (HALF, mul_add(HALF), {"nan": "ipu"}),
    (HALF, fma(HALF), {"nan": "x86_fma3"}),
    (HALF, fma(HALF), {"infinite_input": "nan"}),
]


def spoilt(fmt: Format, shape: tuple[int, int], seed: int, kinds: str, share: float) -> np.ndarray[Any, Any]:
    """Numbers, some of whose sums overflow, with zeros, infinities (+ and -), quiet (q) and signalling (s) NaNs in some places, the last row left."""
    random, codes = np.random.default_rng(seed), ordinary(fmt, shape, seed)
    codes[random.random(shape) < 0.05] = 0
    signalling = (
        fmt.nan_code ^ (3 << fmt.mantissa_bits >> 2) if fmt.nan == "ieee" and fmt.mantissa_bits > 1 else fmt.nan_code
    )
    known = {"q": fmt.nan_code, "s": signalling}
    if fmt.infinities:
        known |= {"+": fmt.inf_code, "-": fmt.inf_code | fmt.sign_bit}
    found = [known[kind] for kind in kinds if kind in known]
    places = random.random(shape) < share
    places[-1:] = False
    if found:
        codes[places] = random.choice(found, np.count_nonzero(places))
    return codes


@pytest.mark.sampled(4)
@pytest.mark.parametrize("count", [False, True], ids=["", "counted"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_codes_flags_and_counts(
    case: tuple[Format, Accumulator, dict[str, Any]], count: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fmt, how, options = case
    for seed, (kinds, share) in enumerate((("+-", 0.02), ("q", 0.01), ("+-qs", 0.02), ("+", 0.0005), ("-s", 0.003))):
        a, b = spoilt(fmt, (34, 64), seed, kinds, share), spoilt(fmt, (40, 64), seed + 9, kinds, share).T
        c = spoilt(how.partials, (34, 40), seed + 19, kinds, share / 9) if seed % 2 else None
        same_counts(both(monkeypatch, lambda a=a, b=b, c=c: bits.matmul(a, b, fmt, how, c, count=count, **options)))
        if not count:
            same_counts(both(monkeypatch, lambda a=a, b=b: bits.vecdot(a, b.T[:34], fmt, how, **options)))


@SERVED
@pytest.mark.parametrize(
    "how",
    [
        fma(HALF),
        mul_add(HALF),
        pairwise(HALF),
        compensated(HALF),
        chunked(4, HALF, SINGLE),
        amp("half"),
        tensor_core("H100", HALF),
    ],
    ids=str,
)
def test_the_plain_loop_is_not_asked(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "run", lambda *arguments: pytest.fail("the plain loop ran"))
    for kinds in ("+-", "q", "+-qs"):
        a, b = spoilt(HALF, (64, 64), 1, kinds, 0.02), spoilt(HALF, (64, 64), 2, kinds, 0.02)
        bits.matmul(a, b, HALF, how)


def test_what_was_rounded_before_the_first_infinity_of_an_output_that_draws() -> None:
    """A product in the sliver below the smallest normal number is tiny, though the sum has overflowed: what turns noted stays."""
    a = np.full((34, 64), 0x3C00, np.uint16)
    a[:, 0], a[:, 40] = 0x5F80, 0x23EA  # 480, which overflows, and 0.01546
    b = np.full((64, 40), 0x3C00, np.uint16)
    a[33, 0] = 0x7E00
    options: dict[str, Any] = {"rounding": "up_or_down", "seed": 5, "tininess": "before"}
    _, flags = bits.matmul(a, b, HALF, mul_add(E4M3), **options)
    assert (flags[:33] == 7).all()


def test_stores_that_zeros_would_round() -> None:
    """A sum that no half holds is stored no more once a NaN has come: nothing was inexact before."""
    a, b = np.full((34, 64), 0x3C00, np.uint16), np.full((64, 40), 0x3C00, np.uint16)
    a[:, 15], a[:, 1] = 0x7E00, 0x0C00
    assert not bits.matmul(a, b, HALF, amp("half"))[1].any()
    assert bits.vecdot(a[0], b[:, 0], HALF, amp("half"))[1] == 0


def test_an_infinite_sum_that_becomes_a_nan_when_it_is_read_again() -> None:
    """Where infinities that are rounded again are NaN, INVALID, a sum that overflowed before a NaN operand came does not go on."""
    a, b = np.full((34, 64), 0x7E, np.uint8), np.full((64, 40), 0x7E, np.uint8)
    a[:, 1] = 0x7F
    assert (bits.matmul(a, b, E4M3FN, fma(E4M3), infinite_input="nan")[1] == 5).all()
    assert bits.vecdot(a[0], b[:, 0], E4M3FN, fma(E4M3), infinite_input="nan")[1] == 5


@pytest.mark.parametrize("how", [fma(HALF), mul_add(HALF), exact(SINGLE), tensor_core("H100", HALF)], ids=str)
def test_infinities_after_a_nan_are_no_invalid_operation(how: Accumulator) -> None:
    """NaN, then inf - inf: a quiet NaN has come before, so that nothing is invalid."""
    a, b = np.full((34, 64), 0x3C00, np.uint16), np.full((64, 40), 0x3C00, np.uint16)
    a[:, 0], a[:, 40], a[:, 50] = 0x7E00, 0x7C00, 0xFC00
    assert not bits.matmul(a, b, HALF, how)[1].any()


def test_a_sum_that_overflowed_before_an_infinity_of_the_other_sign() -> None:
    """65504 + 65504 is infinite, and less infinity NaN: INVALID beside OVERFLOW and INEXACT. Of float32 alike: 8 times 2^125."""
    a, b = np.full((34, 64), 0x7BFF, np.uint16), np.full((64, 40), 0x3C00, np.uint16)
    a[::2, 40] = 0xFC00
    for how in (fma(HALF), mul_add(HALF)):
        assert bits.matmul(a, b, HALF, how)[1].tolist() == [[21] * 40, [5] * 40] * 17
    x, y = np.full((34, 64), 0x7E000000, np.uint32), np.full((64, 40), 0x3F800000, np.uint32)
    x[::2, 40] = 0xFF800000
    for how in (fma(SINGLE), mul_add(SINGLE)):
        assert bits.matmul(x, y, SINGLE, how)[1].tolist() == [[21] * 40, [5] * 40] * 17
