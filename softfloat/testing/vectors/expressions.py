"""Accumulators as text: a call of a preset, as one writes it in Python."""

from __future__ import annotations

import ast
from typing import Any

from softfloat.accumulators import PRESETS, Accumulator

__all__ = ["parse_accumulator"]

LONGEST_EXPRESSION = 1000  # characters
DEEPEST_EXPRESSION = 10  # calls within calls


def parse_accumulator(text: str) -> Accumulator:
    """An accumulator from a call of a preset, as one writes it in Python; nothing is evaluated but literals.

    >>> parse_accumulator('chunked(64, fma("float16"), "float32")')
    chunked(64, fma('float16'), 'float32')

    Raises
    ------
    ValueError
        Naming the accepted presets, or what the preset says of its arguments.
    """
    accepted = f"accepted: {', '.join(row.example for row in PRESETS.values())} ..."
    try:
        if len(text) > LONGEST_EXPRESSION:
            raise SyntaxError("too long")
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"accumulator {text[:60]!r} is no call of a preset; {accepted}") from None
    try:
        return _called(tree, text, accepted, 0)
    except (ValueError, TypeError) as error:
        raise ValueError(str(error).partition("\n")[0]) from None
    except (ArithmeticError, MemoryError, RecursionError, AttributeError, KeyError):
        raise ValueError(f"accumulator {text[:60]!r} has arguments its preset does not take; {accepted}") from None


def _called(tree: ast.expr, text: str, accepted: str, depth: int) -> Accumulator:
    known = isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in PRESETS
    if not known or depth > DEEPEST_EXPRESSION:
        raise ValueError(f"accumulator {text[:60]!r} is no call of a preset; {accepted}")
    assert isinstance(tree, ast.Call)
    assert isinstance(tree.func, ast.Name)

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Call):
            return _called(node, text, accepted, depth + 1)
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            raise ValueError(
                f"accumulator {text[:60]!r} has an argument that is neither a literal nor a preset; {accepted}"
            ) from None

    if any(word.arg is None for word in tree.keywords):
        raise ValueError(f"accumulator {text[:60]!r} has arguments behind **; {accepted}")
    keywords = {str(word.arg): value(word.value) for word in tree.keywords}
    return PRESETS[tree.func.id].make(*map(value, tree.args), **keywords)
