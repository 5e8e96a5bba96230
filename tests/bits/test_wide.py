"""Formats of up to 11 exponent bits and 53 bits of precision, against the oracle: formats, modes and all other rules drawn at random."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from drawn import formats as narrow_formats
from drawn import sampled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import assert_as_the_oracle, assert_comparisons, assert_integers
from softfloat.kernels.spec import NAN_POLICIES, SR_METHODS, Rounding

import softfloat
from softfloat import Format, bits, float16, float32, float64, reference
from softfloat.accumulators import amp, tensor_core, vdpbf16ps
from softfloat.display import exploration
from softfloat.engine import elementwise
from softfloat.testing import strategies
from softfloat.testing.vectors.operations import resolve

ARITY = {
    "add": 2,
    "sub": 2,
    "mul": 2,
    "div": 2,
    "remainder": 2,
    "sqrt": 1,
    "fma": 3,
    "round_to_integral": 1,
    "fmod": 2,
    "modulo": 2,
    "floor_divide": 2,
}
MODES = tuple(mode.name.lower() for mode in Rounding)
PLENTY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def formats(draw: st.DrawFn) -> Format:
    """Any wide format: fields drawn, and drawn again where they do not go together."""
    if draw(st.integers(0, 5)) == 0:
        return float64
    nan = draw(sampled(["ieee", "ieee", "ieee", "fn", "fnuz", "none"]))
    signed = nan == "fnuz" or draw(sampled([True, True, True, False]))
    zero = signed or draw(st.booleans())
    most = 11 if nan == "ieee" and zero else 10
    exponent_bits = draw(st.integers(2, most) | st.integers(9, most))
    mantissa_bits = draw(st.integers(int(nan == "ieee"), 52) | st.integers(24, 52) | sampled([51, 52]))
    if exponent_bits <= 8 and mantissa_bits <= 23:
        mantissa_bits += 24
    if nan != "ieee" and exponent_bits + mantissa_bits > 62:
        mantissa_bits = 62 - exponent_bits
    lowest = 2**exponent_bits - 1 - (nan == "ieee") - 1023
    usual = 2 ** (exponent_bits - 1) - 1
    bias = draw(st.integers(lowest, 1022 + zero) | st.just(max(usual, lowest)))
    return Format(
        "drawn",
        exponent_bits=exponent_bits,
        mantissa_bits=mantissa_bits,
        bias=bias,
        nan=nan,
        infinities=nan == "ieee" or draw(st.booleans()),
        signed=signed,
        signed_zero=signed and nan != "fnuz",
        zero=zero,
        subnormals=zero and draw(sampled([True, True, False])),
    )


@st.composite
def rules(draw: st.DrawFn, fmt: Format) -> dict[str, Any]:
    """Options of a call that rounds to a format."""
    options: dict[str, Any] = {
        "rounding": draw(sampled(MODES)),
        "overflow": draw(sampled(["infinity", "saturate", "nan"] if fmt.has_nan else ["infinity", "saturate"])),
        "tininess": draw(sampled(["after", "before"])),
        "infinite_input": draw(sampled(["default", "keep", "saturate", "nan"])),
        "daz": draw(sampled([False, False, True])),
        "ftz": draw(sampled([False, False, True])),
        "nan": draw(sampled(list(NAN_POLICIES))),
    }
    if options["rounding"] == "stochastic":
        options["sr_method"] = draw(sampled(SR_METHODS)) if fmt.wide else "truncate"
        options["sr_bits"] = draw(st.integers(1, 52) | st.just(52))
        top = 2 ** options["sr_bits"] - 1
        options["random_bits"] = draw(st.one_of(st.integers(0, top), sampled([0, top, (top + 1) // 2])))
    elif options["rounding"] == "up_or_down":
        options["random_bits"] = draw(st.integers(0, 1))
    return options


@st.composite
def near(draw: st.DrawFn, code: int, fmt: Format) -> int:
    """A code some binades, or some units, away from another."""
    moved = code + draw(st.integers(-3, 3)) + (draw(st.integers(-60, 60) | st.integers(-2, 2)) << fmt.mantissa_bits)
    return min(max(moved ^ draw(sampled([0, fmt.sign_bit])), 0), 2**fmt.bits - 1)


@st.composite
def rows(draw: st.DrawFn, fmt: Format, arity: int) -> list[tuple[int, ...]]:
    """Operands, every other row with the second near the first."""
    found = []
    for _ in range(draw(st.integers(1, 6))):
        row = [draw(strategies.codes(fmt)) for _ in range(arity)]
        if arity > 1 and draw(st.booleans()):
            row[-1] = draw(near(row[0], fmt))
        found.append(tuple(row))
    return found


@PLENTY
@given(st.data(), formats(), sampled(list(ARITY)))
def test_arithmetic(data: st.DataObject, fmt: Format, name: str) -> None:
    assert_as_the_oracle(name, fmt, data.draw(rows(fmt, ARITY[name])), data.draw(rules(fmt)))


@PLENTY
@given(st.data(), formats() | narrow_formats(), formats() | narrow_formats())
def test_convert(data: st.DataObject, src: Format, dst: Format) -> None:
    operands, options = data.draw(rows(src, 1)), data.draw(rules(dst))
    if not dst.wide and options.get("sr_method", "truncate") != "truncate":
        return
    codes, flags = bits.convert(np.array(operands, src.dtype).ravel(), src, dst, **options)
    for (operand,), code, flag in zip(operands, codes, flags, strict=True):
        expected = reference.convert(operand, src, dst, **options)
        assert (int(code), int(flag)) == expected, (hex(operand), src, dst, options)


@PLENTY
@given(
    st.data(),
    st.lists(formats() | narrow_formats(), min_size=4, max_size=4),
    sampled(["add", "sub", "mul", "div", "fma"]),
)
def test_operands_of_several_formats(data: st.DataObject, named: list[Format], name: str) -> None:
    """Exact values of wide and narrow operands, rounded once into a wide or narrow format."""
    if not any(fmt.wide for fmt in named):
        named[0] = float64
    first, *others, output = named
    read, options = [first, *others][: ARITY[name]], data.draw(rules(output))
    operands = [data.draw(st.lists(strategies.codes(fmt), min_size=4, max_size=4)) for fmt in read]
    others = {f"{letter}_format": fmt for letter, fmt in zip("bc", read[1:], strict=False)}
    columns = [np.array(x, fmt.dtype) for x, fmt in zip(operands, read, strict=True)]
    codes, flags = getattr(bits, name)(*columns, first, out_format=output, **others, **options)
    for i, row in enumerate(zip(*operands, strict=True)):
        expected = getattr(reference, name)(*row, first, out_format=output, **others, **options)
        assert (int(codes[i]), int(flags[i])) == expected, (name, [hex(x) for x in row], named, options)


NUMBERS = st.one_of(
    st.floats(),
    st.integers(-(2**80), 2**80),
    st.integers(-(2**1030), 2**1030),
    st.fractions(),
    st.builds(lambda n, e: n * Fraction(2) ** e, st.integers(-(2**120), 2**120), st.integers(-1300, 1000)),
)


@PLENTY
@given(st.data(), formats(), st.lists(NUMBERS, min_size=1, max_size=8))
def test_encode(data: st.DataObject, fmt: Format, numbers: list[float | int | Fraction]) -> None:
    options = data.draw(rules(fmt))
    codes, flags = bits.encode(numbers, fmt, **options)
    for x, code, flag in zip(numbers, codes, flags, strict=True):
        assert (int(code), int(flag)) == reference.encode(x, fmt, **options), (x, fmt, options)


@PLENTY
@given(st.data(), formats(), st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8))
def test_encode_of_long_integers(data: st.DataObject, fmt: Format, numbers: list[int]) -> None:
    options = data.draw(rules(fmt))
    codes, flags = bits.encode(np.array(numbers), fmt, **options)
    for x, code, flag in zip(numbers, codes, flags, strict=True):
        assert (int(code), int(flag)) == reference.encode(x, fmt, **options), (x, fmt, options)


@PLENTY
@given(st.data(), formats())
def test_decode_goes_back(data: st.DataObject, fmt: Format) -> None:
    codes = np.array(data.draw(st.lists(strategies.codes(fmt), min_size=1, max_size=8)), fmt.dtype)
    for code, value in zip(codes.tolist(), bits.decode(codes, fmt).tolist(), strict=True):
        exact = reference.decode(code, fmt)
        if exact.is_nan:
            assert value != value
        else:
            assert Fraction(value) == exact.number if not exact.is_infinite else value == exact.real
            assert np.signbit(value) == exact.negative


@PLENTY
@given(
    st.data(),
    formats(),
    sampled(["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]),
    st.booleans(),
)
def test_to_integer(data: st.DataObject, fmt: Format, dtype: str, exact: bool) -> None:
    operands, options = data.draw(rows(fmt, 1)), data.draw(rules(fmt))
    options = {name: options[name] for name in ("rounding", "daz", "nan", "sr_bits", "random_bits") if name in options}
    assert_integers(fmt, operands, dtype, exact, options)


@PLENTY
@given(st.data(), formats(), sampled(list(NAN_POLICIES)), st.booleans())
def test_comparisons_and_selections(data: st.DataObject, fmt: Format, nan: str, daz: bool) -> None:
    operands = data.draw(rows(fmt, 2))
    assert_comparisons(fmt, operands, nan, daz)


def test_selections_keep_payloads_as_nvidias_doubles_do() -> None:
    quiet, signalling = 0x7FF8000000000005, 0x7FF0000000000001
    for name in ("minimum", "maximum", "minimum_number", "maximum_number"):
        assert_as_the_oracle(name, float64, [(0, signalling), (quiet, signalling)], {"nan": "nvidia"})
    assert bits.minimum(0, signalling, "float64", nan="nvidia") == (0x7FF8000000000001, 16)


@PLENTY
@given(st.data(), formats())
def test_neighbours_and_classes(data: st.DataObject, fmt: Format) -> None:
    """The next number is what a quarter of the least step more, or less, is rounded to, away from the operand."""
    codes = np.array(data.draw(st.lists(strategies.codes(fmt), min_size=1, max_size=6)), fmt.dtype)
    classes, values = bits.classify(codes, fmt), bits.decode(codes, fmt)
    for code, found in zip(codes.tolist(), classes, strict=True):
        assert bits.CLASSES[found].lower() == reference.classify(code, fmt).replace("_", "").replace("ll", "l")
    for up, name in ((True, "next_up"), (False, "next_down")):
        moved = getattr(bits, name)(codes, fmt)[0]
        least = Fraction(1, 2**1080) if up else -Fraction(1, 2**1080)
        for code, value, found in zip(codes.tolist(), values.tolist(), moved.tolist(), strict=True):
            if np.isfinite(value) and fmt.zero and fmt.signed and fmt.infinities:
                exact = Fraction(value) + least
                expected = reference.encode(exact, fmt, rounding="toward_positive" if up else "toward_negative")[0]
                assert found == expected, (hex(code), fmt, name)


@pytest.mark.parametrize("nan", NAN_POLICIES)
def test_payloads_between_narrow_formats_and_float64(nan: str) -> None:
    """All NaNs of half and single that differ in one bit, both ways; NVIDIA's conversions keep payloads where its policy does not."""
    for narrow in (float16, float32):
        nans = [narrow.inf_code | 1 << i | sign for i in range(narrow.mantissa_bits) for sign in (0, narrow.sign_bit)]
        wide = bits.convert(np.array(nans, narrow.dtype), narrow, float64, nan=nan)
        for code, found, flags in zip(nans, *wide, strict=True):
            assert (int(found), int(flags)) == reference.convert(code, narrow, float64, nan=nan), (hex(code), nan)
        back = bits.convert(wide[0], float64, narrow, nan=nan)
        for code, found, flags in zip(wide[0].tolist(), *back, strict=True):
            assert (int(found), int(flags)) == reference.convert(code, float64, narrow, nan=nan), (hex(code), nan)


def test_codes_of_both_signs_in_a_list() -> None:
    assert softfloat.from_codes([0, 0x8000000000000000], "float64").codes.tolist() == [0, 1 << 63]
    assert bits.add([0, 1 << 63], [1 << 63, 0x3FF0000000000000], float64)[0].tolist() == [0, 0x3FF0000000000000]
    for codes in ([0.0, float(1 << 63)], [0.5], np.array([0.0])):
        with pytest.raises(TypeError, match="got dtype float64"):
            softfloat.from_codes(codes, "float64")


@pytest.mark.parametrize("mantissa_bits", [51, 52])
def test_what_rounds_up_to_the_smallest_normal_number_is_not_tiny(mantissa_bits: int) -> None:
    """No float64 lies between 2^-254 and the least of such numbers, and sin(2^-254), below it by a part in 2^510, raised UNDERFLOW."""
    fmt = Format("e9", exponent_bits=9, mantissa_bits=mantissa_bits)
    numbers = [
        sign * Fraction(2) ** fmt.emin * (1 - Fraction(1, 2**n))
        for sign in (1, -1)
        for n in (52, 53, 54, 55, 60, 127, 300)
    ]
    smallest = [fmt.smallest_normal_code, fmt.smallest_normal_code | fmt.sign_bit]
    settled = [mode.name.lower() for mode in Rounding if not mode.draws]
    for mode, tininess in itertools.product(settled, ("after", "before")):
        options = {"rounding": mode, "tininess": tininess}
        found = zip(*bits.encode(numbers, fmt, **options), strict=True)
        assert [tuple(map(int, x)) for x in found] == [reference.encode(x, fmt, **options) for x in numbers], options
        found = zip(*bits.sin(smallest, fmt, **options), strict=True)
        assert [tuple(map(int, x)) for x in found] == [reference.sin(x, fmt, **options) for x in smallest], options


def test_neighbour_of_a_power_of_two_is_half_as_far_below() -> None:
    one = float64.one_code
    assert bits.decode(bits.next_down(one, float64)[0], float64) == 1 - 2.0**-53
    codes, _ = bits.sub(one, bits.encode(2.0**-60, float64)[0], float64, rounding="toward_zero")
    assert bits.decode(codes, float64) == 1 - 2.0**-53


@pytest.mark.parametrize("fmt", [float64, Format("e11m23", 11, 23), Format("e8m40", 8, 40)], ids=str)
def test_powers_of_two_stay_under_stochastic_rounding(fmt: Format) -> None:
    """An exact result is its own rounding whatever is drawn: StochasticRounding.jl, issue 74, took powers of two down."""
    powers = bits.encode(2.0 ** np.arange(-60, 60), fmt)[0]
    for seed in range(8):
        options = {"rounding": "stochastic", "seed": seed}
        for found in (
            bits.convert(powers, fmt, fmt, **options),
            bits.mul(powers, fmt.one_code, fmt, **options),
            bits.div(powers, fmt.one_code, fmt, **options),
            bits.sqrt(bits.mul(powers, powers, fmt)[0], fmt, **options),
            bits.add(powers, 0, fmt, **options),
            bits.sub(bits.add(powers, powers, fmt)[0], powers, fmt, **options),
        ):
            assert (found[0] == powers).all()
            assert not found[1].any()


def test_random_numbers_are_those_of_every_format() -> None:
    """By address, and handed in, the same bits; the same numbers as a narrow format draws, whose sums integers round alike."""
    x = np.random.default_rng(0).standard_normal(1000)
    same = Format("e9m10", 9, 10, bias=float16.bias + 100)
    drawn = bits.random_bits(1000, seed=3, stream=5, sr_bits=52)
    for fmt in (float64, same):
        a, b = bits.encode(x, fmt)[0], bits.encode(x[::-1].copy(), fmt)[0]
        by_address = bits.add(a, b, fmt, rounding="stochastic", seed=3, stream=5)
        handed = bits.add(a, b, fmt, rounding="stochastic", sr_bits=52, random_bits=drawn)
        assert (by_address[0] == handed[0]).all()
        cut = bits.add(a[256:], b[256:], fmt, rounding="stochastic", seed=3, stream=5, position=256)
        assert (by_address[0][256:] == cut[0]).all()
    half = bits.encode(x, float16, rounding="stochastic", seed=1)[0]
    wide = bits.encode(x, same, rounding="stochastic", seed=1)[0]
    normal = np.abs(x) > float16.tiny
    assert (bits.decode(half, float16) == bits.decode(wide, same))[normal].all()


def test_float64_is_the_machines() -> None:
    """To nearest, NumPy's own operators, on random bit patterns and on cancelling operands."""
    random = np.random.default_rng(1)
    a = random.integers(0, 2**64, 20_000, dtype=np.uint64)
    with np.errstate(all="ignore"):
        close = (a.view(np.float64) * -(1 + 2.0 ** -random.integers(1, 60, a.size))).view(np.uint64)
    for b in (random.permutation(a), close):
        with np.errstate(all="ignore"):
            x, y = a.view(np.float64), b.view(np.float64)
            expected = {
                "add": x + y,
                "sub": x - y,
                "mul": x * y,
                "div": x / y,
                "sqrt": np.sqrt(x),
                "fmod": np.fmod(x, y),
            }
        for name, value in expected.items():
            codes = getattr(bits, name)(*(a, b)[: ARITY[name]], float64)[0]
            nan = np.isnan(value)
            assert ((codes == value.view(np.uint64)) | (nan & bits.isnan(codes, float64))).all(), name


BLOCKS = {
    "nearest_even": ("add", "sub", "mul", "div", "sqrt"),
    "nearest_away": ("add", "div"),
    "toward_zero": ("mul",),
    "toward_positive": ("add", "fma"),
    "toward_negative": ("sub", "sqrt"),
    "to_odd": ("fma",),
    "stochastic": ("sub", "mul", "div", "sqrt"),
}
SHORTER_BLOCKS = {
    "nearest_even": ("fma",),
    "nearest_away": ("mul",),
    "toward_zero": ("add",),
    "toward_positive": ("div",),
    "toward_negative": ("convert", "div"),
    "to_odd": ("mul",),
    "stochastic": ("add", "fma"),
}


def assert_blocks(names: tuple[str, ...], fmt: Format, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelling, exact, huge and tiny operands among ordinary ones; errors inward of a power of two."""
    random = np.random.default_rng(5)
    x = random.standard_normal(4096) * 2.0 ** random.integers(-40, 40, 4096)
    y = np.where(
        random.random(4096) < 0.3, -x * (1 + 2.0 ** -random.integers(1, 56, 4096)), random.standard_normal(4096)
    )
    y[:256] = 1 - 2.0 ** -random.integers(1, 54, 256)
    y[256:512] = 2.0 ** random.integers(-54, 0, 256)
    x[:128], x[128:384] = 2.0 ** random.integers(0, 3, 128), np.round(x[128:384])
    z = np.where(random.random(4096) < 0.5, -x * y * (1 + 2.0 ** -random.integers(1, 60, 4096)), y)
    x[1024:1030], y[2048:2052] = (0.0, 5e-324, 1e308, -1e-200, np.inf, np.nan), (1e300, -0.0, 2.0**-1060, -1e308)
    x[3000:3002], y[3000:3002] = (0.0, -3.0), 0.0
    x[3200:3584] = 2.0 ** random.integers(-3, 4, 384)  # which an error leads inward of: places are half as long there
    y[3200:3584] = x[3200:3584] * random.random(384) * 2.0**-54 * np.where(np.arange(384) < 192, 1, -1)
    a, b, c, positive = (bits.encode(numbers, fmt)[0] for numbers in (x, y, z, np.abs(x)))
    doubles = x.view(np.uint64)
    options = [{"seed": 1}, {"seed": 2, "sr_bits": 8}, {"sr_bits": 52, "random_bits": 0}]
    for name in names:
        operands = {"sqrt": (positive,), "convert": (doubles,), "fma": (a, b, c)}.get(name, (a, b))
        formats = (float64, fmt) if name == "convert" else (fmt,)
        for drawn in options if mode == "stochastic" else [{}]:
            for flags in ("each", "any"):
                found = getattr(bits, name)(*operands, *formats, rounding=mode, flags=flags, **drawn)
                with monkeypatch.context() as patch:
                    patch.setattr(elementwise, "FAST", False)
                    expected = getattr(bits, name)(*operands, *formats, rounding=mode, flags=flags, **drawn)
                assert (found[0] == expected[0]).all(), (name, drawn)
                assert np.all(found[1] == expected[1]), (name, drawn)


@pytest.mark.parametrize("mode", BLOCKS)
def test_blocks_of_ordinary_numbers_have_the_same_bits(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_blocks(BLOCKS[mode], float64, mode, monkeypatch)


@pytest.mark.parametrize("mode", SHORTER_BLOCKS)
def test_blocks_of_shorter_formats_have_the_same_bits(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 52 bits and of 11; of codes of 16 bits; of few exponents, which overflow and underflow among ordinary numbers.

    -NaN, rounded to two bits and down, is carried beyond 64 bits.
    """
    drawn = (Format(f"e{e}m{m}", e, m) for e, m in ((11, 51), (11, 40), (9, 10), (6, 36), (11, 1)))
    for fmt in drawn:
        assert_blocks(SHORTER_BLOCKS[mode], fmt, mode, monkeypatch)


@pytest.mark.parametrize("mode", ["nearest_even", "nearest_away", "toward_positive", "to_odd", "stochastic"])
@pytest.mark.parametrize("fmt", [float64, Format("e11m23", 11, 23), Format("e9m30", 9, 30, subnormals=False)], ids=str)
def test_round_is_encode_and_decode(fmt: Format, mode: str) -> None:
    x = np.random.default_rng(7).integers(0, 2**64, 2000, dtype=np.uint64).view(np.float64)
    x = x[~np.isnan(x)]
    given = {"rounding": mode} | ({"seed": 3} if mode == "stochastic" else {})
    with softfloat.environment() as env:
        found = softfloat.round(x, fmt, **given)
    codes, flags = bits.encode(x, fmt, flags="any", **given)
    expected = bits.decode(codes, fmt)
    assert (found.view(np.uint64) == expected.view(np.uint64)).all()
    assert int(env.status.flags) == flags


FUNCTION_RULES: list[dict[str, Any]] = [
    {},
    {"rounding": "toward_positive", "nan": "x86"},
    {"rounding": "toward_negative", "nan": "arm", "ftz": True, "daz": True, "tininess": "before"},
    {"rounding": "to_odd", "nan": "nvidia", "overflow": "saturate"},
    {"nan": "ipu"},
    {"rounding": "stochastic", "sr_bits": 20, "random_bits": 777_777},
]


@pytest.mark.parametrize(
    "name", ["exp", "degrees", "radians", "atanh", "log2", "pow", "hypot", "logaddexp", "logaddexp2"]
)
def test_functions_are_the_oracles(name: str) -> None:
    """Subnormal operands, poles, NaNs of both kinds, rational values, and values next to numbers."""
    numbers = [
        0.3,
        -700.0,
        5e-324,
        1e308,
        -1e308,
        2.0**-600,
        1.0,
        -1.0,
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1e-200,
        3.0,
    ]
    codes = bits.encode(numbers, float64)[0]
    codes = np.append(codes, np.uint64(float64.spec.infinity + 1))
    two = name in ("pow", "hypot", "logaddexp", "logaddexp2")
    operands = [codes[:, None], codes[None, ::2]] if two else [codes]
    operands = [x.ravel() for x in np.broadcast_arrays(*operands)]
    for options in FUNCTION_RULES[:: 2 if two else 1]:
        found = getattr(bits, name)(*operands, float64, **options)
        for i, row in enumerate(zip(*(x.tolist() for x in operands), strict=True)):
            expected = getattr(reference, name)(*row, float64, **options)
            assert (int(found[0][i]), int(found[1][i])) == expected, (options, row)


def test_functions_of_arrays_and_random_addresses() -> None:
    x = np.random.default_rng(0).standard_normal(600)
    assert np.allclose(np.exp(softfloat.array(x, float64)).values, np.exp(x), rtol=1e-15)
    fmt, options = Format("e11m10", 11, 10), {"rounding": "stochastic", "seed": 4}
    codes = bits.encode(x, fmt)[0]
    whole, flags = bits.sin(codes, fmt, flags="any", **options)
    part, _ = bits.sin(codes[256:], fmt, position=256, **options)
    assert (whole[256:] == part).all()
    assert flags == 1


def test_other_doors_refuse_by_name() -> None:
    one = float64.one_code
    with pytest.raises(ValueError, match=r"^element: a block format takes formats of at most 8"):
        softfloat.BlockFormat("mine", element="float64", scale="float8_e8m0fnu", block=2)
    with pytest.raises(ValueError, match=r"^scale: a block format takes formats of at most 8"):
        softfloat.BlockFormat("mine", element="float8_e4m3fn", scale=float64, block=2)
    codes = np.full((2, 2), one, np.uint64)
    for chip in ("V100", "A100", "L40S", "H100", "B200"):
        with pytest.raises(
            ValueError, match=r"'float64' is a chain of fused multiply-adds .*accepted: fma\('float64'\)"
        ):
            tensor_core(chip, input="float64")
        with pytest.raises(ValueError, match=r"^output: tensor_core takes formats of at most 8"):
            tensor_core(chip, output="float64")
    for unit in (tensor_core("H100"), amp("half"), vdpbf16ps()):
        with pytest.raises(ValueError, match=r"^fmt must be '(b?)float16' for .*, got 'float64'"):
            bits.matmul(codes, codes, float64, unit)
    with pytest.raises(ValueError, match="projection='p3109' is not for results in float64"):
        bits.add(one, one, float64, projection="p3109")
    with pytest.raises(ValueError, match="the explorer takes formats of at most 8"):
        exploration.start("float64")
    with pytest.raises(ValueError, match="vectors of vecdot takes formats of at most 8"):
        resolve("vecdot", Format("e11m20", 11, 20), accumulator="fma('float32')")


def test_numpy_and_python_numbers_stay_weak() -> None:
    half, double = softfloat.array([0.1, 2.0], "float16"), softfloat.array([0.1, 2.0], "float64")
    assert (half + np.float64(0.1)).format == float16
    assert (double + 0.1).values.tolist() == [0.1 + 0.1, 2.1]
    assert np.prod(double, axis=0).values == 0.2
    assert np.multiply.accumulate(softfloat.array([0.1, 2.0, 3.0], "float64")).values.tolist() == [0.1, 0.2, 0.2 * 3.0]
    with pytest.raises(TypeError, match="does not match format"):
        half + double
    with pytest.raises(TypeError, match="has format of NumPy's numbers that does not match format float64"):
        double + np.array([0.1, 2.0])
    for number in (3, 0.1, True, np.float64(0.1)):
        for x, exact in ((half, np.float16), (double, np.float64)):
            found = x + number, number * x
            assert [y.format for y in found] == [x.format] * 2
            assert [y.values.tolist() for y in found] == [
                (x.values.astype(exact) + exact(number)).tolist(), (exact(number) * x.values.astype(exact)).tolist()
            ]  # fmt: skip
    for x in (half, double):
        for other in (np.float32(0.1), np.int64(3), np.array(0.1)):
            with pytest.raises(TypeError, match=r"does not match format .*\.item\(\) makes a Python number of it"):
                x + other
    with pytest.raises(TypeError, match="fmt is needed"):
        softfloat.array(np.array([0.1]))
    assert half.astype(float64).values.tolist() == half.values.tolist()
    assert isinstance(half.astype(np.float64), np.ndarray)


def test_linear_algebra_in_float64() -> None:
    """Solved by the same textbook in float64, and refined in it from factors in half: GMRES-IR's double."""
    random = np.random.default_rng(4)
    a, b = random.standard_normal((5, 5)) + 5 * np.eye(5), random.standard_normal(5)
    x = np.linalg.solve(softfloat.array(a, float64), softfloat.array(b, float64))
    assert x.format == float64
    np.testing.assert_allclose(x.values, np.linalg.solve(a, b), rtol=1e-13)
    found = softfloat.linalg.refine(a, b, factor="float16", working="float64", residual="float64", solver="gmres")
    assert found.converged
    assert found.nbe[-1] < 1e-15
