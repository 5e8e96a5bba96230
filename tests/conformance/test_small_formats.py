"""All pairs of every 8-bit (and narrower) format for add, mul and div, against a table that owes nothing to the library.

A sum, product or quotient of two such numbers is computed in float64, where rounding first is innocuous (53 >= 2p +
2) and where no inexact quotient lands on a value of the format. It is then looked up: the sorted table of the
format's values, continued by one beyond the largest, gives the two neighbours; the nearer one is chosen, of a tie the
even code.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from softfloat import bits

NAMES = [
    "float8_e5m2",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e4m3b11fnuz",
    "float8_e3m4",
]
NAMES += ["float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"]
WIDTHS = {"float6": 6, "float4": 4}


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """(values of all codes, magnitudes of the finite codes in order), both from ml_dtypes."""
    codes = np.arange(2 ** WIDTHS.get(name[:6], 8), dtype=np.uint8)
    values = codes.view(getattr(ml_dtypes, name)).astype(np.float64)
    positive = values[: codes.size // 2]
    return values, positive[np.isfinite(positive)]


def expected_codes(
    exact: np.ndarray, zero_negative: np.ndarray, name: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(codes, inexact, overflow) of finite exact results; codes of overflowed ones are -1."""
    values, magnitudes = table(name)
    sign = values.size // 2
    beyond = 2 * magnitudes[-1] - magnitudes[-2]
    grid = np.append(magnitudes, beyond)
    magnitude = np.abs(exact)
    high = np.clip(np.searchsorted(grid, magnitude), 1, grid.size - 1)
    low = high - 1
    to_low, to_high = magnitude - grid[low], grid[high] - magnitude
    chosen = np.where((to_high < to_low) | ((to_high == to_low) & (high % 2 == 0)), high, low)
    chosen = np.where(magnitude >= beyond, grid.size - 1, chosen)
    negative = np.where(exact == 0, zero_negative, exact < 0)
    if name.endswith("fnuz"):
        negative &= chosen != 0
    overflow = chosen == grid.size - 1
    return np.where(overflow, -1, chosen + sign * negative), grid[chosen] != magnitude, overflow


@pytest.mark.parametrize("operation", ["add", "mul", "div"])
@pytest.mark.parametrize("name", NAMES)
def test_all_pairs(name: str, operation: str) -> None:
    values, _ = table(name)
    codes = np.arange(values.size, dtype=np.uint8)
    a, b = (x.ravel() for x in np.meshgrid(codes, codes, indexing="ij"))
    x, y = values[a], values[b]
    compute = {"add": np.add, "mul": np.multiply, "div": np.divide}[operation]
    with np.errstate(all="ignore"):
        exact = compute(x, y)
    found, flags = getattr(bits, operation)(a, b, name)
    finite = np.isfinite(exact)
    wanted, inexact, overflow = expected_codes(np.where(finite, exact, 0), np.signbit(exact), name)
    settled = finite & ~overflow
    assert np.array_equal(found[settled], wanted[settled])
    assert np.array_equal((flags[settled] & 1) != 0, inexact[settled])
    assert np.array_equal((flags & 4) != 0, finite & overflow)
    tiny = float(ml_dtypes.finfo(getattr(ml_dtypes, name)).smallest_normal)
    assert not (flags[settled & (np.abs(exact) >= tiny)] & 2).any()
    assert ((flags[settled & inexact & (values[found] < tiny) & (values[found] > -tiny)] & 2) != 0).all()
    assert np.array_equal(
        np.isnan(values[found[~finite & np.isnan(exact)]]),
        np.full((~finite & np.isnan(exact)).sum(), name.startswith("float8")),
    )
    new_nan = np.isnan(exact) & ~np.isnan(x) & ~np.isnan(y)
    assert ((flags[new_nan] & 16) != 0).all()
    by_zero = np.isinf(exact) & np.isfinite(x) & np.isfinite(y)
    assert np.array_equal((flags & 8) != 0, by_zero)
    largest = values[bits.decode(codes, name).argmax() if not name.startswith("float8") else 0]
    if name in ("float8_e5m2", "float8_e4m3", "float8_e3m4"):
        assert np.isinf(values[found[overflow & finite]]).all()
    elif name.startswith("float8"):
        assert np.isnan(values[found[overflow & finite]]).all()
    else:
        assert (np.abs(values[found[overflow & finite]]) == largest).all()


def test_rounding_after_float64_is_innocuous() -> None:
    """The premise above: 53 >= 2p + 2, and the widest sum of the widest format fits 53 bits."""
    for name in NAMES:
        _, magnitudes = table(name)
        precision = ml_dtypes.finfo(getattr(ml_dtypes, name)).nmant + 1
        assert 2 * precision + 2 <= 53
        assert magnitudes[-1] / magnitudes[1] < 2**52
