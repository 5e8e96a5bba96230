"""Sums with wide formats, output by output against the oracle."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from faster import both, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softfloat import Format, bfloat16, bits, float16, float32, float64
from softfloat.accumulators import Accumulator, chunked, compensated, exact, fma, mul_add, pairwise, tensor_core
from softfloat.reference import dots
from softfloat.testing import strategies

E11M23, E8M40 = Format("e11m23", 11, 23), Format("e8m40", 8, 40)
PLENTY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
Oracle = Callable[..., tuple[int, int]]


def in_chains(count: int, fmt: Format) -> Accumulator:
    return fma(fmt).replace(name=f"{count} chains of {fmt}", chains=count)


@st.composite
def accumulators(draw: st.DrawFn) -> tuple[Accumulator, Oracle]:
    """An accumulator and what the oracle makes of (a, b, formats, c, options)."""
    fmt, other = draw(st.sampled_from([float64, E11M23, E8M40])), draw(st.sampled_from([float64, float32, float16]))
    length, count = draw(st.integers(1, 4)), draw(st.integers(2, 3))
    method = draw(st.sampled_from(["kahan", "neumaier", "two_term"]))
    found: list[tuple[Accumulator, Oracle]] = [
        (fma(fmt), lambda a, b, f, c, **o: dots.fma(a, b, f, fmt, c, **o)),
        (mul_add(fmt), lambda a, b, f, c, **o: dots.mul_add(a, b, f, fmt, c, **o)),
        (pairwise(fmt), lambda a, b, f, c, **o: dots.pairwise(a, b, f, fmt, c, **o)),
        (in_chains(count, fmt), lambda a, b, f, c, **o: dots.chains(a, b, f, fmt, count, c, **o)),
        (
            chunked(length, other, fmt),
            lambda a, b, f, c, **o: dots.chunked(a, b, f, length, other, fmt, c, **o),
        ),
        (exact(fmt), lambda a, b, f, c, **o: dots.exact(a, b, f, fmt, c, **o)),
        (compensated(fmt, method), lambda a, b, f, c, **o: dots.compensated(a, b, f, fmt, method, c, **o)),
    ]
    return draw(st.sampled_from(found))


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    modes = ["nearest_even", "toward_zero", "toward_negative", "to_odd", "nearest_zero", "up_or_down", "stochastic"]
    found: dict[str, Any] = {
        "rounding": draw(st.sampled_from(modes)),
        "nan": draw(st.sampled_from(["canonical", "x86", "arm", "riscv", "nvidia", "x86_fma3"])),
        "overflow": draw(st.sampled_from(["infinity", "saturate"])),
        "daz": draw(st.booleans()),
        "ftz": draw(st.booleans()),
    }
    if found["rounding"] == "stochastic":
        found |= {"seed": draw(st.integers(0, 2**64 - 1)), "sr_bits": draw(st.sampled_from([1, 16, 52]))}
    elif found["rounding"] == "up_or_down":
        found |= {"seed": draw(st.integers(0, 2**64 - 1))}
    return found


def numbers(fmt: Format) -> st.SearchStrategy[int]:
    """Mostly numbers near 1, whose sums cancel and round; any code now and then."""
    near = st.floats(-4, 4, allow_nan=False).map(lambda x: int(bits.encode(x, fmt)[0]))
    return near | near | near | strategies.codes(fmt)


@PLENTY
@given(st.data(), accumulators(), options(), st.integers(0, 7))
def test_products_of_matrices(
    data: st.DataObject, how: tuple[Accumulator, Oracle], given: dict[str, Any], k: int
) -> None:
    accumulator, oracle = how
    formats = data.draw(
        st.sampled_from([(float64, float64), (float16, float64), (E11M23, bfloat16), (float32, float32)])
    )
    out = data.draw(st.sampled_from([None, float64, float32]))
    a = np.array(data.draw(st.lists(numbers(formats[0]), min_size=2 * k, max_size=2 * k)), formats[0].dtype).reshape(
        2, k
    )
    b = np.array(data.draw(st.lists(numbers(formats[1]), min_size=2 * k, max_size=2 * k)), formats[1].dtype).reshape(
        k, 2
    )
    partials = accumulator.partials
    c = np.array(data.draw(st.lists(numbers(partials), min_size=4, max_size=4)), partials.dtype).reshape(2, 2)
    c = data.draw(st.sampled_from([None, c]))
    stream = data.draw(st.integers(0, 3))
    codes, flags = bits.matmul(a, b, formats, accumulator, c, out_format=out, stream=stream, **given)
    asked = {name: x for name, x in given.items() if name != "seed"}
    if "seed" in given:
        asked |= {"seed": given["seed"], "stream": stream}
    for i in range(2):
        for j in range(2):
            here = {"index": 2 * i + j} if "seed" in given else {}
            start = None if c is None else int(c[i, j])
            expected = oracle(a[i].tolist(), b[:, j].tolist(), formats, start, out_format=out, **asked, **here)
            assert (int(codes[i, j]), int(flags[i, j])) == expected, (accumulator, formats, given, i, j)
    if k:
        one = bits.vecdot(
            a[0], b[:, 0], formats, accumulator, None if c is None else c[0, 0], out_format=out, stream=stream, **given
        )
        assert (int(one[0]), int(one[1])) == (int(codes[0, 0]), int(flags[0, 0]))


@pytest.mark.parametrize("given", [{}, {"rounding": "stochastic", "seed": 5}], ids=["nearest", "stochastic"])
def test_cumulative_sums_are_sums_of_the_first(given: dict[str, Any]) -> None:
    x = bits.encode(np.random.default_rng(0).standard_normal((6, 3)), float64)[0]
    ways = (
        *(fma(float64), mul_add(E8M40), pairwise(float64), compensated(float64)),
        *(chunked(2, float64, float64), in_chains(2, float64)),
    )
    for how in ways:
        for out in (None, float32):
            codes, flags = bits.cumsum(x, float64, how, 0, out_format=out, **given)
            for n in range(6):
                some = bits.sum(x[: n + 1], float64, how, 0, out_format=out, **given)
                assert (codes[n] == some[0]).all(), (how, out, n)
                assert (flags[n] == some[1]).all(), (how, out, n)


def test_float64_in_order_is_numpys() -> None:
    random = np.random.default_rng(2)
    a, b = random.standard_normal((5, 40)), random.standard_normal((40, 4))
    codes, _ = bits.matmul(a.view(np.uint64), b.view(np.uint64), float64, mul_add(float64))
    total = np.zeros((5, 4))
    for k in range(40):
        total = total + a[:, k, None] * b[k]
    assert (codes.view(np.float64) == total).all()


@pytest.mark.parametrize("how", [fma(float64), mul_add(float64)], ids=repr)
def test_tiles_in_registers_have_the_same_bits(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole tiles and parts of them; exact sums beside inexact ones; what begins sums; what is left to the integers: 2^-1060, infinity."""
    random = np.random.default_rng(6)
    for shape, magnitude in (((17, 9, 50), 1.0), ((3, 5, 4, 30), 2.0**200), ((2, 300, 3), 2.0**-220), ((1, 0, 5), 1.0)):
        *many, rows, length, columns = shape
        a, b = random.standard_normal((*many, rows, length)), random.standard_normal((*many, length, columns))
        a[..., 0, :], b[..., 0] = np.round(a[..., 0, :] * 8), np.round(b[..., 0] * 8)
        a[..., ::3] = -a[..., ::3][..., ::-1]
        for odd in (None, 0.0, 2.0**-1060, np.inf):
            x, y = a * magnitude, b * magnitude
            if odd is not None:
                x[..., -1, length // 2 :] = odd
            start = np.round(random.standard_normal((*many, rows, columns)) * 4).view(np.uint64)
            for c in (None, start):
                x_, y_ = x.view(np.uint64), y.view(np.uint64)
                same(both(monkeypatch, lambda x=x_, y=y_, c=c: bits.matmul(x, y, float64, how, c)))


@pytest.mark.parametrize("method", [None, "kahan", "neumaier", "two_term"])
def test_grids_of_exact_and_compensated_sums(method: str | None) -> None:
    """To nearest, in grids, where sums in order have a loop of their own that these must not take."""
    random = np.random.default_rng(9)
    a, b = random.standard_normal((3, 60)), random.standard_normal((60, 2))
    x, y = a.view(np.uint64), b.view(np.uint64)
    how = exact(float64) if method is None else compensated(float64, method)
    codes, flags = bits.matmul(x, y, float64, how)
    for i in range(3):
        for j in range(2):
            row, column = x[i].tolist(), y[:, j].tolist()
            if method is None:
                expected = dots.exact(row, column, (float64, float64), float64)
            else:
                expected = dots.compensated(row, column, (float64, float64), float64, method)
            assert (int(codes[i, j]), int(flags[i, j])) == expected
    assert (codes != bits.matmul(x, y, float64, mul_add(float64))[0]).any()


def test_batches_and_broadcast_operands() -> None:
    random = np.random.default_rng(3)
    a, b = random.standard_normal((3, 2, 5)).view(np.uint64), random.standard_normal((3, 5, 2)).view(np.uint64)
    given = {"rounding": "stochastic", "seed": 1}
    whole, _ = bits.matmul(a, b, float64, fma(float64), **given)
    flat = [bits.matmul(a[i], b[i], float64, fma(float64), position=4 * i, **given)[0] for i in range(3)]
    assert (whole == np.array(flat)).all()
    rows, _ = bits.vecdot(a[:, 0], b[:, :, 0], float64, fma(float64))
    assert (rows == bits.matmul(a, b, float64, fma(float64))[0][:, 0, 0]).all()


@PLENTY
@given(st.data(), st.lists(st.integers(-1074, 971), min_size=2, max_size=12), st.booleans())
def test_exact_sums_of_the_whole_range(data: st.DataObject, exponents: list[int], cancels: bool) -> None:
    """Products from 2^-2148 to 2^1995, what is left of them after others cancel, and their sign."""
    significand = st.integers(-(2**53) + 1, 2**53 - 1)
    a, b = ([data.draw(significand) * Fraction(2) ** e for e in exponents] for _ in range(2))
    if cancels:
        a, b = [*a, *a[::-1], Fraction(1)], [*b, *(-x for x in b[::-1]), Fraction(1, 2**1074)]
    x, y = (bits.encode(z, float64)[0] for z in (a, b))
    for options in ({}, {"rounding": "toward_negative"}, {"rounding": "to_odd"}):
        found = bits.vecdot(x, y, float64, exact(float64), **options)
        expected = dots.exact(x.tolist(), y.tolist(), (float64, float64), float64, None, **options)
        assert (int(found[0]), int(found[1])) == expected


@pytest.mark.parametrize("given", [{}, {"rounding": "stochastic", "seed": 5}, {"rounding": "toward_zero"}], ids=str)
@pytest.mark.parametrize(
    "make",
    [
        fma,
        mul_add,
        pairwise,
        exact,
        compensated,
        lambda fmt: compensated(fmt, "neumaier"),
        lambda fmt: compensated(fmt, "two_term"),
        lambda fmt: in_chains(2, fmt),
        lambda fmt: chunked(5, fmt, fmt),
    ],
)
def test_counts_are_those_of_half_in_a_format_with_more_exponents(
    make: Callable[[Format], Accumulator], given: dict[str, Any]
) -> None:
    """Sums in the middle of half's range: the same partials, which the plain loop counts."""
    more = Format("e9m10", 9, 10)
    random = np.random.default_rng(8)
    a, b = random.standard_normal((3, 24)) * 16, random.standard_normal((24, 5)) * 16
    a[:, ::4] *= 2.0**-9
    a[1, 3:], b[:, 1] = 0.0, 1.0
    a[2, :12] = 300.0
    a[1] *= 2.0**-10
    c = np.zeros((3, 5))
    c[1] = 1024.0
    of_half, of_more = (
        bits.matmul(
            *(bits.encode(x, float16)[0] for x in (a, b)),
            float16,
            make(fmt),
            bits.encode(c, fmt)[0],
            count=True,
            **given,
        )
        for fmt in (float16, more)
    )
    assert (bits.decode(of_half[0], float16) == bits.decode(of_more[0], more)).all()
    for name in ("additions", "overflowed", "inexact", "swamped", "smallest", "largest"):
        assert np.all(getattr(of_half[2], name) == getattr(of_more[2], name)), name
    assert "seed" in given or np.any(of_more[2].swamped)


@pytest.mark.parametrize(
    ("how", "word"),
    [
        (fma(float64).replace(block=2, name="two"), "blocks of several products"),
        (chunked(2, pairwise(float16), float64), "segments of anything but sums in order"),
    ],
)
def test_other_accumulators_are_refused(how: Accumulator, word: str) -> None:
    one = float64.one_code
    with pytest.raises(ValueError, match=word):
        bits.vecdot([one, one], [one, one], float64, how)


def test_presets_that_serve_no_wide_format_say_so() -> None:
    with pytest.raises(ValueError, match="fmt must be 'float16'"):
        bits.vecdot([1], [1], float64, tensor_core("H100"))
