"""Whole operand spaces against digests made elsewhere: all pairs of half and bfloat16, all float32 operands of the casts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numba
import numpy as np
import pytest
from tallies import Tally

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
DIGESTS = "digests of whole operand spaces"
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


def check_blocks(vectors: Path, tally: Tally, name: str, operation: str, mode: str, blocks: range) -> None:
    fmt, nan = FORMATS[name]
    digests = np.load(vectors / f"exhaustive_digests_{name}.npz")
    all_codes = np.arange(65536, dtype=np.uint16)
    rows = 16
    for block in blocks:
        plain, flagged = [], []
        for first in range(block * 256, block * 256 + 256, rows):
            a = np.repeat(all_codes[first : first + rows], 65536)
            codes, flags = OPERATIONS[operation](a, np.tile(all_codes, rows), fmt, rounding=ROUNDINGS[mode])
            h, g = fold(all_codes[first : first + rows], nan, codes, flags, fmt.inf_code)
            plain.append(h)
            flagged.append(g)
        tally(operation, fmt, ROUNDINGS[mode], 256 << 16)
        assert fold_block(np.concatenate(plain)) == digests[f"{name}_{operation}_{mode}_r"][block], block
        assert fold_block(np.concatenate(flagged)) == digests[f"{name}_{operation}_{mode}_rf"][block], block


@pytest.mark.conformance(DIGESTS)
@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", FORMATS)
def test_a_block_of_pairs(vectors: Path, tally: Tally, name: str, operation: str, mode: str) -> None:
    """One of the 256 blocks, a different one for each case: 16 777 216 pairs."""
    block = int.from_bytes(hashlib.sha256(f"{name}{operation}{mode}".encode()).digest()[:1], "big")
    check_blocks(vectors, tally, name, operation, mode, range(block, block + 1))


@pytest.mark.exhaustive
@pytest.mark.conformance(DIGESTS)
@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", FORMATS)
def test_all_pairs(vectors: Path, tally: Tally, name: str, operation: str, mode: str) -> None:
    check_blocks(vectors, tally, name, operation, mode, range(256))


def cast_block(name: str, mode: str, block: int) -> bytes:
    fmt, nan = FORMATS[name]
    digest = hashlib.sha256()
    step = 1 << 22
    for start in range(block << 24, (block + 1) << 24, step):
        x = np.arange(start, start + step, dtype=np.uint64).astype(np.uint32).view(np.float32)
        codes, _ = bits.encode(x, fmt, rounding=ROUNDINGS[mode], flags="any")
        codes[bits.isnan(codes, fmt)] = nan
        digest.update(codes.astype("<u2").tobytes())
    return digest.digest()


@pytest.mark.conformance(DIGESTS)
@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("name", FORMATS)
def test_some_blocks_of_casts(vectors: Path, tally: Tally, name: str, mode: str) -> None:
    """Blocks with the subnormals, the normals and the overflow of half, and the top of bfloat16: 16 777 216 operands each."""
    digests = json.loads((vectors / "cast_digests.json").read_text(encoding="utf-8"))[f"f32_to_{name}_{mode}"]
    for block in (0x33, 0xB8, 0x47, 0x7F):
        tally("convert", f"float32 to {FORMATS[name][0]}", ROUNDINGS[mode], 1 << 24)
        assert cast_block(name, mode, block)[:8].hex() == digests["blocks"][block], block


@pytest.mark.exhaustive
@pytest.mark.conformance(DIGESTS)
@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("name", FORMATS)
def test_all_casts(vectors: Path, tally: Tally, name: str, mode: str) -> None:
    digests = json.loads((vectors / "cast_digests.json").read_text(encoding="utf-8"))[f"f32_to_{name}_{mode}"]
    tally("convert", f"float32 to {FORMATS[name][0]}", ROUNDINGS[mode], 1 << 32)
    full = [cast_block(name, mode, block) for block in range(256)]
    assert [x[:8].hex() for x in full] == digests["blocks"]
    assert hashlib.sha256(b"".join(full)).hexdigest() == digests["total"]
