"""NumPy's functions on SoftArrays: shapes moved as codes, elements chosen and set, text.

Each handler takes the arguments of the NumPy function it stands for; an argument without meaning here raises TypeError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.arrays.creation import empty, ones, zeros
from softfloat.arrays.decimals import array_text, decimals
from softfloat.arrays.handlers import (
    ABSENT,
    Handler,
    as_soft,
    check_dtype,
    each_within,
    implements,
    named,
    placed,
    truth,
)
from softfloat.arrays.held import FUNCTIONS, wrapped
from softfloat.arrays.operands import coerced, common_format, format_of
from softfloat.arrays.softarray import SoftArray
from softfloat.formats import Format

# -- shapes: what happens to codes happens to numbers ----------------------------------------------------------------

MOVING = """
reshape ravel transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis expand_dims squeeze broadcast_to flip
fliplr flipud roll rot90 tile repeat take take_along_axis delete resize diagonal copy atleast_1d atleast_2d atleast_3d
split array_split hsplit vsplit dsplit unstack linalg.matrix_transpose linalg.diagonal fft.fftshift fft.ifftshift
lib.stride_tricks.sliding_window_view
"""
"""Functions that only move the elements of their first argument about."""

JOINING = "concatenate stack vstack hstack dstack column_stack block append meshgrid"
"""Functions that put arrays, in lists or as arguments, together; numbers among them are rounded into the format."""

ZERO_FILLING = "diag diagflat tril triu"
"""Functions that put zeros in."""


def _joined(x: Any, fmt: Format, function: str) -> Any:
    if isinstance(x, (list, tuple)):
        return [_joined(item, fmt, function) for item in x]
    return coerced(x, fmt, function)


def _wrapped_within(x: Any, fmt: Format) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(_wrapped_within(item, fmt) for item in x)
    return wrapped(x, fmt) if isinstance(x, (np.ndarray, np.generic)) and x.dtype == fmt.dtype else x


def _codes_of(x: Any) -> Any:
    return x.codes if isinstance(x, SoftArray) else x


def _moving(function: Any, fills: bool) -> Handler:
    name = function.__name__

    def moved(first: Any, *arguments: Any, out: Any = None, **keywords: Any) -> Any:
        if any(isinstance(x, SoftArray) for x in each_within([*arguments, *keywords.values()])):
            raise TypeError(f"numpy.{name} takes a SoftArray as its first argument only")
        if fills and not first.format.zero:
            raise TypeError(f"numpy.{name} needs a format with a zero, and {first.format} has none")
        result = _wrapped_within(function(first.codes, *arguments, **keywords), first.format)
        return placed(result, out, name)

    if name.startswith("atleast"):
        return lambda *arrays: moved(arrays[0]) if len(arrays) == 1 else tuple(FUNCTIONS[function](x) for x in arrays)
    return moved


def _joining(function: Any) -> Handler:
    def joined(*arguments: Any, **keywords: Any) -> Any:
        if isinstance(keywords.get("out"), SoftArray):
            out = keywords.pop("out")
            return placed(joined(*arguments, **keywords), out, function.__name__)
        name = function.__name__
        fmt = common_format(list(each_within(arguments)), name)
        check_dtype(name, keywords.pop("dtype", None), fmt)
        count = {"append": 2, "meshgrid": len(arguments)}.get(name, 1)
        parts = [_joined(x, fmt, name) for x in arguments[:count]]
        return _wrapped_within(function(*parts, *arguments[count:], **keywords), fmt)

    return joined


for _function in named(*MOVING.split()):
    implements(_function)(_moving(_function, False))
for _function in named(*ZERO_FILLING.split()):
    implements(_function)(_moving(_function, True))
for _function in named(*JOINING.split()):
    FUNCTIONS[_function] = _joining(_function)


@implements(np.broadcast_arrays, mixed=True)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """Arrays in their common shape; NumPy's own stay NumPy's."""
    found = np.broadcast_arrays(*map(_codes_of, args), subok=subok)
    return tuple(wrapped(y, x.format) if isinstance(x, SoftArray) else y for x, y in zip(args, found, strict=True))


@implements(np.compress, mixed=True)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Slices along an axis where a condition holds."""
    fmt = common_format([a], "compress")
    return placed(wrapped(np.compress(truth(condition), a.codes, axis), fmt), out, "compress")


@implements(np.extract, mixed=True)
def extract(condition: Any, arr: Any) -> SoftArray:
    """Elements where a condition holds."""
    return wrapped(np.extract(truth(condition), arr.codes), common_format([arr], "extract"))


@implements(np.trim_zeros)
def trim_zeros(filt: SoftArray, trim: str = "fb", axis: Any = None) -> SoftArray:
    """The array without the zeros, of either sign, at its ends."""
    if not set(trim.lower()) <= set("fb"):
        raise ValueError(f"trim of numpy.trim_zeros must be of 'f' and 'b', got {trim!r}")
    axes = range(filt.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, filt.ndim)
    spans = [slice(None)] * filt.ndim
    for i, places in enumerate(np.argwhere(truth(filt)).T):
        low, high = (int(places.min()), int(places.max()) + 1) if places.size else (0, 0)
        if i in axes:
            spans[i] = slice(
                low if "f" in trim.lower() or not high else 0, high if "b" in trim.lower() or not high else None
            )
    return filt[tuple(spans)]


def _of_shape(function: Any) -> Handler:
    return lambda arr, *arguments, **keywords: function(arr.codes, *arguments, **keywords)


for _function in named("diag_indices_from", "tril_indices_from", "triu_indices_from"):
    implements(_function)(_of_shape(_function))


@implements(np.insert, mixed=True)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> SoftArray:
    """Numbers put in before some places."""
    fmt = common_format([arr, values], "insert")
    if isinstance(obj, SoftArray):
        raise TypeError("obj of numpy.insert must be integers or a slice, got SoftArray")
    return wrapped(np.insert(coerced(arr, fmt, "insert", 0), obj, coerced(values, fmt, "insert", 2), axis), fmt)


@implements(np.pad)
def pad(array: SoftArray, pad_width: Any, mode: Any = "constant", **keywords: Any) -> SoftArray:
    """Numbers put around: constants, or others of the array."""
    accepted = ("constant", "edge", "reflect", "symmetric", "wrap", "empty")
    if mode not in accepted:
        raise TypeError(f"numpy.pad of a SoftArray has no mode={mode!r}; accepted: {', '.join(accepted)}")
    if keywords.get("reflect_type", "even") != "even":
        raise TypeError(
            f"numpy.pad of a SoftArray takes no reflect_type={keywords['reflect_type']!r}; accepted: 'even'"
        )
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


@implements(np.shares_memory, mixed=True)
def shares_memory(a: Any, b: Any, max_work: Any = -1) -> bool:
    """Whether two arrays have an element in common."""
    return bool(np.shares_memory(_codes_of(a), _codes_of(b), max_work))


@implements(np.may_share_memory, mixed=True)
def may_share_memory(a: Any, b: Any, max_work: Any = 0) -> bool:
    """Whether two arrays lie in the same stretch of memory."""
    return bool(np.may_share_memory(_codes_of(a), _codes_of(b), max_work))


def _like(name: str, make: Callable[..., SoftArray]) -> None:
    def like(
        a: SoftArray, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *, device: Any = None
    ) -> SoftArray:
        check_dtype(name, dtype, a.format)
        number = make((), a.format).codes
        return wrapped(np.full_like(a.codes, number, order=order, shape=shape, device=device), a.format)

    FUNCTIONS[getattr(np, name)] = like


_like("zeros_like", zeros)
_like("ones_like", ones)
_like("empty_like", empty)


@implements(np.full_like)
def full_like(
    a: SoftArray,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> SoftArray:
    """One number in the shape of an array, or several that are broadcast to it."""
    check_dtype("full_like", dtype, a.format)
    number = fill_value.astype(a.format) if isinstance(fill_value, SoftArray) else fill_value
    codes = coerced(number, a.format, "full_like")
    return wrapped(np.full_like(a.codes, codes, order=order, shape=shape, device=device), a.format)


# -- choosing and setting --------------------------------------------------------------------------------------------


@implements(np.where, mixed=True)
def where(condition: Any, x: Any = ABSENT, y: Any = ABSENT) -> Any:
    """Elements of x where a condition holds, of y elsewhere; with the condition alone, its places."""
    if x is ABSENT and y is ABSENT:
        return np.nonzero(truth(condition))
    if not (isinstance(x, SoftArray) or isinstance(y, SoftArray)):
        return np.where(truth(condition), x, y)
    fmt = common_format([x, y], "where")
    return wrapped(np.where(truth(condition), coerced(x, fmt, "where", 1), coerced(y, fmt, "where", 2)), fmt)


@implements(np.select, mixed=True)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> SoftArray:
    """The first choice whose condition holds."""
    fmt = common_format([*choicelist, default], "select")
    choices = [coerced(x, fmt, "select") for x in choicelist]
    return wrapped(np.select([truth(x) for x in condlist], choices, coerced(default, fmt, "select")), fmt)


@implements(np.choose, mixed=True)
def choose(a: Any, choices: Sequence[Any], out: Any = None, mode: Any = "raise") -> SoftArray:
    """Elements of the choices that integers name."""
    fmt = common_format(list(choices), "choose")
    if isinstance(a, SoftArray):
        raise TypeError("a of numpy.choose must be integers, got SoftArray")
    return placed(wrapped(np.choose(a, [coerced(x, fmt, "choose") for x in choices], mode=mode), fmt), out, "choose")


@implements(np.copyto, mixed=True)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Numbers into an array."""
    if not isinstance(dst, SoftArray):
        raise TypeError(
            f"numpy.copyto into {type(dst).__name__} from a SoftArray: values or astype() say how to convert"
        )
    codes = coerced(src, dst.format, "copyto")
    if casting not in ("same_kind", "unsafe") and format_of(src) != dst.format:
        raise TypeError(f"numpy.copyto rounds numbers into {dst.format}, and casting={casting!r} forbids it")
    np.copyto(dst.codes, codes, casting, truth(where))


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
    high = fmt.dtype.type(fmt.max_code) if posinf is None else coerced(posinf, fmt, "nan_to_num")
    low = fmt.dtype.type(fmt.min_code) if neginf is None else coerced(neginf, fmt, "nan_to_num")
    infinite, negative = bits.isinf(x.codes, fmt), bits.signbit(x.codes, fmt)
    codes = np.where(infinite, np.where(negative, low, high), x.codes)
    codes = np.where(bits.isnan(x.codes, fmt), coerced(nan, fmt, "nan_to_num"), codes)
    if copy:
        return wrapped(codes, fmt)
    x.codes[...] = codes
    return x


# -- functions of the caller's ---------------------------------------------------------------------------------------


@implements(np.apply_along_axis, mixed=True)
def apply_along_axis(func1d: Any, axis: int, arr: Any, *arguments: Any, **keywords: Any) -> SoftArray:
    """What a function makes of each row along an axis, in its place."""
    fmt = common_format([arr], "apply_along_axis")
    lanes = np.moveaxis(arr.codes, axis, -1)
    found = [
        as_soft(func1d(wrapped(lanes[place], fmt), *arguments, **keywords), fmt, "apply_along_axis").codes
        for place in np.ndindex(lanes.shape[:-1])
    ]
    if not found:
        raise ValueError("numpy.apply_along_axis needs at least one row")
    results = np.array(found, fmt.dtype).reshape(lanes.shape[:-1] + found[0].shape)
    start = axis % arr.ndim
    places = range(start, start + found[0].ndim)
    return wrapped(np.moveaxis(results, range(lanes.ndim - 1, results.ndim), places), fmt)


@implements(np.piecewise)
def piecewise(x: SoftArray, condlist: Any, funclist: Sequence[Any], *arguments: Any, **keywords: Any) -> SoftArray:
    """What functions, or numbers, make of the elements where their conditions hold: the last condition that does counts."""
    single = isinstance(condlist, np.ndarray) and condlist.ndim == x.ndim
    conditions = [truth(one) for one in ([condlist] if single or isinstance(condlist, bool) else condlist)]
    if len(funclist) == len(conditions) + 1:
        conditions.append(~np.any(conditions, axis=0))
    if len(funclist) != len(conditions):
        raise ValueError(
            f"numpy.piecewise needs a function for each of {len(conditions)} conditions, got {len(funclist)}"
        )
    result = wrapped(np.zeros(x.shape, x.codes.dtype), x.format)
    for condition, function in zip(conditions, funclist, strict=True):
        chosen = x[condition]
        result[condition] = function(chosen, *arguments, **keywords) if callable(function) else function
    return result


# -- text and files --------------------------------------------------------------------------------------------------


@implements(np.array_str)
def array_str(a: SoftArray, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """The text of `str`."""
    with _printing(max_line_width, precision, suppress_small):
        return str(a)


@implements(np.array_repr)
def array_repr(arr: SoftArray, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """The text of `repr`."""
    with _printing(max_line_width, precision, suppress_small):
        return repr(arr)


def _printing(width: Any, precision: Any, suppress: Any) -> AbstractContextManager[Any]:
    options = {"linewidth": width, "precision": precision, "suppress": suppress}
    return np.printoptions(**{name: value for name, value in options.items() if value is not None})


@implements(np.array2string)
def array2string(a: SoftArray, *arguments: Any, **keywords: Any) -> str:
    """NumPy's text of the numbers as `str` writes them."""
    return array_text(decimals(a.codes, a.format), *arguments, **keywords)


@implements(np.save, np.savez, np.savez_compressed, np.savetxt, mixed=True)
def save(*arguments: Any, **keywords: Any) -> None:
    """Refused: a NumPy file knows no format."""
    raise TypeError(
        "NumPy's files hold no SoftArray, as they know no format: save x.codes, and read with softfloat.from_codes(numpy.load(file), format)"
    )


@implements(*named("astype"))
def astype(x: SoftArray, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """As the method."""
    if device not in (None, "cpu"):
        raise ValueError(f"device of numpy.astype must be 'cpu', got {device!r}")
    return x.astype(dtype, copy=copy)
