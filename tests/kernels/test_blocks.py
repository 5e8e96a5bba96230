"""Blocks of ordinary operands against the plain loops: same codes, same flags, wherever a block is not ordinary."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from covering import covering
from faster import both, same, singles
from operands import operands
from softfloat.kernels import blocks, ordinary, spec

import softfloat
from softfloat import ROSTER, Format, bits
from softfloat.engine import elementwise, generated, parameters
from softfloat.engine.arguments import flattened
from softfloat.engine.draws import NO_BITS

MODES = ["nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd"]
HALF, BRAIN = ROSTER["float16"], ROSTER["bfloat16"]
FORMATS = [
    HALF,
    BRAIN,
    ROSTER["tfloat32"],
    Format("e6m9", exponent_bits=6, mantissa_bits=9),
    Format("e6m9_no_subnormals", exponent_bits=6, mantissa_bits=9, subnormals=False),
    Format("e7m8", exponent_bits=7, mantissa_bits=8),
    Format("e8m6", exponent_bits=8, mantissa_bits=6),
    Format("e7m8_low", exponent_bits=7, mantissa_bits=8, bias=120),
    Format("e5m10_p3109", exponent_bits=5, mantissa_bits=10, nan="fnuz", infinities=True),
    Format("e3m12", exponent_bits=3, mantissa_bits=12),
    Format("e1m14_fn", exponent_bits=1, mantissa_bits=14, nan="fn"),
    Format("e4m11_finite", exponent_bits=4, mantissa_bits=11, nan="none"),
    Format("e5m6", exponent_bits=5, mantissa_bits=6),
]
BYTES = [ROSTER["float8_e4m3fn"], ROSTER["float8_e5m2"]]
DRAWN = [HALF, BRAIN, FORMATS[3], FORMATS[8], BYTES[0]]
ARITHMETIC = ["add", "sub", "mul", "div", "sqrt", "fma"]
VARIANTS: list[dict[str, Any]] = [
    {},
    {"tininess": "before", "overflow": "saturate"},
    {"overflow": "nan", "nan": "x86"},
    {"daz": True, "nan": "arm"},
    {"ftz": True, "tininess": "before", "nan": "ipu"},
    {"daz": True, "ftz": True, "overflow": "saturate", "nan": "nvidia"},
]
COUNT = 2 * blocks.BLOCK + 77


def variants(fmt: Format) -> list[dict[str, Any]]:
    return [x for x in VARIANTS if fmt.has_nan or x.get("overflow") != "nan"]


def numbers_of(fmt: Format, operation: str, mode: str, options: dict[str, Any]) -> ordinary.Ordinary | None:
    rule = {
        name: getattr(spec, kind)[options[name].upper()]
        for name, kind in (("overflow", "Overflow"), ("tininess", "Tininess"))
        if name in options
    }
    rule |= {name: options[name] for name in ("daz", "ftz", "nan") if name in options}
    return ordinary.ordinary(fmt.spec, spec.Rule(rounding=spec.Rounding[mode.upper()], **rule), operation)


def calm(fmt: Format, numbers: ordinary.Ordinary, seed: int, count: int = COUNT) -> list[np.ndarray]:
    """Ordinary operands: at both ends of what is, near each other, a few bits apart, zeros of both signs; of roots without a sign."""
    random = np.random.default_rng(seed)
    columns = operands(fmt, count, 3, seed)
    least, most = numbers.least, numbers.most
    found = []
    for codes in columns:
        magnitude = codes.astype(np.int64) & (fmt.sign_bit - 1)
        ends = random.choice([0, least, least + 1, most, most - 1], count)
        inside = random.integers(least, most + 1, count)
        outside = (magnitude > most) | ((magnitude < least) & (magnitude != 0))
        magnitude = np.where(outside, np.where(random.integers(0, 2, count), ends, inside), magnitude)
        sign = random.choice([0, fmt.sign_bit], count)
        sign = np.where((magnitude == 0) & (fmt.spec.lone_nan >= 0), 0, sign)
        found.append((magnitude | sign).astype(fmt.dtype))
    middle = (
        fmt.bias or 0
    ) << fmt.mantissa_bits  # numbers near 1, so that sums and products are neither tiny nor large
    for codes in found:
        near = middle + random.integers(-9 << fmt.mantissa_bits, 4 << fmt.mantissa_bits, count)
        ordinary = (near >= least) & (near <= most) & (random.integers(0, 3, count) > 0)
        codes[ordinary] = (near | random.choice([0, fmt.sign_bit], count))[ordinary].astype(fmt.dtype)
    return found


def taken(operation: str, columns: list[np.ndarray], fmt: Format) -> list[np.ndarray]:
    """As many operands as it takes: no divisor is zero, no root that of a number with a sign."""
    if operation == "sqrt":
        return [columns[0] & fmt.dtype.type(fmt.sign_bit - 1)]
    if operation == "div":
        zeros = (columns[1] & fmt.dtype.type(fmt.sign_bit - 1)) == 0
        columns[1][zeros] = columns[1].max() & fmt.dtype.type(fmt.sign_bit - 1)
    return columns[: 3 if operation == "fma" else 2]


def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From here on a block that is left to another loop fails; the function returned ends that."""

    def none(*arguments: Any, **options: Any) -> Any:
        def work(start: int, stop: int) -> int:
            raise AssertionError((start, stop))

        return work

    names = ("_plain_work",)
    kept = [getattr(elementwise, name) for name in names]
    for name in names:
        monkeypatch.setattr(elementwise, name, none)
    return lambda: [monkeypatch.setattr(elementwise, *pair) for pair in zip(names, kept, strict=True)] and None


def hold(monkeypatch: pytest.MonkeyPatch, call: Callable[..., Any], served: bool = False) -> None:
    """One call by both ways, flags each and together; `served`: no block may be left to another loop."""
    restore = alone(monkeypatch) if served else lambda: None
    monkeypatch.setattr(elementwise, "FAST", True)
    found, together = call(flags="each"), call(flags="any")
    restore()
    monkeypatch.setattr(elementwise, "FAST", False)
    same((found, call(flags="each")))
    expected = call(flags="any")
    assert np.array_equal(together[0], expected[0])
    assert together[1] == expected[1]


def loop_of(fmt: Format, operation: str, mode: str, options: dict[str, Any]) -> dict[str, Any]:
    """What tells its loop from others; each is compiled."""
    flushes = ordinary.flushes(fmt.spec, spec.Rule(ftz=options.get("ftz", False)))
    own = ["nearest_even", "stochastic"]
    if fmt == HALF and operation in ("mul", "convert") and not flushes:
        own += ["toward_zero", "to_odd"]  # in which the CPU rounds
    return {
        "kind": fmt.name if fmt in (HALF, BRAIN) else fmt.dtype,
        "operation": "add" if operation == "sub" else operation,
        "way": mode if mode in own else "selected",
        "flushes": flushes,
        "lifts": ordinary.lifts(fmt.spec),
    }


@cache
def kept_loops() -> list[dict[str, Any]]:
    """As many as show each two of these somewhere."""
    each = [
        *itertools.product(FORMATS, [*ARITHMETIC, "convert"], MODES, VARIANTS),
        *itertools.product(BYTES, ["convert"], MODES, VARIANTS),
        *itertools.product(DRAWN, ARITHMETIC, ["stochastic"], VARIANTS),
    ]
    loops = [loop_of(*case) for case in each if numbers_of(*case) is not None]
    return [loops[n] for n in covering(loops)]


def is_kept(request: pytest.FixtureRequest, *case: Any) -> bool:
    """Whether a case is tried: all of those that one of these loops serves, and any with --exhaustive."""
    return bool(request.config.getoption("--exhaustive")) or loop_of(*case) in kept_loops()


@pytest.mark.parametrize("operation", ARITHMETIC)
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_arithmetic(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, fmt: Format, operation: str
) -> None:
    """Ordinary operands are all served; any others are left to the plain loop."""
    served = 0
    for seed, (mode, options) in enumerate(itertools.product(MODES, variants(fmt))):
        numbers = numbers_of(fmt, operation, mode, options)
        if numbers is None:
            continue
        served += 1
        if not is_kept(request, fmt, operation, mode, options):
            continue
        how = {"rounding": mode, **options}
        columns = taken(operation, calm(fmt, numbers, seed), fmt)
        kept = not (options.get("ftz") or not fmt.subnormals)
        call = getattr(bits, operation)
        hold(monkeypatch, lambda o=how, c=columns, call=call, **k: call(*c, fmt, **o, **k), served=kept)
        if seed % 5 < 3:
            columns = taken(operation, operands(fmt, COUNT, 3, seed), fmt)
            for column, ordinary_ones in zip(columns, calm(fmt, numbers, seed, blocks.BLOCK), strict=False):
                column[: blocks.BLOCK] = ordinary_ones
            hold(monkeypatch, lambda o=how, c=columns, call=call, **k: call(*c, fmt, **o, **k))
    assert (served >= 2 * len(MODES)) == (fmt.mantissa_bits <= ordinary.WIDEST[operation])


@pytest.mark.parametrize("fmt", [*FORMATS, *BYTES], ids=str)
def test_convert(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, fmt: Format) -> None:
    """From float32: random bits, neighbourhoods of every threshold; finite ones are all served."""
    x = singles(fmt, 1)[::3] if fmt.has_nan else np.random.default_rng(1).normal(0, 4, COUNT).astype(np.float32)
    ends = np.ldexp([[1.0], [-1.0]], [np.frexp(float(e))[1] for e in (fmt.max, fmt.tiny, fmt.smallest_subnormal)])
    ends = ends.ravel()[np.abs(ends.ravel()) < 2.0**127].astype(np.float32)  # powers of two at the ends of the range
    x = np.concatenate([x, ends, np.nextafter(ends, np.float32(0)), 2 * ends])
    finite = x[np.isfinite(x)]
    served = 0
    for i, (mode, options) in enumerate(itertools.product(MODES, variants(fmt))):
        if numbers_of(fmt, "convert", mode, options) is None:
            continue
        served += 1
        if not is_kept(request, fmt, "convert", mode, options):
            continue
        how = {"rounding": mode, **options}
        kept = fmt.subnormals and not (options.get("daz") or options.get("ftz"))
        hold(monkeypatch, lambda o=how, **k: bits.encode(finite, fmt, **o, **k), served=kept)
        if i % 5 < 3:
            hold(monkeypatch, lambda o=how, **k: bits.encode(x, fmt, **o, **k))
    assert bool(served) == (fmt.name != "e7m8_low")


@pytest.mark.parametrize("mode", ["nearest_even", "toward_positive"])
@pytest.mark.parametrize("fmt", [HALF, BRAIN, FORMATS[3], FORMATS[8]], ids=str)
def test_a_special_value_at_every_position_of_a_block(monkeypatch: pytest.MonkeyPatch, fmt: Format, mode: str) -> None:
    size = blocks.BLOCK
    numbers = numbers_of(fmt, "add", mode, {})
    assert numbers is not None
    a, b = (np.tile(x, size) for x in calm(fmt, numbers, 3, size)[:2])
    every = np.arange(size) * (size + 1)
    special = np.array([fmt.nan_code, fmt.max_code, fmt.inf_code], fmt.dtype)
    for column in (a, b):
        changed = column.copy()
        changed[every[: size // 2]] = np.resize(special, size // 2)
        changed[every[3 * size // 4 :]] = np.resize(special, size // 4)
        pair = (changed, b) if column is a else (a, changed)
        same(both(monkeypatch, lambda p=pair: bits.add(*p, fmt, rounding=mode)))


@pytest.mark.parametrize("operation", ["add", "mul"])
@pytest.mark.parametrize("fmt", [HALF, BRAIN, FORMATS[3], FORMATS[8]], ids=str)
def test_just_beyond_what_is_ordinary(monkeypatch: pytest.MonkeyPatch, fmt: Format, operation: str) -> None:
    """The least magnitude above and the largest below, with themselves, in blocks that are ordinary otherwise."""
    mode = "toward_positive"
    numbers = numbers_of(fmt, operation, mode, {})
    assert numbers is not None
    size = blocks.BLOCK
    a, b = (np.tile(x, 4) for x in calm(fmt, numbers, 5, size)[:2])
    for block, magnitude in enumerate((numbers.most, numbers.most + 1, numbers.least, max(numbers.least - 1, 0))):
        a[block * size + 7] = b[block * size + 7] = magnitude
    call = getattr(bits, operation)
    same(both(monkeypatch, lambda: call(a, b, fmt, rounding=mode)))
    found = np.array([call(x, x, fmt, rounding=mode)[1] for x in (numbers.most, numbers.most + 1)])
    assert operation == "mul" or (found & 4).tolist() == [0, 4]


@pytest.mark.parametrize("mode", ["nearest_even", "to_odd", "stochastic"])
@pytest.mark.parametrize("fmt", [HALF, BRAIN, FORMATS[3]], ids=str)
def test_any_layout(monkeypatch: pytest.MonkeyPatch, fmt: Format, mode: str) -> None:
    """Sizes around that of a block, strides, unaligned memory, operands and results in one place."""
    how: dict[str, Any] = {"rounding": mode} | ({"seed": 4} if mode == "stochastic" else {})
    numbers = numbers_of(fmt, "add", "nearest_even", {})
    assert numbers is not None
    a, b, _ = calm(fmt, numbers, 9)
    for size in (0, 1, 31, blocks.BLOCK - 1, blocks.BLOCK, blocks.BLOCK + 1, 3 * blocks.BLOCK + 17):
        same(both(monkeypatch, lambda s=size: bits.add(a[:s], b[:s], fmt, **how)))
    expected, expected_flags = bits.add(a, b, fmt, **how)

    def unaligned(x: np.ndarray) -> np.ndarray:
        room = np.zeros(x.nbytes + 1, np.uint8)
        place = room[1:].view(x.dtype)
        place[:] = x
        assert not place.flags.aligned
        return place

    strided = np.repeat(a, 3)[::3]
    backwards = b[::-1].copy()[::-1]
    results, flags = unaligned(np.zeros_like(a)), np.zeros((a.size, 2), np.uint8)[:, 1]
    for pair in ((unaligned(a), b), (strided, backwards)):
        found = bits.add(*pair, fmt, out=(results, flags), **how)
        assert np.array_equal(found[0], expected)
        assert np.array_equal(found[1], expected_flags)
    own = a.copy()
    bits.add(own, b, fmt, out=own, **how)
    assert np.array_equal(own, expected)


@pytest.mark.parametrize("mode", ["nearest_even", "toward_zero", "stochastic"])
def test_threads(mode: str) -> None:
    how: dict[str, Any] = {"rounding": mode} | ({"seed": 4} if mode == "stochastic" else {})
    random = np.random.default_rng(1)
    x = random.standard_normal((1 << 17) + 3333).astype(np.float32)
    x[::70001] = np.inf
    a, b = bits.encode(x, "float16")[0], bits.encode(x[::-1].copy(), "float16")[0]
    threads = softfloat.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            softfloat.set_num_threads(count)
            found.append((*bits.add(a, b, "float16", **how), *bits.encode(x, "bfloat16", **how)))
    finally:
        softfloat.set_num_threads(threads)
    for other in found[1:]:
        assert all(np.array_equal(p, q) for p, q in zip(found[0], other, strict=True))


@pytest.mark.parametrize("operation", ARITHMETIC)
@pytest.mark.parametrize("fmt", DRAWN, ids=str)
def test_stochastic(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, fmt: Format, operation: str
) -> None:
    """The same random bits at the same addresses, or handed in: ordinary operands, and any."""
    draws = itertools.product((16, None, 24, 1, 7, 13, 14), (False, True))
    for seed, (options, (width, handed)) in enumerate(zip(itertools.cycle(variants(fmt)), draws, strict=False)):
        numbers = numbers_of(fmt, operation, "stochastic", options)
        assert numbers is not None
        if not is_kept(request, fmt, operation, "stochastic", options):
            continue
        how = {"rounding": "stochastic", "sr_bits": width or 52, **options}
        random = np.random.default_rng(seed).integers(0, 1 << (width or 52), COUNT)
        how |= {"random_bits": random} if handed else {"seed": 7 + seed, "stream": seed}
        columns = taken(operation, calm(fmt, numbers, seed), fmt)
        hold(monkeypatch, lambda o=how, c=columns, **k: getattr(bits, operation)(*c, fmt, **o, **k))
        columns[0][blocks.BLOCK :] = operands(fmt, COUNT - blocks.BLOCK, 1, seed)[0]
        hold(monkeypatch, lambda o=how, c=columns, **k: getattr(bits, operation)(*c, fmt, **o, **k))


def test_stochastic_conversions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of random bits that no other faster loop draws, or to such formats."""
    for fmt in (*FORMATS[:4], FORMATS[6]):
        x = singles(fmt, 2)[::5]
        finite = x[np.isfinite(x)]
        for each in (x, finite):
            ways: list[dict[str, Any]] = [{"seed": 1, "stream": 3, "sr_bits": width} for width in (None, 1, 6, 15)]
            bits_of = np.random.default_rng(1).integers(0, 1 << 20, each.size)
            ways += [{"random_bits": bits_of >> (20 - width), "sr_bits": width} for width in (1, 11, 17, 20)]
            for how in ways:
                hold(monkeypatch, lambda e=each, f=fmt, h=how, **k: bits.encode(e, f, rounding="stochastic", **h, **k))


def test_tininess_that_hangs_on_further_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right below the smallest normal number, where 16 of 20 random bits say neither that it is reached nor that it is not."""
    fmt = ROSTER["float8_e4m3fn"]
    random = np.random.default_rng(8)
    fraction = random.integers(1, 1 << 20, 4 * blocks.BLOCK)
    x = (2.0**-6 - 2.0**-10 * (1 - fraction / 2**20)).astype(np.float32)
    for step in (-1, 0, 1):
        drawn = np.clip((1 << 20) - fraction + step, 0, (1 << 20) - 1)
        how: dict[str, Any] = {"rounding": "stochastic", "random_bits": drawn, "sr_bits": 20}
        hold(monkeypatch, lambda h=how, **k: bits.encode(x, fmt, **h, **k))


def test_near_the_smallest_normal_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a product is tiny hangs on its random bits: all pairs of codes, many of whose products lie right below that."""
    fmt = ROSTER["float8_e4m3fn"]
    a, b = (x.reshape(-1).astype(np.uint8) for x in np.meshgrid(np.arange(256), np.arange(256)))
    regular = bits.isfinite(a, fmt) & bits.isfinite(b, fmt)
    a, b = (np.ascontiguousarray(x[regular][:60416]) for x in (a, b))
    for how in ({"seed": 3}, {"seed": 4, "sr_bits": 2}, {"seed": 5, "sr_bits": 16}):
        hold(monkeypatch, lambda h=how, **k: bits.mul(a, b, fmt, rounding="stochastic", **h, **k), served=True)


def run(fmt: Format, kind: str, way: str, a: np.ndarray, b: np.ndarray, *made: np.ndarray, key: int = 0) -> int:
    """How many sums a loop did: what it made are codes, flags if there is room for them, and the numbers of those it left."""
    mode = spec.Rounding.STOCHASTIC if way == "stochastic" else spec.Rounding.NEAREST_EVEN
    known = parameters.block_numbers(fmt.spec, spec.Rule(rounding=mode), "add")
    assert known is not None
    target, size = parameters.sums(), a.itemsize
    loop = target.loop_of(blocks.Elementwise(kind, "add", way, kind != "bfloat16", False, size, size))
    places = [generated.address(x) for x in (a, b, b, *made, *known, NO_BITS)]
    flags, left = made[1:]
    numbers = [a.size, flags.size > 0, left.size - 1 - blocks.BLOCK, 0, 0, 52, key, 0]
    words = array("Q", [*places, target.address("half_words"), *numbers])
    return int(loop(words.buffer_info()[0])) >> blocks.FLAG_BITS


def test_what_hangs_on_further_bits_is_left() -> None:
    """Sums whose last bits float32 cannot hold, at the threshold of the bits drawn: about one in 2^13 of them."""
    count = 64 * blocks.BLOCK
    a, b = flattened(np.full(count, 0x7000, np.uint16)), flattened(np.full(count, 0x0001, np.uint16))  # 8192, 2^-24
    codes, flags, left = np.empty(count, np.uint16), np.empty(count, np.uint8), np.empty(count, np.int64)
    assert run(HALF, "any", "stochastic", a, b, codes, flags, left, key=5) == count
    assert 0 < left[-1] < 64
    assert not flags[left[: left[-1]]].any()
    found = bits.add(a, b, HALF, rounding="stochastic", seed=5)
    assert found[0].min() == 0x7000


def test_a_loop_stops_where_its_list_is_full() -> None:
    """Of operands none of which is ordinary it leaves as many as there is room for, and is called again."""
    count = 5 * blocks.BLOCK
    a = flattened(np.full(count, BRAIN.nan_code, np.uint16))
    codes, left = np.empty(count, np.uint16), np.empty(3 * blocks.BLOCK + 1, np.int64)
    assert run(BRAIN, "bfloat16", "nearest", a, a, codes, np.empty(0, np.uint8), left) == 3 * blocks.BLOCK
    assert np.array_equal(left, np.append(np.arange(3 * blocks.BLOCK), 3 * blocks.BLOCK))
    assert set(bits.add(a, a, BRAIN)[0].tolist()) == {BRAIN.nan_code}


def test_which_rules_are_served() -> None:
    """Where they serve; elsewhere the plain loops would be compared with themselves."""

    def served(fmt: Format, operation: str, **options: Any) -> bool:
        return numbers_of(fmt, operation, "toward_zero", options) is not None

    for fmt, operation in itertools.product((HALF, BRAIN, FORMATS[3], FORMATS[8]), ("add", "mul", "convert")):
        assert served(fmt, operation)
    for fmt, operation in itertools.product((HALF, BRAIN), ("add", "mul", "div", "sqrt", "fma", "convert")):
        assert served(fmt, operation, ftz=True)
        assert served(fmt, operation, daz=True)
    assert not served(FORMATS[9], "mul")  # products of 26 bits
    assert served(ROSTER["float32"], "add")
    assert not served(ROSTER["float32"], "convert")
    assert not served(Format("e8m20", exponent_bits=8, mantissa_bits=20), "add")
    assert not served(ROSTER["float8_e8m0fnu"], "convert")
