"""Which programs become descriptions of sums; that a field nobody knows never does; drawn formats, rules and shapes against the plain loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from softfloat.kernels.spec import Rule

from softfloat import bits, float16
from softfloat.accumulators import Accumulator, chunked, compensated, fma, mul_add, pairwise
from softfloat.engine import available, described, elementwise, segments, trees, unit_ways, ways
from softfloat.engine.parameters import dots
from softfloat.engine.programs import Program, program
from softfloat.environments import Rounding, Settings
from softfloat.formats import ROSTER, Format

SERVED = pytest.mark.skipif(not all(available()), reason="no loop is generated for this CPU, or nothing is compiled")
OTHER: Any = object()
"""What no field is by default."""


def planned(rounding: Rounding = Rounding.NEAREST_EVEN) -> Program:
    """A sum of 100 halves in pairs."""
    return program(pairwise("float16"), float16, float16, float16, Settings(rounding=rounding, seed=0), 100)


def with_rule(name: str) -> Program:
    """The same, with a field of its stages' rule as it is by no default."""
    found = planned()
    sites = {key: site._replace(rule=site.rule._replace(**{name: OTHER})) for key, site in found.sites.items()}
    return dataclasses.replace(found, sites=sites)


def with_accumulator(name: str) -> Program:
    """The same, with such a field of its accumulator."""
    found = planned()
    how = object.__new__(type(found.accumulator))
    for field in dataclasses.fields(Accumulator):
        object.__setattr__(how, field.name, OTHER if field.name == name else getattr(found.accumulator, field.name))
    return dataclasses.replace(found, accumulator=how)


UNKNOWN = [
    *(("program", field.name) for field in dataclasses.fields(Program) if field.name not in ways.OF_PROGRAMS),
    *(("accumulator", f.name) for f in dataclasses.fields(Accumulator) if f.name not in ways.OF_ACCUMULATORS),
    *(("rule", name) for name in Rule._fields if name not in ways.OF_RULES),
]


@SERVED
@pytest.mark.parametrize(("of", "name"), UNKNOWN)
def test_a_field_that_no_piece_knows_means_the_plain_way(of: str, name: str) -> None:
    make = {"accumulator": with_accumulator, "rule": with_rule}.get(of)
    found = make(name) if make else dataclasses.replace(planned(), **{name: OTHER})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Program, "kind", dots().ROUNDED)  # a property that asks fields, too
        assert ways.choose(planned()) is not None
        assert ways.choose(found) is None


@SERVED
def test_a_field_of_tomorrow_means_the_plain_way() -> None:
    """An accumulator that has one more field, which is not as it is by default."""

    @dataclasses.dataclass(frozen=True)
    class Later(Accumulator):
        novelty: int = 0

    fields = {field.name: getattr(pairwise("float16"), field.name) for field in dataclasses.fields(Accumulator)}
    for novelty, known in ((0, True), (1, False)):
        found = dataclasses.replace(planned(), accumulator=Later(**fields, novelty=novelty))
        assert (ways.choose(found) is not None) is known


@SERVED
@pytest.mark.parametrize("rounding", [Rounding.NEAREST_EVEN, Rounding.STOCHASTIC])
def test_an_order_is_what_the_accumulator_says(rounding: Rounding) -> None:
    known = ways.choose(planned(rounding))
    assert known is not None
    assert known.operation == "pairwise"
    in_order = dataclasses.replace(pairwise("float16"), tree=False)
    found = program(in_order, float16, float16, float16, Settings(rounding=rounding, seed=0), 100)
    other = ways.choose(found)
    assert other is not None
    assert other.operation == "mul_add"


# -- bits ------------------------------------------------------------------------------------------------------------


@st.composite
def drawn_formats(draw: st.DrawFn) -> Format:
    """Of any bias, with or without subnormals and infinities, of each NaN policy; or one of the roster."""
    if draw(st.booleans()):
        return ROSTER[draw(st.sampled_from(["float16", "bfloat16", "float32", "float8_e5m2", "float8_e4m3fn"]))]
    exponent_bits = draw(st.integers(2, 8))
    nan = draw(st.sampled_from(["ieee", "fn", "fnuz", "none"]))
    return Format(
        "drawn",
        exponent_bits=exponent_bits,
        mantissa_bits=draw(st.integers(2, 11)),
        bias=(1 << (exponent_bits - 1)) - 1 + draw(st.integers(-6, 6) if exponent_bits < 8 else st.just(0)),
        nan=nan,
        infinities=True if nan == "ieee" else draw(st.booleans()) if nan == "none" else False,
        subnormals=draw(st.integers(0, 5)) > 0,
    )


@st.composite
def drawn_options(draw: st.DrawFn, roundings: tuple[str, ...]) -> dict[str, Any]:
    """Every field of a rule that a piece knows."""
    found: dict[str, Any] = {
        "rounding": draw(st.sampled_from(roundings)),
        "overflow": draw(st.sampled_from(["infinity", "saturate"])),
        "tininess": draw(st.sampled_from(["after", "before"])),
        "daz": draw(st.integers(0, 3)) == 0,
        "ftz": draw(st.integers(0, 3)) == 0,
    }
    if found["rounding"] == "stochastic":
        found |= {"seed": draw(st.integers(0, 9)), "sr_bits": draw(st.sampled_from([3, 16, 24, 52]))}
    if found["rounding"] == "up_or_down":
        found |= {"seed": draw(st.integers(0, 9))}
    return found


def codes(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...], scale: float) -> np.ndarray[Any, Any]:
    """Numbers about as large as `scale`, a part of them small integers times it, whose sums tie and cancel."""
    x = np.where(rng.random(shape) < 0.5, rng.standard_normal(shape), rng.integers(-3, 4, shape))
    found: np.ndarray[Any, Any] = bits.encode(x * scale, fmt, overflow="saturate")[0]
    return found


EVERY = tuple(x.name.lower() for x in Rounding)
IN_ORDER: dict[str, Callable[[Format], Accumulator]] = {
    "fma": fma,
    "mul_add": mul_add,
    "three chains": lambda fmt: fma(fmt).replace(chains=3),
    "chunks of 20": lambda fmt: chunked(20, mul_add(fmt), "float32"),
    **{method: partial(compensated, method=method) for method in ("kahan", "neumaier", "two_term")},
}
"""Sums in order."""


@st.composite
def drawn_accumulators(draw: st.DrawFn, fmt: Format) -> tuple[Accumulator, dict[str, Any]]:
    """Sums in pairs or in order, with any rule, one of three that draws."""
    options = draw(drawn_options(("stochastic",) if draw(st.integers(0, 2)) == 0 else EVERY))
    if draw(st.integers(0, 3)) == 0:
        return pairwise(fmt), options
    return IN_ORDER[draw(st.sampled_from(sorted(IN_ORDER)))](fmt), options


@SERVED
@settings(max_examples=settings.default.max_examples * 2 // 5)
@given(drawn_formats(), drawn_formats(), st.integers(-9, 6), st.integers(1, 100), st.booleans(), st.data())
def test_drawn_sums_are_those_of_the_plain_loop(
    fmt: Format, source: Format, exponent: int, length: int, counting: bool, data: st.DataObject
) -> None:
    """Grids and lines, with c and without, counted and not: codes, flags, counts and extremes."""
    how, options = data.draw(drawn_accumulators(fmt))
    rng, scale = np.random.default_rng(length), 2.0**exponent
    rows, columns = data.draw(st.integers(1, 19)), data.draw(st.integers(1, 39))
    a, b = codes(rng, source, (rows, length), scale), codes(rng, source, (length, columns), scale)
    c = codes(rng, fmt, (rows, columns), scale) if data.draw(st.booleans()) else None
    lines = np.ascontiguousarray(np.broadcast_to(b[:, 0], a.shape)), None if c is None else c[:, 0]
    found = []
    for fast in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(elementwise, "FAST", fast)
            for module, name in ((described, "LEAST_WORK"), (unit_ways, "LEAST_LINE"), (segments, "WORTH_CALLS")):
                patch.setattr(module, name, 0)
            made = [bits.matmul(a, b, source, how, c, count=counting, **options)]
            made.append(bits.vecdot(a, lines[0], source, how, lines[1], count=counting, **options))
            if not counting:
                made.append(
                    bits.cumsum(codes(np.random.default_rng(1), fmt, (3, length), scale), fmt, how, 1, **options)
                )
        found.append([y for x in made for y in (*x[:2], *(v for z in x[2:] for v in vars(z).values()))])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@SERVED
@pytest.mark.parametrize("counting", [False, True])
@pytest.mark.parametrize(("length", "count"), [(1 << 15, 1), ((1 << 15) + 777, 1), (9000, 5)])
def test_few_long_sums_are_many_short_ones(length: int, count: int, counting: bool) -> None:
    """Subtrees side by side, what is left after them, and the sum of these; with c."""
    rng, fmt, found = np.random.default_rng(count), ROSTER["float16"], []
    a, b, c = (codes(rng, fmt, shape, 0.5) for shape in ((count, length), (count, length), (count,)))
    for fast in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(elementwise, "FAST", fast)
            patch.setattr(described, "LEAST_WORK", 0)
            patch.setattr(trees, "run", None)
            made = [
                bits.vecdot(a, b, fmt, pairwise(fmt), c, count=counting),
                bits.sum(a, fmt, pairwise(fmt), 1, count=counting),
            ]
        found.append([y for x in made for y in (*x[:2], *(v for z in x[2:] for v in vars(z).values()))])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
