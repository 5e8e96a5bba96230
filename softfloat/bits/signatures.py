"""What signatures and docstrings say of options: one table, from which those of every function in `softfloat.bits` are made.

Type checkers and editors read `typing.Unpack[Options]`; `help`, `inspect.signature` and the site read what `describe` has made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from softfloat.engine.options import CALL_OPTIONS, CHOICES, COMPARISONS, DRAWING, ENVIRONMENT_OPTIONS, STEPS, uses_of
from softfloat.environments import GENERATORS, InfiniteInput, Overflow, Rounding, Settings, Tininess
from softfloat.kernels.spec import NAN_POLICIES, PROJECTIONS, SR_METHODS

__all__ = ["FAMILIES", "OPTIONS", "Option", "describe", "options_text"]


class Option(NamedTuple):
    """What an option of functions on codes takes, what it stands at, and what it does, in a sentence; and what else is to say."""

    accepted: str
    default: Any
    meaning: str
    more: str = ""


def _words(words: Iterable[str]) -> str:
    return f"{{{', '.join(map(repr, words))}}}"


def _members(kind: type[IntEnum]) -> str:
    return _words(name.lower() for name in kind.__members__)


def _setting(name: str, accepted: str, meaning: str) -> tuple[str, Option]:
    default = getattr(Settings, name)
    return name, Option(accepted, default.name.lower() if isinstance(default, IntEnum) else default, meaning)


OPTIONS: dict[str, Option] = dict(
    [
        _setting("rounding", _members(Rounding), "How results are rounded."),
        _setting("overflow", _members(Overflow), "What a finite result beyond the largest number becomes."),
        _setting("tininess", _members(Tininess), "Whether results are tiny before or after rounding, for UNDERFLOW."),
        _setting("infinite_input", _members(InfiniteInput), "What conversions make of infinite operands."),
        _setting("daz", "bool", "Subnormal operands count as zero."),
        _setting("ftz", "bool", "Tiny results become zero."),
        _setting("converts_subnormals", "bool", "Conversions keep subnormal numbers whatever `daz` and `ftz` say."),
        _setting("nan", _words(NAN_POLICIES), "Which NaN results have, and which operands raise INVALID."),
        _setting("projection", _words(PROJECTIONS), "The rules of IEEE 754 or those of P3109, where they differ."),
        _setting("sr_bits", "int, optional", "Random bits of a stochastic rounding, 1 to 52; None: 52."),
        _setting("sr_method", _words(SR_METHODS), "How the dropped fraction is cut to `sr_bits` bits."),
        _setting("generator", _words(GENERATORS), "Where random bits come from."),
        _setting("seed", "int, optional", "Of random bits; roundings that draw need it, or `random_bits`."),
    ],
    stream=Option(
        "int",
        0,
        "Which stream of random numbers, under one seed.",
        "Element i takes those of position i; in sums of products, output and step are the address.",
    ),
    position=Option(
        "Position or int, optional",
        None,
        "Where the result lies in the whole of which it is a block.",
        "Random numbers are then those of the whole, so that cutting an array changes no bit. `Position(index, shape)` is the index of "
        "the block's first element and the shape of the whole; an integer is the number of the first of elements that follow each "
        "other in the whole. Sums of parts of k are cut where the accumulator cuts: see `segments` and `join_segments`. None: the "
        "result is the whole.",
    ),
    random_bits=Option(
        "array of int, optional",
        None,
        'The random numbers themselves, 0 to 2^sr_bits - 1, one for each element; 0 or 1 for "up_or_down".',
        "`sr_bits` defaults to the width of the dtype. A magnitude goes up if floor(f * 2^sr_bits) + random_bits >= 2^sr_bits, f its "
        "distance from the candidate below in units of the distance between the candidates, of the exact result (`sr_method` cuts f "
        "otherwise). Not for sums of products, which round many times.",
    ),
    environment=Option(
        "Environment, optional",
        None,
        "All settings at once, in place of those above.",
        "Of an environment, its settings and its `position` are used, and nothing in it changes.",
    ),
    out=Option("array, or pair of arrays, optional", None, "Where to put the result, or the result and its flags."),
    flags=Option(
        "{'each', 'any'}",
        "each",
        "A byte of flags for each element, or one integer, all flags OR-ed together.",
        "Bit values: 1 inexact, 2 underflow, 4 overflow, 8 divide-by-zero, 16 invalid (`softfloat.Flags`).",
    ),
)
"""Options by name, in the order of signatures: settings as `softfloat.Environment` describes them, then what concerns one call."""

SETTINGS = set(OPTIONS) & ENVIRONMENT_OPTIONS

FAMILIES: dict[str, tuple[str, ...]] = {
    "Numbers, codes and conversions": (
        "encode", "decode", "convert", "to_integer", "scalar", "random_bits", "arm_convert", "avx10_convert",
    ),
    "Arithmetic": (
        "add", "sub", "mul", "div", "fma", "sqrt", "remainder", "fmod", "modulo", "floor_divide", "round_to_integral",
    ),
    "Comparisons": ("eq", "lt", "le", "minimum", "maximum", "minimum_number", "maximum_number"),
    "Classes, signs and neighbours": (
        "classify", "CLASSES", "isnan", "issnan", "isinf", "isfinite", "isnormal", "issubnormal", "iszero", "signbit",
        "negative", "abs", "copysign", "next_up", "next_down",
    ),
    "Exponentials, logarithms and powers": (
        "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "logaddexp2", "pow", "cbrt", "hypot",
        "nvidia_ex2", "nvidia_tanh",
    ),
    "Trigonometric and hyperbolic functions": (
        "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "degrees", "radians", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    ),
    "Sums and convolutions": (
        "vecdot", "matmul", "sum", "cumsum", "conv1d", "conv2d", "conv2d_input_gradient", "conv2d_weight_gradient", "matmul_split",
        "split_parts", "segments", "join_segments", "Counts",
    ),
    "Blocks": ("quantize", "dequantize", "vecdot_blocks", "matmul_blocks", "BlockCodes", "BlockCounts"),
}  # fmt: skip
"""What `softfloat.bits` offers, by subject: a page of the reference each."""

_SUMS = {"random_bits"}
WITHOUT: dict[str, set[str]] = {
    **dict.fromkeys((*FAMILIES["Sums and convolutions"], "vecdot_blocks", "matmul_blocks"), _SUMS),
    "cumsum": _SUMS | {"out"},
    "matmul_split": _SUMS | {"out", "stream", "position"} | DRAWING,
    "quantize": {"out"},
    "scalar": {"out", "flags", "random_bits"},
}
"""Call options, and settings, that a function has no use for."""

DEFAULTS = {"quantize": {"overflow": "saturate"}}
"""Of functions whose settings stand at something else."""


def taken(name: str) -> list[str]:
    """The options that do something in a function, in order."""
    whole = name in WITHOUT  # functions whose settings are those of every step
    uses = uses_of(name)
    settings = SETTINGS if whole else uses.settings
    drawn = whole or uses not in (COMPARISONS, CHOICES, STEPS)
    call = CALL_OPTIONS if drawn else CALL_OPTIONS - {"stream", "position", "random_bits"}
    return [option for option in OPTIONS if option in settings | call and option not in WITHOUT.get(name, ())]


def describe(function: Callable[..., Any], keywords: Mapping[str, Any] | None = None) -> None:
    """Write the options of a function into its signature and its docstring, and there the names of its family, too.

    `keywords` has defaults of others that it takes with them.
    """
    name = function.__name__
    signature = inspect.signature(function)
    *parameters, last = signature.parameters.values()
    parts = [] if function.__doc__ is None else [inspect.cleandoc(function.__doc__)]
    if last.kind is last.VAR_KEYWORD:
        options = taken(name)
        own = DEFAULTS.get(name, {})
        parameters += [inspect.Parameter(x, KEYWORD, default=value) for x, value in (keywords or {}).items()]
        added = [PARAMETERS[option].replace(default=own.get(option, OPTIONS[option].default)) for option in options]
        function.__signature__ = signature.replace(parameters=[*parameters, *added])  # type: ignore[attr-defined]
        lines = [f"{option} : {OPTIONS[option].accepted}\n    {OPTIONS[option].meaning}" for option in options]
        parts.append("\n".join(["Other Parameters", "----------------", *lines]))
    for family in FAMILIES.values():
        if name in family:
            parts.append("See Also\n--------\n" + ", ".join(x for x in family if x not in (name, "CLASSES")))
    if function.__doc__ is not None:
        function.__doc__ = "\n\n".join(parts)


KEYWORD = inspect.Parameter.KEYWORD_ONLY
PARAMETERS = {name: inspect.Parameter(name, KEYWORD, default=option.default) for name, option in OPTIONS.items()}


def options_text() -> str:
    """All options with everything that is to say of them, as a list of definitions."""
    lines = []
    for name, option in OPTIONS.items():
        default = f"; default {option.default!r}" if option.default is not None else ""
        lines.append(
            f"{name} : {option.accepted}{default}\n    {' '.join(filter(None, (option.meaning, option.more)))}"
        )
    return "\n".join(lines)
