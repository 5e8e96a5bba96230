"""How one gets to a value: rounding, overflow, NaNs, traps, randomness. Formats say which values there are; an environment says the rest.

>>> import softfloat
>>> from softfloat import bits
>>> with softfloat.environment(overflow="saturate") as env:
...     code = env.evaluate(bits.add, 0x7BFF, 0x7BFF, softfloat.float16)
>>> hex(code), str(env.status)
('0x7bff', 'OFLO 0x1 DIV0 0x0 INV 0x0')
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, fields, replace
from enum import Enum, IntEnum
from functools import lru_cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from softfloat import processors
from softfloat.checks import check_choice, check_switch, is_integer, nearest
from softfloat.frozen import hash_kept, settle
from softfloat.kernels.spec import (
    NAN_POLICIES,
    PROJECTIONS,
    SR_METHODS,
    InfiniteInput,
    Overflow,
    Rounding,
    Tininess,
    converted_payloads,
)
from softfloat.positions import Position, as_position
from softfloat.status import NO_FLAGS, Flags, Status, as_flags, first_trap

__all__ = [
    "Environment",
    "InfiniteInput",
    "Overflow",
    "Rounding",
    "Settings",
    "StochasticRounding",
    "Tininess",
    "current_environment",
    "environment",
]

GENERATORS = ("philox4x32", "xoroshiro128aox")
P3109_SATURATIONS: dict[str, dict[str, Any]] = {
    "none": {"overflow": Overflow.INFINITY, "infinite_input": InfiniteInput.KEEP},
    "finite": {"overflow": Overflow.SATURATE, "infinite_input": InfiniteInput.SATURATE},
    "propagate": {"overflow": Overflow.SATURATE, "infinite_input": InfiniteInput.KEEP},
}
"""SatNone, SatFinite and SatPropagate of P3109, draft 4.0."""
P3109_ROUNDINGS: dict[str, dict[str, Any]] = {
    "nearesttiestoeven": {"rounding": Rounding.NEAREST_EVEN},
    "nearesttiestoaway": {"rounding": Rounding.NEAREST_AWAY},
    "towardpositive": {"rounding": Rounding.TOWARD_POSITIVE},
    "towardnegative": {"rounding": Rounding.TOWARD_NEGATIVE},
    "towardzero": {"rounding": Rounding.TOWARD_ZERO},
    "toodd": {"rounding": Rounding.TO_ODD},
    "stochastica": {"rounding": Rounding.STOCHASTIC, "sr_method": "truncate"},
    "stochasticb": {"rounding": Rounding.STOCHASTIC, "sr_method": "half"},
    "stochasticc": {"rounding": Rounding.STOCHASTIC, "sr_method": "nearest"},
}
SR_METHOD_ALIASES = {
    "A": "truncate",
    "B": "half",
    "C": "nearest",
    "StochasticFastest": "truncate",
    "StochasticFast": "half",
    "Stochastic": "nearest",
}
"""P3109's letters and gfloat's names."""
MAXIMUM_RANDOM_BITS = 52

E = TypeVar("E", bound=IntEnum)

ROUNDING_ALIASES = {
    "RNE": Rounding.NEAREST_EVEN,
    "RNA": Rounding.NEAREST_AWAY,
    "RTZ": Rounding.TOWARD_ZERO,
    "RUP": Rounding.TOWARD_POSITIVE,
    "RDN": Rounding.TOWARD_NEGATIVE,
    "ODD": Rounding.TO_ODD,
    "SR": Rounding.STOCHASTIC,
}


def as_member(kind: type[E], value: E | str, argument: str, aliases: Mapping[str, E] = MappingProxyType({})) -> E:
    """A member of an enumeration from a member or its name in any case.

    Raises
    ------
    ValueError
        Naming `argument` and the accepted names.
    """
    if isinstance(value, kind):
        return value
    if isinstance(value, str):
        key = value.upper().replace("-", "_")
        if key in kind.__members__:
            return kind[key]
        if key in aliases:
            return aliases[key]
    names = [*(name.lower() for name in kind.__members__), *aliases]
    advice = nearest(value.replace("-", "_"), names) if isinstance(value, str) else ""
    accepted = ", ".join(map(repr, names))
    raise ValueError(f"{argument} must be one of {accepted}, or a member of {kind.__name__}, got {value!r}{advice}")


def as_rounding(value: Rounding | str, argument: str = "rounding") -> Rounding:
    """A rounding mode from a member, its name, or the field's abbreviation of it (RNE, RNA, RTZ, RUP, RDN, ODD, SR)."""
    return as_member(Rounding, value, argument, ROUNDING_ALIASES)


_TAKING = threading.Lock()
"""Held while numbers of any `Streams` are taken: a lock of their own could not be pickled with them."""


class Streams:
    """0, 1, 2 ..., each given once; those handed back are given again first. Safe to share among threads."""

    __slots__ = ("_next", "_returned")

    def __init__(self) -> None:
        self._next = 0
        self._returned: list[int] = []

    def take(self) -> int:
        """The number of the operation that is about to run."""
        with _TAKING:
            if self._returned:
                return self._returned.pop()
            self._next += 1
            return self._next - 1

    def take_many(self, count: int) -> range | list[int]:
        """The numbers of so many operations, in their order."""
        with _TAKING:
            again = [self._returned.pop() for _ in range(min(count, len(self._returned)))]
            following = range(self._next, self._next + count - len(again))
            self._next = following.stop
        return [*again, *following] if again else following

    def give_back(self, number: int) -> None:
        """The number of an operation that was refused."""
        self._returned.append(number)


class StochasticRounding(Enum):
    """Graphcore's `StochasticRoundingBehaviour`, as the choice of random address: whether the replica is part of the key."""

    OFF = 0
    ON = 1
    REPLICA_IDENTICAL_ONLY = 2

    @classmethod
    def of(cls, value: StochasticRounding | str | bool, argument: str = "esr") -> StochasticRounding:
        """A member, its name in any case, or ON for True and OFF for False."""
        if isinstance(value, bool):
            return cls.ON if value else cls.OFF
        if isinstance(value, str):
            if value.upper() in cls.__members__:
                return cls[value.upper()]
            advice = nearest(value, cls.__members__)
            raise ValueError(f"{argument} must be one of {', '.join(cls.__members__)}, got {value!r}{advice}")
        if not isinstance(value, cls):
            raise TypeError(f"{argument} must be a bool or one of {', '.join(map(str, cls))}, got {value!r}")
        return value


Check = Callable[[str, Any], Any]
"""check(name, value) is the value as settings hold it."""


def _member(kind: type[E], aliases: Mapping[str, E] = MappingProxyType({})) -> Check:
    return lambda name, value: value if isinstance(value, kind) else as_member(kind, value, name, aliases)


def _switch(name: str, value: Any) -> bool:
    if value is not True and value is not False:
        check_switch(name, bool(value) if isinstance(value, np.bool_) else value)
    return bool(value)


def _one_of(accepted: tuple[str, ...], aliases: Mapping[str, str] = MappingProxyType({})) -> Check:
    def check(name: str, value: Any) -> str:
        found = aliases.get(value, value) if isinstance(value, str) else value
        check_choice(name, found, accepted)
        return str(found)

    return check


def _integer(low: int, high: int, optional: bool = False) -> Check:
    def check(name: str, value: Any) -> int | None:
        if value is None and optional:
            return None
        if not is_integer(value):
            raise TypeError(f"{name} must be an integer from {low} to {high}, got {value!r}")
        if not low <= value <= high:
            raise ValueError(f"{name} must be {low} to {high}, got {value}")
        return int(value)

    return check


@hash_kept
@dataclass(frozen=True, kw_only=True)
class Settings:
    """What decides a result beside its operands: an `Environment`'s settings, checked and without status, as a value.

    Compiled programs and constants are kept under it. `overrides` are those for formats of these names. Each
    field's default is `Environment`'s too; its check turns what `Environment` accepts into the field. `payloads` is what becomes of
    NaNs in the conversion that `between` gave the settings of.
    """

    rounding: Rounding = field(default=Rounding.NEAREST_EVEN, metadata={"check": _member(Rounding, ROUNDING_ALIASES)})
    overflow: Overflow = field(default=Overflow.INFINITY, metadata={"check": _member(Overflow)})
    tininess: Tininess = field(default=Tininess.AFTER, metadata={"check": _member(Tininess)})
    infinite_input: InfiniteInput = field(default=InfiniteInput.DEFAULT, metadata={"check": _member(InfiniteInput)})
    daz: bool = field(default=False, metadata={"check": _switch})
    ftz: bool = field(default=False, metadata={"check": _switch})
    converts_subnormals: bool = field(default=False, metadata={"check": _switch})
    nan: str = field(default="canonical", metadata={"check": _one_of(tuple(NAN_POLICIES))})
    sr_bits: int | None = field(default=None, metadata={"check": _integer(1, MAXIMUM_RANDOM_BITS, optional=True)})
    sr_method: str = field(default="truncate", metadata={"check": _one_of(SR_METHODS, SR_METHOD_ALIASES)})
    projection: str = field(default="ieee", metadata={"check": _one_of(PROJECTIONS)})
    generator: str = field(default="philox4x32", metadata={"check": _one_of(GENERATORS)})
    seed: int | None = field(default=None, metadata={"check": _integer(0, 2**64 - 1, optional=True)})
    replica: int = field(default=0, metadata={"check": _integer(0, 2**64 - 1)})
    replica_identical: bool = field(default=False, metadata={"check": _switch})
    overrides: Mapping[str, Settings] = field(default_factory=dict)
    payloads: str = "policy"

    def __hash__(self) -> int:
        return hash((frozenset(self.overrides.items()), *OWN_VALUES(self)))

    @property
    def chosen_width(self) -> int | None:
        """Random bits of each rounding that draws; None: all that there are."""
        return 1 if self.rounding is Rounding.UP_OR_DOWN else self.sr_bits

    @property
    def random_width(self) -> int:
        """The same, where 52 are drawn."""
        return self.chosen_width or MAXIMUM_RANDOM_BITS

    def for_format(self, name: str) -> Settings:
        """Those that govern results in the format of this name, and how operands in it are read."""
        return self.overrides.get(name, self)

    def between(self, source: str, result: str) -> Settings:
        """Those of a conversion: results by the settings of their format, operands read by those of theirs."""
        own, read = self.for_format(result), self.for_format(source)
        payloads = converted_payloads(own.nan, source, result, own.rounding)
        if own is read and not own.converts_subnormals and payloads == own.payloads:
            return own
        return _converting(own, read.daz and not read.converts_subnormals, payloads)

    def replace(self, **settings: Any) -> Settings:
        """The same with some changed, in every format."""
        return one_of(replace(self, **reaching_overrides(self.overrides, settings)))


@lru_cache(maxsize=512)
def one_of(settings: Settings) -> Settings:
    """The same object for equal settings, so that what is kept under them is found without comparing them."""
    return settings


@lru_cache(maxsize=512)
def _converting(own: Settings, daz: bool, payloads: str) -> Settings:
    """Settings of a format's results as those of conversions into it, whose operands are read as `daz` says."""
    ftz = own.ftz and not own.converts_subnormals
    return one_of(replace(own, daz=daz, ftz=ftz, converts_subnormals=False, payloads=payloads))


def reaching_overrides(overrides: Mapping[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Changes of settings, and of the overrides that numeric ones among them hold for too."""
    numeric = {name: value for name, value in settings.items() if name in NUMERIC_SETTINGS}
    if not numeric or not overrides:
        return settings
    return {"overrides": {name: override.replace(**numeric) for name, override in overrides.items()}, **settings}


@dataclass(frozen=True, kw_only=True, repr=False)
class Environment:
    """Settings, sticky status, and the count of operations that addresses random numbers.

    Parameters
    ----------
    rounding : Rounding or str
        One of the ten modes; default "nearest_even". `softfloat.Rounding` says how each treats ties and overflow.
    overflow : Overflow or str
        What a finite result beyond the largest becomes: "infinity" (IEEE 754 7.4: infinity or the largest finite
        value, as the rounding mode says; NaN in a format without infinity), "saturate" (the largest finite value) or
        "nan" (NaN, and INVALID is raised too).
    tininess : Tininess or str
        "after" (default) or "before" rounding.
    infinite_input : InfiniteInput or str
        What `encode` and `convert` make of an infinite operand: "keep" it (NaN in a format without infinity),
        "saturate" it, or "nan" (raising INVALID; so do infinite results of arithmetic then). "default" saturates under
        `overflow="saturate"`, as OCP OFP8 1.0 says, and keeps it otherwise. No other flag is raised.
    daz, ftz : bool
        Subnormal operands count as zero; tiny results become zero (raising UNDERFLOW and INEXACT). The sign stays.
    converts_subnormals : bool
        Conversions keep subnormal operands and results in the format, whatever `daz` and `ftz` say: Arm's FPCR.FZ16.
    nan : str
        NaN policy: "canonical", "riscv", "x86", "x86_fma3", "arm", "arm_dn", "arm_ah", "arm_ah_dn", "ipu" or "nvidia".
    sr_bits : int, optional
        Random bits w per stochastic rounding, 1 to 52; default 52. A magnitude whose exact distance from the candidate
        below is f, of the distance between candidates, goes up with probability floor(f * 2^w) / 2^w.
    sr_method : str
        How f is cut to w bits: "truncate" (above; P3109's StochasticA), "half" (up with probability floor(f * 2^w + 1/2) / 2^w;
        StochasticB) or "nearest" (f * 2^w rounded to nearest even; StochasticC). "A", "B" and "C" are other names,
        as are gfloat's "StochasticFastest", "StochasticFast" and "Stochastic". The
        last two take at most 40 - p random bits, p the precision.
    projection : str
        "ieee" (default), or "p3109": the rules of IEEE P3109, draft 4.0, where they differ. In formats of one bit of
        precision, ties and round to odd go by the parity of codes; round to odd gives infinity beyond the largest number
        if that has the odd code; formats without infinity have the largest number in its place; unsigned formats have 0 in
        place of negative numbers under `overflow="saturate"`, or where they round to zero, or toward zero or positive,
        and NaN otherwise; `infinite_input` rules infinite results of arithmetic, too; x/0 is NaN. docs/p3109.md has it all.
    generator : str
        "philox4x32" or "xoroshiro128aox".
    seed : int, optional
        0 to 2^64 - 1. Roundings that draw, "stochastic" and "up_or_down", need it, or random bits handed in.
    replica : int
        Makes the key differ between replicas, unless `replica_identical`.
    replica_identical : bool
        Leave `replica` out of the key.
    traps : Flags, str or iterable of str
        Flags that raise FloatingPointTrap.
    accumulator : Accumulator, or callable from Format to Accumulator, optional
        How sums and products of SoftArrays are summed; functions of `softfloat.bits` are told. Default: one product
        and one addition after the other, each rounded to the array's format.
    position : Position or int, optional
        Where every result lies in the whole that it is a block of, for random numbers; `softfloat.Position` says more.
    overrides : mapping of str to Environment
        Settings for formats of these names (`Format.name`, no aliases; "float64" for float64 and Python's numbers, which
        `encode` reads), status, traps, accumulator and position aside. Those of a result's format rule everything but `daz`,
        by which each operand is read as its own format's settings say.

    Raises
    ------
    ValueError, TypeError
        Naming the parameter and the accepted values.
    """

    rounding: Rounding | str = Settings.rounding
    overflow: Overflow | str = Settings.overflow
    tininess: Tininess | str = Settings.tininess
    infinite_input: InfiniteInput | str = Settings.infinite_input
    daz: bool = Settings.daz
    ftz: bool = Settings.ftz
    converts_subnormals: bool = Settings.converts_subnormals
    nan: str = Settings.nan
    sr_bits: int | None = Settings.sr_bits
    sr_method: str = Settings.sr_method
    projection: str = Settings.projection
    generator: str = Settings.generator
    seed: int | None = Settings.seed
    replica: int = Settings.replica
    replica_identical: bool = Settings.replica_identical
    traps: Flags | str | tuple[str, ...] = NO_FLAGS
    accumulator: Any = None
    position: Position | int | None = None
    overrides: Mapping[str, Environment] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    status: Status = field(default_factory=Status, compare=False, repr=False)
    streams: Streams = field(default_factory=Streams, init=False, compare=False, repr=False)
    settings: Settings = field(init=False, compare=False, repr=False)
    placed: bool = field(init=False, compare=False, repr=False)
    """Whether it matters where an element lies: there is a trap, which names it, or a position."""

    def __post_init__(self) -> None:
        traps = as_flags(self.traps, "traps")
        if self.position is not None:
            settle(self, position=as_position(self.position))
        if not (self.accumulator is None or callable(self.accumulator) or hasattr(self.accumulator, "partials")):
            raise TypeError(
                f"accumulator must be a softfloat.Accumulator, a function from Format to one, or None, got {self.accumulator!r}"
            )
        if not isinstance(self.overrides, Mapping):
            raise TypeError(f"overrides must map names of formats to Environments, got {self.overrides!r}")
        for name, override in self.overrides.items():
            if not isinstance(name, str) or not isinstance(override, Environment):
                raise TypeError(f"overrides must map names of formats to Environments, got {name!r}: {override!r}")
            _check_own_name(name)
        overrides = MappingProxyType(dict(self.overrides))
        given = tuple([(name, override.settings) for name, override in overrides.items()]), *OWN_VALUES(self)
        try:
            settings = _checked(*given)
        except TypeError:
            settings = None  # of no kind that is kept, or refused: then again, saying why
        settings = settings or _checked.__wrapped__(*given)
        settle(self, traps=traps, overrides=overrides, settings=settings)
        settle(self, placed=bool(traps) or self.position is not None)
        for name, value, before in zip(OWN_SETTINGS, OWN_VALUES(settings), given[1:], strict=True):
            if value is not before:  # a name, or NumPy's number
                settle(self, **{name: value})

    def for_format(self, name: str) -> Environment:
        """The settings that govern results in the format of this name, and how operands in it are read."""
        return self.overrides.get(name, self)

    def next_stream(self) -> int:
        """Number of the operation that is about to run, counted since the environment was made or its seed named."""
        return self.streams.take()

    def replace(self, **settings: Any) -> Environment:
        """A new environment with some settings changed, a clear status, and the operation count started again.

        Settings named here hold for every format: they replace those in `overrides` too.
        """
        unknown = set(settings) - SETTINGS
        if unknown:
            advice = nearest(min(unknown), SETTINGS)
            raise TypeError(
                f"unknown setting {', '.join(sorted(unknown))}; accepted: {', '.join(sorted(SETTINGS))}{advice}"
            )
        return replace(self, status=Status(), **reaching_overrides(self.overrides, settings))

    def __repr__(self) -> str:
        """What makes it again: the settings that are not the default ones, in words."""
        found: dict[str, Any] = {}
        for name, value in ((one.name, getattr(self, one.name)) for one in fields(self) if one.name in SETTINGS):
            if name == "overrides":
                found |= {name: dict(value)} if value else {}
            elif value != getattr(Environment, name):
                flags = isinstance(value, Flags)
                found[name] = (
                    value.named(self.nan) if flags else value.name.lower() if isinstance(value, Enum) else value
                )
        return f"Environment({', '.join(f'{name}={value!r}' for name, value in found.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        settings = {name: getattr(self, name) for name in SETTINGS}
        return _rebuilt, ({**settings, "overrides": dict(self.overrides)},)

    @classmethod
    def ipu(
        cls,
        inv: bool = False,
        div0: bool = False,
        oflo: bool = False,
        esr: bool | str | StochasticRounding = StochasticRounding.OFF,
        nanoo: bool = False,
        *,
        seed: int | None = None,
        replica: int = 0,
    ) -> Environment:
        """Graphcore's documented behaviour, in the argument order of its `FloatingPointBehaviour`; not measured on silicon.

        Parameters
        ----------
        inv, div0, oflo : bool
            Trap on the flag.
        esr : StochasticRounding, its name, or bool
            Stochastic rounding of results narrower than float32.
        nanoo : bool
            Half-precision overflow gives NaN, and INV; otherwise it saturates.
        seed, replica : int
            Address of the random numbers.

        Notes
        -----
        float32 rounds to nearest even, overflows to infinity and has no subnormals; any NaN operand raises INV. What
        no public source settles: flushing of float32 subnormals is modelled on operands and results, sign kept; an
        infinite operand narrowed becomes NaN with `nanoo` and stays infinite without, and is never 65504.
        """
        esr = StochasticRounding.of(esr)
        traps = Flags.INV * bool(inv) | Flags.DIV0 * bool(div0) | Flags.OFLO * bool(oflo)
        single = cls(daz=True, ftz=True, nan="ipu")
        return cls(
            rounding=Rounding.NEAREST_EVEN if esr is StochasticRounding.OFF else Rounding.STOCHASTIC,
            overflow=Overflow.NAN if nanoo else Overflow.SATURATE,
            infinite_input=InfiniteInput.NAN if nanoo else InfiniteInput.KEEP,
            nan="ipu",
            seed=seed,
            replica=replica,
            replica_identical=esr is StochasticRounding.REPLICA_IDENTICAL_ONLY,
            traps=Flags(traps),
            overrides=MappingProxyType({"float32": single}),
        )

    @classmethod
    def arm(
        cls,
        rounding: Rounding | str = Rounding.NEAREST_EVEN,
        *,
        fz: bool = False,
        fiz: bool = False,
        fz16: bool = False,
        ah: bool = False,
        dn: bool = False,
    ) -> Environment:
        """AArch64's scalar and vector arithmetic under FPCR.

        Parameters
        ----------
        rounding : Rounding or str
            FPCR.RMode: "RN", "RP", "RM", "RZ", or the names used here.
        fz : bool
            Tiny results are zero, and without `ah` subnormal operands too, halves aside.
        fiz : bool
            Subnormal operands are zero, halves aside.
        fz16 : bool
            The same as `fz` for halves.
        ah : bool
            Alternate handling (FEAT_AFP): tininess after rounding, the first NaN operand wins, of a fused multiply-add's too, whose
            inf * 0 + NaN raises nothing; the default NaN is negative; `minimum` and `maximum` are the second operand where both are
            zeros or one is a NaN.
        dn : bool
            Every NaN result is the default one.

        Raises
        ------
        TypeError, ValueError
            Naming the argument and the accepted values.

        Notes
        -----
        Pseudo-code of the Arm Architecture Reference Manual, not measured. Where it differs here: a flushed result raises INEXACT
        beside UNDERFLOW. Conversions between formats know no `fz16`, neither of operands nor of results (FPUnpackCV, FPRoundCV).
        `minimum` and `maximum` are FMIN and FMAX,
        `minimum_number` and `maximum_number` FMINNM and FMAXNM, for which a signalling NaN goes before a number. Reductions by NumPy's
        names (`np.max`) are these operations on one element after another.

        >>> env = Environment.arm("RZ", fz=True)
        >>> env.rounding.name, env.daz, env.ftz, env.tininess.name, env.nan, env.for_format("float16").ftz
        ('TOWARD_ZERO', True, True, 'BEFORE', 'arm', False)
        """
        settings, half = processors.arm(rounding, fz, fiz, fz16, ah, dn)
        return cls(**settings, overrides={"float16": cls(**{**settings, **half})})

    @classmethod
    def x86(cls, mxcsr: int = processors.DEFAULT_MXCSR) -> Environment:
        """x86's SSE, AVX and FMA under MXCSR.

        Parameters
        ----------
        mxcsr : int
            The register: rounding mode, DAZ, FTZ (which needs the underflow trap masked), and masks; a flag that is not masked traps.
            Default 0x1F80, what a process starts with.

        Raises
        ------
        TypeError, ValueError
            Naming the argument and the accepted values.

        Notes
        -----
        Intel SDM; conversions, arithmetic and fused multiply-adds are what `softfloat hardware` compares with the machine. Instructions on
        halves (AVX512-FP16, F16C's results) know neither DAZ nor FTZ. NaNs are those of VFMADD, whose inf * 0 + NaN raises nothing.

        >>> env = Environment.x86(0x9FC0)
        >>> env.rounding.name, env.daz, env.ftz, env.nan, env.for_format("float16").daz, int(env.traps)
        ('NEAREST_EVEN', True, True, 'x86_fma3', False, 0)
        """
        settings, traps = processors.x86(mxcsr)
        half = cls(**{**settings, "daz": False, "ftz": False})
        return cls(**settings, traps=traps, overrides={"float16": half})

    @classmethod
    def riscv(cls, rounding: Rounding | str = Rounding.NEAREST_EVEN) -> Environment:
        """RISC-V's floating point: the canonical NaN, subnormals, tininess after rounding.

        Parameters
        ----------
        rounding : Rounding or str
            frm: "RNE", "RTZ", "RDN", "RUP", "RMM", or the names used here.

        Raises
        ------
        ValueError
            Naming the argument and the accepted values.

        >>> Environment.riscv("RMM").rounding.name
        'NEAREST_AWAY'
        """
        return cls(rounding=processors.named_mode(rounding, processors.FRM), nan="riscv")

    @classmethod
    def nvidia(cls, *, ftz: bool = False) -> Environment:
        """NVIDIA's scalar instructions (PTX, sm_90): nearest even, tininess after rounding, one NaN but in some conversions.

        Parameters
        ----------
        ftz : bool
            .ftz, as of `nvcc -ftz=true`: subnormal operands of arithmetic count as zeros, tiny results are zeros, both with their signs.
            Arithmetic in bfloat16 and conversions between formats have or need none: they keep subnormal numbers.

        Raises
        ------
        TypeError
            Naming the argument.

        Notes
        -----
        Read off an H100 and an H200, which do not differ. Every NaN that arithmetic makes is 0x7FFFFFFF, in half and bfloat16 0x7FFF;
        of float64, signs and payloads come along; bfloat16 becomes float32 by a shift, NaNs as they are. Other rounding modes: `replace`;
        "nearest_away" is .rna of `cvt.rna.tf32.f32`, which cuts NaNs, so that some become infinity. `minimum_number` and `maximum_number` are
        PTX's min and max, `minimum` and `maximum` its min.NaN and max.NaN. Instructions raise no flags: those raised here say what the
        operations did.

        >>> env = Environment.nvidia(ftz=True)
        >>> env.nan, env.daz, env.ftz, env.tininess.name, env.for_format("bfloat16").ftz
        ('nvidia', True, True, 'AFTER', False)
        """
        settings, bfloat = processors.nvidia(ftz)
        return cls(**settings, overrides={"bfloat16": cls(**bfloat)})

    @classmethod
    def avx10_bf16(cls) -> Environment:
        """AVX10.2's bfloat16 arithmetic (VADDBF16 and others): nearest even, DAZ, FTZ, whatever MXCSR says.

        Notes
        -----
        Pseudo-code of Intel's AVX10.2 specification, not silicon; that tininess is after rounding is assumed, as measured for
        VDPBF16PS. The instructions raise no flags: those raised here say what the operations did.
        """
        return cls(daz=True, ftz=True, nan="x86_fma3")

    @classmethod
    def p3109(
        cls,
        rounding: Rounding | str = Rounding.NEAREST_EVEN,
        *,
        saturation: str = "none",
        bits: int | None = None,
        seed: int | None = None,
        **settings: Any,
    ) -> Environment:
        """Projections of IEEE P3109, draft 4.0: rounding mode, saturation mode, and its rules where they are not IEEE 754's.

        Parameters
        ----------
        rounding : Rounding or str
            A mode, or P3109's name of it in any case: "NearestTiesToEven", "NearestTiesToAway", "TowardPositive", "TowardNegative",
            "TowardZero", "ToOdd", "StochasticA", "StochasticB" or "StochasticC".
        saturation : {"none", "finite", "propagate"}
            SatNone (what conformance asks for), SatFinite or SatPropagate.
        bits : int, optional
            N of the stochastic modes: random bits for each rounding; the same as `sr_bits`.
        seed : int, optional
            Address of the random numbers.
        **settings
            Others of `Environment`, but `projection`, `overflow` and `infinite_input`, which the saturation mode sets.

        Raises
        ------
        TypeError, ValueError
            Naming the argument and the accepted values.

        Notes
        -----
        P3109 raises no flags; those raised here are IEEE 754's, and beyond it OVERFLOW and INEXACT for what an unsigned format
        clamps to 0.

        >>> env = Environment.p3109("StochasticC", saturation="propagate", bits=4, seed=1)
        >>> env.rounding.name, env.sr_method, env.sr_bits, env.overflow.name, env.infinite_input.name
        ('STOCHASTIC', 'nearest', 4, 'SATURATE', 'KEEP')
        """
        check_choice("saturation", saturation, tuple(P3109_SATURATIONS))
        taken = {"projection", *P3109_SATURATIONS[saturation]} & settings.keys()
        if taken:
            raise TypeError(f"{', '.join(sorted(taken))} of Environment.p3109 are set by saturation={saturation!r}")
        named = (
            P3109_ROUNDINGS.get(rounding.lower(), {"rounding": rounding})
            if isinstance(rounding, str)
            else {"rounding": rounding}
        )
        if bits is not None and "sr_bits" in settings:
            raise TypeError("bits comes with sr_bits, another name of it; accepted: one of them")
        if "sr_method" in named and "sr_method" in settings:
            raise TypeError(f"rounding={rounding!r} comes with sr_method; accepted: one of them")
        chosen = {"sr_bits": bits, "seed": seed, **settings, **named, **P3109_SATURATIONS[saturation]}
        return cls(projection="p3109", **chosen)

    def evaluate(self, operation: Callable[..., Any], *operands: Any, **options: Any) -> Any:
        """Run a function of `softfloat.bits` under this environment.

        Its flags go to `status`; a flag whose trap is on raises FloatingPointTrap after the operation. Each call
        takes the next stream number, whether or not it draws; a call that is refused takes none.

        Parameters
        ----------
        operation : callable
            A function of `softfloat.bits` that returns (result, flags).
        *operands, **options
            Its own arguments, environment and flags aside.

        Returns
        -------
        array or scalar
            The result alone; with what the operation returns beyond flags, such as counts, a tuple.
        """
        for name in {"environment", "flags"} & options.keys():
            raise TypeError(f"{name} is not for evaluate, which sets it itself: flags go to the environment's status")
        return evaluate_as(getattr(operation, "__name__", str(operation)), self, operation, operands, options)

    def __enter__(self) -> Environment:
        _entered.set((*_entered.get(), _current.set(self)))
        return self

    def __exit__(self, *exception: object) -> None:
        *outer, token = _entered.get()
        _entered.set(tuple(outer))
        _current.reset(token)


NUMERIC_SETTINGS = {
    "rounding", "overflow", "tininess", "infinite_input", "daz", "ftz", "converts_subnormals", "nan",
    "sr_bits", "sr_method", "projection",
}  # fmt: skip
SETTINGS = {f.name for f in fields(Environment) if f.init} - {"status"}
OWN_ROWS: dict[str, tuple[Any, Check]] = {
    f.name: (f.default, f.metadata["check"]) for f in fields(Settings) if "check" in f.metadata
}
"""Default and check of every setting that is not of other formats."""
OWN_SETTINGS = tuple(OWN_ROWS)
OWN_VALUES = attrgetter(*OWN_SETTINGS)

_current: ContextVar[Environment] = ContextVar("softfloat_environment")
_entered: ContextVar[tuple[Token[Environment], ...]] = ContextVar("softfloat_entered", default=())

Watch = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any], Environment], Callable[[Any, Any], None]]
"""What is told of an operation before it runs, with its operands and options, and gives what is told its result and each element's flags."""
watching: ContextVar[tuple[Watch, ...]] = ContextVar("softfloat_watching", default=())
WATCHES: list[object] = []
"""Blocks of any thread that watch: while there are none, operations do not ask who watches them."""


@lru_cache(maxsize=512, typed=True)  # True, 1 and 1.0 are equal, and not all are accepted
def _checked(overrides: tuple[tuple[str, Settings], ...], *values: Any) -> Settings:
    """The settings that arguments of `Environment` are, in the order of `OWN_SETTINGS`, names turned into members."""
    own = {
        name: check(name, value)
        for (name, (default, check)), value in zip(OWN_ROWS.items(), values, strict=True)
        if value is not default
    }
    return Settings(overrides=dict(overrides), **own)


def evaluate_as(
    name: str, env: Environment, operation: Callable[..., Any], operands: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """`Environment.evaluate`, with the name that a trap reports."""
    parameters = _parameters(operation)
    number = env.streams.take()
    options.setdefault("stream", number)
    traps: Flags = env.traps  # type: ignore[assignment]
    told: list[Callable[[Any, Any], None]] = []
    try:
        if WATCHES:
            told = [watch(operation, operands, options, env) for watch in watching.get()]
        each = "each" if traps or told or isinstance(options.get("out"), tuple) else "any"
        result, flags, *more = operation(*operands, environment=env, flags=each, **options)
    except BaseException:
        env.streams.give_back(number)
        raise
    raised = int(np.bitwise_or.reduce(flags, axis=None)) if each == "each" else int(flags)
    env.status.add(raised)
    for tell in told:
        tell(result, flags)
    if traps and raised & traps:
        named = [options[parameter] for parameter in parameters if parameter in options]
        if "accumulator" in parameters:
            operands, named = (), []  # a row and a column, not an element of each
        raise first_trap(name, (*operands, *named), np.asarray(flags), traps, env.nan)
    return (result, *more) if more else result


@lru_cache(maxsize=256)
def _parameters(operation: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the parameters of a function that takes options, and so returns flags; of options, none."""
    parameters = inspect.signature(operation).parameters
    if "environment" not in parameters and not any(x.kind is x.VAR_KEYWORD for x in parameters.values()):
        name = getattr(operation, "__name__", operation)
        raise TypeError(f"operation must be a function of softfloat.bits that returns flags, and {name} returns none")
    return tuple(name for name in parameters if name not in CALL_OPTIONS and name not in Settings.__dataclass_fields__)


CALL_OPTIONS = {"out", "flags", "environment", "stream", "random_bits", "position"}
"""Of functions on codes: options that are no settings, and concern one call."""


def _rebuilt(settings: dict[str, Any]) -> Environment:
    """An unpickled environment: the settings, a clear status, operations counted from 0."""
    return Environment(**settings)


def _check_own_name(name: str) -> None:
    """Refuse a format's other names, under which no result would be looked up."""
    from softfloat.formats import ALIASES  # which needs what stands here

    if ALIASES.get(name, name) != name:
        raise ValueError(f"overrides has {name!r}, another name of {ALIASES[name]}; accepted: Format.name")


def current_environment() -> Environment:
    """The environment in force here: of the innermost `with`, else the context's own default one."""
    try:
        return _current.get()
    except LookupError:
        default = Environment()
        _current.set(default)
        return default


def environment(base: Environment | None = None, **settings: Any) -> AbstractContextManager[Environment]:
    """Change settings for the duration of a `with` block.

    What is not named stays as it is around the block (or in `base`). The block has a status of its own, clear at
    first; its flags are added to the enclosing status at the end. Naming a seed starts the count of random streams
    again; otherwise it goes on.

    A context variable holds the environment: a block in one thread or asyncio task is not seen by others. Tasks started
    inside a block inherit its environment, and so share its status and its count of streams; a block of its own, with a
    seed, makes a task's random numbers independent of the others' schedule.

    Raises
    ------
    TypeError, ValueError
        At the call, naming the setting and the accepted values.
    """
    around = current_environment()
    if base is not None and not isinstance(base, Environment):
        raise TypeError(f"base must be a softfloat.Environment, got {type(base).__name__}; settings go by name")
    return _block(base, settings, around, [_within(around, base, settings)])


def _within(outer: Environment, base: Environment | None, settings: dict[str, Any]) -> Environment:
    """The environment of a block inside `outer`, whose count of streams goes on in it unless a seed is named."""
    inner = (base or outer).replace(**settings)
    if base is None and "seed" not in settings:
        settle(inner, streams=outer.streams)
    return inner


@contextmanager
def _block(
    base: Environment | None, settings: dict[str, Any], around: Environment, made: list[Environment]
) -> Iterator[Environment]:
    """The block of `environment`; `made` is the environment for one use of it within `around`."""
    outer = current_environment()
    inner = made.pop() if made and (base is not None or outer is around) else _within(outer, base, settings)
    token = _current.set(inner)
    try:
        yield inner
    finally:
        _current.reset(token)
        outer.status.raise_flags(inner.status.flags)
