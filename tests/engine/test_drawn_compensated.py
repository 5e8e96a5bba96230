"""Compensated sums rounded stochastically, against the plain loop: every operation of a method has a random number of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import faster
import numpy as np
import pytest
from faster import SERVED, by_threads, same
from unit_cases import E4M3, E5M2, E5M6, HALF, SINGLE, drawn

from softfloat import Format, bits
from softfloat.accumulators import Accumulator, chunked, compensated
from softfloat.accumulators.accumulator import COMPENSATIONS
from softfloat.engine import lines, plain, products, unit_ways

METHODS = pytest.mark.parametrize("method", COMPENSATIONS)
TF32, FNUZ = "tfloat32", "float8_e4m3fnuz"
OPTIONS: list[tuple[Format | str, Format | str, dict[str, Any]]] = [
    (HALF, HALF, {}),
    (HALF, HALF, {"sr_bits": 8, "ftz": True}),
    (HALF, SINGLE, {"daz": True, "out_format": E5M2}),
    ("bfloat16", "bfloat16", {"sr_bits": 17}),
    (SINGLE, SINGLE, {}),
    (SINGLE, HALF, {"tininess": "before"}),
    (SINGLE, "bfloat16", {"sr_bits": 1}),
    (E5M2, HALF, {"overflow": "saturate"}),
    (E4M3, E4M3, {"overflow": "nan"}),
    ("float6_e3m2fn", "float6_e3m2fn", {}),  # whose overflows are its largest number, under any rule
    (TF32, HALF, {"nan": "x86"}),
    (FNUZ, E5M2, {}),
    (E5M6, E5M6, {"daz": True, "ftz": True, "sr_bits": 13}),
]
SERVING = pytest.mark.parametrize(("sums", "fmt", "options"), OPTIONS, ids=repr)


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sums have their own loop here, too."""
    monkeypatch.setattr(unit_ways, "LEAST_LINE", 0)


def both_ways(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], *given: Any, **options: Any) -> None:
    """In a line, and by the plain loop."""
    faster.both_ways(
        monkeypatch, function, *given, **{"rounding": "stochastic", "seed": 11, "stream": 1 << 33, **options}
    )


@pytest.mark.sampled(9)
@METHODS
@SERVING
def test_sums(
    method: str, sums: Format | str, fmt: Format | str, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any length and number, in pieces; numbers about 1, tiny and large; sums so far; what additions did; grids, whose outputs become a line."""
    monkeypatch.setattr(lines, "PIECE", 1 << 12)
    monkeypatch.setattr(lines, "RECORDED", 1 << 10)
    monkeypatch.setattr(products, "SPREAD", 1 << 9)
    how, kind, rng = (
        compensated(sums, method),
        Format.from_name(fmt) if isinstance(fmt, str) else fmt,
        np.random.default_rng(71),
    )
    for outputs, length, scale in ((1, 1, 1.0), (3, 70, 2.0**-9), (130, 17, 1.0), (140, 24, 100.0)):
        x, y = drawn(rng, kind, (outputs, length), scale), drawn(rng, kind, (outputs, length), scale)
        c = drawn(rng, how.partials, (outputs,), scale * scale)
        both_ways(monkeypatch, bits.vecdot, x, y, fmt, how, **options)
        both_ways(monkeypatch, bits.vecdot, x, y, fmt, how, c, **options)
        both_ways(monkeypatch, bits.vecdot, x, y, fmt, how, c, count=True, **options)
        both_ways(monkeypatch, bits.cumsum, x, fmt, how, 1, **options)
        both_ways(monkeypatch, bits.sum, x, fmt, how, 1, **options)
    both_ways(monkeypatch, bits.matmul, x, y[:19].T, fmt, how, **options)
    both_ways(monkeypatch, bits.matmul, x[:30], y[:19].T, fmt, how, count=True, **options)
    both_ways(monkeypatch, bits.matmul, x, y[0], fmt, how, **options)


@pytest.mark.sampled(9)
@METHODS
@SERVING
def test_what_stays_for_the_plain_loop(
    method: str, sums: Format | str, fmt: Format | str, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Specials, and sums that overflow, in some outputs; segments, whose random numbers go on."""
    how, kind, rng = (
        compensated(sums, method),
        Format.from_name(fmt) if isinstance(fmt, str) else fmt,
        np.random.default_rng(72),
    )
    x, y = drawn(rng, kind, (150, 20), 1.0), drawn(rng, kind, (150, 20), 1.0)
    special, _ = bits.encode([np.inf, np.nan, kind.max, kind.tiny], fmt, overflow="saturate")
    for row in range(0, 150, 9):
        x[row, row % 20] = special[row % 4]
        y[row, row % 20] = special[row // 2 % 4]
    both_ways(monkeypatch, bits.vecdot, x, y, fmt, how, count=True, **options)
    both_ways(monkeypatch, bits.cumsum, x, fmt, how, 1, **options)
    both_ways(monkeypatch, bits.vecdot, x, y, fmt, chunked(6, how, SINGLE), **options)


@METHODS
def test_bits_that_sixteen_leave_open(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of some millions of roundings, a hundred or so."""
    rng = np.random.default_rng(73)
    for sums in (HALF, SINGLE, "bfloat16"):
        x, _ = bits.encode(rng.standard_normal((4000, 200)), SINGLE)
        both_ways(monkeypatch, bits.vecdot, x, x[::-1].copy(), SINGLE, compensated(sums, method), seed=5)
        few = x.reshape(-1)[: 3 << 16].reshape(3, 1 << 16)  # which are summed one by one
        both_ways(monkeypatch, bits.vecdot, few, few[:, ::-1].copy(), SINGLE, compensated(sums, method), seed=5)


@SERVED
def test_no_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes twenty times longer, and for a matrix times a vector a thousand."""
    called: list[Any] = []
    monkeypatch.setattr(plain, "run", lambda *_: called.append(1))
    rng = np.random.default_rng(74)
    a, b = (drawn(rng, Format.from_name(HALF), (130, 130), 1.0) for _ in range(2))
    for method in COMPENSATIONS:
        for other in (b, b[0], b[:, :3]):
            for count in (False, True):
                bits.matmul(a, other, HALF, compensated(HALF, method), rounding="stochastic", seed=1, count=count)
    assert not called


@pytest.mark.parametrize("how", [compensated(HALF), compensated(SINGLE, "two_term")])
def test_threads_and_blocks(how: Accumulator) -> None:
    """The same bits for any number of threads, and for some rows as for all."""
    a, b = (drawn(np.random.default_rng(75), Format.from_name(HALF), (90, 90), 1.0) for _ in range(2))
    drawing = {"rounding": "stochastic", "seed": 3}
    found = by_threads(lambda: bits.matmul(a, b, HALF, how, **drawing))
    same(found)
    some = bits.matmul(a[:7], b, HALF, how, **drawing)
    same((some, (found[0][0][:7], found[0][1][:7])))
