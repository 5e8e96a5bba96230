"""How a dot product is summed: an `Accumulator` describes it, presets say what hardware and libraries do.

Products a[k]*b[k] enter in the order of k. The words:

scale
    What a block format's elements share. It multiplies products, exactly, and its exponent counts in an alignment; or
    with `scaling` the sums of segments.
block
    That many products meet the running sum at once. A block and the running sum are added exactly and rounded once; or,
    with `fraction_bits`, each term is first cut to that many fraction bits below the largest exponent among them.
stage
    A point where a value is rounded: a format, and what the hardware fixes there. Whatever a stage leaves open, the
    options of the call decide.
store
    The running sum goes to memory in the partials format, every so many products, and comes back from there.
segment
    A stretch of k with a running sum of its own, which starts at +0. Sums of segments are added by `reduction`.
chains, tree
    Block k belongs to running sum k mod `chains`, and these are added in order at the end; or products are added in
    pairs, pairs of products in pairs, and so on, an odd one out going up as it is: those of a block of several, whose sum
    then meets the running sum, or else all there are. A segment has chains and a tree of its own.

Rules that hold for all of them:

* The addend c is where the sum starts: the running sum, or with segments the last reduction's; without c it starts at
  +0. Each chain starts at +0; chains and trees add c at the end, and without c nothing, as units without an addend do.
  An empty sum is c; a signalling NaN raises INVALID even there, and is quieted.
* The order within a group permutes the products of each group. A group and a block that k, or a segment, leaves
  incomplete are filled with products +0; a shorter last segment is not.
* A product is exact unless there is a `product` stage. The exact sum of a block is +0 where it is zero, or -0 toward
  negative, if more than one product meets the running sum; a single product follows IEEE 754-2019 6.3, and so do blocks
  with `keeps_zero_sign`. A single product that a tree has nothing to add to is converted to the running format.
* A subnormal counts as zero where the stage that rounded it says so. c is read as the stage that makes partials reads.
* Flags of an output are those of all its roundings, OR-ed, and INVALID for signalling operands, 0 * inf and inf - inf.
  Bits lost in alignment raise INEXACT.

* NaN payloads pass on, under policies that propagate them, where products are added one at a time, without chains, a
  tree, `compensation`, `fixed`, `fraction_bits` or `alignment`; any other NaN result is the policy's default one.

>>> from softfloat.accumulators import amp, fma
>>> fma("float16")
fma('float16')
>>> print(amp("half").describe())
amp('float16'): blocks of 4, each to float32 nearest_even daz ftz; stored as float16 every 16 products; c and partials float16
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, wraps
from typing import Any, NamedTuple, TypeVar, cast

from softfloat.accumulators.roster import PRESET_ROWS
from softfloat.checks import check_choice, check_integer, check_kind, check_switch, check_whole
from softfloat.environments import as_member, as_rounding
from softfloat.formats import Format, check_format
from softfloat.frozen import hash_kept, settle
from softfloat.kernels.spec import NAN_POLICIES, Overflow, Rounding, Tininess

__all__ = ["PRESETS", "Accumulator", "Alignment", "FixedPoint", "Preset", "Reduction", "Stage"]


MAXIMUM_REDUCTIONS = 3
MAXIMUM_BITS = 40
MAXIMUM_REGISTER, MAXIMUM_WEIGHT = 50, 300
COMPENSATIONS = ("kahan", "neumaier", "two_term")
SCALINGS = ("scales_fused", "first_fused", "second_fused", "scales_added")
CUTS = (Rounding.TOWARD_ZERO, Rounding.TOWARD_NEGATIVE, Rounding.TO_ODD)
ALL = 0
"""As a block: every product there is."""


@dataclass(frozen=True)
class Stage:
    """A point where a value is rounded.

    Parameters
    ----------
    format : Format or str
        What the value is rounded to.
    rounding : Rounding or str, optional
        Fixed by the hardware; None leaves it to the call.
    overflow : Overflow, optional
        Likewise. Under `always_infinite`, overflow is an infinity in directed modes too.
    daz, ftz : bool, optional
        Likewise: a subnormal here counts as zero when it is read again, also by the conversion to the output's format;
        a tiny result becomes zero.
    tininess : Tininess, optional
        Likewise.
    """

    format: Format
    rounding: Rounding | None = None
    overflow: Overflow | None = None
    daz: bool | None = None
    ftz: bool | None = None
    tininess: Tininess | None = None
    always_infinite: bool = False

    def __post_init__(self) -> None:
        settle(self, format=check_format(self.format, "format", wide=True))
        if self.rounding is not None:
            settle(self, rounding=as_rounding(self.rounding))
        if self.overflow is not None:
            settle(self, overflow=as_member(Overflow, self.overflow, "overflow"))
        if self.tininess is not None:
            settle(self, tininess=as_member(Tininess, self.tininess, "tininess"))
        check_switch("daz", self.daz, optional=True)
        check_switch("ftz", self.ftz, optional=True)
        if not self.format.zero:
            raise ValueError(f"format must have a zero for sums to start from, and {self.format} has none")

    def __str__(self) -> str:
        fixed = [] if self.rounding is None else [self.rounding.name.lower()]
        fixed += ["daz"] * bool(self.daz) + ["ftz"] * bool(self.ftz)
        return " ".join([self.format.name, *fixed])


@dataclass(frozen=True)
class Alignment:
    """How the terms of a block are cut to a common grid before they are added.

    A term's exponent is the sum of its factors', a subnormal's being the least of its format. The largest one, M, sets
    the grid: bits below 2^(M - `terms`) are cut off.

    Parameters
    ----------
    terms : int
        Fraction bits of a term, 1 to 40.
    cut : Rounding or str
        How terms are cut: "toward_zero", "toward_negative" (floor) or "to_odd" (a last bit is set where bits were lost).
    group : int
        Products whose exact sum is one term. Its exponent is that of the group's scales and of `scale_exponent`, 0 without.
    zeros : int, optional
        Exponent of a factor, and of a running sum, that is zero; None: zeros have no part in the largest exponent.
    limit : int, optional
        Terms of 2^limit and more count as infinite, unless an operand is infinite itself.
    halves : bool
        Even and odd terms are aligned and added apart, each half to its own M; both sums are then cut to `terms` bits
        below the larger M, as `sum_cut` says.
    includes_addend : bool
        Whether the running sum is one of the terms.
    sum, addend : int, optional
        Where it is not: with M the larger of the terms' exponent and the running sum's, the terms' sum is cut to `sum`
        bits below it, and the running sum to `addend`; both are None otherwise, and with `block_sum`.
    sum_cut : Rounding or str
        How sums and the running sum are cut.
    drop_addend_below : int, optional
        A running sum whose exponent is more than that below M is left out.
    least : int, optional
        M is at least that, whatever the terms are.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.
    """

    terms: int
    cut: Rounding = Rounding.TOWARD_ZERO
    group: int = 1
    zeros: int | None = None
    limit: int | None = None
    halves: bool = False
    includes_addend: bool = True
    sum: int | None = None
    addend: int | None = None
    sum_cut: Rounding = Rounding.TOWARD_ZERO
    drop_addend_below: int | None = None
    least: int | None = None

    def __post_init__(self) -> None:
        for name in ("terms", "sum", "addend", "drop_addend_below"):
            bits = getattr(self, name)
            if bits is not None or name == "terms":
                check_whole(name, bits, 1)
                if bits > MAXIMUM_BITS:
                    raise ValueError(f"{name} must be 1 to {MAXIMUM_BITS}, got {bits}")
        check_whole("group", self.group, 1)
        for name, least, most in (("zeros", -200, 200), ("limit", 1, 500), ("least", -300, 200)):
            exponent = getattr(self, name)
            if exponent is not None:
                check_kind(name, exponent, int)
                if not least <= exponent <= most:
                    raise ValueError(f"{name} must be {least} to {most} or None, got {exponent}")
        for name in ("cut", "sum_cut"):
            rounding = as_rounding(getattr(self, name))
            if rounding not in CUTS:
                accepted = ", ".join(repr(x.name.lower()) for x in CUTS)
                raise ValueError(f"{name} must be one of {accepted}, got {rounding.name.lower()!r}")
            settle(self, **{name: rounding})
        check_kind("halves", self.halves, bool)
        check_kind("includes_addend", self.includes_addend, bool)
        if (self.sum is None) != (self.addend is None):
            raise ValueError("sum and addend come together, or both are None")
        if self.includes_addend and self.sum is not None:
            raise ValueError("sum and addend must be None with includes_addend: the running sum is cut as a term")
        if self.drop_addend_below is not None and self.sum is None:
            raise ValueError("drop_addend_below needs sum and addend: it drops a running sum that is no term")
        if self.halves and self.includes_addend:
            raise ValueError("halves need includes_addend=False: the running sum belongs to neither half")
        if self.sum_cut is not Rounding.TOWARD_ZERO and self.sum is None and not self.halves:
            raise ValueError("sum_cut needs sum and addend, or halves")

    def __str__(self) -> str:
        cuts = {Rounding.TOWARD_ZERO: "cut", Rounding.TOWARD_NEGATIVE: "floored", Rounding.TO_ODD: "cut to odd"}
        text = f"{cuts[self.cut]} to {self.terms} fraction bits below the largest exponent"
        if self.group > 1:
            text = f"terms of {self.group} exact products {text} of scales"
        if self.halves:
            text += f" of even and odd ones apart, their sums {cuts[self.sum_cut]} to as many"
        if self.zeros is not None:
            text += f" (zeros: {self.zeros})"
        if self.least is not None:
            text += f" (at least {self.least})"
        if self.limit is not None:
            text += f", infinite from 2^{self.limit} on"
        if self.sum is not None:
            text += (
                f", their sum {cuts[self.sum_cut]} to {self.sum} and the running sum to {self.addend} below the larger"
            )
        if self.drop_addend_below is not None:
            text += f", dropped if {self.drop_addend_below} below"
        return text


@dataclass(frozen=True)
class FixedPoint:
    """A running sum in fixed point, in two's complement: each product is cut to its grid and added.

    Parameters
    ----------
    bits : int
        Of the register, the sign's included: 2 to 50.
    last : int
        Exponent of the last bit's weight, -300 to 300.
    overflow : {"wrap", "saturate"}
        What becomes of sums beyond the register.
    cut : Rounding or str
        How products and c are cut to the grid: "toward_negative" (a shift to the right does) or "toward_zero".

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    Notes
    -----
    An infinite product or c, and 0 * inf, raise INVALID and make the sum NaN. Bits lost raise INEXACT, sums beyond the
    register OVERFLOW and INEXACT. A zero sum is +0.
    """

    bits: int
    last: int
    overflow: str = "wrap"
    cut: Rounding = Rounding.TOWARD_NEGATIVE

    def __post_init__(self) -> None:
        if check_whole("bits", self.bits, 2) > MAXIMUM_REGISTER:
            raise ValueError(f"bits must be 2 to {MAXIMUM_REGISTER}, got {self.bits}")
        if not -MAXIMUM_WEIGHT <= check_integer("last", self.last) <= MAXIMUM_WEIGHT:
            raise ValueError(f"last must be {-MAXIMUM_WEIGHT} to {MAXIMUM_WEIGHT}, got {self.last}")
        check_choice("overflow", self.overflow, ("wrap", "saturate"))
        rounding = as_rounding(self.cut, "cut")
        if rounding not in CUTS[:2]:
            raise ValueError(f"cut must be 'toward_zero' or 'toward_negative', got {rounding.name.lower()!r}")
        settle(self, cut=rounding)

    def __str__(self) -> str:
        cut = "floored" if self.cut is Rounding.TOWARD_NEGATIVE else "cut"
        return f"{cut} to multiples of 2^{self.last}, added in {self.bits} bits that {self.overflow}"


@dataclass(frozen=True)
class Reduction:
    """Sums of segments, or of sections of segments, added in order.

    Parameters
    ----------
    running : Stage
        Rounds each addition.
    sections : int, optional
        Sums this level makes of those of the level below: section i has those from i*n/sections to (i+1)*n/sections.
        None: a single one; only the last level has it.
    store : Stage, optional
        Rounds the sum of a section on its way to the next level, and the sum of the last level on its way out. Partials,
        and c, are then in its format.
    scaling : str, optional
        Of operands with scales, those of a segment meet its sum s here, x and y those of a and b, t the sum so far, each
        operation rounded as `running` says: "scales_fused": (x*y)*s + t, the last two fused; "first_fused" (s*x)*y + t and
        "second_fused" (s*y)*x + t likewise; "scales_added": (x*y)*s, then + t. None: scales multiply products, exactly.
        Only of the first level. Without scales it changes nothing.
    """

    running: Stage
    sections: int | None = None
    store: Stage | None = None
    scaling: str | None = None

    def __post_init__(self) -> None:
        check_kind("running", self.running, Stage)
        check_kind("store", self.store, Stage, optional=True)
        if self.scaling is not None:
            check_choice("scaling", self.scaling, SCALINGS)
        if self.sections is not None:
            check_whole("sections", self.sections, 1)


@lru_cache(maxsize=256)
def _alignment(bits: int) -> Alignment:
    """What so many `fraction_bits` are short for."""
    return Alignment(bits)


@hash_kept
@dataclass(frozen=True, kw_only=True, repr=False)
class Accumulator:
    """How a dot product is summed; the words are those of the module's documentation.

    Parameters
    ----------
    name : str
        What messages and `repr` call it. Accumulators that differ in nothing else are equal.
    running : Stage
        Rounds the running sum after each block.
    inputs : tuple of Format
        What operands may be; empty: anything.
    product : Stage, optional
        Rounds each product first; only one product at a time, or in a tree.
    block : int
        Products that meet the running sum at once; 0: all of them.
    alignment : Alignment, optional
        How the terms of a block are cut before they are added; `fraction_bits=n` is short for `Alignment(n)`.
    block_sum : Stage, optional
        Rounds the sum of a block's products, which then meets the running sum in an addition of its own.
    fraction_bits : int, optional
        Fraction bits kept below the largest exponent of a block's terms; None keeps everything. A product's exponent is
        the sum of its factors', or after a `product` stage its own; the running sum's is that in the running format. A
        subnormal's is the least of its format, and zeros have none.
    store : Stage, optional
        Rounds the running sum every `store_every` products, and at the end of a segment.
    store_every : int
        A multiple of `block`; 1 without a store.
    order : tuple of int
        A permutation of 0 ... n-1, n the length of a group.
    chains : int
        Interleaved running sums.
    tree : bool
        Add in pairs: the products of a block, or with block=1 all products.
    scale_exponent : int
        Products are multiplied by 2 to that power, exactly, -127 to 127.
    keeps_zero_sign : bool
        A zero sum of terms that all have the same sign keeps it; only in blocks that are added exactly.
    unsigned_zeros : bool
        A zero product is +0, and so is a subnormal of c that counts as zero; only with a `product` stage.
    positive_zeros : bool
        A zero sum of a block is +0, however it came to be zero; only with `fraction_bits` or `alignment`, and no `block_sum`.
    leaf : int
        Products whose exact sum, rounded by `product`, is a leaf of a tree; `block` is a multiple of it.
    compensation : str, optional
        How errors of additions are made up for, each operation rounded as `running` says, x the rounded product, s the
        running sum: "kahan" y = x - e; t = s + y; e = (t - s) - y; s = t. "neumaier" t = s + x; e = e + ((u - t) + v), u the
        larger of s and x, v the other; s = t; in the end s + e. "two_term" the sum s + e of two numbers: (t, d) the sum of
        s and x and its error (Knuth's six operations), v = d + e, s = t + v, e = v - (s - t). Only with a `product` stage.
    fixed : FixedPoint, optional
        The running sum is a fixed-point number; `running` rounds it in the end, or at the end of a segment. Only with
        single, exact products.
    segment : int, optional
        Products of a segment.
    segments : int or tuple of int, optional
        Their number, of as equal a length as may be (from i*K/n to (i+1)*K/n), or the length of each.
    reduction : tuple of Reduction
        How sums of segments are added, at most three levels.
    channel_group : int, optional
        Convolutions walk k in groups of that many input channels: group, then window, then channels of the group.
    daz : bool, optional
        Whether subnormal operands count as zero; None leaves it to the `product` stage, or without one to `running`, and
        what these leave open to the call, which reads operands by the settings of their format.
    unpacked : Format, optional
        Operands are widened to it before exponents are compared; only with `fraction_bits`, and exact products.
    result : "partials", "inputs", or Format
        Format of the output, unless the call names one.
    nan : str, optional
        NaN policy that holds whatever the call says.
    note : str
        What is modelled on documents alone.
    source : str
        Where the rule comes from.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.
    """

    name: str = field(compare=False)
    running: Stage
    inputs: tuple[Format, ...] = ()
    product: Stage | None = None
    block: int = 1
    fraction_bits: int | None = None
    store: Stage | None = None
    store_every: int = 1
    order: tuple[int, ...] = (0,)
    chains: int = 1
    tree: bool = False
    segment: int | None = None
    segments: int | tuple[int, ...] | None = None
    reduction: tuple[Reduction, ...] = ()
    channel_group: int | None = None
    daz: bool | None = None
    unpacked: Format | None = None
    alignment: Alignment | None = None
    block_sum: Stage | None = None
    scale_exponent: int = 0
    keeps_zero_sign: bool = False
    unsigned_zeros: bool = False
    positive_zeros: bool = False
    leaf: int = 1
    compensation: str | None = None
    fixed: FixedPoint | None = None
    result: str | Format = "partials"
    nan: str | None = None
    note: str = field(default="", compare=False)
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        check_kind("name", self.name, str)
        check_kind("running", self.running, Stage)
        check_kind("alignment", self.alignment, Alignment, optional=True)
        check_kind("fixed", self.fixed, FixedPoint, optional=True)
        check_whole("leaf", self.leaf, 1)
        if self.compensation is not None:
            check_choice("compensation", self.compensation, COMPENSATIONS)
        for name in ("keeps_zero_sign", "unsigned_zeros", "positive_zeros"):
            check_kind(name, getattr(self, name), bool)
        check_kind("scale_exponent", self.scale_exponent, int)
        if not -127 <= self.scale_exponent <= 127:
            raise ValueError(f"scale_exponent must be -127 to 127, got {self.scale_exponent}")
        for name in ("product", "store", "block_sum"):
            check_kind(name, getattr(self, name), Stage, optional=True)
        for name in ("inputs", "order", "reduction"):
            check_kind(name, getattr(self, name), (tuple, list))
            settle(self, **{name: tuple(getattr(self, name))})
        for level in self.reduction:
            check_kind("reduction", level, Reduction)
        if isinstance(self.segments, list):
            settle(self, segments=tuple(self.segments))
        if self.unpacked is not None:
            settle(self, unpacked=check_format(self.unpacked, "unpacked"))
        check_kind("tree", self.tree, bool)
        check_switch("daz", self.daz, optional=True)
        settle(self, inputs=tuple(check_format(x, "inputs", wide=True) for x in self.inputs))
        check_whole("block", self.block, 0)
        check_whole("store_every", self.store_every, 1)
        check_whole("chains", self.chains, 1)
        for name in ("fraction_bits", "segment", "channel_group"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), 1)
        if self.fraction_bits is not None and not self.fraction_bits <= MAXIMUM_BITS:
            raise ValueError(f"fraction_bits must be 1 to {MAXIMUM_BITS} or None, got {self.fraction_bits}")
        if sorted(self.order) != list(range(len(self.order))) or not self.order:
            raise ValueError(f"order must be a permutation of 0 ... n-1, got {self.order!r}")
        if isinstance(self.segments, tuple):
            for length in self.segments:
                check_whole("segments", length, 1)
        elif self.segments is not None:
            check_whole("segments", self.segments, 1)
        if self.nan is not None and self.nan not in NAN_POLICIES:
            raise ValueError(f"nan must be one of {', '.join(map(repr, NAN_POLICIES))} or None, got {self.nan!r}")
        if self.result not in ("partials", "inputs"):
            settle(self, result=check_format(self.result, "result", wide=True))
        for broken in self._contradictions():
            raise ValueError(f"{broken}; got {self.name!r}")

    def _contradictions(self) -> Iterator[str]:
        """The rules that these fields break."""
        aligned, segmented = self.aligned is not None, self.segment is not None or self.segments is not None
        interleaved, levels = self.tree or self.chains > 1, len(self.reduction)
        if self.store is not None and self.store_every % (self.block or 1):
            yield "store_every must be a multiple of block"
        if self.store is None and self.store_every != 1:
            yield "store_every needs a store"
        if self.block == ALL and self.store is not None:
            yield "store must be None with block=0"
        if self.block == ALL and len(self.order) != 1:
            yield "order must be (0,) with block=0"
        if self.block != 1 and self.product is not None and not self.tree:
            yield "product must be None unless block=1, or in a tree: a block's products are exact"
        if interleaved and self.block == ALL:
            yield "tree and chains need blocks of a given length"
        if (self.chains > 1 or (self.tree and self.block == 1)) and self.store is not None:
            yield "chains, and a tree over all products, have no store"
        if self.tree and self.block == 1 and self.chains != 1:
            yield "tree and chains exclude each other with block=1"
        if self.tree and self.product is None:
            yield "tree needs a product stage: a leaf is a rounded product"
        if self.tree and aligned:
            yield "tree has neither fraction_bits nor alignment: nothing is aligned in it"
        if self.unpacked is not None and (not aligned or self.product is not None):
            yield "unpacked needs fraction_bits or alignment, and no product stage: it says which exponents are compared"
        if self.block == ALL and segmented:
            yield "segments need a block of a given length"
        if self.block == ALL and aligned:
            yield "fraction_bits and alignment need a block of a given length"
        yield from self._alignment_contradictions()
        if self.block_sum is not None and (self.block in (ALL, 1) or self.tree):
            yield "block_sum needs blocks of several products, and no tree"
        exact_leaves = self.tree and self.leaf > 1
        if self.keeps_zero_sign and (aligned or self.block == 1 or self.tree) and not exact_leaves:
            yield "keeps_zero_sign needs blocks that are added exactly"
        if self.positive_zeros and (not aligned or self.block_sum is not None):
            yield "positive_zeros needs fraction_bits or alignment, and no block_sum"
        if self.leaf > 1 and not (self.tree and self.block > 1 and self.block % self.leaf == 0):
            yield "leaf needs a tree in blocks of a multiple of its length"
        if self.leaf > 1 and self.unsigned_zeros:
            yield "unsigned_zeros needs leaves of one product"
        single = self.block == 1 and not (self.tree or aligned or self.store) and self.chains == 1
        if self.compensation is not None and not (single and self.product):
            yield "compensation needs single rounded products, and neither chains, a tree, alignment nor a store"
        if self.fixed is not None and not (single and self.product is None):
            yield "fixed needs single exact products, and neither chains, a tree, alignment nor a store"
        if self.unsigned_zeros and self.product is None:
            yield "unsigned_zeros needs a product stage"
        if segmented != bool(self.reduction):
            yield "segment or segments come with a reduction, and it with them"
        if self.segment is not None and self.segments is not None:
            yield "segment and segments exclude each other"
        if levels > MAXIMUM_REDUCTIONS:
            yield f"reduction has at most {MAXIMUM_REDUCTIONS} levels"
        if not all(x.sections for x in self.reduction[:-1]) or any(x.sections for x in self.reduction[-1:]):
            yield "all levels of a reduction but the last have sections"
        if any(x.scaling for x in self.reduction[1:]):
            yield "scaling is that of the first level of a reduction"
        if levels > 1 and (self.segment or self.segments is None):
            yield "a reduction of several levels needs segments: their number must be known"

    def _alignment_contradictions(self) -> Iterator[str]:
        """The rules that `fraction_bits` and `alignment` break."""
        how = self.aligned
        if how is None or self.block == ALL:
            return
        if self.fraction_bits is not None and self.alignment is not None:
            yield "fraction_bits and alignment exclude each other"
        if (self.block + 1) << (max(how.terms, how.sum or 0) + 2) > 1 << 53:
            yield "block and fraction_bits or alignment must leave the sum of a block 53 bits or fewer"
        if self.block % (how.group * (2 if how.halves else 1)):
            yield "block must be a multiple of alignment's group, and of two with halves"
        if self.product is not None and (how.group > 1 or how.halves or how.zeros is not None):
            yield "alignment of rounded products has neither group, halves nor zeros"
        if how.group > 1 and self.unpacked is not None:
            yield "unpacked has no part in groups, whose exponents are those of scales"
        if self.block_sum is not None and (how.includes_addend or how.sum is not None):
            yield "block_sum needs includes_addend=False, and neither sum nor addend, in alignment: it adds on its own"
        if self.block_sum is None and not how.includes_addend and how.sum is None:
            yield "alignment without the addend needs sum and addend, or a block_sum"

    @property
    def aligned(self) -> Alignment | None:
        """How terms are cut: `alignment`, or what `fraction_bits` is short for."""
        if self.alignment is None and self.fraction_bits is not None:
            return _alignment(self.fraction_bits)
        return self.alignment

    @property
    def kept_bits(self) -> int | None:
        """Fraction bits that terms keep where these and the running sum are cut toward zero, to one grid; None of all others."""
        how = self.aligned
        return how.terms if how is not None and how == Alignment(how.terms, zeros=how.zeros, least=how.least) else None

    @property
    def partials(self) -> Format:
        """What a running sum is in memory, and what c comes in."""
        if self.reduction:
            last = self.reduction[-1]
            return (last.store or last.running).format
        return (self.store or self.running).format

    @cached_property
    def wide(self) -> bool:
        """Whether a stage's format is."""
        stages = self.running, self.product, self.store, self.block_sum, *(x.running for x in self.reduction)
        return any(x is not None and x.format.wide for x in (*stages, *(x.store for x in self.reduction)))

    def output(self, first: Format, second: Format) -> Format:
        """The output's format for operands in these two, unless the call names one."""
        if isinstance(self.result, Format):
            return self.result
        if self.result == "partials":
            return self.partials
        return first if first.p >= second.p else second

    def replace(self, **changes: Any) -> Accumulator:
        """The same with some parameters changed. `fraction_bits` of one that has an `alignment` are the terms' in it."""
        bits = changes.get("fraction_bits")
        if bits is not None and self.alignment is not None and "alignment" not in changes:
            changes |= {"fraction_bits": None, "alignment": replace(self.alignment, terms=bits)}
        return replace(self, **changes)

    def __repr__(self) -> str:
        return self.name if self.name.endswith(")") else f"Accumulator({self.name!r})"

    def describe(self) -> str:
        """What happens, in one line."""
        parts = []
        if self.product:
            parts.append(f"{f'exact sums of {self.leaf} ' if self.leaf > 1 else ''}products to {self.product}")
        size = {ALL: "all products at once", 1: "one product at a time"}.get(self.block, f"blocks of {self.block}")
        if self.scale_exponent:
            parts.append(f"products times 2^{self.scale_exponent}")
        cut = f", {self.aligned}" if self.aligned is not None else ""
        if self.tree and self.block == 1:
            parts.append(f"added in pairs, each sum to {self.running}")
        elif self.fixed is not None:
            parts.append(f"{size}, {self.fixed}; in the end to {self.running}")
        elif self.tree:
            parts.append(f"{size} added in pairs, then to the running sum, each sum to {self.running}")
        elif self.block_sum is not None:
            parts.append(f"{size}{cut}, their sums to {self.block_sum}, added to {self.running}")
        else:
            parts.append(f"{size}{cut}, {'once' if self.block == ALL else 'each'} to {self.running}")
        if self.compensation:
            parts.append(f"errors compensated ({self.compensation})")
        if self.positive_zeros:
            parts.append("zero sums are +0")
        if self.keeps_zero_sign:
            parts.append("zeros of one sign keep it")
        if self.unsigned_zeros:
            parts.append("zero products are +0")
        if self.chains > 1:
            parts.append(f"{self.chains} interleaved chains added in order")
        if self.order != tuple(range(len(self.order))):
            shown = ", ".join(map(str, self.order[:8])) + (", ..." if len(self.order) > 8 else "")
            parts.append(f"k in the order {shown} of {len(self.order)}")
        if self.store:
            parts.append(f"stored as {self.store} every {self.store_every} products")
        if self.segment:
            parts.append(f"segments of {self.segment}")
        if self.segments:
            parts.append(f"segments {self.segments}")
        for level in self.reduction:
            sections = f", {level.sections} sections" if level.sections else ""
            stored = f", each stored as {level.store}" if level.store else ""
            scaled = f" times scales ({level.scaling})" if level.scaling else ""
            parts.append(f"their sums{scaled} added to {level.running}{sections}{stored}")
        parts.append(f"c and partials {self.partials}")
        return f"{self.name}: {'; '.join(parts)}"


# -- presets ---------------------------------------------------------------------------------------------------------


class Preset(NamedTuple):
    """One row of `PRESETS`: the function, and what `softfloat.accumulators.roster.Row` says of it."""

    make: Callable[..., Accumulator]
    example: str
    meaning: str
    source: str
    standing: str
    parameters: Mapping[str, tuple[Any, ...]]


PRESETS: dict[str, Preset] = {}
"""Name -> function, an example, what it means, where the rule comes from, how sure it is, and the parameters; `preset` fills it."""

Make = TypeVar("Make", bound=Callable[..., "Accumulator"])


def preset(make: Make) -> Make:
    """A decorator: the function is that of a row of `PRESET_ROWS` under its own name, and what it makes, a value, is kept."""
    row = PRESET_ROWS[make.__name__]

    def sourced(*arguments: Any, **settings: Any) -> Accumulator:
        return make(*arguments, **settings).replace(source=row.source)

    kept = lru_cache(maxsize=256, typed=True)(sourced)

    @wraps(make)
    def made(*arguments: Any, **settings: Any) -> Accumulator:
        try:
            return kept(*arguments, **settings)
        except TypeError:  # of no kind that is kept, or refused: then again, saying why
            return sourced(*arguments, **settings)

    PRESETS[row.name] = Preset(made, row.example, row.meaning, row.source, row.standing, row.parameters)
    return cast(Make, made)
