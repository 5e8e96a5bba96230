"""Sums in every layout, by whatever loop serves them, against the plain one: the same codes, flags and counts, whatever the operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tiling_cases
import unit_cases
from covering import Case, over, resolved
from faster import by_threads, same_counts
from unit_cases import E4M3, HALF, SINGLE, drawn

from softfloat import Format, bits
from softfloat.accumulators import Accumulator, Reduction, Stage, arm_fp8dot, chunked, compensated
from softfloat.accumulators.accumulator import ALL
from softfloat.engine import (
    available,
    described,
    elementwise,
    lines,
    plain,
    products,
    segments,
    small,
    stacks,
    unit_ways,
)

CASES = [*tiling_cases.CASES, *tiling_cases.WHOLE, *unit_cases.CASES]
DRAWS: dict[str, Any] = tiling_cases.STOCHASTIC
SEGMENTS = Accumulator(name="segments", running=Stage(HALF), segments=3, reduction=(Reduction(Stage(SINGLE)),))
JOINED: list[Case] = [
    (chunked(5, HALF, SINGLE), HALF, DRAWS),
    (chunked(6, compensated(HALF), SINGLE), HALF, DRAWS),
    (SEGMENTS, HALF, {}),
    (arm_fp8dot(4), E4M3, {"out_format": HALF} | DRAWS),
]
"""Sums that are made of others, and stores that draw."""
LEAST = (described, "LEAST_WORK"), (unit_ways, "LEAST_WORK"), (unit_ways, "LEAST_LINE"), (segments, "WORTH_CALLS")
PIECES = (lines, "PIECE", 1 << 12), (lines, "RECORDED", 1 << 9), (products, "SPREAD", 1 << 10)

Held = Callable[..., bool]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    """held(function, ...): a call, by the short way of small ones and without it, gives what the plain loop does; whether this was not asked
    before. Loops serve however little work there is, in pieces so small that outputs and k are cut."""
    for module, name, number in (*((*x, 0) for x in LEAST), *PIECES):
        monkeypatch.setattr(module, name, number)

    def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> bool:
        asked, run, found = [], plain.run, []
        with monkeypatch.context() as patch:
            patch.setattr(plain, "run", lambda *given: (asked.append(given), run(*given))[1])
            found.append(function(*arguments, **options))
            for name in ("product", "total"):
                patch.setattr(small, name, lambda *_: None)
            found.append(function(*arguments, **options))
            served = not asked
            patch.setattr(elementwise, "FAST", False)
            slow = function(*arguments, **options)
        for quick in found:
            same_counts((quick, slow))
        return served

    return call


def ordinary(how: Accumulator) -> float:
    """A scale of operands whose sums do not overflow."""
    return 1.0 if how.partials.max > 1e3 else 2.0**-3


def goes_plain(how: Accumulator, options: dict[str, Any], counts: bool = False) -> bool:
    """Whether no loop is generated for such sums, nor for any on this CPU; sums of formats of a small range may overflow."""
    flushes = options.get("daz") or options.get("ftz")
    refused = "sr_method" in options or (how.block == ALL and (counts or flushes)) or bool(counts and how.reduction)
    return refused or how.partials.max < 1e3 or not all(available())


def long_enough(how: Accumulator, length: int) -> bool:
    """Whether so many products have as many segments."""
    return not isinstance(how.segments, int) or not 0 < length < how.segments


FEW = [0.0, -0.0, 1.0, -1.0, 1.5, 0.5, -0.5, 4.0, -4.0]


def few_and_wide(fmt: Format) -> list[list[float]]:
    """Numbers of few bits, whose sums tie, cancel and are zero of either sign all the time; and beside them those at the ends of the format."""
    ends = [fmt.max / 64, -fmt.max / 64, -fmt.max, fmt.tiny * 4, fmt.smallest_subnormal, -fmt.smallest_subnormal]
    return [FEW, [*FEW, *ends]]


def encoded(values: Any, fmt: Format) -> np.ndarray[Any, Any]:
    codes: np.ndarray[Any, Any] = bits.encode(np.array(values), fmt, overflow="saturate")[0]
    return codes


def special(fmt: Format) -> list[int]:
    """The largest number, and an infinity and a NaN where the format has them."""
    found: list[int] = encoded([fmt.max, *[np.inf] * bool(fmt.infinities), *[np.nan] * bool(fmt.has_nan)], fmt).tolist()
    return found


@over(CASES, 0)
def test_grids(case: Case, held: Held) -> None:
    how, fmt, options, rng = resolved(case)
    served = []
    for (rows, length, columns), scale in (
        ((9, 65, 19), ordinary(how)),
        ((40, 200, 50), 30.0),
        ((17, 72, 33), 2.0**-13),
        ((17, 65, 33), 1000.0),
        ((5, 7, 8), 2.0**-7),
        ((5, 1, 8), 1.0),
        ((5, 0, 8), 1.0),
    ):
        if not long_enough(how, length):
            continue
        a, b = drawn(rng, fmt, (rows, length), scale), drawn(rng, fmt, (length, columns), scale)
        for c in (None, drawn(rng, how.partials, (rows, columns), scale * scale)):
            served.append(held(bits.matmul, a, b, fmt, how, c, **options))
    assert served[0] or goes_plain(how, options)
    a, b = drawn(rng, fmt, (90, 64), 1.0), drawn(rng, fmt, (64, 70), 1.0)
    same_counts(by_threads(lambda: bits.matmul(a, b, fmt, how, **options)))


@over(CASES, 1)
def test_operands_of_few_bits(case: Case, held: Held) -> None:
    """Sums on either side of the smallest normal number; and those all of whose terms are -0, beside those of numbers that span much."""
    how, fmt, options, rng = resolved(case)
    for values in few_and_wide(fmt):
        known = encoded(values, fmt)
        a, b = rng.choice(known, (12, 70)), rng.choice(known, (70, 17))
        a[3], b[:, 4] = rng.choice(known[:2], 70), rng.choice(known[:2], 70)
        for c in (None, encoded(rng.choice(values, (12, 17)), how.partials)):
            held(bits.matmul, a, b, fmt, how, c, **options)
        held(bits.vecdot, a, b[:, :12].T, fmt, how, **options)
    tiny = np.array([1.0, -1.0, 1.5, -1.5, 4.0, -4.0, 0.0])
    a, b = encoded(rng.choice(FEW, (12, 40)), fmt), encoded(rng.choice(tiny * fmt.tiny, (40, 17)), fmt)
    for c in (None, encoded(rng.choice(tiny * how.partials.tiny / 4, (12, 17)), how.partials)):
        held(bits.matmul, a, b, fmt, how, c, **options)
    a, b = (drawn(rng, fmt, shape, 1.0) & (fmt.sign_bit - 1) for shape in ((9, 33), (33, 18)))
    a[:, 0], b[5] = fmt.max_code, encoded(fmt.smallest_subnormal, fmt)
    a[2], a[5, :16] = fmt.sign_bit, fmt.sign_bit
    for c in (None, np.full((9, 18), how.partials.sign_bit, how.partials.dtype)):
        held(bits.matmul, a, b, fmt, how, c, **options)


@pytest.mark.parametrize("how", [tiling_cases.fma(HALF), tiling_cases.mul_add(HALF)], ids=repr)
def test_a_sum_that_is_read_as_zero(how: Accumulator, held: Held) -> None:
    """2^-15 is subnormal, and with 2^-14 to come the sum is 2^-14 (0x0400), not 1.5 times that."""
    a, b = np.tile(np.array([0x3800, 0x3C00], np.uint16), (40, 1)), np.full((2, 40), 0x0400, np.uint16)
    assert held(bits.matmul, a, b, HALF, how, daz=True) or not all(available())
    assert set(bits.matmul(a, b, HALF, how, daz=True)[0].flat) == {0x0400}


@over(CASES, 2)
def test_lines(case: Case, held: Held) -> None:
    how, fmt, options, rng = resolved(case)
    served = []
    for outputs, length, scale in (
        (150, 65, ordinary(how)),
        (129, 3, 2.0**-13),
        (31, 72, 2.0**-9),
        (3, 200, 1000.0),
        (130, 1, 1.0),
        (2, 0, 1.0),
    ):
        if not long_enough(how, length):
            continue
        a, b = (drawn(rng, fmt, (outputs, length), scale) for _ in range(2))
        c = drawn(rng, how.partials, (outputs,), scale * scale)
        for start in (None, c, np.full_like(c, how.partials.sign_bit)):
            served.append(held(bits.vecdot, a, b, fmt, how, start, **options))
        same_counts(by_threads(lambda a=a, b=b, c=c: bits.vecdot(a, b, fmt, how, c, **options)))
    assert served[0] or goes_plain(how, options)


@over(CASES, 3)
def test_sums_and_vectors(case: Case, held: Held) -> None:
    """One operand for all outputs, products with ones, and one output alone."""
    how, fmt, options, rng = resolved(case)
    served = []
    for rows, length, scale in ((140, 70, ordinary(how)), (9, 8, 30.0), (1, 700, 2.0**-9), (1, 1, 1.0)):
        if not (long_enough(how, length) and long_enough(how, rows)):
            continue
        a, b = drawn(rng, fmt, (rows, length), scale), drawn(rng, fmt, (length, 1), scale)
        c = drawn(rng, how.partials, (rows, 1), 1.0)
        served.append(held(bits.matmul, a, b, fmt, how, c, **options))
        served.append(held(bits.matmul, a, b[:, 0], fmt, how, **options))
        served.append(held(bits.matmul, b[:, 0], a.T.copy(), fmt, how, c[:, 0], **options))
        for axis in (0, 1):
            served.append(held(bits.sum, a, fmt, how, axis, **options))
    assert served[0] or goes_plain(how, options)


@over([*CASES, *JOINED], 4)
def test_batches(case: Case, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together; of any size; one after the other, of which some are left to the plain loop; and flags of all together."""
    how, fmt, options, rng = resolved(case)
    served, shapes = [], ((2, 9, 1, 17), (3, 8, 2, 16), (3, 9, 40, 17), (4, 2, 5, 3), (5, 17, 33, 32))
    for batch, rows, length, columns in shapes[2 if how.segments else 0 :]:
        a, b = drawn(rng, fmt, (batch, rows, length), 1.0), drawn(rng, fmt, (batch, length, columns), 1.0)
        c = drawn(rng, how.partials, (batch, rows, columns), 1.0) if batch == 3 else None
        served.append(held(bits.matmul, a, b, fmt, how, c, **options))
    assert served[0] or goes_plain(how, options)
    same_counts(by_threads(lambda: bits.matmul(a, b, fmt, how, **options)))
    monkeypatch.setattr(stacks, "ROOM", 1)
    a[1, 2, 3], b[3, 4, 5] = special(fmt)[-1], special(fmt)[len(special(fmt)) // 2]
    b[4], a[4] = 0, a[4] | fmt.sign_bit
    held(bits.matmul, a.swapaxes(1, 2).copy().swapaxes(1, 2), b, fmt, how, **options)
    codes, flags = bits.matmul(a, b, fmt, how, **options)
    again, seen = bits.matmul(a, b, fmt, how, flags="any", **options)
    np.testing.assert_array_equal(codes, again)
    assert seen == np.bitwise_or.reduce(flags, axis=None)


def is_summed_one_by_one(how: Accumulator) -> bool:
    return how.block == len(how.order) == 1 and how.store is None and not how.segments


@over([case for case in CASES if is_summed_one_by_one(case[0])], 5)
def test_cumulative_sums(case: Case, held: Held) -> None:
    """In pieces of k, of many outputs and of one."""
    how, fmt, options, rng = resolved(case)
    for shape, scale in (((150, 131), 1.0), ((700,), 2.0**-9), ((3, 90), 30.0), ((1,), 1.0)):
        codes = drawn(rng, fmt, shape, scale)
        held(bits.cumsum, codes, fmt, how, 0, **options)
        held(bits.cumsum, codes, fmt, how, len(shape) - 1, **options)


@over(CASES, 6)
def test_special_operands(case: Case, held: Held) -> None:
    """Infinities, NaNs and the largest numbers at every kind of place, in a, b and c; outputs that they do not go into stay as they are."""
    how, fmt, options, rng = resolved(case)
    for code in special(fmt):
        a, b, x, y = (drawn(rng, fmt, shape, 1.0) for shape in ((20, 40), (40, 24), (300, 33), (300, 33)))
        c, z = drawn(rng, how.partials, (20, 24), 1.0), drawn(rng, how.partials, (300,), 1.0)
        a[0, 0], a[19, 39], b[7, 23] = code, code, code
        x[0, 0], x[299, 32], x[128, 5], y[130:133, 7] = code, code | fmt.sign_bit, code, code
        y[0, 0] = 0
        c[5, 5] = z[201] = encoded(np.nan, how.partials)
        for start in (None, c):
            held(bits.matmul, a, b, fmt, how, start, **options)
        for line in (None, z):
            held(bits.vecdot, x, y, fmt, how, line, **options)
        held(bits.matmul, x, y[131], fmt, how, **options)
        held(bits.sum, x, fmt, how, 1, **options)
    largest = np.full((9, 40), fmt.max_code, fmt.dtype)
    held(bits.matmul, largest, largest.T, fmt, how, **options)


COUNTED: list[Case] = [case for case in [*CASES, *unit_cases.COUNTED, *JOINED] if case[0].name != "segments"]


@over(COUNTED, 7)
def test_counts_of_grids(case: Case, held: Held) -> None:
    how, fmt, options, rng = resolved(case)
    known, served = encoded(few_and_wide(fmt)[1], fmt), []
    for (rows, length, columns), scale in (
        ((9, 65, 19), ordinary(how)),
        ((17, 72, 33), 2.0**-9),
        ((3, 7, 9), 1000.0),
        ((2, 1, 3), 1.0),
        ((2, 0, 2), 1.0),
    ):
        if not long_enough(how, length):
            continue
        a, b = drawn(rng, fmt, (rows, length), scale), drawn(rng, fmt, (length, columns), scale)
        c = drawn(rng, how.partials, (rows, columns), scale * scale)
        for start in (None, c):
            served.append(held(bits.matmul, a, b, fmt, how, start, count=True, **options))
        few = rng.choice(known, a.shape), rng.choice(known, b.shape)
        held(bits.matmul, *few, fmt, how, c, count=True, **options)
    assert served[0] or goes_plain(how, options, counts=True)


@over(COUNTED, 8)
def test_counts_of_lines(case: Case, held: Held) -> None:
    how, fmt, options, rng = resolved(case)
    known, served = encoded(few_and_wide(fmt)[1], fmt), []
    for outputs, length, scale in (
        (150, 70, ordinary(how)),
        (33, 3, 2.0**-13),
        (1, 200, 30.0),
        (4, 1, 2.0**-7),
        (2, 0, 1.0),
    ):
        if not long_enough(how, length):
            continue
        a, b = (drawn(rng, fmt, (outputs, length), scale) for _ in range(2))
        c = drawn(rng, how.partials, (outputs,), scale)
        served.append(held(bits.vecdot, a, b, fmt, how, c, count=True, **options))
        served.append(held(bits.matmul, a, b[0], fmt, how, count=True, **options))
        held(bits.sum, rng.choice(known, a.shape), fmt, how, 1, count=True, **options)
        held(bits.vecdot, rng.choice(known, a.shape), rng.choice(known, a.shape), fmt, how, count=True, **options)
    assert served[0] or goes_plain(how, options, counts=True)
    held(bits.vecdot, a[:0], b[:0], fmt, how, count=True, **options)
