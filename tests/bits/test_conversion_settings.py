"""Which settings a conversion follows: operands those of their own format, results those of theirs. Any format to any other, every preset."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawn import formats, sampled
from hypothesis import assume, given
from hypothesis import strategies as st
from softfloat.kernels.spec import NAN_POLICIES, SR_REACH, Overflow, Rounding

import softfloat
from softfloat import ROSTER, Environment, Format, bits, float16, float32, jit, reference
from softfloat.accumulators import fma
from softfloat.testing import strategies

NUMERIC = ("rounding", "overflow", "tininess", "infinite_input", "nan", "sr_bits", "sr_method", "projection")
UNDERFLOW, INEXACT = 2, 1
SMALLEST_HALF = 0x33800000
"""2^-24 in float32."""


@st.composite
def plain(draw: st.DrawFn) -> Environment:
    """Settings of one format or of all."""
    return Environment(
        rounding=draw(sampled([mode for mode in Rounding if not mode.draws])),
        overflow=draw(sampled(Overflow)),
        tininess=draw(sampled(["after", "before"])),
        infinite_input=draw(sampled(["default", "keep", "saturate", "nan"])),
        daz=draw(st.booleans()),
        ftz=draw(st.booleans()),
        converts_subnormals=draw(st.booleans()),
        nan=draw(sampled(NAN_POLICIES)),
    )


@st.composite
def environments(draw: st.DrawFn, names: tuple[str, ...]) -> Environment:
    """Every preset with all its arguments, and settings drawn for each format."""
    yes = st.booleans()
    match draw(sampled(["arm", "x86", "riscv", "nvidia", "avx10_bf16", "ipu", "p3109", "own"])):
        case "arm":
            names_ = ("fz", "fiz", "fz16", "ah", "dn")
            return Environment.arm(draw(sampled(["RN", "RP", "RM", "RZ"])), **{name: draw(yes) for name in names_})
        case "x86":
            return Environment.x86(0x1F80 | draw(st.integers(0, 3)) << 13 | 0x8000 * draw(yes) | 0x40 * draw(yes))
        case "riscv":
            return Environment.riscv(draw(sampled(["RNE", "RTZ", "RDN", "RUP", "RMM"])))
        case "nvidia":
            return Environment.nvidia(ftz=draw(yes)).replace(rounding=draw(sampled(["nearest_even", "nearest_away"])))
        case "avx10_bf16":
            return Environment.avx10_bf16()
        case "ipu":
            return Environment.ipu(esr=draw(yes), nanoo=draw(yes), seed=draw(st.integers(0, 2**64 - 1)))
        case "p3109":
            modes = ["NearestTiesToEven", "NearestTiesToAway", "TowardPositive", "ToOdd", "StochasticA", "StochasticC"]
            saturation = draw(sampled(["none", "finite", "propagate"]))
            return Environment.p3109(draw(sampled(modes)), saturation=saturation, bits=draw(st.integers(1, 12)), seed=3)
    return replace(draw(plain()), overrides={name: draw(plain()) for name in names if draw(yes)})


def expected(code: int, src: Format, dst: Format, env: Environment, random_bits: int | None) -> tuple[int, int]:
    """The oracle's conversion of what the operand's own settings make of a code."""
    own, read = env.for_format(dst.name), env.for_format(src.name)
    options: dict[str, Any] = {name: getattr(own, name) for name in NUMERIC}
    if options["rounding"].draws:
        options["random_bits"] = random_bits
        options["sr_bits"] = own.sr_bits or 52
    options["daz"] = read.daz and not read.converts_subnormals
    options["ftz"] = own.ftz and not own.converts_subnormals
    return reference.convert(code, src, dst, **options)


def flushed(codes: np.ndarray, fmt: Format, env: Environment) -> np.ndarray:
    """Codes, zeros in place of what operations read as such."""
    sign = fmt.sign_bit if fmt.signed else 0
    tiny = np.asarray(bits.issubnormal(codes, fmt)) & env.for_format(fmt.name).daz
    return np.where(tiny, codes & fmt.dtype.type(sign), codes).astype(fmt.dtype)


@given(st.data())
def test_any_format_to_any_other_under_every_preset(data: st.DataObject) -> None:
    kinds = formats() | sampled(ROSTER.values())
    src, dst = replace(data.draw(kinds, "src"), name="src"), data.draw(kinds, "dst")
    src = ROSTER[data.draw(sampled(["float16", "float32"]), "name")] if data.draw(st.booleans(), "named") else src
    env = data.draw(environments((src.name, dst.name)), "env")
    own = env.for_format(dst.name)
    width, draws = own.settings.random_width, own.rounding.draws
    assume(dst.has_nan or own.overflow is not Overflow.NAN)
    assume(not draws or own.sr_method == "truncate" or width <= SR_REACH - dst.p)
    codes = np.array(data.draw(st.lists(strategies.codes(src), min_size=1, max_size=8), "codes"), src.dtype)
    drawn = np.array([data.draw(st.integers(0, 2**width - 1)) if draws else 0 for _ in codes], np.uint64)
    wanted = [expected(int(x), src, dst, env, int(r)) for x, r in zip(codes, drawn, strict=True)]
    if draws:
        asked = env if own.sr_bits else env.replace(sr_bits=width)
        ways = [bits.convert(codes, src, dst, environment=asked, random_bits=drawn)]
    else:
        many = bits.convert(np.tile(codes, 600), src, dst, environment=env)
        ways = [bits.convert(codes, src, dst, environment=env), (many[0][-codes.size :], many[1][-codes.size :])]
        single = bits.scalar("convert", src, to=dst, environment=env)
        ways += [tuple(zip(*(single(int(x)) for x in codes), strict=True))]
        if src in (float16, float32):
            ways += [bits.encode(codes.view(src.to_dtype()), dst, environment=env)]
        if src != dst:
            with env.replace(traps=0) as entered:
                found = softfloat.from_codes(codes, src).astype(dst)
            assert entered.status.flags == np.bitwise_or.reduce([flags for _, flags in wanted])
            assert found.codes.tolist() == [code for code, _ in wanted]
    for found, flags in ways:
        assert [(int(code), int(flag)) for code, flag in zip(found, flags, strict=True)] == wanted


@given(st.data())
def test_operands_of_several_formats(data: st.DataObject) -> None:
    """Operations and sums read each operand as its own format's settings say: as zeros, and nothing flushed, have it."""
    named = [ROSTER[data.draw(sampled(["float16", "bfloat16", "float32", "float8_e5m2"]))] for _ in range(4)]
    env = data.draw(environments(tuple({fmt.name for fmt in named})), "env").replace(traps=0)
    assume(all(not env.for_format(fmt.name).rounding.draws for fmt in named))
    first, second, third, output = named
    rows = [
        np.array(data.draw(st.lists(strategies.codes(fmt), min_size=3, max_size=3)), fmt.dtype) for fmt in named[:3]
    ]
    zeroed = [flushed(x, fmt, env) for x, fmt in zip(rows, named[:3], strict=True)]
    kept = env.replace(daz=False)
    formats_ = {"b_format": second, "c_format": third, "out_format": output}
    found = bits.fma(*rows, first, **formats_, environment=env)
    np.testing.assert_array_equal(found, bits.fma(*zeroed, first, **formats_, environment=kept))
    how = fma("float32")
    found = bits.vecdot(rows[0], rows[1], (first, second), how, environment=env)
    sums = Environment(**{name: getattr(env.for_format("float32"), name) for name in (*NUMERIC, "daz", "ftz")})
    fixed = how.replace(daz=False)
    np.testing.assert_array_equal(found, bits.vecdot(zeroed[0], zeroed[1], (first, second), fixed, environment=sums))


X86 = Environment.x86(0x9FC0)  # DAZ and FTZ


@pytest.mark.parametrize(
    ("code", "src", "dst", "env", "result"),
    [
        (1, float16, float32, X86, (SMALLEST_HALF, 0)),  # VCVTPH2PS
        (1, float16, float32, Environment.arm(fz=True), (SMALLEST_HALF, 0)),  # FPUnpackCV
        (1, float16, float32, Environment.arm(fz16=True), (SMALLEST_HALF, 0)),
        (SMALLEST_HALF, float32, float16, Environment.arm(fz16=True), (1, 0)),  # FPRoundCV
        (1, float32, float16, X86, (0, 0)),  # VCVTPS2PH
        (1, float32, float16, Environment.arm(fz=True), (0, 0)),
        (1, float32, float16, Environment.arm(fz16=True), (0, UNDERFLOW | INEXACT)),
        (1, float16, float32, Environment.ipu(), (SMALLEST_HALF, 0)),
        (1, float32, float16, Environment.ipu(), (0, 0)),
        (1, float32, float16, Environment(daz=True, overrides={"float32": Environment()}), (0, UNDERFLOW | INEXACT)),
    ],
)
def test_what_processors_convert(
    code: int, src: Format, dst: Format, env: Environment, result: tuple[int, int]
) -> None:
    """A subnormal operand, and a tiny result, as the processor's own instruction has them, through every door."""
    assert bits.convert(code, src, dst, environment=env) == result
    assert expected(code, src, dst, env, None) == result
    assert bits.scalar("convert", src, to=dst, environment=env)(code) == result
    numbers = np.array([code], src.dtype).view(src.to_dtype())
    with env.replace(traps=0) as entered:
        assert softfloat.array(numbers, dst).codes.tolist() == [result[0]]
        assert softfloat.from_codes(np.array([code], src.dtype), src).astype(dst).codes.tolist() == [result[0]]
    assert entered.status.flags == result[1]


def test_compiled_code_converts_alike() -> None:
    widen = jit.function("convert", float16, to=float32, flags=True, environment=X86)
    assert widen(1) == (SMALLEST_HALF, 0)


def test_numbers_of_python_are_read_as_float64() -> None:
    """DAZ knows float64, whose least numbers are far below any half, too; FZ16 does not."""
    for env, flags in ((X86, 0), (Environment.arm(fz16=True), UNDERFLOW | INEXACT)):
        assert bits.encode(5e-324, float16, environment=env) == (0, flags)
        assert bits.encode(5e-324, float32, environment=env.replace(ftz=False)) == (0, flags)
    apart = Environment(overrides={"float64": Environment(daz=True)})
    assert bits.encode(-5e-324, float16, environment=apart) == (0x8000, 0)
    with X86.replace() as entered:
        assert (softfloat.array([1.0], float16) + 5e-324).codes.tolist() == [0x3C00]
        assert entered.status.flags == 0


def test_sums_of_half_in_float32() -> None:
    """Sums of products, and of numbers, read halves as halves: DAZ leaves them, FZ16 flushes them (FMLAL's FPUnpack)."""
    one = 0x3C00
    for env, result in (
        (X86, SMALLEST_HALF),
        (Environment.arm(fz=True), SMALLEST_HALF),
        (Environment.arm(fz16=True), 0),
    ):
        how = fma("float32")
        assert bits.vecdot([1], [one], float16, how, environment=env) == (result, 0)
        found, _ = bits.matmul(np.full((40, 1), 1), np.full((1, 40), one), float16, how, environment=env)
        assert (found == result).all()
        assert bits.sum([1, 1], float16, how, 0, environment=env)[0] == (result and result + 0x00800000)


@pytest.mark.parametrize("bias", [-1, -3, -8])
def test_the_smallest_float32_beside_quanta_above_1(bias: int) -> None:
    """2^-149 is no whole number of float32's quanta any more once it is divided by two: away from zero it is the smallest number all the same."""
    fmt = Format("drawn", exponent_bits=1, mantissa_bits=1, bias=bias, nan="fn")
    codes = np.array([1, 2, 0x7FFFFF, 0x800000, 0x80000001, 0x80800000], np.uint32)
    for mode in ("toward_positive", "toward_negative", "to_odd", "toward_zero", "nearest_even"):
        wanted = [reference.convert(int(x), float32, fmt, rounding=mode) for x in codes]
        for repeats in (1, 600):
            found = bits.convert(np.tile(codes, repeats), float32, fmt, rounding=mode)
            assert [
                (int(code), int(flag)) for code, flag in zip(*(x[-codes.size :] for x in found), strict=True)
            ] == wanted
