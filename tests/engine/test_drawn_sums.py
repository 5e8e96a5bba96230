"""Sums in pairs and exact ones, rounded stochastically: the faster ways against the plain loop, to the bit and the flag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import faster
import numpy as np
import pytest
from softfloat.kernels.spec import CARRIER64, Rule
from tiling_cases import SERVED
from unit_cases import drawn

from softfloat import Environment, Format, Position, Rounding, bits, engine, get_num_threads, set_num_threads
from softfloat.accumulators import Accumulator, exact, pairwise
from softfloat.engine import lines, plain, small

STOCHASTIC: dict[str, Any] = {"rounding": "stochastic", "seed": 7}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"sr_bits": 5, "overflow": "saturate"},
    {"sr_bits": 16, "tininess": "before"},
    {"environment": Environment(**STOCHASTIC, sr_bits=20, overflow="nan", nan="x86", replica=3)},
    {"sr_bits": 9, "sr_method": "half"},
    {"seed": 2**63 + 1, "stream": 2**40 + 5, "out_format": "float8_e5m2"},
]
EXACT = [
    (exact("float16"), "float16"),
    (exact("bfloat16"), "float16"),
    (exact("float32"), "float16"),
    (exact("float32"), "float32"),
    (exact("float8_e4m3fn"), "float8_e5m2"),
]


def both_ways(*arguments: Any, function: Any = bits.matmul, **options: Any) -> Any:
    """The faster way's result, which is the plain loop's."""
    options = options if "environment" in options else STOCHASTIC | options
    with pytest.MonkeyPatch.context() as patch:
        for name in ("product", "total"):
            patch.setattr(small, name, lambda *_: None)
        return faster.both_ways(patch, function, *arguments, **options)


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = get_num_threads()
    set_num_threads(request.param)
    yield request.param
    set_num_threads(before)


PAIRS = [
    (pairwise("float16"), "float16"),
    (pairwise("bfloat16"), "bfloat16"),
    (pairwise("float8_e5m2"), "float16"),
    (pairwise("float8_e4m3fn"), "float8_e4m3fn"),
    (pairwise(Format("e5m6", exponent_bits=5, mantissa_bits=6)), "float16"),
    (pairwise("float32"), "float16"),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("how", "name"), EXACT + PAIRS, ids=str)
def test_sums(how: Accumulator, name: str, options: dict[str, Any]) -> None:
    """Grids and lines of odd sizes, with c and without; overflows, tiny sums."""
    fmt = Format.from_name(name)
    rng = np.random.default_rng(len(str(options)))
    for outputs, length, scale in (
        (5, 7, 1.0),
        (150, 67, 2.0**-6),
        (3, 1, 300.0),
        (2, 43, 2.0**-12),
        (4, 0, 1.0),
        (9, 80, 30.0),
    ):
        a, b = (drawn(rng, fmt, (outputs, length), scale) for _ in range(2))
        c = drawn(rng, how.partials, (outputs,), scale)
        both_ways(a, b, fmt, how, function=bits.vecdot, **options)
        both_ways(a, b, fmt, how, c, function=bits.vecdot, **options)
        both_ways(a[-37:], b.T, fmt, how, c, **options)
        both_ways(a, fmt, how, 1, function=bits.sum, **options)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("flushes", [{}, {"daz": True}, {"ftz": True, "sr_bits": 5}], ids=str)
@pytest.mark.parametrize("name", ["float16", "float8_e5m2", "float8_e4m3fnuz", "tfloat32"])
def test_sums_that_are_flushed(name: str, flushes: dict[str, Any]) -> None:
    """Leaves and sums on either side of the smallest normal number, and where there is one zero only."""
    fmt, rng = Format.from_name(name), np.random.default_rng(5)
    for length, scale in ((67, 1.0), (33, 4.0), (1, 0.5), (8, 0.25)):
        x = rng.standard_normal((40, length)) * (scale * float(fmt.tiny) ** 0.5)
        a = bits.encode(np.where(rng.random(x.shape) < 0.2, 0, x), fmt)[0]
        tiny = bits.encode(rng.integers(-5, 6, (40, length)) * float(fmt.tiny) / 4, fmt)[0]
        c = tiny[:, 0].copy()
        both_ways(a, a, fmt, pairwise(fmt), c, function=bits.vecdot, **flushes)
        both_ways(a, a.T, fmt, pairwise(fmt), **flushes)
        both_ways(tiny, fmt, pairwise(fmt), 1, function=bits.sum, **flushes)


def test_exact_sums_whose_terms_cancel() -> None:
    """All that is left is the smallest term, or nothing; sums far below the others' last bits."""
    rng = np.random.default_rng(8)
    a, b = (
        rng.integers(0, 0x7C00, (20, 40), dtype=np.uint16) | rng.integers(0, 2, (20, 40), dtype=np.uint16) << 15
        for _ in "ab"
    )
    for how in (exact("float16"), exact("float32")):
        for more in (0, 1):
            x, y = np.hstack([a, a ^ 0x8000, a[:, :more]]), np.hstack([b, b, b[:, :more]])
            both_ways(x, y, "float16", how, function=bits.vecdot)
            both_ways(x, y.T, "float16", how)


@pytest.mark.parametrize("how", [exact("float16"), pairwise("float16")], ids=repr)
def test_blocks_of_a_larger_result(how: Accumulator) -> None:
    """A block draws what the whole draws there, by both ways."""
    rng = np.random.default_rng(3)
    a, b = drawn(rng, how.partials, (40, 37), 1.0), drawn(rng, how.partials, (37, 50), 1.0)
    whole = both_ways(a, b, "float16", how)
    for rows, columns in ((slice(3, 29), slice(5, 44)), (slice(7, 8), slice(0, 50)), (slice(0, 40), slice(9, 10))):
        position = Position((rows.start, columns.start), (40, 50))
        block = both_ways(a[rows], b[:, columns], "float16", how, position=position)
        for one, other in zip(block, whole, strict=True):
            np.testing.assert_array_equal(one, other[rows, columns])


@pytest.mark.parametrize("how", [exact("float16"), pairwise("float16")], ids=repr)
def test_threads(how: Accumulator, threads: int) -> None:
    rng = np.random.default_rng(4)
    a, b = drawn(rng, how.partials, (90, 70), 1.0), drawn(rng, how.partials, (70, 130), 1.0)
    both_ways(a, b, "float16", how)
    both_ways(np.tile(a, (20, 1)), np.tile(a, (20, 1)), "float16", how, function=bits.vecdot)


def test_lines_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of a larger result, some outputs at a time."""
    monkeypatch.setattr(lines, "PIECE", 1)
    rng, fmt = np.random.default_rng(5), Format.from_name("float16")
    a, b = (bits.encode(rng.standard_normal(shape), fmt)[0] for shape in ((300, 19), (19, 1)))
    both_ways(a, b, fmt, pairwise(fmt), position=Position((2, 3), (310, 7)))
    both_ways(a, fmt, pairwise(fmt), 1, function=bits.sum)


@pytest.mark.parametrize("special", [0x7C00, 0xFC00, 0x7E01, 0x7C01])
@pytest.mark.parametrize("how", [exact("float16"), pairwise("float16")], ids=repr)
def test_specials(how: Accumulator, special: int) -> None:
    """Infinities and NaNs among operands and in c."""
    rng, fmt = np.random.default_rng(6), Format.from_name("float16")
    a, b, c = (drawn(rng, fmt, shape, 1.0) for shape in ((20, 19), (19, 30), (20, 30)))
    for place in ((0, 0), (7, 18)):
        x = a.copy()
        x[place] = special
        both_ways(x, b, fmt, how)
        both_ways(x, b[:, :1], fmt, how)
        both_ways(x, fmt, how, 1, function=bits.sum)
    c[3, 4] = special
    both_ways(a, b, fmt, how, c)


@pytest.mark.parametrize("share", [2**52 - 1, 2**52 - 3, 2**52 - 2**40])
@pytest.mark.parametrize("side", [-1, 0, 1])
def test_a_tree_settles_what_the_carrier_hides(share: int, side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 and just what the random number takes to round up, or a little less or more."""
    from softfloat.kernels.carrier import source_of
    from softfloat.kernels.rounding import target_of
    from softfloat.kernels.sums import whole

    fmt = Format.from_name("bfloat16")
    numbers = engine.numbers(fmt.spec, fmt.spec, Rule(rounding=Rounding.STOCHASTIC), CARRIER64)
    monkeypatch.setattr(whole, "dot_low", lambda *address: share % 2**36)
    y = (2**52 - share) * 2.0**-52 * fmt.eps * (1 + side * fmt.eps)
    source, target = source_of(*numbers), target_of(*numbers)
    found, flags = whole.sum_again(1.0, y, share >> 36, 0, 0, source, target, 52, 0, 0)
    assert (found, flags) == (1 + fmt.eps * (side >= 0), 1)


@SERVED
@pytest.mark.parametrize(
    "how", [exact("float16"), exact("float32"), pairwise("float16"), pairwise("bfloat16")], ids=repr
)
def test_served(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that silently went the plain way would test nothing."""
    monkeypatch.setattr(plain, "run", None)
    a = drawn(np.random.default_rng(1), Format.from_name("float16"), (130, 30), 1.0)
    bits.matmul(a, a.T, "float16", how, **STOCHASTIC)
    bits.vecdot(a, a, "float16", how, **STOCHASTIC)
    bits.sum(a, "float16", how, 1, **STOCHASTIC)
