"""Calls of an exported library, timed from C: `python benchmarks/export.py [--target NAME] [--json]`.

Each figure is that of the fastest of some rounds over operands drawn from all codes; the loop and the sum of results are in it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from softfloat import export

FORMATS = ("float16", "bfloat16", "float32", "float8_e4m3fn")
ACCUMULATORS = ('tensor_core("H100")', 'fma("float16")')
GOALS = {"fma float16": 40.0}
"""Nanoseconds of a call, at most."""

CALLS = {
    "fma float16": "sf_fma_float16(x[i], x[i + 1], x[i + 2], 0, &f)",
    "fma float16, toward zero, Arm's NaN": "sf_fma_float16(x[i], x[i + 1], x[i + 2], SF_TOWARD_ZERO | SF_NAN_ARM, &f)",
    "fma float16, stochastic, bits handed in": "sf_fma_float16_random(x[i], x[i + 1], x[i + 2], SF_STOCHASTIC, n, &f)",
    "fma float16, stochastic, by address": "sf_fma_float16_at(x[i], x[i + 1], x[i + 2], SF_STOCHASTIC, 1, 2, n, &f)",
    "fma bfloat16": "sf_fma_bfloat16(x[i], x[i + 1], x[i + 2], 0, &f)",
    "fma float32": "sf_fma_float32(x[i] * 65537u, x[i + 1] * 65537u, x[i + 2] * 65537u, 0, &f)",
    "add float16": "sf_add_float16(x[i], x[i + 1], 0, &f)",
    "div float16": "sf_div_float16(x[i], x[i + 1], 0, &f)",
    "convert float32 to float8_e4m3fn": "sf_convert_float32_to_float8_e4m3fn(x[i] * 65537u, SF_OVERFLOW_SATURATE, &f)",
    "dot of 16, H100": "sf_dot_tensor_core_h100_float16(16, x + i, x + i + 16, 0, &f)",
    "dot of 16, half fma": "sf_dot_fma_float16_float16(16, x + i, x + i + 16, 0, &f)",
}

PROGRAM = """
#include "sf.h"
#include <stdio.h>
#include <time.h>
static double now(void) {{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}}
int main(void) {{
    static uint16_t x[4096];
    uint64_t state = 1, sum = 0;
    uint8_t f;
    for (int i = 0; i < 4096; i++) x[i] = (uint16_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 40);
{loops}
    return (int)(sum & 1) & 0;
}}
"""
LOOP = """
    {{
        double best = 1e30;
        for (int round = 0; round < 400; round++) {{
            double start = now();
            for (uint64_t n = 0; n < {count}; n++) {{
                uint64_t i = n % 4000;
                sum = sum * 31 + {call} + f;
            }}
            double took = (now() - start) / {count};
            best = took < best ? took : best;
        }}
        printf("%f\\n", best);
    }}
"""


def measured(target: str) -> dict[str, float]:
    """Nanoseconds of each call."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        functions = ["fma", "add", "div", "convert"]
        export.write(
            folder, functions=functions, formats=FORMATS, accumulators=ACCUMULATORS, lengths=[16], target=target
        )
        loops = (LOOP.format(call=call, count=50 if "dot" in name else 2000) for name, call in CALLS.items())
        (folder / "calls.c").write_text(PROGRAM.format(loops="".join(loops)))
        program = folder / "calls"
        arguments = ["-O2", "-I", folder, folder / "calls.c", folder / "libsf.o", "-lm", "-o", program]
        subprocess.run(["gcc", *arguments], check=True)
        lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    return dict(zip(CALLS, map(float, lines), strict=True))


def main() -> int:
    """Print a table; status 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description="Times calls of an exported library from C.")
    parser.add_argument("--target", default="x86-64-v3", choices=list(export.TARGETS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measured(options.target)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for name, time in found.items():
            goal = f"  goal {GOALS[name]:.0f}" if name in GOALS else ""
            print(f"{name:42} {time:8.1f} ns{goal}")
    return int(any(found[name] > goal for name, goal in GOALS.items()))


if __name__ == "__main__":
    raise SystemExit(main())
