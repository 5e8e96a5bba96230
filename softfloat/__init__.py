"""Bit-exact software floating point for narrow formats: every rounding mode, every flag, at the speed of compiled code.

`softfloat.array` makes NumPy-like arrays that compute in a format; `softfloat.bits` computes on integer codes;
`softfloat.Format` says what codes mean; `softfloat.environment` says how to round, what overflow does and what to do about
exceptions; `softfloat.reference` is the oracle everything is checked against.

>>> import softfloat
>>> softfloat.array([0.1, 0.25], softfloat.float16) + 0.5
SoftArray([0.6 , 0.75], float16)
>>> softfloat.bits.encode(0.1, softfloat.float16)
(np.uint16(11878), np.uint8(1))
"""

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

# In a checkout kernels/ lies beside this folder. Three of its files are asked for: a folder of that name beside an installed package is another's.
if not Path(__file__).with_name("kernels").joinpath("spec.py").is_file() and all(
    (Path(__file__).parents[1] / "kernels" / x).is_file() for x in ("__init__.py", "carrier.py", "spec.py")
):
    __path__.append(str(Path(__file__).parents[1]))
    importlib.import_module(f"{__name__}.kernels")
    __path__.pop()

from softfloat import accumulators as accumulators
from softfloat import analysis as analysis
from softfloat import bits as bits
from softfloat import formats as formats
from softfloat import linalg as linalg
from softfloat.accumulators import Accumulator
from softfloat.arrays import (
    DType,
    SoftArray,
    arange,
    array,
    array_namespace,
    asarray,
    empty,
    empty_like,
    from_codes,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from softfloat.blocks import Fixed
from softfloat.blocks import formats as _block_formats
from softfloat.blocks.formats import *
from softfloat.engine import get_num_threads, set_num_threads
from softfloat.environments import (
    Environment,
    InfiniteInput,
    Overflow,
    Rounding,
    StochasticRounding,
    Tininess,
    current_environment,
    environment,
)
from softfloat.formats import *
from softfloat.interchange import load, save
from softfloat.positions import Position
from softfloat.rounding import round
from softfloat.status import Flags, FloatingPointTrap, Status

if TYPE_CHECKING:  # what importing leaves to the first use
    from softfloat import chop as chop
    from softfloat import commands as commands
    from softfloat import dask as dask
    from softfloat import display as display
    from softfloat import examples as examples
    from softfloat import experiments as experiments
    from softfloat import export as export
    from softfloat import jit as jit
    from softfloat import onnx as onnx
    from softfloat import recipes as recipes
    from softfloat import reference as reference
    from softfloat import scaling as scaling
    from softfloat import testing as testing
    from softfloat import torch as torch

__version__ = "0.1.0"

__all__ = [
    "Accumulator",
    "DType",
    "Environment",
    "Fixed",
    "Flags",
    "FloatingPointTrap",
    "InfiniteInput",
    "Overflow",
    "Position",
    "Rounding",
    "SoftArray",
    "Status",
    "StochasticRounding",
    "Tininess",
    "accumulators",
    "arange",
    "array",
    "array_namespace",
    "asarray",
    "bits",
    "current_environment",
    "empty",
    "empty_like",
    "environment",
    "from_codes",
    "full",
    "full_like",
    "get_num_threads",
    "linspace",
    "load",
    "ones",
    "ones_like",
    "round",
    "save",
    "set_num_threads",
    "zeros",
    "zeros_like",
]
__all__ += _block_formats.__all__
__all__ += formats.__all__

_LATE = dict.fromkeys(
    (
        "chop",
        "commands",
        "cuda",
        "display",
        "examples",
        "experiments",
        "export",
        "jit",
        "recipes",
        "reference",
        "scaling",
        "testing",
    ),
    "",
) | {name: name for name in ("dask", "onnx", "torch")}
"""Module that is imported when it is first asked for -> the package without which it cannot be: an extra of that name brings it."""


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    here = {name for name, needed in _LATE.items() if not needed or importlib.util.find_spec(needed)}
    return sorted({*globals(), *here})
