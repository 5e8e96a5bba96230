"""A dot product one rounding at a time: what each step was to be, what it became, and what it lost.

>>> from softfloat.accumulators import fma
>>> found = sum_in_steps([0x6800, 0x3C00, 0x3C00], [0x3C00, 0x3C00, 0x3C00], "float16", fma("float16"))
>>> found.code, found.exact, [str(step.lost) for step in found.steps]
(26624, Fraction(2050, 1), ['0', '1', '1'])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, NamedTuple

from softfloat.accumulators import Accumulator, Stage
from softfloat.accumulators.accumulator import ALL, Alignment
from softfloat.environments import Rounding, as_rounding
from softfloat.formats import Format, check_format
from softfloat.reference.arithmetic import exact_fused, exact_product, exact_sum
from softfloat.reference.conversions import converted
from softfloat.reference.rounding import infinity_code, invalid_result, propagated, round_once, rules_for
from softfloat.reference.values import Exact, Kind, Options, Value, decode, emin_of, exponent_of, operand_of, two_to
from softfloat.status import Flags

__all__ = ["Step", "SteppedSum", "sum_in_steps"]


@dataclass(frozen=True)
class Step:
    """One rounding of a sum.

    Attributes
    ----------
    what : str
        Which products or sums meet.
    exact : Fraction or None
        What was rounded; None where that is infinite or no number.
    code : int
        What it became, in `format`.
    format : Format
    lost : Fraction or None
        `exact` less the value of `code`; None where either is not finite.
    flags : Flags
        What the rounding raised; INEXACT too for bits that an alignment cut.
    """

    what: str
    exact: Fraction | None
    code: int
    format: Format
    lost: Fraction | None
    flags: Flags


@dataclass(frozen=True)
class SteppedSum:
    """A dot product and all its roundings.

    Attributes
    ----------
    code : int
        The result, in `format`.
    format : Format
    flags : Flags
        Everything that was raised.
    exact : Fraction
        The sum without any rounding, subnormal operands as they are.
    lost : Fraction or None
        `exact` less the result; None if that is not finite.
    steps : tuple of Step
        In the order of the unit; products +0 that complete a group are shown only where they change something.
    """

    code: int
    format: Format
    flags: Flags
    exact: Fraction
    lost: Fraction | None
    steps: tuple[Step, ...]


class _Number(NamedTuple):
    code: int
    fmt: Format
    daz: bool

    @property
    def value(self) -> Value:
        return operand_of(self.code, self.fmt, Options(daz=self.daz))


class _Term(NamedTuple):
    place: int  # of the product, from 1; 0 for one that fills a group
    x: Value
    y: Value
    exponent: int


ZERO = Value(Kind.FINITE, negative=False)
FILL = _Term(0, ZERO, ZERO, 0)


def _finite(value: Value | None) -> Fraction | None:
    return Fraction(value.real) if value is not None and value.kind is Kind.FINITE else None


def _exponent_in(fmt: Format, x: Value) -> int:
    return max(exponent_of(x.magnitude), emin_of(fmt)) if x.magnitude else emin_of(fmt)


def _named(terms: Sequence[_Term]) -> str:
    """Which products these are, in few words."""
    places = sorted(term.place for term in terms if term.place)
    if not places:
        return "+0"
    if len(places) == 1:
        return f"product {places[0]}"
    if places == list(range(places[0], places[-1] + 1)):
        return f"products {places[0]} to {places[-1]}"
    return f"products {', '.join(map(str, places))}"


class _Sum:
    """The roundings made so far."""

    def __init__(self, accumulator: Accumulator, options: dict[str, Any]) -> None:
        self.accumulator, self.options = accumulator, options
        self.steps: list[Step] = []
        self.flags = 0

    def rules(self, stage: Stage) -> Options:
        fixed = {name: getattr(stage, name) for name in ("rounding", "overflow", "daz", "ftz", "tininess")}
        settings = self.options | {name: value for name, value in fixed.items() if value is not None}
        return rules_for(stage.format, settings | ({"nan": self.accumulator.nan} if self.accumulator.nan else {}))

    def start(self, stage: Stage) -> _Number:
        return _Number(0, stage.format, self.rules(stage).daz)

    def record(
        self, what: str, stage: Stage, exact: Fraction | None, result: tuple[int, int], before: int | None = None
    ) -> _Number:
        """The number of a rounding; a step unless it is one of +0 alone that leaves `before` as it is."""
        rules, fmt = self.rules(stage), stage.format
        code, raised = result
        if stage.always_infinite and raised & Flags.OVERFLOW:
            code = infinity_code(bool(code & fmt.sign_bit), fmt, rules)
        self.flags |= raised
        value = _finite(decode(code, fmt))
        lost = None if exact is None or value is None else exact - value
        if before is None or code != before or raised:
            self.steps.append(Step(what, exact, code, fmt, lost, Flags(raised)))
        return _Number(code, fmt, rules.daz)

    def operate(
        self, what: str, stage: Stage, exact: Callable[..., Exact], values: Sequence[Value], before: int | None = None
    ) -> _Number:
        rules, fmt = self.rules(stage), stage.format
        if any(x.is_nan for x in values):
            return self.record(what, stage, None, propagated(values, fmt, rules), before)
        value, _ = exact(*values, rules)
        result = invalid_result(fmt, rules) if value is None else round_once(value, fmt, rules)
        return self.record(what, stage, _finite(value), result, before)

    def convert(self, what: str, stage: Stage, number: _Number) -> _Number:
        result = converted(number.value, stage.format, self.rules(stage))
        return self.record(what, stage, _finite(number.value), result)

    def multiply(self, stage: Stage, term: _Term) -> _Number:
        before = None if term.place else 0
        return self.operate(_named([term]), stage, exact_product, (term.x, term.y), before)

    def add(self, what: str, stage: Stage, x: _Number, y: _Number, fill: bool = False) -> _Number:
        return self.operate(what, stage, exact_sum, (x.value, y.value), x.code if fill else None)

    def meet(self, terms: Sequence[_Term], running: _Number) -> _Number:
        """A block of products and the running sum."""
        how = self.accumulator
        stage, what = how.running, f"+ {_named(terms)}"
        fill = not any(term.place for term in terms)
        before = running.code if fill else None
        if how.product is not None:
            product = self.multiply(how.product, terms[0])
            return self.add(what, stage, running, product, fill)
        aligned = how.aligned
        if len(terms) == 1 and aligned is None:
            return self.operate(what, stage, exact_fused, (terms[0].x, terms[0].y, running.value), before)
        z, rules = running.value, self.rules(stage)
        if z.kind is not Kind.FINITE:
            result = (
                propagated([z], stage.format, rules)
                if z.is_nan
                else round_once(Value(Kind.INFINITE, z.negative), stage.format, rules)
            )
            return self.record(what, stage, None, result, before)
        products = [exact_product(term.x, term.y, rules)[0] for term in terms]
        numbers = [Fraction(x.real) for x in [*products, z] if x is not None]
        total, kept, cut = sum(numbers, Fraction(0)), sum(numbers, Fraction(0)), False
        if aligned is not None and any(numbers):
            exponents = [term.exponent for term in terms] + [_exponent_in(stage.format, z)]
            counted = [e for e, x in zip(exponents, numbers, strict=True) if x]
            unit = two_to(max(*counted, counted[0] if aligned.least is None else aligned.least) - aligned.terms)
            parts = [math.trunc(x / unit) * unit for x in numbers]
            kept, cut = sum(parts, Fraction(0)), parts != numbers
        negative = kept < 0 or (kept == 0 and rules.rounding is Rounding.TOWARD_NEGATIVE)
        if kept == 0 and len(products) == 1 and products[0] is not None and products[0].negative == z.negative:
            negative = z.negative
        code, raised = round_once(Value(Kind.FINITE, negative, abs(kept)), stage.format, rules)
        if how.positive_zeros and decode(code, stage.format).is_zero:
            code = 0
        return self.record(what, stage, total, (code, raised | (Flags.INEXACT if cut else 0)), before)

    def section(self, terms: Sequence[_Term]) -> _Number:
        """Blocks one after the other, from +0; the running sum stored every so often, and at the end."""
        how, total = self.accumulator, self.start(self.accumulator.store or self.accumulator.running)
        block = how.block if how.block != ALL else max(len(terms), 1)
        unit = math.lcm(len(how.order), block)
        filled = [*terms, *[FILL] * (-len(terms) % unit)]
        placed = [
            group[i] for first in range(0, len(filled), len(how.order))
            for group in [filled[first : first + len(how.order)]] for i in how.order
        ]  # fmt: skip
        for done in range(block, len(placed) + 1, block):
            total = self.meet(placed[done - block : done], total)
            if how.store and (done % how.store_every == 0 or done == len(placed)):
                total = self.convert("stored", how.store, total)
        return total

    def tree(self, terms: Sequence[_Term]) -> _Number:
        """Rounded products in pairs, pairs in pairs, in the order of a binary counter."""
        how, sums = self.accumulator, list[tuple[int, int, int, _Number]]()
        assert how.product is not None

        def merge() -> None:
            (n, first, _, left), (m, _, last, right) = sums[-2:]
            sums[-2:] = [(n + m, first, last, self.add(f"sum of {first} to {last}", how.running, left, right))]

        for term in terms:
            sums.append((1, term.place, term.place, self.multiply(how.product, term)))
            while len(sums) > 1 and sums[-2][0] == sums[-1][0]:
                merge()
        while len(sums) > 1:
            merge()
        total = sums[0][3]
        return total if total.fmt == how.running.format else self.convert("converted", how.running, total)


def _sections(accumulator: Accumulator, terms: Sequence[_Term]) -> Iterator[Sequence[_Term]]:
    length = accumulator.segment or len(terms)
    for first in range(0, len(terms), length):
        yield terms[first : first + length]


KNOWN = {
    "name", "running", "inputs", "product", "block", "fraction_bits", "alignment", "positive_zeros", "store", "store_every",
    "order", "tree", "segment", "reduction", "channel_group", "daz", "unpacked", "result", "nan", "note", "source",
}  # fmt: skip
"""Fields of accumulators that the steps take in."""


def _is_known(how: Accumulator) -> bool:
    """Whether all that the accumulator says is shown."""
    others = (field for field in fields(how) if field.name not in KNOWN)
    levels = len(how.reduction) > 1 or any(level.sections is not None for level in how.reduction)
    aligned = how.aligned
    other = aligned is not None and (
        how.product is not None or aligned != Alignment(aligned.terms, least=aligned.least)
    )
    return not (levels or other or (how.tree and how.block != 1)) and all(
        getattr(how, field.name) == field.default for field in others
    )


def sum_in_steps(
    a: Sequence[int], b: Sequence[int], fmt: Format | str, accumulator: Accumulator, **options: Any
) -> SteppedSum:
    """The dot product of two vectors of finite codes, rounding by rounding.

    Parameters
    ----------
    a, b : sequences of int
        Codes in `fmt`, at least one, as many in both.
    fmt : Format
    accumulator : Accumulator
        One running sum or a tree of products; blocks that are exact or cut to
        so many fraction bits, with a floor of exponents or without; stores, segments of a length, one reduction.
    **options
        `rounding`, `overflow` and `tininess` as in `reference.Options`, for what the accumulator leaves open.

    Returns
    -------
    SteppedSum
        Its code and flags are those of `bits.vecdot`.

    Raises
    ------
    ValueError
        For operands that are not finite, or that the accumulator does not take; for accumulators outside the above; for
        stochastic rounding, whose random numbers are addressed by seed.
    """
    fmt = check_format(fmt)
    if len(a) != len(b) or not len(a):
        raise ValueError(f"a and b must have the same length, at least 1, got {len(a)} and {len(b)}")
    if accumulator.inputs and fmt not in accumulator.inputs:
        names = ", ".join(repr(x.name) for x in accumulator.inputs)
        raise ValueError(f"fmt must be {names} for {accumulator!r}, got {fmt.name!r}")
    if not _is_known(accumulator):
        raise ValueError(
            f"{accumulator!r} is not shown step by step; accepted: one running sum or a tree of products, blocks exact or with "
            "cut to fraction bits, stores, and segments of a length"
        )
    if as_rounding(options.get("rounding", Rounding.NEAREST_EVEN)).draws:
        raise ValueError(
            "rounding draws a number for every step from a seed, which is not shown here; accepted: any mode but 'stochastic' and 'up_or_down'"
        )
    total = _Sum(accumulator, options)
    read = accumulator.daz
    if read is None:
        read = total.rules(accumulator.product or accumulator.running).daz
    wide, terms = accumulator.unpacked or fmt, []

    def value(code: int) -> Fraction:
        return Fraction(decode(int(code), fmt).real)

    for place, (i, j) in enumerate(zip(a, b, strict=True), 1):
        x, y = _Number(int(i), fmt, read).value, _Number(int(j), fmt, read).value
        if x.kind is not Kind.FINITE or y.kind is not Kind.FINITE:
            raise ValueError(f"product {place} has a factor that is no finite number; accepted: finite numbers")
        terms.append(_Term(place, x, y, _exponent_in(wide, x) + _exponent_in(wide, y)))
    exact = sum((value(i) * value(j) for i, j in zip(a, b, strict=True)), Fraction(0))
    if accumulator.tree:
        found = total.tree(terms)
    elif accumulator.reduction:
        (level,) = accumulator.reduction
        found = total.start(level.store or level.running)
        for place, section in enumerate(_sections(accumulator, terms), 1):
            found = total.add(f"+ segment {place}", level.running, found, total.section(section))
        if level.store:
            found = total.convert("stored", level.store, found)
    else:
        found = total.section(terms)
    output = accumulator.output(fmt, fmt)
    if output != found.fmt:
        found = total.convert("converted", Stage(output), found)
    result = _finite(decode(found.code, found.fmt))
    lost = None if result is None else exact - result
    return SteppedSum(found.code, found.fmt, Flags(total.flags), exact, lost, tuple(total.steps))
