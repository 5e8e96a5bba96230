"""NumPy's ufuncs on SoftArrays: one table from ufunc to what computes it on codes, and one way to call, reduce and accumulate.

Ufuncs that are functions of `softfloat.bits` come from its table of operations, `bits.operations`; the others stand here.

Results in the array's format are correctly rounded under the environment in force, flags go to its status, and a trap
names the ufunc and the index.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.arrays import handlers, sums
from softfloat.arrays.held import FUNCTIONS, UFUNCS, directed, evaluated, wrapped
from softfloat.arrays.operands import coerced, common_format, one_of
from softfloat.arrays.operators import run_drawn, straight, straight_unary
from softfloat.arrays.order import ranks
from softfloat.arrays.readers import drawing
from softfloat.arrays.softarray import SoftArray
from softfloat.bits.arithmetic import reciprocal
from softfloat.bits.comparisons import quieted
from softfloat.bits.operations import ELEMENTWISE, Operation
from softfloat.engine import Codes
from softfloat.environments import Rounding
from softfloat.formats import Format

Compute = Callable[..., Any]
CODES, OTHER = True, False  # whether a result is a SoftArray


@dataclass(frozen=True)
class Entry:
    """How a ufunc runs.

    Attributes
    ----------
    compute : callable
        compute(name, fmt, *codes, out=...) -> result, or a tuple of results: codes or NumPy arrays.
    results : tuple of bool
        Which results are codes.
    writes : bool
        Whether `compute` takes `out`, an array of codes.
    quiet : bool
        Whether numbers among the operands raise no flags as they become codes: comparisons.
    integers : frozenset of int
        Operands that are integers, not numbers of the format.
    """

    compute: Compute
    results: tuple[bool, ...] = (CODES,)
    writes: bool = False
    quiet: bool = False
    integers: frozenset[int] = frozenset()


ENTRIES: dict[np.ufunc, Entry] = {}


# -- kinds of ufuncs -------------------------------------------------------------------------------------------------


def rounded(function: Any, **fixed: Any) -> Entry:
    """A function of `softfloat.bits`."""

    def compute(name: str, fmt: Format, *codes: Codes, out: Codes | None = None) -> Any:
        options = dict(fixed) if out is None else {**fixed, "out": out}
        return evaluated(name, function, *codes, fmt, **options)

    return Entry(compute, writes=True)


def integral(mode: Rounding, exact: bool) -> Entry:
    """Rounding to an integer in a fixed direction; INEXACT is raised if `exact`."""

    return rounded(directed(bits.round_to_integral, mode, exact=exact))


def on_codes(function: Callable[..., Any], results: tuple[bool, ...] = (CODES,)) -> Entry:
    """A function of codes and format that raises nothing."""
    return Entry(lambda name, fmt, *codes: function(*codes, fmt), results)


def compared(function: Any, swapped: bool = False, negated: bool = False) -> Entry:
    """A comparison of `softfloat.bits`."""

    def compute(name: str, fmt: Format, x: Codes, y: Codes) -> Any:
        found = evaluated(name, function, *((y, x) if swapped else (x, y)), fmt)
        return ~found if negated else found

    return Entry(compute, (OTHER,), quiet=True)


def logical(function: np.ufunc) -> Entry:
    """A ufunc of truths."""
    return Entry(lambda name, fmt, *codes: function(*(~bits.iszero(x, fmt) for x in codes)), (OTHER,))


# -- what bits has no function for -----------------------------------------------------------------------------------


def _square(name: str, fmt: Format, x: Codes, out: Codes | None = None) -> Any:
    return evaluated(name, bits.mul, x, x, fmt, **({} if out is None else {"out": out}))


def _reciprocal(name: str, fmt: Format, x: Codes, out: Codes | None = None) -> Any:
    return evaluated(name, reciprocal, x, fmt, **({} if out is None else {"out": out}))


def _quieted(name: str, fmt: Format, x: Codes, result: Any) -> Codes:
    """A result with NaN operands quiet in it; signalling ones raise INVALID."""
    nan = bits.isnan(x, fmt)
    result = np.asarray(result).astype(fmt.dtype)  # NumPy makes float64 of int64 and uint64
    return np.where(nan, evaluated(name, quieted, x, fmt), result) if np.any(nan) else result


def _positive(x: Codes, fmt: Format) -> Any:
    return np.array(x)


def _sign(name: str, fmt: Format, x: Codes) -> Any:
    one = one_of(fmt, name)
    found = np.where(bits.iszero(x, fmt), 0, np.where(bits.signbit(x, fmt), one | fmt.sign_bit, one))
    return _quieted(name, fmt, x, found)


def _heaviside(name: str, fmt: Format, x: Codes, at_zero: Codes) -> Any:
    found = np.where(bits.signbit(x, fmt), 0, one_of(fmt, name)).astype(fmt.dtype)
    return _quieted(name, fmt, x, np.where(bits.iszero(x, fmt), at_zero, found))


def _nextafter(name: str, fmt: Format, x: Codes, y: Codes) -> Any:
    up, down = evaluated(name, bits.next_up, x, fmt), evaluated(name, bits.next_down, x, fmt)
    order = np.sign(ranks(np.asarray(y), fmt) - ranks(np.asarray(x), fmt))
    same = bits.eq(x, y, fmt)[0]
    found = np.where(same, y, np.where(order > 0, up, down))
    first, second = bits.isnan(x, fmt), bits.isnan(y, fmt)
    nan = first | second
    if not np.any(nan):
        return found
    pair = np.where(first, x, np.where(second, y, 0)), np.where(second, y, np.where(first, x, 0))
    return np.where(nan, evaluated(name, bits.maximum_number, *pair, fmt), found).astype(fmt.dtype)


def _spacing(name: str, fmt: Format, x: Codes) -> Any:
    values = np.asarray(bits.decode(x, fmt))
    finite = np.isfinite(values)
    exponent = np.where(values == 0, fmt.emin, np.frexp(values)[1] - 1)
    lowest = fmt.emin if fmt.subnormals else fmt.emin + fmt.mantissa_bits
    step = np.ldexp(1.0, np.maximum(exponent, lowest) - fmt.mantissa_bits)
    codes = evaluated(name, bits.encode, np.where(finite, np.copysign(step, values), fmt.max), fmt)
    infinite = evaluated(name, bits.sub, x, x, fmt) if np.any(bits.isinf(x, fmt)) else codes
    return _quieted(name, fmt, x, np.where(finite, codes, infinite))


def _finite_only(name: str, fmt: Format, x: Codes, values: Any) -> Codes:
    """Values, rounded, for finite operands; infinite ones stay, NaNs become quiet."""
    finite = bits.isfinite(x, fmt)
    codes = evaluated(name, bits.encode, np.where(finite, values, fmt.max), fmt)  # which raises nothing
    return _quieted(name, fmt, x, np.where(finite, codes, x))


def _frexp(name: str, fmt: Format, x: Codes) -> Any:
    mantissa, exponent = np.frexp(np.asarray(bits.decode(x, fmt)))
    return _finite_only(name, fmt, x, mantissa), exponent


FARTHEST = (
    900  # exponent: beyond every format that is not wide, and still a normal float64; twice as far is beyond wide ones
)


def _ldexp(name: str, fmt: Format, x: Codes, shift: Any) -> Any:
    engine.refuse_mask(shift, "operand 2 of 'ldexp'")
    shift = np.asarray(shift)
    if shift.dtype.kind not in "iu":
        raise TypeError(f"operand 2 of 'ldexp' must be integers, got {shift.dtype}")
    mantissa, exponent = np.frexp(np.asarray(bits.decode(x, fmt)))
    mantissa = np.where(np.isfinite(mantissa), mantissa, 0.5)
    power = np.clip(shift.astype(np.int64), -4 * FARTHEST, 4 * FARTHEST) + exponent
    values: Any = np.ldexp(mantissa, np.clip(power, -FARTHEST, FARTHEST))
    if fmt.wide and np.any(np.abs(power) > FARTHEST):
        rows = zip(*(v.reshape(-1).tolist() for v in np.broadcast_arrays(mantissa, power)), strict=True)
        exact = [Fraction(m) * Fraction(2) ** max(min(n, 2 * FARTHEST), -2 * FARTHEST) if m else m for m, n in rows]
        values = np.array(exact, object).reshape(values.shape)
    x = np.broadcast_to(x, values.shape)
    return _finite_only(name, fmt, x, values)


def _modf(name: str, fmt: Format, x: Codes) -> Any:
    whole = np.asarray(TRUNC.compute(name, fmt, x))
    infinite = bits.isinf(x, fmt)
    rest = np.asarray(
        evaluated(name, bits.sub, np.where(infinite, whole * 0, x), np.where(infinite, whole * 0, whole), fmt)
    )
    rest = np.where(bits.isnan(rest, fmt), rest, bits.copysign(rest, x, fmt)) if fmt.signed else rest
    return rest.astype(fmt.dtype), whole


def _divmod(name: str, fmt: Format, x: Codes, y: Codes) -> Any:
    return evaluated(name, bits.floor_divide, x, y, fmt), evaluated(name, bits.modulo, x, y, fmt)


def _product(name: str, fmt: Format, x: Codes, y: Codes) -> Any:
    return sums.product_of(x, y, fmt, name)


def _dots(name: str, fmt: Format, x: Codes, y: Codes) -> Any:
    return sums.dots_of(x, y, fmt, name)


def _matvec(name: str, fmt: Format, x: Codes, y: Codes) -> Any:
    with handlers.relocated(lambda index: index[:-1]):
        return sums.product_of(x, y[..., None], fmt, name)[..., 0]


def _vecmat(name: str, fmt: Format, x: Codes, y: Codes) -> Any:
    with handlers.relocated(lambda index: (*index[:-2], index[-1])):
        return sums.product_of(x[..., None, :], y, fmt, name)[..., 0, :]


TRUNC = integral(Rounding.TOWARD_ZERO, False)


def _entry(row: Operation) -> Entry:
    """How a ufunc runs that is a function of `softfloat.bits`."""
    function = getattr(bits, row.name)
    if not row.flags:
        return on_codes(function, (CODES if row.result == "float" else OTHER,))
    return compared(function) if row.result == "bool" else rounded(function)


ENTRIES |= {getattr(np, name): _entry(row) for row in ELEMENTWISE.values() for name in row.numpy}

NAMES = {getattr(np, name): row.name for row in ELEMENTWISE.values() for name in row.numpy}
"""Ufunc -> its name in `softfloat.bits`."""
ENTRIES |= {
    np.square: Entry(_square, writes=True),
    np.reciprocal: Entry(_reciprocal, writes=True),
    np.rint: integral(Rounding.NEAREST_EVEN, True),
    np.floor: integral(Rounding.TOWARD_NEGATIVE, False),
    np.ceil: integral(Rounding.TOWARD_POSITIVE, False),
    np.trunc: TRUNC,
    np.positive: on_codes(_positive),
    np.conjugate: on_codes(_positive),
    np.sign: Entry(_sign),
    np.heaviside: Entry(_heaviside),
    np.nextafter: Entry(_nextafter),
    np.spacing: Entry(_spacing),
    np.not_equal: compared(bits.eq, negated=True),
    np.greater: compared(bits.lt, swapped=True),
    np.greater_equal: compared(bits.le, swapped=True),
    np.logical_and: logical(np.logical_and),
    np.logical_or: logical(np.logical_or),
    np.logical_xor: logical(np.logical_xor),
    np.logical_not: logical(np.logical_not),
    np.frexp: Entry(_frexp, (CODES, OTHER)),
    np.modf: Entry(_modf, (CODES, CODES)),
    np.divmod: Entry(_divmod, (CODES, CODES)),
    np.ldexp: Entry(_ldexp, integers=frozenset({1})),
    np.float_power: ENTRIES[np.power],  # a power that is no integer in any format
}

PRODUCTS: dict[np.ufunc, Entry] = {np.matmul: Entry(_product), np.vecdot: Entry(_dots)}
for _name, _compute in (("matvec", _matvec), ("vecmat", _vecmat)):
    if hasattr(np, _name):  # NumPy 2.2
        PRODUCTS[getattr(np, _name)] = Entry(_compute)
ENTRIES |= PRODUCTS

STRAIGHT: dict[Any, str] = {np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "div"}
"""Ufuncs that small arrays of one format do without the ways around."""

STRAIGHT_UNARY: dict[Any, str] = {np.sqrt: "sqrt"}
"""The same of one operand."""


# -- calling ---------------------------------------------------------------------------------------------------------


def run(ufunc: np.ufunc, method: str, inputs: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Any method of any ufunc in the table."""
    if drawing():
        return run_drawn(ufunc, method, inputs, keywords)
    if method == "__call__":
        return _call(ufunc, inputs, keywords)
    handler = METHODS.get(method)
    if handler is None:
        raise TypeError(f"numpy.{ufunc.__name__}.{method} is not supported for SoftArray")
    return handler(ufunc, *inputs, **keywords)


def _call(ufunc: np.ufunc, inputs: Sequence[Any], keywords: dict[str, Any]) -> Any:
    if not keywords and isinstance(inputs[0], SoftArray):
        found = None
        if ufunc is np.matmul:
            found = _straight_product(inputs[0], inputs[1])
        elif ufunc in STRAIGHT:
            found = straight(STRAIGHT[ufunc], inputs[0], inputs[1], False, None)
        elif ufunc in STRAIGHT_UNARY:
            found = straight_unary(STRAIGHT_UNARY[ufunc], inputs[0])
        if found is not None:
            return found
    entry, name = ENTRIES[ufunc], ufunc.__name__
    outs, where, axes = _options(name, keywords)
    given = [x for x in outs if isinstance(x, SoftArray)]
    fmt = common_format([*inputs, *given], name)
    codes = [x if i in entry.integers else coerced(x, fmt, name, i, entry.quiet) for i, x in enumerate(inputs)]
    _check_outs(entry, outs, fmt, name)
    if axes:
        return _placed(entry, outs, fmt, [_along(name, fmt, codes, **axes)], name)
    if where is not True:
        return _masked(ufunc, codes, outs, where, fmt)
    if entry.writes and len(outs) == 1 and isinstance(outs[0], SoftArray):
        target = outs[0].codes
        if any(np.shape(x) != target.shape for x in codes):
            codes = [_stretched(x, target.shape, name) for x in codes]
        entry.compute(name, fmt, *codes, out=target)
        return outs[0]
    results = entry.compute(name, fmt, *codes)
    return _placed(entry, outs, fmt, results if isinstance(results, tuple) else (results,), name)


def _straight_product(x: SoftArray, y: Any) -> SoftArray | None:
    """The matrix product of arrays of one format."""
    fmt = x.format
    return (
        wrapped(sums.product_of(x.codes, y.codes, fmt, "matmul"), fmt)
        if type(y) is SoftArray and y.format == fmt
        else None
    )


DEFAULTS: dict[str, tuple[Any, ...]] = {
    "casting": ("same_kind",),
    "order": ("K", "C"),
    "subok": (True,),
    "dtype": (None,),
    "signature": (None,),
}


def _options(name: str, keywords: dict[str, Any]) -> tuple[tuple[Any, ...], Any, dict[str, Any]]:
    """(outs, where, axes) of a call; everything else must be as NumPy has it by default."""
    left = dict(keywords)
    outs = left.pop("out", ()) or ()
    outs = outs if isinstance(outs, tuple) else (outs,)
    where = left.pop("where", True)
    axes = {key: left.pop(key) for key in ("axis",) if name == "vecdot" and key in left}
    for key, value in left.items():
        if value not in DEFAULTS.get(key, ()):
            raise TypeError(f"numpy.{name} of a SoftArray takes no {key}={value!r}")
    return outs if any(x is not None for x in outs) else (), where, axes


def _along(name: str, fmt: Format, codes: Sequence[Codes], axis: int) -> Codes:
    """vecdot along another axis than the last."""
    return sums.dots_of(np.moveaxis(codes[0], axis, -1), np.moveaxis(codes[1], axis, -1), fmt, name)


def _check_outs(entry: Entry, outs: Sequence[Any], fmt: Format, name: str) -> None:
    for is_codes, out in zip(entry.results, outs, strict=False):
        if out is not None and is_codes and not isinstance(out, SoftArray):
            raise TypeError(f"out of numpy.{name} must be a SoftArray of {fmt}, got {type(out).__name__}")
        if out is not None and not is_codes and not isinstance(out, np.ndarray):
            raise TypeError(f"out of numpy.{name} must be a NumPy array, got {type(out).__name__}")


def _stretched(x: Any, shape: tuple[int, ...], name: str) -> Any:
    try:
        return np.broadcast_to(x, shape)
    except ValueError:
        raise ValueError(f"operands of numpy.{name} do not broadcast to out's shape {shape}: {np.shape(x)}") from None


def _placed(entry: Entry, outs: Sequence[Any], fmt: Format, results: Sequence[Any], name: str) -> Any:
    """Results as the caller sees them, in the places given for them."""
    found = []
    for i, (is_codes, result) in enumerate(zip(entry.results, results, strict=True)):
        out = outs[i] if i < len(outs) else None
        if out is None:
            found.append(wrapped(result, fmt) if is_codes else result)
            continue
        target = out.codes if is_codes else out
        _stretched(result, target.shape, name)
        np.copyto(target, result, casting="same_kind")
        found.append(out)
    return found[0] if len(found) == 1 else tuple(found)


def _masked(ufunc: np.ufunc, codes: list[Any], outs: Sequence[Any], where: Any, fmt: Format) -> Any:
    """A call where a mask holds: nothing is computed, and no flag raised, elsewhere; without `out`, code 0 stands there."""
    entry, name = ENTRIES[ufunc], ufunc.__name__
    if ufunc in PRODUCTS:
        raise TypeError(f"numpy.{name} takes no where=")
    mask = handlers.truth(where)
    shapes = [np.shape(x) for x in [*codes, mask, *(x for x in outs if x is not None)]]
    shape = np.broadcast_shapes(*shapes)
    mask = np.broadcast_to(mask, shape)
    chosen = [np.broadcast_to(x, shape)[mask] for x in codes]
    with handlers.relocated(lambda index: tuple(np.argwhere(mask)[index].tolist()), name=name):
        results = entry.compute(name, fmt, *chosen)
    found = []
    for i, (is_codes, result) in enumerate(
        zip(entry.results, results if isinstance(results, tuple) else (results,), strict=True)
    ):
        out = outs[i] if i < len(outs) else None
        if out is None:
            out = wrapped(np.zeros(shape, fmt.dtype), fmt) if is_codes else np.zeros(shape, np.asarray(result).dtype)
        target = out.codes if isinstance(out, SoftArray) else out
        if target.shape != shape:
            raise ValueError(f"out of numpy.{name} has shape {target.shape}, and operands and where make {shape}")
        target[mask] = result
        found.append(out)
    return found[0] if len(found) == 1 else tuple(found)


# -- the other methods -----------------------------------------------------------------------------------------------

REDUCTIONS: dict[np.ufunc, Any] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.fmax: np.nanmax,
    np.fmin: np.nanmin,
}
"""NumPy's functions that reductions by a ufunc are."""


def _steps(ufunc: np.ufunc, array: Any, method: str) -> handlers.Step:
    """What a ufunc makes of two numbers, for methods that apply it again and again."""
    entry = ENTRIES[ufunc]
    if ufunc in PRODUCTS or ufunc.nin != 2 or entry.results != (CODES,) or entry.integers:
        raise TypeError(f"numpy.{ufunc.__name__}.{method} is not supported for SoftArray")
    if not isinstance(array, SoftArray):
        raise TypeError(f"numpy.{ufunc.__name__}.{method} of {type(array).__name__} takes no SoftArray")
    name, fmt = f"{ufunc.__name__}.{method}", array.format
    return handlers.Step(fmt, lambda x, y: entry.compute(name, fmt, x, y), NAMES.get(ufunc, ""))


def _reduce(
    ufunc: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    **keywords: Any,
) -> Any:
    if ufunc in (np.logical_and, np.logical_or):
        over: Any = ufunc.reduce
        return handlers.placed(
            over(handlers.truth(array), axis, dtype, None, keepdims, **keywords), out, ufunc.__name__
        )
    if ufunc in REDUCTIONS:
        if dtype is not None and isinstance(array, SoftArray):
            handlers.check_dtype(f"{ufunc.__name__}.reduce", dtype, array.format)
        return FUNCTIONS[REDUCTIONS[ufunc]](array, axis=axis, out=out, keepdims=keepdims, **keywords)
    name = f"{ufunc.__name__}.reduce"
    step = _steps(ufunc, array, "reduce")
    handlers.check_dtype(name, dtype, array.format)
    initial = keywords.pop("initial", None)
    handlers.refuse(name, **keywords)
    codes, kept = handlers.laid_out(array.codes, axis)
    codes = handlers.begun(codes, initial, array.format, name)
    if not codes.shape[-1]:
        raise ValueError(f"numpy.{name} of no elements; accepted: initial=")
    with handlers.keeping(codes, kept, keepdims):
        found = handlers.folded(codes, step, False)
    return handlers.placed(handlers.restored(found, kept, keepdims, array.format), out, name)


def _accumulate(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    step = _steps(ufunc, array, "accumulate")
    name = f"{ufunc.__name__}.accumulate"
    if ufunc is np.add:
        return sums.running(array, axis, dtype, out, name)
    return sums.accumulated(array, axis, dtype, out, step, name)


def _reduceat(ufunc: np.ufunc, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """Reductions from each index to the next; one element where that is no further."""
    name = f"{ufunc.__name__}.reduceat"
    _steps(ufunc, array, "reduceat")
    lanes = np.moveaxis(array, axis, 0)
    indices = [operator.index(i) for i in indices]
    if not all(0 <= i < len(lanes) for i in indices):
        raise IndexError(f"indices of numpy.{name} must be 0 to {len(lanes) - 1}, got {indices}")
    before, starts = axis % array.ndim, np.array(indices, np.int64)
    lengths = np.maximum(np.append(starts, len(lanes))[1:] - starts, 1)
    found = np.empty((len(indices), *lanes.shape[1:]), array.format.dtype)
    for length, places in handlers.alike(lengths):
        spans = lanes[starts[places, np.newaxis] + np.arange(length)]
        with handlers.relocated(
            lambda index, at: (*index[1 : before + 1], int(at[index[0]]), *index[before + 1 :]), places
        ):
            found[places] = _reduce(ufunc, spans, 1, dtype=dtype).codes
    return handlers.placed(wrapped(np.moveaxis(found, 0, axis), array.format), out, name)


def _outer(ufunc: np.ufunc, a: Any, b: Any, **keywords: Any) -> Any:
    if ufunc in PRODUCTS or ufunc.nin != 2:
        raise TypeError(f"numpy.{ufunc.__name__}.outer is not supported for SoftArray")
    fmt = common_format([a, b], f"{ufunc.__name__}.outer")
    x = wrapped(coerced(a, fmt, ufunc.__name__, 0), fmt)
    y = b if 1 in ENTRIES[ufunc].integers else wrapped(coerced(b, fmt, ufunc.__name__, 1), fmt)
    return _call(ufunc, (x.reshape(x.shape + (1,) * np.ndim(y)), y), keywords)


def _at(ufunc: np.ufunc, array: Any, indices: Any, *operands: Any) -> None:
    """An operation in place at some elements, those named more than once in turn."""
    entry = ENTRIES[ufunc]
    if ufunc in PRODUCTS or entry.results != (CODES,) or entry.integers or not isinstance(array, SoftArray):
        raise TypeError(f"numpy.{ufunc.__name__}.at is not supported for {type(array).__name__}")
    fmt, name = array.format, f"{ufunc.__name__}.at"
    places = np.arange(array.size).reshape(array.shape)[indices]
    others = [np.broadcast_to(coerced(x, fmt, name), places.shape).reshape(-1) for x in operands]
    flat = places.reshape(-1)
    order = np.argsort(flat, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(flat[order]) != 0]) if flat.size else np.empty(0, np.int64)
    turn = np.empty(flat.size, np.int64)
    turn[order] = np.arange(flat.size) - np.repeat(starts, np.diff(np.r_[starts, flat.size]))
    codes = array.codes.reshape(-1)
    shared = np.may_share_memory(codes, array.codes)
    for k in range(int(turn.max(initial=-1)) + 1):
        now = turn == k
        with handlers.relocated(handlers.unravelled, flat[now], array.shape, name=name):
            codes[flat[now]] = entry.compute(name, fmt, codes[flat[now]], *(x[now] for x in others))
    if not shared:
        array.codes[...] = codes.reshape(array.shape)


METHODS: dict[str, Callable[..., Any]] = {
    "reduce": _reduce,
    "accumulate": _accumulate,
    "reduceat": _reduceat,
    "outer": _outer,
    "at": _at,
}

UFUNCS.update(dict.fromkeys(ENTRIES, run))
