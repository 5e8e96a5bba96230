"""The options that functions over codes have in common, checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict

import numpy as np

from softfloat.checks import check_seed, nearest
from softfloat.engine import elementwise
from softfloat.engine.arguments import by_columns
from softfloat.environments import CALL_OPTIONS, Environment, InfiniteInput, Overflow, Rounding, Settings, Tininess
from softfloat.formats import Format
from softfloat.kernels import spec
from softfloat.positions import Position, as_position


class Options(TypedDict, total=False):
    """Keyword-only options of every function that returns flags; the documentation of `softfloat.bits` describes them."""

    out: Any
    flags: str
    rounding: Rounding | str
    overflow: Overflow | str
    tininess: Tininess | str
    infinite_input: InfiniteInput | str
    daz: bool
    ftz: bool
    converts_subnormals: bool
    nan: str
    sr_bits: int | None
    sr_method: str
    projection: str
    generator: str
    seed: int | None
    environment: Environment | Settings | None
    stream: int
    random_bits: Any
    position: Position | int | None


ENVIRONMENT_OPTIONS = set(Options.__annotations__) - CALL_OPTIONS
OF_STOCHASTIC = {"sr_bits", "sr_method"}
"""Options of stochastic rounding alone."""
DRAWING = OF_STOCHASTIC | {"generator", "seed"}
"""Options of roundings that draw."""
UNDRAWN = DRAWING - {"seed"}
"""Those that are refused where nothing is drawn. A seed may stand, as a stream may: it is an address."""


class Uses(NamedTuple):
    """A kind of functions, and the settings that decide its results; others are refused as options, and may stand in an environment."""

    kind: str
    settings: frozenset[str]


CONVERSIONS = Uses("conversions", frozenset(ENVIRONMENT_OPTIONS))
ARITHMETIC = Uses("operations in one format", frozenset(ENVIRONMENT_OPTIONS - {"converts_subnormals"}))
COUNTING = Uses("conversions to integers", frozenset({"rounding", "daz", "nan"} | DRAWING))
FIXED = Uses("elements of fixed point", frozenset({"rounding", "overflow", "daz"} | DRAWING))
COMPARISONS = Uses("comparisons", frozenset({"daz", "nan"}))
CHOICES = Uses("operations that choose an operand", frozenset({"daz", "ftz", "nan"}))
STEPS = Uses("steps to the next number", frozenset({"nan"}))
OF_OPERATIONS = {
    **dict.fromkeys(("convert", "encode"), CONVERSIONS),
    **dict.fromkeys(("eq", "lt", "le"), COMPARISONS),
    **dict.fromkeys(("minimum", "maximum", "minimum_number", "maximum_number"), CHOICES),
    **dict.fromkeys(("next_up", "next_down"), STEPS),
    "to_integer": COUNTING,
}
"""By name; the others' are `ARITHMETIC`."""


def uses_of(operation: str) -> Uses:
    """Which settings decide the results of an elementwise operation."""
    return OF_OPERATIONS.get(operation, ARITHMETIC)


def refuse_idle(names: Collection[str], kind: str, accepted: Collection[str]) -> None:
    """Refuse options that do nothing in a kind of call."""
    if names:
        raise ValueError(
            f"{', '.join(sorted(names))} has no effect in {kind}; accepted: {', '.join(map(repr, sorted(accepted)))}, or any "
            "setting as part of environment=softfloat.Environment(...)"
        )


def idle_in(rounding: Rounding) -> Set[str]:
    """Options of roundings that draw which a mode does not know."""
    return UNDRAWN if not rounding.draws else OF_STOCHASTIC if rounding is Rounding.UP_OR_DOWN else frozenset()


def refuse_undrawn(given: Set[str], rounding: Rounding) -> None:
    """Refuse options of roundings that draw, of those given, which the mode does not know."""
    names = given & idle_in(rounding)
    if names:
        raise ValueError(
            f"{', '.join(sorted(names))} has no effect without rounding='stochastic'; accepted: with it, or as part of "
            "environment=softfloat.Environment(...)"
        )


@lru_cache(maxsize=512)
def _made(settings: tuple[tuple[str, Any, type], ...]) -> Settings:
    """The settings that some options are. Their types are part of the key: True, 1 and 1.0 are equal, and not all are accepted."""
    return Environment(**{name: value for name, value, _ in settings}).settings


def settings_of(given: tuple[tuple[str, Any, type], ...]) -> Settings | None:
    """The settings that some options are, each with its type; None where they are refused, or of a kind that is not kept."""
    try:
        return _made(given)
    except (TypeError, ValueError):
        return None


def check_stream(stream: Any) -> int:
    """The number of a stream of random numbers."""
    return check_seed("stream", stream)


def check_boolean(name: str, value: Any) -> bool:
    """True or False, NumPy's too, and nothing else."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def as_environment(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same options, settings as part of an environment, where those may stand that do nothing."""
    given = {name: value for name, value in options.items() if name in ENVIRONMENT_OPTIONS}
    if not given or options.get("environment") is not None:
        return dict(options)
    return {**{name: x for name, x in options.items() if name not in given}, "environment": Environment(**given)}


class Call:
    """The options of one call, checked.

    Attributes
    ----------
    whole : Settings
        As they were given, with overrides.
    settings : Settings
        Those for results in the call's format; of a conversion, operands are read by those of their own.
    out, flags, random_bits, stream, position
        What concerns this call alone.
    given : set of str
        Settings that came as options of their own.
    """

    def __init__(self, options: Options, fmt: Format, source: str | None = None, uses: Uses | None = None) -> None:
        """`source` is the name of what a conversion reads; `uses` what refuses options that do nothing, None: the caller does."""
        unknown = options.keys() - Options.__annotations__.keys()
        if unknown:
            raise TypeError(
                f"unknown option {', '.join(map(repr, sorted(unknown)))}; accepted: {', '.join(Options.__annotations__)}"
                f"{nearest(min(unknown), Options.__annotations__)}"
            )
        given = {name: value for name, value in options.items() if name in ENVIRONMENT_OPTIONS}
        environment = options.get("environment")
        if environment is None:
            try:
                self.whole = _made(tuple((name, value, type(value)) for name, value in given.items()))
            except TypeError:
                self.whole = Environment(**given).settings  # type: ignore[arg-type]
        elif isinstance(environment, Environment):
            self.whole = environment.settings
        elif isinstance(environment, Settings):
            self.whole = environment
        else:
            raise TypeError(f"environment must be a softfloat.Environment, got {type(environment).__name__}")
        if given and environment is not None:
            raise TypeError(
                f"environment comes with {', '.join(map(repr, sorted(given)))}; accepted: one or the other (Environment.replace combines them)"
            )
        self.settings = self.whole.for_format(fmt.name) if source is None else self.whole.between(source, fmt.name)
        self.out = options.get("out")
        self.flags = options.get("flags", "each")
        self.random_bits = options.get("random_bits")
        self.stream = check_stream(options.get("stream", 0))
        self.position = as_position(options.get("position"))
        if self.position is None and isinstance(environment, Environment):
            self.position = as_position(environment.position)
        self.given = {name for name, value in given.items() if value is not None}
        if uses is not None:
            refuse_idle(self.given - uses.settings, uses.kind, uses.settings)
            refuse_undrawn(self.given, self.settings.rounding)
            if self.settings.rounding.draws and self.random_bits is not None:
                refuse_idle(self.given & {"seed", "generator"}, "calls with random_bits", {"random_bits", "sr_bits"})

    def draws_nothing(self) -> None:
        """Refuse random bits."""
        if self.random_bits is not None:
            raise ValueError("random_bits are for operations that round; accepted: None")

    def run(
        self,
        operation: str,
        operands: list[Any],
        names: list[str],
        source: spec.FormatSpec,
        fmt: Format,
        extra: float = 0.0,
        work: Callable[[elementwise.Job], elementwise.Work] | None = None,
        narrowed: bool = False,
    ) -> tuple[Any, Any]:
        """An elementwise operation of the compiled floor; arrays by columns are computed as they lie, where no place counts."""
        placed = self.out is not None or self.position is not None or self.settings.rounding.draws
        turned = not placed and by_columns(operands)
        codes, flags = elementwise.run(
            operation,
            [x.T for x in operands] if turned else operands,
            names,
            source,
            fmt,
            self.settings,
            out=self.out,
            flags=self.flags,
            random_bits=self.random_bits,
            stream=self.stream,
            position=self.position,
            extra=extra,
            work=work,
            narrowed=narrowed,
        )
        if turned:
            return codes.T, flags if self.flags == "any" else flags.T
        return codes, flags
