"""One output of a dot product on exact fractions: where it rounds, with which random number, and its flags so far.

The operations that `dots` and `units` put together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from softfloat.formats import ROSTER, Format
from softfloat.kernels.spec import DRAWN, Rounding
from softfloat.reference.arithmetic import exact_fused, exact_product, exact_sum
from softfloat.reference.conversions import converted
from softfloat.reference.rounding import (
    default_nan,
    infinity_code,
    invalid_result,
    options_of,
    propagated,
    round_once,
    rules_for,
)
from softfloat.reference.values import (
    INEXACT,
    INVALID,
    OVERFLOW,
    Exact,
    Kind,
    Options,
    Result,
    Value,
    decode,
    emin_of,
    exponent_of,
    operand_of,
    two_to,
)

__all__ = ["philox"]

HALF, SINGLE = ROSTER["float16"], ROSTER["float32"]

Codes = Sequence[int]
Pair = tuple[Format, Format]


# -- random numbers --------------------------------------------------------------------------------------------------

PRODUCT, RUNNING, STORE, RESULT, LEVEL = 0, 1, 2, 3, 4
"""Where an output rounds. Level l of a reduction has LEVEL + 2 * l for its additions and the number after for its stores."""

WORD = 2**32


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC11)."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, WORD)
        high1, low1 = divmod(0xCD9E8D57 * c2, WORD)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % WORD, (k1 + 0xBB67AE85) % WORD
    return c0, c1, c2, c3


def random_bits_of(seed: int, stream: int, index: int, site: int, step: int, width: int) -> int:
    """The top `width` bits of the 52 that belong to one rounding: 16 out of the eight half-words of a block, then 36."""
    key = (seed % WORD, seed // WORD)

    def words(plane: int, block: int) -> tuple[int, int, int, int]:
        return philox((index % WORD, plane | site << 26 | block, stream % WORD, stream // WORD), key)

    shared = words(0x40000000, step // 8)
    half_words = [word % 2**16 for word in shared] + [word // 2**16 for word in shared]
    own = words(0xC0000000, step // 2)
    first, second = own[:2] if step % 2 == 0 else own[2:]
    low = first << 4 | second >> 28
    return (half_words[step % 8] << 36 | low) >> (52 - width)


# -- one output ------------------------------------------------------------------------------------------------------


class Site(NamedTuple):
    """A place where values are rounded: its number, the format, and what holds there whatever the call says."""

    number: int
    fmt: Format
    fixed: Mapping[str, Any] = {}
    always_infinite: bool = False  # overflow is infinite where the rounding mode would stay finite, too


class Number(NamedTuple):
    """A value in a format, and whether a subnormal counts as zero when it is read."""

    code: int
    fmt: Format
    daz: bool

    @property
    def value(self) -> Value:
        """What it means to an operation."""
        return operand_of(self.code, self.fmt, options_of({"daz": self.daz}))


class Term(NamedTuple):
    """A product's factors, and its exponent: the sum of theirs, a subnormal's being `emin` of its format."""

    x: Value
    y: Value
    exponent: int

    @property
    def is_invalid(self) -> bool:
        """Whether it is inf * 0."""
        return (self.x.is_infinite and self.y.is_zero) or (self.x.is_zero and self.y.is_infinite)


Summed = tuple["Fraction | float | None", bool]
"""An exact sum, infinite as a float, None if it is invalid; and whether bits were cut off."""
ZERO = Value(Kind.FINITE, negative=False)
FILL = Term(ZERO, ZERO, 0)
"""A product +0, which completes a group."""


def exponent_in(fmt: Format, x: Value) -> int:
    return max(exponent_of(x.magnitude), emin_of(fmt)) if x.magnitude else emin_of(fmt)


class Output:
    """One element of the output: the options, the roundings made so far at each site, and the flags so far.

    Without `payloads`, every NaN is the default one: where several products or sums meet, none comes first.
    """

    def __init__(self, options: dict[str, Any], nan: str | None = None, payloads: bool = True) -> None:
        options = dict(options)
        self.seed, self.stream, self.index = (options.pop(name, 0) for name in ("seed", "stream", "index"))
        self.out_format = options.pop("out_format", None)
        self.overrides = options.pop("overrides", {})
        self.options = options
        self.nan = nan
        self.payloads = payloads
        self.steps: Counter[int] = Counter()
        self.flags = 0
        self.signed_zeros = False  # whether a zero total keeps the sign that all its terms have

    # -- options, and numbers on their way in and out

    def settings(self, site: Site) -> dict[str, Any]:
        """The options of roundings at a site."""
        forced = {} if self.nan is None else {"nan": self.nan}
        return {**self.overrides.get(site.fmt.name, self.options), **site.fixed, **forced}

    def next_rules(self, site: Site) -> Options:
        """The rules of the next rounding at a site, its random number included."""
        settings = self.settings(site)
        step = self.steps[site.number]
        self.steps[site.number] += 1
        rules = options_of(settings)
        if rules.rounding in DRAWN:
            width = rules.random_width
            settings["random_bits"] = random_bits_of(self.seed, self.stream, self.index, site.number, step, width)
        return rules_for(site.fmt, settings)

    def daz(self, site: Site) -> bool:
        """Whether subnormals read at a site count as zero."""
        return bool(self.settings(site).get("daz", False))

    def reads(self, site: Site | bool, fmt: Format) -> bool:
        """Whether subnormal operands count as zero: as is told, or as a site fixes it, else as options of their format say."""
        if isinstance(site, bool):
            return site
        return bool(site.fixed.get("daz", self.overrides.get(fmt.name, self.options).get("daz", False)))

    def terms(
        self,
        a: Codes,
        b: Codes,
        fmts: Pair,
        site: Site | bool,
        unpacked: Format | None = None,
        zeros: int | None = None,
    ) -> list[Term]:
        """The factors of each product; exponents are those they have once `unpacked` to another format, of zeros as given."""
        first, second = fmts
        one, other = self.reads(site, first), self.reads(site, second)
        factors = [(Number(i, first, one).value, Number(j, second, other).value) for i, j in zip(a, b, strict=True)]

        def own(x: Value, fmt: Format) -> int:
            return zeros if zeros is not None and x.is_zero else exponent_in(unpacked or fmt, x)

        return [Term(x, y, own(x, first) + own(y, second)) for x, y in factors]

    def start(self, c: int | None, site: Site, fmt: Format | None = None) -> Number:
        """c, which comes in `fmt` (that of the site, unless named) and is read at the site; or +0."""
        number = Number(0 if c is None else c, fmt or site.fmt, self.daz(site))
        self.flags |= INVALID if number.value.signalling else 0
        return number

    def deliver(self, total: Number) -> Result:
        """The output and all its flags. A sum is quiet: a signalling NaN is the addend of no products."""
        if total.value.signalling:
            rules = Options(nan=self.settings(Site(RUNNING, total.fmt)).get("nan", "canonical"))
            total = total._replace(code=propagated([total.value], total.fmt, rules)[0])
        if self.out_format not in (None, total.fmt):
            total = self.convert(Site(RESULT, self.out_format), total)
        return total.code, self.flags

    # -- operations that round once

    def _rounded(self, site: Site, rules: Options, result: Result) -> Number:
        code, flags = result
        if site.always_infinite and flags & OVERFLOW:
            code = infinity_code(bool(code & site.fmt.sign_bit), site.fmt, rules)
        if not self.payloads and decode(code, site.fmt).is_nan:
            code = default_nan(site.fmt, rules)
        self.flags |= flags
        return Number(code, site.fmt, rules.daz)

    def _operation(self, site: Site, rules: Options, exact: Callable[..., Exact], *values: Value) -> Number:
        fmt = site.fmt
        if any(x.is_nan for x in values):
            return self._rounded(site, rules, propagated(values, fmt, rules))
        value, _ = exact(*values, rules)
        return self._rounded(
            site, rules, invalid_result(fmt, rules) if value is None else round_once(value, fmt, rules)
        )

    def multiply(self, site: Site, term: Term) -> Number:
        """x * y (IEEE 754-2019 5.4.1)."""
        return self._operation(site, self.next_rules(site), exact_product, term.x, term.y)

    def add(self, site: Site, x: Number, y: Number) -> Number:
        """x + y (IEEE 754-2019 5.4.1)."""
        return self._operation(site, self.next_rules(site), exact_sum, x.value, y.value)

    def subtract(self, site: Site, x: Number, y: Number) -> Number:
        """x - y (IEEE 754-2019 5.4.1)."""
        minus = y.value._replace(negative=not y.value.negative)
        return self._operation(site, self.next_rules(site), exact_sum, x.value, minus)

    def settle(self, site: Site, value: Value) -> Number:
        """An exact value, or NaN, rounded."""
        rules = self.next_rules(site)
        if value.is_nan:
            _, flags = propagated([value], site.fmt, rules)
            return self._rounded(site, rules, (default_nan(site.fmt, rules), flags))
        return self._rounded(site, rules, round_once(value, site.fmt, rules))

    def fuse(self, site: Site, term: Term, addend: Number) -> Number:
        """x * y + z (IEEE 754-2019 5.4.1), NaNs as in `reference.fma`."""
        rules, z = self.next_rules(site), addend.value
        policy = rules.policy_for(site.fmt)
        addend_signals = policy.addend_first and z.is_nan and z.signalling
        if policy.product_invalid and term.is_invalid and not addend_signals:
            return self._rounded(site, rules, invalid_result(site.fmt, rules))
        if policy.addend_first and z.is_nan:
            return self._rounded(site, rules, propagated([z, term.x, term.y], site.fmt, rules))
        return self._operation(site, rules, exact_fused, term.x, term.y, z)

    def block(
        self,
        site: Site,
        terms: Sequence[Term],
        running: Number,
        fraction_bits: int | None = None,
        zeros: int | None = None,
        floor: int | None = None,
    ) -> Number:
        """Several products and the running sum, added exactly and rounded once.

        With `fraction_bits`, each magnitude is first truncated to that many fraction bits below the largest exponent.
        The running sum's exponent is that of a number of the site's format. Zeros have an exponent too if `zeros` says which,
        and no exponent counts as less than `floor`.
        """
        rules = self.next_rules(site)
        return self._rounded(site, rules, _block(site.fmt, rules, terms, running.value, fraction_bits, zeros, floor))

    def total(
        self, site: Site, terms: Sequence[Term], addend: Sequence[Number], summed: Callable[[list[Fraction]], Summed]
    ) -> Number:
        """Products, and an addend if there is one, rounded once; `summed` says what their sum is, and whether bits were lost."""
        rules, values = self.next_rules(site), [x.value for x in addend]
        special = _special(site.fmt, rules, terms, values)
        if special is not None:
            return self._rounded(site, rules, special)
        products = [product for term in terms if (product := exact_product(term.x, term.y, rules)[0])]
        every = [*products, *values]
        exact, lost = summed([Fraction(x.real) for x in every])
        if exact is None:
            return self._rounded(site, rules, invalid_result(site.fmt, rules))
        if isinstance(exact, float):
            return self._rounded(site, rules, round_once(Value(Kind.INFINITE, exact < 0), site.fmt, rules))
        negative = exact < 0 or (exact == 0 and rules.rounding is Rounding.TOWARD_NEGATIVE)
        if self.signed_zeros and not exact and len({x.negative for x in every}) == 1:
            negative = every[0].negative
        code, flags = round_once(Value(Kind.FINITE, negative, abs(exact)), site.fmt, rules)
        return self._rounded(site, rules, (code, flags | (INEXACT if lost else 0)))

    def convert(self, site: Site, number: Number) -> Number:
        """The number in the site's format (IEEE 754-2019 5.4.2); infinities as `infinite_input` says."""
        rules = self.next_rules(site)
        return self._rounded(site, rules, converted(number.value, site.fmt, rules))


def _special(fmt: Format, rules: Options, terms: Sequence[Term], addend: Sequence[Value]) -> Result | None:
    """The sum of products and at most one addend where an operand is no finite number."""
    operands = [x for term in terms for x in (term.x, term.y)] + [*addend]
    invalid = any(term.is_invalid for term in terms)
    if any(x.is_nan for x in operands):
        _, flags = propagated(operands, fmt, rules)
        return default_nan(fmt, rules), flags | (INVALID if invalid and rules.policy_for(fmt).product_invalid else 0)
    products = [product for term in terms if (product := exact_product(term.x, term.y, rules)[0])]
    infinities = {x.negative for x in [*products, *addend] if x.is_infinite}
    if invalid or len(infinities) == 2:
        return invalid_result(fmt, rules)
    if infinities:
        return round_once(Value(Kind.INFINITE, infinities.pop()), fmt, rules)
    return None


def _block(
    fmt: Format,
    rules: Options,
    terms: Sequence[Term],
    z: Value,
    fraction_bits: int | None,
    zeros: int | None,
    floor: int | None,
) -> Result:
    special = _special(fmt, rules, terms, [z])
    if special is not None:
        return special
    products = [product for term in terms if (product := exact_product(term.x, term.y, rules)[0])]
    numbers = [Fraction(x.real) for x in [*products, z]]
    own = exponent_in(fmt, z) if z.magnitude or zeros is None else zeros
    empty = 0 if zeros is None else 2 * zeros  # of a product that completes the block
    exponents = [empty if term.x.is_zero and term.y.is_zero else term.exponent for term in terms] + [own]
    total, lost = sum(numbers, Fraction(0)), 0
    if fraction_bits is not None and any(numbers):
        counted = [e for e, x in zip(exponents, numbers, strict=True) if x or zeros is not None]
        largest = max(*counted, floor) if floor is not None else max(counted)
        unit = two_to(largest - fraction_bits)
        cut = sum((math.trunc(x / unit) * unit for x in numbers), Fraction(0))
        lost = 0 if all((x / unit).denominator == 1 for x in numbers) else INEXACT
        total = cut
    negative = total < 0 or (total == 0 and rules.rounding is Rounding.TOWARD_NEGATIVE)
    if total == 0 and len(products) == 1 and products[0].negative == z.negative:  # IEEE 754-2019 6.3
        negative = z.negative
    code, flags = round_once(Value(Kind.FINITE, negative, abs(total)), fmt, rules)
    return code, flags | lost


def groups(terms: Sequence[Term], length: int) -> Iterator[list[Term]]:
    """Groups of a length, the last one filled with products +0."""
    for first in range(0, len(terms), length):
        group = list(terms[first : first + length])
        yield group + [FILL] * (length - len(group))
