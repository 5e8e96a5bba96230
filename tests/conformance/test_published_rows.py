"""Outside data: Berkeley TestFloat, bfloat16 pieced together from SoftFloat, and results read off x86 hardware."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from tallies import Tally

import softfloat
from softfloat import bits
from softfloat.engine import as_environment

FORMATS = {"f16": softfloat.float16, "bf16": softfloat.bfloat16, "f32": softfloat.float32}
MODES = {
    "near_even": "nearest_even",
    "minMag": "toward_zero",
    "min": "toward_negative",
    "max": "toward_positive",
    "near_maxMag": "nearest_away",
    "odd": "to_odd",
}
BINARY = {"add": bits.add, "sub": bits.sub, "mul": bits.mul, "div": bits.div, "rem": bits.remainder}
COMPARISONS = {
    "eq": (bits.eq, False),
    "eq_signaling": (bits.eq, True),
    "lt": (bits.lt, True),
    "lt_quiet": (bits.lt, False),
    "le": (bits.le, True),
    "le_quiet": (bits.le, False),
}
INTEGERS = {"i32": np.int32, "i64": np.int64, "ui32": np.uint32, "ui64": np.uint64}
FILES = ("testfloat_f16_binary", "testfloat_f16_mulAdd", "testfloat_f32", "testfloat_unary", "bf16_ops")


@lru_cache
def load(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as archive:
        return dict(archive)


def emulate(name: str, a: np.ndarray, b: np.ndarray | None, c: np.ndarray | None, exact: bool, **options: object):
    """(result, flags, result format or None) of a TestFloat function."""
    options = as_environment(options)
    if "_to_" in name:
        source, _, destination = name.partition("_to_")
        if source in INTEGERS:
            fmt = FORMATS[destination]
            return *bits.encode(a.view(INTEGERS[source]), fmt, **options), fmt
        if destination in INTEGERS:
            return *bits.to_integer(a, FORMATS[source], INTEGERS[destination], exact=exact, **options), None
        if source == "f64":
            fmt = FORMATS[destination]
            return *bits.encode(a.view(np.float64), fmt, **options), fmt
        if destination == "f64":
            return bits.decode(a, FORMATS[source]).view(np.uint64), None, None
        fmt = FORMATS[destination]
        return *bits.convert(a, FORMATS[source], fmt, **options), fmt
    prefix, _, operation = name.partition("_")
    fmt = FORMATS[prefix]
    if operation in BINARY:
        return *BINARY[operation](a, b, fmt, **options), fmt
    if operation == "mulAdd":
        return *bits.fma(a, b, c, fmt, **options), fmt
    if operation == "sqrt":
        return *bits.sqrt(a, fmt, **options), fmt
    if operation == "roundToInt":
        return *bits.round_to_integral(a, fmt, exact=exact, **options), fmt
    compare, signalling = COMPARISONS[operation]
    result, flags = compare(a, b, fmt, signalling=signalling, **options)
    return result.astype(np.uint8), flags, None


VARIANTS = {
    "a": {"tininess": "after"},
    "b": {"tininess": "before"},
    "exact": {"exact": True},
    "notexact": {"exact": False},
}


def told(name: str) -> tuple[str, str]:
    """(operation, format) of a TestFloat function."""
    first, _, operation = name.partition("_")
    if operation.startswith("to_"):
        kinds = {**FORMATS, "f64": "float64"}
        last = operation.removeprefix("to_")
        return "convert", f"{kinds.get(first, first)} to {kinds.get(last, last)}"
    return operation, str(FORMATS[first])


@pytest.mark.conformance("Berkeley TestFloat; SoftFloat's parts for bfloat16")
@pytest.mark.parametrize("file", FILES)
def test_testfloat(vectors: Path, tally: Tally, file: str) -> None:
    data = load(vectors / f"{file}.npz")
    rows = 0
    for key, expected in data.items():
        name, _, column = key.partition("__")
        if not column.startswith("r_"):
            continue
        mode = column.removeprefix("r_")
        a, b, c = (data.get(f"{name}__{operand}") for operand in "abc")
        seen = [variant for variant in VARIANTS if f"{name}__f_{mode}_{variant}" in data]
        assert seen or name.endswith("_to_f64"), key
        for variant in seen or ["a"]:
            options = {"exact": True, **VARIANTS[variant], "rounding": MODES[mode]}
            result, flags, fmt = emulate(name, a, b, c, **options)
            wrong = result.view(expected.dtype) != expected
            if fmt is not None:
                wrong &= ~(bits.isnan(result, fmt) & bits.isnan(expected, fmt))
            elif name.endswith("_to_f64"):
                wrong &= ~(np.isnan(result.view(np.float64)) & np.isnan(expected.view(np.float64)))
            if flags is not None:
                wrong |= flags != data[f"{name}__f_{mode}_{variant}"]
            tally(*told(name), MODES[mode], wrong.size, wrong.sum())
            where = np.flatnonzero(wrong)[:3]
            assert not wrong.any(), (
                f"{key} {variant}: {wrong.sum()} of {wrong.size}, first {[hex(a[i]) for i in where]}"
            )
            rows += wrong.size
    assert rows > 10_000


@pytest.mark.conformance("results read off x86 hardware")
@pytest.mark.parametrize(
    ("column", "rounding"),
    [("RNE", "nearest_even"), ("RDN", "toward_negative"), ("RUP", "toward_positive"), ("RTZ", "toward_zero")],
)
def test_vcvtps2ph(vectors: Path, tally: Tally, column: str, rounding: str) -> None:
    """F16C in four modes: quieted payloads; MXCSR's precision, underflow, overflow, denormal and invalid bits."""
    data = load(vectors / "x86_hw_small.npz")
    codes, flags = bits.convert(data["vcvtps2ph_x"], "float32", "float16", rounding=rounding, nan="x86")
    wrong = codes != data[f"vcvtps2ph_{column}"]
    tally("VCVTPS2PH", "float32 to float16", rounding, codes.size, wrong.sum())
    assert not wrong.any()
    mxcsr = data[f"vcvtps2ph_{column}_mxcsr"]
    invalid, overflow, underflow, inexact = (mxcsr >> bit & 1 for bit in (0, 3, 4, 5))
    assert np.array_equal(flags, inexact | underflow << 1 | overflow << 2 | invalid << 4)


@pytest.mark.conformance("results read off x86 hardware")
def test_vcvtneps2bf16(vectors: Path, tally: Tally) -> None:
    """AVX512_BF16: subnormal operands count as zero, payloads are kept."""
    data = load(vectors / "x86_hw_small.npz")
    codes, _ = bits.convert(data["vcvtneps2bf16_x"], "float32", "bfloat16", daz=True, nan="x86")
    wrong = codes != data["vcvtneps2bf16_y"]
    tally("VCVTNEPS2BF16", "float32 to bfloat16", "nearest_even", codes.size, wrong.sum())
    assert not wrong.any()


@pytest.mark.conformance("ml_dtypes' values")
def test_value_tables(vectors: Path, tally: Tally) -> None:
    tables = load(vectors / "ml_dtypes_value_tables.npz")
    for name, values in tables.items():
        ours = bits.decode(np.arange(values.size), name)
        assert np.array_equal(ours, values, equal_nan=True), name
        tally("decode", name, "exact", values.size)
        number = ~np.isnan(values)
        assert np.array_equal(np.signbit(ours[number]), np.signbit(values[number])), name
    assert len(tables) == 11
