"""The faster loops against the plain ones: same codes, same flags, on random bits, on numbers, at every threshold."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from faster import SIZE, both, same, singles
from operands import CUSTOM, operands
from softfloat.kernels import fast, spec

from softfloat import ROSTER, Format, bits, engine

TARGETS = [fmt for fmt in (*ROSTER.values(), *CUSTOM) if fmt.has_nan]
RULES = [
    {"tininess": tininess, "overflow": overflow}
    for tininess, overflow in itertools.product(("after", "before"), ("infinity", "saturate"))
]


@pytest.mark.parametrize("mode", ["nearest_even", "stochastic"])
@pytest.mark.parametrize("fmt", TARGETS, ids=str)
def test_convert(monkeypatch: pytest.MonkeyPatch, fmt: Format, mode: str) -> None:
    x = singles(fmt, 1)
    for rule in RULES:
        options = {"rounding": mode, **rule}
        if mode == "stochastic":
            options |= {"seed": 5, "stream": 2, "sr_bits": 24 if rule["tininess"] == "after" else None}
        same(both(monkeypatch, lambda o=options: bits.encode(x, fmt, **o)))
        together, plain = both(monkeypatch, lambda o=options: bits.encode(x, fmt, flags="any", **o))
        assert np.array_equal(together[0], plain[0])
        assert together[1] == plain[1]
        for part in np.array_split(np.sort(np.abs(x)), 40):  # flags of parts that raise only some
            together, plain = both(monkeypatch, lambda o=options, p=part: bits.encode(p, fmt, flags="any", **o))
            assert together[1] == plain[1], (part[0], part[-1], options)


@pytest.mark.parametrize("width", [16, 24, 52])
@pytest.mark.parametrize("name", ["float16", "float8_e5m2", "float8_e4m3fn"])
def test_the_random_number_is_compared_to_its_last_bit(name: str, width: int) -> None:
    """float32 numbers next to the threshold of their position, on either side: what the first 16 random bits leave open."""
    fmt = ROSTER[name]
    threshold = 1 - bits.random_bits(1 << 16, seed=3, sr_bits=width) / 2.0**width
    nearest = threshold.astype(np.float32)
    above = np.where(nearest >= threshold, nearest, np.nextafter(nearest, np.float32(2)))
    below = np.where(nearest < threshold, nearest, np.nextafter(nearest, np.float32(0)))
    for fractions, expected in ((above, 1), (below, 0)):
        x = np.where(fractions < 1, fractions, np.float32(0.5)) * np.float32(fmt.smallest_subnormal)
        codes, flags = bits.encode(x, fmt, rounding="stochastic", seed=3, sr_bits=width)
        settled = fractions < 1
        assert settled.sum() > 60_000
        assert (codes[settled] == expected).all()
        assert (flags == 3).all()


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div", "fma"])
def test_half_arithmetic(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    fmt = ROSTER["float16"]
    arity = 3 if operation == "fma" else 2
    for seed, rule in enumerate(RULES):
        columns = operands(fmt, 8 * SIZE, arity, seed)
        same(both(monkeypatch, lambda c=columns, r=rule: getattr(bits, operation)(*c, fmt, **r)))
        together, plain = both(
            monkeypatch, lambda c=columns, r=rule: getattr(bits, operation)(*(x[:9] for x in c), fmt, flags="any", **r)
        )
        assert together[1] == plain[1]


def test_the_faster_loops_are_chosen() -> None:
    """Where they serve; elsewhere this would compare the plain loops with themselves."""

    def family(operation: str, source: str, target: str, **rule: object) -> str:
        return engine.fast_family(
            operation, ROSTER[source].spec, ROSTER[target].spec, spec.Rule(conversion=operation == "convert", **rule)
        )

    halves = "half" if fast.has_f16c() else ""
    assert family("add", "float16", "float16") == halves
    assert family("convert", "float32", "float16") == (halves or "narrow")
    assert family("convert", "float32", "bfloat16") == "bfloat16"
    assert family("convert", "float32", "float8_e4m3fn") == "narrow"
    assert family("convert", "float32", "float16", rounding=spec.Rounding.STOCHASTIC) == "narrow"
    assert family("add", "float16", "float16", daz=True) == ""
    assert family("convert", "float32", "float16", nan="x86") == ""
