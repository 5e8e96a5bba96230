"""Matrix units of which words alone are public: assumptions, each saying so, and held against nothing outside."""

from __future__ import annotations

from softfloat.accumulators.accumulator import Accumulator, Reduction, Stage, preset
from softfloat.accumulators.roster import ARRAYS
from softfloat.checks import check_choice, check_kind, check_whole
from softfloat.formats import Format, check_format
from softfloat.kernels.spec import Overflow, Rounding, Tininess

__all__ = ["ascend_cube", "gaudi_mme", "systolic", "tpu_mxu", "trainium_pe"]

UNITS = {array.name: array for array in ARRAYS}


@preset
def systolic(
    input: Format | str, depth: int | None = None, fmt: Format | str = "float32", flush: bool = False
) -> Accumulator:
    """A systolic array whose sums run down its columns: one fused multiply-add after another, to nearest even. An assumption.

    Parameters
    ----------
    input : Format or str
        Of the operands.
    depth : int, optional
        Rows of the array: so many products make a sum from +0, and these are added to c in order. None: k is no longer
        than a column.
    fmt : Format or str
        Of the sums.
    flush : bool
        Subnormal operands count as zero, and tiny sums become zero.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.
    """
    operand, out = check_format(input, "input"), check_format(fmt, "fmt")
    check_kind("flush", flush, bool)
    if depth is not None:
        check_whole("depth", depth, 1)
    stage = Stage(out, Rounding.NEAREST_EVEN, Overflow.INFINITY, daz=flush, ftz=flush, tininess=Tininess.AFTER)
    shown = [repr(operand.name), *([f"depth={depth}"] if depth else [])]
    shown += [f"fmt={out.name!r}"] * (out.name != "float32") + ["flush=True"] * flush
    return Accumulator(
        name=f"systolic({', '.join(shown)})",
        inputs=(operand,),
        running=stage,
        segment=depth,
        reduction=(Reduction(stage),) if depth else (),
        daz=flush,
        note="assumption: the order, the roundings and the treatment of subnormals",
    )


def _unit(name: str, input: Format | str) -> Accumulator:
    array, fmt = UNITS[name], check_format(input, "input")
    check_choice("input", fmt.name, array.inputs)
    return systolic(fmt, flush=array.flush).replace(
        name=f"{name}({fmt.name!r})",
        note=f"assumption: a column of fused multiply-adds. Known: {array.words}",
    )


@preset
def tpu_mxu(input: Format | str = "bfloat16") -> Accumulator:
    """Google TPU's matrix unit, an assumption: `systolic` with subnormals flushed. Operands in float32 are split: `bits.matmul_split`."""
    return _unit("tpu_mxu", input)


@preset
def gaudi_mme(input: Format | str = "bfloat16") -> Accumulator:
    """Intel Gaudi's matrix engine, an assumption: `systolic`."""
    return _unit("gaudi_mme", input)


@preset
def ascend_cube(input: Format | str = "float16") -> Accumulator:
    """Huawei Ascend's cube unit, an assumption: `systolic`."""
    return _unit("ascend_cube", input)


@preset
def trainium_pe(input: Format | str = "bfloat16") -> Accumulator:
    """AWS Trainium's array of processing elements, an assumption: `systolic`."""
    return _unit("trainium_pe", input)
