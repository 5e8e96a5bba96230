"""Small elementwise calls: what they give, and how they are refused, is what the long way does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faster import SERVED
from operands import CUSTOM, operands
from softfloat.kernels import words
from ways import both, served

import softfloat
from softfloat import Environment, Format, bits
from softfloat.bits.functions import ways
from softfloat.engine import calls, elementwise

HALF = softfloat.float16
FORMATS = [
    HALF,
    softfloat.bfloat16,
    softfloat.float32,
    softfloat.float8_e4m3fn,
    softfloat.float4_e2m1fn,
    softfloat.float8_e8m0fnu,
    *CUSTOM[2:5],
]
FUNCTIONS: dict[str, tuple[Callable[..., Any], int, dict[str, Any]]] = {
    **{name: (getattr(bits, name), 2, {}) for name in ("add", "sub", "mul", "div", "remainder")},
    "sqrt": (bits.sqrt, 1, {}),
    "fma": (bits.fma, 3, {}),
    **{name: (getattr(bits, name), 2, {}) for name in ("fmod", "modulo", "floor_divide", "hypot")},
    **{name: (getattr(bits, name), 1, {}) for name in ("tanh", "radians")},
    "round_to_integral": (bits.round_to_integral, 1, {}),
    "round_to_integral, quietly": (bits.round_to_integral, 1, {"exact": False}),
    **{name: (getattr(bits, name), 2, {}) for name in ("eq", "lt", "le")},
    "eq, signalling": (bits.eq, 2, {"signalling": True}),
    "lt, quiet": (bits.lt, 2, {"signalling": False}),
}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"rounding": "toward_zero", "overflow": "saturate"},
    {"rounding": "to_odd", "nan": "arm"},
    {"nan": "x86", "tininess": "before"},
    {"nan": "ipu", "daz": True, "ftz": True, "overflow": "nan"},
    {"infinite_input": "nan"},
    {"rounding": "stochastic", "seed": 3},
    {"rounding": "stochastic", "seed": 3, "sr_bits": 5, "overflow": "saturate"},
    {"rounding": "stochastic", "seed": 3, "generator": "xoroshiro128aox"},
    {"rounding": "stochastic"},
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("setting", range(len(SETTINGS)))
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_same_results_and_refusals(fmt: Format, setting: int) -> None:
    settings = SETTINGS[setting]
    columns = operands(fmt, 60, 3, seed=setting)
    how: list[dict[str, Any]] = [settings]
    if not (settings.get("overflow") == "nan" and not fmt.has_nan):
        how += [{"environment": Environment(**settings)}, {"environment": Environment(**settings).settings}]
    for number, (name, (function, arity, fixed)) in enumerate(FUNCTIONS.items()):
        given = columns[:arity]
        operand_sets: list[tuple[Any, ...]] = [
            tuple(given),
            tuple(int(x[number]) for x in given),
            tuple(x[:12].reshape(3, 4) for x in given),
            tuple(x[:12].reshape(3, 4).T for x in given),
            tuple(x[::2] for x in given),
            tuple(x[:0] for x in given),
            tuple(x[3:4].reshape(()) for x in given),
            tuple(x[:6] if i else x[:1] for i, x in enumerate(given)),
            tuple(x[5] for x in given),
            tuple(x[:12].reshape(3, 1, 4)[:, :: i + 1] for i, x in enumerate(given)),
            tuple(x[:12].reshape(3, 4) if i else int(x[2]) for i, x in enumerate(given)),
            tuple(x[:12].reshape((3, 1, 4) if i else (1, 12, 1)) for i, x in enumerate(given)),
        ]
        for turn, each in enumerate(operand_sets):
            options = ({}, {"flags": "any"}, {"stream": 7, "flags": "each"})[(turn + number) % 3]
            asked = how[turn % len(how)]
            quick, long = both(function, *each, fmt, **fixed, **asked, **options)
            assert quick == long, (name, options, asked, turn)


def floats(dtype: Any, count: int, seed: int) -> np.ndarray[Any, Any]:
    """Of all magnitudes, with infinities, NaNs (some of them signalling), zeros and subnormals among them."""
    rng = np.random.default_rng(seed)
    wide = rng.integers(0, 1 << 8 * np.dtype(dtype).itemsize, count, dtype=np.uint64)
    special = wide.astype(np.dtype(dtype).str.replace("f", "u")).view(dtype)
    near = (rng.uniform(-1, 1, count) * 2.0 ** rng.integers(-30, 16, count)).astype(dtype)
    return np.where(rng.random(count) < 0.3, special, near)


@pytest.mark.parametrize("setting", range(len(SETTINGS)))
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_same_conversions(fmt: Format, setting: int) -> None:
    settings = SETTINGS[setting]
    for turn, dtype in enumerate((np.float16, np.float32, np.float64, ">f4", np.int32, np.float32)):
        x = np.arange(-24, 24, dtype=np.int32) * 1000 if dtype == np.int32 else floats(dtype, 48, turn)
        for each in (x, x.reshape(4, 12), x.reshape(4, 12).T, x[::3], x[:0], x[3:4].reshape(()), x[5]):
            options = ({}, {"flags": "any"}, {"stream": 7})[(turn + each.ndim + each.size) % 3]
            quick, long = both(bits.encode, each, fmt, **settings, **options)
            assert quick == long, (dtype, options)
    for number in (1.1, -0.0, float("inf"), float("nan"), 0, -3, 2**53, 2**53 + 1, -(2**70), True, "1", None, [1.5, 2]):
        quick, long = both(bits.encode, number, fmt, **settings)
        assert quick == long, number
    for source in FORMATS:
        (codes,) = operands(source, 40, 1, seed=setting)
        for each in (codes, codes.reshape(4, 10).T, codes[:0], int(codes[7]), codes[3]):
            quick, long = both(bits.convert, each, source, fmt, **settings)
            assert quick == long, source


def test_many_at_once() -> None:
    """Above the size of small calls, and just below."""
    x = floats(np.float32, calls.SMALL + 1, 0)
    for settings in ({}, {"rounding": "stochastic", "seed": 1}, {"rounding": "stochastic", "seed": 1, "sr_bits": 8}):
        for count in (calls.SMALL, calls.SMALL + 1):
            codes, _ = bits.encode(x[:count], HALF, flags="any", **settings)
            assert both(bits.encode, x[:count], HALF, flags="any", **settings)[1][0][3] == codes.tobytes()
            quick, long = both(bits.add, codes, codes[::-1].copy(), HALF, **settings)
            assert quick == long


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ordinary_calls_go_the_short_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "FEW", 0)
    function, arity, fixed = FUNCTIONS[name]
    array = np.full((2, 3), 0x3C00, np.uint16)
    for one in (array, 0x3C00):
        for options in ({}, {"environment": Environment(rounding="toward_zero")}, {"nan": "x86", "flags": "any"}):
            assert served(function, *[one] * arity, HALF, **fixed, **options)
        assert served(function, *[array[:, ::2]] * arity, HALF, **fixed)
        assert served(function, *[array, np.uint16(0x3C00), array][-arity:], HALF, **fixed)
    out = np.empty((2, 3), function(*[array] * arity, HALF)[0].dtype)
    assert not served(function, *[array] * arity, HALF, **fixed, out=out)


def test_ordinary_conversions_go_the_short_way() -> None:
    for number in (np.ones(3, np.float32), np.ones((2, 2)), np.ones(3, np.float16), 1.5, 3):
        assert served(bits.encode, number, softfloat.bfloat16)
    for codes in (np.full(3, 0x3C00, np.uint16), 0x3C00):
        assert served(bits.convert, codes, HALF, softfloat.bfloat16)
    assert not served(bits.encode, np.ones(3, np.int64), HALF)
    assert not served(bits.encode, np.ones(4, np.float32)[::2], HALF)


ODD: list[tuple[Any, Any, dict[str, Any]]] = [
    (0x10000, 1, {}),
    (-1, 1, {}),
    (True, 1, {}),
    (1.0, 1, {}),
    (np.uint16(3), 5, {}),
    ([1, 2], [3, 4], {}),
    (np.arange(4), np.arange(4), {}),
    (np.arange(4, dtype=">u2"), np.arange(4, dtype=">u2"), {}),
    (np.arange(4, dtype=np.uint16), 3, {}),
    (np.arange(4, dtype=np.uint16), np.arange(3, dtype=np.uint16), {}),
    (np.ma.array(np.arange(4, dtype=np.uint16)), np.arange(4, dtype=np.uint16), {}),
    (softfloat.ones(3, HALF), softfloat.ones(3, HALF), {}),
    (1, 2, {"flags": "some"}),
    (1, 2, {"flags": None}),
    (1, 2, {"flags": ["each"]}),
    (1, 2, {"stream": -1}),
    (1, 2, {"stream": 1 << 64}),
    (1, 2, {"stream": True}),
    (1, 2, {"stream": np.int64(5)}),
    (1, 2, {"rounding": "sideways"}),
    (1, 2, {"daz": 1}),
    (1, 2, {"nan": ["x86"]}),
    (1, 2, {"colour": "red"}),
    (1, 2, {"environment": "red"}),
    (1, 2, {"environment": None}),
    (1, 2, {"environment": Environment(), "daz": True}),
    (1, 2, {"random_bits": 3}),
    (1, 2, {"out": None}),
    (1, 2, {"out": np.empty((), np.uint16)}),
    (0x3C00, 0x3555, {"rounding": "stochastic", "sr_bits": 3, "random_bits": 3}),
]


@pytest.mark.parametrize("number", range(len(ODD)))
@pytest.mark.parametrize("function", [bits.add, bits.lt], ids=lambda f: f.__name__)
def test_odd_arguments(function: Callable[..., Any], number: int) -> None:
    a, b, options = ODD[number]
    for fmt in (HALF, "float16", "half", "nothing"):
        quick, long = both(function, a, b, fmt, **options)
        assert quick == long


@pytest.mark.parametrize("function", [bits.add, bits.lt], ids=lambda f: f.__name__)
def test_integers_that_are_no_codes(function: Callable[..., Any]) -> None:
    """0x10 has more bits than float4_e2m1fn, and its dtype takes it."""
    for codes in (np.array([3, 0x10], np.uint8), 0x10):
        quick, long = both(function, codes, codes, softfloat.float4_e2m1fn)
        assert quick == long
        assert quick[0] is ValueError


def test_results_are_the_callers_own() -> None:
    a = np.full(3, 0x3C00, np.uint16)
    codes, flags = bits.add(a, a, HALF)
    codes[0], flags[0] = 7, 7
    assert a.tolist() == [0x3C00] * 3
    assert a.flags.writeable
    assert bits.add(a, a, HALF)[0].tolist() == [0x4000] * 3


@pytest.mark.parametrize("rounding", ["nearest_even", "stochastic"])
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float16", "float32", "float64"])
def test_codes_of_any_width_go_to_the_plain_loop_as_words(name: str, rounding: str) -> None:
    """One more than a loop over blocks wants, and than words are read at once, in place too: that loop gives the same."""
    fmt, count, seed = Format.from_name(name), 2 * words.SOME + 1, 3 if rounding == "stochastic" else None
    rng, settings = np.random.default_rng(count), Environment(rounding=rounding, seed=seed).settings
    a, b = (rng.integers(0, fmt.max_code, count, dtype=fmt.dtype) for _ in "ab")
    ready = elementwise.prepared("add", fmt, settings, True, True)
    assert ready is not None
    expected = bits.add(a, b, fmt, environment=settings, stream=5)
    for codes, in_place in ((np.empty_like(a), True), (a, True)):
        flags = np.zeros(count, np.uint8)
        ready(a, b, b, codes, flags, 5, in_place)
        np.testing.assert_array_equal((codes, flags), expected)


FIRST = """
import numpy as np
from numba.core import event
from softfloat import bits

class Loops(event.Listener):
    taken = 0

    def on_start(self, event):
        self.taken += 1

    def on_end(self, event):
        pass

listener = Loops()
event.register("softfloat:loop", listener)
a, b = np.arange(0x3C00, 0x3C32, dtype=np.uint16), np.arange(0x7BD8, 0x7C0A, dtype=np.uint16)
drawn = {"rounding": "stochastic", "seed": 5}
for size, how in ((3, {}), (3, drawn), (50, {}), (50, drawn), (50, {}), (50, drawn), (500, {}), (50, {})):
    codes, flags = bits.add(np.resize(a, size), np.resize(b, size), "float16", **how)
    print(listener.taken, codes[:50].tobytes().hex(), flags[:50].tobytes().hex())
"""


@SERVED
def test_the_first_few_elements_are_done_by_python(tmp_path: Path) -> None:
    """The same bits, by the same source, without the seconds that it takes to compile, whether or not compiled code is kept."""

    def run() -> list[list[str]]:
        settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", FIRST], env=settings, capture_output=True, text=True, check=True)
        return [line.split() for line in done.stdout.splitlines()]

    first, again = run(), run()
    assert [[int(line[0]) for line in lines] for lines in (first, again)] == [[0] * 6 + [3, 3]] * 2
    results = [line[1:] for line in first]
    assert results == [line[1:] for line in again]
    assert results[2] == results[4] == results[6] == results[7]


SUMS = """
import numpy as np
from softfloat import accumulators, bits
from softfloat.engine import elementwise
from softfloat.engine.programs import plain_loop

elementwise.FAST = False  # every sum goes by the plain loop
random = np.random.default_rng(7)
a, b = random.integers(0, 0x7C00, (2, 3, 16)).astype(np.uint16) | random.integers(0, 2, (2, 3, 16)).astype(np.uint16) << 15
drawn, half = {"rounding": "stochastic", "seed": 5}, accumulators.fma("float16")
calls = [
    (half, {}), (half, drawn), (accumulators.pairwise("float16"), drawn), (accumulators.amp(), {}), (half.replace(chains=3), {}),
    (accumulators.tensor_core("A100"), {}), (accumulators.compensated("float16", "kahan"), {"rounding": "toward_zero"}),
    (accumulators.chunked(5, "float16", "float32"), {}), (accumulators.exact("float16"), drawn),
]

def results():
    found = [bits.matmul(a, b.T, "float16", accumulator=how, count=True, **more) for how, more in calls]
    return [[np.asarray(x).tobytes().hex() for x in (*made[:2], *vars(made[2]).values())] for made in found]

first, many = results(), 1 << 20
assert not plain_loop().is_there(many)
bits.matmul(np.tile(a, (20, 1)), b.T, "float16", accumulator=half)
assert plain_loop().is_there(many)
assert results() == first
"""


@SERVED
def test_the_first_few_products_of_the_plain_loop_are_done_by_python() -> None:
    """Codes, flags and counts are those that it gives once it is compiled."""
    subprocess.run([sys.executable, "-c", SUMS], check=True)
