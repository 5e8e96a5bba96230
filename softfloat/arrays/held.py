"""What a SoftArray holds, and where NumPy's functions on it are looked up: what the files that make the class share."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from softfloat import engine
from softfloat.arrays.standard import Standard
from softfloat.engine import Codes
from softfloat.environments import Environment, Rounding, Settings, current_environment, evaluate_as
from softfloat.formats import Format

__all__ = ["FUNCTIONS", "UFUNCS", "Held", "directed", "evaluated", "wrapped"]

UFUNCS: dict[np.ufunc, Callable[..., Any]] = {}
"""What runs each ufunc: handler(ufunc, method, inputs, keywords). Filled by `softfloat.arrays.ufuncs`."""

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}
"""What stands in for each of NumPy's other functions. Filled by `functions`, `sums`, `products` and `statistics` of this folder."""


class Held(Standard):
    """Codes and their format."""

    __slots__ = ("__weakref__", "_codes", "_flat", "_format")

    _codes: Codes
    _format: Format
    _flat: Codes | None
    made: ClassVar[Any]
    """The class that arrays are made of: `softfloat.arrays.softarray` names its own."""

    def _flattened(self) -> Codes | None:
        """The codes as loops take operands; None if that needs a copy."""
        if self._codes.flags.c_contiguous:
            self._flat = engine.flattened(self._codes)
        return self._flat


def wrapped(codes: Any, fmt: Format) -> Any:
    """Codes that are known to be right as a SoftArray; no copy."""
    result: Any = object.__new__(Held.made)
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
