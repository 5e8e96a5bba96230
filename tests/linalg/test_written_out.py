"""Factorizations against the algorithms written out, one operation on exact fractions after the other: codes and flags."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import written_out
from drawn import formats
from hypothesis import assume, given
from hypothesis import strategies as st
from written_out import Scalars, codes_of

import softfloat
from softfloat import ROSTER, Format, Rounding, SoftArray, bits, linalg
from softfloat.accumulators import chunked, exact, fma, mul_add, tensor_core
from softfloat.formats import float16
from softfloat.linalg import factors
from softfloat.linalg.steps import Steps
from softfloat.testing import strategies

MODES = [mode.name.lower() for mode in Rounding if not mode.draws]
FORMATS = [fmt for fmt in ROSTER.values() if fmt.zero and fmt.signed]
LU_MODES = [*itertools.product(FORMATS, MODES)]


def drawn(seed: int, m: int, n: int, fmt: Format, scale: float = 1.0) -> SoftArray:
    return softfloat.array(scale * np.random.default_rng(seed).standard_normal((m, n)), fmt)


def definite(seed: int, n: int, fmt: Format) -> SoftArray:
    a = np.random.default_rng(seed).standard_normal((n, n))
    return softfloat.array(a @ a.T / n + np.eye(n), fmt)


def same(found: Any, wanted: Any) -> None:
    assert found.codes.tolist() == wanted


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("fmt", "mode"), LU_MODES, ids=lambda x: getattr(x, "name", x))
def test_lu_of_every_format_in_every_mode(fmt: Format, mode: str) -> None:
    for n in range(1, 10):
        a, ops = drawn(n, n, n, fmt), Scalars(fmt, rounding=mode)
        with softfloat.environment(rounding=mode) as env:
            found = linalg.lu(a)
        wanted, rows, _ = written_out.lu(codes_of(a), ops)
        same(found.lu, wanted)
        assert found.rows.tolist() == rows
        assert int(found.flags) == int(env.status.flags) == ops.flags


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fused", [False, True])
def test_all_factorizations_in_half(mode: str, fused: bool) -> None:
    """Every function, in every mode, by both accumulators that add one product at a time."""
    for m, n in ((1, 1), (5, 3), (3, 5), (6, 6)):
        a, ops = drawn(10 * m + n, m, n, float16), Scalars(float16, fused, rounding=mode)
        b = drawn(3, n, 2, float16)
        with softfloat.environment(rounding=mode, accumulator=fma if fused else mul_add) as env:
            for pivot in ("none", "complete"):
                found = linalg.lu(a, pivot=pivot)
                factors, rows, columns = written_out.lu(codes_of(a), ops, pivot)
                same(found.lu, factors)
                assert (found.rows.tolist(), found.columns.tolist()) == (rows, columns)
            q, r = np.linalg.qr(a, "complete")
            wanted = written_out.qr(codes_of(a), ops, "complete")
            same(q, wanted[0])
            same(r, wanted[1])
            if m == n:
                columns = [written_out.solved(codes_of(a), [int(x) for x in b.codes[:, j]], ops) for j in range(2)]
                same(np.linalg.solve(a, b), written_out.turned(columns))
                same(np.linalg.inv(a), written_out.inverse(codes_of(a), ops))
                same(np.linalg.det(a), written_out.determinant(codes_of(a), ops))
                positive = definite(n, n, float16)
                same(np.linalg.cholesky(positive), written_out.cholesky(codes_of(positive), ops))
                for lower, unit in itertools.product((False, True), repeat=2):
                    x = linalg.solve_triangular(a, b[:, 0], lower=lower, unit=unit)
                    same(x, written_out.substituted(codes_of(a), codes_of(b.T)[0], ops, lower, unit))
                    x = linalg.solve_triangular(a.T, b[:, 0], lower=not lower, unit=unit, trans=True)
                    same(x, written_out.substituted(codes_of(a), codes_of(b.T)[0], ops, lower, unit))
        assert int(env.status.flags) == ops.flags


@pytest.mark.parametrize("mode", MODES)
def test_rotations(mode: str) -> None:
    for n in (1, 2, 3, 6):
        symmetric, a = definite(n, n, float16), drawn(n, n + n % 2, n, float16)
        ops = Scalars(float16, rounding=mode)
        with softfloat.environment(rounding=mode) as env:
            w, v = np.linalg.eigh(symmetric)
            wanted = written_out.eigen(codes_of(symmetric), ops)
            same(w, wanted[0])
            same(v, wanted[1])
            same(np.linalg.eigvalsh(symmetric), wanted[0])
            u, s, vt = np.linalg.svd(a, full_matrices=False)
            for found, right in zip((u, s, vt), written_out.singular(codes_of(a), ops), strict=True):
                same(found, right)
            same(np.linalg.svdvals(a), s.codes.tolist())
        assert int(env.status.flags) == ops.flags


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("fmt", "mode"), LU_MODES, ids=lambda x: getattr(x, "name", x))
def test_other_factorizations_of_every_format_in_every_mode(fmt: Format, mode: str) -> None:
    ops = Scalars(fmt, rounding=mode)
    a, symmetric, b = drawn(1, 4, 4, fmt), definite(2, 4, fmt), drawn(3, 4, 1, fmt)[:, 0]
    with softfloat.environment(rounding=mode) as env:
        factors, *_ = written_out.lu(codes_of(a), ops)
        if all(ops.value(factors[i][i]) for i in range(4)):
            same(np.linalg.solve(a, b), written_out.solved(codes_of(a), [int(x) for x in b.codes], ops))
        low = written_out.cholesky(codes_of(symmetric), ops)
        if isinstance(low, int):
            with pytest.raises(np.linalg.LinAlgError, match=f"element {low} of the diagonal"):
                np.linalg.cholesky(symmetric)
        else:
            same(np.linalg.cholesky(symmetric), low)
        for found, wanted in zip(np.linalg.qr(a), written_out.qr(codes_of(a), ops), strict=True):
            same(found, wanted)
        for found, wanted in zip(np.linalg.eigh(symmetric), written_out.eigen(codes_of(symmetric), ops), strict=True):
            same(found, wanted)
        linalg.lu(a)
    assert int(env.status.flags) == ops.flags


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e5m2fnuz", "float32"])
def test_compiled_panels_are_their_steps(name: str, fused: bool) -> None:
    """A trap has every step done by itself; flags are the same as well, and whether a pivot is positive."""

    def run(call: Any, x: SoftArray, **options: Any) -> Any:
        with softfloat.environment(accumulator=fma if fused else mul_add, **options) as env:
            try:
                codes = call(x).codes.tolist()
            except np.linalg.LinAlgError as failed:
                codes = str(failed)
            return codes, int(env.status.flags)

    for n in (3, 20):
        a = drawn(n, n, n, ROSTER[name])
        for call in (
            lambda x: linalg.lu(x).lu,
            lambda x: linalg.lu(x, pivot="none").lu,
            lambda x: linalg.solve_triangular(x, x[:, 0], lower=True),
            lambda x: np.linalg.qr(x).Q,
            np.linalg.cholesky,
        ):
            for x in (a, definite(n, n, ROSTER[name])):
                try:
                    wanted = run(call, x, traps="DIVBYZERO")
                except softfloat.FloatingPointTrap:
                    continue
                assert run(call, x) == wanted


@given(st.data(), st.just(float16) | formats(summed=True), st.sampled_from(["partial", "none", "complete"]))
def test_lu_of_any_codes(data: st.DataObject, fmt: Format, pivot: str) -> None:
    """Infinities, NaNs, subnormal numbers, and zeros, of which formats without subnormal numbers have many codes; NaNs as one class."""
    assume(fmt.signed)
    codes = np.array(data.draw(st.lists(strategies.codes(fmt), min_size=9, max_size=9)), fmt.dtype).reshape(3, 3)
    zeros = codes & fmt.dtype.type(fmt.sign_bit if fmt.signed_zero else 0)
    a, ops = softfloat.from_codes(codes, fmt), Scalars(fmt)
    found = linalg.lu(a, pivot=pivot)
    factors, rows, columns = written_out.lu(np.where(bits.iszero(codes, fmt), zeros, codes).tolist(), ops, pivot)
    wanted = softfloat.from_codes(np.array(factors, fmt.dtype), fmt)
    nan = np.isnan(wanted.values)
    np.testing.assert_array_equal(np.isnan(found.lu.values), nan)
    np.testing.assert_array_equal(found.lu.codes[~nan], wanted.codes[~nan])
    assert (found.rows.tolist(), found.columns.tolist(), int(found.flags)) == (rows, columns, ops.flags)


def test_zeros_of_other_codes_are_no_pivots() -> None:
    """0x0001 reads as zero where there are no subnormal numbers: it was a pivot, and divided."""
    fmt = Format("e5m10 flushed", exponent_bits=5, mantissa_bits=10, subnormals=False)
    a = softfloat.from_codes([[0x0001, 0x3C00], [0x8002, 0x4000]], fmt)
    assert linalg.lu(a).lu.codes.tolist() == [[0, 0x3C00], [0x8000, 0x4000]]
    assert linalg.lu(a).flags == softfloat.Flags(0)
    with pytest.raises(np.linalg.LinAlgError, match="a pivot is zero"):
        np.linalg.solve(a, a)
    with pytest.raises(np.linalg.LinAlgError, match="element 0 of the diagonal"):
        np.linalg.cholesky(a)
    assert np.linalg.qr(a).R.codes.tolist() == [[0, 0x3C00], [0, 0x4000]]


def test_rotations_beside_those_that_are_far_raise_nothing_more() -> None:
    """Of the pair (0, 3) theta is 0: 1/2 over it was computed, for the sake of the pair (1, 2), and raised DIVBYZERO."""
    a = np.diag([1.0, 1.0, 1000.0, 1.0])
    a[3, 0] = a[2, 1] = 0.5
    ops, x = Scalars(float16), softfloat.array(np.maximum(a, a.T), float16)
    with softfloat.environment() as env:
        found = np.linalg.eigh(x)
    for one, wanted in zip(found, written_out.eigen(codes_of(x), ops), strict=True):
        same(one, wanted)
    assert int(env.status.flags) == ops.flags == softfloat.Flags.INEXACT | softfloat.Flags.UNDERFLOW


def test_unit_diagonals_need_a_one() -> None:
    """The number nearest to 1 stood on them."""
    fmt = Format("e5m3 beyond", exponent_bits=5, mantissa_bits=3, bias=40)
    a = softfloat.from_codes([[240, 8], [8, 40]], fmt)
    found = linalg.lu(a)
    with pytest.raises(ValueError, match=r"softfloat\.linalg\.LU\.l needs a 1, and e5m3 beyond has none"):
        found.l  # noqa: B018
    assert found.backward_error(a) < 1
    with pytest.raises(ValueError, match=r"softfloat\.linalg\.ldl needs a 1, and e5m3 beyond has none"):
        linalg.ldl(a)


@given(st.data())
def test_lu_of_few_different_elements(data: st.DataObject) -> None:
    """Permuted rows, equal magnitudes, singular matrices."""
    m, n = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    elements = st.sampled_from([0.0, 1.0, -1.0, 2.0, 3.0, -3.0])
    numbers = data.draw(st.lists(elements, min_size=m * n, max_size=m * n))
    a, ops = softfloat.array(np.reshape(numbers, (m, n)), float16), Scalars(float16)
    found = linalg.lu(a)
    factors, rows, _ = written_out.lu(codes_of(a), ops)
    same(found.lu, factors)
    assert found.rows.tolist() == rows


ENVIRONMENTS: list[dict[str, Any]] = [{"overflow": "saturate"}, {"ftz": True}, {"daz": True, "ftz": True}]


@pytest.mark.parametrize("options", ENVIRONMENTS, ids=str)
def test_other_environments(options: dict[str, Any]) -> None:
    """Numbers so large and so small that overflow and underflow are met."""
    for seed, scale in ((1, 1e4), (2, 3e-5)):
        a, ops = drawn(seed, 9, 9, float16, scale), Scalars(float16, **options)
        with softfloat.environment(**options):
            found = linalg.lu(a)
        same(found.lu, written_out.lu(codes_of(a), ops)[0])
        assert int(found.flags) == ops.flags


# -- blocks ------------------------------------------------------------------------------------------------------------


def rooted(a: SoftArray, block: int | None) -> Any:
    codes = a.codes.copy()
    factors.factor(codes, Steps(a, "cholesky", block), "root")
    return np.tril(codes)


@pytest.mark.parametrize("mode", ["nearest_even", "toward_positive", "to_odd"])
def test_blocks_change_no_bit(mode: str) -> None:
    """Where products are added one at a time; n and blocks beyond those in which work is cut."""
    with softfloat.environment(rounding=mode):
        for n in (1, 9, 31, 130):
            a, s = drawn(n, n, n, float16), definite(n, n, float16)
            whole, root = linalg.lu(a, block=n), rooted(s, n)
            b = drawn(n + 1, n, 3, float16)
            x = linalg.solve_triangular(whole.u, b, block=n)
            for block in (1 if n < 99 else 3, 5, 8, 64, None):
                found = linalg.lu(a, block=block)
                np.testing.assert_array_equal(found.lu.codes, whole.lu.codes)
                np.testing.assert_array_equal(found.rows, whole.rows)
                np.testing.assert_array_equal(rooted(s, block), root)
                np.testing.assert_array_equal(linalg.solve_triangular(whole.u, b, block=block).codes, x.codes)


@pytest.mark.parametrize(
    "how", [exact("float16"), fma("float32"), chunked(4, "float16", "float32"), tensor_core("H100")]
)
def test_sums_of_other_accumulators(how: Any) -> None:
    """Each element is a sum of `block` products at a time, which starts from what is there and is rounded to the format."""
    n, block = 9, 4
    a = drawn(5, n, n, float16)
    found = linalg.lu(a, block=block, accumulator=how, pivot="none")
    codes = a.codes.copy()

    def less(i: int, j: int, first: int, last: int) -> None:
        start = softfloat.bits.convert(codes[i, j], "float16", how.partials)[0]
        terms = softfloat.bits.negative(codes[i, first:last], "float16")
        codes[i, j] = softfloat.bits.vecdot(terms, codes[first:last, j], "float16", how, start, out_format="float16")[0]

    for i, j in itertools.product(range(n), repeat=2):
        for first in range(0, min(i, j), block):
            less(i, j, first, min(first + block, i, j))
        if i > j:
            codes[i, j] = softfloat.bits.div(codes[i, j], codes[j, j], "float16")[0]
    np.testing.assert_array_equal(found.lu.codes, codes)
    with softfloat.environment(accumulator=how):
        np.testing.assert_array_equal(linalg.lu(a, block=block, pivot="none").lu.codes, codes)


PROGRAM = """
import numpy as np
import softfloat
from softfloat import linalg
a = softfloat.array(np.random.default_rng(0).standard_normal((5, 5)), "float16")
found = linalg.lu(a)
print(found.lu.codes.tolist(), found.flags, found.solve(a[0]).codes.tolist())
print(np.linalg.qr(a).R.codes.tolist(), np.linalg.cholesky(a @ a.T).codes.tolist())
"""


def test_plain_python_has_the_same_codes() -> None:
    found = []
    for disabled in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        found.append(run.stdout)
    assert found[0] == found[1] != ""


def test_stochastic_factors_are_fixed_by_the_seed() -> None:
    a = drawn(1, 20, 20, float16)
    found = []
    for seed in (1, 1, 2):
        with softfloat.environment(rounding="stochastic", seed=seed):
            found.append(linalg.lu(a).lu.codes.tolist())
    assert found[0] == found[1] != found[2]
