"""Norms with and without stable statistics: the rule stated step by step, exact variances, what cancels, what is left alone."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import softfloat  # noqa: E402 -- after the skip
from softfloat import bits  # noqa: E402
from softfloat.torch import emulate  # noqa: E402
from softfloat.torch.operators.norms import LAYOUTS  # noqa: E402

nn, F = torch.nn, torch.nn.functional
HALF, BRAIN = torch.float16, torch.bfloat16
one = np.float32(1)


# -- the rule, in numpy ----------------------------------------------------------------------------------------------


def statistics(row: np.ndarray, eps: float) -> tuple[np.float32, np.float32, np.float32]:
    """(mean, variance, scale) of float32 numbers, one addition after the other."""
    n = np.float32(len(row))
    mean = np.add.accumulate(row, dtype=np.float32)[-1] / n
    power = np.add.accumulate(row * row, dtype=np.float32)[-1] / n
    variance = np.maximum(power - mean * mean, np.float32(0))
    return mean, variance, one / np.sqrt(variance + np.float32(eps))


def stated(kind: str, x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float) -> tuple[np.ndarray, ...]:
    """(y, mean, scale) in float32; x is (batch, channels, height, width), groups are of 2 channels, layers the last two axes."""
    y = np.empty_like(x)
    batch, channels = range(x.shape[0]), range(x.shape[1])
    pairs = [slice(c, c + 2) for c in channels if c % 2 == 0]
    rows: dict[str, list[tuple[Any, Any]]] = {
        "batch": [((slice(None), c), c) for c in channels],
        "group": [((b, pair), pair) for b in batch for pair in pairs],
        "layer": [((b, c), ...) for b in batch for c in channels],
    }
    means, scales = [], []
    for where, which in rows[kind]:
        mean, _, scale = statistics(np.ascontiguousarray(x[where]).reshape(-1), eps)
        gamma, beta = weight[which], bias[which]
        if kind == "group":
            gamma, beta = gamma[:, None, None], beta[:, None, None]
        y[where] = (x[where] - mean) * scale * gamma + beta
        means.append(mean)
        scales.append(scale)
    return y, np.array(means), np.array(scales)


CALLS: dict[str, Callable[..., Any]] = {
    "batch": lambda x, w, b: torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-3),
    "group": lambda x, w, b: torch.native_group_norm(x, w, b, *x.shape[:2], x.shape[2] * x.shape[3], x.shape[1] // 2, 1e-3),
    "layer": lambda x, w, b: torch.native_layer_norm(x, list(x.shape[2:]), w, b, 1e-3),
}  # fmt: skip


def data(kind: str, dtype: Any, offset: float = 3.0) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(7)
    shape = (3, 4) if kind == "layer" else (6,)
    x = torch.from_numpy(offset + random.standard_normal((2, 6, 3, 4))).to(dtype)
    weight, bias = (torch.from_numpy(random.standard_normal(shape)).to(dtype) for _ in range(2))
    return x, weight, bias


def single(tensor: Any) -> np.ndarray:
    return tensor.float().numpy()


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", [HALF, BRAIN])
@pytest.mark.parametrize("kind", CALLS)
def test_step_by_step(kind: str, dtype: Any, channels_last: bool) -> None:
    """Output and statistics, to the bit; layouts as PyTorch's."""
    x, weight, bias = data(kind, dtype)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    fmt = str(dtype).removeprefix("torch.")
    expected, mean, scale = stated(kind, np.ascontiguousarray(single(x)), single(weight), single(bias), 1e-3)
    with emulate(use_stable_statistics=False):
        y, saved_mean, saved_scale = CALLS[kind](x, weight, bias)
    with emulate():
        plain = CALLS[kind](x, weight, bias)
    codes, _ = bits.encode(expected, fmt)
    assert np.array_equal(y.contiguous().view(torch.uint16).numpy(), codes)
    assert saved_mean.dtype == saved_scale.dtype == torch.float32
    assert np.array_equal(saved_mean.numpy().reshape(-1), mean)
    assert np.array_equal(saved_scale.numpy().reshape(-1), scale)
    assert [(t.shape, t.stride()) for t in plain] == [(t.shape, t.stride()) for t in (y, saved_mean, saved_scale)]


@pytest.mark.parametrize("affine", ["none", "half", "single"])
@pytest.mark.parametrize("kind", CALLS)
def test_weights_may_be_float32_or_absent(kind: str, affine: str) -> None:
    x, weight, bias = data(kind, HALF)
    given = {"none": (None, None), "half": (weight, bias), "single": (weight.float(), bias.float())}[affine]
    absent = (np.ones(weight.shape, np.float32), np.full(weight.shape, -0.0, np.float32))
    numbers = absent if affine == "none" else (single(weight), single(bias))
    with emulate(use_stable_statistics=False):
        y, *_ = CALLS[kind](x, *given)
    codes, _ = bits.encode(stated(kind, single(x), *numbers, 1e-3)[0], "float16")
    assert np.array_equal(y.view(torch.uint16).numpy(), codes)


# -- what it shows ---------------------------------------------------------------------------------------------------


def variances(kind: str, x: Any, stable: bool) -> np.ndarray:
    """Those that the saved scales stand for."""
    with emulate(use_stable_statistics=stable):
        scale = CALLS[kind](x, None, None)[2]
    return 1 / scale.double().numpy().reshape(-1) ** 2 - 1e-3


def exact(x: Any) -> float:
    """The variance of all elements."""
    values = [Fraction(v) for v in x.flatten().tolist()]
    mean = sum(values) / len(values)
    return float(sum((v - mean) ** 2 for v in values) / len(values))


@pytest.mark.parametrize("kind", CALLS)
def test_cancellation(kind: str) -> None:
    """1000, and one number of 576 an ulp above: the mean is 2^15.5 deviations from zero, and nothing is left of the variance."""
    x = torch.full((1, 2, 24, 24), 1000.0, dtype=HALF)
    x[0, :, 0, 0] = 1000.5
    true = exact(x[0, 0])
    assert variances(kind, x, True) == pytest.approx(true, rel=0.05)
    assert variances(kind, x, False) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("kind", CALLS)
def test_noise_around_a_large_mean(kind: str) -> None:
    x, _, _ = data(kind, HALF, 1000.0)
    rows = {"batch": x.transpose(0, 1).flatten(1), "group": x.reshape(6, -1), "layer": x.reshape(12, -1)}[kind]
    true = np.array([exact(row) for row in rows])
    assert np.abs(variances(kind, x, True) / true - 1).max() < 1e-3
    assert np.abs(variances(kind, x, False) / true - 1).max() > 1e-2
    x -= 1000
    assert np.abs(variances(kind, x, False) / true - 1).max() < 1e-3  # which are the same numbers, exactly


def test_the_variance_does_not_fall_below_zero() -> None:
    """7.1 2500 times, and its square summed with errors: their mean is 9e-4 less than mean*mean."""
    x = torch.full((1, 1, 50, 50), 7.1, dtype=HALF)
    row = single(x).reshape(-1)
    power, mean = (np.add.accumulate(terms)[-1] / np.float32(2500) for terms in (row * row, row))
    assert power - mean * mean < -8e-4
    with emulate(use_stable_statistics=False):
        y, _, scale = CALLS["batch"](x, None, None)
    assert scale.item() == one / np.sqrt(np.float32(1e-3))
    assert torch.isfinite(y).all()


def test_squares_of_half_fit_and_those_of_bfloat16_may_not() -> None:
    ends = torch.tensor([65504.0, -65504.0, 0.0, 0.0]).reshape(1, 1, 2, 2)
    with emulate(use_stable_statistics=False):
        half, _, scale = CALLS["batch"](ends.half(), None, None)
        near, _, _ = CALLS["batch"](ends.bfloat16() * 2.0**46, None, None)
        far, _, lost = CALLS["batch"](ends.bfloat16() * 2.0**50, None, None)
    assert scale.item() == pytest.approx(2**0.5 / 65504)
    assert half.flatten().tolist() == [1.4140625, -1.4140625, 0, 0]
    assert near.flatten().tolist() == [1.4140625, -1.4140625, 0, 0]
    assert lost.item() == 0  # the mean of squares is infinite
    assert not far.any()


# -- modules ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("buffers", [torch.float32, HALF])
@pytest.mark.parametrize("instance", [False, True])
def test_running_statistics(instance: bool, buffers: Any) -> None:
    """running = (1 - momentum)*running + momentum*batch, where the batch's variance is that of n - 1; evaluation reads them."""
    x, _, _ = data("batch", HALF)
    kind = nn.InstanceNorm2d if instance else nn.BatchNorm2d
    module = kind(6, momentum=0.25, affine=False, track_running_stats=True).to(buffers)
    with emulate(use_stable_statistics=False):
        module(x)
    numbers = single(x)
    rows = numbers.reshape(12, 12) if instance else np.swapaxes(numbers, 0, 1).reshape(6, 24)
    count = rows.shape[1]
    found = np.array([statistics(row, 0)[:2] for row in rows]).astype(np.float64)
    mean = (0.25 * found[:, 0] + 0.75 * 0).astype(np.float32)
    variance = (0.25 * (found[:, 1] * count / (count - 1)) + 0.75 * 1).astype(np.float32)
    for buffer, single_steps in ((module.running_mean, mean), (module.running_var, variance)):
        if instance:  # PyTorch repeats the buffers for each member of the batch, and averages them
            assert np.allclose(single(buffer), single_steps.reshape(2, 6).mean(0), rtol=2**-9, atol=2**-11)
        else:
            name = str(buffers).removeprefix("torch.")
            codes, _ = bits.encode(single_steps, name)
            assert np.array_equal(buffer.view(torch.uint16 if buffers == HALF else torch.uint32).numpy(), codes)
    module.eval()
    results = []
    for stable in (False, True):
        with emulate(use_stable_statistics=stable):
            results.append(module(x))
    assert torch.equal(*results)


MODULES: dict[str, Callable[[], Any]] = {
    "BatchNorm2d": lambda: nn.BatchNorm2d(6),
    "BatchNorm2d without buffers": lambda: nn.BatchNorm2d(6, track_running_stats=False),
    "BatchNorm1d": lambda: nn.Sequential(nn.Flatten(2), nn.BatchNorm1d(6)),
    "BatchNorm1d of rows": lambda: nn.Sequential(nn.Flatten(0, 1), nn.Flatten(1), nn.BatchNorm1d(12)),
    "InstanceNorm2d": lambda: nn.InstanceNorm2d(6, affine=True),
    "LayerNorm": lambda: nn.LayerNorm([3, 4]),
    "GroupNorm": lambda: nn.GroupNorm(3, 6),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_forward_and_backward(name: str) -> None:
    """Where nothing cancels, values and gradients are those of stable statistics within an ulp or two; where it does, they are not."""
    for offset, alike in ((0.5, True), (4000.0, False)):
        found = []
        for stable in (True, False):
            x = data("batch", HALF, offset)[0].requires_grad_()
            module = MODULES[name]().half()
            with emulate(use_stable_statistics=stable):
                y = module(x)
                (y * torch.arange(y.numel()).reshape(y.shape).half()).sum().backward()
            found.append([y, x.grad, *(p.grad for p in module.parameters())])
        found = [[t.detach() for t in tensors] for tensors in found]
        close = [
            torch.allclose(a, b, rtol=2**-8, atol=2**-8 * float(b.abs().max())) for a, b in zip(*found, strict=True)
        ]
        assert all(close) if alike else not close[0]


def test_autocast_and_float32_are_left_alone() -> None:
    """Autocast hands batch norm half activations beside float32 weights; norms of float32 tensors are PyTorch's own."""
    x = data("batch", HALF, 4000.0)[0]
    batch, layer = nn.BatchNorm2d(6), nn.LayerNorm(4)
    outputs = []
    for stable in (True, False):
        with emulate(use_stable_statistics=stable), torch.autocast("cpu", dtype=HALF):
            outputs.append([batch(x), layer(x.float()), batch(x.float())])
    assert [torch.equal(a, b) for a, b in zip(*outputs, strict=True)] == [False, True, True]
    assert [t.dtype for t in outputs[1]] == [HALF, torch.float32, torch.float32]


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("rounding", ["stochastic", "toward_zero"])
def test_the_environment_rounds_the_output_only(kind: str, rounding: str) -> None:
    """And takes one number of the stream for it; statistics are to nearest whatever it says."""
    x, weight, bias = data(kind, HALF)
    expected, _, scale = stated(kind, single(x), single(weight), single(bias), 1e-3)
    with softfloat.environment(rounding=rounding, seed=5) as env, emulate(use_stable_statistics=False):
        y, _, saved = CALLS[kind](x, weight, bias)
        stream = env.next_stream()
    assert stream == 1
    assert np.array_equal(saved.numpy().reshape(-1), scale)
    codes, _ = bits.encode(expected, "float16", rounding=rounding, seed=5, stream=0)
    assert np.array_equal(y.view(torch.uint16).numpy(), codes)


def test_other_entrances() -> None:
    """The operators that other versions and functional code call give what `native_batch_norm` gives; out= is refused."""
    x, weight, bias = data("batch", HALF)
    found = []
    with emulate(use_stable_statistics=False):
        for name in ("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update"):
            mean, variance = torch.zeros(6), torch.ones(6)
            training = () if name == "_batch_norm_with_update" else (True,)
            results = getattr(torch.ops.aten, name)(x, weight, bias, mean, variance, *training, 0.1, 1e-3)
            found.append([*results[:3], mean, variance])
        no_stats = torch.ops.aten._native_batch_norm_legit.no_stats(x, weight, bias, True, 0.1, 1e-3)
        out = [torch.empty(0, dtype=HALF), torch.empty(0), torch.empty(0)]
        with pytest.raises(
            NotImplementedError, match="out0, out1, out2 is not emulated with use_stable_statistics=False"
        ):
            torch.ops.aten.native_layer_norm.out(x, [4], None, None, 1e-3, out0=out[0], out1=out[1], out2=out[2])
    assert {"native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit"} < set(LAYOUTS)
    for others in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], others, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(found[0], no_stats, strict=False))


def test_what_does_not_fit_is_refused() -> None:
    x, five = data("batch", HALF)[0], torch.ones(5).half()
    wrong: dict[str, Callable[[], Any]] = {
        "normalized_shape": lambda: F.layer_norm(x, (5,)),
        "shape '\\[1, 6, 1\\]' is invalid for input of size 5": lambda: torch.native_batch_norm(
            x, five, None, None, None, True, 0.1, 1e-3
        ),
        "shape '\\[1, 3, 2, 1\\]' is invalid for input of size 5": lambda: torch.native_group_norm(
            x, five, None, 2, 6, 12, 3, 1e-3
        ),
    }
    for words, call in wrong.items():
        with emulate(use_stable_statistics=False), pytest.raises(RuntimeError, match=words):
            call()


def test_nothing_to_normalise() -> None:
    with emulate(use_stable_statistics=False):
        assert F.layer_norm(torch.empty(0, 4, dtype=HALF), (4,)).shape == (0, 4)
        assert torch.isnan(F.layer_norm(torch.tensor([1.0, torch.inf], dtype=HALF), (2,))).all()


def test_the_switch_is_a_bool() -> None:
    with pytest.raises(TypeError, match="use_stable_statistics must be True or False, got 1"):
        emulate(use_stable_statistics=1)
