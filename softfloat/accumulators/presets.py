"""Accumulators that IEEE 754 and the literature name, and x86's."""

from __future__ import annotations

from softfloat.accumulators.accumulator import (
    ALL,
    COMPENSATIONS,
    Accumulator,
    FixedPoint,
    Reduction,
    Stage,
    preset,
)
from softfloat.checks import check_choice, check_whole
from softfloat.environments import as_rounding
from softfloat.formats import Format, bfloat16, check_format, float32
from softfloat.kernels.spec import Overflow, Rounding, Tininess

__all__ = ["chunked", "compensated", "exact", "fixed_point", "fma", "mul_add", "pairwise", "vdpbf16ps"]


@preset
def fma(fmt: Format | str) -> Accumulator:
    """One fused multiply-add after another, each rounded to `fmt`.

    >>> fma("bfloat16").describe()
    "fma('bfloat16'): one product at a time, each to bfloat16; c and partials bfloat16"
    """
    fmt = check_format(fmt, "fmt", wide=True)
    return Accumulator(name=f"fma({fmt.name!r})", running=Stage(fmt))


@preset
def mul_add(fmt: Format | str) -> Accumulator:
    """Each product rounded to `fmt`, then each sum."""
    fmt = check_format(fmt, "fmt", wide=True)
    return Accumulator(name=f"mul_add({fmt.name!r})", product=Stage(fmt), running=Stage(fmt))


@preset
def compensated(fmt: Format | str, method: str = "kahan") -> Accumulator:
    """Each product rounded to `fmt`, then each sum, whose error is made up for.

    Parameters
    ----------
    fmt : Format or str
        What every operation is rounded to.
    method : {"kahan", "neumaier", "two_term"}
        The operations are those that `Accumulator` lists under `compensation`.

    Raises
    ------
    ValueError
        Naming the parameter and the accepted values.
    """
    fmt = check_format(fmt, "fmt", wide=True)
    check_choice("method", method, COMPENSATIONS)
    return Accumulator(
        name=f"compensated({fmt.name!r}, {method!r})",
        product=Stage(fmt),
        running=Stage(fmt),
        compensation=method,
    )


@preset
def fixed_point(
    bits: int,
    last: int,
    fmt: Format | str = "float32",
    overflow: str = "wrap",
    cut: Rounding | str = Rounding.TOWARD_NEGATIVE,
) -> Accumulator:
    """Products cut to multiples of 2^last and added in a register of `bits` bits; the sum is rounded to `fmt` in the end.

    Parameters
    ----------
    bits, last, overflow, cut
        Those of `FixedPoint`.
    fmt : Format or str
        Of c and of the result.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.
    """
    register, out = FixedPoint(bits, last, overflow, as_rounding(cut, "cut")), check_format(fmt, "fmt")
    shown = [f"{out.name!r}"] * (out.name != "float32")
    shown += [f"overflow={overflow!r}"] * (overflow != "wrap")
    shown += [f"cut={register.cut.name.lower()!r}"] * (register.cut is not Rounding.TOWARD_NEGATIVE)
    return Accumulator(
        name=f"fixed_point({', '.join([str(bits), str(last), *shown])})",
        running=Stage(out),
        fixed=register,
    )


@preset
def exact(fmt: Format | str) -> Accumulator:
    """The exact sum of all products and c, rounded once to `fmt` (Kulisch's long accumulator)."""
    fmt = check_format(fmt, "fmt", wide=True)
    return Accumulator(name=f"exact({fmt.name!r})", block=ALL, running=Stage(fmt))


@preset
def pairwise(fmt: Format | str) -> Accumulator:
    """Products rounded to `fmt`, added in pairs, each sum rounded to `fmt`."""
    fmt = check_format(fmt, "fmt", wide=True)
    return Accumulator(
        name=f"pairwise({fmt.name!r})",
        product=Stage(fmt),
        running=Stage(fmt),
        tree=True,
    )


@preset
def chunked(
    length: int, inner: Format | str | Accumulator, outer: Format | str, scaling: str | None = None
) -> Accumulator:
    """Chunks of `length` products, each summed by `inner` from +0; their sums are added up in `outer`.

    Parameters
    ----------
    length : int
        Products of a chunk.
    inner : Format, str or Accumulator
        A format means fused multiply-adds rounded to it. An accumulator adds products in any way, but without segments of
        its own.
    outer : Format or str
        The format that sums of chunks are added in; c starts there.
    scaling : str, optional
        How the scales of block formats multiply a chunk's sum: see `Reduction`. DeepSeek-V3's fp8 products with promotion
        every 128 (DeepGEMM, where the compiler fuses) are "scales_fused"; cuBLAS, by TransformerEngine's reference, is
        "first_fused" where b's blocks or neither operand's are larger than one row, else "second_fused".

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.
    """
    check_whole("length", length, 1)
    if not isinstance(inner, Accumulator):
        inner = fma(check_format(inner, "inner", wide=True))
    _check_inner(inner, length)
    outer = check_format(outer, "outer", wide=True)
    return inner.replace(
        name=f"chunked({length}, {inner.name}, {outer.name!r}{f', scaling={scaling!r}' if scaling else ''})",
        segment=length,
        reduction=(Reduction(Stage(outer), scaling=scaling),),
        result="partials",
    )


def _check_inner(inner: Accumulator, length: int) -> None:
    """Refuse what cannot sum a chunk, in the words of `chunked`."""
    if inner.block == ALL:
        raise ValueError(
            f"inner must add products singly or in blocks of a given length, got {inner!r}, which adds all at once; "
            f"for one rounding a chunk pass {inner!r}.replace(block={length})"
        )
    if inner.reduction:
        raise ValueError(
            f"inner must add the products of a chunk without segments, got {inner!r}, which has segments of its own; "
            "accepted: a format, or accumulators such as fma(fmt) and mul_add(fmt)"
        )


@preset
def vdpbf16ps() -> Accumulator:
    """x86 AVX512_BF16 VDPBF16PS, one 32-bit lane, pairs of bfloat16 in the order of memory.

    Of each pair the second product first; a fused multiply-add each, nearest even, subnormals read and written as
    zero, tininess after rounding. MXCSR is neither read nor written: the flags are those the same multiply-adds raise.
    """
    lane = Stage(float32, Rounding.NEAREST_EVEN, Overflow.INFINITY, daz=True, ftz=True, tininess=Tininess.AFTER)
    return Accumulator(
        name="vdpbf16ps()",
        inputs=(bfloat16,),
        running=lane,
        order=(1, 0),
        daz=True,
        nan="x86_fma3",
    )
