"""Formats against ml_dtypes and NumPy, code by code; user-made ones by construction; every refusal."""

from __future__ import annotations

import copy
import itertools
import pickle
from fractions import Fraction
from itertools import pairwise
from typing import Any, get_type_hints

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softfloat
from softfloat import ROSTER, Format, bits
from softfloat.accumulators import Stage
from softfloat.formats import check_format, format_facts

WITH_DTYPE = [fmt for fmt in ROSTER.values() if fmt.name != "tfloat32"]
FINFO_NAMES = [
    "bits",
    "eps",
    "epsneg",
    "max",
    "min",
    "tiny",
    "smallest_normal",
    "smallest_subnormal",
    "maxexp",
    "minexp",
    "nmant",
    "nexp",
    "iexp",
    "machep",
    "negep",
]
by_name = pytest.mark.parametrize("fmt", ROSTER.values(), ids=str)
by_dtype = pytest.mark.parametrize("fmt", WITH_DTYPE, ids=str)


def finfo(fmt: Format) -> Any:
    return (np.finfo if fmt.name in ("float16", "float32") else ml_dtypes.finfo)(fmt.to_dtype())


def all_codes(fmt: Format) -> np.ndarray:
    """Every code of up to 19 bits; of wider ones a stride, and both ends of every binade."""
    if fmt.bits <= 19:
        return np.arange(2**fmt.bits).astype(fmt.dtype)
    step = np.arange(0, 2**fmt.bits, 65521)
    ends = (np.arange(2 ** (fmt.bits - fmt.mantissa_bits)) << fmt.mantissa_bits)[:, None] + np.arange(-2, 3)
    return np.concatenate([step, np.clip(ends.ravel(), 0, 2**fmt.bits - 1)]).astype(fmt.dtype)


def assert_same_values(found: np.ndarray, expected: np.ndarray) -> None:
    """Bit for bit, all NaNs taken for one."""
    assert found.dtype == expected.dtype == np.float64
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), nan)
    np.testing.assert_array_equal(found.view(np.uint64)[~nan], expected.view(np.uint64)[~nan])


# -- against the ecosystem -------------------------------------------------------------------------------------------


def test_roster_is_the_designs() -> None:
    assert list(ROSTER) == [
        "float16",
        "bfloat16",
        "float32",
        "tfloat32",
        "float8_e5m2",
        "float8_e4m3",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e4m3b11fnuz",
        "float8_e3m4",
        "float8_e8m0fnu",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float4_e2m1fn",
    ]
    for name, fmt in ROSTER.items():
        assert getattr(softfloat, name) is fmt
        assert name in softfloat.__all__
        assert (fmt.name, str(fmt)) == (name, name)


@by_dtype
@pytest.mark.parametrize("name", FINFO_NAMES)
def test_finfo(fmt: Format, name: str) -> None:
    """float4 and float6_e2m3 have 1 for smallest normal number: the spacing below it, `epsneg`, is that above."""
    assert float(getattr(fmt, name)) == float(getattr(finfo(fmt), name))


@pytest.mark.parametrize("fmt", [softfloat.float16, softfloat.float32], ids=str)
def test_decimal_digits(fmt: Format) -> None:
    assert fmt.precision == finfo(fmt).precision
    assert fmt.resolution == pytest.approx(float(finfo(fmt).resolution), rel=1e-3)


def test_tfloat32_is_float32_without_its_low_bits() -> None:
    tf32, single = softfloat.tfloat32, np.finfo(np.float32)
    assert (tf32.bits, tf32.dtype, tf32.nmant, tf32.nexp) == (19, np.uint32, 10, 8)
    assert (tf32.tiny, tf32.minexp, tf32.maxexp) == (single.tiny, single.minexp, single.maxexp)
    codes = all_codes(tf32)
    with np.errstate(invalid="ignore"):
        assert_same_values(bits.decode(codes, tf32), (codes << 13).view(np.float32).astype(np.float64))


@by_dtype
def test_every_code_decodes_as_elsewhere(fmt: Format) -> None:
    codes = all_codes(fmt)
    with np.errstate(invalid="ignore"):
        expected = codes.view(fmt.to_dtype()).astype(np.float64)
    assert_same_values(bits.decode(codes, fmt), expected)


@by_name
def test_every_code_survives_a_round_trip(fmt: Format) -> None:
    codes = all_codes(fmt)
    nan = bits.isnan(codes, fmt)
    returned, flags = bits.encode(bits.decode(codes, fmt), fmt)
    assert returned.dtype == codes.dtype == fmt.dtype
    np.testing.assert_array_equal(returned[~nan], codes[~nan])
    assert not flags.any()
    if nan.any():
        assert set(returned[nan].tolist()) == {fmt.nan_code}


@by_name
@pytest.mark.parametrize("rounding", ["nearest_even", "toward_zero"])
def test_a_format_converts_to_itself(fmt: Format, rounding: str) -> None:
    codes = all_codes(fmt)
    codes = codes[~bits.isnan(codes, fmt)]
    returned, flags = bits.convert(codes, fmt, fmt, rounding=rounding)
    np.testing.assert_array_equal(returned, codes)
    assert not flags.any()


@by_name
def test_code_constants(fmt: Format) -> None:
    values = {
        "max_code": fmt.max,
        "min_code": fmt.min,
        "smallest_normal_code": fmt.tiny,
        "smallest_subnormal_code": fmt.smallest_subnormal,
        "one_code": 1.0,
        "inf_code": np.inf,
        "zero_code": 0.0,
        "nan_code": np.nan,
    }
    missing = {"inf_code": not fmt.infinities, "zero_code": not fmt.zero, "nan_code": not fmt.has_nan}
    for name, value in values.items():
        if missing.get(name):
            with pytest.raises(AttributeError, match=fmt.name):
                getattr(fmt, name)
        else:
            np.testing.assert_array_equal(bits.decode(getattr(fmt, name), fmt), value, err_msg=name)
    assert fmt.sign_bit == (2 ** (fmt.bits - 1) if fmt.signed else 0)


@by_dtype
def test_dtype_round_trip(fmt: Format) -> None:
    dtype = fmt.to_dtype()
    assert Format.from_dtype(dtype) is fmt
    assert Format.from_dtype(dtype.type) is fmt
    values = np.array([1, 2, 4], dtype)
    np.testing.assert_array_equal(bits.encode(values, fmt)[0], values.view(fmt.dtype))


def test_dtypes_without_a_format() -> None:
    for dtype in (np.longdouble, np.complex64, np.int8, np.uint16, bool, object, "U3", ml_dtypes.int4):
        with pytest.raises(TypeError, match="accepted: float16"):
            Format.from_dtype(dtype)
    assert Format.from_dtype(">f2") is softfloat.float16
    twin = Format("float16", exponent_bits=6, mantissa_bits=9)
    for fmt in (softfloat.tfloat32, twin, Format("e6m9", exponent_bits=6, mantissa_bits=9)):
        with pytest.raises(TypeError, match=f"{fmt.name} has no NumPy or ml_dtypes dtype"):
            fmt.to_dtype()


# -- names, text, identity -------------------------------------------------------------------------------------------

ALIASES = {
    "float16": "half fp16 f16 binary16 e5m10 FP16 Half",
    "bfloat16": "bf16 BF16 e8m7",
    "float32": "single fp32 f32 binary32 float e8m23",
    "tfloat32": "tf32 TF32 e8m10",
    "float8_e5m2": "e5m2 fp8_e5m2 fp8-e5m2 E5M2",
    "float8_e4m3fn": "e4m3 e4m3fn fp8_e4m3 fp8_e4m3fn",
    "float8_e4m3fnuz": "e4m3fnuz",
    "float8_e5m2fnuz": "e5m2fnuz",
    "float8_e4m3b11fnuz": "e4m3b11fnuz",
    "float8_e3m4": "e3m4",
    "float8_e8m0fnu": "e8m0 e8m0fnu ue8m0",
    "float6_e2m3fn": "e2m3 e2m3fn fp6_e2m3",
    "float6_e3m2fn": "e3m2 e3m2fn fp6_e3m2",
    "float4_e2m1fn": "e2m1 e2m1fn fp4 fp4_e2m1",
}


@pytest.mark.parametrize(("name", "aliases"), ALIASES.items())
def test_aliases(name: str, aliases: str) -> None:
    for alias in [name, *aliases.split()]:
        assert Format.from_name(alias) is ROSTER[name]
    assert Format.from_name(ROSTER[name]) is ROSTER[name]


def test_unknown_names() -> None:
    for name in ("fp8", "", "e4m2", "e05m10", "e5m7x"):
        with pytest.raises(ValueError, match=f"unknown format '{name}'; accepted: float16, .*bf16"):
            Format.from_name(name)
    for other in (None, 16, np.float16(1), np.int8, b"float16", object, np.zeros(3, np.float16)):
        with pytest.raises(TypeError, match=r"format must be a softfloat.Format, a name or a dtype"):
            Format.from_name(other)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"softfloat\.Format\('e3m3', exponent_bits=\.\.\., mantissa_bits=\.\.\.\) makes any"
    ):
        Format.from_name("e3m3")


def test_names_of_fields() -> None:
    """Beyond 8 bits only IEEE 754's layout is in use; at 8 bits and below a name of fields means the roster's format or none."""
    for exponent_bits, mantissa_bits in itertools.product(range(2, 9), range(24)):
        name = f"e{exponent_bits}m{mantissa_bits}"
        wanted = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
        if name in {alias for names in ALIASES.values() for alias in names.split()}:
            found = Format.from_name(name)
            assert (found.exponent_bits, found.mantissa_bits) == (exponent_bits, mantissa_bits)
            assert found.name in ROSTER
        elif exponent_bits + mantissa_bits < 8:
            with pytest.raises(ValueError, match=f"unknown format '{name}'"):
                Format.from_name(name)
        else:
            assert Format.from_name(name) is Format.from_name(name.upper()) == Format(name, **wanted)
    assert softfloat.array([1.0, 1 + 2**-8], "e5m7").tolist() == [1.0, 1.0]
    for name, message in (("e12m9", "exponent_bits must be 1 to 11, got 12"), ("e8m53", "means 54 bits of precision")):
        with pytest.raises(ValueError, match=message):
            Format.from_name(name)


def test_derived_parameters_are_no_options() -> None:
    hints = get_type_hints(Format)
    assert (hints["bias"], hints["infinities"], hints["signed_zero"]) == (int, bool, bool)


@by_name
def test_text_and_identity(fmt: Format) -> None:
    source, _, comment = repr(fmt).partition("#")
    again = eval(source)
    assert again == fmt
    assert hash(again) == hash(fmt)
    assert fmt.layout in comment
    assert len(fmt.layout.replace(".", "")) == fmt.bits
    assert pickle.loads(pickle.dumps(fmt)) == copy.deepcopy(fmt) == fmt
    assert pickle.loads(pickle.dumps(fmt)).spec == fmt.spec
    assert sum(fmt == other for other in ROSTER.values()) == 1
    with pytest.raises(AttributeError):
        fmt.bias = 3  # type: ignore[misc]


def test_one_line_makes_a_format() -> None:
    """The issue's own line; the largest value is that of 6 exponent and 9 fraction bits with bias 31."""
    fmt = softfloat.Format("e6m9", exponent_bits=6, mantissa_bits=9, bias=None)
    assert (fmt.bits, fmt.bias, fmt.max, fmt.dtype) == (16, 31, (2 - 2.0**-9) * 2.0**31, np.uint16)
    assert fmt == Format("e6m9", exponent_bits=6, mantissa_bits=9, bias=31)
    assert fmt != Format("other", exponent_bits=6, mantissa_bits=9)
    assert bits.add(fmt.one_code, fmt.one_code, fmt) == (fmt.one_code + (1 << 9), 0)


# -- refusals --------------------------------------------------------------------------------------------------------

REFUSALS: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (TypeError, "^name must be a non-empty string", {"name": ""}),
    (TypeError, "^name must be a non-empty string", {"name": None}),
    (ValueError, "^exponent_bits must be 1 to 11", {"exponent_bits": 0}),
    (ValueError, "^exponent_bits must be 1 to 11", {"exponent_bits": 12}),
    (ValueError, "^exponent_bits must be 1 to 11", {"exponent_bits": -1}),
    (TypeError, "^exponent_bits must be an integer", {"exponent_bits": 5.0}),
    (TypeError, "^exponent_bits must be an integer", {"exponent_bits": True}),
    (TypeError, "^exponent_bits must be an integer", {"exponent_bits": "5"}),
    (ValueError, "^mantissa_bits=53 means 54 bits of precision; accepted: 0 to 52", {"mantissa_bits": 53}),
    (ValueError, "^mantissa_bits=112 means 113 bits of precision", {"mantissa_bits": 112}),
    (ValueError, "^mantissa_bits must be 0 to 52", {"mantissa_bits": -1}),
    (TypeError, "^mantissa_bits must be an integer", {"mantissa_bits": None}),
    (TypeError, "^mantissa_bits must be an integer", {"mantissa_bits": 24.0}),
    (TypeError, "^bias must be an integer", {"bias": 15.0}),
    (TypeError, "^bias must be an integer", {"bias": False}),
    (TypeError, "^bias must be an integer", {"bias": "15"}),
    (ValueError, "^bias=1024 .*accepted: biases", {"bias": 1024}),
    (ValueError, "^bias=-994 .*accepted: biases", {"bias": -994}),
    (ValueError, "^bias=-1000000000000000000000000 .*accepted: biases", {"bias": -(10**24)}),
    (ValueError, "^nan must be 'ieee', 'fn', 'fnuz' or 'none'", {"nan": "IEEE"}),
    (ValueError, "^nan must be 'ieee', 'fn', 'fnuz' or 'none'", {"nan": None}),
    (TypeError, "^infinities must be True or False", {"nan": "fn", "infinities": 1}),
    (TypeError, "^subnormals must be True or False", {"subnormals": 1}),
    (TypeError, "^subnormals must be True or False", {"subnormals": None}),
    (TypeError, "^signed_zero must be True or False", {"signed_zero": "no"}),
    (TypeError, "^signed must be True or False", {"signed": "no"}),
    (TypeError, "^signed must be True or False", {"signed": 0}),
    (TypeError, "^zero must be True or False", {"zero": 0}),
    (ValueError, "^nan='ieee' needs infinities=True", {"infinities": False}),
    (ValueError, "^nan='ieee' needs .*mantissa_bits >= 1", {"mantissa_bits": 0}),
    (ValueError, "^nan='fnuz' .*signed_zero False", {"nan": "fnuz", "signed_zero": True}),
    (ValueError, "^nan='fnuz' .*signed must be True", {"nan": "fnuz", "signed": False}),
    (ValueError, "^signed_zero must be False", {"signed": False, "signed_zero": True}),
    (ValueError, "^signed_zero=False needs", {"signed_zero": False}),
    (ValueError, "^zero=False needs signed=False", {"zero": False}),
    (ValueError, "^zero=False needs .*subnormals=False", {"zero": False, "signed": False}),
    (ValueError, "^exponent_bits=1 leaves no normal number", {"exponent_bits": 1}),
    (ValueError, "^exponent_bits=1 leaves no normal number", {"exponent_bits": 1, "mantissa_bits": 0, "nan": "fn"}),
    (ValueError, "^nan='fn' leaves no code free in 63 bits", {"exponent_bits": 11, "mantissa_bits": 52, "nan": "fn"}),
    (TypeError, "precision_bits", {"precision_bits": 3}),
]


@pytest.mark.parametrize(("error", "message", "change"), REFUSALS)
def test_refusals(error: type[Exception], message: str, change: dict[str, Any]) -> None:
    with pytest.raises(error, match=message):
        Format(**{"name": "mine", "exponent_bits": 5, "mantissa_bits": 10, **change})


@pytest.mark.parametrize(
    "name", ["float64", "double", "FP64", "binary64", "e11m52", np.float64, np.dtype(np.float64), float]
)
def test_float64_by_its_names(name: Any) -> None:
    assert Format.from_name(name) is check_format(name, wide=True) is softfloat.float64
    assert softfloat.array([0.1], dtype=name).values == [0.1]


def test_wide_formats() -> None:
    """More exponent bits, more precision, or numbers further out than a carrier has room for; ends are float64's."""
    assert softfloat.float64.wide
    assert softfloat.float64.to_dtype() == np.float64
    assert not any(fmt.wide for fmt in ROSTER.values())
    assert [Format("x", e, m).wide for e, m in ((8, 23), (9, 1), (2, 24), (11, 52))] == [False, True, True, True]
    assert Format("x", 5, 10, bias=500).wide
    least, most = Format("x", 5, 10, bias=1023), Format("x", 5, 10, bias=-993)
    assert (least.emin, most.emax) == (-1022, 1023)
    assert [x.dtype.itemsize for x in (Format("x", 11, 20), Format("x", 11, 21))] == [4, 8]
    finfo = np.finfo(np.float64)
    for name in (
        "max",
        "min",
        "eps",
        "epsneg",
        "tiny",
        "smallest_subnormal",
        "maxexp",
        "minexp",
        "nmant",
        "precision",
        "resolution",
    ):
        assert getattr(softfloat.float64, name) == getattr(finfo, name), name


def test_narrow_doors_refuse_wide_formats_and_say_what_serves_them() -> None:
    with pytest.raises(
        ValueError,
        match=r"^fmt: this takes formats of at most 8 exponent bits and 24 bits.*float64 has 11 and 53.*bits.convert",
    ):
        check_format("float64")


@pytest.mark.parametrize(
    ("name", "meant"), [("flaot16", "float16"), ("bfloat61", "bfloat16"), ("E4M3FNN", "e4m3fn"), ("fp23", "fp32")]
)
def test_what_was_meant(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"unknown format '{name}'.*53 bits of precision; did you mean '{meant}'\?$"):
        bits.add(1, 1, name)


@pytest.mark.parametrize("fmt", WITH_DTYPE, ids=str)
def test_dtypes_are_formats(fmt: Format) -> None:
    """NumPy's and ml_dtypes' scalar types and dtypes, wherever a format is asked for."""
    dtype = fmt.to_dtype()
    for kind in (dtype, dtype.type, dtype.newbyteorder(">")):
        assert Format.from_name(kind) is fmt
        assert check_format(kind) is fmt
        assert bits.convert(1, kind, kind)[0].dtype == fmt.dtype
        assert softfloat.array([1.0], kind).format is softfloat.array([1.0], dtype=kind).format is fmt
    if fmt.zero:
        assert Stage(dtype.type).format is fmt


def test_dtypes_of_pytorch_are_formats() -> None:
    torch = pytest.importorskip("torch")
    assert Format.from_name(torch.bfloat16) is check_format(torch.bfloat16) is ROSTER["bfloat16"]
    assert bits.encode(0.1, torch.half) == bits.encode(0.1, "float16")
    assert check_format(torch.float64, wide=True) is softfloat.float64
    with pytest.raises(TypeError, match=r"fmt must be a softfloat.Format, the name of one, or a dtype, got torch.int8"):
        check_format(torch.int8)


def test_widths_may_go_without_their_names() -> None:
    assert Format("e5m2", 5, 2) == Format("e5m2", exponent_bits=5, mantissa_bits=2)
    assert Format("e5m2", 5, 2).spec == ROSTER["float8_e5m2"].spec
    with pytest.raises(TypeError, match="positional"):
        Format("mine", 5, 10, 15)  # type: ignore[misc]
    with pytest.raises(TypeError, match="mantissa_bits"):
        Format("mine", exponent_bits=5)  # type: ignore[call-arg]


# -- any format ------------------------------------------------------------------------------------------------------


@st.composite
def formats(draw: st.DrawFn) -> Format:
    """Every valid combination of parameters, none filtered."""
    nan = draw(st.sampled_from(["ieee", "fn", "fnuz", "none"]))
    infinities = nan == "ieee" or draw(st.booleans())
    exponent_bits = draw(st.integers(2 if nan == "ieee" else 1, 8))
    top_codes = 1 if nan == "ieee" else (nan == "fn") + infinities
    mantissa_bits = draw(st.integers(top_codes if exponent_bits == 1 or nan == "ieee" else 0, 23))
    signed = nan == "fnuz" or draw(st.booleans())
    signed_zero = signed and nan != "fnuz"
    zero = signed or draw(st.booleans())
    subnormals = zero and draw(st.booleans())
    bias = draw(st.none() | st.integers(2**exponent_bits - 400, 400 - mantissa_bits))
    return Format(
        "drawn",
        exponent_bits=exponent_bits,
        mantissa_bits=mantissa_bits,
        bias=bias,
        infinities=infinities,
        nan=nan,
        subnormals=subnormals,
        signed_zero=signed_zero,
        signed=signed,
        zero=zero,
    )


def exact_value(fmt: Format, magnitude: int) -> Fraction:
    """The textbook's meaning of a finite magnitude."""
    field, fraction = divmod(magnitude, 2**fmt.mantissa_bits)
    if field == 0 and fmt.zero:
        return fraction * Fraction(2) ** (1 - fmt.bias - fmt.mantissa_bits) * fmt.subnormals
    return (2**fmt.mantissa_bits + fraction) * Fraction(2) ** (field - fmt.bias - fmt.mantissa_bits)


@settings(max_examples=150, deadline=None)
@given(formats(), st.data())
def test_any_format(fmt: Format, data: st.DataObject) -> None:
    assert eval(repr(fmt)) == fmt
    assert fmt.bits == fmt.signed + fmt.exponent_bits + fmt.mantissa_bits <= 32
    inside = st.integers(0, fmt.max_code)
    drawn = data.draw(st.lists(inside, max_size=20))
    edges = {0, 1, fmt.smallest_normal_code - 1, fmt.smallest_normal_code, fmt.max_code - 1, fmt.max_code, fmt.min_code}
    magnitudes = sorted({x for x in (*drawn, *edges) if 0 <= x <= fmt.max_code})
    values = bits.decode(magnitudes, fmt)
    assert [Fraction(x) for x in values] == [exact_value(fmt, x) for x in magnitudes]
    assert all(x < y or x == y == 0 for x, y in pairwise(values))
    assert values[-1] == fmt.max == float(exact_value(fmt, fmt.max_code))
    assert bits.decode(fmt.smallest_normal_code, fmt) == fmt.tiny == 2.0**fmt.minexp
    assert bits.decode(fmt.smallest_subnormal_code, fmt) == fmt.smallest_subnormal
    assert bits.decode(fmt.min_code, fmt) == fmt.min
    assert 2.0 ** (fmt.maxexp - 1) <= fmt.max < 2.0**fmt.maxexp

    signs = [0, fmt.sign_bit] if fmt.signed else [0]
    codes = np.array([x | sign for sign in signs for x in magnitudes])
    codes = codes[bits.isfinite(codes, fmt)]
    number = bits.decode(codes, fmt)
    lone = codes & ~fmt.sign_bit == 0 if fmt.zero and not fmt.signed_zero else np.zeros(codes.shape, bool)
    redundant = (number == 0) & (codes & ~fmt.sign_bit != 0) | lone & (codes != 0)
    returned, flags = bits.encode(number, fmt)
    np.testing.assert_array_equal(returned[~redundant], codes[~redundant])
    np.testing.assert_array_equal(bits.decode(returned, fmt), number)
    assert not flags.any()
    if fmt.has_nan:
        assert np.isnan(bits.decode(fmt.nan_code, fmt))
        assert bits.encode(np.nan, fmt) == (fmt.nan_code, 0)
    else:
        assert bits.encode(np.nan, fmt)[1] == softfloat.Flags.INVALID
    if fmt.infinities:
        assert bits.decode(fmt.inf_code, fmt) == np.inf
        assert bits.encode(np.inf, fmt) == (fmt.inf_code, 0)


def test_numpy_integers_describe_a_format() -> None:
    assert Format("a", exponent_bits=np.int64(5), mantissa_bits=np.uint8(3), bias=np.int32(15)) == Format(
        "a", exponent_bits=5, mantissa_bits=3, bias=15
    )


def test_the_code_of_one_where_it_is_subnormal() -> None:
    """With a bias of 0 the smallest normal number is 2, and exponent field 0 is +0's."""
    fmt = Format("t", exponent_bits=4, mantissa_bits=3, bias=0)
    assert bits.decode(fmt.one_code, fmt) == 1.0
    assert fmt.one_code == 0x04
    bare = Format("u", exponent_bits=4, mantissa_bits=3, bias=0, subnormals=False)
    with pytest.raises(AttributeError, match="u has no 1"):
        bare.one_code  # noqa: B018 -- the property raises


def numbers_of(fmt: Format) -> set[float]:
    values = np.asarray(bits.decode(np.arange(2**fmt.bits).astype(fmt.dtype), fmt))
    return set(values[np.isfinite(values)].tolist())


SMALL = [fmt for fmt in ROSTER.values() if fmt.bits <= 16]
SMALL += [
    Format("made", exponent_bits=e, mantissa_bits=m, bias=bias, subnormals=subnormals, signed=signed, nan=nan)
    for e, m, bias in ((4, 3, 7), (4, 3, 8), (5, 2, 14), (3, 4, 2))
    for subnormals in (True, False)
    for signed in (True, False)
    for nan in ("ieee", "fn")
]


def test_a_format_contains_another_if_it_has_all_its_numbers() -> None:
    numbers = [numbers_of(fmt) for fmt in SMALL]
    for fmt, own in zip(SMALL, numbers, strict=True):
        for other, others in zip(SMALL, numbers, strict=True):
            assert fmt.contains(other) == (others <= own), (fmt, other)


def test_formats_of_p3109() -> None:
    fmt = Format.p3109(8, 3)
    assert Format.from_name("Binary8P3SE") is Format.from_name("binary8p3se") is fmt is Format.p3109("binary8p3se")
    assert (fmt.nan_code, fmt.inf_code, fmt.bias, fmt.domain) == (0x80, 0x7F, 16, "extended")
    unsigned = Format.p3109(8, 1, signed=False, extended=False)
    assert (unsigned.name, unsigned.nan_code, unsigned.bias, unsigned.domain) == ("binary8p1uf", 0xFF, 128, "finite")
    assert ("P3109, draft 4.0", "binary8p3se, extended") in format_facts(fmt)


def test_what_p3109_calls_others() -> None:
    names = {name: fmt.p3109_name for name, fmt in ROSTER.items() if fmt.p3109_name}
    assert names == {"float8_e4m3fnuz": "binary8p4sf", "float8_e5m2fnuz": "binary8p3sf"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, 1), "^k must be at least 3, got 2"),
        ((8, 8), "^p must be 1 to 7 in a signed format of 8 bits, got 8"),
        ((8, 0), "^p must be 1 to 7"),
        ((16, 1), "^binary16p1se has 15 exponent bits and 1 bits of precision; accepted: at most 11 and 53"),
        (("binary8",), "^k must be a number of bits or a name such as 'binary8p3se', got 'binary8'"),
    ],
)
def test_p3109_formats_that_are_not(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Format.p3109(*arguments)
    if arguments == (16, 1):
        with pytest.raises(ValueError, match=message):
            Format.from_name("Binary16p1se")


def test_p3109_wants_whole_numbers() -> None:
    with pytest.raises(TypeError, match=r"^p must be an integer, got None"):
        Format.p3109(8)
    with pytest.raises(TypeError, match=r"^p comes with the name"):
        Format.p3109("binary8p3se", 3)
