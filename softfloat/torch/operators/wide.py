"""What is computed wide and rounded once: exceptions that PyTorch does not tell of, and two operators whose own steps leave the range.

PyTorch raises no flags. What it returns tells them: a NaN that comes of no NaN is INVALID; an infinity that comes of finite
numbers is DIVBYZERO where the operator has a pole, and elsewhere an overflow of the wide dtype, whose result is rounded like
any other number that is too large. Which of them came of NaNs and infinities is found by computing again without those.

Source: IEEE 754-2019, 7.2 to 7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

from softfloat.status import Flags
from softfloat.torch import private
from softfloat.torch.operators.bridge import NARROW, Codes
from softfloat.torch.operators.tables import POLES, QUOTIENTS

__all__ = ["OWN", "Own", "Rerun", "Wide", "alone", "finite", "judged"]

Rerun = Callable[[Callable[[torch.Tensor], torch.Tensor]], torch.Tensor]
"""rerun(change): the same result of wide operands that are changed first."""
ORDINARY = 0.5  # stands for a NaN or an infinity: no operator has a pole there
FAR_FROM_OVERFLOW = 2.0**60  # squares of smaller numbers, and sums of them, are finite in float32


def finite(x: torch.Tensor) -> bool:
    """Whether there is nothing to judge: all numbers are finite, or they are elsewhere, and the cast will refuse them."""
    return not x.is_cpu or bool(np.isfinite(x.detach().numpy()).all())


def _without_nans(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.isnan(), ORDINARY, x)


def _finite(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.isfinite(), x, ORDINARY)


def judged(
    name: str, found: torch.Tensor, operands: Sequence[torch.Tensor], rerun: Rerun
) -> tuple[torch.Tensor, Codes | None]:
    """(a wide result, flags of its elements before it is rounded), overflows as the largest number; None: nothing was raised.

    Parameters
    ----------
    name : str
        The operator's, without the underscore of those that work in place.
    found : tensor
        Of a wide dtype.
    operands : sequence of tensor
        Those of floating-point numbers, as they were.
    rerun : Rerun
    """
    if finite(found):
        return found, None
    nan, infinite = found.isnan(), found.isinf()
    if nan.any() and any(x.isnan().any() for x in operands):
        nan &= rerun(_without_nans).isnan()
    if infinite.any() and not all(x.isfinite().all() for x in operands):
        infinite &= rerun(_finite).isinf()
    if not (nan.any() or infinite.any()):
        return found, None
    pole = infinite & _poles(name, operands)
    raised = np.where(nan.numpy(), np.uint8(Flags.INVALID), np.uint8(0))
    raised |= np.where(pole.numpy(), np.uint8(Flags.DIVBYZERO), np.uint8(0))
    largest = torch.finfo(found.dtype).max
    limited = torch.where(infinite & ~pole, torch.copysign(torch.full_like(found, largest), found), found)
    return limited, raised if raised.any() else None


def _poles(name: str, operands: Sequence[torch.Tensor]) -> torch.Tensor | bool:
    """Where infinities of finite operands come of a pole."""
    if name == "polygamma":  # of high orders overflows near its poles
        return (operands[0] <= 0) & (operands[0] == operands[0].floor())
    if name in QUOTIENTS:
        return all(bool((_finite(x.to(torch.float64)).abs() < FAR_FROM_OVERFLOW).all()) for x in operands)
    return name in POLES


# -- one operator ------------------------------------------------------------------------------------------------------


def alone(wide: torch.dtype, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """An operator's own computation; that of sums in float32 by one thread, so that they have one order."""
    threads = torch.get_num_threads() if wide == torch.float32 else 1
    if threads == 1:
        return function(*args, **kwargs)
    torch.set_num_threads(1)
    try:
        return function(*args, **kwargs)
    finally:
        torch.set_num_threads(threads)


class Wide:
    """An operator computed in a wide dtype; already, where its results are `found`.

    Attributes
    ----------
    found : Any
        What it returned.
    copies : dict of int to pair of tensors
        By the identity of each tensor that was not of the wide dtype: itself, and what stood for it.
    """

    def __init__(
        self,
        operator: Any,
        compute: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        wide: torch.dtype,
        found: Any = None,
    ) -> None:
        self._operator, self._compute, self._args, self._kwargs, self._wide = operator, compute, args, kwargs, wide
        self._random = torch.get_rng_state() if private.draws(operator) else None
        self.found, self.copies = self._run(None) if found is None else (found, {})

    def _run(self, change: Callable[[torch.Tensor], torch.Tensor] | None) -> tuple[Any, dict[int, Any]]:
        wide, copies = self._wide, dict[int, tuple[torch.Tensor, torch.Tensor]]()

        def widen(x: Any) -> Any:
            if isinstance(x, torch.Tensor):
                if not x.dtype.is_floating_point or (change is None and x.dtype == wide):
                    return x
                if id(x) not in copies:
                    copy = x.to(wide)
                    copies[id(x)] = x, copy if change is None else change(copy)
                return copies[id(x)][1]
            if isinstance(x, (list, tuple)):
                return type(x)(widen(y) for y in x)
            return wide if isinstance(x, torch.dtype) and x in NARROW else x

        arguments, keywords = [widen(x) for x in self._args], {name: widen(x) for name, x in self._kwargs.items()}
        return alone(wide, self._compute, arguments, keywords), copies

    def _leaves(self, found: Any, copies: dict[int, Any]) -> list[Any]:
        """Results, and what stood for operands, some of which are results too."""
        return [*private.leaves(found), *(copy for _, copy in copies.values())]

    def judged(self, result: torch.Tensor) -> tuple[torch.Tensor, Codes | None]:
        """A result, or what stands for an operand that was written to, as `judged` has it."""
        if finite(result):
            return result, None
        written = private.written(self._operator)
        given = private.leaves([self._args, {name: x for name, x in self._kwargs.items() if name not in written}])
        operands = [x for x in given if isinstance(x, torch.Tensor) and x.dtype.is_floating_point]
        place = next(i for i, x in enumerate(self._leaves(self.found, self.copies)) if x is result)

        def rerun(change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
            with _drawing(self._random):
                found: torch.Tensor = self._leaves(*self._run(change))[place]
            return found

        return judged(private.schema_name(self._operator).removesuffix("_"), result, operands, rerun)


@contextmanager
def _drawing(state: torch.Tensor | None) -> Iterator[None]:
    """Within it, PyTorch's random numbers are those that came after a state; afterwards, as before. None: none are drawn."""
    if state is None:
        yield
        return
    with torch.random.fork_rng(devices=()):
        torch.set_rng_state(state)
        yield


# -- operators whose own steps leave the range of float64, or of exactness -------------------------------------------------

FARTHEST = 500.0  # exponents: beyond it every product with a number of a low format is out of that format's range
WHOLE = 2.0**52  # from here on float64 has integers alone
MOST_DECIMALS = 300  # whose power of ten is finite; formats have fewer


def _power_scaled(x: torch.Tensor, power: torch.Tensor) -> torch.Tensor:
    """x * 2^power: whole powers move the exponent, whatever 2^power is; an infinite one is a factor of infinity or 0."""
    exponent = power.to(torch.float64)
    limited = torch.where(exponent.isinf(), exponent, exponent.clamp(-FARTHEST, FARTHEST))
    whole = torch.where(limited.isfinite(), limited.floor(), 0.0)
    scaled = x.to(torch.float64) * torch.exp2(limited - whole)
    return torch.as_tensor(np.ldexp(scaled.numpy(), whole.numpy().astype(np.int32)))


def _rounded_to_decimals(x: torch.Tensor, decimals: int) -> torch.Tensor:
    """The nearest multiple of 10^-decimals, of two as near the even one; x itself where float64 does not tell it from one."""
    tens = 10.0 ** min(abs(decimals), MOST_DECIMALS)
    units = x / tens if decimals < 0 else x * tens
    whole = units.round()
    return torch.where(units.abs() < WHOLE, whole * tens if decimals < 0 else whole / tens, x)


class Own(NamedTuple):
    """An operator that is computed here in float64 instead of by PyTorch: of overloads with an argument of this name."""

    argument: str
    compute: Callable[..., torch.Tensor]


OWN = {"ldexp": Own("other", _power_scaled), "round": Own("decimals", _rounded_to_decimals)}
"""By the operator's name."""
