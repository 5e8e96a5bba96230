"""The faster loops and the plain ones, called alike."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from operands import operands
from softfloat.kernels.sums import whole

from softfloat import Format, bits, get_num_threads, set_num_threads
from softfloat.engine import elementwise
from softfloat.engine.parameters import fast

SIZE = 1 << 15
SERVED = pytest.mark.skipif(fast().jit.DISABLED, reason="nothing is compiled")
"""Of tests that ask which loops serve."""


def singles(fmt: Format, seed: int) -> np.ndarray:
    """float32: all random bits; numbers of the format's size; and every neighbourhood of its values and midpoints."""
    random = np.random.default_rng(seed)
    anything = random.integers(0, 2**32, SIZE, dtype=np.uint32).view(np.float32)
    with np.errstate(over="ignore"):
        sized = (random.standard_normal(SIZE) * fmt.tiny * 2.0 ** random.integers(-12, 24, SIZE)).astype(np.float32)
    values = bits.decode(operands(fmt, SIZE // 8, 1, seed)[0], fmt)
    values = values[np.isfinite(values)]
    ladder = np.sort(np.unique(values))
    middle = (ladder[1:] + ladder[:-1]) / 2
    borders = [fmt.max + (fmt.max - fmt.max / 2) * fmt.eps, fmt.tiny * (1 - fmt.eps / 4)]
    with np.errstate(over="ignore"):
        centres = np.concatenate([values, middle, borders]).astype(np.float32)
    steps = random.integers(-2, 3, centres.size).astype(np.int32)
    near = (centres.view(np.int32) + steps).view(np.float32)
    return np.concatenate([anything, sized, centres, near])


def both(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> tuple[Any, ...]:
    """(fast, plain) results."""
    results = []
    for switch in (True, False):
        monkeypatch.setattr(elementwise, "FAST", switch)
        results.append(call())
    return tuple(results)


def by_threads(call: Callable[[], Any]) -> tuple[Any, ...]:
    """Its results by one thread, and by two."""
    before, results = get_num_threads(), []
    try:
        for threads in (1, 2):
            set_num_threads(threads)
            results.append(call())
    finally:
        set_num_threads(before)
    return tuple(results)


def same(pair: tuple[Any, ...]) -> None:
    """Fails where codes or flags differ, and says where."""
    (codes, flags), (plain_codes, plain_flags) = pair
    wrong = np.flatnonzero((codes != plain_codes) | (flags != plain_flags))
    assert not wrong.size, (
        wrong[:5],
        codes[wrong[:5]],
        plain_codes[wrong[:5]],
        flags[wrong[:5]],
        plain_flags[wrong[:5]],
    )


def same_counts(pair: tuple[Any, ...]) -> None:
    """Fails where codes, flags or counts differ."""
    for one, other in zip(*pair, strict=True):
        parts = [vars(x).values() if isinstance(x, bits.Counts) else [x] for x in (one, other)]
        for found, plain in zip(*parts, strict=True):
            np.testing.assert_array_equal(found, plain)


def both_ways(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a call gives by whatever way serves it, whose codes, flags and counts, if there are any, are the plain loop's."""
    quick = function(*arguments, **options)
    with monkeypatch.context() as patch:
        patch.setattr(elementwise, "FAST", False)
        slow = function(*arguments, **options)
    same_counts((quick, slow))
    return quick


def left_to(monkeypatch: pytest.MonkeyPatch, way: str) -> list[int]:
    """How many elements each call of a way of `engine.elementwise` gets from now on."""
    left: list[int] = []
    kept = getattr(elementwise, way)

    def watched(job: elementwise.Job) -> elementwise.Work:
        work = kept(job)

        def counted(start: int, stop: int) -> int:
            left.append(stop - start)
            return int(work(start, stop))

        return counted

    monkeypatch.setattr(elementwise, way, watched)
    return left


def summed_again(x: float, y: float, noise: int, known: tuple[np.ndarray, np.ndarray]) -> tuple[float, int]:
    """(x + y, flags) by all random bits, of which the first 16 are given, as loops ask for it where these leave it open."""
    integers, floats, total = (
        numbers.ctypes.data_as(ctypes.POINTER(kind))
        for numbers, kind in zip((*known, np.zeros(1)), (ctypes.c_int64, ctypes.c_double, ctypes.c_double), strict=True)
    )
    raised = whole._rounding(whole.RUNNING, y, 1.0, x, noise, 0, 0, integers, floats, 52, 0, 0, total)
    return float(total[0]), int(raised)
