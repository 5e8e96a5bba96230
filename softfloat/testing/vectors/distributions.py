"""Operands by construction, from named distributions.

bits
    Random bit patterns.
edge
    Codes at and next to every boundary: zeros, least and greatest subnormal and normal numbers, powers of two,
    infinities, NaNs quiet and signalling.
normal
    Normally distributed numbers, now and then scaled by a power of two.
subnormal
    Subnormal operands, and operands whose product or quotient is subnormal.
ties
    Operands whose sum, product, fused multiply-add, square root or conversion lies half-way between two numbers of the
    format, or next to that.
cancellation
    Operands close to each other: most of a difference, or of a * b + c, cancels.
corners
    Rows of the corner products of level 1, at random: see `softfloat.testing.vectors.corners` and `.dots`.
mixed
    Each row from one of those, at random; half of them corners.

>>> [hex(x[0]) for x in draw("float16", "cancellation", 4, 2, seed=0)]
['0xb767', '0xb769']
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.checks import check_choice, check_count
from softfloat.formats import Format
from softfloat.testing.vectors.block_rows import draw_block_operands, elements_case
from softfloat.testing.vectors.columns import Number, as_number
from softfloat.testing.vectors.corners import corner_rows, edges, encoded, stepped
from softfloat.testing.vectors.dots import dot_corners
from softfloat.testing.vectors.operations import Case

__all__ = ["DISTRIBUTIONS", "draw", "draw_operands", "edges"]

Codes = np.ndarray[Any, Any]
DISTRIBUTIONS = ("bits", "edge", "mixed", "normal", "subnormal", "ties", "cancellation", "corners")
MIXED = (*(name for name in DISTRIBUTIONS if name not in ("mixed", "corners")), *["corners"] * 6)
"""Half of the rows are corner rows."""
RARE = 0.02  # share of special operands in rows of dot products, at most one each


# -- what is offered --------------------------------------------------------------------------------------------------


def draw(
    fmt: Format | str | Number,
    name: str = "mixed",
    count: int = 1,
    arity: int = 2,
    seed: int | Sequence[int] = 0,
    *,
    target: Format | str | Number | None = None,
) -> list[Codes]:
    """Operands from a named distribution.

    Parameters
    ----------
    fmt : Format, Number or str
        Of the operands; for a single operand also float64 and integers.
    name : str
        "bits", "edge", "mixed", "normal", "subnormal", "ties", "cancellation" or "corners".
    count : int
        Rows.
    arity : int
        Operands of a row, 1 to 3.
    seed : int, or sequence of int
        The same seed gives the same operands.
    target : Format, Number or str, optional
        What a single operand will be converted to: edges and ties are then its.

    Returns
    -------
    list of arrays of codes
        `arity` arrays of shape (count,).

    Raises
    ------
    ValueError
        Naming the argument and the accepted values.
    """
    check_choice("name", name, DISTRIBUTIONS)
    check_count("count", count, 0)
    if arity not in (1, 2, 3):
        raise ValueError(f"arity must be 1, 2 or 3, got {arity!r}")
    number = as_number(fmt)
    aim = None if target is None else as_number(target, "target")
    if number.format is None and arity != 1:
        raise ValueError(f"arity must be 1 for {number.name}, got {arity}")
    random = np.random.default_rng(seed)
    if name != "mixed":
        return _drawn(number, name, int(count), arity, random, aim)
    which = random.integers(0, len(MIXED), count)
    drawn = {kind: _drawn(number, kind, int(count), arity, random, aim) for kind in dict.fromkeys(MIXED)}
    kinds = [drawn[kind] for kind in MIXED]
    return [np.choose(which, [kind[i] for kind in kinds]).astype(number.dtype) for i in range(arity)]


def draw_operands(case: Case, name: str, count: int, seed: int | Sequence[int]) -> list[Codes]:
    """Operands of a case: an array for each of `case.operands`, of its shape and dtype. Parameters as of `draw`."""
    if case.blocks is not None:
        check_choice("name", name, DISTRIBUTIONS)
        inner = elements_case(case)
        elements = None if inner is None else draw_operands(inner, name, count, seed)
        return draw_block_operands(case, name, check_count("count", count), seed, elements)
    if case.operation.result == "sum":
        return _drawn_for_dots(case, name, count, seed)
    columns = [column for column in case.operands if column.name != "random"]
    target = case.target if case.operation.name == "convert" else None
    operands = draw(case.source, name, count, len(columns), seed, target=target)
    if case.draws:
        random = np.random.default_rng([*np.atleast_1d(seed).tolist(), 1])
        column = case.operands[-1]
        operands.append(random.integers(0, 1 << column.number.bits, count, np.uint64).astype(column.dtype))
    return operands


# -- one distribution ------------------------------------------------------------------------------------------------


def _drawn(
    number: Number, name: str, count: int, arity: int, random: np.random.Generator, target: Number | None
) -> list[Codes]:
    if name == "corners":
        return corner_rows(number, arity, target if arity == 1 else None, 1).sample(count, random)
    if number.format is None:
        return [_foreign(number, name, count, random, target)]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # on the way to numbers of wide formats
        return _of_format(number, number.format, name, count, arity, random, target)


def _of_format(
    number: Number,
    fmt: Format,
    name: str,
    count: int,
    arity: int,
    random: np.random.Generator,
    target: Number | None,
) -> list[Codes]:
    if arity == 1 and target is not None and target.kind != "float64":
        return [_towards(number, name, count, random, target)]
    if name == "edge":
        return _edge(number, count, arity, random)
    if name == "normal":
        return [encoded(_spread(count, random), fmt) for _ in range(arity)]
    if name == "subnormal":
        return _small(fmt, count, arity, random)
    if name == "ties":
        return _ties(fmt, count, arity, random)
    if name == "cancellation":
        return _close(fmt, count, arity, random)
    return [_random_bits(number, count, random) for _ in range(arity)]


def _edge(number: Number, count: int, arity: int, random: np.random.Generator) -> list[Codes]:
    """Any edges; in one row of four, only zeros, ones and special codes."""
    fmt = number.format
    assert fmt is not None
    special = {0, getattr(fmt, "one_code", 0), *([fmt.inf_code] if fmt.infinities else [])}
    special |= {fmt.nan_code} if fmt.has_nan else set()
    few = np.array(sorted(special | {code ^ fmt.sign_bit for code in special}), fmt.dtype)
    rows = random.random(count) < 0.25
    return [np.where(rows, random.choice(few, count), random.choice(edges(number), count)) for _ in range(arity)]


def _random_bits(number: Number, count: int, random: np.random.Generator) -> Codes:
    return random.integers(0, (1 << number.bits) - 1, count, np.uint64, endpoint=True).astype(number.dtype)


def _spread(count: int, random: np.random.Generator) -> Any:
    scale = np.where(random.random(count) < 0.25, random.integers(-12, 13, count), 0)
    return np.ldexp(random.standard_normal(count), scale)


def _signs(count: int, random: np.random.Generator) -> Any:
    return random.choice([-1.0, 1.0], count)


def _nudges(count: int, random: np.random.Generator) -> Any:
    return random.choice([0, 0, 0, 1, -1], count)


def _exponents(fmt: Format, count: int, random: np.random.Generator) -> Any:
    """Half of them anywhere, half near 0."""
    near = np.clip(random.integers(-3, 4, count), fmt.emin, fmt.emax)
    return np.where(random.random(count) < 0.5, random.integers(fmt.emin, fmt.emax + 1, count), near)


def _finite(fmt: Format, count: int, random: np.random.Generator) -> Any:
    """Random significands, exponents from `_exponents`, as float64."""
    significand = random.integers(1 << fmt.mantissa_bits, 2 << fmt.mantissa_bits, count)
    return _signs(count, random) * np.ldexp(significand * 1.0, _exponents(fmt, count, random) - fmt.mantissa_bits)


def _small(fmt: Format, count: int, arity: int, random: np.random.Generator) -> list[Codes]:
    """Subnormal operands; a product near the subnormal range; a quotient near it; a subnormal addend."""
    p = fmt.p

    def subnormal() -> Codes:
        codes = random.integers(0, max(2 * fmt.smallest_normal_code, 2), count).astype(fmt.dtype)
        codes = np.minimum(codes, fmt.dtype.type(fmt.max_code))
        return codes | random.choice(np.array([0, fmt.sign_bit], fmt.dtype), count)

    first = subnormal()
    if arity == 1:
        return [first]
    a = _finite(fmt, count, random)
    low = fmt.emin + random.integers(-p - 1, 2, count)
    significand = 1.0 + random.integers(0, 1 << fmt.mantissa_bits, count) / 2.0**fmt.mantissa_bits
    exponent = np.frexp(a)[1] - 1
    to_product = _signs(count, random) * np.ldexp(significand, low - exponent)
    to_quotient = _signs(count, random) * np.ldexp(significand, exponent - low)
    kind = random.integers(0, 4, count)
    codes = encoded(a, fmt)
    operands = [
        np.select([kind <= 1, kind == 2], [codes, codes], first),
        np.select([kind == 0, kind == 1], [encoded(to_product, fmt), encoded(to_quotient, fmt)], subnormal()),
    ]
    if arity == 3:
        operands.append(np.where(random.random(count) < 0.5, subnormal(), np.zeros(count, fmt.dtype)))
    return [x.astype(fmt.dtype) for x in operands]


def _odd(low: Any, high: Any, random: np.random.Generator) -> Any:
    """Odd integers from `low` to `high`, which hold one."""
    first, last = (low - 1) // 2 + ((low - 1) % 2 > 0), (high - 1) // 2
    return 2 * random.integers(first, np.maximum(last, first) + 1) + 1


def _factors(p: int, count: int, random: np.random.Generator) -> tuple[Any, Any]:
    """Odd integers of at most p bits whose product has p + 1 bits, where there are such: a tie."""
    one = np.ones(count, np.int64)
    width = random.integers(1, p + 1, count)
    first = _odd((one << (width - 1)), (one << width) - 1, random)
    low, high = -((-one << p) // first), ((one << (p + 1)) - 1) // first
    second = np.minimum(_odd(low, np.maximum(high, low), random), (1 << p) - 1)
    return first, second


def _ties(fmt: Format, count: int, arity: int, random: np.random.Generator) -> list[Codes]:
    p = fmt.p
    half = lambda x: np.ldexp(1.0, np.maximum(np.frexp(np.abs(x))[1] - 1, fmt.emin) - p)  # noqa: E731 -- half an ulp
    if arity == 1:
        step = random.integers(0, 1 << min(p, 12), count) + 0.5  # integers and a half
        root = (random.integers(1 << p, 2 << p, count) | 1) * 2.0**-p  # numbers and half an ulp
        scaled = np.ldexp(root * root, 2 * random.integers(-3, 4, count))
        values = np.where(random.random(count) < 0.5, step * _signs(count, random), scaled)
        return [stepped(encoded(values, fmt), _nudges(count, random), fmt)]
    c = np.abs(_finite(fmt, count, random)) * _signs(count, random)
    multiple = 2 * random.integers(0, 1 << random.integers(0, p, count)) + 1  # of half an ulp of c, odd
    addend = half(c) * multiple * _signs(count, random)
    first, second = _factors(p, count, random)
    spread = _exponents(fmt, count, random)
    a = np.ldexp(first * 1.0, spread - np.frexp(first * 1.0)[1] + 1)
    inner = random.integers(fmt.emin // 2, max(fmt.emax // 2, fmt.emin // 2) + 1, count)
    together = np.where(random.random(count) < 0.5, inner, random.integers(fmt.emin, fmt.emax + 1, count))
    b = np.ldexp(second * 1.0, together - spread - np.frexp(second * 1.0)[1] + 1)
    a, b = a * _signs(count, random), b * _signs(count, random)
    sums = random.random(count) < 0.5
    if arity == 2:
        x = encoded(np.where(sums, c, a), fmt)
        y = stepped(encoded(np.where(sums, addend, b), fmt), _nudges(count, random), fmt)
        return [x, y]
    # a tie of c and the product; or a product that is a tie, and next to nothing added to it
    ratio = np.ldexp(addend, -random.integers(-3, 4, count))
    other = addend / ratio
    tiny = a * b * np.ldexp(_signs(count, random), -random.integers(p, 80, count))
    tiny = np.where(random.random(count) < 0.2, 0.0, tiny)
    least = np.where(np.abs(tiny) < fmt.smallest_subnormal, fmt.smallest_subnormal * np.sign(tiny), tiny)
    x = stepped(encoded(np.where(sums, ratio, a), fmt), np.where(sums, _nudges(count, random), 0), fmt)
    return [x, encoded(np.where(sums, other, b), fmt), encoded(np.where(sums, c, least), fmt)]


def _close(fmt: Format, count: int, arity: int, random: np.random.Generator) -> list[Codes]:
    near = encoded(_finite(fmt, count, random), fmt)
    if arity == 1:
        ones = encoded(_signs(count, random), fmt)  # log, and sums with 1
        return [stepped(np.where(random.random(count) < 0.5, ones, near), random.integers(-4, 5, count), fmt)]
    signs = random.choice(np.array([0, fmt.sign_bit], fmt.dtype), count)
    if arity == 2:
        return [near, stepped(near, random.integers(-3, 4, count), fmt) ^ signs]
    other = encoded(np.ldexp(_finite(fmt, count, random), 0), fmt)
    product = np.asarray(bits.decode(near, fmt)) * np.asarray(bits.decode(other, fmt))
    return [near, other, stepped(encoded(-product, fmt), random.integers(-2, 3, count), fmt)]


# -- operands of conversions -----------------------------------------------------------------------------------------


def _towards(number: Number, name: str, count: int, random: np.random.Generator, target: Number) -> Codes:
    """Codes of a format that will be converted to another, or to an integer."""
    fmt = number.format
    assert fmt is not None
    if name in ("edge", "ties", "subnormal", "cancellation"):
        values = _marks(name, count, random, target)
        codes = stepped(encoded(values, fmt), _nudges(count, random), fmt)
        own = random.random(count) < (0.5 if name in ("edge", "cancellation") else 0.1)
        return np.where(own, random.choice(edges(number), count), codes)
    return _drawn(number, name, count, 1, random, None)[0]


def _marks(name: str, count: int, random: np.random.Generator, target: Number) -> Any:
    """Values that a conversion to the target finds hard: its edges, numbers half-way between two of its neighbours."""
    if target.format is None:
        width = random.integers(0, min(target.bits + 1, 53), count)
        whole = np.floor(np.ldexp(random.random(count), width))
        if name == "edge":
            whole = np.ldexp(1.0, width) + random.choice([-1.0, 0.0, 1.0], count)
        return (whole + random.choice([0.5, 0.0, 0.5], count)) * _signs(count, random)
    fmt = target.format
    last = fmt.smallest_normal_code + 2 if name == "subnormal" else fmt.max_code
    codes = random.integers(0, max(last, 1), count).astype(fmt.dtype)
    if name in ("edge", "cancellation"):
        codes = np.minimum(
            random.choice(edges(target), count) & fmt.dtype.type(~fmt.sign_bit & ((1 << fmt.bits) - 1)),
            fmt.dtype.type(fmt.max_code),
        )
    low = np.nan_to_num(np.asarray(bits.decode(codes, fmt)))
    following = np.where(codes < fmt.max_code, codes + fmt.dtype.type(1), codes).astype(fmt.dtype)
    high = np.nan_to_num(np.asarray(bits.decode(following, fmt)))
    high = np.where(codes >= fmt.max_code, low + np.ldexp(1.0, fmt.emax - fmt.mantissa_bits), high)
    return (low + (high - low) * random.choice([0.5, 0.5, 0.0, 0.25, 0.75], count)) * _signs(count, random)


def _foreign(number: Number, name: str, count: int, random: np.random.Generator, target: Number | None) -> Codes:
    """float64 and integers, on their way to a format."""
    aim = as_number("float16") if target is None or target.format is None else target
    if number.kind == "float64":
        if name == "edge":
            return random.choice(edges(number), count)
        if name in ("ties", "subnormal", "cancellation"):
            codes = np.asarray(_marks(name, count, random, aim), np.float64).view(np.uint64)
            near = random.choice([0, 0, 1, -1, 1 << 20, -(1 << 20), 1 << 28, -(1 << 28)], count)
            return np.where(codes << np.uint64(1) == 0, codes, codes + near.astype(np.int64).view(np.uint64))
        if name == "normal":
            return np.asarray(_spread(count, random), np.float64).view(np.uint64)
        return _random_bits(number, count, random)
    if name == "edge":
        return random.choice(edges(number), count)
    mask = np.uint64((1 << number.bits) - 1)
    if name in ("ties", "cancellation"):
        assert aim.format is not None
        width = random.integers(
            1, number.bits + 1, count
        )  # p + 1 bits, the last one set, and zeros below; or next to that
        random_bits = random.integers(0, 1 << 63, count, np.uint64) << np.uint64(1) | np.uint64(1 << 63)
        keep = np.uint64(64 - aim.format.p - 1)
        tie = ((random_bits >> keep) | np.uint64(1)) << keep
        whole = tie >> (64 - width).astype(np.uint64)
        whole = whole + random.choice([0, 0, 1, -1], count).astype(np.int64).view(np.uint64)
    else:
        width = random.integers(0, number.bits + 1, count)
        whole = np.where(
            width > 0,
            _random_bits(as_number("uint64"), count, random) >> np.minimum(64 - width, 63).astype(np.uint64),
            0,
        )
        if name == "bits":
            whole = _random_bits(number, count, random).astype(np.uint64)
    if number.kind == "signed":
        whole = np.where(random.random(count) < 0.5, whole, np.uint64(0) - whole)
    return (whole & mask).astype(number.dtype)


# -- dot products ----------------------------------------------------------------------------------------------------


def _drawn_for_dots(case: Case, name: str, count: int, seed: int | Sequence[int]) -> list[Codes]:
    """Operands of dot products: finite, but for a special one in few rows; sums that stay in range more often than not."""
    assert case.length is not None
    assert case.accumulator is not None
    check_choice("name", name, DISTRIBUTIONS)
    random = np.random.default_rng(seed)
    k = case.length
    kind = np.full(count, name) if name != "mixed" else np.array(MIXED)[random.integers(0, len(MIXED), count)]
    numbers = [case.source, case.second]
    operands = []
    for number in numbers:
        fmt = number.format
        assert fmt is not None
        values = random.standard_normal((count, k))
        room = max((fmt.emax - 3) // 2, 0)
        wide = np.ldexp(values, random.integers(-room, room + 1, (count, k)))
        coarse = np.ldexp(random.integers(-4, 5, (count, k)) * 1.0, random.integers(-2, 3, (count, k)))
        low = np.ldexp(values, (fmt.emin // 2 - random.integers(0, 4, (count, 1))))
        chosen = np.select(
            [kind[:, None] == x for x in ("bits", "edge", "subnormal", "ties")],
            [wide, np.ldexp(values, random.integers(-room, room + 1, (count, 1))), low, coarse],
            values,
        )
        operands.append(encoded(chosen, fmt).reshape(count, k))
    flip = kind == "cancellation"
    if flip.any() and k > 1:  # the second half of the products undoes the first, but for a few ulps
        half = k // 2
        for side, number in enumerate(numbers):
            fmt = number.format
            assert fmt is not None
            mirrored = stepped(operands[side][:, :half], random.integers(-1, 2, (count, half)), fmt)
            if side == 1:
                mirrored = mirrored ^ fmt.dtype.type(fmt.sign_bit)
            operands[side][flip, half : 2 * half] = mirrored[flip]
    if (kind == "corners").any():
        rows = kind == "corners"
        sampled = dot_corners(case, 1).sample(int(rows.sum()), random)
        for side in (0, 1):
            operands[side][rows] = sampled[side]
    special = np.flatnonzero(
        (random.random(count) < RARE) & (kind != "corners") | (kind == "edge") & (random.random(count) < 0.5)
    )
    place = random.integers(0, k, special.size)
    sides = random.integers(0, 2, special.size)
    for index, number in enumerate(numbers):
        mine = np.flatnonzero(sides == index)
        operands[index][special[mine], place[mine]] = random.choice(edges(number), mine.size)
    if case.addend:
        column = case.operands[-1]
        assert column.number.format is not None
        sums = encoded(random.standard_normal(count) * np.sqrt(k), column.number.format)
        specials = random.choice(edges(column.number), count)
        c = np.where((kind == "edge") & (random.random(count) < 0.2), specials, sums)
        c = np.where(random.random(count) < 0.1, 0, c).astype(column.dtype)
        if (kind == "corners").any():
            c[kind == "corners"] = sampled[2]
        operands.append(c)
    return operands
