"""Prepared scalars are the functions of softfloat.bits, code by code."""

from __future__ import annotations

import threading
from typing import Any

import exported
import numpy as np
import pytest

from softfloat import Environment, Format, bits
from softfloat.bits.functions import evaluations
from softfloat.bits.functions.evaluations import EVALUATED
from softfloat.bits.operations import ELEMENTWISE
from softfloat.environments import Settings

PREPARED = ("add", "sub", "mul", "div", "remainder", "sqrt", "fma", "round_to_integral", "floor_divide", "hypot")
OTHERS = ("exp", "atan2", "eq", "lt", "maximum", "minimum_number", "next_up")


def rows(fmt: Format | str, count: int, size: int, seed: int) -> list[list[int]]:
    columns = exported.operands(bits.scalars.check_format(fmt), count, 500, seed)
    chosen = np.random.default_rng(seed).permutation(np.stack(columns, 1))[:size]
    return chosen.astype(object).tolist()


def same(found: Any, wanted: Any) -> None:
    result, flags = wanted
    assert found == (result.item(), int(flags))
    assert type(found[1]) is int
    assert type(found[0]) in (int, bool)


@pytest.mark.parametrize("operation", [*PREPARED, *OTHERS])
@pytest.mark.parametrize("fmt", ["float16", "float8_e4m3fn"])
def test_scalars_are_functions(operation: str, fmt: str) -> None:
    count = len(ELEMENTWISE[operation].operands)
    for seed, environment in enumerate(exported.environments(bits.scalars.check_format(fmt), 4)):
        prepared = bits.scalar(operation, fmt, environment=environment)
        for row in rows(fmt, count, 12, seed):
            same(prepared(*row), getattr(bits, operation)(*row, fmt, environment=environment))


@pytest.mark.parametrize("operation", EVALUATED)
@pytest.mark.parametrize("fmt", ["float16", "float32", "float8_e4m3fnuz", "tfloat32"])
def test_functions_are_evaluated_alone(operation: str, fmt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the C library's float64 functions, which tables of unary ones hide in narrow formats."""
    monkeypatch.setattr(bits.scalars, "_TABLE_BITS", 0)
    count = len(ELEMENTWISE[operation].operands)
    draw = np.random.default_rng(1)
    for seed, environment in enumerate(exported.environments(bits.scalars.check_format(fmt), 2)):
        values = draw.standard_normal((20, count)) * 2.0 ** draw.integers(-9, 9, (20, count))
        codes = bits.encode(values, fmt)[0].tolist() + rows(fmt, count, 20, seed)
        prepared = bits.scalar(operation, fmt, environment=environment)
        results, flags = getattr(bits, operation)(*np.array(codes).T, fmt, environment=environment)
        assert [prepared(*row) for row in codes] == list(zip(results.tolist(), flags.tolist(), strict=True))


def test_most_values_are_evaluated_alone() -> None:
    """Else the long way would hide what the short one does."""
    draw = np.random.default_rng(2)
    for operation in EVALUATED:
        count = len(ELEMENTWISE[operation].operands)
        known = evaluations.prepared(operation, count, bits.scalars.check_format("float32"), Settings())
        if known is None:
            pytest.skip("nothing is compiled")
        codes, _ = bits.encode(draw.uniform(0.1, 3.0, (300, count)), "float32")
        assert sum(known(*row) is None for row in codes.tolist()) < 9, operation


def test_a_value_near_a_tie_goes_the_long_way() -> None:
    """What a C library says of sums next to a tie of float32 decides nothing."""
    known = evaluations.prepared("logaddexp", 2, bits.scalars.check_format("float32"), Settings())
    if known is None:
        pytest.skip("nothing is compiled")
    for a, b in ((1.0, -23.5), (1.0, -40.0), (3.0, -300.0)):
        codes = [int(bits.encode(x, "float32")[0]) for x in (a, b)]
        same(bits.scalar("logaddexp", "float32")(*codes), bits.logaddexp(*codes, "float32"))
    assert known(*codes) is None


FLUSHED = Format("e8m20 flushed", exponent_bits=8, mantissa_bits=20, subnormals=False)
ZEROLESS = Format("e8m20 without zero", 8, 20, signed=False, subnormals=False, zero=False)


@pytest.mark.parametrize("fmt", ["float32", "tfloat32", FLUSHED, ZEROLESS], ids=str)
@pytest.mark.parametrize("operation", ["next_up", "next_down"])
def test_neighbours(operation: str, fmt: Format | str) -> None:
    """Below the smallest normal number is 0 where there are no subnormal ones: 0x000fffff was, which reads as zero."""
    prepared = bits.scalar(operation, fmt)
    for (code,) in rows(fmt, 1, 400, 3):
        same(prepared(code), getattr(bits, operation)(code, fmt))


def test_every_option_is_applied() -> None:
    options: list[dict[str, Any]] = [
        {"rounding": "to_odd", "daz": True},
        {"ftz": True, "tininess": "before", "nan": "arm"},
        {"rounding": "stochastic", "seed": 5, "sr_bits": 9, "stream": 3},
        {"rounding": "stochastic", "seed": 5, "generator": "xoroshiro128aox", "stream": 4},
        {"overflow": "saturate", "infinite_input": "nan"},
    ]
    for more in options:
        prepared = bits.scalar("fma", "float16", **more)
        for row in rows("float16", 3, 60, 2):
            same(prepared(*row), bits.fma(*row, "float16", **more))


def test_calls_have_streams_or_bits_of_their_own() -> None:
    environment = Environment(rounding="stochastic", seed=8, sr_bits=11)
    seeded = bits.scalar("mul", "bfloat16", environment=environment)
    handed = bits.scalar("mul", "bfloat16", rounding="stochastic", sr_bits=11)
    seen = set()
    for stream in range(40):
        drawn = int(bits.random_bits(1, seed=8, stream=stream, sr_bits=11)[0])
        found = seeded(0x3F9D, 0x40A7, stream=stream)
        same(found, bits.mul(0x3F9D, 0x40A7, "bfloat16", environment=environment, stream=stream))
        assert handed(0x3F9D, 0x40A7, random_bits=drawn) == found
        assert seeded(0x3F9D, 0x40A7, random_bits=drawn) == found
        seen.add(found)
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("operation", "more"), [("fma", {}), ("convert", {"to": "float8_e5m2"}), ("round_to_integral", {})]
)
def test_random_bits_are_handed_in(operation: str, more: dict[str, Any]) -> None:
    options: dict[str, Any] = {"rounding": "stochastic", "sr_bits": 9, "nan": "arm"}
    prepared = bits.scalar(operation, "float16", **more, **options)
    count = 1 if operation == "convert" else len(ELEMENTWISE[operation].operands)
    formats = ["float16", *more.values()]
    drawn = np.random.default_rng(2).integers(0, 512, 60).tolist()
    for row, number in zip(rows("float16", count, 60, 4), drawn, strict=True):
        same(
            prepared(*row, random_bits=number), getattr(bits, operation)(*row, *formats, random_bits=number, **options)
        )
    for refused in ({}, {"random_bits": 512}, {"random_bits": -1}, {"random_bits": 3, "stream": 4, "other": 1}):
        with pytest.raises((ValueError, TypeError)):
            prepared(*rows("float16", count, 1, 1)[0], **refused)


def test_conversions_and_choices_of_their_own() -> None:
    narrow = bits.scalar("convert", "float32", to="float8_e4m3fn", overflow="saturate")
    for (row,) in rows("float32", 1, 60, 1):
        same(narrow(row), bits.convert(row, "float32", "float8_e4m3fn", overflow="saturate"))
    quiet = bits.scalar("round_to_integral", "float16", exact=False)
    assert (quiet(0x3E00), bits.scalar("round_to_integral", "float16")(0x3E00)) == ((0x4000, 0), (0x4000, 1))
    assert bits.scalar("lt", "float16", signalling=False)(0x7E00, 0) == (False, 0)
    assert bits.scalar("lt", "float16")(0x7E00, 0) == (False, 16)


def test_threads_share_one() -> None:
    prepared, wrong = bits.scalar("fma", "float16"), []
    table = [(row, prepared(*row)) for row in rows("float16", 3, 200, 3)]

    def run(shift: int) -> None:
        for i in range(2000):
            row, wanted = table[(i * shift) % len(table)]
            if prepared(*row) != wanted:
                wrong.append(row)

    threads = [threading.Thread(target=run, args=(shift,)) for shift in (1, 3, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"operation": "fna", "fmt": "float16"}, "operation must be one of 'add', 'sub'"),
        ({"operation": "convert", "fmt": "float16"}, "to must be a format for 'convert'"),
        ({"operation": "add", "fmt": "float16", "to": "float32"}, "to is for 'convert', not 'add'"),
        ({"operation": "add", "fmt": "float16", "flags": "any"}, "scalar takes no flags"),
        ({"operation": "add", "fmt": "float16", "exact": True}, "exact is for 'round_to_integral', not 'add'"),
        ({"operation": "add", "fmt": "float16", "signalling": True}, "signalling is for comparisons, not 'add'"),
        ({"operation": "add", "fmt": "float16", "rouding": 1}, "unknown option 'rouding'"),
        ({"operation": "isnan", "fmt": "float16"}, "operation must be one of"),
    ],
)
def test_what_there_is_not_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        bits.scalar(**arguments)


@pytest.mark.parametrize("operands", [(0x10000, 0), (-1, 0), (0.5, 0), (True, 0), (0,), (0, 0, 0)])
def test_what_is_no_code_is_refused(operands: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, ValueError)):
        bits.scalar("add", "float16")(*operands)


def test_options_of_a_call_are_refused_by_name() -> None:
    for operation in ("add", "exp"):
        count = len(ELEMENTWISE[operation].operands)
        with pytest.raises(TypeError, match="unknown option 'steam'; accepted: 'stream', 'random_bits'"):
            bits.scalar(operation, "float16")(*[0] * count, steam=1)
    with pytest.raises(ValueError, match="stream must be"):
        bits.scalar("add", "float16")(0, 0, stream=-1)
    with pytest.raises(ValueError, match="needs a seed"):
        bits.scalar("add", "float16", rounding="stochastic")(0, 0)
