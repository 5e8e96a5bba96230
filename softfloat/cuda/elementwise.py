"""One operation for each element on a GPU: loops over the scalar functions that the CPU's plain loops call.

A thread has every so many-th element. Under stochastic rounding it has the eight elements whose random bits one block of Philox
holds, so that each is drawn by the address that it has on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from softfloat.cuda.arrays import FLOAT64, Arrays, codes_on, library_of, numbers_on, shape_of, uploaded
from softfloat.cuda.compiling import Kernel, numba_cuda, simulated
from softfloat.engine import parameters
from softfloat.engine.draws import replica_key
from softfloat.engine.elementwise import NO_CODES, Job, carrier_for, fast_family
from softfloat.engine.options import CONVERSIONS, Call, Options
from softfloat.engine.parameters import rule_for, way_of
from softfloat.environments import Settings
from softfloat.formats import ROSTER, Format, refuse_wide
from softfloat.kernels import fast, loops, spec
from softfloat.kernels.carrier import decode, source_of
from softfloat.kernels.jit import cut, kernel
from softfloat.kernels.prng import LANES, LOW_WORD, TILE, philox, uniform, unit_fraction
from softfloat.kernels.rounding import target_of, undecided
from softfloat.kernels.spec import CARRIER64, Carrier, FormatSpec, Rule

cuda = numba_cuda()
THREADS = 256
MOST_BLOCKS = 132 * 16
"""More blocks than a GPU has at work: each thread then has several elements, and reads the format's numbers once for all."""

SIMULATED = 4
"""Threads of a block in the simulator, where each is a thread of Python's."""


def launch(kernel: Kernel, count: int, arrays: Arrays, *arguments: Any) -> None:
    """Run a kernel whose threads share so much work among them."""
    threads = SIMULATED if simulated() else THREADS
    blocks = min(-(-count // threads), 1 if simulated() else MOST_BLOCKS)
    if count:
        kernel.launch(blocks, threads, arrays.stream, *arguments)


@cache
def telling(each: bool) -> Callable[..., None]:
    """kernel(flags, seen): what a thread has seen, OR-ed to the only flags; nothing where each element has its own."""

    @kernel
    def tell(flags, seen):  # type: ignore[no-untyped-def]
        if not each:  # noqa: SIM102 -- a condition that is a constant alone, Numba leaves out with what it guards
            if seen & ~flags[0] != 0:
                cuda.atomic.or_(flags, 0, np.int32(seen))

    return tell


@cache
def nearby(operation: str, way: str, each: bool) -> Kernel:
    """The kernel of one operation under a deterministic mode.

    kernel(a, b, c, codes, flags, extra, integers, floats), as `kernels.loops.elementwise`; flags of all elements are OR-ed to the only
    one where each has none of its own.
    """
    element = loops._element(operation, way)

    @kernel
    def known_of(integers, floats):  # type: ignore[no-untyped-def]
        return source_of(integers, floats), target_of(integers, floats)

    @kernel
    def step(x, y, z, extra, known):  # type: ignore[no-untyped-def]
        source, target = known
        x, y, z = cut(x, target.none), cut(y, target.none), cut(z, target.none)
        code, raised, _ = element(x, y, z, extra, target.zero, source, target)
        return code, raised

    return _around(known_of, step, each)


@cache
def short(family: str, operation: str, each: bool) -> Kernel:
    """The same by one of `kernels.fast`, which takes fewer instructions."""
    element = fast.OPERATIONS[family, operation]

    @kernel
    def step(x, y, z, extra, target):  # type: ignore[no-untyped-def]
        return element(x, y, z, target)

    return _around(target_of, step, each)


def _around(known_of: Callable[..., Any], step: Callable[..., Any], each: bool) -> Kernel:
    """The kernel of a step(x, y, z, extra, what is known of formats and rules) -> (code, flags)."""
    tell = telling(each)

    def elementwise_kernel(a, b, c, codes, flags, extra, integers, floats):  # type: ignore[no-untyped-def]
        known, seen = known_of(integers, floats), np.int32(0)
        for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
            code, raised = step(a[i], b[i], c[i], extra, known)
            codes[i] = code
            if each:
                flags[i] = raised
            else:
                seen |= np.int32(raised)
        tell(flags, seen)

    return Kernel(elementwise_kernel)


@cache
def drawn(operation: str, way: str, each: bool) -> Kernel:
    """The kernel of one operation under stochastic rounding.

    kernel(a, b, c, codes, flags, extra, integers, floats, key, stream, width), as `kernels.loops.elementwise_drawn`: an element whose
    rounding hangs on more than 16 bits is done again with all of them.
    """
    tell = telling(each)
    element, settled = loops._element(operation, way), loops._settled(operation)
    at_once = operation == "round_to_integral"
    low, half, first = np.uint64(LOW_WORD), np.uint64(32), np.uint64(0xFFFF)

    def drawn_kernel(a, b, c, codes, flags, extra, integers, floats, key, stream, width):  # type: ignore[no-untyped-def]
        source, target = source_of(integers, floats), target_of(integers, floats)
        seen = 0
        left = np.uint64(max(16 - width, 0))
        for number in range(cuda.grid(1), (codes.size + TILE - 1) // TILE * LANES, cuda.gridsize(1)):
            block = np.uint64(number)
            words = philox(block & low, block >> half, stream & low, stream >> half, key & low, key >> half)
            for place in range(TILE // LANES):
                at = number // LANES * TILE + number % LANES + LANES * place
                if at < codes.size:
                    which = place & 3
                    word = words[0] if which == 0 else words[1] if which == 1 else words[2] if which == 2 else words[3]
                    top = (word >> np.uint64(16 if place > 3 else 0)) & first
                    random = unit_fraction(top >> left << left, 16)
                    if at_once and width > 16:
                        random = uniform(at, top, key, stream, width)
                    x, y, z = cut(a[at], 0), cut(b[at], 0), cut(c[at], 0)
                    code, raised, value = element(x, y, z, extra, random, source, target)
                    if not at_once and undecided(value, random, target):
                        if width > 16:
                            random = uniform(at, top, key, stream, width)
                        random, _ = settled(x, y, z, extra, 0.0, random, source, target)
                        code, raised, value = element(x, y, z, extra, random, source, target)
                    codes[at] = code
                    if each:
                        flags[at] = raised
                    else:
                        seen |= raised
        tell(flags, seen)

    return Kernel(drawn_kernel)


@cache
def decoding() -> Kernel:
    """kernel(codes, values, integers, floats): codes to float64, exactly."""

    def decoding_kernel(codes, values, integers, floats):  # type: ignore[no-untyped-def]
        source = source_of(integers, floats)
        for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
            values[i] = decode(cut(codes[i], source.hidden), source)

    return Kernel(decoding_kernel)


@cache
def looking() -> Kernel:
    """kernel(codes, largest, found): 1 if there is a code beyond the largest."""

    def looking_kernel(codes, largest, found):  # type: ignore[no-untyped-def]
        for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
            if codes[i] > largest:
                found[0] = 1

    return Kernel(looking_kernel)


def kind_of(source: FormatSpec, carrier: Carrier) -> np.dtype[Any]:
    """What a kernel sees codes as: those as wide as the carrier as the signed integers that the carrier's bits are."""
    if source.width == (64 if carrier is CARRIER64 else 32):
        return np.dtype(f"i{source.width // 8}")
    return np.dtype(f"u{1 if source.width <= 8 else 2 if source.width <= 16 else 4 if source.width <= 32 else 8}")


def refuse(call: Call) -> None:
    """Refuse options of a call that are for the CPU."""
    given = {"out": call.out, "position": call.position, "random_bits": call.random_bits}
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} must be None for arrays on a GPU; accepted: on the CPU, x.cpu()")
    if not isinstance(call.flags, str) or call.flags not in ("each", "any"):
        raise ValueError(f"flags must be 'each' (a uint8 per element) or 'any' (one integer), got {call.flags!r}")


def address(settings: Settings, stream: int) -> tuple[np.uint64, np.uint64, int]:
    """(key, stream, width) of the random bits of a call.

    Raises
    ------
    ValueError
        Without a seed, or of a generator whose numbers have no address.
    """
    if settings.seed is None:
        raise ValueError(f"rounding={settings.rounding.name.lower()!r} needs a seed (0 to 2^64 - 1) on a GPU")
    if settings.generator != "philox4x32":
        raise ValueError(
            f"generator must be 'philox4x32' on a GPU, got {settings.generator!r}; accepted: on the CPU, x.cpu()"
        )
    key = replica_key(settings.seed, 0 if settings.replica_identical else settings.replica)
    return np.uint64(key), np.uint64(stream), settings.random_width


def laid_out(arrays: Arrays, operands: Mapping[str, Any], fmt: Format, shape: tuple[int, ...]) -> list[Any]:
    """Codes of a format, checked, one after the other in memory."""
    found = []
    for name, x in operands.items():
        codes = codes_on(arrays, x, fmt, name)
        if isinstance(codes, int):
            found.append(arrays.filled(shape, fmt.dtype, codes))
            continue
        found.append(arrays.laid_out(codes, shape))
        if fmt.bits < 8 * fmt.dtype.itemsize:
            beyond = arrays.filled((1,), np.int32, 0)
            flat = arrays.flat(found[-1], fmt.dtype)
            launch(
                looking(), math.prod(shape), arrays, flat, (1 << fmt.bits) - 1, arrays.flat(beyond, np.dtype(np.int32))
            )
            if arrays.number(beyond):
                raise ValueError(f"{name} holds what is no code of {fmt}; accepted: 0 to {hex(2**fmt.bits - 1)}")
    return found


def places(arrays: Arrays, call: Call, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """(where flags go, the same as kernels take it): a byte each, or one word."""
    each = call.flags == "each"
    flags = arrays.empty(shape, np.uint8) if each else arrays.filled((1,), np.int32, 0)
    return flags, arrays.flat(flags, np.dtype(np.uint8 if each else np.int32))


def run(
    operation: str, operands: Mapping[str, Any], read: Format, fmt: Format, call: Call, extra: float = 0.0
) -> tuple[Any, Any]:
    """An elementwise operation on codes of `read` that lie on a GPU: (codes, flags) there, or with flags="any" an integer."""
    for one in (read, fmt):
        refuse_wide(one, "fmt", f"{operation} on a GPU")
    arrays, shape = library_of(operands.values()), shape_of(operands)
    with arrays.current():
        return _run(operation, arrays, shape, laid_out(arrays, operands, read, shape), read.spec, fmt, call, extra)


def encoded(x: Any, fmt: Format, options: Options) -> tuple[Any, Any]:
    """`bits.encode` of numbers on a GPU."""
    arrays = library_of([x])
    name, shape = numbers_on(arrays, x), tuple(x.shape)
    call = Call(options, fmt, name, CONVERSIONS)
    read = spec.FLOAT64 if name == "float64" else ROSTER[name].spec
    with arrays.current():
        return _run("convert", arrays, shape, [arrays.laid_out(x, shape)], read, fmt, call)


def decoded(codes: Any, fmt: Format) -> Any:
    """`bits.decode` of codes on a GPU."""
    arrays, shape = library_of([codes]), tuple(codes.shape)
    with arrays.current():
        [line] = laid_out(arrays, {"codes": codes}, fmt, shape)
        values = arrays.empty(shape, FLOAT64)
        numbers = uploaded(parameters.numbers(fmt.spec, fmt.spec, Rule(), CARRIER64), arrays.device)
        flat = arrays.flat(line, kind_of(fmt.spec, CARRIER64)), arrays.flat(values, FLOAT64)
        launch(decoding(), math.prod(shape), arrays, *flat, *numbers)
    return values


def _run(
    operation: str,
    arrays: Arrays,
    shape: tuple[int, ...],
    operands: list[Any],
    read: FormatSpec,
    fmt: Format,
    call: Call,
    extra: float = 0.0,
) -> tuple[Any, Any]:
    refuse(call)
    draws, each, count = call.settings.rounding.draws, call.flags == "each", math.prod(shape)
    tail = address(call.settings, call.stream) if draws else ()
    rule = rule_for(call.settings, fmt, operation == "convert", tail[2] if tail else 52)
    family = "" if draws or simulated() else fast_family(operation, read, fmt.spec, rule)
    job = Job(operation, read, fmt.spec, rule, [], NO_CODES, NO_CODES, each, extra, None)
    carrier = CARRIER64 if draws else carrier_for(operation, read, fmt.spec)
    numbers = parameters.numbers(read, fmt.spec, rule, carrier)
    if draws:
        chosen = drawn(job.reading(carrier), way_of(fmt.spec, rule), each)
    elif family:
        chosen, numbers = short(family, operation, each), parameters.fast_numbers(fmt.spec, rule)
    else:
        chosen = nearby(job.reading(carrier), way_of(fmt.spec, rule), each)
    codes = arrays.empty(shape, fmt.dtype)
    flags, places_ = places(arrays, call, shape)
    lines = [arrays.flat(x, kind_of(read, carrier)) for x in operands]
    a, b, c = lines[0], lines[min(1, len(lines) - 1)], lines[-1]
    known = (numbers[1].dtype.type(extra), *uploaded(numbers, arrays.device))
    work = -(-count // 8) if draws else count
    launch(chosen, work, arrays, a, b, c, arrays.flat(codes, fmt.dtype), places_, *known, *tail)
    return codes, flags if each else arrays.number(flags) if count else 0
