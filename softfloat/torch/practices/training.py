"""MindSpore's `Model`: a network, its loss and its optimiser trained at a level of mixed precision, with callbacks and metrics.

>>> import torch
>>> import softfloat
>>> from softfloat.torch import Accuracy, LossMonitor, Model, emulate
>>> _ = torch.manual_seed(0)
>>> network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
>>> optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
>>> env = softfloat.Environment(overflow="saturate")
>>> model = Model(
...     network,
...     torch.nn.CrossEntropyLoss(),
...     optimiser,
...     metrics={"Accuracy": Accuracy()},
...     amp_level="O2",
...     environment=env,
... )
>>> images = torch.randn(64, 4)
>>> batches = [(x, (x[:, 0] > 0).long()) for x in images.split(8)]
>>> with emulate(env):
...     model.train(4, batches, callbacks=LossMonitor(8))  # doctest: +ELLIPSIS
...     found = model.eval(batches)
epoch: 1 step: 8, loss is 0.7...
epoch: 2 step: 8, loss is 0.4...
epoch: 3 step: 8, loss is 0.1...
epoch: 4 step: 8, loss is 0.06...
>>> found["Accuracy"] > 0.9, model.predict(images).dtype, network[0].weight.dtype
(True, torch.float32, torch.float16)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from softfloat.checks import check_choice, check_count, check_switch
from softfloat.environments import Environment
from softfloat.torch.operators.unit import check_environment
from softfloat.torch.practices import amp
from softfloat.torch.practices.amp import TrainingStep, TrainOneStepWithLossScale, auto_mixed_precision, loss_of
from softfloat.torch.practices.metrics import Loss, Metric, by_name

__all__ = ["Callback", "CallbackParameters", "InvalidLossError", "LossMonitor", "Model", "RunContext"]

# -- callbacks -------------------------------------------------------------------------------------------------------


@dataclass
class CallbackParameters:
    """What a callback is told, and may read.

    Attributes
    ----------
    mode : {"train", "eval"}
    network : torch.nn.Module
    train_network : TrainOneStepWithLossScale, optional
    loss_fn, optimizer
        Of the model.
    batch_num : int
        Batches in an epoch.
    epoch_num : int
        The last epoch's number.
    cur_epoch_num, cur_step_num : int
        From 1; steps are numbered through all epochs.
    train_dataset_element
        The batch under way.
    net_outputs
        In training the step's `TrainingStep`; in an evaluation (loss, outputs, labels).
    metrics : dict of str to float, optional
        What an evaluation found, at its end.
    """

    mode: Literal["train", "eval"]
    network: nn.Module
    train_network: TrainOneStepWithLossScale | None
    loss_fn: Callable[[Any, Any], torch.Tensor] | None
    optimizer: torch.optim.Optimizer | None
    batch_num: int
    epoch_num: int = 1
    cur_epoch_num: int = 1
    cur_step_num: int = 0
    train_dataset_element: Any = None
    net_outputs: Any = None
    metrics: dict[str, float] | None = None


class RunContext:
    """What a callback is called with.

    Parameters
    ----------
    parameters : CallbackParameters
    """

    def __init__(self, parameters: CallbackParameters) -> None:
        self._parameters, self._stop = parameters, False

    def original_args(self) -> CallbackParameters:
        """The training or evaluation under way."""
        return self._parameters

    def request_stop(self) -> None:
        """End the training after this step; its epoch's end and the end are still called."""
        self._stop = True

    def get_stop_requested(self) -> bool:
        """Whether the end was asked for."""
        return self._stop


class Callback:
    """Something to do at certain points of a training or evaluation: a context manager, entered before and left after it.

    Source
    ------
    mindspore-ai/mindspore, train/callback/_callback.py.
    """

    def __enter__(self) -> Callback:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def begin(self, run_context: RunContext) -> None:
        """Before the first epoch."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """Before each epoch."""

    def step_begin(self, run_context: RunContext) -> None:
        """Before each batch."""

    def step_end(self, run_context: RunContext) -> None:
        """After each batch."""

    def epoch_end(self, run_context: RunContext) -> None:
        """After each epoch."""

    def end(self, run_context: RunContext) -> None:
        """After the last epoch."""


class InvalidLossError(ValueError):
    """A loss that is infinite or not a number."""


class LossMonitor(Callback):
    """Prints the loss every so many steps, and ends a training whose loss is infinite or NaN.

    Parameters
    ----------
    per_print_times : int
        0: nothing is printed.
    write : callable
        Is given each line.

    Raises
    ------
    ValueError
        Naming the argument.
    InvalidLossError
        From `step_end`.

    Notes
    -----
    MindSpore moves data to devices an epoch at a time unless told `dataset_sink_mode=False`, and then prints once an
    epoch, whatever `per_print_times`.

    Source
    ------
    mindspore-ai/mindspore, train/callback/_loss_monitor.py.
    """

    def __init__(self, per_print_times: int = 1, *, write: Callable[[str], object] = print) -> None:
        self._every, self._printed = check_count("per_print_times", per_print_times, 0), 0
        if not callable(write):
            raise TypeError(f"write must be a function of a line, got {write!r}")
        self._write = write

    def begin(self, run_context: RunContext) -> None:
        """Count anew from where the training begins."""
        self._printed = run_context.original_args().cur_step_num

    def step_end(self, run_context: RunContext) -> None:
        """Look at the loss."""
        parameters = run_context.original_args()
        outputs = parameters.net_outputs
        loss = float(outputs.loss if isinstance(outputs, TrainingStep) else outputs[0])
        step = (parameters.cur_step_num - 1) % parameters.batch_num + 1
        where = f"epoch: {parameters.cur_epoch_num} step: {step}"
        if not np.isfinite(loss):
            raise InvalidLossError(f"{where}: the loss is {loss}, which ends the training")
        if self._every and parameters.cur_step_num - self._printed >= self._every:
            self._printed = parameters.cur_step_num
            self._write(f"{where}, loss is {loss}")


class _Callbacks:
    """All of a training's, in their order, as one context."""

    def __init__(self, given: Any, run_context: RunContext) -> None:
        listed = [] if given is None else [given] if isinstance(given, Callback) else given
        if not isinstance(listed, (list, tuple)) or not all(isinstance(x, Callback) for x in listed):
            raise TypeError(f"callbacks must be a softfloat.torch.Callback, a list of them or None, got {given!r}")
        self._listed, self._context, self._stack = list(listed), run_context, ExitStack()

    def __enter__(self) -> _Callbacks:
        with ExitStack() as stack:
            for callback in self._listed:
                stack.enter_context(callback)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    def __call__(self, event: str) -> None:
        for callback in self._listed:
            getattr(callback, event)(self._context)


# -- the model -------------------------------------------------------------------------------------------------------


class Model:
    """A network with what trains and evaluates it.

    Parameters
    ----------
    network : torch.nn.Module
        Changed in place as `amp_level` says.
    loss_fn : callable, optional
        (outputs, labels) -> a single number, of float32. None: the network returns the loss; it is given all that a batch
        consists of.
    optimizer : torch.optim.Optimizer, optional
        Of the network's parameters. `train` needs one.
    metrics : dict of str to Metric, or set of str, optional
        What `eval` finds; a set names some of "accuracy", "acc" and "loss".
    amp_level : {"O0", "O1", "O2", "O3", "auto"}
        As of `auto_mixed_precision`.
    loss_scale_manager : torch.amp.GradScaler or None, or "level"
        "level": the one that goes with the level, which is a `DynamicLossScaleManager` for O2 and none for the others.
        None: the loss is not scaled, whatever the level.
    keep_batchnorm_fp32 : bool, optional
        Instead of the level's.
    device_target : {"GPU", "Ascend"}
        Decides what "auto" means: O2, O3.
    environment : Environment, optional
        Whose flags the level's own loss scale manager reads: the one that `emulate` was given. None: the one in force.

    Attributes
    ----------
    network : torch.nn.Module
    train_network : TrainOneStepWithLossScale or None
        Carries out the steps; None without an optimiser.
    loss_scale_manager : torch.amp.GradScaler or None

    Raises
    ------
    TypeError, ValueError
        Naming the argument, or arguments that exclude each other. The network is not changed then.

    Notes
    -----
    Enter `emulate` around `train`, `eval` and `predict`, or in a callback around each step. A step is one of
    `TrainOneStepWithLossScale`, in MindSpore's order.

    Other dtypes than float16: give `auto_mixed_precision(network, level, cast_model_type=torch.bfloat16)` to a model of
    level O0.

    In MindSpore's own `Model`, "auto" on Ascend keeps batch norms in float32, which its tables and documentation give to
    O2 alone; here it is O3 without exceptions. Its `predict` returns float16 where the network computes in that; here
    outputs are float32 at each level. Its `FixedLossScaleManager(..., False)` wants the scale a second time, in the
    optimiser; here the step divides by it. `eval` and `predict` leave modules in the mode, training or not, in which they
    found them.

    Source
    ------
    mindspore-ai/mindspore, train/model.py and train/amp.py (`build_train_network`).
    """

    def __init__(
        self,
        network: nn.Module,
        loss_fn: Callable[[Any, Any], torch.Tensor] | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        metrics: Mapping[str, Metric] | Collection[str] | None = None,
        *,
        amp_level: str = "O0",
        loss_scale_manager: torch.amp.GradScaler | Literal["level"] | None = "level",
        keep_batchnorm_fp32: bool | None = None,
        device_target: str = "GPU",
        environment: Environment | None = None,
    ) -> None:
        if not isinstance(network, nn.Module):
            raise TypeError(f"network must be a torch.nn.Module, got {type(network).__name__}")
        if loss_fn is not None and not callable(loss_fn):
            raise TypeError(f"loss_fn must be a function of outputs and labels or None, got {type(loss_fn).__name__}")
        if optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(f"optimizer must be a torch.optim.Optimizer or None, got {type(optimizer).__name__}")
        check_environment(environment)
        check_choice("amp_level", amp_level, (*amp.LEVELS, "auto"))
        scaler = _scaler(loss_scale_manager, amp_level, device_target, environment)
        self._metrics = by_name(metrics)
        if self._metrics and loss_fn is None:
            raise ValueError(
                "metrics need loss_fn, without which outputs and labels are not known; give both or neither"
            )
        if optimizer is None and amp_level != "O0":
            raise ValueError(f"amp_level must be 'O0' without an optimizer, got {amp_level!r}")
        if optimizer is None and scaler is not None:
            raise ValueError("loss_scale_manager must be None without an optimizer, whose gradients it scales")
        if optimizer is not None and not _share(optimizer, network):
            raise ValueError("optimizer must have parameters of the network, got others alone")
        if amp_level == "O0" and keep_batchnorm_fp32 is not None:
            raise ValueError(
                f"keep_batchnorm_fp32 must be None at amp_level 'O0', which casts nothing, got {keep_batchnorm_fp32!r}"
            )
        self.network = auto_mixed_precision(
            network, amp_level, keep_batchnorm_fp32=keep_batchnorm_fp32, device_target=device_target
        )
        self.loss_fn, self.optimizer, self.loss_scale_manager = loss_fn, optimizer, scaler
        self.train_network = (
            None if optimizer is None else TrainOneStepWithLossScale(network, loss_fn or _own_loss, optimizer, scaler)
        )

    def train(
        self,
        epoch: int,
        train_dataset: Collection[Any],
        callbacks: Callback | list[Callback] | tuple[Callback, ...] | None = None,
        *,
        dataset_sink_mode: bool = False,
        initial_epoch: int = 0,
    ) -> None:
        """Train up to an epoch.

        Parameters
        ----------
        epoch : int
            The last one's number.
        train_dataset : iterable with a length
            Of batches, gone through in each epoch: (inputs, labels), of which `TrainOneStepWithLossScale` says what the
            inputs may be; without `loss_fn`, the network's argument or a tuple of them.
        callbacks : Callback, or list or tuple of them, optional
            Called in their order.
        dataset_sink_mode : bool
            Must be False: batches are given to the network one by one.
        initial_epoch : int
            How many epochs were done before.

        Raises
        ------
        TypeError, ValueError
            Naming the argument, or the batch that is none.
        """
        step = self.train_network
        if step is None:
            raise ValueError("train needs the optimizer that the model was made without")
        batches = _checked_data("train_dataset", train_dataset, dataset_sink_mode)
        check_count("epoch", epoch)
        if check_count("initial_epoch", initial_epoch, 0) >= epoch:
            raise ValueError(f"initial_epoch must be below epoch, {epoch}, got {initial_epoch}")
        parameters = self._parameters("train", batches, epoch)
        parameters.cur_step_num = initial_epoch * batches
        run_context = RunContext(parameters)
        with _Callbacks(callbacks, run_context) as call:
            call("begin")
            for number in range(initial_epoch + 1, epoch + 1):
                parameters.cur_epoch_num = number
                self.network.train()
                call("epoch_begin")
                for element in train_dataset:
                    parameters.cur_step_num += 1
                    parameters.train_dataset_element = element
                    call("step_begin")
                    parameters.net_outputs = step(*self._parted("train_dataset", element))
                    call("step_end")
                    if run_context.get_stop_requested():
                        break
                call("epoch_end")
                if run_context.get_stop_requested():
                    break
            call("end")

    def eval(
        self,
        valid_dataset: Collection[Any],
        callbacks: Callback | list[Callback] | tuple[Callback, ...] | None = None,
        *,
        dataset_sink_mode: bool = False,
    ) -> dict[str, float]:
        """Evaluate the network, without any change to it.

        Parameters
        ----------
        valid_dataset : iterable with a length
            Of batches (inputs, labels).
        callbacks, dataset_sink_mode
            As of `train`.

        Returns
        -------
        dict of str to float
            The metrics by name.

        Raises
        ------
        TypeError, ValueError
            Naming the argument; for a model without metrics.
        """
        if not self._metrics:
            raise ValueError("eval needs metrics, which the model was made without")
        assert self.loss_fn is not None
        batches = _checked_data("valid_dataset", valid_dataset, dataset_sink_mode)
        parameters = self._parameters("eval", batches, 1)
        for metric in self._metrics.values():
            metric.clear()
        with _Callbacks(callbacks, RunContext(parameters)) as call, torch.no_grad(), _evaluating(self.network):
            call("begin")
            call("epoch_begin")
            for element in valid_dataset:
                parameters.cur_step_num += 1
                parameters.train_dataset_element = element
                call("step_begin")
                found = loss_of(self.network, self.loss_fn, *self._parted("valid_dataset", element))
                parameters.net_outputs = found
                call("step_end")
                for metric in self._metrics.values():
                    metric.update(*(found[:1] if isinstance(metric, Loss) else found[1:]))
            call("epoch_end")
            parameters.metrics = {name: metric.eval() for name, metric in self._metrics.items()}
            call("end")
        return parameters.metrics

    def predict(self, *predict_data: Any) -> Any:
        """The network's outputs, without any change to it.

        Parameters
        ----------
        predict_data
            The network's arguments.
        """
        with torch.no_grad(), _evaluating(self.network):
            return self.network(*predict_data)

    def _parameters(self, mode: Literal["train", "eval"], batches: int, epoch: int) -> CallbackParameters:
        return CallbackParameters(
            mode, self.network, self.train_network, self.loss_fn, self.optimizer, batch_num=batches, epoch_num=epoch
        )

    def _parted(self, argument: str, element: Any) -> tuple[Any, Any]:
        """A batch as inputs and labels."""
        if self.loss_fn is None:
            return (tuple(element) if isinstance(element, (tuple, list)) else element), None
        if not isinstance(element, (tuple, list)) or len(element) != 2:
            shown = f"{len(element)} parts" if isinstance(element, (tuple, list)) else type(element).__name__
            raise ValueError(
                f"{argument} must have batches of inputs and labels, got {shown}; several inputs are a tuple"
            )
        return element[0], element[1]


def _share(optimizer: torch.optim.Optimizer, network: nn.Module) -> bool:
    """Whether an optimiser's step can change a network."""
    own = {id(p) for p in network.parameters()}
    return any(id(p) in own for group in optimizer.param_groups for p in group["params"])


def _own_loss(outputs: Any, labels: Any) -> torch.Tensor:
    """Of a network that returns it."""
    loss: torch.Tensor = outputs
    return loss


def _scaler(
    given: Any, amp_level: str, device_target: str, environment: Environment | None
) -> torch.amp.GradScaler | None:
    own = amp.loss_scale_manager(amp_level, device_target=device_target, environment=environment)
    if isinstance(given, str) and given == "level":
        return own
    if given is not None and not isinstance(given, torch.amp.GradScaler):
        shown = given.__name__ if isinstance(given, type) else type(given).__name__
        raise TypeError(f"loss_scale_manager must be a torch.amp.GradScaler, 'level' or None, got {shown}")
    if given is not None and environment is not None:
        raise ValueError("environment must be None beside a loss_scale_manager; give it to the manager, which reads it")
    return given


def _checked_data(argument: str, data: Any, dataset_sink_mode: Any) -> int:
    """How many batches there are."""
    check_switch("dataset_sink_mode", dataset_sink_mode)
    if dataset_sink_mode:
        raise ValueError("dataset_sink_mode must be False: batches are given to the network one by one")
    if not hasattr(data, "__iter__") or not hasattr(data, "__len__") or isinstance(data, (torch.Tensor, str, Mapping)):
        raise TypeError(
            f"{argument} must be batches that can be counted and gone through again, such as a list or a DataLoader, "
            f"got {type(data).__name__}"
        )
    if not len(data):
        raise ValueError(f"{argument} must have at least one batch, got none")
    return len(data)


@contextmanager
def _evaluating(network: nn.Module) -> Iterator[None]:
    """All modules in evaluation mode, and each back in its own."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
