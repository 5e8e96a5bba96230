"""The tests of a GPU by Numba's simulator, which runs kernels as Python: in a process of its own, as Numba is told when it is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba_cuda", reason="needs the extra 'cuda'")


def test_kernels_as_python() -> None:
    tests = Path(__file__).with_name("test_device.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tests)],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTEST_ADDOPTS": ""},
        cwd=tests.parents[2],
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
