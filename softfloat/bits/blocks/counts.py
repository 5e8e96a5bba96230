"""What quantising did to the elements of each block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softfloat import engine
from softfloat.bits.blocks.codes import BlockCodes
from softfloat.bits.blocks.elements import element_values
from softfloat.bits.blocks.numbers import Layout, magnitude_bits
from softfloat.bits.blocks.scales import Masks, values_of
from softfloat.engine import Codes
from softfloat.status import Flags

OVERFLOW, UNDERFLOW = int(Flags.OVERFLOW), int(Flags.UNDERFLOW)


@dataclass(frozen=True, eq=False)
class BlockCounts:
    """What quantising did to the elements of each block; arrays of the scales' shape.

    Attributes
    ----------
    saturated : array of int64
        Elements that raised OVERFLOW: their rounded value exceeded the largest element.
    underflowed : array of int64
        Elements that raised UNDERFLOW.
    zeroed : array of int64
        Elements that decode as zero and were not: they became zero, or their block's scale did, as that of NVFP4 does where
        a block is far below the tensor's largest magnitude. The latter ones raised what their elements raised, often OVERFLOW.
    """

    saturated: np.ndarray[Any, Any]
    underflowed: np.ndarray[Any, Any]
    zeroed: np.ndarray[Any, Any]


def counts_of(numbers: np.ndarray[Any, Any], blocks: BlockCodes, flags: Codes, layout: Layout) -> BlockCounts:
    """What was done to the elements of each block."""
    element_zero = element_values(blocks.elements, blocks.format.element) == 0
    scale_zero = layout.spread(values_of(blocks.scales, blocks.format.scale) == 0)
    became_zero = (element_zero | scale_zero) & (magnitude_bits(numbers) > 0) & ~layout.spread(void_of(blocks))

    def of_blocks(mask: Masks) -> np.ndarray[Any, Any]:
        return np.asarray(layout.rows(mask).sum(axis=-1, dtype=np.int64))

    return BlockCounts(of_blocks((flags & OVERFLOW) != 0), of_blocks((flags & UNDERFLOW) != 0), of_blocks(became_zero))


def void_of(blocks: BlockCodes) -> Masks:
    """Blocks whose scale is NaN."""
    return np.asarray(engine.is_nan(blocks.scales, blocks.format.scale))
