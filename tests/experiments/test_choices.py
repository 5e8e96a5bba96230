"""Experiments in any environment and by any accumulator."""

from __future__ import annotations

import dataclasses
import inspect
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from softfloat import Environment, bits, experiments
from softfloat.accumulators import amp, chunked, fma
from softfloat.experiments import exact, figures
from softfloat.formats import ROSTER

HALF, E5M2 = ROSTER["float16"], ROSTER["float8_e5m2"]
FEW = Environment(rounding="stochastic", sr_bits=4, seed=3)


@pytest.mark.parametrize("options", [{"rounding": "toward_zero"}, {"rounding": "stochastic", "seed": 3}])
def test_an_environment_says_what_arguments_say(options: dict[str, Any]) -> None:
    plain = experiments.running_sum("float16", count=300, increment=0.01, runs=3, **options)
    same = experiments.running_sum("float16", count=300, increment=0.01, runs=3, environment=Environment(**options))
    np.testing.assert_array_equal(plain.codes, same.codes)
    assert (plain.label, plain.seed, plain.stalled_after) == (same.label, same.seed, same.stalled_after)
    assert plain.lengths.tolist() == list(range(301))


def test_a_seed_is_the_environments_own_or_the_arguments() -> None:
    drawn = Environment(rounding="stochastic")
    sums = [
        experiments.running_sum("float16", count=300, increment=0.01, runs=4, seed=seed, environment=environment)
        for environment, seed in ((drawn, 3), (drawn.replace(seed=3), 0), (drawn, 0))
    ]
    assert [one.seed for one in sums] == [3, 3, 0]
    np.testing.assert_array_equal(sums[0].codes, sums[1].codes)
    assert (sums[0].codes != sums[2].codes).any()


def test_chunks_of_narrow_sums_as_fractions_have_them() -> None:
    """Chunks of 8 in e5m2, sums of chunks in half: each rounded by arithmetic on fractions."""
    how = chunked(8, "float8_e5m2", "float16")
    found = experiments.running_sum("float8_e5m2", increment=0.3, count=100, accumulator=how)
    step = exact.rounded(Fraction("0.3"), E5M2)
    total, chunk, expected = Fraction(0), Fraction(0), [Fraction(0)]
    for n in range(1, 101):
        chunk = exact.rounded(chunk + step, E5M2)
        expected.append(exact.rounded(total + chunk, HALF))
        if n % 8 == 0:
            total, chunk = expected[-1], Fraction(0)
    assert found.lengths.tolist() == list(range(101))
    assert [Fraction(x) for x in found.trajectory[:, 0].tolist()] == expected
    assert (found.format, found.numbers, found.accumulator) == ("float16", "float8_e5m2", repr(how))
    assert found.exact == 100 * step
    assert (
        found.stalled_after is None
    )  # though its last additions may have changed nothing: those of the next chunk will
    one = experiments.running_sum("float8_e5m2", increment=0.3, count=100, accumulator=fma(E5M2))
    assert one.stalled_after == experiments.running_sum("float8_e5m2", increment=0.3, count=100).stalled_after


def test_sums_of_other_accumulators_are_taken_at_some_lengths() -> None:
    how = amp("half")
    found = experiments.running_sum("float16", increment=0.01, count=1000, accumulator=how)
    assert found.lengths.size == 201
    assert found.lengths[[0, -1]].tolist() == [0, 1000]
    terms = np.full(1000, bits.encode(0.01, HALF)[0])
    wanted = [0, *(int(bits.sum(terms[:n], HALF, how)[0]) for n in found.lengths[1:].tolist())]
    assert found.codes[:, 0].tolist() == wanted
    assert found.stalled_after is None
    last = experiments.running_sum("float16", increment=0.01, count=1000, accumulator=how, keep=False)
    assert last.final_codes.tolist() == found.final_codes.tolist()


def test_the_accumulator_is_the_arguments_or_the_environments() -> None:
    chunks = chunked(8, "float8_e5m2", "float16")
    options: dict[str, Any] = {"increment": 0.3, "count": 50, "runs": 3}
    one = experiments.running_sum(E5M2, environment=FEW.replace(accumulator=chunks), **options)
    other = experiments.running_sum(E5M2, environment=FEW, accumulator=chunks, **options)
    third = experiments.running_sum(
        E5M2, environment=FEW.replace(accumulator=fma(HALF)), accumulator=lambda _: chunks, **options
    )
    for found in (other, third):
        np.testing.assert_array_equal(one.codes, found.codes)
    assert one.label == "stochastic, 4 random bits, chunked(8, fma('float8_e5m2'), 'float16')"
    assert len({tuple(run) for run in one.codes.T.tolist()}) == 3
    words = experiments.running_sum(E5M2, count=4, environment=Environment(overflow="saturate", ftz=True)).label
    assert words == "nearest even, overflow to saturate, ftz"


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(TypeError, match="environment comes with rounding; accepted: one or the other"):
        experiments.running_sum(rounding="toward_zero", environment=FEW)
    with pytest.raises(TypeError, match=r"environment must be a softfloat\.Environment, got dict"):
        experiments.running_sum(environment={"rounding": "toward_zero"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"accumulator must be a softfloat\.Accumulator, .* got 'fma'"):
        experiments.running_sum(accumulator="fma")  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"theory is for stochastic rounding by all that is dropped, .*'stochastic, 4 random bits'"
    ):
        experiments.spread(experiments.running_sum(environment=FEW, runs=2, count=10))
    with pytest.raises(TypeError, match="environment comes with overflow"):
        experiments.train("float16", steps=1, overflow="saturate", environment=Environment())
    with pytest.raises(ValueError, match=r"fmt must have all multiples of 2\^-p up to 1, .* got float4_e2m1fn"):
        experiments.dot_swamping([4], fmt="float4_e2m1fn")
    with pytest.raises(ValueError, match=r"fmt must have all multiples of 2\^-p up to 1, .* got float32"):
        experiments.chunking(4, fmt="float32")


def test_the_other_experiments_take_them_too() -> None:
    (few,) = experiments.sums_across(
        [E5M2], ["stochastic"], runs=2, count=40, increment=0.3, environment=FEW.replace(seed=None)
    )
    assert (few.label, few.runs) == ("stochastic, 4 random bits", 2)
    cut = Environment(rounding="toward_zero")
    nearest, zero = (experiments.chunking(64, [64], dots=2, environment=environment)[0] for environment in (None, cut))
    assert (nearest.settings, zero.settings) == ("nearest even", "toward zero")
    assert zero.error > nearest.error
    rows = experiments.dot_swamping([16], dots=2, accumulators=[fma(HALF)], environment=cut)
    assert [(row.accumulator, row.format, row.settings) for row in rows] == [
        (repr(fma(HALF)), "float16", "toward zero")
    ]
    narrow = experiments.variance([296, 298], environment=Environment(overflow="saturate"))
    assert np.isfinite(narrow.one_pass)
    assert not np.isfinite(experiments.variance([296, 298]).one_pass)
    sums = experiments.stochastic_sums([64], runs=2, formats=[HALF], environment=Environment(sr_bits=2))
    assert [row.rounding for row in sums] == ["nearest_even", "stochastic"]
    assert sums[1].error != experiments.stochastic_sums([64], runs=2, formats=[HALF])[1].error
    runs = [experiments.train(E5M2, 2.0**10, steps=2, environment=environment).losses for environment in (None, FEW)]
    assert not np.array_equal(*runs)


SETTINGS = Environment(rounding="toward_zero", ftz=True)
SUMS: dict[str, dict[str, Any]] = {
    "accumulation_widths": {"length": 512, "products": 4, "shift": 2.0},
    "chunking": {"length": 64, "chunks": [8], "dots": 2},
    "dot_swamping": {"lengths": [64], "dots": 2},
    "running_sum": {"increment": 0.3, "count": 40},
    "stochastic_sums": {"lengths": [64], "runs": 4, "formats": [HALF]},
    "sums_across": {"formats": [HALF], "roundings": ["toward_negative"], "increment": 0.3, "count": 40},
    "variance": {"numbers": [k / 1024 for k in range(1, 1025, 25)]},
}
"""Experiments that sum, and arguments with which they are small."""
OTHERS: dict[str, dict[str, Any]] = {
    "conversion_cases": {"rules": ["infinity"]},
    "exception_cases": {},
    "loss_scaling": {"fmt": E5M2},
    "overflow_cases": {},
    "rounding_chances": {"sr_bits": 2, "fractions": [0.9]},
    "scale_rule_losses": {"places": 2, "blocks": 4},
    "train": {"fmt": HALF, "steps": 1},
    "train_scaled": {"fmt": HALF, "scales": [1.0], "steps": 1},
    "underflow_cases": {},
    "underflow_threshold": {},
}
"""Experiments that sum nothing in a format."""


def content(found: Any) -> Any:
    """Of dataclasses and sequences of them, all that they hold, so that it can be compared."""
    if dataclasses.is_dataclass(found):
        found = dataclasses.astuple(found)
    if isinstance(found, tuple | list):
        return [content(one) for one in found]
    return repr(found.tolist() if isinstance(found, np.ndarray) else found)


def functions() -> dict[str, Any]:
    named = {name: getattr(experiments, name) for name in experiments.__all__}
    return {name: one for name, one in named.items() if inspect.isfunction(inspect.unwrap(one))}


def takes(function: Any, *names: str) -> bool:
    parameters = inspect.signature(function).parameters
    return any(name in parameters for name in names)


def test_what_an_experiment_does_not_take_its_documentation_says() -> None:
    for name, function in functions().items():
        words = function.__doc__
        assert name in SUMS | OTHERS if takes(function, "environment") else "environment" in words, name
        assert name in SUMS if takes(function, "accumulator", "accumulators") else "accumulator" in words, name


@pytest.mark.parametrize("name", [*SUMS, *OTHERS])
def test_every_experiment_takes_an_environment(name: str) -> None:
    function, options = getattr(experiments, name), (SUMS | OTHERS)[name]
    settings = SETTINGS.replace(rounding="stochastic", sr_method="half") if name == "rounding_chances" else SETTINGS
    if name in ("sums_across", "stochastic_sums"):  # whose rounding modes are arguments
        settings = settings.replace(accumulator=fma("float32"))
    plain, other = function(**options), function(**options, environment=settings)
    assert content(plain) != content(other)
    assert content(function(**options, environment=settings)) == content(other)
    with pytest.raises(TypeError, match=r"environment must be a softfloat\.Environment, got str"):
        function(**options, environment="ipu")


@pytest.mark.parametrize("name", SUMS)
def test_experiments_that_sum_take_an_accumulator(name: str) -> None:
    """By the argument, or in the environment."""
    function, options, how = getattr(experiments, name), SUMS[name], fma("float32")
    several = "accumulators" in inspect.signature(function).parameters
    chosen = {"accumulators": [how]} if several else {"accumulator": how}
    mine = content(function(**options, **chosen))
    assert mine != content(function(**options))
    assert mine == content(function(**options, environment=Environment(accumulator=how)))
    if not several:
        assert mine == content(function(**options, accumulator=lambda _: how))
        with pytest.raises(TypeError, match=r"accumulator must be a softfloat\.Accumulator"):
            function(**options, accumulator="amp")


def test_bounds_are_of_the_sums_that_they_were_proved_for() -> None:
    options: dict[str, Any] = {"runs": 4, "formats": [HALF]}
    plain = experiments.stochastic_sums([64], **options)
    assert [row.accumulator for row in plain] == [repr(fma(HALF))] * 2
    assert all(np.isfinite(row.bound) for row in plain)
    for how in (amp("half"), fma("float32"), chunked(8, HALF, HALF)):
        rows = experiments.stochastic_sums([64], **options, accumulator=how)
        assert [(row.accumulator, row.bound, row.holds) for row in rows] == [(repr(how), np.inf, True)] * 2
    with pytest.raises(ValueError, match="environment must not draw"):
        experiments.underflow_threshold(environment=FEW)
    with pytest.raises(ValueError, match="environment must have a rounding mode that draws"):
        experiments.rounding_chances(2, environment=SETTINGS)


def test_the_picture_names_what_differs() -> None:
    options: dict[str, Any] = {"increment": 0.0625, "count": 256}
    idea = FEW.replace(accumulator=chunked(8, "float8_e5m2", "float16"))
    sums = [
        experiments.running_sum(E5M2, **options),
        experiments.running_sum(E5M2, environment=idea, runs=3, **options),
    ]
    figure = figures.running_sums(*sums)
    found = "\n".join(text.get_text() for legend in figure.legends for text in legend.get_texts())
    assert f"{sums[1].label}, float16, 3 runs" in found
    assert "exact: 16 at the end" in found
    assert figure.axes[0].get_ylim()[1] >= 16
