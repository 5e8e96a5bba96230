"""Training with recipes: every product of a layer is the one that `softfloat.scaling` makes of the same tensors."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 -- after the skip
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import softfloat  # noqa: E402 -- after the skip
from softfloat import Environment, Flags, bits  # noqa: E402
from softfloat.accumulators import chunked, fma  # noqa: E402
from softfloat.bits.windows import Geometry  # noqa: E402
from softfloat.scaling import (  # noqa: E402
    RECIPES,
    Operand,
    Product,
    convolution_matrices,
    from_microxcaling,
    input_gradient_matrices,
    matmul,
    nvfp4_scaling,
    tensor_scaling,
    weight_gradient_matrices,
)
from softfloat.torch import UnemulatedOperatorError, emulate  # noqa: E402

PLAIN = nvfp4_scaling(stochastic=False)
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}


def drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0, grad: bool = False) -> torch.Tensor:
    made = torch.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32)).to(dtype)
    return made.requires_grad_(grad)


def numbers(x: torch.Tensor) -> np.ndarray:
    return x.detach().float().numpy()


def product(first: np.ndarray, second: np.ndarray, how: Product, dtype: torch.dtype, c: Any = None) -> np.ndarray:
    """By `softfloat.scaling`, rounded to a tensor's format, as numbers."""
    addend = None if c is None else np.broadcast_to(c, (*first.shape[:-1], second.shape[-1])).astype(np.float32)
    codes, _ = matmul(first, second, how, None if addend is None else addend.view(np.uint32))
    return np.asarray(bits.decode(bits.convert(codes, "float32", NAMES[dtype])[0], NAMES[dtype]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "recipe", [PLAIN, RECIPES["mxfp8_hybrid"], RECIPES["deepseek_v3"], RECIPES["torchao_rowwise"]], ids=str
)
def test_linear_layers(recipe: Any, dtype: torch.dtype) -> None:
    x, w, b, g = (
        drawn(*shape, dtype=dtype, seed=i, grad=i < 3) for i, shape in enumerate([(20, 24), (6, 24), (6,), (20, 6)])
    )
    with emulate(quantize=recipe):
        y = functional.linear(x, w, b)
        y.backward(g)
    np.testing.assert_array_equal(numbers(y), product(numbers(x), numbers(w).T, recipe.forward, dtype, numbers(b)))
    np.testing.assert_array_equal(numbers(x.grad), product(numbers(g), numbers(w), recipe.input_gradient, dtype))
    np.testing.assert_array_equal(numbers(w.grad), product(numbers(g).T, numbers(x), recipe.weight_gradient, dtype))


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize(
    "recipe", [RECIPES["mxfp8_hybrid"], RECIPES["torchao_rowwise"], RECIPES["fp8_blocks"]], ids=str
)
def test_weights_in_either_layout(recipe: Any, columns: bool) -> None:
    """Autograd multiplies in one order or the other; operands have formats, and scales an order, of their own."""
    x, w, g = drawn(20, 24, grad=True), drawn(24, 6, seed=1, grad=True), drawn(20, 6, seed=2)
    with emulate(quantize=recipe):
        left, right = (v.t().contiguous().t() if columns else v * 1 for v in (x, w))
        (left @ right).backward(g)
    np.testing.assert_array_equal(
        numbers(x.grad), product(numbers(g), numbers(w).T, recipe.input_gradient, torch.float32)
    )
    transposed = product(numbers(g).T, numbers(x), recipe.weight_gradient, torch.float32)
    np.testing.assert_array_equal(numbers(w.grad), transposed.T)


@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("options", [{"padding": 1}, {"stride": 2, "groups": 2}], ids=str)
def test_convolutions(dtype: torch.dtype, options: dict[str, int]) -> None:
    x = drawn(3, 4, 5, 6, dtype=dtype, grad=True)
    w = drawn(8, 4 // options.get("groups", 1), 3, 2, dtype=dtype, seed=1, grad=True)
    bias = drawn(8, dtype=dtype, seed=2, grad=True)
    with emulate(quantize=PLAIN):
        y = functional.conv2d(x, w, bias, **options)
        g = drawn(*y.shape, dtype=dtype, seed=3)
        y.backward(g)
    geometry = Geometry(**{"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "layout": "NCHW", **options})
    made = convolution_matrices(numbers(x), numbers(w), geometry)
    c = numbers(bias).reshape(-1, 1, made.second.shape[-1]) if made.first.ndim == 3 else numbers(bias)
    np.testing.assert_array_equal(numbers(y), made.finish(product(made.first, made.second, PLAIN.forward, dtype, c)))
    made = input_gradient_matrices(numbers(g), numbers(w), x.shape, geometry)
    expected = made.finish(product(made.first, made.second, PLAIN.input_gradient, dtype))
    np.testing.assert_array_equal(numbers(x.grad), expected)
    made = weight_gradient_matrices(numbers(x), numbers(g), w.shape, geometry)
    expected = made.finish(product(made.first, made.second, PLAIN.weight_gradient, dtype))
    np.testing.assert_array_equal(numbers(w.grad), expected)
    assert bias.grad is not None
    torch.testing.assert_close(bias.grad.float(), g.float().sum((0, 2, 3)), rtol=0.02, atol=0.1)


@pytest.mark.parametrize("kind", [nn.Conv1d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d])
def test_other_convolutions(kind: Any) -> None:
    """Gradients near those of float32; each operand has the name of what it is."""
    torch.manual_seed(1)
    layer = kind(4, 6, 3, padding=1)
    x = drawn(2, 4, *[5] * (layer.weight.ndim - 2), grad=True)
    (layer(x).square().sum()).backward()
    expected = [x.grad.clone(), layer.weight.grad.clone()]
    x.grad = layer.weight.grad = None
    with emulate(quantize="mxfp8_hybrid") as emulation:
        layer(x).square().sum().backward()
    for found, wanted in zip([x.grad, layer.weight.grad], expected, strict=True):
        assert (found - wanted).norm() < 0.1 * wanted.norm()
    amax = {key.split(" ", 1)[1]: report.largest for key, report in emulation.scalings.items()}
    assert amax["forward input"] == amax["weight_gradient input"] == float(x.detach().abs().max())
    assert amax["forward weight"] == amax["input_gradient weight"] == float(layer.weight.detach().abs().max())
    assert amax["input_gradient gradient"] == amax["weight_gradient gradient"]


PRODUCTS = {
    "mm": lambda x, w: x @ w,
    "mm of columns": lambda x, w: x.t().contiguous().t() @ w.t().contiguous().t(),
    "addmm": lambda x, w: torch.addmm(torch.ones(5), x, w, beta=0.5, alpha=2.0),
    "bmm": lambda x, w: torch.bmm(x[None], w[None]),
    "baddbmm": lambda x, w: torch.baddbmm(torch.ones(1, 1, 5), x[None], w[None]),
    "addbmm": lambda x, w: torch.addbmm(torch.ones(5), x[None], w[None]),
    "mv": lambda x, w: x @ w[:, 0],
    "linear of three axes": lambda x, w: functional.linear(x[None], w.t()),
    "einsum": lambda x, w: torch.einsum("ik,kj->ij", x, w),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_roles_of_operands(name: str) -> None:
    """Whatever the operator and the layout, and where all sizes are equal: inputs, weights and gradients are told apart."""
    for sizes in ((7, 3, 5), (5, 5, 5)):
        x, w = drawn(sizes[0], sizes[1], grad=True), drawn(sizes[1], sizes[2], seed=1, grad=True)
        with emulate(quantize="current_scaling", matmul=fma("float32")) as emulation:
            y = PRODUCTS[name](3 * x, w)
            g = drawn(*y.shape, seed=2) * 100
            y.backward(g)
        found = {key: report.largest for key, report in emulation.scalings.items()}
        weights = w[:, 0] if name == "mv" else w
        expected = {
            "forward input": float((3 * x).detach().abs().max()),
            "forward weight": float(weights.detach().abs().max()),
            "input_gradient gradient": float(g.abs().max()),
            "input_gradient weight": float(weights.detach().abs().max()),
            "weight_gradient gradient": float(g.abs().max()),
            "weight_gradient input": float((3 * x).detach().abs().max()),
        }
        if name == "mv":  # whose matrix has a gradient that is no sum
            expected = {k: v for k, v in expected.items() if not k.startswith("input_gradient")}
        assert {k: v for k, v in found.items() if k in expected} == expected
        assert found.keys() == expected.keys()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


def gradients(net: nn.Module, x: torch.Tensor, run: Any = None, **options: Any) -> tuple[Any, list[torch.Tensor]]:
    net.zero_grad()
    with emulate(**options) as emulation:
        (run or net)(x).square().sum().backward()
    return emulation, [p.grad.clone() for p in net.parameters()]


@pytest.mark.parametrize(
    ("choice", "modules"),
    [
        ({"first": "mxfp8"}, {"Net.first"}),
        ({"f*": None, "*": RECIPES["mxfp8"]}, {"Net.second"}),
        (lambda path: "mxfp8" if path.endswith("second") else None, {"Net.second"}),
        ("mxfp8", {"Net.first", "Net.second"}),
    ],
)
def test_chosen_modules(choice: Any, modules: set[str]) -> None:
    emulation, _ = gradients(Net(), drawn(8, 16), quantize=choice)
    assert {key.split(" ")[0] for key in emulation.scalings} == modules


def test_names_are_those_of_pytorch() -> None:
    """Whichever part is called first: what it was called on its own is forgotten when the whole is."""
    net = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    with emulate(quantize={"1.*": None, "*": "mxfp8"}) as emulation:
        with torch.no_grad():
            net[1](drawn(2, 4))
        net(drawn(2, 4)).sum().backward()
    assert {key.split(" ")[0] for key in emulation.scalings if "gradient" in key} == {"Sequential.0"}
    assert emulation.matched == {"1.*": ("1.0", "1.1"), "*": ("", "0", "1")}
    assert repr(emulation) == "<emulate: '1.*' for '1.0', '1.1'; '*' for '', '0', '1'>"
    assert sorted(sum(emulation.matched.values(), ())) == sorted(name for name, _ in net.named_modules())


def _refused_early(y: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        y.backward()


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"head": None, "*": "mxfp8"}, "'head'] fits no module of '', 'first', 'second'; names are"),
        ({"Net.first": "mxfp8"}, "'Net.first'] fits no module of .*; did you mean 'first'"),
        ({"frist": None, "*": "mxfp8"}, "'frist'] fits no module of .*; did you mean 'first'"),
        ({"*": "mxfp8", "first": None}, r"'first'] comes after '\*', which fits the same modules"),
    ],
)
def test_patterns_that_choose_nothing(choice: Any, message: str) -> None:
    net, x = Net(), drawn(8, 16)
    with pytest.raises(ValueError, match=message), emulate(quantize=choice):
        _refused_early(net(x).sum(), message)
    with pytest.raises(ValueError, match=message), emulate(quantize=choice), torch.no_grad():
        net(x)
    with emulate(quantize=choice):  # no module is called, so nothing is known
        x @ x.t()


def test_random_numbers_are_addressed() -> None:
    """The same seed, the same gradients, whatever the number of threads; another, others. The forward pass draws nothing."""
    net, x = Net(), drawn(8, 16)
    _, once = gradients(net, x, quantize="nvfp4", environment=Environment(seed=1))
    threads = softfloat.get_num_threads()
    softfloat.set_num_threads(1)
    try:
        _, again = gradients(net, x, quantize="nvfp4", environment=Environment(seed=1))
    finally:
        softfloat.set_num_threads(threads)
    _, other = gradients(net, x, quantize="nvfp4", environment=Environment(seed=2))
    assert all(map(torch.equal, once, again))
    assert not all(map(torch.equal, once, other))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_functions(reentrant: bool) -> None:
    """Of the second linear layer all sizes are equal, and its inputs are computed again: they are known by their new places."""
    net, x = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), Net()), drawn(16, 16, grad=True)
    _, plain = gradients(net, x, quantize=PLAIN)
    _, again = gradients(net, x, lambda v: checkpoint(net, v, use_reentrant=reentrant), quantize=PLAIN)
    assert all(map(torch.equal, plain, again))
    with pytest.raises(UnemulatedOperatorError, match="delayed scaling moves on with each product"):
        gradients(net, x, lambda v: checkpoint(net, v, use_reentrant=reentrant), quantize="delayed_scaling")


def test_delayed_scaling_learns_from_step_to_step() -> None:
    net, recipe = Net(), tensor_scaling(delayed=True, history=2)
    with emulate(quantize=recipe, matmul=fma("float32"), count=True) as emulation:
        shares = []
        for size in (1.0, 1.0, 512.0, 512.0):
            before = emulation.scalings.get("Net.first forward input")
            net(size * drawn(8, 16)).sum().backward()
            now = emulation.scalings["Net.first forward input"]
            shares.append((now.saturated - (before.saturated if before else 0), now.scales[0]))
    largest = float(drawn(8, 16).abs().max())
    assert [n > 0 for n, _ in shares] == [False, False, True, False]
    assert shares[0][1] == 1.0
    assert shares[1][1] == shares[2][1] == float(np.float32(1) / (np.float32(448) / np.float32(largest)))
    assert shares[3][1] == pytest.approx(512 * shares[1][1], rel=1e-6)


def test_reports() -> None:
    net, x = Net(), drawn(8, 16)
    emulation, _ = gradients(net, x, quantize="mxfp4", count=True)
    report = emulation.scalings["Net.first forward input"]
    assert (report.calls, report.elements, report.amax) == (1, 128, float(x.abs().max()))
    blocks, flags, counts = bits.quantize(x.numpy(), "mxfp4", count=True)
    assert (report.saturated, report.underflowed) == (counts.saturated.sum(), counts.underflowed.sum())
    assert report.saturated_share == counts.saturated.sum() / 128
    assert report.flags == Flags(int(np.bitwise_or.reduce(flags, axis=None)))
    scales = bits.decode(blocks.scales, "float8_e8m0fnu")
    assert report.scales == (scales.min(), scales.max())
    quiet, _ = gradients(net, x, quantize="mxfp4")
    assert quiet.scalings["Net.first forward input"].saturated_share is None
    assert emulation.environment.status.flags & Flags.OVERFLOW == 0


def test_accumulators() -> None:
    """Given ones come before the recipe's; a function gets the format of the first operand's elements."""
    seen = []

    def choose(fmt: Any) -> Any:
        seen.append(fmt.name)
        return chunked(4, "bfloat16", "float32")

    x, w = drawn(4, 16), drawn(16, 4, seed=1)
    with emulate(quantize="mxfp8_hybrid", matmul=choose):
        y = x @ w
    assert seen == ["float8_e4m3fn"]
    how = RECIPES["mxfp8_hybrid"].summed_by(chunked(4, "bfloat16", "float32")).forward
    np.testing.assert_array_equal(numbers(y), product(numbers(x), numbers(w), how, torch.float32))
    with (
        pytest.raises(UnemulatedOperatorError, match="float16"),
        emulate(quantize="mxfp8", matmul=softfloat.accumulators.amp("half")),
    ):
        x @ w


def test_records_repeat() -> None:
    with emulate(quantize="mxfp8", record=True) as emulation:
        drawn(4, 16, dtype=torch.bfloat16) @ drawn(16, 4, dtype=torch.bfloat16, seed=1)
    products = [x for x in emulation.trace if x.function == "multiplied"]
    assert len(products) == 1
    np.testing.assert_array_equal(products[0].repeat(), products[0].result)


def test_specs_of_microxcaling() -> None:
    specs = {"scale_bits": 8, "w_elem_format": "fp4", "a_elem_format": "fp8_e4m3", "block_size": 32, "bfloat": 16}
    recipe, x = from_microxcaling(specs), drawn(8, 16)
    with pytest.raises(UnemulatedOperatorError, match="is for bfloat16 tensors"):
        gradients(Net(), x, quantize=recipe)
    with pytest.raises(UnemulatedOperatorError, match="rounds nearest_away between products"):
        gradients(Net().bfloat16(), x.bfloat16(), quantize=recipe)
    emulation, _ = gradients(
        Net().bfloat16(), x.bfloat16(), quantize=recipe, environment=Environment(rounding="nearest_away")
    )
    assert len(emulation.scalings) == 10


# -- refused ---------------------------------------------------------------------------------------------------------


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x @ x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return gradient @ x.t()


def test_what_is_refused() -> None:
    x = drawn(4, 4, grad=True)
    with pytest.raises(UnemulatedOperatorError, match="got torch"), emulate(quantize="mxfp8"):
        x.double() @ x.double()
    with pytest.raises(UnemulatedOperatorError, match="has no seed"):
        gradients(Net(), drawn(8, 16), quantize="nvfp4")
    with pytest.raises(UnemulatedOperatorError, match="is none of the gradients"), emulate(quantize="mxfp8"):
        Square.apply(x).sum().backward()
    with emulate(quantize="mxfp8"):
        (g,) = torch.autograd.grad((x @ x).square().sum(), x, create_graph=True)
        with pytest.raises(UnemulatedOperatorError, match="is none of the gradients"):
            g.sum().backward()
    for wrong, message in ((3, "quantize must be a softfloat.scaling.Recipe"), ({1: "mxfp8"}, "patterns"), ("fp8", "one of"),
                           ("nvpf4", "did you mean 'nvfp4'"), ({"*": "MXFP8"}, "did you mean 'mxfp8'"),
                           (Operand(), "quantize must be")):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=message):
            emulate(quantize=wrong)
    with pytest.raises(ValueError, match="quantize must return a recipe"), emulate(quantize=lambda path: 3):
        x @ x


def test_threads_do_not_compute_without_the_recipe() -> None:
    caught = []

    def work() -> None:
        try:
            drawn(2, 2) @ drawn(2, 2)
        except UnemulatedOperatorError as error:
            caught.append(error)

    with emulate(quantize="mxfp8"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(caught) == 1


def test_integers_and_products_without_recipes_compute_as_ever() -> None:
    with emulate(quantize={"nothing": "mxfp8"}) as emulation:
        assert torch.equal(drawn(3, 3) @ drawn(3, 3), drawn(3, 3) @ drawn(3, 3))
    with emulate(quantize="mxfp8") as emulation:
        assert (torch.ones(2, 2, dtype=torch.int64) @ torch.ones(2, 2, dtype=torch.int64)).tolist() == [[2, 2], [2, 2]]
    assert not emulation.scalings
