"""Scaled gradients with scaled settings, numbers that formats lose, the search for a loss scale, buffers of gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import softfloat  # noqa: E402 -- after the skip
from softfloat import Environment, Flags, bits  # noqa: E402
from softfloat.torch import emulate  # noqa: E402
from softfloat.torch.operators.unit import OperatorTrap  # noqa: E402
from softfloat.torch.practices.accumulation import GradientAccumulation  # noqa: E402
from softfloat.torch.practices.tuning import _last_passing as last_passing  # noqa: E402
from softfloat.torch.practices.tuning import check_hyperparameters, find_loss_scale, scale_hyperparameters  # noqa: E402

nn, optim = torch.nn, torch.optim
HALF, BRAIN, SINGLE, DOUBLE = torch.float16, torch.bfloat16, torch.float32, torch.float64
Factory = Callable[[list[Any]], Any]

# -- settings for scaled gradients -----------------------------------------------------------------------------------


class Derived(optim.Adam):
    """Of a class that has a rule."""


EPS = {"eps": 0.1}  # beside gradients near 1: epsilon matters
OPTIMISERS: dict[str, Factory] = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.25, weight_decay=0.1),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "maximize": lambda p: optim.SGD(p, lr=0.01, momentum=0.5, weight_decay=0.1, maximize=True),
    "tensor rate": lambda p: optim.SGD(p, lr=torch.tensor(0.1, dtype=DOUBLE), weight_decay=0.1, foreach=False),
    "groups": lambda p: optim.SGD([{"params": p[:1], "lr": 0.2}, {"params": p[1:], "weight_decay": 0.3}], lr=0.1),
    "asgd": lambda p: optim.ASGD(p, lr=0.1, lambd=0.1, t0=2, weight_decay=0.1),
    "adam": lambda p: optim.Adam(p, lr=0.1, weight_decay=0.1, **EPS),
    "amsgrad": lambda p: optim.Adam(p, lr=0.1, amsgrad=True, maximize=True, weight_decay=0.1, **EPS),
    "derived": lambda p: Derived(p, lr=0.1, **EPS),
    "adamw": lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.5, amsgrad=True, **EPS),
    "nadam": lambda p: optim.NAdam(p, lr=0.1, weight_decay=0.1, **EPS),
    "nadam decoupled": lambda p: optim.NAdam(p, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True, **EPS),
    "sparse adam": lambda p: optim.SparseAdam(p, lr=0.1, **EPS),
    "adamax": lambda p: optim.Adamax(p, lr=0.1, weight_decay=0.1, **EPS),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.1, weight_decay=0.1, **EPS),
    "centered": lambda p: optim.RMSprop(p, lr=0.1, centered=True, momentum=0.9, weight_decay=0.1, **EPS),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5, **EPS),
    "adadelta": lambda p: optim.Adadelta(p, lr=2.0, weight_decay=0.1, **EPS),
    "rprop": lambda p: optim.Rprop(p, lr=0.1),
}
if hasattr(optim, "Muon"):
    OPTIMISERS["muon"] = lambda p: optim.Muon(p, lr=0.1, weight_decay=0.1, eps=4.0)


@pytest.fixture
def double() -> Iterator[None]:
    """Settings that optimisers keep in tensors have float64 too."""
    torch.set_default_dtype(DOUBLE)
    yield
    torch.set_default_dtype(SINGLE)


class Trainee:
    """Parameters that are pulled to a moving target; what they were after each step."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        self.sparse, shapes = name == "sparse adam", ((3, 4), (4, 3) if name == "muon" else (5,))
        self.parameters = [nn.Parameter(torch.randn(shape)) for shape in shapes]
        self.optimiser = OPTIMISERS[name](self.parameters)
        self.trail: list[Any] = []

    def train(self, factor: float, steps: int = 4) -> None:
        for _ in range(steps):
            for p in self.parameters:
                gradient = (p.detach() - torch.linspace(-1, 1, p.numel()).reshape(p.shape) * len(self.trail)) * factor
                p.grad = gradient.to_sparse() if self.sparse else gradient
            self.optimiser.step()
            self.trail.append(torch.cat([p.detach().flatten() for p in self.parameters]))


@pytest.mark.parametrize("name", OPTIMISERS)
def test_updates_are_the_bits_of_unscaled_gradients(double: None, name: str) -> None:
    """Factors that are powers of two, changed twice on the way; then back to none."""
    plain, scaled = Trainee(name), Trainee(name)
    plain.train(1, 16)
    before = copy.deepcopy([scaled.optimiser.param_groups[0][key] for key in sorted(scaled.optimiser.param_groups[0])])
    factor = 1.0
    for ratio in (256.0, 8.0, 2.0**-12, 2.0):
        scale_hyperparameters(scaled.optimiser, ratio)
        factor *= ratio
        scaled.train(factor)
    assert factor == 1
    assert torch.equal(torch.stack(plain.trail), torch.stack(scaled.trail))
    after = [scaled.optimiser.param_groups[0][key] for key in sorted(scaled.optimiser.param_groups[0])]
    assert [x for x in before if isinstance(x, (int, float))] == [x for x in after if isinstance(x, (int, float))]
    assert not torch.equal(plain.trail[0], plain.trail[-1])


@pytest.mark.parametrize("name", sorted(set(OPTIMISERS) - {"muon"}))  # which computes in bfloat16
def test_other_factors_within_rounding(double: None, name: str) -> None:
    plain, scaled = Trainee(name), Trainee(name)
    plain.train(1, 8)
    scale_hyperparameters(scaled.optimiser, 1000.0)
    scaled.train(1000.0, 8)
    torch.testing.assert_close(torch.stack(scaled.trail), torch.stack(plain.trail), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", sorted(set(OPTIMISERS) - {"rprop"}))  # whose settings nothing changes
def test_without_it_they_are_others(double: None, name: str) -> None:
    plain, scaled = Trainee(name), Trainee(name)
    plain.train(1)
    scaled.train(256.0)
    assert not torch.allclose(plain.trail[-1], scaled.trail[-1], rtol=1e-3)


def settings(optimiser: Any) -> dict[str, Any]:
    return {name: x for name, x in optimiser.param_groups[0].items() if name != "params"}


def test_the_tutorials_numbers() -> None:
    weight = [nn.Parameter(torch.zeros(1))]
    momentum = optim.SGD(weight, lr=0.01, momentum=0.9)
    scale_hyperparameters(momentum, 256)
    assert (settings(momentum)["lr"], settings(momentum)["momentum"]) == (0.01 / 256, 0.9)
    adam = optim.AdamW(weight, lr=0.01, eps=1e-4)
    scale_hyperparameters(adam, 256)
    assert (settings(adam)["lr"], settings(adam)["eps"], settings(adam)["weight_decay"]) == (0.01, 256e-4, 0.01)


def rates(optimiser: Any, scheduler: Any) -> list[float]:
    found = []
    for _ in range(6):
        found.append(settings(optimiser)["lr"])
        optimiser.step()
        scheduler.step()
    return found


@pytest.mark.parametrize(
    ("early", "scheduler"),
    [
        (True, lambda o: optim.lr_scheduler.StepLR(o, 2)),
        (True, lambda o: optim.lr_scheduler.OneCycleLR(o, max_lr=1.0, total_steps=8)),
        (False, lambda o: optim.lr_scheduler.LambdaLR(o, lambda epoch: 1 / (1 + epoch))),
    ],
    ids=["step", "one cycle", "lambda"],
)
def test_schedules_are_divided(early: bool, scheduler: Factory) -> None:
    found = []
    for factor in (1, 8):
        optimiser = optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
        schedule = scheduler(optimiser) if early else None
        scale_hyperparameters(optimiser, factor)
        found.append(rates(optimiser, schedule or scheduler(optimiser)))
    assert len(set(found[0])) > 1
    assert [x / 8 for x in found[0]] == found[1]


def test_groups_to_come() -> None:
    optimiser = optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.5)
    scale_hyperparameters(optimiser, 4.0)
    optimiser.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})
    assert [group["lr"] for group in optimiser.param_groups] == [0.125, 0.125]


@pytest.mark.parametrize("kind", [optim.RAdam, optim.Adafactor, optim.LBFGS], ids=lambda x: x.__name__)
def test_those_that_do_not_scale(kind: Any) -> None:
    with pytest.raises(TypeError, match=f"optimizer must be one of SGD, ASGD, Adam, .*got {kind.__name__}; divide the"):
        scale_hyperparameters(kind([nn.Parameter(torch.zeros(2, 2))], lr=0.1), 2.0)


def test_a_foreign_class_of_a_known_name() -> None:
    class SGD(optim.Optimizer):
        pass

    with pytest.raises(TypeError, match="got SGD; divide the gradients"):
        scale_hyperparameters(SGD([nn.Parameter(torch.zeros(1))], {"lr": 0.1}), 2.0)


def test_nothing_is_changed_by_a_factor_too_far() -> None:
    weight = nn.Parameter(torch.ones(2, dtype=HALF))
    optimiser = optim.Adam([weight], lr=0.1)
    weight.grad = torch.full_like(weight, 16.0)
    optimiser.step()
    state = {name: x.clone() for name, x in optimiser.state[weight].items()}
    before = dict(settings(optimiser))
    with pytest.raises(ValueError, match=r"factor 1024 makes exp_avg_sq overflow torch.float16"):
        scale_hyperparameters(optimiser, 1024.0)
    with pytest.raises(ValueError, match=r"factor 1e-310 makes lr inf"):
        scale_hyperparameters(optim.SGD([weight], lr=0.1), 1e-310)
    assert settings(optimiser) == before
    assert all(torch.equal(x, state[name]) for name, x in optimiser.state[weight].items())


# -- numbers that formats lose ---------------------------------------------------------------------------------------


def weights(*dtypes: Any) -> list[Any]:
    return [nn.Parameter(torch.ones(2, dtype=dtype)) for dtype in dtypes]


FINDINGS: list[tuple[str, Any, Factory, dict[str, Any], dict[str, tuple[str, float]]]] = [
    ("tutorial", HALF, lambda p: optim.Adam(p), {}, {"eps": ("zero", 0.0)}),
    ("tutorial mended", HALF, lambda p: optim.Adam(p, eps=1e-4), {}, {}),
    ("float32", SINGLE, lambda p: optim.Adam(p), {}, {}),
    ("float64", DOUBLE, lambda p: optim.Adam(p, eps=1e-300), {}, {}),
    ("what if", SINGLE, lambda p: optim.Adam(p), {"dtype": HALF}, {"eps": ("zero", 0.0)}),
    ("float32 itself", SINGLE, lambda p: optim.Adam(p, eps=1e-50), {}, {"eps": ("zero", 0.0)}),
    ("brain", BRAIN, lambda p: optim.Adam(p), {}, {"beta2": ("one", 1.0)}),
    (
        "near one",
        BRAIN,
        lambda p: optim.RMSprop(p, alpha=0.99, momentum=0.999),
        {},
        {"alpha": ("changed", 0.98828125), "momentum": ("one", 1.0)},
    ),
    ("divided", HALF, lambda p: optim.SGD(p, lr=0.01), {"loss_scale": 2.0**20}, {"lr": ("zero", 0.0)}),
    ("divided, held", HALF, lambda p: optim.SGD(p, lr=0.01), {"loss_scale": 128.0}, {}),
    ("not divided", HALF, lambda p: optim.Adam(p, lr=0.01, eps=1e-4), {"loss_scale": 1024.0}, {}),
    ("too much", HALF, lambda p: optim.Adam(p, eps=1e-4), {"loss_scale": 2.0**30}, {"eps": ("overflow", np.inf)}),
    (
        "saturated",
        HALF,
        lambda p: optim.Adam(p, eps=1e-4),
        {"loss_scale": 2.0**30, "environment": Environment(overflow="saturate")},
        {"eps": ("overflow", 65504.0)},
    ),
    ("rate", HALF, lambda p: optim.SGD(p, lr=1e-8), {}, {"lr": ("zero", 0.0)}),
    ("subnormal", HALF, lambda p: optim.SGD(p, lr=1e-7), {}, {"lr": ("changed", 2.0**-23)}),
    ("ftz", HALF, lambda p: optim.SGD(p, lr=1e-5), {"environment": Environment(ftz=True)}, {"lr": ("zero", 0.0)}),
    ("daz", HALF, lambda p: optim.SGD(p, lr=1e-5), {"environment": Environment(daz=True)}, {"lr": ("zero", 0.0)}),
    (
        "upward",
        HALF,
        lambda p: optim.Adam(p),
        {"environment": Environment(rounding="toward_positive")},
        {"eps": ("changed", 2.0**-24)},
    ),
    (
        "stochastic",
        HALF,
        lambda p: optim.Adam(p),
        {"environment": Environment(rounding="stochastic", seed=1)},
        {"eps": ("zero", 0.0)},
    ),
    ("decay", HALF, lambda p: optim.SGD(p, lr=0.1, weight_decay=1e-8), {}, {"weight_decay": ("zero", 0.0)}),
    (
        "decoupled decay",
        HALF,
        lambda p: optim.AdamW(p, lr=1e-3, eps=1e-4),
        {},
        {"1 - lr*weight_decay": ("one", 1.0)},
    ),
    (
        "dampening",
        HALF,
        lambda p: optim.SGD(p, lr=0.1, momentum=0.5, dampening=1 - 1e-9),
        {},
        {"1 - dampening": ("zero", 0.0)},
    ),
    ("asgd's exponent", BRAIN, lambda p: optim.ASGD(p, lr=0.1, alpha=0.999), {}, {}),
]


@pytest.mark.parametrize(
    ("dtype", "factory", "options", "expected"), [x[1:] for x in FINDINGS], ids=[x[0] for x in FINDINGS]
)
def test_settings(
    dtype: Any, factory: Factory, options: dict[str, Any], expected: dict[str, tuple[str, float]]
) -> None:
    found = check_hyperparameters(factory(weights(dtype)), **options)
    assert {x.name: (x.kind, x.becomes) for x in found} == expected
    for x in found:
        if "ftz" not in repr(options) and "daz=True" not in repr(options):
            with emulate(options.get("environment", Environment())):  # a sum with zero is what was added
                assert (torch.zeros(1, dtype=x.dtype) + x.value).double().item() == x.becomes


def test_findings_in_words() -> None:
    found = check_hyperparameters(optim.SGD(weights(HALF), lr=0.01, momentum=0.9999), loss_scale=2.0**20)
    assert [str(x) for x in found] == [
        "group 0: lr = 9.53674e-09 becomes 0 in torch.float16; it is a normal number up to a loss scale of 164",
        "group 0: momentum = 0.9999 becomes 1 in torch.float16; "
        "the average never forgets; the largest number below 1 is 0.999512",
    ]
    (found,) = check_hyperparameters(optim.Adam(weights(HALF)))
    assert str(found) == (
        "group 0: eps = 1e-08 becomes 0 in torch.float16; 0.0001 is the least power of ten among its normal numbers"
    )


def test_each_group_in_its_dtypes() -> None:
    groups = [{"params": weights(SINGLE)}, {"params": weights(HALF, SINGLE, HALF)}]
    assert [(x.group, x.dtype) for x in check_hyperparameters(optim.Adam(groups))] == [(1, HALF)]


@pytest.mark.parametrize("overflow", ["infinity", "saturate", "nan"])
@pytest.mark.parametrize("kind", [optim.Adam, optim.RMSprop, optim.Adagrad, optim.Adadelta, optim.NAdam, optim.RAdam])
def test_squares_are_those_of_the_step(kind: Any, overflow: str) -> None:
    """What the check foresees is what the optimiser's own operations give."""
    weight = nn.Parameter(torch.ones(8, dtype=HALF))
    optimiser = kind([weight], lr=0.5, eps=1e-3)
    weight.grad = torch.tensor([6e4, -3e4, 300, 1, -1e-2, 1e-3, -1e-5, 0], dtype=HALF)
    env = Environment(overflow=overflow)
    found = {x.kind: x for x in check_hyperparameters(optimiser, environment=env)}
    assert not env.status
    assert env.next_stream() == 0
    with emulate(env, record=True) as emulation:
        optimiser.step()
    steps = [o for o in emulation.trace if "addcmul" in o.operator]
    square = next(o for o in steps if o.function == "fma")  # of an average that is zero
    got = bits.decode(square.result, "float16")
    lost = (got == 0) & (weight.grad.double().numpy() != 0)
    weight64 = {"Adagrad": 1.0, "RMSprop": 0.01, "Adadelta": 0.1}.get(kind.__name__, 0.001)
    exact = weight64 * weight.grad.double().numpy() ** 2
    over = exact > 65520
    assert over.any()
    assert lost.any()
    assert set(found) == {"zero", "overflow"}
    assert found["zero"].share == lost.sum() / 7
    assert found["overflow"].share == over.sum() / 7
    assert found["overflow"].value == pytest.approx(exact.max(), rel=1e-12)
    np.testing.assert_equal(found["overflow"].becomes, got[0])
    assert f"of 7 nonzero gradients, the squares of {over.sum()} overflow; keep" in found["overflow"].message


def test_squares_of_gradients_to_be_scaled() -> None:
    """0.001 * (2^k)^2 in half: 0 below 2^-25 or so, infinite from 65520."""
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.tensor([1.0, 2.0**-12])
    optimiser = optim.Adam([weight], eps=1e-3)
    kinds = {
        scale: {x.kind for x in check_hyperparameters(optimiser, HALF, loss_scale=scale) if x.name == "grad**2"}
        for scale in (1.0, 2.0**8, 2.0**14)
    }
    assert kinds == {1.0: {"zero"}, 2.0**8: set(), 2.0**14: {"overflow"}}
    assert not check_hyperparameters(optimiser)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"dtype": torch.float64},
            ValueError,
            "dtype must be one of torch.float16, torch.bfloat16, torch.float32, got torch.float64",
        ),
        ({"loss_scale": 0}, ValueError, "loss_scale must be a positive finite number, got 0"),
        ({"environment": "ipu"}, TypeError, "environment must be a softfloat.Environment or None, got str"),
    ],
)
def test_what_a_check_refuses(options: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        check_hyperparameters(optim.SGD(weights(HALF), lr=0.1), **options)
    with pytest.raises(TypeError, match=r"optimizer must be a torch\.optim\.Optimizer, got float"):
        check_hyperparameters(0.1)


@pytest.mark.parametrize("factor", [0, -1.0, np.inf, np.nan, True, "2"])
def test_factors(factor: Any) -> None:
    with pytest.raises(ValueError, match="factor must be a positive finite number"):
        scale_hyperparameters(optim.SGD(weights(HALF), lr=0.1), factor)


# -- the largest loss scale ------------------------------------------------------------------------------------------


class Weighted(nn.Module):
    """Its gradient is 3 times the loss scale, in half."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self) -> Any:
        return (self.weight.half() * 3).float().sum()


@pytest.mark.parametrize("overflow", ["saturate", "infinity", "nan"])
def test_the_largest_scale(overflow: str) -> None:
    """3 * 2^14 is a half, 3 * 2^15 is none; neither is 2^16."""
    net, env = Weighted(), Environment(overflow=overflow, traps="DIVBYZERO")
    found = find_loss_scale(lambda scale: (net() * scale).backward(), env, parameters=net.parameters())
    assert (found.scale, found.tried) == (2.0**14, (1.0, 2.0**15, 2.0**14))
    assert found.flags & Flags.OVERFLOW
    assert found.trap is not None
    assert (found.trap.operator, found.trap.backward) == ("aten.mul.Tensor", True)
    assert found.trap.__traceback__ is None
    assert not env.status
    assert env.traps == Flags.DIVBYZERO
    assert env.next_stream() == 0
    assert net.weight.grad is None


def test_a_product_within_a_module_backward() -> None:
    """Through the engine of autograd, with the module's name; products of 16 and 16 * scale."""
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)).half()
    nn.init.ones_(net[0].weight)
    nn.init.zeros_(net[1].weight)
    x = torch.full((1, 1), 16.0, dtype=HALF)

    def backward(scale: float) -> None:
        (net(x).float() * (16.0 * scale)).sum().backward()

    found = find_loss_scale(backward, Environment(overflow="saturate"), parameters=net.parameters())
    assert found.scale == 2.0**7
    assert found.trap is not None
    assert (found.trap.operator, found.trap.module) == ("aten.mm.default", "Sequential.1")
    assert "in aten.mm.default, module Sequential.1, backward" in str(found)


def one_by_one(backward: Callable[[float], Any], env: Environment, most: float = 2.0**24) -> tuple[float, Flags, str]:
    """The same answer, found by trying all scales in order."""
    wanted, passed, scale = Flags.OVERFLOW | Flags.DIVBYZERO | Flags.INVALID, 0.0, 1.0
    while scale <= most:
        attempt, trap = env.replace(traps=wanted), ""
        try:
            with emulate(attempt):
                backward(scale)
        except OperatorTrap as struck:
            trap = str(struck)
        if attempt.status.flags & wanted:
            return passed, attempt.status.flags & wanted, trap
        passed, scale = scale, 2 * scale
    return passed, Flags(0), ""


SEARCHED: list[tuple[str, Callable[[Any, float], Any]]] = [
    ("in half", lambda x, scale: (x.half() * 3).sum().float() * scale),
    ("scaled in half", lambda x, scale: (x.half() * 3).sum() * scale),
    ("forward alone", lambda x, scale: (x * scale).half().sum()),
    ("sums within", lambda x, scale: ((x.half() @ x.half().T).float() * scale).sum()),
    ("squares", lambda x, scale: ((x.half() ** 3).float() * scale * scale).sum()),
    ("bfloat16", lambda x, scale: (x.bfloat16() * 2.0**110).float().sum() * scale),
    ("nothing low", lambda x, scale: x.sum() * scale),
    ("vanishing", lambda x, scale: (x.half().float() * 1e-9).sum() * scale),
    ("by a number", lambda x, scale: (x.half() * scale).float().sum() * 2.0**-10),
]


@pytest.mark.parametrize("settings", [{}, {"overflow": "saturate"}, {"rounding": "stochastic", "seed": 3}], ids=str)
@pytest.mark.parametrize(("name", "loss"), SEARCHED, ids=[name for name, _ in SEARCHED])
@pytest.mark.parametrize("size", [1.0, 2.0**-9, 40.0])
def test_the_answer_of_trying_all(
    size: float, name: str, loss: Callable[[Any, float], Any], settings: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    x = nn.Parameter(torch.randn(4, 6) * size)

    def backward(scale: float) -> None:
        x.grad = None
        loss(x, scale).backward()

    env = Environment(**settings)
    scale, flags, trap = one_by_one(backward, env)
    if not scale:
        with pytest.raises(RuntimeError, match="does not pass"):
            find_loss_scale(backward, env)
        return
    found = find_loss_scale(backward, env)
    assert (found.scale, found.flags, str(found.trap or "")) == (scale, flags, trap)
    assert len(set(found.tried)) == len(found.tried) <= 8
    if name in ("in half", "bfloat16"):
        assert len(found.tried) <= 4


def test_the_last_that_passes() -> None:
    """Whatever the guess, and nobody is asked twice."""
    for count in range(1, 27):
        for last in range(count):
            for guess in (None, *range(-2, count)):
                asked: list[int] = []

                def passes(place: int, last: int = last, asked: list[int] = asked) -> bool:
                    asked.append(place)
                    return place <= last

                assert last_passing(count, passes, guess) == last
                assert len(set(asked)) == len(asked)
                assert not {0, count} & set(asked)
                assert len(asked) <= (5 if guess is None else 7)
                if guess == last:
                    assert len(asked) <= 2


def test_the_limit() -> None:
    net = Weighted()
    found = find_loss_scale(
        lambda scale: (net() * scale).backward(), start=2.0, factor=10.0, most=1999.0, parameters=net.parameters()
    )
    assert (found.scale, found.tried, found.flags, found.trap) == (200.0, (2.0, 200.0), Flags(0), None)


def test_a_number_beside_a_tensor_stops_it_too() -> None:
    weight = nn.Parameter(torch.ones(1, dtype=HALF))
    for overflow in ("saturate", "infinity", "nan"):
        found = find_loss_scale(lambda scale: weight * 2.0**-10 * scale, Environment(overflow=overflow))
        assert (found.scale, found.trap) == (2.0**15, None)
        assert found.flags & Flags.OVERFLOW


def test_every_attempt_draws_the_same_numbers() -> None:
    """And neither the environment's stream nor PyTorch's generator moves."""
    env, seen = Environment(rounding="stochastic", seed=5), []
    x = torch.linspace(1, 2, 64)

    def backward(scale: float) -> None:
        seen.append((torch.rand(3), (x * scale).half().float() / scale))

    torch.manual_seed(1)
    expected = torch.rand(4)
    torch.manual_seed(1)
    assert find_loss_scale(backward, env, most=8.0).tried == (1.0, 4.0, 8.0)
    assert torch.equal(torch.rand(4), expected)
    assert env.next_stream() == 0
    assert len(seen) == 3
    assert all(torch.equal(a, c) and torch.equal(b, d) for (a, b), (c, d) in pairwise(seen))
    code, _ = bits.encode(x.numpy(), "float16", environment=env, stream=0, flags="any")
    assert seen[0][1].tolist() == bits.decode(code, "float16").tolist()


def test_gradients_are_put_back_or_add_up() -> None:
    net = Weighted()
    for given, expected in ((True, 7.0), (False, 7.0 + 3 * (1 + 4))):
        net.weight.grad = before = torch.full((1,), 7.0)
        seen: list[float] = []

        def backward(scale: float, seen: list[float] = seen) -> None:
            (net() * scale).backward()
            seen.append(net.weight.grad.item())

        find_loss_scale(backward, most=4.0, parameters=net.parameters() if given else ())
        assert net.weight.grad is before
        assert before.item() == expected
        assert seen == ([3.0, 12.0] if given else [10.0, 22.0])


def test_a_start_that_does_not_pass() -> None:
    net = Weighted()
    with pytest.raises(RuntimeError, match=r"start=65536 does not pass: OVERFLOW raised by .* backward; start lower"):
        find_loss_scale(lambda scale: (net() * scale).backward(), start=2.0**16)
    half = torch.ones(1, dtype=HALF)
    with pytest.raises(RuntimeError, match=r"start=65536 does not pass: OVERFLOW raised by a number beside a tensor"):
        find_loss_scale(lambda scale: half * scale, start=2.0**16)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"factor": 1}, ValueError, "factor must be greater than 1, got 1"),
        ({"start": 0}, ValueError, "start must be a positive finite number, got 0"),
        ({"start": 8, "most": 4}, ValueError, "most must be at least start, 8, got 4"),
        ({"flags": ()}, ValueError, "flags must name at least one flag"),
        ({"flags": "SOME"}, ValueError, "flags has no flag 'SOME'"),
        ({"environment": 1}, TypeError, "environment must be a softfloat.Environment or None, got int"),
        ({"backward": 1}, TypeError, "backward must be a function of the scale, got 1"),
    ],
)
def test_what_a_search_refuses(options: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        find_loss_scale(**{"backward": lambda scale: None, **options})


# -- buffers of gradients --------------------------------------------------------------------------------------------


def accumulated(gradients: Any, dtype: Any, env: Environment, average: bool = False) -> Any:
    weight = nn.Parameter(torch.zeros(gradients.shape[1:], dtype=gradients.dtype))
    accumulation = GradientAccumulation([weight], dtype, average=average)
    with emulate(env):
        for gradient in gradients:
            weight.grad = gradient.clone()
            accumulation.add()
            assert weight.grad is None
        accumulation.deliver()
    assert weight.grad.dtype == gradients.dtype
    return weight.grad


def test_half_buffers_swamp_and_single_ones_do_not() -> None:
    """0.25 + 0.0001 + 0.0001 + ...: half of the spacing at 0.25 is 0.000122."""
    gradients = torch.tensor([0.25] + [0.0001] * 1000, dtype=HALF).reshape(-1, 1)
    assert accumulated(gradients, HALF, Environment()).item() == 0.25
    exact = Fraction(1, 4) + 1000 * Fraction(gradients[1].item())
    rounded, _ = bits.encode([exact], "float16")
    assert accumulated(gradients, SINGLE, Environment()).view(torch.uint16).tolist() == rounded.tolist()


@pytest.mark.parametrize("settings", [{}, {"rounding": "stochastic", "seed": 2}, {"overflow": "saturate"}])
@pytest.mark.parametrize("dtype", [HALF, BRAIN])
def test_low_buffers_are_bits_sums(dtype: Any, settings: dict[str, Any]) -> None:
    env, fmt = Environment(**settings), "float16" if dtype == HALF else "bfloat16"
    gradients = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 40)) * 2.0**14).to(dtype)
    total = gradients[0].view(torch.uint16).numpy()
    for stream, gradient in enumerate(gradients[1:]):
        codes = gradient.view(torch.uint16).numpy()
        total, _ = bits.add(total, codes, fmt, environment=env, stream=stream, flags="any")
    assert accumulated(gradients, dtype, env).view(torch.uint16).tolist() == total.tolist()


def test_a_buffer_that_overflows_says_so_and_a_wide_one_does_not() -> None:
    gradients = torch.full((4, 1), 40000.0, dtype=HALF)
    for dtype, flags, expected in ((HALF, Flags.OVERFLOW, 65504 / 4), (SINGLE, Flags(0), 40000.0)):
        env = Environment(overflow="saturate")
        mean = accumulated(gradients, dtype, env, average=True)
        assert mean.item() == expected
        assert env.status.flags & Flags.OVERFLOW == flags


@pytest.mark.parametrize("dtype", [HALF, BRAIN, SINGLE, DOUBLE])
def test_a_mean_of_many(dtype: Any) -> None:
    """Of 2051: a number that neither half nor bfloat16 has."""
    gradients = torch.zeros(2051, 1, dtype=dtype)
    gradients[0] = 4096.0
    (expected,), _ = bits.encode([Fraction(4096, 2051)], "float32")
    mean = accumulated(gradients, dtype, Environment(), average=True)
    wide = torch.tensor([4096.0], dtype=DOUBLE) / 2051
    single = torch.from_numpy(np.array([expected], np.uint32)).view(torch.float32)
    assert mean.item() == (wide if dtype == DOUBLE else single.to(dtype)).item()


def test_gradients_that_are_missing() -> None:
    first, second, never = (nn.Parameter(torch.zeros(1)) for _ in range(3))
    accumulation = GradientAccumulation([first, second, never])
    for step in range(2):
        first.grad = torch.full((1,), 3.0)
        second.grad = torch.full((1,), 5.0) if step else None
        accumulation.add()
    assert accumulation.count == 2
    accumulation.deliver()
    assert (first.grad.item(), second.grad.item(), never.grad) == (3.0, 2.5, None)
    assert accumulation.count == 0
    first.grad = second.grad = None
    first.grad = torch.ones(1)
    accumulation.add()
    accumulation.deliver()
    assert (first.grad.item(), second.grad) == (1.0, None)


def test_a_gradient_that_is_kept_elsewhere_stays() -> None:
    weight, kept = nn.Parameter(torch.zeros(1)), torch.ones(1)
    accumulation = GradientAccumulation([weight], average=False)
    for _ in range(3):
        weight.grad = kept
        accumulation.add()
    accumulation.deliver()
    assert (kept.item(), weight.grad.item()) == (1.0, 3.0)


def test_what_buffers_refuse() -> None:
    weight = nn.Parameter(torch.zeros(1))
    accumulation = GradientAccumulation([weight])
    with pytest.raises(RuntimeError, match=r"nothing to deliver: call add\(\)"):
        accumulation.deliver()
    accumulation.add()
    weight.grad = torch.ones(1)
    with pytest.raises(RuntimeError, match="a parameter has a gradient that was not added"):
        accumulation.deliver()
    with pytest.raises(ValueError, match=r"dtype must be one of torch.float16, .* got torch.int32"):
        GradientAccumulation([weight], torch.int32)
    for parameters in ([], [1.0]):
        with pytest.raises(TypeError, match="parameters must be tensors, at least one"):
            GradientAccumulation(parameters)


def test_the_status_in_force_is_left_alone() -> None:
    with softfloat.environment() as env:
        find_loss_scale(lambda scale: torch.full((1,), scale).half())
        check_hyperparameters(optim.Adam(weights(HALF)))
        assert not env.status
