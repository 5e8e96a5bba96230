"""The README: short, narrow, and every snippet of it runs as it stands, from inside the clone."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
README = CHECKOUT / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="not in a checkout")

LINES, COLUMNS = 160, 110


def text() -> str:
    return README.read_text(encoding="utf-8")


def test_it_is_read_in_a_minute() -> None:
    lines = text().splitlines()
    assert len(lines) <= LINES
    assert [line for line in lines if len(line) > COLUMNS] == []
    assert (CHECKOUT / re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text())[0]).is_file()


def test_it_says_what_is_needed_and_how_it_is_installed() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in text()
    assert f"`pip install {project['name']}`" in text()
    assert "\npip install . &&" in text()
    for library in ("ml_dtypes", "gfloat", "pychop", "CPFloat", "QPyTorch", "mptorch", "Berkeley SoftFloat"):
        assert re.search(rf"^\|[^|]*\b{library}\b", text(), re.MULTILINE), library


def test_links_lead_to_files() -> None:
    links = [x for x in re.findall(r"\]\(([^)]*)\)", text()) if "://" not in x]
    assert len(links) > 25
    assert [x for x in links if not (CHECKOUT / x.partition("#")[0]).exists()] == []


def snippets(page: str) -> list[str]:
    """Those that doctest does not run."""
    found = re.findall(r"^```python\n(.*?)^```", (CHECKOUT / page).read_text(encoding="utf-8"), re.M | re.S)
    return [x for x in found if ">>>" not in x]


WITH_PYTORCH = ("README.md", "docs/howto/train_stochastic.md", "docs/howto/loss_scale.md", "docs/howto/torch_mm.md")


@pytest.mark.parametrize("page", WITH_PYTORCH)
def test_snippets_run(page: str) -> None:
    """In the order of the page, from inside the clone, as a newcomer pastes them."""
    pytest.importorskip("torch")
    run(page, CHECKOUT)


def test_snippets_that_write_files_run(tmp_path: Path) -> None:
    for package in ("torch", "pandas", "pyarrow"):
        pytest.importorskip(package)
    run("docs/interchange.md", tmp_path)


def run(page: str, folder: Path) -> None:
    """Whatever warns fails."""
    command = [sys.executable, "-W", "error", "-c", "\n".join(snippets(page))]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_the_four_users_have_a_snippet_each() -> None:
    assert len(snippets("README.md")) == 1
    assert len(re.findall(r"^```python\n>>> ", text(), re.MULTILINE)) == 2
    assert len(re.findall(r"^```sh\nsoftfloat ", text(), re.MULTILINE)) == 1
