"""Saved models in emulated arithmetic: every node of an ONNX model that computes in a format narrower than float32.

`Evaluator` is a subclass of `onnx.reference.ReferenceEvaluator`; `OPERATORS` says how each operator is computed.
"""

_NEEDED = "softfloat.onnx needs onnx 1.19 or later; pip install 'numba-softfloat[onnx]' brings it"
try:
    import onnx as _onnx
except ImportError as missing:
    raise ImportError(_NEEDED) from missing
if tuple(int(part) for part in _onnx.__version__.split(".")[:2]) < (1, 19):
    raise ImportError(f"{_NEEDED}, got {_onnx.__version__}")

from softfloat.onnx.evaluator import Evaluator  # noqa: E402 -- after the check
from softfloat.onnx.graphs import NodeTypes  # noqa: E402
from softfloat.onnx.operators import KINDS, OPERATORS, Operator  # noqa: E402
from softfloat.onnx.unit import NodeCounts, NodeTrap, UnemulatedOperatorError  # noqa: E402

__all__ = [
    "KINDS",
    "OPERATORS",
    "Evaluator",
    "NodeCounts",
    "NodeTrap",
    "NodeTypes",
    "Operator",
    "UnemulatedOperatorError",
]
