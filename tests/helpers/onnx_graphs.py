"""Graphs of ONNX models compared and checked: nodes whatever their order, types, weights; and random ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
from hypothesis import strategies as st
from onnx import AttributeProto, numpy_helper
from saved_models import drawn, info, made, node, weight

from softfloat.onnx.scopes import Parameters, Scope, opsets, scopes


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
    for child in scope.children:
        place = [x for x in scope.children if x.owner is child.owner].index(child)
        assert child.owner is not None
        yield from _types(child, f"{path}{child.owner.name}/{place}/")


def mixed(model: Any) -> list[str]:
    """Nodes whose inputs of one type variable have two types, or whose types their operator does not take."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    found = []
    for scope in scopes(copy).walk():
        for taker in scope.graph.node:
            parameters = Parameters(taker, opsets(model))
            bound: dict[str, set[str]] = {}
            for place, name in enumerate(taker.input):
                if name:
                    kind = scope.type(name)
                    bound.setdefault(parameters.variable(place), set()).add(kind)
                    if parameters.known and kind not in parameters.kernels(place):
                        found.append(f"{taker.name}: {kind}")
            heterogeneous = {"Loop", "Scan"}
            if taker.op_type not in heterogeneous and any(len(x) > 1 for x in bound.values()):
                found.append(f"{taker.name}: {bound}")
    return found


UNARY, BINARY = ("Exp", "Neg", "Tanh", "Relu"), ("Add", "Mul", "Max")


@st.composite
def chains(draw: st.DrawFn) -> tuple[Any, list[str]]:
    """A graph of elementwise nodes, two weights among what they take, and the names of some of them."""
    tensors = ["x", "w", "v"]
    nodes = []
    for i in range(draw(st.integers(1, 8))):
        operator = draw(st.sampled_from(UNARY + BINARY))
        taken = draw(
            st.lists(st.sampled_from(tensors), min_size=1 + (operator in BINARY), max_size=1 + (operator in BINARY))
        )
        nodes.append(node(operator, " ".join(taken), f"t{i}"))
        tensors.append(f"t{i}")
    outputs = [f"t{len(nodes) - 1}", *draw(st.lists(st.sampled_from(tensors[3:]), unique=True, max_size=2))]
    kept = draw(st.lists(st.sampled_from([x.name for x in nodes]), unique=True))
    values = [info(x, (4,)) for x in dict.fromkeys(outputs)]
    return made(nodes, [info("x", (4,))], values, [weight("w", drawn(4)), weight("v", drawn(4, seed=1))]), kept
