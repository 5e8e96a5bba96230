"""Which machines libraries are for, and how their objects are linked."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from softfloat.checks import check_choice
from softfloat.engine.native import Machine, host

__all__ = ["TARGETS", "Target", "compiler", "linked", "machine"]

LINUX = "unknown-linux-gnu"


class Target(NamedTuple):
    """One row of `TARGETS`.

    Attributes
    ----------
    machine : Machine or None
        What LLVM is told; None: this computer.
    meaning : str
        In words.
    compilers : tuple of str
        C compilers that link for it, the first found serves.
    """

    machine: Machine | None
    meaning: str
    compilers: tuple[str, ...]


TARGETS = {
    "native": Target(None, "this computer, its own CPU", ("cc", "gcc", "clang")),
    "generic": Target(
        Machine(f"x86_64-{LINUX}", "x86-64", "", ""), "any x86-64 CPU, Linux", ("x86_64-linux-gnu-gcc", "gcc", "clang")
    ),
    "x86-64-v3": Target(
        Machine(f"x86_64-{LINUX}", "x86-64-v3", "", ""),
        "x86-64 CPUs with AVX2 and FMA, Linux",
        ("x86_64-linux-gnu-gcc", "gcc", "clang"),
    ),
    "aarch64": Target(Machine(f"aarch64-{LINUX}", "generic", "", ""), "Armv8-A, Linux", ("aarch64-linux-gnu-gcc",)),
    "riscv64": Target(
        Machine(f"riscv64-{LINUX}", "generic-rv64", "+m,+a,+f,+d,+c", "lp64d"),
        "RV64GC, Linux",
        ("riscv64-linux-gnu-gcc",),
    ),
}
"""Name -> what objects are made for."""


def machine(target: str) -> Machine:
    """What LLVM is told of a target.

    Raises
    ------
    ValueError
        If there is no such target, or llvmlite was built without it.
    """
    check_choice("target", target, TARGETS)
    found = TARGETS[target].machine or host()
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    try:
        llvm.Target.from_triple(found.triple)
    except RuntimeError as error:
        raise ValueError(f"target {target!r} is not among those of this llvmlite: {error}") from None
    return found


def compiler(target: str, given: str | None = None) -> list[str]:
    """The command that links for a target: `given`, or the first of its compilers that is installed; `CC` names one for "native".

    Raises
    ------
    ValueError
        If there is none.
    """
    named = given or (os.environ.get("CC") if target == "native" else None)
    if named is not None:
        words = shlex.split(named)
        if not words or shutil.which(words[0]) is None:
            raise ValueError(f"compiler {named!r} is not installed")
        return words
    suited = TARGETS[target].compilers
    foreign = target in ("generic", "x86-64-v3") and os.uname().machine != "x86_64" if hasattr(os, "uname") else False
    for name in suited[:1] if foreign else suited:
        if shutil.which(name):
            return [name]
    raise ValueError(
        f"no C compiler to link libsf.so for target {target!r} with; accepted: one of {', '.join(suited)} installed, "
        "compiler='...', or link=False for libsf.o alone"
    )


def linked(command: Sequence[str], code: bytes) -> bytes:
    """A shared library of an object.

    Raises
    ------
    RuntimeError
        If the compiler refuses, with its last line.
    """
    with tempfile.TemporaryDirectory(prefix="softfloat-") as folder:
        source, library = Path(folder, "libsf.o"), Path(folder, "libsf.so")
        source.write_bytes(code)
        soname = [] if sys.platform == "darwin" else ["-Wl,-soname,libsf.so", "-Wl,--build-id=none"]
        arguments = [*command, "-shared", "-o", str(library), str(source), *soname, "-lm"]
        done = subprocess.run(arguments, capture_output=True, text=True)
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            raise RuntimeError(f"{command[0]} could not link libsf.so: {reason[0]}")
        return library.read_bytes()
