"""Ten figures that say how fast it is, with vectors of 512 bits and of 256: rows of cliffs.py, each column in a process of its own.

    python benchmarks/brief.py [--quick] [--json FILE] [--markdown PAGE]

For vectors of 256 bits LLVM and OpenBLAS compile for Haswell, which has AVX2, FMA and F16C, on the same machine. Where that has no
vectors of 512 bits itself, both columns are of 256.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alone import alone

HASWELL = ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe")
TARGETS: dict[str, dict[str, str]] = {
    "AVX-512": {},
    "AVX2": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": ",".join(f"+{x}" for x in HASWELL),
        "OPENBLAS_CORETYPE": "Haswell",
    },
}
"""Column -> what the environment of its process has besides."""

if __name__ == "__main__":
    alone()
    if sys.argv[1:2] == ["--figures"]:  # of one column: before NumPy and Numba look
        os.environ.update(TARGETS[sys.argv[2]])

from cliffs import BENCHMARK
from measuring import Figure, Row, arguments_of, described, digits, machine, table, write_block, write_json

ROWS = {
    "convert float32 to half": "float32 → half",
    "add two arrays of halves": "half add",
    "the same, rounded stochastically": "half add, stochastic",
    "multiply two arrays of e4m3": "e4m3 mul",
    "matrix product in half, rounded after every multiply-add": "fma half",
    "the same, rounded stochastically at every step": "fma half, stochastic",
    "matrix product as Graphcore's IPU, half partials": "amp half",
    "matrix product as a tensor core of an H100": "tensor core H100, half",
    "sum of 2²⁰ halves, one after the other": "sum of 2²⁰ in order",
    "add two arrays of 20 halves, one call": "x + y, 20 halves",
}
"""What a row is in words -> its name in cliffs.py."""


def row_of(name: str) -> Row:
    return next(row for rows in BENCHMARK.tables.values() for row in rows if row.name == name)


def measured(quick: bool) -> dict[str, Any]:
    """The machine, and the figures of this process."""
    seconds = 0.1 if quick else 1.0
    return {"machine": machine(), "figures": {name: BENCHMARK.measure(row_of(name), seconds) for name in ROWS.values()}}


def elsewhere(column: str, quick: bool) -> dict[str, Any]:
    """The same of a process for a column."""
    command = [sys.executable, __file__, "--figures", column, *(["--quick"] if quick else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return {**found, "figures": {name: Figure(*values) for name, values in found["figures"].items()}}


def page(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The table in Markdown."""
    head = ["what is computed", *(cell for name in found for cell in (name, "share")), "share of"]
    rows = []
    for words, name in ROWS.items():
        row, figures = row_of(name), [column["figures"][name] for column in found.values()]
        cells = [cell for x in figures for cell in (f"{digits(x.value)} {row.unit}", digits(x.share) or "-")]
        rows.append([words, *cells, row.against or "-"])
    return [f"{described(next(iter(found.values()))['machine'])}.", "", *table(head, rows)]


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--quick", action="store_true", help="0.1 s a row instead of 1 s")
    parser.add_argument("--figures", choices=TARGETS, help="print those of one column as JSON, and no more")
    parser.add_argument("--markdown", type=Path, metavar="PAGE", help="replace the table in a page")
    arguments = parser.parse_args()
    if arguments.figures:
        print(json.dumps(measured(arguments.quick)))
        return
    found = {column: elsewhere(column, arguments.quick) for column in TARGETS}
    lines = page(found)
    print(*lines, sep="\n")
    if arguments.json:
        write_json(arguments.json, columns=found)
    if arguments.markdown:
        write_block(arguments.markdown, "brief", lines)


if __name__ == "__main__":
    main()
