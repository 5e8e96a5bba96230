"""Unknown units are found out by their answers: every preset by its own, hardware and other people's loops by theirs."""

from __future__ import annotations

import dataclasses
import math
import re
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Run

import softfloat
from softfloat import ROSTER, bits, progress
from softfloat.accumulators import (
    PRESETS,
    Accumulator,
    Reduction,
    Stage,
    amp,
    chunked,
    exact,
    fma,
    mul_add,
    pairwise,
    tensor_core,
    vdpbf16ps,
)
from softfloat.accumulators.roster import ARRAYS
from softfloat.reference import dots
from softfloat.testing import UnitError, command_unit, identify, presets_for, unit_of
from softfloat.testing.hardware.features import features
from softfloat.testing.hardware.table import instructions
from softfloat.testing.identification.units import MAXIMUM_CALLS, Candidate, Identification

pytestmark = pytest.mark.usefixtures("by_one_loop")

F16, BF16, F32 = (ROSTER[name] for name in ("float16", "bfloat16", "float32"))


def identified(
    how: Accumulator, fmt: Any, length: int, presets: list[Accumulator] | None = None, **options: Any
) -> Identification:
    return identify(unit_of(how, fmt, how.partials, **options), fmt, how.partials, length, presets=presets)


def names(found: Identification) -> list[str]:
    return [str(x) for x in found.fits]


# -- every preset ----------------------------------------------------------------------------------------------------

PAIRS = (
    ("float16", "float32"),
    ("float16", "float16"),
    ("bfloat16", "float32"),
    ("tfloat32", "float32"),
    ("float8_e4m3fn", "float32"),
    ("float8_e4m3fn", "float16"),
    ("float8_e5m2", "float32"),
    ("float8_e4m3fnuz", "float16"),
    ("float32", "float32"),
)
"""Operands and addend: what hardware takes."""
MORE = (
    ("float8_e5m2", "float8_e5m2"),
    ("float8_e4m3fn", "float8_e4m3fn"),
    ("bfloat16", "bfloat16"),
    ("float8_e5m2fnuz", "float16"),
    ("float6_e3m2fn", "float16"),
)


def check_recovery(fmt: str, partials: str, length: int) -> list[set[str]]:
    """Each preset is among what fits its own answers; those found together are the same on rows nobody asked for."""
    presets = presets_for(fmt, partials, length)
    classes: list[set[str]] = []
    for how in presets:
        if any(str(Candidate(how)) in known for known in classes):
            continue
        found = identified(how, fmt, length)
        assert how in [x.accumulator for x in found.fits], f"{how.name} was taken for {names(found)}\n{found}"
        assert found.verdict == "preset"
        assert found.calls <= MAXIMUM_CALLS
        members = set(names(found))
        assert not any(members & known for known in classes), f"{how.name}: {members}"
        classes.append(members)
        random = np.random.default_rng(length)
        shape = 400, length
        a, b = (bits.encode(random.standard_normal(shape), fmt)[0] for _ in range(2))
        c = bits.encode(random.standard_normal(400), partials)[0]
        results = [bits.vecdot(a, b, fmt, x.accumulator, c, out_format=partials, **x.options)[0] for x in found.fits]
        assert all(np.array_equal(x, results[0]) for x in results)
    return classes


@pytest.mark.parametrize(("fmt", "partials"), PAIRS[::4])
def test_every_preset_is_recovered(fmt: str, partials: str) -> None:
    check_recovery(fmt, partials, 16)


@pytest.mark.exhaustive
@pytest.mark.parametrize("length", [16, 33, 64])
@pytest.mark.parametrize(("fmt", "partials"), PAIRS + MORE)
def test_every_preset_is_recovered_at_length(fmt: str, partials: str, length: int) -> None:
    check_recovery(fmt, partials, length)


@pytest.mark.parametrize("name", PRESETS)
def test_the_example_of_every_preset(name: str) -> None:
    """As the command line takes it; chunks of 64 need more than 64 products to be seen."""
    run = Run("identify", "--preset", PRESETS[name].example, "--length", "72" if name == "chunked" else "24", "--json")
    assert run.status == 0
    document = run.document
    assert document["verdict"] == "preset"
    how = {x["accumulator"] for x in document["fits"]}
    examples = {
        "fma": "fma('float16')",
        "mul_add": "mul_add('float16')",
        "amp": "amp('float16')",
        "slic": "slic('float16')",
        "vdpbf16ps": "vdpbf16ps()",
        "tensor_core": "tensor_core('H100', input='float16', output='float32')",
        "chunked": "chunked(64, fma('float16'), 'float32')",
        "pairwise": "pairwise('float16')",
        "exact": "exact('float32')",
    }
    examples |= {
        x: PRESETS[x].example for x in ("vdpphps", "zvfbfwma", "arm_bfdot", "arm_bfmmla", "arm_bfmlal", "arm_fp8dot")
    }
    examples |= {x: PRESETS[x].example for x in ("amx", "amd_mfma")} | {"rvbna": "rvbna(4, 'bfloat16')"}
    examples |= {x: PRESETS[x].example for x in ("compensated", "fixed_point", "arm_fdot", "arm_fmmla")}
    examples |= {array.name: f"{array.name}({array.inputs[0]!r})" for array in ARRAYS}
    examples["systolic"] = examples["gaudi_mme"]  # which is taken for one column of it
    examples["torch_mm"] = examples["tensor_core"].replace("float16", "bfloat16")  # whose sum it is
    assert examples[name] in how
    assert document["calls"] <= MAXIMUM_CALLS


def test_what_cannot_be_told_apart_comes_together() -> None:
    def cores(*architectures: str) -> set[str]:
        both = (None, "mma.sync")
        return {tensor_core(x, instruction=way).name for x in architectures for way in both}

    assert set(names(identified(tensor_core("A2"), "float16", 32))) == cores("A100", "A2", "A30", "Ada", "L40S", "T4")
    assert set(names(identified(tensor_core("H100"), "float16", 32))) == cores("H100", "H200", "B200", "RTX Blackwell")
    assert set(names(identified(tensor_core("V100"), "float16", 32))) == cores("V100")
    half = names(identified(amp("half"), "float16", 32))
    assert {"amp('float16')", "slic('float16')"} <= set(half)  # a window of four is a pass of four phases
    assert "slic('float16', window=3)" not in half


# -- properties ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "fmt", "length", "expected"),
    [
        (
            tensor_core("H100"),
            "float16",
            32,
            {
                "block": "16 products",
                "alignment": "cut to 25 fraction bits below the largest exponent",
                "rounding of a sum": "toward_zero",
                "bits of a sum": "23 after the leading one",
                "products": "exact",
                "NaN": "0x7fffffff",
                "subnormal operands": "kept",
                "repeatable": "yes",
            },
        ),
        (tensor_core("V100"), "float16", 16, {"block": "4 products", "bits that survive": "23"}),
        (tensor_core("A100"), "float16", 16, {"block": "8 products", "bits that survive": "24, then 23"}),
        (
            tensor_core("Ada", "float8_e4m3fn"),
            "float8_e4m3fn",
            32,
            {"block": "16 products", "bits of a sum": "13 after the leading one", "rounding of a sum": "toward_zero"},
        ),
        (
            amp("half"),
            "float16",
            64,
            {
                "block": "4 products",
                "alignment": "none: a block is added exactly",
                "partials in memory": "10 bits, every 16 products",
                "bits that survive": "all, then 23, then 10",
                "rounding of a sum": "nearest_even",
            },
        ),
        (
            amp("half", mode="aligned"),
            "float16",
            16,
            {"alignment": "cut to 31 fraction bits below the largest exponent", "block": "4 products"},
        ),
        (
            mul_add("float16"),
            "float16",
            8,
            {"multiply-add": "unfused: products are cut or rounded to 10 bits first", "block": "one product"},
        ),
        (fma("float16"), "float16", 8, {"multiply-add": "fused: one rounding", "products": "exact"}),
        (
            vdpbf16ps(),
            "bfloat16",
            16,
            {
                "order of summation": "products in the order 1, 0",
                "subnormal operands": "flushed",
                "subnormal results": "flushed",
                "rounding of a sum": "nearest_even",
                "overflow": "infinity",
            },
        ),
        (pairwise("float16"), "float16", 16, {"order of summation": "pairs, pairs of pairs ..."}),
        (
            fma("float16").replace(name="x", chains=3),
            "float16",
            16,
            {"order of summation": "3 interleaved chains, added in order"},
        ),
        (
            chunked(4, "float16", "float32"),
            "float16",
            16,
            {"order of summation": "chunks of 4, their sums added in order"},
        ),
        (
            exact("float32"),
            "float16",
            16,
            {"order of summation": "everything at once, exactly", "bits that survive": "all"},
        ),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_properties(how: Accumulator, fmt: str, length: int, expected: dict[str, str]) -> None:
    found = identified(how, fmt, length)
    assert {name: found[name] for name in expected} == expected
    assert all(x.evidence for x in found.properties)


RIVALS = [fma("float16"), mul_add("float16"), pairwise("float16"), exact("float16")]
"""Presets that a sum in order is held beside where what matters is a setting: each compiles loops of its own for each of them."""


@pytest.mark.parametrize(
    ("mode", "presets"),
    [
        ("toward_positive", None),
        *(
            (mode, RIVALS)
            for mode in ("nearest_away", "toward_zero", "toward_negative", "to_odd", "nearest_zero", "nearest_up")
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "all" if x is None else "few",
)
def test_rounding_modes(mode: str, presets: list[Accumulator] | None) -> None:
    found = identified(fma("float16"), "float16", 8, presets, rounding=mode)
    assert found["rounding of a sum"] == mode
    assert names(found) == [f"fma('float16') with rounding={mode!r}"]


def test_other_settings() -> None:
    found = identified(fma("float16"), "float16", 8, RIVALS, daz=True, ftz=True, overflow="saturate")
    assert names(found) == ["fma('float16') with overflow='saturate', daz=True, ftz=True"]
    found = identified(mul_add("float16"), "float16", 8, RIVALS, nan="x86", overflow="nan")
    assert dict(found.fits[0].options) == {"overflow": "nan", "nan": "x86"}


# -- what is no preset -----------------------------------------------------------------------------------------------

H100 = tensor_core("H100")
UNUSUAL = [
    (H100.replace(name="22 fraction bits", fraction_bits=22), "float16", 32),
    (H100.replace(name="blocks of 12", block=12, store=None), "float16", 36),
    (amp("half").replace(name="stores after 24", store_every=24), "float16", 64),
    (fma("bfloat16").replace(name="an order", order=(3, 1, 0, 2)), "bfloat16", 16),
    (fma("float16").replace(name="5 chains", chains=5), "float16", 24),
    (Accumulator(name="product to bfloat16", running=Stage("float32"), product=Stage("bfloat16")), "float16", 12),
    (chunked(5, "float16", "float32").replace(name="chunks of 5"), "float16", 15),
    (
        Accumulator(
            name="blocks in chunks",
            running=Stage("float32"),
            block=4,
            segment=8,
            reduction=(Reduction(Stage("float32")),),
        ),
        "float16",
        32,
    ),
]


@pytest.mark.parametrize(("how", "fmt", "length"), UNUSUAL, ids=lambda x: getattr(x, "name", None))
def test_an_unusual_setting_is_described(how: Accumulator, fmt: str, length: int) -> None:
    found = identified(how, fmt, length)
    assert found.verdict == "description"
    described = found.accumulator
    assert described is not None
    assert not any(x.preset for x in found.fits)
    words = {"Accumulator": partial(Accumulator, name=described.name), "Stage": Stage, "Reduction": Reduction}
    assert eval(described.name, words) == described  # the name is the call that makes it
    random = np.random.default_rng(3)
    a, b = (bits.encode(random.standard_normal((500, length)), fmt)[0] for _ in range(2))
    c = bits.encode(random.standard_normal(500), how.partials)[0]
    expected = unit_of(how, fmt, how.partials)(a, b, c)
    np.testing.assert_array_equal(unit_of(described, fmt, how.partials)(a, b, c), expected)


@pytest.mark.parametrize(
    ("how", "fmt"),
    [
        (fma("float16"), "float16"),
        (tensor_core("H100"), "float16"),
        (tensor_core("H100", "float8_e4m3fn"), "float8_e4m3fn"),
        (tensor_core("A100", "tfloat32"), "tfloat32"),
        (amp("half"), "float16"),
        (vdpbf16ps(), "bfloat16"),
        (exact("float32"), "bfloat16"),
        (pairwise("bfloat16"), "bfloat16"),
    ],
    ids=str,
)
def test_measurements_alone_describe_presets(how: Accumulator, fmt: str) -> None:
    """With an empty table of presets."""
    found = identified(how, fmt, 40, presets=[])
    assert found.verdict == "description", str(found)


def broken_device(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """An H100 whose lowest bit flips where the fourth product has a factor of magnitude 1 to 1.25."""
    d = unit_of(H100, "float16")(a, b, c)
    return np.where((a[:, 3] & 0x7FFF) >> 8 == 0x3C, d ^ 1, d)


def compensated(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Kahan's sum in single."""
    total = c.view(np.float32).copy()
    error = np.zeros_like(total)
    with np.errstate(all="ignore"):
        for k in range(a.shape[1]):
            product = a[:, k].view(np.float16).astype(np.float32) * b[:, k].view(np.float16).astype(np.float32)
            step = product - error
            after = total + step
            error = (after - total) - step
            total = after
    return np.where(np.isnan(total), 0x7FC00000, total.view(np.uint32))


class Stochastic:
    """Rounds differently each time it is asked."""

    calls = 0

    def __call__(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        self.calls += 1
        seeded = {"rounding": "stochastic", "seed": self.calls}
        codes: np.ndarray = bits.vecdot(a, b, "float16", fma("float32"), c, **seeded)[0]
        return codes


def test_a_compensated_sum_is_found() -> None:
    found = identify(compensated, "float16", "float32", 20)
    assert found.verdict == "preset"
    assert [candidate.accumulator for candidate in found.fits] == [
        softfloat.accumulators.compensated("float32", "kahan")
    ]


@pytest.mark.parametrize("unit", [broken_device, Stochastic()], ids=["broken", "stochastic"])
def test_none_fits(unit: Callable[..., np.ndarray]) -> None:
    found = identify(unit, "float16", "float32", 20)
    assert found.verdict == "none fits"
    assert found.fits == ()
    assert found.accumulator is None
    assert found.nearest
    best = found.nearest[0]
    assert 0 < best.wrong <= best.rows == found.rows
    example = best.examples[0]
    a, b = ([int(x, 16) for x in example[name]] for name in "ab")
    code, _ = bits.vecdot(a, b, "float16", best.candidate.accumulator, int(example["c"], 16), **best.candidate.options)
    assert hex(int(code)) == example["candidate"] != example["unit"]
    assert found["repeatable"] == ("no" if isinstance(unit, Stochastic) else "yes")


def other_nans(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Right in every number; its NaNs carry the number of the row."""
    codes = unit_of(H100, "float16")(a, b, c)
    return np.where(codes == 0x7FFFFFFF, 0x7FC00000 + np.arange(len(c)) % 99, codes)


def test_nans_are_compared_as_asked() -> None:
    found = identify(other_nans, "float16", "float32", 32)
    assert (found.verdict, found.nan, found["repeatable"]) == ("preset", "any", "yes, but for codes of NaNs")
    assert "tensor_core('H100', input='float16', output='float32')" in names(found)
    assert "what fits gives other codes" in next(x.evidence for x in found.properties if x.name == "NaN")
    same = unit_of(H100, "float16")
    assert identify(same, "float16", "float32", 32).nan == "payload"
    strict = identify(other_nans, "float16", "float32", 32, nan="payload")
    assert (strict.verdict, strict.nan, strict["repeatable"]) == ("none fits", "payload", "yes, but for codes of NaNs")
    best = strict.nearest[0]
    assert best.candidate.accumulator.name.startswith("tensor_core")
    assert best.wrong_values == 0 < best.wrong
    for nan, code in (("canonical", 0x7FC00000), ("any", 0x7FA00000)):
        one = partial(lambda code, *rows: np.where(same(*rows) == 0x7FFFFFFF, code, same(*rows)), code)
        verdict = "preset" if nan == "canonical" else "none fits"  # a signalling NaN is no result
        assert identify(one, "float16", "float32", 32, nan=nan).verdict == verdict
        assert identify(one, "float16", "float32", 32, presets=[H100], nan="payload").verdict != "preset"
    with pytest.raises(ValueError, match="nan must be one of 'any', 'canonical', 'payload', got 'some'"):
        identify(same, "float16", "float32", 32, nan="some")


def short_calls_have_other_nans(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """As vector code does whose last rows, fewer than a vector, go another way: which NaN comes hangs on the place of a row."""
    codes = unit_of(fma("float32"), "float16", nan="x86")(a, b, c)
    return np.where(bits.isnan(codes, "float32") & (len(c) < 256), codes ^ 5, codes)


def test_nans_do_not_count_when_rows_are_asked_again() -> None:
    """Until then their codes are those of x86, to the bit."""
    found = identify(short_calls_have_other_nans, "float16", "float32", 20, presets=[fma("float32")])
    assert (found.verdict, found.nan, found["repeatable"]) == ("preset", "any", "yes, but for codes of NaNs")
    evidence = next(x.evidence for x in found.properties if x.name == "repeatable")
    assert re.fullmatch(r"\d+ rows asked again, beside other rows: \d+ NaNs have other codes", evidence)


def fixed_point(place: int) -> Callable[..., np.ndarray]:
    """A unit that adds everything exactly and cuts the sum at a fixed place."""

    def unit(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        x, y, addend = (bits.decode(v, fmt) for v, fmt in ((a, "float16"), (b, "float16"), (c, "float32")))
        with np.errstate(all="ignore"):
            terms = np.concatenate([x * y, addend[:, None].astype(np.float64)], axis=1)
            sums = [math.fsum(row) if np.isfinite(row).all() else row.sum() for row in terms]
            cut = np.trunc(np.ldexp(sums, -place))
            return bits.encode(np.ldexp(cut, place), "float32", rounding="toward_zero")[0]

    return unit


def test_what_random_rows_contradict_is_not_said() -> None:
    found = identify(fixed_point(-24), "float16", "float32", 16)
    assert found.verdict == "none fits"
    for name in ("bits that survive", "order of summation", "block", "alignment", "multiply-add"):
        assert found[name] == "unclear", name
    text = str(found)
    for claim in ("nothing is ever lost", "exactly", "nothing is lost", "one rounding", "rounded once"):
        assert claim not in text
    assert "random rows contradict what the probes show" in text
    found = identify(unit_of(exact("float32"), "float16"), "float16", "float32", 16)
    assert "nothing is ever lost" in str(found)
    assert "unclear" not in str(found)


# -- units that are not ours -----------------------------------------------------------------------------------------


def test_the_cpus_own_instruction() -> None:
    lacking = features().lacks(("AVX512_BF16",))
    if lacking:
        pytest.skip(f"this machine has no {', '.join(lacking)}")
    from softfloat.testing.hardware.instructions import assemble

    row = next(x for x in instructions() if x.name == "VDPBF16PS")
    assert row.code is not None
    instruction = assemble(row.code("nearest_even"))

    def unit(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        for pair in range(0, a.shape[1], 2):
            words = [np.ascontiguousarray(x[:, pair : pair + 2]).view(np.uint32).reshape(-1) for x in (a, b)]
            c, _ = instruction.whole((c, *words))
        return c

    assert names(identify(unit, "bfloat16", "float32", 16)) == ["vdpbf16ps()"]


def test_a_numpy_loop() -> None:
    def unit(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        x, y, total = (v.view(np.float16) for v in (a, b, c))
        with np.errstate(all="ignore"):
            for k in range(a.shape[1]):
                total = total + x[:, k] * y[:, k]
        return np.where(np.isnan(total), 0x7E00, total.view(np.uint16))

    assert names(identify(unit, "float16", "float16", 12)) == ["mul_add('float16')"]


@pytest.mark.parametrize(
    ("fmt", "partials", "oracle", "expected"),
    [
        (F16, F16, lambda a, b, pair, c: dots.fma(a, b, pair, F16, c=c), "fma('float16')"),
        (
            F16,
            F32,
            lambda a, b, pair, c: dots.tensor_core(a, b, pair, "V100", "float16", "float32", None, c=c),
            "tensor_core('V100', input='float16', output='float32')",
        ),
        (BF16, F32, lambda a, b, pair, c: dots.vdpbf16ps(a, b, pair, c=c), "vdpbf16ps()"),
    ],
    ids=["fma", "V100", "vdpbf16ps"],
)
def test_the_oracles(fmt: softfloat.Format, partials: softfloat.Format, oracle: Any, expected: str) -> None:
    """Units that share no arithmetic with the candidates."""

    def unit(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[int]:
        return [oracle(x, y, (fmt, fmt), z)[0] for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)]

    assert expected in names(identify(unit, fmt, partials, 6))


# -- how a unit is asked ---------------------------------------------------------------------------------------------


def test_calls_and_rows_are_counted_and_bounded() -> None:
    asked: list[tuple] = []
    inner = unit_of(fma("float32"), ("float8_e5m2", "float16"))

    def unit(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        asked.append((a.dtype, b.dtype, c.dtype, a.shape, b.shape, c.shape))
        a[...] = 0 if len(asked) > 99 else a  # what it is handed is its own
        return inner(a, b, c)

    found = identify(unit, ("float8_e5m2", "float16"), "float32", 10)
    assert found.verdict == "preset"
    assert found.calls == len(asked) <= MAXIMUM_CALLS
    assert found.rows == sum(shape[0] for *_, shape in asked) < 1500
    assert {x[:3] for x in asked} == {(np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32))}
    assert all(x[3] == x[4] == (x[5][0], 10) for x in asked)


def test_the_same_seed_asks_the_same() -> None:
    unit = unit_of(fma("float16"), "float16")
    one, two = (identify(unit, "float16", "float16", 8, seed=5) for _ in range(2))
    assert one == two
    assert one.as_dict()["fits"][0]["accumulator"] == "fma('float16')"


ANSWERS = {
    "constant": (lambda a, b, c: np.zeros(len(c), np.uint32), "must pass on a single product"),
    "no addend": (lambda a, b, c: unit_of(fma("float32"), "float16")(a, b, c * 0), "must pass on a single addend"),
    "shape": (lambda a, b, c: np.zeros((len(c), 1), np.uint32), "shape"),
    "floats": (
        lambda a, b, c: np.zeros(len(c)),
        "integer codes, got dtype float64; it is called with codes, integers, a and b of shape",
    ),
    "range": (lambda a, b, c: np.full(len(c), 1 << 33), "0 to 0xffffffff, got 0x200000000"),
    "raises": (lambda a, b, c: 1 // 0, "unit raised ZeroDivisionError: .*; it is called with codes, integers, a"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_that_are_none(name: str) -> None:
    unit, words = ANSWERS[name]
    with pytest.raises(UnitError, match=words):
        identify(unit, "float16", "float32", 8)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"unit": 3}, TypeError, r"unit must be callable as unit\(a, b, c\): codes, integers, .*, got 3"),
        ({"unit": lambda a, b: a}, TypeError, r"unit must be callable as unit\(a, b, c\): .*, got <lambda>\(a, b\)"),
        ({"unit": lambda a, b, *, c: a}, TypeError, r"got <lambda>\(a, b, \*, c\)"),
        ({"length": 1}, ValueError, "length must be from 2 to 256"),
        ({"length": 4.0}, TypeError, "length must be an integer"),
        ({"formats": ("float16",)}, ValueError, "formats must be a format or a pair"),
        ({"formats": "float8_e8m0fnu"}, ValueError, "formats must have a sign and a zero"),
        ({"partials": "float8_e8m0fnu"}, ValueError, "partials must have a sign and a zero"),
        ({"seed": -1}, ValueError, "seed must be an integer from 0"),
        ({"random_rows": 0}, ValueError, "random_rows must be a positive integer"),
    ],
)
def test_arguments(changes: dict, error: type[Exception], words: str) -> None:
    given = {
        "unit": unit_of(fma("float16"), "float16"),
        "formats": "float16",
        "partials": "float16",
        "length": 8,
    } | changes
    with pytest.raises(error, match=words):
        identify(**given)


# -- programs, and the command line ----------------------------------------------------------------------------------

PROGRAM = """
import sys
from softfloat import ROSTER
from softfloat.reference import dots
half = ROSTER["float16"]
for line in sys.stdin:
    codes = [int(x, 16) for x in line.split()]
    k = len(codes) // 2
    print(f"{dots.fma(codes[:k], codes[k:-1], (half, half), half, c=codes[-1])[0]:04x}")
"""


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], list[str]]:
    def make(text: str) -> list[str]:
        path = tmp_path / "unit.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return [sys.executable, str(path)]

    return make


def test_a_program(program: Callable[[str], list[str]]) -> None:
    run = Run("identify", "--addend-format", "float16", "--length", "4", "--json", "--", *program(PROGRAM))
    assert run.status == 0, run.err
    assert [x["accumulator"] for x in run.document["fits"]] == ["fma('float16')"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys; sys.exit('out of order')", "ended with status 1: out of order"),
        ("import sys; sys.stdin.read(); print('0')", "one code for each of"),
        ("import sys\nfor _ in sys.stdin: print('cold')\nprint('xyz', end='')", "one code for each of"),
        ("import sys\nfor _ in sys.stdin: print('zero')", "hexadecimal codes, got 'zero'"),
        ("import sys, time; time.sleep(60)", "took more than 2 s"),
        ("import sys\nfor _ in sys.stdin: print('12345')", "0 to 0xffff, got 0x12345"),
    ],
)
def test_programs_that_fail(program: Callable[[str], list[str]], text: str, words: str) -> None:
    command = program(text)
    run = Run("identify", "--addend-format", "float16", "--length", "4", "--timeout", "2", *command)
    run.assert_error(words)


def test_no_such_program() -> None:
    unit = command_unit(["/no/such/program"], "float16", "float16")
    with pytest.raises(UnitError, match=r"cannot run '/no/such/program': No such file"):
        unit(np.zeros((1, 2), np.uint16), np.zeros((1, 2), np.uint16), np.zeros(1, np.uint16))


def test_a_python_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_unit_under_test.py").write_text(
        "from softfloat import accumulators, testing\n"
        "class Chip:\n    dot = staticmethod(testing.unit_of(accumulators.tensor_core('V100'), 'float16'))\n"
        "number = 3\n"
        "def two(a, b): return a\n"
    )
    monkeypatch.chdir(tmp_path)
    run = Run("identify", "--python", "my_unit_under_test:Chip.dot", "--length", "8")
    assert run.status == 0, run.err
    assert "tensor_core('V100', input='float16', output='float32')" in run.out
    assert "4 products" in run.out
    Run("identify", "--python", "my_unit_under_test:number").assert_error("is no function")
    Run("identify", "--python", "my_unit_under_test:two").assert_error(
        "unit must be callable as unit(a, b, c): codes, integers, a and b of shape (rows, k) and c of shape (rows,)",
        "got two(a, b)",
    )
    Run("identify", "--python", "my_unit_under_test:absent").assert_error("absent")
    Run("identify", "--python", "my_unit_under_test").assert_error("MODULE:FUNCTION")
    Run("identify", "--python", "no_such_module_here:f").assert_error("cannot import no_such_module_here")


def test_the_command_line_shows_what_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [str(Path(__file__).parent), *sys.path])
    run = Run("identify", "--python", "test_identification:broken_device", "--length", "20")
    assert run.status == 1
    assert "none fits" in run.out
    assert "nearest: tensor_core('H100'" in run.out.replace("\n", " ").replace("  ", " ")
    document = Run("identify", "--python", "test_identification:broken_device", "--length", "20", "--json").document
    assert document["verdict"] == "none fits"
    assert document["nearest"][0]["wrong"] > 0


def test_command_line_errors() -> None:
    Run("identify").assert_error("one of COMMAND, --python, --preset and --scales")
    Run("identify", "--preset", "fma('float16')", "--python", "a:b").assert_error(
        "one of COMMAND, --python, --preset and --scales"
    )
    Run("identify", "--preset", "open('x')").assert_error("open")
    Run("identify", "--preset", "fma('float17')").assert_error("float17")
    Run("identify", "--preset", "fma('float16')", "--addend-format", "float32").assert_error("must be float16")
    Run("identify", "--preset", "fma('float16')", "--length", "1000").assert_error("length must be from 2 to 256")
    Run("identify", "--preset", "fma('float16')", "--format", "a,b,c").assert_error("one format or two")
    Run("identify", "--timeout", "-1", "x").assert_error("--timeout")
    Run("identify", "--preset", "fma('float16')", "--nan", "some").assert_error("nan must be one of", "got 'some'")


def test_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each candidate is named, with how many there are; of all that, logs get a line now and then."""
    told: list[str] = []
    unit, presets = unit_of(fma("float16"), "float16"), [mul_add("float16"), fma("float16")]
    identify(unit, "float16", "float16", 8, presets=presets, progress=told.append)
    first, second = "presets, 1 of 2: mul_add('float16')", "presets, 2 of 2: fma('float16')"
    assert told == ["probes", "random rows", first, second, "1 of 2 presets on all rows", "telling candidates apart"]
    capsys.readouterr()
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with progress.status_line("softfloat identify") as show:
        assert show is not None
        show(first)
    assert capsys.readouterr().err == f"softfloat identify: {first}\n"
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 1e6)
    with progress.status_line("softfloat identify") as show, progress.status_line() as none:
        assert show is not None
        show(first)
    assert none is None
    assert capsys.readouterr().err == ""


def test_results_are_plain_data() -> None:
    found = identified(fma("float16"), "float16", 8)
    assert dataclasses.is_dataclass(found)
    assert "fits: fma('float16')" in str(found)
    with pytest.raises(StopIteration):
        found["no such property"]
