"""Corner products and corner rows: they reach what they say, and find the faults planted in two units written in C."""

from __future__ import annotations

import ctypes
import io
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from operands import CUSTOM

from softfloat import ROSTER, Environment, Format, bits
from softfloat.status import Flags
from softfloat.testing.vectors.block_operations import BLOCK_OPERATIONS
from softfloat.testing.vectors.columns import as_number
from softfloat.testing.vectors.corners import Rows, corner_rows, corners, fractions
from softfloat.testing.vectors.distributions import draw_operands
from softfloat.testing.vectors.files import read_vectors, write_vectors
from softfloat.testing.vectors.levels import corners_of
from softfloat.testing.vectors.operations import OPERATIONS, Case, resolve

FMA = resolve("fma", "float16")
DOT = resolve("vecdot", "bfloat16", accumulator='fma("float32")', length=16)


def all_rows(rows: Rows) -> list[np.ndarray]:
    return rows.operands(np.arange(rows.count))


def some_rows(rows: Rows, count: int = 2000) -> list[np.ndarray]:
    """Rows from all over, the first and the last of each block among them."""
    spread = np.linspace(0, rows.count - 1, min(count, rows.count)).astype(np.int64)
    return rows.operands(np.unique(np.concatenate([spread, rows.ends - 1, rows.ends[:-1]])))


def fields(codes: np.ndarray, fmt: Format) -> tuple[np.ndarray, np.ndarray]:
    """Exponent field, and the two lowest fraction bits."""
    wide = codes.astype(np.int64)
    return wide >> fmt.mantissa_bits & (1 << fmt.exponent_bits) - 1, wide & min(3, (1 << fmt.mantissa_bits) - 1)


# -- what there is ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [*ROSTER.values(), *CUSTOM], ids=str)
def test_every_format_has_corners(fmt: Format) -> None:
    for arity in (1, 2, 3):
        for level in (1, 2):
            rows = corner_rows(as_number(fmt), arity, None, level)
            assert 0 < rows.count <= {1: 3_000_000, 2: 60_000_000}[level]
            codes = some_rows(rows)
            assert len(codes) == arity
            assert all(x.dtype == fmt.dtype and int(x.max()) < 1 << fmt.bits for x in codes)
            assert all(np.array_equal(x, y) for x, y in zip(codes, some_rows(rows), strict=True))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "tfloat32", "float32", "float8_e5m2"])
def test_every_exponent_meets_every_state_of_the_lowest_bits(name: str) -> None:
    """Of each operand, with every state of those of the others."""
    fmt = ROSTER[name]
    wanted = 1 << fmt.exponent_bits
    for arity in (2, 3):
        found = [fields(x, fmt) for x in all_rows(corner_rows(as_number(fmt), arity, None, 1))]
        for field, _ in found:
            key = field
            for _, low in found:
                key = key * 4 + low
            assert len(np.unique(key)) == wanted * 4**arity, arity


def test_small_operands_come_exhaustively() -> None:
    for name, arity, count in (("float8_e4m3fn", 2, 1 << 16), ("float4_e2m1fn", 3, 1 << 12), ("float16", 1, 1 << 16)):
        number = as_number(name)
        codes = all_rows(corner_rows(number, arity, None, 1))
        key = sum(x.astype(np.int64) << number.bits * i for i, x in enumerate(codes))
        assert len(np.unique(key)) == count == len(key)


def test_fractions() -> None:
    short, long, pairs = (set(fractions(10, kind).tolist()) for kind in ("short", "long", "pairs"))
    assert short < long < pairs
    assert short == {0, 1, 2, 3, 1023, 1022, 1021, 1020}
    assert {1 << i for i in range(10)} | {1023 ^ 1 << i for i in range(10)} | {0x155, 0x2AA} <= long
    assert {1 << i | 1 << j for i in range(10) for j in range(10)} <= pairs
    assert fractions(0, "pairs").tolist() == [0]


@pytest.mark.parametrize("name", [x for x in OPERATIONS if x not in ("convert", "vecdot", *BLOCK_OPERATIONS)])
def test_every_operation_has_corners(name: str) -> None:
    case = resolve(name, "bfloat16")
    operands = some_rows(corners(case, 1), 300)
    results, flags = case.run(operands)
    assert results.shape == flags.shape == operands[0].shape


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float32", "float16"),
        ("float32", "float8_e4m3fn"),
        ("float64", "bfloat16"),
        ("int64", "float16"),
        ("uint32", "bfloat16"),
        ("float32", "int32"),
        ("float32", "float64"),
    ],
)
def test_conversions_tie_at_the_target(source: str, target: str) -> None:
    case = resolve("convert", source, target)
    operands = all_rows(corners(case, 1))
    flags = case.run(operands)[1]
    rounds = target != "float64"
    assert (flags & Flags.INEXACT != 0).any() == rounds
    if rounds:
        assert (case.run(operands)[0] != case.under(rounding="RNA").run(operands)[0]).sum() > 20


def test_random_numbers_have_corners_too() -> None:
    case = resolve("add", "float16", environment=Environment(rounding="stochastic", sr_bits=5))
    rows = corners(case, 1)
    operands = rows.operands(np.arange(3000))
    assert len(operands) == 3
    assert {0, 31, 1, 30, 16, 15} <= set(operands[2].tolist()) <= set(range(32))


# -- dot products ----------------------------------------------------------------------------------------------------


def finite_products(case: Case, operands: list[np.ndarray]) -> np.ndarray:
    """Rows whose products are all finite numbers of the running format."""
    a, b = (np.asarray(bits.decode(x, fmt)) for x, fmt in zip(operands, case.formats, strict=False))
    with np.errstate(all="ignore"):
        return (np.abs(a * b) < 2.0**128).all(axis=1)


@pytest.mark.parametrize("fmt", ["bfloat16", "float16", "float8_e5m2"])
def test_sums_overflow_and_underflow_at_every_step(fmt: str) -> None:
    """With finite products, in both signs; where the operands' range allows it."""
    running = {"bfloat16": "float32", "float16": "float16", "float8_e5m2": "float16"}[fmt]
    case = resolve("vecdot", fmt, accumulator=f"fma('{running}')", length=6)
    operands = all_rows(corners_of(case, 1))
    finite = finite_products(case, operands)
    infinity, wanted = ROSTER[running].inf_code, set()
    overflows, underflows = set(), set()
    for step in range(6):
        raised = case.replace(length=step).run([x[:, :step] for x in operands])[1] if step else np.zeros(1, np.uint8)
        results, flags = case.replace(length=step + 1).run([x[:, : step + 1] for x in operands])
        new = flags & ~raised
        for sign in (0, 1):
            code = infinity | sign * ROSTER[running].sign_bit
            if step and (finite & (new & Flags.OVERFLOW != 0) & (results == code)).any():
                overflows.add((step, sign))
            negative = results >> (ROSTER[running].bits - 1) == sign
            if (finite & (new & Flags.UNDERFLOW != 0) & negative).any():
                underflows.add((step, sign))
        wanted |= {(step, 0), (step, 1)}
    assert overflows >= {x for x in wanted if x[0]}
    assert underflows >= wanted


def test_cancellation_and_negative_zeros_at_every_step() -> None:
    case = resolve("vecdot", "float16", accumulator="fma('float32')", length=5, addend=True)
    operands = all_rows(corners_of(case, 1))
    zero, last = set(), set()
    sums = operands[2]
    for step in range(5):
        one = case.replace(length=1)
        following, _ = one.run([operands[0][:, step : step + 1], operands[1][:, step : step + 1], sums])
        if ((following == 0) & (sums << 1 != 0)).any():
            zero.add(step)
        if (following == 0x80000000).any():
            last.add(step)
        sums = following
    assert zero == last == set(range(5))


@pytest.mark.parametrize("accumulator", ["fma('float32')", "tensor_core('H100')", "tensor_core('A100')"])
def test_distances_around_the_boundaries_of_the_accumulator(accumulator: str) -> None:
    """Two products as far apart as the accumulator keeps bits, and one more, in sums of nothing else."""
    case = resolve("vecdot", "float16", accumulator=accumulator, length=4)
    operands = all_rows(corners_of(case, 1))
    a, b = (np.asarray(bits.decode(x, "float16")) for x in operands[:2])
    with np.errstate(invalid="ignore"):
        products = np.abs(a * b)
    two = np.isfinite(products).all(axis=1) & ((products > 0).sum(axis=1) == 2)
    exponents = np.where(products > 0, np.frexp(products)[1], -1000)[two]
    ordered = np.sort(exponents, axis=1)
    distances = set((ordered[:, -1] - ordered[:, -2]).tolist())
    kept = case.accumulator.kept_bits or 24
    assert distances >= set(range(kept + 4))


def test_a_product_decides_a_tie() -> None:
    """Rows where nearest even and nearest away agree, but would not without one of the products."""
    case = resolve("vecdot", "float16", accumulator="exact('float16')", length=4)
    operands = all_rows(corners_of(case, 1))
    away = case.under(rounding="RNA")
    same = case.run(operands)[0] == away.run(operands)[0]
    found = 0
    for step in range(4):
        less = [x.copy() for x in operands]
        less[0][:, step] = less[1][:, step] = 0
        found += int((same & (case.run(less)[0] != away.run(less)[0])).sum())
    assert found > 1000


def test_random_rows_of_bfloat16_overflow() -> None:
    operands = draw_operands(DOT, "mixed", 10_000, [0, 0])
    results, flags = DOT.run(operands)
    finite = finite_products(DOT, operands)
    over = finite & (flags & Flags.OVERFLOW != 0)
    assert (over & (results == 0x7F800000)).any()
    assert (over & (results == 0xFF800000)).any()


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [1, "1"])
def test_levels_are_written_and_read(level: object) -> None:
    case = resolve("vecdot", "float8_e4m3fn", accumulator='tensor_core("H100", "float8_e4m3fn")', length=2)
    stream = io.BytesIO()
    count = write_vectors(stream, case, level=level)
    stream.seek(0)
    chunks = list(read_vectors(stream, case))
    assert sum(map(len, chunks)) == count == corners_of(case, 1).count
    whole = all_rows(corners_of(case, 1))
    assert np.array_equal(np.concatenate([x.operands[0] for x in chunks]), whole[0])


# -- planted faults --------------------------------------------------------------------------------------------------

FAULTS = range(1, 26)
Unit = Callable[[list[np.ndarray], int], tuple[np.ndarray, np.ndarray]]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The two units, compiled."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("planted") / "planted.so"
    source = Path(__file__).parent.parent / "helpers" / "planted.c"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return ctypes.CDLL(str(library))


def unit(library: ctypes.CDLL, case: Case) -> tuple[Unit, int]:
    """A unit, and the number its faults count from."""
    pointer = lambda x: x.ctypes.data_as(ctypes.c_void_p)  # noqa: E731

    def run(operands: list[np.ndarray], fault: int) -> tuple[np.ndarray, np.ndarray]:
        codes = [np.ascontiguousarray(x) for x in operands]
        results, flags = np.empty(len(codes[0]), case.target.dtype), np.empty(len(codes[0]), np.uint8)
        sizes = [ctypes.c_size_t(x) for x in codes[0].shape]
        function = library.half_fma if case is FMA else library.bfloat16_dot
        function(*sizes, *map(pointer, codes), pointer(results), pointer(flags), fault)
        return results, flags

    return run, 0 if case is FMA else 100


def found(library: ctypes.CDLL, case: Case, operands: list[np.ndarray]) -> set[int]:
    """The faults that rows tell; the unit without one must be right in all of them."""
    run, base = unit(library, case)
    right = case.run(operands)
    order = np.random.default_rng(0).permutation(len(right[0]))  # most faults show in the first few rows of these

    def differs(fault: int, rows: np.ndarray) -> bool:
        results, flags = run([x[rows] for x in operands], fault)
        return bool((results != right[0][rows]).any() or (flags != right[1][rows]).any())

    assert not differs(0, order)
    pieces = np.array_split(order, max(1, len(order) // 20_000))
    return {fault for fault in FAULTS if any(differs(base + fault, rows) for rows in pieces)}


@pytest.mark.parametrize("case", [FMA, DOT], ids=["half fma", "bfloat16 dot"])
def test_level_1_finds_every_planted_fault(planted: ctypes.CDLL, case: Case) -> None:
    assert found(planted, case, all_rows(corners_of(case, 1))) == set(FAULTS)


@pytest.mark.parametrize("case", [FMA, DOT], ids=["half fma", "bfloat16 dot"])
@pytest.mark.parametrize("seed", range(4))
def test_ten_thousand_random_rows_find_most_planted_faults(planted: ctypes.CDLL, case: Case, seed: int) -> None:
    assert len(found(planted, case, draw_operands(case, "mixed", 10_000, [seed, 0]))) >= 0.9 * len(FAULTS)
