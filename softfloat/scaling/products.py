"""Operands quantised as a recipe says, and their products.

>>> import numpy as np
>>> from softfloat.scaling import RECIPES, matmul
>>> x, w = np.float32([[1.0, 2.0, -3.0]]), np.float32([[0.5], [0.25], [1.0]])
>>> found, flags = matmul(x, w, RECIPES["mxfp8"].forward)
>>> found.view(np.float32), int(flags[0, 0])
(array([[-2.]], dtype=float32), 0)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.accumulators import Accumulator
from softfloat.bits import BlockCodes
from softfloat.bits.blocks.codes import exact_float
from softfloat.bits.blocks.counts import void_of
from softfloat.bits.blocks.elements import every_flag
from softfloat.bits.blocks.numbers import float32_numbers
from softfloat.bits.blocks.quantization import COMPUTED, Plan
from softfloat.bits.blocks.scales import every_scale, product_of_scales
from softfloat.blocks import check_rule
from softfloat.checks import check_choice, check_count, check_integer, check_kind, check_switch
from softfloat.engine import Codes, Options
from softfloat.engine.programs import check_inputs
from softfloat.engine.quantization import LONGEST_SCALE
from softfloat.environments import Environment, InfiniteInput, Overflow, Rounding, Settings
from softfloat.formats import Format, check_format, float32
from softfloat.scaling.hadamard import transformed
from softfloat.scaling.recipes import AXIS, SCALE_ORDERS, BlockScaling, CurrentScaling, DelayedScaling, Operand, Product
from softfloat.scaling.tensors import (
    AmaxHistory,
    ScaledCodes,
    currently_scaled,
    delayed,
    magnitudes,
    of_bits,
    tile_format,
)
from softfloat.status import Flags

__all__ = ["Quantized", "matmul", "multiplied", "quantized", "swapped"]

Numbers = np.ndarray[Any, np.dtype[np.float32]]
AXES = -1, -2
"""Those that a product of matrices sums over."""
SWAPPED = {"first_fused": "second_fused", "second_fused": "first_fused", "first": "second", "second": "first"}
"""What an order is called where the operands change places."""


@dataclass(frozen=True, eq=False)
class Quantized:
    """An operand after quantisation.

    Attributes
    ----------
    codes : BlockCodes, ScaledCodes, or array of float32
        Numbers where it was left as it is.
    amax : float
        The largest magnitude that scales were made of.
    scales : tuple of float
        The smallest and the largest that elements are multiplied by to read them, the tensor's in them; (1, 1) without.
    elements, saturated, underflowed : int
        How many there are, and of them those that raised OVERFLOW and UNDERFLOW; None where it was not counted.
    flags : int
        All that was raised.
    """

    codes: BlockCodes | ScaledCodes | Numbers
    amax: float
    scales: tuple[float, float]
    elements: int
    saturated: int | None
    underflowed: int | None
    flags: int

    @property
    def values(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """What the codes stand for, exactly."""
        if isinstance(self.codes, BlockCodes):
            return bits.dequantize(self.codes)
        if isinstance(self.codes, ScaledCodes):
            return self.codes.values
        return np.asarray(engine.decoded(self.codes.view(np.uint32), float32))


def quantized(
    x: Any,
    operand: Operand,
    axis: int,
    *,
    history: AmaxHistory | None = None,
    count: bool = False,
    input_format: Format | str = "float32",
    environment: Environment | Settings | None = None,
    seed: int | None = None,
    stream: int = 0,
) -> Quantized:
    """Numbers quantised as one operand of a product.

    Parameters
    ----------
    x : array_like
        float32 numbers, in any type that `softfloat.bits.encode` takes.
    operand : Operand
    axis : int
        The one that the product sums over.
    history : AmaxHistory, optional
        What a `DelayedScaling` remembers; its scale is used and the amax recorded. `update` is the caller's.
    count : bool
        Count saturated and underflowed elements.
    input_format : Format or str
        What the numbers came in, for `encode_scales`.
    environment : Environment, optional
        Whose seed, replica and generator random numbers have. Roundings are the operand's.
    seed : int, optional
        In place of an environment.
    stream : int
        Addresses random numbers, element by element of `x`, transformed if it is.

    Raises
    ------
    ValueError, TypeError
        Naming the argument: numbers that float32 does not hold, a missing history or seed.

    >>> from softfloat.scaling import CurrentScaling
    >>> quantized([0.5, 3.0], Operand(scaling=CurrentScaling(format="float8_e4m3fn")), 0).codes.values
    array([0.48214286, 3.00000003])
    """
    check_kind("operand", operand, Operand)
    check_kind("history", history, AmaxHistory, optional=True)
    check_switch("count", count)
    source = check_format(input_format, "input_format")
    numbers, _ = float32_numbers(x)
    if not -numbers.ndim <= check_integer("axis", axis) < numbers.ndim:
        raise ValueError(f"axis must be one of an array of {numbers.ndim} axes, got {axis}")
    seen = 0
    if operand.hadamard is not None:
        numbers, seen = transformed(numbers, operand.hadamard, axis)
    how = operand.scaling
    turned = turns(operand) and lies_across(numbers, axis)
    numbers = numbers if turned else np.ascontiguousarray(numbers)
    if how is None:
        return Quantized(numbers, float(magnitudes(numbers, None)), (1.0, 1.0), numbers.size, None, None, seen)
    settings = _settings(operand, environment, seed)
    options: Options = {"environment": settings, "stream": stream, "flags": "each" if count else "any"}
    if isinstance(how, DelayedScaling):
        if history is None:
            raise ValueError("history must be an AmaxHistory for an operand with DelayedScaling, got None")
        if history.scaling != how:
            raise ValueError(f"history must be that of {how}, got {history!r}")
        codes, flags, amax = delayed(numbers, history, options)
    else:
        codes, flags, amax = (_turned if turned else _upright)(numbers, how, axis, source, options)
    return _told(codes, flags, amax, count, seen)


def _told(codes: BlockCodes | ScaledCodes, flags: Any, amax: Any, count: bool = False, seen: int = 0) -> Quantized:
    """An operand's codes, and what is told of them."""
    scales = _block_extremes(codes) if isinstance(codes, BlockCodes) else _extremes(codes.scale)
    raised = flags if isinstance(flags, int) else every_flag(flags)
    over, under = (int(np.count_nonzero(flags & int(x))) if count else None for x in (Flags.OVERFLOW, Flags.UNDERFLOW))
    largest = float(amax) if amax.ndim == 0 else float(amax.max(initial=0.0))
    return Quantized(codes, largest, scales, codes.elements.size, over, under, raised | seen)


def drawn(
    numbers: Numbers, operand: Operand, lay_out: Callable[[Codes], Codes], *, environment: Environment | Settings | None = None,
    seed: int | None = None, stream: int = 0, **_: Any,
) -> Quantized | None:  # fmt: skip
    """Numbers in blocks along the last axis, scaled, then laid out, and then rounded at random; None where that does not do. The codes' shape is
    that of what is laid out."""
    assert isinstance(operand.scaling, BlockScaling)
    options: Options = {"environment": _settings(operand, environment, seed), "stream": stream, "flags": "any"}
    found = _in_blocks(numbers, operand.scaling, -1, options, lay_out)
    return None if found is None else _told(*found)


@lru_cache(maxsize=256)
def _made(rounding: Rounding, sr_bits: int | None, base: Settings) -> Settings:
    return base.replace(
        rounding=rounding,
        sr_bits=sr_bits,
        sr_method="truncate",
        projection="ieee",
        overflow=Overflow.SATURATE,
        infinite_input=InfiniteInput.DEFAULT,
        daz=False,
        ftz=False,
        nan="canonical",
    )


def _settings(operand: Operand, environment: Environment | Settings | None, seed: int | None) -> Settings:
    """How elements are rounded: the operand's own way, with the environment's random numbers."""
    check_kind("environment", environment, (Environment, Settings), optional=True)
    if environment is not None and seed is not None:
        raise TypeError("environment comes with seed; accepted: one or the other")
    if environment is None:
        environment = Environment(seed=seed)
    base = environment.settings if isinstance(environment, Environment) else environment
    if operand.rounding.draws and base.seed is None:
        raise ValueError("seed must be an integer from 0 to 2^64 - 1 for operands that are rounded at random, got None")
    return _made(operand.rounding, operand.sr_bits, base)


@lru_cache(maxsize=1024)
def _plan(how: BlockScaling, shape: tuple[int, ...], axis: int, settings: Settings, flags: str) -> Plan:
    """What `softfloat.bits.quantize` does with numbers of a shape: all of their calls settled but amax and stream."""
    made = Plan(how.format, check_rule(how.rule, how.format), {"environment": settings, "flags": flags})
    made.treat(how.nans, None, "max", None, how.subnormal_blocks, None)
    made.scale_tensor(COMPUTED, None, how.four_over_six)
    block: Any = max(shape[axis], 1) if how.block == AXIS else how.block
    made.lie(shape, axis, block)
    return made


def _in_blocks(
    numbers: Numbers, how: BlockScaling, axis: int, options: Options, lay_out: Callable[[Codes], Codes] | None = None
) -> Any:
    """(codes, flags, amax); of numbers that are to be laid out once they are scaled, None where that does not do."""
    amax = None if how.format.tensor_scale is None else magnitudes(numbers, None)
    found = float(amax) if amax is not None and np.isfinite(amax) else None
    plan = _plan(how, numbers.shape, axis, options["environment"], options["flags"])
    plan = plan.again(options["stream"], found, lay_out)
    made = plan.run(numbers, lambda: np.asarray(bits.issnan(numbers.view(np.uint32), float32)), False)
    if made is None:
        return None
    codes, flags = made
    if amax is None:
        amax = magnitudes(numbers, None) if plan.largest is None else of_bits(plan.largest)
    return codes, flags, amax


def _upright(numbers: Numbers, how: BlockScaling | CurrentScaling, axis: int, source: Format, options: Options) -> Any:
    """(codes, flags, amax), of numbers as they lie."""
    if isinstance(how, BlockScaling):
        return _in_blocks(numbers, how, axis, options)
    return currently_scaled(numbers, how, axis, source, options)


def lies_across(numbers: Numbers, axis: int) -> bool:
    """Whether the axis is the last but one and numbers follow each other along it in memory."""
    return numbers.ndim > 1 and axis in (-2, numbers.ndim - 2) and numbers.swapaxes(-1, -2).flags.c_contiguous


def turns(operand: Operand) -> bool:
    """Whether an operand's blocks are found as those of the transposed array are, which random numbers are not."""
    how = operand.scaling
    tiles = isinstance(how, CurrentScaling) and not isinstance(how.per, str)
    return (tiles or isinstance(how, BlockScaling)) and not operand.rounding.draws


def _turned(numbers: Numbers, how: BlockScaling | CurrentScaling, axis: int, source: Format, options: Options) -> Any:
    """`_upright` along the last axis but one, of numbers that follow each other along it: the same of the transposed array."""
    name = "block" if isinstance(how, BlockScaling) else "per"
    size = getattr(how, name)
    other: Any = how
    if isinstance(size, tuple):
        other = replace(other, **{name: size[::-1]})
    codes, flags, amax = _upright(numbers.swapaxes(-1, -2), other, -1, source, options)
    elements, scales = codes.elements.swapaxes(-1, -2), codes.scales.swapaxes(-1, -2)
    shape = *codes.block_shape[:-2], *codes.block_shape[:-3:-1]
    fmt = codes.format if isinstance(how, BlockScaling) else tile_format(how.format, how.per)
    made = BlockCodes.made(elements, scales, fmt, numbers.ndim - 2, shape, codes.tensor_scale)
    return made, flags if isinstance(flags, int) else np.swapaxes(flags, -1, -2), amax


def _extremes(scale: Any) -> tuple[float, float]:
    return (float(scale.min()), float(scale.max())) if scale.size else (1.0, 1.0)


def _block_extremes(codes: BlockCodes) -> tuple[float, float]:
    """The smallest and the largest scale, NaNs aside."""
    fmt, known = codes.format.scale, codes.scales
    last = np.maximum.reduce(known, axis=None, initial=0)
    if last > fmt.max_code:  # signs, infinities or NaNs; the others are ordered as the numbers are
        known = engine.magnitudes(known, fmt)[~void_of(codes)]
        last = np.maximum.reduce(known, axis=None, initial=0)
    if not known.size:
        low = high = 1.0
    else:
        ends = np.minimum.reduce(known, axis=None), last
        if fmt == float32:
            low, high = (exact_float(np.uint32(code).view(np.float32)) for code in ends)
        elif fmt.bits <= LONGEST_SCALE:
            low, high = map(every_scale(fmt).item, ends)
        else:
            low, high = engine.decoded(np.array(ends), fmt).tolist()
    whole = 1.0 if codes.tensor_scale is None else float(codes.tensor_scale)
    return low * whole, high * whole


# -- products --------------------------------------------------------------------------------------------------------


def multiplied(
    a: Quantized,
    b: Quantized,
    accumulator: Accumulator,
    c: Any = None,
    *,
    scale_order: str = "scales_first",
    **options: Any,
) -> tuple[Any, Any]:
    """The matrix product of quantised operands, in float32.

    Parameters
    ----------
    a, b : Quantized
        (..., m, k) and (..., k, n).
    accumulator : Accumulator
    c : array_like of int, optional
        float32 codes. Beside scales of tensors, rows or columns they are added at the end.
    scale_order : str
        As of `Product`, of a and b.
    **options
        As everywhere in `softfloat.bits`; there is no `out`.

    Returns
    -------
    codes : array of uint32
        Of float32.
    flags : array of uint8, or int

    Raises
    ------
    ValueError, TypeError
        Naming the argument; operands that are quantised in ways that do not go together.

    Notes
    -----
    Blocks by blocks is `softfloat.bits.matmul_blocks`; tensors by tensors a product of codes whose sum is multiplied by the
    scales. Where one operand has no scales, or the two have different kinds, values are multiplied as float32
    numbers, which must hold them.
    """
    check_kind("a", a, Quantized)
    check_kind("b", b, Quantized)
    check_kind("accumulator", accumulator, Accumulator)
    check_choice("scale_order", scale_order, SCALE_ORDERS)
    for name in ("out_format", "count"):
        if name in options:
            raise TypeError(
                f"{name} is for products of codes, got {options[name]!r}; accepted: by bits.matmul_blocks and bits.matmul"
            )
    left, right = a.codes, b.codes
    if isinstance(left, BlockCodes) and isinstance(right, BlockCodes):
        found: tuple[Any, Any] = bits.matmul_blocks(left, right, accumulator, c, out_format=float32, **options)
        return found
    if isinstance(left, ScaledCodes) and isinstance(right, ScaledCodes):
        return _scaled_product(left, right, accumulator, c, scale_order, options)
    x, y = _numbers(a, "a"), _numbers(b, "b")
    free = accumulator.replace(inputs=()) if accumulator.inputs else accumulator
    found = bits.matmul(x, y, float32, free, c, out_format=float32, **options)
    return found


def _numbers(operand: Quantized, name: str) -> Codes:
    """Values as float32 codes."""
    if isinstance(operand.codes, np.ndarray):
        return operand.codes.view(np.uint32)
    values = operand.values
    codes = np.asarray(bits.encode(values, float32, flags="any")[0])
    if not np.array_equal(engine.decoded(codes, float32), values, equal_nan=True):
        raise ValueError(
            f"{name} has values that float32 does not hold, beside an operand without scales of that kind; accepted: recipes that "
            "quantise both operands in the same way, or scales that are powers of two"
        )
    return codes


def _scaled_product(
    a: ScaledCodes, b: ScaledCodes, accumulator: Accumulator, c: Any, order: str, options: dict[str, Any]
) -> tuple[Any, Any]:
    """The sum, and then scales and c, each step in float32."""
    for name, operand in (("a", a), ("b", b)):
        check_inputs(accumulator, operand.format, f"{name}'s elements")
    options = engine.as_environment(
        options
    )  # the product's stages may have settings of their own, and the rest has not
    whole = engine.Call(options, float32).whole  # type: ignore[arg-type]
    if whole.rounding.draws:
        raise ValueError("rounding must be deterministic for operands with scales: their product has no random address")
    settings = {k: v for k, v in options.items() if k != "stream"}
    total, raised = bits.matmul(
        a.elements, b.elements, (a.format, b.format), accumulator, out_format=float32, **options
    )
    x, y = (np.asarray(s.scale).view(np.uint32) for s in (a, b))
    if order == "scales_first":
        shared, seen = product_of_scales(x, y, whole)
        total, flags = bits.mul(shared, total, float32, **settings)
        raised = raised | flags | np.uint8(seen)
    else:
        for scale in (x, y) if order == "first" else (y, x):
            total, flags = bits.mul(scale, total, float32, **settings)
            raised = raised | flags
    if c is not None:
        total, flags = bits.add(total, c, float32, **settings)
        raised = raised | flags
    return total, raised if options.get("flags", "each") == "each" else int(raised)


def swapped(product: Product) -> Product:
    """The product with operands and their orders exchanged, as of transposed matrices."""
    check_kind("product", product, Product)
    how = product.accumulator
    if how.reduction and how.reduction[0].scaling in SWAPPED:
        level = replace(how.reduction[0], scaling=SWAPPED[how.reduction[0].scaling])
        how = how.replace(reduction=(level, *how.reduction[1:]))
    order = SWAPPED.get(product.scale_order, product.scale_order)
    return Product(first=product.second, second=product.first, accumulator=how, scale_order=order)


def matmul(
    first: Any,
    second: Any,
    product: Product,
    c: Any = None,
    *,
    histories: tuple[AmaxHistory | None, AmaxHistory | None] = (None, None),
    seed: int | None = None,
    stream: int = 0,
    flags: str = "each",
    **options: Any,
) -> tuple[Any, Any]:
    """Quantise two operands and multiply them: (..., m, k) by (..., k, n).

    Parameters
    ----------
    first, second : array_like
        float32 numbers.
    product : Product
        One of a recipe's.
    c : array_like of int, optional
        float32 codes, added as `multiplied` says.
    histories : pair of AmaxHistory
        Of delayed scaling; they are not updated here.
    seed, stream : int
        Of random numbers: operands have the streams 2 * stream and 2 * stream + 1.
    flags, **options
        Of the product, as everywhere in `softfloat.bits`.

    Returns
    -------
    codes : array of uint32
        Of float32.
    flags : array of uint8, or int
        Those of the product. Those of the operands are in what `quantized` returns.
    """
    check_kind("product", product, Product)
    check_count("stream", stream, 0)
    if not isinstance(histories, (tuple, list)) or len(histories) != len(AXES):
        raise TypeError(f"histories must be a pair of AmaxHistory or None, got {histories!r}")
    a, b = [
        quantized(x, operand, axis, history=history, seed=seed, stream=2 * stream + i)
        for i, (x, operand, axis, history) in enumerate(
            zip((first, second), (product.first, product.second), AXES, histories, strict=True)
        )
    ]
    return multiplied(a, b, product.accumulator, c, scale_order=product.scale_order, flags=flags, **options)
