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
from collections.abc import Sequence
from typing import Any, NamedTuple

from softfloat.formats import ROSTER, Format
from softfloat.kernels.spec import Overflow, Rounding
from softfloat.reference.outputs import (
    HALF,
    LEVEL,
    PRODUCT,
    RUNNING,
    SINGLE,
    STORE,
    Codes,
    Number,
    Output,
    Pair,
    Site,
    Term,
    groups,
    philox,
)
from softfloat.reference.running import compensated, fixed_point, systolic
from softfloat.reference.scaled import scaled_chunks, scaled_core, scaled_exact
from softfloat.reference.units import (
    amd_mfma,
    amx,
    arm_bfdot,
    arm_fdot,
    arm_fmmla,
    arm_fp8dot,
    rvbna,
    vdpbf16ps,
    vdpphps,
)
from softfloat.reference.values import Result

__all__ = [
    "amd_mfma",
    "amp",
    "amx",
    "arm_bfdot",
    "arm_fdot",
    "arm_fmmla",
    "arm_fp8dot",
    "blocks",
    "chains",
    "chunked",
    "compensated",
    "exact",
    "fixed_point",
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
    "systolic",
    "tensor_core",
    "torch_mm",
    "vdpbf16ps",
    "vdpphps",
]

E8M13 = Format("e8m13", exponent_bits=8, mantissa_bits=13)


# -- one product at a time, and all at once --------------------------------------------------------------------------


def fma(a: Codes, b: Codes, fmts: Pair, fmt: Format, c: int | None = None, **options: Any) -> Result:
    """One fused multiply-add after another, from c."""
    output, running = Output(options), Site(RUNNING, fmt)
    total = output.start(c, running)
    for term in output.terms(a, b, fmts, running):
        total = output.fuse(running, term, total)
    return output.deliver(total)


def mul_add(a: Codes, b: Codes, fmts: Pair, fmt: Format, c: int | None = None, **options: Any) -> Result:
    """Each product rounded, then added to the sum so far, from c."""
    output, product, running = Output(options), Site(PRODUCT, fmt), Site(RUNNING, fmt)
    total = output.start(c, running)
    for term in output.terms(a, b, fmts, running):
        total = output.add(running, total, output.multiply(product, term))
    return output.deliver(total)


def exact(a: Codes, b: Codes, fmts: Pair, fmt: Format, c: int | None = None, **options: Any) -> Result:
    """The exact sum of all products and c, rounded once; of one product it is `fma`."""
    if len(a) < 2:
        return fma(a, b, fmts, fmt, c, **options)
    output, running = Output(options, payloads=False), Site(RUNNING, fmt)
    total = output.start(c, running)
    return output.deliver(output.block(running, output.terms(a, b, fmts, running), total))


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
    output, running = Output(options, payloads=False), Site(RUNNING, fmt)
    total = output.start(c, running)
    for block in groups(output.terms(a, b, fmts, running), length):
        total = output.block(running, block, total, fraction_bits)
    return output.deliver(total)


# -- other orders ----------------------------------------------------------------------------------------------------


def pairwise(a: Codes, b: Codes, fmts: Pair, fmt: Format, c: int | None = None, **options: Any) -> Result:
    """Rounded products added in pairs, pairs in pairs; an odd one goes up as it is; c comes last.

    Additions are counted in the order in which a binary counter makes them: as soon as two sums of one size are there,
    and in the end from the right. The tree is the same.
    """
    output, product, running = Output(options, payloads=False), Site(PRODUCT, fmt), Site(RUNNING, fmt)
    sums: list[tuple[int, Number]] = []

    def merge() -> None:
        (n, left), (m, right) = sums[-2:]
        sums[-2:] = [(n + m, output.add(running, left, right))]

    for term in output.terms(a, b, fmts, running):
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
    output, running = Output(options, payloads=False), Site(RUNNING, fmt)
    addend, terms = output.start(c, running), output.terms(a, b, fmts, running)
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
    output, inner, outer = Output(options), Site(RUNNING, inner_fmt), Site(LEVEL, outer_fmt)
    total, terms = output.start(c, outer), output.terms(a, b, fmts, inner)
    for first in range(0, len(terms), length):
        chunk = output.start(None, inner)
        for term in terms[first : first + length]:
            chunk = output.fuse(inner, term, chunk)
        total = output.add(outer, total, chunk)
    return output.deliver(total)


# -- NVIDIA tensor cores ---------------------------------------------------------------------------------------------


class Core(NamedTuple):
    """One block fused multiply-add: products, fraction bits kept in alignment, fraction bits of a float32 sum."""

    length: int
    fraction_bits: int
    sum_bits: int = 23


SHORTER = {"mma.sync.m16n8k8": 8, "mma.sync.m16n8k4": 4, "mma.sync.m16n8k16": 16}
"""Shapes of half as many products, which are a block."""
CORE_FLOORS = {
    "V100": (-131, -19),
    "T4": (-132, -20),
    "A100": (-132, -20),
    "Ada": (-132, -20),
    "H100": (-133, -21),
    "B200": (-133, -21),
    "RTX Blackwell": (-133, -21),
}
"""The least exponent that a block is aligned to, of results in single and in half."""

CORES = {
    "V100": {"half": Core(4, 23)},
    "T4": {"half": Core(8, 24)},
    "A100": {"half": Core(8, 24), "tf32": Core(4, 24)},
    "Ada": {"half": Core(8, 24), "tf32": Core(4, 24), "fp8": Core(16, 13, 13)},
    "H100": {"half": Core(16, 25), "tf32": Core(8, 25), "fp8": Core(32, 13, 13)},
    "B200": {"half": Core(16, 25), "tf32": Core(8, 25), "fp8": Core(32, 25)},
    "RTX Blackwell": {"half": Core(16, 25), "tf32": Core(8, 25), "fp8": Core(32, 25)},
}
CORES |= {"A2": CORES["A100"], "A30": CORES["A100"], "L40S": CORES["Ada"], "H200": CORES["H100"]}
CORE_FLOORS |= {"A2": (-132, -20), "A30": (-132, -20), "L40S": (-132, -20), "H200": (-133, -21)}
CORE_INPUTS = {
    "float16": "half",
    "bfloat16": "half",
    "tfloat32": "tf32",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}


FIXED: dict[str, Any] = {"overflow": Overflow.INFINITY, "daz": False, "ftz": False}
NEAREST: dict[str, Any] = {"rounding": Rounding.NEAREST_EVEN, **FIXED}


class _TensorCore(Output):
    """An output of NVIDIA's: its sums in single are truncated, in half rounded; of fp8 some are stored with fewer bits."""

    def __init__(
        self,
        arch: str,
        input: str,
        output: str,
        instruction: str | None,
        options: dict[str, Any],
        zero_exponent: int | None = None,
        exponent_floor: int | None = None,
        positive_zeros: bool = True,
    ) -> None:
        super().__init__(options, nan="nvidia", payloads=False)
        inputs, self.out = CORE_INPUTS[input], ROSTER[output]
        multiplied = instruction is not None and instruction.startswith("mma.sync")
        self.unpacked = inputs == "fp8" and multiplied and arch in ("H100", "H200", "B200")
        self.core = CORES[arch]["half" if self.unpacked else inputs]
        self.length = SHORTER.get(instruction or "", 32 if self.unpacked else self.core.length)
        self.floor = CORE_FLOORS[arch][self.out == HALF] if exponent_floor is None else exponent_floor
        self.zeros, self.positive_zeros = zero_exponent, positive_zeros
        if self.out == HALF:
            self.running = Site(RUNNING, HALF, NEAREST)
        else:
            cut = {"rounding": Rounding.TOWARD_ZERO, **FIXED}
            self.running = Site(RUNNING, SINGLE if self.core.sum_bits == 23 else E8M13, cut, always_infinite=True)

    def terms_of(self, a: Codes, b: Codes, fmts: Pair) -> list[Term]:
        """The products' factors."""
        return self.terms(a, b, fmts, self.running, HALF if self.unpacked else None, self.zeros)

    def fused(self, block: Sequence[Term], total: Number) -> Number:
        """A block of products and the sum so far."""
        found = self.block(self.running, block, total, self.core.fraction_bits, self.zeros, self.floor)
        return found._replace(code=0) if self.positive_zeros and found.value.is_zero else found

    def blocks(self, terms: Sequence[Term], total: Number) -> Number:
        """Blocks in order of k."""
        for block in groups(terms, self.length):
            total = self.fused(block, total)
            if self.running.fmt == E8M13:
                total = self.convert(Site(STORE, self.out, NEAREST), total)
        return total


def tensor_core(
    a: Codes,
    b: Codes,
    fmts: Pair,
    arch: str,
    input: str = "float16",
    output: str = "float32",
    instruction: str | None = None,
    zero_exponent: int | None = None,
    exponent_floor: int | None = None,
    positive_zeros: bool = True,
    c: int | None = None,
    **options: Any,
) -> Result:
    """NVIDIA: products and c aligned to the largest exponent, truncated, added, and the sum rounded, block by block.

    To float32 the sum is truncated (of fp8 on Ada and Hopper to 13 fraction bits), to half rounded to nearest even. fp8
    by mma.sync on H100 and later is unpacked to half: of 32 products (16 in the shorter shape) those of k % 4 in {0, 1},
    then the others, chained from +0; then one ordinary addition of c. Exponents have a floor, zeros may have an exponent,
    and a block's sum that is zero is +0 unless `positive_zeros` is false.
    """
    dot = _TensorCore(arch, input, output, instruction, options, zero_exponent, exponent_floor, positive_zeros)
    total, terms = dot.start(c, dot.running, dot.out), dot.terms_of(a, b, fmts)
    if not dot.unpacked:
        return dot.deliver(dot.blocks(terms, total))
    for group in groups(terms, dot.length):
        chain = dot.start(None, dot.running)
        for pair in ((0, 1), (2, 3)):
            chain = dot.fused([x for k, x in enumerate(group) if k % 4 in pair], chain)
        total = dot.add(Site(LEVEL, dot.out, NEAREST), total, chain)
    return dot.deliver(total)


# -- PyTorch on an H100 ----------------------------------------------------------------------------------------------


def torch_mm(
    a: Codes,
    b: Codes,
    fmts: Pair,
    operation: str,
    input: str = "float16",
    k: int | None = None,
    split: int = 1,
    c: int | None = None,
    **options: Any,
) -> Result:
    """PyTorch 2.11's products: tensor cores in order of k, parts of k added up, what follows a sum rounded once each.

    A bias is added in single before the rounding to the operands' format; `addmm` rounds the product, and again with c.
    """
    half = operation == "fp16_accumulation"
    narrow = ROSTER[input] if input in ("float16", "bfloat16") else SINGLE
    dot = _TensorCore("H100", input, "float16" if half else "float32", None, options)
    dot.out_format = dot.out_format or narrow
    terms = dot.terms_of(a, b, fmts)
    addition = Site(LEVEL, dot.out, NEAREST)
    if operation == "linear":
        return dot.deliver(dot.add(addition, dot.start(c, addition), dot.blocks(terms, dot.start(None, dot.running))))
    if operation == "addmm":
        rounded = dot.convert(Site(LEVEL + 1, narrow, NEAREST), dot.blocks(terms, dot.start(None, dot.running)))
        again = Site(LEVEL + 2, narrow, NEAREST)
        return dot.deliver(dot.add(again, dot.start(c, again), rounded))
    if split > 1:
        assert k is not None
        tile = 8 if half and k <= 32 else {"scaled_mm_fast": 128}.get(operation, 4 if input == "tfloat32" else 64)
        part = tile * math.ceil(math.ceil(k / tile) / split)
    elif operation == "scaled_mm":
        part = 128
    else:
        return dot.deliver(dot.blocks(terms, dot.start(c, dot.running, dot.out)))
    total = dot.start(c, addition)
    for group in groups(terms, part):
        total = dot.add(addition, total, dot.blocks(group, dot.start(None, dot.running)))
    return dot.deliver(total)


# -- Graphcore IPU ---------------------------------------------------------------------------------------------------

PHASES = {"float16": (4, 4), "float32": (1, 8), "float8_e4m3fnuz": (8, 4), "float8_e5m2fnuz": (8, 4)}
"""By input: products of a phase, and phases until `amp` stores the accumulator."""
ALIGNED_BITS = 31


def _single(rounding: str, number: int = RUNNING) -> Site:
    """The IPU's single precision: no subnormals, overflow to infinity."""
    fixed = {"rounding": rounding, "overflow": Overflow.INFINITY, "daz": True, "ftz": True}
    return Site(number, SINGLE, fixed, always_infinite=True)


class _Ipu(Output):
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
        for products in groups(terms, self.length * self.phases):
            for phase in groups(products, self.length):
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
