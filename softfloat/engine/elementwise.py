"""One operation for each element: a job, checked and flat, and the ways to run it."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from softfloat.engine.arguments import Codes, broadcast, flattened
from softfloat.engine.draws import NO_BITS, Draw, Work, bits_at, check_block, draw, refuse_random_bits
from softfloat.engine.generated import address
from softfloat.engine.parameters import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    Numbers,
    block_numbers,
    code_bytes,
    comparisons,
    elements,
    fast,
    fits_narrow_carrier,
    halves,
    is_unusual,
    loops,
    numbers,
    ordinary,
    rule_for,
    singles,
    spared,
    sums,
    way_of,
    wide,
    wide_block_numbers,
    wide_elements,
)
from softfloat.engine.results import finished, flag_bytes, outputs
from softfloat.engine.threads import share
from softfloat.environments import Rounding, Settings
from softfloat.formats import Format
from softfloat.kernels import spec, targets
from softfloat.kernels.spec import CARRIER32, CARRIER64, FLOAT64, Carrier, FormatSpec, InfiniteInput, Overflow, Rule
from softfloat.positions import Position

# -- numbers of more bits than a carrier ---------------------------------------------------------------------------------


def odd_float(exact: Fraction) -> float:
    """A number as float64; one of more than 53 bits rounded to odd, so that a later rounding is the only one."""
    if exact == 0:
        return 0.0
    magnitude = min(max(abs(exact), FARTHEST**-1), FARTHEST)
    near = float(magnitude)
    lost = magnitude - Fraction(near)
    if lost and not int(np.float64(near).view(np.int64)) & 1:
        near = math.nextafter(near, math.inf if lost > 0 else 0.0)
    return -near if exact < 0 else near


FARTHEST = Fraction(2) ** 900
"""Beyond, and below its inverse, every format rounds alike."""
NOTHING_MORE, ALL_KNOWN = flattened(np.empty(0)), np.empty(0, np.bool_)
"""For values that lack nothing."""


# -- running ---------------------------------------------------------------------------------------------------------

NO_CODES = np.empty(0, np.uint8)
WORTH_BLOCKS = 1 << 10
"""Elements of a call from which on blocks are looked at, each with a loop of its own for its mode."""
NOTHING_DRAWN = Draw(0, 0, 52, NO_BITS)
WIDE_OPERATIONS = {"remainder", "hypot", "fmod", "modulo", "floor_divide"}
"""Operations that the narrow carrier does not have."""


@lru_cache(maxsize=1024)
def goes_wide(operation: str, source: FormatSpec, fmt: FormatSpec) -> bool:
    """Whether an operation goes by integers."""
    read = source == FLOAT64 and operation in ("convert", "given")
    return spec.is_wide(fmt) or (spec.is_wide(source) and not read)


class Job(NamedTuple):
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
    narrowed: bool = False  # operands are float64 codes of narrower formats' numbers

    @property
    def wide(self) -> bool:
        """Whether no carrier serves the format, or the operands; float64 numbers are read on their way to any."""
        return not self.narrowed and goes_wide(self.operation, self.source, self.fmt)

    def operands_for(self) -> tuple[Codes, Codes, Codes]:
        """Operands a, b, c; those the operation does not take repeat the last. Those of float64 are signed, as that carrier's bits are."""
        flat = [x.view(np.int64) for x in self.operands] if self.source == FLOAT64 else self.operands
        return flat[0], flat[min(1, len(flat) - 1)], flat[-1]

    def reading(self, carrier: Carrier) -> str:
        """The loop's name for the operation: values of the carrier's own format reach beyond any target's."""
        wide = self.operation == "convert" and self.source == (FLOAT32 if carrier is CARRIER32 else FLOAT64)
        return "convert_wide" if wide else self.operation


def run(
    operation: str,
    operands: Sequence[Codes],
    names: Sequence[str],
    source_spec: FormatSpec,
    fmt: Format,
    settings: Settings,
    *,
    out: Any,
    flags: str,
    random_bits: Any,
    stream: int,
    position: Position | None = None,
    extra: float = 0.0,
    work: Callable[[Job], Work] | None = None,
    narrowed: bool = False,
) -> tuple[Any, Any]:
    """One elementwise operation from codes of `source_spec` to codes of `fmt`; `work` says how, if not by a loop of its own.

    `narrowed`: operands are float64 codes of narrower formats' numbers.
    """
    flat, shape = broadcast(operands, names)
    check_block(operation, position, shape)
    read = operands if random_bits is None else [*operands, np.asarray(random_bits)]
    result, raised = outputs(out, flags, shape, fmt.dtype, read)
    raises = flag_bytes(raised)
    drawn, converts = None, operation.startswith("convert")
    if settings.rounding.draws:
        drawn = draw(settings, random_bits, stream, shape, position)
        rule = rule_for(settings, fmt, converts, drawn.width, bool(drawn.handed.size))
    else:
        refuse_random_bits(settings, random_bits)
        rule = rule_for(settings, fmt, converts)
    each = raised is not None
    job = Job(operation, source_spec, fmt.spec, rule, flat, result.flat, raises, each, extra, drawn, narrowed)
    whole = (work or way)(job)
    return finished(result, raised, share(result.flat.size, whole if drawn is None else drawn.cut(whole)))


def add(a: Codes, b: Codes, fmt: Format, rule: Rule) -> tuple[Codes, Codes]:
    """(codes, flags) of a + b under a rule that draws nothing, for callers that have one instead of settings."""
    return settled("add", [a, b], fmt.spec, fmt, rule)


def settled(
    operation: str,
    operands: Sequence[Codes],
    source: FormatSpec,
    fmt: Format,
    rule: Rule,
    drawn: Draw | None = None,
) -> tuple[Codes, Codes]:
    """(codes, flags) of an operation under a rule, with random bits if it draws any; operands are of one shape."""
    shape, size = operands[0].shape, operands[0].size
    codes, flags = np.empty(size, fmt.dtype), np.empty(size, np.uint8)
    job = Job(operation, source, fmt.spec, rule, [flattened(x) for x in operands], codes, flags, True, 0.0, drawn)
    share(size, way(job))
    return codes.reshape(shape), flags.reshape(shape)


def settled_by(
    bits: Codes, width: int, operation: str, operands: Sequence[Codes], source: FormatSpec, fmt: Format, rule: Rule
) -> tuple[Codes, Codes]:
    """The same with so many random bits for each element."""
    drawn = Draw(0, 0, width, flattened(bits))
    return settled(operation, operands, source, fmt, rule._replace(handed_bits=True), drawn)


def way(job: Job) -> Work:
    """The work of a job, by the fastest way that serves."""
    return _way(job)(job)


def _way(job: Job) -> Callable[[Job], Work]:
    """The fastest way that serves."""
    if quick() and not job.wide and _has_pairs(job):
        return pairs_work
    over = _over_blocks(job) if job.codes.size >= WORTH_BLOCKS else None
    return _plain_work if over is None else over.work


BYTES = np.dtype(np.uint8)


def by_bytes(loop: Callable[..., int], *known: Any) -> Callable[..., int]:
    """A loop that takes codes of every format, as bytes: run(a, b, c, codes, flags, more ...) -> flags, what is `known` settled."""
    settled = spared(loop)

    def run(a: Codes, b: Codes, c: Codes, codes: Codes, flags: Codes, *more: Any) -> int:
        x = a.view(BYTES)
        y = x if b is a else b.view(BYTES)
        z = x if c is a else y if c is b else c.view(BYTES)
        return settled.run(codes.size, x, y, z, codes.view(BYTES), flags, a.itemsize, codes.itemsize, *known, *more)

    return run


def carrier_for(operation: str, source: FormatSpec, fmt: FormatSpec) -> Carrier:
    """The narrowest carrier that carries an operation; a float32 that is only read stays exact on the narrow one, counted in quanta of at most 1:
    of larger ones its smallest numbers are fractions that no float32 has."""
    narrow = fits_narrow_carrier(fmt) and operation not in WIDE_OPERATIONS
    from_single = operation == "convert" and source == FLOAT32 and spec.emin(fmt) <= fmt.mantissa_bits
    return CARRIER32 if narrow and (fits_narrow_carrier(source) or from_single) else CARRIER64


def _plain_loop(job: Job) -> Callable[..., int]:
    """The loop that serves every format and rule: run(a, b, c, codes, flags) -> flags; `_addressed` says when an address of random bits follows."""
    carrier = CARRIER64 if _addressed(job) else carrier_for(job.operation, job.source, job.fmt)
    known = numbers(job.source, job.fmt, job.rule, carrier, wide=job.wide)
    if job.wide:
        if job.rule.projection != "ieee":
            raise ValueError("projection must be 'ieee' where an operand's format is wide, got 'p3109'")
        loop = comparisons().by_element(wide().element_of(job.operation), wide().OPERATIONS[job.operation][1], True)
        return by_bytes(loop, float(job.extra), *known)
    reading, extra = job.reading(carrier), np.array([job.extra], known[1].dtype)
    if job.rule.rounding.draws:
        return drawing(job, reading, extra, NOTHING_MORE, ALL_KNOWN, *known)
    loop = loops().elementwise(reading, way_of(job.fmt, job.rule), known[0].dtype)
    return by_bytes(loop, extra, *known)


def _addressed(job: Job) -> bool:
    """Whether the plain loop takes an address of random bits."""
    return job.wide or job.rule.rounding.draws


def _plain_work(job: Job) -> Work:
    """The work of the loop that serves everything."""
    run, drawn = _plain_loop(job), (job.drawn or NOTHING_DRAWN) if _addressed(job) else None
    a, b, c = job.operands_for()

    def work(start: int, stop: int) -> int:
        span, address = slice(start, stop), drawn.address(start, stop) if drawn is not None else ()
        return run(a[span], b[span], c[span], job.codes[span], job.raises[span], *address)

    return work


def drawing(job: Job, reading: str, *known: Any) -> Callable[..., int]:
    """The loop that serves every format under stochastic rounding: run(a, b, c, codes, flags, extra, more, unknown, ...) -> flags."""
    loop = loops().elementwise_drawn(reading, way_of(job.fmt, job.rule))
    return by_bytes(loop, *known)


def drawn_more(more: Codes) -> Callable[[Job], Work]:
    """The way to convert values that lack something, stochastically."""

    def work_of(job: Job) -> Work:
        assert job.drawn is not None
        loop, known, drawn = drawing(job, "convert_more"), numbers(job.source, job.fmt, job.rule, CARRIER64), job.drawn
        (a, b, c), lacking, unknown = job.operands_for(), flattened(more), np.zeros(more.size, np.bool_)
        extra = np.array([job.extra])

        def work(start: int, stop: int) -> int:
            span = slice(start, stop)
            lacks = extra, lacking[span], unknown[span]
            parts = a[span], b[span], c[span], job.codes[span], job.raises[span]
            return loop(*parts, *lacks, *known, *drawn.address(start, stop))

        return work

    return work_of


# -- blocks of ordinary operands -------------------------------------------------------------------------------------


class _Blocks(NamedTuple):
    """A loop over blocks of ordinary operands, what it knows of them and where that lies, and the random bits of the call."""

    loop: Callable[[int], int]
    half_words: int
    known: Numbers
    places: list[int]
    drawn: Draw

    def work(self, job: Job) -> Work:
        """The work of a job."""
        return partial(self.run, job)

    def run(self, job: Job, start: int, stop: int) -> int:
        """Flags of some elements. The plain loop does those that are left."""
        loop, half_words, _, known, drawn = self
        a, b, c = job.operands_for()
        first = address(a)
        second = first if b is a else address(b)
        third = second if c is b else address(c)
        codes, flags = address(job.codes), address(job.raises) if job.each else 0
        size, made, seen, most = a.itemsize, job.codes.itemsize, 0, BLOCK + (stop - start >> 4)
        left = np.empty(most + BLOCK + 1, np.int64)
        fixed = address(left), *known
        while start < stop:
            key, stream, number, handed, width = drawn.address(start, stop)
            at = start * size
            words = array("Q", (
                first + at, second + at, third + at, codes + start * made, flags + start, *fixed,
                address(handed) if handed.size else 0, half_words, stop - start, job.each, most, number, handed.size, width,
                int(key), int(stream),
            ))  # fmt: skip
            done = loop(words.buffer_info()[0])
            seen |= 0 if job.each else done & ((1 << FLAG_BITS) - 1)
            if left[-1]:
                seen |= _left(job, left[: left[-1]] + start)
            start += done >> FLAG_BITS
        return seen


BLOCK, FLAG_BITS = 2048, 5
"""Those of `kernels.blocks`, which takes long to import."""


Kind = tuple[str, str, str, bool, bool]
"""What `blocks.Elementwise` is of, but for sizes of codes."""


def _over_blocks(job: Job) -> _Blocks | None:
    """The loop over blocks of ordinary operands, if one serves."""
    found = (_wide_kind(job) if job.wide else _short_kind(job)) if quick() else None
    if found is None:
        return None
    what, known = sums().Elementwise(*found[0], code_bytes(job.source), code_bytes(job.fmt)), found[1]
    half_words = sums().address("half_words") if what.draws else 0
    return _Blocks(sums().loop_of(what), half_words, known, [*map(address, known)], job.drawn or NOTHING_DRAWN)


def _summing(operation: str) -> str:
    """The operation of a loop: differences are sums of codes whose signs are flipped."""
    return "add" if operation == "sub" else operation


def _short_kind(job: Job) -> tuple[Kind, Numbers] | None:
    """The loop of a format that float32 carries, or of float32 itself, and what it knows."""
    operation, fmt, rule = _summing(job.operation), job.fmt, job.rule
    converts, double = operation == "convert", job.source == FLOAT64
    serves = (operation in elements().NEAR and job.source == fmt) or (converts and (double or job.source == FLOAT32))
    known = block_numbers(fmt, rule, job.operation) if serves else None
    if known is None:
        return None
    mode, drawn, flushes = rule.rounding.name.lower(), rule.rounding.draws, ordinary().flushes(fmt, rule)
    if fmt == FLOAT32:
        serves = operation in singles().DRAWN if drawn else mode in singles().TO_SINGLE
        return (("single", operation, mode, False, False), known) if serves else None
    nearest, half = rule.rounding is Rounding.NEAREST_EVEN, fmt == FLOAT16 and fast().has_f16c()
    way = "stochastic" if drawn else "nearest" if nearest else "selected"
    if half and not (drawn or flushes) and (nearest or (operation == "mul" and mode in halves().MODES)):
        return ("cpu64" if double else "cpu", operation, way if nearest else mode, False, False), known
    kind = "float64" if double else "half" if half else "bfloat16" if fmt == BFLOAT16 else "any"
    return (kind, operation, way, ordinary().lifts(fmt), flushes), known


def _wide_kind(job: Job) -> tuple[Kind, Numbers] | None:
    """The loop of a wide format, in which float64 leads to the results of ordinary operands, and what it knows."""
    mode, drawn, known = job.rule.rounding.name.lower(), job.rule.rounding.draws, wide_elements()
    operation = _summing(job.operation)
    if operation not in known.OPERATIONS or is_unusual(job.source) or is_unusual(job.fmt):
        return None
    if not job.rule.restated or mode not in (("stochastic",) if drawn else known.MODES):
        return None
    kind = "double" if job.fmt.mantissa_bits == FLOAT64.mantissa_bits else "wide"
    return (kind, operation, mode, False, False), wide_block_numbers(job.source, job.fmt, job.rule, job.operation)


def _left(job: Job, places: Codes) -> int:
    """Some elements of a job, by the plain loop; their flags OR-ed together, 0 where each has its own."""
    operands = [flattened(x[places]) for x in job.operands]
    codes, flags = np.empty(places.size, job.codes.dtype), np.empty(places.size if job.each else 0, np.uint8)
    rule, drawn = job.rule, job.drawn
    if drawn is not None:
        rule, drawn = rule._replace(handed_bits=True), Draw(0, 0, drawn.width, bits_at(drawn, places))
    some = job._replace(operands=operands, codes=codes, raises=flags, rule=rule, drawn=drawn)
    seen = _plain_work(some)(0, places.size)
    job.codes[places] = codes
    if job.each:
        job.raises[places] = flags
    return seen


# -- pairs of short codes in a table ---------------------------------------------------------------------------------

PAIR_BITS = 8
"""Formats as wide have tables of pairs."""

WORTH_A_TABLE = 1 << 12
"""Elements of a call from which on one is made."""


def _has_pairs(job: Job) -> bool:
    """Whether results are looked up by the codes of both operands."""
    if (
        job.drawn is not None
        or job.codes.size < WORTH_A_TABLE
        or job.source.width > PAIR_BITS
        or job.fmt.width > PAIR_BITS
    ):
        return False
    return job.operation != "given" and loops().OPERATIONS[job.operation][1] == 2


@lru_cache(maxsize=64)
def _pairs(
    make: Callable[[Job], Work], operation: str, source: FormatSpec, fmt: FormatSpec, rule: Rule, extra: float
) -> Codes:
    """For every pair of codes, the first in the index's high 8 bits: a code, and flags 8 bits higher, as `make` finds them."""
    every = np.arange(1 << source.width, dtype=np.uint8)
    operands = [flattened(np.repeat(every, every.size)), flattened(np.tile(every, every.size))]
    codes, flags = np.empty(every.size**2, np.uint8), np.empty(every.size**2, np.uint8)
    job = Job(operation, source, fmt, rule, operands, codes, flags, True, extra, None)
    make(job)(0, codes.size)
    table = np.zeros((1 << PAIR_BITS, 1 << PAIR_BITS), np.uint16)
    table[: every.size, : every.size] = (codes | flags.astype(np.uint16) << 8).reshape(every.size, every.size)
    return flattened(table)


def pairs_work(job: Job, make: Callable[[Job], Work] = _plain_work) -> Work:
    """The work of an operation whose results are in a table; `make` finds those, if not the loop that serves everything."""
    table = _pairs(make, job.operation, job.source, job.fmt, job.rule, job.extra)
    gather = loops().gathering_pairs(job.each)
    a, b, _ = job.operands_for()
    codes, raises = job.codes, job.raises

    def work(start: int, stop: int) -> int:
        span = slice(start, stop)
        return int(gather(a[span], b[span], codes[span], raises[span], table))

    return work


Ready = Callable[..., int]
"""ready(a, b, c, codes, flags, stream, in_place) -> flags OR-ed together, or 0 where each has its own byte, on flat arrays of one length.

Operands that the operation does not take repeat the last. `in_place`: codes are those of an operand.
"""


@lru_cache(maxsize=512)
def prepared(
    operation: str,
    fmt: Format,
    settings: Settings,
    fast: bool,
    each: bool = False,
    extra: float = 0.0,
    source: FormatSpec | None = None,
) -> Ready | None:
    """What `run` would do for operands of one shape, everything but them settled; None where there is more to settle.

    `settings` are those of the call, overrides looked up; `fast`: whether faster loops may serve; `each`: whether each element has flags of its own;
    `source`: what operands are codes of, if not `fmt`.
    """
    drawn = settings.rounding.draws
    if drawn and (settings.generator != "philox4x32" or settings.seed is None):
        return None
    fast, read = fast and quick(), source or fmt.spec
    rule = rule_for(settings, fmt, operation == "convert", settings.random_width if drawn else 52)
    job = Job(operation, read, fmt.spec, rule, [], NO_CODES, NO_CODES, each, extra, None)
    count = loops().OPERATIONS[operation][1]
    run, addressed = _plain_loop(job), _addressed(job)
    address = draw(settings, None, 0, ()) if drawn else NOTHING_DRAWN
    over = cache(partial(_over_blocks, job))  # when it is first asked for: few elements need no loop over blocks

    def ready(a: Codes, b: Codes, c: Codes, codes: Codes, flags: Codes, stream: int, in_place: bool) -> int:
        if fast and codes.size >= WORTH_BLOCKS:
            own = Draw(int(address.key), stream, address.width, NO_BITS) if drawn else None
            made = np.empty_like(codes) if in_place else codes
            this = job._replace(operands=[a, b, c][:count], codes=made, raises=flags, drawn=own)
            work: Work | None = None
            if _has_pairs(this):
                work = pairs_work(this)
            elif (found := over()) is not None:
                work = found._replace(drawn=own or found.drawn).work(this)
            if work is not None:
                seen = work(0, codes.size)
                if in_place:
                    codes[:] = made
                return seen
        tail = (address.key, np.uint64(stream), 0, NO_BITS, address.width) if addressed else ()
        return run(a, b, c, codes, flags, *tail)

    return ready


@lru_cache(maxsize=64)
def prepared_handed(
    operation: str, fmt: Format, settings: Settings, extra: float = 0.0, source: FormatSpec | None = None
) -> Callable[[Codes, Codes, Codes, Codes, Codes, Codes], int]:
    """What `run` would do under stochastic rounding with `sr_bits` bits for each element handed in, as uint64: all but arrays settled.

    handed(a, b, c, codes, flags, bits): flat arrays of one length, each element with flags of its own; otherwise as `prepared`.
    """
    width, read = settings.random_width, source or fmt.spec
    rule = rule_for(settings, fmt, operation == "convert", width, True)
    job = Job(operation, read, fmt.spec, rule, [], NO_CODES, NO_CODES, True, extra, None)
    run, nowhere = _plain_loop(job), np.uint64(0)
    return lambda a, b, c, codes, flags, bits: run(a, b, c, codes, flags, nowhere, nowhere, 0, bits, width)


FAST = True  # tests turn it off to hold the faster loops against the plain ones


def quick() -> bool:
    """Whether faster ways may serve: not in plain Python, which is for debuggers."""
    return FAST and not loops().jit.DISABLED


@lru_cache(maxsize=4096)
def fast_family(operation: str, source_spec: FormatSpec, fmt: FormatSpec, rule: Rule) -> str:
    """The faster way that serves this case; empty if none does."""
    stochastic = rule.rounding is Rounding.STOCHASTIC
    ordinary = (stochastic or rule.rounding is Rounding.NEAREST_EVEN) and rule.nan in ("canonical", "riscv")
    ordinary = ordinary and rule.overflow is not Overflow.NAN and rule.infinite_input is not InfiniteInput.NAN
    ordinary = ordinary and rule.restated
    if not ordinary or rule.daz or rule.ftz or is_unusual(fmt) or fmt.nan_first == spec.NEVER or fast().jit.DISABLED:
        return ""
    half = fmt == FLOAT16 and not stochastic and fast().has_f16c()
    if operation == "convert" and source_spec == FLOAT32:
        if half and targets.target(fmt, rule, CARRIER64).infinity_positive == fmt.infinity:
            return "half"
        if fmt == BFLOAT16:
            return "bfloat16"
        return "narrow" if fits_narrow_carrier(fmt) else ""
    arithmetic = source_spec == fmt and operation != "convert" and ("half", operation) in fast().OPERATIONS
    return "half" if half and arithmetic else ""
