"""Saved models in emulated arithmetic: every node of an ONNX model that computes in a format narrower than float32.

`Evaluator` is a subclass of `onnx.reference.ReferenceEvaluator`; `OPERATORS` says how each operator is computed. `convert` makes
models of half precision or bfloat16 out of float32 ones, and `find_block_list` says which nodes of a model must not be converted.
"""

_NEEDED = "softfloat.onnx needs onnx 1.19 or later; pip install 'numba-softfloat[onnx]' brings it"
try:
    import onnx as _onnx
except ImportError as missing:
    raise ImportError(_NEEDED) from missing
if tuple(int(part) for part in _onnx.__version__.split(".")[:2]) < (1, 19):
    raise ImportError(f"{_NEEDED}, got {_onnx.__version__}")

from softfloat.onnx.block_lists import BlockList, Suspect, find_block_list  # noqa: E402 -- after the check
from softfloat.onnx.conversion import convert  # noqa: E402
from softfloat.onnx.evaluator import Evaluator  # noqa: E402
from softfloat.onnx.graphs import NodeTypes  # noqa: E402
from softfloat.onnx.operators import KINDS, OPERATORS, Operator  # noqa: E402
from softfloat.onnx.reports import CastReport, ConversionReport, Decision  # noqa: E402
from softfloat.onnx.rewriting import KernelError  # noqa: E402
from softfloat.onnx.unit import NodeCounts, NodeTrap, UnemulatedOperatorError  # noqa: E402
from softfloat.onnx.weights import WeightReport  # noqa: E402

__all__ = [
    "KINDS",
    "OPERATORS",
    "BlockList",
    "CastReport",
    "ConversionReport",
    "Decision",
    "Evaluator",
    "KernelError",
    "NodeCounts",
    "NodeTrap",
    "NodeTypes",
    "Operator",
    "Suspect",
    "UnemulatedOperatorError",
    "WeightReport",
    "convert",
    "find_block_list",
]
