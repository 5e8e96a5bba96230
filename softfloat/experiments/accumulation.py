"""Accumulation: what the format of a running sum, chunks, block multiply-adds and stochastic rounding do to long sums.

All numbers are positive, so that sums grow and swamping shows; they are multiples of 2^-p up to 1, so that Python and
NumPy integers hold the exact sums. u is the unit roundoff, 2^-p: 2^-11 in half precision, 2^-24 in single.

>>> half, single, fused = dot_swamping([2**16], dots=1)
>>> half.error > 0.1, single.error < 1e-4, fused.error > 0.9
(True, True, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.accumulators import Accumulator, amp, chunked, fma, tensor_core
from softfloat.bits.sums.products import adds_one_at_a_time
from softfloat.environments import Environment
from softfloat.experiments.choices import accumulator_of, check_environment, environment_of, label_of
from softfloat.formats import Format, bfloat16, float16, float32

__all__ = [
    "LENGTHS",
    "Accumulation",
    "BlockError",
    "ChunkError",
    "DotError",
    "SumError",
    "block_fma_bounds",
    "chunking",
    "dot_swamping",
    "measure",
    "stochastic_sums",
]

LENGTHS = tuple(2**k for k in range(4, 17))
"""Lengths of sums, unless told otherwise."""

MOST_PRECISE = 16  # bits: exact sums of products have 2^31 of them in 63 bits

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class DotError:
    """Squared norms of random vectors of one length, by one accumulator.

    Attributes
    ----------
    accumulator : str
    length : int
        Products of a dot product.
    error : float
        Mean relative error.
    swamped : float
        The share of products, or of the AMP's groups of products, that left the partial sum in memory as it was.
    format, settings : str
        Of the numbers, and how results are rounded, in words.
    """

    accumulator: str
    length: int
    error: float
    swamped: float
    format: str = "float16"
    settings: str = "nearest even"


@dataclass(frozen=True)
class ChunkError:
    """Dot products in chunks of one length.

    Attributes
    ----------
    inner, outer : str
        Formats of the sum of a chunk, in registers, and of the sum of the sums.
    length, chunk : int
        Products of a dot product, and of a chunk.
    error : float
        Mean relative error.
    settings : str
        How results are rounded, in words.
    accumulator : str
        What summed them.
    """

    inner: str
    outer: str
    length: int
    chunk: int
    error: float
    settings: str = "nearest even"
    accumulator: str = ""


@dataclass(frozen=True)
class BlockError:
    """Dot products of one length, with what error analysis guarantees.

    Attributes
    ----------
    accumulator, output : str
        How they were summed, and the format of the result.
    length : int
    error : float
        The largest ``|computed - exact| / |a|·|b|``.
    bound : float
        What it cannot exceed.
    """

    accumulator: str
    output: str
    length: int
    error: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the error stays within the bound."""
        return self.error <= self.bound


@dataclass(frozen=True)
class SumError:
    """Sums of one length.

    Attributes
    ----------
    format, rounding : str
        Of the numbers, and of the additions.
    length, runs : int
        Numbers in a sum, and sums.
    error : float
        Root mean square of the relative errors.
    bound : float
        sqrt(n)*u for stochastic rounding, n*u for nearest even; infinite for an accumulator other than one addition in the format after the other.
    accumulator : str
        What summed them.
    """

    format: str
    rounding: str
    length: int
    runs: int
    error: float
    bound: float
    accumulator: str = ""

    @property
    def holds(self) -> bool:
        """Whether the error stays within the bound."""
        return self.error <= self.bound


@dataclass(frozen=True)
class Accumulation:
    """Everything `measure` computes, each in the order of its function."""

    dots: tuple[DotError, ...]
    chunks: tuple[ChunkError, ...]
    blocks: tuple[BlockError, ...]
    sums: tuple[SumError, ...]

    @property
    def broken(self) -> int:
        """How many measured errors exceed their bound."""
        return sum(not row.holds for row in self.blocks) + sum(not row.holds for row in self.sums)


def dot_swamping(
    lengths: Iterable[int] = LENGTHS,
    *,
    seed: int = 0,
    dots: int = 16,
    fmt: Format | str = "float16",
    accumulators: Sequence[Accumulator] | None = None,
    environment: Environment | None = None,
) -> tuple[DotError, ...]:
    """Squared norms of random vectors, by default in half: the IPU's AMP with half and with float partials, and multiply-adds in half.

    Half partials are stored after 16 products, so they swamp about 16 times later than a sum that takes one product at
    a time, but swamp they do. Results are read in single, which holds partials of either kind.

    Parameters
    ----------
    lengths : iterable of int
        Vectors of different lengths begin alike.
    seed : int
        Of the vectors, and of stochastic rounding if the environment has none.
    dots : int
        How many vectors.
    fmt : Format
        Of the vectors: one that has all multiples of 2^-p up to 1, of at most 16 bits of precision.
    accumulators : sequence of Accumulator, optional
        Default: the environment's, or those three, with multiply-adds in the format.
    environment : Environment, optional
        Every setting, and an accumulator, if it has one.

    >>> from softfloat.accumulators import chunked
    >>> mine = Environment(rounding="stochastic", sr_bits=4)
    >>> way = chunked(32, "float8_e5m2", "float16")
    >>> (row,) = dot_swamping([1024], dots=2, fmt="float8_e5m2", accumulators=[way], environment=mine)
    >>> row.error < 0.2, row.settings
    (True, 'stochastic, 4 random bits')
    """
    lengths, fmt = _checked(lengths, "lengths"), Format.from_name(fmt)
    chosen = environment_of(environment, None, seed)
    units, codes = _uniform(np.random.default_rng(seed), (dots, max(lengths)), fmt)
    exact = np.cumsum(units**2, axis=1) / 4.0**fmt.p
    own = accumulator_of(None, chosen, fmt)
    usual = (amp("half"), amp("float"), fma(fmt)) if own is None else (own,)
    rows = []
    for how in usual if accumulators is None else accumulators:
        for length in lengths:
            x = codes[:, :length]
            result, _, counts = bits.vecdot(x, x, fmt, how, out_format=float32, count=True, environment=chosen)
            errors = abs(bits.decode(result, float32) / exact[:, length - 1] - 1)
            # singles swamp nothing at these lengths: of an AMP, what was counted are stores
            counted = counts.additions if how.store is None else -(-length // how.store_every)
            settings = label_of(chosen, how.partials)
            swamped = float(counts.swamped.mean() / counted)
            rows.append(DotError(repr(how), length, float(errors.mean()), swamped, fmt.name, settings))
    return tuple(rows)


def chunking(
    length: int = 2**16,
    chunks: Iterable[int] | None = None,
    *,
    seed: int = 0,
    dots: int = 8,
    fmt: Format | str = "float16",
    environment: Environment | None = None,
    accumulator: Accumulator | Callable[[Format], Accumulator] | None = None,
) -> tuple[ChunkError, ...]:
    """Dot products in a format, chunk by chunk, with sums of chunks added in the format and, for comparison, in single.

    With n products and chunks of c, a product's error has a bound of (c + n/c)*u: short chunks leave a long sum of
    sums, long ones are long sums themselves (Wang, Choi, Brand, Chen and Gopalakrishnan, "Training Deep Neural Networks
    with 8-bit Floating Point Numbers", NeurIPS 2018). It is smallest at c = sqrt(n).

    Parameters
    ----------
    length : int
        Products of a dot product.
    chunks : iterable of int, optional
        Products of a chunk; default: the powers of two up to `length`.
    seed : int
        Of the vectors, and of stochastic rounding if the environment has none.
    dots : int
        How many pairs of vectors.
    fmt : Format
        Of the vectors and of sums of chunks: one that has all multiples of 2^-p up to 1, of at most 16 bits of precision.
    environment : Environment, optional
        Every setting, and an accumulator, if it has one.
    accumulator : Accumulator, or callable from Format to Accumulator, optional
        What sums a chunk, itself without chunks. Default: multiply-adds in the format.
    """
    sizes, fmt = (
        _checked([2**k for k in range(length.bit_length())] if chunks is None else chunks, "chunks"),
        Format.from_name(fmt),
    )
    chosen = environment_of(environment, None, seed)
    (x, a), (y, b) = _pair(seed, (dots, length), fmt)
    exact = (x * y).sum(axis=1) / 4.0**fmt.p
    how = accumulator_of(accumulator, chosen, fmt) or fma(fmt)
    rows = []
    for outer in (fmt, float32):
        for chunk in sizes:
            way = chunked(chunk, how, outer)
            result, _ = bits.vecdot(a, b, fmt, way, environment=chosen)
            errors = abs(bits.decode(result, outer) / exact - 1)
            settings = label_of(chosen, how.partials)
            rows.append(
                ChunkError(how.partials.name, outer.name, length, chunk, float(errors.mean()), settings, repr(way))
            )
    return tuple(rows)


def block_fma_bounds(lengths: Iterable[int] = LENGTHS, *, seed: int = 0, dots: int = 32) -> tuple[BlockError, ...]:
    """Errors of half dot products beside their bounds: multiply-adds in half, and a tensor core with either output.

    Blanchard, Higham, Lopez, Mary and Pranesh, "Mixed precision block fused multiply-add: error analysis and
    application to GPU tensor cores", SIAM J. Sci. Comput. 42 (2020): to first order n*u16 for half throughout, n*u32
    for block multiply-adds into single, u16 more where their result is rounded to half at the end.

    The bounds here have no terms of second order. Half: n*u16, whatever n (Jeannerod and Rump, "Improved error bounds
    for inner products in floating-point arithmetic", SIAM J. Matrix Anal. Appl. 34, 2013). Tensor cores do not round
    to nearest: a block of b products loses less than 2*u32 of its sum in each of b alignments and again in the result,
    so n*u32 becomes 2*(1 + 1/b)*n*u32, with V100's b = 4 two and a half times that.

    The bounds hold for these accumulators under IEEE 754's settings: it takes neither an environment nor an accumulator.
    `dot_swamping` and `chunking` take both, and `softfloat.analysis.bound` has bounds of some other accumulators.

    Parameters
    ----------
    lengths : iterable of int
        Vectors of different lengths begin alike.
    seed : int
        Of the vectors.
    dots : int
        How many pairs of vectors.
    """
    lengths = _checked(lengths, "lengths")
    (x, a), (y, b) = _pair(seed, (dots, max(lengths)))
    exact = np.cumsum(x * y, axis=1) / 4.0**float16.p
    half, single = 2.0**-float16.p, 2.0**-float32.p
    core = tensor_core("V100")
    cut = 2 * (1 + 1 / core.block) * single
    rows = []
    for how, output, once, each in (
        (fma(float16), float16, 0.0, half),
        (core, float16, half, cut),
        (core, float32, 0.0, cut),
    ):
        for length in lengths:
            result, _ = bits.vecdot(a[:, :length], b[:, :length], float16, how, out_format=output)
            errors = abs(bits.decode(result, output) / exact[:, length - 1] - 1)
            filled = -(-length // how.block) * how.block
            rows.append(BlockError(repr(how), output.name, length, float(errors.max()), once + filled * each))
    return tuple(rows)


def stochastic_sums(
    lengths: Iterable[int] = LENGTHS,
    *,
    runs: int = 48,
    seed: int = 0,
    formats: Sequence[Format | str] = (float16, bfloat16),
    environment: Environment | None = None,
    accumulator: Accumulator | Callable[[Format], Accumulator] | None = None,
) -> tuple[SumError, ...]:
    """Sums of random numbers, one after the other, rounded to nearest even and stochastically.

    To nearest, an error is at most n*u; roundings go the same way once the sum swamps what is added, and it stalls.
    Stochastic ones are right on average whatever came before, so that errors grow as sqrt(n)*u (Connolly, Higham and
    Mary, "Stochastic rounding and its probabilistic backward error analysis", SIAM J. Sci. Comput. 43, 2021, for
    multiples of it that hold with a given probability). For positive numbers the mean square error is to first order
    at most n*u^2: the variance of a rounding is at most a quarter of the squared spacing, which is at most 2*u of the
    sum.

    Parameters
    ----------
    lengths : iterable of int
        Sums of different lengths begin alike.
    runs : int
        Sums, each of numbers of its own.
    seed : int
        Of the numbers, and of stochastic rounding.
    formats : sequence of Format
        Numbers and sums are in each of these.
    environment : Environment, optional
        Every setting but the rounding mode, and an accumulator, if it has one. Few random bits may break the bounds.
    accumulator : Accumulator, or callable from Format to Accumulator, optional
        What sums the numbers. Default: one addition in the format after the other, to which alone the bounds apply.
    """
    lengths = _checked(lengths, "lengths")
    rng = np.random.default_rng(seed)
    rows = []
    for fmt in map(Format.from_name, formats):
        units, codes = _uniform(rng, (max(lengths), runs), fmt)
        exact = np.cumsum(units, axis=0) / 2.0**fmt.p
        unit = 2.0**-fmt.p
        for rounding in ("nearest_even", "stochastic"):
            stochastic = rounding == "stochastic"
            chosen = environment_of(check_environment(environment).replace(rounding=rounding), None, seed)
            how = accumulator_of(accumulator, chosen, fmt) or fma(fmt)
            output = how.output(fmt, fmt)
            if adds_one_at_a_time(how):
                every, _ = bits.cumsum(codes, fmt, how, axis=0, environment=chosen)
                sums = [every[length - 1] for length in lengths]
            else:
                sums = [bits.sum(codes[:length], fmt, how, axis=0, environment=chosen)[0] for length in lengths]
            for length, found in zip(lengths, sums, strict=True):
                errors = bits.decode(found, output) / exact[length - 1] - 1
                error = math.sqrt(float((errors**2).mean()))
                bound = unit * (math.sqrt(length) if stochastic else length) if how == fma(fmt) else math.inf
                rows.append(SumError(fmt.name, rounding, length, runs, error, bound, repr(how)))
    return tuple(rows)


STAGES = ("squared norms", "dot products in chunks", "dot products and their bounds", "long sums")
"""What `measure` tells `progress`."""


def measure(seed: int = 0, progress: Callable[[str], None] | None = None) -> Accumulation:
    """Run the four experiments of this module.

    Parameters
    ----------
    seed : int
        Of random numbers and of stochastic rounding.
    progress : callable, optional
        Called with the name of each experiment, one of `STAGES`, before it begins.
    """
    experiments: tuple[Callable[..., Any], ...] = (dot_swamping, chunking, block_fma_bounds, stochastic_sums)
    found = []
    for name, experiment in zip(STAGES, experiments, strict=True):
        if progress is not None:
            progress(name)
        found.append(experiment(seed=seed))
    return Accumulation(*found)


def _uniform(rng: np.random.Generator, shape: tuple[int, ...], fmt: Format) -> tuple[Array, Array]:
    """Random multiples of 2^-p above 0 and up to 1: as integers, and as codes."""
    if fmt.p > MOST_PRECISE or fmt.max < 1 or fmt.smallest_subnormal > 2.0**-fmt.p:
        raise ValueError(
            f"fmt must have all multiples of 2^-p up to 1, p of at most {MOST_PRECISE} bits its precision, got {fmt}"
        )
    units = rng.integers(1, 2**fmt.p, shape, endpoint=True)
    codes, _ = bits.encode(units / 2.0**fmt.p, fmt)
    return units, codes


def _pair(seed: int, shape: tuple[int, ...], fmt: Format = float16) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    rng = np.random.default_rng(seed)
    return _uniform(rng, shape, fmt), _uniform(rng, shape, fmt)


def _checked(numbers: Iterable[int], argument: str) -> tuple[int, ...]:
    found = tuple(numbers)
    if not found or min(found) < 1:
        raise ValueError(f"{argument} must be positive integers, at least one of them, got {found!r}")
    return found
