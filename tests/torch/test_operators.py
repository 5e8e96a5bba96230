"""Each operator against a computation of its own: float64 and `softfloat.reference`, one rounding for each documented step."""

from __future__ import annotations

import asyncio
import copy
import itertools
import math
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402 -- after the skip
from torch.export import export  # noqa: E402 -- after the skip
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402 -- after the skip

import softfloat  # noqa: E402 -- after the skip
from softfloat import accumulators, bits, reference  # noqa: E402
from softfloat.torch import OperatorTrap, UnemulatedOperatorError, emulate  # noqa: E402

F = torch.nn.functional
HALF, BRAIN = torch.float16, torch.bfloat16
FORMATS = {HALF: softfloat.float16, BRAIN: softfloat.bfloat16}
SETTINGS = {
    "nearest": {},
    "down": {"rounding": "toward_negative", "overflow": "saturate"},
    "stochastic": {"rounding": "stochastic", "seed": 7},
}


def codes(x: Any) -> np.ndarray:
    return x.detach().contiguous().view(torch.uint16).numpy()


def same(a: Any, b: Any) -> bool:
    """The same bits, in the same shape and dtype."""
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and torch.equal(a.contiguous().view(torch.int16), b.contiguous().view(torch.int16))
    )


class Oracle:
    """Rounds float64 numbers as the steps of an emulation do, one stream after the other."""

    def __init__(self, fmt: softfloat.Format, settings: dict[str, Any]) -> None:
        self.fmt, self.settings, self.streams = fmt, settings, itertools.count()

    def wide(self, values: Any) -> np.ndarray:
        """One step in float32."""
        return self(values, softfloat.float32)

    def widened(self, values: Any) -> Any:
        """A step that makes float32 numbers of the format's."""
        next(self.streams)
        return values

    def __call__(self, values: Any, fmt: softfloat.Format | None = None) -> np.ndarray:
        """One step."""
        fmt = fmt or self.fmt
        values = np.asarray(values, np.float64)
        stream, options = next(self.streams), dict(self.settings)
        seed = options.pop("seed", None)
        drawn = (
            np.zeros(values.shape, np.uint64)
            if seed is None
            else bits.random_bits(values.shape, seed=seed, stream=stream)
        )
        result = []
        for x, r in zip(values.ravel(), np.ravel(drawn), strict=True):
            more = {} if seed is None else {"random_bits": int(r), "sr_bits": 52}
            result.append(reference.encode(float(x), fmt, **options, **more)[0])
        return np.asarray(bits.decode(np.array(result).reshape(values.shape), fmt))

    def number(self, x: float) -> float:
        """A Python number: never at random."""
        options = {k: v for k, v in self.settings.items() if k != "seed"}
        if options.get("rounding") == "stochastic":
            options["rounding"] = "nearest_even"
        return float(bits.decode(reference.encode(x, self.fmt, **options)[0], self.fmt))


def addcmul(R: Oracle, a: Any, b: Any, c: Any, value: float) -> np.ndarray:
    product = R.wide(value * b)
    return R(a + product * R.widened(R.widened(c)))


def addcdiv(R: Oracle, a: Any, b: Any, c: Any, value: float) -> np.ndarray:
    product = R.wide(value * b)
    return R(a + R.widened(R.wide(product / R.widened(c))))


def lerp(R: Oracle, start: Any, end: Any, weight: Any) -> np.ndarray:
    distance = R.wide(end - start)
    near = np.abs(weight) < 0.5
    factor = R.wide(R.widened(weight) - np.where(near, 0, 1))
    return R(R.widened(np.where(near, start, end)) + factor * distance)


erf, erfc = np.vectorize(math.erf), np.vectorize(math.erfc)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# name: (PyTorch's, ours); operands x, y of either sign, u in (0.1, 0.9); R rounds, R.number rounds numbers
TABLE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (lambda x, y, u: x + y, lambda R, x, y, u: R(x + y)),
    "add number": (lambda x, y, u: x + 0.1, lambda R, x, y, u: R(x + R.number(0.1))),
    "add alpha": (
        lambda x, y, u: torch.add(x, y, alpha=0.3),
        lambda R, x, y, u: R(x + y * R.number(0.3)),
    ),
    "sub": (lambda x, y, u: x - y, lambda R, x, y, u: R(x - y)),
    "sub alpha": (lambda x, y, u: torch.sub(x, y, alpha=3), lambda R, x, y, u: R(x - y * 3)),
    "rsub": (lambda x, y, u: 0.1 - x, lambda R, x, y, u: R(R.number(0.1) - x)),
    "mul": (lambda x, y, u: x * y, lambda R, x, y, u: R(x * y)),
    "mul number": (lambda x, y, u: x * 0.7, lambda R, x, y, u: R(x * R.number(0.7))),
    "mul zero-dimensional": (
        lambda x, y, u: x * torch.tensor(0.7),
        lambda R, x, y, u: (lambda s: R(x * s))(R(np.float64(np.float32(0.7)))),
    ),
    "mul integers": (lambda x, y, u: x * torch.arange(5), lambda R, x, y, u: (lambda s: R(x * s))(R(np.arange(5)))),
    "mul booleans": (lambda x, y, u: x * (y > 0), lambda R, x, y, u: (lambda s: R(x * s))(R(y > 0))),
    "div": (lambda x, y, u: x / y, lambda R, x, y, u: R(x / y)),
    "div number": (lambda x, y, u: x / 3, lambda R, x, y, u: R(x / 3)),
    "reciprocal": (lambda x, y, u: x.reciprocal(), lambda R, x, y, u: R(1 / x)),
    "number over": (lambda x, y, u: 2 / x, lambda R, x, y, u: R(R(1 / x) * 2)),
    "square": (lambda x, y, u: x.square(), lambda R, x, y, u: R(x * x)),
    "pow number": (lambda x, y, u: u**1.5, lambda R, x, y, u: R(u**1.5)),
    "pow": (lambda x, y, u: u**y, lambda R, x, y, u: R(u**y)),
    "number pow": (lambda x, y, u: 3**x, lambda R, x, y, u: R(3.0**x)),
    "floor divide": (lambda x, y, u: x // y, lambda R, x, y, u: R(np.floor(x / y))),
    "floor mode": (lambda x, y, u: torch.div(x, u, rounding_mode="floor"), lambda R, x, y, u: R(np.floor(x / u))),
    "trunc mode": (lambda x, y, u: torch.div(x, u, rounding_mode="trunc"), lambda R, x, y, u: R(np.trunc(x / u))),
    "remainder": (lambda x, y, u: x % y, lambda R, x, y, u: R(np.mod(x, y))),
    "fmod": (lambda x, y, u: torch.fmod(x, y), lambda R, x, y, u: R(np.fmod(x, y))),
    "maximum": (lambda x, y, u: torch.maximum(x, y), lambda R, x, y, u: R(np.maximum(x, y))),
    "fmin": (lambda x, y, u: torch.fmin(x, y), lambda R, x, y, u: R(np.minimum(x, y))),
    "atan2": (lambda x, y, u: torch.atan2(x, y), lambda R, x, y, u: R(np.arctan2(x, y))),
    "hypot": (lambda x, y, u: torch.hypot(x, y), lambda R, x, y, u: R(np.hypot(x, y))),
    "logaddexp": (lambda x, y, u: torch.logaddexp(x, y), lambda R, x, y, u: R(np.logaddexp(x, y))),
    "logaddexp2": (lambda x, y, u: torch.logaddexp2(x, y), lambda R, x, y, u: R(np.logaddexp2(x, y))),
    "ldexp": (lambda x, y, u: torch.ldexp(x, u), lambda R, x, y, u: R(x * 2**u)),
    "acosh": (lambda x, y, u: (u + 1).acosh(), lambda R, x, y, u: R(np.arccosh(R(u + 1)))),
    "log": (lambda x, y, u: u.log(), lambda R, x, y, u: R(np.log(u))),
    "addcmul": (
        lambda x, y, u: torch.addcmul(x, y, u, value=0.1),
        lambda R, x, y, u: addcmul(R, x, y, u, R.number(0.1)),
    ),
    "addcmul one": (lambda x, y, u: torch.addcmul(x, y, u), lambda R, x, y, u: R(x + y * u)),
    "addcdiv": (
        lambda x, y, u: torch.addcdiv(x, y, u, value=-0.01),
        lambda R, x, y, u: addcdiv(R, x, y, u, R.number(-0.01)),
    ),
    "lerp": (lambda x, y, u: torch.lerp(x, y, 0.1), lambda R, x, y, u: lerp(R, x, y, R.number(0.1))),
    "lerp tensor": (lambda x, y, u: torch.lerp(x, y, u), lambda R, x, y, u: lerp(R, x, y, u)),
    # inside float64
    "sigmoid": (lambda x, y, u: x.sigmoid(), lambda R, x, y, u: R(sigmoid(x))),
    "sigmoid backward": (
        lambda x, y, u: torch.ops.aten.sigmoid_backward(x, u),
        lambda R, x, y, u: R(x * (1 - u) * u),
    ),
    "tanh backward": (lambda x, y, u: torch.ops.aten.tanh_backward(x, u), lambda R, x, y, u: R(x * (1 - u * u))),
    "gelu": (lambda x, y, u: F.gelu(x), lambda R, x, y, u: R(x * 0.5 * (1 + erf(x * math.sqrt(0.5))))),
    "silu": (lambda x, y, u: F.silu(x), lambda R, x, y, u: R(x / (1 + np.exp(-x)))),
    "softplus": (lambda x, y, u: F.softplus(x), lambda R, x, y, u: R(np.log1p(np.exp(x)))),
    "elu": (lambda x, y, u: F.elu(x), lambda R, x, y, u: R(np.where(x > 0, x, np.expm1(x)))),
    "leaky relu": (lambda x, y, u: F.leaky_relu(x, 0.01), lambda R, x, y, u: R(np.where(x > 0, x, x * 0.01))),
    "hardswish": (lambda x, y, u: F.hardswish(x), lambda R, x, y, u: R(x * np.clip(x + 3, 0, 6) / 6)),
    "rsqrt": (lambda x, y, u: u.rsqrt(), lambda R, x, y, u: R(1 / np.sqrt(u))),
    "erfc": (lambda x, y, u: x.erfc(), lambda R, x, y, u: R(erfc(x))),
    "logit": (lambda x, y, u: u.logit(), lambda R, x, y, u: R(np.log(u / (1 - u)))),
    "glu": (
        lambda x, y, u: F.glu(x[:, :4]),
        lambda R, x, y, u: R(x[:, :2] * sigmoid(x[:, 2:4])),
    ),
    # casts
    "from float32": (
        lambda x, y, u: (x.float() * 1.0001 + 0.1).to(x.dtype),
        lambda R, x, y, u: R(x.astype(np.float32) * np.float32(1.0001) + np.float32(0.1)),
    ),
    "from integers": (lambda x, y, u: (torch.arange(5) * 1001).to(x.dtype), lambda R, x, y, u: R(np.arange(5) * 1001)),
    "arange": (
        lambda x, y, u: torch.arange(0, 1, 0.1, dtype=x.dtype),
        lambda R, x, y, u: R(np.arange(10) * 0.1),
    ),
    "full": (
        lambda x, y, u: torch.full((3,), 0.1, dtype=x.dtype),
        lambda R, x, y, u: np.full(3, R.number(0.1)),
    ),
    "fill": (lambda x, y, u: x.clone().fill_(0.1), lambda R, x, y, u: np.full_like(x, R.number(0.1))),
    "masked fill": (lambda x, y, u: x.masked_fill(y > 0, 0.1), lambda R, x, y, u: np.where(y > 0, R.number(0.1), x)),
    "clamp": (lambda x, y, u: x.clamp(-0.3, 0.1), lambda R, x, y, u: np.clip(x, R.number(-0.3), R.number(0.1))),
    "where": (lambda x, y, u: torch.where(y > 0, x, 0.1), lambda R, x, y, u: np.where(y > 0, x, R.number(0.1))),
}  # fmt: skip
for _name in "exp exp2 expm1 log1p sin cos tan sinh cosh tanh asinh sqrt log2 log10 deg2rad".split():  # noqa: SIM905
    _numpy = getattr(np, {"asinh": "arcsinh"}.get(_name, _name))
    TABLE[_name] = lambda x, y, u, n=_name: getattr(torch, n)(u), lambda R, x, y, u, n=_numpy: R(n(u))
for _name in ("asin", "acos", "atan", "atanh"):
    _numpy = getattr(np, "arc" + _name[1:])
    TABLE[_name] = lambda x, y, u, n=_name: getattr(torch, n)(u), lambda R, x, y, u, n=_numpy: R(n(u))


def operands(dtype: Any) -> list[Any]:
    random = np.random.default_rng(3)
    x, y = random.standard_normal((2, 4, 5)) * np.array([1, 3])[:, None, None]
    u = random.uniform(0.1, 0.9, (4, 5))
    return [torch.tensor(v, dtype=torch.float64).to(dtype) for v in (x, y, u)]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("dtype", [HALF, BRAIN], ids=str)
@pytest.mark.parametrize("name", TABLE)
def test_elementwise(name: str, dtype: Any, settings: str) -> None:
    theirs, ours = TABLE[name]
    tensors = operands(dtype)
    with emulate(softfloat.Environment(**SETTINGS[settings])):
        found = theirs(*tensors)
    expected = ours(Oracle(FORMATS[dtype], SETTINGS[settings]), *(t.double().numpy() for t in tensors))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.double().numpy(), expected)


# -- inside float32: one rounding, of a float32 that is right to a few units in its last place ----------------------------


def within_an_ulp(found: Any, expected: np.ndarray) -> None:
    fmt = FORMATS[found.dtype]
    ulp = np.maximum(np.abs(expected) * float(fmt.eps), float(fmt.smallest_subnormal))
    assert np.all(np.abs(found.detach().double().numpy() - expected) <= 0.502 * ulp)  # half, and float32's own rounding


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "softmax": (lambda x: x.softmax(-1), _softmax),
    "log_softmax": (lambda x: x.log_softmax(-1), lambda x: np.log(_softmax(x))),
    "mean": (lambda x: x.mean(), lambda x: x.mean()),
    "mean of an axis": (lambda x: x.mean(1), lambda x: x.mean(1)),
    "var": (lambda x: x.var(0), lambda x: x.var(0, ddof=1)),
    "std": (lambda x: x.std(), lambda x: x.std(ddof=1)),
    "norm": (lambda x: x.norm(), lambda x: np.sqrt((x * x).sum())),
    "prod": (lambda x: x.prod(1), lambda x: x.prod(1)),
    "cumsum": (lambda x: x.cumsum(0), lambda x: x.cumsum(0)),
    "logsumexp": (lambda x: x.logsumexp(1), lambda x: np.log(np.exp(x).sum(1))),
    "layer_norm": (
        lambda x: F.layer_norm(x, (5,)),
        lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5),
    ),
    "avg_pool1d": (lambda x: F.avg_pool1d(x[None], 5)[0, :, 0], lambda x: x.mean(1)),
    "mse_loss": (lambda x: F.mse_loss(x, -x), lambda x: (4 * x * x).mean()),
    "index_add": (
        lambda x: torch.zeros(1, 5, dtype=x.dtype).index_add(0, torch.zeros(4, dtype=torch.long), x)[0],
        lambda x: x.sum(0),
    ),
    "index_put": (
        lambda x: torch.zeros(1, 5, dtype=x.dtype).index_put((torch.zeros(4, dtype=torch.long),), x, accumulate=True)[0],
        lambda x: x.sum(0),
    ),
    "embedding backward": (
        lambda x: torch.ops.aten.embedding_dense_backward(x, torch.zeros(4, dtype=torch.long), 1, -1, False)[0],
        lambda x: x.sum(0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [HALF, BRAIN], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, dtype: Any) -> None:
    theirs, ours = REDUCTIONS[name]
    x = operands(dtype)[0]
    with emulate(record=True) as emulation:
        found = theirs(x)
    assert found.dtype == dtype
    assert [o.function for o in emulation.trace] == ["encode"] * len(emulation.trace) != []
    within_an_ulp(found, ours(x.double().numpy()))


def gradients(function: Callable[..., Any], tensors: list[Any]) -> list[Any]:
    leaves = [t.detach().clone().requires_grad_() for t in tensors]
    result = function(*leaves)
    result.backward(torch.linspace(-1, 1, result.numel()).reshape(result.shape).half().to(result.dtype))
    return [result.detach(), *(leaf.grad for leaf in leaves)]


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "layer_norm": lambda x: F.layer_norm(x, (6,), x[0, 0, 0].abs() + 1, x[0, 0, 1]),
    "group_norm": lambda x: F.group_norm(x, 2, x[0, :, 0, 0].abs() + 1, x[0, :, 0, 1]),
    "batch_norm": lambda x: F.batch_norm(x, None, None, x[0, :, 0, 0].abs() + 1, x[0, :, 0, 1], training=True),
    "instance_norm": lambda x: F.instance_norm(x),
    "weight_norm": lambda x: torch._weight_norm(x, x[:, :1, :1, :1].abs(), 0),
    "mean": lambda x: x.mean((1, 2)),
    "var": lambda x: x.var(1),
    "norm": lambda x: x.norm(dim=1),
    "logsumexp": lambda x: x.logsumexp(1),
    "cumsum": lambda x: x.cumsum(1),
    "gelu": lambda x: F.gelu(x),
    "silu": lambda x: F.silu(x),
    "elu": lambda x: F.elu(x),
    "softplus": lambda x: F.softplus(x),
    "hardswish": lambda x: F.hardswish(x),
    "mish": lambda x: F.mish(x),
    "leaky_relu": lambda x: F.leaky_relu(x),
    "prelu": lambda x: F.prelu(x, x[0, :, 0, 0]),
    "glu": lambda x: F.glu(x),
    "logsigmoid": lambda x: F.logsigmoid(x),
    "sigmoid": lambda x: x.sigmoid(),
    "tanh": lambda x: x.tanh(),
    "max_pool2d": lambda x: F.max_pool2d(x, 3, stride=1),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "reflection_pad": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "replication_pad": lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
    "unfold": lambda x: F.unfold(x, 2),
    "fold": lambda x: F.fold(x.reshape(2, 16, 9), (4, 4), 2),
    "mse_loss": lambda x: F.mse_loss(x, -x.detach()),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, -x.detach()),
    "huber_loss": lambda x: F.huber_loss(x, -x.detach()),
    "bce_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, (x.detach() > 0).to(x.dtype)),
    "cross_entropy": lambda x: F.cross_entropy(x[:, :, 0, 0], torch.tensor([1, 2]), label_smoothing=0.1),
    "gather": lambda x: x.gather(3, torch.zeros(2, 4, 6, 3, dtype=torch.long)),
    "index": lambda x: x[:, torch.tensor([0, 0, 1])],
    "expand": lambda x: x[:, :1].expand(2, 5, 6, 6) * 2,
    "sort": lambda x: x.sort(1).values,
    "fmod": lambda x: torch.fmod(x, 0.5),
}
if hasattr(torch.ops.aten, "_fused_rms_norm"):  # older: made of a square, a mean and a division, each rounded
    GRADIENTS["rms_norm"] = lambda x: F.rms_norm(x, (6,))


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_beside_those_of_float64(name: str) -> None:
    """Each operator rounds once, and its gradient too: a few of these, relative to the largest, lie between. Sums of terms near 1 may cancel."""
    x = half(2, 4, 6, 6)
    with emulate():
        found = gradients(GRADIENTS[name], [x])
    for ours, theirs in zip(found, gradients(GRADIENTS[name], [x.double()]), strict=True):
        assert ours.dtype == HALF
        assert float((ours.double() - theirs).abs().max()) <= 2**-9 * max(float(theirs.abs().max()), 2**-3)


def test_gradients_of_inputs_alone() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh()).half()
    x = half(2, 3).requires_grad_()
    with emulate(record=True) as emulation:
        (gradient,) = torch.autograd.grad(net(x).float().sum(), x, create_graph=True)
        gradient.square().sum().backward()
    assert net[0].weight.grad is not None
    assert {o.module for o in emulation.trace if o.backward} >= {"Sequential.0", "Sequential.1"}


# -- products --------------------------------------------------------------------------------------------------------

HOW = accumulators.chunked(4, "float16", "float16")
SWAMPS = accumulators.fma


@pytest.mark.parametrize("dtype", [HALF, BRAIN], ids=str)
@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, table in enumerate((TABLE, REDUCTIONS, GRADIENTS)) for name in table],
)
def test_nothing_infinite_and_no_nan_comes_without_a_flag(kind: int, name: str, dtype: Any) -> None:
    """Of finite operands, forward and backward."""
    random = np.random.default_rng(5)
    info = torch.finfo(dtype)
    sizes = [0.0, 1.0, 3.0, 0.5, 20.0, 1e-3, info.max, info.tiny, info.tiny * info.eps]
    x = torch.tensor([*sizes, *(-x for x in sizes)], dtype=torch.float64).to(dtype)
    environment, flags = softfloat.Environment(), softfloat.Flags
    for _ in range(3):
        environment.status.clear()
        shape = (2, 4, 6, 6) if kind == 2 else (4, 5)
        picked = [x[torch.from_numpy(random.choice(len(x), shape))] for _ in range((3, 1, 1)[kind])]
        with emulate(environment):
            if kind == 2:
                found = gradients(GRADIENTS[name], picked)
            else:
                found = [(TABLE, REDUCTIONS)[kind][name][0](*picked)]
        found = [v for v in found if v is not None and v.is_floating_point()]
        if any(v.isnan().any() for v in found):
            assert environment.status.flags & flags.INVALID
        if any(v.isinf().any() for v in found):
            assert environment.status.flags & (flags.DIVBYZERO | flags.OVERFLOW)


@pytest.mark.skipif(not hasattr(torch, "rms_norm"), reason="of PyTorch from 2.4 on")
@pytest.mark.parametrize("how", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_flags_of_what_is_float32_on_the_way(how: Any) -> None:
    """PyTorch makes rms_norm of operators on float32 tensors, which else have no flags; in inference mode it is one, judged by its result."""
    one = how is torch.inference_mode
    flags, nan, inf = softfloat.Flags, math.nan, math.inf
    for values, eps, expected in (
        ([1.0, 3.0], None, flags.INEXACT),
        ([0.0, 0.0], 0.0, flags.DIVBYZERO | flags.INVALID),  # 1 / sqrt(0), and 0 times that
        ([0.0, 0.0], None, flags(0)),
        ([inf, 1.0], None, flags.INVALID),
        ([nan, 1.0], None, flags(0)),
    ):
        x = torch.tensor([values], dtype=HALF)
        environment, trapping = softfloat.Environment(), softfloat.Environment(traps="INVALID")
        with how(), emulate(environment):
            F.rms_norm(x, (2,), eps=eps)
            torch.rms_norm(torch.zeros(1, 2), (2,), eps=0.0)  # float32 tensors of one's own
            (x.float() * inf * 0).half()
        seen = environment.status.flags
        assert seen == (expected & ~flags.DIVBYZERO if one else expected), values
        if expected & flags.INVALID:
            with how(), emulate(trapping), pytest.raises(OperatorTrap, match=r"aten\.\w+"):
                torch.nn.RMSNorm(2, eps, elementwise_affine=False)(x)
    brain = torch.tensor([[2.0**100, 1.0]], dtype=BRAIN)
    environment = softfloat.Environment()
    with how(), emulate(environment):
        assert F.rms_norm(brain, (2,)).tolist() == [[0.0, 0.0]]
    assert one or environment.status.flags & flags.OVERFLOW  # its square


@pytest.mark.skipif(not hasattr(torch, "rms_norm"), reason="of PyTorch from 2.4 on")
def test_flags_of_gradients_that_are_float32_on_the_way() -> None:
    """rsqrt's derivative of 2^-64 is 2^95, and what the output's gradient makes of that no float32."""
    x = torch.full((1, 2), 2.0**-60, dtype=BRAIN, requires_grad=True)
    environment = softfloat.Environment()
    with emulate(environment):
        y = F.rms_norm(x, (2,), eps=0.0)
    assert environment.status.flags == softfloat.Flags(0)
    assert y.tolist() == [[1.0, 1.0]]
    own = (x.float() * 1).sum()
    with emulate(environment):
        y.backward(torch.full_like(y, 2.0**100))
        assert not x.grad.isfinite().all()
        assert environment.status.flags & (softfloat.Flags.INVALID | softfloat.Flags.OVERFLOW)
        environment.status.clear()
        own.backward(torch.tensor(math.inf))
    assert environment.status.flags == softfloat.Flags(0)


def half(*shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).half()


PRODUCTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "mm": (lambda a, b, c: a @ b, lambda m, a, b, c: m(a, b)),
    "mv": (lambda a, b, c: a @ b[:, 0], lambda m, a, b, c: m(a, b[:, 0])),
    "dot": (lambda a, b, c: a[0] @ b[:, 0], lambda m, a, b, c: m(a[0], b[:, 0])),
    "bmm": (
        lambda a, b, c: torch.stack([a, a + a]) @ b,
        lambda m, a, b, c: np.stack([m(a, b), m(bits.add(a, a, "float16")[0], b)]),
    ),
    "addmm": (lambda a, b, c: torch.addmm(c, a, b), lambda m, a, b, c: m(a, b, c)),
    "addmm bias": (
        lambda a, b, c: torch.addmm(c[0], a, b),
        lambda m, a, b, c: m(a, b, np.broadcast_to(c[0], c.shape)),
    ),
    "linear": (
        lambda a, b, c: F.linear(a, b.T, c[0]),
        lambda m, a, b, c: m(a, b, np.broadcast_to(c[0], c.shape)),
    ),
    "addmm beta": (
        lambda a, b, c: torch.addmm(c, a, b, beta=0.3),
        lambda m, a, b, c: m(a, b, bits.mul(c, bits.encode(0.3, "float16")[0], "float16")[0]),
    ),
    "addmm alpha": (
        lambda a, b, c: torch.addmm(c, a, b, alpha=0.3),
        lambda m, a, b, c: m.scaled(a, b, 0.3, c),
    ),
    "addmm alpha beta 0": (
        lambda a, b, c: torch.addmm(c, a, b, alpha=0.3, beta=0),
        lambda m, a, b, c: m.scaled(a, b, 0.3),
    ),
    "addmm beta 0": (lambda a, b, c: torch.addmm(c / 0, a, b, beta=0), lambda m, a, b, c: m(a, b)),
    "baddbmm": (lambda a, b, c: torch.baddbmm(c[None], a[None], b[None]), lambda m, a, b, c: m(a, b, c)[None]),
    "addmv": (lambda a, b, c: torch.addmv(c[:, 0], a, b[:, 0]), lambda m, a, b, c: m(a, b[:, 0], c[:, 0])),
    "addbmm": (
        lambda a, b, c: torch.addbmm(c, torch.stack([a, -a]), torch.stack([b, b])),
        lambda m, a, b, c: m(np.hstack([a, a ^ 0x8000]), np.vstack([b, b]), c),
    ),
    "addr": (lambda a, b, c: torch.addr(c, a[:, 0], b[0]), lambda m, a, b, c: m(a[:, :1], b[:1], c)),
    "einsum": (lambda a, b, c: torch.einsum("ik,kj->ij", a, b), lambda m, a, b, c: m(a, b)),
    "sum": (lambda a, b, c: a.sum(), lambda m, a, b, c: m(a.reshape(-1), np.full(a.size, 0x3C00, np.uint16))),
    "sum of an axis": (lambda a, b, c: a.sum(0), lambda m, a, b, c: m(a.T, np.full(3, 0x3C00, np.uint16))),
    "sum kept": (
        lambda a, b, c: a.sum(1, keepdim=True),
        lambda m, a, b, c: m(a, np.full((17, 1), 0x3C00, np.uint16)),
    ),
}


@pytest.mark.parametrize(
    "how",
    [HOW, *(accumulators.fma(fmt) for fmt in ("float16", "float32", "float64")), accumulators.amp("half")],
    ids=repr,
)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str, how: softfloat.Accumulator) -> None:
    theirs, ours = PRODUCTS[name]
    a, b, c = half(3, 17), half(17, 4, seed=1), half(3, 4, seed=2)

    def product(x: Any, y: Any, z: Any = None) -> Any:
        if z is not None and how.partials != softfloat.float16:
            z = bits.convert(z, "float16", how.partials)[0]
        return bits.matmul(x, y, "float16", how, z, out_format="float16")[0]

    def scaled(x: Any, y: Any, alpha: float, z: Any = 0) -> Any:
        """From exact fractions, and one rounding."""
        sums = bits.matmul(x, y, "float16", how, out_format=how.partials)[0]
        factor = Fraction(float(bits.decode(bits.encode(alpha, how.partials)[0], how.partials)))
        terms = np.broadcast_arrays(bits.decode(sums, how.partials), bits.decode(np.uint16(z), "float16"))
        exact = [Fraction(float(s)) * factor + Fraction(float(t)) for s, t in zip(*map(np.ravel, terms), strict=True)]
        return np.array([reference.encode(v, "float16")[0] for v in exact], np.uint16).reshape(sums.shape)

    product.scaled = scaled  # type: ignore[attr-defined]
    with emulate(matmul=how):
        found = theirs(a, b, c)
    np.testing.assert_array_equal(codes(found), ours(product, codes(a), codes(b), codes(c)))


def test_sums_into_wider_and_narrower_dtypes() -> None:
    x = half(4, 5)
    with emulate(record=True) as emulation:
        wide = x.sum(dtype=torch.float32)
        narrow = x.float().sum(dtype=HALF)
    assert torch.equal(wide, x.float().sum())
    assert narrow.dtype == HALF
    assert [o.function for o in emulation.trace] == ["encode", "sum"]


CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "stride": {"stride": 2},
    "padding": {"padding": (1, 2)},
    "dilation": {"dilation": 2, "padding": 2},
    "groups": {"groups": 2, "stride": (2, 1)},
    "depthwise": {"groups": 4, "padding": 1},
    "transposed": {"transposed": True},
    "transposed stride": {"transposed": True, "stride": 2, "padding": 1, "output_padding": 1},
    "transposed groups": {"transposed": True, "groups": 2, "dilation": 2},
    "transposed, padded by a stride": {"transposed": True, "dilation": 3, "stride": 2, "output_padding": 2},
}


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_and_their_gradients(name: str, axes: int) -> None:
    """Partials in float32 and one rounding at the end: float64's result within half an ulp, and float32's own rounding."""
    options = dict(CONVOLUTIONS[name])
    if axes == 1:
        options = {k: v[0] if isinstance(v, tuple) else v for k, v in options.items()}
    elif axes == 3:
        options = {k: (*v, 2) if isinstance(v, tuple) else v for k, v in options.items()}
    transposed, groups = options.pop("transposed", False), options.get("groups", 1)
    x = half(2, 4, *(7, 6, 5)[:axes])
    weight = half(4, 4 // groups, *(3, 2, 3)[:axes], seed=1)
    function = getattr(F, f"conv{'_transpose' * transposed}{axes}d")

    def run(*tensors: Any) -> Any:
        return function(*tensors, **options)

    tensors = [x, weight, half(4, seed=2)]
    with emulate(record=True) as emulation:
        found = gradients(run, tensors)
    assert {"conv2d", "conv2d_input_gradient", "conv2d_weight_gradient", "sum"} <= {o.function for o in emulation.trace}
    expected = gradients(run, [t.double() for t in tensors])
    for ours, theirs in zip(found, expected, strict=True):
        scale = theirs.abs().max()  # sums cancel: float32's error is relative to their terms
        error = (ours.double() - theirs).abs()
        assert bool((error <= theirs.abs() * 2**-11 + scale * 2**-20 + 2**-25).all())
        assert ours.dtype == HALF


def test_depth_is_part_of_one_sum() -> None:
    """A volume convolved with one as large: a dot product over rows, columns, and within these depth and channels."""
    x, weight, how = half(1, 3, 2, 4, 5), half(1, 3, 2, 4, 5, seed=1), accumulators.fma("float16")
    with emulate(convolution=how):
        found = F.conv3d(x, weight)
    a, b = (codes(t).transpose(0, 3, 4, 2, 1).reshape(-1) for t in (x, weight))
    assert codes(found).item() == bits.vecdot(a, b, "float16", how)[0]


def test_padding_in_depth_has_products_of_its_own() -> None:
    """0 * inf, as in the other axes."""
    x, weight = torch.ones(1, 1, 1, 1, 1).half(), torch.tensor([torch.inf, 1.0, 1.0]).half().reshape(1, 1, 3, 1, 1)
    environment = softfloat.Environment()
    with emulate(environment):
        found = F.conv3d(x, weight, padding=(1, 0, 0))
    assert found.isnan().all()
    assert environment.status.flags & softfloat.Flags.INVALID


def test_steps_for_another_number_of_axes_are_refused() -> None:
    x, weight = half(1, 2, 4, 4, 4), half(2, 2, 2, 2, 2)
    with (
        emulate(),
        pytest.raises(RuntimeError, match=r"padding must be one integer or 3, one for each spatial axis, got \[1, 1\]"),
    ):
        F.conv3d(x, weight, padding=(1, 1))


def test_convolutions_use_their_own_accumulator() -> None:
    x, weight = half(1, 64, 3, 3), half(2, 64, 3, 3, seed=1)
    narrow = accumulators.fma("float16")
    with emulate(convolution=narrow):
        found = F.conv2d(x, weight)
        product = x.reshape(1, -1) @ weight.reshape(2, -1).T
    assert (
        codes(found).ravel().tolist()
        == bits.conv2d(codes(x), codes(weight), "float16", narrow, layout="NCHW")[0].ravel().tolist()
    )
    with emulate():
        assert same(x.reshape(1, -1) @ weight.reshape(2, -1).T, product)


def test_accumulators_by_format_and_by_environment() -> None:
    ones = torch.ones(1, 4096, dtype=HALF)
    with emulate(matmul=accumulators.fma):
        assert (ones @ ones.T).item() == 2048
        assert (ones.bfloat16() @ ones.bfloat16().T).item() == 256
    with emulate(softfloat.Environment(accumulator=accumulators.fma)):
        assert (ones @ ones.T).item() == 2048
    with emulate():
        assert (ones @ ones.T).item() == 4096
    with emulate(matmul=lambda fmt: fmt), pytest.raises(ValueError, match="matmul must return a softfloat"):  # type: ignore[arg-type,return-value]
        ones @ ones.T


@pytest.mark.parametrize("by", ["argument", "environment"])
def test_accumulators_that_take_other_formats_are_refused(by: str) -> None:
    x = torch.ones(2, 2, dtype=BRAIN)
    how = accumulators.amp("half")
    block = emulate(matmul=how) if by == "argument" else emulate(softfloat.Environment(accumulator=how))
    name = "matmul" if by == "argument" else "the environment's accumulator"
    message = (
        rf"^{name} must take bfloat16 tensors, and amp\('float16'\) takes float16; .* \(in aten\.mm\.default, no module"
    )
    with block, pytest.raises(UnemulatedOperatorError, match=message):
        x @ x
    with emulate(convolution=how), pytest.raises(UnemulatedOperatorError, match="convolution must take bfloat16"):
        F.conv1d(x[None], x[None])


def test_sums_are_drawn_only_where_an_accumulator_says_so() -> None:
    """By itself, stochastic rounding is of results in half; single stays at nearest even, as on the IPU."""
    x, y = half(8, 300), half(300, 8, seed=1)
    with emulate(softfloat.Environment(rounding="stochastic", seed=3)):
        found = x @ y
    sums, _ = bits.matmul(codes(x), codes(y), "float16", accumulators.fma("float32"))
    numbers = bits.decode(sums, "float32")
    down, up = (bits.encode(numbers, "float16", rounding=f"toward_{way}")[0] for way in ("negative", "positive"))
    assert np.logical_or(codes(found) == down, codes(found) == up).all()
    assert 0 < np.count_nonzero(codes(found) == up) < found.numel()
    with emulate(softfloat.Environment(rounding="toward_zero")):
        directed = x @ y
    expected, _ = bits.matmul(
        codes(x), codes(y), "float16", accumulators.fma("float32"), rounding="toward_zero", out_format="float16"
    )
    assert (codes(directed) == expected).all()


# -- where results go ------------------------------------------------------------------------------------------------

WRITERS: dict[str, Callable[..., Any]] = {
    "add_": lambda t, y: t.add_(y, alpha=0.1),
    "mul_": lambda t, y: t.mul_(y),
    "div_": lambda t, y: t.div_(3),
    "addcmul_": lambda t, y: t.addcmul_(y, y, value=0.1),
    "addcdiv_": lambda t, y: t.addcdiv_(y, y, value=0.1),
    "lerp_": lambda t, y: t.lerp_(y, 0.1),
    "sqrt_": lambda t, y: t.abs_().sqrt_(),
    "sigmoid_": lambda t, y: t.sigmoid_(),
    "tanh_": lambda t, y: t.tanh_(),
    "cumsum_": lambda t, y: t.cumsum_(0),
    "addmm_": lambda t, y: t.addmm_(y[:, :4], y[:4]),
    "copy_": lambda t, y: t.copy_(y.float() * 1.001),
    "fill_": lambda t, y: t.fill_(0.1),
    "masked_fill_": lambda t, y: t.masked_fill_(y > 0, 0.1),
    "index_put_": lambda t, y: t.index_put_((torch.tensor([0, 0, 1]),), y[:3], accumulate=True),
    "assigned": lambda t, y: (t.__setitem__((slice(1, 3), 0), 0.1), t)[1],
    "assigned by mask": lambda t, y: (t.__setitem__(y > 0, 0.1), t)[1],
    "float32 into it": lambda t, y: t.add_(y.float() * 1.001),
    "foreach": lambda t, y: (torch._foreach_add_([t], [y], alpha=0.1), t)[1],
    "out=add": lambda t, y: torch.add(y, y, out=t),
    "out=mm": lambda t, y: torch.mm(y[:, :4], y[:4], out=t),
    "out=sum": lambda t, y: torch.sum(torch.stack([y, y]), 0, out=t),
    "out=exp": lambda t, y: torch.exp(y, out=t),
    "out=erf": lambda t, y: torch.erf(y, out=t),
    "out=maximum of float32": lambda t, y: torch.maximum(y.float() * 1.001, y.float(), out=t),
}
LAYOUTS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "contiguous": lambda: (lambda m: (m, m))(torch.zeros(4, 5, dtype=HALF)),
    "transposed": lambda: (lambda m: (m, m.T))(torch.zeros(5, 4, dtype=HALF)),
    "slice": lambda: (lambda m: (m, m[1::2, 1:6]))(torch.zeros(8, 7, dtype=HALF)),
    "as_strided": lambda: (lambda m: (m, m.as_strided((4, 5), (2, 9), 3)))(torch.zeros(64, dtype=HALF)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("writer", WRITERS)
def test_in_place_and_out(writer: str, layout: str) -> None:
    start, y = half(4, 5), half(4, 5, seed=1)
    plain = start.clone()
    with emulate():
        WRITERS[writer](plain, y)
    memory, view = LAYOUTS[layout]()
    view.copy_(start)
    outside = memory.clone()
    pointer = view.data_ptr()
    with emulate():
        assert WRITERS[writer](view, y) is view
    assert view.data_ptr() == pointer
    assert same(view.contiguous(), plain)
    touched = torch.zeros_like(memory)
    touched.as_strided(view.size(), view.stride(), view.storage_offset()).fill_(1)
    assert torch.equal(memory[touched == 0], outside[touched == 0])


def test_out_is_resized() -> None:
    x = half(4, 5)
    out = torch.empty(0, dtype=HALF)
    with emulate():
        torch.add(x, x, out=out)
        assert same(out, x + x)
        assert torch.mm(x, x.T, out=torch.empty(0, dtype=HALF)).shape == (4, 4)
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            x[0].clone().add_(x)


def test_numbers_that_are_assigned() -> None:
    """PyTorch rounds them to nearest before any operator: 0.1 down, and 1e9 to infinity."""
    plain = torch.Tensor.__setitem__
    x = torch.zeros(4, dtype=HALF)
    with emulate(softfloat.Environment(rounding="toward_positive", overflow="saturate")) as emulation:
        x[0] = 0.1
        x[torch.tensor([False, True, False, False])] = 1e9
        x[2] = -math.inf
        x[3] = True
        wide = torch.zeros(1)
        wide[0] = 0.1
    assert codes(x).tolist() == [0x2E67, 0x7BFF, 0xFC00, 0x3C00]
    assert wide.item() == torch.tensor(0.1).item()
    assert emulation.environment.status.flags & softfloat.Flags.OVERFLOW
    assert torch.Tensor.__setitem__ is plain
    assert "__setitem__" not in vars(torch.Tensor)


def test_functions_of_elements_are_refused() -> None:
    x = half(3)
    with emulate():
        for write in (lambda: x.apply_(lambda a: a / 3), lambda: x.map_(x, lambda a, b: a / 3)):
            with pytest.raises(UnemulatedOperatorError, match="use operators, or float32"):
                write()
        assert torch.ones(1).apply_(lambda a: a + 1).item() == 2
    assert x.apply_(lambda a: 2.0).tolist() == [2, 2, 2]


def test_sums_into_narrow_tensors() -> None:
    """In the format of what they are written to."""
    wide = torch.full((4096,), 1.0)
    with emulate(matmul=accumulators.fma):
        assert torch.sum(wide, 0, out=torch.empty((), dtype=HALF)).item() == 2048


def test_results_keep_the_layout_of_operands() -> None:
    image = half(2, 3, 4, 5).to(memory_format=torch.channels_last)
    with emulate():
        for result in (image + 1, image.tanh(), image.sigmoid(), image.float().half(), image * image, image.bfloat16()):
            assert result.is_contiguous(memory_format=torch.channels_last)
        assert same((image + 1).contiguous(), image.contiguous() + 1)
        assert image[0].mT.float().half().stride() == image[0].mT.clone().stride()


def test_stochastic_numbers_go_by_place_not_by_layout() -> None:
    x = half(4, 5)
    results = []
    for operand in (x, x.T.contiguous().T):
        with emulate(softfloat.Environment(rounding="stochastic", seed=1)):
            results.append((operand * 0.3).contiguous())
    assert same(*results)


def test_memory_is_shared_with_numpy_not_copied() -> None:
    x = torch.zeros(3, dtype=HALF)
    numbers = x.numpy()
    with emulate():
        x += 1
    assert numbers.tolist() == [1, 1, 1]


def test_mixed_dtypes() -> None:
    x, wide = half(3, 4), torch.randn(3, 4)
    with emulate(record=True) as emulation:
        assert torch.equal(x + wide, x.float() + wide)
        assert torch.equal(x + x.bfloat16(), x.float() + x.bfloat16().float())
        assert torch.equal(wide.clone().add_(x), wide + x.float())
        assert {o.operator for o in emulation.trace} == {"aten._to_copy.default"}  # those to bfloat16
        scaled = x * torch.tensor(0.1, dtype=torch.float64)
    assert scaled.dtype == HALF
    big = torch.full((3, 4), 70000)
    with emulate(softfloat.Environment(overflow="saturate")):
        assert torch.cat([x, big]).max() == torch.where(x > 9, x, big).max() == 65504
        assert not torch.isinf(torch.full_like(x, 70000) + big).any()
    with emulate():
        assert same(torch.cat([x, torch.arange(4)[None]]), torch.cat([x, torch.arange(4)[None].half()]))
        assert same(torch.add(x, x, out=torch.empty(3, 4, dtype=BRAIN)), (x + x).bfloat16())
        assert torch.equal(torch.add(x, x, out=torch.empty(3, 4)), (x + x).float())


def test_float32_is_left_alone() -> None:
    x = torch.randn(5, 5)
    with emulate(softfloat.Environment(rounding="toward_zero"), record=True) as emulation:
        results = [x @ x, x + x, x.softmax(-1), F.gelu(x), F.layer_norm(x, (5,)), x.sum(), x.double() * 2]
    assert not emulation.trace
    assert not emulation.environment.status
    plain = [x @ x, x + x, x.softmax(-1), F.gelu(x), F.layer_norm(x, (5,)), x.sum(), x.double() * 2]
    assert all(torch.equal(a, b) for a, b in zip(results, plain, strict=True))


MOVES: dict[str, Callable[[Any], Any]] = {
    "views": lambda x: x.T[1:].unsqueeze(0).expand(2, -1, -1),
    "clone": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
    "neg": lambda x: -x,
    "abs": lambda x: x.abs(),
    "relu": lambda x: x.relu(),
    "floor": lambda x: x.floor(),
    "round": lambda x: x.round(),
    "index": lambda x: x[torch.tensor([0, 2])],
    "mask": lambda x: x[x > 0],
    "gather": lambda x: x.gather(1, torch.zeros(4, 2, dtype=torch.long)),
    "cat": lambda x: torch.cat([x, x], 1),
    "stack": lambda x: torch.stack([x, x]),
    "flip": lambda x: x.flip(0),
    "tril": lambda x: x.tril(),
    "pad": lambda x: F.pad(x, (1, 2)),
    "sort": lambda x: x.sort().values,
    "max": lambda x: x.max(1).values,
    "amax": lambda x: x.amax(0),
    "topk": lambda x: x.topk(2).values,
    "max_pool": lambda x: F.max_pool1d(x[None], 2),
    "upsample": lambda x: F.interpolate(x[None], scale_factor=2),
    "unfold": lambda x: F.unfold(x[None, None], 2),
    "embedding": lambda x: F.embedding(torch.tensor([1, 0]), x),
    "one_hot": lambda x: F.one_hot(torch.tensor([1])).to(x.dtype),
    "zeros": lambda x: torch.zeros_like(x),
    "frac": lambda x: x.frac(),
    "isnan": lambda x: x.isnan(),
    "compare": lambda x: x > 0.25,
    "nan_to_num": lambda x: (x / 0).nan_to_num(),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str) -> None:
    x = half(4, 4)
    with emulate():
        found = MOVES[name](x)
    assert torch.equal(found, MOVES[name](x))


# -- settings, flags, traps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overflow", "expected", "flags"),
    [("infinity", math.inf, "OVERFLOW|INEXACT"), ("saturate", 65504.0, "OVERFLOW|INEXACT"), ("nan", math.nan, "INVALID|OVERFLOW|INEXACT")],
)  # fmt: skip
def test_overflow_is_the_environments(overflow: str, expected: float, flags: str) -> None:
    big, row = torch.full((1, 1), 60000.0, dtype=HALF), torch.full((1, 2), 300.0, dtype=HALF)
    environment = softfloat.Environment(overflow=overflow)
    operations: list[Callable[[], Any]] = [
        lambda: big + big,
        lambda: row @ row.T,
        lambda: torch.tensor([70000.0]).half(),
        lambda: F.conv1d(row[None], row[None]),
        lambda: big.exp(),
        lambda: row.square().sum(),
        lambda: torch.ops.aten.silu(big) * 2,
    ]
    for operation in operations:
        environment.status.clear()
        with emulate(environment):
            found = operation().float().ravel()[0].item()
        assert found == expected or (math.isnan(expected) and math.isnan(found))
        assert softfloat.status.as_flags(flags.split("|")) & softfloat.Flags.OVERFLOW in environment.status
        if overflow == "nan":
            assert "INVALID" in environment.status


def test_numbers() -> None:
    x = torch.ones(2, dtype=HALF)
    with emulate(softfloat.Environment(overflow="saturate")) as emulation:
        assert (x + 1e-8).tolist() == [1, 1]
        assert "UNDERFLOW" in emulation.environment.status
        assert x.masked_fill(x > 0, -math.inf).tolist() == [-math.inf, -math.inf]  # the format has it
        assert (x * 1e6).tolist() == [65504, 65504]
        assert x.clamp(max=1e6).tolist() == [1, 1]
    with emulate(), pytest.raises(UnemulatedOperatorError, match="real"):
        x * 1j


def test_the_environment_in_force_is_looked_up_each_time() -> None:
    x = torch.tensor([1 + 2**-10], dtype=HALF)
    with emulate():
        with softfloat.environment(rounding="toward_positive") as env:
            assert (x * x).item() == 1 + 3 * 2**-10
            assert "INEXACT" in env.status
        assert (x * x).item() == 1 + 2 * 2**-10


def test_traps_name_operator_and_module() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 1))).half()
    with torch.no_grad():
        net[1][0].weight.fill_(60000)
        net[0].weight.fill_(60000)
    x = torch.ones(1, 2, dtype=HALF)
    with (
        emulate(softfloat.Environment(traps="OFLO")),
        pytest.raises(OperatorTrap, match=r"Sequential\.0, forward") as caught,
    ):
        net(x)
    trap = caught.value
    assert (trap.operator, trap.module, trap.backward) == ("aten.addmm.default", "Sequential.0", False)
    assert trap.flags == softfloat.Flags.OFLO
    assert isinstance(trap, softfloat.FloatingPointTrap)
    again = pickle.loads(pickle.dumps(trap))
    assert (str(again), again.module) == (str(trap), trap.module)
    assert str(copy.copy(trap)) == str(trap)
    with torch.no_grad():
        net[0].weight.fill_(0)
        net[0].bias.fill_(0)
    with emulate(softfloat.Environment(traps="OFLO")), pytest.raises(OperatorTrap, match="backward") as caught:
        (net(x).float() * 100).sum().backward()
    assert caught.value.module == "Sequential.1.0"
    assert caught.value.backward


def test_a_trap_leaves_tensors_as_they_were() -> None:
    x = torch.full((2,), 60000.0, dtype=HALF)
    environment = softfloat.Environment(traps="OFLO")
    with (
        emulate(environment),
        pytest.raises(OperatorTrap, match=r"OVERFLOW raised by add\(0x7b53, 0x7b53\) at index \(0,\), in aten.add_"),
    ):
        x += x
    assert x.tolist() == [60000, 60000]
    assert "OVERFLOW" in environment.status


# -- refused ---------------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "flash attention": (lambda x: F.scaled_dot_product_attention(*[x[None, None]] * 3), "SDPBackend.MATH"),
    "fused optimiser": (
        lambda x: torch.ops.aten._fused_sgd_(
            [x], [x], [], weight_decay=0, momentum=0, lr=0.1, dampening=0, nesterov=False, maximize=False, is_first_step=True
        ),
        "fused=False",
    ),
    "bilinear": (lambda x: F.bilinear(x, x, x[None]), "einsum"),
    "embedding bag": (lambda x: F.embedding_bag(torch.tensor([[0]]), x), "Embedding"),
    "inverse": (lambda x: torch.ops.aten.linalg_inv_ex(x), "float32"),
    "complex": (lambda x: torch.complex(x, x), "float32"),
    "another dtype for products": (lambda x: torch.mm(x, x, out_dtype=torch.float32), "cast the result"),
    "sparse": (lambda x: x.float().to_sparse().half(), "must be dense"),
    "float8 arithmetic": (lambda x: x.to(torch.float8_e5m2) * 2, "cast first"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_known_is_refused(name: str) -> None:
    operation, advice = REFUSED[name]
    with emulate(), pytest.raises(UnemulatedOperatorError) as caught:
        operation(half(4, 4))
    assert advice in str(caught.value)
    assert caught.value.operator.startswith("aten.")


def test_refusals_name_the_module() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).half()
    net = torch.nn.Sequential(torch.nn.Identity(), layer)
    with emulate(), pytest.raises(UnemulatedOperatorError, match=r"module Sequential\.1\.self_attn, forward"):
        net(half(1, 3, 8))
    with emulate(), torch.no_grad(), pytest.raises(UnemulatedOperatorError, match="set_fastpath_enabled"):
        net.eval()(half(1, 3, 8))


HANDED_OVER: dict[str, Callable[[Any, Any], Any]] = {
    "thread": lambda pool, f: in_thread(f),
    "thread of a thread": lambda pool, f: in_thread(lambda: in_thread(f)),
    "new pool": lambda pool, f: ThreadPoolExecutor(1).submit(f).result(),
    "old pool": lambda pool, f: pool.submit(f).result(),
    "old pool, map": lambda pool, f: next(pool.map(lambda _: f(), [0])),
    "asyncio": lambda pool, f: asyncio.run(asyncio.to_thread(f)),
}


def in_thread(function: Callable[[], Any]) -> Any:
    """What a thread of its own returns."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


@pytest.mark.parametrize("way", HANDED_OVER)
def test_threads_of_a_block_do_not_compute_natively(way: str) -> None:
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit
    x = torch.full((1,), 60000.0, dtype=HALF)

    def emulated() -> float:
        with emulate(softfloat.Environment(overflow="saturate")):
            return (x + x).item()

    def moved() -> float:
        return (torch.stack([x.clone(), x]).to(HALF).float() + 1).sum().item()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: None).result()
        hand_over = HANDED_OVER[way]
        with emulate():
            for native in (lambda: x + x, lambda: x @ x, lambda: x.float().half(), lambda: F.linear(x, x[None])):
                with pytest.raises(UnemulatedOperatorError, match="open another, with an environment of its own"):
                    hand_over(pool, native)
            assert hand_over(pool, emulated) == 65504
            assert hand_over(pool, moved) == 120002
        assert hand_over(pool, lambda: (x + x).item()) == math.inf
    assert (threading.Thread.start, ThreadPoolExecutor.submit) == (start, submit)


def test_a_thread_may_outlive_the_block_that_started_it() -> None:
    x, ended = torch.full((1,), 60000.0, dtype=HALF), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with emulate():
            found = pool.submit(lambda: ended.wait(10) and (x + x).item())
        ended.set()
        assert found.result() == math.inf


def test_tensors_elsewhere_are_refused() -> None:
    x = torch.empty(2, dtype=HALF, device="meta")
    with emulate():
        for operation in (lambda: x + x, lambda: x.sigmoid(), lambda: x.float().half()):
            with pytest.raises(UnemulatedOperatorError, match="on the CPU, got meta"):
                operation()


def test_a_module_left_by_an_exception_is_left() -> None:
    net = torch.nn.Sequential(torch.nn.Bilinear(2, 2, 2)).half()
    x = half(3, 2)
    with emulate(record=True) as emulation:
        with pytest.raises(UnemulatedOperatorError, match="module Bilinear, forward"):
            net[0](x, x)
        x + x
    assert emulation.trace[-1].module == ""


def test_operators_of_others_are_refused() -> None:
    @torch.library.custom_op("softfloat_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x + x

    @torch.library.custom_op("softfloat_tests::makes_half", mutates_args=())
    def makes_half(x: torch.Tensor) -> torch.Tensor:
        return x.half()

    with emulate():
        assert twice(torch.ones(2)).tolist() == [2, 2]
        with pytest.raises(UnemulatedOperatorError, match=r"softfloat_tests\.twice"):
            twice(half(2))
        with pytest.raises(UnemulatedOperatorError, match=r"softfloat_tests\.makes_half"):
            makes_half(torch.ones(2))


@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_compiled_code_is_refused() -> None:
    def function(x: Any) -> Any:
        return x * 2

    x = half(3)
    compiled = torch.compile(function, backend="eager")
    module = torch.compile(torch.nn.Linear(3, 3).half(), backend="eager")
    compiled(x)
    with emulate():
        for call in (lambda: compiled(x), lambda: module(x), lambda: torch.compile(function)(x)):
            with pytest.raises(UnemulatedOperatorError, match="compiled"):
                call()
        with torch.compiler.set_stance("force_eager"):
            assert same(compiled(x), x * 2)
    assert same(compiled(x), x * 2)

    def around(x: Any) -> Any:
        with emulate():
            return x * 2

    with pytest.raises(UnemulatedOperatorError, match="compiled"):
        torch.compile(around, backend="eager")(x)


@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_threads_do_not_see_each_others_blocks() -> None:
    """Blocks that overlap, begun and ended in the same order."""
    x = torch.full((1,), 60000.0, dtype=HALF)
    original = torch.compile
    began, ended = threading.Event(), threading.Event()
    found: list[float] = []

    def other() -> None:
        with emulate(softfloat.Environment(overflow="nan")):
            began.set()
            ended.wait(10)
            found.append((x + x).item())

    thread = threading.Thread(target=other)
    with emulate(softfloat.Environment(overflow="saturate")):
        thread.start()
        began.wait(10)
        found.append((x + x).item())
    assert torch.compile(len) is not None
    ended.set()
    thread.join()
    assert found[0] == 65504
    assert math.isnan(found[1])
    assert torch.compile is original


def on_functional_tensors(function: Any, x: Any) -> Any:
    from functorch.compile import aot_function  # with all of the compiler, which few tests need

    return aot_function(function, lambda graph, _: graph)(x.requires_grad_())


TRACES: dict[str, Callable[[Any, Any], Any]] = {
    "make_fx": lambda f, x: make_fx(f)(x),
    "make_fx of shapes": lambda f, x: make_fx(f, tracing_mode="symbolic")(x),
    "export": lambda f, x: torch.export.export(f, (x,)),
    "export, strict": lambda f, x: torch.export.export(f, (x,), strict=True),
    "export of another name": lambda f, x: export(f, (x,)),
    "jit.trace": lambda f, x: torch.jit.trace(f, (x,)),
    "fake tensors": lambda f, x: f(FakeTensorMode(allow_non_fake_inputs=True).from_tensor(x)),
    "functional tensors": on_functional_tensors,
}


@pytest.mark.filterwarnings("ignore")  # of PyTorch's tracers
@pytest.mark.parametrize("name", TRACES)
def test_tracing_is_refused(name: str) -> None:
    """A layer's `device` query is what made the process end: PyTorch takes no exceptions there."""
    layer, x = torch.nn.Linear(2, 2).half(), half(2)
    with emulate(), pytest.raises(UnemulatedOperatorError, match="trace outside of emulate, and run inside"):
        TRACES[name](layer, x)
    with pytest.raises(UnemulatedOperatorError, match="ProxyTorchDispatchMode"):
        make_fx(emulate()(lambda x: x * 3))(x)


def test_traced_graphs_run() -> None:
    """One rounding of 60000 + 60000, and it is emulated."""

    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + x

    x = torch.full((1,), 60000.0, dtype=HALF)
    graphs = [make_fx(Net())(x), torch.export.export(Net(), (x,)).module(), torch.fx.symbolic_trace(Net())]
    with emulate(softfloat.Environment(overflow="saturate")):
        assert [graph(x).item() for graph in graphs] == [65504] * 3
    with pytest.warns(DeprecationWarning, match=r"torch.jit.trace"):
        graph = torch.jit.trace(torch.nn.Conv1d(2, 3, 2).half(), half(1, 2, 4))
    y = half(1, 2, 4, seed=3)
    with emulate(softfloat.Environment(rounding="toward_positive")), torch.no_grad():
        assert same(graph(y), F.conv1d(y, graph.weight, graph.bias))


class Pair(torch.Tensor):
    """A tensor that consists of another."""

    @staticmethod
    def __new__(cls, held: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=torch.float32)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __tensor_flatten__(self) -> Any:
        return ["held"], None

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cls(func(*[x.held if isinstance(x, cls) else x for x in args], **(kwargs or {})))


class Own(torch.Tensor):
    """A tensor that hands on what it is asked to compute."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_dispatch__(func, types, args, kwargs or {})


def test_tensors_with_a_dispatch_of_their_own() -> None:
    """What a class computes with the tensors it consists of is emulated, whatever dtype it shows."""
    x = torch.full((1,), 60000.0, dtype=HALF)
    nested = torch.nested.nested_tensor([x, x], layout=torch.jagged)
    with emulate(softfloat.Environment(overflow="saturate")):
        assert (Pair(x) + Pair(x)).held.item() == 65504
        assert (nested + nested).values().tolist() == [65504, 65504]
        with pytest.raises(UnemulatedOperatorError, match="Own computes in a __torch_dispatch__"):
            x.as_subclass(Own) + x


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # of PyTorch's own decompositions
def test_queries_have_no_numbers() -> None:
    """Forward differentiation asks whether tensors share memory."""
    x = half(3)
    with emulate(record=True) as emulation:
        value, tangent = torch.func.jvp(lambda x: x * x, (x,), (torch.ones_like(x),))
    assert same(value, x * x)
    assert same(tangent, x + x)
    assert {o.function for o in emulation.trace} <= {"mul", "add"}


def test_operators_that_have_no_kernel_are_taken_apart() -> None:
    x, layer = half(2, 3, 4), torch.nn.Linear(4, 2).half()
    with emulate(record=True) as emulation, torch.inference_mode():
        layer(x)
    assert [(o.operator, o.function) for o in emulation.trace] == [("aten.addmm.default", "matmul")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"environment": 3}, "environment must be a softfloat.Environment"),
        ({"matmul": "fma"}, "matmul must be a softfloat.Accumulator"),
        ({"convolution": 1}, "convolution must be a softfloat.Accumulator"),
        ({"record": "yes"}, "record must be True, False"),
    ],
)
def test_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        emulate(**arguments)


def test_blocks() -> None:
    x = torch.tensor([60000.0], dtype=HALF)
    saturating = emulate(softfloat.Environment(overflow="saturate"))
    with saturating:
        assert (x + x).item() == 65504
        with pytest.raises(RuntimeError, match="in force already"), saturating:
            pass
        with emulate():
            assert (x + x).item() == math.inf
        assert (x + x).item() == 65504
    with saturating:
        assert (x + x).item() == 65504
    assert (x + x).item() == math.inf
    assert torch.compile.__module__ == "torch"

    @saturating
    def decorated() -> Any:
        return (x + x).item()

    assert decorated() == 65504


def test_a_refused_operator_takes_no_number() -> None:
    environment, x = softfloat.Environment(rounding="stochastic"), half(3)
    for count in (False, True):
        with emulate(environment, count=count), pytest.raises(ValueError, match="needs a seed"):
            x + x
    assert environment.next_stream() == 0


# -- records ---------------------------------------------------------------------------------------------------------


def test_records() -> None:
    seen: list[softfloat.torch.Operation] = []
    environment = softfloat.Environment(rounding="stochastic", seed=5)
    x = half(3)
    with emulate(environment, record=seen.append) as emulation:
        y = x.clone()
        y.mul_(0.3)
    (operation,) = seen
    assert not emulation.trace
    assert (operation.operator, operation.module, operation.backward) == ("aten.mul_.Tensor", "", False)
    assert (operation.function, operation.stream, operation.environment) == ("mul", 0, environment)
    assert operation.operands[0].tolist() == codes(x).tolist()  # before it was written to
    assert operation.result.tolist() == codes(y).tolist()
    assert operation.repeat().tolist() == codes(y).tolist()
