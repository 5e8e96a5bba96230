"""What compilation says and keeps."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from commands import without_compiling
from softfloat.kernels import compile_cache, jit

import softfloat

COMING = "softfloat: compiling loops that are not in the cache yet; this takes some seconds, once"


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder for compiled code."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    compile_cache.tell_once.cache_clear()
    return tmp_path


def test_slow_compilation_is_announced(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def doubling_loop(values):  # type: ignore[no-untyped-def]
        for i in range(values.size):
            values[i] *= 2

    loop = jit.compiled(doubling_loop)
    monkeypatch.setattr(jit, "SLOW_COMPILATION_SECONDS", 0.0)
    values = np.ones(3)
    loop(values)
    assert values.tolist() == [2.0, 2.0, 2.0]
    before, line = capsys.readouterr().err.splitlines()
    assert before == COMING
    assert "compiling doubling_loop took" in line
    assert line.endswith("it is cached from now on")
    loop(values)
    assert capsys.readouterr().err == ""


def test_every_kernel_source_is_part_of_the_cache_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = Path(jit.__file__).parent
    sources = sorted(folder.rglob("*.py"))
    assert len({path.parent for path in sources}) == 2
    for path in sources:
        copy = tmp_path / path.relative_to(folder)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "jit.py"))
    assert jit._source_digest() == jit.SOURCE_DIGEST
    for path in sources:
        copy = tmp_path / path.relative_to(folder)
        text = copy.read_bytes()
        copy.write_bytes(text + b"#")
        assert jit._source_digest() != jit.SOURCE_DIGEST, path.name
        copy.write_bytes(text)


# -- the cache --------------------------------------------------------------------------------------------------------


def scaling(factor: float) -> Callable:
    def scaling_loop(values):  # type: ignore[no-untyped-def]
        for i in range(values.size):
            values[i] *= factor

    return jit.compiled(scaling_loop)


def is_found(factor: float) -> bool:
    """Whether a first call finds its code in the cache; its result is right in any case."""
    loop, values = scaling(factor), np.ones(2)
    loop(values)
    assert values.tolist() == [factor, factor]
    return bool(loop.stats.cache_hits)


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_an_entry_is_found_by_all_it_depends_on(cache: Path) -> None:
    assert [is_found(x) for x in (3.0, 3.0, 5.0, 3.0, 5.0)] == [False, True, False, True, True]
    (first, second) = entries(cache)
    assert first.parent == second.parent == compile_cache.folder(jit.SOURCE_DIGEST)
    assert softfloat.__version__ in first.parent.name
    assert numba.__version__ in first.parent.name
    codegen, other = SimpleNamespace(magic_tuple=lambda: ("cpu",)), SimpleNamespace(magic_tuple=lambda: ("other",))
    of = [scaling(3.0)._cache, scaling(5.0)._cache]
    keys = [of[0].key("f8", codegen), of[0].key("f4", codegen), of[0].key("f8", other), of[1].key("f8", codegen)]
    assert len(set(keys)) == len(keys)
    assert compile_cache.folder(1) != compile_cache.folder(2)
    scaling(3.0)._cache.flush()
    assert not entries(cache)


def another_kind(data: bytes) -> bytes:
    content = pickle.dumps(("whatever", 1))
    return hashlib.sha256(content).digest() + content


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "one bit": lambda path: path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1])),
    "garbage": lambda path: path.write_bytes(bytes(range(256)) * 40),
    "another kind": lambda path: path.write_bytes(another_kind(path.read_bytes())),
    "removed": lambda path: path.unlink(),
    "folder removed": lambda path: shutil.rmtree(path.parent),
    "all removed": lambda path: shutil.rmtree(path.parent.parent),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_compiled_again(
    damage: Callable[[Path], object], cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not is_found(3.0)
    (path,) = entries(cache)
    damage(path)
    assert not is_found(3.0)
    assert entries(cache) == [path]
    assert is_found(3.0)
    assert without_compiling(capsys.readouterr().err) == ""


def blocked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / "numba-softfloat").write_text("a file", encoding="utf-8")
    return "softfloat: cannot keep compiled code"


def full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    write = Path.write_bytes

    def write_half(path: Path, data: bytes) -> int:
        write(path, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", write_half)
    return os.strerror(errno.ENOSPC)


def homeless(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", home)
    return "Could not determine home directory"


@pytest.mark.parametrize("trouble", [blocked, full, homeless])
def test_without_a_folder_that_can_be_written(
    trouble: Callable[[Path, pytest.MonkeyPatch], str],
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reason = trouble(cache, monkeypatch)
    monkeypatch.setattr(jit, "SLOW_COMPILATION_SECONDS", 0.0)
    assert not is_found(3.0)
    assert not is_found(3.0)
    assert not [path for path in entries(cache) if path.parent != cache]
    lines = capsys.readouterr().err.splitlines()
    first, *others = [line for line in lines if line != COMING]
    assert len(lines) == len(others) + 2
    assert reason in first
    assert "NUMBA_CACHE_DIR" in first
    assert len(others) == 2
    assert not any("cached from now on" in line for line in others)


@pytest.mark.parametrize(
    ("platform", "variable", "default"),
    [
        ("linux", "XDG_CACHE_HOME", ".cache"),
        ("darwin", "", "Library/Caches"),
        ("win32", "LOCALAPPDATA", "AppData/Local"),
    ],
)
def test_where_compiled_code_is_kept(
    platform: str, variable: str, default: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, "relative")
    assert compile_cache.root() == tmp_path / default / "numba-softfloat"
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "caches"))
        assert compile_cache.root() == tmp_path / "caches" / "numba-softfloat"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "named"))
    assert compile_cache.root() == tmp_path / "named" / "numba-softfloat"


def test_the_least_recently_used_code_goes_first(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_cache, "FOLDERS_KEPT", 3)
    folders = [cache / "numba-softfloat" / f"compiled-{i}" for i in range(4)]
    for age, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "loop.bin").write_bytes(b"")
        os.utime(folder, (1e9 - age, 1e9 - age))
    assert not is_found(3.0)
    assert [folder.exists() for folder in folders] == [True, True, False, False]
    assert is_found(3.0)


SHARING = """
import sys
import numpy as np
from softfloat.kernels import jit

def scaling(factor):
    def scaling_loop(values):
        for i in range(values.size):
            values[i] *= factor
    return jit.compiled(scaling_loop)

hits = 0
for factor in range(2, 8):
    loop, values = scaling(float(factor)), np.ones(2)
    loop(values)
    assert values.tolist() == [factor, factor]
    hits += bool(loop.stats.cache_hits)
print(hits)
"""


def test_processes_share_a_folder(tmp_path: Path) -> None:
    """They find, write and replace each other's entries at the same time, while somebody empties the folder."""

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-c", SHARING]
        settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def hits(process: subprocess.Popen[str]) -> int:
        out, err = process.communicate(timeout=300)
        assert (process.returncode, without_compiling(err)) == (0, "")
        return int(out)

    running = [start() for _ in range(2)]
    removals = 0
    while running[0].poll() is None:
        for path in list(tmp_path.rglob("*.bin")):
            path.unlink(missing_ok=True)
            removals += 1
        time.sleep(0.01)
    assert removals
    assert all(hits(process) in range(7) for process in running)
    assert hits(start()) in range(7)
    assert hits(start()) == 6
    assert len(entries(tmp_path)) == 6


KEYS = """
import sys
import numpy as np
from numba.core.registry import cpu_target

sys.pycache_prefix, sys.dont_write_bytecode = sys.argv[1], False
from softfloat.kernels import comparisons, dots, fast, jit, loops, paired, tiles

rows = loops._operating("add", False), loops._settling("add"), loops._ending("drawn unusual", "integral")
made = [
    *map(jit.compiled, rows), loops._elementwise(), loops._elementwise_drawn(), loops._folding_drawn(),
    loops.decoding(), loops.settling(), loops.gathering(True), comparisons.by_element(comparisons.compared("lt"), 2),
    comparisons.by_element(comparisons.extreme(True, False), 2), comparisons.by_element(comparisons.integer(True), 1),
    loops.drawing(), loops.generating(),
    fast.half_folding("add"),
    dots.contraction().whole, dots.extent(), tiles.spans(),
    paired.collected(),
]
codegen = cpu_target.target_context.codegen()
for loop in made:
    print(loop.py_func.__name__, loop._cache.key("", codegen))
"""


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
def test_a_loop_that_no_other_process_would_find_is_refused() -> None:
    """What a loop closes over without a name in its module would enter the key by value, which differs from process to process."""

    def inner() -> int:
        return 1

    def loop() -> int:
        return inner()

    with pytest.raises(TypeError, match=r"loop closes over .*inner, which is to be referable"):
        jit.compiled(loop)


def test_compiled_code_is_found_again(tmp_path: Path) -> None:
    """What the cache goes by, beside the types, is the same in every process, of sources and of bytecode, and differs between loops."""
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
    assert len(set(printed[0])) == len(printed[0]) == 19
