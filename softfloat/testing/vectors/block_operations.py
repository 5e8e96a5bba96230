"""Operations on blocks, a block or an element in each row: what their columns are, and how they run.

block_scale
    The scale that a rule gives the numbers x0 ... x(n-1) of a block.
block_quantize
    The element that a number x becomes under a scale, and the flags of that rounding.
block_dequantize
    The float64 number that an element and its scale stand for.
block_vecdot
    A dot product of elements a and b under their blocks' scales, by an accumulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.accumulators import Accumulator
from softfloat.blocks import BlockFormat, Fixed
from softfloat.blocks.formats import check_block_format
from softfloat.blocks.rules import check_rule
from softfloat.checks import check_choice
from softfloat.formats import Format
from softfloat.testing.vectors.columns import FLOAT64, Column, Number, as_number

__all__ = [
    "BLOCK_OPERATIONS",
    "DEQUANTIZE",
    "PRODUCTS",
    "QUANTIZE",
    "SCALE",
    "SPECIAL",
    "Blocks",
    "blocks_of",
    "element_number",
]

Codes = np.ndarray[Any, Any]

SCALE, QUANTIZE, DEQUANTIZE, PRODUCTS = "block_scale", "block_quantize", "block_dequantize", "block_vecdot"
BLOCK_OPERATIONS = {
    SCALE: ("x",),
    QUANTIZE: ("x", "scale"),
    DEQUANTIZE: ("element", "scale"),
    PRODUCTS: ("a", "b", "scale_a", "scale_b"),
}
"""Name -> operands."""

FLOAT32 = as_number("float32")


@dataclass(frozen=True)
class Blocks:
    """The block formats of a case, its scale rule, and the scale of the tensor.

    Attributes
    ----------
    format, second : BlockFormat
        Of the operands; they differ in dot products at most.
    rule : str
        A name of `softfloat.blocks.SCALE_RULES`.
    tensor_scale : float or None
        A number of float32, the same in every row.
    special : tuple of (name, value)
        What becomes of special numbers, as `bits.quantize` has it: one of `SPECIAL` and its value.
    """

    format: BlockFormat
    second: BlockFormat
    rule: str
    tensor_scale: float | None = None
    special: tuple[tuple[str, str], ...] = ()

    @property
    def element(self) -> Number:
        """Of the first operand."""
        return element_number(self.format)

    def columns(self, operation: str, length: int | None, addend: Number | None) -> tuple[Column, ...]:
        """The operands of a row."""
        scale = as_number(self.format.scale)
        if operation == SCALE:
            return (Column("x", FLOAT32, self.format.elements),)
        if operation == QUANTIZE:
            return Column("x", FLOAT32), Column("scale", scale)
        if operation == DEQUANTIZE:
            return Column("element", self.element), Column("scale", scale)
        assert length is not None
        counts = [-(-length // fmt.elements) for fmt in (self.format, self.second)]
        columns = (
            Column("a", self.element, length),
            Column("b", element_number(self.second), length),
            Column("scale_a", scale, counts[0]),
            Column("scale_b", as_number(self.second.scale), counts[1]),
        )
        return columns if addend is None else (*columns, Column("c", addend))

    def source(self, operation: str) -> Number:
        """Of the first operand."""
        return FLOAT32 if operation in (SCALE, QUANTIZE) else self.element

    def target(self, operation: str) -> Number:
        """Of the result; of a dot product the accumulator says it."""
        return {SCALE: as_number(self.format.scale), QUANTIZE: self.element, DEQUANTIZE: FLOAT64}[operation]

    def run(
        self,
        operation: str,
        operands: Sequence[Codes],
        options: dict[str, Any],
        accumulator: Accumulator | None,
        output: Format | None,
    ) -> tuple[Any, Any]:
        """(results, flags or None) of rows; options are those of a call."""
        if operation == PRODUCTS:
            a, b, scales_a, scales_b, *c = operands
            assert accumulator is not None
            first, second = (
                bits.BlockCodes(x, scales, fmt, axis=1, block=fmt.elements, tensor_scale=self._tensor(fmt))
                for x, scales, fmt in ((a, scales_a, self.format), (b, scales_b, self.second))
            )
            return bits.vecdot_blocks(first, second, accumulator, *c, out_format=output, **options)
        if operation == DEQUANTIZE:
            element, scale = operands
            blocks = bits.BlockCodes(
                element, scale, self.format, axis=0, block=1, tensor_scale=self._tensor(self.format)
            )
            return bits.dequantize(blocks).view(np.uint64), None
        x = operands[0].view(np.float32)
        options = {**options, **dict(self.special)}
        if self.format.tensor_scale is not None:
            options = {**options, "tensor_scale": self.tensor_scale}
        if operation == SCALE:
            blocks, _ = bits.quantize(
                x, self.format, self.rule, axis=1, block=self.format.elements, flags="any", **options
            )
            return blocks.scales[:, 0], None
        blocks, flags = bits.quantize(x, self.format, self.rule, axis=0, block=1, scales=operands[1], **options)
        return blocks.elements, flags

    def _tensor(self, fmt: BlockFormat) -> float | None:
        return None if fmt.tensor_scale is None else self.tensor_scale

    def __str__(self) -> str:
        words = [" ".join(dict.fromkeys((self.format.name, self.second.name)))]
        if self.tensor_scale is not None:
            words.append(f"tensor scale {self.tensor_scale!r}")
        return ", ".join([*words, *(f"{name}={value}" for name, value in self.special)])


def element_number(fmt: BlockFormat) -> Number:
    """The type of a block format's elements: those of fixed point are codes and no more."""
    element = fmt.element
    if isinstance(element, Fixed):
        return Number(element.name, "unsigned", element.bits)
    return as_number(element)


SPECIAL = {
    "nans": ("block", "element"),
    "infinities": ("block", "saturate", "element"),
    "nan_to": ("max", "zero", "negative_zero"),
    "zero_block": ("smallest", "one", "nan", "rule"),
    "subnormal_blocks": ("keep", "zero"),
}
"""Options of `bits.quantize` for what the OCP's text leaves open -> their values."""


def blocks_of(
    format: Any, rule: str | None, tensor_scale: float | None, special: Mapping[str, str] | None = None
) -> Blocks:
    """Block formats by their names, or a pair of them; a rule that makes their scales.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.
    """
    names = list(format) if isinstance(format, (list, tuple)) else [format, format]
    if len(names) != 2:
        raise ValueError(f"format must be a block format or a pair of them, got {format!r}")
    first, second = (check_block_format(name) for name in names)
    if tensor_scale is not None and first.tensor_scale is None and second.tensor_scale is None:
        raise ValueError(f"tensor_scale is for formats whose tensor has a scale, such as nvfp4, got {first.name!r}")
    if tensor_scale is not None:
        single = float(np.float32(tensor_scale))
        if not 0 < single < float("inf") or single != tensor_scale:
            raise ValueError(f"tensor_scale must be a positive number of float32, got {tensor_scale!r}")
    for name, value in (special or {}).items():
        check_choice("special", name, SPECIAL)
        check_choice(f"special[{name!r}]", value, SPECIAL[name])
    options = tuple(sorted((special or {}).items()))
    return Blocks(first, second, check_rule(rule, first).name, tensor_scale, options)
