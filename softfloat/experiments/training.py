"""Gradients of a small network, trained while they pass through a narrow format, with and without a loss scale.

The network has two hidden layers of tanh and learns which arm of a spiral a point is on. Its loss is a mean over
`OUTPUTS` outputs, as of 256 images of 256 x 256 pixels: each of `POINTS` points stands for 2^15 equal ones, so that
gradients of activations are small and their sums, gradients of weights, are not. Everything is float64 but for the
gradients: those of activations are rounded layer by layer, on their way back, those of weights after their sums.
Points and first weights are synthetic, from a seed.

>>> plain, scaled = train("float16", 1, steps=60), train("float16", 2**10, steps=60)
>>> plain.lost > 0.8, scaled.lost < 0.4, plain.loss > 2 * scaled.loss
(True, True, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.checks import check_choice
from softfloat.environments import Environment, Overflow, as_member
from softfloat.experiments.choices import environment_of
from softfloat.formats import Format
from softfloat.status import Flags

__all__ = ["GROWTH", "OUTPUTS", "POINTS", "SCALES", "Training", "train", "train_scaled"]

POINTS = 512
"""Points on the spiral."""
OUTPUTS = 2**24
"""Outputs that the loss is a mean over."""
GROWTH = 2000
"""Steps without overflow after which a dynamic scale doubles: the usual choice (MindSpore's DynamicLossScaleManager, PyTorch's GradScaler)."""

SCALES = tuple(2.0**k for k in range(0, 25, 2))
"""Loss scales, unless told otherwise."""

ARMS = 3
WIDTHS = (2, 16, 16, ARMS)  # products of 2^17 multiply-adds at most, which BLAS leaves to one thread
RATE, MOMENTUM = 0.5, 0.9
WATCHES = ("flags", "values")

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Training:
    """One training of the network.

    Attributes
    ----------
    format : str
        What gradients are rounded to; "float64": they are not.
    overflow : str
        What too large gradients become.
    losses : float64 array of shape (steps + 1,)
        Before each step, and after the last.
    scales : float64 array of shape (steps,)
        The loss scale of each step.
    skipped : int
        Steps that left the weights as they were, because of an overflow.
    accuracy : float
        The share of points on their own arm in the end.
    activations : float64 array
        The gradient of the scaled loss by activations, layer by layer, last layer first, in the last step, before
        rounding; not multiplied by anything but the scale.
    weights : float64 array
        Likewise by weights and biases.
    lost : float
        The share of the last step's gradients of activations that were not zero and became zero.
    flags : Flags
        All that roundings raised.
    """

    format: str
    overflow: str
    losses: Array
    scales: Array
    skipped: int
    accuracy: float
    activations: Array
    weights: Array
    lost: float
    flags: Flags

    @property
    def loss(self) -> float:
        """After the last step."""
        return float(self.losses[-1])


def spiral(seed: int) -> tuple[Array, Array]:
    """Points of shape (POINTS, 2), and the number of the arm that each is on."""
    rng = np.random.default_rng(seed)
    arm = np.arange(POINTS) % ARMS
    radius = rng.uniform(0, 1, POINTS)
    angle = 4 * radius + arm * (2 * np.pi / ARMS)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return points + rng.normal(0, 0.03, points.shape), arm


def train(
    fmt: Format | str | None = None,
    scale: float = 1.0,
    *,
    steps: int = 300,
    seed: int = 0,
    overflow: Overflow | str | None = None,
    dynamic: bool = False,
    growth: int = GROWTH,
    watch: str = "flags",
    environment: Environment | None = None,
) -> Training:
    """Train the network by gradient descent with momentum.

    Parameters
    ----------
    fmt : Format, optional
        What gradients are rounded to; None leaves them alone.
    scale : float
        The loss is multiplied by it, and gradients of weights divided by it once they have been rounded.
    steps : int
    seed : int
        Of points and first weights.
    overflow : Overflow, optional
        What too large gradients become; default "infinity". Not with `environment`.
    dynamic : bool
        Halve the scale, down to 1, after a step with an overflow; double it after `growth` steps without one.
    growth : int
    watch : {"flags", "values"}
        What tells an overflow, upon which a step leaves the weights as they are: OVERFLOW or INVALID in the status, or
        a gradient of a weight that is infinite or NaN, as frameworks look for it.
    environment : Environment, optional
        How gradients are rounded; default to nearest even. Stochastic rounding takes `seed`, where the environment has none.
        Sums are float64's: an accumulator has no part in them. `softfloat.torch.emulate` trains with accumulators.

    Raises
    ------
    ValueError
        Naming the argument and what is accepted.
    """
    if not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"scale must be a positive number, got {scale!r}")
    if steps < 1 or growth < 1:
        raise ValueError(f"steps and growth must be at least 1, got steps={steps}, growth={growth}")
    check_choice("watch", watch, WATCHES)
    target = None if fmt is None else Format.from_name(fmt)
    if environment is not None and overflow is not None:
        raise TypeError(
            "environment comes with overflow; accepted: one or the other (Environment.replace combines them)"
        )
    environment = environment_of(environment, None, seed).replace()
    environment = environment if overflow is None else environment.replace(overflow=overflow)
    points, arm = spiral(seed)
    rng = np.random.default_rng([seed, 1])
    parameters = [rng.normal(0, a**-0.5, (a, b)) for a, b in pairwise(WIDTHS)]
    parameters += [np.zeros(b) for b in WIDTHS[1:]]
    velocity = [np.zeros_like(x) for x in parameters]
    rounded = _rounding(target, environment)
    losses, scales, skipped, clean = [], [], 0, 0
    raised = Flags(0)
    for _ in range(steps):
        environment.status.clear()
        found = _gradients(parameters, points, arm, scale, rounded)
        losses.append(found.loss)
        scales.append(scale)
        raised |= environment.status.flags
        if watch == "flags":
            bad = bool(environment.status.flags & (Flags.OVERFLOW | Flags.INVALID))
        else:
            bad = not all(np.isfinite(x).all() for x in found.rounded)
        clean = 0 if bad else clean + 1
        if bad:
            skipped += 1
        else:
            for parameter, speed, gradient in zip(parameters, velocity, found.rounded, strict=True):
                speed *= MOMENTUM
                speed -= RATE * gradient / scale
                parameter += speed
        if dynamic and bad:
            scale = max(scale / 2, 1.0)
        elif dynamic and clean == growth:
            scale, clean = 2 * scale, 0
    scores = _forward(parameters, points)[-1]
    losses.append(float(_surprise(scores, arm).mean()))
    before, after = found.activations, found.activations_rounded
    nonzero = before != 0
    return Training(
        format="float64" if target is None else target.name,
        overflow=as_member(Overflow, environment.overflow, "overflow").name.lower(),
        losses=np.array(losses),
        scales=np.array(scales),
        skipped=skipped,
        accuracy=float((scores.argmax(axis=1) == arm).mean()),
        activations=before,
        weights=np.concatenate([x.ravel() for x in found.weights]),
        lost=float((after[nonzero] == 0).mean()),
        flags=raised,
    )


def train_scaled(
    scales: Iterable[float] = SCALES, fmt: Format | str = "float16", **options: Any
) -> tuple[Training, ...]:
    """`train` with each scale. `options` are its other arguments, among them `environment`; it takes no accumulator."""
    return tuple(train(fmt, scale, **options) for scale in scales)


@dataclass(frozen=True, eq=False)
class _Gradients:
    loss: float
    activations: Array
    activations_rounded: Array
    weights: list[Array]
    rounded: list[Array]


def _rounding(fmt: Format | None, environment: Environment) -> Callable[[Array], Array]:
    if fmt is None:
        return lambda x: x
    return lambda x: np.asarray(bits.decode(environment.evaluate(bits.encode, x, fmt), fmt))


def _forward(parameters: list[Array], points: Array) -> list[Array]:
    """Activations of all layers, the points first and the scores last."""
    layers, last = [points], len(WIDTHS) - 2
    for i in range(last + 1):
        sums = layers[-1] @ parameters[i] + parameters[last + 1 + i]
        layers.append(np.tanh(sums) if i < last else sums)
    return layers


def _surprise(scores: Array, arm: Array) -> Array:
    """Cross entropy of each point."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(arm)), arm]


def _gradients(
    parameters: list[Array], points: Array, arm: Array, scale: float, rounded: Callable[[Array], Array]
) -> _Gradients:
    layers = _forward(parameters, points)
    shifted = np.exp(layers[-1] - layers[-1].max(axis=1, keepdims=True))
    errors = shifted / shifted.sum(axis=1, keepdims=True) - np.eye(ARMS)[arm]
    alike = OUTPUTS // POINTS
    last = len(WIDTHS) - 2
    before = [errors * (scale / OUTPUTS)]
    after = [rounded(before[0])]
    weights: list[Array] = []
    biases: list[Array] = []
    with np.errstate(invalid="ignore", over="ignore"):  # of infinities that scales have made
        for i in range(last, -1, -1):
            weights.insert(0, alike * (layers[i].T @ after[-1]))
            biases.insert(0, alike * after[-1].sum(axis=0))
            if i:
                before.append((after[-1] @ parameters[i].T) * (1 - layers[i] ** 2))
                after.append(rounded(before[-1]))
    sums = weights + biases
    return _Gradients(
        loss=float(_surprise(layers[-1], arm).mean()),
        activations=np.concatenate([x.ravel() for x in before]),
        activations_rounded=np.concatenate([x.ravel() for x in after]),
        weights=sums,
        rounded=[rounded(x) for x in sums],
    )
