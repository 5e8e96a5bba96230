"""Saved models in emulated arithmetic: every node of an ONNX model that computes in a format narrower than float32.

`Evaluator` is a subclass of `onnx.reference.ReferenceEvaluator`.
"""

_NEEDED = "softfloat.onnx needs onnx 1.19 or later; pip install 'numba-softfloat[onnx]' brings it"
try:
    import onnx as _onnx
except ImportError as missing:
    raise ImportError(_NEEDED) from missing
if tuple(int(part) for part in _onnx.__version__.split(".")[:2]) < (1, 19):
    raise ImportError(f"{_NEEDED}, got {_onnx.__version__}")

__all__: list[str] = []
