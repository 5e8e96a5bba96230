"""NVIDIA's scalar instructions, and the call of `softfloat.bits` that each is: read from the parts of its name in PTX.

>>> one = scalar_instruction("fma.rn.ftz.relu.f16")
>>> one.call
'maximum(fma(a, b, c, "float16"), 0, "float16") under Environment.nvidia(ftz=True)'
>>> [hex(x) for x in one.run(np.array([[0xBC00], [0x3C00], [0x0000]], np.uint16))]
['0x0']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.environments import Environment
from softfloat.formats import (
    Format,
    bfloat16,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    tfloat32,
)

__all__ = ["NAMES", "ScalarInstruction", "scalar_instruction"]

Codes = np.ndarray[Any, Any]

KINDS: dict[str, Format] = {
    "f16": float16,
    "bf16": bfloat16,
    "f32": float32,
    "f64": float64,
    "tf32": tfloat32,
    "e4m3x2": float8_e4m3fn,
    "e5m2x2": float8_e5m2,
}
"""PTX's types. Of a pair, both are made alike: rows are of one of them."""
ROUNDINGS = {
    "rn": "nearest_even",
    "rz": "toward_zero",
    "rm": "toward_negative",
    "rp": "toward_positive",
    "rna": "nearest_away",
}
CHOICES = {
    ("min", False): "minimum_number",
    ("max", False): "maximum_number",
    ("min", True): "minimum",
    ("max", True): "maximum",
}
"""By whether .NaN is there."""
TF32_SHIFT = 13  # bits of a register below a tf32 number


@dataclass(frozen=True)
class ScalarInstruction:
    """One instruction.

    Attributes
    ----------
    name : str
        As PTX spells it.
    call : str
        The call of `softfloat.bits` that says the same, a, b, c or x the operands, and under which environment.
    mode : str
        Its rounding mode.
    formats : tuple of Format
        Of operands.
    result : Format
        tf32 numbers are in the upper 19 bits of a register.
    run : callable
        run(operands) is the result's codes; operands are arrays of codes.
    """

    name: str
    call: str
    mode: str
    formats: tuple[Format, ...]
    result: Format
    run: Callable[[Sequence[Codes]], Codes] = field(repr=False, compare=False)

    @property
    def paired(self) -> bool:
        """Whether it makes two results of two operands: those in 8 bits."""
        return self.result.bits == 8


Step = Callable[..., tuple[Codes, Any]]


def _first(operation: str, parts: list[str], kinds: list[str]) -> tuple[str, Step]:
    """The operation without what happens to its result: the call, and step(operands, environment)."""
    result = KINDS[kinds[0]]
    if operation in ("neg", "abs"):
        return _signed(operation, result)
    if "approx" in parts:
        approximate = getattr(bits, f"nvidia_{operation}")
        return f'nvidia_{operation}(x, "{result.name}")', lambda x, env: (approximate(x[0], result), None)
    if "rni" in parts:
        return (
            f'round_to_integral(x, "{result.name}")',
            lambda x, env: bits.round_to_integral(x[0], result, environment=env),
        )
    if operation == "cvt":
        source = KINDS[kinds[1]]
        return (
            f'convert(x, "{source.name}", "{result.name}")',
            lambda x, env: bits.convert(x[0], source, result, environment=env),
        )
    name = CHOICES.get((operation, "NaN" in parts), operation)
    letters = ", ".join("abc"[: _operands(operation)])
    return f'{name}({letters}, "{result.name}")', lambda x, env: getattr(bits, name)(*x, result, environment=env)


def _signed(operation: str, fmt: Format) -> tuple[str, Step]:
    """A sign changed, as products are: NaN is the one NaN."""
    minus_one = fmt.sign_bit | fmt.bias << fmt.mantissa_bits

    def negative(x: Sequence[Codes], env: Environment) -> tuple[Codes, Any]:
        return bits.mul(x[0], minus_one, fmt, environment=env)

    call = f'mul(x, {minus_one:#x}, "{fmt.name}")'
    if operation == "neg":
        return call, negative
    return (
        f'maximum(x, {call}, "{fmt.name}")',
        lambda x, env: bits.maximum(x[0], negative(x, env)[0], fmt, environment=env),
    )


def _operands(operation: str) -> int:
    return {"fma": 3, **dict.fromkeys(("sqrt", "cvt", "neg", "abs", "ex2", "tanh"), 1)}.get(operation, 2)


def scalar_instruction(name: str) -> ScalarInstruction:
    """What an instruction of `NAMES` does."""
    operation, *parts = name.split(".")
    kinds = [x for x in parts if x in KINDS]
    mode = next((ROUNDINGS[x] for x in parts if x in ROUNDINGS), "nearest_even")
    ftz, saturates = "ftz" in parts, "satfinite" in parts
    result, sources = KINDS[kinds[0]], kinds[-1:] * _operands(operation)
    call, first = _first(operation, parts, kinds)
    one = result.bias << result.mantissa_bits
    env = Environment.nvidia(ftz=ftz).replace(rounding=mode)
    settings = "ftz=True" * ftz
    changes = {"rounding": mode} if mode != "nearest_even" else {}
    if saturates:
        env = env.replace(overflow="saturate")
        changes["overflow"] = "saturate"
    clamps: list[tuple[str, int]] = []
    if "relu" in parts:
        clamps = [("maximum", 0)]
    elif "sat" in parts:
        clamps = [("maximum_number", 0), ("minimum_number", one)]
    for clamp, limit in clamps:
        call = f'{clamp}({call}, {limit:#x}, "{result.name}")' if limit else f'{clamp}({call}, 0, "{result.name}")'
    shift = TF32_SHIFT if result == tfloat32 else 0

    def run(operands: Sequence[Codes]) -> Codes:
        codes, _ = first(operands, env)
        for clamp, limit in clamps:
            codes, _ = getattr(bits, clamp)(codes, limit, result, environment=env)
        return np.asarray(codes) << np.asarray(shift, result.dtype)

    under = f" under Environment.nvidia({settings})"
    if changes:
        under += f".replace({', '.join(f'{key}={value!r}' for key, value in changes.items())})"
    return ScalarInstruction(
        name,
        call + f" << {shift}" * bool(shift) + under,
        mode,
        tuple(KINDS[x] for x in sources),
        result,
        run,
    )


NAMES = (
    *(f"{x}{ftz}.f16" for x in ("add", "mul") for ftz in (".rn", ".rn.ftz", ".rn.sat")),
    *("sub.rn.f16", "sub.rn.ftz.f16"),
    *(f"{x}.rn.bf16" for x in ("add", "sub", "mul")),
    *(f"fma.rn{x}.f16" for x in ("", ".ftz", ".relu", ".sat", ".ftz.relu", ".ftz.sat")),
    *("fma.rn.bf16", "fma.rn.relu.bf16"),
    *(f"{x}{more}.f32" for x in ("add", "mul", "fma") for more in (".rn", ".rn.ftz", ".rn.sat")),
    *(f"{x}.rn.f64" for x in ("add", "mul", "fma")),
    *("fma.rn.ftz.sat.f32", "fma.rz.f32", "sub.rn.f32"),
    *(f"{x}.rn{ftz}.f32" for x in ("div", "sqrt") for ftz in ("", ".ftz")),
    *(f"{x}{more}.{kind}" for kind in ("f16", "f32") for x in ("min", "max") for more in ("", ".NaN", ".ftz")),
    "min.ftz.NaN.f16",
    *(f"{x}{more}.bf16" for x in ("min", "max") for more in ("", ".NaN")),
    *(f"cvt.{mode}.f16.f32" for mode in ("rn", "rz", "rm", "rp", "rn.ftz", "rn.relu", "rz.relu", "rn.sat")),
    *(f"cvt.{mode}.bf16.f32" for mode in ("rn", "rz", "rn.relu", "rz.relu")),
    *(f"cvt{x}.f32.f16" for x in ("", ".ftz", ".sat")),
    *(f"cvt.rn.satfinite.{kind}.f32" for kind in ("f16", "bf16")),
    *("cvt.rni.f16.f16", "cvt.rni.f32.f32"),
    *("ex2.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.f16", "tanh.approx.bf16"),
    *(f"{x}.{kind}" for x in ("neg", "abs") for kind in ("f16", "bf16", "f32")),
    *("cvt.f32.bf16", "cvt.rn.bf16.f16", "cvt.rn.f16.bf16"),
    *(f"cvt.{mode}.tf32.f32" for mode in ("rna", "rn", "rz", "rn.relu", "rz.relu")),
    *(f"cvt.rn.{kind}.f64" for kind in ("f16", "bf16", "f32")),
    *(f"cvt.rn.satfinite{relu}.{kind}.f32" for kind in ("e4m3x2", "e5m2x2") for relu in ("", ".relu")),
)
"""Those whose results were read off an H100."""
