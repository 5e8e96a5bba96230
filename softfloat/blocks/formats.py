"""Block formats: which element, which scale, how many elements to a scale. The roster is one line per format.

>>> BlockFormat.from_name("mxfp4").block
32
>>> nvfp4.bits_per_element
4.5
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from softfloat.blocks.fixed import Fixed
from softfloat.checks import check_whole, is_integer, nearest
from softfloat.formats import Format, check_format, special_values
from softfloat.frozen import hash_kept, settle
from softfloat.markup import plain_table, table_html, titled

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "BLOCK_ROSTER",
    "BlockFormat",
    "msfp12",
    "msfp13",
    "msfp14",
    "msfp15",
    "msfp16",
    "mxfp4_e2m1",
    "mxfp6_e2m3",
    "mxfp6_e3m2",
    "mxfp8_e4m3",
    "mxfp8_e5m2",
    "mxint8",
    "nvfp4",
]

LONGEST = 2**31 - 1
"""Elements of a block along an axis."""
EXACT_BITS = 53
"""Precision of float64, in which blocks are decoded."""


@hash_kept
@dataclass(frozen=True, repr=False)
class BlockFormat:
    """Elements that share a scale, block by block: the value of element i is tensor scale * scale * element.

    Parameters
    ----------
    name : str
        What the format is called in messages and tables.
    element : Format, Fixed, or the name of a Format
        What each element is coded in; signed, with a zero.
    scale : Format or its name
        What each block's scale is coded in. Scales are positive: the sign of a signed format's code is ignored.
    block : int, or tuple of int
        Elements to a scale along the axis that is quantised; or the shape of a block in the last axes, such as (16, 16).
    tensor_scale : Format or its name, optional
        What the scale of the whole tensor is coded in; None: there is none.

    Source
    ------
    OCP Microscaling Formats (MX) Specification 1.0 (2023), section 5, for the formats mx...; NVIDIA's NVFP4: elements e2m1,
    blocks of 16, scales e4m3, one float32 scale for the tensor; Microsoft floating point (Darvish Rouhani and others,
    NeurIPS 2020) for msfp....

    >>> BlockFormat("mine", element="float6_e2m3fn", scale="float8_e8m0fnu", block=64)
    BlockFormat('mine', element='float6_e2m3fn', scale='float8_e8m0fnu', block=64)  # 6.125 bits an element
    """

    name: str
    element: Format | Fixed | Any = field(kw_only=True)
    scale: Format | Any = field(kw_only=True)
    block: int | tuple[int, ...] = field(kw_only=True)
    tensor_scale: Format | Any | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"name must be a non-empty string, got {self.name!r}")
        if not isinstance(self.element, Fixed):
            try:
                element = check_format(self.element, "element", what="a block format")
            except TypeError:
                raise TypeError(
                    f"element must be a softfloat.Format, the name of one, a dtype, or a softfloat.Fixed, got {self.element!r}"
                ) from None
            settle(self, element=element)
            if not (element.signed and element.zero):
                raise ValueError(f"element must be signed and have a zero, and {element} is not")
        settle(self, scale=check_format(self.scale, "scale", what="a block format"))
        if self.tensor_scale is not None:
            settle(self, tensor_scale=check_format(self.tensor_scale, "tensor_scale", what="a block format"))
        settle(self, block=check_block(self.block))
        levels = self.element, self.scale, *filter(None, [self.tensor_scale])
        precision = sum(x.p for x in levels)
        if precision > EXACT_BITS:
            raise ValueError(
                f"element, scale and tensor_scale have {precision} bits of precision together; accepted: at most {EXACT_BITS}, "
                "so that float64 holds their product"
            )
        powers = [_powers(x) for x in levels]
        if sum(low for low, _ in powers) < -1074 or sum(high for _, high in powers) > 1023:
            raise ValueError("element, scale and tensor_scale reach beyond float64 together")

    in_place_of_a_format = "; block formats are for bits.quantize, their elements' format is .element"
    """What messages say to those who take it for a Format."""

    # -- what follows from it
    # -------------------------------------------------------------------------------------------------

    @property
    def elements(self) -> int:
        """Elements to a scale."""
        number = 1
        for length in self.block if isinstance(self.block, tuple) else (self.block,):
            number *= length
        return number

    @property
    def bits_per_element(self) -> float:
        """Bits of an element and its share of the block's scale; the tensor's scale aside."""
        return float(self.element.bits + self.scale.bits / self.elements)

    @property
    def power_of_two_scale(self) -> bool:
        """Whether every scale is a power of two, as of E8M0."""
        return self.scale.mantissa_bits == 0 and not self.scale.subnormals and not self.scale.signed

    def block_shape(self, ndim: int, axis: int, block: int | tuple[int, ...] | None = None) -> tuple[int, ...]:
        """The shape of a block in an array of `ndim` axes: 1 along every axis that blocks do not reach over.

        Parameters
        ----------
        ndim : int
        axis : int
            What one number of elements counts along; a tuple belongs to the last axes, whatever `axis` is.
        block : int or tuple of int, optional
            In place of the format's.

        >>> mxfp4_e2m1.block_shape(3, -2), nvfp4.block_shape(2, -1, (16, 16))
        ((1, 32, 1), (16, 16))
        """
        check_whole("ndim", ndim, 0)
        block = self.block if block is None else check_block(block)
        if not is_integer(axis):
            raise TypeError(f"axis must be an integer, got {axis!r}")
        if not -ndim <= axis < ndim:
            accepted = f"{-ndim} to {ndim - 1}" if ndim else "none, as there is no axis"
            raise ValueError(f"axis must be one of an array of {ndim} axes, got {axis}; accepted: {accepted}")
        if isinstance(block, tuple):
            if len(block) > ndim:
                raise ValueError(f"block {block} has {len(block)} axes and the array {ndim}")
            return (1,) * (ndim - len(block)) + block
        return tuple(block if i == axis % ndim else 1 for i in range(ndim))

    # -- names
    # ----------------------------------------------------------------------------------------------------------------

    @classmethod
    def from_name(cls, name: str | BlockFormat) -> BlockFormat:
        """The roster's block format of this name, or of another name for it ("mxfp4").

        Raises
        ------
        ValueError
            Naming the accepted names.
        """
        return check_block_format(name, "name")

    # -- text
    # -------------------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        element = repr(self.element).partition("  #")[0] if isinstance(self.element, Fixed) else repr(str(self.element))
        fields = [f"element={element}", f"scale={str(self.scale)!r}", f"block={self.block}"]
        fields += [f"tensor_scale={str(self.tensor_scale)!r}"] if self.tensor_scale is not None else []
        return f"BlockFormat({self.name!r}, {', '.join(fields)})  # {self.bits_per_element:.6g} bits an element"

    def __str__(self) -> str:
        return self.name

    def _repr_html_(self) -> str:
        facts = [(escape(name), escape(text)) for name, text in block_format_facts(self)]
        return table_html(facts, caption=self.name)

    def __rich__(self) -> RenderableType:
        from rich.text import Text

        table = plain_table()
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, text in block_format_facts(self):
            table.add_row(name, Text(text))
        return titled(self.name, table)


def _powers(level: Format | Fixed) -> tuple[int, int]:
    """Exponents of the last bit of the smallest number, and of the next power of two above the largest."""
    if isinstance(level, Fixed):
        return -level.fraction_bits, level.emax + 1
    return level.emin - level.mantissa_bits, level.emax + 1


def check_block(block: Any, argument: str = "block") -> int | tuple[int, ...]:
    """A number of elements, or the shape of a block."""
    if type(block) is int and 1 <= block <= LONGEST:
        return block
    numbers = tuple(block) if isinstance(block, (tuple, list)) else (block,)
    if not numbers or not all(is_integer(x) for x in numbers):
        raise TypeError(f"{argument} must be a positive integer or a tuple of them, got {block!r}")
    if not 1 <= min(numbers) <= max(numbers) <= LONGEST:
        raise ValueError(f"{argument} must be a positive integer or a tuple of them, at most 2^31 - 1, got {block!r}")
    whole = tuple(int(x) for x in numbers)
    return whole if isinstance(block, (tuple, list)) else whole[0]


def block_text(block: int | tuple[int, ...]) -> str:
    """A block's size as people write it: 32, 16x16."""
    return "x".join(map(str, block)) if isinstance(block, tuple) else str(block)


def block_format_facts(fmt: BlockFormat) -> list[tuple[str, str]]:
    """What a block format is, as names and texts."""
    element, scale = fmt.element, fmt.scale
    if isinstance(element, Fixed):
        coding = element.coding.replace("twos_complement", "two's complement").replace("_", " and ")
        described = (
            f"{element}: {element.bits} bits, {coding}, {element.min:.9g} to {element.max:.9g} by {element.quantum:.6g}"
        )
    else:
        described = f"{element}: {element.layout}, max {element.max:.9g}, {special_values(element)}"
    facts = [
        ("element", described),
        ("scale", f"{scale}: {scale.layout}, {scale.smallest_subnormal:.6g} to {scale.max:.6g}"),
        ("block", f"{block_text(fmt.block)} elements"),
    ]
    if fmt.tensor_scale is not None:
        facts.append(("tensor scale", str(fmt.tensor_scale)))
    return [*facts, ("bits an element", f"{fmt.bits_per_element:.6g}, scale included")]


def check_block_format(fmt: BlockFormat | str, argument: str = "block_format") -> BlockFormat:
    """A block format, or the roster's of that name; `argument` is named where it is neither."""
    if isinstance(fmt, BlockFormat):
        return fmt
    if not isinstance(fmt, str):
        raise TypeError(f"{argument} must be a softfloat.BlockFormat or the name of one, got {fmt!r}")
    key = fmt.lower().replace("-", "_")
    found = BLOCK_ROSTER.get(BLOCK_ALIASES.get(key, key))
    if found is None:
        raise ValueError(
            f"{argument}: unknown block format {fmt!r}; accepted: {', '.join(BLOCK_ROSTER)}, and {', '.join(BLOCK_ALIASES)}; "
            f"softfloat.BlockFormat({fmt!r}, element=..., scale=..., block=...) makes any other"
            f"{nearest(key, (*BLOCK_ROSTER, *BLOCK_ALIASES))}"
        )
    return found


E8M0, MX_BLOCK, MSFP_BLOCK = "float8_e8m0fnu", 32, 16


def _msfp(total: int) -> BlockFormat:
    """MSFP-N: 8 bits of shared exponent are counted among the N, the rest are sign and magnitude."""
    bits = total - 8
    element = Fixed(f"int{bits}_sm", bits=bits, fraction_bits=bits - 2, coding="sign_magnitude")
    return BlockFormat(f"msfp{total}", element=element, scale=E8M0, block=MSFP_BLOCK)


BLOCK_ROSTER: dict[str, BlockFormat] = {
    fmt.name: fmt
    for fmt in (
        BlockFormat("mxfp8_e4m3", element="float8_e4m3fn", scale=E8M0, block=MX_BLOCK),
        BlockFormat("mxfp8_e5m2", element="float8_e5m2", scale=E8M0, block=MX_BLOCK),
        BlockFormat("mxfp6_e2m3", element="float6_e2m3fn", scale=E8M0, block=MX_BLOCK),
        BlockFormat("mxfp6_e3m2", element="float6_e3m2fn", scale=E8M0, block=MX_BLOCK),
        BlockFormat("mxfp4_e2m1", element="float4_e2m1fn", scale=E8M0, block=MX_BLOCK),
        BlockFormat(
            "mxint8", element=Fixed("int8", bits=8, fraction_bits=6, symmetric=True), scale=E8M0, block=MX_BLOCK
        ),
        BlockFormat("nvfp4", element="float4_e2m1fn", scale="float8_e4m3fn", block=16, tensor_scale="float32"),
        *map(_msfp, range(12, 17)),
    )
}
"""Every named block format. Their sources are at `BlockFormat`; elements and scales are spelled as in ml_dtypes."""

BLOCK_ALIASES: dict[str, str] = {
    "mxfp8_e4m3fn": "mxfp8_e4m3",
    "mxfp6_e2m3fn": "mxfp6_e2m3",
    "mxfp6_e3m2fn": "mxfp6_e3m2",
    "mxfp4": "mxfp4_e2m1",
    "mxfp4_e2m1fn": "mxfp4_e2m1",
    "nvfp4_e2m1": "nvfp4",
}
"""Other names. "mxfp8" and "mxfp6" alone are none: each has two element formats."""

mxfp8_e4m3 = BLOCK_ROSTER["mxfp8_e4m3"]
mxfp8_e5m2 = BLOCK_ROSTER["mxfp8_e5m2"]
mxfp6_e2m3 = BLOCK_ROSTER["mxfp6_e2m3"]
mxfp6_e3m2 = BLOCK_ROSTER["mxfp6_e3m2"]
mxfp4_e2m1 = BLOCK_ROSTER["mxfp4_e2m1"]
mxint8 = BLOCK_ROSTER["mxint8"]
nvfp4 = BLOCK_ROSTER["nvfp4"]
msfp12 = BLOCK_ROSTER["msfp12"]
msfp13 = BLOCK_ROSTER["msfp13"]
msfp14 = BLOCK_ROSTER["msfp14"]
msfp15 = BLOCK_ROSTER["msfp15"]
msfp16 = BLOCK_ROSTER["msfp16"]
