"""Faster ways through a dot product to the same bits: tiles of 8 rows by a vector of columns, in registers.

Each way is a step (a function of `lanes.Vector`s) and what holds around it. All of them need finite operands of ranges
in which no product, sum or error leaves the carrier's normal numbers (`softfloat.engine.tiling` looks at the operands first); then the
first infinity or NaN of a running sum is an overflow, which nothing undoes, and the flags of the end tell all of it.

INEXACT is watched until every output of a tile has it; what is left of k takes the brief step, which does not look.
"""

import numpy as np

from . import jit
from .accumulate import RUNNING, STORE, draw_row
from .arith import fma
from .carrier import decode, source_of
from .jit import bits_float, float_bits, kernel, row
from .lanes import LANES, ROWS, fill_noise, tile
from .prng import DOT_PLANE, dot_low, unit_fraction
from .rounding import round_drawn_unusual, target_of
from .sticky import settling

TINY, LARGEST, BEYOND, LOWEST, MAGIC, PER_QUANTUM = range(6)
"""Parameters of a rounding: numbers, and bits in disguise."""
SCALE_OF_GRID, GRID_OF_SCALE, KEPT_BITS, FLOOR = range(6, 10)
"""Parameters of an aligned block."""
PARAMETERS = 10
EXACT_WATCH = 256  # products between two looks at how large running sums have become
WATCH = 8  # turns between two looks whether all outputs are inexact

VALUE, INEXACT, UNDERFLOW, OVERFLOW, LEFT_OPEN, SMALLEST = range(6)
LARGEST_SO_FAR = LEFT_OPEN
SLOTS = 6
"""What the state of a tile holds for each output: the running sum, and whether something happened.

LEFT_OPEN: for stochastic rounding, that more random bits are needed. For exact sums, that place and the last hold the
largest and the smallest magnitude of the running sum before a block."""

MAGNITUDE, EXPONENT = 0x7FFFFFFF, 0x7F800000
EXPONENT64 = 0x7FF0000000000000
HALF_LARGEST, HALF_NORMAL, HALF_TINY = 65504.0, 2.0**-14, 2.0**-14 - 2.0**-26
HALF_SLIVER, HALF_SLIVER_SCALE = 2.0**-14 - 2.0**-25, 2.0**25  # what may round up to a normal number, and its spacing
UNDECIDED, MARGIN = 2.0**-16, 2.0**-20
AT_A_POWER = 2.0**-12  # an error, in quanta, is at most 2^-14


# -- rounding a vector of float32 ------------------------------------------------------------------------------------


def round_half(tile, x):
    """To half, by the CPU. Overflow is an infinity."""
    return x.through_half()


def round_bfloat16(tile, x):
    """To bfloat16: up where the low half is more than a half, or ties with an odd high half. Overflow is an infinity."""
    bits = x.bits()
    odd = bits.logical_right(16) & 1
    return ((bits + odd + 0x7FFF) & -0x10000).floats()


def exponent_bits(tile, x):
    """The exponent field of each number in its place, at least that of the format's smallest normal number."""
    field = {32: EXPONENT, 64: EXPONENT64}[x.bits().element.width]
    return (x.bits() & field).at_least(tile.integer(LOWEST))


def round_narrow(tile, x):
    """To any narrow format: 1.5 * 2^23 quanta (2^52 in float64), added and subtracted, leave a whole number of quanta. Unbounded above."""
    exponent = exponent_bits(tile, x)
    magic = (exponent + tile.integer(MAGIC)).floats()
    return ((x + magic) - magic).with_sign(x)


ROUNDERS = {"half": round_half, "bfloat16": round_bfloat16, "narrow": round_narrow}
ABSORBING = {"half", "bfloat16"}
"""Roundings that make an infinity of an overflow by themselves."""


def bounded(tile, y, state, saturate, family):
    """y, or what an overflow becomes; a finite one is noted."""
    if not saturate and family in ABSORBING:
        return y
    over = y.magnitude() > tile.parameter(LARGEST)
    if saturate:
        state[OVERFLOW] = state[OVERFLOW].bits() | over.choose(y.bits() | 1, 0)
    return over.choose(tile.parameter(BEYOND).with_sign(y), y)


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


def note_underflow(tile, state, before, after):
    """A tiny result that is not exact."""
    tiny = (before.bits() & MAGNITUDE) < tile.integer(TINY)
    state[UNDERFLOW] = state[UNDERFLOW].bits() | tiny.choose(before.bits() ^ after.bits(), 0)


def fma_step(family, saturate, watchful):
    """One fused multiply-add: the sum rounded to odd in float32, then to the format."""
    rounder = ROUNDERS[family]

    def step(tile, row, state):
        product = tile.a(row) * tile.b()
        x = to_odd(*sum_and_error(product, state[VALUE]))
        y = rounder(tile, x)
        if watchful:
            state[INEXACT] = state[INEXACT].bits() | (y.bits() ^ x.bits())
        if family != "bfloat16":
            note_underflow(tile, state, x, y)
        state[VALUE] = bounded(tile, y, state, saturate, family)
        return state

    return step


def mul_add_step(family, saturate, watchful):
    """A product rounded, a sum rounded. float32 has more than twice the precision: a sum rounded to it first rounds alike."""
    rounder = ROUNDERS[family]

    def step(tile, row, state):
        exact = tile.a(row) * tile.b()
        product = rounder(tile, exact)
        if family != "bfloat16":
            note_underflow(tile, state, exact, product)
        if watchful:
            state[INEXACT] = state[INEXACT].bits() | (product.bits() ^ exact.bits())
        product = bounded(tile, product, state, saturate, family)
        if watchful:
            s, error = sum_and_error(state[VALUE], product)
            y = rounder(tile, s)
            state[INEXACT] = state[INEXACT].bits() | error.bits() | (y.bits() ^ s.bits())
        else:
            y = rounder(tile, state[VALUE] + product)
        state[VALUE] = bounded(tile, y, state, saturate, family)
        return state

    return step


def single_fma_step(family, saturate, watchful):
    """A float32 fused multiply-add, which the CPU has. Where the product is not exact, the error is, by way of float64."""

    def step(tile, row, state):
        a, b, c = tile.a(row), tile.b(), state[VALUE]
        state[VALUE] = a.fused(b, c)
        if watchful and family == "float32_of_narrow":
            _, error = sum_and_error(a * b, c)
            state[INEXACT] = state[INEXACT].bits() | error.bits()
        elif watchful:
            s, error = sum_and_error(a.double() * b.double(), c.double())
            lost = error.bits() | (state[VALUE].double().bits() ^ s.bits())
            state[INEXACT] = lost.nonzero().choose(state[INEXACT].bits() | 1, state[INEXACT].bits())
        return state

    return step


def single_mul_add_step(family, saturate, watchful):
    """A float32 product, a float32 sum."""

    def step(tile, row, state):
        a, b, c = tile.a(row), tile.b(), state[VALUE]
        product = a * b
        s, error = sum_and_error(product, c)
        if watchful:
            lost = (a.double() * b.double()).bits() ^ product.double().bits()
            happened = state[INEXACT].bits() | error.bits()
            state[INEXACT] = lost.nonzero().choose(happened | 1, happened)
        state[VALUE] = s
        return state

    return step


STEPS = {
    ("fma", "half"): fma_step,
    ("fma", "bfloat16"): fma_step,
    ("fma", "narrow"): fma_step,
    ("fma", "float32"): single_fma_step,
    ("fma", "float32_of_narrow"): single_fma_step,
    ("mul_add", "half"): mul_add_step,
    ("mul_add", "bfloat16"): mul_add_step,
    ("mul_add", "narrow"): mul_add_step,
    ("mul_add", "float32"): single_mul_add_step,
    ("mul_add", "float32_of_narrow"): single_fma_step,
}
"""By operation and family of the format. "float32_of_narrow": products are exact in float32, so that rounding them changes nothing."""


# -- stochastic rounding ---------------------------------------------------------------------------------------------


def drawn_step(saturate, roomy, watchful):
    """A fused multiply-add rounded stochastically by 16 random bits.

    In quanta of the format: |sum| = n + f, the addition's error is e, the random number U has 16 bits so far; noise is
    1 + U. One up where 1 + U + e >= 2 - f. An output is left open, by the sign bit of its slot (masks cost more), where bits to come could
    still reach that; where U + f is next to nothing, for the exact value may lie below n, in quanta half as large; and
    where the sum is at most the smallest normal number, as tininess hangs on U and on the error too. `roomy`: no sum can overflow.
    """

    def step(tile, row, state):
        s, error = sum_and_error(tile.a(row) * tile.b(), state[VALUE])
        magnitude = s.magnitude()
        exponent = exponent_bits(tile, magnitude)
        per_quantum = (tile.integer(PER_QUANTUM) - exponent).floats()
        outward = (error.bits() ^ (s.bits() & -0x80000000)).floats()
        y = magnitude * per_quantum
        n = y.floored()
        fraction = y - n
        late = outward.fused(per_quantum, tile.noise(row).floats())
        short = (fraction * -1.0 + (2.0 + MARGIN)) - late
        z = (short < 0.0).choose(n + 1.0, n) * (exponent - tile.integer(MAGIC)).floats()
        near = (short - (UNDECIDED + 2 * MARGIN)).bits() & ~short.bits()
        lost = fraction.bits() | error.bits()
        special = (magnitude.bits() - (tile.integer(LOWEST) + 1)) | (short * -1.0 + (1.0 - AT_A_POWER)).bits()
        state[LEFT_OPEN] = state[LEFT_OPEN].bits() | near | (special & (lost | -lost))
        if watchful:
            state[INEXACT] = state[INEXACT].bits() | lost
        if not roomy:
            over = z > tile.parameter(LARGEST)
            if saturate:
                state[OVERFLOW] = over.choose(1, state[OVERFLOW].bits())
            z = over.choose(tile.parameter(BEYOND), z)
        state[VALUE] = z.with_sign(s)
        return state

    return step


# -- blocks ----------------------------------------------------------------------------------------------------------


def drawn_half(tile, row, x, state, saturate, watchful):
    """float64 to half, stochastically: `rounding.round_drawn` in vectors, on values; noise is the random number itself."""
    magnitude = x.magnitude()
    exponent = exponent_bits(tile, magnitude)
    y = magnitude * (tile.integer(PER_QUANTUM) - exponent).floats()
    threshold = tile.noise(row) * -1.0 + 1.0
    n = y.floored()
    z = ((y - n) >= threshold).choose(n + 1.0, n) * (exponent - tile.integer(MAGIC)).floats()
    unbounded = magnitude * HALF_SLIVER_SCALE
    stays = (unbounded - unbounded.floored()) < threshold
    tiny = (magnitude < HALF_SLIVER) | ((magnitude < HALF_NORMAL) & stays)
    changed = z.bits() ^ magnitude.bits()
    state[UNDERFLOW] = state[UNDERFLOW].bits() | tiny.choose(changed, 0)
    if watchful:
        state[INEXACT] = state[INEXACT].bits() | changed
    over = z > HALF_LARGEST
    if saturate:
        state[OVERFLOW] = over.choose(1, state[OVERFLOW].bits())
    return over.choose(tile.parameter(BEYOND), z).with_sign(x)


def exact_step(block, blocks, stored, saturate, careful, watchful):
    """Blocks of products and the running sum, exact, each rounded to float32; after the last, to half if it is `stored`.

    `stored` is "nearest", "drawn" or empty. Not `careful`: sums of a block are exact in float64, if the running sums
    before blocks, whose largest and smallest are noted, allow it. `careful`: the errors of the additions are added up,
    exactly, and folded in.
    """

    def step(tile, row, state):
        running = state[VALUE] + 0.0  # of zeros an exact sum is +0
        for number in range(blocks):
            s, lost = running, None
            for product in range(number * block, (number + 1) * block):
                term = tile.a(row, product) * tile.b(product)
                if careful:
                    s, error = sum_and_error(s, term)
                    lost = error if lost is None else lost + error
                else:
                    s = s + term
            if careful:
                s = to_odd(*sum_and_error(s, lost))
            else:
                magnitude = running.magnitude().bits()
                state[LARGEST_SO_FAR] = state[LARGEST_SO_FAR].bits().at_least(magnitude)
                state[SMALLEST] = state[SMALLEST].bits().at_most(magnitude - 1)  # no zero is smallest
            single = s.single()
            running = single.double()
            if watchful:
                state[INEXACT] = state[INEXACT].bits() | (running.bits() ^ s.bits())
        if stored == "drawn":
            running = drawn_half(tile, row, running, state, saturate, watchful)
        elif stored:
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
            running = half.double()
        if stored and not saturate and careful:  # an infinite partial has no error to fold in, and stays
            running = (state[VALUE].magnitude() < np.inf).choose(running, state[VALUE])
        state[VALUE] = running
        return state

    return step


def aligned_step(block, result, watchful):
    """A block of products and the running sum, each cut to the grid of the largest exponent, added, and rounded.

    `result`: "cut" keeps the bits a parameter says, "half" rounds to half, nearest even.
    """

    def step(tile, row, state):
        running = state[VALUE]
        power = (running.bits() & EXPONENT64).at_least(tile.integer(FLOOR)).floats()
        scale = running.nonzero().choose(power, 0.0)
        for product in range(block):
            scale = scale.at_least(tile.a(row, product, 1) * tile.b(product, 1))
        scale = (scale > 0.0).choose(scale, 1.0)
        per_grid = (tile.integer(SCALE_OF_GRID) - scale.bits()).floats()
        grid = (scale.bits() - tile.integer(GRID_OF_SCALE)).floats()
        term = running * per_grid
        total = term.truncated()
        cut = total.bits() ^ term.bits()
        for product in range(block):
            term = (tile.a(row, product) * per_grid) * tile.b(product)
            kept = term.truncated()
            total = total + kept
            if watchful:
                cut = cut | (kept.bits() ^ term.bits())
        s = (total + 0.0) * grid
        if result == "half":
            y = round_narrow(tile, s)
            tiny = (s.magnitude() < HALF_TINY).choose(y.bits() ^ s.bits(), 0)
            state[UNDERFLOW] = state[UNDERFLOW].bits() | tiny
            finite = running.magnitude() <= HALF_LARGEST
            y = (y.magnitude() > HALF_LARGEST).choose(tile.parameter(BEYOND).with_sign(y), y)
            y = finite.choose(y, running)
        else:
            y = (s.bits() & tile.integer(KEPT_BITS)).floats()
        if watchful:
            lost = cut | (y.bits() ^ s.bits())
            if result == "half":
                lost = finite.choose(lost, 0)
            state[INEXACT] = state[INEXACT].bits() | lost
        state[VALUE] = y
        return state

    return step


# -- around a step ---------------------------------------------------------------------------------------------------


@kernel
def flags_of(value, inexact, underflow, overflow, nan_flags):
    """An output's flags from its tile's state at the end."""
    flags = 1 if inexact != 0 else 0
    flags |= 3 if underflow != 0 else 0
    flags |= 5 if (overflow != 0) | (abs(value) == np.inf) else 0
    return flags | nan_flags if value != value else flags


@row
def begin(state, c, i, j, lanes):
    """The state of a tile before its first turn."""
    state[ROWS * lanes :] = 0.0
    for row_ in range(ROWS):
        start = c[i * ROWS + row_, j * lanes : (j + 1) * lanes]
        sums = state[row_ * lanes : (row_ + 1) * lanes]
        for lane in range(sums.size):
            sums[lane] = start[lane]


@row
def end(state, happened, values, flags, i, j, lanes, nan_flags):
    """Outputs of a tile after its last turn."""
    cells = ROWS * lanes
    for row_ in range(ROWS):
        first, stop = row_ * lanes, (row_ + 1) * lanes
        sums = state[first:stop]
        inexact = happened[INEXACT * cells + first : INEXACT * cells + stop]
        underflow = happened[UNDERFLOW * cells + first : UNDERFLOW * cells + stop]
        overflow = happened[OVERFLOW * cells + first : OVERFLOW * cells + stop]
        results = values[i * ROWS + row_, j * lanes : (j + 1) * lanes]
        raised = flags[i * ROWS + row_, j * lanes : (j + 1) * lanes]
        for lane in range(sums.size):
            value = sums[lane]
            results[lane] = value
            raised[lane] = flags_of(value, inexact[lane], underflow[lane], overflow[lane], nan_flags)


@row
def all_inexact(happened, cells):
    """Whether nothing is left to watch for."""
    slot = happened[INEXACT * cells : (INEXACT + 1) * cells]
    exact = 0
    for cell in range(slot.size):
        exact += 1 if slot[cell] == 0 else 0
    return exact == 0


def _compiled_tile(name, step, carrier, block, planes, watchful, *more):
    """The loop of a step of this name; `more` are the slots it uses beside the running sum and, if watchful, INEXACT."""
    slots = (VALUE, *((INEXACT,) if watchful else ()), *more)
    return tile((name, watchful), step, carrier, slots, PARAMETERS, block, planes)


def _slots(family, saturate):
    """What a step of STEPS notes."""
    return (UNDERFLOW,) * (family in ("half", "narrow")) + (OVERFLOW,) * bool(saturate)


@jit.once
def deterministic(kind, carrier, block, planes, *options):
    """loop(first, last, a, b, c, values, flags, numbers, nan_flags) over tiles first ... last - 1.

    `kind` is an operation and a family of STEPS, or ("aligned", ""); `options` go to the step. a is (planes, row
    panels, k, ROWS), b (planes, column panels, k, lanes); c and values are (ROWS * row panels, lanes * column panels);
    all of the carrier's type. Tiles are numbered with the row panel running fastest.
    """
    digest = jit.SOURCE_DIGEST
    lanes = LANES[carrier]
    if kind[0] == "aligned":
        make, slots = aligned_step, (UNDERFLOW,) * (options[0] == "half")
        options = (block, *options)
    else:
        make, slots = STEPS[kind], _slots(kind[1], *options)
        options = (kind[1], *options)
    watchful, brief = (
        _compiled_tile((kind, options), make(*options, watches), carrier, block, planes, watches, *slots)
        for watches in (True, False)
    )
    integer = np.int32 if carrier is np.float32 else np.int64
    cells = ROWS * lanes
    watched = max(WATCH // block, 1)

    def deterministic_loop(first, last, a, b, c, values, flags, numbers, nan_flags):
        digest  # noqa: B018
        panels, turns = a.shape[1], a.shape[2] // block
        a_plane, b_plane = a.size // planes, b.size // planes
        flat_a, flat_b = a.reshape(-1), b.reshape(-1)
        state = np.empty(SLOTS * cells, carrier)
        happened = state.view(integer)
        for unit in range(first, last):
            i, j = unit % panels, unit // panels
            a_at, b_at = i * turns * block * ROWS, j * turns * block * lanes
            begin(state, c, i, j, lanes)
            done = 0
            while done < turns:
                count = turns - done
                if all_inexact(happened, cells):
                    brief(flat_a, a_at, a_plane, flat_b, b_at, b_plane, state, state, numbers, count)
                else:
                    count = min(watched, count)
                    watchful(flat_a, a_at, a_plane, flat_b, b_at, b_plane, state, state, numbers, count)
                done += count
                a_at += count * block * ROWS
                b_at += count * block * lanes
            end(state, happened, values, flags, i, j, lanes, nan_flags)

    return jit.compiled(deterministic_loop)


def chunk_of(group):
    """Products between two looks at the running sums, whole groups."""
    return max(EXACT_WATCH // group, 1) * group


@jit.once
def spans():
    """loop(panels, chunk, lowest, largest): of each panel's chunks of k, the smallest lowest bit and the largest magnitude."""
    digest = jit.SOURCE_DIGEST

    def spans_loop(panels, chunk, lowest, largest):
        digest  # noqa: B018
        for panel in range(panels.shape[0]):
            for part in range(lowest.shape[1]):
                values = panels[panel, part * chunk : (part + 1) * chunk].reshape(-1)
                low, high = np.inf, 0.0
                for n in range(values.size):
                    magnitude = abs(values[n])
                    bits = float_bits(magnitude)
                    significand = (bits & np.int64(0xFFFFFFFFFFFFF)) | np.int64(0x10000000000000)
                    unit = bits_float((bits & np.int64(0x7FF0000000000000)) - np.int64(52 << 52), 1.0)
                    bit = np.float64(significand & -significand) * unit
                    low = bit if (bit < low) & (magnitude > 0.0) else low
                    high = magnitude if magnitude > high else high
                lowest[panel, part] = low
                largest[panel, part] = high

    return jit.compiled(spans_loop)


@jit.once
def exact_blocks(block, blocks, stored, saturate):
    """As `deterministic`, for blocks whose sums are exact.

    loop(first, last, a, b, c, values, flags, numbers, nan_flags, index, row_stride, column_stride, width, key, stream,
    low_c, low_a, high_a, low_b, high_b): where outputs lie among random addresses, if `stored` is "drawn"; the lowest
    bit of c, and spans of both operands' panels. A chunk of k is summed quickly, and if a bit may have been lost, again with
    care. None is lost where all terms are multiples of some bit, and no sum reaches 53 bits above it. Products of a
    chunk are multiples of its lowest bit; a running sum is one of the lowest bit so far, for rounding only takes bits
    away, and, being a float32, of 2^-23 of its power of two.
    """
    digest = jit.SOURCE_DIGEST
    carrier, lanes, group = np.float64, LANES[np.float64], block * blocks
    slots = (UNDERFLOW,) * bool(stored) + (OVERFLOW,) * (bool(stored) and saturate)
    draws = stored == "drawn"
    quick, brief, careful, careful_brief = (
        _compiled_tile(
            ("exact", block, blocks, stored, saturate, careful),
            exact_step(block, blocks, stored, saturate, careful, watchful),
            carrier, group, 1, watchful, *slots, *(() if careful else (LARGEST_SO_FAR, SMALLEST)),
        )
        for careful in (False, True)
        for watchful in (True, False)
    )  # fmt: skip
    cells = ROWS * lanes
    watched = chunk_of(group) // group

    def exact_blocks_loop(
        first, last, a, b, c, values, flags, numbers, nan_flags, index, row_stride, column_stride, width, key, stream,
        low_c, low_a, high_a, low_b, high_b,
    ):  # fmt: skip
        digest  # noqa: B018
        panels, turns = a.shape[1], a.shape[2] // group
        flat_a, flat_b = a.reshape(-1), b.reshape(-1)
        state = np.empty(SLOTS * cells, carrier)
        happened = state.view(np.int64)
        largest, smallest = happened[LARGEST_SO_FAR * cells :][:cells], happened[SMALLEST * cells :][:cells]
        saved = np.empty_like(state)
        noise = np.empty(watched * cells if draws else 0)
        for unit in range(first, last):
            i, j = unit % panels, unit // panels
            a_at, b_at = i * turns * group * ROWS, j * turns * group * lanes
            begin(state, c, i, j, lanes)
            known, so_far = False, low_c
            for part in range(low_a.shape[1]):
                count = min(watched, turns - part * watched)
                known = known or all_inexact(happened, cells)
                if draws:
                    corner = index + i * ROWS * row_stride + j * lanes * column_stride
                    for turn in range(count):
                        for row_ in range(ROWS):
                            at = (turn * ROWS + row_) * lanes
                            start, step = corner + row_ * row_stride, part * watched + turn
                            draw_row(noise[at : at + lanes], start, column_stride, STORE, step, key, stream, width)
                lowest = low_a[i, part] * low_b[j, part]
                so_far = min(so_far, lowest)
                reach = block * (high_a[i, part] * high_b[j, part])
                limit, limit_so_far = lowest * 4503599627370496.0 - reach, so_far * 4503599627370496.0 - reach
                done = False
                if limit > 0.0:
                    saved[:] = state
                    largest[:] = 0
                    smallest[:] = EXPONENT64
                    if known:
                        brief(flat_a, a_at, 0, flat_b, b_at, 0, noise, state, numbers, count)
                    else:
                        quick(flat_a, a_at, 0, flat_b, b_at, 0, noise, state, numbers, count)
                    top, bottom = np.int64(0), np.int64(EXPONENT64)
                    for cell in range(cells):
                        top = max(top, largest[cell])
                        bottom = min(bottom, smallest[cell])
                    bits_are_high = bits_float(bottom + 1, 1.0) * 1.1920928955078125e-07 >= lowest
                    magnitude = bits_float(top, 1.0)
                    done = (magnitude < limit_so_far) | ((magnitude < limit) & bits_are_high)
                    if not done:
                        state[:] = saved
                if not done:
                    if known:
                        careful_brief(flat_a, a_at, 0, flat_b, b_at, 0, noise, state, numbers, count)
                    else:
                        careful(flat_a, a_at, 0, flat_b, b_at, 0, noise, state, numbers, count)
                a_at += count * group * ROWS
                b_at += count * group * lanes
            end(state, happened, values, flags, i, j, lanes, nan_flags)

    return jit.compiled(exact_blocks_loop)


STEPS_OF_A_BLOCK = 8  # half-words of a Philox block
settled_fma = settling("fma")


@kernel
def drawn_again(x, y, z, noise, output, step, source, target, width, key, stream):
    """A fused multiply-add rounded with all of its random bits."""
    scale = bits_float(np.int64(1023 + width) << 52, 1.0)
    random = np.float64(noise) - 1.0
    if width > 16:
        random += unit_fraction(dot_low(output, RUNNING, step, key, stream), 52)
    random = np.floor(random * scale) / scale
    s, _ = fma(x, y, z, target)
    code, raised = round_drawn_unusual(s, settled_fma(x, y, z, s, 0.0, random, target), target)
    return decode(code, source), raised


@jit.once
def stochastic(saturate, roomy):
    """loop(first, last, a, b, c, values, flags, numbers, nan_flags, ints, floats,
    index, row_stride, column_stride, rows, columns, width, key, stream).

    As `deterministic`, for fused multiply-adds rounded stochastically; eight turns at a time. The brief step tells that
    some output was left open, the watchful one which. What 16 random bits leave open is done again with all of them, an
    output at a time, by the plain functions on the wide carrier. Only outputs of the first `rows` and `columns` exist.
    """
    digest = jit.SOURCE_DIGEST
    lanes = LANES[np.float32]
    slots = (OVERFLOW,) * (saturate and not roomy) + (LEFT_OPEN,)
    name = "stochastic", saturate, roomy
    watchful = _compiled_tile(name, drawn_step(saturate, roomy, True), np.float32, 1, 1, True, *slots)
    brief = drawn_step(saturate, roomy, False)
    brief = tile((name, False), brief, np.float32, (VALUE, *slots), PARAMETERS, shared=(LEFT_OPEN,))
    cells = ROWS * lanes

    def stochastic_loop(
        first, last, a, b, c, values, flags, numbers, nan_flags, ints, floats,
        index, row_stride, column_stride, rows, columns, width, key, stream,
    ):  # fmt: skip
        digest  # noqa: B018
        source, target = source_of(ints, floats), target_of(ints, floats)
        panels, turns = a.shape[1], a.shape[2]
        flat_a, flat_b = a.reshape(-1), b.reshape(-1)
        state = np.empty(SLOTS * cells, np.float32)
        happened = state.view(np.int32)
        open_ones = happened[LEFT_OPEN * cells :]
        saved = np.empty(cells, np.float32)
        overflowed = np.empty(cells, np.int32)
        noise = np.empty(STEPS_OF_A_BLOCK * cells, np.float32)
        noise_pairs = noise.view(np.uint64)
        kept = 0x007FFF80 & ~((1 << (23 - min(width, 16))) - 1)
        mask = np.uint64(kept) | (np.uint64(kept) << np.uint64(32))
        for unit in range(first, last):
            i, j = unit % panels, unit // panels
            a_at, b_at = i * turns * ROWS, j * turns * lanes
            corner = index + i * ROWS * row_stride + j * lanes * column_stride
            begin(state, c, i, j, lanes)
            known = False
            for done in range(0, turns, STEPS_OF_A_BLOCK):
                count = min(STEPS_OF_A_BLOCK, turns - done)
                saved[:] = state[:cells]
                if saturate:
                    overflowed[:] = happened[OVERFLOW * cells : (OVERFLOW + 1) * cells]
                where = np.uint64(DOT_PLANE) | np.uint64(RUNNING << 26) | np.uint64(done // STEPS_OF_A_BLOCK)
                fill_noise(noise_pairs, corner, row_stride, column_stride, where, mask, key, stream)
                known = known or all_inexact(happened, cells)
                left = -1
                if known:
                    brief(flat_a, a_at, 0, flat_b, b_at, 0, noise, state, numbers, count)
                    left = 0
                    for lane in range(lanes):
                        left |= open_ones[lane]
                        open_ones[lane] = 0
                    if left < 0:
                        state[:cells] = saved
                        if saturate:
                            happened[OVERFLOW * cells : (OVERFLOW + 1) * cells] = overflowed
                if left < 0:
                    watchful(flat_a, a_at, 0, flat_b, b_at, 0, noise, state, numbers, count)
                    for cell in range(cells):
                        if open_ones[cell] >= 0:
                            continue
                        open_ones[cell] = 0
                        row_, lane = cell // lanes, cell % lanes
                        if i * ROWS + row_ >= rows or j * lanes + lane >= columns:
                            continue
                        output = np.uint64(corner + row_ * row_stride + lane * column_stride)
                        z = np.float64(saved[cell])
                        seen = 0
                        for turn in range(count):
                            z, raised = drawn_again(
                                np.float64(flat_a[a_at + turn * ROWS + row_]),
                                np.float64(flat_b[b_at + turn * lanes + lane]),
                                z,
                                noise[turn * cells + cell],
                                output,
                                done + turn,
                                source,
                                target,
                                width,
                                key,
                                stream,
                            )
                            seen |= raised
                        state[cell] = z
                        happened[UNDERFLOW * cells + cell] |= seen & 2
                        if saturate:
                            happened[OVERFLOW * cells + cell] = overflowed[cell] | (seen & 4)
                a_at += count * ROWS
                b_at += count * lanes
            end(state, happened, values, flags, i, j, lanes, nan_flags)

    return jit.compiled(stochastic_loop)
