"""Weights of a model in a narrower format: rounded by `softfloat.bits`, and counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from softfloat import bits
from softfloat.environments import Environment
from softfloat.formats import Format
from softfloat.status import Flags

__all__ = ["WeightReport", "as_tensor", "converted"]


@dataclass(frozen=True)
class WeightReport:
    """What became of the numbers of one weight.

    Attributes
    ----------
    name : str
        Of the initializer, or of the tensor that a Constant makes, or node.attribute.
    size : int
        How many numbers it has.
    inexact, overflow, underflow : int
        How many raised these flags: were rounded, were finite and too large, were rounded and tiny.
    subnormal : int
        How many have become subnormal numbers.
    zero : int
        How many that were not zero have become zero.
    clamped : int
        How many a clamp moved, before they were rounded; the other counts are of what it made of them.
    """

    name: str
    size: int
    inexact: int
    overflow: int
    underflow: int
    subnormal: int
    zero: int
    clamped: int

    @property
    def changed(self) -> bool:
        """Whether any number left the range of normal ones, or was clamped."""
        return bool(self.overflow or self.underflow or self.subnormal or self.zero or self.clamped)


def converted(
    tensor: TensorProto, name: str, fmt: Format, element: int, clamp: tuple[float, float] | None
) -> tuple[TensorProto, WeightReport]:
    """A float32 tensor in another format, to nearest even, and what became of it.

    Parameters
    ----------
    tensor : onnx.TensorProto
    name : str
        What the report calls it.
    fmt, element : Format, int
        The format, and its element type.
    clamp : (float, float), optional
        The least and the greatest magnitude of what is neither zero nor infinite.

    Source
    ------
    IEEE 754-2019 5.4.2, roundTiesToEven; tininess after rounding.
    """
    given = np.ascontiguousarray(numpy_helper.to_array(tensor), np.float32)
    clamped = given
    if clamp is not None:
        least, greatest = clamp
        clamped = np.where((given > 0) & (given < least), least, given)
        clamped = np.where((given < 0) & (given > -least), -least, clamped)
        clamped = np.where((given > greatest) & (given < np.inf), greatest, clamped)
        clamped = np.where((given < -greatest) & (given > -np.inf), -greatest, clamped).astype(np.float32)
    codes, flags = bits.encode(clamped, fmt, environment=Environment(), flags="each")
    codes, flags = np.asarray(codes), np.asarray(flags)
    made = TensorProto(
        name=tensor.name,
        dims=tensor.dims,
        data_type=element,
        raw_data=codes.astype(codes.dtype.newbyteorder("<")).tobytes(),
    )
    inexact, overflow, underflow = (
        int(np.count_nonzero(flags & flag)) for flag in (Flags.INEXACT, Flags.OVERFLOW, Flags.UNDERFLOW)
    )
    report = WeightReport(
        name,
        given.size,
        inexact,
        overflow,
        underflow,
        subnormal=int(np.count_nonzero(bits.issubnormal(codes, fmt))),
        zero=int(np.count_nonzero(bits.iszero(codes, fmt) & (given != 0))),
        clamped=int(np.count_nonzero((clamped != given) & ~np.isnan(given))),
    )
    return made, report


def as_tensor(attribute: onnx.AttributeProto) -> TensorProto | None:
    """The float32 numbers of an attribute as a tensor, a Constant's scalars and lists too; None if it has none."""
    if attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == TensorProto.FLOAT:
        return attribute.t
    if attribute.name == "value_float":
        return numpy_helper.from_array(np.array(attribute.f, np.float32))
    if attribute.name == "value_floats":
        return numpy_helper.from_array(np.array(attribute.floats, np.float32))
    return None
