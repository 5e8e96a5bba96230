"""Sums in pairs, rounded stochastically, by the loops of `kernels.drawn_trees`: grids, and outputs with operands of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softfloat.engine import elementwise, threads, tiling, trees
from softfloat.engine.arguments import Codes
from softfloat.engine.decoding import decoded
from softfloat.engine.parameters import FLOAT16, FLOAT32, available, dots, drawn_trees, steps, tiles
from softfloat.engine.programs import Program
from softfloat.engine.ways import (
    SCALED_NORMAL,
    Place,
    Random,
    Tally,
    Way,
    family_of_sums,
    lowest_of,
    overflow_serves,
    products_are_exact,
    products_are_wide,
)
from softfloat.kernels.spec import Overflow

PIECE = 1 << 20  # products of outputs with operands of their own that are laid out at a time


@dataclass(frozen=True, eq=False, kw_only=True)
class Tree(Way):
    """Neighbours added in pairs. `wide`: products have more bits than float32."""

    wide: bool = False


def serves(planned: Program) -> bool:
    """Whether all that rounds is one format, drawn, and narrow or float32."""
    how, floor = planned.accumulator, dots()
    if not how.tree or not elementwise.quick() or not available()[0] or not planned.length or planned.index is not None:
        return False
    if planned.block > 1 or how.reduction or how.chains > 1 or not planned.is_plain or planned.goes_on:
        return False
    running = planned.sites[floor.RUNNING]
    rule = running.rule
    if planned.sites[floor.PRODUCT] != running or not running.width or not rule.restated:
        return False
    family, _ = family_of_sums(running.format.spec)
    held = products_are_exact(planned) or products_are_wide(planned)
    return bool(family) and held and overflow_serves(running, planned.policy)


def _way(planned: Program) -> Tree:
    site, wide = planned.sites[dots().RUNNING], not products_are_exact(planned)
    if site.format.spec == FLOAT32:
        return Tree(site=site, bounded=True, wide=wide)
    return Tree(site=site, lowest=lowest_of(site.format, wide, SCALED_NORMAL), wide=wide)


def run(
    planned: Program, operands: tiling.Operands, place: Place, random: Random, tally: Tally | None = None
) -> tuple[Codes, Codes] | None:
    """(codes in the partials format, flags) of a grid, or None if the operands are not for this way. A `tally` is filled."""
    way, floor = _way(planned), tiles()
    a, b, c = operands.a, operands.b, operands.c
    if not _fits(way, planned, operands):
        return None
    rows, lanes = floor.ROWS, floor.LANES[np.float32]
    panels = tiling.panels([a.T], rows, np.float32), tiling.panels([b], lanes, np.float32)
    shape = panels[0].shape[1] * rows, panels[1].shape[1] * lanes
    values, flags = np.empty(shape, np.float32), np.empty(shape, np.uint8)
    start = tiling.filled(c, *shape, np.float32)
    units = panels[0].shape[1] * panels[1].shape[1]
    size = a.shape[0], b.shape[1]
    padded = None if tally is None else Tally.room(shape, np.float32)
    _looped("grid", way, planned, panels, start, c is not None, values, flags, size, place, random, units, padded)
    if tally is not None and padded is not None:
        tally.cut(padded)
    return _coded(way, planned, values[: size[0], : size[1]], flags[: size[0], : size[1]])


def run_line(
    planned: Program, a: Codes, b: Codes, c: Codes | None, place: Place, random: Random, tally: Tally | None = None
) -> tuple[Codes, Codes] | None:
    """The same of codes a and b, (k, outputs), whose outputs lie in a row; c is of the outputs."""
    way, floor = _way(planned), tiles()
    first, second = planned.formats
    (read_a, read_b), count, found = planned.reading, a.shape[1], []
    plain = trees.are_leaves(planned, b)
    lanes = floor.LANES[np.float32]
    cells = floor.ROWS * lanes
    step = max(1, PIECE // (planned.length * cells)) * cells
    for begin in range(0, count, step):
        part = slice(begin, begin + step)
        x = decoded(np.ascontiguousarray(a[:, part]), first, read_a)
        y = decoded(b[:1, :1] if plain else np.ascontiguousarray(b[:, part]), second, read_b)
        start = None if c is None else decoded(np.ascontiguousarray(c[part]), planned.partials, planned.entry)
        operands = tiling.Operands(x, y, start)
        if not _fits(way, planned, operands):
            return None
        width = x.shape[1]
        tiled = -(-width // cells)
        panels = tiling.panels([x], cells, np.float32)
        both = panels, panels if plain else tiling.panels([y], cells, np.float32)
        size = tiled * floor.ROWS, lanes
        values, flags = np.empty(size, np.float32), np.empty(size, np.uint8)
        sums = tiling.filled(None if start is None else start[None], 1, tiled * cells, np.float32)
        where = Place(place.first + begin * place.column_stride, lanes * place.column_stride, place.column_stride)
        padded = None if tally is None else Tally.room(size, np.float32)
        _looped(
            "own", way, planned, both, sums.reshape(values.shape), c is not None, values, flags, size, where, random, tiled, padded, plain
        )  # fmt: skip
        if tally is not None and padded is not None:
            for target, source in zip(tally, padded, strict=True):
                target[:, part] = source.reshape(len(source), -1)[:, :width]
        found.append((values.reshape(-1)[:width], flags.reshape(-1)[:width]))
    sums, raised = (np.concatenate(x) for x in zip(*found, strict=True))
    return _coded(way, planned, sums, raised)


def _fits(way: Way, planned: Program, operands: tiling.Operands) -> bool:
    first, second = planned.formats
    start = None if operands.c is None else tiling.extent(operands.c, planned.partials)
    spans = [tiling.extent(operands.a, first), tiling.extent(operands.b, second)]
    return tiling.fits(way, planned.length, spans, start)


def _looped(
    layout: str,
    way: Tree,
    planned: Program,
    panels: tuple[Codes, Codes],
    start: Codes,
    has_c: bool,
    values: Codes,
    flags: Codes,
    size: tuple[int, int],
    place: Place,
    random: Random,
    units: int,
    tally: Tally | None,
    ones: bool = False,
) -> None:
    """Tiles, by the loop for these operands."""
    family = {FLOAT16: "half", FLOAT32: "float32"}.get(way.site.format.spec, "narrow")
    narrow = family != "float32"  # of which nothing is subnormal, and nothing overflows
    rule, counts = way.site.rule, tally is not None
    of_nan = counts and rule.overflow is Overflow.NAN
    daz, ftz, saturates = (x and narrow for x in (rule.daz, rule.ftz, rule.overflow is Overflow.SATURATE))
    options = steps().Draws(saturates, daz=daz, ftz=ftz, of_nan=of_nan and narrow, wide=way.wide)
    loop = drawn_trees().drawn_tree(layout, family, options, ones, counts)
    counted = tally or Tally.room((0, 0), np.float32)
    numbers, nan_flags = tiling.numbers_of(way, planned), tiling.nan_flags_of(way)

    def work(first: int, last: int) -> int:
        loop(
            first, last, *panels, start, has_c, values, flags, numbers, nan_flags, *size, *counted, *way.unflushed, *place,
            way.site.width, *random.words,
        )  # fmt: skip
        return 0

    tile = tiles().ROWS * tiles().LANES[np.float32]
    threads.share_units(units, work, planned.length * tile)


def _coded(way: Way, planned: Program, values: Codes, flags: Codes) -> tuple[Codes, Codes]:
    """(codes in the partials format, flags)."""
    if way.site.rule.overflow is Overflow.NAN:
        flags[np.isinf(values)] |= tiling.nan_flags_of(way)
    return tiling.codes_of(values, planned.partials, way.site), flags
