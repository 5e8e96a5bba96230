"""Products with many NaNs, whose outputs are NaN at once, against the loops that go through all of them: codes and flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from operands import ordinary

import softfloat
from softfloat import Environment, Format, bits
from softfloat.accumulators import (
    Accumulator,
    Reduction,
    Stage,
    amp,
    chunked,
    compensated,
    exact,
    fixed_point,
    fma,
    mul_add,
    pairwise,
    tensor_core,
)
from softfloat.engine import as_environment, elementwise, plain, products

HALF, SINGLE, E5M2, E4M3 = softfloat.float16, softfloat.float32, softfloat.float8_e5m2, softfloat.float8_e4m3fn
CASES: list[tuple[Format, Accumulator]] = [
    (HALF, fma(HALF)),
    (HALF, mul_add(HALF)),
    (HALF, fma(SINGLE)),
    (SINGLE, fma(SINGLE)),
    (E5M2, fma(E5M2)),
    (E4M3, mul_add(E4M3)),
    (HALF, amp("half")),
    (HALF, amp("float")),
    (HALF, exact(HALF)),
    (HALF, pairwise(HALF)),
    (HALF, chunked(4, fma(HALF), SINGLE)),
    (HALF, fma(HALF).replace(chains=3)),
    (HALF, tensor_core("H100", HALF)),
    (HALF, compensated(HALF, "kahan")),
    (E5M2, fixed_point(32, -16)),
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"rounding": "toward_negative", "ftz": True},
    {"rounding": "stochastic", "seed": 3},
    {"overflow": "saturate", "daz": True, "tininess": "before"},
    {"overflow": "nan", "nan": "riscv"},
    {"nan": "x86"},
    {"nan": "ipu"},
]
PLACES: dict[str, Any] = {
    "all": np.s_[:],
    "every other row": np.s_[::2],
    "some columns": np.s_[:, 3:5],
    "one in each row": (np.arange(21), np.arange(21) % 13),
    "the last column": np.s_[:, -1],
    "from the fifth column on": np.s_[:, 4:],
    "the first one": np.s_[0, 0],
}


def assert_as_ever(call: Callable[[], Any]) -> None:
    found, flags = call()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "_ended", lambda *arguments: False)
        codes, raised = call()
    np.testing.assert_array_equal(found, codes)
    np.testing.assert_array_equal(flags, raised)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_codes_and_flags(case: tuple[Format, Accumulator], options: dict[str, Any]) -> None:
    fmt, how = case
    a, b = ordinary(fmt, (21, 13), 1), ordinary(fmt, (13, 18), 2)
    c = ordinary(how.partials, (21, 18), 3)
    c[::3] = 1  # subnormal, so that what rounds it is seen
    spoilt_b = b.copy()
    spoilt_b[5:, ::2] = fmt.nan_code
    for number, places in enumerate(PLACES.values()):
        x = a.copy()
        x[places] = fmt.nan_code
        start, output = (None, c)[number % 2], (None, HALF)[number % 3 == 2]
        y = (b, spoilt_b)[number % 4 == 3]
        assert_as_ever(
            lambda x=x, y=y, c=start, o=output: bits.matmul(x, y, fmt, how, c, out_format=o, **as_environment(options))
        )
        if number < 5:
            assert_as_ever(lambda x=x: bits.matmul(x, b[:, 0], fmt, how, **as_environment(options)))
            assert_as_ever(lambda x=x: bits.vecdot(x, a, fmt, how, **as_environment(options)))
            assert_as_ever(lambda x=x: bits.sum(x, fmt, how, 1, **as_environment(options)))


def test_infinities_and_signalling_nans_beside_them() -> None:
    """inf * 0 beside a row of NaNs raises nothing there; a signalling NaN does, wherever it is."""
    a, b = ordinary(HALF, (6, 9), 4), ordinary(HALF, (9, 5), 5)
    a[::2] = 0x7E00
    a[1], b[3, 2] = 0, 0x7C00
    b[4, 4] = 0x7D00
    for how in (fma(HALF), mul_add(HALF), amp("half"), pairwise(HALF)):
        codes, flags = bits.matmul(a, b, HALF, how)
        assert (codes[::2] == 0x7E00).all()
        assert flags[::2].tolist() == [[0, 0, 0, 0, 16]] * 3
        assert codes[1].tolist() == [0, 0, 0x7E00, 0, 0x7E00]
        assert flags[1].tolist() == [0, 0, 16, 0, 16]
        assert_as_ever(lambda how=how: bits.matmul(a, b, HALF, how))
    x, y = ordinary(HALF, (9, 9), 6), ordinary(HALF, (9, 9), 7)
    x[np.arange(9), np.arange(9)[::-1]] = 0x7E00
    for where, code in (((slice(None), 3), 0x7C00), ((2, slice(None)), 0xFC00), ((4, 4), 0x7C00)):
        for how in (fma(HALF), amp("half")):
            for one, two in ((x, y), (y, x)):
                spoilt = two.copy()
                spoilt[where] = code
                assert_as_ever(lambda a=one, b=spoilt, how=how: bits.matmul(a, b, HALF, how))
                assert_as_ever(lambda a=one, b=spoilt, how=how: bits.vecdot(a, b, HALF, how))


@pytest.mark.parametrize(
    "how",
    [
        fma(HALF),
        fma(HALF).replace(segment=2, reduction=(Reduction(Stage(SINGLE)),)),
        fma(HALF).replace(store=Stage(SINGLE), store_every=2),
    ],
    ids=["output", "segments", "stores"],
)
def test_each_stage_has_its_own_formats_rule_for_nans(how: Accumulator) -> None:
    """Halves' quiet NaNs raise nothing, and float32's do, as the environment says of it: 0x7E01 * 1 becomes NaN with INVALID in every way."""
    a, b = np.full((40, 3), 0x7E01, np.uint16), np.full((3, 40), 0x3C00, np.uint16)
    environment = Environment(overrides={"float32": Environment(nan="ipu")})
    for count in (False, True):
        options: dict[str, Any] = {"out_format": SINGLE, "environment": environment, "count": count}
        found = [
            bits.matmul(a, b, HALF, how, **options)[1],
            bits.matmul(a[:1], b[:, :1], HALF, how, **options)[1],
            bits.vecdot(a[0], b[:, 0], HALF, how, **options)[1],
        ]
        assert all((flags == 16).all() for flags in found)


def test_flags_of_what_was_added_before() -> None:
    """2048 + 1 is inexact before the NaN comes, and 65504 + 65504 overflows; what comes after raises nothing."""
    nan = 0x7E00
    a = np.array(
        [[0x6800, 0x3C00, nan, 0x3C00], [0x6800, nan, 0x3C00, 0x3C00], [0x7BFF, 0x7BFF, nan, 0x7BFF]], np.uint16
    )
    codes, flags = bits.matmul(a, np.full((4, 40), 0x3C00, np.uint16), HALF, fma(HALF))
    assert (codes == nan).all()
    assert flags.tolist() == [[1] * 40, [0] * 40, [5] * 40]


@pytest.mark.parametrize("how", [fma(HALF), mul_add(HALF), pairwise(HALF), amp("half")], ids=str)
def test_the_plain_loop_is_not_asked(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "run", lambda *arguments: pytest.fail("the plain loop ran"))
    a, b = ordinary(HALF, (40, 32), 6), ordinary(HALF, (32, 40), 7)
    bits.matmul(np.full_like(a, 0x7E00), b, HALF, how)
    a[::2] = 0x7E00
    bits.matmul(a, b, HALF, how)
    b[:, 4] = 0xFE01
    bits.matmul(a, b, HALF, how)
    if how == fma(HALF):
        a[np.arange(40), np.arange(40) % 32] = 0x7E00
        bits.matmul(a, b, HALF, how)
        bits.matmul(a, b[:, 0], HALF, how)
        bits.sum(a, HALF, how, 1)
        one = ordinary(HALF, (40, 32), 8)
        one[3, 4] = 0x7E00
        bits.matmul(one, ordinary(HALF, (32, 40), 9), HALF, how)


def test_c_that_zeros_round_before_the_first_product() -> None:
    """Of four products the second comes first; where there is but one, the grid of a zero product cuts a bit off c, 0x006f, before NaN comes."""
    how = Accumulator(name="cut", running=Stage(HALF), product=Stage(HALF), fraction_bits=1, order=(1, 0, 2, 3))
    for count in (False, True):
        codes, flags, *_ = bits.vecdot([[0x7E00]], [[0x3C00]], HALF, how, [0x006F], count=count)
        assert (codes.tolist(), flags.tolist()) == ([0x7E00], [1])


@pytest.mark.parametrize("how", [fma(HALF), mul_add(HALF)], ids=repr)
@pytest.mark.parametrize(
    "options",
    [{}, {"rounding": "stochastic", "seed": 3}, {"infinite_input": "nan"}, {"out_format": "float32", "nan": "x86"}],
    ids=str,
)
def test_sums_go_on_from_their_first_infinity(
    how: Accumulator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what was added before by a faster loop, as if the plain one had summed all; NaNs are among the operands, too."""
    rng = np.random.default_rng(8)
    a, b = (bits.encode(rng.standard_normal(shape), HALF)[0] for shape in ((40, 64), (64, 48)))
    a[rng.random(a.shape) < 0.01], b[rng.random(b.shape) < 0.005] = 0x7C00, 0xFC00
    a[3, 60] = b[5, 7] = 0x7E01
    c = bits.encode(rng.standard_normal((40, 48)), HALF)[0]
    c[2, 3] = 0xFC00
    found = [bits.matmul(a, b, HALF, how, start, **options) for start in (None, c)]
    monkeypatch.setattr(elementwise, "FAST", False)
    for start, one in zip((None, c), found, strict=True):
        np.testing.assert_array_equal(one, bits.matmul(a, b, HALF, how, start, **options))
