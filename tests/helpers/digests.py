"""Digests of whole operand spaces in 256 blocks each, which any process can make."""

from __future__ import annotations

import hashlib

import numba
import numpy as np

import softfloat
from softfloat import bits

ROUNDINGS = {
    "RNE": "nearest_even",
    "RTZ": "toward_zero",
    "RDN": "toward_negative",
    "RUP": "toward_positive",
    "RNA": "nearest_away",
}
FORMATS = {"f16": (softfloat.float16, 0x7E00), "bf16": (softfloat.bfloat16, 0x7FC0)}
OPERATIONS = {"add": bits.add, "mul": bits.mul, "div": bits.div}
FOLD_START, FOLD_FACTOR = 0xCBF29CE484222325, 0x100000001B3


@numba.njit(nogil=True)
def fold(
    rows: np.ndarray, nan: int, codes: np.ndarray, flags: np.ndarray, exponents: int
) -> tuple[np.ndarray, np.ndarray]:
    """Per row: FNV-style digests of the codes, and of code | flags << 16; any NaN counts as the canonical one."""
    plain, flagged = np.empty(rows.size, np.uint64), np.empty(rows.size, np.uint64)
    for row in range(rows.size):
        h = g = np.uint64(FOLD_START)
        for i in range(65536):
            at = row * 65536 + i
            code = np.uint64(nan if codes[at] & 0x7FFF > exponents else codes[at])
            h = h * np.uint64(FOLD_FACTOR) + code
            g = g * np.uint64(FOLD_FACTOR) + (code | np.uint64(flags[at]) << np.uint64(16))
        plain[row], flagged[row] = h, g
    return plain, flagged


def fold_block(rows: np.ndarray) -> int:
    h = FOLD_START
    for row in rows.tolist():
        h = (h * FOLD_FACTOR + row) % 2**64
    return h


def pairs(name: str, operation: str, mode: str, block: int) -> list[int]:
    """Of the codes of a block of 2^24 pairs, and of its codes with flags."""
    fmt, nan = FORMATS[name]
    all_codes = np.arange(65536, dtype=np.uint16)
    rows = 16
    plain, flagged = [], []
    for first in range(block * 256, block * 256 + 256, rows):
        a = np.repeat(all_codes[first : first + rows], 65536)
        codes, flags = OPERATIONS[operation](a, np.tile(all_codes, rows), fmt, rounding=ROUNDINGS[mode])
        h, g = fold(all_codes[first : first + rows], nan, codes, flags, fmt.inf_code)
        plain.append(h)
        flagged.append(g)
    return [fold_block(np.concatenate(plain)), fold_block(np.concatenate(flagged))]


def casts(name: str, mode: str, block: int) -> str:
    """Of the codes of a block of 2^24 float32."""
    fmt, nan = FORMATS[name]
    digest = hashlib.sha256()
    step = 1 << 22
    for start in range(block << 24, (block + 1) << 24, step):
        x = np.arange(start, start + step, dtype=np.uint64).astype(np.uint32).view(np.float32)
        codes, _ = bits.encode(x, fmt, rounding=ROUNDINGS[mode], flags="any")
        codes[bits.isnan(codes, fmt)] = nan
        digest.update(codes.astype("<u2").tobytes())
    return digest.hexdigest()
