"""From measurements to accumulators: which orders of summation give the same losses, and what else may be inside."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.accumulators import Accumulator, Reduction, Stage, fixed_point
from softfloat.accumulators.accumulator import MAXIMUM_REGISTER, MAXIMUM_WEIGHT
from softfloat.environments import Rounding
from softfloat.formats import ROSTER, Format, float16, float32
from softfloat.testing.identification.probes import MODES, Measurement, Structure

__all__ = ["Candidate", "descriptions", "registers", "spelled", "structures_of"]

REGISTERS = (16, 24, 32, 40, 48)
"""Widths that are tried where results do not fill a register."""
ROUNDINGS = tuple(Rounding[x.upper()] for x in MODES)


@dataclass(frozen=True)
class Candidate:
    """An accumulator under the call's options.

    Attributes
    ----------
    accumulator : Accumulator
    options : dict
        Keywords for `bits.vecdot`, those that differ from the defaults.
    preset : bool
        Whether it is a row of `PRESETS`, and not built from measurements.
    """

    accumulator: Accumulator
    options: Mapping[str, Any] = field(default_factory=dict)
    preset: bool = True

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return repr(self.accumulator) + (f" with {settings}" if settings else "")


# -- structures ------------------------------------------------------------------------------------------------------


def _format_with(mantissa_bits: int, top: int, prefer: Sequence[Format]) -> list[Format]:
    """Formats of so many fraction bits that reach 2^top: preferred ones first, then those with a name, then any."""
    if not 1 <= mantissa_bits <= float32.mantissa_bits:
        return []
    named = [
        fmt
        for fmt in (*prefer, *ROSTER.values())
        if fmt.mantissa_bits == mantissa_bits and fmt.emax >= top and fmt.zero
    ]
    named.sort(key=lambda fmt: fmt not in prefer)
    if not any(fmt in prefer for fmt in named):
        named.append(Format(f"e8m{mantissa_bits}", exponent_bits=8, mantissa_bits=mantissa_bits))
    return list(dict.fromkeys(named))


def structures_of(found: Measurement) -> list[Structure]:
    """Which orders give these losses, the simpler first: each is tried as an accumulator on the very same rows."""
    asked, length = found.asked, found.asked.length
    memory = asked.partials
    depths = list(dict.fromkeys(found.survives.values()))[:6]
    formats = [memory]
    for depth in dict.fromkeys(depths):
        if 0 < depth < found.reach and depth <= 23:
            formats += _format_with(depth, found.high + 1, (memory, *asked.formats))[:1]
    names = ("rounding", "daz", "ftz")
    options = engine.as_environment({name: value for name, value in found.settings.items() if name in names})
    a, b, c = found.order_rows
    near = np.array([i <= 0 for i, _ in found.order_pairs])
    matching: list[Structure] = []
    for running in dict.fromkeys(formats):
        for label, changes in _guesses(found, running, depths):
            try:
                accumulator = Accumulator(name=label, **{"running": Stage(running), **changes})
                if accumulator.partials != memory:
                    accumulator = accumulator.replace(
                        store=Stage(memory), store_every=max(accumulator.block, 1) * length
                    )
            except ValueError:  # no such combination
                continue
            agrees = True
            for part in (near, ~near):
                if not part.any():
                    continue
                codes, _ = bits.vecdot(
                    a[part], b[part], asked.formats, accumulator, c[part], out_format=asked.output, **options
                )
                if not np.array_equal(codes, found.order_codes[part]):
                    agrees = False
                    break
            if agrees and (label, changes) not in matching:
                matching.append((label, changes))
    return matching


def _guesses(found: Measurement, running: Format, depths: Sequence[int]) -> Iterator[Structure]:
    """Orders whose sizes are those in which losses come."""
    asked, length, lost = found.asked, found.asked.length, found.lost
    from_addend = [lost[-1, j] for j in range(length)]
    from_first = [lost[0, j] for j in range(1, length)]
    cuts = [depth for depth in dict.fromkeys(depths) if 1 <= depth <= 40 and depth < found.reach]

    def blocks(sizes: Sequence[int], **more: Any) -> Iterator[Structure]:
        for size in dict.fromkeys(sizes):
            if not 1 < size <= length:
                continue
            yield f"blocks of {size} added exactly, one after the other", {"block": size, **more}
            for depth in cuts:
                if (size + 1) << (depth + 2) <= 1 << 53:
                    kwargs = {"block": size, "fraction_bits": depth, **more}
                    yield f"blocks of {size} cut below the largest exponent, one after the other", kwargs

    yield "one product after the other", {"block": 1}
    groups = _groups(from_addend)
    inner = [*_groups([None, *from_first])[:1], *groups[:1]]
    inner_sizes = [x + step for x in inner for step in (0, 1)]
    if all(x == 0 for x in lost.values()):
        yield "everything at once, exactly", {"block": 0}
    else:
        yield from blocks([*groups[:1], *inner_sizes, length])
    if None not in from_addend:
        ranks = sorted(range(length), key=lambda j: (from_addend[j], j))
        order = _period(ranks)
        if order != tuple(range(len(order))):
            yield f"products in the order {_ordered(order)}", {"block": 1, "order": order}
            for label, changes in blocks(groups[:1]):
                if len(order) % changes["block"] == 0:
                    yield f"{label}, in the order {_ordered(order)}", {**changes, "order": order}
    yield "pairs, pairs of pairs ...", {"tree": True, "product": Stage(running)}
    for n in range(2, length // 2 + 1):
        yield f"{n} interleaved chains, added in order", {"chains": n}
    whole = {"reduction": (Reduction(Stage(asked.partials)),)}
    within = [x + 1 for x in dict.fromkeys(from_addend) if x][:3]
    for n in dict.fromkeys([*groups[:1], *inner_sizes, *within]):
        if not 1 < n <= length:
            continue
        yield f"chunks of {n}, their sums added in order", {"segment": n, **whole}
        for label, changes in blocks([x for x in (*inner_sizes, 2, 4, 8, 16, 32) if x <= n], segment=n, **whole):
            yield f"chunks of {n}, inside {label}; sums of chunks added in order", changes
        losses = [-1, *(lost[0, j] for j in range(1, n))]
        order = tuple(sorted(range(n), key=lambda j: (math.inf if losses[j] is None else losses[j], j)))
        if order != tuple(range(n)):
            first = sum(losses[j] == losses[order[1]] for j in order[1:]) + 1
            more = {"segment": n, "order": order, **whole}
            yield f"chunks of {n} in the order {_ordered(order)}, their sums added in order", more
            for label, changes in blocks([first], **more):
                yield f"chunks of {n} in the order {_ordered(order)}, inside {label}; sums added in order", changes


def _groups(losses: Sequence[int | None]) -> list[int]:
    """How many places have the smallest loss, the next ..."""
    numbers = sorted(x for x in losses if x is not None)
    return [len(list(members)) for _, members in itertools.groupby(numbers)]


def _period(ranks: Sequence[int]) -> tuple[int, ...]:
    """The shortest group whose order, repeated, is this."""
    length = len(ranks)
    for n in range(1, length + 1):
        if length % n == 0 and all(ranks[i] == ranks[i % n] + i // n * n for i in range(length)):
            return tuple(ranks[:n])
    return tuple(ranks)


def _ordered(order: Sequence[int]) -> str:
    return ", ".join(map(str, order[:8])) + (", ..." if len(order) > 8 else "")


# -- descriptions ----------------------------------------------------------------------------------------------------


def descriptions(found: Measurement) -> Iterator[list[Candidate]]:
    """Accumulators with the measured properties, in groups that differ in what probes do not settle."""
    asked, length = found.asked, found.asked.length
    memory = asked.partials
    measured = [Rounding[x.upper()] for x in found.modes]
    for _, changes in found.structures[:8] or [("", {"block": 1})]:
        block = changes.get("block", 1) or length
        segment = changes.get("segment")
        depth_at = {j: depth for (addend, j), depth in found.survives.items() if not addend}
        later = [depth for j, depth in sorted(depth_at.items()) if j >= block and (segment is None or j < segment)]
        running_bits = later[0] if later and later[0] < found.reach else None
        if segment is not None and depth_at:
            inside = [depth for j, depth in depth_at.items() if j < segment] or [depth_at[2]]
            running_bits = min(inside) if block > 1 else depth_at[2]
        if block == 1 and running_bits is None:
            running_bits = found.survives.get((True, 1))
        if running_bits is None:
            running_bits = found.bits
        if running_bits is None or running_bits >= found.reach or running_bits > 23 or running_bits < 1:
            running_bits = memory.mantissa_bits
        store_every = next(
            (j for j, depth in sorted(depth_at.items()) if j >= block and depth < running_bits and segment is None),
            None,
        )
        if segment is None and store_every is None and running_bits > memory.mantissa_bits:
            store_every = -(-length // block) * block
        intervals: list[int | None] = [store_every]
        runnings = _format_with(running_bits, found.high + 1, (memory, *asked.formats))[:3]
        if changes.get("fraction_bits") == running_bits:  # the cut may hide how many bits the sum has
            runnings.append(memory)
        if segment is not None:  # the sum of sums may hide how many bits a chunk's own sum has
            runnings += [memory, *(ROSTER[x] for x in ("float16", "bfloat16", "float32")), *asked.formats]
        products: list[Format | None] = [None]
        if block == 1 and not changes.get("tree"):
            products += [
                *runnings[:1],
                *_format_with(found.product_bits or 0, found.high, (memory, *asked.formats))[:2],
            ]
        wider = [None, float16] if "fraction_bits" in changes and asked.formats[0].bits < float16.bits else [None]
        cuts: list[int | None] = [changes.get("fraction_bits")]
        if block == 1 and found.product_bits is not None and 23 < found.product_bits <= 40:
            cuts.append(found.product_bits)  # a single product and the sum, aligned
        for running, every, product, unpacked, cut in itertools.product(
            dict.fromkeys(runnings), intervals, dict.fromkeys(products), wider, cuts
        ):
            group = []
            outside = memory if (every or running != memory) and segment is None else None
            stores: Sequence[Rounding | None] = (
                ROUNDINGS if outside is not None and running_bits > memory.mantissa_bits else (None,)
            )
            inner_modes = ROUNDINGS if stores[0] is not None or segment else measured
            switches = (False, True), (False, True), (True, False) if cut is not None else (False,)
            for mode, stored, flush, infinite, positive in itertools.product(inner_modes, stores, *switches):
                if infinite and mode.nearest:
                    continue  # infinite anyway
                stage = Stage(running, mode, daz=flush or None, ftz=flush or None, always_infinite=infinite)
                parameters: dict[str, Any] = {
                    **changes,
                    "running": stage,
                    "daz": found.settings.get("daz") or None,
                }
                parameters |= {"unpacked": unpacked, "fraction_bits": cut, "positive_zeros": positive}
                if parameters.get("tree") or product is not None:
                    parameters["product"] = Stage(product or running, measured[0])
                if outside is not None:
                    parameters["store"] = Stage(outside, stored or measured[0])
                    parameters["store_every"] = -(-(every or block) // block) * block
                if segment is not None:
                    parameters["reduction"] = (Reduction(Stage(memory, measured[0])),)
                try:
                    accumulator = Accumulator(name="measured", **parameters)
                except ValueError:
                    continue
                options = {k: v for k, v in found.settings.items() if k == "overflow" and v != "infinity"}
                group.append(Candidate(accumulator, options, preset=False))
            yield group


def registers(results: np.ndarray[Any, Any], memory: Format) -> list[Accumulator]:
    """Fixed-point sums whose last bit is the lowest that these results have, as wide as the largest, or as registers are."""
    magnitudes = np.abs(results[np.isfinite(results) & (results != 0)])
    if not magnitudes.size:
        return []
    fractions, exponents = np.frexp(magnitudes)
    wholes = (fractions * 2.0**53).astype(np.int64)
    lowest = int((exponents - 53 + np.frexp((wholes & -wholes).astype(np.float64))[1] - 1).min())
    least = int(np.ceil(np.log2(magnitudes.max()))) - lowest + 1
    if least > MAXIMUM_REGISTER or abs(lowest) > MAXIMUM_WEIGHT:
        return []
    widths = sorted({max(2, least), *(x for x in REGISTERS if x > least)})
    kinds = itertools.product(widths, ("wrap", "saturate"), ("toward_negative", "toward_zero"))
    return [fixed_point(width, lowest, memory, overflow, cut) for width, overflow, cut in kinds]


def spelled(accumulator: Accumulator) -> str:
    """The call that makes a measured accumulator."""
    parts = [f"running={_stage_text(accumulator.running)}"]
    for name in ("product", "store"):
        stage = getattr(accumulator, name)
        if stage is not None:
            parts.append(f"{name}={_stage_text(stage)}")
    for name, default in (
        ("block", 1), ("fraction_bits", None), ("store_every", 1), ("order", (0,)), ("chains", 1), ("tree", False),
        ("segment", None), ("daz", None), ("unpacked", None), ("positive_zeros", False),
    ):  # fmt: skip
        value = getattr(accumulator, name)
        if value != default and not (name == "daz" and value is False):
            parts.append(
                f"{name}={value.name if isinstance(value, Format) else value!r}".replace("=float16", "='float16'")
            )
    if accumulator.reduction:
        parts.append(f"reduction=(Reduction({_stage_text(accumulator.reduction[0].running)}),)")
    return f"Accumulator({', '.join(parts)})"


def _stage_text(stage: Stage) -> str:
    extra = "".join(f", {name}=True" for name in ("daz", "ftz", "always_infinite") if getattr(stage, name))
    mode = f", {stage.rounding.name.lower()!r}" if stage.rounding is not None else ""
    fmt = stage.format
    known = ROSTER.get(fmt.name) == fmt
    named = repr(fmt.name) if known else f"Format({fmt.name!r}, {fmt.exponent_bits}, {fmt.mantissa_bits})"
    return f"Stage({named}{mode}{extra})"
