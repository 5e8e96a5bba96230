"""Exported libraries: the bits of softfloat.bits, from C, C++, SystemVerilog and ctypes, and nothing undefined."""

from __future__ import annotations

import ctypes
import io
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import exported
import numpy as np
import pytest
from commands import Run

from softfloat import Environment, Format, bits, export
from softfloat.accumulators import PRESETS, Accumulator, Stage, tensor_core
from softfloat.engine.native import Job
from softfloat.export import FUNCTIONS, TARGETS, Prototype
from softfloat.export.functions import prototypes
from softfloat.export.headers import header
from softfloat.export.library import FILES, request
from softfloat.export.scripts import module
from softfloat.testing import check_vectors, resolve
from softfloat.testing.vectors.operations import Case

LIBM = {"floor", "ceil", "trunc", "rint", "fmod", "sqrt"}
FUNCTIONS_HERE = ("fma", "convert", "encode", "decode", "lt")
FORMATS_HERE = ("float16", "float8_e4m3fn", "float6_e2m3fn")


def needs(*tools: str) -> None:
    """Skip where a tool is not installed."""
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


class Library(NamedTuple):
    folder: Path
    prototypes: list[Prototype]
    functions: ModuleType

    def named(self, name: str) -> Prototype:
        return next(x for x in self.prototypes if x.name == name)


TABLED = tuple(name for name, row in FUNCTIONS.items() if row.widest)


def made(folder: Path, **options: Any) -> Library:
    needs("gcc")
    prototypes = export.write(folder, target="generic", **options)
    return Library(folder, prototypes, exported.loaded(folder))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A few functions in a few formats."""
    return made(tmp_path_factory.mktemp("small") / "sf", functions=FUNCTIONS_HERE, formats=FORMATS_HERE, lengths=[4])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Every function, in formats of each kind, and dot products."""
    formats = (
        "float16",
        "bfloat16",
        "float32",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e8m0fnu",
        "float6_e2m3fn",
    )
    return made(
        tmp_path_factory.mktemp("whole") / "sf",
        functions=[name for name in FUNCTIONS if name not in TABLED],
        formats=formats,
        accumulators=SUMS,
        lengths=LENGTHS,
    )


SUMS = (
    *(row.example for row in PRESETS.values()),
    *("mul_add('float32')", "fma('float32')", "tensor_core('V100')", "chunked(4, fma('float16'), 'float32')"),
    *("tensor_core('B200', 'float8_e4m3fn')", "amd_mfma('CDNA2', 'bfloat16')", "compensated('float32', 'two_term')"),
)
LENGTHS = (1, 2, 3, 5, 8, 16, 17, 33)


# -- bits ------------------------------------------------------------------------------------------------------------------


def differences(
    library: Library,
    prototype: Prototype,
    environment: Environment,
    size: int,
    seed: int,
    loops: Sequence[ctypes.CDLL] = (),
) -> Any:
    """Rows whose result or flags are not those of softfloat.bits; functions of single codes, by `loops`, give what arrays have."""
    assert prototype.format is not None
    columns, output = exported.drawn_operands(prototype, size, seed), exported.output_of(prototype)
    address = (environment.seed, seed, 0) if prototype.form == "array_at" else ()
    more: dict[str, Any] = {"stream": seed} if address else {}
    rule = exported.rule(environment)
    found, flags, seen = exported.called(library.functions, prototype, columns, rule, address)
    if prototype.function == "to_integer":
        more["integer"] = next(x.kind for x in prototype.arguments if x.name == "results").removesuffix("_t")
    codes, raised = exported.wanted(prototype.function, columns, prototype.format, output, environment, **more)
    assert seen == np.bitwise_or.reduce(raised)
    name = prototype.name.removesuffix("_at").removesuffix("_array")
    for these in loops:
        if address:
            width = environment.sr_bits or 52
            handed = bits.random_bits(flags.size, seed=environment.seed, stream=seed, sr_bits=width)
            assert not exported.scalar_differences(these, f"{name}_random", columns, found, flags, rule, handed), name
            assert not exported.scalar_differences(
                these, f"{name}_at", columns, found, flags, rule, None, address[:2]
            ), name
        else:
            assert not exported.scalar_differences(these, name, columns, found, flags, rule), name
    return np.flatnonzero((found != codes) | (flags != raised))


@pytest.mark.exhaustive
def test_an_addend_in_a_format_without_subnormals_keeps_its_sign(tmp_path: Path) -> None:
    """Its code is a zero, and no subnormal that `unsigned_zeros` would make +0."""
    fmt = Format("e8m6_no_subnormals", exponent_bits=8, mantissa_bits=6, bias=-18, nan="none", subnormals=False)
    how = Accumulator(name="signs", running=Stage(fmt), product=Stage(fmt), unsigned_zeros=True)
    library = made(tmp_path / "sf", functions=[], formats=[fmt], accumulators=[how], lengths=[1])
    for daz in (False, True):
        environment = Environment(rounding="toward_negative", daz=daz)
        dot = library.functions.dot_signs_e8m6_no_subnormals_add
        assert dot([0x4002], [2], 0x4002, exported.rule(environment)) == (0x4000, 0)


def test_results_and_flags_are_those_of_bits(small: Library) -> None:
    tried = 0
    for prototype in small.prototypes:
        if prototype.form == "array":
            for seed, environment in enumerate(exported.environments(exported.output_of(prototype), 6)):
                assert not differences(small, prototype, environment, 1500, seed).size, (prototype.name, environment)
                tried += 1
    assert tried == 14 * (3 * 3 + 6)


@pytest.mark.parametrize("width", [None, 3, 16, 23, 52])
def test_random_bits_by_address_are_those_of_bits(small: Library, width: int | None) -> None:
    environment = Environment(rounding="stochastic", seed=2**63 + 5, sr_bits=width)
    names = [x.name for x in small.prototypes if x.form == "array_at"]
    assert len(names) == 2 * 3 + 6
    for name in names:
        assert not differences(small, small.named(name), environment, 3000, 9).size, name


def test_integers(tmp_path: Path) -> None:
    library = made(tmp_path / "sf", functions=["to_integer"], formats=["float16"], lengths=[4])
    arrays = [x for x in library.prototypes if x.form == "array"]
    assert len(arrays) == 8
    for prototype in arrays:
        for seed, environment in enumerate(exported.environments(exported.output_of(prototype), 8)):
            assert not differences(library, prototype, environment, 1500, seed).size, (prototype.name, environment)
    for drawn in (Environment(rounding="stochastic", seed=4, sr_bits=21), Environment(rounding="up_or_down", seed=4)):
        assert not differences(library, library.named("sf_to_integer_float16_int16_array_at"), drawn, 3000, 9).size
    sf = library.functions
    assert sf.to_integer_float16_int8(0xC100, sf.SF_NEAREST_EVEN) == (-2, 1)
    assert sf.to_integer_float16_int8(0x4100, sf.SF_NO_INEXACT) == (2, 0)
    assert sf.to_integer_float16_int32(0x7E00, sf.SF_NAN_X86) == (-(2**31), 16)
    assert sf.to_integer_float16_int32(0x7E00, sf.SF_NAN_NVIDIA) == (0, 16)
    assert sf.to_integer_float16_int64(0x7E00, sf.SF_NAN_NVIDIA) == (-(2**63), 16)
    assert sf.to_integer_float16_uint64(0x7C00, sf.SF_NEAREST_EVEN) == (2**64 - 1, 16)
    assert sf.to_integer_float16_int64(0xFC00, sf.SF_NEAREST_EVEN) == (-(2**63), 16)
    with pytest.raises(sf.Refused):
        sf.to_integer_float16_int64(0, sf.SF_STOCHASTIC)


def test_nans_that_conversions_move(tmp_path: Path) -> None:
    """NVIDIA's, between some formats and in some modes alone."""
    formats = ["bfloat16", "float32", "tfloat32"]
    sf = made(tmp_path / "sf", functions=["convert"], formats=formats, lengths=[4]).functions
    assert sf.convert_bfloat16_to_float32(0xFF81, sf.SF_NAN_NVIDIA) == (0xFF810000, 16)
    assert sf.convert_bfloat16_to_float32(0xFF81, sf.SF_NAN_X86) == (0xFFC10000, 16)
    assert sf.convert_bfloat16_to_tfloat32(0xFF81, sf.SF_NAN_NVIDIA) == (0x3FFFF, 16)
    assert sf.convert_float32_to_tfloat32(0x7F800001, sf.SF_NAN_NVIDIA | sf.SF_NEAREST_AWAY) == (0x3FC00, 16)
    assert sf.convert_float32_to_tfloat32(0x7F800001, sf.SF_NAN_NVIDIA) == (0x3FFFF, 16)
    assert sf.convert_float32_to_bfloat16(0x7F800001, sf.SF_NAN_NVIDIA | sf.SF_NEAREST_AWAY) == (0x7FFF, 16)


def test_codes_of_integers(tmp_path: Path) -> None:
    """Integers of more than 53 bits are rounded once, stochastically too."""
    library = made(tmp_path / "sf", functions=["from_integer"], formats=["float32", "float6_e2m3fn"], lengths=[4])
    arrays = [x for x in library.prototypes if x.form == "array"]
    assert len(arrays) == 8
    for prototype in arrays:
        for seed, environment in enumerate(exported.environments(exported.output_of(prototype), 8)):
            assert not differences(library, prototype, environment, 1500, seed).size, (prototype.name, environment)
        either = Environment(rounding="up_or_down", seed=4)
        for drawn in (either, *(Environment(rounding="stochastic", seed=4, sr_bits=width) for width in (None, 5, 40))):
            assert not differences(library, library.named(f"{prototype.name}_at"), drawn, 3000, 9).size, prototype.name
    sf = library.functions
    for prototype in library.prototypes:
        if prototype.function == "from_integer" and not prototype.form:
            call = getattr(sf, prototype.name.removeprefix("sf_"))
            kind = prototype.arguments[0].kind.removesuffix("_t")
            for x in exported.integers(40, 3, kind):
                codes, flags = bits.encode(x, prototype.format, rounding="toward_positive")
                assert call(x, sf.SF_TOWARD_POSITIVE) == call(int(x), sf.SF_TOWARD_POSITIVE) == (codes, flags)
    assert sf.from_integer_float32_int64(-(2**63), sf.SF_NEAREST_EVEN) == (0xDF000000, 0)
    assert sf.from_integer_float32_uint64(2**64 - 1, sf.SF_TOWARD_ZERO) == (0x5F7FFFFF, 1)
    assert sf.from_integer_float32_int64(2**53 + 2**29 + 1, sf.SF_NEAREST_EVEN) == (
        0x5A000001,
        1,
    )  # a tie, and one more


@pytest.fixture(scope="module")
def checking(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """sf.py on a library whose functions compute nothing: what gets through gives (0, 0)."""
    needs("gcc")
    folder = tmp_path_factory.mktemp("checking")
    functions, formats = ["add", "encode", "decode", "from_integer", "to_integer"], ["bfloat16", "float6_e2m3fn"]
    found = prototypes(request(functions, formats, ["fma('float32')"], [4]), Job())
    code = header(found)
    for line in re.findall(r"^\w.* sf_\w+\(.*\);$", code, re.MULTILINE):
        code += f"{line[:-1]} {{ return 0; }}\n"
    (folder / "stub.c").write_text(code)
    (folder / "sf.py").write_text(module(found))
    subprocess.run(["gcc", "-shared", "-fPIC", folder / "stub.c", "-o", folder / "libsf.so"], check=True)
    return exported.loaded(folder)


UINT64 = "0 to 0xffffffffffffffff"


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("add_bfloat16", (0x13F80, 0, 0), "a must be 0 to 0xffff, got 0x13f80"),
        ("add_bfloat16", (0, -1, 0), "b must be 0 to 0xffff, got -0x1"),
        ("add_bfloat16", (0, np.int64(-1), 0), "b must be 0 to 0xffff, got -0x1"),
        ("add_bfloat16", (0, 2**64, 0), "b must be 0 to 0xffff, got 0x10000000000000000"),
        ("add_bfloat16", (0, 0, 2**32), "rule must be 0 to 0xffffffff, got 0x100000000"),
        ("add_bfloat16", (0, 0, -1), "rule must be 0 to 0xffffffff, got -0x1"),
        ("add_float6_e2m3fn", (64, 0, 0), "a must be 0 to 0x3f, got 0x40"),
        ("add_float6_e2m3fn", (256, 0, 0), "a must be 0 to 0x3f, got 0x100"),
        ("decode_float6_e2m3fn", (-192,), "a must be 0 to 0x3f, got -0xc0"),
        ("to_integer_bfloat16_int8", (2**16, 0), "a must be 0 to 0xffff, got 0x10000"),
        ("from_integer_bfloat16_int64", (2**63, 0), "x must be -9223372036854775808 to 9223372036854775807, got 92"),
        ("from_integer_bfloat16_int32", (-(2**31) - 1, 0), "x must be -2147483648 to 2147483647, got -2147483649"),
        ("from_integer_bfloat16_uint64", (-1, 0), f"x must be {UINT64}, got -0x1"),
        (
            "encode_bfloat16",
            (2**60 + 2**52 + 1, 0),
            "x must be a number that float64 has, got 1157425104234217473; from",
        ),
        ("encode_bfloat16", (2**1024, 0), "x must be a number that float64 has, got 1797"),
        ("encode_bfloat16", (Fraction(1, 3), 0), "x must be a number that float64 has"),
        ("add_bfloat16_random", (0, 0, 0, 2**64), f"bits must be {UINT64}, got"),
        ("add_bfloat16_at", (0, 0, 0, -1, 0, 0), f"seed must be {UINT64}, got"),
        ("add_bfloat16_at", (0, 0, 0, 0, 2**64, 0), f"stream must be {UINT64}, got"),
        ("add_bfloat16_at", (0, 0, 0, 0, 0, -1), f"position must be {UINT64}, got"),
        ("add_bfloat16_array", (-1, None, None, None, None, 0), f"n must be {UINT64}, got"),
        ("random_bits", (0, 0, 0, 2**32 + 1), "width must be 0 to 0xffffffff, got"),
        ("dot_fma_float32_bfloat16", ([0, 0x13F80], [0, 0], 0), r"a\[1\] must be 0 to 0xffff, got 0x13f80"),
        ("dot_fma_float32_float6_e2m3fn", ([0], [64], 0), r"b\[0\] must be 0 to 0x3f, got 0x40"),
        ("dot_fma_float32_bfloat16_add", ([0], [0], 2**32, 0), "c must be 0 to 0xffffffff, got"),
        ("dot_fma_float32_bfloat16", ([0], [0, 0], 0), "a and b must be of one length, got 1 and 2"),
    ],
)
def test_what_an_argument_cannot_be_is_refused_by_name(
    checking: ModuleType, name: str, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        getattr(checking, name)(*arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        *(("add_bfloat16", (0, x, 0), "b must be an integer") for x in (0.5, True, np.True_, np.float16(1), "1", [1])),
        ("add_bfloat16", (0, 0, 0.0), "rule must be an integer, got 0.0"),
        ("from_integer_bfloat16_int64", (1.0, 0), "x must be an integer, got 1.0"),
        *(("encode_bfloat16", (x, 0), "x must be a number that float64 has") for x in ("1", 1j, None)),
        ("dot_fma_float32_bfloat16", ([0, 0], np.array([0, 0.5]), 0), r"b\[0\] must be an integer"),
        ("add_bfloat16", (0, 0), "add_bfloat16 takes a, b, rule, got 2 arguments"),
        ("decode_bfloat16", (0, 0), "decode_bfloat16 takes a, got 2 arguments"),
    ],
)
def test_what_is_no_number_is_refused_by_name(
    checking: ModuleType, name: str, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(TypeError, match=f"^{message}"):
        getattr(checking, name)(*arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("add_bfloat16", (0xFFFF, np.uint8(255), 2**32 - 1)),
        ("add_bfloat16", (np.int64(5), np.uint64(5), np.int8(0))),
        ("add_bfloat16_at", (0, 0, 0, 2**64 - 1, np.uint64(2**64 - 1), 2**64 - 1)),
        ("from_integer_bfloat16_int64", (-(2**63), 0)),
        ("from_integer_bfloat16_uint64", (2**64 - 1, 0)),
        *(("encode_bfloat16", (x, 0)) for x in (2**60 + 2**52, True, np.float32(0.1), float("nan"), Fraction(1, 4))),
        ("dot_fma_float32_float6_e2m3fn", (np.array([63, 0], np.uint8), [0, 63], 0)),
        ("dot_fma_float32_bfloat16_add", ([0], (0xFFFF,), 2**32 - 1, 0)),
    ],
)
def test_what_an_argument_can_be_is_passed(checking: ModuleType, name: str, arguments: tuple[Any, ...]) -> None:
    assert getattr(checking, name)(*arguments) == (0, 0)


@pytest.fixture(scope="module")
def tabled(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Functions of one operand."""
    folder = tmp_path_factory.mktemp("tabled")
    return made(folder / "sf", functions=["exp", "log", "sin"], formats=["float16", "float6_e2m3fn"], lengths=[4])


def test_functions_by_tables_are_those_of_bits(tabled: Library, tmp_path: Path) -> None:
    pairs = made(tmp_path / "sf", functions=["pow", "atan2"], formats=["float8_e5m2", "float8_e4m3fnuz"], lengths=[4])
    tried = 0
    for library in (tabled, pairs):
        for prototype in library.prototypes:
            if prototype.form == "array":
                for seed, environment in enumerate(exported.environments(exported.output_of(prototype), 8)):
                    assert not differences(library, prototype, environment, 3000, seed).size, (
                        prototype.name,
                        environment,
                    )
                    tried += 1
    assert tried == 16 * (6 + 4)


def test_functions_by_tables_refuse_what_they_cannot(tabled: Library, tmp_path: Path) -> None:
    sf = tabled.functions
    assert sf.log_float16(0, sf.SF_NEAREST_EVEN) == (0xFC00, 8)
    assert sf.sin_float16(0x7D01, sf.SF_NAN_ARM) == (0x7F01, 16)
    for arguments in ((0, sf.SF_STOCHASTIC | 8 << sf.SF_RANDOM_BITS_SHIFT), (0, sf.SF_UP_OR_DOWN), (0, 10)):
        with pytest.raises(sf.Refused):
            sf.exp_float16(*arguments)
    with pytest.raises(sf.Refused):
        sf.exp_float6_e2m3fn(64, 0)
    for name, fmt, widest in (("exp", "float32", 16), ("pow", "float16", 8)):
        with pytest.raises(ValueError, match=f"function '{name}' .* formats must have at most {widest} bits for it"):
            export.write(tmp_path / "sf", functions=[name], formats=[fmt])


@pytest.mark.parametrize(("seed", "stream"), [(3, 0), (2**64 - 5, 2**32 - 1)])
def test_the_generator_of_the_ipu(small: Library, seed: int, stream: int) -> None:
    sf, state = small.functions, (ctypes.c_uint64 * 2)()
    assert sf.xoroshiro128aox_seed(state, seed, stream) == 0
    drawn = {"seed": seed, "stream": stream, "generator": "xoroshiro128aox"}
    for width in (1, 21, 52):
        assert sf.xoroshiro128aox_seed(state, seed, stream) == 0
        found = [sf.xoroshiro128aox(state, width) for _ in range(300)]
        assert found == bits.random_bits(300, sr_bits=width, **drawn).tolist()
    before = tuple(state)
    assert sf.xoroshiro128aox(state, 0) == sf.xoroshiro128aox(state, 53) == 2**64 - 1
    assert tuple(state) == before


def test_scalars_are_elements_of_arrays(small: Library) -> None:
    columns = exported.operands(small.named("sf_fma_float16").format, 3, 1, 4)
    rows = np.random.default_rng(1).permutation(np.stack(columns, 1))[:300].tolist()
    handed = bits.random_bits(len(rows), seed=5, stream=6, sr_bits=11)
    stochastic = Environment(rounding="stochastic", seed=5, sr_bits=11)
    columns = [np.array(column, np.uint16) for column in zip(*rows, strict=True)]
    up, wanted = (
        bits.fma(*columns, "float16", rounding=mode, **more)
        for mode, more in (("toward_positive", {}), ("stochastic", {"seed": 5, "sr_bits": 11, "stream": 6}))
    )
    sf, rule = small.functions, exported.rule(stochastic)
    for i, row in enumerate(rows):
        assert sf.fma_float16(*row, sf.SF_TOWARD_POSITIVE) == (up[0][i], up[1][i])
        assert sf.fma_float16_random(*row, sf.SF_TOWARD_POSITIVE, 0) == (up[0][i], up[1][i])
        assert sf.random_bits(5, 6, i, 11) == handed[i]
        assert sf.fma_float16_random(*row, rule, int(handed[i])) == (wanted[0][i], wanted[1][i])
        assert sf.fma_float16_at(*row, rule, 5, 6, i) == (wanted[0][i], wanted[1][i])


def test_values_of_codes(small: Library) -> None:
    for fmt in FORMATS_HERE:
        size = 2 ** exported.check_format(fmt).bits
        codes = np.arange(0, size, max(1, size // 512)).tolist()
        found = [getattr(small.functions, f"decode_{fmt}")(code) for code in codes]
        np.testing.assert_array_equal(found, bits.decode(codes, fmt))


def test_far_positions_have_their_own_bits(small: Library) -> None:
    whole = bits.random_bits(300, seed=1, stream=2)
    assert [small.functions.random_bits(1, 2, i, 52) for i in range(300)] == whole.tolist()
    assert small.functions.random_bits(1, 2, 2**40, 52) < 2**52
    assert small.functions.random_bits(1, 2, 2**62, 52) == 2**64 - 1
    assert small.functions.random_bits(1, 2, 0, 53) == 2**64 - 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fma_float16", (0, 0, 0, 6)),
        ("fma_float16", (0, 0, 0, 9)),
        ("fma_float16", (0, 0, 0, 10)),
        ("fma_float16_random", (0, 0, 0, 9, 2)),
        ("fma_float16", (0, 0, 0, 3 << 4)),
        ("fma_float16", (0, 0, 0, 10 << 11)),
        ("fma_float16", (0, 0, 0, 53 << 16)),
        ("fma_float16", (0, 0, 0, 1 << 22)),
        ("fma_float16", (0, 0, 0, 1 << 31)),
        ("fma_float16_random", (0, 0, 0, 6 | 8 << 16, 256)),
        ("fma_float16_at", (0, 0, 0, 6, 0, 0, 2**62)),
        ("fma_float6_e2m3fn", (0, 64, 0, 0)),
        ("fma_float6_e2m3fn", (0, 0, 0, 2 << 4)),
        ("lt_float6_e2m3fn", (64, 0, 0)),
        ("convert_float16_to_float6_e2m3fn", (0, 2 << 4)),
    ],
)
def test_what_is_not_served_is_refused(small: Library, name: str, arguments: tuple[int, ...]) -> None:
    with pytest.raises(small.functions.Refused):
        getattr(small.functions, name)(*arguments)


def test_a_refusal_says_of_what(small: Library) -> None:
    with pytest.raises(small.functions.Refused, match=r"^fma_float16_random does not take rule 524294, bits 256$"):
        small.functions.fma_float16_random(0, 0, 0, 6 | 8 << 16, 256)


def test_the_object_needs_libm_alone(small: Library) -> None:
    needs("nm")
    listed = subprocess.run(["nm", small.folder / "libsf.o"], capture_output=True, text=True, check=True).stdout
    undefined = set(re.findall(r"^ +U (\S+)$", listed, re.MULTILINE))
    seen = set(re.findall(r"^\S+ [A-TV-Z] (\S+)$", listed, re.MULTILINE))
    assert undefined <= LIBM
    assert seen == {x.name for x in small.prototypes}
    assert "numba" not in listed.lower()


def test_the_same_sources_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"functions": ["lt"], "formats": ["float16"], "link": False}
    export.write(tmp_path / "a", **options)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NUMBA_CPU_NAME", "skylake")
    export.write(tmp_path / "b", **options)
    for name in ("libsf.o", "sf.h", "sf.hpp", "sf_pkg.sv"):
        assert len({(tmp_path / x / name).read_bytes() for x in "ab"}) == 1, name
    assert list((tmp_path / "cache").rglob("exported-*.bc"))


# -- files -----------------------------------------------------------------------------------------------------------------


def test_a_folder_holds_everything(small: Library) -> None:
    assert sorted(x.name for x in small.folder.iterdir() if x.is_file()) == sorted(FILES)
    bench = (small.folder / "sf_cocotb.py").read_text()
    compile(bench, "sf_cocotb.py", "exec")
    assert "sf.fma_float16(*operands, mode)" in bench


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    needs("false")
    options: dict[str, Any] = {"functions": ["lt"], "formats": ["float16"]}
    with pytest.raises(RuntimeError, match=r"false could not link libsf\.so"):
        export.write(tmp_path / "new", compiler="false", **options)
    assert not list(tmp_path.iterdir())
    (tmp_path / "libsf.so").write_bytes(b"old")
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(RuntimeError):
        export.write(tmp_path, compiler="false", **options)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["libsf.so", "mine"]
    export.write(tmp_path, link=False, **options)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["libsf.o", "mine", "sf.h", "sf.hpp", "sf_pkg.sv"]
    with pytest.raises(NotADirectoryError):
        export.write(tmp_path / "mine", link=False, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"functions": ["ad"]}, "function 'ad' is unknown; accepted: add, sub"),
        ({"functions": "add"}, "functions must be a sequence, got 'add' alone"),
        ({"formats": []}, "formats must name at least one format"),
        ({"formats": ["float17"]}, "float17"),
        ({"functions": []}, "functions and accumulators are both empty"),
        ({"functions": ["convert"], "formats": ["float16"]}, "'convert' needs two formats"),
        ({"accumulators": ["nothing()"]}, "accumulator 'nothing\\(\\)' is no call of a preset"),
        (
            {"accumulators": ['amp("half")'], "formats": ["float32", "bfloat16"]},
            "takes none of the formats; accepted: float16",
        ),
        ({"lengths": [0]}, "lengths must be integers from 1 to 4096"),
        ({"target": "vax"}, "target must be one of 'native', 'generic'"),
        ({"compiler": "no-such-compiler"}, "compiler 'no-such-compiler' is not installed"),
    ],
)
def test_what_there_is_not_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        export.write(tmp_path / "sf", **options)
    assert not list(tmp_path.iterdir())


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ValueError,
        match=r"no C compiler to link libsf\.so for target 'riscv64' with; accepted: one of riscv64-linux-gnu-gcc",
    ):
        export.write(tmp_path / "sf", functions=["lt"], formats=["float16"], target="riscv64")


def test_accumulators_of_one_name_are_refused() -> None:
    from softfloat.accumulators import fma, mul_add

    twice: list[Accumulator] = [fma("float16"), mul_add("float16").replace(name="fma (float16)")]
    with pytest.raises(ValueError, match="names that differ in C, got sf_dot_fma_float16_float16 more than once"):
        request([], ["float16"], twice, [4])


def test_the_command_writes_a_folder(tmp_path: Path) -> None:
    run = Run(
        "export", str(tmp_path / "sf"), "--functions", "lt", "--formats", "float16", "--no-link", "--target", "aarch64"
    )
    assert (run.status, run.out) == (0, f"libsf.o with 5 functions for aarch64 in {tmp_path / 'sf'}\n")
    assert (tmp_path / "sf" / "libsf.o").read_bytes()[18:20] == b"\xb7\x00"  # EM_AARCH64
    Run("export", str(tmp_path / "no"), "--functions", "lt,le,xx").assert_error("function 'xx' is unknown")
    Run("export", str(tmp_path / "no"), "--lengths", "5-3").assert_error("--lengths must be like 16 or 1-64,128")
    assert not (tmp_path / "no").exists()


# -- other languages -------------------------------------------------------------------------------------------------------

STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-O1")

ROWS = """
#include "sf.h"
#include <stdio.h>
int main(void) {
    uint64_t state = 1;
    for (int i = 0; i < 400; i++) {
        uint16_t x[3];
        uint8_t flags;
        for (int j = 0; j < 3; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            x[j] = (uint16_t)(state >> 40);
        }
        uint16_t r = sf_fma_float16(x[0], x[1], x[2], SF_TOWARD_ZERO | SF_TININESS_BEFORE, &flags);
        printf("%04X %04X %04X %04X %02X\\n", x[0], x[1], x[2], r, flags);
        (void)sf_fma_float16(x[0], x[1], x[2], 0, NULL);
    }
    return 0;
}
"""


def test_c_rows_pass_softfloat_check(small: Library, tmp_path: Path) -> None:
    (tmp_path / "rows.c").write_text(ROWS)
    arguments = ["-I", small.folder, tmp_path / "rows.c", small.folder / "libsf.o", "-lm", "-o", tmp_path / "rows"]
    subprocess.run(["gcc", "-std=c99", *STRICT, *arguments], check=True)
    rows = subprocess.run([tmp_path / "rows"], capture_output=True, check=True).stdout
    case = resolve("fma", "float16", environment=Environment(rounding="toward_zero", tininess="before"))
    report = check_vectors(io.BytesIO(rows), case)
    assert (report.rows, report.mismatches) == (400, 0)
    wrong = resolve("fma", "float16", environment=Environment(rounding="nearest_even"))
    assert check_vectors(io.BytesIO(rows), wrong).mismatches


def snippet(language: str) -> str:
    """Of the page on exported libraries."""
    page = Path(__file__).parents[2] / "docs" / "export.md"
    if not page.exists():
        pytest.skip("not in a checkout")
    return page.read_text(encoding="utf-8").partition(f"```{language}\n")[2].partition("```")[0]


def test_the_snippet_in_c_runs(small: Library, tmp_path: Path) -> None:
    head, _, body = snippet("c").partition("\n\n")
    code, flags = bits.fma(0x3C01, 0x3C01, 0xBC02, "float16", rounding="toward_zero", ftz=True, nan="arm")
    (tmp_path / "it.c").write_text(f"{head}\nint main(void) {{\n{body}return r != {code} || flags != {flags};\n}}\n")
    arguments = ["-I", small.folder, tmp_path / "it.c", small.folder / "libsf.o", "-lm", "-o", tmp_path / "it"]
    subprocess.run(["gcc", "-std=c99", *STRICT, *arguments], check=True)
    subprocess.run([tmp_path / "it"], check=True)


@pytest.mark.exhaustive
def test_the_snippet_in_python_runs(whole: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sf", whole.functions)
    found: dict[str, Any] = {}
    exec(snippet("python"), found)
    one, next_up = (np.full(8, x, np.uint16) for x in (0x3C00, 0x3C01))
    code, flags = bits.vecdot(one, next_up, "float16", tensor_core("H100"))
    assert (found["code"], found["flags"]) == (code, flags)


def case_of(prototype: Prototype, environment: Environment) -> Case:
    """What `softfloat check` calls a function."""
    assert prototype.format is not None
    name, fmt, kinds = prototype.function, prototype.format, {x.name: x.kind for x in prototype.arguments}
    words: dict[str, tuple[Any, ...]] = {
        "encode": ("convert", "float64", fmt),
        "convert": ("convert", fmt, exported.output_of(prototype)),
        "to_integer": ("convert", fmt, prototype.gives.removesuffix("_t")),
        "from_integer": ("convert", kinds.get("x", "").removesuffix("_t"), fmt),
    }
    return resolve(*words.get(name, (name, fmt)), environment=environment)


@pytest.mark.exhaustive
def test_rows_of_every_function_pass_softfloat_check(whole: Library, tmp_path: Path) -> None:
    """Each function of single codes, without random bits, in C."""
    environment = Environment(rounding="toward_negative", tininess="before", ftz=True)
    chosen = [x for x in exported.benched(whole.prototypes) if not x.form and x.function != "decode"]
    cases = [case_of(x, environment) for x in chosen]
    (tmp_path / "rows.c").write_text(exported.row_program(chosen, cases, exported.rule(environment)))
    arguments = ["-I", whole.folder, tmp_path / "rows.c", whole.folder / "libsf.o", "-lm", "-o", tmp_path / "rows"]
    subprocess.run(["gcc", "-std=c99", *STRICT, *arguments], check=True)
    for number, (prototype, case) in enumerate(zip(chosen, cases, strict=True)):
        rows = subprocess.run([tmp_path / "rows", str(number)], capture_output=True, check=True).stdout
        report = check_vectors(io.BytesIO(rows), case)
        assert (report.rows, report.mismatches, report.passed) == (200, 0, True), (prototype.name, report)


NUMBERS = """
#include "sf.hpp"
#include <cstdio>
int main() {
    using half = sf::num<sf::float16, SF_TOWARD_ZERO>;
    half x(0.1), y = half::from_code(0x4248);
    auto found = sf::float16::convert_to_float8_e4m3fn(0x3e01, SF_TOWARD_POSITIVE);
    std::printf("%x %x %x %x %x %d %g\\n", x.code(), fma(x, y, x).code(), half::raised, found.code, found.flags, x < y, double(y));
    return 0;
}
"""


def test_cpp_numbers(small: Library, tmp_path: Path) -> None:
    needs("g++")
    (tmp_path / "numbers.cpp").write_text(NUMBERS)
    arguments = [
        "-I",
        small.folder,
        tmp_path / "numbers.cpp",
        small.folder / "libsf.o",
        "-lm",
        "-o",
        tmp_path / "numbers",
    ]
    subprocess.run(["g++", "-std=c++17", *STRICT, *arguments], check=True)
    found = subprocess.run([tmp_path / "numbers"], capture_output=True, text=True, check=True).stdout.split()
    x, _ = bits.encode(0.1, "float16", rounding="toward_zero")
    fused, raised = bits.fma(x, 0x4248, x, "float16", rounding="toward_zero")
    code, flags = bits.convert(0x3E01, "float16", "float8_e4m3fn", rounding="toward_positive")
    assert found == [f"{x:x}", f"{fused:x}", f"{raised | 1:x}", f"{code:x}", f"{flags:x}", "1", "3.14062"]


WIDE = """
#include "sf.hpp"
using half = sf::num<sf::float16>;
half fits[] = {half(1), half(1u), half(1.5f)};
#ifdef WIDE
half cut(static_cast<WIDE>(1));
#endif
"""


def test_cpp_numbers_of_what_double_does_not_have(small: Library, tmp_path: Path) -> None:
    needs("g++")
    (tmp_path / "wide.cpp").write_text(WIDE)
    for kind in (None, "std::int64_t", "std::uint64_t", "long double"):
        chosen = [] if kind is None else [f"-DWIDE={kind}"]
        command = ["g++", "-std=c++17", *STRICT, "-fsyntax-only", "-I", small.folder, *chosen, tmp_path / "wide.cpp"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode == 0, "deleted" in done.stderr) == ((True, False) if kind is None else (False, True))


BENCH = """
module bench;
  import sf_pkg::*;
  initial begin
    longint unsigned state = 1;
    for (int i = 0; i < 300; i++) begin
      shortint unsigned x[3];
      shortint unsigned r;
      byte unsigned f, t;
      shortint unsigned a[SF_LENGTH], b[SF_LENGTH];
      int unsigned d;
      for (int j = 0; j < 3; j++) begin
        state = state * 64'd6364136223846793005 + 64'd1442695040888963407;
        x[j] = state[55:40];
        a[j] = {x[j][15:14], 4'b0111, x[j][9:0]};
        b[j] = {x[j][15:14], 4'b0011, x[j][13:4]};
      end
      r = sf_fma_float16_at(x[0], x[1], x[2], SF_STOCHASTIC | SF_FTZ, 3, 4, longint'(i), f);
      d = sf_dot_tensor_core_h100_float16(3, a, b, SF_NEAREST_EVEN, t);
      $display("%04x %04x %04x %04x %02x %04x %04x %04x %04x %04x %04x %08x %02x", x[0], x[1], x[2], r, f,
               a[0], a[1], a[2], b[0], b[1], b[2], d, t);
    end
    $finish;
  end
endmodule
"""


@pytest.mark.exhaustive
def test_systemverilog_calls_through_dpi(whole: Library, tmp_path: Path) -> None:
    out = verilated(tmp_path, whole, BENCH)
    rows = np.array([[int(x, 16) for x in line.split()] for line in out.splitlines() if len(line.split()) == 13])
    assert len(rows) == 300
    columns = [rows[:, i].astype(np.uint16) for i in range(3)]
    codes, flags = bits.fma(*columns, "float16", rounding="stochastic", seed=3, stream=4, ftz=True)
    np.testing.assert_array_equal(rows[:, 3], codes)
    np.testing.assert_array_equal(rows[:, 4], flags)
    from softfloat.accumulators import tensor_core

    sums, raised = bits.vecdot(rows[:, 5:8], rows[:, 8:11], "float16", tensor_core("H100"))
    np.testing.assert_array_equal(rows[:, 11], sums)
    np.testing.assert_array_equal(rows[:, 12], raised)


def verilated(folder: Path, library: Library, bench: str) -> str:
    """What a bench prints."""
    needs("verilator", "g++", "make")
    (folder / "bench.sv").write_text(bench)
    sources = [library.folder / "sf_pkg.sv", folder / "bench.sv", library.folder / "libsf.o"]
    build = ["verilator", "--binary", "-Wno-fatal", "-Wno-WIDTH", "--top-module", "bench", "--Mdir", folder / "obj"]
    subprocess.run([*build, *sources, "-LDFLAGS", "-lm"], check=True, capture_output=True, cwd=folder)
    return subprocess.run([folder / "obj" / "Vbench"], capture_output=True, text=True, check=True).stdout


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(4))
def test_every_function_through_dpi(whole: Library, tmp_path: Path, part: int) -> None:
    """Hashes of results and flags, in a bench of Verilator's: every function of single codes, format and type."""
    chosen = exported.benched(whole.prototypes)[part::4]
    found = dict(
        line.split() for line in verilated(tmp_path, whole, exported.dpi_bench(chosen)).splitlines() if "sf_" in line
    )
    words = exported.drawn_words(10 * exported.BENCH_ROWS * 4)
    assert found == {x.name: exported.bench_hash(x, words) for x in chosen}


# -- everything ------------------------------------------------------------------------------------------------------------

MANY = 10**7


@pytest.fixture(scope="module")
def loops(whole: Library, tmp_path_factory: pytest.TempPathFactory) -> list[ctypes.CDLL]:
    """Every function of single codes in a loop, compiled as C99 and as C++17."""
    needs("g++")
    folder, found = tmp_path_factory.mktemp("loops"), []
    for name, command in (("loops.c", ["gcc", "-std=c99"]), ("loops.cpp", ["g++", "-std=c++17"])):
        (folder / name).write_text(exported.scalar_loops(whole.prototypes))
        library = folder / f"{name}.so"
        arguments = [
            "-I",
            whole.folder,
            folder / name,
            whole.folder / "libsf.o",
            "-lm",
            "-shared",
            "-fPIC",
            "-o",
            library,
        ]
        subprocess.run([*command, *STRICT, *arguments], check=True)
        found.append(ctypes.CDLL(str(library)))
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("function", [name for name in FUNCTIONS if name not in ("decode", *TABLED)])
def test_every_function_over_ten_million_rows(whole: Library, loops: list[ctypes.CDLL], function: str) -> None:
    """Each function, format and type: arrays against softfloat.bits, and the same rows one at a time, in C; in C++ every twentieth part."""
    for prototype in whole.prototypes:
        if prototype.function != function or not prototype.form.startswith("array"):
            continue
        if prototype.form == "array":
            chosen = list(exported.environments(exported.output_of(prototype), 14))
        else:
            chosen = [Environment(rounding="stochastic", seed=7, sr_bits=w) for w in (None, 2, 16, 17, 30, 52)]
        for seed, environment in enumerate(chosen):
            rows = -(-MANY // len(chosen))
            found = differences(whole, prototype, environment, rows, seed, loops[:1])
            assert not found.size, (prototype.name, environment)
            assert not differences(whole, prototype, environment, rows // 20, seed + 100, loops[1:]).size


@pytest.mark.exhaustive
def test_every_value_in_c(whole: Library, loops: list[ctypes.CDLL]) -> None:
    tried = 0
    for prototype in whole.prototypes:
        if prototype.function != "decode":
            continue
        assert prototype.format is not None
        every = 2**prototype.format.bits
        codes = np.arange(every) if every < MANY else np.random.default_rng(1).integers(0, every, MANY)
        codes = codes.astype(prototype.format.dtype)
        values, flags = np.asarray(bits.decode(codes, prototype.format)), np.zeros(codes.size, np.uint8)
        for these in loops:
            assert not exported.scalar_differences(these, prototype.name, [codes], values, flags), prototype.name
        tried += 1
    assert tried == 8


@pytest.mark.exhaustive
@pytest.mark.parametrize("function", TABLED)
def test_every_function_by_tables_at_every_code(tmp_path: Path, function: str) -> None:
    formats = {16: ("float16", "bfloat16", "float8_e4m3fn", "float6_e3m2fn"), 8: ("float8_e4m3fn", "float8_e5m2")}
    library = made(tmp_path / "sf", functions=[function], formats=formats[FUNCTIONS[function].widest], lengths=[4])
    for prototype in library.prototypes:
        if prototype.form != "array":
            continue
        assert prototype.format is not None
        each = np.arange(2**prototype.format.bits, dtype=prototype.format.dtype)
        columns = [each] if len(FUNCTIONS[function].operands) == 1 else [np.repeat(each, 256), np.tile(each, 256)]
        for environment in exported.environments(prototype.format, 30):
            found, flags, _ = exported.called(library.functions, prototype, columns, exported.rule(environment))
            codes, raised = exported.wanted(function, columns, prototype.format, prototype.format, environment)
            np.testing.assert_array_equal(found, codes, str((prototype.name, environment)))
            np.testing.assert_array_equal(flags, raised)


@pytest.mark.exhaustive
def test_integers_without_inexact(whole: Library) -> None:
    codes = np.arange(2**16, dtype=np.uint16)
    prototype = whole.named("sf_round_to_integral_float16_array")
    for environment in exported.environments(prototype.format, 0):
        rule = exported.rule(environment) | whole.functions.SF_NO_INEXACT
        found, flags, _ = exported.called(whole.functions, prototype, [codes], rule)
        wanted, raised = bits.round_to_integral(codes, "float16", exact=False, environment=environment)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(flags, raised)


@pytest.mark.exhaustive
@pytest.mark.parametrize("text", SUMS)
def test_dot_products_are_those_of_bits(whole: Library, text: str) -> None:
    draw, tried = np.random.default_rng(5), 0
    formats = [x.format for x in whole.prototypes if x.function == "decode"]
    for dot in request([], formats, [text], LENGTHS).dots:
        partials = dot.accumulator.partials
        stochastic = [Environment(rounding="stochastic", seed=9, sr_bits=width) for width in (8, 24)]
        for environment in [*exported.environments(dot.output, 8), *stochastic]:
            drawn = environment.rounding.name == "STOCHASTIC"
            for trial in range(40):
                k = int(draw.choice(LENGTHS))
                columns = exported.operands(dot.format, 2, 200, trial % 4)
                operands = [draw.choice(column, k) for column in columns]
                if trial % 2:
                    operands = [bits.encode(abs(draw.standard_normal(k)), dot.format)[0] for _ in operands]
                start = [int(draw.integers(0, 2**partials.bits))] if trial % 3 else []
                name = f"{dot.symbol[3:]}{'_add' if start else ''}{'_at' if drawn else ''}"
                address = (9, 4, 0) if drawn else ()
                call = [*operands, dot.format, dot.accumulator, *start]
                try:
                    codes, flags = bits.vecdot(*call, environment=environment, stream=4)
                except ValueError:
                    with pytest.raises(whole.functions.Refused):
                        getattr(whole.functions, name)(*operands, *start, exported.rule(environment), *address)
                    continue
                found = getattr(whole.functions, name)(*operands, *start, exported.rule(environment), *address)
                assert found == (codes, flags), (name, environment, operands, start)
                tried += 1
    assert tried > 300


@pytest.mark.exhaustive
def test_the_whole_object_needs_libm_alone(whole: Library) -> None:
    test_the_object_needs_libm_alone(whole)


@pytest.mark.exhaustive
@pytest.mark.parametrize("target", [name for name in TARGETS if name != "generic"])
def test_other_targets_link_and_run(tmp_path: Path, target: str) -> None:
    options: dict[str, Any] = {"functions": ["fma"], "formats": ["float16"], "target": target}
    compilers = [name for name in TARGETS[target].compilers if shutil.which(name)]
    if not compilers:
        export.write(tmp_path / "sf", link=False, **options)
        pytest.skip(f"the object is made; no compiler of {TARGETS[target].compilers} links it")
    export.write(tmp_path / "sf", **options)
    (tmp_path / "rows.c").write_text(ROWS)
    program = tmp_path / "rows"
    arguments = [
        "-I",
        tmp_path / "sf",
        tmp_path / "rows.c",
        tmp_path / "sf" / "libsf.o",
        "-static",
        "-lm",
        "-o",
        program,
    ]
    subprocess.run([compilers[0], "-std=c99", *STRICT, *arguments], check=True)
    runner = {"aarch64": ["qemu-aarch64"], "riscv64": ["qemu-riscv64"]}.get(target, [])
    needs(*runner)
    rows = subprocess.run([*runner, program], capture_output=True, check=True).stdout
    case = resolve("fma", "float16", environment=Environment(rounding="toward_zero", tininess="before"))
    report = check_vectors(io.BytesIO(rows), case)
    assert (report.rows, report.mismatches) == (400, 0)
