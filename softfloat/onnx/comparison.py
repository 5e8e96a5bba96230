"""Node by node: an emulated run beside the same model computed in float32."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from softfloat.display.drawing import BLUE, ORANGE, new_figure, on_white, plain_axes
from softfloat.onnx.evaluator import Evaluator
from softfloat.onnx.tensors import NARROW, Array, is_narrow
from softfloat.onnx.unit import NodeCounts
from softfloat.status import Flags

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NodeReport", "compare_nodes", "draw_nodes", "in_float32"]

ELEMENT_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype"})
QUANTISED = frozenset({"QuantizeLinear", "DequantizeLinear", "BitCast"})


@dataclass(frozen=True)
class NodeReport:
    """What a run made of one node.

    Attributes
    ----------
    node, operator : str
    format : str
        Of the first narrow output; empty if there is none.
    error : float or None
        Root of the mean square of (output - float32's), over that of float32's output; infinite where one of them
        is not finite and the other is. None without a comparison, and inside subgraphs.
    flags : Flags
    counts : NodeCounts or None
        None where nothing was counted.
    """

    node: str
    operator: str
    format: str
    error: float | None
    flags: Flags
    counts: NodeCounts | None


def in_float32(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model with every narrow type turned into float32, and so every rounding into one left out.

    Raises
    ------
    ValueError
        For operators that make no sense without narrow types: QuantizeLinear, DequantizeLinear, BitCast.
    """
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    _widen_graph(wide.graph)
    return wide


def _widen_graph(graph: onnx.GraphProto) -> None:
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        _widen_type(value.type)
    for node in graph.node:
        if node.op_type in QUANTISED and node.domain in ("", "ai.onnx"):
            raise ValueError(f"a comparison in float32 takes no {node.op_type} (node {node.name!r})")
        for attribute in node.attribute:
            if attribute.name in ELEMENT_ATTRIBUTES and attribute.i in NARROW:
                attribute.i = onnx.TensorProto.FLOAT
            if attribute.HasField("t"):
                _widen_tensor(attribute.t)
            for inner in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
                _widen_graph(inner)


def _widen_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type in NARROW:
        tensor.CopyFrom(onnx.numpy_helper.from_array(_wide(onnx.numpy_helper.to_array(tensor)), tensor.name))


def _widen_type(kind: onnx.TypeProto) -> None:
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        if kind.tensor_type.elem_type in NARROW:
            kind.tensor_type.elem_type = onnx.TensorProto.FLOAT
    elif which in ("sequence_type", "optional_type"):
        _widen_type(getattr(kind, which).elem_type)


def _wide(array: Array) -> Array:
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        return array.astype(np.float32) if is_narrow(array) else array


def relative_error(found: Any, wanted: Any) -> float:
    """Root mean square of the difference, over that of what was wanted."""
    a, b = np.asarray(found).astype(np.float64).ravel(), np.asarray(wanted).astype(np.float64).ravel()
    agree = (a == b) | (np.isnan(a) & np.isnan(b))
    if not (np.isfinite(a) & np.isfinite(b) | agree).all():
        return math.inf
    a, b = a[~agree], b
    difference = a - b[~agree]
    with np.errstate(over="ignore"):
        size = math.sqrt(float(np.sum(np.square(b[np.isfinite(b)]))))
        error = math.sqrt(float(np.sum(np.square(difference))))
    return error / size if size else (math.inf if error else 0.0)


def compare_nodes(
    evaluator: Evaluator, feeds: Mapping[str, Any], compare: bool = True
) -> tuple[dict[str, Any], list[NodeReport]]:
    """Run a model, and report on every emulated node, the worst first.

    Parameters
    ----------
    evaluator : Evaluator
    feeds : mapping of str to array
    compare : bool
        Run the model in float32 too, by ONNX's own evaluator.

    Returns
    -------
    outputs : dict of str to array
    reports : list of NodeReport
        By falling error; then by overflows, swamped additions and underflows. Nodes on no narrow numbers are left out.

    Raises
    ------
    ValueError
        If the model cannot be run in float32.
    """
    values = evaluator.run(None, feeds, intermediate=True)
    flags, counts = evaluator.flags_by_node, evaluator.counts_by_node
    wanted: dict[str, Any] = {}
    if compare:
        model = in_float32(evaluator.model)
        wide = {name: _wide(np.asarray(x)) for name, x in feeds.items()}
        try:
            reference = ReferenceEvaluator(model)
        except RuntimeError as missing:  # NotImplementedError is one
            raise ValueError(
                f"onnx {onnx.__version__} cannot run the model in float32 to compare with: {missing}"
            ) from None
        with np.errstate(all="ignore"):
            wanted = reference.run(None, wide, intermediate=True)
    outer = {node.name: node for node in evaluator.model.graph.node}
    reports = []
    for name, raised in flags.items():
        narrow = [x for x in outer[name].output if x and is_narrow(values.get(x))] if name in outer else []
        error = max((relative_error(values[x], wanted[x]) for x in narrow if x in wanted), default=None)
        fmt = values[narrow[0]].dtype.name if narrow and isinstance(values[narrow[0]], np.ndarray) else ""
        made = counts.get(name, NodeCounts()) if evaluator.counts else None
        reports.append(NodeReport(name, evaluator.nodes[name].operator, fmt, error, raised, made))
    return {name: values[name] for name in evaluator.output_names}, sorted(reports, key=_badness, reverse=True)


def _badness(report: NodeReport) -> tuple[float, ...]:
    counts = report.counts or NodeCounts()
    error = -1.0 if report.error is None else report.error
    return error, counts.overflowed, counts.swamped, counts.underflowed, int(report.flags)


@on_white
def draw_nodes(reports: Iterable[NodeReport], order: Iterable[str]) -> Figure:
    """Errors of nodes in the order of the model, those that overflowed in another colour."""
    place = {name: i for i, name in enumerate(order)}
    shown = sorted((x for x in reports if x.error is not None), key=lambda x: place[x.node])
    if not shown:
        raise ValueError("there is no error to draw: compare a model with emulated nodes")
    figure, axes = new_figure(1.2 + 0.22 * len(shown))
    finite = [x.error for x in shown if x.error and math.isfinite(x.error)] or [1.0]
    low, high = min(finite) / 4, max(finite) * 4
    widths = [min(max(x.error or 0.0, low), high) for x in shown]
    colours = [ORANGE if x.flags & Flags.OVERFLOW else BLUE for x in shown]
    axes.barh(range(len(shown)), widths, color=colours)
    axes.set_yticks(range(len(shown)), [f"{x.node} ({x.operator})"[-48:] for x in shown], fontsize=7)
    axes.set(xscale="log", xlim=(low, high), xlabel="relative error against float32; orange: overflowed")
    axes.invert_yaxis()
    plain_axes(axes, "x")
    return figure
