"""The recipes "onnxconverter" and "onnxruntime" against the tools they are named after: nodes, types and weights."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

onnx = pytest.importorskip("onnx")

from onnx_graphs import described  # noqa: E402
from saved_models import MODELS  # noqa: E402

from softfloat.onnx.conversion import convert  # noqa: E402

ORIGINALS = {"onnxconverter": "onnxconverter_common.float16", "onnxruntime": "onnxruntime.transformers.float16"}


@pytest.fixture(params=ORIGINALS)
def tool(request: pytest.FixtureRequest) -> Iterator[tuple[str, Callable[..., Any]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of clamped weights, among others
        module = pytest.importorskip(ORIGINALS[request.param])
        logging.getLogger(module.__name__).setLevel(logging.ERROR)
        yield request.param, module.convert_float_to_float16


def copied(model: Any) -> Any:
    return onnx.load_model_from_string(model.SerializeToString())


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_nodes_types_and_weights_are_the_originals(tool: tuple[str, Callable[..., Any]], name: str, keep: bool) -> None:
    recipe, original = tool
    model = MODELS[name]()
    before = model.SerializeToString()
    ours, _ = convert(model, "float16", recipe, keep_io_types=keep)
    theirs = original(copied(model), keep_io_types=keep)
    assert model.SerializeToString() == before
    found, wanted = described(ours), described(theirs)
    for key in wanted:
        assert found[key] == wanted[key], key
