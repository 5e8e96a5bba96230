"""Long sums against NumPy's own arithmetic, and against what error analysis says of them."""

import dataclasses
import math

import numpy as np
import pytest

from softfloat import bits
from softfloat.accumulators import amp, chunked
from softfloat.experiments import accumulation
from softfloat.formats import float16

LONG = 2**16
U16, U32 = 2.0**-11, 2.0**-24


def drawn(seed, *shapes):
    """The numbers that an experiment draws from this seed."""
    rng = np.random.default_rng(seed)
    return [rng.integers(1, 2**11, shape, endpoint=True) / 2**11 for shape in shapes]


def fused_sums(products):
    """Running sums in half, axis 0 after axis 0: float64 holds a half and a product of halves without rounding."""
    sums = np.empty_like(products)
    total = np.zeros(products.shape[1:], np.float16)
    for k, product in enumerate(products):
        total = (total.astype(np.float64) + product).astype(np.float16)
        sums[k] = total
    return sums


# -- dot products ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dots():
    rows = accumulation.dot_swamping([2**10, 2**13, LONG], dots=2)
    return {(row.accumulator, row.length): row for row in rows}


def test_half_partials_stall_and_float_partials_do_not(dots):
    half, single = dots["amp('float16')", LONG], dots["amp('float32')", LONG]
    assert half.error > 0.2
    assert half.swamped > 0.3
    assert single.error < 1e-5
    assert single.swamped == 0
    assert dots["amp('float16')", 2**10].error < 4e-3
    assert dots["fma('float16')", LONG].error > 0.9  # stalls at 2048, of about 21 845
    assert dots["fma('float16')", LONG].swamped > 0.9


def test_multiply_adds_in_half_are_numpys(dots):
    (x,) = drawn(0, (2, LONG))
    squares = (x * x).T
    sums = fused_sums(squares)
    unchanged = np.diff(sums, axis=0, prepend=0) == 0
    for length in (2**10, 2**13, LONG):
        exact = squares[:length].sum(axis=0)
        row = dots["fma('float16')", length]
        assert row.error == pytest.approx(abs(sums[length - 1] / exact - 1).mean(), rel=1e-12)
        assert row.swamped == unchanged[:length].mean()


def test_half_partials_are_numpys(dots):
    (x,) = drawn(0, (2, LONG))
    groups = (x * x).reshape(2, -1, 4, 4).sum(axis=3)  # exact: multiples of 2^-22 below 2^2
    partial, unchanged = np.zeros(2, np.float16), []
    for phases in groups.transpose(1, 2, 0):
        total = partial.astype(np.float32)
        for phase in phases:
            total = (total.astype(np.float64) + phase).astype(np.float32)
        following = total.astype(np.float16)
        unchanged.append(following == partial)
        partial = following
    row = dots["amp('float16')", LONG]
    assert row.error == pytest.approx(abs(partial / (x * x).sum(axis=1) - 1).mean(), rel=1e-12)
    assert row.swamped == np.mean(unchanged)


def test_partials_one_group_at_a_time_make_the_whole():
    (x,) = drawn(3, (4, 100))
    codes, _ = bits.encode(x, float16)
    partial = np.zeros(4, np.uint16)
    for start in range(0, 100, 16):
        group = codes[:, start : start + 16]
        partial, _ = bits.vecdot(group, group, float16, amp("half"), partial)
    assert partial.tolist() == bits.vecdot(codes, codes, float16, amp("half"))[0].tolist()


# -- chunks ----------------------------------------------------------------------------------------------------------


def test_errors_over_chunk_sizes_are_u_shaped():
    rows = accumulation.chunking(LONG, [1, 4, 16, 64, 256, 1024, 4096, LONG], dots=2)
    half = [row.error for row in rows if row.outer == "float16"]
    least = half.index(min(half))
    assert rows[least].chunk in (64, 256)
    assert half[least] < 5e-3
    assert half[0] > 0.5
    assert half[-1] > 0.5
    assert half[:4] == sorted(half[:4], reverse=True)
    assert half[4:] == sorted(half[4:])
    single = [row.error for row in rows if row.outer == "float32"]
    assert single[0] < 1e-4
    assert single[-1] == half[-1]  # a single chunk is summed in half either way


def test_chunks_are_numpys():
    x, y = drawn(5, (3, 4096), (3, 4096))
    inner = fused_sums((x * y).reshape(3, 64, 64).transpose(2, 0, 1))[-1]
    outer = fused_sums(inner.T)[-1]
    (row,) = (row for row in accumulation.chunking(4096, [64], seed=5, dots=3) if row.outer == "float16")
    assert row.error == pytest.approx(abs(outer / (x * y).sum(axis=1) - 1).mean(), rel=1e-12)
    codes = [bits.encode(z, float16)[0] for z in (x, y)]
    result, _ = bits.vecdot(*codes, float16, chunked(64, "float16", "float16"))
    assert bits.decode(result, float16).tolist() == outer.tolist()


def test_chunks_by_default_are_the_powers_of_two():
    rows = accumulation.chunking(100, dots=1)
    assert [row.chunk for row in rows if row.outer == "float16"] == [1, 2, 4, 8, 16, 32, 64]


# -- block multiply-adds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_errors_stay_within_their_bounds(seed):
    rows = accumulation.block_fma_bounds([16, 100, 2**12, 2**14], seed=seed, dots=8)
    assert all(row.holds for row in rows)
    half, rounded, single = (rows[i : i + 4] for i in (0, 4, 8))
    assert [row.bound for row in half] == [row.length * U16 for row in half]
    assert [row.bound for row in single] == [2.5 * row.length * U32 for row in single]
    assert [row.bound for row in rounded] == [U16 + row.bound for row in single]
    for one, other in zip(half[2:], rounded[2:], strict=True):
        assert one.error > other.bound
    assert all(row.error > U16 / 8 for row in rounded)
    assert all(row.error > 0 for row in single)


def test_a_bound_counts_products_that_fill_a_block():
    rows = accumulation.block_fma_bounds([5], dots=1)
    assert [row.bound for row in rows] == [5 * U16, U16 + 20 * U32, 20 * U32]


# -- stochastic sums -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sums():
    return accumulation.stochastic_sums(runs=32, seed=1)


@pytest.mark.parametrize(("name", "unit"), [("float16", U16), ("bfloat16", 2.0**-8)])
def test_stochastic_errors_grow_as_the_root(sums, name, unit):
    rows = [row for row in sums if (row.format, row.rounding) == (name, "stochastic")]
    assert all(row.bound == unit * math.sqrt(row.length) for row in rows)
    assert all(row.holds for row in rows)
    growing = [row for row in rows if row.length <= 1 / unit]
    slope, _ = np.polyfit(np.log([row.length for row in growing]), np.log([row.error for row in growing]), 1)
    assert 0.3 < slope < 0.65
    assert all(row.error > 0.1 * row.bound for row in growing)


@pytest.mark.parametrize(("name", "unit"), [("float16", U16), ("bfloat16", 2.0**-8)])
def test_sums_to_nearest_stall(sums, name, unit):
    rows = [row for row in sums if (row.format, row.rounding) == (name, "nearest_even")]
    assert all(row.bound == unit * row.length for row in rows)
    assert all(row.holds for row in rows)
    stochastic = {row.length: row for row in sums if (row.format, row.rounding) == (name, "stochastic")}
    stalled = [row for row in rows if row.length >= 4 / unit]
    assert len(stalled) >= 3
    assert all(row.error > 0.45 > 8 * stochastic[row.length].error for row in stalled)
    assert all(row.error > row.length**0.5 * unit for row in stalled if row.length < LONG)


def test_sums_to_nearest_are_numpys(sums):
    (numbers,) = drawn(1, (LONG, 32))
    found = fused_sums(numbers)
    exact = np.cumsum(numbers, axis=0)
    for row in sums[: len(accumulation.LENGTHS)]:
        errors = found[row.length - 1] / exact[row.length - 1] - 1
        assert row.error == pytest.approx(math.sqrt((errors**2).mean()), rel=1e-12)


# -- all of it -------------------------------------------------------------------------------------------------------


def test_a_seed_decides():
    first, again, other = (
        (
            accumulation.dot_swamping([64], seed=seed, dots=2),
            accumulation.chunking(64, [8], seed=seed, dots=2),
            accumulation.block_fma_bounds([64], seed=seed, dots=2),
            accumulation.stochastic_sums([64], seed=seed, runs=2),
        )
        for seed in (7, 7, 8)
    )
    assert first == again
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_broken_bounds_are_counted(sums):
    blocks = accumulation.block_fma_bounds([16], dots=1)
    assert accumulation.Accumulation((), (), blocks, sums).broken == 0
    worse = dataclasses.replace(sums[0], error=1.01 * sums[0].bound)
    nothing = dataclasses.replace(blocks[0], error=math.nan)
    assert accumulation.Accumulation((), (), (nothing, *blocks[1:]), (worse, *sums[1:])).broken == 2


@pytest.mark.parametrize("lengths", [[], [0], [16, -1]])
def test_what_lengths_may_be(lengths):
    for experiment in (accumulation.dot_swamping, accumulation.block_fma_bounds, accumulation.stochastic_sums):
        with pytest.raises(ValueError, match="lengths must be positive"):
            experiment(lengths)
    with pytest.raises(ValueError, match="chunks must be positive"):
        accumulation.chunking(64, lengths)
