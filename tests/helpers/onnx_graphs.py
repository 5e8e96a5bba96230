"""Graphs of ONNX models compared: nodes whatever their order, types, weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
from onnx import AttributeProto, numpy_helper

from softfloat.onnx.scopes import Scope, scopes


def described(model: onnx.ModelProto) -> dict[str, Any]:
    """Everything about a model that does not depend on the order of its nodes. Weights are bytes, types those that hold."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return _graph(copy.graph) | {"types": dict(_types(scopes(copy), "/"))}


def _graph(graph: onnx.GraphProto) -> dict[str, Any]:
    return {
        "nodes": {_node(node) for node in graph.node},
        "weights": {x.name: _tensor(x) for x in graph.initializer},
        "inputs": [x.name for x in graph.input],
        "outputs": [x.name for x in graph.output],
    }


def _node(node: onnx.NodeProto) -> tuple[Any, ...]:
    attributes = tuple(sorted((x.name, _attribute(x)) for x in node.attribute))
    return (node.domain, node.op_type, node.name, tuple(node.input), tuple(node.output), attributes)


def _attribute(attribute: onnx.AttributeProto) -> str:
    if attribute.type == AttributeProto.TENSOR:
        return repr(_tensor(attribute.t))
    if attribute.type == AttributeProto.GRAPH:
        found = _graph(attribute.g)
        return repr({key: sorted(map(repr, value)) if key == "nodes" else value for key, value in found.items()})
    return repr(onnx.helper.get_attribute_value(attribute))


def _tensor(tensor: onnx.TensorProto) -> tuple[str, tuple[int, ...], bytes]:
    array = numpy_helper.to_array(tensor)
    return (str(array.dtype), array.shape, array.tobytes())


def _types(scope: Scope, path: str) -> Iterator[tuple[str, str]]:
    for name, kind in scope.types.items():
        yield path + name, kind
    for i, child in enumerate(scope.children):
        yield from _types(child, f"{path}{i}/")
