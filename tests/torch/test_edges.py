"""Operators where ranges end: no infinity, NaN or zero that the operator has not, and none without its flag."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import softfloat  # noqa: E402 -- after the skip
from softfloat import Environment, Flags, bits, reference  # noqa: E402
from softfloat.accumulators import exact, fma, pairwise, tensor_core  # noqa: E402
from softfloat.torch import emulate  # noqa: E402
from softfloat.torch.operators import tables  # noqa: E402
from softfloat.torch.operators.plans import inside, planned  # noqa: E402
from softfloat.torch.operators.pointwise import STEPS  # noqa: E402

F = torch.nn.functional
HALF, BRAIN = torch.float16, torch.bfloat16
FORMATS = {HALF: softfloat.float16, BRAIN: softfloat.bfloat16}
BOTH = pytest.mark.parametrize("dtype", [HALF, BRAIN], ids=str)
INF, NAN = math.inf, math.nan


def edges(dtype: Any, special: bool = True) -> Any:
    """Zeros, ones, small integers, the largest and the smallest numbers, and infinities and a NaN."""
    info = torch.finfo(dtype)
    sizes = [0.0, 1.0, 2.0, 3.0, 0.5, 20.0, 25.0, 1e-3, info.max, info.tiny, info.tiny * info.eps]
    found = [sign * x for x in sizes for sign in (1, -1)] + ([INF, -INF, NAN] if special else [])
    return torch.tensor(found, dtype=torch.float64).to(dtype)


def rounded(x: Any, dtype: Any) -> Any:
    """float64 numbers, rounded once to nearest even."""
    codes, _ = bits.encode(x.numpy(), FORMATS[dtype])
    return torch.from_numpy(np.atleast_1d(codes)).view(dtype)


def differing(found: Any, expected: Any) -> Any:
    """Where bits differ, but for those of NaNs."""
    return (found.view(torch.int16) != expected.view(torch.int16)) & ~(found.isnan() & expected.isnan())


# -- elementwise operators at the edges of the range ---------------------------------------------------------------------

UNSIGNED = {"minimum", "maximum", "fmin", "fmax", "logaddexp2"}
"""Operators whose zeros PyTorch gives one sign or the other, by the instructions it takes."""


@BOTH
@pytest.mark.parametrize("name", [name for name, (count, _) in STEPS.items() if count < 3])
def test_edges_of_steps(name: str, dtype: Any) -> None:
    """Against PyTorch's float64, rounded once."""
    x = edges(dtype)
    pair = [x] if STEPS[name][0] == 1 else [x.repeat_interleave(len(x)), x.repeat(len(x))]
    operator = getattr(torch, name)
    with emulate():
        found = operator(*pair)
    expected = rounded(operator(*(x.double() for x in pair)), dtype)
    wrong = differing(found, expected)
    if name in UNSIGNED:
        wrong &= (found != 0) | (expected.abs() > 1e-15)
    assert not wrong.any(), [(*(x[i].item() for x in pair), found[i].item()) for i in wrong.nonzero()[:4]]


SEVERAL = {
    "add": (2, {"alpha": 3}),
    "sub": (2, {"alpha": 3}),
    "rsub": (2, {"alpha": 3}),
    "addcmul": (3, {}),
    "addcmul value": (3, {"value": 3}),
    "addcdiv": (3, {}),
    "addcdiv value": (3, {"value": 3}),
    "lerp": (3, {}),
}
"""Operators with a result in between: how many of their arguments are operands, and the others."""


class Fractions:
    """The steps of one operator on one element, on exact fractions; `flags` are those of all of them."""

    def __init__(self, fmt: softfloat.Format, options: dict[str, Any]) -> None:
        self.fmt, self.options, self.flags = fmt, options, 0

    def step(self, function: str, *operands: int, source: Any = None, output: Any = None) -> int:
        code, raised = getattr(reference, function)(
            *operands, source or self.fmt, out_format=output or self.fmt, **self.options
        )
        self.flags |= raised
        return int(code)

    def between(self, function: str, *operands: int) -> int:
        return self.step(function, *operands, source="float32", output="float32")

    def wide(self, x: int) -> int:
        code, raised = reference.convert(x, self.fmt, "float32", **self.options)
        self.flags |= raised
        return int(code)

    def result(self, name: str, x: int, y: int, z: int, three: int) -> int:
        minus = three | 1 << (self.fmt.bits - 1)
        one = softfloat.float32.one_code
        a, b, c, value = (self.wide(v) for v in (x, y, z, three))
        match name:
            case "add":
                return self.step("fma", three, y, x)
            case "sub":
                return self.step("fma", minus, y, x)
            case "rsub":
                return self.step("fma", minus, x, y)
            case "addcmul":
                return self.step("fma", y, z, x)
            case "addcmul value":
                return self.step("fma", self.between("mul", value, b), c, a, source="float32")
            case "addcdiv":
                return self.step("add", a, self.between("div", b, c), source="float32")
            case "addcdiv value":
                quotient = self.between("div", self.between("mul", value, b), c)
                return self.step("add", a, quotient, source="float32")
        near = abs(float(bits.decode(z, self.fmt))) < 0.5
        factor = c if near else self.between("sub", c, one)
        return self.step("fma", factor, self.between("sub", b, a), a if near else b, source="float32")


@BOTH
@pytest.mark.parametrize("rounding", ["nearest_even", "toward_positive"])
@pytest.mark.parametrize("name", SEVERAL)
def test_edges_of_several_steps(name: str, dtype: Any, rounding: str) -> None:
    """What comes in between is float32, the last step exact until it is rounded."""
    count, more = SEVERAL[name]
    random = np.random.default_rng(5)
    x = edges(dtype)[2::3].view(torch.uint16).numpy()
    triples = np.concatenate([[*itertools.product(x, x, x)], random.integers(0, 1 << 16, (300, 3)), NEAR[dtype]])
    triples = triples.astype(np.uint16)[~np.any(signalling(triples, FORMATS[dtype]), axis=1)]
    tensors = [torch.from_numpy(column.copy()).view(dtype) for column in triples.T[:count]]
    environment = Environment(rounding=rounding)
    with emulate(environment):
        found = getattr(torch, name.partition(" ")[0])(*tensors, **more)
    three, _ = reference.encode(3.0, FORMATS[dtype])
    expected, flags = [], 0
    for x, y, z in triples.tolist():
        oracle = Fractions(FORMATS[dtype], {"rounding": rounding})
        expected.append(oracle.result(name, x, y, z, three))
        flags |= oracle.flags
    wrong = differing(found, torch.tensor(expected, dtype=torch.int32).to(torch.uint16).view(dtype))
    assert not wrong.any(), [(triples[i].tolist(), found[i].item(), hex(expected[i])) for i in wrong.nonzero()[:4]]
    assert environment.status.flags == Flags(flags)


def signalling(codes: Any, fmt: softfloat.Format) -> Any:
    """PyTorch makes these NaNs quiet, or not, as it moves them."""
    return bits.isnan(codes.astype(np.uint16), fmt) & (codes & (1 << (fmt.mantissa_bits - 1)) == 0)


NEAR = {
    HALF: np.array([(0xFB53, 0x7B53, 0x3800), (0x63D0, 0x0010, 0x3C00), (0xFB53, 0x5CB0, 0x5CB0)]),
    BRAIN: np.array([(0xFF00, 0x7F00, 0x3F00), (0x447A, 0x3580, 0x3F80), (0xFF00, 0x5F00, 0x5F00)]),
}
"""Triples whose difference, or product, is beyond the format, or is not all of float32's, and whose result is within it."""


def test_what_comes_in_between_leaves_the_range() -> None:
    """-60000 to 60000 are 120000 apart."""
    start, end, half = (torch.tensor([x], dtype=HALF) for x in (-60000.0, 60000.0, 0.5))
    environment = Environment()

    def written(function: Callable[[Any], Any]) -> Any:
        target = start.clone()
        function(target)
        return target

    with emulate(environment):
        found = [
            torch.lerp(start, end, 0.5),
            torch.lerp(start, end, half),
            torch.lerp(start, end, half, out=torch.empty_like(start)),
            written(lambda x: x.lerp_(end, 0.5)),
            torch._foreach_lerp([start], [end], 0.5)[0],
            torch._foreach_lerp([start], [end], [half])[0],
            written(lambda x: torch._foreach_lerp_([x], [end], 0.5)),
            torch.add(start, end / 2, alpha=2),
            written(lambda x: x.add_(end / 2, alpha=2)),
            torch._foreach_add([start], [end / 2], alpha=2)[0],
            torch.sub(end, end / 2, alpha=2),
            torch.rsub(end / 2, end, alpha=2),
            torch.addcmul(start, end, half, value=2),
            torch.addcmul(start, end / 2, half * 4),
            written(lambda x: torch._foreach_addcmul_([x], [end], [half], 2.0)),
            torch.addcdiv(start, end, half, value=0.5),
            written(lambda x: x.addcdiv_(end, half, value=0.5)),
            written(lambda x: torch._foreach_addcdiv_([x], [end], [half], [0.5])),
        ]
        tiny, large = (torch.tensor([2.0**k], dtype=HALF) for k in (-20, 10))
        vanishing = torch.addcmul(tiny, tiny, large, value=2.0**-10), torch.addcmul(tiny, tiny, tiny, value=2.0**10)
    assert [x.view(torch.int16).tolist() for x in found] == [[0]] * len(found)
    assert [x.item() for x in vanishing] == [2.0**-19, 2.0**-20]
    assert environment.status.flags == Flags.INEXACT | Flags.UNDERFLOW  # 2^-20 + 2^-30


@BOTH
@pytest.mark.parametrize("name", SEVERAL)
def test_several_steps_are_pytorchs(name: str, dtype: Any) -> None:
    """PyTorch rounds a float32 once more: of numbers all over half's range one in a hundred may differ, by a unit in the last place."""
    count, more = SEVERAL[name]
    random = np.random.default_rng(7)
    size = random.uniform(-14, 15, (3, 4000))
    numbers = random.choice([-1, 1], size.shape) * 2**size
    numbers[2] = random.uniform(-2, 2, 4000) if name == "lerp" else numbers[2]
    tensors = [torch.from_numpy(x).to(dtype) for x in numbers[:count]]
    function = getattr(torch, name.partition(" ")[0])
    native = function(*tensors, **more)
    with emulate():
        found = function(*tensors, **more)
    wrong = differing(found, native)
    assert wrong.sum() <= 40
    steps = (found.view(torch.int16).int() - native.view(torch.int16).int()).abs()
    assert (steps[wrong] <= 1).all()


@BOTH
@pytest.mark.parametrize("power", [HALF, torch.int32, torch.int64], ids=str)
def test_powers_of_two_are_one_scaling(dtype: Any, power: Any) -> None:
    """2^20 and 2^-25 are no half numbers, and 2^257 needs more digits than bfloat16 has."""
    x = edges(dtype)
    power = dtype if power.is_floating_point else power
    y = torch.tensor([20.0, -25.0, 0.0, 1.0, -140.0, 140.0, 257.0, -257.0, 2000.0, -2000.0]).to(power)
    a, b = x.repeat_interleave(len(y)), y.repeat(len(x))
    powers = np.clip(b.double().numpy(), -500, 500).astype(np.int32)  # beyond both formats, within float64
    expected = np.ldexp(a.double().numpy(), powers)
    for rounding in ("nearest_even", "toward_positive", "toward_zero"):
        environment = Environment(rounding=rounding)
        codes, flags = bits.encode(expected, FORMATS[dtype], rounding=rounding)
        with emulate(environment):
            found = [torch.ldexp(a, b), a.clone().ldexp_(b), torch.ldexp(a, b, out=torch.empty_like(a))]
        for each in found:
            assert not differing(each, torch.from_numpy(codes).view(dtype)).any()
        assert environment.status.flags == Flags(int(np.bitwise_or.reduce(flags)))


def test_ldexp_of_half() -> None:
    x, y = (torch.tensor(v, dtype=HALF) for v in ([2.0**-10, 2.0, 0.0, 1.5, 0.0], [20.0, -25.0, 20.0, 0.5, INF]))
    environment = Environment()
    with emulate(environment):
        assert torch.ldexp(x, y)[:4].tolist() == [1024.0, 2.0**-24, 0.0, 2.12109375]
    assert environment.status.flags == Flags.INEXACT | Flags.INVALID  # 0 * 2^inf


@BOTH
@pytest.mark.parametrize("operator", [torch.remainder, torch.fmod, torch.floor_divide], ids=lambda x: x.__name__)
def test_signs_of_remainders_are_pytorchs(operator: Any, dtype: Any) -> None:
    """Zeros too: remainder(0, -3) is +0, remainder(-3, 3) is -0."""
    x = edges(dtype)
    a, b = x.repeat_interleave(len(x)), x.repeat(len(x))
    with emulate():
        found, numbers = operator(a, b), [operator(x, 3.0), operator(x, -3.0)]
        second = torch.remainder(-3.0, x) if operator is torch.remainder else None
    native = rounded(operator(a.double(), b.double()), dtype)
    assert not differing(found, native).any()
    for each, number in zip(numbers, (3.0, -3.0), strict=True):
        assert not differing(each, rounded(operator(x.double(), number), dtype)).any()
    if second is not None:
        assert not differing(second, rounded(torch.remainder(-3.0, x.double()), dtype)).any()


UNARY = [
    name
    for name in sorted(tables.INSIDE_DOUBLE - {"glu"})
    for operator in (getattr(getattr(torch.ops.aten, name, None), "default", None),)
    if operator and [str(x.type) for x in operator._schema.arguments if not x.has_default_value()] == ["Tensor"]
]


@BOTH
@pytest.mark.parametrize("name", UNARY)
def test_edges_of_functions_in_float64(name: str, dtype: Any) -> None:
    """One rounding of float64, and the flags of IEEE 754, an element at a time."""
    operator, growing = getattr(torch.ops.aten, name).default, {"i0", "special_i1", "special_erfcx"}
    for x in edges(dtype)[:, None].split(1):
        environment = Environment()
        with emulate(environment):
            found = operator(x)
        wide = operator(x.double())
        for ours, theirs in zip(*((v,) if isinstance(v, torch.Tensor) else v for v in (found, wide)), strict=True):
            assert not differing(ours, rounded(theirs, dtype)).any(), x
            made = environment.status.flags & (Flags.INVALID | Flags.DIVBYZERO | Flags.OVERFLOW)
            if theirs.isnan().any() and not x.isnan().any():
                assert made == Flags.INVALID, x
            elif ours.isinf().any() and x.isfinite().all():
                assert made == (Flags.DIVBYZERO if theirs.isinf().any() and name not in growing else Flags.OVERFLOW), x
            else:
                assert not made, x


def test_a_product_beyond_the_range_may_be_scaled_into_it() -> None:
    """As attention is scaled: 16 * 100 * 100 overflows half, an eighth of it does not."""
    a, b, c = (torch.full((1, *shape), 100.0, dtype=HALF) for shape in ((2, 16), (16, 2), (2, 2)))
    for quantize in (None, "mxfp8"):
        environment = Environment()
        with emulate(environment, quantize=quantize):
            found = [torch.baddbmm(c, a, b, alpha=0.125), torch.baddbmm(c, a, b, alpha=0.125, beta=0)]
        assert not environment.status.flags & Flags.OVERFLOW
        if quantize is None:
            assert [x.unique().tolist() for x in found] == [[20096.0], [20000.0]]
        assert not any(x.isinf().any() for x in found)


def test_an_addend_beyond_the_range_may_be_taken_back_into_it() -> None:
    """2 * 40000 overflows half, less 16 * 50 * 50 it does not; nor does that in between of what is scaled, too."""
    a, b, c = (
        torch.full((1, *shape), x, dtype=HALF) for shape, x in (((2, 16), -50.0), ((16, 2), 50.0), ((2, 2), 4e4))
    )
    for quantize in (None, "mxfp8"):
        environment = Environment()
        with emulate(environment, quantize=quantize):
            found = [
                torch.baddbmm(c, a, b, beta=2),
                torch.addmm(c[0], a[0], b[0], beta=2),
                torch.baddbmm(c, a, b, beta=2, alpha=2),
            ]
        assert not environment.status.flags & Flags.OVERFLOW
        if quantize is None:
            assert [x.unique().tolist() for x in found] == [[40000.0], [40000.0], [0.0]]
        assert not any(x.isinf().any() for x in found)


# -- moves ---------------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("name", "abs neg positive relu relu6 sign sgn floor ceil trunc round frac nan_to_num".split())  # noqa: SIM905
def test_elementwise_moves_are_exact(name: str, dtype: Any) -> None:
    """Of every code: what PyTorch gives is what float64 gives, and needs no rounding."""
    x = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16).view(dtype)
    function = getattr(torch, name, None) or getattr(F, name)
    with emulate():
        found = function(x)
    wide = function(x.double())
    if name == "nan_to_num":
        wide = wide.clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max)
    assert torch.equal(found.double().nan_to_num(7), wide.nan_to_num(7))


@BOTH
@pytest.mark.parametrize("rounding", ["nearest_even", "toward_negative"])
@pytest.mark.parametrize("decimals", [-39, -5, -3, -1, 0, 1, 2, 5, 30, 400])
def test_rounding_to_decimals(decimals: int, rounding: str, dtype: Any) -> None:
    """The nearest multiple of 10^-decimals, rounded as the environment says."""
    x = torch.cat([edges(dtype), torch.tensor([2.5, 12.5, 0.125, 65504.0, -250.0, 1234.0], dtype=dtype)])
    environment = Environment(rounding=rounding)
    with emulate(environment):
        found = [torch.round(x, decimals=decimals), x.clone().round_(decimals=decimals)]
        found.append(torch.round(x, decimals=decimals, out=torch.empty_like(x)))

    def exactly(v: float) -> float:
        if not math.isfinite(v):
            return v
        unit = Fraction(10) ** -decimals
        return math.copysign(float(round(Fraction(v) / unit) * unit), v)

    codes, flags = bits.encode(np.array([exactly(v) for v in x.tolist()]), FORMATS[dtype], rounding=rounding)
    for each in found:
        assert not differing(each, torch.from_numpy(codes).view(dtype)).any()
    assert environment.status.flags == Flags(int(np.bitwise_or.reduce(flags)))


def test_rounding_to_decimals_overflows() -> None:
    x = torch.tensor([65504.0], dtype=HALF)
    environment = Environment(overflow="saturate")
    with emulate(environment):
        assert torch.round(x, decimals=-3).item() == 65504
    assert environment.status.flags == Flags.OVERFLOW | Flags.INEXACT


ROUNDED_ON_THE_WAY: dict[str, Callable[[Any, Any], Any]] = {
    "slice_scatter": torch.slice_scatter,
    "select_scatter": lambda h, s: torch.select_scatter(h, s[0], 0, 0),
    "diagonal_scatter": lambda h, s: torch.diagonal_scatter(h, s.diagonal()),
    "as_strided_scatter": lambda h, s: torch.as_strided_scatter(h, s, (2, 2), (2, 1)),
    "_unsafe_masked_index": lambda h, s: torch.ops.aten._unsafe_masked_index(h, h != 0, [s.long() * 0] * 2, 1.0001),
    "block_diag": lambda h, s: torch.block_diag(h, s.long() * 2049).to(h.dtype) / 2048,
    "copysign": lambda h, s: torch.copysign(s.long() * 2049, h) / 2048,
    "nextafter": lambda h, s: torch.nextafter(s.long() * 2049, h) / 2048,
    "maximum": lambda h, s: torch.max(h, s.long() * 2049) / 2048,
    "clamp": lambda h, s: h.clamp(min=1.0001),
    "split_with_sizes_copy": lambda h, s: (torch.split_with_sizes_copy(s, [1, 1], out=[*h.split(1)]), h)[1],
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDED_ON_THE_WAY)
def test_what_moves_into_a_low_dtype_is_rounded(name: str) -> None:
    """1.0001 becomes the next number above 1."""
    h, s = torch.zeros(2, 2, dtype=HALF), torch.full((2, 2), 1.0001)
    environment = Environment(rounding="toward_positive")
    with emulate(environment):
        found = ROUNDED_ON_THE_WAY[name](h, s)
    assert found.dtype == HALF
    assert found.max() >= (1.0 if name == "nextafter" else 1 + 2**-10)
    assert "INEXACT" in environment.status


# -- flags of what PyTorch computes --------------------------------------------------------------------------------------


def half(*x: Any) -> Any:
    return torch.tensor(x, dtype=HALF)


def brain(*x: float) -> Any:
    return torch.tensor(x, dtype=BRAIN)


NONE, INVALID, DIVBYZERO, OVERFLOW = Flags(0), Flags.INVALID, Flags.DIVBYZERO, Flags.OVERFLOW
TOLD: dict[str, tuple[Callable[[], Any], Flags]] = {
    "softmax": (lambda: half(-INF, -INF).softmax(0), INVALID),
    "softmax, one row": (lambda: half([-INF, -INF], [0, 0]).softmax(1), INVALID),
    "softmax, NaN": (lambda: half([NAN, 0], [0, 0]).softmax(1), NONE),
    "softmax, NaN and other": (lambda: half([NAN, 0], [-INF, -INF]).softmax(1), INVALID),
    "softmax, mask": (lambda: half(0, -INF).softmax(0), NONE),
    "log_softmax, mask": (lambda: half(0, -INF).log_softmax(0), NONE),
    "rsqrt": (lambda: half(0).rsqrt(), DIVBYZERO),
    "rsqrt below": (lambda: half(-1).rsqrt(), INVALID),
    "rsqrt in place": (lambda: half(0).rsqrt_(), DIVBYZERO),
    "rsqrt out": (lambda: torch.rsqrt(half(0), out=half(NAN)), DIVBYZERO),
    "silu": (lambda: F.silu(half(-INF)), INVALID),
    "logit": (lambda: half(0, 1).logit(), DIVBYZERO),
    "logit above": (lambda: half(2).logit(), INVALID),
    "erfinv": (lambda: half(1).erfinv(), DIVBYZERO),
    "lgamma": (lambda: half(0).lgamma(), DIVBYZERO),
    "lgamma, large": (lambda: half(60000).lgamma(), OVERFLOW),
    "digamma": (lambda: half(0).digamma(), DIVBYZERO),
    "polygamma": (lambda: torch.polygamma(1, half(0)), DIVBYZERO),
    "polygamma, high": (lambda: torch.polygamma(9, brain(1e-38)), OVERFLOW),
    "xlogy": (lambda: torch.xlogy(half(1), half(0)), DIVBYZERO),
    "ndtri": (lambda: torch.special.ndtri(half(0)), DIVBYZERO),
    "i0": (lambda: torch.i0(half(1000)), OVERFLOW),
    "erfcx": (lambda: torch.special.erfcx(half(-100)), OVERFLOW),
    "trunc": (lambda: torch.div(half(1), half(0), rounding_mode="trunc"), DIVBYZERO),
    "trunc, invalid": (lambda: torch.div(half(0), half(0), rounding_mode="trunc"), INVALID),
    "mean": (lambda: half(INF, -INF).mean(), INVALID),
    "mean of an infinity": (lambda: half(INF, 0).mean(), NONE),
    "mean of nothing": (lambda: half().mean(), INVALID),
    "mean, large": (lambda: brain(3e38, 3e38).mean(), OVERFLOW),
    "var": (lambda: half(1).var(), INVALID),
    "var, correction": (lambda: half(1, 2).var(correction=2), DIVBYZERO),
    "var, large": (lambda: brain(1e38, -1e38).var(), OVERFLOW),
    "logsumexp": (lambda: half(-INF, -INF).logsumexp(0), NONE),
    "cumsum": (lambda: half(INF, -INF).cumsum(0), INVALID),
    "prod": (lambda: brain(1e38, 10).prod(), OVERFLOW),
    "norm": (lambda: brain(1e38, 1e38).norm(), OVERFLOW),
    "layer norm": (lambda: F.layer_norm(half(INF, 1), (2,)), INVALID),
    "batch norm": (lambda: F.batch_norm(half([INF], [1]), half(0), half(1), training=True), INVALID),
    "mse": (lambda: F.mse_loss(half(INF), half(INF)), INVALID),
    "index_add": (lambda: half(INF).index_add(0, torch.tensor([0]), half(-INF)), INVALID),
    "index_put": (lambda: half(INF).index_put((torch.tensor([0]),), half(-INF), accumulate=True), INVALID),
    "scatter_add": (lambda: half(INF).scatter_add(0, torch.tensor([0]), half(-INF)), INVALID),
    "foreach": (lambda: torch._foreach_rsqrt([half(0)]), DIVBYZERO),
    "logspace": (lambda: torch.logspace(0, 1000, 2, dtype=HALF), OVERFLOW),
    "dropout": (lambda: F.dropout(half(*[INF] * 64)), INVALID),
    "dropout, NaN": (lambda: F.dropout(half(*[NAN] * 64)), NONE),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", TOLD)
def test_exceptions_of_what_pytorch_computes(name: str) -> None:
    function, flags = TOLD[name]
    environment = Environment()
    with emulate(environment):
        function()
    assert environment.status.flags & (INVALID | DIVBYZERO | OVERFLOW) == flags


@pytest.mark.parametrize("stable", [True, False])
def test_exceptions_of_norms(stable: bool) -> None:
    for x, flags in (
        (half([INF, 1, 2]), INVALID),
        (half([NAN, 1, 2]), NONE),
        (half([NAN, 1, 2], [INF, 1, 2]), INVALID),
    ):
        environment = Environment()
        with emulate(environment, use_stable_statistics=stable):
            F.layer_norm(x, (3,))
        assert environment.status.flags & INVALID == flags


def test_an_overflow_on_the_way_is_one_of_the_result() -> None:
    environment = Environment(overflow="saturate", traps="INVALID")
    with emulate(environment):
        assert torch.i0(half(1000)).item() == 65504
        with pytest.raises(
            softfloat.torch.OperatorTrap, match=r"INVALID raised by encode\(nan\) at index \(1, 0\), in aten._softmax"
        ):
            half([0, NAN], [-INF, -INF]).softmax(1)


def test_all_that_pytorch_computes_goes_through_one_rule() -> None:
    """Of every overload of every operator of the tables."""
    for name in {*tables.INSIDE_DOUBLE, *tables.INSIDE_SINGLE, *tables.NORMS}:
        for packet in (getattr(torch.ops.aten, x) for x in (name, f"{name}_") if hasattr(torch.ops.aten, x)):
            for overload in packet.overloads():
                plan = planned(getattr(packet, overload))
                stable = getattr(plan, "keywords", {}).get("stable", plan)
                assert getattr(stable, "func", None) is inside, (name, overload)


@pytest.mark.parametrize("fmt", [softfloat.float64, softfloat.Format("e11m40", 11, 40)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_wide_formats_sum_halves_and_hold_no_tensors(fmt: softfloat.Format, dtype: torch.dtype) -> None:
    """Bits of products under accumulators of wide formats; tensors of float64 stay PyTorch's; who is asked to make them a wide format says no."""
    torch.manual_seed(0)
    a, b = (torch.randn(5, 70) * 9).to(dtype), torch.randn(70, 4).to(dtype)
    name = str(dtype).removeprefix("torch.")
    codes = [x.view(torch.uint16).numpy() for x in (a, b)]
    for how in (fma(fmt), exact(fmt), pairwise(fmt)):
        for given in ({}, {"rounding": "stochastic", "seed": 4}):
            environment = Environment(**given)
            with emulate(environment, matmul=how):
                found, alone = a @ b, a.double() @ b.double()
            expected, flags = bits.matmul(*codes, name, how, out_format=name, flags="any", **given)
            assert (found.view(torch.uint16).numpy() == expected).all()
            assert environment.status.flags == flags
            assert torch.equal(alone, a.double() @ b.double())
    with pytest.raises(
        ValueError, match=r"^format: gradient_statistics takes formats of at most 8.*accepted: a narrower"
    ):
        softfloat.torch.gradient_statistics([a], format=fmt)
    with pytest.raises(ValueError, match=r"^element: a block format takes formats of at most 8.*accepted: a narrower"):
        softfloat.BlockFormat("mine", element=fmt, scale="float8_e8m0fnu", block=32)
    with pytest.raises((ValueError, TypeError), match=r"^quantize must be "):
        emulate(quantize=fmt)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"fmt must be 'float16' for tensor_core.*got"):
        bits.matmul(np.ones((2, 4), np.uint64), np.ones((4, 2), np.uint64), fmt, tensor_core("H100"))
