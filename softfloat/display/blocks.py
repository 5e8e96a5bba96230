"""One block taken apart: its scale, and each number's element.

>>> inspect_block(["0.5", "-1.75", "3", "44"], "mxfp4").scale_value
Fraction(8, 1)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from softfloat import bits, markup
from softfloat.blocks import BlockFormat, check_rule
from softfloat.blocks.formats import check_block_format
from softfloat.display.inspection import value_text
from softfloat.display.numbers import exact_decimal, parse_value, power_of_two
from softfloat.engine import as_environment
from softfloat.environments import Rounding, as_rounding
from softfloat.formats import float8_e8m0fnu
from softfloat.status import Flags

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["BlockInspection", "inspect_block"]

HEADINGS = ("number", "code", "element", "value", "flags")


@dataclass(frozen=True)
class BlockInspection:
    """Numbers as one block.

    Attributes
    ----------
    format : BlockFormat
    rule, rounding : str
        How the scale was found, and how elements were rounded.
    scale : int
        The scale's code.
    scale_value : Fraction or float
        Its value; NaN as a float.
    tensor_scale : Fraction or None
        The tensor's scale, had the tensor this block alone.
    given : tuple of str
        The numbers, as typed.
    codes : tuple of int
        Of the elements.
    elements, values : tuple of float
        What elements stand for, without scales and with them.
    flags : tuple of Flags
    """

    format: BlockFormat
    rule: str
    rounding: str
    scale: int
    scale_value: Fraction | float
    tensor_scale: Fraction | None
    given: tuple[str, ...]
    codes: tuple[int, ...]
    elements: tuple[float, ...]
    values: tuple[float, ...]
    flags: tuple[Flags, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON: exact decimals and hexadecimal codes as strings."""
        return {
            "format": self.format.name,
            "rule": self.rule,
            "rounding": self.rounding,
            "scale": {"code": hexadecimal(self.scale, self.format.scale.bits), "value": _text(self.scale_value)},
            "tensor_scale": None if self.tensor_scale is None else _text(self.tensor_scale),
            "elements": [
                {
                    "given": given,
                    "code": hexadecimal(code, self.format.element.bits),
                    "element": _text(element),
                    "value": _text(value),
                    "flags": [flag.name for flag in Flags if flag in flags],
                }
                for given, code, element, value, flags in zip(
                    self.given, self.codes, self.elements, self.values, self.flags, strict=True
                )
            ],
        }

    def _facts(self) -> list[tuple[str, str]]:
        code = hexadecimal(self.scale, self.format.scale.bits)
        facts = [
            ("scale", f"{code} = {_scale_text(self.scale_value)}, by the rule {self.rule}"),
            ("elements", f"{self.format.element}, rounded {self.rounding.replace('_', ' ')}"),
        ]
        if self.tensor_scale is not None:
            facts.insert(0, ("tensor scale", f"{float(self.tensor_scale):.9g}"))
        return facts

    def _rows(self) -> list[list[str]]:
        columns = zip(self.given, self.codes, self.elements, self.values, self.flags, strict=True)
        return [
            [given, hexadecimal(code, self.format.element.bits), f"{element:.9g}", f"{value:.9g}", str(flags)]
            for given, code, element, value, flags in columns
        ]

    def __rich__(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        facts = markup.plain_table()
        facts.add_column(style="dim", no_wrap=True)
        facts.add_column(overflow="fold")
        for name, text in self._facts():
            facts.add_row(name, Text(text))
        table = markup.plain_table(header=True)
        for heading in HEADINGS:
            table.add_column(heading, overflow="fold")
        for row in self._rows():
            table.add_row(*map(Text, row))
        return markup.titled(self.format.name, Group(facts, Text(), table))

    def _repr_html_(self) -> str:
        caption = "; ".join(f"{name} {text}" for name, text in self._facts())
        rows = [[escape(cell) for cell in row] for row in self._rows()]
        return markup.table_html(rows, HEADINGS, f"{self.format.name}: {caption}")


def inspect_block(
    numbers: Sequence[str],
    block_format: BlockFormat | str,
    rule: str | None = None,
    rounding: Rounding | str = "nearest_even",
    seed: int = 0,
    **options: Any,
) -> BlockInspection:
    """Quantise numbers, as text, as one block; a tensor's scale is that of these numbers alone.

    Numbers that float32 does not hold are rounded to it first, to nearest even. `options` are more of `bits.quantize`.

    Raises
    ------
    ValueError
        If there are more numbers than the block has elements, none, or a text is a code: elements have no value without a scale.
    """
    fmt = check_block_format(block_format)
    if not 1 <= len(numbers) <= fmt.elements:
        raise ValueError(f"a block of {fmt} has 1 to {fmt.elements} numbers, got {len(numbers)}")
    values = [parse_value(text.strip()) for text in numbers]
    for text, value in zip(numbers, values, strict=True):
        if isinstance(value, int):
            raise ValueError(
                f"{text.strip()} is a code, and those of {fmt} have no value without a scale; accepted: numbers"
            )
    rounded = np.asarray(bits.encode(values, "float32")[0]).view(np.float32)
    mode = as_rounding(rounding)
    if mode.draws and "random_bits" not in options:
        options["seed"] = seed
    settled = as_environment({**options, "rounding": mode})  # integers have no tininess, which may be set all the same
    blocks, flags = bits.quantize(rounded, fmt, rule, block=len(numbers), **settled)
    unscaled = replace(fmt, scale=float8_e8m0fnu, tensor_scale=None)  # not all formats of scales have a 1
    unit = np.full(blocks.scales.shape, float8_e8m0fnu.one_code, float8_e8m0fnu.dtype)
    elements = bits.dequantize(bits.BlockCodes(blocks.elements, unit, unscaled, block=blocks.block_shape))
    scale = float(np.abs(bits.decode(blocks.scales, fmt.scale))[0])
    return BlockInspection(
        format=fmt,
        rule=check_rule(rule, fmt).name,
        rounding=mode.name.lower(),
        scale=int(blocks.scales[0]),
        scale_value=Fraction(scale) if math.isfinite(scale) else scale,
        tensor_scale=None if blocks.tensor_scale is None else Fraction(float(blocks.tensor_scale)),
        given=tuple(text.strip() for text in numbers),
        codes=tuple(blocks.elements.tolist()),
        elements=tuple(elements.tolist()),
        values=tuple(bits.dequantize(blocks).tolist()),
        flags=tuple(Flags(flag) for flag in flags.tolist()),
    )


def hexadecimal(code: int, width: int) -> str:
    """A code with a digit for every four bits or fewer."""
    return f"0x{code:0{-(-width // 4)}x}"


def _text(value: Fraction | float) -> str:
    return value_text(value, lambda x: exact_decimal(Fraction(x)))


def _scale_text(value: Fraction | float) -> str:
    exponent = power_of_two(value) if isinstance(value, Fraction) else None
    return f"{float(value):.9g}" if exponent is None else f"2^{exponent}"
