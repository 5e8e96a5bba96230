"""Recipes applied to ONNX models: verdicts, groups and casts as `softfloat.recipes.colour` has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

onnx = pytest.importorskip("onnx")

from onnx_graphs import chains, mixed  # noqa: E402
from saved_models import MODELS, drawn, info, made, node, weight  # noqa: E402

from softfloat.onnx.conversion import convert  # noqa: E402
from softfloat.recipes import Graph, Node, Recipe, colour  # noqa: E402


def graph_of(model: Any) -> Graph:
    """The graph of a model of float32 vectors, put together by hand."""
    weights = [x.name for x in model.graph.initializer]
    inputs = [x.name for x in model.graph.input]
    nodes = [Node(x.name, x.op_type, list(x.input), list(x.output)) for x in model.graph.node]
    names = [*weights, *inputs, *(name for x in nodes for name in x.outputs)]
    outputs = [x.name for x in model.graph.output]
    return Graph(nodes, dict.fromkeys(names, "float32"), inputs, outputs, weights)


OPERATORS = ("Exp", "Neg", "Tanh", "Relu", "Add", "Mul", "Max")


@given(chains(), st.data())
@settings(max_examples=60, deadline=None)
def test_verdicts_and_casts_are_those_of_colour(drawn_model: tuple[Any, list[str]], data: st.DataObject) -> None:
    source, kept = drawn_model
    places = data.draw(st.lists(st.integers(0, 3), min_size=len(OPERATORS), max_size=len(OPERATORS)))
    lists = [[x for x, place in zip(OPERATORS, places, strict=True) if place == i] for i in range(3)]
    recipe = Recipe(
        allowlist=lists[0],
        conditional_list=lists[1],
        strict_conditional_list=lists[2],
        non_convertible_exceptions=[(name, "") for name in kept],
    )
    wanted = colour(graph_of(source), recipe)
    model, report = convert(source, "bfloat16", recipe)
    assert not mixed(model)
    assert [(x.node, x.converts, x.reason) for x in report.decisions] == [
        (x.node.name, x.converts, x.reason) for x in wanted.decisions
    ]
    weights = {x.name for x in source.graph.initializer}
    casts = [(x.tensor, x.to) for x in wanted.casts if x.tensor not in weights]
    outputs = {x.name for x in source.graph.output}
    assert sorted((x.result if x.result in outputs else x.tensor, x.to) for x in report.casts) == sorted(casts)


def test_the_recipes_of_the_package() -> None:
    for name in ("basic", "full", "bert", "unet"):
        model, report = convert(MODELS["attention"](), "bfloat16", name)
        assert not mixed(model)
        again, _ = convert(MODELS["attention"](), "bfloat16", getattr(Recipe, name)())
        assert again.SerializeToString() == model.SerializeToString()
        assert report.recipe == "recipe"
    basic = {x.op_type: x.converts for x in convert(MODELS["attention"](), "bfloat16", "basic")[1].decisions}
    assert {x for x, converts in basic.items() if converts} == {"MatMul"}


def test_a_node_that_is_blocked_does_not_convert_its_neighbours() -> None:
    recipe = Recipe(allowlist=["MatMul"], conditional_list=["Add", "Mul"])
    model = made(
        [node("MatMul", "x w", "a"), node("Add", "a v", "b"), node("Mul", "b b", "y")],
        [info("x")],
        [info("y")],
        [weight("w", drawn(4, 4)), weight("v", drawn(4))],
    )
    assert all(x.converts for x in convert(model, "float16", recipe)[1].decisions)
    before = made(
        [node("Add", "x v", "a"), node("MatMul", "a w", "y")],
        [info("x")],
        [info("y")],
        [weight("w", drawn(4, 4)), weight("v", drawn(4))],
    )
    assert not any(x.converts for x in convert(before, "float16", recipe, node_block_list=["y_"])[1].decisions)
    _, report = convert(model, "float16", recipe, node_block_list=["a_"])
    assert {x.node: x.reason for x in report.decisions} == {
        "a_": "its name is blocked",
        "b_": 'conditional_list "Add", but no neighbour converts',
        "y_": 'conditional_list "Mul", but no neighbour converts',
    }


def test_what_has_no_kernel_is_kept_and_says_so() -> None:
    recipe = Recipe(allowlist=["Conv2D", "Relu"])
    reasons = {x.node: x.reason for x in convert(MODELS["convolutional"](), "bfloat16", recipe)[1].decisions}
    assert reasons["c_"].startswith("no kernel for tensor(bfloat16)")
    assert reasons["r_"] == 'allowlist "Relu"'


def test_names_of_scopes_reach_nodes_inside_others() -> None:
    """An If whose name keeps float32 keeps what is in its branches; nodes exported by PyTorch stand in their modules."""
    model = MODELS["branches"]()
    next(x for x in model.graph.node if x.op_type == "If").name = "KEEP_FP32_PRECISION"
    recipe = Recipe(allowlist=["MatMul", "Mul"], non_convertible_exceptions=[(".*KEEP_FP32_PRECISION.*", "")])
    assert not any(x.converts for x in convert(model, "bfloat16", recipe)[1].decisions)
    free = Recipe(allowlist=["MatMul", "Mul"])
    assert {x.op_type for x in convert(model, "bfloat16", free)[1].decisions if x.converts} == {"MatMul", "Mul"}
    exported = MODELS["perceptron"]()
    exported.graph.node[0].metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'encoder', 'linear']")
    inside = Recipe(convertible_exceptions=[("encoder/h_", "")])
    assert [x.node for x in convert(exported, "bfloat16", inside)[1].decisions if x.converts] == ["h_"]


def test_what_branches_return_is_a_neighbour_of_what_they_are_in() -> None:
    recipe = Recipe(allowlist=["Relu", "Neg"], conditional_list=["If"])
    model, report = convert(MODELS["branches"](), "float16", recipe)
    assert not mixed(model)
    assert {x.node for x in report.decisions if x.converts} == {"o_", "q_", "t_"}


def test_depthwise_convolutions_and_nearest_resizing_are_types_of_their_own() -> None:
    kernel = weight("k", drawn(4, 1, 3, 3))
    conv = made([node("Conv", "x k", "y", group=4)], [info("x", (1, 4, 5, 5))], [info("y", (1, 4, 3, 3))], [kernel])
    assert not convert(conv, "float16", Recipe(allowlist=["Conv2D"]))[1].decisions[0].converts
    assert convert(conv, "float16", Recipe(allowlist=["DepthwiseConv2dNative"]))[1].decisions[0].converts
    nearest = Recipe(allowlist=["ResizeNearestNeighbor"])
    assert [x.op_type for x in convert(MODELS["resized"](), "float16", nearest)[1].decisions if x.converts] == []
    model = MODELS["resized"]()
    next(x for x in model.graph.node if x.op_type == "Resize").ClearField("attribute")
    assert [x.op_type for x in convert(model, "float16", nearest)[1].decisions if x.converts] == ["Resize"]


def test_the_environment_names_a_recipe_and_where_lists_are_dumped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOFTFLOAT_BF16_CONVERSION", "basic")
    monkeypatch.setenv("SOFTFLOAT_BF16_DUMP_PATH", str(tmp_path / "used.json"))
    _, report = convert(MODELS["attention"](), "bfloat16")
    assert report.recipe == "recipe"
    assert Recipe.load(tmp_path / "used.json") == Recipe.basic()
    verdicts = json.loads((tmp_path / "used.verdicts.json").read_text())
    assert {x["op_type"] for x in verdicts["verdicts"] if x["verdict"] == "convert"} == {"MatMul"}
    assert convert(MODELS["attention"](), "float16")[1].recipe == "softfloat"


def test_a_recipe_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text('{"allowlist": ["Softmax"]}')
    for given_as in (path, str(path)):
        _, report = convert(MODELS["attention"](), "float16", given_as)
        assert [x.op_type for x in report.decisions if x.converts] == ["Softmax"]
    with pytest.raises(ValueError, match="recipe must be a Recipe, the path of a file"):
        convert(MODELS["attention"](), "float16", str(tmp_path / "missing.json"))
    path.write_text('{"allowlst": []}')
    with pytest.raises(ValueError, match="allowlst"):
        convert(MODELS["attention"](), "float16", path)
    with pytest.raises(TypeError, match="recipe"):
        convert(MODELS["attention"](), "float16", 3)
