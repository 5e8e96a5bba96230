"""The faster loops against the plain ones: same codes, same flags, on random bits, on numbers, at every threshold."""

from __future__ import annotations

import itertools
import re

import numba
import numpy as np
import pytest
from faster import SIZE, both, same, singles
from llvmlite import binding
from operands import CUSTOM, operands
from softfloat.kernels import fast, spec

from softfloat import ROSTER, Format, bits, engine

TARGETS = [fmt for fmt in (*ROSTER.values(), *CUSTOM) if fmt.has_nan]
RULES = [
    {"tininess": tininess, "overflow": overflow}
    for tininess, overflow in itertools.product(("after", "before"), ("infinity", "saturate"))
]


@pytest.mark.parametrize("mode", ["nearest_even", "stochastic"])
@pytest.mark.parametrize("fmt", TARGETS, ids=str)
def test_convert(monkeypatch: pytest.MonkeyPatch, fmt: Format, mode: str) -> None:
    x = singles(fmt, 1)
    for rule in RULES:
        options = {"rounding": mode, **rule}
        if mode == "stochastic":
            options |= {"seed": 5, "stream": 2, "sr_bits": 24 if rule["tininess"] == "after" else None}
        same(both(monkeypatch, lambda o=options: bits.encode(x, fmt, **o)))
        together, plain = both(monkeypatch, lambda o=options: bits.encode(x, fmt, flags="any", **o))
        assert np.array_equal(together[0], plain[0])
        assert together[1] == plain[1]
        for part in np.array_split(np.sort(np.abs(x)), 40):  # flags of parts that raise only some
            together, plain = both(monkeypatch, lambda o=options, p=part: bits.encode(p, fmt, flags="any", **o))
            assert together[1] == plain[1], (part[0], part[-1], options)


@pytest.mark.parametrize("width", [16, 24, 52])
@pytest.mark.parametrize("name", ["float16", "float8_e5m2", "float8_e4m3fn"])
def test_the_random_number_is_compared_to_its_last_bit(name: str, width: int) -> None:
    """float32 numbers next to the threshold of their position, on either side: what the first 16 random bits leave open."""
    fmt = ROSTER[name]
    threshold = 1 - bits.random_bits(1 << 16, seed=3, sr_bits=width) / 2.0**width
    nearest = threshold.astype(np.float32)
    above = np.where(nearest >= threshold, nearest, np.nextafter(nearest, np.float32(2)))
    below = np.where(nearest < threshold, nearest, np.nextafter(nearest, np.float32(0)))
    for fractions, expected in ((above, 1), (below, 0)):
        x = np.where(fractions < 1, fractions, np.float32(0.5)) * np.float32(fmt.smallest_subnormal)
        codes, flags = bits.encode(x, fmt, rounding="stochastic", seed=3, sr_bits=width)
        settled = fractions < 1
        assert settled.sum() > 60_000
        assert (codes[settled] == expected).all()
        assert (flags == 3).all()


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div", "fma"])
def test_half_arithmetic(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    fmt = ROSTER["float16"]
    arity = 3 if operation == "fma" else 2
    for seed, rule in enumerate(RULES):
        columns = operands(fmt, 8 * SIZE, arity, seed)
        same(both(monkeypatch, lambda c=columns, r=rule: getattr(bits, operation)(*c, fmt, **r)))
        together, plain = both(
            monkeypatch, lambda c=columns, r=rule: getattr(bits, operation)(*(x[:9] for x in c), fmt, flags="any", **r)
        )
        assert together[1] == plain[1]


def test_the_faster_loops_are_chosen() -> None:
    """Where they serve; elsewhere this would compare the plain loops with themselves."""

    def family(operation: str, source: str, target: str, **rule: object) -> str:
        return engine.fast_family(
            operation, ROSTER[source].spec, ROSTER[target].spec, spec.Rule(conversion=operation == "convert", **rule)
        )

    halves = "half" if fast.has_f16c() else ""
    assert family("add", "float16", "float16") == halves
    assert family("convert", "float32", "float16") == (halves or "narrow")
    assert family("convert", "float32", "bfloat16") == "bfloat16"
    assert family("convert", "float32", "float8_e4m3fn") == "narrow"
    assert family("convert", "float32", "float16", rounding=spec.Rounding.STOCHASTIC) == "narrow"
    assert family("add", "float16", "float16", daz=True) == ""
    assert family("convert", "float32", "float16", nan="x86") == ""


def test_features_go_by_the_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    """F16C and FMA are x86's names; what they do is part of every Armv8-A."""
    monkeypatch.setattr(fast.jit, "DISABLED", False)
    monkeypatch.setattr(numba.config, "CPU_FEATURES", None)
    monkeypatch.setattr(fast, "_host_features", lambda: {"fma": True, "f16c": False})
    for name in ("aarch64", "arm64", "x86_64"):
        monkeypatch.setattr(fast, "_architecture", lambda n=name: n)
        arm = name != "x86_64"
        for cpu in (None, "generic"):
            monkeypatch.setattr(numba.config, "CPU_NAME", cpu)
            assert fast.has_f16c() == arm
            assert fast.has_feature("fma") == (arm or cpu is None)
            assert not fast.has_feature("avx512f")
    monkeypatch.setattr(fast.jit, "DISABLED", True)
    assert not fast.has_f16c()


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_arm_has_instructions_for_it(lanes: int) -> None:
    """On a generic AArch64, vectors of halves are converted and multiply-adds fused without a call."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    triple = "aarch64-unknown-linux-gnu"
    try:
        target = binding.Target.from_triple(triple)
    except RuntimeError:
        pytest.skip("this LLVM has no AArch64")
    code = f"""
        target triple = "{triple}"
        declare <{lanes} x float> @llvm.fma.v{lanes}f32(<{lanes} x float>, <{lanes} x float>, <{lanes} x float>)
        define <{lanes} x half> @f(<{lanes} x half> %x, <{lanes} x float> %y, <{lanes} x float> %z) {{
            %wide = fpext <{lanes} x half> %x to <{lanes} x float>
            %s = call <{lanes} x float> @llvm.fma.v{lanes}f32(<{lanes} x float> %wide, <{lanes} x float> %y, <{lanes} x float> %z)
            %narrow = fptrunc <{lanes} x float> %s to <{lanes} x half>
            ret <{lanes} x half> %narrow
        }}"""
    machine = target.create_target_machine(cpu="generic", features="", opt=3)
    assembly = machine.emit_assembly(binding.parse_assembly(code))
    assert not re.search(r"^\tbl\t", assembly, re.MULTILINE)
    for instruction in ("fcvtl", "fcvtn", "fmla"):
        assert instruction in assembly
