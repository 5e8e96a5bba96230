"""Modules and steps of training converted by a recipe: traced, coloured, and run with the casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.fx.node import map_aggregate

from softfloat.recipes import Colouring, Recipe, as_recipe, colour, dump_used, recipe_from_environment
from softfloat.recipes.graph import WIDE
from softfloat.torch import private
from softfloat.torch.operators.bridge import as_dtype
from softfloat.torch.practices.autocast import DEVICES, TYPES, lists_in_force
from softfloat.torch.practices.tracing import Operation, Program, Reference, trace

__all__ = ["Converted", "convert"]

AUTOCAST = (
    "a recipe and autocast both choose what computes in low precision, which is not defined; leave the autocast block"
)


def convert(
    target: torch.nn.Module | Callable[..., Any],
    recipe: Recipe | str | None = None,
    *,
    model: torch.nn.Module | None = None,
    to: str | torch.dtype = "bfloat16",
) -> Converted:
    """Compute in a low precision what a recipe says: in the forward and in the backward pass, as one graph.

    Parameters
    ----------
    target : Module or callable
        A model, or a step of training that calls `model`, and returns the loss, or anything that tensors can be found in.
    recipe : Recipe, str or PathLike, optional
        One; the name of one that comes with the package, "basic", "full", "bert", "unet"; or a file. None: what the
        environment variable `SOFTFLOAT_BF16_CONVERSION` names, or Gaudi's own, `TF_BF16_CONVERSION`.
    model : Module, optional
        With a step, the module whose parameters get gradients. Parameters and buffers of no other are followed.
    to : {"bfloat16", "float16"} or torch.dtype
        What float32 is converted to.

    Returns
    -------
    Converted
        A module to call like the target. Parameters stay in float32, and so do results and gradients.

    Raises
    ------
    TypeError, ValueError
        Naming the argument; without a recipe; within `torch.autocast` or `autocast_lists`.
    AlreadyConvertedError
        A `ValueError`, at the first call: parameters or arguments, or something within, are in low precision.

    Notes
    -----
    The target is traced at its first call with arguments of some shapes and types, and whenever they, or the modes of
    modules (`train`, `eval`, `requires_grad_`), are others: what Python does in it, is done then. It must not call `backward()`.
    What modules write to buffers is written.

    Nodes are named as TensorFlow names them: scopes of `name_scope`, the path of the module with slashes, the operator:
    "encoder/layer/0/attention/matmul"; "gradients/" and the scope of what it is a gradient of, in the backward pass; a second one
    in a scope ends in "_1". Types are "aten.mm", which the recipes' tables of names carry to TensorFlow's. Norms' statistics stay
    in float32, and so do the scale and offset of batch norms.

    `softfloat.torch.emulate` around calls and backward passes makes what is converted compute with `softfloat.bits`, casts
    included. Without it PyTorch computes, which has no kernel for some mixtures: of a norm's gradient in bfloat16 where the
    norm is kept, say. With `SOFTFLOAT_BF16_DUMP_PATH` or `TF_BF16_DUMP_PATH`, lists and verdicts are written down as
    `softfloat.recipes.dump_used` does, whenever something was traced.

    >>> from torch import nn
    >>> _ = torch.manual_seed(0)
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    >>> converted = convert(net, "basic")
    >>> y = converted(torch.ones(1, 4))
    >>> y.sum().backward()
    >>> for decision in converted.colouring.decisions:
    ...     if decision.converts:
    ...         print(decision.node.path, decision.reason)
    0/addmm allowlist "MatMul"
    2/addmm allowlist "MatMul"
    gradients/2/mm allowlist "MatMul"
    gradients/2/mm_1 allowlist "MatMul"
    gradients/0/mm allowlist "MatMul"
    >>> y.dtype, net[0].weight.grad.dtype
    (torch.float32, torch.float32)
    """
    if not callable(target):
        raise TypeError(f"target must be a torch.nn.Module or a callable, got {target!r}")
    if model is not None and not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module or None, got {model!r}")
    if isinstance(target, torch.nn.Module):
        if model is not None and model is not target:
            raise ValueError("model must be left out where target is a module")
        model = target
    low = as_dtype("to", to, TYPES.values())
    _refuse_autocast()
    chosen = recipe_from_environment() if recipe is None else as_recipe(recipe)
    if chosen is None:
        raise ValueError(
            "recipe must be given, or named by the environment variable SOFTFLOAT_BF16_CONVERSION or TF_BF16_CONVERSION"
        )
    return Converted(target, model, chosen, next(name for name, dtype in TYPES.items() if dtype == low))


def _refuse_autocast() -> None:
    if lists_in_force() or any(map(torch.is_autocast_enabled, DEVICES)):
        raise ValueError(AUTOCAST)


class Converted(torch.nn.Module):
    """What `convert` returns.

    Attributes
    ----------
    recipe : Recipe
    to_type : str
    model : Module or None
    colouring : Colouring
        Of the call that was traced last: `print` it for all nodes with their reasons.
    """

    def __init__(self, target: Callable[..., Any], model: torch.nn.Module | None, recipe: Recipe, to: str) -> None:
        super().__init__()
        self.model, self.recipe, self.to_type = model, recipe, to
        self._target = (target,)
        self._runs: dict[Any, _Run] = {}
        self._last: _Run | None = None

    @property
    def colouring(self) -> Colouring:
        """Of the call that was traced last."""
        if self._last is None:
            raise ValueError("nothing is traced before the first call; call it, or trace(), with arguments")
        return self._last.colouring

    def trace(self, *args: Any, **kwargs: Any) -> Colouring:
        """Trace and colour a call without running it.

        Returns
        -------
        Colouring
        """
        return self._run(args, kwargs)[0].colouring

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the target, converted."""
        run, tensors = self._run(args, kwargs)
        return run.program.rebuild(list(_Function.apply(run, *tensors)))

    def _run(self, args: Any, kwargs: Any) -> tuple[_Run, list[torch.Tensor]]:
        _refuse_autocast()
        leaves, nesting = private.flattened((args, kwargs))
        state: dict[str, torch.Tensor] = {}
        if self.model is not None:
            state = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        tensors = [*state.values(), *(x for x in leaves if isinstance(x, torch.Tensor))]
        key = (
            str(nesting),
            tuple(None if isinstance(x, torch.Tensor) else _distinguished(x) for x in leaves),
            tuple((tuple(x.shape), x.stride(), x.dtype, x.device, x.requires_grad) for x in tensors),
            torch.is_grad_enabled(),
            () if self.model is None else tuple(x.training for x in self.model.modules()),
        )
        if key not in self._runs:
            program = trace(self._target[0], self.model, list(state), list(state.values()), args, kwargs)
            colouring = colour(program.graph, self.recipe, to=self.to_type)
            dump_used(colouring)
            self._runs[key] = _Run(program, colouring)
        self._last = self._runs[key]
        return self._last, tensors


def _distinguished(value: Any) -> Any:
    """What tells arguments apart that a call was traced with: 1, 1.0 and True are three."""
    try:
        hash(value)
    except TypeError:
        raise TypeError(f"arguments must be tensors, or hashable, as numbers and strings are, got {value!r}") from None
    return type(value), repr(value) if isinstance(value, float) else value


class _Run:
    """A program under a colouring."""

    def __init__(self, program: Program, colouring: Colouring) -> None:
        self.program, self.colouring = program, colouring
        self.low = TYPES[colouring.to]
        self.casts = {(name, i): cast for cast in colouring.casts for name, i in cast.uses}
        self.returned = {cast.tensor: cast for cast in colouring.casts if cast.output}

    def forward(self, tensors: tuple[torch.Tensor, ...]) -> tuple[list[torch.Tensor], dict[str, Any]]:
        program = self.program
        values: dict[str, Any] = dict(zip(program.inputs, tensors, strict=True)) | program.constants
        for operation in program.operations[: program.forward]:
            self._compute(operation, values)
        results = [self._result(name, values) for name in program.results]
        for place, name in program.updates:
            tensors[place].copy_(self._result(name, values))
        return results, values

    def backward(self, tangents: tuple[Any, ...], values: dict[str, Any]) -> list[torch.Tensor | None]:
        program, values = self.program, dict(values)
        for name, i in program.tangents:
            values[name] = tangents[i]
        for operation in program.operations[program.forward :]:
            self._compute(operation, values)
        return [None if name is None else self._result(name, values) for name in program.gradients]

    def _result(self, name: str, values: dict[str, Any]) -> torch.Tensor:
        cast = self.returned.get(name)
        found: torch.Tensor = values[name] if cast is None else self._cast(cast, values)
        return found

    def _cast(self, cast: Any, values: dict[str, Any]) -> Any:
        if cast.result not in values:
            values[cast.result] = values[cast.tensor].to(self.low if cast.to == self.colouring.to else torch.float32)
        return values[cast.result]

    def _compute(self, operation: Operation, values: dict[str, Any]) -> None:
        node = operation.node
        converts = self.colouring[node.name].converts

        def fill(x: Any) -> Any:
            if isinstance(x, Reference):
                cast = self.casts.get((node.name, x.position))
                value = values[x.tensor] if cast is None else self._cast(cast, values)
                if not converts and self.program.graph.types[x.tensor] == WIDE and value.dtype != torch.float32:
                    return value.to(torch.float32)  # statistics that PyTorch keeps in the low type
                return value
            return self.low if converts and x is torch.float32 else x

        try:
            found = operation.operator(*map_aggregate(operation.args, fill), **map_aggregate(operation.kwargs, fill))
        except Exception as error:
            error.add_note(f"in {node.path}, which computes in {self.colouring.to if converts else WIDE}")
            raise
        for i, (name, value) in enumerate(zip(node.outputs, [found] if operation.single else found, strict=True)):
            if not name:
                continue
            wide = not converts or i in node.wide_outputs
            if self.program.graph.types[name] == WIDE and not wide and value.dtype != self.low:
                raise NotImplementedError(
                    f"{operation.operator} made {value.dtype} of operands in {self.colouring.to}; keep {node.path} in "
                    "float32 by a pair of non_convertible_exceptions"
                )
            values[name] = value


class _Function(torch.autograd.Function):
    """A program as one node of autograd's graph."""

    @staticmethod
    def forward(ctx: Any, run: _Run, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results, values = run.forward(tensors)
        ctx.run = run
        if run.program.tangents:
            written = {i for i, _ in run.program.updates}
            ctx.names = [name for i, name in enumerate(run.program.inputs) if i not in written]
            ctx.save_for_backward(
                *(values[name] for name in ctx.names)
            )  # which notices that they were changed meanwhile
            ctx.values = {name: x for name, x in values.items() if name not in set(ctx.names)}
        differentiable = {i for _, i in run.program.tangents}
        ctx.mark_non_differentiable(*(x for i, x in enumerate(results) if i not in differentiable))
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *tangents: torch.Tensor) -> tuple[Any, ...]:
        values = {**ctx.values, **dict(zip(ctx.names, ctx.saved_tensors, strict=True))}
        return (None, *ctx.run.backward(tangents, values))
