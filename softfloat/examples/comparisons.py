"""The tutorial's methods side by side, on scikit-learn's digits: what half precision does to a training, and what helps.

>>> start, single, nearest, drawn, mixed = methods(epochs=1, limit=320)
>>> single.loss < nearest.loss < start.loss
True
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from softfloat import accumulators, bits
from softfloat.checks import check_choice, check_count, is_integer
from softfloat.display import drawing
from softfloat.environments import Environment, Overflow, as_member
from softfloat.examples.data import load
from softfloat.examples.models import TwoConvolutions
from softfloat.formats import float16, float32
from softfloat.progress import bars, is_watched
from softfloat.torch import GradScaler, emulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "LENGTHS",
    "WATCHES",
    "WAYS",
    "LongSum",
    "Method",
    "Scaling",
    "Trained",
    "long_sums",
    "long_sums_figure",
    "methods",
    "methods_figure",
    "scaling",
    "scaling_figure",
    "trained",
]

BATCH = 32
RATE = 0.05  # of gradient descent where its steps are not to be small
WARM_EPOCHS = 2

Batches = list[tuple[torch.Tensor, torch.Tensor]]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Models this small gain nothing from more threads, and sums in float32 have one order with one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _shown(steps: Iterable[Any], total: int, title: str) -> Iterator[Any]:
    """With a bar on standard error, if that is a terminal."""
    if not is_watched():
        yield from steps
        return
    with bars() as shown:
        yield from shown.track(steps, total, description=title)


# -- a network -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trained:
    """The network of two convolutions, in float32, and what it was trained on.

    Attributes
    ----------
    model : TwoConvolutions
    images, test_images : float32 tensor of shape (images, 1, 8, 8)
    labels, test_labels : int64 tensor of shape (images,)
    """

    model: TwoConvolutions
    images: torch.Tensor
    labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor


@_one_thread()
def trained(
    epochs: int = WARM_EPOCHS, learning_rate: float = RATE, *, limit: int | None = None, seed: int = 0
) -> Trained:
    """Two convolutions on the digits by gradient descent in batches of 32, all in float32 and computed natively.

    Parameters
    ----------
    epochs : int
        0: first weights.
    learning_rate : float
    limit : int, optional
        So many training images, at least 32; None: all 1500.
    seed : int
        Of first weights and order. The stream of random numbers that PyTorch shares out stays where it is.

    Raises
    ------
    ValueError
        Naming the argument.
    ImportError
        If scikit-learn is missing.
    """
    if not is_integer(epochs) or epochs < 0:
        raise ValueError(f"epochs must be 0 or a positive integer, got {epochs!r}")
    found = load("digits", limit=limit, seed=seed)
    if len(found.train_images) < BATCH:
        raise ValueError(f"limit must be at least {BATCH}, or None, got {limit!r}")
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        model = TwoConvolutions(*found.train_images.shape[1:])
    arrays = (found.train_images, found.train_labels, found.test_images, found.test_labels)
    result = Trained(model, *map(torch.from_numpy, arrays))
    optimiser = torch.optim.SGD(model.parameters(), lr=learning_rate)
    for epoch in range(epochs):
        _epoch(model, optimiser, _batches(result.images, result.labels, seed + epoch))
    return result


def _batches(images: torch.Tensor, labels: torch.Tensor, seed: int) -> Batches:
    """In an order of their own; what would be a smaller batch is left out."""
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    return [(images[part], labels[part]) for part in order.split(BATCH) if len(part) == BATCH]


def _epoch(model: torch.nn.Module, optimiser: torch.optim.Optimizer, batches: Batches, mixed: bool = False) -> None:
    for images, labels in batches:
        optimiser.zero_grad()
        _loss(model, images, labels, mixed).backward()
        optimiser.step()


def _loss(model: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor, mixed: bool) -> torch.Tensor:
    """In the dtype of the parameters; if mixed, scores are computed in half."""
    with torch.autocast("cpu", torch.float16, enabled=mixed):
        scores = model(images)
    return functional.cross_entropy(scores.float() if mixed else scores, labels)


@torch.no_grad()
def _judged(model: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> tuple[float, float]:
    """(loss, accuracy) of the parameters, computed in float32."""
    scores = copy.deepcopy(model).float()(images)
    return float(functional.cross_entropy(scores, labels)), float((scores.argmax(1) == labels).float().mean())


# -- methods ---------------------------------------------------------------------------------------------------------

WAYS = ("float32", "half, nearest even", "half, stochastic", "mixed")
"""Of training: as PyTorch does; Method 1, to nearest and stochastically; Method 2."""


@dataclass(frozen=True)
class Method:
    """A training that went on from a warm start.

    Attributes
    ----------
    name : str
        "start" or one of `WAYS`.
    losses : tuple of float
        Over all training images, in float32, before the first epoch and after each.
    moved : float
        The share of parameters that differ from the start.
    accuracy : float
        On the test images.
    """

    name: str
    losses: tuple[float, ...]
    moved: float
    accuracy: float

    @property
    def loss(self) -> float:
        """After the last epoch."""
        return self.losses[-1]


@_one_thread()
def methods(
    epochs: int = 6,
    learning_rate: float = 1.5e-4,
    *,
    ways: Sequence[str] = WAYS,
    partials: str = "float",
    warm_epochs: int = WARM_EPOCHS,
    limit: int | None = None,
    seed: int = 0,
) -> list[Method]:
    """Pure half precision, rounded to nearest even and stochastically, from a warm start; beside float32 and mixed precision.

    A network is `trained`, and its parameters rounded to half. From there, plain gradient descent at a small learning
    rate, whose updates are mostly less than half a unit in the last place of a parameter: nearest even drops them,
    stochastic rounding lets them through now and then, and parameters in float32 (Method 2) take them as they are.

    Parameters
    ----------
    epochs : int
    learning_rate : float
    ways : sequence of str
        Of `WAYS`.
    partials : {"float", "half"}
        What the AMP units add up products of half in.
    warm_epochs : int
        Of the warm start; 0: from first weights.
    limit : int, optional
        So many training images, at least 32; None: all 1500.
    seed : int
        Of first weights, order and stochastic rounding.

    Returns
    -------
    list of Method
        The start, then `ways`.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Source
    ------
    Graphcore, "Training a model using half- and mixed-precision", Methods 1 and 2.
    """
    check_count("epochs", epochs)
    if isinstance(ways, str):
        raise TypeError(f"ways must be a sequence of str, got {ways!r}")
    for way in ways:
        check_choice("ways", way, WAYS)
    check_choice("partials", partials, ("float", "half"))
    how = accumulators.amp(partials)
    warm = trained(warm_epochs, limit=limit, seed=seed)
    start = copy.deepcopy(warm.model).half()
    loss, _ = _judged(start, warm.images, warm.labels)
    results = [Method("start", (loss,), 0.0, _judged(start, warm.test_images, warm.test_labels)[1])]
    for way in ways:
        half, mixed = way.startswith("half"), way == "mixed"
        model = copy.deepcopy(start) if half else copy.deepcopy(start).float()
        inputs = warm.images.half() if half else warm.images
        environment = Environment.ipu(esr=way == "half, stochastic", nanoo=True, seed=seed)
        optimiser = torch.optim.SGD(model.parameters(), lr=learning_rate)
        losses = [loss]
        for epoch in _shown(range(epochs), epochs, way):
            with emulate(environment, how, how):
                _epoch(model, optimiser, _batches(inputs, warm.labels, seed + warm_epochs + epoch), mixed)
            losses.append(_judged(model, warm.images, warm.labels)[0])
        _, accuracy = _judged(model, warm.test_images, warm.test_labels)
        results.append(Method(way, tuple(losses), _moved(start, model), accuracy))
    return results


def _moved(first: torch.nn.Module, second: torch.nn.Module) -> float:
    pairs = [(x.float(), y.float()) for x, y in zip(first.parameters(), second.parameters(), strict=True)]
    return sum(int((x != y).sum()) for x, y in pairs) / sum(x.numel() for x, _ in pairs)


# -- loss scales -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scaling:
    """A training in mixed precision under a dynamic loss scale.

    Attributes
    ----------
    overflow : str
        What too large results became.
    watch : {"flags", "values"}
        What told an overflow: the status register too, or infinite and NaN gradients alone.
    scales, losses : tuple of float
        Of each step; losses are those of its batch, unscaled, before the update.
    skipped : tuple of bool
        Whether each step left the parameters as they were.
    saturated : tuple of int
        Gradients of parameters, in each step, of the largest magnitude that half has.
    loss : float
        Over all training images, after the last step.
    """

    overflow: str
    watch: str
    scales: tuple[float, ...]
    losses: tuple[float, ...]
    skipped: tuple[bool, ...]
    saturated: tuple[int, ...]
    loss: float


WATCHES: dict[str, Callable[..., torch.amp.GradScaler]] = {
    "flags": lambda environment, scale: GradScaler("cpu", scale, environment=environment),
    "values": lambda environment, scale: torch.amp.GradScaler("cpu", scale),
}
"""Scalers: `softfloat.torch.GradScaler`, which reads the sticky flags, and PyTorch's own."""


@_one_thread()
def scaling(
    overflow: Overflow | str = "nan",
    watch: str = "flags",
    *,
    steps: int = 60,
    scale: float = 2.0**24,
    learning_rate: float = RATE,
    limit: int | None = None,
    seed: int = 0,
) -> Scaling:
    """Method 2 under a dynamic loss scale that starts too large: float32 parameters, computation in half by autocast.

    Parameters
    ----------
    overflow : {"nan", "saturate", "infinity"}
        Of half.
    watch : {"flags", "values"}
        The scaler: one of `WATCHES`.
    steps : int
    scale : float
        Before the first step.
    learning_rate : float
        Of gradient descent with a momentum of 0.9.
    limit : int, optional
        So many training images, at least 32; None: all 1500.
    seed : int
        Of first weights and order.

    Raises
    ------
    ValueError
        Naming the argument.
    """
    kind = as_member(Overflow, overflow, "overflow")
    check_choice("watch", watch, WATCHES)
    check_count("steps", steps)
    device = Environment.ipu()
    environment = device.replace(overflow=kind, overrides=device.overrides)  # sums in float32 overflow as ever
    net = trained(0, limit=limit, seed=seed)
    parameters = list(net.model.parameters())
    optimiser = torch.optim.SGD(parameters, lr=learning_rate, momentum=0.9)
    scaler = WATCHES[watch](environment, scale)
    batches: Batches = []
    scales, losses, skipped, saturated = [], [], [], []
    for step in _shown(range(steps), steps, f"{kind.name.lower()}, {watch}"):
        batches = batches or _batches(net.images, net.labels, seed + step)
        optimiser.zero_grad()
        scales.append(scaler.get_scale())
        with emulate(environment):
            loss = _loss(net.model, *batches.pop(), mixed=True)
            scaler.scale(loss).backward()
        losses.append(float(loss.detach()))
        saturated.append(sum(int((x.grad.abs() == float16.max).sum()) for x in parameters if x.grad is not None))
        before = [x.detach().clone() for x in parameters]
        scaler.step(optimiser)
        scaler.update()
        skipped.append(all(torch.equal(x, y) for x, y in zip(before, parameters, strict=True)))
    return Scaling(
        kind.name.lower(),
        watch,
        tuple(scales),
        tuple(losses),
        tuple(skipped),
        tuple(saturated),
        _judged(net.model, net.images, net.labels)[0],
    )


# -- partials --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LongSum:
    """A dense layer's outputs, whose products were added up in one type.

    Attributes
    ----------
    length : int
        Inputs, k.
    partials : str
        "half" or "float".
    stochastic : bool
    error : float
        The mean of |computed - exact| / exact over all outputs.
    swamped : float
        The share of additions that left the sum as it was.
    """

    length: int
    partials: str
    stochastic: bool
    error: float
    swamped: float


LENGTHS = (64, 256, 1024, 4096, 16384, 65536)
"""Of sums, unless told otherwise."""


def long_sums(lengths: Sequence[int] = LENGTHS, outputs: int = 32, seed: int = 0) -> list[LongSum]:
    """Means of ever more activations, as a dense layer or an average pool computes them, with half and float partials.

    Activations are rectified normal numbers, so that sums only grow; weights are a constant 1/k times a power of two
    near sqrt(k), which keeps products and sums among the normal numbers of half. Below a thousand inputs the type of
    partials hardly shows; then halves stop growing.

    Parameters
    ----------
    lengths : sequence of int
    outputs : int
    seed : int
        Of activations and stochastic rounding.

    Returns
    -------
    list of LongSum
        For each length: half partials to nearest even and stochastic, float partials.

    Raises
    ------
    ValueError
        Naming the argument.
    """
    check_count("outputs", outputs)
    for length in lengths:
        check_count("lengths", length)
    rng = np.random.default_rng(seed)
    results = []
    for length in lengths:
        weight = 2.0 ** round(np.log2(length) / 2) / length
        a = bits.encode(np.maximum(rng.standard_normal((outputs, length)), 0), float16)[0]
        b = np.full((length, 1), bits.encode(weight, float16)[0], np.uint16)
        exact = np.asarray(bits.decode(a, float16)).sum(1) * float(bits.decode(b[0, 0], float16))
        for partials, esr in (("half", False), ("half", True), ("float", False)):
            environment = Environment.ipu(esr=esr, seed=seed)
            codes, _, counts = bits.matmul(
                a, b, float16, accumulators.amp(partials), environment=environment, count=True, out_format=float32
            )
            error = np.abs(np.asarray(bits.decode(codes, float32))[:, 0] / exact - 1).mean()
            swamped = counts.swamped.sum() / (outputs * counts.additions)
            results.append(LongSum(length, partials, esr, float(error), float(swamped)))
    return results


# -- figures ---------------------------------------------------------------------------------------------------------

STYLES: dict[str, tuple[str, Any, str]] = {
    "float32": (drawing.BLACK, drawing.DASHED, "D"),
    "half, nearest even": (drawing.ORANGE, "-", "o"),
    "half, stochastic": (drawing.BLUE, "-", "s"),
    "mixed": (drawing.GREEN, (0, (2, 1.2)), "^"),
}
"""Colour, dash and marker of each of `WAYS`: nearest even and stochastic as in all figures."""


@drawing.on_white
def methods_figure(results: Sequence[Method]) -> Figure:
    """The loss over epochs, and the share of parameters that moved.

    Parameters
    ----------
    results : sequence of Method
        Of `methods`: the start, and at least one way.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    ImportError
        Without matplotlib.
    """
    ways = [one for one in results if one.name in STYLES]
    if not ways:
        raise ValueError(f"results must hold a training other than the start, got {[one.name for one in results]}")
    figure, (losses, moved) = drawing.new_figure(3.9, 1, 2, width_ratios=(3, 2))
    entries: dict[str, Any] = {}
    for one in ways:
        color, dash, marker = STYLES[one.name]
        style = {"color": color, "linestyle": dash, "marker": marker, "linewidth": 1.6, "markersize": 5}
        if one.name != "half, nearest even":  # three lines as good as one: what lies below shows through
            style |= {"fillstyle": "none", "markersize": {"float32": 10, "half, stochastic": 7, "mixed": 4}[one.name]}
        losses.plot(range(len(one.losses)), one.losses, **style, zorder=3, clip_on=False)
        entries[one.name] = drawing.line_sample(**style)
    for place, one in enumerate(ways):
        color, _, _ = STYLES[one.name]
        hatch = {"half, nearest even": "///", "half, stochastic": "...", "mixed": "xxx"}.get(one.name, "")
        moved.barh(place, one.moved, 0.6, color=color, hatch=hatch, edgecolor="white", linewidth=0, zorder=3)
        moved.text(one.moved + 0.02, place, f"{one.moved:.0%}", va="center")
    losses.set_xlabel("epochs")
    losses.set_ylabel("loss over all training images")
    losses.set_title("What is learnt")
    losses.xaxis.get_major_locator().set_params(integer=True)
    moved.set_yticks(range(len(ways)), [one.name for one in ways])
    moved.set_ylim(len(ways) - 0.4, -0.6)
    moved.set_xlim(0, 1.18)
    moved.set_xticks([0, 0.5, 1], ["0%", "50%", "100%"])
    moved.set_xlabel("share of parameters")
    moved.set_title("What has moved")
    drawing.plain_axes(losses)
    drawing.plain_axes(moved, "x")
    drawing.legend_below(figure, entries)
    return figure


OVERFLOWS = {"nan": "overflow makes NaN", "saturate": "overflow saturates", "infinity": "overflow makes infinity"}


@drawing.on_white
def scaling_figure(results: Sequence[Scaling]) -> Figure:
    """The loss scale and the loss of each step; where a step was skipped, its scale is marked.

    Parameters
    ----------
    results : sequence of Scaling
        Of as many steps each; 1 to 4.

    Raises
    ------
    ValueError
        Naming what is accepted.
    ImportError
        Without matplotlib.
    """
    if not 1 <= len(results) <= 4:
        raise ValueError(f"results must be 1 to 4 trainings, got {len(results)}")
    if len({len(one.scales) for one in results}) > 1:
        raise ValueError(f"results must have as many steps each, got {[len(one.scales) for one in results]}")
    figure, (scales, losses) = drawing.new_figure(5.6, 2, 1, sharex=True, height_ratios=(2, 3))
    entries: dict[str, Any] = {}
    widths = (5.0, 1.6, 1.6, 1.6)  # the first wide and pale, so that others on top of it leave it visible
    colors = (drawing.SKY, drawing.BLACK, drawing.ORANGE, drawing.GREEN)
    dashes: tuple[Any, ...] = ("-", drawing.DASHED, "-", (0, (2, 1.2)))
    places = range(1, len(results[0].scales) + 1)
    for one, width, color, dash in zip(results, widths, colors, dashes, strict=False):
        style = {"color": color, "linewidth": width, "linestyle": dash}
        scales.step(places, one.scales, where="mid", **style)
        losses.plot(places, one.losses, **style)
        watched = "flags are read" if one.watch == "flags" else "gradients alone are looked at"
        entries[f"{OVERFLOWS[one.overflow]}, {watched}"] = drawing.line_sample(**style)
    lost = [(k, scale) for one in results for k, scale, no in zip(places, one.scales, one.skipped, strict=True) if no]
    if lost:
        mark = {
            "color": drawing.BLACK,
            "marker": "o",
            "markerfacecolor": "white",
            "linestyle": "none",
            "markersize": 6,
        }
        scales.plot(*zip(*dict.fromkeys(lost), strict=True), **mark, zorder=4)
        entries["step skipped"] = drawing.line_sample(**mark)
    every = [scale for one in results for scale in one.scales]
    drawing.log2_axis(scales.yaxis, min(every) / 2, max(every) * 2, most=6)
    losses.set_ylim(0, None)
    losses.set_xlim(0.5, len(places) + 0.5)
    scales.set_ylabel("loss scale")
    losses.set_ylabel("loss of the batch")
    losses.set_xlabel("step")
    for axes in (scales, losses):
        drawing.plain_axes(axes)
    scales.set_title("A scale that is halved at each overflow")
    drawing.legend_below(figure, entries, columns=2)
    return figure


@drawing.on_white
def long_sums_figure(results: Sequence[LongSum]) -> Figure:
    """Errors of sums against their length, and below how much of what was added was lost whole.

    Parameters
    ----------
    results : sequence of LongSum
        Of `long_sums`.

    Raises
    ------
    ValueError
        If there is none.
    ImportError
        Without matplotlib.
    """
    if not results:
        raise ValueError("results must hold at least one sum, got none")
    figure, (errors, shares) = drawing.new_figure(6, 2, 1, sharex=True, height_ratios=(3, 2))
    for (partials, stochastic), label, color, marker in (
        (("half", False), "half partials, nearest even", drawing.ORANGE, "o"),
        (("half", True), "half partials, stochastic", drawing.BLUE, "s"),
        (("float", False), "float partials", drawing.BLACK, "^"),
    ):
        found = [one for one in results if (one.partials, one.stochastic) == (partials, stochastic)]
        drawing.draw_measured(errors, [(one.length, one.error) for one in found], color, marker, label)
        drawing.draw_measured(shares, [(one.length, one.swamped) for one in found], color, marker, label)
    for axes in (errors, shares):
        drawing.axes_by_lengths(axes, [one.length for one in results])
    shares.set_yscale("linear")
    shares.set_ylim(-0.004, None)
    errors.set_ylabel("mean relative error")
    shares.set_ylabel("share that changed nothing")
    shares.set_xlabel("inputs of the layer, K")
    errors.set_title("Long sums stall with half partials rounded to nearest")
    figure.legend(*errors.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure
