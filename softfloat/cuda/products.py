"""Calls of sums of products on a GPU: what is refused, how operands lie, which kernels do it."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.checks import check_shapes, is_integer
from softfloat.cuda import generated
from softfloat.cuda.arrays import Arrays, Shape, library_of, refuse_host, uploaded
from softfloat.cuda.compiling import simulated
from softfloat.cuda.elementwise import address, kind_of, laid_out, launch, places, refuse
from softfloat.cuda.plain import Layout, Sum, Turn, plain
from softfloat.engine import parameters
from softfloat.engine.options import Call
from softfloat.engine.parameters import Numbers, fits_narrow_carrier, way_of
from softfloat.engine.programs import Program, Site
from softfloat.formats import Format, refuse_wide
from softfloat.kernels.accumulate import PRODUCT, RESULT, RUNNING
from softfloat.kernels.dot_state import FUSED, ROUNDED
from softfloat.kernels.spec import CARRIER32, CARRIER64, Rule

LEAST_SIDE = 8
"""Rows and columns of outputs from which on blocks of threads share operands; fewer go output by output."""


class Contraction(Protocol):
    """A call of `bits.matmul` or its kind, its options and its accumulator checked."""

    formats: tuple[Format, Format]
    accumulator: Accumulator
    output: Format
    call: Call
    count: bool

    def program(self, length: int) -> Program:
        """The program for this length of k."""

    def check_idle(self, planned: Program) -> None:
        """Refuse options that do nothing."""

    def check_addresses(self, size: int, length: int) -> None:
        """Refuse what has no address for each of its random numbers."""

    def counted(self, planned: Program, counts: Any, extremes: Any) -> Any:
        """What additions did, from arrays whose first axis tells counts, and extremes, apart."""


def one_by_one(planned: Program) -> bool:
    """Whether products are added one at a time, as the plain kernel adds them."""
    how = planned.accumulator
    alone = planned.kind in (FUSED, ROUNDED) and planned.block == 1 and planned.index is None and planned.is_plain
    apart = how.tree or how.chains > 1 or how.reduction or planned.stores.any() or planned.closes.any()
    return alone and not apart


def _is_grid(planned: Program, layout: Layout) -> bool:
    """Whether generated kernels add up outputs that lie so: those of units always, others where both sides of a matrix are worth a block."""
    return not simulated() and (min(layout.rows, layout.columns) >= LEAST_SIDE or not one_by_one(planned))


def check_served(planned: Program, begins: bool, counting: bool) -> None:
    """Refuse sums that no kernel adds up.

    Raises
    ------
    ValueError
        Naming what is not done on a GPU.
    """
    how = planned.accumulator
    for fmt in (*planned.formats, *(site.format for site in planned.sites.values())):
        refuse_wide(fmt, "fmt", "a sum on a GPU")
    if not one_by_one(planned) and (simulated() or generated.way_of(planned, begins, counting) is None):
        counted = ", counted" * counting
        raise ValueError(
            f"accumulator must add one product at a time on a GPU, or be a unit whose turns have 1 to 32 products, got {how!r}{counted}; "
            "accepted: fma, mul_add, amp and tensor_core of most formats, uncounted, and others on the CPU: x.cpu()"
        )
    if planned.policy.propagate:
        raise ValueError(
            "nan must be a policy that passes no payloads on for sums on a GPU; accepted: 'canonical' and its kind, or on the CPU: x.cpu()"
        )
    if not planned.length:
        raise ValueError("k must be at least 1 for sums on a GPU; accepted: empty sums on the CPU, x.cpu()")


def _turn(site: Site) -> Turn:
    """How a stage rounds."""
    way = way_of(site.format.spec, site.rule)
    return Turn(way, way == "nearest" and not (site.rule.daz or site.rule.ftz))


def _numbers(planned: Program, narrow: bool) -> Numbers:
    """What kernels know of the stages and of what operands are decoded by; a stage that there is not has another's."""
    carrier, running = CARRIER32 if narrow else CARRIER64, planned.sites[RUNNING]
    stages = [planned.sites.get(site, running) for site in (PRODUCT, RUNNING, RESULT)]
    read = [(x.format, x.rule) for x in stages]
    read += [*zip(planned.formats, planned.reading, strict=True), (planned.partials, planned.entry)]
    read.append((planned.partials, Rule()))
    rows = [parameters.numbers(fmt.spec, fmt.spec, rule, carrier) for fmt, rule in read]
    return np.array([x for x, _ in rows]), np.array([x for _, x in rows])


def _sum(
    contraction: Contraction,
    planned: Program,
    arrays: Arrays,
    shape: Shape,
    operands: tuple[Any, Any, Any],
    layout: Layout,
) -> Any:
    """The sums of a call, whose operands are laid out; what the caller sees of them."""
    call, size = contraction.call, math.prod(shape)
    if planned.draws:
        contraction.check_addresses(size, planned.length)
    key, stream, _ = address(call.whole, call.stream) if planned.draws else (np.uint64(0), np.uint64(0), 0)
    formats = {*planned.formats, planned.output, *(site.format for site in planned.sites.values())}
    narrow = not planned.draws and all(fits_narrow_carrier(fmt.spec) for fmt in formats)
    sites = planned.sites
    how = Sum(
        product=_turn(sites[PRODUCT]) if PRODUCT in sites else None,
        running=_turn(sites[RUNNING]),
        result=_turn(sites[RESULT])._replace(quick=False) if RESULT in sites else None,
        wide=not narrow,
        addend=operands[2] is not None,
        counting=contraction.count,
        each=call.flags == "each",
    )
    carrier = CARRIER32 if narrow else CARRIER64
    codes, (flags, where) = arrays.empty(shape, planned.output.dtype), places(arrays, call, shape)
    counts = arrays.filled((3, *shape) if how.counting else (1,), np.int64, 0)
    extremes = arrays.empty((2, *shape) if how.counting else (1,), np.float64)
    a, b = (arrays.flat(x, kind_of(fmt.spec, carrier)) for x, fmt in zip(operands[:2], planned.formats, strict=True))
    c = a if operands[2] is None else arrays.flat(operands[2], kind_of(planned.partials.spec, carrier))
    widths = tuple(sites[site].width if site in sites else 0 for site in (PRODUCT, RUNNING, RESULT))
    results = (
        arrays.flat(codes, planned.output.dtype), where,
        arrays.flat(counts, np.dtype(np.int64)), arrays.flat(extremes, np.dtype(np.float64)),
    )  # fmt: skip
    known = (widths, *uploaded(_numbers(planned, narrow), arrays.device), key, stream)
    way = generated.way_of(planned, how.addend, how.counting) if _is_grid(planned, layout) else None
    if size and way is not None:
        listing, kept = generated.run(way, planned, how, arrays, (a, b, c), results, layout, known)
        if one_by_one(planned):
            launch(plain(how, True), size, arrays, a, b, c, *results, listing, tuple(layout), *known)
        del kept  # what kernels were given lives until all are on the stream
    else:
        launch(plain(how, False), size, arrays, a, b, c, *results, where, tuple(layout), *known)
    seen = flags if how.each else arrays.number(flags) if size else 0
    if not how.counting:
        return codes, seen
    return codes, seen, contraction.counted(planned, counts, extremes)


def _addend(contraction: Contraction, arrays: Arrays, c: Any, shape: Shape) -> Any:
    """Codes of c, laid out as the outputs are."""
    if c is None:
        return None
    return laid_out(arrays, {"c": c}, contraction.accumulator.partials, shape)[0]


def _begun(contraction: Contraction, length: int, begins: bool = False) -> Program:
    """The program of a call, with what it does not do on a GPU refused."""
    refuse(contraction.call)
    planned = contraction.program(length)
    contraction.check_idle(planned)
    check_served(planned, begins, contraction.count)
    return planned


def vecdot(contraction: Contraction, a: Any, b: Any, c: Any) -> Any:
    """`bits.vecdot` of codes on a GPU."""
    for name, x in (("a", a), ("b", b)):
        refuse_host(x, name)
    arrays, left = library_of([a, b, c]), tuple(a.shape)
    outer, length = check_shapes(left, tuple(b.shape), matrices=False), left[-1]
    shape = (*outer, length)
    planned = _begun(contraction, length, c is not None)
    with arrays.current():
        first, second = contraction.formats
        [x], [y] = laid_out(arrays, {"a": a}, first, shape), laid_out(arrays, {"b": b}, second, shape)
        layout = Layout(math.prod(outer), 1, length, 1, length, 0, 1, length, 0, 1)
        return _sum(contraction, planned, arrays, outer, (x, y, _addend(contraction, arrays, c, outer)), layout)


def total(contraction: Contraction, codes: Any, fmt: Format, axis: int | None) -> Any:
    """`bits.sum` of codes on a GPU."""
    arrays, shape = library_of([codes]), tuple(codes.shape)
    if axis is not None and (not is_integer(axis) or not -len(shape) <= axis < len(shape)):
        raise ValueError(f"axis must be None or an integer from {-len(shape)} to {len(shape) - 1}, got {axis!r}")
    with arrays.current():
        moved = arrays.reshaped(codes, (math.prod(shape),)) if axis is None else arrays.moved(codes, axis)
        length, outer = moved.shape[0], tuple(moved.shape[1:])
        planned = _begun(contraction, length)
        [x] = laid_out(arrays, {"codes": moved}, fmt, tuple(moved.shape))
        one = contraction.formats[1]
        ones = arrays.filled((1,), one.dtype, one.one_code)
        count = math.prod(outer)
        layout = Layout(count, count, length, 1, 0, 1, count, 0, 0, 0)
        return _sum(contraction, planned, arrays, outer, (x, ones, None), layout)


def matmul(contraction: Contraction, a: Any, b: Any, c: Any) -> Any:
    """`bits.matmul` of codes on a GPU."""
    for name, x in (("a", a), ("b", b)):
        refuse_host(x, name)
    arrays, (left, right) = library_of([a, b, c]), (tuple(a.shape), tuple(b.shape))
    if not left or not right:
        raise ValueError(f"a and b must not be scalars, got shapes {left} and {right}")
    rows, columns = (1, *left)[-2], right[-1] if len(right) > 1 else 1
    length, batch = left[-1], check_shapes(left, right, matrices=True)
    shape = (*batch, *((rows,) if len(left) > 1 else ()), *((columns,) if len(right) > 1 else ()))
    planned = _begun(contraction, length, c is not None)
    with arrays.current():
        first, second = contraction.formats
        # operands that all products share are there once
        wholes = [x if math.prod(x[:-2]) == 1 else (*batch, *x[-2:]) for x in (left, right)]
        [x], [y] = laid_out(arrays, {"a": a}, first, wholes[0]), laid_out(arrays, {"b": b}, second, wholes[1])
        steps = [0 if math.prod(x[:-2]) == 1 else math.prod(x[-2:]) for x in wholes]
        layout = Layout(math.prod(shape), rows, length, columns, steps[0], length, 1, steps[1], 1, columns)
        return _sum(contraction, planned, arrays, shape, (x, y, _addend(contraction, arrays, c, shape)), layout)
