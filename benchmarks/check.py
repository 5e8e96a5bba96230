"""Rows per minute of writing, reading and checking test vectors, on one thread.

    python benchmarks/check.py [--only REGEX] [--quick] [--plain] [--json FILE] [--markdown PAGE]

Files lie in a temporary folder, in memory as far as the system keeps them there. Goals: 5 million rows of half additions a
minute, with flags.
"""

from __future__ import annotations

import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

from alone import alone

if __name__ == "__main__":
    alone()

from measuring import Benchmark, Row, Work

from softfloat.testing import check_vectors, read_vectors, resolve, write_vectors

ROWS = 1_000_000  # of the larger files
ADD = "f16_add"


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def path_of(name: str) -> Path:
    return Path(folder().name) / name


@cache
def written(count: int, suffix: str, name: str, *arguments: Any, **options: Any) -> Path:
    path = path_of(f"{name}-{count}{suffix}")
    write_vectors(path, resolve(name, *arguments, **options), count)
    return path


def writing() -> Work:
    case = resolve(ADD)
    return Work(lambda: write_vectors(path_of("new.txt"), case, ROWS), ROWS)


def reading() -> Work:
    path, case = written(ROWS, ".txt", ADD), resolve(ADD)
    return Work(lambda: sum(len(chunk) for chunk in read_vectors(path, case)), ROWS)


def checked(count: int, suffix: str, name: str, *arguments: Any, **options: Any) -> Work:
    path, case = written(count, suffix, name, *arguments, **options), resolve(name, *arguments, **options)

    def run() -> None:
        assert check_vectors(path, case).passed

    return Work(run, count)


def irregular() -> Work:
    """Two blanks between numbers, so that each line is read by itself."""
    path, case = path_of("irregular.txt"), resolve(ADD)
    path.write_bytes(written(ROWS, ".txt", ADD).read_bytes()[: 18 * (ROWS // 10)].replace(b" ", b"  "))
    return Work(lambda: check_vectors(path, case), ROWS // 10)


def diagnosed() -> Work:
    """Results of another rounding, and what is the matter with them."""
    path, case = path_of("wrong.txt"), resolve(ADD)
    write_vectors(path, case.under(rounding="toward_zero"), ROWS // 4)
    return Work(lambda: check_vectors(path, case), ROWS // 4)


def vecdots() -> Work:
    return checked(ROWS // 50, ".txt", "vecdot", "float16", accumulator="amp('half')", length=64)


BENCHMARK = Benchmark(
    "check",
    {
        "Files of vectors": (
            Row("write half add", writing, "M/min"),
            Row("check half add", partial(checked, ROWS, ".txt", ADD), "M/min", goal=5),
            Row("read half add", reading, "M/min"),
            Row("check half add, line by line", irregular, "M/min", goal=5),
            Row("check half add, compressed", partial(checked, ROWS // 4, ".txt.gz", ADD), "M/min"),
            Row("check half add, archive", partial(checked, ROWS // 4, ".npz", ADD), "M/min"),
            Row("check float32 fma", partial(checked, ROWS // 4, ".txt", "f32_mulAdd"), "M/min"),
            Row("check float32 to half", partial(checked, ROWS // 4, ".txt", "f32_to_f16"), "M/min"),
            Row("check half exp", partial(checked, ROWS // 4, ".txt", "exp", "float16"), "M/min"),
            Row("check amp dots of 64", vecdots, "M/min"),
            Row("check truncated half add, diagnosis included", diagnosed, "M/min"),
        )
    },
    {},
)

if __name__ == "__main__":
    BENCHMARK.main(__doc__)
