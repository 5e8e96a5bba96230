"""NumPy's functions on SoftArrays: shapes moved as codes, sums by the environment's accumulator, order by value.

Each handler takes the arguments of the NumPy function it stands for; an argument without meaning here raises TypeError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from softfloat import _engine, bits
from softfloat._engine import Codes
from softfloat.accumulators import Accumulator, fma, mul_add
from softfloat.array import (
    FUNCTIONS,
    SoftArray,
    coerced,
    common_format,
    evaluated,
    full_like,
    ones_like,
    wrapped,
    zeros_like,
)
from softfloat.environment import current_environment
from softfloat.formats import Format

ABSENT = np._NoValue if hasattr(np, "_NoValue") else object()

Handler = Callable[..., Any]


def implements(*functions: Any) -> Callable[[Handler], Handler]:
    """Register what stands in for some of NumPy's functions."""

    def register(handler: Handler) -> Handler:
        for function in functions:
            FUNCTIONS[function] = handler
        return handler

    return register


def named(*names: str) -> list[Any]:
    """The functions of these names that this NumPy has."""
    found = []
    for name in names:
        owner: Any = np
        for part in name.split("."):
            owner = getattr(owner, part, None)
        if owner is not None:
            found.append(owner)
    return found


def refuse(function: str, **arguments: Any) -> None:
    """TypeError for arguments that were given although they have no meaning here."""
    for name, value in arguments.items():
        if value is not None and value is not ABSENT and value is not True:
            raise TypeError(f"numpy.{function} of a SoftArray takes no {name}=")


def check_dtype(function: str, dtype: Any, fmt: Format) -> None:
    """A dtype may be named only as the array's own format."""
    if dtype is not None and dtype != fmt and dtype != fmt.name:
        raise TypeError(
            f"numpy.{function} of a SoftArray of {fmt} stays in {fmt}, got dtype={dtype!r}; astype() converts"
        )


def placed(result: Any, out: Any, function: str) -> Any:
    """A result, or the array given for it, filled."""
    if isinstance(out, tuple):
        (out,) = out
    if out is None:
        return result
    if isinstance(result, SoftArray):
        if not isinstance(out, SoftArray) or out.format != result.format or out.shape != result.shape:
            found = f"{out.format} of shape {out.shape}" if isinstance(out, SoftArray) else type(out).__name__
            raise TypeError(
                f"out of numpy.{function} must be a SoftArray of {result.format} and shape {result.shape}, got {found}"
            )
        out.codes[...] = result.codes
        return out
    if not isinstance(out, np.ndarray) or out.shape != np.shape(result):
        raise TypeError(
            f"out of numpy.{function} must be an array of {np.asarray(result).dtype} and shape {np.shape(result)}"
        )
    np.copyto(out, result, casting="same_kind")
    return out


def as_soft(x: Any, fmt: Format, function: str) -> SoftArray:
    """An operand as a SoftArray of a format."""
    return x if isinstance(x, SoftArray) and x.format == fmt else wrapped(coerced(x, fmt, function), fmt)


# -- shapes: what happens to codes happens to numbers ----------------------------------------------------------------

MOVING = """
reshape ravel transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis expand_dims squeeze broadcast_to flip
fliplr flipud roll rot90 tile repeat take take_along_axis delete resize diagonal copy compress extract atleast_1d
atleast_2d atleast_3d split array_split hsplit vsplit dsplit broadcast_arrays unstack trim_zeros
linalg.matrix_transpose linalg.diagonal
"""
"""Functions that only move elements of their SoftArrays about."""

JOINING = "concatenate stack vstack hstack dstack column_stack block append meshgrid"
"""Functions that put arrays, in lists or as arguments, together; numbers among them are rounded into the format."""

ZERO_FILLING = "diag diagflat tril triu"
"""Functions that put zeros in."""


def _found(x: Any) -> Iterable[Any]:
    """Everything in nested lists."""
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from _found(item)
    else:
        yield x


def _codes_within(x: Any) -> Any:
    if isinstance(x, SoftArray):
        return x.codes
    return type(x)(_codes_within(item) for item in x) if isinstance(x, (list, tuple)) else x


def _joined(x: Any, fmt: Format, function: str) -> Any:
    if isinstance(x, (list, tuple)):
        return [_joined(item, fmt, function) for item in x]
    return coerced(x, fmt, function)


def _wrapped_within(x: Any, fmt: Format) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(_wrapped_within(item, fmt) for item in x)
    return wrapped(x, fmt) if isinstance(x, np.ndarray) and x.dtype == fmt.dtype else x


def _moving(function: Any, fills: bool) -> Handler:
    def moved(*arguments: Any, **keywords: Any) -> Any:
        fmt = common_format(list(_found([*arguments, *keywords.values()])), function.__name__)
        if fills and not fmt.zero:
            raise TypeError(f"numpy.{function.__name__} needs a format with a zero, and {fmt} has none")
        keywords = {name: _codes_within(value) for name, value in keywords.items()}
        result = function(*(_codes_within(x) for x in arguments), **keywords)
        return _wrapped_within(result, fmt)

    return moved


def _joining(function: Any) -> Handler:
    def joined(*arguments: Any, **keywords: Any) -> Any:
        if isinstance(keywords.get("out"), SoftArray):
            out = keywords.pop("out")
            return placed(joined(*arguments, **keywords), out, function.__name__)
        name = function.__name__
        fmt = common_format(list(_found(arguments)), name)
        check_dtype(name, keywords.pop("dtype", None), fmt)
        count = {"append": 2, "meshgrid": len(arguments)}.get(name, 1)
        parts = [_joined(x, fmt, name) for x in arguments[:count]]
        return _wrapped_within(function(*parts, *arguments[count:], **keywords), fmt)

    return joined


for _function in named(*MOVING.split()):
    FUNCTIONS[_function] = _moving(_function, False)
for _function in named(*ZERO_FILLING.split()):
    FUNCTIONS[_function] = _moving(_function, True)
for _function in named(*JOINING.split()):
    FUNCTIONS[_function] = _joining(_function)


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> SoftArray:
    """Numbers put in before some places."""
    fmt = common_format([arr, values], "insert")
    return wrapped(np.insert(coerced(arr, fmt, "insert", 0), obj, coerced(values, fmt, "insert", 2), axis), fmt)


@implements(np.pad)
def pad(array: SoftArray, pad_width: Any, mode: Any = "constant", **keywords: Any) -> SoftArray:
    """Numbers put around: constants, or others of the array."""
    accepted = ("constant", "edge", "reflect", "symmetric", "wrap", "empty")
    if mode not in accepted:
        raise TypeError(f"numpy.pad of a SoftArray has no mode={mode!r}; accepted: {', '.join(accepted)}")
    fmt = array.format
    if mode == "constant":
        keywords["constant_values"] = coerced(keywords.get("constant_values", 0), fmt, "pad")
    return wrapped(np.pad(array.codes, pad_width, mode, **keywords), fmt)


@implements(np.shape)
def shape(a: SoftArray) -> tuple[int, ...]:
    """Lengths of the axes."""
    return a.shape


@implements(np.ndim)
def ndim(a: SoftArray) -> int:
    """Number of axes."""
    return a.ndim


@implements(np.size)
def size(a: SoftArray, axis: Any = None) -> int:
    """Number of elements, or of those along an axis."""
    return int(np.size(a.codes, axis))


@implements(np.may_share_memory, np.shares_memory)
def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether two arrays overlap."""
    return bool(np.shares_memory(_codes_within(a), _codes_within(b)))


@implements(np.zeros_like)
def zeros_like_(
    a: SoftArray, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **rest: Any
) -> SoftArray:
    """+0 in the shape of an array."""
    check_dtype("zeros_like", dtype, a.format)
    return zeros_like(a if shape is None else wrapped(np.empty(shape, a.codes.dtype), a.format))


@implements(np.ones_like)
def ones_like_(
    a: SoftArray, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **rest: Any
) -> SoftArray:
    """1 in the shape of an array."""
    check_dtype("ones_like", dtype, a.format)
    return ones_like(a if shape is None else wrapped(np.empty(shape, a.codes.dtype), a.format))


@implements(np.empty_like)
def empty_like_(
    a: SoftArray, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **rest: Any
) -> SoftArray:
    """An array of the same shape; of code 0."""
    check_dtype("empty_like", dtype, a.format)
    return wrapped(np.zeros(a.shape if shape is None else shape, a.codes.dtype), a.format)


@implements(np.full_like)
def full_like_(
    a: SoftArray,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    **rest: Any,
) -> SoftArray:
    """One number in the shape of an array."""
    check_dtype("full_like", dtype, a.format)
    return full_like(a if shape is None else wrapped(np.empty(shape, a.codes.dtype), a.format), fill_value)


# -- choosing and setting --------------------------------------------------------------------------------------------


def truth(x: Any) -> Any:
    """Whether each element counts as true."""
    return ~bits.iszero(x.codes, x.format) if isinstance(x, SoftArray) else np.asarray(x, bool)


@implements(np.where)
def where(condition: Any, x: Any = ABSENT, y: Any = ABSENT) -> Any:
    """Elements of x where a condition holds, of y elsewhere; with the condition alone, its places."""
    if x is ABSENT and y is ABSENT:
        return np.nonzero(truth(condition))
    if not (isinstance(x, SoftArray) or isinstance(y, SoftArray)):
        return np.where(truth(condition), x, y)
    fmt = common_format([x, y], "where")
    return wrapped(np.where(truth(condition), coerced(x, fmt, "where", 1), coerced(y, fmt, "where", 2)), fmt)


@implements(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> SoftArray:
    """The first choice whose condition holds."""
    fmt = common_format([*choicelist, default], "select")
    choices = [coerced(x, fmt, "select") for x in choicelist]
    return wrapped(np.select([truth(x) for x in condlist], choices, coerced(default, fmt, "select")), fmt)


@implements(np.choose)
def choose(a: Any, choices: Sequence[Any], out: Any = None, mode: Any = "raise") -> SoftArray:
    """Elements of the choices that integers name."""
    fmt = common_format(list(choices), "choose")
    return placed(wrapped(np.choose(a, [coerced(x, fmt, "choose") for x in choices], mode=mode), fmt), out, "choose")


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Numbers into an array."""
    if not isinstance(dst, SoftArray):
        raise TypeError(
            f"numpy.copyto into {type(dst).__name__} from a SoftArray: values or astype() say how to convert"
        )
    np.copyto(dst.codes, coerced(src, dst.format, "copyto"), where=where)


@implements(np.put)
def put(a: SoftArray, ind: Any, v: Any, mode: Any = "raise") -> None:
    """Numbers at places of the flattened array."""
    np.put(a.codes, ind, coerced(v, a.format, "put"), mode)


@implements(np.putmask)
def putmask(a: SoftArray, mask: Any, values: Any) -> None:
    """Numbers where a mask holds."""
    np.putmask(a.codes, truth(mask), coerced(values, a.format, "putmask"))


@implements(np.place)
def place(arr: SoftArray, mask: Any, vals: Any) -> None:
    """Numbers in turn where a mask holds."""
    np.place(arr.codes, truth(mask), coerced(vals, arr.format, "place"))


@implements(np.put_along_axis)
def put_along_axis(arr: SoftArray, indices: Any, values: Any, axis: Any) -> None:
    """Numbers at places along an axis."""
    np.put_along_axis(arr.codes, indices, coerced(values, arr.format, "put_along_axis"), axis)


@implements(np.fill_diagonal)
def fill_diagonal(a: SoftArray, val: Any, wrap: bool = False) -> None:
    """Numbers on the diagonal."""
    np.fill_diagonal(a.codes, coerced(val, a.format, "fill_diagonal"), wrap)


@implements(np.nan_to_num)
def nan_to_num(x: SoftArray, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> SoftArray:
    """NaN and infinities replaced: by 0, the largest and the least number, or as told."""
    fmt = x.format
    high = fmt.max_code if posinf is None else coerced(posinf, fmt, "nan_to_num")
    low = fmt.min_code if neginf is None else coerced(neginf, fmt, "nan_to_num")
    infinite, negative = bits.isinf(x.codes, fmt), bits.signbit(x.codes, fmt)
    codes = np.where(infinite, np.where(negative, low, high), x.codes)
    codes = np.where(bits.isnan(x.codes, fmt), coerced(nan, fmt, "nan_to_num"), codes).astype(fmt.dtype)
    if copy:
        return wrapped(codes, fmt)
    x.codes[...] = codes
    return x


# -- order -----------------------------------------------------------------------------------------------------------


def ranks(codes: Codes, fmt: Format) -> np.ndarray[Any, Any]:
    """Integers that are ordered as the numbers are: -0 before +0, NaNs last."""
    magnitude = _engine.magnitudes(codes, fmt).astype(np.int64)
    order = np.where(codes == _engine.magnitudes(codes, fmt), magnitude, -1 - magnitude)
    return np.where(_engine.is_nan(codes, fmt), np.int64(1) << 40, order)


def _signals(x: SoftArray, found: Codes, name: str) -> Codes:
    """Elements that were chosen: NaNs quiet, INVALID for signalling ones."""
    return np.asarray(evaluated(name, bits.maximum, found, found, x.format))


def extreme(
    x: SoftArray, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any, largest: bool, number: bool = False
) -> Any:
    """The greatest or the least element along axes; NaN if there is one, unless `number`."""
    name = {(True, False): "max", (False, False): "min", (True, True): "nanmax", (False, True): "nanmin"}[
        largest, number
    ]
    refuse(name, where=where)
    codes, kept = laid_out(x.codes, axis)
    if initial is not ABSENT and initial is not None:
        first = np.broadcast_to(coerced(initial, x.format, name), (*codes.shape[:-1], 1))
        codes = np.concatenate([first, codes], axis=-1)
    if not codes.shape[-1]:
        raise ValueError(f"numpy.{name} of no elements; accepted: initial=")
    keys = ranks(codes, x.format)
    nan = keys == np.int64(1) << 40
    if not largest:
        keys = -keys
    keys = np.where(nan, np.iinfo(np.int64).min if number else np.iinfo(np.int64).max, keys)
    chosen = np.take_along_axis(codes, np.argmax(keys, axis=-1, keepdims=True), axis=-1)[..., 0]
    return placed(restored(_signals(x, chosen, name), kept, keepdims, x.format), out, name)


def laid_out(codes: Codes, axis: Any) -> tuple[Codes, tuple[int, ...]]:
    """(codes with the axes to reduce last and as one, the shape with ones in their place)."""
    if axis is None:
        return codes.reshape(-1), (1,) * codes.ndim
    axes = np.lib.array_utils.normalize_axis_tuple(axis, codes.ndim, "axis")
    others = [i for i in range(codes.ndim) if i not in axes]
    kept = tuple(1 if i in axes else n for i, n in enumerate(codes.shape))
    arranged = codes.transpose(*others, *sorted(axes))
    count = math.prod(codes.shape[i] for i in axes)
    return arranged.reshape(*(codes.shape[i] for i in others), count), kept


def restored(codes: Any, kept: tuple[int, ...], keepdims: Any, fmt: Format) -> SoftArray:
    """A reduction's result, with the reduced axes where they were if wanted."""
    codes = np.asarray(codes)
    return wrapped(codes.reshape(kept) if keepdims is True else codes, fmt)


@implements(np.max, np.amax)
def max_(
    a: SoftArray, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True
) -> Any:
    """The greatest element."""
    return extreme(a, axis, out, keepdims, initial, where, True)


@implements(np.min, np.amin)
def min_(
    a: SoftArray, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True
) -> Any:
    """The least element."""
    return extreme(a, axis, out, keepdims, initial, where, False)


@implements(np.nanmax)
def nanmax(
    a: SoftArray, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True
) -> Any:
    """The greatest element that is no NaN."""
    return extreme(a, axis, out, keepdims, initial, where, True, number=True)


@implements(np.nanmin)
def nanmin(
    a: SoftArray, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True
) -> Any:
    """The least element that is no NaN."""
    return extreme(a, axis, out, keepdims, initial, where, False, number=True)


@implements(np.ptp)
def ptp(a: SoftArray, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """The greatest element less the least, rounded."""
    return placed(max_(a, axis, keepdims=keepdims) - min_(a, axis, keepdims=keepdims), out, "ptp")


def _values_in_order(x: SoftArray) -> np.ndarray[Any, Any]:
    return np.asarray(x.values)


BY_VALUE = """
argmax argmin argsort argpartition nanargmax nanargmin count_nonzero nonzero flatnonzero argwhere all any isclose
allclose array_equal array_equiv isposinf isneginf isreal iscomplex isrealobj iscomplexobj digitize lexsort
"""
"""Functions whose answers are no numbers of the format: places, counts and truths, told from exact values."""


def _by_value(function: Any) -> Handler:
    def told(*arguments: Any, **keywords: Any) -> Any:
        operands = [x for x in [*_found(arguments), *keywords.values()] if isinstance(x, SoftArray)]
        fmt = common_format(operands, function.__name__)

        def exact(x: Any) -> Any:
            if isinstance(x, SoftArray):
                return _values_in_order(x)
            if isinstance(x, (float, int)) and not isinstance(x, bool):
                return x
            if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind not in "biu":
                return np.asarray(wrapped(coerced(x, fmt, function.__name__), fmt).values)
            return type(x)(exact(item) for item in x) if isinstance(x, (list, tuple)) else x

        out = keywords.pop("out", None)
        result = function(*map(exact, arguments), **{name: exact(value) for name, value in keywords.items()})
        return placed(result, out, function.__name__)

    return told


for _function in named(*BY_VALUE.split()):
    FUNCTIONS[_function] = _by_value(_function)


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Places in a sorted array where numbers of the same format belong."""
    fmt = common_format([a, v], "searchsorted")
    places, wanted = (_values_in_order(as_soft(x, fmt, "searchsorted")) for x in (a, v))
    return np.searchsorted(places, wanted, side, sorter)


@implements(np.sort)
def sort(a: SoftArray, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> SoftArray:
    """A sorted copy, NaNs last."""
    refuse("sort", order=order)
    codes, axis = (a.codes.reshape(-1), -1) if axis is None else (a.codes, axis)
    return wrapped(np.take_along_axis(codes, np.argsort(ranks(codes, a.format), axis, kind="stable"), axis), a.format)


@implements(np.partition)
def partition(a: SoftArray, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> SoftArray:
    """A copy with the k-th element in its place: sorted, which is more."""
    return sort(a, axis, order=order)


@implements(np.unique)
def unique(
    ar: SoftArray,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    **keywords: Any,
) -> Any:
    """The numbers there are, sorted; both zeros count as one, and all NaNs."""
    refuse("unique", axis=axis)
    fmt = ar.format
    flat = ar.codes.reshape(-1)
    keys = ranks(flat, fmt)
    keys = np.where(keys == -1, 0, keys)
    found_at: Any = np.unique
    _, first, *rest = found_at(keys, True, return_inverse, return_counts)
    if return_inverse:
        rest[0] = rest[0].reshape(ar.shape)
    found = wrapped(flat[first], fmt)
    more = ([first] if return_index else []) + rest
    return (found, *more) if more else found


@implements(np.median)
def median(
    a: SoftArray, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    """The middle element; between two, half of their rounded sum, rounded."""
    codes, kept = laid_out(a.codes, axis)
    ordered = sort(wrapped(codes, a.format))
    count = codes.shape[-1]
    if not count:
        raise ValueError("numpy.median of no elements")
    low, high = ordered[..., (count - 1) // 2], ordered[..., count // 2]
    middle = low.copy() if count % 2 else (low + high) / 2
    nan = bits.isnan(ordered.codes[..., -1], a.format)
    codes = np.where(nan, ordered.codes[..., -1], middle.codes)
    return placed(restored(codes, kept, keepdims, a.format), out, "median")


@implements(np.clip)
def clip(
    a: Any,
    a_min: Any = ABSENT,
    a_max: Any = ABSENT,
    out: Any = None,
    *,
    min: Any = ABSENT,
    max: Any = ABSENT,
    **keywords: Any,
) -> Any:
    """Elements brought between two bounds."""
    refuse("clip", **keywords)
    low = a_min if a_min is not ABSENT else min
    high = a_max if a_max is not ABSENT else max
    fmt = common_format([a, low, high], "clip")
    result = as_soft(a, fmt, "clip")
    if low is not ABSENT and low is not None:
        result = np.maximum(result, low)
    if high is not ABSENT and high is not None:
        result = np.minimum(result, high)
    return placed(result if result is not a else result.copy(), out, "clip")


# -- sums and products -----------------------------------------------------------------------------------------------


def accumulator_for(fmt: Format, products: bool = True) -> Accumulator:
    """How the environment in force sums numbers of a format."""
    chosen = current_environment().accumulator
    if chosen is None:
        return mul_add(fmt) if products else fma(fmt)
    if not isinstance(chosen, Accumulator) and callable(chosen):
        chosen = chosen(fmt)
    if not isinstance(chosen, Accumulator):
        raise TypeError(f"accumulator of the environment must give a softfloat.Accumulator, got {chosen!r}")
    return chosen


def total(codes: Codes, fmt: Format, name: str) -> Codes:
    """Sums over the last axis."""
    how = accumulator_for(fmt, products=False)
    return np.asarray(evaluated(name, bits.sum, codes, fmt, how, axis=-1, out_format=fmt))


def product_of(a: Codes, b: Codes, fmt: Format, name: str) -> Codes:
    """Matrix product of codes."""
    return np.asarray(evaluated(name, bits.matmul, a, b, fmt, accumulator_for(fmt), out_format=fmt))


def dots_of(a: Codes, b: Codes, fmt: Format, name: str) -> Codes:
    """Dot products over the last axis."""
    return np.asarray(evaluated(name, bits.vecdot, a, b, fmt, accumulator_for(fmt), out_format=fmt))


def quotient(x: Codes, count: int, fmt: Format, name: str) -> Codes:
    """Numbers divided by an integer that the format need not have, rounded once."""
    if not count:
        zero = np.zeros(x.shape, fmt.dtype)
        return np.asarray(evaluated(name, bits.div, zero, zero, fmt))
    values = np.asarray(bits.decode(x, fmt))
    finite = np.isfinite(values)
    values = np.where(finite, values, 1.0)
    approximate = values / count
    kept = (np.asarray(approximate).view(np.int64) & ~np.int64(0x3FFFFFF)).view(
        np.float64
    )  # 27 bits: times count is exact
    rest = values - kept * count
    beyond = rest * np.sign(values) < 0
    odd = np.where(
        beyond, np.nextafter(kept, 0.0), np.where(rest != 0, np.nextafter(kept, np.copysign(np.inf, values)), kept)
    )
    codes = np.asarray(evaluated(name, bits.encode, odd, fmt))
    return np.where(finite, codes, x).astype(fmt.dtype)


@implements(np.sum)
def sum_(
    a: SoftArray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = ABSENT,
    where: Any = True,
) -> Any:
    """Sums along axes, in C order, by the environment's accumulator."""
    check_dtype("sum", dtype, a.format)
    refuse("sum", where=where)
    codes, kept = laid_out(a.codes, axis)
    if initial is not ABSENT and initial is not None:
        first = np.broadcast_to(coerced(initial, a.format, "sum"), (*codes.shape[:-1], 1))
        codes = np.concatenate([first, codes], axis=-1)
    return placed(restored(total(codes, a.format, "sum"), kept, keepdims, a.format), out, "sum")


@implements(np.nansum)
def nansum(
    a: SoftArray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = ABSENT,
    where: Any = True,
) -> Any:
    """Sums with zeros for NaNs."""
    return sum_(where_number(a), axis, dtype, out, keepdims, initial, where)


def where_number(a: SoftArray) -> SoftArray:
    """Zeros in the place of NaNs."""
    return wrapped(np.where(bits.isnan(a.codes, a.format), 0, a.codes).astype(a.format.dtype), a.format)


def running(a: SoftArray, axis: Any, dtype: Any, out: Any, name: str) -> Any:
    """Sums of the first 1, 2, 3 ... elements along an axis."""
    check_dtype(name, dtype, a.format)
    how = accumulator_for(a.format, products=False)
    codes = evaluated(name, bits.cumsum, a.codes, a.format, how, axis=axis, out_format=a.format)
    return placed(wrapped(np.asarray(codes), a.format), out, name)


@implements(np.cumsum)
def cumsum(a: SoftArray, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running sums."""
    return running(a, axis, dtype, out, "cumsum")


@implements(*named("cumulative_sum"))
def cumulative_sum(
    x: SoftArray, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    """Running sums, from 0 if wanted."""
    if include_initial:
        raise TypeError("numpy.cumulative_sum of a SoftArray takes no include_initial=")
    return running(x, axis, dtype, out, "cumulative_sum")


def folded(codes: Codes, fmt: Format, function: Any, name: str, keep: bool) -> Codes:
    """An operation along the last axis, one element after the other; with all steps if `keep`."""
    count = codes.shape[-1]
    state = np.ascontiguousarray(codes[..., 0])
    steps = [state]
    for k in range(1, count):
        state = np.asarray(evaluated(name, function, state, np.ascontiguousarray(codes[..., k]), fmt))
        if keep:
            steps.append(state)
    return np.stack(steps, axis=-1) if keep else state


@implements(np.prod)
def prod(
    a: SoftArray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = ABSENT,
    where: Any = True,
) -> Any:
    """Products along axes, in C order, each step rounded."""
    check_dtype("prod", dtype, a.format)
    refuse("prod", where=where)
    codes, kept = laid_out(a.codes, axis)
    first = a.format.one_code if initial is ABSENT or initial is None else coerced(initial, a.format, "prod")
    codes = np.concatenate([np.broadcast_to(first, (*codes.shape[:-1], 1)).astype(a.format.dtype), codes], axis=-1)
    return placed(restored(folded(codes, a.format, bits.mul, "prod", False), kept, keepdims, a.format), out, "prod")


@implements(np.cumprod)
def cumprod(a: SoftArray, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running products, each step rounded."""
    return accumulated(a, axis, dtype, out, bits.mul, "cumprod")


def accumulated(a: SoftArray, axis: Any, dtype: Any, out: Any, function: Any, name: str) -> Any:
    """All steps of an operation along an axis."""
    check_dtype(name, dtype, a.format)
    codes, axis = (a.codes.reshape(-1), 0) if axis is None else (a.codes, axis)
    moved = np.moveaxis(codes, axis, -1)
    steps = folded(moved, a.format, function, name, True) if moved.shape[-1] else moved.copy()
    return placed(wrapped(np.moveaxis(steps, -1, axis), a.format), out, name)


@implements(np.mean)
def mean(
    a: SoftArray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """The sum, as `sum` finds it, divided by the count; the quotient is rounded once, whether or not the format has the count."""
    check_dtype("mean", dtype, a.format)
    refuse("mean", where=where)
    codes, kept = laid_out(a.codes, axis)
    found = quotient(total(codes, a.format, "mean"), codes.shape[-1], a.format, "mean")
    return placed(restored(found, kept, keepdims, a.format), out, "mean")


@implements(np.average)
def average(
    a: SoftArray, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    """The mean; with weights, the dot product with them divided by their sum."""
    if weights is None:
        if returned:
            raise TypeError("numpy.average of a SoftArray takes no returned= without weights")
        return mean(a, axis, keepdims=keepdims)
    fmt = common_format([a, weights], "average")
    given = as_soft(weights, fmt, "average")
    if given.shape != a.shape:
        if axis is None or isinstance(axis, tuple) or given.ndim != 1:
            raise TypeError("weights of numpy.average must have the shape of a SoftArray, or that of one axis")
        given = wrapped(np.moveaxis(np.broadcast_to(given.codes, np.moveaxis(a.codes, axis, -1).shape), -1, axis), fmt)
    (codes, kept), (factors, _) = laid_out(a.codes, axis), laid_out(given.codes, axis)
    scale = wrapped(total(factors, fmt, "average"), fmt)
    found = wrapped(dots_of(codes, factors, fmt, "average"), fmt) / scale
    result = restored(found.codes, kept, keepdims, fmt)
    return (result, restored(scale.codes, kept, keepdims, fmt)) if returned else result


@implements(np.var)
def var(
    a: SoftArray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = ABSENT,
    correction: Any = ABSENT,
) -> Any:
    """The dot product with itself of what is left after the mean, divided by count - ddof; mean and differences are rounded."""
    check_dtype("var", dtype, a.format)
    refuse("var", where=where)
    fmt = a.format
    codes, kept = laid_out(a.codes, axis)
    count = codes.shape[-1]
    freedom = count - (ddof if correction is ABSENT else correction)
    if mean is ABSENT:
        centre = quotient(total(codes, fmt, "var"), count, fmt, "var")[..., None]
    else:
        centre = laid_out(np.broadcast_to(coerced(mean, fmt, "var"), a.shape), axis)[0]
    left = np.asarray(evaluated("var", bits.sub, codes, centre, fmt))
    squares = dots_of(left, left, fmt, "var")
    if freedom != int(freedom):
        raise TypeError(f"ddof of numpy.var of a SoftArray must be an integer, got {ddof!r}")
    found = quotient(squares, max(int(freedom), 0), fmt, "var")
    return placed(restored(found, kept, keepdims, fmt), out, "var")


@implements(np.std)
def std(
    a: SoftArray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    **keywords: Any,
) -> Any:
    """The square root of `var`, rounded."""
    return placed(np.sqrt(var(a, axis, dtype, None, ddof, keepdims, **keywords)), out, "std")


def paired(function: str, a: Any, b: Any) -> tuple[SoftArray, SoftArray, Format]:
    """Two operands of one format."""
    fmt = common_format([a, b], function)
    return wrapped(coerced(a, fmt, function, 0), fmt), wrapped(coerced(b, fmt, function, 1), fmt), fmt


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Sums over the last axis of a and the last but one of b."""
    x, y, fmt = paired("dot", a, b)
    if not x.ndim or not y.ndim:
        return placed(np.multiply(x, y), out, "dot")
    return placed(_contracted(x.codes, y.codes, x.ndim - 1, max(y.ndim - 2, 0), fmt, "dot"), out, "dot")


def _contracted(a: Codes, b: Codes, axis_a: int, axis_b: int, fmt: Format, name: str) -> SoftArray:
    """Sums over one axis of each; the others of a, then those of b, are left."""
    if a.shape[axis_a] != b.shape[axis_b]:
        raise ValueError(
            f"shapes do not fit in numpy.{name}: {a.shape} along axis {axis_a}, {b.shape} along axis {axis_b}"
        )
    x, y = np.moveaxis(a, axis_a, -1), np.moveaxis(b, axis_b, 0)
    length = x.shape[-1]
    found = product_of(x.reshape(math.prod(x.shape[:-1]), length), y.reshape(length, math.prod(y.shape[1:])), fmt, name)
    return wrapped(found.reshape(*x.shape[:-1], *y.shape[1:]), fmt)


@implements(np.vdot)
def vdot(a: Any, b: Any) -> SoftArray:
    """The dot product of two flattened arrays."""
    x, y, fmt = paired("vdot", a, b)
    return _contracted(x.codes.reshape(-1), y.codes.reshape(-1), 0, 0, fmt, "vdot")


@implements(np.inner)
def inner(a: Any, b: Any) -> Any:
    """Sums over both last axes."""
    x, y, fmt = paired("inner", a, b)
    if not x.ndim or not y.ndim:
        return np.multiply(x, y)
    return _contracted(x.codes, y.codes, x.ndim - 1, y.ndim - 1, fmt, "inner")


@implements(*named("outer", "linalg.outer"))
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Every product of two flattened arrays."""
    x, y, _ = paired("outer", a, b)
    return placed(np.multiply(x.reshape(-1, 1), y.reshape(1, -1)), out, "outer")


@implements(*named("tensordot", "linalg.tensordot"))
def tensordot(a: Any, b: Any, axes: Any = 2) -> SoftArray:
    """Sums over pairs of axes."""
    x, y, fmt = paired("tensordot", a, b)
    if isinstance(axes, (int, np.integer)):
        first: Any = range(x.ndim - int(axes), x.ndim)
        second: Any = range(int(axes))
    else:
        first, second = ([one] if isinstance(one, (int, np.integer)) else list(one) for one in axes)
    first, second = [int(i) % x.ndim for i in first], [int(i) % y.ndim for i in second]
    if [x.shape[i] for i in first] != [y.shape[i] for i in second]:
        raise ValueError(f"shapes do not fit in numpy.tensordot: {x.shape} along {first}, {y.shape} along {second}")
    rest_x = [i for i in range(x.ndim) if i not in first]
    rest_y = [i for i in range(y.ndim) if i not in second]
    shape_x, shape_y = [x.shape[i] for i in rest_x], [y.shape[i] for i in rest_y]
    length = math.prod(x.shape[i] for i in first)
    left = x.codes.transpose(*rest_x, *first).reshape(math.prod(shape_x), length)
    right = y.codes.transpose(*second, *rest_y).reshape(length, math.prod(shape_y))
    return wrapped(product_of(left, right, fmt, "tensordot").reshape(*shape_x, *shape_y), fmt)


@implements(np.kron)
def kron(a: Any, b: Any) -> SoftArray:
    """The Kronecker product."""
    x, y, _ = paired("kron", a, b)
    dims = max(x.ndim, y.ndim)
    one, two = (z.reshape((1,) * (dims - z.ndim) + z.shape) for z in (x, y))
    left = one.reshape([n for pair in zip(one.shape, (1,) * dims, strict=True) for n in pair])
    right = two.reshape([n for pair in zip((1,) * dims, two.shape, strict=True) for n in pair])
    return (left * right).reshape([m * n for m, n in zip(one.shape, two.shape, strict=True)])


@implements(*named("trace", "linalg.trace"))
def trace(a: SoftArray, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum of the diagonal."""
    return sum_(wrapped(np.diagonal(a.codes, offset, axis1, axis2), a.format), -1, dtype, out)


@implements(*named("linalg.norm", "linalg.vector_norm"))
def norm(x: SoftArray, ord: Any = None, axis: Any = None, keepdims: bool = False) -> SoftArray:
    """The square root of the dot product with itself."""
    if ord not in (None, 2, "fro") or (ord == 2 and (axis is None) and x.ndim > 1):
        raise TypeError(f"numpy.linalg.norm of a SoftArray has no ord={ord!r}; accepted: None, 2 for vectors, 'fro'")
    codes, kept = laid_out(x.codes, axis)
    return as_soft(
        np.sqrt(restored(dots_of(codes, codes, x.format, "norm"), kept, keepdims, x.format)), x.format, "norm"
    )


@implements(np.einsum)
def einsum(subscripts: Any, *operands: Any, out: Any = None, optimize: Any = False, **keywords: Any) -> Any:
    """Sums of products over the indices that the result lacks, in the order in which they first appear; one or two operands."""
    refuse("einsum", **keywords)
    if not isinstance(subscripts, str):
        raise TypeError("numpy.einsum of SoftArrays needs its subscripts as a string")
    if not 1 <= len(operands) <= 2:
        raise TypeError(
            f"numpy.einsum of SoftArrays takes one or two operands, got {len(operands)}: nest calls to say in which order to round"
        )
    fmt = common_format(operands, "einsum")
    codes = [coerced(x, fmt, "einsum", i) for i, x in enumerate(operands)]
    terms, wanted = _subscripts(subscripts, [x.ndim for x in codes])
    sizes: dict[str, int] = {}
    parts = []
    for term, x in zip(terms, codes, strict=True):
        for letter, n in zip(term, x.shape, strict=True):
            if sizes.setdefault(letter, n) in (1, n):
                sizes[letter] = n
            elif n != 1:
                raise ValueError(f"numpy.einsum: index {letter!r} has lengths {sizes[letter]} and {n}")
        letters = list(dict.fromkeys(term))
        repeated = len(letters) < len(term)
        places = [letters.index(c) for c in term]
        parts.append(
            (letters, np.einsum(x, places, list(range(len(letters)))) if repeated else x)
        )  # a diagonal: a view
    summed = [letter for letter in dict.fromkeys("".join(terms)) if letter not in wanted]
    expanded = [
        np.broadcast_to(_spread_out(x, letters, [*wanted, *summed]), [sizes[c] for c in (*wanted, *summed)])
        for letters, x in parts
    ]
    shape, length = [sizes[c] for c in wanted], math.prod(sizes[c] for c in summed)
    if len(expanded) == 1:
        result = total(expanded[0].reshape(*shape, length), fmt, "einsum") if summed else expanded[0].copy()
    elif summed:
        result = _einsum_pair(parts, list(wanted), summed, sizes, fmt)
    else:
        result = np.asarray(evaluated("einsum", bits.mul, *expanded, fmt))
    return placed(wrapped(result.reshape(shape), fmt), out, "einsum")


def _subscripts(subscripts: str, dims: Sequence[int]) -> tuple[list[str], str]:
    """Letters of the operands and of the result, ellipses written out in digits."""
    text = subscripts.replace(" ", "")
    given, arrow, wanted = text.partition("->")
    terms = given.split(",")
    if len(terms) != len(dims):
        raise ValueError(f"numpy.einsum: {subscripts!r} names {len(terms)} operands, and there are {len(dims)}")
    extra = [n - len(term.replace("...", "")) if "..." in term else 0 for term, n in zip(terms, dims, strict=True)]
    digits = "0123456789"[: max(extra, default=0)]
    terms = [term.replace("...", digits[len(digits) - n :]) for term, n in zip(terms, extra, strict=True)]
    for term, n in zip(terms, dims, strict=True):
        if len(term) != n or (not term.replace("...", "").isalnum() and term):
            raise ValueError(f"numpy.einsum: {term!r} does not fit an operand of {n} axes")
    if arrow:
        wanted = wanted.replace("...", digits)
    else:
        letters = "".join(terms)
        wanted = digits + "".join(sorted(c for c in set(letters) - set(digits) if letters.count(c) == 1))
    if len(set(wanted)) != len(wanted) or not set(wanted) <= set("".join(terms)):
        raise ValueError(f"numpy.einsum: {subscripts!r} asks for indices that no operand has, or for one twice")
    return terms, wanted


def _spread_out(x: Codes, letters: Sequence[str], order: Sequence[str]) -> Codes:
    """Axes in a given order, of length 1 where there are none."""
    present = [c for c in order if c in letters]
    moved = x.transpose([letters.index(c) for c in present])
    return moved.reshape([moved.shape[present.index(c)] if c in present else 1 for c in order])


def _einsum_pair(
    parts: list[tuple[list[str], Codes]], wanted: list[str], summed: list[str], sizes: dict[str, int], fmt: Format
) -> Codes:
    """Two operands as stacks of matrices: indices of both, of the first alone, of the second alone."""
    (first, a), (second, b) = parts
    both = [c for c in wanted if c in first and c in second]
    rows = [c for c in wanted if c in first and c not in second]
    columns = [c for c in wanted if c in second and c not in first]

    def laid(x: Codes, letters: list[str], order: list[str], shape: list[int]) -> Codes:
        return np.broadcast_to(_spread_out(x, letters, order), [sizes[c] for c in order]).reshape(shape)

    batch = [sizes[c] for c in both]
    count, length, width = (math.prod(sizes[c] for c in group) for group in (rows, summed, columns))
    left = laid(a, first, both + rows + summed, [*batch, count, length])
    right = laid(b, second, both + summed + columns, [*batch, length, width])
    found = product_of(left, right, fmt, "einsum").reshape([sizes[c] for c in both + rows + columns])
    order = both + rows + columns
    return found.transpose([order.index(c) for c in wanted])


def _sliding(function: str, a: Any, v: Any, mode: str, reverse: bool) -> SoftArray:
    """Dot products of a with v at every shift, over growing indices of a."""
    x, y, fmt = paired(function, a, v)
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size:
        raise ValueError(
            f"numpy.{function} needs arrays of one axis and at least one element, got shapes {x.shape} and {y.shape}"
        )
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode of numpy.{function} must be 'full', 'same' or 'valid', got {mode!r}")
    swapped = y.size > x.size
    one, two = (y.codes, x.codes) if swapped else (x.codes, y.codes)
    two = two[::-1] if reverse else two
    n, k = one.size, two.size
    middle_first = (k - 1) // 2
    places = {"valid": range(k - 1, n), "full": range(n + k - 1), "same": range(middle_first, middle_first + n)}[mode]
    inside = np.lib.stride_tricks.sliding_window_view(one, k)
    middle = product_of(np.ascontiguousarray(inside), two, fmt, function)
    result = np.empty(len(places), fmt.dtype)
    for i, place in enumerate(places):
        if k - 1 <= place < n:
            result[i] = middle[place - k + 1]
        else:
            low, high = max(place - k + 1, 0), min(place, n - 1)
            result[i] = dots_of(one[low : high + 1], two[low - place + k - 1 : high - place + k], fmt, function)
    return wrapped(result[::-1].copy() if swapped and not reverse else result, fmt)


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> SoftArray:
    """The discrete convolution; each element is a dot product, by the environment's accumulator."""
    return _sliding("convolve", a, v, mode, reverse=True)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> SoftArray:
    """The cross-correlation; each element is a dot product, by the environment's accumulator."""
    return _sliding("correlate", a, v, mode, reverse=False)


# -- other arithmetic ------------------------------------------------------------------------------------------------


@implements(np.round, np.around)
def round_(a: SoftArray, decimals: int = 0, out: Any = None) -> Any:
    """Elements to the nearest integer; with decimals, multiplied by a power of ten, rounded and divided again."""
    if not decimals:
        return placed(np.rint(a), out, "round")
    power = 10 ** abs(decimals)
    scaled = np.rint(a * power if decimals > 0 else a / power)
    return placed(scaled / power if decimals > 0 else scaled * power, out, "round")


@implements(np.fix)
def fix(x: SoftArray, out: Any = None) -> Any:
    """Elements without their fractions."""
    return placed(np.trunc(x), out, "fix")


@implements(np.diff)
def diff(a: SoftArray, n: int = 1, axis: int = -1, prepend: Any = ABSENT, append: Any = ABSENT) -> SoftArray:
    """Differences of neighbours, n times over, each rounded."""
    refuse("diff", prepend=prepend, append=append)
    result = a
    for _ in range(n):
        codes = np.moveaxis(result.codes, axis, -1)
        found = wrapped(codes[..., 1:], a.format) - wrapped(codes[..., :-1], a.format)
        result = wrapped(np.moveaxis(found.codes, -1, axis), a.format)
    return result


@implements(np.polyval)
def polyval(p: Any, x: Any) -> SoftArray:
    """A polynomial by Horner's rule, each product and each sum rounded."""
    fmt = common_format([p, x], "polyval")
    coefficients, at = as_soft(p, fmt, "polyval"), as_soft(x, fmt, "polyval")
    result = zeros_like(at)
    for c in coefficients:
        result = result * at + c
    return result


@implements(np.sinc)
def sinc(x: SoftArray) -> SoftArray:
    """sin(pi x) / (pi x), each step rounded."""
    y = x * math.pi
    return as_soft(
        np.where(bits.iszero(x.codes, x.format), 1, np.sin(y) / np.where(bits.iszero(y.codes, y.format), 1, y)),
        x.format,
        "sinc",
    )


@implements(np.real)
def real(val: SoftArray) -> SoftArray:
    """The array itself."""
    return val


# -- text and files --------------------------------------------------------------------------------------------------


@implements(np.array_str)
def array_str(a: SoftArray, *arguments: Any, **keywords: Any) -> str:
    """The text of `str`."""
    return str(a)


@implements(np.array_repr)
def array_repr(arr: SoftArray, *arguments: Any, **keywords: Any) -> str:
    """The text of `repr`."""
    return repr(arr)


@implements(np.array2string)
def array2string(a: SoftArray, *arguments: Any, **keywords: Any) -> str:
    """NumPy's text with the fewest digits that identify each number."""
    return np.array2string(a._shortest(), *arguments, **keywords)


@implements(np.save, np.savez, np.savez_compressed, np.savetxt)
def save(*arguments: Any, **keywords: Any) -> None:
    """Refused: a NumPy file knows no format."""
    raise TypeError(
        "NumPy's files hold no SoftArray, as they know no format: save x.codes, and read with softfloat.from_codes(numpy.load(file), format)"
    )


@implements(*named("astype"))
def astype(x: SoftArray, dtype: Any, /, *, copy: bool = True, **keywords: Any) -> Any:
    """As the method."""
    return x.astype(dtype, copy=copy)
