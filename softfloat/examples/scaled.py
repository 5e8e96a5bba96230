"""Recipes of scaled training side by side, on scikit-learn's digits: which parts of one a network needs.

>>> [way.name for way in train(["float32", "mxfp4"], epochs=1, limit=64)]
['float32', 'mxfp4']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from softfloat.accumulators import Accumulator
from softfloat.checks import check_count
from softfloat.environments import Environment
from softfloat.examples.data import load
from softfloat.scaling import RECIPES, Operand, Product, Recipe, check_recipe
from softfloat.torch import emulate

__all__ = ["PLAIN", "ScaledTraining", "Way", "nvfp4_parts", "train"]

PLAIN = ("float32", "bfloat16")
"""Ways to train without a recipe: as PyTorch computes it, and with bfloat16 products under autocast."""
BATCH, RATE, MOMENTUM, WIDTH, CLASSES = 64, 0.1, 0.9, 64, 10


@dataclass(frozen=True)
class ScaledTraining:
    """One training.

    Attributes
    ----------
    name : str
    loss : float
        Of all training images in the end, computed in float32.
    own_loss : float
        The same as the training computes it.
    accuracy : float
        On the test images, in float32.
    """

    name: str
    loss: float
    own_loss: float
    accuracy: float


@dataclass(frozen=True)
class Way:
    """Recipes of one training.

    Attributes
    ----------
    recipe : Recipe, str, or mapping of str to them or None
        Of all layers, or by their names: "0", "2" and "4". A layer without one stays in bfloat16.
    last : the same, optional
        Of the last epoch, if it has others.
    """

    recipe: Any
    last: Any = None


def nvfp4_parts() -> dict[str, Way]:
    """NVFP4's recipe with and without what NVIDIA leaves in bfloat16: layers at the ends, and the forward product towards the end of training.

    After "Pretraining Large Language Models with NVFP4" (arXiv 2509.25149).
    """
    full, none = RECIPES["nvfp4"], Operand()
    late = full.replace(forward=Product(first=none, second=none, accumulator=full.forward.accumulator))
    inner, no_last = {"2": full}, {"4": None, "*": full}
    return {
        "all layers": Way(full),
        "last layer in bfloat16": Way(no_last),
        "first and last layer in bfloat16": Way(inner),
        "the last epoch's forward in bfloat16": Way(full, late),
        "everything": Way(inner, {"2": late}),
    }


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(
    ways: Sequence[str | Recipe] | Mapping[str, str | Recipe | Way],
    *,
    epochs: int = 6,
    seed: int = 0,
    limit: int | None = None,
    accumulator: Accumulator | None = None,
) -> list[ScaledTraining]:
    """Train a network of three layers with each recipe, from the same weights, on the same batches.

    Parameters
    ----------
    ways : sequence of str or Recipe, or mapping of names to them or to Ways
        Recipes, or their names; "float32" and "bfloat16" are trainings without one. Weights are float32 in all, and bfloat16 in
        products of all but the first.
    epochs : int
    seed : int
        Of weights, batches and random rounding.
    limit : int, optional
        Images to train on.
    accumulator : Accumulator, optional
        In place of the recipes' own.

    Raises
    ------
    ValueError, TypeError
        Naming the argument and the accepted values.
    """
    named = ways if isinstance(ways, Mapping) else {str(getattr(x, "name", x)): x for x in ways}
    chosen: dict[str, Any] = {name: x if x in PLAIN else _checked(x) for name, x in named.items()}
    check_count("epochs", epochs)
    with _one_thread():
        return [_trained(name, way, epochs, seed, limit, accumulator) for name, way in chosen.items()]


def _checked(way: Any) -> Way:
    """A recipe as a Way, and all recipes known."""
    if not isinstance(way, Way):
        return Way(check_recipe(way, "ways"))
    for choice in (way.recipe, way.last):
        for recipe in choice.values() if isinstance(choice, Mapping) else [choice]:
            if recipe is not None:
                check_recipe(recipe, "ways")
    return way


def _trained(
    name: str, way: Any, epochs: int, seed: int, limit: int | None, accumulator: Accumulator | None
) -> ScaledTraining:
    data = load("digits")
    images, labels = torch.from_numpy(data.train_images[:limit]).flatten(1), torch.from_numpy(data.train_labels[:limit])
    test, classes = torch.from_numpy(data.test_images).flatten(1), torch.from_numpy(data.test_labels)
    random = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = [nn.Linear(images.shape[1], WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
        net = nn.Sequential(*layers, nn.Linear(WIDTH, CLASSES))
    optimiser = torch.optim.SGD(net.parameters(), lr=RATE, momentum=MOMENTUM)

    def arithmetic(last: bool) -> AbstractContextManager[Any]:
        if way == "float32":
            return nullcontext()
        if way == "bfloat16":
            return emulate(Environment(seed=seed))
        recipe = way.last if last and way.last is not None else way.recipe
        return emulate(Environment(seed=seed + last), matmul=accumulator, quantize=recipe)

    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with nullcontext() if way == "float32" else torch.autocast("cpu", torch.bfloat16):
            scores = net(x)
        return functional.cross_entropy(scores.float(), y)

    def run(first: int, stop: int) -> None:
        for epoch in range(first, stop):
            for group in optimiser.param_groups:
                group["lr"] = RATE * (1 - epoch / epochs)
            for batch in torch.randperm(len(images), generator=random).split(BATCH):
                optimiser.zero_grad()
                loss(images[batch], labels[batch]).backward()
                optimiser.step()

    switches = getattr(way, "last", None) is not None
    if switches:
        with arithmetic(False):
            run(0, epochs - 1)
    with arithmetic(switches):
        run(epochs - 1 if switches else 0, epochs)
        with torch.no_grad():
            own = float(loss(images, labels))
    with torch.no_grad():
        single = float(functional.cross_entropy(net(images), labels))
        accuracy = float((net(test).argmax(1) == classes).float().mean())
    return ScaledTraining(name, single, own, accuracy)
