"""Settings of other libraries: what they mean here, what is refused; and their recipes against what the originals made."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softfloat import Rounding, bfloat16, bits
from softfloat.blocks import Fixed
from softfloat.scaling import RECIPES, BlockScaling, from_microxcaling, from_torchao, quantized

SPECS = {"scale_bits": 8, "w_elem_format": "fp6_e3m2", "a_elem_format": "fp8_e4m3", "block_size": 32, "round": "even"}


def elements(recipe: Any) -> list[list[str | None]]:
    return [
        [None if x.scaling is None else str(x.scaling.format.element) for x in (p.first, p.second)]
        for p in recipe.products.values()
    ]


def test_which_spec_is_for_which_operand() -> None:
    specs = {**SPECS, "w_elem_format_bp": "int8", "a_elem_format_bp_os": "fp4_e2m1", "a_elem_format_bp_ex": "fp8_e5m2"}
    assert elements(from_microxcaling(specs)) == [
        ["float8_e4m3fn", "float6_e3m2fn"],
        ["float4_e2m1fn", "int8"],
        ["float8_e5m2", "float8_e5m2"],
    ]


def test_specs_follow_from_others() -> None:
    assert elements(from_microxcaling(SPECS)) == [
        ["float8_e4m3fn", "float6_e3m2fn"],
        ["float8_e4m3fn", "float6_e3m2fn"],
        ["float8_e4m3fn", "float8_e4m3fn"],
    ]
    recipe = from_microxcaling(
        {**SPECS, "round": "nearest", "round_grad_input": "floor", "round_mx_input_grad_weight": "even"}
    )
    assert recipe.forward.first.rounding is recipe.forward.second.rounding is Rounding.NEAREST_AWAY
    assert recipe.input_gradient.first.rounding is recipe.weight_gradient.first.rounding is Rounding.TOWARD_ZERO
    assert recipe.weight_gradient.second.rounding is Rounding.NEAREST_EVEN
    assert from_microxcaling({**SPECS, "round": None}).forward.first.rounding is Rounding.NEAREST_AWAY


def test_backward_passes_may_be_left_alone() -> None:
    assert elements(from_microxcaling({**SPECS, "quantize_backprop": False}))[1:] == [[None, None], [None, None]]
    assert not from_microxcaling({"custom_cuda": True}).forward.quantised


def test_sizes_of_blocks() -> None:
    recipe = from_microxcaling({**SPECS, "block_size": 0})
    x = np.linspace(-3, 5, 50, dtype=np.float32)
    assert quantized(x, recipe.forward.first, 0).codes.scales.shape == (1,)
    assert quantized(x, from_microxcaling({**SPECS, "block_size": 7}).forward.first, 0).codes.scales.shape == (8,)


def test_tensors_that_specs_ask_for() -> None:
    recipe = from_microxcaling({**SPECS, "bfloat": 16})
    assert (recipe.tensors, recipe.tensor_rounding) == (bfloat16, Rounding.NEAREST_EVEN)
    assert from_microxcaling(SPECS).tensors is None


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ({"elem_format": "fp4"}, "unknown spec 'elem_format'; specs must be among 'scale_bits', 'w_elem_format'"),
        ({**SPECS, "scale_bits": 4}, "'scale_bits' must be 8"),
        ({**SPECS, "w_elem_format": "fp5"}, "'w_elem_format' must be one of 'fp8_e5m2'"),
        ({**SPECS, "shared_exp_method": "none"}, "'shared_exp_method' must be 'max'"),
        ({**SPECS, "round": "dither"}, "'round' must be one of 'nearest', 'even', 'floor'"),
        ({**SPECS, "bfloat": 12}, "'bfloat' must be 0 or 16"),
        ({**SPECS, "bfloat": 16, "round_weight": "floor"}, "must be the same"),
        ({**SPECS, "fp": 16}, "'fp' must be 0"),
        ({**SPECS, "vec_use_exp2": True}, "'vec_use_exp2' must be False"),
        ({**SPECS, "block_size": -1}, "'block_size' must be an integer of at least 0"),
        ([("scale_bits", 8)], "specs must be Mapping"),
    ],
)
def test_specs_that_are_refused(specs: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        from_microxcaling(specs)


VECTORS = {
    "e4m3": "fp8_e4m3",
    "e5m2": "fp8_e5m2",
    "e2m3": "fp6_e2m3",
    "e3m2": "fp6_e3m2",
    "e2m1": "fp4",
    "int8": "int8",
}


@pytest.mark.parametrize("rounding", ["nearest", "even", "floor"])
@pytest.mark.parametrize("element", VECTORS)
def test_what_microxcaling_made(element: str, rounding: str, vectors: Path) -> None:
    """All but the blocks below powers of two, where its logarithm errs."""
    data = loaded(vectors, "blocks_microxcaling.npz")
    recipe = from_microxcaling(
        {"scale_bits": 8, "a_elem_format": VECTORS[element], "block_size": 32, "round": rounding}
    )
    plain = ~data["crafted"]
    values = quantized(data["x"], recipe.forward.first, -1).values[plain]
    np.testing.assert_array_equal(values, data[f"y__{element}__{rounding}"][plain])


def loaded(vectors: Path, name: str) -> Any:
    path = vectors / name
    if not path.exists():
        pytest.skip(f"SOFTFLOAT_VECTORS has no {name}")
    return np.load(path)


def test_smaller_integers() -> None:
    fmt = from_microxcaling({**SPECS, "a_elem_format": "int4"}).forward.first.scaling.format
    assert fmt.element == Fixed("int4", bits=4, fraction_bits=2, symmetric=True)
    assert fmt.element.max == 1.75


# -- torchao ---------------------------------------------------------------------------------------------------------


class Name(Enum):
    ROWWISE = "rowwise"


def test_names_of_torchao() -> None:
    assert from_torchao("tensorwise") is RECIPES["torchao_tensorwise"]
    assert from_torchao(Name.ROWWISE) is RECIPES["torchao_rowwise"]  # type: ignore[arg-type]
    assert from_torchao("mxfp8_emulated_rceil") is RECIPES["torchao_mxfp8_rceil"]
    mixed = from_torchao("mxfp8_rceil_wgrad_with_hp")
    assert mixed.forward == RECIPES["torchao_mxfp8_rceil"].forward
    assert not mixed.weight_gradient.quantised
    for rule in ("floor", "rceil", "ceil", "even"):
        made = from_torchao("mxfp4", scale_calculation_mode=rule).weight_gradient.second.scaling
        assert isinstance(made, BlockScaling)
        assert (made.rule, str(made.format)) == (rule, "mxfp4_e2m1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "all_tensorwise"}, "name must be one of 'tensorwise', 'rowwise'"),
        ({"name": 3}, "name must be one of"),
        ({"name": "rowwise", "scale_calculation_mode": "floor"}, "scale_calculation_mode is for 'mxfp8' and 'mxfp4'"),
        ({"name": "mxfp8", "scale_calculation_mode": "up"}, "scale_calculation_mode must be one of None, 'floor'"),
    ],
)
def test_names_that_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        from_torchao(**arguments)


@pytest.mark.parametrize(
    ("mode", "name"), [("floor", "e4m3fn"), ("rceil", "e4m3fn"), ("even", "e2m1fn"), ("ceil", "e2m1fn")]
)
def test_what_torchao_made(mode: str, name: str, vectors: Path) -> None:
    data = loaded(vectors, "blocks_mx.npz")
    recipe = from_torchao("mxfp8" if name == "e4m3fn" else "mxfp4", scale_calculation_mode=mode)
    found = quantized(data[f"x__{name}"], recipe.forward.first, -1).codes
    scales = data[f"scale__{name}__{mode}"]
    np.testing.assert_array_equal(found.scales[:, 0], scales)
    known = scales != 255
    np.testing.assert_array_equal(found.elements[known], data[f"codes__{name}__{mode}"][known])


@pytest.mark.parametrize(
    ("recipe", "operand", "name", "left_out"),
    [
        ("nvfp4", "first", "te_1x16", "te_minus_zero__1x16"),
        ("nvfp4", "second", "te_16x16", "te_minus_zero__16x16"),
        ("torchao_nvfp4", "first", "ao", "ao_nan"),
    ],
)
def test_what_nvfp4_recipes_made(recipe: str, operand: str, name: str, left_out: str, vectors: Path) -> None:
    data = loaded(vectors, "nvfp4.npz")
    how = getattr(RECIPES[recipe].forward, operand)
    for i, x in enumerate(data["x"]):
        found = quantized(x, how, -1).codes
        scales = np.repeat(found.scales, 16 if operand == "second" else 1, axis=0)
        expected = data[f"{name}_scale"][i]
        known = expected & 0x7F != 0x7F
        np.testing.assert_array_equal(scales[known], expected[known])
        meant = ~data[left_out][i]
        np.testing.assert_array_equal(found.elements[meant], data[f"{name}_codes"][i][meant])


def test_values_of_an_operand_that_is_left_alone() -> None:
    x = np.float32([1.5, -0.0])
    np.testing.assert_array_equal(
        quantized(x, from_microxcaling({}).forward.first, 0).values, bits.decode(x.view(np.uint32), "float32")
    )
