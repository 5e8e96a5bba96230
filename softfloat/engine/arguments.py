"""Codes as the loops take them: checked, of a format's dtype, broadcast, flat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softfloat.blocks import Fixed
from softfloat.checks import is_integer
from softfloat.formats import Format

Codes = np.ndarray[Any, np.dtype[Any]]


# -- arguments -------------------------------------------------------------------------------------------------------


def refuse_mask(x: Any, argument: str) -> None:
    """TypeError for masked arrays, in nested lists too, whose masks nothing here would keep."""
    if isinstance(x, (list, tuple)):
        for item in x:
            if isinstance(item, (list, tuple, np.ma.MaskedArray)):
                refuse_mask(item, argument)
    elif isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{argument} must have no mask: codes cannot be masked; accepted: x.filled(...), or x.data")


def on_device(x: Any) -> bool:
    """Whether an array lies on a GPU: `__cuda_array_interface__` tells, and in Numba's simulator, which has none, its own mark."""
    return hasattr(x, "__cuda_array_interface__") or hasattr(x, "__cuda_ndarray__")


def refuse_device(x: Any, argument: str) -> None:
    """TypeError for arrays on a GPU, some of which NumPy would copy from there unasked."""
    if on_device(x):
        raise TypeError(
            f"{argument} lies on a GPU, where this is not done; accepted: arrays on the CPU (x.cpu() of PyTorch, x.get() of CuPy)"
        )


def _as_integers(codes: Any, fmt: Format | Fixed, argument: str) -> Codes:
    """An array of integers, maybe Python's own; TypeError saying what is wanted if they are none."""
    refuse_device(codes, argument)

    def wanted() -> str:
        return f"{argument} must be codes of {fmt}: integers from 0 to {hex(2**fmt.bits - 1)}"

    if hasattr(codes, "codes"):
        raise TypeError(f"{wanted()}, got {type(codes).__name__}; accepted: its .codes")
    try:
        array = np.asarray(codes)
    except (OverflowError, ValueError) as error:
        raise TypeError(wanted()) from error
    dtype, own = array.dtype, not isinstance(codes, np.ndarray)
    if own and array.size and dtype == np.float64:  # NumPy's for integers on both sides of 2^63
        array = np.array(codes, object)
    if array.dtype == object:
        integers = all(is_integer(x) for x in array.flat)
    else:
        integers = dtype.kind in "iu" or (array.size == 0 and own)
    if not integers:
        raise TypeError(f"{wanted()}, got dtype {dtype}; encode() turns numbers into codes")
    return array


def check_codes(codes: Any, fmt: Format | Fixed, argument: str) -> Codes:
    """Codes of a format as an array of its dtype; never a copy of one that already is.

    Raises
    ------
    TypeError
        If `codes` are not integers.
    ValueError
        If one is not a code of the format.
    """
    if type(codes) is np.ndarray and codes.dtype == fmt.dtype:
        array = codes
    else:
        refuse_mask(codes, argument)
        array = _as_integers(codes, fmt, argument)
    full = array.dtype == fmt.dtype and fmt.bits == 8 * fmt.dtype.itemsize
    if not full and array.size:
        low, high = 0 if array.dtype.kind == "u" else int(array.min()), int(array.max())
        if low < 0 or high >= 2**fmt.bits:
            offender = low if low < 0 else high
            shown = hex(offender) if offender >= 0 else str(offender)
            raise ValueError(
                f"{argument} holds {shown}, which is no code of {fmt}; accepted: 0 to {hex(2**fmt.bits - 1)}"
            )
    if array.dtype != fmt.dtype or not array.dtype.isnative:
        array = array.astype(fmt.dtype)
    return array


def magnitudes(codes: Codes, fmt: Format) -> Codes:
    """Codes without their signs."""
    return codes & fmt.dtype.type((1 << (fmt.bits - fmt.signed)) - 1)


def has_one(fmt: Format) -> bool:
    """Whether 1 is among a format's normal numbers."""
    return fmt.emin <= 0 and fmt.max >= 1


def is_nan(codes: Codes, fmt: Format) -> Any:
    """Whether each code is a NaN."""
    if fmt.spec.lone_nan >= 0:
        return codes == fmt.spec.lone_nan
    return magnitudes(codes, fmt) >= fmt.spec.nan_first if fmt.has_nan else np.zeros(codes.shape, bool)[()]


def has_nan(codes: Codes, fmt: Format) -> bool:
    """Whether one of them is a NaN. What repeats is looked at once, and codes that fill their words without a copy."""
    each = codes[tuple(slice(1 if step == 0 else None) for step in codes.strides)]
    whole = fmt.signed and fmt.bits == 8 * fmt.dtype.itemsize
    if not each.size or not fmt.has_nan or fmt.spec.lone_nan >= 0 or not whole:
        return bool(np.any(is_nan(each, fmt)))
    positive = int(each.view(np.dtype(f"i{fmt.dtype.itemsize}")).max()) >= fmt.spec.nan_first
    return positive or int(each.max()) >= fmt.sign_bit | fmt.spec.nan_first


def all_finite(codes: Codes, fmt: Format) -> bool:
    """Whether there are neither infinities nor NaNs among codes."""
    beyond = fmt.infinities and bool((magnitudes(codes, fmt) > fmt.max_code).any())
    return not (beyond or has_nan(codes, fmt))


def is_signalling(codes: Codes, fmt: Format) -> Any:
    """Whether each code is a signalling NaN."""
    if not fmt.spec.quiet:
        return np.zeros(codes.shape, bool)[()]
    return (magnitudes(codes, fmt) >= fmt.spec.nan_first) & (codes & fmt.dtype.type(fmt.spec.quiet) == 0)


def order(codes: Codes, fmt: Format) -> Codes:
    """Integers ... -1, 0, 1 ... that follow each other as the numbers do, both zeros at 0; meaningless for NaNs."""
    magnitude = magnitudes(codes, fmt)
    size = np.maximum(magnitude.astype(np.int64) - (fmt.smallest_subnormal_code - 1), 0)
    return np.where(codes != magnitude, -size, size)


def keys(codes: Codes, fmt: Format) -> Codes:
    """Integers as wide as the codes and ordered as the numbers are, -0 before +0; NaNs are anywhere. `from_keys` goes back."""
    if not fmt.signed:
        return codes
    signed = np.dtype(f"i{fmt.dtype.itemsize}")
    negative = codes >> fmt.dtype.type(fmt.bits - 1)
    return magnitudes(codes, fmt).view(signed) ^ -negative.view(signed)


def from_keys(found: Codes, fmt: Format) -> Codes:
    """The codes that have these keys."""
    if not fmt.signed:
        return found
    negative = found >> found.dtype.type(8 * found.dtype.itemsize - 1)
    return (found ^ negative).view(fmt.dtype) | (negative.view(fmt.dtype) & fmt.dtype.type(fmt.sign_bit))


def broadcast(arrays: Sequence[Codes], names: Sequence[str]) -> tuple[list[Codes], tuple[int, ...]]:
    """Flat contiguous operands of one common shape."""
    shape = arrays[0].shape
    if any(x.shape != shape for x in arrays[1:]):
        try:
            shape = np.broadcast_shapes(*(x.shape for x in arrays))
        except ValueError:
            shapes = ", ".join(f"{name} {x.shape}" for name, x in zip(names, arrays, strict=True))
            raise ValueError(f"shapes do not broadcast together: {shapes}") from None
        arrays = [np.broadcast_to(x, shape) for x in arrays]
    return [flattened(x) for x in arrays], shape


def by_columns(arrays: Sequence[Codes]) -> bool:
    """Whether arrays lie in memory by columns: of one shape, all of them that have axes."""
    spread = [x for x in arrays if x.ndim]
    return all(x.flags.fnc for x in spread) and len({x.shape for x in spread}) == 1


def flattened(x: Codes) -> Codes:
    """A flat contiguous view (or copy) that nobody can write: one kind of operand, so that Numba compiles one loop for all."""
    flat = np.ascontiguousarray(x).reshape(-1).view()
    flat.flags.writeable = False
    return flat
