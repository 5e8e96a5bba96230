"""LeNet-5 at MindSpore's levels: the bits of a training by hand, what managers do to it, its lines, and what it refuses."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needed import needs

torch = pytest.importorskip("torch")
needs("sklearn")

from programs import Run, untimed  # noqa: E402 -- after the skip

from softfloat import Environment, Flags, accumulators  # noqa: E402
from softfloat.examples import data, lenet5  # noqa: E402
from softfloat.examples.models import LeNet5  # noqa: E402
from softfloat.torch import (  # noqa: E402
    DynamicLossScaleManager,
    FixedLossScaleManager,
    LossMonitor,
    TrainOneStepWithLossScale,
    auto_mixed_precision,
    emulate,
    private,
    to_float,
)

TINY = ("--batch-size", "4", "--limit", "8", "--json")


def parsed(*arguments: str) -> Any:
    return lenet5.PROGRAM._parser().parse_args(list(arguments))


# -- the network and its images --------------------------------------------------------------------------------------


def test_the_network_is_the_tutorials() -> None:
    model = LeNet5(channels=3)
    assert {name: tuple(p.shape) for name, p in model.named_parameters()} == {
        "conv1.weight": (6, 3, 5, 5),
        "conv2.weight": (16, 6, 5, 5),
        "fc1.weight": (120, 400),
        "fc1.bias": (120,),
        "fc2.weight": (84, 120),
        "fc2.bias": (84,),
        "fc3.weight": (10, 84),
        "fc3.bias": (10,),
    }
    assert model.fc1.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not any(layer.bias.any() for layer in (model.fc1, model.fc2, model.fc3))
    assert model.conv2.weight.abs().max() <= 1 / math.sqrt(6 * 25)
    sizes: list[tuple[int, ...]] = []
    for layer in model.children():
        layer.register_forward_hook(lambda module, args, output: sizes.append(tuple(args[0].shape[1:])))
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert sizes == [(3, 32, 32), (6, 14, 14), (400,), (120,), (84,)]


@pytest.mark.parametrize(("side", "times", "border"), [(8, 4, 0), (28, 1, 2), (32, 1, 0)])
def test_images_are_enlarged(side: int, times: int, border: int) -> None:
    images = np.random.default_rng(0).random((2, 3, side, side), np.float32) + 1
    found = lenet5.enlarged(data.Dataset("some", images, np.zeros(2), images[:1], np.ones(1)))
    assert found.train_images.shape == (2, 3, 32, 32)
    assert found.test_images.shape == (1, 3, 32, 32)
    for row, column in np.ndindex(32, 32):
        i, j = (row - border) // times, (column - border) // times
        inside = 0 <= i < side and 0 <= j < side
        expected = images[:, :, i, j] if inside else np.zeros((2, 3))
        assert np.array_equal(found.train_images[:, :, row, column], expected)


# -- bits ------------------------------------------------------------------------------------------------------------


def by_hand(level: str, manager: Any, env: Environment | None, layers: tuple[str, ...], epochs: int) -> Any:
    """The steps of a training on the first digits, by the classes that `Model` is made of."""
    digits = lenet5.enlarged(data.load("digits", limit=8))
    images, labels = torch.from_numpy(digits.train_images), torch.from_numpy(digits.train_labels)
    torch.manual_seed(0)
    network = LeNet5(1)
    for name in layers:
        layer = to_float(network.get_submodule(name), torch.float16)
        layer.register_forward_hook(lambda module, args, output: output.float())
    auto_mixed_precision(network, level)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    train = TrainOneStepWithLossScale(network, torch.nn.functional.cross_entropy, optimiser, manager and manager(env))
    rng, steps = np.random.default_rng([0, 1]), []
    accumulator = accumulators.amp("float")
    for _ in range(epochs):
        for chosen in torch.from_numpy(rng.permutation(8)).split(4):
            if env is None:
                done = train(images[chosen], labels[chosen])
            else:
                with emulate(env, matmul=accumulator, convolution=accumulator):
                    done = train(images[chosen], labels[chosen])
            steps.append((done.loss.item(), done.scale, done.overflow))
    return steps


GPU, ASCEND = {"overflow": "infinity"}, {"overflow": "saturate"}
GRADIENTS: dict[str, Any] = {"flags": ()}
CASES: dict[str, tuple[str, Any, Any, tuple[str, ...]]] = {
    "O0": ("O0", None, None, ()),
    "O2": ("O2", lambda env: DynamicLossScaleManager(environment=env, **GRADIENTS), GPU, ()),
    "O3": ("O3", None, GPU, ()),
    "auto": ("O2", lambda env: DynamicLossScaleManager(environment=env, **GRADIENTS), GPU, ()),
    "auto --device-target Ascend": ("O3", None, ASCEND, ()),
    "O2 --device-target Ascend": ("O2", lambda env: DynamicLossScaleManager(environment=env), ASCEND, ()),
    "O2 --loss-scale-manager none": ("O2", None, GPU, ()),
    "O2 --loss-scale-manager fixed": ("O2", lambda env: FixedLossScaleManager(environment=env, **GRADIENTS), GPU, ()),
    "O3 --loss-scale-manager fixed-keep --loss-scaling-factor 1e7 --device-target Ascend": (
        "O3",
        lambda env: FixedLossScaleManager(1e7, False, environment=env),
        ASCEND,
        (),
    ),
    "O3 --loss-scale-manager dynamic": (
        "O3",
        lambda env: DynamicLossScaleManager(scale_factor=4, scale_window=3000, environment=env, **GRADIENTS),
        GPU,
        (),
    ),
    "O0 --to-float conv1": ("O0", None, GPU, ("conv1",)),
    "O0 --to-float conv2 --to-float fc2 --loss-scale-manager fixed": (
        "O0",
        lambda env: FixedLossScaleManager(environment=env, **GRADIENTS),
        GPU,
        ("conv2", "fc2"),
    ),
}


@pytest.mark.parametrize("arguments", CASES)
def test_a_run_is_the_training_by_hand(arguments: str) -> None:
    level, manager, overflow, layers = CASES[arguments]
    epochs = 2 if arguments in ("O0", "O2") else 1
    run = Run(lenet5, *arguments.split(), *TINY, "--epochs", str(epochs))
    assert run.status == 0
    steps = run.document["steps"]
    expected = by_hand(level, manager, overflow and Environment(**overflow), layers, epochs)
    assert list(zip(steps["loss"], steps["loss_scale"], strict=True)) == [step[:2] for step in expected]
    assert steps["dropped"] == [index for index, step in enumerate(expected) if step[2]]


def test_a_layer_in_half_changes_nothing_where_all_are() -> None:
    plain, set_apart = (
        untimed(Run(lenet5, "O2", *TINY, "--epochs", "1", *more).document) for more in ((), ("--to-float", "conv1"))
    )
    (finding,) = set_apart["findings"]
    assert finding == "--to-float conv1 changes nothing at O2, where all layers compute in float16"
    for document in (plain, set_apart):
        del document["options"], document["findings"]
    assert plain == set_apart


def test_what_half_layers_compute() -> None:
    """One layer alone: products of conv1 are emulated, others are not. Of 25 pixels, 16 channels are added by fours."""
    document = Run(lenet5, "O0", "--to-float", "conv1", *TINY, "--epochs", "1").document
    assert document["findings"] == ["in float16: conv1; all else in float32"]
    added = {name for name, counts in document["counts"].items() if counts["additions"]}
    assert added == {"forward LeNet5.conv1", "backward LeNet5.conv1"}
    assert document["counts"]["forward LeNet5.conv1"]["additions"] == 4 * 28 * 28 * 6 * 100
    everywhere = Run(lenet5, "O3", *TINY, "--epochs", "1").document["counts"]
    assert {f"{which} LeNet5.{layer}" for which in ("forward", "backward") for layer in lenet5.LAYERS} < set(everywhere)


# -- managers --------------------------------------------------------------------------------------------------------


def test_managers() -> None:
    def made(*arguments: str, env: Environment | None = None) -> Any:
        options = parsed(*arguments)
        lenet5.check(options)
        return lenet5.manager(options, lenet5.Device(env, "float", 1.0, 0))

    def rule(scaler: Any) -> Any:
        return type(scaler), scaler.get_scale(), scaler.get_growth_factor(), scaler.get_growth_interval()

    dynamic = DynamicLossScaleManager
    assert [made(level) for level in ("O0", "O3")] == [None, None]
    assert made("auto", "--device-target", "Ascend") is None
    assert made("O2", "--loss-scale-manager", "none") is None
    assert rule(made("O2")) == rule(made("auto")) == (dynamic, 2.0**24, 2, 2000)
    assert rule(made("O0", "--loss-scale-manager", "dynamic")) == (dynamic, 2.0**24, 4, 3000)
    assert rule(made("O2", "--loss-scaling-factor", "8")) == (dynamic, 8, 2, 2000)
    fixed, keep = (made("O2", "--loss-scale-manager", name) for name in ("fixed", "fixed-keep"))
    assert (fixed.get_scale(), fixed.drop_overflow_update) == (128, True)
    assert (keep.get_scale(), keep.drop_overflow_update) == (1024, False)
    env = Environment()
    for target, flags in (("GPU", Flags(0)), ("Ascend", Flags.OVERFLOW | Flags.INVALID)):
        scaler = made("O2", "--device-target", target, env=env)
        assert scaler._environment is env
        assert scaler._flags == flags


@pytest.mark.parametrize("target", ["GPU", "Ascend"])
def test_dropped_steps_are_in_the_books(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 2^24 the scale is halved until a step fits; flags that steps lower are reported all the same."""
    monkeypatch.setenv("COLUMNS", "100")
    arguments = ("O2", "--device-target", target, *TINY[:4], "--epochs", "2")
    document = Run(lenet5, *arguments, "--json").document
    steps = document["steps"]
    assert set(steps["dropped"]) <= set(steps["overflow"]) | set(steps["invalid"])
    assert steps["dropped"][:2] == [0, 1]
    assert steps["loss_scale"][:3] == [2.0**24, 2.0**23, 2.0**22]
    assert ("overflow saturates" if target == "Ascend" else "overflow makes infinities") in document["arithmetic"]
    if target == "Ascend":
        return
    text = " ".join(Run(lenet5, *arguments).out.split())
    assert f"{len(steps['dropped'])} steps dropped for an overflow." in text
    assert "Loss scale: 1.67772e+07, 8.38861e+06 from step 2" in text


def test_overflows_may_be_taken() -> None:
    arguments = ("--loss-scale-manager", "fixed-keep", "--loss-scaling-factor", "1e7", "--device-target", "Ascend")
    steps = Run(lenet5, "O3", *arguments, *TINY, "--epochs", "1").document["steps"]
    assert steps["overflow"] == [0, 1]
    assert steps["dropped"] == []


# -- lines and figures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "steps"), [((), (2, 4)), (("--loss-monitor", "1"), (1, 2, 3, 4)), (("--loss-monitor", "0"), ())]
)
def test_lines_of_the_loss_monitor(arguments: tuple[str, ...], steps: tuple[int, ...]) -> None:
    """On standard error, beside the progress; none while warming up."""
    run = Run(lenet5, "O0", *TINY, "--epochs", "2", *arguments)
    losses = run.document["steps"]["loss"]
    lines = [line for line in run.err.splitlines() if line.startswith("epoch: ")]
    assert lines == [f"epoch: {(n + 1) // 2} step: {(n - 1) % 2 + 1}, loss is {losses[n - 1]}" for n in steps]
    assert sum(line.startswith("lenet5: epoch ") for line in run.err.splitlines()) == 2


def test_a_loss_that_is_no_number_ends_the_training(tmp_path: Path) -> None:
    plot = tmp_path / "part.svg"
    run = Run(lenet5, "O0", *TINY, "--epochs", "9", "--learning-rate", "1e30", "--plot", str(plot))
    assert run.status == 1
    document = run.document
    assert "the loss is nan, which ends the training" in document["stopped"]
    assert len(document["steps"]["loss"]) < 18
    assert plot.stat().st_size > 1000


def test_the_plot_is_a_picture(tmp_path: Path) -> None:
    from matplotlib.image import imread

    plot = tmp_path / "lenet5.png"
    run = Run(lenet5, "auto", *TINY, "--epochs", "2", "--dataset", "random", "--plot", str(plot))
    assert run.document["findings"] == ["auto is O2 on GPU"]
    assert (run.document["training_images"], run.document["test_images"]) == (8, 8)
    picture = imread(plot)
    assert picture.shape[1] == 1200
    assert len(np.unique(picture[..., :3] @ [1, 10, 100])) > 50


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a step, and within one, whose emulation is left."""

    def interrupted(self: Any, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LossMonitor, "step_end", interrupted)
        run = Run(lenet5, "O3", *TINY, "--epochs", "3")
    assert (run.status, run.document["interrupted"], len(run.document["steps"]["loss"])) == (130, True, 3)
    assert len(run.document["epochs"]) == 2

    def within(self: Any, *_: Any) -> None:
        assert private.innermost() is not None
        raise KeyboardInterrupt

    kept, stepping = [], lenet5.Device.stepping  # what is kept is not closed by being forgotten
    monkeypatch.setattr(lenet5.Device, "stepping", lambda self: kept.append(stepping(self)) or kept[-1])
    monkeypatch.setattr(TrainOneStepWithLossScale, "__call__", within)
    run = Run(lenet5, "O3", *TINY)
    assert (run.status, run.document["steps"]["loss"]) == (130, [])
    assert private.innermost() is None


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "the following arguments are required: precision"),
        (("O1",), "argument precision: invalid choice: 'O1' (choose from"),
        (("O2", "--loss-scale-manager", "static"), "argument --loss-scale-manager: invalid choice: 'static'"),
        (("O0", "--to-float", "relu"), "argument --to-float: invalid choice: 'relu'"),
        (("auto", "--device-target", "CPU"), "argument --device-target: invalid choice: 'CPU'"),
        (("O2", "--loss-monitor", "-1"), "argument --loss-monitor: must be a non-negative integer, got '-1'"),
        (("O3", "--loss-scaling-factor", "8"), "--loss-scaling-factor: needs a --loss-scale-manager, O3 has none of its own"),
        (("auto", "--device-target", "Ascend", "--loss-scaling-factor", "8"), "auto has none of its own"),
        (("O2", "--loss-scale-manager", "none", "--loss-scaling-factor", "8"), "needs a --loss-scale-manager, none is asked for"),
        (("O2", "--loss-scaling-factor", "0.5"), "argument --loss-scaling-factor: must be at least 1, got 0.5"),
        (("O0", "--use-float16-partials"), "argument --use-float16-partials: O0 has no float16, but for layers that --to-float"),
        (("O0", "--dataset", "random", "--data-dir", "."), "--data-dir must be None for random images"),
    ],
)  # fmt: skip
def test_errors(arguments: tuple[str, ...], words: str) -> None:
    Run(lenet5, *arguments).assert_error(lenet5, words)


def test_help() -> None:
    run = Run(lenet5, "--help")
    assert run.status == 0
    text = " ".join(run.out.split())
    for words in ("(default: 10)", "(default: GPU)", "{conv1,conv2,fc1,fc2,fc3}", "{none,fixed,fixed-keep,dynamic}"):
        assert words in text
