"""The statistic of stochastic rounding: the counts of whole arrays, whatever the blocks; and that it can fail."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from softfloat import bits

pytest.importorskip("dask.array", reason="needs the extra 'dask'")

from softfloat.examples import rounding_statistic
from softfloat.examples.rounding_statistic import main, statistic

SYNC = {"scheduler": "synchronous"}


@pytest.mark.parametrize("chunk", [256, 1024, 1 << 14])
def test_counts_are_those_of_one_call(chunk: int) -> None:
    count = 1 << 13
    numbers = (1 + np.arange(count) % 256 * 2.0**-18).astype(np.float32)
    codes, flags = bits.encode(numbers, "float16", rounding="stochastic", seed=9, flags="any")
    found = statistic(count, chunk, 9, **SYNC)
    np.testing.assert_array_equal(found.up, (codes == 0x3C01).reshape(-1, 256).sum(axis=0))
    assert found.flags == flags == 1
    assert (found.up > 0).sum() > 200
    assert abs(found.deviations) < 4


def test_rounding_to_nearest_is_told_apart(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "65536", "--chunk", "16384", "--scheduler", "synchronous"]) == 0
    assert "65 536 numbers" in capsys.readouterr().out
    real = rounding_statistic.environment

    def nearest(**settings: Any) -> Any:
        return real(**settings | {"rounding": "nearest_even"})

    monkeypatch.setattr(rounding_statistic, "environment", nearest)
    assert main(["--count", "65536", "--chunk", "16384", "--scheduler", "synchronous", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["deviations"] > 1000
    assert document["peak_bytes"] > 1 << 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--count", "1000"], "count must be a positive multiple of 256, got 1000"),
        (["--chunk", "3"], "chunk must be a positive multiple of 256, got 3"),
        (["--scheduler", "nobody"], "scheduler must be 'threads'"),
    ],
)
def test_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())
