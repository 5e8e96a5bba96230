"""`softfloat explore`: where the page is, and a browser that is asked to open it."""

import webbrowser
from pathlib import Path

import pytest
from commands import Run

from softfloat.display import pages


def test_no_browser_prints_where_the_page_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail("a browser was opened"))
    run = Run("explore", "--no-browser")
    assert run.status == 0
    assert Path(run.out.strip()) == pages.PAGE
    assert "softfloat" in Path(run.out.strip()).read_text(encoding="utf-8")


def test_the_page_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) is None)
    assert Run("explore").status == 0
    assert opened == [pages.PAGE.as_uri()]


def test_without_a_browser_the_error_says_what_to_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    run = Run("explore")
    assert run.status == 2
    assert f"no browser was found; open {pages.PAGE}" in run.err


def test_a_page_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pages, "PAGE", tmp_path / "explorer.html")
    run = Run("explore", "--no-browser")
    assert run.status == 2
    assert "is not installed" in run.err
