"""A statistic of stochastic rounding over more numbers than memory holds: how many of those at each fraction of the spacing go up.

`python -m softfloat.examples.rounding_statistic` rounds 2^31 numbers between 1 and the next half, in blocks, and compares how often each of 256
fractions went up with the fraction itself: chi-squared over 255 of them (0 never goes up). Numbers, results and flags are made and forgotten
block by block; what is kept is a count for each fraction. It needs the extra `dask`, not `examples`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from softfloat.commands.arguments import positive, seed
from softfloat.commands.output import FAILED, CommandError, Parser, console, exit_status, one_line, print_json
from softfloat.environments import environment
from softfloat.formats import float16
from softfloat.markup import grouped

__all__ = ["Statistic", "main", "statistic"]

FRACTIONS = 256
CHUNK = 1 << 21
FARTHEST = 6.0  # standard deviations of chi-squared from what it is on average


class Statistic(NamedTuple):
    """What came of it.

    Attributes
    ----------
    numbers : int
    up : array of int64, (256,)
        How many numbers at each fraction of the spacing went up.
    flags : int
        All that were raised.
    chi_squared : float
        Of 255 counts against the binomial distribution.
    deviations : float
        How far that is from 255, in its standard deviations.
    """

    numbers: int
    up: np.ndarray[Any, Any]
    flags: int
    chi_squared: float
    deviations: float


def statistic(
    count: int = 1 << 31, chunk: int = CHUNK, key: int = 0, progress: Any = False, **options: Any
) -> Statistic:
    """How often numbers go up, that lie at 0/256, 1/256 ... 255/256 of the way from 1 to the next half.

    Parameters
    ----------
    count, chunk : int
        Numbers, and those of a block; multiples of 256.
    key : int
        The seed.
    progress, options
        Of `softfloat.dask.DaskArray.compute`: a scheduler, a bar.

    Raises
    ------
    ValueError
        Naming the argument.
    """
    import dask.array as da

    from softfloat import dask

    for name, value in (("count", count), ("chunk", chunk)):
        if value % FRACTIONS or value < FRACTIONS:
            raise ValueError(f"{name} must be a positive multiple of {FRACTIONS}, got {value}")
    places = da.arange(count, chunks=chunk, dtype=np.int64) % FRACTIONS
    numbers = (1 + places * (float16.eps / FRACTIONS)).astype(np.float32)
    with environment(rounding="stochastic", seed=key):
        rounded = dask.from_array(numbers, float16)
    up = (rounded.codes != float16.one_code).reshape(-1, FRACTIONS).sum(axis=0)
    found, flags = dask.compute([up, rounded.flags], progress, **options)
    each, fractions = count // FRACTIONS, np.arange(1, FRACTIONS) / FRACTIONS
    squared = float(np.sum((found[1:] - each * fractions) ** 2 / (each * fractions * (1 - fractions))))
    freedom = FRACTIONS - 1
    return Statistic(count, found, int(flags), squared, (squared - freedom) / math.sqrt(2 * freedom))


def _peak() -> int:
    """Bytes of memory that the process had at most; 0 where nobody tells."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _run(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m softfloat.examples.rounding_statistic", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=positive, default=1 << 31, metavar="N", help="numbers (default: 2^31)")
    parser.add_argument("--chunk", type=positive, default=CHUNK, metavar="N", help=f"of a block (default: {CHUNK})")
    scheduler = "threads, processes, or the address of a cluster's scheduler (default: threads)"
    parser.add_argument("--scheduler", default="threads", metavar="NAME", help=scheduler)
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="(default: 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(argv)
    found, peak = _found(options)
    document = {
        "numbers": found.numbers, "chunk": options.chunk, "up": int(found.up.sum()), "flags": found.flags,
        "chi_squared": found.chi_squared, "deviations": found.deviations, "peak_bytes": peak,
    }  # fmt: skip
    if options.json:
        print_json(document)
    else:
        console().print(
            f"{grouped(found.numbers)} numbers, {grouped(document['up'])} went up; chi-squared {found.chi_squared:.1f} of {FRACTIONS - 1} counts, "
            f"{found.deviations:+.2f} standard deviations from what it is on average; at most {peak / 2**30:.2f} GiB"
        )
    return 0 if abs(found.deviations) <= FARTHEST and not found.up[0] else FAILED


def _found(options: argparse.Namespace) -> tuple[Statistic, int]:
    try:
        from softfloat import dask

        with dask.scheduled(options.scheduler) as given:
            if "client" in given:
                given = {"scheduler": given["client"]}
            return statistic(options.count, options.chunk, options.seed, True, **given), _peak()
    except (ValueError, ImportError) as error:
        raise CommandError(one_line(str(error))) from None


def main(argv: Sequence[str] | None = None) -> int:
    """The program; its exit status is 1 if the counts are not those of stochastic rounding."""
    return exit_status("rounding_statistic", _run, argv)


if __name__ == "__main__":
    sys.exit(main())
