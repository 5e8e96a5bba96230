"""Two convolutions trained in half precision on parameters stored and updated in single: the tutorial's Method 2.

`python -m softfloat.examples.float32_parameter_updates mixed` casts float32 parameters to float16 wherever the model
uses them, which is what the tutorial's "custom getter" does; forward and backward passes are emulated, gradients are
cast back and divided by the loss scaling factor in float32. Overflow makes NaN, and it, invalid operations and
divisions by zero stop the training. `float32` trains the same model natively.

Source: Graphcore's tutorial "Training a model using half- and mixed-precision", float32_parameter_updates.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from softfloat.environments import Environment
from softfloat.examples.data import Dataset
from softfloat.examples.device import Device, Learner, Loop
from softfloat.examples.program import Program

if TYPE_CHECKING:
    import torch

__all__ = ["environment", "main", "model_and_updates"]

EPSILON = 1e-4  # of Adam: the usual 1e-8 is zero in float16


def environment(options: argparse.Namespace) -> Environment | None:
    """The IPU's, with NaN on overflow and every exception trapped."""
    return None if options.precision == "float32" else Environment.ipu(inv=True, div0=True, oflo=True, nanoo=True)


def model_and_updates(
    options: argparse.Namespace, data: Dataset, device: Device
) -> tuple[torch.nn.Module, Callable[[torch.Tensor], None]]:
    """The model, and what updates its parameters given the loss."""
    import torch

    from softfloat.examples.models import TwoConvolutions
    from softfloat.torch import float32_parameters

    factor = options.loss_scaling_factor
    model = TwoConvolutions(*data.train_images.shape[1:])
    if options.precision == "mixed":
        float32_parameters(model, torch.float16)
    parameters = list(model.parameters())
    optimiser = torch.optim.Adam(parameters, lr=options.learning_rate, eps=EPSILON)
    device.examine(optimiser)

    def update(loss: torch.Tensor) -> None:
        optimiser.zero_grad()
        (loss * factor).backward()
        for parameter in parameters:
            parameter.grad /= factor  # float32, like the parameter
        optimiser.step()

    return model, update


def build(options: argparse.Namespace, data: Dataset, device: Device) -> Learner:
    """The model and its training step."""
    import torch

    model, update = model_and_updates(options, data, device)

    def step(images: torch.Tensor, labels: torch.Tensor) -> float:
        loss = torch.nn.functional.cross_entropy(model(images).float(), labels)
        update(loss)
        return float(loss.detach())

    return Loop(device, model, step)


PROGRAM = Program(
    name="float32_parameter_updates",
    description="Trains two convolutions in half precision with parameters in single precision, or all in single.",
    precisions=("mixed", "float32"),
    environment=environment,
    build=build,
)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
