"""Experiments against facts that other software and plain arithmetic supply."""

import dataclasses
import doctest
import importlib
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import softfloat
from softfloat import Flags, Rounding, bits
from softfloat.experiments import (
    claims,
    exact,
    overflow,
    published,
    random_bits,
    scaling,
    squares,
    swamping,
    training,
    underflow,
)
from softfloat.experiments.claims import Verdict

DETERMINISTIC = [mode for mode in Rounding if not mode.draws]
EXPECTATION = Fraction(10_000 * 1678, 2**24)  # 0.0001 is 1678 * 2^-24 in half precision


@pytest.fixture(scope="module")
def nearest():
    return swamping.running_sum("float16")


@pytest.fixture(scope="module")
def stochastic():
    return swamping.running_sum("float16", rounding="stochastic", runs=20, seed=0)


@pytest.fixture(scope="module")
def wide():
    return swamping.running_sum("float16", rounding="stochastic", runs=1000, seed=0, keep=False)


@pytest.mark.parametrize(
    "name",
    [
        "display.inspection",
        "display.tables",
        "experiments.accumulation",
        "experiments.swamping",
        "experiments.overflow",
        "experiments.random_bits",
        "experiments.training",
        "experiments.underflow",
        "experiments.scaling",
        "experiments.squares",
    ],
)
def test_examples_in_the_documentation(name):
    result = doctest.testmod(importlib.import_module(f"softfloat.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


# -- exact.py --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float16", "float32"])
def test_exact_rounding_agrees_with_numpy(name):
    rng = np.random.default_rng(1)
    fmt = softfloat.ROSTER[name]
    numbers = np.abs(np.ldexp(rng.standard_normal(2000), rng.integers(fmt.emin - fmt.p, 12, 2000)))
    for x, expected in zip(numbers, numbers.astype(name), strict=True):
        assert exact.rounded(Fraction(float(x)), fmt) == Fraction(float(expected))


@pytest.mark.parametrize(
    ("mode", "values"),
    [
        (Rounding.NEAREST_EVEN, [0, 4, 4, 4, 4, 5, 6, 6, 6]),
        (Rounding.NEAREST_AWAY, [0, 4, 4, 4, 5, 5, 6, 6, 6]),
        (Rounding.TOWARD_ZERO, [0, 4, 4, 4, 4, 5, 5, 6, 6]),
        (Rounding.TOWARD_NEGATIVE, [0, 4, 4, 4, 4, 5, 5, 6, 6]),
        (Rounding.TOWARD_POSITIVE, [0, 4, 5, 5, 5, 5, 6, 6, 7]),
        (Rounding.TO_ODD, [0, 4, 5, 5, 5, 5, 5, 6, 7]),
    ],
)
def test_rounding_to_three_bits_by_hand(mode, values):
    quarters = [0, 16, 17, 16 + 1, 18, 20, 22, 24, 25]  # in quarters of a unit; 18 and 22 are ties
    assert [exact.round_units(n, 4, 3, mode) for n in quarters] == values


def test_exact_rounding_refuses_stochastic():
    with pytest.raises(ValueError, match="deterministic"):
        exact.round_units(5, 4, 3, Rounding.STOCHASTIC)


# -- swamping --------------------------------------------------------------------------------------------------------


def test_half_swamps_at_a_quarter_after_2181_additions(nearest):
    assert nearest.increment_code == 0x068E
    assert nearest.stalled_after == 2181
    trajectory = nearest.trajectory[:, 0]
    assert trajectory.shape == (10_001,)
    assert trajectory[2180] < 0.25
    assert set(trajectory[2181:]) == {0.25}
    assert (np.diff(trajectory[:2182]) > 0).all()
    assert nearest.flags == Flags.INEXACT


def test_the_trajectory_is_numpys(nearest):
    total, sums = np.float16(0), [0.0]
    for _ in range(10_000):
        total = np.float16(total + np.float16(0.0001))
        sums.append(float(total))
    assert nearest.trajectory[:, 0].tolist() == sums


@pytest.mark.parametrize("mode", DETERMINISTIC)
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e5m2"])
def test_sums_follow_the_walk_on_integers(name, mode):
    result = swamping.running_sum(name, count=3000, rounding=mode, keep=False)
    final, stalled = exact.walk(softfloat.ROSTER[name], Fraction(result.increment), 3000, mode)
    if final is None:
        assert result.final[0] == math.inf
    else:
        assert (Fraction(float(result.final[0])), result.stalled_after) == (final, stalled)


def test_float32_sums_as_numpy_does():
    result = swamping.running_sum("float32", count=2000)
    assert result.stalled_after is None
    expected = np.cumsum(np.full(2000, 0.0001, np.float32), dtype=np.float32)
    assert result.trajectory[1:, 0].tolist() == expected.astype(float).tolist()


def test_an_increment_that_rounds_to_zero_stalls_at_once():
    result = swamping.running_sum("float8_e4m3fn", count=10)
    assert (result.increment_code, result.stalled_after, result.final.tolist()) == (0, 0, [0.0])
    assert result.trajectory.shape == (11, 1)


def test_stochastic_sums_match_the_tutorial_and_theory(stochastic):
    final = stochastic.final
    assert stochastic.exact == EXPECTATION
    assert final.shape == (20,)
    assert abs(final.mean() - 1.000166) < 4 * 0.0035
    assert 0.010 < final.std(ddof=1) < 0.021
    assert len(set(final)) > 10
    assert stochastic.stalled_after is None


def test_the_theoretical_deviation_of_the_walk(wide):
    moments = swamping.walk_moments("float16", 1678 * 2.0**-24, 10_000)
    assert moments.mean == pytest.approx(float(EXPECTATION), abs=1e-12)
    assert moments.std == pytest.approx(0.0154, abs=5e-5)
    found = swamping.spread(wide)
    assert found.mean_agrees
    assert found.std_agrees
    assert found.std == pytest.approx(moments.std, rel=0.1)


def test_the_walk_of_one_step_is_a_coin():
    # multiples of the smallest number below 2^-13 are all values of half: nothing is rounded
    assert swamping.walk_moments("float16", 2.0**-24, 1000) == swamping.Moments(1000 * 2.0**-24, 0.0)
    # float8_e5m2: 1.75 + 1.75 = 3.5 is a value; 3.5 + 1.75 = 5.25 lies a quarter of the way from 5 to 6
    moments = swamping.walk_moments("float8_e5m2", 1.75, 3)
    assert moments.mean == pytest.approx(5.25)
    assert moments.std == pytest.approx(math.sqrt(0.75 * 0.25))


def test_bounds_of_the_spread(stochastic):
    low, high = swamping.spread(stochastic, sigmas=2.2).std_bounds
    assert (low, high) == (pytest.approx(0.0100, abs=2e-4), pytest.approx(0.0209, abs=2e-4))
    error = swamping.spread(stochastic).standard_error
    assert error == pytest.approx(0.0154 / math.sqrt(20), rel=0.01)
    biased = dataclasses.replace(stochastic, final_codes=stochastic.final_codes + np.uint16(40))
    assert not swamping.spread(biased).mean_agrees
    still = dataclasses.replace(stochastic, final_codes=np.full(20, 0x3C00, np.uint16))
    assert not swamping.spread(still).std_agrees


def test_a_seed_addresses_its_sums():
    first, again, other = (
        swamping.running_sum("float16", count=500, rounding="stochastic", runs=8, seed=seed).codes for seed in (7, 7, 8)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_sums_across_calls_progress_and_orders_formats_first():
    calls = []
    results = swamping.sums_across(
        ["float16", "bfloat16"], ["nearest_even", "stochastic"], count=5, runs=3, progress=lambda: calls.append(1)
    )
    assert [(x.format, x.rounding, x.runs) for x in results] == [
        ("float16", "nearest_even", 1),
        ("float16", "stochastic", 3),
        ("bfloat16", "nearest_even", 1),
        ("bfloat16", "stochastic", 3),
    ]
    assert len(calls) == 4


def test_what_running_sums_refuse(nearest):
    with pytest.raises(ValueError, match="zero"):
        swamping.running_sum("float8_e8m0fnu")
    with pytest.raises(ValueError, match="runs"):
        swamping.running_sum("float16", runs=0)
    with pytest.raises(ValueError, match="stochastic"):
        swamping.spread(nearest)
    with pytest.raises(ValueError, match="20 bits"):
        swamping.walk_moments("float32", 2.0**-14, 3)
    with pytest.raises(ValueError, match="keep=True"):
        _ = swamping.running_sum("float16", count=1, keep=False).trajectory


# -- overflow, underflow, scaling, variance --------------------------------------------------------------------------


def test_overflow_under_three_settings():
    saturated, nan, infinite = overflow.overflow_cases()
    assert (saturated.code, saturated.status) == (0x7BFF, "OFLO 0x1 DIV0 0x0 INV 0x0")
    assert math.isnan(nan.value)
    assert nan.status == "OFLO 0x1 DIV0 0x0 INV 0x1"
    assert (infinite.code, infinite.status) == (0x7C00, "OFLO 0x1 DIV0 0x0 INV 0x0")


def test_exceptions_set_their_field_and_no_other():
    fields = {(case.environment, case.expression): case.status for case in overflow.exception_cases()}
    assert fields["IPU, nanoo=False", "1 / 0"] == "OFLO 0x0 DIV0 0x1 INV 0x0"
    for expression in ("0 / 0", "inf - inf", "0 * inf", "sqrt(-1)", "nan + 1"):
        assert fields["IPU, nanoo=False", expression] == "OFLO 0x0 DIV0 0x0 INV 0x1"
    assert fields["IEEE 754", "nan + 1"] == "OFLO 0x0 DIV0 0x0 INV 0x0"


def test_traps_stop():
    assert overflow.traps_that_stop() == ("oflo", "div0", "inv")


def test_underflow_agrees_with_numpy():
    cases = underflow.underflow_cases("float16")
    for case in cases:
        source = np.uint32(case.source_code).view(np.float32)
        assert source.astype(np.float16).view(np.uint16) == case.code
        assert Flags.UNDERFLOW in case.flags or case.number == 2.0**-24
    assert {case.source_code: case.code for case in cases} == {
        0x33800000: 1,
        0x33000001: 1,
        0x3300D959: 1,
        0x33000000: 0,
        0x322BCC77: 0,
    }


@pytest.mark.parametrize(("name", "tie"), [("float16", -25), ("float8_e5m2", -17), ("float8_e4m3fn", -10)])
def test_the_threshold_is_half_the_smallest_number(name, tie):
    assert underflow.underflow_threshold(name) == 2.0**tie


def test_loss_scaling_is_exact_in_range():
    found = scaling.loss_scaling(256)
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(float)
    values = values[np.isfinite(values)]
    fits = int((np.abs(values) * 256 <= 65504).sum())
    assert found == scaling.Scaling("float16", 256.0, values.size, fits, values.size - fits, fits)


@pytest.mark.parametrize(("factor", "fmt"), [(0.1, "float16"), (256.0, "float32")])
def test_what_loss_scaling_refuses(factor, fmt):
    with pytest.raises(ValueError, match="must"):
        scaling.loss_scaling(factor, fmt)


def test_variance_in_one_pass_overflows_and_in_two_does_not():
    found = squares.variance([296, 298, 302, 304])
    assert math.isnan(found.one_pass)
    assert found.one_pass_flags >= Flags.OVERFLOW
    assert Flags.OVERFLOW in found.one_pass_flags
    assert (found.two_pass, found.exact, found.two_pass_flags) == (10.0, 10, Flags(0))
    assert squares.variance([1, 2, 3, 6]).one_pass == 3.5
    with pytest.raises(ValueError, match="values of float16"):
        squares.variance([0.1])


def test_conversions_beyond_the_largest_half():
    found = {(case.overflow, case.number): (case.code, case.flags) for case in overflow.conversion_cases("float16")}
    inexact, over = Flags.INEXACT, Flags.OVERFLOW | Flags.INEXACT
    beyond = {"infinity": (0x7C00, over), "saturate": (0x7BFF, over), "nan": (0x7E00, over | Flags.INVALID)}
    assert len({rule for rule, _ in found}) == 3
    for rule, result in beyond.items():
        assert found[rule, 65504.0] == (0x7BFF, Flags(0))
        assert found[rule, 65519.0] == (0x7BFF, inexact)
        assert found[rule, 65520.0] == found[rule, 131008.0] == result
        assert found[rule, math.inf] == (0x7BFF if rule == "saturate" else 0x7C00, Flags(0))
    assert sum(math.isnan(case.number) and math.isnan(case.value) for case in overflow.conversion_cases("float16")) == 3


def test_conversions_that_numpy_knows():
    numbers = [65504.0, 65519.99, 65520.0, 1e9, -7e4, 1.5]
    cases = overflow.conversion_cases("float16", ["infinity"], numbers)
    with np.errstate(over="ignore"):
        assert [case.value for case in cases] == np.array(numbers).astype(np.float16).astype(float).tolist()


# -- few random bits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("sr_bits", [1, 3, 8, 11])
def test_chances_are_the_fraction_cut_to_the_random_bits(name, sr_bits):
    chances = random_bits.rounding_chances(sr_bits, fmt=name)
    assert [chance.fraction for chance in chances] == [Fraction(k, 64) for k in range(64)]
    for chance in chances:
        assert chance.probability == Fraction(math.floor(chance.fraction * 2**sr_bits), 2**sr_bits)
        assert -Fraction(1, 2**sr_bits) < chance.bias <= 0
        assert chance.variance == chance.probability * (1 - chance.probability)
    assert (max(-chance.bias for chance in chances) == 0) is (sr_bits >= 6)


def test_few_random_bits_follow_the_walk():
    rows = random_bits.few_random_bits(runs=400)
    assert [row.sr_bits for row in rows] == list(range(1, 15))
    assert all(row.agrees for row in rows)
    assert [row.relative_bias for row in rows] == sorted(row.relative_bias for row in rows)
    one, two, *_, last = rows
    assert (one.mean, one.std, two.mean, two.std) == (0.25, 0.0, 0.5, 0.0)  # 2^-r of the spacing exceeds the increment
    assert abs(last.relative_bias) < 1e-12
    # the rule of thumb, r = log2(n)/2, is 7 here: bias and noise of one sum are of one size
    for row in rows:
        if row.sr_bits >= 7:
            assert abs(row.relative_bias) < row.expected_std / float(row.exact)
        if row.sr_bits <= 5:
            assert abs(row.relative_bias) > 2 * row.expected_std / float(row.exact)
    assert not dataclasses.replace(last, mean=last.mean * 1.01).agrees


def test_a_walk_with_random_bits_by_hand():
    # float8_e5m2: 3.5 + 1.75 lies a quarter of the way from 5 to 6, of which one random bit sees nothing
    assert swamping.walk_moments("float8_e5m2", 1.75, 3, 1) == swamping.Moments(5.0, 0.0)
    assert swamping.walk_moments("float8_e5m2", 1.75, 3, 2) == swamping.walk_moments("float8_e5m2", 1.75, 3)


def test_what_random_bits_refuse():
    with pytest.raises(ValueError, match="sr_bits"):
        random_bits.rounding_chances(17)
    with pytest.raises(ValueError, match="fractions"):
        random_bits.rounding_chances(2, [1.0])
    with pytest.raises(ValueError, match="increment"):
        random_bits.few_random_bits([4], increment=1e-9)
    with pytest.raises(ValueError, match="runs"):
        random_bits.few_random_bits([4], runs=1)


# -- training --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained():
    return training.train()


def test_training_without_rounding_learns(trained):
    assert trained.losses.shape == (301,)
    assert trained.losses[0] > 1
    assert trained.loss < 0.06
    assert trained.accuracy > 0.95
    assert (trained.format, trained.skipped, trained.lost, trained.flags) == ("float64", 0, 0.0, Flags(0))
    assert trained.activations.size == training.POINTS * (3 + 16 + 16)
    assert trained.weights.size == 2 * 16 + 16 * 16 + 16 * 3 + 16 + 16 + 3


def test_gradients_are_those_of_finite_differences():
    points, arm = training.spiral(0)
    rng = np.random.default_rng(3)
    widths = training.WIDTHS
    parameters = [rng.normal(0, 0.5, shape) for shape in itertools.pairwise(widths)]
    parameters += [rng.normal(0, 0.1, width) for width in widths[1:]]
    found = training._gradients(parameters, points, arm, 4.0, lambda x: x)
    for parameter, gradient in zip(parameters, found.weights, strict=True):
        place = tuple(rng.integers(parameter.shape))
        kept, losses = parameter[place], []
        for move in (-1e-5, 1e-5):
            parameter[place] = kept + move
            losses.append(training._gradients(parameters, points, arm, 1.0, lambda x: x).loss)
        parameter[place] = kept
        assert gradient[place] / 4 == pytest.approx((losses[1] - losses[0]) / 2e-5, rel=1e-6, abs=1e-9)


def test_a_scale_rescues_what_half_precision_loses(trained):
    plain, scaled, excessive = training.train_scaled([1, 2**14, 2**24])
    assert plain.lost > 0.8
    assert scaled.lost < plain.lost / 2
    assert plain.loss > 5 * trained.loss
    assert scaled.loss == pytest.approx(trained.loss, rel=0.02)
    assert (excessive.skipped, excessive.loss) == (300, trained.losses[0])
    assert Flags.OVERFLOW in excessive.flags
    assert Flags.OVERFLOW not in plain.flags | scaled.flags
    assert plain.losses[0] == scaled.losses[0] == trained.losses[0]


def test_a_dynamic_scale_finds_its_way_down_and_up():
    found = training.train("float16", 2.0**24, dynamic=True, steps=80, growth=20)
    tops = np.flatnonzero(np.diff(found.scales) < 0)
    assert found.scales[0] == 2.0**24
    assert found.scales[tops[-1]] / found.scales[tops[-1] + 1] == 2
    assert (np.diff(found.scales) > 0).any()
    assert found.skipped == len(tops) >= 5
    assert found.loss < 0.5
    assert training.train("float16", 0.5, dynamic=True, steps=2).scales.tolist() == [0.5, 0.5]


def test_saturation_hides_overflow_from_those_who_look_at_values():
    options = {"steps": 40, "dynamic": True, "overflow": "saturate"}
    by_values = training.train("float16", 2.0**28, watch="values", **options)
    by_flags = training.train("float16", 2.0**28, watch="flags", **options)
    assert (by_values.skipped, set(by_values.scales)) == (0, {2.0**28})
    assert Flags.OVERFLOW in by_values.flags
    assert by_flags.skipped >= 5
    infinite = training.train("float16", 2.0**28, watch="values", **options | {"overflow": "infinity"})
    assert infinite.skipped >= 5


def test_a_seed_addresses_its_training():
    first, again, other = (training.train("float8_e5m2", 256, steps=5, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.activations, again.activations)
    assert not np.array_equal(first.activations, other.activations)


@pytest.mark.parametrize(
    ("options", "name"), [({"scale": 0.0}, "scale"), ({"steps": 0}, "steps"), ({"watch": "infinities"}, "watch")]
)
def test_what_training_refuses(options, name):
    with pytest.raises(ValueError, match=name):
        training.train("float16", **options)


# -- claims ----------------------------------------------------------------------------------------------------------

TYPOS = {"5a", "5b", "6", "7", "8b", "17b", "17d", "17f"}
NOT_NUMERIC = {"12", "18b"}


@pytest.fixture(scope="module")
def all_claims(nearest, stochastic, wide):
    return [*claims.range_claims(), *claims.stochastic_claims(nearest, stochastic, wide)[0]]


def test_every_claim_has_its_verdict(all_claims):
    verdicts = {claim.id: claim.verdict for claim in all_claims}
    assert len(verdicts) == len(all_claims)
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.TYPO} == TYPOS
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.NOT_NUMERIC} == NOT_NUMERIC
    assert Verdict.FAILED not in verdicts.values()
    rows = {int("".join(c for c in name if c.isdigit())) for name in verdicts}
    assert rows == set(range(1, 20))


def test_published_exact_and_emulated_values(all_claims):
    by_id = {claim.id: (claim.published, claim.exact, claim.emulated) for claim in all_claims}
    assert by_id["6"] == ("0.0004833", "0.00048828125", "0.00048828125")
    assert by_id["8a"] == ("0.1999512", "0.199951171875", "0.199951171875")
    assert by_id["8b"] == ("0.0200205", "0.02001953125", "0.02001953125")
    assert by_id["8c"] == ("0.0019531", "0.001953125", "0.001953125")
    assert by_id["8d"] == ("0.0002441", "0.000244140625", "0.000244140625")
    assert by_id["9"] == ("0.0", "0", "0")
    assert by_id["10b"] == ("never beyond 0.25", "2181", "2181")
    assert by_id["17b"] == ("66504", "65504", "65504")
    assert by_id["11a"][:2] == ("0.999", "1.000166")
    assert {claim.source for claim in all_claims} == set(published.DOCUMENTS)


def test_the_published_sums_are_the_tutorials():
    totals = [float(x) for x in claims.PUBLISHED_TOTALS]
    assert len(totals) == 20
    assert np.mean(totals) == pytest.approx(0.99903, abs=5e-6)
    assert np.std(totals, ddof=1) == pytest.approx(0.01438, abs=5e-6)


def off_by_one(function):
    """The function, with the lowest bit of every code it returns flipped."""

    def broken(*operands, **options):
        codes, flags = function(*operands, **options)
        return codes ^ codes.dtype.type(1), flags

    broken.__name__ = function.__name__
    return broken


@pytest.mark.parametrize(
    ("name", "failing"),
    [
        ("encode", {"4", "7"}),
        ("add", {"6", "13a", "16b"}),
        ("sub", {"6", "8a", "8a'", "9", "16b"}),
        ("mul", {"15"}),
        ("div", {"15", "16b"}),
        ("convert", {"3b", "3c", "19a", "19b"}),
        ("next_up", {"2", "5b", "17c", "17g"}),
        ("next_down", {"1", "5a", "17a", "17b", "17f"}),
    ],
)
def test_a_broken_emulator_fails_its_claims(monkeypatch, name, failing):
    monkeypatch.setattr(bits, name, off_by_one(getattr(bits, name)))
    verdicts = {claim.id: claim.verdict for claim in claims.range_claims()}
    assert failing <= {row for row, verdict in verdicts.items() if verdict is Verdict.FAILED}
    assert all(verdicts[row] is Verdict.NOT_NUMERIC for row in NOT_NUMERIC)


def test_claims_about_flags_fail_too(monkeypatch):
    def silent(function):
        def broken(*operands, **options):
            codes, flags = function(*operands, **options)
            return codes, flags * 0

        broken.__name__ = function.__name__
        return broken

    for name in ("add", "sub", "mul", "div", "sqrt", "convert", "encode"):
        monkeypatch.setattr(bits, name, silent(getattr(bits, name)))
    failed = {claim.id for claim in claims.range_claims() if claim.verdict is Verdict.FAILED}
    assert {"3b", "3c", "14a", "14b", "14c", "14d", "14e", "14f", "14g", "15", "16a", "18a"} <= failed


def test_claims_about_sums_fail_for_a_wrong_sum(nearest, stochastic, wide):
    def verdict(row, *sums):
        return {claim.id: claim.verdict for claim in claims.stochastic_claims(*sums)[0]}[row]

    truncated = swamping.running_sum("float16", rounding="toward_zero")
    assert verdict("10a", truncated, stochastic, wide) is Verdict.FAILED
    late = dataclasses.replace(nearest, stalled_after=2182)
    assert verdict("10b", late, stochastic, wide) is Verdict.FAILED
    assert verdict("10a", late, stochastic, wide) is Verdict.REPRODUCED
    biased = dataclasses.replace(stochastic, final_codes=stochastic.final_codes + np.uint16(40))
    assert verdict("11a", nearest, biased, wide) is Verdict.FAILED
    still = dataclasses.replace(stochastic, final_codes=np.full(20, 0x3C00, np.uint16))
    assert verdict("11b", nearest, still, wide) is Verdict.FAILED
    shifted = dataclasses.replace(wide, final_codes=wide.final_codes + np.uint16(4))  # 0.003, a fifth of a deviation
    assert verdict("11c", nearest, stochastic, shifted) is Verdict.FAILED


def test_the_swamping_table_fails_for_a_wrong_sum():
    results = swamping.sums_across(["float16"], ["nearest_even", "stochastic"], count=1000)
    assert [cell.verdict for cell in claims.swamping_table(results)] == [Verdict.REPRODUCED] * 2
    broken = tuple(dataclasses.replace(x, final_codes=x.final_codes + np.uint16(64)) for x in results)
    assert [cell.verdict for cell in claims.swamping_table(broken)] == [Verdict.FAILED] * 2
    early = dataclasses.replace(results[0], stalled_after=999)
    assert claims.swamping_table((early,))[0].verdict is Verdict.FAILED


def test_how_far_a_stochastic_sum_in_single_may_be_off() -> None:
    """By eight times the largest standard error there can be: half the spacing from 2 on for each of 1000 additions, over 10 runs."""
    right = swamping.running_sum("float32", increment=0.001, count=1000, rounding="stochastic", runs=10, keep=False)
    most = 8 * 2.0**-23 * math.sqrt(1000 / 10)
    expectation = 1000 * float(np.float32(0.001))
    for off, verdict in ((0.9 * most, claims.Verdict.REPRODUCED), (1.1 * most, claims.Verdict.FAILED)):
        shifted = bits.encode(np.full(10, expectation + off), "float32")[0]
        (cell,) = claims.swamping_table((dataclasses.replace(right, final_codes=shifted),))
        assert cell.verdict is verdict, off
