"""Every name of PyTorch that carries an underscore, or lives in a module that does; `tests/test_torch_private.py` pins them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import Any, NamedTuple, Protocol

import torch
import torch.export
import torch.fx.traceback
import torch.nn.attention
from torch._ops import OpOverload
from torch.nn.modules.module import register_module_forward_hook
from torch.utils import checkpoint
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from torch.utils.module_tracker import ModuleTracker

__all__ = [
    "DispatchMode",
    "OpOverload",
    "Region",
    "Tracker",
    "allows_tf32",
    "argument_names",
    "asks",
    "attention_in_its_dtype",
    "backward_name",
    "backward_number",
    "decomposition",
    "dispatching",
    "draws",
    "flattened",
    "forward_number",
    "found_infinite",
    "in_backward",
    "innermost",
    "is_view",
    "leaves",
    "memory",
    "modes_below",
    "namespace",
    "noted",
    "noting",
    "operator_names",
    "patched",
    "plain",
    "products_in_parts",
    "raise_scale",
    "schema_name",
    "takes_itself_apart",
    "tracer",
    "unflattened",
    "write_note",
    "written",
]


class DispatchMode(TorchDispatchMode):
    """A dispatch mode that does not load the compiler with its first operator, which takes seconds."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


@cache
def schema_name(operator: OpOverload) -> str:
    """The operator's name without its overload: "add_" for aten's, "namespace.name" for others'."""
    namespace, _, name = str(operator._schema.name).partition("::")
    return name if namespace == "aten" else f"{namespace}.{name}"


def namespace(operator: OpOverload) -> str:
    """Whose operator it is: "aten", or another's."""
    return str(operator.namespace)


def operator_names(space: str) -> set[str]:
    """Of all operators in a namespace, without their overloads."""
    everything = (x.partition("::") for x in torch._C._dispatch_get_all_op_names())
    return {name.partition(".")[0] for found, _, name in everything if found == space}


@cache
def written(operator: OpOverload) -> tuple[str, ...]:
    """Names of the arguments that the operator writes to."""
    arguments = operator._schema.arguments
    return tuple(x.name for x in arguments if x.alias_info is not None and x.alias_info.is_write)


@cache
def argument_names(operator: OpOverload) -> tuple[str, ...]:
    """Names of all arguments, in order."""
    return tuple(x.name for x in operator._schema.arguments)


@cache
def draws(operator: OpOverload) -> bool:
    """Whether the operator takes PyTorch's random numbers."""
    return torch.Tag.nondeterministic_seeded in operator.tags


def is_view(operator: OpOverload) -> bool:
    """Whether results are views of an argument that is not written to."""
    aliases = [x.alias_info for x in operator._schema.returns]
    return bool(aliases) and all(x is not None and not x.is_write for x in aliases)


def decomposition(operator: OpOverload) -> Callable[..., Any] | None:
    """What the operator is made of, if it has no kernel of its own; under `torch.inference_mode` modes see such operators."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return operator.decompose if operator.has_kernel_for_dispatch_key(key) else None


TRACERS = ("FAKE", "PROXY", "FUNCTIONAL")
"""PyTorch's own modes, which are called after all others: they see what an emulation is made of, not the operator."""


def dispatching(types: Iterable[type]) -> list[type]:
    """Of the operands' types, those that have a `__torch_dispatch__` of their own."""
    return [x for x in types if x.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl]  # type: ignore[attr-defined]


modes_below = torch._C._len_torch_dispatch_stack
"""How many modes are in force, PyTorch's own included; the one that is being asked is not."""


def tracer(types: Iterable[type]) -> str:
    """What records operators here instead of computing numbers, by name; empty where nothing does. `types`: of `dispatching`."""
    for kind in types:
        if kind.__module__.startswith("torch._subclasses."):
            return kind.__name__
    if modes_below():
        for name in TRACERS:
            mode = torch._C._get_dispatch_mode(getattr(torch._C._TorchDispatchModeKey, name))
            if mode is not None:
                return type(mode).__name__
    return ""


def takes_itself_apart(kind: type) -> bool:
    """Whether tensors of a class consist of others, which its `__torch_dispatch__` computes with."""
    return hasattr(kind, "__tensor_flatten__")


def asks(operator: OpOverload) -> bool:
    """Whether an operator only asks for what is not a number: its schema has no tensor to return or to write to."""
    if operator.namespace not in ("aten", "prim") or written(operator):
        return False
    return not any("Tensor" in str(x.type) for x in operator._schema.returns)


plain = torch._C.DisableTorchFunctionSubclass
"""A context in which tensors of derived classes are taken for plain ones."""


def memory(tensor: torch.Tensor) -> int:
    """Where a tensor's memory begins; 0 for one without, as transformed functions are given."""
    if tensor.layout is not torch.strided or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return 0
    return tensor.untyped_storage().data_ptr()


def in_backward() -> bool:
    """Whether the autograd engine is running in this thread."""
    return int(torch._C._current_graph_task_id()) != -1


MODULE = "softfloat module"
"""Where a node of the graph keeps the module that made it."""


WIDENED = "softfloat widened"
"""Where a node of the graph keeps that it is part of a function which computes in float32 what it returns in a narrow dtype."""


def _book(output: Any, start: int, key: str, value: Any) -> None:
    """Tell the nodes that lead to an output, and were made from `start` on, who made them; what is part of it has told its own."""
    nodes = [x.grad_fn for x in tree_leaves(output) if isinstance(x, torch.Tensor)]
    seen: set[Any] = set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen or node._sequence_nr() < start:
            continue
        seen.add(node)
        node.metadata.setdefault(key, value)
        nodes.extend(each for each, _ in node.next_functions)


class Entry(NamedTuple):
    """A module being executed: its path, the backward pass that entered it (-1: none), the number of the graph's next node."""

    module: str
    task: int
    start: int


class Tracker(ModuleTracker):
    """A `ModuleTracker` that goes by the nodes of the graph: in the backward pass the module is the one that made the node being run.

    Hooks on tensors cannot tell modules apart that return their argument. A module leaves its nodes their owner when it
    is left: those that its parts have are taken by then.
    """

    _fw_post_handle: Any

    def __init__(self) -> None:
        super().__init__()
        self._entries: list[Entry] = []
        self._thread = 0
        self.names: dict[str, None] = {}
        """What `named_modules` of each outermost module calls it and its parts, in order."""

    def __enter__(self) -> Tracker:
        """Modules are left by exceptions, too."""
        self._thread = threading.get_ident()
        self._entries.clear()
        super().__enter__()
        self._fw_post_handle.remove()
        self._fw_post_handle = register_module_forward_hook(self._fw_post_hook, always_call=True)
        return self

    def _get_mod_name(self, mod: Any) -> str:
        """The class of an outermost module and the name by which its `named_modules` has this one."""
        if mod not in self._known_modules:
            root = type(mod).__name__
            for name, part in mod.named_modules():
                self._known_modules[part] = f"{root}.{name}" if name else root
                self.names[name] = None
        return str(self._known_modules[mod])

    def _fw_pre_hook(self, mod: Any, input: Any) -> None:
        if threading.get_ident() == self._thread:  # hooks are every thread's
            task, start = torch._C._current_graph_task_id(), torch.autograd._get_sequence_nr()
            self._entries.append(Entry(self._get_mod_name(mod), task, start))

    def _fw_post_hook(self, mod: Any, input: Any, output: Any) -> None:
        if threading.get_ident() != self._thread or not self._entries:
            return
        entry = self._entries[-1]
        if entry.module == self._get_mod_name(mod):  # not one that was entered before the tracker was
            self._entries.pop()
            _book(output, entry.start, MODULE, entry.module)

    def innermost(self) -> str:
        """The module entered last in the forward or backward pass going on, else that of the node being run; empty outside modules."""
        task = torch._C._current_graph_task_id()
        if self._entries and self._entries[-1].task == task:
            return self._entries[-1].module
        node = torch._C._current_autograd_node() if task != -1 else None
        return "" if node is None else node.metadata.get(MODULE, "")


# -- what is traced ----------------------------------------------------------------------------------------------------

leaves = tree_leaves
"""Those of nested lists, tuples and dictionaries."""

flattened = tree_flatten
"""Leaves of nested lists, tuples and dictionaries, and how they are nested."""

unflattened = tree_unflatten
"""The nested data of leaves."""

NOTE = "nn_module_stack"
"""The one field that all versions copy to the nodes of a graph, and from there to those of the next."""


def forward_number() -> int:
    """Inside of an operator of the forward pass: the number of the node that autograd made for it, or of an earlier one's."""
    return int(torch.autograd._get_sequence_nr()) - 1


def backward_number() -> int:
    """Inside of the backward pass: the number of the node being run; -1 for none."""
    node = torch._C._current_autograd_node()
    return -1 if node is None else int(node._sequence_nr())


def backward_name() -> str:
    """Inside of the backward pass: what autograd calls the node being run; empty for none."""
    node = torch._C._current_autograd_node() if in_backward() else None
    return "" if node is None else str(node.name())


def in_widened() -> bool:
    """Inside of the backward pass: whether the node being run is part of a function that `Session.widened` was asked about."""
    node = torch._C._current_autograd_node()
    return node is not None and WIDENED in node.metadata


def noting() -> AbstractContextManager[None]:
    """Within it, nodes that are traced keep what `write_note` wrote last; an interpreter writes those of the nodes that it runs."""
    return torch.fx.traceback.preserve_node_meta()


def write_note(note: Any) -> None:
    """Something for the nodes that are traced from now on."""
    torch.fx.traceback.current_meta = {NOTE: {"": note}}


def noted(node: torch.fx.Node) -> Any:
    """What was written for a node; None: nothing."""
    return (node.meta.get(NOTE) or {}).get("")


@contextmanager
def products_in_parts() -> Iterator[None]:
    """Within it, attention is made of matrix products, and layers have no fast path of one operator."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@contextmanager
def without_mkldnn() -> Iterator[None]:
    """Within it, oneDNN computes nothing."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def allows_tf32() -> bool:
    """Whether products of float32 may round their operands to tfloat32, whichever way it was said."""
    settings = torch.backends.cuda.matmul
    precision = getattr(settings, "fp32_precision", None)  # from PyTorch 2.9 on
    return bool(settings.allow_tf32) if precision is None else precision == "tf32"


@contextmanager
def attention_in_its_dtype() -> Iterator[None]:
    """Within it, the MATH backend of attention computes in the dtype of its operands, where by default it widens them."""
    before = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    try:
        yield
    finally:
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(before)


# -- ways around -------------------------------------------------------------------------------------------------------


def _eval_frame() -> Any:
    """The compiler's entry, if anything has loaded it yet."""
    return sys.modules.get("torch._dynamo.eval_frame")


SHAPES = (
    "_propagate_tensor_meta_non_cached"  # of the class that decides how results of distributed tensors are laid out
)


class Session(Protocol):
    """What an emulation does, in the thread where it is open, about PyTorch's and Python's ways around it."""

    def refuse_compiled(self) -> None:
        """Raise, where a compiler would be used."""

    def refuse_traced(self) -> None:
        """Raise, where a graph would be recorded."""

    def refuse_mapped(self, dtype: torch.dtype) -> None:
        """Raise, where elements are written one by one that the emulation would have to round."""

    def assigned(self, value: float, dtype: torch.dtype) -> float:
        """A number that becomes an element."""

    def checkpointed(self, region: Region) -> AbstractContextManager[None]:
        """Around each run of a function whose activations are computed again."""

    def elsewhere(self) -> AbstractContextManager[Any]:
        """Around what another thread runs for this one."""

    def takes_apart(self) -> bool:
        """Whether it wants to see the products of recurrent layers."""

    def widened(self, arguments: Iterable[Any]) -> AbstractContextManager[bool]:
        """Around a function made of operators on float32 tensors: whether any of its arguments is narrow."""


@dataclass
class Region:
    """A function whose activations are computed again: the operations of its first run, and the numbers they took."""

    taken: list[tuple[str, int]] = field(default_factory=list)
    complete: bool = False


class _Patch:
    """Functions of PyTorch and Python replaced while any thread wants it, and put back when none does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self._replaced: dict[tuple[Any, str], tuple[Any, bool]] = {}
        self._made: dict[tuple[Any, str], tuple[Any, Any]] = {}
        self.here = threading.local()

    def begin(self, session: Session) -> None:
        """In this thread, from now on, ask the session."""
        stack = self.here.__dict__.setdefault("stack", [])
        with self._lock:
            self._wanted += 1
            self._replace(torch, "compile", self._uncompiled)
            frames = _eval_frame()
            if frames is not None:
                self._replace(frames, "_callback_from_stance", self._uncompiled)
            sharding = sys.modules.get("torch.distributed.tensor._sharding_prop")
            if sharding is not None and hasattr(sharding.ShardingPropagator, SHAPES):
                self._replace(sharding.ShardingPropagator, SHAPES, self._unseen)
            self._replace(torch.export, "export", self._untraced)
            self._replace(torch.jit, "trace", self._untraced)
            self._replace(checkpoint, "CheckpointFunction", self._reentrant)
            self._replace(checkpoint, "_checkpoint_without_reentrant_generator", self._without_reentrant)
            self._replace(torch.Tensor, "__setitem__", self._assigned)
            for name in ("apply_", "map_", "map2_"):
                self._replace(torch.Tensor, name, self._mapped)
            self._replace(torch._VF, "lstm", self._in_parts)
            self._replace(torch, "lstm", self._in_parts)
            self._replace(torch, "rms_norm", self._widened)
            self._replace(threading.Thread, "start", self._started)
            self._replace(ThreadPoolExecutor, "submit", self._submitted)
        stack.append(session)

    def end(self) -> None:
        """Undo the last `begin` of this thread."""
        self.here.stack.pop()
        with self._lock:
            self._wanted -= 1
            if not self._wanted:
                for (owner, name), (original, own) in self._replaced.items():
                    if own:
                        setattr(owner, name, original)
                    else:
                        delattr(owner, name)
                self._replaced.clear()

    def innermost(self) -> Session | None:
        """That of the innermost emulation open in this thread."""
        stack = self.here.__dict__.get("stack")
        return stack[-1] if stack else None

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        if (owner, name) not in self._replaced:
            original = getattr(owner, name)
            self._replaced[owner, name] = original, name in vars(owner)
            known, made = self._made.get((owner, name), (None, None))
            if known is not original:  # which others may replace, too
                made = make(original)
                self._made[owner, name] = original, made
            setattr(owner, name, made)

    def _uncompiled(self, original: Any) -> Any:
        """Refuse what returns a compiler; None stands for no compiler."""

        @wraps(original)
        def refusing(*arguments: Any, **options: Any) -> Any:
            result = original(*arguments, **options)
            session = self.innermost()
            if session is not None and result is not None:
                session.refuse_compiled()
            return result

        return refusing

    def _untraced(self, original: Any) -> Any:
        """Refuse at once: what fails within makes PyTorch end the process in some versions."""

        @wraps(original)
        def refusing(*arguments: Any, **options: Any) -> Any:
            session = self.innermost()
            if session is not None:
                session.refuse_traced()
            return original(*arguments, **options)

        return refusing

    def _unseen(self, original: Any) -> Any:
        """What finds the shapes of results on tensors without numbers is no trace, and there is nothing to compute."""

        @wraps(original)
        def unseen(*arguments: Any, **options: Any) -> Any:
            with nullcontext() if self.innermost() is None else _disable_current_modes():
                return original(*arguments, **options)

        return unseen

    def _assigned(self, original: Any) -> Any:
        """PyTorch makes a tensor of a number, in the dtype that it is assigned to, before any mode is asked."""

        @wraps(original)
        def __setitem__(tensor: torch.Tensor, index: Any, value: Any) -> None:
            session = self.innermost()
            if session is not None and isinstance(value, (int, float)):
                value = session.assigned(value, tensor.dtype)
            original(tensor, index, value)

        return __setitem__

    def _widened(self, original: Any) -> Any:
        """A function that is made of operators before any mode is asked: casts to float32, and what comes between."""

        @wraps(original)
        def widened(*arguments: Any, **options: Any) -> Any:
            session, start = self.innermost(), torch.autograd._get_sequence_nr()
            if session is None:
                return original(*arguments, **options)
            with session.widened([*arguments, *options.values()]) as narrow:
                result = original(*arguments, **options)
            if narrow:
                _book(result, start, WIDENED, True)
            return result

        return widened

    def _in_parts(self, original: Any) -> Any:
        """A recurrent layer as one operator of oneDNN only where nobody asks for its products."""

        @wraps(original)
        def in_parts(*arguments: Any, **options: Any) -> Any:
            session = self.innermost()
            whole = session is None or not session.takes_apart()
            with nullcontext() if whole else without_mkldnn():
                return original(*arguments, **options)

        return in_parts

    def _mapped(self, original: Any) -> Any:
        """PyTorch calls a function of numbers, and stores what it returns without an operator."""

        @wraps(original)
        def mapped(tensor: torch.Tensor, *arguments: Any) -> Any:
            session = self.innermost()
            if session is not None:
                session.refuse_mapped(tensor.dtype)
            return original(tensor, *arguments)

        return mapped

    # -- activation checkpointing --

    @contextmanager
    def _run(self, region: Region) -> Iterator[None]:
        session = self.innermost()
        with nullcontext() if session is None else session.checkpointed(region):
            yield

    def _again(self, function: Any, region: Region) -> Any:
        @wraps(function, updated=())
        def again(*arguments: Any, **options: Any) -> Any:
            with self._run(region):
                return function(*arguments, **options)

        return again

    def _reentrant(self, original: Any) -> Any:
        """The function is run by what stands in, both times."""

        class Standing(original):
            @staticmethod
            def apply(function: Any, *arguments: Any) -> Any:
                return original.apply(self._again(function, Region()), *arguments)

        return Standing

    def _without_reentrant(self, original: Any) -> Any:
        """The function is run by the caller while the generator waits, and by the generator's own the second time."""

        @wraps(original)
        def generator(function: Any, *arguments: Any, **options: Any) -> Any:
            region = Region()
            with self._run(region):
                yield from original(self._again(function, region), *arguments, **options)

        return generator

    # -- other threads --

    def _caller(self) -> Session | None:
        """The session that threads started here are told of: also that of a thread which was started so itself."""
        return self.innermost() or self.here.__dict__.get("caller")

    def _told(self, session: Session, function: Any) -> Any:
        def told(*arguments: Any, **options: Any) -> Any:
            outer, self.here.caller = self.here.__dict__.get("caller"), session
            try:
                with session.elsewhere():
                    return function(*arguments, **options)
            finally:
                self.here.caller = outer

        return told

    def _started(self, original: Any) -> Any:
        @wraps(original)
        def start(thread: threading.Thread) -> None:
            session = self._caller()
            if session is not None:
                thread.run = self._told(session, thread.run)  # type: ignore[method-assign]
            original(thread)

        return start

    def _submitted(self, original: Any) -> Any:
        """Threads of a pool may be older than the emulation."""

        @wraps(original)
        def submit(pool: Any, function: Any, /, *arguments: Any, **options: Any) -> Any:
            session = self._caller()
            return original(pool, function if session is None else self._told(session, function), *arguments, **options)

        return submit


_PATCH = _Patch()


def innermost() -> Session | None:
    """That of the innermost emulation open in this thread."""
    return _PATCH.innermost()


@contextmanager
def patched(session: Session) -> Iterator[None]:
    """Within it, in this thread, ways around the emulation ask the session; casts that autocast keeps do not pass either border."""
    if torch.compiler.is_compiling():
        session.refuse_compiled()
    if _eval_frame() is not None:
        from torch._C._dynamo.eval_frame import get_eval_frame_callback

        if get_eval_frame_callback() is not None:
            session.refuse_compiled()
    _PATCH.begin(session)
    torch.clear_autocast_cache()
    try:
        yield
    finally:
        torch.clear_autocast_cache()
        _PATCH.end()


def found_infinite(scaler: torch.amp.GradScaler, optimizer: torch.optim.Optimizer | None = None) -> list[torch.Tensor]:
    """The numbers, one for each device, that are not 0 if a scaler found an overflow in an optimiser's gradients, or in any's."""
    states = scaler._per_optimizer_states
    chosen = states.values() if optimizer is None else [states[id(optimizer)]]
    return [found for state in chosen for found in state["found_inf_per_device"].values()]


def tell_overflow(scaler: torch.amp.GradScaler, overflow: bool) -> None:
    """What a scaler's next `update` goes by, in place of gradients that it has looked at."""
    device = torch.device(scaler._device)
    if scaler._scale is None:
        scaler._lazy_init_scale_growth_tracker(device)
    scaler._per_optimizer_states.clear()
    scaler._per_optimizer_states[0]["found_inf_per_device"] = {device: torch.full((1,), float(overflow), device=device)}


def raise_scale(scaler: torch.amp.GradScaler, minimum: float) -> None:
    """Keep a scaler's scale from falling below a minimum."""
    if scaler._scale is not None:
        scaler._scale.clamp_(min=minimum)
