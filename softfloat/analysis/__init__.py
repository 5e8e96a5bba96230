"""Rounding errors, bounded and measured: gamma, backward errors, condition numbers, operations with their errors."""

from softfloat.analysis.bounds import bound, gamma, gamma_tilde, unit_roundoff
from softfloat.analysis.measures import backward_error, condition
from softfloat.analysis.transformations import fast_two_sum, two_prod, two_sum

__all__ = [
    "backward_error",
    "bound",
    "condition",
    "fast_two_sum",
    "gamma",
    "gamma_tilde",
    "two_prod",
    "two_sum",
    "unit_roundoff",
]
