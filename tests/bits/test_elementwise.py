"""Compiled code against the oracle: every operation, every format, every mode, every rule; codes and flags."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from operands import CUSTOM, operands
from oracle import COUNT, MODES, agree, assert_rounds_up_where_the_oracle_does, drawn, options_of
from softfloat.kernels.spec import NAN_POLICIES
from tallies import Tally

from softfloat import ROSTER, Format, bits, reference

FORMATS = [*ROSTER.values(), *CUSTOM]
ARITHMETIC = {"add": 2, "sub": 2, "mul": 2, "div": 2, "remainder": 2, "sqrt": 1, "fma": 3, "round_to_integral": 1}
SELECTIONS = ("minimum", "maximum", "minimum_number", "maximum_number")
ORACLE = "softfloat.reference, exact fractions"


@pytest.mark.conformance(ORACLE)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_arithmetic(tally: Tally, fmt: Format, mode: str) -> None:
    for case, (name, arity) in enumerate(ARITHMETIC.items()):
        seed = 1000 * FORMATS.index(fmt) + 10 * MODES.index(mode) + case
        columns = operands(fmt, COUNT, arity, seed)
        options = options_of(seed, fmt, mode)
        compiled, oracle = getattr(bits, name), getattr(reference, name)
        tally(name, fmt, mode, COUNT)
        agree(
            name,
            lambda o, f=compiled, c=columns: f(*c, fmt, **o),
            lambda *row_o, f=oracle: f(*row_o[:-1], fmt, **row_o[-1]),
            columns,
            options,
            drawn(options, seed),
        )


@pytest.mark.conformance(ORACLE)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dst", FORMATS, ids=str)
def test_convert(tally: Tally, dst: Format, mode: str) -> None:
    for src in FORMATS:
        seed = 100_000 + 1000 * FORMATS.index(dst) + 10 * FORMATS.index(src) + MODES.index(mode)
        columns = operands(src, COUNT, 1, seed)
        options = options_of(seed, dst, mode)
        tally("convert", f"to {dst}", mode, COUNT)
        agree(
            f"{src} to {dst}",
            lambda o, c=columns, s=src: bits.convert(*c, s, dst, **o),
            lambda code, o, s=src: reference.convert(code, s, dst, **o),
            columns,
            options,
            drawn(options, seed),
        )


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "sqrt", "fma"])
@pytest.mark.parametrize("fmt", [ROSTER["float32"], ROSTER["bfloat16"], CUSTOM[1]], ids=str)
def test_the_least_random_number_that_rounds_up(fmt: Format, name: str) -> None:
    """Of 2^52 random numbers, the one at which the oracle starts to round up, and the one before it.

    They tell the last bit of the carrier apart, the sticky one, on which no deterministic mode ever depends.
    """
    assert_rounds_up_where_the_oracle_does(name, fmt, operands(fmt, 150, ARITHMETIC[name], 17))


def doubles(seed: int) -> np.ndarray:
    """float64 of all sizes, with the neighbours of halfway points of short significands."""
    random = np.random.default_rng(seed)
    exponent = np.where(
        random.random(COUNT) < 0.5, random.integers(-30, 30, COUNT), random.integers(-1074, 1024, COUNT)
    )
    short = random.integers(0, 2**9, COUNT) | 1
    with np.errstate(all="ignore"):
        x = np.ldexp(1 + short / 512 + random.integers(-2, 3, COUNT) * 2.0**-52, exponent) * random.choice(
            [1, -1], COUNT
        )
    specials = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1.7976931348623157e308]
    x[: len(specials)] = specials
    return x


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_encode_float64(fmt: Format, mode: str) -> None:
    seed = 200_000 + 1000 * FORMATS.index(fmt) + MODES.index(mode)
    x = doubles(seed)
    options = options_of(seed, fmt, mode)
    random = drawn(options, seed)
    codes, flags = bits.encode(x, fmt, **options, random_bits=random)
    for i in range(COUNT):
        extra = {} if random is None else {"random_bits": int(random[i])}
        expected = reference.encode(float(x[i]), fmt, **options, **extra)
        assert (int(codes[i]), int(flags[i])) == expected, (float(x[i]).hex(), options, extra)


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_encode_integers(fmt: Format) -> None:
    random = np.random.default_rng(7)
    signed = (random.integers(-(2**63), 2**63 - 1, COUNT) >> random.integers(0, 63, COUNT)).astype(np.int64)
    unsigned = (
        random.integers(0, 2**64 - 1, COUNT, dtype=np.uint64) >> random.integers(0, 63, COUNT).astype(np.uint64)
    ) | np.uint64(1)
    signed[:3], unsigned[:2] = [-(2**63), 2**63 - 1, 0], [2**64 - 1, 2**53 + 1]
    for values, mode in itertools.product((signed, unsigned), MODES[:-1]):
        codes, flags = bits.encode(values, fmt, rounding=mode)
        for i in range(COUNT):
            assert (int(codes[i]), int(flags[i])) == reference.encode(int(values[i]), fmt, rounding=mode), (
                values[i],
                mode,
            )


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_to_integer(fmt: Format) -> None:
    for case, (dtype, mode) in enumerate(
        itertools.product((np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64), MODES)
    ):
        seed = 300_000 + 100 * FORMATS.index(fmt) + case
        columns = operands(fmt, COUNT, 1, seed)
        options = {
            key: value
            for key, value in options_of(seed, fmt, mode).items()
            if key in ("rounding", "daz", "nan", "sr_bits")
        }
        info = np.iinfo(dtype)
        exact = bool(seed % 2)
        agree(
            f"to {np.dtype(dtype)}",
            lambda o, c=columns, d=dtype, e=exact: bits.to_integer(*c, fmt, d, exact=e, **o),
            lambda code, o, n=info, e=exact: reference.to_integer(code, fmt, n.bits, n.min < 0, exact=e, **o),
            columns,
            options,
            drawn(options, seed),
        )


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_comparisons_and_selections(fmt: Format) -> None:
    for case, (name, policy, daz) in enumerate(
        itertools.product((*SELECTIONS, "eq", "lt", "le"), NAN_POLICIES, (False, True))
    ):
        columns = operands(fmt, COUNT, 2, 400_000 + 1000 * FORMATS.index(fmt) + case)
        options = {"nan": policy, "daz": daz}
        if name in SELECTIONS:
            options["ftz"] = case % 3 == 0
            compiled, oracle = getattr(bits, name), getattr(reference, name)
            agree(
                name,
                lambda o, f=compiled, c=columns: f(*c, fmt, **o),
                lambda a, b, o, f=oracle: f(a, b, fmt, **o),
                columns,
                options,
                None,
            )
            continue
        for signalling in (False, True):
            compiled, oracle = getattr(bits, name), getattr(reference, name + "_signalling" * signalling)
            agree(
                name,
                lambda o, f=compiled, c=columns, s=signalling: f(*c, fmt, signalling=s, **o),
                lambda a, b, o, f=oracle: f(a, b, fmt, **o),
                columns,
                options,
                None,
            )


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_decode_and_classify(fmt: Format) -> None:
    codes = operands(fmt, 500, 1, 5)[0] if fmt.bits > 10 else np.arange(2**fmt.bits, dtype=fmt.dtype)
    values, classes = bits.decode(codes, fmt), bits.classify(codes, fmt)
    for code, value, number in zip(codes.tolist(), values.tolist(), classes.tolist(), strict=True):
        exact = reference.decode(code, fmt)
        name = reference.classify(code, fmt).replace("_", "")
        assert bits.CLASSES[number].lower().replace("signalingnan", "signallingnan") == name.lower().replace(
            "signaling", "signalling"
        ), hex(code)
        if exact.is_nan:
            assert value != value
        else:
            assert value == exact.real
            assert np.signbit(value) == exact.negative


@pytest.mark.parametrize("mode", ["nearest_even", "stochastic"])
@pytest.mark.parametrize("flags", ["each", "any"])
def test_arrays_by_columns(mode: str, flags: Any) -> None:
    """Codes, flags and random numbers of arrays that lie in memory by columns are those of the same by rows."""
    random, options = np.random.default_rng(0), {"rounding": mode, "seed": 1, "flags": flags}
    x, y, z = random.integers(0, 1 << 16, (3, 70, 50), dtype=np.uint16)
    whole = random.standard_normal((70, 50)) * 1e4
    for name, fmt, given in (
        ("add", ["float16"], (x, y)),
        ("mul", ["float16"], (x, y[0, 0])),
        ("fma", ["float16"], (x, y, z)),
        ("sub", ["float16"], (x, y[0])),  # which is spread
        ("sqrt", ["float16"], (x,)),
        ("exp", ["float16"], (x,)),
        ("convert", ["float16", "float8_e5m2"], (x,)),
        ("encode", ["bfloat16"], (whole,)),
    ):
        function = getattr(bits, name)
        wanted = function(*given, *fmt, **options)
        found = function(
            *(np.asfortranarray(operand) if operand.ndim == 2 else operand for operand in given), *fmt, **options
        )
        for one, other in zip(wanted, found, strict=True):
            assert np.array_equal(one, other), name
    assert np.array_equal(bits.decode(x.T, "float16"), bits.decode(x, "float16").T, equal_nan=True)
