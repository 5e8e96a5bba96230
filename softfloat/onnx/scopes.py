"""Graphs of a model: names and where they are defined, types of tensors, kernels that ONNX has, nodes in an order that runs.

A type is written as ONNX's operator schemas write it: "tensor(float)", "seq(tensor(float16))".
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

__all__ = [
    "ASKED",
    "FLOAT",
    "TYPE_ATTRIBUTES",
    "Parameters",
    "Scope",
    "element_name",
    "first_float",
    "label",
    "opsets",
    "scopes",
    "sort",
    "subgraphs",
    "type_of",
    "unique",
]

FLOAT = "tensor(float)"


def element_name(element: int) -> str:
    """What schemas call an element type of `onnx.TensorProto`."""
    return str(TensorProto.DataType.Name(element)).lower()


def type_of(made: TypeProto) -> str:
    """A type as schemas write it; "" where it is not known."""
    kind = made.WhichOneof("value")
    if kind == "tensor_type":
        element = made.tensor_type.elem_type
        return f"tensor({element_name(element)})" if element else ""
    if kind in ("sequence_type", "optional_type"):
        inner = type_of(getattr(made, kind).elem_type)
        return f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})" if inner else ""
    return ""


def label(node: NodeProto) -> str:
    """What a node goes by: its name, or that of the first tensor it makes."""
    return str(node.name or next(filter(None, node.output), node.op_type))


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs inside a node, in the order of its attributes."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def opsets(model: ModelProto) -> dict[str, int]:
    """Domain -> version of its operators; ONNX's own domain is ""."""
    return {"" if x.domain == "ai.onnx" else x.domain: x.version for x in model.opset_import}


def unique(name: str, taken: set[str]) -> str:
    """A name that nothing has yet, which it has from then on."""
    found, count = name, 0
    while found in taken or not found:
        count += 1
        found = f"{name}_{count}"
    taken.add(found)
    return found


# -- what an operator takes and makes -------------------------------------------------------------------------------


class Parameters:
    """The parameters of one node's operator, by their places.

    Attributes
    ----------
    known : bool
        Whether ONNX has a schema for the operator at the model's version of its domain.
    """

    def __init__(self, node: NodeProto, versions: dict[str, int]) -> None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        try:
            schema = onnx.defs.get_schema(node.op_type, versions.get(domain, 1), domain)
        except onnx.defs.SchemaError:
            schema = None
        self.known = schema is not None
        self._inputs = list(schema.inputs) if schema else []
        self._outputs = list(schema.outputs) if schema else []
        self._allowed = (
            {x.type_param_str: frozenset(x.allowed_type_strs) for x in schema.type_constraints} if schema else {}
        )

    def variable(self, place: int, output: bool = False) -> str:
        """The type variable of an input or output, or its fixed type; "" where there is no schema."""
        formal = self._outputs if output else self._inputs
        return str(formal[min(place, len(formal) - 1)].type_str) if formal else ""

    def kernels(self, place: int, output: bool = False) -> frozenset[str]:
        """The types that exist for an input or output; none where there is no schema."""
        variable = self.variable(place, output)
        return self._allowed.get(variable, frozenset({variable} if variable else ()))


# -- scopes ---------------------------------------------------------------------------------------------------------


class Scope:
    """A graph and what its names stand for.

    Attributes
    ----------
    graph : onnx.GraphProto
    parent : Scope or None
        The graph around it, whose names it sees.
    owner : onnx.NodeProto or None
        The node that it is a part of.
    types : dict
        Name defined here -> type; "" where it is not known.
    children : list of Scope
    """

    def __init__(self, graph: GraphProto, parent: Scope | None = None, owner: NodeProto | None = None) -> None:
        self.graph = graph
        self.parent = parent
        self.owner = owner
        self.types: dict[str, str] = {}
        self.children: list[Scope] = []

    def find(self, name: str) -> Scope | None:
        """Where a name is defined: here or further out; None if nowhere."""
        scope: Scope | None = self
        while scope is not None and name not in scope.types:
            scope = scope.parent
        return scope

    def type(self, name: str) -> str:
        """The type of a name that is seen here; "" where it is not known."""
        scope = self.find(name)
        return scope.types[name] if scope else ""

    def walk(self) -> Iterator[Scope]:
        """This scope and those inside it, outer ones first."""
        yield self
        for child in self.children:
            yield from child.walk()


def scopes(model: ModelProto) -> Scope:
    """The scopes of a model and the types of all that is defined in them.

    Types come from `onnx.shape_inference`, and where that has none (inside subgraphs) from the schemas.
    """
    inferred = onnx.shape_inference.infer_shapes(model)
    model.graph.ClearField("value_info")
    model.graph.value_info.extend(inferred.graph.value_info)
    return _scope(model.graph, None, None, opsets(model))


def _scope(graph: GraphProto, parent: Scope | None, owner: NodeProto | None, versions: dict[str, int]) -> Scope:
    scope = Scope(graph, parent, owner)
    declared = {x.name: type_of(x.type) for x in (*graph.value_info, *graph.output)}
    for value in graph.input:
        scope.types[value.name] = type_of(value.type) or _carried(scope, value.name)
    for tensor in graph.initializer:
        scope.types[tensor.name] = f"tensor({element_name(tensor.data_type)})"
    for sparse in graph.sparse_initializer:
        scope.types[sparse.values.name] = f"tensor({element_name(sparse.values.data_type)})"
    for node in graph.node:
        scope.types.update({name: declared.get(name, "") for name in node.output if name})
    for node in _runnable(graph.node):
        inner = [_scope(x, scope, node, versions) for x in subgraphs(node)]
        scope.children += inner
        found = _outputs(node, scope, inner, versions)
        for name, made in zip(node.output, found, strict=True):
            if name and not scope.types[name]:
                scope.types[name] = made
    return scope


def _carried(scope: Scope, name: str) -> str:
    """The type of a subgraph's input that names none: that of what its Loop or Scan hands it."""
    places = [x.name for x in scope.graph.input]
    owner, outside = scope.owner, scope.parent
    if owner is None or outside is None:
        return ""
    handed = owner.input[places.index(name) :][:1]
    return outside.type(handed[0]) if handed and handed[0] else ""


ASKED = {
    "ConstantOfShape": "value",
    "BlackmanWindow": "output_datatype",
    "HammingWindow": "output_datatype",
    "HannWindow": "output_datatype",
    "MelWeightMatrix": "output_datatype",
    "RandomNormal": "dtype",
    "RandomUniform": "dtype",
    "SequenceEmpty": "dtype",
}
"""Operators that make float32 unless an attribute says otherwise -> the attribute: an element type, or a tensor."""

TYPE_ATTRIBUTES = {"dtype", "output_datatype", "output_dtype", "to"}
"""Attributes that name the element type of what a node makes."""


CONSTANTS = {
    f"value_{name}{plural}": kind
    for name, kind in (("float", FLOAT), ("int", "tensor(int64)"), ("string", "tensor(string)"))
    for plural in ("", "s")
}
"""Attributes of Constant that have a type of their own."""


def _outputs(node: NodeProto, scope: Scope, inner: list[Scope], versions: dict[str, int]) -> list[str]:
    """The types of a node's outputs, as far as its schema, its attributes and its subgraphs tell."""
    if inner:
        body = inner[0]
        made = [body.type(x.name) for x in body.graph.output]
        made = made[1:] if node.op_type == "Loop" else made
        return (made + [""] * len(node.output))[: len(node.output)]
    parameters = Parameters(node, versions)
    bound = {parameters.variable(i): scope.type(name) for i, name in enumerate(node.input) if name}
    if node.op_type in ASKED:
        bound[parameters.variable(0, True)] = FLOAT
    for attribute in node.attribute:
        if attribute.name in TYPE_ATTRIBUTES and attribute.i:
            bound[parameters.variable(0, True)] = f"tensor({element_name(attribute.i)})"
        elif attribute.name == "value" and attribute.t.data_type:
            bound[parameters.variable(0, True)] = f"tensor({element_name(attribute.t.data_type)})"
        elif attribute.name in CONSTANTS:
            bound[parameters.variable(0, True)] = CONSTANTS[attribute.name]
    made = []
    for place in range(len(node.output)):
        variable = parameters.variable(place, True)
        fixed = variable if "(" in variable else ""
        allowed = parameters.kernels(place, True)
        only = allowed if len(allowed) == 1 else _around(set(bound.values())) & allowed
        made.append(bound.get(variable) or fixed or (min(only) if len(only) == 1 else ""))
    return made


def _around(kinds: set[str]) -> set[str]:
    """What types hold, and what holds them: a sequence's elements, a sequence of tensors."""
    inner = {kind[kind.index("(") + 1 : -1] for kind in kinds if kind}
    return {kind for kind in inner if "(" in kind} | {
        f"{holder}({kind})" for kind in kinds if kind for holder in ("seq", "optional")
    }


def first_float(node: NodeProto, scope: Scope) -> tuple[int, bool] | None:
    """The place of a node's first float32 input, or else output, and whether it is an output; None if it has neither."""
    for names, output in ((node.input, False), (node.output, True)):
        for place, name in enumerate(names):
            if name and "tensor(float)" in scope.type(name):
                return place, output
    return None


# -- order ----------------------------------------------------------------------------------------------------------


def _captured(graph: GraphProto) -> set[str]:
    """The names that a graph takes from outside it."""
    own = {x.name for x in graph.input} | {x.name for x in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    used = {name for node in graph.node for name in _needed(node)} | {x.name for x in graph.output}
    return used - own


def _needed(node: NodeProto) -> set[str]:
    """The names that a node needs: its inputs, and what its subgraphs take from outside."""
    names = set(filter(None, node.input))
    for graph in subgraphs(node):
        names |= _captured(graph)
    return names


def _runnable(nodes: Iterable[NodeProto]) -> list[NodeProto]:
    """Nodes in an order that runs; those that may stay where they are do.

    Raises
    ------
    ValueError
        For nodes that wait for one another.
    """
    nodes = list(nodes)
    maker = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    waits = [{maker[name] for name in _needed(node) if name in maker} for node in nodes]
    followers: dict[int, list[int]] = {}
    for i, before in enumerate(waits):
        for j in before:
            followers.setdefault(j, []).append(i)
    ready = [i for i, before in enumerate(waits) if not before]
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(nodes[i])
        for j in followers.get(i, ()):
            waits[j].discard(i)
            if not waits[j]:
                heapq.heappush(ready, j)
    if len(order) < len(nodes):
        stuck = next(node for node, before in zip(nodes, waits, strict=True) if before)
        raise ValueError(f"model has nodes that wait for one another, {label(stuck)!r} among them")
    return order


def sort(graph: GraphProto) -> None:
    """Put the nodes of a graph, and of those inside it, into an order that runs. Nodes that may stay in their place do."""
    order = []
    for node in _runnable(graph.node):
        copy = NodeProto()
        copy.CopyFrom(node)
        order.append(copy)
    graph.ClearField("node")
    graph.node.extend(order)
    for node in graph.node:
        for inner in subgraphs(node):
            sort(inner)
