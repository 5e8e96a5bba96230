"""Probes of a dot-product unit: rows made to show one thing each, and what their answers say.

`Measurement` asks them, in the order in which each needs those before it; `softfloat.testing.identification` says whose
they are, and what becomes of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.formats import ROSTER, Format, check_format
from softfloat.testing.hardware.operands import with_exponents
from softfloat.testing.vectors.distributions import edges

__all__ = [
    "CODES_IN",
    "FAMILIES",
    "LONGEST",
    "MAXIMUM_CALLS",
    "MODES",
    "Asked",
    "Measurement",
    "Property",
    "Structure",
    "Unit",
    "UnitError",
]

Codes = np.ndarray[Any, Any]
Answers = tuple[Codes, Codes, Codes, Codes]
"""a, b, c, and what the unit gave."""
Unit = Callable[[Codes, Codes, Codes], Any]
"""unit(a, b, c): codes of shapes (rows, k), (rows, k) and (rows,) to codes of shape (rows,)."""
Structure = tuple[str, dict[str, Any]]
"""An order of summation in words, and as parameters of an `Accumulator`."""
Refutation = Callable[[Answers], Codes]
"""Which answers contradict a statement."""
Number = tuple[Fraction | int, int]
"""A significand and an exponent."""

CODES_IN = "codes, integers, a and b of shape (rows, k) and c of shape (rows,)"
"""What a unit is called with."""
MAXIMUM_CALLS = 16
"""Calls of a unit that one identification makes at most."""
LONGEST = 256
"""Products of a row at most: the rows that tell the order grow as the square of it."""
DEEPEST = 60  # bits below the leading one that probes look at: more than any accumulator keeps but an exact one
MODES = (
    "nearest_even",
    "nearest_away",
    "toward_zero",
    "toward_positive",
    "toward_negative",
    "to_odd",
    "nearest_zero",
    "nearest_up",
)


class UnitError(ValueError):
    """The unit did not answer as a unit must; the message says what was expected."""


@dataclass(frozen=True)
class Property:
    """One measured property: what was looked at, what it is, and the answers that show it."""

    name: str
    value: str
    evidence: str


def pair_of(formats: Any) -> tuple[Format, Format]:
    if isinstance(formats, (tuple, list)):
        if len(formats) != 2:
            raise ValueError(f"formats must be a format or a pair of them, got {len(formats)}")
        return check_format(formats[0], "formats[0]"), check_format(formats[1], "formats[1]")
    one = check_format(formats, "formats")
    return one, one


# -- the unit --------------------------------------------------------------------------------------------------------


class Asked:
    """The unit, its calls counted and its answers checked and kept."""

    def __init__(
        self, unit: Unit, formats: tuple[Format, Format], partials: Format, output: Format, length: int
    ) -> None:
        self.unit, self.formats, self.partials, self.output, self.length = unit, formats, partials, output, length
        self.calls = 0
        self.log: list[Answers] = []

    def __call__(self, a: Codes, b: Codes, c: Codes) -> Codes:
        """The unit's results of some rows; RuntimeError after too many calls."""
        if self.calls >= MAXIMUM_CALLS:
            raise RuntimeError(f"more than {MAXIMUM_CALLS} calls")
        self.calls += 1
        rows = len(c)
        given = [x.astype(fmt.dtype) for x, fmt in zip((a, b, c), (*self.formats, self.partials), strict=True)]
        try:
            answer = self.unit(*(x.copy() for x in given))
            engine.refuse_mask(answer, "its result")
            answer = np.asarray(answer)
        except UnitError:
            raise
        except Exception as error:  # whatever a stranger's function raises
            raise UnitError(f"unit raised {type(error).__name__}: {error}; it is called with {CODES_IN}") from error
        if answer.shape != (rows,):
            raise UnitError(
                f"unit must return one code for each of {rows} rows, shape ({rows},), got shape {answer.shape}"
            )
        if answer.dtype.kind not in "ui":
            raise UnitError(
                f"unit must return integer codes, got dtype {answer.dtype}; it is called with {CODES_IN}, and bits.encode makes codes"
            )
        if rows and (int(answer.min()) < 0 or int(answer.max()) >= 1 << self.output.bits):
            wrong = next(x for x in answer.tolist() if not 0 <= x < 1 << self.output.bits)
            raise UnitError(
                f"unit must return codes of {self.output.name}, 0 to {(1 << self.output.bits) - 1:#x}, got {wrong:#x}"
            )
        found = answer.astype(np.uint32)
        self.log.append((given[0], given[1], given[2], found))
        return found

    @property
    def rows(self) -> int:
        """How many rows were asked."""
        return sum(len(entry[3]) for entry in self.log)

    def everything(self) -> Answers:
        """All rows asked so far, and the answers."""
        a, b, c, d = (np.concatenate(column) for column in zip(*self.log, strict=True))
        return a, b, c, d


# -- rows ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def _split(significand: Fraction, exponent: int, formats: tuple[Format, Format]) -> tuple[int, int] | None:
    """Codes whose product is significand * 2^exponent exactly: normal numbers if they reach, about as large as each other."""
    first, second = formats
    choices = sorted(
        range(second.emin - second.mantissa_bits, second.emax + 1),
        key=lambda e: (
            (e < second.emin) + (exponent - e < first.emin),
            abs(2 * e - exponent),
        ),
    )
    for e in choices:
        if not first.emin - first.mantissa_bits <= exponent - e <= first.emax:
            continue
        codes = _code(significand, exponent - e, first), _code(Fraction(1), e, second)
        if codes[0] is not None and codes[1] is not None:
            return codes[0], codes[1]
    return None


@lru_cache(maxsize=1 << 16)
def _code(significand: Fraction, exponent: int, fmt: Format) -> int | None:
    """The code of significand * 2^exponent, if the format has it."""
    code, flags = bits.encode(significand * Fraction(2) ** exponent, fmt)
    return None if int(flags) else int(code)


class _Rows:
    """Rows under construction: zeros, until products and addends are put in their places."""

    def __init__(self, formats: tuple[Format, Format], partials: Format, length: int) -> None:
        self.formats, self.partials, self.length = formats, partials, length
        self.a: list[list[int]] = []
        self.b: list[list[int]] = []
        self.c: list[int] = []

    def add(self, products: Mapping[int, Number], addend: Number | None = None) -> bool:
        """A row with products and an addend (significand, exponent); False, and none, if a format lacks one of them."""
        a, b = [0] * self.length, [0] * self.length
        for place, (significand, exponent) in products.items():
            found = _split(abs(Fraction(significand)), exponent, self.formats)
            if found is None:
                return False
            a[place] = found[0] | (self.formats[0].sign_bit if significand < 0 else 0)
            b[place] = found[1]
        c = 0
        if addend is not None:
            code = _code(abs(Fraction(addend[0])), addend[1], self.partials)
            if code is None:
                return False
            c = code | (self.partials.sign_bit if addend[0] < 0 else 0)
        self.a.append(a)
        self.b.append(b)
        self.c.append(c)
        return True

    def arrays(self) -> tuple[Codes, Codes, Codes]:
        shape = len(self.c), self.length
        return (
            np.array(self.a, np.int64).reshape(shape),
            np.array(self.b, np.int64).reshape(shape),
            np.array(self.c, np.int64),
        )


FAMILIES = ("near", "near, all positive", "spread", "tiny", "huge", "cancelling", "few", "special")


def draw_rows(
    family: str, count: int, formats: tuple[Format, Format], partials: Format, output: Format, length: int,
    random: np.random.Generator,
) -> tuple[Codes, Codes, Codes]:  # fmt: skip
    """Rows of the kind that the family's name says, seen from the format of the addend."""
    shape = count, length
    low, high = {
        "spread": (-partials.p - 3, 4),
        "tiny": (max(partials.emin - partials.p, sum(x.emin for x in formats) - 2), partials.emin + 3),
        "huge": (
            min(partials.emax, sum(x.emax for x in formats)) - 4,
            min(partials.emax, sum(x.emax for x in formats)) + 1,
        ),
        "few": (-12, 13),
    }.get(family, (-3, 4))
    low = min(low, high - 2)
    target = random.integers(low, high, shape)
    first = target // 2 + random.integers(-3, 4, shape)
    a, b = with_exponents(formats[0], first, random), with_exponents(formats[1], target - first, random)
    c = with_exponents(partials, random.integers(low, high + 1, count), random)
    c = np.where(random.random(count) < 0.3, random.choice([0, partials.sign_bit], count), c)
    if family == "near, all positive":
        a, b, c = (x & ~fmt.dtype.type(fmt.sign_bit) for x, fmt in ((a, formats[0]), (b, formats[1]), (c, partials)))
    elif family == "cancelling" and length > 1:
        half = length // 2
        a[:, length - half :] = a[:, :half] ^ formats[0].dtype.type(formats[0].sign_bit)
        b[:, length - half :] = b[:, :half]
        b[:, length - half :] ^= (random.random((count, half)) < 0.1).astype(b.dtype)
        order = random.permuted(np.tile(np.arange(length), (count, 1)), axis=1)
        a, b = np.take_along_axis(a, order, 1), np.take_along_axis(b, order, 1)
    elif family == "few":
        kept = random.random(shape) < min(1.0, 3 / length)
        a, b = np.where(kept, a, 0), np.where(kept, b, random.choice([0, formats[1].sign_bit], shape))
    elif family == "special":
        rows = np.arange(count)
        for x, fmt in ((a, formats[0]), (b, formats[1])):
            for _ in range(2):
                x[rows, random.integers(0, length, count)] = random.choice(edges(fmt), count)
        c = np.where(random.random(count) < 0.3, random.choice(edges(partials), count), c)
    return a.astype(formats[0].dtype), b.astype(formats[1].dtype), c.astype(partials.dtype)


# -- measuring -------------------------------------------------------------------------------------------------------


def _text(exponent: int) -> str:
    return f"2^{exponent}"


class Measurement:
    """The probes, in the order in which each needs those before it."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.properties: list[Property] = []
        self.settings: dict[str, Any] = {}
        self.refutations: dict[str, Refutation] = {}
        self.modes: tuple[str, ...] = MODES
        self.structures: list[Structure] = []

    def rows(self) -> _Rows:
        """An empty list of rows."""
        return _Rows(self.asked.formats, self.asked.partials, self.asked.length)

    def say(self, name: str, value: str, evidence: str, against: Refutation | None = None) -> None:
        """State a property; `against` tells which answers to any rows contradict it."""
        self.properties.append(Property(name, value, evidence))
        if against is not None:
            self.refutations[name] = against

    def withdraw(self, answers: Answers) -> None:
        """Take back what answers to other rows than the probes contradict."""
        for place, said in enumerate(self.properties):
            if said.name in self.refutations:
                wrong = int(self.refutations[said.name](answers).sum())
                if wrong:
                    evidence = f"{wrong} of {len(answers[3])} random rows contradict what the probes show"
                    self.properties[place] = Property(said.name, "unclear", evidence)

    def inexact(self, answers: Answers) -> Codes:
        """Where the answer is no rounding of the exact sum, by two units or more of the narrowest format on the way."""
        a, b, c, d = answers
        places, emin = self._narrowest()
        operands = ((a, self.asked.formats[0]), (b, self.asked.formats[1]), (c, self.asked.partials))
        x, y, addend = (np.asarray(bits.decode(codes, fmt), np.float64) for codes, fmt in operands)
        tiny = [np.asarray(bits.issubnormal(codes, fmt)).reshape(len(d), -1).any(axis=1) for codes, fmt in operands]
        value = np.asarray(bits.decode(d, self.asked.output), np.float64)
        with np.errstate(all="ignore"):
            terms = np.concatenate([x * y, addend[:, None]], axis=1)  # products of 24 bits are exact
        usable = np.isfinite(terms).all(axis=1) & np.isfinite(value) & ~np.any(tiny, axis=0)
        wrong = np.zeros(len(d), bool)
        for row in np.flatnonzero(usable).tolist():
            total = math.fsum(terms[row])
            exponent = math.frexp(total)[1] - 1
            if total and emin <= exponent < self.high:
                wrong[row] = abs(value[row] - total) > 2.0 ** (exponent - places + 1)
        return wrong

    def inexact_alone(self, answers: Answers) -> Codes:
        """The same, of rows with one product and nothing else."""
        a, b, c, _ = answers
        zero = [np.asarray(bits.iszero(codes, fmt)) for codes, fmt in zip((a, b), self.asked.formats, strict=True)]
        alone = ((~(zero[0] | zero[1])).sum(axis=1) == 1) & np.asarray(bits.iszero(c, self.asked.partials))
        wrong = np.zeros(len(c), bool)
        a, b, c, d = (x[alone] for x in answers)
        wrong[alone] = self.inexact((a, b, c, d))
        return wrong

    def _narrowest(self) -> tuple[int, int]:
        """Fraction bits that a result surely has, and the least exponent from which on it has them."""
        known = self.asked.partials, self.asked.output
        return min(self.bits, *(x.mantissa_bits for x in known)), max(x.emin for x in known)

    def ask(self, rows: _Rows) -> list[Fraction | None]:
        """The values that the unit gives; None for NaN and infinities."""
        return self.values(self.asked(*rows.arrays())) if rows.c else []

    def values(self, codes: Codes) -> list[Fraction | None]:
        """Exact values of results; None for infinities and NaNs."""
        decoded = np.atleast_1d(bits.decode(codes, self.asked.output))
        return [Fraction(x) if np.isfinite(x) else None for x in decoded.tolist()]

    def measure(self) -> None:
        """Ask everything, each question after those that it needs."""
        self.range()
        self.sum_bits()
        self.rounding()
        self.products()
        self.kept()
        self.order()

    # -- how far numbers reach

    def range(self) -> None:
        """Powers of two at the ends of every format, alone: as a product at the first place, and as the addend."""
        formats, partials, output = self.asked.formats, self.asked.partials, self.asked.output
        known = dict.fromkeys((partials, output, *formats, *(ROSTER[x] for x in ("float16", "bfloat16", "float32"))))
        ends = {
            e + step for fmt in known for e in (fmt.emax, fmt.emin, fmt.emin - fmt.mantissa_bits) for step in (-1, 0, 1)
        }
        ends |= {sum(fmt.emin for fmt in formats) - 1, sum(fmt.emin for fmt in formats)}
        ends |= {min(sum(fmt.emax for fmt in formats), output.emax) - x for x in (0, 1)}
        rows, kinds = self.rows(), []
        for e in sorted(ends):
            for product in (True, False):
                if rows.add({0: (1, e)}) if product else rows.add({}, (1, e)):
                    kinds.append((product, e))
        for e in (0,):  # subnormal factors beside large ones, whose product every format has
            for number, fmt in enumerate(formats):
                other = formats[1 - number]
                least = fmt.emin - fmt.mantissa_bits
                one = [fmt.smallest_subnormal_code, _code(Fraction(1), min(other.emax, e - least), other)]
                if fmt.mantissa_bits and one[1] is not None:
                    a, b = one if number == 0 else one[::-1]
                    rows.a.append([int(a or 0)] + [0] * (rows.length - 1))
                    rows.b.append([int(b or 0)] + [0] * (rows.length - 1))
                    rows.c.append(0)
                    kinds.append(("ab"[number], least + min(other.emax, e - least)))  # type: ignore[arg-type]
        found = dict(zip(kinds, zip(self.ask(rows), self.asked.log[-1][3].tolist(), strict=True), strict=True))
        passed = {kind for kind, (value, _) in found.items() if value == Fraction(2) ** kind[1]}
        spans = []
        for product in (True, False):
            tried = sorted(e for kind, e in kinds if kind is product)
            whole = [e for e in tried if (product, e) in passed]
            if not whole:
                raise UnitError(
                    f"unit must pass on a single {'product' if product else 'addend'} that is a power of two; none of "
                    f"{_text(tried[0])} to {_text(tried[-1])} came back (formats, length and the order of operands as they are?)"
                )
            spans.append((min(whole), max(whole), tried))
        (self.low, top, tried), (c_low, c_top, c_tried) = spans
        self.high = min(top, c_top) - 1
        self.c_low = c_low
        self.say(
            "largest", _text(top), f"of single products, up to {_text(tried[-1])} tried; as the addend {_text(c_top)}"
        )
        beyond = [found[True, e] for e in tried if e > top] + [found[False, e] for e in c_tried if e > c_top]
        if beyond and top >= output.emax:
            code = beyond[0][1]
            kind = "nan" if bits.isnan(code, output) else "infinity" if bits.isinf(code, output) else "saturate"
            if output.infinities or kind != "nan":
                self.settings["overflow"] = kind
            self.say("overflow", kind, f"a larger power of two gave {code:#x}")
        flushed = self.low == output.emin and (True, output.emin - 1) in found
        c_flushed = c_low == partials.emin and partials.emin > c_tried[0]
        self.say(
            "subnormal results",
            "flushed" if flushed else "kept" if self.low < output.emin else "out of reach",
            f"the least product that came back is {_text(self.low)}; the least normal {output.name} is {_text(output.emin)}",
        )
        self.say(
            "subnormal addend",
            "flushed, here or as a result" if c_flushed else "kept",
            f"the least that came back is {_text(c_low)}; the least normal {partials.name} is {_text(partials.emin)}",
        )
        inputs = [(kind, e) for kind, e in kinds if kind in ("a", "b")]
        if inputs:
            kept = [kind in passed for kind in inputs]
            self.say(
                "subnormal operands",
                "kept" if all(kept) else "flushed" if not any(kept) else "one kept, one flushed",
                f"the least of {formats[0].name} times {_text(inputs[0][1] - formats[0].emin + formats[0].mantissa_bits)} "
                + ("came back" if kept[0] else "gave 0"),
            )
            self.settings["daz"] = not any(kept)
        if flushed:
            self.settings["ftz"] = True
        self.reach = min(DEEPEST, self.high - self.low)

    # -- how a sum is rounded

    def sum_bits(self) -> None:
        """c = 2^h and one product 2^(h-s): up to which s the sum is exact."""
        rows, tried = self.rows(), []
        for s in range(1, self.reach + 1):
            if rows.add({0: (1, self.high - s)}, (1, self.high)):
                tried.append(s)
        found = self.ask(rows)
        base = Fraction(2) ** self.high
        exact_to = 0
        for s, value in zip(tried, found, strict=True):
            if value != base + base / 2**s:
                break
            exact_to = s
        self.bits = exact_to
        self.say(
            "bits of a sum",
            f"{exact_to} after the leading one",
            f"c = 1 and a product 2^-s give their sum up to s = {exact_to}; {self.asked.output.name} has {self.asked.output.mantissa_bits}",
        )

    def rounding(self) -> None:
        """Sums a quarter, half and three quarters of the way between neighbours, of either sign."""
        ulp = self.high - self.bits
        rows, wanted = self.rows(), []
        if ulp - 2 < self.low or self.bits < 1:
            self.say("rounding of a sum", "unknown", "a quarter of the last place is out of the products' reach")
            return
        for sign, odd, quarters in itertools.product((1, -1), (0, 1), (1, 2, 3)):
            base = Fraction(1) + odd * Fraction(1, 2**self.bits)
            tail = (Fraction(3, 2), ulp - 1) if quarters == 3 else (Fraction(1), ulp - 3 + quarters)
            if rows.add({0: (sign * tail[0], tail[1])}, (sign * base, self.high)):
                wanted.append((sign, odd, quarters))
        found = self.ask(rows)
        unit = Fraction(2) ** ulp
        steps = []
        for (sign, odd, _), value in zip(wanted, found, strict=True):
            moved = None if value is None else (abs(value) - Fraction(2) ** self.high) / unit - odd
            steps.append(moved if value is None or value * sign > 0 else None)
        fitting = tuple(
            mode
            for mode in MODES
            if steps and all(step == _rounds_up(mode, *case) for case, step in zip(wanted, steps, strict=True))
        )
        shown = ", ".join(
            f"{'-' if sign < 0 else ''}{'odd' if odd else 'even'}+{quarters}/4 {'up' if step else 'down'}"
            for (sign, odd, quarters), step in zip(wanted, steps, strict=True)
            if sign > 0
        )
        self.say("rounding of a sum", " or ".join(fitting) or "none of the known modes", shown or "no room to tell")
        if fitting:
            self.modes = fitting
            self.settings["rounding"] = fitting[0]

    # -- products

    def products(self) -> None:
        """(1 + 2^-i)(1 + 2^-j) - (1 + 2^-i + 2^-j): 2^-(i+j) if the product is exact."""
        first, second = self.asked.formats
        rows, tried = self.rows(), []
        memory = self.asked.partials
        scale = self.high - 2
        for total in range(2, first.mantissa_bits + second.mantissa_bits + 1):
            i = min(
                first.mantissa_bits,
                memory.mantissa_bits,
                total - 1,
                max(total - second.mantissa_bits, (total + 1) // 2),
            )
            j = total - i
            if not 1 <= j <= min(second.mantissa_bits, memory.mantissa_bits) or scale - total < self.low:
                continue
            half = scale // 2
            a = _code(1 + Fraction(1, 2**i), scale - half, first)
            b = _code(1 + Fraction(1, 2**j), half, second)
            c = _code(1 + Fraction(1, 2**i) + Fraction(1, 2**j), scale, memory)
            if a is None or b is None or c is None:
                continue
            rows.a.append([a] + [0] * (rows.length - 1))
            rows.b.append([b] + [0] * (rows.length - 1))
            rows.c.append(c | memory.sign_bit)
            tried.append(total)
        found = self.ask(rows)
        self.product_bits: int | None = None
        for total, value in zip(tried, found, strict=True):
            if value != Fraction(2) ** (scale - total):
                self.product_bits = total - 1
                break
        if not tried:
            self.say("products", "unknown", "no room in these formats to tell")
        elif self.product_bits is None:
            self.say(
                "products",
                "exact",
                f"(1 + 2^-i)(1 + 2^-j) - (1 + 2^-i + 2^-j) is 2^-(i+j) up to i + j = {tried[-1]}",
                self.inexact_alone,
            )
        else:
            self.say(
                "products",
                f"{self.product_bits} bits after the leading one reach the sum",
                f"(1 + 2^-i)(1 + 2^-j) - (1 + 2^-i + 2^-j) is not 2^-(i+j) at i + j = {self.product_bits + 1}",
            )

    # -- what survives

    def kept(self) -> None:
        """1 + 2^-s - 1 with -1 ever later: how many bits live how long.

        The large number is the addend, or the first product; 2^-s comes after it.
        """
        length, high = self.asked.length, self.high
        places = [(True, j) for j in range(1, length)] + [(False, j) for j in range(2, length)]
        low_end, step = dict.fromkeys(places, 0), 6
        cut: dict[tuple[bool, int], int] = dict.fromkeys(places, self.reach)
        for spacing in (step, 1):
            rows, tried = self.rows(), []
            for place in places:
                from_addend, j = place
                if spacing == 1:
                    depths: Sequence[int] = range(low_end[place] + 1, min(low_end[place] + step, cut[place] + 1))
                else:
                    depths = range(step, self.reach + 1, step)
                for s in depths:
                    small = {0 if from_addend else 1: (1, high - s), j: (-1, high)}
                    large: dict[int, Number] = {} if from_addend else {0: (1, high)}
                    if rows.add({**large, **small}, (1, high) if from_addend else None):
                        tried.append((place, s))
            found = self.ask(rows)
            lost = set()
            for (place, s), value in zip(tried, found, strict=True):
                if place in lost:
                    continue
                if value == Fraction(2) ** (high - s):
                    low_end[place] = s
                else:
                    lost.add(place)
                    cut[place] = s - 1
        self.survives = low_end
        after_first = [(j, self.survives[False, j]) for j in range(2, length)] or [(1, self.survives[True, 1])] * (
            length > 1
        )
        runs: list[tuple[int, int, int]] = []
        for j, depth in after_first:
            if runs and runs[-1][2] == depth:
                runs[-1] = (runs[-1][0], j, depth)
            else:
                runs.append((j, j, depth))
        shown = "; ".join(
            f"{'all' if depth == self.reach else depth} while the cancelling product is "
            + (f"{first}" if first == last else f"{first} to {last}")
            for first, last, depth in runs[:6]
        )
        depths_seen = ["all" if depth == self.reach else str(depth) for _, _, depth in runs]
        everything = depths_seen == ["all"] and self.reach > self.bits
        self.say(
            "bits that survive",
            ", then ".join(dict.fromkeys(depths_seen)) or "unknown",
            f"1 + 2^-s - 1 from the first product on keeps 2^-s up to s: {shown or 'one product alone'} ({self.reach} tried)",
            self.inexact if everything else None,
        )

    # -- order

    def order(self) -> None:
        """M at place i, -M at place j, units elsewhere: how many units are lost. Place -1 is the addend."""
        length, high = self.asked.length, self.high
        low = max(self.low, high - DEEPEST - 10)
        share = 1 << (min(self.asked.output.p, self.asked.partials.p) - 1)
        places = range(length)
        pairs = list(itertools.combinations((-1, *places), 2))
        rows, of = self.rows(), []
        for number, (i, j) in enumerate(pairs):
            others = [x for x in places if x not in (i, j)]
            for start in range(0, max(len(others), 1), share):
                products: dict[int, Number] = dict.fromkeys(others[start : start + share], (1, low))
                products[j] = (-1, high)
                if i >= 0:
                    products[i] = (1, high)
                rows.add(products, (1, high) if i < 0 else None)
                of.append(number)
        arrays = rows.arrays()
        codes = self.asked(*arrays)
        self.order_rows, self.order_codes, self.order_pairs = arrays, codes, [pairs[n] for n in of]
        unit = Fraction(2) ** low
        counts: dict[int, Fraction | None] = dict.fromkeys(range(len(pairs)), Fraction(0))
        for number, value in zip(of, self.values(codes), strict=True):
            before = counts[number]
            counts[number] = None if before is None or value is None else before + value / unit
        self.lost: dict[tuple[int, int], int | None] = {}
        for number, (i, j) in enumerate(pairs):
            units = length - 1 - (i >= 0)
            count = counts[number]
            self.lost[i, j] = (
                units - int(count) if count is not None and count.denominator == 1 and 0 <= count <= units else None
            )

    # -- what follows

    def conclude(self) -> None:
        """The words of an `Accumulator`, from the order and the bits that survive, once `structures` are known."""
        length = self.asked.length
        label = " or ".join(dict.fromkeys(label for label, _ in self.structures))
        shown = "units lost between M = c and -M at product 0, 1, 2 ...: "
        shown += _series([self.lost[-1, j] for j in range(length)])
        shown += "; between products 0 and 1, 2 ...: " + _series([self.lost[0, j] for j in range(1, length)])
        changes = self.structures[0][1] if self.structures else {}
        block = changes.get("block", 1)
        against = None if block else self.inexact  # a block of everything: nothing is ever lost
        self.say("order of summation", label or f"another: {_tree(self.lost, length)}", shown, against)
        if not self.structures:
            return
        size = block or length
        if block == 1:
            self.say("block", "one product", "as the order of summation says")
        else:
            value = f"{size} products" + (", or more" if size == length else "")
            self.say(
                "block",
                value,
                "units in the same block share the fate of M and -M" if block else "nothing is ever lost",
                against,
            )
            cuts = [x["fraction_bits"] for _, x in self.structures if "fraction_bits" in x]
            self.say(
                "alignment",
                f"cut to {max(cuts)} fraction bits below the largest exponent"
                if cuts
                else "none: a block is added exactly",
                f"inside a block 2^-s survives 1 - 1 up to s = {max(cuts)}"
                if cuts
                else "inside a block nothing is lost",
                against,
            )
        room = sum(x.mantissa_bits for x in self.asked.formats)
        if block != 1:
            fused = "fused: a block of products meets the sum, and is rounded once"
        elif self.product_bits is None and room > self.bits:
            fused = "fused: one rounding"
        elif self.product_bits is None:
            fused = "cannot be told apart: products of these formats fit the sum"
        else:
            fused = f"unfused: products are cut or rounded to {self.product_bits} bits first"
        alone = self.inexact_alone if self.product_bits is None else None
        self.say(
            "multiply-add",
            fused,
            f"products have {room} bits after the leading one, a sum {self.bits}",
            against or alone,
        )
        if changes.get("tree") or "chains" in changes or "segment" in changes:
            return
        later = [(j, depth) for (from_addend, j), depth in self.survives.items() if not from_addend and j >= size]
        drop = next((j for j, depth in later if depth < later[0][1]), None)
        bits_then = next((depth for j, depth in later if j == drop), 0)
        self.say(
            "partials in memory",
            f"{bits_then} bits, every {drop} products" if drop else "no narrowing seen between blocks",
            f"2^-s survives up to s = {later[0][1]} from block to block"
            + (f", {bits_then} from product {drop} on" if drop else "")
            if later
            else "there is one block",
        )


def _series(numbers: Sequence[int | None]) -> str:
    texts = ["?" if x is None else str(x) for x in numbers]
    return " ".join(texts[:12]) + (" ..." if len(texts) > 12 else "")


def _rounds_up(mode: str, sign: int, odd: int, quarters: int) -> int:
    """Whether a magnitude so many quarters above a neighbour, itself odd or even, goes up."""
    if mode in ("toward_positive", "toward_negative"):
        return int((sign > 0) == (mode == "toward_positive"))
    return {
        "nearest_even": int(quarters > 2 or (quarters == 2 and odd == 1)),
        "nearest_away": int(quarters >= 2),
        "nearest_zero": int(quarters > 2),
        "nearest_up": int(quarters > 2 or (quarters == 2 and sign > 0)),
        "toward_zero": 0,
        "to_odd": 1 - odd,
    }[mode]


def _tree(lost: Mapping[tuple[int, int], int | None], length: int) -> str:
    """FPRev's reconstruction: leaves grouped by the size of the least subtree that has both, from the addend outwards."""

    def build(leaves: list[int]) -> str:
        if len(leaves) == 1:
            return "c" if leaves[0] < 0 else f"p{leaves[0]}"
        first = leaves[0]
        groups: dict[int, list[int]] = {}
        for other in leaves[1:]:
            size = lost[min(first, other), max(first, other)]
            groups.setdefault(-1 if size is None else size, []).append(other)
        text = build([first])
        for size in sorted(groups):
            members = groups[size]
            inner = [lost[min(x, y), max(x, y)] for x, y in itertools.combinations(members, 2)]
            flat = bool(inner) and all(x == size for x in inner)
            parts = [build([x]) for x in members] if flat or size < 0 else [build(members)]
            text = f"({' + '.join([text, *parts])})"
        return text

    try:
        text = build([-1, *range(length)])
    except RecursionError:
        return "nothing that a tree describes"
    return text if len(text) < 400 else text[:400] + " ..."
