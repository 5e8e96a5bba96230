"""The functions: how each one's value is found, a row each."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from softfloat.bits.functions import bounds, exactness, precise

__all__ = ["FUNCTIONS", "Function"]


class Function(NamedTuple):
    """How to find a function's value: an interval, the theorem on exact results, mpmath."""

    bounds: Callable[..., bounds.Bounds]
    precise: Callable[..., precise.Number]
    exact: Callable[..., bounds.Exact] = exactness.never
    symmetric: bool = False  # of two operands, the greater comes first to `precise`
    rational: Callable[..., Fraction | None] | None = (
        None  # the exact value of one row of operands, where `exact` has not all of them
    )


LN2, LN10 = math.log(2.0), math.log(10.0)

FUNCTIONS = {
    "exp": Function(bounds.from_one(np.exp, bounds.FAR, 1.0), precise.named("mpf_exp")),
    "exp2": Function(
        bounds.from_one(np.exp2, 520.0, LN2),
        precise.exp("mpf_ln2"),
        exactness.exp2,
        rational=partial(exactness.rational_power, 2.0),
    ),
    "exp10": Function(
        bounds.from_one(lambda x: np.power(10.0, x), 160.0, LN10),
        precise.exp("mpf_ln10"),
        exactness.exp10,
        rational=exactness.rational_power_of_ten,
    ),
    "expm1": Function(bounds.expm1, precise.expm1),
    "log": Function(bounds.library(np.log), precise.named("mpf_log")),
    "log2": Function(bounds.library(np.log2), precise.log("mpf_ln2"), exactness.log2),
    "log10": Function(bounds.library(np.log10), precise.log("mpf_ln10"), exactness.log10),
    "log1p": Function(bounds.log1p, precise.log1p),
    "sin": Function(bounds.odd(bounds.periodic(np.sin), -1 / 6), precise.named("mpf_sin")),
    "cos": Function(bounds.even(bounds.periodic(np.cos), np.sin, -1), precise.named("mpf_cos")),
    "tan": Function(bounds.odd(bounds.periodic(np.tan), 1 / 3), precise.named("mpf_tan")),
    "asin": Function(bounds.odd(bounds.library(np.arcsin), 1 / 6), precise.named("mpf_asin")),
    "acos": Function(bounds.library(np.arccos), precise.named("mpf_acos")),
    "atan": Function(bounds.odd(bounds.library(np.arctan), -1 / 3), precise.named("mpf_atan")),
    "sinh": Function(bounds.odd(bounds.library(np.sinh, bounds.FAR), 1 / 6), precise.named("mpf_sinh")),
    "cosh": Function(bounds.even(bounds.library(np.cosh, bounds.FAR), np.sinh, 1), precise.named("mpf_cosh")),
    "tanh": Function(bounds.odd(bounds.tanh, -1 / 3), precise.named("mpf_tanh")),
    "asinh": Function(bounds.odd(bounds.library(np.arcsinh), -1 / 6), precise.named("mpf_asinh")),
    "acosh": Function(bounds.library(np.arccosh), precise.named("mpf_acosh")),
    "atanh": Function(bounds.odd(bounds.library(np.arctanh), 1 / 3), precise.named("mpf_atanh")),
    "cbrt": Function(bounds.library(np.cbrt), precise.cbrt, exactness.cbrt, rational=exactness.rational_root),
    "degrees": Function(bounds.library(lambda x: x * (180.0 / math.pi)), precise.degrees),
    "radians": Function(bounds.library(lambda x: x * (math.pi / 180.0)), precise.radians),
    "pow": Function(bounds.pow, precise.pow, exactness.pow, rational=exactness.rational_power),
    "atan2": Function(bounds.atan2, precise.atan2),
    "logaddexp": Function(bounds.log_of_sum(np.exp, 1.0), precise.log_of_sum(""), symmetric=True),
    "logaddexp2": Function(
        bounds.log_of_sum(np.exp2, 1 / LN2), precise.log_of_sum("mpf_ln2"), exactness.log2_of_sum, symmetric=True
    ),
}
