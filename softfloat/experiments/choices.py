"""The environment and the accumulator of an experiment, from its arguments."""

from __future__ import annotations

from typing import Any

from softfloat.accumulators import Accumulator
from softfloat.environments import Environment, Rounding, as_rounding
from softfloat.formats import Format

__all__ = ["accumulator_of", "check_environment", "environment_of", "is_drawn", "label_of"]

COUNTED = {"sr_bits": "{} random bits", "overflow": "overflow to {}"}
"""Settings whose values make sense beside their names alone."""
ADDRESSES = ("rounding", "seed", "replica", "replica_identical", "traps", "accumulator", "position", "overrides")


def check_environment(environment: Any) -> Environment:
    """An environment, or the default one for None."""
    if environment is None:
        return Environment()
    if not isinstance(environment, Environment):
        raise TypeError(f"environment must be a softfloat.Environment, got {type(environment).__name__}")
    return environment


def environment_of(environment: Any, rounding: Rounding | str | None, seed: int) -> Environment:
    """The environment that is given, or that of a rounding mode; the seed where it draws and has none."""
    if environment is not None and rounding is not None:
        raise TypeError(
            "environment comes with rounding; accepted: one or the other (Environment.replace combines them)"
        )
    found = check_environment(environment)
    if environment is None:
        found = Environment(rounding="nearest_even" if rounding is None else as_rounding(rounding))
    draws = any(one.settings.rounding.draws for one in (found, *found.overrides.values()))
    return found.replace(seed=seed) if draws and found.seed is None else found


def accumulator_of(accumulator: Any, environment: Environment, fmt: Format) -> Accumulator | None:
    """How sums in a format are summed: by the argument, else by the environment; None if neither says."""
    chosen = environment.accumulator if accumulator is None else accumulator
    if chosen is not None and not isinstance(chosen, Accumulator) and callable(chosen):
        chosen = chosen(fmt)
    if chosen is not None and not isinstance(chosen, Accumulator):
        raise TypeError(
            "accumulator must be a softfloat.Accumulator, which functions of softfloat.accumulators such as fma('float32') make, "
            f"or make one of a format, got {chosen!r}"
        )
    return chosen


def is_drawn(environment: Environment, fmt: Format) -> bool:
    """Whether results in a format are rounded by random numbers."""
    return environment.settings.for_format(fmt.name).rounding.draws


def label_of(environment: Environment, fmt: Format, accumulator: Accumulator | None = None) -> str:
    """Words for a legend: the rounding mode, settings that are not the default ones, the accumulator."""
    settings, usual = environment.settings.for_format(fmt.name), Environment().settings
    words = [settings.rounding.name.lower().replace("_", " ")]
    for name in usual.__dataclass_fields__:
        value = getattr(settings, name)
        if name not in ADDRESSES and value != getattr(usual, name):
            text = str(getattr(value, "name", value)).lower()
            words.append(COUNTED[name].format(text) if name in COUNTED else name if value is True else f"{name} {text}")
    if accumulator is not None:
        words.append(repr(accumulator))
    return ", ".join(words)
