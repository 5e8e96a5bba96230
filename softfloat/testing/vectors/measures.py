"""What happens inside a row: exponents, cancellation, carries, sticky bits and ties, by exact integers.

Every number is an integer of Python's times a power of two, so that nothing is rounded, whatever the exponents. `measure`
says of each row, and of sums of each step, in which bin of which dimension it lies; `dimensions` lists them.

>>> from softfloat.testing.vectors.operations import resolve
>>> case = resolve("add", "float16")
>>> operands = [np.array([0x3C00], np.uint16), np.array([0x1000], np.uint16)]  # 1 + 2^-11
>>> found = measure(case, operands, *case.run(operands))
>>> {x.name: x.bins[found[x.name][0]] for x in dimensions(case) if x.name in ("exponent difference", "rounding")}
{'exponent difference': '+ 11', 'rounding': 'tie, even'}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from softfloat import bits
from softfloat.accumulators import exact
from softfloat.status import Flags
from softfloat.testing.vectors.columns import Number
from softfloat.testing.vectors.exact_numbers import (
    NONE,
    ROUNDINGS,
    Codes,
    Exact,
    exact_values,
    exponents,
    quotient,
    rounded,
    shift,
    square_root,
)
from softfloat.testing.vectors.operations import Case

__all__ = ["SETS", "Dimension", "dimensions", "flag_names", "followed", "measure", "products_of_a_step"]

Bins = dict[str, Codes]

SUMS = ("add", "sub", "fma")
EXACT_INSIDE = (*SUMS, "mul", "div", "sqrt")
"""Operations whose exact results are known here."""
MOST_STEPS = 64


class Dimension(NamedTuple):
    """A way to look at rows, and its bins."""

    name: str
    bins: tuple[str, ...]


# -- dimensions ------------------------------------------------------------------------------------------------------


def classes(number: Number) -> tuple[str, ...]:
    """Kinds of codes that a format has."""
    fmt = number.format
    if fmt is None:
        return ("zero", "normal") if number.kind != "float64" else CLASSES
    found = ["zero"] * fmt.zero + ["subnormal"] * bool(fmt.subnormals and fmt.mantissa_bits) + ["normal"]
    found += ["infinity"] * bool(fmt.infinities) + ["NaN"] * fmt.has_nan
    signalling = fmt.nan == "ieee" and fmt.mantissa_bits > 1
    return (*found, *["signalling NaN"] * signalling)


CLASSES = ("zero", "subnormal", "normal", "infinity", "NaN", "signalling NaN")


def class_of(codes: Codes, number: Number) -> Codes:
    """Places in `classes`."""
    names = classes(number)
    if number.format is None and number.kind != "float64":
        return (codes != 0).astype(np.int64)
    if number.format is None:
        values = codes.view(np.float64)
        nan = np.isnan(values)
        quiet = codes >> np.uint64(51) & np.uint64(1) != 0
        magnitude = np.abs(values)
        chosen = [magnitude == 0, magnitude < 2.0**-1022, np.isinf(values), nan & quiet, nan]
        return np.select(chosen, [0, 1, 3, 4, 5], 2)
    fmt = number.format
    tests = {
        "zero": bits.iszero,
        "subnormal": bits.issubnormal,
        "infinity": bits.isinf,
        "signalling NaN": bits.issnan,
        "NaN": bits.isnan,
    }
    kinds = [name for name in tests if name in names]
    return np.select(
        [np.asarray(tests[x](codes, fmt)) for x in kinds], [names.index(x) for x in kinds], names.index("normal")
    )


RESULTS = (
    "zero",
    "least subnormal",
    "subnormal",
    "largest subnormal",
    "least normal",
    "normal",
    "largest",
    "infinity",
    "NaN",
)


def result_bins(number: Number) -> tuple[str, ...]:
    fmt = number.format
    if fmt is None:
        return {"bool": ("false", "true")}.get(number.kind, ())
    kept = {"zero": fmt.zero, "infinity": bool(fmt.infinities), "NaN": fmt.has_nan}
    subnormal = fmt.subnormals and fmt.mantissa_bits > 0
    kept |= {"least subnormal": subnormal, "largest subnormal": subnormal and fmt.mantissa_bits > 1}
    kept |= {"subnormal": subnormal and fmt.mantissa_bits > 1 and fmt.smallest_normal_code > 3}
    names = [name for name in RESULTS if kept.get(name, True)]
    signed = [name for name in names if name != "NaN" and (name != "zero" or fmt.signed_zero)]
    return (*(f"+ {x}" if x in signed else x for x in names), *(f"- {x}" for x in signed if fmt.signed))


def result_of(codes: Codes, number: Number) -> Codes:
    fmt, names = number.format, list(result_bins(number))
    if fmt is None:
        return codes.astype(np.int64) if names else np.full(codes.shape, NONE)
    sign = fmt.dtype.type(fmt.sign_bit)
    magnitude = codes & fmt.dtype.type(~fmt.sign_bit & ((1 << fmt.bits) - 1))
    normal = fmt.smallest_normal_code
    nan, infinite = np.asarray(bits.isnan(codes, fmt)), np.asarray(bits.isinf(codes, fmt))
    tiny = np.asarray(bits.issubnormal(codes, fmt))
    tests = [
        ("NaN", nan),
        ("infinity", infinite),
        ("zero", np.asarray(bits.iszero(codes, fmt))),
        ("least subnormal", tiny & (magnitude == 1)),
        ("largest subnormal", tiny & (magnitude == normal - 1)),
        ("subnormal", tiny),
        ("largest", magnitude == fmt.max_code),
        ("least normal", magnitude == normal),
        ("normal", np.ones(codes.shape, bool)),
    ]
    found = np.full(codes.shape, NONE)
    for name, where in tests:
        for prefix, signed in (("", True), ("+ ", (codes & sign) == 0), ("- ", (codes & sign) != 0)):
            if prefix + name in names:
                found = np.where((found == NONE) & where & signed, names.index(prefix + name), found)
    return found


NO_FLAGS = "none"


def flag_names(flags: int) -> str:
    """Flags of a row."""
    return " ".join(str(x.name) for x in Flags if x & flags) or NO_FLAGS


SETS = tuple(range(32))


def _differences(case: Case) -> range:
    """Exponent differences of a sum that matter, from far below to far above."""
    p = case.format.p
    return range(-p - 3, p + 4) if case.operation.name != "fma" else range(-p - 3, 2 * p + 4)


def furthest(case: Case) -> int:
    """The largest distance of a last bit from the last place that is told from larger ones; no more than there are."""
    fmt = case.target.format
    assert fmt is not None
    how = case.accumulator
    if how is not None:
        most, p = 2 * how.running.format.p + 4, how.running.format.p
        if how.kept_bits is not None and followed(case):
            terms = 4 * products_of_a_step(case) + 2 * (case.addend or _steps(case) > 1)  # each product is below 4
            most = min(most, how.kept_bits + (terms - 1).bit_length() - p)
        return max(most, 2)
    most = 2 * fmt.p + 4
    if case.operation.name == "mul":
        most = min(most, max(fmt.p, fmt.mantissa_bits - fmt.emin))
    elif case.operation.name == "convert" and case.source.format is not None:
        least = case.format.emin - case.format.mantissa_bits
        most = min(most, max(case.format.p - fmt.p, fmt.emin - fmt.mantissa_bits - least))
    elif case.operation.name in ("add", "sub"):
        most = min(most, case.format.emax - case.format.emin + 1)
    return max(most, 2)


def most_lost(case: Case) -> int:
    """The most leading bits that a sum which is not zero can lose."""
    how = case.accumulator
    if how is None:
        return 2 * case.format.p - 1 if case.operation.name == "fma" else case.format.p
    p = how.running.format.p
    if followed(case) and how.kept_bits is not None:
        return how.kept_bits + 1
    if followed(case) and products_of_a_step(case) == 1:
        factors = how.product.format.p if how.product is not None else sum(fmt.p for fmt in case.formats)
        return max(p, factors)
    return 2 * p


def _signed_bins(spread: range) -> tuple[str, ...]:
    names = [f"below {spread[0]}", *map(str, spread), f"above {spread[-1]}"]
    return tuple(f"{sign} {name}" for sign in "+-" for name in names)


def dimensions(case: Case) -> list[Dimension]:
    """The dimensions of a case, and all their bins, reachable or not.

    Raises
    ------
    ValueError
        For operations on blocks, which have none.
    """
    if case.blocks is not None:
        raise ValueError(
            f"measures has no bins for {case.operation.name}; accepted: elementwise operations, convert and vecdot; "
            "block_measures has those of operations on blocks"
        )
    return list(_dimensions(case))


def _dimensions(case: Case) -> Iterator[Dimension]:
    target = case.target.format
    if case.operation.result == "sum":
        yield from _dot_dimensions(case)
    else:
        columns = [column for column in case.operands if column.name != "random"]
        names = [" ".join(x) for x in product(*(joined(classes(column.number)) for column in columns))]
        yield Dimension("operands", tuple(names))
        for column in columns:
            if column.number.format is not None:
                fields = range(1 << column.number.format.exponent_bits)
                yield Dimension(f"exponent field of {column.name}", tuple(map(str, fields)))
        if case.operation.name in SUMS:
            yield Dimension("exponent difference", _signed_bins(_differences(case)))
            yield Dimension("cancellation", (*map(str, range(most_lost(case) + 1)), "all"))
            yield Dimension("carry", ("no", "yes"))
        elif case.operation.name in ("mul", "div"):
            yield Dimension("carry", ("no", "yes"))
        if _knows(case):
            assert target is not None
            yield Dimension("rounding", ROUNDINGS)
            yield Dimension("rounding of subnormals", ROUNDINGS)
            if case.operation.name not in ("div", "sqrt"):  # what does not end there never does
                yield Dimension("sticky distance", _distance_bins(furthest(case)))
    if result_bins(case.target):
        yield Dimension("result", result_bins(case.target))
    yield Dimension("flags", tuple(map(flag_names, SETS)))


def _distance_bins(most: int) -> tuple[str, ...]:
    return (*map(str, range(1, most)), f"{most} and more")


def joined(names: Sequence[str]) -> list[str]:
    return [name.replace(" ", "-") for name in names]


def _knows(case: Case) -> bool:
    """Whether the exact result of a case is known here, and rounded."""
    convert = case.operation.name == "convert" and case.target.format is not None
    return case.target.format is not None and (convert or case.operation.name in EXACT_INSIDE)


# -- elementwise -----------------------------------------------------------------------------------------------------


def measure(case: Case, operands: Sequence[Codes], results: Codes, flags: Codes | None) -> Bins:
    """The bins that rows lie in.

    Parameters
    ----------
    case : Case
    operands, results, flags
        As `Case.run` takes and returns them; without flags that dimension stays empty.

    Returns
    -------
    dict of str to array of int
        For each of `dimensions(case)`: places in its bins, of shape (rows,), or (rows, steps); -1 for none.
    """
    found: Bins = {}
    if case.operation.result == "sum":
        _measure_dots(case, operands, found)
    else:
        _measure_elements(case, operands, found)
    if result_bins(case.target):
        found["result"] = result_of(results, case.target)
    found["flags"] = np.full(len(results), NONE) if flags is None else flags.astype(np.int64)
    return found


def _measure_elements(case: Case, operands: Sequence[Codes], found: Bins) -> None:
    columns = [column for column in case.operands if column.name != "random"]
    which = np.zeros(len(operands[0]), np.int64)
    for column, codes in zip(columns, operands, strict=False):
        which = which * len(classes(column.number)) + class_of(codes, column.number)
        fmt = column.number.format
        if fmt is not None:
            field = codes.astype(np.int64) >> fmt.mantissa_bits & (1 << fmt.exponent_bits) - 1
            found[f"exponent field of {column.name}"] = field
    found["operands"] = which
    name = case.operation.name
    if not (_knows(case) or name in SUMS):
        return
    values = [exact_values(x, column.number) for x, column in zip(operands, columns, strict=False)]
    if name in SUMS:
        first = values[0].times(values[1]) if name == "fma" else values[0]
        second = values[-1].negated() if name == "sub" else values[-1]
        fmt = case.format
        exponent = exponents(values[0], fmt) + (exponents(values[1], fmt) if name == "fma" else 0)
        total = _measure_sum(case, first, second, exponent - exponents(second, fmt), found)
    elif name == "mul":
        total = values[0].times(values[1])
        usable = total.finite & (total.integer != 0).astype(bool)
        found["carry"] = np.where(usable, total.top - values[0].top - values[1].top, NONE)
    elif name == "div":
        total = quotient(values[0], values[1], 2 * case.format.p)
        usable = total.finite & (total.integer != 0).astype(bool)
        found["carry"] = np.where(usable, total.top - values[0].top + values[1].top + 1, NONE)
    else:
        total = square_root(values[0], 2 * case.format.p) if name == "sqrt" else values[0]
    target = case.target.format
    if target is not None and _knows(case):
        how, distance = rounded(total, target, furthest(case))
        tiny = total.top < target.emin
        found["rounding"] = np.where(tiny, NONE, how)
        found["rounding of subnormals"] = np.where(tiny, how, NONE)
        if name not in ("div", "sqrt"):
            found["sticky distance"] = distance


def _measure_sum(case: Case, first: Exact, second: Exact, difference: Codes, found: Bins) -> Exact:
    """A sum of two terms."""
    total = first.plus(second)
    both = total.finite & (first.integer != 0).astype(bool) & (second.integer != 0).astype(bool)
    opposite = ((first.integer < 0) ^ (second.integer < 0)).astype(bool)
    spread = _differences(case)
    place = np.clip(difference - spread[0] + 1, 0, len(spread) + 1)
    found["exponent difference"] = np.where(both, place + opposite * (len(spread) + 2), NONE)
    largest = np.maximum(first.top, second.top)
    most = most_lost(case)
    lost = np.where((total.integer == 0).astype(bool), most + 1, np.clip(largest - total.top, 0, most))
    found["cancellation"] = np.where(both & opposite, lost, NONE)
    found["carry"] = np.where(both & ~opposite, np.clip(total.top - largest, 0, 1), NONE)
    return total


# -- dot products ----------------------------------------------------------------------------------------------------

UNSIGNED = ("cancels to zero", "negative zero")
EVENTS = ("cancels", "cancels to zero", "carry", "tie", "overflow", "underflow", "negative zero")


def followed(case: Case) -> bool:
    """Whether the running sum is known step by step; trees, chains and segments are looked at as one exact sum."""
    how = case.accumulator
    assert how is not None
    return not (how.tree or how.chains > 1 or how.segment or how.segments)


def products_of_a_step(case: Case) -> int:
    """Products of a step."""
    assert case.accumulator is not None
    assert case.length is not None
    return (case.accumulator.block or case.length) if followed(case) else case.length


def _steps(case: Case) -> int:
    assert case.length is not None
    return -(-case.length // products_of_a_step(case))


def _kept(case: Case) -> int:
    """The furthest alignment that matters."""
    assert case.accumulator is not None
    return max(case.accumulator.running.format.p, case.accumulator.kept_bits or 0) + 3


def _step_bins(case: Case) -> tuple[str, ...]:
    """Names of steps: each, or, of many, the last ones together."""
    steps = _steps(case)
    shown = min(steps, MOST_STEPS)
    names = [str(i) for i in range(shown)]
    return tuple(names if steps <= MOST_STEPS else [*names[:-1], f"{shown - 1} and later"])


def _dot_dimensions(case: Case) -> Iterator[Dimension]:
    assert case.accumulator is not None
    kept = _kept(case)
    for side, number in (("a", case.source), ("b", case.second)):
        yield Dimension(f"class of {side}", classes(number))
        assert number.format is not None
        yield Dimension(f"exponent field of {side}", tuple(map(str, range(1 << number.format.exponent_bits))))
    distances = (*map(str, range(kept + 1)), f"more than {kept}")
    yield Dimension("alignment of products", distances)
    if case.addend or (followed(case) and _steps(case) > 1):
        yield Dimension("alignment of the running sum", distances)
    lost = most_lost(case)
    bounded = followed(case) and (case.accumulator.kept_bits is not None or products_of_a_step(case) == 1)
    last = str(lost) if bounded else f"{lost} and more"
    yield Dimension("cancellation", (*map(str, range(lost)), last, "all"))
    yield Dimension("carry", ("no", "yes"))
    yield Dimension("rounding", ROUNDINGS)
    yield Dimension("rounding of subnormals", ROUNDINGS)
    yield Dimension("sticky distance", _distance_bins(furthest(case)))
    for event in EVENTS if followed(case) else ():
        names = [f"{sign} {x}" for sign in "+-" for x in _step_bins(case)]
        yield Dimension(f"{event} at step", tuple(_step_bins(case) if event in UNSIGNED else names))


def _measure_dots(case: Case, operands: Sequence[Codes], found: Bins) -> None:
    for side, number, codes in zip("ab", (case.source, case.second), operands, strict=False):
        fmt = number.format
        assert fmt is not None
        found[f"class of {side}"] = class_of(codes, number)
        field = codes.astype(np.int64) >> fmt.mantissa_bits & (1 << fmt.exponent_bits) - 1
        found[f"exponent field of {side}"] = field
    parts: dict[str, list[Codes]] = {}
    for step, (a, b, running, flags, following) in enumerate(_replayed(case, operands)):
        measured = _measure_step(case, a, b, running, flags, following, min(step, len(_step_bins(case)) - 1))
        for name, place in measured.items():
            parts.setdefault(name, []).append(place.reshape(len(place), -1))
    found |= {name: np.concatenate(places, axis=1) for name, places in parts.items()}


def _replayed(
    case: Case, operands: Sequence[Codes]
) -> Iterator[tuple[Codes, Codes, Codes | None, Codes | None, Codes | None]]:
    """Products of each step, the running sum before, flags and the running sum after."""
    a, b, *addend = operands
    how, environment = case.accumulator, case.environment
    assert how is not None
    if not followed(case):
        yield a, b, addend[0] if addend else None, None, None
        return
    size, order = products_of_a_step(case), np.array(how.order)
    short = -a.shape[1] % max(size, len(order))
    if short and how.block:
        a, b = (np.pad(x, ((0, 0), (0, short))) for x in (a, b))
    if len(order) > 1:
        places = (np.arange(a.shape[1]).reshape(-1, len(order))[:, order]).ravel()
        a, b = a[:, places], b[:, places]
    plain = how.replace(store=None, store_every=1, order=(0,))
    fmt = how.running.format
    running = np.zeros(len(a), fmt.dtype)
    if addend:
        running = np.asarray(bits.convert(addend[0], how.partials, fmt, environment=environment)[0])
    for first in range(0, a.shape[1], size):
        x, y = a[:, first : first + size], b[:, first : first + size]
        following, flags = bits.vecdot(x, y, case.formats, plain, running, out_format=fmt, environment=environment)
        yield x, y, running, flags, following
        running = following
        if how.store is not None and (first + size) % how.store_every == 0:
            stored = bits.convert(running, fmt, how.store.format, environment=environment)[0]
            running = np.asarray(bits.convert(stored, how.store.format, fmt, environment=environment)[0])


def _measure_step(
    case: Case, a: Codes, b: Codes, running: Codes | None, flags: Codes | None, following: Codes | None, step: int
) -> Bins:
    how = case.accumulator
    assert how is not None
    fmt, kept = how.running.format, _kept(case)
    rows = len(a)
    terms, places = [], []
    for k in range(a.shape[1]):
        x, y = exact_values(a[:, k], case.source), exact_values(b[:, k], case.second)
        term, place = x.times(y), exponents(x, case.formats[0]) + exponents(y, case.formats[1])
        if how.product is not None:
            rounded_once = exact(how.product.format)
            codes = bits.vecdot(
                a[:, k : k + 1], b[:, k : k + 1], case.formats, rounded_once, environment=case.environment
            )[0]
            term = exact_values(np.asarray(codes), Number(fmt.name, "float", fmt.bits, how.product.format))
            place = exponents(term, how.product.format)
        terms.append(term)
        places.append(place)
    if running is not None:
        number = Number(fmt.name, "float", fmt.bits, fmt if flags is not None else how.partials)
        start = exact_values(running, number)
        terms.append(start)
        places.append(exponents(start, fmt))
    nonzero = np.stack([(x.integer != 0).astype(bool) for x in terms])
    finite = np.logical_and.reduce([x.finite for x in terms])
    exponent = np.stack(places)
    largest = np.where(nonzero, exponent, -(1 << 20)).max(axis=0)
    distance = np.where(nonzero & finite, np.clip(largest - exponent, 0, kept + 1), NONE)
    if how.kept_bits is not None and followed(case):
        assert how.aligned is not None
        floor = largest if how.aligned.least is None else np.maximum(largest, how.aligned.least)
        unit = floor - how.kept_bits
        terms = [_cut(x, unit) for x in terms]
    total = terms[0]
    for x in terms[1:]:
        total = total.plus(x)
    top = np.stack([x.top for x in terms]).max(axis=0)
    several = finite & (nonzero.sum(axis=0) > 1)
    signs = np.stack([(x.integer < 0).astype(bool) for x in terms])
    mixed = several & (nonzero & signs).any(axis=0) & (nonzero & ~signs).any(axis=0)
    most = most_lost(case)
    zero = (total.integer == 0).astype(bool)
    lost = np.where(zero, most + 1, np.clip(top - total.top, 0, most))
    kind, far = rounded(total, fmt, furthest(case))
    tiny = total.top < fmt.emin
    products = len(terms) - (running is not None)
    found = {
        "alignment of products": distance[:products].T,
        "cancellation": np.where(mixed, lost, NONE),
        "carry": np.where(several & ~mixed, np.clip(total.top - top, 0, 1), NONE),
        "rounding": np.where(tiny | ~finite, NONE, kind),
        "rounding of subnormals": np.where(tiny & finite, kind, NONE),
        "sticky distance": np.where(finite, far, NONE),
    }
    if running is not None and (case.addend or (followed(case) and _steps(case) > 1)):
        found["alignment of the running sum"] = distance[products:].T
    if flags is None or following is None:
        return found
    negative = np.asarray(bits.signbit(following, fmt))
    signed = step + negative * len(_step_bins(case))
    events = {
        "cancels": mixed & (lost > 0) & ~zero,
        "cancels to zero": mixed & zero,
        "carry": several & ~mixed & (total.top > top),
        "tie": finite & ((kind == 2) | (kind == 3)),
        "overflow": finite & (flags & Flags.OVERFLOW != 0),
        "underflow": finite & (flags & Flags.UNDERFLOW != 0),
        "negative zero": np.asarray(bits.iszero(following, fmt)) & negative,
    }
    places_of = {name: np.full(rows, step) if name in UNSIGNED else signed for name in events}
    return found | {f"{name} at step": np.where(where, places_of[name], NONE) for name, where in events.items()}


def _cut(x: Exact, unit: Codes) -> Exact:
    """Magnitudes cut to multiples of 2^unit."""
    drop = np.clip(unit - x.weight, 0, None)
    magnitude = shift(shift(np.abs(x.integer), -drop), drop)
    return x._replace(integer=np.where((x.integer < 0).astype(bool), -magnitude, magnitude))
