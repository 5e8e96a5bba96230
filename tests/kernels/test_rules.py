"""Tables of numbers for every rule, read row by row, are the numbers that each rule has by itself."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from softfloat.kernels import rules, spec, targets
from softfloat.kernels.rules import KNOBS
from softfloat.kernels.spec import CARRIER64, Rule
from softfloat.kernels.targets import Source, Target

from softfloat import ROSTER, Environment
from softfloat.engine.native import POLICIES, rule_bits

NAMES = tuple(name for name in KNOBS if name not in ("quiet_integers", "random_width"))
EVERY = list(itertools.product(*(range(KNOBS[name].values) for name in NAMES)))


def made(fmt: spec.FormatSpec, conversion: bool, knobs: dict[str, int]) -> Target:
    rule = Rule(
        rounding=spec.Rounding(knobs.get("rounding", 0)),
        overflow=spec.Overflow(knobs.get("overflow", 0)),
        tininess=spec.Tininess(knobs.get("tininess", 0)),
        infinite_input=spec.InfiniteInput(knobs.get("infinite_input", 0)),
        daz=bool(knobs.get("daz", 0)),
        ftz=bool(knobs.get("ftz", 0)),
        nan=POLICIES[knobs.get("nan", 0)],
        conversion=conversion,
        random_width=knobs.get("random_width", 0) or 52,
        handed_bits=True,
    )
    return targets.target(fmt, rule, CARRIER64)


def read(numbers: Any, tables: dict[type, list[Any]], knobs: dict[str, int]) -> dict[str, Any]:
    """The fields of a Source or Target under some knobs: of each group the row that they number, the last knob fastest."""
    found: dict[str, Any] = {}
    for kind, table in tables.items():
        for group in rules.groups(numbers, kind):
            row = 0
            for name in group.knobs:
                row = row * KNOBS[name].values + knobs[name]
            start = group.base + row * len(group.fields)
            found |= dict(zip(group.fields, table[start : start + len(group.fields)], strict=True))
    return found


def check(name: str, conversion: bool, chosen: list[tuple[int, ...]]) -> None:
    fmt = ROSTER[name].spec
    tables = {kind: rules.table(Target, kind, lambda knobs: made(fmt, conversion, knobs)) for kind in (int, float)}
    sources = {
        kind: rules.table(Source, kind, lambda knobs: targets.source(fmt, CARRIER64, bool(knobs.get("daz", 0))))
        for kind in (int, float)
    }
    for number, values in enumerate(chosen):
        knobs = dict(zip(NAMES, values, strict=True)) | {"random_width": number % 53, "quiet_integers": 0}
        assert read(Target, tables, knobs) == made(fmt, conversion, knobs)._asdict(), knobs
        source = read(Source, sources, knobs)
        wanted = targets.source(fmt, CARRIER64, bool(knobs["daz"]))._asdict()
        assert math.isnan(source.pop("not_a_number"))
        assert math.isnan(wanted.pop("not_a_number"))
        assert source == wanted


@pytest.mark.parametrize("conversion", [False, True])
@pytest.mark.parametrize("name", ROSTER)
def test_tables_hold_every_rule(name: str, conversion: bool) -> None:
    draw = np.random.default_rng(len(name))
    check(name, conversion, [EVERY[i] for i in draw.integers(0, len(EVERY), 120)])


@pytest.mark.exhaustive
@pytest.mark.parametrize("conversion", [False, True])
@pytest.mark.parametrize("name", ROSTER)
def test_tables_hold_every_rule_there_is(name: str, conversion: bool) -> None:
    check(name, conversion, EVERY)


def test_every_number_is_in_a_table_once() -> None:
    for numbers in (Source, Target):
        fields = [name for kind in (int, float) for group in rules.groups(numbers, kind) for name in group.fields]
        assert sorted(fields) == sorted(numbers._fields)
    assert set(rules.DEPENDS) <= set(Source._fields) | set(Target._fields)


def test_knobs_do_not_overlap() -> None:
    masks = [((1 << (count - 1).bit_length()) - 1) << shift for shift, count in KNOBS.values()]
    assert sum(masks) == rules.ALL_BITS
    assert all(not a & b for a, b in itertools.combinations(masks, 2))


def test_environments_become_rules() -> None:
    assert rule_bits(Environment().settings) == 0
    whole = Environment(
        rounding="stochastic", overflow="nan", tininess="before", infinite_input="nan", daz=True, ftz=True, nan="nvidia",
        sr_bits=52, seed=1,
    )  # fmt: skip
    wanted = 6 | 2 << 4 | 1 << 6 | 3 << 7 | 1 << 9 | 1 << 10 | 6 << 11 | 52 << 16
    assert rule_bits(whole.settings) == wanted
    assert rule_bits(whole.settings, exact=False) == wanted | 1 << 15
