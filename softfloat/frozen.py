"""What frozen dataclasses need beyond `frozen`: fields settled as they are made, hashes that are kept, an eye for themselves.

Dataclasses that turn names into members, and leave defaults to be derived, settle them before anybody else has seen them.
"""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["hash_kept", "settle"]

Kind = TypeVar("Kind", bound=type)


def settle(made: object, /, **values: Any) -> None:
    """Give fields of a frozen dataclass their values, before anybody else has seen it."""
    for name, value in values.items():
        object.__setattr__(made, name, value)


def hash_kept(kind: Kind) -> Kind:
    """Class decorator: find an object's hash once, as caches ask for it at every call, and know it as itself without a look at its fields.

    The hash is left out of copies and pickles, as strings hash otherwise in another process.
    """
    found: Any = kind.__hash__
    fields: Any = kind.__eq__

    def same(self: Any, other: object) -> Any:
        return self is other or fields(self, other)

    def kept(self: Any) -> int:
        try:
            return self._hash
        except AttributeError:
            known = self.__dict__["_hash"] = found(self)
            return known

    def state(self: Any) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    kind.__eq__, kind.__hash__, kind.__getstate__ = same, kept, state  # type: ignore[assignment]
    return kind
