"""The example programs: what they train, print, plot and refuse, and how they end."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from needed import needs

torch = pytest.importorskip("torch")
needs("sklearn")

from data_files import cifar10, fashion_mnist  # noqa: E402 -- after the skip
from programs import SHORT, Run, untimed  # noqa: E402

import softfloat  # noqa: E402
from softfloat import Environment, accumulators, bits  # noqa: E402
from softfloat.examples import data, estimator, float32_parameter_updates, reports, stochastic_rounding  # noqa: E402
from softfloat.examples.device import Device, Loop, Step  # noqa: E402
from softfloat.examples.estimator import Estimator, EstimatorSpec  # noqa: E402
from softfloat.examples.models import ResNet, TwoConvolutions  # noqa: E402
from softfloat.torch import Tally  # noqa: E402

# -- models ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_the_residual_network_is_the_tutorials(blocks: int) -> None:
    model = ResNet(blocks, channels=3)
    layers = [m for m in model.modules() if isinstance(m, (torch.nn.Conv2d, torch.nn.Linear))]
    assert len(layers) == 6 * blocks + 2 + 2  # two convolutions beside blocks that have more filters than channels
    skips = [m for m in layers if getattr(m, "kernel_size", None) == (2, 2)]
    assert [(m.in_channels, m.out_channels, m.stride) for m in skips] == [(16, 32, (2, 2)), (32, 64, (2, 2))]
    norms = [m.num_features for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert norms == [16] * (blocks + 1) + [32] * blocks + [64] * (blocks - 1)
    sizes: list[tuple[int, ...]] = []
    for layer in layers:
        layer.register_forward_hook(lambda module, args, output: sizes.append(tuple(output.shape[1:])))
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert (sizes[0], sizes[-2][1:], sizes[-1]) == ((16, 32, 32), (8, 8), (10,))


def test_the_two_convolutions_are_the_tutorials() -> None:
    shapes = {name: tuple(p.shape) for name, p in TwoConvolutions(1, 28, 28).named_parameters()}
    assert shapes == {
        "conv1.weight": (32, 1, 3, 3),
        "conv2.weight": (32, 32, 3, 3),
        "dense.weight": (10, 32 * 28 * 28),
        "dense.bias": (10,),
    }


# -- steps -----------------------------------------------------------------------------------------------------------


def one_step(program: ModuleType, *arguments: str) -> tuple[Any, Device]:
    """Model parameters before and after one step on the first digits."""
    options = program.PROGRAM._parser().parse_args(list(arguments))
    digits = data.load("digits", limit=options.batch_size)
    environment = program.PROGRAM.environment(options)
    device = Device(environment, "float", options.loss_scaling_factor, 0)
    torch.manual_seed(0)
    learner = program.PROGRAM.build(options, digits, device)
    model = learner.model if isinstance(learner, Loop) else learner.estimator._spec.model
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    images = torch.from_numpy(digits.train_images).to(torch.float32 if environment is None else torch.float16)
    learner.train([(images, torch.from_numpy(digits.train_labels))])
    return {name: (before[name], p.detach(), p.grad) for name, p in model.named_parameters()}, device


def test_method_1_divides_the_learning_rate() -> None:
    """Parameters, gradients and updates in half; the first update is the scaled gradient times the divided rate."""
    rate = np.float16(0.01 / 256)
    found, device = one_step(stochastic_rounding, "float16", "8", "--disable-stochastic-rounding")
    assert {p.dtype for triple in found.values() for p in triple} == {torch.float16}
    for before, after, gradient in found.values():
        exact = before.double().numpy() - np.float64(rate) * gradient.double().numpy()  # rounded once
        assert np.array_equal(after.numpy(), exact.astype(np.float16))
    plain, _ = one_step(stochastic_rounding, "float32", "8", "--loss-scaling-factor", "1")
    for name, (_, _, gradient) in found.items():
        difference = torch.linalg.vector_norm(gradient.float() / 256 - plain[name][2])
        assert difference < 0.15 * torch.linalg.vector_norm(plain[name][2])
    assert device.steps[0].loss == pytest.approx(math.log(10), rel=0.3)  # reported unscaled


@pytest.mark.parametrize("program", [float32_parameter_updates, estimator])
def test_method_2_unscales_gradients_in_single(program: ModuleType) -> None:
    found, _ = one_step(program, "mixed")
    exact, _ = one_step(program, "float32")
    assert {p.dtype for triple in found.values() for p in triple} == {torch.float32}
    for (before, after, gradient), other in zip(found.values(), exact.values(), strict=True):
        assert torch.equal(before, other[0])
        scaled = gradient * 256
        assert torch.equal(scaled, scaled.half().float())  # computed in half
        assert torch.allclose(gradient, other[2], rtol=0.02, atol=0.01 * float(other[2].abs().max()))
        expected = before - 0.01 * gradient / (gradient.abs() + 1e-4)  # the first step of Adam
        assert torch.allclose(after, expected, rtol=0, atol=1e-6)


def test_the_arithmetic_is_the_ipus() -> None:
    """The environments of the tutorial's programs, and partials in matrix products and convolutions alike."""
    parse = lambda program, *arguments: program.PROGRAM._parser().parse_args(list(arguments))  # noqa: E731
    method1 = stochastic_rounding.environment(parse(stochastic_rounding, "float16", "8", "--seed", "3"))
    assert method1 == Environment.ipu(esr=True, seed=3)
    nearest = parse(stochastic_rounding, "float16", "8", "--disable-stochastic-rounding")
    assert stochastic_rounding.environment(nearest) == Environment.ipu(seed=0)
    traps = Environment.ipu(inv=True, div0=True, oflo=True, nanoo=True)
    for program in (float32_parameter_updates, estimator):
        assert program.PROGRAM.environment(parse(program, "mixed")) == traps
        assert program.PROGRAM.environment(parse(program, "float32")) is None
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.rand(shape, generator=generator).half() for shape in ((4, 64), (64, 4)))
    images = torch.rand(1, 64, 1, 1, generator=generator).half()
    for partials in ("half", "float"):
        device = Device(Environment.ipu(), partials, 1.0, 0)
        with device.emulation():
            product = a @ b
            convolved = torch.nn.functional.conv2d(images, a[:, :, None, None])
        amp = accumulators.amp(partials)
        codes = [x.contiguous().view(torch.uint16).numpy() for x in (a, b, images[0, :, 0])]
        for result, left, right in ((product, codes[0], codes[1]), (convolved[0, :, :, 0], codes[0], codes[2])):
            expected = bits.matmul(left, right, "float16", amp, environment=Environment.ipu())[0]
            assert np.array_equal(result.view(torch.uint16).numpy(), expected)


# -- runs ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Run:
    plot = tmp_path_factory.mktemp("plots") / "half.png"
    return Run(stochastic_rounding, "float16", "8", *SHORT, "--json", "--plot", str(plot))


def test_json(half: Run) -> None:
    assert half.status == 0
    document = half.document
    assert list(document) == [
        *("version", "program", "options", "arithmetic", "findings", "training_images", "test_images", "epochs"),
        *("accuracy", "steps", "counted_steps", "counts", "interrupted", "stopped", "plot"),
    ]
    assert document["version"] == softfloat.__version__
    assert document["options"]["depth"] == 8
    assert (document["training_images"], document["test_images"]) == (64, 64)
    assert "stochastic rounding, seed 0; float partials" in document["arithmetic"]
    (epoch,) = document["epochs"]
    assert (epoch["number"], epoch["steps"], epoch["overflow"], epoch["invalid"]) == (1, 2, 0, 0)
    assert epoch["loss"] == pytest.approx(np.mean(document["steps"]["loss"]))
    assert epoch["images_per_second"] == pytest.approx(32 / epoch["seconds"])  # the other step was counted
    assert document["accuracy"] == epoch["accuracy"]
    assert document["steps"]["loss_scale"] == [256, 256]
    assert document["counted_steps"] == 1
    assert (document["interrupted"], document["stopped"], document["findings"]) == (False, None, [])
    counts = document["counts"]
    # 32 images of 8 x 8 pixels, 16 filters: 144 products, four of which are added at once
    assert counts["forward ResNet.blocks.1.conv2"]["additions"] == 32 * 64 * 16 * 36
    assert set(counts["forward ResNet.blocks.1.conv2"]) == {"results", "overflowed", "additions", "swamped"}
    assert {f"{which} ResNet.blocks.5.conv2" for which in ("forward", "backward")} < set(counts)


def test_progress_without_a_terminal(half: Run) -> None:
    lines = [line for line in half.err.splitlines() if "softfloat: compiling" not in line]
    assert re.fullmatch(r"stochastic_rounding: warming up: [^\n]+", lines[0])
    assert re.fullmatch(r"stochastic_rounding: epoch 1 of 1: loss \d\.\d{4}, accuracy \d+\.\d%, \d+\.\d s", lines[1])
    assert len(lines) == 2


def test_the_plot_is_a_picture(half: Run) -> None:
    from matplotlib.image import imread

    picture = imread(half.document["plot"])
    assert picture.shape[1] == 1200
    assert len(np.unique(picture[..., :3] @ [1, 10, 100])) > 50


def test_the_same_seed_gives_the_same_bits(half: Run) -> None:
    """On one thread as on those that the first run had; another seed gives others."""
    assert torch.get_num_threads() == 1
    again = Run(stochastic_rounding, "float16", "8", *SHORT, "--json")
    expected = untimed(half.document) | {"plot": None}
    assert untimed(again.document) == expected
    other = Run(stochastic_rounding, "float16", "8", *SHORT, "--json", "--seed", "1").document
    assert other["steps"]["loss"] != expected["steps"]["loss"]


def test_counting_and_warming_up_change_no_bits(half: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    emulation = Device.emulation
    monkeypatch.setattr(Device, "emulation", lambda self, count=False: emulation(self))
    monkeypatch.setattr(Device, "spare", lambda self: Device(None, "float", 1.0, 0))
    monkeypatch.setattr(Loop, "train", _only_on(Loop.train))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Device, "step", _without_counts(Device.step))
        plain = Run(stochastic_rounding, "float16", "8", *SHORT, "--json").document
    assert plain["counts"] == {}
    assert plain["steps"]["loss"] == half.document["steps"]["loss"]
    assert plain["accuracy"] == half.document["accuracy"]


def _only_on(train: Callable[..., None]) -> Callable[..., None]:
    """Training on devices that emulate, alone."""
    return lambda self, batches: train(self, batches) if self.device.environment is not None else None


def _without_counts(step: Callable[..., None]) -> Callable[..., None]:
    def run(self: Device, action: Callable[[], float]) -> None:
        period, self.period = self.period, 0
        try:
            step(self, action)
        finally:
            self.period = period

    return run


def test_losses_fall_and_precisions_agree() -> None:
    """Method 2 on a fifth of the digits: half and single within a few of a hundred."""
    found = {}
    for precision in ("mixed", "float32"):
        run = Run(float32_parameter_updates, precision, "--limit", "320", "--epochs", "2", "--json")
        assert run.status == 0
        first, second = run.document["epochs"]
        assert second["loss"] < 0.5 * first["loss"]
        found[precision] = run.document
    assert found["mixed"]["accuracy"] > 0.8
    assert abs(found["mixed"]["accuracy"] - found["float32"]["accuracy"]) < 0.05
    assert found["mixed"]["epochs"][1]["loss"] == pytest.approx(found["float32"]["epochs"][1]["loss"], rel=0.15)
    assert found["float32"]["counts"] == {}
    assert found["float32"]["epochs"][0]["overflow"] is None
    assert "nothing is emulated" in found["float32"]["arithmetic"]


def test_the_estimator_trains_the_same_model() -> None:
    arguments = ("mixed", *SHORT, "--use-float16-partials", "--json")
    documents = [untimed(Run(program, *arguments).document) for program in (float32_parameter_updates, estimator)]
    assert [document.pop("program") for document in documents] == ["float32_parameter_updates", "estimator"]
    assert documents[0] == documents[1]
    assert "half partials" in documents[0]["arithmetic"]
    assert all(map(math.isfinite, documents[0]["steps"]["loss"]))


def test_partials_change_bits() -> None:
    losses = [
        Run(stochastic_rounding, "float16", "8", *SHORT, "--json", "--disable-stochastic-rounding", *more).document
        for more in ((), ("--use-float16-partials",))
    ]
    assert losses[0]["steps"]["loss"] != losses[1]["steps"]["loss"]
    assert "nearest even" in losses[0]["arithmetic"]


@pytest.mark.parametrize("width", [60, 100])
def test_tables(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    run = Run(float32_parameter_updates, "mixed", *SHORT)
    assert run.status == 0
    for word in ("float32_parameter_updates mixed", "64 training and 64 test images", "OVERFLOW", "Loss scale: 256."):
        assert word in run.out
    for layer in ("conv1", "conv2", "dense", "all else"):
        assert layer in run.out
    assert max(map(len, run.out.splitlines())) <= width


@pytest.mark.parametrize(
    ("program", "arguments", "write"),
    [
        (float32_parameter_updates, ("mixed", "--dataset", "fashion-mnist"), fashion_mnist),
        (stochastic_rounding, ("float32", "14", "--dataset", "cifar10"), cifar10),
    ],
)
def test_other_data_sets(tmp_path: Path, program: ModuleType, arguments: tuple[str, ...], write: Any) -> None:
    """The files that the tests of the readers write; incomplete batches are left out."""
    write(tmp_path)
    run = Run(program, *arguments, "--data-dir", str(tmp_path), "--batch-size", "4", "--epochs", "2", "--json")
    assert run.status == 0
    assert [epoch["steps"] for epoch in run.document["epochs"]] == ([1, 1] if write is fashion_mnist else [2, 2])
    assert all(map(math.isfinite, run.document["steps"]["loss"]))


# -- errors and ends -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", ["7", "9", "2", "0", "-8", "1208", "8.0", "eight"])
def test_depths(depth: str) -> None:
    words = "argument DEPTH: must be 6N + 2, such as 8, 14, 20 or 26, and at most 1202, got"
    Run(stochastic_rounding, "float16", depth).assert_error(stochastic_rounding, words, repr(depth))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "the following arguments are required: precision"),
        (("float16",), "argument precision: invalid choice: 'float16' (choose from"),
        (("mixed", "--batch-size", "0"), "argument --batch-size: must be a positive integer, got '0'"),
        (("mixed", "--batch-size", "65", "--limit", "64"), "--batch-size: must be at most the number of training images, 64, got 65"),
        (("mixed", "--epochs", "-1"), "argument --epochs: must be a positive integer, got '-1'"),
        (("mixed", "--epochs", "many"), "argument --epochs: must be a positive integer, got 'many'"),
        (("mixed", "--loss-scaling-factor", "0"), "argument --loss-scaling-factor: must be a positive number, at most 2^127, got '0'"),
        (("mixed", "--loss-scaling-factor", "inf"), "at most 2^127, got 'inf'"),
        (("mixed", "--loss-scaling-factor", "nan"), "at most 2^127, got 'nan'"),
        (("mixed", "--learning-rate", "-1e-3"), "argument --learning-rate: must be a positive number, got '-1e-3'"),
        (("mixed", "--learning-rate", "fast"), "argument --learning-rate: must be a positive number, got 'fast'"),
        (("mixed", "--learning-rate", "1e-60"), "lr = 1e-60 becomes 0 in torch.float32"),
        (("mixed", "--limit", "0"), "argument --limit: must be a positive integer, got '0'"),
        (("mixed", "--seed", "-1"), "argument --seed: must be an integer from 0 to 2^64 - 1, got '-1'"),
        (("mixed", "--dataset", "mnist"), "argument --dataset: invalid choice: 'mnist'"),
        (("mixed", "--dataset", "cifar10"), "cifar10 needs --data-dir"),
        (("mixed", "--data-dir", "."), "--data-dir must be None for the digits"),
        (("mixed", "--dataset", "cifar10", "--data-dir", "/nowhere/at all"), "there is no folder /nowhere/at all"),
        (("mixed", "--plot", "figure.gif"), "cannot write a plot as '.gif'"),
        (("mixed", "--plot", "/nowhere/figure.png"), "there is no folder /nowhere"),
        (("mixed", "--disable-stochastic-rounding"), "unrecognized arguments: --disable-stochastic-rounding"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("program", [float32_parameter_updates, estimator])
def test_errors(program: ModuleType, arguments: tuple[str, ...], words: str) -> None:
    Run(program, *arguments).assert_error(program, words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--loss-scaling-factor", "65536"), "argument --loss-scaling-factor: must be at most 65504 in float16, got 65536"),
        (("--learning-rate", "1e-9"), "lr = 3.90625e-12 becomes 0 in torch.float16"),
    ],
)  # fmt: skip
def test_numbers_that_float16_does_not_hold(arguments: tuple[str, ...], words: str) -> None:
    Run(stochastic_rounding, "float16", "8", *SHORT, *arguments).assert_error(stochastic_rounding, words)
    assert Run(stochastic_rounding, "float32", "8", *SHORT, *arguments).status == 0


def test_settings_that_float16_changes_are_reported() -> None:
    run = Run(stochastic_rounding, "float16", "8", *SHORT, "--learning-rate", "2e-5", "--json")
    (finding,) = run.document["findings"]
    assert "lr = 7.8125e-08 becomes 5.96046e-08 in torch.float16" in finding


@pytest.mark.parametrize("json_wanted", [False, True])
def test_a_trap_stops_the_training(json_wanted: bool) -> None:
    """A loss scale that overflows in the first step."""
    run = Run(float32_parameter_updates, "mixed", *SHORT, "--loss-scaling-factor", "1e6", *["--json"] * json_wanted)
    assert run.status == 1
    words = ("OFLO", "TwoConvolutions.dense", "backward")
    if json_wanted:
        assert run.document["epochs"] == []
        assert run.document["accuracy"] is None
        assert all(word in run.document["stopped"] for word in words)
    else:
        text = " ".join(run.out.split())
        assert "stopped after 0 steps: " in text
        assert "A smaller --loss-scaling-factor" in text
        assert all(word in text for word in words)


def test_saturation_goes_on_and_is_counted() -> None:
    """Method 1 traps nothing: overflow saturates, and the report says in which steps."""
    arguments = ("--loss-scaling-factor", "65504", "--learning-rate", "1", "--epochs", "2", "--limit", "64")
    run = Run(stochastic_rounding, "float16", "8", *arguments, "--json")
    assert run.status == 0
    document = run.document
    assert document["steps"]["overflow"] != []
    assert sum(epoch["overflow"] for epoch in document["epochs"]) == len(document["steps"]["overflow"])
    assert all(math.isfinite(float(loss)) for loss in document["steps"]["loss"])


@pytest.mark.parametrize(("program", "first"), [(stochastic_rounding, ("float16", "8")), (estimator, ("mixed",))])
def test_ctrl_c_reports_what_was_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: ModuleType, first: tuple[str, ...]
) -> None:
    step = Device.step

    def interrupted(self: Device, action: Callable[[], float]) -> None:
        def last() -> float:
            action()
            raise KeyboardInterrupt

        step(self, last if len(self.steps) == 2 else action)

    monkeypatch.setattr(Device, "step", interrupted)
    plot = tmp_path / "part.svg"
    run = Run(program, *first, "--limit", "64", "--epochs", "3", "--json", "--plot", str(plot))
    assert run.status == 130
    document = run.document
    assert document["interrupted"] is True
    assert (len(document["steps"]["loss"]), len(document["epochs"])) == (2, 1)
    assert document["accuracy"] is not None
    assert plot.stat().st_size > 1000


def test_ctrl_c_before_the_first_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Device, "step", interrupted)
    run = Run(estimator, "mixed", *SHORT, "--plot", str(tmp_path / "none.png"))
    assert run.status == 130
    assert "interrupted after 0 steps" in run.out
    assert not (tmp_path / "none.png").exists()


def test_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(reports, "document", broken)
    assert Run(estimator, "float32", *SHORT, "--json").status == 141


def test_without_pytorch() -> None:
    """One line, and help all the same."""
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from softfloat.examples import estimator\n"
        "print(estimator.main(['mixed']), estimator.main(['--help']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert re.fullmatch(r"estimator: error: softfloat\.torch needs PyTorch [^\n]+\n", done.stderr)
    assert done.stdout.startswith("usage: ")
    assert done.stdout.endswith("\n2 0\n")


def test_a_training_that_diverges_is_reported(tmp_path: Path) -> None:
    plot = tmp_path / "diverged.svg"
    arguments = ("--limit", "96", "--epochs", "1", "--learning-rate", "1e25", "--json", "--plot", str(plot))
    run = Run(stochastic_rounding, "float32", "8", *arguments)
    assert run.status == 0
    assert run.document["epochs"][0]["loss"] in ("nan", "inf")
    assert plot.stat().st_size > 1000


def test_help() -> None:
    run = Run(stochastic_rounding, "--help")
    assert run.status == 0
    text = " ".join(run.out.split())
    for option in ("batch-size", "epochs", "loss-scaling-factor", "learning-rate", "use-float16-partials", "data-dir"):
        assert f"--{option}" in text
    for default in ("(default: 32)", "(default: 5)", "(default: 256)", "(default: 0.01)", "(default: digits)"):
        assert default in text


# -- the estimator ---------------------------------------------------------------------------------------------------


def test_an_estimator_calls_its_functions() -> None:
    weight = torch.nn.Parameter(torch.zeros(2, 2))
    model = torch.nn.Linear(2, 2, bias=False)
    model.weight = weight
    optimiser = torch.optim.SGD([weight], lr=1.0)
    calls: list[Any] = []

    def model_fn(params: Any) -> EstimatorSpec:
        calls.append(params)

        def train_op(loss: Any) -> None:
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

        return EstimatorSpec(model, torch.nn.functional.cross_entropy, train_op)

    device = Device(None, "float", 1.0, 0)
    found = Estimator(model_fn, device, params="parameters")
    batch = (torch.eye(2), torch.tensor([0, 1]))
    feed = lambda: iter([batch] * 5)  # noqa: E731
    before = found.evaluate(feed)
    assert before == {"loss": pytest.approx(math.log(2)), "accuracy": 0.5, "global_step": 0}  # the first of equals
    assert found.train(feed, steps=3) is found
    assert (found.global_step, len(device.steps)) == (3, 3)
    found.train(feed, steps=9)
    assert found.global_step == 8
    after = found.evaluate(feed, steps=1)
    assert after["loss"] < before["loss"]
    assert after["accuracy"] == 1
    assert not model.training
    assert calls == ["parameters"]
    with pytest.raises(ValueError, match="input_fn must return at least one batch"):
        found.evaluate(list)


# -- reports ---------------------------------------------------------------------------------------------------------


def report(scales: list[float], tallies: dict[str, Tally]) -> reports.Report:
    """Of steps that took a second each, four to an epoch, the last of which was counted."""
    device = Device(Environment.ipu(), "half", scales[0], 4)
    device.steps = [
        Step(1.0, scale, 1.0, softfloat.Flags(4 * (scale > 256)), index % 4 == 3) for index, scale in enumerate(scales)
    ]
    device.tallies = tallies
    options = stochastic_rounding.PROGRAM._parser().parse_args(["float16", "8"])
    return reports.Report("stochastic_rounding", options, device, 128, 10, [0.5])


def test_books() -> None:
    tallies = {
        "forward Net.a": Tally(10, 0, 100, 7),
        "forward Net.a.weight": Tally(5, 1),
        "backward Net.a": Tally(20, 2, 300, 30),
        "forward Net.b": Tally(3, 0),
        "backward": Tally(1, 0),
        "forward": Tally(100, 4),
    }
    found = report([256.0] * 5 + [512.0], tallies)
    assert [(e.number, e.steps, e.accuracy, e.seconds, e.overflow) for e in found.epochs] == [
        (1, 4, 0.5, 3.0, 0),
        (2, 2, None, 2.0, 1),
    ]
    assert found.epochs[0].images_per_second == 32
    layer, rest = found.layers
    assert (layer.name, layer.forward, layer.backward) == ("a", Tally(10, 0, 100, 7), Tally(20, 2, 300, 30))
    assert (rest.forward, rest.backward) == (Tally(108, 5), Tally(1, 0))
    assert reports._history(step.loss_scale for step in found.steps) == "256, 512 from step 6"
    figure = reports.training(found)
    loss, accuracy, scale, swamped = figure.axes
    assert [line.get_ydata()[0] for line in loss.lines[1:]] == [1.0, 1.0]
    assert accuracy.lines[0].get_xdata().tolist() == [4]
    assert scale.lines[1].get_xdata() == (6,)
    assert [bar.get_width() for bar in swamped.patches] == [0.07, 0.1]
    assert [text.get_text() for text in swamped.get_yticklabels()] == ["a"]
    assert [text.get_text() for text in swamped.texts] == ["7.00%", "10.00%"]
    assert swamped.get_xlim()[1] > 0.1


def test_a_share_of_a_millionth_is_drawn_as_small() -> None:
    tallies = {"forward Net.a": Tally(10, 0, 10**6, 1), "backward Net.a": Tally(20, 2, 300, 0)}
    swamped = reports.training(report([256.0], tallies)).axes[-1]
    assert swamped.get_xlim() == (0, 0.01)
    assert [text.get_text() for text in swamped.texts] == ["<0.01%", "0%"]


def test_without_counts_there_is_no_panel_of_them() -> None:
    assert len(reports.training(report([1.0], {})).axes) == 3
