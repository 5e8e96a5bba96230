"""What training in emulated half precision costs, as ratios to PyTorch's own half precision on the same CPU.

    python benchmarks/training.py [--rounds 5] [--json FILE] [--models | --recipes]

An epoch of the tutorial's two-convolution net on scikit-learn's digits (1 797 images of 8 x 8, batches of 32: 56 steps,
each forward, backward and SGD with momentum, everything in half), natively and emulated, taken in turn; of each the
fastest round. `limit` is what the ratio is meant to stay below. Then one step of ResNet-8 on a batch of 32 images as
large as those of CIFAR-10, in seconds. The first round of each compiles and is not counted.

Then a step of the same net in bfloat16 with recipes of scaled training, as ratios to the same step without, in processor time on one thread;
and single layers with recipes, large, small and a convolution, as ratios to PyTorch's float32; --recipes is that alone.

Then, and with --models alone, a step of models of all kinds in half and bfloat16, natively and under `emulate()`, in
milliseconds. PyTorch computes natively as it likes, by oneDNN where that has the dtype. Temporary arrays of some megabytes
make glibc give memory back and take it again at each operation, or not, as luck has it: MALLOC_TRIM_THRESHOLD_ and
MALLOC_MMAP_THRESHOLD_ of 1000000000 take the luck out.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from measuring import arguments_of, described, machine, write_json
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from softfloat import Accumulator, Environment, get_num_threads, set_num_threads
from softfloat.accumulators import amp, fma
from softfloat.examples import data
from softfloat.examples.models import ResNet, TwoConvolutions
from softfloat.torch import emulate

BATCH = 32
WAYS: dict[str, tuple[Accumulator | None, Environment | None, float | None]] = {
    "native": (None, None, None),
    'float partials, fma("float32")': (fma("float32"), Environment(), 3.0),
    'float partials, amp("float")': (amp("float"), Environment(), 3.0),
    'half partials, fma("float16")': (fma("float16"), Environment(), 15.0),
    'half partials, amp("half")': (amp("half"), Environment(), 15.0),
    'IPU, stochastic, amp("float")': (amp("float"), Environment.ipu(esr=True, nanoo=True, seed=0), None),
    'IPU, stochastic, amp("half")': (amp("half"), Environment.ipu(esr=True, nanoo=True, seed=0), None),
}
RESNET_LIMIT = 5.0  # seconds
STEPS = 5  # of a recipe, in a round
RECIPES: dict[str, tuple[str | None, bool, float | None]] = {
    "bfloat16": (None, False, None),
    "nvfp4": ("nvfp4", False, 4.0),
    "nvfp4_plain": ("nvfp4_plain", False, None),
    'nvfp4, fma("float32")': ("nvfp4", True, None),
    'mxfp8, fma("float32")': ("mxfp8", True, None),
    "current_scaling": ("current_scaling", False, None),
    "mxfp8": ("mxfp8", False, 4.0),
}
"""The recipe, whether single adds up in place of its own accumulator, and what the ratio is meant to stay below."""


def trainer(model: torch.nn.Module, batches: list[tuple[Any, Any]], name: str) -> Callable[[], float]:
    """Runs over the batches once; returns seconds."""
    how, environment, _ = WAYS[name]
    optimiser = torch.optim.SGD(model.parameters(), lr=2.0**-10, momentum=0.9)

    def run() -> float:
        start = time.perf_counter()
        with emulate(environment, how, how) if how is not None else contextlib.nullcontext():
            for images, labels in batches:
                optimiser.zero_grad()
                functional.cross_entropy(model(images), labels).backward()
                optimiser.step()
        return time.perf_counter() - start

    return run


def fastest(runs: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    for run in runs.values():
        run()
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            best[name] = min(best[name], run())
    return best


def digits() -> list[tuple[Any, Any]]:
    found = data.load("digits")
    images = torch.from_numpy(np.concatenate([found.train_images, found.test_images])).half()
    labels = torch.from_numpy(np.concatenate([found.train_labels, found.test_labels]))
    whole = len(images) - len(images) % BATCH
    return list(zip(images[:whole].split(BATCH), labels[:whole].split(BATCH), strict=True))


def recipe_stepper(name: str, batches: list[tuple[Any, Any]]) -> Callable[[], float]:
    """Runs one step in bfloat16; returns seconds that this thread computed."""
    recipe, single, _ = RECIPES[name]
    how = fma("float32") if single or recipe is None else None
    torch.manual_seed(0)
    model = TwoConvolutions(1, 8, 8).bfloat16()
    optimiser = torch.optim.SGD(model.parameters(), lr=2.0**-10, momentum=0.9)
    images, labels = batches[0][0].bfloat16(), batches[0][1]

    def run() -> float:
        start = time.thread_time()
        with emulate(Environment(seed=0), how, how, quantize=recipe):
            optimiser.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimiser.step()
        return time.thread_time() - start

    return run


def recipes(rounds: int) -> list[dict[str, Any]]:
    """A step with each recipe."""
    before = torch.get_num_threads(), get_num_threads()
    torch.set_num_threads(1)
    set_num_threads(1)
    batches = digits()
    best = fastest({name: recipe_stepper(name, batches) for name in RECIPES}, rounds * STEPS)
    torch.set_num_threads(before[0])
    set_num_threads(before[1])
    rows = []
    print(f"\n{'a step in bfloat16, one thread':<32}{'ms':>10}{'ratio':>8}{'limit':>8}")
    for name, (_, _, limit) in RECIPES.items():
        ratio, shown = best[name] / best["bfloat16"], "" if limit is None else f"{limit:.0f}"
        over = "!" if limit is not None and ratio > limit else " "
        rows.append({"name": name, "step": best[name], "ratio": ratio, "limit": limit})
        print(f"{name:<32}{1e3 * best[name]:>10.1f}{ratio:>8.2f}{shown:>7}{over}")
    return rows


Operator = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
PRODUCTS: dict[str, tuple[Operator, tuple[int, ...], tuple[int, ...], float, int]] = {
    "linear 32^3": (functional.linear, (32, 32), (32, 32), 100.0, 20),
    "linear 512^3": (functional.linear, (512, 512), (512, 512), 10.0, 1),
    "conv2d 8 x 16 x 16 x 16, 3 x 3": (
        lambda x, w: functional.conv2d(x, w, padding=1), (8, 16, 16, 16), (16, 16, 3, 3), 10.0, 3,
    ),
}  # fmt: skip
"""Operator, shapes of inputs and weights, what the ratio is meant to stay below, steps in a round."""
OF_PRODUCTS = ("current_scaling", "fp8_blocks", "deepseek_v3", "mxfp8", "nvfp4")
SETTLED = 100
"""Small steps before the first round: after so many a unit's loop is compiled for them."""


def product_stepper(name: str, recipe: str | None, steps: int) -> Callable[[], float]:
    """Runs an operator on float32 tensors forward and backward so often; returns this thread's seconds for one."""
    operator, inputs, weights, _, _ = PRODUCTS[name]
    torch.manual_seed(0)
    x, w = (torch.randn(shape, requires_grad=True) for shape in (inputs, weights))
    gradient = torch.randn_like(operator(x, w))

    def run() -> float:
        with emulate(Environment(seed=0), quantize=recipe) if recipe else contextlib.nullcontext():
            start = time.thread_time()
            for _ in range(steps):
                x.grad = w.grad = None
                operator(x, w).backward(gradient)
            return (time.thread_time() - start) / steps

    return run


def recipe_products(rounds: int) -> list[dict[str, Any]]:
    """Single layers under recipes beside PyTorch's own float32."""
    before = torch.get_num_threads(), get_num_threads()
    torch.set_num_threads(1)
    set_num_threads(1)
    rows = []
    print(f"\n{'forward and backward, one thread':<48}{'ms':>10}{'ratio':>8}{'limit':>8}")
    for name, (_, _, _, limit, steps) in PRODUCTS.items():
        runs = {recipe: product_stepper(name, recipe, steps) for recipe in OF_PRODUCTS}
        for run in runs.values():
            for _ in range(SETTLED // steps if steps > 10 else 1):
                run()
        best = fastest({"float32": product_stepper(name, None, 20 * steps), **runs}, rounds)
        for recipe in OF_PRODUCTS:
            ratio = best[recipe] / best["float32"]
            over = "!" if ratio > limit else " "
            rows.append({"name": name, "recipe": recipe, "step": best[recipe], "ratio": ratio, "limit": limit})
            print(f"{f'{name}, {recipe}':<48}{1e3 * best[recipe]:>10.2f}{ratio:>8.1f}{limit:>7.0f}{over}")
    torch.set_num_threads(before[0])
    set_num_threads(before[1])
    return rows


# -- models of all kinds ---------------------------------------------------------------------------------------------


class Recurrent(nn.Module):
    """An LSTM over 20 steps, and a linear layer on its last output."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(self.lstm(x)[0][:, -1])


class GraphAttention(nn.Module):
    """One layer of attention over the neighbours in a graph (Velickovic et al., Graph Attention Networks, ICLR 2018)."""

    def __init__(self, inputs: int, outputs: int, heads: int) -> None:
        super().__init__()
        self.heads, self.linear = heads, nn.Linear(inputs, outputs * heads, bias=False)
        self.receiving = nn.Parameter(torch.randn(heads, outputs) / 8)
        self.sending = nn.Parameter(torch.randn(heads, outputs) / 8)

    def forward(self, x: torch.Tensor, neighbours: torch.Tensor) -> Any:
        z = self.linear(x).view(len(x), self.heads, -1)
        scores = (z * self.receiving).sum(-1)[:, None] + (z * self.sending).sum(-1)[None]
        scores = functional.leaky_relu(scores, 0.2).masked_fill(~neighbours[..., None], -1e4)
        return torch.einsum("ijh,jhf->ihf", torch.softmax(scores, 1), z).flatten(1)


class GraphNetwork(nn.Module):
    """Two layers of graph attention on a random graph of 64 nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = GraphAttention(32, 8, 4), GraphAttention(32, 10, 1)
        self.register_buffer("neighbours", (torch.rand(64, 64) < 0.1) | torch.eye(64, dtype=torch.bool))

    def forward(self, x: torch.Tensor) -> Any:
        return self.two(functional.elu(self.one(x, self.neighbours)), self.neighbours)


def separable(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    """A depthwise convolution and a pointwise one (Howard et al., MobileNets, 2017)."""
    return nn.Sequential(
        nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False),
        *(nn.BatchNorm2d(inputs), nn.ReLU()),
        nn.Conv2d(inputs, outputs, 1, bias=False),
        *(nn.BatchNorm2d(outputs), nn.ReLU()),
    )


class Mobile(nn.Module):
    """A small MobileNet for images of 32 x 32."""

    def __init__(self) -> None:
        super().__init__()
        blocks = [separable(*block) for block in ((16, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2))]
        first = nn.Conv2d(3, 16, 3, 2, 1, bias=False)
        self.features, self.head = nn.Sequential(first, nn.BatchNorm2d(16), nn.ReLU(), *blocks), nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(self.features(x).mean((2, 3)))


class Transformer(nn.Module):
    """Two layers of an encoder, four heads; attention made of matrix products."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> Any:
        with sdpa_kernel(SDPBackend.MATH):
            return self.head(self.encoder(x).mean(1))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "the tutorial's net": (lambda: TwoConvolutions(1, 8, 8), (BATCH, 1, 8, 8)),
    "ResNet-8": (lambda: ResNet(1, channels=3), (BATCH, 3, 32, 32)),
    "LSTM": (Recurrent, (16, 20, 32)),
    "graph attention": (GraphNetwork, (64, 32)),
    "MobileNet": (Mobile, (16, 3, 32, 32)),
    "TransformerEncoder": (Transformer, (8, 16, 64)),
}
"""Models, and the shapes of their batches."""

DTYPES = {"half": torch.float16, "bfloat16": torch.bfloat16}


def stepper(name: str, dtype: torch.dtype, emulated: bool) -> Callable[[], float]:
    """One step of training; returns seconds."""
    make, shape = MODELS[name]
    torch.manual_seed(0)
    model, x, labels = make().to(dtype), torch.rand(shape).to(dtype), torch.arange(shape[0]) % 10
    optimiser = torch.optim.SGD(model.parameters(), lr=2.0**-10, momentum=0.9)

    def step() -> float:
        with contextlib.ExitStack() as opened:
            if emulated:  # without oneDNN, whose LSTM in bfloat16 is one operator, not made of others
                opened.enter_context(torch.backends.mkldnn.flags(enabled=False))
                opened.enter_context(emulate())
            start = time.perf_counter()
            optimiser.zero_grad()
            functional.cross_entropy(model(x), labels).backward()
            optimiser.step()
            return time.perf_counter() - start

    return step


def models(rounds: int) -> list[dict[str, Any]]:
    """A step of each model, native and emulated."""
    print(f"\nPyTorch {torch.__version__} on {torch.get_num_threads()} threads")
    print(f"{'ms a step':<24}" + "".join(f"{name:>10}{'emulated':>10}{'times':>7}" for name in DTYPES))
    rows = []
    for name in MODELS:
        found: dict[str, Any] = {"name": name}
        for dtype in DTYPES:
            ways = {how: stepper(name, DTYPES[dtype], how == "emulated") for how in ("native", "emulated")}
            best = fastest(ways, rounds)
            found[dtype] = {**{how: 1e3 * x for how, x in best.items()}, "times": best["emulated"] / best["native"]}
        rows.append(found)
        shown = (f"{x['native']:>10.2f}{x['emulated']:>10.2f}{x['times']:>7.1f}" for x in map(found.get, DTYPES) if x)
        print(f"{name:<24}" + "".join(shown))
    return rows


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", action="store_true", help="only the table of models")
    parser.add_argument("--recipes", action="store_true", help="only the table of recipes")
    arguments = parser.parse_args()
    print(described(machine()))
    if arguments.recipes:
        found, products = recipes(arguments.rounds), recipe_products(arguments.rounds)
        if arguments.json:
            write_json(arguments.json, recipes=found, products=products)
        return
    if arguments.models:
        table = models(arguments.rounds)
        if arguments.json:
            write_json(arguments.json, models=table)
        return
    batches = digits()
    runs = {}
    for name in WAYS:
        torch.manual_seed(0)
        runs[name] = trainer(TwoConvolutions(1, 8, 8).half(), batches, name)
    epochs = fastest(runs, arguments.rounds)
    torch.manual_seed(0)
    batch = [(torch.rand(BATCH, 3, 32, 32).half(), torch.arange(BATCH) % 10)]
    steps = fastest(
        {name: trainer(ResNet(1, channels=3).half(), batch, name) for name in WAYS}, max(arguments.rounds // 2, 1)
    )
    rows = []
    print(f"{'':<32}{'epoch, s':>10}{'ratio':>8}{'limit':>8}   {'ResNet-8 step, s':>16}{'limit':>8}")
    for name, (_, _, limit) in WAYS.items():
        ratio, shown = epochs[name] / epochs["native"], "" if limit is None else f"{limit:.0f}"
        over = "!" if limit is not None and ratio > limit else " "
        late = "!" if steps[name] > RESNET_LIMIT else " "
        rows.append({"name": name, "epoch": epochs[name], "ratio": ratio, "limit": limit, "step": steps[name]})
        print(
            f"{name:<32}{epochs[name]:>10.2f}{ratio:>8.2f}{shown:>7}{over}   {steps[name]:>16.3f}{RESNET_LIMIT:>7.0f}{late}"
        )
    scaled, products = recipes(arguments.rounds), recipe_products(arguments.rounds)
    table = models(arguments.rounds)
    if arguments.json:
        write_json(arguments.json, ways=rows, recipes=scaled, products=products, models=table)


if __name__ == "__main__":
    main()
