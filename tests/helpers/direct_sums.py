"""Sums of products straight from the words of `softfloat.accumulators`: one output at a time, one product at a time, on fractions.

Every field of `Accumulator`, `Stage` and `Reduction` is read here and nowhere else turned into a plan. A rounding is
`reference.round_exact`; what is added, in what order, from where, and how it is read again is stated in full. No NaN passes
its payload on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from softfloat.kernels.spec import NAN_POLICIES, Overflow, Rounding

from softfloat import Environment, Format, reference
from softfloat.accumulators import Accumulator, Alignment, Stage
from softfloat.accumulators.accumulator import ALL
from softfloat.reference import Kind, Value
from softfloat.reference.dots import philox

INEXACT, OVERFLOW, INVALID = 1, 4, 16
PRODUCT, RUNNING, STORE, RESULT, LEVEL = range(5)
"""Numbers of the stages in the address of a random number; level l has LEVEL + 2l, and its store the number after."""
ZERO = Value(Kind.FINITE, negative=False)
NAN = Value(Kind.NAN, negative=False)


class Term(NamedTuple):
    """A product, or an invalid one (None), whether a factor is NaN, and the exponent that alignment goes by, if it has one."""

    value: Value | None
    nan: bool
    exponent: int | None


class Tally:
    """What `Counts` says of one output."""

    def __init__(self) -> None:
        self.overflowed = self.inexact = self.swamped = 0
        self.seen: list[float | Fraction] = []

    def note(self, before: Value, exact: Value, after: Value, raised: int, cut: bool = False) -> None:
        self.overflowed += bool(raised & OVERFLOW)
        self.inexact += bool(raised & INEXACT) or cut
        stays = not before.is_nan and not after.is_nan and before.real == after.real
        self.swamped += stays and (cut or exact.is_nan or exact.real != before.real)
        if not after.is_nan:
            self.seen.append(after.real)

    def extremes(self) -> tuple[float, float]:
        return (float(min(self.seen)), float(max(self.seen))) if self.seen else (math.nan, math.nan)


def half_open(count: int, sections: int) -> list[range]:
    """Sections of as equal a length as may be."""
    return [range(i * count // sections, (i + 1) * count // sections) for i in range(sections)]


def exponent_of(x: Value, fmt: Format) -> int:
    """floor(log2 |x|), but a subnormal's is that of the smallest normal number."""
    e = fmt.emin
    while x.magnitude >= Fraction(2) ** (e + 1):
        e += 1
    return e


def draw(seed: int, stream: int, index: int, site: int, step: int, width: int) -> int:
    """The random bits of a rounding: the address says which of Philox's words hold them."""
    key, counter = (seed % 2**32, seed >> 32), (stream % 2**32, stream >> 32)
    shared = philox((index, (1 << 30) + (site << 26) + step // 8, *counter), key)
    own = philox((index, (3 << 30) + (site << 26) + step // 2, *counter), key)
    high = (shared[step % 4] >> (16 * (step % 8 // 4))) & 0xFFFF
    first, second = own[2 * (step % 2) : 2 * (step % 2) + 2]
    bits = (high << 36) + (first << 4) + (second >> 28)
    return bits >> (52 - width)


class Output:
    """One output on its way: its flags, its tally, and how often each stage has rounded."""

    def __init__(
        self, how: Accumulator, pair: tuple[Format, Format], environment: Environment, stream: int, index: int
    ) -> None:
        self.how, self.pair, self.environment, self.stream, self.index = how, pair, environment, stream, index
        self.flags, self.tally, self.steps = 0, Tally(), Counter[int]()

    # -- stages

    def settings(self, stage: Stage, conversion: bool = False) -> dict[str, Any]:
        """Options of a stage: what it fixes, else what the environment says of its format."""
        found = self.environment.for_format(stage.format.name)
        names = ("rounding", "overflow", "tininess", "infinite_input", "daz", "ftz", "nan", "sr_bits")
        names += "sr_method", "projection"
        options = {name: getattr(found, name) for name in names}
        if conversion and found.converts_subnormals:
            options |= {"daz": False, "ftz": False}
        for name in ("rounding", "overflow", "tininess", "daz", "ftz"):
            if getattr(stage, name) is not None:
                options[name] = getattr(stage, name)
        if self.how.nan is not None:
            options["nan"] = self.how.nan
        return options

    def read(self, code: int, fmt: Format, daz: bool) -> Value:
        """What a code means; under `daz` a subnormal is a zero of its sign."""
        x = reference.decode(code, fmt)
        tiny = x.kind is Kind.FINITE and x.magnitude < Fraction(2) ** fmt.emin
        return x._replace(magnitude=Fraction(0)) if daz and tiny else x

    def round(self, site: int, stage: Stage, x: Value, conversion: bool = False) -> tuple[int, Value, int]:
        """(code, value as it is read again, flags of this rounding)."""
        options = self.settings(stage, conversion)
        if options["rounding"].draws:
            width = 1 if options["rounding"] is Rounding.UP_OR_DOWN else options["sr_bits"] or 52
            seed = self.environment.seed or 0
            options["random_bits"] = draw(seed, self.stream, self.index, site, self.steps[site], width)
        self.steps[site] += 1
        if conversion and x.is_infinite:
            code, raised = reference.encode(-math.inf if x.negative else math.inf, stage.format, **options)
        else:
            code, raised = reference.round_exact(x, stage.format, **options)
        if stage.always_infinite and raised & OVERFLOW and options["overflow"] is Overflow.INFINITY:
            away = options | {"rounding": Rounding.TOWARD_NEGATIVE if x.negative else Rounding.TOWARD_POSITIVE}
            away.pop("random_bits", None)
            code, raised = reference.round_exact(x, stage.format, **away)
        self.flags |= raised
        return code, self.read(code, stage.format, options["daz"]), raised

    # -- sums

    def exact_sum(self, terms: Sequence[Term], z: Value | None, stage: Stage) -> tuple[Value, bool]:
        """Products and the running sum, if it is one of the terms, exactly or cut; whether bits were cut off."""
        invalid = any(term.value is None and not term.nan for term in terms)
        nan = (z is not None and z.is_nan) or any(term.nan for term in terms)
        told = not nan or NAN_POLICIES[self.settings(self.how.running)["nan"]].product_invalid
        self.flags |= INVALID if invalid and told else 0
        if invalid or nan:
            return NAN, False
        values = [term.value for term in terms if term.value is not None] + ([] if z is None else [z])
        infinite = {x.negative for x in values if x.is_infinite}
        if len(infinite) == 2:
            self.flags |= INVALID
            return NAN, False
        if infinite:
            return Value(Kind.INFINITE, infinite.pop()), False
        total = sum((Fraction(x.real) for x in values), Fraction(0))
        return self.signed(total, values, stage, z is not None and len(terms) == 1), False

    def aligned_sum(self, terms: Sequence[Term], z: Value | None, stage: Stage, how: Alignment) -> tuple[Value, bool]:
        """As `exact_sum`, of terms that are cut; z is None for a block that is summed on its own."""
        exact, _ = self.exact_sum(terms, z, stage)
        if exact.is_nan or exact.is_infinite:
            return exact, False
        values = [term.value for term in terms if term.value is not None]
        assert len(values) == len(terms)
        groups = [range(first, first + how.group) for first in range(0, len(terms), how.group)]
        parts = [sum((Fraction(values[k].real) for k in group), Fraction(0)) for group in groups]
        if how.limit is not None:
            beyond = {x < 0 for x in parts if abs(x) >= Fraction(2) ** how.limit}
            if len(beyond) == 2:
                self.flags |= INVALID
                return NAN, False
            if beyond:
                return Value(Kind.INFINITE, beyond.pop()), False
        shared = self.how.scale_exponent
        exponents = [terms[group[0]].exponent if how.group == 1 else shared for group in groups]
        addend = Fraction(0) if z is None else Fraction(z.real)
        own = how.zeros if z is not None and not addend else None
        if z is not None and addend:
            own = exponent_of(z, stage.format)
        lost = []

        def kept(x: Fraction, largest: int | None, bits: int, rounding: Rounding) -> Fraction:
            y = x / Fraction(2) ** ((largest or 0) - bits)
            n = math.floor(y) if rounding is Rounding.TOWARD_NEGATIVE else math.trunc(y)
            if rounding is Rounding.TO_ODD and n != y and n % 2 == 0:
                n += 1 if y > 0 else -1
            lost.append(n != y)
            return n * Fraction(2) ** ((largest or 0) - bits)

        def highest(found: Sequence[int | None]) -> int | None:
            return max((e for e in (*found, how.least) if e is not None), default=None)

        if how.includes_addend:
            largest = highest([*exponents, own])
            total = sum((kept(x, largest, how.terms, how.cut) for x in [*parts, addend]), Fraction(0))
        else:
            halves = [slice(0, None, 2), slice(1, None, 2)] if how.halves else [slice(None)]
            tops = [highest(exponents[half]) for half in halves]
            sums = [
                sum((kept(x, top, how.terms, how.cut) for x in parts[half]), Fraction(0))
                for half, top in zip(halves, tops, strict=True)
            ]
            largest = highest(tops)
            if how.halves:
                sums = [kept(x, largest, how.terms, how.sum_cut) for x in sums]
            total = sum(sums, Fraction(0))
            if z is not None:
                assert how.sum is not None
                assert how.addend is not None
                largest = highest([largest, own])
                total = kept(total, largest, how.sum, how.sum_cut)
                below = how.drop_addend_below
                far = below is not None and largest is not None and (own is None or own < largest - below)
                lost.append(far and addend != 0)
                total += kept(Fraction(0) if far else addend, largest, how.addend, how.sum_cut)
        single = z is not None and len(terms) == 1
        return self.signed(total, [*values, *([] if z is None else [z])], stage, single), any(lost)

    def signed(self, total: Fraction, values: Sequence[Value], stage: Stage, single: bool) -> Value:
        """A sum and its sign: IEEE 754-2019 6.3 says that of two operands; of more, an exact zero is as of unlike ones."""
        if total:
            return Value(Kind.FINITE, total < 0, abs(total))
        if len({x.negative for x in values}) == 1 and (single or self.how.keeps_zero_sign):
            return Value(Kind.FINITE, values[0].negative)
        return Value(Kind.FINITE, self.settings(stage)["rounding"] is Rounding.TOWARD_NEGATIVE)

    def add(self, site: int, stage: Stage, x: Value, y: Value) -> tuple[int, Value]:
        """x + y, counted as an addition to x."""
        exact, _ = self.exact_sum([Term(y, y.is_nan, 0)], x, stage)
        code, after, raised = self.round(site, stage, exact)
        self.tally.note(x, exact, after, raised)
        return code, after

    # -- the whole

    def product(self, x: Value, y: Value) -> Term:
        if x.is_nan or y.is_nan:
            return Term(None, True, 0)
        zero, infinite = x.is_zero or y.is_zero, x.is_infinite or y.is_infinite
        if zero and infinite:
            return Term(None, False, 0)
        negative = x.negative != y.negative
        if infinite:
            return Term(Value(Kind.INFINITE, negative), False, 0)
        scale, formats = self.how.scale_exponent, (self.how.unpacked or fmt for fmt in self.pair)
        zeros = None if self.how.alignment is None else self.how.alignment.zeros
        own = [zeros if v.is_zero else exponent_of(v, fmt) for v, fmt in zip((x, y), formats, strict=True)]
        exponent = None if None in own else sum(own) + scale
        magnitude = x.magnitude * y.magnitude * Fraction(2) ** scale
        negative = negative and not (self.how.unsigned_zeros and zero)
        return Term(Value(Kind.FINITE, negative, magnitude), False, exponent)

    def rounded_product(self, term: Term, stage: Stage) -> Term:
        self.flags |= INVALID if term.value is None and not term.nan else 0
        _, value, _ = self.round(PRODUCT, stage, NAN if term.value is None else term.value)
        if value.is_nan:
            return Term(None, True, 0)
        return Term(value, False, None if value.is_infinite or value.is_zero else exponent_of(value, stage.format))

    def sum(self, a: Sequence[int], b: Sequence[int], c: int | None, output: Format) -> tuple[int, int]:
        """(code, flags) of the output; the tally is in `tally`."""
        how, partials = self.how, self.how.partials
        for codes, fmt in ((a, self.pair[0]), (b, self.pair[1]), ([] if c is None else [c], partials)):
            signalling = any(reference.decode(code, fmt).signalling for code in codes)
            self.flags |= INVALID if signalling else 0
        last = how.reduction[-1] if how.reduction else how
        memory = last.store or last.running
        code = c or 0
        value = self.read(code, partials, self.settings(memory, conversion=last.store is not None)["daz"])
        if a:
            if self.how.unsigned_zeros and value.is_zero and not reference.decode(code, partials).is_zero:
                value = ZERO
            code, value = self.segments(a, b, None if c is None else value)
        elif value.signalling:
            code, _ = reference.round_exact(NAN, partials, nan=self.settings(memory)["nan"])
        if output != partials:
            code, _, _ = self.round(RESULT, Stage(output), value, conversion=True)
        return code, self.flags

    def segments(self, a: Sequence[int], b: Sequence[int], c: Value | None) -> tuple[int, Value]:
        how, count = self.how, len(a)
        fixed = (how.product or how.running).daz if how.daz is None else how.daz
        first, second = (self.environment.for_format(fmt.name).daz if fixed is None else fixed for fmt in self.pair)
        factors = [
            (self.read(x, self.pair[0], first), self.read(y, self.pair[1], second)) for x, y in zip(a, b, strict=True)
        ]
        if how.segment is not None:
            spans = [range(start, min(start + how.segment, count)) for start in range(0, count, how.segment)]
        elif isinstance(how.segments, tuple):
            starts = [sum(how.segments[:i]) for i in range(len(how.segments))]
            spans = [range(start, start + size) for start, size in zip(starts, how.segments, strict=True)]
        else:
            spans = half_open(count, how.segments or 1)
        inside = None if how.reduction else c
        sums = [self.segment([factors[k] for k in span], inside) for span in spans]
        if not how.reduction:
            return sums[0]
        parts = [value for _, value in sums]
        for number, level in enumerate(how.reduction):
            last = number == len(how.reduction) - 1
            made = []
            for section in half_open(len(parts), 1 if last else level.sections or 1):
                total = c if last and c is not None else ZERO
                for part in section:
                    code, total = self.add(LEVEL + 2 * number, level.running, total, parts[part])
                if level.store is not None:
                    code, total, _ = self.round(LEVEL + 2 * number + 1, level.store, total, conversion=True)
                made.append(total)
            parts = made
        return code, parts[0]

    def segment(self, factors: Sequence[tuple[Value, Value]], c: Value | None) -> tuple[int, Value]:
        """The sum of consecutive products from c, or from +0."""
        how = self.how
        block = how.block if how.block != ALL else len(factors)
        unit = math.lcm(len(how.order), block)
        filled = [*factors, *[(ZERO, ZERO)] * (-len(factors) % unit)]
        ordered = [
            self.product(*filled[group + place])
            for group in range(0, len(filled), len(how.order))
            for place in how.order
        ]
        if how.tree and block == 1:
            return self.tree(ordered, c)
        if how.fixed is not None:
            return self.register(ordered, ZERO if c is None else c)
        if how.compensation is not None:
            return self.compensated(ordered, ZERO if c is None else c)
        running = [ZERO] * how.chains
        if how.chains == 1 and c is not None:
            running[0] = c
        stored, code = running[0], 0
        for number, first in enumerate(range(0, len(ordered), block)):
            chain = number % how.chains
            terms = ordered[first : first + block]
            before = running[chain]
            if how.tree:
                code, running[chain] = self.add(RUNNING, how.running, before, self.tree(terms)[1])
            elif how.block_sum is not None:
                alone, cut = self.block(terms, None, how.block_sum)
                _, alone, _ = self.round(PRODUCT, how.block_sum, alone)
                self.flags |= INEXACT if cut else 0
                code, running[chain] = self.add(RUNNING, how.running, before, alone)
            else:
                if how.product is not None:
                    terms = [self.rounded_product(term, how.product) for term in terms]
                exact, cut = self.block(terms, before, how.running)
                code, running[chain], raised = self.round(RUNNING, how.running, exact)
                self.flags |= INEXACT if cut else 0
                if how.positive_zeros and running[chain].is_zero:
                    code, running[chain] = 0, ZERO
                self.tally.note(before, exact, running[chain], raised, cut)
            done = first + block
            if how.store is not None and (done % how.store_every == 0 or done == len(ordered)):
                exact = running[0]
                code, running[0], raised = self.round(STORE, how.store, exact, conversion=True)
                self.tally.note(stored, exact, running[0], raised)
                stored = running[0]
        total = running[0]
        joined = running[1:] if c is None or how.chains == 1 else [*running[1:], c]
        for other in joined:
            code, total = self.add(RUNNING, how.running, total, other)
        return code, total

    def register(self, terms: Sequence[Term], c: Value) -> tuple[int, Value]:
        """A fixed-point sum: an integer that counts multiples of the last bit's weight, None once it is no number."""
        how = self.how.fixed
        assert how is not None
        unit, half = Fraction(2) ** how.last, 2 ** (how.bits - 1)
        count: int | None = 0
        for number, term in enumerate([Term(None if c.is_nan else c, c.is_nan, None), *terms]):
            before, raised, lost, exact = count, 0, False, NAN
            if term.value is None or term.value.is_infinite:
                raised, count = 0 if term.nan else INVALID, None
            elif count is not None:
                y = Fraction(term.value.real) / unit
                n = math.floor(y) if how.cut is Rounding.TOWARD_NEGATIVE else math.trunc(y)
                total = count * unit + Fraction(term.value.real)
                exact = Value(Kind.FINITE, total < 0, abs(total))
                lost, count = n != y, count + n
                raised = INEXACT if lost else 0
                if not -half <= count < half:
                    raised |= OVERFLOW | INEXACT
                    saturated = half - 1 if count > 0 else -half
                    count = saturated if how.overflow == "saturate" else (count + half) % (2 * half) - half
            else:
                y = None if term.value is None else Fraction(term.value.real) / unit
                raised = INEXACT if y is not None and y.denominator != 1 else 0
                lost = bool(raised)
            self.flags |= raised
            if number:
                values = [NAN if x is None else Value(Kind.FINITE, x < 0, abs(x) * unit) for x in (before, count)]
                self.tally.note(values[0], exact, values[1], raised, lost)
        total = NAN if count is None else Value(Kind.FINITE, count < 0, abs(count) * unit)
        code, value, _ = self.round(RUNNING, self.how.running, total)
        return code, value

    def compensated(self, terms: Sequence[Term], c: Value) -> tuple[int, Value]:
        """Sums whose errors are made up for, in the operations of the method's paper."""
        stage, error, total, code = self.how.running, ZERO, c, 0

        def plus(x: Value, y: Value) -> Value:
            exact, _ = self.exact_sum([Term(None if y.is_nan else y, y.is_nan, None)], x, stage)
            return self.round(RUNNING, stage, exact)[1]

        def minus(x: Value, y: Value) -> Value:
            return plus(x, y._replace(negative=not y.negative))

        for term in terms:
            x = self.rounded_product(term, self.how.product).value or NAN
            s = total
            if self.how.compensation == "kahan":
                y = minus(x, error)
                code, total = self.add(RUNNING, stage, s, y)
                error = minus(minus(total, s), y)
            elif self.how.compensation == "neumaier":
                code, total = self.add(RUNNING, stage, s, x)
                first = not (s.is_nan or x.is_nan) and abs(s.real) >= abs(x.real)
                u, v = (s, x) if first else (x, s)
                error = plus(error, plus(minus(u, total), v))
            else:
                t = plus(s, x)
                of_x = minus(t, s)
                of_s = minus(t, of_x)
                x_error = minus(x, of_x)
                d = plus(minus(s, of_s), x_error)
                v = plus(d, error)
                code, total = self.add(RUNNING, stage, t, v)
                error = minus(v, minus(total, t))
        if self.how.compensation == "neumaier":
            exact, _ = self.exact_sum([Term(None if error.is_nan else error, error.is_nan, None)], total, stage)
            code, total, _ = self.round(RUNNING, stage, exact)
        return code, total

    def block(self, terms: Sequence[Term], before: Value | None, stage: Stage) -> tuple[Value, bool]:
        """What is to be rounded of a block, and whether bits were cut off."""
        how = self.how.alignment
        if self.how.fraction_bits is not None:
            how = Alignment(self.how.fraction_bits)
        return self.exact_sum(terms, before, stage) if how is None else self.aligned_sum(terms, before, stage, how)

    def tree(self, terms: Sequence[Term], c: Value | None = None) -> tuple[int, Value]:
        """Leaves added as soon as two sums of as many leaves stand side by side; in the end what is left, from the right."""
        how = self.how
        assert how.product is not None
        stack: list[tuple[int, int, Value]] = []  # leaves, code, sum

        def join() -> None:
            (n, _, left), (m, _, right) = stack[-2:]
            stack[-2:] = [(n + m, *self.add(RUNNING, how.running, left, right))]

        for first in range(0, len(terms), how.leaf):
            term = terms[first]
            if how.leaf > 1:
                exact, _ = self.exact_sum(terms[first : first + how.leaf], None, how.product)
            else:
                self.flags |= INVALID if term.value is None and not term.nan else 0
                exact = NAN if term.value is None else term.value
            code, value, _ = self.round(PRODUCT, how.product, exact)
            stack.append((1, code, value))
            while len(stack) > 1 and stack[-2][0] == stack[-1][0]:
                join()
        while len(stack) > 1:
            join()
        leaves, code, total = stack[0]
        if c is not None:
            return self.add(RUNNING, how.running, total, c)
        if leaves == 1 and how.block == 1 and how.product.format != how.running.format:
            code, total, _ = self.round(RUNNING, how.running, total)
        return code, total
