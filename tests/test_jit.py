"""What compilation says and keeps."""

from __future__ import annotations

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
    assert "compiling doubling_loop took" in capsys.readouterr().err
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
