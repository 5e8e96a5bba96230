"""Which nodes of a model must stay in float32 for its results to be good enough: ranked by one emulated run, then searched."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto

from softfloat import bits, markup
from softfloat.environments import Environment
from softfloat.formats import Format, check_format
from softfloat.onnx.conversion import convert
from softfloat.onnx.evaluator import Evaluator
from softfloat.onnx.graphs import load
from softfloat.onnx.reports import Table
from softfloat.onnx.scopes import label, subgraphs
from softfloat.onnx.unit import UnemulatedOperatorError
from softfloat.status import Flags

__all__ = ["BlockList", "Suspect", "find_block_list"]

SEVERE = Flags.OVERFLOW | Flags.INVALID | Flags.DIVBYZERO

Validate = Callable[[list[Any], list[Any]], bool]


@dataclass(frozen=True)
class Suspect:
    """What a run in the narrow format says of a node.

    Attributes
    ----------
    node, op_type : str
    flags : Flags
        What it raised, its casts too.
    out_of_range : int
        How many numbers that it takes or makes in float32, weights among them, the format has no finite number for.
    lost : float
        The part of its results that underflowed, and of its additions that were swamped, 0 to 2.
    error : float
        By how much the relative error of its results, beside the run in float32, exceeds that of what it takes.
    score : float
        What it is ranked by: with 1 for flags that are severe or numbers out of range, and half of what the worst of the
        nodes that use its results has.
    """

    node: str
    op_type: str
    flags: Flags
    out_of_range: int
    lost: float
    error: float
    score: float


@dataclass(frozen=True)
class BlockList(markup.Tabled):
    """Nodes that must stay in float32, for `node_block_list` of `convert`; `print`, consoles and notebooks show the ranking.

    Attributes
    ----------
    nodes : tuple of str
        In the model's order. Converting any one of them too fails, as far as the search has looked.
    unemulated : tuple of str
        Those of them that stay because the evaluator has no emulation of them.
    runs : int
        How many runs of a converted model it took.
    of : int
        Of how many nodes that could convert, with those that are not emulated.
    suspects : tuple of Suspect
        All of them, as the first run ranks them, worst first.
    """

    nodes: tuple[str, ...]
    unemulated: tuple[str, ...]
    runs: int
    of: int
    suspects: tuple[Suspect, ...] = field(repr=False)

    def _table(self) -> Table:
        rows = []
        for x in self.suspects:
            numbers = (markup.grouped(x.out_of_range), f"{x.lost:.3g}", f"{x.error:.3g}")
            rows.append((x.node, x.op_type, str(x.flags), *numbers, "float32" if x.node in self.nodes else ""))
        title = f"{len(self.nodes)} of {self.of} nodes stay in float32, after {self.runs} runs"
        return title, ("node", "operator", "flags", "out of range", "lost", "error", "stays in"), rows


def find_block_list(
    model: ModelProto | str | os.PathLike[str],
    feeds: Mapping[str, Any],
    validate: Validate | float,
    *,
    to: Format | str = "float16",
    recipe: Any = None,
    op_block_list: Collection[str] | None = None,
    environment: Environment | None = None,
    matmul: Any = None,
    convolution: Any = None,
    reduction: Any = None,
) -> BlockList:
    """Find nodes that must stay in float32 for a converted model to pass.

    Parameters
    ----------
    model : onnx.ModelProto or path
        Of float32.
    feeds : mapping of str to array
        Inputs, by name; inputs and outputs stay float32.
    validate : callable or float
        Called with the outputs of the float32 model and of a converted one, two lists of arrays: whether the second will do.
        A number: the greatest difference allowed, relative to the largest finite magnitude of each output.
    to, recipe, op_block_list
        As of `convert`.
    environment, matmul, convolution, reduction
        As of `Evaluator`: on what hardware converted nodes run.

    Returns
    -------
    BlockList

    Raises
    ------
    ValueError
        If the float32 model does not pass beside itself, or nothing does but the float32 model; for nodes of one name.

    Notes
    -----
    The first run converts everything. Its flags and counts, and the numbers of the float32 run that the format cannot hold,
    rank the nodes. Then those with severe flags or such numbers are kept, and twice as many each time until the model passes.
    Of those kept, the severe ones are converted again one by one, the others by halves, which are halved where that fails;
    what is left is kept. Every list that the search goes on from has passed as it stands, so that the result has, too.
    onnxconverter-common's `auto_convert_mixed_precision` halves all nodes in the order of the graph.
    """
    fmt = check_format(to, "to")
    passes = _validator(validate)
    source = _named(load(model))
    tops = {node.name: node for node in source.graph.node}
    inputs = dict(feeds)
    values = dict(Evaluator(source).run(None, inputs, intermediate=True))
    outputs = [x.name for x in source.graph.output]
    reference = [values[name] for name in outputs]
    if not passes(reference, reference):
        raise ValueError("validate refuses the outputs of the float32 model itself")
    units = {"matmul": matmul, "convolution": convolution, "reduction": reduction}
    forced: list[str] = []

    def evaluator(kept: Collection[str], count: bool = False) -> Evaluator:
        """A converted model; what is not emulated is kept from then on."""
        while True:
            made, _ = convert(source, fmt, recipe, op_block_list=op_block_list, node_block_list=[*kept, *forced])
            try:
                return Evaluator(made, environment, count=count, **units)
            except UnemulatedOperatorError as error:
                name = _top(error.node, tops)
                if name is None or name in forced:
                    raise
                forced.append(name)

    runs = 0

    def good(kept: Collection[str]) -> bool:
        nonlocal runs
        made = evaluator(kept)
        runs += 1
        with np.errstate(all="ignore"):  # of float32 nodes, whose inputs may be infinite
            return passes(reference, made.run(outputs, inputs))

    first = evaluator((), count=True)
    _, report = convert(source, fmt, recipe, op_block_list=op_block_list, node_block_list=forced)
    able = {x.node for x in report.decisions if x.converts} & set(tops)
    runs += 1
    with np.errstate(all="ignore"):
        emulated = dict(first.run(None, inputs, intermediate=True))
    suspects = _ranked(source, fmt, able, first, values, emulated)
    if passes(reference, [emulated[name] for name in outputs]):
        return _result(source, (), forced, runs, suspects)
    order = [x.node for x in suspects]
    severe = sum(x.score >= 1 for x in suspects)
    failed, size = 0, severe or min(1, len(order))
    while not good(order[:size]):
        if size == len(order):
            raise ValueError("validate refuses even the model whose nodes that could convert are all kept in float32")
        failed, size = size, min(2 * size, len(order))
    kept = _reduced(order[:size], severe, failed, good)
    return _result(source, kept, forced, runs, suspects)


def _reduced(kept: Sequence[str], severe: int, failed: int, good: Callable[[Collection[str]], bool]) -> list[str]:
    """Of a list that passes, what must stay: parts are converted where that passes, the largest first, else halved.

    The first `severe` of them, which are all likely to stay, are parts of one. The first `failed` alone have not passed.
    """
    middle = max(severe, failed)
    parts = [[name] for name in kept[:severe]] + [list(kept[severe:middle]), list(kept[middle:])]
    parts = [part for part in parts if part]
    needed = [False] * len(parts)
    answers = {frozenset(kept[:failed]): False}
    while not all(needed):
        i = max((i for i in range(len(parts)) if not needed[i]), key=lambda j: len(parts[j]))
        others = [name for j, part in enumerate(parts) if j != i for name in part]
        key = frozenset(others)
        if key not in answers:
            answers[key] = good(others)
        if answers[key]:
            del parts[i], needed[i]
        elif len(parts[i]) == 1:
            needed[i] = True
        else:
            half = len(parts[i]) // 2
            parts[i : i + 1] = [parts[i][:half], parts[i][half:]]
            needed[i : i + 1] = [False, False]
    return [name for part in parts for name in part]


def _result(
    model: ModelProto, kept: Sequence[str], forced: Sequence[str], runs: int, suspects: tuple[Suspect, ...]
) -> BlockList:
    both = {*kept, *forced}
    nodes = tuple(x.name for x in model.graph.node if x.name in both)
    return BlockList(nodes, tuple(forced), runs, len(suspects) + len(forced), suspects)


def _validator(validate: Validate | float) -> Validate:
    if callable(validate):
        return lambda wanted, found: bool(validate(wanted, found))
    if isinstance(validate, bool) or not isinstance(validate, (int, float)) or not validate > 0:
        raise TypeError(f"validate must be a function of two lists of arrays or a positive number, got {validate!r}")

    def close(wanted: list[Any], found: list[Any]) -> bool:
        return all(_error(x, y) <= validate for x, y in zip(wanted, found, strict=True))

    return close


def _named(model: ModelProto) -> ModelProto:
    """A model whose nodes have names, no two the same."""
    names: set[str] = set()
    for node in model.graph.node:
        node.name = label(node)
        if node.name in names:
            raise ValueError(f"model has two nodes of the name {node.name!r}; give nodes different names")
        names.add(node.name)
    return model


def _top(name: str, nodes: Collection[str]) -> str | None:
    """The node of the main graph that a node of the evaluator's is, or is inside of."""
    found = [x for x in nodes if name == x or name.startswith(f"{x}/")]
    return max(found, key=len, default=None)


# -- the ranking ----------------------------------------------------------------------------------------------------


def _numbers(value: Any) -> np.ndarray[Any, Any] | None:
    """Values as float64; None if they are no floating-point numbers."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fV" or not value.size:
        return None
    return value.astype(np.float64)


def _error(wanted: Any, found: Any) -> float:
    """The greatest difference, relative to the largest finite magnitude wanted; infinite where one is not a number and the other is."""
    one, other = _numbers(np.asarray(wanted)), _numbers(np.asarray(found))
    if one is None or other is None:
        return 0.0 if np.array_equal(wanted, found) else np.inf
    finite = np.isfinite(one)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True) or not np.isfinite(other[finite]).all():
        return np.inf
    if not finite.any():
        return 0.0
    largest = float(np.max(np.abs(one[finite]))) or 1.0
    return float(np.max(np.abs(one[finite] - other[finite]))) / largest


def _out_of_range(value: Any, fmt: Format) -> int:
    if not isinstance(value, np.ndarray) or value.dtype != np.float32:
        return 0
    _, flags = bits.encode(value, fmt, environment=Environment(), flags="each")
    return int(np.count_nonzero(np.asarray(flags) & Flags.OVERFLOW))


def _ranked(
    model: ModelProto,
    fmt: Format,
    able: Collection[str],
    evaluator: Evaluator,
    values: Mapping[str, Any],
    emulated: Mapping[str, Any],
) -> tuple[Suspect, ...]:
    """The nodes that could convert, worst first."""
    flags = dict.fromkeys(able, Flags(0))
    lost = dict.fromkeys(able, 0.0)
    for name, raised in evaluator.flags_by_node.items():
        top = _top(name, able)
        if top is not None:
            flags[top] |= raised
    for name, counts in evaluator.counts_by_node.items():
        top = _top(name, able)
        if top is not None:
            lost[top] += counts.underflowed / max(counts.results, 1) + counts.swamped / max(counts.additions, 1)
    constants = {x.name: values.get(x.name) for x in model.graph.initializer}
    errors = {
        name: _error(values[name], emulated[name]) for name in values if name in emulated and name not in constants
    }
    beyond = {name: _out_of_range(value, fmt) for name, value in values.items()}
    users: dict[str, list[str]] = {}
    found: dict[str, Suspect] = {}
    for node in reversed(model.graph.node):
        if node.name in able:
            taken = {*filter(None, node.input)}
            for inner in subgraphs(node):
                taken |= {name for x in inner.node for name in x.input if name in values}
            tensors = taken | {*filter(None, node.output)}
            outside = sum(beyond.get(name, 0) for name in tensors)
            before = max((errors.get(name, 0.0) for name in taken), default=0.0)
            after = max((errors.get(name, 0.0) for name in node.output if name), default=0.0)
            more = max(after - before, 0.0) if np.isfinite(after) else float(np.isfinite(before))
            own = float(bool(outside or flags[node.name] & SEVERE)) + min(more, 1.0) / 2 + lost[node.name] / 16
            following = [found[x].score for name in node.output for x in users.get(name, ()) if x in found]
            score = max(own, max(following, default=0.0) / 2)
            share = min(lost[node.name], 2.0)
            found[node.name] = Suspect(node.name, node.op_type, flags[node.name], outside, share, more, score)
        for name in node.input:
            users.setdefault(name, []).append(node.name)
    places = {node.name: i for i, node in enumerate(model.graph.node)}
    return tuple(sorted(found.values(), key=lambda x: (-x.score, places[x.node])))
