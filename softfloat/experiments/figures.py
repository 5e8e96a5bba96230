"""Figures of the experiments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softfloat.accumulators import amp, fma, tensor_core
from softfloat.display.drawing import (
    BLACK,
    BLUE,
    DASHED,
    LINES,
    ORANGE,
    SKY,
    Points,
    axes_by_lengths,
    draw_measured,
    legend_below,
    line_sample,
    new_figure,
    on_white,
    plain_axes,
)
from softfloat.markup import grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from softfloat.experiments.accumulation import BlockError, ChunkError, DotError, SumError
    from softfloat.experiments.claims import Report
    from softfloat.experiments.swamping import RunningSum

__all__ = ["PLOTS", "block_fma", "chunking", "dot_swamping", "report_figures", "running_sums", "stochastic_sums"]


# -- experiments -----------------------------------------------------------------------------------------------------


@on_white
def running_sums(*sums: RunningSum) -> Figure:
    """Running sums against the number of additions; several runs of one sum are drawn thin, with their mean.

    The lower panel shows how far sums are from the exact one: those of several runs, or all if there are none.

    Parameters
    ----------
    *sums : RunningSum
        Of one increment and count, trajectories kept; at most 7.

    Raises
    ------
    ValueError
        Naming what is accepted.
    """
    if not 1 <= len(sums) <= len(LINES):
        raise ValueError(f"sums must be 1 to {len(LINES)} running sums, got {len(sums)}")
    first = sums[0]
    if any((one.requested, one.count) != (first.requested, first.count) for one in sums):
        raise ValueError("sums must have the same increment and count")
    several_formats = len({one.format for one in sums}) > 1
    figure, (axes, errors) = new_figure(7, 2, 1, sharex=True, height_ratios=(3, 2))
    several_increments = len({one.increment for one in sums}) > 1
    each = first.requested if several_increments else first.increment
    total = each * first.count
    below = [one for one in sums if one.runs > 1] or list(sums)
    # to nearest in vermillion, stochastic in blue: the same colours as everywhere else
    order = [LINES[1], LINES[0], *LINES[2:]] if sums[0].runs == 1 else list(LINES)
    entries: dict[str, Any] = {}
    top = 0.0
    for one, (color, dash, marker) in zip(sums, order, strict=False):
        name = one.label + (f", {one.format}" if several_formats else "")
        places = np.unique(np.linspace(0, one.lengths.size - 1, 2001, dtype=int))
        shown, runs = one.lengths[places], one.trajectory[places]
        exact = shown * each
        mean, last = runs.mean(axis=1), float(np.asarray(one.final).mean())
        top = max(top, float(np.max(runs[np.isfinite(runs)], initial=0)))
        thin = SKY if color == BLUE else color
        for panel, base in ((axes, 0 * exact), (errors, exact))[: 2 if any(one is x for x in below) else 1]:
            if one.runs > 1:
                panel.plot(shown, runs - base[:, None], color=thin, linewidth=0.6, alpha=0.7, zorder=2)
            panel.plot(
                shown, mean - base, color=color, linestyle=dash if several_formats else "-", linewidth=1.8, zorder=3
            )
        style = {"color": color, "linewidth": 1.8, "linestyle": dash if several_formats else "-"}
        if one.runs > 1:
            entries[f"{name}, {one.runs} runs"] = line_sample(color=thin, linewidth=0.9)
            entries[f"their mean: {last:.4f} at the end"] = line_sample(**style)
            continue
        stalled = "" if one.stalled_after is None else f", stalls after {grouped(one.stalled_after)} additions"
        entries[f"{name}: {last:.5g} at the end{stalled}"] = line_sample(
            **style, **({} if one.stalled_after is None else {"marker": marker, "markersize": 5})
        )
        if one.stalled_after is not None:
            axes.plot(
                one.stalled_after, one.trajectory[one.stalled_after, 0], marker, color=color, markersize=6, zorder=6
            )
    for panel, height in ((axes, total), (errors, 0.0)):
        panel.plot((0, first.count), (0.0, height), color=BLACK, linewidth=1.0, linestyle=(0, (5, 4)), zorder=4)
        panel.set_xlim(0, max(first.count, 1))
        plain_axes(panel)
    drawn = {one.label for one in sums if one.rounding == "stochastic"}
    name = "expectation" if drawn == {"stochastic"} else "exact"
    entries[f"{name}: {total:.7g} at the end"] = line_sample(color=BLACK, linewidth=1.0, linestyle=(0, (5, 4)))
    axes.set_ylim(0, 1.06 * max(top, total) or 1)
    legend_below(figure, entries, columns=2 if sum(sorted(map(len, entries))[-2:]) < 85 else 1)
    where = "" if several_formats else f" in {first.format}"
    seen = ": where sums stall" if any(one.stalled_after is not None for one in sums) else ""
    axes.set_title(f"{grouped(first.count)} × {first.requested:g} added up{where}{seen}")
    axes.set_ylabel("running sum")
    which = "stochastic sum" if {one.rounding for one in below} == {"stochastic"} else "sum"
    errors.set_ylabel(f"{which} less exact sum")
    errors.set_xlabel("additions")
    return figure


def _guaranteed(axes: Any, points: Points, color: str, label: str) -> None:
    axes.plot(*zip(*points, strict=True), color=color, linewidth=1.1, linestyle=DASHED, label=label)


def _told_apart(
    names: Iterable[str], known: Mapping[str, tuple[str, str, str]]
) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Each name with its label, colour and marker; those that are not known are their own labels, in colours that are left."""
    taken = {color for _, color, _ in known.values()}
    left = itertools.cycle((color, marker) for color, _, marker in LINES if color not in taken)
    for name in dict.fromkeys(names):
        yield name, known[name] if name in known else (name, *next(left))


@on_white
def dot_swamping(rows: Sequence[DotError]) -> Figure:
    """Errors of squared norms against their length, and below how much of what was added was lost whole.

    Parameters
    ----------
    rows : sequence of DotError
        Of `softfloat.experiments.dot_swamping`.
    """
    figure, (errors, shares) = new_figure(7, 2, 1, sharex=True, height_ratios=(3, 2))
    known = {
        repr(amp("half")): ("AMP, half partials", ORANGE, "o"),
        repr(amp("float")): ("AMP, float partials", BLUE, "s"),
        repr(fma("float16")): ("multiply-adds in half", BLACK, "^"),
    }
    for name, (label, color, marker) in _told_apart((row.accumulator for row in rows), known):
        found = [row for row in rows if row.accumulator == name]
        draw_measured(errors, [(row.length, row.error) for row in found], color, marker, label)
        draw_measured(shares, [(row.length, row.swamped) for row in found], color, marker, label)
    axes_by_lengths(errors, [row.length for row in rows])
    axes_by_lengths(shares, [row.length for row in rows])
    shares.set_yscale("linear")
    shares.set_ylim(-0.04, 1)
    errors.set_ylabel("mean relative error")
    shares.set_ylabel("share that changed nothing")
    shares.set_xlabel("length K")
    figure.legend(*errors.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    usual = {row.accumulator for row in rows} <= set(known) and {row.settings for row in rows} == {"nearest even"}
    if usual and {row.format for row in rows} == {"float16"}:
        errors.set_title("Long sums of squares stall with half partials, not with float partials")
    else:
        errors.set_title(f"Sums of K squares in {rows[0].format}, {rows[0].settings}")
    return figure


@on_white
def chunking(rows: Sequence[ChunkError]) -> Figure:
    """Errors of dot products against the length of chunks, with sums of chunks added in half and in single.

    Parameters
    ----------
    rows : sequence of ChunkError
        Of `softfloat.experiments.chunking`.
    """
    figure, axes = new_figure(5.6)
    for outer in dict.fromkeys(row.outer for row in rows):
        found = [(row.chunk, row.error) for row in rows if row.outer == outer]
        style = (BLUE, "s") if outer == "float32" else (ORANGE, "o")
        draw_measured(axes, found, *style, f"sums of chunks added in {outer}")
    length = rows[0].length
    axes_by_lengths(axes, [row.chunk for row in rows])
    axes.axvline(math.sqrt(length), color=BLACK, linewidth=1.1, linestyle=DASHED, label="√n")
    axes.set_xlabel("products in a chunk")
    axes.set_ylabel("mean relative error")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    if rows[0].settings == "nearest even":
        axes.set_title(f"With all sums in {rows[0].inner}, chunks of about √n lose least: n = {length} products")
    else:
        axes.set_title(f"{length} products in chunks: {rows[0].inner}, {rows[0].settings}")
    return figure


@on_white
def block_fma(rows: Sequence[BlockError]) -> Figure:
    """Errors of dot products against their length, with the bound of each way to sum.

    Parameters
    ----------
    rows : sequence of BlockError
        Of `softfloat.experiments.block_fma_bounds`.
    """
    figure, axes = new_figure(5.6)
    half, core = repr(fma("float16")), repr(tensor_core("V100"))
    known = {
        f"{half} to float16": ("multiply-adds in half", BLACK, "^"),
        f"{core} to float16": ("V100, rounded to half at the end", ORANGE, "o"),
        f"{core} to float32": ("V100, result in single", BLUE, "s"),
    }
    bounds = {
        f"{half} to float16": ", n·u16",
        f"{core} to float16": ", u16 + 2.5·n·u32",
        f"{core} to float32": ", 2.5·n·u32",
    }
    way = lambda row: f"{row.accumulator} to {row.output}"  # noqa: E731
    for name, (label, color, marker) in _told_apart(map(way, rows), known):
        found = [row for row in rows if way(row) == name]
        draw_measured(axes, [(row.length, row.error) for row in found], color, marker, label)
        _guaranteed(axes, [(row.length, row.bound) for row in found], color, f"its bound{bounds.get(name, '')}")
    axes_by_lengths(axes, [row.length for row in rows])
    axes.set_xlabel("products n")
    axes.set_ylabel("largest error / |a|·|b|")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    axes.set_title("Tensor cores sum blocks in single: their errors follow n·u32, not n·u16")
    return figure


@on_white
def stochastic_sums(rows: Sequence[SumError]) -> Figure:
    """Errors of sums against their length, to nearest even and stochastic, one panel for each format.

    Parameters
    ----------
    rows : sequence of SumError
        Of `softfloat.experiments.stochastic_sums`.
    """
    formats = list(dict.fromkeys(row.format for row in rows))
    figure, panels = new_figure(5.6, 1, len(formats), sharey=True, squeeze=False)
    for axes, name in zip(panels[0], formats, strict=True):
        for rounding, color, marker, bound in (
            ("nearest_even", ORANGE, "o", "n·u"),
            ("stochastic", BLUE, "s", "√n·u"),
        ):
            found = [row for row in rows if (row.format, row.rounding) == (name, rounding)]
            draw_measured(axes, [(row.length, row.error) for row in found], color, marker, rounding.replace("_", " "))
            _guaranteed(axes, [(row.length, row.bound) for row in found], color, bound)
        axes_by_lengths(axes, [row.length for row in rows])
        axes.set_title(name)
        axes.set_xlabel("numbers n")
    panels[0][0].set_ylabel("root mean square of the relative error")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle("Sums to nearest stall; stochastic ones stay below √n·u")
    return figure


PLOTS = ("running-sums.png", "dot-swamping.png", "chunking.png", "block-fma.png", "stochastic-sums.png")
"""Names of files, one for each figure of `report_figures`."""


def report_figures(report: Report) -> dict[str, Figure]:
    """Figures of everything in a report of `softfloat.experiments.reproduce`, under the names in `PLOTS`."""
    found = report.accumulation
    drawn = (
        running_sums(report.nearest, report.stochastic),
        dot_swamping(found.dots),
        chunking(found.chunks),
        block_fma(found.blocks),
        stochastic_sums(found.sums),
    )
    return dict(zip(PLOTS, drawn, strict=True))
