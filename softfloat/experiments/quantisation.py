"""What quantisation loses: which rule for scales of blocks loses least, and where; how wide a sum of fp8 products must be.

>>> losses = scale_rule_losses("mxfp4", rules=("floor", "rceil"), blocks=64)
>>> losses.best(1.0), losses.best(1.95)
('floor', 'rceil')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.accumulators import Accumulator, chunked, exact, fma, tensor_core
from softfloat.blocks import BlockFormat, check_rule
from softfloat.blocks.formats import check_block_format
from softfloat.checks import check_count
from softfloat.environments import Environment
from softfloat.experiments.choices import accumulator_of, environment_of
from softfloat.formats import float8_e4m3fn

__all__ = ["RULES", "RuleLosses", "WidthLoss", "accumulation_widths", "scale_rule_losses"]

RULES = ("floor", "even", "rceil")
"""Three rules that are defaults for MXFP4: OCP's, AMD's and torchao's for four bits, NVIDIA's."""

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class RuleLosses:
    """What rules for scales lose of blocks whose largest magnitude lies at some place between powers of two.

    Attributes
    ----------
    format : str
    rules : tuple of str
    places : float64 array of shape (places,)
        Significands of the largest magnitude, from 1 to 2.
    errors : float64 array of shape (rules, places)
        The root of the mean squared error, as a share of the numbers' own root mean square.
    saturated : float64 array of shape (rules, places)
        The share of elements that saturated.
    """

    format: str
    rules: tuple[str, ...]
    places: Array
    errors: Array
    saturated: Array

    def best(self, place: float) -> str:
        """The rule that loses least where the significand is nearest to `place`."""
        nearest = int(np.argmin(np.abs(self.places - place)))
        return self.rules[int(np.argmin(self.errors[:, nearest]))]

    @property
    def means(self) -> dict[str, float]:
        """Of each rule, over all places as they are met where logarithms of magnitudes are even."""
        return {rule: float(np.sqrt((row**2).mean())) for rule, row in zip(self.rules, self.errors, strict=True)}


def scale_rule_losses(
    block_format: BlockFormat | str = "mxfp4",
    rules: Sequence[str] = RULES,
    *,
    places: int = 49,
    blocks: int = 400,
    seed: int = 0,
    environment: Environment | None = None,
) -> RuleLosses:
    """Quantise blocks of normally distributed numbers, scaled so that the largest is at each of some places between 1 and 2.

    Parameters
    ----------
    block_format : BlockFormat or str
        With scales that are powers of two.
    rules : sequence of str
        Names of `softfloat.blocks.SCALE_RULES`.
    places : int
        Evenly spaced in the logarithm.
    blocks : int
        For each place.
    seed : int
        Of the numbers, and of stochastic rounding if the environment has none.
    environment : Environment, optional
        How elements are rounded; default to nearest even, saturating. Nothing is summed: an accumulator has no part in it.

    Raises
    ------
    ValueError, TypeError
        Naming the argument and the accepted values.
    """
    fmt = check_block_format(block_format)
    names = tuple(check_rule(rule, fmt, "rules").name for rule in rules)
    chosen = environment_of(Environment(overflow="saturate") if environment is None else environment, None, seed)
    found = 2.0 ** (np.arange(check_count("places", places)) / places)
    drawn = np.random.default_rng(seed).normal(size=(check_count("blocks", blocks), fmt.elements))
    unit = drawn / np.abs(drawn).max(axis=1, keepdims=True)
    errors, saturated = np.empty((2, len(names), places))
    for j, place in enumerate(found):
        x = (unit * place).astype(np.float32)
        for i, rule in enumerate(names):
            codes, _, counts = bits.quantize(x, fmt, rule, block=fmt.elements, count=True, environment=chosen)
            wrong = bits.dequantize(codes) - x
            errors[i, j] = np.sqrt((wrong**2).mean() / (x.astype(np.float64) ** 2).mean())
            saturated[i, j] = counts.saturated.sum() / x.size
    return RuleLosses(fmt.name, names, found, errors, saturated)


@dataclass(frozen=True)
class WidthLoss:
    """What a way to sum loses of dot products of fp8 codes.

    Attributes
    ----------
    name : str
        Of the accumulator.
    error : float
        The root mean square of the errors, as a share of the sums' own.
    largest : float
        The largest error, likewise.
    """

    name: str
    error: float
    largest: float


def accumulation_widths(
    length: int = 4096,
    *,
    accumulators: Sequence[Accumulator] | None = None,
    products: int = 64,
    shift: float = 0.0,
    seed: int = 0,
    environment: Environment | None = None,
) -> list[WidthLoss]:
    """Sum products of e4m3 codes, of normally distributed numbers scaled to the largest code, beside exact sums.

    Parameters
    ----------
    length : int
        Products of a sum.
    accumulators : sequence of Accumulator, optional
        Default: the environment's, or H100's fp8 sum as it is and promoted every 128 products, B200's, and single.
    products : int
        Sums.
    shift : float
        The mean of the numbers, in standard deviations: sums then grow with their length.
    seed : int
        Of the numbers, and of stochastic rounding if the environment has none.
    environment : Environment, optional
        Every setting of the sums, and an accumulator, if it has one. Numbers become codes to nearest even, saturating.
    """
    chosen = environment_of(environment, None, seed)
    own = accumulator_of(None, chosen, float8_e4m3fn)
    if accumulators is None and own is not None:
        accumulators = (own,)
    elif accumulators is None:
        hopper = tensor_core("H100", input="float8_e4m3fn")
        blackwell = tensor_core("B200", input="float8_e4m3fn")
        accumulators = (hopper, chunked(128, hopper, "float32"), blackwell, fma("float32"))
    random = np.random.default_rng(seed)
    shape = 2, check_count("products", products), check_count("length", length)
    x = random.normal(shift, 1, shape)
    x *= 448 / np.abs(x).max(axis=(1, 2), keepdims=True)
    codes, _ = bits.encode(x, "float8_e4m3fn", overflow="saturate")
    whole, _ = bits.vecdot(codes[0], codes[1], "float8_e4m3fn", exact("float32"))
    true = whole.view(np.float32).astype(np.float64)
    size = np.sqrt((true**2).mean())
    result = []
    for how in accumulators:
        found, _ = bits.vecdot(codes[0], codes[1], "float8_e4m3fn", how, out_format="float32", environment=chosen)
        wrong = (found.view(np.float32) - true) / size
        result.append(WidthLoss(how.name, float(np.sqrt((wrong**2).mean())), float(np.abs(wrong).max())))
    return result
