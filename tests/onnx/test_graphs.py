"""Whole graphs: any of them is the same calls of `softfloat.bits`, whatever the order and the names of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

onnx = pytest.importorskip("onnx")

from onnx import helper  # noqa: E402 -- after the skip
from onnx_models import kind_of, parsed  # noqa: E402

from softfloat import Environment, Flags, bfloat16, bits, float16  # noqa: E402
from softfloat.onnx import Evaluator  # noqa: E402
from softfloat.onnx.tensors import array_of, codes_of  # noqa: E402

STEPS = {
    "Add": bits.add, "Sub": bits.sub, "Mul": bits.mul, "Div": bits.div, "Max": bits.maximum, "Min": bits.minimum,
    "Sqrt": bits.sqrt, "Exp": bits.exp, "Tanh": bits.tanh,
}  # fmt: skip
UNARY = ("Sqrt", "Exp", "Tanh")


@st.composite
def graphs(draw: Any) -> list[tuple[str, tuple[int, ...]]]:
    """Nodes: an operator, and which of the values before it (two inputs, then nodes) it takes."""
    nodes: list[tuple[str, tuple[int, ...]]] = []
    for number in range(draw(st.integers(1, 8))):
        operator = draw(st.sampled_from(sorted(STEPS)))
        count = 1 if operator in UNARY else 2
        nodes.append((operator, tuple(draw(st.integers(0, 1 + number)) for _ in range(count))))
    return nodes


@settings(max_examples=40, deadline=None)
@given(
    nodes=graphs(),
    fmt=st.sampled_from([float16, bfloat16]),
    rounding=st.sampled_from(["nearest_even", "toward_zero", "toward_positive"]),
    overflow=st.sampled_from(["infinity", "saturate"]),
    codes=st.lists(st.tuples(st.integers(0, 65535), st.integers(0, 65535)), min_size=1, max_size=6),
)
def test_a_graph_is_its_calls(nodes: Any, fmt: Any, rounding: str, overflow: str, codes: Any) -> None:
    x, y = np.array(codes, np.uint16).T.copy()
    environment = Environment(rounding=rounding, overflow=overflow)
    values, raised, labels = [x, y], [], []
    for number, (operator, places) in enumerate(nodes):
        result, flags = STEPS[operator](*(values[i] for i in places), fmt, environment=environment, flags="any")
        values.append(np.asarray(result))
        raised.append(Flags(int(flags)))
        labels.append(f"n{number}")
    names = ["x", "y", *labels]
    made = [
        helper.make_node(op, [names[i] for i in places], [name])
        for name, (op, places) in zip(labels, nodes, strict=True)
    ]
    arrays = {name: array_of(v, fmt) for name, v in zip(("x", "y"), (x, y), strict=True)}
    graph = helper.make_graph(
        made, "g", [kind_of(*item) for item in arrays.items()], [kind_of(name, arrays["x"]) for name in labels]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    evaluator = Evaluator(model, environment)
    for found, wanted in zip(evaluator.run(None, arrays), values[2:], strict=True):
        np.testing.assert_array_equal(codes_of(found, fmt), wanted)
    assert [evaluator.flags_by_node[name] for name in labels] == raised


def test_functions_with_attributes_and_nodes_of_one_name() -> None:
    model = parsed(
        "g (float16[3] x) => (float16[3] y) { [same] a = local.f <slope = 0.5> (x) [same] y = local.f <slope = 0.25> (a) }\n"
        '<domain: "local", opset_import: ["" : 21]>\nf <slope> (x) => (y) { y = LeakyRelu <alpha: float = @slope> (x) }'
    )
    evaluator = Evaluator(model, Environment())
    [y] = evaluator.run(None, {"x": np.array([-8, 0, 1], np.float16)})
    assert y.tolist() == [-1, 0, 1]
    assert len(evaluator.flags_by_node) == 2


def test_a_subgraph_sees_the_values_around_it() -> None:
    model = parsed(
        "g (float16[2] x, bool c) => (float16[2] z) { w = Add(x, x) z = If (c) <then_branch = t () => (float16[2] y) { "
        "u = Mul(w, x) y = If (c) <then_branch = tt () => (float16[2] p) { p = Sub(u, w) }, else_branch = te () => (float16[2] q) { q = Neg(w) }> }, "
        "else_branch = e () => (float16[2] v) { v = Identity(w) }> }"
    )
    evaluator = Evaluator(model, Environment())
    x = np.array([3, 5], np.float16)
    assert evaluator.run(None, {"x": x, "c": np.array(True)})[0].tolist() == [12, 40]
    assert evaluator.run(None, {"x": x, "c": np.array(False)})[0].tolist() == [6, 10]
    assert len(evaluator.nodes) == len(set(evaluator.nodes)) == 7
