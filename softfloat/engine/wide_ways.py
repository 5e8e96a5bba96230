"""Which sums in wide formats generated loops serve: those of finite numbers of which none is tiny or huge."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from softfloat.engine import elementwise, ways
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import descriptions, dots, is_unusual, numbers, steps, wide_elements
from softfloat.engine.programs import Program, Site
from softfloat.kernels.spec import CARRIER64, FLOAT64, OVERFLOW


class _Double(ways.Generated):
    """By the CPU's operations in float64, and what these lose."""

    @property
    def carrier(self) -> type:
        """What loops compute in."""
        return np.float64

    @property
    def results(self) -> type | None:
        """Values, which are codes of float64."""
        return np.float64 if self.site.format.spec == FLOAT64 else None

    @property
    def taken(self) -> int:
        """Bits of float64 that the format has not."""
        return FLOAT64.mantissa_bits - self.site.format.mantissa_bits

    def numbers(self, planned: Program) -> Any:
        """Those of bits, of units in the last place, and what random bits after the first 16 may add."""
        return steps().Numbers(
            below=(1 << self.taken) - 1,
            tie=1 << self.taken >> 1,
            per_quantum=(2 * CARRIER64.bias + self.site.format.mantissa_bits) << FLOAT64.mantissa_bits,
            undecided=2.0**-16 if self.site.width > 16 else 0.0,
        )

    @cached_property
    def stage(self) -> Any:
        """How products and sums round."""
        return descriptions().Stage(*_manner(self.site))

    @cached_property
    def rounding(self) -> dict[str, Codes]:
        """What rounds with all random bits takes."""
        fmt = self.site.format.spec
        integers, floats = numbers(fmt, fmt, self.site.rule._replace(daz=False), CARRIER64, wide=True)
        return {"integers": integers, "floats": floats}


class _OneByOne(_Double, ways.OneByOne):
    """Deterministic, of products that are fused, or rounded as the sum is."""


class _Settled(_Double, ways.Settled):
    """Deterministic, in pairs, or with errors made up for."""


class _Exact(_Settled):
    """Rounded once. Where three numbers do not hold a sum, it is infinite, and left to the loop that holds all."""

    @property
    def compensates(self) -> bool:
        """Whether what is lost is kept."""
        return True

    def leaves(self, flags: Codes) -> bool:
        """Whether some output is left to that loop."""
        return bool(np.any(flags & OVERFLOW))


class _Drawn(_Double, ways.Drawn):
    """Rounded stochastically."""


KNOWN = (ways.COMPENSATED | {"tree", "block"}) - {"order"}
"""Fields of accumulators that these loops know."""
NORMAL, HIGHEST = FLOAT64.mantissa_bits - 1074, 1022
"""Powers of two below which no bit lies, so that half units are normal, and that no sum reaches, of float64."""


def _manner(site: Site) -> Any:
    """As steps know it."""
    family = "float64" if site.format.mantissa_bits == FLOAT64.mantissa_bits else "float64_shorter"
    return steps().Manner(family, site.rule.rounding.name.lower(), wide=True)


def operation_of(planned: Program) -> str:
    """The order in which a program adds up products, each chain or segment by itself."""
    how = planned.accumulator
    if planned.kind == dots().EXACT:
        return "exact"
    return "pairwise" if how.tree else how.compensation or ("fma" if how.product is None else "mul_add")


def way_of(planned: Program) -> ways.Generated | None:
    """The generated loop of a program's sums, if there is one."""
    if not elementwise.quick() or not planned.length or not wide_elements().HAS_FUSED:
        return None
    return _choose(planned)


@lru_cache(maxsize=512)
def _choose(planned: Program) -> ways.Generated | None:
    how, stages = planned.accumulator, dots()
    sites = [planned.sites[n] for n in (stages.RUNNING, stages.PRODUCT) if n in planned.sites]
    kinds = {(site.format.spec, site.rule.rounding, site.width) for site in sites}
    site, fmt = sites[0], sites[0].format
    if len(kinds) > 1 or is_unusual(fmt.spec) or planned.daz or not ways.only(how, KNOWN):
        return None
    exact = planned.kind == stages.EXACT
    apart = how.tree or how.compensation is not None
    drawn, flushes = site.rule.rounding.draws, site.rule.daz or site.rule.ftz
    if drawn and (exact or not site.rule.restated or (apart and planned.goes_on)):
        return None
    highest = min(HIGHEST, fmt.emax)
    given: dict[str, Any] = {
        "operation": operation_of(planned),
        "site": site,
        "lowest": max(NORMAL, fmt.emin - (0 if flushes else fmt.mantissa_bits)),
        "highest": highest,
        "most": highest,
    }
    if drawn:
        return _Drawn(wide=True, **given)
    return (_Exact if exact else _Settled if apart else _OneByOne)(manner=_manner(site), **given)
