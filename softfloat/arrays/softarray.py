"""Arrays that compute in the format they carry: NumPy's manners, the bits of `softfloat.bits`.

A `SoftArray` holds integer codes and their format. Arithmetic, NumPy's ufuncs and NumPy's functions run on it, round
into its format under the environment in force, and leave their flags in that environment's status. What is not supported
raises TypeError; nothing turns into float64 unless asked (`values`, `float()`, `numpy.asarray(x, dtype=float)`).

- Python numbers are weak: they are rounded into the array's format, to nearest even under stochastic rounding, else by
  the environment's rule. So are lists of them, and NumPy's float64 scalars, which are Python floats. Boolean arrays are
  exact.
- Two formats in one operation raise TypeError, and so do NumPy arrays and scalars of another type: a float32 has a format
  of its own, an integer may be a code. `astype` and `array` convert.
- Sums and products follow the environment's `accumulator`; by default each product and each sum is rounded to the
  array's format, one after the other.
- In-place operators round into the left operand. Elements are SoftArrays without dimensions.
- A trap is raised after the operation: an array that was written to holds the results.
- `numpy.asarray(x)` raises TypeError without a dtype, and so does what reads its arguments that way: lists of SoftArrays
  (`array` and `numpy.stack` join them), `numpy.r_`, `ascontiguousarray`, `vectorize`, pandas. Matplotlib reads
  numbers as float64 and computes with these: it draws them. `numpy.ma`, SciPy and scikit-learn would compute in float64, and are refused even
  where their own code names it.
- What names float64 gets it: `numpy.random` for its parameters, assignments into NumPy's arrays, and functions of `math`.

>>> import numpy as np
>>> import softfloat
>>> x = softfloat.array([0.0004], softfloat.float16)
>>> x += 0.25
>>> x -= 0.25
>>> x
SoftArray([0.0004883], float16)
>>> np.sqrt(x) * 2, hex(x.codes[0])
(SoftArray([0.0442], float16), '0x1000')
"""

from __future__ import annotations

import decimal
import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from softfloat import bits, engine, markup
from softfloat.arrays import views
from softfloat.arrays.exchange import capsule_of, of_others
from softfloat.arrays.readers import COMPUTING, DRAWING, drawing, reader
from softfloat.arrays.standard import DType, Standard
from softfloat.engine import Codes, calls, elementwise
from softfloat.engine.calls import SMALL
from softfloat.engine.elementwise import NO_CODES
from softfloat.environments import WATCHES, Environment, Rounding, Settings, current_environment, evaluate_as
from softfloat.formats import ROSTER, Format, check_format
from softfloat.status import Flags, FloatingPointTrap, as_flags

__all__ = [
    "SoftArray",
    "arange",
    "array",
    "asarray",
    "empty",
    "empty_like",
    "from_codes",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]

SHORT = 1 << 10  # elements up to which a number spread over a shape is kept

Shape: TypeAlias = int | Sequence[int]

UFUNCS: dict[np.ufunc, Callable[..., Any]] = {}
"""What runs each ufunc: handler(ufunc, method, inputs, keywords). Filled by `softfloat.arrays.ufuncs`."""

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}
"""What stands in for each of NumPy's other functions. Filled by `softfloat.arrays.functions` and `softfloat.arrays.sums`."""


# -- numbers of all kinds into codes ---------------------------------------------------------------------------------


def format_of(x: Any) -> Format | None:
    """The format that an operand has, as a SoftArray or as an array of NumPy's or ml_dtypes' types; None if it has none."""
    if isinstance(x, SoftArray):
        return x.format
    if isinstance(x, (np.ndarray, np.generic)):
        return ROSTER.get(x.dtype.name)
    return None


def common_format(operands: Sequence[Any], operation: str) -> Format:
    """The format of the operands that are SoftArrays.

    Raises
    ------
    TypeError
        If there are two, or none.
    """
    arrays = [(i, x.format) for i, x in enumerate(operands) if isinstance(x, SoftArray)]
    if not arrays:
        raise TypeError(f"no operand of {operation!r} is a SoftArray; softfloat.array() converts")
    first, fmt = arrays[0]
    for i, other in arrays[1:]:
        if other != fmt:
            _mismatch(i, str(other), first, fmt, operation)
    return fmt


def _mismatch(position: int, found: str, where: int, fmt: Format, operation: str, hint: str = "") -> None:
    raise TypeError(
        f"operand {position + 1} of {operation!r} has format {found} that does not match format {fmt} of operand {where + 1}; "
        f"astype() or softfloat.array() converts{hint}"
    )


def is_operand(x: Any) -> bool:
    """Whether an operator takes x at all."""
    return isinstance(x, (SoftArray, numbers.Real, np.ndarray, np.generic, list, tuple))


def coerced(x: Any, fmt: Format, operation: str, position: int = 1, quiet: bool = False) -> Codes:
    """An operand as codes of a format: SoftArrays and arrays that have it, numbers rounded into it.

    Parameters
    ----------
    x : SoftArray, array, number or nested lists of numbers
    fmt : Format
    operation : str
        For messages and traps.
    position : int
        Of the operand, from 0.
    quiet : bool
        Raise no flags.

    Raises
    ------
    TypeError
        If x has another format, or another type altogether.
    """
    if isinstance(x, SoftArray):
        if x._format is not fmt and x._format != fmt:
            _mismatch(position, str(x._format), 0 if position else 1, fmt, operation)
        return x._codes
    if isinstance(x, (np.ndarray, np.generic)):
        if isinstance(x, np.float64):
            return _weak(float(x), fmt, operation, quiet)
        engine.refuse_mask(x, f"operand {position + 1} of {operation!r}")
        if x.dtype == bool:
            return _booleans(np.asarray(x), fmt)
        held = held_codes(x, fmt)
        if held is not None:
            return held
        hint = "" if x.ndim else "; .item() makes a Python number of it, which is rounded into the format"
        _mismatch(position, str(x.dtype), 0 if position else 1, fmt, operation, hint)
    if isinstance(x, (list, tuple)):
        return _listed(x, fmt, operation, position, quiet)
    if isinstance(x, (bool, int, float, Fraction)):
        return _weak(x, fmt, operation, quiet)
    raise TypeError(
        f"operand {position + 1} of {operation!r} is {type(x).__name__}; accepted: SoftArray of {fmt}, numbers, bool arrays"
    )


def _booleans(x: np.ndarray[Any, Any], fmt: Format) -> Codes:
    if not fmt.zero:
        raise TypeError(f"False has no code in {fmt}, which has no zero")
    return np.where(x, one_of(fmt, "True"), 0).astype(fmt.dtype)


def one_of(fmt: Format, asked_by: str) -> int:
    """The code of 1, which somebody asked for."""
    code = getattr(fmt, "one_code", None)
    if code is None:
        raise ValueError(f"{asked_by} needs a 1, and {fmt} has none; accepted: formats among whose numbers 1 is")
    return int(code)


def held_codes(x: Any, fmt: Format) -> Codes | None:
    """The codes in a NumPy array or scalar whose dtype is the format; copied only if the bytes are swapped."""
    engine.refuse_mask(x, "x")
    if not _has_dtype(fmt, x.dtype):
        return None
    array = np.asarray(x)
    codes = array.astype(array.dtype.newbyteorder("="), copy=False).view(fmt.dtype)
    return engine.check_codes(codes, fmt, "x") if fmt.bits < 8 else codes


def _listed(x: Any, fmt: Format, operation: str, position: int, quiet: bool) -> Codes:
    rows = [coerced(item, fmt, operation, position, quiet) for item in x]
    return np.stack(rows) if rows else np.empty(0, fmt.dtype)


def _weak(x: Any, fmt: Format, operation: str, quiet: bool = False) -> Codes:
    """A Python number in a format; its flags go to the environment like any operation's."""
    env = current_environment()
    code, raised = constant(x, fmt, env.settings)
    if raised and not quiet:
        env.status.add(raised)
        if env.traps and raised & as_flags(env.traps):
            raise FloatingPointTrap(Flags(raised) & as_flags(env.traps), operation, (), (x,), env.nan)
    return code


def constants(settings: Settings, fmt: Format) -> Settings:
    """The settings under which numbers become codes: stochastic rounding leaves them to the nearest."""
    drawn = settings.for_format(fmt.name).rounding.draws
    return settings.replace(rounding=Rounding.NEAREST_EVEN) if drawn else settings


def constant(x: Any, fmt: Format, settings: Settings) -> tuple[Codes, int]:
    """(code, flags) of a Python number, kept."""
    kind: Any = type(x)  # 1, 1.0 and True are equal, and so are 0.0 and -0.0
    return _constant(kind, x, math.copysign(1, x) if isinstance(x, float) else 0, fmt, settings)


@lru_cache(maxsize=4096)
def _constant(kind: type, x: Any, sign: float, fmt: Format, settings: Settings) -> tuple[Codes, int]:
    code, raised = bits.encode(x, fmt, environment=constants(settings, fmt), flags="any")
    found = np.array(code)
    found.flags.writeable = False
    return found, int(raised)


@lru_cache(maxsize=1024)
def _spread(code: int, dtype: np.dtype[Any], size: int) -> Codes:
    """A number's code over and over, as loops take operands."""
    return engine.flattened(np.full(size, code, dtype))


# -- operations on codes ---------------------------------------------------------------------------------------------


def wrapped(codes: Any, fmt: Format) -> SoftArray:
    """Codes that are known to be right as an array; no copy."""
    result = object.__new__(SoftArray)
    result._codes = codes if isinstance(codes, np.ndarray) else np.asarray(codes)
    result._format = fmt
    result._flat = None
    return result


def directed(function: Callable[..., Any], mode: Rounding, **fixed: Any) -> Callable[..., Any]:
    """A function of `softfloat.bits` that rounds in its own direction, whatever the environment's."""

    def operation(*arguments: Any, environment: Environment, **options: Any) -> Any:
        return function(*arguments, environment=_toward(mode, environment.settings), **fixed, **options)

    return operation


@lru_cache(maxsize=1024)
def _toward(mode: Rounding, settings: Settings) -> Settings:
    return settings.replace(rounding=mode)


def evaluated(name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Codes of a function of `softfloat.bits` under the environment in force; a trap names `name`."""
    return evaluate_as(name, current_environment(), function, arguments, options)


def _flat_of(x: SoftArray) -> Codes | None:
    """The codes of a small array as loops take operands; None if it is large, or that needs a copy."""
    if x._codes.size > SMALL:
        return None
    return x._flat if x._flat is not None else x._flattened()


def _flat_beside(x: SoftArray, other: Any, operation: str, quiet: bool = False) -> Codes | None:
    """The other operand of a small array, of its shape; None if it is no such array and no number, or needs a copy."""
    codes, fmt = x._codes, x._format
    if type(other) is SoftArray:
        if (other._format is not fmt and other._format != fmt) or other._codes.shape != codes.shape:
            return None
        return other._flat if other._flat is not None else other._flattened()
    if type(other) in (float, int, np.float64) and codes.size <= SHORT:
        return _spread(int(_weak(other, fmt, operation, quiet)), fmt.dtype, codes.size)
    return None


def straight(operation: str, x: SoftArray, other: Any, swapped: bool, out: SoftArray | None) -> SoftArray | None:
    """An operator on a small array by its loop, without the ways around it; None where they are needed."""
    codes, fmt = x._codes, x._format
    env = current_environment()
    if env.placed or WATCHES or drawing():
        return None
    a = _flat_of(x)
    b = None if a is None else _flat_beside(x, other, operation)
    if a is None or b is None:
        return None
    if out is not None and type(other) is SoftArray and other is not x and np.may_share_memory(codes, other._codes):
        return None
    ready = elementwise.prepared(operation, fmt, env.settings.for_format(fmt.name), elementwise.FAST)
    if ready is None:
        return None
    in_place = out is not None
    if out is None:
        out = wrapped(np.empty(codes.shape, fmt.dtype), fmt)
    elif not codes.flags.writeable:
        return None
    if swapped:
        a, b = b, a
    env.status.add(ready(a, b, b, out._codes.reshape(-1), NO_CODES, env.streams.take(), in_place))
    return out


def straight_unary(operation: str, x: SoftArray) -> SoftArray | None:
    """`straight`, for functions of one operand."""
    env = current_environment()
    a = None if env.placed or WATCHES else _flat_of(x)
    settings = env.settings.for_format(x._format.name)
    ready = None if a is None else elementwise.prepared(operation, x._format, settings, elementwise.FAST)
    if a is None or ready is None:
        return None
    found = np.empty(x._codes.shape, x._format.dtype)
    env.status.add(ready(a, a, a, found.reshape(-1), NO_CODES, env.streams.take(), False))
    return wrapped(found, x._format)


def straight_comparison(relation: str, x: SoftArray, other: Any, swapped: bool) -> Codes | None:
    """`straight`, for comparisons, in which numbers raise no flags; "ne" is what "eq" is not."""
    env = current_environment()
    a = None if env.traps or drawing() else _flat_of(x)
    b = None if a is None else _flat_beside(x, other, relation, quiet=True)
    if a is None or b is None:
        return None
    if swapped:
        a, b = b, a
    settings, negated = env.settings.for_format(x._format.name), relation == "ne"
    compare = calls.relation(
        "eq" if negated else relation, x._format, settings.daz, settings.nan, relation in ("lt", "le"), False
    )
    found = np.empty(x._codes.shape, bool)
    env.streams.take()
    env.status.add(compare(a, b, found.reshape(-1), NO_CODES))
    return ~found if negated else found


def _forward(operation: str, ufunc: np.ufunc) -> Callable[[SoftArray, Any], Any]:
    def forward(self: SoftArray, other: Any) -> Any:
        found = straight(operation, self, other, False, None)
        if found is not None:
            return found
        return UFUNCS[ufunc](ufunc, "__call__", (self, other), {}) if is_operand(other) else NotImplemented

    return forward


def _reflected(operation: str, ufunc: np.ufunc) -> Callable[[SoftArray, Any], Any]:
    def reflected(self: SoftArray, other: Any) -> Any:
        found = straight(operation, self, other, True, None)
        if found is not None:
            return found
        return UFUNCS[ufunc](ufunc, "__call__", (other, self), {}) if is_operand(other) else NotImplemented

    return reflected


def _in_place(operation: str, ufunc: np.ufunc) -> Callable[[SoftArray, Any], Any]:
    def in_place(self: SoftArray, other: Any) -> Any:
        found = straight(operation, self, other, False, self)
        if found is not None:
            return found
        if not is_operand(other):
            return NotImplemented
        return UFUNCS[ufunc](ufunc, "__call__", (self, other), {"out": (self,)})

    return in_place


def _general(ufunc: np.ufunc, swapped: bool = False, in_place: bool = False) -> Callable[[SoftArray, Any], Any]:
    def general(self: SoftArray, other: Any) -> Any:
        if not is_operand(other):
            return NotImplemented
        operands = (other, self) if swapped else (self, other)
        return UFUNCS[ufunc](ufunc, "__call__", operands, {"out": (self,)} if in_place else {})

    return general


def _compared(relation: str, ufunc: np.ufunc, swapped: bool = False) -> Callable[[SoftArray, Any], Any]:
    def compared(self: SoftArray, other: Any) -> Any:
        found = straight_comparison(relation, self, other, swapped)
        if found is not None:
            return found if found.ndim else found[()]
        return UFUNCS[ufunc](ufunc, "__call__", (self, other), {}) if is_operand(other) else NotImplemented

    return compared


def _unary(ufunc: np.ufunc) -> Callable[[SoftArray], Any]:
    return lambda self: UFUNCS[ufunc](ufunc, "__call__", (self,), {})


def as_drawn(x: Any) -> Any:
    """Arguments with float64 for SoftArrays."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(as_drawn, x))
    if isinstance(x, dict):
        return {name: as_drawn(value) for name, value in x.items()}
    return x.values if isinstance(x, SoftArray) else x


def _of_numpy(function: Callable[..., Any], arguments: Any, keywords: dict[str, Any]) -> Any:
    """What stands in for one of NumPy's functions, called; TypeError names one that nothing stands in for."""
    if drawing():
        return function(*as_drawn(arguments), **as_drawn(keywords))
    handler, name = FUNCTIONS.get(function), f"{getattr(function, '__module__', None) or 'numpy'}.{function.__name__}"
    if handler is None:
        raise TypeError(f"{name} is not supported for SoftArray; {ALTERNATIVES}")
    engine.refuse_mask((*arguments, *keywords.values()), f"what {name} takes")
    return handler(*arguments, **keywords)


SUMMED = "Summed as the environment's accumulator says; without one in order, each product and each sum rounded."
STEPS = "In order, each product rounded to the format."


def _method(name: str, how: str = "") -> Callable[..., Any]:
    """A method that is NumPy's function of that name; `how` says what NumPy's documentation does not."""
    function = getattr(np, name)

    def method(self: SoftArray, *arguments: Any, **keywords: Any) -> Any:
        return _of_numpy(function, (self, *arguments), keywords)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"As `numpy.{name}`. {how}".rstrip()
    return method


class SoftArray(Standard):
    """An array of numbers of a format, held as codes.

    Parameters
    ----------
    x : array_like
        Numbers, as `array` takes them.
    fmt : Format or str, optional
        Default: the format that x has.

    Attributes
    ----------
    codes : ndarray of unsigned integers
        The codes themselves, shared: writing to them changes the array.
    format : Format
    values : ndarray of float64
        What the codes mean, exactly; a copy.
    """

    __slots__ = ("__weakref__", "_codes", "_flat", "_format")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    _codes: Codes
    _format: Format
    _flat: Codes | None

    def __init__(self, x: Any, fmt: Format | str | None = None) -> None:
        found = array(x, fmt)
        self._codes, self._format, self._flat = found._codes, found._format, None

    def _flattened(self) -> Codes | None:
        """The codes as loops take operands; None if that needs a copy."""
        if self._codes.flags.c_contiguous:
            self._flat = engine.flattened(self._codes)
        return self._flat

    # -- what it is made of

    @property
    def codes(self) -> Codes:
        """The codes, shared with the array."""
        return self._codes

    @property
    def format(self) -> Format:
        """What the codes mean."""
        return self._format

    @property
    def values(self) -> Any:
        """The numbers as float64, exactly: an array, or a scalar for an array without dimensions."""
        return bits.decode(self._codes, self._format)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self._codes.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._codes.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._codes.size

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return self._codes.strides

    @property
    def itemsize(self) -> int:
        """Bytes that a code takes."""
        return self._codes.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes that the codes take."""
        return self._codes.nbytes

    @property
    def T(self) -> SoftArray:
        """The array with its axes reversed; a view."""
        return wrapped(self._codes.T, self._format)

    @property
    def mT(self) -> SoftArray:
        """The array with its last two axes swapped; a view."""
        return wrapped(self._codes.mT, self._format)

    @property
    def real(self) -> SoftArray:
        """The array itself."""
        return self

    @property
    def imag(self) -> SoftArray:
        """+0 in the array's shape."""
        return zeros_like(self)

    @property
    def flat(self) -> Flat:
        """The elements in C order: to iterate over, to index and to assign to."""
        return Flat(self)

    @property
    def flags(self) -> Any:
        """NumPy's flags of the codes: `writeable`, `c_contiguous` ... (IEEE 754's are in the environment's status)."""
        return self._codes.flags

    # -- elements

    def __getitem__(self, index: Any) -> SoftArray:
        found = self._codes[_plain_index(index)]
        return wrapped(found if isinstance(found, np.ndarray) else np.array(found), self._format)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._codes[_plain_index(index)] = coerced(value, self._format, "setitem")

    def __len__(self) -> int:
        return len(self._codes)

    def __iter__(self) -> Iterator[SoftArray]:
        if not self.ndim:
            raise TypeError("iteration over a SoftArray without dimensions")
        return (self[i] for i in range(len(self)))

    def __contains__(self, x: Any) -> bool:
        return bool(np.any(self == x))

    # -- one element as a Python number

    def __float__(self) -> float:
        return float(self._single("float()"))

    def __int__(self) -> int:
        return int(self._single("int()"))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"the truth of a SoftArray of {self.size} elements is ambiguous; use any() or all()")
        return not bool(bits.iszero(self._codes, self._format).reshape(()))

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._single("round()")) if digits is None else FUNCTIONS[np.round](self, digits)

    def __trunc__(self) -> int:
        return math.trunc(self._single("math.trunc()"))

    def __floor__(self) -> int:
        return math.floor(self._single("math.floor()"))

    def __ceil__(self) -> int:
        return math.ceil(self._single("math.ceil()"))

    def _single(self, conversion: str) -> float:
        if self.size != 1:
            raise TypeError(f"{conversion} needs a SoftArray of one element, got shape {self.shape}")
        return float(np.asarray(self.values).reshape(()))

    def hex(self) -> str:
        """The value of a single element as C writes hexadecimal floating point."""
        return self._single("hex()").hex()

    def item(self, *index: int) -> float:
        """One element as a Python float."""
        return float(bits.decode(self._codes.item(*index), self._format))

    def tolist(self) -> Any:
        """Python floats in nested lists."""
        return np.asarray(self.values).tolist()

    # -- text

    def __format__(self, specification: str) -> str:
        if not specification:
            return str(self)
        if self.ndim:
            raise TypeError(f"format specifications are for single elements, and the shape is {self.shape}")
        return format(float(self), specification)

    def __str__(self) -> str:
        if not self.ndim:
            return str(self._decimals().item())
        return array_text(self._decimals())

    def __repr__(self) -> str:
        if not self.ndim:
            return f"SoftArray({self}, {self._format})"
        prefix, suffix = "SoftArray(", f", {self._format})"
        if not self.size:
            empty = "[]" if self.shape == (0,) else f"zeros({self.shape})"
            return f"{prefix}{empty}{suffix}"
        text = array_text(self._decimals(), separator=", ", prefix=prefix, suffix=suffix)
        last = len(text) - text.rfind("\n") - 1 + (len(prefix) if "\n" not in text else 0)
        if last + len(suffix) > np.get_printoptions()["linewidth"]:
            suffix = f",\n{' ' * len(prefix)}{self._format})"
        return f"{prefix}{text}{suffix}"

    def _decimals(self) -> np.ndarray[Any, Any]:
        """`shortest` of the elements; of a long array, only of those that are printed."""
        codes, options = self._codes, np.get_printoptions()
        if codes.size <= options["threshold"]:
            return shortest(codes, self._format)
        edge = options["edgeitems"]
        part = np.ix_(*(np.r_[0:edge, n - edge : n] if n > 2 * edge else np.arange(n) for n in codes.shape))
        result = np.zeros(codes.shape, np.float64)
        result[part] = shortest(codes[part], self._format)
        return result

    def _texts(self) -> np.ndarray[Any, Any]:
        return np.array([str(x) for x in self._decimals().ravel().tolist()], object).reshape(self.shape)

    def _repr_html_(self) -> str:
        return views.array_html(self._codes, self._format, self._texts())

    def __rich__(self) -> Any:
        return views.array_rich(self._codes, self._format, self._texts())

    # -- conversions

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The numbers in a dtype that is asked for; unasked for drawing alone, and never for SciPy's own code."""
        package, function = reader()
        wanted = np.dtype(np.float64 if dtype is None else dtype)
        asked = dtype is not None and wanted.kind != "O"
        if package in COMPUTING:
            raise TypeError(f"{function} is not supported for SoftArray; {ALTERNATIVES}")
        if not asked and package not in DRAWING:
            raise TypeError(f"{function}: {UNASKED}" if function else UNASKED)
        if wanted.kind in "iu" and package not in DRAWING:
            raise TypeError(
                f"a SoftArray becomes {wanted} by a decision on fractions only: x.astype({str(wanted)!r}) truncates"
            )
        if _has_dtype(self._format, wanted) and wanted.isnative:
            found = self._codes.view(wanted)
            return found.copy() if copy else found
        if copy is False:
            raise ValueError(f"a SoftArray of {self._format} cannot become {wanted} without a copy")
        if wanted.kind == "b" or wanted.name in ROSTER:
            return np.asarray(self.astype(wanted))
        return np.asarray(self.values).astype(wanted, copy=False)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """The codes' memory under the format's own type; BufferError where DLPack has none, whose codes would be read as integers.

        A consumer that does not know the type refuses it: NumPy takes float16 and float32 alone, PyTorch no float6.
        """
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return capsule_of(self._codes, self._format, options)

    def __dlpack_device__(self) -> Any:
        return self._codes.__dlpack_device__()

    def astype(self, fmt: Any, copy: bool = True) -> Any:
        """Convert, with a single rounding under the environment in force.

        Parameters
        ----------
        fmt : Format, str or NumPy dtype
            A format or the name of one gives a SoftArray. A NumPy type or dtype gives a NumPy array: float64 holds the
            value, other floats hold it rounded, integers its integer part (INVALID where there is none that fits),
            bool whether it is not zero.
        copy : bool
            Copy even if nothing changes.
        """
        wanted = _format_or_dtype(fmt)
        if isinstance(wanted, Format):
            if wanted == self._format:
                return self.copy() if copy else self
            return wrapped(evaluated("astype", bits.convert, self._codes, self._format, wanted), wanted)
        if wanted.kind == "b":
            return ~bits.iszero(self._codes, self._format)
        if wanted.kind in "iu":
            return evaluated("astype", TO_INTEGER, self._codes, self._format, wanted)
        if wanted.name in ROSTER:
            held = self.astype(ROSTER[wanted.name], copy)._codes
            return held.view(wanted.newbyteorder("=")).astype(wanted, copy=False)
        if wanted == np.float64:
            return self.values
        raise TypeError(
            f"fmt must be a Format, its name, or a NumPy dtype (float64 or narrower, ml_dtypes floats, integers, bool), got {wanted}"
        )

    def view(self, dtype: Any = None) -> Any:
        """The same memory seen otherwise.

        Parameters
        ----------
        dtype : Format, str or NumPy dtype, optional
            A format of the same width gives a SoftArray with the same codes; a dtype of the same width (uint16,
            float16 ...) a NumPy array with the same bits. Default: another SoftArray of the same format.
        """
        kind = self._format if dtype is None else _format_or_dtype(dtype)
        if isinstance(kind, Format):
            fmt = kind
            if fmt.bits != self._format.bits:
                raise TypeError(f"view needs a format of {self._format.bits} bits, got {fmt} of {fmt.bits}")
            return wrapped(self._codes.view(), fmt)
        if kind.itemsize != self.itemsize:
            raise TypeError(f"view needs a dtype of {self.itemsize} bytes, got {kind} of {kind.itemsize}")
        return self._codes.view(kind)

    def copy(self, order: Any = "C") -> SoftArray:
        """An array of its own memory."""
        return wrapped(self._codes.copy(order), self._format)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> SoftArray:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._codes, self._format)

    def tobytes(self) -> bytes:
        """The codes' bytes, in C order."""
        return self._codes.tobytes()

    def fill(self, value: Any) -> None:
        """Set every element to a number."""
        self[...] = value

    def reshape(self, *shape: Any, order: Any = "C") -> SoftArray:
        """The elements in another shape; a view where NumPy gives one."""
        return wrapped(self._codes.reshape(*shape, order=order), self._format)

    def transpose(self, *axes: Any) -> SoftArray:
        """The axes in another order; a view."""
        return wrapped(self._codes.transpose(*axes), self._format)

    def flatten(self, order: Any = "C") -> SoftArray:
        """A copy with one axis."""
        return wrapped(self._codes.flatten(order), self._format)

    def sort(self, axis: int = -1, **keywords: Any) -> None:
        """Sort in place, NaNs last."""
        self._codes[...] = FUNCTIONS[np.sort](self, axis, **keywords)._codes

    def partition(self, kth: Any, axis: int = -1, **keywords: Any) -> None:
        """Sort in place, which is more than `numpy.ndarray.partition` does."""
        self._codes[...] = FUNCTIONS[np.partition](self, kth, axis, **keywords)._codes

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> SoftArray:
        """As `numpy.compress`."""
        return FUNCTIONS[np.compress](condition, self, axis, out)

    # -- NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Run a ufunc; TypeError names one that is not supported."""
        handler = UFUNCS.get(ufunc)
        if handler is None and not drawing(2):
            name = f"numpy.{ufunc.__name__}" if getattr(np, ufunc.__name__, None) is ufunc else ufunc.__name__
            raise TypeError(f"{name} is not supported for SoftArray; {ALTERNATIVES}")
        for x in inputs:
            if not is_operand(x) and not isinstance(x, (type(None), str, slice)) and hasattr(x, "__array_ufunc__"):
                return NotImplemented
        return (handler or run_drawn)(ufunc, method, inputs, keywords)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, arguments: Any, keywords: dict[str, Any]
    ) -> Any:
        """Run another of NumPy's functions; TypeError names one that is not supported."""
        if function in FUNCTIONS and not all(issubclass(kind, (SoftArray, np.ndarray)) for kind in types):
            return NotImplemented
        return _of_numpy(function, arguments, keywords)

    # -- operators

    __add__, __radd__, __iadd__ = (make("add", np.add) for make in (_forward, _reflected, _in_place))
    __sub__, __rsub__, __isub__ = (make("sub", np.subtract) for make in (_forward, _reflected, _in_place))
    __mul__, __rmul__, __imul__ = (make("mul", np.multiply) for make in (_forward, _reflected, _in_place))
    __truediv__, __rtruediv__, __itruediv__ = (make("div", np.divide) for make in (_forward, _reflected, _in_place))
    __floordiv__, __rfloordiv__ = _general(np.floor_divide), _general(np.floor_divide, swapped=True)
    __ifloordiv__ = _general(np.floor_divide, in_place=True)
    __mod__, __rmod__ = _general(np.remainder), _general(np.remainder, swapped=True)
    __imod__ = _general(np.remainder, in_place=True)
    __divmod__, __rdivmod__ = _general(np.divmod), _general(np.divmod, swapped=True)
    __pow__, __rpow__ = _general(np.power), _general(np.power, swapped=True)
    __ipow__ = _general(np.power, in_place=True)
    __matmul__, __rmatmul__ = _general(np.matmul), _general(np.matmul, swapped=True)
    __imatmul__ = _general(np.matmul, in_place=True)
    __lt__, __le__ = _compared("lt", np.less), _compared("le", np.less_equal)
    __gt__, __ge__ = _compared("lt", np.greater, True), _compared("le", np.greater_equal, True)
    __eq__, __ne__ = _compared("eq", np.equal), _compared("ne", np.not_equal)
    conj, conjugate = _unary(np.conjugate), _unary(np.conjugate)
    __neg__, __pos__, __abs__ = _unary(np.negative), _unary(np.positive), _unary(np.absolute)

    # -- methods that are NumPy's functions

    all = _method("all")
    any = _method("any")
    argmax = _method("argmax")
    argmin = _method("argmin")
    argpartition = _method("argpartition")
    argsort = _method("argsort")
    clip = _method("clip")
    cumprod = _method("cumprod", STEPS)
    cumsum = _method("cumsum", SUMMED)
    diagonal = _method("diagonal")
    dot = _method("dot", SUMMED)
    max = _method("max")
    mean = _method("mean", SUMMED)
    min = _method("min")
    nonzero = _method("nonzero")
    prod = _method("prod", STEPS)
    put = _method("put")
    ravel = _method("ravel")
    repeat = _method("repeat")
    round = _method("round")
    searchsorted = _method("searchsorted")
    squeeze = _method("squeeze")
    std = _method("std", SUMMED)
    sum = _method("sum", SUMMED)
    swapaxes = _method("swapaxes")
    take = _method("take")
    trace = _method("trace", SUMMED)
    var = _method("var", SUMMED)


class Flat:
    """The elements of an array in C order."""

    __slots__ = ("_array",)

    def __init__(self, array: SoftArray) -> None:
        self._array = array

    def __len__(self) -> int:
        return self._array.size

    def __iter__(self) -> Iterator[SoftArray]:
        return (wrapped(np.array(code), self._array._format) for code in self._array._codes.flat)

    def __getitem__(self, index: Any) -> SoftArray:
        return wrapped(np.array(self._array._codes.flat[_plain_index(index)]), self._array._format)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array._codes.flat[_plain_index(index)] = coerced(value, self._array._format, "setitem")


def run_drawn(ufunc: np.ufunc, method: str, inputs: Any, keywords: Any) -> Any:
    """A ufunc on the values, for what is drawn."""
    return getattr(ufunc, method)(*as_drawn(inputs), **as_drawn(keywords))


ALTERNATIVES = "accepted: its .values (float64), .codes (integers), or .view(dtype)"
UNASKED = (
    "a SoftArray becomes a NumPy array only where a dtype is asked for; accepted: x.values (float64, exact), "
    "numpy.asarray(x, dtype=float), float(x[0]), x.codes; softfloat.array() and numpy.stack() join SoftArrays"
)
TO_INTEGER = directed(bits.to_integer, Rounding.TOWARD_ZERO)


def _plain_index(index: Any) -> Any:
    engine.refuse_mask(index, "an index")
    if isinstance(index, SoftArray) or (isinstance(index, tuple) and any(isinstance(i, SoftArray) for i in index)):
        raise IndexError(
            "SoftArrays are numbers, not indices; accepted: integers, slices, ..., None, arrays of integers or bool"
        )
    return index


def _restored(codes: Codes, fmt: Format) -> SoftArray:
    return wrapped(codes, fmt)


def _has_dtype(fmt: Format, dtype: np.dtype[Any]) -> bool:
    """Whether a NumPy dtype's bits are the format's codes, in some order of bytes."""
    return dtype.name == fmt.name and ROSTER.get(fmt.name) == fmt


def _format_or_dtype(kind: Any) -> Format | np.dtype[Any]:
    """A format from itself or its name; a dtype from anything else that names one."""
    if isinstance(kind, DType):
        return kind.format
    if not isinstance(kind, (Format, str)):
        return np.dtype(kind)
    try:
        return check_format(kind, wide=True)
    except ValueError:
        try:
            return np.dtype(kind)
        except TypeError:
            pass
        raise


MOST_DIGITS = 9  # identify every number of 24 bits of precision
FEW_DIGITS = 3  # are read at a glance, whatever the format
LEAST_PLAIN = 1e-4  # NumPy writes smaller numbers with exponents, and so are they here


def shortest(codes: Codes, fmt: Format) -> np.ndarray[Any, Any]:
    """float64 numbers whose shortest decimal representation tells each code from every other, and does not mislead.

    Integers that are written out (`markup.is_written_out`) are exact, and so are numbers of as few digits as the format may need to
    tell its numbers apart, or three: 288 is not 300 in a format that would read it so, nor 7.5 a whole 8. All others have as few
    digits as will do: 0.1 is the nearest number to 0.1.
    """
    flat = np.asarray(codes).reshape(-1)
    values = np.asarray(bits.decode(flat, fmt))
    result = values.copy()
    digits = max(FEW_DIGITS, 1 + math.ceil(fmt.p * math.log10(2)))
    brief = [markup.is_written_out(x) or float(f"{x:.{digits}g}") == x for x in values.tolist()]
    left = np.flatnonzero(np.isfinite(values) & ~np.array(brief, bool))
    for digits in range(1, MOST_DIGITS + 1):
        if not left.size:
            break
        for rounding in (decimal.ROUND_HALF_EVEN, decimal.ROUND_FLOOR, decimal.ROUND_CEILING):
            decimals = decimal.Context(digits, rounding)
            tried = np.array([float(decimals.create_decimal_from_float(x)) for x in values[left].tolist()])
            found = bits.encode(tried, fmt, flags="any")[0] == flat[left]
            result[left[found]] = tried[found]
            left = left[~found]
    return result.reshape(np.shape(codes))


def array_text(
    numbers: np.ndarray[Any, Any], max_line_width: Any = None, precision: int | None = None, *more: Any, **options: Any
) -> str:
    """`numpy.array2string`, but without exponents where all digits have room, however far apart the numbers are."""
    places = np.get_printoptions()["precision"] if precision is None else precision
    some = numbers[np.isfinite(numbers) & (numbers != 0)]
    plain = (abs(some) >= LEAST_PLAIN) & (abs(some) < markup.LEAST_LARGE) & (np.round(some, places) == some)
    with np.printoptions(suppress=np.get_printoptions()["suppress"] or bool(plain.all())):
        return np.array2string(numbers, max_line_width, precision, *more, **options)


# -- making arrays ---------------------------------------------------------------------------------------------------


def array(x: Any, fmt: Format | str | None = None, *, copy: bool = True, dtype: Any = None) -> SoftArray:
    """Numbers as an array of a format, each rounded once under the environment in force.

    Parameters
    ----------
    x : array_like
        What `softfloat.bits.encode` takes: bool, integers of any type, float16, float32, float64, ml_dtypes floats,
        Python int, float and Fraction, nested lists of them; SoftArrays, converted if they have another format, and as these
        tensors of PyTorch, arrays of JAX, and whatever else hands over one of the roster's formats by DLPack.
    fmt : Format or str, optional
        Default: the format that x has; needed for everything that has none.
    copy : bool
        Copy even where nothing changes.
    dtype : Format, str or dtype, optional
        NumPy's name of `fmt`.

    Raises
    ------
    TypeError
        If no format is given and x has none.

    >>> array([0.1, 2, 70000], "float16")
    SoftArray([0.1, 2. , inf], float16)
    """
    if not isinstance(x, (SoftArray, np.ndarray, np.generic)):
        x, known = of_others(x)
        x = x if known is None else wrapped(x, known)
    if dtype is not None:
        if fmt is not None:
            raise TypeError(
                f"dtype={dtype!r} comes with fmt={fmt!r}, which it is another name of; accepted: one of them"
            )
        fmt = check_format(dtype, "dtype", wide=True)
    if fmt is None:
        found = format_of(x)
        if found is None:
            found = format_within(x)
        if found is None:
            raise TypeError(
                f"fmt is needed: {type(x).__name__} has no format of its own; accepted: a softfloat.Format or its name"
            )
        fmt = found
    fmt = check_format(fmt, wide=True)
    if isinstance(x, SoftArray):
        return x.astype(fmt, copy=copy)
    if isinstance(x, (np.ndarray, np.generic)):
        codes = held_codes(x, fmt)
        if codes is not None:
            return wrapped(codes.copy() if copy else codes, fmt)
    if isinstance(x, (list, tuple)) and format_within(x) is not None:
        return wrapped(np.array(_stacked(x, fmt)), fmt)
    return wrapped(np.array(evaluated("array", bits.encode, x, fmt)), fmt)


def format_within(x: Any) -> Format | None:
    """The format of the first SoftArray in nested lists."""
    if isinstance(x, SoftArray):
        return x.format
    if isinstance(x, (list, tuple)):
        return next((found for item in x if (found := format_within(item)) is not None), None)
    return None


def _stacked(x: Any, fmt: Format) -> Codes:
    if isinstance(x, (list, tuple)):
        return np.array([_stacked(item, fmt) for item in x], fmt.dtype)
    return array(x, fmt, copy=False)._codes


def asarray(x: Any, fmt: Format | str | None = None) -> SoftArray:
    """As `array`, but without a copy where nothing changes: SoftArrays, arrays and tensors of the format's own dtype.

    >>> half = np.array([1.0, 2.0], np.float16)
    >>> x = asarray(half)
    >>> x += 1
    >>> half
    array([2., 3.], dtype=float16)
    """
    return array(x, fmt, copy=False)


def from_codes(codes: Any, fmt: Format | str) -> SoftArray:
    """Codes of a format as an array; shares their memory if they are an array of `fmt.dtype`.

    Raises
    ------
    TypeError, ValueError
        If they are no codes of the format.

    >>> from_codes([0x3C00, 0x7C00], "float16")
    SoftArray([ 1., inf], float16)
    """
    fmt = check_format(fmt, wide=True)
    return wrapped(np.asarray(engine.check_codes(codes, fmt, "codes")), fmt)


def full(shape: Shape, value: Any, fmt: Format | str | None = None) -> SoftArray:
    """An array of one number; the format defaults to the number's own, if it is a SoftArray."""
    fmt = _format_like(value, fmt)
    value = value.astype(fmt) if isinstance(value, SoftArray) else value
    filled = np.empty(shape, fmt.dtype)
    filled[...] = coerced(value, fmt, "full")
    return wrapped(filled, fmt)


def zeros(shape: Shape, fmt: Format | str) -> SoftArray:
    """An array of +0."""
    fmt = check_format(fmt, wide=True)
    if not fmt.zero:
        raise ValueError(f"fmt must have a zero, and {fmt} has none")
    return wrapped(np.zeros(shape, fmt.dtype), fmt)


def ones(shape: Shape, fmt: Format | str) -> SoftArray:
    """An array of 1."""
    fmt = check_format(fmt, wide=True)
    return wrapped(np.full(shape, one_of(fmt, "ones"), fmt.dtype), fmt)


def empty(shape: Shape, fmt: Format | str) -> SoftArray:
    """An array of whatever: of +0 (or of the least number, in a format without zero), so that every code is one."""
    fmt = check_format(fmt, wide=True)
    return wrapped(np.zeros(shape, fmt.dtype), fmt)


def _format_like(x: Any, fmt: Format | str | None) -> Format:
    engine.refuse_mask(x, "x")
    return _needed(fmt or format_of(x))


def zeros_like(x: Any, fmt: Format | str | None = None) -> SoftArray:
    """+0 in the shape of x, and in its format unless another is given."""
    return zeros(np.shape(x), _format_like(x, fmt))


def ones_like(x: Any, fmt: Format | str | None = None) -> SoftArray:
    """1 in the shape of x, and in its format unless another is given."""
    return ones(np.shape(x), _format_like(x, fmt))


def empty_like(x: Any, fmt: Format | str | None = None) -> SoftArray:
    """`empty` in the shape of x, and in its format unless another is given."""
    return empty(np.shape(x), _format_like(x, fmt))


def full_like(x: Any, value: Any, fmt: Format | str | None = None) -> SoftArray:
    """One number in the shape of x, and in its format unless another is given."""
    return full(np.shape(x), value, _format_like(x, fmt))


def arange(start: Any, stop: Any = None, step: Any = None, fmt: Format | str | None = None) -> SoftArray:
    """start, start + step, start + 2*step ... below stop: the numbers of `numpy.arange`, rounded. The format comes last.

    >>> arange(0, 0.5, 0.1, "float16")
    SoftArray([0. , 0.1, 0.2, 0.3, 0.4], float16)
    """
    given: list[Any] = [x for x in (start, stop, step) if x is not None]
    if isinstance(given[-1], (Format, str)):
        fmt = given.pop()
    return array(np.arange(*(_number(x) for x in given)), _needed(fmt))


def linspace(
    start: Any, stop: Any, num: int | Format | str = 50, fmt: Format | str | None = None, *, endpoint: bool = True
) -> SoftArray:
    """`num` numbers evenly from start to stop: those of `numpy.linspace`, rounded."""
    if isinstance(num, (Format, str)):
        return linspace(start, stop, 50, num, endpoint=endpoint)
    return array(np.linspace(_number(start), _number(stop), num, endpoint=endpoint), _needed(fmt))


def _number(x: Any) -> Any:
    return float(x) if isinstance(x, SoftArray) else x


def _needed(fmt: Format | str | None) -> Format:
    if fmt is None:
        raise TypeError("fmt is needed: a softfloat.Format or its name")
    return check_format(fmt, wide=True)
