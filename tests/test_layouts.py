"""Wherever the package lies, Python finds all of it: a checkout, an installation, one in the checkout; and what is imported late is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import softfloat

CHECKOUT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(
    not (CHECKOUT / "kernels").is_dir() or not (CHECKOUT / "softfloat").is_dir(), reason="not in a checkout"
)

NOT_INSTALLED = """import sys
sys.meta_path[:] = [x for x in sys.meta_path if not getattr(x, "__module__", "").startswith("__editable__")]
"""
"""A sitecustomize.py that takes back what `pip install -e` does."""

WHERE = """import softfloat, softfloat.kernels.jit, sys
print(softfloat.__file__, softfloat.kernels.__file__, *softfloat.__path__, softfloat.kernels.jit.SOURCE_DIGEST, sep="\\n")
"""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH with which no installation of the package in its checkout is seen."""
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "sitecustomize.py").write_text(NOT_INSTALLED, encoding="utf-8")
    return tmp_path / "bare"


def python(*arguments: str, within: Path, seen: tuple[Path, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Python started in a folder."""
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, seen)), "PYTHONDONTWRITEBYTECODE": "1"}
    variables.pop("PYTHONSAFEPATH", None)
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=within,
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
    )


def places(done: subprocess.CompletedProcess[str]) -> tuple[Path, Path, list[Path], int]:
    """Where the package and its kernels were found, the package's search path, the digest of the kernels' sources."""
    assert done.returncode == 0, done.stderr
    package, kernels, *search, digest = done.stdout.splitlines()
    return Path(package).parent, Path(kernels).parent, [Path(x) for x in search], int(digest)


def copied(to: Path, *, kernels: bool) -> Path:
    """The package in a folder as it is installed there, or without its kernels."""
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "softfloat", to / "softfloat", ignore=leave)
    if kernels:
        shutil.copytree(CHECKOUT / "kernels", to / "softfloat" / "kernels", ignore=leave)
    return to


def test_in_the_checkout(bare: Path) -> None:
    """The folder of the README's first command, where ./softfloat hides what `pip install .` has installed."""
    package, kernels, search, digest = places(python("-c", WHERE, within=CHECKOUT, seen=(bare,)))
    assert (package, kernels, search) == (CHECKOUT / "softfloat", CHECKOUT / "kernels", [CHECKOUT / "softfloat"])
    from softfloat.kernels import jit

    assert digest == jit.SOURCE_DIGEST  # one cache of compiled code, wherever it is imported from


def test_the_checkout_named_by_pythonpath(bare: Path, tmp_path: Path) -> None:
    found = places(python("-c", WHERE, within=tmp_path, seen=(bare, CHECKOUT)))
    assert found[:3] == (CHECKOUT / "softfloat", CHECKOUT / "kernels", [CHECKOUT / "softfloat"])


def test_commands_and_examples_in_the_checkout(bare: Path) -> None:
    done = python("-m", "softfloat", "inspect", "0x3c00", "--format", "float16", within=CHECKOUT, seen=(bare,))
    assert (done.returncode, "1" in done.stdout) == (0, True), done.stderr
    done = python("-m", "softfloat.examples.rounding_statistic", "--help", within=CHECKOUT, seen=(bare,))
    assert done.returncode == 0 or "pip install 'numba-softfloat[dask]'" in done.stderr, done.stderr


def test_an_installation(bare: Path, tmp_path: Path) -> None:
    """kernels/ inside the package, and a folder of that name beside it, which is somebody else's."""
    site = copied(tmp_path / "site", kernels=True)
    (site / "kernels").mkdir()
    for name in ("__init__.py", "carrier.py", "spec.py"):
        (site / "kernels" / name).write_text("raise SystemExit('not ours')\n", encoding="utf-8")
    package, kernels, search, digest = places(python("-c", WHERE, within=tmp_path, seen=(bare, site)))
    assert (package, kernels, search) == (site / "softfloat", site / "softfloat" / "kernels", [site / "softfloat"])
    from softfloat.kernels import jit

    assert digest == jit.SOURCE_DIGEST


def test_a_strangers_kernels_are_left_alone(bare: Path, tmp_path: Path) -> None:
    site = copied(tmp_path / "site", kernels=False)
    (site / "kernels").mkdir()
    for name in ("__init__.py", "spec.py"):
        (site / "kernels" / name).write_text("raise SystemExit('not ours')\n", encoding="utf-8")
    done = python("-c", WHERE, within=tmp_path, seen=(bare, site))
    assert "ModuleNotFoundError: No module named 'softfloat.kernels'" in done.stderr


def test_a_process_that_another_starts_finds_the_same_kernels(bare: Path, tmp_path: Path) -> None:
    """A script in the checkout, run from elsewhere: what compiles exported libraries is a process of its own."""
    script = (
        f"import sys; sys.path.insert(0, {str(CHECKOUT)!r})\nfrom softfloat import export\nfrom pathlib import Path\n"
    )
    call = f"export.write(Path({str(tmp_path / 'made')!r}), functions=['add'], formats=['float16'])"
    (tmp_path / "elsewhere").mkdir()
    done = python("-c", script + call, within=tmp_path / "elsewhere", seen=(bare,))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made" / "sf.h").exists()


# -- what is imported when it is first asked for -------------------------------------------------------------------------


def test_modules_of_the_package_are_its_attributes(tmp_path: Path) -> None:
    script = (
        "import sys, softfloat; print('numba' in sys.modules, *(getattr(softfloat, x).__name__ for x in sys.argv[1:]))"
    )
    names = [name for name, needed in softfloat._LATE.items() if not needed]
    done = python("-c", script, *names, within=tmp_path)
    assert (done.stdout.split(), done.stderr) == (["False", *(f"softfloat.{name}" for name in names)], "")
    assert set(names) <= set(dir(softfloat))
    with pytest.raises(AttributeError, match="module 'softfloat' has no attribute 'tests'"):
        _ = softfloat.tests  # type: ignore[attr-defined]


def test_every_folder_is_there() -> None:
    """What no import of the package brings is looked up late."""
    script = "import softfloat; print(*vars(softfloat))"
    there = set(python("-c", script, within=CHECKOUT).stdout.split())
    modules = {path.parent.name for path in (CHECKOUT / "softfloat").glob("*/__init__.py")} | {"chop", "jit"}
    assert modules - there == set(softfloat._LATE)


@pytest.mark.parametrize("extra", ["dask", "onnx", "torch"])
def test_a_missing_extra_is_named(extra: str, tmp_path: Path) -> None:
    hidden = f"import sys; sys.modules[{extra!r}] = None; import softfloat\n"
    done = python("-c", f"{hidden}print({extra!r} in dir(softfloat)); softfloat.{extra}", within=tmp_path)
    assert done.stdout == "False\n"
    assert f"ImportError: softfloat.{extra} needs" in done.stderr
    assert f"pip install 'numba-softfloat[{extra}]'" in done.stderr


PAGES = """
import re, sys, softfloat
from pathlib import Path
folder = Path(softfloat.__file__).parent

def attribute(found, name):
    try:
        return getattr(found, name, None)
    except ImportError as error:  # of an extra
        assert "pip install" in str(error)
        return None

for page in map(Path, sys.argv[1:]):
    for written in set(re.findall(r"(?<![\\w/.-])softfloat\\.((?:\\w+\\.)*\\w+)(?!\\w|\\[)", page.read_text(encoding="utf-8"))):
        first, *others = written.split(".")
        there = first in softfloat._LATE or hasattr(softfloat, first)
        found = attribute(softfloat, first)
        for depth, name in enumerate(others, 1):
            if found is None or folder.joinpath(first, *others[:depth]).with_suffix(".py").exists():
                break
            found = attribute(found, name)
            there &= found is not None
        if not there:
            print(page.name, written)
"""


def test_names_in_the_pages_are_attributes() -> None:
    """softfloat.x.y as written: after `import softfloat`, but for files that an import statement or `python -m` would name."""
    pages = [CHECKOUT / "README.md", *(x for x in CHECKOUT.glob("docs/**/*.md") if "made" not in x.parts)]
    assert len(pages) > 30
    done = python("-c", PAGES, *map(str, pages), within=CHECKOUT)
    assert (done.stdout, done.stderr) == ("", "")
