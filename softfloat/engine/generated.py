"""Calls of the loops that `kernels.sums` generates, and what these are told: numbers of formats and rules, and what operands span."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from ctypes import addressof, c_char
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softfloat.engine import parameters, threads
from softfloat.engine.arguments import Codes
from softfloat.engine.parameters import FLOAT32, steps, sums, tiles
from softfloat.formats import Format
from softfloat.kernels import spec, targets
from softfloat.kernels.spec import CARRIER32, CARRIER64, Overflow, Rounding

if TYPE_CHECKING:
    from softfloat.engine.programs import Site

LINE = 16  # numbers
TURNS = 8
"""Turns of a sum that draws which are done at a time, as many as a block of random numbers has."""


NOTHING: Mapping[str, int] = {}


class Job:
    """A loop of a sum and what it takes; job(first, last, more) -> flags seen, of tiles of these numbers. What is not named is 0."""

    def __init__(self, what: Any, arrays: Mapping[str, Codes], numbers: Mapping[str, int]) -> None:
        self.what, self._loop, self.places = what, sums().loop_of(what), sums().PLACES
        words = [0] * len(self.places)
        words[self.places["again"]], self._settled = sums().again_address(what)
        words[self.places["fill"]] = sums().noise_address(what)
        for name, x in arrays.items():
            words[self.places[name]] = address(x)
        for name, number in numbers.items():
            words[self.places[name]] = number
        self.words = array("Q", words)
        self._arrays = arrays  # which live as long as their addresses

    def __call__(self, first: int, last: int, more: Mapping[str, int] = NOTHING) -> int:
        """Tiles first ... last - 1, with `more` numbers, or addresses of what lives until then."""
        settled, call, places = self._settled, self.words[:], self.places  # in this order: other threads may settle it
        call[places["first"]], call[places["last"]] = first, last
        for name, number in more.items():
            call[places[name]] = number
        state = None if settled else self._arrays.get("state")
        before = None if state is None else state.copy()
        found: int = self._loop(call.buffer_info()[0])
        while not settled:
            again, settled = sums().again_address(self.what)
            if again == call[places["again"]]:
                break
            self.words[places["again"]] = call[places["again"]] = again
            self._settled = settled
            if state is not None:
                state[...] = before
            found = self._loop(call.buffer_info()[0])
        return found


def is_unusual(seen: int) -> bool:
    """Whether a loop of segments met something that is not ordinary, by what it returned: its sums are nothing then."""
    return bool(seen & sums().UNUSUAL)


def address(x: Codes) -> int:
    """Where an array lies; the buffer of one that may be written to tells it in a quarter of the time."""
    memory: Any = x
    if x.flags.carray and x.size:
        return addressof(c_char.from_buffer(memory))
    found: int = x.__array_interface__["data"][0]
    return found


def addresses(arrays: Mapping[str, Codes]) -> dict[str, int]:
    """Where arrays lie."""
    return {name: address(x) for name, x in arrays.items()}


NOWHERE: Codes = np.empty(0, np.int64)


class Lying(NamedTuple):
    """How codes lie: the first one of the first product, how far it is to the next product of an output, and to the next output; products of
    outputs from which one on, how many, and of how many outputs; grids of them, and how far it is to the next."""

    first: int
    k_step: int
    n_step: int
    start: int
    length: int
    outputs: int
    grids: int = 1
    apart: int = 0


@cache
def read_places() -> dict[str, int]:
    """Where each of READ_FIELDS stands in what a reading's loop takes."""
    return {name: number for number, name in enumerate(sums().READ_FIELDS)}


@lru_cache(maxsize=512)
def _as_words(panels: str, *numbers: float) -> list[int]:
    """Numbers as panels of float64 or float32 have them."""
    floats, bits = (np.float64, np.uint64) if panels == "d" else (np.float32, np.uint32)
    found: list[int] = np.array(numbers, floats).view(bits).tolist()
    return found


@lru_cache(maxsize=512)
def reader(reading: str, code: str, panels: str, planes: int, cells: int, sharing: int) -> Any:
    """The loop that reads codes into panels, of types with these characters."""
    return sums().loop_of(sums().Reading(reading, code, panels == "d", planes, cells, sharing))


class BlockScales(NamedTuple):
    """Scales of codes: their own codes, of a byte; of each of these the value, and its power of two, as panels have them; products that share a
    power, 1 if each has its own; products and outputs of a block, and how far it is from one's scale to the next's."""

    codes: Codes
    known: Codes
    sharing: int
    block: tuple[int, int]
    steps: tuple[int, int]


UNSCALED = BlockScales(NOWHERE, NOWHERE, 0, (0, 0), (0, 0))


class Reader(NamedTuple):
    """The loop of a reading and what it takes, but for places; and what lives as long as its own."""

    loop: Any
    words: array[int]
    kept: tuple[Codes, ...]

    def read(self, **places: int) -> tuple[float, float, bool]:
        """Read what is at these `places` to those: the least magnitude but 0, and the greatest; whether all is finite."""
        words, spans, numbers = self.words[:], array("d", (0.0, 0.0)), read_places()
        words[numbers["spans"]] = spans.buffer_info()[0]
        for name, place in places.items():
            words[numbers[name]] = place
        finite = self.loop(words.buffer_info()[0])
        return spans[0], spans[1], bool(finite)


class Source(NamedTuple):
    """Codes and how they are read, maybe by a table. Powers of two are at least `tiny`, and `of_zeros` zeros'."""

    reading: str
    codes: Codes
    table: Codes
    tiny: float
    of_zeros: float
    scaling: BlockScales = UNSCALED

    def reader(self, panels: Codes, lying: Lying, index: Codes = NOWHERE) -> Reader:
        """What reads codes that lie so to panels, whose axes end with (planes, panels, k, size); of more k than there are codes the rest is zeros."""
        kind, codes, table, scaling = panels.dtype.char, self.codes, self.table, self.scaling
        of_table, order, known = (address(x) if x.size else 0 for x in (table, index, scaling.known))
        of_nothing = self.of_zeros**2 if scaling.sharing == 1 else self.of_zeros
        words = array("Q", (
            0, of_table, 0, order, 0, 0, known, *lying, *_as_words(kind, self.tiny, self.of_zeros, of_nothing), codes.itemsize,
            panels.shape[-2], *scaling.block, *scaling.steps, scaling.known.shape[-1],
        ))  # fmt: skip
        loop = reader(self.reading, codes.dtype.char, kind, panels.shape[-4], panels.shape[-1], scaling.sharing)
        return Reader(loop, words, (table, scaling.known, index))

    def read(
        self, panels: Codes, lying: Lying, index: Codes = NOWHERE, by: Reader | None = None
    ) -> tuple[float, float, bool]:
        """Read them, as `Reader.read` does, `by` one that is settled, if there is one."""
        places = {"codes": self.codes, "panels": panels}
        if self.scaling.sharing:
            places["scales"] = self.scaling.codes
        return (by or self.reader(panels, lying, index)).read(**addresses(places))


def turns(step: int, apart: int, chains: int = 1, each: bool = False) -> dict[str, int]:
    """Of sums in order that draw: the number of the first product, how far apart a chain's are, and how many turns are done at a time: those
    whose random numbers there is room for, or `each` alone."""
    floor = sums()
    if chains > 1:
        at_once = min(TURNS, (floor.MANY_NUMBERS - TURNS) // chains)
    else:
        at_once = (TURNS - 1 + apart) // apart
    mask = (floor.FEW_NUMBERS if chains == 1 else floor.MANY_NUMBERS) - 1
    return {"step": step, "apart": apart, "chains": chains, "at_once": 1 if each else at_once, "mask": mask}


# -- what loops are told ---------------------------------------------------------------------------------------------

NORMAL = -126  # exponent of float32's smallest normal number: no bit of an operand, product or sum may lie below
SCALED_NORMAL = -95  # rounding by quanta scales by them, and they must be normal as well


def beyond(site: Site) -> tuple[float, float]:
    """What overflows of either sign become; an infinity stands for a NaN that it turns into at the end."""
    fmt = site.format
    target = targets.target(fmt.spec, site.rule, CARRIER64)
    other = float(np.inf if fmt.infinities else np.nan)
    positive = float(fmt.max) if target.overflow_positive == fmt.spec.largest else other
    negative = -float(fmt.max) if target.overflow_negative == fmt.spec.largest | target.sign else -other
    return positive, negative


@lru_cache(maxsize=512)
def written(fmt: Format, rule: spec.Rule, double: bool) -> Codes:
    """What writes codes of a format, of numbers of float64 or float32; a NaN's is the rule's, as are overflows if they are NaN."""
    carrier, bits, kind = (np.float64, spec.FLOAT64, np.int64) if double else (np.float32, FLOAT32, np.int32)
    nan = targets.target(fmt.spec, rule, CARRIER64).nan
    rebias = (1 << bits.width - 2 - bits.mantissa_bits) - 1 - fmt.bias
    usual = targets.target(fmt.spec, parameters.rule_for(parameters.NEAREST, fmt, True), CARRIER64)
    of_nan = rule.overflow is Overflow.NAN
    with np.errstate(over="ignore"):  # of sums that float32 has no room for, which this does not write
        least = carrier(fmt.tiny), carrier(2.0**bits.mantissa_bits * fmt.smallest_subnormal)
    numbers = dict(zip(("tiny", "quanta"), (int(x.view(kind)) for x in least), strict=True)) if rebias else {}
    numbers |= {
        "size": fmt.dtype.itemsize, "rebias": rebias << bits.mantissa_bits, "from_number": bits.mantissa_bits - fmt.mantissa_bits,
        "sign": fmt.sign_bit, "zero": fmt.sign_bit if fmt.signed_zero else 0, "nan": nan,
        "above": nan if of_nan else usual.infinity_positive, "beneath": nan if of_nan else usual.infinity_negative,
    }  # fmt: skip
    return np.array([numbers.get(name, 0) & (1 << 64) - 1 for name in sums().WRITTEN], np.uint64)


def _single_bits(x: float) -> int:
    """The code of a float32 number."""
    return int(np.float32(x).view(np.uint32))


@lru_cache(maxsize=512)
def narrow_numbers(site: Site) -> Any:
    """What steps on float32 know of a stage."""
    fmt, rule = site.format, site.rule
    positive, negative = beyond(site)
    undecided = 2.0**-16 if site.width > 16 else 0.0
    if fmt.spec == FLOAT32:
        return steps().Numbers(
            largest=float(fmt.max), beyond_positive=positive, beyond_negative=negative, undecided=undecided
        )
    target = targets.target(fmt.spec, rule, CARRIER32 if parameters.fits_narrow_carrier(fmt.spec) else CARRIER64)
    by_quanta = rule.rounding is not Rounding.NEAREST_EVEN
    lowest = max(fmt.emin, SCALED_NORMAL if by_quanta else NORMAL)
    taken = FLOAT32.mantissa_bits - fmt.mantissa_bits
    return steps().Numbers(
        tiny=_single_bits(target.tiny_positive),
        tiny_positive=target.tiny_positive,
        tiny_negative=-target.tiny_negative,
        normal=float(fmt.tiny),
        largest=float(fmt.max),
        beyond_positive=positive,
        beyond_negative=negative,
        lowest=(127 + lowest) << 23,
        magic=taken << 23 | 1 << 22,
        spacing=fmt.mantissa_bits << 23,
        per_quantum=(2 * 127 + fmt.mantissa_bits) << 23 if by_quanta else 0,
        sliver=_single_bits(fmt.tiny - fmt.smallest_subnormal / 2) if fmt.emin >= SCALED_NORMAL else 0,
        below=(1 << taken) - 1,
        tie=1 << (taken - 1) if rule.rounding.nearest else 0,
        noise_up=max(taken - 16, 0),
        noise_down=max(16 - taken, 0),
        noise_unit=1 << max(taken - 16, 0),
        undecided=undecided,
    )


def lows_of(*panels: Codes) -> Codes:
    """The least numbers of each turn but zero: those of one array of panels, whose last axis is what meets at a turn, after those of the other."""
    sizes = [math.prod(x.shape[:-1]) for x in panels]
    low, start = np.empty(sum(sizes), panels[0].dtype), 0
    for x, size in zip(panels, sizes, strict=True):
        tiles().least()(x.reshape(size, -1), low[start : start + size])
        start += size
    return low


def spans_of(panels: Codes, stretch: int) -> Codes:
    """The smallest lowest bit and the largest magnitude of each stretch of k of each panel, (panels, stretches, 2), of panels (..., k, size)."""
    length, size = panels.shape[-2:]
    whole = panels.reshape(-1, length, size)
    found = np.empty((len(whole), -(-length // stretch), 2))

    def work(start: int, stop: int) -> int:
        tiles().spans()(start, stop, whole, stretch, found)
        return 0

    threads.share_units(len(whole), work, length * size)
    return found


def growth(count: float, fmt: Format) -> float:
    """What so many roundings, each by less than a unit in the last place, can make of a sum of normal numbers."""
    return math.exp(min(count * fmt.eps, 700.0))
