"""Recipes and lists side by side on small networks."""

from __future__ import annotations

from typing import Any

import pytest
from needed import needs

torch = pytest.importorskip("torch")
needs("sklearn")

from softfloat.examples import conversions as module  # noqa: E402 -- after the skip
from softfloat.examples.conversions import WAYS, Conversion, conversions, conversions_figure  # noqa: E402


@pytest.fixture(scope="module", params=module.NETWORKS)
def results(request: pytest.FixtureRequest) -> dict[str, Conversion]:
    return {one.name: one for one in conversions(request.param, batch=8, epochs=0)}


def test_each_way_is_measured(results: dict[str, Conversion]) -> None:
    assert list(results) == list(WAYS)
    for one in results.values():
        assert 0 < one.converted <= one.nodes
        assert 0 < one.error < 0.02
        assert 0 < one.gradient_error < 0.05
        assert (one.colouring is None) == (one.name == "autocast")
    assert results["everything"].converted == results["everything"].nodes
    assert results["basic"].converted < min(results["full"].converted, results["bert"].converted)


def test_products_apart_take_the_most_casts(results: dict[str, Conversion]) -> None:
    assert results["basic"].casts > results["full"].casts >= results["everything"].casts


def test_products_of_basic_are_those_of_a_float32_network(results: dict[str, Conversion]) -> None:
    colouring = results["basic"].colouring
    assert colouring is not None
    found = {x.node.op_type for x in colouring.decisions if x.converts}
    assert found <= {"aten.addmm", "aten.mm", "aten.bmm", "aten.convolution", "aten.convolution_backward"}


def test_the_low_type_matters() -> None:
    wide, narrow = (conversions(to=to, ways=["full"], batch=8, epochs=0)[0] for to in ("bfloat16", "float16"))
    assert narrow.error < wide.error / 4


def test_results_repeat_and_leave_pytorchs_stream_alone() -> None:
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    first, second = (conversions("transformer", ways=["full"], batch=4, epochs=1)[0] for _ in range(2))
    assert (first.error, first.gradient_error, first.loss) == (second.error, second.gradient_error, second.loss)
    assert torch.equal(state, torch.random.get_rng_state())


def test_the_figure_shows_the_numbers(results: dict[str, Conversion]) -> None:
    shares, casts, errors = conversions_figure(list(results.values())).axes
    assert [x.get_width() for x in casts.patches] == [one.casts for one in results.values()]
    assert [x.get_width() for x in shares.patches] == [one.converted / one.nodes for one in results.values()]
    drawn = [list(line.get_xdata()) for line in errors.lines]
    assert drawn == [[one.error for one in results.values()], [one.gradient_error for one in results.values()]]
    with pytest.raises(ValueError, match="results must hold a conversion"):
        conversions_figure([])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"network": "resnet"}, "network must be one of 'convolutions', 'transformer', got 'resnet'"),
        ({"to": "float32"}, "to must be one of 'bfloat16', 'float16', got 'float32'"),
        ({"ways": ["half"]}, "ways must be one of 'basic', 'bert', 'full', 'autocast', 'everything', got 'half'"),
        ({"batch": 0}, "batch must be a positive integer, got 0"),
        ({"epochs": -1}, "epochs must be a non-negative integer, got -1"),
    ],
)
def test_arguments_are_refused_by_name(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        conversions(**arguments)
