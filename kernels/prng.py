"""Random numbers by address: pure functions of (key, stream, position).

Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC11) maps a 128-bit counter
and a 64-bit key to 128 bits. Position i of a stream has 52 of them:

    tile, within = divmod(i, 128)
    block = 16 * tile + within % 16,  half-word = within // 16
    top 16 bits    that half-word of philox(counter = block, stream)
    low 36 bits    words 0 and 1 of philox(counter = i | 2^63, stream)

A tile is 16 blocks of 8 half-words. Its order is lane-major, so that SIMD code fills it in order.
The top bits alone settle all but one rounding in 2^16; only then are the others drawn.

A dot product rounds at several stages ("sites"), each some number of times ("steps"). With w = site * 2^26:

    top 16 bits    half-word step % 8 of philox(counter = output | (2^30 + w + step // 8) * 2^32, stream)
    low 36 bits    words 0 and 1 (even step) or 2 and 3 (odd) of philox(counter = output | (3 * 2^30 + w + step // 2) * 2^32, stream)

    half-word   0    1    2    3    4     5     6     7
    of word     0    1    2    3    0     1     2     3
    half        low                 high

    word        0       1       2       3
    low half    h 0     h 1     h 2     h 3
    high half   h 4     h 5     h 6     h 7
"""

import numpy as np

from .jit import bits_float, kernel

TILE = 128
LANES = 16
LOW_WORD = 0xFFFFFFFF
DOT_PLANE, DOT_LOW_PLANE = 0x40000000, 0xC0000000
LOW_PLANE = 0x80000000  # set in counter word 1: positions stay below 2^62


@kernel
def philox(c0, c1, c2, c3, k0, k1):
    """Philox4x32-10: four words from a counter of four and a key of two, all 32-bit values held in uint64."""
    mask = np.uint64(LOW_WORD)
    word = np.uint64(32)
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c0
        p1 = np.uint64(0xCD9E8D57) * c2
        c0 = (p1 >> word) ^ c1 ^ k0
        c1 = p1 & mask
        c2 = (p0 >> word) ^ c3 ^ k1
        c3 = p0 & mask
        k0 = (k0 + np.uint64(0x9E3779B9)) & mask
        k1 = (k1 + np.uint64(0xBB67AE85)) & mask
    return c0, c1, c2, c3


@kernel
def unit_fraction(bits, width):
    """bits / 2^width for 0 <= bits < 2^width, width <= 52: written below the point of a number in [1, 2)."""
    return bits_float((np.int64(1023) << 52) | (np.int64(bits) << (52 - width)), 1.0) - 1.0


@kernel
def fill_half_words(tile, half_words, key, stream):
    """The top 16 bits of the 128 positions of a tile, as uint16."""
    mask, half = np.uint64(LOW_WORD), np.uint64(16)
    k0, k1 = key & mask, key >> np.uint64(32)
    s0, s1 = stream & mask, stream >> np.uint64(32)
    for lane in range(LANES):
        block = np.uint64(tile) * np.uint64(LANES) + np.uint64(lane)
        words = philox(block & mask, block >> np.uint64(32), s0, s1, k0, k1)
        for word in range(4):
            half_words[lane + 16 * word] = words[word]
            half_words[lane + 16 * word + 64] = words[word] >> half


@kernel
def top_bits(start, half_words, handed, width, key, stream):
    """The top 16 of `width` random bits, or fewer in front of zeros, of whole tiles from `start` on; or of what is `handed` in."""
    right, left = np.uint64(max(width - 16, 0)), np.uint64(max(16 - width, 0))
    for i in range(handed.size):
        half_words[i] = np.uint16(handed[i] >> right << left)
    if handed.size:
        return
    for tile in range(half_words.size // TILE):
        fill_half_words(start // TILE + tile, half_words[tile * TILE : (tile + 1) * TILE], key, stream)
    kept = np.uint16(0x10000 - (1 << left))
    for i in range(half_words.size if width < 16 else 0):
        half_words[i] &= kept


@kernel
def fill_high(tile, half_words, uniforms, key, stream):
    """The same as fractions; `half_words` is room for them."""
    fill_half_words(tile, half_words, key, stream)
    for within in range(TILE):
        uniforms[within] = unit_fraction(half_words[within], 16)


@kernel
def low_bits(position, key, stream):
    """The low 36 bits of a position."""
    mask = np.uint64(LOW_WORD)
    high = (np.uint64(position) >> np.uint64(32)) | np.uint64(LOW_PLANE)
    s0, s1 = stream & mask, stream >> np.uint64(32)
    w0, w1, _, _ = philox(np.uint64(position) & mask, high, s0, s1, key & mask, key >> np.uint64(32))
    return (w0 << np.uint64(4)) | (w1 >> np.uint64(28))


@kernel
def half_word_at(position, key, stream):
    """The top 16 bits of one position: those that `fill_half_words` has of its tile."""
    mask, word = np.uint64(LOW_WORD), np.uint64(32)
    within = position % np.uint64(TILE)
    lane, place = within % np.uint64(LANES), within // np.uint64(LANES)
    block = position // np.uint64(TILE) * np.uint64(LANES) + lane
    w0, w1, w2, w3 = philox(block & mask, block >> word, stream & mask, stream >> word, key & mask, key >> word)
    which = place & np.uint64(3)
    chosen = w0 if which == 0 else w1 if which == 1 else w2 if which == 2 else w3
    return (chosen >> (np.uint64(16) if place > 3 else np.uint64(0))) & np.uint64(0xFFFF)


@kernel
def bits_at(position, key, stream, width):
    """The top `width` random bits of one position, all of them uint64 but the width."""
    high = half_word_at(position, key, stream)
    return ((high << np.uint64(36)) | low_bits(position, key, stream)) >> np.uint64(52 - width)


@kernel
def uniform(position, half_word, key, stream, width):
    """The random number of a position whose top 16 bits are known, cut to its top `width` bits."""
    fraction = unit_fraction(half_word, 16) + unit_fraction(low_bits(position, key, stream), 52)
    scale = bits_float(np.int64(1023 + width) << 52, 1.0)
    return np.floor(fraction * scale) / scale


@kernel
def dot_words(output, plane, site, block, key, stream):
    """Four words for an output below 2^32 and a site of a dot product."""
    mask, word = np.uint64(LOW_WORD), np.uint64(32)
    where = np.uint64(plane) | (np.uint64(site) << np.uint64(26)) | np.uint64(block)
    return philox(output, where, stream & mask, stream >> word, key & mask, key >> word)


@kernel
def dot_high(output, site, step, key, stream):
    """The top 16 bits of a rounding."""
    w0, w1, w2, w3 = dot_words(output, DOT_PLANE, site, step >> 3, key, stream)
    lane = step & 3
    low, high = (w1 if lane == 1 else w0), (w3 if lane == 3 else w2)
    return ((low if lane < 2 else high) >> np.uint64((step & 4) << 2)) & np.uint64(0xFFFF)


@kernel
def dot_low(output, site, step, key, stream):
    """The low 36 bits of a rounding."""
    w0, w1, w2, w3 = dot_words(output, DOT_LOW_PLANE, site, step >> 1, key, stream)
    first, second = (w2, w3) if step & 1 else (w0, w1)
    return (first << np.uint64(4)) | (second >> np.uint64(28))


@kernel
def add_low(tile, uniforms, key, stream):
    """The low 36 bits of the 128 positions of a tile, added to their top 16."""
    for within in range(TILE):
        uniforms[within] += unit_fraction(low_bits(np.int64(tile) * TILE + within, key, stream), 52)


@kernel
def keep_bits(uniforms, width):
    """Each fraction cut to its top `width` bits."""
    scale, unit = bits_float(np.int64(1023 + width) << 52, 1.0), bits_float(np.int64(1023 - width) << 52, 1.0)
    for i in range(uniforms.size):
        uniforms[i] = np.floor(uniforms[i] * scale) * unit


@kernel
def rotate_left(x, count):
    """x rotated left in 64 bits."""
    return (x << np.uint64(count)) | (x >> np.uint64(64 - count))


@kernel
def xoroshiro128aox(s0, s1):
    """(output, next s0, next s1) of the IPU's generator (Hanlon and Felstead, arXiv 2203.04058)."""
    mixed = s0 ^ s1
    common = s0 & s1
    output = mixed ^ (rotate_left(common, 1) | rotate_left(common, 2))
    return output, rotate_left(s0, 55) ^ mixed ^ (mixed << np.uint64(14)), rotate_left(mixed, 36)
