"""The training of `float32_parameter_updates` through an estimator: a function that makes the model, another that feeds it.

`Estimator` has the shape of TensorFlow's, which the tutorial's third program uses, cut down to what that needs.
`python -m softfloat.examples.estimator mixed` gives the numbers of `float32_parameter_updates mixed`.

Source: Graphcore's tutorial "Training a model using half- and mixed-precision", ipuestimator_fp16.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from softfloat.examples import float32_parameter_updates
from softfloat.examples.data import Dataset
from softfloat.examples.device import Batches, Device, Learner, correct
from softfloat.examples.program import Program

if TYPE_CHECKING:
    import torch

__all__ = ["Estimator", "EstimatorSpec", "main"]


class EstimatorSpec(NamedTuple):
    """What an estimator works with.

    Attributes
    ----------
    model : torch.nn.Module
        From features to scores.
    loss : callable
        From scores and labels to the loss.
    train_op : callable
        Updates the model, given the loss.
    """

    model: torch.nn.Module
    loss: Callable[[Any, Any], torch.Tensor]
    train_op: Callable[[torch.Tensor], None]


class Estimator:
    """Trains and evaluates what a function makes.

    Parameters
    ----------
    model_fn : callable
        From `params` to an EstimatorSpec; called once.
    device : Device
        What the steps are carried out on.
    params
        For `model_fn`.

    Attributes
    ----------
    global_step : int
        Steps taken.
    """

    def __init__(self, model_fn: Callable[[Any], EstimatorSpec], device: Device, params: Any = None) -> None:
        self.device, self.global_step = device, 0
        self._spec = model_fn(params)

    def train(self, input_fn: Callable[[], Batches], steps: int) -> Estimator:
        """Take so many steps, or as many as there are batches.

        Parameters
        ----------
        input_fn : callable
            Returns batches of features and labels.
        steps : int
        """
        self._spec.model.train()
        for features, labels in islice(input_fn(), steps):
            self.device.step(partial(self._step, features, labels))
            self.global_step += 1
        return self

    def _step(self, features: torch.Tensor, labels: torch.Tensor) -> float:
        loss = self._spec.loss(self._spec.model(features), labels)
        self._spec.train_op(loss)
        return float(loss.detach())

    def evaluate(self, input_fn: Callable[[], Batches], steps: int | None = None) -> dict[str, float]:
        """Loss and accuracy, means over the images of so many batches; all, if `steps` is None."""
        import torch

        self._spec.model.eval()
        loss, right, total = 0.0, 0, 0
        with torch.no_grad(), self.device.emulation():
            for features, labels in islice(input_fn(), steps):
                scores = self._spec.model(features)
                loss += float(self._spec.loss(scores, labels)) * len(labels)
                right += correct(scores, labels)
                total += len(labels)
        if not total:
            raise ValueError("input_fn must return at least one batch")
        return {"loss": loss / total, "accuracy": right / total, "global_step": self.global_step}


class _Estimated:
    """An estimator as the programs' epochs want it."""

    def __init__(self, estimator: Estimator) -> None:
        self.estimator = estimator

    def train(self, batches: Batches) -> None:
        found = list(batches)
        self.estimator.train(lambda: found, steps=len(found))

    def accuracy(self, batches: Batches) -> float:
        return self.estimator.evaluate(lambda: batches)["accuracy"]


def build(options: argparse.Namespace, data: Dataset, device: Device) -> Learner:
    """An estimator of the model of `float32_parameter_updates`."""
    import torch

    def model_fn(params: argparse.Namespace) -> EstimatorSpec:
        model, update = float32_parameter_updates.model_and_updates(params, data, device)
        return EstimatorSpec(
            model, lambda scores, labels: torch.nn.functional.cross_entropy(scores.float(), labels), update
        )

    return _Estimated(Estimator(model_fn, device, options))


PROGRAM = Program(
    name="estimator",
    description="Trains two convolutions through an estimator, in half precision with parameters in single, or all in single.",
    precisions=("mixed", "float32"),
    environment=float32_parameter_updates.environment,
    build=build,
)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
