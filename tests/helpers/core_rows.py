"""Results read off tensor cores, as the tests take them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from softfloat import ROSTER, Format

# -- hardware --------------------------------------------------------------------------------------------------------

CORE_FORMATS = {
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "tfloat32",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "f32": "float32",
}
CORE_SETS = [
    f"{arch}_{source}_{target}"
    for arch, sources in {
        "V100": "f16",
        "A100": "f16 bf16 tf32",
        "A2": "f16 bf16 tf32",
        "Ada": "f16 bf16 tf32 e4m3 e5m2",
        "L40S": "f16 bf16 tf32 e4m3 e5m2",
        "H100": "f16 bf16 tf32 e4m3 e5m2",
        "H200": "f16 bf16 tf32 e4m3 e5m2",
        "B200": "f16 bf16 tf32 e4m3 e5m2",
    }.items()
    for source in sources.split()
    for target in ("f32", "f16")
    if target == "f32" or source not in ("bf16", "tf32")
    if not (arch == "L40S" and target == "f16" and source.startswith("e"))
]


def core_rows(vectors: Path, name: str) -> tuple[list[tuple[list[int], list[int], int, int]], Format, str | None]:
    """Rows (a, b, c, d), the operands' format, and the instruction they were read from.

    On H100 and later, fp8 rows are those of mma.sync, but for the single results of H100 and H200: of wgmma.
    """
    with np.load(vectors / "tensorcore_hw_400.npz") as archive:
        a, b, c, d = (archive[f"{name}__{column}"] for column in "ABcD")
    arch, source, target = name.split("_")
    if source == "tf32":  # kept as float32 codes
        assert not ((a | b) & 0x1FFF).any()
        a, b = a >> 13, b >> 13
    unpacked = source.startswith("e") and (arch == "B200" or (arch in ("H100", "H200") and target == "f16"))
    rows = list(zip(a.tolist(), b.tolist(), c.tolist(), d.tolist(), strict=True))
    return rows, ROSTER[CORE_FORMATS[source]], "mma.sync" if unpacked else None
