"""Gaudi's autocast by lists: defaults, priorities, files, and what each policy does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 -- after the skip
from torch.nn import functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

import softfloat.torch  # noqa: E402
from softfloat.accumulators import fma  # noqa: E402
from softfloat.torch import autocast_lists, emulate, private  # noqa: E402
from softfloat.torch.practices.autocast import FP32, LOWER, PROMOTE, lists_in_force  # noqa: E402

LOW, WIDE = torch.bfloat16, torch.float32


def ones(*shape: int, dtype: Any = WIDE) -> Any:
    return torch.ones(shape, dtype=dtype)


# -- the bridge's own acceptance tests, in our words -----------------------------------------------------------------


def test_defaults() -> None:
    with autocast_lists():
        product = torch.mm(ones(2, 2), ones(2, 2))
        assert product.dtype == LOW
        assert F.log_softmax(product, -1).dtype == LOW
        assert torch.add(product, product).dtype == LOW
        assert torch.add(ones(2), ones(2)).dtype == WIDE
        assert torch.add(product, ones(2, 2)).dtype == WIDE
    assert torch.mm(ones(2, 2), ones(2, 2)).dtype == WIDE


def test_lists_of_ones_own() -> None:
    with autocast_lists(lower=["add", "mm"], fp32=["matmul"]):
        assert torch.add(ones(2), ones(2)).dtype == LOW
        assert torch.mm(ones(2, 2), ones(2, 2)).dtype == LOW
        assert torch.matmul(ones(2, 2, dtype=LOW), ones(2, 2, dtype=LOW)).dtype == WIDE
        assert F.linear(ones(2, 2), ones(2, 2)).dtype == WIDE


# -- policies -------------------------------------------------------------------------------------------------------

CALLS = {
    "linear": lambda: F.linear(ones(2, 3), ones(4, 3), ones(4)),
    "module": lambda: nn.Linear(3, 4)(ones(2, 3)),
    "operator": lambda: ones(2, 2) @ ones(2, 2),
    "method": lambda: ones(2, 2).matmul(ones(2, 2)),
    "conv1d": lambda: nn.Conv1d(2, 2, 2)(ones(1, 2, 4)),
    "conv2d": lambda: F.conv2d(ones(1, 1, 3, 3), ones(1, 1, 2, 2)),
    "transposed": lambda: nn.ConvTranspose2d(1, 1, 2)(ones(1, 1, 3, 3)),
    "softmax": lambda: nn.Softmax(-1)(ones(2)),
    "dropout": lambda: F.dropout(ones(4)),
    "layer_norm": lambda: nn.LayerNorm(4)(ones(2, 4)),
    "group_norm": lambda: nn.GroupNorm(2, 4)(ones(2, 4)),
    "batch_norm": lambda: nn.BatchNorm2d(3)(ones(2, 3, 2, 2)),
    "leaky_relu": lambda: F.leaky_relu(ones(2)),
    "mean": lambda: ones(2).mean(),
    "product": lambda: ones(2) * 2,
    "attention": lambda: F.scaled_dot_product_attention(ones(1, 2, 4), ones(1, 2, 4), ones(1, 2, 4)),
    "multihead": lambda: nn.MultiheadAttention(4, 2)(ones(3, 1, 4), ones(3, 1, 4), ones(3, 1, 4))[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_what_computes_in_the_low_type(name: str) -> None:
    with autocast_lists() as cast:
        assert CALLS[name]().dtype == LOW
    assert {policy for _, policy in cast.calls} >= {"lower"}


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.exp(),
        lambda x: torch.log(x),
        lambda x: x / 2,
        lambda x: x**2,
        lambda x: F.cross_entropy(x, torch.zeros(2, dtype=torch.int64)),
        lambda x: F.nll_loss(x, torch.zeros(2, dtype=torch.int64)),
        lambda x: F.mse_loss(x, x),
        lambda x: F.binary_cross_entropy_with_logits(x, x),
        lambda x: F.softplus(x),
        lambda x: nn.CosineSimilarity()(x, x),
    ],
)
def test_what_computes_in_float32(call: Any) -> None:
    with autocast_lists():
        assert call(ones(2, 2, dtype=LOW)).dtype == WIDE


def test_of_norms_the_first_operand_alone_is_cast() -> None:
    seen = []

    class Seen(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(func, "__name__", "") == "layer_norm":
                seen.append([x.dtype for x in args if isinstance(x, torch.Tensor)])
            return func(*args, **(kwargs or {}))

    with Seen(), autocast_lists() as cast:
        nn.LayerNorm(4)(ones(2, 4))
    assert seen == [[LOW, WIDE, WIDE]]
    assert cast.casts == {"layer_norm": 1}


def test_operands_are_promoted_to_the_widest() -> None:
    low = ones(2, dtype=LOW)
    with autocast_lists():
        assert torch.cat([low, low]).dtype == LOW
        assert torch.cat([low, ones(2)]).dtype == WIDE
        assert torch.stack([ones(2), low]).dtype == WIDE
        assert torch.addcmul(low, low, ones(2)).dtype == WIDE


def test_what_no_list_has_computes_in_its_own_type() -> None:
    with autocast_lists() as cast:
        for dtype in (LOW, WIDE):
            assert F.relu(ones(2, dtype=dtype)).dtype == dtype
            assert torch.tanh(ones(2, dtype=dtype)).dtype == dtype
    assert not cast.calls


def test_what_is_not_cast() -> None:
    with autocast_lists():
        assert (ones(2, 2, dtype=torch.float64) @ ones(2, 2, dtype=torch.float64)).dtype == torch.float64
        assert (torch.ones(2, dtype=torch.int64) * 2).dtype == torch.int64
        out = ones(2, 2)
        assert torch.mm(ones(2, 2), ones(2, 2), out=out) is out


def test_operations_in_place_leave_what_they_write_to() -> None:
    x = y = ones(2)
    with autocast_lists(lower=["iadd", "mul_"]) as cast:
        x += ones(2) / 3
        x.mul_(ones(2) / 3)
    assert x is y
    assert x.dtype == WIDE
    third = (torch.ones(1) / 3).bfloat16().float()
    assert torch.equal(x, ((1 + third) * third).expand(2))
    assert cast.casts == {"add_": 1, "mul_": 1}


PLAIN = {
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "norm": lambda x: (torch.norm(x), x.norm(), F.normalize(x)),
    "numbers": lambda x: (1 - x, 2**x, 2 / x, x // 2),
    "unflatten": lambda x: x.unflatten(1, (2, 2)),
    "split": lambda x: (torch.split(x, 2), x.split(2)),
    "encoder": lambda x: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()(x[None]),
    "lstm": lambda x: nn.LSTM(4, 3)(x[None])[0],
    "embedding": lambda x: F.embedding(torch.tensor([1, 2]), x),
    "pools": lambda x: F.max_pool2d(x[None], 2, return_indices=True),
    "losses": lambda x: (F.cross_entropy(x, torch.tensor([1, 2, 0])), F.triplet_margin_loss(x, x, x + 1)),
    "others": lambda x: (torch.cdist(x, x), torch.unique(x), F.pad(x, (1, 1)), F.gumbel_softmax(x), repr(x)),
}


@pytest.mark.parametrize("name", PLAIN)
def test_functions_that_are_looked_into_compute_the_same(name: str) -> None:
    results = []
    for enter in (False, True):
        torch.manual_seed(0)
        x = torch.randn(3, 4)
        with autocast_lists([], [], []) if enter else torch.enable_grad():
            results.append(private.flattened(PLAIN[name](x))[0])
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
    with emulate(), sdpa_kernel(SDPBackend.MATH), autocast_lists():
        PLAIN[name](x)


def test_priorities() -> None:
    assert {"div", "exp", "pow", "addcdiv", "truediv"} <= FP32 & PROMOTE
    assert "mul" in LOWER & PROMOTE
    assert softfloat.torch.autocast.LOWER is LOWER  # as the reference names it
    for lists, dtype in (
        ({"lower": ["exp"], "fp32": ["exp"], "promote": ["exp"]}, LOW),
        ({"lower": [], "fp32": ["exp"], "promote": ["exp"]}, WIDE),
        ({"lower": [], "fp32": [], "promote": ["exp"]}, LOW),
    ):
        with autocast_lists(**lists):  # type: ignore[arg-type]
            assert ones(2, dtype=LOW).exp().dtype == dtype


def test_casts_are_not_kept() -> None:
    w = ones(2, 2)
    with autocast_lists() as cast:
        _ = w @ w @ w
    assert cast.casts == {"matmul": 3}


def test_gradients_flow_through_casts() -> None:
    w = torch.full((2, 2), 1 / 3, requires_grad=True)
    with autocast_lists():
        (w @ ones(2, 2)).sum().backward()
    assert w.grad.dtype == WIDE
    assert torch.equal(w.grad, torch.full((2, 2), 2.0))


def test_in_emulated_arithmetic() -> None:
    """What a list casts computes here: swamped in bfloat16, which PyTorch's own sum in float32 is not."""
    x = ones(1, 1024)
    with emulate(matmul=fma("bfloat16")), autocast_lists():
        assert (x @ x.T).item() == 256
        assert nn.LayerNorm(4)(ones(2, 4)).dtype == LOW
    with autocast_lists(dtype="float16"):
        assert (x @ x.T).dtype == torch.float16


def test_a_training_step_by_the_default_lists() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(144, 8),
        nn.LayerNorm(8),
        nn.Linear(8, 5),
    )
    x, y = torch.randn(4, 1, 8, 8), torch.arange(4)
    with emulate(), autocast_lists():
        loss = F.cross_entropy(net(x), y)
        loss.backward()
    assert loss.dtype == WIDE
    assert all(p.grad.dtype == WIDE and bool(p.grad.isfinite().all()) for p in net.parameters())


# -- files ----------------------------------------------------------------------------------------------------------


def test_list_files(tmp_path: Path) -> None:
    (tmp_path / "low.txt").write_bytes(b"mm\r\nadd\n\nconv_transpose2d.input\n")
    (tmp_path / "fp32.txt").write_text("softmax\npow.Tensor_Scalar")
    cast = autocast_lists(tmp_path / "low.txt", str(tmp_path / "fp32.txt"))
    assert cast.lower == {"mm", "add", "conv_transpose2d"}
    assert cast.fp32 == {"softmax", "pow"}
    assert cast.promote == PROMOTE
    (tmp_path / "low.txt").write_text("mm\nadd \n")
    with pytest.raises(ValueError, match=r"low\.txt: line 2: no operation of PyTorch's is called 'add '"):
        autocast_lists(tmp_path / "low.txt")
    with pytest.raises(FileNotFoundError):
        autocast_lists(fp32=tmp_path / "none.txt")


def test_configurations(tmp_path: Path) -> None:
    path = tmp_path / "gaudi_config.json"
    low = [
        "add",
        "addmm",
        "bmm",
        "div",
        "dropout",
        "gelu",
        "iadd",
        "linear",
        "layer_norm",
        "matmul",
        "mm",
        "rsub",
        "softmax",
        "truediv",
    ]
    data = {
        "use_fused_adam": True,
        "autocast_bf16_ops": low,
        "autocast_fp32_ops": ["embedding", "nll_loss", "log_softmax"],
    }
    path.write_text(json.dumps(data))
    with autocast_lists(config=path):
        assert F.gelu(ones(2)).dtype == LOW
        assert (1 - ones(2)).dtype == LOW
        assert (ones(2) / 2).dtype == LOW
        assert F.log_softmax(ones(2, dtype=LOW), 0).dtype == WIDE
        assert (ones(2) * 2).dtype == WIDE
    for broken, message in (
        ({**data, "autocast_fp32_ops": None}, "must have lists autocast_bf16_ops and autocast_fp32_ops, got None"),
        ({**data, "use_torch_autocast": False}, "use_torch_autocast is false"),
        ({**data, "autocast_bf16_ops": ["mmm"]}, "no operation of PyTorch's is called 'mmm'"),
        ([], "must be a JSON object"),
    ):
        path.write_text(json.dumps(broken))
        with pytest.raises(ValueError, match=message):
            autocast_lists(config=path)
    path.write_text("{")
    with pytest.raises(ValueError, match=r"gaudi_config\.json: no JSON"):
        autocast_lists(config=path)
    with pytest.raises(ValueError, match="config must be left out"):
        autocast_lists(["mm"], config=path)


def test_what_is_refused() -> None:
    with torch.autocast("cpu", LOW), pytest.raises(ValueError, match=r"autocast_lists and torch\.autocast both choose"):
        autocast_lists().__enter__()
    with autocast_lists(), torch.autocast("cpu", LOW), pytest.raises(ValueError, match="both choose types"):
        _ = ones(2) * 2
    with autocast_lists(), pytest.raises(ValueError, match="autocast_lists is in force already"):
        autocast_lists().__enter__()
    assert lists_in_force() is None
    with pytest.raises(ValueError, match=r"dtype must be one of torch\.bfloat16, torch\.float16"):
        autocast_lists(dtype="float64")
    with pytest.raises(TypeError, match="promote must be a list of operations' names or the path"):
        autocast_lists(promote=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"fp32\[0\] must be an operation's name, got 3"):
        autocast_lists(fp32=[3])  # type: ignore[list-item]
