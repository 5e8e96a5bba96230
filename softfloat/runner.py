"""What runs the operators of another library's models on codes: accumulators of sums, counts of results, where a trap struck.

`softfloat.torch` and `softfloat.onnx` bring their tensors, what a place in a model is called, and the random numbers that it draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add
from typing import Any, Self

import numpy as np

from softfloat import bits
from softfloat.accumulators import Accumulator, Stage, fma
from softfloat.environments import Environment, Rounding, current_environment
from softfloat.formats import Format, float32
from softfloat.status import Flags, FloatingPointTrap, first_trap

__all__ = ["SINGLE", "SINGLE_NEAREST", "Counted", "How", "PlacedTrap", "Runner", "counted"]

How = Accumulator | Callable[[Format], Accumulator] | None

SINGLE = fma("float32")
SINGLE_NEAREST = SINGLE.replace(name="fma('float32'), to nearest even", running=Stage(float32, Rounding.NEAREST_EVEN))


class Counted:
    """Numbers that add up, field by field; of dataclasses."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(add, vars(self).values(), vars(other).values()))


def counted(result: Any, flags: Any, counts: Sequence[bits.Counts], *which: Flags) -> tuple[int, ...]:
    """Elements of a result, those of them that raised each flag, additions of its sums, and those of them that changed nothing."""
    size = int(np.size(result))
    raised = (int(np.count_nonzero(flags & np.uint8(flag))) for flag in which)
    additions = ((size * x.additions, int(np.sum(x.swamped))) for x in counts)
    return size, *raised, *next(additions, (0, 0))


class PlacedTrap(FloatingPointTrap):
    """A trap, and the place in a model where it struck: `place` are the arguments of a subclass, `text` says them."""

    def __init__(self, trap: FloatingPointTrap, text: str, *place: Any) -> None:
        super().__init__(trap.flags, trap.operation, trap.index, trap.operands, trap.nan)
        self._place, self._message = place, f"{trap}, {text}"

    def __str__(self) -> str:
        return self._message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._message!r})"

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.moved(self.index), *self._place)


class Runner:
    """What operators compute with: an environment, accumulators by what they are used for."""

    no_accumulator: type[Exception] = TypeError
    not_taken: type[Exception] = ValueError
    """What is raised where a function gave no accumulator, or one that does not take a format."""
    uncounted: tuple[Callable[..., Any], ...] = (bits.cumsum,)
    """Functions that sum and count nothing."""

    def __init__(self, environment: Environment | None, **how: How) -> None:
        self._environment, self._how = environment, how

    @property
    def environment(self) -> Environment:
        """The one given, else the one in force."""
        return self._environment or current_environment()

    def accumulator(self, use: str, fmt: Format) -> Accumulator:
        """How products ("matmul", "convolution") or sums ("reduction") of operands in a format are summed."""
        how, name = self._how[use], use
        if how is None:
            environment = self.environment
            how, name = environment.accumulator, "the environment's accumulator"
            if how is None:
                drawn = environment.settings.for_format("float32").rounding.draws
                return SINGLE_NEAREST if drawn else SINGLE
        made = how if isinstance(how, Accumulator) else how(fmt)
        if not isinstance(made, Accumulator):
            raise self.no_accumulator(f"{name} must return a softfloat.Accumulator, got {made!r} for {fmt}")
        if made.inputs and fmt not in made.inputs:
            accepted = ", ".join(x.name for x in made.inputs)
            raise self.not_taken(
                f"{name} must take {fmt.name} tensors, and {made!r} takes {accepted}; a function from Format to "
                "Accumulator may choose"
            )
        return made

    def computed(
        self,
        function: Callable[..., Any],
        operands: tuple[Any, ...],
        settings: Any,
        stream: int,
        options: dict[str, Any],
        each: bool,
        count: bool,
    ) -> tuple[Any, Any, list[bits.Counts]]:
        """(codes, flags, counts) of one function of `softfloat.bits`; of sums alone there are counts, if they are asked for."""
        if count and has_sums(operands) and function not in self.uncounted:
            options = {**options, "count": True}
        result, flags, *counts = function(
            *operands, environment=settings, stream=stream, flags="each" if each else "any", **options
        )
        return result, flags, counts

    def raised(self, name: str, operands: tuple[Any, ...], flags: Any, *place: Any) -> int:
        """Flags of each element of a result, or of all of it, into the status; and a trap, where one is set."""
        environment = self.environment
        found, traps = int(np.bitwise_or.reduce(flags, axis=None)), int(environment.traps)  # type: ignore[arg-type]
        environment.status.add(found)
        if found & traps:
            shown = () if has_sums(operands) else operands  # whose elements are not those of the result
            raise self.trapped(first_trap(name, shown, np.asarray(flags), Flags(traps), environment.nan), *place)
        return found

    def trapped(self, trap: FloatingPointTrap, *place: Any) -> FloatingPointTrap:
        """A trap with its place."""
        raise NotImplementedError


def has_sums(operands: tuple[Any, ...]) -> bool:
    """Whether an operation sums products."""
    return any(isinstance(x, Accumulator) for x in operands)
