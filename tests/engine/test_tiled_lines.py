"""Outputs in a line, and small products together, by the faster loops over tiles, against the plain one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from covering import Case, over, resolved
from tiling_cases import CASES, SERVED, STOCHASTIC, both_ways, encoded
from unit_cases import drawn
from ways import served

from softfloat import Environment, Format, bits, engine
from softfloat.accumulators import (
    Accumulator,
    amp,
    chunked,
    exact,
    fma,
    mul_add,
    pairwise,
    tensor_core,
)
from softfloat.engine import lines, plain, products, small, stacks, unit_ways

BATCHED = [
    *(
        (how, how.partials)
        for how in (fma("float16"), mul_add("float16"), fma("bfloat16"), mul_add("bfloat16"), fma("float32"))
    ),
    *((tensor_core(name), Format.from_name("float16")) for name in ("V100", "A100", "H100")),
    *((tensor_core(name, output="float16"), Format.from_name("float16")) for name in ("V100", "H100")),
    (tensor_core("H100", "bfloat16"), Format.from_name("bfloat16")),
    (tensor_core("H100", "float8_e4m3fn"), Format.from_name("float8_e4m3fn")),
]


def left_of_batches(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[Any]]:
    """What tells of the calls since it was asked last which of their products loops of batches left; None: all."""
    found, run = set(), stacks.run

    def watched(*arguments: Any) -> Any:
        done = run(*arguments)
        if len(arguments[2]) > 1:
            found.add(None if done is None else tuple(n for span in done.left for n in range(*span)))
        return done

    def told() -> set[Any]:
        before = found.copy()
        found.clear()
        return before

    monkeypatch.setattr(stacks, "run", watched)
    return told


@SERVED
@pytest.mark.parametrize(("how", "fmt"), BATCHED, ids=repr)
def test_products_of_a_batch_are_left_one_by_one(
    how: Accumulator, fmt: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those with an infinity or NaN, and no other."""
    rng, left = np.random.default_rng(8), left_of_batches(monkeypatch)
    monkeypatch.setattr(small, "_plan", lambda *_: None)
    monkeypatch.setattr(unit_ways, "LEAST_WORK", 0)
    special = (-np.inf if fmt.infinities else np.nan), np.nan
    for rows, length, columns in ((16, 24, 32), (9, 30, 21), (8, 33, 16)):
        a, b = drawn(rng, fmt, (7, rows, length), 1.0), drawn(rng, fmt, (7, length, columns), 1.0)
        both_ways(monkeypatch, a, b, fmt, how)
        assert left() == {()}
        a[2, rows - 1, 3], b[5, length - 1, columns - 1] = (bits.encode(x, fmt)[0] for x in special)
        both_ways(monkeypatch, a, b, fmt, how)
        assert left() == {(2, 5)}
        c = drawn(rng, how.partials, (7, rows, columns), 1.0)
        both_ways(monkeypatch, a, b, fmt, how, c)
        assert left() == {(2, 5)}


@SERVED
@pytest.mark.parametrize("name", ["V100", "H100"])
def test_small_products_that_overflow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinite sums are codes like any others."""
    rng, how = np.random.default_rng(3), tensor_core(name, output="float16")
    monkeypatch.setattr(unit_ways, "LEAST_WORK", 0)
    a, b = (encoded(rng.standard_normal(shape) * 100) for shape in ((6, 9, 64), (6, 64, 12)))
    both_ways(monkeypatch, a, b, "float16", how)
    beyond = ~np.isfinite(bits.decode(bits.matmul(a, b, "float16", how)[0], "float16"))
    assert 0 < beyond.sum() < beyond.size


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_products_and_sums_of_all_digits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What rounds by splitting, behind a product that makes all sums inexact: each pair of significands, and sums of any digits."""
    fmt, rng = Format.from_name(name), np.random.default_rng(5)
    every = np.arange(2**fmt.mantissa_bits, 2 ** (fmt.mantissa_bits + 1)) / 2.0**fmt.mantissa_bits
    odd = every[1::2]
    for scale in (1.0, 2.0**-3, 2.0**3):
        a = np.stack([rng.choice(odd[odd > 1.5], every.size) * scale, every, rng.permutation(every)], axis=1)
        b = np.stack([rng.choice(odd[odd > 1.5], every.size), every, rng.choice([1.0, -1.0, 0.0], every.size)])
        both_ways(monkeypatch, encoded(a, name), encoded(b, name), name, mul_add(name))


def test_products_that_splitting_does_not_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that may overflow, and operands that are large alone, beside others."""
    rng = np.random.default_rng(5)
    for name, large in (("float16", 2.0**7), ("bfloat16", 2.0**60)):
        a, b = rng.standard_normal((5, 16, 40)), rng.standard_normal((5, 40, 32))
        a[1], b[1], a[3], b[3] = a[1] * large, b[1] * large, a[3] / large, b[3] * large
        both_ways(monkeypatch, encoded(a, name), encoded(b, name), name, mul_add(name))
    b[3], a[3] = b[3] * 2.0**58, 2.0**-100
    both_ways(monkeypatch, encoded(a, "bfloat16"), encoded(b, "bfloat16"), "bfloat16", mul_add("bfloat16"))
    a, b, c = (
        rng.standard_normal((16, 40)) * 4,
        rng.standard_normal((40, 32)) * 4,
        rng.choice([-1, 1], (16, 32)) * 65440.0,
    )
    both_ways(monkeypatch, encoded(a), encoded(b), "float16", mul_add("float16"), encoded(c))
    assert (bits.matmul(encoded(a), encoded(b), "float16", mul_add("float16"), encoded(c))[1] & 4).any()


@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_away", "toward_zero", "to_odd", "stochastic"])
@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16")], ids=repr)
def test_second_operands_that_a_lift_would_make_infinite(
    how: Accumulator, rounding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of formats that reach further than half: factors of 2^16 and more, of products that half has."""
    rng, fmt = np.random.default_rng(4), "bfloat16"
    options = {"rounding": rounding} | ({"seed": 3} if rounding == "stochastic" else {})
    for exponent in (13, 17, 60):
        a = encoded(rng.standard_normal((3, 24, 40)) * 2.0**-exponent, fmt)
        b = encoded(rng.standard_normal((3, 40, 32)) * 2.0 ** (exponent + 2), fmt)
        both_ways(monkeypatch, a, b, fmt, how, **options)
        both_ways(monkeypatch, a[0], b[0], fmt, how, daz=True, overflow="saturate", **options)
    a, b = encoded(np.full((16, 3), 1.0078125), fmt), encoded([[1.0078125] * 16, [2.0**17] * 16, [2.0] * 16], fmt)
    a[:, 1] = encoded([2.0**-10], fmt)
    codes, flags = bits.matmul(a, b, fmt, how, rounding="nearest_even")
    assert (codes == 0x5818).all(), "1.0156 + 128 + 2.015625, each sum rounded to half; infinities before"
    assert (flags == 1).all()


@SERVED
def test_products_beyond_the_lift_stay_on_the_fast_road(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "run", None)
    rng = np.random.default_rng(4)
    a = encoded(rng.standard_normal((24, 40)) * 2.0**-15, "bfloat16")
    b = encoded(rng.standard_normal((40, 32)) * 2.0**17, "bfloat16")
    bits.matmul(a, b, "bfloat16", fma("float16"))
    bits.matmul(np.stack([a] * 3), np.stack([b] * 3), "bfloat16", mul_add("float16"))


@SERVED
def test_small_products_out_of_range_are_left_by_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of formats whose numbers reach further than the loop: each product is judged by its own."""
    rng, left = np.random.default_rng(8), left_of_batches(monkeypatch)
    a, b = (drawn(rng, Format.from_name("bfloat16"), shape, 1.0) for shape in ((6, 16, 20), (6, 20, 32)))
    a[1, 15, 19], b[3, 0, 0], a[4, 0, 1], b[4, 1, 31] = encoded([2.0**-130, 2.0**-120, 2.0**90, 2.0**80], "bfloat16")
    a[5] = 0
    both_ways(monkeypatch, a, b, "bfloat16", fma("bfloat16"))
    assert left() == {(1, 3, 4)}
    scales = 2.0 ** np.array([-60, 60, -20, 20, 0, 9])[:, None, None]
    a, b = (encoded(rng.standard_normal(x.shape) * s, "bfloat16") for x, s in ((a, scales), (b, 1 / scales)))
    both_ways(monkeypatch, a, b, "bfloat16", fma("bfloat16"))
    assert left() == {()}, "together they span more than one may"
    a, b = (np.tile(x, (9, 1, 1)) for x in (a, b))  # so many that their flags are told together
    assert bits.matmul(a, b, "bfloat16", fma("bfloat16"), flags="any")[1] == 1


@SERVED
@pytest.mark.parametrize(
    "how", [fma("float16"), mul_add("float16"), tensor_core("H100"), pairwise("float16")], ids=repr
)
def test_batches_that_are_settled_beforehand(how: Accumulator) -> None:
    a, b = np.full((40, 24, 24), 0x3C00, np.uint16), np.full((40, 24, 24), 0x3C00, np.uint16)
    assert served(bits.matmul, a, b, "float16", how)
    assert served(bits.matmul, a, b, "float16", how, environment=Environment(seed=3, rounding="stochastic"))
    assert served(bits.matmul, np.tile(a[0], (8, 1)), np.tile(b[0], 8), "float16", how)


def test_a_product_too_small_for_its_loops_compiles_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "run", None)
    monkeypatch.setattr(unit_ways, "_DONE", {})
    monkeypatch.setattr(unit_ways, "spares", lambda *_: False)  # as where the plain loop is there
    few = np.full((4, 4), 0x3C00, np.uint16)
    codes, flags = bits.matmul(few, few, "float16", tensor_core("H100", "float16"))
    assert (codes == 0x40800000).all()
    assert not flags.any()


@pytest.mark.parametrize("groups", [3, 150])
@pytest.mark.parametrize("accumulator", [fma("float16"), amp("half"), pairwise("float16")], ids=repr)
def test_depthwise_convolutions(accumulator: Accumulator, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(groups)
    fmt = Format.from_name("float16")
    image, weights = drawn(rng, fmt, (2, 6, 5, groups), 1.0), drawn(rng, fmt, (3, 2, 1, groups), 1.0)
    c = drawn(rng, fmt, (groups,), 1.0)
    options: dict[str, Any] = {"padding": "same", "groups": groups} | (STOCHASTIC if groups == 3 else {})
    both_ways(monkeypatch, image, weights, "float16", accumulator, c, function=bits.conv2d, **options)
    gradient = drawn(rng, fmt, (2, 6, 5, groups), 1.0)
    both_ways(
        monkeypatch, image, gradient, weights.shape, fmt, accumulator, function=bits.conv2d_weight_gradient, **options
    )


def test_entire_sums_of_distant_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All exponents: many slices. Sums that cancel but for their smallest term."""
    rng = np.random.default_rng(8)
    for fmt, high in (("float16", 0x7C00), ("bfloat16", 0x7F80)):
        a, b = (
            rng.integers(0, high, (20, 40), dtype=np.uint16) | rng.integers(0, 2, (20, 40), dtype=np.uint16) << 15
            for _ in "ab"
        )
        for how in (exact(fmt), exact("float32")):
            both_ways(monkeypatch, a, b.T.copy(), fmt, how)
            both_ways(
                monkeypatch,
                np.hstack([a, a ^ 0x8000, a[:, :1]]),
                np.hstack([b, b, b[:, :1]]),
                fmt,
                how,
                function=bits.vecdot,
            )
    near = encoded([[1.0, 2.0**-11, 2.0**-24, -(2.0**-24), 2.0**-24, 0.0]])
    for rounding in ("nearest_even", "nearest_away", "toward_positive", "toward_zero"):
        both_ways(monkeypatch, near, "float16", exact("float16"), 1, function=bits.sum, rounding=rounding)
    assert bits.sum(near, "float16", exact("float16"))[0] == 0x3C01  # just above half-way


def test_entire_sums_of_as_many_bits_as_float64_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of 48 bits whose sums grow to 56 before they cancel."""
    rng = np.random.default_rng(9)
    factors = rng.integers(0x3F800001, 0x40000000, (2, 3, 200), dtype=np.uint32)
    rest = np.array([[0x3F800001, 0xBF800000]] * 3, np.uint32)  # 1 + 2^-23 and -1
    a = np.concatenate([factors[0], factors[0] ^ 0x80000000, rest], axis=1)
    b = np.concatenate([factors[1], factors[1], np.full((3, 2), 0x3F800000, np.uint32)], axis=1)
    assert bits.vecdot(a, b, "float32", exact("float32"))[0].tolist() == [0x34000000] * 3
    both_ways(monkeypatch, a, b, "float32", exact("float32"), function=bits.vecdot)
    both_ways(monkeypatch, a, b.T, "float32", exact("float32"))


@pytest.mark.parametrize("how", [fma("float8_e5m2"), fma("float8_e4m3fn"), mul_add("float16")], ids=repr)
@pytest.mark.parametrize("fmt", ["float16", "bfloat16"])
def test_sums_of_numbers_that_the_running_format_has_not(
    fmt: str, how: Accumulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(10)
    for scale in (1.0, 2.0**-6, 2.0**-13, 2.0**-24):
        codes = bits.encode(rng.standard_normal((40, 150)) * scale, fmt)[0]
        both_ways(monkeypatch, codes, fmt, how, 0, function=bits.sum)
        both_ways(monkeypatch, codes[:, 0], fmt, how, function=bits.cumsum)


FUSED: list[Case] = [
    *(x for x in CASES if x[0] == fma(x[0].partials)),
    (fma("float16"), "float16", {"rounding": "stochastic", "seed": 3, "sr_bits": 7}),
    (fma("float16"), "float16", {"rounding": "toward_negative", "ftz": True, "daz": True}),
    (fma("float16"), "float16", {"rounding": "to_odd"}),
    (fma("float8_e4m3fn"), "float8_e5m2", {"overflow": "saturate"}),
    (fma("float8_e4m3fn"), "float8_e5m2", {"overflow": "saturate", "rounding": "stochastic", "seed": 4}),
    (fma("float16"), "float16", {"nan": "riscv"}),
]


@over(FUSED, 2)
def test_fused_sums_go_on_from_their_first_special_operand(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """In rows, in columns, in both before each other and after, in c; with sums that overflow before, and zeros against infinities."""
    accumulator, fmt, options, rng = resolved(case)
    infinity, nan = fmt.spec.infinity if fmt.infinities else fmt.nan_code, fmt.nan_code
    a, b = drawn(rng, fmt, (48, 40), 1.0), drawn(rng, fmt, (40, 64), 1.0)
    c = drawn(rng, accumulator.partials, (48, 64), 1.0)
    a[5, :20], b[:20, ::3] = fmt.max_code, fmt.max_code
    for rows, columns, start in (
        ({5: (20, infinity)}, {}, None),
        ({5: (39, infinity), 7: (0, nan)}, {}, c),
        ({}, {5: (20, infinity | fmt.sign_bit), 33: (39, nan)}, None),
        ({5: (30, infinity)}, {6: (20, infinity)}, c),
        ({5: (20, infinity), 9: (38, infinity)}, {6: (30, infinity), 8: (39, nan)}, None),
    ):
        x, y, z = a.copy(), b.copy(), start if start is None else start.copy()
        for row, (k, code) in rows.items():
            x[row, k] = code
            y[k, ::5] = 0
        for column, (k, code) in columns.items():
            y[k, column] = code
        both_ways(monkeypatch, x, y, fmt, accumulator, z, **options)
        if z is not None:
            z[11, 3] = accumulator.partials.nan_code
            both_ways(monkeypatch, x, y, fmt, accumulator, z, **options)


def test_outputs_beside_special_ones_stay_on_the_fast_road(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "PIECE", 1)
    redone: list[int] = []
    grid = products._grid
    monkeypatch.setattr(
        products, "_grid", lambda problem, *more: (redone.append(problem.b.shape[1]), grid(problem, *more))
    )
    a = encoded(np.ones((400, 10)))
    a[150, 3] = 0x7C00
    codes, flags = bits.vecdot(a, a, "float16", fma("float16"))
    assert redone == [400 if engine.loops().jit.DISABLED else 1]
    assert codes.tolist() == [0x4900] * 150 + [0x7C00] + [0x4900] * 249
    assert not flags.any()


@pytest.mark.parametrize("how", [fma("float16"), amp("half"), pairwise("float16"), exact("float16")], ids=repr)
def test_operands_wherever_they_lie(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Backwards, spread, repeated, read-only, transposed, swapped bytes."""
    rng = np.random.default_rng(12)
    whole = drawn(rng, Format.from_name("float16"), (150, 134), 1.0)
    whole.flags.writeable = False
    other = np.broadcast_to(whole[0, :67], (150, 67))
    for a in (whole[:, ::-2], whole[::-1, :67], whole[:, ::2], whole.reshape(134, 150).T[:, :67], whole[:, :67]):
        for b in (other, whole[:, 67:], np.broadcast_to(whole[:, :1], (150, 67))):
            both_ways(monkeypatch, a, b, "float16", how, function=bits.vecdot)
            both_ways(monkeypatch, b, a, "float16", how, function=bits.vecdot)
    both_ways(monkeypatch, whole.astype(whole.dtype.newbyteorder()), whole, "float16", how, function=bits.vecdot)
    both_ways(monkeypatch, whole, "float16", how, 0, function=bits.sum)


@pytest.mark.parametrize("nan", ["canonical", "x86"])
@pytest.mark.parametrize(
    "how",
    [fma("float16").replace(chains=3), chunked(4, "float16", "float16"), pairwise("float16"), exact("float16")],
    ids=repr,
)
def test_payloads_of_c(how: Accumulator, nan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a = drawn(np.random.default_rng(1), Format.from_name("float16"), (70, 10), 1.0)
    for code in (0x7E12, 0x7C01, 0xFC00):
        c = np.full(70, code, np.uint16)
        both_ways(monkeypatch, a, a, "float16", how, c, function=bits.vecdot, nan=nan)
        both_ways(monkeypatch, a, a.T, "float16", how, c, nan=nan)
        x = a.copy()
        x[3, 2] = code
        both_ways(monkeypatch, x, a, "float16", how, function=bits.vecdot, nan=nan)
        both_ways(monkeypatch, x[3:4], "float16", how, 1, function=bits.sum, nan=nan)
