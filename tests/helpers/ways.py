"""Two ways to one result: what a call gives, or how it is refused, told apart to the last type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softfloat.arrays import operators
from softfloat.bits.functions import named
from softfloat.engine import calls, small

SHORT = (
    *((calls, name) for name in ("arithmetic", "comparison", "conversion", "between")),
    (named, "_straight"),
    *((small, name) for name in ("product", "total", "cumulative")),
)
"""What small calls try before the long way."""


def outcome(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What comes back, in a form that compares: types, dtypes, shapes and bytes; or the error and its words."""
    try:
        found = call(*arguments, **options)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    parts = found if isinstance(found, tuple) else (found,)
    return [
        (type(x), x.dtype, x.shape, x.tobytes()) if isinstance(x, (np.ndarray, np.generic)) else (type(x), x)
        for x in parts
    ]


def both(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, Any]:
    """The outcomes of a call as it goes, and by the long way."""
    with pytest.MonkeyPatch.context() as patch:
        quick = outcome(call, *arguments, **options)
        for owner, name in SHORT:
            patch.setattr(owner, name, lambda *_: None)
        patch.setattr(operators, "SMALL", -1)
        return quick, outcome(call, *arguments, **options)


def served(call: Callable[..., Any], *arguments: Any, **options: Any) -> bool:
    """Whether a short way gave a call's result."""
    found: list[bool] = []

    def spied(function: Callable[..., Any]) -> Callable[..., Any]:
        def spy(*arguments: Any) -> Any:
            result = function(*arguments)
            found.append(result is not None)
            return result

        return spy

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in SHORT:
            patch.setattr(owner, name, spied(getattr(owner, name)))
        call(*arguments, **options)
    return any(found)
