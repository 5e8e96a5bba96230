"""Operators and NumPy's functions as an array's methods: small calls straight to their loops, all others by the tables of `held`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.arrays.held import FUNCTIONS, UFUNCS, Held, wrapped
from softfloat.arrays.operands import is_operand, weak
from softfloat.arrays.readers import drawing
from softfloat.engine import Codes, calls, elementwise
from softfloat.engine.calls import SMALL
from softfloat.engine.elementwise import NO_CODES
from softfloat.environments import WATCHES, current_environment

__all__ = ["STEPS", "SUMMED", "run_drawn", "straight", "straight_unary", "unsupported"]

SHORT = 1 << 10  # elements up to which a number spread over a shape is kept
TWINS = {
    **dict.fromkeys(("lu", "lu_factor", "lu_solve"), "softfloat.linalg.lu"),
    **{name: f"softfloat.linalg.{name}" for name in ("solve_triangular", "ldl", "cg", "gmres")},
    "eig": "numpy.linalg.eigh, of symmetric matrices",
    "eigvals": "numpy.linalg.eigvalsh, of symmetric matrices",
}
"""Functions of linear algebra, of NumPy and SciPy -> what serves."""


@lru_cache(maxsize=1024)
def _spread(code: int, dtype: np.dtype[Any], size: int) -> Codes:
    """A number's code over and over, as loops take operands."""
    return engine.flattened(np.full(size, code, dtype))


def _flat_of(x: Held) -> Codes | None:
    """The codes of a small array as loops take operands; None if it is large, or that needs a copy."""
    if x._codes.size > SMALL:
        return None
    return x._flat if x._flat is not None else x._flattened()


def _flat_beside(x: Held, other: Any, operation: str, quiet: bool = False) -> Codes | None:
    """The other operand of a small array, of its shape; None if it is no such array and no number, or needs a copy."""
    codes, fmt = x._codes, x._format
    if type(other) is Held.made:
        if (other._format is not fmt and other._format != fmt) or other._codes.shape != codes.shape:
            return None
        return other._flat if other._flat is not None else other._flattened()
    if type(other) in (float, int, np.float64) and codes.size <= SHORT:
        return _spread(int(weak(other, fmt, operation, quiet)), fmt.dtype, codes.size)
    return None


def straight(operation: str, x: Held, other: Any, swapped: bool, out: Held | None) -> Any:
    """An operator on a small array by its loop, without the ways around it; None where they are needed."""
    codes, fmt = x._codes, x._format
    env = current_environment()
    if env.placed or WATCHES or drawing():
        return None
    a = _flat_of(x)
    b = None if a is None else _flat_beside(x, other, operation)
    if a is None or b is None:
        return None
    if out is not None and type(other) is Held.made and other is not x and np.may_share_memory(codes, other._codes):
        return None
    ready = elementwise.prepared(operation, fmt, env.settings.for_format(fmt.name), elementwise.FAST)
    if ready is None:
        return None
    in_place = out is not None
    if out is None:
        out = wrapped(np.empty(codes.shape, fmt.dtype), fmt)
    elif not codes.flags.writeable:
        return None
    if swapped:
        a, b = b, a
    env.status.add(ready(a, b, b, out._codes.reshape(-1), NO_CODES, env.streams.take(), in_place))
    return out


def straight_unary(operation: str, x: Held) -> Any:
    """`straight`, for functions of one operand."""
    env = current_environment()
    a = None if env.placed or WATCHES else _flat_of(x)
    settings = env.settings.for_format(x._format.name)
    ready = None if a is None else elementwise.prepared(operation, x._format, settings, elementwise.FAST)
    if a is None or ready is None:
        return None
    found = np.empty(x._codes.shape, x._format.dtype)
    env.status.add(ready(a, a, a, found.reshape(-1), NO_CODES, env.streams.take(), False))
    return wrapped(found, x._format)


def straight_comparison(relation: str, x: Held, other: Any, swapped: bool) -> Codes | None:
    """`straight`, for comparisons, in which numbers raise no flags; "ne" is what "eq" is not."""
    env = current_environment()
    a = None if env.traps or drawing() else _flat_of(x)
    b = None if a is None else _flat_beside(x, other, relation, quiet=True)
    if a is None or b is None:
        return None
    if swapped:
        a, b = b, a
    settings, negated = env.settings.for_format(x._format.name), relation == "ne"
    compare = calls.relation(
        "eq" if negated else relation, x._format, settings.daz, settings.nan, relation in ("lt", "le")
    )
    found = np.empty(x._codes.shape, bool)
    env.streams.take()
    env.status.add(compare(a, b, found.reshape(-1), NO_CODES))
    return ~found if negated else found


def forward(operation: str, ufunc: np.ufunc) -> Callable[[Held, Any], Any]:
    def operator(self: Held, other: Any) -> Any:
        found = straight(operation, self, other, False, None)
        if found is not None:
            return found
        return UFUNCS[ufunc](ufunc, "__call__", (self, other), {}) if is_operand(other) else NotImplemented

    return operator


def reflected(operation: str, ufunc: np.ufunc) -> Callable[[Held, Any], Any]:
    def operator(self: Held, other: Any) -> Any:
        found = straight(operation, self, other, True, None)
        if found is not None:
            return found
        return UFUNCS[ufunc](ufunc, "__call__", (other, self), {}) if is_operand(other) else NotImplemented

    return operator


def in_place(operation: str, ufunc: np.ufunc) -> Callable[[Held, Any], Any]:
    def operator(self: Held, other: Any) -> Any:
        found = straight(operation, self, other, False, self)
        if found is not None:
            return found
        if not is_operand(other):
            return NotImplemented
        return UFUNCS[ufunc](ufunc, "__call__", (self, other), {"out": (self,)})

    return operator


def general(ufunc: np.ufunc, swapped: bool = False, in_place: bool = False) -> Callable[[Held, Any], Any]:
    def operator(self: Held, other: Any) -> Any:
        if not is_operand(other):
            return NotImplemented
        operands = (other, self) if swapped else (self, other)
        return UFUNCS[ufunc](ufunc, "__call__", operands, {"out": (self,)} if in_place else {})

    return operator


def compared(relation: str, ufunc: np.ufunc, swapped: bool = False) -> Callable[[Held, Any], Any]:
    def operator(self: Held, other: Any) -> Any:
        found = straight_comparison(relation, self, other, swapped)
        if found is not None:
            return found if found.ndim else found[()]
        return UFUNCS[ufunc](ufunc, "__call__", (self, other), {}) if is_operand(other) else NotImplemented

    return operator


def unary(ufunc: np.ufunc) -> Callable[[Held], Any]:
    return lambda self: UFUNCS[ufunc](ufunc, "__call__", (self,), {})


def as_drawn(x: Any) -> Any:
    """Arguments with float64 for SoftArrays."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(as_drawn, x))
    if isinstance(x, dict):
        return {name: as_drawn(value) for name, value in x.items()}
    return bits.decode(x._codes, x._format) if isinstance(x, Held) else x


def unsupported(name: str) -> TypeError:
    """What says that a function of a library takes no SoftArrays, and what serves."""
    module, _, own = name.rpartition(".")
    twin = TWINS.get(own) or (f"numpy.linalg.{own}" if getattr(np.linalg, own, None) in FUNCTIONS else "")
    first = f"{twin}, " if twin and module.endswith("linalg") else ""
    values = "its .values (float64), .codes (integers), or .view(dtype)"
    return TypeError(f"{name} is not supported for SoftArray; accepted: {first}{values}")


def of_numpy(function: Callable[..., Any], arguments: Any, keywords: dict[str, Any]) -> Any:
    """What stands in for one of NumPy's functions, called; TypeError names one that nothing stands in for."""
    if drawing():
        return function(*as_drawn(arguments), **as_drawn(keywords))
    handler, name = FUNCTIONS.get(function), f"{getattr(function, '__module__', None) or 'numpy'}.{function.__name__}"
    if handler is None:
        raise unsupported(name)
    engine.refuse_mask((*arguments, *keywords.values()), f"what {name} takes")
    return handler(*arguments, **keywords)


SUMMED = "Summed as the environment's accumulator says; without one in order, each product and each sum rounded."
STEPS = "In order, each product rounded to the format."


def method(name: str, how: str = "") -> Callable[..., Any]:
    """A method that is NumPy's function of that name; `how` says what NumPy's documentation does not."""
    function = getattr(np, name)

    def operator(self: Held, *arguments: Any, **keywords: Any) -> Any:
        return of_numpy(function, (self, *arguments), keywords)

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = f"As `numpy.{name}`. {how}".rstrip()
    return operator


def run_drawn(ufunc: np.ufunc, method: str, inputs: Any, keywords: Any) -> Any:
    """A ufunc on the values, for what is drawn."""
    return getattr(ufunc, method)(*as_drawn(inputs), **as_drawn(keywords))
