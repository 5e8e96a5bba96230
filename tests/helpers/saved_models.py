"""Small float32 models for converters: what nets are made of, what converters stumble over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

__all__ = ["MODELS", "info", "made", "node", "weight"]

Maker = Callable[[], onnx.ModelProto]
MODELS: dict[str, Maker] = {}
"""Name -> what makes the model."""


def info(
    name: str, shape: Sequence[int | str] | None = (2, 4), element: int = TensorProto.FLOAT
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def node(operator: str, inputs: str, outputs: str, name: str | None = None, **attributes: object) -> onnx.NodeProto:
    """A node; "-" is an input left out, the name is by default that of the first output with an underscore."""
    taken = ["" if x == "-" else x for x in inputs.split()]
    made = outputs.split()
    return helper.make_node(operator, taken, made, name=f"{made[0]}_" if name is None else name, **attributes)


def weight(name: str, values: ArrayLike) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values, np.float32), name)


def made(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    weights: Sequence[onnx.TensorProto] = (),
    opset: int = 20,
) -> onnx.ModelProto:
    """A checked model."""
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


def model(maker: Maker) -> Maker:
    MODELS[maker.__name__] = maker
    return maker


def drawn(*shape: int, seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


@model
def perceptron() -> onnx.ModelProto:
    """Weights from 1e-30 to 1e5, raw and as numbers."""
    extreme = drawn(4, 8)
    extreme.flat[:12] = [1e-30, -1e-30, 3e-8, 5e-8, 1e-7, 2e-7, 1e4, 20000.0, 65504.0, 65520.0, -1e5, np.inf]
    bias = helper.make_tensor("b0", TensorProto.FLOAT, [8], [*drawn(4).tolist(), 1e-9, -3e-8, 66000.0, 0.0])
    return made(
        [
            node("Gemm", "x w0 b0", "h"),
            node("Relu", "h", "a"),
            node("MatMul", "a w1", "l"),
            node("Softmax", "l", "y", axis=-1),
        ],
        [info("x", ("n", 4))],
        [info("y", ("n", 3))],
        [weight("w0", extreme), bias, weight("w1", drawn(8, 3))],
    )


@model
def convolutional() -> onnx.ModelProto:
    statistics = [weight(name, np.abs(drawn(3, seed=i)) + 0.5) for i, name in enumerate(("g", "b", "m", "v"))]
    return made(
        [
            node("Conv", "x k", "c", pads=[1, 1, 1, 1]),
            node("BatchNormalization", "c g b m v", "n"),
            node("Relu", "n", "r"),
            node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
            node("GlobalAveragePool", "p", "q"),
            node("Flatten", "q", "f"),
            node("Gemm", "f w z", "y", transB=1),
        ],
        [info("x", (2, 1, 8, 8))],
        [info("y", (2, 5))],
        [weight("k", drawn(3, 1, 3, 3)), *statistics, weight("w", drawn(5, 3)), weight("z", drawn(5))],
    )


@model
def blocked_middle() -> onnx.ModelProto:
    """An operator that both of Microsoft's tools keep, between others."""
    return made(
        [
            node("MatMul", "x w", "h"),
            node("CumSum", "h axis", "s"),
            node("Tanh", "s", "t"),
            node("Mul", "t h", "y"),
        ],
        [info("x")],
        [info("y")],
        [weight("w", drawn(4, 4)), numpy_helper.from_array(np.array(1), "axis")],
    )


@model
def blocked_chain() -> onnx.ModelProto:
    """Two such in a row: a cast to half and a cast back between them."""
    return made(
        [
            node("Exp", "x", "e"),
            node("CumSum", "e axis", "s"),
            node("CumSum", "s axis", "t"),
            node("Neg", "t", "y"),
        ],
        [info("x")],
        [info("y")],
        [numpy_helper.from_array(np.array(1), "axis")],
    )


@model
def blocked_first() -> onnx.ModelProto:
    """One that takes the input, beside others that do."""
    return made(
        [
            node("CumSum", "x axis", "s"),
            node("Sigmoid", "x", "g"),
            node("Mul", "s g", "m"),
            node("Add", "m x", "y"),
        ],
        [info("x")],
        [info("y")],
        [numpy_helper.from_array(np.array(0), "axis")],
    )


@model
def blocked_fork() -> onnx.ModelProto:
    """One tensor of such a node that two more take."""
    axes = [numpy_helper.from_array(np.array(x), f"axis{x}") for x in (0, 1)]
    return made(
        [
            node("CumSum", "x axis0", "s"),
            node("CumSum", "s axis0", "t"),
            node("CumSum", "s axis1", "u"),
            node("Mul", "t u", "m"),
            node("Neg", "m", "y"),
        ],
        [info("x")],
        [info("y")],
        axes,
    )


@model
def late_input() -> onnx.ModelProto:
    """An input that a branch takes, and then a node."""
    one = helper.make_graph([node("Neg", "x", "q")], "one", [], [info("q")])
    other = helper.make_graph([node("Tanh", "x", "t")], "other", [], [info("t")])
    return made(
        [
            node("If", "choice", "o", then_branch=one, else_branch=other),
            node("Exp", "o", "e"),
            node("Mul", "e x", "m"),
            node("Sqrt", "m", "y"),
        ],
        [info("x"), info("choice", (), TensorProto.BOOL)],
        [info("y")],
    )


@model
def two_kinds() -> onnx.ModelProto:
    """Integers beside numbers: lookup, shapes, comparisons."""
    return made(
        [
            node("Gather", "table i", "e"),
            node("Shape", "e", "d"),
            node("Add", "e x", "s"),
            node("Reshape", "s d", "r"),
            node("Greater", "r zero", "c"),
            node("Where", "c r zero", "y"),
            node("ArgMax", "r", "z"),
        ],
        [info("i", (2,), TensorProto.INT64), info("x")],
        [info("y"), info("z", (1, 4), TensorProto.INT64)],
        [weight("table", drawn(10, 4)), weight("zero", 0.0)],
    )


@model
def shared_weight() -> onnx.ModelProto:
    """One weight of two nodes that convert."""
    return made(
        [node("MatMul", "x w", "a"), node("MatMul", "a w", "b"), node("Add", "a b", "y")],
        [info("x")],
        [info("y")],
        [weight("w", drawn(4, 4))],
    )


@model
def branches() -> onnx.ModelProto:
    """If, whose branches take a tensor and a weight of the graph around them and have a weight of their own."""
    one = helper.make_graph(
        [node("MatMul", "h w", "p"), node("Relu", "p", "q")], "one", [], [info("q")], [weight("u", drawn(4))]
    )
    other = helper.make_graph(
        [node("Mul", "h k", "r"), node("Neg", "r", "t")], "other", [], [info("t")], [weight("k", drawn(4, seed=1))]
    )
    return made(
        [
            node("Exp", "x", "h"),
            node("If", "choice", "o", then_branch=one, else_branch=other),
            node("Sqrt", "o", "y"),
        ],
        [info("x"), info("choice", (), TensorProto.BOOL)],
        [info("y")],
        [weight("w", drawn(4, 4))],
    )


@model
def looping() -> onnx.ModelProto:
    """Loop with a carried tensor, a scanned one, and a weight from around it."""
    body = helper.make_graph(
        [
            node("MatMul", "s w", "m"),
            node("Tanh", "m", "s_next"),
            node("Identity", "go", "go_next"),
            node("Neg", "s_next", "seen"),
        ],
        "body",
        [info("i", (), TensorProto.INT64), info("go", (), TensorProto.BOOL), info("s")],
        [info("go_next", (), TensorProto.BOOL), info("s_next"), info("seen")],
    )
    return made(
        [node("Abs", "x", "a"), node("Loop", "n yes a", "last all", body=body), node("Neg", "last", "y")],
        [info("x")],
        [info("y"), info("all", (3, 2, 4))],
        [
            weight("w", drawn(4, 4)),
            numpy_helper.from_array(np.array(3), "n"),
            numpy_helper.from_array(np.array(True), "yes"),
        ],
    )


@model
def scanning() -> onnx.ModelProto:
    body = helper.make_graph(
        [node("Add", "s e", "s_next"), node("Mul", "s_next s_next", "out")],
        "body",
        [info("s", (4,)), info("e", (4,))],
        [info("s_next", (4,)), info("out", (4,))],
    )
    return made(
        [node("Scan", "start x", "last y", body=body, num_scan_inputs=1)],
        [info("x")],
        [info("y"), info("last", (4,))],
        [weight("start", drawn(4))],
    )


@model
def resized() -> onnx.ModelProto:
    """Resize, whose scales are float32 whatever it computes in."""
    return made(
        [node("Conv", "x k", "c"), node("Resize", "c - scales", "r", mode="linear"), node("Relu", "r", "y")],
        [info("x", (1, 1, 5, 5))],
        [info("y", (1, 2, 6, 6))],
        [weight("k", drawn(2, 1, 3, 3)), weight("scales", [1.0, 1.0, 2.0, 2.0])],
    )


@model
def constants() -> onnx.ModelProto:
    """Constants that are nodes."""
    half, big = (numpy_helper.from_array(np.array(x, np.float32)) for x in (0.5, [1e5, 1.0, 2.0, 3.0]))
    return made(
        [
            node("Constant", "", "half", value=half),
            node("Constant", "", "big", value=big),
            node("Mul", "x half", "m"),
            node("Min", "m big", "l"),
            node("Sub", "l half", "y"),
        ],
        [info("x")],
        [info("y")],
    )


@model
def attention() -> onnx.ModelProto:
    """The operations of one head, with layer normalization written out."""
    return made(
        [
            node("ReduceMean", "x last", "mean"),
            node("Sub", "x mean", "d"),
            node("Mul", "d d", "dd"),
            node("ReduceMean", "dd last", "var"),
            node("Add", "var eps", "ve"),
            node("Sqrt", "ve", "sd"),
            node("Div", "d sd", "n"),
            node("MatMul", "n wq", "q"),
            node("MatMul", "n wk", "k"),
            node("MatMul", "n wv", "v"),
            node("Transpose", "k", "kt", perm=[0, 2, 1]),
            node("MatMul", "q kt", "s"),
            node("Mul", "s scale", "ss"),
            node("Softmax", "ss", "p", axis=-1),
            node("MatMul", "p v", "o"),
            node("Add", "o x", "y"),
        ],
        [info("x", (1, 3, 4))],
        [info("y", (1, 3, 4))],
        [
            *(weight(name, drawn(4, 4, seed=i)) for i, name in enumerate(("wq", "wk", "wv"))),
            weight("eps", 1e-5),
            weight("scale", 0.5),
            numpy_helper.from_array(np.array([-1]), "last"),
        ],
    )
