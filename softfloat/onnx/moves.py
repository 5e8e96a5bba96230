"""Nodes that round nothing: codes that move, elements that are compared and selected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from softfloat import bits
from softfloat.formats import Format
from softfloat.onnx.table import operator
from softfloat.onnx.tensors import Array, array_of, codes_of, dtype_of, element_format, format_of
from softfloat.onnx.unit import Call

__all__ = ["exactly", "looped"]


def _as_codes(call: Call, value: Any, found: dict[Any, Format]) -> Any:
    """An input with numbers of a format as their codes; enters which format codes of a dtype are of."""
    if isinstance(value, (list, tuple)):
        return [_as_codes(call, x, found) for x in value]
    fmt = format_of(value.dtype) if isinstance(value, np.ndarray) else None
    if fmt is None:
        if isinstance(value, np.ndarray) and value.dtype in found:
            call.refuse(f"integers of dtype {value.dtype} beside numbers in {found[value.dtype]} are not told apart")
        return value
    if found.setdefault(fmt.dtype, fmt) != fmt:
        call.refuse(f"{fmt} beside {found[fmt.dtype]} is not emulated; cast one of them")
    return codes_of(value, fmt)


def _as_arrays(value: Any, found: dict[Any, Format]) -> Any:
    if isinstance(value, list):
        return [_as_arrays(x, found) for x in value]
    known = found.get(value.dtype) if isinstance(value, np.ndarray) else None
    return value if known is None else array_of(np.ascontiguousarray(value).reshape(value.shape), known)


@operator(
    "moved",
    "Transpose Reshape Flatten Squeeze Unsqueeze Concat Split Slice Gather GatherElements GatherND Expand Tile Identity "
    "DepthToSpace SpaceToDepth Compress ReverseSequence Where CenterCropPad TensorScatter Shape Size "
    "SequenceConstruct SequenceAt SequenceInsert SequenceErase SequenceLength SequenceEmpty SplitToSequence "
    "ConcatFromSequence Optional OptionalGetElement OptionalHasElement Constant ConstantOfShape",
    native=True,
)
def moved(call: Call) -> tuple[Any, ...]:
    """ONNX's own implementation on the codes, as integers."""
    found: dict[Any, Format] = {}
    codes = [_as_codes(call, x, found) for x in call.inputs]
    return tuple(_as_arrays(x, found) for x in call.native(*codes))


@operator("moved", "Pad Trilu MaxUnpool", "What is put in is +0, or the number that the node names.", native=True)
def filled(call: Call) -> tuple[Any, ...]:
    """The same, with zeros between."""
    fmt = call.format
    if not fmt.zero:
        call.refuse(f"it puts in zeros, and {fmt} has none")
    if call.attributes.get("value"):
        call.refuse("a number as attribute is not in the format; write it as an input (operator set 11)")
    return moved(call)


@operator("moved", "ScatterElements ScatterND", "Those with a reduction are refused.", native=True)
def scattered(call: Call) -> tuple[Any, ...]:
    """The same, unless they compute."""
    reduction = call.attributes.get("reduction", b"none")
    if reduction not in ("none", b"none"):
        call.refuse(f"reduction={reduction!r} is not emulated; accepted: 'none'")
    return moved(call)


@operator("moved", "OneHot", "Indices of any type, without a fraction.", native=True)
def one_hot(call: Call) -> tuple[Any, ...]:
    """Two values, which move; where the one lies say integers."""
    indices, depth, values = call.inputs
    whole = [x if format_of(x.dtype) is None else x.astype(np.float32).astype(np.int64) for x in (indices, depth)]
    (chosen,) = call.native(*whole, np.array([0, 1]))
    return (values[chosen],)


@operator("moved", "Dropout", "Of inference: the input. With training_mode it is refused.")
def dropout(call: Call) -> tuple[Any, ...]:
    """The input, and a mask of ones."""
    training = call.given(2)
    if (training is not None and np.any(training)) or (call.version < 7 and not call.attributes.get("is_test", 0)):
        call.refuse("training_mode is not emulated")
    x = call.inputs[0]
    mask = np.ones(x.shape, bool)
    return (x, mask if call.version >= 10 else mask.astype(x.dtype))[: call.outputs]


@operator("moved", "BitCast", "Codes as they are.")
def bit_cast(call: Call) -> tuple[Any, ...]:
    """The same memory under another type."""
    x = call.inputs[0]
    fmt = element_format(call.attributes["to"])
    wanted = dtype_of(fmt) if fmt else np.dtype(onnx.helper.tensor_dtype_to_np_dtype(call.attributes["to"]))
    if wanted.itemsize != x.dtype.itemsize or wanted.name == "float4_e2m1fn":
        call.refuse(f"from {x.dtype} to {wanted} is not emulated: types must be of 8, 16 or 32 bits, both the same")
    return (np.ascontiguousarray(x).reshape(x.shape).view(wanted),)


@operator("moved", "EyeLike", "Ones and zeros.")
def eye_like(call: Call) -> tuple[Any, ...]:
    """Ones on a diagonal."""
    x, dtype = call.inputs[0], call.attributes.get("dtype")
    wanted = x.dtype if dtype is None else onnx.helper.tensor_dtype_to_np_dtype(dtype)
    rows, columns = x.shape
    eye = np.eye(rows, columns, k=call.attributes.get("k", 0))
    fmt = format_of(np.dtype(wanted))
    return (eye.astype(wanted) if fmt is None else exactly(call, eye, fmt),)


# -- exact -----------------------------------------------------------------------------------------------------------


def exactly(call: Call, values: Any, fmt: Format) -> Array:
    """Numbers that a format has, as an array in it; refused where it has not."""
    quiet = np.where(np.isnan(values), np.nan, values)
    codes, flags = bits.encode(quiet, fmt, flags="any")
    if flags:
        call.refuse(f"its results are no numbers of {fmt}")
    return array_of(codes, fmt)


@operator(
    "exact",
    "Equal Less LessOrEqual Greater GreaterOrEqual IsNaN IsInf ArgMax ArgMin NonZero Sign Floor Ceil Round ReduceMax "
    "ReduceMin TopK Hardmax Unique",
    "Of NaNs, sign and payload do not stay.",
    native=True,
)
def widened(call: Call) -> tuple[Any, ...]:
    """ONNX's own implementation on float32, which has every number of narrower formats."""
    fmt = call.format
    found = call.native(*[x if x is None else call.single(i) for i, x in enumerate(call.inputs)])
    return tuple(exactly(call, x, fmt) if x.dtype.kind == "f" else x for x in found)


@operator("exact", "Neg", "The sign flipped, of NaNs too.")
def negative(call: Call) -> tuple[Any, ...]:
    """-x."""
    return (array_of(bits.negative(call.codes(0), call.format), call.format),)


@operator("exact", "Abs", "The sign cleared, of NaNs too.")
def absolute(call: Call) -> tuple[Any, ...]:
    """|x|."""
    return (array_of(bits.abs(call.codes(0), call.format), call.format),)


@operator("exact", "Relu", "What is below zero becomes +0; -0 and NaNs stay.")
def relu(call: Call) -> tuple[Any, ...]:
    """max(x, 0)."""
    fmt, codes = call.format, call.codes(0)
    if not fmt.zero:
        call.refuse(f"{fmt} has no zero")
    if not fmt.signed:
        return (call.inputs[0],)
    if fmt.infinities:  # NaNs lie beyond infinity
        lowest = fmt.dtype.type(fmt.sign_bit | fmt.inf_code)
        below = (codes > fmt.dtype.type(fmt.sign_bit)) & (codes <= lowest)
    else:
        below = (codes > fmt.dtype.type(fmt.sign_bit)) & ~np.asarray(bits.isnan(codes, fmt))
    return (array_of(np.where(below, fmt.dtype.type(0), codes), fmt),)


@operator("exact", "Clip", "x < min becomes min, then x > max max; NaNs and equal zeros stay.")
def clip(call: Call) -> tuple[Any, ...]:
    """Between limits; those given as attributes are rounded into the format."""
    fmt, codes = call.format, call.codes(0)
    x = call.single(0)
    for place, name in ((1, "min"), (2, "max")):
        if call.version < 11 and call.attributes.get(name) is not None:
            limit = call.run(bits.encode, np.float32(call.attributes[name]), fmt)
        elif call.given(place) is not None:
            limit = call.codes(place)
        else:
            continue
        bound = array_of(limit, fmt).astype(np.float32)
        beyond = x < bound if name == "min" else x > bound
        codes, x = np.where(beyond, limit, codes), np.where(beyond, bound, x)
    return (array_of(codes, fmt),)


@operator("exact", "Max Min", "As `bits.maximum` and `bits.minimum`: a NaN if there is one, -0 below +0.")
def extreme(call: Call) -> tuple[Any, ...]:
    """Of all inputs, from the first on."""
    fmt = call.format
    function = bits.maximum if call.key.operator == "Max" else bits.minimum
    result = call.codes(0)
    for place in range(1, len(call.inputs)):
        result = call.run(function, result, call.codes(place), fmt)
    return (array_of(result, fmt),)


@operator("control", "If Loop Scan SequenceMap", native=True)
def control(call: Call) -> tuple[Any, ...]:
    """ONNX's own implementation, whose subgraphs are evaluated here; of Loop, `looped`."""
    return call.native(*call.inputs)


def looped(body: Any, context: Mapping[str, Any], limit: Any, go: Any, *carried: Any) -> tuple[Any, ...]:
    """Loop: values that go round, and what each turn hands out, stacked.

    ONNX's own implementation joins what is handed out instead of stacking it, and fails where there are no turns.
    """
    names, values = body.input_names, list(carried)
    handed: list[list[Any]] = [[] for _ in body.output_names[1 + len(values) :]]
    turn = 0
    while (go is None or bool(np.all(go))) and (limit is None or turn < int(np.asarray(limit).reshape(()))):
        first = {names[0]: np.array(turn, np.int64), names[1]: np.array(True)}
        go, *found = body.run(None, {**context, **first, **dict(zip(names[2:], values, strict=True))})
        values = found[: len(values)]
        for kept, x in zip(handed, found[len(values) :], strict=True):
            kept.append(np.asarray(x))
        turn += 1
    kinds = body.output_types[1 + len(values) :]
    return (*values, *[np.stack(kept) if kept else _nothing(kind) for kept, kind in zip(handed, kinds, strict=True)])


def _nothing(kind: Any) -> Array:
    """What no turn hands out."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)
    return np.zeros((0, *[x.dim_value for x in kind.tensor_type.shape.dim]), dtype)
