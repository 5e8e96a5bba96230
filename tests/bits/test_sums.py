"""Dot products, matrix products and sums as a user meets them: shapes, counts, threads, outside arithmetic, refusals."""

from __future__ import annotations

import csv
import io
import itertools
import math
import platform
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import softfloatpy
from llvmlite import binding, ir
from numba import njit, types
from numba.extending import intrinsic
from operands import operands
from outside import SF_MODES
from softfloat.kernels import fast

import softfloat
from softfloat import Accumulator, Environment, Flags, accumulators, bfloat16, bits, engine, float16, float32
from softfloat.accumulators import (
    Alignment,
    Reduction,
    Stage,
    amd_mfma,
    amp,
    amx,
    arm_bfdot,
    arm_fp8dot,
    chunked,
    exact,
    fma,
    from_poplar_options,
    mul_add,
    pairwise,
    rvbna,
    slic,
    tensor_core,
    vdpbf16ps,
)
from softfloat.bits.sums import products as sums
from softfloat.engine import threads as workers

binding.initialize_native_asmparser()  # for the instruction written out below
RANDOM = np.random.default_rng(11)
ONE = float16.one_code


def normal(*shape: int, fmt: Any = "float16", scale: float = 1.0) -> np.ndarray[Any, Any]:
    codes: np.ndarray[Any, Any] = bits.encode(RANDOM.standard_normal(shape) * scale, fmt)[0]
    return codes


@pytest.fixture
def threads() -> Iterator[None]:
    before = softfloat.get_num_threads()
    yield
    softfloat.set_num_threads(before)


# -- outside arithmetic ----------------------------------------------------------------------------------------------


def test_fma_is_softfloats_mul_add_chain() -> None:
    softfloatpy.set_rounding_mode(SF_MODES["nearest_even"])  # its own global state, which other tests change
    a, b = operands(float16, 4000, 2, 5)
    found, _ = bits.vecdot(a.reshape(-1, 8), b.reshape(-1, 8), "float16", fma("float16"))
    for row in range(found.size):
        total = softfloatpy.Float16.from_bytes(b"\0\0")
        for x, y in zip(a[8 * row : 8 * row + 8].tolist(), b[8 * row : 8 * row + 8].tolist(), strict=True):
            x, y = (softfloatpy.Float16.from_bytes(v.to_bytes(2, "big")) for v in (x, y))
            total = softfloatpy.f16_mul_add(x, y, total)
        expected = int.from_bytes(total.to_bytes(), "big")
        if math.isnan(bits.decode(expected, "float16")):
            expected = float16.nan_code
        assert int(found[row]) == expected


@pytest.mark.parametrize("scale", [1.0, 2.0**-9, 100.0])
def test_mul_add_is_a_numpy_loop(scale: float) -> None:
    a, b = normal(40, 70, scale=scale), normal(70, 33, scale=scale)
    x, y = a.view(np.float16), b.view(np.float16)
    expected = np.zeros((40, 33), np.float16)
    with np.errstate(all="ignore"):
        for k in range(70):
            expected = expected + x[:, k : k + 1] * y[k]
    found, _ = bits.matmul(a, b, "float16", mul_add("float16"))
    nan = np.isnan(expected)
    assert (found == expected.view(np.uint16))[~nan].all()
    assert bits.isnan(found, "float16")[nan].all()


@intrinsic
def _vdpbf16ps(context: Any, c: Any, a: Any, b: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.IntType(32), 16)
        pointers = []
        for kind, value in zip(signature.args, arguments, strict=True):
            pointers.append(
                builder.bitcast(context.make_array(kind)(context, builder, value).data, vector.as_pointer())
            )
        values = []
        for pointer in pointers:
            value = builder.load(pointer)
            value.align = 4
            values.append(value)
        kind = ir.FunctionType(vector, [vector] * 3)
        result = builder.asm(kind, "vdpbf16ps $3, $2, $0", "=v,0,v,v", values, False)
        stored = builder.store(result, pointers[0])
        stored.align = 4
        return context.get_dummy_value()

    return types.void(c, a, b), codegen


@njit
def vdpbf16ps_of_the_cpu(c: Any, a: Any, b: Any) -> None:
    for start in range(0, c.size, 16):
        _vdpbf16ps(c[start : start + 16], a[start : start + 16], b[start : start + 16])


@pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64")
    or not binding.get_host_cpu_features().get("avx512bf16", False)
    or not fast.has_feature("avx512f"),
    reason="needs AVX512_BF16",
)
@pytest.mark.parametrize("kind", ["any bits", "normal"])
def test_vdpbf16ps_is_the_cpus(kind: str) -> None:
    size, pairs = 16 * 512, 3
    if kind == "any bits":
        a, b = (operands(bfloat16, size * 2 * pairs, 1, seed)[0].reshape(size, 2 * pairs) for seed in (1, 2))
        start = operands(float32, size, 1, 3)[0]
    else:
        a, b = normal(size, 2 * pairs, fmt="bfloat16"), normal(size, 2 * pairs, fmt="bfloat16")
        start = normal(size, fmt="float32")
    c = start.copy()
    for pair in range(pairs):
        span = slice(2 * pair, 2 * pair + 2)
        x, y = (np.ascontiguousarray(v[:, span]).view(np.uint32).reshape(-1) for v in (a, b))
        vdpbf16ps_of_the_cpu(c, x, y)
    found, _ = bits.vecdot(a, b, "bfloat16", vdpbf16ps(), start)
    np.testing.assert_array_equal(found, c)


def test_vdpbf16ps_traps(vectors: Path) -> None:
    """Order, flushes and NaNs, each with what the instruction gives; b of the higher pair first, as the file has them."""
    with (vectors / "traps_dot.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 20
    for row in rows:
        number = {name: int(row[name], 16) for name in ("c", "a_hi", "b_hi", "a_lo", "b_lo", "result")}
        a, b = ([number[f"{name}_lo"], number[f"{name}_hi"]] for name in "ab")
        code, _ = bits.vecdot(a, b, "bfloat16", vdpbf16ps(), number["c"])
        assert int(code) == number["result"], row["note"]


def test_exact_is_fsum() -> None:
    a, b = normal(50, 300, scale=3.0), normal(50, 300, scale=3.0)
    found, flags = bits.vecdot(a, b, "float16", exact("float32"))
    for row in range(50):
        products = bits.decode(a[row], "float16") * bits.decode(b[row], "float16")
        code, raised = bits.encode(math.fsum(products), "float32")
        assert (int(found[row]), int(flags[row]) & 1) == (int(code), int(raised) & 1)


# -- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((3,), (3,)),
        ((4, 3), (3,)),
        ((3,), (3, 5)),
        ((4, 3), (3, 5)),
        ((2, 4, 3), (3, 5)),
        ((4, 3), (2, 3, 5)),
        ((2, 1, 4, 3), (6, 3, 5)),
        ((0, 3), (3, 5)),
        ((4, 0), (0, 5)),
        ((4, 3), (3, 0)),
        ((0, 4, 3), (0, 3, 5)),
        ((70, 3), (3, 1)),
    ],
)
def test_matmul_has_numpys_shapes(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    x, y = (RANDOM.integers(-8, 9, shape).astype(np.float64) for shape in (first, second))
    expected = np.matmul(x, y)
    a, b = (bits.encode(v, "float16")[0] for v in (x, y))
    found, flags = bits.matmul(a, b, "float16", fma("float32"))
    assert np.shape(found) == np.shape(flags) == np.shape(expected)
    np.testing.assert_array_equal(bits.decode(found, "float32"), expected)
    assert not np.any(flags)
    start = np.broadcast_to(np.uint32(float32.one_code), np.shape(expected))
    found, _ = bits.matmul(a, b, "float16", fma("float32"), start)
    np.testing.assert_array_equal(bits.decode(found, "float32"), expected + 1)


@pytest.mark.parametrize(
    ("first", "second"), [((3,), (3,)), ((4, 3), (3,)), ((2, 1, 3), (5, 3)), ((0, 3), (3,)), ((4, 0), (0,))]
)
def test_vecdot_has_numpys_shapes(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    x, y = (RANDOM.integers(-8, 9, shape).astype(np.float64) for shape in (first, second))
    found, _ = bits.vecdot(*(bits.encode(v, "float16")[0] for v in (x, y)), "float16", exact("float32"))
    expected = (x * y).sum(-1)
    assert np.shape(found) == expected.shape
    np.testing.assert_array_equal(bits.decode(found, "float32"), expected)


def test_broadcast_operands_go_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = normal(7, 1, 30), normal(1, 9, 30)
    drawn: dict[str, Any] = {"rounding": "stochastic", "seed": 3}
    expected = bits.vecdot(a, b, "float16", fma("float16"), normal(9), **drawn)[1].shape
    whole = bits.vecdot(a, b, "float16", fma("float16"), **drawn)
    monkeypatch.setattr(sums, "PIECE", 600)
    parts = bits.vecdot(a, b, "float16", fma("float16"), **drawn)
    assert expected == (7, 9)
    np.testing.assert_array_equal(whole[0], parts[0])
    np.testing.assert_array_equal(whole[1], parts[1])


@pytest.mark.parametrize("how", [fma("float32"), chunked(32, tensor_core("H100"), "float32")])
def test_operands_that_lie_in_other_ways(how: Accumulator) -> None:
    a, b = normal(2, 33, 96), normal(2, 96, 40)
    expected = bits.matmul(a, b, "float16", how)

    def lying(x: np.ndarray) -> list[np.ndarray]:
        turned = np.swapaxes(np.ascontiguousarray(np.swapaxes(x, 1, 2)), 1, 2)
        cut = np.pad(x, ((0, 0), (1, 2), (2, 3)))[:, 1:-2, 2:-3]
        back = np.ascontiguousarray(x[..., ::-1])[..., ::-1]
        return [turned, cut, back, np.repeat(x, 2, axis=2)[..., ::2], np.repeat(turned, 2, axis=1)[:, ::2]]

    for first, second in itertools.product(lying(a), lying(b)):
        found = bits.matmul(first, second, "float16", how)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


def test_views_and_results_in_place() -> None:
    a, b = normal(30, 40), normal(40, 20)
    expected = bits.matmul(a, b, "float16", fma("float16"))
    views = bits.matmul(np.asfortranarray(a), np.repeat(b, 2, axis=1)[:, ::2], "float16", fma("float16"))
    out = np.empty((30, 20), np.uint16), np.empty((30, 20), np.uint8)
    placed = bits.matmul(a[::-1][::-1], b, "float16", fma("float16"), out=out)
    assert placed[0] is out[0]
    for one in (views, placed):
        np.testing.assert_array_equal(one[0], expected[0])
        np.testing.assert_array_equal(one[1], expected[1])
    square = normal(20, 20)
    wanted, any_flags = bits.matmul(square, square, "float16", fma("float16"), flags="any")
    assert any_flags == np.bitwise_or.reduce(bits.matmul(square, square, "float16", fma("float16"))[1], axis=None)
    bits.matmul(square, square, "float16", fma("float16"), out=square)
    np.testing.assert_array_equal(square, wanted)


EMPTY = (
    fma("float16"),
    mul_add("float16"),
    amp("half"),
    slic("half"),
    exact("float16"),
    pairwise("float16"),
    chunked(4, "float16", "float16"),
)


@pytest.mark.parametrize("how", EMPTY, ids=repr)
def test_an_empty_sum_is_zero_or_c(how: Accumulator) -> None:
    empty = np.empty((3, 0), np.uint16)
    codes, flags = bits.vecdot(empty, empty, "float16", how)
    assert codes.tolist() == [0, 0, 0]
    assert not flags.any()
    codes, flags = bits.vecdot(empty, empty, "float16", how, [0x8000, 0x0001, ONE])
    assert codes.tolist() == [0x8000, 0x0001, ONE]


# -- stages, signs, NaNs ---------------------------------------------------------------------------------------------


def one(a: Any, b: Any, how: Accumulator, c: Any = None, fmt: Any = "float16", **options: Any) -> tuple[int, int]:
    code, flags = bits.vecdot(np.array(a, int), np.array(b, int), fmt, how, c, **options)
    return int(code), int(flags)


def sums_of(**fields: Any) -> Accumulator:
    return Accumulator(name="of a test", **fields)


def test_the_last_level_of_a_reduction_stores() -> None:
    """Four ones are 4.0 in half, whatever they were added in; c comes in half, and leaves as it came where k is 0."""
    half = Stage("float16")
    how = sums_of(running=Stage("float32"), segment=2, reduction=(Reduction(Stage("float32"), None, half),))
    assert how.partials == float16
    assert one([ONE] * 4, [ONE] * 4, how) == (0x4400, 0)
    assert one([ONE] * 4, [ONE] * 4, how, 0x6800) == (0x6802, 0)
    assert one([0x6800, ONE], [ONE] * 2, how) == (0x6800, 1)  # 2049
    assert one([], [], how, 0x0001) == (0x0001, 0)
    assert one([ONE] * 4, [ONE] * 4, how, out_format="bfloat16") == (0x4080, 0)
    levels = Reduction(Stage("float32"), 2, Stage("bfloat16")), Reduction(Stage("float32"), None, half)
    several = how.replace(segment=None, segments=4, reduction=levels)
    assert one([0x6800, ONE, 0x6800, ONE], [ONE] * 4, several) == (0x6C00, 1)  # 2049 is 2048 in bfloat16
    matrix = np.full((40, 4), ONE, np.uint16)
    assert (bits.matmul(matrix, matrix.T, "float16", how)[0] == 0x4400).all()
    assert bits.cumsum([ONE] * 3, "float16", how)[0].tolist() == [0x3C00, 0x4000, 0x4200]
    assert one([0x7E01], [ONE], how, nan="x86") == (0x7E01, 0)
    with softfloat.environment(accumulator=how):
        assert float(np.sum(softfloat.ones(4, "float16"))) == 4.0


def test_a_lone_product_of_a_tree_is_converted() -> None:
    """1 times a third: a single as a product, a half as a sum."""
    how = sums_of(product=Stage("float32"), running=Stage("float16"), tree=True)
    assert one([ONE], [0x3555], how) == (0x3555, 0)
    assert one([0x3C01], [0x3C01], how) == (0x3C02, 1)
    assert one([ONE], [0x3555], how, 0) == (0x3555, 0)
    assert one([ONE], [0x3555], how, out_format="float32") == (0x3EAAA000, 0)
    codes, flags = bits.cumsum([0x3555, 0x3555, ONE], "float16", how)
    assert codes.tolist() == [0x3555, 0x3955, 0x3EAA]
    assert flags.tolist() == [0, 0, 1]


@pytest.mark.parametrize("how", [exact("float16"), sums_of(running=Stage("float16"), fraction_bits=8)], ids=str)
def test_a_single_product_and_c_have_the_sign_of_a_fused_multiply_add(how: Accumulator) -> None:
    for a, c, rounding in itertools.product((0, 0x8000), (0, 0x8000), ("nearest_even", "toward_negative")):
        expected = bits.fma(a, ONE, c, "float16", rounding=rounding)
        assert one([a], [ONE], how, c, rounding=rounding) == tuple(map(int, expected))


def test_chains_and_trees_add_no_c_that_is_not_there() -> None:
    """-2^-48 rounds to -0 in each; c = +0 is one more addition, and the sum +0."""
    for how in (fma("float16").replace(chains=2), pairwise("float16")):
        assert one([0x8001] * 2, [1] * 2, how) == (0x8000, 3)
        assert one([0x8001] * 2, [1] * 2, how, 0) == (0, 3)
    _, _, counts = bits.vecdot([], [], "float16", fma("float16").replace(chains=2), count=True)
    assert math.isnan(counts.smallest)


@pytest.mark.parametrize("count", [False, True])
def test_a_nan_of_partials_without_signs_has_the_default_sign_of_its_policy(count: bool) -> None:
    """-7.5 + 1.75 is no unsigned number. Products of a block hand on no NaN; one product after another hands on its bits."""
    unsigned = softfloat.Format("e5m3_unsigned", exponent_bits=5, mantissa_bits=3, bias=15, signed=False)
    pair = ("float8_e4m3fn", "float8_e5m2")
    a, b = [[0xC2, 0x28]], [[0x42, 0x47]]
    chunks = chunked(2, exact(unsigned).replace(block=2), "float16")
    for how, nan in (
        (exact(unsigned), 0xFE00),
        (pairwise(unsigned), 0xFE00),
        (chunks, 0xFE00),
        (fma(unsigned), 0x7E00),
    ):
        codes, flags, *_ = bits.vecdot(a, b, pair, how, out_format="float16", nan="x86", count=count)
        assert (codes.tolist(), flags.tolist()) == ([nan], [Flags.INVALID])


@pytest.mark.parametrize("how", [fma("float16"), pairwise("float16"), exact("float16")], ids=str)
def test_an_empty_sum_quiets_a_signalling_c(how: Accumulator) -> None:
    assert one([], [], how, 0x7C01) == (0x7E00, Flags.INVALID)
    assert one([], [], how, 0xFC01, nan="x86") == (0xFE01, Flags.INVALID)
    assert one([], [], how, 0x7E01) == (0x7E01, 0)
    assert one([], [], how, 0x7C01, out_format="float32") == (0x7FC00000, Flags.INVALID)
    in_halves = tensor_core("H100", input="float8_e4m3fn", output="float32", instruction="mma.sync")
    assert bits.vecdot([], [], "float8_e4m3fn", in_halves, 0xFF800001) == (0x7FFFFFFF, Flags.INVALID)
    codes, _ = bits.matmul(np.zeros((1, 0), int), np.zeros((0, 2), int), "float16", how, [[0x7C01, ONE]])
    assert codes.tolist() == [[0x7E00, ONE]]


def test_the_output_reads_partials_as_their_stage_does() -> None:
    for stage, call, expected in (
        (True, False, 0),
        (False, True, 0x33800000),
        (None, True, 0),
        (None, False, 0x33800000),
    ):
        how = sums_of(running=Stage("float16", daz=stage), result="float32", daz=False)
        assert one([1], [ONE], how, daz=call) == (expected, 0)
        matrix, _ = bits.matmul([[1]], np.full((1, 70), ONE), "float16", how, daz=call)
        assert (matrix == expected).all()
    core = tensor_core("V100", output="float16")
    wide: dict[str, Any] = {"out_format": "float32", "daz": True}
    assert one([0x0400], [0x3800], core, **wide) == (0x38000000, 0)
    matrix, _ = bits.matmul(np.full((9, 4), 0x0200), np.full((4, 70), 0x3400), "float16", core, **wide)
    assert (matrix == 0x38000000).all()


def test_products_are_rounded_before_they_are_aligned() -> None:
    """(1 + 2^-10)^2 is 1 + 2^-9 in half."""
    how = sums_of(running=Stage("float32"), product=Stage("float16"), fraction_bits=23)
    assert one([0x3C01], [0x3C01], how) == (0x3F804000, 1)
    assert one([0x3C01], [0x3C01], how.replace(product=None)) == (0x3F804008, 0)
    coarse = how.replace(fraction_bits=2)
    assert one([0x3C01, 0x3400, 0x3000], [0x3C01, ONE, ONE], coarse) == (0x3FA00000, 1)  # 1 + 1/4; 1/8 is cut off
    tiny = how.replace(fraction_bits=4)
    assert one([0x0001, 0x0008], [ONE, ONE], tiny) == (0, 1)  # below 2^-18, for half's least exponent is -14
    codes, flags = bits.matmul([[0x3C01]], np.full((1, 70), 0x3C01), "float16", how)
    assert (codes == 0x3F804000).all()
    assert (flags == 1).all()


def test_exact_blocks_lift_the_least_sum_to_the_least_number() -> None:
    """Without subnormals that is 2^emin, larger by far than the sums that a directed rounding lifts to it."""
    wide = softfloat.Format("e5m22", exponent_bits=5, mantissa_bits=22, bias=55)
    normal_only = softfloat.Format("e3m22", exponent_bits=3, mantissa_bits=22, bias=8, subnormals=False)
    how = sums_of(running=Stage(normal_only, "toward_negative"), block=3)
    a, b = [0x8000001, 0, 0, 0, 0x6251D50, 0], [2, 0, 0, 0, 0x3110460, 0]
    assert one(a, b, how, fmt=wide) == (0x2400000, 3)


@pytest.mark.parametrize(
    "how", [fma("float16"), mul_add("float16"), exact("float16"), pairwise("float16"), chunked(1, "float16", "float16")]
)
def test_an_infinite_sum_is_no_overflow(how: Accumulator) -> None:
    """Nor is it a conversion, which would saturate it."""
    infinity = float16.inf_code
    assert one([infinity, ONE], [ONE, ONE], how, overflow="saturate") == (infinity, 0)
    assert one([infinity, ONE], [ONE, ONE], how, infinite_input="saturate") == (infinity, 0)


@pytest.mark.parametrize(
    "settings", [{}, {"overflow": "saturate"}, {"nan": "arm"}, {"nan": "ipu"}, {"rounding": "to_odd"}], ids=str
)
@pytest.mark.parametrize("name", ["float16", "float8_e4m3fn", "float8_e5m2"])
def test_sums_that_have_become_infinite_or_nan(name: str, settings: dict[str, Any]) -> None:
    """Products that can change nothing are left out; those after them can, and a NaN is an operand once more."""
    fmt = softfloat.Format.from_name(name)
    random = np.random.default_rng(5)
    for k, places in itertools.product((32, 33, 70, 97), ((0,), (31,), (32,), (3, 69), (30, 32, 95))):
        a, b = (bits.encode(random.standard_normal(shape), fmt)[0] for shape in ((3, k), (k, 5)))
        for place in (p for p in places if p < k):
            a[1:, place] = random.choice([fmt.inf_code, fmt.nan_code], 2) if fmt.infinities else fmt.nan_code
            b[place, 0] = 0
        signalling = fmt.nan_code ^ (1 << (fmt.mantissa_bits - 1)) | 1 if name == "float16" else fmt.nan_code
        b[min(places[0], k - 1), 4] = signalling
        codes, flags = bits.matmul(a, b, fmt, fma(fmt), flags="each", **settings)
        total, raised = np.zeros((3, 5), a.dtype), np.zeros((3, 5), np.uint8)
        for n in range(k):
            x, y = np.repeat(a[:, n : n + 1], 5, axis=1), np.repeat(b[n : n + 1], 3, axis=0)
            total, new = bits.fma(x, y, total, fmt, flags="each", **settings)
            raised |= new
        np.testing.assert_array_equal(codes, total)
        np.testing.assert_array_equal(flags, raised)


@pytest.mark.parametrize(("nan", "flags"), [("ipu", 0x10), ("canonical", 0)])
def test_a_register_that_is_nan_is_rounded_like_an_operand(nan: str, flags: int) -> None:
    how = accumulators.fixed_point(16, -8)
    found = bits.vecdot([0xFFC00000], [0x3FEDBF6C], ("float32", "float32"), how, nan=nan)
    assert (int(found[0]), int(found[1])) == (0x7FC00000, flags)


def test_counts_of_stores_begin_anew_with_each_segment() -> None:
    """The second segment stores 2049 as 2048: on top of +0, not of the first one's 2048."""
    how = sums_of(
        running=Stage("float32"),
        store=Stage("float16"),
        store_every=2,
        segment=2,
        reduction=(Reduction(Stage("float32")),),
    )
    code, _, counts = bits.vecdot([0x6800, 0, 0x6800, ONE], [ONE] * 4, "float16", how, count=True)
    assert bits.decode(code, "float32") == 4096
    assert int(counts.swamped) == 0


def test_sums_of_many_where_1_is_subnormal() -> None:
    """Sums as products with ones: 1 must be normal in the format that has it, or subnormals would be 0."""
    fmt = softfloat.Format("e4m3_of_bias_0", exponent_bits=4, mantissa_bits=3, bias=0)
    codes = np.full((32, 128), fmt.smallest_normal_code, np.uint8)
    for options in ({}, {"daz": True}):
        assert set(bits.sum(codes, fmt, fma("float32"), 0, **options)[0].tolist()) == {0x42800000}  # 32 * 2


def test_sums_come_in_the_format_of_inputs() -> None:
    how = fma("float32").replace(result="inputs")
    assert int(bits.sum([ONE, ONE], "float16", how)[0]) == 0x4000


def test_names_do_not_count() -> None:
    mine = Accumulator(name="mine", running=Stage("float16"))
    assert mine == fma("half")
    assert hash(mine) == hash(fma("half"))
    assert mine != fma("bfloat16")
    for how in (mine, fma("half")):  # messages name the one that was asked for
        with pytest.raises(ValueError, match=re.escape(f"segments of {how!r} are 2, more than")):
            one([ONE], [ONE], how.replace(segments=2, reduction=(Reduction(Stage("float32")),)))


# -- sums ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"rounding": "toward_positive"}, {"rounding": "stochastic", "seed": 3}], ids=str
)
@pytest.mark.parametrize(
    "how", [fma("float16"), pairwise("float16"), chunked(5, "float16", "float32"), mul_add("bfloat16")], ids=repr
)
def test_cumulative_sums_are_sums(how: Accumulator, options: dict[str, Any]) -> None:
    x = normal(23, 3)
    codes, flags = bits.cumsum(x, "float16", how, 0, **options)
    assert codes.shape == flags.shape == x.shape
    for count in range(1, 24):
        one, raised = bits.sum(x[:count], "float16", how, 0, **options)
        if "seed" in options and how.tree and count & (count - 1):
            continue  # the last merges of an incomplete tree take the numbers of merges a longer one does otherwise
        np.testing.assert_array_equal(codes[count - 1], one)
        np.testing.assert_array_equal(flags[count - 1], raised)
    flat, _ = bits.cumsum(x, "float16", how, **options)
    assert flat.shape == (69,)


@pytest.mark.parametrize("how", [fma("float16"), pairwise("float16"), chunked(2, "float16", "float32")], ids=repr)
def test_cumulative_sums_before_a_signalling_nan_raise_nothing(how: Accumulator) -> None:
    codes, flags = bits.cumsum([[ONE, ONE], [ONE, 0x7C01], [0x7C01, ONE], [ONE, ONE]], "float16", how, 0)
    assert flags.tolist() == [[0, 0], [0, Flags.INVALID], [Flags.INVALID] * 2, [Flags.INVALID] * 2]
    assert bits.isnan(codes, how.partials).tolist() == [[False, False], [False, True], [True, True], [True, True]]


def test_sums_along_axes() -> None:
    x = RANDOM.integers(-4, 5, (3, 4, 5)).astype(np.float64)
    codes = bits.encode(x, "float16")[0]
    for axis in (0, 1, -1, None):
        found, flags = bits.sum(codes, "float16", fma("float16"), axis)
        np.testing.assert_array_equal(bits.decode(found, "float16"), x.sum(axis))
        assert not np.any(flags)
        along = bits.cumsum(codes, "float16", fma("float16"), axis)[0]
        np.testing.assert_array_equal(bits.decode(along, "float16"), np.cumsum(x, axis).reshape(np.shape(along)))


def test_a_sum_swamps() -> None:
    tiny = np.full(10_000, bits.encode(0.0001, "float16")[0])
    code, _, counts = bits.sum(tiny, "float16", fma("float16"), count=True)
    assert bits.decode(code, "float16") == 0.25
    assert int(counts.swamped) == 10_000 - 2181


# -- counts ----------------------------------------------------------------------------------------------------------


def test_counts() -> None:
    a = bits.encode([[2048.0, 1, 1, 3], [60000, 60000, -1, 1], [0, 0, 0, 0], [-1, -2, 5, -0.0]], "float16")[0]
    ones = np.full(4, ONE, np.uint16)
    _, flags, counts = bits.vecdot(a, ones, "float16", fma("float16"), count=True)
    assert counts.overflowed.tolist() == [0, 1, 0, 0]
    assert counts.inexact.tolist() == [3, 1, 0, 0]
    assert counts.swamped.tolist() == [2, 0, 0, 0]
    assert counts.smallest.tolist() == [2048, 60000, 0, -3]
    assert counts.largest.tolist() == [2052, math.inf, 0, 2]
    assert flags.tolist() == [1, 5, 0, 0]
    nothing = bits.vecdot(a[:, :0], ones[:0], "float16", fma("float16"), count=True)[2]
    assert np.isnan(nothing.smallest).all()


def test_counts_of_blocks_and_stores() -> None:
    """48 products of 1 on top of 2048: each group of 16 adds 16 in single, and half holds 2048, 2064, 2080, 2096."""
    a = np.full((1, 48), ONE, np.uint16)
    codes, _, counts = bits.vecdot(a, a, "float16", amp("half"), [0x6800], count=True)
    assert bits.decode(codes, "float16").tolist() == [2096]
    assert counts.swamped.tolist() == [0]
    quarter = np.full((1, 48), bits.encode(1 / 32, "float16")[0])
    codes, _, counts = bits.vecdot(a, quarter, "float16", amp("half"), [0x6800], count=True)
    assert bits.decode(codes, "float16").tolist() == [2048]
    assert counts.swamped.tolist() == [3]  # each store
    assert counts.inexact.tolist() == [3]
    _, _, counts = bits.vecdot(a, quarter, "float16", tensor_core("V100"), [0x4C000000], count=True)  # 2^25
    assert counts.swamped.tolist() == [12]


# -- threads, pieces, machines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "fmt", "options"),
    [
        (fma("float16"), "float16", {}),
        (fma("bfloat16"), "bfloat16", {"rounding": "stochastic", "seed": 2}),
        (mul_add("float16"), "float16", {"rounding": "stochastic", "seed": 2}),
        (amp("half"), "float16", {}),
        (amp("half"), "float16", {"environment": Environment.ipu(esr=True, seed=4)}),
        (tensor_core("H100"), "float16", {}),
        (exact("float16"), "float16", {"rounding": "stochastic", "seed": 2}),
        (pairwise("bfloat16"), "bfloat16", {}),
    ],
    ids=str,
)
def test_threads_and_pieces_do_not_matter(
    how: Accumulator, fmt: str, options: dict[str, Any], threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = normal(2, 45, 70, fmt=fmt), normal(2, 70, 130, fmt=fmt)
    softfloat.set_num_threads(1)
    expected = bits.matmul(a, b, fmt, how, **options)
    softfloat.set_num_threads(3)
    monkeypatch.setattr(workers, "SMALLEST_SHARE", 1)
    for piece in (1, 10_000, 1 << 40):
        monkeypatch.setattr(workers, "PIECE", piece)
        found = bits.matmul(a, b, fmt, how, **options)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])
    one = bits.matmul(a[1], b[1], fmt, how, **options)
    if "seed" not in options and "environment" not in options:
        np.testing.assert_array_equal(one[0], expected[0][1])


def test_random_numbers_belong_to_outputs() -> None:
    """Every output of equal dot products draws on its own, and a vector's outputs are those of the same numbers anywhere."""
    a, b = np.full((64, 200), ONE, np.uint16), np.full((200, 64), bits.encode(0.001, "float16")[0])
    drawn: dict[str, Any] = {"rounding": "stochastic", "seed": 9}
    codes, _ = bits.matmul(a, b, "float16", fma("float16"), **drawn)
    assert np.unique(codes).size > 20
    again, _ = bits.vecdot(a[0], np.broadcast_to(b[:, 0], (64 * 64, 200)), "float16", fma("float16"), **drawn)
    np.testing.assert_array_equal(again.reshape(64, 64), codes)
    other, _ = bits.matmul(a, b, "float16", fma("float16"), stream=1, **drawn)
    assert (other != codes).mean() > 0.5
    mean = bits.decode(codes, "float16").mean()
    step = float(bits.decode(b[0, 0], "float16"))
    assert abs(mean - 200 * step) < 5 * 200**0.5 * 2.0**-13 / 64


def test_environments_reach_the_right_stage() -> None:
    """60000 + 60000: single holds it, and half saturates or becomes NaN when it is stored."""
    big = bits.encode([60000.0, 60000.0], "float16")[0]
    ones = np.full(2, ONE, np.uint16)
    for environment, code, flags in (
        (Environment.ipu(), 0x7BFF, Flags.OVERFLOW | Flags.INEXACT),
        (Environment.ipu(nanoo=True), 0x7E00, Flags.OVERFLOW | Flags.INEXACT | Flags.INVALID),
    ):
        assert environment.evaluate(bits.vecdot, big, ones, "float16", amp("half")) == code
        assert environment.status.flags == flags
    single = bits.vecdot(big, ones, "float16", amp("float", out_format="float32"))
    assert bits.decode(single[0], "float32") == 120000


def test_evaluate_passes_counts_on() -> None:
    environment = Environment()
    result = environment.evaluate(bits.vecdot, [0x6800, ONE], [ONE, ONE], "float16", fma("float16"), count=True)
    assert int(result[0]) == 0x6800
    assert int(result[1].swamped) == 1
    with (
        softfloat.environment(traps="OVERFLOW") as trapping,
        pytest.raises(softfloat.FloatingPointTrap, match="vecdot"),
    ):
        trapping.evaluate(bits.vecdot, [0x7BFF, 0x7BFF], [ONE, ONE], "float16", fma("float16"))


# -- long runs -------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_runs_show_their_progress(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    monkeypatch.setattr(engine.Progress, "PATIENCE", 0.0)
    monkeypatch.setattr(workers, "PIECE", 1)
    monkeypatch.setenv("TERM", "xterm")
    for count in (1, 2):
        softfloat.set_num_threads(count)
        for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
            monkeypatch.setattr("sys.stderr", stream)
            bits.matmul(normal(60, 40), normal(40, 600), "float16", fma("float16"))
            assert ("softfloat" in stream.getvalue()) == shown


def test_an_interrupt_loses_nothing_and_leaves_nobody_behind(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    softfloat.set_num_threads(2)
    monkeypatch.setattr(workers, "PIECE", 1)
    monkeypatch.setattr(workers, "SMALLEST_SHARE", 1)
    taken = []
    interrupted = threading.Event()

    def advance(progress: Any) -> None:
        taken.append(threading.current_thread())
        if threading.current_thread() is not threading.main_thread():
            interrupted.wait(10)
        elif len(taken) > 3:
            interrupted.set()
            raise KeyboardInterrupt

    monkeypatch.setattr(engine.Progress, "advance", advance)
    out = np.full((200, 600), 7, np.uint16)
    with pytest.raises(KeyboardInterrupt):
        bits.matmul(normal(200, 40), normal(40, 600), "float16", fma("float16"), out=out)
    before = len(taken)
    assert (out == 7).all()
    assert len(taken) == before < 100


# -- descriptions ----------------------------------------------------------------------------------------------------


def test_poplar_options() -> None:
    half = from_poplar_options({"partialsType": "half"})
    assert half == amp("half", out_format="float16")
    assert from_poplar_options({}) == amp("float", out_format="float16")
    assert from_poplar_options({"partialsType": "half"}, out_format="float32").partials == float32
    quiet = from_poplar_options({"partialsType": "half", "disableSRForAMPVertices": "true"})
    assert quiet.store is not None
    assert quiet.store.rounding is not None
    assert half.store is not None
    assert half.store.rounding is None
    for count, depths in ((15, ()), (16, (4,)), (124, (11,)), (125, (25, 5)), (1000, (100, 10))):
        split = from_poplar_options({}, splits=count)
        assert tuple(level.sections for level in split.reduction[:-1]) == depths
    flat = from_poplar_options({"enableMultiStageReduce": False}, splits=100)
    assert len(flat.reduction) == 1
    planned = from_poplar_options({"availableMemoryProportion": 0.3, "partialsType.interTile": "half"}, splits=16)
    stored = planned.reduction[0].store
    assert stored is not None
    assert stored.format == float16
    for options, message in (
        ({"partialType": "half"}, "options has 'partialType'"),
        ({"partialsType": "quarter"}, "'half' or 'float'"),
        ({"disableSRForAMPVertices": "yes"}, "True, False, 'true' or 'false'"),
    ):
        with pytest.raises(ValueError, match=message):
            from_poplar_options(options)


def test_splits_are_summed_apart() -> None:
    """2048 + 1 + ... + 1 (half partials): one chain loses the ones, two parts do not."""
    a = np.concatenate([np.full(16, 0x5800, np.uint16), np.full(16, 0x2C00, np.uint16)])  # 16 * 128, 16 / 16
    ones = np.full(32, ONE, np.uint16)
    alone = from_poplar_options({"partialsType": "half"}, out_format="float16")
    split = from_poplar_options({"partialsType": "half", "partialsType.interTile": "half"}, splits=2)
    assert bits.decode(bits.vecdot(a, ones, "float16", alone)[0], "float16") == 2048
    codes, _ = bits.vecdot(a, ones, "float16", split.replace(result="float32"))
    assert bits.decode(codes, "float32") == 2049


def test_every_preset_says_what_it_does() -> None:
    for name, row in accumulators.PRESETS.items():
        made = eval(row.example, vars(accumulators))
        assert made.source == row.source
        assert made.describe().startswith(made.name)
        assert eval(repr(made), vars(accumulators)) == made, name
        assert hash(made) == hash(made.replace())
        bits.vecdot(np.zeros(5, int), np.zeros(5, int), made.inputs[0] if made.inputs else "float16", made)


# -- refusals --------------------------------------------------------------------------------------------------------

HALVES = np.zeros((4, 4), np.uint16)
CHAIN = fma("float16")
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: bits.matmul(HALVES, HALVES[:3], "float16", CHAIN),
        ValueError,
        r"shapes do not fit: a \(4, 4\), b \(3, 4\)",
    ),
    (lambda: bits.matmul(HALVES, 1, "float16", CHAIN), ValueError, "must not be scalars"),
    (lambda: bits.vecdot(HALVES, HALVES[:3], "float16", CHAIN), ValueError, "shapes do not fit"),
    (lambda: bits.vecdot(1, 1, "float16", CHAIN), ValueError, "an axis to sum over"),
    (lambda: bits.matmul(HALVES, HALVES, "float16", CHAIN, HALVES[:3]), ValueError, "c of shape"),
    (lambda: bits.matmul(HALVES, HALVES, "float16", CHAIN, HALVES + 1.5), TypeError, "c must be codes of"),
    (
        lambda: bits.matmul(HALVES, HALVES, "float16", "float16"),
        TypeError,
        "accumulator must be a softfloat.Accumulator",
    ),
    (lambda: bits.matmul(HALVES, HALVES, ("float16",), CHAIN), ValueError, "fmt must be a format or a pair"),
    (lambda: bits.matmul(HALVES, HALVES, "float16", vdpbf16ps()), ValueError, "fmt must be 'bfloat16' for vdpbf16ps"),
    (lambda: bits.matmul(HALVES, HALVES, "float16", CHAIN, rounding="stochastic"), ValueError, "needs a seed"),
    (lambda: bits.matmul(HALVES, HALVES, "float16", CHAIN, random_bits=HALVES), ValueError, "takes a seed"),
    (
        lambda: bits.matmul(
            HALVES, HALVES, "float16", CHAIN, rounding="stochastic", seed=1, generator="xoroshiro128aox"
        ),
        ValueError,
        "generator must be 'philox4x32' for dot products",
    ),
    (lambda: bits.matmul(HALVES, HALVES, "float16", CHAIN, out=HALVES[:3].copy()), ValueError, "out must be an array"),
    (lambda: bits.matmul(HALVES, HALVES, "float16", CHAIN, count=1), TypeError, "count must be True or False"),
    (lambda: bits.matmul(HALVES, HALVES, "float16", CHAIN, rouding="RTZ"), TypeError, "unknown option 'rouding'"),
    (lambda: bits.matmul(HALVES, HALVES, "float16", CHAIN, out_format="e8m0"), ValueError, "must have a zero"),
    (lambda: bits.sum(HALVES, "float16", CHAIN, 2), ValueError, "axis must be None or an integer from -2 to 1"),
    (lambda: bits.cumsum(HALVES, "float16", amp("half"), 0), ValueError, "one number at a time"),
    (
        lambda: bits.vecdot(
            HALVES, HALVES, "float16", CHAIN.replace(segments=9, reduction=(Reduction(Stage("float32")),))
        ),
        ValueError,
        "segments of .* are 9, more than the 4 products",
    ),
    (
        lambda: bits.vecdot(
            HALVES, HALVES, "float16", CHAIN.replace(segments=(1, 2), reduction=(Reduction(Stage("float32")),))
        ),
        ValueError,
        "are 3 products long, and k is 4",
    ),
    (lambda: tensor_core("V100", "float8_e4m3fn"), ValueError, "input must be one of 'float16' on V100"),
    (lambda: tensor_core("V100", "bfloat16"), ValueError, "input must be one of 'float16' on V100"),
    (lambda: tensor_core("P100"), ValueError, "arch must be one of 'A100'"),
    (lambda: tensor_core("A100", "bfloat16", "float16"), ValueError, "output must be 'float32'"),
    (lambda: tensor_core("A100", instruction="wgmma"), ValueError, "instruction must be 'mma.sync' on A100"),
    (lambda: amp("half", inputs="float32"), ValueError, "partials must be 'float32' for float32 inputs"),
    (lambda: amp("float", inputs="float8_e4m3fnuz"), ValueError, "partials must be 'float16'"),
    (lambda: amp("half", inputs="bfloat16"), ValueError, "inputs must be one of"),
    (lambda: amp("half", mode="fused"), ValueError, "mode must be one of 'exact', 'aligned', 'chained'"),
    (lambda: amp("half", rounding="toward_positive"), ValueError, "rounding must be"),
    (lambda: slic("half", window=5), ValueError, "window must be 3 or 4"),
    (lambda: chunked(0, "float16", "float32"), ValueError, "length must be at least 1"),
    (lambda: chunked(True, "float16", "float32"), TypeError, "length must be an integer"),
    (lambda: fma("float8_e8m0fnu"), ValueError, "must have a zero"),
    (lambda: fma(16), TypeError, "fmt must be a softfloat.Format"),  # type: ignore[arg-type]
    (lambda: CHAIN.replace(order=(0, 2)), ValueError, "permutation"),
    (lambda: CHAIN.replace(block=4, product=Stage("float16")), ValueError, "product must be None"),
    (lambda: CHAIN.replace(chains=2, tree=True), ValueError, "exclude each other"),
    (lambda: CHAIN.replace(segment=4), ValueError, "come with a reduction"),
    (lambda: CHAIN.replace(fraction_bits=60), ValueError, "fraction_bits must be 1 to 40"),
    (lambda: CHAIN.replace(fraction_bits=40, block=8192), ValueError, "53 bits or fewer"),
    (
        lambda: CHAIN.replace(fraction_bits=9, tree=True, product=Stage("float16")),
        ValueError,
        "tree has neither fraction_bits nor alignment",
    ),
    (lambda: CHAIN.replace(unpacked="float32"), ValueError, "unpacked needs fraction_bits"),
    (
        lambda: CHAIN.replace(unpacked="float32", fraction_bits=9, product=Stage("float16")),
        ValueError,
        "unpacked needs fraction_bits or alignment, and no product stage",
    ),
    (lambda: CHAIN.replace(store_every=4), ValueError, "store_every needs a store"),
    (
        lambda: chunked(4, chunked(2, "float16", "float16"), "float32"),
        ValueError,
        "inner must add .* which has segments of its own",
    ),
    (
        lambda: chunked(4, exact("float32"), "float32"),
        ValueError,
        r"inner must add .* adds all at once; for one rounding a chunk pass exact\('float32'\).replace\(block=4\)",
    ),
    (lambda: Alignment(0), ValueError, "terms must be at least 1"),
    (lambda: Alignment(41), ValueError, "terms must be 1 to 40, got 41"),
    (
        lambda: Alignment(9, cut="nearest_even"),
        ValueError,
        "cut must be one of 'toward_zero', 'toward_negative', 'to_odd'",
    ),
    (lambda: Alignment(9, zeros=300), ValueError, "zeros must be -200 to 200 or None"),
    (lambda: Alignment(9, limit=0), ValueError, "limit must be 1 to 500 or None"),
    (lambda: Alignment(9, sum=9), ValueError, "sum and addend come together"),
    (lambda: Alignment(9, sum=9, addend=9), ValueError, "must be None with includes_addend"),
    (lambda: Alignment(9, drop_addend_below=3), ValueError, "drop_addend_below needs sum and addend"),
    (lambda: Alignment(9, halves=True), ValueError, "halves need includes_addend=False"),
    (lambda: Alignment(9, sum_cut="to_odd"), ValueError, "sum_cut needs sum and addend, or halves"),
    (lambda: CHAIN.replace(alignment=9), TypeError, "alignment must be Alignment"),
    (lambda: CHAIN.replace(alignment=Alignment(9), fraction_bits=9), ValueError, "exclude each other"),
    (
        lambda: CHAIN.replace(alignment=Alignment(9, includes_addend=False)),
        ValueError,
        "needs sum and addend, or a block",
    ),
    (lambda: CHAIN.replace(block=3, alignment=Alignment(9, group=2)), ValueError, "block must be a multiple"),
    (
        lambda: CHAIN.replace(product=Stage("float16"), alignment=Alignment(9, zeros=0)),
        ValueError,
        "alignment of rounded products has neither",
    ),
    (
        lambda: CHAIN.replace(block=2, alignment=Alignment(9, group=2), unpacked="float32"),
        ValueError,
        "no part in groups",
    ),
    (
        lambda: bits.vecdot(HALVES, HALVES, "float16", CHAIN.replace(block=2, alignment=Alignment(9, group=2))),
        ValueError,
        "fmt must be formats whose products, 2 of them, add up in 53 bits",
    ),
    (
        lambda: CHAIN.replace(block=2, block_sum=Stage("float16"), alignment=Alignment(9)),
        ValueError,
        "block_sum needs includes_addend=False",
    ),
    (lambda: CHAIN.replace(block_sum=Stage("float16")), ValueError, "block_sum needs blocks of several products"),
    (lambda: CHAIN.replace(keeps_zero_sign=True), ValueError, "keeps_zero_sign needs blocks"),
    (lambda: CHAIN.replace(unsigned_zeros=True), ValueError, "unsigned_zeros needs a product stage"),
    (lambda: CHAIN.replace(scale_exponent=128), ValueError, "scale_exponent must be -127 to 127"),
    (lambda: CHAIN.replace(chains=2, store=Stage("float16")), ValueError, "have no store"),
    (lambda: CHAIN.replace(chains=2, block=0), ValueError, "tree and chains need blocks of a given length"),
    (lambda: rvbna(1), ValueError, "n must be at least 2"),
    (
        lambda: rvbna(4, "float16"),
        ValueError,
        "input must be 'bfloat16', 'float8_e4m3fn', 'float8_e5m2', got 'float16'",
    ),
    (lambda: amx("bfloat16", 3), ValueError, "tile must be a multiple of 2 up to 32"),
    (lambda: arm_bfdot(rounding="to_odd"), ValueError, "rounding must be"),
    (lambda: arm_bfdot(rounding="toward_zero"), ValueError, "rounding is that of ebf=True"),
    (lambda: arm_fp8dot(2), ValueError, "ways must be"),
    (lambda: arm_fp8dot(2, "float16", 16), ValueError, "lscale must be 0 to 15 for float16"),
    (lambda: amd_mfma("CDNA1", "tfloat32"), ValueError, "input must be one of .* on CDNA1"),
    (lambda: amd_mfma("CDNA4", "float16"), ValueError, "arch must be"),
    (lambda: CHAIN.replace(running="float16"), TypeError, "running must be Stage, got 'float16'"),
    (lambda: CHAIN.replace(reduction=Reduction(Stage("float16"))), TypeError, "reduction must be tuple or list"),
    (lambda: CHAIN.replace(inputs="float16"), TypeError, "inputs must be tuple or list"),
    (lambda: CHAIN.replace(name=5), TypeError, "name must be str"),
    (lambda: CHAIN.replace(daz=2), TypeError, "daz must be True, False or None"),
    (lambda: CHAIN.replace(result=None), TypeError, "result must be a softfloat.Format"),
    (lambda: Reduction("float16"), TypeError, "running must be Stage"),  # type: ignore[arg-type]
    (lambda: Stage("float16", overflow="clip"), ValueError, "overflow must be one of"),  # type: ignore[arg-type]
    (lambda: from_poplar_options(None), TypeError, "options must be Mapping"),  # type: ignore[arg-type]
    (lambda: from_poplar_options({"partialsType": None}), ValueError, "'half' or 'float', got None"),
    (lambda: from_poplar_options({"partialsType": ["half"]}), ValueError, "'half' or 'float'"),
    (lambda: from_poplar_options({}, splits=0), ValueError, "splits must be at least 1"),
    (lambda: from_poplar_options({}, splits=2.5), TypeError, "splits must be an integer"),  # type: ignore[arg-type]
    (lambda: from_poplar_options({}, stages=(3,)), ValueError, "need splits"),
    (lambda: bits.sum(np.zeros(4, np.uint32), "float32", amp("half")), ValueError, "fmt must be 'float16' for amp"),
    (lambda: bits.sum(np.uint16(0), "float16", CHAIN, 0), ValueError, "axis must be None for a scalar"),
    (lambda: bits.cumsum(HALVES, "float16", CHAIN.replace(order=(1, 0)), 0), ValueError, "in order and in one level"),
    (lambda: bits.cumsum(HALVES[:3], "float16", amp("float", mode="chained"), 0), ValueError, "in order"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


FIXED_EVERYWHERE = (
    (tensor_core("H100"), "rounding", "toward_positive"),
    (tensor_core("H100"), "rounding", "toward_zero"),  # which it does anyway
    (tensor_core("H100"), "overflow", "saturate"),
    (tensor_core("H100"), "nan", "x86"),
    (Accumulator(name="up", running=Stage(float32, rounding="toward_positive", daz=True)), "daz", False),
)


@pytest.mark.parametrize("k", [4, 300])
@pytest.mark.parametrize(("how", "name", "value"), FIXED_EVERYWHERE)
def test_an_option_that_every_stage_fixes_is_refused(how: Accumulator, name: str, value: Any, k: int) -> None:
    """But where the result is rounded once more, and as part of an environment."""
    a, b = np.full((2, k), 0x3C00, np.uint16), np.full((k, 2), 0x3C00, np.uint16)
    calls: list[Callable[..., Any]] = [
        lambda **o: bits.vecdot(a, a, "float16", how, **o),
        lambda **o: bits.matmul(a, b, "float16", how, **o),
        lambda **o: bits.sum(a, "float16", how, 1, **o),
    ]
    if how.name == "up":
        calls.append(lambda **o: bits.cumsum(a, "float16", how, 1, **o))
    message = f"^{name} has no effect in sums to float32 by .*, whose stages fix it; accepted: "
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call(**{name: value})
        codes, _ = call(environment=Environment(**{name: value}))
        np.testing.assert_array_equal(codes, call()[0])
    if name != "nan":
        bits.vecdot(a, a, "float16", how, out_format="float16", **{name: value})
    bits.vecdot(a, a, "float16", how, tininess="before")
