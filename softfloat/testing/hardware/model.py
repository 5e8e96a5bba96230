"""The model against the machine it runs on: which numeric instructions there are, and whether they give the model's bits.

`features` says what this machine has, `instructions` what there is to check and which call of `softfloat.bits` says the
same, `check_hardware` runs both over operands of every kind, or over all there are.

>>> [row.name for row in instructions() if row.extensions == ("F16C",)]
['VCVTPS2PH', 'VCVTPH2PS']
>>> all(outcome.status in STATUSES for outcome in check_hardware(["VCVTPH2PS"], samples=1000))
True
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softfloat import bits
from softfloat.accumulators import vdpbf16ps
from softfloat.checks import check_seed, check_whole
from softfloat.formats import Format, bfloat16, float16, float32
from softfloat.testing.vectors.distributions import edges

if TYPE_CHECKING:
    from softfloat.testing.hardware.instructions import Code

__all__ = [
    "DEVICES",
    "EXTENSIONS",
    "STATUSES",
    "Features",
    "Instruction",
    "Mismatch",
    "Outcome",
    "check_hardware",
    "features",
    "instructions",
]

Codes = np.ndarray[Any, Any]
Operands = tuple[Codes, ...]

DEVICES = ("cpu",)
"""Where instructions can be checked."""

EXTENSIONS = {
    "AVX": ("avx",),
    "F16C": ("f16c",),
    "FMA": ("fma",),
    "AVX512F": ("avx512f",),
    "AVX512_BF16": ("avx512bf16", "avx512f"),
    "AVX512_FP16": ("avx512fp16", "avx512f", "avx512bw"),
    "AVX_NE_CONVERT": ("avxneconvert",),
    "AMX_TILE": ("amx-tile",),
    "AMX_BF16": ("amx-bf16", "amx-tile"),
    "AMX_FP16": ("amx-fp16", "amx-tile"),
    "AMX_INT8": ("amx-int8", "amx-tile"),
}
"""Extensions of x86 by Intel's names, and what LLVM calls what each needs. LLVM counts only what the operating system lets through."""

STATUSES = ("agrees", "differs", "not available", "not checked")
SETTINGS = ("as the process starts", "DAZ and FTZ on")
EXAMPLES = 5
CHUNK = 1 << 22
SPACE = 1 << 32  # operands of a conversion from float32


# -- what the machine has --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Features:
    """What this machine offers.

    Attributes
    ----------
    machine, cpu : str
        The architecture, and LLVM's name of the CPU.
    extensions : dict of str to bool
        Those of `EXTENSIONS`, and "CUDA".
    gpus : tuple of str
        Names of CUDA devices with their compute capability.
    """

    machine: str
    cpu: str
    extensions: dict[str, bool]
    gpus: tuple[str, ...]

    def lacks(self, extensions: Sequence[str]) -> list[str]:
        """Those of some extensions that the machine does not have."""
        return [name for name in extensions if not self.extensions.get(name, False)]


@cache
def features() -> Features:
    """What this machine has: extensions of x86 as LLVM reports them, CUDA devices as the driver does.

    Anything else than x86 has none of the former, and a machine without NVIDIA's driver none of the latter.
    """
    from llvmlite import binding

    known: dict[str, bool] = {}
    if platform.machine().lower() in ("x86_64", "amd64"):
        try:
            known = dict(binding.get_host_cpu_features())
        except RuntimeError:  # LLVM does not know how to ask
            known = {}
    found = {name: all(known.get(x, False) for x in needed) for name, needed in EXTENSIONS.items()}
    gpus = _gpus()
    return Features(platform.machine(), binding.get_host_cpu_name(), found | {"CUDA": bool(gpus)}, gpus)


def _gpus() -> tuple[str, ...]:
    """CUDA devices, by the driver's own library; none if there is no driver or it fails."""
    name = "nvcuda.dll" if platform.system() == "Windows" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(name)
    except OSError:
        return ()
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    found = []
    for number in range(count.value):
        device, text, major, minor = ctypes.c_int(), ctypes.create_string_buffer(128), ctypes.c_int(), ctypes.c_int()
        if driver.cuDeviceGet(ctypes.byref(device), number) or driver.cuDeviceGetName(text, len(text), device):
            continue
        for place, attribute in ((major, 75), (minor, 76)):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
            driver.cuDeviceGetAttribute(ctypes.byref(place), attribute, device)
        found.append(f"{text.value.decode(errors='replace')} (sm_{major.value}{minor.value})")
    return tuple(found)


# -- instructions ----------------------------------------------------------------------------------------------------

Model = Callable[[Operands, dict[str, Any]], tuple[Codes, Codes]]


@dataclass(frozen=True)
class Instruction:
    """One instruction, and what the model says it does.

    Attributes
    ----------
    name : str
        As the manual spells it.
    extensions : tuple of str
        What the machine must have.
    model : str
        The call of `softfloat.bits` that says the same, or why there is none.
    modes : tuple of str
        Rounding modes, each a row of results; chosen by an immediate or by MXCSR.RC.
    formats : tuple of Format
        Of the operands.
    families : tuple of str
        Kinds of operands it is tried with; `FAMILIES` says what they are.
    flags : bool
        Whether it reports in MXCSR; if not, its flags must stay clear.
    daz, ftz : bool
        Whether these bits of MXCSR concern it.
    source : str
        Where the rules come from.
    """

    name: str
    extensions: tuple[str, ...]
    model: str
    source: str
    modes: tuple[str, ...] = ("nearest_even",)
    formats: tuple[Format, ...] = ()
    result: Format = float32
    families: tuple[str, ...] = ("any bits", "edges", "near")
    flags: bool = True
    daz: bool = False
    ftz: bool = False
    code: Callable[[str], Code] | None = field(default=None, repr=False, compare=False)
    run_model: Model | None = field(default=None, repr=False, compare=False)
    by_register: bool = False  # MXCSR.RC chooses the mode

    @property
    def is_checked(self) -> bool:
        """Whether there is a model to check it against."""
        return self.code is not None

    @property
    def all_operands(self) -> int:
        """How many different operands there are."""
        return int(np.prod([2.0 ** (2 * x.bits if self.packed else x.bits) for x in self.formats]))

    @property
    def packed(self) -> bool:
        """Whether operands are pairs of codes, the first in the low bits."""
        return self.name == "VDPBF16PS"


SDM = "Intel SDM, volume 2"
NEVER_FLUSHED = "FP16 instructions ignore DAZ and FTZ"
MODES = ("nearest_even", "toward_negative", "toward_positive", "toward_zero")


def _code(template: str, operands: tuple[int, ...], result: int, lanes: int, **more: Any) -> Callable[[str], Code]:
    """{mode} in a template is the immediate that chooses a rounding mode."""

    def make(mode: str) -> Code:
        from softfloat.testing.hardware.instructions import ROUNDING_FIELD, Code

        return Code(template.replace("{mode}", str(ROUNDING_FIELD[mode])), operands, result, lanes, **more)

    return make


def _conversion(source: Format, target: Format) -> Model:
    def run(operands: Operands, options: dict[str, Any]) -> tuple[Codes, Codes]:
        codes, flags = bits.convert(operands[0], source, target, nan="x86", **options)
        return codes, flags

    return run


def _arithmetic(function: Callable[..., Any], fmt: Format, nan: str) -> Model:
    def run(operands: Operands, options: dict[str, Any]) -> tuple[Codes, Codes]:
        codes, flags = function(*operands, fmt, nan=nan, **options)
        return codes, flags

    return run


def _dot(operands: Operands, options: dict[str, Any]) -> tuple[Codes, Codes]:
    c, a, b = operands
    first, second = (x.astype("<u4").view("<u2").reshape(-1, 2) for x in (a, b))
    codes, _ = bits.vecdot(first, second, bfloat16, vdpbf16ps(), c)
    return codes, np.zeros(codes.shape, np.uint8)


def _to_bfloat16(operands: Operands, options: dict[str, Any]) -> tuple[Codes, Codes]:
    codes, _ = bits.convert(operands[0], float32, bfloat16, daz=True, nan="x86")
    return codes, np.zeros(codes.shape, np.uint8)


def _arithmetic_rows(fmt: Format, suffix: str, extensions: tuple[str, ...], lanes: int, **more: Any) -> Iterator[Any]:
    """Six instructions on vectors in a format."""
    wide = lanes * fmt.bits == 512
    shared: dict[str, Any] = {"modes": MODES, "by_register": True, "result": fmt, **more}
    for name, arity in (("add", 2), ("sub", 2), ("mul", 2), ("div", 2), ("sqrt", 1)):
        template = f"v{name}{suffix} $2, $1, $0" if arity == 2 else f"v{name}{suffix} $1, $0"
        yield Instruction(
            f"V{name.upper()}{suffix.upper()}",
            extensions,
            f'{name}({", ".join("ab"[:arity])}, "{fmt.name}", rounding=mode, nan="x86")',
            formats=(fmt,) * arity,
            code=_code(template, (fmt.bits,) * arity, fmt.bits, lanes, wide=wide),
            run_model=_arithmetic(getattr(bits, name), fmt, "x86"),
            **shared,
        )
    yield Instruction(
        f"VFMADD213{suffix.upper()}",
        extensions if "FP16" in extensions[0] else ("FMA",),
        f'fma(a, b, c, "{fmt.name}", rounding=mode, nan="x86_fma3")',
        formats=(fmt,) * 3,
        code=_code(f"vfmadd213{suffix} $3, $1, $0", (fmt.bits,) * 3, fmt.bits, lanes, tied=1, wide=wide),
        run_model=_arithmetic(bits.fma, fmt, "x86_fma3"),
        **shared,
    )


@cache
def instructions() -> tuple[Instruction, ...]:
    """The table of instructions, those without a model at the end."""
    conversions = ("any bits", "edges", "next to the target")
    return (
        Instruction(
            "VCVTPS2PH",
            ("F16C",),
            'convert(x, "float32", "float16", rounding=mode, nan="x86")',
            f"{SDM}, VCVTPS2PH: rounding by the immediate, FTZ ignored",
            modes=MODES,
            formats=(float32,),
            result=float16,
            families=conversions,
            daz=True,
            code=_code("vcvtps2ph $${mode}, $1, $0", (32,), 16, 8, wide=False),
            run_model=_conversion(float32, float16),
        ),
        Instruction(
            "VCVTPH2PS",
            ("F16C",),
            'convert(x, "float16", "float32", nan="x86")',
            f"{SDM}, VCVTPH2PS: exact, subnormal halves whatever DAZ says",
            formats=(float16,),
            families=("all",),
            code=_code("vcvtph2ps $1, $0", (16,), 32, 8, wide=False),
            run_model=_conversion(float16, float32),
        ),
        Instruction(
            "VCVTNEPS2BF16",
            ("AVX512_BF16",),
            'convert(x, "float32", "bfloat16", daz=True, nan="x86")',
            f"{SDM}, VCVTNEPS2BF16: nearest even, DAZ and FTZ always, MXCSR neither read nor written",
            formats=(float32,),
            result=bfloat16,
            families=conversions,
            flags=False,
            code=_code("vcvtneps2bf16 $1, $0", (32,), 16, 16),
            run_model=_to_bfloat16,
        ),
        Instruction(
            "VDPBF16PS",
            ("AVX512_BF16",),
            'vecdot(a, b, "bfloat16", vdpbf16ps(), c)',
            f"{SDM}, VDPBF16PS: nearest even, DAZ and FTZ always, MXCSR neither read nor written",
            formats=(float32, bfloat16, bfloat16),
            families=("any bits", "edges", "near", "tiny", "huge"),
            flags=False,
            code=_code("vdpbf16ps $3, $2, $0", (32, 32, 32), 32, 16, tied=0),
            run_model=_dot,
        ),
        *_arithmetic_rows(
            float32,
            "ps",
            ("AVX",),
            8,
            daz=True,
            ftz=True,
            families=("any bits", "edges", "near", "tiny", "huge"),
            source="Intel SDM, volume 1, 4.8 and table 4-7 (NaNs), 10.2.3 (MXCSR)",
        ),
        *_arithmetic_rows(
            float16,
            "ph",
            ("AVX512_FP16",),
            32,
            families=("any bits", "edges", "near", "tiny", "huge"),
            source=f"Intel AVX512-FP16 Architecture Specification: as single precision, and {NEVER_FLUSHED}",
        ),
        Instruction(
            "VCVTNEPS2BF16 (VEX)",
            ("AVX_NE_CONVERT",),
            "not checked: the EVEX form stands for it",
            f"{SDM}, VCVTNEPS2BF16",
        ),
        Instruction("TDPBF16PS", ("AMX_BF16",), "not checked: no accumulator describes it yet", f"{SDM}, TDPBF16PS"),
        Instruction("TDPFP16PS", ("AMX_FP16",), "not checked: no accumulator describes it yet", f"{SDM}, TDPFP16PS"),
        Instruction("TDPBSSD", ("AMX_INT8",), "not checked: integers", f"{SDM}, TDPBSSD"),
        Instruction(
            "mma.sync", ("CUDA",), "not checked: vecdot(a, b, fmt, tensor_core(...), c)", "NVIDIA PTX ISA, mma.sync"
        ),
    )


# -- operands --------------------------------------------------------------------------------------------------------

FAMILIES = {
    "all": "every code there is",
    "any bits": "codes with every bit random",
    "edges": "zeros, infinities, NaNs quiet and signalling, the least and greatest numbers, one, and their neighbours",
    "near": "magnitudes within a few units in the last place of each other, or of a product: cancellation, ties",
    "tiny": "products and sums about the smallest normal number and the smallest subnormal one",
    "huge": "products and sums about the largest number",
    "next to the target": "a number of the target format, off by a power of two in the last places and by one more",
}
"""Kinds of operands, as in the project's tests of single operations."""


def with_exponents(fmt: Format, exponents: Codes, random: np.random.Generator) -> Codes:
    """Codes of about these exponents, as far as the format goes, of any sign and fraction; few bits set in half of them."""
    shape = exponents.shape
    biased = np.clip(exponents + fmt.bias, 0, fmt.max_code >> fmt.mantissa_bits)
    any_fraction = random.integers(0, 1 << fmt.mantissa_bits, shape)
    power = np.int64(1) << random.integers(0, max(fmt.mantissa_bits, 1), shape)
    simple = power - random.integers(0, 2, shape)
    fractions = np.where(random.random(shape) < 0.5, simple, any_fraction) & ((1 << fmt.mantissa_bits) - 1)
    codes = np.minimum(biased << fmt.mantissa_bits | fractions, fmt.max_code)
    signs = fmt.sign_bit if fmt.signed else 0
    return (codes | np.where(random.random(shape) < 0.5, signs, 0)).astype(fmt.dtype)


def _draw(instruction: Instruction, family: str, count: int, random: np.random.Generator) -> Operands:
    """Operands of a family: one array of codes for each format, pairs in one code where the instruction takes pairs."""
    if family == "all":
        return (np.arange(1 << instruction.formats[0].bits, dtype=instruction.formats[0].dtype),)
    lanes = [(x, 2 if instruction.packed and x == bfloat16 else 1) for x in instruction.formats]
    shapes = [(fmt, (count, width)) for fmt, width in lanes]
    if family == "any bits":
        drawn = [random.integers(0, 1 << fmt.bits, shape, np.uint64).astype(fmt.dtype) for fmt, shape in shapes]
    elif family == "edges":
        drawn = [random.choice(edges(fmt), shape) for fmt, shape in shapes]
    elif family == "next to the target":
        source, target = instruction.formats[0], instruction.result
        codes, _ = bits.convert(random.integers(0, 1 << target.bits, count).astype(target.dtype), target, source)
        offset = random.choice([-1, 1], count) << random.integers(0, source.mantissa_bits, count)
        drawn = [(codes.astype(np.int64) + offset + random.integers(-1, 2, count)).astype(source.dtype)]
    else:
        drawn = _related(instruction, family, shapes, random)
    return tuple(x.view(np.uint32).reshape(-1) if x.shape[-1:] == (2,) else x.reshape(-1) for x in drawn)


def _related(
    instruction: Instruction, family: str, shapes: list[tuple[Format, tuple[int, int]]], random: np.random.Generator
) -> list[Codes]:
    """Operands whose sum, product or quotient is of the kind that the family's name says."""
    fmt, shape = shapes[0]
    dot, name = len(shapes) == 3, instruction.name
    if family == "near" and not dot:
        first = random.integers(0, 1 << fmt.bits, shape, np.uint64).astype(np.int64)
        drawn = [first & (fmt.sign_bit - 1)]
        drawn += [np.clip(drawn[0] + random.integers(-3, 4, shape), 0, fmt.max_code) for _ in shapes[1:]]
        return [(x | random.choice([0, fmt.sign_bit], shape)).astype(fmt.dtype) for x in drawn]
    low, high = {
        "near": (-3, 4),
        "tiny": (fmt.emin - fmt.mantissa_bits - 2, fmt.emin + 3),
        "huge": (fmt.emax - 2, fmt.emax + 2),
    }[family]
    target = random.integers(low, high, shape)
    if not dot:
        if name.startswith(("VADD", "VSUB", "VSQRT")):
            return [with_exponents(x, target + random.integers(-1, 2, shape), random) for x, _ in shapes]
        one = random.integers(fmt.emin // 2, fmt.emax // 2, shape)
        other = one - target if name.startswith("VDIV") else target - one
        return [with_exponents(fmt, one, random), with_exponents(fmt, other, random)]
    if name == "VDPBF16PS":
        products = target + random.integers(-2, 3, (shape[0], 2))
        half = products // 2 + random.integers(-3, 4, products.shape)
        factors = [with_exponents(bfloat16, x, random) for x in (half, products - half)]
        return [with_exponents(fmt, target, random), *factors]
    half = target // 2 + random.integers(-3, 4, shape)
    factors = [with_exponents(fmt, x, random) for x in (half, target - half)]
    return [*factors, with_exponents(fmt, target + random.integers(-fmt.p - 1, 3, shape), random)]


# -- checking --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mismatch:
    """Operands on which machine and model part ways; codes are integers, flags those of `softfloat.Flags`."""

    setting: str
    operands: tuple[int, ...]
    found: int
    expected: int
    found_flags: int
    expected_flags: int


@dataclass
class Outcome:
    """What came of one instruction in one rounding mode.

    Attributes
    ----------
    instruction, mode : str
    status : str
        One of `STATUSES`.
    cases : int
        Operands whose results, and flags, were compared.
    mismatches, flag_mismatches : int
        Of these, wrong results; right results with wrong flags.
    examples : list of Mismatch
        The first of them.
    exhaustive : bool
        Whether `cases` has every operand there is.
    seconds : float
    reason : str
        Why nothing was checked.
    """

    instruction: str
    mode: str
    status: str
    cases: int = 0
    mismatches: int = 0
    flag_mismatches: int = 0
    examples: list[Mismatch] = field(default_factory=list)
    exhaustive: bool = False
    seconds: float = 0.0
    reason: str = ""


def _compare(
    instruction: Instruction, outcome: Outcome, operands: Operands, mode: str, flushing: bool, keep: bool = True
) -> None:
    """Run some operands both ways, twice on the machine: as whole vectors, and one at a time with their flags."""
    from softfloat.testing.hardware import instructions as machine

    assert instruction.code is not None
    assert instruction.run_model is not None
    mxcsr = machine.ALL_MASKED | (machine.DENORMALS_ZERO if flushing else 0)
    if instruction.by_register:
        mxcsr |= machine.ROUNDING_FIELD[mode] << machine.RC_SHIFT
    elif flushing:  # the register's mode must not count where an immediate or nothing chooses
        mxcsr |= machine.ROUNDING_FIELD["toward_zero"] << machine.RC_SHIFT
    options: dict[str, Any] = {"rounding": mode}
    options |= {"daz": flushing and instruction.daz, "ftz": flushing and instruction.ftz}
    expected, expected_flags = instruction.run_model(operands, options)
    code = machine.assemble(instruction.code(mode))
    together, any_flags = code.whole(operands, mxcsr)
    found, flags = code.each(operands, mxcsr)
    outcome.cases += found.size
    wrong = (found != expected) | (together != expected)
    wrong_flags = ~wrong & (flags != expected_flags)
    outcome.mismatches += int(wrong.sum())
    outcome.flag_mismatches += int(wrong_flags.sum())
    if not wrong.any() and any_flags != int(np.bitwise_or.reduce(flags, initial=0)):
        outcome.flag_mismatches += 1
    for i in np.flatnonzero(wrong | wrong_flags)[: EXAMPLES - len(outcome.examples)]:
        shown = int(found[i]) if found[i] != expected[i] else int(together[i])
        outcome.examples.append(
            Mismatch(
                SETTINGS[flushing],
                tuple(int(x[i]) for x in operands),
                shown,
                int(expected[i]),
                int(flags[i]),
                int(expected_flags[i]),
            )
        )


def _settled(outcome: Outcome, started: float) -> None:
    outcome.seconds = time.perf_counter() - started
    outcome.status = "differs" if outcome.mismatches or outcome.flag_mismatches else "agrees"


def check_hardware(
    names: Sequence[str] | None = None,
    *,
    samples: int = 100_000,
    seed: int = 0,
    exhaustive: bool = False,
    device: str = "cpu",
    outcomes: list[Outcome] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    scheduler: str | None = None,
    manifest: str | os.PathLike[str] | None = None,
) -> list[Outcome]:
    """Run instructions and model over the same operands, and compare codes and flags.

    Every instruction runs as the process starts (nearest even, nothing flushed) and with DAZ and FTZ on, whole vectors
    and one element at a time.

    Parameters
    ----------
    names : sequence of str, optional
        Instructions, of those in `instructions()`; default all.
    samples : int
        Operands for each instruction, rounding mode and setting of MXCSR, shared among the instruction's families.
        Instructions with 16-bit operands get all 65 536.
    seed : int
        Of the random operands, 0 to 2^64 - 1.
    exhaustive : bool
        Besides, all 2^32 operands of conversions from float32, as the process starts: one to a few minutes for each mode.
    device : str
        "cpu".
    outcomes : list, optional
        Where to put results as they come, for a caller that may be interrupted.
    progress : callable, optional
        Called as progress(what, done, total) in operands.
    scheduler : str, optional
        What runs all 2^32 operands, with `exhaustive`: "threads", "processes", or the address of a cluster's scheduler, whose machines' own
        instructions are then checked. Needs the extra `dask`. Default: one after the other, here.
    manifest : path, optional
        With a scheduler, a folder where parts are entered that are done; what was interrupted goes on from there.

    Returns
    -------
    list of Outcome
        One for each instruction and mode. What the machine lacks is "not available".

    Raises
    ------
    ValueError, TypeError
        Naming the argument and what is accepted.
    """
    table = {row.name: row for row in instructions()}
    if device not in DEVICES:
        raise ValueError(f"device must be {' or '.join(map(repr, DEVICES))}, got {device!r}")
    samples, seed = check_whole("samples", samples, 1), check_seed("seed", seed)
    if scheduler is not None and not exhaustive:
        raise ValueError(f"scheduler must be None unless exhaustive, got {scheduler!r}")
    if manifest is not None and scheduler is None:
        raise ValueError(f"manifest must be None without a scheduler, got {manifest!r}")
    if isinstance(names, str):
        names = [names]
    for name in names or ():
        if name not in table:
            raise ValueError(f"names must be among {', '.join(map(repr, table))}, got {name!r}")
    results = outcomes if outcomes is not None else []
    have = features()
    chosen = [table[name] for name in dict.fromkeys(names)] if names is not None else list(table.values())
    with _everything(scheduler, manifest) as spread:
        _check_rows(chosen, have, results, samples, seed, exhaustive, progress, spread)
    return results


Spread = Callable[[Instruction, str, Outcome, Callable[[int], None]], None]
"""spread(row, mode, outcome, report): all operands there are, into the outcome; report(so many are done)."""


@contextlib.contextmanager
def _everything(scheduler: str | None, manifest: str | os.PathLike[str] | None) -> Iterator[Spread]:
    """How all operands are run: one part after the other, or by a scheduler."""
    if scheduler is None:
        yield _one_by_one
        return
    from softfloat import dask

    folder = None if manifest is None else Path(manifest)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with dask.scheduled(scheduler) as options:

        def spread(row: Instruction, mode: str, outcome: Outcome, report: Callable[[int], None]) -> None:
            heading = {"instruction": row.name, "mode": mode, "part": CHUNK, "operands": SPACE}
            path = None if folder is None else folder / f"{row.name} {mode}.jsonl"
            work = functools.partial(_part, row.name, mode)
            parts = dask.sweep_tasks(
                work, SPACE // CHUNK, heading, manifest=path, progress=lambda done, _: report(done * CHUNK), **options
            )
            for part in parts:
                _add(outcome, part)

        yield spread


def _one_by_one(row: Instruction, mode: str, outcome: Outcome, report: Callable[[int], None]) -> None:
    for number in range(SPACE // CHUNK):
        _add(outcome, _part(row.name, mode, number))
        report((number + 1) * CHUNK)


def _part(name: str, mode: str, number: int) -> dict[str, Any]:
    """What came of one part of all operands, as a manifest keeps it."""
    row = next(row for row in instructions() if row.name == name)
    lacking = features().lacks(row.extensions)
    if lacking:
        raise ValueError(
            f"scheduler must have machines with {', '.join(lacking)} for {name}, and {platform.node()} has none"
        )
    outcome = Outcome(name, mode, "agrees")
    _compare(row, outcome, (np.arange(CHUNK, dtype=np.uint32) + np.uint32(number * CHUNK),), mode, False)
    found = {key: getattr(outcome, key) for key in ("cases", "mismatches", "flag_mismatches")}
    return found | {"examples": [dataclasses.astuple(x) for x in outcome.examples]}


def _add(outcome: Outcome, part: dict[str, Any]) -> None:
    for key in ("cases", "mismatches", "flag_mismatches"):
        setattr(outcome, key, getattr(outcome, key) + part[key])
    for setting, operands, *more in part["examples"][: EXAMPLES - len(outcome.examples)]:
        outcome.examples.append(Mismatch(setting, tuple(operands), *more))


def _check_rows(
    chosen: Sequence[Instruction],
    have: Features,
    results: list[Outcome],
    samples: int,
    seed: int,
    exhaustive: bool,
    progress: Callable[[str, int, int], None] | None,
    spread: Spread,
) -> None:
    for row in chosen:
        lacking = have.lacks(row.extensions)
        for mode in row.modes if not lacking and row.is_checked else ("",):
            outcome = Outcome(row.name, mode, "not available", reason=f"no {', '.join(lacking)} here" * bool(lacking))
            results.append(outcome)
            if lacking:
                continue
            if not row.is_checked:
                outcome.status, outcome.reason = "not checked", row.model.removeprefix("not checked: ")
                continue
            _check(row, outcome, mode, samples, seed, exhaustive, progress, spread)


def _check(
    row: Instruction,
    outcome: Outcome,
    mode: str,
    samples: int,
    seed: int,
    exhaustive: bool,
    progress: Callable[[str, int, int], None] | None,
    spread: Spread,
) -> None:
    started = time.perf_counter()
    random = np.random.default_rng([seed, *row.name.encode(), *mode.encode()])
    whole = exhaustive and len(row.formats) == 1 and row.formats[0].bits == 32 and not row.by_register
    each = -(-samples // len(row.families))
    total = SPACE * whole + len(row.families) * len(SETTINGS) * each
    title = f"{row.name} {mode}" if len(row.modes) > 1 else row.name
    outcome.status = "agrees"
    try:
        for flushing in (False, True):
            for family in row.families:
                for start in range(0, each, CHUNK):
                    drawn = _draw(row, family, min(CHUNK, each - start), random)
                    _compare(row, outcome, drawn, mode, flushing)
                if progress:
                    progress(title, min(outcome.cases, total), total)
        if whole:
            before = outcome.cases
            spread(
                row, mode, outcome, lambda done: progress(title, min(before + done, total), total) if progress else None
            )
        outcome.exhaustive = whole or row.families == ("all",)
    finally:
        _settled(outcome, started)
