"""MindSpore's Model: the same bits as a loop written out, callbacks in their order, and what it refuses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from softfloat import Environment, Flags  # noqa: E402 -- after the skip
from softfloat.torch import (  # noqa: E402
    Accuracy,
    Callback,
    DynamicLossScaleManager,
    FixedLossScaleManager,
    GradScaler,
    InvalidLossError,
    Loss,
    LossMonitor,
    Metric,
    Model,
    RunContext,
    TrainingStep,
    auto_mixed_precision,
    emulate,
    to_float,
)

nn, F = torch.nn, torch.nn.functional
SINGLE, HALF = torch.float32, torch.float16
WATCHED = Flags.OVERFLOW | Flags.INVALID


def network() -> Any:
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4))


def data(batches: int = 3) -> list[tuple[Any, Any]]:
    generator = torch.Generator().manual_seed(5)
    return [
        (torch.randn(6, 1, 6, 6, generator=generator), torch.randint(0, 4, (6,), generator=generator))
        for _ in range(batches)
    ]


def momentum(model: Any) -> Any:
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def codes(tensors: Any) -> list[Any]:
    return [t.detach().clone().view(torch.int32) if t.dtype == SINGLE else t.clone() for t in tensors]


def state(model: Any) -> list[Any]:
    """Bits of parameters, gradients and running statistics."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return codes([*model.parameters(), *gradients, *model.buffers()])


class Keep(Callback):
    """Every step's outcome."""

    def __init__(self) -> None:
        self.steps: list[TrainingStep] = []

    def step_end(self, run_context: RunContext) -> None:
        self.steps.append(run_context.original_args().net_outputs)

    @property
    def outcomes(self) -> list[tuple[float, bool, float]]:
        return [(step.loss.item(), step.overflow, step.scale) for step in self.steps]


# -- bits ------------------------------------------------------------------------------------------------------------

LEVELS = {
    "O0": ("O0", {"amp_level": "O0"}),
    "O1": ("O1", {"amp_level": "O1"}),
    "O2": ("O2", {"amp_level": "O2"}),
    "O3": ("O3", {"amp_level": "O3"}),
    "auto on GPU": ("O2", {"amp_level": "auto"}),
    "auto on Ascend": ("O3", {"amp_level": "auto", "device_target": "Ascend"}),
}
SCALE = 2.0**17  # overflows at first
MANAGERS: dict[str, Callable[[Environment], Any] | None] = {
    "the level's": None,
    "none": lambda env: None,
    "fixed": lambda env: FixedLossScaleManager(1024.0, environment=env),
    "fixed, too large": lambda env: FixedLossScaleManager(2.0**24, environment=env),
    "fixed, overflows kept": lambda env: FixedLossScaleManager(2.0**24, False, environment=env),
    "dynamic": lambda env: DynamicLossScaleManager(SCALE, 4, 2, environment=env),
}


def by_hand(level: str, manager: str, env: Environment, epochs: int) -> tuple[list[Any], Any]:
    """Forward, scaled backward, division, the look at flags and gradients, the scale's rule, the update: no class of softfloat's but the casts."""
    model = auto_mixed_precision(network(), level)
    optimiser = momentum(model)
    if manager == "the level's":
        manager = "level's dynamic" if level == "O2" else "none"
    starts = {"none": 1.0, "fixed": 1024.0, "dynamic": SCALE}
    scale = starts.get(manager, 2.0**24)
    factor, window = (4.0, 2) if manager == "dynamic" else (2.0, 2000)
    found, good = [], 0
    model.train()
    for _ in range(epochs):
        for images, labels in data():
            optimiser.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            if manager == "none":
                loss.backward()
                optimiser.step()
                found.append((loss.item(), False, 1.0))
                continue
            env.status.clear(WATCHED)
            (loss * scale).backward()
            overflow = bool(env.status.flags & WATCHED)
            for p in model.parameters():
                p.grad *= 1 / scale
                overflow |= not bool(torch.isfinite(p.grad).all())
            if manager == "fixed, overflows kept":
                overflow = False
            if not overflow:
                optimiser.step()
            env.status.clear(WATCHED)
            found.append((loss.item(), overflow, scale))
            if "dynamic" in manager:
                good = 0 if overflow else good + 1
                scale = max(scale / factor, 1.0) if overflow else scale * factor if good % window == 0 else scale
    return found, model


@pytest.mark.parametrize("manager", MANAGERS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_training_is_the_loop_written_out(level: str, manager: str) -> None:
    """With stochastic rounding: the same operations in the same order, or bits would differ."""
    name, options = LEVELS[level]
    envs = [Environment(overflow="saturate", rounding="stochastic", seed=9) for _ in range(2)]
    make = MANAGERS[manager]
    own = {"environment": envs[0]} if make is None else {"loss_scale_manager": make(envs[0])}
    trained, keep = network().eval(), Keep()
    model = Model(trained, nn.CrossEntropyLoss(), momentum(trained), **options, **own)
    with emulate(envs[0]):
        model.train(2, data(), callbacks=keep)
    with emulate(envs[1]):
        expected, plain = by_hand(name, manager, envs[1], 2)
    assert keep.outcomes == expected
    assert all(map(torch.equal, state(trained), state(plain)))
    assert envs[0].status == envs[1].status
    overflows = {overflow for _, overflow, _ in expected}
    if name in ("O2", "O3"):  # the cases are what their names say
        assert overflows == {"fixed, too large": {True}, "dynamic": {True, False}}.get(
            manager, {True} if manager == "the level's" and name == "O2" else {False}
        )


def test_steps_tell_which_flags_they_lowered() -> None:
    """With a manager the register is clear after a step; what was raised is in the step's outcome."""
    for scale, raised in ((1024.0, False), (2.0**24, True)):
        for keep_update in (False, True):
            env, net, keep = Environment(overflow="saturate"), network(), Keep()
            manager = FixedLossScaleManager(scale, not keep_update, environment=env)
            model = Model(net, nn.CrossEntropyLoss(), momentum(net), amp_level="O3", loss_scale_manager=manager)
            with emulate(env):
                model.train(1, data(1), keep)
            (step,) = keep.steps
            assert bool(step.flags & Flags.OVERFLOW) is raised
            assert not step.flags & ~WATCHED
            assert step.overflow is (raised and not keep_update)
            assert not env.status.flags & WATCHED


def test_flags_of_the_forward_pass_are_told_too() -> None:
    """They count for nothing, but they were raised."""

    class Large(nn.Linear):
        def forward(self, x: Any) -> Any:
            torch.full((1,), 60000.0).half().mul(2)
            return super().forward(x)

    env, net, keep = Environment(), Large(2, 2), Keep()
    manager = FixedLossScaleManager(environment=env)
    model = Model(net, F.cross_entropy, momentum(net), loss_scale_manager=manager)
    with emulate(env):
        model.train(1, [(torch.ones(1, 2), torch.tensor([0]))], keep)
    assert (keep.steps[0].flags, keep.steps[0].overflow) == (Flags.OVERFLOW, False)


def test_epochs_may_be_trained_one_by_one() -> None:
    found = []
    for parts in ([(3, 0)], [(1, 0), (3, 1)]):
        env, net, keep, numbers = Environment(rounding="stochastic", seed=2), network(), Keep(), []

        class Number(Callback):
            def step_end(self, run_context: RunContext, numbers: list[Any] = numbers) -> None:
                at = run_context.original_args()
                numbers.append((at.cur_epoch_num, at.cur_step_num, at.epoch_num, at.batch_num))

        model = Model(net, F.cross_entropy, momentum(net), amp_level="O2", environment=env)
        for last, done in parts:
            with emulate(env):
                model.train(last, data(2), [keep, Number()], initial_epoch=done)
        found.append((keep.outcomes, [n[:2] for n in numbers], [x.tolist() for x in state(net)]))
    assert found[0] == found[1]
    assert found[0][1] == [(1, 1), (1, 2), (2, 3), (2, 4), (3, 5), (3, 6)]


def test_one_layer_in_half() -> None:
    """MindSpore's manual mixed precision: a model of level O0 whose network has a layer set apart."""
    env, net = Environment(), network()
    to_float(net[4], HALF)
    model = Model(net, F.cross_entropy, momentum(net), {"loss"}, loss_scale_manager=None)
    with emulate(env, record=True) as emulation:
        model.train(1, data(1))
    assert {o.module.partition(".param")[0] for o in emulation.trace if o.module} == {"Sequential.4"}
    assert model.predict(data(1)[0][0]).dtype == HALF


@pytest.mark.parametrize(
    ("options", "norm"),
    [
        ({"amp_level": "O2"}, False),
        ({"amp_level": "O2", "keep_batchnorm_fp32": False}, True),
        ({"amp_level": "O3"}, True),
        ({"amp_level": "O3", "keep_batchnorm_fp32": True}, False),
    ],
)
def test_batch_norms(options: dict[str, Any], norm: bool) -> None:
    """Whether parameters of a batch norm are rounded to half."""
    net = network()
    with torch.no_grad():
        net[1].weight.fill_(1 + 2.0**-12)
    Model(net, F.cross_entropy, momentum(net), **options)
    assert (net[1].weight[0].item() == 1) is norm


def test_without_a_loss_function_the_network_returns_it() -> None:
    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()

        def forward(self, images: Any, labels: Any, weight: float = 1.0) -> Any:
            return F.cross_entropy(self.inner(images).float(), labels) * weight

    env, whole, parts = Environment(), Whole(), network()
    with emulate(env):
        Model(whole, None, momentum(whole), amp_level="O2", environment=env).train(1, [(*x, 1.0) for x in data()])
        Model(parts, F.cross_entropy, momentum(parts), amp_level="O2", environment=env).train(1, data())
    assert all(map(torch.equal, state(whole), state(parts)))


# -- evaluation ------------------------------------------------------------------------------------------------------


def test_evaluation() -> None:
    """Means over batches, with the running statistics; nothing changes, and modules keep their modes."""
    net = network()
    model = Model(net, F.cross_entropy, momentum(net), {"loss": Loss(), "right": Accuracy()}, amp_level="O2")
    net.train()
    net[1].eval()  # frozen on purpose
    with torch.no_grad():
        net[1].running_mean.fill_(0.25)
    before, batches = state(net), data(2)
    batches[1] = tuple(x[:2] for x in batches[1])
    with emulate(Environment()):
        model.eval(batches[:1])
        found = [model.eval(batches), model.eval(batches)]
        scores = [model.predict(x) for x, _ in batches]
    assert found[0] == found[1]
    assert [m.training for m in net] == [True, False, True, True, True]
    assert all(map(torch.equal, state(net), before))
    losses = [F.cross_entropy(s, y).item() for s, (_, y) in zip(scores, batches, strict=True)]
    right = sum(int((s.argmax(1) == y).sum()) for s, (_, y) in zip(scores, batches, strict=True))
    assert found[0] == {"loss": sum(losses) / 2, "right": right / 8}
    assert all(s.dtype == SINGLE and not s.requires_grad for s in scores)


def test_an_evaluation_within_a_training_does_not_change_it() -> None:
    found = []
    for within in (False, True):
        net = network()
        model = Model(net, F.cross_entropy, momentum(net), {"accuracy"})

        class Evaluate(Callback):
            def step_end(self, run_context: RunContext, model: Any = model, within: bool = within) -> None:
                if within:
                    model.eval(data(1))

        model.train(2, data(), Evaluate())
        found.append(state(net))
    assert all(map(torch.equal, *found))


def test_evaluation_without_an_optimiser() -> None:
    net = network()
    model = Model(net, F.cross_entropy, metrics={"acc", "loss"})
    assert list(model.eval(data(1))) == ["acc", "loss"]
    assert model.train_network is None


def test_metrics_of_ones_own() -> None:
    class Largest(Metric):
        largest = 0.0

        def clear(self) -> None:
            self.largest = -1.0

        def update(self, *inputs: Any) -> None:
            self.largest = max(self.largest, inputs[0].max().item())

        def eval(self) -> float:
            return self.largest

    net = nn.Identity()
    assert Model(net, F.cross_entropy, metrics={"largest": Largest()}).eval(
        [(torch.eye(2) * k, torch.tensor([0, 1])) for k in (2.0, 3.0, 1.0)]
    ) == {"largest": 3.0}


# -- callbacks -------------------------------------------------------------------------------------------------------


class Heard(Callback):
    """What was called, when; may ask for the end after a step."""

    def __init__(self, heard: list[Any], name: str = "", stop: int = 0) -> None:
        self.heard, self.name, self.stop = heard, name, stop

    def _note(self, what: str, context: RunContext | None = None) -> None:
        at = context and context.original_args()
        self.heard.append((self.name + what, at.cur_epoch_num, at.cur_step_num) if at else self.name + what)

    def __enter__(self) -> Heard:
        self._note("enter")
        return self

    def __exit__(self, *exception: object) -> None:
        self._note("exit")

    def begin(self, run_context: RunContext) -> None:
        self._note("begin")

    def epoch_begin(self, run_context: RunContext) -> None:
        self._note("epoch_begin", run_context)

    def step_begin(self, run_context: RunContext) -> None:
        self._note("step_begin", run_context)

    def step_end(self, run_context: RunContext) -> None:
        self._note("step_end", run_context)
        if run_context.original_args().cur_step_num == self.stop:
            run_context.request_stop()

    def epoch_end(self, run_context: RunContext) -> None:
        self._note("epoch_end", run_context)

    def end(self, run_context: RunContext) -> None:
        self._note("end")


def test_callbacks_in_their_order() -> None:
    net, heard = network(), []
    Model(net, F.cross_entropy, momentum(net)).train(2, data(1), (Heard(heard), Heard(heard, "2 ")))
    first = [x for x in heard if not str(x[0] if isinstance(x, tuple) else x).startswith("2")]
    assert first == [
        *("enter", "begin"),
        *((event, 1, step) for event, step in (("epoch_begin", 0), ("step_begin", 1), ("step_end", 1), ("epoch_end", 1))),
        *((event, 2, step) for event, step in (("epoch_begin", 1), ("step_begin", 2), ("step_end", 2), ("epoch_end", 2))),
        *("end", "exit"),
    ]  # fmt: skip
    assert heard[:4] == ["enter", "2 enter", "begin", "2 begin"]
    assert heard[-2:] == ["2 exit", "exit"]


def test_callbacks_of_an_evaluation() -> None:
    heard: list[Any] = []
    Model(network(), F.cross_entropy, metrics={"loss"}).eval(data(2), Heard(heard))
    assert [x if isinstance(x, str) else x[0] for x in heard] == [
        *("enter", "begin", "epoch_begin", "step_begin", "step_end", "step_begin", "step_end", "epoch_end", "end"),
        "exit",
    ]


def test_a_callback_may_ask_for_the_end() -> None:
    net, heard = network(), []
    Model(net, F.cross_entropy, momentum(net)).train(5, data(3), [Heard(heard, stop=4)])
    assert heard[-4:] == [("step_end", 2, 4), ("epoch_end", 2, 4), "end", "exit"]


def test_callbacks_are_left_after_an_error() -> None:
    net, heard = network(), []
    with pytest.raises(ValueError, match="train_dataset must have batches of inputs and labels, got 3 parts"):
        Model(net, F.cross_entropy, momentum(net)).train(1, [(1, 2, 3)], Heard(heard))
    assert heard == ["enter", "begin", ("epoch_begin", 1, 0), ("step_begin", 1, 1), "exit"]


def test_a_callback_may_open_the_emulation() -> None:
    """Around each step: the same bits as around the training."""
    found = []
    for inside in (False, True):
        env, net = Environment(rounding="stochastic", seed=1), network()
        emulation = emulate(env)

        class Emulated(Callback):
            def step_begin(self, run_context: RunContext, emulation: Any = emulation) -> None:
                emulation.__enter__()

            def step_end(self, run_context: RunContext, emulation: Any = emulation) -> None:
                emulation.__exit__(None, None, None)

        model = Model(net, F.cross_entropy, momentum(net), amp_level="O3")
        if inside:
            model.train(1, data(), Emulated())
        else:
            with emulation:
                model.train(1, data())
        found.append(state(net))
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize(("every", "steps"), [(0, []), (1, range(1, 9)), (3, [3, 6]), (4, [4, 8]), (9, [])])
def test_the_loss_monitor(every: int, steps: Any, capsys: pytest.CaptureFixture[str]) -> None:
    net, keep = network(), Keep()
    Model(net, F.cross_entropy, momentum(net)).train(2, data(4), [LossMonitor(every), keep])
    lines = [
        f"epoch: {(n - 1) // 4 + 1} step: {(n - 1) % 4 + 1}, loss is {keep.steps[n - 1].loss.item()}" for n in steps
    ]
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_the_loss_monitor_ends_trainings(bad: float) -> None:
    net, lines = network(), []
    losses = iter([1.0, bad])
    model = Model(net, lambda y, _: y.sum() * 0 + next(losses), momentum(net))
    with pytest.raises(InvalidLossError, match=f"^epoch: 1 step: 2: the loss is {bad}"):
        model.train(3, data(4), LossMonitor(write=lines.append))
    assert lines == ["epoch: 1 step: 1, loss is 1.0"]


# -- errors ----------------------------------------------------------------------------------------------------------


def model_with(**options: Any) -> Model:
    net = network()
    return Model(net, **{"loss_fn": F.cross_entropy, "optimizer": momentum(net), **options})


CONSTRUCTIONS: list[tuple[dict[str, Any], str]] = [
    ({"loss_fn": "mean"}, "loss_fn must be a function of outputs and labels or None, got str"),
    ({"optimizer": []}, "optimizer must be a torch.optim.Optimizer or None, got list"),
    ({"optimizer": momentum(nn.Linear(1, 1))}, "optimizer must have parameters of the network, got others alone"),
    ({"metrics": ["loss"]}, r"metrics must be a dict of metrics by name, a set of names or None, got \['loss'\]"),
    ({"metrics": {"recall"}}, "metrics may name accuracy, acc, loss; others as a dict, got 'recall'"),
    ({"metrics": {"acc": Accuracy}}, "metrics must map names to softfloat.torch.Metric instances, got 'acc'"),
    ({"metrics": {"loss"}, "loss_fn": None}, "metrics need loss_fn"),
    ({"amp_level": "O4"}, "amp_level must be one of 'O0', 'O1', 'O2', 'O3', 'auto', got 'O4'"),
    ({"amp_level": 2}, "amp_level must be one of .*, got 2"),
    ({"amp_level": "auto", "device_target": "CPU"}, "device_target must be one of GPU, Ascend for auto, got 'CPU'"),
    ({"amp_level": "O2", "optimizer": None}, "amp_level must be 'O0' without an optimizer, got 'O2'"),
    ({"optimizer": None, "loss_scale_manager": GradScaler()}, "loss_scale_manager must be None without an optimizer"),
    ({"loss_scale_manager": "dynamic"}, "loss_scale_manager must be a torch.amp.GradScaler, 'level' or None, got str"),
    ({"loss_scale_manager": DynamicLossScaleManager}, "or None, got DynamicLossScaleManager"),
    (
        {"loss_scale_manager": GradScaler(), "environment": Environment()},
        "environment must be None beside a loss_scale_manager",
    ),
    ({"environment": "ipu"}, "environment must be a softfloat.Environment or None, got str"),
    ({"amp_level": "O2", "keep_batchnorm_fp32": 1}, "keep_batchnorm_fp32 must be True, False or None, got 1"),
    ({"keep_batchnorm_fp32": False}, "keep_batchnorm_fp32 must be None at amp_level 'O0', .* got False"),
]


@pytest.mark.parametrize(("options", "words"), CONSTRUCTIONS)
def test_what_is_refused_changes_nothing(options: dict[str, Any], words: str) -> None:
    net = network()
    before = copy.deepcopy(net)
    with pytest.raises((TypeError, ValueError), match=words):
        Model(net, **{"loss_fn": F.cross_entropy, "optimizer": momentum(net), "amp_level": "O0", **options})
    assert [type(m) for m in net.modules()] == [type(m) for m in before.modules()]
    assert not any(m._forward_pre_hooks for m in net.modules())


def test_a_level_is_given_once() -> None:
    net = network()
    Model(net, F.cross_entropy, momentum(net), amp_level="O2")
    with pytest.raises(ValueError, match="has level O2 already"):
        Model(net, F.cross_entropy, momentum(net), amp_level="O3")
    Model(net, F.cross_entropy, momentum(net))  # as it is


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Model("net"), "network must be a torch.nn.Module, got str"),
        (lambda: model_with(optimizer=None).train(1, data()), "train needs the optimizer"),
        (lambda: model_with().train(0, data()), "epoch must be a positive integer, got 0"),
        (lambda: model_with().train(1.0, data()), "epoch must be a positive integer, got 1.0"),
        (lambda: model_with().train(2, data(), initial_epoch=2), "initial_epoch must be below epoch, 2, got 2"),
        (lambda: model_with().train(2, data(), initial_epoch=-1), "initial_epoch must be a non-negative integer, got -1"),
        (lambda: model_with().train(1, iter(data())), "train_dataset must be batches that can be counted .* got list_iter"),
        (lambda: model_with().train(1, data()[0][0]), "train_dataset must be batches .* got Tensor"),
        (lambda: model_with().train(1, []), "train_dataset must have at least one batch, got none"),
        (lambda: model_with().train(1, [data()[0][0]]), "train_dataset must have batches of inputs and labels, got Tensor"),
        (lambda: model_with().train(1, data(), dataset_sink_mode=True), "dataset_sink_mode must be False"),
        (lambda: model_with().train(1, data(), dataset_sink_mode=1), "dataset_sink_mode must be True or False, got 1"),
        (lambda: model_with().train(1, data(), callbacks=print), "callbacks must be a softfloat.torch.Callback, a list"),
        (lambda: model_with().train(1, data(), callbacks=[LossMonitor]), "callbacks must be a softfloat.torch.Callback"),
        (lambda: model_with().eval(data()), "eval needs metrics"),
        (lambda: model_with(metrics={"loss"}).eval([]), "valid_dataset must have at least one batch, got none"),
        (lambda: model_with(loss_fn=lambda y, _: y).train(1, data()), "loss_fn must return a tensor of one number"),
        (lambda: LossMonitor(-1), "per_print_times must be a non-negative integer, got -1"),
        (lambda: LossMonitor(write="out"), "write must be a function of a line, got 'out'"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call: Callable[[], Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        call()
