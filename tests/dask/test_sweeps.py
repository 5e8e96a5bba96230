"""Sweeps over operand spaces: everything once, however often it is interrupted."""

from __future__ import annotations

import json
import signal
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softfloat import bits

pytest.importorskip("dask.array", reason="needs the extra 'dask'")

from softfloat import dask as soft

SPACE = ["float8_e5m2"] * 2
MUL = partial(bits.mul, fmt="float8_e5m2")
SYNC = {"scheduler": "synchronous"}


def broken(a: Any, b: Any) -> Any:
    codes, flags = MUL(a, b)
    return np.where((a == 0x3D) & (b >= 0xFE), 7, codes).astype(codes.dtype), flags


def test_every_pair_is_tried_once() -> None:
    tried = np.zeros((256, 256), int)

    def noted(a: Any, b: Any) -> Any:
        np.add.at(tried, (a, b), 1)
        return a

    found = soft.sweep(noted, SPACE, step=1000, **SYNC)
    assert found.elements == 65536
    assert (tried == 1).all()


def test_digests_depend_on_results_alone() -> None:
    found = soft.sweep(MUL, SPACE, step=5000, **SYNC)
    assert soft.sweep(MUL, SPACE, step=5000, scheduler="threads") == found
    assert soft.sweep(broken, SPACE, step=5000, **SYNC).digest != found.digest


@pytest.mark.parametrize("size", [999, 4096, 1 << 20])
def test_pieces_of_a_task_leave_no_trace(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def added(a: Any, b: Any, position: int = 0) -> Any:
        return bits.add(a, b, "float8_e4m3fn", rounding="stochastic", seed=1, position=position)[0], b

    found = soft.sweep(added, SPACE, addressed=True, step=5000, **SYNC)
    monkeypatch.setattr("softfloat.dask.sweeps.PIECE", size)
    assert soft.sweep(added, SPACE, addressed=True, step=5000, **SYNC) == found
    other = soft.sweep(broken, SPACE, expected=MUL, step=7777, **SYNC)
    assert [x.operands for x in other.examples] == [(0x3D, 0xFE), (0x3D, 0xFF)]


def test_results_of_one_type() -> None:
    with pytest.raises(
        ValueError, match=r"function must give the same types for all operands, got \['\|u1'\] and \['<u2'\]"
    ):
        soft.sweep(
            lambda a: a.astype(np.uint16) if a[0] > 9000 else a.astype(np.uint8), ["float16"], step=65536, **SYNC
        )


def test_a_comparison_shows_what_differs() -> None:
    found = soft.sweep(broken, SPACE, expected=MUL, step=7777, **SYNC)
    expected = [MUL(np.uint8(0x3D), np.uint8(b)) for b in (0xFE, 0xFF)]
    assert found.mismatches == 2
    assert [x.operands for x in found.examples] == [(0x3D, 0xFE), (0x3D, 0xFF)]
    assert [x.expected for x in found.examples] == [(int(code), int(flags)) for code, flags in expected]
    assert all(x.found[0] == 7 for x in found.examples)
    assert soft.sweep(MUL, SPACE, expected=MUL, step=1 << 14, **SYNC).mismatches == 0


def test_random_numbers_are_those_of_the_space() -> None:
    draws: dict[str, Any] = {"rounding": "stochastic", "seed": 4}
    every = np.arange(65536)
    whole = MUL((every >> 8).astype(np.uint8), (every & 255).astype(np.uint8), **draws)

    def expected(a: Any, b: Any, position: int = 0) -> Any:
        part = slice(position, position + a.size)
        return tuple(x[part] for x in whole)

    found = soft.sweep(partial(MUL, **draws), SPACE, expected=expected, addressed=True, step=4099, **SYNC)
    assert found.mismatches == 0


def test_an_interrupted_sweep_goes_on(tmp_path: Path) -> None:
    path, calls = tmp_path / "sweep.jsonl", [0]

    def interrupted(a: Any, b: Any) -> Any:
        calls[0] += 1
        if calls[0] == 40:
            raise KeyboardInterrupt
        return MUL(a, b)

    whole = soft.sweep(MUL, SPACE, step=1024, **SYNC)
    with pytest.raises(KeyboardInterrupt):
        soft.sweep(interrupted, SPACE, step=1024, manifest=path, name="mul", **SYNC)
    done = len(path.read_text().splitlines()) - 1
    assert done == 32
    with path.open("a") as file:
        file.write('{"task": 33, "dig')  # what a crash leaves
    calls[0] = 100
    assert soft.sweep(interrupted, SPACE, step=1024, manifest=path, name="mul", **SYNC) == whole
    assert calls[0] == 100 + 64 - done
    entries = [json.loads(line)["task"] for line in path.read_text().splitlines()[1:]]
    assert sorted(entries) == list(range(64))
    assert soft.sweep(interrupted, SPACE, step=1024, manifest=path, name="mul", **SYNC) == whole
    assert calls[0] == 100 + 64 - done
    for other in ({"name": "add"}, {"step": 512}, {"addressed": True}):
        with pytest.raises(ValueError, match="is that of another sweep"):
            soft.sweep(MUL, SPACE, manifest=path, **{"step": 1024, "name": "mul", **other}, **SYNC)


@pytest.mark.exhaustive
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_lost_processes_are_replaced(tmp_path: Path) -> None:
    killed = tmp_path / "killed"

    def work(number: int) -> int:
        import os
        import signal

        if number == 35 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number**2

    manifest, options = tmp_path / "squares.jsonl", {"scheduler": "processes", "num_workers": 2}
    with pytest.raises(BrokenProcessPool):
        soft.sweep_tasks(work, 40, "squares", manifest=manifest, retries=0, **options)
    assert len(manifest.read_text().splitlines()) == 33
    killed.unlink()
    assert soft.sweep_tasks(work, 40, "squares", manifest=manifest, **options) == [n**2 for n in range(40)]
    assert killed.exists()
    entries = [json.loads(line)["task"] for line in manifest.read_text().splitlines()[1:]]
    assert sorted(entries) == list(range(40))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"operands": []}, "operands must be one format or more"),
        ({"operands": ["float32"] * 2}, "at most 2\\^62"),
        ({"function": 3}, "must be callable"),
        ({"step": 0}, "step must be a positive integer"),
        ({"function": lambda a, b: a[:3]}, "function must give arrays of numbers"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    given = {"function": MUL, "operands": SPACE, **arguments}
    with pytest.raises((TypeError, ValueError), match=message):
        soft.sweep(**given, **SYNC)
