"""Recurrences in code that the user compiles, on functions of softfloat.jit: `python benchmarks/recurrences.py [--json]`.

The neuron is Izhikevich's (2003): eight operations a step, of 0.25 ms,, each rounded. Times are those of the fastest of some runs,
and of the first call, which compiles or finds what was compiled.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numba
import numpy as np

from softfloat import Environment, bits, jit

STEPS = 10_000
GOAL = 5.0
"""Milliseconds of that many steps in half, on codes, at most."""


def neuron(fmt: str, values: bool, **rule: Any) -> Any:
    """spikes(steps): how often a neuron fires, and its last state."""
    env = Environment(**rule)
    add, sub, mul, fma, le = (
        jit.function(name, fmt, values=values, environment=env) for name in ("add", "sub", "mul", "fma", "le")
    )

    def number(x: float) -> Any:
        code = bits.encode(x, fmt)[0]
        return float(bits.decode(code, fmt)) if values else code

    step, rate, five, scale, offset = map(number, (0.25, 0.005, 5.0, 0.04, 150.0))  # 140 and a current of 10
    sensitivity, top, reset, jump = map(number, (0.2, 30.0, -65.0, 8.0))

    @numba.njit
    def spikes(steps: int) -> Any:
        v, u, fired = reset, mul(sensitivity, reset), 0
        for _ in range(steps):
            slope = sub(fma(fma(scale, v, five), v, offset), u)
            v = fma(step, slope, v)
            u = fma(rate, sub(mul(sensitivity, v), u), u)
            if le(top, v):
                v, u = reset, add(u, jump)
                fired += 1
        return fired, v, u

    return spikes


CASES: dict[str, tuple[str, bool, dict[str, Any]]] = {
    "float16, codes": ("float16", False, {}),
    "float16, numbers": ("float16", True, {}),
    "bfloat16, codes": ("bfloat16", False, {}),
    "float16, codes, toward zero, x86's NaN": ("float16", False, {"rounding": "toward_zero", "nan": "x86"}),
}


def measured(fmt: str, values: bool, rule: dict[str, Any]) -> dict[str, float]:
    """Milliseconds of STEPS steps, and seconds of the first call."""
    spikes = neuron(fmt, values, **rule)
    start = time.perf_counter()
    fired, _, _ = spikes(STEPS)
    first, best = time.perf_counter() - start, np.inf
    for _ in range(20):
        start = time.perf_counter()
        spikes(STEPS)
        best = min(best, time.perf_counter() - start)
    return {"milliseconds": best * 1e3, "first call, seconds": first, "spikes": fired}


def main() -> int:
    """Print a table; status 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description="Times recurrences on functions of softfloat.jit.")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {name: measured(*case) for name, case in CASES.items()}
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for name, row in found.items():
            goal = f"  goal {GOAL:.0f}" if name == "float16, codes" else ""
            print(f"{name:42} {row['milliseconds']:6.2f} ms  first call {row['first call, seconds']:.1f} s{goal}")
    return int(found["float16, codes"]["milliseconds"] > GOAL)


if __name__ == "__main__":
    raise SystemExit(main())
