"""The rows of the presets: whole, true to the functions, and each combination of parameters a sum with an oracle."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from commands import Run

from softfloat import accumulators
from softfloat.accumulators import PRESETS, STANDINGS, Accumulator
from softfloat.accumulators.roster import PRESET_ROWS


def combinations(name: str) -> Iterator[dict[str, Any]]:
    """Keywords of calls; parameters of any format or number are left out."""
    parameters = {x: values for x, values in PRESETS[name].parameters.items() if values}
    for chosen in itertools.product(*parameters.values()):
        yield dict(zip(parameters, chosen, strict=True))


def test_the_surest_rules_come_first() -> None:
    """Where they are listed, and where a unit is identified: what was measured is not behind what is assumed."""
    standings = [[*STANDINGS].index(row.standing) for row in PRESETS.values()]
    assert standings == sorted(standings)
    assert [*STANDINGS].index("measured") < [*STANDINGS].index("assumption")


def test_rows_are_functions_and_functions_rows() -> None:
    assert set(PRESET_ROWS) == set(PRESETS) <= set(accumulators.__all__)
    for name, row in PRESET_ROWS.items():
        made = PRESETS[name]
        assert (made.example, made.meaning, made.source, made.standing) == row[2:]
        assert row.standing in STANDINGS
        signature = inspect.signature(made.make).parameters
        assert set(row.parameters) <= set(signature)
        left_out = {x for x, parameter in signature.items() if parameter.default is inspect.Parameter.empty}
        assert left_out <= set(row.parameters), name


@pytest.mark.parametrize("name", [name for name, row in PRESETS.items() if all(row.parameters.values())])
def test_every_combination_is_a_sum_or_refused(name: str) -> None:
    """And where it is a sum, its name says it again."""
    made, refusals = [], []
    for keywords in combinations(name):
        try:
            how = PRESETS[name].make(**keywords)
        except ValueError as error:
            refusals.append((str(error), keywords))
            continue
        assert isinstance(how, Accumulator)
        assert eval(how.name, vars(accumulators)) == how
        made.append(how)
    assert made
    assert all(any(x in error for x in keywords) for error, keywords in refusals), refusals
    for parameter, values in PRESETS[name].parameters.items():
        assert {x[parameter] for x in combinations(name)} == set(values), parameter


def test_the_command_tells_standings_and_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    words = " ".join(Run("accumulators", "amd_mfma").out.split())
    assert f"model: {STANDINGS['model']}" in words
    assert "arch: CDNA1, CDNA2, CDNA3" in words
    document = Run("accumulators", "fma", "--json").document["presets"][0]
    assert (document["standing"], document["parameters"]) == ("definition", {"fmt": []})
