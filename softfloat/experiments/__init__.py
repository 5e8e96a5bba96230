"""Experiments: functions that compute and return data, for the command line, notebooks and tests alike.

`swamping` sums small numbers, `overflow` and `underflow` leave the range at either end, `scaling` multiplies by a power
of two, `squares` computes a variance, `claims` puts them beside what tutorials have published about half precision.
`accumulation` sums in chunks, in blocks and stochastically, beside what error analysis says of that; `random_bits`
rounds stochastically with few of them. `truncation` shows a conversion that does not round.
`numerics` has what papers of numerical analysis have published, computed again.
`training` passes a small network's gradients through a narrow format. `quantisation` has what scales of blocks lose, and sums of fp8.
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
from softfloat.experiments.claims import Claim, Claims, Report, Verdict, reproduce
from softfloat.experiments.overflow import (
    ConversionCase,
    ExceptionCase,
    conversion_cases,
    exception_cases,
    overflow_cases,
    traps_that_stop,
)
from softfloat.experiments.quantisation import RuleLosses, WidthLoss, accumulation_widths, scale_rule_losses
from softfloat.experiments.random_bits import FewBitsSum, RoundingChance, few_random_bits, rounding_chances
from softfloat.experiments.scaling import Scaling, loss_scaling
from softfloat.experiments.squares import Variance, variance
from softfloat.experiments.swamping import RunningSum, Spread, running_sum, spread, sums_across, walk_moments
from softfloat.experiments.training import Training, train, train_scaled
from softfloat.experiments.truncation import Truncation, software_half, truncation
from softfloat.experiments.underflow import UnderflowCase, underflow_cases, underflow_threshold

__all__ = [
    "Accumulation",
    "BlockError",
    "ChunkError",
    "Claim",
    "Claims",
    "ConversionCase",
    "DotError",
    "ExceptionCase",
    "FewBitsSum",
    "Report",
    "RoundingChance",
    "RuleLosses",
    "RunningSum",
    "Scaling",
    "Spread",
    "SumError",
    "Training",
    "Truncation",
    "UnderflowCase",
    "Variance",
    "Verdict",
    "WidthLoss",
    "accumulation_widths",
    "block_fma_bounds",
    "chunking",
    "conversion_cases",
    "dot_swamping",
    "exception_cases",
    "few_random_bits",
    "loss_scaling",
    "overflow_cases",
    "reproduce",
    "rounding_chances",
    "running_sum",
    "scale_rule_losses",
    "software_half",
    "spread",
    "stochastic_sums",
    "sums_across",
    "train",
    "train_scaled",
    "traps_that_stop",
    "truncation",
    "underflow_cases",
    "underflow_threshold",
    "variance",
    "walk_moments",
]
