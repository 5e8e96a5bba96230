"""What a code looks like: its fields, its value, its neighbours.

Functions return data; renderers turn it into text and pictures.

>>> found = inspect_code(0x3C00, "float16")
>>> found.pattern, found.value, found.above.spacing
('0.01111.0000000000', Fraction(1, 1), Fraction(1, 1024))
>>> inspect_number("0.1", "float16").error_ulps
-0.4
"""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softfloat import bits
from softfloat.environment import Rounding, as_rounding
from softfloat.formats import Format
from softfloat.status import Flags

if TYPE_CHECKING:
    from rich.console import RenderableType

    from softfloat.experiments.accumulation import BlockError, ChunkError, DotError, SumError
    from softfloat.experiments.claims import Report
    from softfloat.experiments.swamping import RunningSum

__all__ = [
    "PLOTS",
    "PLOT_SUFFIXES",
    "Inspection",
    "Neighbour",
    "check_plot_folder",
    "check_plot_path",
    "exact_decimal",
    "inspect_code",
    "inspect_number",
    "parse_value",
    "plot_block_fma",
    "plot_chunking",
    "plot_dot_swamping",
    "plot_report",
    "plot_running_sums",
    "plot_stochastic_sums",
    "power_of_two",
    "render_inspection",
]

LARGEST_EXPONENT = 5000  # of a decimal number; far beyond every format, and still cheap to hold exactly
LONGEST_NEIGHBOUR = 26  # characters; longer values are written in hexadecimal
FIELD_STYLES = {"sign": "red", "exponent": "green", "fraction": "blue"}


# -- numbers as text -------------------------------------------------------------------------------------------------


def exact_decimal(x: Fraction | int, plain_digits: int = 20) -> str:
    """All digits of a number whose denominator is a power of two; no rounding.

    Scientific notation is used for fractions that would need more than `plain_digits` places.

    >>> exact_decimal(Fraction(1, 2048)), exact_decimal(Fraction(1, 2**24))
    ('0.00048828125', '5.9604644775390625e-08')
    """
    x = Fraction(x)
    places = x.denominator.bit_length() - 1
    if x.denominator != 1 << places:
        raise ValueError(f"x must have a power of two as its denominator, got {x}")
    digits = str(abs(x.numerator) * 5**places)
    sign = "-" if x < 0 else ""
    if places == 0:
        return sign + digits
    if places <= plain_digits:
        digits = digits.rjust(places + 1, "0")
        return f"{sign}{digits[:-places]}.{digits[-places:]}"
    exponent = len(digits) - 1 - places
    digits = digits.rstrip("0")
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{exponent:+03d}"


def power_of_two(x: Fraction) -> int | None:
    """The exponent of a positive power of two; None for any other number.

    >>> power_of_two(Fraction(1, 1024)), power_of_two(Fraction(3))
    (-10, None)
    """
    if x <= 0 or x.numerator & (x.numerator - 1) or x.denominator & (x.denominator - 1):
        return None
    return x.numerator.bit_length() - x.denominator.bit_length()


HEXADECIMAL_FLOAT = re.compile(r"([+-]?)0x([0-9a-f]*)\.?([0-9a-f]*)(?:p([+-]?\d+))?", re.IGNORECASE)
DECIMAL_EXPONENT = re.compile(r"e([+-]?\d+)$", re.IGNORECASE)


def parse_value(text: str) -> int | float | Fraction:
    """What a user typed: a code, or a number.

    Parameters
    ----------
    text : str
        "0x3c00", "0b1" and "0o17" are codes. "0.1", "1e-8", "1/3", "-0.0", "inf", "nan" and "0x1.8p-3" (a hexadecimal
        number has a point or a p) are numbers.

    Returns
    -------
    int
        A code.
    Fraction
        A finite number, exactly.
    float
        Infinity, NaN or -0.0.

    Raises
    ------
    ValueError
        Naming what is accepted.
    """
    stripped = text.strip()
    lowered = stripped.lower()
    accepted = "accepted: a code (0x3c00, 0b0011) or a number (0.1, 1e-8, 1/3, -0.0, inf, nan, 0x1.8p-3)"
    if re.fullmatch(r"0[xbo][0-9a-f_]+", lowered) and not ("p" in lowered or "." in lowered):
        try:
            return int(lowered, 0)
        except ValueError:
            raise ValueError(f"{text!r} is no code; {accepted}") from None
    if lowered.lstrip("+-") in ("inf", "infinity", "nan"):
        return float(lowered)
    number = None
    hexadecimal = HEXADECIMAL_FLOAT.fullmatch(lowered)
    if hexadecimal and ("." in lowered or "p" in lowered) and (hexadecimal[2] or hexadecimal[3]):
        sign, whole, fraction, exponent = hexadecimal.groups()
        power = _bounded(exponent or "0", text) - 4 * len(fraction)
        number = Fraction(int(sign + whole + fraction, 16)) * Fraction(2) ** power
    else:
        found = DECIMAL_EXPONENT.search(lowered)
        if found:
            _bounded(found[1], text)
        try:
            number = Fraction(lowered)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"{text!r} is neither a code nor a number; {accepted}") from None
    return -0.0 if number == 0 and lowered.startswith("-") else number


def _bounded(exponent: str, text: str) -> int:
    if len(exponent) > 10 or abs(int(exponent)) > LARGEST_EXPONENT:
        raise ValueError(
            f"the exponent of {text!r} is out of range; accepted: -{LARGEST_EXPONENT} to {LARGEST_EXPONENT}"
        )
    return int(exponent)


# -- inspection ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Neighbour:
    """The next value on one side.

    Attributes
    ----------
    code : int
    value : Fraction, or float for an infinity
    spacing : Fraction or None
        Distance to it; None to an infinity or from one.
    """

    code: int
    value: Fraction | float
    spacing: Fraction | None


@dataclass(frozen=True)
class Inspection:
    """Everything about one code.

    Attributes
    ----------
    format : Format
    code : int
    pattern : str
        Its bits, fields separated by points.
    sign_field : int or None
        None in an unsigned format.
    exponent_field, fraction_field : int
        The fields as integers.
    exponent : int or None
        The unbiased exponent of a finite number that is not zero.
    hidden_bit : int or None
        The significand's bit before the point, likewise: 0 for subnormal numbers, else 1.
    value : Fraction or float
        The exact value; float for -0.0, infinities and NaN.
    kind : str
        One of `softfloat.bits.CLASSES`.
    below, above : Neighbour or None
        The next values; None where there are none, and for NaN.
    given : str or None
        The number that was encoded, as typed; None if a code was given.
    rounding : str or None
        How it was encoded.
    flags : Flags or None
        What encoding it raised.
    error : Fraction or None
        The value less the number that was given, if both are finite and nothing overflowed.
    error_ulps : float or None
        The same in units in the last place: the format's spacing at the given number.
    """

    format: Format
    code: int
    pattern: str
    sign_field: int | None
    exponent_field: int
    exponent: int | None
    fraction_field: int
    hidden_bit: int | None
    value: Fraction | float
    kind: str
    below: Neighbour | None
    above: Neighbour | None
    given: str | None = None
    rounding: str | None = None
    flags: Flags | None = None
    error: Fraction | None = None
    error_ulps: float | None = None

    @property
    def hexadecimal(self) -> str:
        """The value as C writes hexadecimal floating point."""
        return _hexadecimal(self.value)

    @property
    def decimal(self) -> str:
        """The value with all its digits."""
        return _text(self.value, lambda x: exact_decimal(Fraction(x)))

    @property
    def formula(self) -> str | None:
        """How the fields make the value, of a finite number that is not zero."""
        if self.exponent is None:
            return None
        sign = "-" if self.sign_field else ""
        fraction = (
            f" × ({self.hidden_bit} + {self.fraction_field}/{1 << self.format.mantissa_bits})"
            if self.format.mantissa_bits
            else ""
        )
        return f"{sign}2^{self.exponent}{fraction}"

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON: exact decimals and hexadecimal codes as strings, None where something does not exist."""

        def side(neighbour: Neighbour | None) -> dict[str, Any] | None:
            if neighbour is None:
                return None
            spacing = None if neighbour.spacing is None else exact_decimal(neighbour.spacing)
            return {
                "code": self.code_text(neighbour.code),
                "value": _text(neighbour.value, lambda x: exact_decimal(Fraction(x))),
                "spacing": spacing,
            }

        result: dict[str, Any] = {
            "format": self.format.name,
            "code": self.code_text(self.code),
            "pattern": self.pattern,
            "sign": self.sign_field,
            "exponent_field": self.exponent_field,
            "exponent": self.exponent,
            "fraction": self.fraction_field,
            "value": self.decimal,
            "hex": self.hexadecimal,
            "class": self.kind,
            "below": side(self.below),
            "above": side(self.above),
        }
        if self.given is not None:
            result |= {
                "given": self.given,
                "rounding": self.rounding,
                "flags": [flag.name for flag in Flags if flag in (self.flags or Flags(0))],
                "error_ulps": self.error_ulps,
            }
        return result

    def code_text(self, code: int) -> str:
        """A code of the format as hexadecimal digits, as many as its width needs."""
        return f"0x{code:0{-(-self.format.bits // 4)}x}"


def _hexadecimal(value: Fraction | float) -> str:
    return re.sub(r"\.?0+p", "p", float(value).hex())


def _text(value: Fraction | float, finite: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value == 0:
        return "-0" if isinstance(value, float) and math.copysign(1, value) < 0 else "0"
    return str(finite(float(value)))


def _value(code: int, fmt: Format) -> Fraction | float:
    value = float(bits.decode(code, fmt))
    return Fraction(value) if math.isfinite(value) and (value or math.copysign(1, value) > 0) else value


def _neighbour(code: int, value: Fraction | float, moved: int, fmt: Format) -> Neighbour | None:
    if moved == code:
        return None
    there = _value(moved, fmt)
    finite = math.isfinite(value) and math.isfinite(there)
    return Neighbour(moved, there, abs(Fraction(there) - Fraction(value)) if finite else None)


def inspect_code(code: int, fmt: Format | str) -> Inspection:
    """Take a code apart.

    Raises
    ------
    ValueError
        If the format has no such code.
    """
    fmt = Format.from_name(fmt)
    if not 0 <= code < 1 << fmt.bits:
        raise ValueError(f"{fmt} has no code {hex(code)}; accepted: 0x0 to {hex((1 << fmt.bits) - 1)}")
    kind = bits.CLASSES[int(bits.classify(code, fmt))]
    value = _value(code, fmt)
    digits = iter(f"{code:0{fmt.bits}b}")
    exponent_field = code >> fmt.mantissa_bits & ((1 << fmt.exponent_bits) - 1)
    numeric = kind.endswith(("Normal", "Subnormal"))
    not_a_number = kind.endswith("NaN")
    return Inspection(
        format=fmt,
        code=code,
        pattern="".join(letter if letter == "." else next(digits) for letter in fmt.layout),
        sign_field=code >> (fmt.bits - 1) if fmt.signed else None,
        exponent_field=exponent_field,
        exponent=(fmt.emin if kind.endswith("Subnormal") else exponent_field - fmt.bias) if numeric else None,  # type: ignore[operator]
        fraction_field=code & ((1 << fmt.mantissa_bits) - 1),
        hidden_bit=int(kind.endswith("Normal")) if numeric else None,
        value=value,
        kind=kind,
        below=None if not_a_number else _neighbour(code, value, int(bits.next_down(code, fmt)[0]), fmt),
        above=None if not_a_number else _neighbour(code, value, int(bits.next_up(code, fmt)[0]), fmt),
    )


def inspect_number(
    number: str | float | Fraction, fmt: Format | str, rounding: Rounding | str = "nearest_even", seed: int = 0
) -> Inspection:
    """Encode a number, with a single rounding, and take the code apart; say what the rounding cost.

    Parameters
    ----------
    number : str, int, float or Fraction
        Text is read as `parse_value` reads numbers.
    fmt : Format
    rounding : Rounding
    seed : int
        Of stochastic rounding.
    """
    fmt, mode = Format.from_name(fmt), as_rounding(rounding)
    typed = number if isinstance(number, str) else str(number)
    exact = parse_value(number) if isinstance(number, str) else number.item() if hasattr(number, "item") else number
    if isinstance(number, str) and isinstance(exact, int):
        raise ValueError(f"number must be a number, and {number!r} is a code; accepted: inspect_code")
    options: dict[str, Any] = {"seed": seed} if mode is Rounding.STOCHASTIC else {}
    code, flags = bits.encode(exact, fmt, rounding=mode, **options)
    found = inspect_code(int(code), fmt)
    error = ulps = None
    finite = not isinstance(exact, float) or math.isfinite(exact)
    if finite and math.isfinite(found.value) and not flags & Flags.OVERFLOW:
        error = Fraction(found.value) - Fraction(exact)
        ulps = float(error / _ulp(abs(Fraction(exact)), fmt)) + 0.0
    fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
    return Inspection(
        **fields
        | {
            "given": typed.strip(),
            "rounding": mode.name.lower(),
            "flags": Flags(int(flags)),
            "error": error,
            "error_ulps": ulps,
        }
    )


def _ulp(magnitude: Fraction, fmt: Format) -> Fraction:
    exponent = fmt.emin
    if magnitude:
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        exponent -= Fraction(2) ** exponent > magnitude
    return Fraction(2) ** (min(max(exponent, fmt.emin), fmt.emax) - fmt.mantissa_bits)


def render_inspection(found: Inspection) -> RenderableType:
    """An inspection as a two-column table for a rich console."""
    from rich.table import Table
    from rich.text import Text

    fmt = found.format
    bits_shown = Text()
    names = [
        name
        for name, width in (("sign", fmt.signed), ("exponent", fmt.exponent_bits), ("fraction", fmt.mantissa_bits))
        if width
    ]
    for name, part in zip(names, found.pattern.split("."), strict=True):
        bits_shown.append(" " if bits_shown else "").append(part, FIELD_STYLES[name])

    def side(neighbour: Neighbour | None) -> str:
        if neighbour is None:
            return "none"
        value = _text(neighbour.value, lambda x: exact_decimal(Fraction(x)))
        if len(value) > LONGEST_NEIGHBOUR:
            value = f"{_hexadecimal(neighbour.value)}, about {float(neighbour.value):.6g}"
        return f"{found.code_text(neighbour.code)} = {value}{_away(neighbour.spacing)}"

    rows: list[tuple[str, str | Text]] = []
    if found.given is not None:
        rows.append(("number", f"{found.given}, rounded {(found.rounding or '').replace('_', ' ')}"))
    rows += [("code", found.code_text(found.code)), ("bits", bits_shown)]
    if found.sign_field is not None:
        rows.append(("sign", Text("1 (negative)" if found.sign_field else "0 (positive)", FIELD_STYLES["sign"])))
    unbiased = "" if found.exponent is None else f", 2^{found.exponent}"
    rows.append(
        ("exponent", Text(f"field {found.exponent_field}{unbiased} (bias {fmt.bias})", FIELD_STYLES["exponent"]))
    )
    if fmt.mantissa_bits:
        rows.append(("fraction", Text(f"{found.fraction_field} of {1 << fmt.mantissa_bits}", FIELD_STYLES["fraction"])))
    rows += [("value", found.decimal), ("hexadecimal", found.hexadecimal)]
    if found.formula:
        rows.append(("formula", found.formula))
    rows.append(("class", found.kind))
    if not found.kind.endswith("NaN"):
        rows += [("below", side(found.below)), ("above", side(found.above))]
    if found.given is not None:
        rows.append(("flags", str(found.flags)))
        if found.error_ulps is not None:
            rows.append(("error", f"{found.error_ulps:+.6g} ulp" if found.error else "0, exact"))
    table = Table(
        title=f"{fmt.name} {fmt.layout}",
        title_justify="left",
        title_style="bold",
        show_header=False,
        box=None,
        pad_edge=False,
    )
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return table


def _away(spacing: Fraction | None) -> str:
    if spacing is None:
        return ""
    power = power_of_two(spacing)
    return f", {'2^' + str(power) if power is not None else exact_decimal(spacing)} away"


# -- plots -----------------------------------------------------------------------------------------------------------

PLOT_SUFFIXES = (".png", ".svg", ".pdf")
"""File types that plots are written as."""

# Okabe and Ito's palette: told apart with every kind of colour vision
BLUE, SKY, ORANGE, GREEN, BLACK = "#0072B2", "#56B4E9", "#D55E00", "#009E73", "#000000"
GREY = "#E0E0E0"  # of grids


def check_plot_path(path: str | os.PathLike[str]) -> Path:
    """The path of a plot, if one can be written there; checked before the work, not after.

    Raises
    ------
    ValueError
        For an unknown suffix.
    OSError
        If the folder does not exist or cannot be written to, or the path is a folder.
    ImportError
        If matplotlib is missing, naming how to install it.
    """
    path = Path(path)
    if path.suffix.lower() not in PLOT_SUFFIXES:
        raise ValueError(
            f"cannot write a plot as {path.suffix or 'a file without suffix'!r}; accepted: {', '.join(PLOT_SUFFIXES)}"
        )
    if path.is_dir():
        raise IsADirectoryError(f"cannot write the plot to {path}: it is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write the plot to {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"cannot write the plot to {path}: the folder {path.parent} is not writable")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ImportError('plots need matplotlib: pip install "numba-softfloat[plot]"') from None
    return path


def check_plot_folder(path: str | os.PathLike[str]) -> Path:
    """A folder for plots, made if it is not there; checked before the work, not after.

    Raises
    ------
    OSError, ImportError
        As `check_plot_path` does for files in it.
    """
    path = Path(path)
    path.mkdir(exist_ok=True)
    check_plot_path(path / PLOTS[0])
    return path


def plot_running_sums(nearest: RunningSum, stochastic: RunningSum, path: str | os.PathLike[str]) -> Path:
    """Draw running sums against the number of additions: one to nearest even, several stochastic ones with their mean.

    The lower panel shows how far the stochastic sums are from the exact one.

    Parameters
    ----------
    nearest, stochastic : RunningSum
        Of the same format, increment and count, trajectories kept.
    path : path
        Ends in .png, .svg or .pdf. A file that is there is replaced once the new one is complete.
    """
    path = check_plot_path(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(8, 7), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes, errors = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    shown = np.unique(np.linspace(0, nearest.count, 2001, dtype=int))
    straight = shown * float(stochastic.exact) / stochastic.count
    runs, flat = stochastic.trajectory[shown], nearest.trajectory[shown, 0]
    mean, last = runs.mean(axis=1), float(nearest.final[0])
    for panel, base in ((axes, 0 * straight), (errors, straight)):
        panel.plot(shown, runs - base[:, None], color=SKY, linewidth=0.6, alpha=0.7, zorder=2)
        panel.plot(shown, mean - base, color=BLUE, linewidth=1.8, zorder=3)
        panel.plot(shown, straight - base, color=BLACK, linewidth=1.0, linestyle=(0, (5, 4)), zorder=4)
        panel.set_xlim(0, nearest.count)
        panel.grid(True, color=GREY, linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    axes.plot(shown, flat, color=ORANGE, linewidth=1.8, zorder=5)
    if nearest.stalled_after is not None:
        at = (nearest.stalled_after, last)
        axes.plot(*at, "o", color=ORANGE, markersize=6, zorder=6)
        text = f"stalls at {last:g} after {nearest.stalled_after} additions"
        axes.annotate(text, at, xytext=(12, -10), textcoords="offset points", color=ORANGE, va="top")
    entries: dict[str, dict[str, Any]] = {
        f"nearest even: {last:g} at the end": {"color": ORANGE, "linewidth": 1.8},
        f"stochastic, {stochastic.runs} runs": {"color": SKY, "linewidth": 0.9},
        f"their mean: {mean[-1]:.4f} at the end": {"color": BLUE, "linewidth": 1.8},
        f"expectation: {float(stochastic.exact):.6f} at the end": {
            "color": BLACK,
            "linewidth": 1,
            "linestyle": (0, (5, 4)),
        },
    }
    axes.legend([Line2D([], [], **style) for style in entries.values()], list(entries), loc="upper left", frameon=False)
    axes.set_title(f"{nearest.count} × {nearest.requested:g} added up in {nearest.format}")
    axes.set_ylabel("running sum")
    axes.set_ylim(bottom=0)
    errors.set_ylabel("stochastic sum less exact sum")
    errors.set_xlabel("additions")
    _save(figure, path)
    return path


Points = Sequence[tuple[float, float]]
"""Of a line: places and heights."""


def _figure(columns: int = 1, rows: int = 1, **options: Any) -> tuple[Any, Any]:
    """A figure of the size that plots of lengths have, and its axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2 + 1.4 * rows), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, **options)


def _by_powers_of_two(axes: Any, places: Iterable[float]) -> None:
    """Logarithmic axes with every second power of two named."""
    exponents = [round(math.log2(x)) for x in places]
    low, high = min(exponents), max(exponents)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(2 ** (low - 0.3), 2 ** (high + 0.3))
    shown = range(high, low - 1, -2 if high - low > 5 else -1)
    axes.set_xticks([2.0**k for k in shown], [f"$2^{{{k}}}$" for k in shown])
    axes.minorticks_off()
    axes.grid(True, color=GREY, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _measured(axes: Any, points: Points, color: str, marker: str, label: str) -> None:
    axes.plot(*zip(*points, strict=True), color=color, marker=marker, markersize=5, linewidth=1.6, label=label)


def _guaranteed(axes: Any, points: Points, color: str, label: str) -> None:
    axes.plot(*zip(*points, strict=True), color=color, linewidth=1.1, linestyle=(0, (5, 3)), label=label)


def plot_dot_swamping(rows: Sequence[DotError], path: str | os.PathLike[str]) -> Path:
    """Draw errors of squared norms against their length, and below how much of what was added was lost whole.

    Parameters
    ----------
    rows : sequence of DotError
        Of `dot_swamping`: three accumulators.
    path : path
        As in `plot_running_sums`.
    """
    path = check_plot_path(path)
    figure, (errors, shares) = _figure(rows=2, sharex=True, height_ratios=(3, 2))
    names = list(dict.fromkeys(row.accumulator for row in rows))
    labels = ("AMP, half partials", "AMP, float partials", "multiply-adds in half")
    for name, label, color, marker in zip(names, labels, (ORANGE, BLUE, BLACK), "os^", strict=True):
        found = [row for row in rows if row.accumulator == name]
        _measured(errors, [(row.length, row.error) for row in found], color, marker, label)
        _measured(shares, [(row.length, row.swamped) for row in found], color, marker, label)
    _by_powers_of_two(errors, [row.length for row in rows])
    _by_powers_of_two(shares, [row.length for row in rows])
    shares.set_yscale("linear")
    shares.set_ylim(-0.04, 1)
    errors.set_ylabel("mean relative error")
    shares.set_ylabel("share that changed nothing")
    shares.set_xlabel("length K")
    errors.legend(loc="center right", bbox_to_anchor=(1, 0.44), frameon=False)
    errors.set_title("Long sums of squares stall with half partials, not with float partials")
    _save(figure, path)
    return path


def plot_chunking(rows: Sequence[ChunkError], path: str | os.PathLike[str]) -> Path:
    """Draw errors of dot products against the length of chunks, with sums of chunks added in half and in single.

    Parameters
    ----------
    rows : sequence of ChunkError
        Of `chunking`.
    path : path
        As in `plot_running_sums`.
    """
    path = check_plot_path(path)
    figure, axes = _figure()
    styles = {"float16": (ORANGE, "o"), "float32": (BLUE, "s")}
    for outer in dict.fromkeys(row.outer for row in rows):
        found = [(row.chunk, row.error) for row in rows if row.outer == outer]
        _measured(axes, found, *styles[outer], f"sums of chunks added in {outer}")
    length = rows[0].length
    _by_powers_of_two(axes, [row.chunk for row in rows])
    axes.axvline(math.sqrt(length), color=BLACK, linewidth=1.1, linestyle=(0, (5, 3)), label="√n")
    axes.set_xlabel("products in a chunk")
    axes.set_ylabel("mean relative error")
    axes.legend(loc="lower right", frameon=False)
    axes.set_title(f"Chunks of about √n lose least: n = {length} products, chunks summed in {rows[0].inner}")
    _save(figure, path)
    return path


def plot_block_fma(rows: Sequence[BlockError], path: str | os.PathLike[str]) -> Path:
    """Draw errors of dot products against their length, with the bound of each way to sum.

    Parameters
    ----------
    rows : sequence of BlockError
        Of `block_fma_bounds`: three pairs of accumulator and output.
    path : path
        As in `plot_running_sums`.
    """
    path = check_plot_path(path)
    figure, axes = _figure()
    pairs = list(dict.fromkeys((row.accumulator, row.output) for row in rows))
    labels = (
        ("multiply-adds in half", "n·u16"),
        ("V100, rounded to half at the end", "u16 + 2.5·n·u32"),
        ("V100, result in single", "2.5·n·u32"),
    )
    for pair, (label, bound), color, marker in zip(pairs, labels, (BLACK, ORANGE, BLUE), "^os", strict=True):
        found = [row for row in rows if (row.accumulator, row.output) == pair]
        _measured(axes, [(row.length, row.error) for row in found], color, marker, label)
        _guaranteed(axes, [(row.length, row.bound) for row in found], color, f"its bound, {bound}")
    _by_powers_of_two(axes, [row.length for row in rows])
    axes.set_xlabel("products n")
    axes.set_ylabel("largest error / |a|·|b|")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    axes.set_title("Tensor cores sum blocks in single: their errors follow n·u32, not n·u16")
    _save(figure, path)
    return path


def plot_stochastic_sums(rows: Sequence[SumError], path: str | os.PathLike[str]) -> Path:
    """Draw errors of sums against their length, to nearest even and stochastic, one panel for each format.

    Parameters
    ----------
    rows : sequence of SumError
        Of `stochastic_sums`.
    path : path
        As in `plot_running_sums`.
    """
    path = check_plot_path(path)
    formats = list(dict.fromkeys(row.format for row in rows))
    figure, panels = _figure(columns=len(formats), sharey=True, squeeze=False)
    for axes, name in zip(panels[0], formats, strict=True):
        for rounding, color, marker, bound in (
            ("nearest_even", ORANGE, "o", "n·u"),
            ("stochastic", BLUE, "s", "√n·u"),
        ):
            found = [row for row in rows if (row.format, row.rounding) == (name, rounding)]
            _measured(axes, [(row.length, row.error) for row in found], color, marker, rounding.replace("_", " "))
            _guaranteed(axes, [(row.length, row.bound) for row in found], color, bound)
        _by_powers_of_two(axes, [row.length for row in rows])
        axes.set_title(name)
        axes.set_xlabel("numbers n")
    panels[0][0].set_ylabel("root mean square of the relative error")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle("Sums to nearest stall; stochastic ones stay below √n·u")
    _save(figure, path)
    return path


PLOTS = ("running-sums.png", "dot-swamping.png", "chunking.png", "block-fma.png", "stochastic-sums.png")
"""What `plot_report` writes."""


def plot_report(report: Report, folder: str | os.PathLike[str]) -> list[Path]:
    """Draw everything in a report of `softfloat.experiments.reproduce`, under the names in `PLOTS`."""
    folder, found = Path(folder), report.accumulation
    running, dots, chunks, blocks, sums = (folder / name for name in PLOTS)
    return [
        plot_running_sums(report.nearest, report.stochastic, running),
        plot_dot_swamping(found.dots, dots),
        plot_chunking(found.chunks, chunks),
        plot_block_fma(found.blocks, blocks),
        plot_stochastic_sums(found.sums, sums),
    ]


def _save(figure: Any, path: Path) -> None:
    """Write under a temporary name in the same folder, then rename: readers see the old file or the whole new one."""
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            figure.savefig(file, format=path.suffix[1:].lower())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)  # mkstemp makes files for their owner alone
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
