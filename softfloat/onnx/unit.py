"""The arithmetic unit behind the nodes: functions of `softfloat.bits` under one environment, told apart by node.

Random numbers are addressed by node. A node's address is made of its name, so that nodes put in or taken out elsewhere
change no other node's numbers; within it count the node's executions in one run (a loop's body has several) and the steps
of one execution. Equal feeds therefore give equal bits in every run; other random numbers come with another seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softfloat import bits
from softfloat.environments import Environment
from softfloat.formats import Format, float32
from softfloat.onnx.tensors import Array, Codes, array_of, codes_of, format_of
from softfloat.runner import Counted, How, PlacedTrap, Runner, counted
from softfloat.status import Flags, FloatingPointTrap

__all__ = [
    "EXECUTIONS",
    "STEPS",
    "Call",
    "NodeCounts",
    "NodeTrap",
    "UnemulatedOperatorError",
    "Unit",
    "addresses",
]

ADDRESS_BITS, EXECUTION_BITS, STEP_BITS = 36, 20, 8
EXECUTIONS, STEPS = 1 << EXECUTION_BITS, 1 << STEP_BITS


class UnemulatedOperatorError(NotImplementedError):
    """A node on numbers narrower than float32 that has no emulation.

    Attributes
    ----------
    node : str
        Its name in the evaluator.
    operator : str
        Its operator, as "Conv" or "com.microsoft.FusedConv".
    reason : str
        What is not emulated, and what to do.
    """

    def __init__(self, reason: str, node: str, operator: str) -> None:
        super().__init__(f"node {node!r}, operator {operator}: {reason}")
        self.node, self.operator, self.reason = node, operator, reason

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        return type(self), (self.reason, self.node, self.operator)


class NodeTrap(PlacedTrap):
    """A trap within a node; the run ends there, without outputs.

    Attributes
    ----------
    node, operator
        As in `UnemulatedOperatorError`.
    """

    def __init__(self, trap: FloatingPointTrap, node: str, operator: str) -> None:
        super().__init__(trap, f"in node {node!r}, operator {operator}", node, operator)
        self.node, self.operator = node, operator


@dataclass(frozen=True)
class NodeCounts(Counted):
    """What became of a node's results; counts add up.

    Attributes
    ----------
    results : int
        Elements that its operations computed, those between its steps too.
    overflowed, underflowed, inexact : int
        Of them, those that raised the flag.
    additions : int
        In sums and products, as of `softfloat.bits.Counts`.
    swamped : int
        Of them, those of something other than zero that left the sum as it was.
    """

    results: int = 0
    overflowed: int = 0
    underflowed: int = 0
    inexact: int = 0
    additions: int = 0
    swamped: int = 0


def addresses(names: Iterable[str]) -> dict[str, int]:
    """A number of `ADDRESS_BITS` bits for each name, which depends on the name alone; two that would share one are told apart in order."""
    found: dict[str, int] = {}
    taken: set[int] = set()
    for name in names:
        for attempt in range(1 << 16):
            digest = hashlib.blake2b(f"{attempt}:{name}".encode(), digest_size=8).digest()
            number = int.from_bytes(digest, "little") >> (64 - ADDRESS_BITS)
            if number not in taken:
                break
        taken.add(number)
        found[name] = number
    return found


class NodeKey(NamedTuple):
    """What the unit knows a node by."""

    name: str
    operator: str


class Unit(Runner):
    """What an evaluator computes with, and what it saw in the last run."""

    def __init__(
        self, environment: Environment | None, matmul: How, convolution: How, reduction: How, count: bool
    ) -> None:
        super().__init__(environment, matmul=matmul, convolution=convolution, reduction=reduction)
        self.count = count
        self.address: dict[str, int] = {}
        self.watch: Callable[[str], None] | None = None
        self.begin()

    def begin(self) -> None:
        """Forget the last run."""
        self.flags: dict[str, int] = {}
        self.counts: dict[str, NodeCounts] = {}
        self.executions: dict[str, int] = {}

    def trapped(self, trap: FloatingPointTrap, *place: Any) -> FloatingPointTrap:
        """A trap with its node."""
        return NodeTrap(trap, *place)


class Call:
    """One execution of a node.

    Attributes
    ----------
    inputs : list
        Arrays, sequences of them, None for those left out.
    attributes : dict
        The node's, and the defaults of its operator's definition.
    version : int
        Of the operators' set that the model is written in.
    outputs : int
        How many outputs the node names; those left out in between count.
    format : Format
        Of the first input that is narrow.
    """

    def __init__(
        self,
        unit: Unit,
        key: NodeKey,
        inputs: list[Any],
        attributes: dict[str, Any],
        version: int,
        outputs: int,
        native: Callable[..., tuple[Any, ...]],
    ) -> None:
        self.unit, self.key, self.inputs, self.attributes = unit, key, inputs, attributes
        self.version, self.outputs, self._native = version, outputs, native
        execution = unit.executions.get(key.name, 0)
        unit.executions[key.name] = execution + 1
        unit.flags.setdefault(key.name, 0)
        self.environment = unit.environment
        if unit.watch is not None:
            unit.watch(f"{key.name} ({key.operator})")
        self._stream = (unit.address[key.name] << EXECUTION_BITS | execution % EXECUTIONS) << STEP_BITS
        self._steps = 0
        if execution >= EXECUTIONS and self.environment.seed is not None:
            self.refuse(f"random numbers are addressed for {EXECUTIONS} executions of a node in one run")

    def refuse(self, reason: str) -> Any:
        """Raise that this is not emulated."""
        raise UnemulatedOperatorError(reason, *self.key)

    def native(self, *inputs: Any) -> tuple[Any, ...]:
        """What ONNX's own implementation makes of some inputs."""
        with np.errstate(all="ignore"):
            return self._native(*inputs)

    @property
    def format(self) -> Format:
        """Of the first input that is narrow; of the first that is float32 if none is."""
        formats = [fmt for fmt in map(self.format_of, range(len(self.inputs))) if fmt is not None]
        if not formats:
            return self.refuse("it has no operand in a format of floating point")
        return next((fmt for fmt in formats if fmt != float32), formats[0])

    def format_of(self, place: int) -> Format | None:
        """The format of an input; None for those left out, and in none of ours."""
        x = self.given(place)
        return format_of(x.dtype) if isinstance(x, np.ndarray) else None

    def given(self, place: int) -> Any:
        """An input; None if it is left out."""
        return self.inputs[place] if place < len(self.inputs) else None

    def codes(self, place: int, fmt: Format | None = None) -> Codes:
        """An input's codes, which must be in the node's format (or the one named)."""
        wanted = fmt or self.format
        array = self.given(place)
        if array is None:
            return self.refuse(f"input {place} is missing")
        if format_of(array.dtype) != wanted:
            return self.refuse(
                f"inputs of one format are emulated, got {array.dtype} as input {place} beside {wanted}; cast one of them"
            )
        return codes_of(array, wanted)

    def single(self, place: int) -> Array:
        """An input as float32, exactly; integers as they are."""
        array: Array = self.given(place)
        if array.dtype == np.float64:
            self.refuse(f"float64 as input {place} beside {self.format} is not emulated; cast one of them")
        if format_of(array.dtype) is None:
            return array
        with np.errstate(invalid="ignore"):  # of signalling NaNs
            return array.astype(np.float32)

    def run(
        self, function: Callable[..., Any], *operands: Any, changed: dict[str, Any] | None = None, **options: Any
    ) -> Codes:
        """One function of `softfloat.bits` as the next step of this node; flags go to the status and to the node.

        `changed` are settings that the node names itself, and which hold before the environment's.
        """
        unit, environment, name = self.unit, self.environment, self.key.name
        if self._steps == STEPS:
            self.refuse(f"more than {STEPS} steps in one node")
        stream = self._stream + self._steps
        self._steps += 1
        settings = environment.settings.replace(**changed) if changed else environment
        each = bool(environment.traps) or unit.count
        result: Codes
        result, flags, counts = unit.computed(function, operands, settings, stream, options, each, unit.count)
        unit.flags[name] = unit.flags.get(name, 0) | int(np.bitwise_or.reduce(flags, axis=None))
        if unit.count:
            which = Flags.OVERFLOW, Flags.UNDERFLOW, Flags.INEXACT
            made = NodeCounts(*counted(result, flags, counts, *which))
            unit.counts[name] = unit.counts.get(name, NodeCounts()) + made
        unit.raised(function.__name__, operands, flags, *self.key)
        return result

    def rounded(self, values: Any, fmt: Format) -> Array:
        """Numbers as an array in a format, rounded once."""
        return array_of(self.run(bits.encode, values, fmt), fmt)
