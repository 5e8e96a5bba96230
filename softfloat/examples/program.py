"""What the programs share: options, epochs, progress, and ways to end."""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from softfloat.commands.arguments import positive, seed
from softfloat.commands.output import FAILED, INTERRUPTED, CommandError, Parser, console, exit_status, print_json
from softfloat.environments import Environment
from softfloat.examples import data, reports
from softfloat.examples.device import Device, Learner, Step, Stopped
from softfloat.examples.reports import Report
from softfloat.progress import bars, is_watched
from softfloat.status import FloatingPointTrap

if TYPE_CHECKING:
    import torch

__all__ = ["Program"]

LARGEST_SCALE = 2.0**127  # in float32, which the scaled loss may be


# -- programs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """A program and what is its own.

    Attributes
    ----------
    name : str
        The module's.
    description : str
    precisions : tuple of str
        What the first argument may be.
    add_options : callable
        Adds arguments to the parser, after the first.
    check : callable
        Raises CommandError at options that do not go together.
    prepare : callable
        From a data set to that which is trained on.
    images : {"float16", "float32"}
        What images are converted to, on the host, where anything is emulated.
    epochs : int
        The default.
    loss_scale : float, optional
        The default; None: what trains knows its own.
    about_loss_scale : str
        What the help says of it.
    environment : callable
        From options to that of float16 tensors; None where there are none.
    build : callable
        From options, data and device to a new learner.
    """

    name: str
    description: str
    precisions: tuple[str, ...]
    environment: Callable[[argparse.Namespace], Environment | None]
    build: Callable[[argparse.Namespace, data.Dataset, Device], Learner]
    add_options: Callable[[argparse.ArgumentParser], object] = field(default=lambda parser: None)
    check: Callable[[argparse.Namespace], object] = field(default=lambda options: None)
    prepare: Callable[[data.Dataset], data.Dataset] = field(default=lambda found: found)
    images: str = "float16"
    epochs: int = 5
    loss_scale: float | None = 256.0
    about_loss_scale: str = "what the loss is multiplied by before gradients are computed (default: 256)"

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run the program.

        Parameters
        ----------
        argv : sequence of str, optional
            Arguments; default those of the process.

        Returns
        -------
        int
            The exit status: 0; 1 if a trap or a loss that is no number ended the training, 2 for an error in what was asked, 130 after Ctrl-C, 141
            if nobody reads the output.
        """
        return exit_status(self.name, lambda arguments: self._run(self._parser().parse_args(arguments)), argv)

    def _parser(self) -> argparse.ArgumentParser:
        parser = Parser(prog=f"python -m softfloat.examples.{self.name}", description=self.description)
        add = parser.add_argument
        add("precision", choices=self.precisions, help="what the model computes in")
        self.add_options(parser)
        add("--batch-size", type=positive, default=32, metavar="N", help="images in a batch (default: 32)")
        epochs = f"passes over the training images (default: {self.epochs})"
        add("--epochs", type=positive, default=self.epochs, metavar="N", help=epochs)
        scale = self.about_loss_scale
        add("--loss-scaling-factor", type=_scale, default=self.loss_scale, metavar="X", help=scale)
        add("--learning-rate", type=_rate, default=0.01, metavar="X", help="of the optimiser (default: 0.01)")
        partials = "store sums of products of float16 as float16, not float32, in matrix products and convolutions"
        add("--use-float16-partials", action="store_true", help=partials)
        sets = (
            "digits come with scikit-learn, random images are drawn, the others read from --data-dir (default: digits)"
        )
        add("--dataset", choices=data.DATASETS, default="digits", help=sets)
        folder = "folder of the files that Fashion-MNIST (IDX) or CIFAR-10 (binary version) are distributed as"
        add("--data-dir", metavar="FOLDER", help=folder)
        limit = "train on the first N images alone, test on no more than that (default: all)"
        add("--limit", type=positive, metavar="N", help=limit)
        seeded = "of first weights, order and stochastic rounding, 0 to 2^64 - 1 (default: 0)"
        add("--seed", type=seed, default=0, metavar="N", help=seeded)
        add("--plot", metavar="FILE", help="draw the training; .png, .svg or .pdf (needs matplotlib)")
        add("--json", action="store_true", help="print one JSON document instead of tables")
        return parser

    def _run(self, options: argparse.Namespace) -> int:
        self.check(options)
        if options.plot is not None:
            reports.check_plot(options.plot)
        _need_torch()
        found = _load(options)
        report = self._trained(options, self.prepare(found))
        if options.plot is not None and report.steps:
            reports.plot(report, options.plot)
            report.plot = options.plot
        if options.json:
            print_json(reports.document(report))
        else:
            reports.render(report, console())
        return INTERRUPTED if report.interrupted else FAILED if report.stopped else 0

    def _trained(self, options: argparse.Namespace, found: data.Dataset) -> Report:
        """All epochs, or those until Ctrl-C or a trap."""
        import torch

        environment = self.environment(options)
        dtype = torch.float32 if environment is None else getattr(torch, self.images)
        train, test = (
            (torch.from_numpy(images).to(dtype), torch.from_numpy(labels))  # on the host, to nearest even
            for images, labels in ((found.train_images, found.train_labels), (found.test_images, found.test_labels))
        )
        period = len(train[0]) // options.batch_size
        partials = "half" if options.use_float16_partials else "float"
        device = Device(environment, partials, options.loss_scaling_factor or 1.0, period)
        report = Report(self.name, options, device, len(train[0]), len(test[0]))

        def learner(device: Device) -> Learner:
            torch.manual_seed(options.seed)
            return self.build(options, found, device)

        order = np.random.default_rng([options.seed, 1])
        tests = list(_batches(*test, torch.arange(len(test[0])), options.batch_size))
        try:
            with _progress(report, period) as show:
                show.announce("warming up: one step on a copy of the model, compiled where need be")
                batches = _shuffled(*train, order, options.batch_size)
                spare = learner(device.spare())
                with contextlib.suppress(FloatingPointTrap, Stopped):  # which the step itself will meet again
                    spare.train(batches[:1])
                    spare.accuracy(tests[:1])
                trained = learner(device)
                for _ in range(options.epochs):
                    with show.epoch():
                        trained.train(batches)
                        report.accuracies.append(trained.accuracy(tests))
                    batches = _shuffled(*train, order, options.batch_size)
        except KeyboardInterrupt:
            report.interrupted = True
        except (FloatingPointTrap, Stopped) as reason:
            report.stopped = str(reason)
        return report


def _need_torch() -> None:
    try:
        import softfloat.torch  # noqa: F401
    except ImportError as error:
        raise CommandError(str(error)) from None


def _load(options: argparse.Namespace) -> data.Dataset:
    try:
        found = data.load(options.dataset, options.data_dir, options.limit, options.seed)
    except (ValueError, ImportError) as error:
        raise CommandError(str(error).replace("data_dir", "--data-dir")) from None
    except OSError as error:
        reason = f"cannot read {error.filename}: {error.strerror}" if error.strerror else str(error)
        raise CommandError(reason) from None
    if len(found.train_images) < options.batch_size:
        raise CommandError(
            f"argument --batch-size: must be at most the number of training images, {len(found.train_images)}, "
            f"got {options.batch_size}"
        )
    return found


def _number(text: str, highest: float, accepted: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= highest:
        raise argparse.ArgumentTypeError(f"must be {accepted}, got {text.strip()[:40]!r}")
    return number


def _scale(text: str) -> float:
    return _number(text, LARGEST_SCALE, "a positive number, at most 2^127")


def _rate(text: str) -> float:
    return _number(text, sys.float_info.max, "a positive number")


# -- batches ---------------------------------------------------------------------------------------------------------


def _batches(
    images: torch.Tensor, labels: torch.Tensor, order: torch.Tensor, size: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for chosen in order.split(size):
        yield images[chosen], labels[chosen]


def _shuffled(
    images: torch.Tensor, labels: torch.Tensor, rng: np.random.Generator, size: int
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Full batches alone, as in the tutorial."""
    import torch

    order = torch.from_numpy(rng.permutation(len(labels)))
    return list(_batches(images, labels, order[: len(order) // size * size], size))


# -- progress --------------------------------------------------------------------------------------------------------


def _line(report: Report) -> str:
    """The epoch that ended last."""
    last = report.epochs[-1]
    return (
        f"{report.program}: epoch {last.number} of {report.options.epochs}: loss {last.loss:.4f}, "
        f"accuracy {last.accuracy:.1%}, {last.seconds:.1f} s"
    )


class _Lines:
    """A line on standard error at the end of each epoch."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def announce(self, text: str) -> None:
        print(f"{self._report.program}: {text}", file=sys.stderr)

    @contextlib.contextmanager
    def epoch(self) -> Iterator[None]:
        yield
        print(_line(self._report), file=sys.stderr)


class _Bars:
    """The same lines on a terminal, and below them a bar for the epoch under way, with the mean of its losses."""

    def __init__(self, report: Report, bars: Any, period: int) -> None:
        self._report, self._bars, self._period = report, bars, period
        self._shown: Any = None

    def announce(self, text: str) -> None:
        self._show(text, None)

    def _show(self, text: str, total: int | None) -> None:
        """One bar, in the place of the last."""
        if self._shown is not None:
            self._bars.remove_task(self._shown)
        self._shown = self._bars.add_task(text, total=total, loss="")

    @contextlib.contextmanager
    def epoch(self) -> Iterator[None]:
        losses: list[float] = []
        self._show(f"epoch {len(self._report.accuracies) + 1} of {self._report.options.epochs}", self._period)

        def after(step: Step) -> None:
            losses.append(step.loss)
            self._bars.update(self._shown, advance=1, loss=f"loss {math.fsum(losses) / len(losses):.4f}")

        self._report.device.after = after
        yield
        self._bars.console.print(_line(self._report), highlight=False)


@contextlib.contextmanager
def _progress(report: Report, period: int) -> Iterator[_Lines | _Bars]:
    if not is_watched():
        yield _Lines(report)
        return
    with bars("{task.description}", "bar", "count", "{task.fields[loss]}", "elapsed") as shown:
        yield _Bars(report, shown, period)
