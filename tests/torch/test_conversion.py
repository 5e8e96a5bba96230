"""Modules and steps converted by recipes: bits, names, casts, what is written and what is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 -- after the skip
from torch.nn import functional as F  # noqa: E402

import softfloat  # noqa: E402
from softfloat.accumulators import fma  # noqa: E402
from softfloat.recipes import AlreadyConvertedError, Recipe  # noqa: E402
from softfloat.torch import UnemulatedOperatorError, autocast_lists, convert, emulate, name_scope, private  # noqa: E402


class Mixed(nn.Module):
    """Convolution, norm, activations, residual sums, attention written out."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, stride=2)
        self.norm = nn.LayerNorm(36)
        self.fc = nn.Linear(36, 12)
        self.query = nn.Linear(12, 12)
        self.head = nn.Linear(12, 5)

    def forward(self, x: Any) -> Any:
        hidden = torch.relu_(self.conv(x)).flatten(1)
        hidden = F.gelu(self.fc(self.norm(hidden)))
        mixed = torch.softmax(self.query(hidden) @ hidden.T / 3, -1) @ hidden
        return self.head(hidden + mixed * 0.5)


class Digits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 4, 3, bias=False)
        self.fc = nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.bn(self.conv1(x)), inplace=True), 2)
        return self.fc(torch.tanh(self.conv2(x)).mean((2, 3)))


NETS: dict[str, Callable[[], Any]] = {
    "mixed": Mixed,
    "digits": Digits,
    "perceptron": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Sigmoid(), nn.Linear(8, 5)),
}


def made(name: str) -> tuple[Any, Any, Any]:
    generator = torch.Generator().manual_seed(0)
    net = NETS[name]()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 4)
    return net, torch.randn(6, 1, 8, 8, generator=generator), torch.arange(6) % 5


def everything(converted: Any, *args: Any) -> Recipe:
    """A recipe with all types of a call."""
    types = sorted({x.node.op_type for x in converted.trace(*args).decisions})
    return Recipe(types, vocabulary="aten", extra_types=types)


def gradients(net: Any) -> dict[str, Any]:
    found = {name: x.grad.clone() for name, x in net.named_parameters()}
    net.zero_grad()
    return found


@pytest.mark.parametrize("to", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["mixed", "perceptron"])
def test_all_converted_is_the_model_in_the_low_type(name: str, to: str) -> None:
    """Bit for bit: results and gradients of what `.bfloat16()` makes of it, in emulated arithmetic that is far from PyTorch's."""
    net, x, y = made(name)
    dtype = getattr(torch, to)

    def step(x: Any, y: Any) -> Any:
        return F.cross_entropy(net(x), y)

    converted = convert(step, everything(convert(step, Recipe(), model=net), x, y), model=net, to=to)
    how = {"environment": softfloat.Environment(rounding="RTZ"), "matmul": fma(to), "convolution": fma(to)}
    with emulate(**how):
        loss = converted(x, y)
        loss.backward()
        assert all(x.converts for x in converted.colouring.decisions)
        assert len(converted.colouring.groups) == 1
        low = copy.deepcopy(net).to(dtype)
        low.zero_grad()
        expected = F.cross_entropy(low(x.to(dtype)), y)
        expected.backward()
    found = gradients(net)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, expected.float())
    for key, gradient in gradients(low).items():
        assert gradient.dtype == dtype
        assert torch.equal(found[key], gradient.float()), key


@pytest.mark.parametrize("name", NETS)
def test_without_lists_nothing_changes(name: str) -> None:
    net, x, y = made(name)
    plain = copy.deepcopy(net)
    converted = convert(net, Recipe())
    F.cross_entropy(converted(x), y).backward()
    F.cross_entropy(plain(x), y).backward()
    assert converted.colouring.casts == ()
    for (key, found), expected in zip(gradients(net).items(), gradients(plain).values(), strict=True):
        assert torch.equal(found, expected), key
    for found, expected in zip(net.buffers(), plain.buffers(), strict=True):
        assert torch.equal(found, expected)


class Casts(private.DispatchMode):
    """Counts casts between float32 and a low type."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._to_copy.default:
            self.seen.append((args[0].dtype, kwargs["dtype"]))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("recipe", ["basic", "full", "bert", "unet"])
@pytest.mark.parametrize("name", NETS)
def test_what_runs_is_what_was_coloured(name: str, recipe: str) -> None:
    """With and without emulation: each declared cast once, no other; results near those in float32."""
    net, x, y = made(name)
    converted = convert(net, recipe)
    plain = F.cross_entropy(net(x), y)
    plain.backward()
    expected = gradients(net)
    for emulated in (False, True):
        with emulate() if emulated else Casts() as casts:
            loss = F.cross_entropy(converted(x), y)
            loss.backward()
        assert abs(float(loss.detach() - plain.detach())) < 0.02
        found = gradients(net)
        whole = sum(float(x.norm()) for x in expected.values())
        assert (
            sum(float((found[key] - expected[key]).norm()) for key in expected) < 0.1 * whole
        )  # pools may choose others
        if not emulated:
            low, wide = torch.bfloat16, torch.float32
            declared = [x.to for x in converted.colouring.casts]
            assert casts.seen.count((wide, low)) == declared.count("bfloat16") > 0
            assert casts.seen.count((low, wide)) == declared.count("float32")
            assert len(casts.seen) == len(declared)


def test_products_alone_are_what_casts_by_hand_make_of_them() -> None:
    """Basic on a perceptron; gradients of biases are sums, which it keeps in float32."""
    net, x, y = made("perceptron")

    def linear(layer: Any, x: Any) -> Any:
        return F.linear(x.bfloat16(), layer.weight.bfloat16(), layer.bias.bfloat16()).float()

    converted = convert(net, "basic")
    with emulate(matmul=fma("bfloat16")):
        out = converted(x)
        F.cross_entropy(out, y).backward()
        found = gradients(net)
        by_hand = linear(net[3], torch.sigmoid(linear(net[1], x.flatten(1))))
        F.cross_entropy(by_hand, y).backward()
    expected = gradients(net)
    assert torch.equal(out, by_hand)
    for key in ("1.weight", "3.weight"):
        assert torch.equal(found[key], expected[key])


def test_operators_are_named_by_scope() -> None:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            with name_scope("KEEP_FP32_PRECISION"):
                x = self.fc(x)
            return self.fc(x) * 2

    net = nn.Sequential(nn.Linear(4, 3), Inner())
    found = convert(net, "basic").trace(torch.ones(2, 4))
    products = {
        x.node.path: x.converts for x in found.decisions if x.node.op_type in ("aten.addmm", "aten.mm", "aten.mul")
    }
    assert products == {
        "0/addmm": True,
        "KEEP_FP32_PRECISION/1/fc/addmm": False,
        "1/fc/addmm": True,
        "1/mul": False,
        "gradients/1/mul": False,
        "gradients/1/fc/mm": True,
        "gradients/1/fc/mm_1": True,
        "gradients/KEEP_FP32_PRECISION/1/fc/mm": False,
        "gradients/KEEP_FP32_PRECISION/1/fc/mm_1": False,
        "gradients/0/mm": True,
    }


def test_scopes_force_what_no_list_has() -> None:
    def step(x: Any) -> Any:
        with name_scope("outer"), name_scope("FORCE_BF16_PRECISION"):
            y = x.exp()
        return y.exp()

    found = convert(step, "basic").trace(torch.ones(2))
    assert {x.node.path: x.converts for x in found.decisions} == {"outer/FORCE_BF16_PRECISION/exp": True, "exp": False}


def test_weights_gradients_alone_are_gradients_of_filters() -> None:
    """No input wants one in the first layer."""
    net, x, _ = made("digits")
    found = convert(net, Recipe(["Conv2DBackpropFilter"])).trace(x)
    variants = {
        d.node.path: (d.node.variant, d.converts)
        for d in found.decisions
        if "backward" in d.node.op_type and "conv" in d.node.path
    }
    assert variants == {
        "gradients/conv2/convolution_backward": ("", False),
        "gradients/conv1/convolution_backward": ("filter", True),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("module", "shape", "variant", "rank"),
    [
        (nn.Conv1d(2, 3, 2), (1, 2, 5), "", 3),
        (nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4), "", 5),
        (nn.Conv2d(2, 4, 2, groups=2), (1, 2, 4, 4), "depthwise", 4),
        (nn.ConvTranspose2d(2, 4, 2), (1, 2, 4, 4), "transposed", 4),
        (nn.ReLU6(), (3,), "relu6", 1),
    ],
)
def test_variants(module: Any, shape: tuple[int, ...], variant: str, rank: int) -> None:
    node = convert(module, "basic").trace(torch.ones(shape)).decisions[0].node
    assert (node.variant, node.rank) == (variant, rank)


def test_variants_by_arguments() -> None:
    def step(x: Any) -> Any:
        return torch.max(x.expand(2, 3).pow(2), x.expand(2, 2, 3).pow(3))

    found = {d.node.name: d.node.variant for d in convert(step, "basic").trace(torch.ones(2, 3)).decisions}
    assert found == {"expand": "same", "pow": "2", "expand_1": "", "pow_1": "", "maximum": ""}


def test_statistics_and_parameters_of_norms() -> None:
    net, x, _ = made("digits")
    converted = convert(net, "full")
    before = copy.deepcopy(net.bn)
    converted(x)
    node = converted.colouring["bn/native_batch_norm"].node
    assert (node.wide_inputs, node.wide_outputs) == ((1, 2, 3, 4), (1, 2))
    assert converted.colouring["bn/native_batch_norm"].converts
    assert net.bn.num_batches_tracked == 1
    assert not torch.equal(net.bn.running_mean, before.running_mean)
    assert net.bn.running_mean.dtype == torch.float32
    net.eval()
    kept = net.bn.running_mean.clone()
    converted(x)
    assert torch.equal(net.bn.running_mean, kept)


LAYER_NORM = ["HabanaLayerNorm", "HabanaLayerNormGrad"]


@pytest.mark.parametrize(("kept", "emulated"), [(LAYER_NORM[0], True), (LAYER_NORM[1], True), (LAYER_NORM[1], False)])
def test_statistics_pass_between_types(kept: str, emulated: bool) -> None:
    """PyTorch's own norms keep them in the low type, emulated ones in float32."""
    net, x, y = made("mixed")
    F.cross_entropy(net(x), y).backward()
    expected = gradients(net)
    converted = convert(net, Recipe(LAYER_NORM, non_convertible_exceptions=[(".*", kept)]))
    with emulate() if emulated else torch.enable_grad():
        F.cross_entropy(converted(x), y).backward()
    assert len(converted.colouring.converted) == 1
    for key, gradient in gradients(net).items():
        assert float((gradient - expected[key]).norm()) <= 0.03 * float(expected[key].norm()), key


def test_what_a_step_writes_to_too_early_is_what_pytorch_refuses() -> None:
    net = nn.Linear(1, 1)
    net.register_buffer("count", torch.ones(1))

    def step(x: Any) -> Any:
        y = net(x) * net.count
        net.count.add_(4)
        return y

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        step(torch.ones(1, 1)).backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        convert(step, "full", model=net)(torch.ones(1, 1))


class Stashed(torch.autograd.Function):
    """A product whose gradient is by what the factor has become."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: Any) -> Any:
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * ctx.factor, None


def test_what_is_written_in_the_forward_pass_is_so_in_the_backward_pass() -> None:
    net = nn.Linear(1, 1, bias=False)
    net.register_buffer("count", torch.ones(1))

    def step(x: Any) -> Any:
        y = Stashed.apply(net(x), net.count)
        net.count.add_(4)
        return y

    converted = convert(step, Recipe(), model=net)
    for run in (step, converted):
        net.count.fill_(1)
        net.zero_grad()
        run(torch.ones(1, 1)).backward()
        assert (net.count.item(), net.weight.grad.item()) == (5, 5)


def test_what_wants_a_gradient_is_asked_at_each_call() -> None:
    net = nn.Linear(2, 2)
    converted = convert(net, "basic")
    x = torch.ones(1, 2)
    converted(x).sum().backward()
    x.requires_grad_()
    net.weight.requires_grad_(False)
    net.zero_grad()
    converted(x).sum().backward()
    assert x.grad is not None
    assert net.weight.grad is None


def test_calls_are_traced_once_for_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.Dropout())
    calls = 0

    def step(x: Any, scale: float = 1.0) -> Any:
        nonlocal calls
        calls += 1
        return {"out": net(x) * scale, "scale": scale}

    converted = convert(step, "basic", model=net)
    with pytest.raises(ValueError, match="nothing is traced before the first call"):
        _ = converted.colouring
    x = torch.ones(2, 3)
    assert converted(x)["scale"] == 1.0
    converted(x + 1)
    assert calls == 1
    converted(x, scale=2.0)
    assert calls == 2
    converted(torch.ones(5, 3))
    net.eval()
    converted(x)
    with torch.no_grad():
        assert not converted(x)["out"].requires_grad
    assert calls == 5
    assert converted(x)["out"].requires_grad


def test_arguments_that_are_equal_and_differ_are_told_apart() -> None:
    converted = convert(lambda x, how: x / how if isinstance(how, float) else x + how, Recipe())
    x = torch.ones(1)
    assert [converted(x, how).item() for how in (2, 2.0, True, 1, 0.0, -0.0)] == [
        3,
        0.5,
        2,
        2,
        float("inf"),
        -float("inf"),
    ]
    with pytest.raises(
        TypeError, match=r"arguments must be tensors, or hashable, as numbers and strings are, got \{1\}"
    ):
        converted(x, {1})


@pytest.mark.parametrize(
    "step",
    [
        lambda net, x: x,
        lambda net, x: x.view(-1),
        lambda net, x: (net(x),) * 2,
        lambda net, x: (net[1].bias, net(x)),
        lambda net, x: {"a": [net(x), 1, "text", None], "b": x.argmax()},
        lambda net, x: net(x).split(2),
        lambda net, x: net(x).detach(),
        lambda net, x: None,
    ],
)
def test_what_steps_may_return(step: Any) -> None:
    net, x, _ = made("perceptron")
    converted = convert(lambda x: step(net, x), Recipe(), model=net)
    found, places = private.flattened(converted(x))
    expected, expected_places = private.flattened(step(net, x))
    assert places == expected_places
    for one, other in zip(found, expected, strict=True):
        if not isinstance(one, torch.Tensor):
            assert one == other
            continue
        assert torch.equal(one, other)
        assert one.requires_grad == other.requires_grad
    if any(isinstance(one, torch.Tensor) and one.requires_grad for one in found):
        sum(x.sum() for x in found if isinstance(x, torch.Tensor) and x.requires_grad).backward()
        got = gradients(net)
        sum(x.sum() for x in expected if isinstance(x, torch.Tensor) and x.requires_grad).backward()
        for key, gradient in gradients(net).items():
            assert torch.equal(got[key], gradient)


def test_arguments_that_a_step_writes_to_are_written() -> None:
    x = torch.ones(2)
    assert convert(lambda x: x.mul_(3).add(1), "full")(x).tolist() == [4, 4]
    assert x.tolist() == [3, 3]


def test_random_numbers_are_new_at_each_call() -> None:
    net = nn.Dropout()
    converted = convert(net, Recipe())
    x = torch.ones(64)
    torch.manual_seed(0)
    first, second = converted(x), converted(x)
    torch.manual_seed(0)
    assert torch.equal(first, net(x))
    assert not torch.equal(first, second)


def test_gradients_of_arguments_and_of_scaled_losses() -> None:
    net, x, y = made("perceptron")
    x.requires_grad_()
    converted = convert(lambda x: F.cross_entropy(net(x), y), Recipe(), model=net)
    (converted(x) * 8).backward()
    found = x.grad.clone()
    x.grad = None
    F.cross_entropy(net(x), y).mul(8).backward()
    assert torch.equal(found, x.grad)


def test_tensors_from_elsewhere_are_read_at_each_call() -> None:
    weight = torch.tensor([1.0, 2.0])
    converted = convert(lambda x: x * weight, Recipe(["Mul"]))
    assert converted(torch.ones(2)).tolist() == [1, 2]
    weight.mul_(3)
    assert converted(torch.ones(2)).tolist() == [3, 6]
    assert converted.colouring.graph.types["constants/_tensor_constant0"] == "float32"
    weight.requires_grad_()
    with pytest.raises(
        ValueError, match=r"neither an argument nor a parameter of the model; make it one, got one of shape \(2,\)"
    ):
        convert(lambda x: x * weight, "basic")(torch.ones(2))


def test_parameters_changed_before_the_backward_pass_are_noticed() -> None:
    net, x, y = made("perceptron")
    loss = F.cross_entropy(convert(net, "basic")(x), y)
    with torch.no_grad():
        net[3].weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_training_converges() -> None:
    net, x, y = made("digits")
    converted = convert(lambda x, y: F.cross_entropy(net(x), y), "full", model=net)
    optimizer = torch.optim.SGD(net.parameters(), 0.2, momentum=0.9)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = converted(x, y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]


def test_the_environment_names_recipe_and_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOFTFLOAT_BF16_CONVERSION", "bert")
    monkeypatch.setenv("SOFTFLOAT_BF16_DUMP_PATH", str(tmp_path / "used.json"))
    net, x, _ = made("perceptron")
    convert(net)(x)
    assert Recipe.load(tmp_path / "used.json") == Recipe.bert()
    verdicts = json.loads((tmp_path / "used.verdicts.json").read_text())["verdicts"]
    assert {"name": "1/addmm", "verdict": "convert"}.items() <= verdicts[2].items()


# -- what is refused ------------------------------------------------------------------------------------------------


def test_autocast_and_a_recipe_are_refused() -> None:
    net, x, _ = made("perceptron")
    converted = convert(net, "basic")
    for block in (torch.autocast("cpu", torch.bfloat16), autocast_lists()):
        with block:
            with pytest.raises(ValueError, match="a recipe and autocast both choose"):
                converted(x)
            with pytest.raises(ValueError, match="a recipe and autocast both choose"):
                convert(net, "basic")
    converted(x)

    def step(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return net(x)

    def listed(x: Any) -> Any:
        with autocast_lists():
            return net(x)

    for each in (step, listed):
        with pytest.raises(AlreadyConvertedError, match="is bfloat16"):
            convert(each, "basic", model=net)(x)


def test_converted_models_are_refused() -> None:
    net, x, _ = made("perceptron")
    with pytest.raises(AlreadyConvertedError, match=r"tensor 'parameters/1\.weight' is float16"):
        convert(net.half(), "basic")(x.half())


def test_arguments_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOFTFLOAT_BF16_CONVERSION", raising=False)
    net, _, _ = made("perceptron")
    for make, kind, message in (
        (lambda: convert(net), ValueError, "recipe must be given, or named by .* SOFTFLOAT_BF16_CONVERSION"),
        (lambda: convert(3, "basic"), TypeError, "target must be a torch.nn.Module or a callable, got 3"),
        (lambda: convert(print, "basic", model=3), TypeError, "model must be a torch.nn.Module or None, got 3"),
        (lambda: convert(net, "basic", model=nn.ReLU()), ValueError, "model must be left out"),
        (
            lambda: convert(net, "basic", to="float8_e5m2"),
            ValueError,
            "to must be one of torch.bfloat16, torch.float16",
        ),
        (lambda: convert(net, "Full"), ValueError, "recipe must be one of .*got 'Full'; did you mean 'full'"),
        (lambda: convert(net, 3), TypeError, "recipe must be a Recipe"),
        (lambda: name_scope(3).__enter__(), TypeError, "name must be str, got 3"),
    ):
        with pytest.raises(kind, match=message):
            make()  # type: ignore[no-untyped-call]


def test_operators_that_widen_are_refused_by_name() -> None:
    @torch.library.custom_op("softfloat_tests::widened", mutates_args=())
    def widened(x: torch.Tensor) -> torch.Tensor:
        return x.float() * 2

    widened.register_fake(lambda x: torch.empty_like(x, dtype=torch.float32))
    recipe = Recipe(["softfloat_tests.widened"], extra_types=["softfloat_tests.widened"])
    with pytest.raises(
        NotImplementedError, match=r"made torch\.float32 of operands in bfloat16; keep softfloat_tests\.widened"
    ):
        convert(widened, recipe)(torch.ones(2))


def test_what_is_not_emulated_is_named_with_its_node() -> None:
    def step(x: Any) -> Any:
        with name_scope("a"):
            return torch.linalg.det(x @ x)

    recipe = Recipe([], convertible_exceptions=[(".*det.*", "")])
    with emulate(), pytest.raises(UnemulatedOperatorError) as caught:
        convert(step, recipe)(torch.eye(2))
    assert any("which computes in bfloat16" in note for note in caught.value.__notes__)


def test_steps_with_control_flow_on_values_are_refused() -> None:
    with pytest.raises(Exception, match="data-dependent"):
        convert(lambda x: x if x.sum() > 0 else -x, "basic")(torch.ones(2))
