"""Random words: published answers, the documented address of every bit, the IPU's generator and Poplar's seeding."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import pytest
from softfloat.kernels.prng import philox, xoroshiro128aox

from softfloat import bits
from softfloat.engine import poplar_state

Words = tuple[int, ...]

RANDOM123: list[tuple[Words, Words, Words]] = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@numba.njit
def philox_compiled(c0, c1, c2, c3, k0, k1):
    return philox(c0, c1, c2, c3, k0, k1)


@numba.njit
def xoroshiro_compiled(s0, s1):
    return xoroshiro128aox(s0, s1)


def textbook_philox(counter: Words, key: Words) -> Words:
    """Philox4x32-10 in Python integers, from the paper."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c2, 2**32)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c0, c1, c2, c3


@pytest.mark.parametrize("function", [philox, philox_compiled], ids=["plain", "compiled"])
@pytest.mark.parametrize(("counter", "key", "expected"), RANDOM123)
def test_philox(function: Callable[..., tuple], counter: Words, key: Words, expected: Words) -> None:
    assert tuple(map(int, function(*map(np.uint64, (*counter, *key))))) == expected
    assert textbook_philox(counter, key) == expected


def test_philox_as_the_textbook() -> None:
    for words in np.random.default_rng(0).integers(0, 2**32, (50, 6), dtype=np.uint64):
        counter, key = tuple(map(int, words[:4])), tuple(map(int, words[4:]))
        assert tuple(map(int, philox_compiled(*words))) == textbook_philox(counter, key)


def halves(word: int) -> Words:
    return word % 2**32, word >> 32


def addressed(position: int, key: int, stream: int) -> int:
    """The 52 bits of a position, as kernels/prng.py documents them."""
    tile, within = divmod(position, 128)
    block, half_word = 16 * tile + within % 16, within // 16
    words = textbook_philox((*halves(block), *halves(stream)), halves(key))
    top = words[half_word % 4] >> (16 * (half_word // 4)) & 0xFFFF
    low = textbook_philox((*halves(position | 2**63), *halves(stream)), halves(key))
    return top << 36 | (low[0] << 32 | low[1]) >> 28


ADDRESSES = [(0, 0), (1, 0), (0, 1), (2**64 - 1, 2**64 - 1), (0x0123456789ABCDEF, 0xFEDCBA9876543210), (2**32, 2**32)]


@pytest.mark.parametrize(("seed", "stream"), ADDRESSES)
def test_every_bit_has_its_address(seed: int, stream: int) -> None:
    count = 3 * 128 + 17
    found = bits.random_bits(count, seed=seed, stream=stream)
    assert found.dtype == np.uint64
    assert found.tolist() == [addressed(i, seed, stream) for i in range(count)]


def test_far_positions() -> None:
    count = (1 << 18) + 77
    found = bits.random_bits(count, seed=7, stream=3)
    for position in (127, 128, 4095, 4096, 65535, 65536, 131071, 200001, (1 << 18) - 1, 1 << 18, count - 1):
        assert int(found[position]) == addressed(position, 7, 3)


@pytest.mark.parametrize("generator", ["philox4x32", "xoroshiro128aox"])
def test_fewer_bits_are_the_top_ones(generator: str) -> None:
    whole = bits.random_bits(300, seed=5, stream=9, generator=generator)
    for width in range(1, 53):
        some = bits.random_bits(300, seed=5, stream=9, sr_bits=width, generator=generator)
        np.testing.assert_array_equal(some, whole >> np.uint64(52 - width))


@pytest.mark.parametrize("generator", ["philox4x32", "xoroshiro128aox"])
def test_shape_and_count_do_not_matter(generator: str) -> None:
    options = {"seed": 11, "stream": 2, "generator": generator}
    line = bits.random_bits(600, **options)
    for shape in [(20, 30), (600, 1), (5, 6, 20), np.int64(600), [600]]:
        np.testing.assert_array_equal(bits.random_bits(shape, **options).ravel(), line)
    for count in (0, 1, 127, 128, 129, 599):
        np.testing.assert_array_equal(bits.random_bits(count, **options), line[:count])
    assert bits.random_bits((3, 0), **options).shape == (3, 0)


@pytest.mark.parametrize("generator", ["philox4x32", "xoroshiro128aox"])
def test_addresses_differ(generator: str) -> None:
    """Neighbouring seeds and streams, and those that differ in a high word alone. An unusable stream is refused."""
    seen = {}
    for seed, stream in [
        (0, 0),
        (1, 0),
        (2**32, 0),
        (2**63, 0),
        (0, 1),
        (0, 2),
        (1, 1),
        (0, 2**31),
        (0, 2**32),
        (0, 2**63),
    ]:
        try:
            found = bits.random_bits(20, seed=seed, stream=stream, generator=generator)
        except ValueError as error:
            assert "stream" in str(error)  # noqa: PT017 -- refused or different, never a silent wrap
            continue
        assert seen.setdefault(tuple(found.tolist()), (seed, stream)) == (seed, stream)


def test_bits_are_fair() -> None:
    """Each of 52 bits is set in half of 2^16 positions, to five standard deviations; neighbours are independent."""
    words = bits.random_bits(1 << 16, seed=2024)
    each = (words[:, None] >> np.arange(52, dtype=np.uint64)) & np.uint64(1)
    deviation = 5 * np.sqrt(words.size) / 2
    assert np.all(np.abs(each.sum(0, dtype=np.int64) - words.size / 2) < deviation)
    for distance in (1, 16, 128):
        equal = (each[distance:] == each[:-distance]).sum(0)
        assert np.all(np.abs(equal - (words.size - distance) / 2) < deviation)


# -- the IPU's generator ---------------------------------------------------------------------------------------------

XOROSHIRO: list[tuple[int, int, list[int]]] = [
    (1, 2, [0x3, 0x8000300000C003, 0x13840E038000363, 0xA080FED030C4C36E, 0x1AC0684F18388404, 0x310283837B21945]),
    (1, 0, [0x1, 0x80001000004001, 0x18406018000121, 0x8080563010444126, 0x19D06C0B1818C401, 0x1D8201235894067]),
    (0x0123456789ABCDEF, 0xFEDCBA9876543210, [0xFFFFFFFFFFFFFFFF, 0xF77C0992A3A0E991, 0x92C55B7BDF804D24]),
    (0xFFFFFFD50000002A, 0xFFFAA00000055FFF, [0xFFFA9FD500055F2A, 0x42C5DD7BBCC59D65, 0xF1635C16FDFBA20D]),
    (0xAB66CCCABEEB1317, 0x3E935F2786A596EC, [0x69F82BE22788E9E3, 0xFD828E505A80EF4D, 0x37A61E3B4F130B53]),
]
"""State and outputs: IPU.md 4.4. The fourth is the state of $PRNG_SEED = 42, the last that of setSeed({42, 0})."""


@pytest.mark.parametrize("function", [xoroshiro128aox, xoroshiro_compiled], ids=["plain", "compiled"])
@pytest.mark.parametrize(("s0", "s1", "outputs"), XOROSHIRO)
def test_xoroshiro(function: Callable[..., tuple], s0: int, s1: int, outputs: list[int]) -> None:
    state, found = (s0, s1), []
    for _ in outputs:
        output, *state = map(int, function(*map(np.uint64, state)))
        found.append(output)
    assert found == outputs
    if (s0, s1) == (1, 2):
        assert state == [0x20A4B7D02CDE0540, 0x78380A203682834C]


def test_poplar_seeding() -> None:
    assert poplar_state(42, 0) == (0xAB66CCCABEEB1317, 0x3E935F2786A596EC)
    states = {
        poplar_state(*address) for address in [(42, 0), (43, 0), (42, 1), (42, 0, 1), (42, 0, 0, 1), (42 + 2**32, 0)]
    }
    assert len(states) == 6


def test_poplar_stream() -> None:
    """Seed 42 and stream 0 are setSeed({42, 0}) with modifier 0; roundings take the outputs' top bits in turn."""
    *_, (_, _, outputs) = XOROSHIRO
    for width in (1, 16, 52):
        found = bits.random_bits(3, seed=42, sr_bits=width, generator="xoroshiro128aox")
        assert found.tolist() == [x >> (64 - width) for x in outputs]
