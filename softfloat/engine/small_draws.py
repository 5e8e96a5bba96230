"""Few sums, dot products and products with a vector, rounded stochastically: one by one, as `kernels.alone` sums them, all but operands
settled beforehand.

As in `small`, each function gives what the long way gives, or None where that is to be gone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.engine import elementwise, generated, tiling, ways
from softfloat.engine.arguments import Codes
from softfloat.engine.draws import replica_key
from softfloat.engine.elementwise import NO_CODES, Ready
from softfloat.engine.parameters import FLOAT32, NEAREST, Numbers, dots, loops, numbers, steps
from softfloat.engine.programs import program
from softfloat.environments import Settings
from softfloat.formats import Format
from softfloat.kernels.spec import CARRIER64

MOST = 1 << 10
"""Roundings of a call up to which tiles, of which most is not wanted, take longer."""


class Sizes(NamedTuple):
    """Of a product of matrices (rows, length) and (length, columns), one of which is a vector, or of the sums of `columns` columns."""

    rows: int
    length: int
    columns: int

    @property
    def products(self) -> int:
        """Of all outputs."""
        return self.rows * self.length * self.columns


class Plan(NamedTuple):
    """What serves a call, settled."""

    sizes: Sizes
    way: ways.Drawn
    job: generated.Job
    decode: Any
    inputs: tuple[Format, Format]
    read: tuple[Numbers, Numbers]
    in_range: bool
    output: Format
    to_output: Ready | None  # None: float32


@lru_cache(maxsize=512)
def plan(
    accumulator: Accumulator, first: Format, second: Format, output: Format, whole: Settings, sizes: Sizes, fast: bool
) -> Plan | None:
    """The plan for a call; None if the long way is to be gone, maybe to be refused there. `fast` is `elementwise.FAST`."""
    if not fast or 1 not in (sizes.rows, sizes.columns) or whole.generator != "philox4x32" or whole.seed is None:
        return None
    try:
        planned = program(accumulator, first, second, output, whole, sizes.length)
    except (TypeError, ValueError):
        return None
    if accumulator.reduction or accumulator.chains > 1 or planned.converts or planned.index is not None:
        return None
    way = ways.choose(planned)
    if type(way) is not ways.Drawn or way.compensates or sizes.products * (1 if way.operation == "fma" else 2) > MOST:
        return None
    to_output = None
    if output.spec != FLOAT32:
        to_output = elementwise.prepared("convert", output, NEAREST, True, False, 0.0, FLOAT32)
        if to_output is None:
            return None
    inputs = first, second
    reading = [numbers(x.spec, x.spec, rule, CARRIER64) for x, rule in zip(inputs, planned.reading, strict=True)]
    running = dots().RUNNING
    key = replica_key(whole.seed, 0 if whole.replica_identical else whole.replica)
    return Plan(
        sizes=sizes,
        way=way,
        job=generated.Job(
            way.sum("shared", False, alone=True),
            {"numbers": tiling.numbers_of(way, planned)} | way.rounding,
            generated.turns(planned.begun.get(running, 0), planned.apart)
            | way.address(ways.Place(0, 1, 1), ways.Random(key, 0))
            | {"turns": sizes.length, "slots": steps().SLOTS, "nan_flags": tiling.nan_flags_of(way), "wide": 1},
        ),
        decode=loops().decoding(),
        inputs=inputs,
        read=(reading[0], reading[1]),
        in_range=tiling.always_fits(way, sizes.length, first, second),
        output=output,
        to_output=to_output,
    )


def run(plan: Plan, a: Codes | None, b: Codes, stream: int, each: bool) -> tuple[Codes, Any] | None:
    """(codes, flags) of a product, whose operands are flat; without `a` the sums of columns."""
    rows, length, columns = plan.sizes
    count = rows * columns
    second = np.empty(b.size)
    plan.decode(b, second, *plan.read[1])
    if a is None:
        first = np.ones(length)
    else:
        first = np.empty(a.size)
        plan.decode(a, first, *plan.read[0])
    spans = [tiling.extent(x, fmt) for x, fmt in zip((first, second), plan.inputs, strict=True)]
    if not (all(x.finite for x in spans) and (plan.in_range or tiling.fits(plan.way, length, spans, None))):
        return None
    panels, shared = (first, second) if columns == 1 else (second.reshape(length, columns).T, first)
    slots, size = steps().SLOTS, np.dtype(np.float32).itemsize
    room = np.zeros(panels.size + length + count * slots, np.float32)
    room[: panels.size].reshape(panels.shape)[...] = panels
    room[panels.size : panels.size + length] = shared
    a_at = room.ctypes.data
    b_at = a_at + panels.size * size
    places = {"a": a_at, "b": b_at, "state": b_at + length * size, "kept": a_at}
    sums, flags = np.empty(count, np.float32), np.empty(count, np.uint8)
    plan.job(0, count, places | {"stream": stream} | generated.addresses({"values": sums, "flags": flags}))
    if not np.isfinite(sums).all():
        return None
    single, raised = sums.view(np.uint32), flags.reshape(1, rows, columns)
    seen = raised if each else int(np.bitwise_or.reduce(raised, axis=None))
    if plan.to_output is None:
        return single, seen
    single.setflags(write=False)
    codes = np.empty(count, plan.output.dtype)
    plan.to_output(single, single, single, codes, NO_CODES, 0, False)
    return codes, seen
