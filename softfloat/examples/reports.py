"""What a training came to: as a JSON document, as tables, as a figure."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import softfloat
from softfloat import display
from softfloat.commands.output import CommandError, measurements
from softfloat.display import drawing
from softfloat.environments import Overflow
from softfloat.examples.device import Device, Step
from softfloat.markup import grouped
from softfloat.status import Flags

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

__all__ = ["Epoch", "Report", "check_plot", "document", "plot", "render", "training"]

WATCHED = (Flags.OVERFLOW, Flags.INVALID)
PASSES = ("forward", "backward")
OVERFLOWS: dict[Overflow | str, str] = {
    Overflow.SATURATE: "overflow saturates",
    Overflow.INFINITY: "overflow makes infinities",
    Overflow.NAN: "overflow makes NaN",
}


@dataclass(frozen=True)
class Epoch:
    """One pass over the training images, or the part of it that was done.

    Attributes
    ----------
    number : int
        From 1.
    steps : int
    loss : float
        The mean of the steps'.
    accuracy : float, optional
        On the test images, after it; None if it came to no end.
    seconds : float
        Of the steps in which swamping was not counted.
    images_per_second : float, optional
        In those; None if there are none.
    overflow, invalid : int, optional
        Steps that raised the flag; None where nothing is emulated.
    """

    number: int
    steps: int
    loss: float
    accuracy: float | None
    seconds: float
    images_per_second: float | None
    overflow: int | None
    invalid: int | None


@dataclass
class Report:
    """A training.

    Attributes
    ----------
    program : str
    options : argparse.Namespace
    device : Device
        With the books.
    training_images, test_images : int
    accuracies : list of float
        After each complete epoch.
    interrupted : bool
        By Ctrl-C.
    stopped : str, optional
        What ended it: a trap, or a loss that is no number.
    plot : str, optional
        Where the figure was written.
    """

    program: str
    options: argparse.Namespace
    device: Device
    training_images: int
    test_images: int
    accuracies: list[float] = field(default_factory=list)
    interrupted: bool = False
    stopped: str | None = None
    plot: str | None = None

    @property
    def title(self) -> str:
        """The program and what it was told first."""
        words = (self.program, self.options.precision, getattr(self.options, "depth", ""))
        return " ".join(str(word) for word in words if word)

    @property
    def steps(self) -> list[Step]:
        """All of them."""
        return self.device.steps

    @property
    def emulated(self) -> bool:
        """Whether anything was."""
        return self.device.environment is not None

    @property
    def epochs(self) -> list[Epoch]:
        """The last one may be incomplete."""
        return [self._epoch(index, first) for index, first in enumerate(range(0, len(self.steps), self.device.period))]

    def _epoch(self, index: int, first: int) -> Epoch:
        steps = self.steps[first : first + self.device.period]
        timed = [step.seconds for step in steps if not step.counted]
        seconds = math.fsum(timed)
        flagged = [sum(flag in step.flags for step in steps) if self.emulated else None for flag in WATCHED]
        return Epoch(
            number=index + 1,
            steps=len(steps),
            loss=math.fsum(step.loss for step in steps) / len(steps),
            accuracy=self.accuracies[index] if index < len(self.accuracies) else None,
            seconds=seconds,
            images_per_second=len(timed) * self.options.batch_size / seconds if timed else None,
            overflow=flagged[0],
            invalid=flagged[1],
        )

    @property
    def arithmetic(self) -> str:
        """How it computed, in a line."""
        environment = self.device.environment
        if environment is None:
            return "float32, computed natively: nothing is emulated, and partials and rounding are PyTorch's"
        stochastic = environment.settings.rounding.draws
        rounding = f"stochastic rounding, seed {environment.seed}" if stochastic else "nearest even"
        overflow = OVERFLOWS[environment.overflow] + (", exceptions stop" if environment.traps else "")
        return f"float16, emulated: {rounding}; {self.device.partials} partials; {overflow}"

    @property
    def layers(self) -> list[Layer]:
        """Counts by layer, of those that added anything up; the others together, without a name, come last."""
        tallies = self.device.tallies
        layers, rest = [], Layer("", None, None)
        for module in dict.fromkeys(key.partition(" ")[2] for key in tallies):
            passes = [tallies.get(f"{which} {module}".strip()) for which in PASSES]
            layer = Layer(module.partition(".")[2], *passes)
            if any(tally is not None and tally.additions for tally in passes):
                layers.append(layer)
            else:
                rest = rest + layer
        return [*layers, rest] if tallies else []


@dataclass(frozen=True)
class Layer:
    """Counts of a module: of the forward and of the backward pass, None where there are none."""

    name: str
    forward: Any
    backward: Any

    @property
    def passes(self) -> tuple[Any, Any]:
        """Both."""
        return self.forward, self.backward

    def __add__(self, other: Layer) -> Layer:
        sums = (y if x is None else x if y is None else x + y for x, y in zip(self.passes, other.passes, strict=True))
        return Layer("", *sums)


def _share(tally: Any) -> float | None:
    """How much of what was added changed nothing; None if nothing was added."""
    return tally.swamped / tally.additions if tally is not None and tally.additions else None


# -- JSON ------------------------------------------------------------------------------------------------------------


def document(report: Report) -> dict[str, Any]:
    """Everything, for JSON."""
    options = {name: value for name, value in vars(report.options).items() if name not in ("json", "plot")}
    return {
        "version": softfloat.__version__,
        "program": report.program,
        "options": options,
        "arithmetic": report.arithmetic,
        "findings": report.device.findings,
        "training_images": report.training_images,
        "test_images": report.test_images,
        "epochs": report.epochs,
        "accuracy": report.accuracies[-1] if report.accuracies else None,
        "steps": {
            "loss": [step.loss for step in report.steps],
            "loss_scale": [step.loss_scale for step in report.steps],
            **{
                flag.name.lower(): [index for index, step in enumerate(report.steps) if flag in step.flags]
                for flag in WATCHED
                if flag.name
            },
            "dropped": [index for index, step in enumerate(report.steps) if step.dropped],
        },
        "counted_steps": sum(step.counted for step in report.steps),
        "counts": {
            name: {count: getattr(tally, count) for count in ("results", "overflowed", "additions", "swamped")}
            for name, tally in report.device.tallies.items()
        },
        "interrupted": report.interrupted,
        "stopped": report.stopped,
        "plot": report.plot,
    }


# -- tables ----------------------------------------------------------------------------------------------------------


def render(report: Report, console: Console) -> None:
    """Tables on a console."""
    from rich.text import Text

    options = report.options
    console.print(Text(report.title, "bold"))
    console.print(
        f"{options.dataset}: {grouped(report.training_images)} training and {grouped(report.test_images)} test images, "
        f"batches of {options.batch_size}"
    )
    console.print(report.arithmetic)
    for finding in report.device.findings:
        console.print(Text(finding, "yellow"))
    console.print()
    if report.steps:
        _render_epochs(report, console)
    if report.layers:
        _render_layers(report, console)
    if report.plot is not None:
        console.print(f"Plot written to {report.plot}", soft_wrap=True)
    done = _number_of(len(report.steps), "step")
    if report.stopped is not None:
        console.print(Text(f"stopped after {done}: {report.stopped}", "bold red"))
        if any(name in report.stopped for name in ("OVERFLOW", "OFLO")):  # as policies name it
            console.print("A smaller --loss-scaling-factor makes gradients smaller, which overflow most often.")
    if report.interrupted:
        console.print(Text(f"interrupted after {done}", "yellow"))


def _render_epochs(report: Report, console: Console) -> None:
    from rich.text import Text

    rows = []
    for epoch in report.epochs:
        partial = f" ({epoch.steps} of {report.device.period} steps)" if epoch.steps < report.device.period else ""
        speed = "" if epoch.images_per_second is None else f"{epoch.images_per_second:.0f}"
        accuracy = "" if epoch.accuracy is None else f"{epoch.accuracy:.2%}"
        row = [f"{epoch.number}{partial}", f"{epoch.loss:.4f}", accuracy, f"{epoch.seconds:.2f} s", speed]
        rows.append(row + ([str(epoch.overflow), str(epoch.invalid)] if report.emulated else []))
    headings = ["epoch", "loss", "test accuracy", "time", "images/s"] + ["OVERFLOW", "INVALID"] * report.emulated
    console.print(measurements(headings, rows, console.width))
    notes = [f"Loss scale: {_history(step.loss_scale for step in report.steps)}. Losses are shown without it."]
    if report.emulated:
        notes.append("OVERFLOW, INVALID: steps that raised the flag.")
    dropped = sum(step.dropped for step in report.steps)
    if dropped:
        notes.append(f"{_number_of(dropped, 'step')} dropped for an overflow.")
    counted = sum(step.counted for step in report.steps)
    if counted:
        notes.append("Times leave out the last step of each epoch, in which swamping was counted.")
    console.print(Text(" ".join(notes), "dim"))
    console.print()


def _history(scales: Iterable[float]) -> str:
    """Scales, each with the step from which on it held."""
    changes: list[tuple[int, float]] = []
    for step, scale in enumerate(scales, 1):
        if not changes or changes[-1][1] != scale:
            changes.append((step, scale))
    first, *rest = changes
    return f"{first[1]:g}" + "".join(f", {scale:g} from step {step}" for step, scale in rest)


def _render_layers(report: Report, console: Console) -> None:
    from rich.text import Text

    rows = []
    for layer in report.layers:
        cells = []
        for tally in layer.passes:
            share = _share(tally)
            cells += [
                "" if share is None else grouped(tally.additions),
                "" if share is None else drawing.percent_text(share),
            ]
        both = [tally for tally in layer.passes if tally is not None]
        overflowed, results = sum(tally.overflowed for tally in both), sum(tally.results for tally in both)
        rows.append([layer.name or "all else", *cells, f"{grouped(overflowed)} of {grouped(results)}"])
    headings = ["layer", "added forward", "swamped", "added backward", "swamped", "results overflowed"]
    console.print(measurements(headings, rows, console.width))
    counted = sum(step.counted for step in report.steps)
    text = f"Counted in {_number_of(counted, 'step')}. Swamped: added, not zero, and left the sum as it was."
    console.print(Text(text, "dim"))
    console.print()


def _number_of(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count != 1)


# -- figure ----------------------------------------------------------------------------------------------------------


def check_plot(path: str) -> None:
    """Refuse, in one line, a plot that could not be written."""
    try:
        display.check_plot_path(path)
    except (ValueError, ImportError, OSError) as error:
        raise CommandError(str(error)) from None


def plot(report: Report, path: str) -> None:
    """Draw and write the figure."""
    try:
        display.save(training(report), path)
    except OSError as error:
        raise CommandError(f"cannot write the plot: {error.strerror or error}") from None


@drawing.on_white
def training(report: Report) -> Figure:
    """Loss step by step and accuracy epoch by epoch, the loss scale, and how much of what each layer added was swamped.

    Parameters
    ----------
    report : Report
        With one step at least.
    """
    layers = [layer for layer in report.layers if layer.name]
    ratios = (3.0, 2.0, 1.2) + ((0.4 + 0.28 * len(layers),) if layers else ())
    figure, panels = drawing.new_figure(1.2 + sum(ratios), len(ratios), 1, height_ratios=ratios)
    loss, accuracy, scale = panels[:3]
    for axes in (accuracy, scale):
        axes.sharex(loss)
    places = range(1, len(report.steps) + 1)
    entries: dict[str, Any] = {}
    loss.plot(places, [step.loss for step in report.steps], color=drawing.SKY, linewidth=0.9, zorder=2)
    entries["loss of a step"] = drawing.line_sample(color=drawing.SKY, linewidth=0.9)
    style = {"color": drawing.BLUE, "linewidth": 1.8, "solid_capstyle": "butt"}
    ends = []
    for epoch in report.epochs:
        begin = (epoch.number - 1) * report.device.period
        ends.append(begin + epoch.steps)
        loss.plot([begin + 0.5, ends[-1] + 0.5], [epoch.loss, epoch.loss], **style, zorder=3)
    entries["mean of an epoch"] = drawing.line_sample(**style)
    style = {"color": drawing.GREEN, "marker": "s", "markersize": 5, "linewidth": 1.6}
    accuracy.plot(ends[: len(report.accuracies)], report.accuracies, **style, clip_on=False)
    accuracy.set_ylim(max(0.0, min([0.9, *report.accuracies]) - 0.02), 1.0)
    accuracy.yaxis.set_major_formatter(_percents())
    entries["test accuracy"] = drawing.line_sample(**style)
    style = {"color": drawing.BLACK, "linewidth": 1.4}
    scale.step(places, [step.loss_scale for step in report.steps], where="mid", **style)
    for flag, color, marker in zip(WATCHED, (drawing.ORANGE, drawing.PURPLE), "xv", strict=True):
        raised = [
            (place, step.loss_scale) for place, step in zip(places, report.steps, strict=True) if flag in step.flags
        ]
        if raised:
            style = {"color": color, "marker": marker, "markersize": 5, "linestyle": "none"}
            scale.plot(*zip(*raised, strict=True), **style, zorder=4, clip_on=False)
            entries[f"step that raised {flag.name}"] = drawing.line_sample(**style)
    scales = [step.loss_scale for step in report.steps]
    drawing.log2_axis(scale.yaxis, min(scales) / 2, max(scales) * 2, most=4)
    loss.set_ylabel("loss")
    accuracy.set_ylabel("accuracy")
    scale.set_ylabel("loss scale")
    scale.set_xlabel("step")
    scale.xaxis.get_major_locator().set_params(integer=True)
    loss.set_xlim(0.5, len(report.steps) + 0.5)
    for axes in (loss, accuracy, scale):
        drawing.plain_axes(axes)
    for axes in (loss, accuracy):
        axes.tick_params(labelbottom=False)
    if layers:
        entries |= _swamped_panel(panels[3], layers)
    loss.set_title(f"{report.title} on {report.options.dataset}")
    drawing.legend_below(figure, entries, columns=3)
    return figure


def _percents() -> Any:
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(1.0)


LEAST_AXIS = 0.01  # a share below 1 % looks like little, whatever the other layers have


def _swamped_panel(axes: Any, layers: list[Layer]) -> dict[str, Any]:
    """A pair of bars for each layer, and how long they are; returns the legend's entries."""
    entries = {}
    largest = max(_share(getattr(layer, which)) or 0.0 for layer in layers for which in ("forward", "backward"))
    styles = {"forward": {"color": drawing.BLUE}, "backward": {"color": drawing.ORANGE, "hatch": "///"}}
    for offset, (which, style) in zip((-0.2, 0.2), styles.items(), strict=True):
        shares = [_share(getattr(layer, which)) or 0.0 for layer in layers]
        axes.barh([row + offset for row in range(len(layers))], shares, 0.36, edgecolor="white", linewidth=0, **style)
        for row, (layer, share) in enumerate(zip(layers, shares, strict=True)):
            if _share(getattr(layer, which)) is not None:
                axes.annotate(
                    drawing.percent_text(share),
                    (share, row + offset),
                    (3, 0),
                    textcoords="offset points",
                    va="center",
                    size=8,
                )
        entries[f"swamped, {which}"] = drawing.patch_sample(
            facecolor=style["color"], hatch=style.get("hatch"), edgecolor="white", linewidth=0
        )
    axes.set_yticks(range(len(layers)), [layer.name for layer in layers])
    axes.set_ylim(len(layers) - 0.4, -0.6)
    axes.set_xlim(0, max(LEAST_AXIS, 1.15 * largest))
    axes.xaxis.set_major_formatter(_percents())
    axes.locator_params(axis="x", nbins=5)  # a small share has a long name
    axes.set_xlabel("share of what was added that changed nothing")
    drawing.plain_axes(axes, "x")
    return entries
