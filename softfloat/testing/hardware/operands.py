"""Operands that instructions are tried with, by families."""

from __future__ import annotations

import numpy as np

from softfloat import bits
from softfloat.formats import Format, bfloat16
from softfloat.testing.hardware.table import Codes, Instruction, Operands
from softfloat.testing.vectors.distributions import edges

__all__ = ["FAMILIES", "drawn_operands", "tile_operands", "with_exponents"]

FAMILIES = {
    "all": "every code there is",
    "any bits": "codes with every bit random",
    "edges": "zeros, infinities, NaNs quiet and signalling, the least and greatest numbers, one, and their neighbours",
    "near": "magnitudes within a few units in the last place of each other, or of a product: cancellation, ties",
    "tiny": "products and sums about the smallest normal number and the smallest subnormal one",
    "huge": "products and sums about the largest number",
    "next to the target": "a number of the target format, off by a power of two in the last places and by one more",
}
"""Kinds of operands, as in the project's tests of single operations."""


def with_exponents(fmt: Format, exponents: Codes, random: np.random.Generator) -> Codes:
    """Codes of about these exponents, as far as the format goes, of any sign and fraction; few bits set in half of them."""
    shape = exponents.shape
    biased = np.clip(exponents + fmt.bias, 0, fmt.max_code >> fmt.mantissa_bits)
    any_fraction = random.integers(0, 1 << fmt.mantissa_bits, shape)
    power = np.int64(1) << random.integers(0, max(fmt.mantissa_bits, 1), shape)
    simple = power - random.integers(0, 2, shape)
    fractions = np.where(random.random(shape) < 0.5, simple, any_fraction) & ((1 << fmt.mantissa_bits) - 1)
    codes = np.minimum(biased << fmt.mantissa_bits | fractions, fmt.max_code)
    signs = np.uint64(fmt.sign_bit if fmt.signed else 0)
    return (codes.astype(np.uint64) | np.where(random.random(shape) < 0.5, signs, np.uint64(0))).astype(fmt.dtype)


def drawn_operands(instruction: Instruction, family: str, count: int, random: np.random.Generator) -> Operands:
    """Operands of a family: one array of codes for each format, pairs in one code where the instruction takes pairs."""
    if family == "all":
        return (np.arange(1 << instruction.formats[0].bits, dtype=instruction.formats[0].dtype),)
    lanes = [(x, 2 if instruction.packed and x == bfloat16 else 1) for x in instruction.formats]
    shapes = [(fmt, (count, width)) for fmt, width in lanes]
    if family == "any bits":
        drawn = [random.integers(0, 1 << fmt.bits, shape, np.uint64).astype(fmt.dtype) for fmt, shape in shapes]
    elif family == "edges":
        drawn = [random.choice(edges(fmt), shape) for fmt, shape in shapes]
    elif family == "next to the target":
        source, target = instruction.formats[0], instruction.result
        codes, _ = bits.convert(random.integers(0, 1 << target.bits, count).astype(target.dtype), target, source)
        offset = random.choice([-1, 1], count) << random.integers(0, source.mantissa_bits, count)
        drawn = [(codes.astype(np.int64) + offset + random.integers(-1, 2, count)).astype(source.dtype)]
    else:
        drawn = _related(instruction, family, shapes, random)
    return tuple(x.view(np.uint32).reshape(-1) if x.shape[-1:] == (2,) else x.reshape(-1) for x in drawn)


def _related(
    instruction: Instruction, family: str, shapes: list[tuple[Format, tuple[int, int]]], random: np.random.Generator
) -> list[Codes]:
    """Operands whose sum, product or quotient is of the kind that the family's name says."""
    fmt, shape = shapes[0]
    dot, name = len(shapes) == 3, instruction.name
    if family == "near" and not dot:
        first = random.integers(0, 1 << fmt.bits, shape, np.uint64).astype(np.int64)
        drawn = [first & (fmt.sign_bit - 1)]
        drawn += [np.clip(drawn[0] + random.integers(-3, 4, shape), 0, fmt.max_code) for _ in shapes[1:]]
        signs = np.array([0, fmt.sign_bit], np.uint64)
        return [(x.astype(np.uint64) | random.choice(signs, shape)).astype(fmt.dtype) for x in drawn]
    low, high = {
        "near": (-3, 4),
        "tiny": (fmt.emin - fmt.mantissa_bits - 2, fmt.emin + 3),
        "huge": (fmt.emax - 2, fmt.emax + 2),
    }[family]
    target = random.integers(low, high, shape)
    if not dot:
        if name.startswith(("VADD", "VSUB", "VSQRT")):
            return [with_exponents(x, target + random.integers(-1, 2, shape), random) for x, _ in shapes]
        one = random.integers(fmt.emin // 2, fmt.emax // 2, shape)
        other = one - target if name.startswith("VDIV") else target - one
        return [with_exponents(fmt, one, random), with_exponents(fmt, other, random)]
    if name == "VDPBF16PS":
        products = target + random.integers(-2, 3, (shape[0], 2))
        half = products // 2 + random.integers(-3, 4, products.shape)
        factors = [with_exponents(bfloat16, x, random) for x in (half, products - half)]
        return [with_exponents(fmt, target, random), *factors]
    half = target // 2 + random.integers(-3, 4, shape)
    factors = [with_exponents(fmt, x, random) for x in (half, target - half)]
    return [*factors, with_exponents(fmt, target + random.integers(-fmt.p - 1, 3, shape), random)]


def tile_operands(
    fmt: Format, memory: Format, family: str, random: np.random.Generator, rows: int, depth: int
) -> tuple[Codes, Codes, Codes]:
    """(a, b, c) of a tile product: any bits, edges among numbers about 1, or numbers whose products are near each other."""
    shapes = ((fmt, (rows, depth)), (fmt, (depth, rows)), (memory, (rows, rows)))
    if family == "any bits":
        made = [random.integers(0, 1 << x.bits, shape, np.uint64).astype(x.dtype) for x, shape in shapes]
    else:
        made = [with_exponents(x, random.integers(-3, 4, shape), random) for x, shape in shapes]
    if family == "edges":
        made = [
            np.where(random.random(shape) < 0.05, random.choice(edges(x), shape), codes).astype(x.dtype)
            for codes, (x, shape) in zip(made, shapes, strict=True)
        ]
    return made[0], made[1], made[2]
