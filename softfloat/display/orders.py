"""The order in which an accumulator sums, as a picture: which products and sums meet, and where something is rounded.

>>> from softfloat.accumulators import chunked
>>> found = summation_order(chunked(4, "float16", "float32"), 8)
>>> found.meeting.kind, [part.kind for part in found.meeting.parts]
('reduction', ['reduction', 'running'])
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from softfloat.accumulators import Accumulator
from softfloat.accumulators.accumulator import ALL
from softfloat.checks import check_count, check_kind

__all__ = ["Meeting", "SummationOrder", "summation_order"]

FEWEST, MOST = 8, 128
STEP, MARGIN, FONT, NARROWEST = 24, 20, 12, 440  # pixels
WIDE = 6.7  # pixels of a letter, about

COLOURS = {
    "product": "#E69F00",
    "block": "#009E73",
    "pair": "#009E73",
    "running": "#0072B2",
    "stored": "#D55E00",
    "reduction": "#CC79A7",
    "converted": "#56B4E9",
}
"""Okabe and Ito's, told apart with every kind of colour vision; shapes tell kinds apart without."""
SQUARE, DIAMOND = {"stored", "converted"}, {"reduction", "block", "pair"}


class Meeting(NamedTuple):
    """A rounding.

    Attributes
    ----------
    parts : tuple of Meeting and int
        What meets: sums, and products by their number, 0 for the first.
    kind : str
        "product", "block", "pair", "running", "stored", "reduction" or "converted".
    """

    parts: tuple[Meeting | int, ...]
    kind: str


@dataclass(frozen=True)
class SummationOrder:
    """How an accumulator sums some products; in a notebook a picture.

    Attributes
    ----------
    accumulator : Accumulator
    products : int
    meeting : Meeting
        The last rounding, and by way of its parts all others.
    """

    accumulator: Accumulator
    products: int
    meeting: Meeting

    @property
    def meanings(self) -> dict[str, str]:
        """What each kind of rounding does here, of those that happen."""
        return {kind: text for kind, text in _meanings(self.accumulator).items() if kind in _kinds(self.meeting)}

    @property
    def svg(self) -> str:
        """The picture, in the colour of the text around it."""
        return _drawn(self)

    def _repr_html_(self) -> str:
        return self.svg


def summation_order(accumulator: Accumulator, products: int | None = None) -> SummationOrder:
    """The order of a sum without c.

    Parameters
    ----------
    accumulator : Accumulator
    products : int, optional
        How many there are; default: two blocks or segments of them, at least 8, if they are not too many.

    Raises
    ------
    ValueError, TypeError
        Naming the argument.
    """
    check_kind("accumulator", accumulator, Accumulator)
    count = _natural(accumulator) if products is None else check_count("products", products)
    if count > MOST:
        raise ValueError(f"products must be 1 to {MOST}, which a picture can hold, got {count}")
    return SummationOrder(accumulator, count, _whole(accumulator, count))


# -- what meets ------------------------------------------------------------------------------------------------------


def _natural(how: Accumulator) -> int:
    if isinstance(how.segments, tuple):
        return min(sum(how.segments), MOST)
    unit = how.segment or math.lcm(max(how.block, 1), len(how.order), how.store_every) * how.chains
    return max(FEWEST, min(2 * unit, MOST))


def _segments(how: Accumulator, count: int) -> Iterator[range]:
    if isinstance(how.segments, tuple):
        ends = [min(sum(how.segments[: n + 1]), count) for n in range(len(how.segments))]
    elif how.segments is not None:
        ends = [(n + 1) * count // how.segments for n in range(how.segments)]
    else:
        length = how.segment or count
        ends = [min(end, count) for end in range(length, count + length, length)]
    start = 0
    for end in ends:
        if end > start:
            yield range(start, end)
        start = max(start, end)


def _whole(how: Accumulator, count: int) -> Meeting:
    sums = [_section(how, products) for products in _segments(how, count)]
    for level in how.reduction:
        groups = [sums]
        if level.sections is not None:
            ends = [(n + 1) * len(sums) // level.sections for n in range(level.sections)]
            groups = [sums[start:end] for start, end in zip([0, *ends], ends, strict=False) if end > start]
        sums = []
        for group in groups:
            total = Meeting((group[0],), "reduction")
            for other in group[1:]:
                total = Meeting((total, other), "reduction")
            sums.append(total if level.store is None else Meeting((total,), "stored"))
    (total,) = sums
    return Meeting((total,), "converted") if _converts(how) else total


def _converts(how: Accumulator) -> bool:
    """Whether the output's format may be another one."""
    if how.result == "inputs":
        return not how.inputs or any(fmt != how.partials for fmt in how.inputs)
    return how.result not in ("partials", how.partials)


def _section(how: Accumulator, products: range) -> Meeting:
    """The sum of a segment."""
    if how.tree and how.block == 1:
        return _pairs(how, products)
    groups = [products[start : start + len(how.order)] for start in range(0, len(products), len(how.order))]
    placed = [group[i] for group in groups for i in how.order if i < len(group)]
    block = len(placed) if how.block == ALL else how.block
    running: list[Meeting | None] = [None] * how.chains
    for number, first in enumerate(range(0, len(placed), block)):
        chain = number % how.chains
        running[chain] = _met(how, placed[first : first + block], running[chain])
        done = first + block
        if how.store is not None and (done % how.store_every == 0 or done >= len(placed)):
            running[0] = Meeting((running[0] or 0,), "stored")
    total, *others = [sum_ for sum_ in running if sum_ is not None]
    for other in others:
        total = Meeting((total, other), "running")
    return total


def _met(how: Accumulator, products: Sequence[int], before: Meeting | None) -> Meeting:
    """A block of products and the running sum."""
    head = () if before is None else (before,)
    if how.tree:
        return Meeting((*head, _pairs(how, products)), "running")
    if how.product is not None:
        return Meeting((*head, *(Meeting((product,), "product") for product in products)), "running")
    if how.block_sum is not None:
        return Meeting((*head, Meeting(tuple(products), "block")), "running")
    return Meeting((*head, *products), "running")


def _pairs(how: Accumulator, products: Sequence[int]) -> Meeting:
    """Leaves in pairs, pairs in pairs, in the order of a binary counter."""
    sums: list[tuple[int, Meeting]] = []

    def merge() -> None:
        (n, left), (m, right) = sums[-2:]
        sums[-2:] = [(n + m, Meeting((left, right), "pair"))]

    for first in range(0, len(products), how.leaf):
        sums.append((1, Meeting(tuple(products[first : first + how.leaf]), "product")))
        while len(sums) > 1 and sums[-2][0] == sums[-1][0]:
            merge()
    while len(sums) > 1:
        merge()
    return sums[0][1]


# -- what it says ----------------------------------------------------------------------------------------------------


def _meanings(how: Accumulator) -> dict[str, str]:
    stages = " or ".join(dict.fromkeys(str(level.running) for level in how.reduction))
    stores = [how.store, *(level.store for level in how.reduction)]
    kept = " or ".join(dict.fromkeys(str(stage) for stage in stores if stage is not None))
    cut = "" if how.aligned is None else f"; terms are first {how.aligned}"
    running = f"the running sum, rounded to {how.running}{'' if how.block_sum else cut}"
    if how.fixed is not None:
        running = f"the running sum: {how.fixed}"
    if how.compensation is not None:
        running = f"the running sum, rounded to {how.running}, what it lost made up for ({how.compensation})"
    several = f"{how.leaf} products, their exact sum" if how.leaf > 1 else "a product,"
    result = how.result if isinstance(how.result, str) else how.result.name
    return {
        "product": f"{several} rounded to {how.product}",
        "block": f"the sum of a block, rounded to {how.block_sum}{cut}",
        "pair": f"a pair of sums, rounded to {how.running}",
        "running": running,
        "reduction": f"sums of segments, rounded to {stages}",
        "stored": f"stored as {kept}",
        "converted": f"converted to {'the format of the operands' if result == 'inputs' else result}",
    }


def _kinds(meeting: Meeting) -> set[str]:
    return {meeting.kind}.union(*(_kinds(part) for part in meeting.parts if isinstance(part, Meeting)))


# -- drawing ---------------------------------------------------------------------------------------------------------


class _Placed(NamedTuple):
    across: float
    down: int


def _place(meeting: Meeting, found: dict[int, _Placed], lines: list[tuple[_Placed, _Placed, bool]]) -> _Placed:
    """Where a rounding stands, in columns and rows: under what is new in it, below everything it takes."""
    parts = [
        _place(part, found, lines) if isinstance(part, Meeting) else _Placed(part, 0) for part in meeting.parts
    ]  # fmt: skip
    chained = meeting.kind in ("running", "reduction") and len(parts) > 1 and isinstance(meeting.parts[0], Meeting)
    new = parts[1:] if chained else parts
    here = _Placed(sum(part.across for part in new) / len(new), 1 + max(part.down for part in parts))
    found[id(meeting)] = here
    lines += [(part, here, chained and number == 0) for number, part in enumerate(parts)]
    return here


def _shape(kind: str, x: float, y: float, size: float = 5) -> str:
    style = f'fill="{COLOURS[kind]}"'
    if kind in SQUARE:
        return f'<rect x="{x - size:g}" y="{y - size:g}" width="{2 * size:g}" height="{2 * size:g}" {style}/>'
    if kind in DIAMOND:
        reach = 1.2 * size
        return (
            f'<path d="M{x:g} {y - reach:g}l{reach:g} {reach:g}l-{reach:g} {reach:g}l-{reach:g} -{reach:g}z" {style}/>'
        )
    return f'<circle cx="{x:g}" cy="{y:g}" r="{0.7 * size if kind == "product" else size:g}" {style}/>'


def _all(meeting: Meeting) -> Iterator[Meeting]:
    yield meeting
    for part in meeting.parts:
        if isinstance(part, Meeting):
            yield from _all(part)


def _drawn(order: SummationOrder) -> str:
    found: dict[int, _Placed] = {}
    lines: list[tuple[_Placed, _Placed, bool]] = []
    last = _place(order.meeting, found, lines)
    many, deep = order.products, last.down
    step = STEP if many <= 16 else 16 if many <= 32 else 8
    row = STEP if deep <= 20 else 12 if deep <= 40 else 8
    size = min(5, 0.6 * row, 0.6 * step)

    def at(place: _Placed) -> tuple[float, float]:
        return MARGIN + place.across * step, MARGIN + FONT + place.down * row

    drawn = []
    for start, end, sums in lines:
        (x, y), (x2, y2) = at(start), at(end)
        stroke = 'stroke-width="2"' if sums else 'stroke-opacity="0.45"'
        drawn.append(f'<path d="M{x:g} {y:g}L{x2:g} {y2:g}" stroke="currentColor" {stroke}/>')
    for product in range(many):
        x, y = at(_Placed(product, 0))
        drawn.append(f'<circle cx="{x:g}" cy="{y:g}" r="{size / 2:g}" fill="currentColor"/>')
        if product % (STEP // step + (step < STEP)) == 0:
            drawn.append(f'<text x="{x:g}" y="{y - 8:g}" text-anchor="middle">{product + 1}</text>')
    drawn += [_shape(meeting.kind, *at(found[id(meeting)]), size) for meeting in _all(order.meeting)]
    x, y = at(last)
    drawn.append(f'<path d="M{x:g} {y + size:g}v{STEP / 2:g}" stroke="currentColor" stroke-width="2"/>')
    width, y = max(2 * MARGIN + (many - 1) * step, NARROWEST), y + 1.5 * STEP
    for kind, text in order.meanings.items():
        drawn.append(_shape(kind, MARGIN, y))
        for line in textwrap.wrap(text, int((width - 3 * MARGIN) / WIDE)):
            drawn.append(f'<text x="{MARGIN + 14}" y="{y + 4:g}">{escape(line)}</text>')
            y += FONT + 6
    said = escape(f"The order of {many} products: " + "; ".join(order.meanings.values()), quote=True)
    bounds = f'viewBox="0 0 {width:g} {y:g}" width="{width:g}" style="max-width:100%;height:auto"'
    letters = f'font-family="sans-serif" font-size="{FONT}" fill="currentColor"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{said}" {bounds} fill="none">'
        f"<g {letters}>{''.join(drawn)}</g></svg>"
    )
