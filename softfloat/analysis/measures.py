"""Errors and condition numbers of linear systems, in float64: of numbers of at most 24 bits, exact but for some 1e-16 of the sizes in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from softfloat.arrays.softarray import SoftArray
from softfloat.checks import check_choice

__all__ = ["backward_error", "condition"]

KINDS = ("normwise", "componentwise")


def values_of(x: Any, argument: str, axes: int) -> np.ndarray[Any, Any]:
    """Numbers in float64."""
    found = np.asarray(x.values if isinstance(x, SoftArray) else x, np.float64)
    if found.ndim != axes:
        raise ValueError(f"{argument} must have {axes} axes, got shape {found.shape}")
    return found


def backward_error(a: Any, x: Any, b: Any, kind: str = "normwise") -> float:
    """By how much a and b must be changed, relatively, for x to solve a x = b.

    Parameters
    ----------
    a, x, b : SoftArray or array of float64
        Of shapes (m, n), (n,) and (m,).
    kind : {"normwise", "componentwise"}
        ``|b - a x| / (|a| |x| + |b|)`` in maximum norms, or the greatest ``|b - a x|_i / (|a| |x| + |b|)_i``.

    Source
    ------
    Rigal and Gaches 1967; Oettli and Prager 1964.

    >>> backward_error([[2.0, 0.0], [0.0, 1.0]], [1.0, 1.0], [2.0, 1.5]), backward_error([[2.0]], [1.0], [2.0])
    (0.125, 0.0)
    """
    check_choice("kind", kind, KINDS)
    a, x, b = values_of(a, "a", 2), values_of(x, "x", 1), values_of(b, "b", 1)
    if a.shape != b.shape + x.shape:
        raise ValueError(f"a, x and b must have shapes (m, n), (n,) and (m,), got {a.shape}, {x.shape} and {b.shape}")
    with np.errstate(all="ignore"):
        rest, sizes = np.abs(b - a @ x), np.abs(a)
        if kind == "normwise":
            whole = sizes.sum(1).max(initial=0) * np.abs(x).max(initial=0) + np.abs(b).max(initial=0)
            return float(rest.max() / whole) if rest.any() else 0.0
        return float(np.max(np.where(rest == 0, 0.0, rest / (sizes @ np.abs(x) + np.abs(b))), initial=0))


def condition(a: Any, x: Any = None, kind: str = "normwise") -> float:
    """The condition number of a linear system, in the maximum norm.

    Parameters
    ----------
    a : SoftArray or array of float64
        Square.
    x : SoftArray or array of float64, optional
        The solution; for kind="componentwise" alone.
    kind : {"normwise", "componentwise"}
        ``|a| |inv(a)|``; or cond(a, x) = ``| |inv(a)| |a| |x| | / |x|``, without x Skeel's cond(a), which no scaling of rows changes.

    Returns
    -------
    float
        Infinite for a singular matrix.

    Source
    ------
    Higham, Accuracy and Stability, 7.1 and 7.2.
    """
    check_choice("kind", kind, KINDS)
    a = values_of(a, "a", 2)
    if x is not None and kind == "normwise":
        raise ValueError("x is for kind='componentwise'")
    try:
        inverse = np.abs(np.linalg.inv(a))
    except np.linalg.LinAlgError:
        if a.shape[0] != a.shape[1]:
            raise
        return float(np.inf)
    sizes = np.abs(a)
    if kind == "normwise":
        return float(sizes.sum(1).max() * inverse.sum(1).max())
    at = np.ones(len(a)) if x is None else np.abs(values_of(x, "x", 1))
    return float((inverse @ (sizes @ at)).max() / at.max())
