"""Whole operand spaces against digests made elsewhere: all pairs of half and bfloat16, all float32 operands of the casts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from digests import FORMATS, OPERATIONS, ROUNDINGS, casts, pairs
from tallies import Tally

DIGESTS = "digests of whole operand spaces"
Spread = Callable[[Callable[[int], Any], int], list[Any]]


def check_pairs(vectors: Path, name: str, operation: str, mode: str, found: dict[int, list[int]]) -> None:
    digests = np.load(vectors / f"exhaustive_digests_{name}.npz")
    for block, (plain, flagged) in found.items():
        assert plain == digests[f"{name}_{operation}_{mode}_r"][block], block
        assert flagged == digests[f"{name}_{operation}_{mode}_rf"][block], block


@pytest.mark.conformance(DIGESTS)
@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", FORMATS)
def test_a_block_of_pairs(vectors: Path, tally: Tally, name: str, operation: str, mode: str) -> None:
    """One of the 256 blocks, a different one for each case: 16 777 216 pairs."""
    block = int.from_bytes(hashlib.sha256(f"{name}{operation}{mode}".encode()).digest()[:1], "big")
    tally(operation, FORMATS[name][0], ROUNDINGS[mode], 1 << 24)
    check_pairs(vectors, name, operation, mode, {block: pairs(name, operation, mode, block)})


@pytest.mark.exhaustive
@pytest.mark.conformance(DIGESTS)
@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", FORMATS)
def test_all_pairs(vectors: Path, tally: Tally, spread: Spread, name: str, operation: str, mode: str) -> None:
    tally(operation, FORMATS[name][0], ROUNDINGS[mode], 1 << 32)
    found = spread(partial(pairs, name, operation, mode), 256)
    check_pairs(vectors, name, operation, mode, dict(enumerate(found)))


@pytest.mark.conformance(DIGESTS)
@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("name", FORMATS)
def test_some_blocks_of_casts(vectors: Path, tally: Tally, name: str, mode: str) -> None:
    """Blocks with the subnormals, the normals and the overflow of half, and the top of bfloat16: 16 777 216 operands each."""
    digests = json.loads((vectors / "cast_digests.json").read_text(encoding="utf-8"))[f"f32_to_{name}_{mode}"]
    for block in (0x33, 0xB8, 0x47, 0x7F):
        tally("convert", f"float32 to {FORMATS[name][0]}", ROUNDINGS[mode], 1 << 24)
        assert casts(name, mode, block)[:16] == digests["blocks"][block], block


@pytest.mark.exhaustive
@pytest.mark.conformance(DIGESTS)
@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("name", FORMATS)
def test_all_casts(vectors: Path, tally: Tally, spread: Spread, name: str, mode: str) -> None:
    digests = json.loads((vectors / "cast_digests.json").read_text(encoding="utf-8"))[f"f32_to_{name}_{mode}"]
    tally("convert", f"float32 to {FORMATS[name][0]}", ROUNDINGS[mode], 1 << 32)
    found = spread(partial(casts, name, mode), 256)
    assert [digest[:16] for digest in found] == digests["blocks"]
    assert hashlib.sha256(bytes.fromhex("".join(found))).hexdigest() == digests["total"]
