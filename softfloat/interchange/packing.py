"""Two elements of 4 bits in a byte, as PyTorch, NVIDIA's libraries and safetensors have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from softfloat.arrays import SoftArray, from_codes
from softfloat.bits.blocks.codes import PACKED_BITS, nibbles, packed_nibbles
from softfloat.engine import Codes, refuse_mask
from softfloat.formats import Format, check_format

__all__ = ["packed", "unpacked"]


def packed(x: SoftArray) -> Codes:
    """The codes of an array of a format of 4 bits, two to a byte along the last axis, the first in the low bits.

    Raises
    ------
    TypeError, ValueError
        If the format has another width, or the last axis an odd length.

    >>> import softfloat
    >>> packed(softfloat.from_codes([2, 7], "float4_e2m1fn"))
    array([114], dtype=uint8)
    """
    if not isinstance(x, SoftArray):
        raise TypeError(f"x must be a SoftArray, got {type(x).__name__}")
    _check_width(x.format, "x")
    if not x.ndim or x.shape[-1] % 2:
        raise ValueError(f"x must have an even number of elements along its last axis, got shape {x.shape}")
    return packed_nibbles(x.codes)


def unpacked(data: Any, fmt: Format | str = "float4_e2m1fn") -> SoftArray:
    """The array whose codes lie two to a byte as `packed` puts them; the last axis is twice as long.

    Parameters
    ----------
    data : array of uint8
        Of at least one axis; of a tensor of PyTorch's float4_e2m1fn_x2, `x.view(torch.uint8).numpy()`.
    fmt : Format or str
        Of 4 bits.

    >>> import numpy as np
    >>> unpacked(np.array([0x72], np.uint8))
    SoftArray([1., 6.], float4_e2m1fn)
    """
    fmt = check_format(fmt)
    _check_width(fmt, "fmt")
    refuse_mask(data, "data")
    array = np.asarray(data)
    if array.dtype != np.uint8 or not array.ndim:
        raise TypeError(
            f"data must be an array of uint8 with at least one axis, got {array.dtype} of shape {array.shape}"
        )
    return from_codes(nibbles(array), fmt)


def _check_width(fmt: Format, argument: str) -> None:
    if fmt.bits != PACKED_BITS:
        raise ValueError(f"{argument} must be of a format of {PACKED_BITS} bits, and {fmt} has {fmt.bits}")
