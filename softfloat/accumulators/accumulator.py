"""How a dot product is summed: an `Accumulator` describes it, presets say what hardware and libraries do.

Products a[k]*b[k] enter in the order of k. The words:

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
    Product k belongs to running sum k mod `chains`, and these are added in order at the end; or products are added in
    pairs, pairs of products in pairs, and so on, an odd one out going up as it is.

Rules that hold for all of them:

* The addend c is where the sum starts: the running sum, or with segments the last reduction's; without c it starts at
  +0. Each chain starts at +0; chains and trees add c at the end, and without c nothing, as units without an addend do.
  An empty sum is c; a signalling NaN raises INVALID even there, and is quieted.
* The order within a group permutes the products of each group. A group and a block that k, or a segment, leaves
  incomplete are filled with products +0; a shorter last segment is not.
* A product is exact unless there is a `product` stage. The exact sum of a block is +0 where it is zero, or -0 toward
  negative, if more than one product meets the running sum; a single product follows IEEE 754-2019 6.3. A single product
  that a tree has nothing to add to is converted to the running format.
* A subnormal counts as zero where the stage that rounded it says so. c is read as the stage that makes partials reads.
* Flags of an output are those of all its roundings, OR-ed, and INVALID for signalling operands, 0 * inf and inf - inf.
  Bits lost in alignment raise INEXACT.

* NaN payloads pass on, under policies that propagate them, where products are added one at a time, without chains, a
  tree or `fraction_bits`; any other NaN result is the policy's default one.

>>> from softfloat.accumulators import amp, fma
>>> fma("float16")
fma('float16')
>>> print(amp("half").describe())
amp('float16'): blocks of 4, each to float32 nearest_even daz ftz; stored as float16 every 16 products; c and partials float16
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from softfloat.environment import as_member, as_rounding
from softfloat.formats import ROSTER, Format, bfloat16, check_format, float16, float32, tfloat32
from softfloat.kernels.spec import NAN_POLICIES, Overflow, Rounding, Tininess

__all__ = [
    "PRESETS",
    "TENSOR_CORES",
    "Accumulator",
    "Preset",
    "Reduction",
    "Stage",
    "TensorCore",
    "amp",
    "chunked",
    "exact",
    "fma",
    "mul_add",
    "pairwise",
    "slic",
    "tensor_core",
    "vdpbf16ps",
]

MAXIMUM_REDUCTIONS = 3
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
        settle = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 -- the one way past `frozen`
        settle("format", check_format(self.format, "format"))
        if self.rounding is not None:
            settle("rounding", as_rounding(self.rounding))
        if self.overflow is not None:
            settle("overflow", as_member(Overflow, self.overflow, "overflow"))
        if self.tininess is not None:
            settle("tininess", as_member(Tininess, self.tininess, "tininess"))
        _switches(self, "daz", "ftz")
        if not self.format.zero:
            raise ValueError(f"format must have a zero for sums to start from, and {self.format} has none")

    def __str__(self) -> str:
        fixed = [] if self.rounding is None else [self.rounding.name.lower()]
        fixed += ["daz"] * bool(self.daz) + ["ftz"] * bool(self.ftz)
        return " ".join([self.format.name, *fixed])


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
    """

    running: Stage
    sections: int | None = None
    store: Stage | None = None

    def __post_init__(self) -> None:
        _kind("running", self.running, Stage)
        _kind("store", self.store, Stage, optional=True)
        if self.sections is not None:
            _whole("sections", self.sections, 1)


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
        Rounds each product first; only one product at a time.
    block : int
        Products that meet the running sum at once; 0: all of them.
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
        Add in pairs.
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
        what these leave open to the call.
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
    result: str | Format = "partials"
    nan: str | None = None
    note: str = field(default="", compare=False)
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        settle = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 -- the one way past `frozen`
        _kind("name", self.name, str)
        _kind("running", self.running, Stage)
        for name in ("product", "store"):
            _kind(name, getattr(self, name), Stage, optional=True)
        for name in ("inputs", "order", "reduction"):
            _kind(name, getattr(self, name), (tuple, list))
            settle(name, tuple(getattr(self, name)))
        for level in self.reduction:
            _kind("reduction", level, Reduction)
        if isinstance(self.segments, list):
            settle("segments", tuple(self.segments))
        if self.unpacked is not None:
            settle("unpacked", check_format(self.unpacked, "unpacked"))
        _kind("tree", self.tree, bool)
        _switches(self, "daz")
        settle("inputs", tuple(check_format(x, "inputs") for x in self.inputs))
        _whole("block", self.block, 0)
        _whole("store_every", self.store_every, 1)
        _whole("chains", self.chains, 1)
        for name in ("fraction_bits", "segment", "channel_group"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), 1)
        if self.fraction_bits is not None and not self.fraction_bits <= 40:
            raise ValueError(f"fraction_bits must be 1 to 40 or None, got {self.fraction_bits}")
        if sorted(self.order) != list(range(len(self.order))) or not self.order:
            raise ValueError(f"order must be a permutation of 0 ... n-1, got {self.order!r}")
        if isinstance(self.segments, tuple):
            for length in self.segments:
                _whole("segments", length, 1)
        elif self.segments is not None:
            _whole("segments", self.segments, 1)
        if self.nan is not None and self.nan not in NAN_POLICIES:
            raise ValueError(f"nan must be one of {', '.join(map(repr, NAN_POLICIES))} or None, got {self.nan!r}")
        if self.result not in ("partials", "inputs"):
            settle("result", check_format(self.result, "result"))
        self._refuse_contradictions()

    def _refuse_contradictions(self) -> None:
        whole = self.block or 1
        multiple = self.block if self.block > 1 else 1
        segmented = self.segment is not None or self.segments is not None
        rules = [
            (self.store is None or self.store_every % whole == 0, "store_every must be a multiple of block"),
            (self.store is not None or self.store_every == 1, "store_every needs a store"),
            (self.block != ALL or self.store is None, "store must be None with block=0"),
            (self.block != ALL or len(self.order) == 1, "order must be (0,) with block=0"),
            (
                self.block == 1 or self.product is None,
                "product must be None unless block=1: a block's products are exact",
            ),
            (not (self.tree or self.chains > 1) or multiple == 1 == whole, "tree and chains need block=1"),
            (
                not (self.tree or self.chains > 1) or not (self.store or segmented),
                "tree and chains have neither store nor segments",
            ),
            (not self.tree or self.chains == 1, "tree and chains exclude each other"),
            (not self.tree or self.product is not None, "tree needs a product stage: a leaf is a rounded product"),
            (not self.tree or self.fraction_bits is None, "tree has no fraction_bits: nothing is aligned in it"),
            (
                self.unpacked is None or (self.fraction_bits is not None and self.product is None),
                "unpacked needs fraction_bits and no product stage: it says which exponents are compared",
            ),
            (self.block != ALL or not segmented, "segments need a block of a given length"),
            (self.block != ALL or self.fraction_bits is None, "fraction_bits need a block of a given length"),
            (
                self.fraction_bits is None or (self.block + 1) << (self.fraction_bits + 2) <= 1 << 53,
                "block and fraction_bits must leave the sum of a block 53 bits or fewer",
            ),
            (segmented == bool(self.reduction), "segment or segments come with a reduction, and it with them"),
            (self.segment is None or self.segments is None, "segment and segments exclude each other"),
            (len(self.reduction) <= MAXIMUM_REDUCTIONS, f"reduction has at most {MAXIMUM_REDUCTIONS} levels"),
            (
                all(x.sections for x in self.reduction[:-1]) and not any(x.sections for x in self.reduction[-1:]),
                "all levels of a reduction but the last have sections",
            ),
            (
                len(self.reduction) < 2 or not (self.segment or self.segments is None),
                "a reduction of several levels needs segments: their number must be known",
            ),
        ]
        for holds, rule in rules:
            if not holds:
                raise ValueError(f"{rule}; got {self.name!r}")

    @property
    def partials(self) -> Format:
        """What a running sum is in memory, and what c comes in."""
        if self.reduction:
            last = self.reduction[-1]
            return (last.store or last.running).format
        return (self.store or self.running).format

    def output(self, first: Format, second: Format) -> Format:
        """The output's format for operands in these two, unless the call names one."""
        if isinstance(self.result, Format):
            return self.result
        if self.result == "partials":
            return self.partials
        return first if first.p >= second.p else second

    def replace(self, **changes: Any) -> Accumulator:
        """The same with some parameters changed."""
        return replace(self, **changes)

    def __repr__(self) -> str:
        return self.name if self.name.endswith(")") else f"Accumulator({self.name!r})"

    def describe(self) -> str:
        """What happens, in one line."""
        parts = []
        if self.product:
            parts.append(f"products to {self.product}")
        size = {ALL: "all products at once", 1: "one product at a time"}.get(self.block, f"blocks of {self.block}")
        if self.tree:
            parts.append(f"added in pairs, each sum to {self.running}")
        else:
            cut = (
                f", cut to {self.fraction_bits} fraction bits below the largest exponent" if self.fraction_bits else ""
            )
            parts.append(f"{size}{cut}, {'once' if self.block == ALL else 'each'} to {self.running}")
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
            parts.append(f"their sums added to {level.running}{sections}{stored}")
        parts.append(f"c and partials {self.partials}")
        return f"{self.name}: {'; '.join(parts)}"

    @classmethod
    def from_poplar_options(
        cls,
        options: Mapping[str, Any],
        *,
        inputs: Format | str = "float16",
        out_format: Format | str | None = None,
        splits: int | tuple[int, ...] | None = None,
        stages: tuple[int, ...] | None = None,
        mode: str = "exact",
    ) -> Accumulator:
        """The accumulator that poplibs' matmul and convolution options describe (`amp`, reduced across tiles).

        Parameters
        ----------
        options : mapping
            Names and values as poplibs spells them. "partialsType", "partialsType.interTile", "partialsType.interIPU"
            ("half" or "float"), "enableMultiStageReduce" and "disableSRForAMPVertices" (bool, "true" or "false") are
            numeric; one IPU is modelled, so that "interIPU" has no effect. Names in `POPLAR_PLAN_OPTIONS` only move the
            planner's choices, which `splits` states, and are accepted without effect. Defaults are those of poplibs'
            code; its documentation says that "interTile" follows "partialsType", the code has float.
        inputs : Format or str
            Type of the operands.
        out_format : Format or str, optional
            Type of the output; default that of the operands.
        splits : int or tuple of int, optional
            In how many parts, or parts of what lengths, tiles share k. A plan knows; None: one tile has all of it.
        stages : tuple of int, optional
            Sections after each stage but the last of the reduction; default: none below 16 partials, floor(P^(1/2))
            below 125, floor(P^(2/3)) and the square root of that from there (poplibs, ConvReducePlan.cpp, which also
            weighs each against one more by a cost model not reproduced here).
        mode : str
            As in `amp`.

        Raises
        ------
        ValueError
            Naming an unknown option or value.
        """
        _kind("options", options, Mapping)
        if splits is None and stages is not None:
            raise ValueError("stages are those of a reduction across tiles, and need splits")
        if splits is not None:
            splits = tuple(splits) if isinstance(splits, (tuple, list)) else splits
            for part in splits if isinstance(splits, tuple) else (splits,):
                _whole("splits", part, 1)
            splits = splits if isinstance(splits, tuple) else int(splits)
        known = {"partialsType": "float", "partialsType.interTile": None, "partialsType.interIPU": None}
        switches = {"enableMultiStageReduce": True, "disableSRForAMPVertices": False}
        unknown = set(options) - set(known) - set(switches) - POPLAR_PLAN_OPTIONS
        if unknown:
            raise ValueError(
                f"options has {', '.join(map(repr, sorted(unknown)))}; "
                f"accepted: {', '.join(map(repr, [*known, *switches, *sorted(POPLAR_PLAN_OPTIONS)]))}"
            )
        types = {name: _poplar_type(name, options.get(name, default)) for name, default in known.items()}
        flags = {name: _poplar_switch(name, options.get(name, default)) for name, default in switches.items()}
        operand = check_format(inputs, "inputs")
        out = operand if out_format is None else check_format(out_format, "out_format")
        partials = types["partialsType"]
        assert partials is not None
        if out.p > partials.p:  # never narrower than the output
            partials = float32
        core = amp(
            partials,
            inputs=operand,
            out_format=out,
            mode=mode,
            stochastic=not flags["disableSRForAMPVertices"],
        )
        name = f"Accumulator.from_poplar_options({dict(options)!r}, splits={splits!r})"
        if splits is None:
            return core
        between = types["partialsType.interTile"] or float32
        count = splits if isinstance(splits, int) else len(splits)
        if between.p < out.p:
            between = float32
        adding = _single()
        stored = Stage(between)
        depths = stages if stages is not None else _stages(count, flags["enableMultiStageReduce"])
        levels = (*(Reduction(adding, sections, stored) for sections in depths), Reduction(adding))
        return core.replace(
            name=name,
            segments=splits,
            reduction=levels,
            source=core.source + "; poplibs ConvReduce.cpp, ReduceAdd.S: sums of partials in single, rounded once",
        )


POPLAR_PLAN_OPTIONS = frozenset(
    (
        "availableMemoryProportion",
        "enableConvDithering",
        "enableFastReduce",
        "enableTileLevelExpandDims",
        "disableTransformations",
        "experimental.convTransformsEstimates",
        "experimental.slicVmac16",
        "fullyConnectedPass",
        "gatherConvOutput",
        "gatherOutput",
        "inputRHSIsPreArranged",
        "insertTransformsCycleCountProgs",
        "pass",
        "planConstraints",
        "planConstraintsOutputFilename",
        "remapOutputTensor",
        "use128BitConvUnitLoad",
    )
)
"""Options of poplibs' convolutions and matmuls that change a result only through the plan."""


def _stages(count: int, several: bool) -> tuple[int, ...]:
    if not several or count < 16:
        return ()
    if count < 125:
        return (_root(count, 2),)
    first = _root(count * count, 3)
    return first, _root(first, 2)


def _root(x: int, degree: int) -> int:
    """floor(x^(1/degree))."""
    guess = round(x ** (1 / degree))
    return guess - (guess**degree > x)


def _poplar_type(name: str, value: Any) -> Format | None:
    types = {None: None, "half": float16, "float": float32}
    if not isinstance(value, (str, type(None))) or value not in types or (value is None and name == "partialsType"):
        raise ValueError(f"options[{name!r}] must be 'half' or 'float', got {value!r}")
    return types[value]


def _poplar_switch(name: str, value: Any) -> bool:
    switches = {True: True, False: False, "true": True, "false": False}
    if not isinstance(value, (bool, str)) or value not in switches:
        raise ValueError(f"options[{name!r}] must be True, False, 'true' or 'false', got {value!r}")
    return switches[value]


def _kind(name: str, value: Any, kind: Any, optional: bool = False) -> None:
    if not isinstance(value, kind) and not (optional and value is None):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        accepted = " or ".join(x.__name__ for x in kinds) + (" or None" if optional else "")
        raise TypeError(f"{name} must be {accepted}, got {value!r}")


def _switches(owner: Any, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"{name} must be True, False or None, got {value!r}")


def _whole(name: str, value: Any, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < low:
        raise ValueError(f"{name} must be at least {low}, got {value}")


# -- presets ---------------------------------------------------------------------------------------------------------


def fma(fmt: Format | str) -> Accumulator:
    """One fused multiply-add after another, each rounded to `fmt`.

    >>> fma("bfloat16").describe()
    "fma('bfloat16'): one product at a time, each to bfloat16; c and partials bfloat16"
    """
    fmt = check_format(fmt, "fmt")
    return Accumulator(name=f"fma({fmt.name!r})", running=Stage(fmt), source=PRESETS["fma"].source)


def mul_add(fmt: Format | str) -> Accumulator:
    """Each product rounded to `fmt`, then each sum."""
    fmt = check_format(fmt, "fmt")
    return Accumulator(
        name=f"mul_add({fmt.name!r})", product=Stage(fmt), running=Stage(fmt), source=PRESETS["mul_add"].source
    )


def exact(fmt: Format | str) -> Accumulator:
    """The exact sum of all products and c, rounded once to `fmt` (Kulisch's long accumulator)."""
    fmt = check_format(fmt, "fmt")
    return Accumulator(name=f"exact({fmt.name!r})", block=ALL, running=Stage(fmt), source=PRESETS["exact"].source)


def pairwise(fmt: Format | str) -> Accumulator:
    """Products rounded to `fmt`, added in pairs, each sum rounded to `fmt`."""
    fmt = check_format(fmt, "fmt")
    return Accumulator(
        name=f"pairwise({fmt.name!r})",
        product=Stage(fmt),
        running=Stage(fmt),
        tree=True,
        source=PRESETS["pairwise"].source,
    )


def chunked(length: int, inner: Format | str | Accumulator, outer: Format | str) -> Accumulator:
    """Chunks of `length` products, each summed by `inner` from +0; their sums are added up in `outer`.

    Parameters
    ----------
    length : int
        Products of a chunk.
    inner : Format, str or Accumulator
        A format means fused multiply-adds rounded to it. An accumulator adds products in order, singly or in blocks:
        without a tree, chains, or segments of its own.
    outer : Format or str
        The format that sums of chunks are added in; c starts there.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.
    """
    _whole("length", length, 1)
    if not isinstance(inner, Accumulator):
        inner = fma(inner)
    _check_inner(inner, length)
    outer = check_format(outer, "outer")
    return inner.replace(
        name=f"chunked({length}, {inner.name}, {outer.name!r})",
        segment=length,
        reduction=(Reduction(Stage(outer)),),
        result="partials",
        source=PRESETS["chunked"].source,
    )


def _check_inner(inner: Accumulator, length: int) -> None:
    """Refuse what cannot sum a chunk, in the words of `chunked`."""
    if inner.block == ALL:
        raise ValueError(
            f"inner must add products singly or in blocks of a given length, got {inner!r}, which adds all at once; "
            f"for one rounding a chunk pass {inner!r}.replace(block={length})"
        )
    for applies, how in (
        (inner.tree, "adds in a tree"),
        (inner.chains > 1, "has chains"),
        (bool(inner.reduction), "has segments of its own"),
    ):
        if applies:
            raise ValueError(
                f"inner must add the products of a chunk one after the other or in blocks, got {inner!r}, which {how}; "
                "accepted: a format, or accumulators such as fma(fmt) and mul_add(fmt)"
            )


def vdpbf16ps() -> Accumulator:
    """x86 AVX512_BF16 VDPBF16PS, one 32-bit lane, pairs of bfloat16 in the order of memory.

    Of each pair the second product first; a fused multiply-add each, nearest even, subnormals read and written as
    zero, tininess after rounding. MXCSR is neither read nor written: the flags are those the same multiply-adds raise.
    """
    lane = Stage(float32, Rounding.NEAREST_EVEN, Overflow.INFINITY, daz=True, ftz=True, tininess=Tininess.AFTER)
    return Accumulator(
        name="vdpbf16ps()",
        inputs=(bfloat16,),
        running=lane,
        order=(1, 0),
        daz=True,
        nan="x86_fma3",
        source=PRESETS["vdpbf16ps"].source,
    )


E8M13 = Format("e8m13", exponent_bits=8, mantissa_bits=13)
"""What fp8 products are summed to on Ada and Hopper; float32 holds it."""
E5M2, E4M3 = ROSTER["float8_e5m2"], ROSTER["float8_e4m3fn"]


class TensorCore(NamedTuple):
    """One row of `TENSOR_CORES`: what one block fused multiply-add of a tensor core does."""

    architecture: str
    input: str  # float16 stands for bfloat16 too, float8 for both fp8 formats
    instruction: str
    block: int
    fraction_bits: int
    sum_bits: int  # fraction bits of a float32 result
    outputs: tuple[str, ...]
    note: str = ""


BOTH, SINGLE = ("float32", "float16"), ("float32",)
UNVERIFIED = "fraction bits from the published model, not from measured rows"
HALF_UNVERIFIED = "float16 results from the published model, not from measured rows"
TENSOR_CORES = (
    TensorCore("V100", "float16", "mma.sync", 4, 23, 23, BOTH),
    TensorCore("A100", "float16", "mma.sync", 8, 24, 23, BOTH),
    TensorCore("A100", "tfloat32", "mma.sync", 4, 24, 23, SINGLE),
    TensorCore("Ada", "float16", "mma.sync", 8, 24, 23, BOTH),
    TensorCore("Ada", "tfloat32", "mma.sync", 4, 24, 23, SINGLE),
    TensorCore("Ada", "float8", "mma.sync", 16, 13, 13, BOTH),
    TensorCore("H100", "float16", "wgmma", 16, 25, 23, BOTH),
    TensorCore("H100", "tfloat32", "wgmma", 8, 25, 23, SINGLE),
    TensorCore("H100", "float8", "wgmma", 32, 13, 13, BOTH, HALF_UNVERIFIED),
    TensorCore("B200", "float16", "tcgen05", 16, 25, 23, BOTH),
    TensorCore("B200", "tfloat32", "tcgen05", 8, 25, 23, SINGLE),
    TensorCore("B200", "float8", "tcgen05", 32, 25, 23, BOTH, UNVERIFIED),
)
SAME_AS = {"A2": "A100", "L40S": "Ada", "H200": "H100"}
"""Architectures that the same rows describe."""
UNPACKING = ("H100", "H200", "B200")
"""Where `mma.sync` exists too: the same for 16- and 19-bit inputs; fp8 is unpacked to half."""
UNPACKED_ORDER = tuple(k for low in (0, 2) for k in range(32) if k % 4 in (low, low + 1))


def tensor_core(
    arch: str, input: Format | str = "float16", output: Format | str = "float32", instruction: str | None = None
) -> Accumulator:
    """NVIDIA tensor cores: blocks of products and the running sum, aligned, cut, added, and cut again.

    Parameters
    ----------
    arch : str
        "V100", "A100", "A2", "Ada", "L40S", "H100", "H200" or "B200".
    input : Format or str
        "float16", "bfloat16" (not on V100), "tfloat32" (not on V100), "float8_e4m3fn" or "float8_e5m2" (from Ada on;
        either accepts operands in both).
    output : Format or str
        "float32" or "float16": the accumulator. With float16 each block is rounded to nearest even.
    instruction : str, optional
        "mma.sync", or what the architecture has beside it: "wgmma" (H100, H200), "tcgen05" (B200), their default. On
        these, fp8 through "mma.sync" is unpacked to half: two halves of each 32 products, a chain from +0, then one
        ordinary addition to c, in the output's format.

    Raises
    ------
    ValueError
        For what the architecture does not have.

    Notes
    -----
    Zero products have no part in the largest exponent; the published models disagree on that, and on a floor for it.
    Measured rows do not decide: those that hold zeros, of e4m3, have larger exponents beside them. NaN is 0x7FFFFFFF
    (0x7FFF in half). Hardware raises no flags; those returned say what a block did: INEXACT if any bit was cut,
    OVERFLOW, UNDERFLOW, INVALID.

    Source: Khattak and Mikaitis, arXiv 2512.07004, and their measured rows; Microsoft's MMA-Sim.
    """
    known = sorted({row.architecture for row in TENSOR_CORES} | set(SAME_AS))
    if arch not in known:
        raise ValueError(f"arch must be one of {', '.join(map(repr, known))}, got {arch!r}")
    fmt, out = check_format(input, "input"), check_format(output, "output")
    family = "float16" if fmt in (float16, bfloat16) else "float8" if fmt in (E5M2, E4M3) else fmt.name
    rows = [row for row in TENSOR_CORES if row.architecture == SAME_AS.get(arch, arch)]
    offered = [x for row in rows for x in _inputs(row, arch)]
    row = next((row for row in rows if row.input == family), None)
    if row is None or fmt not in offered:
        raise ValueError(f"input must be one of {', '.join(repr(x.name) for x in offered)} on {arch}, got {fmt.name!r}")
    instructions = dict.fromkeys((row.instruction, "mma.sync"))
    if instruction is not None and instruction not in instructions:
        raise ValueError(
            f"instruction must be {' or '.join(map(repr, instructions))} on {arch}, or None, got {instruction!r}"
        )
    chosen = instruction or row.instruction
    outputs = tuple(x for x in row.outputs if x != "float16" or fmt not in (bfloat16,))
    unpacked = chosen == "mma.sync" and arch in UNPACKING and family == "float8"
    if out.name not in outputs:
        raise ValueError(
            f"output must be {' or '.join(map(repr, outputs))} for {fmt.name} on {arch} by {chosen}, got {out.name!r}"
        )
    shown = f", instruction={instruction!r}" if instruction else ""
    common: dict[str, Any] = {
        "name": f"tensor_core({arch!r}, input={fmt.name!r}, output={out.name!r}{shown})",
        "inputs": (E4M3, E5M2) if family == "float8" else (fmt,),
        "daz": False,
        "nan": "nvidia",
        "note": "" if unpacked else row.note,
        "source": PRESETS["tensor_core"].source,
    }
    cut = {"rounding": Rounding.TOWARD_ZERO, "overflow": Overflow.INFINITY, "daz": False, "ftz": False}
    nearest = Stage(out, Rounding.NEAREST_EVEN, Overflow.INFINITY, daz=False, ftz=False)
    truncated = Stage(float32, always_infinite=True, **cut)  # type: ignore[arg-type]
    if unpacked:
        half = next(x for x in rows if x.input == "float16")
        return Accumulator(
            running=nearest if out == float16 else truncated,
            block=half.block,
            fraction_bits=half.fraction_bits,
            order=UNPACKED_ORDER,
            segment=len(UNPACKED_ORDER),
            reduction=(Reduction(nearest),),
            unpacked=float16,
            **common,
        )
    store = None
    if out == float16:
        running = nearest
    elif row.sum_bits < float32.mantissa_bits:
        running, store = Stage(E8M13, always_infinite=True, **cut), nearest  # type: ignore[arg-type]
    else:
        running = truncated
    return Accumulator(
        running=running,
        block=row.block,
        fraction_bits=row.fraction_bits,
        store=store,
        store_every=row.block if store else 1,
        **common,
    )


def _inputs(row: TensorCore, arch: str) -> tuple[Format, ...]:
    if row.input == "float8":
        return E4M3, E5M2
    if row.input == "float16":
        return (float16,) if arch == "V100" else (float16, bfloat16)
    return (tfloat32,)


class _Datapath(NamedTuple):
    """One row of `IPU_DATAPATHS`: what one pass of the IPU's multiply-accumulate unit takes."""

    inputs: tuple[Format, ...]
    block: int
    group: int
    partials: tuple[Format, ...]


QUARTERS = (ROSTER["float8_e4m3fnuz"], ROSTER["float8_e5m2fnuz"])
IPU_DATAPATHS = {
    "half": _Datapath((float16,), 4, 16, (float16, float32)),
    "float": _Datapath((float32,), 1, 8, (float32,)),
    "quarter": _Datapath(QUARTERS, 8, 32, (float16,)),
}
"""Inputs of a phase and of a pass of four phases (eight of single), and the partials types they may have."""
IPU_MODES = ("exact", "aligned", "chained")
IPU_FRACTION_BITS = 31
DOCUMENTED = "documented behaviour, not measured on silicon"


def _single(rounding: Rounding = Rounding.NEAREST_EVEN) -> Stage:
    """The IPU's single precision: no subnormals, overflow to infinity."""
    return Stage(float32, rounding, Overflow.INFINITY, daz=True, ftz=True, always_infinite=True)


def amp(
    partials: Format | str = "float32",
    *,
    inputs: Format | str = "float16",
    out_format: Format | str | None = None,
    mode: str = "exact",
    rounding: Rounding | str = Rounding.NEAREST_EVEN,
    stochastic: bool = True,
) -> Accumulator:
    """The IPU's Accumulating Matrix Product unit: documented behaviour, not silicon.

    Half inputs: four products meet the accumulator, a single, in each of four phases; after these 16 products the
    accumulator goes to memory in the partials type.

    Parameters
    ----------
    partials : Format or str
        "half" or "float". Single inputs need "float", quarter inputs "half".
    inputs : Format or str
        "float16", "float32" (one product a phase, eight phases) or an IPU quarter format, "float8_e4m3fnuz" or
        "float8_e5m2fnuz", mixed at will (eight products a phase).
    out_format : Format or str, optional
        Of the output; default that of the inputs, half for quarter inputs.
    mode : str
        How the products of a phase meet the accumulator, which no public source settles: "exact" rounds their exact sum
        once; "aligned" cuts each term to 31 fraction bits below the largest exponent first; "chained" adds one product
        after the other.
    rounding : Rounding or str
        Of the accumulator; "nearest_even" or "toward_zero", likewise unsettled.
    stochastic : bool
        False leaves stochastic rounding out where half partials are stored (`disableSRForAMPVertices`).

    Notes
    -----
    Stores, and the output, follow the call's options: `Environment.ipu(esr=..., nanoo=...)` rounds stochastically,
    saturates or makes NaN. The accumulator itself is a single without subnormals.

    Source: Graphcore's ISA documents and poplibs: dot-4 phases, one rounding of half partials for each 16 inputs.
    """
    return _ipu("amp", 1, partials, inputs, out_format, mode, rounding, stochastic)


def slic(
    partials: Format | str = "float32",
    *,
    window: int = 4,
    inputs: Format | str = "float16",
    out_format: Format | str | None = None,
    mode: str = "exact",
    rounding: Rounding | str = Rounding.NEAREST_EVEN,
    stochastic: bool = True,
) -> Accumulator:
    """The IPU's slim convolution: the phases of `amp`, one for each position of a 1 x `window` kernel, 3 or 4 of them.

    k runs over positions of the window, four channels each; partials are stored after each pass of the window. In
    convolutions the group is four input channels. Everything else as in `amp`.
    """
    if isinstance(window, float) or window not in (3, 4):
        raise ValueError(f"window must be 3 or 4, got {window!r}")
    return _ipu("slic", window, partials, inputs, out_format, mode, rounding, stochastic)


def _ipu(
    unit: str,
    window: int,
    partials: Format | str,
    inputs: Format | str,
    out_format: Format | str | None,
    mode: str,
    rounding: Rounding | str,
    stochastic: bool,
) -> Accumulator:
    names = {"half": "float16", "float": "float32"}
    memory = check_format(names.get(partials, partials) if isinstance(partials, str) else partials, "partials")
    operand = check_format(names.get(inputs, inputs) if isinstance(inputs, str) else inputs, "inputs")
    path = next((x for x in IPU_DATAPATHS.values() if operand in x.inputs), None)
    if path is None:
        accepted = [x.name for path in IPU_DATAPATHS.values() for x in path.inputs]
        raise ValueError(f"inputs must be one of {', '.join(map(repr, accepted))}, got {operand.name!r}")
    if memory not in path.partials:
        raise ValueError(
            f"partials must be {' or '.join(repr(x.name) for x in path.partials)} for {operand.name} inputs, got {memory.name!r}"
        )
    if mode not in IPU_MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, IPU_MODES))}, got {mode!r}")
    direction = as_rounding(rounding)
    if direction not in (Rounding.NEAREST_EVEN, Rounding.TOWARD_ZERO):
        raise ValueError(f"rounding must be 'nearest_even' or 'toward_zero', got {rounding!r}")
    if not isinstance(stochastic, bool):
        raise TypeError(f"stochastic must be True or False, got {stochastic!r}")
    group = path.group if unit == "amp" else path.block * window
    out = (
        check_format(out_format, "out_format")
        if out_format is not None
        else float16
        if operand in QUARTERS
        else operand
    )
    store = None
    if memory == float16:
        store = Stage(float16, None if stochastic else Rounding.NEAREST_EVEN)
    chosen = {"inputs": operand.name, "mode": mode, "rounding": direction.name.lower(), "stochastic": stochastic}
    defaults = {"inputs": "float16", "mode": "exact", "rounding": "nearest_even", "stochastic": True}
    if unit == "slic":
        chosen, defaults = {"window": window, **chosen}, {"window": 4, **defaults}
    if out_format is not None:
        chosen["out_format"] = out.name
    shown = "".join(f", {name}={value!r}" for name, value in chosen.items() if value != defaults.get(name))
    return Accumulator(
        name=f"{unit}({memory.name!r}{shown})",
        inputs=path.inputs,
        running=_single(direction),
        block=1 if mode == "chained" else path.block,
        fraction_bits=IPU_FRACTION_BITS if mode == "aligned" else None,
        store=store,
        store_every=group if store else 1,
        order=tuple(range(group)),
        daz=operand == float32,
        channel_group=path.group if unit == "amp" else path.block,
        result=out,
        note=DOCUMENTED,
        source=PRESETS[unit].source,
    )


class Preset(NamedTuple):
    """One row of `PRESETS`."""

    make: Callable[..., Accumulator]
    example: str
    meaning: str
    source: str


PRESETS = {
    row.make.__name__: row
    for row in (
        Preset(fma, "fma('float16')", "one fused multiply-add per product", "IEEE 754-2019 5.4.1 fusedMultiplyAdd"),
        Preset(
            mul_add,
            "mul_add('float16')",
            "product rounded, then sum rounded",
            "IEEE 754-2019 5.4.1 multiplication, addition",
        ),
        Preset(
            amp,
            "amp('half')",
            "IPU AMP: dot-4 phases in single, partials stored every 16 inputs",
            "Graphcore ISA documents; poplibs inlineAssemblerConv.hpp, Convolution.hpp: documented behaviour",
        ),
        Preset(
            slic,
            "slic('half', window=4)",
            "IPU slim convolution: one phase per position of a short window",
            "Graphcore ISA documents; poplibs inlineAssemblerSLIC.hpp: documented behaviour",
        ),
        Preset(
            vdpbf16ps,
            "vdpbf16ps()",
            "x86 AVX512_BF16: second of each pair first, DAZ, FTZ",
            "Intel SDM, VDPBF16PS; checked against the instruction",
        ),
        Preset(
            tensor_core,
            "tensor_core('H100')",
            "NVIDIA: blocks aligned to the largest exponent, cut, added, cut",
            "Khattak and Mikaitis, arXiv 2512.07004, measured rows; Microsoft MMA-Sim",
        ),
        Preset(
            chunked,
            "chunked(64, 'float16', 'float32')",
            "chunks with sums of their own, added up in another format",
            "Wang et al., Training Deep Neural Networks with 8-bit Floating Point Numbers, NeurIPS 2018",
        ),
        Preset(
            pairwise,
            "pairwise('float16')",
            "sums in pairs, pairs of pairs ...",
            "Higham, The accuracy of floating point summation, SIAM J. Sci. Comput. 14 (1993)",
        ),
        Preset(
            exact,
            "exact('float32')",
            "exact sum, one rounding",
            "Kulisch, Computer Arithmetic and Validity (2008); IEEE 754-2019 9.4 leaves it open",
        ),
    )
}
"""Name -> function, an example, what it means, and where the rule comes from."""
