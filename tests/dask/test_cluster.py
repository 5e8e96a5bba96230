"""Two worker processes, one of them killed in the middle: the same bits, and nothing lost or counted twice."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import bits
from softfloat.accumulators import chunked, fma

pytest.importorskip("dask.array", reason="needs the extra 'dask'")
distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")

from softfloat import dask as soft  # noqa: E402 -- after the check


@pytest.mark.filterwarnings("ignore")  # of a cluster that loses a worker
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"rounding": "stochastic", "seed": 6}
    how, draw = chunked(16, fma("float16"), "float32"), np.random.default_rng(0)
    a, b = (softfloat.array(draw.normal(size=shape), softfloat.float16) for shape in ((20, 64), (64, 30)))
    with softfloat.environment(accumulator=how, **settings) as env:
        whole, flags = (a + 0.1) @ b, env.status.flags
    killed = tmp_path / "killed"
    space, multiply = ["float8_e5m2"] * 2, partial(bits.mul, fmt="float8_e5m2", **settings)

    def deadly(x: Any, y: Any, position: int) -> Any:
        if position == 20 * 1024 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return multiply(x, y, position=position)

    alone = soft.sweep(multiply, space, addressed=True, step=1024, scheduler="synchronous")
    cluster = distributed.LocalCluster(
        n_workers=2, processes=True, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL"
    )
    with cluster, distributed.Client(cluster) as client:
        found = soft.sweep(
            deadly, space, addressed=True, step=1024, name="mul", manifest=tmp_path / "sweep.jsonl", client=client
        )
        with softfloat.environment(accumulator=how, **settings):
            product = (soft.from_array(a, chunks=(6, 16)) + 0.1) @ soft.from_array(b, chunks=(32, 7))
        with softfloat.environment() as env:
            computed = product.compute()
            assert env.status.flags == flags
    assert killed.exists()
    assert found == alone
    entries = [json.loads(line)["task"] for line in (tmp_path / "sweep.jsonl").read_text().splitlines()[1:]]
    assert sorted(entries) == list(range(64))
    np.testing.assert_array_equal(computed.codes, whole.codes)
