"""Codes of blocks: elements, the scales they share, and how blocks lie in the array."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from softfloat.blocks import BlockFormat
from softfloat.blocks.formats import block_text, check_block_format
from softfloat.engine import Codes, check_codes, refuse_mask
from softfloat.formats import Format
from softfloat.frozen import settle

__all__ = ["BlockCodes"]

PACKED_BITS = 4
"""Elements as wide are packed, two in a byte."""


@dataclass(frozen=True, eq=False, repr=False)
class BlockCodes:
    """An array in a block format: the codes of its elements and of their scales.

    `softfloat.bits.quantize` makes them from numbers, `dequantize` numbers from them. The value of an element is
    tensor scale * scale of its block * element, exactly.

    Parameters
    ----------
    elements : array_like of int
        Codes of `format.element`, of any shape.
    scales : array_like of int
        Codes of `format.scale`, one for each block: along every axis as many as blocks begin there, a short last one too.
        The shape is `elements.shape` divided by `block_shape`, rounded up.
    format : BlockFormat or its name
    axis : int
        The axis along which blocks lie; in a product of matrices, the one that is summed over. Kept as 0, 1 ...
    block : int or tuple of int, optional
        The block's size, or its shape in the last axes, in place of `format.block`.
    tensor_scale : float, optional
        The scale of the whole tensor, a number of `format.tensor_scale`; None: there is none.

    Attributes
    ----------
    elements, scales : array
        Of `format.element.dtype` and `format.scale.dtype`.
    block_shape : tuple of int
        The shape of a block: 1 along every axis that it does not reach over.
    tensor_scale : numpy.float32 or None

    Raises
    ------
    TypeError, ValueError
        Naming the argument: codes that the format does not have, scales of another shape.

    >>> BlockCodes([0x2, 0x7, 0xF, 0x0], [0x80], "mxfp4")
    BlockCodes(mxfp4_e2m1, shape (4,), blocks of 32 along axis 0, scales of shape (1,))
    """

    elements: Codes
    scales: Codes
    format: BlockFormat
    axis: int
    block_shape: tuple[int, ...]
    tensor_scale: np.float32 | None

    def __init__(
        self,
        elements: Any,
        scales: Any,
        format: BlockFormat | str,
        *,
        axis: int = -1,
        block: int | tuple[int, ...] | None = None,
        tensor_scale: Any = None,
    ) -> None:
        fmt = check_block_format(format, "format")
        codes = check_codes(elements, fmt.element, "elements")
        shape = fmt.block_shape(codes.ndim, axis, block)
        found = check_codes(scales, fmt.scale, "scales")
        wanted = tuple(-(-n // b) for n, b in zip(codes.shape, shape, strict=True))
        if found.shape != wanted:
            raise ValueError(
                f"scales must be of shape {wanted}, one for each block of {block_text(shape)} of elements of shape {codes.shape}, "
                f"got {found.shape}"
            )
        self._settle(codes, found, fmt, axis % codes.ndim, shape, check_tensor_scale(tensor_scale, fmt))

    def _settle(self, *fields: Any) -> None:
        settle(self, **dict(zip(BlockCodes.__dataclass_fields__, fields, strict=True)))

    @classmethod
    def made(
        cls,
        elements: Codes,
        scales: Codes,
        format: BlockFormat,
        axis: int,
        block_shape: tuple[int, ...],
        tensor_scale: Any,
    ) -> BlockCodes:
        """Of parts that fit, an axis counted from the first, and a checked scale of the tensor."""
        found = cls.__new__(cls)
        found._settle(elements, scales, format, axis, block_shape, tensor_scale)
        return found

    # -- shapes
    # ---------------------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of `elements`."""
        return self.elements.shape

    @property
    def ndim(self) -> int:
        """Axes of `elements`."""
        return self.elements.ndim

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self.elements.size

    @property
    def nbytes(self) -> int:
        """Bytes of elements and scales as hardware stores them: elements of 4 bits two to a byte, others one to as many as it takes."""
        bits = self.format.element.bits
        each = (
            -(-self.elements.size // 2)
            if bits == PACKED_BITS
            else self.elements.size * self.format.element.dtype.itemsize
        )
        return each + self.scales.nbytes

    def spread(self, of_blocks: Any) -> np.ndarray[Any, Any]:
        """An array of one entry for each block as one of an entry for each element.

        >>> BlockCodes([1, 2, 3], [0x7F, 0x80], "mxfp4", block=2).spread(np.array([10, 20]))
        array([10, 10, 20])
        """
        refuse_mask(of_blocks, "of_blocks")
        array = np.asarray(of_blocks)
        if array.shape != self.scales.shape:
            raise ValueError(f"of_blocks must be of the scales' shape {self.scales.shape}, got {array.shape}")
        return spread(array, self.block_shape, self.shape)

    # -- packing
    # --------------------------------------------------------------------------------------------------------------

    def packed(self) -> Codes:
        """Elements as bytes: those of 4 bits two to a byte along the last axis, the first in the low nibble; others as they are.

        Raises
        ------
        ValueError
            If the last axis has an odd number of elements of 4 bits.

        Source
        ------
        The layout of torch.float4_e2m1fn_x2 and of NVIDIA's and torchao's tensors.
        """
        if self.format.element.bits != PACKED_BITS:
            return self.elements.copy()
        if self.shape[-1] % 2:
            raise ValueError(
                f"two elements of 4 bits go in a byte: the last axis must have an even number of them, got {self.shape[-1]}"
            )
        return packed_nibbles(self.elements)

    @classmethod
    def from_packed(
        cls,
        packed: Any,
        scales: Any,
        format: BlockFormat | str,
        *,
        axis: int = -1,
        block: int | tuple[int, ...] | None = None,
        tensor_scale: Any = None,
    ) -> BlockCodes:
        """The blocks whose elements are packed as `packed` does; the other arguments are those of the class.

        >>> BlockCodes.from_packed(np.array([0x72], np.uint8), [0x80], "mxfp4").elements
        array([2, 7], dtype=uint8)
        """
        fmt = check_block_format(format, "format")
        elements = packed
        if fmt.element.bits == PACKED_BITS:
            refuse_mask(packed, "packed")
            array = np.asarray(packed)
            if array.dtype != np.uint8 or not array.ndim:
                raise TypeError(
                    f"packed must be an array of uint8 with two elements in each, got {array.dtype} of shape {array.shape}"
                )
            elements = nibbles(array)
        return cls(elements, scales, fmt, axis=axis, block=block, tensor_scale=tensor_scale)

    def __repr__(self) -> str:
        lengths = [n for n in self.block_shape if n > 1]
        blocks = (
            f"{block_text(tuple(lengths))} along axis {self.axis}" if len(lengths) < 2 else block_text(self.block_shape)
        )
        tensor = "" if self.tensor_scale is None else f", tensor scale {self.tensor_scale:.9g}"
        return f"BlockCodes({self.format}, shape {self.shape}, blocks of {blocks}, scales of shape {self.scales.shape}{tensor})"


def packed_nibbles(codes: Codes) -> Codes:
    """Codes of 4 bits two to a byte along the last axis, of even length, the first in the low nibble."""
    return np.asarray(codes[..., 0::2] | codes[..., 1::2] << PACKED_BITS)


def nibbles(array: Codes) -> Codes:
    """Bytes as codes of 4 bits, the low nibbles first; the last axis becomes twice as long."""
    return np.stack([array & 0xF, array >> PACKED_BITS], axis=-1).reshape(*array.shape[:-1], 2 * array.shape[-1])


def spread(array: np.ndarray[Any, Any], block: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """One entry for each block as one for each element."""
    for axis, length in enumerate(block):
        if length > 1:
            array = np.repeat(array, length, axis=axis)
    return array[tuple(slice(n) for n in shape)]


def scale_in_place(values: np.ndarray[Any, Any], array: np.ndarray[Any, Any], block: tuple[int, ...]) -> None:
    """Elements multiplied by the one entry of their block."""
    if any(size % length for size, length in zip(values.shape, block, strict=True)):
        values *= spread(array, block, values.shape)
        return
    parts = [x for size, length in zip(values.shape, block, strict=True) for x in (size // length, length)]
    values.reshape(parts)[...] *= array.reshape([x for size in array.shape for x in (size, 1)])


def check_tensor_scale(value: Any, fmt: BlockFormat) -> np.float32 | None:
    """A positive finite number of the format's tensor scale; None where there is none."""
    if value is None:
        return None
    if fmt.tensor_scale is None:
        raise ValueError(f"tensor_scale is for formats that have one, and {fmt} has none; accepted: None")
    number = check_float32("tensor_scale", value)
    if not number:
        raise ValueError("tensor_scale must be positive and finite, got 0")
    if not holds(fmt.tensor_scale, number):
        raise ValueError(f"tensor_scale must be a number of {fmt.tensor_scale}, that of {fmt}, got {number!r}")
    return as_float32(number)


def holds(fmt: Format, number: float) -> bool:
    """Whether a format has a positive number."""
    quantum = max(math.frexp(number)[1] - 1, fmt.emin) - fmt.mantissa_bits
    return fmt.smallest_subnormal <= number <= fmt.max and math.ldexp(number, -quantum).is_integer()


LEAST_NORMAL, LEAST = -126, -149  # exponents of float32's smallest numbers
LARGEST = float(np.finfo(np.float32).max)


def check_float32(argument: str, value: Any) -> float:
    """A finite float32 number, not below zero."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument} must be a number, got {value!r}")
    try:
        number = exact_float(value) if isinstance(value, np.float32) else float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{argument} must be a number, got {value!r}") from None
    if not (math.isfinite(number) and number >= 0):
        wanted = "positive and finite" if argument == "tensor_scale" else "finite and at least 0"
        raise ValueError(f"{argument} must be {wanted}, got {number}")
    if number > LARGEST or exact_float(as_float32(number)) != number:
        raise ValueError(f"{argument} must be a float32 number, got {number!r}; numpy.float32({number!r}) rounds it")
    return number


def as_float32(number: float) -> np.float32:
    """A number that is not negative as float32, cut if that does not hold it; the host's treatment of subnormals has no say."""
    if number >= 2.0**LEAST_NORMAL:
        return np.float32(number)
    return np.float32(np.uint32(int(math.ldexp(number, -LEAST))).view(np.float32))


def exact_float(value: np.float32) -> float:
    """A float32 number as float64, likewise."""
    bits = int(value.view(np.uint32))
    tiny = bits & 0x7F800000 == 0
    return math.copysign(math.ldexp(bits & 0x007FFFFF, LEAST), -1 if bits >> 31 else 1) if tiny else float(value)
