"""Numbers of papers: all come out, one that is changed does not, and each step is told."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from commands import Run

from softfloat.accumulators import exact, tensor_core
from softfloat.experiments import numerics
from softfloat.experiments.claims import Claims
from softfloat.experiments.published import Verdict
from softfloat.formats import float8_e4m3fn, float32


@pytest.fixture(scope="module")
def quick() -> Claims:
    return numerics.reproduce(quick=True)


def test_all_numbers_are_as_published(quick: Claims) -> None:
    assert [claim for claim in quick.claims if claim.verdict is not Verdict.REPRODUCED] == []
    assert quick.passed
    assert len(quick.claims) == quick.counts["reproduced"] > 50
    assert len({claim.id for claim in quick.claims}) == len(quick.claims)
    assert len({claim.source for claim in quick.claims}) == 7
    digits = [claim for claim in quick.claims if re.fullmatch(r"[\d.]+(e-\d+)?", claim.published)]
    assert len(digits) > 40
    assert all(claim.emulated == claim.published for claim in digits)


def test_tables_are_whole() -> None:
    columns = (numerics.EULER, numerics.NARROW_ERRORS, numerics.CORE_ERRORS)
    counts = [sum(len(column.split()) for column in table.values()) for table in columns]
    assert [2 * len(numerics.SUMS), 2 * len(numerics.PRODUCTS), *counts] == [8, 10, 64, 80, 96]  # 258 in all


@pytest.mark.parametrize("stage", numerics.STAGES, ids=lambda stage: stage.claims.__name__)
@pytest.mark.exhaustive
def test_all_sizes_are_as_published(stage: numerics.Stage) -> None:
    found = list(stage.claims(1, False))
    assert found
    assert [claim for claim in found if claim.verdict is not Verdict.REPRODUCED] == []


def test_a_number_that_is_not_as_published_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numerics, "STAGES", numerics.STAGES[:1])
    monkeypatch.setitem(numerics.SUMS, 1000, ("1.643555", "1.643555"))
    told: list[Any] = []
    found = numerics.reproduce(0, lambda name, share: told.append((name, share)), lambda claim: told.append(claim.id))
    assert not found.passed
    assert [claim.id for claim in found.claims if claim.verdict is Verdict.FAILED] == ["s4"]
    assert told == [("sums of 1/k²", 0.0), *(f"s{k}" for k in range(1, 9))]
    run = Run("reproduce", "numerics")
    assert run.status == 1
    assert run.out.splitlines()[-1] == "7 reproduced, 0 typos, 0 not numeric, 1 FAILED"


def test_the_command_has_one_document_and_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numerics, "STAGES", numerics.STAGES[:1])
    run = Run("reproduce", "numerics", "--json", "--quick", "--seed", "3")
    assert (run.status, run.document["passed"], run.document["seed"]) == (0, True, 3)
    assert [claim["verdict"] for claim in run.document["claims"]] == ["reproduced"] * 8
    Run("reproduce", "numerics", "--plot", "sums.png").assert_error("--plot", "numerics")
    Run("reproduce", "numbers").assert_error("numbers", "tutorials", "numerics")


def test_what_notebooks_take() -> None:
    a = numerics.randsvd(12, 1e3, 0)
    assert np.linalg.cond(a) == pytest.approx(1e3, rel=1e-6)
    random = np.random.default_rng(0)
    x, y = random.random((3, 40)), random.random((40, 2))
    for how in (exact(float32), tensor_core("B200", input=float8_e4m3fn, output=float32)):
        np.testing.assert_allclose(numerics.ozaki(x, y, 14, how), x @ y, rtol=1e-15)
    assert numerics.heat(4) < numerics.heat(8)
