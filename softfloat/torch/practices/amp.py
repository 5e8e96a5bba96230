"""Which modules compute in half precision: MindSpore's `to_float` and its levels, and its training step.

Parameters, their gradients and the optimiser stay in float32 throughout; what computes gets casts of them. That differs
from `Module.half`, which leaves nothing to fall back on.

>>> import torch
>>> from torch import nn
>>> import softfloat
>>> from softfloat.torch import emulate
>>> from softfloat.torch.practices.amp import TrainOneStepWithLossScale, auto_mixed_precision, loss_scale_manager
>>> _ = torch.manual_seed(0)
>>> model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
>>> model = auto_mixed_precision(model, "O2")
>>> env = softfloat.Environment(overflow="saturate")
>>> optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
>>> step = TrainOneStepWithLossScale(
...     model, nn.CrossEntropyLoss(), optimiser, loss_scale_manager("O2", environment=env)
... )
>>> with emulate(env):
...     first = step(torch.randn(8, 1, 8, 8), torch.arange(8))
>>> first.overflow, first.scale, step.scaler.get_scale()
(True, 16777216.0, 8388608.0)
>>> {p.dtype for p in model.parameters()}, model[0].weight.dtype, model(torch.randn(1, 1, 8, 8)).dtype
({torch.float32}, torch.float16, torch.float32)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from softfloat.checks import check_switch, nearest
from softfloat.environments import current_environment
from softfloat.status import NO_FLAGS, Flags, Status
from softfloat.torch import private
from softfloat.torch.practices.parameters import check_module, hand_over, own_parameters, walk
from softfloat.torch.practices.scaling import DynamicLossScaleManager, GradScaler

__all__ = [
    "LEVELS",
    "Level",
    "TrainOneStepWithLossScale",
    "TrainingStep",
    "auto_mixed_precision",
    "loss_scale_manager",
    "to_float",
]

FLOATING = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
WHITE_LIST = (
    *(nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, nn.Linear),
    *(nn.LSTM, nn.GRU, nn.RNN, nn.LSTMCell, nn.GRUCell, nn.RNNCell, nn.PReLU, nn.ReLU),
)


# -- modules ---------------------------------------------------------------------------------------------------------


@dataclass
class Precision:
    """What a module does about dtypes: an attribute of it, so that copies have their own.

    Attributes
    ----------
    inputs : torch.dtype, optional
        What its floating-point arguments are cast to.
    outputs : tuple of torch.dtype
        What its results are cast to, one after the other.
    level : str
        What `auto_mixed_precision` was asked for.
    """

    inputs: torch.dtype | None = None
    outputs: tuple[torch.dtype, ...] = ()
    level: str = ""


ATTRIBUTE = "softfloat_precision"


def _precision(module: nn.Module) -> Precision:
    """A module's own, made if it has none."""
    found = getattr(module, ATTRIBUTE, None)
    if found is None:
        found = Precision()
        setattr(module, ATTRIBUTE, found)
        # before others, which then see what is computed with
        module.register_forward_pre_hook(_enter, prepend=True, with_kwargs=True)
        module.register_forward_hook(_leave)
    return found


def _enter(module: nn.Module, args: Any, kwargs: Any) -> Any:
    dtype = getattr(module, ATTRIBUTE).inputs
    return (args, kwargs) if dtype is None else (_cast(args, dtype), _cast(kwargs, dtype))


def _leave(module: nn.Module, args: Any, output: Any) -> Any:
    for dtype in getattr(module, ATTRIBUTE).outputs:
        output = _cast(output, dtype)
    return output


def _cast(tree: Any, dtype: torch.dtype, which: Iterable[torch.dtype] = FLOATING) -> Any:
    """The floating-point tensors in tuples, lists and mappings cast."""
    if isinstance(tree, torch.Tensor):
        return tree.to(dtype) if tree.dtype in which else tree
    if isinstance(tree, PackedSequence):
        return tree.to(dtype) if tree.data.dtype in which else tree
    if isinstance(tree, tuple):
        parts = [_cast(x, dtype, which) for x in tree]
        return tree._make(parts) if hasattr(tree, "_make") else type(tree)(parts)
    if isinstance(tree, list):
        tree = copy.copy(tree)
        tree[:] = [_cast(x, dtype, which) for x in tree]
    elif isinstance(tree, MutableMapping):
        tree = copy.copy(tree)
        for key in list(tree):
            tree[key] = _cast(tree[key], dtype, which)
    return tree


def _compute(module: nn.Module, dtype: torch.dtype, outputs: tuple[torch.dtype, ...] = ()) -> None:
    """Let one module compute in a dtype."""
    hand_over(module, own_parameters(module), dtype)
    precision = _precision(module)
    precision.inputs, precision.outputs = dtype, outputs


def to_float(module: nn.Module, dtype: torch.dtype | str) -> nn.Module:
    """Let a module and all within it compute in `dtype`; parameters and their gradients are float32.

    Parameters
    ----------
    module : torch.nn.Module
        Changed in place. Parameters become those of `float32_parameters`.
    dtype : torch.dtype or str
        torch.float32, torch.float16 or torch.bfloat16, or the name of one.

    Returns
    -------
    torch.nn.Module
        `module`. Its outputs are in `dtype`.

    Raises
    ------
    TypeError, ValueError
        Naming the argument. Nothing is changed then.

    Notes
    -----
    Whenever a module is called, containers included, floating-point tensors among its arguments are cast, by position or
    by keyword, also inside tuples, lists, mappings and packed sequences. Integers (of embeddings, masks) and objects of
    other kinds are left as they are, and so are buffers.

    The last call counts for each module: `to_float(net.head, torch.float32)` after `to_float(net, torch.float16)` lets
    the head cast what it is given to float32.

    Source
    ------
    MindSpore, `nn.Cell.to_float`.

    >>> import torch
    >>> layer = to_float(torch.nn.Linear(3, 2), torch.bfloat16)
    >>> layer(torch.ones(1, 3)).dtype
    torch.bfloat16
    """
    dtype = check_module(module, dtype, "module")
    for _, part in walk(module):
        _compute(part, dtype)
    return module


# -- levels ----------------------------------------------------------------------------------------------------------


class Level(NamedTuple):
    """What a level of `auto_mixed_precision` means.

    Attributes
    ----------
    cast_model_type : torch.dtype
        What is computed in.
    keep_batchnorm_fp32 : bool
        Whether batch norms compute in float32.
    loss_scale_manager : callable, optional
        Makes the loss scaler that goes with it.
    listed : bool
        Whether only modules on a white list compute in `cast_model_type`.
    """

    cast_model_type: torch.dtype
    keep_batchnorm_fp32: bool
    loss_scale_manager: Callable[..., GradScaler] | None = None
    listed: bool = False


LEVELS = {
    "O0": Level(torch.float32, False),
    "O1": Level(torch.float16, True, listed=True),
    "O2": Level(torch.float16, True, DynamicLossScaleManager),
    "O3": Level(torch.float16, False),
}
"""MindSpore's levels. Its own table has float32 for O1, whose casts stand elsewhere; here it is the white list's dtype."""

TARGETS = {"GPU": "O2", "Ascend": "O3"}
"""What "auto" means on which device."""


def _row(level: Any, device_target: Any) -> Level:
    """The row of a level."""
    if level == "auto":
        if device_target not in TARGETS:
            raise ValueError(
                f"device_target must be one of {', '.join(TARGETS)} for auto, got {device_target!r}{nearest(device_target, TARGETS)}"
            )
        level = TARGETS[device_target]
    if not isinstance(level, str) or level not in LEVELS:
        kind = ValueError if isinstance(level, str) else TypeError
        raise kind(f"level must be one of {', '.join(LEVELS)}, auto, got {level!r}{nearest(level, LEVELS)}")
    return LEVELS[level]


def _products_cast(model: nn.Module, forward: Callable[..., Any], dtype: torch.dtype, *args: Any, **kwargs: Any) -> Any:
    """A forward pass in which PyTorch casts the operands of products."""
    parameter = next(model.parameters(), None)
    with torch.autocast("cpu" if parameter is None else parameter.device.type, dtype=dtype):
        return forward(*args, **kwargs)


def auto_mixed_precision(
    model: nn.Module,
    level: str = "O0",
    *,
    keep_batchnorm_fp32: bool | None = None,
    cast_model_type: torch.dtype | str | None = None,
    device_target: str = "GPU",
) -> nn.Module:
    """Let a model compute in half precision as far as a level says. Parameters and their gradients are float32 at each.

    Parameters
    ----------
    model : torch.nn.Module
        Changed in place.
    level : {"O0", "O1", "O2", "O3", "auto"}
        O0 changes nothing.

        O1: modules on a white list, convolutions, transposed ones, Linear, recurrent layers and cells, ReLU and PReLU,
        cast inputs and parameters to half, and outputs back to float32. Batch norms and LayerNorm compute in float32.
        Products in the `forward` of other modules (`@`, `torch.bmm`, attention's) have their operands cast by
        `torch.autocast`, and results in half.

        O2: all modules compute in half, but batch norms in float32, whose outputs are cast back.

        O3: batch norms compute in half too, that is inside float32 with parameters and gradients rounded to half.

        auto: O2 on a GPU, O3 on Ascend.

        What the model returns is cast to float32, so that the loss is one of float32.
    keep_batchnorm_fp32 : bool, optional
        Instead of the level's.
    cast_model_type : torch.dtype or str, optional
        Instead of the level's float16: torch.float16, torch.bfloat16, or torch.float32, with which nothing changes.
    device_target : {"GPU", "Ascend"}
        Decides what "auto" means. Nothing is moved.

    Returns
    -------
    torch.nn.Module
        `model`.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted; for a model that a level was given already. Nothing is changed then.

    Notes
    -----
    The casts are those of `to_float`, which may be called for single modules afterwards. Running statistics are float32
    at each level, as in MindSpore, whose casts spare what an operator writes to: half would forget small contributions.
    MindSpore drops the pair of casts between two listed operators. Here it stays, which changes no number forward;
    backward, gradients from several users of such a tensor are added in float32.

    Source
    ------
    mindspore-ai/mindspore, train/amp.py: `_config_level`, `_auto_white_list`, `_do_keep_batchnorm_fp32`.
    """
    row = _row(level, device_target)
    check_switch("keep_batchnorm_fp32", keep_batchnorm_fp32, optional=True)
    keep = row.keep_batchnorm_fp32 if keep_batchnorm_fp32 is None else keep_batchnorm_fp32
    chosen = row.cast_model_type if cast_model_type is None else cast_model_type
    dtype = check_module(model, chosen, "model", "cast_model_type")
    if dtype == torch.float32:
        return model
    parts = dict(walk(model))
    for path, part in parts.items():
        before = getattr(part, ATTRIBUTE, Precision()).level
        if before:
            where = f"model.{path}" if path else "model"
            raise ValueError(f"{where} has level {before} already; give levels to models without one")
    kept = BATCH_NORMS if keep else ()
    for part in parts.values():
        if row.listed:
            if isinstance(part, WHITE_LIST):
                _compute(part, dtype, (torch.float32,))
            elif isinstance(part, (*kept, nn.LayerNorm)):
                _compute(part, torch.float32)
        elif isinstance(part, kept):
            _compute(part, torch.float32, (dtype,))
        else:
            _compute(part, dtype)
        _precision(part).level = level
    if row.listed:
        model.forward = partial(_products_cast, model, model.forward, dtype)
    precision = _precision(model)
    precision.outputs = (*precision.outputs, torch.float32)
    return model


def loss_scale_manager(level: str, *, device_target: str = "GPU", **options: Any) -> GradScaler | None:
    """The loss scaler that goes with a level: for O2 a `DynamicLossScaleManager`, for the others None.

    Parameters
    ----------
    level, device_target
        As of `auto_mixed_precision`.
    options
        The manager's, above all `environment`. Not looked at where there is none.

    >>> loss_scale_manager("O2", scale_window=1000).get_scale()
    16777216.0
    >>> loss_scale_manager("O3") is None
    True
    """
    factory = _row(level, device_target).loss_scale_manager
    return None if factory is None else factory(**options)


# -- the training step -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TrainingStep:
    """What a step did.

    Attributes
    ----------
    loss : torch.Tensor
        float32, without dimensions, not scaled, detached.
    overflow : bool
        Whether an overflow kept the optimiser from its step.
    scale : float
        What the loss was scaled with; 1 without a scaler.
    flags : Flags
        Those that the scaler watches, raised in either pass or before it; the step has lowered them.
    """

    loss: torch.Tensor
    overflow: bool
    scale: float
    flags: Flags = NO_FLAGS


def loss_of(
    model: nn.Module, loss_fn: Callable[[Any, Any], torch.Tensor], inputs: Any, labels: Any
) -> tuple[torch.Tensor, Any, Any]:
    """The loss as a number, and what it was computed of: outputs and labels, in float32 where they were lower."""
    arguments = inputs if isinstance(inputs, tuple) else (inputs,)
    outputs = model(**inputs) if isinstance(inputs, Mapping) else model(*arguments)
    outputs, labels = (_cast(x, torch.float32, (torch.float16, torch.bfloat16)) for x in (outputs, labels))
    loss = loss_fn(outputs, labels)
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        shown = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise ValueError(f"loss_fn must return a tensor of one number, got {shown}")
    return loss.reshape(()), outputs, labels


class TrainOneStepWithLossScale:
    """A training step in MindSpore's order.

    1. The loss, of the model's outputs and the labels in float32.
    2. The float status is cleared: flags of the forward pass are not counted.
    3. Gradients of the loss times the scale.
    4. They are divided by the scale, in float32.
    5. They are reduced over replicas.
    6. Overflow: a gradient that is not finite, or a flag raised since 2. The scale is updated; flags are lowered.
    7. The optimiser's step, unless there was an overflow.

    Parameters
    ----------
    model : torch.nn.Module
    loss_fn : callable
        (outputs, labels) -> a single number.
    optimizer : torch.optim.Optimizer
        Its gradients are set to zero at the start of a step.
    scaler : torch.amp.GradScaler, optional
        `GradScaler` and the managers have flags, PyTorch's own has none. `FixedLossScaleManager` without
        `drop_overflow_update` sees no overflow. None: no scale, no overflow.
    reduce : callable, optional
        Is given the list of gradients, to be changed in place.

    Raises
    ------
    TypeError
        Naming the argument.

    Notes
    -----
    Enter `emulate` around the call, with the scaler's environment. `step(inputs, labels)` calls the model with a tuple of
    inputs as arguments, a mapping as keywords, anything else as the one argument.

    `GradScaler` by itself also counts flags of the forward pass, where a saturated activation makes gradients wrong that
    are finite.

    Source
    ------
    mindspore-ai/mindspore, nn/wrap/loss_scale.py, `TrainOneStepWithLossScaleCell`, on Ascend.
    """

    def __init__(
        self,
        model: nn.Module,
        loss_fn: Callable[[Any, Any], torch.Tensor],
        optimizer: torch.optim.Optimizer,
        scaler: torch.amp.GradScaler | None = None,
        *,
        reduce: Callable[[list[torch.Tensor]], Any] | None = None,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
        if not callable(loss_fn):
            raise TypeError(f"loss_fn must be a function of outputs and labels, got {type(loss_fn).__name__}")
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(f"optimizer must be a torch.optim.Optimizer, got {type(optimizer).__name__}")
        if scaler is not None and not isinstance(scaler, torch.amp.GradScaler):
            raise TypeError(f"scaler must be a torch.amp.GradScaler or None, got {type(scaler).__name__}")
        if reduce is not None and not callable(reduce):
            raise TypeError(f"reduce must be a function of a list of gradients or None, got {type(reduce).__name__}")
        self.model, self.loss_fn, self.optimizer, self.scaler, self.reduce = model, loss_fn, optimizer, scaler, reduce

    def __call__(self, inputs: Any, labels: Any) -> TrainingStep:
        """One step."""
        scaler = self.scaler if self.scaler is not None and self.scaler.is_enabled() else None
        self.optimizer.zero_grad()
        loss, _, _ = loss_of(self.model, self.loss_fn, inputs, labels)
        reported = loss.detach().to(torch.float32)
        if scaler is None:
            loss.backward()
            self._reduce()
            self.optimizer.step()
            return TrainingStep(reported, False, 1.0)
        scale = scaler.get_scale()
        status, flags = self._float_status(scaler)
        raised = status.flags & flags
        status.clear(flags)
        scaler.scale(loss).backward()
        scaler.unscale_(self.optimizer)
        found = private.found_infinite(scaler, self.optimizer)
        if self._reduce() and getattr(scaler, "drop_overflow_update", True) and self._overflowed(status, flags):
            for overflow in found:
                overflow.fill_(1.0)
        overflowed = any(float(x) for x in found)
        raised |= status.flags & flags
        scaler.update()
        if not overflowed:
            self.optimizer.step()
        return TrainingStep(reported, overflowed, scale, raised)

    def _gradients(self) -> list[torch.Tensor]:
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        return [p.grad for p in parameters if p.grad is not None]

    def _reduce(self) -> bool:
        """Whether gradients may be others now."""
        if self.reduce is not None:
            self.reduce(self._gradients())
        return self.reduce is not None

    @staticmethod
    def _float_status(scaler: torch.amp.GradScaler) -> tuple[Status, Flags]:
        """The register and the flags in it that count."""
        if not isinstance(scaler, GradScaler):
            return Status(), NO_FLAGS
        return (scaler._environment or current_environment()).status, scaler._flags

    def _overflowed(self, status: Status, flags: Flags) -> bool:
        return bool(status.flags & flags) or any(not bool(torch.isfinite(x).all()) for x in self._gradients())
