"""The table of recipes, and how its rows are made: one scale for a tensor, block formats, fp8 in blocks, NVFP4.

>>> RECIPES["delayed_scaling"].input_gradient.first.scaling
DelayedScaling(format=float8_e5m2, history=1024, margin=0, amax='max', zero_amax='keep')
>>> RECIPES["nvfp4"].weight_gradient.first.sr_bits, RECIPES["nvfp4"].forward.second.scaling.block
(8, (16, 16))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from softfloat.accumulators import Accumulator, chunked, fma, tensor_core, torch_mm
from softfloat.blocks import BlockFormat
from softfloat.checks import check_choice, check_kind, check_switch
from softfloat.environments import Rounding
from softfloat.formats import Format
from softfloat.scaling.recipes import (
    PRODUCTS,
    BlockScaling,
    CurrentScaling,
    DelayedScaling,
    Hadamard,
    Operand,
    Product,
    Recipe,
)

__all__ = ["RECIPES", "block_scaling", "check_recipe", "fp8_blocks", "nvfp4_scaling", "tensor_scaling"]

E4M3, E5M2 = "float8_e4m3fn", "float8_e5m2"
HOPPER = tensor_core("H100", input=E4M3)
PROMOTED = torch_mm("scaled_mm", E4M3)
"""fp8 sums added in float32 every 128 products: cuBLAS on an H100 without fast accumulation, measured; DeepSeek-V3's too."""


class _Three(NamedTuple):
    """Operands by role."""

    inputs: Operand
    weights: Operand
    gradients: Operand


def _recipe(
    name: str, roles: _Three, sums: tuple[Accumulator, ...], columns: _Three | None = None, **more: Any
) -> Recipe:
    """A recipe from operands by role; `columns` are those of products that sum over another axis than forward's: (inputs, weights, gradients)."""
    other = columns or roles
    order = more.pop("scale_order", "scales_first")
    products: list[Any] = [
        Product(first=first, second=second, accumulator=how, scale_order=order)
        for first, second, how in zip(
            (roles.inputs, roles.gradients, other.gradients),
            (roles.weights, other.weights, other.inputs),
            sums,
            strict=True,
        )
    ]
    return Recipe(name=name, **dict(zip(PRODUCTS, products, strict=True)), **more)


def tensor_scaling(
    forward: Format | str = E4M3,
    backward: Format | str = E5M2,
    *,
    delayed: bool = False,
    name: str = "tensor_scaling",
    accumulators: tuple[Accumulator, Accumulator, Accumulator] = (HOPPER, PROMOTED, PROMOTED),
    scale_order: str = "scales_first",
    meaning: str = "",
    source: str = "",
    standing: str = "",
    **scaling: Any,
) -> Recipe:
    """A recipe with one scale for a tensor, or for what `per` says: `forward` for inputs and weights, `backward` for gradients.

    Parameters
    ----------
    delayed : bool
        `DelayedScaling` in place of `CurrentScaling`.
    accumulators : tuple of Accumulator
        Of the three products.
    **scaling
        Of the scaling's class.

    >>> print(tensor_scaling("float4_e2m1fn", "float4_e2m1fn").forward.first.format)
    float4_e2m1fn
    """
    check_switch("delayed", delayed)
    if not isinstance(accumulators, (tuple, list)) or len(accumulators) != len(PRODUCTS):
        raise TypeError(
            f"accumulators must be {len(PRODUCTS)} of Accumulator, those of {', '.join(PRODUCTS)}, got {accumulators!r}"
        )
    kind = DelayedScaling if delayed else CurrentScaling
    ahead, back = Operand(scaling=kind(format=forward, **scaling)), Operand(scaling=kind(format=backward, **scaling))  # type: ignore[arg-type]
    return _recipe(
        name, _Three(ahead, ahead, back), accumulators,
        scale_order=scale_order, meaning=meaning, source=source, standing=standing,
    )  # fmt: skip


def block_scaling(
    forward: BlockFormat | str,
    backward: BlockFormat | str | None = None,
    *,
    accumulator: Accumulator,
    rule: str | None = None,
    name: str = "block_scaling",
    meaning: str = "",
    source: str = "",
    standing: str = "",
    **scaling: Any,
) -> Recipe:
    """A recipe of a block format for inputs and weights, and one for gradients, by default the same.

    Parameters
    ----------
    **scaling
        Of `BlockScaling`.
    """
    ahead, back = (
        Operand(scaling=BlockScaling(format=x, rule=rule, **scaling))  # type: ignore[arg-type]
        for x in (forward, forward if backward is None else backward)
    )
    return _recipe(
        name, _Three(ahead, ahead, back), (accumulator,) * 3, meaning=meaning, source=source, standing=standing
    )  # fmt: skip


def fp8_blocks(
    inputs: Operand,
    weights: Operand,
    *,
    inner: Accumulator = HOPPER,
    scaling: str | None = None,
    name: str,
    **more: Any,
) -> Recipe:
    """fp8 in blocks of 128 numbers for inputs and gradients, of 128 x 128 for weights, scaled every 128 products.

    `scaling` None is cuBLAS's, measured on an H100: with weights both scales first, then fused; of the product of inputs and
    gradients the scale of `first`, and then the other's, fused.
    """
    check_kind("inputs", inputs, Operand)
    check_kind("weights", weights, Operand)
    orders = ("scales_fused", "scales_fused", "first_fused") if scaling is None else (scaling,) * 3
    sums = tuple(chunked(128, inner, "float32", scaling=order) for order in orders)
    return _recipe(name, _Three(inputs, weights, inputs), sums, **more)


def nvfp4_scaling(
    *,
    hadamard: bool = True,
    stochastic: bool = True,
    square_weights: bool = True,
    rule: str = "te",
    four_over_six: str | None = None,
    accumulator: Accumulator | None = None,
    name: str = "nvfp4",
    meaning: str = "",
    source: str = "",
    standing: str = "",
) -> Recipe:
    """NVFP4 training, with and without its parts.

    Parameters
    ----------
    hadamard : bool
        Inputs and gradients of the weight gradient's product are transformed first.
    stochastic : bool
        Gradients are rounded at random, by 8 bits, as `cvt.rs.satfinite.e2m1x4.f32` has them.
    square_weights : bool
        Weights share a scale in blocks of 16 x 16, so that both of their products have the same elements; else 1 x 16.
    rule : {"te", "torchao"}
        How scales are found.
    four_over_six : {"mae", "mse"}, optional
        Of weights and forward's inputs.
    """
    for argument, value in (("hadamard", hadamard), ("stochastic", stochastic), ("square_weights", square_weights)):
        check_switch(argument, value)
    check_kind("accumulator", accumulator, Accumulator, optional=True)
    how = BlockScaling(format="nvfp4", rule=rule)  # type: ignore[arg-type]
    chosen = replace(how, four_over_six=four_over_six)
    transform = Hadamard() if hadamard else None
    drawn: dict[str, Any] = {"rounding": Rounding.STOCHASTIC, "sr_bits": 8} if stochastic else {}
    weights = Operand(scaling=replace(chosen, block=(16, 16)) if square_weights else chosen)
    rows = _Three(Operand(scaling=chosen), weights, Operand(scaling=how, **drawn))
    columns = _Three(
        Operand(scaling=how, hadamard=transform), weights, Operand(scaling=how, hadamard=transform, **drawn)
    )
    sums = accumulator or tensor_core("B200", input="float4_e2m1fn", instruction="mxf4nvf4")
    return _recipe(name, rows, (sums,) * 3, columns, meaning=meaning, source=source, standing=standing)


# -- the table -------------------------------------------------------------------------------------------------------


def _rows() -> Iterator[Recipe]:
    te = "TransformerEngine, "
    assumed = "the rule is held against a restatement in fractions; accumulators are a published model's, promotion is assumed"
    yield tensor_scaling(
        name="current_scaling",
        meaning="one scale for each tensor, from its own amax; e4m3 forward, e5m2 for gradients",
        source=te + "Float8CurrentScaling, common/recipe/recipe_common.cuh",
        standing=assumed,
    )
    yield tensor_scaling(
        name="current_scaling_power_of_two",
        power_of_two=True,
        meaning="the same with scales rounded down to powers of two",
        source=te + "Float8CurrentScaling with NVTE_FP8_CURRENT_SCALING_POWER_2_SCALES",
        standing=assumed,
    )
    yield tensor_scaling(
        name="delayed_scaling",
        delayed=True,
        meaning="one scale for each tensor, from the amax of 1024 earlier steps; e4m3 forward, e5m2 for gradients",
        source=te + "DelayedScaling (HYBRID), common/recipe/delayed_scaling.cu",
        standing=assumed + "; each product is a step of its operands' histories",
    )
    row = "the rule is held against a restatement in fractions; the order of scales is read, accumulators are a published model's"
    yield tensor_scaling(
        name="torchao_tensorwise",
        epsilon=1e-12,
        meaning="as current_scaling, amax at least 1e-12",
        source="torchao, Float8LinearRecipeName.TENSORWISE, float8/float8_utils.py",
        standing=assumed,
    )
    rowwise: dict[str, Any] = {"epsilon": 1e-12, "power_of_two": True}
    wise = tensor_scaling(
        E4M3, E4M3, per="row", **rowwise,
        name="torchao_rowwise",
        scale_order="second",
        meaning="a power of two for each row and column of a product; e4m3 throughout",
        source="torchao, Float8LinearRecipeName.ROWWISE; PyTorch, RowwiseScaledMM.cu",
        standing=row,
    )  # fmt: skip
    yield wise
    whole = Operand(scaling=CurrentScaling(format=E4M3, **rowwise))  # type: ignore[arg-type]
    plain = Product(first=Operand(), second=Operand(), accumulator=fma("float32"))
    yield wise.replace(
        name="torchao_rowwise_with_gw_hp",
        input_gradient=replace(wise.input_gradient, second=whole),
        weight_gradient=plain,
        meaning="rows of inputs and weights forward, rows of gradients by whole weights; weight gradients are not quantised",
        source="torchao, Float8LinearRecipeName.ROWWISE_WITH_GW_HP",
    )
    lines, squares = (
        Operand(scaling=CurrentScaling(format=E4M3, per=per, power_of_two=True))  # type: ignore[arg-type]
        for per in (128, (128, 128))
    )
    yield fp8_blocks(
        lines, squares,
        name="fp8_blocks",
        meaning="e4m3, a power of two for 128 inputs or gradients, or for 128 x 128 weights",
        source=te + "Float8BlockScaling",
        standing="the rule is held against a restatement in fractions; sums of 128 and the order of scales are measured on an H100",
    )  # fmt: skip
    e4m3 = {
        block: BlockFormat(f"{E4M3}_by_{label}", element=E4M3, scale="float32", block=block)
        for block, label in ((128, "128"), ((128, 128), "128x128"))
    }
    deep = [Operand(scaling=BlockScaling(format=e4m3[block], rule="amax")) for block in (128, (128, 128))]
    yield fp8_blocks(
        *deep,
        scaling="scales_fused",
        name="deepseek_v3",
        meaning="e4m3, a float32 scale of at least 1e-4/448 for 128 inputs or gradients, or for 128 x 128 weights",
        source="DeepSeek-V3 (arXiv 2412.19437), 3.3; DeepGEMM, deep_gemm/utils/math.py and impls/sm90_fp8_gemm_1d2d.cuh",
        standing="read, not held against it; the compiler is assumed to fuse the multiplication and the addition",
    )
    mx = tensor_core("B200", input=E4M3, instruction="mxf8f6f4")
    yield block_scaling(
        "mxfp8_e4m3",
        rule="rceil_saturate",
        accumulator=mx,
        name="mxfp8",
        meaning="MXFP8 with e4m3 throughout; scales rounded up",
        source=te + "MXFP8BlockScaling",
        standing="elements and scales are held against torchao's vectors, infinities aside; accumulators are a published model's",
    )
    yield block_scaling(
        "mxfp8_e4m3", "mxfp8_e5m2",
        rule="rceil_saturate",
        accumulator=mx,
        name="mxfp8_hybrid",
        meaning="the same with e5m2 for gradients",
        source=te + "MXFP8BlockScaling with Format.HYBRID",
        standing="as mxfp8",
    )  # fmt: skip
    yield block_scaling(
        "mxfp8_e4m3",
        rule="rceil",
        accumulator=mx,
        name="torchao_mxfp8_rceil",
        meaning="as mxfp8; an infinite amax gives NaN",
        source="torchao, MXFP8TrainingRecipe.MXFP8_RCEIL",
        standing="elements and scales are held against torchao's vectors; accumulators are a published model's",
    )
    yield block_scaling(
        "mxfp4_e2m1",
        accumulator=fma("float32"),
        name="mxfp4",
        meaning="MXFP4 throughout by OCP's own rule, rounded to nearest",
        source="OCP MX 1.0, 6.3, which leaves the sum open",
        standing="elements and scales are held against torchao's and microxcaling's vectors",
    )
    held = "elements and scales are held against its vectors, the transform against exact fractions; accumulators are a published model's"
    yield nvfp4_scaling(
        meaning="Hadamard transform and stochastic gradients, weights in blocks of 16 x 16",
        source=te + "NVFP4BlockScaling; NVIDIA, Pretraining large language models with NVFP4 (arXiv 2509.25149)",
        standing=held,
    )
    yield nvfp4_scaling(
        hadamard=False,
        stochastic=False,
        square_weights=False,
        name="nvfp4_plain",
        meaning="the format alone: blocks of 1 x 16 rounded to nearest",
        source=te + "NVFP4BlockScaling with disable_rht, disable_stochastic_rounding, disable_2d_quantization",
        standing=held,
    )
    yield nvfp4_scaling(
        rule="torchao",
        name="torchao_nvfp4",
        meaning="as nvfp4 with torchao's scales, at least 2^-6",
        source="torchao, nvfp4_quantize and per_tensor_amax_to_scale; its training kernels follow TransformerEngine's scales",
        standing=held,
    )
    yield tensor_scaling(
        "float4_e2m1fn", "float4_e2m1fn",
        name="e2m1_tensorwise",
        accumulators=(fma("float32"),) * 3,
        meaning="four bits and one scale for each tensor: what blocks are there to mend",
        source="no library: for comparison",
        standing="for comparison",
    )  # fmt: skip


RECIPES: dict[str, Recipe] = {row.name: row for row in _rows()}
"""Every named recipe."""


def check_recipe(recipe: Any, argument: str = "recipe") -> Recipe:
    """A recipe, or the table's of that name.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and the accepted names.
    """
    if isinstance(recipe, Recipe):
        return recipe
    if not isinstance(recipe, str):
        raise TypeError(f"{argument} must be a softfloat.scaling.Recipe or the name of one, got {recipe!r}")
    check_choice(argument, recipe, RECIPES)
    return RECIPES[recipe]
