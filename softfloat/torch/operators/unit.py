"""The arithmetic unit behind the operators: runs functions of `softfloat.bits`, keeps the trace, says where a trap struck."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from softfloat import bits
from softfloat.accumulators import Accumulator
from softfloat.arrays import constant
from softfloat.environments import Environment
from softfloat.formats import Format, float16
from softfloat.runner import Counted, How, PlacedTrap, Runner, counted
from softfloat.scaling import Operand, Quantized, Windowed, multiplied, quantized
from softfloat.status import Flags, FloatingPointTrap
from softfloat.torch import private
from softfloat.torch.operators.bridge import (
    FORMATS,
    Codes,
    UnsupportedArguments,
    codes_of,
    numbers_of,
    tensor_of,
    write,
)
from softfloat.torch.operators.devices import Device
from softfloat.torch.operators.recipes import Quantising

__all__ = ["Operation", "OperatorTrap", "Tally", "Unit", "check_environment"]


@dataclass(frozen=True, eq=False)
class Operation:
    """One call of a function of `softfloat.bits` that an operator consisted of.

    Attributes
    ----------
    operator : str
        What PyTorch called, as "aten.addmm.default".
    module : str
        Path of the module that was executing, as "Net.layers.0"; empty outside modules.
    backward : bool
        Whether the autograd engine called it.
    function : str
        Name in `softfloat.bits`.
    operands : tuple
        What it was called with: copies of codes (numbers, for `encode`), formats, accumulators.
    options : dict
        Keywords beside `environment` and `stream`.
    environment : Environment
        The settings in force.
    stream : int
        The operation's number, which addresses its random numbers.
    result : array of int
        Codes.
    """

    operator: str
    module: str
    backward: bool
    function: str
    operands: tuple[Any, ...]
    options: dict[str, Any]
    environment: Environment
    stream: int
    result: Codes

    def repeat(self) -> Codes:
        """The result computed again, from what the record holds; no status changes."""
        function = multiplied if self.function == "multiplied" else getattr(bits, self.function)
        again, _ = function(
            *self.operands, environment=self.environment, stream=self.stream, flags="any", **self.options
        )
        return np.asarray(again)


@dataclass(frozen=True)
class Tally(Counted):
    """What became of an emulation's results; tallies add up.

    Attributes
    ----------
    results : int
        Elements that operations computed.
    overflowed : int
        Of them, those that raised OVERFLOW.
    additions : int
        In sums and products, as of `softfloat.bits.Counts`.
    swamped : int
        Of them, those of something other than zero that left the sum as it was.
    """

    results: int = 0
    overflowed: int = 0
    additions: int = 0
    swamped: int = 0


class OperatorTrap(PlacedTrap):
    """A trap within an operator. What the operator would have written is not written.

    Attributes
    ----------
    operator, module, backward
        As in `Operation`.
    """

    def __init__(self, trap: FloatingPointTrap, operator: str, module: str, backward: bool) -> None:
        super().__init__(trap, place(operator, module, backward), operator, module, backward)
        self.operator, self.module, self.backward = operator, module, backward


def place(operator: str, module: str, backward: bool) -> str:
    """Where an operator ran, for messages."""
    within = f"module {module}" if module else "no module"
    return f"in {operator}, {within}, {'backward' if backward else 'forward'}"


def check_environment(environment: object) -> None:
    """Refuse anything but an environment, or None for the one in force."""
    if environment is not None and not isinstance(environment, Environment):
        raise TypeError(f"environment must be a softfloat.Environment or None, got {type(environment).__name__}")


class Unit(Runner):
    """What an emulation computes with."""

    no_accumulator = ValueError  # of a TypeError PyTorch's operators would make one of their own, without the message
    not_taken = UnsupportedArguments
    uncounted = (*Runner.uncounted, multiplied)

    def __init__(
        self,
        environment: Environment | None,
        matmul: How,
        convolution: How,
        recorder: Callable[[Operation], Any] | None,
        stable_statistics: bool = True,
        count: bool = False,
        quantising: Quantising | None = None,
        device: Device | None = None,
    ) -> None:
        super().__init__(environment, matmul=matmul, convolution=convolution)
        self.recorder = recorder
        self.tallies: dict[str, Tally] | None = {} if count else None
        self.stable_statistics = stable_statistics
        self.quantising, self.device = quantising, device
        self.tracker = private.Tracker()
        self.operator: Any = None
        self.widens = False
        self._again: bool
        self._recording: tuple[private.Region, ...]
        self._replayed: Iterator[tuple[str, int]] | None
        self.begin()

    def chosen_accumulator(self, use: str, fmt: Format) -> Accumulator | None:
        """The one that was given, or the environment's; None where neither says anything."""
        silent = self._how[use] is None and self.environment.accumulator is None
        return None if silent else self.accumulator(use, fmt)

    def where(self) -> tuple[str, str, bool]:
        """(operator, module, backward) now."""
        return str(self.operator), self.tracker.innermost(), private.in_backward()

    def run(self, function: Callable[..., Any], *operands: Any, raised: Codes | None = None, **options: Any) -> Codes:
        """One function of `softfloat.bits` under the environment, as the operation of the next number; its flags go to the status.

        `raised`: flags, for each element, of what was computed elsewhere before; they are this operation's too.
        """
        environment = self.environment
        counting = self.tallies is not None
        each = bool(environment.traps) or counting
        streams = environment.streams
        stream, taken = self._numbered(function.__name__, environment) if self._again else (streams.take(), True)
        kept = self._copied(operands) if self.recorder is not None else ()
        result: Codes
        try:
            result, flags, counts = self.computed(function, operands, environment, stream, options, each, counting)
        except BaseException:
            if taken:
                streams.give_back(stream)
            raise
        if self.tallies is not None:
            _, module, backward = self.where()
            within = f"{'backward' if backward else 'forward'} {module}".rstrip()
            tally = Tally(*counted(result, flags, counts, Flags.OVERFLOW))
            self.tallies[within] = self.tallies.get(within, Tally()) + tally
        if raised is not None:
            flags = flags | (raised if each else np.bitwise_or.reduce(raised, axis=None))
        if not each and self.recorder is None:
            if flags:
                environment.status.add(int(flags))
            return result
        self.raised(function.__name__, operands, np.asarray(flags))
        if self.recorder is not None:
            operator, module, backward = self.where()
            name, kept_result = function.__name__, np.array(result)
            self.recorder(
                Operation(operator, module, backward, name, kept, dict(options), environment, stream, kept_result)
            )
        return result

    def trapped(self, trap: FloatingPointTrap, *place: Any) -> FloatingPointTrap:
        """A trap with its place."""
        return OperatorTrap(trap, *self.where())

    @contextmanager
    def widening(self, narrow: bool) -> Iterator[bool]:
        """Around operators on float32 tensors. `narrow`: they stand for narrow ones, and raise what these would."""
        before, self.widens = self.widens, narrow
        try:
            yield narrow
        finally:
            self.widens = before

    # -- recipes -----------------------------------------------------------------------------------------------------

    def quantised(
        self,
        numbers: Any,
        operand: Operand,
        axis: int,
        module: str,
        product: str,
        role: str,
        fmt: Format,
        sizes: tuple[int, ...],
    ) -> Quantized:
        """One operand of a product, as an operation of its own number; its flags go to the report of it."""
        assert self.quantising is not None
        environment = self.environment
        if operand.rounding.draws and environment.seed is None:
            raise UnsupportedArguments(
                f"the recipe rounds the {role} of {product} at random and the environment has no seed; accepted: emulate(Environment(seed=...))"
            )
        history = self.quantising.history((module, product, role, sizes), operand)
        if history is not None and self._again:
            raise UnsupportedArguments(
                "delayed scaling moves on with each product, and a checkpointed function has some of them twice; accepted: recipes that "
                "remember nothing, or no checkpoints"
            )
        streams = environment.streams
        stream, taken = self._numbered("quantized", environment) if self._again else (streams.take(), True)
        try:
            how = numbers.quantized if isinstance(numbers, Windowed) else partial(quantized, numbers)
            found = how(
                operand, axis,
                history=history, count=self.tallies is not None, input_format=fmt, environment=environment, stream=stream,
            )  # fmt: skip
        except BaseException:
            if taken:
                streams.give_back(stream)
            raise
        if history is not None:
            history.update()
        self.quantising.report(f"{module} {product} {role}".strip(), found)
        return found

    @property
    def replays(self) -> bool:
        """Whether a checkpointed function is being computed again."""
        return self._replayed is not None

    def mark(self, name: str) -> int | None:
        """A number that this place of a checkpointed function has in all its runs; None outside of such functions."""
        return self._numbered(name, self.environment)[0] if self._again else None

    # -- activation checkpointing ------------------------------------------------------------------------------------

    def begin(self, outer: Unit | None = None) -> None:
        """In the checkpointed functions that an emulation around runs, and no others: an exception may have left one half run."""
        self._again, self._recording, self._replayed = False, (), None
        if outer is not None:
            self._again, self._recording, self._replayed = outer._again, outer._recording, outer._replayed

    @contextmanager
    def running(self, region: private.Region) -> Iterator[None]:
        """Around each run of a checkpointed function: later runs take the numbers of the first, and so its random bits.

        Without casts that autocast keeps: of weights that others use too there would be some in one run only.
        """
        torch.clear_autocast_cache()
        before = self._again, self._recording, self._replayed
        self._again = True
        if region.complete:
            self._recording, self._replayed = (), iter(region.taken)
        else:
            self._recording = (*self._recording, region)
        try:
            yield
        finally:
            region.complete = True
            self._again, self._recording, self._replayed = before

    def _numbered(self, name: str, environment: Environment) -> tuple[int, bool]:
        """The number of the operation that is about to run, in a checkpointed function, and whether it is taken now."""
        taken = True
        if self._replayed is None:
            stream = environment.next_stream()
        else:
            first, stream = next(self._replayed, ("nothing", -1))
            taken = first != name
            if taken:
                if environment.seed is not None:
                    raise UnsupportedArguments(
                        f"a checkpointed function computes {name} where its first run computed {first}, and would draw "
                        "other random numbers; it must run the same operations each time"
                    )
                stream = environment.next_stream()
        for region in self._recording:
            region.taken.append((name, stream))
        return stream, taken

    @staticmethod
    def _copied(operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Operands that no later operation changes: codes are views of tensors."""
        return tuple(x.copy() if isinstance(x, np.ndarray) else x for x in operands)

    def number(self, x: Any, fmt: Format) -> Codes:
        """A Python number as a code. What the format has is taken as it is, infinities too; else the environment rounds, never at random."""
        if isinstance(x, complex):
            raise UnsupportedArguments(f"numbers beside {fmt} tensors must be real, got {x!r}")
        if isinstance(x, float) and math.isinf(x) and fmt.infinities:
            return np.asarray(fmt.inf_code | (fmt.sign_bit if x < 0 else 0), fmt.dtype)
        environment = self.environment
        code, flags = constant(x, fmt, environment.settings)
        environment.status.add(flags)
        return code

    def rounded_number(self, x: Any, fmt: Format) -> float:
        """The value that a Python number has in a format."""
        return float(bits.decode(self.number(x, fmt), fmt))

    # -- casts -------------------------------------------------------------------------------------------------------

    def converted(self, tensor: torch.Tensor, fmt: Format, raised: Codes | None = None) -> Codes:
        """A tensor's elements as codes of a format; rounded, unless they are in it already. `raised` as of `run`."""
        if self.device is not None:
            return self._converted_there(tensor, fmt, raised)
        numbers, source = numbers_of(tensor)
        if source is None:
            return self.run(bits.encode, numbers, fmt, raised=raised)
        return numbers if source == fmt else self.run(bits.convert, numbers, source, fmt)

    def _converted_there(self, tensor: torch.Tensor, fmt: Format, raised: Codes | None) -> Codes:
        """As PyTorch does on a device: by way of float32; NaNs of 8 bits keep their sign."""
        numbers, source = numbers_of(tensor)
        if source == fmt:
            return numbers
        if source is None:
            with np.errstate(all="ignore"):
                codes = self.run(bits.encode, numbers.astype(np.float32, copy=False), fmt, raised=raised)
            negative = np.signbit(numbers)
        else:
            codes, negative = self.run(bits.convert, numbers, source, fmt), bits.signbit(numbers, source)
            if source == float16:  # whose NaNs lose it on the way
                negative = negative & ~bits.isnan(numbers, source)
        if fmt.bits > 8 or not fmt.sign_bit:
            return codes
        return np.where(negative & bits.isnan(codes, fmt), codes | codes.dtype.type(fmt.sign_bit), codes)

    def cast(self, tensor: torch.Tensor, dtype: torch.dtype, raised: Codes | None = None) -> torch.Tensor:
        """A tensor in a narrow dtype, rounded once."""
        return tensor_of(self.converted(tensor, FORMATS[dtype].format, raised), dtype, tensor)

    def store(self, target: torch.Tensor, tensor: torch.Tensor, raised: Codes | None = None) -> None:
        """A tensor's elements into another's memory; rounded once where that is narrow."""
        if target.dtype in FORMATS and target.dtype != torch.float32 and target.dtype != tensor.dtype:
            write(target, self.converted(tensor, FORMATS[target.dtype].format, raised))
        else:
            target.copy_(tensor)

    def deliver(
        self, codes: Any, dtype: torch.dtype, target: torch.Tensor | None, like: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Codes as a new tensor, or in the one that the operator was told to write to."""
        if target is None:
            return tensor_of(codes, dtype, like)
        if target.shape != np.shape(codes):
            if private.schema_name(self.operator).endswith("_"):
                raise RuntimeError(
                    f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(np.shape(codes))}"
                )
            target.resize_(np.shape(codes))
        if target.dtype == dtype:
            codes_of(target)[...] = codes
        else:
            self.store(target, tensor_of(codes, dtype))
        return target
