"""`softfloat explore`: where the page is, and a browser that is asked to open it."""

import webbrowser
from pathlib import Path

import pytest
from commands import Run

from softfloat import files
from softfloat.display import pages


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of its own for each test."""
    monkeypatch.setattr(files.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "numba-softfloat"


def test_no_browser_prints_where_the_page_is(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail("a browser was opened"))
    run = Run("explore", "--no-browser")
    assert run.status == 0
    assert Path(run.out.strip()) == folder / "explorer.html"
    assert Path(run.out.strip()).read_text(encoding="utf-8") == pages.page_html()


def test_the_page_is_opened(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) is None)
    assert Run("explore").status == 0
    assert opened == [(folder / "explorer.html").as_uri()]


def test_the_page_is_written_where_it_is_not_there_or_another_one(folder: Path) -> None:
    path = pages.page()
    before = path.stat().st_ino
    assert pages.page() == path
    assert path.stat().st_ino == before
    path.write_text("<p>of another version</p>")
    assert pages.page().read_bytes() == pages.page_html().encode()
    assert [x.name for x in folder.iterdir()] == ["explorer.html"]


def test_without_a_browser_the_error_says_what_to_open(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    run = Run("explore")
    assert run.status == 2
    assert f"no browser was found; open {folder / 'explorer.html'}" in run.err


def test_a_page_that_cannot_be_written_is_an_error(folder: Path) -> None:
    folder.write_text("no folder")
    run = Run("explore", "--no-browser")
    assert run.status == 2
    assert "cannot write the page" in run.err
