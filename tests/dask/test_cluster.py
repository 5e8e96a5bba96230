"""Two worker processes of a cluster, one of them killed in the middle: the same bits, flags, counts and traps, and nothing counted twice."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softfloat
from softfloat import bits
from softfloat.accumulators import chunked, fma

pytest.importorskip("dask.array", reason="needs the extra 'dask'")
distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")

from softfloat import dask as soft  # noqa: E402 -- after the check

pytestmark = pytest.mark.filterwarnings("ignore")  # of a cluster that loses a worker

SR: dict[str, Any] = {"rounding": "stochastic", "seed": 6}
HOW = chunked(16, fma("float16"), "float32")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    made = distributed.LocalCluster(
        n_workers=2, processes=True, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL"
    )
    with made:
        yield made


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster) as found:
        yield found


def numbers(*shape: int, seed: int = 0) -> softfloat.SoftArray:
    return softfloat.array(np.random.default_rng(seed).normal(size=shape), "float16")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_worker_changes_nothing(tmp_path: Path, client: Any) -> None:
    killed = tmp_path / "killed"
    space, multiply = ["float8_e5m2"] * 2, partial(bits.mul, fmt="float8_e5m2", **SR)

    def deadly(x: Any, y: Any, position: int) -> Any:
        if position == 20 * 1024 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return multiply(x, y, position=position)

    alone = soft.sweep(multiply, space, addressed=True, step=1024, scheduler="synchronous")
    manifest, progress = tmp_path / "sweep.jsonl", list[tuple[int, int]]()
    found = soft.sweep(
        deadly,
        space,
        addressed=True,
        step=1024,
        name="mul",
        manifest=manifest,
        progress=lambda *at: progress.append(at),
    )
    assert killed.exists()
    assert found == alone
    assert progress == sorted(set(progress))
    assert (progress[0], progress[-1]) == ((0, 64), (64, 64))
    entries = [json.loads(line)["task"] for line in manifest.read_text().splitlines()[1:]]
    assert sorted(entries) == list(range(64))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("kill", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_products_outlive_a_worker(tmp_path: Path, client: Any, kill: bool) -> None:
    """Codes, flags and counts of a product, one of whose operands kills the first worker that makes it."""
    a, b, killed = numbers(20, 64), numbers(64, 30, seed=1), tmp_path / "killed"
    with softfloat.environment(**SR):
        made = a + 0.1
        whole, flags, counts = bits.matmul(made.codes, b.codes, "float16", HOW, out_format="float16", count=True, flags="any",
                                           stream=1, **SR)  # fmt: skip

    def deadly(codes: Any) -> Any:
        if kill and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return codes

    with softfloat.environment(**SR):
        left = soft.from_array(a, chunks=(6, 16)) + 0.1
        given = soft.from_codes(
            left.codes.map_blocks(deadly, dtype=np.uint16, meta=np.empty((0, 0), np.uint16)), "float16"
        )
        product, counted = soft.matmul(given, soft.from_array(b, chunks=(32, 7)), HOW, count=True)
    done: list[tuple[int, int]] = []
    with softfloat.environment() as env:
        found = product.compute(progress=lambda *at: done.append(at))
        assert env.status.flags == flags
    assert killed.exists() == kill
    np.testing.assert_array_equal(found.codes, whole)
    found_counts = counted.compute()
    for name in ("additions", "overflowed", "inexact", "swamped", "smallest", "largest"):
        np.testing.assert_array_equal(getattr(found_counts, name), getattr(counts, name))
    assert done[-1] == (done[-1][1],) * 2
    assert done[-1][1] > 20


def test_arrays_are_kept_and_traps_come_back(client: Any) -> None:
    codes = np.full((6, 8), 0x3C00, np.uint16)
    codes[4, 5] = 0
    x = soft.from_codes(codes, "float16", (2, 3))
    with softfloat.environment(traps="DIVBYZERO"):
        lazy = 1.0 / x
    with pytest.raises(softfloat.FloatingPointTrap) as caught:
        lazy.compute()
    assert caught.value.index == (4, 5)
    assert caught.value.operands == (0x3C00, 0)
    kept = (1.0 / x).persist()
    with softfloat.environment() as env:
        assert kept[4:, 5:6].compute().codes.tolist() == [[0x7C00], [0x3C00]]
        assert softfloat.Flags.DIVBYZERO in env.status


def test_a_scheduler_by_its_address(cluster: Any) -> None:
    with soft.scheduled(cluster.scheduler_address) as options:
        assert soft.sweep_tasks(lambda number: number**2, 5, "squares", **options) == [0, 1, 4, 9, 16]
        seen: list[int] = []
        x = soft.from_codes(np.full(6, 0x4000, np.uint16), "float16", 2)
        found = (x * x).compute(scheduler=options["client"], progress=lambda done, total: seen.append(done))
        assert found.values.tolist() == [4.0] * 6
        assert seen == list(range(len(seen)))
        assert len(seen) > 3
    with pytest.raises(ValueError, match="must be 'threads'"), soft.scheduled("nowhere"):
        pass


def cut(data: st.DataObject, size: int, unit: int = 1) -> tuple[int, ...]:
    inner = data.draw(st.sets(st.integers(1, max(1, (size - 1) // unit)), max_size=3))
    return tuple(np.diff([0, *sorted(at * unit for at in inner if at * unit < size), size]).tolist())


@pytest.mark.exhaustive
@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes", "distributed"])
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_chunks_on_every_scheduler(client: Any, scheduler: str, data: st.DataObject) -> None:
    """Elementwise work, a product and a convolution, in random chunks."""
    x, y = numbers(7, 48), numbers(48, 11, seed=1)
    along = cut(data, 48, 16)
    with softfloat.environment(accumulator=HOW, **SR) as env:
        whole, flags = (x * 1.1) @ y - 0.3, env.status.flags
    with softfloat.environment(accumulator=HOW, **SR):
        lazy = (soft.from_array(x, chunks=(cut(data, 7), along)) * 1.1) @ soft.from_array(
            y, chunks=(along, cut(data, 11))
        ) - 0.3
    with softfloat.environment() as env:
        np.testing.assert_array_equal(lazy.compute(scheduler=scheduler).codes, whole.codes)
        assert env.status.flags == flags
