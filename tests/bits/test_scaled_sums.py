"""Products of operands in block formats: against the oracle, and the laws that tie them to products without scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from softfloat import ROSTER, BlockFormat, bits
from softfloat.accumulators import Accumulator, Alignment, Reduction, Stage, chunked, exact, fma, tensor_core
from softfloat.bits import BlockCodes
from softfloat.positions import Position
from softfloat.reference import dots as oracle

F32, F16, BF16 = (ROSTER[name] for name in ("float32", "float16", "bfloat16"))
E2M1, E4M3, E5M2, E8M0 = (ROSTER[name] for name in ("float4_e2m1fn", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"))
ORDERS = ("scales_fused", "first_fused", "second_fused", "scales_added")


def block_format(element: Any, scale: Any, block: int) -> BlockFormat:
    return BlockFormat("drawn", element=element, scale=scale, block=block)


def drawn_codes(fmt: Any, shape: tuple[int, ...], random: np.random.Generator, kind: str) -> np.ndarray:
    """Any codes; or numbers near 1, zeros among them."""
    if kind == "any":
        return random.integers(0, 1 << fmt.bits, shape).astype(fmt.dtype)
    one = fmt.one_code
    step = max(1 << fmt.mantissa_bits, 1)
    near = np.clip(one + random.integers(-2 * step, 2 * step + 1, shape), 0, fmt.max_code)
    signed = near | np.where(random.random(shape) < 0.5, fmt.sign_bit, 0)
    return np.where(random.random(shape) < 0.1, 0, signed).astype(fmt.dtype)


def single_codes(shape: tuple[int, ...], random: np.random.Generator, kind: str) -> np.ndarray:
    if kind == "any":
        return random.integers(0, 1 << 32, shape, np.uint32)
    return (random.standard_normal(shape) * 4).astype(np.float32).view(np.uint32)


def repeated(examples: int) -> Callable[..., Any]:
    """The same examples in each run."""

    def decorate(check: Any) -> Any:
        quiet = settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        return seed(5)(quiet(check))

    return decorate


class Drawn:
    """Operands of three dot products with scales, and what the oracle takes of them."""

    def __init__(self, pair: Any, scales: Any, length: int, block: int, number: int, kinds: tuple[str, str]) -> None:
        random = np.random.default_rng(number)
        self.pair, self.scale_fmts, rows = pair, scales, 3
        self.c = single_codes((rows,), random, kinds[0])
        shape, blocks = (rows, length), (rows, -(-length // block))
        self.elements = [drawn_codes(fmt, shape, random, kinds[0]) for fmt in pair]
        self.scales = [drawn_codes(fmt, blocks, random, kinds[1]) for fmt in scales]
        self.operands = [
            BlockCodes(x, s, block_format(fmt, scale, block))
            for x, s, fmt, scale in zip(self.elements, self.scales, pair, scales, strict=True)
        ]
        self.spread = [np.repeat(s, block, axis=1)[:, :length] for s in self.scales]

    def row(self, i: int) -> tuple[Any, ...]:
        a, b = (x[i].tolist() for x in self.elements)
        return a, b, self.pair, tuple(x[i].tolist() for x in self.spread), self.scale_fmts

    def check(self, how: Accumulator, expected: Callable[..., tuple[int, int]], addend: bool, **options: Any) -> None:
        c = self.c if addend else None
        codes, flags = bits.vecdot_blocks(*self.operands, how, c, **options)
        found = zip(codes.tolist(), flags.tolist(), strict=True)
        for i, got in enumerate(found):
            wanted = expected(*self.row(i), c=int(self.c[i]) if addend else None, index=i, **options)
            assert got == wanted, (i, [hex(x) for x in (*got, *wanted)], self.row(i), hex(self.c[i]))


kinds = st.tuples(st.sampled_from(("any", "near")), st.sampled_from(("any", "near", "near")))
operands = st.sampled_from((E2M1, E4M3, E5M2))
numbers = st.integers(0, 2**32 - 1)
MODES = ("nearest_even", "toward_zero", "toward_positive", "to_odd", "toward_negative")


@repeated(60)
@given(operands, operands, st.sampled_from((E8M0, E4M3, F16)), st.integers(1, 40), st.integers(1, 9), numbers, kinds,
       st.booleans(), st.sampled_from(MODES))  # fmt: skip
def test_exact(
    a: Any, b: Any, scale: Any, length: int, block: int, number: int, kind: Any, addend: bool, mode: str
) -> None:
    drawn = Drawn((a, b), (scale, E8M0), length, block, number, kind)

    def expected(x: Any, y: Any, pair: Any, scales: Any, fmts: Any, **options: Any) -> tuple[int, int]:
        return oracle.scaled_exact(x, y, pair, scales, fmts, F32, **options)

    drawn.check(exact("float32"), expected, addend, rounding=mode)


@repeated(60)
@given(st.booleans(), st.booleans(), st.booleans(), st.integers(1, 3), numbers, kinds, st.booleans())
def test_block_scaled_tensor_cores(
    fp4: bool, first: bool, second: bool, blocks: int, number: int, kind: Any, addend: bool
) -> None:
    if fp4:
        pair, scale, block, instruction = (E2M1, E2M1), E4M3 if first else E8M0, 16 if second else 32, "mxf4nvf4"
    else:
        pair, scale, block, instruction = (E5M2 if first else E4M3, E5M2 if second else E4M3), E8M0, 32, "mxf8f6f4"
    drawn = Drawn(pair, (scale, scale), 32 * blocks, block, number, kind)

    def expected(*row: Any, **options: Any) -> tuple[int, int]:
        return oracle.scaled_core(*row, fp4, **options)

    drawn.check(tensor_core("B200", pair[0], instruction=instruction), expected, addend)


@repeated(60)
@given(operands, st.sampled_from(ORDERS), st.sampled_from((F32, BF16)), st.integers(1, 20), st.integers(1, 4), numbers, kinds,
       st.booleans(), st.sampled_from((*MODES, "stochastic")))  # fmt: skip
def test_scaled_chunks(
    a: Any, order: str, inner: Any, length: int, chunk: int, number: int, kind: Any, addend: bool, mode: str
) -> None:
    drawn = Drawn((a, E4M3), (F32, F32), length, 2 * chunk, number, kind)

    def expected(*row: Any, **options: Any) -> tuple[int, int]:
        return oracle.scaled_chunks(*row, chunk, inner, F32, order, **options)

    how = chunked(chunk, inner, "float32", scaling=order)
    drawn.check(how, expected, addend, rounding=mode, **({"seed": 3} if mode == "stochastic" else {}))


# -- laws ------------------------------------------------------------------------------------------------------------

ANY = (
    fma("float32"), exact("bfloat16"), tensor_core("B200", "float8_e4m3fn"), chunked(8, "float32", "float32", "first_fused"),
    fma("float32").replace(block=4, alignment=Alignment(20, zeros=-30)), fma("float32").replace(chains=3),
)  # fmt: skip


@pytest.mark.parametrize("how", ANY, ids=str)
def test_scales_of_one_say_nothing(how: Accumulator) -> None:
    drawn = Drawn((E4M3, E4M3), (E8M0, E8M0), 37, 8, 1, ("any", "near"))
    ones = [BlockCodes(x.elements, np.full_like(x.scales, E8M0.one_code), x.format) for x in drawn.operands]
    codes, flags = bits.vecdot_blocks(*ones, how)
    plain = bits.vecdot(*drawn.elements, "float8_e4m3fn", how)
    np.testing.assert_array_equal(codes, plain[0])
    np.testing.assert_array_equal(flags, plain[1])


@pytest.mark.parametrize("how", [x for x in ANY if x.alignment is None], ids=str)
def test_one_power_of_two_for_all_moves_the_sum(how: Accumulator) -> None:
    drawn = Drawn((E4M3, E4M3), (E8M0, E8M0), 48, 8, 2, ("near", "near"))
    powers = [np.full_like(x.scales, E8M0.one_code + n) for x, n in zip(drawn.operands, (9, -4), strict=True)]
    moved = [BlockCodes(x.elements, s, x.format) for x, s in zip(drawn.operands, powers, strict=True)]
    codes, _ = bits.vecdot_blocks(*moved, how)
    plain, _ = bits.vecdot(*drawn.elements, "float8_e4m3fn", how)
    np.testing.assert_array_equal(bits.decode(codes, how.partials), bits.decode(plain, how.partials) * 2.0**5)


def test_matrices_are_dot_products() -> None:
    random = np.random.default_rng(4)
    a, _ = bits.quantize(random.standard_normal((2, 3, 64)).astype(np.float32), "mxfp8_e4m3")
    b, _ = bits.quantize(random.standard_normal((64, 5)).astype(np.float32), "mxfp8_e5m2", axis=0)
    c = single_codes((5,), random, "near")
    how = tensor_core("B200", "float8_e4m3fn", instruction="mxf8f6f4")
    codes, flags = bits.matmul_blocks(a, b, how, c)
    assert codes.shape == flags.shape == (2, 3, 5)
    for n, i, j in np.ndindex(2, 3, 5):
        row = BlockCodes(a.elements[n, i], a.scales[n, i], a.format)
        column = BlockCodes(b.elements[:, j], b.scales[:, j], b.format)
        one = bits.vecdot_blocks(row, column, how, c[j])
        assert (codes[n, i, j], flags[n, i, j]) == one


def test_dequantised_products() -> None:
    """Under `exact`, what the exact product of decoded numbers rounds to."""
    random = np.random.default_rng(6)
    for fmt in ("mxfp4", "mxint8", "msfp12"):
        a, _ = bits.quantize(random.standard_normal((4, 64)).astype(np.float32), fmt)
        b, _ = bits.quantize(random.standard_normal((64, 4)).astype(np.float32), fmt, axis=0)
        codes, _ = bits.matmul_blocks(a, b, exact("float32"))
        exactly = bits.dequantize(a) @ bits.dequantize(b)  # few bits, so float64 is exact
        np.testing.assert_array_equal(codes.view(np.float32), exactly.astype(np.float32))


def test_tensor_scales_multiply_the_sum() -> None:
    random = np.random.default_rng(7)
    a, _ = bits.quantize(random.standard_normal((4, 64)).astype(np.float32), "nvfp4")
    b, _ = bits.quantize(random.standard_normal((64, 4)).astype(np.float32), "nvfp4", axis=0)
    c = single_codes((4, 4), random, "near")
    how = tensor_core("B200", "float4_e2m1fn", instruction="mxf4nvf4")
    bare = [BlockCodes(x.elements, x.scales, x.format, axis=x.axis) for x in (a, b)]
    total, _ = bits.matmul_blocks(*bare, how)
    assert a.tensor_scale is not None
    assert b.tensor_scale is not None
    alpha = a.tensor_scale * b.tensor_scale
    codes, flags = bits.matmul_blocks(a, b, how, c)
    np.testing.assert_array_equal(codes.view(np.float32), alpha * total.view(np.float32) + c.view(np.float32))
    assert bits.matmul_blocks(a, b, how, c, flags="any")[1] == int(np.bitwise_or.reduce(flags, axis=None))


# -- refusals --------------------------------------------------------------------------------------------------------

MX = bits.quantize(np.ones((4, 64), np.float32), "mxfp8_e4m3")[0]
MX_DOWN = bits.quantize(np.ones((64, 4), np.float32), "mxfp8_e4m3", axis=0)[0]
DEEP = bits.quantize(np.ones((4, 256), np.float32), BlockFormat("f", element=E4M3, scale=F32, block=128))[0]
NV = bits.quantize(np.ones((4, 64), np.float32), "nvfp4")[0]
LOOSE = BlockCodes(np.zeros(64, int), np.arange(8), block_format(E2M1, E4M3, 8))
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: bits.vecdot_blocks(MX.elements, MX, exact("float32")), TypeError, "a must be BlockCodes"),  # type: ignore[arg-type]
    (lambda: bits.vecdot_blocks(MX, DEEP, exact("float32")), ValueError, "shapes do not fit"),
    (
        lambda: bits.matmul_blocks(MX, MX, exact("float32")),
        ValueError,
        "b has blocks along axis 1, and the sum goes over axis 0",
    ),
    (lambda: bits.matmul_blocks(MX, LOOSE, exact("float32")), ValueError, "two axes or more"),
    (lambda: bits.vecdot_blocks(DEEP, DEEP, exact("float32")), ValueError, "28 bits together"),
    (
        lambda: bits.vecdot_blocks(LOOSE, LOOSE, tensor_core("B200", "float4_e2m1fn", instruction="mxf4nvf4")),
        ValueError,
        "change within products 0 to 15, a group",
    ),
    (
        lambda: bits.vecdot_blocks(DEEP, DEEP, chunked(256, "float32", "float32", "scales_fused")),
        ValueError,
        "change within products 0 to 255, a segment",
    ),
    (lambda: bits.vecdot_blocks(NV, NV, exact("bfloat16")), ValueError, "out_format must be 'float32'"),
    (lambda: bits.vecdot_blocks(NV, NV, exact("float32"), rounding="stochastic", seed=1), ValueError, "deterministic"),
    (lambda: bits.vecdot_blocks(MX, MX, tensor_core("H100")), ValueError, "a's elements must be 'float16'"),
    (lambda: chunked(8, "float32", "float32", "both"), ValueError, "scaling must be"),
    (lambda: tensor_core("B200", "float16", instruction="mxf8f6f4"), ValueError, "input must be .* for mxf8f6f4"),
    (lambda: tensor_core("H100", "float8_e5m2", instruction="mxf8f6f4"), ValueError, "instruction must be"),
    (
        lambda: fma("float32").replace(
            segments=4, reduction=(Reduction(Stage("float32"), 2), Reduction(Stage("float32"), scaling="first_fused"))
        ),
        ValueError,
        "scaling is that of the first level",
    ),
]
DEEP.scales[:, 1] += 1


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "how",
    [
        fma("float16"),
        tensor_core("B200", E4M3, instruction="mxf8f6f4"),
        chunked(32, "float16", "float32", scaling="scales_fused"),
    ],
)
def test_parts_of_a_product_draw_as_the_whole_does(how: Accumulator) -> None:
    """Rows and columns of operands in blocks, whose scales come with them."""
    random = np.random.default_rng(8)
    x, y = (random.standard_normal(shape).astype(np.float32) for shape in ((5, 64), (64, 9)))
    x *= np.exp2(random.integers(-9, 10, (5, 1))).astype(np.float32)  # scales that differ by rows, and by columns
    x[:, ::7] *= 2.0**-8
    y *= np.exp2(random.integers(-3, 4, 9)).astype(np.float32)
    a, b = (bits.quantize(v, "mxfp8_e4m3", axis=axis)[0] for v, axis in ((x, 1), (y, 0)))
    drawn: dict[str, Any] = {"rounding": "stochastic", "seed": 3, "out_format": "float16"}
    whole, _ = bits.matmul_blocks(a, b, how, **drawn)
    rows, columns = slice(1, 4), slice(2, 7)
    left = BlockCodes(a.elements[rows], a.scales[rows], a.format)
    right = BlockCodes(b.elements[:, columns], b.scales[:, columns], b.format, axis=0)
    part, _ = bits.matmul_blocks(left, right, how, position=Position((1, 2), (5, 9)), **drawn)
    np.testing.assert_array_equal(part, whole[rows, columns])
    upright = BlockCodes(b.elements[:, :5].T, b.scales[:, :5].T, b.format)
    summed, _ = bits.vecdot_blocks(a, upright, how, **drawn)
    some = [BlockCodes(v.elements[rows], v.scales[rows], v.format) for v in (a, upright)]
    np.testing.assert_array_equal(bits.vecdot_blocks(*some, how, position=Position(1), **drawn)[0], summed[rows])
