"""Elements of fixed point: integers times a power of two, which blocks hold and nothing else does.

>>> Fixed("int8", bits=8, fraction_bits=6).max
1.984375
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from softfloat.checks import check_choice, check_integer, check_switch
from softfloat.frozen import hash_kept, settle

__all__ = ["Fixed"]

CODINGS = ("twos_complement", "sign_magnitude")
MAXIMUM_BITS = 16


@hash_kept
@dataclass(frozen=True, repr=False)
class Fixed:
    """A fixed-point element of a block: an integer k of `bits` bits that means k * 2^-fraction_bits.

    Its range is far too short to compute in without a scale. It is an element of a `BlockFormat` and nothing else.

    Parameters
    ----------
    name : str
        What it is called in messages and tables.
    bits : int
        Width of a code, the sign included: 2 to 16.
    fraction_bits : int
        0 to bits + 8.
    coding : {"twos_complement", "sign_magnitude"}
        How negative integers are coded. Sign and magnitude has a -0, two's complement one more negative number.
    symmetric : bool
        Two's complement only: quantising leaves the least integer unused, so that both ends are as far. Its code still decodes.

    Source
    ------
    OCP Microscaling Formats 1.0: INT8, 8 bits of two's complement with 6 fraction bits, whose -2 may be left unused. Sign and
    magnitude: the elements of Microsoft floating point (Darvish Rouhani and others, NeurIPS 2020).
    """

    name: str
    bits: int = field(kw_only=True)
    fraction_bits: int = field(kw_only=True)
    coding: str = field(default="twos_complement", kw_only=True)
    symmetric: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"name must be a non-empty string, got {self.name!r}")
        for name in ("bits", "fraction_bits"):
            settle(self, **{name: check_integer(name, getattr(self, name))})
        if not 2 <= self.bits <= MAXIMUM_BITS:
            raise ValueError(f"bits must be 2 to {MAXIMUM_BITS}, got {self.bits}")
        if not 0 <= self.fraction_bits <= self.bits + 8:
            raise ValueError(f"fraction_bits must be 0 to {self.bits + 8} (bits + 8), got {self.fraction_bits}")
        check_choice("coding", self.coding, CODINGS)
        check_switch("symmetric", self.symmetric)
        if self.symmetric and self.coding == "sign_magnitude":
            raise ValueError("symmetric is for coding='twos_complement'; sign and magnitude always is")

    in_place_of_a_format = "; fixed point is for elements of blocks alone: softfloat.BlockFormat(element=...)"
    """What messages say to those who take it for a Format."""

    # -- layout
    # ---------------------------------------------------------------------------------------------------------------

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned integer that holds a code."""
        return np.dtype(np.uint8 if self.bits <= 8 else np.uint16)

    @property
    def sign_bit(self) -> int:
        """The sign's bit in a code."""
        return 1 << (self.bits - 1)

    @property
    def largest(self) -> int:
        """The largest integer."""
        return self.sign_bit - 1

    @property
    def least(self) -> int:
        """The least integer that quantising gives."""
        return -self.largest - int(self.coding == "twos_complement" and not self.symmetric)

    @property
    def p(self) -> int:
        """Bits of the largest integers: the precision at the top of the range."""
        return self.bits - 1

    @property
    def emax(self) -> int:
        """Exponent of the largest number."""
        return self.bits - 2 - self.fraction_bits

    @property
    def mantissa_bits(self) -> int:
        """Bits behind the leading one of the largest numbers."""
        return self.bits - 2

    @property
    def has_nan(self) -> bool:
        """False: no code is NaN."""
        return False

    @property
    def infinities(self) -> bool:
        """False: no code is an infinity."""
        return False

    # -- values
    # ---------------------------------------------------------------------------------------------------------------

    @property
    def max(self) -> float:
        """The largest number."""
        return math.ldexp(self.largest, -self.fraction_bits)

    @property
    def min(self) -> float:
        """The least number that quantising gives."""
        return math.ldexp(self.least, -self.fraction_bits)

    @property
    def quantum(self) -> float:
        """The distance between neighbours, everywhere."""
        return math.ldexp(1.0, -self.fraction_bits)

    @cached_property
    def values(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The value of every code, as a read-only array of float64 in the order of codes."""
        codes = np.arange(1 << self.bits)
        if self.coding == "twos_complement":
            found = np.where(codes >= self.sign_bit, codes - (1 << self.bits), codes).astype(np.float64)
        else:
            found = np.copysign((codes & self.largest).astype(np.float64), np.where(codes & self.sign_bit, -1.0, 1.0))
        found *= self.quantum
        found.flags.writeable = False
        return found

    def codes_of(
        self, integers: np.ndarray[Any, np.dtype[np.int64]], negative: np.ndarray[Any, np.dtype[np.bool_]]
    ) -> np.ndarray[Any, Any]:
        """Codes of integers from `least` to `largest`; `negative` tells -0 from 0, where there is one."""
        if self.coding == "twos_complement":
            return (integers & ((1 << self.bits) - 1)).astype(self.dtype)
        return np.abs(integers).astype(self.dtype) | negative.astype(self.dtype) << self.dtype.type(self.bits - 1)

    # -- text
    # -------------------------------------------------------------------------------------------------------------------

    @property
    def layout(self) -> str:
        """The fields of a code, a letter a bit: s sign, i integer, f fraction."""
        digits = ("i" * max(self.p - self.fraction_bits, 0) + "f" * self.fraction_bits)[-self.p :]
        return f"s.{digits}"

    def __repr__(self) -> str:
        fields = [f"bits={self.bits}", f"fraction_bits={self.fraction_bits}"]
        fields += [f"coding={self.coding!r}"] if self.coding != "twos_complement" else []
        fields += ["symmetric=True"] if self.symmetric else []
        return f"Fixed({self.name!r}, {', '.join(fields)})  # {self.min:.6g} to {self.max:.6g} by {self.quantum:.6g}"

    def __str__(self) -> str:
        return self.name
