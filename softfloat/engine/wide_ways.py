"""Which sums in float64 generated loops serve: those of finite numbers of which none is tiny or huge."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from softfloat.engine import elementwise, ways
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import descriptions, dots, numbers, steps, wide_elements
from softfloat.engine.programs import Program
from softfloat.kernels.spec import CARRIER64, FLOAT64, OVERFLOW


class _Double(ways.Generated):
    """By the CPU's operations in float64, and what these lose."""

    @property
    def carrier(self) -> type:
        """What loops compute in."""
        return np.float64

    @property
    def results(self) -> type | None:
        """Values, which are codes."""
        return np.float64

    def numbers(self, planned: Program) -> Any:
        """No step asks for any."""
        return steps().Numbers()

    @cached_property
    def stage(self) -> Any:
        """How products and sums round."""
        return descriptions().Stage("float64", self.site.rule.rounding.name.lower(), wide=True)

    @cached_property
    def rounding(self) -> dict[str, Codes]:
        """What rounds with all random bits takes."""
        integers, floats = numbers(FLOAT64, FLOAT64, self.site.rule._replace(daz=False), CARRIER64, wide=True)
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
"""Powers of two below which no bit lies, so that half units are normal, and that no sum reaches."""


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
    if len(kinds) > 1 or sites[0].format.spec != FLOAT64 or planned.daz or not ways.only(how, KNOWN):
        return None
    exact = planned.kind == stages.EXACT
    apart = how.tree or how.compensation is not None
    drawn = sites[0].rule.rounding.draws
    if drawn and (exact or not sites[0].rule.restated or (apart and planned.goes_on)):
        return None
    operation = (
        "exact"
        if exact
        else "pairwise"
        if how.tree
        else how.compensation or ("fma" if how.product is None else "mul_add")
    )
    given: dict[str, Any] = {
        "operation": operation,
        "site": sites[0],
        "lowest": NORMAL,
        "highest": HIGHEST,
        "most": HIGHEST,
    }
    if drawn:
        return _Drawn(wide=True, **given)
    manner = steps().Manner("float64", sites[0].rule.rounding.name.lower(), wide=True)
    return (_Exact if exact else _Settled if apart else _OneByOne)(manner=manner, **given)
