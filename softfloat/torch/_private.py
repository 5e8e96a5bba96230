"""Every name of PyTorch that carries an underscore, or lives in a module that does; `tests/test_torch_private.py` pins them."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch.autograd.graph import register_multi_grad_hook
from torch.nn.modules.module import register_module_forward_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.module_tracker import ModuleTracker

__all__ = [
    "DispatchMode",
    "OpOverload",
    "Tracker",
    "argument_names",
    "attention_in_its_dtype",
    "compiled_calls",
    "decomposition",
    "found_infinite",
    "in_backward",
    "is_view",
    "raise_scale",
    "schema_name",
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


@cache
def written(operator: OpOverload) -> tuple[str, ...]:
    """Names of the arguments that the operator writes to."""
    arguments = operator._schema.arguments
    return tuple(x.name for x in arguments if x.alias_info is not None and x.alias_info.is_write)


@cache
def argument_names(operator: OpOverload) -> tuple[str, ...]:
    """Names of all arguments, in order."""
    return tuple(x.name for x in operator._schema.arguments)


def is_view(operator: OpOverload) -> bool:
    """Whether results are views of an argument that is not written to."""
    aliases = [x.alias_info for x in operator._schema.returns]
    return bool(aliases) and all(x is not None and not x.is_write for x in aliases)


def decomposition(operator: OpOverload) -> Callable[..., Any] | None:
    """What the operator is made of, if it has no kernel of its own; under `torch.inference_mode` modes see such operators."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return operator.decompose if operator.has_kernel_for_dispatch_key(key) else None


def in_backward() -> bool:
    """Whether the autograd engine is running in this thread."""
    return int(torch._C._current_graph_task_id()) != -1


MOST_HOOKS = 1 << 14  # of past modules, to be taken down at the end: older ones are those of graphs long gone


class Names(dict[str, None]):
    """A set that remembers the order."""

    def add(self, name: str) -> None:
        self[name] = None

    def remove(self, name: str) -> None:
        del self[name]


def _computed(tree: Any) -> list[torch.Tensor]:
    """Tensors that autograd computed: `torch.autograd.grad` does not stand the tracker's hooks on leaves."""
    return [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor) and x.grad_fn is not None]


class Tracker(ModuleTracker):
    """A `ModuleTracker` that knows which module was entered last, and does not grow with every step."""

    _fw_post_handle: Any

    def __init__(self) -> None:
        super().__init__()
        self._hooks: Any = deque(maxlen=MOST_HOOKS)

    def __enter__(self) -> Tracker:
        """Modules are left by exceptions, too."""
        super().__enter__()
        self._fw_post_handle.remove()
        self._fw_post_handle = register_module_forward_hook(self._fw_post_hook, always_call=True)
        return self

    def _fw_pre_hook(self, mod: Any, input: Any) -> None:
        super()._fw_pre_hook(mod, _computed(input))

    def _fw_post_hook(self, mod: Any, input: Any, output: Any) -> None:
        """Backward, a module is entered with the first gradient of its outputs: of all, PyTorch does not call for what `backward` starts from."""
        super()._fw_post_hook(mod, (), ())
        outputs = _computed(output)
        if outputs:
            enter = self._get_append_fn(self._get_mod_name(mod), True)
            self._hooks.append(register_multi_grad_hook(outputs, enter, mode="any"))

    @property
    def parents(self) -> Any:
        """Names of the modules being executed, in the order they were entered."""
        return self._names

    @parents.setter
    def parents(self, names: Iterable[str]) -> None:
        self._names = Names.fromkeys(names)

    def innermost(self) -> str:
        """The module entered last among those that contain no other; empty outside modules.

        Backward, a module whose inputs need no gradient is never left, and one that contains others is entered after
        them.
        """
        names = [name for name in self._names if name != "Global"]
        leaves = [name for name in names if not any(other.startswith(f"{name}.") for other in names)]
        return leaves[-1] if leaves else ""


@contextmanager
def attention_in_its_dtype() -> Iterator[None]:
    """Within it, the MATH backend of attention computes in the dtype of its operands, where by default it widens them."""
    before = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    try:
        yield
    finally:
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(before)


# -- the compiler ----------------------------------------------------------------------------------------------------


def _eval_frame() -> Any:
    """The compiler's entry, if anything has loaded it yet."""
    return sys.modules.get("torch._dynamo.eval_frame")


class _Patch:
    """Functions of PyTorch replaced while any thread wants it, and put back when none does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self._replaced: dict[tuple[Any, str], Any] = {}
        self.here = threading.local()

    def begin(self, refuse: Callable[[], None]) -> None:
        """In this thread, from now on, call `refuse` where a compiler would be used."""
        stack = self.here.__dict__.setdefault("stack", [])
        with self._lock:
            self._wanted += 1
            self._replace(torch, "compile", lambda _: True)
            frames = _eval_frame()
            if frames is not None:
                self._replace(frames, "_callback_from_stance", lambda callback: callback is not None)
        stack.append(refuse)

    def end(self) -> None:
        """Undo the last `begin` of this thread."""
        self.here.stack.pop()
        with self._lock:
            self._wanted -= 1
            if not self._wanted:
                for (owner, name), original in self._replaced.items():
                    setattr(owner, name, original)
                self._replaced.clear()

    def _replace(self, owner: Any, name: str, refused: Callable[[Any], bool]) -> None:
        """Refuse what returns something that is refused; None stands for no compiler."""
        if (owner, name) in self._replaced:
            return
        original = self._replaced[owner, name] = getattr(owner, name)

        def refusing(*arguments: Any, **options: Any) -> Any:
            result = original(*arguments, **options)
            stack = self.here.__dict__.get("stack")
            if stack and refused(result):
                stack[-1]()
            return result

        setattr(owner, name, refusing)


_PATCH = _Patch()


@contextmanager
def compiled_calls(refuse: Callable[[], None]) -> Iterator[None]:
    """Within it, in this thread, making or calling what `torch.compile` makes calls `refuse`, which raises."""
    if torch.compiler.is_compiling():
        refuse()
    if _eval_frame() is not None:
        from torch._C._dynamo.eval_frame import get_eval_frame_callback

        if get_eval_frame_callback() is not None:
            refuse()
    _PATCH.begin(refuse)
    try:
        yield
    finally:
        _PATCH.end()


def found_infinite(scaler: torch.amp.GradScaler, optimizer: torch.optim.Optimizer | None = None) -> list[torch.Tensor]:
    """The numbers, one for each device, that are not 0 if a scaler found an overflow in an optimiser's gradients, or in any's."""
    states = scaler._per_optimizer_states
    chosen = states.values() if optimizer is None else [states[id(optimizer)]]
    return [found for state in chosen for found in state["found_inf_per_device"].values()]


def raise_scale(scaler: torch.amp.GradScaler, minimum: float) -> None:
    """Keep a scaler's scale from falling below a minimum."""
    if scaler._scale is not None:
        scaler._scale.clamp_(min=minimum)
