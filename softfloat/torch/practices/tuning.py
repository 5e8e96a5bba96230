"""Loss scales and the optimisers' settings: divide the learning rate, scale epsilon, see what vanishes, find the largest scale.

>>> import torch
>>> from softfloat.torch.practices.tuning import check_hyperparameters, scale_hyperparameters
>>> layer = torch.nn.Linear(2, 1).half()
>>> optimiser = torch.optim.Adam(layer.parameters())
>>> for finding in check_hyperparameters(optimiser):
...     print(finding)
group 0: eps = 1e-08 becomes 0 in torch.float16; 0.0001 is the least power of ten among its normal numbers
>>> scale_hyperparameters(optimiser, 2.0**14)
>>> optimiser.param_groups[0]["lr"], optimiser.param_groups[0]["eps"]
(0.001, 0.00016384)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import torch

from softfloat import bits
from softfloat.accumulators import Accumulator
from softfloat.arrays import constant, constants
from softfloat.environments import Environment, current_environment
from softfloat.formats import Format, float32
from softfloat.status import Flags, as_flags
from softfloat.torch.emulation import emulate
from softfloat.torch.operators.bridge import FORMATS, as_dtype
from softfloat.torch.operators.unit import Operation, OperatorTrap, check_environment

__all__ = ["Finding", "LossScaleSearch", "check_hyperparameters", "find_loss_scale", "scale_hyperparameters"]


# -- settings for scaled gradients -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """The powers of the gradients' factor that settings and states carry; others stay.

    `squares` is the setting that holds the decay of an average of squared gradients, "" for a plain sum of them.
    """

    settings: Mapping[str, int]
    state: Mapping[str, int]
    squares: str | None = None


LINEAR = {"lr": -1, "weight_decay": 1}
NORMALISED = {"eps": 1, "weight_decay": 1}
MOMENTS = {"exp_avg": 1, "exp_avg_sq": 2, "max_exp_avg_sq": 2}
_ADAM = Rule(NORMALISED, MOMENTS, "beta2")
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "SGD": Rule(LINEAR, {"momentum_buffer": 1}),
        "ASGD": Rule({**LINEAR, "lambd": 1}, {"eta": -1}),  # lambd*lr is what decays the parameters and the rate
        "Adam": _ADAM,
        "AdamW": Rule({"eps": 1}, MOMENTS, "beta2"),
        "NAdam": _ADAM,
        "SparseAdam": Rule({"eps": 1}, MOMENTS, "beta2"),
        "Adamax": Rule(NORMALISED, {"exp_avg": 1, "exp_inf": 1}),
        "RMSprop": Rule(NORMALISED, {"square_avg": 2, "grad_avg": 1}, "alpha"),
        "Adagrad": Rule({**NORMALISED, "initial_accumulator_value": 2}, {"sum": 2}, ""),
        # one epsilon is added to squares of gradients and of updates, so the latter carry the factor too
        "Adadelta": Rule({**LINEAR, "eps": 2}, {"square_avg": 2, "acc_delta": 2}, "rho"),
        "Rprop": Rule({}, {}),  # only signs of gradients count
        "Muon": Rule({"eps": 1}, {"momentum_buffer": 1}),
    }
)
"""By the name of a class of `torch.optim`. Not RAdam, whose first steps are linear in the gradient and whose later ones are not;
not Adafactor, which bounds a square and a square root by one epsilon; not LBFGS, whose line search compares both."""

RATES = ("lr", "initial_lr", "max_lr", "min_lr")
"""The learning rate, and what schedulers keep of it in parameter groups."""


def _lineage(optimizer: torch.optim.Optimizer) -> list[str]:
    """Names of the classes of `torch.optim` that an optimiser is of, nearest first."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer must be a torch.optim.Optimizer, got {type(optimizer).__name__}")
    return [x.__name__ for x in type(optimizer).__mro__ if x is getattr(torch.optim, x.__name__, None)]


def _rule(optimizer: torch.optim.Optimizer) -> Rule:
    for name in _lineage(optimizer):
        if name in RULES:
            return RULES[name]
    raise TypeError(
        f"optimizer must be one of {', '.join(RULES)}, or of a class derived from one, got {type(optimizer).__name__}; "
        "divide the gradients instead"
    )


def _times(value: Any, factor: float, power: int) -> Any:
    """value * factor^power, rounded once where factor^|power| is exact."""
    return value * factor**power if power > 0 else value / factor**-power


def _scaled(rule: Rule, group: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """The settings of a group that change."""
    powers = dict(rule.settings)
    if "lr" in powers:
        powers |= dict.fromkeys(RATES, powers["lr"])
    if group.get("decoupled_weight_decay"):
        powers.pop("weight_decay", None)
    return {name: _times(group[name], factor, power) for name, power in powers.items() if group.get(name) is not None}


def _factor(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")
    return float(value)


@torch.no_grad()
def scale_hyperparameters(optimizer: torch.optim.Optimizer, factor: float) -> None:
    """Make an optimiser take gradients of a loss scaled by a factor as they are, and update as unscaled ones would.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        SGD, ASGD: the learning rate is divided by the factor. Adam, AdamW, NAdam, SparseAdam, Adamax, RMSprop, Adagrad,
        Muon: the rate stays, epsilon is multiplied. Adadelta: both, epsilon by the square. Rprop: nothing. Weight decay
        that is added to the gradient is multiplied, decoupled one stays. Moments collected so far, and the defaults of
        groups yet to come, follow.
    factor : float
        Of the gradients from now on over those until now; after a factor of 8, 2 makes 16 and 1/8 undoes it.

    Raises
    ------
    TypeError
        For another optimiser: RAdam, Adafactor and LBFGS do not scale.
    ValueError
        If the factor is not positive and finite, or a setting or moment overflows. Nothing is changed then.

    Notes
    -----
    The updates are the same bits where the factor is a power of two and nothing underflows. In half precision the new
    settings may vanish: see `check_hyperparameters`. Rates that schedulers keep in the optimiser's groups are divided;
    a scheduler keeps others in itself, and so is to be made afterwards.

    Source
    ------
    Graphcore, "Training a model using half- and mixed-precision", Techniques for specific optimisers.
    """
    rule, factor = _rule(optimizer), _factor("factor", factor)
    settings = [(group, _scaled(rule, group, factor)) for group in (*optimizer.param_groups, optimizer.defaults)]
    for _, changed in settings:
        for name, value in changed.items():
            if not math.isfinite(value):
                raise ValueError(f"factor {factor:g} makes {name} {float(value)}")
    moments = []
    for state in optimizer.state.values():
        for name in rule.state.keys() & state.keys():
            moment = state[name]
            if isinstance(moment, torch.Tensor):
                scaled = _times(moment.double(), factor, rule.state[name])
                if bool((scaled.abs() > torch.finfo(moment.dtype).max).logical_and(moment.isfinite()).any()):
                    raise ValueError(f"factor {factor:g} makes {name} overflow {moment.dtype}")
                moments.append((moment, scaled))
    for group, changed in settings:
        group.update(changed)
    for moment, scaled in moments:
        moment.copy_(scaled)


# -- numbers that do not survive the format --------------------------------------------------------------------------

MUCH = 0.05
"""Relative change that is reported. Twice what a decay of 0.999 suffers in half (1 - 0.999 is off by 2.3 %), which trains."""

Kind = Literal["zero", "one", "overflow", "changed"]


@dataclass(frozen=True)
class Finding:
    """A number that the format of the parameters does not hold.

    Attributes
    ----------
    group : int
        Index of the parameter group.
    name : str
        The setting, what the optimiser computes of it ("1 - beta2", "1 - lr*weight_decay"), or "grad**2".
    dtype : torch.dtype
        The format.
    value : float
        The number; of squares, the largest that is concerned, weight of the average included.
    becomes : float
        What the format has for it.
    kind : str
        "zero", "one": all of it, or of its distance from 1, is lost; "overflow"; "changed": by more than 5 %.
    share : float
        Of the nonzero gradients concerned; 1 for settings.
    message : str
        What follows, or what to do.
    """

    group: int
    name: str
    dtype: torch.dtype
    value: float
    becomes: float
    kind: Kind
    message: str
    share: float = 1.0

    def __str__(self) -> str:
        return f"group {self.group}: {self.name} = {self.value:.6g} becomes {self.becomes:.6g} in {self.dtype}; {self.message}"


def check_hyperparameters(
    optimizer: torch.optim.Optimizer,
    dtype: torch.dtype | str | None = None,
    *,
    loss_scale: float = 1.0,
    environment: Environment | None = None,
) -> list[Finding]:
    """What of an optimiser's numbers is lost in the format of its parameters, as `emulate` rounds them.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        Any. Learning rate, epsilon, weight decay, momentum and the decays of averages, with what the optimiser
        computes of them, are rounded; with Adam, RMSprop and others that square gradients, so are the weighted squares
        of the gradients that the parameters have now.
    dtype : torch.dtype or str, optional
        float16, bfloat16 or float32, or the name of one: the parameters are taken to be in it. None: each in its own.
    loss_scale : float
        What would be if gradients were multiplied by this and `scale_hyperparameters` called with it.
    environment : Environment, optional
        Whose rounding, overflow and flushing of subnormals hold; stochastic rounding leaves settings to the nearest, and
        squares are rounded so here. None: the one in force. Its status and streams stay as they are.

    Returns
    -------
    list of Finding
        In the order of groups; empty if all is well. float64 parameters have none.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter and the accepted values.

    Source
    ------
    Graphcore, "Training a model using half- and mixed-precision", Avoiding numerical issues: learning rates and epsilons
    that underflow, sums of squares that overflow.
    """
    lineage = _lineage(optimizer)
    taken = None if dtype is None else as_dtype("dtype", dtype, (torch.float16, torch.bfloat16, torch.float32))
    check_environment(environment)
    scale, env = _factor("loss_scale", loss_scale), environment or current_environment()
    rule = _rule(optimizer) if scale != 1 else None
    squares = next((SQUARES[name] for name in lineage if name in SQUARES), None)
    found: list[Finding] = []
    for index, group in enumerate(optimizer.param_groups):
        settings = {**group, **(_scaled(rule, group, scale) if rule else {})}
        divided = float(group["lr"]) if rule and "lr" in rule.settings else None
        numbers = dict(_numbers(settings, bool(group.get("decoupled_weight_decay") or DECOUPLED & set(lineage))))
        for kind in dict.fromkeys(taken or p.dtype for p in group["params"]):
            if kind not in FORMATS:
                continue
            for name, value in numbers.items():
                found.extend(_setting(index, name, value, kind, divided, env))
            if squares is not None:
                weight = numbers[f"1 - {squares}"] if squares else 1.0
                gradients = [p.grad for p in group["params"] if p.grad is not None and (taken or p.dtype) == kind]
                found.extend(_squares(index, weight, gradients, kind, scale, env))
    return found


SQUARES = {"RAdam": "beta2"} | {name: rule.squares for name, rule in RULES.items() if rule.squares is not None}
DECOUPLED = {"AdamW", "Muon", "Adafactor"}
AVERAGES = ("momentum", "beta1", "beta2", "alpha", "rho")


def _numbers(group: Mapping[str, Any], decoupled: bool) -> Iterator[tuple[str, float]]:
    """(name, number) of what tensors are multiplied by or added to."""
    group = dict(group)
    if "betas" in group:
        group["beta1"], group["beta2"] = group["betas"]
    if "lambd" in group:
        del group["alpha"]  # an exponent, in ASGD
    rate, decay = float(group.get("lr", 0)), float(group.get("weight_decay") or 0)
    yield "lr", rate
    if decoupled:
        yield "1 - lr*weight_decay", 1 - rate * decay
    else:
        yield "weight_decay", decay
    if isinstance(group.get("eps"), (int, float)):
        yield "eps", float(group["eps"])
    for name in AVERAGES:
        if name in group:
            value = float(group[name])
            if name != "beta1":  # which is a weight of 1 - beta1 only
                yield name, value
            if name != "momentum":
                yield f"1 - {name}", 1 - value
    if group.get("momentum") and group.get("dampening"):
        yield "1 - dampening", 1 - float(group["dampening"])


def _setting(
    index: int, name: str, value: float, dtype: torch.dtype, divided: float | None, env: Environment
) -> Iterator[Finding]:
    """At most one finding. `divided`: the learning rate before a loss scale divided it."""
    fmt = FORMATS[dtype].format
    near_one = name in AVERAGES or name == "1 - lr*weight_decay"
    if value == 0 or (near_one and value == 1):
        return
    code, raised = constant(value, fmt, env.settings)
    becomes = float(bits.decode(code, fmt))
    if abs(becomes) < fmt.tiny and env.for_format(fmt.name).daz:
        becomes = 0.0
    kind: Kind
    if raised & Flags.OVERFLOW:
        kind = "overflow"
    elif becomes == 0:
        kind = "zero"
    elif near_one and becomes == 1:
        kind = "one"
    elif abs(becomes - value) > MUCH * abs(value) or (near_one and abs(becomes - value) > MUCH * abs(1 - value)):
        kind = "changed"
    else:
        return
    yield Finding(index, name, dtype, value, becomes, kind, _advice(name, kind, fmt, divided))


def _advice(name: str, kind: Kind, fmt: Format, divided: float | None) -> str:
    if kind == "overflow":
        return f"the largest number is {fmt.max:.6g}"
    if name == "1 - lr*weight_decay":
        return "weights do not decay" if kind == "one" else "weights decay at another rate"
    if name in AVERAGES:
        below = f"the largest number below 1 is {1 - fmt.epsneg:.6g}"
        return f"the average never forgets; {below}" if kind == "one" else "so much more changes its distance from 1"
    if name == "eps":
        return f"{_power_of_ten(fmt.tiny):g} is the least power of ten among its normal numbers"
    if name == "lr" and divided is not None:
        return f"it is a normal number up to a loss scale of {divided / fmt.tiny:.3g}"
    return f"the smallest normal number is {fmt.tiny:.3g}"


def _power_of_ten(least: float) -> float:
    """The least power of ten that is not smaller."""
    exponent = math.floor(math.log10(least)) - 1
    while float(f"1e{exponent}") < least:
        exponent += 1
    return float(f"1e{exponent}")


def _squares(
    index: int, weight: float, gradients: list[torch.Tensor], dtype: torch.dtype, scale: float, env: Environment
) -> Iterator[Finding]:
    """(weight*g)*g, as optimisers add it to an average: rounded once, of weight*g in float32."""
    values = [
        (g.coalesce().values() if g.is_sparse else g).detach().double().flatten().numpy(force=True) for g in gradients
    ]
    g = np.concatenate([np.empty(0), *values]) * scale
    g = g[np.isfinite(g) & (g != 0)]
    if not g.size:
        return
    fmt = FORMATS[dtype].format
    settings: Any = {"environment": constants(env.settings, fmt), "flags": "each"}
    codes, raised = bits.encode(g, fmt, **settings)
    if weight == 1:
        square, flags = bits.mul(codes, codes, fmt, **settings)
    else:
        factor = constant(weight, fmt, env.settings)[0]
        product, _ = bits.mul(codes, factor, fmt, out_format=float32, **settings)
        square, flags = bits.mul(product, codes, float32, b_format=fmt, out_format=fmt, **settings)
    raised = raised | flags
    becomes = bits.decode(square, fmt)
    exact = weight * g * g
    remedy = "divide the gradients instead" if scale != 1 else "keep the parameters in float32"
    for kind, hit, what in (
        ("overflow", (raised & int(Flags.OVERFLOW)) != 0, "overflow"),
        ("zero", becomes == 0, "vanish"),
    ):
        if hit.any():
            worst = int(np.argmax(np.where(hit, exact, -1.0)))
            share = float(np.count_nonzero(hit) / g.size)
            message = f"of {g.size} nonzero gradients, the squares of {np.count_nonzero(hit)} {what}; {remedy}"
            yield Finding(
                index, "grad**2", dtype, float(exact[worst]), float(becomes[worst]), kind, message, share  # type: ignore[arg-type]
            )  # fmt: skip


# -- the largest loss scale ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LossScaleSearch:
    """What `find_loss_scale` found.

    Attributes
    ----------
    scale : float
        The largest that passed; the next one did not, unless the limit was reached.
    tried : tuple of float
        All, in the order in which they were tried.
    flags : Flags
        What the next scale raised; none at the limit.
    trap : OperatorTrap, optional
        Where that struck. None at the limit, and where a number beside a tensor, not an operator, raised the flag.
    """

    scale: float
    tried: tuple[float, ...]
    flags: Flags
    trap: OperatorTrap | None


@contextmanager
def _own_gradients(parameters: Iterable[torch.Tensor]) -> Iterator[Callable[[], None]]:
    """Within it, what is yielded clears the gradients; at the end they are what they were."""
    kept = [(p, p.grad) for p in parameters]

    def clear() -> None:
        for p, _ in kept:
            p.grad = None

    try:
        yield clear
    finally:
        for p, gradient in kept:
            p.grad = gradient


class _Headroom:
    """What operations of the backward pass leave between their largest results and the largest numbers of their formats."""

    def __init__(self) -> None:
        self.least = math.inf

    def __call__(self, operation: Operation) -> None:
        formats = [x for x in operation.operands if isinstance(x, Format)]
        fmt = operation.options.get("out_format") or (formats[-1] if formats else None)
        if not operation.backward or fmt is None or operation.result.dtype != fmt.dtype:
            return
        magnitudes = operation.result & fmt.dtype.type(~fmt.sign_bit & (1 << fmt.bits) - 1)
        largest = float(bits.decode(magnitudes.max(initial=0), fmt))
        if largest > 0:
            self.least = min(self.least, fmt.max / largest)


def _last_passing(count: int, passes: Callable[[int], bool], guess: int | None) -> int:
    """The last of 0 ... count - 1 that passes, as 0 does and all do below one that passes.

    Asked first are the guess's successor and the guess, or if that passes the next; then the middle of what is left.
    """
    passed, failed, informed = 0, count, 0 if guess is None else 2
    place = 0 if guess is None else guess + 1
    while failed - passed > 1:
        place = min(max(place, passed + 1), failed - 1) if informed else (passed + failed) // 2
        informed -= bool(informed)
        if passes(place):
            passed, place = place, place + 1
        else:
            failed, place = place, place - 1
    return passed


def find_loss_scale(
    backward: Callable[[float], Any],
    environment: Environment | None = None,
    *,
    start: float = 1.0,
    factor: float = 2.0,
    most: float = 2.0**24,
    matmul: Accumulator | Callable[[Format], Accumulator] | None = None,
    convolution: Accumulator | Callable[[Format], Accumulator] | None = None,
    flags: Flags | str | tuple[str, ...] = (Flags.OVERFLOW | Flags.DIVBYZERO | Flags.INVALID),
    parameters: Iterable[torch.Tensor] = (),
    use_stable_statistics: bool = True,
) -> LossScaleSearch:
    """The largest loss scale without overflow: all exceptions on, at scales around the one at which they should strike.

    How much room the largest gradients have at the first scale says where to look: three attempts where they grow as the
    scale does, some more where sums overflow within, or numbers.

    Parameters
    ----------
    backward : callable
        backward(scale) computes the loss, multiplies it by the scale, and calls `backward()` on it, without an update.
        It is called for each scale that is tried inside an `emulate` of its own. What overflows at one scale is taken
        to overflow at greater ones. Running statistics of norms are its own concern.
    environment : Environment, optional
        Every attempt has its settings, a status of its own, and the same random numbers; the numbers of PyTorch's
        generator, which dropout draws, are the same too. None: the one in force.
    start, factor, most : float
        The scales: start, start*factor, ..., none above `most`. The first is always tried.
    matmul, convolution, use_stable_statistics
        As of `emulate`.
    flags : Flags, str or iterable of str
        What counts as an overflow. They are read, not the numbers, so it is found where overflow saturates too. float32
        tensors raise none.
    parameters : iterable of Tensor, optional
        Gradients of these start from None in each attempt, and are put back at the end. Others add up over attempts.

    Returns
    -------
    LossScaleSearch

    Raises
    ------
    RuntimeError
        If the first scale does not pass.
    TypeError, ValueError
        Naming the parameter.

    Source
    ------
    Graphcore, "Training a model using half- and mixed-precision", Underflowing gradients and loss scaling: use the
    highest factor that does not overflow; enable all floating-point exceptions and raise it until overflows occur.

    >>> weight = torch.nn.Parameter(torch.ones(1))
    >>> def backward(scale):
    ...     (weight.half() * 3).sum().float().mul(scale).backward()
    >>> found = find_loss_scale(backward, Environment(overflow="saturate"), parameters=[weight])
    >>> found.scale, found.flags, found.trap.operator, found.trap.backward
    (16384.0, <Flags.OVERFLOW: 4>, 'aten.mul.Tensor', True)
    """
    if not callable(backward):
        raise TypeError(f"backward must be a function of the scale, got {backward!r}")
    check_environment(environment)
    start, factor, most = _factor("start", start), _factor("factor", factor), _factor("most", most)
    if factor <= 1:
        raise ValueError(f"factor must be greater than 1, got {factor}")
    if most < start:
        raise ValueError(f"most must be at least start, {start:g}, got {most:g}")
    wanted = as_flags(flags)
    if not wanted:
        raise ValueError(f"flags must name at least one flag, got {flags!r}; accepted: {', '.join(Flags.__members__)}")
    settings = environment or current_environment()
    scales = [start]
    while scales[-1] * factor <= most:
        scales.append(scales[-1] * factor)
    tried: list[float] = []
    struck: dict[int, tuple[Flags, OperatorTrap | None]] = {}
    headroom = _Headroom()
    with _own_gradients(parameters) as clear:

        def passes(place: int) -> bool:
            tried.append(scales[place])
            attempt, trap = settings.replace(traps=wanted), None
            clear()
            with torch.random.fork_rng(devices=[]):
                try:
                    with emulate(
                        attempt,
                        matmul,
                        convolution,
                        record=headroom if place == 0 else False,
                        use_stable_statistics=use_stable_statistics,
                    ):
                        backward(scales[place])
                except OperatorTrap as found:
                    trap = found.with_traceback(None)  # whose frames hold the graph
            struck[place] = attempt.status.flags & wanted, trap
            return not struck[place][0]

        if not passes(0):
            raised, trap = struck[0]
            where = str(trap) if trap else f"{raised} raised by a number beside a tensor"
            raise RuntimeError(f"start={start:g} does not pass: {where}; start lower") from trap
        guess = None
        if math.isfinite(headroom.least):
            guess = min(math.floor(math.log(headroom.least) / math.log(factor)), len(scales) - 1)
        last = _last_passing(len(scales), passes, guess)
    return LossScaleSearch(scales[last], tuple(tried), *struck.get(last + 1, (Flags(0), None)))
