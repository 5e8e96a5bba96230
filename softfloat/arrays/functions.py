"""NumPy's functions on SoftArrays: shapes moved as codes, sums by the environment's accumulator, order by value.

Each handler takes the arguments of the NumPy function it stands for; an argument without meaning here raises TypeError.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.arrays.creation import empty, ones, zeros
from softfloat.arrays.decimals import array_text, decimals
from softfloat.arrays.held import FUNCTIONS, evaluated, wrapped
from softfloat.arrays.operands import coerced, common_format, format_of
from softfloat.arrays.softarray import SoftArray
from softfloat.bits.comparisons import quieted
from softfloat.engine import Codes
from softfloat.environments import current_environment
from softfloat.formats import Format
from softfloat.status import FloatingPointTrap

ABSENT = np._NoValue if hasattr(np, "_NoValue") else object()

Handler = Callable[..., Any]


def implements(*functions: Any, mixed: bool = False) -> Callable[[Handler], Handler]:
    """Register what stands in for some of NumPy's functions; their first argument is the SoftArray, unless `mixed`."""

    def register(handler: Handler) -> Handler:
        @wraps(handler)
        def checked(*arguments: Any, **keywords: Any) -> Any:
            own = arguments[0] if arguments else next(iter(keywords.values()), None)
            if not isinstance(own, SoftArray):
                raise TypeError(f"numpy.{functions[0].__name__} of {type(own).__name__} takes no SoftArray")
            return handler(*arguments, **keywords)

        for function in functions:
            FUNCTIONS[function] = handler if mixed else checked
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
        if value is not None and value is not ABSENT and not (name == "where" and value is True):
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


def paired(function: str, a: Any, b: Any) -> tuple[SoftArray, SoftArray, Format]:
    """Two operands of one format."""
    fmt = common_format([a, b], function)
    return wrapped(coerced(a, fmt, function, 0), fmt), wrapped(coerced(b, fmt, function, 1), fmt), fmt


def as_soft(x: Any, fmt: Format, function: str) -> SoftArray:
    """An operand as a SoftArray of a format."""
    return x if isinstance(x, SoftArray) and x.format == fmt else wrapped(coerced(x, fmt, function), fmt)


def relocated(
    place: Callable[..., tuple[int, ...]], *known: Any, name: str | None = None
) -> AbstractContextManager[None]:
    """A trap names where the element is in the result that the caller sees: place(its index, *known)."""
    return _relocated(place, known, name) if current_environment().traps else UNTRAPPED


UNTRAPPED = nullcontext()


@contextmanager
def _relocated(place: Callable[..., tuple[int, ...]], known: tuple[Any, ...], name: str | None) -> Iterator[None]:
    try:
        yield
    except FloatingPointTrap as trap:
        raise trap.moved(place(trap.index, *known), name) from None


def arranged(shape: Sequence[int], arrange: Callable[[Codes], Codes]) -> AbstractContextManager[None]:
    """`relocated`, among results of a shape that `arrange` brings into their final order."""

    def place(index: tuple[int, ...]) -> tuple[int, ...]:
        numbers = np.arange(math.prod(shape)).reshape(shape)
        return tuple(np.argwhere(arrange(numbers) == numbers[index])[0].tolist())

    return relocated(place)


def keeping(codes: Codes, kept: Sequence[int], keepdims: Any) -> AbstractContextManager[None]:
    """A trap in a reduction of the last axis names its place among all axes if they are kept."""
    keep = keepdims is not ABSENT and bool(keepdims)
    return arranged(codes.shape[:-1], lambda found: found.reshape(kept) if keep else found)


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


def _found(x: Any) -> Iterable[Any]:
    """Everything in nested lists."""
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from _found(item)
    else:
        yield x


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
        if any(isinstance(x, SoftArray) for x in _found([*arguments, *keywords.values()])):
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
        fmt = common_format(list(_found(arguments)), name)
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
    for i, places in enumerate(np.nonzero(truth(filt))):
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


def truth(x: Any) -> Any:
    """Whether each element counts as true."""
    engine.refuse_mask(x, "a condition")
    return ~bits.iszero(x.codes, x.format) if isinstance(x, SoftArray) else np.asarray(x, bool)


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


NAN_RANK = np.int64(1) << 40
"""Beyond every number's."""


def ranks(codes: Codes, fmt: Format) -> np.ndarray[Any, Any]:
    """Integers that are ordered as the numbers are: -0 before +0, NaNs last."""
    return np.where(engine.is_nan(codes, fmt), NAN_RANK, engine.keys(codes, fmt).astype(np.int64))


def equal_ranks(codes: Codes, fmt: Format) -> np.ndarray[Any, Any]:
    """The same with both zeros equal."""
    return np.where(bits.iszero(codes, fmt), 0, ranks(codes, fmt))


def _signals(x: SoftArray, found: Codes, name: str) -> Codes:
    """Elements that were chosen: NaNs quiet, INVALID for signalling ones."""
    return np.asarray(evaluated(name, quieted, found, x.format))


def _extreme(name: str, largest: bool, number: bool) -> Handler:
    """The greatest or the least element along axes; NaN if there is one, unless `number`."""

    def chosen_of(codes: Codes, fmt: Format) -> Codes:
        keys = ranks(codes, fmt)
        nan = keys == NAN_RANK
        if not largest:
            keys = -keys
        keys = np.where(nan, np.iinfo(np.int64).min if number else np.iinfo(np.int64).max, keys)
        return np.take_along_axis(codes, np.argmax(keys, axis=-1, keepdims=True), axis=-1)[..., 0]

    def extreme(
        a: SoftArray, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True
    ) -> Any:
        if where is not True:
            return placed(by_lanes(extreme, name, a, axis, where, keepdims, initial=initial), out, name)
        codes, kept = laid_out(a.codes, axis)
        codes = begun(codes, initial, a.format, name)
        if not codes.shape[-1]:
            raise ValueError(f"numpy.{name} of no elements; accepted: initial=")
        if engine.has_nan(codes, a.format):
            chosen = chosen_of(codes, a.format)
        else:
            keys = engine.keys(codes, a.format)
            chosen = engine.from_keys(keys.max(axis=-1) if largest else keys.min(axis=-1), a.format)
        with keeping(codes, kept, keepdims):
            found = _signals(a, chosen, name)
        return placed(restored(found, kept, keepdims, a.format), out, name)

    extreme.__name__ = name
    return extreme


max_, min_ = _extreme("max", True, False), _extreme("min", False, False)
for _handler, _of in (
    (max_, (np.max, np.amax)),
    (min_, (np.min, np.amin)),
    (_extreme("nanmax", True, True), (np.nanmax,)),
    (_extreme("nanmin", False, True), (np.nanmin,)),
):
    implements(*_of)(_handler)


def laid_out(codes: Codes, axis: Any) -> tuple[Codes, tuple[int, ...]]:
    """(codes with the axes to reduce last and as one, the shape with ones in their place)."""
    if axis is None:
        return codes.reshape(-1), (1,) * codes.ndim
    axes = np.lib.array_utils.normalize_axis_tuple(axis, codes.ndim)
    others = [i for i in range(codes.ndim) if i not in axes]
    kept = tuple(1 if i in axes else n for i, n in enumerate(codes.shape))
    arranged = codes.transpose(*others, *sorted(axes))
    count = math.prod(codes.shape[i] for i in axes)
    return arranged.reshape(*(codes.shape[i] for i in others), count), kept


def begun(codes: Codes, initial: Any, fmt: Format, name: str) -> Codes:
    """Codes with a first element before those of the last axis, if there is one."""
    if initial is ABSENT or initial is None:
        return codes
    first = np.broadcast_to(coerced(initial, fmt, name), (*codes.shape[:-1], 1))
    return np.concatenate([first, codes], axis=-1)


def by_lanes(
    function: Handler, name: str, a: SoftArray, axis: Any, mask: Any, keepdims: Any, *arguments: Any, **keywords: Any
) -> SoftArray:
    """A reduction of the elements where a mask holds, results of equally many at once."""
    codes, kept = laid_out(a.codes, axis)
    chosen = laid_out(np.broadcast_to(truth(mask), a.shape), axis)[0]
    flat = math.prod(codes.shape[:-1]), codes.shape[-1]
    lanes, masks = codes.reshape(flat), chosen.reshape(flat)
    found = []
    with keeping(codes, kept, keepdims):
        for count, places in alike(np.count_nonzero(masks, axis=-1)) if flat[0] else [(flat[1], np.arange(0))]:
            some = wrapped(lanes[places][masks[places]].reshape(len(places), count), a.format)
            with relocated(unravelled, places, codes.shape[:-1], name=name):
                found.append((places, function(some, *arguments, axis=-1, **keywords).codes))
    results = np.empty((*found[0][1].shape[:-1], len(lanes)), a.format.dtype)
    for places, part in found:
        results[..., places] = part
    results = results.reshape(results.shape[:-1] + codes.shape[:-1])
    return restored(results, kept, keepdims, a.format, results.ndim - codes.ndim + 1)


def unravelled(index: tuple[int, ...], places: Codes, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Where one of some elements, whose places among all are known, is in these."""
    return tuple(int(i) for i in np.unravel_index(places[index[0]], shape))


def alike(lengths: Any) -> Iterator[tuple[int, Any]]:
    """(a length, the places that have it) of each, in the order in which they first come."""
    found, first = np.unique(lengths, return_index=True)
    for length in lengths[np.sort(first)] if found.size > 1 else found:
        yield int(length), np.flatnonzero(lengths == length)


def restored(codes: Any, kept: tuple[int, ...], keepdims: Any, fmt: Format, more: int = 0) -> SoftArray:
    """A reduction's result, with the reduced axes where they were if wanted; `more` axes stand before all."""
    codes = np.asarray(codes)
    keep = keepdims is not ABSENT and bool(keepdims)
    return wrapped(codes.reshape(codes.shape[:more] + kept) if keep else codes, fmt)


@implements(np.ptp)
def ptp(a: SoftArray, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """The greatest element less the least, rounded."""
    return placed(max_(a, axis, keepdims=keepdims) - min_(a, axis, keepdims=keepdims), out, "ptp")


ANSWERING = """
argmax argmin argsort argpartition nanargmax nanargmin count_nonzero nonzero flatnonzero argwhere all any isposinf
isneginf isreal iscomplex isrealobj iscomplexobj lexsort
"""
"""Functions of one array whose answers are no numbers of the format, but places, counts and truths, told from exact values."""

COMPARING = "isclose allclose array_equal array_equiv digitize isin"
"""The same of two arrays; numbers among them are rounded into the format."""


def _by_value(function: Any, count: int) -> Handler:
    name = function.__name__
    numbers = set(list(inspect.signature(function).parameters)[:count]) if count > 1 else set()

    def told(*arguments: Any, out: Any = None, **keywords: Any) -> Any:
        fmt = common_format(list(_found([*arguments, *keywords.values()])), name)

        def exact(x: Any) -> Any:
            if name == "lexsort" and isinstance(x, (list, tuple)):
                return [exact(item) for item in x]
            return np.asarray(bits.decode(coerced(x, fmt, name, quiet=True), fmt))

        operands = [exact(x) for x in arguments[:count]]
        named_ = {key: exact(x) if isinstance(x, SoftArray) or key in numbers else x for key, x in keywords.items()}
        return placed(function(*operands, *arguments[count:], **named_), out, name)

    return told


for _names, _count in ((ANSWERING, 1), (COMPARING, 2)):
    for _function in named(*_names.split()):
        FUNCTIONS[_function] = _by_value(_function, _count)


@implements(np.searchsorted, mixed=True)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Places in a sorted array where numbers of the same format belong."""
    fmt = common_format([a, v], "searchsorted")
    places, wanted = (np.asarray(as_soft(x, fmt, "searchsorted").values) for x in (a, v))
    return np.searchsorted(places, wanted, side, sorter)


@implements(np.histogram)
def histogram(a: SoftArray, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """How many numbers lie between edges, and the edges: of a number of bins NumPy's, each rounded into the format."""
    refuse("histogram", density=density or None, weights=weights)
    fmt, values = a.format, np.asarray(a.values)
    numbers = bins if np.ndim(bins) else np.histogram_bin_edges(values, bins, range).tolist()
    edges = as_soft(numbers, fmt, "histogram")
    return np.histogram(values, np.asarray(edges.values))[0], edges


@implements(np.sort)
def sort(a: SoftArray, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> SoftArray:
    """A sorted copy, NaNs last; -0 before +0, unless a stable order is asked for, in which both zeros are equal."""
    refuse("sort", order=order)
    codes, axis = (a.codes.reshape(-1), -1) if axis is None else (a.codes, axis)
    how: dict[str, Any] = {"kind": kind, "stable": stable}
    if stable or kind in ("stable", "mergesort") or engine.has_nan(codes, a.format):
        order = np.argsort(equal_ranks(codes, a.format), axis, **(how if stable or kind else {"kind": "stable"}))
        return wrapped(np.take_along_axis(codes, order, axis), a.format)
    return wrapped(engine.from_keys(np.sort(engine.keys(codes, a.format), axis, **how), a.format), a.format)


@implements(np.partition)
def partition(a: SoftArray, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> SoftArray:
    """A copy with the k-th element in its place: sorted, which is more."""
    np.partition(
        np.empty(a.size if axis is None else a.shape[axis], bool), kth, kind=kind
    )  # refuses what it does not take
    return sort(a, axis, order=order)


@implements(np.unique)
def unique(
    ar: SoftArray,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The numbers there are, sorted in any case; both zeros count as one, and all NaNs unless each is to count for itself."""
    refuse("unique", axis=axis)
    fmt = ar.format
    flat = ar.codes.reshape(-1)
    keys = equal_ranks(flat, fmt)
    if not equal_nan:
        nan = np.flatnonzero(keys == NAN_RANK)
        keys[nan] += np.arange(nan.size)
    found_at: Any = np.unique
    _, first, *rest = found_at(keys, True, return_inverse, return_counts)
    if return_inverse:
        rest[0] = rest[0].reshape(ar.shape)
    found = wrapped(flat[first], fmt)
    more = ([first] if return_index else []) + rest
    return (found, *more) if more else found


def _of_the_standard(name: str, *fields: str) -> None:
    function = getattr(np, name)
    result: Any = type(function(np.zeros(0)))

    def found(x: SoftArray, /) -> Any:
        """The numbers there are, and what else the name says; each NaN counts for itself."""
        parts = unique(x, True, True, True, equal_nan=False)
        chosen = [parts[("values", "indices", "inverse_indices", "counts").index(field)] for field in fields]
        return result(*chosen) if len(chosen) > 1 else chosen[0]

    implements(function)(found)


_of_the_standard("unique_all", "values", "indices", "inverse_indices", "counts")
_of_the_standard("unique_counts", "values", "counts")
_of_the_standard("unique_inverse", "values", "inverse_indices")
_of_the_standard("unique_values", "values")


def _sets(function: str, a: Any, b: Any) -> tuple[SoftArray, SoftArray]:
    x, y, _ = paired(function, a, b)
    return unique(x), unique(y)


@implements(np.union1d, mixed=True)
def union1d(ar1: Any, ar2: Any) -> SoftArray:
    """The numbers in either array, sorted."""
    return unique(np.concatenate(_sets("union1d", ar1, ar2)))


@implements(np.intersect1d, mixed=True)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The numbers in both arrays, sorted; with the places where they come first in each."""
    one, two, _ = paired("intersect1d", ar1, ar2)
    (x, first), (y, second) = unique(one, True), unique(two, True)
    both = np.isin(x, y)
    return (x[both], first[both], second[np.isin(y, x)]) if return_indices else x[both]


@implements(np.setdiff1d, mixed=True)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> SoftArray:
    """The numbers in the first array alone, sorted; in their order if they are said to be different."""
    one, two, _ = paired("setdiff1d", ar1, ar2)
    x = one.reshape(-1) if assume_unique else unique(one)
    return x[~np.isin(x, two)]


@implements(np.setxor1d, mixed=True)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> SoftArray:
    """The numbers in one array alone, sorted."""
    x, y = _sets("setxor1d", ar1, ar2)
    return sort(np.concatenate([x[~np.isin(x, y)], y[~np.isin(y, x)]]))


@implements(np.clip, mixed=True)
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
    np.broadcast_shapes(result.shape, *(np.shape(x) for x in (low, high) if x is not ABSENT and x is not None))
    if low is not ABSENT and low is not None:
        result = np.maximum(result, low)
    if high is not ABSENT and high is not None:
        result = np.minimum(result, high)
    return placed(result if result is not a else result.copy(), out, "clip")


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
