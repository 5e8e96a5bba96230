"""Numbers to codes of blocks and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Unpack, overload

import numpy as np

from softfloat import engine
from softfloat.bits.blocks.codes import BlockCodes, check_float32, check_tensor_scale, exact_float, scale_in_place
from softfloat.bits.blocks.counts import BlockCounts, counts_of
from softfloat.bits.blocks.elements import codes_of_signs, element_values, every_flag, fixed_codes, negative_zero
from softfloat.bits.blocks.numbers import (
    INFINITE,
    SMALLEST_NORMAL,
    Layout,
    Signals,
    exactly,
    float32_numbers,
    magnitude_bits,
    maxima_of,
    signed_zeros,
)
from softfloat.bits.blocks.scales import (
    FLOAT32,
    NO_TENSOR_SCALE,
    OVER_SIX_BOUND,
    Masks,
    Maxima,
    Reals,
    Scales,
    TensorScale,
    Treatment,
    block_scales,
    compiled_scales,
    every_scale,
    given_scales,
    given_tensor_scale,
    other_scales,
    single,
    te_tensor_scale,
    torchao_tensor_scale,
    values_of,
)
from softfloat.bits.numbers import convert, encode
from softfloat.blocks import BlockFormat, Fixed, ScaleRule, check_rule
from softfloat.blocks.formats import block_text, check_block_format
from softfloat.blocks.rules import TWO_LEVELS
from softfloat.checks import check_choice
from softfloat.engine import Call, Codes, Options, check_boolean, check_codes
from softfloat.environments import Overflow
from softfloat.formats import Format
from softfloat.status import Flags

__all__ = ["BlockCounts", "dequantize", "quantize"]

COMPUTED = "computed"
INEXACT, UNDERFLOW, OVERFLOW, INVALID = (
    int(x) for x in (Flags.INEXACT, Flags.UNDERFLOW, Flags.OVERFLOW, Flags.INVALID)
)


class Quantizing(Options, total=False):
    """What `quantize` takes by keyword, but for `count`."""

    recipe: str | None
    axis: int
    block: int | tuple[int, ...] | None
    partial: str
    nans: str
    infinities: str | None
    nan_to: str
    zero_block: str | None
    subnormal_blocks: str
    minimum: float | None
    tensor_scale: Any
    tensor_amax: float | None
    four_over_six: str | None
    scales: Any


@overload
def quantize(
    x: Any,
    block_format: BlockFormat | str,
    rule: str | None = ...,
    *,
    count: Literal[False] = ...,
    **keywords: Unpack[Quantizing],
) -> tuple[BlockCodes, Any]: ...


@overload
def quantize(
    x: Any,
    block_format: BlockFormat | str,
    rule: str | None = ...,
    *,
    count: Literal[True],
    **keywords: Unpack[Quantizing],
) -> tuple[BlockCodes, Any, BlockCounts]: ...


def quantize(
    x: Any,
    block_format: BlockFormat | str,
    rule: str | None = None,
    *,
    recipe: str | None = None,
    axis: int = -1,
    block: int | tuple[int, ...] | None = None,
    partial: str = "pad",
    nans: str = "block",
    infinities: str | None = None,
    nan_to: str = "max",
    zero_block: str | None = None,
    subnormal_blocks: str = "keep",
    minimum: float | None = None,
    tensor_scale: Any = COMPUTED,
    tensor_amax: float | None = None,
    four_over_six: str | None = None,
    scales: Any = None,
    count: bool = False,
    **options: Unpack[Options],
) -> Any:
    """Numbers to codes of blocks: a scale for each block by a rule, then each element divided by it and rounded once.

    Where the scale is a power of two, element / scale is exact before that rounding. Where it is not, the recipes compute
    in float32 and say in which steps (`softfloat.blocks.SCALE_RULES`); the last float32 number is rounded.

    Parameters
    ----------
    x : array_like
        Numbers that float32 holds, in any type that `encode` takes. Others are refused: no rule says how they are rounded.
    block_format : BlockFormat or its name
    rule : str, optional
        A name of `softfloat.blocks.SCALE_RULES`. Default: "floor" for scales of E8M0 (OCP MX 1.0, 6.3), "te" for formats
        whose tensor has a scale, "amax" for other scales.
    recipe : {"te", "torchao"}, optional
        The same for formats whose tensor has a scale, such as nvfp4.
    axis : int
        The axis along which blocks lie: in a product of matrices the one that is summed over. A matrix and its transpose
        are two arrays, each quantised from the numbers.
    block : int or tuple of int, optional
        The block's size, or its shape in the last axes such as (16, 16), in place of the format's.
    partial : {"pad", "refuse"}
        A short last block: as if zeros followed (microxcaling), or ValueError (torchao).
    nans : {"block", "element"}
        What a NaN does: makes the scale NaN, and so the whole block; or nothing to the scale, and the element is encoded.
    infinities : {"block", "saturate", "element"}, optional
        The same of an infinity; "saturate": the scale is the largest. A scale that finite numbers bring beyond the largest is
        the largest under "saturate", else NaN. Default: "saturate" by the rules rceil_saturate, deepgemm_ue8m0 and te, else "block".
    nan_to : {"max", "zero", "negative_zero"}
        What an encoded NaN becomes in an element format without NaN, with INVALID: the largest element (PTX, satfinite), 0, or -0
        (ONNX, ml_dtypes).
    zero_block : {"smallest", "one", "nan", "rule"}, optional
        The scale of a block of zeros: the smallest positive one (2^-127 in E8M0, which has no zero), 1, NaN, or what the rule
        gives. Default: "smallest"; "rule" by the recipes "te", which gives 0, and "torchao", which gives 2^-6.
    subnormal_blocks : {"keep", "zero"}
        "zero" counts all elements of a block as zeros whose amax is subnormal in float32 (microxcaling's
        mx_flush_fp32_subnorms), with INEXACT and UNDERFLOW.
    minimum : float, optional
        What a block's amax is at least, in the rules of powers of two and in "amax". Default: the rule's, 1e-4 in DeepGEMM's and 0.
    tensor_scale : float or None, optional
        The tensor's scale; None: there is none, blocks have the only scale. Default: the recipe computes it.
    tensor_amax : float, optional
        The largest magnitude that the recipe computes it from. Default: that of `x`, NaNs and infinities aside; under
        infinities="saturate" an infinity counts, and the tensor's scale is 1, as it is for zeros only.
    four_over_six : {"mae", "mse"}, optional
        With "te": each block is quantised with its largest element at 6 and at 4, and the one with the smaller sum of
        absolute or squared errors is taken; tensor scales aim at 256 in place of 448. For blocks of one row and of 16x16.
    scales : array_like of int, optional
        Codes of the blocks' scales, in the shape that `BlockCodes.scales` has: they are taken as they are, and the rule only says
        what elements are multiplied by. A NaN among them makes its block NaN. Not with `four_over_six`.
    count : bool
        Count what was saturated, underflowed and zeroed in each block.
    **options
        As everywhere in `softfloat.bits`, for the rounding of elements; without `overflow` and `environment` elements
        saturate, and those of fixed point, which have neither infinity nor NaN, always do. Random bits are addressed by the place
        in `x`. `daz` counts subnormal float32 numbers as zeros. There is no `out`.

    Returns
    -------
    blocks : BlockCodes
    flags : array of uint8, or int
        Of each element, in the shape of `x`, or OR-ed together: what the conversion of the scaled number raised; INEXACT and
        UNDERFLOW where a recipe's product in float32 is zero and the number is not; INVALID for
        what is not NaN in a block whose scale is NaN, for signalling NaNs, and for NaN where elements have none. What
        happens to scales raises nothing.
    counts : BlockCounts
        If `count`.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.

    Source
    ------
    OCP Microscaling Formats 1.0, 5 and 6.3, which leaves open zeros, NaNs, infinities and subnormal numbers; each rule's is in
    `softfloat.blocks.SCALE_RULES`.

    >>> blocks, flags = quantize([0.5, -1.75, 3.0, 44.0], "mxfp4", flags="any")
    >>> blocks.elements, blocks.scales, flags
    (array([0, 8, 1, 7], dtype=uint8), array([130], dtype=uint8), 3)
    >>> dequantize(blocks)
    array([ 0., -0.,  4., 48.])
    """
    fmt = check_block_format(block_format)
    plan = Plan(fmt, checked_rule(fmt, rule, recipe), options)
    plan.treat(nans, infinities, nan_to, zero_block, subnormal_blocks, minimum)
    plan.scale_tensor(tensor_scale, tensor_amax, four_over_six)
    counted = check_boolean("count", count)
    check_choice("partial", partial, ("pad", "refuse"))
    numbers, signals = float32_numbers(x)
    plan.lie(numbers.shape, axis, block, partial)
    plan.take_scales(scales)
    blocks, flags = plan.run(numbers, signals, counted)
    told = flags if plan.call.flags == "each" or isinstance(flags, int) else every_flag(flags)
    return (blocks, told, counts_of(numbers, blocks, flags, plan.layout)) if counted else (blocks, told)


def checked_rule(fmt: BlockFormat, rule: str | None, recipe: str | None) -> ScaleRule:
    """The rule, by either name for it."""
    if recipe is None:
        return check_rule(rule, fmt)
    if rule is not None:
        raise TypeError(f"recipe={recipe!r} comes with rule={rule!r}; accepted: one or the other")
    found = check_rule(recipe, fmt, "recipe")
    check_choice("recipe", recipe, ("te", "torchao"))
    return found


def has_one(scale: Format) -> bool:
    """Whether 1 is among the numbers of a format."""
    return hasattr(scale, "one_code")


# -- one call --------------------------------------------------------------------------------------------------------


class Plan:
    """The options of one call, checked, how blocks lie in its numbers, and the steps that they ask for."""

    given: Codes | None = None
    largest: int | None = None
    """The bits of the largest magnitude of the numbers, where a loop has told it."""
    lay_out: Callable[[Codes], Codes] | None = None
    """What lays out scaled numbers, before they are rounded, and scales; only where roundings draw."""
    layout: Layout
    axis: int
    treatment: Treatment
    nan_to: str
    flushes: bool
    tensor: TensorScale | Callable[[float], TensorScale]
    tensor_amax: float | None
    over_six: str | None

    def __init__(self, fmt: BlockFormat, rule: ScaleRule, options: Options) -> None:
        if options.get("out") is not None:
            raise ValueError("out is for functions that return one array of codes; quantize makes blocks anew")
        if "overflow" not in options and options.get("environment") is None:
            options = {**options, "overflow": Overflow.SATURATE}
        self.fmt, self.rule, self.options = fmt, rule, options
        self.rounds_in = fmt.element if isinstance(fmt.element, Format) else FLOAT32
        uses = engine.FIXED if isinstance(fmt.element, Fixed) else engine.CONVERSIONS
        self.call = Call(options, self.rounds_in, FLOAT32.name, uses)
        if isinstance(fmt.element, Fixed) and self.call.settings.overflow is Overflow.NAN:
            raise ValueError(
                f"overflow='nan' needs elements with a NaN, and {fmt.element} has none; accepted: 'saturate'"
            )
        if not isinstance(self.call.flags, str) or self.call.flags not in ("each", "any"):
            raise ValueError(
                f"flags must be 'each' (a uint8 per element) or 'any' (one integer), got {self.call.flags!r}"
            )

    def treat(
        self,
        nans: str,
        infinities: str | None,
        nan_to: str,
        zero_block: str | None,
        subnormal_blocks: str,
        minimum: float | None,
    ) -> None:
        """What becomes of special blocks."""
        check_choice("nans", nans, ("block", "element"))
        check_choice("infinities", infinities, (None, "block", "saturate", "element"))
        check_choice("nan_to", nan_to, ("max", "zero", "negative_zero"))
        check_choice("zero_block", zero_block, (None, "smallest", "one", "nan", "rule"))
        check_choice("subnormal_blocks", subnormal_blocks, ("keep", "zero"))
        if zero_block == "one" and not has_one(self.fmt.scale):
            raise ValueError(
                f"zero_block='one' needs scales with a 1, and {self.fmt.scale} has none; accepted: 'smallest'"
            )
        least = self.rule.minimum
        if minimum is not None:
            if self.rule.kind == TWO_LEVELS:
                raise ValueError(f"minimum is not for rule {self.rule.name!r}, which has none; accepted: None")
            least = check_float32("minimum", minimum)
        self.treatment = Treatment(nans, infinities or self.rule.infinities, zero_block or self.rule.zero_block, least)
        self.nan_to, self.flushes = nan_to, subnormal_blocks == "zero"

    def scale_tensor(self, tensor_scale: Any, tensor_amax: float | None, four_over_six: str | None) -> None:
        """Where the tensor's scale comes from."""
        check_choice("four_over_six", four_over_six, (None, "mae", "mse"))
        self.over_six = four_over_six
        if four_over_six and self.rule.name != "te":
            raise ValueError(f"four_over_six is for rule 'te', got {self.rule.name!r}")
        computed = isinstance(tensor_scale, str) and tensor_scale == COMPUTED
        self.tensor_amax = None
        if tensor_amax is not None:
            if self.fmt.tensor_scale is None or not computed:
                raise ValueError(
                    "tensor_amax is what a tensor's scale is computed from; accepted: None for formats without one, or beside tensor_scale"
                )
            self.tensor_amax = check_float32("tensor_amax", tensor_amax)
        if self.fmt.tensor_scale is None:
            if not computed and tensor_scale is not None:
                check_tensor_scale(tensor_scale, self.fmt)
            self.tensor = NO_TENSOR_SCALE
        elif not computed:
            given = check_tensor_scale(tensor_scale, self.fmt)
            self.tensor = NO_TENSOR_SCALE if given is None else given_tensor_scale(exact_float(given))
        elif self.rule.kind == TWO_LEVELS and self.fmt.tensor_scale != FLOAT32:
            raise ValueError(
                f"tensor_scale must be given for {self.fmt}: rule {self.rule.name!r} computes it in float32, and it is coded in "
                f"{self.fmt.tensor_scale}; accepted: one of its numbers, or None"
            )
        elif self.rule.name == "torchao":
            self.tensor = lambda amax: torchao_tensor_scale(amax, self.fmt)
        elif self.rule.name == "te":
            bound = OVER_SIX_BOUND if four_over_six else self.fmt.scale.max
            self.tensor = lambda amax: te_tensor_scale(amax, self.fmt, bound)
        else:
            self.tensor = NO_TENSOR_SCALE
        self.one_level = self.tensor is NO_TENSOR_SCALE
        if four_over_six and not callable(self.tensor):
            raise ValueError(
                "four_over_six needs the tensor's amax: its errors are those of numbers read with it; give tensor_amax, or nothing"
            )

    def lie(self, shape: tuple[int, ...], axis: int, block: int | tuple[int, ...] | None, partial: str = "pad") -> None:
        """Where blocks lie; errors of four_over_six are summed in a documented order for two shapes of them only."""
        blocks = self.fmt.block_shape(len(shape), axis, block)
        self.layout, self.axis = Layout(shape, blocks), axis % len(shape)
        if partial == "refuse" and self.layout.padded != shape:
            raise ValueError(
                f"x of shape {shape} is no whole number of blocks of {block_text(blocks)}; accepted: partial='pad', which adds zeros"
            )
        if self.over_six and sum(n > 1 for n in blocks) > 1 and blocks[-2:] != (16, 16):
            raise ValueError(f"four_over_six is for blocks of one row and of 16x16, got {block_text(blocks)}")

    def take_scales(self, codes: Any) -> None:
        """Scales that come from elsewhere, if any do."""
        if codes is None:
            return
        if self.over_six:
            raise ValueError("scales are chosen by four_over_six; accepted: one of the two")
        given = check_codes(codes, self.fmt.scale, "scales")
        if given.shape != self.layout.grid:
            raise ValueError(f"scales must have the shape {self.layout.grid}, one for each block, got {given.shape}")
        self.given = given

    def again(self, stream: int, tensor_amax: float | None, lay_out: Callable[[Codes], Codes] | None = None) -> Plan:
        """The same of other numbers, with random numbers of a stream, a tensor's scale of this amax, and what lays numbers out."""
        made, options = object.__new__(Plan), {**self.options, "stream": stream}
        vars(made).update(vars(self), options=options, tensor_amax=tensor_amax, lay_out=lay_out)
        return made

    # -- steps
    # ---------------------------------------------------------------------------------------------------------------

    def run(self, numbers: np.ndarray[Any, np.dtype[np.float32]], signals: Signals, counted: bool) -> Any:
        """(codes, flags of each element or of all); None where numbers are to be laid out in between, and a way that does not allow that serves."""
        each, layout = counted or self.call.flags == "each", self.layout
        if self.call.settings.daz:
            numbers = signed_zeros(numbers, magnitude_bits(numbers) < SMALLEST_NORMAL)
        found = self.quick(numbers, signals, layout, each)
        if found is None:
            if self.lay_out is not None:
                return None
            rows = layout.rows(numbers)
            maxima = maxima_of(rows)
            tensor = self.tensor_of(maxima)
            found = *self.plain(numbers, maxima, signals, layout, tensor, each), tensor
        codes, scale_codes, flags, tensor = found
        whole = None if self.one_level else check_tensor_scale(tensor.decode, self.fmt)
        return BlockCodes.made(codes, scale_codes, self.fmt, self.axis, layout.block, whole), flags

    def plain(
        self,
        numbers: np.ndarray[Any, np.dtype[np.float32]],
        maxima: Maxima,
        signals: Signals,
        layout: Layout,
        tensor: TensorScale,
        each: bool,
    ) -> tuple[Codes, Codes, Any]:
        """(codes of elements, codes of scales, flags of each element or of all), by the way that serves everything."""
        flushed = None
        if self.flushes:
            tiny = (maxima.amax < 2.0**-126) & ~maxima.infinite
            flushed = layout.spread(tiny) & (magnitude_bits(numbers) > 0) & (magnitude_bits(numbers) < INFINITE)
            numbers = signed_zeros(numbers, flushed)
            maxima = replace(maxima, amax=np.where(tiny, 0.0, maxima.amax))
        special = flushed is not None or bool(maxima.nan.any())
        if self.over_six:
            codes, scale_codes, flags = self.over_six_elements(numbers, maxima, tensor, layout)
        else:
            if self.given is None:
                scales = block_scales(maxima, self.fmt, self.rule, tensor, self.treatment)
            else:
                scales = given_scales(self.given, self.fmt, self.rule, tensor)
            scale_codes = scales.codes
            codes, flags = self.elements(numbers, scales, layout, each or special)
        if maxima.nan.any():
            flags = flags | np.where(signals(), INVALID, 0).astype(np.uint8)
        if flushed is not None:
            flushed &= ~layout.spread(np.asarray(engine.is_nan(scale_codes, self.fmt.scale)))
            flags = flags | np.where(flushed, INEXACT | UNDERFLOW, 0).astype(np.uint8)
        return codes, scale_codes, flags

    def quick(
        self, numbers: np.ndarray[Any, np.dtype[np.float32]], signals: Signals, layout: Layout, each: bool
    ) -> tuple[Codes, Codes, Any, TensorScale] | None:
        """The same and the tensor's scale, by compiled loops, which leave unusual blocks to the plain way; None where they do not serve."""
        if not numbers.size or self.flushes or self.given is not None:
            return None
        places = layout.places
        if not engine.serves_places(*places) or (self.over_six and layout.tail):
            layout = layout.side_by_side
            places = layout.places
        asked = self.fmt.element, self.call.settings, bool(self.over_six)
        direct = self.call.random_bits is None and engine.serves_elements(*asked)
        if not engine.serves_places(*places) or (self.over_six and not direct):
            return None
        tensor = self.tensor if isinstance(self.tensor, TensorScale) else self.tensor_of_numbers(numbers)
        known = compiled_scales(self.fmt, self.rule, tensor, self.treatment)
        if known is None:
            return None
        array = numbers if layout.in_place else layout.rows(numbers)
        if self.over_six:
            made = self.quick_over_six(array, places[0], known, tensor, each)
        else:
            made = engine.quantized(
                array, places, self.fmt.element, self.call.settings, known, "scaled" if not direct else "each" if each else "any"
            )  # fmt: skip
        self.largest, left = made.largest or None, made.left.any()
        if left and (self.over_six or (not direct and not self.scaled_too(numbers, made, layout, tensor))):
            return None  # errors go by the rows of a block, random numbers by places in the array
        codes = layout.in_array(made.codes)
        flags = layout.in_array(made.flags) if made.flags.size else made.seen
        if not direct:
            codes, flags = self.rounded(codes if self.lay_out is None else self.lay_out(codes), each)
        elif isinstance(self.fmt.element, Fixed):  # left blocks hold anything
            codes = codes_of_signs(self.fmt.element)[codes & ((1 << self.fmt.element.bits) - 1)]
        scales = made.scales.reshape(layout.grid)
        scales = scales if self.lay_out is None else self.lay_out(scales)
        if left and direct:
            codes, scales, flags = self.mended(numbers, made.left, codes, scales, flags, signals, layout, tensor)
        return codes, scales, flags, tensor

    def quick_over_six(
        self,
        array: np.ndarray[Any, np.dtype[np.float32]],
        places: engine.Places,
        known: Any,
        tensor: TensorScale,
        each: bool,
    ) -> engine.Quantized:
        """Both quantisations of each block and the choice between them, in one pass."""
        assert isinstance(self.fmt.element, Format)
        amax = 0.0 if tensor.amax is None else tensor.amax
        values = every_scale(self.fmt.scale).astype(np.float32)
        of_tensor = tensor.encode, amax, self.fmt.element.max * OVER_SIX_BOUND
        return engine.four_over_six(
            array, places, self.fmt.element, self.call.settings, known, of_tensor, values, self.over_six == "mse", each
        )

    def rounded(self, scaled: Codes, each: bool) -> tuple[Codes, Any]:
        """Codes of the bits of scaled numbers, exact float32 numbers that are not subnormal."""
        options: Options = {**self.options, "flags": "each" if each else "any"}
        if isinstance(self.fmt.element, Fixed):
            return fixed_codes(exactly(scaled), self.fmt.element, options)
        options.pop("daz", None)
        codes, raised = convert(scaled.view(np.uint32), FLOAT32, self.fmt.element, **options)
        return np.asarray(codes), raised

    def scaled_too(
        self,
        numbers: np.ndarray[Any, np.dtype[np.float32]],
        made: engine.Quantized,
        layout: Layout,
        tensor: TensorScale,
    ) -> bool:
        """Scale the blocks that a loop left; whether all became float32 numbers, of which nothing more is to be said."""
        length, places = layout.elements, np.flatnonzero(made.left)
        few = Layout((places.size, length), (1, length))
        some = np.ascontiguousarray(layout.rows(numbers).reshape(-1, length)[places])
        maxima = maxima_of(few.rows(some))
        scales = block_scales(maxima, self.fmt, self.rule, tensor, self.treatment)
        if scales.void.any() or maxima.nan.any() or maxima.infinite.any():
            return False
        values, scaled, _ = self.scaled(some, scales, few)
        codes, flags = encode(scaled, FLOAT32, flags="any")
        if flags or ((scaled == 0) & (values != 0)).any():
            return False
        rows = layout.rows(layout.in_array(made.codes)).reshape(-1, length)
        rows[places], made.scales[places] = np.asarray(codes).view(np.int32), scales.codes[:, 0]
        if layout.in_place:
            made.codes[...] = layout.array(rows.reshape(*layout.grid, length)).reshape(-1)
        else:
            made.codes[...] = rows.reshape(-1)
        return True

    def mended(
        self,
        numbers: np.ndarray[Any, np.dtype[np.float32]],
        left: Codes,
        codes: Codes,
        scales: Codes,
        flags: Any,
        signals: Signals,
        layout: Layout,
        tensor: TensorScale,
    ) -> tuple[Codes, Codes, Any]:
        """(codes, scales, flags) with the blocks that a loop left."""
        length, places = layout.elements, np.flatnonzero(left)
        few = Layout((places.size, length), (1, length))

        def taken(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return np.ascontiguousarray(layout.rows(array).reshape(-1, length)[places])

        def with_these(array: Codes, these: Codes) -> Codes:
            rows = layout.rows(array).reshape(-1, length)
            rows[places] = these
            return layout.array(rows.reshape(*layout.grid, length))

        some, each = taken(numbers), isinstance(flags, np.ndarray)
        filled = layout.padded != layout.shape  # with zeros, whose flags are nobody's
        made, found, raised = self.plain(
            some, maxima_of(few.rows(some)), lambda: taken(signals()), few, tensor, each or filled
        )
        scales = scales.reshape(-1)
        scales[places] = found[:, 0]
        if each:
            flags = with_these(flags, raised)
        else:
            own = raised * taken(np.ones(layout.shape, np.uint8)) if filled else raised
            flags = flags | (own if isinstance(own, int) else every_flag(own))
        return with_these(codes, made), scales.reshape(layout.grid), flags

    def tensor_of_numbers(self, numbers: np.ndarray[Any, np.dtype[np.float32]]) -> TensorScale:
        """The tensor's scale, from the numbers themselves."""
        if self.tensor_amax is not None and callable(self.tensor):
            return self.tensor(self.tensor_amax)
        largest = np.array([engine.largest_magnitude(numbers)], np.int32)
        if largest[0] >= INFINITE:
            return self.tensor_of(maxima_of(numbers.reshape(1, -1)))
        nothing = np.zeros(1, bool)
        return self.tensor_of(Maxima(exactly(largest), nothing, nothing))

    def tensor_of(self, maxima: Maxima) -> TensorScale:
        """The tensor's scale."""
        if not callable(self.tensor):
            return self.tensor
        if self.tensor_amax is not None:
            return self.tensor(self.tensor_amax)
        if self.treatment.infinities == "saturate" and maxima.infinite.any():
            return self.tensor(np.inf)
        return self.tensor(float(maxima.amax.max(initial=0.0)))

    def elements(
        self, numbers: np.ndarray[Any, np.dtype[np.float32]], scales: Scales, layout: Layout, each: bool
    ) -> tuple[Codes, Any]:
        """Codes of numbers under their blocks' scales, and flags."""
        values, scaled, void = self.scaled(numbers, scales, layout)
        vanished = None
        if not self.fmt.power_of_two_scale:
            vanished = (scaled == 0) & (values != 0)
            vanished = vanished if vanished.any() else None
        special = void is not None or vanished is not None or np.isnan(values).any()
        flags_wanted = "each" if each or special else "any"
        codes, flags = self.encoded(np.asarray(scaled), flags_wanted)
        if not special:
            return codes, flags
        if void is not None:
            flags = flags | np.where(void & ~np.isnan(exactly(numbers)), INVALID, 0).astype(np.uint8)
        if vanished is not None:
            flags = flags | np.where(vanished, INEXACT | UNDERFLOW, 0).astype(np.uint8)
        if not self.fmt.element.has_nan and self.nan_to != "max":
            code = 0 if self.nan_to == "zero" else negative_zero(self.fmt.element)
            codes = np.where(np.isnan(values), self.fmt.element.dtype.type(code), codes)
        return codes, flags

    def scaled(
        self, numbers: np.ndarray[Any, np.dtype[np.float32]], scales: Scales, layout: Layout
    ) -> tuple[Reals, Reals, Masks | None]:
        """(numbers, zeros where the scale is NaN; the same scaled as the rule has it; where the scale is NaN, if it is anywhere)."""
        values = exactly(numbers)
        void = layout.spread(scales.void) if scales.void.any() else None
        if void is not None:
            values = np.where(void, 0.0, values)
        with np.errstate(invalid="ignore"):
            scaled = values * layout.spread(scales.multiplier)
        nan = np.isnan(values)
        # whatever the multiplier, zero, infinite and NaN too
        scaled = np.where((values == 0) | np.isinf(values) | nan, values, scaled)
        if not self.fmt.power_of_two_scale:
            scaled = single(scaled)
            if nan.any():  # whose sign and payload are the element's affair
                scaled = np.where(nan, values, scaled)
        return values, scaled, void

    def encoded(self, scaled: Reals, flags: str) -> tuple[Codes, Any]:
        """Codes of scaled numbers."""
        options: Options = {**self.options, "flags": flags}
        element = self.fmt.element
        if isinstance(element, Fixed):
            return fixed_codes(scaled, element, options)
        options.pop("daz", None)
        codes, raised = encode(scaled, element, **options)
        return np.asarray(codes), raised

    # -- 4 over 6
    # ------------------------------------------------------------------------------------------------------------

    def over_six_elements(
        self, numbers: np.ndarray[Any, np.dtype[np.float32]], maxima: Maxima, tensor: TensorScale, layout: Layout
    ) -> tuple[Codes, Codes, Any]:
        """The better of two quantisations of each block: (codes, scales, flags of each element)."""
        found = []
        for stretch in (1.0, 1.5):
            scales = other_scales(maxima, self.fmt, self.rule, tensor, self.treatment, stretch)
            codes, flags = self.elements(numbers, scales, layout, True)
            found.append((codes, flags, scales.codes, self.error(numbers, codes, scales, tensor, layout)))
        six, four = found
        picks = four[3] < six[3]
        each = layout.spread(picks)
        return np.where(each, four[0], six[0]), np.where(picks, four[2], six[2]), np.where(each, four[1], six[1])

    def error(
        self,
        numbers: np.ndarray[Any, np.dtype[np.float32]],
        codes: Codes,
        scales: Scales,
        tensor: TensorScale,
        layout: Layout,
    ) -> Reals:
        """The error of each block, summed in float32 as TransformerEngine's reference does: along a row in order, rows in a tree."""
        assert tensor.amax is not None
        read = element_values(codes, self.fmt.element) * layout.spread(values_of(scales.codes, self.fmt.scale))
        with np.errstate(invalid="ignore"):  # under an infinite amax
            read = single(single(read * tensor.amax) / (self.fmt.element.max * OVER_SIX_BOUND))
            difference = layout.rows(single(read - exactly(numbers)))
        row = layout.block[-1] if layout.block[-1] > 1 else layout.elements
        difference = difference.reshape(*layout.grid, -1, row)
        sums: Any = np.zeros(difference.shape[:-1])
        for i in range(row):
            one = difference[..., i]
            sums = single(sums + (single(one * one) if self.over_six == "mse" else np.abs(one)))
        while sums.shape[-1] > 1:
            half = sums.shape[-1] // 2
            sums = single(sums[..., :half] + sums[..., half:])
        return np.asarray(sums[..., 0])


# -- what happened, and the way back ---------------------------------------------------------------------------------


def dequantize(blocks: BlockCodes) -> Reals:
    """The values of blocks, exactly: tensor scale * scale * element.

    Parameters
    ----------
    blocks : BlockCodes

    Returns
    -------
    array of float64
        Of the shape of the elements. NaN throughout a block whose scale is NaN, whatever its elements are (OCP MX 1.0, 5.1);
        a scale's sign is ignored. No flags: nothing is rounded. Products may lie outside float32's range.

    >>> dequantize(BlockCodes([0x2, 0xF], [0x80], "mxfp4"))
    array([  2., -12.])
    """
    if not isinstance(blocks, BlockCodes):
        raise TypeError(f"blocks must be a softfloat.bits.BlockCodes, got {type(blocks).__name__}")
    scales = values_of(blocks.scales, blocks.format.scale)
    if blocks.tensor_scale is not None:
        scales = scales * exact_float(blocks.tensor_scale)
    values = element_values(blocks.elements, blocks.format.element)
    with np.errstate(invalid="ignore"):
        scale_in_place(values, scales, blocks.block_shape)
    return values
