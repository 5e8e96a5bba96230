"""What training in emulated half precision costs, as ratios to PyTorch's own half precision on the same CPU.

    python benchmarks/training.py [--rounds 5] [--json FILE]

An epoch of the tutorial's two-convolution net on scikit-learn's digits (1 797 images of 8 x 8, batches of 32: 56 steps,
each forward, backward and SGD with momentum, everything in half), natively and emulated, taken in turn; of each the
fastest round. `limit` is what the ratio is meant to stay below. Then one step of ResNet-8 on a batch of 32 images as
large as those of CIFAR-10, in seconds. The first round of each compiles and is not counted.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from measuring import arguments_of, described, machine, write_json
from torch.nn import functional

from softfloat import Accumulator, Environment
from softfloat.accumulators import amp, fma
from softfloat.examples import data
from softfloat.examples.models import ResNet, TwoConvolutions
from softfloat.torch import emulate

BATCH = 32
WAYS: dict[str, tuple[Accumulator | None, Environment | None, float | None]] = {
    "native": (None, None, None),
    'float partials, fma("float32")': (fma("float32"), Environment(), 3.0),
    'float partials, amp("float")': (amp("float"), Environment(), 3.0),
    'half partials, fma("float16")': (fma("float16"), Environment(), 15.0),
    'half partials, amp("half")': (amp("half"), Environment(), 15.0),
    'IPU, stochastic, amp("float")': (amp("float"), Environment.ipu(esr=True, nanoo=True, seed=0), None),
    'IPU, stochastic, amp("half")': (amp("half"), Environment.ipu(esr=True, nanoo=True, seed=0), None),
}
RESNET_LIMIT = 5.0  # seconds


def trainer(model: torch.nn.Module, batches: list[tuple[Any, Any]], name: str) -> Callable[[], float]:
    """Runs over the batches once; returns seconds."""
    how, environment, _ = WAYS[name]
    optimiser = torch.optim.SGD(model.parameters(), lr=2.0**-10, momentum=0.9)

    def run() -> float:
        start = time.perf_counter()
        with emulate(environment, how, how) if how is not None else contextlib.nullcontext():
            for images, labels in batches:
                optimiser.zero_grad()
                functional.cross_entropy(model(images), labels).backward()
                optimiser.step()
        return time.perf_counter() - start

    return run


def fastest(runs: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    for run in runs.values():
        run()
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            best[name] = min(best[name], run())
    return best


def digits() -> list[tuple[Any, Any]]:
    found = data.load("digits")
    images = torch.from_numpy(np.concatenate([found.train_images, found.test_images])).half()
    labels = torch.from_numpy(np.concatenate([found.train_labels, found.test_labels]))
    whole = len(images) - len(images) % BATCH
    return list(zip(images[:whole].split(BATCH), labels[:whole].split(BATCH), strict=True))


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(described(machine()))
    batches = digits()
    runs = {}
    for name in WAYS:
        torch.manual_seed(0)
        runs[name] = trainer(TwoConvolutions(1, 8, 8).half(), batches, name)
    epochs = fastest(runs, arguments.rounds)
    torch.manual_seed(0)
    batch = [(torch.rand(BATCH, 3, 32, 32).half(), torch.arange(BATCH) % 10)]
    steps = fastest(
        {name: trainer(ResNet(1, channels=3).half(), batch, name) for name in WAYS}, max(arguments.rounds // 2, 1)
    )
    rows = []
    print(f"{'':<32}{'epoch, s':>10}{'ratio':>8}{'limit':>8}   {'ResNet-8 step, s':>16}{'limit':>8}")
    for name, (_, _, limit) in WAYS.items():
        ratio, shown = epochs[name] / epochs["native"], "" if limit is None else f"{limit:.0f}"
        over = "!" if limit is not None and ratio > limit else " "
        late = "!" if steps[name] > RESNET_LIMIT else " "
        rows.append({"name": name, "epoch": epochs[name], "ratio": ratio, "limit": limit, "step": steps[name]})
        print(
            f"{name:<32}{epochs[name]:>10.2f}{ratio:>8.2f}{shown:>7}{over}   {steps[name]:>16.3f}{RESNET_LIMIT:>7.0f}{late}"
        )
    if arguments.json:
        write_json(arguments.json, rows=rows)


if __name__ == "__main__":
    main()
