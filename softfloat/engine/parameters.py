"""Formats and rules as the numbers that compiled loops take, and the compiled floors, each imported when first needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from softfloat.engine.arguments import Codes
from softfloat.environments import Settings
from softfloat.formats import ROSTER, Format
from softfloat.kernels import spec, targets
from softfloat.kernels.spec import CARRIER32, CARRIER64, Carrier, FormatSpec, Overflow, Rounding, Rule

NEAREST = Settings()
FLOAT16, BFLOAT16, FLOAT32 = (ROSTER[name].spec for name in ("float16", "bfloat16", "float32"))


def floor_of(name: str) -> Callable[[], ModuleType]:
    """What imports a compiled floor when it is first needed."""
    return cache(lambda: import_module(f"softfloat.kernels.{name}"))


loops = floor_of("loops")
comparisons = floor_of("comparisons")
wide = floor_of("wide")
wide_elements = floor_of("wide_elements")
wide_exact = floor_of("wide_exact")
fast = floor_of("fast")
ordinary = floor_of("ordinary")
elements = floor_of("elements")
halves = floor_of("halves")
singles = floor_of("singles")
tiles = floor_of("tiles")
steps = floor_of("steps")
paired = floor_of("paired")
sums = floor_of("sums.target")
orders = floor_of("sums.orders")
quick = floor_of("sums.quick")
arithmetics = floor_of("sums.arithmetics")
descriptions = floor_of("sums.description")
dots = floor_of("dots")
units = floor_of("units")
exact_units = floor_of("exact_units")
values = floor_of("values")
quantization = floor_of("quantization")


# -- first calls -----------------------------------------------------------------------------------------------------

FEW, SPARED = 1 << 8, 1 << 11
"""Elements of a call, and of all of a process, for which a loop is run by Python: a fraction of the time that it takes to be compiled."""
FEW_PRODUCTS, SPARED_PRODUCTS = 1 << 10, 1 << 12
"""The same of products of the plain loop of sums, which takes longer."""


class Spared:
    """A loop that Python runs for the first few elements of a process."""

    def __init__(self, loop: Any, few: int = FEW, spared: int = SPARED) -> None:
        self._loop, self._few, self._left = loop, few, spared if hasattr(loop, "by_python") else 0
        self._compiled: Any = None

    def is_there(self, size: int) -> bool:
        """Whether so many elements need nothing to be compiled."""
        return size <= min(self._few, self._left) or bool(getattr(self._loop, "overloads", True))

    def taken(self, size: int) -> Any:
        """What runs so many elements; what has had many is compiled, and so is it for many."""
        if self._left:
            self._left = self._left - size if size <= min(self._few, self._left) else 0
        if self._left:
            return self._loop.by_python
        if self._compiled is None:
            self._compiled = getattr(self._loop, "compiled", self._loop)
        return self._compiled

    def run(self, size: int, *arguments: Any) -> int:
        """What it returns for so many elements."""
        found: int = self.taken(size)(*arguments)
        return found


spared = cache(Spared)
"""One for each loop."""

# -- specs -----------------------------------------------------------------------------------------------------------


Numbers = tuple[Codes, Codes]
"""What a loop knows of formats and rules: an array of integers and one of floats."""


def packed(carrier: Carrier, *tuples: Any) -> Numbers:
    """Named tuples as two arrays of the carrier's width. What no 32-bit number reaches stays out of reach; codes of 64 bits are signed."""
    integer, real = (np.int32, np.float32) if carrier is CARRIER32 else (np.int64, np.float64)
    values = [x for numbers in tuples for x in numbers]
    limits = np.iinfo(np.int32)
    integers = [x for x in values if not isinstance(x, float)]
    if carrier is CARRIER32:
        integers = [min(max(x, int(limits.min)), int(limits.max)) for x in integers]
    else:
        integers = [x - (1 << 64) if x >= 1 << 63 else x for x in integers]
    with np.errstate(over="ignore"):
        return np.array(integers, integer), np.array([x for x in values if isinstance(x, float)], real)


@lru_cache(maxsize=4096)
def numbers(source_spec: FormatSpec, fmt: FormatSpec, rule: Rule, carrier: Carrier, wide: bool = False) -> Numbers:
    """What decodes `source_spec`, and rounds into `fmt` under `rule`; `wide` loops, and those that round nothing, take any format.

    The others refuse wide formats here, if nothing did before.
    """
    if not wide and (spec.is_wide(fmt) or (spec.is_wide(source_spec) and source_spec != spec.FLOAT64)):
        raise ValueError(
            "formats of more than 8 exponent bits or 24 bits of precision, or with numbers outside 2^-400 ... 2^400, are not served here; "
            "accepted: narrower ones; conversions, comparisons, arithmetic and sums in order of softfloat.bits take all"
        )
    return packed(carrier, targets.source(source_spec, carrier, rule.daz), targets.target(fmt, rule, carrier))


def fast_numbers(fmt: FormatSpec, rule: Rule) -> Numbers:
    """What the faster loops know of a target."""
    return numbers(fmt, fmt, rule, CARRIER32)


@lru_cache(maxsize=1024)
def block_numbers(fmt: FormatSpec, rule: Rule, operation: str) -> Numbers | None:
    """What the loops over blocks of ordinary operands know of a target; None where none of them serves."""
    found = ordinary().ordinary(fmt, rule, operation)
    if found is None:
        return None
    source = targets.source(FLOAT32 if operation == "convert" else fmt, CARRIER32, rule.daz)
    return packed(CARRIER32, found, source, targets.target(fmt, rule, CARRIER32))


@lru_cache(maxsize=1024)
def wide_block_numbers(source: FormatSpec, fmt: FormatSpec, rule: Rule, operation: str) -> Numbers:
    """The same of wide formats."""
    known = targets.source(source, CARRIER64, rule.daz), targets.target(fmt, rule, CARRIER64)
    return packed(CARRIER64, wide_elements().known(source, *known, operation), *known)


def code_bytes(fmt: FormatSpec) -> int:
    """How many bytes a code takes."""
    return 1 << max((fmt.width - 1).bit_length() - 3, 0)


@lru_cache(maxsize=1024)
def fits_narrow_carrier(fmt: FormatSpec) -> bool:
    """Whether float32 carries the format's arithmetic: products exact, p + 2 bits to spare, no error term out of range."""
    lowest = spec.emin(fmt) - fmt.mantissa_bits
    highest = (fmt.largest >> fmt.mantissa_bits) - fmt.bias + 1
    return 1 <= fmt.mantissa_bits <= 10 and lowest >= -30 and highest <= 30


@lru_cache(maxsize=1024)
def ranges_in_single(fmt: FormatSpec) -> bool:
    """Whether float32 carries sums in the format of numbers in a middle range: precision to spare, and all of its normal numbers."""
    highest = (fmt.largest >> fmt.mantissa_bits) - fmt.bias
    return 1 <= fmt.mantissa_bits <= 10 and spec.emin(fmt) >= -126 and highest <= 127


@lru_cache(maxsize=1024)
def is_unusual(fmt: FormatSpec) -> bool:
    """Whether the format lacks subnormals, negative zero, negative values or zero."""
    return not (fmt.signed and fmt.signed_zero and fmt.zero and fmt.subnormals)


def way_of(fmt: FormatSpec, rule: Rule) -> str:
    """What the plain loops call the way to round under a rule."""
    way = "drawn" if rule.rounding.draws else "selected"
    if is_unusual(fmt):
        return f"{way} unusual"
    return "nearest" if rule.rounding is Rounding.NEAREST_EVEN and not rule.propagate else way


def choosing(fmt: Format, daz: bool, ftz: bool, nan: str) -> Rule:
    """The rule of what chooses among operands, and rounds nothing."""
    return Rule(nan=spec.policy_for(nan, fmt.spec).name, daz=daz, ftz=ftz)


def rule_for(settings: Settings, fmt: Format, conversion: bool, random_width: int = 52, handed: bool = False) -> Rule:
    """The rule under which results go into `fmt`."""
    if settings.overflow is Overflow.NAN and not fmt.has_nan:
        raise ValueError(
            f"overflow='nan' needs a format with a NaN, and {fmt} has none; accepted: 'infinity', 'saturate'"
        )
    if fmt.wide and settings.projection == "p3109":
        raise ValueError(
            f"projection='p3109' is not for results in {fmt.name}; accepted: 'ieee', or a format that is not wide"
        )
    if settings.rounding is Rounding.STOCHASTIC and not fmt.wide:
        check_reach(settings, fmt, random_width)
    return Rule(
        rounding=settings.rounding,
        overflow=settings.overflow,
        tininess=settings.tininess,
        infinite_input=settings.infinite_input,
        daz=settings.daz,
        ftz=settings.ftz,
        nan=spec.policy_for(settings.nan, fmt.spec).name,
        conversion=conversion,
        random_width=random_width,
        handed_bits=handed,
        projection=settings.projection,
        sr_method=settings.sr_method,
        payloads=settings.payloads,
    )


def check_reach(settings: Settings, fmt: Format, width: int) -> None:
    """Refuse more random bits than a way of stochastic rounding takes."""
    most = spec.SR_REACH - fmt.p
    if settings.sr_method != "truncate" and most < 1:
        raise ValueError(
            f"sr_method must be 'truncate' here in {fmt}, whose numbers have {fmt.p} bits, got {settings.sr_method!r}"
        )
    if settings.sr_method != "truncate" and width > most:
        raise ValueError(
            f"sr_bits must be 1 to {most} for sr_method={settings.sr_method!r} into {fmt}, got {width}"
            f"{' (the default)' if settings.sr_bits is None else ''}; sr_method='truncate' takes up to 52"
        )


def loop_event() -> str:
    """The kind of `numba.core.event` by which loops are told that a process takes for the first time."""
    from softfloat.kernels import compile_cache

    return compile_cache.LOOP


@cache
def available() -> tuple[bool, bool]:
    """Whether the compiler may use the CPU's fused multiply-adds, and its conversions of halves."""
    from softfloat.kernels import fast

    return fast.has_feature("fma"), fast.has_f16c()
