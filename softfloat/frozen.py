"""The one way past `frozen`: dataclasses that turn names into members, and leave defaults to be derived, settle them as they are made."""

from __future__ import annotations

from typing import Any

__all__ = ["settle"]


def settle(made: object, /, **values: Any) -> None:
    """Give fields of a frozen dataclass their values, before anybody else has seen it."""
    for name, value in values.items():
        object.__setattr__(made, name, value)
