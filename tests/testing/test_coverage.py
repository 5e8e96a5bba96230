"""Coverage: bins hold what exact fractions say, empty ones are filled, and those called unreachable are never reached."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from commands import Run
from operands import CUSTOM

from softfloat import ROSTER, Environment, bits
from softfloat.formats import Format
from softfloat.status import Flags
from softfloat.testing.vectors.coverage import Coverage, coverage_of
from softfloat.testing.vectors.distributions import draw_operands
from softfloat.testing.vectors.exact_numbers import ROUNDINGS, Exact
from softfloat.testing.vectors.files import write_vectors
from softfloat.testing.vectors.levels import corners_of
from softfloat.testing.vectors.measures import dimensions, measure
from softfloat.testing.vectors.operations import Case, resolve


def measured(case: Case, operands: list[np.ndarray]) -> dict[str, list[list[str]]]:
    """For each dimension, the names of the bins of each row."""
    found = measure(case, operands, *case.run(operands))
    names = {x.name: x.bins for x in dimensions(case)}
    assert sorted(found) == sorted(names)
    rows = len(operands[0])
    return {x: [[names[x][i] for i in row if i >= 0] for row in found[x].reshape(rows, -1)] for x in names}


def all_operands(case: Case) -> list[np.ndarray]:
    """All rows of two 8-bit operands, or of one."""
    codes = np.arange(1 << case.format.bits, dtype=case.format.dtype)
    if len(case.operands) == 1:
        return [codes]
    return [x.ravel() for x in np.meshgrid(codes, codes, indexing="ij")]


def place(value: Fraction, fmt: Format) -> str:
    """Where a number lies between two of a format, by fractions."""
    exponent = fmt.emin
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    steps = abs(value) / Fraction(2) ** (exponent - fmt.mantissa_bits)
    whole, rest = divmod(steps, 1)
    if not rest:
        return "exact"
    if rest == Fraction(1, 2):
        return "tie, odd" if whole % 2 else "tie, even"
    return "below half" if rest < Fraction(1, 2) else "above half"


EXACT = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c,
}


@pytest.mark.parametrize("fmt", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2fnuz"])
@pytest.mark.parametrize("name", EXACT)
def test_roundings_are_those_of_fractions(name: str, fmt: str) -> None:
    case, form = resolve(name, fmt), ROSTER[fmt]
    operands = draw_operands(case, "mixed", 400, 3)
    bins = measured(case, operands)
    compared = 0
    for row, codes in enumerate(zip(*operands, strict=True)):
        values = [float(bits.decode(x, form)) for x in codes]
        found = bins["rounding"][row] + bins["rounding of subnormals"][row]
        if not np.isfinite(values).all() or (name == "div" and values[1] == 0):
            assert not found
            continue
        exact = EXACT[name](*map(Fraction, values))
        assert found == ([place(exact, form)] if exact else [])
        if exact:
            assert bool(bins["rounding of subnormals"][row]) == (abs(exact) < Fraction(2) ** form.emin)
            compared += 1
    assert compared > 150


@pytest.mark.parametrize("name", ["add", "mul", "div", "sqrt"])
def test_all_pairs_of_8_bits_agree_with_the_flags_and_modes(name: str) -> None:
    case = resolve(name, "float8_e4m3")
    operands = all_operands(case)
    results, flags = case.run(operands)
    found = measure(case, operands, results, flags)
    kind = np.maximum(found["rounding"], found["rounding of subnormals"])
    known = kind >= 0
    over = flags & Flags.OVERFLOW != 0
    assert np.array_equal(known & (kind > 0) & ~over, known & (flags & Flags.INEXACT != 0) & ~over)
    away, zero = (case.under(rounding=mode).run(operands)[0] for mode in ("RNA", "RTZ"))
    assert np.array_equal((kind == ROUNDINGS.index("tie, even")) & ~over, known & (away != results) & ~over)
    up = known & ~over & (results != zero)
    assert np.array_equal(up, known & ~over & np.isin(kind, (3, 4)))


@pytest.mark.parametrize("width", [1, 24, 25, 53, 54, 63, 64, 65, 200])
def test_leading_bits_of_integers_of_any_width(width: int) -> None:
    """About as many as float32, float64 and 64 bits hold."""
    for integer in (2**width - 1, 1 - 2**width, 2**width, -(2**width), 2**width + 1):
        numbers = Exact(np.array([0, integer, 5], object), np.array([0, 0, -2]), np.ones(3, bool))
        assert numbers.top.tolist() == [-(1 << 20), abs(integer).bit_length() - 1, 0]


def test_what_a_sum_is_sorted_by() -> None:
    one = lambda *codes: [np.array([x], np.uint16) for x in codes]  # noqa: E731
    add, fma = resolve("add", "float16"), resolve("fma", "float16")
    for case, operands, name, wanted in (
        (add, one(0x3C00, 0x1000), "exponent difference", "+ 11"),
        (add, one(0x9000, 0x3C00), "exponent difference", "- -11"),
        (add, one(0x0400, 0x0001), "exponent difference", "+ 0"),
        (add, one(0x3C00, 0xBC00), "cancellation", "all"),
        (add, one(0x4000, 0xBFFF), "cancellation", "11"),
        (add, one(0x3C00, 0xB800), "cancellation", "1"),
        (add, one(0x3C00, 0x3C00), "carry", "yes"),
        (add, one(0x3C00, 0x1001), "sticky distance", "11"),
        (add, one(0x7BFF, 0x7BFF), "flags", "INEXACT OVERFLOW"),
        (fma, one(0x3C01, 0x3C01, 0xBC02), "cancellation", "20"),
        (fma, one(0x3C01, 0x3C01, 0x0000), "sticky distance", "10"),
        (fma, one(0x3C00, 0x3C00, 0x1000), "exponent difference", "+ 11"),
        (add, one(0x0001, 0x03FE), "result", "+ largest subnormal"),
        (add, one(0x8000, 0x8000), "result", "- zero"),
        (add, one(0x7D00, 0x0001), "operands", "signalling-NaN subnormal"),
    ):
        assert measured(case, operands)[name] == [[wanted]], (name, wanted)


def test_what_the_steps_of_a_sum_are_sorted_by() -> None:
    case = resolve("vecdot", "bfloat16", accumulator="fma('float32')", length=4)
    large, ones = 0x7F7F, 0x3F80  # the largest number, 1
    a = np.array([[ones, ones, large, large], [ones, ones ^ 0x8000, ones, 0x3300]], np.uint16)
    b = np.full((2, 4), ones, np.uint16)  # 1 + 1 + large + large; 1 - 1 + 1 + 2^-25
    b[0, 3] = 0x4000
    bins = measured(case, [a, b])
    assert bins["overflow at step"] == [["+ 3"], []]
    assert bins["cancels to zero at step"] == [[], ["1"]]
    assert bins["carry at step"] == [["+ 1", "+ 3"], []]
    assert bins["tie at step"] == [[], []]
    assert "25" in bins["alignment of products"][1]
    tie = measured(case, [np.where(a == 0x3300, 0x3380, a).astype(np.uint16), b])
    assert tie["tie at step"] == [[], ["+ 3"]]


@pytest.mark.parametrize(
    "accumulator",
    [
        "amp('half')",
        "fma('float16')",
        "mul_add('float16')",
        "tensor_core('V100')",
        "exact('float16')",
    ],
)
def test_running_sums_are_followed_to_the_result(accumulator: str) -> None:
    """What steps raise is what the whole row raises."""
    case = resolve("vecdot", "float16", accumulator=accumulator, length=8)
    operands = draw_operands(case, "mixed", 500, 11)
    _, flags = case.run(operands)
    bins = measured(case, operands)
    formats = {case.accumulator.running.format, case.target.format}
    for row in range(500):
        if bins["overflow at step"][row]:
            assert flags[row] & Flags.OVERFLOW
        if any(x != "exact" for x in bins["rounding"][row] + bins["rounding of subnormals"][row]):
            assert flags[row] & Flags.INEXACT
        if len(formats) == 1 and case.accumulator.store is None and case.accumulator.product is None:
            exact = all(x == "exact" for x in bins["rounding"][row] + bins["rounding of subnormals"][row])
            if exact and case.accumulator.aligned is None and not flags[row] & Flags.OVERFLOW:
                assert not flags[row] & Flags.INEXACT


SMALL = [
    *(resolve(x, "float8_e4m3") for x in ("add", "sub", "mul", "div", "sqrt")),
    *(resolve(x, "float8_e5m2fnuz") for x in ("add", "mul", "div", "sqrt", "exp", "minimum")),
    *(resolve(x, fmt) for x in ("add", "mul", "div", "sqrt") for fmt in CUSTOM if fmt.bits <= 8),
    resolve("add", "float8_e5m2", environment=Environment(ftz=True)),
    resolve("add", "float8_e5m2", environment=Environment(rounding="toward_negative")),
    resolve("fma", "float4_e2m1fn"),
    resolve("convert", "float16", "float8_e4m3fn"),
    resolve("convert", "float16", "int8"),
    *(
        resolve("vecdot", "float4_e2m1fn", accumulator=x, length=2)
        for x in ("fma('float16')", "exact('float8_e4m3fn')", "mul_add('float4_e2m1fn')", "pairwise('float8_e4m3fn')")
    ),
    resolve("vecdot", "float4_e2m1fn", "float6_e2m3fn", accumulator="fma('float16')", length=2),
    resolve("vecdot", "float4_e2m1fn", accumulator="fma('float16')", length=2, environment=Environment(rounding="RDN")),
]


@pytest.mark.parametrize("case", SMALL, ids=lambda x: x.title)
def test_what_is_called_unreachable_is_never_reached(case: Case) -> None:
    """All rows there are, in formats of few bits; and the search then ends with every other bin filled."""
    whole, filled = Coverage(case), Coverage(case)
    rows = corners_of(case, 2) if case.operation.result != "sum" else None
    operands = rows.operands(np.arange(rows.count)) if rows is not None else every_dot(case)
    whole.add(operands, *case.run(operands))
    filled.fill()
    for dimension in whole.dimensions:
        reached = {x for x, n in zip(dimension.bins, whole.counts[dimension.name], strict=True) if n}
        for label in dimension.bins:
            assert label not in reached or not whole.unreachable(dimension.name, label), (dimension.name, label)
        if dimension.name != "flags":
            assert set(filled.empty(dimension.name)) == set(dimension.bins) - reached, dimension.name
        assert not filled.fillable(dimension.name)


def every_dot(case: Case) -> list[np.ndarray]:
    index = np.arange(1 << case.operand_bits)
    width = case.format.bits
    parts = [(index >> width * i & (1 << width) - 1).astype(case.format.dtype) for i in range(4)]
    return [np.stack(parts[:2], axis=1), np.stack(parts[2:], axis=1)]


def test_sums_in_segments_are_looked_at_whole() -> None:
    case = resolve("vecdot", "float16", accumulator="chunked(4, fma('float16'), 'float32')", length=8)
    operands = draw_operands(case, "mixed", 100, 11)
    bins = measured(case, operands)
    assert "tie at step" not in bins
    assert sum(map(len, bins["cancellation"])) > 10


@pytest.mark.parametrize("name", ["add", "mul", "fma"])
def test_empty_bins_are_filled(name: str) -> None:
    case = resolve(name, "float16" if name != "fma" else "float8_e5m2")
    found = Coverage(case)
    operands = draw_operands(case, "normal", 50, 0)
    found.add(operands, *case.run(operands))
    before = {x.name: found.empty(x.name) for x in found.dimensions}
    rows = found.fill()
    only = Coverage(case)
    only.add(rows, *case.run(rows))
    for dimension, labels in before.items():
        (bins,) = (x.bins for x in found.dimensions if x.name == dimension)
        for label in labels:
            assert only.counts[dimension][bins.index(label)] or label in found.empty(dimension)
        assert not found.fillable(dimension)


def test_a_file_and_the_command_line(tmp_path: Path) -> None:
    case = resolve("mul", "bfloat16")
    path, more = tmp_path / "rows.txt", tmp_path / "more.npz"
    write_vectors(path, case, 500, distribution="normal")
    assert coverage_of(path, case).rows == 500
    options = ("--op", "mul", "--format", "bfloat16")
    run = Run("coverage", str(path), *options)
    assert run.status == 1
    assert "exponent field of a" in run.out
    document = json.loads(Run("coverage", str(path), *options, "--json").out)
    entry = {x["name"]: x for x in document["dimensions"]}["rounding of subnormals"]
    assert document["rows"] == 500
    assert "tie, even" in entry["empty"]
    cover = Run("vectors", "mul", "--format", "bfloat16", "--cover", str(path), "-o", str(more))
    assert cover.status == 0
    assert "unreachable: flags DIVBYZERO" in cover.out
    both = coverage_of(path, case)
    operands = coverage_of(more, case)
    for name, counts in operands.counts.items():
        both.counts[name] += counts
    assert not any(both.fillable(x.name) for x in both.dimensions)
    assert Run("check", str(more), *options).status == 0
    searched = Run("coverage", str(path), *options, "--search")
    assert "only quotients" in searched.out
    assert Run("coverage", str(tmp_path / "none"), *options).status == 2
    path.write_text("no rows\n", encoding="utf-8")
    assert Run("coverage", str(path), *options).status == 2
    assert Run("vectors", "mul", "-f", "half", "--cover", "--level", "1").status == 2
