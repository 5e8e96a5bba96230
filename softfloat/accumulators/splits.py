"""Operands split into narrower parts, whose products together make up a product in float32: which parts, which products, in what order."""

from __future__ import annotations

from typing import NamedTuple

from softfloat.checks import check_whole, is_integer
from softfloat.formats import Format, check_format
from softfloat.kernels.spec import Rounding

__all__ = ["SPLITS", "Split", "split"]


class Split(NamedTuple):
    """How float32 operands are split.

    Attributes
    ----------
    format : str
        Of the parts: the first is the operand rounded to it, each next one what the parts before leave of the operand.
    scale : int
        What is left is multiplied by 2^scale before it is rounded; products of parts i and j are divided by 2^((i + j) * scale).
    products : tuple of pairs of int
        Which parts are multiplied, of a and of b, in the order in which sums of products follow each other.
    rounding : Rounding
        Of the parts.
    source, standing : str
        Where it is written, and one of `softfloat.accumulators.STANDINGS`.
    """

    format: str
    scale: int
    products: tuple[tuple[int, int], ...]
    rounding: Rounding
    source: str
    standing: str

    @property
    def parts(self) -> int:
        """How many parts an operand has."""
        return 1 + max(max(pair) for pair in self.products)

    def __str__(self) -> str:
        terms = " + ".join(f"a{i + 1} b{j + 1}" for i, j in self.products)
        scaled = f", those of i + j > 2 scaled by 2^{self.scale}" if self.scale else ""
        return f"{self.parts} parts in {self.format}, {self.rounding.name.lower()}: {terms}{scaled}"


NEAREST, AWAY = Rounding.NEAREST_EVEN, Rounding.NEAREST_AWAY
HIGH = ((1, 0), (0, 1), (0, 0))
HIGHEST = ((2, 0), (1, 1), (0, 2), *HIGH)
XLA = "XLA's precision {}: the parts and products are documented, their order on TPUs is not"
SPLITS = (
    Split("bfloat16", 0, ((0, 0),), NEAREST, XLA.format("DEFAULT"), "assumption"),
    Split("bfloat16", 0, HIGH, NEAREST, XLA.format("HIGH"), "assumption"),
    Split("bfloat16", 0, HIGHEST, NEAREST, XLA.format("HIGHEST"), "assumption"),
    Split("tfloat32", 0, HIGH, AWAY, "NVIDIA CUTLASS, example 27, 3xTF32; cvt.rna.tf32", "documented"),
    Split(
        "tfloat32", 11, HIGH, AWAY, "Ootomo and Yokota, IJHPCA 36 (2022), arXiv 2203.03341: TF32 with scaled residuals", "definition"
    ),
    Split(
        "float16", 11, HIGH, NEAREST, "Ootomo and Yokota, IJHPCA 36 (2022), arXiv 2203.03341: half with scaled residuals", "definition"
    ),
    Split(
        "float16", 0, ((1, 1), *HIGH), NEAREST, "Markidis et al., NVIDIA Tensor Core programmability, IPDPSW 2018", "definition"
    ),
)  # fmt: skip
"""Those that have a name: by format, number of products and scale."""


def split(fmt: Format | str, passes: int, scale: int = 0) -> Split:
    """One of `SPLITS`.

    Parameters
    ----------
    fmt : Format or str
        Of the parts: "bfloat16", "tfloat32" or "float16".
    passes : int
        Products of parts: 1, 3 or 6 of bfloat16 (XLA's precisions), 3 of tfloat32 and of float16, 4 of float16.
    scale : int
        11: residuals are scaled, as Ootomo and Yokota do; of three products in tfloat32 or float16. 0 otherwise.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    >>> print(split("bfloat16", 3))
    2 parts in bfloat16, nearest_even: a2 b1 + a1 b2 + a1 b1
    """
    name = check_format(fmt, "fmt").name
    check_whole("passes", passes, 1)
    if not is_integer(scale):
        raise TypeError(f"scale must be an integer, got {scale!r}")
    for row in SPLITS:
        if (row.format, len(row.products), row.scale) == (name, passes, scale):
            return row
    accepted = "; ".join(f"{row.format!r}, passes={len(row.products)}, scale={row.scale}" for row in SPLITS)
    raise ValueError(f"fmt, passes and scale must be one of {accepted}; got {name!r}, passes={passes}, scale={scale}")
