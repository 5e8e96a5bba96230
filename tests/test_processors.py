"""Environments of processors: registers as settings, against operations restated, and the CPU that runs the test where it is x86."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from operands import edges

import softfloat
from softfloat import Environment, Format, bits, float16, float32, reference
from softfloat.accumulators import STANDINGS, fma
from softfloat.processors import ENVIRONMENT_ROWS
from softfloat.testing.hardware.features import features
from softfloat.testing.hardware.table import instructions

FMA = fma("float32")
TINY = 0x00000001  # the least subnormal single
NEAR = 0x20000400, 0x1FFFF800  # (1 + 2^-13) * 2^-63 and (1 - 2^-13) * 2^-63, whose product is just below 2^-126
INEXACT, UNDERFLOW, INVALID = 1, 2, 16


@pytest.mark.parametrize("row", ENVIRONMENT_ROWS, ids=lambda row: row.name)
def test_rows(row: Any) -> None:
    made = eval(row.example, {"Environment": Environment})
    assert isinstance(made, Environment)
    assert row.standing in STANDINGS
    assert row.example.startswith(f"Environment.{row.name}(")
    assert row.source


def test_the_page_has_every_row() -> None:
    page = Path(__file__).parent.parent / "docs" / "processors.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    for row in ENVIRONMENT_ROWS:
        assert f"| `{row.example}` | {row.meaning} | {row.source} | {row.standing} |" in lines


@pytest.mark.parametrize("rounding", ["RN", "RP", "RM", "RZ"])
def test_arm_rounding(rounding: str) -> None:
    """1 + 2^-24 and its negative."""
    env = Environment.arm(rounding)
    up, down = (
        bits.add(x, y, float32, environment=env)[0] for x, y in ((0x3F800000, 0x33000000), (0xBF800000, 0xB3000000))
    )
    expected = {"RN": (0, 0), "RP": (1, 0), "RM": (0, 1), "RZ": (0, 0)}[rounding]
    assert (int(up) - 0x3F800000, int(down) - 0xBF800000) == expected


@pytest.mark.parametrize(
    ("register", "operand", "result"),
    [
        ({}, False, False),
        ({"fz": True}, True, True),
        ({"fiz": True}, True, False),
        ({"fz": True, "ah": True}, False, True),
        ({"fz": True, "fiz": True, "ah": True}, True, True),
    ],
)
def test_arm_flushes(register: dict[str, bool], operand: bool, result: bool) -> None:
    """The table of FPCR.FZ, FIZ and AH: which subnormals are zero, of singles, never of halves."""
    env = Environment.arm(**register)
    doubled, _ = bits.add(TINY, TINY, float32, environment=env)
    assert (int(doubled) == 0) == (operand or result)
    scaled, _ = bits.mul(TINY, 0x7E800000, float32, environment=env)  # 2^-149 * 2^126: only the operand is subnormal
    assert (int(scaled) == 0) == operand
    halved, flags = bits.mul(0x00800001, 0x3F000000, float32, environment=env)  # only the result is
    assert (int(halved) == 0) == result
    assert int(flags) & UNDERFLOW
    assert int(bits.add(1, 1, float16, environment=env)[0]) == 2
    assert int(bits.add(1, 1, float16, environment=Environment.arm(fz16=True))[0]) == 0


@pytest.mark.parametrize("register", list(itertools.product((False, True), repeat=4)))
def test_arm_conversions(register: tuple[bool, ...]) -> None:
    """FPUnpackCV and FPRoundCV of the Arm Architecture Reference Manual: FZ16 is taken for 0; FZ, FIZ and AH say what singles are."""
    fz, fiz, fz16, ah = register
    env = Environment.arm(fz=fz, fiz=fiz, fz16=fz16, ah=ah)
    for code in (1, 0x8001, 0x03FF):
        exact = np.array([code], np.uint16).view(np.float16).astype(np.float32).view(np.uint32)[0]
        assert bits.convert(code, float16, float32, environment=env) == (exact, 0)
        assert bits.convert(exact, float32, float16, environment=env) == (code, 0)
    zero = fiz or (fz and not ah)
    assert bits.convert(TINY, float32, float16, environment=env) == (0, 0 if zero else UNDERFLOW | INEXACT)
    narrowed = bits.convert(0x7FC00, float32, "bfloat16", environment=env)  # a subnormal that bfloat16 does not hold
    assert narrowed == ((0, 0) if zero else (0, UNDERFLOW | INEXACT) if fz else (8, UNDERFLOW | INEXACT))


def test_arm_tininess() -> None:
    """(1 - 2^-26) * 2^-126 is tiny before rounding, and not after."""
    for ah, raised in ((False, UNDERFLOW | INEXACT), (True, INEXACT)):
        code, flags = bits.mul(*NEAR, float32, environment=Environment.arm(ah=ah))
        assert (int(code), int(flags)) == (0x00800000, raised)


def test_arm_nans() -> None:
    quiet, signalling = 0x7FC00001, 0xFF800002
    found = {
        name: int(bits.add(quiet, signalling, float32, environment=env)[0])
        for name, env in {
            "DN=0": Environment.arm(),
            "DN=1": Environment.arm(dn=True),
            "AH=1": Environment.arm(ah=True),
        }.items()
    }
    assert found == {"DN=0": 0xFFC00002, "DN=1": 0x7FC00000, "AH=1": 0x7FC00001}
    made = [int(bits.mul(0, 0x7F800000, float32, environment=Environment.arm(ah=ah))[0]) for ah in (False, True)]
    assert made == [0x7FC00000, 0xFFC00000]


def pseudo_code_fused(operands: tuple[int, int, int], ah: bool, dn: bool) -> tuple[int, int]:
    """FPMulAdd, FPProcessNaNs3 and FPProcessNaN of the Arm Architecture Reference Manual, where a NaN or inf * 0 is among singles."""
    magnitudes = [x & 0x7FFFFFFF for x in operands]
    nan, quiet = [x > 0x7F800000 for x in magnitudes], [x >= 0x7FC00000 for x in magnitudes]
    signals = [a and not b for a, b in zip(nan, quiet, strict=True)]
    invalid_product = sorted(magnitudes[:2]) == [0, 0x7F800000]
    default = 0xFFC00000 if ah else 0x7FC00000
    if not any(nan):
        assert invalid_product
        return default, INVALID
    flags = INVALID if any(signals) else 0
    if ah:  # n, then m, then the addend
        chosen = nan.index(True)
    else:  # the addend, then n, then m; signalling ones first
        order = (2, 0, 1)
        chosen = next((i for i in order if signals[i]), -1)
        chosen = next(i for i in order if nan[i]) if chosen < 0 else chosen
    result = default if dn else operands[chosen] | 0x00400000
    if not ah and nan[2] and quiet[2] and invalid_product:
        result, flags = default, INVALID
    return result, flags


@pytest.mark.parametrize("dn", [False, True])
@pytest.mark.parametrize("ah", [False, True])
def test_arm_fused_nans(ah: bool, dn: bool) -> None:
    marks = (0, 0x80000000, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFC00002, 0x7F800003, 0xFF800004)
    rows = [
        row
        for row in itertools.product(marks, repeat=3)
        if any(x & 0x7FFFFFFF > 0x7F800000 for x in row) or sorted(x & 0x7FFFFFFF for x in row[:2]) == [0, 0x7F800000]
    ]
    env = Environment.arm(ah=ah, dn=dn)
    codes, flags = bits.fma(*np.array(rows, np.uint32).T, float32, environment=env)
    wanted = [pseudo_code_fused(row, ah, dn) for row in rows]
    assert [(int(code), int(flag)) for code, flag in zip(codes, flags, strict=True)] == wanted
    for row, (code, flag) in zip(rows[::7], wanted[::7], strict=True):
        assert bits.scalar("fma", float32, environment=env)(*row) == (code, flag)
        assert reference.fma(*row, float32, tininess=env.tininess, nan=env.nan) == (code, flag)


@pytest.mark.parametrize("dn", [False, True])
@pytest.mark.parametrize("ah", [False, True])
def test_arm_nans_elsewhere(ah: bool, dn: bool) -> None:
    """One NaN, conversions and sums: the default NaN has the sign AH, integers of a NaN are 0, others saturate (FPToFixed)."""
    env, default, half = Environment.arm(ah=ah, dn=dn), 0xFFC00000 if ah else 0x7FC00000, 0xFE00 if ah else 0x7E00
    assert bits.sqrt(0xFF800005, float32, environment=env) == (default if dn else 0xFFC00005, INVALID)
    assert bits.sqrt(0xBF800000, float32, environment=env) == (default, INVALID)
    assert bits.convert(0x7FC02000, float32, float16, environment=env) == (half if dn else 0x7E01, 0)
    assert int(bits.add(0x7C00, 0xFC00, float16, environment=env)[0]) == half
    integers, flags = bits.to_integer([0x7FC00000, 0x7F000000, 0xFF000000], float32, "int32", environment=env)
    assert (integers.tolist(), flags.tolist()) == ([0, 2**31 - 1, -(2**31)], [INVALID] * 3)
    sums, raised = bits.vecdot([[0, 1], [0x7FC00001, 1]], [[0x7F800000, 1]] * 2, float32, FMA, environment=env)
    assert sums.tolist() == [default, default if dn else 0x7FC00001]
    assert raised[0] & INVALID


SINGLE = (float32, 0x80000000, 0x7F800000, 0x00400000, 0x00800000)
HALF = (float16, 0x8000, 0x7C00, 0x0200, 0x0400)
"""Format, sign, infinity, the bit of quiet NaNs, the smallest normal number."""


def pseudo_code_chosen(
    operands: tuple[int, int], fields: Any, largest: bool, number: bool, ah: bool, dn: bool, flushes: tuple[bool, bool]
) -> tuple[int, int]:
    """FPMin, FPMax, FPMinNum and FPMaxNum of the Arm Architecture Reference Manual; `flushes`: subnormal operands, results."""
    _, sign, infinity, quiet_bit, normal = fields
    a, b = operands

    def is_nan(x: int) -> bool:
        return x & ~sign > infinity

    def is_quiet(x: int) -> bool:
        return is_nan(x) and bool(x & quiet_bit)

    def is_zero(x: int) -> bool:
        return x & ~sign < (normal if flushes[0] else 1)

    if number and not (ah and is_nan(a) and is_nan(b)):
        beyond = infinity | (sign if largest else 0)
        if is_quiet(a) and not is_quiet(b):
            a = beyond
        elif is_quiet(b) and not is_quiet(a):
            b = beyond
    alternate = ah and not number
    if alternate and is_zero(a) and is_zero(b) and (a ^ b) & sign:
        return b & sign, 0
    if alternate and (is_nan(a) or is_nan(b)):
        return (b & sign if is_zero(b) else b), INVALID
    if is_nan(a) or is_nan(b):
        nans = [x for x in (a, b) if is_nan(x)]
        chosen = nans[0] if ah else next((x for x in nans if not is_quiet(x)), nans[0])
        invalid = INVALID if not all(is_quiet(x) for x in nans) else 0
        return (infinity | quiet_bit | (sign if ah else 0) if dn else chosen | quiet_bit), invalid
    rank = [0 if is_zero(x) else -(x & ~sign) if x & sign else x for x in (a, b)]
    chosen = a if (rank[0] > rank[1] if largest else rank[0] < rank[1]) else b
    if is_zero(chosen):
        return (a & b if largest else a | b) & sign, 0
    if chosen & ~sign < normal and flushes[1] and not alternate:
        return chosen & sign, UNDERFLOW | INEXACT
    return chosen, 0


@pytest.mark.parametrize("name", ["minimum", "maximum", "minimum_number", "maximum_number"])
@pytest.mark.parametrize("ah", [False, True])
def test_arm_choices(ah: bool, name: str) -> None:
    """FMIN, FMAX, FMINNM and FMAXNM of all kinds of operands under every setting of FZ, FIZ, FZ16 and DN."""
    largest, number = name.startswith("max"), name.endswith("number")
    for dn, fz, other, fields in itertools.product((False, True), (False, True), (False, True), (SINGLE, HALF)):
        fmt, sign, infinity, quiet, normal = fields
        single = fmt == float32
        env = Environment.arm(ah=ah, dn=dn, fz=fz, **({"fiz": other} if single else {"fz16": other}))
        flushes = (other or (fz and not ah), fz) if single else (other, other)
        sizes = 0, 1, normal - 1, normal, normal + 1, infinity, infinity + 1, infinity | quiet, infinity | quiet | 3
        marks = [x | s for x in sizes for s in (0, sign)]
        rows = list(itertools.product(marks, repeat=2))
        codes, flags = getattr(bits, name)(*np.array(rows, fmt.dtype).T, fmt, environment=env)
        wanted = [pseudo_code_chosen(row, fields, largest, number, ah, dn, flushes) for row in rows]
        assert [(int(code), int(flag)) for code, flag in zip(codes, flags, strict=True)] == wanted
        own = env.settings.for_format(fmt.name)
        options = {"nan": own.nan, "daz": own.daz, "ftz": own.ftz}
        for row, pair in zip(rows[::5], wanted[::5], strict=True):
            assert bits.scalar(name, fmt, environment=env)(*row) == pair
            assert getattr(reference, name)(*row, fmt, **options) == pair


@pytest.mark.parametrize("ah", [False, True])
def test_nans_are_quieted_whatever_the_choice(ah: bool) -> None:
    """What takes NaNs through a choice elsewhere: a quiet one raises nothing, a signalling one is quieted and INVALID."""
    env = Environment.arm(ah=ah, fz=True)
    codes, flags = bits.next_up([0x7FC00001, 0x7F800003, 1], float32, environment=env)
    assert (codes.tolist(), flags.tolist()) == ([0x7FC00001, 0x7FC00003, 2], [0, INVALID, 0])
    with env.replace() as entered:
        x = softfloat.from_codes([0x7FC00001, 0x3F800000, 0x7F800003], float32)
        assert np.sign(x[:2]).codes.tolist() == [0x7FC00001, 0x3F800000]
        assert np.nextafter(x[:2], x[1::-1]).codes.tolist() == [0x7FC00001] * 2
        assert entered.status.flags == 0
        assert np.max(x[2:]).codes == 0x7FC00003
        assert entered.status.flags == INVALID


def test_x86_register() -> None:
    start = Environment.x86()
    assert (start.rounding.name, start.daz, start.ftz, int(start.traps)) == ("NEAREST_EVEN", False, False, 0)
    modes = [Environment.x86(0x1F80 | rc << 13).rounding.name for rc in range(4)]
    assert modes == ["NEAREST_EVEN", "TOWARD_NEGATIVE", "TOWARD_POSITIVE", "TOWARD_ZERO"]
    assert Environment.x86(0x9F80).ftz
    assert not Environment.x86(0x9780).ftz  # the underflow trap is not masked
    assert int(Environment.x86(0x9780).traps) == UNDERFLOW
    assert int(Environment.x86(0x1F00).traps) == INVALID
    assert int(Environment.x86(0x1E80).traps) == 0  # that of denormal operands


def test_riscv() -> None:
    tie = 0x3F800000, 0x33800000  # 1 + 2^-24
    found = [
        int(bits.add(*tie, float32, environment=Environment.riscv(x))[0]) - tie[0] for x in ("RNE", "RMM", "RUP", "RTZ")
    ]
    assert found == [0, 1, 1, 0]
    env = Environment.riscv()
    assert int(bits.add(0xFFC00001, tie[0], float32, environment=env)[0]) == 0x7FC00000
    assert int(bits.mul(*NEAR, float32, environment=env)[1]) == INEXACT


def test_nvidia_nans() -> None:
    """Read off an H100: 0x7F81 -> 0x7F810000 by cvt.f32.bf16, cvt.rna.tf32.f32 makes infinity of 0x7F800001, from float64 payloads come along."""
    env = Environment.nvidia()
    away = env.replace(rounding="nearest_away")
    shifted = [0x7F81, 0xFF81, 0x7FC1, 0xFFFF, 0x7F80]
    assert bits.convert(shifted, "bfloat16", float32, environment=env)[0].tolist() == [x << 16 for x in shifted]
    singles = [0x7F800001, 0xFF800001, 0x7F802000, 0xFFC12345, 0x7FFFFFFF]
    assert bits.convert(singles, float32, "tfloat32", environment=away)[0].tolist() == [x >> 13 for x in singles]
    assert bits.convert(singles, float32, "tfloat32", environment=env)[0].tolist() == [0x3FFFF] * 5
    assert bits.convert(singles, float32, float16, environment=env)[0].tolist() == [0x7FFF] * 5
    doubles = np.array([0xFFF8000000000000, 0x7FF0000000000001, 0xFFF4000000000000], np.uint64).view(np.float64)
    assert bits.encode(doubles, float16, environment=env)[0].tolist() == [0xFE00, 0x7E00, 0xFF00]
    assert bits.encode(doubles, float32, environment=env)[0].tolist() == [0xFFC00000, 0x7FC00000, 0xFFE00000]
    assert int(bits.add(0xFFC12345, 0x3F800000, float32, environment=env)[0]) == 0x7FFFFFFF
    assert int(bits.convert(0x7F81, "bfloat16", float16, environment=env)[0]) == 0x7FFF


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "uint64"])
def test_nvidia_integers(dtype: str) -> None:
    """cvt.rni on an H100: NaN becomes 0, in 64 bits 0x8000000000000000; what is too large the nearest integer."""
    env = Environment.nvidia()
    found, _ = bits.to_integer(
        [0x7F800001, 0xFFC00000, 0x7F800000, 0xFF800000, 0xC0200000], float32, dtype, environment=env
    )
    info, wide = np.iinfo(dtype), np.dtype(dtype).itemsize == 8
    assert found.view(f"u{found.itemsize}").tolist()[:2] == [1 << 63 if wide else 0] * 2
    assert found.tolist()[2:4] == [info.max, info.min]
    assert int(found[4]) == max(-2, info.min)
    compiled = softfloat.jit.function("to_integer", float32, dtype=dtype, environment=env)
    assert [int(compiled(x)) for x in (0x7F800001, 0x7F800000)] == [int(found[0]), info.max]


CONVERTED = [
    ("bfloat16", float32, "nearest_even"),
    (float32, "tfloat32", "nearest_away"),
    (float32, "tfloat32", "toward_zero"),
    (float32, "bfloat16", "nearest_even"),
]


@pytest.mark.parametrize(("source", "result", "rounding"), CONVERTED)
def test_nvidia_conversions_in_every_way(source: Any, result: Any, rounding: str) -> None:
    """Arrays long and short, code by code, compiled into users' code, blocks of larger wholes, and the oracle."""
    source, result = (softfloat.formats.ROSTER[getattr(x, "name", x)] for x in (source, result))
    env = Environment.nvidia().replace(rounding=rounding)
    random = np.random.default_rng(3)
    nans = source.spec.infinity + random.integers(0, source.spec.infinity & -source.spec.infinity, 40)
    codes = np.concatenate([nans, nans | source.sign_bit, edges(source)]).astype(source.dtype)
    options = {"nan": "nvidia", "rounding": rounding}
    wanted = [reference.convert(int(x), source, result, **options) for x in codes]
    scalar = bits.scalar("convert", source, to=result, environment=env)
    inlined = softfloat.jit.function("convert", source, to=result, flags=True, environment=env)
    long, flags = bits.convert(np.resize(codes, 20_000), source, result, environment=env)
    for i, pair in enumerate(wanted):
        code = int(codes[i])
        assert (int(long[i]), int(flags[i])) == pair
        assert tuple(map(int, scalar(code))) == pair
        if i % 40 == 0:
            assert tuple(map(int, inlined(code))) == pair
            assert tuple(map(int, bits.convert(code, source, result, environment=env))) == pair


def test_nvidia_flushes() -> None:
    """.ftz: what is tiny after rounding, 0x0400 * 0x0400 - 0x0400 in half, is 0x8400; bfloat16 and conversions know none."""
    env = Environment.nvidia(ftz=True)
    assert int(bits.fma(0x0400, 0x0400, 0x8400, float16, environment=env)[0]) == 0x8400
    assert int(bits.add(0x83FF, 0x8000, float16, environment=env)[0]) == 0x8000
    assert int(bits.mul(*NEAR, float32, environment=env)[0]) == 0x00800000
    assert int(bits.add(1, 1, float32, environment=env)[0]) == 0
    assert int(bits.add(1, 1, "bfloat16", environment=env)[0]) == 2
    assert int(bits.convert(0x0001, "bfloat16", float32, environment=env)[0]) == 0x00010000
    assert int(bits.convert(0x00010000, float32, "bfloat16", environment=env)[0]) == 0x0001
    assert int(bits.convert(0x0001, float16, float32, environment=env)[0]) == 0x33800000
    assert int(bits.convert(0x33800000, float32, float16, environment=env)[0]) == 0x0001
    assert int(bits.add(1, 1, float16, environment=Environment.nvidia())[0]) == 2
    with pytest.raises(TypeError, match="ftz must be True or False"):
        Environment.nvidia(ftz="yes")  # type: ignore[arg-type]


def test_avx10_bf16() -> None:
    env = Environment.avx10_bf16()
    assert int(bits.add(0x0001, 0x0001, "bfloat16", environment=env)[0]) == 0
    assert int(bits.mul(0x0081, 0xBF00, "bfloat16", environment=env)[0]) == 0x8000
    assert int(bits.add(0x3F80, 0x3B80, "bfloat16", environment=env)[0]) == 0x3F80  # a tie to even


CHECKED = [row for row in instructions() if row.is_checked and row.flags and not row.packed]
SPECIAL = np.array([0, 1, 0x7FFFFF, 0x800000, *NEAR, 0x7F7FFFFF, 0x7F800000, 0x7FC00001, 0xFF800002], np.uint32)


def marks(fmt: Format, result: Format) -> np.ndarray:
    """Codes at every boundary, of singles those next to a narrower result's, too."""
    if fmt.bits != 32:
        return edges(fmt)
    beside = np.asarray(bits.convert(edges(result), result, fmt)[0]) if result.bits < 32 else SPECIAL
    return np.concatenate([SPECIAL, beside - np.uint32(1), beside, beside + np.uint32(1)])


@pytest.mark.skipif(bool(features().lacks(("AVX",))), reason="no x86 with AVX")
@pytest.mark.parametrize("row", CHECKED, ids=lambda row: row.name)
@pytest.mark.parametrize("mxcsr", [0x1F80, 0x1FC0, 0x9F80, 0x9FC0, 0x7F80, 0x3FC0])
def test_x86_against_the_cpu(row: Any, mxcsr: int) -> None:
    """The instruction under the register, and the model under the environment made from it: arithmetic and conversions."""
    if features().lacks(row.extensions):
        pytest.skip("not of this machine")
    from softfloat.testing.hardware.instructions import assemble

    env, random = Environment.x86(mxcsr), np.random.default_rng(mxcsr)
    operands = tuple(
        np.concatenate(
            [random.choice(marks(fmt, row.result), 400), random.integers(0, 2**fmt.bits, 800).astype(fmt.dtype)]
        )
        for fmt in row.formats
    )
    assert row.code is not None
    mode = env.rounding.name.lower()  # of an immediate, which counts instead of the register's in conversions
    codes, flags = assemble(row.code(mode)).each(operands, mxcsr)
    name = row.model.partition("(")[0]
    formats = (row.formats[0], row.result) if name == "convert" else row.formats[:1]
    expected = getattr(bits, name)(*operands, *formats, environment=env)
    np.testing.assert_array_equal(codes, expected[0])
    np.testing.assert_array_equal(flags, expected[1])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Environment.arm("RMM"), ValueError, "rounding"),
        (lambda: Environment.arm(fz=1), TypeError, "fz"),
        (lambda: Environment.x86(1 << 16), ValueError, "mxcsr"),
        (lambda: Environment.x86("0x1F80"), TypeError, "mxcsr"),
        (lambda: Environment.riscv("to_odd"), ValueError, "RMM"),
    ],
)
def test_refusals(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
