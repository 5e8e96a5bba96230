"""Packages that tests need and that take seconds to import, which whoever runs none of the tests need not wait for."""

from __future__ import annotations

import importlib.util

import pytest


def needs(name: str) -> None:
    """Skips a module where a package is missing."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"could not import {name!r}", allow_module_level=True)
