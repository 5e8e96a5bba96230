"""Arguments as argparse reads them, each refused in one line that says what is accepted."""

from __future__ import annotations

import argparse
import math

from softfloat.blocks import SCALE_RULES, BlockFormat
from softfloat.checks import SEEDS, nearest
from softfloat.environments import Rounding, as_rounding
from softfloat.formats import Format

__all__ = [
    "SEED_HELP",
    "any_format_name",
    "block_shape",
    "choice",
    "format_name",
    "non_negative",
    "number",
    "positive",
    "preset",
    "rounding_mode",
    "scale_rule",
    "seed",
]

SEED_HELP = "of stochastic rounding, 0 to 2^64 - 1 (default: 0)"


def _integer(text: str, low: int, high: int, accepted: str) -> int:
    try:
        number = int(text, 0) if len(text) < 40 else low - 1
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"must be {accepted}, got {text.strip()[:40]!r}")
    return number


def positive(text: str) -> int:
    """A positive integer."""
    return _integer(text, 1, 2**63 - 1, "a positive integer")


def non_negative(text: str) -> int:
    """An integer from 0 on."""
    return _integer(text, 0, 2**63 - 1, "a non-negative integer")


def seed(text: str) -> int:
    """A seed of random numbers."""
    return _integer(text, 0, 2**64 - 1, SEEDS)


def number(text: str) -> float:
    """A finite number, in decimal or as Python writes hexadecimal ones."""
    text = text.strip()
    try:
        found = float.fromhex(text) if "0x" in text.lower() else float(text)
    except (ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise argparse.ArgumentTypeError(f"must be a finite number such as 0.25 or 0x1p-2, got {text[:40]!r}")
    return found


def block_shape(text: str) -> int | tuple[int, ...]:
    """N or NxM."""
    sizes = tuple(positive(part) for part in text.split("x"))
    return sizes[0] if len(sizes) == 1 else sizes


def choice(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text.strip()[:40]!r}")
    return name, value


def format_name(name: str) -> Format:
    """A format by one of its names."""
    try:
        return Format.from_name(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def any_format_name(name: str) -> Format | BlockFormat:
    """A format or a block format by one of its names."""
    try:
        return BlockFormat.from_name(name)
    except ValueError:
        return format_name(name)


def scale_rule(name: str) -> str:
    """The name of a scale rule."""
    if name not in SCALE_RULES:
        meant = nearest(name, SCALE_RULES)
        raise argparse.ArgumentTypeError(
            f"unknown scale rule {name.strip()!r}; accepted: {', '.join(SCALE_RULES)}{meant}"
        )
    return name


def rounding_mode(name: str) -> Rounding:
    """A rounding mode by its name, or the field's abbreviation of it."""
    try:
        return as_rounding(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def preset(name: str) -> str:
    """The name of a preset."""
    from softfloat.accumulators import PRESETS

    if name not in PRESETS:
        meant = nearest(name, PRESETS)
        raise argparse.ArgumentTypeError(f"unknown accumulator {name.strip()!r}; accepted: {', '.join(PRESETS)}{meant}")
    return name
