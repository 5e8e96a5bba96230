"""Many sums of dot-product units at once whose terms are aligned: small products."""

from __future__ import annotations

from softfloat.engine import stacks, tiling, unit_ways
from softfloat.engine.arguments import Codes
from softfloat.engine.programs import Program
from softfloat.engine.ways import Place, Random


def takes_stacks(planned: Program) -> bool:
    """Whether many products of this program go together, if there is something to do."""
    way = unit_ways.choose(planned)
    return way is not None and way.unit.kind == "aligned" and way.unit.term == 1


def run_stack(
    planned: Program,
    a: Codes,
    b: Codes,
    c: Codes | None,
    place: Place,
    random: Random,
    into: tuple[Codes, Codes] | None = None,
) -> stacks.Done | None:
    """As `stacks.run`, of products whose terms are aligned."""
    way = unit_ways.choose(planned)
    if way is None:
        return None
    quicker = unit_ways.in_single(way, planned) if c is None else None
    if quicker is not None and tiling.always_fits(quicker, planned.length, *planned.formats):
        way = quicker
    outputs, of_zeros = a.shape[1] * b.shape[2], unit_ways.power_of_zeros(planned.accumulator)
    operands = stacks.operands_of(planned, a, b, way.carrier, way.planes, of_zeros)
    if operands is None:
        return None
    if c is None:
        done = stacks.one_after_the_other(way, planned, operands, into)
        if done is not None:
            return done if len(done.left) < len(a) else None

    def sums(arrays: list[Codes], first: int, low_c: float, alone: bool, run_tiles: stacks.Tiles) -> int:
        loop = way.grid(place._replace(first=place.first + first), random, outputs)
        return run_tiles((loop, ()), arrays, len(arrays[0]) * arrays[0].shape[2] * arrays[1].shape[2])

    numbers = stacks.Numbers(tiling.numbers_of(way, planned), tiling.nan_flags_of(way))
    return stacks.in_pieces(way, planned, operands, c, 0, numbers, sums, into)
