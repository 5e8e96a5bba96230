"""Modules and steps of training as graphs: forward and backward pass in one, with the names of modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.func import functional_call, functionalize
from torch.fx.node import map_aggregate

from softfloat.checks import check_kind
from softfloat.recipes import TENSOR_TYPES, Graph, Node
from softfloat.torch import private
from softfloat.torch.operators.tables import NORMS

__all__ = ["Operation", "Program", "Reference", "name_scope", "trace"]

GRADIENTS = "gradients"
"""What the scopes of the backward pass stand in."""

IDENTITIES = frozenset({"detach", "alias"})
"""Operators that matter to autograd alone."""

WIDE_ARGUMENTS = {
    "native_layer_norm_backward": (3, 4),
    "native_group_norm_backward": (2, 3),
    "_fused_rms_norm_backward": (3,),
    **dict.fromkeys(
        (
            "native_batch_norm",
            "_native_batch_norm_legit",
            "_native_batch_norm_legit_functional",
            "_native_batch_norm_legit_no_training",
            "_batch_norm_with_update",
            "_batch_norm_with_update_functional",
            "_batch_norm_no_update",
        ),
        (1, 2, 3, 4),
    ),
    **dict.fromkeys(("native_batch_norm_backward", "batch_norm_backward"), (2, 3, 4, 5, 6)),
}
"""Arguments that stay float32: statistics; and the scale and offset of batch norms, as TensorFlow's FusedBatchNormV3 has them."""

WIDE_RESULTS = {
    **{name: tuple(i for i, like in enumerate(kinds) if like is None) for name, kinds in NORMS.items()},
    "native_batch_norm_backward": (1, 2),
    "batch_norm_backward": (1, 2),
    "_native_batch_norm_legit_functional": (1, 2, 3, 4),
    "_batch_norm_with_update_functional": (1, 2, 4, 5),
}
"""Results that stay float32: the same of norms."""

_SCOPES: ContextVar[tuple[str, ...]] = ContextVar("softfloat_name_scopes", default=())


@contextmanager
def name_scope(name: str) -> Iterator[None]:
    """Within it, operators stand in a scope of this name, for recipes to match: TensorFlow's `tf.name_scope`.

    Parameters
    ----------
    name : str
        Such as "KEEP_FP32_PRECISION", which Gaudi's recipes never convert, or "FORCE_BF16_PRECISION".

    Raises
    ------
    TypeError
        If it is no string.

    Notes
    -----
    The full name of an operator is the open scopes, the path of its module, and the operator's name:
    "KEEP_FP32_PRECISION/encoder/0/fc/addmm". Outside of `softfloat.torch.convert` it does nothing.
    """
    check_kind("name", name, str)
    token = _SCOPES.set((*_SCOPES.get(), name))
    try:
        yield
    finally:
        _SCOPES.reset(token)


@dataclass(frozen=True)
class Reference:
    """A tensor among an operation's arguments: its position among them all, and its name."""

    position: int
    tensor: str


@dataclass(frozen=True)
class Operation:
    """A node, and what runs it.

    Attributes
    ----------
    node : Node
    operator : OpOverload
    args, kwargs : nested
        With a `Reference` for each tensor.
    single : bool
        Whether the operator returns its one result bare.
    """

    node: Node
    operator: Any
    args: Any
    kwargs: Any
    single: bool


@dataclass(frozen=True)
class Program:
    """What was traced.

    Attributes
    ----------
    graph : Graph
        Its outputs are results, then gradients, then new values of what is updated.
    operations : tuple of Operation
        In order; from `forward` on, those of the backward pass.
    forward : int
    inputs : tuple of str
        Tensors given: parameters and buffers, then arguments.
    results : tuple of str
        Tensors returned.
    tangents : tuple of (str, int)
        Gradients that the backward pass is given, and of which results.
    gradients : tuple of (str or None)
        For each input its gradient.
    updates : tuple of (int, str)
        Inputs that are written to, and with what.
    constants : dict of str to Tensor
    rebuild : callable
        From the list of tensors returned to what the step returns.
    """

    graph: Graph
    operations: tuple[Operation, ...]
    forward: int
    inputs: tuple[str, ...]
    results: tuple[str, ...]
    tangents: tuple[tuple[str, int], ...]
    gradients: tuple[str | None, ...]
    updates: tuple[tuple[int, str], ...]
    constants: dict[str, torch.Tensor]
    rebuild: Callable[[list[Any]], Any]


class _Step(torch.nn.Module):
    """A module to call a step in, so that the model's paths start from one place."""

    def __init__(self, model: torch.nn.Module | None, step: Callable[..., Any]) -> None:
        super().__init__()
        self.model = model
        self._step = (step,)  # not registered, if it is a module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._step[0](*args, **kwargs)


PREFIX = f"{_Step.__name__}.model"


def _scope(module: str) -> str:
    if module == _Step.__name__ or not module:
        return ""
    if module == PREFIX or module.startswith(f"{PREFIX}."):
        module = module[len(PREFIX) + 1 :]
    return module.replace(".", "/")


class Note(NamedTuple):
    """Where an operator stands."""

    scope: str
    backward: bool
    tangent: int = -1


class _Scribe(private.DispatchMode):
    """Notes for each operator, while it is traced, where it stands: by the module, and in the backward pass by the node's forward operator."""

    def __init__(self, tracker: private.Tracker) -> None:
        super().__init__()
        self._tracker = tracker
        self._scopes: dict[int, str] = {}
        self.tangent = -1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        backward = private.in_backward()
        if backward:
            scope = self._scopes.get(private.backward_number(), "")
        else:
            scope = "/".join(filter(None, (*_SCOPES.get(), _scope(self._tracker.innermost()))))
            self._scopes.setdefault(private.forward_number(), scope)
        private.write_note(Note(scope, backward, self.tangent))
        return func(*args, **(kwargs or {}))


@dataclass
class _Returned:
    """What tracing finds out besides the graph."""

    nesting: Any = None
    leaves: list[Any] = field(default_factory=list)
    differentiable: list[int] = field(default_factory=list)


def trace(
    step: Callable[..., Any],
    model: torch.nn.Module | None,
    names: Sequence[str],
    state: Sequence[torch.Tensor],
    args: Any,
    kwargs: Any,
) -> Program:
    """Record a call, and the gradients of what it returns.

    Parameters
    ----------
    step : callable
        It may call `model`.
    model : Module, optional
    names, state : sequences
        The model's parameters and buffers.
    args, kwargs
        The call's. Tensors' values do not matter.

    Raises
    ------
    ValueError
        If there is something in the call that no graph can hold.
    """
    from torch.fx.experimental.proxy_tensor import make_fx  # which takes seconds to load

    leaves, nesting = private.flattened((args, kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    tensors = [*state, *(leaves[i] for i in places)]
    wanted = [torch.is_grad_enabled() and x.requires_grad for x in tensors]
    returned = _Returned()
    whole = _Step(model, step)

    def call(*given: torch.Tensor) -> list[Any]:
        given = tuple(x.detach().requires_grad_() if g else x for x, g in zip(given, wanted, strict=True))
        own = {f"model.{name}": x for name, x in zip(names, given, strict=False)}
        filled = list(leaves)
        for place, x in zip(places, given[len(names) :], strict=True):
            filled[place] = x
        call_args, call_kwargs = private.unflattened(filled, nesting)
        tracker = private.Tracker()
        with tracker, _Scribe(tracker) as scribe:
            out = functional_call(whole, own, call_args, call_kwargs)
            returned.leaves, returned.nesting = private.flattened(out)
            results = [x for x in returned.leaves if isinstance(x, torch.Tensor)]
            returned.differentiable = [i for i, x in enumerate(results) if x.requires_grad]
            return [*results, *_gradients(results, given, wanted, returned.differentiable, scribe)]

    with private.noting():
        first = make_fx(call, tracing_mode="fake", _allow_non_fake_inputs=True)(*(x.detach() for x in tensors))
    with private.noting():
        again = torch.fx.Interpreter(first)
        second = make_fx(
            functionalize(lambda *given: again.run(*given)), tracing_mode="fake", _allow_non_fake_inputs=True
        )(*(x.detach() for x in tensors))
    inputs = [*(f"parameters/{name}" for name in names), *(f"inputs/{i}" for i in range(len(places)))]
    return _Reader(second, inputs, len(names), wanted, returned).program()


def _gradients(
    results: list[torch.Tensor],
    given: Sequence[torch.Tensor],
    wanted: list[bool],
    differentiable: list[int],
    scribe: _Scribe,
) -> list[Any]:
    sources = [x for x, g in zip(given, wanted, strict=True) if g]
    if not differentiable or not sources:
        return [None] * len(sources)
    tangents = []
    for i in differentiable:
        scribe.tangent = i
        tangents.append(torch.empty_like(results[i]))
    scribe.tangent = -1
    return list(torch.autograd.grad([results[i] for i in differentiable], sources, tangents, allow_unused=True))


class _Reader:
    """One reading of a traced graph."""

    def __init__(
        self, module: torch.fx.GraphModule, inputs: list[str], state: int, wanted: list[bool], returned: _Returned
    ) -> None:
        self.module, self.inputs, self.state, self.wanted, self.returned = module, inputs, state, wanted, returned
        self.names: dict[torch.fx.Node, Any] = {}
        self.types: dict[str, str] = {}
        self.ranks: dict[str, int] = {}
        self.operations: list[Operation] = []
        self.tangents: list[tuple[str, int]] = []
        self.constants: dict[str, torch.Tensor] = {}
        self.updates: list[tuple[int, str]] = []
        self.forward: int | None = None
        self.taken: dict[str, int] = {}
        self.placeholders: list[torch.fx.Node] = []

    def program(self) -> Program:
        nodes = self.module.graph.nodes
        alive = self._alive()
        for node in nodes:
            if node.op == "placeholder":
                name = self.inputs[len(self.placeholders)]
                self.placeholders.append(node)
                self._tensor(node, name, node.meta["val"])
            elif node.op == "get_attr":
                name = f"constants/{node.target}"
                self.constants[name] = getattr(self.module, str(node.target))
                if self.constants[name].requires_grad:
                    raise ValueError(
                        "a tensor that wants a gradient is neither an argument nor a parameter of the model; make it one, "
                        f"got one of shape {tuple(self.constants[name].shape)}"
                    )
                self._tensor(node, name, self.constants[name])
            elif node.op == "call_function" and node in alive:
                self._function(node)
        (last,) = (node for node in nodes if node.op == "output")
        names: list[Any] = [None if x is None else self.names[x] for x in last.args[0]]
        count = sum(isinstance(x, torch.Tensor) for x in self.returned.leaves)
        results, found = names[:count], iter(names[count:])
        gradients = [next(found) if wanted else None for wanted in self.wanted]
        forward = len(self.operations) if self.forward is None else self.forward
        made_late = {x for operation in self.operations[forward:] for x in operation.node.outputs}
        for place, tensor in self.updates:
            if tensor in made_late:
                raise ValueError(
                    f"the backward pass writes to {self.inputs[place]}, which is not converted; take it out"
                )
        outputs = [*results, *filter(None, gradients), *(tensor for _, tensor in self.updates)]
        graph = Graph(
            [x.node for x in self.operations],
            self.types,
            [*self.inputs[self.state :], *(name for name, _ in self.tangents)],
            outputs,
            [*self.inputs[: self.state], *self.constants],
            "aten",
        )
        leaves, nesting = list(self.returned.leaves), self.returned.nesting

        def rebuild(tensors: list[Any]) -> Any:
            rest = iter(tensors)
            return private.unflattened([next(rest) if isinstance(x, torch.Tensor) else x for x in leaves], nesting)

        return Program(
            graph,
            tuple(self.operations),
            forward,
            tuple(self.inputs),
            tuple(results),
            tuple(self.tangents),
            tuple(gradients),
            tuple(self.updates),
            self.constants,
            rebuild,
        )

    def _alive(self) -> set[torch.fx.Node]:
        """Nodes that something depends on, and those that do more than return results."""
        alive: set[torch.fx.Node] = set()
        for node in reversed(self.module.graph.nodes):
            function = node.op == "call_function" and isinstance(node.target, private.OpOverload)
            acts = function and (
                node.target._schema.is_mutable or torch.Tag.nondeterministic_seeded in node.target.tags
            )
            if node.op == "output" or acts or any(user in alive for user in node.users):
                alive.add(node)
        return alive

    def _tensor(self, node: torch.fx.Node, name: str, value: Any) -> None:
        self.names[node] = name
        self._typed(name, value)

    def _typed(self, name: str, value: Any) -> None:
        kind = str(value.dtype).removeprefix("torch.") if isinstance(value, torch.Tensor) else "other"
        self.types[name] = kind if kind in TENSOR_TYPES else "other"
        self.ranks[name] = value.ndim if isinstance(value, torch.Tensor) else 0

    def _function(self, node: torch.fx.Node) -> None:
        if not isinstance(node.target, private.OpOverload):  # operator.getitem
            self.names[node] = self.names[node.args[0]][node.args[1]]
            return
        note = private.noted(node)
        name = private.schema_name(node.target)
        if note is not None and note.tangent >= 0:
            self._tensor(node, f"tangents/{note.tangent}", node.meta["val"])
            self.tangents.append((f"tangents/{note.tangent}", note.tangent))
            self.forward = len(self.operations) if self.forward is None else self.forward
        elif name in IDENTITIES:
            self.names[node] = self.names[node.args[0]]
        elif name == "copy_" and node.args[0] in self.placeholders:
            self.updates.append((self.placeholders.index(node.args[0]), self.names[node.args[1]]))
        elif node.target._schema.is_mutable:
            raise ValueError(f"{node.target} writes to a tensor, which no graph of values can hold; use its other form")
        else:
            self._operation(node, name, note or Note("", False))

    def _operation(self, node: torch.fx.Node, name: str, note: Note) -> None:
        path = "/".join(filter(None, (GRADIENTS if note.backward else "", note.scope, name)))
        again = self.taken[path] = self.taken.get(path, -1) + 1
        path = f"{path}_{again}" if again else path
        inputs: list[str] = []
        starts: list[int] = []

        def refer(x: Any) -> Any:
            if not isinstance(x, torch.fx.Node):
                return x
            inputs.append(self.names[x])
            return Reference(len(inputs) - 1, self.names[x])

        args = []
        for x in node.args:
            starts.append(len(inputs))
            args.append(map_aggregate(x, refer))
        kwargs = {key: map_aggregate(x, refer) for key, x in node.kwargs.items()}
        value = node.meta.get("val")
        single = not isinstance(value, (tuple, list))
        outputs = [path] if single else [f"{path}:{i}" if x is not None else "" for i, x in enumerate(value)]
        for tensor, x in zip(outputs, [value] if single else value, strict=True):
            if tensor:
                self._typed(tensor, x)
        self.names[node] = path if single else outputs
        wide = {starts[i] for i in WIDE_ARGUMENTS.get(name, ()) if isinstance(args[i], Reference)}
        described = Node(
            path,
            name if "." in name else f"aten.{name}",
            inputs,
            outputs,
            variant=_variant(node.target, name, node.args, node.meta.get("val")),
            rank=self.ranks[inputs[0]] if inputs else None,
            wide_inputs=sorted(wide),
            wide_outputs=[i for i in WIDE_RESULTS.get(name, ()) if i < len(outputs)],
        )
        self.operations.append(Operation(described, node.target, tuple(args), kwargs, single))


def _variant(operator: Any, name: str, args: Any, value: Any) -> str:
    """What the tables of recipes tell apart by arguments."""
    if name == "convolution":
        if args[6]:
            return "transposed"
        return "depthwise" if args[8] > 1 and args[8] == args[0].meta["val"].shape[1] else ""
    if name == "convolution_backward":
        if args[9] > 1 and args[9] == args[1].meta["val"].shape[1]:
            return "depthwise"
        if not (args[10][0] and args[10][1]):
            return "input" if args[10][0] else "filter"
    if name == "expand" and value.shape == args[0].meta["val"].shape:  # what products of three dimensions begin with
        return "same"
    if name in ("max", "min") and operator._overloadname == "other":
        return "other"
    if name == "pow" and len(args) > 1 and isinstance(args[1], (int, float)) and args[1] == 2:
        return "2"
    if name in ("hardtanh", "hardtanh_backward") and tuple(args[-2:]) == (0.0, 6.0):
        return "relu6"
    return ""
