"""Scales of tensors against exact fractions and TransformerEngine's rules, written out step by step; histories of delayed scaling."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softfloat import ROSTER, bits, reference
from softfloat.scaling import AmaxHistory, CurrentScaling, DelayedScaling, Operand, encode_scales, quantized, tensors

E4M3, E5M2, E2M1, F32 = (ROSTER[x] for x in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float32"))
LARGEST = float(np.finfo(np.float32).max)
magnitudes = st.floats(0, width=32, allow_nan=False, allow_infinity=False)
numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)


def single(x: Fraction | float) -> float:
    """An exact number rounded to float32, to nearest even, by the oracle."""
    if isinstance(x, float) and not math.isfinite(x):
        return x
    return float(np.uint32(reference.encode(Fraction(x), F32)[0]).view(np.float32))


def kernel_scale(amax: float, fmt, power_of_two: bool, epsilon: float, largest: float) -> float:
    """compute_scale_from_amax, statement by statement."""
    if amax < epsilon:
        amax = epsilon
    if math.isinf(amax) or amax == 0 or math.isnan(amax):
        return 1.0
    scale = single(Fraction(fmt.max) / Fraction(amax))
    if math.isinf(scale):
        scale = largest
    if power_of_two:
        power = Fraction(1)
        while power * 2 <= Fraction(scale):
            power *= 2
        while power > Fraction(scale):
            power /= 2
        scale = float(power)
    return scale


@settings(max_examples=60, deadline=None)
@given(
    amax=st.one_of(magnitudes, st.sampled_from([0.0, math.inf, math.nan, 2.0**-149, LARGEST, 448.0, 57344.0, 1.0])),
    fmt=st.sampled_from([E4M3, E5M2, E2M1]),
    power_of_two=st.booleans(),
    epsilon=st.sampled_from([0.0, 1e-12, 2.0**-10]),
    source=st.sampled_from([ROSTER["bfloat16"], F32]),
)
def test_current_scales(amax, fmt, power_of_two, epsilon, source) -> None:
    found = encode_scales(amax, fmt, power_of_two=power_of_two, epsilon=epsilon, input_format=source)
    assert float(found) == kernel_scale(amax, fmt, power_of_two, epsilon, source.max)


def test_where_the_reference_in_python_says_something_else() -> None:
    """An infinite amax: 1 by the kernel, 0 by its own reference, with powers of two and without; NaN likewise."""
    special = [math.inf, math.nan, 0.0, 2.0]
    for power_of_two in (False, True):
        kernel = encode_scales(special, E4M3, power_of_two=power_of_two)
        written = encode_scales(special, E4M3, power_of_two=power_of_two, standing="reference")
        np.testing.assert_array_equal(kernel, [1, 1, 1, 128 if power_of_two else 224])
        np.testing.assert_array_equal(written, [0, math.nan, 1, 128 if power_of_two else 224])
    how = CurrentScaling(format=E4M3, standing="reference")
    found = quantized([math.inf, 1.0, -3.0, 0.0], Operand(scaling=how), 0, count=True)
    assert (found.flags, found.underflowed) == (0x1 | 0x2, 2)  # zeros of numbers that are none


@settings(max_examples=60, deadline=None)
@given(
    x=st.lists(st.one_of(numbers, st.sampled_from([0.0, -0.0, 1.0, -448.0, 2.0**-149])), min_size=1, max_size=12),
    fmt=st.sampled_from([E4M3, E5M2, E2M1]),
    power_of_two=st.booleans(),
)
def test_scaled_elements_are_those_of_the_oracle(x, fmt, power_of_two) -> None:
    how = CurrentScaling(format=fmt, power_of_two=power_of_two)
    found = quantized(np.float32(x), Operand(scaling=how), 0, count=True)
    scale = kernel_scale(max(map(abs, x)), fmt, power_of_two, 0.0, F32.max)
    flags = saturated = underflowed = 0
    for value, code in zip(x, found.codes.elements, strict=True):
        product = reference.mul(int(np.float32(value).view(np.uint32)), int(np.float32(scale).view(np.uint32)), F32)[0]
        expected, raised = reference.convert(product, F32, fmt, overflow="saturate")
        if product & 0x7FFFFFFF == 0 and value != 0:
            raised |= 0x1 | 0x2  # INEXACT and UNDERFLOW
        assert int(code) == expected
        flags |= raised
        saturated += bool(raised & 0x4)
        underflowed += bool(raised & 0x2)
    assert (found.flags, found.saturated, found.underflowed) == (flags, saturated, underflowed)
    inverse = single(Fraction(1) / Fraction(scale))
    assert found.scales == (inverse, inverse)
    assert found.amax == max(map(abs, x))
    np.testing.assert_array_equal(found.values, bits.decode(found.codes.elements, fmt) * inverse)


def spread_out(shape: tuple[int, ...], special: bool) -> np.ndarray:
    """Numbers of all sizes, zeros and subnormal ones among them; one that is infinite."""
    random = np.random.default_rng(len(shape) + shape[-1])
    x = random.normal(size=shape).astype(np.float32) * np.exp2(random.integers(-40, 40, shape)).astype(np.float32)
    x.flat[::7], x.flat[3], x.flat[5] = 0, np.float32(2.0**-149), -np.float32(2.0**-127)
    x[0], x.flat[1] = x[0] * np.float32(2.0**-40), np.inf if special else 1
    return x


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("power_of_two", [False, True])
@pytest.mark.parametrize("per", ["tensor", 128, (128, 128), (16, 16)])
def test_scaled_elements_in_one_pass(monkeypatch, per, power_of_two, special) -> None:
    """The compiled loop gives what a product in float32 and a conversion do: codes, flags, counts, on any number of threads."""
    served = []

    def watched(*arguments):
        served.append(kept(*arguments))
        return served[-1]

    kept = tensors.quickly_scaled
    operand = Operand(scaling=CurrentScaling(format=E4M3, per=per, power_of_two=power_of_two))
    for shape, axis in (((64, 144), -1), ((144, 64), -2), ((3, 48, 64), -1), ((520, 520), -1)):
        x, found = spread_out(shape, special), []
        for way in (watched, lambda *_: None):
            monkeypatch.setattr(tensors, "quickly_scaled", way)
            for count, threads in ((True, 1), (False, 3)):
                monkeypatch.setattr("softfloat.engine.threads._workers.count", threads)
                made = quantized(x, operand, axis, count=count)
                elements = made.codes.elements.tobytes()
                found.append((elements, made.flags, made.amax, made.scales, made.saturated, made.underflowed))
        assert found[:2] == found[2:]
    assert special or all(x is not None for x in served)


@pytest.mark.parametrize("nans", [False, True])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e5m2"])
def test_codes_as_float32(name: str, nans: bool) -> None:
    """Every one, and every number alone; NaNs as conversions make them."""
    fmt = ROSTER[name]
    codes = np.arange(1 << fmt.bits, dtype=fmt.dtype)
    codes = codes if nans else codes[~np.asarray(bits.isnan(codes, fmt))]
    expected, _ = bits.convert(codes, fmt, "float32")
    np.testing.assert_array_equal(tensors.widened(codes, fmt).view(np.uint32), expected)


@pytest.mark.parametrize("per", ["row", 4, (2, 3), (128, 128)])
@pytest.mark.parametrize("axis", [-1, -2])
def test_rows_and_tiles_are_tensors_of_their_own(per, axis) -> None:
    x = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32) * np.float32(2.0) ** np.arange(
        7, dtype=np.float32
    )
    x[2] = 0
    found = quantized(x, Operand(scaling=CurrentScaling(format=E4M3, per=per)), axis)
    tile = {"row": (1, 7) if axis == -1 else (5, 1), 4: (1, 4) if axis == -1 else (4, 1)}.get(per, per)
    values = np.empty(x.shape)
    for i in range(0, 5, tile[0]):
        for j in range(0, 7, tile[1]):
            part = np.s_[i : i + tile[0], j : j + tile[1]]
            values[part] = quantized(x[part], Operand(scaling=CurrentScaling(format=E4M3)), -1).values
    np.testing.assert_array_equal(found.values, values)


def stepped(history: list[float], scale: float, how: DelayedScaling) -> tuple[list[float], float]:
    """The update of one tensor as TransformerEngine's kernels write it, thread by thread."""
    last, n = history[0], how.history
    if last == 0 and how.zero_amax == "keep":
        return history, scale
    amax, rolled = 0.0, list(history)
    for i in range(n):
        entry = history[i + 1] if i < n - 1 else last
        amax = amax if math.isnan(entry) else max(amax, entry)
        rolled[i] = entry if i > 0 else 0.0
    if how.amax == "most_recent":
        amax = last
    if math.isfinite(amax) and amax > 0:
        scaled_max = Fraction(how.format.max) * Fraction(2) ** -how.margin
        scale = min(single(Fraction(single(scaled_max)) / Fraction(amax)), LARGEST)
    return rolled, scale


@settings(max_examples=100, deadline=None)
@given(
    steps=st.lists(st.one_of(magnitudes, st.sampled_from([0.0, math.inf, math.nan, 2.0**-149])), max_size=12),
    length=st.integers(1, 5),
    margin=st.integers(-3, 4),
    amax=st.sampled_from(["max", "most_recent"]),
    zero_amax=st.sampled_from(["keep", "roll"]),
    fmt=st.sampled_from([E4M3, E5M2]),
)
def test_delayed_scales(steps, length, margin, amax, zero_amax, fmt) -> None:
    how = DelayedScaling(format=fmt, history=length, margin=margin, amax=amax, zero_amax=zero_amax)
    past, history, scale = AmaxHistory(how), [0.0] * length, 1.0
    for step in steps:
        past.record(step)
        past.update()
        history[0] = step
        history, scale = stepped(history, scale, how)
        np.testing.assert_array_equal(past.history, history)
        assert past.scale == scale


def test_delayed_scaling_saturates_what_its_history_does_not_know() -> None:
    how = DelayedScaling(format=E4M3, history=2)
    past, operand = AmaxHistory(how), Operand(scaling=how)
    seen = []
    for size in (1.0, 1.0, 4.0, 4.0, 1.0, 1.0, 1.0):
        found = quantized(np.float32([size, 0.25]), operand, 0, history=past, count=True)
        past.update()
        seen.append((found.saturated, past.scale))
    # a step of the larger numbers saturates, and the scale stays small as long as it is remembered
    assert seen == [(0, 448.0), (0, 448.0), (1, 112.0), (0, 112.0), (0, 112.0), (0, 448.0), (0, 448.0)]


def test_several_tensors_of_a_step() -> None:
    """The largest counts."""
    past = AmaxHistory(DelayedScaling(format=E4M3, history=4))
    for amax in (2.0, 7.0, 1.0):
        past.record(amax)
    past.update()
    assert past.scale == 64.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CurrentScaling(format="float8_e8m0fnu"), "signed and have a zero"),
        (lambda: CurrentScaling(format=E4M3, per="column"), "per must be one of 'tensor', 'row'"),
        (lambda: CurrentScaling(format=E4M3, per=0), "positive integer"),
        (lambda: CurrentScaling(format=E4M3, epsilon=-1.0), "epsilon must be finite"),
        (lambda: CurrentScaling(format=E4M3, standing="paper"), "standing must be one of"),
        (lambda: DelayedScaling(format=E4M3, history=0), "history must be at least 1"),
        (lambda: DelayedScaling(format=E4M3, amax="min"), "amax must be one of"),
        (lambda: DelayedScaling(format=E4M3, margin=101), "margin must be"),
        (lambda: quantized([1.0], Operand(scaling=DelayedScaling(format=E4M3)), 0), "history must be an AmaxHistory"),
        (lambda: quantized([0.1], Operand(), 0), "must hold float32 numbers"),
        (
            lambda: quantized([1.0], Operand(scaling=CurrentScaling(format=E4M3), rounding="stochastic"), 0),
            "seed must be",
        ),
    ],
)
def test_what_is_refused(make, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()
