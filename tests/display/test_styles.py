"""Pictures are the same whatever style the reader has set: their colours are those of a white page."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from softfloat import display

style = pytest.importorskip("matplotlib.style")


def png(draw: Callable[[], Any]) -> bytes:
    data: dict[str, bytes] = draw()._repr_mimebundle_()[0]
    return data["image/png"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: display.number_line("float4_e2m1fn"),
        lambda: display.staircase("float8_e4m3fn", 440, 480, ["stochastic"]),
        lambda: display.exponent_histogram([1e-9, 1.0, 1e9], "float16"),
    ],
    ids=["lines", "panels", "bars"],
)
def test_a_dark_style_changes_nothing(draw: Callable[[], Any]) -> None:
    expected = png(draw)
    with style.context("dark_background"):
        assert png(draw) == expected


def test_every_function_that_returns_a_figure_draws_so() -> None:
    found = 0
    for name in ("display.figures", "display.graphs", "experiments.figures", "examples.reports"):
        module = importlib.import_module(f"softfloat.{name}")
        for made in vars(module).values():
            if inspect.isfunction(made) and made.__annotations__.get("return") == "Figure":
                assert hasattr(made, "__wrapped__") or made.__module__ == "softfloat.display.drawing", made.__name__
                found += 1
    assert found > 10
