"""The recipes "onnxconverter" and "onnxruntime" against the tools they are named after: nodes, types and weights."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx_graphs import described, mixed  # noqa: E402
from saved_models import MODELS, drawn, info, made, node, weight  # noqa: E402

from softfloat.onnx.conversion import convert  # noqa: E402
from softfloat.onnx.scopes import sort  # noqa: E402

ORIGINALS = {"onnxconverter": "onnxconverter_common.float16", "onnxruntime": "onnxruntime.transformers.float16"}


@pytest.fixture(params=ORIGINALS)
def tool(request: pytest.FixtureRequest) -> Iterator[tuple[str, Callable[..., Any]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of clamped weights, among others
        module = pytest.importorskip(ORIGINALS[request.param])
        logging.getLogger(module.__name__).setLevel(logging.ERROR)
        yield request.param, module.convert_float_to_float16


def copied(model: Any) -> Any:
    return onnx.load_model_from_string(model.SerializeToString())


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_nodes_types_and_weights_are_the_originals(tool: tuple[str, Callable[..., Any]], name: str, keep: bool) -> None:
    recipe, original = tool
    model = MODELS[name]()
    before = model.SerializeToString()
    ours, _ = convert(model, "float16", recipe, keep_io_types=keep)
    theirs = original(copied(model), keep_io_types=keep)
    assert model.SerializeToString() == before
    found, wanted = described(ours), described(theirs)
    for key in wanted:
        assert found[key] == wanted[key], key


# -- what is not copied ---------------------------------------------------------------------------------------------


def branch(name: str, *nodes: Any, weights: Sequence[Any] = ()) -> Any:
    return helper.make_graph(list(nodes), name, [], [info(nodes[-1].output[0])], list(weights))


def chosen(one: Any, other: Any, *before: Any) -> Any:
    nodes = [*before, node("If", "choice", "o", then_branch=one, else_branch=other), node("Neg", "o", "y")]
    return made(nodes, [info("x"), info("choice", (), TensorProto.BOOL)], [info("y")])


def quantized() -> Any:
    zero = numpy_helper.from_array(np.array(0, np.uint8), "z")
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")]
    return made(nodes, [info("x")], [info("y")], [weight("s", 0.1), zero], opset=13)


def pair(*nodes: Any, weights: Sequence[Any] = (), outputs: Sequence[str] = ("y",), more: Sequence[Any] = ()) -> Any:
    return made(list(nodes), [info("x"), *more], [info(x) for x in outputs], weights)


BOTH = "onnxconverter onnxruntime"
NOT_COPIED: dict[str, tuple[str, Callable[[], Any]]] = {
    "nodes without names share names of casts": (
        "onnxconverter",
        lambda: pair(node("Exp", "x", "a", ""), node("Neg", "x", "b", ""), node("Add", "a b", "y", "")),
    ),
    "a weight of a kept and a converted node": (
        "onnxconverter",
        lambda: pair(node("Mul", "x w", "a"), node("Max", "a w", "y"), weights=[weight("w", drawn(4))]),
    ),
    "an output that nodes take": (
        "onnxconverter",
        lambda: pair(node("Exp", "x", "y"), node("Mul", "y x", "z"), outputs=["y", "z"]),
    ),
    "two kept nodes that take one tensor": (
        "onnxruntime",
        lambda: pair(node("Exp", "x", "a"), node("Max", "a x", "b"), node("Min", "a x", "c"), node("Mul", "b c", "y")),
    ),
    "casts to float32 in the model": (
        "onnxconverter",
        lambda: pair(
            node("Cast", "i", "a", to=TensorProto.FLOAT),
            node("Mul", "a x", "y"),
            more=[info("i", (2, 4), TensorProto.INT64)],
        ),
    ),
    "ConstantOfShape without a value": (
        "onnxconverter",
        lambda: pair(
            node("ConstantOfShape", "s", "a"),
            node("Add", "a x", "y"),
            weights=[numpy_helper.from_array(np.array([2, 4]), "s")],
        ),
    ),
    "Constant with value_float": (
        BOTH,
        lambda: pair(node("Constant", "", "c", value_float=0.5), node("Mul", "c x", "y")),
    ),
    "a kept node inside a branch": (
        BOTH,
        lambda: chosen(
            branch("one", node("Max", "h x", "q")), branch("other", node("Neg", "h", "t")), node("Exp", "x", "h")
        ),
    ),
    "an input that branches alone take": (
        "onnxconverter",
        lambda: chosen(branch("one", node("Neg", "x", "q")), branch("other", node("Exp", "x", "t"))),
    ),
    "weights of one name in two branches": (
        BOTH,
        lambda: chosen(
            branch("one", node("Add", "x k", "q"), weights=[weight("k", drawn(4))]),
            branch("other", node("Mul", "x k", "t"), weights=[weight("k", drawn(4, seed=1))]),
        ),
    ),
    "inputs that are float32 by the operator's schema": (BOTH, quantized),
    "outputs that are float32 by the operator's schema": (
        BOTH,
        lambda: made(
            [node("LayerNormalization", "x g", "y m")],
            [info("x")],
            [info("y"), info("m", (2, 1))],
            [weight("g", drawn(4))],
        ),
    ),
}
"""What -> whose converter makes an invalid model, and of what."""


@pytest.mark.parametrize("what", NOT_COPIED)
def test_what_the_originals_break_is_sound_here(tool: tuple[str, Callable[..., Any]], what: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    recipe, original = tool
    tools, maker = NOT_COPIED[what]
    model = maker()

    def session(found: Any) -> Any:
        return ort.InferenceSession(found.SerializeToString(), options, providers=["CPUExecutionProvider"])

    if recipe in tools.split():
        with pytest.raises(Exception, match=r"(?s)\[ONNXRuntimeError\]|^$"):  # or an assertion without words
            session(original(copied(model), keep_io_types=True))
    ours, _ = convert(model, "float16", recipe)
    assert not mixed(ours)
    feeds = {"x": drawn(2, 4), "i": np.arange(8).reshape(2, 4), "choice": np.array(True)}
    feeds = {x.name: feeds[x.name] for x in model.graph.input}
    for found, wanted in zip(session(ours).run(None, feeds), session(model).run(None, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-2, atol=2e-2)


def test_outputs_of_kept_nodes_stay_float32() -> None:
    """onnxconverter-common makes them half, whatever keep_io_types says."""
    module = pytest.importorskip(ORIGINALS["onnxconverter"])
    model = pair(node("Exp", "x", "a"), node("Max", "a x", "y"))
    theirs = module.convert_float_to_float16(copied(model), keep_io_types=True)
    ours, _ = convert(model, "float16", "onnxconverter")
    assert theirs.graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT16
    assert ours.graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
    assert [x.op_type for x in ours.graph.node] == ["Cast", "Exp", "Cast", "Max"]


# -- more models ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocked", [["MatMul"], ["Softmax", "Transpose"], ["ReduceMean", "Sqrt"]])
def test_blocked_types_are_the_callers(tool: tuple[str, Callable[..., Any]], blocked: list[str]) -> None:
    recipe, original = tool
    for name in ("attention", "blocked_middle", "perceptron", "convolutional"):
        model = MODELS[name]()
        if model.graph.node[-1].op_type in blocked and recipe == "onnxconverter":
            continue  # see above
        theirs = original(copied(model), keep_io_types=True, op_block_list=blocked)
        ours, _ = convert(model, "float16", recipe, op_block_list=blocked)
        assert described(ours) == described(theirs)


def exported() -> Iterator[Any]:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    from torch import nn

    torch.manual_seed(0)
    residual = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
        nn.LogSoftmax(1),
    )
    block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    recurrent = nn.GRU(4, 5, batch_first=True)
    for module, shape in ((residual, (2, 1, 8, 8)), (block, (2, 3, 8)), (recurrent, (2, 3, 4))):
        program = torch.onnx.export(module.eval(), (torch.randn(shape),), dynamo=True, verbose=False)
        yield onnx.load_model_from_string(program.model_proto.SerializeToString())


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
def test_nets_exported_by_pytorch() -> None:
    for model in exported():
        for recipe, name in ORIGINALS.items():
            for keep in (True, False):
                ours, _ = convert(model, "float16", recipe, keep_io_types=keep)
                assert not mixed(ours)
                theirs = pytest.importorskip(name).convert_float_to_float16(copied(model), keep_io_types=keep)
                assert described(ours) == described(theirs)


# -- ONNX's own models ----------------------------------------------------------------------------------------------


def is_broken(model: Any) -> bool:
    """Whether a converted model, sorted, has types that no runtime takes."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        sort(model.graph)
        described(model)
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # of several classes that have no common one
        return "NOT_IMPLEMENTED" not in str(error)
    return bool(mixed(model))


def is_known(source: Any, theirs: Any, keep: bool) -> bool:
    """Whether a difference is one of those that are not copied though runtimes take what comes of them."""
    text = onnx.printer.to_text(source)
    kept = keep and any(x.type.tensor_type.elem_type == TensorProto.FLOAT16 for x in theirs.graph.output)
    return "value_float" in text or "optional(" in text or "seq(" in text or kept


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
def test_models_of_onnxs_backend_tests(tool: tuple[str, Callable[..., Any]]) -> None:
    import onnx.backend.test.case.node as cases

    recipe, original = tool
    equal, refused = 0, Counter[str]()
    known = ("already", "cannot be cast", "is an input or a weight")
    for case in cases.collect_testcases():
        model = case.model
        for i, x in enumerate(model.graph.node):
            x.name = x.name or f"node{i}"
        for keep in (True, False):
            try:
                ours, _ = convert(model, "float16", recipe, keep_io_types=keep)
            except ValueError as error:
                refused[next((x for x in known if x in str(error)), f"{case.name}: {error}")] += 1
                continue
            try:
                theirs = original(copied(model), keep_io_types=keep)
            except Exception:  # as above
                continue
            if is_broken(theirs):
                continue
            same = described(ours) == described(theirs)
            assert same or is_known(model, theirs, keep), (case.name, keep)
            equal += same
    assert equal > {"onnxconverter": 2250, "onnxruntime": 3100}[recipe]
    assert set(refused) <= set(known), refused
    assert refused["cannot be cast"] + refused["is an input or a weight"] < 50
