"""The same numbers from plain Python, from machine code for this CPU and from machine code for any CPU of the kind."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

SCRIPT = '''
import itertools
import numpy as np
import softfloat
from softfloat import Format, accumulators, bits

FORMATS = {
    "float16": softfloat.float16,
    "bfloat16": softfloat.bfloat16,
    "unusual": Format("e5m7fnuz", exponent_bits=5, mantissa_bits=7, nan="fnuz", subnormals=False),
    "any": Format("e6m9", exponent_bits=6, mantissa_bits=9),
}
MODES = ["nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd", "stochastic"]
OPERATIONS = {
    "add": 2, "sub": 2, "mul": 2, "div": 2, "remainder": 2, "fma": 3,
    "hypot": 2, "fmod": 2, "modulo": 2, "floor_divide": 2, "pow": 2, "tan": 1,
    "sqrt": 1, "round_to_integral": 1, "convert": 1, "to_integer": 1, "encode": 1,
}
COMPARISONS = ("eq", "le", "minimum", "maximum_number")
STOCHASTIC = {"rounding": "stochastic", "seed": 5}
DOTS = {
    "fma": ("fma('float16')", "float16", {}),
    "fma x86": ("fma('float16')", "float16", {"nan": "x86", "overflow": "saturate"}),
    "fma drawn": ("fma('float16')", "float16", STOCHASTIC),
    "fma drawn by few": ("fma('bfloat16')", "bfloat16", STOCHASTIC | {"sr_bits": 3}),
    "fma fp8": ("fma('float8_e5m2')", "float8_e5m2", {}),
    "fma single": ("fma('float32')", "float32", {}),
    "mul_add": ("mul_add('float16')", "float16", {}),
    "mul_add brain": ("mul_add('bfloat16')", "bfloat16", {}),
    "mul_add drawn": ("mul_add('float16')", "float16", STOCHASTIC),
    "amp": ("amp('half')", "float16", {}),
    "amp drawn": ("amp('half')", "float16", STOCHASTIC),
    "amp aligned": ("amp('float', mode='aligned')", "float16", {}),
    "slic": ("slic('half', window=3)", "float16", {}),
    "vdpbf16ps": ("vdpbf16ps()", "bfloat16", {}),
    "tensor core": ("tensor_core('H100')", "float16", {}),
    "tensor core half": ("tensor_core('A100', output='float16')", "float16", {}),
    "tensor core fp8": ("tensor_core('H100', 'float8_e4m3fn')", "float8_e4m3fn", {}),
    "chunked": ("chunked(4, 'float16', 'float32')", "float16", {}),
    "pairwise": ("pairwise('float16')", "float16", {}),
    "exact": ("exact('float32')", "float16", {}),
}
CHOSEN = ("add", "div", "fma", "encode")  # also under other NaN policies and in other formats
WAYS = [("canonical", "infinity", False), ("x86", "saturate", True), ("ipu", "nan", False)]


def operands(fmt, arity, count):
    """Random codes and specials; half of the later operands have exponents near those of the first."""
    draw = np.random.default_rng(arity)
    codes = draw.integers(0, 2**fmt.bits, (arity, count))
    near = codes[0] ^ draw.integers(0, 4 << fmt.mantissa_bits, (arity, count))
    codes = np.where(draw.integers(0, 2, (arity, count)), near, codes)
    infinity = fmt.inf_code if fmt.infinities else fmt.min_code
    special = [0, fmt.sign_bit, 1, fmt.max_code, fmt.nan_code, infinity, fmt.one_code]
    product = list(itertools.islice(itertools.product(special, repeat=arity), count // 3))
    codes[:, : len(product)] = np.transpose(product)
    return list(codes.astype(fmt.dtype))


def results(count, operations, modes, formats, ways):
    found = {}
    for name, mode, fmt in itertools.product(operations, modes, formats):
        for i, (nan, overflow, ftz) in enumerate(WAYS[:ways]):
            if (i or fmt != "float16") and name not in CHOSEN:
                continue
            if i and mode not in ("nearest_even", "stochastic"):
                continue
            options = {"rounding": mode, "nan": nan, "overflow": overflow, "ftz": ftz, "daz": ftz}
            fmt_ = FORMATS[fmt]
            if mode == "stochastic":
                options |= {"seed": 3, "stream": 1, "sr_bits": (52, 7, 20)[i]}
            codes = operands(fmt_, OPERATIONS[name], count)
            if name == "encode":
                arguments = [bits.decode(codes[0], fmt_) * np.linspace(0.5, 2, count), fmt_]
            else:
                tail = {"convert": [softfloat.float8_e5m2], "to_integer": [np.int8]}.get(name, [])
                arguments = [*codes, fmt_, *tail]
            codes, flags = getattr(bits, name)(*arguments, **softfloat.engine.as_environment(options))
            found[f"{name} {mode} {fmt} {nan}"] = np.stack([codes.astype(np.int64), flags])
    for fmt in formats:
        codes = operands(FORMATS[fmt], 2, count)
        found[f"decode {fmt}"] = bits.decode(codes[0], FORMATS[fmt])
        for name in COMPARISONS:
            if len(operations) == len(OPERATIONS):
                pair = getattr(bits, name)(*codes, FORMATS[fmt])
                found[f"{name} {fmt}"] = np.stack([x.astype(np.int64) for x in pair])
    for name, (example, inputs, options) in DOTS.items():
        rows, length, columns = (9, 40, 19) if count > 1000 else (2, 18, 3)
        fmt = softfloat.Format.from_name(inputs)
        draw = np.random.default_rng(len(name))
        ordinary = [
            bits.encode(draw.standard_normal(shape) * np.exp2(draw.integers(-4, 5, shape)), fmt, overflow="saturate")[0]
            for shape in ((rows, length), (length, columns))
        ]
        wild = [x.reshape(shape) for x, shape in zip(
            (operands(fmt, 1, rows * length)[0], operands(fmt, 2, length * columns)[1]), ((rows, length), (length, columns))
        )]
        how = eval(example, vars(accumulators))
        for kind, pair in (("ordinary", ordinary), ("wild", wild)):
            codes, flags = bits.matmul(*pair, fmt, how, **options)
            found[f"{name} {kind}"] = np.stack([codes.astype(np.int64), flags])
    image = ordinary[0].ravel()[:18].reshape(1, 3, 3, 2)
    kernel = ordinary[1].ravel()[:16].reshape(2, 2, 2, 2)
    found["conv2d"] = np.stack([x.astype(np.int64) for x in bits.conv2d(image, kernel, fmt, how, padding="same")])
    for generator in ("philox4x32", "xoroshiro128aox"):
        found[f"random {generator}"] = bits.random_bits(300, seed=9, stream=2, generator=generator)
    return found
'''

scope: dict = {}
exec(SCRIPT, scope)

EVERYTHING = (120, tuple(scope["OPERATIONS"]), tuple(scope["MODES"]), ("float16", "bfloat16", "unusual"), 3)
SOME = (1500, ("add", "mul", "fma", "encode"), ("nearest_even", "stochastic"), ("float16", "bfloat16", "any"), 1)


@cache
def compiled(case: tuple) -> dict[str, np.ndarray]:
    return scope["results"](*case)


def elsewhere(case: tuple, path: Path, **settings: str) -> dict[str, np.ndarray]:
    script = f"{SCRIPT}\nnp.savez({str(path)!r}, **results(*{case!r}))\n"
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with np.load(path) as found:
        return dict(found)


@pytest.mark.parametrize(
    ("case", "settings"),
    [
        (EVERYTHING, {"NUMBA_DISABLE_JIT": "1"}),
        (SOME, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}),
    ],
    ids=["plain Python", "generic CPU"],
)
def test_the_same_numbers_everywhere(case: tuple, settings: dict[str, str], tmp_path: Path) -> None:
    found = elsewhere(case, tmp_path / "found.npz", **settings)
    expected = compiled(case)
    assert set(found) == set(expected)
    for name, numbers in expected.items():
        assert found[name].dtype == numbers.dtype
        np.testing.assert_array_equal(found[name], numbers, err_msg=name)
        assert np.unique(numbers).size > 1
