"""The table of operations: every elementwise function has its row, its names exist and mean the same, and others follow it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import softfloat
from softfloat import bits, reference
from softfloat.arrays import ufuncs
from softfloat.bits import processors
from softfloat.bits.blocks import codes as block_codes
from softfloat.bits.blocks import quantization
from softfloat.bits.blocks import sums as scaled_sums
from softfloat.bits.operations import ELEMENTWISE, Operation
from softfloat.bits.sums import convolutions
from softfloat.bits.sums import products as sums
from softfloat.bits.sums import splits as split_sums
from softfloat.display import measures
from softfloat.testing import OPERATIONS
from softfloat.testing.vectors.block_operations import BLOCK_OPERATIONS
from softfloat.testing.verdicts import causes

SINGLE = softfloat.float32
POINTS = np.array([[0.375, 0.25], [1.5, 0.5], [-0.75, 0.5], [-2.5, 1.75], [3.0, -2.0], [0.8125, 5.0]], np.float32)
TESTFLOAT = "add sub mul mulAdd div rem sqrt roundToInt eq le lt eq_signaling le_quiet lt_quiet"
"""Berkeley TestFloat's operations, conversions apart."""
PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def rows(column: str) -> pytest.MarkDecorator:
    """Those with a name in a column."""
    return pytest.mark.parametrize(
        "row", [row for row in ELEMENTWISE.values() if getattr(row, column)], ids=lambda row: row.name
    )


def values(row: Operation) -> Any:
    """What `softfloat.bits` makes of POINTS."""
    codes = [bits.encode(x, SINGLE)[0] for x in POINTS.T[: len(row.operands)]]
    found = getattr(bits, row.name)(*codes, SINGLE)
    result = found[0] if row.flags else found
    return bits.decode(result, SINGLE) if row.result == "float" else result


def assert_the_same_function(row: Operation, found: Any) -> None:
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(values(row), float), rtol=1e-6)


def test_every_elementwise_function_has_a_row() -> None:
    others = {
        "CLASSES",
        "convert",
        "decode",
        "encode",
        "random_bits",
        "scalar",
        "to_integer",
    }  # no elementwise operations
    assert set(ELEMENTWISE) == set(bits.__all__) - others - {
        *sums.__all__,
        *convolutions.__all__,
        *block_codes.__all__,
        *quantization.__all__,
        *scaled_sums.__all__,
        *split_sums.__all__,
        *processors.__all__,
    }


@pytest.mark.parametrize("row", ELEMENTWISE.values(), ids=lambda row: row.name)
def test_rows_say_how_functions_are_called(row: Operation) -> None:
    parameters = inspect.signature(getattr(bits, row.name)).parameters
    assert list(parameters)[len(row.operands)] == "fmt"
    assert ("environment" in parameters) == row.flags
    assert row.flags or not row.rounds
    assert row.result in ("float", "bool", "class")


def test_no_name_stands_in_two_rows() -> None:
    for column in ("mpmath", "torch", "testfloat"):
        names = [name for row in ELEMENTWISE.values() if (name := getattr(row, column))]
        assert len(names) == len(set(names))
    names = [name for row in ELEMENTWISE.values() for name in row.numpy]
    assert len({getattr(np, name) for name in names}) == len(names)


def test_what_rounds_or_compares_has_an_oracle() -> None:
    neighbours = {"next_up", "next_down"}
    assert {row.name for row in ELEMENTWISE.values() if row.flags} - neighbours <= set(reference.__all__)


@rows("numpy")
def test_numpy(row: Operation) -> None:
    for name in row.numpy:
        ufunc = getattr(np, name)
        assert isinstance(ufunc, np.ufunc)
        operands = POINTS.T[: len(row.operands)]
        with np.errstate(all="ignore"):
            assert_the_same_function(row, ufunc(*operands.astype(float)))
        assert ufuncs.ENTRIES[ufunc].results == (row.result == "float",)
        with softfloat.environment():
            given = ufunc(*(softfloat.array(x, SINGLE) for x in operands))
        np.testing.assert_array_equal(np.asarray(given, float), np.asarray(values(row), float))


@rows("mpmath")
def test_mpmath(row: Operation) -> None:
    exact = getattr(mpmath, row.mpmath)
    found = [exact(mpmath.mpf(x)) for x in POINTS[:, 0].tolist()]
    real = [float(x) if isinstance(x, mpmath.mpf) else np.nan for x in found]
    assert_the_same_function(row, real)


def test_every_rounded_function_of_one_operand_has_exact_values_for_figures() -> None:
    found = {row.name for row in ELEMENTWISE.values() if row.rounds and len(row.operands) == 1}
    assert found - {"round_to_integral"} == set(measures._references()) & set(bits.__all__)


@rows("torch")
def test_torch(row: Operation) -> None:
    torch = pytest.importorskip("torch")
    from softfloat.torch.operators.pointwise import STEPS

    function = getattr(torch.ops.aten, row.torch)
    assert STEPS[row.torch][0] == len(row.operands)
    assert_the_same_function(row, function(*(torch.tensor(x) for x in POINTS.T[: len(row.operands)])).numpy())


def test_testfloat() -> None:
    assert {row.testfloat for row in OPERATIONS.values()} == {"", *TESTFLOAT.split()}
    assert {row.testfloat for row in ELEMENTWISE.values()} <= {"", *TESTFLOAT.split()}


def test_vectors_have_every_row() -> None:
    for row in ELEMENTWISE.values():
        made = OPERATIONS[row.name]
        assert made[:3] == (row.name, row.operands, row.result)
        assert (made.rounds, made.testfloat) == (row.rounds, row.testfloat)
    others = 5  # three comparisons that signal otherwise, convert, vecdot
    assert len(OPERATIONS) == len(ELEMENTWISE) + others + len(BLOCK_OPERATIONS)


def test_hosts_compute_what_rounds_once() -> None:
    found = {row.name for row in ELEMENTWISE.values() if row.rounds and causes._numpy(row.name)}
    several = {"remainder", "round_to_integral", "fmod", "modulo", "floor_divide"}
    assert found == {row.name for row in ELEMENTWISE.values() if row.rounds} - several


def test_the_page_of_functions_lists_every_row() -> None:
    if not PAGE.exists():
        pytest.skip("not in a checkout")
    table = [line for line in PAGE.read_text(encoding="utf-8").split("\n") if line.startswith("| ")]
    listed = [re.findall(r"[a-z]\w*", " ".join(re.findall(r"`([^`]*)`", line))) for line in table]
    functions = next(names for names in listed if names and names[0] == "exp")
    arithmetic = next(names for names in listed if names[:2] == ["add", "sub"])
    assert {*arithmetic, *functions} == {row.name for row in ELEMENTWISE.values() if row.rounds}
    assert set(ELEMENTWISE) <= {name for names in listed for name in names}
