"""Dot and matrix products of operands in block formats, whose scales enter where the accumulator applies them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Unpack, cast

import numpy as np

from softfloat import engine
from softfloat.accumulators import Accumulator
from softfloat.bits.arithmetic import add, mul
from softfloat.bits.blocks.codes import BlockCodes, spread
from softfloat.bits.blocks.scales import product_of_scales, values_of
from softfloat.bits.blocks.ways import (
    Reals,
    flattened,
    serves_values,
)
from softfloat.bits.numbers import convert, encode
from softfloat.bits.sums.products import Contraction, check_accumulator, matmul, vecdot
from softfloat.blocks import Fixed
from softfloat.checks import check_shapes
from softfloat.engine import Codes, Options, block_units
from softfloat.engine.block_units import leading_power
from softfloat.engine.problems import Blocks, Problem, Scales, Spread
from softfloat.engine.products import random_of
from softfloat.engine.programs import Program, check_groups, check_inputs, segment_bounds
from softfloat.engine.ways import Place
from softfloat.formats import Format, float32

__all__ = ["matmul_blocks", "vecdot_blocks"]

MOST_BITS = 24
"""Of precision that the loops take in an element times its scale."""


@dataclass(frozen=True, eq=False)
class _Operand:
    """Codes of an operand and what they are coded in; its blocks, which have scales."""

    name: str
    codes: Codes
    fmt: Format
    blocks: BlockCodes
    axis: int  # that is summed over

    @property
    def bits(self) -> int:
        """Of precision that scales have."""
        return self.blocks.format.scale.p

    @property
    def tensor(self) -> np.float32 | None:
        """The tensor's scale."""
        return self.blocks.tensor_scale

    @property
    def length(self) -> int:
        """Of a block along the axis that is summed over."""
        return self.blocks.block_shape[self.axis]

    @cached_property
    def scales(self) -> Codes:
        """What the scale of each element stands for."""
        return self.blocks.spread(values_of(self.blocks.scales, self.blocks.format.scale))

    def at(self, products: Codes) -> Codes:
        """The same of the elements of some products alone."""
        block, shape = list(self.blocks.block_shape), list(self.blocks.shape)
        found = np.take(self.blocks.scales, products // self.length, self.axis)
        block[self.axis], shape[self.axis] = 1, products.size
        return spread(values_of(found, self.blocks.format.scale), tuple(block), tuple(shape))

    @cached_property
    def leads(self) -> Codes:
        """Its power of two."""
        scale = self.blocks.format.scale
        values = values_of(self.blocks.scales, scale)
        powers = leading_power(values, scale)
        return self.scales if np.array_equal(powers, values) else self.blocks.spread(powers)

    def matrix(self, number: int) -> Blocks | None:
        """The operand of a grid as a matrix that k goes down; None if it is none."""
        blocks, scale = self.blocks, self.blocks.format.scale
        if blocks.ndim not in (2, 3) or isinstance(blocks.format.element, Fixed):
            return None
        codes, scales = self.codes, blocks.scales
        if blocks.ndim == 3:
            if blocks.block_shape[0] > 1:
                return None
            at = number if len(codes) > 1 else 0
            codes, scales = codes[at], scales[at]
        height, width = blocks.block_shape[-2:]
        if self.axis == blocks.ndim - 2:
            return Blocks(codes, scales, self.fmt, scale, (height, width))
        return Blocks(codes.T, scales.T, self.fmt, scale, (width, height))


def _operand(blocks: Any, axis: int, name: str) -> _Operand:
    """An operand that is summed over `axis`, seen from the end."""
    if not isinstance(blocks, BlockCodes):
        raise TypeError(f"{name} must be BlockCodes, which bits.quantize makes, got {type(blocks).__name__}")
    axis = max(blocks.ndim + axis, 0)
    if blocks.block_shape[axis] == 1 and max(blocks.block_shape) > 1 and blocks.shape[axis] > 1:
        raise ValueError(
            f"{name} has blocks along axis {blocks.axis}, and the sum goes over axis {axis}: quantize it with axis={axis}"
        )
    element = blocks.format.element
    if isinstance(element, Fixed):
        codes = np.asarray(encode(element.values[blocks.elements], float32)[0])
        return _Operand(name, codes, float32, blocks, axis)
    return _Operand(name, blocks.elements, element, blocks, axis)


NAMES = "a", "b"
"""Of operands."""


@lru_cache(maxsize=512)
def _check_elements(how: Accumulator, formats: tuple[Format, Format]) -> None:
    """Refuse elements that the accumulator does not take."""
    for name, fmt in zip(NAMES, formats, strict=True):
        check_inputs(how, fmt, f"{name}'s elements")
    check_groups(how, formats, "elements of a and b")


@lru_cache(maxsize=512)
def _check_precision(how: Accumulator, bits: tuple[int, int]) -> None:
    """Refuse elements and scales of so many bits together, where products are not exact."""
    if how.reduction and how.reduction[0].scaling:
        return
    for name, together in zip(NAMES, bits, strict=True):
        if together > MOST_BITS + 1:
            raise ValueError(
                f"{name} has elements and scales of {together} bits together, and products of more "
                f"than {MOST_BITS} are not exact; accepted: accumulators that scale sums, such as chunked(128, ..., scaling=...)"
            )


class _Scaled(Contraction):
    """A call, its operands, and what happens to tensor scales."""

    def __init__(
        self, x: _Operand, y: _Operand, accumulator: Any, out_format: Format | str | None, options: Options
    ) -> None:
        self.tensor = [operand.tensor for operand in (x, y) if operand.tensor is not None]
        how = check_accumulator(accumulator)
        _check_elements(how, (x.fmt, y.fmt))
        if self.tensor:  # settings are those of the products with these, too
            options = cast(Options, engine.as_environment(options))
        super().__init__((x.fmt, y.fmt), how, out_format, False, options)
        if self.tensor and self.output != float32:
            raise ValueError(
                f"out_format must be 'float32' for operands with tensor scales, which multiply in it, got {self.output.name!r}"
            )
        _check_precision(how, (x.fmt.p + x.bits, y.fmt.p + y.bits))

    def check_shared(self, operand: _Operand, axis: int, planned: Program) -> None:
        """Refuse scales that change where the accumulator takes one: within a segment that they multiply, or a group."""
        how = self.accumulator
        if how.reduction and how.reduction[0].scaling:
            bounds, what = segment_bounds(how, planned.products), "segment"
        elif how.aligned is not None and operand.length % how.aligned.group:
            bounds, what = (*range(0, planned.products, how.aligned.group), planned.products), "group"
        else:  # groups that are within one block each
            return
        length = operand.length
        for start, stop in itertools.pairwise(bounds):
            if start // length == (stop - 1) // length:
                continue
            scales = np.moveaxis(operand.scales, axis, 0)
            if not np.array_equal(
                scales[start:stop], np.broadcast_to(scales[start], scales[start:stop].shape), equal_nan=True
            ):
                raise ValueError(
                    f"{operand.name} has scales that change within products {start} to {stop - 1}, a {what} of {how!r}, which takes one; "
                    "accepted: blocks that are whole ones long"
                )


def vecdot_blocks(
    a: BlockCodes,
    b: BlockCodes,
    accumulator: Accumulator,
    c: Any = None,
    *,
    out_format: Format | str | None = None,
    **options: Unpack[Options],
) -> tuple[Any, Any]:
    """Dot products over the last axis of operands in block formats.

    Scales multiply products, exactly and once: under `exact` the result is the correctly rounded DotGeneral of OCP MX. In
    blocks that are aligned their exponents count, as NVIDIA's `tensor_core("B200", ..., instruction="mxf8f6f4")` has it.
    A reduction with `scaling` multiplies the sums of its segments by them instead, which rounds (DeepSeek-V3, cuBLAS).

    Tensor scales multiply the sum without c at the end, in float32: their product, then it times the sum, then + c, each
    rounded as the options say.

    Parameters
    ----------
    a, b : BlockCodes
        Of shapes (..., k) that broadcast.
    accumulator : Accumulator
        How to sum. Fixed-point elements count as float32 numbers.
    c : array_like of int, optional
        Codes in the partials format, of a shape that broadcasts to the output's.
    out_format : Format or str, optional
        Of the output; default as the accumulator says.

    Returns
    -------
    codes : array of the output format's dtype
    flags : array of uint8, or int
        Everything the roundings of an output raised. A NaN scale is a quiet NaN of each of its elements.

    Raises
    ------
    ValueError, TypeError
        Naming the argument: shapes that do not fit, blocks along another axis, scales that change within a segment or group
        that takes one, elements and scales of more than 24 bits together.

    Source
    ------
    OCP Microscaling Formats 1.0, 6.1 and 6.2; Microsoft MMA-Sim for NVIDIA's; DeepGEMM and TransformerEngine for `scaling`.
    """
    x, y = _operand(a, -1, "a"), _operand(b, -1, "b")
    outer, length = check_shapes(a.shape, b.shape, matrices=False), a.shape[-1]
    count = math.prod(outer)

    def flat(values: Codes) -> Codes:
        return np.ascontiguousarray(
            np.broadcast_to(values, (*outer, values.shape[-1])).reshape(count, values.shape[-1]).T
        )

    def problems(start: Codes | None) -> list[Problem]:
        scales = Scales(
            lambda: Spread(*map(flat, (x.scales, y.scales, x.leads, y.leads))),
            lambda products: (flat(x.at(products)), flat(y.at(products))),
            (x.bits, y.bits),
        )
        first = None if start is None else start.reshape(1, count)
        return [Problem(flat(x.codes), flat(y.codes), first, True, 0, 0, 1, scales)]

    return _summed(x, y, (-1, -1), accumulator, c, out_format, options, outer, length, problems, vecdot)


def matmul_blocks(
    a: BlockCodes,
    b: BlockCodes,
    accumulator: Accumulator,
    c: Any = None,
    *,
    out_format: Format | str | None = None,
    **options: Unpack[Options],
) -> tuple[Any, Any]:
    """Matrix products of operands in block formats: a (..., m, k) and b (..., k, n), both in blocks along k.

    Parameters and results are those of `vecdot_blocks`, but for the shapes, which are those of `numpy.matmul` with two axes
    or more each.

    >>> from softfloat.accumulators import exact
    >>> from softfloat.bits import quantize
    >>> a, _ = quantize([[1.0, 2.0], [0.5, 6.0]], "mxfp4")
    >>> b, _ = quantize([[3.0], [4.0]], "mxfp4", axis=0)
    >>> codes, flags = matmul_blocks(a, b, exact("float32"))
    >>> codes.view("float32").tolist(), flags.tolist()
    ([[11.0], [25.5]], [[0], [0]])
    """
    x, y = _operand(a, -1, "a"), _operand(b, -2, "b")
    if x.codes.ndim < 2 or y.codes.ndim < 2:
        raise ValueError(f"a and b must have two axes or more, got shapes {a.shape} and {b.shape}")
    batch = check_shapes(a.shape, b.shape, matrices=True)
    rows, length, columns = x.codes.shape[-2], x.codes.shape[-1], y.codes.shape[-1]
    grids = math.prod(batch)

    def grid(values: Codes, shape: tuple[int, int]) -> Codes:
        return (np.broadcast_to(values, (*batch, *shape)) if batch else values).reshape(grids, *shape)

    def scales_of(n: int) -> Scales:
        def each() -> Spread:
            left = (grid(v, (rows, length))[n] for v in (x.scales, x.leads))
            right = (grid(v, (length, columns))[n] for v in (y.scales, y.leads))
            (of_a, leads_a), (of_b, leads_b) = left, right
            return Spread(of_a, of_b, leads_a, leads_b)

        def at(products: Codes) -> tuple[Codes, Codes]:
            count = products.size
            return grid(x.at(products), (rows, count))[n], grid(y.at(products), (count, columns))[n]

        left, right = (None, None) if len(batch) > 1 else (x.matrix(n), y.matrix(n))
        return Scales(each, at, (x.bits, y.bits), None if left is None or right is None else (left, right))

    def problems(start: Codes | None) -> list[Problem]:
        left, right = grid(x.codes, (rows, length)), grid(y.codes, (length, columns))
        first = None if start is None else start.reshape(grids, rows, columns)
        return [
            Problem(
                left[n], right[n], None if first is None else first[n], False, n * rows * columns, columns, 1, scales_of(n)
            )
            for n in range(grids)
        ]  # fmt: skip

    shape = (*batch, rows, columns)
    return _summed(x, y, (-1, -2), accumulator, c, out_format, options, shape, length, problems, matmul)


def _summed(
    x: _Operand,
    y: _Operand,
    axes: tuple[int, int],
    accumulator: Accumulator,
    c: Any,
    out_format: Format | str | None,
    options: Options,
    shape: tuple[int, ...],
    length: int,
    problems: Any,
    function: Callable[..., Any],
) -> tuple[Any, Any]:
    """The sums of a call, and tensor scales; `function` is what has the same shapes without scales."""
    call = _Scaled(x, y, accumulator, out_format, options)
    planned = call.program(length)
    for operand, axis in zip((x, y), axes, strict=True):
        call.check_shared(operand, axis, planned)
    addend = call.check_addend(c, shape)

    def sums(start: Codes | None) -> tuple[Any, Any]:
        found = _faster(call, x, y, start, options, function) or _at_once(call, planned, shape, lambda: problems(start))
        if found is None:
            found = call.run(problems(start), length, shape, [x.codes, y.codes])
        return found

    if not call.tensor:
        return sums(addend)
    if call.call.out is not None:
        raise ValueError("out is for operands without tensor scales, whose product with the sum is a new array")
    if call.call.whole.rounding.draws:
        raise ValueError(
            "rounding must be deterministic for operands with tensor scales: their product has no random address"
        )
    total, raised = sums(None)
    settings: dict[str, Any] = {"environment": call.call.whole, "flags": call.call.flags}
    scales = [np.float32(scale).view(np.uint32) for scale in call.tensor]
    seen = 0
    if len(scales) == 2:
        scales[0], seen = product_of_scales(scales[0], scales[1], call.call.whole)
    total, flags = mul(scales[0], total, float32, **settings)
    raised = raised | flags | np.uint8(seen)
    if addend is not None:
        total, flags = add(total, addend, float32, **settings)
        raised = raised | flags
    return total, raised if call.call.flags == "each" else int(raised)


# -- faster ways -----------------------------------------------------------------------------------------------------


def _at_once(
    call: _Scaled, planned: Program, shape: tuple[int, ...], problems: Callable[[], list[Problem]]
) -> tuple[Any, Any] | None:
    """One grid by the loops of units, if their codes and flags are what the caller wants; None if they are not, or do not serve it."""
    options, levels = call.call, call.accumulator.reduction
    other = planned.converts or planned.loses_signs or planned.draws or (levels and levels[0].scaling)
    if other or options.out is not None or options.position is not None or options.flags not in ("each", "any"):
        return None
    if len(shape) != 2 or not all(shape):
        return None
    call.check_idle(planned)
    (problem,) = problems()
    place, random = Place(0, shape[1], 1), random_of(options)
    found = None if problem.scales is None else block_units.run(planned, problem.scales, problem.c, place, random)
    if found is None or options.flags == "each":
        return found
    return found[0], int(np.bitwise_or.reduce(found[1], axis=None))


def _values(operand: _Operand) -> Reals:
    """Elements times scales, exactly."""
    with np.errstate(invalid="ignore"):
        return np.asarray(engine.decoded(operand.codes, operand.fmt) * operand.scales)


def _faster(
    call: _Scaled,
    x: _Operand,
    y: _Operand,
    start: Codes | None,
    options: Options,
    function: Callable[..., Any],
) -> tuple[Any, Any] | None:
    """What the loop that takes scales would return, by a way that serves this call; None if none does."""
    how = call.accumulator
    if serves_values(how, call.call.whole):
        a, b = flattened(_values(x)), flattened(_values(y))
        if a is None or b is None:
            return None
        fmt = float32 if float32 in (a[1], b[1]) else a[1]
        codes = [each if own == fmt else np.asarray(convert(each, own, fmt)[0]) for each, own in (a, b)]
        free = how.replace(inputs=()) if how.inputs else how
        found: tuple[Any, Any] = function(*codes, fmt, free, start, out_format=call.output, **options)
        return found
    return None
