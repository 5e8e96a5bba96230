"""Where the programs' models are trained: a device that computes, times and counts, and what runs on it."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from softfloat.commands.output import CommandError
from softfloat.environments import Environment
from softfloat.status import NO_FLAGS, Flags

if TYPE_CHECKING:
    import torch

__all__ = ["Batches", "Device", "Learner", "Loop", "Outcome", "Step", "Stopped", "correct"]

Batches = Iterable["tuple[torch.Tensor, torch.Tensor]"]
"""Images of shape (batch, channels, height, width) with their labels."""


class Stopped(Exception):
    """A training that cannot go on, with the reason."""


@dataclass
class Outcome:
    """What a step says of itself.

    Attributes
    ----------
    loss : float
        Not scaled.
    loss_scale : float
    flags : Flags
        Raised within the step, and lowered by it.
    dropped : bool
        Whether an overflow kept the parameters from their update.
    """

    loss: float
    loss_scale: float
    flags: Flags = NO_FLAGS
    dropped: bool = False


@dataclass(frozen=True)
class Step:
    """One training step.

    Attributes
    ----------
    loss : float
        Not scaled.
    loss_scale : float
    seconds : float
    flags : Flags
        Raised within it; none where nothing was emulated.
    counted : bool
        Whether swamping was counted in it, which takes long.
    dropped : bool
        Whether an overflow kept the parameters from their update.
    """

    loss: float
    loss_scale: float
    seconds: float
    flags: Flags
    counted: bool
    dropped: bool = False


class Device:
    """Where steps are carried out: in emulated arithmetic, or as PyTorch does, timed and with their flags and counts kept.

    Parameters
    ----------
    environment : Environment, optional
        Of float16 tensors. None: nothing is emulated.
    partials : {"half", "float"}
        What sums of products are stored as, in the IPU's Accumulating Matrix Product unit.
    loss_scale : float
        For the books, of steps that do not say otherwise.
    period : int
        Every so many steps, swamping is counted.
    after : callable
        Called with each step.
    """

    def __init__(
        self,
        environment: Environment | None,
        partials: str,
        loss_scale: float,
        period: int,
        after: Callable[[Step], object] = lambda step: None,
    ) -> None:
        self.environment, self.partials = environment, partials
        self.loss_scale, self.period, self.after = loss_scale, period, after
        self.steps: list[Step] = []
        self.tallies: dict[str, Any] = {}
        self.findings: list[str] = []

    def spare(self) -> Device:
        """Another like it with books of its own, and the same random numbers from the beginning."""
        environment = self.environment
        return Device(environment and environment.replace(), self.partials, self.loss_scale, 0)

    def examine(self, optimiser: torch.optim.Optimizer) -> None:
        """Enter settings that the parameters' format changes into the books, and refuse those it makes zero or infinite.

        Raises
        ------
        CommandError
            Naming the setting.
        """
        from softfloat.torch import check_hyperparameters

        for finding in check_hyperparameters(optimiser, environment=self.environment):
            if finding.kind in ("zero", "overflow"):
                raise CommandError(str(finding))
            self.findings.append(str(finding))

    def emulation(self, count: bool = False) -> Any:
        """The arithmetic, as a context."""
        if self.environment is None:
            return contextlib.nullcontext()
        from softfloat.accumulators import amp
        from softfloat.torch import emulate

        accumulator = amp(self.partials)
        return emulate(self.environment, matmul=accumulator, convolution=accumulator, count=count)

    def step(self, action: Callable[[], float]) -> None:
        """Carry out one step, which returns its loss."""
        with self.stepping() as outcome:
            outcome.loss = action()

    @contextlib.contextmanager
    def stepping(self) -> Iterator[Outcome]:
        """One step, as a context: what it came to is entered into the books at its end."""
        counted = self.environment is not None and self.period > 0 and (len(self.steps) + 1) % self.period == 0
        if self.environment is not None:
            self.environment.status.clear()
        outcome = Outcome(math.nan, self.loss_scale)
        began = time.perf_counter()
        with self.emulation(counted) as emulation:
            yield outcome
        seconds = time.perf_counter() - began
        flags = NO_FLAGS if self.environment is None else self.environment.status.flags | outcome.flags
        for name, tally in (emulation.tallies if counted else {}).items():
            self.tallies[name] = self.tallies[name] + tally if name in self.tallies else tally
        self.steps.append(Step(outcome.loss, outcome.loss_scale, seconds, flags, counted, outcome.dropped))
        self.after(self.steps[-1])


# -- learners --------------------------------------------------------------------------------------------------------


class Learner(Protocol):
    """A model that a program trains on a device."""

    def train(self, batches: Batches) -> None:
        """One step for each batch."""

    def accuracy(self, batches: Batches) -> float:
        """The share of images given their class, without any change to the model."""


class Loop:
    """A learner that is a model and what to do with a batch.

    Parameters
    ----------
    device : Device
    model : torch.nn.Module
        From images to scores.
    step : callable
        From images and labels to the loss, with the model updated.
    """

    def __init__(self, device: Device, model: torch.nn.Module, step: Callable[[Any, Any], float]) -> None:
        self.device, self.model, self.step = device, model, step

    def train(self, batches: Batches) -> None:
        """One step for each batch."""
        self.model.train()
        for images, labels in batches:
            self.device.step(partial(self.step, images, labels))

    def accuracy(self, batches: Batches) -> float:
        """The share of images given their class."""
        import torch

        self.model.eval()
        right = total = 0
        with torch.no_grad(), self.device.emulation():
            for images, labels in batches:
                right += correct(self.model(images), labels)
                total += len(labels)
        return right / total


def correct(scores: torch.Tensor, labels: torch.Tensor) -> int:
    """How many images have their highest score, the first of equal ones, at their label."""
    return int((scores.argmax(1) == labels).sum())
