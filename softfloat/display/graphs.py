"""Graphs as pictures, coloured by what a recipe makes of their nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softfloat.checks import check_kind
from softfloat.display.drawing import BLACK, BLUE, ORANGE, YELLOW, legend_below, line_sample, new_figure, on_white
from softfloat.recipes import Colouring, Decision, Node, Rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["coloured_graph"]

MOST = 200
BACKWARD = "gradients/"
GREY = "#A0A0A0"
BEND = 0.25  # towards the middle, where no names are
ROW_POINTS = 540  # points of the page that a row is long, about
NAME_POINTS = 8.0  # points of the page that the smallest name is wide
STYLES = {  # by verdict and whether a neighbour was asked: colour, marker, words
    (True, False): (BLUE, "o", "{to}, by its type or name"),
    (True, True): ("white", "o", "{to}, as its neighbours do"),
    (False, False): (ORANGE, "s", "float32, by its type or name"),
    (False, True): (YELLOW, "s", "float32, as its neighbours do"),
}
ASKING = {Rule.CONDITIONAL, Rule.STRICT_CONDITIONAL}


@on_white
def coloured_graph(colouring: Colouring) -> Figure:
    """The nodes of a graph by verdict, and the tensors between them; those that are cast are dashed.

    Nodes of the forward pass stand above, from left to right, in the graph's order; those of the backward pass, whose names begin
    with "gradients/", below, from right to left. Arcs are tensors. Operands without a node, such as parameters, are not drawn.
    Where nodes stand too close for their names, some have one: those that are kept by type or name first.

    Parameters
    ----------
    colouring : Colouring
        Of 1 to 200 nodes.

    Raises
    ------
    TypeError, ValueError
        Naming what is accepted.
    ImportError
        Without matplotlib.
    """
    check_kind("colouring", colouring, Colouring)
    if not 1 <= len(colouring.decisions) <= MOST:
        raise ValueError(f"colouring must be of 1 to {MOST} nodes, got {len(colouring.decisions)}")
    places = _places([x.node for x in colouring.decisions])
    rows = {y for _, y in places.values()}
    figure, axes = new_figure(5.2 if len(rows) > 1 else 2.4)
    entries: dict[str, Any] = {}
    _draw_edges(axes, colouring, places, entries)
    size = max(2.5, min(8.0, 300 / max(x for x, _ in places.values() or [(1, 0)])) if places else 8.0)
    for key, (color, marker, words) in STYLES.items():
        chosen = [x.node.name for x in colouring.decisions if (x.converts, x.rule in ASKING) == key]
        style = {
            "marker": marker,
            "markersize": size,
            "color": color,
            "markeredgecolor": BLUE if key[0] else BLACK,
            "linestyle": "none",
        }
        if chosen:
            points = [places[name] for name in chosen]
            axes.plot(*zip(*points, strict=True), **style, zorder=3, gid=f"{'converted' if key[0] else 'kept'}")
            entries[words.format(to=colouring.to)] = line_sample(**style)
    steps = _steps(places)
    for decision in _named(colouring, places):
        x, y = places[decision.node.name]
        below = decision.node.path.startswith(BACKWARD)
        axes.annotate(
            decision.node.op_type.removeprefix("aten."),
            (x, y),
            (0, -6 if below else 6),
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="top" if below else "bottom",
            fontsize=min(max(NAME_POINTS, _points(places, steps[y])) - 1, 9.0),
        )
    axes.set_ylim(min(rows) - (1.0 if len(rows) > 1 else 0.2), max(rows) + 0.8)
    axes.set_axis_off()
    axes.set_title(
        f"{len(colouring.converted)} of {len(colouring.decisions)} nodes in {colouring.to}, {len(colouring.casts)} casts"
    )
    legend_below(figure, entries, 3)
    return figure


def _places(nodes: list[Node]) -> dict[str, tuple[float, float]]:
    above = [x.name for x in nodes if not x.path.startswith(BACKWARD)]
    below = [x.name for x in nodes if x.path.startswith(BACKWARD)]
    width = max(len(above), len(below), 2) - 1
    found: dict[str, tuple[float, float]] = {}
    for row, y in ((above, 1.0 if below else 0.0), (below[::-1], 0.0)):
        step = width / max(len(row) - 1, 1)
        found |= {name: (1 + i * step, y) for i, name in enumerate(row)}
    return found


def _steps(places: dict[str, tuple[float, float]]) -> dict[float, float]:
    """From one node to the next, row by row."""
    columns = {y: sorted(x for x, row in places.values() if row == y) for _, y in places.values()}
    return {y: xs[1] - xs[0] if len(xs) > 1 else 1.0 for y, xs in columns.items()}


def _points(places: dict[str, tuple[float, float]], length: float) -> float:
    """A length along a row in points of the page, about."""
    return ROW_POINTS * length / max(max(x for x, _ in places.values()) - 1, 1)


def _named(colouring: Colouring, places: dict[str, tuple[float, float]]) -> list[Decision]:
    """The decisions whose nodes have their names beside them."""
    named: list[Decision] = []
    for decision in sorted(colouring.decisions, key=lambda x: x.converts or x.rule in ASKING):
        x, y = places[decision.node.name]
        others = (places[other.node.name] for other in named)
        if all(row != y or _points(places, abs(x - place)) >= NAME_POINTS for place, row in others):
            named.append(decision)
    return named


def _draw_edges(
    axes: Any, colouring: Colouring, places: dict[str, tuple[float, float]], entries: dict[str, Any]
) -> None:
    from matplotlib.patches import FancyArrowPatch

    graph = colouring.graph
    steps = _steps(places)
    cast = {(x.tensor, name, i) for x in colouring.casts for name, i in x.uses}
    styles: dict[bool, dict[str, Any]] = {
        False: {"color": GREY, "linewidth": 0.8, "linestyle": "-"},
        True: {"color": ORANGE, "linewidth": 1.1, "linestyle": (0, (3, 2))},
    }
    for tensor, uses in graph.uses.items():
        maker = graph.producer.get(tensor)
        for node, i in uses if maker is not None else ():
            assert maker is not None
            start, end = places[maker.name], places[node.name]
            changes = (tensor, node.name, i) in cast
            beside = abs(start[0] - end[0]) < 1.5 * steps[start[1]]
            bend = 0.0 if start[1] != end[1] or beside else BEND
            axes.add_patch(
                FancyArrowPatch(
                    start,
                    end,
                    connectionstyle=f"arc3,rad={bend}",
                    arrowstyle="-",
                    gid="cast" if changes else "edge",
                    zorder=2 if changes else 1,
                    **styles[changes],
                )
            )
            entries["a cast" if changes else "a tensor"] = line_sample(**styles[changes])
