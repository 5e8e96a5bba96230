"""Corner rows of dot products: sums that overflow, underflow, cancel and tie at chosen steps.

A row has a few products of chosen exponents at chosen steps, zeros elsewhere. Blocks of rows:

distances
    Two products so far apart as the accumulator's boundaries: none, its precision, its fraction bits, all between.
ties
    A sum with its last bits as wished, a product that is half of the last one, and a product that decides, or none.
cancellation
    A product that takes another back, all of it or but for the last bits; something small before or after.
carries
    Sums of ones in every place that one more product rounds up, of every exponent.
overflow
    Finite products whose sum passes the largest number of a format of the accumulator, or comes to half a step of it.
underflow
    Products near and below the least numbers of a format of the accumulator, alone and together.
zeros
    Zeros of both signs, from zeros and from products that vanish; the last one negative.
specials, edges
    An infinity, a NaN, or 0 * inf at a step, and another one at a later step; any edge of a format.
exponents
    A product of every exponent of either factor, their lowest fraction bits in all states, alone or beside another.
dense
    As many products as there are: carries, alternating signs, exponents in steps.

Products come from two factors of few bits, whose exponents add up; c takes the place of a first product where rows have
an addend.

>>> from softfloat.testing.vectors.operations import resolve
>>> rows = dot_corners(resolve("vecdot", "bfloat16", accumulator="fma('float32')", length=4), 1)
>>> [block.name for block in rows.blocks]
['distances', 'ties', 'cancellation', 'carries', 'overflow', 'underflow', 'zeros', 'specials', 'edges', 'exponents of a', 'exponents of b', 'dense']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat.formats import Format
from softfloat.testing.vectors.corners import (
    Block,
    Cells,
    Fields,
    Relation,
    Rows,
    edges,
    encoded,
    few,
    fractions,
    related,
)
from softfloat.testing.vectors.operations import Case

__all__ = ["dot_corners"]

Codes = np.ndarray[Any, Any]

BUDGET = {1: 1 << 14, 2: 1 << 18}
"""Level -> rows of a block, as far as each cell has two."""
MOST_STEPS = {1: 64, 2: 256}
"""Level -> steps that are chosen, of longer sums."""
NOWHERE = -2
ADDEND = -1


class Places:
    """Which steps of a sum take part."""

    def __init__(self, case: Case, level: int) -> None:
        assert case.length is not None
        assert case.accumulator is not None
        self.length, self.addend = case.length, case.addend
        self.first = ADDEND if case.addend else 0
        k, block = case.length, case.accumulator.block or case.length
        steps = list(range(k))
        if k > MOST_STEPS[level]:
            beside = {m * n + d for m in (block, case.accumulator.store_every) for n in (1, 2) for d in (-1, 0, 1)}
            kept = {*range(8), *range(k - 8, k), k // 2, *beside}
            kept |= {i * k // MOST_STEPS[level] for i in range(MOST_STEPS[level])}
            steps = sorted(x for x in kept if 0 <= x < k)
        self.steps = np.array(steps, np.int64)

    def tuples(self, count: int) -> Codes:
        """Rows of `count` steps in order, the last of them at every step; NOWHERE what there is no room for."""
        first, found = self.first, []
        for last in self.steps.tolist():
            room = last - first
            spread = [first + room * i // max(count - 1, 1) for i in range(count - 1)]
            for before in (
                [last - count + 1 + i for i in range(count - 1)],
                [first + i for i in range(count - 1)],
                spread,
            ):
                kept = [x if first <= x < last else NOWHERE for x in before]
                found.append((*kept, last))
            if count > 2:
                found.append((*[first + i if first + i < last else NOWHERE for i in range(count - 2)], last - 1, last))
        distinct = dict.fromkeys(x for x in found if all(y >= first or y == NOWHERE for y in x))
        return np.array(list(distinct), np.int64)


class Terms:
    """Products of rows, and their addends, as signs, factors and exponents."""

    def __init__(self, case: Case, index: Codes) -> None:
        assert case.length is not None
        self.case, self.index = case, index
        shape = (len(index), case.length)
        self.first, self.second = np.zeros(shape, np.int64), np.ones(shape, np.int64)
        self.exponent, self.negative = np.zeros(shape, np.int64), np.zeros(shape, bool)
        self.c = np.zeros(len(index))

    def put(self, step: Codes, exponent: Any, negative: Any, first: Any = 1, second: Any = 1) -> None:
        """A product at a step of each row: two odd factors, and the sum of their exponents; step ADDEND is c."""
        columns = np.broadcast_arrays(step, exponent, negative, first, second)
        rows = np.flatnonzero(columns[0] >= 0)
        at = (rows, columns[0][rows])
        for array, values in zip((self.exponent, self.negative, self.first, self.second), columns[1:], strict=True):
            array[at] = values[rows]
        c = columns[0] == ADDEND
        if c.any():
            _, exponent, negative, first, second = (x[c].astype(np.int64) for x in columns)
            low = exponent - _width(first) - _width(second) + 2
            self.c[c] = np.ldexp((first * second * (1 - 2 * negative)).astype(np.float64), low)

    def operands(self) -> list[Codes]:
        """Codes of both sides, and of c."""
        case = self.case
        a, b = case.formats
        turned = (self.index % 2 == 1)[:, None]  # which side has which factor
        widths = (a.p, b.p)
        narrow = (_width(self.first) <= min(widths)) & (_width(self.second) <= min(widths))
        turned = turned & narrow
        first = np.where(turned, self.second, self.first)
        second = np.where(turned, self.first, self.second)
        zero = self.first == 0
        lowest = a.emin - (a.mantissa_bits - _width(first) + 1 if a.subnormals else 0)
        least = b.emin - (b.mantissa_bits - _width(second) + 1 if b.subnormals else 0)
        skew = (self.index % 7)[:, None]  # exponents alike, or one of them at an end of its range
        middle = np.select([skew == 5, skew == 6], [lowest, self.exponent - least], self.exponent // 2 + skew - 2)
        ea = np.clip(middle, self.exponent - b.emax, self.exponent - np.where(skew == 6, least, b.emin))
        ea = np.clip(ea, np.where(skew == 5, lowest, a.emin), a.emax)
        eb = np.clip(self.exponent - ea, least, b.emax)
        ea = self.exponent - eb
        x = np.where(zero & ~turned, 0.0, np.ldexp(np.maximum(first, 1) * 1.0, ea - _width(first) + 1))
        y = np.where(zero & turned, 0.0, np.ldexp(np.maximum(second, 1) * 1.0, eb - _width(second) + 1))
        side = (self.index // 2 % 2 == 1)[:, None] if b.signed and a.signed else np.full((1, 1), not a.signed)
        x = np.where(self.negative & ~side, -x, x)
        y = np.where(self.negative & side, -y, y)
        found = [_codes(x, a), _codes(y, b)]
        if case.addend:
            column = case.operands[-1]
            assert column.number.format is not None
            found.append(_codes(self.c, column.number.format))
        return found


def _width(numbers: Codes) -> Codes:
    """Bits of integers."""
    return np.frexp(np.maximum(numbers, 1).astype(np.float64))[1].astype(np.int64)


def _codes(values: Codes, fmt: Format) -> Codes:
    codes = encoded(values, fmt)
    return np.where(values == 0, 0, codes).astype(fmt.dtype) if not fmt.zero else codes


class Range:
    """What products of a case come to."""

    def __init__(self, case: Case) -> None:
        a, b = case.formats
        assert case.accumulator is not None
        assert case.target.format is not None
        how = case.accumulator
        self.low, self.high = a.emin + b.emin, a.emax + b.emax
        self.least = self.low - sum(x.mantissa_bits for x in (a, b) if x.subnormals)
        stages = [how.running, how.product, how.store, *(x.running for x in how.reduction)]
        stages += [x.store for x in how.reduction]
        self.formats = list(
            dict.fromkeys([how.running.format, *(x.format for x in stages if x is not None), case.target.format])
        )
        self.running = how.running.format
        self.p, self.kept = how.running.format.p, how.kept_bits
        ones = [(1 << x.p) - 1 for x in (a, b)]
        narrow = min(ones)
        found = [
            (1, 1),
            (narrow, 1),
            (narrow, narrow),
            (3 & narrow, 3 & narrow),
            (narrow // 2 | 1, 1),
            (ones[0], ones[1]),
        ]
        self.factors = np.array(list(dict.fromkeys(found)), np.int64)
        self.longest = max(2 * self.p, (self.kept or 0) + 2) + 4
        anchors = [0, self.running.emin + self.p, self.running.emax - 1, (self.low + self.high) // 2]
        self.anchors = np.array(list(dict.fromkeys(int(np.clip(x, self.low, self.high)) for x in anchors)), np.int64)
        self.a_ones = _ones(a)


def _ones(fmt: Format) -> int:
    """All the bits of a significand."""
    return (1 << fmt.p) - 1


Make = Callable[[Terms, Sequence[Codes]], None]


def _block(case: Case, name: str, cells: Sequence[int], combinations: Sequence[int], level: int, make: Make) -> Block:
    table = Cells(cells, combinations, BUDGET[level])

    def operands(index: Codes) -> list[Codes]:
        terms = Terms(case, index)
        make(terms, table(index))
        return terms.operands()

    return Block(name, table.count, operands)


def _arithmetic(case: Case, level: int) -> Iterator[Block]:
    """Blocks of finite products."""
    reach, places = Range(case), Places(case, level)
    factors, anchors, p = reach.factors, reach.anchors, reach.p
    twos, threes, fours = (places.tuples(n) for n in (2, 3, 4))

    def distances(terms: Terms, digits: Sequence[Codes]) -> None:
        distance, anchor, order, pair, first, second, sign, other = digits
        steps, base = twos[pair], anchors[anchor]
        early, late = np.where(order == 0, 0, distance), np.where(order == 0, distance, 0)
        terms.put(steps[:, 0], base - early, sign == 1, factors[first, 0], factors[first, 1])
        terms.put(steps[:, 1], base - late, other == 1, factors[second, 0], factors[second, 1])

    sizes = [len(twos), len(factors), len(factors), 2, 2]
    yield _block(case, "distances", [reach.longest, len(anchors), 2], sizes, level, distances)
    kept = [reach.kept - p + d for d in (-1, 0, 1, 2)] if reach.kept and reach.kept > p else []
    beyond = np.array([*range(p + 4), 2 * p, 2 * p + 1, *kept])
    orders = np.array([(0, 1, 2, 3), (3, 0, 1, 2), (0, 3, 1, 2), (2, 0, 1, 3), (1, 2, 0, 3)])

    def ties(terms: Terms, digits: Sequence[Codes]) -> None:
        tail, last, anchor, decides, half_sign, sign, order, four = digits
        steps = np.take_along_axis(fours[four], orders[order], 1)
        base, minus = anchors[anchor], sign == 1
        terms.put(steps[:, 0], base, minus)
        lasting = np.where(last > 0, steps[:, 1], NOWHERE)
        terms.put(lasting, base - p + 1 + (last >= 2), minus, np.where(last == 3, 3, 1))
        terms.put(steps[:, 2], base - p, minus ^ (half_sign == 1))
        deciding = np.where(beyond[tail] > 0, steps[:, 3], NOWHERE)
        terms.put(deciding, base - p - beyond[tail], minus ^ (decides == 1))

    sizes = [2, 2, 2, len(orders), len(fours)]
    yield _block(case, "ties", [len(beyond), 4, len(anchors)], sizes, level, ties)

    def cancellation(terms: Terms, digits: Sequence[Codes]) -> None:
        small, partial, anchor, last, which, sign, other, order, three = digits
        steps = np.take_along_axis(threes[three], np.array([(0, 1, 2), (2, 0, 1), (1, 0, 2)])[order], 1)
        base, minus = anchors[anchor], sign == 1
        first, second = factors[which, 0], factors[which, 1]
        terms.put(steps[:, 0], base, minus, first, second)
        near = np.select([partial == 1, partial == 2], [first ^ 2, np.maximum(first - 1, 1)], first)
        near = np.where(_width(near) == _width(first), near, first)
        down = np.where(partial == 3, 1, 0)
        terms.put(steps[:, 1], base - down, ~minus, near, second)
        terms.put(np.where(last == 1, steps[:, 2], NOWHERE), base - small, other == 1)

    sizes = [2, len(factors), 2, 2, 3, len(threes)]
    yield _block(case, "cancellation", [2 * p + 4, 4, len(anchors)], sizes, level, cancellation)
    yield from _carries(case, reach, level, fours)
    for fmt in reach.formats:
        yield from _extremes(case, reach, fmt, level, fours)


def _full(terms: Terms, steps: Codes, exponent: Any, negative: Codes, p: int, wide: int) -> None:
    """A significand of ones, in three products of `wide` bits each."""
    for piece in range(3):
        width = min(wide, p - piece * wide)
        if width > 0:
            terms.put(steps[:, piece], exponent - piece * wide, negative, (1 << width) - 1)


def _carries(case: Case, reach: Range, level: int, fours: Codes) -> Iterator[Block]:
    """Sums of ones in every place, of every exponent, that a further product rounds up to the next power of two."""
    fmt, wide = reach.running, int(_width(np.array([reach.a_ones]))[0])
    bottom, top = max(fmt.emin, reach.least + fmt.p + 1), min(fmt.emax, reach.high)
    last = np.array([1 - fmt.p, -fmt.p, -fmt.p - 1])  # the last place, half of it, a quarter

    def carries(terms: Terms, digits: Sequence[Codes]) -> None:
        exponent, kind, four, sign, other = digits
        steps, minus = fours[four], sign == 1
        _full(terms, steps, bottom + exponent, minus, fmt.p, wide)
        terms.put(steps[:, 3], bottom + exponent + last[kind], minus ^ (other == 1))

    if top >= bottom:
        yield _block(case, "carries", [top - bottom + 1, len(last)], [len(fours), 2, 2], level, carries)


def _extremes(case: Case, reach: Range, fmt: Format, level: int, fours: Codes) -> Iterator[Block]:
    """Sums at the ends of the range of one of the accumulator's formats, where products come so far."""
    p, top = fmt.p, fmt.emax
    name = "" if fmt == reach.running else f" of {fmt}"
    ones, wide = reach.a_ones, int(_width(np.array([reach.a_ones]))[0])
    if reach.high >= top or (reach.high + (case.length or 1).bit_length() >= top):
        last = np.array([0, -1, -wide, 1 - p, -p, -p - 1, -p - 2, -2 * p - 2])

        def overflow(terms: Terms, digits: Sequence[Codes]) -> None:
            """The largest number in three products, and one more; or as many large ones as it takes."""
            kind, four, sign, after = digits
            steps, minus = fours[four], sign == 1
            high = min(top, reach.high)
            short = high < top
            each = np.arange(terms.first.shape[1])[None, :]
            if short:  # a sum of many
                upto = np.where(each <= steps[:, 3:], each, NOWHERE)
                for column in range(terms.first.shape[1]):
                    terms.put(upto[:, column], high, minus, ones)
                return
            _full(terms, steps, top, minus, p, wide)
            crowded = (steps[:, :3] == NOWHERE).any(axis=1)  # no room to build the largest number: two large ones
            exponent = np.where(crowded & (kind > 1), top, top + last[kind])
            terms.put(steps[:, 3], np.minimum(exponent, reach.high), minus ^ (after == 2))
            behind = np.where((after == 1) & (steps[:, 3] + 1 < terms.first.shape[1]), steps[:, 3] + 1, NOWHERE)
            terms.put(behind, top, ~minus, ones)

        yield _block(case, f"overflow{name}", [len(last), len(fours)], [2, 3], level, overflow)
    if reach.least < fmt.emin:
        bottom = max(fmt.emin - p - 3, reach.least)
        span = min(fmt.emin + 3, reach.high) - bottom

        def underflow(terms: Terms, digits: Sequence[Codes]) -> None:
            first, second, factor, third, four, sign, other, three = digits
            steps = fours[four]
            terms.put(steps[:, 0], bottom + first, sign == 1, reach.factors[factor, 0], reach.factors[factor, 1])
            terms.put(steps[:, 3], bottom + second, other == 1)
            third_step = np.where(third == 1, steps[:, 2], NOWHERE)
            terms.put(third_step, bottom + first, (sign == 1) ^ (three == 1), reach.factors[factor, 0], 1)

        if span > 0:
            sizes = [len(reach.factors), 2, len(fours), 2, 2, 2]
            yield _block(case, f"underflow{name}", [span, span], sizes, level, underflow)


def _zeros(case: Case, level: int) -> Iterator[Block]:
    reach, places = Range(case), Places(case, level)
    pairs = places.tuples(2)

    def zeros(terms: Terms, digits: Sequence[Codes]) -> None:
        """All of one sign but for a step; something that cancels or vanishes in between."""
        sign, kind, which, addend = digits
        steps, minus = pairs[which], sign == 1
        terms.negative[:] = minus[:, None]
        rows = np.arange(len(steps))
        flipped = np.maximum(steps[:, 1], 0)
        terms.negative[rows, flipped] ^= kind == 1
        some = np.where(kind == 2, steps[:, 0], NOWHERE)  # x - x, then zeros
        terms.put(some, int(reach.anchors[0]), minus)
        terms.put(np.where(kind == 2, steps[:, 1], NOWHERE), int(reach.anchors[0]), ~minus)
        terms.put(np.where(kind == 3, steps[:, 1], NOWHERE), reach.least, minus)  # what may vanish
        terms.c = np.where(addend == 1, -0.0, terms.c)

    yield _block(case, "zeros", [2, 4, len(pairs)], [2 if case.addend else 1], level, zeros)


def _specials(case: Case, level: int) -> Iterator[Block]:
    """Two steps of special operands: pairs of the few that settle what a sum is; any edge beside an ordinary number."""
    pairs = Places(case, level).tuples(2)
    settling = [few(fmt) for fmt in case.formats]
    lists = [edges(fmt) for fmt in case.formats]
    settled = Cells(
        [len(settling[0]), len(settling[1])], [len(pairs), len(settling[0]), len(settling[1])], BUDGET[level]
    )
    beside = Cells([len(pairs)], [2, 2, max(map(len, lists)), max(map(len, lists))], BUDGET[level])

    def company(index: Codes) -> list[Codes]:
        """Zeros everywhere, or ones on one side."""
        found = Terms(case, index).operands()
        for column, fmt in enumerate(case.formats):
            found[column][index % 3 == column] = getattr(fmt, "one_code", 0)
        return found

    def special(index: Codes) -> list[Codes]:
        first, second, which, third, fourth = settled(index)
        found, rows, steps = company(index), np.arange(len(index)), pairs[which]
        for step, codes in ((steps[:, 0], (first, second)), (steps[:, 1], (third, fourth))):
            chosen = rows[step >= 0]
            for side in (0, 1):
                found[side][chosen, step[chosen]] = settling[side][codes[side]][chosen]
        _addend(case, found, steps, first)
        return found

    def edged(index: Codes) -> list[Codes]:
        which, side, other, first, second = beside(index)
        found, rows, steps = company(index), np.arange(len(index)), pairs[which]
        for step, on, place in ((steps[:, 0], side, first), (steps[:, 1], other, second)):
            for column, codes in enumerate(lists):
                chosen = rows[(on == column) & (step >= 0)]
                found[column][chosen, step[chosen]] = codes[place[chosen] % len(codes)]
        _addend(case, found, steps, first)
        return found

    yield Block("specials", settled.count, special)
    yield Block("edges", beside.count, edged)


def _addend(case: Case, found: list[Codes], steps: Codes, which: Codes) -> None:
    """An edge for c where it takes the place of the first step."""
    if case.addend:
        special = edges(case.operands[-1].number)
        at = steps[:, 0] == ADDEND
        found[2] = np.where(at, special[which % len(special)], found[2]).astype(found[2].dtype)


def _exponents(case: Case, level: int) -> Iterator[Block]:
    """A product at a step, of every exponent of either factor, and another one beside it."""
    places = Places(case, level)
    pairs = places.tuples(2)
    for side in (0, 1):
        own, other = (Fields(case.formats[i]) for i in (side, 1 - side))
        short, beside = (fractions(x.fmt.mantissa_bits, "short") for x in (own, other))
        targets = sorted({*own.targets, *range(own.bias, own.bias + other.count, 8)})
        relations = other.distinct([Relation(-1, t + other.bias) for t in targets])
        signs = [len(own.signs), len(other.signs)]
        sizes = [len(short), len(beside), *signs, 2, len(pairs)]
        cells = Cells([own.count, len(relations)], sizes, 4 * BUDGET[level])

        def operands(
            index: Codes,
            side: int = side,
            own: Fields = own,
            other: Fields = other,
            short: Codes = short,
            beside: Codes = beside,
            relations: Sequence[Relation] = relations,
            cells: Cells = cells,
        ) -> list[Codes]:
            field, relation, first, second, sign, minus, company, pair = cells(index)
            partner = related(relations, relation, field) % other.count
            terms, steps = Terms(case, index), pairs[pair]
            exponent = field - own.bias + partner - other.bias
            terms.put(np.where(company == 1, steps[:, 0], NOWHERE), exponent - index % 5, sign == 1)
            found = terms.operands()
            rows = np.arange(len(index))
            at = np.maximum(steps[:, 1], 0)
            found[side][rows, at] = own.code(sign, field, short[first])
            found[1 - side][rows, at] = other.code(minus, partner, beside[second])
            return found

        yield Block(f"exponents of {'ab'[side]}", cells.count, operands)


def _dense(case: Case, level: int) -> Iterator[Block]:
    reach = Range(case)
    slopes = np.array([0, 1, -1, 2, -2, 3, -3, reach.p // 2, -(reach.p // 2)])

    def dense(terms: Terms, digits: Sequence[Codes]) -> None:
        slope, anchor, signs, factor, start = digits
        for column in range(terms.first.shape[1]):
            sign = np.select([signs == 0, signs == 1, signs == 2], [0, 1, column & 1], column >> 1 & 1) == 1
            moved = slopes[slope] * ((column + start) % 16 - 8)
            exponent = np.clip(reach.anchors[anchor] + moved, reach.least, reach.high)
            terms.put(np.full(len(slope), column), exponent, sign, reach.factors[factor, 0], reach.factors[factor, 1])

    sizes = [len(reach.factors), 16]
    yield _block(case, "dense", [len(slopes), len(reach.anchors), 4], sizes, level, dense)


@lru_cache(maxsize=16)
def dot_corners(case: Case, level: int) -> Rows:
    """The corner rows of a dot product.

    Parameters
    ----------
    case : Case
        Of "vecdot".
    level : {1, 2}
        1: some tens of thousands of rows; 2: some millions.
    """
    blocks = [*_arithmetic(case, level), *_zeros(case, level), *_specials(case, level), *_exponents(case, level)]
    blocks += _dense(case, level)
    return Rows(blocks)
