"""Arrays of doubles rounded, and products of matrices, from Octave and Julia: the numbers of softfloat.bits."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softfloat import bits, export
from softfloat.accumulators import fma
from softfloat.engine.native import Job
from softfloat.export.functions import Prototype, prototypes
from softfloat.export.library import request
from softfloat.export.numerics import julia, mex

FORMATS, ACCUMULATORS, LENGTH = ["float16", "float6_e2m3fn", "float32"], ["fma('float16')", "exact('float32')"], 5


def texts(functions: list[str], accumulators: list[str]) -> tuple[str | None, str | None, list[Prototype]]:
    """sf_mex.c, sf.jl and the functions that are there."""
    asked = request(functions, FORMATS, accumulators, [LENGTH])
    found = prototypes(asked, Job())
    return mex(asked, found), julia(asked, found), found


# -- Julia ---------------------------------------------------------------------------------------------------------------

JULIA_TYPES = {
    "double": ("Cdouble",),
    "sf_rule": ("UInt32",),
    **{f"uint{n}_t": (f"UInt{n}",) for n in (8, 16, 32, 64)},
}


def test_what_julia_calls_is_what_there_is() -> None:
    """Every ccall has the types of its function in C, and as many values as types."""
    _, text, found = texts(["encode", "decode"], ACCUMULATORS)
    assert text is not None
    known = {x.name: x for x in found}
    calls = re.findall(r"ccall\(\(:(\w+), libsf\), (\w+),\s*\(([^)]*)\),\s*(.*?)\)(?: for|\n)", text, re.DOTALL)
    assert len(calls) == 4 * len(FORMATS) - len(FORMATS) + 2 * 2 * len(FORMATS)
    for name, gives, takes, _ in calls:
        prototype = known[name]
        assert gives in JULIA_TYPES[prototype.gives], name
        types = [x.strip() for x in takes.split(",") if x.strip()]
        wanted = [JULIA_TYPES[x.kind] if not x.pointer else (f"Ptr{{{JULIA_TYPES[x.kind][0]}}}", f"Ref{{{JULIA_TYPES[x.kind][0]}}}")
                  for x in prototype.arguments]  # fmt: skip
        assert len(types) == len(wanted), name
        assert all(x in accepted for x, accepted in zip(types, wanted, strict=True)), (name, types)
    opened = re.findall(r"^\s*(?:module|function|for|if|while|begin)\b", text, re.MULTILINE)
    assert len(opened) == len(re.findall(r"^\s*end\b", text, re.MULTILINE))
    for one in ("round_float16", "round_float6_e2m3fn", "gemm_fma_float16_float16", "gemm_exact_float32_float32"):
        assert f"function {one}(" in text
    assert "const SF_UP_OR_DOWN = 0x00000009" in text


def test_the_text_for_julia() -> None:
    _, text, _ = texts(["encode", "decode"], [])
    assert text is not None
    start = text.index('"""Numbers rounded to float16."""')
    assert (
        text[start : text.index("end\n\nfunction exactly", start)]
        == '''\
"""Numbers rounded to float16."""
function round_float16(x::AbstractArray{<:Real}; rule::Integer = 0, seed::Integer = 0, stream::Integer = 0)
    y, flags, raised = Array{Float64}(undef, size(x)), 0x00, Ref{UInt8}(0)
    for (i, value) in enumerate(x)
        code = ccall((:sf_encode_float16_at, libsf), UInt16, (Cdouble, UInt32, UInt64, UInt64, UInt64, Ref{UInt8}),
                     value, rule, seed, stream, i - 1, raised)
        y[i] = ccall((:sf_decode_float16, libsf), Cdouble, (UInt16,), code)
        flags |= raised[]
    end
    return y, accepted(flags)
'''
    )


def test_without_encode_and_decode_there_is_nothing_on_doubles() -> None:
    for functions in (["add"], ["encode"], ["decode", "add"]):
        assert texts(functions, ACCUMULATORS)[:2] == (None, None)


# -- Octave --------------------------------------------------------------------------------------------------------------

SCRIPT = """
x = reshape(hex2num({{ {x} }}), 4, []); a = reshape(hex2num({{ {a} }}), 3, []); b = reshape(hex2num({{ {b} }}), {k}, []);
names = {{ {modes} }};
for i = 1:numel(names)
  rule = sf_mex(names{{i}});
  [y, f] = sf_mex('round', 'float16', x, rule, 7, 3); show(y, f);
  [y, f] = sf_mex('round', 'float6_e2m3fn', x, rule + sf_mex('SF_OVERFLOW_SATURATE'), 7, 3); show(y, f);
  [y, f] = sf_mex('gemm', 'fma_float16_float16', a, b, rule, 7, 3); show(y, f);
end
function refused(varargin)
  try
    sf_mex(varargin{{:}}); disp('accepted');
  catch told
    disp(told.message);
  end
end
refused('round', 'float17', x);
refused('round', 'float16', x, 10);
refused('round', 'float16', single(x));
refused('gemm', 'fma_float16_float16', a + 1e-9, b);
refused('gemm', 'fma_float16_float16', a, b');
refused('gemm', 'fma_float16_float16', a(:, 1:2), b(1:2, :));
refused('SF_NEAREST');
disp(sf_mex('round', 'float16', 0.1) == 0.0999755859375);
"""
MODES = ("nearest_even", "toward_positive", "to_odd", "stochastic", "nearest_up", "up_or_down")
REFUSALS = ["float17 is not in this library; accepted: float16, float6_e2m3fn, float32", "there is no such rule", "x must be a real",
            "round them first", "as many columns", "no product of so many columns", "no constant SF_NEAREST"]  # fmt: skip


def in_octave(x: np.ndarray[Any, Any]) -> str:
    """Numbers in the order of Octave's memory, by their bits."""
    return "; ".join(f"'{word:016x}'" for word in np.asarray(x, np.float64).ravel("F").view(np.uint64).tolist())


def test_octave(tmp_path: Path) -> None:
    """Numbers and flags of every kind of mode, random ones too, and what is refused."""
    for tool in ("gcc", "mkoctfile", "octave-cli"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path / "sf"
    export.write(
        folder, functions=["encode", "decode"], formats=FORMATS, accumulators=ACCUMULATORS[:1], lengths=[LENGTH]
    )
    built = subprocess.run(["mkoctfile", "--mex", "sf_mex.c", "libsf.o"], cwd=folder, capture_output=True, text=True)
    if "mex.h" in built.stderr and built.returncode:
        pytest.skip("Octave's headers are not installed")
    assert built.returncode == 0, built.stderr
    random = np.random.default_rng(1)
    x = np.concatenate(
        [random.standard_normal(20) * 2.0 ** random.integers(-26, 18, 20), [65519.9, 65520, 1 + 2.0**-11, -0.0]]
    ).reshape(4, -1)
    a, b = (
        np.asarray(bits.decode(bits.encode(random.standard_normal(n), "float16")[0], "float16"))
        for n in ((3, LENGTH), (LENGTH, 4))
    )
    names = ", ".join(f"'SF_{mode.upper()}'" for mode in MODES)
    script = SCRIPT.format(x=in_octave(x), a=in_octave(a), b=in_octave(b), k=LENGTH, modes=names)
    show = "function show(y, f)\n  printf('%s ', num2hex(y(:))'); printf('%d\\n', f);\nend\n"
    (folder / "test_sf.m").write_text("1;\n" + show + script)
    done = subprocess.run(
        ["octave-cli", "-q", "--no-history", "test_sf.m"], cwd=folder, capture_output=True, text=True, timeout=300
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3 * len(MODES) + len(REFUSALS) + 1, (done.stdout, done.stderr)
    shown = iter(lines)
    for mode in MODES:
        options: dict[str, Any] = {"rounding": mode} | (
            {"seed": 7, "stream": 3} if mode in ("stochastic", "up_or_down") else {}
        )
        for fmt, overflow in (("float16", "infinity"), ("float6_e2m3fn", "saturate")):
            codes, flags = bits.encode(x.ravel("F"), fmt, overflow=overflow, flags="any", **options)
            assert read(next(shown)) == (bits.decode(codes, fmt).view(np.uint64).tolist(), flags), (mode, fmt)
        p, q = bits.encode(a, "float16")[0], bits.encode(b, "float16")[0]
        codes, flags = bits.matmul(p, q, "float16", fma("float16"), flags="any", **options)
        wanted = np.asarray(bits.decode(codes, "float16")).ravel("F").view(np.uint64).tolist()
        assert read(next(shown)) == (wanted, flags), mode
    for words in REFUSALS:
        assert words in next(shown)
    assert next(shown).strip() == "1"


def read(line: str) -> tuple[list[int], int]:
    """Words in hexadecimal, and flags."""
    words, flags = line.split()
    return [int(words[i : i + 16], 16) for i in range(0, len(words), 16)], int(flags)
