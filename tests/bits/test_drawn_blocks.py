"""Quantising with every field drawn: formats of elements and scales, rules, shapes, axes, options, numbers; a block at a time against the oracle."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from drawn import formats
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as extra
from softfloat.kernels.spec import NAN_POLICIES

import softfloat
from softfloat import BLOCK_ROSTER, ROSTER, BlockFormat, Fixed, Format, bits, reference
from softfloat.bits import BlockCodes
from softfloat.blocks import SCALE_RULES
from softfloat.blocks.rules import POWER_OF_TWO, TWO_LEVELS
from softfloat.engine.options import ENVIRONMENT_OPTIONS, FIXED
from softfloat.environments import Rounding
from softfloat.reference.blocks import tensor_scale_of

REFUSALS = (
    "x holds blocks whose scale is NaN",
    "overflow='nan' needs",
    "zero_block='one' needs scales with a 1",
    "sr_bits must be",
    "is beyond float32; accepted: tensor_scale",
)
"""What a call that fits together may still be refused for."""

FORMATS = st.one_of(st.sampled_from(list(ROSTER.values())), formats())


@st.composite
def fixed(draw: st.DrawFn) -> Fixed:
    width, signs = draw(st.integers(2, 16)), draw(st.booleans())
    coding = "sign_magnitude" if signs else "twos_complement"
    symmetric = not signs and draw(st.booleans())
    fraction = draw(st.integers(0, width + 8))
    return Fixed("fixed", bits=width, fraction_bits=fraction, coding=coding, symmetric=symmetric)


@st.composite
def block_formats(draw: st.DrawFn) -> BlockFormat:
    """Any that can be made, those of the roster often."""
    if draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from(list(BLOCK_ROSTER.values())))
    element = draw(st.one_of(FORMATS, fixed()))
    if isinstance(element, Format) and not (element.signed and element.zero):
        element = ROSTER["float6_e3m2fn"]
    scale = draw(st.one_of(FORMATS, st.just(ROSTER["float8_e8m0fnu"])))
    block = draw(st.one_of(st.integers(1, 6), st.tuples(st.integers(1, 3), st.integers(1, 4))))
    tensor = draw(st.sampled_from([None, "float32"]))
    try:
        return BlockFormat("drawn", element=element, scale=scale, block=block, tensor_scale=tensor)
    except ValueError:  # beyond float64 together
        return BlockFormat("drawn", element=element, scale="float8_e8m0fnu", block=block)


ANY = st.integers(0, 2**32 - 1).map(lambda code: float(np.uint32(code).view(np.float32)))
NEAR = st.floats(-16, 16, width=32)
POWERS = st.builds(lambda e, down: math.ldexp(1 - down * 2.0**-24, e), st.integers(-120, 120), st.booleans())
SPECIAL = st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 2.0**-149, -(2.0**-126), softfloat.float32.max])
NUMBERS = st.one_of(NEAR, NEAR, ANY, POWERS, SPECIAL)

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "rounding": st.sampled_from([x.name.lower() for x in Rounding]),
        "overflow": st.sampled_from(["infinity", "saturate", "nan"]),
        "tininess": st.sampled_from(["before", "after"]),
        "infinite_input": st.sampled_from(["default", "keep", "saturate"]),
        "nan": st.sampled_from(sorted(NAN_POLICIES)),
        "projection": st.sampled_from(["ieee", "p3109"]),
        "daz": st.booleans(),
        "ftz": st.booleans(),
    },
)
TREATMENTS = st.fixed_dictionaries(
    {},
    optional={
        "nans": st.sampled_from(["block", "element"]),
        "infinities": st.sampled_from([None, "block", "saturate", "element"]),
        "nan_to": st.sampled_from(["max", "zero", "negative_zero"]),
        "zero_block": st.sampled_from([None, "smallest", "one", "nan", "rule"]),
        "subnormal_blocks": st.sampled_from(["keep", "zero"]),
    },
)
RANDOM = st.fixed_dictionaries(
    {"sr_bits": st.sampled_from([1, 3, 8, 16, 52])},
    optional={"sr_method": st.sampled_from(["truncate", "half", "nearest", "A", "B", "C"])},
)
POSITIVE = st.floats(2.0**-149, float(np.finfo(np.float32).max), width=32)


@st.composite
def calls(draw: st.DrawFn) -> tuple[np.ndarray, BlockFormat, str, int, dict[str, Any], dict[str, Any], dict[str, Any]]:
    """(x, format, rule, axis, what both are told, what the oracle is told of the tensor, random numbers)."""
    fmt = draw(block_formats())
    rule = draw(
        st.sampled_from([x for x in SCALE_RULES.values() if (x.kind == POWER_OF_TWO) == fmt.power_of_two_scale])
    )
    axes = draw(st.integers(2 if isinstance(fmt.block, tuple) else 1, 3))
    shape = tuple(draw(st.lists(st.integers(0, 5), min_size=axes, max_size=axes)))
    axis = draw(st.integers(-axes, axes - 1))
    x = draw(extra.arrays(np.float32, shape, elements=NUMBERS.map(np.float32), fill=st.just(np.float32(1))))
    options = {**draw(TREATMENTS), **draw(OPTIONS)}
    if isinstance(fmt.element, Fixed):  # which has no NaN and no subnormal number of its own
        idle = ENVIRONMENT_OPTIONS - FIXED.settings
        options = {name: value for name, value in options.items() if name not in idle}
    tensor: dict[str, Any] = {}
    if rule.kind != TWO_LEVELS and draw(st.booleans()):
        options["minimum"] = draw(st.one_of(st.just(0.0), POSITIVE))
    elif rule.kind == TWO_LEVELS and fmt.tensor_scale is not None:
        name = draw(st.sampled_from(["tensor_amax", "tensor_scale"]))
        tensor[name] = draw(POSITIVE if name == "tensor_scale" else st.one_of(st.just(0.0), POSITIVE))
    random = draw(RANDOM) if options.get("rounding") == "stochastic" else {}
    if options.get("rounding") == "up_or_down":
        random = {"seed": 7}
    return x, fmt, rule.name, axis, options, tensor, random


UNSIGNED = {"nan": "fn", "infinities": True, "subnormals": False, "signed": False, "zero": False}
NO_ZERO = Format("no_zero", exponent_bits=5, mantissa_bits=5, bias=15, **UNSIGNED)
LONE_NAN = BlockFormat("lone", element="float8_e4m3fn", scale="float8_e5m2fnuz", block=4)
ONES = np.ones(3, np.float32)


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(calls(), st.sampled_from(["each", "any"]), st.booleans())
@example((ONES * np.float32(math.nan), LONE_NAN, "amax", -1, {}, {}, {}), "each", False)
@example((ONES[:1] * np.float32(math.nan), BLOCK_ROSTER["msfp15"], "ceil", -1, {}, {}, {}), "any", False)
@example(
    (ONES * np.float32(1e-44), BlockFormat("z", element="float8_e5m2", scale=NO_ZERO, block=3), "te", 0, {}, {}, {}),
    "each",
    True,
)
@example(
    (np.float32([np.inf, 3e-38]), BlockFormat("i", element="float6_e3m2fn", scale="bfloat16", block=2, tensor_scale="float32"), "te", 0,
     {"overflow": "infinity"}, {"tensor_scale": float(np.float32(1e32))}, {}), "each", False
)  # fmt: skip
def test_every_field(call: Any, flags: str, count: bool) -> None:
    x, fmt, rule, axis, options, tensor, random = call
    given = {**options, **tensor, **random, **({"seed": 7, "stream": 3} if random else {})}
    try:
        made = bits.quantize(x, fmt, rule, axis=axis, flags=flags, count=count, **given)
    except (ValueError, TypeError) as reason:
        if not any(text in str(reason) for text in REFUSALS):
            raise
        return
    blocks, raised = made[0], made[1]
    drawn = bits.random_bits(x.shape, seed=7, stream=3, sr_bits=random.get("sr_bits", 1)) if random else None
    if "tensor_amax" in tensor:
        known = tensor_scale_of(tensor["tensor_amax"], fmt, rule, Fraction(fmt.scale.max))
        assert blocks.tensor_scale is not None
        assert Fraction(float(blocks.tensor_scale)) == known
    values = bits.dequantize(blocks)
    scale = None if blocks.tensor_scale is None else float(blocks.tensor_scale)
    seen = 0
    for place in np.ndindex(*blocks.scales.shape):
        here = tuple(slice(i * n, (i + 1) * n) for i, n in zip(place, blocks.block_shape, strict=True))
        row = x[here].ravel()
        method = {name: value for name, value in random.items() if name != "seed"}
        words = {} if drawn is None else {"random_bits": drawn[here].ravel().tolist()}
        found = reference.quantize_block(row.tolist(), fmt, rule, **options, **tensor, **method, **words)
        assert int(blocks.scales[place]) == found.scale
        assert blocks.elements[here].ravel().tolist() == found.codes
        signalling = bits.issnan(row.view(np.uint32), "float32")
        wanted = [flag | 16 * bool(invalid) for flag, invalid in zip(found.flags, signalling, strict=True)]
        seen |= int(np.bitwise_or.reduce(wanted, initial=0))
        if flags == "each":
            assert raised[here].ravel().tolist() == wanted
        exactly = reference.dequantize_block(found.codes, found.scale, fmt, scale)
        np.testing.assert_array_equal(values[here].ravel(), [float(v) for v in exactly])
        if count:
            assert made[2].saturated[place] == sum(flag & 4 != 0 for flag in wanted)
    if flags == "any":
        assert raised == seen


@settings(max_examples=60, deadline=None)
@given(block_formats(), st.integers(0, 5), st.integers(0, 3), st.data())
def test_codes_of_any_format_are_read(fmt: BlockFormat, rows: int, columns: int, data: st.DataObject) -> None:
    """Any codes under any scales; packed and unpacked where elements have 4 bits."""
    shape = (rows, 2 * columns)
    block = fmt.block_shape(2, -1)
    grid = tuple(-(-n // b) for n, b in zip(shape, block, strict=True))

    def codes(dtype: Any, width: int, size: tuple[int, ...]) -> np.ndarray:
        return data.draw(extra.arrays(dtype, size, elements=st.integers(0, (1 << width) - 1)))

    elements, scales = codes(fmt.element.dtype, fmt.element.bits, shape), codes(fmt.scale.dtype, fmt.scale.bits, grid)
    tensor = data.draw(st.one_of(st.none(), POSITIVE)) if fmt.tensor_scale is not None else None
    blocks = BlockCodes(elements, scales, fmt, tensor_scale=tensor)
    values, of_elements = bits.dequantize(blocks), blocks.spread(scales)
    for place in np.ndindex(*shape):
        (wanted,) = reference.dequantize_block([int(elements[place])], int(of_elements[place]), fmt, tensor)
        np.testing.assert_array_equal(values[place], float(wanted))
    again = BlockCodes.from_packed(blocks.packed(), scales, fmt, tensor_scale=tensor)
    np.testing.assert_array_equal(again.elements, elements)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BlockCodes([1], [1], "nvfp4", tensor_scale=0.0), "tensor_scale must be positive and finite, got 0"),
        (lambda: BlockCodes([1], [1], "nvfp4", tensor_scale=math.inf), "tensor_scale must be positive and finite, got inf"),
        (lambda: BlockCodes([1], [1], "nvfp4", tensor_scale=math.nan), "tensor_scale must be positive and finite, got nan"),
        (lambda: BlockCodes([1], [1], "nvfp4", tensor_scale=True), "tensor_scale must be a number, got True"),
        (lambda: BlockCodes([1], [1], COARSE, tensor_scale=1.0 + 2.0**-10), "tensor_scale must be a number of bfloat16"),
        (lambda: bits.quantize(ONES, COARSE), "tensor_scale must be given for coarse: rule 'te' computes it in float32"),
        (lambda: bits.quantize(ONES * 256, TINY_RANGE), "magnitudes up to 256, .* beyond float32; accepted: tensor_scale"),
        (lambda: bits.quantize(ONES, NO_ONE, zero_block="one"), "zero_block='one' needs scales with a 1, and no_one has none"),
        (lambda: bits.quantize(ONES, "nvfp4", tensor_amax=np.float64(1e300)), "tensor_amax must be a float32 number"),
        (lambda: bits.quantize(ONES, "mxfp4", flags=np.zeros(2)), "flags must be 'each'"),
        (lambda: bits.quantize(ONES, "mxfp4", nans=np.zeros(2)), "nans must be one of 'block', 'element'"),
        (lambda: bits.quantize(ONES, "mxfp4", zero_block=[]), "zero_block must be one of"),
        (lambda: bits.quantize(ONES, "mxfp4", block=10**30), "block must be a positive integer .* at most 2.31 - 1"),
        (lambda: BLOCK_ROSTER["mxfp4_e2m1"].block_shape(1.5, 0), "ndim must be an integer"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()


COARSE = BlockFormat("coarse", element="float4_e2m1fn", scale="float8_e4m3fn", block=2, tensor_scale="bfloat16")
NO_ONE = BlockFormat(
    "no_one_block", element="float4_e2m1fn", block=2,
    scale=Format("no_one", exponent_bits=3, mantissa_bits=1, bias=20, nan="fn", signed=False),
)  # fmt: skip
TINY_RANGE = BlockFormat(
    "tiny_range", element=Fixed("i", bits=4, fraction_bits=12), block=2, tensor_scale="float32",
    scale=Format("small", exponent_bits=3, mantissa_bits=1, bias=120, nan="fn", signed=False),
)  # fmt: skip


def test_given_tensor_scales_of_other_formats() -> None:
    """One that its format has is taken; rules that want none need none."""
    blocks, _ = bits.quantize(ONES * 3, COARSE, tensor_scale=0.5)
    assert blocks.tensor_scale == 0.5
    assert bits.quantize(ONES, COARSE, "amax")[0].tensor_scale is None
