"""What no row names: calls of sums drawn at random, and which are slow beside others of their kind.

    python benchmarks/scan.py [--calls 300] [--seed 0] [--slowest 30] [--only REGEX] [--json FILE]

A call is an operation and a size, an accumulator with formats or a preset, roundings, DAZ, FTZ, overflow, tininess, counts, and whether one
operand is infinite. Its rate stands beside the median of its operation's. What the plain loop did is marked. The same seed draws
the same calls, so that two versions can be compared. One core; compiling is not timed, but takes most of the time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from alone import alone

if __name__ == "__main__":
    alone()

import numpy as np
from measuring import arguments_of, codes, described, machine, write_json
from presets import TABLES, made

import softfloat
from softfloat import bits
from softfloat.accumulators import Accumulator, chunked, compensated, fixed_point, fma, mul_add, pairwise
from softfloat.engine import plain

FORMATS = "float16", "bfloat16", "float32", "tfloat32", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz"
METHODS = "kahan", "neumaier", "two_term"
SECONDS = 0.2  # from which one timing of a call is enough

Operation = Callable[..., Any]
OPERATIONS: dict[str, tuple[Operation, tuple[tuple[int, ...], ...]]] = {
    "128³": (bits.matmul, ((128, 128), (128, 128))),
    "24 × 24³": (bits.matmul, ((24, 24, 24), (24, 24, 24))),
    "2048 × 128 times 128 × 4": (bits.matmul, ((2048, 128), (128, 4))),
    "512 × 512 times a vector": (bits.matmul, ((512, 512), (512,))),
    "1024 dot products of 256": (bits.vecdot, ((1024, 256), (1024, 256))),
    "a dot product of 2¹⁵": (bits.vecdot, ((1 << 15,), (1 << 15,))),
    "2¹² sums of 64": (bits.sum, ((1 << 12, 64),)),
    "a sum of 2¹⁶": (bits.sum, ((1 << 16,),)),
    "2¹⁰ cumulative sums of 64": (bits.cumsum, ((1 << 10, 64),)),
    "a cumulative sum of 2¹⁴": (bits.cumsum, ((1 << 14,),)),
}
"""A function, and the shapes of its operands: k is the last axis of the first one."""


class Call(NamedTuple):
    """What is drawn."""

    operation: str
    accumulator: Accumulator
    fmt: str
    special: bool
    options: dict[str, Any]

    def __str__(self) -> str:
        known = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.operation}, {self.accumulator} of {self.fmt}{', one infinite' * self.special}{', ' * bool(known)}{known}"


def drawn_accumulator(rng: np.random.Generator) -> tuple[Accumulator, str]:
    """An accumulator and a format that it takes."""
    if rng.random() < 0.4:
        cases = [case for table in TABLES.values() for case in table]
        text, fmt, _ = cases[rng.integers(len(cases))]
        return made(text), fmt
    fmt, sums, total = rng.choice(FORMATS, 3).tolist()
    kinds = [
        fma(sums),
        mul_add(sums),
        pairwise(sums),
        compensated(sums, str(rng.choice(METHODS))),
        fixed_point(32, -16),
        fma(sums).replace(chains=4),
        chunked(32, fma(sums), total),
        chunked(32, mul_add(sums), total),
        chunked(32, pairwise(sums), total),
    ]
    return kinds[rng.integers(len(kinds))], fmt


def drawn(rng: np.random.Generator) -> Call:
    """A call, which may be refused."""
    accumulator, fmt = drawn_accumulator(rng)
    options: dict[str, Any] = {}
    kind = rng.random()
    if kind < 0.4:
        options["rounding"] = str(rng.choice(["toward_zero", "toward_positive", "to_odd", "nearest_away"]))
    elif kind < 0.65:
        options |= {"rounding": "stochastic", "seed": 1}
        options |= {"sr_bits": int(rng.choice([4, 11, 24]))} if rng.random() < 0.4 else {}
    choices = {
        "daz": (True,),
        "ftz": (True,),
        "overflow": ("saturate", "nan", "infinity"),
        "tininess": ("before", "after"),
    }
    for name, values in choices.items():
        if rng.random() < 0.2:
            options[name] = values[rng.integers(len(values))]
    operation = list(OPERATIONS)[rng.integers(len(OPERATIONS))]
    if rng.random() < 0.25 and OPERATIONS[operation][0] is not bits.cumsum:
        options["count"] = True
    return Call(operation, accumulator, fmt, bool(rng.random() < 0.1), options)


def prepared(call: Call) -> tuple[Callable[[], Any], int]:
    """The call without arguments, and how many products or numbers it sums."""
    function, shapes = OPERATIONS[call.operation]
    operands = [codes(call.fmt, *shape, seed=seed) for seed, shape in enumerate(shapes)]
    if call.special:
        operands[0] = operands[0].copy()
        operands[0].flat[operands[0].size // 2] = bits.encode(np.inf, call.fmt)[0]
    columns = shapes[1][-1] if function is bits.matmul and len(shapes[1]) > 1 else 1
    axis = {} if len(shapes) > 1 else {"axis": -1}
    return partial(function, *operands, call.fmt, call.accumulator, **axis, **call.options), operands[0].size * columns


def measured(call: Call) -> tuple[float, bool] | None:
    """(numbers per second, whether the plain loop ran), or None if the call is refused."""
    run, amount = prepared(call)
    called: list[int] = []
    plain_run = plain.run

    def watched(*arguments: Any) -> None:
        called.append(1)
        plain_run(*arguments)

    plain.run = watched
    try:
        run()
    except (ValueError, TypeError):
        return None
    finally:
        plain.run = plain_run
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        if best > SECONDS:
            break
    return amount / best, bool(called)


def main() -> None:
    """Draw, measure, and show the slowest."""
    parser = arguments_of(__doc__)
    parser.add_argument("--calls", type=int, default=300, help="how many are drawn (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (default 0)")
    parser.add_argument("--only", metavar="REGEX", help="of these, those whose text has it")
    parser.add_argument("--slowest", type=int, default=30, help="how many are shown (default 30)")
    given = parser.parse_args()
    softfloat.set_num_threads(1)
    print(described(machine()))
    rng = np.random.default_rng(given.seed)
    found: list[tuple[Call, float, bool]] = []
    for _ in range(given.calls):
        call = drawn(rng)
        if given.only and not re.search(given.only, str(call)):
            continue
        with np.errstate(all="ignore"):
            figure = measured(call)
        if figure is not None:
            found.append((call, *figure))
    medians = {
        name: np.median([rate for call, rate, _ in found if call.operation == name] or [np.nan]) for name in OPERATIONS
    }
    for name, median in medians.items():
        print(f"{name:32} median {median / 1e6:8.1f} M/s")
    found.sort(key=lambda x: x[1] / medians[x[0].operation])
    print(
        f"{len(found)} calls, {sum(by_plain for *_, by_plain in found)} with something for the plain loop; the slowest:"
    )
    for call, rate, by_plain in found[: given.slowest]:
        share = rate / medians[call.operation]
        print(f"{rate / 1e6:9.2f} M/s  {share:6.3f} of the median  {'plain' if by_plain else '     '}  {call}")
    if given.json:
        write_json(given.json, machine=machine(), calls=[{"call": str(c), "rate": r, "plain": p} for c, r, p in found])


if __name__ == "__main__":
    main()
