"""The model against the instructions of the CPU that runs the tests; what it lacks is skipped, visibly."""

from __future__ import annotations

import csv
import dataclasses
import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import Run

from softfloat import bits
from softfloat.accumulators import amx
from softfloat.reference import dots
from softfloat.testing.hardware import cuda, tiles
from softfloat.testing.hardware import model as hardware_model
from softfloat.testing.hardware.features import EXTENSIONS, Features
from softfloat.testing.hardware.model import STATUSES, Outcome, check_hardware
from softfloat.testing.hardware.operands import FAMILIES, drawn_operands
from softfloat.testing.hardware.ptx import ScalarInstruction
from softfloat.testing.hardware.table import Operands, instructions

TABLE = {row.name: row for row in instructions()}
X86 = platform.machine().lower() in ("x86_64", "amd64")


def outcomes_here(name: str, **options: object) -> list[Outcome]:
    """What came of an instruction; skips the test where the machine lacks it, or nothing models it."""
    found = check_hardware([name], **options)  # type: ignore[arg-type]
    if found[0].status in ("not available", "not checked"):
        pytest.skip(f"{found[0].status}: {found[0].reason}")
    return found


def needs(name: str) -> None:
    lacking = hardware_model.features().lacks(TABLE[name].extensions)
    if lacking:
        pytest.skip(f"this machine has no {', '.join(lacking)}")


# -- the instructions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.device == "cpu"])
def test_instruction(name: str) -> None:
    found = outcomes_here(name, samples=30_000, seed=1)
    assert [x.mode for x in found] == list(TABLE[name].modes)
    for outcome in found:
        assert outcome.status == "agrees", outcome.examples
        assert outcome.mismatches == outcome.flag_mismatches == 0
        # as the process starts, and flushing; tile products read no register that says so
        assert outcome.cases >= (30_000 if TABLE[name].tiles else 60_000)


def test_instructions_of_a_gpu() -> None:
    """Live, where there is one."""
    found = check_hardware(samples=30_000, seed=1, device="cuda")
    if {x.status for x in found} <= {"not available", "not checked"}:
        pytest.skip("no NVIDIA GPU of sm_90 here")
    for outcome in found:
        assert outcome.status in ("agrees", "not checked"), (outcome.instruction, outcome.reason, outcome.examples)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["VCVTPS2PH", "VCVTNEPS2BF16"])
def test_every_operand(name: str, pytestconfig: pytest.Config) -> None:
    scheduler = pytestconfig.getoption("--scheduler")
    for outcome in outcomes_here(name, samples=1, exhaustive=True, scheduler=scheduler):
        assert outcome.status == "agrees", outcome.examples
        assert outcome.exhaustive
        assert outcome.cases >= 2**32


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """All operands there are, if there were 2^14."""
    monkeypatch.setattr(hardware_model, "SPACE", 1 << 14)
    monkeypatch.setattr(hardware_model, "CHUNK", 1 << 11)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_every_operand_by_a_scheduler(scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask.array", reason="needs the extra 'dask'")
    needs("VCVTPS2PH")
    row = TABLE["VCVTPS2PH"]
    assert row.run_model is not None
    tried = np.zeros(1 << 14, int)

    def model(operands: Operands, options: dict) -> tuple[np.ndarray, np.ndarray]:
        if operands[0].size == 1 << 11:
            np.add.at(tried, operands[0], 1)
        codes, flags = row.run_model(operands, options)
        return codes ^ (operands[0] == 0x1234), flags | (operands[0] == 0x0042)

    monkeypatch.setattr(
        hardware_model, "instructions", lambda: (dataclasses.replace(row, run_model=model, modes=("toward_zero",)),)
    )
    (alone,) = check_hardware(samples=30, exhaustive=True)
    tried[:] = 0
    progress: list[tuple[str, int, int]] = []
    options = {"samples": 30, "exhaustive": True, "scheduler": scheduler, "manifest": tmp_path / "done"}
    (found,) = check_hardware(**options, progress=lambda *at: progress.append(at))
    assert (tried == 1).all()
    assert (found.cases, found.mismatches, found.flag_mismatches) == (
        alone.cases,
        alone.mismatches,
        alone.flag_mismatches,
    )
    assert found.cases == (1 << 14) + 60
    assert found.mismatches > 0
    assert found.examples == alone.examples
    assert found.exhaustive
    assert progress[-1][1:] == (found.cases, found.cases)
    (again,) = check_hardware(**options)
    assert (tried == 1).all()
    assert again.examples == found.examples
    assert again.cases == found.cases


def test_every_half() -> None:
    (outcome,) = outcomes_here("VCVTPH2PS")
    assert outcome.exhaustive
    assert outcome.cases == 2 * 65536


def test_traps_on_the_instruction_itself(vectors: Path) -> None:
    """What the file says VDPBF16PS gives is what it gives here."""
    needs("VDPBF16PS")
    from softfloat.testing.hardware.instructions import assemble

    with (vectors / "traps_dot.csv").open(newline="", encoding="utf-8") as lines:
        names = ("c", "a_hi", "b_hi", "a_lo", "b_lo", "result")
        rows = [{name: int(row[name], 16) for name in names} for row in csv.DictReader(lines)]
    c = np.array([row["c"] for row in rows], np.uint32)
    a, b = (np.array([row[f"{x}_lo"] | row[f"{x}_hi"] << 16 for row in rows], np.uint32) for x in "ab")
    code = TABLE["VDPBF16PS"].code
    assert code is not None
    found, flags = assemble(code("nearest_even")).each((c, a, b))
    assert found.tolist() == [row["result"] for row in rows]
    assert not flags.any()


def test_the_register_is_as_it_was_before() -> None:
    needs("VADDPS")
    check_hardware(["VADDPS"], samples=100)
    assert np.float32(1e-45) * np.float32(1) != 0
    assert np.float32(1) + np.float32(2**-24) == 1
    assert np.float32(1 + 2**-23) + np.float32(2**-24) > 1 + 2**-23


@pytest.mark.skipif(not X86, reason="LLVM here may not know x86")
@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.code is not None])
def test_llvm_assembles_it_for_a_cpu_that_has_it(name: str) -> None:
    """Rows that this machine cannot run are at least spelled right; nothing is run."""
    from softfloat.testing.hardware.instructions import machine_code

    features = "+f16c,+fma,+avx512f,+avx512bw,+avx512vl,+avx512bf16,+avx512fp16"
    make = TABLE[name].code
    assert make is not None
    for mode in TABLE[name].modes:
        assert len(machine_code(make(mode), "sapphirerapids", features)) > 500


# -- the table -------------------------------------------------------------------------------------------------------


def test_the_table_is_whole() -> None:
    assert len(TABLE) == len(instructions())
    for row in TABLE.values():
        assert row.source
        assert row.model
        assert set(row.extensions) <= {*EXTENSIONS, "CUDA"}
        assert set(row.families) <= set(FAMILIES)
        if row.is_checked:
            assert (row.run_model is None) == row.tiles
            assert row.formats
            assert [row.code is not None, row.tiles, row.scalar is not None].count(True) == 1
        else:
            assert row.model.startswith("not checked: ")
    assert {"VCVTPS2PH", "VCVTPH2PS", "VCVTNEPS2BF16", "VDPBF16PS"} <= {x.name for x in TABLE.values() if x.is_checked}


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.is_checked and not row.tiles])
def test_operands(name: str) -> None:
    row = TABLE[name]
    for family in row.families:
        drawn = drawn_operands(row, family, 500, np.random.default_rng(0))
        again = drawn_operands(row, family, 500, np.random.default_rng(0))
        assert len(drawn) == len(row.formats)
        assert len({x.shape for x in drawn}) == 1
        assert all(np.array_equal(x, y) for x, y in zip(drawn, again, strict=True))


def test_features() -> None:
    found = hardware_model.features()
    assert set(found.extensions) == {*EXTENSIONS, "CUDA"}
    assert found.extensions["CUDA"] == bool(found.gpus)
    assert found.lacks(["no such extension"]) == ["no such extension"]
    if not X86:
        assert not any(found.extensions[name] for name in EXTENSIONS)


# -- other machines --------------------------------------------------------------------------------------------------

NOTHING = Features("riscv64", "generic", dict.fromkeys([*EXTENSIONS, "CUDA"], False), ())


def test_a_machine_without_any_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from softfloat.testing.hardware import instructions

    monkeypatch.setattr(hardware_model, "features", lambda: NOTHING)
    monkeypatch.setattr(instructions, "Assembled", lambda code: pytest.fail(f"assembled {code}"))
    found = check_hardware(samples=10)
    assert {x.status for x in found} == {"not available"}
    assert len(found) == len(TABLE)
    assert all(x.reason and not x.cases for x in found)
    run = Run("hardware", "--samples", "10")
    assert run.status == 0
    assert "nothing here to check against" in run.out
    assert Run("hardware", "--json").document["passed"] is True


def test_a_machine_with_everything_says_what_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = dict.fromkeys([*EXTENSIONS, "CUDA"], True)
    monkeypatch.setattr(hardware_model, "features", lambda: Features("x86_64", "x", everything, ("A GPU (sm_90)",)))
    found = check_hardware(["TDPBSSD", "mma.sync"])
    assert [x.status for x in found] == ["not checked", "not checked"]
    assert "A GPU (sm_90)" in Run("hardware", "TDPBSSD").out


# -- tiles -----------------------------------------------------------------------------------------------------------

EVERYTHING = Features("x86_64", "x", dict.fromkeys([*EXTENSIONS, "CUDA"], True), ())


@pytest.mark.skipif(not X86, reason="LLVM's assembler for x86")
@pytest.mark.parametrize(("name", "extension", "prefix"), [("TDPBF16PS", "bf16", 0x6A), ("TDPFP16PS", "fp16", 0x6B)])
def test_tile_instructions_are_assembled(name: str, extension: str, prefix: int) -> None:
    """VEX.128.F3 or F2.0F38.W0 5C /r (Intel SDM, volume 2): sums in tmm0, a in tmm1, b in tmm2."""
    code = tiles.machine_code(name, "sapphirerapids", f"+amx-tile,+amx-{extension}")
    assert bytes([0xC4, 0xE2, prefix, 0x5C, 0xC1]) in code
    assert bytes([0xC4, 0xE2, 0x78, 0x49, 0xC0]) in code  # TILERELEASE


def test_tiles_are_configured() -> None:
    made = tiles.configuration()
    assert made.size == 64
    assert made[0] == 1
    assert made[16:22].view("<u2").tolist() == [64, 64, 64]
    assert made[48:51].tolist() == [16, 16, 16]
    assert not made[[*range(1, 16), *range(22, 48), *range(51, 64)]].any()


@pytest.mark.parametrize("name", ["TDPBF16PS", "TDPFP16PS"])
def test_tile_products_are_compared(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """By a stand-in for the instruction: the oracle, one sum at a time, which is right, and then wrong in one bit."""
    fmt = TABLE[name].formats[1]

    def stand_in(_: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, flipped: int = 0) -> np.ndarray:
        made = np.array(c)
        for i, j in ((0, 0), (3, 15), (15, 2)):
            made[i, j] = dots.amx(a[i].tolist(), b[:, j].tolist(), (fmt, fmt), c=int(c[i, j]))[0]
        rest, _ = bits.matmul(a, b, fmt, amx(fmt), c)
        chosen = np.zeros(made.shape, bool)
        chosen[[0, 3, 15], [0, 15, 2]] = True
        return np.where(chosen, made, rest) ^ np.where(chosen, flipped, 0).astype(np.uint32)

    monkeypatch.setattr(hardware_model, "features", lambda: EVERYTHING)
    monkeypatch.setattr(tiles, "permitted", lambda: "")
    monkeypatch.setattr(tiles, "product", stand_in)
    (found,) = check_hardware([name], samples=500)
    assert (found.status, found.mismatches) == ("agrees", 0)
    assert found.cases >= 500
    monkeypatch.setattr(tiles, "product", lambda *x: stand_in(*x, flipped=1))
    (found,) = check_hardware([name], samples=500)
    assert found.status == "differs"
    assert 0 < found.mismatches <= 9
    assert len(found.examples[0].operands) == 65
    monkeypatch.setattr(tiles, "permitted", lambda: "no permission")
    (found,) = check_hardware([name], samples=500)
    assert (found.status, found.reason) == ("not available", "no permission")


# -- scalar instructions of a GPU ------------------------------------------------------------------------------------

SCALARS = [name for name, row in TABLE.items() if row.scalar is not None and row.is_checked]


def test_scalar_instructions_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a stand-in for the GPU: the model itself, right and then wrong in one code; and a driver that refuses."""

    def stand_in(flipped: int) -> Callable[[ScalarInstruction, Operands], np.ndarray]:
        return lambda one, operands: one.run(operands) ^ (operands[0] == 0x7F81).astype(one.result.dtype) * flipped

    def refused(*_: object) -> None:
        raise RuntimeError("cuModuleLoadData of the CUDA driver failed with 209")

    monkeypatch.setattr(hardware_model, "features", lambda: EVERYTHING)
    monkeypatch.setattr(cuda, "results", stand_in(0))
    (here,) = check_hardware(["cvt.f32.bf16"], samples=100)
    assert (here.status, here.reason) == ("not checked", "it runs on device 'cuda'")
    (right,) = check_hardware(["cvt.f32.bf16"], samples=100, device="cuda")
    assert (right.status, right.cases, right.exhaustive) == ("agrees", 65536, True)
    monkeypatch.setattr(cuda, "results", stand_in(1 << 22))
    (wrong,) = check_hardware(["cvt.f32.bf16"], samples=100, device="cuda")
    assert (wrong.status, wrong.mismatches) == ("differs", 1)
    assert (wrong.examples[0].found, wrong.examples[0].expected) == (0x7FC10000, 0x7F810000)
    monkeypatch.setattr(cuda, "results", refused)
    (old,) = check_hardware(["cvt.f32.bf16"], samples=100, device="cuda")
    assert (old.status, old.reason) == ("not available", "cuModuleLoadData of the CUDA driver failed with 209")


def test_calls_of_a_gpus_instructions() -> None:
    """What NVIDIA's names say: the parts of a name, in any place."""
    for name, call in (
        ("fma.rn.ftz.f16", 'fma(a, b, c, "float16") under Environment.nvidia(ftz=True)'),
        ("min.NaN.bf16", 'minimum(a, b, "bfloat16") under Environment.nvidia()'),
        ("cvt.rn.f16.f64", 'convert(x, "float64", "float16") under Environment.nvidia()'),
        ("max.f32", 'maximum_number(a, b, "float32") under Environment.nvidia()'),
        (
            "cvt.rn.relu.bf16.f32",
            'maximum(convert(x, "float32", "bfloat16"), 0, "bfloat16") under Environment.nvidia()',
        ),
        (
            "cvt.rna.tf32.f32",
            'convert(x, "float32", "tfloat32") << 13 under Environment.nvidia().replace(rounding=\'nearest_away\')',
        ),
    ):
        assert TABLE[name].model == call


@pytest.mark.parametrize(
    ("name", "operands", "result"),
    [  # read off an H100
        ("fma.rn.ftz.f16", (0x0400, 0x0400, 0x8400), 0x8400),
        ("fma.rn.relu.f16", (0xBC00, 0x3C00, 0x0000), 0x0000),
        ("fma.rn.relu.f16", (0xFE01, 0x3C00, 0x0000), 0x7FFF),
        ("fma.rn.sat.f16", (0xFE01, 0x3C00, 0x0000), 0x0000),
        ("fma.rn.sat.f16", (0x4000, 0x3C00, 0x0000), 0x3C00),
        ("min.f16", (0x7D01, 0x3C00), 0x3C00),
        ("min.NaN.f16", (0x7D01, 0x3C00), 0x7FFF),
        ("min.f16", (0x0000, 0x8000), 0x8000),
        ("cvt.f32.bf16", (0xFF81,), 0xFF810000),
        ("cvt.rna.tf32.f32", (0x7F800001,), 0x7F800000),
        ("cvt.rna.tf32.f32", (0x3F801000,), 0x3F802000),
        ("cvt.rn.tf32.f32", (0x7F800001,), 0x7FFFE000),
        ("cvt.rz.tf32.f32", (0xFF800001,), 0x7FFFE000),
        ("cvt.rn.satfinite.f16.f32", (0x7F800000,), 0x7BFF),
        ("cvt.rn.satfinite.f16.f32", (0xFFC00000,), 0x7FFF),
        ("neg.f16", (0x7C01,), 0x7FFF),
        ("neg.f16", (0x0000,), 0x8000),
        ("abs.f32", (0xFF800001,), 0x7FFFFFFF),
        ("abs.f32", (0x80000001,), 0x00000001),
        ("cvt.rni.f16.f16", (0xB800,), 0x8000),
        ("cvt.rn.satfinite.e4m3x2.f32", (0x7F800000,), 0x7E),
        ("cvt.rn.satfinite.e5m2x2.f32", (0xFFC00000,), 0x7F),
        ("cvt.rn.f16.f64", (0xFFF8000000000000,), 0xFE00),
        ("fma.rn.f64", (0x7FF0000000000000, 0, 0x7FF0000000000001), 0x7FF8000000000001),
        ("mul.rn.f64", (0x7FF0000000000000, 0), 0xFFF8000000000000),
        ("fma.rn.f64", (0x7FF8000000000000, 0x7FF0000000000001, 0x7FF8000000000000), 0x7FF8000000000001),
        ("fma.rn.f64", (0x7FF8000000000000, 0x8000000000000000, 0xFFF8000000000123), 0xFFF8000000000123),
        ("add.rn.f64", (0x7FF8000000000000, 0xFFF8000000000123), 0xFFF8000000000123),
    ],
)
def test_what_a_gpu_gives(name: str, operands: tuple[int, ...], result: int) -> None:
    row = TABLE[name]
    kinds = [x.dtype for x in row.formats]
    assert row.scalar is not None
    assert row.scalar.run([np.array([x], kind) for x, kind in zip(operands, kinds, strict=True)]).tolist() == [result]


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas, of the CUDA toolkit")
@pytest.mark.parametrize("name", SCALARS[::8])
def test_ptxas_assembles_it(name: str, tmp_path: Path) -> None:
    one = TABLE[name].scalar
    assert one is not None
    (tmp_path / "one.ptx").write_text(cuda.module_text(one))
    command = ["ptxas", "-arch=sm_90", "one.ptx", "-o", "one.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# -- mismatches ------------------------------------------------------------------------------------------------------


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of VCVTPH2PS that is wrong about one code, and about the flags of another."""
    needs("VCVTPH2PS")
    row = TABLE["VCVTPH2PS"]

    def model(operands: Operands, options: dict) -> tuple[np.ndarray, np.ndarray]:
        codes, flags = bits.convert(operands[0], "float16", "float32", nan="x86")
        return codes ^ np.where(operands[0] == 0x3C01, 2, 0).astype(np.uint32), flags | (operands[0] == 0x4000)

    monkeypatch.setattr(hardware_model, "instructions", lambda: (dataclasses.replace(row, run_model=model),))


@pytest.mark.usefixtures("wrong")
def test_mismatches_are_seen() -> None:
    (outcome,) = check_hardware()
    assert outcome.status == "differs"
    assert (outcome.mismatches, outcome.flag_mismatches) == (2, 2)  # in both settings of the register
    first, second = outcome.examples[:2]
    assert (first.operands, first.found, first.expected) == ((0x3C01,), 0x3F802000, 0x3F802002)
    assert (second.operands, second.found_flags, second.expected_flags) == ((0x4000,), 0, 1)
    assert first.setting == "as the process starts"


@pytest.mark.usefixtures("wrong")
def test_the_command_line_shows_mismatches() -> None:
    run = Run("hardware")
    assert run.status == 1
    for words in ("VCVTPH2PS", "differs", "0x3c01", "0x3f802002", "4 mismatches"):
        assert words in run.out
    document = Run("hardware", "--json").document
    assert document["passed"] is False
    assert document["outcomes"][0]["examples"][0]["operands"] == [0x3C01]


# -- interruption, arguments, command line ---------------------------------------------------------------------------


def test_an_interrupted_check_keeps_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("VCVTPS2PH")
    found: list[Outcome] = []

    def stop(what: str, done: int, total: int) -> None:
        if what.endswith("toward_negative"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_hardware(["VCVTPS2PH"], samples=300, outcomes=found, progress=stop)
    assert [x.mode for x in found] == ["nearest_even", "toward_negative"]
    assert found[0].cases == 600
    assert 0 < found[1].cases < 600
    assert not found[1].exhaustive

    def interrupted(names: object, *, outcomes: list[Outcome], **_: object) -> None:
        outcomes.append(Outcome("VCVTPS2PH", "nearest_even", "agrees", cases=600, seconds=1.0))
        raise KeyboardInterrupt

    monkeypatch.setattr(hardware_model, "check_hardware", interrupted)
    run = Run("hardware")
    assert run.status == 130
    assert "600 operands, 0 mismatches; interrupted" in run.out
    assert Run("hardware", "--json").document["interrupted"] is True


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"device": "tpu"}, ValueError, "device must be 'cpu' or 'cuda', got 'tpu'"),
        ({"samples": 0}, ValueError, "samples must be at least 1"),
        ({"samples": 1.5}, TypeError, "samples must be an integer"),
        ({"seed": -1}, ValueError, "seed must be an integer from 0"),
        ({"scheduler": "threads"}, ValueError, "scheduler must be None unless exhaustive"),
        ({"manifest": "x", "exhaustive": True}, ValueError, "manifest must be None without a scheduler"),
        ({"names": ["VADDPD"]}, ValueError, "names must be among 'VCVTPS2PH'"),
    ],
)
def test_arguments(arguments: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        check_hardware(**arguments)


def test_command_line() -> None:
    run = Run("hardware", "--samples", "500", "--seed", "7", "--json")
    assert run.status == 0
    document = run.document
    assert document["seed"] == 7
    assert {x["status"] for x in document["outcomes"]} <= set(STATUSES) - {"differs"}
    assert {x["instruction"] for x in document["outcomes"]} == set(TABLE)
    assert set(document["features"]["extensions"]) == {*EXTENSIONS, "CUDA"}
    listed = Run("hardware", "--list")
    assert listed.status == 0
    assert all(name.split()[0] in listed.out for name in TABLE)
    few = Run("hardware", "--list", "--json", "vdpbf16ps").document["instructions"]
    assert [x["name"] for x in few] == ["VDPBF16PS"]
    assert few[0]["formats"] == ["float32", "bfloat16", "bfloat16"]
    Run("hardware", "--device", "tpu").assert_error("device must be 'cpu' or 'cuda', got 'tpu'")
    Run("hardware", "nonsense").assert_error("nonsense", "accepted: VCVTPS2PH")
    Run("hardware", "--samples", "0").assert_error("--samples", "positive integer")
    Run("hardware", "--scheduler", "threads").assert_error("scheduler must be None unless exhaustive")
    pytest.importorskip("dask.array", reason="needs the extra 'dask'")
    Run("hardware", "--exhaustive", "--scheduler", "nobody").assert_error("scheduler must be 'threads'", "tcp://")
