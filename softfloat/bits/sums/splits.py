"""Products of float32 operands from products of their parts: three or six of bfloat16, three of tfloat32 or half."""

from __future__ import annotations

from typing import Any, Unpack, cast

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.accumulators.splits import Split
from softfloat.bits.arithmetic import add, mul, sub
from softfloat.bits.codes import isnan
from softfloat.bits.numbers import convert, encode
from softfloat.bits.sums.products import matmul
from softfloat.checks import check_kind
from softfloat.engine import Options, as_environment, check_codes
from softfloat.engine.options import refuse_undrawn
from softfloat.environments import as_rounding
from softfloat.formats import float32
from softfloat.kernels.spec import INVALID

__all__ = ["matmul_split", "split_parts"]


def split_parts(codes: Any, how: Split) -> tuple[Any, ...]:
    """The parts of float32 operands.

    Parameters
    ----------
    codes : array of integers
        Codes in float32.
    how : Split
        Made by `softfloat.accumulators.split`.

    Returns
    -------
    tuple of arrays
        Codes in the parts' format. The first is the operand rounded; what it leaves, in float32, times 2^scale, makes the next. An
        operand that overflows in the format is an infinity in the first part, and of the other sign, or NaN, in the next.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    >>> from softfloat.accumulators import split
    >>> [hex(x) for x in split_parts(0x3F8CCCCD, split("bfloat16", 3))]  # 1.1 is 1.1015625 - 0.0015625 ...
    ['0x3f8d', '0xbacd']
    """
    check_kind("how", how, Split)
    rest = check_codes(codes, float32, "codes")
    scale, _ = encode(2.0**how.scale, float32)
    parts = []
    for number in range(how.parts):
        part, _ = convert(rest, float32, how.format, rounding=how.rounding)
        parts.append(part)
        if number + 1 < how.parts:
            rest, _ = sub(rest, convert(part, how.format, float32)[0], float32)
            rest = mul(rest, scale, float32)[0] if how.scale else rest
    return tuple(parts)


def matmul_split(
    a: Any, b: Any, how: Split, accumulator: Accumulator, c: Any = None, **options: Unpack[Options]
) -> tuple[Any, Any]:
    """Matrix products of float32 operands, as sums of matrix products of their parts.

    Parameters
    ----------
    a, b : array of integers
        Codes in float32, (m, k) and (k, n); other shapes as in `matmul`.
    how : Split
        Made by `softfloat.accumulators.split`: which parts are multiplied, in what order.
    accumulator : Accumulator
        How each product of parts is summed, with partials in float32.
    c : array of integers, optional
        Codes in float32 that the sum starts from.
    **options
        Those of `matmul`, but `out`, and roundings that draw.

    Returns
    -------
    codes, flags
        In float32. Flags are those of the products and sums; splitting raises INVALID for signalling NaNs, and nothing else.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.

    Notes
    -----
    Each product of parts starts from the sum of those before, the first from c. With `scale`, products of parts i and j are summed
    by i + j, each sum from +0 but that of the first parts, which starts from c; the sum of the highest i + j is divided by
    2^scale and added to the one below, rounded as the options say.

    >>> from softfloat.accumulators import fma, split
    >>> x, _ = encode([[1.1]], float32)
    >>> [hex(matmul_split(x, x, split("bfloat16", n), fma("float32"))[0][0, 0]) for n in (1, 3, 6)]  # 1.21 is 0x3f9ae148
    ['0x3f9b5200', '0x3f9ae117', '0x3f9ae148']
    """
    check_kind("how", how, Split)
    check_kind("accumulator", accumulator, Accumulator)
    if accumulator.partials != float32:
        raise ValueError(f"accumulator must have partials in float32, got {accumulator!r}")
    for name in ("out", "random_bits"):
        if options.get(name) is not None:
            raise TypeError(f"{name} is not for matmul_split, whose result is a sum of several products")
    environment = options.get("environment")
    chosen = as_rounding(options.get("rounding") or "nearest_even" if environment is None else environment.rounding)
    if chosen.draws:
        raise ValueError(
            f"rounding must be deterministic for matmul_split, whose products would share random numbers, got {chosen.name.lower()!r}"
        )
    each = options.get("flags", "each")
    refuse_undrawn({name for name, value in options.items() if value is not None}, chosen)
    settings = cast(Options, {**as_environment(options), "flags": "each"})
    x, y = check_codes(a, float32, "a"), check_codes(b, float32, "b")
    left, right = split_parts(x, how), split_parts(y, how)
    levels = sorted({i + j for i, j in how.products}) if how.scale else [0]
    total: Any = c
    raised: Any = 0
    for level in reversed(levels):
        found: Any = c if level == 0 else None
        for i, j in how.products:
            if not how.scale or i + j == level:
                found, flags = matmul(left[i], right[j], how.format, accumulator, found, **settings)
                raised = raised | flags
        if level != levels[-1]:
            down, _ = encode(2.0 ** (-how.scale * (levels[levels.index(level) + 1] - level)), float32)
            part, flags = mul(total, down, float32, **settings)
            found, more = add(found, part, float32, **settings)
            raised = raised | flags | more
        total = found
    raised = raised | _signalling(x, y)
    return total, int(np.bitwise_or.reduce(raised, axis=None)) if each == "any" else raised


def _signalling(x: Any, y: Any) -> Any:
    """INVALID for each output that has a signalling NaN among its operands."""
    quiet = 1 << (float32.mantissa_bits - 1)
    rows, columns = (np.asarray(isnan(codes, float32)) & ((codes & quiet) == 0) for codes in (x, y))
    of_rows = rows.any(axis=-1)
    of_columns = columns.any(axis=0 if y.ndim == 1 else -2)
    if x.ndim > 1:
        of_rows = of_rows[..., None] if y.ndim > 1 else of_rows
    if x.ndim > 1 and y.ndim > 1:
        of_columns = of_columns[..., None, :]
    return (of_rows | of_columns).astype(np.uint8) * np.uint8(INVALID)
