"""Block formats against what the original libraries made: torchao, microxcaling, TransformerEngine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tallies

from softfloat import bits
from softfloat.bits import BlockCodes

MX = {
    "e4m3fn": "mxfp8_e4m3",
    "e5m2": "mxfp8_e5m2",
    "e2m3fn": "mxfp6_e2m3",
    "e3m2fn": "mxfp6_e3m2",
    "e2m1fn": "mxfp4_e2m1",
}
NAN_SCALE = 255


def loaded(vectors: Path, name: str) -> Any:
    path = vectors / name
    if not path.exists():
        pytest.skip(f"SOFTFLOAT_VECTORS has no {name}")
    return np.load(path)


@pytest.mark.conformance("block scales and elements: torchao")
@pytest.mark.parametrize("rule", ["floor", "ceil", "even", "rceil"])
@pytest.mark.parametrize("name", MX)
def test_torchao(name: str, rule: str, vectors: Path, tally: tallies.Tally) -> None:
    """Codes of blocks whose scale is NaN have no meaning there."""
    data = loaded(vectors, "blocks_mx.npz")
    blocks, _ = bits.quantize(data[f"x__{name}"], MX[name], rule, flags="any")
    scales, codes = data[f"scale__{name}__{rule}"], data[f"codes__{name}__{rule}"]
    meant = (scales != NAN_SCALE)[:, None]
    wrong = int((blocks.scales[:, 0] != scales).sum()) + int(((blocks.elements != codes) & meant).sum())
    tally(f"quantize, {rule}", MX[name], "nearest_even", scales.size + int(meant.sum()) * codes.shape[1], wrong)
    assert not wrong


ELEMENTS = {
    "e4m3": "mxfp8_e4m3",
    "e5m2": "mxfp8_e5m2",
    "e2m3": "mxfp6_e2m3",
    "e3m2": "mxfp6_e3m2",
    "e2m1": "mxfp4_e2m1",
    "int8": "mxint8",
}
ROUNDINGS = {"nearest": "nearest_away", "even": "nearest_even", "floor": "toward_zero"}


@pytest.mark.conformance("block values: microxcaling")
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("element", ELEMENTS)
def test_microxcaling(element: str, rounding: str, vectors: Path, tally: tallies.Tally) -> None:
    """All but the blocks whose largest magnitude lies just below a power of two, where its logarithm errs."""
    data = loaded(vectors, "blocks_microxcaling.npz")
    blocks, _ = bits.quantize(data["x"], ELEMENTS[element], rounding=ROUNDINGS[rounding], flags="any")
    expected, crafted = data[f"y__{element}__{rounding}"], data["crafted"]
    values = bits.dequantize(blocks)
    differs = (values != expected) & ~(np.isnan(values) & np.isnan(expected))
    wrong = int(differs[~crafted].sum())
    tally("quantize and dequantize, floor", ELEMENTS[element], ROUNDINGS[rounding], int((~crafted).sum()) * 32, wrong)
    assert not wrong
    known = data[f"differs_from_exponent_field__{element}__{rounding}"]
    assert known.any()
    np.testing.assert_array_equal(differs.any(axis=1), known)


def test_what_microxcaling_does_below_powers_of_two(vectors: Path) -> None:
    """Its shared exponent is one too high there: the logarithm in float32 is that of the power itself."""
    data = loaded(vectors, "blocks_microxcaling.npz")
    known = data["differs_from_exponent_field__e4m3__even"]
    x, expected = data["x"][known], data["y__e4m3__even"][known]
    blocks, _ = bits.quantize(x, "mxfp8_e4m3", flags="any")
    amax = np.abs(x).max(axis=1)
    assert (np.nextafter(amax, np.float32(np.inf)) == 2.0 ** (blocks.scales[:, 0].astype(int) - 127 + 8 + 1)).all()
    raised = BlockCodes(np.zeros_like(blocks.elements), blocks.scales + 1, "mxfp8_e4m3")
    scale = raised.spread(bits.decode(raised.scales, "float8_e8m0fnu"))
    codes, _ = bits.encode(x / scale, "float8_e4m3fn", overflow="saturate", flags="any")
    np.testing.assert_array_equal(bits.dequantize(BlockCodes(codes, raised.scales, "mxfp8_e4m3")), expected)


RECIPES: dict[str, tuple[str, dict[str, Any], str]] = {
    "te_1x16": ("TransformerEngine", {"recipe": "te"}, "te_minus_zero__1x16"),
    "te_16x16": ("TransformerEngine", {"recipe": "te", "block": (16, 16)}, "te_minus_zero__16x16"),
    "te_4over6_mae": ("TransformerEngine", {"four_over_six": "mae"}, ""),
    "te_4over6_mse": ("TransformerEngine", {"four_over_six": "mse"}, ""),
    "ao": ("torchao", {"recipe": "torchao"}, "ao_nan"),
    "ao1": ("torchao", {"recipe": "torchao", "tensor_scale": None}, ""),
}


@pytest.mark.conformance("NVFP4: TransformerEngine and torchao")
@pytest.mark.parametrize("name", RECIPES)
def test_nvfp4(name: str, vectors: Path, tally: tallies.Tally) -> None:
    """Left out: -0, which TransformerEngine's reference codes as 0, and torchao's NaN where a tensor is all zeros."""
    data = loaded(vectors, "nvfp4.npz")
    library, options, left_out = RECIPES[name]
    cases = wrong = 0
    for i, x in enumerate(data["x"]):
        blocks, _ = bits.quantize(x, "nvfp4", flags="any", **options)
        scales = blocks.scales if len(blocks.scales) == len(x) else np.repeat(blocks.scales, 16, axis=0)
        expected, codes = data[f"{name}_scale"][i], data[f"{name}_codes"][i]
        meant = ~data[left_out][i] if left_out else np.ones(codes.shape, bool)
        if "4over6" in name:
            meant &= (blocks.elements & 7 != 0) | (codes & 7 != 0)
        known = expected & 0x7F != 0x7F
        wrong += int(((scales != expected) & known).sum()) + int(((blocks.elements != codes) & meant).sum())
        cases += int(known.sum()) + int(meant.sum())
        if name == "ao" and data["ao_tensor_scale"][i]:
            assert blocks.tensor_scale == data["ao_tensor_scale"][i]
    tally(f"quantize, {library} {name.partition('_')[2]}".rstrip(), "nvfp4", "nearest_even", cases, wrong)
    assert not wrong


@pytest.mark.conformance("NVFP4: TransformerEngine and torchao")
def test_a_given_tensor_scale_is_the_computed_one(vectors: Path, tally: tallies.Tally) -> None:
    data = loaded(vectors, "nvfp4.npz")
    for x, amax, scale in zip(data["x"], data["amax"], data["ao_tensor_scale"], strict=True):
        computed, _ = bits.quantize(x, "nvfp4", recipe="torchao", flags="any")
        given = [{"tensor_amax": amax}] + ([{"tensor_scale": scale}] if scale else [])
        for options in given:
            blocks, _ = bits.quantize(x, "nvfp4", recipe="torchao", flags="any", **options)
            np.testing.assert_array_equal(blocks.elements, computed.elements)
            np.testing.assert_array_equal(blocks.scales, computed.scales)
        tally("quantize, torchao, scale given", "nvfp4", "nearest_even", x.size)
