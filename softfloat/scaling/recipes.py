"""Recipes of scaled training, as data: how the operands of each of a layer's three products are quantised, and what multiplies them.

A linear layer has three products, each a sum over another axis: `forward`, inputs times weights; `input_gradient`, the
gradient of the outputs times weights; `weight_gradient`, the gradient of the outputs times inputs. A `Recipe` says of each
what happens to its two operands and which accumulator adds up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

from softfloat.accumulators import Accumulator, tensor_core
from softfloat.blocks import BlockFormat, check_rule
from softfloat.blocks.formats import check_block, check_block_format
from softfloat.checks import check_choice, check_kind, check_switch, check_whole
from softfloat.environments import Rounding, as_rounding
from softfloat.formats import Format, bfloat16, check_format
from softfloat.frozen import hash_kept, settle

__all__ = [
    "PRODUCTS",
    "BlockScaling",
    "CurrentScaling",
    "DelayedScaling",
    "Hadamard",
    "Operand",
    "Product",
    "Recipe",
]

PRODUCTS = ("forward", "input_gradient", "weight_gradient")
"""A layer's products, as a recipe names them."""
SCALE_ORDERS = ("scales_first", "first", "second")
STANDINGS = ("kernel", "reference")
AXIS = "axis"
"""As a block: all there is along the axis."""


def _check_element(fmt: Any) -> Format:
    found = check_format(fmt, "format", what="scaled training")
    if not (found.signed and found.zero):
        raise ValueError(f"format must be signed and have a zero, and {found} is not")
    return found


def check_finite(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be finite and at least 0, got {value!r}")


def _fields_text(made: Any) -> str:
    shown = []
    for each in fields(made):
        value = getattr(made, each.name)
        shown.append(f"{each.name}={value if isinstance(value, (Format, BlockFormat)) else repr(value)}")
    return f"{type(made).__name__}({', '.join(shown)})"


@hash_kept
@dataclass(frozen=True, kw_only=True, repr=False)
class CurrentScaling:
    """Scales found from the numbers that they scale: S = largest element / amax in float32, elements x * S, read as element * (1/S).

    Parameters
    ----------
    format : Format or str
        Of the elements.
    per : "tensor", "row", int, or tuple of int
        What shares a scale: the tensor; each row or column along which a product sums; so many numbers along it; or a
        block of that shape in the last two axes. The last two have float32 scales as of a `BlockFormat`.
    power_of_two : bool
        S is rounded down to a power of two, by its bits.
    epsilon : float
        What amax is at least.
    standing : {"kernel", "reference"}
        What an infinite or NaN amax gives: in TransformerEngine's kernel S is 1, in its reference in Python max / amax.

    Source
    ------
    TransformerEngine, common/recipe/recipe_common.cuh (compute_scale_from_amax); its reference is
    tests/pytorch/references/quantize_scale_calc.py. An S beyond float32 is the largest number of the input's format in both.
    torchao's float8 divides in float64 and rounds once, which is the same, with an epsilon of 1e-12; its powers of two go by
    log2 in float32, which errs just below them.
    """

    format: Format
    per: str | int | tuple[int, ...] = "tensor"
    power_of_two: bool = False
    epsilon: float = 0.0
    standing: str = "kernel"

    def __post_init__(self) -> None:
        settle(self, format=_check_element(self.format))
        if isinstance(self.per, str):
            check_choice("per", self.per, ("tensor", "row"))
        else:
            settle(self, per=check_block(self.per, "per"))
        check_switch("power_of_two", self.power_of_two)
        check_finite("epsilon", self.epsilon)
        check_choice("standing", self.standing, STANDINGS)

    __repr__ = _fields_text


@hash_kept
@dataclass(frozen=True, kw_only=True, repr=False)
class DelayedScaling:
    """One scale for a tensor, from the largest magnitudes of earlier steps: what is larger now saturates.

    Parameters
    ----------
    format : Format or str
        Of the elements.
    history : int
        Steps that are remembered.
    margin : int
        The scale is (largest element * 2^-margin) / amax.
    amax : {"max", "most_recent"}
        Of the history.
    zero_amax : {"keep", "roll"}
        After a step whose amax is 0: nothing changes, or the history moves on as ever.

    Source
    ------
    TransformerEngine, common/recipe/delayed_scaling.cu, which `AmaxHistory` restates; its kernel for many tensors keeps
    the history of those whose amax is 0, the one for a single tensor does not.
    """

    format: Format
    history: int = 1024
    margin: int = 0
    amax: str = "max"
    zero_amax: str = "keep"

    def __post_init__(self) -> None:
        settle(self, format=_check_element(self.format))
        check_whole("history", self.history, 1)
        check_whole("margin", self.margin, -100)
        if self.margin > 100:
            raise ValueError(f"margin must be -100 to 100, got {self.margin}")
        check_choice("amax", self.amax, ("max", "most_recent"))
        check_choice("zero_amax", self.zero_amax, ("keep", "roll"))

    __repr__ = _fields_text


@hash_kept
@dataclass(frozen=True, kw_only=True, repr=False)
class BlockScaling:
    """A block format and how its scales are found: the arguments of `softfloat.bits.quantize`.

    Parameters
    ----------
    format : BlockFormat or str
    rule : str, optional
        A name of `softfloat.blocks.SCALE_RULES`; None: the format's own.
    block : int, tuple of int, or "axis", optional
        In place of the format's; "axis" is all there is along the axis that is summed over.
    four_over_six : {"mae", "mse"}, optional
    subnormal_blocks : {"keep", "zero"}
    nans : {"block", "element"}
    """

    format: BlockFormat
    rule: str | None = None
    block: int | tuple[int, ...] | str | None = None
    four_over_six: str | None = None
    subnormal_blocks: str = "keep"
    nans: str = "block"

    def __post_init__(self) -> None:
        settle(self, format=check_block_format(self.format, "format"))
        settle(self, rule=check_rule(self.rule, self.format).name)
        if isinstance(self.block, str):
            check_choice("block", self.block, (AXIS,))
        elif self.block is not None:
            settle(self, block=check_block(self.block))
        check_choice("four_over_six", self.four_over_six, (None, "mae", "mse"))
        check_choice("subnormal_blocks", self.subnormal_blocks, ("keep", "zero"))
        check_choice("nans", self.nans, ("block", "element"))

    __repr__ = _fields_text


SIGNS = (1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1)
"""TransformerEngine's fixed signs of the random Hadamard transform."""


@hash_kept
@dataclass(frozen=True, kw_only=True, repr=False)
class Hadamard:
    """A random Hadamard transform: runs of numbers along the axis of the sum times diag(signs) * H / sqrt(n).

    H is Sylvester's matrix of n rows. As the other operand of the product gets the same orthogonal matrix, both cancel
    but for roundings. A short last run is filled up with zeros.

    Parameters
    ----------
    signs : tuple of int
        1 and -1; as many as a run has numbers: 4, 16, 64 or 256, so that the square root is exact.
    format : Format or str
        What numbers are rounded to before, and the transformed ones after.
    accumulator : Accumulator
        How the products are summed.

    Source
    ------
    TransformerEngine, NVFP4BlockScaling: runs of 16 of bfloat16, summed by a tensor core in float32, rounded to bfloat16.
    """

    signs: tuple[int, ...] = SIGNS
    format: Format = bfloat16
    accumulator: Accumulator = field(default_factory=lambda: tensor_core("B200", input="bfloat16"))

    def __post_init__(self) -> None:
        check_kind("signs", self.signs, (tuple, list))
        settle(self, signs=tuple(self.signs), format=_check_element(self.format))
        if len(self.signs) not in (4, 16, 64, 256) or any(x not in (1, -1) for x in self.signs):
            raise ValueError(f"signs must be 4, 16, 64 or 256 of 1 and -1, got {self.signs!r}")
        check_kind("accumulator", self.accumulator, Accumulator)

    def __repr__(self) -> str:
        return f"Hadamard({len(self.signs)}, {self.format}, {self.accumulator!r})"


Scaling = CurrentScaling | DelayedScaling | BlockScaling


@hash_kept
@dataclass(frozen=True, kw_only=True)
class Operand:
    """What happens to one operand of a product.

    Parameters
    ----------
    scaling : CurrentScaling, DelayedScaling or BlockScaling, optional
        None: it is left as it is.
    hadamard : Hadamard, optional
        First of all.
    rounding : Rounding or str
        Of elements. Nothing but this decides how they are rounded, whatever the environment says.
    sr_bits : int, optional
        Random bits of stochastic rounding; None: as many as there are.
    """

    scaling: Scaling | None = None
    hadamard: Hadamard | None = None
    rounding: Rounding = Rounding.NEAREST_EVEN
    sr_bits: int | None = None

    def __post_init__(self) -> None:
        check_kind("scaling", self.scaling, (CurrentScaling, DelayedScaling, BlockScaling), optional=True)
        check_kind("hadamard", self.hadamard, Hadamard, optional=True)
        settle(self, rounding=as_rounding(self.rounding))
        if self.sr_bits is not None and check_whole("sr_bits", self.sr_bits, 1) > 52:
            raise ValueError(f"sr_bits must be 1 to 52 or None, got {self.sr_bits}")

    @property
    def format(self) -> Format | BlockFormat | None:
        """What it is quantised to."""
        return None if self.scaling is None else self.scaling.format


@hash_kept
@dataclass(frozen=True, kw_only=True)
class Product:
    """One of a layer's products.

    Parameters
    ----------
    first, second : Operand
        forward: inputs and weights; input_gradient: the outputs' gradient and weights; weight_gradient: the outputs'
        gradient and inputs.
    accumulator : Accumulator
        The hardware's.
    scale_order : {"scales_first", "first", "second"}
        Of scales of tensors, rows and columns, x and y of `first` and `second`, in float32: (x*y)*sum, y*(x*sum) or
        x*(y*sum).
    """

    first: Operand
    second: Operand
    accumulator: Accumulator
    scale_order: str = "scales_first"

    def __post_init__(self) -> None:
        check_kind("first", self.first, Operand)
        check_kind("second", self.second, Operand)
        check_kind("accumulator", self.accumulator, Accumulator)
        check_choice("scale_order", self.scale_order, SCALE_ORDERS)

    @property
    def quantised(self) -> bool:
        """Whether anything happens to an operand."""
        return any(x.scaling is not None or x.hadamard is not None for x in (self.first, self.second))


@hash_kept
@dataclass(frozen=True, kw_only=True, repr=False)
class Recipe:
    """How a layer's three products are quantised.

    Parameters
    ----------
    name : str
    forward, input_gradient, weight_gradient : Product
    meaning, source : str
        In words, and where it is written.
    standing : str
        What of it is held against the original, and what is assumed.
    tensors : Format, optional
        What tensors must be in for the recipe to be the original's; None: any.
    tensor_rounding : Rounding, optional
        How operations beside products must round for that.
    """

    name: str
    forward: Product
    input_gradient: Product
    weight_gradient: Product
    meaning: str = field(default="", compare=False)
    source: str = field(default="", compare=False)
    standing: str = field(default="", compare=False)
    tensors: Format | None = None
    tensor_rounding: Rounding | None = None

    def __post_init__(self) -> None:
        for name in ("name", "meaning", "source", "standing"):
            check_kind(name, getattr(self, name), str)
        for name in PRODUCTS:
            check_kind(name, getattr(self, name), Product)
        if self.tensors is not None:
            settle(self, tensors=check_format(self.tensors, "tensors"))
        if self.tensor_rounding is not None:
            settle(self, tensor_rounding=as_rounding(self.tensor_rounding, "tensor_rounding"))

    @property
    def products(self) -> dict[str, Product]:
        """By name."""
        return {name: getattr(self, name) for name in PRODUCTS}

    @property
    def remembers(self) -> bool:
        """Whether scales depend on earlier steps."""
        return any(isinstance(x.scaling, DelayedScaling) for p in self.products.values() for x in (p.first, p.second))

    @property
    def draws(self) -> bool:
        """Whether elements are rounded at random."""
        return any(x.rounding.draws for p in self.products.values() for x in (p.first, p.second))

    def replace(self, **changes: Any) -> Recipe:
        """The same with some fields changed."""
        return replace(self, **changes)

    def summed_by(self, accumulator: Accumulator) -> Recipe:
        """The same with another accumulator in all products.

        >>> from softfloat.accumulators import fma
        >>> from softfloat.scaling import RECIPES
        >>> RECIPES["mxfp8"].summed_by(fma("float32")).forward.accumulator
        fma('float32')
        """
        changed: dict[str, Any] = {name: replace(x, accumulator=accumulator) for name, x in self.products.items()}
        return replace(self, **changed)

    def __repr__(self) -> str:
        return f"Recipe({self.name!r})"

    def describe(self) -> str:
        """One line for each product."""
        return "\n".join(f"{name}: {described(x)}" for name, x in self.products.items())


def described(product: Product) -> str:
    """A product in words."""
    return f"{_operand_text(product.first)} by {_operand_text(product.second)}, {product.accumulator!r}"


def _operand_text(operand: Operand) -> str:
    if operand.scaling is None:
        return "as it is"
    how = operand.scaling
    words = [str(how.format)]
    if isinstance(how, BlockScaling):
        words += [f"rule {how.rule}"] + ([f"blocks {how.block}"] if how.block is not None else [])
    elif isinstance(how, DelayedScaling):
        words.append(f"history {how.history}")
    else:
        words.append(f"per {how.per}" + (", powers of two" if how.power_of_two else ""))
    words += ["Hadamard"] * (operand.hadamard is not None)
    words += [operand.rounding.name.lower()] * (operand.rounding is not Rounding.NEAREST_EVEN)
    return " ".join(words)
