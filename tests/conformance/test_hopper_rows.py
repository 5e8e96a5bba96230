"""Tensor cores of H100 and H200 against rows read off both chips, on which they do not differ."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from core_rows import CORE_FORMATS
from tallies import Tally

from softfloat import bits
from softfloat.accumulators import fma, tensor_core

PAIRS = {"e4e5": ("e4m3", "e5m2")}
SHORT = {"f16": 8, "bf16": 8, "tf32": 4, "e4m3": 16, "e5m2": 16}
"""Products of the shorter of the shapes of mma.sync."""


@lru_cache
def load(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as archive:
        return dict(archive)


class Instruction(NamedTuple):
    """One instruction of the file: `D__` and its name there."""

    name: str

    def rows(self, data: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
        """Operands, c (None where the instruction reads none), results."""
        parts = self.name.split("_")
        first, second = PAIRS.get(parts[1], (parts[1],) * 2)
        a, b = (data[f"{first}_{second}__{x}"] for x in "AB")
        if self.products is not None:
            a, b = a[:, : self.products], b[:, : self.products]
        c = None if parts[-1] == "n" else data[f"{first}_{second}__c{self.output[5:]}"]
        return a, b, c, data[f"D__{self.name}"]

    @property
    def formats(self) -> tuple[str, str]:
        """Of the operands."""
        kind = self.name.split("_")[1]
        first, second = PAIRS.get(kind, (kind, kind))
        return CORE_FORMATS[first], CORE_FORMATS[second]

    @property
    def output(self) -> str:
        """The format of c and of results."""
        return CORE_FORMATS[self.name.removesuffix("_n").split("_")[-1]]

    @property
    def products(self) -> int | None:
        """Those that the instruction takes of a row, where these are not all."""
        shape = self.name.split("_")[2]
        return int(shape[1:]) if shape.startswith("k") else None

    @property
    def instruction(self) -> str | None:
        """What the preset calls it."""
        if self.name.startswith("w_"):
            return "wgmma"
        kind = self.name.split("_")[1]
        short = SHORT[PAIRS.get(kind, (kind, kind))[0]] == self.products
        return f"mma.sync.m16n8k{self.products}" if short else "mma.sync"


NAMES = [
    *(f"m_{x}_k{k}_f32" for x, k in (("f16", 16), ("f16", 8), ("bf16", 16), ("bf16", 8), ("tf32", 8), ("tf32", 4))),
    *(f"m_f16_k{k}_f16" for k in (16, 8)),
    *(f"m_{x}_k{k}_{out}" for x in ("e4m3", "e5m2") for k in (32, 16) for out in ("f32", "f16")),
    "m_e4e5_k32_f32",
    *(f"w_{x}_f32{n}" for x in ("f16", "bf16", "tf32", "e4m3", "e5m2") for n in ("", "_n")),
    *(f"w_{x}_f16{n}" for x in ("f16", "e4m3", "e5m2") for n in ("", "_n")),
    "w_e4e5_f32",
    "w_e4e5_f16",
]
CHAINS = {"m8k4": 4, "k4": 4, "k8": 8, "k16": 16}
"""Shapes of mma.sync .f64, and their products."""


@pytest.mark.conformance("rows read off H100 and H200 tensor cores")
@pytest.mark.parametrize("name", NAMES)
def test_rows(vectors: Path, tally: Tally, name: str) -> None:
    row = Instruction(name)
    a, b, c, expected = row.rows(load(vectors / "sm90_tensor_core_rows.npz"))
    how = tensor_core("H100", row.formats[0], row.output, row.instruction)
    codes, _ = bits.vecdot(a, b, row.formats, how, c, out_format=row.output)
    wrong = codes != expected
    label = "wgmma" if name.startswith("w") else f"mma.sync, k {row.products}"
    tally(
        f"{label}, H100",
        f"{' x '.join(dict.fromkeys(row.formats))} to {row.output}",
        "as built",
        wrong.size,
        wrong.sum(),
    )
    assert not wrong.any(), (wrong.sum(), np.flatnonzero(wrong)[:5])


@pytest.mark.conformance("rows read off H100 and H200 tensor cores")
@pytest.mark.parametrize("name", CHAINS)
def test_rows_of_float64(vectors: Path, tally: Tally, name: str) -> None:
    """A chain of fused multiply-adds from c on, payloads of NaNs included."""
    data, k = load(vectors / "sm90_tensor_core_rows.npz"), CHAINS[name]
    a, b, c = (data[f"f64__{x}"].view(np.uint64) for x in "ABc")
    expected = data[f"D__m_f64_{name}"]
    codes, _ = bits.vecdot(a[:, :k], b[:, :k], "float64", fma("float64"), c, nan="nvidia")
    tally(f"mma.sync, k {k}, H100", "float64 to float64", "as built", expected.size, (codes != expected).sum())
    assert (codes == expected).all(), np.flatnonzero(codes != expected)[:5]


def test_every_instruction_of_the_file_is_asked(vectors: Path) -> None:
    told = {x.removeprefix("D__") for x in load(vectors / "sm90_tensor_core_rows.npz") if x.startswith("D__")}
    assert told == {*NAMES, *(f"m_f64_{x}" for x in CHAINS)}
