"""A computation in a format beside the same in float64: where it goes wrong."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

from softfloat.analysis.traces import carrier_of, line_outside
from softfloat.arrays.softarray import SoftArray
from softfloat.checks import check_kind, check_real

__all__ = ["Shadow"]


class Shadow(np.lib.mixins.NDArrayOperatorsMixin):
    """A SoftArray beside a float64 twin. Operators, NumPy's functions and methods run on both.

    What is no SoftArray is the SoftArray's alone: comparisons, indices, shapes, so that both take the same branches. Two results that are
    right need not be near each other where there are several: eigenvectors have either sign.

    Parameters
    ----------
    x : SoftArray
        Of at most 45 bits of precision: a twin of 53 tells nothing about others.
    tolerance : float, optional
        The error, relative to the twin's greatest number, beyond which an array counts as wrong; default 2^(-p/2), half of the digits.

    Attributes
    ----------
    soft : SoftArray
    twin : ndarray of float64
    where : str or None
        File, line and text of the first line on the way here whose result was wrong though none of its operands was; None while
        none is.

    >>> import softfloat
    >>> x = Shadow(softfloat.array([300.0, 4.0], "float16"))
    >>> y = np.sqrt(x * x) / 2
    >>> y.soft, y.twin.tolist(), y.error().tolist()
    (SoftArray([inf,  2.], float16), [150.0, 2.0], [inf, 0.0])
    >>> y.where.partition(": ")[2]
    'y = np.sqrt(x * x) / 2'
    """

    __array_priority__ = 2000
    __hash__ = None  # type: ignore[assignment]

    soft: SoftArray
    twin: np.ndarray[Any, Any]
    tolerance: float
    where: str | None

    def __init__(self, x: SoftArray, tolerance: float | None = None) -> None:
        check_kind("x", x, SoftArray)
        if carrier_of(x.format) is not np.float64:
            raise ValueError(
                f"x must be of a format that its twin in float64 is more precise than, got {x.format}; analysis.trace serves"
            )
        limit = 2.0 ** (-x.format.p / 2) if tolerance is None else check_real("tolerance", tolerance, 0)
        self.soft, self.twin, self.tolerance, self.where = x, np.array(x.values), limit, None

    # -- errors

    def error(self) -> np.ndarray[Any, Any]:
        """Relative errors of the elements; infinite where the SoftArray is not finite and its twin is, or the twin alone is 0."""
        soft = np.asarray(self.soft.values)
        with np.errstate(all="ignore"):
            found = np.abs(soft - self.twin) / np.abs(self.twin)
        same = (soft == self.twin) | (np.isnan(soft) & np.isnan(self.twin))
        return np.where(same, 0.0, np.where(np.isfinite(found), found, np.inf))

    def lost_bits(self) -> np.ndarray[Any, Any]:
        """How many of the format's p bits are wrong: 0 where the error is one rounding's, p where it is 1 or more."""
        p = self.soft.format.p
        with np.errstate(divide="ignore"):
            return np.clip(p + np.log2(self.error()), 0, p)

    def wrong(self) -> bool:
        """Whether the greatest error is more than `tolerance` times the twin's greatest number; of what the twin has finite."""
        soft, finite = np.asarray(self.soft.values), np.isfinite(self.twin)
        twin = self.twin[finite]
        limit = self.tolerance * np.abs(twin).max(initial=0)
        with np.errstate(all="ignore"):
            return not bool(np.all(np.abs(soft[finite] - twin) <= limit))

    # -- both at once

    def _run(self, function: Callable[..., Any], arguments: Any, keywords: dict[str, Any], twin: Any = None) -> Any:
        """A function on SoftArrays and (or `twin`) on their twins."""
        place = line_outside()
        out = keywords.get("out")
        read = {name: x for name, x in keywords.items() if name != "out"}
        given = _shadows((arguments, read, self if twin else ()))
        known = next((x.where for x in given if x.where), None)
        soft = function(*_taken(arguments, False), **_taken(keywords, False))
        with np.errstate(all="ignore"):
            other = (twin or function)(*_taken(arguments, True), **_taken(keywords, True))
        if out is not None:
            targets = out if isinstance(out, tuple) else (out,)
            for x in targets:
                x._judge(known, place)
            return targets[0] if len(targets) == 1 else targets
        return self._beside(soft, other, known, place)

    def _beside(self, soft: Any, twin: Any, known: str | None, place: tuple[str, int]) -> Any:
        """Results as Shadows where they are SoftArrays."""
        if isinstance(soft, (tuple, list)):
            pairs = [self._beside(x, y, known, place) for x, y in zip(soft, twin, strict=True)]
            return type(soft)(*pairs) if hasattr(soft, "_fields") else type(soft)(pairs)
        if not isinstance(soft, SoftArray):
            return soft
        result = Shadow.__new__(Shadow)
        result.soft, result.twin, result.tolerance = soft, np.asarray(twin, np.float64), self.tolerance
        result._judge(known, place)
        return result

    def _judge(self, known: str | None, place: tuple[str, int]) -> None:
        if known is None and self.wrong():
            known = f"{place[0]}:{place[1]}: {linecache.getline(*place).strip()}"
        self.where = known

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Run a ufunc on both."""
        return self._run(getattr(ufunc, method), inputs, keywords)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: dict[str, Any]) -> Any:
        """Run one of NumPy's functions on both."""
        return self._run(function, arguments, keywords)

    def __getattr__(self, name: str) -> Any:
        """Attributes and methods of a SoftArray, of both."""
        if name.startswith("__") or name in Shadow.__annotations__:
            raise AttributeError(name)
        soft = getattr(self.soft, name)
        if name in ("codes", "format", "values", "item", "tolist"):
            return soft
        if name == "astype":
            return lambda fmt: self._run(self.soft.astype, (fmt,), {}, lambda fmt: self.twin.copy())
        twin = getattr(self.twin, name)
        if callable(soft):
            return lambda *arguments, **keywords: self._run(soft, arguments, keywords, twin)
        return self._beside(soft, twin, self.where, line_outside())

    def __getitem__(self, index: Any) -> Shadow:
        found: Shadow = self._run(self.soft.__getitem__, (index,), {}, self.twin.__getitem__)
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        self._run(self.soft.__setitem__, (index, value), {}, self.twin.__setitem__)
        self._judge(self.where or getattr(value, "where", None), line_outside())

    def __len__(self) -> int:
        return len(self.soft)

    def __float__(self) -> float:
        return float(self.soft)

    def __bool__(self) -> bool:
        return bool(self.soft)

    def __repr__(self) -> str:
        wrong = f", wrong since {self.where}" if self.where else ""
        return f"Shadow({self.soft!r}, twin={self.twin!r}{wrong})"


def _shadows(x: Any) -> Any:
    """The Shadows in nested arguments."""
    if isinstance(x, Shadow):
        yield x
    for item in x.values() if isinstance(x, dict) else x if isinstance(x, (tuple, list)) else ():
        yield from _shadows(item)


def _taken(x: Any, twins: bool) -> Any:
    """Nested arguments with the SoftArrays or the twins of Shadows; other SoftArrays have their values as twins."""
    if isinstance(x, Shadow):
        return x.twin if twins else x.soft
    if isinstance(x, SoftArray):
        return x.values if twins else x
    if isinstance(x, dict):
        return {name: _taken(value, twins) for name, value in x.items()}
    return type(x)(_taken(item, twins) for item in x) if type(x) in (tuple, list) else x
