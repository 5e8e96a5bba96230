"""Signatures and docstrings of functions on codes say which options there are: those that the functions take, and no others."""

from __future__ import annotations

import doctest
import inspect
from collections import Counter
from enum import Enum
from typing import Any

import numpy as np
import pytest

from softfloat import Environment, bits
from softfloat.accumulators import chunked, fma, split
from softfloat.bits import signatures
from softfloat.bits.operations import ELEMENTWISE
from softfloat.bits.sums.convolutions import KEYWORDS, Keywords
from softfloat.engine import Options

NOTHING = np.zeros(0, np.uint16)
ROWS = np.zeros((0, 1), np.uint16)  # no output, so that nothing is compiled
IMAGE, KERNEL = np.zeros((0, 3, 3, 1), np.uint16), np.zeros((2, 2, 1, 1), np.uint16)

CALLS: dict[str, Any] = {
    **{name: (*[NOTHING] * len(row.operands), "float16") for name, row in ELEMENTWISE.items() if row.flags},
    "convert": (NOTHING, "float16", "bfloat16"),
    "encode": (np.zeros(0), "float16"),
    "to_integer": (NOTHING, "float16", np.int16),
    "vecdot": (ROWS, ROWS, "float16", fma("float16")),
    "matmul": (ROWS, np.zeros((1, 2), np.uint16), "float16", fma("float16")),
    "sum": (ROWS, "float16", fma("float16"), 1),
    "cumsum": (ROWS, "float16", fma("float16"), 1),
    "conv2d": (IMAGE, KERNEL, "float16", fma("float16")),
    "conv1d": (IMAGE[:, 0], np.zeros((2, 1, 1), np.uint16), "float16", fma("float16")),
    "join_segments": (np.zeros((1, 0), np.uint16), "float16", chunked(2, "float16", "float16")),
    "matmul_split": (np.zeros((0, 1), np.uint32), np.zeros((1, 2), np.uint32), split("bfloat16", 1), fma("float32")),
    "quantize": (np.zeros((0, 32)), "mxfp8_e4m3"),
}
"""Arguments of functions that take options."""

VALUES: dict[str, Any] = {
    "rounding": "toward_zero", "overflow": "saturate", "tininess": "before", "infinite_input": "keep", "daz": True, "ftz": True,
    "converts_subnormals": True, "nan": "arm", "projection": "p3109", "sr_bits": 4, "sr_method": "half",
    "generator": "philox4x32", "seed": 1, "stream": 1, "position": None, "random_bits": np.zeros(0, np.uint8),
    "environment": Environment(nan="arm"), "flags": "any",
}  # fmt: skip


def functions() -> list[str]:
    """Names of those that take options."""
    return [
        name
        for name in bits.__all__
        if inspect.isfunction(getattr(bits, name))
        and "environment" in inspect.signature(getattr(bits, name)).parameters
    ]


def test_one_table_has_every_option_and_the_types_of_none_other() -> None:
    assert set(signatures.OPTIONS) == set(Options.__annotations__)
    for name, option in signatures.OPTIONS.items():
        if name in Environment.__dataclass_fields__:
            default = getattr(Environment(), name)
            assert option.default == (default.name.lower() if isinstance(default, Enum) else default)
        assert f"\n{name} : {option.accepted}" in bits.__doc__
        assert option.meaning in bits.__doc__


def test_every_function_has_one_family() -> None:
    assert Counter(name for names in signatures.FAMILIES.values() for name in names) == Counter(bits.__all__)
    for name in bits.__all__:
        found = getattr(bits, name)
        if inspect.isfunction(found):
            (family,) = (names for names in signatures.FAMILIES.values() if name in names)
            others = set(family) - {name, "CLASSES"}
            assert set(found.__doc__.split("See Also\n--------\n")[1].split("\n")[0].split(", ")) == others


@pytest.mark.parametrize("name", functions())
def test_signatures_and_docstrings_name_the_same_options(name: str) -> None:
    function = getattr(bits, name)
    parameters = inspect.signature(function).parameters
    named = [option for option in signatures.OPTIONS if option in parameters]
    assert [x for x in parameters if x in named] == named
    assert all(parameters[x].kind is inspect.Parameter.KEYWORD_ONLY for x in named)
    assert "options" not in parameters
    section = function.__doc__.split("Other Parameters\n----------------\n")[1].split("\n\n")[0]
    assert [line.split(" : ")[0] for line in section.splitlines() if not line.startswith(" ")] == named
    # what was the code's own stays: only options are put in their place
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    assert tuple(x for x in parameters if x not in named) == (*own, *KEYWORDS.get(name, ()))


def test_keywords_of_convolutions_are_those_that_type_checkers_know() -> None:
    assert set(Keywords.__annotations__) == {*Options.__annotations__, *KEYWORDS["conv2d"]}
    for name, keywords in KEYWORDS.items():
        parameters = inspect.signature(getattr(bits, name)).parameters
        assert {x: parameters[x].default for x in keywords} == keywords
        assert all(parameters[x].kind is inspect.Parameter.KEYWORD_ONLY for x in keywords)
    assert KEYWORDS["conv1d"] == {**KEYWORDS["conv2d"], "layout": "NWC"}


@pytest.mark.parametrize("name", CALLS)
def test_signatures_name_the_options_that_a_function_takes(name: str) -> None:
    """What is not in the signature is refused; addresses, which may stand where nothing is drawn, are accepted unseen."""
    function, arguments = getattr(bits, name), CALLS[name]
    parameters = inspect.signature(function).parameters
    needed = {"k": 1} if name == "join_segments" else {}
    for option in signatures.OPTIONS:
        if option == "out":
            result = function(*arguments, **needed)[0] if "out" in parameters else None
            value = np.empty_like(result) if isinstance(result, np.ndarray) else np.empty(0, np.uint16)
        else:
            value = VALUES[option]
        if option == "random_bits" and name == "quantize":
            value = np.zeros((0, 32), np.uint8)
        given = {option: value, **needed}
        if option in ("sr_bits", "sr_method", "generator", "seed", "random_bits") and "rounding" in parameters:
            given["rounding"] = "toward_zero" if name == "matmul_split" else "stochastic"
        if option in ("sr_bits", "sr_method", "generator"):
            given = {"seed": 1, "sr_bits": 4, **given}
        if option in parameters:
            function(*arguments, **given)
        elif option not in ("seed", "stream", "position") or (option == "seed" and name != "matmul_split"):
            with pytest.raises((TypeError, ValueError), match=option):
                function(*arguments, **given)


def test_all_functions_that_take_options_are_tried() -> None:
    others = {"scalar", "conv2d_input_gradient", "conv2d_weight_gradient", "vecdot_blocks", "matmul_blocks"}
    assert set(functions()) == set(CALLS) | others
    for name in ("out", "flags", "random_bits"):
        assert name not in inspect.signature(bits.scalar).parameters
        with pytest.raises(TypeError, match=f"scalar takes no {name}"):
            bits.scalar("add", "float16", **{name: None})


def test_examples_are_still_found_behind_the_options() -> None:
    assert len(doctest.DocTestFinder().find(bits.add)[0].examples) == 1


def test_a_trap_knows_operands_from_options() -> None:
    """Codes that came by keyword are among a trap's operands; options are not."""
    env = Environment(traps="OVERFLOW")
    with pytest.raises(FloatingPointError, match=r"OVERFLOW raised by add\(0x7bff, 0x7bff\) at index \(\)"):
        env.evaluate(bits.add, 0x7BFF, b=0x7BFF, fmt="float16", stream=3)
    with pytest.raises(TypeError, match="returns flags, and decode returns none"):
        env.evaluate(bits.decode, 0x7BFF, "float16")
