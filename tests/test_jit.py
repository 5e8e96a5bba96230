"""What compilation says and keeps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from softfloat.kernels import jit


def test_slow_compilation_is_announced(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def doubling_loop(values):  # type: ignore[no-untyped-def]
        for i in range(values.size):
            values[i] *= 2

    loop = jit.compiled(doubling_loop)
    monkeypatch.setattr(jit, "SLOW_COMPILATION_SECONDS", 0.0)
    values = np.ones(3)
    loop(values)
    assert values.tolist() == [2.0, 2.0, 2.0]
    assert capsys.readouterr().err.count("compiling doubling_loop took") == 1
    loop(values)
    assert capsys.readouterr().err == ""


def test_every_kernel_source_is_part_of_the_cache_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Numba stamps the outermost function's file only; the digest covers the rest."""
    sources = sorted(Path(jit.__file__).parent.glob("*.py"))
    assert len(sources) > 7
    for path in sources:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "jit.py"))
    assert jit._source_digest() == jit.SOURCE_DIGEST
    for path in sources:
        copy = tmp_path / path.name
        text = copy.read_bytes()
        copy.write_bytes(text + b"#")
        assert jit._source_digest() != jit.SOURCE_DIGEST, path.name
        copy.write_bytes(text)


def test_without_a_folder_for_compiled_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    njit = jit.numba.njit

    def nowhere(*arguments, **options):  # type: ignore[no-untyped-def]
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*arguments, **options)

    def tripling_loop(values):  # type: ignore[no-untyped-def]
        for i in range(values.size):
            values[i] *= 3

    monkeypatch.setattr(jit.numba, "njit", nowhere)
    values = np.ones(2)
    jit.compiled(tripling_loop)(values)
    assert values.tolist() == [3.0, 3.0]
    assert "NUMBA_CACHE_DIR" in capsys.readouterr().err


KEYS = """
import hashlib
import sys
import numpy as np
from numba.core.serialize import dumps

sys.pycache_prefix, sys.dont_write_bytecode = sys.argv[1], False
from softfloat.kernels import dots, fast, loops, tiles

made = [
    loops.elementwise("add", "nearest", False, True, False),
    loops.elementwise_drawn("round_to_integral", True, True, True),
    loops.decoding(), loops.settling(), loops.gathering(True), loops.comparison("lt", True, True),
    loops.extremum(True, False, True), loops.to_integer(True, True), loops.drawing(), loops.generating(),
    fast.elementwise("half", "fma", True), fast.convert_drawn("narrow", True),
    dots.contraction(), dots.extent(), tiles.spans(),
    tiles.deterministic(("fma", "half"), np.float32, 1, 1, False),
    tiles.deterministic(("mul_add", "half"), np.float32, 1, 1, False),
    tiles.deterministic(("fma", "float32"), np.float32, 1, 1, False),
    tiles.deterministic(("fma", "float32"), np.float32, 1, 1, True),
    tiles.deterministic(("aligned", ""), np.float64, 16, 2, "cut"),
    tiles.exact_blocks(4, 4, "nearest", False), tiles.exact_blocks(4, 4, "drawn", False),
    tiles.stochastic(False, True), tiles.stochastic(True, True),
]
for loop in made:
    function = loop.dispatcher.py_func
    closed_over = dumps(tuple(cell.cell_contents for cell in function.__closure__))
    print(function.__name__, hashlib.sha256(closed_over + function.__code__.co_code).hexdigest())
"""


def test_compiled_code_is_found_again(tmp_path: Path) -> None:
    """What Numba's cache goes by, beside the types, is the same in every process, of sources and of bytecode, and differs between loops."""
    printed = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", KEYS, str(tmp_path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout.splitlines()
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    assert len(set(printed[0])) == len(printed[0]) == 24
