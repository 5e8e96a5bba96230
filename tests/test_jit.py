"""Operations for code that users compile: the bits of softfloat.bits, called by compiled code, by Python, and without the JIT."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import exported
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from softfloat.kernels.spec import NAN_POLICIES

from softfloat import ROSTER, Environment, Format, Rounding, bits, jit, reference
from softfloat.environments import Settings
from softfloat.formats import check_format

FORMATS = (*ROSTER.values(), Format("e5m7fnuz", exponent_bits=5, mantissa_bits=7, nan="fnuz", subnormals=False))
DTYPES = ("int8", "uint16", "int32", "int64", "uint64")
MODES = tuple(mode.name.lower() for mode in Rounding)
POLICIES = tuple(NAN_POLICIES)


def plain(function: Any) -> Any:
    """A function in plain Python, which is what is compiled."""

    def call(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return getattr(function, "py_func", function)(*arguments)

    return call


def wanted(operation: str, rows: list[tuple[Any, ...]], fmt: Format, more: dict[str, Any], **options: Any) -> Any:
    """What softfloat.bits gives for rows of codes, as lists: results and flags."""
    columns = [
        np.array(column, np.float64 if operation == "encode" else fmt.dtype) for column in zip(*rows, strict=True)
    ]
    if operation == "decode":
        return bits.decode(columns[0], fmt).tolist(), [0] * len(rows)
    if operation == "convert":
        results, flags = bits.convert(columns[0], fmt, more["to"], **options)
    elif operation == "to_integer":
        rest = {name: x for name, x in more.items() if name != "dtype"}
        results, flags = bits.to_integer(columns[0], fmt, more["dtype"], **rest, **options)
    else:
        results, flags = getattr(bits, operation)(*columns, fmt, **more, **options)
    return results.tolist(), flags.tolist()


def same(found: list[Any], results: list[Any], flags: list[int]) -> None:
    for (result, raised), right, right_flags in zip(found, results, flags, strict=True):
        assert result == right or (result != result and right != right)
        assert int(raised) == right_flags


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """An operation, a format, a rule, and rows of operands."""
    operation = draw(st.sampled_from(list(jit.OPERATIONS)))
    fmt = draw(st.sampled_from(FORMATS))
    target, more = fmt, {}
    if operation == "convert":
        target = more["to"] = draw(st.sampled_from([x for x in FORMATS if x != fmt]))
    if operation == "to_integer":
        more["dtype"] = draw(st.sampled_from(DTYPES))
    if operation in ("round_to_integral", "to_integer"):
        more["exact"] = draw(st.booleans())
    if operation in ("eq", "lt", "le"):
        more["signalling"] = draw(st.booleans())
    with_nan = ["nan"] if target.has_nan else []
    rule: dict[str, Any] = {
        "rounding": draw(st.sampled_from(MODES)),
        "overflow": draw(st.sampled_from(["infinity", "saturate", *with_nan])),
        "tininess": draw(st.sampled_from(["after", "before"])),
        "infinite_input": draw(st.sampled_from(["default", "keep", "saturate", *with_nan])),
        "daz": draw(st.booleans()),
        "ftz": draw(st.booleans()),
        "nan": draw(st.sampled_from(POLICIES)),
    }
    if rule["rounding"] == "stochastic":
        rule |= {"sr_bits": draw(st.integers(1, 52)), "seed": draw(st.integers(0, 2**64 - 1))}
    if rule["rounding"] == "up_or_down":
        rule["seed"] = draw(st.integers(0, 2**64 - 1))
    seed = draw(st.integers(0, 2**32))
    if operation == "encode":
        rows = [(x,) for x in np.random.default_rng(seed).permutation(exported.reals(64, seed))[:8].tolist()]
        rows += [(x,) for dtype in ("int64", "uint64") for x in exported.integers(40, seed, dtype)[-8:].tolist()]
    else:
        columns = exported.operands(fmt, len(jit.OPERATIONS[operation]), 256, seed)
        chosen = np.random.default_rng(seed).integers(0, columns[0].size, 8)
        rows = list(zip(*(column[chosen].tolist() for column in columns), strict=True))
    return {"operation": operation, "fmt": fmt, "more": more, "rule": rule, "rows": rows}


P3109 = [Format.p3109(name) for name in ("Binary8p3se", "Binary8p4sf", "Binary8p1uf", "Binary6p1se", "Binary4p2uf")]


@st.composite
def cases_of_drafts(draw: st.DrawFn) -> dict[str, Any]:
    """The same under the rules of P3109, with its formats beside others, and under all methods of stochastic rounding."""
    case: dict[str, Any] = draw(cases())
    rule, formats = case["rule"], [*P3109, *(ROSTER[x] for x in ("float16", "float8_e5m2", "float32"))]
    case["fmt"] = fmt = draw(st.sampled_from(formats))
    target = fmt
    if case["operation"] == "convert":
        target = case["more"]["to"] = draw(st.sampled_from([x for x in formats if x != fmt]))
    if not target.has_nan:
        rule |= {"overflow": "saturate", "infinite_input": "saturate"}
    rule["projection"] = draw(st.sampled_from(["p3109", "p3109", "ieee"]))
    if rule["rounding"] == "stochastic":
        rule["sr_method"] = draw(st.sampled_from(["truncate", "half", "nearest"]))
        rule["sr_bits"] = draw(st.integers(1, 40 - max(fmt.p, target.p)))
    if case["operation"] != "encode":
        seed, count = draw(st.integers(0, 2**32)), len(jit.OPERATIONS[case["operation"]])
        columns = exported.operands(fmt, count, 256, seed)
        chosen = np.random.default_rng(seed).integers(0, columns[0].size, 8)
        case["rows"] = list(zip(*(column[chosen].tolist() for column in columns), strict=True))
    return case


DRAW_NOTHING = ("eq", "lt", "le", "minimum", "maximum", "minimum_number", "maximum_number", "decode")


def oracle(operation: str, row: tuple[Any, ...], fmt: Format, more: dict[str, Any], rule: dict[str, Any]) -> Any:
    """(result, flags) on exact fractions."""
    if operation == "decode":
        return float(bits.decode(row[0], fmt)), 0
    if operation == "convert":
        return reference.convert(*row, fmt, more["to"], **rule)
    if operation == "to_integer":
        info = np.iinfo(more["dtype"])
        return reference.to_integer(*row, fmt, info.bits, info.min < 0, more["exact"], **rule)
    if operation in ("eq", "lt", "le"):
        return getattr(reference, operation + "_signalling" * more["signalling"])(*row, fmt, **rule)
    return getattr(reference, operation)(*row, fmt, **more, **rule)


@settings(max_examples=200, deadline=None)
@given(cases(), st.integers(0, 2**64 - 1), st.booleans())
def test_every_operation_is_that_of_the_oracle(case: dict[str, Any], stream: int, by_address: bool) -> None:
    check_against_the_oracle(case, stream, by_address)


@settings(max_examples=100, deadline=None)
@given(cases_of_drafts(), st.integers(0, 2**64 - 1), st.booleans())
def test_the_rules_of_drafts_are_those_of_the_oracle(case: dict[str, Any], stream: int, by_address: bool) -> None:
    check_against_the_oracle(case, stream, by_address)


def check_against_the_oracle(case: dict[str, Any], stream: int, by_address: bool) -> None:
    operation, fmt, rows, rule = case["operation"], case["fmt"], case["rows"], case["rule"]
    seed = rule.pop("seed", None)
    drawn = seed is not None and operation not in DRAW_NOTHING
    width = 1 if rule["rounding"] == "up_or_down" else rule.get("sr_bits", 52)
    handed = bits.random_bits(len(rows), seed=seed or 0, stream=stream, sr_bits=width).tolist()
    options = rule if seed is None or not by_address else {**rule, "seed": seed}
    call = plain(jit.function(operation, fmt, **case["more"], flags=True, environment=Environment(**options)))
    for position, (row, number) in enumerate(zip(rows, handed, strict=True)):
        tail = () if not drawn else (stream, position) if by_address else (number,)
        extra = {"random_bits": number} if seed is not None and operation not in DRAW_NOTHING else {}
        known = rule if seed is None or drawn else {**rule, "rounding": "nearest_even", "sr_bits": None}
        same([call(*row, *tail)], *([x] for x in oracle(operation, row, fmt, case["more"], known | extra)))


@pytest.mark.parametrize("name", ["minimum", "maximum_number"])
def test_what_draws_nothing_needs_no_bits(name: str) -> None:
    env = Environment(rounding="stochastic", sr_method="half", sr_bits=3)
    call = plain(jit.function(name, Format.p3109("binary8p3se"), environment=env))
    assert call(0x40, 0x41) in (0x40, 0x41)


@pytest.mark.parametrize("policy", POLICIES)
def test_comparisons_and_conversions_know_every_nan_policy(policy: str) -> None:
    for signalling in (False, True):
        call = plain(jit.function("lt", "float16", flags=True, signalling=signalling, nan=policy))
        for row in ((0x7E00, 0), (0, 0x7D00), (0xFE01, 0x7E00), (1, 2)):
            same(
                [call(*row)],
                *([x] for x in oracle("lt", row, check_format("float16"), {"signalling": signalling}, {"nan": policy})),
            )
    for dtype in DTYPES:
        call = plain(jit.function("to_integer", "float16", dtype=dtype, flags=True, nan=policy))
        for code in (0x7E00, 0x7C00, 0xFC00, 0x7BFF, 0xBE00):
            same([call(code)], *([x] for x in bits.to_integer(code, "float16", dtype, nan=policy)))


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_numbers_are_codes(fmt: Format) -> None:
    size = 2**fmt.bits
    codes = np.arange(size) if size <= 256 else np.random.default_rng(1).integers(0, size, 400)
    codes = np.concatenate([codes, exported.operands(fmt, 1, 1, 0)[0]])
    values = bits.decode(codes, fmt)
    keeps = plain(jit.function("maximum", fmt, values=True))
    for value in values.tolist():
        found = keeps(value, value)
        assert found == value or (found != found and value != value)
    refused = [value * factor for value in values.tolist() for factor in (1 + 2**-40, 1e-300)]
    for value in {x for x in refused if abs(x) > 0 and np.isfinite(x) and x not in values}:
        if bits.decode(bits.encode(value, fmt)[0], fmt) != value:
            with pytest.raises(ValueError, match="operands of maximum must be numbers of"):
                keeps(value, value)


def test_numbers_in_numbers_out() -> None:
    rows = np.random.default_rng(3).integers(0, 0x7C00, (60, 3))
    values = bits.decode(rows, "float16")
    call = plain(jit.function("fma", "float16", values=True, flags=True))
    codes, flags = bits.fma(*rows.T, "float16")
    same([call(*row) for row in values.tolist()], bits.decode(codes, "float16").tolist(), flags.tolist())
    narrow = plain(jit.function("convert", "float16", to="float8_e4m3fn", values=True))
    assert [narrow(x) for x in (0.1, 448.0) if x != 0.1] == [448.0]


# -- compiled --------------------------------------------------------------------------------------------------------------


def test_compiled_code_calls_them() -> None:
    add, lt = jit.function("add", "float16"), jit.function("lt", "float16")

    @numba.njit(fastmath=True)  # which must not reach what is called
    def sums(codes: Any) -> Any:
        total, below = np.uint16(0), 0
        for i in range(codes.size):
            total = add(total, codes[i])
            below += lt(total, codes[i])
        return total, below

    codes = np.random.default_rng(5).integers(0, 2**16, 300).astype(np.uint16)
    for part in np.split(codes, 30):
        total, below = 0, 0
        for code in part.tolist():
            total = int(bits.add(total, code, "float16")[0])
            below += int(bits.lt(total, code, "float16")[0])
        assert sums(part) == (total, below)


def test_compiled_random_bits_and_refusals() -> None:
    rule: dict[str, Any] = {"rounding": "stochastic", "seed": 2**63 + 9, "sr_bits": 11}
    call = jit.function("mul", "bfloat16", flags=True, **rule)
    codes, flags = bits.mul([0x3F9D] * 300, [0x40A7] * 300, "bfloat16", **rule, stream=2**64 - 1)
    same([call(0x3F9D, 0x40A7, 2**64 - 1, i) for i in range(300)], codes.tolist(), flags.tolist())
    assert len(set(codes.tolist())) == 2
    for operands in ((-1, 0, 0, 0), (0, 2**16, 0, 0), (0, 0, 0, -1), (0, 0, 0, 2**62)):
        with pytest.raises(ValueError, match=r"must be codes of bfloat16|position must be an integer from 0"):
            call(*operands)


# -- what operands may be ------------------------------------------------------------------------------------------------


WIDE = (2**53 + 1, 2**60 + 2**52 + 1, -(2**60) - 2**52 - 1, 2**63 + 2**39 + 1, 2**64 - 1, -(2**63), 0)


@pytest.mark.parametrize("form", [lambda x: x, plain], ids=["compiled", "plain"])
def test_integers_are_encoded_exactly(form: Any) -> None:
    encode = form(jit.function("encode", "float32", flags=True, rounding="toward_positive"))
    assert encode(2**53 + 1) == (0x5A000001, 1)
    assert form(jit.function("encode", "bfloat16"))(2**60 + 2**52 + 1) == 0x5D81
    for x in WIDE + WIDE[::-1]:  # of int64 first, and of uint64 first
        typed = (np.uint64 if x >= 2**63 else np.int64)(x)
        assert encode(x) == encode(typed) == bits.encode(x, "float32", rounding="toward_positive")
    for number in (True, np.float16(0.1), np.float32(0.1), 0.1, np.uint8(255), np.False_):
        assert encode(number) == bits.encode(number, "float32", rounding="toward_positive")


def test_compiled_integers_draw_as_the_oracle_does() -> None:
    """Random bits that take the exact value up, and one less, which do not: a float64 of it is farther from the edge than that."""
    encode = jit.function("encode", "float32", flags=True, rounding="stochastic", sr_bits=52)

    @numba.njit
    def each(numbers: Any, handed: Any) -> Any:
        return [encode(numbers[i], handed[i]) for i in range(numbers.size)]

    for dtype in ("int64", "uint64"):
        numbers = np.repeat(exported.integers(100, 7, dtype), 2)
        numbers[:4] = [2**62 + 2**38 + 3] * 2 + [2**62 - 2**37 - 1] * 2
        handed = []
        for x in numbers[::2].tolist():
            width = max(abs(x).bit_length() - 24, 0)
            lost = abs(x) % 2**width << 52 - width
            handed += [2**52 - lost, 2**52 - lost - 1] if lost else [0, 2**52 - 1]
        rows = list(zip(numbers.tolist(), handed, strict=True))
        rule: dict[str, Any] = {"rounding": "stochastic", "sr_bits": 52}
        wanted_rows = [reference.encode(x, "float32", **rule, random_bits=n) for x, n in rows]
        assert each(numbers, np.array(handed, np.uint64)) == wanted_rows
        assert [plain(encode)(*row) for row in rows] == wanted_rows


CODES, NUMBERS = (
    "operands of add must be codes of float16, integers from 0 to 65535",
    "operands of add must be numbers of",
)


@pytest.mark.parametrize(
    ("operation", "options", "arguments", "kind", "message"),
    [
        *(("add", {}, (0, x), TypeError, CODES) for x in (0.5, 1.0, True, np.True_, np.float16(1), 1j, "1", None, [1])),
        *(("add", {}, (x, 0), ValueError, CODES) for x in (-1, 2**16, 2**63, 2**64, -(2**70), np.uint64(2**64 - 1))),
        ("add", {"values": True}, (1j, 0), TypeError, NUMBERS),
        ("add", {"values": True}, ("1", 0), TypeError, NUMBERS),
        ("add", {"values": True}, (2**60 + 1, 0), ValueError, NUMBERS),
        *(("encode", {}, (x,), TypeError, "x of encode must be a number") for x in ("1", 1j, None, np.longdouble(1))),
        ("encode", {}, (2**64,), ValueError, "x of encode must be .*of at most 64 bits, got one of more"),
        *(("decode", {}, (x,), TypeError, "operands of decode must be codes of float16") for x in (0.5, True)),
        *(("to_integer", {"dtype": "int8"}, (x,), TypeError, "operands of to_integer must be") for x in (0.5, True)),
        ("convert", {"to": "bfloat16"}, (0.5,), TypeError, "operands of convert must be codes of float16"),
        ("lt", {}, (0, 0.5), TypeError, "operands of lt must be codes of float16"),
        ("maximum", {}, (0, 0.5), TypeError, "operands of maximum must be codes of float16"),
        *(
            ("add", {"rounding": "stochastic", "seed": 1}, (0, 0, *x), kind, message)
            for x, kind, message in (
                ((0.5, 0), TypeError, "stream must be an integer from 0"),
                ((-1, 0), ValueError, "stream must be an integer from 0"),
                ((2**64, 0), ValueError, "stream must be an integer from 0"),
                ((0, 1.5), TypeError, "position must be an integer from 0"),
                ((0, 2**62), ValueError, "position must be an integer from 0"),
            )
        ),
        *(
            (
                "add",
                {"rounding": "stochastic", "sr_bits": 8},
                (0, 0, x),
                kind,
                r"bits must be an integer from 0 to 2\^8 - 1",
            )
            for x, kind in ((0.5, TypeError), (True, TypeError), (-1, ValueError), (256, ValueError))
        ),
    ],
)
def test_what_is_no_operand_is_refused(
    operation: str, options: dict[str, Any], arguments: tuple[Any, ...], kind: type[Exception], message: str
) -> None:
    call = jit.function(operation, "float16", **options)
    for function in (call, plain(call)):
        with pytest.raises(kind, match=f"^{message}"):
            function(*arguments)


def test_compiled_code_is_refused_while_it_is_compiled() -> None:
    """The type is enough, and the message is this one, not a page of Numba's."""
    add, encode = jit.function("add", "float16"), jit.function("encode", "bfloat16")
    draw = jit.function("add", "float16", rounding="stochastic", seed=1)
    for code, arguments, message in (
        (lambda x: add(x, 1), (0.5,), f"{CODES}, or with values=True numbers, got float"),
        (lambda x: add(1, x > 0), (1,), f"{CODES}, or with values=True numbers, got bool"),
        (lambda x: encode(1j * x), (1.0,), "x of encode must be a number: a float, .*, got complex"),
        (lambda x: draw(0, 0, x, 0), (0.5,), r"stream must be an integer from 0 to 2\^64 - 1, got float"),
    ):
        with pytest.raises(TypeError, match=f"^{message}"):
            numba.njit(code)(*arguments)


@pytest.mark.exhaustive
@pytest.mark.parametrize("operation", jit.OPERATIONS)
def test_every_operation_compiles(operation: str) -> None:
    for fmt in map(check_format, ("float16", "float8_e4m3fn", "float8_e8m0fnu")):
        more: dict[str, Any] = {"to": "bfloat16"} if operation == "convert" else {}
        more |= {"dtype": "int16"} if operation == "to_integer" else {}
        for rule in (
            {},
            {"rounding": "stochastic", "seed": 3},
            {"rounding": "toward_negative", "nan": "x86", "daz": True},
        ):
            call = jit.function(operation, fmt, flags=True, **more, **rule)
            count = len(jit.OPERATIONS[operation])
            columns = exported.operands(fmt, count, 2000, 1) if operation != "encode" else [exported.reals(2000, 1)]
            rows = list(zip(*(column.tolist() for column in columns), strict=True))
            drawn = "seed" in rule and operation not in DRAW_NOTHING
            found = [call(*row, *((0, i) if drawn else ())) for i, row in enumerate(rows)]
            same(found, *wanted(operation, rows, fmt, more, **rule))


SCRIPT = """
from softfloat import jit
import numba
fma = jit.function("fma", "float16", nan="x86", flags=True)
draw = jit.function("add", "bfloat16", rounding="stochastic", seed=4)
@numba.njit
def steps():
    x, seen = 0x3C01, 0
    for i in range(40):
        x, raised = fma(x, 0x3C07, 0x0003)
        seen |= raised
    y = 0x3F80
    for i in range(40):
        y = draw(y, 0x3B03, 7, i)
    return int(x), int(seen), int(y)
print(*steps())
"""


def test_plain_python_has_the_same_bits() -> None:
    """NUMBA_DISABLE_JIT=1, for debuggers."""
    process = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, env=process)
    assert done.returncode == 0, done.stderr
    x, seen, y = 0x3C01, 0, 0x3F80
    for i in range(40):
        x, raised = (int(value) for value in bits.fma(x, 0x3C07, 0x0003, "float16", nan="x86"))
        seen |= raised
        y = int(bits.add([y] * 40, 0x3B03, "bfloat16", rounding="stochastic", seed=4, stream=7)[0][i])
    assert done.stdout.split() == [str(x), str(seen), str(y)]


# -- what there is not -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("exp", "float16"), {}, "operation must be one of 'add', .*got 'exp'"),
        (("add", "float17"), {}, "float17"),
        (("convert", "float16"), {}, "to must be a format for 'convert'"),
        (("add", "float16"), {"to": "bfloat16"}, "to is for 'convert', not 'add'"),
        (("to_integer", "float16"), {}, "dtype must be a NumPy integer dtype"),
        (("add", "float16"), {"dtype": "int8"}, "dtype is for 'to_integer'"),
        (("add", "float16"), {"exact": True}, "exact is for 'round_to_integral', 'to_integer', not 'add'"),
        (("add", "float16"), {"signalling": True}, "signalling is for 'eq', 'lt', 'le', not 'add'"),
        (("add", "float16"), {"stream": 3}, "takes no stream"),
        (("add", "float16"), {"random_bits": 3}, "takes no random_bits"),
        (("add", "float16"), {"flags": "each"}, "flags must be"),
        (("encode", "float16"), {"values": True}, "values is for"),
        (("add", "float16"), {"round": 3}, "unknown option 'round'"),
        (("add", "float6_e2m3fn"), {"overflow": "nan"}, "needs a format with a NaN"),
        (("add", "float16"), {"rounding": "stochastic", "seed": 1, "generator": "xoroshiro128aox"}, "generator must be 'philox4x32'"),
        (("add", "float16"), {"environment": Settings(), "rounding": "to_odd"}, "environment comes with"),
    ],
)  # fmt: skip
def test_what_there_is_not_is_named(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        jit.function(*arguments, **options)


def test_functions_say_what_they_take() -> None:
    call = jit.function("fma", "float16", rounding="stochastic", sr_bits=8)
    assert call.__doc__ == (
        "fma(a, b, c, bits) of codes of float16, stochastic: the result, as softfloat.bits.fma has it."
    )
    with pytest.raises(ValueError, match=r"bits must be an integer from 0 to 2\^8 - 1"):
        plain(call)(0, 0, 0, 256)


@pytest.mark.parametrize(
    ("operation", "options"),
    [("add", {"sr_bits": 4}), ("eq", {"rounding": "toward_zero"}), ("le", {"tininess": "before"})],
)
def test_options_that_do_nothing_are_refused(operation: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(options))} has no effect"):
        jit.function(operation, "float16", **options)
