"""The table of operators, whole: importing this enters every row."""

from softfloat.onnx import casts, elementwise, moves, products, stages  # noqa: F401 -- which enter their rows
from softfloat.onnx.table import KINDS, OPERATORS, Operator

__all__ = ["KINDS", "OPERATORS", "Operator"]
