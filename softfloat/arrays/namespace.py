"""The functions of the array API standard for one format: NumPy's own, which SoftArrays answer, and those that name a dtype or a device."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from softfloat import engine
from softfloat.arrays import creation
from softfloat.arrays.exchange import of_others
from softfloat.arrays.held import wrapped
from softfloat.arrays.operands import format_of
from softfloat.arrays.softarray import SoftArray, array, format_within
from softfloat.arrays.softarray import asarray as soft_asarray
from softfloat.arrays.standard import DEVICE, FUNCTIONS_OF, DType, Namespace, check_device
from softfloat.formats import Format

__all__ = ["FInfo"]

NUMPYS = """
abs acos acosh add all any argmax argmin asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or
bitwise_right_shift bitwise_xor broadcast_to ceil concat copysign cos cosh count_nonzero diff divide equal exp
expand_dims expm1 flip floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log10 log1p log2
logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum mean min minimum moveaxis
multiply negative nextafter nonzero not_equal permute_dims positive pow real reciprocal remainder repeat reshape roll round
searchsorted sign signbit sin sinh sqrt square squeeze stack std subtract take take_along_axis tan tanh tensordot tile tril triu trunc
unique_all unique_counts unique_inverse unique_values unstack var vecdot where
"""
"""Functions that are NumPy's under the standard's names: SoftArrays take part in them by NumPy's protocols."""

LINALG = """
cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr slogdet solve svd
svdvals tensordot trace vecdot vector_norm
"""
"""The same of the extension for linear algebra."""

SUMMING = "sum prod cumulative_sum cumulative_prod"
"""NumPy's with a dtype: integers that are to be summed in a format are converted first."""

FLOATS = """
acos acosh asin asinh atan atan2 atanh cos cosh divide exp expm1 hypot log log10 log1p log2 logaddexp mean sin sinh sqrt std tan tanh var
"""
"""Functions that NumPy computes in float64 where all operands are integers."""

CONSTANTS = {"e": math.e, "inf": math.inf, "nan": math.nan, "pi": math.pi, "newaxis": None}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
PLAIN: dict[str, Any] = {"bool": np.dtype(bool), **{name: np.dtype(name) for name in INTEGERS}}


class FInfo(NamedTuple):
    """Limits of a format, as the standard names them."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


def _dtype(x: Any, argument: str) -> Any:
    """A dtype from itself, a format, or what NumPy calls one."""
    if isinstance(x, Format):
        return DType(x)
    if isinstance(x, DType):
        return x
    try:
        found = np.dtype(x)
    except TypeError as error:
        raise TypeError(f"{argument} must be a dtype of the namespace, got {x!r}") from error
    if found.kind not in "biu":
        raise TypeError(
            f"{argument} must be a format, bool or an integer type, got {found}; accepted: softfloat.Format"
        )
    return found


def _of(x: Any) -> Any:
    """The dtype of an array; dtypes as they are."""
    return x.dtype if isinstance(x, (SoftArray, np.ndarray, np.generic)) else _dtype(x, "dtype")


def finfo(type: Any, /) -> FInfo:
    """Limits of a format; floats hold them exactly."""
    dtype = _of(type)
    if not isinstance(dtype, DType):
        raise TypeError(f"finfo is of floating-point formats, got {dtype}; accepted: iinfo of integers")
    fmt = dtype.format
    return FInfo(fmt.bits, 2.0**-fmt.mantissa_bits, float(fmt.max), float(fmt.min), float(fmt.smallest_normal), dtype)


def iinfo(type: Any, /) -> Any:
    """Limits of an integer type."""
    return np.iinfo(_of(type))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is another, or of a kind; formats are "real floating" and "numeric"."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    dtype = _dtype(dtype, "dtype")
    if not isinstance(kind, str):
        return bool(dtype == _dtype(kind, "kind"))
    as_numpy: Any = np.float64 if isinstance(dtype, DType) else dtype  # of the same kinds
    return bool(np.isdtype(as_numpy, kind))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether operators convert so: from integers to wider ones, never from or to a format."""
    one, other = _of(from_), _dtype(to, "to")
    if isinstance(one, DType) or isinstance(other, DType):
        return bool(one == other)
    return np.can_cast(one, other)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype of a result; formats meet only themselves and Python numbers."""
    found = [_of(x) for x in arrays_and_dtypes if not isinstance(x, (bool, int, float))]
    formats = [x for x in found if isinstance(x, DType)]
    if not found:
        raise TypeError("result_type needs an array or a dtype among its arguments")
    if not formats:
        return np.result_type(*[x if isinstance(x, (bool, int)) else _of(x) for x in arrays_and_dtypes])
    if any(x != formats[0] for x in found):
        raise TypeError(f"{', '.join(map(str, found))} have no common dtype; accepted: after astype()")
    return formats[0]


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """An array in another dtype; into a format each number is rounded once, into integers cut."""
    check_device(device)
    dtype = _dtype(dtype, "dtype")
    if isinstance(dtype, DType):
        return x.astype(dtype.format, copy) if isinstance(x, SoftArray) else array(x, dtype.format)
    return x.astype(dtype, copy=copy)


def _ordered(function: Any, x: Any, axis: int, descending: bool, stable: bool) -> Any:
    """Places in order; in a descending stable one, equals stay as they stand."""
    if not descending:
        return function(x, axis=axis, stable=stable)
    found = np.flip(np.argsort(np.flip(x, axis), axis=axis, stable=stable), axis)
    places = x.shape[axis] - 1 - found
    return places if function is np.argsort else np.take_along_axis(x, places, axis)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """A sorted copy."""
    return _ordered(np.sort, x, axis, descending, stable)


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Places that sort."""
    return _ordered(np.argsort, x, axis, descending, stable)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Elements brought between two bounds."""
    return np.clip(x, min, max)


def meshgrid(*arrays: Any, indexing: Any = "xy") -> list[Any]:
    """Arrays of one axis, spread over the axes of all."""
    return list(np.meshgrid(*arrays, indexing=indexing))


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """Arrays in their common shape."""
    return list(np.broadcast_arrays(*arrays))


def conj(x: Any, /) -> Any:
    """The array itself: no format is complex."""
    return np.conjugate(x)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """Another library's array, on its memory unless a copy is asked for; in a format it has, or NumPy's."""
    check_device(device)
    if not isinstance(x, SoftArray):
        held, fmt = of_others(x)
        held = held if isinstance(held, np.ndarray) else np.from_dlpack(held)
        if fmt is not None:
            x = wrapped(held, fmt)
        else:
            x = held if held.dtype.kind in "biu" else soft_asarray(held)
    return x.copy() if copy else x


OTHERS = (
    finfo, iinfo, isdtype, can_cast, result_type, astype, sort, argsort, clip, meshgrid, broadcast_arrays, conj, from_dlpack,
)  # fmt: skip
"""The functions for which no format is chosen."""


class Information:
    """What a namespace says of itself."""

    def __init__(self, fmt: Format) -> None:
        self._format = fmt

    def capabilities(self) -> dict[str, Any]:
        """Indexing by truths, shapes that depend on data, and axes without a limit of their own."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The host's memory."""
        return DEVICE

    def devices(self) -> list[str]:
        """The host's memory alone."""
        return [DEVICE]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """What arrays have that are made without a dtype."""
        check_device(device)
        return {"real floating": DType(self._format), "integral": PLAIN["int64"], "indexing": PLAIN["int64"]}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The namespace's own format, and NumPy's integers and truths."""
        check_device(device)
        found = {**PLAIN, self._format.name: DType(self._format)}
        return found if kind is None else {name: dtype for name, dtype in found.items() if isdtype(dtype, kind)}


def _in_formats(name: str) -> Callable[..., Any]:
    """NumPy's function, but for integers alone, of which it would make float64."""
    function = getattr(np, name)

    def of_floats(*arguments: Any, **keywords: Any) -> Any:
        if not any(isinstance(x, SoftArray) for x in arguments[:2]):
            found = getattr(arguments[0], "dtype", "numbers")
            raise TypeError(f"{name} of {found} would be float64; accepted: after astype() to a format")
        return function(*arguments, **keywords)

    return _signed(of_floats, function, name)


def _summing(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def summed(x: Any, /, *, dtype: Any = None, **keywords: Any) -> Any:
        dtype = None if dtype is None else _dtype(dtype, "dtype")
        if isinstance(dtype, DType):
            x, dtype = astype(x, dtype, copy=False), None
        return function(x, dtype=dtype, **keywords)

    return _signed(summed, function, name)


def _signed(wrapper: Any, function: Any, name: str) -> Any:
    """With the name, the text and the parameters of NumPy's."""
    if isinstance(function, np.ufunc):
        kind = inspect.Parameter.POSITIONAL_ONLY
        signature = inspect.Signature([inspect.Parameter(f"x{i + 1}", kind) for i in range(function.nin)])
    else:
        signature = inspect.signature(function)
    wrapper.__name__, wrapper.__doc__, wrapper.__signature__ = name, function.__doc__, signature
    return wrapper


def functions(fmt: Format) -> Mapping[str, Any]:
    """The functions whose arrays have a format unless they are told another."""
    own = DType(fmt)

    def kind(dtype: Any, device: Any) -> Any:
        check_device(device)
        return own if dtype is None else _dtype(dtype, "dtype")

    def made(name: str, shape: Any, dtype: Any, device: Any) -> Any:
        dtype = kind(dtype, device)
        return (
            getattr(creation, name)(shape, dtype.format)
            if isinstance(dtype, DType)
            else getattr(np, name)(shape, dtype)
        )

    def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
        """Numbers as an array: floats in a format, integers and truths in NumPy's."""
        check_device(device)
        engine.refuse_mask(obj, "obj")
        if not isinstance(obj, (SoftArray, np.ndarray, np.generic)):
            held, known = of_others(obj)
            obj = held if known is None else wrapped(held, known)
        if dtype is None and format_within(obj) is None:
            plain = np.asarray(obj)
            if plain.dtype.kind in "biu":
                return np.array(plain, copy=copy)
        wanted = None if dtype is None else _dtype(dtype, "dtype")
        if wanted is not None and not isinstance(wanted, DType):
            return obj.astype(wanted) if isinstance(obj, SoftArray) else np.array(obj, wanted, copy=copy)
        held = format_of(obj) if wanted is None else wanted.format
        found = array(obj, held or fmt, copy=bool(copy))
        source = obj.codes if isinstance(obj, SoftArray) else obj
        if copy is False and not (isinstance(source, np.ndarray) and np.may_share_memory(source, found.codes)):
            raise ValueError(f"copy=False: {type(obj).__name__} becomes an array of {found.format} by a copy only")
        return found

    def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
        """An array of +0."""
        return made("zeros", shape, dtype, device)

    def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
        """An array of 1."""
        return made("ones", shape, dtype, device)

    def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
        """An array of whatever."""
        return made("empty", shape, dtype, device)

    def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
        """An array of one number, of its kind unless told another."""
        value = asarray(fill_value, dtype=dtype, device=device)
        if isinstance(value, SoftArray):
            return creation.full(shape, value)
        return np.full(shape, value)

    def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
        """start, start + step ... below stop; integers where all three are."""
        check_device(device)
        first, last = (0, start) if stop is None else (start, stop)
        return asarray(np.arange(*map(creation.number, (first, last, step))), dtype=dtype)

    def linspace(
        start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
    ) -> Any:
        """`num` numbers evenly from start to stop."""
        wanted = kind(dtype, device)
        if not isinstance(wanted, DType):
            raise TypeError(f"dtype of linspace must be a format, got {wanted}")
        return creation.linspace(start, stop, num, wanted.format, endpoint=endpoint)

    def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Any:
        """Ones on a diagonal, +0 elsewhere."""
        return asarray(np.eye(n_rows, n_cols, k, bool), dtype=kind(dtype, device))

    def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
        """`zeros` in the shape of an array, and its dtype."""
        return made("zeros", x.shape, _of(x) if dtype is None else dtype, device)

    def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
        """`ones` in the shape of an array, and its dtype."""
        return made("ones", x.shape, _of(x) if dtype is None else dtype, device)

    def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
        """`empty` in the shape of an array, and its dtype."""
        return made("empty", x.shape, _of(x) if dtype is None else dtype, device)

    def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
        """`full` in the shape of an array, and its dtype."""
        return full(x.shape, fill_value, dtype=_of(x) if dtype is None else dtype, device=device)

    def __array_namespace_info__() -> Information:
        """What there is."""
        return Information(fmt)

    ours = (
        asarray, zeros, ones, empty, full, arange, linspace, eye, zeros_like, ones_like, empty_like, full_like, *OTHERS,
        __array_namespace_info__,
    )  # fmt: skip
    return {
        **{name: getattr(np, name) for name in NUMPYS.split() if hasattr(np, name)},
        **{name: _in_formats(name) for name in FLOATS.split()},
        **{name: _summing(name) for name in SUMMING.split()},
        **CONSTANTS,
        **PLAIN,
        **{one.__name__: one for one in ours},
        "linalg": Namespace(fmt, "linalg", **{name: getattr(np.linalg, name) for name in LINALG.split()}),
    }


FUNCTIONS_OF.append(functions)
