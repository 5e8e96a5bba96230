"""What is described as JSON is described whole: formats, block formats and environments come back equal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from drawn import formats
from hypothesis import given

import softfloat
from softfloat import BLOCK_ROSTER, ROSTER, BlockFormat, Environment, Fixed, Format
from softfloat.accumulators import fma
from softfloat.descriptions import (
    block_format_from,
    described_block_format,
    described_environment,
    described_format,
    environment_from,
    format_from,
)
from softfloat.testing import strategies


def read(described: Any) -> Any:
    return json.loads(json.dumps(described))


OTHERS = [
    Format.p3109("binary6p3se"),
    Format.p3109(8, 3, signed=False, extended=False),
    Format.from_name("e5m7"),
    Format("half", exponent_bits=5, mantissa_bits=9),  # another format's other name
    Format("float16", exponent_bits=5, mantissa_bits=9),  # another format's name
    Format("bare", exponent_bits=3, mantissa_bits=0, nan="none", subnormals=False, bias=-7),
    Format("scales", exponent_bits=4, mantissa_bits=1, nan="fn", signed=False, zero=False, subnormals=False),
]


@pytest.mark.parametrize("fmt", [*ROSTER.values(), *OTHERS], ids=str)
def test_formats(fmt: Format) -> None:
    described = described_format(fmt)
    assert format_from(read(described)) == fmt
    named = fmt in ROSTER.values() or fmt.name.startswith(("binary", "e5m7"))
    assert (described == fmt.name) == named


@given(formats())
def test_formats_drawn(fmt: Format) -> None:
    assert format_from(read(described_format(fmt))) == fmt


@pytest.mark.parametrize(
    "fmt",
    [
        *BLOCK_ROSTER.values(),
        BlockFormat("mine", element=OTHERS[3], scale=OTHERS[6], block=(2, 3), tensor_scale="bfloat16"),
        BlockFormat("nvfp4", element=Fixed("i", bits=5, fraction_bits=2, symmetric=True), scale="bfloat16", block=3),
    ],
    ids=str,
)
def test_block_formats(fmt: BlockFormat) -> None:
    assert block_format_from(read(described_block_format(fmt))) == fmt


@given(strategies.environments())
def test_environments(env: Environment) -> None:
    assert environment_from(read(described_environment(env))) == env


def test_environments_with_more() -> None:
    env = Environment(
        traps="INVALID|OVERFLOW", seed=2**64 - 1, sr_method="half", sr_bits=3, rounding="stochastic", projection="p3109",
        overrides={"float32": Environment(daz=True, nan="arm")},
    )  # fmt: skip
    assert environment_from(read(described_environment(env))) == env
    with pytest.raises(ValueError, match="accumulator of the environment must be None"):
        described_environment(Environment(accumulator=fma("float16")))


GOOD = described_format(OTHERS[5])
assert isinstance(GOOD, dict)


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ("float7", "here: unknown format 'float7'; accepted"),
        (7, "here must describe a Format by name, exponent_bits"),
        ({**GOOD, "colour": 1}, "here must describe a Format by name"),
        ({k: v for k, v in GOOD.items() if k != "zero"}, "here must describe a Format by name"),
        ({**GOOD, "exponent_bits": 99}, "here describes no Format: exponent_bits must be 1 to 11"),
        ({**GOOD, "exponent_bits": "3"}, "here describes no Format: exponent_bits must be an integer"),
        ({**GOOD, "signed": 1}, "here describes no Format: signed must be"),
    ],
)
def test_what_is_no_format(described: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        format_from(described, "here")


def test_what_is_nothing_else_either() -> None:
    with pytest.raises(ValueError, match="here must be one of mxfp8_e4m3"):
        block_format_from("mxfp9", "here")
    with pytest.raises(ValueError, match="here must describe a BlockFormat by name, element"):
        block_format_from({"name": "mine"}, "here")
    with pytest.raises(ValueError, match="here must describe a Fixed by name, bits"):
        block_format_from({**described_of_mine(), "element": {"fixed": {}}}, "here")
    for described in (3, {"overrides": 3}):
        with pytest.raises(ValueError, match="here must describe an Environment"):
            environment_from(described, "here")
    for described in ({"colour": 1}, {"rounding": "upwards"}, {"traps": "all"}):
        with pytest.raises(ValueError, match="here describes no Environment"):
            environment_from(described, "here")


def described_of_mine() -> dict[str, Any]:
    found = described_block_format(BlockFormat("mine", element="e2m1", scale=softfloat.float8_e8m0fnu, block=3))
    assert isinstance(found, dict)
    return found
