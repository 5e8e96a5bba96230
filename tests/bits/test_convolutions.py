"""Convolutions and their gradients against lists of products written down one by one, and against float64."""

from __future__ import annotations

import itertools
import tracemalloc
from functools import partial
from typing import Any

import numpy as np
import pytest
from convolutions import COUNTED, PRODUCTS, Case, Trial, arranged, sample
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softfloat import ROSTER, Environment, bits, get_num_threads, set_num_threads
from softfloat.accumulators import (
    Accumulator,
    amp,
    chunked,
    exact,
    fma,
    mul_add,
    pairwise,
    slic,
    tensor_core,
    vdpbf16ps,
)
from softfloat.bits.sums import convolutions
from softfloat.reference import dots

F16, BF16, F32 = (ROSTER[name] for name in ("float16", "bfloat16", "float32"))
E4M3, E5M2, E8M0 = (ROSTER[name] for name in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"))
QUARTER = ROSTER["float8_e4m3fnuz"]
ACCUMULATORS: dict[str, tuple[Accumulator, Any]] = {
    "mul_add": (mul_add(F16), F16),
    "fma": (fma(BF16), BF16),
    "amp": (amp("half"), F16),
    "amp of quarters": (amp("half", inputs=QUARTER), QUARTER),
    "slic": (slic("half", window=3), F16),
    "tensor core": (tensor_core("H100"), F16),
    "chunked": (chunked(5, F16, F32), F16),
    "pairwise": (pairwise(F16), (E4M3, F16)),
    "exact": (exact(F32), (BF16, E5M2)),
    "vdpbf16ps": (vdpbf16ps(), BF16),
}


CASES = {
    "plain": Case((2, 5, 6, 3), (3, 2), 4),
    "same": Case((1, 5, 4, 2), (3, 2), 3, padding="same"),
    "same, stride": Case((2, 7, 6, 2), (3, 3), 2, (2, 3), "same"),
    "uneven zeros": Case((1, 4, 5, 2), (3, 3), 3, (2, 1), ((2, 0), (1, 3))),
    "dilation": Case((1, 8, 7, 2), (3, 2), 3, (1, 2), ((1, 1), (2, 2)), (2, 3)),
    "groups": Case((2, 4, 4, 6), (2, 2), 4, (1, 1), "same", (1, 1), 2),
    "depthwise": Case((1, 9, 9, 5), (3, 3), 5, (1, 1), "same", (1, 1), 5),
    "multiplied": Case((1, 5, 5, 3), (3, 3), 6, (2, 2), "same", (1, 1), 3),
    "stride beyond the kernel": Case((1, 7, 8, 2), (2, 1), 2, (3, 4)),
    "padding beyond the kernel": Case((1, 3, 2, 2), (2, 1), 2, (2, 1), ((3, 4), (2, 0))),
    "many channels": Case((1, 2, 2, 18), (2, 2), 70, padding=((0, 1), (1, 0))),
    "pointwise": Case((3, 3, 2, 4), (1, 1), 66),
}


def same(found: Any, expected: Any) -> None:
    assert len(found) == len(expected)
    for x, y in zip(found[:2], expected[:2], strict=True):
        np.testing.assert_array_equal(x, y)
        assert np.asarray(x).dtype == np.asarray(y).dtype
    for x, y in zip(found[2:], expected[2:], strict=True):
        assert x.additions == y.additions
        for name in COUNTED:
            np.testing.assert_array_equal(getattr(x, name), getattr(y, name))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_one_by_one(name: str, case: str, layout: str) -> None:
    trial = Trial(name, CASES[case], mul_add(F16), F16)
    same(trial.found(layout), trial.expected(layout))


ORACLES = {
    "fma": (fma(F16), F16, partial(dots.fma, fmts=(F16, F16), fmt=F16)),
    "amp": (amp("half"), F16, partial(dots.amp, fmts=(F16, F16), partials="float16")),
    "tensor core": (tensor_core("H100"), F16, partial(dots.tensor_core, fmts=(F16, F16), arch="H100")),
}


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_the_oracles_sums(name: str, oracle: str) -> None:
    """Fractions instead of kernels, stochastic rounding by address included."""
    accumulator, fmt, sum_ = ORACLES[oracle]
    case = CASES["same, stride"]
    trial = Trial(name, case, accumulator, fmt)
    for options in ({}, {"rounding": "stochastic", "seed": 4}):
        codes, flags = trial.found(environment=Environment(**options))
        for index, output in list(enumerate(np.ndindex(*trial.shape)))[::5]:
            a, b = zip(*PRODUCTS[name](trial.first, trial.second, case, accumulator, output), strict=True)
            address = {"index": index} if options else {}
            code, raised = sum_(list(map(int, a)), list(map(int, b)), **options, **address)
            assert (int(codes[output]), int(flags[output])) == (code, raised)


@pytest.mark.parametrize("accumulator", ACCUMULATORS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_accumulators(name: str, accumulator: str) -> None:
    for case, layout in (
        ("uneven zeros", "NHWC"),
        ("groups", "NCHW"),
        ("many channels", "NHWC"),
        ("depthwise", "NHWC"),
    ):
        trial = Trial(name, CASES[case], *ACCUMULATORS[accumulator])
        same(trial.found(layout, addend=True), trial.expected(layout, addend=True))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_options_and_counts(name: str, layout: str) -> None:
    environments = (
        {"rounding": "toward_positive", "daz": True, "ftz": True, "overflow": "saturate"},
        {"rounding": "stochastic", "seed": 7, "stream": 3, "sr_bits": 9},
        {"nan": "x86"},
        {"environment": Environment.ipu(esr=True, seed=5)},
    )
    for case, options in itertools.product(("depthwise", "groups", "many channels"), environments):
        specials = 0.1 if "nan" in options else 0.01
        trial = Trial(name, CASES[case], mul_add(F16), F16, specials)
        settings = {"out_format": "bfloat16", "count": True, **options}
        same(trial.found(layout, True, **settings), trial.expected(layout, True, **settings))


def with_nans(codes: np.ndarray, fmt: Any, seed: int) -> np.ndarray:
    """A third of the codes replaced by NaNs of any payload and sign."""
    random = np.random.default_rng(seed)
    nans = random.integers(fmt.inf_code + 1, fmt.sign_bit, codes.shape) | random.choice([0, fmt.sign_bit], codes.shape)
    return np.where(random.random(codes.shape) < 1 / 3, nans, codes).astype(fmt.dtype)


@pytest.mark.parametrize("nan", ["x86", "x86_fma3", "arm"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_payloads(name: str, nan: str) -> None:
    for accumulator, which in itertools.product((fma(F16), mul_add(BF16)), ("first", "second", "both")):
        trial = Trial(name, CASES["depthwise"], accumulator, (F16, BF16))
        trial.first = trial.first if which == "second" else with_nans(trial.first, F16, 4)
        trial.second = trial.second if which == "first" else with_nans(trial.second, BF16, 5)
        same(trial.found(nan=nan), trial.expected(nan=nan))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    groups = draw(st.integers(1, 3))
    pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))
    kernel, stride, dilation = draw(pairs), draw(pairs), draw(pairs)
    reach = [(kernel[i] - 1) * dilation[i] for i in range(2)]
    zeros = st.integers(0, 2)
    padding = draw(st.one_of(st.just("same"), st.tuples(*[st.tuples(zeros, zeros)] * 2)))
    least = [0 if padding == "same" else max(reach[i] - sum(padding[i]), 0) for i in range(2)]
    sizes = [draw(st.integers(x, x + 4)) for x in least]
    inputs = draw(st.integers(0, 2)), *sizes, groups * draw(st.integers(0, 2))
    return Case(inputs, kernel, groups * draw(st.integers(0, 2)), stride, padding, dilation, groups)


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases(), st.sampled_from(sorted(PRODUCTS)), st.sampled_from(["NHWC", "NCHW"]), st.booleans())
def test_any_shape(case: Case, name: str, layout: str, addend: bool) -> None:
    trial = Trial(name, case, fma(F16), F16)
    same(trial.found(layout, addend), trial.expected(layout, addend))


@pytest.mark.parametrize("layout", ["NWC", "NCW"])
def test_one_dimension(layout: str) -> None:
    wide = f"N{'' if layout == 'NWC' else 'C'}H{layout[1 if layout == 'NWC' else 2 :]}"
    height = wide.index("H")
    x, w = sample(F16, (2, 9, 6), 1), sample(F16, (3, 3, 4), 2)
    if layout == "NCW":
        x, w = x.transpose(0, 2, 1), w.transpose(2, 1, 0)
    draws = {"rounding": "stochastic", "seed": 3}
    options = {"dilation": 2, "stride": 2, "groups": 2, **draws}
    for padding in ("same", "valid", 1, (2,), ((0, 3),)):
        deep = padding if isinstance(padding, str) else (0, padding if isinstance(padding, int) else padding[0])
        found = bits.conv1d(x, w, F16, amp("half"), padding=padding, layout=layout, **options)
        steps = {"dilation": (1, 2), "stride": (1, 2), "groups": 2, **draws}
        inputs, weights = np.expand_dims(x, height), np.expand_dims(w, 0 if layout == "NWC" else 2)
        expected = bits.conv2d(inputs, weights, F16, amp("half"), padding=deep, layout=wide, **steps)
        same(found, [np.squeeze(y, height) for y in expected])


# -- values ----------------------------------------------------------------------------------------------------------


def convolved(x: np.ndarray, w: np.ndarray, case: Case) -> np.ndarray:
    """The convolution in float64."""
    _, rows, columns, _ = case.shape
    padded = np.pad(x, ((0, 0), case.axis(0)[:2], case.axis(1)[:2], (0, 0)))
    result = np.zeros(case.shape)
    inputs, outputs = w.shape[2], case.outputs // case.groups
    for i, j, group in itertools.product(range(w.shape[0]), range(w.shape[1]), range(case.groups)):
        y, z = i * case.dilation[0], j * case.dilation[1]
        taken = padded[:, y :: case.stride[0], z :: case.stride[1], group * inputs : (group + 1) * inputs]
        channels = slice(group * outputs, (group + 1) * outputs)
        result[..., channels] += taken[:, :rows, :columns] @ w[i, j, :, channels]
    return result


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_values_of_exact_sums(case: Case) -> None:
    random = np.random.default_rng(0)
    x, w, g = (random.integers(-8, 9, shape) / 4 for shape in (case.inputs, case.weights, case.shape))
    codes = [np.asarray(bits.encode(values, F16)[0]) for values in (x, w, g)]
    single = lambda values: bits.encode(values, F32)[0]  # noqa: E731
    found, flags = bits.conv2d(codes[0], codes[1], F16, exact(F32), **case.options, flags="any")
    np.testing.assert_array_equal(found, single(convolved(x, w, case) + 0.0))
    assert flags == 0
    found, _ = bits.conv2d_input_gradient(codes[2], codes[1], x.shape, F16, exact(F32), **case.options)
    gradient = [(convolved(one.reshape(x.shape), w, case) * g).sum() for one in np.eye(x.size)]
    np.testing.assert_array_equal(found, single(np.reshape(gradient, x.shape) + 0.0))
    found, _ = bits.conv2d_weight_gradient(codes[0], codes[2], w.shape, F16, exact(F32), **case.options)
    gradient = [(convolved(x, one.reshape(w.shape), case) * g).sum() for one in np.eye(w.size)]
    np.testing.assert_array_equal(found, single(np.reshape(gradient, w.shape) + 0.0))


def test_one_window_is_a_matrix_product() -> None:
    x, w = sample(F16, (3, 4, 5, 6), 1), sample(F16, (4, 5, 6, 7), 2)
    for accumulator in (mul_add(F16), chunked(16, F16, F32), exact(F32)):
        expected = bits.matmul(x.reshape(3, -1), w.reshape(-1, 7), F16, accumulator)
        same([y.reshape(3, 7) for y in bits.conv2d(x, w, F16, accumulator)], expected)


def test_padding_enters_the_accumulator() -> None:
    one, infinity = 0x3C00, 0x7C00
    codes, flags = bits.conv1d([[[one]]], [[[infinity]], [[one]]], F16, fma(F16), padding=((1, 0),))
    assert bits.isnan(codes, F16).all()
    assert (flags == 16).all()
    codes, flags = bits.conv1d([[[one]]], [[[0x8000]], [[0x8000]]], F16, fma(F16), padding=((1, 0),), c=[0x8000])
    assert codes.item() == 0x8000
    codes, flags = bits.conv1d([[[one]]], [[[one]], [[0x8000]]], F16, fma(F16), padding=((1, 0),), c=[0x8000])
    assert codes.item() == 0


# -- c ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_bias(layout: str) -> None:
    case = CASES["groups"]
    trial = Trial("conv2d", case, mul_add(F16), F16)
    bias = sample(F16, (case.outputs,), 9)
    trial.c = np.broadcast_to(bias, case.shape)
    operands = arranged(layout, trial.first), arranged(layout, trial.second, True)
    arguments = *operands, F16, mul_add(F16)
    same(bits.conv2d(*arguments, bias, **case.options, layout=layout), trial.expected(layout, True))
    one = bits.conv2d(*arguments, bias[:1], **case.options, layout=layout)
    same(bits.conv2d(*arguments, bias[0], **case.options, layout=layout), one)
    with pytest.raises(ValueError, match=r"c of shape \(3,\) does not fit; accepted: one for each of 4 channels"):
        bits.conv2d(*arguments, bias[:3], **case.options, layout=layout)
    with pytest.raises(ValueError, match="c of shape"):
        bits.conv2d(*arguments, np.zeros((2, 2), np.uint16), **case.options, layout=layout)


# -- pieces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_pieces_and_threads_change_nothing(name: str, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"rounding": "stochastic", "seed": 11, "count": True}
    threads = get_num_threads()
    for case in ("plain", "depthwise", "multiplied", "many channels", "pointwise"):
        trial = Trial(name, CASES[case], mul_add(F16), F16)
        whole = trial.found(layout, True, **options)
        for size in (1, 40, 333):
            with monkeypatch.context() as patch:
                patch.setattr(convolutions, "PIECE", size)
                same(trial.found(layout, True, **options), whole)
    large = Case((1, 40, 40, 8), (3, 3), 8, padding="same")
    trial = Trial(name, large, mul_add(F16), F16)
    whole = trial.found(layout, **options)
    try:
        set_num_threads(3)
        same(trial.found(layout, **options), whole)
    finally:
        set_num_threads(threads)


def test_windows_are_never_gathered_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = sample(F16, (1, 96, 96, 16), 1), sample(F16, (5, 5, 16, 2), 2)
    monkeypatch.setattr(convolutions, "PIECE", 1 << 15)
    bits.conv2d(x, w, F16, exact(F32), padding="same")
    tracemalloc.start()
    try:
        bits.conv2d(x, w, F16, exact(F32), padding="same")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 96 * 96 * 25 * 16 * 2 // 4  # a quarter of all windows' codes


def test_out() -> None:
    trial = Trial("conv2d", CASES["same"], mul_add(F16), F16)
    expected = trial.found()
    out = np.zeros(trial.shape, np.uint16), np.zeros(trial.shape, np.uint8)
    found = trial.found(out=out)
    assert found[0] is out[0]
    assert found[1] is out[1]
    same(out, expected)
    assert trial.found(flags="any")[1] == np.bitwise_or.reduce(expected[1], axis=None)
    square = np.ascontiguousarray(sample(F16, (1, 6, 6, 2), 4))
    weights = sample(F16, (3, 3, 2, 2), 5)
    apart = bits.conv2d(square, weights, F16, mul_add(F16), padding="same")
    same(bits.conv2d(square, weights, F16, mul_add(F16), padding="same", out=square), apart)


# -- edges -----------------------------------------------------------------------------------------------------------


def test_nothing() -> None:
    w, images = sample(F16, (3, 3, 2, 4), 1), np.zeros((2, 5, 5, 2), np.uint16)
    codes, flags = bits.conv2d(images[:0], w, F16, fma(F16))
    assert codes.shape == flags.shape == (0, 3, 3, 4)
    assert bits.conv2d(images[:, :2], w, F16, fma(F16))[0].shape == (2, 0, 3, 4)
    assert bits.conv2d(images[:, :0], w, F16, fma(F16), padding="same")[0].shape == (2, 0, 5, 4)
    nothing = np.zeros((0, 3, 3, 4), np.uint16)
    np.testing.assert_array_equal(bits.conv2d_weight_gradient(images[:0], nothing, w.shape, F16, fma(F16), w)[0], w)
    nothing = np.zeros((2, 0, 3, 4), np.uint16)
    gradient, _ = bits.conv2d_input_gradient(nothing, w, (2, 2, 5, 2), F16, fma(F16), padding="valid")
    assert gradient.shape == (2, 2, 5, 2)
    codes, _ = bits.conv2d(images[:, :3, :3, :0], w[:, :, :0], F16, fma(F16), [1, 2, 3, 4])
    np.testing.assert_array_equal(codes, [[[[1, 2, 3, 4]]]] * 2)


def test_order_of_two_nans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        convolutions.Contraction, "run", lambda self, problems, *_, **__: (self.formats, list(problems))
    )
    x, w = sample(F16, (1, 9, 9, 3), 1, 0), sample(BF16, (3, 3, 1, 6), 2, 0)
    swapped = (BF16, F16), {2}
    straight = (F16, BF16), {81}

    def seen(nan: str) -> Any:
        formats, problems = bits.conv2d(x, w, (F16, BF16), fma(F16), padding="same", groups=3, nan=nan)
        return formats, {problem.a.shape[0] for problem in problems}

    assert seen("x86") == swapped
    x[0, 0, 0, 0] = F16.nan_code
    assert seen("x86") == swapped
    w[0, 0, 0, 0] = BF16.nan_code
    assert seen("x86") == straight
    assert seen("canonical") == swapped


def test_formats_without_zero() -> None:
    x, w = sample(F16, (1, 4, 4, 2), 1), sample(E8M0, (2, 2, 2, 3), 2, 0)
    assert bits.conv2d(x, w, (F16, E8M0), exact(F32), padding="same")[0].shape == (1, 4, 4, 3)
    turned = sample(E8M0, (1, 4, 4, 2), 3, 0)
    plain = sample(F16, (2, 2, 2, 3), 4)
    assert bits.conv2d(turned, plain, (E8M0, F16), exact(F32))[0].shape == (1, 3, 3, 3)
    message = "fmt of inputs must have a zero .* float8_e8m0fnu has none"
    with pytest.raises(ValueError, match=message):
        bits.conv2d(turned, plain, (E8M0, F16), exact(F32), padding="same")
    with pytest.raises(ValueError, match=message):
        bits.conv2d(turned, plain, (E8M0, F16), exact(F32).replace(channel_group=3))
    with pytest.raises(ValueError, match="fmt of weights must have a zero"):
        bits.conv2d(x, w, (F16, E8M0), exact(F32).replace(channel_group=3))
    with pytest.raises(ValueError, match="fmt of gradient must have a zero"):
        bits.conv2d_input_gradient(turned, sample(F16, (1, 1, 3, 2), 5), (1, 7, 7, 3), (E8M0, F16), fma(F32), stride=2)
    gradient = bits.conv2d_input_gradient(turned, sample(F16, (1, 1, 3, 2), 5), (1, 4, 4, 3), (E8M0, F16), fma(F32))
    assert gradient[0].shape == (1, 4, 4, 3)


X, W = np.zeros((2, 5, 6, 4), np.uint16), np.zeros((3, 2, 4, 8), np.uint16)
REFUSED = [
    ({"layout": "NWHC"}, ValueError, "layout must be 'NHWC' or 'NCHW', got 'NWHC'"),
    ({"layout": "NWC"}, ValueError, "layout must be 'NHWC' or 'NCHW'"),
    ({"layout": "NCHW"}, ValueError, "weights must have 5 input channels"),
    ({"inputs": X[0]}, ValueError, r"inputs must have the axes N, H, W, C, got shape \(5, 6, 4\)"),
    ({"inputs": X * 1.0}, TypeError, "inputs must be codes of float16"),
    ({"inputs": [[[[1 << 16]]]]}, ValueError, "inputs holds 0x10000"),
    ({"weights": W[0]}, ValueError, "weights must have the axes H, W, I, O"),
    ({"weights": W[:, :, :3]}, ValueError, "weights must have 4 input channels for inputs of 4 in groups=1, got 3"),
    ({"weights": W[:0]}, ValueError, "weights must have a kernel of at least 1 in each of H, W"),
    ({"groups": 2}, ValueError, "weights must have 2 input channels for inputs of 4 in groups=2, got 4"),
    ({"groups": 3}, ValueError, "groups must divide input and output channels, got 3 for 4 and 8 channels"),
    ({"groups": 0}, ValueError, "groups must be an integer of at least 1, got 0"),
    ({"groups": 1.0}, ValueError, "groups must be an integer"),
    ({"stride": 0}, ValueError, "stride must be an integer of at least 1, or one for each of H, W, got 0"),
    ({"stride": (1, 2, 3)}, ValueError, "stride must be"),
    ({"stride": True}, ValueError, "stride must be"),
    ({"stride": 1.5}, ValueError, "stride must be"),
    ({"dilation": (1, -1)}, ValueError, "dilation must be"),
    ({"padding": -1}, ValueError, "padding must be 'same', 'valid', an integer of at least 0, or for each of H, W"),
    ({"padding": "SAME"}, ValueError, "padding must be"),
    ({"padding": (1, (2, -1))}, ValueError, "padding must be"),
    ({"padding": (1, 2, 3)}, ValueError, "padding must be"),
    ({"padding": None}, ValueError, "padding must be"),
    ({"dilation": 3}, ValueError, "weights span 7 along H and the padded inputs 5: no window fits"),
    ({"c": np.zeros((4, 5, 8), np.uint16)}, ValueError, "c of shape"),
    ({"c": 0.5}, TypeError, "c must be codes of float16"),
    ({"fmt": "float99"}, ValueError, "float99"),
    ({"fmt": (F16, F16, F16)}, ValueError, "fmt must be a format or a pair of them"),
    ({"accumulator": "fma"}, TypeError, "accumulator must be a softfloat.Accumulator"),
    ({"accumulator": vdpbf16ps()}, ValueError, "fmt must be 'bfloat16'"),
    ({"random_bits": X}, ValueError, "random_bits are for one rounding each"),
    ({"count": 1}, TypeError, "count must be True or False"),
    ({"out": X}, ValueError, r"out must be an array of dtype uint16 and shape \(2, 3, 5, 8\)"),
    ({"rounding": "stochastic"}, ValueError, "seed"),
    ({"rounding": "stochastic", "seed": 1, "generator": "xoroshiro128aox"}, ValueError, "generator must be"),
    ({"strides": 1}, TypeError, "unknown option 'strides'"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), REFUSED)
def test_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"inputs": X, "weights": W, "fmt": F16, "accumulator": fma(F16), **arguments}
    with pytest.raises(error, match=message):
        bits.conv2d(**given)


def test_refused_elsewhere() -> None:
    g = np.zeros((2, 3, 5, 8), np.uint16)
    with pytest.raises(ValueError, match=r"gradient must have the outputs' shape \(2, 3, 5, 8\), got \(2, 5, 6, 4\)"):
        bits.conv2d_input_gradient(X, W, X.shape, F16, fma(F16))
    with pytest.raises(ValueError, match=r"gradient must have the outputs' shape \(2, 3, 5, 8\)"):
        bits.conv2d_weight_gradient(X, g[:, 1:], W.shape, F16, fma(F16))
    with pytest.raises(ValueError, match=r"input_shape must have the axes N, H, W, C, got \(2, 5, 6\)"):
        bits.conv2d_input_gradient(g, W, X.shape[:3], F16, fma(F16))
    with pytest.raises(ValueError, match="input_shape must have the axes"):
        bits.conv2d_input_gradient(g, W, (2, 5, 6, -4), F16, fma(F16))
    with pytest.raises(ValueError, match="weight_shape must have the axes O, I, H, W, got 5"):
        bits.conv2d_weight_gradient(X, g, 5, F16, fma(F16), layout="NCHW")
    with pytest.raises(ValueError, match="weight_shape must have 4 input channels"):
        bits.conv2d_weight_gradient(X, g, (3, 2, 5, 8), F16, fma(F16))
    with pytest.raises(ValueError, match="layout must be 'NWC' or 'NCW', got 'NHWC'"):
        bits.conv1d(X[:, 0], W[0], F16, fma(F16), layout="NHWC")
    with pytest.raises(ValueError, match=r"padding must be .* for each of W one or a pair"):
        bits.conv1d(X[:, 0], W[0], F16, fma(F16), padding=(1, 2))
    with pytest.raises(ValueError, match=r"stride must be an integer of at least 1, or one for each of W"):
        bits.conv1d(X[:, 0], W[0], F16, fma(F16), stride=(1, 2))
    with pytest.raises(ValueError, match=r"inputs must have the axes N, W, C"):
        bits.conv1d(X, W[0], F16, fma(F16))
