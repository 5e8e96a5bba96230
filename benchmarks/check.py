"""Rows per minute of writing, reading and checking test vectors, on one thread.

    python benchmarks/check.py [--rows 1000000] [--rounds 5] [--json FILE]

A rate is that of the fastest of several rounds, taken in turn. Files lie in a temporary folder, in memory as far as the
system keeps them there. `floor` is what a rate is meant to reach: 5 million rows of half additions a minute, with flags.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import softfloat
from softfloat.testing import Case, check_vectors, read_vectors, resolve, write_vectors


@dataclass
class Job:
    name: str
    rows: int
    run: Callable[[], Any]
    floor: float | None = None
    best: float = float("inf")

    def take(self) -> None:
        start = time.perf_counter()
        self.run()
        self.best = min(self.best, time.perf_counter() - start)

    @property
    def rate(self) -> float:
        return self.rows / self.best * 60 / 1e6


def jobs(folder: Path, rows: int) -> list[Job]:
    add = resolve("f16_add")
    found = [Job("write half add", rows, lambda: write_vectors(folder / "new.txt", add, rows))]

    def checked(name: str, case: Case, count: int, suffix: str = ".txt", floor: float | None = None) -> None:
        path = folder / f"{len(found)}{suffix}"
        write_vectors(path, case, count)

        def run() -> None:
            assert check_vectors(path, case).passed

        found.append(Job(name, count, run, floor))

    checked("check half add", add, rows, floor=5)
    path = folder / "1.txt"
    found.append(Job("read half add", rows, lambda: sum(len(chunk) for chunk in read_vectors(path, add))))
    irregular = folder / "irregular.txt"
    irregular.write_bytes(path.read_bytes()[: 18 * (rows // 10)].replace(b" ", b"  "))
    found.append(Job("check half add, line by line", rows // 10, lambda: check_vectors(irregular, add), 5))
    checked("check half add, compressed", add, rows // 4, ".txt.gz")
    checked("check half add, archive", add, rows // 4, ".npz")
    checked("check float32 fma", resolve("f32_mulAdd"), rows // 4)
    checked("check float32 to half", resolve("f32_to_f16"), rows // 4)
    checked("check half exp", resolve("exp", "float16"), rows // 4)
    checked("check amp dots of 64", resolve("vecdot", "float16", accumulator="amp('half')", length=64), rows // 50)
    wrong = folder / "wrong.txt"
    write_vectors(wrong, add.under(rounding="toward_zero"), rows // 4)
    found.append(Job("check truncated half add, diagnosis included", rows // 4, lambda: check_vectors(wrong, add)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the larger files (default 1000000)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    softfloat.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        found = jobs(Path(folder), arguments.rows)
        for _ in range(arguments.rounds):
            for job in found:
                job.take()
    print(f"{'':<46}{'rows':>10}{'million rows/min':>18}{'floor':>8}")
    for job in found:
        floor = "" if job.floor is None else f"{job.floor:.0f}" + (" " if job.rate >= job.floor else "!")
        print(f"{job.name:<46}{job.rows:>10}{job.rate:>18.1f}{floor:>8}")
    if arguments.json:
        rows = [{"name": job.name, "rows": job.rows, "million_rows_per_minute": job.rate} for job in found]
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
