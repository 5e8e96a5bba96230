"""Steps of a tile: what one turn of the loop over k does to a vector of running sums, written out in `vectors.Vector`s.

All of them need finite operands of ranges in which no product, sum or error leaves the carrier's normal numbers
(`softfloat.engine.tiling` looks at the operands first). Then the first infinity or NaN of a running sum is an overflow,
which nothing undoes, and the flags of the end tell all of it.

A watchful step notes whether a result was inexact, a brief one does not. A quick one notes only whether what it did may
be wrong: its results stand, or are done again.
"""

from typing import NamedTuple

import numpy as np


class Numbers(NamedTuple):
    """What a call's steps know of formats and rules. Integers are bits of the carrier, in disguise."""

    tiny: int = 0  # a magnitude below it is tiny, whatever its sign
    tiny_positive: float = 0.0
    tiny_negative: float = 0.0
    normal: float = 0.0  # the smallest normal number
    largest: float = 0.0
    beyond_positive: float = 0.0  # what overflows become
    beyond_negative: float = 0.0
    lowest: int = 0  # exponent field of the smallest normal number
    magic: int = 0  # from an exponent field to 1.5 * 2^23 (2^52) quanta
    spacing: int = 0  # from an exponent field down to a quantum
    per_quantum: int = 0  # less an exponent field: the reciprocal of the quantum
    sliver: int = 0  # a magnitude below it is tiny, whatever random number rounds it
    below: int = 0  # the bits that rounding takes away
    tie: int = 0  # what they are at a boundary of the rounding
    noise_up: int = 0  # how far 16 random bits are shifted to lie on them, up or down
    noise_down: int = 0
    noise_unit: int = 0  # and what the last of them is worth
    undecided: float = 0.0  # what random bits after the first 16 may add


def packed(numbers, carrier):
    """As an array of the carrier."""
    result = np.zeros(len(numbers), carrier)
    bits = result.view(np.uint32 if carrier is np.float32 else np.uint64)
    for place, x in enumerate(numbers):
        if isinstance(x, int):
            bits[place] = x
        else:
            result[place] = x
    return result


VALUE, INEXACT, UNDERFLOW, OVERFLOW, LEFT_OPEN, SMALLEST = range(6)
LARGEST_SO_FAR, TIE, NEAR_ZERO, INVALID = LEFT_OPEN, LEFT_OPEN, SMALLEST, SMALLEST
SLOTS = 6
OVERFLOWED, ROUNDED, SWAMPED, LEAST, GREATEST = range(SLOTS, SLOTS + 5)
COUNTING_SLOTS = SLOTS + 5
UNSETTLED = COUNTS = COUNTING_SLOTS
COUNTED_SLOTS = COUNTING_SLOTS + 1
"""What the state of a tile holds for each output: the running sum, and whether something happened.

LEFT_OPEN: for stochastic rounding, that more random bits are needed. For exact sums, that place and the last hold the
largest and the smallest magnitude of the running sum before a block; for quick steps, the least of what is 0 at a tie,
and of twice the magnitude, less one bit, which is small near zero; of halves, words that say both (`watch_half`). INVALID:
where operands may be infinite or NaN, that an operation was invalid. Of those after the sixth, which are for counting, three
are numbers of additions: that overflowed, were inexact, or changed nothing though they should; and two are the least and the
greatest running sum. UNSETTLED: a store needs more random bits than 16.
COUNTS: some of these numbers of few additions, in one word."""
IN_COUNTS = ROUNDED, SWAMPED, INEXACT
COUNT_BITS, LOWEST_BIT = {32: 10, 64: 20}, 1
"""Which, lowest first, in so many bits of words of 32 or 64, from the second bit on: LLVM makes of 1 where something holds two
instructions, of 2 one with a mask. INEXACT is of products."""

SIGN, MAGNITUDE, EXPONENT = -0x80000000, 0x7FFFFFFF, 0x7F800000
EXPONENT64 = 0x7FF0000000000000
HALF_LARGEST, HALF_NORMAL, HALF_TINY = 65504.0, 2.0**-14, 2.0**-14 - 2.0**-26
HALF_SLIVER, HALF_SLIVER_SCALE = 2.0**-14 - 2.0**-25, 2.0**25  # what may round up to a normal number, and its spacing
UNDECIDED, MARGIN = 2.0**-16, 2.0**-20
UNDECIDED_BITS = (1023 - 16) << 52
ONE = 0x3F800000  # float32's code of 1
AT_A_POWER = 2.0**-12  # an error, in quanta, is at most 2^-14


# -- rounding a vector of float32 ------------------------------------------------------------------------------------


def round_half(tile, x):
    """To half, by the CPU. Overflow is an infinity."""
    return x.through_half()


def round_half_bits(x):
    """A normal number of half's range, or of the same range times a power of two, or zero, to half's precision, nearest even."""
    bits = x.bits()
    return (((bits | bits.logical_right(13) & 1) + 0xFFF) & -0x2000).floats()


def round_bfloat16(tile, x):
    """To bfloat16: up where the low half is more than a half, or ties with an odd high half. Overflow is an infinity.

    The last bit of an odd one, in the place of the number's own, makes a tie more than that, and decides nothing else.
    """
    bits = x.bits()
    return (((bits | bits.logical_right(16) & 1) + 0x7FFF) & -0x10000).floats()


def exponent_bits(tile, x):
    """The exponent field of each number in its place, at least that of the format's smallest normal number."""
    field = {32: EXPONENT, 64: EXPONENT64}[x.bits().element.width]
    return (x.bits() & field).at_least(tile.integer("lowest"))


def quanta_per_unit(tile, exponent):
    """What numbers with these exponent fields are multiplied by to count quanta. With one fraction bit an infinity's would be 0, and make it NaN."""
    return (tile.integer("per_quantum") - exponent).at_least(1 << 23).floats()


def round_narrow(tile, x):
    """To any narrow format: 1.5 * 2^23 quanta (2^52 in float64), added and subtracted, leave a whole number of quanta. Unbounded above."""
    exponent = exponent_bits(tile, x)
    magic = (exponent + tile.integer("magic")).floats()
    return ((x + magic) - magic).with_sign(x)


ROUNDERS = {"half": round_half, "bfloat16": round_bfloat16, "narrow": round_narrow}
"""To nearest even, by family of formats."""
ABSORBING = {"half", "bfloat16"}
"""Of these, the ones that make an infinity of an overflow by themselves."""


def nearest_integer(x, tied_up=True):
    """The nearest integer, of two the upper or the lower one."""
    n = x.floored()
    rest = x - n
    return ((rest >= 0.5) if tied_up else (rest > 0.5)).choose(n + 1.0, n)


def odd_neighbour(y):
    """The integer, or of the two around y the odd one."""
    n, most = y.truncated(), 2.0 ** {32: 23, 64: 52}[y.bits().element.width]
    bits = (n.magnitude() + most).bits()
    return (n.differs(y).choose(bits | 1, bits).floats() - most).with_sign(y)


TO_INTEGER = {
    "toward_zero": lambda y: y.truncated(),
    "toward_positive": lambda y: y.ceiled(),
    "toward_negative": lambda y: y.floored(),
    "nearest_away": lambda y: nearest_integer(y.magnitude()).with_sign(y),
    "nearest_zero": lambda y: nearest_integer(y.magnitude(), False).with_sign(y),
    "nearest_up": lambda y: nearest_integer(y).with_sign(y),
    "to_odd": odd_neighbour,
}


def cut_bits(tile, s):
    """Rounded toward zero, as all of these by the bits: normal numbers, and smaller ones that are numbers of the format."""
    return (s.bits() & ~tile.integer("below")).floats()


def moved_bits(upward):
    """Rounded up, or down: away from zero where the sign bids it."""

    def round_(tile, s):
        below, sign = tile.integer("below"), s.bits() >> 31
        more = ~sign if upward else sign
        return ((s.bits() + (more & below)) & ~below).floats()

    return round_


def odd_bits(tile, s):
    """To odd."""
    below = tile.integer("below")
    kept = s.bits() & ~below
    return (s.bits() & below).nonzero().choose(kept | (below + 1), kept).floats()


def carried(tile, s, rounding="nearest_away"):
    """The bits of a number and half of what is taken away: what carries goes up. Of ties that do not, one less is added."""
    bits = s.bits()
    more = {"nearest_zero": -1, "nearest_up": bits >> 31}.get(rounding, 0)
    return bits + tile.integer("tie") + more


def tied_bits(rounding):
    """To nearest, other ties than to even."""
    return lambda tile, s: (carried(tile, s, rounding) & ~tile.integer("below")).floats()


BY_BITS = {
    "toward_zero": cut_bits,
    "toward_positive": moved_bits(True),
    "toward_negative": moved_bits(False),
    "to_odd": odd_bits,
    **{name: tied_bits(name) for name in ("nearest_away", "nearest_zero", "nearest_up")},
}
"""In all modes but nearest even, where no result is tiny and inexact."""


STOCHASTIC, EITHER = "stochastic", "up_or_down"


class Stage(NamedTuple):
    """How products and sums round, as far as code hangs on it."""

    family: str
    """Of formats: "half", "bfloat16", "narrow", "float32", "float64", "float64_shorter", which have fewer bits than that; of float32
    "float32_of_narrow", where products are exact."""
    rounding: str = "nearest_even"
    noted: bool = False
    """An overflow becomes a finite number, which leaves no other trace."""
    daz: bool = False
    ftz: bool = False
    of_nan: bool = False
    """Where additions are counted: infinities stand for NaN, which is no least and no greatest sum."""
    wide: bool = False
    """Products have more bits than the carrier."""
    specials: bool = False
    """Operands, and what sums begin with, may be infinite or NaN: then overflows are `noted`."""

    @property
    def nearest(self):
        """Whether the usual rounding, for which families have ways of their own."""
        return self.rounding == "nearest_even"

    @property
    def draws(self):
        """Whether random numbers decide."""
        return self.rounding in (STOCHASTIC, EITHER)

    @property
    def either(self):
        """Whether one bit does, of all that is not exact: sums come to odd, without an error."""
        return self.rounding == EITHER

    @property
    def native(self):
        """Whether sums are numbers of float32 or float64 in a range where nothing is tiny, and overflows are the CPU's, or none."""
        return self.family.startswith("float")

    @property
    def double(self):
        """Whether they are float64, or a part of it."""
        return self.family.startswith("float64")

    @property
    def keeps_errors(self):
        """Whether what an addition loses is a number of the format: to nearest, where nothing is flushed (Knuth's and Dekker's sums)."""
        return self.nearest and not (self.daz or self.ftz)

    @property
    def rounds_products(self):
        """Whether products are rounded: float32 has those that are not wide."""
        return self.wide or not self.native

    @property
    def slots(self):
        """What its steps note beside INEXACT."""
        tiny = self.draws or self.family in ("half", "narrow")
        return (UNDERFLOW,) * tiny + (OVERFLOW,) * self.noted + (LEFT_OPEN,) * self.draws + (INVALID,) * self.specials


def without_subnormals(tile, x, stage):
    """What a stage that takes subnormals as zeros reads, if this is one."""
    if not stage.daz:
        return x
    return (x.magnitude() < tile.parameter("normal")).choose(signs(x, x), x)


def rounded(tile, x, state, stage, watchful, may_underflow=True, bound=True):
    """x, all of whose bits that decide are there, the last one sticky, as a number of the format; what happened is noted.

    Without `bound`, what overflows is left beyond the largest number; unless it `may_underflow`, what is tiny is exact.
    """
    if stage.nearest:
        y = ROUNDERS[stage.family](tile, x)
    elif not may_underflow:
        y = BY_BITS[stage.rounding](tile, x)
    else:
        exponent = exponent_bits(tile, x)
        scaled = x * quanta_per_unit(tile, exponent)
        y = TO_INTEGER[stage.rounding](scaled) * (exponent - tile.integer("spacing")).floats()
    if may_underflow and stage.family != "bfloat16":  # whose subnormals the range of operands excludes
        if stage.nearest:
            tiny = x.magnitude() < tile.parameter("tiny")
        else:
            tiny = (x < tile.parameter("tiny_positive")) & (x > tile.parameter("tiny_negative"))
        if stage.ftz:
            y = tiny.choose(signs(x, x), y)
        state[UNDERFLOW] = state[UNDERFLOW].bits() | tiny.choose(x.bits() ^ y.bits(), 0)
    if watchful:
        state[INEXACT] = state[INEXACT].bits() | (y.bits() ^ x.bits())
    return bounded(tile, y, state, stage) if bound else y


def bounded(tile, y, state, stage):
    """y, or what an overflow becomes; a finite one is noted."""
    if stage.nearest and not stage.noted:
        if stage.family in ABSORBING:
            return y
        return (y.magnitude() > tile.parameter("largest")).choose(tile.parameter("beyond_positive").with_sign(y), y)
    over = y.magnitude() > tile.parameter("largest")
    if stage.noted:
        state[OVERFLOW] = state[OVERFLOW].bits() | over.choose(y.bits() | 1, 0)
    if stage.nearest:
        return over.choose(tile.parameter("beyond_positive").with_sign(y), y)
    beyond = (y < 0.0).choose(tile.parameter("beyond_negative"), tile.parameter("beyond_positive"))
    return over.choose(beyond, y)


DIRECTIONS = {"toward_zero": "zero", "toward_positive": "up", "toward_negative": "down"}
"""What the CPU rounds toward in these modes."""
HARMLESS = {rounding: rounding for rounding in (*DIRECTIONS, "to_odd")} | {
    "nearest_away": "toward_zero",
    "nearest_zero": "to_odd",
    "nearest_up": "to_odd",
}
"""How the CPU rounds a sum so that rounding it again does no harm: toward what ties go away from, too, for nothing seems to tie from below."""


def in_direction(toward, rounding):
    """What toward(direction) gives, rounded to float32 in one of DIRECTIONS or to odd."""
    if rounding == "to_odd":
        return between(toward("down"), toward("up"))
    return toward(DIRECTIONS[rounding])


# -- exact sums of two -----------------------------------------------------------------------------------------------


def sum_and_error(x, y):
    """x + y and what the addition lost (Knuth)."""
    s = x + y
    shadow = s - x
    return s, (x - (s - shadow)) + (y - shadow)


def to_odd(s, error):
    """s, or of the two numbers of the carrier around the exact value the one with an odd last bit."""
    bits = s.bits()
    odd = (bits + ((bits ^ error.bits()) >> (bits.element.width - 1))) | 1
    return error.nonzero().choose(odd, bits).floats()


def between(low, high):
    """The same of the numbers below and above it, whose bits are equal, or one apart; nearer to zero is the one with the smaller magnitude."""
    nearer = low.bits().at_most(high.bits())
    return (nearer | (low.bits() | high.bits()) & 1).floats()


def exact_sum(tile, product, c, stage):
    """product + c, to odd; an exact zero as the rounding direction has it (IEEE 754-2019 6.3)."""
    if tile.directed:
        low, high = product.plus_toward("down", c), product.plus_toward("up", c)
        x = between(low, high)
        return x.is_zero().choose(low, x) if stage.rounding == "toward_negative" else x
    return oddly_summed(*sum_and_error(product, c), product, c, stage)


def oddly_summed(s, error, product, c, stage):
    """s + error, to odd, a sum of these; the sign of an exact zero is theirs."""
    x = to_odd(s, error)
    return s.is_zero().choose(signs(product, c), x) if stage.rounding == "toward_negative" else x


def signs(x, y):
    """Zeros, negative where one of two numbers is."""
    bits = x.bits() | y.bits()
    return (bits & -1 << (bits.element.width - 1)).floats()


def product_and_error(a, b):
    """a * b and what the multiplication lost; needs a CPU that fuses."""
    product = a * b
    return product, a.fused(b, product * -1.0)


def fused_and_error(a, b, c, wide):
    """a * b + c and what is lost; of a `wide` product nearly all of it, with its sign.

    What such a multiplication loses may be more than what is left of product and c; then their sum is exact.
    """
    if not wide:
        return sum_and_error(a * b, c)
    product, lost = product_and_error(a, b)
    s, error = sum_and_error(product, c)
    rest = error + lost
    total, error = sum_and_error(s, rest)
    return rest.nonzero().choose(total, s), error  # of zeros -0 stays


def product_to_draw(a, b, stage):
    """A product, and what the multiplication lost, None if that is nothing."""
    return product_and_error(a, b) if stage.wide else (a * b, None)


def rest_of_fused(s, a, b, c):
    """a * b + c less s, which is that rounded, to odd (Boldo and Muller, Exact and approximated error of the FMA, 2011)."""
    product, lost = product_and_error(a, b)
    near, rest = sum_and_error(c, lost)
    total, far = sum_and_error(product, near)
    return to_odd(*sum_and_error((total - s) + far, rest))


def exact_product(tile, a, b, stage):
    """a * b: exact, or if it is wide to odd."""
    if not stage.wide:
        return a * b
    if tile.directed:
        return between(a.times_toward("down", b), a.times_toward("up", b))
    return to_odd(*product_and_error(a, b))


def exact_fma(tile, a, b, c, stage):
    """a * b + c, alike. Where the CPU has directed roundings, the two around the sum do not need an exact product."""
    if not tile.directed:
        return oddly_summed(*fused_and_error(a, b, c, stage.wide), a * b, c, stage)
    low, high = a.fused_toward("down", b, c), a.fused_toward("up", b, c)
    x = between(low, high)
    return x.is_zero().choose(low, x) if stage.rounding == "toward_negative" else x


def in_pairs(count, leaf, joined):
    """The sum of so many leaves, leaf(place), added in pairs by joined(x, y, number of the addition) in the order in which they complete subtrees."""
    stack, additions = [], 0

    def join():
        nonlocal additions
        right = stack.pop()
        stack[-1] = joined(stack[-1], right, additions)
        additions += 1

    for place in range(count):
        stack.append(leaf(place))
        while place & 1:
            join()
            place >>= 1
    while len(stack) > 1:
        join()
    return stack[0]


# -- stochastic rounding ---------------------------------------------------------------------------------------------


def drawn(tile, s, error, noise, state, stage):
    """s + error, rounded stochastically by 16 random bits; no error: s is exact.

    In quanta of the format: |sum| = n + f, the addition's error is e, the random number U has 16 bits so far; noise is
    1 + U. One up where 1 + U + e >= 2 - f. An output is left open, by the sign bit of its slot (masks cost more), where
    bits to come could still reach that, or where an e, which is rounded here, decides; where U + f is next to nothing, for the
    exact value may lie below n, in quanta half as large; and where the sum is in the sliver below the smallest normal number that
    may round up to it, or is that number, as tininess hangs on U and on the error too. What is less than that sliver is tiny,
    whatever U.
    """
    magnitude = s.magnitude()
    exponent = exponent_bits(tile, magnitude)
    per_quantum = quanta_per_unit(tile, exponent)
    y = magnitude * per_quantum
    n = y.floored()
    fraction = y - n
    late, lost = noise, fraction.bits()
    if stage.either:
        fraction = fraction.nonzero().choose(fraction.all_of(0.5), fraction)
    if error is not None:
        outward = (error.bits() ^ (s.bits() & SIGN)).floats()
        late = outward.fused(per_quantum, noise.floats())
        lost = lost | error.bits()
    short, undecided = (late * -1.0 + 2.0) - fraction, tile.parameter("undecided")
    up, near = short <= 0.0, (short - undecided).bits() & ~(short.bits() - 1)
    if error is not None:
        within = (short - (undecided + MARGIN)).bits() & ~(short + MARGIN).bits()
        near = near | (within & -error.magnitude().bits())
    up, near = tile.decided(up, near, fraction, None if error is None else outward * per_quantum)
    z = up.choose(n + 1.0, n) * (exponent - tile.integer("spacing")).floats()
    special = magnitude.bits() - (tile.integer("lowest") + 1)
    above = magnitude.bits() - tile.integer("sliver")
    special = special & ~above
    flushed = lost
    if stage.ftz:
        z = (above < 0).choose(0.0, z)
        flushed = (above < 0).choose(magnitude.bits(), lost)
    state[UNDERFLOW] = (above < 0).choose(state[UNDERFLOW].bits() | flushed, state[UNDERFLOW].bits())
    if error is not None:
        special = special | (short * -1.0 + (1.0 - AT_A_POWER - MARGIN)).bits()
    state[LEFT_OPEN] = state[LEFT_OPEN].bits() | near | (special & (lost | -lost))
    state[INEXACT] = state[INEXACT].bits() | flushed
    over = z > tile.parameter("largest")
    if stage.noted:
        state[OVERFLOW] = over.choose(1, state[OVERFLOW].bits())
    return over.choose(tile.parameter("beyond_positive"), z).with_sign(s)


def split(x, taken):
    """Rounded to nearest even with so many bits fewer, as if exponents had no end, by one multiplication and two subtractions.

    Numbers plus 2^n times as much, rounded, have lost so many bits that what is left when as much is subtracted again is n bits fewer:
    Veltkamp's splitting (Dekker, A floating-point technique for extending the available precision, 1971). Ties go to even: the larger
    part is even where they arise.
    """
    wide = x * (2.0**taken + 1.0)
    return wide - (wide - x)


# -- stores ----------------------------------------------------------------------------------------------------------


def drawn_half(tile, row, x, state, saturate, watchful, ftz=False):
    """float64 to half, stochastically: `rounding.round_drawn` in vectors, on values; noise is the random number itself.

    Where there is a slot for it, the noise has 16 bits so far, and what more could round up is noted. Only small subnormal
    halves have bits of a fraction below those: tininess never hangs on more.
    """
    magnitude = x.magnitude()
    exponent = exponent_bits(tile, magnitude)
    y = magnitude * (tile.integer("per_quantum") - exponent).floats()
    threshold = tile.noise(row) * -1.0 + 1.0
    n = y.floored()
    fraction = y - n
    z = (fraction >= threshold).choose(n + 1.0, n) * (exponent - tile.integer("spacing")).floats()
    if UNSETTLED in state:
        near = ((threshold - fraction).bits() - 1).below(UNDECIDED_BITS - 1)
        state[UNSETTLED] = near.choose(1, state[UNSETTLED].bits())
    unbounded = magnitude * HALF_SLIVER_SCALE
    stays = (unbounded - unbounded.floored()) < threshold
    tiny = (magnitude < HALF_SLIVER) | ((magnitude < HALF_NORMAL) & stays)
    if ftz:
        z = tiny.choose(0.0, z)
    changed = z.bits() ^ magnitude.bits()
    state[UNDERFLOW] = state[UNDERFLOW].bits() | tiny.choose(changed, 0)
    if watchful:
        state[INEXACT] = state[INEXACT].bits() | changed
    over = z > HALF_LARGEST
    if saturate:
        state[OVERFLOW] = over.choose(1, state[OVERFLOW].bits())
    return over.choose(tile.parameter("beyond_positive"), z).with_sign(x)


def stored_half(single, state, saturate, watchful):
    """float32 to half, nearest even, as float64; what happened is noted."""
    half = single.through_half()
    tiny = (single.magnitude() < HALF_TINY).choose(half.bits() ^ single.bits(), 0)
    state[UNDERFLOW] = tiny.nonzero().choose(1, state[UNDERFLOW].bits())
    if watchful:
        lost = (half.bits() ^ single.bits()).nonzero()
        state[INEXACT] = lost.choose(state[INEXACT].bits() | 1, state[INEXACT].bits())
    if saturate:
        over = half.magnitude() > HALF_LARGEST
        state[OVERFLOW] = over.choose(1, state[OVERFLOW].bits())
        half = over.choose(HALF_LARGEST, half.magnitude()).with_sign(half)
    return half.double()
