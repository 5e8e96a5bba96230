"""Arguments that are integers, switches and choices: taken, or refused by name, saying what is accepted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any, TypeGuard

import numpy as np

__all__ = [
    "SEEDS",
    "check_choice",
    "check_count",
    "check_integer",
    "check_kind",
    "check_real",
    "check_seed",
    "check_shapes",
    "check_switch",
    "check_whole",
    "is_integer",
    "nearest",
]

SEEDS = "an integer from 0 to 2^64 - 1"


def is_integer(x: Any) -> TypeGuard[int]:
    """Whether `x` is an integer, Python's or NumPy's; truth values are none."""
    return type(x) is int or (isinstance(x, (int, np.integer)) and not isinstance(x, bool))


def check_integer(name: str, value: Any) -> int:
    """Any integer."""
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    return int(value)


def check_whole(name: str, value: Any, low: int) -> int:
    """An integer from `low` on."""
    if check_integer(name, value) < low:
        raise ValueError(f"{name} must be at least {low}, got {value}")
    return int(value)


def check_count(name: str, value: Any, low: int = 1) -> int:
    """How many of something: a positive integer, or one from `low` on."""
    if not is_integer(value) or value < low:
        accepted = {0: "a non-negative integer", 1: "a positive integer"}.get(low, f"an integer of at least {low}")
        raise ValueError(f"{name} must be {accepted}, got {value!r}")
    return int(value)


def check_real(name: str, value: Any, least: float, *, above: bool = False) -> float:
    """A finite number that is at least, or greater than, another."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not (value > least if above else value >= least) or value == float("inf"):
        raise ValueError(f"{name} must be {'greater than' if above else 'at least'} {least} and finite, got {value}")
    return float(value)


def check_seed(name: str, value: Any) -> int:
    """An integer of 64 bits without a sign."""
    if not is_integer(value) or not 0 <= value < 2**64:
        raise ValueError(f"{name} must be {SEEDS}, got {value!r}")
    return int(value)


def check_switch(name: str, value: Any, optional: bool = False) -> None:
    """True or False; None too where it is `optional`."""
    if not isinstance(value, bool) and not (optional and value is None):
        raise TypeError(f"{name} must be {'True, False or None' if optional else 'True or False'}, got {value!r}")


def check_choice(name: str, value: Any, accepted: Collection[Any]) -> None:
    """One of those accepted."""
    try:
        known = not isinstance(value, np.ndarray) and value in accepted
    except TypeError:  # it has no hash
        known = False
    if not known:
        advice = nearest(value, accepted) if isinstance(value, str) else ""
        raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}, got {value!r}{advice}")


def nearest(name: object, names: Iterable[object]) -> str:
    """The end of a message: the name that was meant, if one is near.

    >>> nearest("flaot16", ["float16", "float32"]), nearest("x", ["float16"])
    ("; did you mean 'float16'?", '')
    """
    from difflib import get_close_matches  # for messages alone

    known = {str(x).lower(): str(x) for x in names}
    found = get_close_matches(str(name).lower(), known, 1)
    return f"; did you mean {known[found[0]]!r}?" if found else ""


def check_kind(name: str, value: Any, kind: type | tuple[type, ...], optional: bool = False) -> None:
    """An instance of a class, or of one of several; None too where it is `optional`."""
    if not isinstance(value, kind) and not (optional and value is None):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        accepted = " or ".join(x.__name__ for x in kinds) + (" or None" if optional else "")
        got = f"an {type(value).__name__}" if isinstance(value, np.ndarray) else repr(value)
        raise TypeError(f"{name} must be {accepted}, got {got}")


@lru_cache(maxsize=1024)
def check_shapes(a: tuple[int, ...], b: tuple[int, ...], matrices: bool) -> tuple[int, ...]:
    """What two shapes broadcast to in front of a product's own axes: (..., k) and (..., k), or of matrices (..., m, k) and (..., k, n).

    One axis alone is a vector, of matrices too.
    """
    own = 2 if matrices else 1
    try:
        outer = np.broadcast_shapes(a[:-own], b[:-own])
    except ValueError:
        outer = None
    if outer is None or not (a and b) or a[-1] != b[-min(own, len(b))]:
        accepted = "(..., m, k) and (..., k, n)" if matrices else "(..., k) and (..., k)"
        raise ValueError(f"shapes do not fit: a {a}, b {b}; accepted: {accepted} that broadcast")
    return outer
