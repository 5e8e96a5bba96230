"""Ends of what the faster loops over tiles serve, against the plain one: overflows, tiny sums, wide formats, operands that once gave other bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiling_cases import DIRECTED, E8M5, STOCHASTIC, both_ways, counted_both_ways, encoded
from unit_cases import drawn

from softfloat import Format, bits
from softfloat.accumulators import (
    Accumulator,
    Stage,
    amp,
    chunked,
    exact,
    fma,
    mul_add,
    pairwise,
    tensor_core,
)
from softfloat.engine import elementwise


@pytest.mark.sampled(4)
@pytest.mark.parametrize("overflow", ["infinity", "saturate", "nan"])
@pytest.mark.parametrize("rounding", [*DIRECTED, "stochastic"])
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16"), fma("bfloat16"), fma("float32")], ids=repr)
def test_overflows_on_the_way(how: Accumulator, rounding: str, overflow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums beyond the largest number, which products of the other sign follow; next to it, where half a unit decides; and all of them again.

    In one product, whose tiles are whole or not, and in many.
    """
    fmt, rng = how.partials, np.random.default_rng(4)
    options: dict[str, Any] = {"rounding": rounding, "overflow": overflow} | (
        STOCHASTIC if rounding == "stochastic" else {}
    )
    size = 2.0 ** ((fmt.emax - 2) // 2)
    x = rng.choice([size, size / 2, -size, 1.0, 1.5, -1.0], (3, 24, 40))
    y = rng.choice([size, size / 2, size * (2 - fmt.eps), 2.0, 1.0], (3, 40, 48))
    a, b = encoded(x, fmt.name), encoded(y, fmt.name)
    end = encoded(np.full((24, 48), fmt.max), fmt.name)
    for part, c in ((slice(1), end), (slice(1), None), (slice(2, 3), None)):
        for rows, columns in ((24, 48), (17, 33)):
            start = None if c is None else c[:rows, :columns]
            both_ways(monkeypatch, a[part][0, :rows], b[part][0, :, :columns], fmt, how, start, **options)
    both_ways(monkeypatch, a, b, fmt, how, **options)
    both_ways(monkeypatch, a[:, :9], b[:, :, :20], fmt, how, **options)
    just = encoded([[fmt.max, 2.0**fmt.emax * fmt.eps, -(2.0**fmt.emax) * fmt.eps / 2, fmt.max, -fmt.max]], fmt.name)
    both_ways(
        monkeypatch, np.repeat(just, 16, 0), encoded(rng.choice([1.0, 0.5], (5, 16)), fmt.name), fmt, how, **options
    )


@pytest.mark.parametrize("overflow", ["infinity", "saturate", "nan"])
@pytest.mark.parametrize("how", [fma("float16"), mul_add("bfloat16"), fma("float32")], ids=repr)
def test_flags_of_all_outputs_of_a_batch(how: Accumulator, overflow: str) -> None:
    """Those of each together: of whole tiles and others, exact or not, with infinities, NaN or none."""
    fmt, rng = how.partials, np.random.default_rng(3)
    large = 2.0 ** ((fmt.emax - 1) // 2)
    for rows, columns in ((16, 32), (9, 20)):
        for x in (np.ones((96, 24, 40)), rng.standard_normal((96, 24, 40)), np.full((96, 24, 40), large)):
            x[1:] = rng.choice([1.0, -1.0], (95, 24, 40))
            a = encoded(x[:, :rows], fmt.name)
            b = encoded(np.repeat(np.abs(x[:, :1, :, None]), columns, 3)[:, 0], fmt.name)
            each = bits.matmul(a, b, fmt, how, overflow=overflow)
            seen = bits.matmul(a, b, fmt, how, overflow=overflow, flags="any")
            np.testing.assert_array_equal(each[0], seen[0])
            assert int(seen[1]) == np.bitwise_or.reduce(each[1], axis=None)


@pytest.mark.parametrize("rounding", [*DIRECTED, "stochastic"])
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16")], ids=repr)
def test_sums_just_below_the_smallest_normal_half(
    how: Accumulator, rounding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0x03FF and its neighbours, and products of a few quarters of 2^-24, after a sum that is inexact."""
    rng = np.random.default_rng(2)
    quarters = rng.integers(-9, 10, (16, 200)) * 2.0**-13
    first, last = np.full((16, 1), 1 + 2.0**-10), np.full((16, 1), -1 - 2.0**-10)
    a = np.concatenate((first, last, quarters), 1)
    b = np.concatenate((first, first, np.full((16, 200), 2.0**-13)), 1).T
    start = rng.integers(0x03F0, 0x0402, (16, 16)).astype(np.uint16)
    options: dict[str, Any] = {"rounding": rounding} | (STOCHASTIC if rounding == "stochastic" else {})
    for tininess in ("after", "before"):
        both_ways(monkeypatch, encoded(a), encoded(b), "float16", how, start, tininess=tininess, **options)
        middle = encoded(a[:, 2:]), encoded(b[2:])
        both_ways(monkeypatch, *middle, "float16", how, start, tininess=tininess, **options)


@pytest.mark.parametrize("rounding", [*DIRECTED, "stochastic"])
def test_inexact_products_alone(rounding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is added to +0, or to the sum that the product makes even: only the product is inexact."""
    rng = np.random.default_rng(1)
    options: dict[str, Any] = {"rounding": rounding} | (STOCHASTIC if rounding == "stochastic" else {})
    a, b = (encoded(rng.standard_normal(shape), "float32") for shape in ((16, 1), (1, 32)))
    for how in (mul_add("float32"), fma("float32")):
        both_ways(monkeypatch, a, b, "float32", how, **options)
        counted_both_ways(monkeypatch, a, b, "float32", how, **options)
    assert (bits.matmul(a, b, "float32", mul_add("float32"), **options)[1] & 1).any()


@pytest.mark.parametrize("name", ["float8_e4m3fnuz", "float8_e5m2fnuz", "binary8p4sf"])
def test_formats_without_a_negative_zero(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that vanish from below, where every mode has its zero: of numbers that cancel, and of tiny ones."""
    rng, fmt = np.random.default_rng(5), Format.from_name(name)
    few = [1.0, -1.0, 0.0, 1.125, -1.125, fmt.smallest_subnormal, -fmt.smallest_subnormal, 0.5, -0.25, fmt.tiny]
    a, b = (encoded(rng.choice(few, shape), name) for shape in ((16, 64), (64, 32)))
    for how in (fma(name), mul_add(name)):
        for rounding in DIRECTED:
            both_ways(monkeypatch, a, b, name, how, rounding=rounding)
        for width in (6, 16, 20):
            both_ways(monkeypatch, a, b, name, how, **STOCHASTIC | {"sr_bits": width})


@pytest.mark.parametrize("options", [{}, {"rounding": "toward_zero"}, {"overflow": "saturate"}, STOCHASTIC], ids=str)
@pytest.mark.parametrize("fmt", [Format.from_name("tfloat32"), E8M5], ids=str)
def test_sums_of_wide_formats_at_the_ends_of_what_is_served(
    fmt: Format, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    for exponent in (-126, -96, -63, -47, 29, 30, 31, 52, 53, 54, 60, 63):
        for beside in (0, exponent, -exponent):
            a, b = (
                bits.encode(rng.standard_normal(shape) * 2.0**power, fmt, overflow="saturate")[0]
                for shape, power in (((9, 33), exponent), ((33, 17), beside))
            )
            for how in (fma(fmt), mul_add(fmt)):
                both_ways(monkeypatch, a, b, fmt, how, **options)


@pytest.mark.parametrize("options", [{}, {"rounding": "toward_positive"}, STOCHASTIC], ids=str)
@pytest.mark.parametrize("fmt", [Format.from_name("tfloat32"), E8M5], ids=str)
def test_sums_that_begin_far_beyond_their_products(
    fmt: Format, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """2^117 + 1 in tfloat32 (0x3D000) is 2^117, and inexact: once it was exact, as 2^23 quanta beside it are infinite."""
    rng = np.random.default_rng(19)
    a, b = (encoded(rng.standard_normal(shape)) for shape in ((9, 33), (33, 17)))
    for exponent in (57, 60, 61, 95, 105, 117, 125):
        c = bits.encode(rng.standard_normal((9, 17)) * 2.0**exponent, fmt, overflow="saturate")[0]
        for how in (fma(fmt), mul_add(fmt), pairwise(fmt)):
            both_ways(monkeypatch, a, b, "float16", how, c, **options)
    far = bits.encode([[2.0**117]], fmt)[0]
    codes, flags = bits.matmul(encoded([[1.0]]), encoded([[1.0]]), "float16", fma(fmt), far)
    assert (codes[0, 0], flags[0, 0]) == (far[0, 0], 1)


@pytest.mark.parametrize("rounding", DIRECTED)
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16")], ids=repr)
def test_products_of_the_smallest_halves(how: Accumulator, rounding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """2^-48 and its neighbours (0x0001 and 0x8001, 0x0002, 0x0003), alone and beside 2^-14 (0x0400), after sums that are inexact."""
    rng = np.random.default_rng(6)
    tiny = rng.choice(np.array([0x0001, 0x8001, 0x0002, 0x0003, 0x8002, 0x0000], np.uint16), (16, 30))
    small_ = np.where(rng.random((16, 30)) < 0.1, 0x0400, tiny)
    first, last = encoded(np.full((16, 1), 1 + 2.0**-10)), encoded(np.full((16, 1), -1 - 2.0**-10))
    for a in (tiny, small_):
        both_ways(monkeypatch, a, a.T, "float16", how, rounding=rounding)
        beside = np.concatenate((first, first, a, last, a), 1)
        other = np.concatenate((first, last, a, first, a), 1)
        both_ways(monkeypatch, beside, other.T, "float16", how, rounding=rounding)


def test_formats_that_float32_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny numbers times large ones: the products are ordinary."""
    tiny = Format("e8m3_tiny", exponent_bits=8, mantissa_bits=3, bias=170)
    small = np.arange(1, 200, dtype=np.uint16).reshape(1, -1).astype(tiny.dtype)
    big = np.full((199, 40), 0x7A00, np.uint16)  # bfloat16
    for how in (fma("float16"), fma("float32"), amp("half").replace(inputs=())):
        both_ways(monkeypatch, small, big, (tiny, "bfloat16"), how)
        both_ways(monkeypatch, np.repeat(small, 3, 0), big.T[:3], (tiny, "bfloat16"), how, function=bits.vecdot)
    wide = Format("e8m11_tiny", exponent_bits=8, mantissa_bits=11, bias=190)
    x = bits.encode(2.0**-175 * np.arange(1, 141), wide)[0].reshape(2, 7, 10)
    y = bits.encode(2.0**110 * np.arange(1, 141), "bfloat16")[0].reshape(2, 10, 7)
    both_ways(monkeypatch, x[0], y[0].T, (wide, "bfloat16"), fma("float32"), function=bits.vecdot)
    both_ways(monkeypatch, x, y, (wide, "bfloat16"), fma("float32"))


@pytest.mark.parametrize("overflow", ["infinity", "saturate", "nan"])
@pytest.mark.parametrize("exponent", [60, 62, 63, 64])
def test_sums_in_single_near_its_end(overflow: str, exponent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a = encoded(np.full((16, 40), 1.5 * 2.0**exponent), "bfloat16")
    for how in (fma("float32"), mul_add("float32")):
        both_ways(monkeypatch, a, a.T, "bfloat16", how, overflow=overflow)


@pytest.mark.parametrize("overflow", ["infinity", "saturate"])
@pytest.mark.parametrize("exponent", [50, 52, 54, 60, 62])
@pytest.mark.parametrize("fmt", ["float8_e5m2", "float8_e4m3fn", "float16"])
def test_sums_too_large_for_quanta_of_their_own(
    fmt: str, exponent: int, overflow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2^54 * 2^53 (0x5A80 * 0x5A00) in e5m2 is infinity, 0x7C, and no NaN: 2^23 quanta of 2^107 are one."""
    a, b = encoded([[2.0**exponent, -1.0]], "bfloat16"), encoded([[2.0**53], [1.0]], "bfloat16")
    for how in (fma(fmt), mul_add(fmt)):
        both_ways(monkeypatch, a, b, "bfloat16", how, overflow=overflow)
    assert bits.matmul(a, b, "bfloat16", fma("float8_e5m2"))[0].tolist() == [[0x7C]]


@pytest.mark.parametrize(
    "how", [amp("half"), amp("float"), tensor_core("H100"), tensor_core("H100", output="float16")], ids=repr
)
def test_an_exact_zero_is_positive(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """-0 (0x8000) and products of -1 and +0; and a half partial that underflows to -0 first."""
    a, b = encoded([[-1.0] * 32]), encoded(np.zeros((32, 1)))
    start = np.full((1, 1), how.partials.sign_bit, how.partials.dtype)
    both_ways(monkeypatch, a, b, "float16", how, start)
    assert bits.matmul(a, b, "float16", how, start)[0].tolist() == [[0]]
    a[0, 0], b[0, 0] = encoded([-(2.0**-13), 2.0**-13])
    both_ways(monkeypatch, a, b, "float16", how)


@pytest.mark.parametrize("tininess", ["before", "after"])
@pytest.mark.parametrize("width", [5, 16, 20, 52])
def test_sums_that_float32_rounds_to_the_smallest_normal_number(
    width: int, tininess: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2^-14 - 2^-48 (0x0400 and the product of 0x0001 and 0x8001) is tiny before rounding."""
    a, b = encoded(np.full((1, 1), 2.0**-24)), encoded(np.full((1, 64), -(2.0**-24)))
    start = np.full((1, 64), 0x0400, np.uint16)
    drawn_: dict[str, Any] = {"rounding": "stochastic", "seed": 1, "sr_bits": width, "tininess": tininess}
    both_ways(monkeypatch, a, b, "float16", fma("float16"), start, **drawn_)
    both_ways(monkeypatch, a, -b.astype(np.int64) & 0x7FFF, "float16", fma("float16"), start, **drawn_)


def test_unpacked_and_unsigned_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    cut: dict[str, Any] = {"rounding": "toward_zero", "overflow": "infinity", "always_infinite": True}
    unpacked = Accumulator(name="u", running=Stage("float32", **cut), block=1, fraction_bits=2, unpacked="float16")
    one = np.ones((1, 1), np.uint8)
    both_ways(monkeypatch, one, one, "float8_e4m3fn", unpacked)
    assert bits.matmul(one, one, "float8_e4m3fn", unpacked)[0].tolist() == [[0x36800000]]
    unsigned = Format("u8m7", exponent_bits=8, mantissa_bits=7, signed=False)
    how = Accumulator(name="v", running=Stage(unsigned, **cut), block=4, fraction_bits=25)
    both_ways(monkeypatch, encoded([[-1.0] * 4]), encoded(np.ones((4, 1))), "float16", how)


@pytest.mark.parametrize("options", [{"overflow": "saturate"}, {"rounding": "toward_zero"}], ids=str)
@pytest.mark.parametrize("name", ["float16", "float8_e4m3fn"])
def test_the_largest_number_beside_larger_products(
    name: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products of 2^90 overflow to the largest number, whose last bit lies far below theirs; then they cancel."""
    fmt = Format.from_name(name)
    a = encoded([[2.0**60] * 4 + [-(2.0**60), 2.0**60, 0, 0]], "bfloat16")
    b = encoded([[2.0**30]] * 8, "bfloat16")
    how = Accumulator(name="b", running=Stage(name), block=4)
    codes, flags = bits.matmul(a, b, "bfloat16", how, **options)
    assert (codes.tolist(), flags.tolist()) == ([[fmt.max_code]], [[5]])
    single = Stage("float32", overflow="infinity", rounding="nearest_even")
    stored = Accumulator(name="s", running=single, block=4, store=Stage("float16"), store_every=4, order=(0, 1, 2, 3))
    both_ways(monkeypatch, a, b, "bfloat16", stored, **options)
    assert bits.matmul(a, b, "bfloat16", stored, overflow="saturate")[0].tolist() == [[0x7BFF]]


@pytest.mark.parametrize("place", [4, 20, 40, 100, 300])
@pytest.mark.parametrize("how", [amp("float", out_format="float32"), exact("float32")], ids=repr)
def test_bits_that_float64_would_lose(how: Accumulator, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """32 + 2^-19 is a tie of float32, which 2^-48 breaks, one bit beyond float64: of one block, long before, or what sums begin with.

    So is 8 + 2^-21, where a bit is lost only beside products that cancel.
    """
    large, half, little = (32.0, 1.0), (2.0**-19, 1.0), (2.0**-24, 2.0**-24)
    beside = {place: (2.0**15, 1.0), place + 1: little, place + 2: (-(2.0**15), 1.0), place + 3: (2.0**-21, 1.0)}
    cases: list[tuple[dict[int, tuple[float, float]], float, int]] = [
        ({place: large, place + 1: half, place + 2: little}, 0.0, 0x42000001),
        ({1: little, place: large, place + 1: half}, 0.0, 0x42000001),
        ({place: large, place + 1: half}, 2.0**-48, 0x42000001),
        (beside, 8.0, 0x41000001),
    ]
    for products_, begin, expected in cases:
        a, b = np.zeros((20, 400)), np.zeros((400, 33))
        for k, (x, y) in products_.items():
            a[:, k], b[k] = x, y
        start = bits.encode(np.full((20, 33), begin), "float32")[0]
        arguments = encoded(a), encoded(b), "float16", how, start
        assert set(bits.matmul(*arguments)[0].reshape(-1).tolist()) == {expected}
        both_ways(monkeypatch, *arguments)
        if how.block:
            counted_both_ways(monkeypatch, *arguments)


@pytest.mark.parametrize(
    "how",
    [
        amp("half"),
        fma("float16"),
        mul_add("bfloat16"),
        chunked(50, "float16", "float16"),
        fma("float16").replace(chains=3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("options", [{}, STOCHASTIC], ids=["nearest", "stochastic"])
def test_loops_for_few_outputs_sum_what_is_long(
    how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """More turns than random numbers are drawn for at once; segments that begin within a block of these; chains."""
    fmt, rng = how.partials, np.random.default_rng(8)
    a, b, c = (drawn(rng, fmt, shape, 1.0) for shape in ((20, 700), (700, 33), (20, 33)))
    both_ways(monkeypatch, a, b, fmt, how, c, **options)


@pytest.mark.parametrize("how", [fma("float32"), mul_add("float32")], ids=repr)
def test_float32_operands_that_read_as_zero(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of either sign, beside numbers that do not, and alone; in products and in sums of rows."""
    a, b = drawn(np.random.default_rng(7), Format.from_name("float32"), (40, 30), 1.0), np.full((30, 20), 0x3F800000)
    a[::2, 3], a[5], a[6, :15], a[7] = 0x807FFFFF, 0x00000001, 0x80000000, 0x80000001
    for operand in (a, np.ascontiguousarray(a[:, :3])):
        k = operand.shape[1]
        both_ways(monkeypatch, operand, b[:k].astype(np.uint32), "float32", how, daz=True, rounding="toward_negative")
        found = []
        for fast in (True, False):
            monkeypatch.setattr(elementwise, "FAST", fast)
            sums = bits.sum(operand, "float32", how, 1, daz=True, rounding="toward_negative")
            found.append((*sums, *bits.vecdot(operand, operand[::-1].copy(), "float32", how, daz=True)))
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)
        assert sums[0][5] == 0
        assert sums[0][7] == 0x80000000


LOW, LOW_FACTOR = 2.0**-24, 2.0**-16  # whose product is 2^-40
HANGING: dict[str, tuple[list[float], list[float], float]] = {
    "on the sum so far": ([LOW, *[0.0] * 15, 4096.0, 1.0], [LOW_FACTOR, *[0.0] * 15, 4096.0, 1.0], 0.0),
    "on the sum's beginning": ([4096.0, 1.0], [4096.0, 1.0], 2.0**-40),
    "on a product beside it": ([LOW, 4096.0, 1.0], [LOW_FACTOR, 4096.0, 1.0], 0.0),
    "on the last bit of a sum as large": ([2.0**15, 2.0**15, 127.0], [2.0**15, 2.0**15, 1.0], 1.0 + 2.0**-23),
    "on a beginning that is gone": ([LOW, -1024.0], [LOW_FACTOR, 1024.0], 2.0**20),
}
"""Products of halves, and c: a bit that float64 has no room for beside the others decides a tie of float32, or says that something is inexact."""


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("case", HANGING)
def test_what_hangs_on_a_bit_that_float64_has_not(case: str, counts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, start = HANGING[case]
    missing = [0.0] * (-len(first) % 16)
    a = np.tile(encoded([*first, *missing]), (9, 1))
    b = np.tile(encoded([*second, *missing]), (17, 1)).T.copy()
    c = np.full((9, 17), encoded(start, "float32"))
    for sign in (0, 0x8000):
        given = a ^ np.where(a, sign, 0).astype(a.dtype), b, "float16", amp("float32"), c ^ np.uint32(sign << 16)
        (counted_both_ways if counts else both_ways)(monkeypatch, *given, out_format="float32")


@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_away", "nearest_zero", "nearest_up"])
@pytest.mark.parametrize("how", [fma("float32"), mul_add("float32")], ids=repr)
def test_ties_below_powers_of_two(how: Accumulator, rounding: str) -> None:
    """1 - 2^-25 lies between 1 - 2^-24 and 1, half a unit of the numbers below 1: ties toward zero once went to 1."""
    rows, columns = np.array([[1.0, -1.0], [-1.0, 1.0]] * 9, np.float32), np.array([[1.0], [2.0**-25]], np.float32)
    toward_zero = {"nearest_zero": (True, True), "nearest_up": (False, True)}.get(rounding, (False, False))
    expected = [(0x3F800000, 0xBF800000)[n] - toward_zero[n] for n in range(2)] * 9
    for width in (1, 20):
        a, b = rows.view(np.uint32), np.repeat(columns, width, 1).view(np.uint32)
        codes, flags = bits.matmul(a, b, "float32", how, rounding=rounding)
        assert (expected == codes.T).all()
        assert (flags == 1).all()
