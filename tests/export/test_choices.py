"""Choices of exported dot products, filled in by number, are those that the engine fills in by name."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import numpy as np
import pytest
from softfloat.kernels import dots, entries

from softfloat import ROSTER, bits
from softfloat.accumulators import PRESETS
from softfloat.engine import elementwise, units
from softfloat.export.library import request
from softfloat.testing.vectors.operations import parse_accumulator

CALLED = {
    "kind": "length[KIND]",
    "block": "length[BLOCK]",
    "chains": "plan[CHAINS]",
    "tree": "plan[TREE]",
    "levels": "levels",
    "fraction_bits": "plan[FRACTION_BITS]",
    "has_addend": "has_c",
    "has_result": "plan[HAS_RESULT]",
    "first": "position",
    "row_stride": "1",
    "column_stride": "1",
    "payloads": "1 if carries else 0",
    "entered": "plan[ENTERED]",
    "products_rounded": "plan[PRODUCTS_ROUNDED]",
    "lone_converted": "plan[LONE_CONVERTED]",
}
"""What an exported dot product says by itself; of all others it has the values of an accumulator without the fields that exports refuse."""

SUMS = (
    *('tensor_core("H100")', 'tensor_core("V100")', 'amp("half")', 'fma("float16")', 'mul_add("float32")', 'exact("float32")'),
    *('pairwise("float16")', 'chunked(4, fma("float16"), "float32")', 'amp("float", mode="aligned")'),
)  # fmt: skip


def assigned() -> dict[str, str]:
    """Field -> the expression that `dot_entry` puts there."""
    found: dict[int, str] = {}
    function = ast.parse(inspect.getsource(entries.dot_entry)).body[0]
    for node in ast.walk(function):
        if isinstance(node, ast.For) and "choices[i]" in ast.unparse(node):
            assert isinstance(node.iter, ast.Call)
            assert isinstance(node.iter.args[0], ast.Tuple)
            found |= {i: ast.unparse(x) for i, x in enumerate(node.iter.args[0].elts)}
        if not isinstance(node, ast.Assign):
            continue
        targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        for target, value in zip(targets, values, strict=False):
            text = ast.unparse(target)
            number = text.removeprefix("choices[").removesuffix("]")
            if number.isdigit():
                found[int(number)] = ast.unparse(value)
    return {dots.Choices._fields[number]: text for number, text in found.items()}


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn"])
def test_leading_powers_are_those_of_the_engine(name: str) -> None:
    fmt, accumulator = ROSTER[name], parse_accumulator('tensor_core("H100")')
    codes = np.arange(2**fmt.bits) if fmt.bits < 16 else np.random.default_rng(1).integers(0, 2**16, 2000)
    values = np.append(
        bits.decode(codes, fmt), [0.0, -0.0, np.inf, np.nan, float(fmt.tiny), float(fmt.smallest_subnormal)]
    )
    with np.errstate(all="ignore"):
        found = [entries.lead(value, float(fmt.tiny)) for value in values]
    np.testing.assert_array_equal(found, units.leads(values, fmt, accumulator, None))


def test_every_number_is_of_its_field() -> None:
    assert assigned() == CALLED


class Seen(Exception):
    """A loop was called."""


def filled(monkeypatch: pytest.MonkeyPatch, text: str) -> Any:
    """What the engine makes of an accumulator: the choices that its loop is called with, here one that does nothing."""

    def loop(*arguments: Any) -> None:
        (found,) = (x for x in arguments if getattr(x, "shape", ()) == (dots.CHOICES,))
        raise Seen(found.tolist())

    with monkeypatch.context() as patch:
        patch.setattr(elementwise, "FAST", False)
        patch.setattr(dots, "contraction", lambda: loop)
        with pytest.raises(Seen) as seen:
            bits.matmul(np.full((2, 33), 0x3C00), np.full((33, 2), 0x3C01), "float16", parse_accumulator(text))
    return dots.Choices(*seen.value.args[0])


@pytest.mark.parametrize("text", SUMS)
def test_what_exports_leave_is_what_the_engine_has(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert request([], ["float16"], [text], [33]).dots, "an accumulator that exports refuse"
    left = {name: int(x) for name, x in zip(dots.Choices._fields, entries.PLAIN_CHOICES, strict=True)}
    left = {name: value for name, value in left.items() if name not in CALLED}
    assert set(left) | set(CALLED) == set(dots.Choices._fields)
    how = filled(monkeypatch, text)
    assert {name: getattr(how, name) for name in left} == left


def test_presets_that_need_other_choices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No preset that exports accept asks for a choice that they lack; some that they refuse do."""
    differing = []
    for preset in PRESETS.values():
        accumulator = parse_accumulator(preset.example)
        if "float16" not in [x.name for x in accumulator.inputs]:
            continue
        try:
            how = filled(monkeypatch, preset.example)
        except pytest.fail.Exception:  # summed by other loops
            continue
        names = [
            x for i, x in enumerate(dots.Choices._fields) if x not in CALLED and how[i] != entries.PLAIN_CHOICES[i]
        ]
        if names:
            differing.append(preset.example)
            with pytest.raises(ValueError, match="which no library has"):
                request([], ["float16"], [preset.example], [33])
    assert differing
