"""From checked arguments to compiled loops: operands made flat, specs looked up, work shared among threads, outputs written whole.

Numba is imported with the first loop, not with this module.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softfloat.environment import Environment, Rounding, as_rounding
from softfloat.formats import ROSTER, Format
from softfloat.kernels import spec
from softfloat.kernels.spec import CARRIER32, CARRIER64, FLOAT64, Carrier, FormatSpec, InfiniteInput, Overflow, Rule

if TYPE_CHECKING:
    from types import ModuleType

Codes = np.ndarray[Any, np.dtype[Any]]
NEAREST = Environment()
FLOAT16, BFLOAT16, FLOAT32 = (ROSTER[name].spec for name in ("float16", "bfloat16", "float32"))

TILE = 128  # positions whose random bits are drawn together: `prng.TILE`, without importing it
ALIGNMENT = 1 << 12  # chunks start at multiples of it: a whole number of random tiles and of cache lines
SMALLEST_SHARE = 1 << 16  # elements that are worth waking a thread for


@cache
def loops() -> ModuleType:
    """The compiled floor, imported when first needed."""
    from softfloat.kernels import loops as module

    return module


@cache
def fast() -> ModuleType:
    """The faster loops."""
    from softfloat.kernels import fast as module

    return module


# -- threads ---------------------------------------------------------------------------------------------------------


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Workers:
    """A pool of ordinary threads. Loops hold no interpreter lock, so these run in parallel; tasks never wait for one another."""

    def __init__(self) -> None:
        wanted = os.environ.get("NUMBA_NUM_THREADS", "")
        self.count = int(wanted) if wanted.isdigit() and int(wanted) else _available_cores()
        self._pool: ThreadPoolExecutor | None = None
        self._owner = 0

    def pool(self) -> ThreadPoolExecutor:
        """The pool, made anew after a fork, which copies no threads."""
        pool = self._pool
        if pool is None or self._owner != os.getpid():
            pool = ThreadPoolExecutor(max(1, _available_cores(), self.count), thread_name_prefix="softfloat")
            self._pool, self._owner = pool, os.getpid()
        return pool

    def resize(self, count: int) -> None:
        self.count, self._pool = count, None


_workers = _Workers()


def get_num_threads() -> int:
    """Threads that large arrays are shared among; at first NUMBA_NUM_THREADS if set, else the cores this process may use."""
    return _workers.count


def set_num_threads(count: int) -> None:
    """Share large arrays among `count` threads. Results do not depend on it.

    Raises
    ------
    ValueError
        If `count` is not a positive integer.
    """
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise ValueError(f"count must be a positive integer, got {count!r}")
    _workers.resize(int(count))


def share(size: int, work: Callable[[int, int], int]) -> int:
    """Call work(start, stop) over 0 ... size in chunks, in parallel where it pays; returns the results OR-ed together."""
    threads = min(_workers.count, max(1, size // SMALLEST_SHARE))
    if threads == 1:
        return int(work(0, size))
    step = -(-size // threads)
    step = -(-step // ALIGNMENT) * ALIGNMENT
    spans = [(start, min(start + step, size)) for start in range(0, size, step)]
    futures: list[Future[int]] = []
    seen = 0
    try:
        for start, stop in spans[1:]:
            try:
                futures.append(_workers.pool().submit(work, start, stop))
            except RuntimeError:  # the interpreter is leaving, and takes no more work for other threads
                seen |= int(work(start, stop))
        seen |= int(work(*spans[0]))
    finally:
        wait(futures)  # an interrupted call leaves no thread behind that still writes
    for future in futures:
        seen |= int(future.result())
    return seen


PIECE = 1 << 22  # multiply-adds: what a thread does before it looks whether it is still wanted


def share_units(count: int, work: Callable[[int, int], int], cost: int) -> None:
    """Call work(start, stop) over 0 ... count in small pieces, in parallel where it pays; `cost` multiply-adds a unit.

    A run that takes long shows its progress where a terminal would see it, and an interrupt ends it between two pieces.
    """
    if count * cost < SMALLEST_SHARE:
        if count:
            work(0, count)
        return
    step = max(1, min(PIECE // max(cost, 1), -(-count // (4 * _workers.count))))
    spans = [(start, min(start + step, count)) for start in range(0, count, step)]
    with Progress(len(spans)) as progress:
        if _workers.count == 1 or len(spans) == 1:
            for span in spans:
                work(*span)
                progress.advance()
            return
        _share_spans(spans, work, progress)


def _share_spans(spans: list[tuple[int, int]], work: Callable[[int, int], int], progress: Progress) -> None:
    remaining = iter(spans)
    lock = threading.Lock()

    def take() -> tuple[int, int] | None:
        with lock:
            return next(remaining, None)

    def drain() -> None:
        while (span := take()) is not None:
            work(*span)
            progress.advance()

    futures: list[Future[None]] = []
    try:
        for _ in range(min(_workers.count, len(spans)) - 1):
            try:
                futures.append(_workers.pool().submit(drain))
            except RuntimeError:  # the interpreter is leaving, and takes no more work for other threads
                break
        drain()
    finally:
        with lock:
            remaining = iter(())
        wait(futures)
    for future in futures:
        future.result()


class Progress:
    """A bar on standard error, for runs that last, on terminals."""

    PATIENCE = 1.5  # seconds

    def __init__(self, total: int) -> None:
        self.total, self.done, self._began = total, 0, time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._lock = threading.Lock()

    def advance(self) -> None:
        """One more piece is done."""
        with self._lock:
            self.done += 1
            overdue = time.monotonic() - self._began > self.PATIENCE
            if self._bar is None and overdue and sys.stderr is not None and sys.stderr.isatty():
                self._open()
            if self._bar is not None:
                self._bar.update(self._task, completed=self.done)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bar

        self._bar = Bar(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("softfloat", total=self.total)
        self._bar.start()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()


# -- arguments -------------------------------------------------------------------------------------------------------


def refuse_mask(x: Any, argument: str) -> None:
    """TypeError for masked arrays, whose masks nothing here would keep."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{argument} must have no mask: codes cannot be masked; accepted: x.filled(...), or x.data")


def _as_integers(codes: Any, wanted: str) -> Codes:
    """An array of integers, maybe Python's own; TypeError saying what is wanted if they are none."""
    if hasattr(codes, "codes"):
        raise TypeError(f"{wanted}, got {type(codes).__name__}; accepted: its .codes")
    try:
        array = np.asarray(codes)
    except (OverflowError, ValueError) as error:
        raise TypeError(wanted) from error
    if array.dtype == object:
        integers = all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in array.flat)
    else:
        integers = array.dtype.kind in "iu" or (array.size == 0 and not isinstance(codes, np.ndarray))
    if not integers:
        raise TypeError(f"{wanted}, got dtype {array.dtype}; encode() turns numbers into codes")
    return array


def check_codes(codes: Any, fmt: Format, argument: str) -> Codes:
    """Codes of a format as an array of its dtype; never a copy of one that already is.

    Raises
    ------
    TypeError
        If `codes` are not integers.
    ValueError
        If one is not a code of the format.
    """
    if type(codes) is np.ndarray and codes.dtype == fmt.dtype:
        array = codes
    else:
        refuse_mask(codes, argument)
        array = _as_integers(codes, f"{argument} must be codes of {fmt}: integers from 0 to {hex(2**fmt.bits - 1)}")
    full = array.dtype == fmt.dtype and fmt.bits == 8 * fmt.dtype.itemsize
    if not full and array.size:
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= 2**fmt.bits:
            offender = low if low < 0 else high
            shown = hex(offender) if offender >= 0 else str(offender)
            raise ValueError(
                f"{argument} holds {shown}, which is no code of {fmt}; accepted: 0 to {hex(2**fmt.bits - 1)}"
            )
    if array.dtype != fmt.dtype or not array.dtype.isnative:
        array = array.astype(fmt.dtype)
    return array


def magnitudes(codes: Codes, fmt: Format) -> Codes:
    """Codes without their signs."""
    return codes & fmt.dtype.type((1 << (fmt.bits - fmt.signed)) - 1)


def is_nan(codes: Codes, fmt: Format) -> Any:
    """Whether each code is a NaN."""
    if fmt.spec.lone_nan >= 0:
        return codes == fmt.spec.lone_nan
    return magnitudes(codes, fmt) >= fmt.spec.nan_first if fmt.has_nan else np.zeros(codes.shape, bool)[()]


def is_signalling(codes: Codes, fmt: Format) -> Any:
    """Whether each code is a signalling NaN."""
    if not fmt.spec.quiet:
        return np.zeros(codes.shape, bool)[()]
    return (magnitudes(codes, fmt) >= fmt.spec.nan_first) & (codes & fmt.dtype.type(fmt.spec.quiet) == 0)


def order(codes: Codes, fmt: Format) -> Codes:
    """Integers ... -1, 0, 1 ... that follow each other as the numbers do, both zeros at 0; meaningless for NaNs."""
    magnitude = magnitudes(codes, fmt)
    size = np.maximum(magnitude.astype(np.int64) - (fmt.smallest_subnormal_code - 1), 0)
    return np.where(codes != magnitude, -size, size)


def broadcast(arrays: Sequence[Codes], names: Sequence[str]) -> tuple[list[Codes], tuple[int, ...]]:
    """Flat contiguous operands of one common shape."""
    shape = arrays[0].shape
    if any(x.shape != shape for x in arrays[1:]):
        try:
            shape = np.broadcast_shapes(*(x.shape for x in arrays))
        except ValueError:
            shapes = ", ".join(f"{name} {x.shape}" for name, x in zip(names, arrays, strict=True))
            raise ValueError(f"shapes do not broadcast together: {shapes}") from None
        arrays = [np.broadcast_to(x, shape) for x in arrays]
    return [flattened(x) for x in arrays], shape


def flattened(x: Codes) -> Codes:
    """A flat contiguous view (or copy) that nobody can write: one kind of operand, so that Numba compiles one loop for all."""
    flat = np.ascontiguousarray(x).reshape(-1).view()
    flat.flags.writeable = False
    return flat


class Output:
    """Where a result goes: a fresh array, or the caller's, written directly if nothing it overlaps is read, else at the end."""

    def __init__(
        self, given: Any, shape: tuple[int, ...], dtype: np.dtype[Any], argument: str, operands: Sequence[Codes]
    ) -> None:
        self.given, self.shape = given, shape
        if given is None:
            self.flat = np.empty(math.prod(shape), dtype)
            return
        refuse_mask(given, argument)
        if not isinstance(given, np.ndarray) or given.dtype != dtype or given.shape != shape:
            found = f"{given.dtype} of shape {given.shape}" if isinstance(given, np.ndarray) else type(given).__name__
            raise ValueError(f"{argument} must be an array of dtype {dtype} and shape {shape}, got {found}")
        if not given.flags.writeable:
            raise ValueError(f"{argument} is read-only; accepted: a writeable array of dtype {dtype} and shape {shape}")
        direct = given.flags.c_contiguous and not any(np.may_share_memory(given, x) for x in operands)
        self.flat = given.reshape(-1) if direct else np.empty(given.size, dtype)

    def finish(self) -> Any:
        """The result as the caller sees it: the given array, a new one, or a scalar for operands without dimensions."""
        if self.given is None:
            return self.flat.reshape(self.shape)[()]
        if not np.may_share_memory(self.given, self.flat):
            self.given[...] = self.flat.reshape(self.shape)
        return self.given


def outputs(
    out: Any, flags: str, shape: tuple[int, ...], dtype: np.dtype[Any], operands: Sequence[Codes]
) -> tuple[Output, Output | None]:
    """The places for a result and its flags. `out` is an array for the result, or a pair of arrays for both."""
    if flags not in ("each", "any"):
        raise ValueError(f"flags must be 'each' (a uint8 per element) or 'any' (one integer), got {flags!r}")
    given, given_flags = out if isinstance(out, tuple) and len(out) == 2 else (out, None)
    if given_flags is not None and flags == "any":
        raise ValueError(
            "out holds an array for flags, but flags='any' returns one integer; accepted: flags='each', or an array alone"
        )
    if given is not None and given_flags is not None and np.may_share_memory(given, given_flags):
        raise ValueError("out holds two arrays that share memory")
    result = Output(given, shape, dtype, "out", operands)
    return result, Output(given_flags, shape, np.dtype(np.uint8), "out[1]", operands) if flags == "each" else None


def flag_bytes(raised: Output | None) -> Codes:
    """Where a loop puts a byte of flags for each element; nothing, if it ORs them together."""
    return raised.flat if raised is not None else np.empty(0, np.uint8)


def finished(result: Output, raised: Output | None, seen: int) -> tuple[Any, Any]:
    """(result, flags) as the caller sees them; `seen` is what the loops OR-ed together."""
    return result.finish(), raised.finish() if raised is not None else seen


# -- specs -----------------------------------------------------------------------------------------------------------


Numbers = tuple[Codes, Codes]
"""What a loop knows of formats and rules: an array of integers and one of floats."""


def _packed(carrier: Carrier, *tuples: Any) -> Numbers:
    """Named tuples as two arrays of the carrier's width. What no 32-bit code reaches stays out of reach."""
    integer, real = (np.int32, np.float32) if carrier is CARRIER32 else (np.int64, np.float64)
    values = [x for numbers in tuples for x in numbers]
    limits = np.iinfo(integer)
    integers = [min(max(x, int(limits.min)), int(limits.max)) for x in values if not isinstance(x, float)]
    return np.array(integers, integer), np.array([x for x in values if isinstance(x, float)], real)


@lru_cache(maxsize=4096)
def numbers(source_spec: FormatSpec, fmt: FormatSpec, rule: Rule, carrier: Carrier) -> Numbers:
    """What decodes `source_spec`, and rounds into `fmt` under `rule`."""
    return _packed(carrier, spec.source(source_spec, carrier, rule.daz), spec.target(fmt, rule, carrier))


@lru_cache(maxsize=1024)
def fast_numbers(fmt: FormatSpec, rule: Rule) -> Numbers:
    """What the faster loops know of a target."""
    return _packed(CARRIER32, fast().limits(spec.target(fmt, rule, CARRIER64)))


@lru_cache(maxsize=1024)
def fits_narrow_carrier(fmt: FormatSpec) -> bool:
    """Whether float32 carries the format's arithmetic: products exact, p + 2 bits to spare, no error term out of range."""
    lowest = spec.emin(fmt) - fmt.mantissa_bits
    highest = (fmt.largest >> fmt.mantissa_bits) - fmt.bias + 1
    return 1 <= fmt.mantissa_bits <= 10 and lowest >= -30 and highest <= 30


@lru_cache(maxsize=1024)
def is_unusual(fmt: FormatSpec) -> bool:
    """Whether the format lacks subnormals, negative zero, negative values or zero."""
    return not (fmt.signed and fmt.signed_zero and fmt.zero and fmt.subnormals)


def rule_for(
    settings: Environment, fmt: Format, conversion: bool, random_width: int = 52, handed: bool = False
) -> Rule:
    """The rule under which results go into `fmt`."""
    if settings.overflow is Overflow.NAN and not fmt.has_nan:
        raise ValueError(
            f"overflow='nan' needs a format with a NaN, and {fmt} has none; accepted: 'infinity', 'saturate'"
        )
    return Rule(
        rounding=settings.rounding,  # type: ignore[arg-type]
        overflow=settings.overflow,  # type: ignore[arg-type]
        tininess=settings.tininess,  # type: ignore[arg-type]
        infinite_input=settings.infinite_input,  # type: ignore[arg-type]
        daz=settings.daz,
        ftz=settings.ftz,
        nan=settings.nan,
        conversion=conversion,
        random_width=random_width,
        handed_bits=handed,
    )


# -- numbers of more bits than a carrier ---------------------------------------------------------------------------------


def odd_float(exact: Fraction) -> float:
    """A number as float64; one of more than 53 bits rounded to odd, so that a later rounding is the only one."""
    if exact == 0:
        return 0.0
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent = min(max(exponent, -900), 900)  # beyond, every format rounds alike
    scaled = magnitude / Fraction(2) ** (exponent - 53)
    significand = min(max(int(scaled), 1), 1 << 55)
    shift = max(significand.bit_length() - 53, 0)
    kept = significand >> shift
    sticky = Fraction(kept << shift) != scaled
    odd = float((kept | sticky) << shift) * 2.0 ** (exponent - 53)
    return -odd if exact < 0 else odd


# -- randomness ------------------------------------------------------------------------------------------------------


class Draw:
    """The random bits of one call: an address, or an array with `width` bits for each element."""

    def __init__(self, key: int, stream: int, width: int, handed: Codes) -> None:
        self.key, self.stream, self.width, self.handed = np.uint64(key), np.uint64(stream), width, handed

    def span(self, start: int, stop: int) -> Codes:
        """The handed bits of some elements."""
        return self.handed[start:stop] if self.handed.size else self.handed


NO_BITS = flattened(np.empty(0, np.uint64))
NOTHING_MORE, ALL_KNOWN = flattened(np.empty(0)), np.empty(0, np.bool_)
"""For values that lack nothing."""


def bits_at(drawn: Draw, places: Codes) -> Codes:
    """The random bits of some elements."""
    if drawn.handed.size:
        return flattened(drawn.handed[places])
    found = np.empty(places.size, np.uint64)
    tile = np.empty(TILE)
    for i, place in enumerate(places.tolist()):
        loops().drawing()(tile, drawn.key, drawn.stream, place // TILE * TILE, drawn.width)
        found[i] = int(tile[place % TILE] * 2.0**drawn.width)
    return flattened(found)


@lru_cache(maxsize=256)
def replica_key(seed: int, replica: int) -> int:
    """A key of its own for each replica but 0: two words of Philox at the counter (replica, all ones)."""
    if replica == 0:
        return seed
    from softfloat.kernels.prng import philox

    halves = [
        np.uint64(x)
        for x in (replica & 0xFFFFFFFF, replica >> 32, 0xFFFFFFFF, 0xFFFFFFFF, seed & 0xFFFFFFFF, seed >> 32)
    ]
    low, high, _, _ = philox(*halves)
    return int(low) | int(high) << 32


def check_random_bits(random_bits: Any, sr_bits: int | None, shape: tuple[int, ...]) -> tuple[Codes, int]:
    """Handed-in bits as flat uint64, and how many of them each rounding uses.

    Raises
    ------
    TypeError, ValueError
        If they are not integers of `sr_bits` bits, or of a shape that does not broadcast.
    """
    refuse_mask(random_bits, "random_bits")
    array = np.asarray(random_bits)
    if array.dtype.kind not in "iu":
        raise TypeError(f"random_bits must be integers, got dtype {array.dtype}")
    if sr_bits is None:
        if array.dtype.kind != "u" or array.dtype.itemsize > 4:
            raise ValueError(
                f"random_bits of dtype {array.dtype} need sr_bits (1 to 52); without it, accepted: uint8, uint16, uint32, all bits used"
            )
        sr_bits = 8 * array.dtype.itemsize
    if array.dtype.kind == "u" and 8 * array.dtype.itemsize < sr_bits:
        raise ValueError(f"random_bits are too narrow: {array.dtype} holds fewer than sr_bits={sr_bits} bits")
    if array.size and (int(array.min()) < 0 or int(array.max()) >> sr_bits):
        raise ValueError(
            f"random_bits must be 0 to 2^{sr_bits} - 1 (sr_bits={sr_bits}), got {int(array.min())} to {int(array.max())}"
        )
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"random_bits of shape {array.shape} do not broadcast to the operands' shape {shape}"
        ) from None
    return flattened(array.astype(np.uint64)), sr_bits


def refuse_random_bits(settings: Environment, random_bits: Any) -> None:
    """Random bits where nothing is drawn are a mistake."""
    if random_bits is not None:
        mode = as_rounding(settings.rounding).name.lower()
        raise ValueError(f"random_bits are for rounding='stochastic', and rounding is {mode!r}")


def poplar_state(seed: int, modifier: int, tile: int = 0, worker: int = 0) -> tuple[int, int]:
    """State of the IPU's generator after poprand's setSeed (poplibs, RandomGen.cpp): four seeded words, fifteen outputs discarded."""
    from softfloat.kernels.prng import xoroshiro128aox

    high = ((tile << 4 ^ 0xAAAAAAA0) | worker) & 0xFFFFFFFF
    state = np.uint64(seed), np.uint64(high | ((modifier & 0xFFFFFFFF) ^ 0x55555555) << 32)
    for _ in range(15):
        _, *state = xoroshiro128aox(*state)
    return int(state[0]), int(state[1])


def draw(settings: Environment, random_bits: Any, stream: int, shape: tuple[int, ...]) -> Draw:
    """Where a call's random bits come from.

    Raises
    ------
    ValueError
        If stochastic rounding has neither a seed nor bits handed in.
    """
    if random_bits is not None:
        handed, width = check_random_bits(random_bits, settings.sr_bits, shape)
        return Draw(0, 0, width, handed)
    if settings.seed is None:
        raise ValueError("rounding='stochastic' needs a seed (0 to 2^64 - 1) or random_bits")
    width = settings.sr_bits or 52
    key = replica_key(settings.seed, 0 if settings.replica_identical else settings.replica)
    if settings.generator == "xoroshiro128aox":
        if stream >= 2**32:
            raise ValueError(
                f"stream must be 0 to 2^32 - 1 with generator='xoroshiro128aox' (Poplar's seed modifier), got {stream}"
            )
        state = poplar_state(key, stream)
        outputs_ = np.empty(math.prod(shape), np.uint64)
        loops().generating()(outputs_, np.uint64(state[0]), np.uint64(state[1]))
        return Draw(0, 0, width, flattened(outputs_ >> np.uint64(64 - width)))
    return Draw(key, stream, width, NO_BITS)


# -- running ---------------------------------------------------------------------------------------------------------

NO_CODES = np.empty(0, np.uint8)
WIDE_OPERATIONS = {"remainder", "hypot", "fmod", "modulo", "floor_divide"}
"""Operations that the narrow carrier does not have."""

Work = Callable[[int, int], int]
"""Does the elements start ... stop of a call; returns their flags OR-ed together, 0 where each has its own byte."""


@dataclass(frozen=True)
class Job:
    """One elementwise operation, checked, flat and with its outputs: what the ways to run it choose from."""

    operation: str
    source: FormatSpec
    fmt: FormatSpec
    rule: Rule
    operands: list[Codes]
    codes: Codes
    raises: Codes
    each: bool
    extra: float
    drawn: Draw | None

    def operands_for(self, carrier: Carrier) -> tuple[Codes, Codes, Codes]:
        """Operands a, b, c; those the operation does not take repeat the last.

        Codes as wide as the carrier become the signed integers that the carrier's bits are.
        """
        flat = self.operands
        if carrier is CARRIER64 and self.source is FLOAT64:
            flat = [x.view(np.int64) for x in flat]
        elif carrier is CARRIER32 and self.source == FLOAT32:
            flat = [x.view(np.int32) for x in flat]
        return flat[0], flat[min(1, len(flat) - 1)], flat[-1]

    def reading(self, carrier: Carrier) -> str:
        """The loop's name for the operation: values of the carrier's own format reach beyond any target's."""
        wide = self.operation == "convert" and self.source == (FLOAT32 if carrier is CARRIER32 else FLOAT64)
        return "convert_wide" if wide else self.operation

    @property
    def propagates(self) -> bool:
        """Whether payloads of NaN operands survive."""
        return bool(spec.NAN_POLICIES[self.rule.nan].propagate)


def run(
    operation: str,
    operands: Sequence[Codes],
    names: Sequence[str],
    source_spec: FormatSpec,
    fmt: Format,
    settings: Environment,
    *,
    out: Any,
    flags: str,
    random_bits: Any,
    stream: int,
    extra: float = 0.0,
    work: Callable[[Job], Work] | None = None,
) -> tuple[Any, Any]:
    """One elementwise operation from codes of `source_spec` to codes of `fmt`; `work` says how, if not by a loop of its own."""
    flat, shape = broadcast(operands, names)
    read = operands if random_bits is None else [*operands, np.asarray(random_bits)]
    result, raised = outputs(out, flags, shape, fmt.dtype, read)
    raises = flag_bytes(raised)
    drawn = None
    if settings.rounding is Rounding.STOCHASTIC:
        drawn = draw(settings, random_bits, stream, shape)
        rule = rule_for(settings, fmt, operation == "convert", drawn.width, bool(drawn.handed.size))
    else:
        refuse_random_bits(settings, random_bits)
        rule = rule_for(settings, fmt, operation == "convert")
    job = Job(operation, source_spec, fmt.spec, rule, flat, result.flat, raises, raised is not None, extra, drawn)
    return finished(result, raised, share(result.flat.size, (work or _way(job))(job)))


def add(a: Codes, b: Codes, fmt: Format, rule: Rule) -> tuple[Codes, Codes]:
    """(codes, flags) of a + b under a rule that draws nothing, for callers that have one instead of settings."""
    codes, flags = np.empty(a.size, fmt.dtype), np.empty(a.size, np.uint8)
    job = Job("add", fmt.spec, fmt.spec, rule, [flattened(a), flattened(b)], codes, flags, True, 0.0, None)
    share(a.size, _way(job)(job))
    return codes.reshape(a.shape), flags.reshape(a.shape)


def _way(job: Job) -> Callable[[Job], Work]:
    """The fastest way that serves."""
    family = fast_family(job.operation, job.source, job.fmt, job.rule) if FAST else ""
    if job.drawn is None:
        return partial(_fast_work, family) if family else _plain_work
    if family and not job.drawn.handed.size and job.drawn.width >= 16:
        return partial(_fast_drawn_work, family)
    return _drawn_work


class Direct(NamedTuple):
    """A loop of a deterministic mode, and what it takes: loop(a, b, c, codes, flags, *known) -> flags."""

    loop: Callable[..., int]
    known: tuple[Any, ...]
    carrier: Carrier


def _plain(job: Job) -> Direct:
    """The loop that serves every format and every deterministic mode, on the narrowest carrier that carries."""
    narrow = fits_narrow_carrier(job.fmt) and job.operation not in WIDE_OPERATIONS
    narrow = narrow and (fits_narrow_carrier(job.source) or job.source == FLOAT32)
    carrier = CARRIER32 if narrow else CARRIER64
    unusual = is_unusual(job.fmt)
    way = "nearest" if job.rule.rounding is Rounding.NEAREST_EVEN and not unusual else "selected"
    loop = loops().elementwise(job.reading(carrier), way, unusual, job.each, job.propagates)
    integers, floats = numbers(job.source, job.fmt, job.rule, carrier)
    return Direct(loop, (floats.dtype.type(job.extra), integers, floats), carrier)


def _plain_work(job: Job) -> Work:
    """The work of the plain loop."""
    return _direct_work(_plain(job), job)


def _direct_work(direct: Direct, job: Job) -> Work:
    loop, known, carrier = direct
    a, b, c = job.operands_for(carrier)
    codes, raises = job.codes, job.raises

    def work(start: int, stop: int) -> int:
        span = slice(start, stop)
        return loop(a[span], b[span], c[span], codes[span], raises[span], *known)

    return work


def _drawn_work(job: Job, more: Codes | None = None) -> Work:
    """The loop that serves every format under stochastic rounding; `more` is what the values lack."""
    assert job.drawn is not None
    reading = job.reading(CARRIER64) if more is None else "convert_more"
    loop = loops().elementwise_drawn(reading, is_unusual(job.fmt), job.each, job.propagates)
    known = numbers(job.source, job.fmt, job.rule, CARRIER64)
    a, b, c = job.operands_for(CARRIER64)
    codes, raises, extra, drawn = job.codes, job.raises, job.extra, job.drawn
    lacking, unknown = (NOTHING_MORE, ALL_KNOWN) if more is None else (more, np.zeros(more.size, np.bool_))

    def work(start: int, stop: int) -> int:
        span = slice(start, stop)
        spans = a[span], b[span], c[span], codes[span], raises[span]
        tail = drawn.key, drawn.stream, start, drawn.span(start, stop), drawn.width
        return loop(*spans, extra, lacking[span], unknown[span], *known, *tail)

    return work


def drawn_more(more: Codes) -> Callable[[Job], Work]:
    """The way to convert values that lack something, stochastically."""
    return partial(_drawn_work, more=flattened(more))


def _fast(family: str, job: Job) -> Direct:
    """A faster loop to the same bits, nearest even."""
    limits = fast_numbers(job.fmt, job.rule)
    return Direct(fast().elementwise(family, job.operation, job.each), limits, CARRIER32)


def _fast_work(family: str, job: Job) -> Work:
    """The work of a faster loop."""
    if job.operation == "convert" and not job.each and family in fast().SUMMARIES:
        summarised, limits = fast().convert_summarised(family), fast_numbers(job.fmt, job.rule)
        a, codes, raises = job.operands_for(CARRIER32)[0], job.codes, job.raises
        return lambda start, stop: summarised(a[start:stop], codes[start:stop], raises, *limits)
    return _direct_work(_fast(family, job), job)


Ready = Callable[[Codes, Codes, Codes, int], int]
"""ready(a, b, codes, stream) -> flags OR-ed together, on flat arrays of one length."""


def prepared(operation: str, fmt: Format, settings: Environment) -> Ready | None:
    """What `run` would do for two operands, everything but them settled; None where there is more to settle."""
    drawn = settings.rounding is Rounding.STOCHASTIC
    if drawn and (settings.generator != "philox4x32" or settings.seed is None):
        return None
    rule = rule_for(settings, fmt, False, (settings.sr_bits or 52) if drawn else 52)
    job = Job(operation, fmt.spec, fmt.spec, rule, [], NO_CODES, NO_CODES, False, 0.0, None)
    if drawn:
        loop = loops().elementwise_drawn(operation, is_unusual(fmt.spec), False, job.propagates)
        known = 0.0, NOTHING_MORE, ALL_KNOWN, *numbers(fmt.spec, fmt.spec, rule, CARRIER64)
        source = draw(settings, None, 0, ())

        def ready_drawn(a: Codes, b: Codes, codes: Codes, stream: int) -> int:
            return loop(a, b, b, codes, NO_CODES, *known, source.key, np.uint64(stream), 0, NO_BITS, source.width)

        return ready_drawn
    family = fast_family(operation, fmt.spec, fmt.spec, rule) if FAST else ""
    direct, settled, _ = _fast(family, job) if family else _plain(job)
    return lambda a, b, codes, stream: direct(a, b, b, codes, NO_CODES, *settled)


def _fast_drawn_work(family: str, job: Job) -> Work:
    """A faster loop to the same bits, stochastic; the plain one does the last elements, less than a block."""
    assert job.drawn is not None
    loop = fast().convert_drawn(family, job.each)
    block = fast().DRAWN_BLOCK
    known = *fast_numbers(job.fmt, job.rule), *numbers(job.source, job.fmt, job.rule, CARRIER64)
    a, _, _ = job.operands_for(CARRIER32)
    codes, raises, drawn = job.codes, job.raises, job.drawn
    rest = _drawn_work(job)

    def work(start: int, stop: int) -> int:
        whole = start + (stop - start) // block * block
        span = slice(start, whole)
        seen = 0
        if whole > start:
            seen = int(loop(a[span], codes[span], raises[span], *known, drawn.key, drawn.stream, start, drawn.width))
        return seen | int(rest(whole, stop)) if stop > whole else seen

    return work


FAST = True  # tests turn it off to hold the faster loops against the plain ones


@lru_cache(maxsize=4096)
def fast_family(operation: str, source_spec: FormatSpec, fmt: FormatSpec, rule: Rule) -> str:
    """The faster way that serves this case; empty if none does."""
    stochastic = rule.rounding is Rounding.STOCHASTIC
    ordinary = (stochastic or rule.rounding is Rounding.NEAREST_EVEN) and rule.nan in ("canonical", "riscv")
    ordinary = ordinary and rule.overflow is not Overflow.NAN and rule.infinite_input is not InfiniteInput.NAN
    if not ordinary or rule.daz or rule.ftz or is_unusual(fmt) or fmt.nan_first == spec.NEVER or fast().jit.DISABLED:
        return ""
    half = fmt == FLOAT16 and not stochastic and fast().has_f16c()
    if operation == "convert" and source_spec == FLOAT32:
        if half and spec.target(fmt, rule, CARRIER64).infinity_positive == fmt.infinity:
            return "half"
        if fmt == BFLOAT16:
            return "bfloat16"
        return "narrow" if fits_narrow_carrier(fmt) else ""
    arithmetic = source_spec == fmt and operation != "convert" and ("half", operation) in fast().OPERATIONS
    return "half" if half and arithmetic else ""
