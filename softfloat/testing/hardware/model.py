"""The model against the machine it runs on: whether its numeric instructions give the model's bits.

`features` says what this machine has, `table.instructions` what there is to check and which call of `softfloat.bits` says the
same, `check_hardware` runs both over operands of every kind, or over all there are.

>>> all(outcome.status in STATUSES for outcome in check_hardware(["VCVTPH2PS"], samples=1000))
True
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.accumulators import amx
from softfloat.checks import check_seed, check_whole
from softfloat.testing.hardware.features import Features, features
from softfloat.testing.hardware.operands import drawn_operands, tile_operands
from softfloat.testing.hardware.table import Instruction, Operands, instructions

__all__ = ["DEVICES", "STATUSES", "Mismatch", "Outcome", "check_hardware"]

DEVICES = ("cpu", "cuda")
"""Where instructions can be checked."""

STATUSES = ("agrees", "differs", "not available", "not checked")
SETTINGS = ("as the process starts", "DAZ and FTZ on")
EXAMPLES = 5
CHUNK = 1 << 22
SPACE = 1 << 32  # operands of a conversion from float32


@dataclass(frozen=True)
class Mismatch:
    """Operands on which machine and model part ways; codes are integers, flags those of `softfloat.Flags`."""

    setting: str
    operands: tuple[int, ...]
    found: int
    expected: int
    found_flags: int
    expected_flags: int


@dataclass
class Outcome:
    """What came of one instruction in one rounding mode.

    Attributes
    ----------
    instruction, mode : str
    status : str
        One of `STATUSES`.
    cases : int
        Operands whose results, and flags, were compared.
    mismatches, flag_mismatches : int
        Of these, wrong results; right results with wrong flags.
    examples : list of Mismatch
        The first of them.
    exhaustive : bool
        Whether `cases` has every operand there is.
    seconds : float
    reason : str
        Why nothing was checked.
    """

    instruction: str
    mode: str
    status: str
    cases: int = 0
    mismatches: int = 0
    flag_mismatches: int = 0
    examples: list[Mismatch] = field(default_factory=list)
    exhaustive: bool = False
    seconds: float = 0.0
    reason: str = ""


def _compare(
    instruction: Instruction, outcome: Outcome, operands: Operands, mode: str, flushing: bool, keep: bool = True
) -> None:
    """Run some operands both ways, twice on the machine: as whole vectors, and one at a time with their flags."""
    from softfloat.testing.hardware import instructions as machine

    assert instruction.code is not None
    assert instruction.run_model is not None
    mxcsr = machine.ALL_MASKED | (machine.DENORMALS_ZERO if flushing else 0)
    if instruction.by_register:
        mxcsr |= machine.ROUNDING_FIELD[mode] << machine.RC_SHIFT
    elif flushing:  # the register's mode must not count where an immediate or nothing chooses
        mxcsr |= machine.ROUNDING_FIELD["toward_zero"] << machine.RC_SHIFT
    options: dict[str, Any] = {"rounding": mode}
    options |= {"daz": flushing and instruction.daz, "ftz": flushing and instruction.ftz}
    expected, expected_flags = instruction.run_model(operands, options)
    code = machine.assemble(instruction.code(mode))
    together, any_flags = code.whole(operands, mxcsr)
    found, flags = code.each(operands, mxcsr)
    outcome.cases += found.size
    wrong = (found != expected) | (together != expected)
    wrong_flags = ~wrong & (flags != expected_flags)
    outcome.mismatches += int(wrong.sum())
    outcome.flag_mismatches += int(wrong_flags.sum())
    if not wrong.any() and any_flags != int(np.bitwise_or.reduce(flags, initial=0)):
        outcome.flag_mismatches += 1
    for i in np.flatnonzero(wrong | wrong_flags)[: EXAMPLES - len(outcome.examples)]:
        shown = int(found[i]) if found[i] != expected[i] else int(together[i])
        outcome.examples.append(
            Mismatch(
                SETTINGS[flushing],
                tuple(int(x[i]) for x in operands),
                shown,
                int(expected[i]),
                int(flags[i]),
                int(expected_flags[i]),
            )
        )


def _settled(outcome: Outcome, started: float) -> None:
    outcome.seconds = time.perf_counter() - started
    outcome.status = "differs" if outcome.mismatches or outcome.flag_mismatches else "agrees"


def check_hardware(
    names: Sequence[str] | None = None,
    *,
    samples: int = 100_000,
    seed: int = 0,
    exhaustive: bool = False,
    device: str = "cpu",
    outcomes: list[Outcome] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    scheduler: str | None = None,
    manifest: str | os.PathLike[str] | None = None,
) -> list[Outcome]:
    """Run instructions and model over the same operands, and compare codes and flags.

    Every instruction of the CPU runs as the process starts (nearest even, nothing flushed) and with DAZ and FTZ on, whole vectors
    and one element at a time.

    Parameters
    ----------
    names : sequence of str, optional
        Instructions, of those in `instructions()`; default all, with "cuda" those of GPUs.
    samples : int
        Operands for each instruction, rounding mode and setting of MXCSR, shared among the instruction's families.
        Instructions with 16-bit operands get all 65 536.
    seed : int
        Of the random operands, 0 to 2^64 - 1.
    exhaustive : bool
        Besides, all 2^32 operands of conversions from float32, as the process starts: one to a few minutes for each mode.
    device : str
        "cpu", or "cuda": scalar instructions of the first NVIDIA GPU, sm_90 or later, whose codes alone are compared, as they raise no flags.
    outcomes : list, optional
        Where to put results as they come, for a caller that may be interrupted.
    progress : callable, optional
        Called as progress(what, done, total) in operands.
    scheduler : str, optional
        What runs all 2^32 operands, with `exhaustive`: "threads", "processes", or the address of a cluster's scheduler, whose machines' own
        instructions are then checked. Needs the extra `dask`. Default: one after the other, here.
    manifest : path, optional
        With a scheduler, a folder where parts are entered that are done; what was interrupted goes on from there.

    Returns
    -------
    list of Outcome
        One for each instruction and mode. What the machine lacks is "not available".

    Raises
    ------
    ValueError, TypeError
        Naming the argument and what is accepted.
    """
    table = {row.name: row for row in instructions()}
    if device not in DEVICES:
        raise ValueError(f"device must be {' or '.join(map(repr, DEVICES))}, got {device!r}")
    samples, seed = check_whole("samples", samples, 1), check_seed("seed", seed)
    if scheduler is not None and not exhaustive:
        raise ValueError(f"scheduler must be None unless exhaustive, got {scheduler!r}")
    if manifest is not None and scheduler is None:
        raise ValueError(f"manifest must be None without a scheduler, got {manifest!r}")
    if isinstance(names, str):
        names = [names]
    for name in names or ():
        if name not in table:
            raise ValueError(f"names must be among {', '.join(map(repr, table))}, got {name!r}")
    results = outcomes if outcomes is not None else []
    have = features()
    all_rows = [row for row in table.values() if device == "cpu" or row.device == device]
    chosen = [table[name] for name in dict.fromkeys(names)] if names is not None else all_rows
    with _everything(scheduler, manifest) as spread:
        _check_rows(chosen, have, results, samples, seed, exhaustive, progress, spread, device)
    return results


Spread = Callable[[Instruction, str, Outcome, Callable[[int], None]], None]
"""spread(row, mode, outcome, report): all operands there are, into the outcome; report(so many are done)."""


@contextlib.contextmanager
def _everything(scheduler: str | None, manifest: str | os.PathLike[str] | None) -> Iterator[Spread]:
    """How all operands are run: one part after the other, or by a scheduler."""
    if scheduler is None:
        yield _one_by_one
        return
    from softfloat import dask

    folder = None if manifest is None else Path(manifest)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with dask.scheduled(scheduler) as options:

        def spread(row: Instruction, mode: str, outcome: Outcome, report: Callable[[int], None]) -> None:
            heading = {"instruction": row.name, "mode": mode, "part": CHUNK, "operands": SPACE}
            path = None if folder is None else folder / f"{row.name} {mode}.jsonl"
            work = functools.partial(_part, row.name, mode)
            parts = dask.sweep_tasks(
                work, SPACE // CHUNK, heading, manifest=path, progress=lambda done, _: report(done * CHUNK), **options
            )
            for part in parts:
                _add(outcome, part)

        yield spread


def _one_by_one(row: Instruction, mode: str, outcome: Outcome, report: Callable[[int], None]) -> None:
    for number in range(SPACE // CHUNK):
        _add(outcome, _part(row.name, mode, number))
        report((number + 1) * CHUNK)


def _part(name: str, mode: str, number: int) -> dict[str, Any]:
    """What came of one part of all operands, as a manifest keeps it."""
    row = next(row for row in instructions() if row.name == name)
    lacking = features().lacks(row.extensions)
    if lacking:
        raise ValueError(
            f"scheduler must have machines with {', '.join(lacking)} for {name}, and {platform.node()} has none"
        )
    outcome = Outcome(name, mode, "agrees")
    _compare(row, outcome, (np.arange(CHUNK, dtype=np.uint32) + np.uint32(number * CHUNK),), mode, False)
    found = {key: getattr(outcome, key) for key in ("cases", "mismatches", "flag_mismatches")}
    return found | {"examples": [dataclasses.astuple(x) for x in outcome.examples]}


def _add(outcome: Outcome, part: dict[str, Any]) -> None:
    for key in ("cases", "mismatches", "flag_mismatches"):
        setattr(outcome, key, getattr(outcome, key) + part[key])
    for setting, operands, *more in part["examples"][: EXAMPLES - len(outcome.examples)]:
        outcome.examples.append(Mismatch(setting, tuple(operands), *more))


def _check_rows(
    chosen: Sequence[Instruction],
    have: Features,
    results: list[Outcome],
    samples: int,
    seed: int,
    exhaustive: bool,
    progress: Callable[[str, int, int], None] | None,
    spread: Spread,
    device: str,
) -> None:
    for row in chosen:
        lacking = have.lacks(row.extensions)
        for mode in row.modes if not lacking and row.is_checked else ("",):
            outcome = Outcome(row.name, mode, "not available", reason=f"no {', '.join(lacking)} here" * bool(lacking))
            results.append(outcome)
            if lacking:
                continue
            if not row.is_checked:
                outcome.status, outcome.reason = "not checked", row.model.removeprefix("not checked: ")
                continue
            if row.device != device:
                outcome.status, outcome.reason = "not checked", f"it runs on device {row.device!r}"
                continue
            if row.tiles:
                _check_tiles(row, outcome, samples, seed, progress)
            elif row.scalar is not None:
                _check_scalar(row, outcome, samples, seed, progress)
            else:
                _check(row, outcome, mode, samples, seed, exhaustive, progress, spread)


def _check_tiles(
    row: Instruction, outcome: Outcome, samples: int, seed: int, progress: Callable[[str, int, int], None] | None
) -> None:
    """Tile products beside the model: codes alone, as the instruction raises no flags."""
    from softfloat.testing.hardware import tiles

    reason = tiles.permitted()
    if reason:
        outcome.status, outcome.reason = "not available", reason
        return
    started = time.perf_counter()
    random = np.random.default_rng([seed, *row.name.encode()])
    memory, fmt, _ = row.formats
    size = tiles.ROWS * tiles.ROWS
    each = -(-samples // (size * len(row.families)))
    outcome.status = "agrees"
    try:
        for family, _ in itertools.product(row.families, range(each)):
            a, b, c = tile_operands(fmt, memory, family, random, tiles.ROWS, tiles.TILE)
            found = np.asarray(tiles.product(row.name, a, b, c))
            expected, _ = bits.matmul(a, b, fmt, amx(fmt), c)
            nan = np.asarray(bits.isnan(found, memory)) & np.asarray(bits.isnan(expected, memory))
            wrong = (found != expected) & ~nan  # the published pseudo-code does not settle NaNs
            outcome.cases += size
            outcome.mismatches += int(wrong.sum())
            for i, j in np.argwhere(wrong)[: EXAMPLES - len(outcome.examples)]:
                operands = (int(c[i, j]), *a[i].tolist(), *b[:, j].tolist())
                outcome.examples.append(Mismatch(SETTINGS[0], operands, int(found[i, j]), int(expected[i, j]), 0, 0))
            if progress:
                progress(row.name, outcome.cases, each * size * len(row.families))
    finally:
        _settled(outcome, started)


def _check_scalar(
    row: Instruction, outcome: Outcome, samples: int, seed: int, progress: Callable[[str, int, int], None] | None
) -> None:
    """An instruction of a GPU beside the model: codes alone, as it raises no flags."""
    from softfloat.testing.hardware import cuda

    assert row.scalar is not None
    assert row.run_model is not None
    started = time.perf_counter()
    random = np.random.default_rng([seed, *row.name.encode()])
    each = -(-samples // len(row.families))
    outcome.status = "agrees"
    try:
        for family in row.families:
            drawn = drawn_operands(row, family, each, random)
            try:
                found = cuda.results(row.scalar, drawn)
            except (OSError, RuntimeError) as error:
                outcome.reason = str(error)
                return
            expected, _ = row.run_model(drawn, {})
            wrong = found != expected
            outcome.cases += found.size
            outcome.mismatches += int(wrong.sum())
            for i in np.flatnonzero(wrong)[: EXAMPLES - len(outcome.examples)]:
                operands = tuple(int(x[i]) for x in drawn)
                outcome.examples.append(Mismatch(SETTINGS[0], operands, int(found[i]), int(expected[i]), 0, 0))
            if progress:
                progress(row.name, outcome.cases, each * len(row.families))
        outcome.exhaustive = row.families == ("all",)
    finally:
        _settled(outcome, started)
        if outcome.reason:
            outcome.status = "not available"


def _check(
    row: Instruction,
    outcome: Outcome,
    mode: str,
    samples: int,
    seed: int,
    exhaustive: bool,
    progress: Callable[[str, int, int], None] | None,
    spread: Spread,
) -> None:
    started = time.perf_counter()
    random = np.random.default_rng([seed, *row.name.encode(), *mode.encode()])
    whole = exhaustive and len(row.formats) == 1 and row.formats[0].bits == 32 and not row.by_register
    each = -(-samples // len(row.families))
    total = SPACE * whole + len(row.families) * len(SETTINGS) * each
    title = f"{row.name} {mode}" if len(row.modes) > 1 else row.name
    outcome.status = "agrees"
    try:
        for flushing in (False, True):
            for family in row.families:
                for start in range(0, each, CHUNK):
                    drawn = drawn_operands(row, family, min(CHUNK, each - start), random)
                    _compare(row, outcome, drawn, mode, flushing)
                if progress:
                    progress(title, min(outcome.cases, total), total)
        if whole:
            before = outcome.cases
            spread(
                row, mode, outcome, lambda done: progress(title, min(before + done, total), total) if progress else None
            )
        outcome.exhaustive = whole or row.families == ("all",)
    finally:
        _settled(outcome, started)
