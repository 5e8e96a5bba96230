"""Every public function of `bits` gives odd arguments the plain call's answer, bad ones an error that names them."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import softfloat
from softfloat import Format, bits, reference
from softfloat.bits import processors
from softfloat.bits.blocks import codes as block_codes
from softfloat.bits.blocks import quantization
from softfloat.bits.blocks import sums as scaled_sums
from softfloat.bits.operations import ELEMENTWISE, Operation
from softfloat.bits.sums import convolutions
from softfloat.bits.sums import products as sums
from softfloat.bits.sums import splits as split_sums
from softfloat.engine.options import ENVIRONMENT_OPTIONS

HALF, TF32, FP6 = softfloat.float16, softfloat.tfloat32, softfloat.float6_e3m2fn
SHAPE = (2, 3, 4)


class Function(NamedTuple):
    """How to call a public function: the arguments that are codes, whether it has options, what follows the format."""

    operands: tuple[str, ...]
    options: bool = True
    tail: tuple[Any, ...] = ()
    result: Any = None  # dtype of the result where it is not the format's

    def arguments(self, fmt: Format) -> tuple[Any, ...]:
        return (fmt, *self.tail)


CODES = ("codes",)
RESULTS = {"float": None, "bool": np.bool_, "class": np.uint8}


def in_the_table(row: Operation) -> Function:
    """How to call an operation; what looks at one operand, or steps from it, calls it `codes`."""
    return Function(row.operands if row.rounds or len(row.operands) > 1 else CODES, row.flags, (), RESULTS[row.result])


FUNCTIONS = {
    "convert": Function(CODES, tail=(softfloat.bfloat16,), result=np.uint16),
    "to_integer": Function(CODES, tail=(np.int16,), result=np.int16),
    "decode": Function(CODES, False, result=np.float64),
    **{row.name: in_the_table(row) for row in ELEMENTWISE.values()},
}
OPTIONED = [name for name, function in FUNCTIONS.items() if function.options]
ROUNDING_ONES = ["convert", "add", "sub", "mul", "div", "remainder", "sqrt", "fma", "round_to_integral", "to_integer"]
ROUNDING_ONES += ["exp", "pow", "hypot"]
every = pytest.mark.parametrize("name", FUNCTIONS)
every_with_options = pytest.mark.parametrize("name", OPTIONED)


def call(name: str, operands: Any, fmt: Format, **options: Any) -> Any:
    return getattr(bits, name)(*operands, *FUNCTIONS[name].arguments(fmt), **options)


def plain(name: str, fmt: Format, shape: tuple[int, ...] = SHAPE, seed: int = 0) -> list[np.ndarray]:
    """Contiguous operands: random codes, specials among them."""
    draw = np.random.default_rng(seed)
    special = [0, fmt.sign_bit, fmt.max_code, 2**fmt.bits - 1, fmt.spec.infinity if fmt.infinities else 1, 1]
    arrays = []
    for _ in FUNCTIONS[name].operands:
        codes = draw.integers(0, 2**fmt.bits, shape).astype(fmt.dtype)
        codes.reshape(-1)[: len(special)] = draw.permutation(special)[: codes.size]
        arrays.append(codes)
    return arrays


def pair(result: Any) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(x) for x in (result if isinstance(result, tuple) else (result,)))


def assert_same(found: Any, expected: Any) -> None:
    for x, y in zip(pair(found), pair(expected), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(x, y)


def test_the_table_is_complete() -> None:
    rest = {
        "CLASSES",
        "encode",
        "random_bits",
        "scalar",
        *sums.__all__,
        *convolutions.__all__,
    }  # sums have tables of their own
    rest |= {
        *block_codes.__all__,
        *quantization.__all__,
        *scaled_sums.__all__,
        *split_sums.__all__,
        *processors.__all__,
    }
    assert set(bits.__all__) == set(FUNCTIONS) | rest
    for name, function in FUNCTIONS.items():
        parameters = inspect.signature(getattr(bits, name)).parameters
        assert tuple(parameters)[: len(function.operands)] == function.operands
        assert ("environment" in parameters) == function.options


# -- good odd input --------------------------------------------------------------------------------------------------


def shifted(x: np.ndarray) -> np.ndarray:
    """The same numbers at an odd address."""
    buffer = bytearray(1) + bytearray(x.tobytes())
    return np.frombuffer(buffer, x.dtype, offset=1).reshape(x.shape)


def read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


def embedded(x: np.ndarray) -> np.ndarray:
    """A window of a larger array."""
    frame = np.zeros([n + 2 for n in x.shape], x.dtype)
    window = frame[tuple(slice(1, 1 + n) for n in x.shape)]
    window[...] = x
    return window


ODD: dict[str, Callable[[np.ndarray], Any]] = {
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "reversed": lambda x: x[::-1, :, ::-1].copy()[::-1, :, ::-1],
    "fortran": np.asfortranarray,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "embedded": embedded,
    "read-only": read_only,
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "int64": lambda x: x.astype(np.int64),
    "uint64 strided": lambda x: np.repeat(x.astype(np.uint64), 3, axis=0)[::3],
    "list": lambda x: x.tolist(),
    "tuple of arrays": tuple,
    "objects": lambda x: x.astype(object).tolist(),
}


@every
@pytest.mark.parametrize("fmt", [HALF, TF32], ids=str)
def test_odd_layouts(name: str, fmt: Format) -> None:
    operands = plain(name, fmt)
    expected = call(name, operands, fmt)
    result = pair(expected)[0]
    assert result.dtype == (FUNCTIONS[name].result or fmt.dtype)
    for change in ODD.values():
        changed = [change(x) for x in operands]
        before = [np.array(x) for x in changed]
        assert_same(call(name, changed, fmt), expected)
        for x, y in zip(changed, before, strict=True):
            np.testing.assert_array_equal(x, y)
    for mixed in range(len(operands) if len(operands) > 1 else 0):
        changed = [embedded(x) if i == mixed else x for i, x in enumerate(operands)]
        assert_same(call(name, changed, fmt), expected)


@pytest.mark.parametrize("name", ["add", "decode", "eq", "convert"])
def test_unaligned_operands(name: str) -> None:
    operands = plain(name, HALF)
    assert_same(call(name, [shifted(x) for x in operands], HALF), call(name, operands, HALF))


@every
def test_no_dimensions(name: str) -> None:
    operands = plain(name, HALF)
    expected = [x[1, 2, 3] for x in pair(call(name, operands, HALF))]
    for kind in (int, np.int64, np.array, np.uint16, lambda x: np.array(x, ">i8")):
        found = call(name, [kind(x[1, 2, 3]) for x in operands], HALF)
        for x, y in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
            assert isinstance(x, np.generic)
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


@every
def test_no_elements(name: str) -> None:
    dtype = np.dtype(FUNCTIONS[name].result or np.uint16)
    for shape in [(0,), (0, 3), (3, 0, 2)]:
        result = call(name, plain(name, HALF, shape), HALF)
        for found, expected in zip(pair(result), (dtype, np.uint8), strict=False):
            assert (found.shape, found.dtype) == (shape, expected)
    assert pair(call(name, [[] for _ in FUNCTIONS[name].operands], HALF))[0].shape == (0,)
    if FUNCTIONS[name].options:
        assert call(name, plain(name, HALF, (0,)), HALF, flags="any")[1] == 0


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if len(function.operands) > 1])
def test_broadcasting(name: str) -> None:
    operands = plain(name, HALF, (4, 5))
    parts = [operands[0][:, :1], operands[1][:1, :], *(x[2, 3] for x in operands[2:])]
    full = [np.broadcast_to(x, (4, 5)).copy() for x in parts]
    expected = call(name, full, HALF)
    assert_same(call(name, parts, HALF), expected)
    assert_same(call(name, [np.broadcast_to(x, (4, 5)) for x in parts], HALF), expected)
    assert_same(call(name, [parts[0], parts[1][0], *map(int, parts[2:])], HALF), expected)
    for shapes in ([(2, 3), (2, 4)], [(3,), (0, 2)], [(2, 1, 5), (3, 4)]):
        bad = [np.zeros(shape, np.uint16) for shape in shapes] + [0x3C00] * (len(operands) - 2)
        message = "broadcast" if name == "copysign" else "shapes do not broadcast together: a .*, b "
        with pytest.raises(ValueError, match=message):
            call(name, bad, HALF)


@every_with_options
def test_flags_together(name: str) -> None:
    operands = plain(name, HALF)
    codes, flags = call(name, operands, HALF)
    together = call(name, operands, HALF, flags="any")
    assert isinstance(together[1], int)
    assert together[1] == np.bitwise_or.reduce(flags, axis=None)
    np.testing.assert_array_equal(together[0], codes)


# -- out -------------------------------------------------------------------------------------------------------------


@every_with_options
def test_out(name: str) -> None:
    operands = plain(name, HALF)
    expected = call(name, operands, HALF)
    codes, flags = expected
    for given in (np.empty_like(codes), embedded(np.empty_like(codes)), np.empty(codes.shape[::-1], codes.dtype).T):
        kept = [x.copy() for x in operands]
        result, raised = call(name, operands, HALF, out=given)
        assert result is given
        assert_same((given, raised), expected)
        for other in (np.empty_like(flags), embedded(np.zeros_like(flags)), np.empty((2, 3, 8), np.uint8)[..., ::-2]):
            result, raised = call(name, operands, HALF, out=(given, other))
            assert result is given
            assert raised is other
            assert_same((given, other), expected)
        assert call(name, operands, HALF, out=(None, other))[1] is other
        assert_same(operands, kept)
    point = np.empty((), codes.dtype)
    result, _ = call(name, [x[0, 0, 0] for x in operands], HALF, out=point)
    assert result is point
    assert point == codes[0, 0, 0]


@pytest.mark.parametrize("name", [name for name in OPTIONED if FUNCTIONS[name].result is not np.bool_])
def test_out_over_an_operand(name: str) -> None:
    """In place, shifted by one either way, and reversed."""
    dtype = np.dtype(FUNCTIONS[name].result or np.uint16)
    count = 300
    expected = call(name, plain(name, HALF, (count,)), HALF)
    for place in range(len(FUNCTIONS[name].operands)):
        for begin, step in [(0, 1), (1, 1), (2, 1), (count, -1)]:
            operands = plain(name, HALF, (count,))
            buffer = np.zeros(count + 2, np.uint16)
            operand = buffer[1 : count + 1]
            operand[:] = operands[place]
            out = (buffer[begin : begin + count] if step > 0 else buffer[1 : count + 1][::-1]).view(dtype)
            operands[place] = operand
            assert_same(call(name, operands, HALF, out=out), expected)
            if begin != 1 and step > 0:
                untouched = buffer[0] if begin == 2 else buffer[-1]
                assert untouched == 0


def test_comparisons_over_an_operand() -> None:
    fp8 = softfloat.float8_e4m3
    for name in ("eq", "lt", "le"):
        operands = [x % 256 for x in plain(name, HALF, (300,))]
        expected = call(name, operands, fp8)
        buffer = operands[0].astype(np.uint8)
        assert_same(call(name, [buffer, operands[1]], fp8, out=buffer[::-1].view(bool)), expected)


def test_out_over_the_numbers_encoded() -> None:
    x = np.random.default_rng(1).normal(size=300) * 1e3
    expected = bits.encode(x, HALF)
    for view in (slice(None, 300), slice(900, None), slice(None, None, 4), slice(None, None, -4)):
        buffer = x.copy()
        assert_same(bits.encode(buffer, HALF, out=buffer.view(np.uint16)[view]), expected)


@pytest.mark.parametrize("begin", [0, 900])
def test_out_over_the_random_bits(begin: int) -> None:
    x = np.random.default_rng(1).normal(size=300)
    random = bits.random_bits(300, seed=1)
    options = {"rounding": "stochastic", "sr_bits": 52}
    expected = bits.encode(x, HALF, random_bits=random, **options)
    buffer = random.copy()
    out = buffer.view(np.uint16)[begin : begin + 300]
    assert_same(bits.encode(x, HALF, random_bits=buffer, out=out, **options), expected)


@every_with_options
def test_bad_out(name: str) -> None:
    operands = plain(name, HALF)
    codes, flags = call(name, operands, HALF)
    wrong_dtype = np.empty(codes.shape, np.float64)
    bad: list[tuple[Any, type[Exception], str]] = [
        (wrong_dtype, ValueError, f"^out must be an array of dtype {codes.dtype}"),
        (
            codes.astype(codes.dtype.newbyteorder(">")) if codes.itemsize > 1 else wrong_dtype,
            ValueError,
            "^out must be",
        ),
        (np.empty((2, 3), codes.dtype), ValueError, r"^out must be .* shape \(2, 3, 4\)"),
        (codes.tolist(), ValueError, "^out must be an array"),
        ("out", ValueError, "^out must be an array"),
        (read_only(codes), ValueError, "^out is read-only"),
        ((codes, flags, flags), ValueError, "^out must be an array"),
        ((codes, flags.astype(np.int8)), ValueError, r"^out\[1\] must be an array of dtype uint8"),
        ((codes, flags[0]), ValueError, r"^out\[1\] must be .* shape \(2, 3, 4\)"),
        ((codes, read_only(flags)), ValueError, r"^out\[1\] is read-only"),
    ]
    for out, error, message in bad:
        with pytest.raises(error, match=message):
            call(name, operands, HALF, out=out)
    with pytest.raises(ValueError, match=r"^out holds an array for flags"):
        call(name, operands, HALF, out=(codes, flags), flags="any")
    memory = np.empty(codes.nbytes, np.uint8)
    with pytest.raises(ValueError, match=r"^out holds two arrays that share memory"):
        call(name, operands, HALF, out=(memory.view(codes.dtype).reshape(SHAPE), memory[:24].reshape(SHAPE)))


# -- bad input -------------------------------------------------------------------------------------------------------

NOT_CODES: list[Any] = [
    1.0,
    np.float16(1),
    [1, 2.5],
    np.zeros(3),
    True,
    [True, False],
    "1",
    ["1"],
    b"1",
    None,
    [None],
    1j,
    Fraction(1, 2),
    [[1], [1, 2]],
    np.zeros(2, "datetime64[s]"),
    np.zeros(0, np.float32),
    np.zeros(2, "u2,u2"),
    np.array([1.5], object),
    np.array([True], object),
]
OUTSIDE: dict[Format, list[Any]] = {
    HALF: [-1, 2**16, 2**31, 2**63, 2**64, -(2**64), 10**30, [0, -1], np.array([65536]), np.array([-1], np.int8)],
    TF32: [-1, 2**19, np.array([0, 2**19], np.uint32), np.array([2**32 - 1], np.uint32), [2**40]],
    FP6: [-1, 64, np.array([64], np.uint8), np.array([255, 0], np.uint8), 2**70],
}


@every
def test_not_codes(name: str) -> None:
    good = [0x3C00] * len(FUNCTIONS[name].operands)
    for place, argument in enumerate(FUNCTIONS[name].operands):
        for bad in NOT_CODES:
            with pytest.raises(TypeError, match=rf"^{argument} must be codes of float16: integers from 0 to 0xffff"):
                call(name, [*good[:place], bad, *good[place + 1 :]], HALF)


@every
@pytest.mark.parametrize("fmt", OUTSIDE, ids=str)
def test_codes_out_of_range(name: str, fmt: Format) -> None:
    good = [fmt.one_code] * len(FUNCTIONS[name].operands)
    for place, argument in enumerate(FUNCTIONS[name].operands):
        for bad in OUTSIDE[fmt]:
            with pytest.raises(
                ValueError, match=rf"^{argument} holds .*code.* of {fmt}; accepted: 0 to {2**fmt.bits - 1:#x}"
            ):
                call(name, [*good[:place], bad, *good[place + 1 :]], fmt)


@every
def test_bad_format(name: str) -> None:
    operands = plain(name, HALF)
    tail = FUNCTIONS[name].tail
    argument = "src" if name == "convert" else "fmt"
    for bad in (None, 16, np.int8, np.dtype(np.uint16), np.float16(1), HALF.spec):
        with pytest.raises(TypeError, match=rf"^{argument} must be a softfloat.Format"):
            getattr(bits, name)(*operands, bad, *tail)
    for unknown in ("float128", "binary128", ""):
        with pytest.raises(ValueError, match=f"unknown format '{unknown}'; accepted: float16"):
            getattr(bits, name)(*operands, unknown, *tail)
    assert_same(getattr(bits, name)(*operands, "half", *tail), call(name, operands, HALF))


def test_bad_targets() -> None:
    for bad in (None, 1.0, np.int16):
        with pytest.raises(TypeError, match=r"^dst must be"):
            bits.convert(0, HALF, bad)
        with pytest.raises(TypeError, match=r"^fmt must be"):
            bits.encode(0.0, bad)
    for dtype in (np.float32, float, bool, "nonsense", object, "M8[s]", ml_dtypes.bfloat16, ml_dtypes.int4, [1]):
        with pytest.raises(TypeError, match=r"^dtype must be a NumPy integer dtype"):
            bits.to_integer(0x3C00, HALF, dtype)
    with pytest.raises(TypeError, match="negative needs a signed format"):
        bits.negative(127, softfloat.float8_e8m0fnu)


BAD_OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    *(
        ({"rounding": x}, ValueError, "^rounding must be one of 'nearest_even'")
        for x in ("up", "", 0, 6, None, [], b"RNE", softfloat.Overflow.NAN)
    ),
    *(({"overflow": x}, ValueError, "^overflow must be one of 'infinity'") for x in ("clip", 1, None, True)),
    *(({"tininess": x}, ValueError, "^tininess must be one of 'after'") for x in ("during", 0, None)),
    *(({"infinite_input": x}, ValueError, "^infinite_input must be one of 'default'") for x in ("inf", 1, None)),
    *(({"daz": x}, TypeError, "^daz must be True or False") for x in (1, "no", None, [])),
    *(({"ftz": x}, TypeError, "^ftz must be True or False") for x in (0, "yes", None)),
    *(({"nan": x}, ValueError, "^nan must be one of 'canonical'") for x in ("quiet", "X86", "ieee")),
    *(({"sr_bits": x}, ValueError, "^sr_bits must be 1 to 52") for x in (0, 53, -1, 10**30)),
    *(({"sr_bits": x}, TypeError, "^sr_bits must be an integer") for x in (8.0, "8", True)),
    *(({"generator": x}, ValueError, "^generator must be one of 'philox4x32'") for x in ("philox", "mt19937", None)),
    *(({"seed": x}, ValueError, "^seed must be 0 to") for x in (-1, 2**64)),
    *(({"seed": x}, TypeError, "^seed must be an integer") for x in (1.0, "1", True, np.array([1, 2]))),
    *(({"stream": x}, ValueError, "^stream must be an integer from 0") for x in (-1, 2**64, 1.0, True, None, "1")),
    *(({"flags": x}, ValueError, "^flags must be 'each'") for x in ("all", None, True)),
    *(({"environment": x}, TypeError, "^environment must be a softfloat.Environment") for x in ("ipu", {}, HALF)),
    ({"environment": softfloat.Environment(), "daz": True}, TypeError, "^environment comes with 'daz'"),
    ({"roundng": "up"}, TypeError, "^unknown option 'roundng'; accepted: out, flags, rounding"),
    ({"traps": "INVALID"}, TypeError, "^unknown option 'traps'; accepted: out"),
]


@every_with_options
def test_bad_options(name: str) -> None:
    operands = plain(name, HALF)
    for options, error, message in BAD_OPTIONS:
        with pytest.raises(error, match=message):
            call(name, operands, HALF, **options)


@pytest.mark.parametrize(
    ("good", "bad", "error"),
    [
        ({"daz": True}, {"daz": 1}, TypeError),
        ({"ftz": False}, {"ftz": 0}, TypeError),
        ({"seed": 1, "rounding": "stochastic"}, {"seed": 1.0, "rounding": "stochastic"}, TypeError),
        ({"seed": 1, "rounding": "stochastic"}, {"seed": True, "rounding": "stochastic"}, TypeError),
        ({"sr_bits": 8, "rounding": "SR", "seed": 1}, {"sr_bits": 8.0, "rounding": "SR", "seed": 1}, TypeError),
        ({"rounding": softfloat.Rounding.TOWARD_ZERO}, {"rounding": 2}, ValueError),
        ({"rounding": softfloat.Rounding.NEAREST_AWAY}, {"rounding": softfloat.Overflow.SATURATE}, ValueError),
    ],
)
def test_a_good_option_does_not_excuse_its_equal(
    good: dict[str, Any], bad: dict[str, Any], error: type[Exception]
) -> None:
    """Settings are looked up by value, and 1 == True == 1.0."""
    assert bits.add(0x3C00, 0x3C00, HALF, **good) == (0x4000, 0)
    with pytest.raises(error, match=rf"^{next(iter(bad))} must be"):
        bits.add(0x3C00, 0x3C00, HALF, **bad)


@pytest.mark.parametrize("name", ROUNDING_ONES)
def test_bad_random_bits(name: str) -> None:
    operands = plain(name, HALF)
    ones = np.ones(SHAPE, np.uint16)
    bad: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({}, ValueError, "^rounding='stochastic' needs a seed .* or random_bits"),
        ({"sr_bits": 8}, ValueError, "^rounding='stochastic' needs a seed"),
        ({"random_bits": 0.5}, TypeError, "^random_bits must be integers"),
        ({"random_bits": ones > 0}, TypeError, "^random_bits must be integers"),
        ({"random_bits": "1"}, TypeError, "^random_bits must be integers"),
        ({"random_bits": ones.astype(np.int32)}, ValueError, "^random_bits of dtype int32 need sr_bits"),
        ({"random_bits": ones.astype(np.uint64)}, ValueError, "^random_bits of dtype uint64 need sr_bits"),
        ({"random_bits": 1}, ValueError, "^random_bits of dtype int64 need sr_bits"),
        ({"random_bits": ones, "sr_bits": 17}, ValueError, "^random_bits are too narrow"),
        ({"random_bits": ones.astype(np.uint8), "sr_bits": 9}, ValueError, "^random_bits are too narrow"),
        ({"random_bits": ones * 256, "sr_bits": 8}, ValueError, r"^random_bits must be 0 to 2\^8 - 1"),
        ({"random_bits": -1, "sr_bits": 8}, ValueError, r"^random_bits must be 0 to 2\^8 - 1"),
        ({"random_bits": 2**52, "sr_bits": 52}, ValueError, r"^random_bits must be 0 to 2\^52 - 1"),
        ({"random_bits": ones[:, :, :3]}, ValueError, "^random_bits of shape .* do not broadcast"),
        ({"random_bits": np.ones((2, *SHAPE), np.uint16)}, ValueError, "^random_bits of shape .* do not broadcast"),
    ]
    for options, error, message in bad:
        with pytest.raises(error, match=message):
            call(name, operands, HALF, rounding="stochastic", **options)
    with pytest.raises(
        ValueError, match=r"^random_bits are for rounding='stochastic' or 'up_or_down', and rounding is 'nearest_even'"
    ):
        call(name, operands, HALF, random_bits=ones)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": None}, "seed"),
        ({"seed": -1}, "^seed must be"),
        ({"seed": 1.5}, "^seed must be"),
        ({"seed": 1, "sr_bits": 0}, "^sr_bits must be"),
        ({"seed": 1, "sr_bits": None}, "^sr_bits must be"),
        ({"seed": 1, "stream": -1}, "^stream must be"),
        ({"seed": 1, "stream": 1.5}, "^stream must be"),
        ({"seed": 1, "stream": 2**64}, "^stream must be"),
        ({"seed": 1, "generator": "pcg"}, "^generator must be"),
        ({"seed": 1, "shape": -1}, "shape"),
        ({"seed": 1, "shape": 2.5}, "shape"),
    ],
)
def test_bad_addresses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        bits.random_bits(**{"shape": 3, **arguments})


def test_overflow_to_a_nan_that_is_not_there() -> None:
    for fmt in (softfloat.float6_e2m3fn, softfloat.float6_e3m2fn, softfloat.float4_e2m1fn):
        for attempt in (
            lambda fmt: bits.encode(1.0, fmt, overflow="nan"),
            lambda fmt: bits.add(0, 0, fmt, overflow="nan"),
        ):
            with pytest.raises(ValueError, match=rf"^overflow='nan' needs a format with a NaN, and {fmt} has none"):
                attempt(fmt)


# -- numbers ---------------------------------------------------------------------------------------------------------

MODES = ["nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd"]
TARGETS = [softfloat.float16, softfloat.float32, softfloat.float8_e8m0fnu]
INTEGER_DTYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def assert_encodes(x: Any, exact: list[Any], fmt: Format, rounding: str) -> None:
    """One rounding of each exact number: reference computes it from integers and fractions."""
    codes, flags = bits.encode(x, fmt, rounding=rounding)
    expected = [reference.encode(value, fmt, rounding=rounding) for value in exact]
    assert list(zip(codes.ravel().tolist(), flags.ravel().tolist(), strict=True)) == expected


def edge_integers(dtype: Any) -> list[int]:
    """Extremes, powers of two and their midpoints on either side, where a rounding through float64 would go wrong."""
    info = np.iinfo(dtype)
    steps = (0, 1, -1, 2**39, 2**39 + 1, 2**39 - 1, 2**40 + 2**39 + 1, 2**10 + 1)
    wide = [
        sign * 2**k + d
        for k in (10, 11, 24, 25, 53, 54, 62, 63, 64)
        for d in (*steps, *(-x for x in steps))
        for sign in (1, -1)
    ]
    return sorted(
        {info.min, info.max, info.min + 1, info.max - 1, 0, 1, *(x for x in wide if info.min <= x <= info.max)}
    )


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("fmt", TARGETS, ids=str)
def test_integers_round_once(fmt: Format, rounding: str) -> None:
    for dtype in INTEGER_DTYPES:
        exact = edge_integers(dtype)
        x = np.array(exact, dtype)
        assert_encodes(x, exact, fmt, rounding)
        assert_encodes(x.astype(x.dtype.newbyteorder(">")), exact, fmt, rounding)
        assert_encodes(exact, exact, fmt, rounding)


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("fmt", TARGETS, ids=str)
def test_python_numbers_round_once(fmt: Format, rounding: str) -> None:
    tie = Fraction(1) + Fraction(1, 2**11)
    exact = [
        *(10**400, -(10**400), 2**100 + 1, 2**2000, 65520, 65519, -65520, 2**128 - 2**103, 2**128 - 2**103 - 1),
        *(Fraction(1, 3), Fraction(-1, 3), Fraction(1, 10**400), Fraction(-1, 10**400), Fraction(10**400 + 1, 10**400)),
        *(
            tie,
            tie + Fraction(1, 10**60),
            tie - Fraction(1, 10**60),
            Fraction(1, 2**25),
            Fraction(1, 2**25) + Fraction(1, 10**99),
        ),
        *(
            Fraction(1, 2**149),
            Fraction(1, 2**150),
            Fraction(3, 2**151),
            Fraction(10**400, 3),
            Fraction(65520) - Fraction(1, 10**30),
        ),
        *(0, 0.1, -0.0, 5e-324, 1.7976931348623157e308, True, False),
    ]
    assert_encodes(exact, exact, fmt, rounding)
    for value in exact:
        assert_encodes(value, [value], fmt, rounding)
    assert_encodes(np.array(exact, dtype=object), exact, fmt, rounding)
    assert_encodes([[1, Fraction(1, 3)], [2.5, 10**30]], [1, Fraction(1, 3), 2.5, 10**30], fmt, rounding)


def test_subclasses_and_scalars() -> None:
    class Metres(float):
        pass

    class Count(int):
        pass

    class Colour(enum.IntEnum):
        RED = 3

    assert bits.encode(np.array(3), HALF) == bits.encode(3, HALF)
    one, two, three = (bits.encode(x, HALF)[0] for x in (1.0, 2.0, 3.0))
    for x in (
        Metres(3),
        Count(3),
        Colour.RED,
        np.float64(3),
        np.float32(3),
        np.float16(3),
        np.uint64(3),
        np.int8(3),
        Fraction(3),
    ):
        assert bits.encode(x, HALF) == (three, 0)
        assert bits.encode([[x]], HALF)[0] == [[three]]
    mixed = [True, np.True_, Metres(2), np.float16(2), np.uint8(3), Fraction(3), 1]
    assert bits.encode(mixed, HALF)[0].tolist() == [one, one, two, two, three, three, one]
    assert [int(bits.encode(x, HALF)[0]) for x in (True, False, np.True_)] == [one, 0, one]
    assert bits.encode(np.array([[True], [False]]), HALF)[0].tolist() == [[one], [0]]
    codes, flags = bits.encode([], HALF)
    assert (codes.shape, codes.dtype, flags.dtype) == ((0,), np.uint16, np.uint8)


ML_DTYPES = [fmt for fmt in softfloat.ROSTER.values() if fmt is not TF32]


@pytest.mark.parametrize("fmt", ML_DTYPES, ids=str)
def test_arrays_of_every_float_dtype(fmt: Format) -> None:
    """An array, a scalar and a list of scalars are its codes."""
    codes = np.arange(0, 2**fmt.bits, max(1, 2 ** (fmt.bits - 8))).astype(fmt.dtype)
    codes = codes[bits.isfinite(codes, fmt)]
    numbers = codes.view(fmt.to_dtype())
    np.testing.assert_array_equal(bits.encode(numbers, fmt)[0], codes)
    assert_same(bits.encode(numbers[::-2], "float32"), bits.encode(bits.decode(codes, fmt)[::-2], "float32"))
    some = slice(0, 20, 3)
    assert [int(bits.encode(x, fmt)[0]) for x in numbers[some]] == codes[some].tolist()
    np.testing.assert_array_equal(bits.encode(list(numbers[some]), fmt)[0], codes[some])


@pytest.mark.parametrize("dtype", ["int1", "uint1", "int2", "uint2", "int4", "uint4"])
def test_arrays_of_narrow_integers(dtype: str) -> None:
    if not hasattr(ml_dtypes, dtype):
        pytest.skip(f"this ml_dtypes has no {dtype}")
    info = ml_dtypes.iinfo(dtype)
    exact = list(range(int(info.min), int(info.max) + 1))
    assert_encodes(np.array(exact).astype(dtype), exact, HALF, "nearest_even")


NOT_NUMBERS: list[Any] = [
    np.longdouble(1),
    np.zeros(3, np.longdouble),
    1j,
    np.complex64(1),
    np.zeros(2, complex),
    "1.0",
    ["1.0"],
    np.array(["1"]),
    b"1",
    None,
    [None, 1],
    Decimal(1),
    [Decimal(1)],
    [1, 1j],
    [np.longdouble(1)],
    [[1], [1, 2]],
    object(),
    np.array([1, "2"], object),
    np.zeros(2, "datetime64[s]"),
    np.timedelta64(1, "s"),
    [np.timedelta64(1, "s")],
    np.zeros(2, "f4,f4"),
    {1: 2},
    {1.0},
]


@pytest.mark.parametrize(
    "x", NOT_NUMBERS, ids=lambda x: f"{type(x).__name__}-{len(repr(x))}" if type(x) is not object else "object"
)
def test_not_numbers(x: Any) -> None:
    with pytest.raises(TypeError, match=r"^x must be numbers"):
        bits.encode(x, HALF)


def test_numbers_in_odd_layouts() -> None:
    x = np.random.default_rng(3).normal(size=SHAPE) * 10.0 ** np.arange(-8, 8, 4)
    for dtype in (np.float16, np.float32, np.float64, np.int64):
        numbers = x.astype(dtype)
        expected = bits.encode(numbers, HALF)
        for change in ("strided", "reversed", "fortran", "embedded", "read-only", "big-endian", "list"):
            changed = ODD[change](numbers)
            before = np.array(changed)
            assert_same(bits.encode(changed, HALF), expected)
            np.testing.assert_array_equal(changed, before)


def test_anything_with_an_array() -> None:
    class Wrapped:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.array([0.1, 65520], np.float32)

    codes, flags = bits.encode(Wrapped(), "float16")
    wanted, wanted_flags = bits.encode(np.array([0.1, 65520], np.float32), "float16")
    assert codes.tolist() == wanted.tolist()
    assert flags.tolist() == wanted_flags.tolist()


@pytest.mark.parametrize("name", ["eq", "lt", "le", "minimum", "maximum_number"])
def test_random_bits_where_nothing_rounds(name: str) -> None:
    with pytest.raises(ValueError, match=r"^random_bits"):
        getattr(bits, name)(1, 1, "float16", random_bits=3)
    with pytest.raises(ValueError, match=r"^random_bits"):
        bits.next_up(1, "float16", random_bits=3)


def test_choices_that_are_no_choices() -> None:
    with pytest.raises(TypeError, match=r"^exact must be True or False"):
        bits.round_to_integral(1, "float16", exact="no")
    with pytest.raises(TypeError, match=r"^exact must be True or False"):
        bits.to_integer(1, "float16", "int8", exact=1)
    with pytest.raises(TypeError, match=r"^signalling must be True or False"):
        bits.eq(1, 1, "float16", signalling="yes")
    with pytest.raises(ValueError, match=r"^nan must be one of"):
        bits.add(1, 1, "float16", nan=["x86"])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_masks_are_refused(name: str) -> None:
    """Not dropped: what they hide would be computed with."""
    tail = FUNCTIONS[name].tail
    for i, operand in enumerate(FUNCTIONS[name].operands):
        operands: list[Any] = [np.ones(2, np.uint16) for _ in FUNCTIONS[name].operands]
        operands[i] = np.ma.array(operands[i], mask=[0, 1])
        with pytest.raises(
            TypeError, match=rf"^{operand} must have no mask: .*; accepted: x\.filled\(\.\.\.\), or x\.data"
        ):
            getattr(bits, name)(*operands, HALF, *tail)


def test_masks_are_refused_elsewhere() -> None:
    masked = np.ma.array([1, 0], mask=[0, 1])
    with pytest.raises(TypeError, match=r"^x must have no mask"):
        bits.encode(masked, "float16")
    with pytest.raises(TypeError, match=r"^random_bits must have no mask"):
        bits.add([1, 1], 1, "float16", rounding="stochastic", random_bits=masked, sr_bits=1)
    with pytest.raises(TypeError, match=r"^out must have no mask"):
        bits.add([1, 1], 1, "float16", out=np.ma.array(np.zeros(2, np.uint16), mask=[0, 1]))
    with pytest.raises(TypeError, match=r"^codes must have no mask"):
        softfloat.from_codes(masked, "float16")
    x = softfloat.ones(2, "float16")
    for call in (lambda: x * masked.astype(bool), lambda: np.where(masked.astype(bool), x, x), lambda: x + masked):
        with pytest.raises(TypeError, match="must have no mask"):
            call()


@pytest.mark.parametrize("name", ["float16", "float64"])
@pytest.mark.parametrize("shape", [(0,), (0, 4), (2, 0, 3)])
def test_no_numbers_as_objects(shape: tuple[int, ...], name: str) -> None:
    """Lists of nothing have fewer axes: (0, 4) became (0,)."""
    assert bits.encode(np.empty(shape, object), name)[0].shape == shape


def test_codes_as_objects() -> None:
    """Arrays of Python integers, as lists of them and as pandas make them."""
    codes = np.array([0x3C00, np.uint16(0x4000)], object)
    assert_same(bits.add(codes, codes, HALF), bits.add([0x3C00, 0x4000], [0x3C00, 0x4000], HALF))
    assert softfloat.from_codes(codes, HALF).codes.dtype == np.uint16
    assert bits.decode(np.array([], object), HALF).shape == (0,)
    for wrong in (1 << 16, -1, 1 << 70):
        with pytest.raises(
            ValueError, match=rf"^codes holds {hex(wrong) if wrong > 0 else wrong}, which is no code of"
        ):
            bits.decode(np.array([wrong], object), HALF)
        with pytest.raises(ValueError, match=r"^codes holds"):
            bits.decode([wrong, 1], HALF)
    for other in (1.0, True, None, "1", np.float16(1), np.True_):
        with pytest.raises(TypeError, match=r"^codes must be codes of float16: .* got dtype object"):
            bits.decode(np.array([1, other], object), HALF)


def test_arrays_are_no_codes() -> None:
    x = softfloat.ones(2, "float16")
    with pytest.raises(TypeError, match=r"^a must be codes of float16: .* got SoftArray; accepted: its \.codes"):
        bits.add(x, x.codes, HALF)


# -- options that do nothing -----------------------------------------------------------------------------------------

CHANGED: dict[str, Any] = {
    "rounding": "toward_zero",
    "overflow": "saturate",
    "tininess": "before",
    "infinite_input": "nan",
    "daz": True,
    "ftz": True,
    "converts_subnormals": True,
    "nan": "arm_ah",
    "projection": "p3109",
    "sr_bits": 3,
    "sr_method": "half",
    "generator": "xoroshiro128aox",
    "seed": 2,
}
"""Every setting, another value than the default one."""
DRAWN_ALONE = ("sr_bits", "sr_method", "generator")
FLUSHED = {"daz": True, "ftz": True}
DRAWN = {"rounding": "stochastic", "seed": 1, "sr_bits": 8}


def test_every_setting_is_asked_for() -> None:
    assert set(CHANGED) == ENVIRONMENT_OPTIONS
    assert all(value != getattr(softfloat.Environment(), name) for name, value in CHANGED.items())


@every_with_options
def test_an_option_does_something_or_is_refused(name: str) -> None:
    """What is refused by name changes no bit of any result and no flag where it stands in an environment; the rest is taken."""
    operands, nothing = plain(name, HALF), plain(name, HALF, (0,))
    for option, value in CHANGED.items():
        drawn = DRAWN if option in DRAWN_ALONE else {}
        try:
            call(name, nothing, HALF, **(drawn | {option: value}))
        except ValueError as error:
            told = str(error)
        else:
            continue
        named, has, _ = told.partition(" has no effect in ")
        assert has
        assert option in named.split(", ")
        for base in ({}, FLUSHED):
            environments = [softfloat.Environment(**x) for x in (base, base | drawn | {option: value})]
            before, after = (call(name, operands, HALF, environment=env) for env in environments)
            assert_same(after, before)


@every_with_options
@pytest.mark.parametrize("option", DRAWN_ALONE)
def test_what_is_drawn_is_refused_where_nothing_is(name: str, option: str) -> None:
    operands = plain(name, HALF)
    with pytest.raises(ValueError, match=rf"^{option} has no effect "):
        call(name, operands, HALF, **{option: CHANGED[option]})
    settled = call(name, operands, HALF, environment=softfloat.Environment(**{option: CHANGED[option]}))
    assert_same(settled, call(name, operands, HALF))
    assert_same(call(name, operands, HALF, stream=3, position=5), settled)  # addresses may stand anywhere


KINDS = {
    "eq": {"daz", "nan"},
    "maximum": {"daz", "ftz", "nan"},
    "next_up": {"nan"},
    "to_integer": {"rounding", "daz", "nan", "seed", *DRAWN_ALONE},
    "mul": set(CHANGED) - {"converts_subnormals"},
    "exp": set(CHANGED) - {"converts_subnormals"},
    "convert": set(CHANGED),
}


@pytest.mark.parametrize(("name", "accepted"), KINDS.items())
def test_which_options_are_taken(name: str, accepted: set[str]) -> None:
    operands = plain(name, HALF)
    for option, value in CHANGED.items():
        options = (DRAWN if option in DRAWN_ALONE and accepted & set(DRAWN_ALONE) else {}) | {option: value}
        if option in accepted:
            call(name, plain(name, HALF, (0,)), HALF, **options)
        else:
            with pytest.raises(ValueError, match=rf"^{option} has no effect in .*environment=softfloat.Environment"):
                call(name, operands, HALF, **options)


def test_numbers_take_no_random_bits_unless_they_are_drawn() -> None:
    """`encode`, a function that rounds but was not asked to draw."""
    with pytest.raises(ValueError, match=r"^sr_bits has no effect without rounding='stochastic'"):
        bits.encode(0.1, "float16", sr_bits=4)
    assert bits.encode(0.1, "float16", sr_bits=None) == bits.encode(0.1, "float16")
    assert bits.encode(0.1, "float16", environment=softfloat.Environment(sr_bits=4)) == bits.encode(0.1, "float16")
    with pytest.raises(ValueError, match=r"^seed has no effect in calls with random_bits"):
        bits.encode(0.1, "float16", rounding="stochastic", random_bits=3, sr_bits=4, seed=1)
    with pytest.raises(ValueError, match=r"^ftz has no effect in comparisons"):
        bits.scalar("lt", "float16", ftz=True)
    with pytest.raises(ValueError, match=r"^tininess has no effect in elements of fixed point"):
        bits.quantize([1.0] * 32, "mxint8", tininess="before")


ONES = np.full((4, 4), 0x3C00, np.uint16)
HOW = softfloat.accumulators.fma("float32")
SINGLES = np.full((4, 4), 0x3F800000, np.uint32)
BLOCKS = bits.quantize(np.ones((32, 32), np.float32), "mxfp8_e4m3")[0]
SUMS: dict[str, Callable[..., Any]] = {
    "vecdot": lambda **o: bits.vecdot(ONES, ONES, HALF, HOW, **o),
    "a vector": lambda **o: bits.vecdot(ONES[0], ONES[0], HALF, HOW, **o),
    "matmul": lambda **o: bits.matmul(ONES, ONES, HALF, HOW, **o),
    "sum": lambda **o: bits.sum(ONES, HALF, HOW, 0, **o),
    "cumsum": lambda **o: bits.cumsum(ONES, HALF, HOW, 0, **o),
    "conv1d": lambda **o: bits.conv1d(ONES[None], ONES[None, :, :2], HALF, HOW, **o),
    "conv2d": lambda **o: bits.conv2d(ONES[None, None], ONES[None, None, :, :2], HALF, HOW, **o),
    "matmul_split": lambda **o: bits.matmul_split(
        SINGLES, SINGLES, softfloat.accumulators.split("bfloat16", 3), HOW, **o
    ),
    "vecdot_blocks": lambda **o: bits.vecdot_blocks(BLOCKS, BLOCKS, HOW, **o),
    "quantize": lambda **o: bits.quantize(np.ones(32, np.float32), "mxfp8_e4m3", **o),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_refuse_what_is_drawn_where_nothing_is(name: str) -> None:
    function = SUMS[name]
    for option in DRAWN_ALONE:
        with pytest.raises(ValueError, match=rf"^{option} has no effect without rounding='stochastic'"):
            function(**{option: CHANGED[option]})
    settled = function(environment=softfloat.Environment(seed=2, sr_bits=3, sr_method="half"))
    if name != "quantize":
        assert_same(settled, function())
        assert_same(function(stream=3), settled)


def test_a_stage_that_draws_takes_a_seed() -> None:
    drawing = softfloat.accumulators.Stage("float16", "stochastic")
    how = softfloat.accumulators.Accumulator(name="drawing", running=drawing)
    found = [bits.vecdot(ONES, ONES, HALF, how, seed=1, sr_bits=4), bits.sum(ONES, HALF, how, 1, seed=1, sr_bits=4)]
    assert_same(*found)
