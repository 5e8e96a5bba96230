"""PyTorch models within `softfloat.torch.emulate`, and the same ones exported to ONNX: the same bits where the graph is the same."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
torch = pytest.importorskip("torch")

import softfloat  # noqa: E402 -- after the skips
from softfloat.accumulators import Accumulator, amp, chunked, fma, mul_add  # noqa: E402
from softfloat.onnx import Evaluator  # noqa: E402
from softfloat.torch import emulate  # noqa: E402

nn = torch.nn


class Residual(nn.Module):
    """Two convolutions with batch norms, and what came in."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()
        )
        self.second = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x: Any) -> Any:
        return torch.relu(x + self.second(self.first(x)))


class Block(nn.Module):
    """Attention and what follows it, in operators that ONNX has too: it adds a linear layer's bias, and multiplies in silu, in a node of its own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner, self.outer, self.wide, self.narrow = (
            nn.Linear(a * width, b * width, bias=False) for a, b in ((1, 3), (1, 1), (1, 2), (2, 1))
        )
        self.bias = nn.Parameter(torch.randn(2 * width))

    def forward(self, x: Any) -> Any:
        q, k, v = self.inner(x).chunk(3, -1)
        weights = torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1)
        x = self.norm(x + self.outer(weights @ v))
        wide = self.wide(x) + self.bias
        return x + self.narrow(wide * torch.sigmoid(wide))


def digits() -> Any:
    """A classifier of 8 by 8 images."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=2), nn.GELU(),
        nn.Flatten(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10), nn.Hardtanh(-3, 3),
    )  # fmt: skip


def exported(net: Any, x: Any) -> onnx.ModelProto:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own
        torch.onnx.export(net, (x,), file, dynamo=False, do_constant_folding=False, opset_version=20)
    return onnx.load_from_string(file.getvalue())


def both(
    net: Any, x: Any, how: Accumulator | None, settings: dict[str, Any], model: onnx.ModelProto | None = None
) -> tuple[Any, Any, Evaluator]:
    """Codes of outputs of both."""
    with emulate(softfloat.Environment(**settings), matmul=how, convolution=how), torch.no_grad():
        native = net(x)
    evaluator = Evaluator(model or exported(net, x), softfloat.Environment(**settings), matmul=how, convolution=how)
    [name] = evaluator.input_names
    feed = (
        x.view(torch.uint16).numpy().view(onnx.helper.tensor_dtype_to_np_dtype(10 if x.dtype == torch.float16 else 16))
    )
    [found] = evaluator.run(None, {name: feed})
    return native.view(torch.uint16).numpy(), found.view(np.uint16), evaluator


HOWS = [None, amp("half"), fma("float16"), mul_add("float16"), chunked(8, "float16", "float32")]
SETTINGS: list[dict[str, Any]] = [{}, {"rounding": "toward_zero", "overflow": "saturate"}]


@pytest.mark.parametrize("settings", SETTINGS, ids=["nearest", "toward zero"])
def test_a_convolutional_net_agrees_bit_for_bit(settings: dict[str, Any]) -> None:
    torch.manual_seed(0)
    net, x = digits().half().eval(), torch.randn(4, 1, 8, 8).half()
    model = exported(net, x)
    assert [n.op_type for n in model.graph.node].count("Conv") == 2
    for how in HOWS:
        native, found, evaluator = both(net, x, how, settings, model)
        np.testing.assert_array_equal(native, found)
        assert "Gelu" in {x.operator for x in evaluator.nodes.values()}  # not its parts


def test_bfloat16_agrees_bit_for_bit() -> None:
    torch.manual_seed(1)
    net, x = digits().bfloat16().eval(), torch.randn(4, 1, 8, 8).bfloat16()
    native, found, _ = both(net, x, fma("bfloat16"), {})
    np.testing.assert_array_equal(native, found)


def test_residual_blocks_with_norms_agree() -> None:
    """Batch norms are computed in float32 by both, in another order of the same operations: rarely a unit apart."""
    torch.manual_seed(2)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), Residual(8), Residual(8)).half()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            (
                nn.init.normal_(module.weight, 1, 0.2),
                nn.init.normal_(module.running_mean),
                nn.init.uniform_(module.running_var, 0.5, 2),
            )
    net.eval()
    x = torch.randn(2, 3, 8, 8).half()
    native, found, _ = both(net, x, fma("float16"), {})
    a, b = native.view(np.float16).astype(float), found.view(np.float16).astype(float)
    assert np.mean(native != found) < 0.02
    np.testing.assert_allclose(a, b, rtol=2**-7, atol=2**-9)


def test_a_transformer_block_agrees() -> None:
    """Softmax and layer norm are computed in float32 by both, their sums in another order."""
    torch.manual_seed(3)
    net, x = Block(32).half().eval(), torch.randn(2, 12, 32).half()
    native, found, evaluator = both(net, x, fma("float16"), {})
    assert {x.operator for x in evaluator.nodes.values()} >= {"MatMul", "Softmax"}
    assert np.mean(native != found) < 0.02
    a, b = native.view(np.float16).astype(float), found.view(np.float16).astype(float)
    np.testing.assert_allclose(a, b, rtol=2**-6, atol=2**-8)


@pytest.mark.exhaustive
def test_the_other_exporter_makes_the_same_bits() -> None:
    pytest.importorskip("onnxscript")
    torch.manual_seed(0)
    net, x = digits().half().eval(), torch.randn(4, 1, 8, 8).half()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.onnx.export(net, (x,), dynamo=True, verbose=False).model_proto
    native, found, _ = both(net, x, amp("half"), {}, model)
    np.testing.assert_array_equal(native, found)
