"""`DaskArray`: SoftArray's operators over blocks of codes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed

from softfloat.arrays.operands import coerced
from softfloat.arrays.softarray import SoftArray
from softfloat.arrays.softarray import from_codes as soft_from_codes
from softfloat.bits.operations import ELEMENTWISE
from softfloat.dask.blocks import assembled, check_chunks, computed, evaluated, gathered, parts, places, step, task
from softfloat.dask.following import Progress
from softfloat.engine import check_codes, refuse_mask
from softfloat.environments import Rounding
from softfloat.formats import Format, check_format

__all__ = ["DaskArray", "Truths", "from_array", "from_codes"]

UFUNCS = {ufunc: row for row in ELEMENTWISE.values() for ufunc in row.numpy}
"""The rows of operations by their names in NumPy."""

SUMS: dict[str, Callable[..., Any]] = {}
"""Sums and products by name; `products` fills it."""

COMPOSED: dict[Any, Callable[..., Any]] = {}
"""Functions of NumPy that are made of others, or only move codes; `functions` fills it."""

COMPARED = {"not_equal": "eq", "greater": "lt", "greater_equal": "le"}
"""Comparisons that are others, negated or with their operands in the other order."""


def _operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    """An operator that is a function of NumPy."""

    def forward(self: DaskArray, *others: Any) -> Any:
        if any(not isinstance(x, (DaskArray, SoftArray, bool, int, float)) for x in others):
            return NotImplemented
        return elementwise(name, (*others, self) if reflected else (self, *others))

    return forward


class Truths:
    """Truth values in blocks, what comparisons give, with the flags that they raised.

    Attributes
    ----------
    values : dask.array.Array of bool
    """

    def __init__(self, values: da.Array, _flags: Sequence[Delayed] = ()) -> None:
        self.values = values
        self._flags = list(_flags)

    @property
    def flags(self) -> Delayed:
        """Everything that the operations behind it raised: `flags.compute()` is an integer."""
        return gathered(self._flags)

    def compute(self, progress: Progress = False, **options: Any) -> Any:
        """An array of bool; flags go to the status of the environment in force. Arguments are those of `DaskArray.compute`."""
        return computed(self.values, self._flags, progress, **options)

    def __invert__(self) -> Truths:
        return Truths(~self.values, self._flags)

    def _with(self, other: Any, function: Callable[..., Any]) -> Any:
        if not isinstance(other, (Truths, bool)):
            return NotImplemented
        values, more = (other.values, other._flags) if isinstance(other, Truths) else (other, [])
        return Truths(function(self.values, values), [*self._flags, *more])

    def __and__(self, other: Any) -> Truths:
        return self._with(other, operator.and_)

    def __or__(self, other: Any) -> Truths:
        return self._with(other, operator.or_)

    def __xor__(self, other: Any) -> Truths:
        return self._with(other, operator.xor)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __bool__(self) -> bool:
        raise TypeError("the truth of an array in blocks is not known before compute()")


class DaskArray:
    """Codes of a format in blocks, with SoftArray's operators; nothing is computed before `compute`.

    An operation is written under the environment in force: its settings, traps and stream go with its tasks. What is not here is refused
    by name; `codes` is the `dask.array` itself, for everything that only moves codes.

    Parameters
    ----------
    codes : dask.array.Array
        Codes of `format`, of its dtype, in chunks of known lengths.
    format : Format or str

    Raises
    ------
    TypeError, ValueError
        Naming the argument and what is accepted.
    """

    __array_priority__ = 1000

    def __init__(self, codes: da.Array, format: Format | str, _flags: Sequence[Delayed] = ()) -> None:
        self.format = check_format(format, "format", wide=True)
        if not isinstance(codes, da.Array) or codes.dtype != self.format.dtype:
            found = codes.dtype if isinstance(codes, da.Array) else type(codes).__name__
            raise TypeError(f"codes must be a dask.array of dtype {self.format.dtype}, got {found}")
        _refuse_masks(codes, "codes")
        check_chunks(codes.chunks, "codes")
        self.codes = codes
        self._flags = {str(one.key): one for one in _flags}

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the whole array."""
        return tuple(int(size) for size in self.codes.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return int(self.codes.ndim)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """Lengths of the blocks along each axis."""
        return check_chunks(self.codes.chunks, "codes")

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DaskArray({self.format}, shape={self.shape}, chunks={self.chunks})"

    def __bool__(self) -> bool:
        raise TypeError("the truth of a DaskArray is not known before compute()")

    # -- computing ---------------------------------------------------------------------------------------------------

    @property
    def flags(self) -> Delayed:
        """Everything that the operations behind this array raised, OR-ed together: `flags.compute()` is an integer."""
        return gathered(list(self._flags.values()))

    def compute(self, progress: Progress = False, **options: Any) -> SoftArray:
        """The array, computed; flags go to the status of the environment in force.

        Parameters
        ----------
        progress : bool or callable
            True: a bar on standard error, if that is a terminal. A callable gets (done, total): tasks of this process's schedulers, on a
            cluster blocks of the result.
        options
            Of `dask.compute`: `scheduler` and what that takes.

        Raises
        ------
        FloatingPointTrap
            With the index in the whole, for a flag whose trap was on where the operation was written.
        """
        return soft_from_codes(computed(self.codes, list(self._flags.values()), progress, **options), self.format)

    def persist(self, **options: Any) -> DaskArray:
        """The same with its blocks, and its flags, computed and kept where they were computed."""
        codes, flags = dask.persist(self.codes, self.flags, **options)
        return DaskArray(codes, self.format, [flags])

    # -- moving ------------------------------------------------------------------------------------------------------

    def _moved(self, codes: da.Array) -> DaskArray:
        return DaskArray(codes, self.format, list(self._flags.values()))

    def rechunk(self, chunks: Any) -> DaskArray:
        """The same in other blocks: no bit changes."""
        return self._moved(self.codes.rechunk(chunks))

    def reshape(self, *shape: Any) -> DaskArray:
        """The same codes in another shape."""
        return self._moved(self.codes.reshape(*shape))

    def transpose(self, *axes: Any) -> DaskArray:
        """The same with its axes in another order."""
        return self._moved(self.codes.transpose(*axes))

    @property
    def T(self) -> DaskArray:
        """The same with its axes reversed."""
        return self.transpose()

    def __getitem__(self, index: Any) -> DaskArray:
        return self._moved(self.codes[index])

    # -- rounding ----------------------------------------------------------------------------------------------------

    def astype(self, format: Format | str) -> DaskArray:
        """In another format, each element rounded once."""
        return applied(
            "astype", "convert", [self.codes], self.format, check_format(format, "format", wide=True), [self]
        )

    def sum(self, axis: int | None = None) -> DaskArray:
        """Sums along an axis by the environment's accumulator; see `softfloat.dask.sum`."""
        return SUMS["sum"](self, axis)

    def __matmul__(self, other: Any) -> DaskArray:
        return SUMS["matmul"](self, other)

    def __rmatmul__(self, other: Any) -> DaskArray:
        return SUMS["matmul"](other, self)

    __add__, __radd__ = _operator("add"), _operator("add", True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", True)
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", True)
    __floordiv__, __rfloordiv__ = _operator("floor_divide"), _operator("floor_divide", True)
    __mod__, __rmod__ = _operator("remainder"), _operator("remainder", True)
    __pow__, __rpow__ = _operator("power"), _operator("power", True)
    __neg__ = _operator("negative")
    __abs__ = _operator("absolute")
    __lt__ = _operator("less")
    __le__ = _operator("less_equal")
    __gt__ = _operator("greater")
    __ge__ = _operator("greater_equal")
    __eq__ = _operator("equal")
    __ne__ = _operator("not_equal")
    __hash__ = None  # type: ignore[assignment]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        name = ufunc.__name__
        if method != "__call__" or options:
            given = f"{name}.{method}" if method != "__call__" else f"{name} with {', '.join(options)}"
            raise TypeError(f"numpy.{given} is not for DaskArrays; accepted: the function alone, or on computed arrays")
        if name == "matmul":
            return inputs[0] @ inputs[1] if isinstance(inputs[0], DaskArray) else inputs[1].__rmatmul__(inputs[0])
        if name == "vecdot":
            return SUMS["vecdot"](*inputs)
        if ufunc in COMPOSED:
            return COMPOSED[ufunc](*inputs)
        return elementwise(name, inputs)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function not in COMPOSED:
            raise TypeError(
                f"numpy.{function.__name__} is not for DaskArrays; accepted: operators, rounding functions of one or two operands, "
                f"{', '.join(sorted(x.__name__ for x in COMPOSED if not isinstance(x, np.ufunc)))}; or compute() first"
            )
        for x in (*arguments, *options.values()):
            _refuse_masks(x, f"what numpy.{function.__name__} takes")
        return COMPOSED[function](*arguments, **options)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("a DaskArray is no NumPy array; accepted: compute(), or codes.compute()")


def _refuse_masks(x: Any, argument: str) -> None:
    """`refuse_mask`, of blocks too: a dask.array has an empty one of their kind."""
    refuse_mask(getattr(x, "_meta", x), argument)


def operand(x: Any, fmt: Format, name: str, place: int) -> Any:
    """An operand's codes: a dask.array, or a code for all."""
    if isinstance(x, DaskArray):
        if x.format != fmt:
            raise TypeError(f"{name} takes operands of one format, got {fmt} and {x.format}; accepted: after astype")
        return x.codes
    if isinstance(x, (SoftArray, bool, int, float)):
        return da.from_array(np.asarray(coerced(x, fmt, name, place)))
    raise TypeError(f"{name} takes DaskArrays, SoftArrays and numbers, got {type(x).__name__}")


def elementwise(name: str, inputs: Sequence[Any], called: str | None = None) -> Any:
    """A function of NumPy by its name, element by element; `called` is the name that a trap reports."""
    row = ELEMENTWISE[COMPARED[name]] if name in COMPARED else UFUNCS.get(name)
    if row is None or len(row.operands) != len(inputs):
        known = {*UFUNCS, *COMPARED, *(x.__name__ for x in COMPOSED if isinstance(x, np.ufunc))}
        raise TypeError(f"numpy.{name} is not for DaskArrays; accepted: {', '.join(sorted(known))}")
    fmt = next(x.format for x in inputs if isinstance(x, DaskArray))
    operands = [operand(x, fmt, name, place) for place, x in enumerate(inputs)]
    if name in ("greater", "greater_equal"):
        operands.reverse()
    sources = [x for x in inputs if isinstance(x, DaskArray)]
    if row.flags:
        found = applied(called or name, row.name, operands, fmt, fmt if row.result == "float" else None, sources)
    else:
        found = _looked_at(row.name, operands, fmt, row.result == "float", sources)
    return ~found if name == "not_equal" else found


def _looked_at(function: str, operands: list[Any], fmt: Format, codes: bool, sources: list[DaskArray]) -> Any:
    """What only looks at codes, and raises nothing."""
    from softfloat import bits

    kernel: Callable[..., Any] = getattr(bits, function)
    result = da.map_blocks(kernel, *_aligned(operands)[0], fmt, dtype=fmt.dtype if codes else bool)
    before = [one for x in sources for one in x._flags.values()]
    return DaskArray(result, fmt, before) if codes else Truths(result, before)


def _aligned(operands: list[Any]) -> tuple[list[Any], Any]:
    """Operands of one shape and with the same chunks."""
    shape = np.broadcast_shapes(*(x.shape for x in operands))
    broadcast = [da.broadcast_to(x, shape) for x in operands]
    axes = "abcdefghijklmnopqrstuvwxyz"[: len(shape)]
    _, unified = da.core.unify_chunks(*(y for x in broadcast for y in (x, axes)))
    return unified, check_chunks(unified[0].chunks, "operands")


def applied(
    name: str, function: str, operands: list[Any], fmt: Format, result: Format | None, sources: Sequence[DaskArray],
    rounding: Rounding | None = None, **options: Any,
) -> Any:  # fmt: skip
    """A function of `softfloat.bits` block by block; to truth values if `result` is None."""
    unified, chunks = _aligned(operands)
    more = (fmt, result) if function == "convert" else (fmt,)
    operation = step(name, function, *more, rounding=rounding, **options)
    blocks = [parts(x) for x in unified]
    tasks = {block: task(evaluated, operation, at, *(x[block] for x in blocks)) for block, at in places(chunks)}
    before = [one for x in sources for one in x._flags.values()]
    codes, flags = assembled(tasks, chunks, np.dtype(bool) if result is None else result.dtype)
    return Truths(codes, [flags, *before]) if result is None else DaskArray(codes, result, [flags, *before])


def from_codes(codes: Any, format: Format | str, chunks: Any = "auto") -> DaskArray:
    """Codes of a format in blocks: a dask.array as it is, anything else cut into `chunks`.

    >>> import softfloat.dask
    >>> softfloat.dask.from_codes([0x3C00, 0x4000, 0x4200], "float16", chunks=2)
    DaskArray(float16, shape=(3,), chunks=((2, 1),))
    """
    fmt = check_format(format, "format", wide=True)
    if isinstance(codes, da.Array):
        return DaskArray(codes, fmt)
    return DaskArray(da.from_array(check_codes(codes, fmt, "codes"), chunks=chunks), fmt)


def from_array(x: Any, format: Format | str | None = None, chunks: Any = "auto") -> DaskArray:
    """Numbers in a format, each rounded once by the environment in force; a SoftArray in blocks as it is.

    Parameters
    ----------
    x : SoftArray, dask.array or array_like of numbers
        With NumPy's floats or integers in its blocks.
    format : Format or str, optional
        Not for a SoftArray, which has one.
    chunks : int, tuple or "auto"
        As `dask.array.from_array` takes them.
    """
    if isinstance(x, SoftArray):
        if format is not None and check_format(format, "format", wide=True) != x.format:
            raise TypeError(
                f"format must be {x.format} or None for a SoftArray of it; accepted: from_array(x).astype(...)"
            )
        return from_codes(x.codes, x.format, chunks)
    if format is None:
        raise TypeError("format must be given for numbers, got None")
    fmt = check_format(format, "format", wide=True)
    _refuse_masks(x, "x")
    numbers = x if isinstance(x, da.Array) else da.from_array(np.asarray(x), chunks=chunks)
    chunks_ = check_chunks(numbers.chunks, "x")
    operation, blocks = step("from_array", "encode", fmt), parts(numbers)
    tasks = {block: task(evaluated, operation, at, blocks[block]) for block, at in places(chunks_)}
    codes, flags = assembled(tasks, chunks_, fmt.dtype)
    return DaskArray(codes, fmt, [flags])
