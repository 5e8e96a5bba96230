"""What every test shares: the `--exhaustive` switch, outside data, and a compile cache that no two workers write at once."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import pytest

worker = os.environ.get("PYTEST_XDIST_WORKER")
if worker and "NUMBA_CACHE_DIR" not in os.environ:
    checkout = hashlib.sha256(__file__.encode()).hexdigest()[:12]
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = f"softfloat-numba-{user}-{checkout}-{worker}"
    os.environ["NUMBA_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / folder)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="also run the tests over whole operand spaces (minutes)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--exhaustive"):
        return
    for item in items:
        if item.get_closest_marker("exhaustive"):
            item.add_marker(pytest.mark.skip(reason="needs --exhaustive"))


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The folder of outside data that SOFTFLOAT_VECTORS names."""
    folder = os.environ.get("SOFTFLOAT_VECTORS")
    if not folder:
        pytest.skip("SOFTFLOAT_VECTORS names no folder of test vectors")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"SOFTFLOAT_VECTORS={folder} is no folder")
    return path
