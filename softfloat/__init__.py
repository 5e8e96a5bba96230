"""Bit-exact software floating point for narrow formats: every rounding mode, every flag, at the speed of compiled code.

`softfloat.bits` computes on integer codes; `softfloat.Format` says what codes mean; `softfloat.environment` says how
to round, what overflow does and what to do about exceptions; `softfloat.reference` is the oracle everything is
checked against.

>>> import softfloat
>>> softfloat.bits.encode(0.1, softfloat.float16)
(np.uint16(11878), np.uint8(1))
"""

from softfloat import accumulators, bits
from softfloat._engine import get_num_threads, set_num_threads
from softfloat.accumulators import Accumulator
from softfloat.environment import (
    Environment,
    InfiniteInput,
    Overflow,
    Rounding,
    StochasticRounding,
    Tininess,
    current_environment,
    environment,
)
from softfloat.formats import (
    ROSTER,
    Format,
    bfloat16,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    tfloat32,
)
from softfloat.status import Flags, FloatingPointTrap, Status

__version__ = "0.1.0"

__all__ = [
    "ROSTER",
    "Accumulator",
    "Environment",
    "Flags",
    "FloatingPointTrap",
    "Format",
    "InfiniteInput",
    "Overflow",
    "Rounding",
    "Status",
    "StochasticRounding",
    "Tininess",
    "accumulators",
    "bfloat16",
    "bits",
    "current_environment",
    "environment",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "get_num_threads",
    "set_num_threads",
    "tfloat32",
]
