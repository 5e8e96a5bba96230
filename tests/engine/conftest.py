"""What tests of the engine share beside operands and cases."""

from __future__ import annotations

import pytest

from softfloat.engine import lines


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces so small that outputs and k are cut."""
    monkeypatch.setattr(lines, "PIECE", 1 << 12)
    monkeypatch.setattr(lines, "RECORDED", 1 << 9)
