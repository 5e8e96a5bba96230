"""Loss scalers: MindSpore's rules on random traces, and flags where saturation leaves no infinity."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

import softfloat  # noqa: E402 -- after the skip
from softfloat import Environment, Flags  # noqa: E402
from softfloat.torch import DynamicLossScaleManager, FixedLossScaleManager, GradScaler, emulate  # noqa: E402


class Trainee:
    """One parameter whose gradient is infinite where told."""

    def __init__(self) -> None:
        self.parameter = torch.nn.Parameter(torch.zeros(1))
        self.optimiser = torch.optim.SGD([self.parameter], lr=1.0)

    def step(self, scaler: GradScaler, overflow: bool) -> bool:
        """One step; whether it was taken."""
        before = self.parameter.item()
        scaler.scale(torch.ones(1))  # the scale comes to be with the first loss
        self.parameter.grad = torch.full((1,), torch.inf if overflow else scaler.get_scale())
        scaler.step(self.optimiser)
        scaler.update()
        return self.parameter.item() != before


def mindspore(scale: float, factor: float, window: int, trace: list[bool]) -> Iterator[float]:
    """The manager's rule, in the words of its documentation: the scale after each step."""
    last_overflow, step = 0, 1
    for overflow in trace:
        if overflow:
            scale, last_overflow = max(scale / factor, 1.0), step
        elif (step - last_overflow) % window == 0:
            scale *= factor
        step += 1
        yield scale


@pytest.mark.parametrize("block", range(10))
def test_the_dynamic_manager_on_random_traces(block: int) -> None:
    """2 000 traces in all; scales near 1 often."""
    rng = random.Random(block)
    for _ in range(200):
        scale, factor, window = 2.0 ** rng.randrange(0, 25), rng.choice([2.0, 4.0]), rng.randrange(1, 8)
        trace = [rng.random() < rng.choice([0.1, 0.5]) for _ in range(24)]
        scaler, trainee = DynamicLossScaleManager(scale, factor, window), Trainee()
        for overflow, expected in zip(trace, mindspore(scale, factor, window, trace), strict=True):
            assert trainee.step(scaler, overflow) is not overflow
            assert scaler.get_scale() == expected


def test_scripts_that_tell_managers_of_overflows_themselves() -> None:
    """By MindSpore's names of methods, before and after a loss was scaled; the scale is that of `step` and `update`."""
    rng = random.Random(0)
    for case in range(200):
        scale, factor, window = 2.0 ** rng.randrange(0, 25), rng.choice([2.0, 4.0]), rng.randrange(1, 8)
        trace = [rng.random() < rng.choice([0.1, 0.5]) for _ in range(24)]
        dynamic, fixed = DynamicLossScaleManager(scale, factor, window), FixedLossScaleManager(scale, case % 2 == 0)
        if case % 3:
            dynamic.scale(torch.ones(1))
        assert (dynamic.get_loss_scale(), dynamic.get_drop_overflow_update()) == (scale, True)
        for overflow, expected in zip(trace, mindspore(scale, factor, window, trace), strict=True):
            dynamic.update_loss_scale(overflow)
            fixed.update_loss_scale(overflow)
            assert (dynamic.get_loss_scale(), fixed.get_loss_scale()) == (expected, scale)
        assert fixed.get_drop_overflow_update() is (case % 2 == 0)


def test_a_manager_that_was_told_lowers_the_flags_and_looks_at_gradients_again() -> None:
    env = Environment()
    manager, trainee = DynamicLossScaleManager(8.0, environment=env), Trainee()
    env.status.raise_flags(Flags.OVERFLOW)
    manager.update_loss_scale(False)
    assert (manager.get_loss_scale(), env.status.flags) == (8.0, Flags(0))
    assert not trainee.step(manager, True)
    assert manager.get_loss_scale() == 4.0


def test_defaults_are_mindspores() -> None:
    scaler = DynamicLossScaleManager()
    assert (scaler.get_scale(), scaler.get_growth_factor(), scaler.get_growth_interval()) == (2.0**24, 2.0, 2000)
    assert scaler.get_backoff_factor() == 0.5
    fixed = FixedLossScaleManager()
    assert (fixed.get_scale(), fixed.drop_overflow_update) == (128.0, True)


def test_a_thousand_overflows_in_a_row_are_one_too_few_for_an_error() -> None:
    scaler, trainee = DynamicLossScaleManager(2.0), Trainee()
    for _ in range(1000):
        trainee.step(scaler, True)
    assert trainee.step(scaler, False)
    for _ in range(1000):
        trainee.step(scaler, True)
    with pytest.raises(
        RuntimeError, match="1001 steps in a row overflowed, the last at a loss scale of 1; at most 1000"
    ):
        trainee.step(scaler, True)


def test_a_factor_and_a_window_by_position() -> None:
    """As MindSpore's tutorial passes 4 and 3000: from a scale of 4 to the least in one overflow, and 3000 times it in one go."""
    for arguments, scales in (({}, [2.0**22, 2.0**22]), ({"by position": True}, [1.0, 3000.0])):
        scaler = (
            DynamicLossScaleManager(4, 3000)
            if arguments
            else DynamicLossScaleManager(scale_factor=4, scale_window=3000)
        )
        trainee = Trainee()
        trainee.step(scaler, True)
        found = [scaler.get_scale()]
        for _ in range(2000):
            trainee.step(scaler, False)
        assert [*found, scaler.get_scale()] == scales


@pytest.mark.parametrize("drop", [True, False])
def test_the_fixed_manager(drop: bool) -> None:
    scaler, trainee = FixedLossScaleManager(64.0, drop), Trainee()
    assert trainee.step(scaler, False)
    assert trainee.step(scaler, True) is not drop
    assert scaler.get_scale() == 64.0


def gradient(env: Environment, scaler: torch.amp.GradScaler, weight: torch.nn.Parameter) -> None:
    """That of 2 * weight, through half precision."""
    with emulate(env):
        scaler.scale((weight.half() * 2).sum().float()).backward()


@pytest.mark.parametrize("overflow", ["saturate", "infinity", "nan"])
def test_flags_tell_what_saturation_hides(overflow: str) -> None:
    """A gradient of 2 * 2^16 is 65504, and no infinity, where overflow saturates."""
    outcomes = {}
    for name in ("plain", "flags"):
        env, weight = Environment(overflow=overflow), torch.nn.Parameter(torch.ones(1))
        scaler = (
            torch.amp.GradScaler("cpu", 2.0**16) if name == "plain" else GradScaler("cpu", 2.0**16, environment=env)
        )
        optimiser = torch.optim.SGD([weight], lr=1.0)
        gradient(env, scaler, weight)
        assert env.status.flags & Flags.OVERFLOW
        scaler.step(optimiser)
        scaler.update()
        outcomes[name] = weight.item() != 1.0, scaler.get_scale()
    assert outcomes["flags"] == (False, 2.0**15)
    assert outcomes["plain"] == ((True, 2.0**16) if overflow == "saturate" else (False, 2.0**15))


def test_flags_are_lowered_and_others_stay() -> None:
    env, weight = Environment(overflow="saturate"), torch.nn.Parameter(torch.ones(1))
    scaler, optimiser = GradScaler("cpu", 2.0**16, environment=env), torch.optim.SGD([weight], lr=1.0)
    for expected in (2.0**15, 2.0**14, 2.0**14):
        gradient(env, scaler, weight)
        scaler.step(optimiser)
        scaler.update()
        optimiser.zero_grad()
        assert scaler.get_scale() == expected
        assert not env.status.flags & (Flags.OVERFLOW | Flags.INVALID)
    assert env.status.flags & Flags.INEXACT
    assert weight.item() == -1.0


def test_the_environment_in_force() -> None:
    weight = torch.nn.Parameter(torch.ones(1))
    with softfloat.environment(overflow="saturate") as env:
        scaler, optimiser = GradScaler("cpu", 2.0**16), torch.optim.SGD([weight], lr=1.0)
        gradient(env, scaler, weight)
        scaler.step(optimiser)
        scaler.update()
    assert scaler.get_scale() == 2.0**15


def test_disabled() -> None:
    scaler, trainee = GradScaler("cpu", enabled=False, environment=Environment()), Trainee()
    trainee.parameter.grad = torch.ones(1)
    scaler.step(trainee.optimiser)
    scaler.update()
    assert trainee.parameter.item() == -1.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GradScaler(environment="ipu"), "environment must be a softfloat.Environment or None, got str"),
        (lambda: GradScaler(minimum=-1.0), "minimum must be at least 0 and finite, got -1.0"),
        (lambda: GradScaler(minimum="a"), "minimum must be a number, got 'a'"),
        (lambda: GradScaler(init_scale="a"), "init_scale must be a number, got 'a'"),
        (lambda: GradScaler(growth_factor=1.0), "growth_factor must be greater than 1 and finite, got 1.0"),
        (lambda: GradScaler(backoff_factor=1.0), "backoff_factor must be below 1, got 1.0"),
        (lambda: GradScaler(growth_interval="a"), "growth_interval must be a positive integer, got 'a'"),
        (lambda: GradScaler(most_overflows="a"), "most_overflows must be a positive integer or None, got 'a'"),
        (lambda: DynamicLossScaleManager("a"), "init_loss_scale must be a number, got 'a'"),
        (lambda: DynamicLossScaleManager(scale_factor="a"), "scale_factor must be a number, got 'a'"),
        (lambda: FixedLossScaleManager("a"), "loss_scale must be a number, got 'a'"),
        (lambda: FixedLossScaleManager(float("inf")), "loss_scale must be at least 1 and finite, got inf"),
        (lambda: FixedLossScaleManager(2.0, "no"), "drop_overflow_update must be True or False, got 'no'"),
        (lambda: GradScaler(most_overflows=0), "most_overflows must be a positive integer or None, got 0"),
        (lambda: GradScaler(flags="SOME"), "flags has no flag 'SOME'"),
        (lambda: DynamicLossScaleManager(0.5), "init_loss_scale must be at least 1 and finite, got 0.5"),
        (lambda: DynamicLossScaleManager(scale_factor=1), "scale_factor must be greater than 1 and finite, got 1"),
        (lambda: DynamicLossScaleManager(scale_window=0), "scale_window must be a positive integer, got 0"),
        (lambda: FixedLossScaleManager().update_loss_scale(1), "overflow must be True or False, got 1"),
        (lambda: FixedLossScaleManager(float("nan")), "loss_scale must be at least 1 and finite, got nan"),
    ],
)
def test_errors_name_the_argument(make: object, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()  # type: ignore[operator]
