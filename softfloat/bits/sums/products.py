"""Dot products, matrix products and sums of codes over an `Accumulator`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from softfloat import engine
from softfloat.accumulators import PRESETS, Accumulator
from softfloat.checks import check_shapes, check_whole, is_integer, nearest
from softfloat.engine import Call, Codes, Options, check_boolean, check_codes, small
from softfloat.engine import segments as cutting
from softfloat.engine.arguments import has_one, on_device
from softfloat.engine.draws import rounding_bits
from softfloat.engine.options import DRAWING, ENVIRONMENT_OPTIONS, refuse_idle, refuse_undrawn
from softfloat.engine.problems import Outputs, Problem, Results, grid_view, pieces
from softfloat.engine.products import random_of, run
from softfloat.engine.programs import Program, check_inputs, program, segment_bounds
from softfloat.formats import Format, check_format, float32
from softfloat.positions import Place, Position

__all__ = ["Counts", "cumsum", "join_segments", "matmul", "segments", "sum", "vecdot"]


PIECE = 1 << 24  # codes of operands made contiguous at a time
STACK = 1 << 21  # and of a batch's small products done together
UNCOUNTED = np.zeros((3, 0, 0), np.int64), np.zeros((2, 0, 0))
"""Counts of nothing."""
STOCHASTIC_OUTPUTS = 1 << 32  # an output's number has 32 bits of a random address
STOCHASTIC_STEPS = 1 << 27  # and a rounding's number within an output that many


@dataclass(frozen=True, eq=False)
class Counts:
    """What the additions of each output did; arrays of the output's shape.

    Attributes
    ----------
    additions : int
        Of each output: blocks that met the running sum, and stores. Sums of sums are not among them.
    overflowed, inexact : array of int64
        Additions whose rounding raised the flag. An addition is one meeting of a block and the running sum, or of two
        sums; a store counts as one more: what was added since the last, to the partial in memory.
    swamped : array of int64
        Additions of something other than zero that left the sum as it was.
    smallest, largest : array of float64
        The least and the greatest sum after an addition; NaN where there was none, or none but NaN. A zero has no sign.
    """

    additions: int
    overflowed: np.ndarray[Any, Any]
    inexact: np.ndarray[Any, Any]
    swamped: np.ndarray[Any, Any]
    smallest: np.ndarray[Any, Any]
    largest: np.ndarray[Any, Any]


# -- arguments -------------------------------------------------------------------------------------------------------


def check_formats(fmt: Any) -> tuple[Format, Format]:
    """The formats of both operands, from one or a pair."""
    if isinstance(fmt, (tuple, list)):
        if len(fmt) != 2:
            raise ValueError(f"fmt must be a format or a pair of them, got {len(fmt)}")
        return check_format(fmt[0], "fmt[0]", wide=True), check_format(fmt[1], "fmt[1]", wide=True)
    one = check_format(fmt, wide=True)
    return one, one


def check_accumulator(accumulator: Any) -> Accumulator:
    """Refuse anything but an accumulator."""
    if not isinstance(accumulator, Accumulator):
        advice = nearest(accumulator, PRESETS) if isinstance(accumulator, str) and accumulator not in PRESETS else ""
        raise TypeError(
            f"accumulator must be a softfloat.Accumulator, which functions of softfloat.accumulators such as fma('float32') make, "
            f"got {accumulator!r}{advice}"
        )
    return accumulator


class Contraction:
    """One call of the functions below: its options, formats and program."""

    def __init__(
        self,
        formats: tuple[Format, Format],
        accumulator: Any,
        out_format: Format | str | None,
        count: bool,
        options: Options,
    ) -> None:
        self.formats, self.accumulator = formats, check_accumulator(accumulator)
        self.output = (
            self.accumulator.output(*formats)
            if out_format is None
            else check_format(out_format, "out_format", wide=True)
        )
        self.call = Call(options, self.output)
        self.count = check_boolean("count", count)
        if self.call.random_bits is not None:
            raise ValueError("random_bits are for one rounding each; a dot product takes a seed")
        self.segment: tuple[Accumulator, int, int] | None = None

    def only(self, k: int, c: Any, out_format: Format | str | None, name: str) -> None:
        """Sum a segment alone, if the position names one; `name` is that of the function."""
        position = self.call.position
        if position is None or position.segment is None or position.k is None:
            return
        for argument, value in (("c", c), ("out_format", out_format)):
            if value is not None:
                raise ValueError(
                    f"{argument} must be None for the sum of one segment, got {value!r}; accepted: by join_segments"
                )
        start, stop = cutting.check_segment(self.accumulator, position.segment, position.k)
        if k != stop - start:
            raise ValueError(
                f"{name} has {k} products, and segment {position.segment} has {stop - start}: {start} to {stop - 1} of {position.k}"
            )
        self.segment = self.accumulator, position.segment, position.k
        self.accumulator = cutting.alone(self.accumulator)
        self.output = self.accumulator.partials
        self.call.settings = self.call.whole.for_format(self.output.name)

    def check_addend(self, c: Any, shape: tuple[int, ...]) -> Codes | None:
        """Codes of c in the shape of the output."""
        if c is None:
            return None
        codes = check_codes(c, self.accumulator.partials, "c")
        try:
            return np.broadcast_to(codes, shape)
        except ValueError:
            raise ValueError(f"c of shape {codes.shape} does not broadcast to the output's shape {shape}") from None

    def program(self, length: int) -> Program:
        """The program for this length of k."""
        planned = program(self.accumulator, *self.formats, self.output, self.call.whole, length)
        return planned if self.segment is None else cutting.begun(planned, *self.segment)

    def outputs(self, shape: tuple[int, ...], axes: Sequence[int]) -> Outputs | None:
        """Where outputs lie in the whole, which are numbered in this shape and returned with its axes in the order `axes`."""
        position = self.call.position
        if position is None:
            return None
        if position.segment is not None and self.segment is None:
            raise ValueError(
                "position names a segment of k; accepted: by matmul, vecdot, sum, conv1d and conv2d, else one with segment=None"
            )
        numbered = [list(axes).index(axis) for axis in range(len(shape))]
        place = position.place([shape[axis] for axis in axes], numbered)
        return Outputs(shape, Place(place.first, tuple(place.strides[axis] for axis in numbered)))

    def run(
        self,
        problems: Iterable[Problem],
        length: int,
        shape: tuple[int, ...],
        operands: Sequence[Codes],
        cumulative: bool = False,
        axes: Sequence[int] | None = None,
        numbered: tuple[int, ...] | None = None,
    ) -> Any:
        """All grids of a call, and what the caller sees of it. A grid's outputs go where its numbers say.

        `shape` is that of outputs in the order of their numbers; they are returned with its axes in the order `axes`. Sums that
        are `cumulative` have the numbers of outputs in the shape `numbered`.
        """
        planned = self.program(length)
        self.check_idle(planned)
        order = range(len(shape)) if axes is None else axes
        returned = tuple(shape[axis] for axis in order)
        result, raised = engine.outputs(self.call.out, self.call.flags, returned, self.output.dtype, operands)
        size = math.prod(shape)
        outputs = self.outputs(*((shape, order) if numbered is None else (numbered, range(len(numbered)))))
        if planned.draws:
            done = max(planned.begun.values(), default=0)
            self.check_addresses(size if outputs is None else outputs.reach, planned.length + done)
        else:
            outputs = None
        in_place = result.given is None and returned == shape and list(order) == sorted(order)
        codes = result.flat if in_place else np.empty(size, self.output.dtype)
        fresh = in_place and raised is not None and raised.given is None
        flags = raised.flat if raised is not None and fresh else np.empty(size, np.uint8)
        counts, extremes = (np.zeros((3, size), np.int64), np.full((2, size), np.nan)) if self.count else UNCOUNTED
        wholes = (codes, flags, counts, extremes) if self.count else (codes, flags)
        for problem in problems if size else ():
            columns = problem.b.shape[-1]
            rows = length if cumulative else 1 if problem.paired else math.prod(problem.a.shape[:-1])
            distances = (columns, 1) if cumulative else (problem.row_stride, problem.column_stride)
            views = [grid_view(whole, problem.index, (rows, columns), distances) for whole in wholes]
            places = [view if view.flags.c_contiguous else np.empty(view.shape, view.dtype) for view in views]
            nothing = () if self.count else UNCOUNTED
            given = replace(problem, cumulative=True) if cumulative else problem
            for part, cut in pieces(given, outputs, planned.goes_on):
                if cut is None:
                    run(part, planned, self.call, Results(*places, *nothing))
                    continue
                some = [np.empty_like(place[(..., *cut)], order="C") for place in places]
                run(part, planned, self.call, Results(*some, *nothing))
                for place, found in zip(places, some, strict=True):
                    place[(..., *cut)] = found
            for view, place in zip(views, places, strict=True):
                if view is not place:
                    view[...] = place
        if not in_place:
            result.flat.reshape(returned)[...] = codes.reshape(shape).transpose(*order)
        if raised is not None and not fresh:
            raised.flat.reshape(returned)[...] = flags.reshape(shape).transpose(*order)
        seen = int(np.bitwise_or.reduce(flags)) if size and raised is None else 0
        finished = engine.finished(result, raised, seen)
        if not self.count:
            return finished
        nothing = extremes[0] > extremes[1]
        extremes[:, nothing] = np.nan
        extremes += 0.0  # of both zeros that one which every format has
        return *finished, self.counted(
            planned, *([x.reshape(shape).transpose(*order)[()] for x in each] for each in (counts, extremes))
        )

    def check_idle(self, planned: Program) -> None:
        """Refuse options that do nothing."""
        if self.segment is not None:  # of a segment, options are the whole's
            return
        idle = self.call.given & planned.fixed
        if idle:
            kind = f"sums to {self.output.name} by {self.accumulator!r}, whose stages fix it"
            refuse_idle(idle, kind, ENVIRONMENT_OPTIONS - planned.fixed - DRAWING)
        if not planned.draws:
            refuse_undrawn(self.call.given, self.call.whole.rounding)

    def counted(self, planned: Program, counts: Any, extremes: Any) -> Counts:
        """What additions did, of three arrays and two."""
        return Counts(planned.stores.size + int(planned.stores.sum()), *counts, *extremes)

    def check_addresses(self, size: int, length: int) -> None:
        """Refuse what has no address for each of its random numbers."""
        if self.call.settings.generator != "philox4x32" or self.call.whole.generator != "philox4x32":
            raise ValueError(
                "generator must be 'philox4x32' for dot products, whose random numbers have addresses; "
                "'xoroshiro128aox' has only an order"
            )
        if size > STOCHASTIC_OUTPUTS or length > STOCHASTIC_STEPS:
            raise ValueError(
                f"random numbers of roundings have addresses for {STOCHASTIC_OUTPUTS} outputs of {STOCHASTIC_STEPS} products, got {size} of {length}"
            )


def vecdot(
    a: Any,
    b: Any,
    fmt: Any,
    accumulator: Accumulator,
    c: Any = None,
    *,
    out_format: Format | str | None = None,
    count: bool = False,
    **options: Unpack[Options],
) -> Any:
    """Dot products over the last axis, summed by an accumulator.

    Parameters
    ----------
    a, b : array_like of int
        Codes, of shapes (..., k) that broadcast.
    fmt : Format, str, or a pair of them
        What both are codes of, or each.
    accumulator : Accumulator
        How to sum; see `softfloat.accumulators`.
    c : array_like of int, optional
        Codes in the partials format, of a shape that broadcasts to the output's: where the sum starts.
    out_format : Format or str, optional
        Of the output; default as the accumulator says, mostly the partials format.
    count : bool
        Return `Counts` as well.

    Returns
    -------
    codes : array of the output format's dtype
    flags : array of uint8, or int
        Everything the roundings of an output raised; INVALID also for signalling operands, 0 * inf and inf - inf.
    counts : Counts
        If `count`.

    Raises
    ------
    ValueError, TypeError
        Naming the argument: shapes that do not fit, formats the accumulator does not take.

    >>> from softfloat.accumulators import exact, fma
    >>> import numpy as np
    >>> big, one = 0x6800, 0x3C00  # 2048 and 1
    >>> [hex(vecdot([big, one, one], [one] * 3, "float16", how)[0]) for how in (fma("float16"), exact("float16"))]
    ['0x6800', '0x6801']
    """
    formats = check_formats(fmt)
    if count is False and np.ndim(a) == np.ndim(b) == 1:
        found = small.product(a, b, formats, accumulator, c, out_format, options)
        if found is not None:
            return found
    contraction = Contraction(formats, accumulator, out_format, count, options)
    if any(map(on_device, (a, b, c))):
        from softfloat.cuda import products

        return products.vecdot(contraction, a, b, c)
    x = check_codes(a, contraction.formats[0], "a")
    y = check_codes(b, contraction.formats[1], "b")
    if not x.ndim or not y.ndim:
        raise ValueError(f"a and b must have an axis to sum over, got shapes {x.shape} and {y.shape}")
    outer, length = check_shapes(x.shape, y.shape, matrices=False), x.shape[-1]
    shape = (*outer, length)
    contraction.only(length, c, out_format, "vecdot")
    addend = contraction.check_addend(c, outer)
    problems = _paired(np.broadcast_to(x, shape), np.broadcast_to(y, shape), addend)
    return contraction.run(problems, length, outer, [x, y])


def _paired(x: Codes, y: Codes, c: Codes | None) -> Iterator[Problem]:
    """Dot products over the last axis, some along the first at a time: broadcast operands are never copied as a whole."""
    if x.ndim < 2:
        x, y, c = x[None], y[None], None if c is None else c[None]
    each, length = math.prod(x.shape[1:-1]), x.shape[-1]
    step = max(1, PIECE // max(each * length, 1))
    for first in range(0, x.shape[0], step):
        part = slice(first, first + step)
        count = x[part].shape[0] * each
        a, b = (v[part].reshape(count, length).T for v in (x, y))
        start = None if c is None else c[part].reshape(1, count)
        yield Problem(a, b, start, True, first * each, 0, 1)


def matmul(
    a: Any,
    b: Any,
    fmt: Any,
    accumulator: Accumulator,
    c: Any = None,
    *,
    out_format: Format | str | None = None,
    count: bool = False,
    **options: Unpack[Options],
) -> Any:
    """Matrix products with the shapes and broadcasting of `numpy.matmul`, each output summed by an accumulator.

    Parameters and results are those of `vecdot`, but for the shapes: a is (..., m, k) or (k,), b is (..., k, n) or
    (k,), c broadcasts to the output.

    >>> from softfloat.accumulators import mul_add
    >>> codes, flags = matmul([[0x3C00, 0x4000]], [[0x3C00], [0x4200]], "float16", mul_add("float16"))
    >>> hex(codes[0, 0]), int(flags[0, 0])  # 1*1 + 2*3
    ('0x4700', 0)
    """
    formats = check_formats(fmt)
    if count is False:
        found = small.product(a, b, formats, accumulator, c, out_format, options)
        if found is not None:
            return found
    contraction = Contraction(formats, accumulator, out_format, count, options)
    if any(map(on_device, (a, b, c))):
        from softfloat.cuda import products

        return products.matmul(contraction, a, b, c)
    x = check_codes(a, contraction.formats[0], "a")
    y = check_codes(b, contraction.formats[1], "b")
    if not x.ndim or not y.ndim:
        raise ValueError(f"a and b must not be scalars, got shapes {x.shape} and {y.shape}")
    batch = check_shapes(x.shape, y.shape, matrices=True)
    left = x.reshape(1, -1) if x.ndim == 1 else x
    right = y.reshape(-1, 1) if y.ndim == 1 else y
    rows, length, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    contraction.only(length, c, out_format, "matmul")
    shape = (*batch, *((rows,) if x.ndim > 1 else ()), *((columns,) if y.ndim > 1 else ()))
    addend = contraction.check_addend(c, shape)
    grids = math.prod(batch)
    if math.prod(right.shape[:-2]) == 1 and left.ndim > 2:  # one b for all: its rows are rows of one product
        rows, grids = rows * grids, 1
        left, right = left.reshape(1, rows, length), right.reshape(1, length, columns)
        batch = (1,)
    left = _spread(left, (*batch, rows, length)).reshape(grids, rows, length)
    right = _spread(right, (*batch, length, columns)).reshape(grids, length, columns)
    start = None if addend is None else addend.reshape(grids, rows, columns)
    step = max(1, STACK // max(rows * length, length * columns, rows * columns, 1))
    problems = [_stacked(left, right, start, first, min(first + step, grids)) for first in range(0, grids, step)]
    return contraction.run(problems, length, shape, [x, y])


def _spread(codes: Codes, shape: tuple[int, ...]) -> Codes:
    """As `numpy.broadcast_to`, which takes some microseconds to find that nothing is to be done."""
    return codes if codes.shape == shape else np.broadcast_to(codes, shape)


def _stacked(left: Codes, right: Codes, c: Codes | None, first: int, last: int) -> Problem:
    """Products first ... last - 1 of a batch: one, or a stack of them."""
    which = first if last == first + 1 else slice(first, last)
    start = None if c is None else c[which]
    columns = right.shape[2]
    return Problem(left[which], right[which], start, False, first * left.shape[1] * columns, columns, 1)


def _moved(x: Any, fmt: Format, axis: int | None, argument: str) -> tuple[Codes, tuple[int, ...], int]:
    """(codes as (k, sums), shape of the sums, the axis): the summed axis first."""
    codes = check_codes(x, fmt, argument)
    if axis is None:
        return codes.reshape(-1, 1), (), 0
    if not codes.ndim:
        raise ValueError(f"axis must be None for a scalar, got {axis!r}")
    if not is_integer(axis) or not -codes.ndim <= axis < codes.ndim:
        raise ValueError(f"axis must be None or an integer from {-codes.ndim} to {codes.ndim - 1}, got {axis!r}")
    moved = np.moveaxis(codes, axis, 0)
    return moved.reshape(codes.shape[axis], math.prod(moved.shape[1:])), moved.shape[1:], int(axis) % codes.ndim


def adds_one_at_a_time(how: Accumulator) -> bool:
    """Whether an accumulator has a sum after each number: those that `cumsum` takes."""
    return how.block == 1 and not (
        how.store or how.segments is not None or len(how.reduction) > 1 or len(how.order) > 1
    )


def _without_axis(position: Position | None, axis: int, shape: tuple[int, ...], flattened: bool) -> Position | None:
    """The position of the sums that cumulative ones along an axis share their random numbers with."""
    if position is None:
        return None
    if position.segment is not None:
        raise ValueError(
            "position names a segment of k, and cumulative sums have none; accepted: one with segment=None"
        )
    if flattened:
        axis, shape = 0, (math.prod(shape),)
    position.place(shape)
    if position.shape is None:
        if flattened and position.index:
            raise ValueError(
                f"position must be that of whole sums for cumulative ones, got {position.index} along their axis"
            )
        return position
    assert isinstance(position.index, tuple)
    if position.index[axis] or position.shape[axis] != shape[axis]:
        raise ValueError(
            f"position must have all of axis {axis} for cumulative sums along it, got {position.index[axis]} of "
            f"{position.shape[axis]}; accepted: a cut of other axes"
        )
    index, whole = list(position.index), list(position.shape)
    del index[axis], whole[axis]
    return Position(tuple(index), tuple(whole))


def _summed(
    codes: Any, fmt: Format | str, accumulator: Accumulator, axis: int | None, cumulative: bool,
    out_format: Format | str | None, count: bool, options: Options,
) -> Any:  # fmt: skip
    one = check_format(fmt, wide=True)
    if count is False:
        straight = small.cumulative if cumulative else small.total
        found = straight(codes, one, accumulator, axis, out_format, options)
        if found is not None:
            return found
    output = check_accumulator(accumulator).output(one, one) if out_format is None else out_format
    contraction = Contraction((one, float32), accumulator, output, count, options)
    if contraction.accumulator.inputs:
        check_inputs(contraction.accumulator, one)
        contraction.accumulator = contraction.accumulator.replace(inputs=(*contraction.accumulator.inputs, float32))
    if on_device(codes) and not cumulative:
        from softfloat.cuda import products

        if has_one(one):
            contraction.formats = one, one
        return products.total(contraction, codes, one, axis)
    flat, shape, moved = _moved(codes, one, axis, "codes")
    if not cumulative:
        contraction.only(flat.shape[0], None, out_format, "sum")
    operands = [check_codes(codes, one, "codes")]
    ones = np.broadcast_to(np.uint32(float32.one_code), flat.shape)
    if has_one(one):  # the narrower ones are, the more loops take them
        ones = np.broadcast_to(one.dtype.type(one.one_code), flat.shape)
        contraction.formats = one, one
    if not cumulative:
        return contraction.run([Problem(flat, ones, None, True, 0, 0, 1)], flat.shape[0], shape, operands)
    how = contraction.accumulator
    if not adds_one_at_a_time(how):
        raise ValueError(
            f"accumulator must add one number at a time, in order and in one level, for cumulative sums, got {how!r}"
        )
    if contraction.call.out is not None:
        raise ValueError("out must be None for cumulative sums")
    contraction.call.position = _without_axis(contraction.call.position, moved, np.shape(codes), axis is None)
    results = contraction.run(
        [Problem(flat, ones, None, True, 0, 0, 1)], flat.shape[0], flat.shape, operands, True, numbered=shape
    )
    return tuple(
        np.moveaxis(np.reshape(x, (flat.shape[0], *shape)), 0, moved) if isinstance(x, np.ndarray) else x
        for x in results
    )


def sum(
    codes: Any,
    fmt: Format | str,
    accumulator: Accumulator,
    axis: int | None = None,
    *,
    out_format: Format | str | None = None,
    count: bool = False,
    **options: Unpack[Options],
) -> Any:
    """Sums along an axis, or of everything: dot products with ones.

    Codes in, (codes, flags) out, of the shape without that axis; parameters as in `vecdot`. `fma(fmt)` adds one after
    the other, `pairwise(fmt)` in pairs, `chunked(...)` in chunks. An empty sum is +0.

    >>> from softfloat.accumulators import fma, pairwise
    >>> import numpy as np
    >>> ones = np.full(4096, 0x3C00, np.uint16)
    >>> [hex(sum(ones, "float16", how)[0]) for how in (fma("float16"), pairwise("float16"))]  # 2048, 4096
    ['0x6800', '0x6c00']
    """
    return _summed(codes, fmt, accumulator, axis, False, out_format, count, options)


def cumsum(
    codes: Any,
    fmt: Format | str,
    accumulator: Accumulator,
    axis: int | None = None,
    *,
    out_format: Format | str | None = None,
    **options: Unpack[Options],
) -> Any:
    """Sums of the first 1, 2, 3 ... numbers along an axis, or of the flattened codes: each is `sum` of that many.

    Codes in, (codes, flags) out, of the shape of `codes`; parameters as in `sum`. Stochastic sums share their random
    numbers as they share their additions. A `position` is that of the result, which may be cut along other axes; an integer is
    the number of the first sum.
    """
    return _summed(codes, fmt, accumulator, axis, True, out_format, False, options)


# -- segments --------------------------------------------------------------------------------------------------------


def segments(accumulator: Accumulator, k: int) -> tuple[tuple[int, int], ...]:
    """(first product, the one after the last) of each segment that an accumulator cuts k products into.

    >>> from softfloat.accumulators import chunked, fma
    >>> segments(chunked(512, fma("float16"), "float32"), 1200)
    ((0, 512), (512, 1024), (1024, 1200))

    Raises
    ------
    ValueError
        If the accumulator has no segments, or none of its kind for so many products.
    """
    cutting.alone(check_accumulator(accumulator))
    bounds = segment_bounds(accumulator, check_whole("k", k, 1))
    return tuple(itertools.pairwise(bounds))


def join_segments(
    sums: Any,
    fmt: Any,
    accumulator: Accumulator,
    c: Any = None,
    *,
    k: int,
    out_format: Format | str | None = None,
    count: bool = False,
    **options: Unpack[Options],
) -> Any:
    """The whole sums that sums of segments add up to, by the stages that the accumulator has above them.

    Parameters
    ----------
    sums : array_like of int
        Codes of what `matmul`, `vecdot` or `sum` gave for each segment, of shape (segments, ...), in their format.
    fmt : Format, str, or a pair of them
        What the operands of these were codes of.
    accumulator : Accumulator
        The whole one, segments and all.
    c : array_like of int, optional
        As in `vecdot`.
    k : int
        Products of a whole sum.
    out_format, count
        As in `vecdot`. Counts are those of additions above segments: all counts add up to those of a single call.

    Returns
    -------
    codes : array of the output format's dtype
        Those of a single call.
    flags : array of uint8, or int
        What these additions raised: with the segments' flags OR-ed to them, those of a single call.
    counts : Counts
        If `count`.

    Raises
    ------
    ValueError, TypeError
        Naming the argument: sums of another number of segments, formats no addition is made for.

    >>> from softfloat import Position
    >>> from softfloat.accumulators import chunked, fma
    >>> import numpy as np
    >>> how, x = chunked(2, fma("float16"), "float32"), np.array([0x6800, 0x3C00, 0x3C00], np.uint16)  # 2048, 1, 1
    >>> parts = [sum(x[i:j], "float16", how, position=Position(segment=n, k=3)) for n, (i, j) in enumerate(segments(how, 3))]
    >>> [hex(join_segments([code for code, _ in parts], "float16", how, k=3)[0]), hex(sum(x, "float16", how)[0])]
    ['0x45001000', '0x45001000']
    """
    contraction = Contraction(check_formats(fmt), accumulator, out_format, count, options)
    expected = len(segments(accumulator, k))
    codes = check_codes(sums, cutting.alone(accumulator).partials, "sums")
    if not codes.ndim or codes.shape[0] != expected:
        raise ValueError(f"sums must have shape ({expected}, ...), one for each segment of k={k}, got {codes.shape}")
    shape = codes.shape[1:]
    position = contraction.call.position
    if position is not None and position.segment is not None:
        raise ValueError("position names a segment, and all are joined; accepted: one with segment=None")
    planned = contraction.program(k)
    if planned.wide:
        raise ValueError("join_segments has no sums of wide formats; accepted: whole sums by matmul, vecdot and sum")
    outputs = contraction.outputs(shape, range(len(shape))) or Outputs(shape, Position().place(shape))
    if planned.draws:
        contraction.check_addresses(outputs.reach, planned.length)
    result, raised = engine.outputs(
        contraction.call.out, contraction.call.flags, shape, contraction.output.dtype, [codes]
    )
    size = math.prod(shape)
    numbers, random = (
        outputs.numbers(np.arange(size if planned.draws else 0)),
        random_of(contraction.call),
    )
    drawing = cutting.Drawing(size, lambda site, step, width: rounding_bits(numbers, site, step, *random, width))
    addend = contraction.check_addend(c, shape)
    start = None if addend is None else addend.reshape(-1)
    tally = cutting.Tally(np.zeros((3, size), np.int64), np.full((2, size), np.nan)) if count else None
    result.flat[...], flags = cutting.join(planned, codes.reshape(expected, size), start, drawing, tally)
    if raised is not None:
        raised.flat[...] = flags
    finished = engine.finished(result, raised, int(np.bitwise_or.reduce(flags)) if size else 0)
    if tally is None:
        return finished
    tally.extremes[...] += 0.0
    return *finished, Counts(0, *(x.reshape(shape)[()] for x in (*tally.counts, *tally.extremes)))
