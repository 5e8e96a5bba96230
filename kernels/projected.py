"""Roundings by rules that `rounding` leaves out: IEEE P3109's projections (draft 4.0), and other ways to meet a random number.

Everything is as in `rounding`, and these serve every rule: what differs is a number in `spec.Target` that leaves the result
alone where it is the usual one. They are apart so that the usual roundings pay nothing for them.

    parity      of n, or of the code: significands of one bit are all odd
    negatives   in unsigned formats: NaN, or the least number; those that round to zero are zero
    stochastic  f as it is, by half of the last random bit more, or rounded to as many bits as are random
"""

import numpy as np

from .jit import cut, float_bits, kernel
from .rounding import assemble_lacking, below_limit, fraction, scaled


@kernel
def selected_by_code(y, base, negative, target):
    """`selected`, by the parity of codes where the target has it so."""
    n = np.floor(y)
    shift = cut(cut(base - target.code_base, target.none) & target.coded, target.none)
    odd = cut(cut(float_bits(n + target.magic) ^ shift, target.none) & target.unit, target.none) != target.none
    positive_threshold = target.up_positive_odd if odd else target.up_positive_even
    negative_threshold = target.up_negative_odd if odd else target.up_negative_even
    threshold = negative_threshold if negative else positive_threshold
    return n + target.one if y - n >= threshold else n


@kernel
def shortfall(f, random, target):
    """What a fraction lacks to go up under stochastic rounding; none if it is not above 0.

    "nearest" rounds the fraction to a multiple of 2^-w first, by a number so large that it has no finer bits; "half" lowers the
    threshold by half of that. These numbers are 0 otherwise.
    """
    seen = (f + target.draw_grid) - target.draw_grid
    return ((target.one - random) - target.draw_half) - seen


@kernel
def drawn_by_method(y, random, target):
    """The integer next to y that stochastic rounding chooses."""
    n = np.floor(y)
    return n + target.one if shortfall(fraction(y, target), random, target) <= target.zero else n


@kernel
def open_window(y, random, target):
    """`within_window`."""
    short = shortfall(fraction(y, target), random, target)
    return (short > target.window_low) & (short <= target.window_high)


@kernel
def tiny_by_method(x, random, target):
    """`drawn_tiny`."""
    magnitude = abs(x)
    y = magnitude * target.sliver_scale
    stays = shortfall(fraction(y, target), random, target) > target.zero
    return (magnitude < target.tiny_positive) | ((magnitude < target.smallest_normal) & stays)


@kernel
def undecided_by_method(x, random, target):
    """`undecided`."""
    y, _ = scaled(x, target)
    magnitude = abs(x)
    sliver = (magnitude >= target.tiny_positive) & (magnitude < target.smallest_normal)
    return open_window(y, random, target) | (sliver & open_window(magnitude * target.sliver_scale, random, target))


@kernel
def assemble_projected(x, y, n, base, tiny, target):
    """`assemble_unusual`; in unsigned formats, what is negative is beyond the least number, if it does not round to zero."""
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
def round_projected(x, random, target):
    """Any deterministic mode, into any format."""
    y, base = scaled(x, target)
    n = selected_by_code(y, base, float_bits(x) < 0, target)
    return assemble_projected(x, y, n, base, below_limit(x, target), target)


@kernel
def round_drawn_projected(x, random, target):
    """Stochastic rounding into any format."""
    y, base = scaled(x, target)
    n = drawn_by_method(y, random, target)
    return assemble_projected(x, y, n, base, tiny_by_method(x, random, target), target)
