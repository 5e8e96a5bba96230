"""Gradients summed over micro-batches in buffers of a dtype of their own.

>>> import torch
>>> from softfloat.torch.practices.accumulation import GradientAccumulation
>>> weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float16))
>>> accumulation = GradientAccumulation([weight], average=False)
>>> for gradient in (2048.0, 1.0, 1.0):  # whose sum in half is 2048
...     weight.grad = torch.full_like(weight, gradient)
...     accumulation.add()
>>> accumulation.deliver()
>>> weight.grad
tensor([2050.], dtype=torch.float16)
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from softfloat.torch.operators.bridge import as_dtype

__all__ = ["GradientAccumulation"]


class GradientAccumulation:
    """Sums of gradients over micro-batches.

    Parameters
    ----------
    parameters : iterable of Tensor
        Whose gradients.
    dtype : torch.dtype or str
        Of the buffers: float16, bfloat16, float32 or float64, or the name of one. Within `emulate`, sums in a low one swamp and overflow as
        the environment says.
    average : bool
        Deliver the mean over micro-batches, not the sum.

    Attributes
    ----------
    count : int
        Micro-batches since the last `deliver`.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter.

    Source
    ------
    Graphcore, "Training a model using half- and mixed-precision", Underflowing gradients and loss scaling: buffers in
    FP32 before any conclusion from overflows. `accum_type` of poptorch's optimisers.
    """

    def __init__(
        self, parameters: Iterable[torch.Tensor], dtype: torch.dtype | str = torch.float32, *, average: bool = True
    ) -> None:
        kind = as_dtype("dtype", dtype, (torch.float16, torch.bfloat16, torch.float32, torch.float64))
        self._parameters = list(parameters)
        if not self._parameters or not all(isinstance(p, torch.Tensor) for p in self._parameters):
            raise TypeError("parameters must be tensors, at least one")
        self.dtype, self.average, self.count = kind, bool(average), 0
        self._buffers: list[torch.Tensor | None] = [None] * len(self._parameters)

    @torch.no_grad()
    def add(self) -> None:
        """Add gradients to the buffers, rounded into their dtype first; gradients are None then. A None counts as zeros."""
        for i, p in enumerate(self._parameters):
            if p.grad is None:
                continue
            buffer = self._buffers[i]
            if buffer is None:
                self._buffers[i] = p.grad.detach().to(self.dtype, copy=True)
            else:
                buffer.add_(p.grad.to(self.dtype))
            p.grad = None
        self.count += 1

    @torch.no_grad()
    def deliver(self) -> None:
        """Hand out sums or means as gradients, in the parameters' dtypes; the buffers are empty then.

        The mean is divided in float32, or float64 if the buffers are. Parameters that never had a gradient have none.

        Raises
        ------
        RuntimeError
            Without an `add`, or with a gradient that was not added.
        """
        if not self.count:
            raise RuntimeError("nothing to deliver: call add() after each micro-batch first")
        if any(p.grad is not None for p in self._parameters):
            raise RuntimeError("a parameter has a gradient that was not added: call add() first")
        wide = torch.promote_types(self.dtype, torch.float32)  # a low dtype may not have the count
        for p, buffer in zip(self._parameters, self._buffers, strict=True):
            if buffer is not None:
                p.grad = (buffer.to(wide) / self.count if self.average else buffer).to(p.dtype)
        self._buffers, self.count = [None] * len(self._parameters), 0
