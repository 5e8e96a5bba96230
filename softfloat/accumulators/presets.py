"""Accumulators that IEEE 754 and the literature name, and x86's."""

from __future__ import annotations

from softfloat.accumulators.accumulator import ALL, PRESETS, Accumulator, Reduction, Stage, preset
from softfloat.checks import check_whole
from softfloat.formats import Format, bfloat16, check_format, float32
from softfloat.kernels.spec import Overflow, Rounding, Tininess

__all__ = ["chunked", "exact", "fma", "mul_add", "pairwise", "vdpbf16ps"]


@preset
def fma(fmt: Format | str) -> Accumulator:
    """One fused multiply-add after another, each rounded to `fmt`.

    >>> fma("bfloat16").describe()
    "fma('bfloat16'): one product at a time, each to bfloat16; c and partials bfloat16"
    """
    fmt = check_format(fmt, "fmt")
    return Accumulator(name=f"fma({fmt.name!r})", running=Stage(fmt), source=PRESETS["fma"].source)


@preset
def mul_add(fmt: Format | str) -> Accumulator:
    """Each product rounded to `fmt`, then each sum."""
    fmt = check_format(fmt, "fmt")
    return Accumulator(
        name=f"mul_add({fmt.name!r})", product=Stage(fmt), running=Stage(fmt), source=PRESETS["mul_add"].source
    )


@preset
def exact(fmt: Format | str) -> Accumulator:
    """The exact sum of all products and c, rounded once to `fmt` (Kulisch's long accumulator)."""
    fmt = check_format(fmt, "fmt")
    return Accumulator(name=f"exact({fmt.name!r})", block=ALL, running=Stage(fmt), source=PRESETS["exact"].source)


@preset
def pairwise(fmt: Format | str) -> Accumulator:
    """Products rounded to `fmt`, added in pairs, each sum rounded to `fmt`."""
    fmt = check_format(fmt, "fmt")
    return Accumulator(
        name=f"pairwise({fmt.name!r})",
        product=Stage(fmt),
        running=Stage(fmt),
        tree=True,
        source=PRESETS["pairwise"].source,
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
        inner = fma(inner)
    _check_inner(inner, length)
    outer = check_format(outer, "outer")
    return inner.replace(
        name=f"chunked({length}, {inner.name}, {outer.name!r}{f', scaling={scaling!r}' if scaling else ''})",
        segment=length,
        reduction=(Reduction(Stage(outer), scaling=scaling),),
        result="partials",
        source=PRESETS["chunked"].source,
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
        source=PRESETS["vdpbf16ps"].source,
    )
