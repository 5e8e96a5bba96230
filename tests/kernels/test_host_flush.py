"""A host that flushes subnormals (as fast-math libraries set it for a whole thread) gets the same bits and flags."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numba
import numpy as np
import pytest
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from operands import CUSTOM, operands

import softfloat
from softfloat import ROSTER, Accumulator, Format, bits
from softfloat.accumulators import amp, exact, fma, mul_add, tensor_core, vdpbf16ps

pytestmark = pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="MXCSR is x86's")
FLUSH = 0x8040  # FTZ and DAZ
FORMATS = [ROSTER[name] for name in ("float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e8m0fnu")] + [CUSTOM[0]]


@intrinsic
def _exchange_mxcsr(context, value):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = ir.IntType(8).as_pointer()
        function = ir.FunctionType(ir.VoidType(), [pointer])
        place = builder.alloca(ir.IntType(32))
        address = builder.bitcast(place, pointer)
        builder.call(builder.module.declare_intrinsic("llvm.x86.sse.stmxcsr", (), function), [address])
        old = builder.load(place)
        builder.store(arguments[0], place)
        builder.call(builder.module.declare_intrinsic("llvm.x86.sse.ldmxcsr", (), function), [address])
        return old

    return types.uint32(types.uint32), codegen


@numba.njit
def exchange_mxcsr(value: int) -> int:
    return _exchange_mxcsr(np.uint32(value))


@contextmanager
def flushing() -> Iterator[None]:
    default = exchange_mxcsr(0x1F80)
    exchange_mxcsr(default | FLUSH)
    try:
        yield
    finally:
        exchange_mxcsr(default)


def results(fmt: Format, rounding: str) -> Results:
    random = np.random.default_rng(3)
    singles = random.integers(0, 2**32, 4000, dtype=np.uint32).view(np.float32)
    small_singles = random.integers(0, 2**23, 2000, dtype=np.uint32).view(np.float32)
    doubles = random.integers(0, 2**64, 4000, dtype=np.uint64).view(np.float64)
    small_doubles = random.integers(0, 2**52, 2000, dtype=np.uint64).view(np.float64)
    options = {"rounding": rounding, **({"seed": 1} if rounding == "stochastic" else {})}
    found = [bits.encode(x, fmt, **options) for x in (singles, small_singles, doubles, small_doubles)]
    for name, arity in {"add": 2, "mul": 2, "div": 2, "sqrt": 1, "fma": 3, "remainder": 2}.items():
        found.append(getattr(bits, name)(*operands(fmt, 2000, arity, 1), fmt, **options))
    if fmt.name == "float32":  # normal sums, of a few that are subnormal
        x, y = (random.standard_normal((2, 4096)) * 2.0**-110).astype(np.float32).view(np.uint32)
        y[::1500] = 1 << 19
        found += [function(x, y, fmt, **options) for function in (bits.add, bits.sub)]
        x, y = ((1 + random.integers(0, 8, (2, 4096)) * 2.0**-23) * 2.0**-126).astype(np.float32).view(np.uint32)
        found += [
            bits.sub(x, y, fmt, **options),
            bits.add(x, y ^ np.uint32(1 << 31), fmt, **options),
        ]  # subnormal, or zero
        x, y = (random.standard_normal((2, 4096)) * 2.0**-64).astype(np.float32).view(np.uint32)
        found += [bits.mul(x, y, fmt, **options), bits.div(x, y ^ np.uint32(0x7F << 23), fmt, **options)]
    for x in (singles, small_singles, small_singles[:64], doubles, small_doubles):
        with softfloat.environment(seed=1) as env:
            rounded = softfloat.round(x, fmt, rounding)
            found.append((rounded.view(f"u{rounded.itemsize}"), np.array(env.status.flags)))
    values = bits.decode(operands(fmt, 2000, 1, 2)[0], fmt).view(np.uint64)
    return [*found, (values, np.zeros(0))]


Results = list[tuple[np.ndarray, np.ndarray]]


def dot_results(how: Accumulator, fmt: Format) -> Results:
    """Matrix products of any bits, of subnormals, and of numbers whose products and sums are subnormal in float32."""
    random = np.random.default_rng(4)
    a, b = (operands(fmt, 1200, 1, seed)[0].reshape(shape) for seed, shape in ((5, (30, 40)), (6, (40, 30))))
    magnitude = fmt.dtype.type((1 << (fmt.bits - 1)) - 1)
    small = a & magnitude & fmt.dtype.type((2 << fmt.mantissa_bits) - 1)
    least = max(fmt.emin, -126) // 2
    near = bits.encode(random.standard_normal((40, 30)) * 2.0**least, fmt)[0]
    c = operands(how.partials, 900, 1, 7)[0].reshape(30, 30)
    pairs = [(a, b), (small, b), (near.T, near), (near.T, small.T)]
    batches = [np.stack([x for pair in pairs[1:] for x in (pair[n], pair[n][::-1])]) for n in (0, 1)]
    batched = [bits.matmul(*batches, fmt, how), bits.vecdot(batches[0][2], batches[1][2].T, fmt, how)]
    return batched + [bits.matmul(x, y, fmt, how, start) for x, y in pairs for start in (None, c)]


def both(call: Callable[[], Results]) -> None:
    threads = softfloat.get_num_threads()
    softfloat.set_num_threads(1)  # the register is the thread's own
    try:
        expected = call()
        with flushing():
            assert np.float64(5e-324) * np.float64(1) == 0
            found = call()
    finally:
        softfloat.set_num_threads(threads)
    for (codes, flags), (wanted, wanted_flags) in zip(found, expected, strict=True):
        assert np.array_equal(codes, wanted)
        assert np.array_equal(flags, wanted_flags)


@pytest.mark.parametrize("rounding", ["nearest_even", "toward_positive", "stochastic"])
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_same_bits(fmt: Format, rounding: str) -> None:
    both(lambda: results(fmt, rounding))


@pytest.mark.parametrize(
    ("how", "name"),
    [
        (fma("float16"), "float16"),
        (mul_add("bfloat16"), "bfloat16"),
        (fma("float32"), "float32"),
        (exact("float32"), "bfloat16"),
        (amp("half"), "float16"),
        (vdpbf16ps(), "bfloat16"),
        (tensor_core("A100", "bfloat16"), "bfloat16"),
        (tensor_core("H100", "tfloat32"), "tfloat32"),
    ],
    ids=str,
)
def test_same_sums(how: Accumulator, name: str) -> None:
    both(lambda: dot_results(how, ROSTER[name]))


@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "mxfp4_e2m1", "mxint8", "nvfp4"])
def test_blocks(fmt: str) -> None:
    """Scales and elements of numbers that are subnormal, of others whose scaled values are, and of both in one block."""
    random = np.random.default_rng(4)
    small = random.integers(0, 2**23, 640, dtype=np.uint32).view(np.float32)
    anything = random.integers(0, 0x7F000000, 640, dtype=np.uint32).view(np.float32)
    mixed = np.where(np.arange(640) % 32 < 3, anything, small)
    rules = ("te", "torchao") if fmt == "nvfp4" else ("floor", "even", "rceil", "nearest_log2")

    squares = (random.normal(size=640) * 2.0**-72).astype(np.float32)  # of their errors

    def found() -> list[np.ndarray]:
        blocks = [bits.quantize(x, fmt, rule) for x in (small, anything, mixed) for rule in rules]
        if fmt == "nvfp4":
            blocks += [bits.quantize(x, fmt, four_over_six="mse") for x in (mixed, squares)]
        values = [bits.dequantize(made).view(np.uint64) for made, _ in blocks]
        return [*values, *(x for made, flags in blocks for x in (made.elements, made.scales, flags))]

    expected = found()
    with flushing():
        flushed = found()
    for x, y in zip(flushed, expected, strict=True):
        np.testing.assert_array_equal(x, y)
