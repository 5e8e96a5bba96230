"""What an evaluation finds: MindSpore's metrics, on the host and in float64.

>>> import torch
>>> accuracy = Accuracy()
>>> accuracy.update(torch.tensor([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), torch.tensor([1, 0, 1]))
>>> accuracy.eval()
0.6666666666666666
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

__all__ = ["METRICS", "Accuracy", "Loss", "Metric", "by_name"]


class Metric(ABC):
    """What an evaluation finds: a number, of outputs and labels batch by batch.

    Source
    ------
    mindspore-ai/mindspore, train/metrics/metric.py.
    """

    @abstractmethod
    def clear(self) -> None:
        """Begin anew."""

    @abstractmethod
    def update(self, *inputs: Any) -> None:
        """Take a batch: outputs and labels; of a `Loss`, the loss alone."""

    @abstractmethod
    def eval(self) -> float:
        """The number."""


class Accuracy(Metric):
    """The share of examples whose highest score, the first of equal ones, is at their label.

    `update(scores, labels)` takes scores of shape (N, classes) or (N, classes, ...), and labels of shape (N, ...) or one-hot
    ones in the shape of the scores.
    """

    def __init__(self) -> None:
        self._right = self._total = 0

    def clear(self) -> None:
        """Begin anew."""
        self._right = self._total = 0

    def update(self, *inputs: Any) -> None:
        """Take scores and labels."""
        if len(inputs) != 2:
            raise ValueError(f"Accuracy takes scores and labels, got {_number_of(len(inputs), 'argument')}")
        scores, labels = (_numbers(x) for x in inputs)
        if scores.ndim < 2:
            raise ValueError(f"scores must have shape (N, classes, ...), got {scores.shape}")
        if labels.shape == scores.shape and _one_hot(labels):
            labels = labels.argmax(1)
        if labels.shape != scores.shape[:1] + scores.shape[2:]:
            raise ValueError(
                f"labels must have shape {scores.shape[:1] + scores.shape[2:]}, or be one-hot in that of the scores, "
                f"{scores.shape}, got {labels.shape}"
            )
        self._right += int((scores.argmax(1) == labels).sum())
        self._total += labels.size

    def eval(self) -> float:
        """The share."""
        return _mean("Accuracy", self._right, self._total)


class Loss(Metric):
    """The mean of the batches' losses, each counted once.

    >>> loss = Loss()
    >>> loss.update(torch.tensor(0.5))
    >>> loss.update(torch.tensor(1.0))
    >>> loss.eval()
    0.75
    """

    def __init__(self) -> None:
        self._sum, self._total = 0.0, 0

    def clear(self) -> None:
        """Begin anew."""
        self._sum, self._total = 0.0, 0

    def update(self, *inputs: Any) -> None:
        """Take a loss."""
        if len(inputs) != 1:
            raise ValueError(f"Loss takes a loss, got {_number_of(len(inputs), 'argument')}")
        self._sum += float(_numbers(inputs[0]).mean())
        self._total += 1

    def eval(self) -> float:
        """The mean."""
        return _mean("Loss", self._sum, self._total)


METRICS: dict[str, Callable[[], Metric]] = {"accuracy": Accuracy, "acc": Accuracy, "loss": Loss}
"""Metrics by the names that a set of them may have."""


def _numbers(x: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """On the host; NumPy knows no bfloat16."""
    if isinstance(x, torch.Tensor):
        x = x.detach().cpu()
        return np.asarray(x.to(torch.float32) if x.dtype == torch.bfloat16 else x)
    return np.asarray(x)


def _one_hot(labels: np.ndarray[Any, np.dtype[Any]]) -> bool:
    return bool(np.isin(labels, (0, 1)).all() and (labels.sum(1) == 1).all())


def _mean(name: str, found: float, total: int) -> float:
    if not total:
        raise RuntimeError(f"{name} has nothing to evaluate: update was not called since the last clear")
    return found / total


def _number_of(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count != 1)


def by_name(given: Any) -> dict[str, Metric]:
    """What a model was told to evaluate, as metrics by name."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        for name, metric in given.items():
            if not isinstance(name, str) or not isinstance(metric, Metric):
                raise TypeError(f"metrics must map names to softfloat.torch.Metric instances, got {name!r}: {metric!r}")
        return dict(given)
    if not isinstance(given, (set, frozenset)):
        raise TypeError(f"metrics must be a dict of metrics by name, a set of names or None, got {given!r}")
    for name in given:
        if name not in METRICS:
            raise ValueError(f"metrics may name {', '.join(METRICS)}; others as a dict, got {name!r}")
    return {name: METRICS[name]() for name in sorted(given)}
