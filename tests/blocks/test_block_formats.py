"""Block formats and fixed-point elements: what they are, what they are called, what is refused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import BLOCK_ROSTER, BlockFormat, Fixed, bits
from softfloat.bits import BlockCodes
from softfloat.blocks.formats import BLOCK_ALIASES, block_format_facts

MX = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4_e2m1", "mxint8")


def test_the_roster_is_the_specifications() -> None:
    """Element, largest element, block and bits an element: OCP MX 1.0 table 1, NVFP4, MSFP."""
    found = {x.name: (str(x.element), x.element.max, x.block, x.bits_per_element) for x in BLOCK_ROSTER.values()}
    assert found == {
        "mxfp8_e4m3": ("float8_e4m3fn", 448.0, 32, 8.25),
        "mxfp8_e5m2": ("float8_e5m2", 57344.0, 32, 8.25),
        "mxfp6_e2m3": ("float6_e2m3fn", 7.5, 32, 6.25),
        "mxfp6_e3m2": ("float6_e3m2fn", 28.0, 32, 6.25),
        "mxfp4_e2m1": ("float4_e2m1fn", 6.0, 32, 4.25),
        "mxint8": ("int8", 127 / 64, 32, 8.25),
        "nvfp4": ("float4_e2m1fn", 6.0, 16, 4.5),
        "msfp12": ("int4_sm", 7 / 4, 16, 4.5),
        "msfp13": ("int5_sm", 15 / 8, 16, 5.5),
        "msfp14": ("int6_sm", 31 / 16, 16, 6.5),
        "msfp15": ("int7_sm", 63 / 32, 16, 7.5),
        "msfp16": ("int8_sm", 127 / 64, 16, 8.5),
    }
    assert {str(BLOCK_ROSTER[name].scale) for name in MX} == {"float8_e8m0fnu"}
    assert all(BLOCK_ROSTER[name].power_of_two_scale for name in MX)
    assert not softfloat.nvfp4.power_of_two_scale
    assert softfloat.nvfp4.tensor_scale == softfloat.float32


def test_names() -> None:
    assert BlockFormat.from_name("mxfp4") is softfloat.mxfp4_e2m1
    assert BlockFormat.from_name("MXFP8-E4M3") is softfloat.mxfp8_e4m3
    assert BlockFormat.from_name(softfloat.nvfp4) is softfloat.nvfp4
    assert {name: getattr(softfloat, name) for name in BLOCK_ROSTER} == BLOCK_ROSTER
    assert set(BLOCK_ALIASES.values()) <= set(BLOCK_ROSTER)
    for name in ("mxfp8", "mxfp6", "nonsense"):
        with pytest.raises(ValueError, match=r"unknown block format .* accepted: mxfp8_e4m3"):
            BlockFormat.from_name(name)
    with pytest.raises(TypeError, match=r"name must be a softfloat.BlockFormat or the name"):
        BlockFormat.from_name(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("fmt", BLOCK_ROSTER.values(), ids=str)
def test_the_text_makes_the_format_again(fmt: BlockFormat) -> None:
    assert eval(repr(fmt), {"BlockFormat": BlockFormat, "Fixed": Fixed}) == fmt
    assert pickle.loads(pickle.dumps(fmt)) == fmt == copy.deepcopy(fmt)
    assert hash(pickle.loads(pickle.dumps(fmt))) == hash(fmt)
    facts = dict(block_format_facts(fmt))
    assert facts["block"].startswith(str(fmt.block))
    assert all(name in fmt._repr_html_() for name in facts)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"name": ""}, TypeError, "name must be a non-empty string"),
        ({"element": "float5"}, ValueError, "unknown format 'float5'"),
        (
            {"element": 4},
            TypeError,
            "element must be a softfloat.Format, the name of one, a dtype, or a softfloat.Fixed",
        ),
        ({"element": "e8m0"}, ValueError, "element must be signed and have a zero"),
        ({"scale": Fixed("i", bits=8, fraction_bits=0)}, TypeError, "scale must be .* fixed point is for elements"),
        ({"block": 0}, ValueError, "block must be a positive integer"),
        ({"block": True}, TypeError, "block must be a positive integer"),
        ({"block": ()}, TypeError, "block must be a positive integer"),
        ({"block": (16, -1)}, ValueError, "block must be a positive integer"),
        ({"scale": "float32", "tensor_scale": "float32"}, None, ""),
        ({"element": "bfloat16", "scale": "float32", "tensor_scale": "float32"}, ValueError, "56 bits of precision"),
    ],
)
def test_what_is_refused(change: dict[str, Any], error: type[Exception] | None, message: str) -> None:
    given = {"name": "mine", "element": "float4_e2m1fn", "scale": "float8_e8m0fnu", "block": 32} | change
    if error is None:
        BlockFormat(**given)
        return
    with pytest.raises(error, match=message):
        BlockFormat(**given)


def test_fixed_point() -> None:
    byte = Fixed("byte", bits=8, fraction_bits=6)
    np.testing.assert_array_equal(byte.values, np.arange(256, dtype=np.uint8).view(np.int8) / 64)
    assert (byte.max, byte.min, byte.emax, byte.layout) == (127 / 64, -2.0, 0, "s.iffffff")
    symmetric = softfloat.mxint8.element
    assert (symmetric.min, symmetric.values[0x80]) == (-127 / 64, -2.0)
    magnitude = softfloat.msfp12.element
    assert magnitude.values.tolist() == [k / 4 for k in range(8)] + [-k / 4 for k in range(8)]
    assert np.signbit(magnitude.values[8])
    for change, error in (
        ({"bits": 1}, ValueError),
        ({"bits": 17}, ValueError),
        ({"bits": 4.0}, TypeError),
        ({"fraction_bits": -1}, ValueError),
        ({"coding": "ones_complement"}, ValueError),
        ({"symmetric": 1}, TypeError),
        ({"symmetric": True, "coding": "sign_magnitude"}, ValueError),
    ):
        given: dict[str, Any] = {"bits": 8, "fraction_bits": 6} | change
        with pytest.raises(error, match=next(iter(change))):
            Fixed("mine", **given)


def test_elements_of_blocks_are_no_formats() -> None:
    """What takes formats says where fixed point and blocks belong."""
    with pytest.raises(TypeError, match=r"fmt must be .*Fixed.*elements of blocks alone"):
        bits.encode(1.0, softfloat.mxint8.element)
    with pytest.raises(TypeError, match=r"fmt must be .*BlockFormat.*bits.quantize"):
        bits.decode(1, softfloat.mxfp4_e2m1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Fixed; fixed point is for elements"):
        softfloat.Format.from_name(softfloat.mxint8.element)


# -- codes -----------------------------------------------------------------------------------------------------------


def test_shapes_of_blocks() -> None:
    codes = np.zeros((5, 70), np.uint8)
    assert BlockCodes(codes, np.zeros((5, 3), np.uint8), "mxfp4").block_shape == (1, 32)
    columns = BlockCodes(codes, np.zeros((1, 70), np.uint8), "mxfp4", axis=0)
    assert (columns.block_shape, columns.axis) == ((32, 1), 0)
    tiles = BlockCodes(codes, np.zeros((1, 5), np.uint8), "nvfp4", block=(16, 16))
    assert (tiles.block_shape, tiles.axis, tiles.tensor_scale) == ((16, 16), 1, None)
    spread = tiles.spread(np.arange(5)[None])
    np.testing.assert_array_equal(spread, np.broadcast_to(np.arange(70) // 16, (5, 70)))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([16], [0], "mxfp4"), {}, ValueError, "elements holds 0x10, which is no code of float4_e2m1fn"),
        (([1.5], [0], "mxfp4"), {}, TypeError, "elements must be codes of float4_e2m1fn"),
        (([256], [0], "mxint8"), {}, ValueError, "elements holds 0x100, which is no code of int8"),
        (([1], [256], "mxfp4"), {}, ValueError, "scales holds 0x100"),
        (([1], [0, 0], "mxfp4"), {}, ValueError, r"scales must be of shape \(1,\).*got \(2,\)"),
        ((1, 0, "mxfp4"), {}, ValueError, "no axis"),
        (([1], [0], "mxfp4"), {"axis": 1}, ValueError, "axis must be one of an array of 1 axes"),
        (([1], [0], "mxfp4"), {"axis": 0.0}, TypeError, "axis must be an integer"),
        (([1], [0], "mxfp4"), {"block": (16, 16)}, ValueError, "has 2 axes and the array 1"),
        (([1], [0], "mxfp4"), {"tensor_scale": 1.0}, ValueError, "tensor_scale is for formats that have one"),
        (([1], [0], "nvfp4"), {"tensor_scale": 0.0}, ValueError, "tensor_scale must be positive and finite"),
        (([1], [0], "nvfp4"), {"tensor_scale": np.inf}, ValueError, "tensor_scale must be positive and finite"),
        (([1], [0], "nvfp4"), {"tensor_scale": 0.1}, ValueError, "tensor_scale must be a float32 number"),
        (([1], [0], "float16"), {}, ValueError, "unknown block format 'float16'"),
    ],
)
def test_codes_that_are_refused(
    arguments: tuple[Any, Any, str], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        BlockCodes(*arguments, **options)


def test_packing() -> None:
    codes = np.random.default_rng(0).integers(0, 16, (3, 64), dtype=np.uint8)
    blocks = BlockCodes(codes, np.full((3, 4), 0x38, np.uint8), "nvfp4", tensor_scale=0.5)
    packed = blocks.packed()
    assert packed.shape == (3, 32)
    assert packed[1, 5] == codes[1, 10] | codes[1, 11] << 4
    again = BlockCodes.from_packed(packed, blocks.scales, "nvfp4", tensor_scale=0.5)
    np.testing.assert_array_equal(again.elements, codes)
    assert blocks.nbytes == 96 + 12
    wide = BlockCodes(codes, np.zeros((3, 2), np.uint8), "mxfp8_e4m3")
    np.testing.assert_array_equal(wide.packed(), codes)
    np.testing.assert_array_equal(BlockCodes.from_packed(codes, wide.scales, "mxfp8_e4m3").elements, codes)
    with pytest.raises(ValueError, match="even number of them, got 3"):
        BlockCodes([1, 2, 3], [0], "mxfp4").packed()
    with pytest.raises(TypeError, match="packed must be an array of uint8"):
        BlockCodes.from_packed([1, 2], [0], "mxfp4")
