"""Loss scalers that read the status register: where overflow saturates, no gradient is ever infinite, and only a flag tells.

`GradScaler` is PyTorch's with one more question. `DynamicLossScaleManager` and `FixedLossScaleManager` are MindSpore's
managers as settings of it.

>>> import torch
>>> import softfloat
>>> from softfloat.torch import DynamicLossScaleManager, emulate
>>> layer = torch.nn.Linear(1, 1).half().float()
>>> optimiser = torch.optim.SGD(layer.parameters(), lr=0.1)
>>> env = softfloat.Environment(overflow="saturate")
>>> scaler = DynamicLossScaleManager(environment=env)
>>> for _ in range(10):
...     with emulate(env), torch.autocast("cpu", dtype=torch.float16):
...         loss = layer(torch.ones(4, 1)).square().sum()
...     with emulate(env):
...         scaler.scale(loss).backward()
...     scaler.step(optimiser)
...     scaler.update()
...     optimiser.zero_grad()
>>> scaler.get_scale() < 2**24
True
"""

from __future__ import annotations

from typing import Any

import torch

from softfloat.checks import check_count, check_real, check_switch, is_integer
from softfloat.environments import Environment, current_environment
from softfloat.status import Flags, as_flags
from softfloat.torch import private
from softfloat.torch.operators.unit import check_environment

__all__ = ["DynamicLossScaleManager", "FixedLossScaleManager", "GradScaler"]

NEVER = 2**31 - 1  # steps without overflow after which a fixed scale would grow


class GradScaler(torch.amp.GradScaler):
    """`torch.amp.GradScaler` that takes sticky flags for an overflow too.

    Parameters
    ----------
    init_scale, growth_factor, backoff_factor, growth_interval, enabled
        As PyTorch's.
    environment : Environment, optional
        Whose status is read: the one that `emulate` was given. None: the one in force at each step.
    flags : Flags, str or iterable of str
        What counts as an overflow if it was raised since the last `update`, forward pass included. `update` lowers them.
    minimum : float
        The scale does not fall below it.
    most_overflows : int, optional
        So many steps in a row may overflow; one more is an error.

    Raises
    ------
    ValueError
        Naming the parameter.
    RuntimeError
        From `update`, after too many overflows in a row.

    Notes
    -----
    Infinite and NaN gradients count as ever. Flags that no gradient shows are what saturation leaves of an overflow,
    and an overflow in an operand that later became finite: Ascend's float status in MindSpore, `$FP_STS` on the IPU.
    """

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
        *,
        environment: Environment | None = None,
        flags: Flags | str | tuple[str, ...] = (Flags.OVERFLOW | Flags.INVALID),
        minimum: float = 0.0,
        most_overflows: int | None = None,
    ) -> None:
        check_environment(environment)
        check_real("init_scale", init_scale, 0, above=True)
        check_real("growth_factor", growth_factor, 1, above=True)
        if check_real("backoff_factor", backoff_factor, 0, above=True) >= 1:
            raise ValueError(f"backoff_factor must be below 1, got {backoff_factor}")
        check_count("growth_interval", growth_interval)
        least = check_real("minimum", minimum, 0)
        if most_overflows is not None and (not is_integer(most_overflows) or most_overflows < 1):
            raise ValueError(f"most_overflows must be a positive integer or None, got {most_overflows!r}")
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self._environment, self._flags = environment, as_flags(flags)
        self._minimum, self._most_overflows, self._overflows = least, most_overflows, 0

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """As PyTorch's; then the flags are looked at."""
        super().unscale_(optimizer)
        if self.is_enabled() and (self._environment or current_environment()).status.flags & self._flags:
            for found in private.found_infinite(self, optimizer):
                found.fill_(1.0)

    def update(self, new_scale: float | torch.Tensor | None = None) -> None:
        """The scale of the next step: smaller after an overflow, larger after enough steps without; flags are lowered."""
        overflowed = self.is_enabled() and any(float(x) for x in private.found_infinite(self))
        super().update(new_scale)
        if not self.is_enabled():
            return
        private.raise_scale(self, self._minimum)
        (self._environment or current_environment()).status.clear(self._flags)
        self._overflows = self._overflows + 1 if overflowed else 0
        if self._most_overflows is not None and self._overflows > self._most_overflows:
            raise RuntimeError(
                f"{self._overflows} steps in a row overflowed, the last at a loss scale of {self.get_scale():g}; "
                f"at most {self._most_overflows} may"
            )


class _LossScaleManager(GradScaler):
    """MindSpore's names of methods, for scripts that ask a manager or update it themselves."""

    drop_overflow_update = True

    def get_loss_scale(self) -> float:
        """The scale of the next step: MindSpore's name of `get_scale`."""
        return float(self.get_scale())

    def get_drop_overflow_update(self) -> bool:
        """Whether steps that overflow leave the parameters alone."""
        return self.drop_overflow_update

    def update_loss_scale(self, overflow: bool) -> None:
        """The scale of the next step, where the script has found out itself whether this one overflowed.

        It stands in place of `update`; gradients and flags are not asked, and flags are lowered.

        Raises
        ------
        TypeError
            If `overflow` is no bool.
        """
        check_switch("overflow", overflow)
        private.tell_overflow(self, overflow)
        self.update()


class DynamicLossScaleManager(_LossScaleManager):
    """MindSpore's: halved at an overflow, not below 1; doubled after `scale_window` steps without; an error after 1000 overflows in a row.

    Parameters
    ----------
    init_loss_scale : float
    scale_factor : float
    scale_window : int
    environment, flags
        As of `GradScaler`.

    Notes
    -----
    MindSpore's methods are here too: `get_loss_scale`, `update_loss_scale`, `get_drop_overflow_update`.
    Name the arguments. MindSpore's tutorial on mixed precision has a factor of 4 and a window of 3000 and passes them by
    position, which begins with a scale of 4 instead, divides it by 3000 at an overflow, and multiplies it by 3000.

    Source
    ------
    mindspore-ai/mindspore, train/loss_scale_manager.py. A scale that the next doubling would take beyond float32 stays.

    >>> meant = DynamicLossScaleManager(scale_factor=4, scale_window=3000)
    >>> written = DynamicLossScaleManager(4, 3000)
    >>> [(m.get_scale(), m.get_growth_factor(), m.get_growth_interval()) for m in (meant, written)]
    [(16777216.0, 4.0, 3000), (4.0, 3000.0, 2000)]
    """

    def __init__(
        self,
        init_loss_scale: float = 2.0**24,
        scale_factor: float = 2.0,
        scale_window: int = 2000,
        *,
        environment: Environment | None = None,
        flags: Flags | str | tuple[str, ...] = (Flags.OVERFLOW | Flags.INVALID),
    ) -> None:
        scale, factor = (
            check_real("init_loss_scale", init_loss_scale, 1),
            check_real("scale_factor", scale_factor, 1, above=True),
        )
        super().__init__(
            init_scale=scale,
            growth_factor=factor,
            backoff_factor=1.0 / factor,
            growth_interval=check_count("scale_window", scale_window),
            environment=environment,
            flags=flags,
            minimum=1.0,
            most_overflows=1000,
        )


class FixedLossScaleManager(_LossScaleManager):
    """MindSpore's: always the same scale; steps that overflow are dropped, or taken if not `drop_overflow_update`.

    Parameters
    ----------
    loss_scale : float
    drop_overflow_update : bool
    environment, flags
        As of `GradScaler`.

    Notes
    -----
    MindSpore's methods are here too: `get_loss_scale`, `update_loss_scale`, `get_drop_overflow_update`.

    Source
    ------
    mindspore-ai/mindspore, train/loss_scale_manager.py.

    >>> manager = FixedLossScaleManager(1024.0, drop_overflow_update=False)
    >>> manager.update_loss_scale(True)
    >>> manager.get_loss_scale(), manager.get_drop_overflow_update()
    (1024.0, False)
    """

    def __init__(
        self,
        loss_scale: float = 128.0,
        drop_overflow_update: bool = True,
        *,
        environment: Environment | None = None,
        flags: Flags | str | tuple[str, ...] = (Flags.OVERFLOW | Flags.INVALID),
    ) -> None:
        check_switch("drop_overflow_update", drop_overflow_update)
        self._loss_scale, self.drop_overflow_update = check_real("loss_scale", loss_scale, 1), drop_overflow_update
        super().__init__(init_scale=self._loss_scale, growth_interval=NEVER, environment=environment, flags=flags)

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """As of `GradScaler`; without `drop_overflow_update` nothing counts as an overflow."""
        super().unscale_(optimizer)
        if not self.drop_overflow_update:
            for found in private.found_infinite(self, optimizer):
                found.zero_()

    def update(self, new_scale: Any = None) -> None:
        """The flags are lowered, the scale stays."""
        super().update(self._loss_scale)
