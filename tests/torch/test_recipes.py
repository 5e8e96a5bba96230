"""Training with recipes: every product of a layer is the one that `softfloat.scaling` makes of the same tensors."""

from __future__ import annotations

import re
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
from softfloat.bits.sums.windows import Geometry  # noqa: E402
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
from softfloat.torch import UnemulatedOperatorError, emulate, private  # noqa: E402
from softfloat.torch.operators.plans import planned  # noqa: E402
from softfloat.torch.operators.scaled import SCALED  # noqa: E402
from softfloat.torch.operators.scaled_mm import SCALED_PRODUCTS  # noqa: E402
from softfloat.torch.operators.tables import OPAQUE, names  # noqa: E402

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


# -- products within other operators ---------------------------------------------------------------------------------


def roles(emulation: emulate) -> set[str]:
    """Products and operands that were quantised, of whatever module."""
    return {" ".join(key.split(" ")[-2:]) for key in emulation.scalings}


ALL_ROLES = {f"{product} {operand}" for product, both in {
    "forward": ("input", "weight"), "input_gradient": ("gradient", "weight"), "weight_gradient": ("gradient", "input")
}.items() for operand in both}  # fmt: skip


def by_products(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention as PyTorch's documentation writes it, both operands scaled first."""
    scale = q.shape[-1] ** -0.25
    return torch.softmax((q * scale) @ (k * scale).transpose(-2, -1), -1) @ v


@pytest.mark.parametrize("dtype", DTYPES)
def test_attention(dtype: torch.dtype) -> None:
    """The bits of its two products and a softmax, and of their gradients."""
    g, found = drawn(1, 2, 8, 16, seed=4).to(dtype), []
    for attention in (functional.scaled_dot_product_attention, by_products):
        q, k, v = (drawn(1, 2, 8, 16, dtype=dtype, seed=seed, grad=True) for seed in range(3))
        with emulate(quantize="mxfp8") as emulation:
            y = attention(q, k, v)
            y.backward(g)
        assert roles(emulation) == ALL_ROLES
        found.append([y.detach(), q.grad, k.grad, v.grad])
    assert all(map(torch.equal, *found))
    assert torch.backends.cuda.flash_sdp_enabled()
    assert torch.backends.mha.get_fastpath_enabled()
    assert "lstm" not in vars(torch._VF)


GROUPED = {
    "rows": ((9, 32), (3, 32, 8), [2, 2, 9]),
    "columns": ((2, 5, 32), (32, 8), [3, 8]),
    "k": ((5, 64), (64, 8), [32, 64]),
    "batch": ((2, 5, 32), (2, 32, 8), None),
}


@pytest.mark.skipif(not hasattr(torch, "_grouped_mm"), reason="PyTorch without grouped products")
@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("name", GROUPED)
def test_grouped_products(name: str, dtype: torch.dtype) -> None:
    """Each group is a product with scales of its own."""
    first, second, ends = GROUPED[name]
    a, b = drawn(*first, dtype=dtype), drawn(*second, dtype=dtype, seed=1)
    offs = None if ends is None else torch.tensor(ends, dtype=torch.int32)
    spans = [slice(s, e) for s, e in zip([0, *(ends or [])], ends or [], strict=False)]
    whole = {
        "rows": lambda: torch.cat([a[s] @ b[i] for i, s in enumerate(spans)]),
        "columns": lambda: torch.cat([a[i] @ b[:, s] for i, s in enumerate(spans)], 1),
        "k": lambda: torch.stack([a[:, s] @ b[s] for s in spans]),
        "batch": lambda: torch.stack([x @ y for x, y in zip(a, b, strict=True)]),
    }[name]
    for recipe in ("current_scaling", None):
        with emulate(quantize=recipe, matmul=fma("float32")) as emulation:
            found, expected = torch._grouped_mm(a, b, offs=offs), whole()
        assert torch.equal(found, expected) or (dtype == torch.float32 and recipe is None)
        assert roles(emulation) == ({"forward input", "forward weight"} if recipe else set())


@pytest.mark.skipif(not hasattr(torch, "_grouped_mm"), reason="PyTorch without grouped products")
def test_gradients_of_grouped_products() -> None:
    a, b, g = drawn(9, 32, grad=True), drawn(3, 32, 8, seed=1, grad=True), drawn(9, 8, seed=2)
    with emulate(quantize="mxfp8_hybrid") as emulation:
        torch._grouped_mm(a, b, offs=torch.tensor([2, 4, 9], dtype=torch.int32)).backward(g)
    assert roles(emulation) == ALL_ROLES
    how = RECIPES["mxfp8_hybrid"]
    for i, s in enumerate((slice(0, 2), slice(2, 4), slice(4, 9))):
        by_input = product(numbers(g[s]), numbers(b[i]).T, how.input_gradient, torch.float32)
        np.testing.assert_array_equal(numbers(a.grad[s]), by_input)
        by_weight = product(numbers(g[s]).T, numbers(a[s]), how.weight_gradient, torch.float32)
        np.testing.assert_array_equal(numbers(b.grad[i]), by_weight.T)
    with emulate(), pytest.raises(UnemulatedOperatorError, match="argument out_dtype"):
        torch._grouped_mm(
            a.bfloat16(), b.bfloat16(), offs=torch.tensor([9, 9, 9], dtype=torch.int32), out_dtype=torch.bfloat16
        )


def test_recurrent_layers() -> None:
    """Bits of cells, step by step."""
    torch.manual_seed(0)
    layer, cell, x = nn.LSTM(8, 4), nn.LSTMCell(8, 4), drawn(3, 2, 8)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    with emulate(quantize="mxfp8") as emulation:
        found, _ = layer(x)
        found.sum().backward()
        state, steps = None, []
        for part in x:
            state = cell(part, state)
            steps.append(state[0])
    assert torch.equal(found, torch.stack(steps))
    assert roles(emulation) == ALL_ROLES
    assert not torch.equal(found, layer(x)[0])


def run_bag(x: torch.Tensor, w: torch.Tensor) -> Any:
    return functional.embedding_bag(torch.tensor([[0, 1]]), w)


QUANTISED: dict[str, Any] = {
    **PRODUCTS,
    "matmul": torch.matmul,
    "multi_dot": lambda x, w: torch.linalg.multi_dot([x, w, w.t()]),
    "tensordot": lambda x, w: torch.tensordot(x, w, 1),
    "inner": lambda x, w: torch.inner(x, w.t()),
    "matrix_power": lambda x, w: torch.linalg.matrix_power(x @ x.t(), 2),
    "conv1d": lambda x, w: functional.conv1d(x[None], w.t()[:, None, :1].expand(-1, x.shape[0], -1)),
    "GRU": lambda x, w: nn.GRU(x.shape[1], 3)(x[None])[0],
    "RNN": lambda x, w: nn.RNN(x.shape[1], 3)(x[None])[0],
    "LSTM": lambda x, w: nn.LSTM(x.shape[1], 3, bidirectional=True)(x[None])[0],
    "attention": lambda x, w: functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "MultiheadAttention": lambda x, w: nn.MultiheadAttention(x.shape[1], 1)(x, x, x)[0],
    "TransformerEncoderLayer": lambda x, w: nn.TransformerEncoderLayer(x.shape[1], 1, 4).eval()(x),
}
if hasattr(torch, "_foreach_mm"):
    QUANTISED["_foreach_mm"] = lambda x, w: torch._foreach_mm([x], [w])[0]
FORBIDDEN: dict[str, tuple[Any, str]] = {
    "bilinear": (lambda x, w: functional.bilinear(x, x, torch.ones(1, *[x.shape[1]] * 2)), "einsum"),
    "embedding_bag": (run_bag, "nn.Embedding and a sum"),
    "cdist": (torch.cdist, "as (x*x).sum(-1) and a product"),
    "cdist, many": (lambda x, w: torch.cdist(torch.ones(30, 3), torch.ones(30, 3)), "as (x*x).sum(-1) and a product"),
    "sparse.mm": (lambda x, w: torch.sparse.mm(x.to_sparse(), w), "make its operands dense"),
    "sparse, @": (lambda x, w: x.to_sparse() @ w, "must be dense"),
    "complex": (lambda x, w: x.to(torch.complex64) @ w.to(torch.complex64), "must be real"),
    "flash": (lambda x, w: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*[x[None, None]] * 3), "SDPBackend.MATH"),
    "conv_tbc": (lambda x, w: torch.conv_tbc(x[None], w[None], torch.ones(w.shape[1])), "conv1d"),
    "affine_grid": (lambda x, w: functional.affine_grid(torch.ones(1, 2, 3), [1, 1, 2, 2], align_corners=False), "name no recipe for the module"),
    "matrix_exp": (lambda x, w: torch.matrix_exp(x @ x.t()), "name no recipe for the module"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("name", [*QUANTISED, *FORBIDDEN])
def test_every_product_is_quantised_or_refused(name: str, inference: bool) -> None:
    """Of float32 tensors, which need no emulation; also where operators come whole, under `torch.inference_mode`."""
    x, w = drawn(5, 5), drawn(5, 5, seed=1)
    operation = QUANTISED.get(name) or FORBIDDEN[name][0]
    with torch.inference_mode(inference):
        if name in FORBIDDEN:
            with emulate(quantize="mxfp8"), pytest.raises(UnemulatedOperatorError) as caught:
                operation(x, w)
            assert FORBIDDEN[name][1] in str(caught.value)
        else:
            with emulate(quantize="mxfp8") as emulation:
                operation(x, w)
            assert {"forward input", "forward weight"} <= roles(emulation)
        with emulate(quantize=lambda name: None) as emulation:
            operation(x, w)
        assert not emulation.scalings


PRODUCT_LIKE = re.compile(
    "mm|matmul|dot|linear|conv|attention|lstm|gru|rnn|dist|bag|kron|outer|addr|inner|chain|matrix|mv|affine_grid|gemm|multi_head"
)
NO_PRODUCTS = names("""
    _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _convert_weight_to_int4pack _cudnn_rnn_flatten_weight
    _convert_weight_to_int4pack_for_cpu _cummax_helper _cummin_helper _foreach_lgamma _int_mm _nested_get_jagged_dummy
    _pdist_backward _pdist_forward _standard_gamma _standard_gamma_grad _thnn_fused_gru_cell _thnn_fused_gru_cell_backward
    _thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward_impl _upsample_bilinear2d_aa_backward _use_cudnn_rnn_flatten_weight
    _sparse_csr_prod cummax cummin digamma dist hamming_window igamma igammac lgamma mkldnn_reorder_conv2d_weight
    mkldnn_reorder_conv3d_weight mvlgamma polygamma upsample_bilinear2d_backward upsample_linear1d_backward
    upsample_trilinear3d_backward
""")
"""Names like those of products, or products of integers."""
LEFT_ALONE = {"dot", "vdot", "addr"}
"""Products of vectors, of which the documentation says that they are not quantised."""


def test_every_operator_with_a_products_name_is_known() -> None:
    """Recipes are for it, it has parts, it is refused, or it is known to be something else."""
    ours = {x.removesuffix("_") for x in private.operator_names("aten") if PRODUCT_LIKE.search(x)}
    unknown = set()
    for name in ours - SCALED - OPAQUE - NO_PRODUCTS - LEFT_ALONE - set(SCALED_PRODUCTS):
        packet = getattr(torch.ops.aten, name)
        with_tensors = [getattr(packet, x) for x in packet.overloads() if "Tensor" in str(getattr(packet, x)._schema)]
        if not (name.startswith("_foreach_") and name.removeprefix("_foreach_") in SCALED) and not any(
            map(private.decomposition, with_tensors)
        ):
            unknown.add(name)
    assert not unknown
    assert len(ours & OPAQUE) > 60
    for name in ours & OPAQUE:
        packet = getattr(torch.ops.aten, name)
        assert all(planned(getattr(packet, x)) is None for x in packet.overloads()), name


def test_operators_of_others_are_refused_beside_a_recipe() -> None:
    @torch.library.custom_op("softfloat_tests::squared", mutates_args=())
    def squared(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    x = drawn(3, 3)
    with emulate(quantize="mxfp8"), pytest.raises(UnemulatedOperatorError, match="is not PyTorch's own"):
        squared(x)
    with emulate(quantize=lambda name: None):
        assert torch.equal(squared(x), x @ x)
    p = nn.Parameter(drawn(3))
    p.grad = drawn(3, seed=1)
    with emulate(quantize="mxfp8"):
        torch.optim.Adam([p], fused=True).step()  # multiplies no matrices


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
