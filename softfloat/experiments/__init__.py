"""Experiments: functions that compute and return data, for the command line, notebooks and tests alike.

`swamping` sums small numbers, `overflow` and `underflow` leave the range at either end, `scaling` multiplies by a power
of two, `squares` computes a variance, `claims` puts them beside what tutorials have published about half precision.
`accumulation` sums in chunks, in blocks and stochastically, beside what error analysis says of that.
"""

from softfloat.experiments.accumulation import (
    Accumulation,
    BlockError,
    ChunkError,
    DotError,
    SumError,
    block_fma_bounds,
    chunking,
    dot_swamping,
    stochastic_sums,
)
from softfloat.experiments.claims import Claim, Report, Verdict, reproduce
from softfloat.experiments.overflow import ExceptionCase, exception_cases, overflow_cases, traps_that_stop
from softfloat.experiments.scaling import Scaling, loss_scaling
from softfloat.experiments.squares import Variance, variance
from softfloat.experiments.swamping import RunningSum, Spread, running_sum, spread, sums_across, walk_moments
from softfloat.experiments.underflow import UnderflowCase, underflow_cases, underflow_threshold

__all__ = [
    "Accumulation",
    "BlockError",
    "ChunkError",
    "Claim",
    "DotError",
    "ExceptionCase",
    "Report",
    "RunningSum",
    "Scaling",
    "Spread",
    "SumError",
    "UnderflowCase",
    "Variance",
    "Verdict",
    "block_fma_bounds",
    "chunking",
    "dot_swamping",
    "exception_cases",
    "loss_scaling",
    "overflow_cases",
    "reproduce",
    "running_sum",
    "spread",
    "stochastic_sums",
    "sums_across",
    "traps_that_stop",
    "underflow_cases",
    "underflow_threshold",
    "variance",
    "walk_moments",
]
