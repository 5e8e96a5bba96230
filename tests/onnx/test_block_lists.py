"""Nodes that must stay in float32: found, minimal, and in fewer runs than by halving all nodes in the order of the graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

onnx = pytest.importorskip("onnx")

from saved_models import MODELS, drawn, info, made, node, weight  # noqa: E402

from softfloat.accumulators import fma  # noqa: E402
from softfloat.onnx import Evaluator, convert, find_block_list  # noqa: E402
from softfloat.onnx import block_lists as module  # noqa: E402

FEEDS = {"x": drawn(8)}


def chain(size: int, bad: Collection[int], named: bool = True) -> Any:
    """Nodes in a row: those at `bad` places leave the range of half precision, the next come back."""
    nodes, weights, at = [], [], "x"
    for i in range(size):
        name = f"t{i}_" if named else ""
        if i in bad or i - 1 in bad:
            weights.append(weight(f"w{i}", 1e6 if i in bad else 1e-6))
            nodes.append(node("Mul", f"{at} w{i}", f"t{i}", name))
        else:
            nodes.append(node("Neg" if i % 3 else "Tanh", at, f"t{i}", name))
        at = f"t{i}"
    return made(nodes, [info("x", (8,))], [info(at, (8,))], weights)


def halving(names: Sequence[str], good: Callable[[list[str]], bool]) -> tuple[list[str], int]:
    """What onnxconverter-common's search does, told from its documentation: (nodes kept, runs)."""
    segments = [(list(names), "open")]
    runs = 0
    while any(state == "open" for _, state in segments):
        i = max((i for i, x in enumerate(segments) if x[1] == "open"), key=lambda i: len(segments[i][0]))
        segment = segments[i][0]
        runs += 1
        if good([name for j, (other, state) in enumerate(segments) if j != i and state != "good" for name in other]):
            segments[i] = (segment, "good")
        elif len(segment) == 1:
            segments[i] = (segment, "bad")
        else:
            middle = len(segment) // 2
            segments[i : i + 1] = [(segment[:middle], "open"), (segment[middle:], "open")]
    return [name for x, state in segments if state != "good" for name in x], runs + 1  # it runs the last once more


@pytest.mark.parametrize(("size", "bad"), [(16, ()), (48, (7,)), (48, (10, 30)), (64, (5, 20, 33, 60))])
def test_what_leaves_the_range_is_found_in_few_runs(size: int, bad: tuple[int, ...]) -> None:
    model = chain(size, bad)
    found = find_block_list(model, FEEDS, 1e-2)
    wanted = [f"t{j}_" for i in bad for j in (i, i + 1)]
    assert list(found.nodes) == wanted
    assert found.of == len(found.suspects) == size
    assert {x.node for x in found.suspects[: len(wanted)]} == set(wanted)

    reference = Evaluator(model).run(None, FEEDS)

    def good(kept: list[str]) -> bool:
        outputs = Evaluator(convert(model, node_block_list=kept)[0]).run(None, FEEDS)
        return bool(np.allclose(reference[0], outputs[0], rtol=1e-2, atol=1e-2 * np.abs(reference[0]).max()))

    assert good(wanted)
    kept, runs = halving([x.name for x in model.graph.node], good)
    assert kept == wanted
    assert found.runs == {(): 1, (7,): 4, (10, 30): 6, (5, 20, 33, 60): 10}[bad]
    assert found.runs * 3 <= max(runs, 3)


def test_beside_the_original_in_the_same_model(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    original = pytest.importorskip("onnxconverter_common.auto_mixed_precision")
    model = chain(32, (9, 20))
    calls = []

    def validate(wanted: list[Any], found: list[Any]) -> bool:
        calls.append(found)
        return bool(np.allclose(wanted[0], found[0], rtol=1e-2, atol=1e-2))

    found = find_block_list(model, FEEDS, lambda x, y: bool(np.allclose(x[0], y[0], rtol=1e-2, atol=1e-2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of weights that the original clamps
        original.auto_convert_mixed_precision(model, FEEDS, validate, keep_io_types=True)
    capsys.readouterr()
    assert found.nodes == ("t9_", "t10_", "t20_", "t21_")
    assert found.runs * 3 <= len(calls) - 1  # the first validates the float32 model beside itself


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_kept_is_what_is_needed_and_passes(data: st.DataObject) -> None:
    """The search alone, among conditions that hold for every list that has some sets of nodes."""
    names = [f"n{i}" for i in range(data.draw(st.integers(1, 24)))]
    needed = set(data.draw(st.lists(st.sampled_from(names), min_size=1)))
    order = data.draw(st.permutations(names))
    size = max(order.index(x) for x in needed) + 1
    severe = data.draw(st.integers(0, len(names)))
    failed, first = 0, severe or 1
    while first < size:
        failed, first = first, first * 2
    runs = []

    def good(kept: Collection[str]) -> bool:
        runs.append(set(kept))
        return needed <= set(kept)

    kept = module._reduced(order[: min(first, len(order))], severe, failed, good)
    assert set(kept) == needed
    assert len(set(map(frozenset, runs))) == len(runs)  # nothing is run twice


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_result_has_passed_even_if_conditions_are_not_monotone(data: st.DataObject) -> None:
    names = [f"n{i}" for i in range(8)]
    answers = data.draw(st.lists(st.booleans(), min_size=256, max_size=256))
    passed = [frozenset(names)]
    severe, failed = data.draw(st.integers(0, 8)), data.draw(st.integers(0, 7))
    answers[sum(1 << i for i in range(failed))] = False

    def good(kept: Collection[str]) -> bool:
        answer = answers[sum(1 << names.index(x) for x in kept)]
        if answer:
            passed.append(frozenset(kept))
        return answer

    assert frozenset(module._reduced(names, severe, failed, good)) == passed[-1]


def test_weights_and_inputs_out_of_range_count_for_the_nodes_that_take_them() -> None:
    model = made(
        [node("Exp", "x", "a"), node("Mul", "a w", "b"), node("Mul", "b v", "y")],
        [info("x", (8,))],
        [info("y", (8,))],
        [weight("w", [1e5] * 8), weight("v", 1e-5)],
    )
    found = find_block_list(model, FEEDS, 1e-2)
    assert found.nodes == ("b_", "y_")
    ranked = {x.node: x for x in found.suspects}
    assert ranked["b_"].out_of_range >= 8
    assert ranked["a_"].out_of_range == 0
    large = find_block_list(chain(6, ()), {"x": FEEDS["x"] * 1e6}, 1e-2)
    assert large.suspects[0].node == "t0_"


def test_lost_precision_is_ranked_too() -> None:
    """A sum in half precision that swamps, among nodes that are exact."""
    nodes = [
        node("Neg", "x", "a"),
        node("MatMul", "a w", "s"),
        node("Neg", "s", "b"),
        node("Neg", "b", "y"),
    ]
    model = made(nodes, [info("x", (1, 4096))], [info("y", (1, 1))], [weight("w", np.ones((4096, 1)))])

    found = find_block_list(model, {"x": np.ones((1, 4096), np.float32)}, 1e-3, matmul=fma("float16"))
    assert found.nodes == ("s_",)
    assert found.suspects[0].node == "s_"
    assert found.suspects[0].lost > 0.25
    assert found.runs <= 3


def test_nodes_without_names_and_nodes_inside_others() -> None:
    unnamed = find_block_list(chain(12, (4,), named=False), FEEDS, 1e-2)
    assert unnamed.nodes == ("t4", "t5")
    convert(chain(12, (4,), named=False), node_block_list=unnamed.nodes)
    inside = MODELS["looping"]()
    found = find_block_list(inside, {"x": np.full((2, 4), 1e5, np.float32)}, 1e-2)
    assert set(found.nodes) <= {x.name for x in inside.graph.node}
    assert "a_" in found.nodes


def test_operators_without_emulation_are_kept() -> None:
    model = made(
        [node("Neg", "x", "a"), node("Det", "a", "d"), node("Neg", "d", "y")], [info("x", (3, 3))], [info("y", ())]
    )
    found = find_block_list(model, {"x": np.eye(3, dtype=np.float32)}, 1e-2)
    assert found.unemulated == found.nodes == ("d_",)
    assert (found.runs, found.of, len(found.suspects)) == (1, 3, 2)


def test_the_ranking_as_text_and_as_html() -> None:
    found = find_block_list(chain(12, (4,)), FEEDS, 1e-2)
    assert str(found).splitlines()[0] == f"2 of 12 nodes stay in float32, after {found.runs} runs"
    assert str(found).count("float32") == 3
    assert "<table" in found._repr_html_()
    assert "t4_" in found._repr_html_()


def test_what_is_refused() -> None:
    model = chain(4, ())
    with pytest.raises(ValueError, match="validate refuses the outputs of the float32 model itself"):
        find_block_list(model, FEEDS, lambda x, y: False)
    with pytest.raises(ValueError, match="validate refuses even the model whose nodes"):
        find_block_list(model, FEEDS, lambda x, y: x is y)
    for wrong in (0.0, -1, True, "1e-3", None):
        with pytest.raises(TypeError, match="validate must be a function"):
            find_block_list(model, FEEDS, wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="input x is missing"):
        find_block_list(model, {}, 1e-2)
    model.graph.node[1].name = "t0_"
    with pytest.raises(ValueError, match="two nodes of the name 't0_'"):
        find_block_list(model, FEEDS, 1e-2)
