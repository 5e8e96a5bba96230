"""The explorer in JupyterLab, end to end: a server, a kernel, a browser, one cell and one click. Slow."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from softfloat import ROSTER
from softfloat.display import exploration, inspect_code
from softfloat.display.inspection import inspection_rows

CELL = "from softfloat.display import explorer\nexplorer('float8_e4m3fn', 0.1)"
STARTING = 120  # seconds: no measure of speed


@pytest.mark.browser
@pytest.mark.exhaustive
def test_a_cell_shows_the_explorer_and_a_click_reaches_python(tmp_path: Path) -> None:
    for name in ("jupyterlab", "anywidget"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("Chromium is not installed")
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cell = {"cell_type": "code", "execution_count": None, "id": "a", "metadata": {}, "outputs": [], "source": CELL}
    notebook = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "explorer.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    log = tmp_path / "log"
    options = ["--no-browser", "--allow-root", "--ServerApp.token=word", "--port=0", f"--ServerApp.root_dir={tmp_path}"]
    folders = {name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    with (
        log.open("wb") as file,
        subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options], stdout=file, stderr=file, env=os.environ | folders
        ) as server,
    ):
        try:
            found, until = None, time.monotonic() + STARTING
            while found is None and time.monotonic() < until:
                assert server.poll() is None, log.read_text()
                time.sleep(0.2)
                found = re.search(r"http://(?:localhost|127\.0\.0\.1):\d+/", log.read_text())
            assert found, log.read_text()
            with playwright.sync_playwright() as tools:
                browser = tools.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": 1400, "height": 1000})
                page.goto(f"{found[0]}lab/tree/explorer.ipynb?token=word")
                page.locator(".jp-Notebook .cm-content").first.click(timeout=1000 * STARTING)
                page.keyboard.press("Shift+Enter")
                bits_shown = page.locator(".sf-number .sf-row button")
                bits_shown.last.wait_for(timeout=1000 * STARTING)
                bits_shown.last.click()
                expected = [text for _, text, _ in inspection_rows(inspect_code(0x1C, ROSTER["float8_e4m3fn"]))]
                assert exploration.start()["operands"][0]["code"] == 0x1D
                page.locator(".sf-number tbody tr td", has_text="0x1c").first.wait_for()
                rows = page.locator(".sf-number .sf-columns .sf-scroll:first-child tbody td").all_inner_texts()
                assert rows == expected
                browser.close()
        finally:
            server.terminate()
