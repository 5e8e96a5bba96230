"""Data parallel training simulated in one process: which random numbers replicas share, and whether their weights stay equal.

>>> import torch
>>> from softfloat import Environment
>>> from softfloat.torch.practices.replicas import Replicas
>>> layer = torch.nn.Linear(8, 1, bias=False).half()
>>> batches = torch.linspace(-1, 1, 64, dtype=torch.float16).reshape(2, 4, 8)
>>> for stability in (True, False):
...     replicas = Replicas(
...         layer, lambda parameters: torch.optim.SGD(parameters, lr=0.01), 2,
...         environment=Environment.ipu(seed=0), prng_stability=stability,
...     )
...     for _ in range(4):
...         losses = replicas.step(lambda model, x: model(x).square().mean(), batches)
...     print(stability, replicas.identical())
True True
False False
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch

from softfloat.accumulators import Accumulator
from softfloat.checks import check_count
from softfloat.environments import Environment, Rounding, StochasticRounding
from softfloat.formats import Format
from softfloat.torch.emulation import emulate
from softfloat.torch.operators.unit import Operation

__all__ = ["Replicas"]

How = Accumulator | Callable[[Format], Accumulator] | None


class Replicas:
    """Copies of a model that train in step: each on its own batch, all by the mean of their gradients.

    Parameters
    ----------
    model : torch.nn.Module
        Copied; stays as it is.
    optimizer_factory : callable
        optimizer_factory(parameters) makes the optimiser of one replica.
    count : int
        Replicas.
    environment : Environment
        Settings; `rounding`, `replica` and `replica_identical` are set here, those in `overrides` stay. Its seed
        determines every bit. Its status gets all flags.
    esr : StochasticRounding
        ON: stochastic rounding everywhere. REPLICA_IDENTICAL_ONLY: in what is the same on all replicas, the updates;
        to nearest even elsewhere. OFF: to nearest even.
    prng_stability : bool
        Updates draw the same random numbers on all replicas, numbered on their own, so that equal weights stay equal.
        Without it replicas differ in all their random numbers, and weights drift apart.
    matmul, convolution, use_stable_statistics
        As of `emulate`.
    record : callable, optional
        record(replica, operation) is called with every emulated operation of forward and backward passes and updates.

    Attributes
    ----------
    models, optimizers : list
        One for each replica.
    environments, update_environments : list of Environment
        Of forward and backward passes, and of updates.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter and the accepted values; for stochastic rounding without a seed, and for
        REPLICA_IDENTICAL_ONLY without `prng_stability`, whose random numbers nothing would make identical.

    Notes
    -----
    Gradients are summed in the order of the replicas in float32 (float64 for float64 gradients), divided by the count,
    and rounded once to the parameter's dtype, to nearest even, in the environment; all replicas get the same bits. A
    gradient that some replicas lack counts as zeros there. Buffers, such as running statistics, stay each replica's own.

    Source
    ------
    `StochasticRoundingBehaviour` and `experimental.enable_prng_stability` of Graphcore's TensorFlow (IPUConfig), whose
    PrngStabilityTest has weights equal on all replicas for ON and REPLICA_IDENTICAL_ONLY.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer_factory: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer],
        count: int,
        *,
        environment: Environment,
        esr: StochasticRounding | str | bool = StochasticRounding.ON,
        prng_stability: bool = True,
        matmul: How = None,
        convolution: How = None,
        use_stable_statistics: bool = True,
        record: Callable[[int, Operation], Any] | None = None,
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
        if not callable(optimizer_factory):
            raise TypeError(f"optimizer_factory must be a function of parameters, got {optimizer_factory!r}")
        count = check_count("count", count)
        if not isinstance(environment, Environment):
            raise TypeError(f"environment must be a softfloat.Environment, got {type(environment).__name__}")
        esr = StochasticRounding.of(esr)
        if esr is not StochasticRounding.OFF and environment.seed is None:
            raise ValueError(f"environment must have a seed for {esr}, got seed=None")
        if esr is StochasticRounding.REPLICA_IDENTICAL_ONLY and not prng_stability:
            raise ValueError(f"prng_stability must be True for {esr}, got {prng_stability!r}")
        self._status, self._record = environment.status, record
        self._how: dict[str, Any] = {
            "matmul": matmul,
            "convolution": convolution,
            "use_stable_statistics": use_stable_statistics,
        }
        self.models = [copy.deepcopy(model) for _ in range(count)]
        self.optimizers = [optimizer_factory(list(m.parameters())) for m in self.models]

        def made(stochastic: bool, replica: int | None) -> Environment:
            """A count of operations of its own; replica 0's key is that of identical ones, so they start at 1."""
            return environment.replace(
                rounding=Rounding.STOCHASTIC if stochastic else Rounding.NEAREST_EVEN,
                replica=0 if replica is None else replica + 1,
                replica_identical=replica is None,
                overrides=environment.overrides,  # named, or the rounding would replace theirs
            )

        self.environments = [made(esr is StochasticRounding.ON, i) for i in range(count)]
        self.update_environments = (
            [made(esr is not StochasticRounding.OFF, None) for _ in range(count)]
            if prng_stability
            else self.environments
        )
        self._reduction = made(False, None)

    def step(self, loss_fn: Callable[[torch.nn.Module, Any], torch.Tensor], batches: Sequence[Any]) -> list[float]:
        """One step of all replicas.

        Parameters
        ----------
        loss_fn : callable
            loss_fn(model, batch) returns the loss, a tensor without dimensions.
        batches : sequence
            A batch for each replica.

        Returns
        -------
        list of float
            The loss of each replica.

        Raises
        ------
        ValueError
            If there are not as many batches as replicas.
        OperatorTrap
            At a flag whose trap is on. Weights are as before if a forward or backward pass raised it.
        """
        if len(batches) != len(self.models):
            raise ValueError(f"batches must have one for each of {len(self.models)} replicas, got {len(batches)}")
        losses = []
        try:
            for i, (model, batch) in enumerate(zip(self.models, batches, strict=True)):
                self.optimizers[i].zero_grad()
                with self._emulation(self.environments[i], i):
                    loss = loss_fn(model, batch)
                    loss.backward()
                losses.append(float(loss.detach()))
            self._reduce()
            for i, optimizer in enumerate(self.optimizers):
                with self._emulation(self.update_environments[i], i):
                    optimizer.step()
        finally:
            for environment in (*self.environments, *self.update_environments, self._reduction):
                self._status.raise_flags(environment.status.flags)
        return losses

    def _emulation(self, environment: Environment, replica: int) -> emulate:
        record = self._record
        recorder = False if record is None else lambda operation: record(replica, operation)
        return emulate(environment, **self._how, record=recorder)

    @torch.no_grad()
    def _reduce(self) -> None:
        """Means of gradients, in place of each replica's own. That of one is what it was, subnormals that would be flushed too."""
        if len(self.models) == 1:
            return
        for same in zip(*(m.parameters() for m in self.models), strict=True):
            gradients = [p.grad for p in same if p.grad is not None]
            if not gradients:
                continue
            total = gradients[0].to(torch.promote_types(gradients[0].dtype, torch.float32), copy=True)
            for gradient in gradients[1:]:
                total += gradient
            with emulate(self._reduction):
                mean = (total / len(same)).to(same[0].dtype)
            for p in same:
                p.grad = mean.clone()

    def spread(self) -> int:
        """How many weights have not the same bits on all replicas."""
        return sum(
            int(torch.stack([_bytes(p) != _bytes(same[0]) for p in same]).any(0).any(-1).sum())
            for same in zip(*(m.parameters() for m in self.models), strict=True)
        )

    def identical(self) -> bool:
        """Whether all weights have the same bits on all replicas."""
        return self.spread() == 0


def _bytes(parameter: torch.Tensor) -> torch.Tensor:
    """A row of bytes for each number: NaNs are equal to themselves then, and zeros differ by sign."""
    return parameter.detach().reshape(-1, 1).view(torch.uint8)
