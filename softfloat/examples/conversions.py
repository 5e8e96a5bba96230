"""Recipes and lists side by side: how much of a network each converts to a low precision, and what that does to results and gradients.

>>> results = conversions("convolutions", ways=["basic", "everything"], batch=8, epochs=0)
>>> [(one.name, one.converted, one.nodes) for one in results]
[('basic', 7, 22), ('everything', 22, 22)]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from softfloat.checks import check_choice, check_count, check_integer
from softfloat.display import drawing
from softfloat.examples.data import load
from softfloat.examples.models import TwoConvolutions
from softfloat.recipes import Colouring, Recipe
from softfloat.torch import autocast_lists, convert, emulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NETWORKS", "WAYS", "Conversion", "TransformerBlock", "conversions", "conversions_figure"]

RECIPES = ("basic", "bert", "full")
WAYS = (*RECIPES, "autocast", "everything")
"""Gaudi's recipes; its autocast with default lists; a recipe of all types that there are."""


class TransformerBlock(nn.Module):
    """Rows of an image as words: an embedding, one block of attention and two dense layers with norms before them, a mean, a dense layer.

    Parameters
    ----------
    width : int
        Pixels in a row.
    features : int
    classes : int
    """

    def __init__(self, width: int, features: int = 16, classes: int = 10) -> None:
        super().__init__()
        self.embedding = nn.Linear(width, features)
        self.norm1 = nn.LayerNorm(features)
        self.query = nn.Linear(features, features)
        self.key = nn.Linear(features, features)
        self.value = nn.Linear(features, features)
        self.norm2 = nn.LayerNorm(features)
        self.wide = nn.Linear(features, 2 * features)
        self.narrow = nn.Linear(2 * features, features)
        self.dense = nn.Linear(features, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of images of shape (batch, 1, rows, width)."""
        x = self.embedding(images.squeeze(1))
        normed = self.norm1(x)
        scores = self.query(normed) @ self.key(normed).transpose(1, 2) / normed.shape[-1] ** 0.5
        x = x + torch.softmax(scores, -1) @ self.value(normed)
        x = x + self.narrow(functional.gelu(self.wide(self.norm2(x))))
        logits: torch.Tensor = self.dense(x.mean(1))
        return logits


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "convolutions": lambda: TwoConvolutions(1, 8, 8),
    "transformer": lambda: TransformerBlock(8),
}
"""Networks for scikit-learn's digits."""


@dataclass(frozen=True, eq=False)
class Conversion:
    """One way to compute a batch and its gradients, against float32.

    Attributes
    ----------
    name : str
        Of `WAYS`.
    converted, nodes : int
        Operations that compute in the low type, and all: of both passes; of autocast, calls in the forward pass that it casts,
        and those that its lists name.
    casts : int
        Of tensors; of autocast those in the forward pass.
    error : float
        The distance of the logits from those in float32, by the length of these: Euclidean norms.
    gradient_error : float
        Likewise of the gradients of all parameters together.
    loss : float
    colouring : Colouring or None
        Every node and why; None for autocast.
    """

    name: str
    converted: int
    nodes: int
    casts: int
    error: float
    gradient_error: float
    loss: float
    colouring: Colouring | None = field(default=None, repr=False)


def conversions(
    network: str = "convolutions",
    *,
    to: str = "bfloat16",
    ways: Sequence[str] = WAYS,
    batch: int = 32,
    epochs: int = 2,
    seed: int = 0,
) -> list[Conversion]:
    """A batch of digits and its gradients, converted in several ways and computed in emulated arithmetic.

    Parameters
    ----------
    network : {"convolutions", "transformer"}
    to : {"bfloat16", "float16"}
    ways : sequence of str
        Of `WAYS`.
    batch : int
        Images, from the training set.
    epochs : int
        Of training before, in float32, in batches of 32; 0: first weights.
    seed : int
        Of first weights and of the order of images. The stream of random numbers that PyTorch shares out stays where it is.

    Returns
    -------
    list of Conversion

    Raises
    ------
    ValueError
        Naming the argument.
    ImportError
        If scikit-learn is missing.
    """
    check_choice("network", network, NETWORKS)
    check_choice("to", to, ("bfloat16", "float16"))
    for way in ways:
        check_choice("ways", way, WAYS)
    check_count("batch", batch)
    check_count("epochs", epochs, 0)
    net, images, labels = _trained(network, epochs, check_integer("seed", seed))
    images, labels = images[:batch], labels[:batch]

    def step(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = net(x)
        return functional.cross_entropy(logits, y), logits.detach()

    reference = _measured(net, step, images, labels)
    return [_converted(way, net, step, images, labels, to, reference) for way in ways]


Step = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


def _trained(network: str, epochs: int, seed: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    found = load("digits", seed=seed)
    images, labels = torch.from_numpy(found.train_images), torch.from_numpy(found.train_labels)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so that sums in float32 have one order
    try:
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)
            net = NETWORKS[network]()
            optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
            for _ in range(epochs):
                for chosen in torch.randperm(len(images)).split(32):
                    optimizer.zero_grad()
                    functional.cross_entropy(net(images[chosen]), labels[chosen]).backward()
                    optimizer.step()
    finally:
        torch.set_num_threads(threads)
    return net, images, labels


def _measured(net: nn.Module, step: Step, x: torch.Tensor, y: torch.Tensor) -> tuple[float, torch.Tensor, torch.Tensor]:
    """Loss, logits, gradients as one vector."""
    net.zero_grad()
    loss, logits = step(x, y)
    loss.backward()
    gradients = [p.grad.flatten().double() for p in net.parameters() if p.grad is not None]
    net.zero_grad()
    return float(loss.detach()), logits.double(), torch.cat(gradients)


def _converted(
    way: str,
    net: nn.Module,
    step: Step,
    x: torch.Tensor,
    y: torch.Tensor,
    to: str,
    reference: tuple[float, torch.Tensor, torch.Tensor],
) -> Conversion:
    colouring: Colouring | None = None
    if way == "autocast":
        with emulate(), autocast_lists(dtype=to) as cast:
            loss, logits, gradients = _measured(net, step, x, y)
        named = sum(cast.calls.values())
        converted = sum(count for (_, policy), count in cast.calls.items() if policy == "lower")
        casts = sum(cast.casts.values())
    else:
        recipe: Any = way
        if way == "everything":
            types = sorted({d.node.op_type for d in convert(step, Recipe(), model=net, to=to).trace(x, y).decisions})
            recipe = Recipe(types, vocabulary="aten", extra_types=types)
        program = convert(step, recipe, model=net, to=to)
        with emulate():
            loss, logits, gradients = _measured(net, program, x, y)
        colouring = program.colouring
        converted, named, casts = len(colouring.converted), len(colouring.decisions), len(colouring.casts)

    def distance(found: torch.Tensor, exact: torch.Tensor) -> float:
        return float((found - exact).norm() / exact.norm())

    return Conversion(
        way,
        converted,
        named,
        casts,
        distance(logits, reference[1]),
        distance(gradients, reference[2]),
        loss,
        colouring,
    )


@drawing.on_white
def conversions_figure(results: Sequence[Conversion]) -> Figure:
    """How much is converted, how many casts that takes, and the errors of logits and gradients.

    Parameters
    ----------
    results : sequence of Conversion

    Raises
    ------
    ValueError
        If there is nothing to draw.
    ImportError
        Without matplotlib.
    """
    if not results:
        raise ValueError("results must hold a conversion")
    figure, (shares, casts, errors) = drawing.new_figure(3.4, 1, 3, sharey=True, width_ratios=(3, 3, 4))
    places = range(len(results))
    shares.barh(places, [one.converted / one.nodes for one in results], 0.6, color=drawing.BLUE, zorder=3)
    shares.set_xlim(0, 1)
    shares.set_xticks([0, 0.5, 1], ["0%", "50%", "100%"])
    shares.set_xlabel("share of operations")
    shares.set_title("Converted")
    casts.barh(places, [one.casts for one in results], 0.6, color=drawing.SKY, zorder=3)
    casts.set_xlabel("tensors")
    casts.set_title("Cast")
    styles: dict[str, dict[str, Any]] = {
        "logits": {"color": drawing.BLUE, "marker": "o"},
        "gradients": {"color": drawing.ORANGE, "marker": "s"},
    }
    entries = {}
    for name, numbers in (
        ("logits", [one.error for one in results]),
        ("gradients", [one.gradient_error for one in results]),
    ):
        errors.plot(numbers, places, linestyle="none", markersize=7, zorder=3, **styles[name])
        entries[name] = drawing.line_sample(linestyle="none", markersize=7, **styles[name])
    errors.set_xlim(left=0)
    errors.xaxis.set_major_formatter(lambda x, _: f"{x:.1%}")
    errors.set_xlabel("distance from float32")
    errors.set_title("Error")
    shares.set_yticks(places, [one.name for one in results])
    shares.set_ylim(len(results) - 0.5, -0.5)
    for axes in (shares, casts, errors):
        drawing.plain_axes(axes, "x")
    drawing.legend_below(figure, entries)
    return figure
