"""What files say of the codes in them: formats, block formats and environments as JSON holds them, and back.

>>> from softfloat.formats import Format
>>> described_format(Format.from_name("bf16"))
'bfloat16'
>>> mine = Format("mine", exponent_bits=3, mantissa_bits=2)
>>> format_from(described_format(mine)) == mine
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, TypeVar

from softfloat.blocks import BLOCK_ROSTER, BlockFormat, Fixed
from softfloat.environments import Environment
from softfloat.formats import Format
from softfloat.status import Flags

__all__ = [
    "ATTRIBUTE",
    "block_format_from",
    "described_block_format",
    "described_environment",
    "described_format",
    "environment_from",
    "format_from",
]

ATTRIBUTE = "softfloat"
"""Under which name stores, tables and headers keep what is said here."""

NOT_STORED = {"accumulator", "position", "status", "streams", "settings", "overrides"}

T = TypeVar("T", Format, Fixed, BlockFormat)


def _fields(x: Any) -> dict[str, Any]:
    return {one.name: getattr(x, one.name) for one in fields(x)}


def _made(
    kind: type[T], described: Any, where: str, levels: Mapping[str, Callable[[Any, str], Any]] | None = None
) -> T:
    """What all the fields of `kind` describe; `levels` make those that are formats themselves."""
    names = [one.name for one in fields(kind)]
    if not isinstance(described, dict) or set(described) != set(names):
        raise ValueError(f"{where} must describe a {kind.__name__} by {', '.join(names)}, got {described!r}")
    given = {name: levels[name](x, where) if levels and name in levels else x for name, x in described.items()}
    try:
        return kind(given.pop("name"), **given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} describes no {kind.__name__}: {error}") from None


def described_format(fmt: Format) -> str | dict[str, Any]:
    """A format's name where that says what it is, else all its parameters by name."""
    try:
        known = Format.from_name(fmt.name) == fmt
    except ValueError:
        known = False
    return fmt.name if known else _fields(fmt)


def format_from(described: Any, where: str = "format") -> Format:
    """The format that `described_format` described.

    Parameters
    ----------
    described : str or dict
    where : str
        What messages call it.

    Raises
    ------
    ValueError
        If it describes none.
    """
    if isinstance(described, str):
        try:
            return Format.from_name(described)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    return _made(Format, described, where)


def described_block_format(fmt: BlockFormat) -> str | dict[str, Any]:
    """A block format's name where the roster has it, else its parameters by name."""
    if BLOCK_ROSTER.get(fmt.name) == fmt:
        return fmt.name
    found = _fields(fmt)
    element = fmt.element
    found["element"] = {"fixed": _fields(element)} if isinstance(element, Fixed) else described_format(element)
    found["scale"] = described_format(fmt.scale)
    found["block"] = list(fmt.block) if isinstance(fmt.block, tuple) else fmt.block
    found["tensor_scale"] = None if fmt.tensor_scale is None else described_format(fmt.tensor_scale)
    return found


def _element(described: Any, where: str) -> Format | Fixed:
    if isinstance(described, dict) and set(described) == {"fixed"}:
        return _made(Fixed, described["fixed"], where)
    return format_from(described, where)


def _tensor_scale(described: Any, where: str) -> Format | None:
    return None if described is None else format_from(described, where)


def block_format_from(described: Any, where: str = "block format") -> BlockFormat:
    """The block format that `described_block_format` described; ValueError if it describes none."""
    if isinstance(described, str):
        if described not in BLOCK_ROSTER:
            raise ValueError(f"{where} must be one of {', '.join(BLOCK_ROSTER)}, got {described!r}")
        return BLOCK_ROSTER[described]
    levels = {"element": _element, "scale": format_from, "tensor_scale": _tensor_scale}
    return _made(BlockFormat, described, where, levels)


def described_environment(env: Environment) -> dict[str, Any]:
    """An environment's settings, those that differ from the default ones.

    Raises
    ------
    ValueError
        If it has an accumulator, which may be a function.
    """
    if env.accumulator is not None:
        raise ValueError(
            "accumulator of the environment must be None to be stored; accepted: one without, as environment"
        )
    found: dict[str, Any] = {}
    for one in fields(Environment):
        value = getattr(env, one.name)
        if one.name in NOT_STORED or not one.init or value == getattr(Environment(), one.name):
            continue
        named = isinstance(value, Enum) and not isinstance(value, Flags)
        found[one.name] = value.name.lower() if named else int(value) if isinstance(value, Flags) else value
    if env.overrides:
        found["overrides"] = {name: described_environment(override) for name, override in env.overrides.items()}
    return found


def environment_from(described: Any, where: str = "environment") -> Environment:
    """The environment that `described_environment` described; ValueError if it describes none."""
    if not isinstance(described, dict) or not isinstance(described.get("overrides", {}), dict):
        raise ValueError(f"{where} must describe an Environment by its settings, got {described!r}")
    given = dict(described)
    overrides = {name: environment_from(override, where) for name, override in given.pop("overrides", {}).items()}
    try:
        return Environment(**given | {"traps": Flags(given.get("traps", 0))}, overrides=overrides)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} describes no Environment: {error}") from None
