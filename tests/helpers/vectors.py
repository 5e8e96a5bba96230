"""Operands of dot products, drawn."""

from __future__ import annotations

import numpy as np
from operands import edges, operands

from softfloat import Format, Rounding, reference

Pair = tuple[Format, Format]


# -- operands by construction ----------------------------------------------------------------------------------------

FAMILIES = ("spread", "near", "tiny", "huge", "cancelling", "zeros", "one special", "any")


def with_exponents(fmt: Format, exponents: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Codes of about these exponents, as far as the format goes, of any sign and fraction."""
    assert fmt.bias is not None
    field = np.clip(exponents + fmt.bias, 0, fmt.max_code >> fmt.mantissa_bits)
    codes = np.minimum(field << fmt.mantissa_bits | random.integers(0, 2**fmt.mantissa_bits, field.shape), fmt.max_code)
    return codes | np.where(random.random(field.shape) < 0.5, fmt.sign_bit, 0)


def specials(fmt: Format) -> list[int]:
    found = [code for code in edges(fmt).tolist() if reference.decode(code, fmt).kind is not reference.Kind.FINITE]
    return found or [fmt.max_code]


def draw_vectors(
    family: str, pair: Pair, partials: Format, length: int, random: np.random.Generator
) -> tuple[list[int], list[int]]:
    """a and b, whose products are of the kind that the family's name says, seen from the partials format."""
    if family == "any":
        return tuple(operands(fmt, length, 1, int(random.integers(2**31)))[0].tolist() for fmt in pair)
    if family == "zeros":
        few = [[0, fmt.sign_bit, fmt.smallest_subnormal_code, fmt.smallest_normal_code] for fmt in pair]
        return tuple(random.choice(codes, length, p=[0.4, 0.4, 0.1, 0.1]).tolist() for codes in few)
    low, high = {
        "spread": (-partials.p - 3, 4),
        "near": (-2, 3),
        "tiny": (partials.emin - partials.p - 1, partials.emin + 3),
        "huge": (partials.emax - 3, partials.emax + 1),
    }.get(family, (-partials.p - 3, 4))
    target = random.integers(low, high, length)
    first = target // 2 + random.integers(-3, 4, length)
    a, b = with_exponents(pair[0], first, random), with_exponents(pair[1], target - first, random)
    if family == "cancelling":
        half = length // 2
        a[length - half :] = a[:half] ^ pair[0].sign_bit
        b[length - half :] = b[:half]
        b[length - half :] ^= random.random(half) < 0.2
        order = random.permutation(length)
        a, b = a[order], b[order]
    if family == "one special" and length:
        where = random.integers(0, length, 2)
        a[where[0]] = random.choice(specials(pair[0]))
        if random.random() < 0.5:
            b[where[random.integers(0, 2)]] = random.choice([*specials(pair[1]), 0])
    return a.tolist(), b.tolist()


def draw_addend(fmt: Format, random: np.random.Generator) -> int:
    kind = random.integers(0, 4)
    if kind == 0:
        return int(random.choice(edges(fmt)))
    if kind == 1:
        return int(random.choice([0, fmt.sign_bit]))
    low, high = ((-4, 5), (fmt.emin - fmt.p, fmt.emax + 1))[kind - 2]
    return int(with_exponents(fmt, random.integers(low, high, 1), random)[0])


MODES = tuple(mode.name.lower() for mode in Rounding)
