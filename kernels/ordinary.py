"""What `blocks` knows of a format, a rule and an operation, and which operands it serves: ordinary ones.

These are numbers, none near the ends of what float32 carries: no result, error or quotient of them is subnormal there.
`ordinary` makes the numbers of a format, a rule and an operation, or says that there are none.
"""

from fractions import Fraction
from math import ceil, frexp
from typing import NamedTuple

from .fast import INFINITE_BITS, MAGNITUDE, SMALLEST_BITS
from .spec import CARRIER32, NanEncoding, Rounding, emin, format_spec
from .targets import target, thresholds


class Ordinary(NamedTuple):
    """What the loops know of a format, a rule and an operation, beside the Source and the Target of float32; of equal names these count."""

    look_mask: int  # what of an operand is looked at: its magnitude; of roots the sign, too
    least: int  # ordinary operands are zero, or have a magnitude from this one
    most: int  # to this one
    divisor: int  # 0 where the second operand must not be zero, else 1
    harmless: int  # a second operand with which zero raises nothing
    dropped_bits: int
    dropped_mask: int
    up_positive_even: int  # added to the dropped bits, carries where they reach the threshold
    up_positive_odd: int
    up_negative_even: int
    up_negative_odd: int
    code_rebias: int
    lowest_bits: int  # of the smallest normal number
    unserved: int  # results below it that are not zero are left to another loop
    largest_bits: int
    flip: int  # the sign bit, and all above it, for differences, which are sums of a and -b
    downward_sign: int  # of an exact zero sum
    tiny_positive: int  # bits below them are tiny
    tiny_negative: int
    above_largest: int  # bits of the power of two that follows the largest number's
    random_right: int  # how far 16 random bits move to end right below the last kept bit
    random_left: int
    hanging: int  # dropped bits above it could still carry, were there more random bits
    taken: int  # of a random number that takes up whatever is not exact, all dropped bits; else 0


WIDEST = {"add": 14, "sub": 14, "mul": 11, "div": 11, "sqrt": 21, "fma": 11, "convert": 21}
"""Operation -> the most fraction bits that a format may have: fl(x op y) and its error are exact, with two bits to spare."""

SINGLE = format_spec(8, 23, 127, True, NanEncoding.IEEE, True, True, True, True)
"""float32, whose arithmetic is the carrier's own."""

USUAL = -12
"""Where only larger powers of two would be ordinary, hardly any block is."""

LIFTED_FROM = -79
"""From this smallest normal exponent on, what `blocks.lifted` cuts off a float32 is not subnormal."""

QUOTIENTS, ROOTS, FACTORS = 50, -80, 62
"""Exponents up to which, and down to less which, operands of a quotient are ordinary; down to which that of a root is; up to which factors
are whose product is added."""


def lowest_exponent(fmt, operation):
    """Powers of two from that of this exponent on are ordinary, and what lies between them."""
    m, last = fmt.mantissa_bits, 1 - CARRIER32.bias
    wanted = {
        "mul": last // 2 + m + 1,  # the last bit of a product is a normal number of float32
        "fma": last // 2 + m + 1,
        "div": -QUOTIENTS,
        "sqrt": ROOTS,
    }.get(operation, last + m)  # the last bits of both are
    return max(emin(fmt) - m, wanted)


def code_of_power(fmt, exponent):
    """The code of a power of two."""
    normal = exponent - emin(fmt)
    return (normal + 1) << fmt.mantissa_bits if normal >= 0 else 1 << (normal + fmt.mantissa_bits)


def greatest(fmt, operation, plain):
    """The code of the greatest ordinary number: of sums that are `plain`, one not above half the largest."""
    if plain:
        return fmt.largest - (1 << fmt.mantissa_bits) if fmt.largest >> fmt.mantissa_bits > 1 else fmt.largest >> 1
    top = {"div": QUOTIENTS, "fma": FACTORS, "add": CARRIER32.bias - 1}.get(operation)
    return fmt.largest if top is None else min(fmt.largest, code_of_power(fmt, max(top, emin(fmt))))


def carrying(threshold, dropped):
    """What carries where dropped bits reach a threshold."""
    return (1 << dropped) - ceil(threshold * 2**dropped) if threshold <= 1 else 0


def bits_from(limit):
    """The bits of the least float32 that is not below a positive number; on integers, as a host may flush subnormals."""
    exponent = max(frexp(limit)[1] - 1, 1 - CARRIER32.bias)
    units = ceil(Fraction(limit) / Fraction(2) ** (exponent - CARRIER32.fraction_bits))
    return units + ((exponent + CARRIER32.bias - 1) << CARRIER32.fraction_bits)


def lifts(fmt):
    """Whether results below the format's normal range are normal numbers of float32."""
    return emin(fmt) > 1 - CARRIER32.bias


def flushes(fmt, rule):
    """Whether results below the normal range are no numbers of the format."""
    return rule.ftz or not fmt.subnormals


def _operands(fmt, rule, operation):
    """(least, most) codes of ordinary operands, if there are any."""
    if operation == "convert":
        return int(SMALLEST_BITS) if rule.daz else 1, int(INFINITE_BITS) - 1
    if fmt == SINGLE:  # a host may flush what a sum of smaller ones loses
        return code_of_power(fmt, lowest_exponent(fmt, operation) if operation == "add" else emin(fmt)), fmt.largest
    exponent = lowest_exponent(fmt, operation)
    if exponent > max(USUAL, emin(fmt) - fmt.mantissa_bits):
        return None
    reads_normal = rule.daz or not fmt.subnormals
    least = max(code_of_power(fmt, exponent), 1 << fmt.mantissa_bits if reads_normal else 1)
    most = greatest(fmt, operation, operation == "add" and not flushes(fmt, rule))
    return (least, most) if least <= most else None


def ordinary(fmt, rule, operation):
    """The numbers; None where no loop serves. `convert` is from float32, other operations are from `fmt`."""
    name, lowest, m = "add" if operation == "sub" else operation, emin(fmt), fmt.mantissa_bits
    top, single = (fmt.largest >> m) - fmt.bias, fmt == SINGLE and operation != "convert"
    carried = 1 <= m <= WIDEST[name] and 1 - CARRIER32.bias <= lowest and top <= CARRIER32.bias
    if not ((carried or single) and fmt.signed and fmt.zero and rule.restated):
        return None
    if operation == "convert" and lifts(fmt) and lowest < LIFTED_FROM:
        return None
    operands = _operands(fmt, rule, name)
    if operands is None:
        return None
    least, most = operands
    into = target(fmt, rule, CARRIER32)
    dropped = CARRIER32.fraction_bits - m
    positive, negative = (thresholds(rule.rounding, side, CARRIER32) for side in (False, True))
    most_dropped, either = (1 << dropped) - 1, rule.rounding is Rounding.UP_OR_DOWN
    decided = either or rule.random_width <= min(16, dropped)  # there are no more random bits
    biases = [carrying(x, dropped) for x in (*positive, *negative)]
    mask = int(MAGNITUDE) if operation == "convert" else (1 << (fmt.width - 1)) - 1
    lowest_bits = (CARRIER32.bias + lowest) << CARRIER32.fraction_bits
    return Ordinary(
        look_mask=-1 if operation == "sqrt" else mask,
        least=least,
        most=most,
        divisor=0 if operation == "div" else 1,
        harmless=most if operation == "div" else 0,
        dropped_bits=dropped,
        dropped_mask=most_dropped,
        up_positive_even=biases[0],
        up_positive_odd=biases[1],
        up_negative_even=biases[2],
        up_negative_odd=biases[3],
        code_rebias=(CARRIER32.bias - 1 + lowest) << m,
        lowest_bits=lowest_bits,
        unserved=lowest_bits if flushes(fmt, rule) else 0,
        largest_bits=(fmt.largest + ((CARRIER32.bias - 1 + lowest) << m)) << dropped,
        flip=-1 << (fmt.width - 1) if operation == "sub" else 0,
        downward_sign=into.zero_sign if rule.rounding is Rounding.TOWARD_NEGATIVE else 0,
        tiny_positive=bits_from(into.tiny_positive),
        tiny_negative=bits_from(into.tiny_negative),
        above_largest=(top + 1 + CARRIER32.bias) << CARRIER32.fraction_bits,
        random_right=max(16 - dropped, 0),
        random_left=max(dropped - 16, 0),
        hanging=(1 << dropped) - (0 if decided else 1 << max(dropped - 16, 0)),
        taken=most_dropped if either else 0,
    )
