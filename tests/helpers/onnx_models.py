"""Small ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from softfloat import Format, bits
from softfloat.onnx.tensors import array_of, dtype_of


def numbers(shape: tuple[int, ...], fmt: Format, seed: int = 0, scale: float = 1.0) -> np.ndarray[Any, Any]:
    """Normally distributed numbers, as an array in a format."""
    return array_of(bits.encode(np.random.default_rng(seed).normal(0, scale, shape), fmt)[0], fmt)


def every(fmt: Format) -> np.ndarray[Any, Any]:
    """Every code of a format, as an array in it."""
    return np.arange(1 << fmt.spec.width, dtype=np.uint32).astype(fmt.dtype).view(dtype_of(fmt))


def kind_of(name: str, x: Any) -> onnx.ValueInfoProto:
    """What a model says about a value."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.shape(x))


def one_node(
    operator: str,
    inputs: list[Any],
    outputs: int = 1,
    opset: int = 21,
    name: str = "node",
    made: int | None = None,
    rank: int | None = None,
    **given: Any,
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """(a model of one node, its feeds); `made` and `rank` say what outputs are, if not as the first input and as inferred."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    feeds = {name: np.asarray(x) for name, x in zip(names, inputs, strict=True) if x is not None}
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(operator, names, results, name=name, **given)
    first = helper.np_dtype_to_tensor_dtype(next(iter(feeds.values())).dtype) if made is None else made
    sizes = None if rank is None else [None] * rank
    values = [helper.make_tensor_value_info(x, first, sizes) for x in results]
    graph = helper.make_graph([node], "graph", [kind_of(*item) for item in feeds.items()], values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model), feeds


def parsed(text: str, opset: int = 21) -> onnx.ModelProto:
    """A model from ONNX's text, without its head."""
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}, "local" : 1]>\n{text}')
