"""`softfloat export`: a golden model outside Python."""

from __future__ import annotations

import argparse
from typing import Any

from softfloat.commands.output import CommandError, one_line
from softfloat.formats import ROSTER

__all__ = ["add_parsers"]

FUNCTIONS = "add,sub,mul,div,sqrt,fma,convert,encode,decode"
FORMATS = "float16,bfloat16,float8_e4m3fn,float8_e5m2,float32"


def add_parsers(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "export",
        help="write a shared library of this arithmetic for C, C++, SystemVerilog, cocotb, Octave and Julia",
        description="Compiles softfloat's kernels to libsf.so, which needs neither Python nor Numba, and writes sf.h, sf.hpp, "
        "sf_pkg.sv (DPI-C), sf.py (ctypes), an example for cocotb, sf_mex.c (MATLAB, Octave) and sf.jl (Julia) beside it. All files appear, or "
        "none.",
        epilog=f"formats: {', '.join(ROSTER)}, or a layout such as e6m9",
    )
    add = parser.add_argument
    add("folder", metavar="FOLDER", help="where to; made if it is not there")
    add("--functions", default=FUNCTIONS, metavar="NAMES", help=f"with commas between; none: '' (default: {FUNCTIONS})")
    add("--formats", default=FORMATS, metavar="NAMES", help=f"with commas between (default: {FORMATS})")
    preset = "a dot product by this preset, such as 'tensor_core(\"H100\")'; may be repeated"
    add("--accumulator", "--accumulators", action="append", default=[], metavar="PRESET", help=preset)
    add("--lengths", default="1-64", metavar="RANGES", help="of dot products, such as 16 or 1-64,128 (default: 1-64)")
    targets = "native, generic (x86-64), x86-64-v3, aarch64 or riscv64 (default: x86-64-v3)"
    add("--target", default="x86-64-v3", metavar="NAME", help=targets)
    add("--compiler", metavar="COMMAND", help="the C compiler that links (default: the first installed for the target)")
    add("--no-link", action="store_true", help="make libsf.o alone, without a C compiler")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from softfloat import export

    try:
        found = export.write(
            options.folder,
            functions=_names(options.functions),
            formats=_names(options.formats),
            accumulators=options.accumulator,
            lengths=_lengths(options.lengths),
            target=options.target,
            compiler=options.compiler,
            link=not options.no_link,
        )
    except (ValueError, TypeError, RuntimeError) as error:
        raise CommandError(one_line(str(error))) from None
    files = "libsf.o" if options.no_link else "libsf.so"
    print(f"{files} with {len(found)} functions for {options.target} in {options.folder}")
    return 0


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _lengths(text: str) -> list[int]:
    """Numbers and ranges, with commas between."""
    from softfloat.export import LONGEST

    found: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            start, stop = int(first), int(last) if dash else int(first)
            if not 1 <= start <= stop <= LONGEST:
                raise ValueError
            found += range(start, stop + 1)
    except ValueError:
        raise CommandError(f"--lengths must be like 16 or 1-64,128, from 1 to {LONGEST}, got {text!r}") from None
    return found
