"""Segments and chains of a grid's outputs whose sums are added up in the loop that makes them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from softfloat.engine import elementwise, segments, units, ways
from softfloat.engine.generated import narrow_numbers
from softfloat.engine.parameters import FLOAT32, available, descriptions, dots, steps, sums
from softfloat.engine.programs import Program, Site, bounds_of, is_known
from softfloat.engine.ways import Generated, Joined, Way, by_stage
from softfloat.environments import Settings
from softfloat.kernels.spec import InfiniteInput, Overflow


def in_one(planned: Program, whole: Settings, scaled: bool) -> Way | None:
    """The way that adds segments or chains up in the loop that sums them, if there is one; `scaled`: segments have scales."""
    how = planned.accumulator
    if not (how.reduction or how.chains > 1) or not planned.length or planned.wide or not elementwise.quick():
        return None
    return _in_one(planned, whole, scaled, available())


@lru_cache(maxsize=512)
def _in_one(planned: Program, whole: Settings, scaled: bool, features: tuple[bool, ...]) -> Way | None:
    """The same, on a CPU with these features."""
    how, chains = planned.accumulator, planned.accumulator.chains > 1
    if segments.draws_inside(planned) and not (
        1 < how.chains <= sums().MOST_CHAINS and not any(planned.begun.values())
    ):
        return None
    longest = -(-planned.length // how.chains) if chains else int(np.diff(bounds_of(how, planned.products)).max())
    part, below = segments.part_of(planned, longest, whole), segments.last_of_part(planned)
    way: Way | None = ways.choose(part) or units.of_grids(part, False)
    site = planned.sites[dots().RUNNING if chains else dots().LEVEL]
    if way is None or way.compensates or how.fixed is not None or len(how.reduction) > 1:
        return None
    known = all(is_known(level, {"running", "scaling", "sections"}) for level in how.reduction)
    if not (known and is_known(site.rule, ways.OF_RULES) and segments.takes(site, below)):
        return None
    above, overflow = by_stage(site, planned.policy), site.rule.overflow
    if above is None or not all(_infinities_stay(x) for x in (site, below)) or overflow is not below.rule.overflow:
        return None
    if below.rule.daz and not isinstance(way, Generated) and below.format.spec != FLOAT32:  # of which none is tiny
        return None
    scaling, stage = how.reduction[0].scaling if scaled else None, above.stage
    if scaling:
        plain = stage.native and stage.nearest and not above.bounded
        if site.rule.daz or site.rule.ftz or not plain:
            return None
        stage = stage._replace(family="float32", wide=True)
    ends = np.append(0, (np.flatnonzero(planned.closes) + 1) * planned.block)
    if chains:
        if not segments.are_chains(planned):
            return None
        some = [np.arange(chain, planned.length, how.chains) for chain in range(how.chains)]
        ends, planned = np.cumsum([0, *(x.size for x in some)]), replace(planned, index=np.concatenate(some))
    if (ends[:-1] % way.group).any():
        return None
    numbers, how_joined = (
        steps().packed(narrow_numbers(site), np.float32),
        descriptions().Join(stage, scaling or "", chains),
    )
    return replace(
        way,
        joined=Joined(how_joined, site, numbers, ends.astype(np.int64), planned),
        lowest=max(way.lowest, above.lowest),
        highest=min(way.highest, above.highest),
        bounded=way.bounded or above.bounded,
    )


def _infinities_stay(site: Site) -> bool:
    """Whether overflows of a stage are infinities, which stay, or there are none."""
    rule = site.rule
    stay = rule.overflow is Overflow.INFINITY and rule.infinite_input in (InfiniteInput.DEFAULT, InfiniteInput.KEEP)
    return rule.overflow is Overflow.SATURATE or (stay and bool(site.format.infinities))
