"""Graphcore's IPU: AMP and SLIC units, and poplibs' options in their terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from softfloat.accumulators.accumulator import Accumulator, Reduction, Stage, preset
from softfloat.checks import check_choice, check_kind, check_switch, check_whole
from softfloat.environments import as_rounding
from softfloat.formats import ROSTER, Format, check_format, float16, float32
from softfloat.kernels.spec import Overflow, Rounding

__all__ = ["amp", "from_poplar_options", "slic"]


POPLAR_PLAN_OPTIONS = frozenset(
    (
        "availableMemoryProportion",
        "enableConvDithering",
        "enableFastReduce",
        "enableTileLevelExpandDims",
        "disableTransformations",
        "experimental.convTransformsEstimates",
        "experimental.slicVmac16",
        "fullyConnectedPass",
        "gatherConvOutput",
        "gatherOutput",
        "inputRHSIsPreArranged",
        "insertTransformsCycleCountProgs",
        "pass",
        "planConstraints",
        "planConstraintsOutputFilename",
        "remapOutputTensor",
        "use128BitConvUnitLoad",
    )
)
"""Options of poplibs' convolutions and matmuls that change a result only through the plan."""


def _stages(count: int, several: bool) -> tuple[int, ...]:
    if not several or count < 16:
        return ()
    if count < 125:
        return (_root(count, 2),)
    first = _root(count * count, 3)
    return first, _root(first, 2)


def _root(x: int, degree: int) -> int:
    """floor(x^(1/degree))."""
    guess = round(x ** (1 / degree))
    return guess - (guess**degree > x)


def _poplar_type(name: str, value: Any) -> Format | None:
    types = {None: None, "half": float16, "float": float32}
    if not isinstance(value, (str, type(None))) or value not in types or (value is None and name == "partialsType"):
        raise ValueError(f"options[{name!r}] must be 'half' or 'float', got {value!r}")
    return types[value]


def _poplar_switch(name: str, value: Any) -> bool:
    switches = {True: True, False: False, "true": True, "false": False}
    if not isinstance(value, (bool, str)) or value not in switches:
        raise ValueError(f"options[{name!r}] must be True, False, 'true' or 'false', got {value!r}")
    return switches[value]


class _Datapath(NamedTuple):
    """One row of `IPU_DATAPATHS`: what one pass of the IPU's multiply-accumulate unit takes."""

    inputs: tuple[Format, ...]
    block: int
    group: int
    partials: tuple[Format, ...]


QUARTERS = (ROSTER["float8_e4m3fnuz"], ROSTER["float8_e5m2fnuz"])
IPU_DATAPATHS = {
    "half": _Datapath((float16,), 4, 16, (float16, float32)),
    "float": _Datapath((float32,), 1, 8, (float32,)),
    "quarter": _Datapath(QUARTERS, 8, 32, (float16,)),
}
"""Inputs of a phase and of a pass of four phases (eight of single), and the partials types they may have."""
IPU_MODES = ("exact", "aligned", "chained")
IPU_FRACTION_BITS = 31
DOCUMENTED = "documented behaviour, not measured on silicon"


def _single(rounding: Rounding = Rounding.NEAREST_EVEN) -> Stage:
    """The IPU's single precision: no subnormals, overflow to infinity."""
    return Stage(float32, rounding, Overflow.INFINITY, daz=True, ftz=True, always_infinite=True)


@preset
def amp(
    partials: Format | str = "float32",
    *,
    inputs: Format | str = "float16",
    out_format: Format | str | None = None,
    mode: str = "exact",
    rounding: Rounding | str = Rounding.NEAREST_EVEN,
    stochastic: bool = True,
) -> Accumulator:
    """The IPU's Accumulating Matrix Product unit: documented behaviour, not silicon.

    Half inputs: four products meet the accumulator, a single, in each of four phases; after these 16 products the
    accumulator goes to memory in the partials type.

    Parameters
    ----------
    partials : Format or str
        "half" or "float". Single inputs need "float", quarter inputs "half".
    inputs : Format or str
        "float16", "float32" (one product a phase, eight phases) or an IPU quarter format, "float8_e4m3fnuz" or
        "float8_e5m2fnuz", mixed at will (eight products a phase).
    out_format : Format or str, optional
        Of the output; default that of the inputs, half for quarter inputs.
    mode : str
        How the products of a phase meet the accumulator, which no public source settles: "exact" rounds their exact sum
        once; "aligned" cuts each term to 31 fraction bits below the largest exponent first; "chained" adds one product
        after the other.
    rounding : Rounding or str
        Of the accumulator; "nearest_even" or "toward_zero", likewise unsettled.
    stochastic : bool
        False leaves stochastic rounding out where half partials are stored (`disableSRForAMPVertices`).

    Notes
    -----
    Stores, and the output, follow the call's options: `Environment.ipu(esr=..., nanoo=...)` rounds stochastically,
    saturates or makes NaN. The accumulator itself is a single without subnormals.

    Source: Graphcore's ISA documents and poplibs: dot-4 phases, one rounding of half partials for each 16 inputs.
    """
    return _ipu("amp", 1, partials, inputs, out_format, mode, rounding, stochastic)


@preset
def slic(
    partials: Format | str = "float32",
    *,
    window: int = 4,
    inputs: Format | str = "float16",
    out_format: Format | str | None = None,
    mode: str = "exact",
    rounding: Rounding | str = Rounding.NEAREST_EVEN,
    stochastic: bool = True,
) -> Accumulator:
    """The IPU's slim convolution: the phases of `amp`, one for each position of a 1 x `window` kernel, 3 or 4 of them.

    k runs over positions of the window, four channels each; partials are stored after each pass of the window. In
    convolutions the group is four input channels. Everything else as in `amp`.
    """
    if isinstance(window, float) or window not in (3, 4):
        raise ValueError(f"window must be 3 or 4, got {window!r}")
    return _ipu("slic", window, partials, inputs, out_format, mode, rounding, stochastic)


def _ipu(
    unit: str,
    window: int,
    partials: Format | str,
    inputs: Format | str,
    out_format: Format | str | None,
    mode: str,
    rounding: Rounding | str,
    stochastic: bool,
) -> Accumulator:
    memory, operand, path = _datapath(partials, inputs)
    check_choice("mode", mode, IPU_MODES)
    direction = as_rounding(rounding)
    if direction not in (Rounding.NEAREST_EVEN, Rounding.TOWARD_ZERO):
        raise ValueError(f"rounding must be 'nearest_even' or 'toward_zero', got {rounding!r}")
    check_switch("stochastic", stochastic)
    group = path.group if unit == "amp" else path.block * window
    out = (
        check_format(out_format, "out_format")
        if out_format is not None
        else float16
        if operand in QUARTERS
        else operand
    )
    store = None
    if memory == float16:
        store = Stage(float16, None if stochastic else Rounding.NEAREST_EVEN)
    chosen = {"inputs": operand.name, "mode": mode, "rounding": direction.name.lower(), "stochastic": stochastic}
    defaults = {"inputs": "float16", "mode": "exact", "rounding": "nearest_even", "stochastic": True}
    if unit == "slic":
        chosen, defaults = {"window": window, **chosen}, {"window": 4, **defaults}
    if out_format is not None:
        chosen["out_format"] = out.name
    shown = "".join(f", {name}={value!r}" for name, value in chosen.items() if value != defaults.get(name))
    return Accumulator(
        name=f"{unit}({memory.name!r}{shown})",
        inputs=path.inputs,
        running=_single(direction),
        block=1 if mode == "chained" else path.block,
        fraction_bits=IPU_FRACTION_BITS if mode == "aligned" else None,
        store=store,
        store_every=group if store else 1,
        order=tuple(range(group)),
        daz=operand == float32,
        channel_group=path.group if unit == "amp" else path.block,
        result=out,
        note=DOCUMENTED,
    )


def _datapath(partials: Format | str, inputs: Format | str) -> tuple[Format, Format, _Datapath]:
    """Both formats, and the row that serves them."""
    names = {"half": "float16", "float": "float32"}
    memory = check_format(names.get(partials, partials) if isinstance(partials, str) else partials, "partials")
    operand = check_format(names.get(inputs, inputs) if isinstance(inputs, str) else inputs, "inputs")
    path = next((x for x in IPU_DATAPATHS.values() if operand in x.inputs), None)
    if path is None:
        accepted = [x.name for path in IPU_DATAPATHS.values() for x in path.inputs]
        raise ValueError(f"inputs must be one of {', '.join(map(repr, accepted))}, got {operand.name!r}")
    if memory not in path.partials:
        raise ValueError(
            f"partials must be {' or '.join(repr(x.name) for x in path.partials)} for {operand.name} inputs, got {memory.name!r}"
        )
    return memory, operand, path


def from_poplar_options(
    options: Mapping[str, Any],
    *,
    inputs: Format | str = "float16",
    out_format: Format | str | None = None,
    splits: int | tuple[int, ...] | None = None,
    stages: tuple[int, ...] | None = None,
    mode: str = "exact",
) -> Accumulator:
    """The accumulator that poplibs' matmul and convolution options describe (`amp`, reduced across tiles).

    Parameters
    ----------
    options : mapping
        Names and values as poplibs spells them. "partialsType", "partialsType.interTile", "partialsType.interIPU"
        ("half" or "float"), "enableMultiStageReduce" and "disableSRForAMPVertices" (bool, "true" or "false") are
        numeric; one IPU is modelled, so that "interIPU" has no effect. Names in `POPLAR_PLAN_OPTIONS` only move the
        planner's choices, which `splits` states, and are accepted without effect. Defaults are those of poplibs'
        code; its documentation says that "interTile" follows "partialsType", the code has float.
    inputs : Format or str
        Type of the operands.
    out_format : Format or str, optional
        Type of the output; default that of the operands.
    splits : int or tuple of int, optional
        In how many parts, or parts of what lengths, tiles share k. A plan knows; None: one tile has all of it.
    stages : tuple of int, optional
        Sections after each stage but the last of the reduction; default: none below 16 partials, floor(P^(1/2))
        below 125, floor(P^(2/3)) and the square root of that from there (poplibs, ConvReducePlan.cpp, which also
        weighs each against one more by a cost model not reproduced here).
    mode : str
        As in `amp`.

    Raises
    ------
    ValueError
        Naming an unknown option or value.
    """
    check_kind("options", options, Mapping)
    if splits is None and stages is not None:
        raise ValueError("stages are those of a reduction across tiles, and need splits")
    if splits is not None:
        splits = tuple(splits) if isinstance(splits, (tuple, list)) else splits
        for part in splits if isinstance(splits, tuple) else (splits,):
            check_whole("splits", part, 1)
        splits = splits if isinstance(splits, tuple) else int(splits)
    known = {"partialsType": "float", "partialsType.interTile": None, "partialsType.interIPU": None}
    switches = {"enableMultiStageReduce": True, "disableSRForAMPVertices": False}
    unknown = set(options) - set(known) - set(switches) - POPLAR_PLAN_OPTIONS
    if unknown:
        raise ValueError(
            f"options has {', '.join(map(repr, sorted(unknown)))}; "
            f"accepted: {', '.join(map(repr, [*known, *switches, *sorted(POPLAR_PLAN_OPTIONS)]))}"
        )
    types = {name: _poplar_type(name, options.get(name, default)) for name, default in known.items()}
    flags = {name: _poplar_switch(name, options.get(name, default)) for name, default in switches.items()}
    operand = check_format(inputs, "inputs")
    out = operand if out_format is None else check_format(out_format, "out_format")
    partials = types["partialsType"]
    assert partials is not None
    if out.p > partials.p:  # never narrower than the output
        partials = float32
    core = amp(
        partials,
        inputs=operand,
        out_format=out,
        mode=mode,
        stochastic=not flags["disableSRForAMPVertices"],
    )
    name = f"from_poplar_options({dict(options)!r}, splits={splits!r})"
    if splits is None:
        return core
    between = types["partialsType.interTile"] or float32
    count = splits if isinstance(splits, int) else len(splits)
    if between.p < out.p:
        between = float32
    adding = _single()
    stored = Stage(between)
    depths = stages if stages is not None else _stages(count, flags["enableMultiStageReduce"])
    levels = (*(Reduction(adding, sections, stored) for sections in depths), Reduction(adding))
    return core.replace(
        name=name,
        segments=splits,
        reduction=levels,
        source=core.source + "; poplibs ConvReduce.cpp, ReduceAdd.S: sums of partials in single, rounded once",
    )
