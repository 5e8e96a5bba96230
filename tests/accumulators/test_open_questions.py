"""What sources leave open or say in one line, each in the one row where it decides: values by hand, and the oracle's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softfloat import ROSTER, Position, bits
from softfloat.accumulators import Accumulator, arm_fdot, arm_fmmla, chunked, compensated, fixed_point, tensor_core
from softfloat.reference import dots

BF16, F16 = ROSTER["bfloat16"], ROSTER["float16"]


def row(
    how: Accumulator, fmt: Any, a: list[float], b: list[float], c: int, oracle: Callable[..., Any], *more: Any
) -> int:
    x, y = (bits.encode(values, fmt)[0] for values in (a, b))
    code, flags = bits.vecdot(x, y, fmt, how, c)
    assert oracle(x.tolist(), y.tolist(), (fmt, fmt), *more, c=c) == (int(code), int(flags))
    return int(code)


@pytest.mark.parametrize(
    ("switches", "a", "b", "default_code", "chosen_code"),
    [
        ((None, None, False), [-(2.0**-133)], [2.0**-20], 0, 0x80000000),  # -2^-153, cut to zero
        ((None, -300, True), [255 * 2.0**-80, 2.0**-80], [2.0**-77] * 2, 0, 1),  # 2^-149, of terms on a grid of 2^-156
        ((-126, None, True), [0.0, 2.0**-30], [2.0**127, 1.0], 0x30800000, 0),  # 0 * 2^127 counts as 2^1
    ],
)
def test_tensor_cores(
    switches: tuple[Any, ...], a: list[float], b: list[float], default_code: int, chosen_code: int
) -> None:
    core = "A100", "bfloat16", "float32", None
    words = dict(zip(("zero_exponent", "exponent_floor", "positive_zeros"), switches, strict=True))
    assert row(tensor_core(*core), BF16, a, b, 0, dots.tensor_core, *core) == default_code
    assert row(tensor_core(*core, **words), BF16, a, b, 0, dots.tensor_core, *core, *switches) == chosen_code


@pytest.mark.parametrize(
    ("fmt", "output", "a", "b", "code"),
    [
        ("bfloat16", "float32", [0x9700], [0x1580], 0),  # -2^-165
        ("float16", "float16", [0x0080], [0x8020], 0),  # rounded to zero
        ("float8_e5m2", "float16", [0x01], [0x81], 0),
        (
            "float16",
            "float16",
            [0x0001, 0x8400],
            [0x0002, 0x9000],
            0,
        ),  # 2^-25 + 2^-47, which lies below the grid: a tie
    ],
)
def test_what_an_h100_does(fmt: str, output: str, a: list[int], b: list[int], code: int) -> None:
    """The smallest rows, as read off the chip, in which another sign of zero or another floor shows."""
    core = "H100", fmt, output, None
    found, flags = bits.vecdot(np.array(a), np.array(b), fmt, tensor_core(*core))
    assert int(found) == code
    assert dots.tensor_core(a, b, (ROSTER[fmt],) * 2, *core) == (code, int(flags))


def test_double_precision_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"float64.* chain of fused multiply-adds"):
        tensor_core("H100", "float64")


@pytest.mark.parametrize(("how", "oracle"), [(arm_fdot(), dots.arm_fdot), (arm_fmmla(), dots.arm_fmmla)])
def test_zeros_of_one_sign_keep_it(how: Accumulator, oracle: Callable[..., Any]) -> None:
    zeros, ones = [-0.0] * 4, [1.0] * 4
    assert row(how, F16, zeros, ones, 0x80000000, oracle) == 0x80000000
    assert row(how, F16, [0.0, *zeros[1:]], ones, 0x80000000, oracle) == 0


def test_pairs_are_rounded_before_they_meet() -> None:
    """Of 2^24 + 1 and -2^24 the first pair keeps nothing of its 1 in float32; an exact sum of all four would."""
    a, b = [4096.0, 1.0, -4096.0, 0.0], [4096.0, 1.0, 4096.0, 0.0]
    assert math.fsum(x * y for x, y in zip(a, b, strict=True)) == 1
    assert row(arm_fmmla(), F16, a, b, 0, dots.arm_fmmla) == 0


SEVERAL = [compensated("float16", method) for method in ("kahan", "neumaier", "two_term")]
SEVERAL += [fixed_point(24, -12, "float16"), arm_fmmla().replace(name="leaves", segment=None)]


@pytest.mark.parametrize("inner", SEVERAL, ids=str)
def test_segments_draw_what_the_whole_draws(inner: Accumulator) -> None:
    """However many roundings a product takes: cut where the accumulator cuts, and joined, the bits are the whole's."""
    random = np.random.default_rng(0)
    a, b = (random.integers(0x3000, 0x4000, (5, 20)).astype(np.uint16) for _ in "ab")
    how = chunked(8, inner, "float16")
    words: dict[str, Any] = {"rounding": "stochastic", "seed": 3, "stream": 1}
    parts = [
        bits.vecdot(a[:, i:j], b[:, i:j], F16, how, position=Position(segment=n, k=20), **words)[0]
        for n, (i, j) in enumerate(bits.segments(how, 20))
    ]
    joined = bits.join_segments(np.array(parts), F16, how, k=20, **words)[0]
    np.testing.assert_array_equal(joined, bits.vecdot(a, b, F16, how, **words)[0])
