"""Gaudi's autocast: which operations compute in a low precision, by lists of their names."""

from __future__ import annotations

import functools
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any, TypeAlias

import torch
from torch.overrides import TorchFunctionMode

from softfloat.torch.operators.bridge import as_dtype

__all__ = ["FIRST_ALONE", "FP32", "LOWER", "PROMOTE", "autocast_lists", "lists_in_force"]

Names: TypeAlias = Iterable[str] | str | os.PathLike[str]


def names(text: str) -> frozenset[str]:
    """Names, with white space between them."""
    return frozenset(text.split())


LOWER = names("""
    addmm addbmm batch_norm baddbmm bmm conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d dot dropout
    feature_dropout group_norm instance_norm layer_norm leaky_relu linear matmul mean mm mul mv softmax log_softmax
    scaled_dot_product_attention
""")
"""Gaudi's default: operations that compute in the low type."""

FP32 = names("""
    acos addcdiv asin atan2 bilinear binary_cross_entropy binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss
    cosine_similarity cross_entropy_loss dist div divide embedding embedding_bag erfinv exp expm1 hinge_embedding_loss
    huber_loss kl_div l1_loss log log10 log1p log2 logsumexp margin_ranking_loss mse_loss multi_margin_loss
    multilabel_margin_loss nll_loss pdist poisson_nll_loss pow reciprocal renorm rsqrt sinh smooth_l1_loss soft_margin_loss
    softplus tan topk triplet_margin_loss truediv true_divide
""")
"""Gaudi's default: operations that compute in float32."""

PROMOTE = names("add addcmul addcdiv cat div exp mul pow sub iadd truediv stack")
"""Gaudi's: operations that compute in the widest type of their operands, where neither of the other lists has them."""

FIRST_ALONE = names("layer_norm group_norm instance_norm batch_norm")
"""Of those that compute in the low type, those of which only the first operand is cast."""

POLICIES = ("lower", "fp32", "promote")
"""In the order in which lists are asked."""

SYNONYMS = {
    **{f"__{name}__": (name,) for name in ("add", "sub", "mul", "matmul", "pow", "neg", "abs", "mod")},
    **{f"__r{name}__": (name, f"r{name}") for name in ("add", "sub", "mul", "matmul", "pow")},
    **{f"__i{name}__": (f"i{name}", f"{name}_") for name in ("add", "sub", "mul", "pow")},
    **dict.fromkeys(
        ("__truediv__", "__rtruediv__", "__div__", "__rdiv__", "true_divide", "divide"), ("div", "truediv")
    ),
    **dict.fromkeys(("__itruediv__", "__idiv__"), ("itruediv", "idiv", "div_")),
    "div": ("truediv", "true_divide", "divide"),
    "add_": ("iadd",),
    "sub_": ("isub",),
    "mul_": ("imul",),
    "subtract": ("sub",),
    "multiply": ("mul",),
    "concat": ("cat",),
    "concatenate": ("cat",),
    "nll_loss_nd": ("nll_loss",),
    "native_layer_norm": ("layer_norm",),
    "native_group_norm": ("group_norm",),
    "special_softmax": ("softmax",),
    "special_log_softmax": ("log_softmax",),
}
"""What lists may call what PyTorch calls otherwise."""

TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
"""Low types, by name."""

DEVICES = ("cpu", "cuda")


def _known(name: str) -> bool:
    return (
        name in LOWER | FP32 | PROMOTE
        or any(name in known for known in SYNONYMS.values())
        or hasattr(torch.ops.aten, name)
    )


def _read(argument: str, value: Names) -> Iterator[tuple[str, str]]:
    """Names with their places; from a file, one in each line."""
    if isinstance(value, (str, os.PathLike)):
        text = Path(value).read_text(encoding="utf-8")
        yield from ((f"{value}: line {i}", line) for i, line in enumerate(text.splitlines(), 1) if line)
    elif isinstance(value, Iterable):
        yield from ((f"{argument}[{i}]", name) for i, name in enumerate(value))
    else:
        raise TypeError(f"{argument} must be a list of operations' names or the path of a file of them, got {value!r}")


def _listed(argument: str, value: Names | None, default: frozenset[str]) -> frozenset[str]:
    if value is None:
        return default
    found = set()
    for place, name in _read(argument, value):
        if not isinstance(name, str):
            raise TypeError(f"{place} must be an operation's name, got {name!r}")
        base = name.partition(".")[0]
        if not _known(base):
            raise ValueError(f"{place}: no operation of PyTorch's is called {name!r}")
        found.add(base)
    return frozenset(found)


def _configured(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """The lists of a gaudi_config.json."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: no JSON: {error}") from None
    if not isinstance(data, Mapping):
        raise ValueError(f"{path}: must be a JSON object, got {type(data).__name__}")
    if not data.get("use_torch_autocast", True):
        raise ValueError(f"{path}: use_torch_autocast is false in it; nothing is to be cast")
    keys = {"lower": "autocast_bf16_ops", "fp32": "autocast_fp32_ops"}
    for key in keys.values():
        if not isinstance(data.get(key), list):
            raise ValueError(f"{path}: must have lists {' and '.join(keys.values())}, got {data.get(key)!r} for {key}")
    return {argument: data[key] for argument, key in keys.items()}


_HERE = threading.local()


def lists_in_force() -> autocast_lists | None:
    """Those of the block that this thread is in."""
    found: list[autocast_lists] = _HERE.__dict__.get("open", [])
    return found[-1] if found else None


class autocast_lists(TorchFunctionMode):
    """Within it, operations compute in a low type, in float32 or in the widest type of their operands, by lists: Gaudi's autocast.

    Parameters
    ----------
    lower : iterable of str, or path, optional
        Operations whose floating-point operands are cast to `dtype`. Of norms (`FIRST_ALONE`) it is the first operand
        alone. A path is that of a file with one name in each line, as `PT_HPU_AUTOCAST_LOWER_PRECISION_OPS_LIST` names.
        None: Gaudi's default, `softfloat.torch.autocast.LOWER`.
    fp32 : iterable of str, or path, optional
        Operations whose operands are cast to float32; files as `PT_HPU_AUTOCAST_FP32_OPS_LIST` names. None: the default, `FP32`.
    promote : iterable of str, or path, optional
        Operations whose operands are cast to float32 if one of them is. None: the fixed list, `PROMOTE`.
    config : path, optional
        A gaudi_config.json instead of `lower` and `fp32`: its `autocast_bf16_ops` and `autocast_fp32_ops`.
    dtype : {"bfloat16", "float16"} or torch.dtype
        The low type.

    Attributes
    ----------
    calls : Counter of (str, str)
        How often operations of each name computed under each policy: "lower", "fp32", "promote".
    casts : Counter of str
        How many operands were cast, by the operation's name.

    Raises
    ------
    OSError
        If a file cannot be read.
    TypeError, ValueError
        Naming argument or file, and place; when it is entered within `torch.autocast` or another of its kind.

    Notes
    -----
    Lists replace the defaults. Lists are asked in the order `lower`, `fp32`, `promote`; what is in none computes in the
    types of its operands. Names are aten's, without overload ("conv_transpose2d.input" is conv_transpose2d); sums and quotients
    that Python writes with `+=` and `/` are "iadd" and "truediv" too. Only tensors in float32 and narrower types are cast,
    float64 is not. Casts are not kept: a weight that is used twice is cast twice. An operation that writes to an
    operand, or has `out=`, leaves that operand as it is. Gradients flow through the casts.

    The lists and rules are those of HabanaAI/gaudi-pytorch-bridge, hpu_ops/autocast_helpers. Gaudi reads files once, when it is
    imported, and takes its defaults where it cannot read one; here that is an error, and so is a name that PyTorch
    does not have.

    Operations are told apart where Python calls them: what compiled functions call within themselves, is theirs. It works with
    and without `softfloat.torch.emulate`.

    >>> x, w = torch.ones(2, 2), torch.ones(2, 2)
    >>> with autocast_lists() as cast:
    ...     y = x @ w
    ...     z = torch.softmax(y, -1) + x
    >>> y.dtype, z.dtype, cast.casts["matmul"]
    (torch.bfloat16, torch.float32, 2)
    """

    def __init__(
        self,
        lower: Names | None = None,
        fp32: Names | None = None,
        promote: Names | None = None,
        *,
        config: str | os.PathLike[str] | None = None,
        dtype: str | torch.dtype = "bfloat16",
    ) -> None:
        super().__init__()
        low = as_dtype("dtype", dtype, TYPES.values())
        if config is not None:
            if lower is not None or fp32 is not None:
                raise ValueError("config must be left out where lower or fp32 is given")
            found = _configured(config)
            lower = [f"{name}" for name in found["lower"]]
            fp32 = [f"{name}" for name in found["fp32"]]
        self.dtype = low
        self.lower = _listed("lower", lower, LOWER)
        self.fp32 = _listed("fp32", fp32, FP32)
        self.promote = _listed("promote", promote, PROMOTE)
        self._open: list[Any] = []
        self.calls: Counter[tuple[str, str]] = Counter()
        self.casts: Counter[str] = Counter()

    def __enter__(self) -> autocast_lists:
        """Refuse to choose beside PyTorch's own autocast."""
        _refuse_autocast()
        if lists_in_force() not in (None, self):
            raise ValueError(
                "autocast_lists is in force already, and two would both choose types; leave the other's block"
            )
        super().__enter__()
        _HERE.__dict__.setdefault("open", []).append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As PyTorch's modes do."""
        _HERE.open.pop()
        super().__exit__(kind, error, trace)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Cast what the lists say; functions written in Python are looked into."""
        kwargs = kwargs or {}
        body = _body(func) if isinstance(func, FunctionType) and func not in self._open else None
        if body is not None:
            self._open.append(func)  # which methods in C that it stands for hand over again, by their name
            try:
                with self:
                    return body(*args, **kwargs)
            finally:
                self._open.pop()
        name = getattr(func, "__name__", "")
        if not args or kwargs.get("out") is not None or name in ("__get__", "__set__"):
            return func(*args, **kwargs)
        policy = self._policy(name)
        if policy is None:
            return func(*args, **kwargs)
        _refuse_autocast()
        self.calls[name, policy] += 1
        args, kwargs = self._cast(name, policy, args, kwargs)
        return func(*args, **kwargs)

    def _policy(self, name: str) -> str | None:
        called = {name, *SYNONYMS.get(name, ())}
        return next((policy for policy in POLICIES if called & getattr(self, policy)), None)

    def _cast(self, name: str, policy: str, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        writes = name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))
        if policy == "promote":
            wide = any(x.dtype == torch.float32 for x in _eligible([args, *kwargs.values()]))
            if not wide:
                return args, kwargs
        to = self.dtype if policy == "lower" else torch.float32

        def cast(x: Any) -> Any:
            if isinstance(x, torch.Tensor):
                if not _is_eligible(x) or x.dtype == to:
                    return x
                self.casts[name] += 1
                return x.to(to)
            if isinstance(x, (list, tuple)) and any(True for _ in _eligible(x)):
                return type(x)(map(cast, x)) if not hasattr(x, "_fields") else type(x)(*map(cast, x))
            return x

        first = args[0] if writes else cast(args[0])
        if policy == "lower" and {name, *SYNONYMS.get(name, ())} & FIRST_ALONE:
            return (first, *args[1:]), kwargs
        return (first, *map(cast, args[1:])), {key: cast(value) for key, value in kwargs.items()}


def _refuse_autocast() -> None:
    if any(map(torch.is_autocast_enabled, DEVICES)):
        raise ValueError("autocast_lists and torch.autocast both choose types; leave the autocast block")


def _is_eligible(x: torch.Tensor) -> bool:
    return x.is_floating_point() and x.dtype != torch.float64


def _eligible(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for x in values:
        if isinstance(x, torch.Tensor):
            if _is_eligible(x):
                yield x
        elif isinstance(x, (list, tuple)):
            yield from _eligible(x)


ASKS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
"""What PyTorch's functions in Python ask before they hand themselves over."""


@functools.cache
def _body(function: FunctionType) -> Callable[..., Any] | None:
    """A function in Python that does not hand itself over; None where it is not one that would."""
    asks = {name: _never for name in ASKS if name in function.__globals__}
    if not asks or not set(_global_names(function)) & set(asks):
        return None
    copy = FunctionType(
        function.__code__,
        {**function.__globals__, **asks},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _global_names(function: FunctionType) -> tuple[str, ...]:
    return function.__code__.co_names


def _never(*_: Any) -> bool:
    return False
