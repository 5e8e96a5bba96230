"""Overflow, division by zero and invalid operations, with the status register after each.

>>> for case in overflow_cases():
...     print(case.environment, case.value, case.status)
IPU, nanoo=False 65504.0 OFLO 0x1 DIV0 0x0 INV 0x0
IPU, nanoo=True nan OFLO 0x1 DIV0 0x0 INV 0x1
IEEE 754 inf OFLO 0x1 DIV0 0x0 INV 0x0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from softfloat import bits
from softfloat.environments import Environment, Overflow, as_member
from softfloat.experiments.choices import environment_of, label_of
from softfloat.formats import Format
from softfloat.status import Flags, FloatingPointTrap

__all__ = [
    "ConversionCase",
    "ExceptionCase",
    "conversion_cases",
    "exception_cases",
    "overflow_cases",
    "traps_that_stop",
]


@dataclass(frozen=True)
class ExceptionCase:
    """One operation in a fresh environment.

    Attributes
    ----------
    environment : str
        Name of the settings.
    expression : str
        The operation, in numbers.
    format : str
        Of operands and result.
    code : int
        The result.
    value : float
        Its value.
    flags : Flags
        All that was raised.
    status : str
        The status register as the IPU prints it.
    """

    environment: str
    expression: str
    format: str
    code: int
    value: float
    flags: Flags
    status: str


ENVIRONMENTS: dict[str, Callable[[], Environment]] = {
    "IPU, nanoo=False": Environment.ipu,
    "IPU, nanoo=True": partial(Environment.ipu, nanoo=True),
    "IEEE 754": Environment,
}
"""Settings by name; each call makes an environment with a clear status."""


def _case(
    environment: str, settings: Environment, expression: str, fmt: str, operation: str, *operands: float
) -> ExceptionCase:
    codes = [bits.encode(x, fmt)[0] for x in operands]
    code = settings.evaluate(getattr(bits, operation), *codes, fmt)
    value, status = float(bits.decode(code, fmt)), settings.status
    return ExceptionCase(environment, expression, fmt, int(code), value, status.flags, str(status))


def _named(environment: Any, fmt: str) -> tuple[str, Environment]:
    """An environment in words, and with a status of its own."""
    settings = environment_of(environment, None, 0).replace()
    return label_of(settings, Format.from_name(fmt)), settings


def overflow_cases(
    x: float = 60000.0, fmt: str = "float16", *, environment: Environment | None = None
) -> tuple[ExceptionCase, ...]:
    """x + x, too large for the format, under three settings: saturating, NaN on overflow, and IEEE 754's infinity.

    Or under those of an environment alone. One addition is no sum of many: there is no accumulator.
    """
    if environment is None:
        chosen = [(name, make()) for name, make in ENVIRONMENTS.items()]
    else:
        chosen = [_named(environment, fmt)]
    return tuple(_case(*one, f"{x:g} + {x:g}", fmt, "add", x, x) for one in chosen)


def exception_cases(*, environment: Environment | None = None) -> tuple[ExceptionCase, ...]:
    """Division by zero and invalid operations in float32, where the IPU divides; and a NaN operand.

    The IPU's documentation names any NaN operand as invalid; IEEE 754 only a signalling one. With an environment all are computed
    under its settings. Nothing is summed: there is no accumulator.
    """
    inf, nan = float("inf"), float("nan")
    rows: list[tuple[Any, ...]] = [
        ("IPU, nanoo=False", "1 / 0", "float32", "div", 1.0, 0.0),
        ("IPU, nanoo=False", "0 / 0", "float32", "div", 0.0, 0.0),
        ("IPU, nanoo=False", "inf - inf", "float32", "sub", inf, inf),
        ("IPU, nanoo=False", "0 * inf", "float32", "mul", 0.0, inf),
        ("IPU, nanoo=False", "sqrt(-1)", "float32", "sqrt", -1.0),
        ("IPU, nanoo=False", "nan + 1", "float32", "add", nan, 1.0),
        ("IEEE 754", "nan + 1", "float32", "add", nan, 1.0),
    ]
    if environment is None:
        return tuple(_case(name, ENVIRONMENTS[name](), *row) for name, *row in rows)
    return tuple(_case(*_named(environment, "float32"), *row) for _, *row in rows[:-1])


def traps_that_stop() -> tuple[str, ...]:
    """Which of the IPU's traps stop an operation that raises their flag.

    Of "oflo", "div0" and "inv", those that raise FloatingPointTrap. The environments are those of the IPU, and nothing is summed:
    it takes neither an environment nor an accumulator.
    """
    trials: dict[str, tuple[Any, ...]] = {
        "oflo": (bits.add, "float16", 60000.0, 60000.0),
        "div0": (bits.div, "float32", 1.0, 0.0),
        "inv": (bits.div, "float32", 0.0, 0.0),
    }
    stopped = []
    for name, (operation, fmt, *operands) in trials.items():
        settings = Environment.ipu(**{name: True})
        codes = [bits.encode(x, fmt)[0] for x in operands]
        try:
            settings.evaluate(operation, *codes, fmt)
        except FloatingPointTrap:
            stopped.append(name)
    return tuple(stopped)


@dataclass(frozen=True)
class ConversionCase:
    """A number encoded in a format.

    Attributes
    ----------
    number : float
    format : str
    overflow : str
        The overflow rule.
    code : int
        The result.
    value : float
        Its value.
    flags : Flags
        All that was raised.
    """

    number: float
    format: str
    overflow: str
    code: int
    value: float
    flags: Flags


def conversion_cases(
    fmt: Format | str = "float16",
    rules: Iterable[Overflow | str] = tuple(Overflow),
    numbers: Iterable[float] | None = None,
    *,
    environment: Environment | None = None,
) -> tuple[ConversionCase, ...]:
    """Numbers around the largest one of a format, encoded under each overflow rule; rules outermost.

    Parameters
    ----------
    fmt : Format
    rules : iterable of Overflow
        Default: "infinity", "saturate" and "nan".
    numbers : iterable of float, optional
        Default: the largest number, 15/32 and 1/2 of the spacing beyond it, its double, infinity and NaN.
    environment : Environment, optional
        Every setting but the overflow rule; a seed of 0 if it has none. Nothing is summed: there is no accumulator.
    """
    fmt = Format.from_name(fmt)
    ulp = 2.0 ** (fmt.emax - fmt.mantissa_bits)
    chosen = (
        [fmt.max, fmt.max + ulp * 15 / 32, fmt.max + ulp / 2, 2 * fmt.max, float("inf"), float("nan")]
        if numbers is None
        else [float(x) for x in numbers]
    )
    cases = []
    settings = environment_of(environment, None, 0)
    for rule in (as_member(Overflow, rule, "rules") for rule in rules):
        codes, flags = bits.encode(chosen, fmt, environment=settings.replace(overflow=rule))
        for x, code, value, raised in zip(
            chosen, codes.tolist(), bits.decode(codes, fmt).tolist(), flags.tolist(), strict=True
        ):
            cases.append(ConversionCase(x, fmt.name, rule.name.lower(), code, value, Flags(raised)))
    return tuple(cases)
