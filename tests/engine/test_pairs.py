"""Results of two short codes come from tables, and are those of the plain loop."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from faster import both, same
from operands import CUSTOM

import softfloat
from softfloat import ROSTER, Format, bits
from softfloat.engine import elementwise

FORMATS = [fmt for fmt in (*ROSTER.values(), *CUSTOM) if fmt.bits <= 8]
OPERATIONS = ["add", "sub", "mul", "div", "remainder", "hypot", "fmod", "modulo", "floor_divide"]
RULES: list[dict[str, Any]] = [
    {"rounding": "nearest_even"},
    {"rounding": "nearest_away", "tininess": "before", "nan": "x86"},
    {"rounding": "toward_zero", "overflow": "saturate", "daz": True},
    {"rounding": "toward_positive", "ftz": True, "nan": "arm"},
    {"rounding": "toward_negative", "overflow": "nan", "nan": "ipu"},
    {"rounding": "to_odd", "tininess": "before", "ftz": True, "daz": True, "nan": "nvidia"},
]


def pairs(fmt: Format) -> list[np.ndarray]:
    """Every pair of codes, as often as makes a table worth its while."""
    every = np.arange(2**fmt.bits, dtype=fmt.dtype)
    a, b = np.repeat(every, every.size), np.tile(every, every.size)
    times = -(-elementwise.WORTH_A_TABLE // a.size)
    return [np.tile(a, times), np.tile(b, times)]


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_every_pair(monkeypatch: pytest.MonkeyPatch, fmt: Format) -> None:
    columns = pairs(fmt)
    for i, (operation, rule) in enumerate(itertools.product(OPERATIONS, RULES)):
        if (rule.get("overflow") == "nan" and not fmt.has_nan) or (operation not in ("add", "mul") and i % 4):
            continue
        call = getattr(bits, operation)
        same(both(monkeypatch, lambda c=call, r=rule: c(*columns, fmt, **r)))
        together, plain = both(monkeypatch, lambda c=call, r=rule: c(*columns, fmt, flags="any", **r))
        assert np.array_equal(together[0], plain[0])
        assert together[1] == plain[1]


def test_a_table_is_made_once_for_each_rule_and_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    fmt = ROSTER["float8_e4m3fn"]
    a, b = pairs(fmt)
    elementwise._pairs.cache_clear()
    for _ in range(3):
        bits.mul(a, b, fmt)
        bits.mul(a, b, fmt, flags="any")
    assert elementwise._pairs.cache_info().misses == 1
    bits.mul(a, b, fmt, rounding="toward_zero")
    bits.add(a, b, fmt)
    assert elementwise._pairs.cache_info().misses == 3
    few = elementwise.WORTH_A_TABLE - 1
    bits.sub(a[:few], b[:few], fmt)
    bits.add(a, b, fmt, rounding="stochastic", seed=1)
    bits.pow(a[:few], b[:few], fmt)
    assert elementwise._pairs.cache_info().misses == 3
    bits.pow(a, b, fmt)
    bits.pow(b, a, fmt, flags="any")
    assert elementwise._pairs.cache_info().misses == 4
    assert elementwise._pairs.cache_info().maxsize is not None
    known = fmt.spec, fmt.spec, elementwise.Rule(), 0.0
    assert not elementwise._pairs(elementwise._plain_work, "mul", *known).flags.writeable


def test_threads_and_layout() -> None:
    fmt = ROSTER["float8_e5m2"]
    a, b = (np.resize(x, (1 << 17) + 77) for x in pairs(fmt))
    threads = softfloat.get_num_threads()
    try:
        softfloat.set_num_threads(1)
        expected = bits.div(a, b, fmt, rounding="to_odd")
        softfloat.set_num_threads(2)
        found = bits.div(a, b, fmt, rounding="to_odd")
    finally:
        softfloat.set_num_threads(threads)
    same((found, expected))
    same((bits.div(np.repeat(a, 2)[::2], b, fmt, rounding="to_odd"), expected))
    own = a.copy()
    bits.div(own, b, fmt, rounding="to_odd", out=own)
    assert np.array_equal(own, expected[0])
