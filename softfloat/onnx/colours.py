"""Recipes applied to ONNX models: the model as a graph of `softfloat.recipes`, and its verdicts handed to the converter."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from onnx import NodeProto, helper

from softfloat.onnx.rewriting import Converter
from softfloat.onnx.scopes import FLOAT, Scope, label, unique
from softfloat.recipes import TENSOR_TYPES, Colouring, Graph, Node, Recipe, colour

__all__ = ["coloured"]

NAMES = {"float": "float32", "double": "float64"}
SCOPES = "pkg.torch.onnx.name_scopes"
"""Where PyTorch's exporter notes the modules that a node comes from."""


def coloured(converter: Converter, recipe: Recipe) -> Colouring:
    """Decide by a recipe about the nodes of a converter that has blocked what cannot convert."""
    adapter = _Adapter(converter)
    colouring = colour(adapter.graph(), recipe, to=converter.fmt.name)
    decisions = dict(zip((id(node) for _, node in converter.nodes), colouring.decisions, strict=True))
    converter.groups = {key: x.group for key, x in decisions.items() if x.group is not None}
    converter.decide(lambda node: (decisions[id(node)].converts, decisions[id(node)].reason))
    return colouring


class _Adapter:
    """Nodes and tensors of all graphs of a model under names that no other has."""

    def __init__(self, converter: Converter) -> None:
        self.converter = converter
        self.names: dict[int, str] = {}
        self.paths: dict[int, str] = {}
        taken: set[str] = set()
        for scope, node in converter.nodes:
            self.paths[id(node)] = _modules(node) if scope.owner is None else self._path(scope.owner)
            self.names[id(node)] = unique(label(node), taken)
        self.tensors: dict[tuple[int, str], str] = {}
        used: set[str] = set()
        for scope in converter.scopes:
            for name in scope.types:
                self.tensors[id(scope), name] = unique(name, used)

    def _path(self, node: NodeProto) -> str:
        return "/".join(filter(None, (self.paths[id(node)], self.names[id(node)])))

    def graph(self) -> Graph:
        top = self.converter.top
        types = {
            self.tensors[id(scope), name]: _kind(made)
            for scope in self.converter.scopes
            for name, made in scope.types.items()
        }
        weights = {self.tensors[id(scope), x.name] for scope in self.converter.scopes for x in scope.graph.initializer}
        given = [self.tensors[id(scope), x.name] for scope in self.converter.scopes for x in scope.graph.input]
        return Graph(
            list(self._nodes()),
            types,
            inputs=[x for x in given if x not in weights],
            outputs=[self._seen(top, x.name) for x in top.graph.output],
            parameters=weights,
        )

    def _seen(self, scope: Scope, name: str) -> str:
        home = scope.find(name)
        return self.tensors[id(home), name] if home else ""

    def _nodes(self) -> Iterator[Node]:
        for scope, node in self.converter.nodes:
            inputs = [self._seen(scope, name) for name in node.input]
            for inner in (x for x in scope.children if x.owner is node):
                inputs += [self._seen(inner, x.name) for x in inner.graph.output]
            outputs = [self._seen(scope, name) for name in node.output]
            stays = id(node) in self.converter.blocked
            taken = [i for i, name in enumerate(node.input) if name and scope.type(name) == FLOAT]
            made = [i for i, name in enumerate(node.output) if name and scope.type(name) == FLOAT]
            yield Node(
                self.names[id(node)],
                node.op_type,
                inputs,
                outputs,
                scope=self.paths[id(node)],
                variant=self._variant(scope, node),
                rank=self._rank(scope, node.input[0]) if node.input else None,
                wide_inputs=range(len(inputs))
                if stays
                else [i for i in taken if self.converter.taken(node, i, FLOAT) == FLOAT],
                wide_outputs=range(len(outputs))
                if stays
                else [i for i in made if self.converter.given(node, i, FLOAT) == FLOAT],
            )

    def _dimensions(self, scope: Scope, name: str) -> list[Any] | None:
        home = scope.find(name)
        if home is None:
            return None
        for tensor in home.graph.initializer:
            if tensor.name == name:
                return list(tensor.dims)
        for value in (*home.graph.input, *home.graph.value_info, *home.graph.output):
            if value.name == name and value.type.tensor_type.HasField("shape"):
                return [x.dim_value for x in value.type.tensor_type.shape.dim]
        return None

    def _rank(self, scope: Scope, name: str) -> int | None:
        found = self._dimensions(scope, name)
        return None if found is None else len(found)

    def _variant(self, scope: Scope, node: NodeProto) -> str:
        """What attributes make of an operator, in the words of `softfloat.recipes`."""
        attributes = {x.name: x for x in node.attribute}
        if node.op_type in ("Resize", "Upsample"):
            mode = helper.get_attribute_value(attributes["mode"]) if "mode" in attributes else b"nearest"
            return "nearest" if mode == b"nearest" else ""
        if node.op_type == "Conv" and "group" in attributes and attributes["group"].i > 1:
            kernel = self._dimensions(scope, node.input[1])
            return "depthwise" if kernel and len(kernel) > 1 and kernel[1] == 1 else ""
        return ""


def _kind(made: str) -> str:
    """A type as recipes call it."""
    name = made.removeprefix("tensor(").removesuffix(")")
    found = NAMES.get(name, name)
    return found if found in TENSOR_TYPES else "other"


def _modules(node: NodeProto) -> str:
    """The modules that PyTorch's exporter says a node comes from, as a path."""
    for entry in node.metadata_props:
        if entry.key == SCOPES:
            try:
                parts = ast.literal_eval(entry.value)
            except (SyntaxError, ValueError):
                return ""
            return "/".join(x for x in parts[:-1] if isinstance(x, str) and x) if isinstance(parts, list) else ""
    return ""
