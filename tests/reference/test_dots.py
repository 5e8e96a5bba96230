"""The oracle of dot products against what others computed: hardware, Berkeley SoftFloat, NumPy, MPFR; and its own laws."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import gmpy2
import numpy as np
import pytest
import softfloatpy as sf
from core_rows import CORE_FORMATS, CORE_SETS, core_rows
from operands import CUSTOM, operands
from softfloat.kernels.spec import NAN_POLICIES

from softfloat import ROSTER, Format, reference
from softfloat.reference import dots as dot

F16, BF16, F32 = ROSTER["float16"], ROSTER["bfloat16"], ROSTER["float32"]
Rows = list[list[int]]


@pytest.fixture(scope="module")
def stride(request: pytest.FixtureRequest) -> int:
    """Every row with --exhaustive, else every fourth: a hundred of each data set."""
    return 1 if request.config.getoption("--exhaustive") else 4


def vectors_of(fmt: Format, count: int, length: int, seed: int) -> tuple[Rows, Rows]:
    """Pairs of vectors of any codes."""
    a, b = operands(fmt, count * length, 2, seed)
    return a.reshape(count, length).tolist(), b.reshape(count, length).tolist()


assert len(CORE_SETS) == 48


@pytest.mark.parametrize("name", CORE_SETS)
def test_tensor_cores(vectors: Path, stride: int, name: str) -> None:
    rows, fmt, instruction = core_rows(vectors, name)
    arch, _, target = name.split("_")
    assert len(rows[::stride]) >= 100
    for a, b, c, d in rows[::stride]:
        code, flags = dot.tensor_core(a, b, (fmt, fmt), arch, fmt.name, CORE_FORMATS[target], instruction, c=c)
        assert code == d, (list(map(hex, a)), list(map(hex, b)), hex(c))
        assert not flags & ~1


def test_the_rows_tell_models_apart(vectors: Path) -> None:
    """A fraction bit less, an exact sum, or the other instruction: each breaks many rows."""
    rows, fmt, _ = core_rows(vectors, "H200_f16_f32")
    rows = rows[::4]
    truncation = {"rounding": "toward_zero"}
    for bits, broken in ((25, range(1)), (24, range(15, 101)), (None, range(8, 101))):
        found = [dot.blocks(a, b, (fmt, fmt), F32, 16, bits, c, **truncation)[0] for a, b, c, _ in rows]
        assert sum(code != d for code, (*_, d) in zip(found, rows, strict=True)) in broken
    rows, fmt, _ = core_rows(vectors, "H200_e4m3_f32")
    found = [
        dot.tensor_core(a, b, (fmt, fmt), "H200", fmt.name, instruction="mma.sync", c=c)[0] for a, b, c, _ in rows[::4]
    ]
    assert sum(code != d for code, (*_, d) in zip(found, rows[::4], strict=True)) > 30


@pytest.mark.parametrize("family", ["uniform", "close", "tiny", "huge", "special", "ftzprobe"])
def test_vdpbf16ps(vectors: Path, stride: int, family: str) -> None:
    with np.load(vectors / "x86_hw_small.npz") as archive:
        c, a, b, d = (archive[f"vdpbf16ps_{family}_{column}"].tolist() for column in "cabd")
    if family != "ftzprobe":
        a, b, c, d = (column[::stride] for column in (a, b, c, d))
    assert len(a) == len(d)
    for row in zip(a, b, c, d, strict=True):
        assert dot.vdpbf16ps(row[0], row[1], (BF16, BF16), row[2])[0] == row[3], row


def test_vdpbf16ps_traps(vectors: Path) -> None:
    with (vectors / "traps_dot.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20
    for row in rows:
        assert row["instr"] == "VDPBF16PS"
        number = {name: int(row[name], 16) for name in ("c", "a_hi", "b_hi", "a_lo", "b_lo", "result")}
        a, b = [number["a_lo"], number["a_hi"]], [number["b_lo"], number["b_hi"]]
        assert dot.vdpbf16ps(a, b, (BF16, BF16), number["c"])[0] == number["result"], row


# -- Berkeley SoftFloat, NumPy, MPFR ---------------------------------------------------------------------------------

SF_MODES = {
    "nearest_even": sf.RoundingMode.NEAR_EVEN,
    "nearest_away": sf.RoundingMode.NEAR_MAX_MAG,
    "toward_zero": sf.RoundingMode.MIN_MAG,
    "toward_positive": sf.RoundingMode.MAX,
    "toward_negative": sf.RoundingMode.MIN,
}
SF_TININESS = {"before": sf.TininessMode.BEFORE_ROUNDING, "after": sf.TininessMode.AFTER_ROUNDING}


@pytest.mark.parametrize("tininess", SF_TININESS)
@pytest.mark.parametrize("rounding", SF_MODES)
@pytest.mark.parametrize("fmt", [F16, F32], ids=str)
def test_fma_is_softfloats_chain(fmt: Format, rounding: str, tininess: str) -> None:
    kind, function = (sf.Float16, sf.f16_mul_add) if fmt is F16 else (sf.Float32, sf.f32_mul_add)
    size = fmt.bits // 8
    sf.set_rounding_mode(SF_MODES[rounding])
    sf.set_tininess_mode(SF_TININESS[tininess])
    for length in (1, 2, 3, 7):
        rows_a, rows_b = vectors_of(fmt, 60, length, seed=length)
        addends = operands(fmt, 60, 1, seed=99)[0].tolist()
        for a, b, c in zip(rows_a, rows_b, addends, strict=True):
            sf.set_exception_flags(sf.ExceptionFlag(0))
            total = kind.from_bytes(c.to_bytes(size, "big"))
            for x, y in zip(a, b, strict=True):
                total = function(*(kind.from_bytes(z.to_bytes(size, "big")) for z in (x, y)), total)
            code, flags = int.from_bytes(total.to_bytes(), "big"), int(sf.get_exception_flags())
            expected = (fmt.nan_code if reference.decode(code, fmt).is_nan else code), flags
            assert dot.fma(a, b, (fmt, fmt), fmt, c, rounding=rounding, tininess=tininess) == expected, (a, b, c)


def test_mul_add_is_numpys_loop() -> None:
    for length in (0, 1, 5, 33):
        rows_a, rows_b = vectors_of(F16, 100, length, seed=length)
        for a, b in zip(rows_a, rows_b, strict=True):
            total = np.float16(0)
            with np.errstate(all="ignore"):
                for x, y in np.array([a, b], np.uint16).view(np.float16).T:
                    total = np.float16(total + np.float16(x * y))
            code, _ = dot.mul_add(a, b, (F16, F16), F16)
            assert code == (F16.nan_code if np.isnan(total) else int(total.view(np.uint16))), (a, b)


MPFR_MODES = {
    "nearest_even": gmpy2.RoundToNearest,
    "toward_zero": gmpy2.RoundToZero,
    "toward_positive": gmpy2.RoundUp,
    "toward_negative": gmpy2.RoundDown,
}


@pytest.mark.parametrize("rounding", MPFR_MODES)
@pytest.mark.parametrize("fmt", [F16, BF16, F32], ids=str)
def test_exact_is_mpfrs(fmt: Format, rounding: str) -> None:
    """A rational sum, rounded once by MPFR."""
    for length in (1, 4, 19):
        rows_a, rows_b = vectors_of(F16, 60, length, seed=length)
        addends = operands(fmt, 60, 1, seed=5)[0].tolist()
        for a, b, c in zip(rows_a, rows_b, addends, strict=True):
            values = [reference.decode(x, F16) for x in [*a, *b]] + [reference.decode(c, fmt)]
            if any(x.kind is not reference.Kind.FINITE for x in values):
                continue
            reals = [Fraction(x.real) for x in values]
            total = sum((x * y for x, y in zip(reals[:length], reals[length:-1], strict=True)), reals[-1])
            settings = gmpy2.context(
                precision=fmt.p,
                emax=fmt.emax + 1,
                emin=fmt.emin - fmt.p + 2,
                subnormalize=True,
                round=MPFR_MODES[rounding],
            )
            with gmpy2.context(settings) as context:
                context.clear_flags()
                expected = float(gmpy2.mpfr(gmpy2.mpq(total)))
                inexact = context.inexact
            code, flags = dot.exact(a, b, (F16, F16), fmt, c, rounding=rounding)
            assert float(reference.decode(code, fmt).real) == expected, (a, b, c)
            assert flags & 1 == inexact


@pytest.mark.parametrize("partials", ["float32", "float16"])
def test_amp_is_numpys_dot_4(partials: str) -> None:
    """float64 holds the exact sum of a phase as long as exponents stay close together."""
    random = np.random.default_rng(3)
    for length in (1, 16, 23, 64):
        values = np.float16(
            random.integers(-2047, 2048, (40, 2, length)) / 2.0 ** random.integers(0, 6, (40, 2, length))
        )
        padded = np.zeros((40, 2, -(-length // 16) * 16))
        padded[:, :, :length] = values
        for row, codes in zip(padded, values.view(np.uint16).tolist(), strict=True):
            memory = {"float32": np.float32, "float16": np.float16}[partials]
            total = memory(0)
            with np.errstate(over="ignore"):
                for group in np.split(row, row.shape[1] // 16, axis=1):
                    accumulator = np.float32(total)
                    for phase in np.split(group, 4, axis=1):
                        accumulator = np.float32(float(accumulator) + float(phase[0] @ phase[1]))
                    total = memory(accumulator)
            code, _ = dot.amp(*codes, (F16, F16), partials, out_format=ROSTER[partials])
            assert code == int(total.view(f"u{total.nbytes}"))


# -- random numbers --------------------------------------------------------------------------------------------------

RANDOM123 = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), RANDOM123)
def test_philox(counter: tuple[int, ...], key: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert dot.philox(counter, key) == expected  # type: ignore[arg-type]


def test_stochastic_chains_draw_anew_at_every_step() -> None:
    """2^-13 added 4096 times to 1 in steps of 2^-10: an eighth of the steps goes up, whatever the seed."""
    a, b = [0x0800] * 256, [F16.one_code] * 256
    up = Counter(
        dot.fma(a, b, (F16, F16), F16, F16.one_code, rounding="stochastic", seed=seed, index=index)[0] - F16.one_code
        for seed, index in itertools.product((1, 2**40), range(8))
    )
    assert len(up) > 4
    assert 256 / 8 - 8 < sum(n * count for n, count in up.items()) / up.total() < 256 / 8 + 8


def test_the_address_counts() -> None:
    random = np.random.default_rng(1)
    a, b = random.integers(0x3400, 0x4000, (2, 40)).tolist()

    def at(function: Callable[..., tuple[int, int]] = dot.fma, **address: int) -> tuple[int, ...]:
        options = {"rounding": "stochastic", "seed": 1, **address}
        first = options.pop("index", 0)
        return tuple(function(a, b, (F16, F16), F16, index=first + i, **options)[0] for i in range(12))

    results = [at(seed=seed) for seed in (1, 2, 2**32, 2**63)] + [at(stream=stream) for stream in (1, 2, 2**32)]
    results += [at(index=index) for index in (1, 100)]
    assert len(set(results)) == len(results)
    assert at() == at(stream=0, index=0) == at(sr_bits=52)
    assert at(index=1)[:-1] == at()[1:]


# -- laws ------------------------------------------------------------------------------------------------------------

SMALL = ROSTER["float8_e4m3fnuz"]
PAIR = (F16, F16)
PRESETS: dict[str, Callable[..., tuple[int, int]]] = {
    "fma": lambda a, b, **o: dot.fma(a, b, PAIR, F32, **o),
    "mul_add": lambda a, b, **o: dot.mul_add(a, b, PAIR, F32, **o),
    "exact": lambda a, b, **o: dot.exact(a, b, PAIR, F32, **o),
    "pairwise": lambda a, b, **o: dot.pairwise(a, b, PAIR, F32, **o),
    "chains": lambda a, b, **o: dot.chains(a, b, PAIR, F32, 3, **o),
    "chunked": lambda a, b, **o: dot.chunked(a, b, PAIR, 7, F16, F32, **o),
    "amp": lambda a, b, **o: dot.amp(a, b, PAIR, out_format=F32, **o),
    "amp aligned": lambda a, b, **o: dot.amp(a, b, PAIR, mode="aligned", out_format=F32, **o),
    "amp chained": lambda a, b, **o: dot.amp(a, b, PAIR, mode="chained", out_format=F32, **o),
    "slic": lambda a, b, **o: dot.slic(a, b, PAIR, window=3, out_format=F32, **o),
    "reduced_amp": lambda a, b, **o: dot.reduced_amp(a, b, PAIR, "float16", "float16", 7, (3, 2), out_format=F32, **o),
    **{
        f"tensor_core {arch}": lambda a, b, arch=arch, **o: dot.tensor_core(a, b, PAIR, arch, **o) for arch in dot.CORES
    },
}


@pytest.mark.parametrize("name", PRESETS)
def test_small_integers_are_exact(name: str) -> None:
    """Whatever the order, and with every product in its place once."""
    random = np.random.default_rng(0)
    for length in range(1, 70, 3):
        a, b = random.integers(-5, 6, (2, length)).astype(np.float16)
        c = np.float32(random.integers(-5, 6))
        code, flags = PRESETS[name](
            a.view(np.uint16).tolist(), b.view(np.uint16).tolist(), c=int(c.view(np.uint32)), tininess="before"
        )
        assert reference.decode(code, F32).real == float(a.astype(float) @ b.astype(float) + c)
        assert flags == 0


@pytest.mark.parametrize("name", PRESETS)
def test_nothing_to_add(name: str) -> None:
    for c in (0x00000001, 0x80000000, 0xFF800000, 0x7FC00001, 0x3F800000):
        assert PRESETS[name]([], [], c=c, daz=True) == (c, 0)
    assert PRESETS[name]([], [], c=0x7F800001) == (0x7FFFFFFF if "tensor" in name else 0x7FC00000, 16)
    if "tensor" not in name:
        assert PRESETS[name]([], [], c=0xFF800001, nan="x86") == (0xFFC00001, 16)
    assert PRESETS[name]([], []) == (0, 0)


WAYS = [
    {"rounding": rounding, "nan": nan, "daz": daz, "ftz": daz, "overflow": overflow}
    for (rounding, nan), (daz, overflow) in itertools.product(
        zip(
            ["nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd"] * 2,
            [*NAN_POLICIES] * 2,
            strict=False,
        ),
        [(False, "infinity"), (True, "saturate")],
    )
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(map(str, way.values())))
def test_presets_of_one_format_are_chains_of_operations(way: dict[str, object]) -> None:
    """Codes, flags and NaN payloads are those of `reference`'s operations one after the other."""
    for fmt in (F16, ROSTER["float8_e5m2"], ROSTER["float8_e4m3fn"], *CUSTOM[:2]):
        for length in (1, 2, 5):
            rows_a, rows_b = vectors_of(fmt, 25, length, seed=length)
            addends = operands(fmt, 25, 1, seed=8)[0].tolist()
            for a, b, c in zip(rows_a, rows_b, addends, strict=True):
                fused, apart, seen = c, c, [0, 0]
                for x, y in zip(a, b, strict=True):
                    fused, flags = reference.fma(x, y, fused, fmt, **way)
                    product, product_flags = reference.mul(x, y, fmt, **way)
                    apart, sum_flags = reference.add(apart, product, fmt, **way)
                    seen = [seen[0] | flags, seen[1] | product_flags | sum_flags]
                assert dot.fma(a, b, (fmt, fmt), fmt, c, **way) == (fused, seen[0])
                assert dot.mul_add(a, b, (fmt, fmt), fmt, c, **way) == (apart, seen[1])


def levels(codes: Sequence[int], fmt: Format, way: dict[str, object]) -> tuple[int, int]:
    """Sums of neighbours, level by level."""
    seen, row = 0, list(codes)
    while len(row) > 1:
        sums = [reference.add(x, y, fmt, **way) for x, y in zip(row[::2], row[1::2], strict=False)]
        seen |= int(np.bitwise_or.reduce([flags for _, flags in sums]))
        row = [code for code, _ in sums] + row[len(row) - len(row) % 2 :]
    return row[0], seen


def test_pairwise_goes_level_by_level() -> None:
    for length in range(1, 35):
        rows_a, rows_b = vectors_of(F16, 4, length, seed=length)
        for a, b in zip(rows_a, rows_b, strict=True):
            products = [reference.mul(x, y, F16) for x, y in zip(a, b, strict=True)]
            code, flags = levels([code for code, _ in products], F16, {})
            for _, raised in products:
                flags |= raised
            assert dot.pairwise(a, b, PAIR, F16) == (code, flags)


def test_chains_are_chains() -> None:
    for length, n in itertools.product((1, 3, 8), (1, 2, 5)):
        rows_a, rows_b = vectors_of(F16, 10, length, seed=length)
        for a, b in zip(rows_a, rows_b, strict=True):
            parts = [dot.fma(a[i::n], b[i::n], PAIR, F16) for i in range(n)]
            code, flags = parts[0]
            for other, raised in parts[1:]:
                code, summed = reference.add(code, other, F16)
                flags |= raised | summed
            assert dot.chains(a, b, PAIR, F16, n) == (code, flags)


def test_zeros() -> None:
    minus = [F16.sign_bit]
    one = [F16.one_code]
    assert dot.fma(minus, one, PAIR, F16, F16.sign_bit) == (F16.sign_bit, 0)
    assert dot.fma(minus, one, PAIR, F16) == (0, 0)
    assert dot.exact(minus, one, PAIR, F16, F16.sign_bit) == (F16.sign_bit, 0)
    assert dot.exact([0], one, PAIR, F16, rounding="toward_negative") == (0, 0)
    assert dot.exact(minus * 2, one * 2, PAIR, F16, F16.sign_bit) == (0, 0)
    assert dot.exact([0] * 2, one * 2, PAIR, F16, rounding="toward_negative") == (F16.sign_bit, 0)
    assert dot.blocks(minus, one, PAIR, F16, 1, 10, F16.sign_bit) == (F16.sign_bit, 0)
    assert dot.blocks([0], one, PAIR, F16, 1, 10, rounding="toward_negative") == (0, 0)
    assert dot.blocks(minus, one, PAIR, F16, 1, 10, 0, rounding="toward_negative") == (F16.sign_bit, 0)
    assert dot.vdpbf16ps([0x8000], [BF16.one_code], (BF16, BF16), 0x80000000) == (0, 0)
    assert dot.vdpbf16ps([0x8000] * 2, [BF16.one_code] * 2, (BF16, BF16), 0x80000000) == (0x80000000, 0)
    assert dot.tensor_core(minus, one, PAIR, "A100", c=0x80000000) == (0, 0)


def test_nan_and_infinity_in_a_block() -> None:
    infinity, nan, signalling = F16.inf_code, F16.nan_code | 3, F16.inf_code | 1
    one, zero = F16.one_code, 0

    def result(a: list[int], b: list[int], c: int | None = None, **options: object) -> tuple[int, int]:
        return dot.exact(a, b, PAIR, F16, c, **options)

    assert result([infinity, one], [one, one]) == (infinity, 0)
    assert result([infinity, infinity], [one, one | F16.sign_bit]) == (F16.nan_code, 16)
    assert result([one], [one | F16.sign_bit], infinity) == (infinity, 0)
    assert result([infinity, one], [zero, one]) == (F16.nan_code, 16)
    assert result([nan, one], [one, one], nan="x86") == (F16.nan_code | F16.sign_bit, 0)
    assert result([signalling, one], [one, one]) == (F16.nan_code, 16)
    assert result([nan, infinity], [one, zero], nan="x86") == (F16.nan_code | F16.sign_bit, 16)
    assert result([nan, infinity], [one, zero], nan="x86_fma3") == (F16.nan_code | F16.sign_bit, 0)
    assert result([nan, infinity, infinity], [one, one, one | F16.sign_bit]) == (F16.nan_code, 0)
    assert result([nan], [one], nan="ipu") == (F16.nan_code, 16)
    assert dot.tensor_core([nan], [one], PAIR, "V100") == (0x7FFFFFFF, 0)
    assert dot.tensor_core([infinity], [zero], PAIR, "H100", output="float16") == (0x7FFF, 16)


def test_overflow_of_a_truncated_sum() -> None:
    """Truncation stays finite up to 2^128, and is infinite from there; nearest even in half as IEEE has it."""
    big = BF16.max_code
    assert dot.tensor_core([big, big], [BF16.one_code] * 2, (BF16, BF16), "A100", "bfloat16") == (0x7F800000, 5)
    assert dot.tensor_core([F16.max_code], [F16.one_code], PAIR, "A100", output="float16", c=0x4BFF) == (0x7BFF, 1)
    assert dot.tensor_core([F16.max_code], [F16.one_code], PAIR, "A100", output="float16", c=0x4C00) == (0x7C00, 5)
