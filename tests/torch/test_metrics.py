"""Metrics beside their definitions: shares of right answers and means of losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from softfloat.torch import Accuracy, Loss  # noqa: E402 -- after the skip


@given(
    st.lists(
        st.lists(st.tuples(st.lists(st.integers(-3, 3), min_size=3, max_size=3), st.integers(0, 2)), min_size=1),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_accuracy(batches: list[Any], one_hot: bool) -> None:
    """Small integers as scores: ties are common, and the first of them is the answer."""
    accuracy, answers = Accuracy(), []
    accuracy.update(torch.ones(1, 2), torch.ones(1))
    accuracy.clear()
    for batch in batches:
        scores = torch.tensor([s for s, _ in batch], dtype=torch.bfloat16)
        labels = torch.tensor([label for _, label in batch])
        accuracy.update(scores, torch.nn.functional.one_hot(labels, 3).float() if one_hot else labels)
        answers += [s.index(max(s)) == label for s, label in batch]
    assert accuracy.eval() == sum(answers) / len(answers)


def test_accuracy_of_pixels() -> None:
    scores = torch.zeros(2, 3, 4, 5)
    scores[:, 1] = 1.0
    labels = torch.ones(2, 4, 5)
    labels[1, 2] = 0
    accuracy = Accuracy()
    accuracy.update(scores, labels)
    assert accuracy.eval() == 35 / 40
    accuracy.clear()
    accuracy.update(scores.numpy(), scores)  # one-hot, and an array
    assert accuracy.eval() == 1


def test_two_labels_at_once_are_not_one_hot() -> None:
    with pytest.raises(ValueError, match=r"labels must have shape \(1,\), or be one-hot .* got \(1, 3\)"):
        Accuracy().update(torch.zeros(1, 3), torch.tensor([[1, 1, 0]]))


def test_batches_of_a_loss_count_alike() -> None:
    loss = Loss()
    for value in (1.0, 2.0, 6.0):
        loss.update(torch.tensor(value))
    assert loss.eval() == 3
    loss.clear()
    loss.update(np.array([1.0, 2.0]))
    assert loss.eval() == 1.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Accuracy().eval(), "Accuracy has nothing to evaluate"),
        (lambda: Loss().eval(), "Loss has nothing to evaluate"),
        (lambda: Accuracy().update(torch.zeros(2, 2)), "Accuracy takes scores and labels, got 1 argument$"),
        (lambda: Loss().update(), "Loss takes a loss, got 0 arguments"),
        (lambda: Accuracy().update(torch.zeros(2), torch.zeros(2)), r"scores must have shape \(N, classes, ...\), got"),
        (lambda: Accuracy().update(torch.zeros(2, 3), torch.zeros(3)), r"labels must have shape \(2,\)"),
    ],
)
def test_errors_say_what_is_taken(call: Any, words: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=words):
        call()
