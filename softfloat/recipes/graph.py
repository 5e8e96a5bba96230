"""A graph as recipes see it: nodes, what they take and make, and of what types that is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from softfloat.checks import check_choice, check_kind, is_integer
from softfloat.formats import ROSTER
from softfloat.frozen import settle
from softfloat.recipes.vocabularies import VOCABULARIES

__all__ = ["LOW_TYPES", "TENSOR_TYPES", "WIDE", "Graph", "Node"]

WIDE = "float32"
"""The type that is converted."""

LOW_TYPES = tuple(name for name, fmt in ROSTER.items() if fmt.bits < ROSTER[WIDE].bits)
"""The types that it can be converted to: the narrower ones of `softfloat.ROSTER`."""

TENSOR_TYPES = frozenset(
    {*ROSTER, "float64", "complex64", "complex128", "bool", "string", "other"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)}
)
"""Names of types; "other" is for what is no tensor, such as sequences and sizes."""


@dataclass(frozen=True)
class Node:
    """An operation of a graph.

    Parameters
    ----------
    name : str
        Unlike those of all other nodes of the graph.
    op_type : str
        In the graph's vocabulary: "MatMul", "Conv", "aten.mm".
    inputs, outputs : sequence of str
        Names of tensors. "" is an operand left out.
    scope : str
        What the name stands in, with slashes: "encoder/layer_0". `path`, which exceptions are matched against, is both.
    variant : str
        What attributes make of the type where recipes tell that apart: "depthwise", "transposed" convolutions, "nearest"
        resizing. The tables of `softfloat.recipes.clauses` have their names.
    rank : int, optional
        How many dimensions the first operand has, where it is known. It tells Conv2D from Conv3D.
    wide_inputs, wide_outputs : collection of int
        Positions of operands and results that stay float32 where the node converts, such as the statistics of norms. No
        cast is put there, and neighbours on these tensors are none.
    """

    name: str
    op_type: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    scope: str = ""
    variant: str = ""
    rank: int | None = None
    wide_inputs: Collection[int] = ()
    wide_outputs: Collection[int] = ()

    def __post_init__(self) -> None:
        for key in ("name", "op_type", "scope", "variant"):
            check_kind(key, getattr(self, key), str)
        if not self.name or not self.op_type:
            raise ValueError(f"name and op_type must not be empty, got {self.name!r} and {self.op_type!r}")
        for key in ("inputs", "outputs"):
            settle(self, **{key: _strings(f"{key} of node {self.name!r}", getattr(self, key))})
            wide = f"wide_{key}"
            if not all(is_integer(i) and 0 <= i < len(getattr(self, key)) for i in getattr(self, wide)):
                raise ValueError(
                    f"{wide} of node {self.name!r} must be positions from 0 to {len(getattr(self, key)) - 1}, "
                    f"got {getattr(self, wide)!r}"
                )
            settle(self, **{wide: tuple(sorted({int(i) for i in getattr(self, wide)}))})
        if self.rank is not None and (not is_integer(self.rank) or self.rank < 0):
            raise ValueError(f"rank of node {self.name!r} must be None or an integer from 0 on, got {self.rank!r}")

    @property
    def path(self) -> str:
        """The full name: scope and name."""
        return f"{self.scope.rstrip('/')}/{self.name}" if self.scope else self.name


@dataclass(frozen=True)
class Graph:
    """Nodes and the types of their tensors: ONNX models and traces of PyTorch are converted to it, and recipes decide on it.

    Parameters
    ----------
    nodes : sequence of Node
        In any order; casts of a converted graph stand in a topological order if these do. Nodes of subgraphs are among them,
        and tensors in different subgraphs have different names.
    types : mapping of str to str
        Of every tensor: a name out of `TENSOR_TYPES`, such as "float32", "int64". "other" is for what is no tensor.
    inputs, outputs : sequence of str
        Tensors that the graph is given, and that it returns. A tensor may be returned twice.
    parameters : collection of str
        Tensors that are Variables or Consts: parameters, buffers, initializers. Results of nodes that hold constants (ONNX's
        Constant, TensorFlow's Const and Variables) are anyhow.
    vocabulary : {"tensorflow", "onnx", "aten"}
        Whose names the nodes' types are.

    Raises
    ------
    TypeError, ValueError
        Naming node and tensor: two nodes of one name, a tensor that two nodes make, that none makes, without a type or of
        an unknown one.

    >>> graph = Graph(
    ...     [Node("fc", "Gemm", ["x", "w"], ["h"]), Node("act", "Relu", ["h"], ["y"])],
    ...     types=dict.fromkeys("xwhy", "float32"), inputs=["x"], outputs=["y"], parameters=["w"], vocabulary="onnx",
    ... )
    >>> graph.producer["h"].name, [node.name for node, _ in graph.uses["h"]]
    ('fc', ['act'])
    """

    nodes: Sequence[Node]
    types: Mapping[str, str]
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    parameters: Collection[str] = ()
    vocabulary: str = "onnx"

    def __post_init__(self) -> None:
        check_choice("vocabulary", self.vocabulary, VOCABULARIES)
        settle(self, nodes=tuple(self.nodes), types=dict(self.types), parameters=frozenset(self.parameters))
        for node in self.nodes:
            check_kind("nodes", node, Node)
        for key in ("inputs", "outputs"):
            settle(self, **{key: _strings(key, getattr(self, key))})
        self._check_names()
        self._check_tensors()

    def _check_names(self) -> None:
        seen: set[str] = set()
        made = {*self.inputs, *self.parameters}
        for node in self.nodes:
            if node.name in seen:
                raise ValueError(f"names of nodes must be different, got {node.name!r} twice")
            seen.add(node.name)
            for tensor in filter(None, node.outputs):
                if tensor in made:
                    raise ValueError(f"tensor {tensor!r}, which node {node.name!r} makes, is made or given already")
                made.add(tensor)

    def _check_tensors(self) -> None:
        made = {*self.inputs, *self.parameters, *self.producer}
        where = [(f"node {node.name!r} takes", x) for node in self.nodes for x in node.inputs]
        where += [("the graph returns", x) for x in self.outputs]
        for place, tensor in where:
            if tensor and tensor not in made:
                raise ValueError(f"{place} tensor {tensor!r}, which no node makes; name it in inputs or parameters")
        for tensor in filter(None, made):
            if tensor not in self.types:
                raise ValueError(f"types must have all tensors, got none of {tensor!r}")
        for tensor, kind in self.types.items():
            if kind not in TENSOR_TYPES:
                raise ValueError(
                    f"type of tensor {tensor!r} must be one of {', '.join(sorted(TENSOR_TYPES))}, got {kind!r}"
                )

    @cached_property
    def producer(self) -> dict[str, Node]:
        """By tensor, the node that makes it."""
        return {tensor: node for node in self.nodes for tensor in node.outputs if tensor}

    @cached_property
    def uses(self) -> dict[str, list[tuple[Node, int]]]:
        """By tensor, the nodes that take it, and at which positions."""
        found: dict[str, list[tuple[Node, int]]] = {}
        for node in self.nodes:
            for i, tensor in enumerate(node.inputs):
                if tensor:
                    found.setdefault(tensor, []).append((node, i))
        return found


def _strings(name: str, value: Iterable[Any]) -> tuple[str, ...]:
    found = () if isinstance(value, (str, bytes)) else tuple(value)
    if isinstance(value, (str, bytes)) or not all(isinstance(x, str) for x in found):
        raise TypeError(f"{name} must be a sequence of strings, got {value!r}")
    return found
