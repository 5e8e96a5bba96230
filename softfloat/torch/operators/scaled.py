"""Products and convolutions of modules with a recipe: operands quantised, multiplied, and rounded to the tensors' format.

Which of a layer's products an operator is follows from autograd: in a forward pass it is `forward`; in the backward pass the
node being run says of which forward product the gradient is, and its operands' places in memory which of them it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from softfloat import bits
from softfloat.accumulators import Accumulator
from softfloat.bits.sums.windows import Geometry
from softfloat.formats import Format, float32
from softfloat.scaling import (
    Matrices,
    Operand,
    Product,
    Recipe,
    Windowed,
    convolution_matrices,
    input_gradient_matrices,
    multiplied,
    swapped,
    weight_gradient_matrices,
)
from softfloat.scaling.tensors import widened
from softfloat.torch import private
from softfloat.torch.operators.bridge import FORMATS, LOW, Codes, UnsupportedArguments, codes_of
from softfloat.torch.operators.products import grouped, grouped_arguments, spatial, summed, times_alpha, times_beta
from softfloat.torch.operators.recipes import Roles, place_of
from softfloat.torch.operators.tables import UNCHOSEN
from softfloat.torch.operators.unit import Unit

__all__ = ["SCALED", "scaled"]

Otherwise = Callable[[Unit, Any, Any, Any], Any]
ROLES = {
    "forward": ("input", "weight"),
    "input_gradient": ("gradient", "weight"),
    "weight_gradient": ("gradient", "input"),
}
"""What operands of products are called in reports."""
MATRICES = {"mm": 0, "bmm": 0, "mv": 0, "addmm": 1, "baddbmm": 1, "addmv": 1, "addbmm": 1}
"""Operators that are matrix products, and which argument is the first of the two."""
CONVOLUTIONS = {"convolution": 9, "convolution_overrideable": 9, "_convolution": 9}
BACKWARD = ("convolution_backward", "convolution_backward_overrideable")
GROUPED = "_grouped_mm"
SCALED = {*MATRICES, *CONVOLUTIONS, *BACKWARD, GROUPED}
"""Operators that recipes are for."""
NODES = {"Mm", "Bmm", "Mv", "Addmm", "Baddbmm", "Addmv", "Addbmm", "GroupedMm"}
"""What autograd calls their nodes, without Backward0."""


class Task(NamedTuple):
    """One product of a layer: what a recipe says of it, and where it is."""

    unit: Unit
    recipe: Recipe
    name: str
    product: Product
    module: str
    exchanged: bool
    format: Format


class Request(NamedTuple):
    """An operator as PyTorch calls it, in a module that has a recipe."""

    unit: Unit
    recipe: Recipe
    module: str
    operator: Any
    args: Sequence[Any]
    kwargs: dict[str, Any]
    otherwise: Otherwise

    def plain(self, args: Sequence[Any] | None = None) -> Any:
        """What it gives without the recipe, of other arguments, if there are any."""
        return self.otherwise(self.unit, self.operator, self.args if args is None else args, self.kwargs)

    def task(self, name: str, fmt: Format, exchanged: bool = False) -> Task:
        """One of its products."""
        return Task(self.unit, self.recipe, name, getattr(self.recipe, name), self.module, exchanged, fmt)


def scaled(
    unit: Unit, operator: Any, args: Sequence[Any], kwargs: dict[str, Any], name: str, otherwise: Otherwise
) -> Any:
    """An operator that recipes are for, in a module that has one."""
    quantising = unit.quantising
    assert quantising is not None
    if private.in_backward():
        quantising.settle(unit.tracker.names)
    module = unit.tracker.innermost()
    recipe = quantising.recipe(module)
    if recipe is None:
        return otherwise(unit, operator, args, kwargs)
    asked = Request(unit, recipe, module, operator, args, kwargs, otherwise)
    tensors = [x for x in (args[:2] if name == GROUPED else args) if isinstance(x, torch.Tensor)]
    dtypes = {x.dtype for x in tensors}
    for x in tensors:
        if x.is_complex() or x.layout != torch.strided:
            what = "real, got complex numbers" if x.is_complex() else f"dense, got one laid out as {x.layout}"
            raise UnsupportedArguments(f"tensors of products that recipes quantise must be {what}; {UNCHOSEN}")
    if len(dtypes) > 1 or not all(x.is_floating_point() for x in tensors):
        return asked.plain()  # which PyTorch refuses, in its own words, or computes in integers
    dtype = dtypes.pop()
    if dtype not in LOW and dtype != torch.float32:
        raise UnsupportedArguments(
            f"recipes quantise tensors of torch.float32, torch.float16 and torch.bfloat16, got {dtype}; cast first, or name no recipe for "
            f"module {module!r}"
        )
    if any(isinstance(x, torch.dtype) for x in (*args, *kwargs.values())):
        raise UnsupportedArguments("argument out_dtype is not emulated; cast the result")
    check_tensors(unit, recipe, FORMATS[dtype].format)
    if name == GROUPED:
        return _grouped(asked)
    if name in BACKWARD:
        return _convolution_backward(asked)
    if name in CONVOLUTIONS:
        return _convolution(asked, args[: CONVOLUTIONS[name]])
    return _matrices(asked, name)


def check_tensors(unit: Unit, recipe: Recipe, fmt: Format) -> None:
    """Refuse tensors, or an environment, that a recipe is not for."""
    if recipe.tensors is not None and recipe.tensors != fmt:
        raise UnsupportedArguments(f"{recipe!r} is for {recipe.tensors} tensors, got {fmt}; cast the model")
    wanted = recipe.tensor_rounding
    if wanted is not None and unit.environment.for_format(fmt.name).rounding is not wanted:
        raise UnsupportedArguments(
            f"{recipe!r} rounds {wanted.name.lower()} between products; accepted: emulate(Environment(rounding={wanted.name.lower()!r}))"
        )


# -- matrix products -------------------------------------------------------------------------------------------------


def _matrices(asked: Request, name: str) -> Any:
    first, unit, args = MATRICES[name], asked.unit, asked.args
    a, b = args[first], args[first + 1]
    task = _product(asked, a, b)
    if task is None:
        return asked.plain()
    rest, fmt = dict(asked.kwargs), task.format
    in_place = private.schema_name(asked.operator).endswith("_")
    target = rest.pop("out", args[0] if in_place else None)
    beta, alpha = rest.pop("beta", 1), rest.pop("alpha", 1)
    if rest:
        raise UnsupportedArguments(f"argument {', '.join(rest)} is not emulated")
    x, y = numbers_of(a), numbers_of(b)
    if name == "addbmm":
        x, y = x.transpose(1, 0, 2).reshape(x.shape[1], -1), y.reshape(-1, y.shape[2])
    vector = y.ndim == 1
    y = y[:, None] if vector else y
    addend = None
    if first and beta != 0:
        c = codes_of(args[0])
        addend = in_single(c, fmt) if beta == 1 else times_beta(unit, c, fmt, beta, float32)
        addend = addend[..., None] if vector else addend
    result = multiply(task, x, y, addend, alpha=alpha)
    return unit.deliver(result[..., 0] if vector else result, a.dtype, target)


def _grouped(asked: Request) -> Any:
    """Every group is a product of its own, with scales of its own."""
    named = dict(zip(private.argument_names(asked.operator), asked.args, strict=False))
    a, b, ends = grouped_arguments({**named, **asked.kwargs})
    task = _product(asked, a, b)
    if task is None:
        return asked.plain()
    x, y = numbers_of(a), numbers_of(b)
    shape, groups = grouped(a, b, ends)
    result = np.zeros(shape, task.format.dtype)
    for group in groups:
        if result[group.result].size:
            result[group.result] = multiply(task, x[group.first], y[group.second])
    return asked.unit.deliver(result, a.dtype, None)


def _product(asked: Request, a: torch.Tensor, b: torch.Tensor) -> Task | None:
    """Which of a layer's products this is; None where the recipe does not quantise it."""
    which, exchanged = _which(asked.unit, a, b)
    if which == "forward":
        _remember(asked.unit, a, b)
    task = asked.task(which, FORMATS[a.dtype].format, exchanged)
    return task if task.product.quantised else None


def numbers_of(tensor: torch.Tensor) -> Any:
    """A tensor's elements as float32, which holds them."""
    codes = codes_of(tensor)
    return codes.view(np.float32) if tensor.dtype == torch.float32 else widened(codes, FORMATS[tensor.dtype].format)


def in_single(codes: Codes, fmt: Format) -> Codes:
    """Codes of the tensors' format as codes of float32."""
    return widened(codes, fmt).view(np.uint32)


def _remember(unit: Unit, a: torch.Tensor, b: torch.Tensor) -> None:
    assert unit.quantising is not None
    number = unit.mark("product")
    sizes = a.shape[-2], a.shape[-1], b.shape[-1] if b.ndim > 1 else 1
    unit.quantising.remember(private.forward_number(), number, Roles(place_of(a), place_of(b), sizes))


def _which(unit: Unit, a: torch.Tensor, b: torch.Tensor) -> tuple[str, bool]:
    """The layer's product that this one is, and whether its operands come in the other order than a recipe names them."""
    assert unit.quantising is not None
    node = private.backward_name()
    if not node or unit.replays or node.startswith("CheckpointFunction"):
        return "forward", False
    known = unit.quantising.roles(private.backward_number()) if node.partition("Backward")[0] in NODES else None
    found = None if known is None else known.of_gradient(a, b)
    if found is not None:
        return found
    raise UnsupportedArguments(
        f"a product in the backward pass, of {node}, is none of the gradients of a product that the recipe quantised; gradients of gradients "
        f"and of products in torch.autograd.Functions are not: {UNCHOSEN}"
    )


def multiply(task: Task, x: Any, y: Any, addend: Codes | None = None, use: str = "matmul", alpha: Any = 1) -> Codes:
    """Two matrices quantised and multiplied; codes of the tensors' format. `addend` is float32."""
    unit, fmt = task.unit, task.format
    how = swapped(task.product) if task.exchanged else task.product
    names = ROLES[task.name][::-1] if task.exchanged else ROLES[task.name]
    sizes = (*x.shape[-2:], *y.shape[-1:])
    a, b = (
        unit.quantised(
            v if isinstance(v, Windowed) else np.ascontiguousarray(v),
            operand,
            axis,
            task.module,
            task.name,
            role,
            fmt,
            sizes,
        )
        for v, operand, axis, role in ((x, how.first, -1, names[0]), (y, how.second, -2, names[1]))
    )
    accumulator = unit.chosen_accumulator(use, element_of(how.first, fmt)) or how.accumulator
    if alpha != 1:
        return times_alpha(
            unit, run_product(unit, a, b, accumulator, None, how.scale_order), float32, alpha, addend, float32, fmt
        )
    c = None if addend is None else np.broadcast_to(addend, (*x.shape[:-1], y.shape[-1]))
    sums = run_product(unit, a, b, accumulator, c, how.scale_order)
    return sums if fmt == float32 else unit.run(bits.convert, sums, float32, fmt)


def run_product(unit: Unit, a: Any, b: Any, accumulator: Accumulator, c: Any, order: str) -> Codes:
    """The product of quantised operands, in float32, as an operation of the emulation."""
    try:
        return unit.run(multiplied, a, b, accumulator, c, scale_order=order)
    except ValueError as reason:
        drawn = unit.environment.settings.for_format("float32").rounding.draws
        advice = "; accepted: Environment(overrides={'float32': Environment()})" if drawn else ""
        raise UnsupportedArguments(f"{reason}{advice}") from None


def element_of(operand: Operand, fmt: Format) -> Format:
    """What an accumulator is chosen for: the format of elements; the tensors' where they are left as they are, or fixed-point."""
    found = operand.format
    found = getattr(found, "element", found)
    return found if isinstance(found, Format) else fmt


# -- convolutions ----------------------------------------------------------------------------------------------------


class ScaledRunner(NamedTuple):
    """What `products.Spatial` runs its convolutions by: numbers in windows, quantised and multiplied."""

    task: Task

    def __call__(
        self, function: Callable[..., Any], a: Any, b: Any, c: Codes | None, options: dict[str, Any], *shape: Any
    ) -> Codes:
        """One function of `softfloat.bits`, by its matrices."""
        made = _matrices_of(function, a, b, Geometry(**options), *shape)
        addend = None
        if c is not None:
            addend = in_single(c, self.task.format)
            addend = addend.reshape(made.first.shape[0], 1, -1) if made.first.ndim == 3 else addend[None]
        found: Codes = made.finish(multiply(self.task, made.first, made.second, addend, "convolution"))
        return found


def _matrices_of(function: Callable[..., Any], a: Any, b: Any, geometry: Geometry, *shape: Any) -> Matrices:
    if function is bits.conv2d:
        return convolution_matrices(a, b, geometry, apart=True)
    if function is bits.conv2d_input_gradient:
        return input_gradient_matrices(a, b, shape[0], geometry, apart=True)
    return weight_gradient_matrices(a, b, shape[0], geometry, apart=True)


def _convolution(asked: Request, args: Sequence[Any]) -> Any:
    """A transposed one is the input gradient of a convolution whose outputs are the inputs."""
    x, weight, bias, stride, padding, dilation, transposed, output_padding, groups = args
    if not asked.recipe.forward.quantised:
        return asked.plain()
    convolution = spatial(weight, groups, stride, padding, dilation, output_padding)
    run: Any = ScaledRunner(asked.task("forward", FORMATS[x.dtype].format))
    c = None if bias is None else codes_of(bias)
    data, kernel = numbers_of(x), numbers_of(weight)
    if transposed:
        shape = convolution.transposed_shape(x, weight)
        result = convolution.input_gradient(run, convolution.adapted(data, shape, kernel.shape), kernel, shape, c)
    else:
        result = convolution.outputs(run, data, kernel, c)
    return asked.unit.deliver(result, x.dtype, asked.kwargs.get("out"))


def _convolution_backward(asked: Request) -> Any:
    unit, recipe, args = asked.unit, asked.recipe, asked.args
    gradient, x, weight, _, stride, padding, dilation, transposed, output_padding, groups, mask = args
    quantised = [recipe.input_gradient.quantised, recipe.weight_gradient.quantised]
    fmt = FORMATS[x.dtype].format
    results: list[Any] = [None, None, None]
    left = [want and not done for want, done in zip(mask, [*quantised, False], strict=True)]
    if any(left[:2]):
        results = list(asked.plain([*args[:-1], left]))
        mask = [want and not done for want, done in zip(mask, left, strict=True)]
    convolution = spatial(weight, groups, stride, padding, dilation, output_padding)
    g, data, kernel = numbers_of(gradient), numbers_of(x), numbers_of(weight)
    if transposed:
        data = convolution.adapted(data, g.shape, kernel.shape)
    if mask[0]:
        run: Any = ScaledRunner(asked.task("input_gradient", fmt))
        found = (
            convolution.outputs(run, g, kernel)[tuple(slice(size) for size in x.shape)]
            if transposed
            else convolution.input_gradient(run, g, kernel, x.shape)
        )
        results[0] = unit.deliver(found, x.dtype, None)
    if mask[1]:
        run = ScaledRunner(asked.task("weight_gradient", fmt, bool(transposed)))
        inputs, outputs = (g, data) if transposed else (data, g)
        results[1] = unit.deliver(convolution.weight_gradient(run, inputs, outputs, kernel.shape), x.dtype, None)
    if mask[2]:
        axes = [axis for axis in range(gradient.ndim) if axis != 1]
        if fmt == float32:
            results[2] = gradient.sum(axes)
        else:
            results[2] = unit.deliver(summed(unit, fmt, codes_of(gradient), axes, "convolution"), x.dtype, None)
    return tuple(results)
