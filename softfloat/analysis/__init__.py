"""Rounding errors, bounded and measured: bounds, backward errors, operations with their errors, and what a program loses where."""

from softfloat.analysis.bounds import bound, gamma, gamma_tilde, unit_roundoff
from softfloat.analysis.measures import backward_error, condition
from softfloat.analysis.repetitions import Digits, digits
from softfloat.analysis.shadows import Shadow
from softfloat.analysis.traces import Line, trace
from softfloat.analysis.transformations import (
    augmented_addition,
    augmented_multiplication,
    augmented_subtraction,
    fast_two_sum,
    two_prod,
    two_sum,
)

__all__ = [
    "Digits",
    "Line",
    "Shadow",
    "augmented_addition",
    "augmented_multiplication",
    "augmented_subtraction",
    "backward_error",
    "bound",
    "condition",
    "digits",
    "fast_two_sum",
    "gamma",
    "gamma_tilde",
    "trace",
    "two_prod",
    "two_sum",
    "unit_roundoff",
]
