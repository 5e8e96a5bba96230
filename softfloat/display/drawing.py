"""What the figures of several modules are drawn with: colours, axes, legends. matplotlib is imported by the first drawing."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "BLACK",
    "BLUE",
    "DASHED",
    "GREEN",
    "GREY",
    "LINES",
    "ORANGE",
    "PURPLE",
    "SKY",
    "YELLOW",
    "Points",
    "axes_by_lengths",
    "draw_measured",
    "legend_below",
    "line_sample",
    "log2_axis",
    "new_figure",
    "no_ticks",
    "on_white",
    "patch_sample",
    "percent_text",
    "plain_axes",
    "power_text",
    "require_matplotlib",
]

BLUE, SKY, ORANGE, GREEN, BLACK = "#0072B2", "#56B4E9", "#D55E00", "#009E73", "#000000"
YELLOW, PURPLE = "#E69F00", "#CC79A7"
GREY = "#E0E0E0"  # of grids
DASHED = (0, (5, 3))
LINES: tuple[tuple[str, Any, str], ...] = (
    (BLUE, "-", "o"),
    (ORANGE, (0, (6, 2)), "s"),
    (GREEN, (0, (2, 1.2)), "^"),
    (BLACK, (0, (6, 2, 1.5, 2)), "D"),
    (PURPLE, (0, (4, 1, 1, 1, 1, 1)), "v"),
    (YELLOW, (0, (9, 2)), "P"),
    (SKY, (0, (1, 2)), "X"),
)
"""Colour, dash and marker of the first, second ... line of a picture; they start again after the last."""

WIDTH = 8.0  # inches
NOTEBOOK_WIDTH = 100  # pixels for an inch, in notebooks

Points = Sequence[tuple[float, float]]
"""Of a line: places and heights."""

Given = ParamSpec("Given")
Made = TypeVar("Made")


def require_matplotlib() -> None:
    """Say how to get it, if it is not there."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ImportError('plots need matplotlib: pip install "numba-softfloat[plot]"') from None


@cache
def _white_page() -> dict[Any, Any]:
    """matplotlib's settings of colours as they are without a style."""
    import matplotlib

    return {name: value for name, value in matplotlib.rcParamsDefault.items() if "color" in name}


def on_white(draw: Callable[Given, Made]) -> Callable[Given, Made]:
    """A function that draws, with colours for a white page: under a dark style, half of them could not be seen."""

    @wraps(draw)
    def drawn(*args: Given.args, **options: Given.kwargs) -> Made:
        require_matplotlib()
        import matplotlib

        with matplotlib.rc_context(_white_page()):
            return draw(*args, **options)

    return drawn


@cache
def figure_class() -> type[Figure]:
    """The class of all figures."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Base

    class Figure(Base):
        """A figure that notebooks display without pyplot, which alone tells them how to display its base class."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            FigureCanvasAgg(self)

        @on_white  # ticks are made when they are drawn
        def draw(self, renderer: Any) -> None:
            super().draw(renderer)

        @on_white
        def savefig(self, *args: Any, **options: Any) -> None:
            super().savefig(*args, **options)

        def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, bytes], dict[str, dict[str, int]]]:
            """Asked for before pyplot's own formatter, so that the width is the same with and without it."""
            file = io.BytesIO()
            self.savefig(file, format="png")
            return {"image/png": file.getvalue()}, {"image/png": {"width": round(self.get_figwidth() * NOTEBOOK_WIDTH)}}

    return Figure


def new_figure(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure of that height in inches, and its axes."""
    require_matplotlib()
    figure = figure_class()(figsize=(WIDTH, height), dpi=150, layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def plain_axes(axes: Any, grid: str = "both") -> None:
    """A pale grid, and no frame above and to the right."""
    axes.grid(True, axis=grid, color=GREY, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend_below(figure: Any, entries: dict[str, Any], columns: int = 4) -> None:
    """A legend under everything: label -> artist."""
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=min(columns, len(entries)),
        frameon=False,
    )


def line_sample(**style: Any) -> Any:
    """A line for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **style)


def patch_sample(**style: Any) -> Any:
    """An area for a legend."""
    from matplotlib.patches import Patch

    return Patch(**style)


def log2_axis(axis: Any, low: float, high: float, most: int = 9) -> None:
    """A logarithmic axis from low to high with at most `most` powers of two named."""
    axis.axes.set(**{f"{axis.axis_name}scale": ("log"), f"{axis.axis_name}lim": (low, high)})
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    step = 1
    while (last - first) // step + 1 > most:
        step *= 2
    shown = [k for k in range(first, last + 1) if k % step == 0]
    axis.set_ticks([2.0**k for k in shown], [f"$2^{{{k}}}$" for k in shown])
    axis.set_minor_locator(no_ticks())


def no_ticks() -> Any:
    """A locator of none."""
    from matplotlib.ticker import NullLocator

    return NullLocator()


def axes_by_lengths(axes: Any, places: Iterable[float]) -> None:
    """Logarithmic axes with every second power of two named."""
    exponents = [round(math.log2(x)) for x in places]
    low, high = min(exponents), max(exponents)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(2 ** (low - 0.3), 2 ** (high + 0.3))
    shown = range(high, low - 1, -2 if high - low > 5 else -1)
    axes.set_xticks([2.0**k for k in shown], [power_text(k) for k in shown])
    axes.minorticks_off()
    plain_axes(axes)


def draw_measured(axes: Any, points: Points, color: str, marker: str, label: str) -> None:
    """Points joined by a line."""
    axes.plot(*zip(*points, strict=True), color=color, marker=marker, markersize=5, linewidth=1.6, label=label)


def power_text(exponent: float) -> str:
    """A power of two."""
    return f"$2^{{{exponent:g}}}$"


def percent_text(share: float) -> str:
    """A share; never 0 or 100 % unless it is."""
    if 0 < share < 0.0001 or 0.9999 < share < 1:
        return "<0.01%" if share < 0.5 else ">99.99%"
    return f"{share:.0%}" if share in (0, 1) else f"{share:.2%}"
