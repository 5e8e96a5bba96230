"""A residual network trained in half precision throughout, parameters included, with stochastic rounding: the tutorial's Method 1.

`python -m softfloat.examples.stochastic_rounding float16 8` trains ResNet-8 with every float16 operation emulated;
`float32` trains the same network natively. The loss is multiplied by the loss scaling factor and the learning rate
divided by it, so that the update of gradient descent with momentum is the right one.

Source: Graphcore's tutorial "Training a model using half- and mixed-precision", stochastic_rounding.py.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from softfloat.commands.output import CommandError
from softfloat.environments import Environment
from softfloat.examples.data import Dataset
from softfloat.examples.device import Device, Learner, Loop
from softfloat.examples.program import Program
from softfloat.formats import float16

if TYPE_CHECKING:
    import torch

__all__ = ["main"]

MOMENTUM = 0.9
DEEPEST = 1202  # in He et al., who introduced these networks


def add_options(parser: argparse.ArgumentParser) -> None:
    """The depth, and the switch for rounding to nearest."""
    depth = "layers of the network: 6N + 2, such as 8, 14, 20 or 26"
    parser.add_argument("depth", type=_depth, metavar="DEPTH", help=depth)
    rounding = "round float16 to nearest even"
    parser.add_argument("--disable-stochastic-rounding", action="store_true", help=rounding)


def _depth(text: str) -> int:
    try:
        depth = int(text)
    except ValueError:
        depth = 0
    if depth % 6 != 2 or not 8 <= depth <= DEEPEST:
        raise argparse.ArgumentTypeError(
            f"must be 6N + 2, such as 8, 14, 20 or 26, and at most {DEEPEST}, got {text.strip()[:40]!r}"
        )
    return depth


def check(options: argparse.Namespace) -> None:
    """Refuse a scale that float16 cannot hold."""
    if options.precision == "float16" and options.loss_scaling_factor > float16.max:
        raise CommandError(
            f"argument --loss-scaling-factor: must be at most {float16.max:g} in float16, got {options.loss_scaling_factor:g}"
        )


def environment(options: argparse.Namespace) -> Environment | None:
    """The IPU's, saturating, nothing trapped."""
    if options.precision == "float32":
        return None
    return Environment.ipu(esr=not options.disable_stochastic_rounding, seed=options.seed)


def build(options: argparse.Namespace, data: Dataset, device: Device) -> Learner:
    """The network, its parameters and momentum in the chosen precision."""
    import torch

    from softfloat.examples.models import ResNet

    factor = options.loss_scaling_factor
    model = ResNet((options.depth - 2) // 6, data.train_images.shape[1])
    model.to(torch.float16 if options.precision == "float16" else torch.float32)
    optimiser = torch.optim.SGD(model.parameters(), lr=options.learning_rate / factor, momentum=MOMENTUM)
    device.examine(optimiser)

    def step(images: torch.Tensor, labels: torch.Tensor) -> float:
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        (loss * factor).backward()
        optimiser.step()
        return float(loss.detach())

    return Loop(device, model, step)


PROGRAM = Program(
    name="stochastic_rounding",
    description="Trains a residual network in half precision with stochastic rounding, or in single precision.",
    precisions=("float16", "float32"),
    environment=environment,
    build=build,
    add_options=add_options,
    check=check,
)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
