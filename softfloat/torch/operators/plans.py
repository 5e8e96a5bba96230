"""From a dispatched operator to what computes it: tables looked up once for each operator, dtypes promoted, results delivered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from softfloat.formats import Format, float32
from softfloat.status import Flags
from softfloat.torch import private
from softfloat.torch.operators import tables
from softfloat.torch.operators.bridge import FORMATS, LOW, NARROW, Codes, UnsupportedArguments, codes_of
from softfloat.torch.operators.device_products import DEVICE_PRODUCTS, Unread, unread
from softfloat.torch.operators.device_steps import (
    DEVICE_CHOICES,
    DEVICE_STEPS,
    EXCEPTIONS,
    READ_INSIDE,
    WAYS_OUT,
    corrected,
    device_choice,
)
from softfloat.torch.operators.device_sums import DEVICE_SUMS, device_sum
from softfloat.torch.operators.norms import LAYOUTS, normalised
from softfloat.torch.operators.pointwise import STEPS, Run
from softfloat.torch.operators.products import CONVOLUTIONS, PRODUCTS, grouped_arguments
from softfloat.torch.operators.scaled import SCALED, scaled
from softfloat.torch.operators.scaled_mm import SCALED_PRODUCTS
from softfloat.torch.operators.unit import Unit
from softfloat.torch.operators.wide import OWN, Wide, alone, finite

__all__ = ["Plan", "between", "computes", "involved", "on_device", "opaque", "planned", "quantises", "touches"]

Arguments = Sequence[Any]
Keywords = dict[str, Any]
Plan = Callable[[Unit, Any, Arguments, Keywords], Any]
"""plan(unit, operator, args, kwargs) -> what the operator returns."""

NOTHING: Keywords = {}
NVIDIA_NAN = 0x7FFFFFFF
FOREACH = "_foreach_"
FOREACH_NAMES = {"norm": "linalg_vector_norm"}
EXTREMES = {"max": "maximum", "min": "minimum"}  # of two tensors


def involved(arguments: Iterable[Any]) -> bool:
    """Whether a tensor in a narrow dtype, or such a dtype itself, is among arguments or in lists of them."""
    for x in arguments:
        if isinstance(x, torch.Tensor):
            if x.dtype in NARROW:
                return True
        elif isinstance(x, (list, tuple)):
            if involved(x):
                return True
        elif isinstance(x, torch.dtype) and x in NARROW:
            return True
    return False


def touches(args: Arguments, kwargs: Keywords) -> bool:
    """`involved`, for an operator's arguments."""
    return involved(args) or bool(kwargs and involved(kwargs.values()))


def computes(operator: Any, args: Arguments, kwargs: Keywords) -> bool:
    """Whether an operator on narrow tensors does more than move and compare elements."""
    if not touches(args, kwargs):
        return False
    plan = planned(operator)
    if plan is cast:
        return kwargs.get("dtype") in NARROW and kwargs.get("dtype") != args[0].dtype
    if plan is copy_:
        return bool(args[0].dtype != args[1].dtype)
    if plan is joined:
        return len({x.dtype for x in args[0]}) > 1
    return plan not in (native, move, uniform) and private.decomposition(operator) is None


# -- promotion -------------------------------------------------------------------------------------------------------


def promoted(operands: Iterable[Any]) -> torch.dtype | None:
    """PyTorch's result type of tensors and numbers: what has dimensions decides, within its category."""
    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    found: torch.dtype | None = tensors[0].dtype if tensors else None
    if found in LOW and (len(tensors) == 1 or all(x.dtype == found for x in tensors)):
        return found
    found = None
    for group in ([x for x in tensors if x.ndim], [x for x in tensors if not x.ndim]):
        for x in group:
            if found is None:
                found = x.dtype
            elif x.ndim or _category(x.dtype) > _category(found):
                found = torch.promote_types(found, x.dtype)
    if found is not None and _category(found) < 2 and any(isinstance(x, float) for x in operands):
        found = torch.get_default_dtype()
    return found


def _category(dtype: torch.dtype) -> int:
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1 if dtype != torch.bool else 0


def emulated_format(dtype: torch.dtype) -> Format:
    """The format of a dtype in which arithmetic is emulated."""
    if dtype not in LOW:
        raise UnsupportedArguments(
            f"arithmetic is emulated in torch.float16 and torch.bfloat16, got {dtype}; cast first"
        )
    return FORMATS[dtype].format


# -- plans -----------------------------------------------------------------------------------------------------------


def native(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords) -> Any:
    """As it is."""
    return operator(*args, **kwargs)


def targets(operator: Any, args: Arguments, kwargs: Keywords) -> dict[str, Any]:
    """What the operator writes to, by argument name."""
    written = private.written(operator)
    if not written:
        return {}
    names = private.argument_names(operator)
    found = {}
    for name in written:
        position = names.index(name)
        value = kwargs.get(name) if name in kwargs else args[position] if position < len(args) else None
        if value is not None:
            found[name] = value
    return found


def move(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords, fill: Sequence[str] = ()) -> Any:
    """As it is, numbers rounded first; by way of float64 where it writes into a dtype that the operands do not have."""
    if fill:
        args, kwargs = filled(unit, operator, args, kwargs, fill)
    for target in _tensors(targets(operator, args, kwargs).values()):
        if target.dtype in NARROW and any(
            x.dtype.is_floating_point and x.dtype != target.dtype for x in _tensors(args)
        ):
            return inside(unit, operator, args, kwargs, torch.float64)
    return operator(*args, **kwargs)


def uniform(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords) -> Any:
    """As it is, of tensors of one dtype: copies into another would be rounded, and what is written to, the schema does not tell."""
    dtypes = {x.dtype for x in (*_tensors(args), *_tensors(kwargs.values()))}
    if len(dtypes) > 1 and dtypes & NARROW:
        raise UnsupportedArguments(
            f"tensors must be of one dtype, got {', '.join(sorted(map(str, dtypes)))}; cast first"
        )
    return operator(*args, **kwargs)


def _tensors(arguments: Iterable[Any]) -> Iterable[torch.Tensor]:
    for x in arguments:
        if isinstance(x, torch.Tensor):
            yield x
        elif isinstance(x, (list, tuple)):
            yield from _tensors(x)


def filled(
    unit: Unit, operator: Any, args: Arguments, kwargs: Keywords, fill: Sequence[str]
) -> tuple[Arguments, Keywords]:
    """Arguments with the numbers and tensors of other dtypes that become elements rounded into the dtype they get."""
    there = private.argument_names(operator)
    dtype = kwargs.get("dtype")
    if dtype is None and "self" in fill:
        dtype = promoted(
            [kwargs.get(name, args[there.index(name)] if there.index(name) < len(args) else None) for name in fill]
        )
    elif dtype is None:
        dtype = args[0].dtype if args and isinstance(args[0], torch.Tensor) else torch.get_default_dtype()
    if dtype not in NARROW:
        return args, kwargs
    if dtype not in FORMATS:
        raise UnsupportedArguments(f"numbers are not rounded into {dtype}")
    args, kwargs, written = list(args), dict(kwargs), private.written(operator)
    for name in fill:
        if name in written:
            continue
        holder: Any = kwargs if name in kwargs else args
        key: Any = name if name in kwargs else there.index(name) if name in there else len(args)
        if holder is args and key >= len(args):
            continue
        x = holder[key]
        if isinstance(x, (int, float)) and not isinstance(x, bool):
            holder[key] = unit.rounded_number(x, FORMATS[dtype].format)
        elif isinstance(x, torch.Tensor) and x.dtype not in (dtype, torch.bool):
            holder[key] = unit.cast(x, dtype)
    return args, kwargs


def joined(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords) -> Any:
    """Concatenation: integers beside low tensors become numbers of their dtype."""
    dtype = promoted(args[0])
    if dtype in LOW:
        parts = [unit.cast(x, dtype) if not x.dtype.is_floating_point else x for x in args[0]]
        args = (parts, *args[1:])
    return move(unit, operator, args, kwargs)


def cast(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords) -> Any:
    """A copy in another dtype, rounded once where that is narrow."""
    source, dtype = args[0], kwargs.get("dtype")
    if dtype not in NARROW or dtype == source.dtype:
        found = operator(*args, **kwargs)
        if (
            unit.device is not None and source.dtype == torch.float16 and dtype == torch.float32
        ):  # all NaNs are one there
            codes_of(found)[found.isnan().numpy()] = NVIDIA_NAN
        return found
    if dtype not in FORMATS or source.dtype.is_complex:
        raise UnsupportedArguments(f"casts from {source.dtype} to {dtype} are not emulated")
    if source.layout != torch.strided:
        raise UnsupportedArguments(f"tensors must be dense, got one laid out as {source.layout}")
    options = {"memory_format": kwargs.get("memory_format") or torch.preserve_format, "dtype": dtype}
    device = kwargs.get("device")
    if device is not None and torch.device(device).type != "cpu":
        raise UnsupportedArguments(f"device must be the CPU, got {device}")
    if source.is_contiguous() and options["memory_format"] in (torch.preserve_format, torch.contiguous_format):
        return unit.cast(source, dtype)
    target = torch.empty_like(source, requires_grad=False, **options)
    unit.store(target, source)
    return target


def copy_(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords) -> Any:
    """Into a tensor of another dtype, rounded once where that is narrow."""
    target, source = args[0], args[1]
    if target.dtype not in NARROW or target.dtype == source.dtype:
        return operator(*args, **kwargs)
    if target.dtype not in FORMATS or source.dtype.is_complex:
        raise UnsupportedArguments(f"casts from {source.dtype} to {target.dtype} are not emulated")
    unit.store(target, source)
    return target


def factory(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords) -> Any:
    """Numbers made in float64, and rounded once."""
    out = kwargs.get("out")
    dtype = out.dtype if out is not None else kwargs.get("dtype") or operator(*args, **kwargs).dtype
    if dtype not in LOW:
        return operator(*args, **kwargs)
    if out is None:
        made = Wide(operator, operator, args, {**kwargs, "dtype": torch.float64}, torch.float64)
        return rounded(unit, made, made.found, dtype)
    made = Wide(operator, operator, args, {**kwargs, "out": torch.empty(0, dtype=torch.float64)}, torch.float64)
    wide, raised = made.judged(made.found)
    return unit.deliver(unit.converted(wide, FORMATS[dtype].format, raised), dtype, out)


def pointwise(
    unit: Unit,
    operator: Any,
    args: Arguments,
    kwargs: Keywords,
    count: int,
    definition: Callable[..., Codes],
    in_place: bool,
) -> Any:
    """Steps of `softfloat.bits` on the operands' codes."""
    operands = args[:count]
    dtype = promoted(operands)
    if dtype is None or dtype not in NARROW:
        return inside(unit, operator, args, kwargs, torch.float32)
    if kwargs.get("rounding_mode") == "trunc":  # exact in float64: no quotient of these formats is that near an integer
        return inside(unit, operator, args, kwargs, torch.float64)
    fmt = emulated_format(dtype)
    carried = fmt if unit.device is None else float32
    target = args[0] if in_place else None
    if "out" in kwargs:
        kwargs = dict(kwargs)
        target = kwargs.pop("out")

    run = Run(unit, carried, fmt)
    if carried != fmt:  # a device reads tensors without dimensions in the dtype of the others
        operands = [unit.cast(x, dtype) if isinstance(x, torch.Tensor) and x.dtype != dtype else x for x in operands]
    codes = [unit.converted(x, carried) if isinstance(x, torch.Tensor) else x for x in operands]
    result = run.narrowed(definition(run, *codes, *args[count:], **kwargs))
    like = next(x for x in operands if isinstance(x, torch.Tensor)) if target is None else None
    return unit.deliver(result, dtype, target, like)


def product(
    unit: Unit, operator: Any, args: Arguments, kwargs: Keywords, handler: Callable[..., Any], in_place: bool
) -> Any:
    """Products and sums of products by an accumulator."""
    if any(isinstance(x, torch.dtype) for x in args):
        raise UnsupportedArguments(
            "argument out_dtype is not emulated; cast the result, or the operands to float32 first"
        )
    wanted = kwargs.get("dtype")
    if wanted is None and handler is PRODUCTS["sum"] and "out" in kwargs and kwargs["out"].dtype in LOW:
        wanted = kwargs["out"].dtype
    if handler is PRODUCTS["_grouped_mm"]:
        a, b, ends = grouped_arguments({**dict(zip(private.argument_names(operator), args, strict=False)), **kwargs})
        args, kwargs = (a, b), {} if ends is None else {"offs": ends}
    if wanted is not None and wanted in LOW and args[0].dtype not in NARROW:
        args = [unit.cast(args[0], wanted), *args[1:]]
    dtypes = {x.dtype for x in args if isinstance(x, torch.Tensor)}
    if not dtypes & NARROW:
        return operator(*args, **kwargs)
    if wanted is not None and wanted not in NARROW:
        return inside(unit, operator, args, kwargs, wanted)
    if len(dtypes) > 1:
        return operator(*args, **kwargs)  # which PyTorch refuses, in its own words
    dtype = dtypes.pop()
    if wanted not in (None, dtype):
        raise UnsupportedArguments(f"dtype must be that of the operand, {dtype}, or float32, got {wanted}")
    fmt = emulated_format(dtype)
    kwargs = {name: x for name, x in kwargs.items() if name != "dtype"}
    target = kwargs.pop("out", args[0] if in_place else None)
    unknown = [name for name in kwargs if name not in ("beta", "alpha", "keepdim", "offs")]
    if unknown:
        raise UnsupportedArguments(f"argument {', '.join(unknown)} is not emulated")
    return handler(unit, fmt, target, *args, **kwargs)


def convolution(
    unit: Unit, operator: Any, args: Arguments, kwargs: Keywords, handler: Callable[..., Any], in_place: bool
) -> Any:
    """As `product`; at once where nothing is to be seen to."""
    dtype = args[0].dtype
    bias = args[2]
    if dtype in LOW and not kwargs and args[1].dtype == dtype and (bias is None or bias.dtype == dtype):
        return handler(unit, FORMATS[dtype].format, None, *args)
    return product(unit, operator, args, kwargs, handler, in_place)


# -- computed wide, rounded once -------------------------------------------------------------------------------------

HIDDEN = {"native_batch_norm": ("running_mean", "running_var")}
"""Arguments that are written to although their schema does not say so."""


def plain_dtype(args: Arguments, singles: bool) -> torch.dtype | None:
    """The dtype of all tensors of numbers, if it is a low one; None, too, if there are lists of tensors or dtypes among the arguments.

    With `singles`, some may be float32.
    """
    found: torch.dtype | None = None
    for x in args:
        if isinstance(x, torch.Tensor):
            dtype = x.dtype
            if dtype in LOW:
                if found is not None and dtype != found:
                    return None
                found = dtype
            elif (dtype.is_floating_point and not (singles and dtype == torch.float32)) or dtype.is_complex:
                return None
        elif isinstance(x, torch.dtype) or (
            isinstance(x, (list, tuple)) and any(isinstance(y, torch.Tensor) for y in x)
        ):
            return None
    return found


def rounded(unit: Unit, run: Wide, result: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A wide result in a narrow dtype, with the flags of what came to be on the way."""
    found, raised = run.judged(result)
    return unit.cast(found, dtype, raised)


def straight(
    unit: Unit,
    operator: Any,
    args: Arguments,
    wide: torch.dtype,
    results: Sequence[int | None] | None,
    compute: Callable[..., Any],
) -> tuple[Any, ...] | None:
    """(what the operator returns), where it writes to nothing and its arguments are plain; None where there is more to see to."""
    if private.written(operator) or private.schema_name(operator) in HIDDEN or private.draws(operator):
        return None
    dtype = plain_dtype(args, results is not None)
    if dtype is None:
        return None
    copies = [x.to(wide) if isinstance(x, torch.Tensor) and x.dtype in LOW else x for x in args]
    found = alone(wide, compute, copies, NOTHING)
    if results is None:
        wanted = [dtype] * len(found) if isinstance(found, tuple) else [dtype]
    else:
        likes = [None if place is None else args[place] for place in results]
        wanted = [like.dtype if isinstance(like, torch.Tensor) else torch.float32 for like in likes]
    narrow = [
        x
        if target not in LOW or not isinstance(x, torch.Tensor) or not x.dtype.is_floating_point
        else unit.cast(x, target)
        if finite(x)
        else rounded(unit, Wide(operator, compute, args, NOTHING, wide, found), x, target)
        for x, target in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True)
    ]
    return (tuple(narrow) if isinstance(found, tuple) else narrow[0],)


def inside(
    unit: Unit,
    operator: Any,
    args: Arguments,
    kwargs: Keywords,
    wide: torch.dtype,
    results: Sequence[int | None] | None = None,
    compute: Callable[..., Any] | None = None,
) -> Any:
    """By PyTorch in a wide dtype; rounded once on the way out, for each result of a narrow dtype and each tensor written to.

    `results`: for each result the argument whose dtype it gets; None: it stays wide. Without it, all get the
    operands' common dtype. `compute`: what computes it, if not the operator itself.
    """
    if not touches(args, kwargs):
        return operator(*args, **kwargs)
    compute = operator if compute is None else compute
    done = None if kwargs else straight(unit, operator, args, wide, results, compute)
    if done is not None:
        return done[0]
    dtypes = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.dtype)]
    floating = [x for x in _tensors(args) if x.dtype.is_floating_point]
    dtype = dtypes[0] if dtypes else promoted(floating)
    for x in _tensors(args):
        if x.dtype in NARROW:
            emulated_format(x.dtype)
    if dtype not in NARROW and results is None:
        wide = torch.float64 if any(x.dtype == torch.float64 for x in floating) else torch.float32
    if results is None:
        for out in _tensors([kwargs.get("out")]):
            if out.dtype != dtype and out.dtype not in NARROW:
                raise UnsupportedArguments(f"out must have dtype {dtype}, got {out.dtype}")
    written = list(_tensors(targets(operator, args, kwargs).values()))
    names = private.argument_names(operator)
    for name in HIDDEN.get(private.schema_name(operator), ()):
        written.extend(_tensors([args[names.index(name)]]))
    run = Wide(operator, compute, args, kwargs, wide)
    found, widened = run.found, run.copies
    originals = {}
    for original in written:
        if id(original) not in widened:
            continue
        copy = widened[id(original)][1]
        originals[id(copy)] = original
        if copy.shape != original.shape:
            original.resize_(copy.shape)
        if results is None or not torch.equal(copy, original.to(wide)):
            unit.store(original, *(run.judged(copy) if original.dtype in NARROW else (copy,)))

    def narrowed(x: Any, place: int) -> Any:
        if not isinstance(x, torch.Tensor):
            return [narrowed(y, place) for y in x] if isinstance(x, list) else x
        if id(x) in originals:
            return originals[id(x)]
        target = dtype
        if results is not None:
            source = results[place]
            like = None if source is None else args[source]
            target = like.dtype if isinstance(like, torch.Tensor) else None
        if not x.dtype.is_floating_point or target is None or x.dtype == target:
            return x
        return rounded(unit, run, x, target) if target in NARROW else x.to(target)

    if isinstance(found, tuple):
        return tuple(narrowed(x, place) for place, x in enumerate(found))
    return narrowed(found, 0)


def between(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords) -> Any:
    """As it is, on float32 tensors that stand for narrow ones: with the flags of what is no number, and of what is too large."""
    found = operator(*args, **kwargs)
    for x in private.leaves(found):
        if isinstance(x, torch.Tensor) and x.dtype.is_floating_point and not finite(x):
            limited, raised = Wide(operator, operator, args, kwargs, x.dtype, found).judged(x)
            over = (x.isinf() & limited.isfinite()).numpy() * np.uint8(Flags.OVERFLOW | Flags.INEXACT)
            unit.raised(private.schema_name(operator), (), over if raised is None else over | raised)
    return found


def own(*args: Any, computation: Callable[..., torch.Tensor], in_place: bool, out: Any = None, **kwargs: Any) -> Any:
    """As an operator, of a function that returns a new tensor."""
    found = computation(*args, **kwargs)
    target = args[0] if in_place else out
    return found if target is None else target.resize_(found.shape).copy_(found)


def accumulating(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords) -> Any:
    """`index_put` and its like: moves, unless they add to what is there."""
    adds = _adds(operator, args, kwargs)
    return inside(unit, operator, args, kwargs, torch.float32) if adds else operator(*args, **kwargs)


def _adds(operator: Any, args: Arguments, kwargs: Keywords) -> bool:
    position = private.argument_names(operator).index("accumulate")
    return bool(kwargs.get("accumulate", args[position] if position < len(args) else False))


# -- lists of tensors ------------------------------------------------------------------------------------------------


def foreach(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords, name: str) -> Any:
    """One tensor after the other."""
    if not touches(args, kwargs) and not (unit.quantising is not None and name.removesuffix("_") in SCALED):
        return operator(*args, **kwargs)
    count = len(next(x for x in args if isinstance(x, (list, tuple))))
    each_scalar = args[-1] if isinstance(args[-1], torch.Tensor) and name.strip("_") in ("addcmul", "addcdiv") else None

    def element(x: Any, i: int) -> Any:
        if isinstance(x, (list, tuple)) and len(x) == count:
            return x[i]
        return x[i].item() if x is each_scalar and x is not None else x

    found = []
    for i in range(count):
        arguments = [element(x, i) for x in args]
        one = _overload(name if hasattr(torch.ops.aten, name) else name[:-1], arguments[-1])
        plan = planned(one)
        if unit.device is not None:
            plan = on_device(unit, one, arguments, {key: element(x, i) for key, x in kwargs.items()}, plan)
        assert plan is not None  # `_plan` looked
        result = plan(unit, one, arguments, {key: element(x, i) for key, x in kwargs.items()})
        if name.endswith("_") and result is not arguments[0]:
            unit.store(arguments[0], result)
        found.append(result)
    return None if name.endswith("_") else found


def _overload(name: str, last: Any) -> Any:
    """The operator for one tensor, whose last argument is a tensor or a number."""
    packet = getattr(torch.ops.aten, name)
    there = packet.overloads()
    wanted = ("Tensor", "Tensor_Tensor") if isinstance(last, torch.Tensor) else ("Scalar", "Tensor_Scalar")
    return getattr(packet, next((x for x in (*wanted, "default") if x in there), there[0]))


# -- the tables ------------------------------------------------------------------------------------------------------

PLANS: dict[Any, Plan | None] = {}


def planned(operator: Any) -> Plan | None:
    """What computes an operator; None if nothing here does."""
    try:
        return PLANS[operator]
    except KeyError:
        plan = PLANS[operator] = _plan(operator)
        return plan


def _plan(operator: Any) -> Plan | None:
    plan = _plain_plan(operator)
    name = private.schema_name(operator).removesuffix("_")
    return partial(chosen, plan=plan, name=name) if plan is not None and name in SCALED else plan


def chosen(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords, plan: Plan, name: str) -> Any:
    """As a recipe says, where the emulation has any."""
    if unit.quantising is None:
        return plan(unit, operator, args, kwargs)
    return scaled(unit, operator, args, kwargs, name, plan)


def quantises(operator: Any) -> bool:
    """Whether recipes are for an operator, or forbid it, whatever its tensors."""
    name = private.schema_name(operator).removesuffix("_")
    return name in SCALED or name in tables.OPAQUE


def opaque(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords) -> None:
    """Refuse an operator that no plan is for, and that multiplies unseen, in a module whose products a recipe quantises."""
    name, namespace = private.schema_name(operator).removesuffix("_"), private.namespace(operator)
    known = namespace in tables.NAMESPACES
    if known and name not in tables.OPAQUE:
        return
    if not any(x.is_floating_point() for x in (*_tensors(args), *_tensors(kwargs.values()))):
        return
    assert unit.quantising is not None
    module = unit.tracker.innermost()
    if unit.quantising.recipe(module) is not None:
        why = "would multiply" if known else "is not PyTorch's own, and may multiply,"
        raise UnsupportedArguments(
            f"{operator} {why} without the recipe of its module; {tables.ADVICE.get(name) or tables.UNCHOSEN}"
        )


def on_device(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords, plan: Plan | None) -> Plan | None:
    """What computes an operator on the emulation's device; refuses what was not read, unless it is to be assumed."""
    assert unit.device is not None
    name, namespace = private.schema_name(operator), private.namespace(operator)
    base = name.removesuffix("_")
    read = DEVICE_PRODUCTS.get(base) if _floating(args, kwargs) else None
    if read is None and touches(args, kwargs):
        read = read_plan(operator, args, kwargs, plan)
    if unit.device.assumes:
        return plan if read is None or plan is None else partial(assumed, read=read, otherwise=plan)
    if read is not None:
        return read
    multiplies = base in PRODUCTS or base in CONVOLUTIONS or base in tables.OPAQUE or namespace not in tables.NAMESPACES
    if multiplies and _floating(args, kwargs) and base != "sum":
        raise unread(unit, str(operator), tables.ADVICE.get(base) or "write it as mm or bmm")
    if not touches(args, kwargs):
        return plan
    if base == FOREACH + "add":
        return plan
    if base.startswith(FOREACH):
        raise unread(unit, str(operator), "make the optimiser with foreach=False")
    here = "cast its operands to float32 first, which is then PyTorch's on this machine"
    if base in tables.INSIDE_SINGLE or base in tables.NORMS or (plan is accumulating and _adds(operator, args, kwargs)):
        raise unread(unit, f"the order in which {operator} sums", here)
    if any(base in table for table in (STEPS, DEVICE_STEPS, tables.INSIDE_DOUBLE, OWN, tables.FACTORIES)):
        numbers = [repr(x) for x in (*args, *kwargs.values()) if isinstance(x, (int, float, str))]
        told = f" with {', '.join(numbers)}" if numbers and base in (*DEVICE_STEPS, *READ_INSIDE) else ""
        raise unread(unit, f"{operator}{told}", WAYS_OUT.get(base, here))
    return plan


def read_plan(operator: Any, args: Arguments, kwargs: Keywords, plan: Plan | None) -> Plan | None:
    """What computes an operator of low tensors as it was read; None where it was not."""
    name = private.schema_name(operator)
    base, in_place = name.removesuffix("_"), name.endswith("_") and bool(private.written(operator))
    if base in EXTREMES and "other" in private.argument_names(operator):
        base = EXTREMES[base]
    if base in DEVICE_SUMS:
        return device_sum
    if base in DEVICE_CHOICES:
        return partial(device_choice, name=base, in_place=in_place)
    read: Plan | None = None
    if base in DEVICE_STEPS:
        count, definition, was_read = DEVICE_STEPS[base]
        others = {key: x for key, x in kwargs.items() if key not in ("out", "grad_input")}
        if len(args) >= count and was_read(*args[count:], **others):
            read = partial(pointwise, count=count, definition=definition, in_place=in_place)
    elif base in READ_INSIDE and not kwargs and tuple(args[1:]) == READ_INSIDE[base][: len(args) - 1]:
        read = plan
    exceptions = EXCEPTIONS.get((base, getattr(args[0], "dtype", None)))
    return read if read is None or exceptions is None else partial(corrected, plan=read, exceptions=exceptions)


def assumed(unit: Unit, operator: Any, args: Arguments, kwargs: Keywords, read: Plan, otherwise: Plan) -> Any:
    """As it was read; where it was not, as without a device."""
    try:
        return read(unit, operator, args, kwargs)
    except Unread:
        return otherwise(unit, operator, args, kwargs)


def _floating(args: Arguments, kwargs: Keywords) -> bool:
    return any(x.is_floating_point() for x in (*_tensors(args), *_tensors(kwargs.values())))


def _plain_plan(operator: Any) -> Plan | None:
    name = private.schema_name(operator)
    in_place = name.endswith("_") and bool(private.written(operator))
    base = name[:-1] if in_place else name
    if base.startswith(FOREACH):
        single = base.removeprefix(FOREACH)
        single = FOREACH_NAMES.get(single, single) + "_" * in_place
        present = single if hasattr(torch.ops.aten, single) else single.removesuffix("_")
        known = hasattr(torch.ops.aten, present) and planned(_overload(present, None)) is not None
        return partial(foreach, name=single) if known else None
    if base in SCALED_PRODUCTS:
        return SCALED_PRODUCTS[base]
    if base in OWN and OWN[base].argument in private.argument_names(operator):
        return partial(
            inside, wide=torch.float64, compute=partial(own, computation=OWN[base].compute, in_place=in_place)
        )
    if base in EXTREMES and "other" in private.argument_names(operator):
        base = EXTREMES[base]
    if base in tables.PUTS:
        return accumulating
    if base == "scatter" and "reduce" in private.argument_names(operator):
        return partial(inside, wide=torch.float32)
    if base in tables.JOINS:
        return joined
    if name == "_to_copy":
        return cast
    if base == "copy":
        return copy_ if in_place else None
    if base in tables.FACTORIES:
        return factory
    if base in tables.FILLS:
        return partial(move, fill=tables.FILLS[base])
    if base in STEPS:
        count, definition = STEPS[base]
        return partial(pointwise, count=count, definition=definition, in_place=in_place)
    if base in PRODUCTS:
        return partial(product, handler=PRODUCTS[base], in_place=in_place)
    if base in CONVOLUTIONS:
        return partial(convolution, handler=CONVOLUTIONS[base], in_place=in_place)
    if base in tables.NORMS:
        stable = partial(inside, wide=torch.float32, results=tables.NORMS[base])
        return partial(normalised, stable=stable, name=base) if base in LAYOUTS else stable
    if base in tables.INSIDE_DOUBLE:
        return partial(inside, wide=torch.float64)
    if base in tables.INSIDE_SINGLE:
        return partial(inside, wide=torch.float32)
    if name == "fsdp.all_gather_copy_in":
        return uniform
    if name in tables.MOVES or (in_place and base in tables.MOVES):
        return move if private.written(operator) else native
    return native if private.is_view(operator) else None
