"""The table of operators: which ONNX operator is computed how. Files of this folder enter their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from softfloat.onnx.unit import Call

__all__ = ["KINDS", "OPERATORS", "Operator", "Way", "operator"]

Way = Callable[[Call], tuple[Any, ...]]
"""way(call) -> the node's outputs."""

KINDS = {
    "moved": "codes move; nothing is computed, no flags",
    "exact": "selections, comparisons and integers, which every format that comes in can hold; no flags",
    "rounded": "each operation is one function of `softfloat.bits`, rounded once",
    "function": "computed in float64, rounded once",
    "sum": "summed by an accumulator, rounded to the format at its end",
    "staged": "in several stages, which the row declares; rounded to the format once, at the end",
    "cast": "one rounding into the format that the node names",
    "control": "subgraphs, whose nodes are computed as this table says",
}
"""Ways to compute, and what they have in common."""


class Operator(NamedTuple):
    """One row: how an operator on narrow numbers is computed.

    Attributes
    ----------
    name : str
        Its type, in ONNX's own domain.
    kind : str
        One of `KINDS`.
    stages : str
        What is rounded where, beyond what the kind says.
    way : callable
        From a `Call` to outputs.
    native : bool
        Whether the way calls ONNX's own implementation.
    """

    name: str
    kind: str
    stages: str
    way: Way
    native: bool = False


OPERATORS: dict[str, Operator] = {}
"""Name -> row. What has none, and is no function of operators that do, is refused."""


def operator(kind: str, names: str, stages: str = "", native: bool = False) -> Callable[[Way], Way]:
    """A decorator: the function is how these operators are computed."""

    def enter(way: Way) -> Way:
        for name in names.split():
            assert name not in OPERATORS, name
            assert kind in KINDS, kind
            OPERATORS[name] = Operator(name, kind, stages, way, native)
        return way

    return enter
