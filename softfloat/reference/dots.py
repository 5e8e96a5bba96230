"""The oracle of dot products: what each preset of `softfloat.accumulators` computes, restated on exact fractions.

It is slow and obvious, shares no arithmetic with the compiled kernels, and keeps its own tables. Operands are two
sequences of codes in the formats `fmts`; a result is `(code, flags)`. Keywords are those of `reference.Options`,
`random_bits` aside, and:

c : int, optional
    The addend, in the format of the partials. Without products it is the result as it stands, but for a signalling NaN,
    which raises INVALID and is quieted.
out_format : Format, optional
    The sum is converted to it in the end.
overrides : mapping of str to dict
    The options, all of them, of roundings into the formats of these names.
seed, stream, index : int
    The address of stochastic rounding; `index` counts the elements of the output.

>>> from softfloat.formats import ROSTER
>>> half, single = ROSTER["float16"], ROSTER["float32"]
>>> fma([0x6800, 0x3C00, 0x3C00], [0x3C00, 0x3C00, 0x3C00], (half, half), half)  # 2048 + 1 + 1: each a tie to even
(26624, 1)
>>> exact([0x6800, 0x3C00, 0x3C00], [0x3C00, 0x3C00, 0x3C00], (half, half), half)
(26625, 0)
>>> [hex(x) for x in tensor_core([0x0001] * 4, [0x3C00] * 4, (half, half), "V100", c=0x4B800000)]  # 2^24 + 4 * 2^-24
['0x4b800000', '0x1']
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from softfloat.formats import ROSTER, Format
from softfloat.kernels.spec import Overflow, Rounding, Tininess
from softfloat.reference.arithmetic import exact_fused, exact_product, exact_sum
from softfloat.reference.conversions import converted
from softfloat.reference.rounding import default_nan, infinity_code, invalid_result, propagated, round_once, rules_for
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

__all__ = [
    "amd_mfma",
    "amp",
    "amx",
    "arm_bfdot",
    "arm_fp8dot",
    "blocks",
    "chains",
    "chunked",
    "exact",
    "fma",
    "mul_add",
    "pairwise",
    "philox",
    "reduced_amp",
    "rvbna",
    "scaled_chunks",
    "scaled_core",
    "scaled_exact",
    "slic",
    "tensor_core",
    "vdpbf16ps",
    "vdpphps",
]

HALF, SINGLE = ROSTER["float16"], ROSTER["float32"]
E8M13 = Format("e8m13", exponent_bits=8, mantissa_bits=13)

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


def _random_bits(seed: int, stream: int, index: int, site: int, step: int, width: int) -> int:
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
        return operand_of(self.code, self.fmt, Options(daz=self.daz))


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


def _exponent_in(fmt: Format, x: Value) -> int:
    return max(exponent_of(x.magnitude), emin_of(fmt)) if x.magnitude else emin_of(fmt)


class _Output:
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
        rules = Options(**settings)
        if rules.rounding is Rounding.STOCHASTIC:
            width = rules.random_width
            settings["random_bits"] = _random_bits(self.seed, self.stream, self.index, site.number, step, width)
        return rules_for(site.fmt, settings)

    def daz(self, site: Site) -> bool:
        """Whether subnormals read at a site count as zero."""
        return bool(self.settings(site).get("daz", False))

    def terms(self, a: Codes, b: Codes, fmts: Pair, daz: bool, unpacked: Format | None = None) -> list[Term]:
        """The factors of each product; exponents are those they have once `unpacked` to another format."""
        first, second = fmts
        factors = [(Number(i, first, daz).value, Number(j, second, daz).value) for i, j in zip(a, b, strict=True)]
        return [
            Term(x, y, _exponent_in(unpacked or first, x) + _exponent_in(unpacked or second, y)) for x, y in factors
        ]

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

    def fuse(self, site: Site, term: Term, addend: Number) -> Number:
        """x * y + z (IEEE 754-2019 5.4.1), NaNs as in `reference.fma`."""
        rules, z = self.next_rules(site), addend.value
        addend_signals = rules.policy.addend_first and z.is_nan and z.signalling
        if rules.policy.product_invalid and term.is_invalid and not addend_signals:
            return self._rounded(site, rules, invalid_result(site.fmt, rules))
        if rules.policy.addend_first and z.is_nan:
            return self._rounded(site, rules, propagated([z, term.x, term.y], site.fmt, rules))
        return self._operation(site, rules, exact_fused, term.x, term.y, z)

    def block(self, site: Site, terms: Sequence[Term], running: Number, fraction_bits: int | None = None) -> Number:
        """Several products and the running sum, added exactly and rounded once.

        With `fraction_bits`, each magnitude is first truncated to that many fraction bits below the largest exponent.
        The running sum's exponent is that of a number of the site's format.
        """
        rules = self.next_rules(site)
        return self._rounded(site, rules, _block(site.fmt, rules, terms, running.value, fraction_bits))

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
        return default_nan(fmt, rules), flags | (INVALID if invalid and rules.policy.product_invalid else 0)
    products = [product for term in terms if (product := exact_product(term.x, term.y, rules)[0])]
    infinities = {x.negative for x in [*products, *addend] if x.is_infinite}
    if invalid or len(infinities) == 2:
        return invalid_result(fmt, rules)
    if infinities:
        return round_once(Value(Kind.INFINITE, infinities.pop()), fmt, rules)
    return None


def _block(fmt: Format, rules: Options, terms: Sequence[Term], z: Value, fraction_bits: int | None) -> Result:
    special = _special(fmt, rules, terms, [z])
    if special is not None:
        return special
    products = [product for term in terms if (product := exact_product(term.x, term.y, rules)[0])]
    numbers = [Fraction(x.real) for x in [*products, z]]
    exponents = [term.exponent for term in terms] + [_exponent_in(fmt, z)]
    total, lost = sum(numbers, Fraction(0)), 0
    if fraction_bits is not None and any(numbers):
        largest = max(e for e, x in zip(exponents, numbers, strict=True) if x)
        unit = two_to(largest - fraction_bits)
        cut = sum((math.trunc(x / unit) * unit for x in numbers), Fraction(0))
        lost = 0 if all((x / unit).denominator == 1 for x in numbers) else INEXACT
        total = cut
    negative = total < 0 or (total == 0 and rules.rounding is Rounding.TOWARD_NEGATIVE)
    if total == 0 and len(products) == 1 and products[0].negative == z.negative:  # IEEE 754-2019 6.3
        negative = z.negative
    code, flags = round_once(Value(Kind.FINITE, negative, abs(total)), fmt, rules)
    return code, flags | lost


def _groups(terms: Sequence[Term], length: int) -> Iterator[list[Term]]:
    """Groups of a length, the last one filled with products +0."""
    for first in range(0, len(terms), length):
        group = list(terms[first : first + length])
        yield group + [FILL] * (length - len(group))


# -- one product at a time, and all at once --------------------------------------------------------------------------


def fma(a: Codes, b: Codes, fmts: Pair, fmt: Format, c: int | None = None, **options: Any) -> Result:
    """One fused multiply-add after another, from c."""
    output, running = _Output(options), Site(RUNNING, fmt)
    total = output.start(c, running)
    for term in output.terms(a, b, fmts, output.daz(running)):
        total = output.fuse(running, term, total)
    return output.deliver(total)


def mul_add(a: Codes, b: Codes, fmts: Pair, fmt: Format, c: int | None = None, **options: Any) -> Result:
    """Each product rounded, then added to the sum so far, from c."""
    output, product, running = _Output(options), Site(PRODUCT, fmt), Site(RUNNING, fmt)
    total = output.start(c, running)
    for term in output.terms(a, b, fmts, output.daz(running)):
        total = output.add(running, total, output.multiply(product, term))
    return output.deliver(total)


def exact(a: Codes, b: Codes, fmts: Pair, fmt: Format, c: int | None = None, **options: Any) -> Result:
    """The exact sum of all products and c, rounded once; of one product it is `fma`."""
    if len(a) < 2:
        return fma(a, b, fmts, fmt, c, **options)
    output, running = _Output(options, payloads=False), Site(RUNNING, fmt)
    total = output.start(c, running)
    return output.deliver(output.block(running, output.terms(a, b, fmts, output.daz(running)), total))


def blocks(
    a: Codes,
    b: Codes,
    fmts: Pair,
    fmt: Format,
    length: int,
    fraction_bits: int | None = None,
    c: int | None = None,
    **options: Any,
) -> Result:
    """Blocks of `length` > 1 products and the running sum, each rounded once; with `fraction_bits`, aligned and cut."""
    output, running = _Output(options, payloads=False), Site(RUNNING, fmt)
    total = output.start(c, running)
    for block in _groups(output.terms(a, b, fmts, output.daz(running)), length):
        total = output.block(running, block, total, fraction_bits)
    return output.deliver(total)


# -- other orders ----------------------------------------------------------------------------------------------------


def pairwise(a: Codes, b: Codes, fmts: Pair, fmt: Format, c: int | None = None, **options: Any) -> Result:
    """Rounded products added in pairs, pairs in pairs; an odd one goes up as it is; c comes last.

    Additions are counted in the order in which a binary counter makes them: as soon as two sums of one size are there,
    and in the end from the right. The tree is the same.
    """
    output, product, running = _Output(options, payloads=False), Site(PRODUCT, fmt), Site(RUNNING, fmt)
    sums: list[tuple[int, Number]] = []

    def merge() -> None:
        (n, left), (m, right) = sums[-2:]
        sums[-2:] = [(n + m, output.add(running, left, right))]

    for term in output.terms(a, b, fmts, output.daz(running)):
        sums.append((1, output.multiply(product, term)))
        while len(sums) > 1 and sums[-2][0] == sums[-1][0]:
            merge()
    while len(sums) > 1:
        merge()
    addend = output.start(c, running)
    if not sums:
        return output.deliver(addend)
    ((_, total),) = sums
    return output.deliver(total if c is None else output.add(running, total, addend))


def chains(a: Codes, b: Codes, fmts: Pair, fmt: Format, n: int, c: int | None = None, **options: Any) -> Result:
    """Product k to fused multiply-add chain k mod n, each from +0; the chains added in order, then c."""
    output, running = _Output(options, payloads=False), Site(RUNNING, fmt)
    addend, terms = output.start(c, running), output.terms(a, b, fmts, output.daz(running))
    if not terms:
        return output.deliver(addend)
    sums = [output.start(None, running) for _ in range(n)]
    for k, term in enumerate(terms):
        sums[k % n] = output.fuse(running, term, sums[k % n])
    total = sums[0]
    for other in sums[1:] if c is None else [*sums[1:], addend]:
        total = output.add(running, total, other)
    return output.deliver(total)


def chunked(
    a: Codes,
    b: Codes,
    fmts: Pair,
    length: int,
    inner_fmt: Format,
    outer_fmt: Format,
    c: int | None = None,
    **options: Any,
) -> Result:
    """Chunks summed by fused multiply-adds from +0 in one format; their sums added up in another, from c."""
    output, inner, outer = _Output(options), Site(RUNNING, inner_fmt), Site(LEVEL, outer_fmt)
    total, terms = output.start(c, outer), output.terms(a, b, fmts, output.daz(inner))
    for first in range(0, len(terms), length):
        chunk = output.start(None, inner)
        for term in terms[first : first + length]:
            chunk = output.fuse(inner, term, chunk)
        total = output.add(outer, total, chunk)
    return output.deliver(total)


# -- x86 -------------------------------------------------------------------------------------------------------------


def vdpbf16ps(a: Codes, b: Codes, fmts: Pair, c: int | None = None, **options: Any) -> Result:
    """VDPBF16PS: of each pair the second product first; DAZ, fused multiply-add to nearest even, flush."""
    fixed = {"rounding": Rounding.NEAREST_EVEN, "overflow": Overflow.INFINITY, "daz": True, "ftz": True}
    fixed |= {"tininess": Tininess.AFTER}
    output, lane = _Output(options, nan="x86_fma3"), Site(RUNNING, SINGLE, fixed)
    total = output.start(c, lane)
    for low, high in _groups(output.terms(a, b, fmts, output.daz(lane)), 2):
        total = output.fuse(lane, high, total)
        total = output.fuse(lane, low, total)
    return output.deliver(total)


LANE = {"rounding": Rounding.NEAREST_EVEN, "overflow": Overflow.INFINITY, "daz": True, "ftz": True}
LANE |= {"tininess": Tininess.AFTER}


def vdpphps(a: Codes, b: Codes, fmts: Pair, c: int | None = None, **options: Any) -> Result:
    """VDPPHPS: as `vdpbf16ps`, but subnormal halves are numbers."""
    output, lane = _Output(options, nan="x86_fma3"), Site(RUNNING, SINGLE, LANE)
    total = output.start(c, lane)
    for low, high in _groups(output.terms(a, b, fmts, False), 2):
        total = output.fuse(lane, low, output.fuse(lane, high, total))
    return output.deliver(total)


def amx(a: Codes, b: Codes, fmts: Pair, tile: int | None = None, c: int | None = None, **options: Any) -> Result:
    """AMX: per tile two sums from +0, of even and odd products or of pairs of fp8 products; added up, then c + that."""
    pairs = fmts[0].bits == 8
    output = _Output(options, nan="canonical", payloads=False)
    product, lane, end = (Site(number, SINGLE, LANE) for number in (PRODUCT, RUNNING, LEVEL))
    total = output.start(c, end)
    terms = output.terms(a, b, fmts, fmts[0].name == "bfloat16")
    length = tile or (64 if pairs else 32)
    for first in range(0, len(terms), length):
        sums = [output.start(None, lane), output.start(None, lane)]
        segment = terms[first : first + length]
        if pairs:
            for n, pair in enumerate(_groups(segment, 2)):
                low, high = (output.multiply(product, x) for x in pair)
                sums[n % 2] = output.add(lane, sums[n % 2], output.add(lane, low, high))
        else:
            for n, term in enumerate(segment):
                sums[n % 2] = output.fuse(lane, term, sums[n % 2])
        total = output.add(end, total, output.add(lane, *sums))
    return output.deliver(total)


# -- RISC-V, Arm and AMD ---------------------------------------------------------------------------------------------


def rvbna(a: Codes, b: Codes, fmts: Pair, n: int, c: int | None = None, **options: Any) -> Result:
    """Bulk normalisation: n products on a grid below the largest exponent, what lies below it in the last bit."""
    fixed = {"rounding": Rounding.TO_ODD, "overflow": Overflow.INFINITY, "daz": False, "ftz": False}
    output = _Output(options, nan="riscv", payloads=False)
    dot, running = (Site(number, SINGLE, fixed, always_infinite=True) for number in (PRODUCT, RUNNING))
    fraction_bits = 23 + math.ceil(math.log2(n))
    total = output.start(c, running)
    for group in _groups(output.terms(a, b, fmts, False), n):

        def summed(products: list[Fraction], group: list[Term] = group) -> Summed:
            exponents = [x.exponent for x, product in zip(group, products, strict=True) if product]
            unit = two_to(max(exponents, default=0) - fraction_bits)
            kept, lost = Fraction(0), False
            for product in products:
                magnitude, rest = divmod(abs(product), unit)
                lost |= rest != 0
                count = int(magnitude) | (rest != 0)
                kept += (-count if product < 0 else count) * unit
            return kept, lost

        total = output.add(running, total, output.total(dot, group, [], summed))
    return output.deliver(total)


def arm_bfdot(
    a: Codes,
    b: Codes,
    fmts: Pair,
    ebf: bool = False,
    mode: str = "nearest_even",
    c: int | None = None,
    **options: Any,
) -> Result:
    """BFDotAdd: pair by pair; without EBF each step to odd and flushed, with it the exact pair rounded, then added."""
    output = _Output(options, nan="canonical", payloads=False)
    fixed: dict[str, Any] = {"overflow": Overflow.INFINITY, "daz": not ebf, "ftz": not ebf, "tininess": Tininess.BEFORE}
    fixed["rounding"] = Rounding[mode.upper()] if ebf else Rounding.TO_ODD
    product, running = (Site(number, SINGLE, fixed, always_infinite=not ebf) for number in (PRODUCT, RUNNING))
    output.signed_zeros = True
    total = output.start(c, running)
    for pair in _groups(output.terms(a, b, fmts, not ebf), 2):
        if ebf:
            both = output.total(product, pair, [], lambda products: (sum(products, Fraction(0)), False))
        else:
            low, high = (output.multiply(product, x) for x in pair)
            both = output.add(running, low, high)
        total = output.add(running, total, both)
    return output.deliver(total)


def arm_fp8dot(
    a: Codes,
    b: Codes,
    fmts: Pair,
    ways: int,
    fmt: Format,
    lscale: int = 0,
    saturate: bool = False,
    c: int | None = None,
    **options: Any,
) -> Result:
    """FP8DotAddFP: c and `ways` products times 2^-lscale, one rounding to nearest even."""
    output = _Output(options, nan="canonical", payloads=False)
    overflow = Overflow.SATURATE if saturate else Overflow.INFINITY
    fixed = {"rounding": Rounding.NEAREST_EVEN, "overflow": overflow, "daz": False, "ftz": False}
    running = Site(RUNNING, fmt, {**fixed, "tininess": Tininess.BEFORE})
    output.signed_zeros = True
    total = output.start(c, running)
    for group in _groups(output.terms(a, b, fmts, False), ways):
        total = output.total(
            running,
            group,
            [total],
            lambda x: (sum(x[:-1], Fraction(0)) * two_to(-lscale) + x[-1], False),
        )
    return output.deliver(total)


def amd_mfma(a: Codes, b: Codes, fmts: Pair, arch: str, group: int, c: int | None = None, **options: Any) -> Result:
    """MFMA in groups: 1 fused; pairs on CDNA1 and CDNA2, which flushes; on CDNA3 cut, floored and rounded, fp8 in halves."""
    flushed = arch == "CDNA2" and group > 1
    fixed: dict[str, Any] = {"rounding": Rounding.NEAREST_EVEN, "overflow": Overflow.INFINITY}
    fixed |= {"daz": flushed, "ftz": flushed} | ({"tininess": Tininess.AFTER} if flushed else {})
    output = _Output(options, nan="canonical", payloads=group == 1)
    product, running = Site(PRODUCT, SINGLE, fixed), Site(RUNNING, SINGLE, fixed)
    total = output.start(c, running)
    terms = output.terms(a, b, fmts, flushed)
    if terms and flushed and total.value.is_zero and total.code != SINGLE.sign_bit:
        total = total._replace(code=0)
    if group == 1:
        for term in terms:
            total = output.fuse(running, term, total)
        return output.deliver(total)
    for products in _groups(terms, group):
        if arch == "CDNA3":
            total = output.total(running, products, [total], _floored(products, fmts, total, halves=group == 16))
            continue
        leaves = [output.multiply(product, _unsigned(x)) for x in products]
        low = output.add(running, *leaves[:2])
        total = output.add(
            running, total, low if group == 2 else output.add(running, low, output.add(running, *leaves[2:]))
        )
    return output.deliver(total)


def _unsigned(term: Term) -> Term:
    """The same, but a zero product is +0."""
    if term.x.is_nan or term.y.is_nan or term.is_invalid or not (term.x.is_zero or term.y.is_zero):
        return term
    return FILL


def _floored(terms: Sequence[Term], fmts: Pair, c: Number, halves: bool) -> Callable[[list[Fraction]], Summed]:
    """CDNA3's sum of products and c, which comes last."""

    def of_factor(x: Value, fmt: Format) -> int:
        return _exponent_in(fmt, x) if x.magnitude else -126

    def summed(numbers: list[Fraction]) -> Summed:
        *products, addend = numbers
        beyond = {x < 0 for x in products if abs(x) >= two_to(128)}
        if beyond:
            return (None if len(beyond) == 2 else -math.inf if beyond.pop() else math.inf), False
        exponents = [of_factor(x.x, fmts[0]) + of_factor(x.y, fmts[1]) for x in terms]
        lost = []

        def cut(x: Fraction, exponent: int, bits: int, whole: Callable[[Fraction], int]) -> Fraction:
            unit = two_to(exponent - bits)
            lost.append(whole(x / unit) * unit != x)
            return whole(x / unit) * unit

        sums, tops = [], []
        for first in range(2 if halves else 1):
            part = slice(first, None, 2 if halves else 1)
            tops.append(max(exponents[part]))
            sums.append(sum((cut(x, tops[-1], 24, math.trunc) for x in products[part]), Fraction(0)))
        top = max(tops)
        if halves:
            sums = [cut(x, top, 24, math.floor) for x in sums]
        own = of_factor(c.value, SINGLE)
        largest = max(top, own)
        total = cut(sum(sums, Fraction(0)), largest, 31, math.floor)
        if halves and own < largest - 25:
            return total, any(lost) or addend != 0
        return total + cut(addend, largest, 24, math.floor), any(lost)

    return summed


# -- operands with scales --------------------------------------------------------------------------------------------

ScaleCodes = tuple[Codes, Codes]
"""Of a and b, one for each product; their signs say nothing."""


def _scale(code: int, fmt: Format) -> Value:
    return decode(code & ((1 << (fmt.bits - fmt.signed)) - 1), fmt)


def _times(x: Value, scale: Value) -> Value:
    if x.is_nan or scale.is_nan or (x.is_infinite and scale.is_zero):
        return x if x.is_nan else Value(Kind.NAN, negative=False)
    return x if x.is_infinite else x._replace(magnitude=x.magnitude * scale.magnitude)


def _scaled_terms(
    output: _Output, a: Codes, b: Codes, fmts: Pair, scales: ScaleCodes, scale_fmts: Pair, daz: bool
) -> list[Term]:
    """Products of elements times their scales. A zero, element or scale, has the exponent -126 of its own."""

    def exponent(x: Value, scale: Value, fmts: Pair) -> int:
        parts = ((x, fmts[0]), (scale, fmts[1]))
        return sum(_exponent_in(fmt, v) if v.magnitude else -126 for v, fmt in parts)

    terms = []
    for term, first, second in zip(output.terms(a, b, fmts, daz), *scales, strict=True):
        x, y = _scale(first, scale_fmts[0]), _scale(second, scale_fmts[1])
        both = exponent(term.x, x, (fmts[0], scale_fmts[0])) + exponent(term.y, y, (fmts[1], scale_fmts[1]))
        terms.append(Term(_times(term.x, x), _times(term.y, y), both))
    return terms


def scaled_exact(
    a: Codes,
    b: Codes,
    fmts: Pair,
    scales: ScaleCodes,
    scale_fmts: Pair,
    fmt: Format,
    c: int | None = None,
    **options: Any,
) -> Result:
    """The exact sum of all products, scales included, and c, rounded once: DotGeneral of OCP MX."""
    output, running = _Output(options, payloads=len(a) < 2), Site(RUNNING, fmt)
    total = output.start(c, running)
    terms = _scaled_terms(output, a, b, fmts, scales, scale_fmts, output.daz(running))
    if len(terms) == 1:
        total = output.fuse(running, terms[0], total)
    elif terms:
        total = output.block(running, terms, total)
    return output.deliver(total)


def scaled_core(
    a: Codes,
    b: Codes,
    fmts: Pair,
    scales: ScaleCodes,
    scale_fmts: Pair,
    grouped: bool,
    c: int | None = None,
    **options: Any,
) -> Result:
    """NVIDIA's block-scaled instructions: 32 products and c on 25 bits; or `grouped`, four exact sums of 16 and c on 35."""
    fixed = {"rounding": Rounding.TOWARD_ZERO, "overflow": Overflow.INFINITY, "daz": False, "ftz": False}
    output, running = _Output(options, nan="nvidia", payloads=False), Site(RUNNING, SINGLE, fixed, always_infinite=True)
    total = output.start(c, running)
    length, size, bits = (64, 16, 35) if grouped else (32, 1, 25)
    terms = _scaled_terms(output, a, b, fmts, scales, scale_fmts, False)
    every = [
        [_scale(code, fmt) for code, fmt in zip(pair, scale_fmts, strict=True)] for pair in zip(*scales, strict=True)
    ]
    for first in range(0, len(terms), length):
        block = terms[first : first + length]

        def summed(numbers: list[Fraction], block: list[Term] = block, first: int = first, c: Number = total) -> Summed:
            *products, addend = numbers
            exponents, sums = [], []
            for k in range(0, len(products), size):
                sums.append(sum(products[k : k + size], Fraction(0)))
                shared = [
                    _exponent_in(fmt, x) if x.magnitude else -126
                    for x, fmt in zip(every[first + k], scale_fmts, strict=True)
                ]
                exponents.append(sum(shared) if grouped else block[k].exponent)
            own = _exponent_in(SINGLE, c.value) if addend else -126
            unit = two_to(max(*exponents, own) - bits)
            kept = [math.trunc(x / unit) * unit for x in [*sums, addend]]
            return sum(kept, Fraction(0)), kept != [*sums, addend]

        total = output.total(running, block, [total], summed)
    return output.deliver(total)


def scaled_chunks(
    a: Codes,
    b: Codes,
    fmts: Pair,
    scales: ScaleCodes,
    scale_fmts: Pair,
    length: int,
    inner_fmt: Format,
    outer_fmt: Format,
    order: str,
    c: int | None = None,
    **options: Any,
) -> Result:
    """Chunks of fused multiply-adds from +0, each sum times its two scales, in that order, and added to the sum so far."""
    output, inner, outer = _Output(options, payloads=False), Site(RUNNING, inner_fmt), Site(LEVEL, outer_fmt)
    total, terms = output.start(c, outer), output.terms(a, b, fmts, output.daz(inner))
    for first in range(0, len(terms), length):
        chunk = output.start(None, inner)
        for term in terms[first : first + length]:
            chunk = output.fuse(inner, term, chunk)
        x, y = (_scale(codes[first], fmt) for codes, fmt in zip(scales, scale_fmts, strict=True))
        left, right, last = {
            "scales_fused": (x, y, chunk.value),
            "scales_added": (x, y, chunk.value),
            "first_fused": (chunk.value, x, y),
            "second_fused": (chunk.value, y, x),
        }[order]
        part = output.multiply(outer, Term(left, right, 0))
        if order == "scales_added":
            total = output.add(outer, total, output.multiply(outer, Term(part.value, last, 0)))
        else:
            total = output.fuse(outer, Term(part.value, last, 0), total)
    return output.deliver(total)


# -- NVIDIA tensor cores ---------------------------------------------------------------------------------------------


class Core(NamedTuple):
    """One block fused multiply-add: products, fraction bits kept in alignment, fraction bits of a float32 sum."""

    length: int
    fraction_bits: int
    sum_bits: int = 23


CORES = {
    "V100": {"half": Core(4, 23)},
    "A100": {"half": Core(8, 24), "tf32": Core(4, 24)},
    "Ada": {"half": Core(8, 24), "tf32": Core(4, 24), "fp8": Core(16, 13, 13)},
    "H100": {"half": Core(16, 25), "tf32": Core(8, 25), "fp8": Core(32, 13, 13)},
    "B200": {"half": Core(16, 25), "tf32": Core(8, 25), "fp8": Core(32, 25)},
}
CORES |= {"A2": CORES["A100"], "L40S": CORES["Ada"], "H200": CORES["H100"]}
CORE_INPUTS = {
    "float16": "half",
    "bfloat16": "half",
    "tfloat32": "tf32",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}


def tensor_core(
    a: Codes,
    b: Codes,
    fmts: Pair,
    arch: str,
    input: str = "float16",
    output: str = "float32",
    instruction: str | None = None,
    c: int | None = None,
    **options: Any,
) -> Result:
    """NVIDIA: products and c aligned to the largest exponent, truncated, added, and the sum rounded, block by block.

    To float32 the sum is truncated (of fp8 on Ada and Hopper to 13 fraction bits), to half rounded to nearest even. fp8
    by mma.sync on H100 and later is unpacked to half: of 32 products those of k % 4 in {0, 1}, then the others, chained
    from +0; then one ordinary addition of c.
    """
    inputs, out = CORE_INPUTS[input], ROSTER[output]
    unpacked = inputs == "fp8" and instruction == "mma.sync" and arch in ("H100", "H200", "B200")
    core = CORES[arch]["half" if unpacked else inputs]
    kept = {"overflow": Overflow.INFINITY, "daz": False, "ftz": False}
    truncation, nearest = {"rounding": Rounding.TOWARD_ZERO, **kept}, {"rounding": Rounding.NEAREST_EVEN, **kept}
    if out == HALF:
        running = Site(RUNNING, HALF, nearest)
    else:
        running = Site(RUNNING, SINGLE if core.sum_bits == 23 else E8M13, truncation, always_infinite=True)
    in_memory, addition = Site(STORE, out, nearest), Site(LEVEL, out, nearest)
    dot = _Output(options, nan="nvidia", payloads=False)
    total, terms = dot.start(c, running, out), dot.terms(a, b, fmts, dot.daz(running), HALF if unpacked else None)

    if unpacked:
        for group in _groups(terms, 32):
            chain = dot.start(None, running)
            for pair in ((0, 1), (2, 3)):
                chain = dot.block(running, [x for k, x in enumerate(group) if k % 4 in pair], chain, core.fraction_bits)
            total = dot.add(addition, total, chain)
        return dot.deliver(total)
    for block in _groups(terms, core.length):
        total = dot.block(running, block, total, core.fraction_bits)
        if running.fmt == E8M13:
            total = dot.convert(in_memory, total)
    return dot.deliver(total)


# -- Graphcore IPU ---------------------------------------------------------------------------------------------------

PHASES = {"float16": (4, 4), "float32": (1, 8), "float8_e4m3fnuz": (8, 4), "float8_e5m2fnuz": (8, 4)}
"""By input: products of a phase, and phases until `amp` stores the accumulator."""
ALIGNED_BITS = 31


def _single(rounding: str, number: int = RUNNING) -> Site:
    """The IPU's single precision: no subnormals, overflow to infinity."""
    fixed = {"rounding": rounding, "overflow": Overflow.INFINITY, "daz": True, "ftz": True}
    return Site(number, SINGLE, fixed, always_infinite=True)


class _Ipu(_Output):
    """An output in the format of the inputs (half for quarters) unless named: its accumulator, and its memory."""

    def __init__(
        self, fmts: Pair, partials: str, mode: str, single_rounding: str, stochastic: bool, options: dict[str, Any]
    ) -> None:
        self.length, self.phases = PHASES[fmts[0].name]
        self.one_by_one = mode == "chained" or (mode == "exact" and self.length == 1)
        super().__init__(options, payloads=self.one_by_one)
        self.mode = mode
        self.no_subnormals = fmts[0] == SINGLE
        self.out_format = self.out_format or (SINGLE if fmts[0] == SINGLE else HALF)
        self.single = self.memory = _single(single_rounding)
        if ROSTER[partials] == HALF:
            self.memory = Site(STORE, HALF, {} if stochastic else {"rounding": Rounding.NEAREST_EVEN})

    def passes(self, terms: Sequence[Term], total: Number) -> Number:
        """Passes of several phases; a phase adds its products to the accumulator, and half partials end each pass."""
        for products in _groups(terms, self.length * self.phases):
            for phase in _groups(products, self.length):
                if self.mode == "aligned":
                    total = self.block(self.single, phase, total, ALIGNED_BITS)
                elif self.one_by_one:
                    for term in phase:
                        total = self.fuse(self.single, term, total)
                else:
                    total = self.block(self.single, phase, total)
            if self.memory.fmt == HALF:
                total = self.convert(self.memory, total)
        return total


def amp(
    a: Codes,
    b: Codes,
    fmts: Pair,
    partials: str = "float32",
    mode: str = "exact",
    single_rounding: str = "nearest_even",
    stochastic: bool = True,
    c: int | None = None,
    **options: Any,
) -> Result:
    """The Accumulating Matrix Product unit: phases into a single; after each pass it is stored in the partials type."""
    output = _Ipu(fmts, partials, mode, single_rounding, stochastic, options)
    terms = output.terms(a, b, fmts, output.no_subnormals)
    return output.deliver(output.passes(terms, output.start(c, output.memory)))


def slic(
    a: Codes,
    b: Codes,
    fmts: Pair,
    partials: str = "float32",
    window: int = 4,
    mode: str = "exact",
    single_rounding: str = "nearest_even",
    stochastic: bool = True,
    c: int | None = None,
    **options: Any,
) -> Result:
    """The slim convolution: as `amp`, with a phase for each position of the window."""
    output = _Ipu(fmts, partials, mode, single_rounding, stochastic, options)
    output.phases = window
    terms = output.terms(a, b, fmts, output.no_subnormals)
    return output.deliver(output.passes(terms, output.start(c, output.memory)))


def reduced_amp(
    a: Codes,
    b: Codes,
    fmts: Pair,
    partials: str,
    between: str,
    splits: int | tuple[int, ...],
    stages: tuple[int, ...] = (),
    mode: str = "exact",
    stochastic: bool = True,
    c: int | None = None,
    **options: Any,
) -> Result:
    """k shared among tiles, each an `amp` from +0; their sums added up in single, in stages stored as `between`.

    Part i of n has products from i*K/n to (i+1)*K/n, or parts have the lengths given; section i of a stage likewise.
    The last stage starts from c, a single.
    """
    nearest = "nearest_even"
    output = _Ipu(fmts, partials, mode, nearest, stochastic, options)
    terms = output.terms(a, b, fmts, output.no_subnormals)
    last = _single(nearest, LEVEL + 2 * len(stages))
    total = output.start(c, last)
    if not terms:
        return output.deliver(total)
    lengths = splits if isinstance(splits, tuple) else tuple(map(len, _sections(terms, splits)))
    sums, first = [], 0
    for count in lengths:
        part, first = terms[first : first + count], first + count
        sums.append(output.passes(part, output.start(None, output.memory)))
    for level, sections in enumerate(stages):
        addition = _single(nearest, LEVEL + 2 * level)
        stored = Site(LEVEL + 2 * level + 1, ROSTER[between])
        stage = []
        for section in _sections(sums, sections):
            subtotal = output.start(None, addition)
            for x in section:
                subtotal = output.add(addition, subtotal, x)
            stage.append(output.convert(stored, subtotal))
        sums = stage
    for x in sums:
        total = output.add(last, total, x)
    return output.deliver(total)


def _sections(items: list[Any], n: int) -> list[list[Any]]:
    """n sections of as equal a length as may be."""
    return [items[i * len(items) // n : (i + 1) * len(items) // n] for i in range(n)]
