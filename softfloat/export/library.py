"""A library made and written: whole, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from softfloat.accumulators import Accumulator
from softfloat.checks import check_switch, is_integer
from softfloat.engine.native import Job
from softfloat.engine.programs import check_inputs
from softfloat.export.functions import FUNCTIONS, Dot, Prototype, Request, prototypes, slug
from softfloat.export.headers import cpp_header, header, package
from softfloat.export.numerics import julia, mex
from softfloat.export.scripts import bench, module
from softfloat.export.targets import compiler, linked, machine
from softfloat.formats import Format, check_format
from softfloat.testing.vectors.expressions import parse_accumulator

__all__ = ["FILES", "LONGEST", "request", "write"]

LONGEST = 4096
"""Products of a dot product, at most: its arrays lie on the caller's stack."""

FILES = ("libsf.o", "libsf.so", "sf.h", "sf.hpp", "sf_pkg.sv", "sf.py", "sf_cocotb.py", "sf_mex.c", "sf.jl")
"""What a folder of an export holds."""


def write(
    folder: str | os.PathLike[str],
    *,
    functions: Iterable[str] = ("add", "sub", "mul", "div", "sqrt", "fma", "convert", "encode", "decode"),
    formats: Iterable[Format | str] = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float32"),
    accumulators: Iterable[Accumulator | str] = (),
    lengths: Iterable[int] = range(1, 65),
    target: str = "x86-64-v3",
    compiler: str | None = None,
    link: bool = True,
) -> list[Prototype]:
    """Write a shared library of softfloat's arithmetic, and what C, C++, SystemVerilog, Python, MATLAB, Octave and Julia need to call it.

    The library needs nothing but libm: no Python, Numba or LLVM. The same arguments give the same object, byte for byte.

    Parameters
    ----------
    folder : path
        Made if it is not there; files of an earlier export in it are replaced. All files appear, or none.
    functions : iterable of str
        Names in `FUNCTIONS`.
    formats : iterable of Format or str
        Each function comes for each of them; "convert" for every pair.
    accumulators : iterable of Accumulator or str
        Each gives dot products for each of the formats that it takes; strings are calls of presets. Functions are named after the
        string, or the accumulator's name.
    lengths : iterable of int
        Lengths of dot products, 1 to 4096 products.
    target : str
        A name in `TARGETS`.
    compiler : str, optional
        The C compiler that links; default the first of the target's that is installed ("native": `CC` before).
    link : bool
        Whether to make libsf.so too.

    Returns
    -------
    list of Prototype
        The functions written.

    Raises
    ------
    ValueError
        For what there is not, naming what is accepted; for a target without a compiler, unless `link` is False.
    RuntimeError
        If the compiler fails.
    OSError
        If the folder cannot be written.
    """
    check_switch("link", link)
    asked = request(functions, formats, accumulators, lengths)
    known = machine(target)
    place = _folder(folder)
    command = _compiler(target, compiler) if link else []
    job = Job()
    found = prototypes(asked, job)
    code = job.object_code(known)
    files: dict[str, bytes | None] = {
        "libsf.o": code,
        "libsf.so": linked(command, code) if link else None,
        "sf.h": header(found).encode(),
        "sf.hpp": cpp_header(found).encode(),
        "sf_pkg.sv": package(found, max(asked.lengths)).encode(),
        "sf.py": module(found).encode() if link else None,
    }
    example = bench(found) if link else None
    files["sf_cocotb.py"] = None if example is None else example.encode()
    on_doubles = {"sf_mex.c": mex(asked, found), "sf.jl": julia(asked, found) if link else None}
    files |= {name: None if text is None else text.encode() for name, text in on_doubles.items()}
    _put(place, files)
    return found


_compiler = compiler


def request(
    functions: Iterable[str],
    formats: Iterable[Format | str],
    accumulators: Iterable[Accumulator | str],
    lengths: Iterable[int],
) -> Request:
    """What a library is to have, checked; see `write`."""
    names = _all("functions", functions, str)
    for name in names:
        if name not in FUNCTIONS:
            raise ValueError(f"function {name!r} is unknown; accepted: {', '.join(FUNCTIONS)}")
    chosen = tuple(check_format(fmt, "formats") for fmt in _all("formats", formats, (str, Format)))
    sums = _all("accumulators", accumulators, (str, Accumulator))
    if not chosen:
        raise ValueError("formats must name at least one format")
    if not names and not sums:
        raise ValueError("functions and accumulators are both empty; accepted: one of either")
    for name in names:
        for fmt in chosen:
            widest = FUNCTIONS[name].widest
            if widest and fmt.bits > widest:
                raise ValueError(
                    f"function {name!r} goes by tables of its values, and formats must have at most {widest} bits for it, got {fmt.name}"
                )
    slugs = [slug(fmt.name) for fmt in chosen]
    if len(set(slugs)) < len(chosen):
        raise ValueError(f"formats must have names that differ in C, got {', '.join(slugs)}")
    if "convert" in names and len(chosen) < 2 and len(names) == 1 and not sums:
        raise ValueError("function 'convert' needs two formats")
    known = tuple(_lengths(lengths))
    dots = [dot for how in sums for dot in _dots(how, chosen)]
    symbols = [dot.symbol for dot in dots]
    for symbol in symbols:
        if symbols.count(symbol) > 1:
            raise ValueError(f"accumulators must have names that differ in C, got {symbol} more than once")
    return Request(names, chosen, tuple(dots), known)


def _all(argument: str, values: Any, kinds: Any) -> tuple[Any, ...]:
    """Each value once; a single one that stands for a sequence is refused."""
    if isinstance(values, (str, Format, Accumulator)):
        raise TypeError(f"{argument} must be a sequence, got {values!r} alone")
    found = tuple(dict.fromkeys(values))
    for value in found:
        if not isinstance(value, kinds):
            raise TypeError(f"{argument} must not hold {value!r}")
    return found


def _lengths(lengths: Iterable[int]) -> Sequence[int]:
    found = sorted(set(lengths))
    if not found or not all(is_integer(k) and 1 <= k <= LONGEST for k in found):
        raise ValueError(f"lengths must be integers from 1 to {LONGEST}, got {found[:3]} ... {found[-3:]}")
    return [int(k) for k in found]


def _dots(how: Accumulator | str, formats: Sequence[Format]) -> list[Dot]:
    accumulator = parse_accumulator(how) if isinstance(how, str) else how
    if any(level.scaling for level in accumulator.reduction):
        raise ValueError(
            f"accumulator {accumulator!r} has scaling, which no library has; accepted: accumulators without"
        )
    found = []
    for fmt in formats:
        try:
            check_inputs(accumulator, fmt)
            output = accumulator.output(fmt, fmt)
        except ValueError:
            continue
        found.append(Dot(slug(how if isinstance(how, str) else accumulator.name), accumulator, fmt, output))
    if not found:
        names = ", ".join(fmt.name for fmt in accumulator.inputs)
        raise ValueError(f"accumulator {accumulator!r} takes none of the formats; accepted: {names}")
    return found


def _folder(folder: str | os.PathLike[str]) -> Path:
    found = Path(os.path.realpath(folder))
    if found.exists() and not found.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(found))
    return found


def _put(folder: Path, files: dict[str, bytes | None]) -> None:
    """All files in their folder, none of an earlier export beside them."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    inside = folder if folder.is_dir() else folder.parent
    made = Path(tempfile.mkdtemp(prefix=".softfloat-", dir=inside))
    try:
        mask = os.umask(0)
        os.umask(mask)
        made.chmod(0o777 & ~mask)
        for name, content in files.items():
            if content is not None:
                (made / name).write_bytes(content)
        if files["libsf.so"] is not None:
            (made / "libsf.so").chmod(0o777 & ~mask)
        if not folder.is_dir():
            made.rename(folder)
            return
        for name, content in files.items():
            if content is None:
                (folder / name).unlink(missing_ok=True)
            else:
                (made / name).replace(folder / name)
    finally:
        shutil.rmtree(made, ignore_errors=True)
