"""Every function of codes, against the oracle: formats, modes, NaN policies and all other rules drawn at random."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from drawn import formats, sampled
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracle import assert_as_the_oracle, assert_comparisons, assert_integers
from softfloat.kernels.spec import NAN_POLICIES, PROJECTIONS, SR_METHODS, SR_REACH

from softfloat import Format, Rounding, bits, reference
from softfloat.bits.arithmetic import LEAST_QUANTA
from softfloat.testing import strategies

ARITY = {
    "add": 2,
    "sub": 2,
    "mul": 2,
    "div": 2,
    "remainder": 2,
    "sqrt": 1,
    "fma": 3,
    "round_to_integral": 1,
    "hypot": 2,
    "fmod": 2,
    "modulo": 2,
    "floor_divide": 2,
}
FUNCTIONS = dict.fromkeys(("exp", "exp2", "log", "log2", "log1p", "sin", "atan", "tanh", "cbrt"), 1) | {
    "pow": 2,
    "atan2": 2,
}
MODES = tuple(mode.name.lower() for mode in Rounding)
LEAST = Fraction(1, 2**2000)
"""Less than the distance of any two numbers of any format."""


@st.composite
def rules(draw: st.DrawFn, fmt: Format, modes: tuple[str, ...] = MODES) -> dict[str, Any]:
    """Options of a call that rounds to a format."""
    options: dict[str, Any] = {
        "rounding": draw(sampled(modes)),
        "overflow": draw(sampled(["infinity", "saturate", "nan"] if fmt.has_nan else ["infinity", "saturate"])),
        "tininess": draw(sampled(["after", "before"])),
        "infinite_input": draw(sampled(["default", "keep", "saturate", "nan"])),
        "daz": draw(st.booleans()),
        "ftz": draw(st.booleans()),
        "nan": draw(sampled(list(NAN_POLICIES))),
        "projection": draw(sampled(PROJECTIONS)),
    }
    if options["rounding"] == "stochastic":
        options["sr_method"] = draw(sampled(SR_METHODS))
        options["sr_bits"] = draw(st.integers(1, 52 if options["sr_method"] == "truncate" else SR_REACH - fmt.p))
        top = 2 ** options["sr_bits"] - 1
        options["random_bits"] = draw(st.one_of(st.integers(0, top), sampled([0, top, (top + 1) // 2])))
    if options["rounding"] == "up_or_down":
        options["random_bits"] = draw(st.integers(0, 1))
    return options


def rows(fmt: Format, arity: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[strategies.codes(fmt)] * arity), min_size=1, max_size=8)


PLENTY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""As many examples as the profile says: 100, or 2 000 with --exhaustive."""


@PLENTY
@given(st.data(), formats(), sampled(list(ARITY)))
def test_arithmetic(data: st.DataObject, fmt: Format, name: str) -> None:
    assert_as_the_oracle(name, fmt, data.draw(rows(fmt, ARITY[name])), data.draw(rules(fmt)))


@PLENTY
@given(st.data(), formats(), sampled(list(FUNCTIONS)))
def test_functions(data: st.DataObject, fmt: Format, name: str) -> None:
    assert_as_the_oracle(name, fmt, data.draw(rows(fmt, FUNCTIONS[name])), data.draw(rules(fmt)))


@PLENTY
@given(st.data(), formats(), formats())
def test_convert(data: st.DataObject, src: Format, dst: Format) -> None:
    operands, options = data.draw(rows(src, 1)), data.draw(rules(dst))
    codes, flags = bits.convert(np.array(operands, src.dtype).ravel(), src, dst, **options)
    for (operand,), code, flag in zip(operands, codes, flags, strict=True):
        expected = reference.convert(operand, src, dst, **options)
        assert (int(code), int(flag)) == expected, (hex(operand), src, dst, options)


NUMBERS = st.one_of(
    st.floats(),
    st.integers(-(2**80), 2**80),
    st.fractions(),
    st.builds(lambda n, e: n * Fraction(2) ** e, st.integers(-(2**60), 2**60), st.integers(-500, 500)),
)


@PLENTY
@given(st.data(), formats(), st.lists(NUMBERS, min_size=1, max_size=8))
def test_encode(data: st.DataObject, fmt: Format, numbers: list[float | int | Fraction]) -> None:
    options = data.draw(rules(fmt))
    codes, flags = bits.encode(numbers, fmt, **options)
    for x, code, flag in zip(numbers, codes, flags, strict=True):
        assert (int(code), int(flag)) == reference.encode(x, fmt, **options), (x, fmt, options)


@PLENTY
@given(
    st.data(),
    formats(),
    sampled(["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]),
    st.booleans(),
)
def test_to_integer(data: st.DataObject, fmt: Format, dtype: str, exact: bool) -> None:
    operands, options = data.draw(rows(fmt, 1)), data.draw(rules(fmt))
    names = ("rounding", "daz", "nan", "sr_bits", "random_bits", "sr_method")
    options = {name: options[name] for name in names if name in options}
    assert_integers(fmt, operands, dtype, exact, options)


@PLENTY
@given(st.data(), formats(), sampled(list(NAN_POLICIES)), st.booleans())
def test_comparisons_and_selections(data: st.DataObject, fmt: Format, nan: str, daz: bool) -> None:
    operands = data.draw(rows(fmt, 2))
    assert_comparisons(fmt, operands, nan, daz)


def next_by_rounding(code: int, fmt: Format, up: bool, nan: str) -> tuple[int, int]:
    """The next number: what is a little more, or less, rounded away from the operand."""
    value = reference.decode(code, fmt)
    if value.is_nan:
        return reference.maximum_number(code, code, fmt, nan=nan)  # which quiets under every policy
    last = fmt.max_code if up else fmt.min_code
    beyond = (fmt.inf_code | (0 if up else fmt.sign_bit)) if fmt.infinities and (up or fmt.signed) else last
    if value.is_infinite:
        inward = fmt.min_code if up else fmt.max_code
        return (code if value.negative != up else inward), 0
    if code == last or (not up and not fmt.signed and value.magnitude <= Fraction(fmt.min)):
        return beyond, 0
    moved = Fraction(value.real) + (LEAST if up else -LEAST)
    return reference.encode(moved, fmt, rounding="toward_positive" if up else "toward_negative")[0], 0


@PLENTY
@given(st.data(), formats(), sampled(list(NAN_POLICIES)))
def test_next(data: st.DataObject, fmt: Format, nan: str) -> None:
    operands = [code for (code,) in data.draw(rows(fmt, 1))]
    for name, up in (("next_up", True), ("next_down", False)):
        codes, flags = getattr(bits, name)(np.array(operands, fmt.dtype), fmt, nan=nan)
        for operand, code, flag in zip(operands, codes, flags, strict=True):
            assert (int(code), int(flag)) == next_by_rounding(operand, fmt, up, nan), (name, hex(operand), fmt)


@PLENTY
@given(st.data(), formats())
def test_what_codes_are(data: st.DataObject, fmt: Format) -> None:
    """decode, classify and the questions, which take no rules; the codes of signs."""
    for (code,) in data.draw(rows(fmt, 1)):
        exact, number = reference.decode(code, fmt), bits.decode(code, fmt)
        kind = reference.classify(code, fmt)
        assert np.isnan(number) if exact.is_nan else (number == exact.real and np.signbit(number) == exact.negative)
        name = bits.CLASSES[bits.classify(code, fmt)].replace("signaling", "signalling")
        assert name.lower() == kind.replace("_", "")
        asked = {
            "isnan": exact.is_nan,
            "issnan": exact.signalling,
            "isinf": exact.is_infinite,
            "isfinite": not exact.is_nan and not exact.is_infinite,
            "iszero": exact.is_zero,
            "isnormal": kind.endswith("_normal"),
            "issubnormal": kind.endswith("_subnormal"),
        }
        for question, answer in asked.items():
            assert bool(getattr(bits, question)(code, fmt)) == answer, (question, hex(code), fmt)
        if exact.is_nan:
            continue
        assert bool(bits.signbit(code, fmt)) == bool(code & fmt.sign_bit)
        assert reference.decode(int(bits.abs(code, fmt)), fmt).real == abs(exact.real)
        if fmt.signed:
            assert reference.decode(int(bits.negative(code, fmt)), fmt).real == -exact.real


@PLENTY
@given(st.data(), formats(), formats(), formats(), formats(), sampled(["add", "sub", "mul", "div", "sqrt", "fma"]))
def test_operands_of_several_formats(
    data: st.DataObject, a: Format, b: Format, c: Format, out: Format, name: str
) -> None:
    kinds = [a, b, c][: ARITY[name]]
    if data.draw(st.booleans()):  # codes are read as they are where only the result differs
        kinds = [a] * len(kinds)
    least = min(x.emin - x.mantissa_bits for x in kinds)
    assume(2 * least - (out.emin - out.mantissa_bits) >= LEAST_QUANTA)  # others are refused, by name
    operands = data.draw(st.lists(st.tuples(*map(strategies.codes, kinds)), min_size=1, max_size=8))
    options = data.draw(rules(out)) | {f"{x}_format": fmt for x, fmt in zip("bc", kinds[1:], strict=False)}
    options["out_format"] = out
    columns = [np.array(column, fmt.dtype) for column, fmt in zip(zip(*operands, strict=True), kinds, strict=True)]
    codes, flags = getattr(bits, name)(*columns, a, **options)
    assert codes.dtype == out.dtype
    for row, code, flag in zip(operands, codes, flags, strict=True):
        expected = getattr(reference, name)(*row, a, **options)
        assert (int(code), int(flag)) == expected, (name, [hex(x) for x in row], kinds, out, options)
