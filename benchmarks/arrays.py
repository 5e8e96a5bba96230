"""What SoftArrays cost beside the functions they call, and beside NumPy's own halves, all in one process.

    python benchmarks/arrays.py [--only REGEX] [--quick] [--plain] [--json FILE] [--markdown PAGE]

The share is the speed of the call over that of what it is compared with: NumPy's float16 doing the same, or the function
of `softfloat.bits` on the same codes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from alone import alone

if __name__ == "__main__":
    alone()

import numpy as np
from measuring import ELEMENTS, STOCHASTIC, Benchmark, Row, Work, codes

import softfloat
from softfloat import bits, float16
from softfloat.accumulators import fma, mul_add

FEW = 20
SIDE = 256
ROW = 1024
STEPS = 10_000


def native(*shape: int, seed: int = 0) -> np.ndarray:
    return codes("float16", *shape, seed=seed).view(np.float16)


def soft(*shape: int, seed: int = 0) -> softfloat.SoftArray:
    return softfloat.asarray(native(*shape, seed=seed))


def call(function: Callable[..., Any], make: Callable[..., Any], *shapes: tuple[int, ...]) -> Work:
    """A function of arrays of these shapes."""
    operands = [make(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    return Work(lambda: function(*operands))


def adding(make: Callable[..., Any], y: Any = None) -> Work:
    """x += y."""
    x, y = make(FEW).copy(), make(FEW, seed=1) if y is None else y

    def run() -> None:
        nonlocal x
        x += y

    return Work(run)


def steps(start: Any, y: Any, **options: Any) -> Work:
    """The tutorial's running sum."""
    settings = softfloat.Environment(**options)

    def run() -> None:
        x = start.copy()
        with settings:
            for _ in range(STEPS):
                x += y

    return Work(run)


def into(function: Callable[..., Any], make: Callable[..., Any], arity: int, **options: Any) -> Work:
    """An operation that writes where it is told."""
    operands = [make(ELEMENTS, seed=seed) for seed in range(arity)]
    out = make(ELEMENTS).copy()
    return Work(lambda: function(*operands, out=out, **options))


def bits_into(name: str, arity: int) -> Work:
    function = getattr(bits, name)
    return into(lambda *x, **options: function(*x, float16, **options), partial(codes, "float16"), arity, flags="any")


def product(a: np.ndarray, b: np.ndarray) -> Any:
    return bits.matmul(a, b, float16, mul_add(float16), out_format=float16, flags="any")


class Pair(NamedTuple):
    """A call, and what it is compared with."""

    name: str
    prepare: Callable[[], Work]
    against: str
    other: Callable[[], Work]

    @property
    def yardstick(self) -> str:
        return f"{self.against}: {self.name}"


SMALL = np.full(FEW, 0.0001, np.float16)
SPANS = np.arange(0, ELEMENTS, 64)
TWO, LONG, SQUARES = ((FEW,),) * 2, (ELEMENTS // ROW, ROW), ((SIDE, SIDE),) * 2
STEPS_OF_NUMPY = partial(steps, np.zeros(FEW, np.float16), SMALL)
CODES = partial(codes, "float16")
PAIRS: dict[str, tuple[Pair, ...]] = {
    "SoftArrays of 20 elements": (
        Pair("x += y", partial(adding, soft), "numpy.float16", partial(adding, native)),
        Pair("x += 0.1", partial(adding, soft, 0.1), "numpy.float16", partial(adding, native, 0.1)),
        Pair("x + y", partial(call, np.add, soft, *TWO), "numpy.float16", partial(call, np.add, native, *TWO)),
        Pair(
            "numpy.add(x, y)",
            partial(call, np.add, soft, *TWO),
            "bits.add",
            partial(call, lambda x, y: bits.add(x, y, float16), CODES, *TWO),
        ),
        Pair(
            "numpy.sqrt(x)",
            partial(call, np.sqrt, soft, (FEW,)),
            "bits.sqrt",
            partial(call, lambda x: bits.sqrt(x, float16, flags="any"), CODES, (FEW,)),
        ),
        Pair(
            "10 000 steps of x += y",
            partial(steps, softfloat.zeros(FEW, float16), softfloat.asarray(SMALL)),
            "numpy.float16",
            STEPS_OF_NUMPY,
        ),
        Pair(
            "10 000 steps, stochastic",
            partial(steps, softfloat.zeros(FEW, float16), softfloat.asarray(SMALL), **STOCHASTIC),
            "numpy.float16",
            STEPS_OF_NUMPY,
        ),
    ),
    "SoftArrays of 2²⁰ elements": (
        *(
            Pair(
                f"numpy.{ufunc.__name__}, 2²⁰",
                partial(into, ufunc, soft, ufunc.nin),
                f"bits.{name}",
                partial(bits_into, name, ufunc.nin),
            )
            for ufunc, name in (
                (np.add, "add"),
                (np.divide, "div"),
                (np.sqrt, "sqrt"),
                (np.exp, "exp"),
                (np.maximum, "maximum"),
            )
        ),
        Pair(
            "numpy.sum of rows of 1024",
            partial(call, lambda x: np.sum(x, axis=1), soft, LONG),
            "bits.sum",
            partial(
                call, lambda x: bits.sum(x, float16, fma(float16), 1, out_format=float16, flags="any"), CODES, LONG
            ),
        ),
    ),
    "Other functions of SoftArrays of 2²⁰ elements": tuple(
        Pair(name, partial(call, function, soft, *shapes), "numpy.float16", partial(call, function, native, *shapes))
        for name, function, *shapes in (
            ("max of rows of 1024", lambda x: np.max(x, axis=1), LONG),
            ("sort of rows of 1024", lambda x: np.sort(x, axis=1), LONG),
            ("x ** 2", lambda x: x**2, LONG),
            ("abs(x) ** 0.3", lambda x: abs(x) ** 0.3, LONG),
            ("prod of columns of 1024", lambda x: np.prod(x, axis=0), LONG),
            ("cumprod of rows of 1024", lambda x: np.cumprod(x, axis=1), LONG),
            ("sum of rows of 1024, where x > 0", lambda x: np.sum(x, axis=1, where=x > 0), LONG),
            ("nanmean of rows of 1024", lambda x: np.nanmean(x, axis=1), LONG),
            ("add.reduceat of spans of 64", lambda x: np.add.reduceat(x, SPANS), (ELEMENTS,)),
            ("convolve with 9", np.convolve, (ELEMENTS,), (9,)),
            ("einsum('ij,ij->i', x, y)", lambda x, y: np.einsum("ij,ij->i", x, y), LONG, LONG),
        )
    ),
    "Products of SoftArrays, 256 × 256": (
        Pair("a @ b", partial(call, np.matmul, soft, *SQUARES), "bits.matmul", partial(call, product, CODES, *SQUARES)),
        Pair(
            "einsum('ij,kj', a, b)",
            partial(call, lambda a, b: np.einsum("ij,kj", a, b), soft, *SQUARES),
            "bits.matmul",
            partial(call, lambda a, b: product(a, b.T), CODES, *SQUARES),
        ),
    ),
}

BENCHMARK = Benchmark(
    "arrays",
    {
        heading: tuple(Row(pair.name, pair.prepare, "µs", pair.yardstick) for pair in pairs)
        for heading, pairs in PAIRS.items()
    },
    {pair.yardstick: pair.other for pairs in PAIRS.values() for pair in pairs},
)

if __name__ == "__main__":
    BENCHMARK.main(__doc__)
