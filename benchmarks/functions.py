"""Mathematical functions beside memcpy and NumPy, all in one process, measured as `elementwise.py` measures.

    python benchmarks/functions.py [--size 20] [--rounds 10] [--tables] [--json FILE]

`--tables` also shows how long each function of half and bfloat16 takes to make its table, on first use.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from elementwise import Case, both_flags, report

import softfloat
from softfloat import bits
from softfloat.bits import functions

STOCHASTIC = {"rounding": "stochastic", "seed": 1}
POWERS = {"": None, "2": 2.0, "0.5": 0.5, "-1": -1.0}


def cases(size: int) -> list[Case]:
    random = np.random.default_rng(0)
    x = random.standard_normal(size).astype(np.float32)
    y = (3 * random.standard_normal(size)).astype(np.float32)
    copy = np.empty_like(x)
    found = [Case("memcpy float32", "numpy", lambda: np.copyto(copy, x))]
    flags = np.empty(size, np.uint8)
    for name in ("float16", "bfloat16", "float32"):
        fmt = softfloat.Format.from_name(name)
        a, b = bits.encode(x, fmt)[0], bits.encode(y, fmt)[0]
        positive, out = bits.abs(a, fmt), np.empty_like(a)
        for function in ("exp", "log", "sin", "tanh"):
            call: Callable[..., Any] = getattr(bits, function)
            floor = 0.05 if name != "float32" else None  # a table's
            for mode, options in (("", {}), (", stochastic", STOCHASTIC)):
                found += both_flags(
                    flags, f"{name} {function}{mode}", None if mode else floor, call, positive, fmt, out=out, **options
                )
        for power, exponent in POWERS.items():
            second = b if exponent is None else bits.encode(exponent, fmt)[0]
            found += both_flags(flags, f"{name} pow {power}", None, bits.pow, positive, second, fmt, out=out)
        found += both_flags(flags, f"{name} pow, stochastic", None, bits.pow, positive, b, fmt, out=out, **STOCHASTIC)
        for function in ("hypot", "atan2", "logaddexp", "floor_divide", "modulo"):
            found += both_flags(flags, f"{name} {function}", None, getattr(bits, function), a, b, fmt, out=out)
    for dtype in (np.float16, np.float32):
        numbers, powers = np.abs(x).astype(dtype), y.astype(dtype)
        place = np.empty_like(numbers)
        name = np.dtype(dtype).name
        for function in (np.exp, np.log, np.sin, np.tanh):
            found.append(
                Case(f"{name} {function.__name__}", "numpy", lambda f=function, n=numbers, p=place: f(n, out=p))
            )
        found.append(Case(f"{name} pow ", "numpy", lambda n=numbers, m=powers, p=place: np.power(n, m, out=p)))
    for case in found:
        case.elements = size
    return found


def tables() -> dict[str, float]:
    """Seconds that each table takes."""
    bits.exp2(0, "float8_e5m2")  # loops are compiled, mpmath is imported
    seconds = {}
    for fmt in (softfloat.float16, softfloat.bfloat16):
        for name in functions.FUNCTIONS:
            if name in ("pow", "atan2", "logaddexp", "logaddexp2"):
                continue
            start = time.perf_counter()
            getattr(bits, name)(np.zeros(1, np.uint16), fmt)
            seconds[f"{fmt} {name}"] = time.perf_counter() - start
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=20, help="log2 of the number of elements (default 20)")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--tables", action="store_true", help="also time the making of tables")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    softfloat.set_num_threads(1)
    making = tables() if arguments.tables else {}
    with np.errstate(all="ignore"):
        rows = report(cases(1 << arguments.size), arguments.rounds, f"2^{arguments.size} elements, one thread")
    for name, seconds in making.items():
        print(f"table of {name:<24}{1e3 * seconds:8.1f} ms")
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": rows, "tables": making}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
