"""What each node computes: the same codes and flags as the functions of `softfloat.bits` that its row declares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx.reference import ReferenceEvaluator  # noqa: E402 -- after the skip
from onnx_models import every, numbers, one_node, parsed  # noqa: E402

import softfloat  # noqa: E402
import softfloat.reference  # noqa: E402
from softfloat import Environment, Format, bfloat16, bits, float8_e4m3fn, float8_e5m2, float16, float32  # noqa: E402
from softfloat.accumulators import amp, chunked, fma, mul_add  # noqa: E402
from softfloat.onnx import OPERATORS, Evaluator, UnemulatedOperatorError  # noqa: E402
from softfloat.onnx.elementwise import BINARY, FUNCTIONS, UNARY  # noqa: E402
from softfloat.onnx.tensors import array_of, codes_of, dtype_of  # noqa: E402
from softfloat.onnx.unit import EXECUTIONS, STEPS, addresses  # noqa: E402
from softfloat.runner import SINGLE_NEAREST  # noqa: E402
from softfloat.status import Flags  # noqa: E402

ENVIRONMENTS = {
    "nearest": {},
    "toward zero, saturating": {"rounding": "toward_zero", "overflow": "saturate"},
    "stochastic": {"rounding": "stochastic", "seed": 7, "sr_bits": 8},
}
FORMATS = (float16, bfloat16, float8_e5m2)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:onnx")  # of NaNs in ONNX's own implementations


@pytest.fixture(params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> Environment:
    return Environment(**ENVIRONMENTS[request.param])


def stream(step: int, name: str = "node", execution: int = 0) -> int:
    """The number that addresses the random bits of a step of a node."""
    return (addresses([name])[name] * EXECUTIONS + execution) * STEPS + step


def evaluated(
    operator: str, inputs: list[Any], environment: Environment | None = None, **options: Any
) -> tuple[Any, Any]:
    """(the first output, flags) of one node; options are the evaluator's where it has them, else the node's."""
    own = {name: options.pop(name) for name in ("matmul", "convolution", "reduction", "inner") if name in options}
    model, feeds = one_node(operator, inputs, **options)
    evaluator = Evaluator(model, environment or Environment(), **own)
    return evaluator.run(["y0"], feeds)[0], evaluator.flags_by_node["node"]


def same(found: tuple[Any, Any], codes: Any, flags: Any, fmt: Format) -> None:
    array, raised = found
    np.testing.assert_array_equal(codes_of(array, fmt), codes)
    assert raised == np.bitwise_or.reduce(flags, axis=None)


# -- elementwise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", BINARY)
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_binary(operator: str, fmt: Format, environment: Environment) -> None:
    a, b = numbers((40, 30), fmt, 1, 30), numbers((30,), fmt, 2, 30)
    codes, flags = BINARY[operator](codes_of(a, fmt), codes_of(b, fmt), fmt, environment=environment, stream=stream(0))
    same(evaluated(operator, [a, b], environment), codes, flags, fmt)


@pytest.mark.parametrize("operator", UNARY)
def test_unary(operator: str, environment: Environment) -> None:
    x = every(float16)[::7]
    codes, flags = UNARY[operator](codes_of(x, float16), float16, environment=environment, stream=stream(0))
    same(evaluated(operator, [x], environment), codes, flags, float16)


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_other_steps(fmt: Format, environment: Environment) -> None:
    x, y, z = (numbers((50,), fmt, seed, 4) for seed in range(3))
    a, b, c = (codes_of(v, fmt) for v in (x, y, z))

    def step(function: Any, *operands: Any, number: int = 0) -> tuple[Any, int]:
        codes, flags = function(*operands, environment=environment, stream=stream(number), flags="any")
        return codes, flags

    one = fmt.dtype.type(fmt.one_code)
    same(evaluated("Reciprocal", [x], environment), *step(bits.div, one, a, fmt), fmt)
    same(evaluated("Mod", [x, y], environment, fmod=1), *step(bits.fmod, a, b, fmt), fmt)
    same(evaluated("Max", [x, y], environment), *step(bits.maximum, a, b, fmt), fmt)
    if fmt != float8_e5m2:
        same(evaluated("Pow", [x, y], environment), *step(bits.pow, a, b, fmt), fmt)
    first, raised = step(bits.add, a, b, fmt)
    second, more = step(bits.add, first, c, fmt, number=1)
    same(evaluated("Sum", [x, y, z], environment), second, raised | more, fmt)
    three, _ = step(bits.encode, 3, fmt)
    mean, last = step(bits.div, second, three, fmt, number=3)
    same(evaluated("Mean", [x, y, z], environment), mean, raised | more | last, fmt)
    scaled, raised = step(bits.mul, a, b, fmt)
    same(evaluated("PRelu", [x, y], environment), np.where(x.astype(float) < 0, scaled, a), raised, fmt)


def exact(name: str, x: float) -> Any:
    """A function's value to 60 digits."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        x = mpmath.mpf(x)
        sigmoid = 1 / (1 + mpmath.exp(-x))
        values = {
            "Sigmoid": lambda: sigmoid,
            "Erf": lambda: mpmath.erf(x),
            "Gelu": lambda: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
            "Elu": lambda: x if x > 0 else mpmath.expm1(x),
            "Celu": lambda: x if x > 0 else mpmath.expm1(x),
            "Mish": lambda: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))),
            "Softplus": lambda: mpmath.log1p(mpmath.exp(x)),
            "Softsign": lambda: x / (1 + abs(x)),
            "Swish": lambda: x * sigmoid,
            "HardSwish": lambda: x * min(max(x + 3, 0), 6) / 6,
        }
        return values[name]() if name in values else None


@pytest.mark.parametrize(
    "name", ["Sigmoid", "Erf", "Gelu", "Elu", "Celu", "Mish", "Softplus", "Softsign", "Swish", "HardSwish"]
)
def test_functions_are_rounded_once(name: str) -> None:
    """Against values of 60 digits, rounded to nearest even by the oracle: every 311th number of half, up to 16."""
    mpmath = pytest.importorskip("mpmath")
    from fractions import Fraction

    codes = np.arange(0, 1 << 16, 311, dtype=np.uint16)
    codes = codes[np.abs(bits.decode(codes, float16)) <= 16]
    found, _ = evaluated(name, [codes.view(np.float16)], opset=24)
    for code, result in zip(codes.tolist(), codes_of(found, float16).tolist(), strict=True):
        value = exact(name, float(bits.decode(code, float16)))
        if value == 0:
            assert result & 0x7FFF == 0
            continue
        sign, mantissa, exponent, _ = mpmath.mpf(value)._mpf_
        fraction = Fraction(int(mantissa)) * Fraction(2) ** exponent * (-1) ** sign
        assert result == softfloat.reference.encode(fraction, float16)[0], (name, hex(code))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_in_float32_and_by_table_are_the_same_values(name: str) -> None:
    """What a table gives for half numbers is what float32 numbers of the same value give, rounded."""
    x = every(float16)[::61]
    found, _ = evaluated(name, [x], opset=24)
    model, feeds = one_node(name, [x.astype(np.float32)], opset=24)
    [wide] = Evaluator(model, emulate_float32=True).run(None, feeds)
    with np.errstate(over="ignore"):
        again = wide.astype(np.float16)
    close = np.nan_to_num(found.astype(np.float64), posinf=7e4, neginf=-7e4)
    assert np.isnan(found).tolist() == np.isnan(again).tolist()
    np.testing.assert_allclose(
        close, np.nan_to_num(again.astype(np.float64), posinf=7e4, neginf=-7e4), rtol=2**-10, atol=2**-24
    )


# -- exact -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [float16, bfloat16, float8_e4m3fn, float8_e5m2], ids=str)
def test_relu_neg_abs_clip(fmt: Format) -> None:
    x = every(fmt)
    codes, values = codes_of(x, fmt), np.asarray(bits.decode(codes_of(x, fmt), fmt))
    found, flags = evaluated("Relu", [x])
    np.testing.assert_array_equal(codes_of(found, fmt), np.where(values < 0, 0, codes))
    assert flags == 0
    np.testing.assert_array_equal(codes_of(evaluated("Neg", [x])[0], fmt), codes ^ fmt.sign_bit)
    np.testing.assert_array_equal(codes_of(evaluated("Abs", [x])[0], fmt), codes & ~np.uint32(fmt.sign_bit))
    low, high = (array_of(bits.encode(v, fmt)[0], fmt) for v in (-0.75, 1.5))
    clipped = codes_of(evaluated("Clip", [x, low, high])[0], fmt)
    limits = codes_of(low, fmt), codes_of(high, fmt)
    np.testing.assert_array_equal(
        clipped, np.where(values < -0.75, limits[0], np.where(values > 1.5, limits[1], codes))
    )


@pytest.mark.parametrize("fmt", [float16, float8_e4m3fn], ids=str)
@pytest.mark.parametrize("operator", ["Floor", "Ceil", "Round", "Sign"])
def test_integers_of_every_number(operator: str, fmt: Format) -> None:
    x = every(fmt)
    found, flags = evaluated(operator, [x])
    function = {"Floor": np.floor, "Ceil": np.ceil, "Round": np.rint, "Sign": np.sign}[operator]
    np.testing.assert_array_equal(found.astype(np.float64), function(bits.decode(codes_of(x, fmt), fmt)))
    assert flags == 0


def test_what_a_format_cannot_hold_is_refused() -> None:
    x = np.arange(4, dtype=np.uint8).view(onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.FLOAT8E8M0))
    model, feeds = one_node("Relu", [x])
    with pytest.raises((UnemulatedOperatorError, ValueError), match=r"Relu|zero|valid"):
        Evaluator(model).run(None, feeds)


# -- products and sums -----------------------------------------------------------------------------------------------

HOWS = {
    "fma": fma,
    "mul_add": mul_add,
    "chunked": lambda fmt: chunked(8, fmt, fmt),
    "single": lambda fmt: fma("float32"),
}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_matmul(fmt: Format, how: str, environment: Environment) -> None:
    a, b = numbers((3, 5, 33), fmt, 1), numbers((33, 7), fmt, 2)
    accumulator = HOWS[how](fmt)
    options: dict[str, Any] = {"environment": environment, "stream": stream(0), "out_format": fmt}
    codes, flags = bits.matmul(codes_of(a, fmt), codes_of(b, fmt), fmt, accumulator, **options)
    same(evaluated("MatMul", [a, b], environment, matmul=HOWS[how]), codes, flags, fmt)
    same(evaluated("MatMul", [a, b], environment, matmul=accumulator), codes, flags, fmt)


def test_environments_accumulator_is_the_default() -> None:
    a, b = numbers((4, 600), float16, 1), numbers((600, 3), float16, 2)
    how = amp("half")
    codes, flags = bits.matmul(a.view(np.uint16), b.view(np.uint16), float16, how, out_format=float16)
    same(evaluated("MatMul", [a, b], Environment(accumulator=how)), codes, flags, float16)
    assert evaluated("MatMul", [a, b])[0].tolist() != evaluated("MatMul", [a, b], matmul=how)[0].tolist()


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (1.0, 0.5), (0.3, 1.0), (0.3, 0.7), (2.0, 0.0)])
@pytest.mark.parametrize(("transposed", "wide"), [(False, "float16"), (True, "float32")])
def test_gemm(alpha: float, beta: float, transposed: bool, wide: str, environment: Environment) -> None:
    fmt, how = float16, fma(wide)
    a, b, c = numbers((5, 9), fmt, 1), numbers((9, 4), fmt, 2), numbers((4,), fmt, 3)
    step = 0

    def run(function: Any, *operands: Any, **options: Any) -> Any:
        nonlocal step, raised
        codes, flags = function(*operands, environment=environment, stream=stream(step), flags="any", **options)
        step, raised = step + 1, raised | flags
        return codes

    raised = 0
    start, of_start = codes_of(c, fmt), fmt
    if beta not in (0.0, 1.0):
        factor = run(bits.encode, np.float32(beta), wide)
        start, of_start = run(bits.mul, start, factor, fmt, b_format=wide, out_format=wide), wide
    operands = codes_of(a, fmt), codes_of(b, fmt), fmt, how
    if alpha == 1.0:
        start = bits.convert(start, of_start, wide)[0]
        codes = run(bits.matmul, *operands, np.broadcast_to(start, (5, 4)), out_format=fmt)
    else:
        codes = run(bits.matmul, *operands, out_format=wide)
        factor = run(bits.encode, np.float32(alpha), wide)
        if beta:
            codes = run(bits.fma, codes, factor, start, wide, c_format=of_start, out_format=fmt)
        else:
            codes = run(bits.mul, codes, factor, wide, out_format=fmt)
    inputs = [a.T if transposed else a, b.T if transposed else b, c]
    given = {"transA": int(transposed), "transB": int(transposed), "alpha": alpha, "beta": beta}
    found, flags = evaluated("Gemm", [np.ascontiguousarray(x) for x in inputs], environment, matmul=how, **given)
    np.testing.assert_array_equal(codes_of(found, fmt), codes)
    assert flags == raised


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({}, {}),
        ({"strides": [2, 1], "pads": [1, 0, 2, 1]}, {"stride": (2, 1), "padding": ((1, 2), (0, 1))}),
        ({"dilations": [1, 2], "group": 2}, {"dilation": (1, 2), "groups": 2}),
        ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, {"padding": "same", "stride": 2}),
    ],
)
def test_convolution(fmt: Format, given: Any, options: Any, environment: Environment) -> None:
    groups = options.get("groups", 1)
    x, w, b = numbers((2, 4, 7, 8), fmt, 1), numbers((6, 4 // groups, 3, 3), fmt, 2), numbers((6,), fmt, 3)
    start = bits.convert(codes_of(b, fmt), fmt, float32)[0]
    how = SINGLE_NEAREST if environment.rounding is softfloat.Rounding.STOCHASTIC else fma("float32")
    options = {"environment": environment, "stream": stream(0), "out_format": fmt, "layout": "NCHW", **options}
    codes, flags = bits.conv2d(codes_of(x, fmt), codes_of(w, fmt), fmt, how, start, **options)
    same(evaluated("Conv", [x, w, b], environment, **given), codes, flags, fmt)
    if not given:
        flat, _ = evaluated("Conv", [x[:, :, 0], w[:, :, 0], b], environment)
        plain: dict[str, Any] = {"environment": environment, "stream": stream(0), "out_format": fmt, "layout": "NCW"}
        row, _ = bits.conv1d(codes_of(x[:, :, 0], fmt), codes_of(w[:, :, 0], fmt), fmt, how, start, **plain)
        np.testing.assert_array_equal(codes_of(flat, fmt), row)


def test_stochastic_sums_round_at_the_end() -> None:
    environment = Environment(rounding="stochastic", seed=3)
    a, b = numbers((4, 50), float16, 1), numbers((50, 4), float16, 2)
    wide = np.zeros((4, 4), np.float32)
    for k in range(50):  # products of half numbers and their sums fit float64; each sum is rounded to float32
        wide = (wide.astype(np.float64) + a[:, k : k + 1].astype(np.float64) * b[k].astype(np.float64)).astype(
            np.float32
        )
    found, _ = evaluated("MatMul", [a, b], environment)
    down, up = (
        bits.encode(wide, float16, rounding=mode)[0].view(np.float16) for mode in ("toward_negative", "toward_positive")
    )
    assert ((found == down) | (found == up)).all()
    assert (found != wide.astype(np.float16)).any()


@pytest.mark.parametrize("opset", [11, 21])
@pytest.mark.parametrize(
    "given", [{}, {"strides": [2, 3], "pads": [1, 0, 1, 2]}, {"strides": [2, 2], "output_padding": [1, 0], "group": 2}]
)
def test_transposed_convolution(given: Any, opset: int, environment: Environment) -> None:
    """The exact product with the matrix of the convolution, where sums are rounded once."""
    group = given.get("group", 1)
    x, w = numbers((2, 4, 3, 4), float16, 1), numbers((4, 2, 3, 2), float16, 2)
    from softfloat.accumulators import exact as once

    found, _ = evaluated("ConvTranspose", [x, w], environment, convolution=once("float16"), opset=opset, **given)
    stride, pads, more = given.get("strides", [1, 1]), given.get("pads", [0] * 4), given.get("output_padding", [0, 0])
    full = np.zeros(
        (2, 2 * group, *(s * (n - 1) + k + m for s, n, k, m in zip(stride, (3, 4), (3, 2), more, strict=True)))
    )
    each = 4 // group
    for c in range(4):
        for o in range(2):
            for i in range(3):
                for j in range(4):
                    part = full[
                        :, c // each * 2 + o, i * stride[0] : i * stride[0] + 3, j * stride[1] : j * stride[1] + 2
                    ]
                    part += x[:, c, i, j, None, None].astype(float) * w[c, o].astype(float)
    cut = full[:, :, pads[0] : full.shape[2] - pads[2], pads[1] : full.shape[3] - pads[3]]
    assert found.shape == cut.shape
    if environment.rounding is softfloat.Rounding.STOCHASTIC:
        np.testing.assert_allclose(found.astype(float), cut, rtol=2**-10)
    else:
        codes, _ = bits.encode(cut, float16, environment=environment)
        np.testing.assert_array_equal(codes_of(found, float16), codes)


@pytest.mark.parametrize(("equation", "shapes"), [
    ("ij,jk->ik", ((3, 4), (4, 5))), ("bij,bkj->bki", ((2, 3, 4), (2, 5, 4))), ("bhqd,bhkd->bhqk", ((2, 2, 3, 4), (2, 2, 5, 4))),
    ("ij,kj", ((3, 4), (5, 4))), ("i,j->ji", ((3,), (4,))), ("ij->j", ((3, 4),)), ("ij->ji", ((3, 4),)), ("ijk,jl->il", ((2, 3, 4), (3, 5))),
])  # fmt: skip
def test_einsum(equation: str, shapes: Any) -> None:
    """Integers, whose sums are exact."""
    random = np.random.default_rng(0)
    operands = [random.integers(-4, 5, shape).astype(np.float16) for shape in shapes]
    found, flags = evaluated("Einsum", operands, equation=equation)
    np.testing.assert_array_equal(found, np.einsum(equation, *[x.astype(float) for x in operands]))
    assert flags == 0


@pytest.mark.parametrize("fmt", [float16, bfloat16], ids=str)
def test_sums(fmt: Format, environment: Environment) -> None:
    x = numbers((3, 40, 5), fmt)
    flat = codes_of(x, fmt).transpose(0, 2, 1).reshape(15, 40).T
    codes, flags = bits.sum(flat, fmt, fma(fmt), 0, environment=environment, stream=stream(0))
    axes = np.array([1])
    same(
        evaluated("ReduceSum", [x, axes], environment, reduction=fma, keepdims=0, rank=2),
        codes.reshape(3, 5),
        flags,
        fmt,
    )
    running, flags = bits.cumsum(codes_of(x, fmt), fmt, fma(fmt), 1, environment=environment, stream=stream(0))
    same(evaluated("CumSum", [x, np.int64(1)], environment, reduction=fma), running, flags, fmt)


def test_means_and_swamping() -> None:
    ones = np.ones((1, 1, 64, 64), np.float16)
    assert evaluated("ReduceSum", [ones], reduction=fma("float16"))[0].item() == 2048
    assert evaluated("ReduceSum", [ones])[0].item() == 4096
    assert evaluated("ReduceMean", [ones], reduction=fma("float16"))[0].item() == 0.5
    assert evaluated("GlobalAveragePool", [ones])[0].item() == 1


# -- stages ----------------------------------------------------------------------------------------------------------


def ordered_sum(x: np.ndarray) -> np.ndarray:
    return np.add.accumulate(x, axis=-1, dtype=np.float32)[..., -1:]


@pytest.mark.parametrize("fmt", [float16, bfloat16], ids=str)
def test_softmax_in_stages(fmt: Format, environment: Environment) -> None:
    x = numbers((6, 30), fmt, 1, 3)
    single = x.astype(np.float32)
    shifted = single - single.max(-1, keepdims=True)
    powers = np.array([[float(math.exp(v)) for v in row] for row in shifted]).astype(np.float32)
    sums = ordered_sum(powers)
    options: dict[str, Any] = {"environment": environment, "stream": stream(0)}
    same(evaluated("Softmax", [x], environment), *bits.encode(powers / sums, fmt, **options), fmt)
    logs = np.array([math.log(v) for v in sums.ravel()]).astype(np.float32)[:, None]
    same(evaluated("LogSoftmax", [x], environment), *bits.encode(shifted - logs, fmt, **options), fmt)


def in_single(operator: str, inputs: list[Any], **given: Any) -> Any:
    """A node on float32, emulated: what half numbers hide of the stages, its bits show."""
    model, feeds = one_node(operator, [x.astype(np.float32) for x in inputs], **given)
    return Evaluator(model, Environment(), emulate_float32=True).run(["y0"], feeds)[0].view(np.uint32)


def test_stages_to_the_last_bit_of_float32() -> None:
    x = np.random.default_rng(0).normal(0, 3, (40, 60)).astype(np.float32)
    shifted = x - x.max(-1, keepdims=True)
    powers = bits.decode(bits.exp(shifted.view(np.uint32), float32)[0], float32).astype(np.float32)
    sums = ordered_sum(powers)
    np.testing.assert_array_equal(in_single("Softmax", [x]), (powers / sums).view(np.uint32))
    logs = bits.decode(bits.log(sums.view(np.uint32), float32)[0], float32).astype(np.float32)
    np.testing.assert_array_equal(in_single("LogSoftmax", [x]), (shifted - logs).view(np.uint32))
    g, b = np.random.default_rng(1).normal(size=(2, 60)).astype(np.float32)
    mean = ordered_sum(x) / np.float32(60)
    centred = x - mean
    scale = np.float32(1) / np.sqrt(ordered_sum(centred * centred) / np.float32(60) + np.float32(1e-5))
    wanted = centred * scale * g + b
    np.testing.assert_array_equal(in_single("LayerNormalization", [x, g, b]), wanted.view(np.uint32))
    instances = in_single("InstanceNormalization", [x.reshape(2, 20, 60), g[:20], b[:20]]).reshape(40, 60)
    wanted = centred * scale * np.tile(g[:20], 2)[:, None] + np.tile(b[:20], 2)[:, None]
    np.testing.assert_array_equal(instances, wanted.view(np.uint32))
    groups = in_single("GroupNormalization", [x.reshape(4, 20, 30), g[:20], b[:20]], num_groups=10, rank=3)
    wanted = (centred * scale).reshape(4, 20, 30) * g[:20, None] + b[:20, None]
    np.testing.assert_array_equal(groups, wanted.view(np.uint32))
    a = np.float32(1) / np.sqrt(np.abs(g) + np.float32(1e-5)) * b
    wanted = x * a + (g - b * a)
    np.testing.assert_array_equal(in_single("BatchNormalization", [x, b, g, b, np.abs(g)]), wanted.view(np.uint32))


@pytest.mark.parametrize("name", ["Sigmoid", "Gelu", "Swish", "HardSigmoid"])
def test_tables_are_the_function_at_every_code(name: str) -> None:
    x = every(float16)
    with np.errstate(all="ignore"):
        values = FUNCTIONS[name][0](
            np.asarray(bits.decode(codes_of(x, float16), float16)), {"alpha": 0.5, "beta": 0.25}
        )
    given = {"HardSigmoid": {"alpha": 0.5, "beta": 0.25}, "Swish": {"alpha": 0.5}}.get(name, {})
    same(evaluated(name, [x], opset=24, **given), *bits.encode(values, float16), float16)


def test_softmax_before_operator_set_13_takes_all_axes_from_one_on() -> None:
    x = numbers((2, 3, 4), float16)
    found, _ = evaluated("Softmax", [x], opset=11)
    flat, _ = evaluated("Softmax", [x.reshape(2, 12)], opset=11)
    np.testing.assert_array_equal(found.reshape(2, 12), flat)


@pytest.mark.parametrize("fmt", [float16, bfloat16], ids=str)
def test_norms_in_stages(fmt: Format, environment: Environment) -> None:
    x, gamma, beta = numbers((4, 6, 5), fmt, 1, 3), numbers((5,), fmt, 2), numbers((5,), fmt, 3)
    s, g, b = (v.astype(np.float32) for v in (x, gamma, beta))
    options: dict[str, Any] = {"environment": environment, "stream": stream(0)}
    mean = ordered_sum(s) / np.float32(5)
    centred = s - mean
    scale = np.float32(1) / np.sqrt(ordered_sum(centred * centred) / np.float32(5) + np.float32(1e-5))
    expected = bits.encode(centred * scale * g + b, fmt, **options)
    same(evaluated("LayerNormalization", [x, gamma, beta], environment), *expected, fmt)
    power = np.float32(1) / np.sqrt(ordered_sum(s * s) / np.float32(5) + np.float32(1e-5))
    same(
        evaluated("RMSNormalization", [x, gamma], environment, opset=23),
        *bits.encode(s * power * g, fmt, **options),
        fmt,
    )
    weight, bias, running, variance = (numbers((6,), fmt, seed) for seed in range(4))
    variance = np.abs(variance.astype(np.float32)).astype(variance.dtype)
    w, c, m, v = (y.astype(np.float32)[:, None] for y in (weight, bias, running, variance))
    a = np.float32(1) / np.sqrt(v + np.float32(1e-5)) * w
    expected = bits.encode(s * a + (c - m * a), fmt, **options)
    same(evaluated("BatchNormalization", [x, weight, bias, running, variance], environment), *expected, fmt)


POOLS: list[dict[str, Any]] = [
    {},
    {"pads": [1, 0, 1, 1]},
    {"strides": [2, 3]},
    {"dilations": [2, 1], "ceil_mode": 1, "strides": [2, 2]},
    {"ceil_mode": 1, "strides": [2, 2], "pads": [0, 1, 1, 0]},
]


def pooled(x: np.ndarray, operator: str, given: dict[str, Any], included: int) -> np.ndarray:
    """Window by window, kernel 3 by 2."""
    kernel, stride = (3, 2), given.get("strides", (1, 1))
    apart, pads = given.get("dilations", (1, 1)), given.get("pads", (0, 0, 0, 0))
    sizes = x.shape[2:]
    counts = []
    for axis in range(2):
        room = sizes[axis] + pads[axis] + pads[axis + 2] - (kernel[axis] - 1) * apart[axis] - 1
        count = (math.ceil if given.get("ceil_mode") else math.floor)(room / stride[axis]) + 1
        counts.append(count - ((count - 1) * stride[axis] >= sizes[axis] + pads[axis]))
    result = np.zeros((*x.shape[:2], *counts))
    for i, j in np.ndindex(*counts):
        seen, number = [], 0
        for k, m in np.ndindex(*kernel):
            row, column = (
                o * s + t * d - p for o, s, t, d, p in zip((i, j), stride, (k, m), apart, pads[:2], strict=True)
            )
            inside = 0 <= row < sizes[0] and 0 <= column < sizes[1]
            padded = -pads[0] <= row < sizes[0] + pads[2] and -pads[1] <= column < sizes[1] + pads[3]
            number += padded if included else inside
            if inside:
                seen.append(x[:, :, row, column].astype(float))
        top = operator == "MaxPool"
        result[:, :, i, j] = np.max(seen, 0) if top else np.float32(np.sum(seen, 0)) / np.float32(number)
    return result


@pytest.mark.parametrize("given", POOLS)
@pytest.mark.parametrize("included", [0, 1])
def test_pools(given: dict[str, Any], included: int) -> None:
    """Small integers: sums are exact, and means rounded to float32 and once more."""
    x = np.random.default_rng(1).integers(-8, 9, (2, 3, 9, 8)).astype(np.float16)
    for operator, more in (("MaxPool", {}), ("AveragePool", {"count_include_pad": included})):
        found, _ = evaluated(operator, [x], kernel_shape=[3, 2], opset=22, **given, **more)
        np.testing.assert_array_equal(found, pooled(x, operator, given, included).astype(np.float16))


# -- moves -----------------------------------------------------------------------------------------------------------

I = np.array  # noqa: E741
MOVES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "Transpose": ([], {"perm": [1, 2, 0]}), "Reshape": ([I([4, -1])], {}), "Flatten": ([], {"axis": 2}), "Unsqueeze": ([I([0])], {}),
    "Slice": ([I([1]), I([3]), I([1])], {}), "Gather": ([I([1, 0])], {"axis": 2}), "Expand": ([I([2, 2, 4, 3])], {}), "Tile": ([I([1, 2, 1])], {}),
    "Identity": ([], {}), "Pad": ([I([0, 1, 0, 0, 0, 2])], {}), "Trilu": ([], {}), "ReverseSequence": ([I([1, 2, 2, 1])], {}),
    "GatherND": ([I([[1, 2], [0, 0]])], {}), "Compress": ([I([True, False])], {"axis": 0}), "CenterCropPad": ([I([3, 4, 2])], {}),
    "Split": ([I([1, 1])], {}), "GatherElements": ([np.zeros((2, 4, 3), np.int64)], {}), "Squeeze": ([], {}),
}  # fmt: skip


@pytest.mark.parametrize("fmt", [float16, bfloat16, float8_e4m3fn], ids=str)
@pytest.mark.parametrize("operator", MOVES)
def test_moves_move_codes(operator: str, fmt: Format) -> None:
    """As integers move in ONNX's own evaluator; signalling NaNs too, without flags."""
    from onnx.reference import ReferenceEvaluator

    codes = np.random.default_rng(2).integers(0, 1 << fmt.spec.width, (2, 4, 3)).astype(fmt.dtype)
    more, given = MOVES[operator]
    outputs = 2 if operator == "Split" else 1
    given = (
        {"rank": 4 if operator == "Unsqueeze" else 3, **given}
        if operator in ("Split", "Unsqueeze", "CenterCropPad")
        else given
    )
    model, feeds = one_node(operator, [codes.astype(np.int32), *more], outputs, **given)
    wanted = ReferenceEvaluator(model).run(None, feeds)
    model, feeds = one_node(operator, [array_of(codes, fmt), *more], outputs, **given)
    environment = Environment()
    found = Evaluator(model, environment).run(None, feeds)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(codes_of(a, fmt), b)
    assert not environment.status.flags


def test_scattered_and_chosen() -> None:
    x = numbers((4, 3), float16)
    update = numbers((2, 3), float16, 5)
    found, _ = evaluated("ScatterND", [x, np.array([[1], [3]]), update])
    np.testing.assert_array_equal(found, [x[0], update[0], x[2], update[1]])
    found, _ = evaluated("Where", [x > 0, x, -x], made=onnx.TensorProto.FLOAT16)
    np.testing.assert_array_equal(found, np.abs(x))
    model, feeds = one_node("ScatterND", [x, np.array([[1], [3]]), update], reduction="add")
    with pytest.raises(UnemulatedOperatorError, match="reduction"):
        Evaluator(model).run(None, feeds)


# -- casts to integers, and quantisation ------------------------------------------------------------------------------

NEWEST = min(25, onnx.defs.onnx_opset_version())
FEW_BITS = {"UINT4": (0, 15), "INT4": (-8, 7), "UINT2": (0, 3), "INT2": (-2, 1)}


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("fmt", [float16, bfloat16, float8_e5m2], ids=str)
@pytest.mark.parametrize("element", [name for name in FEW_BITS if hasattr(onnx.TensorProto, name)])
def test_casts_to_few_bits(element: str, fmt: Format) -> None:
    """ONNX leaves open what comes of what does not fit: the integer's lowest bits in its own tests, and of 8, 16, 200 among them."""
    x, to = every(fmt), getattr(onnx.TensorProto, element)
    values = np.asarray(bits.decode(codes_of(x, fmt), fmt))
    found, flags = evaluated("Cast", [x], made=to, opset=NEWEST, to=to)
    assert found.dtype == onnx.helper.tensor_dtype_to_np_dtype(to)
    low, high = FEW_BITS[element]
    whole = [int(v) if math.isfinite(v) else 0 for v in values.tolist()]
    assert found.astype(int).tolist() == [(v - low) % (high - low + 1) + low for v in whole]
    assert flags == Flags.INEXACT | Flags.INVALID
    model, feeds = one_node("Cast", [x], made=to, opset=NEWEST, to=to)
    small = np.abs(values) < 2**15  # beyond, what C makes of such a cast is undefined
    if NEWEST > 24 or fmt == float16:  # ONNX 1.19's own evaluator has no other such casts
        assert np.array_equal(found[small], ReferenceEvaluator(model).run(None, feeds)[0][small])
    for v in (8, 16, 200, -10, 1, 0.75, math.inf, math.nan):
        one = array_of(bits.encode([v], fmt)[0], fmt)
        fits = math.isfinite(v) and low <= int(v) <= high
        wanted = Flags.INVALID if not fits else Flags.INEXACT if v != int(v) else Flags(0)
        assert evaluated("Cast", [one], made=to, opset=NEWEST, to=to)[1] == wanted, v


@pytest.mark.parametrize("opset", [19, 21, 23])
def test_quantisation_divides_in_the_type_of_the_scale(opset: int) -> None:
    """5.25 / half(0.3) is 17.497 and in half 17.5, which is even at 18."""
    scale, zero = np.float16(0.3), np.int8(0)
    found, flags = evaluated("QuantizeLinear", [np.array([5.25], np.float16), scale, zero], made=3, opset=opset)
    assert (found.tolist(), flags) == ([18], Flags.INEXACT)


@pytest.mark.parametrize("precision", [None, float32, float16, bfloat16], ids=str)
@pytest.mark.parametrize("kind", ["int8", "uint8", "float8_e4m3fn"])
def test_quantisation_in_a_precision(precision: Format | None, kind: str, environment: Environment) -> None:
    """Operands into the precision, a quotient there, and an integer or a number of 8 bits."""
    x, scale = numbers((6, 50), float16, 3, 9), np.float16(0.3)
    target = float8_e4m3fn if kind == "float8_e4m3fn" else None
    zero = np.zeros((), dtype_of(target)) if target else np.array(3, kind)
    named = {} if precision is None else {"precision": onnx.helper.np_dtype_to_tensor_dtype(dtype_of(precision))}
    element = onnx.helper.np_dtype_to_tensor_dtype(zero.dtype)
    found, _ = evaluated("QuantizeLinear", [x, scale, zero], environment, made=element, opset=23, **named)
    fmt = precision or float16
    if fmt == float32:
        quotients: Any = x.astype(np.float32) / np.float32(scale)
    else:
        step, operands = 0, []
        for array in (x, scale):
            codes = codes_of(np.asarray(array), float16)
            if fmt != float16:
                codes, _ = bits.encode(np.asarray(array), fmt, environment=environment, stream=stream(step))
                step += 1
            operands.append(codes)
        divided, _ = bits.div(*operands, fmt, environment=environment, stream=stream(step))
        quotients = array_of(divided, fmt)
        if environment.rounding.name == "NEAREST_EVEN":  # the oracle's own quotients
            a, b = (np.broadcast_to(v, x.shape)[0].tolist() for v in operands)
            assert np.ravel(divided)[:50].tolist() == [
                softfloat.reference.div(p, q, fmt)[0] for p, q in zip(a, b, strict=True)
            ]
    if target is None:
        limits = np.iinfo(kind)
        wanted = np.clip(np.rint(quotients.astype(float)) + 3, limits.min, limits.max).astype(kind)
        np.testing.assert_array_equal(found, wanted)
    elif environment.rounding.name != "STOCHASTIC":
        codes, _ = bits.encode(
            quotients, target, environment=environment.settings.replace(overflow="saturate", infinite_input="saturate")
        )
        np.testing.assert_array_equal(codes_of(found, target), codes)


@pytest.mark.skipif(not hasattr(onnx.TensorProto, "FLOAT6E2M3"), reason="an onnx without formats of 6 bits")
def test_formats_of_six_bits_are_refused() -> None:
    """They are no integers of few bits, though NumPy knows no more of either."""
    to, x = onnx.TensorProto.FLOAT6E2M3, np.ones(3, np.float16)
    with pytest.raises(UnemulatedOperatorError, match=r"'node', operator Cast: casts from float16 to float6_e2m3fn"):
        evaluated("Cast", [x], made=to, opset=28, to=to)
    with pytest.raises(UnemulatedOperatorError, match=r"QuantizeLinear: a result of float6_e2m3fn"):
        evaluated("QuantizeLinear", [x, np.float16(1)], made=to, opset=28, output_dtype=to)


def test_precisions_that_there_are_not() -> None:
    x, scale, zero = np.ones(3, np.float16), np.float16(1), np.int8(0)
    with pytest.raises(UnemulatedOperatorError, match=r"precision=DOUBLE; accepted: FLOAT, FLOAT16, BFLOAT16"):
        evaluated("QuantizeLinear", [x, scale, zero], made=3, opset=23, precision=onnx.TensorProto.DOUBLE)


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("opset", [10, 13, 17])
def test_quantisation_of_old_operator_sets(opset: int, axis: int | None) -> None:
    """Models of 8 bits are usually of operator set 13 or 17; onnx itself runs DequantizeLinear from 19 on."""
    if axis and opset < 13:
        pytest.skip("scales of an axis came with operator set 13")
    x = np.random.default_rng(0).normal(0, 40, (5, 4)).astype(np.float32)
    scale = np.array([0.3, 0.7, 1.5, 0.01], np.float32) if axis else np.float32(0.3)
    zero = np.array([3, -4, 0, 100], np.int8) if axis else np.int8(3)
    text = """g (float[5, 4] x, float[n] s, int8[n] z) => (float[5, 4] y)
        { q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }"""
    text = text if axis else text.replace("[n]", "")
    feeds = {"x": x, "s": scale, "z": zero}
    evaluator = Evaluator(parsed(text, opset), Environment(rounding="toward_zero"))
    [found] = evaluator.run(None, feeds)
    assert set(evaluator.flags_by_node) <= {"y"}
    whole = np.clip(np.rint(x / scale) + zero.astype(int), -128, 127)
    np.testing.assert_array_equal(found, (whole - zero.astype(int)).astype(np.float32) * scale)
    np.testing.assert_array_equal(found, ReferenceEvaluator(parsed(text, 19)).run(None, feeds)[0])


def test_every_row_is_reached() -> None:
    """A row that no operator of ONNX's has is a mistake in its name; older onnx have fewer."""
    younger = {"BitCast", "Swish", "TensorScatter", "RMSNormalization"}
    assert not [name for name in OPERATORS if not onnx.defs.has(name) and name not in younger]
