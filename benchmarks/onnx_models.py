"""What `softfloat.onnx.Evaluator` adds to the kernels it calls, and how long a ResNet-8 takes.

    python benchmarks/onnx_models.py [--rounds 7] [--json FILE]

`run` is one run of a model; `kernels` the calls of functions of `softfloat.bits` that it came down to, recorded once and
called again with the same operands. Both are the fastest of several rounds, taken in turn. `limit` is what the ratio of both is meant
to stay below, or the seconds of a run.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from softfloat import Environment
from softfloat.onnx import Evaluator
from softfloat.onnx.unit import Call

HALF = onnx.TensorProto.FLOAT16


class Net:
    """A model under construction, of random weights."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.random = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.shape, self.last = shape, "x"

    def weight(self, *shape: int, scale: float = 1.0, offset: float = 0.0) -> str:
        name = f"w{len(self.weights)}"
        values = offset + scale * self.random.normal(size=shape)
        self.weights.append(numpy_helper.from_array(values.astype(np.float16), name))
        return name

    def add(self, operator: str, *inputs: str, **given: Any) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=f"{operator}_{name}", **given))
        self.last = name
        return name

    def convolution(self, x: str, inputs: int, outputs: int, kernel: int, stride: int = 1) -> str:
        """With a batch norm."""
        weight = self.weight(outputs, inputs, kernel, kernel, scale=(inputs * kernel**2) ** -0.5)
        y = self.add("Conv", x, weight, strides=[stride] * 2, pads=[kernel // 2] * 4)
        ones, zeros = self.weight(outputs, scale=0, offset=1), self.weight(outputs, scale=0)
        return self.add("BatchNormalization", y, ones, zeros, zeros, ones)

    def model(self, outputs: int) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info("x", HALF, self.shape)],
            [helper.make_tensor_value_info(self.last, HALF, [self.shape[0], outputs])], self.weights,
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def digits(images: int) -> onnx.ModelProto:
    """A classifier of 8 by 8 images."""
    net = Net((images, 1, 8, 8))
    x = net.add("Relu", net.add("Conv", "x", net.weight(16, 1, 3, 3), net.weight(16), pads=[1] * 4))
    x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.add("Relu", net.add("Conv", x, net.weight(32, 16, 3, 3), net.weight(32), pads=[1] * 4))
    x = net.add("Flatten", net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]))
    net.add("Softmax", net.add("Gemm", x, net.weight(128, 10), net.weight(10)))
    return net.model(10)


def resnet8(images: int) -> onnx.ModelProto:
    """Three residual blocks of 16, 32 and 64 channels on 32 by 32 images, as in MLPerf Tiny."""
    net = Net((images, 3, 32, 32))
    x = net.add("Relu", net.convolution("x", 3, 16, 3))
    for inputs, outputs, stride in ((16, 16, 1), (16, 32, 2), (32, 64, 2)):
        y = net.add("Relu", net.convolution(x, inputs, outputs, 3, stride))
        y = net.convolution(y, outputs, outputs, 3)
        kept = x if stride == 1 else net.convolution(x, inputs, outputs, 1, stride)
        x = net.add("Relu", net.add("Add", y, kept))
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    net.add("Softmax", net.add("Gemm", x, net.weight(64, 10), net.weight(10)))
    return net.model(10)


def recorded(run: Callable[[], Any]) -> list[Callable[[], Any]]:
    """The calls of `softfloat.bits` that a run makes."""
    calls: list[Callable[[], Any]] = []
    original = Call.run

    def recording(self: Call, function: Any, *operands: Any, **options: Any) -> Any:
        given = {name: x for name, x in options.items() if name != "changed"}
        calls.append(lambda: function(*operands, environment=self.environment, flags="any", **given))
        return original(self, function, *operands, **options)

    Call.run = recording  # type: ignore[method-assign]
    try:
        run()
    finally:
        Call.run = original  # type: ignore[method-assign]
    return calls


def measured(
    name: str, model: onnx.ModelProto, rounds: int, ratio: float | None, seconds: float | None
) -> dict[str, Any]:
    evaluator = Evaluator(model, Environment())
    shape = [x.dim_value for x in model.graph.input[0].type.tensor_type.shape.dim]
    feeds = {"x": np.random.default_rng(1).normal(size=shape).astype(np.float16)}
    calls = recorded(lambda: evaluator.run(None, feeds))
    best = {"run": float("inf"), "kernels": float("inf")}
    for _ in range(rounds):
        for which in best:
            start = time.perf_counter()
            if which == "run":
                evaluator.run(None, feeds)
            else:
                for call in calls:
                    call()
            best[which] = min(best[which], time.perf_counter() - start)
    return {"name": name, **best, "ratio": best["run"] / best["kernels"], "limit": ratio, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = [
        measured("digits, 64 images", digits(64), options.rounds, 3.0, None),
        measured("digits, 1 image", digits(1), options.rounds, None, None),
        measured("ResNet-8, 32 images", resnet8(32), options.rounds, None, 2.0),
    ]
    for row in found:
        print(
            f"{row['name']:<22} run {row['run'] * 1e3:8.2f} ms   kernels {row['kernels'] * 1e3:8.2f} ms   ratio {row['ratio']:.2f}"
        )
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
