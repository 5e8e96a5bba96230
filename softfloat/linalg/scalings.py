"""Scaling of rows and columns by powers of two, which rounds nothing as long as the format has the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softfloat.arrays.softarray import SoftArray, array
from softfloat.checks import check_real, check_switch
from softfloat.formats import Format, check_format

__all__ = ["Squeezed", "equilibrate", "squeeze"]

ROUNDS = 20  # of square roots, in which symmetric scaling converges


def equilibrate(a: Any, *, symmetric: bool = False) -> tuple[Any, Any, Any]:
    """(a, r, c) with a scaled to r_i a_ij c_j: the greatest magnitudes of rows and columns lie near 1.

    Parameters
    ----------
    a : SoftArray or array of float64
        Of shape (m, n).
    symmetric : bool
        r = c, by square roots of the greatest magnitudes of rows, again and again; else 1 / the greatest of each row, then of each
        column.

    Returns
    -------
    a : SoftArray or array of float64
        As it was given; a SoftArray is rounded where a product is too large or too small for its format.
    r, c : array of float64
        Powers of two: others would round every element. A row or column of zeros, and what is not finite, has 1.

    Source
    ------
    LAPACK's xGEEQUB; Knight, Ruiz and Uçar 2014 (symmetric). Higham, Pranesh and Zounon 2019, algorithms 2.2 and 2.3.
    """
    check_switch("symmetric", symmetric)
    sizes = np.abs(_values(a, "softfloat.linalg.equilibrate", symmetric))
    r, c = np.ones(sizes.shape[0]), np.ones(sizes.shape[1])
    if symmetric:
        for _ in range(ROUNDS):
            step = _inverses(np.sqrt(np.max(sizes * r[:, None] * r, axis=1, initial=0.0)), exact=True)
            r = r * step
        r = c = _inverses(1 / r)
    else:
        r = _inverses(np.max(sizes, axis=1, initial=0.0))
        c = _inverses(np.max(sizes * r[:, None], axis=0, initial=0.0))
    found = _values(a, "softfloat.linalg.equilibrate", symmetric) * r[:, None] * c
    return (array(found, a.format) if isinstance(a, SoftArray) else found), r, c


def _values(a: Any, name: str, square: bool = False) -> Any:
    found = a.values if isinstance(a, SoftArray) else np.asarray(a, np.float64)
    if found.ndim != 2 or (square and found.shape[0] != found.shape[1]):
        raise ValueError(f"a of {name} must be a {'square ' * square}matrix, got shape {found.shape}")
    return found


def _inverses(x: Any, exact: bool = False) -> Any:
    """1 / x, of the power of two at or below x unless `exact`; 1 where x is 0 or not finite."""
    x = np.where((x > 0) & np.isfinite(x), x, 1.0)
    return 1 / x if exact else np.ldexp(1.0, 1 - np.frexp(x)[1])


@dataclass(frozen=True, eq=False)
class Squeezed:
    """A matrix in a format of little range: a is mu r_i a_ij c_j of the one that was given, rounded once.

    Attributes
    ----------
    a : SoftArray
    r, c : array of float64
        Powers of two.
    mu : float
        A power of two.
    """

    a: SoftArray
    r: np.ndarray[Any, Any]
    c: np.ndarray[Any, Any]
    mu: float


def squeeze(a: Any, fmt: Format | str, theta: float = 0.1) -> Squeezed:
    """A matrix scaled by `equilibrate`, then by the greatest power of two that keeps it below theta times the format's maximum, and rounded.

    Parameters
    ----------
    a : SoftArray or array of float64
        Of shape (m, n).
    fmt : Format or str
        What it is rounded to.
    theta : float
        Room for growth, greater than 0 and at most 1.

    Source
    ------
    Higham, Pranesh and Zounon 2019, algorithm 2.4, whose mu is theta times the maximum itself.
    """
    fmt = check_format(fmt, wide=True)
    if check_real("theta", theta, 0, above=True) > 1:
        raise ValueError(f"theta must be at most 1, got {theta}")
    scaled, r, c = equilibrate(_values(a, "softfloat.linalg.squeeze"))
    top = float(np.max(np.abs(scaled), initial=0.0))
    mu = float(np.ldexp(1.0, np.frexp(theta * float(fmt.max) / top)[1] - 1)) if 0 < top < np.inf else 1.0
    return Squeezed(array(mu * scaled, fmt), r, c, mu)
