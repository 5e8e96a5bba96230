"""What arrays show to code written for the array API standard: a dtype, a device, the functions of their format.

Source: Python array API standard, 2024.12 (data-apis.org/array-api).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from softfloat.checks import check_choice
from softfloat.formats import ROSTER, Format, check_format

__all__ = ["DType", "Standard", "array_namespace"]

VERSION = "2024.12"
DEVICE = "cpu"

FUNCTIONS_OF: list[Callable[[Format], Mapping[str, Any]]] = []
"""What makes the functions of a format. Filled by `softfloat.arrays.namespace`."""

NOT_THERE = {
    "float64": "arrays of it are explicit; accepted: x.astype(softfloat.float64), or x.values, which holds every number exactly",
    "complex64": "no format here is complex; accepted: two arrays",
    "complex128": "no format here is complex; accepted: two arrays",
    "fft": "transforms are complex, and no format here is; accepted: numpy.fft of x.values",
}
"""Names of the standard that no namespace has, and why."""


class DType:
    """A format, where the standard has a dtype. It equals its format, and NumPy does not take it for integers.

    >>> import softfloat
    >>> softfloat.ones(2, "bfloat16").dtype
    softfloat.DType('bfloat16')
    """

    __slots__ = ("format",)

    def __init__(self, format: Format | str) -> None:
        self.format = check_format(format, "format", wide=True)

    @property
    def name(self) -> str:
        """The format's."""
        return self.format.name

    @property
    def __softfloat_format__(self) -> Format:
        """What `check_format` takes it for."""
        return self.format

    def __eq__(self, other: object) -> bool:
        found = other.format if isinstance(other, DType) else other
        return isinstance(found, Format) and self.format == found  # NumPy would read Format.dtype, the type of codes

    def __hash__(self) -> int:
        return hash(self.format)

    def __repr__(self) -> str:
        return f"softfloat.DType({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return DType, (self.format,)


class Standard:
    """What the standard asks of an array beyond what NumPy's arrays have had."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """The format, as code for the array API standard compares it. No NumPy dtype has these formats' rounding: NumPy refuses it."""
        return DType(self.format)  # type: ignore[attr-defined]

    @property
    def device(self) -> str:
        """The host's memory, "cpu"."""
        return DEVICE

    def to_device(self, device: str, /, *, stream: Any = None) -> Any:
        """The array itself, on "cpu".

        Raises
        ------
        ValueError
            For another device, or a stream.
        """
        check_device(device)
        if stream is not None:
            raise ValueError(f"stream must be None on {DEVICE!r}, got {stream!r}")
        return self

    def __array_namespace__(self, *, api_version: str | None = None) -> Namespace:
        """The functions of the array API standard for arrays of this format: `softfloat.array_namespace`."""
        if api_version is not None:
            check_choice("api_version", api_version, ["2021.12", "2022.12", "2023.12", VERSION])
        return array_namespace(self.format)  # type: ignore[attr-defined]

    def __complex__(self) -> complex:
        return complex(float(self))

    def __index__(self) -> int:
        raise TypeError(
            "SoftArrays are numbers, not indices; accepted: integers, slices, ..., None, arrays of integers or bool"
        )


def check_device(device: Any) -> None:
    """ValueError for any other than the host's memory."""
    if device is not None:
        check_choice("device", device, [DEVICE])


class Namespace:
    """Functions under the standard's names, of one format. What is missing says why."""

    def __init__(self, fmt: Format, part: str = "", **names: Any) -> None:
        self.__dict__.update(names)
        self.__name__ = f"softfloat.array_namespace({fmt.name!r}){part and f'.{part}'}"
        self._origin = fmt, part

    def __getattr__(self, name: str) -> Any:
        reason = f": {NOT_THERE[name]}" if name in NOT_THERE else ""
        raise AttributeError(f"{self.__name__} has no {name}{reason}")

    def __repr__(self) -> str:
        return self.__name__

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, self._origin


def _restored(fmt: Format, part: str) -> Namespace:
    return getattr(_made(fmt), part) if part else _made(fmt)


@lru_cache(maxsize=256)
def _made(fmt: Format) -> Namespace:
    names: dict[str, Any] = {name: DType(one) for name, one in (*ROSTER.items(), (fmt.name, fmt))}
    for functions in FUNCTIONS_OF:
        names |= functions(fmt)
    return Namespace(fmt, **names, __array_api_version__=VERSION)


def array_namespace(fmt: Format | str) -> Namespace:
    """The array API standard's functions, whose floating-point arrays have a format unless another is named.

    SoftArrays round into their format, by the environment in force; arrays of integers and of truths are NumPy's. What the standard
    has and no format can do is missing, and the AttributeError says why.

    Parameters
    ----------
    fmt : Format or str
        Of arrays that are made without a dtype.

    >>> xp = array_namespace("bfloat16")
    >>> x = xp.linspace(0, 1, 5)
    >>> x.dtype == xp.bfloat16, xp.exp(x), x.__array_namespace__() is xp
    (True, SoftArray([1.  , 1.28, 1.65, 2.11, 2.72], bfloat16), True)
    """
    return _made(check_format(fmt, wide=True))
