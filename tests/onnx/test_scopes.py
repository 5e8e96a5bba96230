"""Types inside subgraphs, where ONNX's own inference leaves none, and orders that run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from saved_models import MODELS, info, made, node  # noqa: E402

from softfloat.onnx.scopes import scopes, sort, type_of  # noqa: E402


def types(model: Any) -> dict[str, str]:
    return {name: kind for scope in scopes(model).walk() for name, kind in scope.types.items()}


def test_types_inside_branches() -> None:
    loop = helper.make_graph(
        [node("Identity", "go", "on"), node("Neg", "state", "next"), node("Shape", "next", "seen")],
        "loop",
        [info("i", (), TensorProto.INT64), info("go", (), TensorProto.BOOL), onnx.ValueInfoProto(name="state")],
        [info("on", (), TensorProto.BOOL), info("next"), info("seen", (2,), TensorProto.INT64)],
    )
    inner = [
        node("Constant", "", "n", value_int=2),
        node("Constant", "", "half", value_float=0.5),
        node("Constant", "", "words", value_strings=["a"]),
        node("Shape", "x", "shape"),
        node("ConstantOfShape", "shape", "zeros"),
        node("RandomNormal", "", "random", shape=[2, 4]),
        node("Cast", "n", "wide", to=TensorProto.DOUBLE),
        node("Equal", "n n", "yes"),
        node("Loop", "n yes zeros", "last all", body=loop),
        node("SequenceConstruct", "zeros random", "both"),
        node("SequenceAt", "both n", "one"),
        node("Sum", "last one random", "t"),
    ]
    branch = helper.make_graph(inner, "then", [], [info("t")])
    other = helper.make_graph([node("Neg", "x", "e")], "else", [], [info("e")])
    model = made(
        [node("If", "choice", "y", then_branch=branch, else_branch=other)],
        [info("x"), info("choice", (), TensorProto.BOOL)],
        [info("y")],
    )
    found = types(model)
    floats = ("x", "y", "t", "e", "half", "zeros", "random", "last", "one", "state", "next")
    assert {found[x] for x in floats} == {"tensor(float)"}
    assert {found[x] for x in ("n", "shape", "i", "seen", "all")} == {"tensor(int64)"}
    others = {"wide": "tensor(double)", "words": "tensor(string)", "yes": "tensor(bool)", "both": "seq(tensor(float))"}
    assert {name: found[name] for name in others} == others


@pytest.mark.parametrize("name", MODELS)
def test_types_where_inference_has_them_are_its_own(name: str) -> None:
    model = MODELS[name]()
    inferred = onnx.shape_inference.infer_shapes(model)
    found = scopes(model).types
    for value in inferred.graph.value_info:
        assert found[value.name] == type_of(value.type)


@pytest.mark.parametrize("name", MODELS)
def test_sorting(name: str) -> None:
    """Sorted models stay as they are; reversed ones run again."""
    model = MODELS[name]()
    before = model.SerializeToString(deterministic=True)
    sort(model.graph)
    assert model.SerializeToString(deterministic=True) == before
    reverse = list(model.graph.node)[::-1]
    model.graph.ClearField("node")
    model.graph.node.extend(reverse)
    sort(model.graph)
    onnx.checker.check_model(model, full_check=True)
    assert sorted(x.name for x in model.graph.node) == sorted(x.name for x in reverse)


def test_a_circle_is_refused() -> None:
    graph = helper.make_graph([node("Neg", "b", "a"), node("Neg", "a", "b")], "circle", [], [])
    with pytest.raises(ValueError, match="nodes that wait for one another, 'a_' among them"):
        sort(graph)


def test_numbers_of_other_kinds_have_types_too() -> None:
    tensor = numpy_helper.from_array(np.array([1, 2], np.int8), "k")
    assert (
        types(made([node("Identity", "k", "y")], [], [info("y", (2,), TensorProto.INT8)], [tensor]))["y"]
        == "tensor(int8)"
    )
