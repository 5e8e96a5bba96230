"""Operands read wherever they lie, against NumPy's indexing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from softfloat.kernels.spec import Rule

from softfloat import ROSTER, Format
from softfloat.engine import generated
from softfloat.engine.decoding import decoded, reading_of
from softfloat.engine.parameters import available

E4M3 = ROSTER["float8_e4m3fn"]

TABLE = np.random.default_rng(0).standard_normal(256).astype(np.float32)
TABLE[0] = 0.0
NOTHING = np.empty(0, np.float32)
KINDS: list[tuple[str, Any, Any]] = [
    ("half", np.float32, np.uint16),
    ("half", np.float64, np.uint16),
    ("bfloat16", np.float32, np.uint16),
    ("number", np.float32, np.float32),
    ("table", np.float32, np.uint8),
    ("table", np.float64, np.uint8),
]


def numbers(codes: np.ndarray, reading: str) -> np.ndarray:
    """What codes stand for."""
    if reading == "half":
        return codes.view(np.float16).astype(np.float64)
    if reading == "bfloat16":
        return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return (TABLE[codes] if reading == "table" else codes).astype(np.float64)


@pytest.mark.parametrize(("reading", "kind", "code"), KINDS, ids=str)
@pytest.mark.parametrize("cells", [1, 48, 128])
def test_panels_and_what_they_span(reading: str, kind: Any, code: Any, cells: int) -> None:
    """Rows or columns of memory, next to each other or apart, in order or by an index with gaps; outputs that fill no panel."""
    if reading == "half" and not available()[1]:
        pytest.skip("the CPU converts no halves")
    random = np.random.default_rng([cells, KINDS.index((reading, kind, code))])
    for _ in range(60):
        count, length = int(random.integers(1, 300)) if cells > 1 else 1, int(random.integers(1, 700))
        apart = int(random.integers(0, 3))
        k_step, n_step = (1, length + apart) if random.integers(2) else (count + apart, 1)
        first, start = int(random.integers(0, 9)), int(random.integers(0, length))
        stop = int(random.integers(start, length)) + 1
        size = first + (length - 1) * k_step + (count - 1) * n_step + 1
        top = {"table": 256, "bfloat16": 0x7F80}.get(reading, 0x7C00)
        codes = (random.integers(0, top, size) * (random.random(size) < 0.9)).astype(code)
        if random.integers(2) and reading != "table":
            codes[random.integers(0, size)] = np.inf if reading == "number" else top
        index = np.empty(0, np.int64) if random.integers(2) else random.integers(-1, length, length)
        turns = np.arange(length)[start:stop] if not index.size else index[start:stop]
        places = first + np.arange(count) * n_step + np.maximum(turns, 0)[:, None] * k_step
        wanted, gaps = codes[places], (turns < 0)[:, None]
        panels = np.full((1, -(-count // cells), stop - start, cells), 7, kind)
        source = generated.Source(reading, codes, TABLE if reading == "table" else NOTHING, 0.0, 0.0)
        span = source.read(panels, generated.Lying(first, k_step, n_step, start, stop - start, count), index)
        found = panels[0].transpose(1, 0, 2).reshape(stop - start, -1)
        np.testing.assert_array_equal(found[:, :count], np.where(gaps, 0, numbers(wanted, reading)))
        assert not found[:, count:].any()
        magnitudes = np.abs(numbers(wanted, reading))
        if not index.size:  # gaps are read as whatever lies in the first place
            assert span[2] == np.isfinite(magnitudes).all()
            if reading != "table":
                some = magnitudes[magnitudes > 0]
                assert span[:2] == ((some.min(), some.max()) if some.size else (np.inf, 0.0))


@pytest.mark.parametrize("stands", [True, False])
@pytest.mark.parametrize(("reading", "kind", "code"), [KINDS[2], KINDS[5], ("number", np.float64, np.float64)], ids=str)
def test_products_under_each_other_with_powers_of_two(reading: str, kind: Any, code: Any, stands: bool) -> None:
    """A second plane has the power of two of each number, at least the smallest normal one; a zero's is told. Zeros fill panels up."""
    rng, more, cells, (products, down, across) = np.random.default_rng(5), 5, 8, (3, 20, 37)
    codes = rng.integers(0, 256 if reading == "table" else 0x7F80, (products, down, across)).astype(code)
    codes[rng.random(codes.shape) < 0.2] = 0
    length, outputs = (across, down) if stands else (down, across)
    steps = (1, across) if stands else (across, 1)
    panels = np.full((products, 2, -(-outputs // cells), length + more, cells), 7, kind)
    source = generated.Source(reading, codes, TABLE if reading == "table" else NOTHING, 2.0**-3, 0.25)
    lying = generated.Lying(0, *steps, 0, length, outputs, products, down * across)
    assert source.read(panels, lying)[2]
    for product, values in zip(panels, numbers(codes, reading), strict=True):
        wanted = np.pad(values.T if stands else values, ((0, more), (0, 0)))
        found, powers = (x.transpose(1, 0, 2).reshape(length + more, -1)[:, :outputs] for x in product)
        np.testing.assert_array_equal(found, wanted)
        leading = np.exp2(np.maximum(np.frexp(np.where(wanted, wanted, 1.0))[1] - 1, -3))
        np.testing.assert_array_equal(powers, np.where(wanted == 0, 0.25, leading))


def some_codes(fmt: Format) -> Any:
    """Codes of a format of many bits: around powers of two, zero, infinity, and others."""
    near = (np.arange(1 << fmt.exponent_bits) << fmt.mantissa_bits)[:, None] + np.arange(-3, 4)
    other = np.random.default_rng(fmt.bits).integers(0, fmt.sign_bit, 4096)
    found = np.concatenate([near.reshape(-1)[3:], other]) & fmt.sign_bit - 1
    return np.concatenate([found, found | fmt.sign_bit]).astype(fmt.dtype)


@pytest.mark.parametrize("daz", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_every_code_of_a_narrow_format(kind: Any, daz: bool) -> None:
    """By how it is made, without a table where there are subnormals and signs, and nothing between numbers; of every bias float32 has room for."""
    drawn = [
        Format("drawn", exponent_bits=e, mantissa_bits=m, bias=bias, nan=nan, infinities=nan == "ieee")
        for (e, m), bias, nan in itertools.product([(2, 1), (4, 3), (5, 2), (6, 1), (5, 10)], (-40, 0, 9, 90), ("ieee", "fn", "none"))
        if 2**e - 2 - bias < 127 and 1 - bias - m > -126
    ]  # fmt: skip
    readings = set()
    wide = [Format("e8m13", 8, 13), ROSTER["tfloat32"], ROSTER["float32"]]
    for fmt in [*(x for x in ROSTER.values() if x.bits <= 16), *drawn, *wide]:
        known = reading_of(fmt, daz)
        assert known is not None
        readings.add(known[0])
        codes = np.arange(1 << fmt.bits, dtype=fmt.dtype) if fmt.bits <= 16 else some_codes(fmt)
        wanted = decoded(codes, fmt, Rule(daz=daz))
        panels = np.full((1, -(-codes.size // 16), 1, 16), 7, kind)
        finite = generated.Source(known[0], codes, known[1], 0.0, 0.0).read(
            panels, generated.Lying(0, codes.size, 1, 0, 1, codes.size)
        )[2]
        with np.errstate(invalid="ignore"):  # NaNs, some of them signalling
            found, some = panels.reshape(-1)[: codes.size].astype(np.float64), np.isfinite(wanted)
        np.testing.assert_array_equal(found[some].view(np.uint64), wanted[some].view(np.uint64))
        assert not np.isfinite(found[~some]).any()
        assert finite == some.all()
    assert readings == {"narrow", "table"}
    for name in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float6_e3m2fn", "float16"):
        known = reading_of(ROSTER[name], daz)
        assert known is not None
        assert known[0] == "narrow"


@pytest.mark.parametrize("sharing", [1, 3, 16])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("cells", [8, 16])
def test_numbers_times_scales(kind: Any, cells: int, sharing: int) -> None:
    """Blocks of every shape, down k or across it, whole or not, filled up; what a scale makes zero is told."""
    random, (reading, table) = np.random.default_rng([cells, sharing]), reading_of(E4M3, False) or ("", NOTHING)
    values = np.exp2(np.arange(256) - 150.0)
    values[7] = 0.0
    leads = np.where(values, values, 0.25)
    known = np.array([values, leads], kind)
    for block, beside in ((16, 1), (1, 3), (128, 128), (5, 2), (300, 1)):
        for stands, far in ((True, False), (False, False), (True, True)):
            length, outputs, room = int(random.integers(1, 300)), int(random.integers(1, 60)), 304
            codes = random.integers(0, 0x7F, (outputs, length), dtype=np.uint8) | (
                random.integers(0, 2, (outputs, length), dtype=np.uint8) << 7
            )
            codes[random.random(codes.shape) < 0.2] = 0
            scales = random.integers(100, 200, (-(-length // block), -(-outputs // beside)), dtype=np.uint8)
            scales[0, 0], scales[-1, -1] = 7, 0 if far else 150
            lying, steps = (codes, (1, length)) if stands else (np.ascontiguousarray(codes.T), (outputs, 1))
            scaling = generated.BlockScales(scales, known, sharing, (block, beside), (scales.shape[1], 1))
            source = generated.Source(reading, lying, table, 2.0**-3, 0.25, scaling)
            panels = np.full((2, -(-outputs // cells), room, cells), 7, kind)
            low, high, finite = source.read(panels, generated.Lying(0, *steps, 0, length, outputs))
            each = np.repeat(np.repeat(scales, block, 0)[:length], beside, 1)[:, :outputs]
            numbers = decoded(codes, E4M3).T.astype(kind)
            wanted = numbers * known[0][each]
            found, leading = (x.transpose(1, 0, 2).reshape(room, -1)[:, :outputs] for x in panels)
            np.testing.assert_array_equal(found[:length], wanted)
            assert (found[length:] == 0).all()
            assert (leading[length:] == (0.25**2 if sharing == 1 else 0.25)).all()
            own = np.where(numbers, np.exp2(np.maximum(np.frexp(numbers)[1] - 1, -3)), 0.25) if sharing == 1 else 1.0
            first = (own * known[1][each]).astype(kind)[::sharing]
            np.testing.assert_array_equal(leading[:length:sharing], first)
            some = abs(wanted[(numbers != 0) & (known[0][each] != 0)])
            assert finite == bool(some.size == 0 or some.min() > 0)
            assert (low, high) == ((some.min(), some.max()) if some.size else (np.inf, 0.0))
