"""Casts, and quantisation with scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from softfloat import bits
from softfloat.environments import InfiniteInput, Overflow, Rounding
from softfloat.formats import Format, float32
from softfloat.onnx.table import operator
from softfloat.onnx.tensors import Array, array_of, codes_of, element_format, format_of
from softfloat.onnx.unit import Call
from softfloat.status import Flags

__all__: list[str] = []

SATURATED = {"overflow": Overflow.SATURATE, "infinite_input": InfiniteInput.SATURATE}
UNSATURATED = {"overflow": Overflow.INFINITY, "infinite_input": InfiniteInput.KEEP}
SCALE_ROUNDINGS = {"up": Rounding.TOWARD_POSITIVE, "down": Rounding.TOWARD_ZERO, "nearest": Rounding.NEAREST_EVEN}
MINUS_ZERO = 0x8  # of float4_e2m1fn, which has no NaN: what ONNX's data have for one

RULES = (
    "Into 8 bits, `saturate` (default 1) decides about overflow and infinities before the environment does, and without it "
    "float8_e4m3fn has -NaN below its range; into "
    "float4_e2m1fn it always saturates, and a NaN becomes -0; float8_e8m0fnu rounds as `round_mode` says (default up), and "
    "with `saturate` zero and what lies below its range becomes 2^-127. To integers: toward zero; what does not fit, which "
    "ONNX leaves open, is saturated in 8 bits and more, and of 2 and 4 bits has the lowest bits of the integer, as ONNX's "
    "own tests have it (of infinities and NaN 0). To wider formats: exact. Strings are refused."
)


@operator("cast", "Cast", RULES)
def cast(call: Call) -> tuple[Any, ...]:
    """To the type that an attribute names."""
    return (converted(call, call.inputs[0], call.attributes["to"]),)


@operator("cast", "CastLike", "As Cast, to the type of the second input.")
def cast_like(call: Call) -> tuple[Any, ...]:
    """To the type of another tensor."""
    return (converted(call, call.inputs[0], onnx.helper.np_dtype_to_tensor_dtype(call.inputs[1].dtype)),)


def converted(call: Call, x: Array, element: int) -> Array:
    """An array in another element type."""
    if element == onnx.TensorProto.STRING or x.dtype.kind in "OUS":
        call.refuse("casts of strings are not emulated")
    source, target = format_of(x.dtype), element_format(element)
    if target is not None:
        return x if source == target else into(call, x, target)
    wanted = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(element))
    assert source is not None
    if wanted.kind == "f":
        return x.astype(wanted)
    codes = codes_of(x, source)
    if wanted.kind == "b":
        return np.asarray(~np.asarray(bits.iszero(codes, source)))
    if not is_integer(wanted):
        call.refuse(f"casts from {source} to {wanted} are not emulated")
    to_integer = bits.to_integer if wanted.kind in "iu" else to_lowest_bits
    return np.asarray(call.run(to_integer, codes, source, wanted, changed={"rounding": Rounding.TOWARD_ZERO}))


def to_lowest_bits(codes: Any, fmt: Format, dtype: Any, **options: Any) -> tuple[Array, Any]:
    """As `bits.to_integer`, but what does not fit, which is invalid there and here, has the lowest bits of the integer."""
    low, high = limits_of(dtype)
    each = options.pop("flags") == "each"
    whole, raised = map(np.asarray, bits.to_integer(codes, fmt, np.int64, flags="each", **options))
    raised = np.where((whole < low) | (whole > high), raised.dtype.type(Flags.INVALID), raised)
    beyond = ~(np.abs(np.asarray(bits.decode(codes, fmt))) < 2.0**63)  # multiples of 16, infinities, NaN
    return np.where(beyond, 0, whole).astype(np.int8).astype(dtype), raised if each else np.bitwise_or.reduce(
        raised, None
    )


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is one of integers, those of ml_dtypes among them."""
    return dtype.kind in "iu" or (dtype.kind == "V" and dtype.name.startswith(("int", "uint")))


def limits_of(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The smallest and the largest integer of a dtype, of those of ml_dtypes too."""
    import ml_dtypes

    limits = ml_dtypes.iinfo(dtype) if dtype.kind == "V" else np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def into(call: Call, x: Any, target: Format) -> Array:
    """Numbers rounded into a format, by the rules above."""
    saturates = bool(call.attributes.get("saturate", 1))
    if not target.zero:
        return _into_scales(call, x, target, saturates)
    if target.spec.width <= 4:
        codes = call.run(bits.encode, x, target, changed=SATURATED)
        missing = np.isnan(np.asarray(x, np.float32)) if np.asarray(x).dtype.kind not in "iub" else np.False_
        return array_of(np.where(missing, target.dtype.type(MINUS_ZERO), codes), target)
    changed = None if target.spec.width > 8 else SATURATED if saturates else UNSATURATED
    codes = call.run(bits.encode, x, target, changed=changed)
    if changed is UNSATURATED and target.nan == "fn":  # ONNX's table: below the range -NaN
        beyond = np.asarray(bits.isnan(codes, target)) & (np.asarray(x, np.float32) < 0)
        codes = np.where(beyond, target.dtype.type(target.sign_bit | target.nan_code), codes)
    return array_of(codes, target)


def _into_scales(call: Call, x: Any, target: Format, saturates: bool) -> Array:
    """Numbers as powers of two. float64 holds those of every type that is cast here."""
    mode = call.attributes.get("round_mode", b"up").decode()
    if mode not in SCALE_ROUNDINGS:
        call.refuse(f"round_mode={mode!r}; accepted: {', '.join(SCALE_ROUNDINGS)}")
    values = np.asarray(x).astype(np.float64)
    if saturates:
        values = np.where((values >= 0) & (values < target.smallest_normal), target.smallest_normal, values)
    changed = {"rounding": SCALE_ROUNDINGS[mode], **(SATURATED if saturates else UNSATURATED)}
    return array_of(call.run(bits.encode, values, target, changed=changed), target)


# -- scales ----------------------------------------------------------------------------------------------------------


def laid_out(call: Call, values: Array, shape: tuple[int, ...]) -> Array:
    """Scales or zero points in the shape of what they scale: for the whole, along an axis, or in blocks along it."""
    block, axis = int(call.attributes.get("block_size", 0)), int(call.attributes.get("axis", 1))
    if not values.ndim or values.size == 1:
        return values.reshape([1] * len(shape))
    axis %= len(shape)
    if block:
        return np.repeat(values, block, axis)[tuple(slice(n) for n in shape)]
    return values.reshape([-1 if i == axis else 1 for i in range(len(shape))])


PRECISIONS = ("FLOAT", "FLOAT16", "BFLOAT16")


def divided(call: Call, x: Array, scale: Array) -> Array:
    """x / scale in the precision that ONNX gives the division: what `precision` names, else the type of the scale."""
    named = call.attributes.get("precision", 0)
    fmt = element_format(named) if named else format_of(scale.dtype)
    if named and named not in [onnx.TensorProto.DataType.Value(name) for name in PRECISIONS]:
        call.refuse(f"precision={onnx.TensorProto.DataType.Name(named)}; accepted: {', '.join(PRECISIONS)}")
    if (
        fmt is None or fmt == float32 or not fmt.zero
    ):  # nothing is divided in integers and powers of two, which may scale
        with np.errstate(all="ignore"):
            return x.astype(np.float32) / scale.astype(np.float32)
    codes = [
        codes_of(array, fmt) if format_of(array.dtype) == fmt else call.run(bits.encode, array, fmt)
        for array in (x, scale)
    ]
    return array_of(call.run(bits.div, *codes, fmt), fmt)


@operator(
    "cast",
    "QuantizeLinear",
    "x / scale in the type that `precision` names, by default that of the scale: in half and bfloat16 both are rounded into it, and then "
    "the quotient; else in float32, to nearest even. Then as Cast, or to the nearest even integer, plus the zero point, saturated.",
)
def quantize(call: Call) -> tuple[Any, ...]:
    """With a scale for the whole, for an axis, or for blocks."""
    x, zero = call.inputs[0], call.given(2)
    named = call.attributes.get("output_dtype", 0)
    wanted = zero.dtype if zero is not None else np.dtype(onnx.helper.tensor_dtype_to_np_dtype(named or 2))
    call.single(0), call.single(1)  # which refuse float64
    q = divided(call, x, laid_out(call, call.inputs[1], x.shape))
    target = format_of(wanted)
    if target is not None:
        if zero is not None and np.any(zero.astype(np.float32) != 0):
            call.refuse(f"a zero point other than 0 in {target} is not emulated")
        return (into(call, q, target),)
    if not is_integer(wanted):
        call.refuse(f"a result of {wanted} is not emulated")
    offset = 0.0 if zero is None else laid_out(call, zero.astype(np.float64), x.shape)
    whole = np.rint(np.nan_to_num(q.astype(np.float64), posinf=np.inf, neginf=-np.inf)) + offset
    return (np.clip(whole, *limits_of(wanted)).astype(np.int64).astype(wanted),)


@operator(
    "cast",
    "DequantizeLinear",
    "(x - zero point) * scale, rounded once into the type of the result; float32 to nearest even.",
)
def dequantize(call: Call) -> tuple[Any, ...]:
    """With a scale for the whole, for an axis, or for blocks."""
    x, zero = call.inputs[0], call.given(2)
    scale = call.inputs[1]
    named = call.attributes.get("output_dtype", 0)
    wanted = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(named)) if named else scale.dtype
    values = x.astype(np.float64)
    if zero is not None:
        values = values - laid_out(call, zero.astype(np.float64), x.shape)
    with np.errstate(all="ignore"):
        product = values * laid_out(call, scale.astype(np.float64), x.shape)  # exact: 32 and 24 bits at most
    target = format_of(wanted)
    if target is None:
        return call.refuse(f"a result of {wanted} is not emulated")
    return (product.astype(np.float32) if wanted == np.float32 else call.rounded(product, target),)
