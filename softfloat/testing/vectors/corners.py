"""Corner products: deterministic operands at the places where arithmetic goes wrong.

A row of operands is a place in a list of blocks, and every block a product of small classes: exponent fields, relations
between exponents, patterns of fraction bits, signs. The classes are Berkeley TestFloat's kind (Hauser); the sets are
ours:

exponents
    Every exponent of the first operand with every relation of the second to it that matters: near it (sums), near the
    field that brings the product, or the quotient, to the ends of the range, and fields at the ends themselves. The
    third operand's exponent goes from far below the product to far above it. Fractions are those of a short list, with
    the two lowest bits in all four states.
fractions
    Few exponents, and the whole product of a long list of fractions: walking ones and zeros, runs of ones from either
    end, alternating bits. Level 2 adds two bits at any two places.
cancellation
    The second operand some steps beside the first, or the third beside the product of the other two.
aimed
    Operands whose product, quotient or sum is at an edge of the format, or beside it.
specials, edges
    Every combination of a few special codes; of all edges of the format.
towards
    Of conversions: numbers at, beside, half-way and a quarter of the way between neighbours of the target.

Where a block's product is larger than its budget, each cell of exponents gets as many of the combinations of fractions
and signs as there is room for, others in neighbouring cells. Operands of few bits come exhaustively instead.

>>> from softfloat.testing.vectors.operations import resolve
>>> rows = corners(resolve("add", "float16"), 1)
>>> [(block.name, block.count) for block in rows.blocks]
[('exponents', 262144), ('fractions', 25600), ('cancellation', 23040), ('aimed', 65412), ('specials', 196), ('edges', 3136)]
>>> [hex(x[0]) for x in rows.operands(np.array([4711]))]
['0x3ff', '0xcbfe']
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from softfloat import bits
from softfloat.formats import Format
from softfloat.testing.vectors.columns import Number, as_number
from softfloat.testing.vectors.operations import Case

__all__ = ["Block", "Rows", "corner_rows", "corners", "edges", "encoded", "few", "fractions", "related", "stepped"]

Codes = np.ndarray[Any, Any]

EXHAUSTED = {1: 18, 2: 24}
"""Level -> bits of operands up to which all rows are written."""
BUDGETS = {1: {1: 1 << 18, 2: 1 << 18, 3: 1 << 19}, 2: {1: 1 << 22, 2: 1 << 22, 3: 1 << 24}}
"""Level -> number of operands -> rows of a block, as far as every cell of exponents has two."""
GOLDEN = 0.6180339887
MOST_FIELDS = 256
"""Exponent fields that an operand has; of formats of more the ends, the middle, and others spread evenly."""
MOST_ROOTS = 1 << 12
STEPS = 4
"""Codes beside another, in blocks of cancellation."""


# -- edges -----------------------------------------------------------------------------------------------------------


def edges(fmt: Format | str | Number) -> Codes:
    """Codes at and next to every boundary of a format, float64 or an integer type, in order, without repetition."""
    number = as_number(fmt)
    if number.format is None:
        return _integer_edges(number) if number.kind != "float64" else _float64_edges()
    spec, form = number.format.spec, number.format
    normal, top = form.smallest_normal_code, form.max_code
    codes = {0, 1, 2, top, top - 1, normal, normal + 1, max(normal - 1, 0)}
    for exponent in (-1, 0, 1, form.mantissa_bits, -form.mantissa_bits):
        code = (exponent + spec.bias) << form.mantissa_bits
        codes |= {code, code + 1, code - 1} if 0 < code < top else set()
    if form.infinities:
        codes.add(form.inf_code)
    if form.has_nan:
        codes.add(form.nan_code)
    if form.nan == "ieee" and form.mantissa_bits > 1:
        codes |= {form.inf_code | 1, form.nan_code | 1, form.nan_code | (form.nan_code - form.inf_code - 1)}
    codes = {code for code in codes if 0 <= code < 1 << form.bits}  # formats of a bit or two have no neighbours
    signed = {code ^ form.sign_bit for code in codes}
    return np.array(sorted(codes | signed), form.dtype)


def _integer_edges(number: Number) -> Codes:
    full = (1 << number.bits) - 1
    codes = {0, 1, 2, full, full - 1, full >> 1, (full >> 1) + 1, (full >> 1) - 1}
    for power in range(number.bits):
        codes |= {(1 << power) - 1, 1 << power, (1 << power) + 1, -(1 << power) & full, (1 - (1 << power)) & full}
    return np.array(sorted(codes & set(range(full + 1)) if number.bits <= 8 else codes), number.dtype)


def _float64_edges() -> Codes:
    magnitudes = [0, 1, 2, (1 << 52) - 1, 1 << 52, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF0000000000001]
    magnitudes += [0x7FF8000000000000, 0x7FF8000000000001, 0x7FFFFFFFFFFFFFFF]
    magnitudes += [
        (1023 + e << 52) + d for e in (-150, -127, -126, -25, -24, -1, 0, 1, 15, 16, 127, 128) for d in (-1, 0, 1)
    ]
    return np.array(sorted({x | sign for x in magnitudes for sign in (0, 1 << 63)}), np.uint64)


# -- classes ---------------------------------------------------------------------------------------------------------


def fractions(width: int, kind: str) -> Codes:
    """Patterns of `width` fraction bits: the "short" list, the "long" one, or "pairs", which adds bits at any two places."""
    ones, half = (1 << width) - 1, 1 << width >> 1
    found = {0, 1, 2, 3, ones, ones - 1, ones - 2, ones - 3}
    if kind != "short":
        found |= {half, half + 1, half - 1, half + 2, ones & 0x5555555, ones & 0xAAAAAAA, ones >> 1, half | half >> 1}
        for place in range(width):
            found |= {1 << place, ones ^ 1 << place, ones >> place, ones >> place << place}
    if kind == "pairs":
        found |= {1 << i | 1 << j for i in range(width) for j in range(i)}
        found |= {ones ^ 1 << i ^ 1 << j for i in range(width) for j in range(i)}
    return np.array(sorted(x for x in found if 0 <= x <= ones), np.int64)


class Relation(NamedTuple):
    """An exponent field from others: `scale` times a given one plus `offset`, in a circle of all fields."""

    scale: int
    offset: int


class Fields:
    """A format's codes by sign, exponent field and fraction."""

    def __init__(self, fmt: Format) -> None:
        self.fmt, self.count, self.bias, self.p = fmt, 1 << fmt.exponent_bits, fmt.spec.bias, fmt.p
        self.signs = np.array([0, fmt.sign_bit] if fmt.signed else [0], np.uint64).view(np.int64)
        some = [*self.ends, *np.linspace(0, self.count - 1, MOST_FIELDS - len(self.ends)).astype(int).tolist()]
        self.fields = np.unique(some) if self.count > MOST_FIELDS else np.arange(self.count)

    def code(self, sign: Codes, field: Codes, fraction: Codes) -> Codes:
        """Codes; fields count in a circle."""
        return (self.signs[sign] | field % self.count << self.fmt.mantissa_bits | fraction).astype(self.fmt.dtype)

    @property
    def ends(self) -> list[int]:
        """Fields at the ends and in the middle."""
        top = self.count - 1
        return [0, 1, 2, self.bias - 1, self.bias, self.bias + 1, top - 2, top - 1, top]

    @property
    def targets(self) -> list[int]:
        """Fields that a product or quotient is to have: from below the least subnormal to beyond the largest number."""
        return [*range(-self.p - 2, 3), *range(self.count - 4, self.count + 1)]

    def distinct(self, relations: Sequence[Relation]) -> list[Relation]:
        """Relations that differ; all fields, where these are no more."""
        found = list(dict.fromkeys(Relation(x.scale, x.offset % self.count) for x in relations))
        return found if len(found) < self.count else [Relation(0, field) for field in range(self.count)]

    @property
    def pairs(self) -> list[Relation]:
        """The second exponent from the first: near it, or so that product or quotient come to the ends."""
        near = [Relation(1, d) for d in range(-self.p - 3, self.p + 4)]
        products = [Relation(-1, t + self.bias) for t in self.targets]
        quotients = [Relation(1, self.bias - t) for t in self.targets]
        return self.distinct([*near, *products, *quotients, *(Relation(0, field) for field in self.ends)])

    @property
    def factors(self) -> list[Relation]:
        """The second exponent from the first, for products that something is added to."""
        p, bias, top = self.p, self.bias, self.count - 1
        low = (-p - 1, -p, 1 - p, -p // 2, -1, 0, 1, 2)
        fields = (*low, bias - p, bias - 1, bias, bias + 1, bias + p, top - p, top - 2, top - 1, top, top + 1)
        products = [Relation(-1, t + bias) for t in fields]
        return self.distinct([*products, Relation(0, 0), Relation(0, 1), Relation(0, top)])

    @property
    def addends(self) -> list[Relation]:
        """The third exponent from the product's: from p + 3 above it to 2p + 3 below it, and the ends."""
        near = [Relation(1, -d) for d in range(-self.p - 3, 2 * self.p + 4)]
        return [*near, *(Relation(0, field) for field in (0, 1, self.count - 2, self.count - 1))]


# -- blocks ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows: how many, and their operands from places 0 ... count - 1."""

    name: str
    count: int
    operands: Callable[[Codes], list[Codes]]


def digits(index: Codes, *sizes: int) -> list[Codes]:
    """The digits of numbers in mixed radix, the last one fastest."""
    found = []
    for size in reversed(sizes):
        found.append(index % size)
        index = index // size
    return found[::-1]


class Cells:
    """Cells of exponents times combinations of the rest: all of these, or as many for each cell as a budget allows.

    Combinations follow each other in steps of a golden section of their list, from cell to cell: what few neighbouring
    cells get is spread over all of it.
    """

    def __init__(self, cells: Sequence[int], combinations: Sequence[int], budget: int) -> None:
        self.cells, self.combinations = cells, combinations
        self.all = int(np.prod(combinations))
        self.each = min(self.all, max(2, budget // int(np.prod(cells))))
        self.count = int(np.prod(cells)) * self.each
        self.stride = next(x for x in range(int(self.all * GOLDEN), 2 * self.all + 1) if math.gcd(x, self.all) == 1)

    def __call__(self, index: Codes) -> list[Codes]:
        """Digits of cells, then of combinations."""
        return [*digits(index // self.each, *self.cells), *digits(index * self.stride % self.all, *self.combinations)]


def related(relations: Sequence[Relation], which: Codes, field: Codes) -> Codes:
    """Fields by relations, given by their places, from other fields."""
    scale, offset = (np.array(x, np.int64) for x in zip(*relations, strict=True))
    return scale[which] * field + offset[which]


def product_block(name: str, lists: Sequence[Codes]) -> Block:
    sizes = [len(x) for x in lists]
    return Block(
        name,
        int(np.prod(sizes)),
        lambda index: [codes[digit] for codes, digit in zip(lists, digits(index, *sizes), strict=True)],
    )


def _singles(fmt: Format, level: int) -> Iterator[Block]:
    """Blocks of one operand."""
    form = Fields(fmt)
    patterns = fractions(fmt.mantissa_bits, "pairs")
    cells = Cells([len(form.fields)], [len(patterns), len(form.signs)], BUDGETS[level][1])

    def exponents(index: Codes) -> list[Codes]:
        field, fraction, sign = cells(index)
        return [form.code(sign, form.fields[field], patterns[fraction])]

    yield Block("exponents", cells.count, exponents)
    most = (1 << (fmt.p + 1) // 2) - 1  # squares of few bits, and numbers beside them
    roots = np.unique(np.linspace(1, most, min(most, MOST_ROOTS)).astype(np.int64))
    squares = encoded((roots * roots).astype(np.float64), fmt)
    sizes = (len(squares), 3, min(form.count, 8))

    def perfect(index: Codes) -> list[Codes]:
        square, step, scale = digits(index, *sizes)
        shift = (scale - sizes[2] // 2) * 2 << fmt.mantissa_bits
        moved = squares[square].astype(np.int64) + step - 1 + shift
        return [np.clip(moved, 0, fmt.max_code).astype(fmt.dtype)]

    if len(squares):
        yield Block("squares", int(np.prod(sizes)), perfect)


def _doubles(fmt: Format, level: int) -> Iterator[Block]:
    """Blocks of two operands."""
    form, budget = Fields(fmt), BUDGETS[level][2]
    short = fractions(fmt.mantissa_bits, "short")
    long = fractions(fmt.mantissa_bits, "pairs" if level == 2 else "long")
    signs, relations = len(form.signs), form.pairs
    cells = Cells([len(form.fields), len(relations)], [len(short), len(short), signs, signs], budget)

    def exponents(index: Codes) -> list[Codes]:
        field, relation, first, second, sign, other = cells(index)
        field = form.fields[field]
        return [
            form.code(sign, field, short[first]),
            form.code(other, related(relations, relation, field), short[second]),
        ]

    yield Block("exponents", cells.count, exponents)
    bias, p = form.bias, form.p
    fields = np.array(
        [
            (bias, bias),
            (bias, bias - 1),
            (bias, bias + 1),
            (bias, bias - p),
            (bias, 0),
            (0, bias + p),
            (1, 0),
            (1, bias),
        ]
    )
    tables = Cells([len(fields)], [len(long), len(long), signs], 4 * budget)

    def tabled(index: Codes) -> list[Codes]:
        pair, first, second, sign = tables(index)
        field = fields[pair]
        return [
            form.code(np.zeros_like(sign), field[:, 0], long[first]),
            form.code(sign, field[:, 1], long[second]),
        ]

    yield Block("fractions", tables.count, tabled)
    near = Cells([len(form.fields)], [len(long), 2 * STEPS + 1, signs], budget)

    def close(index: Codes) -> list[Codes]:
        field, fraction, step, sign = near(index)
        a = form.code(np.zeros_like(sign), form.fields[field], long[fraction])
        return [a, stepped(a, step - STEPS, fmt) ^ form.signs[sign].astype(fmt.dtype)]

    yield Block("cancellation", near.count, close)
    yield from _aimed(fmt, level, 2)
    yield product_block("specials", [few(fmt)] * 2)
    yield product_block("edges", [edges(fmt)] * 2)


def _triples(fmt: Format, level: int) -> Iterator[Block]:
    """Blocks of three operands."""
    form, budget = Fields(fmt), BUDGETS[level][3]
    short = fractions(fmt.mantissa_bits, "short")
    long = fractions(fmt.mantissa_bits, "pairs" if level == 2 else "long")
    signs, factors, addends = len(form.signs), form.factors, form.addends
    combinations = [len(short)] * 3 + [signs] * 3
    cells = Cells([len(form.fields), len(factors), len(addends)], combinations, budget)

    def exponents(index: Codes) -> list[Codes]:
        field, factor, addend, first, second, third, *sign = cells(index)
        field = form.fields[field]
        other = related(factors, factor, field) % form.count
        product = field + other - form.bias
        return [
            form.code(sign[0], field, short[first]),
            form.code(sign[1], other, short[second]),
            form.code(sign[2], related(addends, addend, product), short[third]),
        ]

    yield Block("exponents", cells.count, exponents)
    bias, p = form.bias, form.p
    fields = np.array(
        [
            (bias, bias, bias),
            (bias, bias, bias - p),
            (bias, bias, bias + p),
            (bias, bias, 0),
            (1, bias, 0),
            (bias, 0, 1),
        ]
    )
    tables = Cells([len(fields), len(long), len(long)], [len(short), signs], budget)

    def tabled(index: Codes) -> list[Codes]:
        triple, first, second, third, sign = tables(index)
        field, plus = fields[triple], np.zeros_like(sign)
        return [
            form.code(plus, field[:, 0], long[first]),
            form.code(plus, field[:, 1], long[second]),
            form.code(sign, field[:, 2], short[third]),
        ]

    yield Block("fractions", tables.count, tabled)
    near = Cells([len(form.fields), len(factors)], [len(long), len(long), 2 * STEPS + 1, signs], budget)

    def close(index: Codes) -> list[Codes]:
        field, factor, first, second, step, sign = near(index)
        field = form.fields[field]
        plus = np.zeros_like(sign)
        a = form.code(plus, field, long[first])
        b = form.code(sign, related(factors, factor, field), long[second])
        product = np.asarray(bits.mul(a, b, fmt)[0])
        return [a, b, stepped(product, step - STEPS, fmt) ^ fmt.dtype.type(fmt.sign_bit)]

    yield Block("cancellation", near.count, close)
    distances = np.array([-2 * p, -p - 2, -p, -1, 0, 1, p, p + 2, 2 * p])
    third = Cells([len(form.fields), len(distances)], combinations, budget // 4)

    def addends_everywhere(index: Codes) -> list[Codes]:
        field, distance, *fraction, first, second, last = third(index)
        field = form.fields[field]
        other = np.where(index % 3 == 0, bias, np.where(index % 3 == 1, 1, form.count - 2))
        return [
            form.code(first, field + distances[distance] + bias - other, short[fraction[0]]),
            form.code(second, other, short[fraction[1]]),
            form.code(last, field, short[fraction[2]]),
        ]

    yield Block("addends", third.count, addends_everywhere)
    yield from _aimed(fmt, level, 3)
    yield product_block("specials", [few(fmt)] * 3)
    yield product_block("edges", [edges(fmt)] * 3)


def _aimed(fmt: Format, level: int, arity: int) -> Iterator[Block]:
    """Operands whose product, quotient or sum is at an edge of the format, or some steps of an operand beside it."""
    form = Fields(fmt)
    patterns = fractions(fmt.mantissa_bits, "pairs" if level == 2 else "long")
    aims = np.asarray(bits.decode(edges(fmt), fmt))
    aims = np.unique(np.abs(aims[np.isfinite(aims) & (aims != 0)]))
    beyond = np.array([fmt.max + 2.0 ** (fmt.emax - fmt.p)])  # half a step past the largest
    ends = [fmt.smallest_subnormal, fmt.tiny - fmt.smallest_subnormal, fmt.tiny, fmt.tiny, fmt.max, *beyond]
    aims = np.concatenate([aims, *[[x for x in ends if x > 0]] * 4])  # most of the rows
    ways, signs = 3, len(form.signs)
    cells = Cells([len(aims), ways], [len(form.fields), len(patterns), 5, signs, signs, 4], BUDGETS[level][arity] // 4)

    def aimed(index: Codes) -> list[Codes]:
        aim, way, field, fraction, step, sign, other, addend = cells(index)
        plus = np.zeros_like(sign)
        a, r = form.code(plus, form.fields[field], patterns[fraction]), aims[aim]
        x = np.asarray(bits.decode(a, fmt))
        with np.errstate(all="ignore"):
            y = np.select([way == 0, way == 1], [r / x, x / r], r - x)  # products, quotients, sums
        b = stepped(encoded(np.nan_to_num(y), fmt), step - 2, fmt)
        flipped = np.array([0, fmt.sign_bit], fmt.dtype)
        a, b = a ^ flipped[sign * (signs - 1)], b ^ flipped[other * (signs - 1)]
        if arity == 2:
            return [a, b]
        with np.errstate(all="ignore"):
            rest = np.select([addend == 0, addend == 1], [0.0, r - np.abs(x * y)], 0.0)
        c = np.where(addend < 2, encoded(np.nan_to_num(rest), fmt), fmt.dtype.type(1))
        return [a, b, np.where(addend == 3, c ^ flipped[-1], c).astype(fmt.dtype)]

    yield Block("aimed", cells.count, aimed)


def few(fmt: Format) -> Codes:
    """Zero, the least number, one, the largest, infinity and NaNs, of both signs."""
    codes = {0, 1, getattr(fmt, "one_code", 0), fmt.max_code}
    codes |= {fmt.inf_code} if fmt.infinities else set()
    codes |= {fmt.nan_code} if fmt.has_nan else set()
    codes |= {fmt.inf_code | 1} if fmt.nan == "ieee" and fmt.mantissa_bits > 1 else set()
    return np.array(sorted(codes | {code ^ fmt.sign_bit for code in codes}), fmt.dtype)


def stepped(codes: Codes, steps: Any, fmt: Format) -> Codes:
    """Codes some places away, in magnitude."""
    sign = fmt.sign_bit
    magnitude = (codes & fmt.dtype.type(~sign & ((1 << fmt.bits) - 1))).astype(np.int64)
    moved = np.clip(magnitude + steps, 0, fmt.max_code).astype(fmt.dtype)
    return moved | (codes & fmt.dtype.type(sign))


def encoded(values: Any, fmt: Format) -> Codes:
    """Numbers as codes, the largest finite ones where they are too large."""
    values = np.asarray(values, np.float64)
    return np.asarray(bits.encode(values if fmt.signed else np.abs(values), fmt, overflow="saturate")[0])


# -- conversions -----------------------------------------------------------------------------------------------------

WAYS = (0.0, 0.25, 0.5, 0.75)
"""Parts of the way to the next number of a target."""
NUDGES = {"float64": (0, 1, -1, 1 << 20, -(1 << 20), 1 << 28, -(1 << 28)), "float": (0, 1, -1)}


def _marks(target: Number, level: int) -> Any:
    """Values that a conversion to the target finds hard, as float64, which holds them exactly."""
    if target.format is None:
        powers = np.ldexp(1.0, np.arange(-2, target.bits + 2))
        halves = np.arange(-6, 7) / 4
        values = np.concatenate([(powers[:, None] + halves).ravel(), np.arange(0, 64) / 4])
        return np.unique(np.concatenate([values, -values]))
    fmt = target.format
    form, patterns = Fields(fmt), fractions(fmt.mantissa_bits, "pairs" if level == 2 else "long")
    field, fraction = (x.ravel() for x in np.meshgrid(np.arange(form.count), np.arange(len(patterns)), indexing="ij"))
    codes = np.unique(form.code(np.zeros_like(field), field, patterns[fraction]))
    codes = codes[codes <= fmt.max_code]
    low = np.nan_to_num(np.asarray(bits.decode(codes, fmt)))
    following = np.where(codes < fmt.max_code, codes + fmt.dtype.type(1), codes).astype(fmt.dtype)
    high = np.nan_to_num(np.asarray(bits.decode(following, fmt)))
    high = np.where(codes >= fmt.max_code, low + np.ldexp(1.0, fmt.emax - fmt.mantissa_bits), high)
    values = (low + (high - low) * np.array(WAYS)[:, None]).ravel()
    least = np.ldexp(float(low[low > 0].min()), -np.arange(1, 4)) if (low > 0).any() else np.empty(0)
    values = np.unique(np.concatenate([values, least]))
    return np.concatenate([values, -values])


def _conversions(source: Number, target: Number, level: int) -> Iterator[Block]:
    if source.kind in ("signed", "unsigned"):
        yield from _integers(source, target, level)
        return
    marks = _marks(target, level)
    if source.format is None:
        nudges = np.array(NUDGES["float64"], np.int64)
        codes = marks.view(np.uint64)
        sizes = (len(codes), len(nudges))

        def nudged(index: Codes) -> list[Codes]:
            mark, nudge = digits(index, *sizes)
            near = codes[mark]
            return [np.where(near << np.uint64(1) == 0, near, near + nudges[nudge].view(np.uint64))]

        yield Block("towards", sizes[0] * sizes[1], nudged)
        yield product_block("specials", [edges(source)])
        return
    fmt = source.format
    near = np.unique(encoded(marks, fmt))
    steps = np.array(NUDGES["float"])
    yield Block(
        "towards",
        len(near) * len(steps),
        lambda index: [stepped(near[index // len(steps)], steps[index % len(steps)], fmt)],
    )
    yield product_block("specials", [edges(source)])


def _integers(source: Number, target: Number, level: int) -> Iterator[Block]:
    """Integers of every width: leading bits of the target's precision, a guard bit, and what lies beyond."""
    assert target.format is not None
    p = target.format.p
    heads = fractions(p - 1, "pairs" if level == 2 else "long")
    tails = ((0, 0), (0, 1), (0, -1), (1, -1), (1, 0), (1, 1))  # guard bit, and the rest: 0, 1 or all ones
    widths = source.bits + (source.kind == "unsigned")
    sizes = (widths, len(heads), len(tails), 2)
    mask = (1 << source.bits) - 1

    def whole(index: Codes) -> list[Codes]:
        width, head, tail, sign = digits(index, *sizes)
        found = []
        for w, h, (guard, rest), minus in zip(
            width.tolist(), heads[head].tolist(), [tails[t] for t in tail.tolist()], sign.tolist(), strict=True
        ):
            number, beyond = 1 << (p - 1) | h, w - p
            if beyond <= 0:
                number >>= -beyond
            else:
                ones = (1 << (beyond - 1)) - 1
                number = (number << 1 | guard) << (beyond - 1) | (min(rest, ones) if rest >= 0 else ones)
            found.append((-number if minus and source.kind == "signed" else number) & mask)
        return [np.array(found, np.uint64).astype(source.dtype)]

    yield Block("towards", int(np.prod(sizes)), whole)
    yield product_block("specials", [edges(source)])


# -- what is offered --------------------------------------------------------------------------------------------------


class Rows:
    """Blocks end to end.

    Attributes
    ----------
    blocks : list of Block
    count : int
        Rows in all.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = [block for block in blocks if block.count]
        self.ends = np.cumsum([block.count for block in self.blocks])
        self.count = int(self.ends[-1])

    def operands(self, index: Codes) -> list[Codes]:
        """The operands of the rows at these places, from 0."""
        index = np.asarray(index, np.int64)
        which = np.searchsorted(self.ends, index, "right")
        if which.size and which[0] == which[-1] and (which == which[0]).all():
            block = self.blocks[which[0]]
            return block.operands(index - (int(self.ends[which[0]]) - block.count))
        columns: list[Codes] = []
        for number in np.unique(which):
            block, mine = self.blocks[number], which == number
            found = block.operands(index[mine] - (int(self.ends[number]) - block.count))
            columns = columns or [np.zeros((len(index), *x.shape[1:]), x.dtype) for x in found]
            for column, codes in zip(columns, found, strict=True):
                column[mine] = codes
        return columns

    def sample(self, count: int, random: np.random.Generator) -> list[Codes]:
        """Random rows, of each block as many as of the others."""
        which = random.integers(0, len(self.blocks), count)
        sizes = np.array([block.count for block in self.blocks])
        starts = self.ends - sizes
        return self.operands(starts[which] + (random.random(count) * sizes[which]).astype(np.int64))


def _all_codes(number: Number, arity: int) -> Block:
    """Every combination of operands of few bits."""
    width, mask = number.bits, (1 << number.bits) - 1

    def everything(index: Codes) -> list[Codes]:
        return [(index >> width * (arity - 1 - i) & mask).astype(number.dtype) for i in range(arity)]

    return Block("exhaustive", 1 << width * arity, everything)


@lru_cache(maxsize=64)
def corner_rows(number: Number, arity: int, target: Number | None, level: int) -> Rows:
    """Corner products of `arity` operands of a type, which will be converted to a `target` if there is one."""
    if number.bits * arity <= EXHAUSTED[level]:
        return Rows([_all_codes(number, arity)])
    blocks: list[Block] = []
    if number.format is not None:
        kinds = {1: _singles, 2: _doubles, 3: _triples}
        blocks += kinds[arity](number.format, level)
    if target is not None and arity == 1:
        if number.format is None and target.format is None:
            target = as_number("float16")
        if target.kind != "float64":
            blocks += _conversions(number, target, level)
    elif arity == 1:
        blocks.append(product_block("specials", [edges(number)]))
    return Rows(blocks)


def corners(case: Case, level: int) -> Rows:
    """The corner products of an elementwise case, the random numbers of stochastic rounding among the operands.

    Parameters
    ----------
    case : Case
        Not of a dot product.
    level : {1, 2}
        1: at most about 1.3 million rows, three of fma in float64; 2: up to some tens of millions.
    """
    columns = [column for column in case.operands if column.name != "random"]
    target = case.target if case.operation.name == "convert" else None
    rows = corner_rows(case.source, len(columns), target, level)
    return rows if not case.draws else DrawnRows(rows, case)


class DrawnRows(Rows):
    """Rows with random numbers at their corners: runs of ones from either end and single bits, in turn."""

    def __init__(self, rows: Rows, case: Case) -> None:
        super().__init__(rows.blocks)
        column = case.operands[-1]
        width = column.number.bits
        ones = (1 << width) - 1
        found = {0, ones, *(1 << i for i in range(width)), *(ones >> i for i in range(width))}
        found |= {ones ^ x for x in found}
        self.random = np.array(sorted(found), np.uint64).astype(column.dtype)

    def operands(self, index: Codes) -> list[Codes]:
        """The operands, and a random number for each row."""
        place = np.asarray(index, np.int64)
        return [*super().operands(place), self.random[(place * 7 + place // len(self.random)) % len(self.random)]]
