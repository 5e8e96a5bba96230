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

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.arrays import operators, views
from softfloat.arrays.decimals import array_text, decimals
from softfloat.arrays.exchange import capsule_of, of_others
from softfloat.arrays.held import FUNCTIONS, UFUNCS, Held, directed, evaluated, wrapped
from softfloat.arrays.operands import coerced, format_of, has_dtype, held_codes, is_operand
from softfloat.arrays.readers import COMPUTING, DRAWING, drawing, reader
from softfloat.arrays.standard import DType
from softfloat.engine import Codes
from softfloat.environments import Rounding
from softfloat.formats import ROSTER, Format, check_format

__all__ = ["SoftArray", "array", "asarray", "from_codes"]


class SoftArray(Held):
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

    __slots__ = ()
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, x: Any, fmt: Format | str | None = None) -> None:
        found = array(x, fmt)
        self._codes, self._format, self._flat = found._codes, found._format, None

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
        return FUNCTIONS[np.zeros_like](self)

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
            return str(decimals(self._codes, self._format).item())
        return array_text(decimals(self._codes, self._format))

    def __repr__(self) -> str:
        if not self.ndim:
            return f"SoftArray({self}, {self._format})"
        prefix, suffix = "SoftArray(", f", {self._format})"
        if not self.size:
            empty = "[]" if self.shape == (0,) else f"zeros({self.shape})"
            return f"{prefix}{empty}{suffix}"
        text = array_text(decimals(self._codes, self._format), separator=", ", prefix=prefix, suffix=suffix)
        last = len(text) - text.rfind("\n") - 1 + (len(prefix) if "\n" not in text else 0)
        if last + len(suffix) > np.get_printoptions()["linewidth"]:
            suffix = f",\n{' ' * len(prefix)}{self._format})"
        return f"{prefix}{text}{suffix}"

    def _texts(self) -> np.ndarray[Any, Any]:
        return np.array([str(x) for x in decimals(self._codes, self._format).ravel().tolist()], object).reshape(
            self.shape
        )

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
            raise operators.unsupported(function)
        if not asked and package not in DRAWING:
            raise TypeError(f"{function}: {UNASKED}" if function else UNASKED)
        if wanted.kind in "iu" and package not in DRAWING:
            raise TypeError(
                f"a SoftArray becomes {wanted} by a decision on fractions only: x.astype({str(wanted)!r}) truncates"
            )
        if has_dtype(self._format, wanted) and wanted.isnative:
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
            raise operators.unsupported(name)
        for x in inputs:
            if not is_operand(x) and not isinstance(x, (type(None), str, slice)) and hasattr(x, "__array_ufunc__"):
                return NotImplemented
        return (handler or operators.run_drawn)(ufunc, method, inputs, keywords)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, arguments: Any, keywords: dict[str, Any]
    ) -> Any:
        """Run another of NumPy's functions; TypeError names one that is not supported."""
        if function in FUNCTIONS and not all(issubclass(kind, (SoftArray, np.ndarray)) for kind in types):
            return NotImplemented
        return operators.of_numpy(function, arguments, keywords)

    # -- operators

    __add__, __radd__, __iadd__ = (
        make("add", np.add) for make in (operators.forward, operators.reflected, operators.in_place)
    )
    __sub__, __rsub__, __isub__ = (
        make("sub", np.subtract) for make in (operators.forward, operators.reflected, operators.in_place)
    )
    __mul__, __rmul__, __imul__ = (
        make("mul", np.multiply) for make in (operators.forward, operators.reflected, operators.in_place)
    )
    __truediv__, __rtruediv__, __itruediv__ = (
        make("div", np.divide) for make in (operators.forward, operators.reflected, operators.in_place)
    )
    __floordiv__, __rfloordiv__ = operators.general(np.floor_divide), operators.general(np.floor_divide, swapped=True)
    __ifloordiv__ = operators.general(np.floor_divide, in_place=True)
    __mod__, __rmod__ = operators.general(np.remainder), operators.general(np.remainder, swapped=True)
    __imod__ = operators.general(np.remainder, in_place=True)
    __divmod__, __rdivmod__ = operators.general(np.divmod), operators.general(np.divmod, swapped=True)
    __pow__, __rpow__ = operators.general(np.power), operators.general(np.power, swapped=True)
    __ipow__ = operators.general(np.power, in_place=True)
    __matmul__, __rmatmul__ = operators.general(np.matmul), operators.general(np.matmul, swapped=True)
    __imatmul__ = operators.general(np.matmul, in_place=True)
    __lt__, __le__ = operators.compared("lt", np.less), operators.compared("le", np.less_equal)
    __gt__, __ge__ = operators.compared("lt", np.greater, True), operators.compared("le", np.greater_equal, True)
    __eq__, __ne__ = operators.compared("eq", np.equal), operators.compared("ne", np.not_equal)
    conj, conjugate = operators.unary(np.conjugate), operators.unary(np.conjugate)
    __neg__, __pos__, __abs__ = operators.unary(np.negative), operators.unary(np.positive), operators.unary(np.absolute)

    # -- methods that are NumPy's functions

    all = operators.method("all")
    any = operators.method("any")
    argmax = operators.method("argmax")
    argmin = operators.method("argmin")
    argpartition = operators.method("argpartition")
    argsort = operators.method("argsort")
    clip = operators.method("clip")
    cumprod = operators.method("cumprod", operators.STEPS)
    cumsum = operators.method("cumsum", operators.SUMMED)
    diagonal = operators.method("diagonal")
    dot = operators.method("dot", operators.SUMMED)
    max = operators.method("max")
    mean = operators.method("mean", operators.SUMMED)
    min = operators.method("min")
    nonzero = operators.method("nonzero")
    prod = operators.method("prod", operators.STEPS)
    put = operators.method("put")
    ravel = operators.method("ravel")
    repeat = operators.method("repeat")
    round = operators.method("round")
    searchsorted = operators.method("searchsorted")
    squeeze = operators.method("squeeze")
    std = operators.method("std", operators.SUMMED)
    sum = operators.method("sum", operators.SUMMED)
    swapaxes = operators.method("swapaxes")
    take = operators.method("take")
    trace = operators.method("trace", operators.SUMMED)
    var = operators.method("var", operators.SUMMED)


Held.made = SoftArray


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
    return wrapped(np.asarray(evaluated("array", bits.encode, x, fmt)), fmt)


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
