"""Products and sums: by an accumulator, which rounds to the format at its end.

An addend (Gemm's C, a bias) is where a sum starts, in the format of partials. A `beta` other than 1 is a product of its own,
rounded into that format. With an `alpha` the sum stays in it, whose range it may need, until alpha * sum + C is rounded, once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from softfloat import bits
from softfloat.accumulators import Accumulator
from softfloat.formats import Format, float32
from softfloat.onnx.table import operator
from softfloat.onnx.tensors import Array, Codes, array_of
from softfloat.onnx.unit import Call

__all__ = ["axes_of", "mean", "multiplied", "padding_of"]


def partials(call: Call, codes: Codes, fmt: Format, how: Accumulator) -> Codes:
    """Codes in the accumulator's partials format; single has them all."""
    if how.partials == fmt:
        return codes
    if how.partials == float32:
        wide: Codes = bits.convert(codes, fmt, float32)[0]
        return wide
    return call.run(bits.convert, codes, fmt, how.partials)


def multiplied(
    call: Call, fmt: Format, a: Codes, b: Codes, c: Codes | None = None, beta: float = 1.0, alpha: float = 1.0
) -> Codes:
    """beta*c + alpha*(a @ b)."""
    how = call.unit.accumulator("matmul", fmt)
    wide, c_format = how.partials, fmt
    if beta == 0.0:
        c = None
    elif c is not None and beta != 1.0:
        factor = call.run(bits.encode, np.float32(beta), wide)
        c, c_format = call.run(bits.mul, c, factor, fmt, b_format=wide, out_format=wide), wide
    if alpha == 1.0:
        start = None if c is None else np.broadcast_to(partials(call, c, c_format, how), (*a.shape[:-1], *b.shape[-1:]))
        return call.run(bits.matmul, a, b, fmt, how, start, out_format=fmt)
    sums = call.run(bits.matmul, a, b, fmt, how, out_format=wide)
    factor = np.broadcast_to(call.run(bits.encode, np.float32(alpha), wide), np.shape(sums))
    if c is None:
        return call.run(bits.mul, sums, factor, wide, out_format=fmt)
    return call.run(bits.fma, sums, factor, np.broadcast_to(c, np.shape(sums)), wide, c_format=c_format, out_format=fmt)


@operator("sum", "MatMul", "k in order, by `matmul`.")
def matmul(call: Call) -> tuple[Any, ...]:
    """With the shapes of `numpy.matmul`."""
    return (array_of(multiplied(call, call.format, call.codes(0), call.codes(1)), call.format),)


@operator(
    "sum",
    "Gemm",
    "By `matmul`. C is where sums start; beta * C is rounded first, into the format of partials. With an alpha the sum "
    "stays in that format, and alpha * sum + C is rounded once.",
)
def gemm(call: Call) -> tuple[Any, ...]:
    """alpha * A' * B' + beta * C."""
    fmt, given = call.format, call.attributes
    if call.version < 7 and given.get("broadcast"):
        call.refuse("broadcast as an attribute is not emulated; convert the model to operator set 7 or later")
    a, b = call.codes(0), call.codes(1)
    a, b = a.T if given.get("transA") else a, b.T if given.get("transB") else b
    c = None if call.given(2) is None else call.codes(2)
    return (array_of(multiplied(call, fmt, a, b, c, given.get("beta", 1.0), given.get("alpha", 1.0)), fmt),)


# -- Einstein sums ---------------------------------------------------------------------------------------------------


@operator(
    "sum",
    "Einsum",
    "Of one operand a sum by `reduction`, of two a matrix product by `matmul`: summed letters in the order of the first "
    "operand. An ellipsis, repeated letters, and more operands are refused.",
)
def einsum(call: Call) -> tuple[Any, ...]:
    """Sums of products of labelled axes."""
    fmt = call.format
    text = call.attributes["equation"].decode().replace(" ", "")
    left, _, right = text.partition("->")
    terms = left.split(",")
    output = right if "->" in text else "".join(sorted(x for x in set(left) if x != "," and left.count(x) == 1))
    if "." in text or len(terms) > 2 or any(len(set(x)) < len(x) for x in (*terms, output)):
        call.refuse(
            f"the equation {text!r} is not emulated; accepted: one or two operands, each letter once in each, no ellipsis"
        )
    codes = [call.codes(place) for place in range(len(terms))]
    if len(terms) == 1:
        summed_axes = [i for i, x in enumerate(terms[0]) if x not in output]
        result = summed(call, fmt, codes[0], summed_axes) if summed_axes else codes[0]
        rest = [x for x in terms[0] if x in output]
        return (array_of(result.transpose([rest.index(x) for x in output]), fmt),)
    alone = [[i for i, x in enumerate(term) if x not in other + output] for term, other in (terms, terms[::-1])]
    for place, lonely in enumerate(alone):
        if lonely:  # summed over one operand alone: first of all
            codes[place] = summed(call, fmt, codes[place], lonely)
            terms[place] = "".join(x for i, x in enumerate(terms[place]) if i not in lonely)
    sizes = {x: n for term, found in zip(terms, codes, strict=True) for x, n in zip(term, found.shape, strict=True)}
    batch = [x for x in terms[0] if x in terms[1] and x in output]
    inner = [x for x in terms[0] if x in terms[1] and x not in output]
    rows = [x for x in terms[0] if x not in terms[1]]
    columns = [x for x in terms[1] if x not in terms[0]]

    def laid_out(place: int, *groups: list[str]) -> Codes:
        order = [terms[place].index(x) for group in groups for x in group]
        shape = [sizes[x] for x in batch] + [math.prod(sizes[x] for x in group) for group in groups[1:]]
        return codes[place].transpose(order).reshape(shape)

    product = multiplied(call, fmt, laid_out(0, batch, rows, inner), laid_out(1, batch, inner, columns))
    made = [*batch, *rows, *columns]
    shaped = np.reshape(product, [sizes[x] for x in made])
    return (array_of(np.ascontiguousarray(shaped.transpose([made.index(x) for x in output])), fmt),)


# -- sums ------------------------------------------------------------------------------------------------------------


def axes_of(call: Call, rank: int) -> list[int]:
    """The axes of a reduction, as attribute or input; all where none are named, unless the node says that means none."""
    named = call.given(1) if call.given(1) is not None else call.attributes.get("axes")
    if named is None or len(named) == 0:
        return [] if call.attributes.get("noop_with_empty_axes", 0) else list(range(rank))
    axes = [int(x) for x in named]
    for axis in axes:
        if not -rank <= axis < rank:
            raise ValueError(f"node {call.key.name!r}: axes must be from {-rank} to {rank - 1}, got {axis}")
    return sorted({x % rank for x in axes})


def summed(
    call: Call, fmt: Format, codes: Codes, axes: Sequence[int], keep: bool = False, out_format: Format | None = None
) -> Codes:
    """Sums over some axes, in C order of those."""
    how = call.unit.accumulator("reduction", fmt)
    kept = [axis for axis in range(codes.ndim) if axis not in axes]
    length = math.prod(codes.shape[axis] for axis in axes)
    shape = [codes.shape[axis] for axis in kept]
    flat = codes.transpose([*axes, *kept]).reshape(length, math.prod(shape))
    result = call.run(bits.sum, flat, fmt, how, 0, out_format=out_format or fmt)
    return np.reshape(result, [1 if x in axes else n for x, n in enumerate(codes.shape)] if keep else shape)


def mean(call: Call, fmt: Format, codes: Codes, axes: Sequence[int], keep: bool) -> Array:
    """Means over some axes."""
    how = call.unit.accumulator("reduction", fmt)
    totals = summed(call, fmt, codes, axes, keep, how.partials)
    count = math.prod(codes.shape[axis] for axis in axes)
    with np.errstate(all="ignore"):
        quotient = np.asarray(bits.decode(totals, how.partials)).astype(np.float32) / np.float32(count)
    return call.rounded(quotient, fmt)


@operator("sum", "ReduceSum", "By `reduction`, in C order of the axes.")
def reduce_sum(call: Call) -> tuple[Any, ...]:
    """Over axes."""
    fmt, codes = call.format, call.codes(0)
    axes = axes_of(call, codes.ndim)
    if not axes and codes.ndim:
        return (call.inputs[0],)
    return (array_of(summed(call, fmt, codes, axes, bool(call.attributes.get("keepdims", 1))), fmt),)


@operator(
    "sum",
    "ReduceMean",
    "The sum by `reduction`, in its partials; divided by the count in float32, which rounds to nearest even; rounded to "
    "the format.",
)
def reduce_mean(call: Call) -> tuple[Any, ...]:
    """Over axes."""
    codes = call.codes(0)
    axes = axes_of(call, codes.ndim)
    if not axes and codes.ndim:
        return (call.inputs[0],)
    return (mean(call, call.format, codes, axes, bool(call.attributes.get("keepdims", 1))),)


@operator("sum", "GlobalAveragePool", "As ReduceMean over the spatial axes.")
def global_average_pool(call: Call) -> tuple[Any, ...]:
    """Over all axes but the first two."""
    codes = call.codes(0)
    return (mean(call, call.format, codes, range(2, codes.ndim), True),)


@operator("sum", "CumSum", "By `reduction`, one number after the other: each sum rounded to the format on its way out.")
def cumulative_sum(call: Call) -> tuple[Any, ...]:
    """Along one axis."""
    fmt, codes = call.format, call.codes(0)
    axis = int(np.asarray(call.inputs[1]).reshape(()))
    backward, exclusive = call.attributes.get("reverse", 0), call.attributes.get("exclusive", 0)
    turned = np.flip(codes, axis) if backward else codes
    if exclusive and codes.shape[axis]:
        turned = np.delete(turned, -1, axis)
    result = np.asarray(
        call.run(bits.cumsum, turned, fmt, call.unit.accumulator("reduction", fmt), axis, out_format=fmt)
    )
    if exclusive and codes.shape[axis]:
        if not fmt.zero:
            call.refuse(f"{fmt} has no zero, where exclusive sums start")
        first = np.zeros([1 if i == axis % codes.ndim else n for i, n in enumerate(codes.shape)], fmt.dtype)
        result = np.concatenate([first, result], axis)
    return (array_of(np.ascontiguousarray(np.flip(result, axis) if backward else result), fmt),)


# -- convolutions ----------------------------------------------------------------------------------------------------

Pairs = list[tuple[int, int]]


def padding_of(
    call: Call, sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> Pairs:
    """Zeros (before, after) each spatial axis, from `pads` or `auto_pad`."""
    name = call.attributes.get("auto_pad", b"NOTSET").decode()
    if name == "VALID":
        return [(0, 0)] * len(sizes)
    if name in ("SAME_UPPER", "SAME_LOWER"):
        pairs = []
        for size, window, step, spread in zip(sizes, kernel, stride, dilation, strict=True):
            reach = (window - 1) * spread + 1
            whole = max((-(-size // step) - 1) * step + reach - size, 0)
            half = whole // 2 if name == "SAME_UPPER" else whole - whole // 2
            pairs.append((half, whole - half))
        return pairs
    if name != "NOTSET":
        call.refuse(f"auto_pad={name!r}; accepted: NOTSET, SAME_UPPER, SAME_LOWER, VALID")
    pads = call.attributes.get("pads") or [0] * (2 * len(sizes))
    if min(pads) < 0:
        call.refuse("negative pads are not emulated")
    return list(zip(pads[: len(sizes)], pads[len(sizes) :], strict=True))


class Convolved(NamedTuple):
    """What either convolution takes: operands, and where the kernel goes."""

    x: Codes
    weights: Codes
    stride: list[int]
    dilation: list[int]
    group: int

    @classmethod
    def of(cls, call: Call) -> Convolved:
        """Refused unless there are 1 or 2 spatial axes."""
        x, weights, given = call.codes(0), call.codes(1), call.attributes
        axes = x.ndim - 2
        if axes not in (1, 2) or weights.ndim != x.ndim:
            call.refuse(f"convolutions with 1 or 2 spatial axes are emulated, got {axes}")
        ones = [1] * axes
        return cls(x, weights, given.get("strides") or ones, given.get("dilations") or ones, given.get("group", 1))

    def padding(self, call: Call) -> Pairs:
        """Zeros (before, after) each spatial axis."""
        return padding_of(call, self.x.shape[2:], self.weights.shape[2:], self.stride, self.dilation)

    def run(self, call: Call, function: Callable[..., Any], pairs: Pairs, *shape: Sequence[int]) -> tuple[Any, ...]:
        """By a function of two spatial axes: of one, the other has length 1."""
        fmt, more = call.format, 4 - self.x.ndim
        how = call.unit.accumulator("convolution", fmt)
        start = None if call.given(2) is None else partials(call, call.codes(2), fmt, how)
        x, weights = (np.expand_dims(codes, 2) if more else codes for codes in (self.x, self.weights))
        whole = [(*sizes[:2], *[1] * more, *sizes[2:]) for sizes in shape]
        result = call.run(
            function, x, weights, *whole, fmt, how, start, groups=self.group, out_format=fmt, layout="NCHW",
            stride=(*[1] * more, *self.stride), dilation=(*[1] * more, *self.dilation), padding=(*[(0, 0)] * more, *pairs),
        )  # fmt: skip
        return (array_of(result[:, :, 0] if more else result, fmt),)


@operator(
    "sum",
    "Conv",
    "By `convolution`: kernel row, kernel column, input channel, channels fastest; padding takes part as +0. The bias is "
    "where sums start. One or two spatial axes.",
)
def convolution(call: Call) -> tuple[Any, ...]:
    """Without flipping the kernel."""
    convolved = Convolved.of(call)
    return convolved.run(call, bits.conv2d, convolved.padding(call))


@operator(
    "sum",
    "ConvTranspose",
    "As the gradient of Conv for its inputs: by `convolution`, over row and column of the flipped kernel and input "
    "channel; places between and around take part as +0. The bias is where sums start. One or two spatial axes.",
)
def transposed_convolution(call: Call) -> tuple[Any, ...]:
    """The gradient of a convolution for its inputs."""
    given, convolved = call.attributes, Convolved.of(call)
    x, weights, stride, dilation, group = convolved
    axes, kernel = x.ndim - 2, weights.shape[2:]
    more = given.get("output_padding") or [0] * axes
    name = given.get("auto_pad", b"NOTSET").decode()
    reach = [
        step * (n - 1) + (k - 1) * spread + 1
        for n, k, step, spread in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]
    if given.get("output_shape") or name in ("SAME_UPPER", "SAME_LOWER"):
        wanted = given.get("output_shape") or [n * step for n, step in zip(x.shape[2:], stride, strict=True)]
        wanted = list(wanted)[-axes:]
        cut = [r + extra - size for r, extra, size in zip(reach, more, wanted, strict=True)]
        halves = [total - total // 2 if name == "SAME_LOWER" else total // 2 for total in cut]
        if name == "NOTSET":
            halves = [total - total // 2 for total in cut]
        pairs = [(half, total - half) for half, total in zip(halves, cut, strict=True)]
    else:
        pairs = convolved.padding(call)
        wanted = [r + extra - sum(pair) for r, extra, pair in zip(reach, more, pairs, strict=True)]
    if any(min(pair) < 0 for pair in pairs) or any(extra >= step for extra, step in zip(more, stride, strict=True)):
        call.refuse("negative padding, and an output_padding of the stride or more, are not emulated")
    shape = (x.shape[0], weights.shape[1] * group, *wanted)
    return convolved.run(call, bits.conv2d_input_gradient, pairs, shape)
