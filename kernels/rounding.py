"""Carrier values to codes: the definition of every rounding.

With e the exponent of |x|, but at least emin, and m the format's fraction bits:

    y = |x| / 2^(e-m)              exact: a multiplication by a power of two built from bits
    n = floor(y), f = y - n        exact
    n = n + 1 if f >= threshold
    code = (e - emin) * 2^m + n

The hidden bit of n adds one to the exponent field, a carry adds one more, a subnormal adds none: no case is special.
The threshold is all there is to a rounding mode. Nearest-even has 1/2 for an odd n and the next number above it for
an even one; directed modes have "anything" or "nothing", by sign; round to odd has them by parity; stochastic
rounding draws 1 - U, U uniform in [0, 1); up or down is the same of U = 0 or 1/2, for fractions of at least 1/2.

What IEEE P3109's projections (draft 4.0) and other ways to meet a random number do differently is a number in `targets.Target`, too:

    parity      of n, or of the code: significands of one bit are all odd
    negatives   in unsigned formats: NaN, or the least number; those that round to zero are zero
    stochastic  f as it is, by half of the last random bit more, or rounded to as many bits as are random

Preconditions: 0 <= |x| < 2^500, or infinite, or NaN; |x| = 0 or |x| >= 2^-900; all bits that decide are in x, the
last one sticky. Stochastic rounding may hang on what the sticky bit stands for: `sticky` sees to that, by its choice of
the random number.

Faster ways restate these roundings, each held against them by tests: in `elements` the carried_ functions and what
`stochastic` adds, in `halves` those of MODES, in `singles` those of TO_SINGLE; in `fast` the half_, bfloat16_ and narrow_
functions; in `quantization` element; in `values` all of it, from float to float; in `steps` ROUNDERS, TO_INTEGER, BY_BITS, drawn, drawn_half, and
the steps in which the CPU rounds (exact_step); in `sums.native` CarefulSingle._rounded and CarefulSingleDraws._drawn.
"""

import numpy as np

from .carrier import SOURCE_FLOATS, SOURCE_INTEGERS
from .jit import bits_float, cut, fixed_tuple, float_bits, kernel, shift_left, shift_right
from .targets import Target, count_fields

TARGET_INTEGERS, TARGET_FLOATS = count_fields(Target)


@kernel
def target_of(integers, floats):
    """The Target that follows a Source in two arrays."""
    integers, floats = integers[SOURCE_INTEGERS:], floats[SOURCE_FLOATS:]
    return Target(*(fixed_tuple(integers, TARGET_INTEGERS) + fixed_tuple(floats, TARGET_FLOATS)))


@kernel
def scaled(x, target):
    """(y, code of the binade's start less its hidden bit)."""
    magnitude = abs(x)
    exponent = shift_right(float_bits(magnitude), target.fraction_bits)
    low = exponent < target.lowest_exponent
    quantum = target.lowest_quantum if low else cut(exponent - target.mantissa_bits, target.none)
    steps = cut(exponent - target.lowest_exponent, target.none)
    base = target.none if low else shift_left(steps, target.mantissa_bits)
    scale = shift_left(cut(target.twice_bias - quantum, target.none), target.fraction_bits)
    return magnitude * bits_float(scale, target.one), base


@kernel
def selected(y, base, negative, target):
    """The integer next to y that a deterministic mode chooses: its threshold goes by sign and by parity, where the target has it so of codes."""
    n = np.floor(y)
    shift = cut(cut(base - target.code_base, target.none) & target.coded, target.none)
    odd = cut(cut(float_bits(n + target.magic) ^ shift, target.none) & target.unit, target.none) != target.none
    positive_threshold = target.up_positive_odd if odd else target.up_positive_even
    negative_threshold = target.up_negative_odd if odd else target.up_negative_even
    threshold = negative_threshold if negative else positive_threshold
    return n + target.one if y - n >= threshold else n


@kernel
def shortfall(y, random, target):
    """What y - floor(y) lacks to go up under stochastic rounding; none if it is not above 0.

    It counts as one half or more, if it is not 0, in a mode that goes up or down whatever it is. "nearest" rounds it to a multiple of 2^-w
    first, by a number so large that it has no finer bits; "half" lowers the threshold by half of that. These numbers are 0 otherwise.
    """
    f = y - np.floor(y)
    f = max(f, target.draw_least if f > target.zero else target.zero)
    seen = (f + target.draw_grid) - target.draw_grid
    return ((target.one - random) - target.draw_half) - seen


@kernel
def drawn(y, random, target):
    """The integer next to y that stochastic rounding chooses: up with probability f, to the last bit of `random`."""
    n = np.floor(y)
    return n + target.one if shortfall(y, random, target) <= target.zero else n


@kernel
def within_window(y, random, target):
    """Whether random bits not drawn yet, or what a sticky bit stands for, could turn a step into another."""
    short = shortfall(y, random, target)
    return (short > target.window_low) & (short <= target.window_high)


@kernel
def below_limit(x, target):
    """Whether x is tiny under a deterministic mode."""
    return abs(x) < (target.tiny_negative if float_bits(x) < 0 else target.tiny_positive)


@kernel
def drawn_tiny(x, random, target):
    """Whether x is tiny under stochastic rounding: the same random number rounds it as if the exponent had no lower end."""
    magnitude = abs(x)
    stays = shortfall(magnitude * target.sliver_scale, random, target) > target.zero
    return (magnitude < target.tiny_positive) | ((magnitude < target.smallest_normal) & stays)


@kernel
def undecided(x, random, target):
    """Whether the result or its tininess hangs on random bits not drawn yet, or on what a sticky bit stands for."""
    y, _ = scaled(x, target)
    magnitude = abs(x)
    sliver = (magnitude >= target.tiny_positive) & (magnitude < target.smallest_normal)
    return within_window(y, random, target) | (sliver & within_window(magnitude * target.sliver_scale, random, target))


@kernel
def assemble(x, y, n, base, tiny, target):
    """(code, flags) of x that was rounded to n."""
    negative = float_bits(x) < 0
    flushed = tiny & (y > target.zero) & (target.ftz != target.none)
    inexact = (n != y) | flushed
    count = cut(float_bits(n + target.magic) - target.magic_bits, target.none)
    magnitude = target.none if flushed else cut(base + count, target.none)
    code = cut(magnitude | target.sign, target.none) if negative else magnitude
    flags = (target.tiny_inexact if tiny else target.inexact) if inexact else target.none
    over = magnitude > target.largest
    code = (target.overflow_negative if negative else target.overflow_positive) if over else code
    flags = target.overflow_flags if over else flags
    infinite = abs(x) == target.infinite
    code = (target.infinity_negative if negative else target.infinity_positive) if infinite else code
    flags = target.infinity_flags if infinite else flags
    code = target.nan if x != x else code
    flags = target.nan_flags if x != x else flags
    return code, flags


@kernel
def assemble_lacking(x, number, y, n, base, tiny, target):
    """`assemble` of a number, x or its magnitude, for formats that lack subnormals, a negative zero or zero."""
    below = abs(x) < target.smallest_normal
    gap = (target.lowest_quantum == target.lowest_exponent) & below
    scale = target.first_code if gap else target.one
    code, flags = assemble(number, y * scale, n * scale, base, tiny, target)
    settled = (abs(x) < target.infinite) & (flags < target.overflow_bit)
    code = target.zero_sign if settled & (float_bits(x) < 0) & (code == target.sign) else code
    return max(cut(code - target.code_base, target.none), target.none) if settled else code, flags


@kernel
def assemble_unusual(x, y, n, base, tiny, target):
    """The same, where there may be no negative values either: they are beyond the least number, if they do not round to zero."""
    unsigned, finite = target.unsigned != target.none, abs(x) < target.infinite
    code, flags = assemble_lacking(x, abs(x) if unsigned else x, y, n, base, tiny, target)
    if not (unsigned | (target.zeroless != target.none)):  # by which loops are cut in two
        return code, flags
    lost = (x < target.zero) & unsigned & ((target.strict != target.none) | (code != target.none) | ~finite)
    code = (target.beneath if finite else target.infinity_negative) if lost else code
    flags = (target.beneath_flags if finite else target.beneath_infinite_flags) if lost else flags
    zero = (x == target.zero) & (target.zeroless != target.none)
    return target.nan if zero else code, target.invalid if zero else flags


@kernel
def round_nearest(x, random, target):
    """Nearest, ties to even, by the machine's own instruction."""
    y, base = scaled(x, target)
    return assemble(x, y, np.rint(y), base, below_limit(x, target), target)


@kernel
def round_selected(x, random, target):
    """Any deterministic mode."""
    y, base = scaled(x, target)
    return assemble(x, y, selected(y, base, float_bits(x) < 0, target), base, below_limit(x, target), target)


@kernel
def round_drawn(x, random, target):
    """Stochastic rounding."""
    y, base = scaled(x, target)
    return assemble(x, y, drawn(y, random, target), base, drawn_tiny(x, random, target), target)


@kernel
def round_selected_unusual(x, random, target):
    """Any deterministic mode, into an unusual format."""
    y, base = scaled(x, target)
    return assemble_unusual(x, y, selected(y, base, float_bits(x) < 0, target), base, below_limit(x, target), target)


@kernel
def round_drawn_unusual(x, random, target):
    """Stochastic rounding into an unusual format."""
    y, base = scaled(x, target)
    return assemble_unusual(x, y, drawn(y, random, target), base, drawn_tiny(x, random, target), target)


ROUNDERS = {
    "nearest": round_nearest,
    "selected": round_selected,
    "drawn": round_drawn,
    "selected unusual": round_selected_unusual,
    "drawn unusual": round_drawn_unusual,
}
"""Way of rounding -> function of (value, random number, target). Those for unusual formats serve all."""
