"""Rows of operations on blocks: where scale rules part, where elements lie half-way, and every pair of element and scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.blocks import BlockFormat, Fixed
from softfloat.formats import Format
from softfloat.testing.vectors.block_operations import DEQUANTIZE, PRODUCTS, QUANTIZE, SCALE, Blocks
from softfloat.testing.vectors.corners import Block, DrawnRows, Rows, edges, encoded, product_block
from softfloat.testing.vectors.dots import dot_corners
from softfloat.testing.vectors.operations import OPERATIONS, Case

__all__ = ["block_corners", "critical_maxima", "draw_block_operands", "elements_case"]

Codes = np.ndarray[Any, Any]

INFINITE, QUIET, SIGNALLING = 0x7F800000, 0x7FC00000, 0x7F800001
LARGEST = 0x7F7FFFFF
SIGN = 0x80000000
EXHAUSTED = 16
"""Bits of an element and a scale that come in every combination."""
POOL = 64
"""Kinds of rows of scales in dot products."""


def block_corners(case: Case, level: int) -> Rows:
    """The corner rows of an operation on blocks, of level 1 or 2."""
    assert case.blocks is not None
    name = case.operation.name
    if name == SCALE:
        return Rows([_maxima(case.blocks, level), _special_blocks(case.blocks.format.elements)])
    if name == QUANTIZE:
        rows = Rows(_numbers(case.blocks, level))
        return DrawnRows(rows, case) if case.draws else rows
    if name == DEQUANTIZE:
        return Rows([_pairs(case.blocks, level)])
    return Rows([_products(case, level)])


# -- scales ----------------------------------------------------------------------------------------------------------


def _largest(fmt: BlockFormat) -> float:
    return float(fmt.element.max)


def _bits_of(value: float) -> int:
    """Those of the nearest float32, or of the largest one."""
    with np.errstate(over="ignore"):
        return min(int(np.float32(value).view(np.uint32)), LARGEST)


@lru_cache(maxsize=32)
def critical_maxima(blocks: Blocks, level: int) -> Codes:
    """float32 codes of largest magnitudes at which some rule goes over to another scale, and of those next to them."""
    fmt, largest = blocks.format, _largest(blocks.format)
    one = 1 << 23
    root, top = _bits_of(math.sqrt(2)) & (one - 1), _bits_of(largest) & (one - 1)
    starts = [0, one >> 1, root, top, one - (one >> (fmt.element.mantissa_bits + 1) if _floats(fmt) else 1)]
    found = {(start + step) % one for start in starts for step in (-1, 0, 1)} | {2, one - 2}
    middle = range(119, 136)
    fields = range(255) if level > 1 else sorted({*range(5), *middle, *range(251, 255)})
    codes = {field << 23 | fraction for field in fields for fraction in found}
    if not fmt.power_of_two_scale:
        scales = np.sort(_values(edges(fmt.scale) if level == 1 or fmt.scale.bits > 8 else _all(fmt.scale), fmt.scale))
        for value in {*scales.tolist(), *((scales[1:] + scales[:-1]) / 2).tolist()}:
            near = _bits_of(value * largest * (blocks.tensor_scale or 1.0))
            codes |= {near + step for step in (-1, 0, 1)}
    return np.array(sorted(code for code in codes if 0 <= code <= LARGEST), np.uint32)


def _floats(fmt: BlockFormat) -> bool:
    return isinstance(fmt.element, Format)


def _all(fmt: Format) -> Codes:
    return np.arange(1 << fmt.bits).astype(fmt.dtype)


def _values(codes: Codes, fmt: Format) -> Codes:
    """The finite magnitudes that codes stand for."""
    values = np.abs(np.asarray(bits.decode(codes, fmt)))
    found: Codes = np.unique(values[np.isfinite(values)])
    return found


def _maxima(blocks: Blocks, level: int) -> Block:
    """Blocks by their largest magnitude: at several places, among zeros, smaller numbers, and numbers as large."""
    size = blocks.format.elements
    maxima = critical_maxima(blocks, level)
    places = np.unique([0, size - 1] if level == 1 else [0, 1 % size, size // 2, size - 1])
    crossed = product_block("maxima", [maxima, places, np.arange(3), np.array([0, SIGN], np.uint32)])

    def operands(index: Codes) -> list[Codes]:
        largest, place, company, sign = crossed.operands(index)
        others = np.where(company == 0, 0, np.where(company == 1, largest >> 1, largest)).astype(np.uint32)
        signs = (np.arange(size) % 2).astype(np.uint32) << np.uint32(31)
        x = others[:, None] | np.where(company[:, None] == 0, np.uint32(0), signs)
        x[np.arange(len(x)), place] = largest | sign
        return [x]

    return Block("maxima", crossed.count, operands)


def _special_blocks(size: int) -> Block:
    """Blocks of zeros, with NaNs and infinities, with numbers that are subnormal."""
    kinds = [0, SIGN, 1, 0x7FFFFF, INFINITE, INFINITE | SIGN, QUIET, QUIET | SIGN, SIGNALLING, LARGEST]
    others = [0, SIGN, 1, 0x3F800000, INFINITE, QUIET, LARGEST]
    places = np.unique([0, size // 2, size - 1])
    crossed = product_block("specials", [np.array(kinds, np.uint32), np.array(others, np.uint32), places])

    def operands(index: Codes) -> list[Codes]:
        special, other, place = crossed.operands(index)
        x = np.repeat(other[:, None], size, axis=1)
        x[np.arange(len(x)), place] = special
        return [x]

    return Block("specials", crossed.count, operands)


# -- elements --------------------------------------------------------------------------------------------------------


def _numbers(blocks: Blocks, level: int) -> list[Block]:
    """Numbers at every element and half-way between them, under scales; and special numbers under all kinds of scales."""
    fmt = blocks.format
    element = fmt.element
    values = np.abs(element.values) if isinstance(element, Fixed) else _values(_all(element), element)
    values = np.unique(values[np.isfinite(values)])
    halves = (values[1:] + values[:-1]) / 2
    beyond = [values[-1] * 1.5, 2 * values[-1], values[-1] + (values[-1] - values[-2]) / 2, values[1] / 4]
    aims = np.unique(np.concatenate([values, halves, beyond]))
    scales = edges(fmt.scale) if level == 1 or fmt.scale.bits > 8 else _all(fmt.scale)
    factors = np.abs(np.asarray(bits.decode(scales, fmt.scale)))
    factors = np.where(np.isfinite(factors), factors, 1.0) * (blocks.tensor_scale or 1.0)
    places = product_block("elements", [np.arange(len(scales)), aims, np.arange(-1, 2), np.array([0, SIGN], np.uint32)])

    def operands(index: Codes) -> list[Codes]:
        which, aim, step, sign = places.operands(index)
        with np.errstate(over="ignore", under="ignore"):
            near = (aim * factors[which]).astype(np.float32).view(np.uint32).astype(np.int64)
        x = np.clip(near + step, 0, LARGEST).astype(np.uint32) | sign
        return [x, scales[which]]

    return [Block("elements", places.count, operands), product_block("specials", [edges("float32"), scales])]


def _pairs(blocks: Blocks, level: int) -> Block:
    """Elements and scales: all of them, or those next to a boundary."""
    fmt = blocks.format
    elements = np.arange(1 << fmt.element.bits).astype(fmt.element.dtype)
    every = fmt.element.bits + fmt.scale.bits <= EXHAUSTED
    if not every and level == 1 and isinstance(fmt.element, Format):
        elements = edges(fmt.element)
    return product_block("pairs", [elements, _all(fmt.scale) if fmt.scale.bits <= 8 else edges(fmt.scale)])


# -- dot products ----------------------------------------------------------------------------------------------------


def elements_case(case: Case) -> Case | None:
    """The dot product of the elements without their scales; None where elements are no floating-point numbers."""
    assert case.blocks is not None
    if case.operation.name != PRODUCTS or not (_floats(case.blocks.format) and _floats(case.blocks.second)):
        return None
    return case.replace(operation=OPERATIONS["vecdot"], blocks=None)


def _scale_rows(fmt: Format, length: int, seed: int) -> Codes:
    """Rows of scales: ones, powers next to it, one that stands out, boundaries, and any."""
    random = np.random.default_rng([seed, length, fmt.bits])
    one, codes = fmt.one_code, edges(fmt)
    rows = np.full((POOL, length), one, fmt.dtype)
    step = 1 << fmt.mantissa_bits
    near = one + step * random.integers(-3, 4, (POOL // 4, length))
    rows[POOL // 8 : POOL // 8 + POOL // 4] = np.clip(near, 0, fmt.max_code)
    for i in range(POOL * 3 // 8, POOL * 5 // 8):
        rows[i, random.integers(length)] = np.clip(one + step * random.integers(-30, 31), 0, fmt.max_code)
    rows[POOL * 5 // 8 : POOL * 7 // 8] = random.choice(codes, (POOL // 4, length))
    rows[POOL * 7 // 8 :] = random.integers(0, 1 << min(fmt.bits, 31), (POOL // 8, length))
    return rows


def _with_scales(case: Case, elements: list[Codes], first: Codes, second: Codes) -> list[Codes]:
    """Operands of rows: elements, then scales by the numbers of their rows."""
    a, b, *c = elements
    columns = {column.name: column for column in case.operands}
    scales: list[Codes] = []
    for name, which in (("scale_a", first), ("scale_b", second)):
        column = columns[name]
        assert column.number.format is not None
        assert column.length is not None
        scales.append(_scale_rows(column.number.format, column.length, len(scales))[which % POOL])
    return [a, b, *scales, *c]


def _products(case: Case, level: int) -> Block:
    """The corner rows of the elements' dot products, under scales of all kinds."""
    inner = elements_case(case)
    if inner is None:
        codes = [np.random.default_rng(i).integers(0, 1 << x.number.bits, (POOL, x.length or 1)).astype(x.dtype)
                 for i, x in enumerate(case.operands) if x.name in ("a", "b")]  # fmt: skip
        addends = [edges(x.number) for x in case.operands if x.name == "c"]

        def fixed(index: Codes) -> list[Codes]:
            c = [x[index % len(x)] for x in addends]
            return _with_scales(case, [codes[0][index % POOL], codes[1][index // 7 % POOL], *c], index // 3, index // 5)

        return Block("products", POOL * POOL * level, fixed)
    rows = dot_corners(inner, level)

    def operands(index: Codes) -> list[Codes]:
        return _with_scales(case, rows.operands(index), index, index // POOL + index)

    return Block("products", rows.count, operands)


# -- at random -------------------------------------------------------------------------------------------------------


def draw_block_operands(
    case: Case, name: str, count: int, seed: int | Sequence[int], elements: list[Codes] | None = None
) -> list[Codes]:
    """Operands of rows from a named distribution; in a dot product `elements` are those of `elements_case`."""
    random = np.random.default_rng(seed)
    if case.operation.name == PRODUCTS and elements is not None:
        first, second = random.integers(0, POOL, (2, count))
        return _with_scales(case, elements, first, second)
    if name == "mixed":
        kinds = ("bits", "normal", "subnormal", "corners", "corners", "corners")
        which = random.integers(0, len(kinds), count)
        drawn = [_drawn(case, kind, count, random) for kind in dict.fromkeys(kinds)]
        places = np.minimum(which, len(drawn) - 1)
        return [np.stack([rows[i] for rows in drawn])[places, np.arange(count)] for i in range(len(case.operands))]
    return _drawn(case, name, count, random)


def _drawn(case: Case, name: str, count: int, random: np.random.Generator) -> list[Codes]:
    """Rows of one distribution; what has none of its own for blocks are corner rows."""
    if name not in ("bits", "normal", "subnormal"):
        return block_corners(case, 1).sample(count, random)
    operands = [
        random.integers(0, 1 << column.number.bits, column.shape(count), np.uint64).astype(column.dtype)
        for column in case.operands
    ]
    if name == "bits" or case.operation.name not in (SCALE, QUANTIZE):
        return operands
    shape = case.operands[0].shape(count)
    exponents = random.integers(-149, -120, count) if name == "subnormal" else random.integers(-20, 21, count)
    x = random.standard_normal(shape) * np.exp2(exponents.reshape(count, *[1] * (len(shape) - 1)))
    operands[0] = x.astype(np.float32).view(np.uint32)
    if case.operation.name == QUANTIZE:
        assert case.blocks is not None
        scale = case.blocks.format.scale
        wanted = np.abs(x) / _largest(case.blocks.format) * np.exp2(random.integers(-2, 4, count))
        operands[1] = encoded(np.clip(wanted, scale.smallest_subnormal, scale.max), scale)
    return operands
