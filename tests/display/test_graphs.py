"""Graphs coloured by verdict: what is drawn is what was decided."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from softfloat.display import coloured_graph
from softfloat.recipes import Graph, Node, Recipe, colour

pytest.importorskip("matplotlib")


def graph(backward: bool) -> Graph:
    nodes = [
        Node("a", "MatMul", ["x", "w"], ["t"]),
        Node("b", "Reshape", ["t"], ["u"]),
        Node("c", "Exp", ["u"], ["v"]),
        Node("d", "Add", ["t", "v"], ["y"]),
    ]
    if backward:
        nodes += [Node("e", "Exp", ["y"], ["g"], "gradients"), Node("f", "MatMul", ["g", "t"], ["h"], "gradients")]
    tensors = [*"xwtuvy", *("gh" if backward else "")]
    return Graph(nodes, dict.fromkeys(tensors, "float32"), ["x"], [tensors[-1]], ["w"], "tensorflow")


@pytest.mark.parametrize("backward", [False, True])
def test_nodes_and_edges_are_drawn_by_verdict(backward: bool) -> None:
    done = colour(graph(backward), Recipe(["MatMul"], ["Reshape"], ["Add"]))
    axes: Any = coloured_graph(done).axes[0]
    points = dict.fromkeys(("converted", "kept"), 0)
    for line in axes.lines:
        points[line.get_gid()] += len(line.get_xdata())
    assert points == {"converted": len(done.converted), "kept": len(done.decisions) - len(done.converted)}
    assert sorted(x.get_text() for x in axes.texts) == sorted(x.node.op_type for x in done.decisions)
    edges = [x.get_gid() for x in axes.patches]
    made = set(done.graph.producer)
    assert edges.count("cast") == sum(len(x.uses) for x in done.casts if x.tensor in made)
    assert len(edges) == sum(len(uses) for tensor, uses in done.graph.uses.items() if tensor in made)
    assert len({y for line in axes.lines for y in line.get_ydata()}) == 1 + backward
    assert f"{len(done.converted)} of {len(done.decisions)} nodes in bfloat16" in axes.get_title()


def test_what_is_drawn() -> None:
    with pytest.raises(TypeError, match="colouring must be Colouring"):
        coloured_graph(graph(False))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="colouring must be of 1 to 200 nodes, got 0"):
        coloured_graph(colour(Graph([], {}), Recipe()))


def test_names_that_would_overlap_are_left_out_and_kept_nodes_named_first() -> None:
    nodes = [Node(f"n{i}", "Exp" if i % 50 == 25 else "MatMul", [f"t{i}", f"t{i}"], [f"t{i + 1}"]) for i in range(150)]
    tensors = [f"t{i}" for i in range(151)]
    done = colour(
        Graph(nodes, dict.fromkeys(tensors, "float32"), ["t0"], ["t150"], [], "tensorflow"), Recipe(["MatMul"], [], [])
    )
    figure = coloured_graph(done)
    figure.canvas.draw()
    axes: Any = figure.axes[0]
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: float(box.x0))
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
    assert [text.get_text() for text in axes.texts].count("Exp") == 3
    assert 30 < len(boxes) < 150
