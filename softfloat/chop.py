"""The words of chop, CPFloat and pychop for `softfloat.round`: options, names of formats, numbers of modes and defaults as theirs.

>>> from softfloat.chop import Chop, Options, chop, defaults
>>> chop([0.1, 70000.0], Options(format="h")).tolist()
[0.0999755859375, inf]
>>> with defaults(format="bfloat16", round=4):
...     chop(0.1), chop(1e-39)
(0.099609375, 0.0)
>>> half = Chop(exp_bits=5, sig_bits=10)
>>> half(0.1), half.u
(0.0999755859375, 0.00048828125)

What differs from them is in docs/coming/chop.md. Nothing that one call sets holds for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from softfloat.checks import check_choice, check_real, check_seed, is_integer, nearest
from softfloat.environments import Rounding, Streams
from softfloat.formats import Format
from softfloat.rounding import as_floats
from softfloat.rounding import round as rounded

__all__ = ["Chop", "FloatParams", "Options", "chop", "defaults", "float_params"]


class Row(NamedTuple):
    """A format: its names, its precision and exponents, ours, and whether subnormals and infinities stand at 1."""

    names: tuple[str, ...]
    p: int
    emax: int
    ours: str = ""
    subnormal: int = 1


ROWS = (
    Row(("q43", "fp8-e4m3"), 4, 7, "float8_e4m3"),
    Row(("e4m3", "E4M3"), 4, 8, "float8_e4m3fn"),
    Row(("q52", "fp8-e5m2", "e5m2", "E5M2"), 3, 15, "float8_e5m2"),
    Row(("b", "bfloat16", "bf16"), 8, 127, "bfloat16", subnormal=0),
    Row(("h", "half", "fp16", "binary16"), 11, 15, "float16"),
    Row(("t", "tf32", "TensorFloat-32"), 11, 127, "tfloat32"),
    Row(("s", "single", "fp32", "binary32"), 24, 127, "float32"),
    Row(("d", "double", "fp64", "binary64"), 53, 1023),
)
QUADRUPLE = Row(("q", "quadruple", "fp128"), 113, 16383)
CUSTOM = ("c", "custom")
OCP = ROWS[1]
NAMED = {name: row for row in ROWS for name in row.names}

MODES: dict[int, Rounding] = {
    -1: Rounding.NEAREST_AWAY,
    0: Rounding.NEAREST_ZERO,
    1: Rounding.NEAREST_EVEN,
    2: Rounding.TOWARD_POSITIVE,
    3: Rounding.TOWARD_NEGATIVE,
    4: Rounding.TOWARD_ZERO,
    5: Rounding.STOCHASTIC,
    6: Rounding.UP_OR_DOWN,
    7: Rounding.TO_ODD,
}
"""chop's numbers and CPFloat's."""
STOCHASTIC, EITHER = 5, 6
PYCHOP_MODES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 0, 8: -1, 9: 7, 10: 6}
"""pychop's numbers -> chop's; 10 is CADNA's, one bit for each number, as likely."""
CHOICES = dict.fromkeys(("subnormal", "infinity", "saturation"), (None, 0, 1)) | {"explim": (0, 1), "flip": (0, 1, 2)}
LACKING = {8: "no rounding, is not here: leave the call out"}
"""What others have under a number, and this package has not."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What `chop` is to do; fields, numbers and defaults are chop's, and CPFloat's where chop has none.

    Parameters
    ----------
    format : str
        "q43", "fp8-e4m3" (largest number 240); "e4m3", "E4M3" (OCP's, 448); "q52", "fp8-e5m2", "e5m2", "E5M2"; "b", "bfloat16", "bf16"; "h",
        "half", "fp16", "binary16"; "t", "tf32", "TensorFloat-32"; "s", "single", "fp32", "binary32"; "d", "double", "fp64", "binary64";
        "c", "custom".
    subnormal : {0, 1}, optional
        Whether there are subnormal numbers; None: 0 for bfloat16, 1 for the others.
    round : int
        1 nearest even, 2 up, 3 down, 4 toward zero, 5 stochastic, 6 up or down with probability one half, 7 to odd, 0 ties to zero, -1 ties
        away.
    flip : {0, 1, 2}
        A bit of the fraction (1), or of the whole code (2), is turned over with probability `p`.
    p : float
        That probability.
    explim : {0, 1}
        0: exponents are those of the array's dtype.
    params : sequence of int, optional
        Of custom formats: precision and emax, or precision, emin and emax.
    infinity : {0, 1}, optional
        0: NaN in place of infinities; None: 1, but for "E4M3".
    saturation : {0, 1}, optional
        1: the largest number in place of what is beyond it.
    randfunc : callable, optional
        randfunc(n): n numbers in [0, 1), one for each element of the array, for modes 5 and 6.
    seed : int, optional
        For modes 5 and 6, and `flip`. The first call with these options takes stream 0, the next stream 1, and so on. None: the
        environment's seed and streams.

    Raises
    ------
    TypeError, ValueError
        Naming the field and what is accepted.
    """

    format: str = "h"
    subnormal: int | None = None
    round: int = 1
    flip: int = 0
    p: float = 0.5
    explim: int = 1
    params: Any = None
    infinity: int | None = None
    saturation: int | None = None
    randfunc: Callable[[int], Any] | None = None
    seed: int | None = None
    streams: Streams = field(default_factory=Streams, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.format not in NAMED and self.format not in CUSTOM:
            check_choice("format", self.format, (*NAMED, *CUSTOM))
        for name, accepted in CHOICES.items():
            check_choice(name, getattr(self, name), accepted)
        check_mode("round", self.round, MODES, LACKING)
        if check_real("p", self.p, 0.0) > 1:
            raise ValueError(f"p must be a probability, 0 to 1, got {self.p!r}")
        if self.seed is not None:
            check_seed("seed", self.seed)
        if self.randfunc is not None and not callable(self.randfunc):
            raise TypeError(f"randfunc must be a function of the number of elements, got {self.randfunc!r}")
        if self.infinity == 1 and self.format in OCP.names:
            raise ValueError(f"infinity must be 0 or None with format={self.format!r}, which has no infinities, got 1")
        if self.format in CUSTOM:
            given = self.params if isinstance(self.params, (tuple, list, np.ndarray)) else ()
            if len(given) not in (2, 3) or not all(is_integer(x) or float(x).is_integer() for x in given):
                raise ValueError(
                    f"params must be (precision, emax) or (precision, emin, emax) with format={self.format!r}, got {self.params!r}"
                )

    @property
    def numbers(self) -> tuple[int, int, int]:
        """(precision, emin, emax)."""
        if self.format in CUSTOM:
            p, *emin, emax = (int(x) for x in self.params)
            return p, emin[0] if emin else 1 - emax, emax
        row = NAMED[self.format]
        ours = Format.from_name(row.ours) if row.ours else None
        return row.p, ours.emin if ours else 1 - row.emax, row.emax

    @cached_property
    def single_numbers(self) -> tuple[int, int, int]:
        """The same as far as float32 goes, which results stay in."""
        p, emin, emax = self.numbers
        return min(p, 24), max(emin, -126), min(emax, 127)

    @cached_property
    def call(self) -> dict[str, Any]:
        """Arguments of `softfloat.round`, whatever the environment's settings."""
        row = NAMED.get(self.format)
        subnormal = self.subnormal if self.subnormal is not None else row.subnormal if row else 1
        found: dict[str, Any] = {
            "fmt": row.ours if row and row.ours else self.numbers,
            "rounding": MODES[self.round],
            "subnormals": bool(subnormal),
            "range": "format" if self.explim else "carrier",
            "saturate": bool(self.saturation),
            "flip": (self.p, ("significand", "any")[self.flip - 1]) if self.flip else None,
            "infinite_input": "default",
            "daz": False,
            "ftz": False,
            "nan": "canonical",
            "projection": "ieee",
        }
        if self.round == STOCHASTIC:
            found |= {"sr_bits": None, "sr_method": "truncate"}
        if self.seed is not None:
            found["seed"] = self.seed
        return found


def check_mode(name: str, number: Any, modes: Mapping[int, Any], lacking: Mapping[int, str]) -> None:
    """The number of a mode."""
    if number in lacking and not isinstance(number, bool):
        raise ValueError(f"{name}={number}, {lacking[number]}; accepted: {', '.join(map(str, modes))}")
    if not is_integer(number) or number not in modes:
        raise ValueError(f"{name} must be one of {', '.join(map(str, modes))}, got {number!r}")


_defaults: ContextVar[Options | None] = ContextVar("softfloat_chop_defaults", default=None)


def as_options(options: Any) -> Options:
    """Options, or a mapping of fields that some are."""
    if isinstance(options, Options):
        return options
    if not isinstance(options, Mapping):
        raise TypeError(
            f"options must be softfloat.chop.Options or a mapping of its fields, got {type(options).__name__}"
        )
    known = [one.name for one in fields(Options) if one.init]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r}; accepted: {', '.join(known)}{nearest(unknown[0], known)}")
    if options.get("seed") is not None:
        raise TypeError(
            "seed counts the calls of Options that stay, and a mapping is new for each; accepted: options = Options(seed=...)"
        )
    return Options(**options)


@contextmanager
def defaults(options: Options | Mapping[str, Any] | None = None, /, **fields_: Any) -> Iterator[Options]:
    """Options for calls of `chop` without any, inside a `with` block: an `Options`, or its fields.

    >>> with defaults(format="h", round=2):
    ...     chop(0.1)
    0.10003662109375
    """
    if options is not None and fields_:
        raise TypeError("defaults takes options or their fields, not both")
    token = _defaults.set(Options(**fields_) if options is None else as_options(options))
    try:
        yield _defaults.get()  # type: ignore[misc]
    finally:
        _defaults.reset(token)


def chop(x: Any, options: Options | Mapping[str, Any] | None = None) -> Any:
    """Numbers rounded to a format: chop's `chop(x, options)` and CPFloat's `cpfloat(x, options)`.

    Parameters
    ----------
    x : array_like
        float64 or float32; others become float64.
    options : Options or mapping of its fields, optional
        None: those of the innermost `defaults` block.

    Returns
    -------
    array or float
        Of the dtype of `x`.

    Raises
    ------
    TypeError, ValueError
        Without options outside `defaults`: a call does not take over those of the one before.

    Notes
    -----
    Flags go to the environment's status; of its settings, seed, replica and position count, and traps. Sources: chop.m and roundit.m of
    github.com/higham/chop (906c31e); cpfloat.m of github.com/north-numerical-computing/cpfloat (3583976).

    >>> chop([1.1, 1e9], {"format": "custom", "params": (4, 7), "saturation": 1}).tolist()
    [1.125, 240.0]
    """
    if options is None:
        options = _defaults.get()
        if options is None:
            raise TypeError(
                "chop needs options, and keeps none from call to call; accepted: chop(x, Options(format='h')), or calls inside "
                "with softfloat.chop.defaults(format='h')"
            )
    options = as_options(options)
    array, scalar = as_floats(x)
    call = dict(options.call)
    if array.dtype == np.float32 and isinstance(call["fmt"], tuple):
        call["fmt"] = options.single_numbers
    if options.randfunc is not None and options.round in (STOCHASTIC, EITHER):
        call |= _handed(options.randfunc, array.shape, options.round)
    if options.seed is not None:
        call["stream"] = options.streams.take()
    found = rounded(array, **call)
    if options.infinity == 0:
        found = np.where(np.isinf(found), found.dtype.type(np.nan), found)
    return float(found) if scalar else found if isinstance(x, np.ndarray) else found[()]


def _handed(randfunc: Callable[[int], Any], shape: tuple[int, ...], mode: int) -> dict[str, Any]:
    """The random bits that take a fraction up where a number of [0, 1) is no more than it, or than one half."""
    count = int(np.prod(shape, dtype=np.int64))
    given = np.asarray(randfunc(count), np.float64).reshape(-1)
    if given.size != count or ((given < 0) | (given >= 1)).any():
        raise ValueError(
            f"randfunc must give {count} numbers in [0, 1), one for each element, got {given.size}, or others"
        )
    if mode == EITHER:
        return {"random_bits": (given <= 0.5).astype(np.uint8).reshape(shape)}
    most = 1 << 52
    bits = np.minimum(most - np.floor(given * most), most - 1).astype(np.uint64).reshape(shape)
    return {"random_bits": bits, "sr_bits": 52}


@dataclass(eq=False)
class Chop:
    """pychop's `Chop`: a format by the widths of its fields, called with numbers.

    Parameters
    ----------
    exp_bits, sig_bits : int
        Exponent bits, 2 to 11, and fraction bits, 0 to 52.
    rmode : int
        1 nearest even, 2 up, 3 down, 4 toward zero, 5 stochastic, 6 and 10 up or down with probability one half, 7 ties to zero, 8 ties
        away, 9 to odd.
    subnormal : bool
        Whether there are subnormal numbers.
    chunk_size : int
        Changes nothing: large arrays are shared among threads.
    random_state : int
        Seed of modes that draw; each call takes the next stream.
    verbose : bool
        Print the unit roundoff.

    Attributes
    ----------
    u : float
        Unit roundoff, 2^-(sig_bits + 1).

    >>> Chop(5, 10)(70000.0)
    inf
    """

    exp_bits: int
    sig_bits: int
    rmode: int = 1
    subnormal: bool = True
    chunk_size: int = field(default=800, repr=False)
    random_state: int = 42
    verbose: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        for name, low, high in (("exp_bits", 2, 11), ("sig_bits", 0, 52)):
            value = getattr(self, name)
            if not is_integer(value) or not low <= value <= high:
                raise ValueError(f"{name} must be an integer from {low} to {high}, got {value!r}")
        check_mode("rmode", self.rmode, PYCHOP_MODES, {})
        self.exp_bits, self.sig_bits, self.rmode = int(self.exp_bits), int(self.sig_bits), int(self.rmode)
        self.subnormal, self.random_state = bool(self.subnormal), check_seed("random_state", self.random_state)
        self._options = Options(
            format="c",
            params=(self.sig_bits + 1, 2 ** (self.exp_bits - 1) - 1),
            subnormal=int(self.subnormal),
            round=PYCHOP_MODES[self.rmode],
            seed=self.random_state,
        )
        self.u = 2.0 ** -(self.sig_bits + 1)
        if self.verbose:
            print(f"unit roundoff {self.u:e}, 2^{-(self.sig_bits + 1)}")

    def __call__(self, X: Any) -> Any:
        """Numbers rounded, as `chop` rounds them."""
        return chop(X, self._options)


class FloatParams(NamedTuple):
    """What `float_params` says of a format."""

    u: float
    xmins: float
    xmin: float
    xmax: float
    p: int
    emins: int
    emin: int
    emax: int


def float_params(fmt: str = "d") -> FloatParams:
    """chop's `float_params`: unit roundoff, smallest subnormal, smallest normal and largest number, precision, and their exponents.

    Names are those of `Options`, and "q", "quadruple", "fp128", whose smallest numbers are 0 and whose largest is infinite as float64.
    "e4m3" is not among them: its largest number is not the one of its exponent.

    >>> float_params("h")
    FloatParams(u=0.00048828125, xmins=5.960464477539063e-08, xmin=6.103515625e-05, xmax=65504.0, p=11, emins=-24, emin=-14, emax=15)
    """
    known = {name: row for row in (*ROWS, QUADRUPLE) for name in row.names if row is not OCP}
    check_choice("fmt", fmt, tuple(known))
    row = known[fmt]
    emin = 1 - row.emax
    emins = emin + 1 - row.p
    with np.errstate(over="ignore", under="ignore"):
        xmins, xmin = (float(np.ldexp(1.0, e)) for e in (emins, emin))
        xmax = float(np.ldexp(2.0 - 2.0 ** (1 - row.p), row.emax))
    return FloatParams(2.0**-row.p, xmins, xmin, xmax, row.p, emins, emin, row.emax)
