"""Arguments that are integers, switches and choices: taken, or refused by name, saying what is accepted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any, TypeGuard

import numpy as np

__all__ = [
    "SEEDS",
    "check_choice",
    "check_count",
    "check_integer",
    "check_kind",
    "check_seed",
    "check_switch",
    "check_whole",
    "is_integer",
    "nearest",
]

SEEDS = "an integer from 0 to 2^64 - 1"


def nearest(name: str, names: Iterable[str]) -> str:
    """What a message adds where `name` is none of `names`: the one that was probably meant, or nothing.

    >>> nearest("flaot16", ["float16", "float32"]), nearest("x", ["float16"])
    ("; did you mean 'float16'?", '')
    """
    lowered = {x.lower(): x for x in names}
    found = get_close_matches(name.lower(), lowered, n=1)
    return f"; did you mean {lowered[found[0]]!r}?" if found else ""


def is_integer(x: Any) -> TypeGuard[int]:
    """Whether `x` is an integer, Python's or NumPy's; truth values are none."""
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


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
    """How many of something: a positive integer, or one from 0 on."""
    if not is_integer(value) or value < low:
        raise ValueError(f"{name} must be a {'positive' if low else 'non-negative'} integer, got {value!r}")
    return int(value)


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
        raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}, got {value!r}")


def check_kind(name: str, value: Any, kind: type | tuple[type, ...], optional: bool = False) -> None:
    """An instance of a class, or of one of several; None too where it is `optional`."""
    if not isinstance(value, kind) and not (optional and value is None):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        accepted = " or ".join(x.__name__ for x in kinds) + (" or None" if optional else "")
        raise TypeError(f"{name} must be {accepted}, got {value!r}")
