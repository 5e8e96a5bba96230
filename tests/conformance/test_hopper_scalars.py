"""Scalar instructions of H100 and H200 against rows read off both chips, on which they do not differ."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from tallies import Tally

from softfloat.testing.hardware.table import instructions

TABLE = {row.name: row for row in instructions() if row.scalar is not None}
LETTERS = {"f16": "h", "bf16": "b", "f32": "s", "f64": "d"}
"""Types as the file has them in names of operands."""
MODIFIERS = ("", "ftz", "relu", "sat")


@lru_cache
def load(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as archive:
        return dict(archive)


def spellings() -> dict[str, str]:
    """Names of the file's results, and the instructions' in PTX."""
    found = {f"dcvt_{letter}": f"cvt.rn.{kind}.f64" for kind, letter in LETTERS.items() if kind != "f64"}
    for kind, modifier in ((kind, x) for kind in LETTERS for x in MODIFIERS):
        dotted, ending = f".{modifier}" * bool(modifier), "" if kind in ("f32", "f64") else f"_{kind}"
        for name in ("fma", "add", "sub", "mul", "div", "sqrt"):
            start = {"f32": "s3", "f64": "d3"}.get(kind, "r3" if name == "fma" else "r2")
            found[f"{start}_{name}{modifier}{ending}"] = f"{name}.rn{dotted}.{kind}"
        for name in ("min", "max"):
            start = {"f32": "s3", "f64": "d3"}.get(kind, "r2")
            found[f"{start}_{name}{ending}"] = f"{name}.{kind}"
            found[f"{start}_{name}n{ending}"] = f"{name}.NaN.{kind}"
        found[f"r3_fma{modifier}{ending}x2"] = f"fma.rn{dotted}.{kind}"
    return {**found, "s3_fmarz": "fma.rz.f32"}


RESULTS = [
    *(f"r3_fma{x}_f16" for x in MODIFIERS),
    *("r3_fma_f16x2", "r3_fma_bf16", "r3_fmarelu_bf16", "r3_fma_bf16x2"),
    *(f"r2_{x}_f16" for x in ("add", "mul", "addftz", "mulftz", "addsat", "min", "max", "minn", "maxn")),
    *(f"r2_{x}_bf16" for x in ("add", "mul", "sub", "min", "max")),
    *(
        f"s3_{x}"
        for x in ("fma", "fmaftz", "mulftz", "addftz", "mul", "add", "fmarz", "min", "max", "minn", "div", "sqrt")
    ),
    *("dcvt_h", "dcvt_b", "dcvt_s"),
    *("d3_fma", "d3_add", "d3_mul"),
]
OPERANDS = {*(f"{x}_{y}" for x in "hbsd" for y in "abc"), "cvt_d"}


@pytest.mark.conformance("rows read off H100 and H200, scalar instructions")
@pytest.mark.parametrize("result", RESULTS)
def test_rows(vectors: Path, tally: Tally, result: str) -> None:
    data = load(vectors / "sm90_scalar_rows.npz")
    row = TABLE[spellings()[result]]
    assert row.run_model is not None
    letter = LETTERS[row.name.rsplit(".", 1)[1]]
    names = ["cvt_d"] if result.startswith("dcvt") else [f"{letter}_{x}" for x in "abc"[: len(row.formats)]]
    codes, _ = row.run_model(tuple(data[x] for x in names), {})
    wrong = codes != data[result]
    formats = row.formats[0].name
    between = formats if formats == row.result.name else f"{formats} to {row.result.name}"
    operation = ".".join(x for x in row.name.split(".") if x not in LETTERS)
    tally(operation, between, row.modes[0], wrong.size, int(wrong.sum()))
    assert not wrong.any(), (wrong.sum(), np.flatnonzero(wrong)[:5])


def test_every_result_of_the_file_is_asked(vectors: Path) -> None:
    assert set(load(vectors / "sm90_scalar_rows.npz")) == {*RESULTS, *OPERANDS}
