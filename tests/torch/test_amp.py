"""Who computes in half: dtypes seen by hooks, bits beside models that cast by hand, MindSpore's levels and step."""

from __future__ import annotations

import contextlib
import copy
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import softfloat  # noqa: E402 -- after the skip
from softfloat import Environment, Flags, accumulators  # noqa: E402
from softfloat.torch import DynamicLossScaleManager, FixedLossScaleManager, GradScaler, emulate  # noqa: E402
from softfloat.torch.practices.amp import (  # noqa: E402
    LEVELS,
    TrainOneStepWithLossScale,
    auto_mixed_precision,
    loss_scale_manager,
    to_float,
)
from softfloat.torch.practices.parameters import float32_parameters  # noqa: E402

nn, F, parametrize = torch.nn, torch.nn.functional, torch.nn.utils.parametrize
SINGLE, HALF, BRAIN, DOUBLE = torch.float32, torch.float16, torch.bfloat16, torch.float64


def identical(first: Any, second: Any) -> bool:
    """Bit by bit, and in the same dtypes; NaN is itself."""

    def code(t: Any) -> Any:
        return t.detach().contiguous().view(torch.int32 if t.dtype == SINGLE else torch.int16)

    return all(a.dtype == b.dtype and torch.equal(code(a), code(b)) for a, b in zip(first, second, strict=True))


def values(model: Any) -> list[Any]:
    return [p.detach().clone() for p in model.parameters()]


def gradients(model: Any) -> list[Any]:
    return [p.grad for p in model.parameters()]


# -- parameters ------------------------------------------------------------------------------------------------------


def first(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output


def attention(module: Any, x: Any) -> Any:
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return module(x, x, x, need_weights=False)


def recurrent(module: Any, x: Any) -> Any:
    with torch.backends.mkldnn.flags(enabled=False):
        return module(x)


MODULES: dict[str, tuple[Callable[[], Any], tuple[int, ...], Callable[[Any, Any], Any]]] = {
    "linear": (lambda: nn.Linear(4, 3), (2, 4), lambda m, x: m(x)),
    "conv": (lambda: nn.Conv2d(2, 3, 2), (2, 2, 4, 4), lambda m, x: m(x)),
    "transposed": (lambda: nn.ConvTranspose2d(2, 3, 2), (2, 2, 3, 3), lambda m, x: m(x)),
    "batch norm": (lambda: nn.BatchNorm1d(4), (6, 4), lambda m, x: m(x)),
    "instance norm": (lambda: nn.InstanceNorm1d(4, affine=True, track_running_stats=True), (2, 4, 5), lambda m, x: m(x)),
    "layer norm": (lambda: nn.LayerNorm(4), (3, 4), lambda m, x: m(x)),
    "embedding": (lambda: nn.Embedding(5, 4), (5,), lambda m, x: m(torch.arange(5)) * x[:, None]),
    "prelu": (lambda: nn.PReLU(), (3, 4), lambda m, x: m(x)),
    "lstm": (lambda: nn.LSTM(4, 3, num_layers=2, bidirectional=True), (3, 2, 4), recurrent),
    "gru": (lambda: nn.GRU(4, 3), (3, 2, 4), recurrent),
    "cell": (lambda: nn.GRUCell(4, 3), (2, 4), lambda m, x: m(x)),
    "attention": (lambda: nn.MultiheadAttention(4, 2), (3, 2, 4), attention),
    "list": (lambda: nn.ParameterList([torch.ones(4), torch.ones(4)]), (3, 4), lambda m, x: x * m[0] + m[1]),
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration:UserWarning")  # of mkldnn's switch


def made(name: str) -> tuple[Any, Any, Callable[[Any, Any], Any]]:
    """Module, half input, how to call it: always the same."""
    torch.manual_seed(1)
    factory, shape, call = MODULES[name]
    module = factory()
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn_like(p))
    return module, torch.randn(shape).half(), call


@pytest.mark.parametrize("emulated", [False, True])
@pytest.mark.parametrize("name", MODULES)
def test_parameters_are_single_and_computation_is_half(name: str, emulated: bool) -> None:
    """Results are those of a model made half; gradients are its gradients, widened, but those of norms stay single."""
    module, x, call = made(name)
    half = copy.deepcopy(module).half()
    if "norm" in name and name != "layer norm":  # PyTorch's rule: half inputs, single parameters
        half = copy.deepcopy(module)
        for p in half.parameters():
            p.data = p.data.half().float()
    optimised = list(module.parameters())
    assert float32_parameters(module) is module
    assert {id(p) for p in module.parameters()} == {id(p) for p in optimised}
    with emulate() if emulated else contextlib.nullcontext():
        for model in (module, half):
            first(call(model, x)).sum().backward()
        assert identical([first(call(module, x))], [first(call(half, x))])
        assert first(call(module, x)).dtype == HALF
    assert all(p.dtype == p.grad.dtype == SINGLE for p in optimised)
    assert identical([p.grad for p in optimised], [g.half().float() for g in gradients(half)])
    assert all(b.dtype == SINGLE for b in module.buffers() if b.is_floating_point())


@pytest.mark.parametrize("name", ["linear", "conv"])
def test_casts_by_hand(name: str) -> None:
    """With random rounding, too: each parameter is cast once for each call, in the order of arguments."""
    module, x, _ = made(name)
    weight, bias = (p.detach().clone().requires_grad_() for p in module.parameters())
    function = F.linear if name == "linear" else F.conv2d
    settings = {"rounding": "stochastic", "seed": 5}
    how = accumulators.fma("float16")
    with emulate(Environment(**settings), how, how):
        expected = function(x, weight.half(), bias.half())
        expected.sum().backward()
    float32_parameters(module)
    with emulate(Environment(**settings), how, how, record=True) as emulation:
        y = module(x)
        y.sum().backward()
    assert identical([y], [expected])
    assert identical(gradients(module), [weight.grad, bias.grad])
    assert sum(o.operator == "aten._to_copy.default" for o in emulation.trace) == 2


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_recurrent_layers_cast_each_weight_once(name: str) -> None:
    module, x, call = made(name)
    float32_parameters(module)
    count = len(list(module.parameters()))
    for _ in range(2):
        with emulate(record=True) as emulation:
            call(module, x)
        assert sum(o.operator == "aten._to_copy.default" for o in emulation.trace) == count
    with torch.no_grad():
        module.weight_ih_l0 = torch.zeros_like(module.weight_ih_l0)
    assert not torch.equal(first(call(module, x)), first(call(made(name)[0].half(), x)))


def test_a_recurrent_layer_that_fails_casts_anew() -> None:
    module, x, call = made("lstm")
    float32_parameters(module)
    with pytest.raises(RuntimeError, match="must be equal to input_size"):
        call(module, x[..., :2])
    with torch.no_grad():
        for p in module.parameters():
            p.zero_()
    assert not module.weight_ih_l0.any()
    assert not first(call(module, x)).any()


def test_shared_parameters_stay_shared() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.head = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
            self.head.weight = self.table.weight

        def forward(self, x: Any) -> Any:
            return self.head(self.table(x))

    torch.manual_seed(0)
    model = Tied()
    half = copy.deepcopy(model).half()
    float32_parameters(model)
    words = torch.arange(5)
    with emulate():
        model(words).sum().backward()
        table, head = half.table.weight.detach().requires_grad_(), half.head.weight.detach().requires_grad_()
        F.linear(F.embedding(words, table), head).sum().backward()
    (parameter,) = model.parameters()
    assert model.table.parametrizations.weight.original is model.head.parametrizations.weight.original is parameter
    assert identical([parameter.grad], [head.grad.float() + table.grad.float()])
    (copied,) = copy.deepcopy(model).parameters()
    assert copied is not parameter


def test_the_last_dtype_counts() -> None:
    module = nn.Linear(4, 3)
    for dtype in (HALF, BRAIN, SINGLE, HALF):
        float32_parameters(module, dtype)
        assert module.weight.dtype == module.bias.dtype == dtype
        assert len(module.parametrizations.weight) == 1
    plain = float32_parameters(nn.Linear(2, 2), SINGLE)
    assert not parametrize.is_parametrized(plain)


@pytest.mark.parametrize("dtype", ["float16", "half", HALF, softfloat.float16])
def test_dtypes_have_names(dtype: Any) -> None:
    assert float32_parameters(nn.Linear(2, 2), dtype).weight.dtype == HALF
    assert to_float(nn.Linear(2, 2), dtype)(torch.ones(1, 2)).dtype == HALF
    assert auto_mixed_precision(nn.Linear(2, 2), "O3", cast_model_type=dtype).weight.dtype == HALF
    assert softfloat.torch.GradientAccumulation([torch.ones(2)], dtype).dtype == HALF
    assert softfloat.torch.autocast_lists(dtype=dtype).dtype == HALF
    assert softfloat.torch.convert(nn.Linear(2, 2), "basic", to=dtype).to_type == "float16"
    assert not softfloat.torch.check_hyperparameters(torch.optim.SGD([torch.ones(2)], lr=0.5), dtype)


def test_chosen_parameters() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    model[1].weight.requires_grad_(False)
    float32_parameters(model, names=["0.weight"])
    assert [model[0].weight.dtype, model[0].bias.dtype, model[1].weight.dtype] == [HALF, SINGLE, SINGLE]
    float32_parameters(model, BRAIN, names=lambda name, p: p.requires_grad and name.endswith("weight"))
    assert [model[0].weight.dtype, model[0].bias.dtype, model[1].weight.dtype] == [BRAIN, SINGLE, SINGLE]
    float32_parameters(model, names="1.weight")
    assert model[1].weight.dtype == HALF
    assert not model[1].weight.requires_grad
    assert model[1].parametrizations.weight.original.dtype == SINGLE


@pytest.mark.parametrize("dtype", [HALF, BRAIN, DOUBLE])
def test_parameters_become_single(dtype: Any) -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).to(dtype)
    stored = list(module.parameters())
    numbers = [p.detach().float() for p in stored]
    optimiser = torch.optim.SGD(module.parameters(), lr=0.5)
    stored[0].grad = torch.ones_like(stored[0])
    float32_parameters(module)
    assert all(p is q for p, q in zip(module.parameters(), stored, strict=True))
    assert identical(values(module), numbers)
    assert stored[0].grad.dtype == SINGLE
    optimiser.step()
    assert identical([stored[0]], [numbers[0] - 0.5])
    assert module(torch.randn(4, 2).half()).dtype == HALF


def test_other_parametrisations_come_before() -> None:
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    expected = layer.weight.detach().half()
    float32_parameters(layer)
    assert identical([layer.weight], [expected])
    layer(torch.ones(1, 3).half()).sum().backward()
    assert all(p.grad.dtype == SINGLE for p in layer.parameters())
    assert len(list(layer.parameters())) == 3


def test_assigned_values_are_kept_in_single() -> None:
    layer = float32_parameters(nn.Linear(2, 2))
    layer.weight = torch.full((2, 2), 0.1)
    assert identical([layer.parametrizations.weight.original], [torch.full((2, 2), 0.1)])
    assert identical([layer.weight], [torch.full((2, 2), 0.1).half()])


WRITES: dict[str, Callable[[Any], Any]] = {
    "ones_": nn.init.ones_,
    "normal_": nn.init.normal_,
    "kaiming_uniform_": nn.init.kaiming_uniform_,
    "eye_": nn.init.eye_,
    "data.fill_": lambda w: w.data.fill_(0.1),
    "detach().fill_": lambda w: w.detach().fill_(0.1),
    "copy_": lambda w: w.copy_(torch.full((2, 2), 0.1)),
    "an element": lambda w: w.__setitem__((0, 1), 0.1),
    "a row": lambda w: w[1].mul_(0.1),
    "a column, transposed": lambda w: w.t()[1].add_(1e-5),
    "split": lambda w: w.split(1)[1].zero_(),
    "out": lambda w: torch.full((2, 2), 0.1, out=w),
    "a list": lambda w: torch._foreach_mul_([w], 0.1),
    "data": lambda w: setattr(w, "data", torch.full((2, 2), 0.1)),
    "iadd": lambda w: w.__iadd__(1e-5),
}


@pytest.mark.parametrize("widened", [False, True])
@pytest.mark.parametrize("how", WRITES)
def test_what_is_written_to_a_cast_is_written_to_the_parameter(how: str, widened: bool) -> None:
    """As PyTorch does with a parameter, in single; the cast that was written to shows it, and so does the next."""
    torch.manual_seed(3)
    expected = nn.Linear(2, 2)
    layer = copy.deepcopy(expected)
    float32_parameters(layer)
    for cast in casts_of(layer):
        cast.widened = widened
    parameter, held = layer.parametrizations.weight.original, layer.weight
    for weight in (expected.weight, held):
        torch.manual_seed(4)
        with torch.no_grad():
            WRITES[how](weight)
    assert layer.parametrizations.weight.original is parameter
    assert parameter.requires_grad == expected.weight.requires_grad
    assert identical([parameter], [expected.weight])
    rounded = expected.weight.half().float() if widened else expected.weight.half()
    assert identical([held, layer.weight], [rounded, rounded])


def casts_of(module: nn.Module) -> list[Any]:
    return [step for chain in module.parametrizations.values() for step in chain]


def test_a_cast_that_was_written_to_is_not_differentiated_as_before() -> None:
    layer = float32_parameters(nn.Linear(2, 2))
    weight = layer.weight
    loss = weight.square().sum()
    with torch.no_grad():
        weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        layer.weight.fill_(1)


def test_casts_are_the_parameter_where_they_are_asked_for_gradients() -> None:
    layer = float32_parameters(nn.Linear(2, 2))
    layer(torch.ones(1, 2).half()).sum().backward()
    assert layer.weight.grad is layer.parametrizations.weight.original.grad is not None
    layer.weight.grad = None
    assert layer.parametrizations.weight.original.grad is None
    for freeze in (lambda: layer.weight.requires_grad_(False), lambda: setattr(layer.weight, "requires_grad", False)):
        layer.weight.requires_grad = True
        freeze()
        assert not layer.parametrizations.weight.original.requires_grad
        assert not layer.weight.requires_grad


def test_what_shares_the_memory_of_a_cast_and_cannot_write_through_is_read_only_or_apart() -> None:
    layer = float32_parameters(nn.Linear(2, 2))
    before = layer.weight.detach().clone()
    with pytest.raises(ValueError, match="read-only"):
        layer.weight.detach().numpy()[0] = 1
    for other in (nn.Parameter(layer.weight), copy.deepcopy(layer.weight.detach()), layer.weight.float()):
        with torch.no_grad():
            other.fill_(5)
        assert bool((other == 5).all())
        assert identical([layer.weight], [before])
    normed = float32_parameters(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)))
    with pytest.raises(TypeError, match="other parametrisations compute cannot be written to in place; assign"):
        nn.init.ones_(normed.weight)
    assert repr(before) == repr(layer.weight.detach())


def test_assigned_parameters_are_kept() -> None:
    layer, other = float32_parameters(nn.Linear(2, 2)), float32_parameters(nn.Linear(2, 2))
    parameter = nn.Parameter(torch.full((3, 2), 0.1, dtype=HALF))
    layer.weight = parameter
    assert layer.parametrizations.weight.original is parameter
    assert parameter.dtype == SINGLE
    assert layer.weight.shape == (3, 2)
    other.weight = layer.weight  # tied
    assert other.parametrizations.weight.original is parameter
    with torch.no_grad():
        layer.weight += 1e-5
    assert layer.parametrizations.weight.original is parameter
    assert float(parameter.detach()[0, 0]) == float(torch.tensor(0.1, dtype=HALF).float() + 1e-5)
    other.weight = layer.weight.detach()
    assert identical([parameter], [torch.full((3, 2), 0.1).half().float()])  # of the numbers, which both now have
    with pytest.raises(TypeError, match=r"bias is kept in float32 and cannot be None; .*remove_parametrizations"):
        layer.bias = None
    normed = float32_parameters(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)))
    normed.weight = nn.Parameter(torch.ones(2, 2))
    torch.testing.assert_close(normed.weight, torch.ones(2, 2).half())


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("dtype", [SINGLE, HALF])
@pytest.mark.parametrize("name", MODULES)
def test_plain_checkpoints_are_loaded(name: str, dtype: Any, assign: bool) -> None:
    torch.manual_seed(5)
    plain, model = MODULES[name][0]().to(dtype), float32_parameters(nn.ModuleList([MODULES[name][0]()]))
    expected = {f"0.{name}": p.detach().float().clone() for name, p in plain.named_parameters()}
    state = {f"0.{key}": value for key, value in plain.state_dict().items()}
    model.load_state_dict(state, assign=assign)
    assert set(state) == {f"0.{key}" for key in plain.state_dict()}
    found = {name.replace("parametrizations.", "").removesuffix(".original"): p for name, p in model.named_parameters()}
    assert found.keys() == expected.keys()
    assert identical(found.values(), [expected[name] for name in found])
    copy.deepcopy(model).load_state_dict(state)
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict({})


@pytest.mark.parametrize("name", MODULES)
def test_it_can_be_undone(name: str) -> None:
    module, x, call = made(name)
    module.eval()
    kind, keys, expected = type(module), module.state_dict().keys(), first(call(module, x.float()))
    numbers = values(module)
    own = [(part, n) for part in module.modules() for n, _ in part.named_parameters(recurse=False)]
    float32_parameters(module)
    first(call(module, x))
    for part, parameter in own:
        parametrize.remove_parametrizations(part, parameter, leave_parametrized=False)
    assert type(module) is kind
    assert module.state_dict().keys() == keys
    assert identical(values(module), numbers)
    assert identical([first(call(module, x.float()))], [expected])


@pytest.mark.parametrize("name", MODULES)
def test_copies_and_state_dicts(name: str) -> None:
    """Also of a model that has computed."""
    module, x, call = made(name)
    float32_parameters(module)
    first(call(module, x)).sum().backward()
    module.eval()
    copied, fresh = copy.deepcopy(module), float32_parameters(MODULES[name][0]()).eval()
    fresh.load_state_dict(module.state_dict())
    y = first(call(module, x))
    assert identical([y, y], [first(call(copied, x)), first(call(fresh, x))])
    with torch.no_grad():
        for p in copied.parameters():
            p.zero_()
    assert identical([y], [first(call(module, x))])
    assert not torch.equal(y, first(call(copied, x)))


# -- modules ---------------------------------------------------------------------------------------------------------


def watch(model: Any) -> dict[str, tuple[Any, Any]]:
    """Dtypes of each module's first input and output, as hooks set later see them; filled by calls."""
    seen: dict[str, tuple[Any, Any]] = {}

    def note(name: str, module: Any) -> None:
        def hook(module: Any, args: Any, output: Any) -> None:
            seen[name] = args[0].dtype, first(output).dtype

        module.register_forward_hook(hook)

    for name, module in model.named_modules():
        if "parametrizations" not in name:
            note(name, module)
    return seen


class Net(nn.Module):
    """Convolution, batch norm, a residual block, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU())
        self.block = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3))
        self.norm, self.head = nn.LayerNorm(27), nn.Linear(27, 4)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        x = (x + self.block(x)).relu()
        return self.head(self.norm(F.max_pool2d(x, 2).flatten(1)))


def net() -> tuple[Any, Any, Any]:
    """Model, inputs, labels: always the same."""
    torch.manual_seed(3)
    return Net(), torch.randn(4, 1, 8, 8), torch.arange(4)


def test_modules_compute_in_a_dtype_and_the_last_call_counts() -> None:
    model, x, _ = net()
    to_float(to_float(model, BRAIN), HALF)
    assert to_float(model.block, SINGLE) is model.block
    seen = watch(model)
    model(x).float().sum().backward()
    pair = {"block": (SINGLE, SINGLE), "block.0": (SINGLE, SINGLE), "block.1": (SINGLE, SINGLE)}
    assert seen == {name: pair.get(name, (HALF, HALF)) for name in seen}
    assert len(seen) == 10
    assert model.block[0].weight.dtype == SINGLE
    assert model.stem[0].weight.dtype == model.head.bias.dtype == HALF
    assert all(p.dtype == p.grad.dtype == SINGLE for p in model.parameters())
    assert all(b.dtype == SINGLE for name, b in model.named_buffers() if "running" in name)


def test_arguments_wherever_they_are() -> None:
    Pair = namedtuple("Pair", "a b")

    class Taker(nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            self.seen = args, kwargs

    taker, x, kind = to_float(Taker(), HALF), torch.ones(2, dtype=DOUBLE), object()
    x_before = {"x": [x, kind]}
    words, mask = torch.arange(2), torch.ones(2, dtype=torch.bool)
    packed = nn.utils.rnn.pack_sequence([torch.ones(3, 1), torch.ones(2, 1)])
    counted = nn.utils.rnn.pack_sequence([words])
    taker(x, Pair(x, words), (x, [x]), packed, counted, torch.Size([2]), 1.5, mask=mask, more=x_before)
    (a, pair, (b, (c,)), sequence, integers, size, number), kwargs = taker.seen
    assert {t.dtype for t in (a, pair.a, b, c, sequence.data, kwargs["more"]["x"][0])} == {HALF}
    assert (pair.b is words, kwargs["mask"] is mask, integers is counted, size, number) == (True, True, True, (2,), 1.5)
    assert kwargs["more"]["x"][1] is kind
    assert x_before["x"][0] is x  # a copy was changed
    assert isinstance(pair, Pair)


def test_hooks_set_before_see_what_is_computed_with() -> None:
    layer, seen = nn.Linear(2, 2), []
    layer.register_forward_pre_hook(lambda _, args: seen.append(args[0].dtype))
    to_float(layer, HALF)(torch.ones(1, 2))
    assert seen == [HALF]


@pytest.mark.parametrize("name", [name for name in MODULES if name != "list"])  # which is not called
def test_all_modules(name: str) -> None:
    module, x, call = made(name)
    expected = first(call(float32_parameters(copy.deepcopy(module)), x))
    found = first(call(to_float(module, HALF), x if name == "embedding" else x.float()))
    assert identical([found], [expected])


# -- levels ----------------------------------------------------------------------------------------------------------


def test_the_table() -> None:
    rows = {
        name: (row.cast_model_type, row.keep_batchnorm_fp32, row.loss_scale_manager) for name, row in LEVELS.items()
    }
    assert rows == {
        "O0": (SINGLE, False, None),
        "O1": (HALF, True, None),
        "O2": (HALF, True, DynamicLossScaleManager),
        "O3": (HALF, False, None),
    }
    assert {name for name, row in LEVELS.items() if row.listed} == {"O1"}


EXPECTED: dict[str, dict[str, tuple[Any, Any]]] = {
    "O0": dict.fromkeys(["", "stem", "stem.0", "stem.1", "stem.2", "block.0", "block.1", "norm", "head"], (SINGLE, SINGLE)),
    "O1": {
        "": (SINGLE, SINGLE), "stem": (SINGLE, SINGLE), "stem.0": (HALF, SINGLE), "stem.1": (SINGLE, SINGLE),
        "stem.2": (HALF, SINGLE), "block.0": (HALF, SINGLE), "block.1": (SINGLE, SINGLE), "norm": (SINGLE, SINGLE),
        "head": (HALF, SINGLE),
    },
    "O2": {
        "": (HALF, SINGLE), "stem": (HALF, HALF), "stem.0": (HALF, HALF), "stem.1": (SINGLE, HALF),
        "stem.2": (HALF, HALF), "block.0": (HALF, HALF), "block.1": (SINGLE, HALF), "norm": (HALF, HALF),
        "head": (HALF, HALF),
    },
    "O3": {
        "": (HALF, SINGLE), "stem": (HALF, HALF), "stem.0": (HALF, HALF), "stem.1": (HALF, HALF), "stem.2": (HALF, HALF),
        "block.0": (HALF, HALF), "block.1": (HALF, HALF), "norm": (HALF, HALF), "head": (HALF, HALF),
    },
}  # fmt: skip


@pytest.mark.parametrize("emulated", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_levels(level: str, emulated: bool) -> None:
    """Dtypes as said, training and evaluating; every product of a level that casts ran in half, forward and backward."""
    model, x, labels = net()
    assert auto_mixed_precision(model, level) is model
    seen = watch(model)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    before = values(model)
    with emulate(record=True) if emulated else contextlib.nullcontext() as emulation:
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimiser.step()
    assert {name: pair for name, pair in seen.items() if name != "block"} == EXPECTED[level]
    assert loss.dtype == SINGLE
    assert all(p.dtype == p.grad.dtype == SINGLE for p in model.parameters())
    assert all(not torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))
    assert all(b.dtype == SINGLE for name, b in model.named_buffers() if "running" in name)
    if emulated:
        products = [o for o in emulation.trace if o.operator.split(".")[1] in ("addmm", "mm", "convolution")]
        assert len({o.module for o in products if not o.backward}) == (0 if level == "O0" else 3)
        backward = {o.operator for o in emulation.trace if o.backward}
        assert ("aten.convolution_backward.default" in backward) == (level != "O0")
        assert all(o.options["out_format"] == softfloat.float16 for o in products)
    seen.clear()
    model.eval()
    statistics = [b.clone() for b in model.buffers()]
    with torch.no_grad():
        model(x)
    assert {name: pair for name, pair in seen.items() if name != "block"} == EXPECTED[level]
    assert all(torch.equal(a, b) for a, b in zip(model.buffers(), statistics, strict=True))


class ByHand(nn.Module):
    """`Net` at O2, its casts written out."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Any) -> Any:
        net = self.net

        def convolved(layer: Any, x: Any) -> Any:
            return F.conv2d(x, layer.weight.half(), layer.bias.half(), padding=layer.padding)

        x = convolved(net.stem[0], x.half())
        x = F.relu(net.stem[1](x.float()).half())
        y = net.block[1](convolved(net.block[0], x).float()).half()
        x = F.max_pool2d((x + y).relu(), 2).flatten(1)
        x = F.layer_norm(x, (27,), net.norm.weight.half(), net.norm.bias.half())
        return F.linear(x, net.head.weight.half(), net.head.bias.half()).float()


@pytest.mark.parametrize("rounding", ["nearest_even", "stochastic"])
def test_o2_is_a_model_that_casts(rounding: str) -> None:
    """Two steps of momentum: the same bits, from the same random numbers."""
    found = []
    for by_hand in (False, True):
        model, x, labels = net()
        trained = ByHand(model) if by_hand else auto_mixed_precision(model, "O2")
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        env = Environment(rounding=rounding, seed=2)
        how = accumulators.amp("half")
        with emulate(env, how, how, record=True) as emulation:
            for _ in range(2):
                optimiser.zero_grad()
                (F.cross_entropy(trained(x), labels) * 64).backward()
                optimiser.step()
        statistics = [b for b in model.buffers() if b.is_floating_point()]
        found.append((values(model) + statistics, [o.function for o in emulation.trace]))
    assert found[0][1] == found[1][1]
    assert identical(found[0][0], found[1][0])
    assert not identical(found[0][0][:1], values(net()[0])[:1])


def test_o3_rounds_the_parameters_of_batch_norms() -> None:
    torch.manual_seed(0)
    norm, x = nn.BatchNorm1d(3), torch.randn(8, 3)
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2)
    weight = norm.weight.detach().clone().requires_grad_()
    with emulate():
        y = F.batch_norm(x.half(), None, None, weight.half().float(), torch.zeros(3), training=True)
        (y.float() ** 3).sum().backward()
        auto_mixed_precision(norm, "O3")
        z = norm(x)
        (z**3).sum().backward()
    assert identical([z, norm.parametrizations.weight.original.grad], [y.float(), weight.grad])
    assert torch.equal(weight.grad, weight.grad.half().float())
    assert norm.running_mean.dtype == SINGLE
    assert not torch.equal(norm.running_mean, norm.running_mean.half().float())


@pytest.mark.parametrize(
    ("options", "norm", "convolution"),
    [
        ({"level": "O2", "keep_batchnorm_fp32": False}, HALF, HALF),
        ({"level": "O3", "keep_batchnorm_fp32": True}, SINGLE, HALF),
        ({"level": "O2", "cast_model_type": BRAIN}, SINGLE, BRAIN),
        ({"level": "O2", "cast_model_type": SINGLE}, SINGLE, SINGLE),
        ({"level": "O0", "cast_model_type": HALF}, HALF, HALF),
        ({"level": "auto"}, SINGLE, HALF),
        ({"level": "auto", "device_target": "Ascend"}, HALF, HALF),
        ({}, SINGLE, SINGLE),
    ],
)
def test_overrides(options: dict[str, Any], norm: Any, convolution: Any) -> None:
    model, x, _ = net()
    auto_mixed_precision(model, **options)
    seen = watch(model)
    assert model(x).dtype == SINGLE
    assert (seen["stem.1"][0], seen["stem.0"][0]) == (norm, convolution)


def test_a_module_may_be_set_apart_afterwards() -> None:
    model, x, _ = net()
    to_float(auto_mixed_precision(model, "O2").head, SINGLE)
    seen = watch(model)
    model(x)
    assert (seen["norm"], seen["head"]) == ((HALF, HALF), (SINGLE, SINGLE))


class Functional(nn.Module):
    """Products and others in `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 2))
        self.norms = nn.Sequential(nn.LayerNorm(2), nn.BatchNorm1d(2))
        self.attention = nn.MultiheadAttention(2, 1)

    def forward(self, x: Any, failure: BaseException | None = None) -> Any:
        self.inside = torch.is_autocast_enabled("cpu")
        if failure is not None:
            raise failure
        self.seen = (x @ self.weight).dtype, torch.bmm(x[None], x[None]).dtype, (x * self.weight).softmax(1).dtype
        self.attended = attention(self.attention, x)[0].dtype
        return self.norms[1](x @ self.weight) + self.norms[0](x @ self.weight)


def test_o1_casts_products_in_forward() -> None:
    model = auto_mixed_precision(Functional(), "O1")
    seen = watch(model.norms)
    with emulate(record=True) as emulation:
        y = model(torch.ones(2, 2, requires_grad=True))
        y.sum().backward()
    assert (*model.seen, model.attended) == (HALF, HALF, SINGLE, HALF)
    assert seen == {"0": (SINGLE, SINGLE), "1": (SINGLE, SINGLE)}
    assert (y.dtype, model.weight.dtype, model.weight.grad.dtype) == (SINGLE, SINGLE, SINGLE)
    assert {o.operator for o in emulation.trace} >= {"aten.mm.default", "aten.bmm.default"}
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("failure", [ZeroDivisionError, KeyboardInterrupt])
def test_o1_leaves_autocast_as_it_was(failure: type[BaseException]) -> None:
    model = auto_mixed_precision(Functional(), "O1")
    for _ in range(2):
        with pytest.raises(failure):
            model(torch.ones(2, 2), failure=failure())
        assert model.inside
        assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_levels_survive_copies_and_state_dicts(level: str) -> None:
    model, x, labels = net()
    auto_mixed_precision(model, level)
    F.cross_entropy(model(x), labels).backward()
    model.eval()
    copied, fresh = copy.deepcopy(model), auto_mixed_precision(Net(), level).eval()
    fresh.load_state_dict(model.state_dict())
    y = model(x)
    assert identical([y, y], [copied(x), fresh(x)])
    with torch.no_grad():
        for p in copied.parameters():
            p.zero_()
    assert not copied(x).any()
    assert identical([y], [model(x)])
    to_float(copied.head, SINGLE)
    assert (copied.head.bias.dtype, model.head.bias.dtype) == (SINGLE, HALF)
    with pytest.raises(ValueError, match=f"model has level {level} already"):
        auto_mixed_precision(copied, level)


@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_recurrent_nets(level: str) -> None:
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.lstm, self.head = nn.Embedding(5, 4), nn.LSTM(4, 3), nn.Linear(3, 2)

        def forward(self, words: Any) -> Any:
            return self.head(recurrent(self.lstm, self.table(words))[1][0][-1])

    model = auto_mixed_precision(Reader(), level)
    seen = watch(model.lstm)
    with emulate(record=True) as emulation:
        y = model(torch.arange(4).reshape(2, 2))
        y.sum().backward()
    assert (y.dtype, seen[""]) == (SINGLE, (HALF, SINGLE if level == "O1" else HALF))
    assert all(p.grad.dtype == SINGLE for p in model.parameters())
    assert "Reader.lstm" in {o.module for o in emulation.trace if o.function == "matmul"}
    copy.deepcopy(model)


def test_scalers_of_levels() -> None:
    env = Environment()
    scaler = loss_scale_manager("O2", environment=env, scale_window=7)
    assert type(scaler) is DynamicLossScaleManager
    assert (scaler.get_scale(), scaler.get_growth_interval()) == (2.0**24, 7)
    assert type(loss_scale_manager("auto")) is DynamicLossScaleManager
    others = [loss_scale_manager(level, environment=env) for level in ("O0", "O1", "O3")]
    assert [*others, loss_scale_manager("auto", device_target="Ascend")] == [None] * 4


# -- the training step -----------------------------------------------------------------------------------------------


class Doubling(nn.Module):
    """outputs = half(x) * half(weight), by way of a sum in half that overflows where told; its gradient is none the wiser."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x: Any, overflow: bool = False) -> Any:
        if overflow:
            large = torch.full((1,), 60000.0).half()
            large + large
        return x.half() * self.weight.half()


def total(outputs: Any, labels: Any) -> Any:
    return (outputs - labels).sum()


def trainer(scaler: Any, **options: Any) -> TrainOneStepWithLossScale:
    model = Doubling()
    return TrainOneStepWithLossScale(model, total, torch.optim.SGD(model.parameters(), lr=1.0), scaler, **options)


def test_a_step() -> None:
    env = Environment()
    step = trainer(GradScaler(init_scale=8.0, environment=env))
    with emulate(env):
        done = step(torch.tensor([0.25, 0.5]), torch.ones(2, dtype=HALF))
    assert (done.loss.item(), done.loss.dtype, done.overflow, done.scale) == (-1.25, SINGLE, False, 8.0)
    assert not done.loss.requires_grad
    assert step.model.weight.tolist() == [0.75, 0.5]


def test_the_order_of_a_step() -> None:
    """What each part of a step finds: a scale of 8, doubled after each step."""
    env, heard = Environment(overflow="saturate"), []
    scaler = GradScaler(init_scale=8.0, growth_interval=1, environment=env)

    def reduce(found: list[Any]) -> None:
        heard.append(("reduce", found[0].tolist(), scaler.get_scale()))

    step = trainer(scaler, reduce=reduce)
    step.model.register_forward_hook(lambda *_: heard.append(("model", str(env.status.flags & Flags.OVERFLOW))))
    step.model.weight.register_hook(
        lambda g: heard.append(("gradient", g.tolist(), str(env.status.flags & Flags.OVERFLOW)))
    )
    step.optimizer.register_step_pre_hook(lambda *_: heard.append(("optimiser", scaler.get_scale())))
    with emulate(env):
        done = step({"x": torch.ones(2), "overflow": True}, 0)
    assert heard == [
        ("model", "OVERFLOW"),
        ("gradient", [8.0, 8.0], "none"),
        ("reduce", [1.0, 1.0], 8.0),
        ("optimiser", 16.0),
    ]
    assert (done.overflow, done.scale) == (False, 8.0)


def test_only_overflows_of_the_backward_pass_count() -> None:
    """Of a plain `GradScaler` those of the forward pass do, too."""
    for forward, scale, overflow in ((True, 2.0, False), (False, 2.0**16, True), (False, 2.0**15, False)):
        env = Environment(overflow="saturate")
        step = trainer(DynamicLossScaleManager(scale, environment=env))
        with emulate(env):
            done = step((torch.full((2,), 1.0), forward), 0)
        assert done.overflow is overflow
        assert torch.isfinite(step.model.weight.grad).all()
        assert step.model.weight.tolist() == ([1.0, 1.0] if overflow else [0.0, 0.0])
        assert step.scaler.get_scale() == (scale / 2 if overflow else scale)
        assert not env.status.flags & Flags.OVERFLOW
    env = Environment(overflow="saturate")
    step = trainer(scaler := GradScaler(init_scale=2.0, environment=env))
    with emulate(env):
        scaler.scale(step.model(torch.ones(2), True).float().sum()).backward()
        scaler.step(step.optimizer)
    assert step.model.weight.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("overflow", ["saturate", "infinity", "nan"])
def test_steps_are_those_of_a_plain_sequence(overflow: str) -> None:
    """From a scale that overflows: which steps are taken, scales and weights."""
    found = []
    for plain in (False, True):
        model, x, labels = net()
        auto_mixed_precision(model, "O2")
        env = Environment(overflow=overflow, rounding="stochastic", seed=4)
        scale = 2.0**19
        scaler = loss_scale_manager("O2", environment=env, init_loss_scale=scale, scale_window=2)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        step = TrainOneStepWithLossScale(model, F.cross_entropy, optimiser, scaler)
        steps = []
        with emulate(env):
            for _ in range(7):
                if plain:
                    optimiser.zero_grad()
                    loss = F.cross_entropy(model(x), labels)
                    env.status.clear("OVERFLOW, INVALID")
                    (loss * scale).backward()
                    stopped = bool(env.status.flags & (Flags.OVERFLOW | Flags.INVALID))
                    for p in model.parameters():
                        p.grad *= 1 / scale
                        stopped |= not bool(torch.isfinite(p.grad).all())
                    if not stopped:
                        optimiser.step()
                    steps.append((scale, stopped, loss.item()))
                    scale = next_scale(scale, [s[1] for s in steps], 2)
                else:
                    done = step(x, labels)
                    steps.append((done.scale, done.overflow, done.loss.item()))
        found.append((steps, values(model)))
    assert found[0][0] == found[1][0]
    assert identical(found[0][1], found[1][1])
    assert {stopped for _, stopped, _ in found[0][0]} == {True, False}


def next_scale(scale: float, overflows: list[bool], window: int) -> float:
    """MindSpore's rule, after steps that did or did not overflow."""
    if overflows[-1]:
        return max(scale / 2, 1.0)
    good = next((i for i, x in enumerate(reversed(overflows)) if x), len(overflows))
    return scale * 2 if good % window == 0 else scale


def test_an_overflow_of_the_reduction_counts() -> None:
    def reduce(found: list[Any]) -> None:
        found[0][0] = torch.inf

    for scaler, overflow in (
        (GradScaler(init_scale=8.0), True),
        (FixedLossScaleManager(8.0), True),
        (FixedLossScaleManager(8.0, drop_overflow_update=False), False),
        (torch.amp.GradScaler("cpu", 8.0), True),
        (None, False),
    ):
        step = trainer(scaler, reduce=reduce)
        done = step(torch.ones(2), torch.zeros(2))
        assert done.overflow is overflow
        assert (step.model.weight[1].item() == 1.0) is overflow
        if type(scaler) in (GradScaler, torch.amp.GradScaler):
            assert scaler.get_scale() == 4.0


@pytest.mark.parametrize("scaler", [None, GradScaler(enabled=False)])
def test_without_a_scale(scaler: Any) -> None:
    called = []
    step = trainer(scaler, reduce=called.append)
    for expected in (0.0, -1.0):  # gradients do not add up
        done = step(torch.ones(2), torch.zeros(2))
        assert (done.overflow, done.scale) == (False, 1.0)
        assert step.model.weight.tolist() == [expected] * 2
    assert len(called) == 2


def test_a_scaler_without_flags_misses_saturation() -> None:
    with softfloat.environment(overflow="saturate") as env:
        for scaler, overflow in ((torch.amp.GradScaler("cpu", 2.0**17), False), (GradScaler(init_scale=2.0**17), True)):
            with emulate(env):
                assert trainer(scaler)(torch.ones(2), 0).overflow is overflow


# -- errors ----------------------------------------------------------------------------------------------------------


def twice() -> None:
    model = nn.Sequential(nn.Sequential(auto_mixed_precision(nn.Linear(2, 2), "O2")))
    auto_mixed_precision(model, "O3")


def bad_loss() -> None:
    model = Doubling()
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    TrainOneStepWithLossScale(model, lambda y, _: y, optimiser)(torch.ones(2), None)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: float32_parameters("net"), "module must be a torch.nn.Module, got str"),
        (lambda: float32_parameters(nn.ReLU(), DOUBLE), "dtype must be one of torch.float32, .*, got torch.float64"),
        (lambda: float32_parameters(nn.ReLU(), "float1"), "dtype must be .*, got 'float1'; did you mean 'float16'"),
        (lambda: float32_parameters(nn.ReLU(), 16), "dtype must be one of torch.float32, .*, got 16"),
        (lambda: float32_parameters(nn.Linear(2, 2), names=["w"]), "names has 'w', .*; accepted: weight, bias"),
        (lambda: float32_parameters(nn.Linear(2, 2), names=3), "names must be names of parameters, .* got 3"),
        (
            lambda: float32_parameters(nn.Sequential(nn.LazyLinear(2))),
            r"module\.0 has parameters without a shape; call",
        ),
        (lambda: to_float(nn.ReLU(), torch.int8), "dtype must be one of torch.float32, .*, got torch.int8"),
        (lambda: to_float(None, HALF), "module must be a torch.nn.Module, got NoneType"),
        (lambda: auto_mixed_precision(nn.ReLU(), "O4"), "level must be one of O0, O1, O2, O3, auto, got 'O4'"),
        (lambda: auto_mixed_precision(nn.ReLU(), 2), "level must be one of O0, O1, O2, O3, auto, got 2"),
        (
            lambda: auto_mixed_precision(nn.ReLU(), "auto", device_target="CPU"),
            "device_target must be one of GPU, Ascend for auto, got 'CPU'",
        ),
        (
            lambda: auto_mixed_precision(nn.ReLU(), "O2", keep_batchnorm_fp32=1),
            "keep_batchnorm_fp32 must be True, False or None, got 1",
        ),
        (
            lambda: auto_mixed_precision(nn.ReLU(), "O2", cast_model_type="float61"),
            "cast_model_type must be one of torch.float32, torch.float16, torch.bfloat16, got 'float61'",
        ),
        (lambda: auto_mixed_precision([], "O2"), "model must be a torch.nn.Module, got list"),
        (twice, r"model\.0\.0 has level O2 already"),
        (lambda: loss_scale_manager("o2"), "level must be one of O0, O1, O2, O3, auto, got 'o2'; did you mean 'O2'"),
        (lambda: trainer("dynamic"), "scaler must be a torch.amp.GradScaler or None, got str"),
        (lambda: trainer(None, reduce=3), "reduce must be a function of a list of gradients or None, got int"),
        (
            lambda: TrainOneStepWithLossScale(len, total, torch.optim.SGD(Doubling().parameters())),
            "model must be a torch.nn.Module, got builtin",
        ),
        (
            lambda: TrainOneStepWithLossScale(Doubling(), None, torch.optim.SGD(Doubling().parameters())),
            "loss_fn must be a function of outputs and labels, got NoneType",
        ),
        (
            lambda: TrainOneStepWithLossScale(Doubling(), total, []),
            "optimizer must be a torch.optim.Optimizer, got list",
        ),
        (bad_loss, r"loss_fn must return a tensor of one number, got \(2,\)"),
    ],
)
def test_errors_name_the_argument(call: Callable[[], Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_what_is_refused_changes_nothing() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.LazyLinear(2))
    with pytest.raises(ValueError, match="without a shape"):
        auto_mixed_precision(model, "O2")
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="names has"):
        float32_parameters(layer, names=["weight", "w"])
    for module in (model[0], layer):
        assert type(module) is nn.Linear
        assert not vars(module)["_forward_pre_hooks"]
    model(torch.ones(1, 2))
    assert auto_mixed_precision(model, "O2")[1].weight.dtype == HALF
