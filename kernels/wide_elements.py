"""Elements of `blocks`: wide formats in float64, by the CPU's result, and the exact error of that one operation.

With the error the result is cut toward zero: the exact value is in or above what is left, and by less than its last place. Bits that a
shorter format drops, what the cut lost, and in stochastic rounding the fraction's first 16 bits decide every mode. To nearest in 53 bits
the CPU's result is the one.

An element is left to `wide` if an operand or a result is not ordinary, or a rounding hangs on random bits after the first 16. Ordinary are
numbers whose errors cannot leave the range, and operands that are zero; no result that is zero, tiny or too large. Errors of products
and quotients take a fused multiply-add: CPUs without one leave these operations to `wide`.
"""

from typing import NamedTuple

from . import spec, targets
from .elements import one_where
from .fast import has_feature
from .steps import product_and_error, rest_of_fused, sum_and_error

FARTHEST = 450  # binades from 1 of ordinary operands; of fma, whose error has two products' length, half as many
LOWEST = 1023 - 2 * FARTHEST  # exponent field of the least result
MAGNITUDE, FRACTION, LARGEST = (1 << 63) - 1, (1 << 52) - 1, 0x7FEFFFFFFFFFFFFF
DRAWN = 16  # random bits that are looked at


# -- operations: (rounded to nearest, its error, in units of the third; of those that divide, but for its last bits) -------------


def _identity(x, y, z):
    """x itself."""
    return x, x.all_of(0.0), None


def _sum(x, y, z):
    """x + y."""
    return *sum_and_error(x, y), None


def _product(x, y, z):
    """x * y."""
    return *product_and_error(x, y), None


def _quotient(x, y, z):
    """x / y."""
    q = x / y
    rest = (-q).fused(y, x)
    return q, (y < 0.0).choose(-rest, rest), y.magnitude()


def _root(x, y, z):
    """The square root of x."""
    r = x.root()
    return r, (-r).fused(r, x), r + r


def _fused(x, y, z):
    """x * y + z, whose error is two numbers long."""
    s = x.fused(y, z)
    return s, rest_of_fused(s, x, y, z), None


HAS_FUSED = has_feature("fma")
OPERATIONS = {"convert": _identity, "add": _sum}
if HAS_FUSED:
    OPERATIONS |= {"mul": _product, "div": _quotient, "sqrt": _root, "fma": _fused}
DIVIDED = ("div", "sqrt")
"""Operations of whose error the sign is exact. No such result is half way between two numbers of 53 bits."""
NEARLY = 2.0**-50


# -- modes: the magnitude, cut toward zero, plus what carries into the bits that stay; sticky 1 where the cut lost something -----

MODES = ("nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd")


def carrying(mode):
    """carry(odd, sticky, negative, dropped) of a mode, by what its thresholds are (`targets.thresholds`)."""

    def amount(threshold, sticky, dropped):
        below_half, up_at_half = threshold < 0.5, threshold <= 0.5
        if threshold > 1.0:
            return sticky.all_of(0)
        return (dropped >> int(not below_half)) + (sticky | int(up_at_half and not below_half))

    sides = [targets.thresholds(spec.Rounding[mode.upper()], negative, spec.CARRIER64) for negative in (False, True)]

    def carry(odd, sticky, negative, dropped):
        (even_up, odd_up), (even_down, odd_down) = ([amount(x, sticky, dropped) for x in side] for side in sides)
        return negative.choose(odd.choose(odd_down, even_down), odd.choose(odd_up, even_up))

    return carry


def tie_outward(value, error):
    """Where the exact value is half a quantum of 53 bits outward of the one rounded to nearest."""
    twice = error * 2.0
    other = value + twice
    return (other - value).equals(twice) & (other.magnitude() > value.magnitude())


def fraction(bits, error, inward, known):
    """What a stochastic rounding meets: (fraction bits below the quantum, negative below the number in `bits`; where a whole number is near).

    There are `known.short` bits more than are dropped.
    """
    halved = (bits & FRACTION).is_zero() & inward  # below a power of two the last place is half as long
    exponent = known.short - (bits >> 52 & 0x7FF) + one_where(halved, bits) + (2 * 1023 + 52)
    distance = error.magnitude() * (exponent << 52).floats()
    distance = inward.choose(-distance, distance)
    below = distance.floored()
    near = (distance - distance.nearest()).magnitude() <= distance.magnitude() * NEARLY
    magic = 1.5 * 2.0**52
    return ((bits & known.dropped) << known.short) + ((below + magic).bits() - bits.all_of(MAGIC_BITS)), near


MAGIC_BITS = (1023 + 52) << 52 | 1 << 51


# -- elements ------------------------------------------------------------------------------------------------------------


class Known(NamedTuple):
    """What elements know of formats, a rule and an operation, beside the Source and the Target."""

    least: int  # ordinary operands are zero, or have a magnitude from this one
    most: int  # to this one
    drop: int  # bits of float64 that the format has not
    short: int  # bits that the first 16 random ones have more
    whole: int  # of both
    meeting: int  # how far 16 random bits move to meet them
    dropped: int  # masks of these bits, and of both
    fractions: int
    rebase: int
    open_from: int
    lowest: int  # bits above those of the least ordinary result
    flip: int  # the sign bit, and all above it, for differences


def known(read, source, target, operation):
    """What is known of codes of the format `read`, of that source, and results."""
    farthest = FARTHEST // 2 if operation == "fma" else FARTHEST
    drop = 52 - target.mantissa_bits
    short = max(DRAWN - drop, 0)
    whole = drop + short
    least, most = ((((1023 + x) << 52) - source.rebias) >> source.shift for x in (-farthest, farthest))
    return Known(
        least=max(source.hidden, least),
        most=min(source.infinity - 1, source.nan_first - 1, source.magnitude_mask, most),
        drop=drop,
        short=short,
        whole=whole,
        meeting=whole - DRAWN,
        dropped=(1 << drop) - 1,
        fractions=(1 << whole) - 1,
        rebase=(target.lowest_exponent - 1) << target.mantissa_bits,
        open_from=((1 << DRAWN) - 1) << (whole - DRAWN),
        lowest=(max(target.lowest_exponent, LOWEST) << 52) + 1,
        flip=-1 << (read.width - 1) if operation == "sub" else 0,
    )


def read(code, known):
    """(The number; negative, if it is neither zero nor ordinary.)"""
    magnitude = code & known.magnitude_mask
    some = -magnitude  # negative, but of zero
    bits = (magnitude << known.shift) + known.rebias | (code ^ magnitude) << known.sign_shift
    return (bits & some >> 63).floats(), (magnitude - known.least & some) | (known.most - magnitude)


def element_of(operation, mode, double):
    """The element of an operation; `double`: results have 53 bits."""
    draws, exact = mode == "stochastic", operation not in DIVIDED
    operate, carry = OPERATIONS[operation], None if draws else carrying(mode)
    away = double and mode == "nearest_away" and exact
    nearest = double and mode in ("nearest_even", "nearest_away") and not away
    arity = 3 if operation == "fma" else 1 if operation in ("sqrt", "convert") else 2

    def element(known, a, b, c, random):
        numbers, troubles = zip(*(read(code, known) for code in (a, b, c)[:arity]), strict=True)
        value, error, unit = operate(*numbers, *numbers[:1] * (3 - arity))
        bits = value.bits()
        trouble, magnitude, negative = bits.all_of(0), bits & MAGNITUDE, bits < 0
        for other in troubles:
            trouble = trouble | other
        lost = one_where(error.apart_from(0.0), bits)
        inward = negative.choose(error > 0.0, error < 0.0)
        if draws:
            met, near = fraction(magnitude, error if unit is None else error / unit, inward, known)
            if not exact:
                trouble = trouble | -(one_where(near, bits) & lost)
            lost = lost | one_where(met.nonzero(), bits)
            met = met + (random << known.meeting)
            kept = magnitude.logical_right(known.drop) + (met >> known.whole)
            trouble = trouble | known.open_from - ((met & known.fractions) + lost)
        elif nearest:
            kept = magnitude
        elif away:
            kept = magnitude + one_where(tie_outward(value, error), bits)
        else:
            toward = magnitude - one_where(inward, bits)
            odd = (toward.logical_right(known.drop) & 1).nonzero()
            kept = (toward + carry(odd, lost, negative, known.dropped)).logical_right(known.drop)
            lost = lost | one_where((toward & known.dropped).nonzero(), bits)
        kept = kept - known.rebase
        trouble = trouble | magnitude - known.lowest | bits.all_of(LARGEST) - magnitude | known.largest - kept
        return kept | negative.choose(known.sign, 0), lost, trouble < 0

    return element
