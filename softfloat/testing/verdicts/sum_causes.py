"""Mistakes in sums of products: other orders, an addend that comes elsewhere, other accumulators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from softfloat import accumulators, bits
from softfloat.accumulators import TENSOR_CORES, Accumulator
from softfloat.formats import ROSTER
from softfloat.testing.vectors.operations import Case
from softfloat.testing.verdicts.cause import Cause, Pair, ran

__all__ = ["addends", "orders", "sums"]

Codes = np.ndarray[Any, Any]

LONGEST_SWAPS = 16  # products of sums in which any two are tried in each other's place


def _reordered(case: Case, order: Codes, operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
    a, b, *c = operands
    return case.run([a[:, order], b[:, order], *c])


def orders(case: Case) -> Iterator[Cause]:
    """Products that come in another order."""
    if case.operation.result != "sum" or case.length is None or case.length < 2:
        return
    k = case.length
    even = np.arange(k)
    pairs = even ^ 1 if k % 2 == 0 else np.append(even[:-1] ^ 1, k - 1)
    orders = {
        "reversed order": ("products are added from the last to the first", even[::-1]),
        "pairs swapped": ("the two products of each pair are swapped", pairs),
        "even before odd": (
            "products with even k come before those with odd k",
            np.concatenate([even[::2], even[1::2]]),
        ),
        "halves interleaved": (
            "products of the first and the second half take turns",
            np.append(np.arange(k // 2 * 2).reshape(2, -1).T.reshape(-1), np.arange(k // 2 * 2, k)),
        ),
    }
    for name, (meaning, order) in orders.items():
        yield Cause(name, meaning, partial(_reordered, case, order))
    seen = {tuple(even), *(tuple(order) for _, order in orders.values())}
    for name, meaning, order in _rarer_orders(k):
        if tuple(order) not in seen:
            seen.add(tuple(order))
            yield Cause(name, meaning, partial(_reordered, case, order), alone=True)


def addends(case: Case) -> Iterator[Cause]:
    """An addend that is left out, or comes last."""
    if case.operation.result == "sum" and case.addend:
        yield Cause("c ignored", "c is not added", lambda o, right: case.run([*o[:2], np.zeros_like(o[2])]))
        assert case.accumulator is not None
        if case.target.format == case.accumulator.partials:
            bare, fmt = case.replace(addend=False), case.target.format

            def last(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
                sums, flags = bare.run(operands[:2])
                totals, more = bits.add(sums, operands[2], fmt, environment=case.environment)
                return totals, flags | more

            yield Cause("c last", "c is added at the end", last)


def _rarer_orders(k: int) -> Iterator[tuple[str, str, Codes]]:
    """Orders that wiring mistakes make: strides, groups, rotations; in sums of 16 and less any two products swapped."""
    even = np.arange(k)
    for size in (2, 4, 8, 16):
        if k % size == 0 and size < k:
            grid = even.reshape(-1, size)
            yield f"stride {size}", f"products k, k + {size}, k + {2 * size} ... come first, for each k", grid.T.ravel()
            yield (
                f"groups of {size} reversed",
                f"products of each group of {size} come in reverse",
                grid[:, ::-1].ravel(),
            )
            yield f"order of groups of {size} reversed", f"the last group of {size} comes first", grid[::-1].ravel()
    if k & (k - 1) == 0:
        width = k.bit_length() - 1
        order = np.array([int(f"{i:0{width}b}"[::-1], 2) for i in range(k)])
        yield "bit-reversed order", "products come in bit-reversed order", order
    if k > LONGEST_SWAPS:
        return
    for shift in range(1, k):
        yield f"rotated by {shift}", f"product {shift} comes first, and the first ones last", np.roll(even, -shift)
    for i in range(k):
        for j in range(i):
            order = even.copy()
            order[[i, j]] = j, i
            yield f"products {j} and {i} swapped", f"products {j} and {i} take each other's place", order


def _other_accumulators(case: Case) -> Iterator[Accumulator]:
    """Ways to sum that the one in use may be mistaken for."""
    assert case.accumulator is not None
    formats = [case.accumulator.running.format, case.accumulator.partials, case.target.format, ROSTER["float32"]]
    for fmt in dict.fromkeys(x for x in formats if x is not None):
        yield accumulators.fma(fmt)
        yield accumulators.mul_add(fmt)
        yield accumulators.exact(fmt)
        yield accumulators.pairwise(fmt)
        for chains in (2, 4, 8):
            yield accumulators.fma(fmt).replace(chains=chains, name=f"fma({fmt.name!r}), {chains} chains")
    makers: list[Callable[[], Accumulator]] = [accumulators.vdpbf16ps]
    for partials, mode in product(("half", "float"), ("exact", "aligned", "chained")):
        makers.append(partial(accumulators.amp, partials, inputs=case.format, mode=mode))
    for row, output in product(TENSOR_CORES, ("float32", "float16")):
        makers.append(partial(accumulators.tensor_core, row.architecture, case.format, output))
    for make in makers:
        try:
            yield make()
        except ValueError:  # not with these formats
            continue


def sums(case: Case) -> Iterator[Cause]:
    """Sums by other accumulators."""
    if case.accumulator is None or case.source.format is None or case.second.format is None:
        return
    seen = {case.accumulator}
    for how in _other_accumulators(case):
        fits = not case.addend or how.partials == case.accumulator.partials
        takes = not how.inputs or {case.format, case.formats[1]} <= set(how.inputs)
        if how in seen or not fits or not takes:
            continue
        seen.add(how)
        yield Cause(
            f"sums by {how!r}".replace("Accumulator(", "").removesuffix('")'),
            how.describe().partition(": ")[2],
            ran(case.replace(accumulator=how)),
        )
