"""Recipes from the settings of other libraries: microxcaling's dictionary of specs, torchao's names of configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from softfloat.accumulators import fma, tensor_core
from softfloat.blocks import BlockFormat, Fixed
from softfloat.blocks.formats import E8M0, MX_BLOCK
from softfloat.checks import check_choice, check_kind
from softfloat.environments import Rounding
from softfloat.formats import bfloat16
from softfloat.scaling.recipes import BlockScaling, Operand, Product, Recipe
from softfloat.scaling.tables import RECIPES, block_scaling

__all__ = ["from_microxcaling", "from_torchao"]

ELEMENTS: dict[str, str | Fixed] = {
    "fp8_e5m2": "float8_e5m2",
    "fp8_e4m3": "float8_e4m3fn",
    "fp6_e3m2": "float6_e3m2fn",
    "fp6_e2m3": "float6_e2m3fn",
    "fp4": "float4_e2m1fn",
    "fp4_e2m1": "float4_e2m1fn",
    "int8": Fixed("int8", bits=8, fraction_bits=6, symmetric=True),
    "int4": Fixed("int4", bits=4, fraction_bits=2, symmetric=True),
    "int2": Fixed("int2", bits=2, fraction_bits=0, symmetric=True),
}
"""Element formats by microxcaling's names."""
ROUNDINGS = {"nearest": Rounding.NEAREST_AWAY, "even": Rounding.NEAREST_EVEN, "floor": Rounding.TOWARD_ZERO}
"""Its roundings: "nearest" sends ties away from zero, "floor" cuts magnitudes."""
FROM_OTHERS = {
    "w_elem_format_bp": "w_elem_format",
    "a_elem_format_bp_os": "a_elem_format",
    "a_elem_format_bp_ex": "a_elem_format",
    "round_m": "round",
    "round_output": "round",
    "round_grad_weight": "round",
    "round_grad_input": "round",
    "round_weight": "round",
    "round_mx_output": "round",
    "round_mx_input_grad_input": "round_grad_input",
    "round_mx_weight_grad_input": "round_grad_input",
    "round_mx_grad_output_grad_input": "round_grad_input",
    "round_mx_input_grad_weight": "round_grad_input",
    "round_mx_grad_output_grad_weight": "round_grad_input",
}
"""What a spec is where nobody gives it, as `finalize_mx_specs` has it; in this order."""
DEFAULTS: dict[str, Any] = {
    "scale_bits": 0,
    "w_elem_format": None,
    "a_elem_format": None,
    **{name: None for name in FROM_OTHERS if name.endswith(("_bp", "_os", "_ex"))},
    "mx_flush_fp32_subnorms": False,
    "shared_exp_method": "max",
    "block_size": 0,
    "bfloat": 0,
    "fp": 0,
    "bfloat_subnorms": True,
    "quantize_backprop": True,
    "round": "nearest",
    **{name: None for name in FROM_OTHERS if name.startswith("round_")},
    "softmax_exp2": False,
    "vec_use_exp2": False,
    "vec_use_recip": False,
    "custom_cuda": False,
}
"""Every spec, and what it is by default."""
BETWEEN = ("round_output", "round_grad_weight", "round_grad_input", "round_weight")
"""Roundings of what passes between products, in bfloat16."""
FIXED = {
    "shared_exp_method": ("max", "scales are made of the largest magnitudes"),
    "fp": (0, "operations between products are those of the tensors' own format"),
    "bfloat_subnorms": (True, "Environment(daz=True, ftz=True) makes zeros of subnormal numbers"),
    "softmax_exp2": (False, "softmax is PyTorch's"),
    "vec_use_exp2": (False, "exponentials are powers of e"),
    "vec_use_recip": (False, "quotients are divisions"),
}
"""Specs that only have one meaning here: (it, and why)."""


def from_microxcaling(specs: Mapping[str, Any]) -> Recipe:
    """The recipe that a dictionary of microxcaling's specs describes.

    Parameters
    ----------
    specs : mapping
        What its layers take as `mx_specs`; specs that are missing, or None, follow from others as in `finalize_mx_specs`.

    Returns
    -------
    Recipe
        With `fma("float32")` to add, where microxcaling leaves it to PyTorch. `bfloat=16` asks for bfloat16 tensors, and for
        an environment that rounds as its `round` says.

    Raises
    ------
    ValueError
        For specs that it does not know, or values without a counterpart, naming those accepted.

    Source
    ------
    microsoft/microxcaling, mx/specs.py and mx/linear.py. Its shared exponents err just below powers of two, which is not restated.

    >>> specs = {"scale_bits": 8, "w_elem_format": "fp4_e2m1", "a_elem_format": "fp6_e2m3", "block_size": 32, "round": "even"}
    >>> print(from_microxcaling(specs).forward.second.scaling.format.element)
    float4_e2m1fn
    """
    check_kind("specs", specs, Mapping)
    unknown = [name for name in specs if name not in DEFAULTS]
    if unknown:
        raise ValueError(
            f"unknown spec {', '.join(map(repr, unknown))}; specs must be among {', '.join(map(repr, DEFAULTS))}"
        )
    whole = {**DEFAULTS, **{name: x for name, x in specs.items() if x is not None}}
    for name, other in FROM_OTHERS.items():
        if whole[name] is None:
            whole[name] = whole[other]
    for name, (accepted, why) in FIXED.items():
        if whole[name] != accepted:
            raise ValueError(f"spec {name!r} must be {accepted!r}, as {why}; got {whole[name]!r}")
    for name in (x for x in whole if x.startswith("round")):
        if whole[name] not in ROUNDINGS:
            raise ValueError(
                f"spec {name!r} must be one of {', '.join(map(repr, ROUNDINGS))}, got {whole[name]!r}; random numbers of 'dither' are PyTorch's"
            )
    tensors, rounding = _between(whole)
    back = whole if whole["quantize_backprop"] else {**whole, **dict.fromkeys((*_FORMATS,), None)}
    products = [
        ((whole, "a_elem_format", "round_mx_output"), (whole, "w_elem_format", "round_mx_output")),
        (
            (back, "a_elem_format_bp_os", "round_mx_grad_output_grad_input"),
            (back, "w_elem_format_bp", "round_mx_weight_grad_input"),
        ),
        (
            (back, "a_elem_format_bp_ex", "round_mx_grad_output_grad_weight"),
            (back, "a_elem_format_bp_ex", "round_mx_input_grad_weight"),
        ),
    ]
    made = [
        Product(first=_operand(*first), second=_operand(*second), accumulator=fma("float32"))
        for first, second in products
    ]
    return Recipe(
        name="microxcaling",
        forward=made[0],
        input_gradient=made[1],
        weight_gradient=made[2],
        meaning="microxcaling's specs",
        source="microsoft/microxcaling, mx/specs.py, mx/linear.py",
        standing="elements and scales are held against its vectors; sums are assumed",
        tensors=tensors,
        tensor_rounding=rounding,
    )


_FORMATS = ("w_elem_format", "a_elem_format", *(x for x in FROM_OTHERS if x.endswith(("_bp", "_os", "_ex"))))


def _between(specs: dict[str, Any]) -> tuple[Any, Rounding | None]:
    """What tensors must be in, and how everything but products must round."""
    if specs["bfloat"] not in (0, 16):
        raise ValueError(
            f"spec 'bfloat' must be 0 or 16, got {specs['bfloat']!r}; other widths have no tensors in PyTorch"
        )
    if not specs["bfloat"]:
        return None, None
    found = {specs[name] for name in BETWEEN}
    if len(found) > 1:
        shown = ", ".join(f"{name} {specs[name]!r}" for name in BETWEEN)
        raise ValueError(f"specs of roundings in bfloat16 must be the same, as an environment has one; got {shown}")
    return bfloat16, ROUNDINGS[found.pop()]


def _operand(specs: dict[str, Any], name: str, rounding: str) -> Operand:
    """How an operand with this spec of a format is quantised."""
    element = specs[name]
    if element is None:
        return Operand()
    if element not in ELEMENTS:
        raise ValueError(f"spec {name!r} must be one of {', '.join(map(repr, ELEMENTS))} or None, got {element!r}")
    if specs["scale_bits"] != 8:
        raise ValueError(f"spec 'scale_bits' must be 8, the width of E8M0, got {specs['scale_bits']!r}")
    size = specs["block_size"]
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ValueError(f"spec 'block_size' must be an integer of at least 0, got {size!r}")
    fmt = BlockFormat(f"mx_{element}", element=ELEMENTS[element], scale=E8M0, block=size or MX_BLOCK)
    flushed = "zero" if specs["mx_flush_fp32_subnorms"] else "keep"
    how = BlockScaling(format=fmt, rule="floor", block=None if size else "axis", subnormal_blocks=flushed)
    return Operand(scaling=how, rounding=ROUNDINGS[specs[rounding]])


TORCHAO = {
    "tensorwise": "torchao_tensorwise",
    "rowwise": "torchao_rowwise",
    "rowwise_with_gw_hp": "torchao_rowwise_with_gw_hp",
    "mxfp8_rceil": "torchao_mxfp8_rceil",
    "mxfp8_emulated_rceil": "torchao_mxfp8_rceil",
    "nvfp4": "torchao_nvfp4",
}
"""Recipes by torchao's names: of Float8LinearRecipeName, of MXFP8TrainingRecipe, and NVFP4TrainingConfig."""
MX_RULES = ("floor", "rceil", "ceil", "even")


def from_torchao(name: str, *, scale_calculation_mode: str | None = None) -> Recipe:
    """The recipe that torchao means by a name.

    Parameters
    ----------
    name : str
        "tensorwise", "rowwise" or "rowwise_with_gw_hp" (Float8LinearRecipeName); "mxfp8_rceil", "mxfp8_rceil_wgrad_with_hp" or
        "mxfp8_emulated_rceil" (MXFP8TrainingRecipe); "mxfp8" and "mxfp4" with a scale calculation mode; "nvfp4"
        (NVFP4TrainingConfig, which draws signs of its Hadamard transform: here they are TransformerEngine's). Members of its
        enumerations are taken too.
    scale_calculation_mode : {"floor", "rceil", "ceil", "even"}, optional
        Of "mxfp8" and "mxfp4"; default "floor".

    Raises
    ------
    ValueError, TypeError
        For other names, naming these.

    >>> from_torchao("mxfp8", scale_calculation_mode="even").forward.first.scaling.rule
    'even'
    """
    key = getattr(name, "value", name)
    mode = getattr(scale_calculation_mode, "value", scale_calculation_mode)
    accepted = (*TORCHAO, "mxfp8_rceil_wgrad_with_hp", "mxfp8", "mxfp4")
    if not isinstance(key, str):
        raise TypeError(f"name must be one of {', '.join(map(repr, accepted))}, got {name!r}")
    check_choice("name", key, accepted)
    if key not in ("mxfp8", "mxfp4") and mode is not None:
        raise ValueError(f"scale_calculation_mode is for 'mxfp8' and 'mxfp4', and {key!r} has its own; got {mode!r}")
    if key == "mxfp8_rceil_wgrad_with_hp":
        plain = Product(first=Operand(), second=Operand(), accumulator=fma("float32"))
        return replace(RECIPES["torchao_mxfp8_rceil"], name=f"torchao_{key}", weight_gradient=plain)
    if key in TORCHAO:
        return RECIPES[TORCHAO[key]]
    check_choice("scale_calculation_mode", mode, (None, *MX_RULES))
    rule = mode or "floor"
    fp8 = key == "mxfp8"
    return block_scaling(
        "mxfp8_e4m3" if fp8 else "mxfp4_e2m1",
        rule=rule,
        accumulator=tensor_core("B200", input="float8_e4m3fn", instruction="mxf8f6f4") if fp8 else fma("float32"),
        name=f"torchao_{key}_{rule}",
        meaning=f"{key}, scales by {rule}",
        source="torchao, ScaleCalculationMode",
        standing=RECIPES["torchao_mxfp8_rceil" if fp8 else "mxfp4"].standing,
    )
