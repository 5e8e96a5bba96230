"""LeNet-5 trained at MindSpore's levels of mixed precision, through its `Model`: the program of its tutorial.

`python -m softfloat.examples.lenet5 O2` lets all layers compute in float16, with parameters and the loss in float32 and
the loss scaled by a number that is found on the way; O3 does not scale it, O0 trains in float32. `--to-float conv1` at O0
lets one layer compute in half, the tutorial's "manual" mixed precision. Every float16 operation is emulated.

`--device-target` decides what "auto" means, and what an overflow does. On a GPU it makes infinities, and a step overflows
whose gradients are not finite. On Ascend it saturates, and a status register tells; that is the mode of the first
generation of training processors, whose NaN, which becomes 0, is not emulated.

`dynamic` is the tutorial's manager as its text describes it, with a factor of 4 and a window of 3000 steps. Its code
passes both by position to parameters that stand elsewhere: `DynamicLossScaleManager` has more.

Source: MindSpore's tutorial on mixed precision (r1.8). CANN, aclrtFloatOverflowMode.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from softfloat.commands.arguments import non_negative
from softfloat.commands.output import CommandError
from softfloat.environments import Environment
from softfloat.examples.data import Dataset
from softfloat.examples.device import Batches, Device, Learner, Stopped
from softfloat.examples.program import Program

if TYPE_CHECKING:
    from softfloat.torch import GradScaler, Model

__all__ = ["main"]

MOMENTUM = 0.9
SIDE = 32  # of LeNet-5's images
LAYERS = ("conv1", "conv2", "fc1", "fc2", "fc3")
AUTO = {"GPU": "O2", "Ascend": "O3"}
MANAGERS = ("none", "fixed", "fixed-keep", "dynamic")


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the tutorial varies."""
    add = parser.add_argument
    manager = (
        "what scales the loss: fixed (by 128) drops steps that overflow, fixed-keep (by 1024) takes them, dynamic begins with "
        "2^24, divides by 4 after an overflow and multiplies after 3000 steps without (default: the level's, for O2 one "
        "that divides by 2 and multiplies after 2000 steps)"
    )
    add("--loss-scale-manager", choices=MANAGERS, help=manager)
    layer = "a layer that computes in float16 at O0, between casts; may be given several times"
    add("--to-float", action="append", choices=LAYERS, default=[], help=layer)
    target = "what auto means, O2 or O3, and whether overflow makes infinities or saturates (default: GPU)"
    add("--device-target", choices=tuple(AUTO), default="GPU", help=target)
    monitor = "print the loss every N steps, never if 0 (default: at the end of each epoch)"
    add("--loss-monitor", type=non_negative, metavar="N", help=monitor)


def _level(options: argparse.Namespace) -> str:
    level: str = AUTO[options.device_target] if options.precision == "auto" else options.precision
    return level


def _scaled(options: argparse.Namespace) -> bool:
    manager = options.loss_scale_manager
    return manager != "none" if manager else _level(options) == "O2"


def check(options: argparse.Namespace) -> None:
    """Refuse what would change nothing."""
    if options.loss_scaling_factor is not None:
        if not _scaled(options):
            manager = "none is asked for" if options.loss_scale_manager else f"{options.precision} has none of its own"
            raise CommandError(f"argument --loss-scaling-factor: needs a --loss-scale-manager, {manager}")
        if options.loss_scaling_factor < 1:
            raise CommandError(
                f"argument --loss-scaling-factor: must be at least 1, got {options.loss_scaling_factor:g}"
            )
    if environment(options) is None and options.use_float16_partials:
        raise CommandError("argument --use-float16-partials: O0 has no float16, but for layers that --to-float names")


def environment(options: argparse.Namespace) -> Environment | None:
    """That of the device; none where nothing computes in half."""
    if _level(options) == "O0" and not options.to_float:
        return None
    return Environment(overflow="saturate" if options.device_target == "Ascend" else "infinity")


def enlarged(found: Dataset) -> Dataset:
    """Images of 32 x 32 pixels: each pixel repeated as often as that leaves room for, and a border of zeros."""

    def enlarge(images: Any) -> Any:
        side = images.shape[-1]
        times, border = SIDE // side, (SIDE - SIDE // side * side) // 2
        images = images.repeat(times, axis=2).repeat(times, axis=3)
        return np.pad(images, ((0, 0), (0, 0), (border, border), (border, border)))

    return replace(found, train_images=enlarge(found.train_images), test_images=enlarge(found.test_images))


def manager(options: argparse.Namespace, device: Device) -> GradScaler | None:
    """The loss scale manager."""
    from softfloat.torch import DynamicLossScaleManager, FixedLossScaleManager

    if not _scaled(options):
        return None
    scale: dict[str, Any] = {"environment": device.environment}
    if options.device_target == "GPU":
        scale["flags"] = ()  # gradients alone tell
    if options.loss_scale_manager in ("fixed", "fixed-keep"):
        keep = options.loss_scale_manager == "fixed-keep"
        factor = options.loss_scaling_factor or (1024.0 if keep else 128.0)
        return FixedLossScaleManager(factor, drop_overflow_update=not keep, **scale)
    if options.loss_scaling_factor:
        scale["init_loss_scale"] = options.loss_scaling_factor
    if options.loss_scale_manager == "dynamic":
        scale |= {"scale_factor": 4, "scale_window": 3000}
    return DynamicLossScaleManager(**scale)


def build(options: argparse.Namespace, data: Dataset, device: Device) -> Learner:
    """The tutorial's network, loss, optimiser and model."""
    import torch

    from softfloat.examples.models import LeNet5
    from softfloat.torch import Accuracy, Model, to_float

    level = _level(options)
    network = LeNet5(data.train_images.shape[1])
    for name in options.to_float:
        layer = to_float(network.get_submodule(name), torch.float16)
        if level == "O0":  # the next layer takes what its parameters are
            layer.register_forward_hook(lambda module, inputs, output: output.float())
    if options.precision == "auto":
        device.findings.append(f"auto is {level} on {options.device_target}")
    if options.to_float:
        named = " ".join(options.to_float)
        device.findings.append(
            f"in float16: {named}; all else in float32"
            if level == "O0"
            else f"--to-float {named} changes nothing at {level}, where all layers compute in float16"
        )
    optimiser = torch.optim.SGD(network.parameters(), lr=options.learning_rate, momentum=MOMENTUM)
    device.examine(optimiser)
    model = Model(
        network,
        torch.nn.CrossEntropyLoss(),
        optimiser,
        metrics={"Accuracy": Accuracy()},
        amp_level=level,
        loss_scale_manager=manager(options, device),
    )
    return _Modelled(model, device, options.loss_monitor)


class _Modelled:
    """A model as the programs' epochs want it."""

    def __init__(self, model: Model, device: Device, monitored: int | None) -> None:
        self.model, self.device = model, device
        self._monitored, self._epochs = monitored, 0

    def train(self, batches: Batches) -> None:
        from softfloat.torch import InvalidLossError, LossMonitor

        found = list(batches)
        every = len(found) if self._monitored is None else self._monitored
        spare = self.device.period == 0
        monitor = LossMonitor(0 if spare else every, write=lambda line: print(line, file=sys.stderr))
        try:
            self.model.train(self._epochs + 1, found, [_bookkeeper(self.device), monitor], initial_epoch=self._epochs)
        except InvalidLossError as reason:
            raise Stopped(str(reason)) from None
        self._epochs += 1

    def accuracy(self, batches: Batches) -> float:
        with self.device.emulation():
            return self.model.eval(list(batches))["Accuracy"]


def _bookkeeper(device: Device) -> Any:
    """A callback that carries out each step on a device."""
    from softfloat.torch import Callback, RunContext

    class Bookkeeper(Callback):
        def __enter__(self) -> Bookkeeper:
            self.step = ExitStack()
            return self

        def __exit__(self, *exception: Any) -> None:
            self.step.__exit__(*exception)

        def step_begin(self, run_context: RunContext) -> None:
            self.outcome = self.step.enter_context(device.stepping())

        def step_end(self, run_context: RunContext) -> None:
            done = run_context.original_args().net_outputs
            self.outcome.loss, self.outcome.loss_scale = float(done.loss), done.scale
            self.outcome.flags, self.outcome.dropped = done.flags, done.overflow
            self.step.close()

    return Bookkeeper()


PROGRAM = Program(
    name="lenet5",
    description="Trains LeNet-5 at one of MindSpore's levels of mixed precision, or in single precision.",
    precisions=("O0", "O2", "O3", "auto"),
    environment=environment,
    build=build,
    add_options=add_options,
    check=check,
    prepare=enlarged,
    images="float32",
    epochs=10,
    loss_scale=None,
    about_loss_scale="first scale of the loss scale manager (default: its own)",
)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
