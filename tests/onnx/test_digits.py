"""A net for digits: converted, it is the net somebody would write in half precision by hand, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from needed import needs

onnx = pytest.importorskip("onnx")
needs("sklearn")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from saved_models import info, made, node, weight  # noqa: E402

from softfloat import bits, environment  # noqa: E402
from softfloat.accumulators import amp, fma  # noqa: E402
from softfloat.onnx import Evaluator, convert  # noqa: E402

Net = tuple[Any, dict[str, np.ndarray[Any, Any]], np.ndarray[Any, Any], np.ndarray[Any, Any]]


@pytest.fixture(scope="module")
def net() -> Net:
    """A convolution with random kernels, and a linear classifier fitted to what it makes: (model, weights, images, labels)."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = (digits.images[:, None] / 16.0).astype(np.float32)
    rng = np.random.default_rng(0)
    kernel = rng.standard_normal((8, 1, 3, 3)).astype(np.float32)
    nodes = [
        node("Conv", "x k c", "h", pads=[1, 1, 1, 1]),
        node("Relu", "h", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "p", "f"),
        node("MatMul", "f w", "m"),
        node("Add", "m b", "y"),
    ]
    shift = (rng.standard_normal(8) / 4).astype(np.float32)
    values = {"k": kernel, "c": shift, "w": np.zeros((128, 10), np.float32), "b": np.zeros(10, np.float32)}
    weights = [weight(name, x) for name, x in values.items()]
    model = made(nodes, [info("x", ("n", 1, 8, 8))], [info("y", ("n", 10))], weights)
    features = Evaluator(model).run(None, {"x": images}, intermediate=True)["f"]
    design = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    targets = np.eye(10)[digits.target]
    fitted = np.linalg.solve(design.T @ design + np.eye(129), design.T @ targets).astype(np.float32)
    values |= {"w": fitted[:-1], "b": fitted[-1]}
    del model.graph.initializer[:]
    model.graph.initializer.extend(weight(name, x) for name, x in values.items())
    return model, values, images, digits.target


def by_hand(net: Net) -> Any:
    """The same net as a graph of half precision, cast at both ends."""
    source, values, _, _ = net
    nodes = [helper.make_node("Cast", ["x"], ["in"], to=TensorProto.FLOAT16)]
    for x in source.graph.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(x)
        copy.name = ""
        copy.input[0] = copy.input[0].replace("x", "in")
        copy.output[0] = copy.output[0].replace("y", "out")
        nodes.append(copy)
    nodes.append(helper.make_node("Cast", ["out"], ["y"], to=TensorProto.FLOAT))
    halves = [numpy_helper.from_array(x.astype(np.float16), name) for name, x in values.items()]
    return made(nodes, list(source.graph.input), list(source.graph.output), halves)


@pytest.mark.parametrize("recipe", [None, "paddle"])
@pytest.mark.parametrize("accumulator", [None, "fma", "amp"])
def test_converted_it_is_the_net_written_in_half_precision(
    net: Net, accumulator: str | None, recipe: str | None
) -> None:
    images = net[2][:40]
    how: dict[str, Any] = {}
    if accumulator is not None:
        made_by = fma("float16") if accumulator == "fma" else amp("float16")
        how = {"matmul": made_by, "convolution": made_by}
    converted, _ = convert(net[0], "float16", recipe)
    found = Evaluator(converted, **how).run(None, {"x": images})[0]
    wanted = Evaluator(by_hand(net), **how).run(None, {"x": images})[0]
    assert found.dtype == np.float32
    assert found.tobytes() == wanted.tobytes()


def test_and_the_net_written_in_softfloat_bits(net: Net) -> None:
    model, values, images, labels = net
    converted, _ = convert(model)
    found = Evaluator(converted, matmul=fma("float16"), convolution=fma("float16")).run(None, {"x": images})[0]
    half = "float16"
    codes = {name: bits.encode(x, half)[0] for name, x in values.items()}
    x, _ = bits.encode(images, half)
    x, _ = bits.conv2d(x, codes["k"], half, fma(half), codes["c"].reshape(8, 1, 1), layout="NCHW", padding=1)
    x, _ = bits.maximum(x, 0, half)
    windows = x.reshape(len(x), 8, 4, 2, 4, 2)
    x = windows[:, :, :, 0, :, 0]
    for i, j in ((0, 1), (1, 0), (1, 1)):
        x, _ = bits.maximum(x, windows[:, :, :, i, :, j], half)
    x, _ = bits.matmul(x.reshape(len(x), -1), codes["w"], half, accumulator=fma(half))
    x, _ = bits.add(x, codes["b"], half)
    assert found.tobytes() == bits.decode(x, half).astype(np.float32).tobytes()
    assert np.mean(found.argmax(axis=1) == labels) > 0.9


def test_stochastic_rounding_is_the_same_in_both(net: Net) -> None:
    """Random numbers are addressed by the names of nodes, which conversion keeps."""
    converted, _ = convert(net[0])
    hand = by_hand(net)
    for x, y in zip(converted.graph.node, hand.graph.node, strict=True):
        y.name = x.name
    results = []
    for model in (converted, hand):
        with environment(rounding="stochastic", seed=3):
            results.append(Evaluator(model).run(None, {"x": net[2][:8]})[0])
    assert results[0].tobytes() == results[1].tobytes()
