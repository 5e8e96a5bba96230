"""Parameters in float32, and casts of them for what computes: the IPU tutorial's "custom getter"."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter
from torch.nn.utils import parametrize

from softfloat.torch import private
from softfloat.torch.operators.bridge import as_dtype

__all__ = ["check_module", "float32_parameters", "hand_over", "own_parameters", "walk"]

COMPUTE = (torch.float32, torch.float16, torch.bfloat16)
STATISTICS = (
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
    nn.SyncBatchNorm,
    nn.InstanceNorm1d,
    nn.InstanceNorm2d,
    nn.InstanceNorm3d,
)
"""Norms that keep statistics. PyTorch takes low inputs for them only with float32 parameters and statistics."""


class Handed(torch.Tensor):
    """A cast of a parameter, or what lies in the cast's memory. What is written to it is written to the parameter, in float32, and cast anew.

    Attributes
    ----------
    kept : torch.Tensor, optional
        The parameter. None: it was made a parameter of its own.
    low : torch.dtype
        What it is rounded to.
    whole : bool
        Whether it stands for the parameter, not for a view or for numbers without a gradient.
    """

    kept: torch.Tensor | None
    low: torch.dtype
    whole: bool

    @classmethod
    def of(cls, cast: torch.Tensor, kept: torch.Tensor | None, low: torch.dtype, whole: bool) -> torch.Tensor:
        """Hand it over. What a trace sees is left alone."""
        if type(cast) is not torch.Tensor or torch.jit.is_tracing() or torch.compiler.is_compiling():
            return cast
        handed = cast.as_subclass(cls)
        handed.kept, handed.low, handed.whole = kept, low, whole
        return handed

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Everything as it is, but writing."""
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        own = args[0] if args and isinstance(args[0], Handed) and args[0].kept is not None else None
        with private.plain():
            if name == "requires_grad_" and own is not None and not own.whole:
                own.kept = None  # what `nn.Parameter` does with the numbers that it is given
            elif name == "__set__" or func == GRADIENT:
                return func(*args, **kwargs) if own is None or not own.whole else own._attribute(func, *args[1:])
            elif _writes(name, kwargs):
                return _written(func, args, kwargs)
            found = func(*args, **kwargs)
            return found if own is None else own._alias(found)

    def _alias(self, found: Any) -> Any:
        """Of results those that lie in the same memory."""
        if isinstance(found, np.ndarray):
            found.flags.writeable = False
        elif type(found) in (tuple, list):
            return type(found)(map(self._alias, found))
        elif type(found) is torch.Tensor and private.memory(found) == private.memory(self):
            return Handed.of(found, self.kept, self.low, False)
        return found

    def _attribute(self, func: Any, *value: Any) -> Any:
        """Read or set an attribute of the parameter."""
        assert self.kept is not None
        if func != DATA:
            return func(self.kept, *value)
        func(self.kept, value[0].detach().to(torch.float32))
        return self._again()

    def place(self) -> torch.Tensor:
        """The parameter's elements that these stand for; without a gradient, if these have none."""
        kept = self.kept
        assert kept is not None
        if not isinstance(kept, nn.Parameter):
            raise TypeError(
                "a parameter that other parametrisations compute cannot be written to in place; assign to it, as module.weight = numbers"
            )
        if not self.requires_grad:
            kept = kept.detach()
        return kept if self.whole else kept.as_strided(self.shape, self.stride(), self.storage_offset())

    def _again(self) -> None:
        """Cast anew."""
        with torch.no_grad():
            self.copy_(self.place().to(self.low))

    def __repr__(self, **options: Any) -> str:
        return self._plain().__repr__(**options)

    def __deepcopy__(self, memo: Any) -> torch.Tensor:
        return copy.deepcopy(self._plain(), memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._plain().__reduce_ex__(protocol)

    def _plain(self) -> torch.Tensor:
        with private.plain():
            return self.as_subclass(torch.Tensor)


GRADIENT, DATA = torch.Tensor.grad.__get__, torch.Tensor.data.__set__
"""What PyTorch hands over where `x.grad` is read, and `x.data` set."""


def _writes(name: str, kwargs: Mapping[str, Any]) -> bool:
    """Whether a function of PyTorch's writes to an operand, which its name says."""
    if name.startswith("__"):
        return name in IN_PLACE
    return name.endswith("_") or kwargs.get("out") is not None


IN_PLACE = frozenset(
    {
        "__setitem__",
        "__iadd__",
        "__isub__",
        "__imul__",
        "__itruediv__",
        "__idiv__",
        "__ifloordiv__",
        "__imod__",
        "__ipow__",
    }
)
"""Operators of Python's that write to their first operand."""


def _written(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A function that writes to its first operand, or to `out`: to the parameters instead of their casts."""
    places: dict[int, Handed] = {}

    def there(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)(map(there, x))
        if not isinstance(x, Handed) or x.kept is None:
            return x
        place = x.place()
        places[id(place)] = x
        return place

    def here(x: Any) -> Any:
        return type(x)(map(here, x)) if type(x) in (list, tuple) else places.get(id(x), x)

    if kwargs.get("out") is not None:
        kwargs["out"] = there(kwargs["out"])
    elif args:
        args = (there(args[0]), *args[1:])
    else:  # of torch.nn.init
        kwargs = {name: there(value) for name, value in kwargs.items()}
    found = func(*args, **kwargs)
    for handed in places.values():
        handed._again()
    return here(found)


class Cast(nn.Module):
    """The parametrisation: what is kept in float32 is handed over in `dtype`; with `widened`, rounded to it but in float32."""

    def __init__(self, dtype: torch.dtype, widened: bool) -> None:
        super().__init__()
        self.dtype, self.widened = dtype, widened
        self.holding, self.held = False, None

    def forward(self, parameter: torch.Tensor) -> torch.Tensor:
        """The cast; while `holding`, always the same."""
        if self.holding and self.held is not None:
            return self.held
        rounded = parameter.to(self.dtype)
        if self.widened:
            rounded = rounded.to(torch.float32)
        rounded = Handed.of(rounded, parameter, self.dtype, True)
        if self.holding:
            self.held = rounded
        return rounded

    def right_inverse(self, value: torch.Tensor) -> torch.Tensor:
        """What assigning to the parameter keeps."""
        return value.to(torch.float32)

    def hold(self, holding: bool) -> None:
        """Start to cast once, or stop."""
        self.holding, self.held = holding, None

    def extra_repr(self) -> str:
        """The dtype, for `print(model)`."""
        return f"{self.dtype}, widened={self.widened}"


def walk(module: nn.Module, path: str = "") -> Iterator[tuple[str, nn.Module]]:
    """(path, module) of a module and all within it, without parametrisations."""
    yield path, module
    for name, child in module.named_children():
        if name != "parametrizations" or not parametrize.is_parametrized(module):
            yield from walk(child, f"{path}.{name}" if path else name)


def own_parameters(module: nn.Module) -> dict[str, list[nn.Parameter]]:
    """A module's own floating-point parameters by name: what is stored of each, several where it is computed of them."""
    own = {name: [p] for name, p in module.named_parameters(recurse=False, remove_duplicate=False)}
    if parametrize.is_parametrized(module):
        own |= {name: list(chain.parameters(recurse=False)) for name, chain in module.parametrizations.items()}
    return {name: stored for name, stored in own.items() if stored and all(p.is_floating_point() for p in stored)}


def _casts(module: nn.Module) -> dict[str, Cast]:
    """The casts of a module's own parameters by name."""
    if not parametrize.is_parametrized(module):
        return {}
    chains = module.parametrizations.items()
    return {name: step for name, chain in chains for step in chain if isinstance(step, Cast)}


def _widen(stored: Iterable[torch.Tensor]) -> None:
    """Make tensors float32; they stay the objects that optimisers know."""
    for tensor in stored:
        if tensor.is_floating_point() and tensor.dtype != torch.float32:
            gradient = tensor.grad if tensor.is_leaf else None
            tensor.data = tensor.data.to(torch.float32)
            if gradient is not None:
                gradient.data = gradient.data.to(torch.float32)


def hand_over(module: nn.Module, names: Iterable[str], dtype: torch.dtype) -> None:
    """Let a module's parameters be float32, and reach what computes in a dtype."""
    own, statistics = own_parameters(module), isinstance(module, STATISTICS)
    if statistics:
        _widen(module.buffers(recurse=False))
    for name in names:
        _widen(own[name])
        cast = _casts(module).get(name)
        if cast is not None:
            cast.dtype, cast.widened = dtype, statistics
        elif dtype != torch.float32:
            if isinstance(module, nn.RNNBase) and not _casts(module):
                module.register_forward_pre_hook(_hold)
                module.register_forward_hook(_release, always_call=True)
            if not _casts(module):
                module.register_load_state_dict_pre_hook(_load)
            # unsafe: only then may a parametrisation change the dtype
            parametrize.register_parametrization(module, name, Cast(dtype, statistics), unsafe=True)
            if "__setattr__" not in vars(type(module)):  # a class of this module alone
                type(module).__setattr__ = _assigning(type(module).__setattr__)  # type: ignore[assignment,arg-type]


def _assigning(otherwise: Callable[[nn.Module, str, Any], None]) -> Callable[[nn.Module, str, Any], None]:
    """How attributes of a module with casts are set: a parameter is kept, as it would be without; numbers are those of the one that is kept."""

    def __setattr__(module: nn.Module, name: str, value: Any) -> None:
        if name not in _casts(module):
            otherwise(module, name, value)
            return
        chain = module.parametrizations[name]
        if value is None:
            raise TypeError(
                f"{name} is kept in float32 and cannot be None; accepted: after "
                f"torch.nn.utils.parametrize.remove_parametrizations(module, {name!r}, leave_parametrized=False)"
            )
        if isinstance(value, Handed) and value.whole and isinstance(value.kept, nn.Parameter):
            value = value.kept
        if isinstance(value, nn.Parameter) and value.is_floating_point() and len(chain) == 1:
            if value is not chain.original:
                _widen([value])
                chain.original = value
        else:
            chain.right_inverse(value)

    return __setattr__


def _load(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Parameters under the names that they have without casts are taken too, and widened."""
    for name in _casts(module):
        plain, own = f"{prefix}{name}", f"{prefix}parametrizations.{name}.original"
        if plain in state and own not in state and len(module.parametrizations[name]) == 1:
            state[own] = state.pop(plain)
        if isinstance(state.get(own), torch.Tensor):
            state[own] = state[own].to(torch.float32)


def _hold(module: nn.Module, args: Any) -> None:
    """Recurrent layers look at each weight several times in a call; it is cast once."""
    for cast in _casts(module).values():
        cast.hold(True)


def _release(module: nn.Module, args: Any, output: Any) -> None:
    """Take the casts out of the list of weights that a recurrent layer keeps: they could not be copied, and hold a graph."""
    originals: dict[int, torch.Tensor] = {}
    for name, cast in _casts(module).items():
        if cast.held is not None:
            originals[id(cast.held)] = own_parameters(module)[name][0]
        cast.hold(False)
    for kept in vars(module).values():
        if isinstance(kept, list):
            kept[:] = [originals.get(id(x), x) for x in kept]


def check_module(module: Any, dtype: Any, argument: str, dtype_argument: str = "dtype") -> torch.dtype:
    """The dtype, of a module that may get one."""
    if not isinstance(module, nn.Module):
        raise TypeError(f"{argument} must be a torch.nn.Module, got {type(module).__name__}")
    found = as_dtype(dtype_argument, dtype, COMPUTE)
    for path, part in walk(module):
        tensors = (*part.parameters(recurse=False), *part.buffers(recurse=False))
        if any(isinstance(x, (UninitializedParameter, UninitializedBuffer)) for x in tensors):
            where = f"{argument}.{path}" if path else argument
            raise ValueError(f"{where} has parameters without a shape; call {argument} once before")
    return found


def float32_parameters(
    module: nn.Module,
    dtype: torch.dtype | str = torch.float16,
    *,
    names: Iterable[str] | Callable[[str, nn.Parameter], bool] | None = None,
) -> nn.Module:
    """Keep parameters in float32, and hand them to the computation cast to `dtype`; gradients come back in float32.

    Parameters
    ----------
    module : torch.nn.Module
        Changed in place, with all modules within it. Parameters of other floating-point dtypes become float32; the
        optimiser that has them already may keep them.
    dtype : torch.dtype or str
        torch.float16, torch.bfloat16, or torch.float32 for no cast; or a name, such as "float16".
    names : iterable of str, or callable, optional
        Which parameters: their names in `module.named_parameters()` before the first call, or a function of name and
        parameter. None: all of floating point.

    Returns
    -------
    torch.nn.Module
        `module`.

    Raises
    ------
    TypeError, ValueError
        Naming the argument. Nothing is changed then.

    Notes
    -----
    Each parameter gets a parametrisation of `torch.nn.utils.parametrize`. `module.weight` is a cast, made anew whenever it
    is read; within `emulate` the emulation rounds it. What is written to a cast in place, or to a view of one
    (`torch.nn.init`, `copy_`, `module.weight[0] = 0`, `.data`), is written to the parameter, in float32, and cast anew;
    arrays of NumPy that share its memory cannot be written to. A parameter that is assigned is kept, made float32; of
    another tensor the numbers are. Names in `state_dict` become "parametrizations.weight.original"; checkpoints without
    are loaded too. A further call only changes the dtype: the last one counts. Parameters that were shared still are, one
    gradient for all.

    `remove_parametrizations(module, name, leave_parametrized=False)` of PyTorch undoes it: the float32 parameter has its
    name back. Without that argument it would leave the cast in a float32 parameter, and fails. It also takes the property
    from deep copies, whose class is the same.

    Frozen parameters are cast too, and kept in float32 to be thawed; the tutorial's getter makes them in `dtype`, which
    hands over the same numbers unless rounding is stochastic. `names=lambda name, p: p.requires_grad` leaves them alone.

    Inputs are not touched: what is computed in `dtype` is decided by them. Norms with running statistics get parameters
    rounded to `dtype` but stored in float32, the only ones that PyTorch takes along with inputs in either dtype;
    statistics are float32. Recurrent layers cast each weight once in a call.

    Source
    ------
    Graphcore, "Half and mixed precision in TensorFlow", Method 2: `fp32_parameter_getter`.

    >>> import torch
    >>> layer = float32_parameters(torch.nn.Linear(3, 2))
    >>> y = layer(torch.ones(1, 3, dtype=torch.float16))
    >>> y.float().sum().backward()
    >>> y.dtype, layer.weight.dtype, [p.grad.dtype for p in layer.parameters()]
    (torch.float16, torch.float16, [torch.float32, torch.float32])
    """
    dtype = check_module(module, dtype, "module")
    if names is not None and not callable(names) and not isinstance(names, Iterable):
        raise TypeError(f"names must be names of parameters, a function of name and parameter, or None, got {names!r}")
    wanted = None if names is None or callable(names) else {names} if isinstance(names, str) else set(names)
    found: dict[str, tuple[nn.Module, str, nn.Parameter]] = {}
    for path, part in walk(module):
        for name, stored in own_parameters(part).items():
            found[f"{path}.{name}" if path else name] = part, name, stored[0]
    if wanted is not None and not wanted <= found.keys():
        missing = ", ".join(repr(x) for x in sorted(wanted - found.keys(), key=str))
        raise ValueError(f"names has {missing}, which module does not have; accepted: {', '.join(found)}")
    chosen = [
        (part, name)
        for path, (part, name, parameter) in found.items()
        if (names(path, parameter) if callable(names) else wanted is None or path in wanted)
    ]
    for part, name in chosen:
        hand_over(part, [name], dtype)
    return module
