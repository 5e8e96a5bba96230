"""Conversion to half and bfloat16: types, weights, casts and reasons, the transpiler of Paddle, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

onnx = pytest.importorskip("onnx")
ml_dtypes = pytest.importorskip("ml_dtypes")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx_graphs import chains, mixed  # noqa: E402
from saved_models import MODELS, drawn, info, made, node, weight  # noqa: E402

from softfloat.onnx.conversion import convert  # noqa: E402
from softfloat.onnx.rewriting import KernelError  # noqa: E402
from softfloat.onnx.scopes import opsets  # noqa: E402

NARROW = {"float16": "tensor(float16)", "bfloat16": "tensor(bfloat16)"}
DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def copied(model: Any) -> Any:
    return onnx.load_model_from_string(model.SerializeToString())


def operators(model: Any) -> list[str]:
    return [x.op_type for x in model.graph.node]


def weights(model: Any) -> dict[str, np.ndarray[Any, Any]]:
    return {x.name: numpy_helper.to_array(x) for x in model.graph.initializer}


@pytest.mark.parametrize("recipe", [None, "paddle", "onnxconverter", "onnxruntime"])
@pytest.mark.parametrize("name", MODELS)
def test_every_edge_has_one_type(name: str, recipe: str | None) -> None:
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    for keep in (True, False):
        model, report = convert(MODELS[name](), "float16", recipe, keep_io_types=keep)
        assert not mixed(model)
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        kinds = {x.type.tensor_type.elem_type for x in (*model.graph.input, *model.graph.output)}
        assert (TensorProto.FLOAT in kinds) == keep
        assert (TensorProto.FLOAT16 in kinds) != keep
        for cast in report.casts:
            assert cast.reason
            assert {cast.source, cast.to} == {"float16", "float32"}


@pytest.mark.parametrize("name", MODELS)
def test_bfloat16(name: str) -> None:
    model, report = convert(MODELS[name](), "bfloat16")
    assert not mixed(model)
    assert report.to == "bfloat16"
    lacking = {x.op_type for x in report.kept}
    assert lacking == {"convolutional": {"Conv", "MaxPool", "GlobalAveragePool"}, "resized": {"Conv"}}.get(
        name, lacking & {"CumSum"}
    )
    for row in report.kept:
        if row.op_type == "Conv":
            assert row.reason.endswith("; operator set 22 has one")


@pytest.mark.parametrize("name", MODELS)
def test_converting_changes_no_more_than_casts(name: str) -> None:
    source = MODELS[name]()
    model, _ = convert(source)
    assert [x for x in operators(model) if x != "Cast"] == operators(source)


@pytest.mark.parametrize("to", NARROW)
def test_weights_are_rounded_to_nearest_even(to: str) -> None:
    source = weights(MODELS["perceptron"]())
    model, report = convert(MODELS["perceptron"](), to)
    for name, array in weights(model).items():
        with np.errstate(over="ignore"):
            wanted = source[name].astype(DTYPES[to])
        assert array.dtype == wanted.dtype
        assert array.tobytes() == wanted.tobytes()
    assert {x.name for x in report.weights} == {"w0", "b0", "w1"}


def test_what_became_of_weights_is_counted() -> None:
    source = weights(MODELS["perceptron"]())
    _, report = convert(MODELS["perceptron"](), "float16")
    for row in report.weights:
        given = source[row.name].astype(np.float64)
        with np.errstate(over="ignore"):
            rounded = source[row.name].astype(np.float16).astype(np.float64)
        finite = np.isfinite(given)
        assert row.size == given.size
        assert row.overflow == np.count_nonzero(finite & np.isinf(rounded))
        assert row.zero == np.count_nonzero((given != 0) & (rounded == 0))
        assert row.subnormal == np.count_nonzero((rounded != 0) & (np.abs(rounded) < 2.0**-14))
        assert row.underflow == np.count_nonzero((np.abs(given) < 2.0**-14) & (given != rounded))
        assert row.inexact == np.count_nonzero(finite & (given != rounded))
        assert row.clamped == 0
    extreme = next(x for x in report.weights if x.name == "w0")
    assert (extreme.overflow, extreme.zero, extreme.subnormal) == (2, 2, 4)
    assert extreme.changed
    assert not next(x for x in report.weights if x.name == "w1").changed


def test_clamps_are_those_of_the_recipe_or_the_callers() -> None:
    def codes(**options: Any) -> list[int]:
        model, report = convert(MODELS["perceptron"](), **options)
        name = "w0.fp16" if options.get("recipe") == "paddle" else "w0"
        clamped.append(next(x for x in report.weights if x.name == "w0").clamped)
        return [int(x) for x in weights(model)[name].view(np.uint16).flat[:12]]

    clamped: list[int] = []
    nearest = [0x0000, 0x8000, 0x0001, 0x0001, 0x0002, 0x0003, 0x70E2, 0x74E2, 0x7BFF, 0x7C00, 0xFC00, 0x7C00]
    assert codes() == nearest
    assert codes(recipe="paddle") == nearest
    assert codes(recipe="onnxconverter", clamp=(0, np.inf)) == nearest
    common = [0x0002, 0x8002, 0x0002, 0x0002, 0x0002, 0x0003, 0x70E2, 0x70E2, 0x70E2, 0x70E2, 0xF0E2, 0x7C00]
    assert codes(recipe="onnxconverter") == codes(clamp=(1e-7, 1e4)) == common
    runtime = [0x0001, 0x8001, 0x0001, 0x0001, 0x0002, 0x0003, 0x70E2, 0x74E2, 0x7BFF, 0x7BFF, 0xFBFF, 0x7C00]
    assert codes(recipe="onnxruntime") == runtime
    assert clamped[:3] == [0, 0, 0]
    assert clamped[3:] == [8, 8, 6]


def test_a_weight_of_both_kinds_of_nodes_has_both_types() -> None:
    model, report = convert(MODELS["shared_weight"](), node_block_list=["b_"])
    by_name = {x.name: x for x in model.graph.node}
    assert by_name["a_"].input[1] == "w_float16"
    assert by_name["b_"].input[1] == "w"
    found = weights(model)
    assert found["w"].tobytes() == weights(MODELS["shared_weight"]())["w"].tobytes()
    assert found["w_float16"].dtype == np.float16
    assert [x.name for x in report.weights] == ["w"]
    assert [(x.tensor, x.to) for x in report.casts] == [
        ("x", "float16"),
        ("a", "float32"),
        ("b", "float16"),
        ("y_float16", "float32"),
    ]
    assert report.casts[1].reason == "MatMul 'a_' makes float16, and MatMul 'b_' is kept: its name is blocked"


def test_a_constant_of_both_kinds_of_nodes_is_two() -> None:
    model, _ = convert(MODELS["constants"](), op_block_list=["Sub"])
    halves = [x for x in model.graph.node if x.op_type == "Constant" and x.output[0].startswith("half")]
    assert sorted(x.attribute[0].t.data_type for x in halves) == [TensorProto.FLOAT, TensorProto.FLOAT16]
    scalar = made(
        [helper.make_node("Constant", [], ["c"], value_float=0.1), node("Add", "x c", "y")], [info("x")], [info("y")]
    )
    converted, report = convert(scalar)
    constant = next(x for x in converted.graph.node if x.op_type == "Constant").attribute[0]
    assert numpy_helper.to_array(constant.t) == np.float16(0.1)
    assert [(x.name, x.inexact) for x in report.weights] == [("c", 1)]


def test_inputs_and_outputs_by_name() -> None:
    model, _ = convert(MODELS["two_kinds"](), keep_io_types=["y"])
    kinds = {x.name: x.type.tensor_type.elem_type for x in (*model.graph.input, *model.graph.output)}
    assert kinds == {
        "i": TensorProto.INT64,
        "x": TensorProto.FLOAT16,
        "y": TensorProto.FLOAT,
        "z": TensorProto.INT64,
    }


def test_what_is_inside_a_blocked_node_stays() -> None:
    model, report = convert(MODELS["branches"](), op_block_list=["If"])
    reasons = {x.node: x.reason for x in report.decisions if not x.converts}
    assert reasons == {
        "o_": "If is blocked",
        "p_": "it is inside 'o_', which is kept",
        "q_": "it is inside 'o_', which is kept",
        "r_": "it is inside 'o_', which is kept",
        "t_": "it is inside 'o_', which is kept",
    }
    assert weights(model)["w"].dtype == np.float32
    assert not mixed(model)
    inner, _ = convert(MODELS["branches"](), node_block_list=["p_"])
    branch = next(x for x in inner.graph.node if x.op_type == "If").attribute
    kinds = {x.name: [y.op_type for y in x.g.node] for x in branch}
    assert kinds["then_branch"] == ["Cast", "MatMul", "Cast", "Relu"]
    assert kinds["else_branch"] == ["Mul", "Neg"]


def test_operators_without_a_kernel_stay_and_the_report_lists_what_exists() -> None:
    boxes = made(
        [node("Exp", "b", "e"), node("NonMaxSuppression", "e s", "k"), node("Neg", "e", "y")],
        [info("b", (1, 3, 4)), info("s", (1, 1, 3))],
        [info("k", ("n", 3), TensorProto.INT64), info("y", (1, 3, 4))],
    )
    model, report = convert(boxes)
    assert [(x.node, x.reason) for x in report.kept] == [
        ("k_", "no kernel for tensor(float16); there are kernels for tensor(float)")
    ]
    assert not mixed(model)
    taken = next(x for x in model.graph.node if x.op_type == "NonMaxSuppression").input
    assert taken[1] == "s"  # the input itself, which has not been rounded


@pytest.mark.parametrize("to", NARROW)
def test_layer_normalizations_mean_is_of_the_type_of_its_stage(to: str) -> None:
    model = made(
        [node("LayerNormalization", "x g", "n m"), node("Add", "n m", "y")],
        [info("x")],
        [info("y"), info("m", (2, 1))],
        [weight("g", drawn(4))],
    )
    converted, report = convert(model, to)
    assert not mixed(converted)
    assert next(x for x in converted.graph.node if x.op_type == "LayerNormalization").output[1] == "m"
    assert [(x.tensor, x.to) for x in report.casts] == [("x", to), ("m", to), (f"y_{to}", "float32")]


def test_nodes_that_look_at_shapes_need_no_cast() -> None:
    model = made([node("Shape", "x", "s")], [info("x")], [info("s", (2,), TensorProto.INT64)])
    assert operators(convert(model)[0]) == ["Shape"]
    assert operators(convert(model, recipe="onnxruntime")[0]) == ["Cast", "Shape"]


@pytest.mark.parametrize("keep", [True, False])
def test_a_node_of_the_other_kind_that_takes_an_output_takes_it_as_it_is_returned(keep: bool) -> None:
    model = made(
        [node("Exp", "x", "a"), node("Neg", "a", "b"), node("Neg", "b", "c"), node("Neg", "b", "d")],
        [info("x")],
        [info("a"), info("b"), info("c"), info("d")],
    )
    converted, report = convert(model, node_block_list=["b_", "d_"], keep_io_types=keep)
    assert not mixed(converted)
    taken = {x.name: x.input[0] for x in converted.graph.node}
    assert taken["b_"] == ("a" if keep else "a_float32")
    assert taken["c_"] == ("b_float16" if keep else "b")
    assert taken["d_"] == ("b" if keep else "b_float32")
    assert len(report.casts) == (4 if keep else 3)


def test_models_without_onnxs_own_operators_get_them_for_casts() -> None:
    graph = helper.make_graph(
        [helper.make_node("Binarizer", ["x"], ["y"], "z", domain="ai.onnx.ml")], "g", [info("x")], [info("y")]
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 1)], ir_version=10)
    converted, _ = convert(source, keep_io_types=False)
    assert operators(converted) == ["Cast", "Binarizer", "Cast"]
    assert opsets(converted)[""] >= 13


def test_the_report_as_text_and_as_html() -> None:
    _, report = convert(MODELS["perceptron"](), node_block_list=["a_"])
    text, page = str(report), report._repr_html_()
    assert text.splitlines()[0] == "softfloat: 3 of 4 nodes in float16, 3 weights converted, 4 casts"
    for words in ("kept in float32", "its name is blocked", "weights out of range", "w0", "casts"):
        assert words in text
        assert words in page
    assert "w1" not in text  # all of it stays in range
    assert "&#x27;a_&#x27;" in page
    assert "\x1b" not in text


# -- Paddle ---------------------------------------------------------------------------------------------------------


def test_the_four_modifications_of_paddles_transpiler() -> None:
    source = MODELS["convolutional"]()
    model, report = convert(source, recipe="paddle")
    assert operators(model) == ["Cast", *operators(source), "Cast"]
    first, last = model.graph.node[0], model.graph.node[-1]
    assert (first.input[0], first.output[0]) == ("x", "x.fp16")
    assert (last.input[0], last.output[0]) == ("y.fp16", "y")
    found = weights(model)
    assert {name for name, x in found.items() if x.dtype == np.float32} == {"g", "b", "m", "v"}
    assert {name for name, x in found.items() if x.dtype == np.float16} == {"k.fp16", "w.fp16", "z.fp16"}
    assert found["k.fp16"].tobytes() == weights(source)["k"].astype(np.float16).tobytes()
    assert all(x.converts for x in report.decisions)
    assert [x.reason for x in report.casts] == ["input 'x' stays float32", "output 'y' stays float32"]


def test_paddle_refuses_operators_without_a_kernel() -> None:
    boxes = made(
        [node("NonMaxSuppression", "b s", "k")],
        [info("b", (1, 3, 4)), info("s", (1, 1, 3))],
        [info("k", ("n", 3), TensorProto.INT64)],
    )
    lists = r"no kernel for tensor\(float16\); there are kernels for tensor\(float\)"
    with pytest.raises(KernelError, match=f"NonMaxSuppression 'k_' cannot compute in float16: {lists}"):
        convert(boxes, recipe="paddle")
    old = made(
        [node("BatchNormalization", "x g g g g", "y")],
        [info("x", (1, 4))],
        [info("y", (1, 4))],
        [weight("g", drawn(4))],
        opset=13,
    )
    with pytest.raises(KernelError, match=r"BatchNormalization 'y_' .* no kernel that takes inputs"):
        convert(old, recipe="paddle")
    assert convert(old)[1].decisions[0].converts


def test_paddle_drops_weights_that_nothing_uses() -> None:
    model = MODELS["shared_weight"]()
    model.graph.initializer.append(weight("unused", drawn(3)))
    assert set(weights(convert(model, recipe="paddle")[0])) == {"w.fp16"}
    assert set(weights(convert(model)[0])) == {"w", "unused"}


# -- models of other shapes -----------------------------------------------------------------------------------------


def test_functions_are_inlined() -> None:
    opset = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "Twice", ["a"], ["b"], [node("Add", "a a", "b")], opset[:1])
    graph = helper.make_graph([helper.make_node("Twice", ["x"], ["y"], domain="own")], "g", [info("x")], [info("y")])
    model, _ = convert(helper.make_model(graph, functions=[function], opset_imports=opset, ir_version=10))
    assert operators(model) == ["Cast", "Add", "Cast"]


@pytest.mark.parametrize("recipe", [None, "paddle", "onnxconverter", "onnxruntime", "full"])
def test_weights_that_are_inputs_as_in_old_models(recipe: str | None) -> None:
    model = MODELS["shared_weight"]()
    model.ir_version, model.opset_import[0].version = 3, 8
    model.graph.input.append(info("w", (4, 4)))
    for keep in (True, False):
        for kept in ([], ["b_"]):
            if recipe == "paddle" and kept:
                continue
            converted, _ = convert(model, "float16", recipe, keep_io_types=keep, node_block_list=kept)
            assert not mixed(converted)
            kinds = {x.name: x.type.tensor_type.elem_type for x in converted.graph.input}
            assert {x.name: x.data_type for x in converted.graph.initializer}.items() <= kinds.items()


def test_models_that_convert_already_are_refused() -> None:
    once, _ = convert(MODELS["perceptron"]())
    with pytest.raises(ValueError, match=r"model has '\w+' of type tensor\(float16\) already"):
        convert(once)


def test_sequences_stay_float32_and_recipes_of_originals_convert_them() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 16]>
        picked (float[2] x) => (float[2] y) {
            a = Exp(x)
            s = SequenceConstruct(a, a)
            e = Optional <type: type_proto = seq(float[2])> ()
            z = Constant <value: tensor = int64 {0}> ()
            b = SequenceAt(s, z)
            y = Neg(b)
        }"""
    source = onnx.parser.parse_model(text)
    model, report = convert(source)
    assert not mixed(model)
    assert {x.op_type for x in report.kept} == {"SequenceConstruct", "Optional", "SequenceAt"}
    assert report.kept[0].reason == "'s' is a seq(tensor(float)), which cannot be cast"
    other, all_of_it = convert(source, recipe="onnxruntime")
    assert not mixed(other)
    assert not all_of_it.kept
    kind = next(x for x in other.graph.node if x.op_type == "Optional").attribute[0].tp
    assert kind.sequence_type.elem_type.tensor_type.elem_type == TensorProto.FLOAT16


@pytest.mark.parametrize("keep", [True, False])
def test_sequences_at_the_ends_of_a_model_stay_what_they_are(keep: bool) -> None:
    text = """
        <ir_version: 8, opset_import: ["": 16]>
        ends (seq(float[2]) s) => (seq(float[2]) r, float[2] y) {
            z = Constant <value: tensor = int64 {0}> ()
            a = SequenceAt(s, z)
            y = Exp(a)
            r = SequenceConstruct(y, y)
        }"""
    model, report = convert(onnx.parser.parse_model(text), keep_io_types=keep)
    assert not mixed(model)
    assert [x.op_type for x in report.decisions if x.converts] == ["Exp"]
    kinds = [
        x.type.sequence_type.elem_type.tensor_type.elem_type for x in (model.graph.input[0], model.graph.output[0])
    ]
    assert kinds == [TensorProto.FLOAT, TensorProto.FLOAT]


def test_attributes_that_name_a_type() -> None:
    model = made(
        [
            node("Cast", "i", "f", to=TensorProto.FLOAT),
            node("RandomNormal", "", "r", shape=[2, 4]),
            node("ConstantOfShape", "s", "z"),
            node("EyeLike", "i", "e", dtype=TensorProto.FLOAT),
            node("Sum", "f r z e", "y"),
        ],
        [info("i", (2, 4), TensorProto.INT64)],
        [info("y")],
        [numpy_helper.from_array(np.array([2, 4]), "s")],
    )
    for recipe in (None, "onnxruntime", "onnxconverter"):
        converted, _ = convert(model, "float16", recipe)
        assert not mixed(converted)
        assert operators(converted).count("Cast") == 2
    kept, report = convert(model, op_block_list=["Cast", "RandomNormal"])
    assert not mixed(kept)
    assert [x.node for x in report.kept] == ["f_", "r_"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"to": "float8_e4m3fn"}, ValueError, "to must be float16 or bfloat16"),
        ({"to": "float32"}, ValueError, "to must be float16 or bfloat16"),
        ({"to": "bfloat16", "recipe": "onnxruntime"}, ValueError, "to must be float16 with recipe 'onnxruntime'"),
        ({"recipe": "tensorrt"}, ValueError, "recipe must be .*'onnxconverter'.*got 'tensorrt'"),
        ({"keep_io_types": ["z"]}, ValueError, "keep_io_types names 'z'"),
        ({"keep_io_types": "x"}, TypeError, "keep_io_types must be a collection"),
        ({"node_block_list": ["nobody"]}, ValueError, "node_block_list names 'nobody'"),
        ({"op_block_list": "Conv"}, TypeError, "op_block_list must be a collection"),
        ({"op_block_list": [1]}, TypeError, "op_block_list must be str"),
        ({"clamp": 1}, TypeError, "clamp must be two numbers"),
        ({"clamp": (2, 1)}, ValueError, "clamp must be two magnitudes"),
    ],
)
def test_arguments_that_are_refused(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        convert(MODELS["perceptron"](), **options)


# -- laws -----------------------------------------------------------------------------------------------------------


@given(chains(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_cast_for_each_tensor_that_crosses_and_no_other(drawn_model: tuple[Any, list[str]], keep: bool) -> None:
    source, kept = drawn_model
    model, report = convert(source, node_block_list=kept, keep_io_types=keep)
    assert not mixed(model)
    low = {x.output[0]: x.name not in kept for x in source.graph.node} | {"x": not keep}
    wanted = set()
    for taker in source.graph.node:
        wanted |= {(x, taker.name not in kept) for x in taker.input if x in low and low[x] != (taker.name not in kept)}
    wanted |= {(x.name, not keep) for x in source.graph.output if low[x.name] == keep}
    assert len(report.casts) == len(wanted)
    assert operators(model).count("Cast") == len(wanted)
    assert [x.converts for x in report.decisions] == [x.name not in kept for x in source.graph.node]


@given(chains())
@settings(max_examples=30, deadline=None)
def test_what_is_kept_computes_as_before(drawn_model: tuple[Any, list[str]]) -> None:
    """With every node kept nothing changes but names that nobody sees."""
    source, _ = drawn_model
    model, report = convert(source, node_block_list=[x.name for x in source.graph.node])
    assert [x.SerializeToString() for x in model.graph.node] == [x.SerializeToString() for x in source.graph.node]
    assert [x.SerializeToString() for x in model.graph.initializer] == [
        x.SerializeToString() for x in source.graph.initializer
    ]
    assert not report.casts
    assert not report.weights
