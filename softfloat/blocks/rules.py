"""How the scale of a block is found: one row for each rule, with its source. Libraries differ here, often without saying so.

>>> SCALE_RULES["rceil"].divides
True
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from softfloat.blocks.formats import BlockFormat
from softfloat.checks import check_choice
from softfloat.frozen import hash_kept

__all__ = ["SCALE_RULES", "ScaleRule", "check_rule"]

POWER_OF_TWO, FLOAT, TWO_LEVELS = "power of two", "float", "two levels"
E8M0_LARGEST = 254


@hash_kept
@dataclass(frozen=True)
class ScaleRule:
    """How a block's largest magnitude, its amax, becomes the block's scale.

    Attributes
    ----------
    name : str
    kind : {"power of two", "float", "two levels"}
        What scales the rule makes: E8M0; any format's; those of a format whose tensor may have a scale too.
    meaning : str
        The rule in words; m is the largest element, e_m its exponent.
    source : str
        Where it is written, and what it is held against.
    divides : bool
        "power of two": the exponent taken is that of amax * (1/m), both rounded to float32, not of amax.
    carry : {"none", "any", "above", "middle", "element", "sqrt"}
        "power of two": which significands count for the next power: none, any above 1, those above that of m, those above the
        middle of that and 2, those that the element's rounding carries there, those above the square root of 2.
    lowest, highest : int
        "power of two": codes that limit the scale's.
    minimum : float
        What amax is at least.
    infinities, zero_block : str
        The defaults of `softfloat.bits.quantize`.
    """

    name: str
    kind: str
    meaning: str
    source: str
    divides: bool = field(default=False, kw_only=True)
    carry: str = field(default="none", kw_only=True)
    lowest: int = field(default=0, kw_only=True)
    highest: int = field(default=E8M0_LARGEST, kw_only=True)
    minimum: float = field(default=0.0, kw_only=True)
    infinities: str = field(default="block", kw_only=True)
    zero_block: str = field(default="smallest", kw_only=True)

    def __str__(self) -> str:
        return self.name


DEEPGEMM_MINIMUM = 0.00009999999747378752  # 1e-4 in float32

SCALE_RULES: dict[str, ScaleRule] = {
    rule.name: rule
    for rule in (
        ScaleRule(
            "floor",
            POWER_OF_TWO,
            "2^(floor(log2(amax)) - e_m): the largest magnitudes may saturate",
            "OCP MX 1.0, 6.3; torchao FLOOR (its main branch, vectors); microxcaling, whose log2 in float32 errs just below powers of two "
            "(vectors)",
        ),
        ScaleRule(
            "ceil",
            POWER_OF_TWO,
            "2^(ceil(log2(amax)) - e_m)",
            "torchao CEIL (main, vectors)",
            carry="any",
        ),
        ScaleRule(
            "even",
            POWER_OF_TWO,
            "as floor, of amax rounded to the element's precision, ties away from zero, in float32: what reaches 2^128 counts as infinite",
            "torchao EVEN (main, vectors)",
            carry="element",
        ),
        ScaleRule(
            "rceil",
            POWER_OF_TWO,
            "2^ceil(log2(d)), d = amax * (1/m) in float32",
            "cuBLAS, 1D block scaling (cvt.rp.ue8m0x2.f32); torchao RCEIL (main, vectors)",
            divides=True,
            carry="any",
        ),
        ScaleRule(
            "rceil_saturate",
            POWER_OF_TWO,
            "as rceil, but an infinite amax gives 2^127",
            "TransformerEngine, float_to_e8m0 (cvt.rp.satfinite.ue8m0x2.f32); read, not held against it",
            divides=True,
            carry="any",
            infinities="saturate",
        ),
        ScaleRule(
            "smallest",
            POWER_OF_TWO,
            "2^ceil(log2(amax/m)), exactly: the smallest power of two under which nothing exceeds m",
            "by definition; rceil differs where float32 rounds the quotient down to a power of two",
            carry="above",
        ),
        ScaleRule(
            "midmax",
            POWER_OF_TWO,
            "as floor, but the next power of two where amax is nearer to 2^(e_m + 1) than to m, both times floor's scale, exactly",
            "brevitas, tests/brevitas/core/test_quant_mx.py (MXFP.midmax), in exact terms; read, not held against it",
            carry="middle",
        ),
        ScaleRule(
            "nearest_log2",
            POWER_OF_TWO,
            "2^round(log2(d)), d = amax * (1/m) in float32, the logarithm exact",
            "the rule MLX had before it took rceil (ml-explore/mlx, pull request 4353); from its description, not held against it",
            divides=True,
            carry="sqrt",
        ),
        ScaleRule(
            "deepgemm_ue8m0",
            POWER_OF_TWO,
            "2^ceil(log2(d)), d = max(amax, 1e-4) * (1/m) in float32, exponents -126 to 127",
            "DeepGEMM, deep_gemm/utils/math.py, which divides by m; read, not held against it",
            divides=True,
            carry="any",
            lowest=1,
            minimum=DEEPGEMM_MINIMUM,
            infinities="saturate",
        ),
        ScaleRule(
            "amax",
            FLOAT,
            "max(amax, 1e-4) / m in float32, to nearest even in the scale's format; elements are x * (1/scale), each step in float32",
            "DeepSeek-V3 (blocks of 1x128 and 128x128 with float32 scales): DeepGEMM, deep_gemm/utils/math.py; read, not held against it",
            minimum=DEEPGEMM_MINIMUM,
        ),
        ScaleRule(
            "te",
            TWO_LEVELS,
            "s = amax * (S * (1/m)), at most the largest scale, S = largest scale * m / amax of the tensor; elements are x * (1 / (s * (1/S)))",
            "TransformerEngine, transformer_engine/common/cast/nvfp4/core_nvfp4.cuh; custom_recipes/reference_nvfp4.py (vectors)",
            infinities="saturate",
            zero_block="rule",
        ),
        ScaleRule(
            "torchao",
            TWO_LEVELS,
            "s = (amax / m) / g, at least the scale's smallest normal number, g = amax of the tensor / (largest scale * m); "
            "elements are x * ((1/g) / s)",
            "torchao, nvfp4_quantize and per_tensor_amax_to_scale (main, vectors)",
            zero_block="rule",
        ),
    )
}
"""Every rule by its name."""


def check_rule(name: Any, fmt: BlockFormat, argument: str = "rule") -> ScaleRule:
    """A rule that makes scales of a format, by its name.

    None is the format's own: OCP's floor for scales of E8M0, TransformerEngine's recipe where the tensor has a scale too, else amax over
    the largest element.

    Raises
    ------
    TypeError, ValueError
        If there is no such rule, or it makes other scales than the format has.
    """
    if name is None:
        return SCALE_RULES["floor" if fmt.power_of_two_scale else "te" if fmt.tensor_scale is not None else "amax"]
    if not isinstance(name, str):
        raise TypeError(
            f"{argument} must be the name of a scale rule, got {name!r}; accepted: {', '.join(SCALE_RULES)}"
        )
    check_choice(argument, name, SCALE_RULES)
    rule = SCALE_RULES[name]
    fits = rule.kind == POWER_OF_TWO if fmt.power_of_two_scale else rule.kind != POWER_OF_TWO
    if not fits:
        accepted = [x.name for x in SCALE_RULES.values() if (x.kind == POWER_OF_TWO) == fmt.power_of_two_scale]
        made = "powers of two" if rule.kind == POWER_OF_TWO else "scales with fractions"
        raise ValueError(
            f"{argument} {rule.name!r} makes {made}, and scales of {fmt} are {fmt.scale}; accepted: {', '.join(map(repr, accepted))}"
        )
    return rule
