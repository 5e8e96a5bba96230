"""Panels of factorizations and triangular systems by `softfloat.kernels.panels`, where that serves."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from softfloat.engine.arguments import Codes
from softfloat.engine.elementwise import carrier_for, goes_wide
from softfloat.engine.parameters import floor_of, numbers, rule_for, spared, way_of
from softfloat.environments import Settings
from softfloat.formats import Format

kernels = floor_of("panels")


class Panels:
    """Steps on codes in place, which give flags; products are added one at a time, rounded first unless `fused`."""

    def __init__(self, fmt: Format, settings: Settings, fused: bool) -> None:
        rule = rule_for(settings, fmt, False)
        self._numbers = numbers(fmt.spec, fmt.spec, rule, carrier_for("div", fmt.spec, fmt.spec))
        self._word, unsigned = self._numbers[0].dtype, (1 << fmt.bits - 1) - 1
        self._kind = way_of(fmt.spec, rule), fused, self._word
        first, lone = (fmt.spec.nan_first, fmt.spec.lone_nan) if fmt.has_nan else (unsigned + 1, -1)
        bits = fmt.sign_bit, unsigned, first if lone < 0 else unsigned + 1, lone, fmt.signed_zero
        self._known = np.array(bits, self._word)

    def _run(self, name: str, work: int, room: int, *operands: Any) -> int:
        """What a loop returns, of so many elements, with room for so many."""
        run, flags = spared(kernels().panel(name, *self._kind)).run, np.empty(room, np.uint8)
        return run(work, *operands, np.zeros(room, self._word), flags, self._known, *self._numbers)

    def factor(self, a: Codes, pivoting: bool, roots: bool = False) -> tuple[Any, int, int]:
        """(the row that each is now, pivots found, flags) of LU, or of Cholesky's factor with `roots`, which ends at a pivot that is not positive."""
        lines, order = a.T.astype(self._word, "C"), np.arange(len(a))
        work, name = lines.size * len(lines), "cholesky" if roots else "lu"
        done = self._run(name, work, len(a), lines, order, pivoting, roots)
        a[...] = lines.T
        return order, done >> 8, done & 0xFF

    def substitute(self, t: Codes, x: Codes, unit: bool) -> int:
        """Flags of T X = B for a lower triangle, B in place."""
        lines = x.T.astype(self._word, "C")
        seen = self._run("substitute", x.size * len(x), len(x), t.T.astype(self._word, "C"), lines, unit)
        x[...] = lines.T
        return seen

    def reflect(self, a: Codes, v: Codes, tau: Codes) -> int:
        """Flags of A - v (tau (vᵀ A)), A in place."""
        rows = a.astype(self._word, "C")
        seen = self._run("reflect", 2 * a.size, a.shape[1], rows, v.astype(self._word), tau[:1].astype(self._word))
        a[...] = rows
        return seen


@lru_cache(maxsize=64)
def panels(fmt: Format, settings: Settings, fused: bool) -> Panels | None:
    """The steps under settings; None where random numbers are drawn, and of wide formats."""
    return None if settings.rounding.draws or goes_wide("div", fmt.spec, fmt.spec) else Panels(fmt, settings, fused)
