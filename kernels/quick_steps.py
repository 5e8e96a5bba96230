"""Quick steps of a tile: what they do may be wrong, and is told by what they note; then the plain steps do it again.

A sum is rounded by the CPU to float32 first, and then by adding and cutting bits.
"""

from functools import reduce
from operator import or_

import numpy as np

from .one_by_one import (
    HARMLESS,
    OPEN_FROM,
    OPEN_TO,
    drawn_single,
    in_direction,
)
from .steps import (
    BY_BITS,
    NEAR_ZERO,
    OVERFLOW,
    ROUNDERS,
    TIE,
    UNDECIDED,
    bounded,
    carried,
)

HALF_BITS = 0x1FFF  # that rounding takes away
HALF_TIE, LAST_BIT = 0x1000, 0x2000
OF_WORDS, ABOVE_ZERO = 0x7FFF1FFF, 0x00010000
FEWEST, MOST = 0x38800001, 0x477D7FFF
"""Of halves in float32, two things in one word each: the bits that rounding takes away, and exponent and leading bits, less
one, so that zero is no small number. What has a lesser word than FEWEST met a boundary of the rounding, or may be tiny; what
has a greater one than MOST may overflow."""
LIFT = 2.0**112  # from half's largest numbers to float32's
ANY, EVEN = 3, 2  # bits of a low word beside those that rounding takes away, or beside these and the last that stays
LEAST_WORD, LIFTED_FEWEST, LIFTED_MOST = -0x8000, 0xE102 - 0x10000, 0xFEFC
"""The same of halves times LIFT, in integers with sign (`watch_lifted`): the least low word, and two high ones, as above."""


def is_settled(tile, operation, stage):
    """Whether the CPU's rounding to float32 does a sum no harm: it is directed alike, or so few bits have no false ties."""
    if operation == "fma":
        return tile.directed and stage.rounding in HARMLESS
    return tile.directed or stage.rounding.startswith("nearest")


def from_below(tile, operation, stage):
    """Whether a sum is rounded toward zero first: then it ties where it seems to, or lies above, and only ties that go down are to be watched."""
    return tile.directed and operation == "fma" and stage.family == "half" and stage.nearest


def quickly(tile, s, state, stage, settled, below=False, lifted=False, alone=True):
    """A number of float32 rounded again.

    What the first rounding did matters only where it met a boundary of the second: a tie, or in directed modes a number of
    the format. These are watched for, unless s is `settled`: exact, or rounded so that it does no harm; of ties only those
    to an even number of lesser magnitude, where it comes `below`. Which they are holds for numbers that are not tiny, so
    that tiny ones are watched for, too, and what has to be noted. Halves may come `lifted`, times LIFT. `alone`: no other number
    of the step is watched for ties.
    """
    probe = s.bits()
    if stage.nearest and settled:
        y = round_half_bits(s) if lifted else ROUNDERS[stage.family](tile, s)
    elif stage.rounding.startswith("nearest"):  # ties go up here; those that must not are done again
        probe = carried(tile, s, stage.rounding if settled else "nearest_away")
        y = (probe & ~tile.integer("below")).floats()
    else:
        y = BY_BITS[stage.rounding](tile, s)
    if lifted:
        if not (settled or below):
            probe = s.bits() if stage.rounding.startswith("nearest") else probe ^ HALF_TIE
        watch_lifted(probe if alone or not settled else probe | 1, state, EVEN if settled or below else ANY)
        return y
    if stage.family == "half":
        watch_half(probe | 1 if settled else probe, state)
        return y
    if stage.family == "bfloat16" and not settled:
        state[TIE] = state[TIE].bits().words().at_most(probe.words())
    elif not settled:
        state[TIE] = state[TIE].bits().at_most(probe & tile.integer("below"))
    if stage.family != "bfloat16":
        state[NEAR_ZERO] = state[NEAR_ZERO].bits().at_most(s.bits() + s.bits() - 1)
    if not stage.noted:
        return bounded(tile, y, state, stage)
    over = y.magnitude() > tile.parameter("largest")
    state[OVERFLOW] = over.choose(0, state[OVERFLOW].bits())
    return y


def watch_half(probe, state):
    """A sum is watched by its words: it met a boundary of the rounding where the bits that are taken away are zero."""
    words = ((probe & OF_WORDS) - ABOVE_ZERO).words()
    state[TIE] = state[TIE].bits().words().at_most(words)
    state[OVERFLOW] = state[OVERFLOW].bits().words().at_least_signed(words)


def watch_lifted(probe, state, past):
    """The same of a sum times LIFT. What is left of its words by a shift is compared as integers with sign.

    The low word loses ANY or EVEN bits: the least is then one bit and zeros, a tie, or where ties were rounded up, one that
    became odd. The high word loses its sign: the smaller a number the less it is, but zero, which has another sign.
    """
    words = probe.words()
    words = words << words.alternately(past, 1)
    state[TIE] = state[TIE].bits().words().at_most_signed(words)
    if OVERFLOW in state:
        state[OVERFLOW] = state[OVERFLOW].bits().words().at_least(words)


HALF_WATCHES = {TIE: -1, OVERFLOW: -1}
"""The slots of `watch_half`, and the bits they begin with."""


def beginning(noted):
    """Those of `watch_lifted`, which looks for overflows where they are `noted`, or would not become infinite by themselves."""
    return {TIE: -1, OVERFLOW: 0} if noted else {TIE: -1}


def out_of_words(state, fewest):
    """Whether `watch_half` has seen a lesser word, or a greater one than MOST."""
    least, most = state[TIE].bits(), state[OVERFLOW].bits()
    wrong = least.words().below(least.all_of(fewest).words()) | (most.words() > most.all_of(MOST).words())
    return wrong.anywhere()


def out_of_lifted(state, ties):
    """Whether `watch_lifted` has seen one of so many least low words, or a high one beyond LIFTED_FEWEST or LIFTED_MOST."""
    least = state[TIE].bits().words()
    wrong = least < least.alternately(LEAST_WORD + ties, LIFTED_FEWEST)
    if OVERFLOW in state:
        most = state[OVERFLOW].bits().words()
        wrong = wrong | most.alternately(-1, LIFTED_MOST).below(most)
    return wrong.anywhere()


def read_as_zero(tile, sums):
    """Whether one of some sums reads as zero, and is none. Those of quick steps never do: they are watched for when they come out tiny."""
    normal = tile.integer("normal")
    small = [(x.bits() + x.bits() - 1).below(normal + normal - 1) for x in sums]
    return reduce(or_, small).anywhere()


def lift_of(family):
    """What quick steps multiply sums by. Half's that overflow become infinite by this, and small ones are told from zero for one instruction less."""
    return LIFT if family == "half" else 1.0


def directed(tile, stage, toward):
    """A sum rounded to float32 as it will be again, by toward(direction); None if the CPU cannot, or need not."""
    if not tile.directed or stage.rounding not in HARMLESS:
        return None
    return in_direction(toward, HARMLESS[stage.rounding])


OPEN_BITS = {
    8 * kind().itemsize: int(kind(OPEN_TO - OPEN_FROM).view(f"i{kind().itemsize}")) for kind in (np.float32, np.float64)
}
"""Of how far a sum lies in what is left open, as float32 and float64 have it."""
EXACT, ABOVE, AROUND = "exact", "above", "around"
"""Where the exact value of a number of float32 may lie: there, at it or above it in magnitude, or less than a last bit away."""


def drawn_from(tile):
    """Where it may lie of sums that the CPU rounds: toward zero if it can, to nearest otherwise."""
    return ABOVE if tile.directed else AROUND


def drawn_product(tile, a, b, wide):
    """A product that is exact, or if it is `wide` rounded as sums are; and where the exact one may lie."""
    if not wide:
        return a * b, EXACT
    return (a.times_toward("zero", b) if tile.directed else a * b), drawn_from(tile)


def quickly_drawn(tile, s, noise, state, family, exact, lifted, taken=None):
    """A number of float32 rounded stochastically: random bits are added to those that rounding takes away, and these are cut.

    There are 16 random bits so far, fewer of a half, and the exact value lies where `exact` says. This settles the result where
    the bits do not add up to all but one unit of the random numbers, or two; so they are watched for, unless s is EXACT and
    has no bits below the random ones; and numbers are, as `quickly` does. `taken` are all bits, or none, of one random number that takes up
    whatever s, which is to odd, has of those that are taken away.
    """
    if family == "half":
        moved = s.bits() + (noise.logical_right(3) if taken is None else taken & HALF_BITS)
        if lifted:
            watch_lifted(moved | 2 if exact == EXACT else moved + (1 + HALF_TIE), state, ANY)
            return (moved & ~HALF_BITS).floats()
        watch_half(moved | 2 if exact == EXACT else moved ^ HALF_BITS if exact == ABOVE else moved + 1, state)
        return (moved & ~HALF_BITS).floats()
    below, unit = tile.integer("below"), tile.integer("noise_unit")
    added = (noise << tile.integer("noise_up")).logical_right(tile.integer("noise_down"))
    moved = s.bits() + (added if taken is None else taken & below)
    y = (moved & ~below).floats()
    if taken is None:
        state[TIE] = state[TIE].bits().at_most((moved + unit) & below)
    twice = s.bits() + s.bits()
    state[NEAR_ZERO] = state[NEAR_ZERO].bits().at_most(twice - 1)
    state[OVERFLOW] = state[OVERFLOW].bits().at_least(twice)
    return y


def quick_settling(tile, state, sure, family):
    """What rounds a sum in float32 or float64 by 16 random bits, and notes the nearest to what these leave open."""
    open_from = 2.0 - UNDECIDED if sure and tile.directed else OPEN_FROM

    def settle(s, error, noise):
        z, reached = drawn_single(tile, s, error, noise, sure, family)
        state[TIE] = state[TIE].bits().at_most((reached - open_from).bits())
        return z

    return settle


def drawn_watches(family, lifted):
    """The slots that these steps watch with, and the bits they begin with."""
    if family.startswith("float"):
        return {TIE: -1}
    if family == "half":
        return beginning(noted=True) if lifted else HALF_WATCHES
    return {TIE: -1, NEAR_ZERO: -1, OVERFLOW: 0}


def draw_went_wrong(family, drawn, sure, lifted):
    """Whether a quick step was at a boundary of the rounding, met an overflow, or a number about as small as the smallest normal one.

    `drawn` tells of a tile where exact sums may lie; `sure` are float32's errors that are none of them rounded. Halves may come `lifted`.
    """

    def wrong_half(tile, state):
        if lifted:
            return out_of_lifted(state, 1 if drawn(tile) == ABOVE else 1 + (1 << ANY))
        return out_of_words(state, FEWEST if drawn(tile) == ABOVE else FEWEST + 1)

    def wrong(tile, state):
        normal, unit = tile.integer("normal"), tile.integer("noise_unit")
        found = state[TIE].bits().below(unit) if drawn(tile) == ABOVE else ~unit.below(state[TIE].bits())
        found = found | state[NEAR_ZERO].bits().below(normal + normal)
        largest = tile.integer("largest")
        return (found | (largest + largest).below(state[OVERFLOW].bits())).anywhere()

    def wrong_single(tile, state):
        bits = state[TIE].bits()
        window = tile.parameter("undecided").bits() if sure and tile.directed else OPEN_BITS[bits.element.width]
        return bits.below(window).anywhere()

    return wrong_half if family == "half" else wrong_single if family.startswith("float") else wrong


def watches(stage):
    """The slots that quick steps watch with, and the bits they begin with."""
    if stage.family == "half":
        return beginning(stage.noted or not stage.rounding.startswith("nearest"))
    return dict.fromkeys((TIE,) + (NEAR_ZERO,) * (stage.family == "narrow") + (OVERFLOW,) * stage.noted, -1)


def went_wrong(stage, operation=None):
    """Whether a quick step has met a tie, an overflow to be noted, or something but zero below the smallest normal number.

    `operation` is that of `QUICK_STEPS`, if it is one of these.
    """

    def wrong_half(tile, state):
        if operation is None:
            return out_of_words(state, FEWEST)
        return out_of_lifted(state, 0 if is_settled(tile, operation, stage) else 1)

    def wrong(tile, state):
        taken = 0xFFFF if stage.family == "bfloat16" else -1
        found = (state[TIE].bits() & taken).is_zero()
        if NEAR_ZERO in state:
            normal = tile.integer("normal")
            found = found | state[NEAR_ZERO].bits().below(normal + normal - 1)
        if OVERFLOW in state:
            found = found | state[OVERFLOW].bits().is_zero()
        return found.anywhere()

    return wrong_half if stage.family == "half" else wrong


def is_lifted(operation, stage):
    """Whether halves are taken times LIFT: their overflows are float32's then, and whole words round them."""
    plain = stage.nearest and not (stage.daz or stage.ftz or stage.noted or stage.wide)
    return operation == "mul_add" and stage.family == "half" and plain


def round_half_bits(x):
    """A normal number of half's range, or of the same range times a power of two, or zero, to half's precision, nearest even."""
    bits = x.bits()
    return (((bits | bits.logical_right(13) & 1) + 0xFFF) & -0x2000).floats()


SPLIT = {"half": 13, "bfloat16": 16}
"""Bits of float32 that rounding to a family takes away."""
SPLIT_MOST = 2.0**110
"""Magnitudes below which nothing becomes infinite on the way."""


def splits(operation, stage):
    """Whether sums that no overflow threatens are rounded by what they lose as parts of larger ones."""
    plain = stage.nearest and not (stage.daz or stage.ftz or stage.wide)
    return is_lifted(operation, stage) or (operation == "mul_add" and stage.family == "bfloat16" and plain)
