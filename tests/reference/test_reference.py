"""The oracle against what is right outside: SoftFloat, MPFR, ml_dtypes, the collected traps, the standard's words."""

from __future__ import annotations

import csv
import inspect
import itertools
import math
import os
import random
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import softfloatpy as sf
from hypothesis import given, settings
from hypothesis import strategies as st
from outside import (
    MPFR_MODES,
    MPFR_OPS,
    SETTINGS,
    SF_MODES,
    SF_TYPES,
    I,
    O,
    U,
    X,
    Z,
    mpfr,
    pack,
    softfloat,
    to_float,
    unpack,
)
from softfloat.kernels.spec import NAN_POLICIES, Rounding
from tallies import Tally

from softfloat import reference
from softfloat.formats import ROSTER, Format
from softfloat.reference import blocks

F16, BF16, F32 = ROSTER["float16"], ROSTER["bfloat16"], ROSTER["float32"]


def canonical(result: tuple[int, int], fmt: Format) -> tuple[int, int]:
    """Any NaN as the canonical one."""
    code, flags = result
    return (fmt.nan_code if reference.decode(code, fmt).is_nan else code), flags


def edges(fmt: Format) -> list[int]:
    """Codes at and next to every border, of both signs."""
    one = fmt.one_code
    unsigned = {
        *(0, 1, 2, fmt.smallest_normal_code - 1, fmt.smallest_normal_code, fmt.smallest_normal_code + 1),
        *(one - 1, one, one + 1, one + fmt.smallest_normal_code // 2, fmt.max_code - 1, fmt.max_code),
    }
    if fmt.infinities:
        unsigned |= {fmt.inf_code, fmt.inf_code + 1, fmt.nan_code, fmt.nan_code + 1}
    return sorted(c for c in unsigned) + sorted(c | fmt.sign_bit for c in unsigned)


def operands(fmt: Format, arity: int, count: int, seed: int) -> list[tuple[int, ...]]:
    """`count` tuples, seeded: anything, edges, and operands so near each other that they cancel or meet a border."""
    rng, border = random.Random(seed), edges(fmt)

    def anything() -> int:
        return rng.randrange(2**fmt.bits)

    def mixed() -> int:
        return rng.choice((rng.choice(border), anything()))

    def near(code: int) -> int:
        return (code + rng.randrange(-3, 4)) % 2**fmt.bits ^ rng.choice((0, fmt.sign_bit))

    rows = []
    for _ in range(count):
        first = mixed()
        rest = [rng.choice((mixed(), near(first), anything())) for _ in range(arity - 1)]
        rows.append((first, *rest))
    return rows


SF_TYPES |= {"i32": sf.Int32, "ui32": sf.UInt32, "i64": sf.Int64, "ui64": sf.UInt64}
SF_FORMATS = {"f16": F16, "bf16": BF16, "f32": F32}
SF_ARITHMETIC: dict[str, tuple[int, Callable[..., tuple[int, int]]]] = {
    "add": (2, reference.add),
    "sub": (2, reference.sub),
    "mul": (2, reference.mul),
    "div": (2, reference.div),
    "rem": (2, reference.remainder),
    "sqrt": (1, reference.sqrt),
    "mul_add": (3, reference.fma),
}
SF_RELATIONS: dict[str, Callable[..., tuple[bool, int]]] = {
    "eq": reference.eq,
    "eq_signaling": reference.eq_signalling,
    "lt_quiet": reference.lt,
    "lt": reference.lt_signalling,
    "le_quiet": reference.le,
    "le": reference.le_signalling,
}


@pytest.mark.conformance("SoftFloat, through softfloatpy: the oracle")
@pytest.mark.parametrize("op", SF_ARITHMETIC)
@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_arithmetic_is_softfloats(tally: Tally, kind: str, op: str) -> None:
    fmt, (arity, function) = SF_FORMATS[kind], SF_ARITHMETIC[op]
    rows = operands(fmt, arity, 800, seed=arity)
    rows += [(a, *b) for a in edges(fmt) for b in itertools.product(edges(fmt), repeat=arity - 1)][
        :: 1 if arity < 3 else 97
    ]
    for row, (rounding, tininess) in itertools.product(rows, SETTINGS):
        code, flags = softfloat(f"{kind}_{op}", rounding, tininess, *(pack(c, kind) for c in row))
        ours = function(*row, fmt, rounding=rounding, tininess=tininess)
        expected = canonical((unpack(code), flags), fmt)
        tally(op, fmt, rounding, 1, ours != expected)
        assert ours == expected, (op, [hex(c) for c in row], rounding, tininess)


@pytest.mark.conformance("SoftFloat, through softfloatpy: the oracle")
@pytest.mark.parametrize("op", SF_RELATIONS)
@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_comparisons_are_softfloats(tally: Tally, kind: str, op: str) -> None:
    fmt = SF_FORMATS[kind]
    for row in [*itertools.product(edges(fmt), repeat=2), *operands(fmt, 2, 200, seed=7)]:
        expected = softfloat(f"{kind}_{op}", "nearest_even", "after", *(pack(c, kind) for c in row))
        ours = SF_RELATIONS[op](*row, fmt)
        tally(op, fmt, "exact", 1, ours != expected)
        assert ours == expected, [hex(c) for c in row]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_integers_are_softfloats(kind: str, exact: bool) -> None:
    fmt = SF_FORMATS[kind]
    integers = [fmt.one_code + (i << (fmt.mantissa_bits - 2)) for i in range(-8, 40)]  # 1/4 ... 896 in quarter binades
    codes = [
        *edges(fmt),
        *integers,
        *(c for (c,) in operands(fmt, 1, 150, seed=3)),
        *(c | fmt.sign_bit for c in integers),
    ]
    for code, rounding in itertools.product(codes, SF_MODES):
        mode = SF_MODES[rounding]
        result, flags = softfloat(f"{kind}_round_to_int", rounding, "after", pack(code, kind), mode, exact)
        ours = reference.round_to_integral(code, fmt, exact, rounding=rounding)
        assert ours == canonical((unpack(result), flags), fmt), (hex(code), rounding)
        for target, bits, signed in (("i32", 32, True), ("ui32", 32, False), ("i64", 64, True), ("ui64", 64, False)):
            result, flags = softfloat(f"{kind}_to_{target}", rounding, "after", pack(code, kind), mode, exact)
            ours = reference.to_integer(code, fmt, bits, signed, exact, rounding=rounding, nan="riscv")
            assert ours == (result.to_int(), flags), (hex(code), rounding, target)


CASTS = [("f16", "f32"), ("f32", "f16"), ("f32", "bf16"), ("bf16", "f32"), ("f64", "f16"), ("f64", "f32")]


@pytest.mark.conformance("SoftFloat, through softfloatpy: the oracle")
@pytest.mark.parametrize(("source", "target"), CASTS)
def test_conversions_are_softfloats(tally: Tally, source: str, target: str) -> None:
    dst, rng = SF_FORMATS[target], random.Random(11)
    if source == "f64":  # near what the target has, a few units of float64 beside values and midpoints, and anything
        centres = [abs(to_float(c, dst)) for c in edges(dst)]
        centres = [(a + b) / 2 for a, b in itertools.pairwise(sorted(c for c in centres if math.isfinite(c)))] + centres
        codes = [max(0, struct.unpack("<q", struct.pack("<d", c))[0] + d) for c in centres for d in (-1, 0, 1)]
        codes += [c | 1 << 63 for c in codes] + [rng.randrange(2**64) for _ in range(100)]
    else:
        codes = edges(SF_FORMATS[source]) + [c for (c,) in operands(SF_FORMATS[source], 1, 400, seed=5)]
        if (source, target) == ("f32", "f16"):  # most float32 codes are out of range: narrow the exponent
            codes += [c % 2**29 + (96 << 23) | c >> 31 << 31 for (c,) in operands(F32, 1, 400, seed=6)]
    for code, (rounding, tininess) in itertools.product(codes, SETTINGS):
        result, flags = softfloat(f"{source}_to_{target}", rounding, tininess, pack(code, source))
        options = {"rounding": rounding, "tininess": tininess}
        if source == "f64":
            ours = reference.encode(struct.unpack("<d", struct.pack("<Q", code))[0], dst, **options)
        else:
            ours = reference.convert(code, SF_FORMATS[source], dst, **options)
        expected = canonical((unpack(result), flags), dst)
        tally("convert", f"{SF_FORMATS.get(source, 'float64')} to {dst}", rounding, 1, ours != expected)
        assert ours == expected, (hex(code), options)


@pytest.mark.parametrize("target", ["f16", "f32"])
def test_integer_sources_are_softfloats(target: str) -> None:
    rng = random.Random(13)
    for kind, low, high in (("i32", -(2**31), 2**31), ("ui32", 0, 2**32), ("i64", -(2**63), 2**63), ("ui64", 0, 2**64)):
        numbers = [low, low + 1, high - 1, 0, 1, 2049, 65519, 65520, 16777217]
        numbers += [rng.randrange(low, high) >> rng.randrange(0, 50) for _ in range(60)]
        for number, rounding in itertools.product(numbers, SF_MODES):
            result, flags = softfloat(f"{kind}_to_{target}", rounding, "after", SF_TYPES[kind].from_int(number))
            assert reference.encode(number, SF_FORMATS[target], rounding=rounding) == (unpack(result), flags), (
                number,
                rounding,
            )


@pytest.mark.conformance("MPFR, through gmpy2: the oracle")
@pytest.mark.parametrize("op", MPFR_OPS)
@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3", "float8_e3m4"])
def test_arithmetic_is_mpfrs(tally: Tally, name: str, op: str) -> None:
    fmt, (arity, function, theirs) = ROSTER[name], MPFR_OPS[op]
    # MPFR raises its NaN flag for quiet NaN operands too
    rows = [r for r in operands(fmt, arity, 800, seed=17) if not any(reference.decode(c, fmt).is_nan for c in r)]
    for row, rounding in itertools.product(rows, MPFR_MODES):
        code, flags = function(*row, fmt, rounding=rounding)
        value, expected = mpfr(fmt, rounding, theirs, row)
        right = (repr(to_float(code, fmt)), flags) == (repr(value), expected)
        tally(op, fmt, rounding, 1, not right)
        assert right, ([hex(c) for c in row], rounding)


# -- traps -----------------------------------------------------------------------------------------------------------

VECTORS = os.environ.get("SOFTFLOAT_VECTORS")
needs_vectors = pytest.mark.skipif(not VECTORS, reason="SOFTFLOAT_VECTORS is not set")
TRAP_FORMATS = {**SF_FORMATS, "e4m3": ROSTER["float8_e4m3fn"], "e5m2": ROSTER["float8_e5m2"]}
TRAP_ARITHMETIC = {
    "add": reference.add,
    "sub": reference.sub,
    "mul": reference.mul,
    "div": reference.div,
    "sqrt": reference.sqrt,
    "fma": reference.fma,
}
TRAP_FLAGS = {"X": X, "U": U, "O": O, "Z": Z, "I": I, "-": 0}


def trap_rows() -> Iterator[dict[str, str]]:
    if VECTORS:
        with open(Path(VECTORS) / "traps.csv", newline="", encoding="utf-8") as file:
            yield from csv.DictReader(file)


def trap_flags(letters: str) -> int:
    return sum(TRAP_FLAGS[letter] for letter in letters)


def run_trap(row: dict[str, str], nan: str) -> tuple[int, int]:
    options = {"rounding": row["rounding"], "tininess": row["tininess"], "nan": nan}
    options["overflow"] = {"ieee": "infinity", "sat": "saturate"}[row["overflow"]]
    codes = [int(row[name], 0) for name in "abc" if row[name]]
    if row["op"] == "to_int":
        return reference.to_integer(codes[0], TRAP_FORMATS[row["src"]], 32, row["fmt"] == "i32", **options)
    fmt = TRAP_FORMATS[row["fmt"]]
    if row["op"] == "from_int":
        return reference.encode(codes[0], fmt, **options)
    if row["op"] == "cast" and row["src"] == "f64":
        return reference.encode(struct.unpack("<d", struct.pack("<Q", codes[0]))[0], fmt, **options)
    if row["op"] == "cast":
        return reference.convert(codes[0], TRAP_FORMATS[row["src"]], fmt, **options)
    return TRAP_ARITHMETIC[row["op"]](*codes, fmt, **options)


# SoftFloat-3e's 8086-SSE/s_bf16UIToCommonNaN.c shifts a payload by 56 bits where 7 fraction bits need 57: halved,
# 0x7F81 becomes 0x7FC08000. Top bits kept, the rule of every other conversion, gives 0x7F810000 with the quiet bit.
HALVED_PAYLOADS = {("nan-24", "x86"): ((0x7FC10000, I), (0x7FC08000, I))}


@needs_vectors
def test_traps() -> None:
    wrong, seen = {}, 0
    for row in (r for r in trap_rows() if r["op"] != "sr_law"):
        result = row["result"].removeprefix("NaN(canonical ").removesuffix(")")
        expected = {"canonical": (int(result, 0), trap_flags(row["flags"]))}
        for policy in ("x86", "riscv", "arm"):
            if row[policy]:
                code, letters = row[policy].split(":")
                expected[policy] = int(code, 0), trap_flags(letters)
        for policy, outcome in expected.items():
            seen += 1
            if run_trap(row, policy) != outcome:
                wrong[row["id"], policy] = run_trap(row, policy), outcome
    assert wrong == HALVED_PAYLOADS
    assert seen > 341


@needs_vectors
@pytest.mark.parametrize("sr_bits", [None, 24])
def test_stochastic_traps(sr_bits: int | None) -> None:
    rows = [r for r in trap_rows() if r["op"] == "sr_law"]
    assert len(rows) == 26
    width = sr_bits or 52
    for row in rows:
        fmt, value = TRAP_FORMATS[row["fmt"]], float.fromhex(row["a"])
        down, up = (int(code, 0) for code in row["result"].split()[0].split("|"))

        def draw(bits: int, value: float = value, fmt: Format = fmt) -> int:
            return reference.encode(value, fmt, rounding="stochastic", sr_bits=sr_bits, random_bits=bits)[0]

        low, high = 0, 2**width  # the least random number that goes up, by bisection: rounding is monotonic in it
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if draw(middle) != down else (middle + 1, high)
        assert Fraction(2**width - low, 2**width) == Fraction(row["p_up"]), row["id"]
        assert draw(0) == down
        assert draw(2**width - 1) == (up if Fraction(row["p_up"]) else down), row["id"]


TESTFLOAT_ARITHMETIC = {
    "add": reference.add,
    "sub": reference.sub,
    "mul": reference.mul,
    "div": reference.div,
    "rem": reference.remainder,
}
TESTFLOAT_ARITHMETIC |= {"sqrt": reference.sqrt, "mulAdd": reference.fma}


def run_testfloat(function: str, row: list[int], suffix: str) -> tuple[int, int]:
    """One of TestFloat's functions, rounding to odd; `suffix`: a or b, tininess after or before; exact or notexact."""
    source, _, op = function.partition("_")
    exact = suffix == "exact"
    options = {"rounding": "to_odd", "tininess": "before" if suffix == "b" else "after"}
    if op in TESTFLOAT_ARITHMETIC:
        return canonical(TESTFLOAT_ARITHMETIC[op](*row, SF_FORMATS[source], **options), SF_FORMATS[source])
    if op == "roundToInt":
        return canonical(reference.round_to_integral(*row, SF_FORMATS[source], exact, **options), SF_FORMATS[source])
    target = op.removeprefix("to_")
    if target in SF_FORMATS:
        dst = SF_FORMATS[target]
        if source in SF_FORMATS:
            return canonical(reference.convert(*row, SF_FORMATS[source], dst, **options), dst)
        if source == "f64":
            return canonical(reference.encode(struct.unpack("<d", struct.pack("<Q", *row))[0], dst, **options), dst)
        number = row[0]
        if source[0] == "i" and number >> (int(source[-2:]) - 1):
            number -= 2 ** int(source[-2:])
        return reference.encode(number, dst, **options)
    bits, signed = int(target[-2:]), target.startswith("i")
    integer, flags = reference.to_integer(*row, SF_FORMATS[source], bits, signed, exact, **options)
    return integer % 2**bits, flags


@needs_vectors
@pytest.mark.parametrize("name", ["testfloat_f16_binary", "testfloat_f16_mulAdd", "testfloat_f32", "testfloat_unary"])
def test_round_to_odd_is_testfloats(name: str) -> None:
    """The one mode the SoftFloat binding lacks."""
    compared = 0
    with np.load(Path(VECTORS or "") / f"{name}.npz") as data:
        for key in (key for key in data.files if "__f_odd_" in key):
            function, _, rest = key.partition("__")
            suffix = rest.removeprefix("f_odd_")
            columns = [data[f"{function}__{c}"] for c in "abc" if f"{function}__{c}" in data.files]
            results, flags = data[f"{function}__r_odd"], data[key]
            for i in range(0, len(flags), max(1, len(flags) // 300)):
                row = [int(column[i]) for column in columns]
                expected = int(results[i]), int(flags[i])
                if "_to_i" in function or "_to_ui" in function:
                    expected = expected[0] % 2 ** int(function[-2:]), expected[1]
                assert run_testfloat(function, row, suffix) == expected, (key, [hex(c) for c in row])
                compared += 1
    assert compared > 500


# -- ml_dtypes -------------------------------------------------------------------------------------------------------

NARROW = [fmt for fmt in ROSTER.values() if fmt.bits <= 8]


@pytest.mark.parametrize("fmt", NARROW, ids=str)
def test_decode_is_ml_dtypes(fmt: Format) -> None:
    table = np.arange(2**fmt.bits, dtype=np.uint8).view(getattr(ml_dtypes, fmt.name)).astype(np.float64)
    assert [repr(to_float(code, fmt)) for code in range(2**fmt.bits)] == [repr(float(x)) for x in table]


@pytest.mark.parametrize("fmt", ROSTER.values(), ids=str)
@pytest.mark.parametrize("rounding", [r.name.lower() for r in Rounding])
def test_what_a_format_has_is_encoded_as_itself(fmt: Format, rounding: str) -> None:
    codes = range(2**fmt.bits) if fmt.bits <= 8 else edges(fmt)
    most = 1 if rounding == "up_or_down" else 2**52 - 1
    for code in codes:
        value = reference.decode(code, fmt)
        if not value.is_nan:
            assert reference.round_exact(value, fmt, rounding=rounding, random_bits=most) == (code, 0)
            assert reference.convert(code, fmt, fmt, rounding=rounding, random_bits=0) == (code, 0)


@pytest.mark.parametrize("fmt", [f for f in NARROW if f.name != "float8_e8m0fnu"], ids=str)
def test_nearest_even_is_ml_dtypes_from_half(fmt: Format) -> None:
    """Casts from float16: narrow enough that ml_dtypes does not round twice."""
    codes = np.arange(0, 2**16, 37, dtype=np.uint16)
    values = codes.view(np.float16)
    codes, values = codes[np.isfinite(values)], values[np.isfinite(values)]
    with np.errstate(all="ignore"):
        theirs = values.astype(getattr(ml_dtypes, fmt.name)).view(np.uint8)
    for code, expected in zip(codes.tolist(), theirs.tolist(), strict=True):
        assert canonical_or_same(reference.convert(code, F16, fmt)[0], fmt) == canonical_or_same(expected, fmt), hex(
            code
        )


def canonical_or_same(code: int, fmt: Format) -> int:
    return canonical((code, 0), fmt)[0] if fmt.has_nan else code


# -- the standard's words, and the project's -------------------------------------------------------------------------

E4M3FN, E5M2, FNUZ = ROSTER["float8_e4m3fn"], ROSTER["float8_e5m2"], ROSTER["float8_e4m3fnuz"]
E8M0, FP4 = ROSTER["float8_e8m0fnu"], ROSTER["float4_e2m1fn"]
FLAT = Format("flat", exponent_bits=4, mantissa_bits=3, subnormals=False)  # smallest normal 2^-6, nothing below it
UFLOAT = Format("ufloat", exponent_bits=4, mantissa_bits=3, signed=False)
FN_INF = Format("fn_inf", exponent_bits=4, mantissa_bits=3, nan="fn", infinities=True)  # ..., 416, inf, NaN
ONE_BIT = Format("one_bit", exponent_bits=3, mantissa_bits=1)  # its only NaNs are quiet
POWERS = Format("powers", exponent_bits=4, mantissa_bits=0, nan="fn")

# (1 - 2^-12) * 2^-14: 3/4 of the way to the smallest normal in the format, 1/2 were there no least exponent
SLIVER = Fraction(2**12 - 1, 2**26)
SR2 = {"rounding": "stochastic", "sr_bits": 2}

FACTS: list[tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any], tuple[Any, int]]] = [
    # 6.3 and 7.3
    ("x - x", reference.sub, (0x3C00, 0x3C00, F16), {}, (0, 0)),
    ("x - x downward", reference.sub, (0x3C00, 0x3C00, F16), {"rounding": "toward_negative"}, (0x8000, 0)),
    ("sqrt(-0)", reference.sqrt, (0x8000, F16), {}, (0x8000, 0)),
    ("1/-0", reference.div, (0x3C00, 0x8000, F16), {}, (0xFC00, Z)),
    ("inf/0", reference.div, (0x7C00, 0x0000, F16), {}, (0x7C00, 0)),
    ("x - 0 in fnuz: there is no -0", reference.sub, (0x00, 0x00, FNUZ), {"rounding": "toward_negative"}, (0, 0)),
    ("-tiny in fnuz", reference.encode, (-1e-9, FNUZ), {}, (0, U | X)),
    # 5.3.1
    ("remainder(5, 3) = -1", reference.remainder, (0x4500, 0x4200, F16), {}, (0xBC00, 0)),
    ("remainder(-3, 3) = -0", reference.remainder, (0xC200, 0x4200, F16), {}, (0x8000, 0)),
    ("remainder(3, 2) = -1: n = 2", reference.remainder, (0x4200, 0x4000, F16), {}, (0xBC00, 0)),
    ("remainder(1, 2) = 1: n = 0", reference.remainder, (0x3C00, 0x4000, F16), {}, (0x3C00, 0)),
    ("remainder(1, inf)", reference.remainder, (0x3C00, 0x7C00, F16), {}, (0x3C00, 0)),
    ("remainder(inf, 1)", reference.remainder, (0x7C00, 0x3C00, F16), {}, (0x7E00, I)),
    # 5.9
    ("-0.3 to integral", reference.round_to_integral, (0xB4CD, F16), {}, (0x8000, X)),
    ("-0.3 to integral, quietly", reference.round_to_integral, (0xB4CD, F16, False), {}, (0x8000, 0)),
    ("2.5 to odd", reference.round_to_integral, (0x4100, F16), {"rounding": "to_odd"}, (0x4200, X)),
    # 4.3.1 where no candidate is even: the larger magnitude
    ("3 is a tie between 2 and 4", reference.encode, (3, E8M0), {}, (129, X)),
    ("-3 is a tie between -2 and -4", reference.encode, (-3, POWERS), {}, (0x19, X)),
    ("half the smallest power is a tie with zero", reference.encode, (2.0**-7, POWERS), {}, (0, U | X)),
    ("to odd, one bit: a power of two is odd", reference.encode, (3.9, POWERS), {"rounding": "to_odd"}, (0x08, X)),
    # 7.4, saturation, NaN
    ("65520", reference.encode, (65520, F16), {}, (0x7C00, O | X)),
    ("65520 to odd", reference.encode, (65520, F16), {"rounding": "to_odd"}, (0x7BFF, X)),
    ("10^6 to odd", reference.encode, (-(10**6), F16), {"rounding": "to_odd"}, (0xFBFF, O | X)),
    ("10^6 toward zero", reference.encode, (10**6, F16), {"rounding": "toward_zero"}, (0x7BFF, O | X)),
    ("-10^6 upward", reference.encode, (-(10**6), F16), {"rounding": "toward_positive"}, (0xFBFF, O | X)),
    ("-10^6 downward", reference.encode, (-(10**6), F16), {"rounding": "toward_negative"}, (0xFC00, O | X)),
    ("10^6 saturated", reference.encode, (10**6, F16), {"overflow": "saturate"}, (0x7BFF, O | X)),
    ("10^6 NANOO", reference.encode, (10**6, F16), {"overflow": "nan"}, (0x7E00, I | O | X)),
    ("464 in e4m3fn is a tie below NaN", reference.encode, (464, E4M3FN), {}, (0x7E, X)),
    ("480 in e4m3fn", reference.encode, (480, E4M3FN), {}, (0x7F, O | X)),
    ("480 in e4m3fn toward zero", reference.encode, (480, E4M3FN), {"rounding": "toward_zero"}, (0x7E, O | X)),
    ("450 to odd in e4m3fn: 480 is beyond", reference.encode, (450, E4M3FN), {"rounding": "to_odd"}, (0x7E, O | X)),
    ("-100 in fp4", reference.encode, (-100, FP4), {}, (0xF, O | X)),
    ("inf - inf in fp4 cannot happen; 0/0 can", reference.div, (0, 0, FP4), {}, (0x7, I)),
    ("1/0 in fp4", reference.div, (2, 8, FP4), {}, (0xF, Z)),
    ("1/0 in fnuz", reference.div, (0x40, 0, FNUZ), {}, (0x80, Z)),
    ("-1/0 in fnuz, saturating", reference.div, (0xC0, 0, FNUZ), {"overflow": "saturate"}, (0xFF, Z)),
    ("1/0 in e4m3fn, NANOO", reference.div, (0x38, 0, E4M3FN), {"overflow": "nan"}, (0x7F, Z)),
    (
        "1/0 in half, saturating: an exact infinity",
        reference.div,
        (0x3C00, 0, F16),
        {"overflow": "saturate"},
        (0x7C00, Z),
    ),
    # infinite operands of conversions
    ("inf to half", reference.encode, (math.inf, F16), {}, (0x7C00, 0)),
    ("-inf to half, saturating", reference.encode, (-math.inf, F16), {"overflow": "saturate"}, (0xFBFF, 0)),
    ("inf kept", reference.encode, (math.inf, F16), {"overflow": "saturate", "infinite_input": "keep"}, (0x7C00, 0)),
    ("inf saturated", reference.encode, (math.inf, F16), {"infinite_input": "saturate"}, (0x7BFF, 0)),
    ("inf to NaN", reference.encode, (math.inf, F16), {"infinite_input": "nan"}, (0x7E00, I)),
    ("inf under a NaN of all ones", reference.encode, (-math.inf, FN_INF), {}, (0xFE, 0)),
    ("448 there is beyond the largest", reference.encode, (448, FN_INF), {}, (0x7E, O | X)),
    ("1/0 there", reference.div, (0x38, 0x80, FN_INF), {}, (0xFE, Z)),
    ("one fraction bit: NaN is quiet", reference.add, (0x0F, 0, ONE_BIT), {"nan": "x86"}, (0x0F, 0)),
    ("inf to e4m3fn", reference.convert, (0x7C00, F16, E4M3FN), {}, (0x7F, 0)),
    ("-inf to fp4", reference.convert, (0xFC00, F16, FP4), {}, (0xF, 0)),
    ("inf to fp4 as NaN", reference.convert, (0x7C00, F16, FP4), {"infinite_input": "nan"}, (0x7, I)),
    ("NaN to fp4", reference.convert, (0xFE00, F16, FP4), {"nan": "x86"}, (0x7, I)),
    # 7.5, flushing
    ("smallest subnormal / 2", reference.encode, (2.0**-25, F16), {}, (0, U | X)),
    ("exact subnormal", reference.encode, (-(2.0**-24), F16), {}, (0x8001, 0)),
    ("exact subnormal, flushed", reference.encode, (-(2.0**-24), F16), {"ftz": True}, (0x8000, U | X)),
    (
        "rounds up to normal",
        reference.encode,
        (Fraction(4095, 4096) * 2**-14 + Fraction(1, 2**27), F16),
        {},
        (0x0400, X),
    ),
    ("rounds up to normal: not flushed", reference.encode, (0.99999 * 2.0**-14, F16), {"ftz": True}, (0x0400, X)),
    (
        "rounds up to normal: flushed if tiny before",
        *(reference.encode, (0.99999 * 2.0**-14, F16), {"ftz": True, "tininess": "before"}, (0, U | X)),
    ),
    ("subnormal operand is zero", reference.add, (0x03FF, 0x8001, F16), {"daz": True}, (0, 0)),
    ("subnormal divisor is zero", reference.div, (0x3C00, 0x8001, F16), {"daz": True}, (0xFC00, Z)),
    ("subnormals compare equal", reference.eq, (0x0001, 0x8002, F16), {"daz": True}, (True, 0)),
    (
        "subnormal to integer",
        reference.to_integer,
        (1, F16, 8, True),
        {"daz": True, "rounding": "toward_positive"},
        (0, 0),
    ),
    ("sliver, stochastic: stays", reference.encode, (SLIVER, F16), {**SR2, "random_bits": 0}, (0x03FF, U | X)),
    ("sliver, stochastic: up, tiny yet", reference.encode, (SLIVER, F16), {**SR2, "random_bits": 1}, (0x0400, U | X)),
    ("sliver, stochastic: up and out", reference.encode, (SLIVER, F16), {**SR2, "random_bits": 2}, (0x0400, X)),
    (
        "sliver, stochastic: flushed",
        reference.encode,
        (SLIVER, F16),
        {**SR2, "random_bits": 1, "ftz": True},
        (0, U | X),
    ),
    ("float64 subnormal is zero", reference.encode, (-5e-324, F16), {"daz": True, "rounding": "RDN"}, (0x8000, 0)),
    ("flushed remainder", reference.remainder, (0x0401, 0x0400, F16), {"ftz": True}, (0, U | X)),
    ("e8m0 flushed to its smallest", reference.encode, (Fraction(1, 2**200), E8M0), {"ftz": True}, (0, U | X)),
    ("a tie that rounds to e8m0's smallest is not tiny", reference.encode, (Fraction(3, 2**129), E8M0), {}, (0, X)),
    ("no subnormals: half way", reference.encode, (2.0**-7, FLAT), {}, (0, U | X)),
    ("no subnormals: above half way", reference.encode, (2.0**-7 * 1.01, FLAT), {}, (8, U | X)),
    ("no subnormals: upward", reference.encode, (1e-9, FLAT), {"rounding": "toward_positive"}, (8, U | X)),
    ("no subnormals: to odd", reference.encode, (-1e-9, FLAT), {"rounding": "to_odd"}, (0x88, U | X)),
    ("no subnormals: field 0 reads as zero", reference.add, (0x07, 0x38, FLAT), {}, (0x38, 0)),
    # unsigned, zero-less
    ("-1 unsigned", reference.encode, (-1, UFLOAT), {}, (0x7C, I)),
    ("-0 unsigned", reference.encode, (-0.0, UFLOAT), {}, (0, 0)),
    ("1 - 2 unsigned", reference.sub, (0x38, 0x40, UFLOAT), {}, (0x7C, I)),
    ("-inf unsigned", reference.encode, (-math.inf, UFLOAT), {"infinite_input": "saturate"}, (0x7C, I)),
    ("1/4 in e8m0 to integral: 0", reference.round_to_integral, (125, E8M0), {}, (255, I)),
    ("0 in e8m0", reference.encode, (0, E8M0), {}, (255, I)),
    ("2^-200 in e8m0", reference.encode, (Fraction(1, 2**200), E8M0), {}, (0, U | X)),
    ("1 - 1 in e8m0", reference.sub, (127, 127, E8M0), {}, (255, I)),
    ("2^127 * 2 in e8m0", reference.mul, (254, 128, E8M0), {}, (255, O | X)),
    # NaNs: 6.2, 7.2
    ("inf*0 + qNaN", reference.fma, (0x7C00, 0, 0x7E01, F16), {"nan": "x86"}, (0xFE00, I)),
    ("inf*0 + qNaN of FMA3", reference.fma, (0x7C00, 0, 0x7E01, F16), {"nan": "x86_fma3"}, (0x7E01, 0)),
    ("inf*0 + 1 of FMA3", reference.fma, (0x7C00, 0, 0x3C00, F16), {"nan": "x86_fma3"}, (0xFE00, I)),
    ("inf*0 + sNaN of FMA3", reference.fma, (0x7C00, 0, 0x7D01, F16), {"nan": "x86_fma3"}, (0x7F01, I)),
    (
        "inf*0 + sNaN: the addend's signal comes first",
        reference.fma,
        (0x7C00, 0, 0x7D01, F16),
        {"nan": "arm"},
        (0x7F01, I),
    ),
    ("inf*0 + qNaN: the product comes first", reference.fma, (0x7C00, 0, 0x7E01, F16), {"nan": "arm"}, (0x7E00, I)),
    ("three qNaNs: the addend", reference.fma, (0x7E01, 0x7E02, 0xFE03, F16), {"nan": "arm"}, (0xFE03, 0)),
    ("two sNaNs: the addend", reference.fma, (0x7D01, 0x7E02, 0xFD03, F16), {"nan": "arm"}, (0xFF03, I)),
    ("signalling first: c", reference.fma, (0x7E01, 0x7E02, 0xFD03, F16), {"nan": "arm"}, (0xFF03, I)),
    ("fma takes a, b, c in this order", reference.fma, (0x3C00, 0xFE02, 0x7E03, F16), {"nan": "x86"}, (0xFE02, 0)),
    ("quiet NaN on the IPU", reference.add, (0x7E01, 0x3C00, F16), {"nan": "ipu"}, (0x7E00, I)),
    ("quiet NaN compared on the IPU", reference.eq, (0x7E01, 0x3C00, F16), {"nan": "ipu"}, (False, I)),
    ("1 - NaN keeps the NaN's sign", reference.sub, (0x3C00, 0x7E01, F16), {"nan": "arm"}, (0x7E01, 0)),
    ("default NaN of fn", reference.div, (0, 0, E4M3FN), {"nan": "x86"}, (0xFF, I)),
    ("default NaN of fnuz", reference.div, (0, 0, FNUZ), {"nan": "x86"}, (0x80, I)),
    ("payload has no room", reference.convert, (0xFE01, F16, E4M3FN), {"nan": "x86"}, (0xFF, 0)),
    ("payload from nowhere", reference.convert, (0xFF, E4M3FN, F16), {"nan": "x86"}, (0xFE00, 0)),
    ("float64 NaN", reference.encode, (math.nan, F16), {}, (0x7E00, 0)),
    # 5.8
    ("NaN to int8", reference.to_integer, (0xFE00, F16, 8, True), {}, (127, I)),
    ("NaN to int8, Arm", reference.to_integer, (0xFE00, F16, 8, True), {"nan": "arm"}, (0, I)),
    ("NaN to int8, NVIDIA", reference.to_integer, (0xFE00, F16, 8, True), {"nan": "nvidia"}, (0, I)),
    ("NaN to uint32, NVIDIA", reference.to_integer, (0x7C01, F16, 32, False), {"nan": "nvidia"}, (0, I)),
    ("NaN to int64, NVIDIA", reference.to_integer, (0xFE00, F16, 64, True), {"nan": "nvidia"}, (-(2**63), I)),
    ("NaN to uint64, NVIDIA", reference.to_integer, (0xFE00, F16, 64, False), {"nan": "nvidia"}, (2**63, I)),
    ("300 to int8", reference.to_integer, (0x5CB0, F16, 8, True), {}, (127, I)),
    ("300 to int8, x86", reference.to_integer, (0x5CB0, F16, 8, True), {"nan": "x86"}, (-128, I)),
    ("-0.7 to uint8", reference.to_integer, (0xB99A, F16, 8, False), {}, (0, I)),
    ("-0.7 to uint8 toward zero", reference.to_integer, (0xB99A, F16, 8, False), {"rounding": "toward_zero"}, (0, X)),
    # 9.6
    ("min(-0, +0)", reference.minimum, (0x0000, 0x8000, F16), {}, (0x8000, 0)),
    ("max(-0, +0)", reference.maximum, (0x8000, 0x0000, F16), {}, (0x0000, 0)),
    ("min(1, qNaN)", reference.minimum, (0x3C00, 0x7E01, F16), {}, (0x7E00, 0)),
    ("min(1, sNaN)", reference.minimum, (0x3C00, 0x7D01, F16), {"nan": "x86"}, (0x7F01, I)),
    ("minimum_number(1, qNaN)", reference.minimum_number, (0x3C00, 0x7E01, F16), {}, (0x3C00, 0)),
    ("maximum_number(sNaN, 1)", reference.maximum_number, (0x7D01, 0x3C00, F16), {}, (0x3C00, I)),
    ("maximum_number(qNaN, qNaN)", reference.maximum_number, (0x7E01, 0x7E02, F16), {"nan": "arm"}, (0x7E01, 0)),
    ("max(-inf, inf)", reference.maximum, (0xFC00, 0x7C00, F16), {}, (0x7C00, 0)),
    ("max(-subnormal, -1) flushed", reference.maximum, (0x8001, 0xBC00, F16), {"daz": True}, (0x8000, 0)),
]


@pytest.mark.parametrize("fact", FACTS, ids=[fact[0] for fact in FACTS])
def test_facts(fact: tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any], tuple[Any, int]]) -> None:
    _, function, arguments, options, expected = fact
    result = function(*arguments, **options)
    assert result == expected
    assert type(result[1]) is int


CLASSES = {
    0x7D01: "signalling_nan",
    0x7E00: "quiet_nan",
    0xFC00: "negative_infinity",
    0xBC00: "negative_normal",
    0x8001: "negative_subnormal",
    0x8000: "negative_zero",
    0x0000: "positive_zero",
    0x03FF: "positive_subnormal",
    0x0400: "positive_normal",
    0x7C00: "positive_infinity",
}


def test_classify() -> None:
    assert {code: reference.classify(code, F16) for code in CLASSES} == CLASSES
    assert reference.classify(0x8001, F16, daz=True) == "negative_zero"
    assert reference.classify(0x0001, FLAT) == "positive_zero"
    assert reference.classify(0x80, FNUZ) == "quiet_nan"


@pytest.mark.parametrize("bits", [1, 4, 10])
def test_stochastic_counts(bits: int) -> None:
    """P(up) is the fraction rounded down to `sr_bits` bits, exactly: every random number is tried."""
    for numerator in range(0, 64, 5):
        value = 1 + Fraction(numerator, 64) / 1024
        ups = sum(
            reference.encode(value, F16, rounding="SR", sr_bits=bits, random_bits=r)[0] != 0x3C00
            for r in range(2**bits)
        )
        assert ups == numerator * 2**bits // 64


def test_stochastic_rounding_sees_the_exact_value() -> None:
    """floor(f * 2^52) of a half, and of a little more and a little less."""
    half, little = 1 + Fraction(1, 2**11), Fraction(1, 2**80)
    for value, least in ((half, 2**51), (half + little, 2**51), (half - little, 2**51 + 1)):
        for bits, code in ((least - 1, 0x3C00), (least, 0x3C01)):
            assert reference.encode(value, F16, rounding="stochastic", random_bits=bits) == (code, X)


@pytest.mark.parametrize("fmt", [f for f in NARROW if f.signed and f.subnormals], ids=str)
@settings(derandomize=True, deadline=None, max_examples=60)
@given(a=st.integers(-(2**80), 2**80), scale=st.integers(-100, 100))
def test_rounding_is_monotonic_brackets_and_mirrors(fmt: Format, a: int, scale: int) -> None:
    value = Fraction(a) * Fraction(2) ** (scale - 70)
    codes = {r: reference.encode(value, fmt, rounding=r, overflow="saturate") for r in SF_MODES}
    got = {r: reference.decode(code, fmt).real for r, (code, _) in codes.items()}
    assert got["toward_negative"] <= got["nearest_even"] <= got["toward_positive"]
    assert got["toward_zero"] in (got["toward_negative"], got["toward_positive"])
    limit = Fraction(fmt.max)
    if abs(value) <= limit:
        assert got["toward_negative"] <= value <= got["toward_positive"]
        nearest = min((got["toward_negative"], got["toward_positive"]), key=lambda x: abs(Fraction(x) - value))
        assert abs(Fraction(nearest) - value) == abs(Fraction(got["nearest_even"]) - value)
        assert all(bool(flags & X) == (got[r] != value) for r, (_, flags) in codes.items())
    mirrored = reference.encode(-value, fmt, rounding="toward_negative", overflow="saturate")
    assert reference.decode(mirrored[0], fmt).real == -got["toward_positive"]
    assert mirrored[1] == codes["toward_positive"][1]


@pytest.mark.parametrize(
    ("options", "fmt", "words"),
    [
        ({"overflow": "nan"}, FP4, "overflow"),
        ({"rounding": "sideways"}, F16, "rounding"),
        ({"nan": "vax"}, F16, "nan"),
        ({"rounding": "stochastic"}, F16, "random_bits"),
        ({"rounding": "stochastic", "random_bits": 4, "sr_bits": 2}, F16, "random_bits"),
        ({"sr_bits": 53}, F16, "sr_bits"),
    ],
)
def test_what_is_refused(options: dict[str, Any], fmt: Format, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        reference.add(0, 0, fmt, **options)


def test_what_else_is_refused() -> None:
    with pytest.raises(ValueError, match="code"):
        reference.decode(16, FP4)
    with pytest.raises(TypeError, match="x must be"):
        reference.encode("1", F16)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="wrong"):
        reference.add(0, 0, F16, wrong=1)


def test_every_policy_gives_a_quiet_nan() -> None:
    nans = [c for c in edges(F16) if reference.decode(c, F16).is_nan]
    for policy, a, b in itertools.product(NAN_POLICIES, nans, [*nans, 0x3C00]):
        code, flags = reference.mul(a, b, F16, nan=policy)
        assert reference.classify(code, F16) == "quiet_nan"
        signals = any(reference.classify(c, F16) == "signalling_nan" for c in (a, b))
        assert flags == (I if signals or policy == "ipu" else 0)


def test_formats_go_by_name() -> None:
    operands = {"a": 0x3C00, "b": 0x4000, "c": 0x3C00, "code": 0x3C00, "x": 0.1, "value": 1, "bits": 8, "signed": True}
    for name in set(reference.__all__) - {
        "Kind",
        "Options",
        "Value",
        *blocks.__all__,
    }:  # blocks have formats of their own
        function = getattr(reference, name)
        parameters = list(inspect.signature(function).parameters)
        formats = [parameter for parameter in parameters if parameter in ("fmt", "src", "dst")]
        assert formats
        given_ = {parameter: operands[parameter] for parameter in parameters if parameter in operands}
        wanted = function(**given_, **dict.fromkeys(formats, F16))
        assert function(**given_, **dict.fromkeys(formats, "half")) == wanted
        order = [given_.get(parameter, "float16") for parameter in parameters if parameter in [*given_, *formats]]
        assert function(*order) == wanted
        for one in formats:
            with pytest.raises(
                TypeError, match=rf"^{one} must be a softfloat\.Format, the name of one, or a dtype, got 16"
            ):
                function(**given_, **dict.fromkeys(formats, F16) | {one: 16})
