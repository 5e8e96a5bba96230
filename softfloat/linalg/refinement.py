"""Iterative refinement in several precisions: factors in one, the solution in another, residuals in a third."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softfloat.accumulators import exact as exactly
from softfloat.analysis import backward_error, two_prod, two_sum
from softfloat.arrays.creation import full_like, zeros_like
from softfloat.arrays.held import wrapped
from softfloat.arrays.softarray import SoftArray, array
from softfloat.checks import check_choice, check_count, check_real, check_switch
from softfloat.formats import Format, check_format
from softfloat.linalg import scalings
from softfloat.linalg.factors import LU, lu
from softfloat.linalg.krylov import gmres, product_with
from softfloat.linalg.scalings import Squeezed
from softfloat.linalg.steps import Raised, Steps
from softfloat.markup import aligned
from softfloat.status import Flags

__all__ = ["Refined", "refine"]


@dataclass(frozen=True, eq=False)
class Refined:
    """What refinement found, by step; step 0 is the solution by the factors alone.

    Attributes
    ----------
    x : SoftArray
        In the working format.
    converged : bool
        Whether the last errors are at most rtol.
    steps : int
        Corrections that were added.
    inner : list of int
        Iterations of GMRES in each.
    forward : list of float
        Of each step, ``max |x - exact| / max |exact|``; empty where `exact` was not given.
    nbe, cbe : list of float
        Normwise and componentwise backward errors, as `softfloat.analysis.backward_error` has them.
    mu : float
        By which the squeezed matrix was multiplied; 1 without.
    lu : LU
        The factors.
    flags : dict of str to Flags
        What each of "factor", "solve", "residual" and "update" raised.
    """

    x: SoftArray
    converged: bool
    steps: int
    inner: list[int]
    forward: list[float]
    nbe: list[float]
    cbe: list[float]
    mu: float
    lu: LU
    flags: dict[str, Flags]

    def table(self) -> str:
        """A line for each step, with the columns that papers print."""
        columns = [["step", *(str(k) for k in range(len(self.nbe)))]]
        if self.inner:
            columns.append(["inner", "", *map(str, self.inner)])
        for name, found in (("forward", self.forward), ("nbe", self.nbe), ("cbe", self.cbe)):
            if found:
                columns.append([name, *(f"{x:.2e}" for x in found)])
        return aligned([*zip(*columns, strict=True)], [])

    __str__ = table


def refine(
    A: Any,
    b: Any,
    *,
    factor: Format | str,
    working: Format | str,
    residual: Format | str = "exact",
    solver: str = "lu",
    squeeze: bool = False,
    apply: Format | str | None = None,
    rtol: float | None = None,
    inner_rtol: float = 1e-4,
    maxiter: int = 10,
    exact: Any = None,
) -> Refined:
    """x of A x = b by LU in one format and corrections in others.

    A is rounded to the working format and factored in format `factor`; x_0 is the solution by the factors. Then r = b - A x; A d = r; x + d in the
    working format. r is divided by the power of two above its greatest element, so that its small elements are not lost, and d multiplied by it.

    Parameters
    ----------
    A : SoftArray, array of float64, or SciPy sparse matrix
        Of shape (n, n). A sparse one is filled with zeros: factors have others.
    b : SoftArray or array of float64
        Of shape (n,).
    factor, working : Format or str
        Of the factors; of A, b and x.
    residual : Format or str
        Of b - A x, which is then rounded to the working format; or "exact" (each element rounded once), or "twice" (as if in twice the
        working precision, by the algorithm Dot2).
    solver : {"lu", "gmres"}
        d by forward and back substitution, or by GMRES with the factors as preconditioner from the left.
    squeeze : bool
        Scale by `softfloat.linalg.squeeze` before rounding to format `factor`: the factors are of mu R A C.
    apply : Format or str, optional
        In which the factors are applied, and of GMRES all else; default the format of the factors, with GMRES the working one.
    rtol : float, optional
        Stop when the normwise backward error, and if `exact` is given the forward error, are at most that; default the working format's epsilon.
    inner_rtol : float
        GMRES's.
    maxiter : int
        Corrections at most.
    exact : array of float64, optional
        The solution, to print forward errors.

    Returns
    -------
    Refined

    Source
    ------
    Carson and Higham 2018 (three precisions, GMRES-IR); Amestoy et al. 2024 (five); Higham, Pranesh and Zounon 2019 (squeezing); Ogita,
    Rump and Oishi 2005 (Dot2).

    >>> import numpy, softfloat
    >>> a = numpy.array([[4.0, 1.0, 0.3], [1.0, 3.0, 0.1], [0.3, 0.1, 2.0]])
    >>> found = refine(a, a.sum(1), factor="float16", working="float32", exact=numpy.ones(3))
    >>> found.converged, found.steps, [f"{x:.0e}" for x in found.nbe]
    (True, 2, ['3e-04', '1e-07', '2e-08'])
    """
    name = "softfloat.linalg.refine"
    check_choice("solver", solver, ("lu", "gmres"))
    check_switch("squeeze", squeeze)
    working, factor = check_format(working, "working", wide=True), check_format(factor, "factor", wide=True)
    applied = check_format(apply, "apply", wide=True) if apply is not None else factor if solver == "lu" else working
    if residual not in ("exact", "twice"):
        try:
            residual = check_format(residual, "residual", wide=True)
        except ValueError as refused:
            raise ValueError(
                f"residual must be 'exact', 'twice', as if in twice the working precision, or a format; {refused}"
            ) from None
    share = 2.0**-working.mantissa_bits if rtol is None else check_real("rtol", rtol, 0)
    a, right = array(A.toarray() if hasattr(A, "toarray") else A, working), array(b, working)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or right.shape != a.shape[:1]:
        raise ValueError(f"A and b of {name} must have shapes (n, n) and (n,), got {a.shape} and {right.shape}")
    phases = {phase: Raised() for phase in ("factor", "solve", "residual", "update")}
    with phases["factor"]:
        ones = np.ones(len(a))
        scaled = scalings.squeeze(a, factor) if squeeze else Squeezed(a.astype(factor), ones, ones, 1.0)
        factors = lu(scaled.a)
        held = replace(factors, lu=factors.lu.astype(applied))
    exact, inner = None if exact is None else np.asarray(exact, np.float64), list[int]()
    with phases["solve"]:
        x = _solved(held, scaled, right, working)
    errors = [_errors(a, right, x, exact)]  # of which every other one counts
    whole = product_with(a, applied, name) if solver == "gmres" else None
    for _ in range(check_count("maxiter", maxiter)):
        if max(errors[-1][::2]) <= share or not np.isfinite(x.values).all():
            break
        with phases["residual"]:
            r = _residual(a, right, x, residual, name)
        with phases["solve"]:
            if whole is None:
                d = _solved(held, scaled, r, working)
            else:
                down, exponent = _normalised(np.asarray(r.values))
                found = gmres(
                    whole,
                    array(down, applied),
                    M=lambda v: _solved(held, scaled, v, applied),
                    rtol=inner_rtol,
                    maxiter=a.shape[0],
                )
                inner.append(found.iterations)
                d = array(np.ldexp(found.x.values, exponent), working)
        with phases["update"]:
            x = x + d
        errors.append(_errors(a, right, x, exact))
    flags, converged = {phase: raised.flags for phase, raised in phases.items()}, max(errors[-1][::2]) <= share
    nbe, cbe, *forward = map(list, zip(*errors, strict=True))
    seen = forward[0] if forward else [], nbe, cbe
    return Refined(x, converged, len(errors) - 1, inner, *seen, scaled.mu, factors, flags)


def _errors(a: SoftArray, b: SoftArray, x: SoftArray, exact: Any) -> list[float]:
    """Backward errors, normwise and componentwise, and the forward error of `exact`, in float64: they are looked at, and enter no result."""
    matrix, found, right = (np.asarray(z.values) for z in (a, x, b))
    errors = [backward_error(matrix, found, right, kind) for kind in ("normwise", "componentwise")]
    if exact is not None:
        with np.errstate(all="ignore"):
            errors.append(float(np.abs(found - exact).max() / np.abs(exact).max()) if found.size else 0.0)
    return errors


def _normalised(values: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int]:
    """Numbers divided by the power of two above the greatest, and its exponent."""
    top = float(np.max(np.abs(values), initial=0.0))
    exponent = int(np.frexp(top)[1]) if 0 < top < np.inf else 0
    return np.ldexp(values, -exponent), exponent


def _solved(factors: LU, scaled: Squeezed, r: SoftArray, fmt: Format) -> SoftArray:
    """A d = r by the factors of mu R A C, in their format: C times what R r gives; all scales are powers of two."""
    values, exponent = _normalised(np.asarray(r.values) * scaled.r)
    y = factors.solve(array(values, factors.lu.format))
    return array(np.ldexp(np.asarray(y.values) * scaled.c * scaled.mu, exponent), fmt)


def _residual(a: SoftArray, b: SoftArray, x: SoftArray, how: Format | str, name: str) -> SoftArray:
    """b - A x."""
    if how == "twice":
        return _twice(a, b, x)
    fmt, accumulator = (a.format, exactly(a.format)) if how == "exact" else (check_format(how, wide=True), None)
    wide, right, at = (z.astype(fmt, copy=False) for z in (a, b, x))
    steps = Steps(wide, name, accumulator=accumulator)
    found = steps.added(right.codes[:, None], steps.negated(wide.codes), at.codes[:, None])
    return wrapped(found[:, 0], fmt).astype(a.format, copy=False)


def _twice(a: SoftArray, b: SoftArray, x: SoftArray) -> SoftArray:
    """Dot2: products and sums with their errors, which are summed apart."""
    s, e = b, zeros_like(b)
    for j in range(a.shape[1]):
        p, lost = two_prod(-a[:, j], full_like(b, x[j]))
        s, more = two_sum(s, p)
        e = e + (more + lost)
    return s + e
