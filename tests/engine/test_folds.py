"""Folds in one loop, and row by row, against a call of the operation for each row: codes, flags and the streams that are left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from faster import SERVED
from hypothesis import given, settings
from hypothesis import strategies as st
from operands import operands
from softfloat.kernels import fast
from softfloat.kernels.spec import NAN_POLICIES, Rule

import softfloat
from softfloat import FloatingPointTrap, Format, bits, reference
from softfloat.engine import folds
from softfloat.engine.parameters import fast_numbers, rule_for
from softfloat.environments import Settings
from softfloat.formats import float16
from softfloat.testing import strategies

FORMATS = ("float16", "bfloat16", "float8_e5m2fnuz", "float8_e8m0fnu")
UFUNCS = ("multiply", "divide", "hypot", "maximum", "fmin")
SHAPES = ((3, 1), (40, 1), (4, 3), (9, 2, 65), (3, 255), (4, 1100))


def every_way(monkeypatch: pytest.MonkeyPatch, environment: dict[str, Any], run: Any) -> list[Any]:
    """(codes, flags, the number of the next operation) of a call in one loop, of one row by row, and of a call for each row."""
    found = []
    for narrow in (1 << 40, 0, None):
        with monkeypatch.context() as patch, softfloat.environment(**environment) as entered:
            if narrow is None:
                patch.setattr(folds, "serves", lambda *arguments: False)
            else:
                for name in ("NARROW", "NARROW_PAIRS", "NARROW_HALVES"):
                    patch.setattr(folds, name, narrow)
                patch.setattr(folds, "SOME_ROWS", 200)
            result = run()
            found.append((result.codes.tolist(), entered.status.flags, entered.streams.take()))
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[softfloat.SoftArray, np.ufunc, dict[str, Any]]:
    fmt = Format.from_name(draw(st.sampled_from(FORMATS)))
    shape = draw(st.sampled_from(SHAPES))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    if draw(st.booleans()) or not fmt.zero:
        codes = random.integers(0, 2**fmt.bits, shape, dtype=np.uint64).astype(fmt.dtype)
    else:
        codes, _ = bits.encode(random.uniform(0.5, 1.5, shape), fmt)
    environment = {
        "rounding": draw(st.sampled_from(list(softfloat.Rounding))),
        "overflow": draw(st.sampled_from(("infinity", "saturate", "nan") if fmt.has_nan else ("infinity", "saturate"))),
        "nan": draw(st.sampled_from(("canonical", "x86", "arm", "arm_ah", "arm_ah_dn"))),
        "daz": draw(st.booleans()),
        "ftz": draw(st.booleans()),
        "sr_bits": draw(st.sampled_from((None, 1, 8, 20))),
        "seed": draw(st.integers(0, 2**64 - 1)),
        "projection": draw(st.sampled_from(("ieee", "ieee", "p3109"))),
    }
    if environment["sr_bits"]:
        environment["sr_method"] = draw(st.sampled_from(("truncate", "half", "nearest")))
    return softfloat.from_codes(codes, fmt), getattr(np, draw(st.sampled_from(UFUNCS))), environment


def test_every_format_and_option(monkeypatch: pytest.MonkeyPatch) -> None:
    @settings(max_examples=40, deadline=None, database=None)
    @given(cases(), st.booleans())
    def check(case: tuple[softfloat.SoftArray, np.ufunc, dict[str, Any]], keep: bool) -> None:
        x, ufunc, environment = case
        method = ufunc.accumulate if keep else ufunc.reduce
        at_once, by_rows, by_calls = every_way(monkeypatch, environment, lambda: method(x, axis=0))
        assert at_once == by_rows == by_calls

    check()


@pytest.mark.parametrize("rounding", ["nearest_even", "toward_zero", "stochastic"])
def test_products_along_any_axis(monkeypatch: pytest.MonkeyPatch, rounding: str) -> None:
    x = softfloat.array(np.random.default_rng(1).uniform(0.8, 1.3, (5, 6, 7)), "float16")
    for axis in (0, 1, -1, None):
        for run in (lambda axis=axis: np.prod(x, axis=axis), lambda axis=axis: np.cumprod(x, axis=axis)):
            at_once, by_rows, by_calls = every_way(monkeypatch, {"rounding": rounding, "seed": 5}, run)
            assert at_once == by_rows == by_calls


def test_where_a_block_lies_in_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    x = softfloat.array(np.full((30, 4), 1.3), "float16")
    environment = {"rounding": "stochastic", "seed": 5, "position": 1000}
    at_once, by_rows, by_calls = every_way(monkeypatch, environment, lambda: np.prod(x, axis=0))
    assert at_once == by_rows == by_calls
    elsewhere, *_ = every_way(monkeypatch, environment | {"position": 0}, lambda: np.prod(x, axis=0))
    assert elsewhere[0] != at_once[0]


HALVES: list[dict[str, Any]] = [
    {},
    {"overflow": "saturate"},
    {"tininess": "before"},
    {"overflow": "saturate", "tininess": "before", "nan": "riscv"},
]


@pytest.mark.parametrize("environment", HALVES, ids=str)
@pytest.mark.parametrize("ufunc", [np.multiply, np.add, np.subtract, np.divide], ids=lambda ufunc: ufunc.__name__)
@pytest.mark.parametrize("columns", [1, 7, 9])
def test_halves(columns: int, ufunc: np.ufunc, environment: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """One fold, some, and many side by side: ordinary numbers, exact results, overflows, tiny ones, every class of code."""
    random = np.random.default_rng(columns)
    shape = (24, columns)
    ordinary = bits.encode(random.uniform(0.5, 1.9, shape), "float16")[0]
    small = bits.encode(np.exp2(random.integers(-3, 2, shape)) * random.choice([1.0, -1.0, 1.25], shape), "float16")[0]
    anything = operands(softfloat.float16, 24 * columns, 1, columns)[0].reshape(shape)
    special = np.where(random.random(shape) < 0.05, anything, ordinary)
    for codes in (ordinary, small, anything, special):
        x = softfloat.from_codes(codes, "float16")
        for method in (ufunc.reduce, ufunc.accumulate):
            at_once, by_rows, by_calls = every_way(
                monkeypatch, environment | {"seed": 1}, lambda method=method, x=x: method(x, axis=0)
            )
            assert at_once == by_rows == by_calls


def test_numbers_of_folds_are_given_once() -> None:
    """A fold takes a number for each step; those handed back are given again first."""
    x = softfloat.array([1.0, 1.5, 0.5, 2.0], "float16")
    with softfloat.environment(rounding="stochastic", seed=1) as env:
        before = env.streams.take()
        np.prod(x)
        number = env.streams.take()
        assert number >= before + 4
        env.streams.give_back(number)
        env.streams.give_back(before)
        assert list(env.streams.take_many(4)) == [before, number, number + 1, number + 2]
        assert list(env.streams.take_many(0)) == []
        assert list(env.streams.take_many(2)) == [number + 3, number + 4]


def test_one_product_after_another() -> None:
    """1.0009765625 eight times over, in half: each step rounded, the last bit lost from the second on."""
    x = softfloat.from_codes([0x3C01] * 8, "float16")
    assert np.cumprod(x).codes.tolist() == [0x3C00 + k for k in range(1, 9)]
    assert np.multiply.accumulate(softfloat.from_codes([0x7BFF, 0x4000, 0x0000], "float16")).codes.tolist() == [
        0x7BFF,
        0x7C00,
        0x7E00,
    ]


@pytest.mark.parametrize("daz", [False, True])
def test_extremes_of_subnormal_numbers(daz: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = softfloat.from_codes(
        np.random.default_rng(3).choice([1, 0x8001, 3, 0x8000, 0, 0x8400, 0x0400], (9, 70)), "float16"
    )
    for ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
        ways = every_way(monkeypatch, {"daz": daz, "seed": 1}, lambda ufunc=ufunc: ufunc.accumulate(x, axis=0))
        assert ways[0] == ways[1] == ways[2]


CHOICES = {np.minimum: "minimum", np.maximum: "maximum", np.fmin: "minimum_number", np.fmax: "maximum_number"}


@settings(deadline=None, max_examples=200)
@given(
    st.data(),
    st.sampled_from(["float64", "float32", "float16", "bfloat16", "float8_e5m2", "float8_e4m3fnuz"]),
    st.sampled_from(list(CHOICES)),
    st.sampled_from(list(NAN_POLICIES)),
    st.booleans(),
    st.booleans(),
)
def test_extremes_are_calls_one_by_one(
    data: st.DataObject, name: str, ufunc: np.ufunc, nan: str, daz: bool, ftz: bool
) -> None:
    """Payloads that survive, zeros, flags: reductions, narrow and wide, as the oracle has them element by element."""
    fmt = Format.from_name(name)
    nans = st.integers(fmt.spec.nan_first, 2 ** (fmt.bits - 1) - 1) if fmt.infinities else strategies.codes(fmt)
    signed = st.builds(lambda code, sign: code | sign, nans, st.sampled_from([0, fmt.sign_bit]))
    codes = data.draw(st.lists(strategies.codes(fmt) | signed | signed, min_size=2, max_size=6))
    total, flags = codes[0], 0
    for code in codes[1:]:
        total, raised = getattr(reference, CHOICES[ufunc])(total, code, fmt, nan=nan, daz=daz, ftz=ftz)
        flags |= raised
    for method in (ufunc.reduce, ufunc.accumulate):
        with softfloat.environment(nan=nan, daz=daz, ftz=ftz) as env:
            found = np.atleast_1d(method(softfloat.from_codes(codes, fmt)))[-1]
        assert (int(found.codes), int(env.status.flags)) == (total, flags)


def test_a_reduction_chooses_the_signalling_nan() -> None:
    codes = [0, 0x7FF8000000000005, 0x7FF0000000000001]
    for environment in (softfloat.Environment.arm(), softfloat.Environment.nvidia()):
        for reduce in (np.minimum.reduce, np.max):
            with softfloat.environment(environment):
                assert int(reduce(softfloat.from_codes(codes, "float64")).codes) == 0x7FF8000000000001


def test_a_trap_names_the_step_of_a_choice() -> None:
    x = softfloat.from_codes([[0x3C00, 0x3C00], [0x4000, 0x7C01]], "float16")
    with softfloat.environment(traps=softfloat.Flags.INVALID), pytest.raises(FloatingPointTrap) as caught:
        np.max(x, axis=0)
    assert caught.value.index == (1,)


def test_flags_of_each_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inexact, overflowed, invalid, and none: in the order of columns, however they are added."""
    rows = np.array([[0x3C00, 0x7BFF, 0x7C00, 0x3C00]] * 3 + [[0x1000, 0x7BFF, 0xFC00, 0x3C00]], np.uint16)
    for narrow in (1 << 40, 0):
        monkeypatch.setattr(folds, "NARROW_HALVES", narrow)
        codes, flags = folds.summed(rows, softfloat.float16, Rule())
        assert codes.tolist() == [0x4200, 0x7C00, 0x7E00, 0x4400]
        assert flags.tolist() == [1, 5, 16, 0]


def test_a_trap_names_the_step() -> None:
    x = softfloat.array([[2.0, 1.0], [3.0, 60000.0], [4.0, 2.0], [5.0, 1.0]], "float16")
    with softfloat.environment(traps=softfloat.Flags.OVERFLOW), pytest.raises(FloatingPointTrap) as caught:
        np.cumprod(x, axis=0)
    assert caught.value.index == (2, 1)


@SERVED
def test_a_fold_is_taken_in_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    kept = folds.fold
    monkeypatch.setattr(folds, "fold", lambda *arguments: taken.append(arguments[0]) or kept(*arguments))
    x = softfloat.array([1.0, 1.5, 0.5], "float16")
    np.prod(x), np.divide.reduce(x), np.maximum.accumulate(x)
    assert taken == ["mul", "div", "maximum"]


@pytest.mark.skipif(not fast.has_f16c(), reason="compiled code does not convert halves by the CPU")
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("keep", [False, True], ids=["last", "all"])
def test_halves_by_python(operation: str, keep: bool) -> None:
    """The first few folds of a process: 0x4400 * 0x3C00 (4 * 1) among them, NaNs, infinities and zeros."""
    random = np.random.default_rng(0)
    values = random.integers(0, 1 << 16, (7, 5)).astype(np.uint16)
    values[:, 0], values[:, 1] = 0x3C00, (0x4400, 0x3C00, 0x0000, 0x7C01, 0x8000, 0xFC00, 0x0001)
    loop, more = fast.half_folding(operation), fast_numbers(float16.spec, rule_for(Settings(), float16, False))
    found = []
    for run in (loop, loop.by_python):
        codes, flags = np.zeros((7 if keep else 1, 5), np.uint16), np.zeros(5, np.uint8)
        codes[0] = values[0]
        run(0, 5, values, codes, flags, *more)
        found.append((codes.tolist(), flags.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("ufunc", ["maximum", "minimum", "fmax", "fmin"])
def test_choices_among_zeros_of_formats_without_subnormals(ufunc: str) -> None:
    """Codes below their normal numbers are zeros, and a choice gives the one zero there is of each sign, as that of two does."""
    fmt = softfloat.Format("f", exponent_bits=5, mantissa_bits=2, subnormals=False)
    x = softfloat.from_codes([1, 2, 3] if "max" in ufunc else [0x81, 0x83, 0x82], fmt)
    assert getattr(np, ufunc).reduce(x).codes == (0 if "max" in ufunc else 0x80)
    assert set(getattr(np, ufunc).accumulate(x).codes[1:]) == {0 if "max" in ufunc else 0x80}


@pytest.mark.parametrize("method", ["half", "nearest"])
def test_choices_take_any_random_bits(method: str) -> None:
    """They round nothing: 52 random bits, which no environment named, were refused."""
    fmt = Format("flushed", exponent_bits=5, mantissa_bits=10, subnormals=False)
    x = softfloat.from_codes([[0x3C00], [0x4200], [0x4000]], fmt)
    with softfloat.environment(rounding="stochastic", seed=1, sr_method=method, sr_bits=8):
        assert np.max(x, axis=0).codes.tolist() == [0x4200]
        assert np.fmin.accumulate(x, axis=0).codes.tolist() == [[0x3C00]] * 3
