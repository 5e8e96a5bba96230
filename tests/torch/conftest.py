"""What tests on PyTorch share: a status register that nobody before them wrote to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import softfloat


@pytest.fixture(autouse=True)
def clear_status() -> Iterator[None]:
    """Loss scalers read the sticky flags of the environment in force."""
    with softfloat.Environment():
        yield
