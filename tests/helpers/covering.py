"""Sums that tests try each in their own layout: all of them with --exhaustive, else as few as show each property in each layout."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from softfloat import Format
from softfloat.accumulators import Accumulator

Case = tuple[Accumulator, Format | str, dict[str, Any]]
"""What sums, the format of its operands, and options."""
PLACES = 8
"""Among how many of them cases that show pairs of properties are dealt out: there are more tests of the same cases."""


def covering(
    cases: Sequence[Mapping[str, Hashable]], place: int | None = None, others: Sequence[Mapping[str, Hashable]] = ()
) -> set[int]:
    """The numbers of cases that show each value of each axis, and of more that show all pairs of two axes' values; or of these more every
    eighth, from the `place`-th on. Tests of the same cases share the first, whose loops are compiled once. What `others` show, none need show."""
    properties, pairs = _chosen(*(tuple(tuple(sorted(x.items(), key=repr)) for x in some) for some in (cases, others)))
    return {*properties, *(pairs if place is None else pairs[place % PLACES :: PLACES])}


Properties = tuple[tuple[str, Hashable], ...]


@cache
def _chosen(cases: tuple[Properties, ...], others: tuple[Properties, ...]) -> tuple[list[int], list[int]]:
    """The numbers of cases that show each property, and of those that show the pairs of properties that these do not."""
    found: list[int] = []
    ends = []
    for size in (1, 2):
        showing = [set(itertools.combinations(case, size)) for case in cases]
        shown = (set(itertools.combinations(case, size)) for case in others)
        left = set[Any]().union(*showing).difference(*shown, *(showing[n] for n in found))
        while left:
            found.append(max(range(len(cases)), key=lambda n: (len(showing[n] & left), -n)))
            left -= showing[found[-1]]
        ends.append(len(found))
    return found[: ends[0]], found[ends[0] :]


def axes(case: Case) -> dict[str, Hashable]:
    """What a loop of such a sum is made from: who sums, in which kind of format, operands of the same or of another, and how it rounds."""
    how, fmt, options = case
    sums = str(how.partials.name)
    defaults = {"rounding": "nearest_even", "overflow": "infinity", "tininess": "after"}
    return {
        "order": (how.name.partition("(")[0], how.compensation, how.name.partition("mode=")[2], how.chains > 1),
        "sums": sums if how.partials.p >= 24 or sums in ("float16", "bfloat16") else "narrow",
        "same": getattr(fmt, "name", fmt) == sums,
        "random bits": options.get("sr_bits", 0) // 8,
        "environment": "environment" in options,
        "flushes": (options.get("daz", False), options.get("ftz", False)),
        **{name: options.get(name, default) for name, default in defaults.items()},
    }


def label(case: Case) -> str:
    accumulator, fmt, options = case
    shown = [name if name == "environment" else str(value) for name, value in options.items()]
    return "-".join([repr(accumulator), str(getattr(fmt, "name", fmt)), *shown])


def resolved(case: Case) -> tuple[Accumulator, Format, dict[str, Any], np.random.Generator]:
    """With what draws its operands."""
    accumulator, fmt, options = case
    fmt = fmt if isinstance(fmt, Format) else Format.from_name(fmt)
    return accumulator, fmt, options, np.random.default_rng([*label(case).encode()])


def over(cases: Sequence[Case], place: int) -> Any:
    """Parametrizes a test by `case`."""
    kept = covering([axes(case) for case in cases], place)
    marks = [() if n in kept else pytest.mark.exhaustive for n in range(len(cases))]
    parameters = [pytest.param(case, id=label(case), marks=mark) for case, mark in zip(cases, marks, strict=True)]
    return pytest.mark.parametrize("case", parameters)
