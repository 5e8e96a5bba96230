"""Which rule made the scales of a tensor: numbers and the scales that a device chose for them, held against every rule.

>>> from softfloat import bits
>>> x = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
>>> found = identify_scales(x, bits.quantize(x, "mxfp4", "rceil")[0].scales, "mxfp4")
>>> [str(fit) for fit in found.fits], found.blocks["ordinary"]
(['rceil', 'rceil_saturate', 'smallest', 'deepgemm_ue8m0'], 128)
>>> found.undecided[0]["amax"], found.undecided[0]["codes"]["smallest"]
('0x1.8000020000000p-125', 1)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.blocks import SCALE_RULES, BlockFormat, ScaleRule
from softfloat.blocks.formats import check_block_format
from softfloat.blocks.rules import POWER_OF_TWO
from softfloat.formats import ROSTER
from softfloat.testing.vectors.block_operations import SPECIAL, Blocks
from softfloat.testing.vectors.block_rows import critical_maxima
from softfloat.testing.verdicts.block_causes import float32_logarithm

__all__ = ["ScaleFit", "ScaleIdentification", "identify_scales"]

Codes = np.ndarray[Any, Any]
Predict = Callable[..., Codes | None]
"""Scales under options of `bits.quantize`; None where it refuses them."""

KINDS = ("ordinary", "subnormal", "zeros", "infinite", "NaN")
"""Of blocks: by their largest magnitude; those with an infinity and no NaN; those with a NaN."""
EXAMPLES = 5
FIRST_NEAREST = 3
COMMON_SHIFTS = (-1, 1, -2, 2)
"""Codes by which all scales may be off."""


@dataclass(frozen=True)
class ScaleFit:
    """A rule held against scales.

    Attributes
    ----------
    rule : str
        A name of `softfloat.blocks.SCALE_RULES`, or what a known mistake is called.
    meaning : str
    options : tuple of (name, value)
        Options of `bits.quantize` under which most special blocks are right; only those that blocks decide.
    open : tuple of (name, tuple of values)
        Options with several values that these blocks do not tell apart, where blocks of that kind are there.
    wrong : dict
        Kind of block -> blocks with another scale.
    examples : tuple of dict
        Some wrong blocks: "block" (index in the scales), "amax" (hexadecimal), "expected" and "found" (codes).
    named : bool
        Whether it is a rule of the table.
    """

    rule: str
    meaning: str
    options: tuple[tuple[str, str], ...]
    open: tuple[tuple[str, tuple[str, ...]], ...]
    wrong: dict[str, int]
    examples: tuple[dict[str, Any], ...]
    named: bool = True

    @property
    def mismatches(self) -> int:
        """Blocks with another scale."""
        return sum(self.wrong.values())

    def __str__(self) -> str:
        words = [f"{name}={value}" for name, value in self.options]
        return ", ".join([self.rule, *words])


@dataclass(frozen=True)
class ScaleIdentification:
    """What `identify_scales` found.

    Attributes
    ----------
    format : BlockFormat
    blocks : dict
        Kind of block -> how many there are: "ordinary", "subnormal", "zeros", "infinite", "NaN".
    fits : list of ScaleFit
        What explains every scale.
    nearest : list of ScaleFit
        Where nothing fits, what explains most.
    undecided : list of dict
        Largest magnitudes that would tell fits apart: "amax" (hexadecimal) and "codes" (rule -> scale).
    """

    format: BlockFormat
    blocks: dict[str, int]
    fits: list[ScaleFit] = field(default_factory=list)
    nearest: list[ScaleFit] = field(default_factory=list)
    undecided: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """All of it as what JSON has."""

        def of(fit: ScaleFit) -> dict[str, Any]:
            return {
                "rule": fit.rule,
                "meaning": fit.meaning,
                "options": dict(fit.options),
                "open": {name: list(values) for name, values in fit.open},
                "wrong": fit.wrong,
                "examples": list(fit.examples),
                "in_the_table": fit.named,
            }

        return {
            "format": self.format.name,
            "blocks": self.blocks,
            "fits": [of(x) for x in self.fits],
            "nearest": [of(x) for x in self.nearest],
            "undecided": self.undecided,
        }


def identify_scales(
    x: Any,
    scales: Any,
    block_format: BlockFormat | str,
    *,
    axis: int = -1,
    block: int | tuple[int, ...] | None = None,
    tensor_scale: Any = "computed",
) -> ScaleIdentification:
    """Find the rule by which a device chose scales.

    Parameters
    ----------
    x : array_like
        The numbers that were quantised, which float32 holds.
    scales : array_like of int
        Codes of the scales, in the shape that `BlockCodes.scales` has, or as many in that order.
    block_format : BlockFormat or its name
    axis, block
        As of `bits.quantize`.
    tensor_scale : float or None, optional
        The tensor's scale, where the format has one; default: what each recipe computes.

    Returns
    -------
    ScaleIdentification

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.
    """
    fmt = check_block_format(block_format)
    known: dict[str, Any] = {"axis": axis, "block": block}
    if fmt.tensor_scale is not None:
        known["tensor_scale"] = tensor_scale
    elif not isinstance(tensor_scale, str) and tensor_scale is not None:
        raise ValueError(f"tensor_scale is for formats whose tensor has a scale, and {fmt.name} is none")
    numbers = _single(x)
    made = bits.quantize(numbers, fmt, flags="any", **known)[0]
    engine.refuse_mask(scales, "scales")
    given = np.asarray(scales)
    if given.size != made.scales.size:
        raise ValueError(
            f"scales must be {made.scales.size} codes, of shape {made.scales.shape}, got shape {given.shape}"
        )
    codes = bits.BlockCodes(
        made.elements, given.reshape(made.scales.shape), fmt, axis=made.axis, block=made.block_shape
    )
    found = codes.scales
    amax, kinds, most = _kinds(numbers, made.block_shape)
    masks = {name: kinds == number for number, name in enumerate(KINDS)}
    counts = {name: int(mask.sum()) for name, mask in masks.items()}
    tried = [
        _held(name, meaning, predict, masks, found, amax)
        for name, meaning, predict in _rules(numbers, most, found.shape, fmt, known)
    ]
    tried += _mistakes(fmt, amax, masks, found, tried)
    tried.sort(key=lambda fit: (fit.mismatches, not fit.named))
    fits = [fit for fit in tried if not fit.mismatches]
    if any(fit.named for fit in fits):
        fits = [fit for fit in fits if fit.named]
    nearest = [] if fits else tried[:FIRST_NEAREST]
    return ScaleIdentification(fmt, counts, fits, nearest, _undecided(fmt, fits, known))


def _single(x: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Numbers as float32, exactly."""
    engine.refuse_mask(x, "x")
    found = np.asarray(bits.decode(x.codes, x.format) if hasattr(x, "codes") else x)
    if found.dtype == np.float32:
        return found
    codes, flags = bits.encode(found, "float32", flags="any")
    if flags & 1:
        raise ValueError("x must hold float32 numbers; bits.encode(x, 'float32') rounds them")
    return np.asarray(codes).view(np.float32)


INFINITE = np.uint32(0x7F800000)


def _greatest(values: Codes, block: tuple[int, ...]) -> Codes:
    """Of each block."""
    for axis, size in enumerate(block):
        if values.size:
            values = np.maximum.reduceat(values, np.arange(0, values.shape[axis], size), axis=axis)
    return values


def _kinds(x: np.ndarray[Any, Any], block: tuple[int, ...]) -> tuple[Codes, Codes, Codes]:
    """(largest finite magnitudes, places in `KINDS`, what scales are made of: three numbers of each block in a row)."""
    bits_of = x.view(np.uint32) & np.uint32(0x7FFFFFFF)
    finite = _greatest(np.where(bits_of < INFINITE, bits_of, np.uint32(0)), block).view(np.float32)
    infinite = _greatest(bits_of == INFINITE, block)
    magnitudes = _greatest(bits_of, block)
    special = [np.where(infinite, np.float32(np.inf), 0), np.where(magnitudes > INFINITE, np.float32(np.nan), 0)]
    most = np.stack([finite.ravel(), *(y.ravel() for y in special)], axis=1).astype(np.float32)
    kinds = np.select(
        [magnitudes > INFINITE, magnitudes == INFINITE, magnitudes == 0, magnitudes < 0x00800000], [4, 3, 2, 1], 0
    )
    return finite, kinds, most


DECIDED_BY = {
    "zeros": ("zero_block",),
    "subnormal": ("subnormal_blocks", "zero_block"),
    "infinite": ("infinities",),
    "NaN": ("nans",),
}
"""Kind of block -> options that say what its scale is."""


def _rules(
    x: Codes, most: Codes, shape: tuple[int, ...], fmt: BlockFormat, known: dict[str, Any]
) -> Iterator[tuple[str, str, Predict]]:
    """(name, meaning, scales under options) of every rule that makes such scales; of all numbers, or of what scales are made of."""

    def predicting(rule: ScaleRule, **more: Any) -> Predict:
        given: dict[str, Any] = {**known, **more}
        numbers = x
        if not more:
            given |= {"axis": 1, "block": most.shape[1]}
            numbers = most

        def predict(**options: Any) -> Codes | None:
            try:
                return bits.quantize(numbers, fmt, rule.name, flags="any", **{**given, **options})[0].scales.reshape(
                    shape
                )
            except ValueError:  # no NaN for a scale, or a choice that the rule lacks
                return None

        return predict

    for rule in SCALE_RULES.values():
        if (rule.kind == POWER_OF_TWO) != fmt.power_of_two_scale:
            continue
        yield rule.name, rule.meaning, predicting(rule)
        if rule.name == "te" and fmt.tensor_scale is not None and isinstance(known["tensor_scale"], str):
            for error in ("mae", "mse"):
                name = f"{rule.name}, four_over_six={error}"
                yield (
                    name,
                    f"{rule.meaning}; the largest element at 6 or at 4, by {error}",
                    predicting(rule, four_over_six=error),
                )


def _held(name: str, meaning: str, predict: Predict, masks: dict[str, Codes], found: Codes, amax: Codes) -> ScaleFit:
    """A rule under the options that explain most special blocks."""
    chosen: dict[str, str] = {}
    undecided: list[tuple[str, tuple[str, ...]]] = []
    plain = predict()
    expected = np.zeros_like(found) if plain is None else plain.copy()
    unknown = np.full(found.shape, plain is None)
    for kind, names in DECIDED_BY.items():
        mask = masks[kind]
        if not mask.any():
            continue
        best: tuple[int, dict[str, str], Codes] | None = None
        equal: list[dict[str, str]] = []
        choices = [(chosen[option],) if option in chosen else SPECIAL[option] for option in names]
        for values in itertools.product(*choices):
            options = dict(zip(names, values, strict=True))
            if options.get("subnormal_blocks") == "keep" and options["zero_block"] != choices[1][0]:
                continue  # there is no block of zeros then
            result = predict(**options)
            if result is None:
                continue
            wrong = int((result[mask] != found[mask]).sum())
            if best is None or wrong < best[0]:
                best, equal = (wrong, options, result), [options]
            elif wrong == best[0]:
                equal.append(options)
        if best is None:
            unknown |= mask
            continue
        expected[mask], unknown[mask] = best[2][mask], False
        for option in names:
            values = tuple(dict.fromkeys(options[option] for options in equal))
            kept = option == "zero_block" and best[1].get("subnormal_blocks") == "keep"
            if len(values) == 1 and not kept:
                chosen.setdefault(option, values[0])
            elif len(values) > 1 and not kept:
                undecided.append((option, values))
    return _fit(name, meaning, chosen, undecided, expected, unknown, masks, found, amax)


def _fit(
    name: str,
    meaning: str,
    chosen: dict[str, str],
    undecided: Sequence[tuple[str, tuple[str, ...]]],
    expected: Codes,
    unknown: Codes,
    masks: dict[str, Codes],
    found: Codes,
    amax: Codes,
    named: bool = True,
) -> ScaleFit:
    bad = (expected != found) | unknown
    wrong = {kind: int((bad & mask).sum()) for kind, mask in masks.items() if mask.any()}
    examples = []
    for place in np.argwhere(bad)[:EXAMPLES]:
        index = tuple(int(i) for i in place)
        code = None if unknown[index] else int(expected[index])
        examples.append(
            {"block": list(index), "amax": float(amax[index]).hex(), "expected": code, "found": int(found[index])}
        )
    return ScaleFit(name, meaning, tuple(chosen.items()), tuple(undecided), wrong, tuple(examples), named)


def _mistakes(
    fmt: BlockFormat, amax: Codes, masks: dict[str, Codes], found: Codes, tried: Sequence[ScaleFit]
) -> list[ScaleFit]:
    """What devices and libraries do that is no rule: judged by ordinary blocks alone."""
    ordinary = masks["ordinary"]
    if not (ordinary.any() and fmt.power_of_two_scale):
        return []
    results: list[ScaleFit] = []
    none = np.zeros(found.shape, bool)

    def held(name: str, meaning: str, codes: Codes) -> None:
        expected = found.copy()
        expected[ordinary] = codes
        results.append(_fit(name, meaning, {}, (), expected, none, masks, found, amax, named=False))

    flat = amax[ordinary]
    logarithm = "as floor, of a logarithm rounded to float32: one too high just below powers of two"
    held("float32 logarithm", logarithm, float32_logarithm(flat, fmt.element, fmt.scale))
    for rule in SCALE_RULES.values():
        if rule.kind != POWER_OF_TWO:
            continue
        blocks, _ = bits.quantize(flat.reshape(-1, 1), fmt, rule.name, flags="any", axis=1, block=1)
        right = blocks.scales[:, 0].astype(np.int64)
        for shift in COMMON_SHIFTS:
            meaning = f"as {rule.name}, and then {shift:+d}" + (": twice as large" if shift == 1 else "")
            held(f"{rule.name} {shift:+d}", meaning, np.clip(right + shift, 0, fmt.scale.max_code))
    return results


def _undecided(fmt: BlockFormat, fits: Sequence[ScaleFit], known: dict[str, Any]) -> list[dict[str, Any]]:
    """For each pair of rules that fit, a largest magnitude under which they part."""
    names = [fit.rule for fit in fits if fit.rule in SCALE_RULES]
    if len(names) < 2:
        return []
    scale = known.get("tensor_scale")
    tensor = None if scale is None or isinstance(scale, str) else float(scale)
    maxima = critical_maxima(Blocks(fmt, fmt, names[0], tensor), 2).view(np.float32)
    maxima = maxima[(maxima >= ROSTER["float32"].tiny)]
    order = np.argsort(np.abs(np.log2(maxima.astype(np.float64))), kind="stable")  # what is near 1 first
    column = maxima[order].reshape(-1, 1)
    given: dict[str, Any] = {} if fmt.tensor_scale is None else {"tensor_scale": tensor}
    codes = {
        name: bits.quantize(column, fmt, name, flags="any", axis=1, block=1, **given)[0].scales[:, 0] for name in names
    }
    found: list[dict[str, Any]] = []
    for first, second in itertools.combinations(names, 2):
        if any(entry["codes"][first] != entry["codes"][second] for entry in found):
            continue
        apart = np.flatnonzero(codes[first] != codes[second])
        if apart.size:
            place = int(apart[0])
            found.append(
                {"amax": float(column[place, 0]).hex(), "codes": {name: int(codes[name][place]) for name in names}}
            )
    return found
