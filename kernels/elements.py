"""Elements of `blocks`: what becomes of ordinary operands of short formats, in float32 and its bits.

    exact result = fl(x op y), cut toward zero, and where anything is lost below its last bit
    below the target's normal range the smallest normal number is added: last bits then have one place for all
    rounded = bits + bias; the dropped bits carry where they reach the threshold of their sign and parity

Products of numbers of at most 12 bits are exact; of a sum, TwoSum gives the error; quotients and roots have a rest, of their error's sign.
Stochastic rounding adds at most 16 random bits. Nothing hangs on what the host does with subnormals.

An element is a function of what is `known`, three vectors of codes and one of random half-words: (codes, flags, lanes that another loop is
to do, or None). Numbers that are known have their names in `ordinary.Ordinary`, `targets.Source`
and `targets.Target`.
"""

from .fast import has_feature
from .steps import sum_and_error
from .sums.language import SHORT

INEXACT, TINY_INEXACT, NEVER = 1, 3, None
MAGNITUDE, SIGN = 0x7FFFFFFF, -0x80000000
SMALLEST, INFINITE, ONE_EXPONENT = 0x00800000, 0x7F800000, 1 << 23
LOW_BITS = -4096
"""Cuts a float32 to its 12 high bits: those times a number of 12, and the others, are exact products."""


def one_where(lanes, like):
    """1 in these lanes, 0 in others."""
    return lanes.long(like.element)


# -- operands ----------------------------------------------------------------------------------------------------------


def half_number(code, known):
    """A half, by the CPU."""
    return code.cut(SHORT).singles("half")


def bfloat16_number(code, known):
    """A bfloat16 that is not subnormal."""
    return (code << 16).floats()


def number(code, known):
    """A number of any format: `carrier.decode` without its special cases."""
    magnitude = code & known.magnitude_mask
    fields, below = (magnitude << known.shift) + known.rebias, magnitude < known.hidden
    value = below.choose(fields + ONE_EXPONENT, fields).floats()
    value = below.choose(value - known.smallest_normal, value)
    return (value.bits() | (code ^ magnitude) << known.sign_shift).floats()


READERS = {"half": half_number, "bfloat16": bfloat16_number, "any": number}
"""Kind of codes -> function of them."""


# -- results: (rounded, what that lost, a number of the sign that losses inward have, if not +, sign bits of addends) ----------


def _sum(x, y, z):
    """x + y, on either carrier."""
    s, error = sum_and_error(x, y)
    return s, error, s, x.bits() | y.bits()


def _product(x, y, z):
    """x * y, of no more bits than the carrier has."""
    return x * y, NEVER, None, None


def _fused(x, y, z):
    """x * y + z, of such a product."""
    return _sum(x * y, z, z)


def high_bits(x):
    """float32 without its 12 low bits."""
    return (x.bits() & LOW_BITS).floats()


def _quotient(x, y, z):
    """x / y, of y of at most 12 bits. What x is more than the quotient times y, exact, has the sign of x where that was rounded inward."""
    q = x / y
    high = high_bits(q)
    return q, (-q).fused(y, x) if has_feature("fma") else (x - high * y) - (q - high) * y, x, None


def _root(x, y, z):
    """The square root of x. What x is more than its square is exact."""
    s = x.root()
    high = high_bits(s)
    low = s - high
    rest = (-s).fused(s, x) if has_feature("fma") else ((x - high * high) - (high + high) * low) - low * low
    return s, rest, None, None


NEAR = {"add": _sum, "mul": _product, "fma": _fused, "div": _quotient, "sqrt": _root}
"""Operation -> function of three numbers. Differences are sums of codes whose signs are flipped."""


def inward(bits, lanes):
    """Bits, less one where a result was rounded away from zero."""
    return bits - one_where(lanes, bits)


def exact(near, error, like, signs):
    """(Bits cut toward zero, where anything is lost, sign bits of addends) of a result."""
    if error is NEVER:
        return near.bits(), NEVER, signs
    lost = error.nonzero()
    outward = error < 0.0 if like is None else ((like.bits() ^ error.bits()) < 0) & lost
    return inward(near.bits(), outward), lost, signs


def converted(known, code, *_):
    """float32 as it is."""
    return code, NEVER, None


def converted_double(known, code, *_):
    """float64 that is no smaller than float32's normal numbers."""
    x = code.floats()
    near = x.single()
    back = near.double()
    return inward(near.bits(), back.magnitude() > x.magnitude()), back.apart_from(x), None


def _result(kind, operation):
    """result(known, codes ...): the exact result."""
    if operation == "convert":
        return converted_double if kind == "float64" else converted
    read, near = READERS[kind], NEAR[operation]
    return lambda known, a, b, c: exact(*near(read(a, known), read(b, known), read(c, known)))


# -- below the normal range ----------------------------------------------------------------------------------------------


def either(lanes, others):
    """Where one holds or the other; None never does."""
    return others if lanes is NEVER else lanes if others is NEVER else lanes | others


def lifted(magnitude, lost, known):
    """(bits, where anything is lost), with what is below the normal range moved to where its last bit is dropped as others are."""
    value = magnitude.is_zero().choose(magnitude, magnitude.at_least(SMALLEST)).floats()
    s = value + known.smallest_normal
    error = value - (s - known.smallest_normal)
    bits, below = inward(s.bits() - ONE_EXPONENT, error < 0.0), magnitude < known.lowest_bits
    return below.choose(bits, magnitude), either(lost, below & error.nonzero())


def lifted_sum(magnitude, lost, known):
    """The same for sums, which lose nothing there."""
    s = magnitude.floats() + known.smallest_normal
    return (magnitude < known.lowest_bits).choose(s.bits() - ONE_EXPONENT, magnitude), lost


def not_lifted(magnitude, lost, known):
    """The same where there is nothing below the normal range, or float32 ends where the format does."""
    return magnitude, lost


def lifted_zero(magnitude, lost, known):
    """The same where nothing but zero is below it."""
    return magnitude.at_least(known.lowest_bits - ONE_EXPONENT), lost


def _lifting(operation, lifts, calm):
    """Operation, whether results below the normal range are normal in float32, and whether there are none -> function."""
    if not lifts:
        return not_lifted
    if calm:
        return lifted_zero
    return lifted_sum if operation == "add" else lifted


# -- rounding: bits with the dropped ones carried ------------------------------------------------------------------------


def of_sign(known, name, negative):
    """Of two numbers, called after their sign, the one of each lane."""
    return negative.choose(getattr(known, f"{name}_negative"), getattr(known, f"{name}_positive"))


def carried_nearest(magnitude, negative, known):
    """Nearest even."""
    return magnitude + ((magnitude >> known.dropped_bits & 1) + known.up_positive_even)


def carried_selected(magnitude, negative, known):
    """Any deterministic mode."""
    odd = (magnitude >> known.dropped_bits & 1).nonzero()
    positive = odd.choose(known.up_positive_odd, known.up_positive_even)
    return magnitude + negative.choose(odd.choose(known.up_negative_odd, known.up_negative_even), positive)


def signed_code(carried, negative, known):
    """(magnitude, code) of carried bits."""
    magnitude = (carried >> known.dropped_bits) - known.code_rebias
    sign = magnitude.is_zero().choose(known.zero_sign, known.sign)
    return magnitude, negative.choose(magnitude | sign, magnitude)


def bounded(magnitude, code, negative, inexact, tiny, known):
    """(codes, flags) of results that may be tiny or overflow."""
    flags = (inexact & tiny).choose(magnitude.all_of(TINY_INEXACT), one_where(inexact, magnitude))
    over = magnitude > known.largest
    return over.choose(of_sign(known, "overflow", negative), code), over.choose(known.overflow_flags, flags)


def unserved(whole, known):
    """Where a result is flushed."""
    return (whole < known.unserved) & whole.nonzero()


# -- elements ------------------------------------------------------------------------------------------------------------


def _with(bits, lost):
    """Bits, of which the last is set where anything is lost."""
    return bits if lost is NEVER else bits | one_where(lost, bits)


def deterministic(kind, operation, way, lifts, flushes, calm):
    """In the mode that the numbers say; `way` is "nearest" to nearest even. `flushes`: tiny results are left; `calm`: none is, nor too large."""
    made, lift = _result(kind, operation), _lifting(operation, lifts, calm)
    carry = carried_nearest if way == "nearest" else carried_selected
    plain, zeros = calm or (operation == "add" and not flushes), operation in ("add", "fma") and way != "nearest"

    def element(known, a, b, c, random):
        bits, lost, signs = made(known, a, b, c)
        negative, whole, left = bits < 0, bits & MAGNITUDE, NEVER
        magnitude = _with(*lift(whole, lost, known))
        kept, code = signed_code(carry(magnitude, negative, known), negative, known)
        inexact = (magnitude & known.dropped_mask).nonzero()
        flags = one_where(inexact, bits)
        if not plain:
            tiny = _with(whole, lost) < of_sign(known, "tiny", negative)
            code, flags = bounded(kept, code, negative, inexact, tiny, known)
            if flushes:
                left = unserved(whole, known)
        if zeros:
            code = (bits.is_zero() & (signs < 0)).choose(known.downward_sign, code)
        return code, flags, left

    return element


def stochastic(kind, operation, way, lifts, flushes, calm):
    """With the random bits of half-words."""
    made, lift = _result(kind, operation), _lifting(operation, lifts, calm)
    plain = calm or (operation == "add" and not flushes)

    def element(known, a, b, c, random):
        bits, lost, _ = made(known, a, b, c)
        negative, whole = bits < 0, bits & MAGNITUDE
        magnitude, lost = lift(whole, lost, known)
        random = random >> known.random_right << known.random_left
        random = random.is_zero().choose(random, random | known.taken)
        hanging = known.hanging
        if lost is not NEVER:
            magnitude = magnitude | lost.choose(known.taken, 0)
            hanging = inward(hanging, lost)
        carried = magnitude + random
        open_ = (carried & known.dropped_mask) > hanging
        kept, code = signed_code(carried, negative, known)
        inexact = either(lost, (magnitude & known.dropped_mask).nonzero())
        if plain:
            return code, one_where(inexact, bits), open_
        tiny = whole < known.lowest_bits
        hangs = inexact & tiny & (whole >= known.tiny_positive)
        if lifts:  # random bits as part of half as large a last bit, that of what is just not normal
            unbounded = whole + random
            tiny = tiny & ((whole < known.tiny_positive) | (unbounded < known.lowest_bits))
            hangs = hangs & ((unbounded & known.dropped_mask) > hanging)
        code, flags = bounded(kept, code, negative, inexact, tiny, known)
        return code, flags, open_ | hangs | unserved(whole, known)

    return element
