"""What PyTorch's products compute on an H100: its library's kernels as sums of tensor cores, read off the chip."""

from __future__ import annotations

import math

from softfloat.accumulators.accumulator import Accumulator, Reduction, Stage, preset
from softfloat.accumulators.tensor_cores import E4M3, E5M2, tensor_core
from softfloat.checks import check_choice, check_whole
from softfloat.environments import Overflow, Rounding
from softfloat.formats import Format, bfloat16, check_format, float16, float32, tfloat32

__all__ = ["torch_mm"]

HALVES, FP8 = (float16, bfloat16), (E4M3, E5M2)
TORCH_PRODUCTS: dict[str, tuple[Format, ...]] = {
    "mm": (float16, bfloat16, tfloat32),
    "linear": HALVES,
    "addmm": HALVES,
    "fp16_accumulation": (float16,),
    "scaled_mm": FP8,
    "scaled_mm_fast": FP8,
}
"""Operation -> the formats that its operands were read in."""
TILE = {"mm": 64, "fp16_accumulation": 64, "scaled_mm_fast": 128}
"""Products in multiples of which kernels that split k do so."""
TILE_TF32 = 4
"""The same of "mm" in tfloat32."""
SHORT, SHORT_TILE = 32, 8
"""Sums of halves in halves that are so short are cut into multiples of so many."""
PROMOTED = 128
"""Products after which a slow fp8 kernel adds its sum to one in float32."""


@preset
def torch_mm(
    operation: str = "mm", input: Format | str = "float16", *, k: int | None = None, split: int = 1
) -> Accumulator:
    """What PyTorch 2.11 (CUDA 13.0) computes on an H100, bit for bit. Measured.

    Parameters
    ----------
    operation : str
        "mm": `torch.mm`, `bmm`, `mv`, `matmul`, and `torch.nn.functional.linear` without a bias; operands in tfloat32 are
        float32 ones under `allow_tf32`, rounded to nearest even first. "linear": with a bias, which is c, in float32:
        added to the sum before its one rounding. "addmm": `torch.addmm` with alpha = beta = 1, whose product is rounded
        before c is added, and the sum again. "fp16_accumulation": `mm` under `allow_fp16_accumulation`. "scaled_mm" and
        "scaled_mm_fast": `torch._scaled_mm` with `use_fast_accum` False and True, before scales and the rounding to
        `out_dtype`.
    input : Format or str
        Of the operands: "float16" or "bfloat16"; "tfloat32" for "mm"; "float8_e4m3fn" or "float8_e5m2" for scaled ones.
    k : int, optional
        Products of an output; needed where `split` is more than 1.
    split : int
        Parts that k is cut into, added up in order: where there are few outputs and k is long, the kernel's name ends in
        splitK. None of halves up to k = 2560 was. Up to 4096 outputs and 256 rows or columns they are k / 64 / 20.2, rounded
        down: 3 at k = 4096, 12 at 16384. Elsewhere it is found by trying, and an H200 differs from an H100: 128 x 128 x 16384 has
        9 parts on an H100, 12 on an H200.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values. Convolutions, attention, float32 without `allow_tf32` and 8-bit
        integers were not read and are no operations here.

    Notes
    -----
    Every sum is a tensor core's, in order of k from +0, and rounded to nearest even at the end, to the operands' format or,
    of tfloat32 and fp8, float32; `out_format="float32"` is `out_dtype=torch.float32`. Read off 64 x 64 outputs each, k from
    16 to 16384, and products up to 4096^3; from 64 x 64 x 16 on shapes make no difference but for `split`.

    >>> torch_mm("mm", "bfloat16", k=4096, split=3)
    torch_mm('mm', input='bfloat16', k=4096, split=3)
    """
    check_choice("operation", operation, TORCH_PRODUCTS)
    fmt = check_format(input, "input", what="torch_mm")
    accepted = [x.name for x in TORCH_PRODUCTS[operation]]
    if fmt.name not in accepted:
        raise ValueError(f"input must be {' or '.join(map(repr, accepted))} for {operation}, got {fmt.name!r}")
    check_whole("split", split, 1)
    if k is not None:
        check_whole("k", k, 1)
    if split > 1 and (k is None or operation not in TILE):
        raise ValueError(
            f"split must be 1 without k, and for operations other than {', '.join(TILE)}; got {split} for {operation}"
        )
    core = tensor_core("H100", fmt, float16 if operation == "fp16_accumulation" else float32)
    how, result = core, fmt if fmt in HALVES else float32
    added, rounded = (
        Stage(x, Rounding.NEAREST_EVEN, Overflow.INFINITY, daz=False, ftz=False) for x in (core.partials, result)
    )
    if split > 1:
        assert k is not None
        tile = TILE_TF32 if fmt == tfloat32 else TILE[operation]
        if operation == "fp16_accumulation" and k <= SHORT:
            tile = SHORT_TILE
        tiles = math.ceil(k / tile)
        how = core.replace(segment=tile * math.ceil(tiles / split), reduction=(Reduction(added),))
    elif operation == "scaled_mm":
        how = core.replace(segment=PROMOTED, reduction=(Reduction(added),))
    elif operation == "linear":
        how = core.replace(segments=1, reduction=(Reduction(added),))
    elif operation == "addmm":
        how = core.replace(segments=1, reduction=(Reduction(added, sections=1, store=rounded), Reduction(rounded)))
    told = f", k={k}, split={split}" if split > 1 else ""
    return how.replace(name=f"torch_mm({operation!r}, input={fmt.name!r}{told})", result=result)
