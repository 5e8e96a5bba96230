"""Figures: formats, roundings, functions and long sums as pictures.

Every function that draws returns a matplotlib Figure and shows nothing; notebooks display it, `save` writes it. The
data behind a picture comes from a function of its own. Colours are Okabe and Ito's, told apart with every kind of
colour vision, and lines differ in dash or marker too. matplotlib is imported by the first drawing.

>>> number_line("float4_e2m1fn").axes[0].get_xlabel()
'value'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from softfloat.checks import check_choice
from softfloat.display.drawing import (
    BLACK,
    BLUE,
    DASHED,
    GREY,
    LINES,
    ORANGE,
    PURPLE,
    YELLOW,
    legend_below,
    line_sample,
    log2_axis,
    new_figure,
    no_ticks,
    on_white,
    patch_sample,
    percent_text,
    plain_axes,
    power_text,
)
from softfloat.display.measures import (
    KINDS,
    Step,
    candidates,
    check_factor,
    check_range,
    count_between,
    function_errors,
    significant_bits,
    sorted_out,
    spacing_steps,
    special_counts,
    steps,
    visible_values,
    window,
)
from softfloat.environments import Rounding, as_rounding
from softfloat.formats import Format, check_format
from softfloat.markup import general, grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "exponent_histogram",
    "function_error",
    "number_line",
    "spacing",
    "staircase",
]


HATCHED = {"facecolor": "#F4F4F4", "edgecolor": "#B0B0B0", "hatch": "///", "linewidth": 0, "zorder": 1}
LOST = "infinity or NaN"
BEGIN = {"color": ORANGE, "linewidth": 1.2, "linestyle": ":"}
"""A line where results begin to be lost."""
LINE_POINTS = 460  # points of the page that a number line is long, about
PANEL_POINTS = 120  # points of the page that a panel of a staircase is wide, about


# -- figures ---------------------------------------------------------------------------------------------------------


def _value_axis(axis: Any, low: float, high: float, room: int, unit: float = 0.0) -> str:
    """Ticks between low and high that can be read, and what the axis's label has to say of them.

    Short decimal numbers where they do; else multiples of a power of two, of `unit` if that is given and smaller,
    counted from zero or from the roundest number in the range. `room` is how many characters the axis has space for.
    """
    from matplotlib.ticker import FixedLocator, MaxNLocator

    def put(places: Iterable[float], texts: Iterable[str]) -> None:
        axis.set_major_locator(FixedLocator(list(places)))
        axis.set_ticklabels([text.replace("-", "\N{MINUS SIGN}") for text in texts])

    for most in range(8, 1, -1):
        decimal = [
            x for x in map(float, MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(low, high)) if low <= x <= high
        ]
        texts = [f"{x + 0.0:g}" for x in decimal]
        short = all(len(text.lstrip("-")) <= 6 and "e" not in text for text in texts)
        if short and len(set(texts)) == len(texts) > 1 and sum(len(text) + 2 for text in texts) <= room:
            put(decimal, texts)
            return ""
    step = 2.0 ** math.ceil(math.log2((high - low) * 6 / room))
    places = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    unit = min(step, unit) if unit else step
    power = power_text(math.log2(unit))
    if max(abs(low), abs(high)) / unit < 1000:
        put(places, [f"{x / unit:g}" for x in places])
        return f", in units of {power}"
    roundest = min(places, key=significant_bits)
    put(places, [f"{(x - roundest) / unit:+g}" if x != roundest else "0" for x in places])
    return f", from {roundest:.9g} in units of {power}"


def _symlog2_axis(axis: Any, low: float, high: float, inner: float) -> None:
    """An axis that is logarithmic beyond `inner` to both sides, with powers of two named."""
    far = max(abs(low), abs(high), 2 * inner)
    first, last = math.floor(math.log2(inner)), math.ceil(math.log2(far))
    step = 1
    while (last - first) / step > (4 if low < 0 < high else 8):
        step *= 2
    powers = [k for k in range(first, last + 1) if k % step == 0 and k >= first + step / 2]
    places = [(-(2.0**k), f"$-2^{{{k}}}$") for k in powers] + [(0.0, "0")] + [(2.0**k, power_text(k)) for k in powers]
    axis.axes.set_xscale("symlog", base=2, linthresh=inner, linscale=1)
    axis.axes.set_xlim(1.3 * min(low, 0) - inner / 4, 1.3 * max(high, 0) + inner / 4)
    shown = [(x, text) for x, text in sorted(places) if low <= x <= high]
    axis.set_ticks([x for x, _ in shown], [text for _, text in shown])
    axis.set_minor_locator(no_ticks())


def _mode_name(mode: Rounding) -> str:
    return mode.name.lower().replace("_", " ")


# -- arguments -------------------------------------------------------------------------------------------------------


def _formats(formats: Sequence[Format | str]) -> list[Format]:
    if not formats:
        raise ValueError("formats must be one or more formats, got none")
    if len(formats) > len(LINES):
        raise ValueError(f"formats must be at most {len(LINES)}, which can be told apart, got {len(formats)}")
    return [check_format(fmt, "formats") for fmt in formats]


def _scale(scale: Any, accepted: Sequence[str] = ("linear", "log")) -> str:
    check_choice("scale", scale, accepted)
    return str(scale)


def _reach(formats: Sequence[Format]) -> tuple[float, float]:
    """From the smallest positive to the largest number of formats; those of 8 exponent bits would leave no room to others."""
    found = [fmt for fmt in formats if fmt.exponent_bits < 8] or formats
    return min(fmt.smallest_subnormal for fmt in found), max(fmt.max for fmt in found)


# -- number line -----------------------------------------------------------------------------------------------------


@on_white
def number_line(
    *formats: Format | str, low: float | None = None, high: float | None = None, scale: str | None = None
) -> Figure:
    """The numbers of formats as ticks on a line, a row for each format.

    Ticks of subnormal numbers are shorter and of another colour. The label of a row says how many numbers are shown,
    of how many, and what other codes there are.

    Parameters
    ----------
    *formats : Format
        At most 7.
    low, high : float, optional
        Ends of the line. Default on a linear scale: of formats of at most 8 bits, what the one with the shortest reach
        has; of wider ones, eight steps of the coarsest to each side of 1. On a logarithmic scale: all positive numbers
        of the formats of fewer than 8 exponent bits, if there are any.
    scale : {"linear", "log"}, optional
        Default linear, for powers of two (float8_e8m0fnu) log. A logarithmic line has positive numbers alone.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.
    """
    found = _formats(formats)
    if scale is None:
        scale = "linear" if any(fmt.mantissa_bits for fmt in found) else "log"
    scale = _scale(scale)
    if scale == "log":
        default = _reach(found)
    elif all(fmt.bits <= 8 for fmt in found):
        default = max(fmt.min for fmt in found), min(fmt.max for fmt in found)
    else:
        reach = 8 * max(fmt.eps for fmt in found)
        default = max(1 - reach, 0.0), 1 + reach
    low, high = check_range(low, high, default, positive=scale == "log")
    figure, axes = new_figure(1.5 + 0.85 * len(found))
    kinds = {"normal": (BLUE, 0.34), "subnormal": (ORANGE, 0.22), "zero": (BLACK, 0.42)}
    used: dict[str, Any] = {}
    merged = False
    for row, fmt in enumerate(found):
        values = visible_values(fmt, low, high, scale)
        gaps = np.diff(np.log2(values) if scale == "log" else values)
        gaps = gaps * LINE_POINTS / (math.log2(high / low) if scale == "log" else high - low)
        width = float(np.clip(np.median(gaps) / 3 if len(gaps) else 1.0, 0.5, 1.0))
        merged |= bool((gaps < width).any())
        sizes = abs(values)
        masks = {"normal": sizes >= fmt.tiny, "subnormal": (sizes < fmt.tiny) & (sizes > 0), "zero": sizes == 0}
        axes.axhline(-row, color=GREY, linewidth=0.8, zorder=1)
        for kind, (color, half) in kinds.items():
            ticks = values[masks[kind]]
            if len(ticks):
                axes.vlines(ticks, -row - half, -row + half, color=color, linewidth=width, snap=False, zorder=2)
                used.setdefault(kind, line_sample(color=color, marker="|", markersize=30 * half, linestyle="none"))
    labels = []
    for fmt in found:
        total, shown = count_between(fmt, -fmt.max, fmt.max), count_between(fmt, low, high)
        part = grouped(total) if shown == total else f"{grouped(shown)} of {grouped(total)}"
        labels.append(f"{fmt.name}\n{part} numbers\n{special_counts(fmt)}")
    axes.set_yticks([-row for row in range(len(found))], labels, fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-len(found) + 0.45, 0.55)
    axes.spines[["top", "right", "left"]].set_visible(False)
    unit = ""
    if scale == "log":
        log2_axis(axes.xaxis, low * 0.9, high * 1.1, most=8)
    else:
        margin = 0.01 * (high - low)
        axes.set_xlim(low - margin, high + margin)
        unit = _value_axis(axes.xaxis, low, high, room=64)
    axes.set_xlabel(f"value{unit}" + ("; numbers closer than a line is wide merge into a band" if merged else ""))
    axes.set_title("Number line: every tick is a number of the format")
    entries = {kind: used[kind] for kind in kinds if kind in used}
    legend_below(figure, entries)
    return figure


# -- spacing ---------------------------------------------------------------------------------------------------------


@on_white
def spacing(*formats: Format | str, low: float | None = None, high: float | None = None) -> Figure:
    """The distance between neighbouring numbers (an ulp) over their magnitude, both to powers of two.

    It doubles with every power of two, and stays as it is below the smallest normal number. A mark stands at the
    largest number of a format.

    Parameters
    ----------
    *formats : Format
        At most 7.
    low, high : float, optional
        Positive; default from the smallest positive to the largest number of those of fewer than 8 exponent bits, if
        there are any.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.
    """
    found = _formats(formats)
    low, high = check_range(low, high, _reach(found), positive=True)
    figure, axes = new_figure(5.6)
    entries: dict[str, Any] = {}
    heights = []
    for fmt, (color, dash, marker) in zip(found, LINES, strict=False):
        magnitudes, heights_of = spacing_steps(fmt, low, high)
        label = f"{fmt.name}: largest {general(fmt.max, 5)}"
        entries[label] = line_sample(color=color, linestyle=dash, marker=marker, markersize=5, linewidth=1.6)
        if len(magnitudes):
            axes.plot(magnitudes, heights_of, drawstyle="steps-post", color=color, linestyle=dash, linewidth=1.6)
            heights += heights_of.tolist()
            if magnitudes[-1] == fmt.max:
                axes.plot(fmt.max, heights_of[-1], marker, color=color, markersize=6, zorder=4, clip_on=False)
    if not heights:
        raise ValueError(f"low to high must meet the numbers of a format, got low={low:g} and high={high:g}")
    log2_axis(axes.xaxis, low / 1.4, high * 1.4)
    margin = (max(heights) / min(heights)) ** 0.04 * 1.2
    log2_axis(axes.yaxis, min(heights) / margin, max(heights) * margin)
    plain_axes(axes)
    axes.set_xlabel("magnitude")
    axes.set_ylabel("distance to the next number (ulp)")
    axes.set_title("Spacing doubles at every power of two, down to the smallest normal number")
    legend_below(figure, entries, columns=2)
    return figure


# -- staircase -------------------------------------------------------------------------------------------------------


@on_white
def staircase(
    fmt: Format | str,
    low: float | None = None,
    high: float | None = None,
    roundings: Rounding | str | Iterable[Rounding | str] = tuple(Rounding),
) -> Figure:
    """What each rounding mode makes of the numbers on a line, a panel for each mode.

    A full dot is part of its step, an open one is not. Stochastic rounding shows both candidates, each as dark as it
    is likely; a dotted line is where infinity or NaN begins to be. Where the result is one, or more often so than not, the panel is hatched.

    Parameters
    ----------
    fmt : Format
    low, high : float, optional
        At most 96 numbers of the format lie between them. Default: the seven smallest numbers to each side of zero; for
        float8_e8m0fnu, around 1.
    roundings : Rounding, or several
        Default: all seven.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.
    """
    fmt = check_format(fmt)
    chosen = [roundings] if isinstance(roundings, (str, Rounding)) else list(roundings)
    modes = [as_rounding(mode, "roundings") for mode in chosen]
    if not modes:
        raise ValueError("roundings must be one or more rounding modes, got none")
    low, high = window(fmt, low, high)
    columns = min(len(modes), 4)
    rows = -(-len(modes) // columns)
    figure, panels = new_figure(1.0 + 2.3 * rows, rows, columns, sharex=True, sharey=True, squeeze=False)
    entries = {
        "x, rounded": line_sample(color=BLUE, linewidth=2.4),
        "x itself": line_sample(color=BLACK, linewidth=0.9, linestyle=DASHED),
    }
    for axes, mode in zip(panels.flat, modes, strict=False):
        axes.plot([low, high], [low, high], color=BLACK, linewidth=0.9, linestyle=DASHED, zorder=2)
        axes.set_title(_mode_name(mode), fontsize=10)
        plain_axes(axes)
        if mode.draws:
            hatched, begin = _draw_random(axes, fmt, low, high, mode)
            if hatched:
                entries[LOST] = patch_sample(**HATCHED)
            entries[f"{_mode_name(mode)}: as dark as likely"] = line_sample(color=BLUE, linewidth=2.4, alpha=0.4)
            if begin is not None:
                lost = "infinity" if fmt.infinities else "NaN"
                entries[f"P({lost}) > 0 from {begin:g} on"] = line_sample(**BEGIN)
        else:
            _draw_steps(axes, steps(fmt, low, high, mode), entries)
    for axes in panels.flat[len(modes) :]:
        axes.set_visible(False)
    margin = 0.04 * (high - low)
    panels[0, 0].set_xlim(low - margin, high + margin)
    panels[0, 0].set_ylim(low - 2 * margin, high + 2 * margin)
    ulp = float(spacing_steps(fmt)[1][0]) if fmt.zero and max(-low, high) < fmt.tiny else 0.0
    unit = _value_axis(panels[0, 0].xaxis, low, high, 24, ulp)
    _value_axis(panels[0, 0].yaxis, low, high, 24, ulp)
    for place, axes in enumerate(panels.flat[: len(modes)]):
        axes.tick_params(labelbottom=place + columns >= len(modes))
        if place + columns >= len(modes):
            axes.set_xlabel("x")
        if place % columns == 0:
            axes.set_ylabel("x, rounded")
    figure.suptitle(f"Rounding to {fmt.name}{unit}: which numbers x goes to", fontsize=12)
    legend_below(figure, entries, columns=3)
    return figure


def _draw_steps(axes: Any, found: Sequence[Step], entries: dict[str, Any]) -> None:
    lengths = [step.last - step.first for step in found if step.last > step.first]
    room = PANEL_POINTS * float(np.median(lengths)) / (found[-1].last - found[0].first)
    size = min(max(0.45 * room, 1.4), 3.6)
    dots: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for one, following in pairwise(found):
        place = min(
            one.last, following.first, key=significant_bits
        )  # two floats in a row; the jump is at the rounder of them
        dots[place == one.last].append((place, one.value))
        dots[place == following.first].append((place, following.value))
    for step in found:
        if not math.isfinite(step.value):
            axes.axvspan(step.first, step.last, **HATCHED)
            entries[LOST] = patch_sample(**HATCHED)
            continue
        axes.plot([step.first, step.last], [step.value] * 2, color=BLUE, linewidth=2.2, zorder=3, solid_capstyle="butt")
    for full, label in ((True, "end of a step, included"), (False, "end of a step, not included")):
        shown = [dot for dot in dots[full] if math.isfinite(dot[1])]
        if shown:
            style = {"color": BLUE, "markerfacecolor": BLUE if full else "white", "markersize": size, "marker": "o"}
            axes.plot(*zip(*shown, strict=True), linestyle="none", zorder=4 + full, **style)
            entries[label] = line_sample(linestyle="none", **style)


def _draw_random(axes: Any, fmt: Format, low: float, high: float, mode: Rounding) -> tuple[bool, float | None]:
    """Both candidates, each as opaque as it is likely; whether some of the range is hatched, and beyond which number results may be lost."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb

    found = candidates(fmt, low, high, 240, mode)
    half = (high - low) / 480
    for value, share in ((found.below, found.falling), (found.above, found.rising)):
        shown = share > 0
        ends = [[(x - half, y), (x + half, y)] for x, y in zip(found.middle[shown], value[shown], strict=True)]
        colors = [(*to_rgb(BLUE), float(alpha)) for alpha in share[shown]]
        axes.add_collection(
            LineCollection(ends, colors=colors, linewidths=2.8, capstyle="butt", zorder=3), autolim=False
        )
    may = found.middle[found.lost > 0]
    begin = None
    if len(may):
        begin = fmt.max if may[0] > 0 else -fmt.max
        axes.axvline(begin, **BEGIN)
    lost = found.middle[found.lost > 0.5]
    if len(lost):  # infinities lie at the ends, and in a window that a picture can show, at one of them
        axes.axvspan(lost[0] - half, lost[-1] + half, **HATCHED)
    return bool(len(lost)), begin


# -- errors of functions ---------------------------------------------------------------------------------------------


@on_white
def function_error(
    function: str | Callable[..., Any],
    fmt: Format | str,
    low: float | None = None,
    high: float | None = None,
    rounding: Rounding | str = "nearest_even",
    reference: str | Callable[[Any], Any] | None = None,
    points: int = 1 << 16,
    scale: str | None = None,
) -> Figure:
    """The error of a function, in ulps, at every number of a format in a range; wrongly rounded values are marked.

    The legend counts both kinds, and those of either that have no error to draw: infinities, NaN, and values that are
    beyond the format's range.

    Parameters
    ----------
    function, fmt, low, high, rounding, reference, points
        As for `function_errors`.
    scale : {"linear", "log", "symlog"}, optional
        Of the arguments; "log" has positive ones alone, "symlog" is logarithmic to both sides of a quarter of eps and
        linear in between. Default: linear from low to at most 16 low, log to more than that, else symlog.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.
    """
    fmt = check_format(fmt)
    if scale is not None:
        scale = _scale(scale, ("linear", "log", "symlog"))
    low, high = check_range(low, high, (fmt.smallest_subnormal if scale == "log" else fmt.min, fmt.max), scale == "log")
    if scale is None:
        scale = "symlog" if low <= 0 else "linear" if high <= 16 * low else "log"
    found = function_errors(function, fmt, low, high, rounding, reference, points)
    if not len(found.x):
        raise ValueError("low to high must hold numbers at which the exact value is finite, got none")
    figure, axes = new_figure(4.8)
    drawn, wrong = np.isfinite(found.error), found.wrong
    entries = {}
    style: dict[str, Any] = {"linestyle": "none", "rasterized": True}
    size = 2.5 if len(found.x) > 2000 else 6
    dots = {"color": BLUE, "marker": ".", "markersize": size, "markeredgewidth": 0}
    crosses = {"color": ORANGE, "marker": "x", "markersize": 7, "markeredgewidth": 1.5}
    for mask, label, options, legend in (
        (~wrong, "correctly rounded", dots, dots | {"markersize": 10}),
        (wrong, "not correctly rounded", crosses, crosses),
    ):
        axes.plot(found.x[mask & drawn], found.error[mask & drawn], **style, **options, zorder=3)
        outside = int((mask & ~drawn).sum())
        note = f" ({grouped(outside)} not drawn)" if outside else ""
        entries[f"{label}: {grouped(int(mask.sum()))}{note}"] = line_sample(linestyle="none", **legend)
    limit = 0.5 if found.rounding.startswith("nearest") else 1.0
    for bound in (-limit, limit):
        axes.axhline(bound, color=BLACK, linewidth=1.0, linestyle=DASHED, zorder=2)
    entries[f"±{limit:g} ulp"] = line_sample(color=BLACK, linewidth=1.0, linestyle=DASHED)
    tallest = float(np.max(abs(found.error[drawn]), initial=0.0))
    if tallest < 1.25 * limit:
        axes.set_ylim(-1.25 * limit, 1.25 * limit)
    if scale == "log":
        log2_axis(axes.xaxis, found.x[0] / 1.25, found.x[-1] * 1.25)
    if scale == "symlog":
        _symlog2_axis(axes.xaxis, float(found.x[0]), float(found.x[-1]), fmt.eps / 4)
    plain_axes(axes)
    axes.set_xlabel("x")
    axes.set_ylabel("error (ulp)")
    axes.set_title(f"Error of {found.name} in {found.format}, rounding {_mode_name(as_rounding(found.rounding))}")
    legend_below(figure, entries, columns=3)
    return figure


# -- exponents -------------------------------------------------------------------------------------------------------


@on_white
def exponent_histogram(values: Any, fmt: Format | str, scales: Sequence[float] = (1.0,)) -> Figure:
    """How large numbers are, and what becomes of them in a format: the picture behind loss scaling.

    A panel for each scale, of numbers times that scale, a bar for each power of two. Bars are coloured by what becomes
    of the numbers; the title tells the shares. Zeros are not drawn.

    Parameters
    ----------
    values : array of float
        Of any shape.
    fmt : Format
    scales : sequence of float
        At most 6, positive.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.
    """
    fmt = check_format(fmt)
    factors = [check_factor(scale, "scales") for scale in np.atleast_1d(np.asarray(scales, object)).tolist()]
    if not 1 <= len(factors) <= 6:
        raise ValueError(f"scales must be 1 to 6 numbers, got {len(factors)}")
    found = [sorted_out(values, fmt, factor) for factor in factors]
    magnitudes = np.concatenate([sizes for sizes, *_ in found])
    if not len(magnitudes):
        raise ValueError(f"values must hold finite numbers other than zero that {fmt} can take, got none")
    exponents = [np.clip(np.frexp(sizes)[1] - 1, -1074, 1023) for sizes, *_ in found]
    low = min(int(np.concatenate(exponents).min()), fmt.emin - fmt.mantissa_bits - 1)
    high = max(int(np.concatenate(exponents).max()), fmt.emax) + 1
    edges = np.arange(low, high + 1)
    figure, panels = new_figure(1.3 + 1.7 * len(factors), len(factors), 1, sharex=True, squeeze=False)
    below = "become zero" if fmt.zero else "become the smallest number"
    styles = {
        "underflow": (below, ORANGE, "xxx"),
        "subnormal": ("subnormal", YELLOW, "///"),
        "normal": ("normal", BLUE, ""),
        "overflow": ("overflow", PURPLE, "..."),
    }
    if not (fmt.subnormals and fmt.mantissa_bits):
        del styles["subnormal"]
    for axes, factor, exponent, (_, kinds, *_) in zip(panels[:, 0], factors, exponents, found, strict=True):
        bottom = np.zeros(len(edges) - 1)
        for kind, (_, color, hatch) in styles.items():
            counts = np.histogram(exponent[kinds == KINDS.index(kind)], edges)[0]
            shown = counts > 0
            axes.bar(
                edges[:-1][shown],
                counts[shown],
                width=1.0,
                bottom=bottom[shown],
                align="edge",
                color=color,
                hatch=hatch,
                edgecolor="white",
                linewidth=0.4,
                zorder=3,
            )
            bottom += counts
        for place in (fmt.emin - fmt.mantissa_bits, fmt.emin, math.log2(fmt.max)):
            axes.axvline(place, color=BLACK, linewidth=0.9, linestyle=DASHED, zorder=4)
        shares = [f"{percent_text((kinds == KINDS.index(kind)).mean())} {styles[kind][0]}" for kind in styles]
        axes.set_title(f"× {_factor(factor)}: " + ", ".join(shares), fontsize=9.5, loc="left")
        axes.set_ylabel("numbers")
        plain_axes(axes, "y")
    panels[0, 0].set_xlim(low - 0.5, high + 0.5)
    step = 1
    while (high - low) // step > 12:
        step *= 2
    ticks = [edge for edge in edges if edge % step == 0]
    panels[0, 0].set_xticks(ticks, [power_text(int(k)) for k in ticks])
    panels[-1, 0].set_xlabel("magnitude after scaling")
    _, kinds, zeros, excluded = found[0]
    rest = [f"{grouped(zeros)} zeros"] * bool(zeros) + [f"{grouped(excluded)} others"] * bool(excluded)
    figure.suptitle(
        f"What becomes of {grouped(len(kinds))} numbers in {fmt.name}"
        + (f"; not counted: {', '.join(rest)}" if rest else ""),
        fontsize=12,
    )
    entries = {
        label: patch_sample(facecolor=color, hatch=hatch, edgecolor="white", linewidth=0)
        for label, color, hatch in styles.values()
    }
    edge = "smallest, smallest normal, largest" if "subnormal" in styles else "smallest, largest"
    entries[edge] = line_sample(color=BLACK, linewidth=0.9, linestyle=DASHED)
    legend_below(figure, entries, columns=3)
    return figure


def _factor(x: float) -> str:
    """A power of two as such from 2^10 on, to either side."""
    mantissa, exponent = math.frexp(x)
    return power_text(exponent - 1) if mantissa == 0.5 and abs(exponent - 1) >= 10 else f"{x:g}"
