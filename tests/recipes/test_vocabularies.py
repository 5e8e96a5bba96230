"""One operation's names in three vocabularies, held against the vocabularies themselves where their packages are installed."""

from __future__ import annotations

from itertools import chain

import pytest

from softfloat.recipes import Graph, Node, Recipe, aliases, clauses, colour
from softfloat.recipes.lists import LISTS
from softfloat.recipes.vocabularies import BOTH, OTHERS, VOCABULARIES, vocabulary_of


def names(vocabulary: str) -> set[str]:
    listed = chain.from_iterable(alias.names[vocabulary] for alias in aliases())
    prefix = "aten." if vocabulary == "aten" else ""
    return {x.partition("+")[0] for x in listed} | {prefix + x for x in OTHERS[vocabulary].split()}


def test_onnx_names_are_onnxs_and_all_of_them() -> None:
    defs = pytest.importorskip("onnx.defs")
    ever = {x.name for x in defs.get_all_schemas_with_history() if x.domain == ""}
    younger = {
        "BitCast",
        "CausalConvWithState",
        "CumProd",
        "LinearAttention",
        "SwiGLU",
    }  # than the oldest ONNX that is served
    assert names("onnx") - younger <= ever
    assert {x.name for x in defs.get_all_schemas() if x.domain == ""} <= names("onnx")


def test_aten_names_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    younger = {"aten._fused_rms_norm"}  # than the oldest PyTorch that is served
    assert not [x for x in names("aten") - younger if not hasattr(torch.ops.aten, x.removeprefix("aten."))]


def test_no_name_is_of_two_kinds_unless_ranks_or_shape_tell_them_apart() -> None:
    for vocabulary in VOCABULARIES:
        seen: dict[str, list[tuple[int, ...]]] = {}
        for alias in aliases():
            for name in alias.names[vocabulary]:
                seen.setdefault(name, []).append(alias.ranks)
        for name, ranks in seen.items():
            kind = (vocabulary, name.partition("+")[0])
            apart = all(ranks) and len({x for each in ranks for x in each}) == sum(map(len, ranks))
            assert len(ranks) == 1 or apart or kind in BOTH or (vocabulary, name) == ("onnx", "MatMul"), name


def test_types_of_all_lists_have_a_kind() -> None:
    """So that a mistyped name in them shows."""
    kinds = {name for alias in aliases() for name in alias.names["tensorflow"]}
    for name in LISTS:
        recipe = getattr(Recipe, name)()
        assert {*recipe.allowlist, *recipe.conditional_list, *recipe.strict_conditional_list} <= kinds


@pytest.mark.parametrize(
    ("listed", "op_type", "vocabulary", "options", "named"),
    [
        ("MatMul", "Gemm", "onnx", {}, True),
        ("MatMul", "aten.addmm", "aten", {}, True),
        ("BatchMatMulV2", "MatMul", "onnx", {}, True),
        ("BatchMatMulV2", "Gemm", "onnx", {}, False),
        ("Conv2D", "Conv", "onnx", {}, True),
        ("Conv2D", "Conv", "onnx", {"rank": 3}, True),
        ("Conv2D", "Conv", "onnx", {"rank": 5}, False),
        ("Conv3D", "Conv", "onnx", {"rank": 5}, True),
        ("Conv3D", "Conv", "onnx", {}, False),
        ("Conv2D", "Conv", "onnx", {"variant": "depthwise"}, False),
        ("DepthwiseConv2dNative", "Conv", "onnx", {"variant": "depthwise"}, True),
        ("Conv2DBackpropInput", "aten.convolution", "aten", {"variant": "transposed"}, True),
        ("Conv2D", "aten.convolution", "aten", {"variant": "transposed"}, False),
        ("Conv2DBackpropFilter", "aten.convolution_backward", "aten", {"variant": "filter"}, True),
        ("Conv2D", "Conv", "onnx", {"variant": "unheard"}, True),
        ("Conv+depthwise", "Conv", "onnx", {"variant": "depthwise"}, True),
        ("Conv+depthwise", "Conv", "onnx", {}, False),
        ("Conv", "Conv", "onnx", {"variant": "depthwise"}, True),
        ("Maximum", "Max", "onnx", {}, True),
        ("Max", "Max", "onnx", {}, False),
        ("Max", "ReduceMax", "onnx", {}, True),
        ("AddN", "Sum", "onnx", {}, True),
        ("Sum", "Sum", "onnx", {}, False),
        ("Sum", "aten.sum", "aten", {}, True),
        ("Add", "AddV2", "tensorflow", {}, False),
        ("AddV2", "Add", "onnx", {}, True),
        ("BiasAdd", "Add", "onnx", {}, False),
        ("Gemm", "Gemm", "onnx", {}, True),
        ("Gemm", "MatMul", "onnx", {}, False),
        ("Gemm", "aten.mm", "aten", {}, True),
        ("Gemm", "MatMul", "tensorflow", {}, True),
        ("aten.mm", "aten.addmm", "aten", {}, False),
        ("aten.mm", "Gemm", "onnx", {}, True),
        ("aten.convolution", "aten.convolution", "aten", {"variant": "depthwise"}, True),
        ("ReluGrad", "aten.threshold_backward", "aten", {}, True),
    ],
)
def test_lists_speak_of_graphs_in_other_vocabularies(
    listed: str, op_type: str, vocabulary: str, options: dict[str, object], named: bool
) -> None:
    node = Node("n", op_type, ["x"], ["y"], **options)  # type: ignore[arg-type]
    graph = Graph([node], {"x": "float32", "y": "float32"}, ["x"], ["y"], vocabulary=vocabulary)
    assert bool(colour(graph, Recipe([listed])).converted) == named


def test_a_recipe_in_onnxs_words_takes_them_literally() -> None:
    graph = Graph([Node("n", "Gemm", ["x"], ["y"])], {"x": "float32", "y": "float32"}, ["x"], ["y"])
    assert colour(graph, Recipe(["MatMul"])).converted
    assert not colour(graph, Recipe(["MatMul"], vocabulary="onnx")).converted


def test_extra_types_are_the_graphs_own() -> None:
    graph = Graph([Node("n", "my.Op", ["x"], ["y"])], {"x": "float32", "y": "float32"}, ["x"], ["y"])
    assert vocabulary_of("my.Op", "onnx") is None
    assert colour(graph, Recipe(["my.Op"], extra_types=["my.Op"])).converted
    assert not colour(graph, Recipe.full()).converted


def test_a_vocabulary_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="vocabulary must be one of 'tensorflow', 'onnx', 'aten', got 'jax'"):
        clauses("MatMul", "jax")
