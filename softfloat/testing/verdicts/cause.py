"""A mistake, and what a device that makes it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from softfloat.testing.vectors.operations import Case

__all__ = ["Cause", "Pair", "Predict", "changed", "ran"]

Codes = np.ndarray[Any, Any]
Pair: TypeAlias = tuple[Codes, Codes | None]
Predict: TypeAlias = Callable[[Sequence[Codes], tuple[Codes, Codes]], Pair]


@dataclass(frozen=True, eq=False)
class Cause:
    """A mistake.

    Attributes
    ----------
    name : str
        The same for the same mistake, whatever the operation.
    meaning : str
        What the device does.
    predict : callable
        (operands, (right results, right flags)) -> (results, flags). Flags are None where the mistake does not say.
    alone : bool
        One of so many that it is looked at only where it explains nearly all of some wrong rows.
    """

    name: str
    meaning: str
    predict: Predict
    alone: bool = False


def ran(case: Case) -> Predict:
    """What another case gives; random numbers that it does not take are dropped."""
    return lambda operands, right: case.run(operands[: len(case.operands)])


def changed(change: Callable[[Codes, Codes], tuple[Any, Any]]) -> Predict:
    """A change of the right results and flags."""

    def predict(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
        results, flags = change(*right)
        return np.asarray(results).astype(right[0].dtype), None if flags is None else np.asarray(flags, np.uint8)

    return predict
