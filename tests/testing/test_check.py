"""Verdicts: planted faults are caught and named, outside data pass, and the command line says so in its status."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from commands import Run, not_hanging
from softfloat.kernels.spec import NAN_POLICIES

from softfloat import Environment, Flags, bits
from softfloat.accumulators import fma
from softfloat.commands import main
from softfloat.commands.vectors import junit, render_report
from softfloat.testing.vectors import levels
from softfloat.testing.vectors.distributions import draw_operands
from softfloat.testing.vectors.files import write_vectors
from softfloat.testing.vectors.operations import OPERATIONS, Case, resolve
from softfloat.testing.vectors.text import Chunk, Layout, format_rows
from softfloat.testing.verdicts.causes import causes_of
from softfloat.testing.verdicts.check import Checker, check_vectors
from softfloat.testing.verdicts.comparisons import CLASSES, Comparison, distances, kappa_of
from softfloat.testing.verdicts.diagnosis import NEARLY_ALL
from softfloat.testing.verdicts.reports import Report

ROWS = 10_000
ADD = resolve("add", "float16")


def chunk(operands: list[np.ndarray], results: np.ndarray, flags: np.ndarray | None, first: int = 1) -> Chunk:
    return Chunk(np.arange(first, first + len(results)), operands, results, flags)


def verdict(
    case: Case, operands: list[np.ndarray], results: np.ndarray, raised: np.ndarray | None, **options
) -> Report:
    return check_vectors([chunk(operands, results, raised)], case, **options)


@lru_cache
def right_rows(case: Case) -> tuple[list[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """What `write_vectors` writes."""
    operands = draw_operands(case, "mixed", ROWS, [0, 0])
    return operands, case.run(operands)


# -- planted faults --------------------------------------------------------------------------------------------------

TOWARD_NEGATIVE, STOCHASTIC = Environment(rounding="toward_negative"), Environment(rounding="stochastic")
NEVER = {"nan riscv", "nan arm_dn", "no DIVBYZERO"}
"""What makes no difference but for divisions and integers: RISC-V's NaN rules, and Arm's with DN, are the canonical ones here."""
NEVER_EXACT = {"tininess before", "ftz", "ftz without sign", "overflow saturate", "overflow nan"} | {
    *("no UNDERFLOW", "no OVERFLOW", "UNDERFLOW when exact", "OVERFLOW alone")
}
DELIVERED, NOT_ZEROS, EXACT_TOO = (
    f"UNDERFLOW by the delivered result{rest}" for rest in ("", ", not by zeros", ", exact or not")
)
SUMS_ARE_EXACT_WHEN_TINY = NEVER | {"tininess before", "no UNDERFLOW", DELIVERED, NOT_ZEROS}
NOT_OF_COMPARISONS = NEVER | {"ftz", "no INEXACT", "no UNDERFLOW", "no OVERFLOW"}
INNOCENT_MIDDLES = {
    f"double rounding through {name}" for name in ("float16", "bfloat16", "tfloat32", "float32", "float64")
}

PLANTED = {
    "half add": (
        ADD,
        SUMS_ARE_EXACT_WHEN_TINY | {"operands swapped", "double rounding of subnormals", *INNOCENT_MIDDLES},
    ),
    "half add down": (
        resolve("add", "float16", environment=TOWARD_NEGATIVE),
        SUMS_ARE_EXACT_WHEN_TINY | {"operands swapped", "double rounding of subnormals", *INNOCENT_MIDDLES},
    ),
    "bfloat16 mul": (resolve("mul", "bfloat16"), NEVER | {"operands swapped", *INNOCENT_MIDDLES}),
    "half mul, stochastic": (
        resolve("mul", "float16", environment=STOCHASTIC),
        NEVER | {"overflow always infinity", "operands swapped", *INNOCENT_MIDDLES},
    ),
    "half fma": (resolve("fma", "float16"), NEVER | {"double rounding through float64"}),
    "bfloat16 fma": (resolve("fma", "bfloat16"), NEVER),
    "float32 fma": (resolve("fma", "float32"), NEVER),
    "fp8 div": (
        resolve("div", "float8_e4m3fn"),
        {"nan riscv", "nan arm_dn", "nan nvidia", "tininess before", *INNOCENT_MIDDLES},
    ),
    "float32 sqrt": (
        resolve("sqrt", "float32"),
        NEVER
        | NEVER_EXACT
        | {"rounding nearest_away", "double rounding through float64", DELIVERED, NOT_ZEROS, EXACT_TOO},
    ),
    "half exp": (
        resolve("exp", "float16"),
        NEVER
        | {"rounding nearest_away", "tininess before", "UNDERFLOW when exact", "no negative zero", DELIVERED, EXACT_TOO}
        | {"double rounding through float32", "double rounding through float64", "host float32 function"},
    ),
    "float32 to half": (resolve("f32_to_f16"), NEVER | {"infinite operands keep"}),
    "float64 to bfloat16": (resolve("f64_to_bf16"), NEVER | {"infinite operands keep"}),
    "float32 to int16": (
        resolve("convert", "float32", "int16"),
        NEVER - {"nan arm_dn"} | {"ftz", "nan ipu", "nan nvidia", "no UNDERFLOW", "no OVERFLOW"},
    ),
    "half minimum": (resolve("minimum", "float16"), NOT_OF_COMPARISONS | {"operands swapped"}),
    "half lt": (
        resolve("lt", "float16"),
        NOT_OF_COMPARISONS | {f"nan {name}" for name in NAN_POLICIES},
    ),
    "half dot": (
        resolve("vecdot", "float16", accumulator="fma('float16')", addend=True),
        NEVER | {"tininess before", "no negative zero", DELIVERED, NOT_ZEROS},
    ),
}
"""Cases, and which mistakes make no difference to them (or may make none); every other one must be caught."""


USUAL = (
    "half add",
    "bfloat16 fma",
    "float32 to half",
    "float32 to int16",
    "half exp",
    "half minimum",
    "half lt",
    "half dot",
)
"""Those of the default run; the others are much the same, and compile many loops."""


@pytest.mark.usefixtures("by_one_loop")
@pytest.mark.parametrize(
    "name", [name if name in USUAL else pytest.param(name, marks=pytest.mark.exhaustive) for name in PLANTED]
)
def test_devices_with_a_known_mistake_are_caught_and_told_its_name(name: str, request: pytest.FixtureRequest) -> None:
    """Of those of sums, which each ask for many other sums, every third by default."""
    case, harmless = PLANTED[name]
    operands, right = right_rows(case)
    assert verdict(case, operands, *right, nan="payload").passed
    unnoticed = set()
    causes = causes_of(case)
    rarer = [cause for cause in causes if cause.alone][::50]
    usual = [cause for cause in causes if not cause.alone]
    if case.accumulator is not None and not request.config.getoption("--exhaustive"):
        usual = usual[::3]
    for cause in [*usual, *rarer]:
        results, flags = cause.predict(operands, right)
        report = verdict(case, operands, results, right[1] if flags is None else flags, nan="payload")
        if report.passed:
            unnoticed.add(cause.name)
            continue
        named = [x for x in report.findings if x.named]
        assert cause.name in [x.name for x in named], (cause.name, report.findings)
        best = next(x for x in named if x.name == cause.name)
        assert best.share >= NEARLY_ALL
        assert not best.contradictions
        assert report.explained >= NEARLY_ALL
    assert unnoticed <= harmless


def test_which_mistakes_are_known_of_an_addition() -> None:
    """The tests of mistakes ask for the names that there are; one that is gone would not be missed."""
    modes = ("toward_zero", "nearest_away", "toward_positive", "toward_negative", "to_odd")
    wanted = {f"rounding {mode}" for mode in modes}
    wanted |= {"daz", "ftz", "daz and ftz", "ftz without sign", "overflow saturate", "overflow nan", "tininess before"}
    wanted |= {f"nan {policy}" for policy in NAN_POLICIES if policy != "canonical"}
    wanted |= {"no flags", *(f"no {flag.name}" for flag in Flags), "UNDERFLOW when exact", "OVERFLOW alone"}
    wanted |= {f"double rounding through {wide}" for wide in ("tfloat32", "float32", "float64")}
    wanted |= {"double rounding of subnormals", "no negative zero"}
    wanted |= {"no sticky bit, 1 guard bit", "no sticky bit, 2 guard bits", "no sticky bit, 3 guard bits"}
    wanted |= {f"UNDERFLOW by the delivered result{rest}" for rest in ("", ", not by zeros", ", exact or not")}
    guards = ["0 guard bits", "1 guard bit", *(f"{n} guard bits" for n in range(2, 6))]
    wanted |= {f"no alignment sticky, {guard}" for guard in guards} | {f"late sticky, {guard}" for guard in guards[1:4]}
    wanted |= {"hidden 1 in subnormals", "hidden 1 in subnormals and zeros", "subnormals halved", "no special codes"}
    wanted |= {"subnormal results flushed", "subnormal results flushed to +0", "exponent wraps", "sign of a in x - x"}
    wanted |= {"computes sub", "computes mul", "computes div", "operands swapped", "bytes reversed", "first operand"}
    assert {cause.name for cause in causes_of(ADD)} == wanted


@pytest.mark.parametrize(
    ("length", "orders"),
    [
        (5, ([4, 3, 2, 1, 0], [1, 0, 3, 2, 4], [0, 2, 4, 1, 3], [0, 2, 1, 3, 4])),
        (6, ([5, 4, 3, 2, 1, 0], [1, 0, 3, 2, 5, 4], [0, 2, 4, 1, 3, 5], [0, 3, 1, 4, 2, 5])),
    ],
)
def test_orders_of_products(length: int, orders: tuple[list[int], ...]) -> None:
    case = resolve("vecdot", "float16", accumulator="fma('float16')", length=length)
    operands, right = right_rows(case)
    a, b = operands
    causes = {cause.name: cause for cause in causes_of(case)}
    names = ("reversed order", "pairs swapped", "even before odd", "halves interleaved")
    for name, order in zip(names, orders, strict=True):
        predicted, _ = causes[name].predict(operands, right)
        assert np.array_equal(predicted, bits.vecdot(a[:, order], b[:, order], "float16", fma("float16"))[0]), name


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("products 3 and 12 swapped", [0, 1, 2, 12, 4, 5, 6, 7, 8, 9, 10, 11, 3, 13, 14, 15]),
        ("products 0 and 15 swapped", [15, *range(1, 15), 0]),
        ("stride 4", [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]),
        ("groups of 4 reversed", [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12]),
        ("order of groups of 4 reversed", [12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3]),
        ("rotated by 5", [*range(5, 16), *range(5)]),
        ("bit-reversed order", [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15]),
    ],
)
def test_orders_within_sums_of_16_are_recognised(name: str, order: list[int]) -> None:
    case = resolve("vecdot", "bfloat16", accumulator="fma('float32')", length=16)
    operands = draw_operands(case, "mixed", 1500, [0, 0])
    a, b = operands
    report = verdict(case, operands, *case.run([a[:, order], b[:, order]]))
    assert [x.name for x in report.findings if x.named] == [name]


def test_wrong_rows_are_described_by_what_they_share() -> None:
    """The shortest description first, and each a part of the next one."""
    case = resolve("fma", "float16")
    operands = draw_operands(case, "mixed", 40_000, [0, 0])
    a = operands[0]
    right, flags = case.run(operands)
    faulty = (a >> 10 & 31 == 13) & (a & 3 == 2) & ~np.asarray(bits.isnan(right, "float16"))
    assert 20 < faulty.sum() < 2000
    report = verdict(case, operands, np.where(faulty, right ^ np.uint16(64), right), flags)
    assert not any(x.named for x in report.findings)
    texts = [x.statements for x in report.regions]
    assert {"exponent field of a 13", "bits 1-0 of a 10"} <= set(texts[-1])
    assert all(len(x) == i + 1 and x == texts[-1][: i + 1] for i, x in enumerate(texts))
    assert all(x.share >= 0.99 for x in report.regions)
    assert report.regions[-1].right < report.regions[0].right + 1e-9 < 0.3
    assert "exponent field of a 13" in console_text(report)
    dot = resolve("vecdot", "bfloat16", accumulator="fma('float32')", length=4)
    operands = draw_operands(dot, "mixed", 8000, [0, 0])
    right, flags = dot.run(operands)
    sums, _ = dot.replace(length=3).run([x[:, :3] for x in operands])
    before, _ = dot.replace(length=2).run([x[:, :2] for x in operands])
    faulty = (sums == 0) & (before << 1 != 0) & (right & 0x7F800000 != 0x7F800000)
    report = verdict(dot, operands, np.where(faulty, right ^ 8, right), flags)
    assert report.regions[0].statements == ("cancellation, step 2 all",)


def console_text(report: Report) -> str:
    from rich.console import Console

    console = Console(width=120, record=True, file=io.StringIO())
    console.print(render_report(report))
    return console.export_text()


def test_distances_in_value_steps() -> None:
    """P3109's kappa: NaN for NaN, infinity for infinity, and both zeros are one value."""
    number = resolve("f16_add").target
    right = np.array([0x3C00, 0x0000, 0x7BFF, 0x7E00, 0x7E00, 0x3C00, 0x7C00, 0x7C00], np.uint16)
    found = np.array([0x3C03, 0x8000, 0x7C00, 0x7E01, 0x3C00, 0xFE00, 0xFC00, 0x7C00], np.uint16)
    wanted = [3, 0, np.inf, 0, np.nan, np.nan, np.inf, 0]
    np.testing.assert_array_equal(kappa_of(right, found, number), wanted)
    finite = resolve("add", "float8_e4m3fn").target
    assert kappa_of(np.array([0x7E], np.uint8), np.array([0x7D], np.uint8), finite).tolist() == [1]
    assert one("f16_add", "3C00 3C00 4003 00").kappa == 3
    assert one("f16_add", "3C00 3C00 4003 00\n7BFF 7BFF 7BFF 05").as_dict()["kappa"] == "infinity"
    assert one("f16_add", "3C00 3C00 7E00 00\n3C00 3C00 4003 00").as_dict()["kappa"] == "NaN"
    assert one("f16_add", "3C00 3C00 4000 00").kappa == 0


def test_integers_of_nan_need_no_hint() -> None:
    """Files of TestFloat's usual build have x86's; the rule is named, other mistakes count as ever."""
    x86 = "7E00 80000000 10\n7C00 80000000 10\nFC00 80000000 10\nC000 FFFFFFFE 00"
    report = one("f16_to_i32", x86)
    assert report.passed
    assert "x86" in report.note
    assert "x86" in Run("check", "-", "--op", "f16_to_i32", stdin=x86.encode()).out
    assert "arm" in one("f16_to_ui64", "7E00 0000000000000000 10").note
    usual = one("f16_to_i32", "7E00 7FFFFFFF 10")
    assert (usual.passed, usual.note) == (True, "")
    mixed = one("f16_to_i32", "7E00 80000000 10\n7E01 7FFFFFFF 10")
    assert (mixed.passed, mixed.note) == (False, "")
    both = one("f16_to_i32", f"{x86}\nC000 FFFFFFFF 00")
    assert (both.mismatches, both.classes) == (1, {"integer off by one": 1})
    assert "x86" in both.note
    assert not one("f16_to_i32", x86, nan="payload").passed
    riscv = resolve("f16_to_i32", environment=Environment(nan="riscv"))
    assert not one("", x86, case=riscv).passed


def test_two_mistakes_at_once() -> None:
    operands, (_, flags) = right_rows(ADD)
    truncated, _ = ADD.under(rounding="toward_zero").run(operands)
    report = verdict(ADD, operands, truncated, flags & 0)
    assert {x.name for x in report.findings} == {"rounding toward_zero", "no flags"}
    assert report.explained == 1
    case = resolve("fma", "bfloat16")
    operands, _ = right_rows(case)
    both = case.under(ftz=True, nan="x86").run(operands)
    report = verdict(case, operands, *both, nan="payload")
    assert {x.name for x in report.findings} >= {"ftz", "nan x86"}
    assert report.explained >= 0.99


def test_noise_has_no_name() -> None:
    operands, (right, flags) = right_rows(ADD)
    random = np.random.default_rng(0)
    noisy = np.where(random.random(ROWS) < 0.05, right ^ np.uint16(1 << 3), right)
    report = verdict(ADD, operands, noisy, flags)
    assert report.findings == ()
    assert not report.explained
    one = right.copy()
    one[77] ^= 0x0400
    assert not any(x.named for x in verdict(ADD, operands, one, flags).findings)


def test_mistakes_that_the_order_of_rows_tells() -> None:
    operands, (right, flags) = right_rows(ADD)
    sticky = np.bitwise_or.accumulate(flags)
    pieces = [slice(0, 1), slice(1, 4000), slice(4000, ROWS)]
    chunks = [chunk([x[p] for x in operands], right[p], sticky[p]) for p in pieces]
    assert [x.name for x in check_vectors(chunks, ADD).findings] == ["sticky flags"]
    late, late_flags = np.roll(right, 1), np.roll(flags, 1)
    chunks = [chunk([x[p] for x in operands], late[p], late_flags[p]) for p in pieces]
    assert [x.name for x in check_vectors(chunks, ADD).findings] == ["late by one row"]


# -- devices that nobody here wrote ----------------------------------------------------------------------------------


def names(report: Report) -> list[str]:
    return [x.name for x in report.findings if x.named]


def test_numpys_half_functions_round_twice() -> None:
    case = resolve("fma", "float16")
    operands, _ = right_rows(case)
    a, b, c = (x.view(np.float16).astype(np.float32) for x in operands)
    with np.errstate(all="ignore"):
        single = (a * b + c).astype(np.float16).view(np.uint16)
    report = verdict(case, operands, single, None, flags="ignore")
    assert "double rounding through float32" in names(report)
    assert 0 < report.mismatches < ROWS // 2


@pytest.mark.parametrize("name", ["add", "fma"])
def test_causes_of_wrong_float64(name: str) -> None:
    """A mode is named; no unit that is computed in float64, nor double rounding through it, is a cause of float64's own."""
    case = resolve(name, "float64")
    operands = draw_operands(case, "mixed", 400, 1)
    report = verdict(case, operands, *case.under(rounding="toward_zero").run(operands))
    assert "rounding toward_zero" in names(report)
    assert not any("guard" in x or "through float64" in x for x in names(report))


def test_ml_dtypes_casts_of_float64_round_twice() -> None:
    import ml_dtypes

    case = resolve("f64_to_bf16")
    (codes,), _ = right_rows(case)
    with np.errstate(all="ignore"):
        casts = codes.view(np.float64).astype(ml_dtypes.bfloat16).view(np.uint16)
    report = verdict(case, [codes], casts, None, flags="ignore")
    assert names(report)[0] == "double rounding through float32"


def test_results_read_off_x86(vectors: Path) -> None:
    with np.load(vectors / "x86_hw_small.npz") as archive:
        data = dict(archive)
    x, mxcsr = data["vcvtps2ph_x"], data["vcvtps2ph_RNE_mxcsr"]
    invalid, overflow, underflow, inexact = (mxcsr >> bit & 1 for bit in (0, 3, 4, 5))
    flags = (inexact | underflow << 1 | overflow << 2 | invalid << 4).astype(np.uint8)
    case = resolve("f32_to_f16")
    assert verdict(case, [x], data["vcvtps2ph_RNE"], flags).passed
    assert verdict(case.under(nan="x86"), [x], data["vcvtps2ph_RNE"], flags).passed
    assert "rounding toward_zero" in names(verdict(case, [x], data["vcvtps2ph_RTZ"], flags, flags="ignore"))
    brain = resolve("f32_to_bf16")
    report = verdict(brain, [data["vcvtneps2bf16_x"]], data["vcvtneps2bf16_y"], None, flags="ignore")
    assert "daz" in names(report)
    raw = verdict(
        brain.under(daz=True), [data["vcvtneps2bf16_x"]], data["vcvtneps2bf16_y"], None, flags="ignore", nan="payload"
    )
    assert raw.passed or "nan x86" in names(raw)
    families = sorted({key.split("_")[1] for key in data if key.startswith("vdpbf16ps_") and key.endswith("_a")})
    fused = resolve("vecdot", "bfloat16", accumulator="fma('float32')", length=2, addend=True)
    lane = resolve("vecdot", "bfloat16", accumulator="vdpbf16ps()", length=2, addend=True)
    found = set()
    for family in families:
        a, b, c, d = (data[f"vdpbf16ps_{family}_{letter}"] for letter in "abcd")
        assert verdict(lane, [a, b, c], d, None, flags="ignore", nan="payload").passed, family
        found |= set(names(verdict(fused, [a, b, c], d, None, flags="ignore")))
    assert "sums by vdpbf16ps()" in found


def test_results_read_off_tensor_cores(vectors: Path) -> None:
    with np.load(vectors / "tensorcore_hw_400.npz") as archive:
        data = dict(archive)
    key = next(key for key in data if key.startswith("H100_") and data[key].dtype == np.uint16 and key.endswith("__A"))
    stem = key.removesuffix("A")
    if data[f"{stem}D"].dtype != np.uint32:
        stem = next(k for k in data if k.startswith("H100_f16_f32"))[: -len("A")]
    a, b, c, d = (data[f"{stem}{name}"] for name in "ABcD")
    options = {"length": a.shape[1], "addend": True, "to": "float32"}
    kind = "bfloat16" if "bf16" in stem else "float16"
    right = resolve("vecdot", kind, accumulator=f"tensor_core('H100', {kind!r})", **options)
    assert verdict(right, [a, b, c], d, None, flags="ignore").passed
    wrong = resolve("vecdot", kind, accumulator=f"tensor_core('A100', {kind!r})", **options)
    report = verdict(wrong, [a, b, c], d, None, flags="ignore")
    assert any("H100" in name for name in names(report))


MODES = {"near_even": "near_even", "minMag": "minMag", "min": "min", "max": "max", "near_maxMag": "near_maxMag"}


@pytest.mark.parametrize("file", ["testfloat_f16_binary", "testfloat_f16_mulAdd", "testfloat_f32", "testfloat_unary"])
def test_testfloats_own_vectors(vectors: Path, file: str, tmp_path: Path) -> None:
    """Written as the text TestFloat writes, and checked under its names."""
    with np.load(vectors / f"{file}.npz") as archive:
        data = dict(archive)
    functions = sorted({key.partition("__")[0] for key in data})
    assert len(functions) >= 1
    for function in functions:
        for mode in ("near_even", "max"):
            flags = next(
                (data[k] for k in (f"{function}__f_{mode}_a", f"{function}__f_{mode}_notexact") if k in data), None
            )
            if flags is None:
                continue
            case = resolve(function, environment=Environment(rounding={"near_even": "RNE", "max": "RUP"}[mode]))
            columns = [data[f"{function}__{x}"] for x in "abc" if f"{function}__{x}" in data]
            rows = slice(0, 3000)
            arrays = [x[rows] for x in (*columns, data[f"{function}__r_{mode}"], flags)]
            arrays = [x.view(f"u{x.dtype.itemsize}").astype(c.dtype) for x, c in zip(arrays, case.columns, strict=True)]
            path = tmp_path / "rows.txt"
            path.write_bytes(format_rows(Layout(case.columns), arrays))
            report = check_vectors(path, case)
            assert report.passed, (function, mode, report)


def test_a_few_lines_as_testfloat_writes_them() -> None:
    lines = b"87FF E850 E850 01\n0000 85EE 85EE 00\n7BFF 7BFF 7C00 05\nFC00 7C00 FE00 10\n"
    assert Run("check", "-", "--op", "f16_add", stdin=lines).status == 0
    assert Run("check", "-", "--op", "f16_add", "--nan", "canonical", "--no-causes", stdin=lines).status == 1
    assert Run("check", "-", "--op", "f16_add", "--nan-policy", "x86", stdin=lines).status == 0


# -- what counts as different ----------------------------------------------------------------------------------------


def one(op: str, line: str, **options: object) -> Report:
    case = options.pop("case", None) or resolve(op)
    return check_vectors(io.BytesIO(line.encode()), case, causes=False, **options)


@pytest.mark.parametrize(
    ("operation", "line", "kind", "ulps"),
    [
        ("f16_add", "3C00 3C00 4000 01", "flags only", None),
        ("f16_add", "7C00 FC00 7D00 10", "signalling NaN", None),
        ("f16_add", "7C00 FC00 7C00 10", "number instead of NaN", None),
        ("f16_add", "3C00 3C00 7E00 00", "NaN instead of number", None),
        ("f16_add", "7BFF 7BFF 7BFF 05", "overflow", 1),
        ("f16_add", "8000 0000 8000 00", "sign of zero", None),
        ("f16_add", "3C00 3C00 C000 00", "sign", 32768),
        ("f16_add", "0001 0002 0000 00", "subnormal flushed", 3),
        ("f16_add", "0001 0002 0004 00", "subnormal", 1),
        ("f16_add", "3C00 3C00 4001 00", "one ulp", 1),
        ("f16_add", "3C00 3C00 4003 00", "several ulps", 3),
        ("f16_to_i32", "7C00 00000000 10", "invalid integer", 2**31 - 1),
        ("f16_to_i32", "C000 FFFFFFFF 00", "integer off by one", 1),
        ("f16_to_ui64", "4000 0000000000000009 00", "integer", 7),
        ("f16_to_f64", "3C00 3FF0000000000001 00", "one ulp", 1),
        ("f16_lt", "3C00 4000 0 00", "answer", None),
        ("f64_add", "3FF0000000000000 3CA0000000000000 3FF0000000000001 01", "one ulp", 1),
        ("f64_mulAdd", "7FEFFFFFFFFFFFFF 4000000000000000 0000000000000000 7FEFFFFFFFFFFFFF 05", "overflow", 1),
        ("f64_to_i64", "C000000000000000 FFFFFFFFFFFFFFFF 00", "integer off by one", 1),
    ],
)
def test_kinds_of_mismatch(operation: str, line: str, kind: str, ulps: int | None) -> None:
    report = one(operation, line)
    assert (report.status, report.classes) == (1, {kind: 1})
    assert kind in CLASSES
    assert report.first[0].kind == kind
    assert report.first[0].ulps == ulps


def test_nan_and_flag_modes() -> None:
    payload = "7E01 3C00 7E01 00"
    assert one("f16_add", payload).passed
    assert not one("f16_add", payload, nan="canonical").passed
    assert not one("f16_add", payload, nan="payload").passed
    arm = resolve("f16_add", environment=Environment(nan="arm"))
    assert one("", payload, case=arm).passed
    assert not one("", "7E01 3C00 7E00 00", case=arm).passed
    assert one("", "7E01 3C00 7E00 00", case=arm, nan="any").passed
    assert one("", "7E01 3C00 7E00 00", case=arm, nan="canonical").passed
    less, more = "7BFF 7BFF 7C00 01", "3C00 3C00 4000 01"
    assert not one("f16_add", less).passed
    assert one("f16_add", less, flags="subset").passed
    assert not one("f16_add", more, flags="subset").passed
    assert one("f16_add", more, flags="ignore").passed
    assert one("f16_add", "3C00 3C00 4000", flags="ignore").passed
    assert not one("f16_add", "3C00 3C00 4000").passed
    report = one("f16_add", f"{less}\n{more}")
    assert (report.missing_flags, report.extra_flags) == ({"OVERFLOW": 1}, {"INEXACT": 1})
    assert not one("", "7E01 7E00 00", case=resolve("negative", "float16")).passed
    for name, value in (("flags", "some"), ("nan", "none"), ("first", -1)):
        with pytest.raises(ValueError, match=name):
            one("f16_add", payload, **{name: value})


def test_distances_know_signed_zeros_and_wide_integers() -> None:
    number = resolve("f16_add").target
    right, found = np.array([0x8001, 0x0000, 0x7C00], np.uint16), np.array([0x0001, 0x8000, 0x7BFF], np.uint16)
    assert distances(right, found, number).tolist() == [2, 0, 1]
    wide = resolve("f16_to_i64").target
    assert distances(np.array([2**63], np.uint64), np.array([2**63 - 1], np.uint64), wide)[0] == 2**64 - 1
    unsigned = resolve("abs", "float8_e8m0fnu").target
    assert distances(np.array([0x90], np.uint8), np.array([0x80], np.uint8), unsigned)[0] == 16


def test_a_report_of_a_large_file_stays_small(tmp_path: Path) -> None:
    """Counts are of all rows; samples and first mismatches are limited."""
    path = tmp_path / "many.txt"
    write_vectors(path, ADD.under(rounding="toward_zero"), 200_000)
    report = check_vectors(path, ADD)
    assert (report.rows, report.first[0].line, len(report.first)) == (200_000, 1, 10) or report.first[0].line > 1
    assert report.mismatches > 50_000
    assert report.diagnosed == 20_000
    assert sum(report.classes.values()) == report.mismatches
    assert report.explained == 1
    lines = [x.line for x in report.first]
    assert lines == sorted(lines)
    text = path.read_text(encoding="utf-8").splitlines()
    for found in report.first:
        assert text[found.line - 1].split()[:2] == [x.code[2:].upper() for x in found.operands]


def test_memory_does_not_grow_with_the_file() -> None:
    import tracemalloc

    class Rows(io.RawIOBase):
        """The same rows again and again."""

        def __init__(self, blocks: int) -> None:
            self.block = format_rows(Layout(ADD.columns), [*right_rows(ADD)[0], *right_rows(ADD)[1]])
            self.blocks = blocks

        def read(self, size: int = -1) -> bytes:
            self.blocks -= 1
            return self.block if self.blocks >= 0 else b""

        def seekable(self) -> bool:
            return False

    def peak(blocks: int) -> int:
        tracemalloc.start()
        assert check_vectors(Rows(blocks), ADD).rows == blocks * ROWS
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    few = peak(8)
    assert peak(80) < few * 1.5


def test_samples_are_from_everywhere() -> None:
    checker = Checker(ADD)
    operands, (right, flags) = right_rows(ADD)
    for number in range(30):
        results = right ^ np.uint16(number + 1)  # all rows wrong, by another bit pattern in each chunk
        checker.feed(chunk(operands, results, flags))
    rows = checker.wrong.taken()
    counts = np.bincount(rows.found[0] ^ rows.right[0])[1:]
    assert counts.sum() == 20_000
    assert counts.min() > 400
    assert counts.max() < 950


def test_rows_keep_their_comparison() -> None:
    compare = Comparison(ADD, "exact", "any")
    wrong, flags = compare((np.array([0x7E00], np.uint16), None), (np.array([0x7E05], np.uint16), None))
    assert not wrong.any()
    assert not flags.any()


# -- the command line ------------------------------------------------------------------------------------------------


def test_vectors_and_check(tmp_path: Path) -> None:
    path = str(tmp_path / "mul.txt")
    options = ("--format", "half", "--rounding", "minMag", "--daz")
    run = Run("vectors", "mul", *options, "--count", "500", "--seed", "7", "-o", path)
    assert (run.status, run.out) == (0, f"500 rows of mul float16, toward_zero, daz: {path}\n")
    run = Run("check", path, "--op", "f16_mul", *options[2:])
    assert run.status == 0
    assert run.out.startswith("passed  mul float16, toward_zero, daz")
    run = Run("check", path, "--op", "mul", "-f", "half", "--daz", "--json")
    assert run.status == 1
    document = run.document
    assert document["causes"][0]["name"] == "rounding toward_zero"
    assert document["rows"] == 500
    assert document["passed"] is False
    first = document["first"][0]
    assert first["expected"]["bits"].count(" ") == 2
    assert set(first["operands"][0]) == {"name", "code", "bits", "value"}
    assert "INEXACT" in first["expected"]["flags"]


def test_vectors_go_to_standard_output_and_come_from_standard_input() -> None:
    script = [sys.executable, "-m", "softfloat"]
    made = subprocess.run([*script, "vectors", "f16_sqrt", "-n", "300"], capture_output=True, timeout=100, check=True)
    assert made.stdout.count(b"\n") == 300
    run = Run("check", "-", "--op", "f16_sqrt", stdin=made.stdout)
    assert (run.status, run.out.split()[0]) == (0, "passed")
    again = Run("vectors", "f16_sqrt", "-n", "300")
    assert again.out.encode() == made.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("vectors", "plus", "-f", "half"), ("plus", "add")),
        (("vectors", "add"), ("format",)),
        (("vectors", "add", "-f", "float7"), ("float7", "float16")),
        (("vectors", "add", "-f", "half", "--rounding", "up"), ("up", "nearest_even")),
        (("vectors", "add", "-f", "half", "--count", "0"), ("--count", "positive")),
        (("vectors", "add", "-f", "half", "--count", "9" * 50), ("--count", "positive")),
        (("vectors", "add", "-f", "half", "--seed", "-1"), ("--seed", "2^64")),
        (("vectors", "add", "-f", "half", "--distribution", "odd"), ("odd", "mixed")),
        (("vectors", "add", "-f", "half", "--level", "3"), ("level", "exhaustive")),
        (("vectors", "add", "-f", "float32", "--level", "exhaustive"), ("18 446 744 073 709 551 616",)),
        (("vectors", "add", "-f", "half", "--nan-policy", "mine"), ("mine", "riscv")),
        (("vectors", "add", "-f", "half", "-o", "/nowhere/at/all"), ("cannot write /nowhere/at/all",)),
        (("vectors", "vecdot", "-f", "half", "--accumulator", "exec('1')"), ("exec", "amp")),
        (("check", "nowhere.txt", "--op", "f16_add"), ("nowhere.txt", "No such file")),
        (("check", "/", "--op", "f16_add"), ("cannot read /",)),
        (("check", "-", "--op", "f16_add", "--flags", "none"), ("flags", "subset")),
        (("check", "-", "--op", "f16_add", "--nan", "none"), ("nan", "payload")),
        (("check", "-"), ("--op",)),
        (("check", "-", "--op", "f16_add", "--junit", "/nowhere/at/all.xml"), ("/nowhere/at/all.xml",)),
    ],
)
def test_errors_are_one_line(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    Run(*arguments, stdin=b"3C00 3C00 4000 00\n").assert_error(*words)


def test_dots_on_the_command_line(tmp_path: Path) -> None:
    path = str(tmp_path / "dots.npz")
    options = ("-f", "float8_e4m3fn,float8_e5m2", "--length", "32", "--addend")
    core = ("--accumulator", 'tensor_core("H100", "float8_e4m3fn")')
    assert Run("vectors", "vecdot", *options, *core, "-n", "400", "-o", path).status == 0
    assert Run("check", path, "--op", "vecdot", *options, *core).status == 0
    run = Run("check", path, "--op", "dot", *options, "--accumulator", 'exact("float32")', "--flags", "ignore")
    assert run.status == 1
    assert "more operands" in run.out
    assert "tensor_core('H100'" in run.out


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"\r\n", b"no rows\n", b"\0" * 5000, b"PK\x03\x04 nothing", b"\x1f\x8b"]
)
def test_files_without_rows_fail(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(data)
    run = Run("check", str(path), "--op", "f16_add")
    assert run.status == 2
    assert run.out.startswith("malformed")
    assert Run("check", str(path), "--op", "f16_add", "--json").document["passed"] is False


def test_malformed_lines_are_named_and_the_others_checked() -> None:
    data = b"3C00 3C00 4000 00\n# here\n3C00 3C00 4001 00\nx\n"
    run = Run("check", "-", "--op", "f16_add", "--json", "--no-causes", stdin=data)
    assert run.status == 2
    assert [x["line"] for x in run.document["malformed"]] == [2, 4]
    assert (run.document["rows"], run.document["mismatches"]) == (2, 1)
    run = Run("check", "-", "--op", "f16_add", "--no-causes", stdin=data)
    assert "malformed line 2: '# here' is not all hexadecimal numbers" in run.out


def test_control_c_reports_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream(io.RawIOBase):
        count = 0

        def read(self, size: int = -1) -> bytes:
            self.count += 1
            if self.count > 3:
                raise KeyboardInterrupt
            return b"3C00 3C00 4001 00\n"

        def seekable(self) -> bool:
            return False

    class Standard:
        def __init__(self) -> None:
            self.buffer = Stream()

    with pytest.raises(KeyboardInterrupt):
        check_vectors(Stream(), ADD)
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdin", Standard())
    with contextlib.redirect_stdout(out):
        status = main(["check", "-", "--op", "f16_add", "--json", "--no-causes"])
    document = json.loads(out.getvalue())
    assert status == 130
    assert (document["interrupted"], document["rows"], document["mismatches"]) == (True, 3, 3)
    monkeypatch.setattr(sys, "stdin", Standard())
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["check", "-", "--op", "f16_add", "--no-causes"]) == 130
    assert out.getvalue().startswith("interrupted")
    assert "3 rows so far" in out.getvalue()


def test_a_bar_on_terminals_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    path = str(tmp_path / "rows.txt")
    for arguments in (["vectors", "f16_add", "-o", path], ["check", path, "--op", "f16_add"]):
        err = Terminal()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
            assert main(arguments) == 0
        assert err.getvalue()
        run = Run(*arguments)
        assert run.err == ""


def test_junit_xml(tmp_path: Path) -> None:
    path = tmp_path / "verdict.xml"

    def suite(data: bytes, *options: str) -> ElementTree.Element:
        Run("check", "-", "--op", "f16_add", "--no-causes", "--junit", str(path), *options, stdin=data)
        return ElementTree.parse(path).getroot()

    found = suite(b"3C00 3C00 4000 00\n")
    assert (found.tag, found.get("tests"), found.get("failures"), found.get("errors")) == ("testsuite", "3", "0", "0")
    found = suite(b"3C00 3C00 4001 00\n")
    assert found.get("failures") == "1"
    failure = found.find("testcase/failure")
    assert failure is not None
    assert "1 of 1 rows have wrong results" in str(failure.get("message"))
    assert "a=0x3c00 b=0x3c00 expected 0x4000 actual 0x4001" in str(failure.text)
    found = suite(b"3C00 3C00 \x00\x1b<&>\xff\n")
    assert found.get("errors") == "1"
    assert suite(b"3C00 3C00 4000\n", "--flags", "ignore").get("tests") == "2"
    report = dataclasses.replace(one("f16_add", ""), failure="\x00\ud800 \U0001f600")
    assert ElementTree.fromstring(junit(report, "\x01")).get("errors") == "1"


def test_reports_are_plain_data() -> None:
    report = one("f16_add", "3C00 3C00 4001 01\n")
    assert json.loads(json.dumps(report.as_dict()))["first"][0]["actual"]["flags"] == ["INEXACT"]
    assert report.first[0].actual_flags == Flags.INEXACT
    assert not report.passed
    assert len(OPERATIONS) > 60


# -- fuzzing ---------------------------------------------------------------------------------------------------------

WORDS = (
    *("vectors", "check", "add", "f16_add", "f32_to_f16", "vecdot", "convert", "f16_mulAdd", "pow", "-", "--op"),
    *(
        "-f",
        "half",
        "bfloat16",
        "float8_e4m3fn,float8_e5m2",
        "int8",
        "float64",
        "--to",
        "--rounding",
        "RNE",
        "stochastic",
    ),
    *("--daz", "--ftz", "--overflow", "saturate", "--nan-policy", "x86", "--flags", "ignore", "--nan", "any", "--json"),
    *("--accumulator", 'amp("half")', "fma('float16')", "--length", "4", "--addend", "--no-exact", "--sr-bits", "8"),
    *("--distribution", "ties", "--seed", "0x10", "--first", "2", "--tininess", "before", "--no-causes", "--level"),
)


def fuzz_commands(count: int, seed: int) -> None:
    """Words in any order, some of them changed: an answer, or an error of one line."""
    random = np.random.default_rng(seed)
    rows = format_rows(Layout(ADD.columns), [x[:20] for x in (*right_rows(ADD)[0], *right_rows(ADD)[1])])
    statuses = {0: 0, 1: 0, 2: 0}
    usual = [
        ["vectors", "add", "-f", "half"],
        ["check", "-", "--op", "f16_add"],
        ["vectors", "f32_to_f16"],
        ["check", "-"],
    ]
    for _ in range(count):
        words = list(usual[random.integers(0, len(usual))])
        words += [str(x) for x in random.choice(WORDS, random.integers(0, 5))]
        if random.random() < 0.3:
            place = int(random.integers(0, len(words)))
            text = list(words[place])
            text[int(random.integers(0, len(text)))] = chr(
                int(random.choice([0, 9, 34, 39, 40, 45, 92, 65, 233, 0x1F600]))
            )
            words[place] = "".join(text)
        words += ["--count", "5", "--output", "-"] if words[0] == "vectors" else ["--no-causes"]
        run = Run(*words, stdin=rows)
        assert run.status in statuses, words
        statuses[run.status] += 1
        assert "Traceback" not in run.err + run.out, words
        if run.status == 2 and not run.out:
            assert re.fullmatch(r"softfloat: error: [^\n]+\n", run.err), (words, run.err)
    assert statuses[0] > count // 20
    assert statuses[2] > count // 20


def test_mutated_commands() -> None:
    with not_hanging():
        fuzz_commands(300, 5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(5))
def test_many_mutated_commands(seed: int) -> None:
    with not_hanging():
        fuzz_commands(4_000, 50 + seed)


def test_bits_are_those_of_bits() -> None:
    operands, (results, flags) = right_rows(ADD)
    expected = bits.add(*operands, "float16")
    assert np.array_equal(results, expected[0])
    assert np.array_equal(flags, expected[1])
    assert levels.CHUNK > 1000
