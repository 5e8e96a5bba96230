"""The loops of units against the plain one: the same codes and flags, whatever the operands; some against exact fractions."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import faster
import numpy as np
import pytest
from unit_cases import (
    BF16,
    E2M1,
    E4M3,
    E4M3Z,
    E5M2,
    E5M6,
    HALF,
    SINGLE,
    drawn,
)

from softfloat import Format, bits
from softfloat.accumulators import (
    Accumulator,
    Alignment,
    Reduction,
    Stage,
    amd_mfma,
    amp,
    amx,
    arm_bfdot,
    arm_fdot,
    arm_fmmla,
    arm_fp8dot,
    chunked,
    compensated,
    exact,
    fixed_point,
    fma,
    rvbna,
    tensor_core,
)
from softfloat.engine import available, block_units, programs, segments, small, stacks, tiling, unit_ways
from softfloat.reference import dots as oracle_of


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Which calls of a unit's loop did what they were asked, or summed its segments by others; however little work there is. Those of the short
    way count that were served."""
    monkeypatch.setattr(unit_ways, "LEAST_WORK", 0)
    found: list[bool] = []
    names = {block_units: "run", segments: "run", stacks: "run"}
    for module, name in names.items():
        run = getattr(module, name)

        def watched(*arguments: Any, run: Any = run, module: Any = module) -> Any:
            done = run(*arguments)
            way = arguments[0]
            others = module is stacks and not (isinstance(way, unit_ways.UnitWay) or way.compensates)
            if not others and (
                done is not None or module is not segments
            ):  # what is not joined may be a unit's as a whole
                found.append(done is not None)
            return done

        monkeypatch.setattr(module, name, watched)
    run_short = small._run

    def short(plan: small.Plan, *arguments: Any) -> Any:
        done = run_short(plan, *arguments)
        if done is not None and (isinstance(plan.way, unit_ways.UnitWay) or plan.way.compensates):
            found.append(True)
        return done

    monkeypatch.setattr(small, "_run", short)
    return found


def both_ways(monkeypatch: pytest.MonkeyPatch, *arguments: Any, function: Any = bits.matmul, **options: Any) -> None:
    """By a unit's loop, where there is one, and by the plain one."""
    faster.both_ways(monkeypatch, function, *arguments, **options)


@pytest.mark.parametrize("name", ["V100", "A100", "H100"])
def test_sums_that_round_to_a_positive_zero(name: str, served: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """-2^-26 as a half is +0 where a core makes all zeros so, and -0 where none but those of its grid."""
    monkeypatch.setattr(unit_ways, "LEAST_WORK", 0)
    a, b = np.zeros((9, 16), np.uint16), np.zeros((16, 17), np.uint16)
    a[:, 15], b[15] = bits.encode([-(2.0**-13), 2.0**-13], HALF)[0]
    for positive, zero in ((True, 0), (False, 0x8000)):
        codes, flags = bits.matmul(a, b, HALF, tensor_core(name, output=HALF, positive_zeros=positive))
        assert set(codes.flat) == {zero}
        assert set(flags.flat) == {3}
    assert any(served) or not all(available())


@pytest.mark.parametrize("fmt", [HALF, E5M2, E5M6, BF16], ids=str)
@pytest.mark.parametrize("method", ["kahan", "neumaier", "two_term"])
def test_sums_near_the_largest_number(
    fmt: Any, method: str, served: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compensated sums that come close to it, reach it, or overflow in a step of their own."""
    how = compensated(fmt, method)
    rng, kind = np.random.default_rng(13), how.partials
    for number in range(6):
        a = bits.encode(rng.choice([1.0, -1.0, 0.5], (12, 24)), kind)[0]
        few = kind.max_code - rng.integers(0, 3 << kind.mantissa_bits, (24, 17))
        b = np.where(rng.random(few.shape) < 0.4, few, rng.integers(0, kind.max_code, few.shape)).astype(kind.dtype)
        b[number + 1 :] = 0
        c = (kind.max_code - rng.integers(0, 4, (12, 17))).astype(kind.dtype) | rng.choice([0, kind.sign_bit], (12, 17))
        for start in (None, c.astype(kind.dtype)):
            for row in range(12):  # an overflow leaves all of a call to the plain loop
                both_ways(monkeypatch, a[row : row + 1], b, kind, how, None if start is None else start[row : row + 1])
    assert served is not None


@pytest.mark.parametrize("mode", ["exact", "aligned", "chained"])
def test_stores_that_16_random_bits_leave_open(mode: str, served: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums among small subnormal halves, which have bits below those."""
    rng, fmt = np.random.default_rng(14), Format.from_name(HALF)
    a, b = (bits.encode(rng.standard_normal(shape) * 2.0**-12, fmt)[0] for shape in ((64, 320), (320, 250)))
    both_ways(monkeypatch, a, b, fmt, amp("half", mode=mode), rounding="stochastic", seed=6)
    assert any(served) or mode == "exact" or not all(available())


def test_tiny_and_huge_operands_are_left_to_the_plain_loop(served: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    hows = (arm_bfdot(), arm_bfdot(True), amx(BF16), rvbna(4), amd_mfma("CDNA3", BF16), compensated(BF16))
    for scale in (2.0**-62, 2.0**-70, 2.0**62, 2.0**64):
        a = bits.encode(rng.standard_normal((10, 40)) * scale, BF16, overflow="saturate")[0]
        for how in hows:
            both_ways(monkeypatch, a, a.T, BF16, how)
    assert not all(served)


ORACLES: list[tuple[Accumulator, Any, tuple[Any, ...], str]] = [
    (arm_bfdot(), oracle_of.arm_bfdot, (), BF16),
    (arm_bfdot(True), oracle_of.arm_bfdot, (True,), BF16),
    (arm_fmmla(), oracle_of.arm_fmmla, (), HALF),
    (amx(BF16), oracle_of.amx, (), BF16),
    (amx(E5M2), oracle_of.amx, (), E5M2),
    (rvbna(7), oracle_of.rvbna, (7,), BF16),
    (amd_mfma("CDNA1", HALF), oracle_of.amd_mfma, ("CDNA1", 4), HALF),
    (amd_mfma("CDNA3", HALF), oracle_of.amd_mfma, ("CDNA3", 8), HALF),
    (amd_mfma("CDNA3", E4M3Z), oracle_of.amd_mfma, ("CDNA3", 16), E4M3Z),
    (arm_fp8dot(4), oracle_of.arm_fp8dot, (4, Format.from_name(SINGLE), 0, False), E4M3),
    (compensated(HALF), oracle_of.compensated, (Format.from_name(HALF), "kahan"), HALF),
]


@pytest.mark.parametrize(("how", "oracle", "parameters", "name"), ORACLES, ids=[repr(row[0]) for row in ORACLES])
def test_oracle(how: Accumulator, oracle: Any, parameters: tuple[Any, ...], name: str, served: list[bool]) -> None:
    fmt = Format.from_name(name)
    a, b = (drawn(np.random.default_rng(seed), fmt, shape, 1.0) for seed, shape in ((6, (4, 40)), (7, (40, 18))))
    codes, flags = bits.matmul(a, b, fmt, how)
    expected = [[oracle(x.tolist(), y.tolist(), (fmt, fmt), *parameters) for y in b.T] for x in a]
    assert codes.tolist() == [[x[0] for x in row] for row in expected]
    assert flags.tolist() == [[x[1] for x in row] for row in expected]
    assert any(served) or not all(available())


# -- what no description takes in ----------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[Accumulator, dict[str, Any]]] = {
    "zeros without signs": (arm_fdot(), {"keeps_zero_sign": False}),
    "a scale": (arm_fdot(), {"scale_exponent": 3}),
    "another sum of pairs": (arm_bfdot(True), {"block_sum": Stage(BF16, "nearest_even", "infinity")}),
    "blocks of three": (arm_bfdot(True), {"block": 3}),
    "a chain of its own": (amx(BF16), {"chains": 1, "segment": None, "reduction": (), "tree": True}),
    "positive zeros": (tensor_core("H100", zero_exponent=-126), {"positive_zeros": False}),
    "a limit within reach": (amd_mfma("CDNA3", HALF), {"alignment": Alignment(24, limit=3, includes_addend=False, sum=31, addend=24)}),
    "a store": (tensor_core("H100", zero_exponent=-126), {"store": Stage(HALF, "toward_zero"), "store_every": 16}),
    "another rounding of products": (amd_mfma("CDNA1", HALF), {"product": Stage(BF16, "nearest_even", "infinity")}),
    "chains": (fixed_point(20, -10), {"chains": 2}),
    "a tree": (amd_mfma("CDNA1", HALF), {"block": 1, "unsigned_zeros": False}),
    "segments": (rvbna(4, BF16), {"segments": 3}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_fields_that_change(name: str, served: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Served or not, the results are the plain loop's."""
    how, fields = CHANGES[name]
    try:
        changed = how.replace(**fields)
    except (ValueError, TypeError):
        return
    rng = np.random.default_rng(8)
    fmt = changed.inputs[0] if changed.inputs else Format.from_name(HALF)
    a, b = drawn(rng, fmt, (9, 48), 1.0), drawn(rng, fmt, (48, 9), 1.0)
    both_ways(monkeypatch, a, b, fmt, changed)
    both_ways(monkeypatch, a, b, fmt, changed, drawn(rng, changed.partials, (9, 9), 1.0))
    assert served is not None


def test_stochastic_sums_are_left_to_the_plain_loop(served: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    a = drawn(np.random.default_rng(9), Format.from_name(HALF), (9, 48), 1.0)
    for how in (arm_fdot(), compensated(HALF), fma(HALF)):
        both_ways(monkeypatch, a, a.T, HALF, how, rounding="stochastic", seed=3)
    assert not any(served)


# -- operands with scales ------------------------------------------------------------------------------------------------

BLOCKS = {
    "mxfp8_e4m3": tensor_core("B200", E4M3, instruction="mxf8f6f4"),
    "mxfp8_e5m2": tensor_core("B200", E5M2, instruction="mxf8f6f4"),
    "mxfp4": tensor_core("B200", E2M1, instruction="mxf4nvf4"),
    "nvfp4": tensor_core("B200", E2M1, instruction="mxf4nvf4"),
    "mxfp6_e2m3": exact(SINGLE).replace(block=32),
    "mxfp8": exact(SINGLE).replace(block=32),
}


@pytest.mark.parametrize("scale", [1.0, 2.0**-60])
@pytest.mark.parametrize("name", BLOCKS)
def test_block_formats(name: str, scale: float, served: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Scales of every size; zeros, whole blocks of them too."""
    how = BLOCKS[name]
    rng = np.random.default_rng(10)
    block_format = {"mxfp8": "mxfp8_e4m3"}.get(name, name)
    for length, spread in ((32, 0), (160, 3), (70, 12)):
        x, y = (rng.standard_normal(shape) * scale for shape in ((9, length), (length, 17)))
        x *= np.exp2(rng.integers(-spread, spread + 1, (9, -(-length // 16))).repeat(16, axis=1)[:, :length])
        x[rng.random(x.shape) < 0.1] = 0.0
        x[4, : length // 2] = 0.0
        a, b = (bits.quantize(v.astype(np.float32), block_format, axis=axis)[0] for v, axis in ((x, 1), (y, 0)))
        both_ways(monkeypatch, a, b, how, function=bits.matmul_blocks)
        c = rng.standard_normal((9, 17)).astype(np.float32).view(np.uint32)
        both_ways(monkeypatch, a, b, how, c, function=bits.matmul_blocks)
    assert any(served) or scale != 1.0


def test_extremes_of_registers_in_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of 48 bits, the least and the greatest of which float32 does not hold, though it holds results."""
    how = fixed_point(48, -24).replace(segments=2, reduction=(Reduction(Stage(SINGLE)),))
    rng, fmt = np.random.default_rng(33), Format.from_name(HALF)
    a, b = drawn(rng, fmt, (70, 64), 8.0), drawn(rng, fmt, (64, 70), 8.0)
    both_ways(monkeypatch, a, b, fmt, how, count=True)
    both_ways(monkeypatch, a, b.T, fmt, how, function=bits.vecdot, count=True)
    largest = bits.matmul(a, b, fmt, how, count=True)[2].largest
    assert np.any(largest.astype(np.float32) != largest)


STACKS = {
    "register": fixed_point(48, -24),
    "segments of halves": chunked(8, HALF, SINGLE),
    "segments of a unit": chunked(16, exact(SINGLE).replace(block=4), SINGLE),
    "pairs": amp(SINGLE),
}


@pytest.mark.parametrize("rounding", ["nearest_even", "stochastic"])
@pytest.mark.parametrize("how", STACKS.values(), ids=STACKS)
def test_many_products(how: Accumulator, rounding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of units that have no loop for codes alone, and of segments: random numbers are those of each one's outputs."""
    rng, fmt, options = np.random.default_rng(34), Format.from_name(HALF), {"rounding": rounding, "seed": 5}
    a, b = drawn(rng, fmt, (40, 9, 50), 1.0), drawn(rng, fmt, (40, 50, 7), 1.0)
    c = drawn(rng, how.partials, (40, 9, 7), 1.0)
    monkeypatch.setattr(stacks, "ROOM", 1)  # bytes of products done at a time
    both_ways(monkeypatch, a, b, fmt, how, **options)
    both_ways(monkeypatch, a, b, fmt, how, c, **options)


@faster.SERVED
def test_small_products_go_by_the_loop_once_they_were_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a larger one was: the loop is compiled then. The bits are the same."""
    random = np.random.default_rng(5)
    a, b = (bits.quantize(np.float32(random.normal(size=(32, 32))), "mxfp8_e4m3", axis=axis)[0] for axis in (1, 0))
    how = tensor_core("B200", input=E4M3, instruction="mxf8f6f4")
    found: list[bool] = []
    run = block_units.run

    def watched(*arguments: Any) -> Any:
        done = run(*arguments)
        found.append(done is not None)
        return done

    monkeypatch.setattr(block_units, "run", watched)
    monkeypatch.setattr(unit_ways, "_DONE", {})
    monkeypatch.setattr(programs, "_MADE", set())
    monkeypatch.setattr(unit_ways, "LEAST_IN_ALL", 3 * 32**3 + 1)
    monkeypatch.setattr(unit_ways, "WORTH_LOOPS", unit_ways.LEAST_WORK)
    monkeypatch.setattr(programs, "plain_loop", lambda: SimpleNamespace(is_there=lambda products: True))
    results = [bits.matmul_blocks(a, b, how) for _ in range(4)]
    assert not found[0]
    assert found[3]
    monkeypatch.setattr(programs, "plain_loop", lambda: SimpleNamespace(is_there=lambda products: False))
    monkeypatch.setattr(unit_ways, "_DONE", {})
    results.append(bits.matmul_blocks(a, b, how))
    assert found[-1]  # the plain loop would have to be compiled
    monkeypatch.setattr(programs, "plain_loop", lambda: SimpleNamespace(is_there=lambda products: True))
    monkeypatch.setattr(programs, "_MADE", set())
    for codes, flags in results[1:]:
        np.testing.assert_array_equal(codes, results[0][0])
        np.testing.assert_array_equal(flags, results[0][1])
    monkeypatch.setattr(unit_ways, "_DONE", {})
    bits.matmul_blocks(
        *(bits.quantize(np.ones((64, 64), np.float32), "mxfp8_e4m3", axis=axis)[0] for axis in (1, 0)), how
    )
    bits.matmul_blocks(a, b, how)
    assert found[-2:] == [True, True]


H100_F8, B200_F8 = (tensor_core(chip, input=E4M3, output="float32") for chip in ("H100", "B200"))
SCALED_F8 = tensor_core("B200", input=E4M3, instruction="mxf8f6f4")


@pytest.mark.parametrize(
    ("how", "formats"),
    [
        *((how, pair) for how in (H100_F8, B200_F8, SCALED_F8) for pair in ((E4M3, E4M3), (E5M2, E4M3))),
        (tensor_core("H100", input=E4M3, output="float32", exponent_floor=-12), (E4M3, E4M3)),
        *((tensor_core(chip), (HALF, HALF)) for chip in ("V100", "A100", "H100")),
        (tensor_core("B200", input=E2M1, instruction="mxf4nvf4"), (E2M1, E2M1)),
    ],
    ids=str,
)
def test_terms_that_float32_holds(
    how: Accumulator, formats: tuple[str, str], served: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every finite code, sums that cancel to their last bits, zeros after them, operands so small that the least power of two sets grids, and sums
    of the largest."""
    seen, kept = [], unit_ways.in_single
    monkeypatch.setattr(unit_ways, "in_single", lambda *given: seen.append(kept(*given)) or seen[-1])
    rng = np.random.default_rng(21)
    kinds = [Format.from_name(name) for name in formats]
    every = [np.arange(1 << fmt.bits, dtype=fmt.dtype) for fmt in kinds]
    every = [codes[np.isfinite(bits.decode(codes, fmt))] for codes, fmt in zip(every, kinds, strict=True)]
    small = [codes[np.abs(bits.decode(codes, fmt)) < 4 * fmt.tiny] for codes, fmt in zip(every, kinds, strict=True)]
    large = [codes[bits.decode(codes, fmt) > 0.9 * fmt.max] for codes, fmt in zip(every, kinds, strict=True)]
    for codes in (every, small, large):
        a, b = (rng.choice(x, size) for x, size in zip(codes, ((19, 160), (160, 35)), strict=True))
        a[3:9, 32:64] = a[3:9, :32] ^ kinds[0].sign_bit  # products of the first block once more, with the other sign
        b[32:64] = b[:32]
        a[:12, 96:128], b[128:, :9] = 0, kinds[1].sign_bit
        both_ways(monkeypatch, a, b, formats, how, out_format="float32")
        both_ways(monkeypatch, a, b, formats, how, count=True, out_format="float32")
        both_ways(monkeypatch, a[np.newaxis].repeat(3, 0), b, formats, how, out_format="float32")
    assert any(way is not None and way.unit.single for way in seen) or not all(available())


@pytest.fixture
def in_float32(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each product that a unit's way did was in float32."""
    seen = list[bool]()

    def watched(run: Any, way: Any, *given: Any) -> Any:
        done = run(way, *given)
        seen.extend([way.unit.single] if done is not None else [])
        return done

    monkeypatch.setattr(stacks, "in_pieces", partial(watched, stacks.in_pieces))
    monkeypatch.setattr(block_units, "summed", partial(watched, block_units.summed))
    return seen


@pytest.mark.parametrize("scales", [(0, 127), (0, 9), (40, 70), (110, 127)], ids=str)
@pytest.mark.parametrize(("fmt", "length"), [("nvfp4", 304), ("nvfp4", 48), ("mxfp4", 160)])
def test_sums_of_products_that_float32_holds(
    fmt: str,
    length: int,
    scales: tuple[int, int],
    in_float32: list[bool],
    served: list[bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Terms of 16 products, with scales far apart, where some are cut, and scales of zero and subnormal ones."""
    how, rng, blocks = tensor_core("B200", input=E2M1, instruction="mxf4nvf4"), np.random.default_rng(26), []
    size = 16 if fmt == "nvfp4" else 32
    for shape, axis in (((70, length), 1), ((length, 37), 0)):
        grid = (shape[0] // size ** (1 - axis), shape[1] // size**axis)
        own = rng.integers(*scales, grid).astype(np.uint8) + np.uint8(0 if fmt == "nvfp4" else 64)
        blocks.append(bits.BlockCodes(rng.integers(0, 16, shape).astype(np.uint8), own, fmt, axis=axis))
    both_ways(monkeypatch, *blocks, how, function=bits.matmul_blocks, out_format="float32")
    fits = fmt == "nvfp4" or scales == (40, 70)  # others are too near the ends of float32
    assert (True in in_float32) == fits or not all(available())


@pytest.mark.parametrize("length", [160, 147])
@pytest.mark.parametrize("exponent", [0, -17, -60, -118, 30])
def test_scaled_terms_that_float32_holds(
    length: int, exponent: int, in_float32: list[bool], served: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of blocks with scales, the last one short or not; those of -60 leave too little above the subnormals of float32, and of 30 too much."""
    rng = np.random.default_rng(22)
    for fmt in ("mxfp8_e4m3", "mxfp8_e5m2"):
        x, y = (
            np.float32(rng.normal(size=shape) * 8.0 ** rng.normal(size=shape)) for shape in ((70, length), (length, 72))
        )
        x[5:9, 64:128], y[:, 7], y[32:64] = 0.0, 0.0, y[:32]
        a, b = (bits.quantize(np.ldexp(v, exponent), fmt, axis=axis)[0] for v, axis in ((x, -1), (y, -2)))
        both_ways(monkeypatch, a, b, SCALED_F8, function=bits.matmul_blocks, out_format="float32")
    assert (True in in_float32) == (exponent in (0, -17)) or not all(available())


def test_zeros_whose_power_of_two_is_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A zero among numbers of 2^-70 counts as 2^-60, times 2^45."""
    pair = tuple(Format(f"near{n}", exponent_bits=3, mantissa_bits=10, bias=3 - n, nan="none") for n in (-70, 41))
    how = Accumulator(name="cut", running=Stage("float32", "toward_zero"), block=4, alignment=Alignment(25, zeros=-60))
    rng = np.random.default_rng(24)
    a, b = (rng.integers(0, 1 << 14, shape, np.uint16) for shape in ((40, 64), (64, 40)))
    a[rng.random(a.shape) < 0.3] = 0
    both_ways(monkeypatch, a, b, pair, how, out_format="float32")


@pytest.mark.parametrize("near", [(100, -100), (-100, 100)], ids=str)
def test_large_numbers_times_zeros_of_small_ones(near: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A number of 2^100 times the least grid's reciprocal would be infinite, and NaN times zero."""
    pair = tuple(Format(f"near{n}", exponent_bits=3, mantissa_bits=2, bias=3 - n, nan="none") for n in near)
    how = H100_F8.replace(inputs=())
    rng = np.random.default_rng(23)
    a, b = rng.integers(0, 64, (70, 64), np.uint8), rng.integers(0, 64, (64, 72), np.uint8)
    a[::2], b[:, ::3] = 0, 0
    both_ways(monkeypatch, a, b, pair, how, out_format="float32")


@pytest.mark.parametrize(
    ("how", "fmt"),
    [
        (tensor_core("H100", BF16), BF16),
        (tensor_core("H100", HALF, HALF), HALF),
        (tensor_core("Ada", E4M3, HALF), E4M3),
    ],
    ids=str,
)
def test_terms_that_float32_does_not_hold(how: Accumulator, fmt: str) -> None:
    """Products of numbers so small; a store is rounded from float64."""
    planned = bits.sums.products.Contraction((Format.from_name(fmt),) * 2, how, None, False, {}).program(64)
    way = unit_ways.choose(planned)
    quicker = None if way is None else unit_ways.in_single(way, planned)
    assert quicker is None or not tiling.always_fits(quicker, planned)
