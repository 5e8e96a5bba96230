"""Models made ready for the evaluator: read and checked, functions inlined, nodes named, types inferred."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError

from softfloat.onnx.tensors import NARROW

__all__ = ["NodeTypes", "Prepared", "load", "prepare", "qualified"]

EXPANDED = "softfloat.expanded"
ROUNDS = 16  # of expansion: a function of functions of functions


def load(model: Any) -> onnx.ModelProto:
    """A model from a file's path, bytes, or a model in memory, checked.

    External data are read from files inside the model's own folder.

    Raises
    ------
    ValueError
        If it is damaged, invalid, or newer than the installed onnx.
    OSError
        If a file cannot be read.
    TypeError
        If it is something else.
    """
    name = "the model"
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        name = str(path)
        found = _parsed(path.read_bytes(), name)
        _check_version(found, name)
        _load_external(found, path.resolve().parent, name)
    elif isinstance(model, bytes):
        found = _parsed(model, name)
        _check_version(found, name)
    elif isinstance(model, onnx.ModelProto):
        found = onnx.ModelProto()
        found.CopyFrom(model)
        _check_version(found, name)
    else:
        raise TypeError(f"model must be an onnx.ModelProto, bytes, or a file's path, got {type(model).__name__}")
    for tensor in onnx.external_data_helper._get_all_tensors(found):
        if onnx.external_data_helper.uses_external_data(tensor):
            raise ValueError(f"{name} has external data (tensor {tensor.name!r}); give the path of its file")
    try:
        onnx.checker.check_model(found)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise ValueError(f"{name} is no valid model: {_first_line(error)}") from None
    return found


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _parsed(data: bytes, name: str) -> onnx.ModelProto:
    try:
        found = onnx.load_model_from_string(data)
    except (DecodeError, ValueError) as error:
        raise ValueError(f"{name} is damaged, or no ONNX model: {_first_line(error)}") from None
    if not found.HasField("graph"):
        raise ValueError(f"{name} is damaged, or no ONNX model: it has no graph")
    return found


def _check_version(model: onnx.ModelProto, name: str) -> None:
    if model.ir_version > onnx.IR_VERSION:
        raise ValueError(
            f"{name} has IR version {model.ir_version}; the installed onnx {onnx.__version__} reads up to {onnx.IR_VERSION}"
        )
    latest = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") and opset.version > latest:
            raise ValueError(
                f"{name} uses operator set {opset.version}; the installed onnx {onnx.__version__} knows up to {latest}"
            )


def _load_external(model: onnx.ModelProto, folder: Path, name: str) -> None:
    """Tensors from files beside the model, and from no file elsewhere."""
    for tensor in onnx.external_data_helper._get_all_tensors(model):
        if not onnx.external_data_helper.uses_external_data(tensor):
            continue
        location = onnx.external_data_helper.ExternalDataInfo(tensor).location
        file = (folder / location).resolve()
        if not file.is_relative_to(folder):
            raise ValueError(f"{name} has external data outside of its folder: {location!r}")
        if not file.is_file():
            raise ValueError(f"{name} has external data in {location!r}, which is missing")
        try:
            onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
        except (onnx.checker.ValidationError, ValueError, OSError) as error:
            raise ValueError(
                f"{name} has external data in {location!r} that cannot be read: {_first_line(error)}"
            ) from None
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


# -- preparation -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeTypes:
    """What is known about a node before anything runs.

    Attributes
    ----------
    name, operator, domain : str
    inputs, outputs : tuple of int
        Element types; 0 where a value is left out, or holds no tensors; -1 where inference leaves one open.
    """

    name: str
    operator: str
    domain: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def touches(self, elements: frozenset[int]) -> bool:
        """Whether it takes or makes tensors of one of these types, as far as is known."""
        return bool(elements & {*self.inputs, *self.outputs})


@dataclass(frozen=True)
class Prepared:
    """A model whose nodes have names of their own, subgraphs' nodes too, and what is known of each, in order."""

    model: onnx.ModelProto
    nodes: dict[str, NodeTypes]


Graphs = Iterator[tuple[onnx.GraphProto, str, dict[str, int]]]


def qualified(node: Any) -> str:
    """A node's operator, with its domain unless that is ONNX's own."""
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else str(node.op_type)


def _name(graph: onnx.GraphProto, prefix: str, taken: set[str]) -> None:
    """Give every node a name that no other has: its own, else its first output's; inside subgraphs below their node's."""
    for node in graph.node:
        own = node.name or next((x for x in node.output if x), node.op_type)
        name, number = own if own.startswith(prefix) else prefix + own, 2
        while name in taken:
            name, number = f"{prefix}{own}#{number}", number + 1
        taken.add(name)
        node.name = name
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
                _name(inner, f"{name}/{attribute.name}/", taken)


def element_of(kind: onnx.TypeProto) -> int:
    """The element type of tensors in a value, within sequences and options too; -1: open."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        return int(getattr(kind, which).elem_type) or -1
    if which in ("sequence_type", "optional_type"):
        return element_of(getattr(kind, which).elem_type)
    return -1 if which is None else 0


def _graphs(
    graph: onnx.GraphProto, outer: dict[str, onnx.TypeProto]
) -> Iterator[tuple[onnx.NodeProto, dict[str, onnx.TypeProto]]]:
    """Every node, subgraphs' too, with the types of the values it can see."""
    known = dict(outer)
    for value in [*graph.input, *graph.value_info, *graph.output]:
        if value.type.WhichOneof("value"):
            known[value.name] = value.type
    for tensor in [*graph.initializer, *[x.values for x in graph.sparse_initializer]]:
        known[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
    for node in graph.node:
        yield node, known
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
                yield from _graphs(inner, known)


def _types(names: Any, known: dict[str, onnx.TypeProto]) -> tuple[int, ...]:
    return tuple(0 if not x else element_of(known[x]) if x in known else -1 for x in names)


def prepare(
    model: onnx.ModelProto, expands: Callable[[NodeTypes], bool], elements: frozenset[int] = frozenset(NARROW)
) -> Prepared:
    """Inline functions, name nodes, infer types; and put in place of each node that `expands` picks the function it is.

    Nodes of a function that is called twice are two nodes. An operator that ONNX defines as a function of others, and
    that has no row of its own, is computed as that function says, node by node.
    """
    for _ in range(ROUNDS):
        model = onnx.inliner.inline_local_functions(model)
        _name(model.graph, "", set())
        model = onnx.shape_inference.infer_shapes(model)
        nodes = {
            node.name: NodeTypes(
                node.name, qualified(node), node.domain, _types(node.input, known), _types(node.output, known)
            )
            for node, known in _graphs(model.graph, {})
        }
        picked = {name for name, types in nodes.items() if expands(types)}
        if not picked or not _expand(model, picked):
            break
    return Prepared(model, nodes)


def _expand(model: onnx.ModelProto, picked: set[str]) -> bool:
    """Replace nodes by calls of functions with their definition; whether there were any."""
    versions = {x.domain: x.version for x in model.opset_import}
    functions: list[onnx.FunctionProto] = []
    for node, known in _graphs(model.graph, {}):
        if node.name not in picked:
            continue
        body = _definition(node, known, versions.get(node.domain, 1))
        if body is None:
            continue
        body.domain, body.name = EXPANDED, f"{node.op_type}_{len(functions)}"
        del body.opset_import[:]
        body.opset_import.extend(x for x in model.opset_import)
        for number, inner in enumerate(body.node):
            inner.name = f"{node.name}/{inner.name or f'{inner.op_type}_{number}'}"
        node.op_type, node.domain = body.name, EXPANDED
        functions.append(body)
    if functions:
        model.functions.extend(functions)
        if EXPANDED not in versions:
            model.opset_import.append(onnx.helper.make_opsetid(EXPANDED, 1))
    return bool(functions)


def _definition(node: onnx.NodeProto, known: dict[str, onnx.TypeProto], version: int) -> onnx.FunctionProto | None:
    """The function that an operator is, by its schema; the defaults of attributes are entered in the node."""
    try:
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return None
    given = {x.name for x in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.name:
            node.attribute.append(attribute.default_value)
    body = onnx.FunctionProto()
    if schema.has_function:
        body.CopyFrom(schema.function_body)
        return body
    if not schema.has_context_dependent_function:
        return None
    types = [known[x].SerializeToString() if x in known else onnx.TypeProto().SerializeToString() for x in node.input]
    text = schema.get_context_dependent_function(node.SerializeToString(), types)
    if not text:
        return None
    body.ParseFromString(text)
    return body
