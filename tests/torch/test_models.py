"""Whole training steps: every emulated operation repeated, nothing escaped, gradients beside PyTorch's own, optimisers, autocast."""

from __future__ import annotations

import contextlib
import copy
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402 -- after the skip

import softfloat  # noqa: E402 -- after the skip
from softfloat import accumulators, bits  # noqa: E402
from softfloat.torch import Operation, UnemulatedOperatorError, emulate, private  # noqa: E402
from softfloat.torch.operators import tables  # noqa: E402
from softfloat.torch.operators.plans import planned  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration:UserWarning")  # of mkldnn's switch
nn, F = torch.nn, torch.nn.functional
HALF, BRAIN = torch.float16, torch.bfloat16


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(8, 24)

    def forward(self, x: Any) -> Any:
        q, k, v = self.projection(x).reshape(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return F.scaled_dot_product_attention(q, k, v).flatten(1)[:, :6]


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3, batch_first=True)

    def forward(self, x: Any) -> Any:
        with torch.backends.mkldnn.flags(enabled=False):  # else one fused operator
            return self.lstm(x)[0].flatten(1)


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 4)
        self.norm = nn.LayerNorm(4)
        self.last = nn.Linear(12, 3)

    def forward(self, x: Any) -> Any:
        words = (x.float()[:, :3].abs() * 3).long().clamp(max=8)
        return self.last(self.norm(self.table(words)).flatten(1))


MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "linear": (lambda: nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)), (6, 5)),
    "conv": (
        lambda: nn.Sequential(nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        (3, 4, 8, 8),
    ),
    "conv1d": (lambda: nn.Sequential(nn.Conv1d(2, 3, 3, dilation=2), nn.SiLU(), nn.AvgPool1d(2), nn.Flatten()), (3, 2, 10)),
    "conv3d": (lambda: nn.Sequential(nn.Conv3d(2, 3, 2, stride=(2, 1, 1)), nn.ReLU(), nn.MaxPool3d(2), nn.Flatten()), (3, 2, 5, 4, 4)),
    "transposed": (lambda: nn.Sequential(nn.ConvTranspose2d(3, 2, 3, stride=2), nn.GELU(), nn.Flatten()), (2, 3, 3, 3)),
    "batch norm": (lambda: nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), nn.Flatten()), (4, 2, 4, 4)),
    "layer norm": (lambda: nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6), nn.GroupNorm(2, 6)), (4, 5)),
    "lstm": (Recurrent, (2, 4, 4)),
    "embedding": (Words, (4, 3)),
    "attention": (Attention, (2, 5, 8)),
}  # fmt: skip


def made(name: str) -> tuple[Any, Any, Any]:
    """Model, inputs, labels: always the same."""
    torch.manual_seed(0)
    factory, shape = MODELS[name]
    model = factory()
    return model, torch.randn(shape), torch.arange(shape[0]) % 3


def train(model: Any, x: Any, labels: Any, optimiser: Any, steps: int = 2) -> Any:
    for _ in range(steps):
        optimiser.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimiser.step()
    return loss.detach()


def parameters(model: Any) -> list[Any]:
    return [p.detach().clone() for p in [*model.parameters(), *model.buffers()]]


def identical(first: list[Any], second: list[Any]) -> bool:
    def code(t: Any) -> Any:
        return t.contiguous().view(torch.int16) if t.dtype in (HALF, BRAIN) else t

    return all(a.dtype == b.dtype and torch.equal(code(a), code(b)) for a, b in zip(first, second, strict=True))


class Watch(private.DispatchMode):
    """Below an emulation: what PyTorch itself is asked to do with low-precision tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        low = {t.dtype for t in torch.utils._pytree.tree_leaves((args, kwargs, result)) if isinstance(t, torch.Tensor)}
        name = private.schema_name(func)
        widens = name in ("_to_copy", "to") and result.dtype not in (HALF, BRAIN)
        copies = name == "copy_" and args[0].dtype in (args[1].dtype, torch.float32, torch.float64)
        puts = name == "index_put_" and not (len(args) > 3 and args[3])
        if low & {HALF, BRAIN} and not (widens or copies or puts or private.is_view(func)):
            self.seen.add(name)
        return result


def escaped(seen: set[str]) -> set[str]:
    moves = {*tables.MOVES, *tables.FILLS, *tables.JOINS}
    return {name for name in seen if name not in moves and name.removesuffix("_") not in moves}


@contextlib.contextmanager
def autocast(dtype: Any) -> Iterator[None]:
    with torch.autocast("cpu", dtype=dtype) if dtype is not None else contextlib.nullcontext():
        yield


HOW: dict[str, tuple[dict[str, Any], softfloat.Accumulator | None]] = {
    "nearest": ({}, None),
    "stochastic": ({"rounding": "stochastic", "seed": 3}, accumulators.fma("float16")),
    "amp": ({"overflow": "saturate", "ftz": True}, accumulators.amp("half")),
}


def repeated(operation: Operation) -> tuple[np.ndarray, int]:
    """What `softfloat.bits` says, told everything anew: settings in an environment of their own, a status byte for each element."""
    names = "rounding overflow tininess infinite_input daz ftz nan sr_bits generator seed"
    options = {name: getattr(operation.environment, name) for name in names.split()}
    function = getattr(bits, operation.function)
    settled = softfloat.Environment(**options)
    result, flags = function(*operation.operands, stream=operation.stream, environment=settled, **operation.options)
    assert np.shape(flags) == np.shape(result)
    return np.asarray(result), int(np.bitwise_or.reduce(flags, axis=None))


@pytest.mark.parametrize("cast", ["half", "autocast"])
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", MODELS)
def test_every_operation_is_that_of_bits(name: str, how: str, cast: str) -> None:
    """Forward, backward and update; and what PyTorch did itself needed no rounding."""
    settings, accumulator = HOW[how]
    model, x, labels = made(name)
    if cast == "half":
        model, x = model.half(), x.half()
    environment = softfloat.Environment(**settings)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01, eps=1e-4)
    before = parameters(model)
    recording = emulate(environment, accumulator, accumulator, record=True)
    with Watch() as watch, recording as emulation, autocast(HALF if cast == "autocast" else None):
        train(model, x, labels, optimiser)
    assert not escaped(watch.seen)
    assert emulation.trace
    seen = softfloat.Flags(0)
    for operation in emulation.trace:
        result, flags = repeated(operation)
        seen |= flags
        np.testing.assert_array_equal(result, operation.result)
        np.testing.assert_array_equal(operation.repeat(), operation.result)
    assert [o.stream for o in emulation.trace] == list(range(len(emulation.trace)))
    assert softfloat.Flags.INEXACT in seen
    assert seen in environment.status
    assert any(o.backward for o in emulation.trace)
    assert {o.module for o in emulation.trace} - {""}
    after = parameters(model)
    assert all(bool(torch.isfinite(p).all()) for p in after)
    assert not identical(before, after)
    if cast == "half":
        updates = [o for o in emulation.trace if o.operator == "aten.addcdiv_.default" and o.function == "add"]
        last = updates[-len(optimiser.param_groups[0]["params"]) :]
        for parameter, operation in zip(model.parameters(), last, strict=True):
            assert parameter.detach().view(torch.uint16).tolist() == operation.result.tolist()


@pytest.mark.parametrize("cast", ["half", "bfloat16", "autocast"])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_pytorch(name: str, cast: str) -> None:
    """Partials in float32, results rounded to nearest even: PyTorch's own arithmetic, up to the order of sums.

    Each of a dozen operators in a row may round to the other side of a tie that float32 left open, which moves its result
    by a unit in the last place, u. So gradients agree within 16 u of the largest.
    """
    found = []
    for emulated in (False, True):
        model, x, labels = made(name)
        if cast != "autocast":
            dtype = HALF if cast == "half" else BRAIN
            model, x = model.to(dtype), x.to(dtype)
        with emulate() if emulated else contextlib.nullcontext(), autocast(HALF if cast == "autocast" else None):
            F.cross_entropy(model(x), labels).backward()
        found.append([p.grad for p in model.parameters()])
    ulp = 2**-7 if cast == "bfloat16" else 2**-10
    largest = max(float(g.abs().max()) for g in found[0])
    for native, ours in zip(*found, strict=True):
        assert native.dtype == ours.dtype
        assert float((native.float() - ours.float()).abs().max()) <= 16 * ulp * largest


def test_a_step_by_hand() -> None:
    """A layer, a loss and an update of half tensors, stochastic, written in `softfloat.bits`."""
    fmt, env = softfloat.float16, {"rounding": "stochastic", "seed": 11}
    how, streams = accumulators.fma("float16"), iter(range(100))
    torch.manual_seed(1)
    layer, x = nn.Linear(4, 3).half(), torch.randn(5, 4).half()
    w, b, a = (t.detach().view(torch.uint16).numpy().copy() for t in (layer.weight, layer.bias, x))

    def run(function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
        return function(*operands, stream=next(streams), **env, **options)[0]

    def number(value: float) -> Any:
        return bits.encode(value, fmt)[0]

    y = run(bits.matmul, a, w.T, fmt, how, np.broadcast_to(b, (5, 3)), out_format=fmt)
    z = run(bits.tanh, y, fmt)
    run(bits.sum, z.reshape(-1, 1), fmt, how, 0, out_format=fmt)
    gradient = np.full((5, 3), fmt.one_code, np.uint16)
    t = bits.decode(z, fmt)
    inner = run(bits.encode, bits.decode(gradient, fmt) * (1 - t * t), fmt)
    gradients = {"weight": run(bits.matmul, inner.T, a, fmt, how, out_format=fmt)}
    gradients["bias"] = run(bits.sum, inner, fmt, how, 0, out_format=fmt)
    updated = []
    for parameter, name in ((w, "weight"), (b, "bias")):
        updated.append(run(bits.fma, gradients[name], number(-0.1), parameter, fmt))
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.1)
    with emulate(softfloat.Environment(**env), matmul=how, record=True) as emulation:
        layer(x).tanh().sum().backward()
        optimiser.step()
    assert next(streams) == len(emulation.trace)
    for name, parameter, expected in zip(("weight", "bias"), layer.parameters(), updated, strict=True):
        assert parameter.grad.view(torch.uint16).tolist() == gradients[name].tolist()
        assert parameter.detach().view(torch.uint16).tolist() == expected.tolist()


# -- optimisers ------------------------------------------------------------------------------------------------------

OPTIMISERS: dict[str, Callable[..., Any]] = {
    "sgd": lambda p, **o: torch.optim.SGD(p, lr=0.1, **o),
    "momentum": lambda p, **o: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01, **o),
    "adam": lambda p, **o: torch.optim.Adam(p, lr=0.01, betas=(0.9, 0.9), eps=1e-2, **o),
    "adamw": lambda p, **o: torch.optim.AdamW(p, lr=0.01, betas=(0.9, 0.9), eps=1e-2, amsgrad=True, **o),
    "rmsprop": lambda p, **o: torch.optim.RMSprop(p, lr=0.01, eps=1e-4, momentum=0.9, centered=True, **o),
    "adagrad": lambda p, **o: torch.optim.Adagrad(p, lr=0.01, eps=1e-4, **o),
    "adadelta": lambda p, **o: torch.optim.Adadelta(p, eps=1e-4, **o),
    "adamax": lambda p, **o: torch.optim.Adamax(p, lr=0.01, eps=1e-4, **o),
    "nadam": lambda p, **o: torch.optim.NAdam(p, lr=0.01, betas=(0.9, 0.9), eps=1e-2, **o),
    "rprop": lambda p, **o: torch.optim.Rprop(p, lr=0.01, **o),
}


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers(name: str, foreach: bool) -> None:
    """Of half parameters: all their steps are recorded, none escapes, and weights go where float32 sends them."""
    model, x, labels = made("linear")
    single = copy.deepcopy(model)
    train(single, x, labels, OPTIMISERS[name](single.parameters()), 3)
    model.half()
    start = parameters(model)
    with Watch() as watch, emulate(record=True) as emulation:
        train(model, x.half(), labels, OPTIMISERS[name](model.parameters(), foreach=foreach), 3)
    assert not escaped(watch.seen)
    updates = [o for o in emulation.trace if not o.module and not o.backward and "softmax" not in o.operator]
    assert len({o.function for o in updates}) >= 2
    assert any("foreach" in o.operator for o in updates) == foreach
    moved = sum(float((a.float() - b.float()).abs().sum()) for a, b in zip(parameters(model), start, strict=True))
    apart = sum(float((a.float() - b).abs().sum()) for a, b in zip(parameters(model), parameters(single), strict=True))
    assert apart < 0.2 * moved


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "adamw"])
def test_lists_of_tensors_give_the_bits_of_one_after_the_other(name: str) -> None:
    found = []
    for foreach in (False, True):
        model, x, labels = made("linear")
        model.half()
        with emulate(softfloat.Environment(rounding="toward_zero")):
            train(model, x.half(), labels, OPTIMISERS[name](model.parameters(), foreach=foreach), 3)
        found.append(parameters(model))
    assert identical(*found)


def test_a_fused_optimiser_is_refused() -> None:
    model, x, labels = made("linear")
    with emulate(), pytest.raises(UnemulatedOperatorError, match="fused=False"):
        train(model.half(), x.half(), labels, torch.optim.AdamW(model.parameters(), fused=True))


def test_gradients_are_clipped() -> None:
    model, x, labels = made("linear")
    model.half()
    with Watch() as watch, emulate():
        (F.cross_entropy(model(x.half()), labels) * 100).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.25)
    assert not escaped(watch.seen)
    assert norm > 1
    total = sum(float((p.grad.float() ** 2).sum()) for p in model.parameters())
    assert total <= 1.01
    assert all(float(p.grad.abs().max()) <= 0.25 for p in model.parameters())


# -- the ways of training --------------------------------------------------------------------------------------------


def test_autocast_keeps_weights_and_gradients_in_float32() -> None:
    model, x, labels = made("batch norm")
    with emulate(record=True) as emulation, torch.autocast("cpu", dtype=BRAIN):
        loss = train(model, x, labels, torch.optim.SGD(model.parameters(), lr=0.1))
        assert model(x).dtype == BRAIN
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in model.parameters())
    assert loss.dtype == torch.float32
    convolutions = [o for o in emulation.trace if o.function.startswith("conv")]
    assert {o.module for o in convolutions} == {"Sequential.0"}
    assert all(o.options["out_format"] == softfloat.bfloat16 for o in convolutions)


def test_loss_scaling_with_autocast() -> None:
    model, x, labels = made("linear")
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
    before = parameters(model)
    with emulate(), torch.autocast("cpu", dtype=HALF):
        for _ in range(30):
            optimiser.zero_grad()
            scaler.scale(F.cross_entropy(model(x), labels)).backward()
            scaler.step(optimiser)
            scaler.update()
    assert 2**10 <= scaler.get_scale() <= 2**20
    assert not identical(before, parameters(model))


def test_emulation_may_be_inside_or_outside_of_autocast() -> None:
    found = []
    for order in (True, False):
        model, x, labels = made("linear")
        contexts = [emulate(), torch.autocast("cpu", dtype=HALF)]
        with contexts[order], contexts[not order]:
            train(model, x, labels, torch.optim.SGD(model.parameters(), lr=0.1))
        found.append(parameters(model))
    assert identical(*found)


def test_casts_that_autocast_keeps_do_not_pass_the_borders() -> None:
    """1 + 2^-12 rounds to 1 natively, and here up to 1 + 2^-10 or down to 1; a cast is kept as long as the autocast block."""
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(1 + 2**-12)
    one, up, down = torch.ones(1, 1), 1 + 2**-10, 1.0
    upwards, downwards = (softfloat.Environment(rounding=f"toward_{side}") for side in ("positive", "negative"))
    with torch.autocast("cpu", dtype=HALF):
        assert model(one).item() == down
        with emulate(upwards):
            assert model(one).item() == up
            with emulate(downwards):
                assert model(one).item() == down
            assert model(one).item() == up
        assert model(one).item() == down
        with emulate(upwards), torch.autocast("cpu", dtype=HALF):
            assert model(one).item() == up
        assert model(one).item() == down


# -- activation checkpointing ----------------------------------------------------------------------------------------


class Sketch(nn.Module):
    """Two layers, of which the first also works outside of the checkpoint; says what activations it had."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.seen: list[Any] = []

    def within(self, x: Any) -> Any:
        x = F.dropout(torch.tanh(self.first(x)), 0.25)
        self.seen.append(x.detach().clone())
        return self.second(x) * x

    def forward(self, x: Any, reentrant: bool | None, nested: bool) -> Any:
        def run(function: Any, x: Any) -> Any:
            return function(x) if reentrant is None else checkpoint(function, x, use_reentrant=reentrant)

        x = self.first(x)
        if nested:
            x = run(lambda x: run(self.within, x) * 1.5, x)
        return run(self.within, run(self.within, x)).float().sum()


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("cast", ["half", "autocast", "autocast around backward"])
@pytest.mark.parametrize("reentrant", [True, False])
def test_activations_computed_again_have_the_bits_of_the_forward_pass(reentrant: bool, cast: str, nested: bool) -> None:
    torch.manual_seed(0)
    model, x = Sketch(), torch.randn(16, 8)
    if cast == "half":
        model, x = model.half(), x.half()
    x.requires_grad_()
    environment = softfloat.Environment(rounding="stochastic", seed=5)
    autocast = torch.autocast("cpu", dtype=HALF, enabled=cast != "half")
    original = torch.utils.checkpoint.CheckpointFunction
    with emulate(environment):
        with autocast:
            loss = model(x, reentrant, nested)
            regions, before = len(model.seen), environment.next_stream()
            if cast == "autocast around backward":
                loss.backward()
        if cast != "autocast around backward":
            loss.backward()
    assert environment.next_stream() > before
    again = model.seen[regions:]
    assert len(again) >= regions
    for tensor in again:
        assert any(identical([tensor], [first]) for first in model.seen[:regions])
    assert torch.utils.checkpoint.CheckpointFunction is original


def test_gradients_with_checkpoints_are_those_without() -> None:
    found = []
    for reentrant in (None, False):
        torch.manual_seed(0)
        model = Sketch().half()
        x = torch.randn(16, 8).half().requires_grad_()
        with emulate(softfloat.Environment(rounding="stochastic", seed=5)):
            model(x, reentrant, False).backward()
        found.append([x.grad, *(p.grad for p in model.parameters())])
    assert identical(*found)


@pytest.mark.parametrize("reentrant", [True, False])
def test_emulations_within_checkpoints_draw_the_same_numbers_again(reentrant: bool) -> None:
    environment, seen = softfloat.Environment(rounding="stochastic", seed=2), []

    def function(x: Any) -> Any:
        with emulate(environment):
            y = x * x
        seen.append((y * 0.3).detach().clone())
        return y * x

    x = torch.linspace(1, 2, 64).half().requires_grad_()
    with emulate(environment):
        checkpoint(function, x, use_reentrant=reentrant).sum().backward()
    assert len(seen) == 2
    assert identical(seen[:1], seen[1:])


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_refused_operation_in_a_checkpointed_function_takes_no_number(reentrant: bool) -> None:
    """Nor does it when the function runs again: the operations around it draw what they drew."""
    seen: list[Any] = []

    def function(x: Any) -> Any:
        with pytest.raises(ValueError, match="needs a seed"):
            x.detach().bfloat16()
        y = x * x
        seen.append((y * 0.3).detach().clone())
        return y * x

    x = torch.linspace(1, 2, 64).half().requires_grad_()
    unseeded = softfloat.Environment(rounding="stochastic")
    environment = softfloat.Environment(rounding="stochastic", seed=2, overrides={"bfloat16": unseeded})
    with emulate(environment):
        y = checkpoint(function, x, use_reentrant=reentrant)
        assert environment.next_stream() == 3
        y.sum().backward()
    assert len(seen) == 2
    assert identical(seen[:1], seen[1:])


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpointed_function_that_runs_other_operations_is_refused(reentrant: bool) -> None:
    calls: list[int] = []

    def function(x: Any) -> Any:
        calls.append(1)
        return x * x if len(calls) == 1 else (x + x) * x

    for seed in (1, None):
        calls.clear()
        x = torch.ones(2, dtype=HALF, requires_grad=True)
        with emulate(softfloat.Environment(seed=seed)):
            y = checkpoint(function, x, use_reentrant=reentrant, **({} if reentrant else {"determinism_check": "none"}))
            if seed is None:
                y.sum().backward()
            else:
                with pytest.raises(UnemulatedOperatorError, match="computes add where its first run computed mul"):
                    y.sum().backward()


def test_accumulated_gradients_round_each_time() -> None:
    p = nn.Parameter(torch.ones(1, dtype=HALF))
    with emulate():
        for _ in range(3000):
            p.sum().backward()
    assert p.grad.item() == 2048  # 2048 + 1 rounds back
    with emulate(softfloat.Environment(rounding="toward_positive")):
        p.sum().backward()
    assert p.grad.item() == 2050


def test_no_grad_detach_clone_and_state_dicts() -> None:
    model, x, labels = made("batch norm")
    model, x = model.half(), x.half()
    with emulate():
        train(model, x, labels, torch.optim.SGD(model.parameters(), lr=0.1))
        with torch.no_grad():
            model.eval()
            y = model(x)
            assert not y.requires_grad
            model[0].weight.mul_(0.5)
            model[0].weight.mul_(2)
        z = model(x)
        assert z.requires_grad
        assert not z.detach().requires_grad
        assert torch.equal(z.detach(), y)
        state = {name: t.clone() for name, t in model.state_dict().items()}
        twin = copy.deepcopy(model)
        fresh = made("batch norm")[0].half().eval()
        fresh.load_state_dict(state)
        assert torch.equal(fresh(x), y)
        assert torch.equal(twin(x), y)
    assert state["1.running_mean"].dtype == HALF
    assert state["1.num_batches_tracked"] == 2


def test_running_statistics_round_into_their_buffers() -> None:
    norm, x = nn.BatchNorm1d(2).half(), torch.randn(8, 2).half()
    single = copy.deepcopy(norm).float()
    with emulate(softfloat.Environment(rounding="toward_negative")):
        norm(x)
    single(x.float())
    expected, _ = bits.encode(single.running_mean.numpy(), "float16", rounding="toward_negative")
    assert norm.running_mean.view(torch.uint16).tolist() == expected.tolist()


def test_saved_variables_see_in_place_updates() -> None:
    w = nn.Parameter(torch.ones(2, dtype=HALF))
    with emulate():
        y = (w * w).sum()
        with torch.no_grad():
            w.mul_(3)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


@pytest.mark.parametrize("name", ["linear", "conv", "batch norm"])
def test_seed_and_threads(name: str) -> None:
    """The same seed gives the same bits with any number of threads, another seed others."""
    found = []
    threads = torch.get_num_threads(), softfloat.get_num_threads()
    try:
        for seed, count in ((1, 1), (1, 4), (2, 1)):
            torch.set_num_threads(count)
            softfloat.set_num_threads(count)
            model, x, labels = made(name)
            model, x = model.half(), x.half()
            with emulate(softfloat.Environment(rounding="stochastic", seed=seed)):
                train(model, x, labels, torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-3))
            found.append(parameters(model))
    finally:
        torch.set_num_threads(threads[0])
        softfloat.set_num_threads(threads[1])
    assert identical(found[0], found[1])
    assert not identical(found[0], found[2])


def test_long_sums_do_not_depend_on_threads() -> None:
    x = torch.randn(300_000, generator=torch.Generator().manual_seed(0)).half()
    found = []
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            with emulate(softfloat.Environment(rounding="stochastic", seed=1)), torch.no_grad():
                found.append([x.norm(), x.mean(), x.var(), x.prod(), x.sigmoid(), x.sum(), x * 0.3])
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(threads)
    assert identical(found[0], found[1])
    assert identical(found[0], found[2])


def test_fused_recurrent_layers_are_refused() -> None:
    """PyTorch takes them for bfloat16 where the CPU has instructions for it."""
    assert planned(torch.ops.aten.mkldnn_rnn_layer.default) is None
    assert "mkldnn" in tables.ADVICE["mkldnn_rnn_layer"]
    layer, x = nn.LSTM(4, 3).bfloat16(), torch.randn(2, 3, 4).bfloat16()
    with emulate(record=True) as emulation, torch.backends.mkldnn.flags(enabled=False):
        assert layer(x)[0].dtype == BRAIN
    assert "matmul" in {o.function for o in emulation.trace}


def test_modules_in_records() -> None:
    model, x, labels = made("attention")
    with emulate(record=True) as emulation:
        F.cross_entropy(model.half()(x.half()), labels).backward()
    forward = [(o.operator, o.module) for o in emulation.trace if not o.backward and o.function == "matmul"]
    assert forward == [("aten.addmm.default", "Attention.projection"), *[("aten.bmm.default", "Attention")] * 2]
    backward = [o.module for o in emulation.trace if o.backward and o.operator == "aten.mm.default"]
    assert set(backward) == {"Attention.projection"}


class Block(nn.Module):
    """A layer behind which modules return their argument, one that is called by keyword, and arithmetic of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(3, 3)
        self.same = nn.Sequential(nn.Identity(), nn.Dropout(0.5).eval(), nn.Flatten())
        self.last = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.last(input=self.same(self.projection(x)) * 2)


@pytest.mark.parametrize("run", ["plain", "reentrant", "not reentrant", "another block"])
def test_backward_is_booked_to_the_module_that_computed(run: str) -> None:
    net, x = Block().half(), torch.ones(4, 3, dtype=HALF, requires_grad=True)
    forward = emulate(record=True)
    backward = emulate(record=True) if run == "another block" else forward
    with forward:
        y = net(x) if "reentrant" not in run else checkpoint(net, x, use_reentrant=run == "reentrant")
        loss = y.sum()
        if backward is forward:
            loss.backward()
    if backward is not forward:
        with backward:
            loss.backward()
    found = {(o.operator, o.module) for o in backward.trace if o.backward}
    gradients = {"aten.mm.default", "aten.sum.dim_IntList", "aten.mul.Tensor"}
    assert {x for x in found if x[0] in gradients} == {
        *itertools.product(("aten.mm.default", "aten.sum.dim_IntList"), ("Block.projection", "Block.last")),
        ("aten.mul.Tensor", "Block"),
    }
    again = {x for x in found if x[0] == "aten.addmm.default"}
    assert again <= {("aten.addmm.default", "Block.projection"), ("aten.addmm.default", "Block.last")}
    assert bool(again) == ("reentrant" in run)


def test_modules_of_other_threads_are_not_entered() -> None:
    """Hooks on modules are every thread's; what this one computes is in none."""
    x, entered, computed = torch.ones(2, dtype=HALF), threading.Event(), threading.Event()

    class Waits(nn.Module):
        def forward(self) -> None:
            entered.set()
            computed.wait(10)

    with emulate(record=True) as emulation:
        thread = threading.Thread(target=Waits())
        thread.start()
        entered.wait(10)
        x + x
        computed.set()
        thread.join()
    assert [o.module for o in emulation.trace] == [""]
