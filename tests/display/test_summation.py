"""Dot products step by step: their results are those of `bits.vecdot`, and what the steps lost is what the sum lost."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softfloat import ROSTER, Environment, accumulators, bits
from softfloat.display.exploration import ROUNDINGS, hardware, own
from softfloat.display.summation import sum_in_steps
from softfloat.environments import as_rounding
from softfloat.formats import Format

pytestmark = pytest.mark.usefixtures("by_one_loop")

WIDE = ROSTER["float16"]
BY_MMA = accumulators.tensor_core("H100", "float8_e4m3fn", instruction="mma.sync")
HALF_OUT = accumulators.tensor_core("V100", output="float16")
ACCUMULATORS = {**own(WIDE), **hardware(), BY_MMA.name: BY_MMA, HALF_OUT.name: HALF_OUT}
ANYTHING = ["float16", "bfloat16", "float8_e5m2", "float8_e4m3fnuz", "float6_e3m2fn", "float4_e2m1fn"]


def finite_codes(fmt: Format) -> st.SearchStrategy[int]:
    """Finite codes; magnitudes go up to the largest and no further."""
    sign = st.sampled_from([0, fmt.sign_bit]) if fmt.signed_zero else st.just(0)
    return st.builds(lambda magnitude, negative: magnitude | negative, st.integers(0, fmt.max_code), sign)


@pytest.mark.parametrize("name", ACCUMULATORS)
@settings(max_examples=5, deadline=None)
@given(st.data())
def test_the_result_is_that_of_a_dot_product(name: str, data: st.DataObject) -> None:
    how = ACCUMULATORS[name]
    fmt = ROSTER[data.draw(st.sampled_from([x.name for x in how.inputs] or ANYTHING))]
    k = data.draw(st.integers(1, 16))
    a, b = (data.draw(st.lists(finite_codes(fmt), min_size=k, max_size=k)) for _ in "ab")
    options = {
        "rounding": data.draw(st.sampled_from([x for x in ROUNDINGS if not as_rounding(x).draws])),
        "overflow": data.draw(st.sampled_from(["infinity", "saturate"])),
        "tininess": data.draw(st.sampled_from(["after", "before"])),
    }
    found = sum_in_steps(a, b, fmt, how, **options)
    code, flags = bits.vecdot(
        np.array(a, fmt.dtype), np.array(b, fmt.dtype), fmt, accumulator=how, environment=Environment(**options)
    )
    assert (found.code, int(found.flags)) == (int(code), int(flags))
    assert found.exact == sum(
        Fraction(float(bits.decode(x, fmt))) * Fraction(float(bits.decode(y, fmt))) for x, y in zip(a, b, strict=True)
    )
    stages = [how.product, how.running, how.store]
    flushes = how.daz or any(stage is not None and (stage.daz or stage.ftz) for stage in stages)
    if not flushes and all(step.lost is not None for step in found.steps):
        assert found.lost == sum((step.lost for step in found.steps), Fraction(0))


def test_a_swamped_sum_says_where_it_was_lost() -> None:
    """2048 + 1 is a tie to even in half, twice; in float32 nothing is lost."""
    a, b = [0x6800, 0x3C00, 0x3C00], [0x3C00, 0x3C00, 0x3C00]
    half, single = (sum_in_steps(a, b, "float16", accumulators.fma(name)) for name in ("float16", "float32"))
    assert [step.lost for step in half.steps] == [0, 1, 1]
    assert (half.lost, single.lost) == (2, 0)
    assert [step.what for step in half.steps] == ["+ product 1", "+ product 2", "+ product 3"]
    pairs = sum_in_steps(a, b, "float16", accumulators.pairwise("float16"))
    assert [step.what for step in pairs.steps][2:] == ["sum of 1 to 2", "product 3", "sum of 1 to 3"]


def test_what_an_alignment_cuts_is_lost() -> None:
    """2^15 and 2^-11: 26 binary places apart, of which an H100 keeps 25."""
    found = sum_in_steps([0x7800, 0x1000], [0x3C00, 0x3C00], "float16", accumulators.tensor_core("H100"))
    assert found.lost == Fraction(1, 2**11)
    assert str(found.flags) == "INEXACT"


def test_what_is_not_shown_is_refused() -> None:
    how = accumulators.fma("float16")
    for a, options, said in (
        ([0x7C00], {}, "finite numbers"),
        ([0x3C00, 0x3C00], {}, "same length"),
        ([0x3C00], {"rounding": "stochastic"}, "but 'stochastic'"),
    ):
        with pytest.raises(ValueError, match=said):
            sum_in_steps(a, [0x3C00], "float16", how, **options)
    with pytest.raises(ValueError, match="'bfloat16'"):
        sum_in_steps([0], [0], "float16", accumulators.vdpbf16ps())
    with pytest.raises(ValueError, match="step by step"):
        sum_in_steps([0], [0], "float16", how.replace(chains=2))
