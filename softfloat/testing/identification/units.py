"""Which accumulator is inside an unknown dot-product unit: found from its answers alone.

A unit takes codes a and b of shape (rows, k) and an addend c of shape (rows,), and gives one code for each row. A few
hundred targeted rows tell its range, what it does with subnormals, how many bits a sum keeps, where a sum is cut and in
what direction, whether products are exact, and the order of summation; then every preset of `softfloat.accumulators`
that takes these formats, and if none fits an accumulator built from what was measured, is held against all answers and
against random ones; and rows on which those left over differ decide among them.

The probes are those of Fasi, Higham, Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores (PeerJ Computer
Science 2021), and for the order those of FPRev (Xie, Gao, Wang and Xue, Revealing floating-point accumulation orders,
2024): a large M at one place, -M at another, units elsewhere; the units lost between say how places meet.

>>> from softfloat.accumulators import fma
>>> found = identify(unit_of(fma("float16"), "float16"), "float16", "float16", 8)
>>> found.verdict, [str(x) for x in found.fits], found.calls <= MAXIMUM_CALLS
('preset', ["fma('float16')"], True)
"""

from __future__ import annotations

import inspect
import itertools
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softfloat import bits, engine
from softfloat.accumulators import (
    PRESETS,
    TENSOR_CORES,
    Accumulator,
    chunked,
    compensated,
    exact,
    fma,
    mul_add,
    pairwise,
    tensor_core,
)
from softfloat.accumulators.tensor_cores import SAME_AS, SHORT
from softfloat.checks import check_choice, check_count, check_integer, check_seed
from softfloat.formats import ROSTER, Format, check_format
from softfloat.kernels.spec import NAN_POLICIES
from softfloat.testing.identification.probes import (
    CODES_IN,
    FAMILIES,
    LONGEST,
    MAXIMUM_CALLS,
    Answers,
    Asked,
    Codes,
    Measurement,
    Property,
    Unit,
    UnitError,
    draw_rows,
    pair_of,
)
from softfloat.testing.identification.structures import Candidate, descriptions, registers, spelled, structures_of
from softfloat.testing.vectors.columns import as_number
from softfloat.testing.verdicts.comparisons import NAN_MODES, wrong_results

__all__ = [
    "LONGEST",
    "MAXIMUM_CALLS",
    "Candidate",
    "Identification",
    "Near",
    "Property",
    "Unit",
    "UnitError",
    "command_unit",
    "identify",
    "presets_for",
    "unit_of",
]

EXAMPLES = 3
RANDOM_ROWS = 800
FRESH = 1500  # rows drawn at a time to tell candidates apart

# -- what is found ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Near:
    """A candidate that does not fit: on how many rows it is wrong, and on how many of them but for the code of a NaN."""

    candidate: Candidate
    wrong: int
    wrong_values: int
    rows: int
    examples: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Identification:
    """What `identify` found.

    Attributes
    ----------
    formats : tuple of Format
        Of a and b.
    partials, output : Format
        Of the addend and of the result.
    length : int
        Products of a row.
    properties : tuple of Property
    fits : tuple of Candidate
        What gives every answer the unit gave, bit for bit but for NaNs, which are compared as `nan` says; presets first.
        Several are the same function for this length and these formats, as far as `searched` further rows can tell.
    nearest : tuple of Near
        The best of the others, if nothing fits.
    candidates : int
        How many were held against the answers.
    confirmations, searched : int
        Answers that candidates were held against; rows on which those left over were compared with each other.
    calls, rows : int
        Calls of the unit, and rows of all calls.
    nan : str
        How NaNs were compared: as asked for, or "payload" if what fits gives their codes too.
    """

    formats: tuple[Format, Format]
    partials: Format
    output: Format
    length: int
    properties: tuple[Property, ...]
    fits: tuple[Candidate, ...]
    nearest: tuple[Near, ...]
    candidates: int
    confirmations: int
    searched: int
    calls: int
    rows: int
    nan: str = "payload"

    @property
    def verdict(self) -> str:
        """ "preset", "description" (an accumulator that is no preset fits), or "none fits"."""
        if not self.fits:
            return "none fits"
        return "preset" if any(x.preset for x in self.fits) else "description"

    @property
    def accumulator(self) -> Accumulator | None:
        """The first that fits."""
        return self.fits[0].accumulator if self.fits else None

    def __getitem__(self, name: str) -> str:
        """The value of a property."""
        return next(x.value for x in self.properties if x.name == name)

    def as_dict(self) -> dict[str, Any]:
        """Everything, in plain types."""
        return {
            "verdict": self.verdict,
            "formats": [x.name for x in self.formats],
            "partials": self.partials.name,
            "output": self.output.name,
            "length": self.length,
            "properties": [{"name": x.name, "value": x.value, "evidence": x.evidence} for x in self.properties],
            "fits": [_candidate_document(x) for x in self.fits],
            "nearest": [
                {
                    **_candidate_document(x.candidate),
                    "wrong": x.wrong,
                    "wrong_values": x.wrong_values,
                    "rows": x.rows,
                    "examples": list(x.examples),
                }
                for x in self.nearest
            ],
            "candidates": self.candidates,
            "confirmations": self.confirmations,
            "searched": self.searched,
            "calls": self.calls,
            "rows": self.rows,
            "nan": self.nan,
        }

    def __str__(self) -> str:
        lines = [f"{x.name}: {x.value} ({x.evidence})" for x in self.properties]
        lines += [f"fits: {x}" for x in self.fits] or ["none fits"]
        lines += [f"nearest: {x.candidate}, wrong on {x.wrong} of {x.rows} rows" for x in self.nearest]
        return "\n".join(lines)


def _candidate_document(x: Candidate) -> dict[str, Any]:
    return {
        "accumulator": repr(x.accumulator),
        "options": dict(x.options),
        "preset": x.preset,
        "description": x.accumulator.describe(),
    }


# -- units -----------------------------------------------------------------------------------------------------------


def unit_of(accumulator: Accumulator, formats: Any, output: Format | str | None = None, **options: Any) -> Unit:
    """The unit that an accumulator describes, for trying things out; options are those of `bits.vecdot`.

    >>> from softfloat.accumulators import exact
    >>> unit = unit_of(exact("float32"), "float16")
    >>> [hex(x) for x in unit(np.array([[0x3C00, 0x3C00]]), np.array([[0x3C00, 0x4000]]), np.array([0]))]
    ['0x40400000']
    """

    def unit(a: Codes, b: Codes, c: Codes) -> Codes:
        codes: Codes = bits.vecdot(a, b, formats, accumulator, c, out_format=output, **engine.as_environment(options))[
            0
        ]
        return codes

    return unit


def command_unit(command: Sequence[str], formats: Any, partials: Format | str, timeout: float = 60.0) -> Unit:
    """A unit that is a program: each call runs it once.

    A line of its standard input is a row in hexadecimal digits without prefix, a[0] ... a[k-1] b[0] ... b[k-1] c, with
    spaces between; a line of its standard output is the row's code in hexadecimal, with or without 0x. It ends when its
    input does.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments; no shell is involved.
    formats : Format, str, or a pair of them
        Of a and b.
    partials : Format or str
        Of c.
    timeout : float
        Seconds that a call may take.

    Raises
    ------
    UnitError
        When called: the program cannot be started, fails, takes too long, or prints something else.
    """
    pair = pair_of(formats)
    widths = [-(-x.bits // 4) for x in (*pair, check_format(partials, "partials"))]
    shown = " ".join(command)

    def unit(a: Codes, b: Codes, c: Codes) -> Codes:
        lines = [
            " ".join(
                f"{code:0{width}x}"
                for row, width in zip(rows, widths, strict=True)
                for code in np.atleast_1d(row).tolist()
            )
            for rows in zip(a, b, c, strict=True)
        ]
        try:
            done = subprocess.run(
                list(command),
                input="\n".join(lines) + "\n",
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except OSError as error:
            raise UnitError(f"cannot run {shown!r}: {error.strerror or error}") from None
        except subprocess.TimeoutExpired:
            raise UnitError(f"{shown!r} took more than {timeout:g} s for {len(lines)} rows") from None
        except UnicodeDecodeError:
            raise UnitError(f"{shown!r} must print hexadecimal codes, got bytes that are no text") from None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["nothing on standard error"])[-1]
            raise UnitError(f"{shown!r} ended with status {done.returncode}: {last}")
        answers = done.stdout.split()
        if len(answers) != len(lines):
            raise UnitError(f"{shown!r} must print one code for each of {len(lines)} rows, got {len(answers)}")
        try:
            return np.array([int(x, 16) for x in answers], np.uint64)
        except (ValueError, OverflowError):
            wrong = next(x for x in answers if not _is_code(x))
            raise UnitError(f"{shown!r} must print hexadecimal codes, got {wrong!r}") from None

    return unit


def _is_code(text: str) -> bool:
    try:
        return 0 <= int(text, 16) < 2**64
    except ValueError:
        return False


# -- candidates ------------------------------------------------------------------------------------------------------


def presets_for(formats: Any, partials: Format | str, length: int) -> list[Accumulator]:
    """Every preset, with every choice of its parameters, that takes operands in these formats and an addend in that one.

    Chunks are of 2, 4, 8 ... products, and of `length` at most; they are summed in any named format with at least as
    many bits as float8.
    """
    pair, memory = pair_of(formats), check_format(partials, "partials")
    found: dict[str, Accumulator] = {}
    for make, arguments, keywords in _calls(pair, memory, length):
        try:
            accumulator = make(*arguments, **keywords)
        except ValueError:  # it does not exist in these formats
            continue
        if accumulator.partials == memory and all(not accumulator.inputs or x in accumulator.inputs for x in pair):
            found.setdefault(accumulator.name, accumulator)
    return list(found.values())


def _calls(
    pair: tuple[Format, Format], memory: Format, length: int
) -> Iterator[tuple[Callable[..., Accumulator], tuple[Any, ...], dict[str, Any]]]:
    """Calls of preset functions, some of them refused."""
    for simple in (fma, mul_add, exact, pairwise):
        yield simple, (memory,), {}
    for method in PRESETS["compensated"].parameters["method"]:
        yield compensated, (memory, method), {}
    inner = dict.fromkeys((memory, *(ROSTER[x] for x in ("float16", "bfloat16", "float32")), *pair))
    for n in (1 << i for i in range(1, 9) if 1 << i < length):
        for fmt in inner:
            yield chunked, (n, fmt, memory), {}
    for arch in dict.fromkeys([row.architecture for row in TENSOR_CORES] + list(SAME_AS)):
        for way in (None, "mma.sync", *(shape for shape, _ in SHORT.values())):
            yield tensor_core, (arch, pair[0], memory, way), {}
    for row in PRESETS.values():
        if not all(row.parameters.values()):  # any format or number: those above
            continue
        choices = [_worth_trying(name, values, pair, memory, length) for name, values in row.parameters.items()]
        for chosen in itertools.product(*choices):
            yield row.make, (), dict(zip(row.parameters, chosen, strict=True))


def _worth_trying(
    name: str, values: tuple[Any, ...], pair: tuple[Format, Format], memory: Format, length: int
) -> list[Any]:
    """Values of a preset's parameter that these formats and this length allow."""
    if name in ("input", "inputs"):
        return [x for x in values if x.removesuffix("_1k") == pair[0].name]
    if name in ("output", "partials"):
        return [x for x in values if x == memory.name]
    if name == "n":
        return [x for x in values if x <= length]
    if name == "fz16":
        return [False]
    return [True] if name == "stochastic" else list(values)  # which leaves nearest rounding as it is


# -- deciding --------------------------------------------------------------------------------------------------------


class _Judge:
    """Holds candidates against answers; `nan` says how NaNs are compared."""

    def __init__(self, asked: Asked, nan: str) -> None:
        self.asked, self.nan = asked, nan
        self.number = as_number(asked.output)

    def differ(self, expected: Codes, found: Codes) -> Codes:
        """Where codes differ, as far as NaNs are compared."""
        return wrong_results(expected, found, self.number, self.nan)

    def predict(self, candidate: Candidate, a: Codes, b: Codes, c: Codes, nan: str | None = None) -> Codes:
        options = dict(candidate.options)
        if nan is not None:
            options["nan"] = nan
        settings = engine.as_environment({"flags": "any", **options})
        codes, _ = bits.vecdot(
            a, b, self.asked.formats, candidate.accumulator, c, out_format=self.asked.output, **settings
        )
        found: Codes = codes
        return found

    def wrong(self, candidate: Candidate, answers: Answers) -> tuple[Codes, Codes]:
        """(rows with another code, rows with another value): a NaN has the value of every NaN."""
        a, b, c, d = answers
        codes = self.predict(candidate, a, b, c)
        nan = bits.isnan(codes, self.asked.output) & bits.isnan(d, self.asked.output)
        return self.differ(codes, d), (codes != d) & ~nan

    def settled(self, candidate: Candidate, answers: Answers) -> Candidate | None:
        """The candidate, under the NaN policy that gives the unit's NaNs if there is one; None if it does not fit."""
        a, b, c, d = answers
        codes = self.predict(candidate, a, b, c)
        is_nan = np.asarray(bits.isnan(d, self.asked.output))
        different = codes != d
        if (different & ~(is_nan & bits.isnan(codes, self.asked.output))).any():
            return None
        if not different.any():
            return candidate
        if candidate.accumulator.nan is None:
            for policy in NAN_POLICIES:
                if np.array_equal(self.predict(candidate, a[is_nan], b[is_nan], c[is_nan], policy), d[is_nan]):
                    return Candidate(candidate.accumulator, {**candidate.options, "nan": policy}, candidate.preset)
        return None if self.differ(codes, d).any() else candidate

    def fitting(self, candidates: Sequence[Candidate], answers: Answers) -> list[Candidate]:
        """Those that fit; if some give the codes of NaNs too, only they, and only they fit from then on."""
        found = [x for x in (self.settled(candidate, answers) for candidate in candidates) if x is not None]
        a, b, c, d = answers
        to_the_bit = [x for x in found if np.array_equal(self.predict(x, a, b, c), d)]
        if to_the_bit:
            self.nan = "payload"
        return to_the_bit or found

    def near(self, candidate: Candidate, answers: Answers) -> Near:
        codes, values = self.wrong(candidate, answers)
        a, b, c, d = answers
        shown = np.flatnonzero(values if values.any() else codes)[:EXAMPLES]
        predicted = self.predict(candidate, a[shown], b[shown], c[shown])
        examples = tuple(
            {
                "a": [hex(x) for x in a[row].tolist()],
                "b": [hex(x) for x in b[row].tolist()],
                "c": hex(int(c[row])),
                "unit": hex(int(d[row])),
                "candidate": hex(int(code)),
            }
            for row, code in zip(shown, predicted, strict=True)
        )
        return Near(candidate, int(codes.sum()), int(values.sum()), len(d), examples)


def identify(
    unit: Unit,
    formats: Any,
    partials: Format | str,
    length: int,
    *,
    output: Format | str | None = None,
    seed: int = 0,
    random_rows: int = RANDOM_ROWS,
    nan: str = "any",
    presets: Sequence[Accumulator] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Identification:
    """Find the accumulator of a dot-product unit.

    Parameters
    ----------
    unit : callable
        unit(a, b, c) with codes of shapes (rows, length), (rows, length) and (rows,), in the formats' dtypes, returns
        integer codes of shape (rows,). It is called `MAXIMUM_CALLS` times at most; the same row has to get the same
        answer whatever rows are beside it.
    formats : Format, str, or a pair of them
        Of a and b.
    partials : Format or str
        Of c.
    length : int
        Products of a row, 2 to `LONGEST`. What a unit does beyond that many cannot be seen: take a multiple of what its
        instruction takes.
    output : Format or str, optional
        Of the result; default that of c.
    seed : int
        Of the random rows.
    random_rows : int
        How many of them, of eight kinds: a mistake that shows in few rows needs many.
    nan : {"any", "canonical", "payload"}
        How NaNs are compared, as `check_vectors` compares them. With "any", what gives their codes too goes before what
        does not.
    presets : sequence of Accumulator, optional
        What to hold against the answers; default `presets_for(formats, partials, length)`.
    progress : callable, optional
        Called with what is under way: each step, and each candidate with how many there are.

    Returns
    -------
    Identification

    Raises
    ------
    UnitError
        A ValueError: the unit's answers are no codes, or it does not even pass on a single product.
    ValueError, TypeError
        Naming the argument and what is accepted.

    Notes
    -----
    Stochastic rounding, and any unit that answers differently when asked again, fits nothing; property "repeatable"
    says so. NaNs do not count there: which of two a unit hands on may hang on their place among the rows.
    """
    _check_unit(unit)
    pair, memory = pair_of(formats), check_format(partials, "partials")
    target = memory if output is None else check_format(output, "output")
    length = check_integer("length", length)
    if not 2 <= length <= LONGEST:
        raise ValueError(f"length must be from 2 to {LONGEST}, got {length}")
    seed, random_rows = check_seed("seed", seed), check_count("random_rows", random_rows)
    check_choice("nan", nan, NAN_MODES)
    for name, fmt in (("formats", pair[0]), ("formats", pair[1]), ("partials", memory), ("output", target)):
        if not (fmt.zero and fmt.signed):
            raise ValueError(f"{name} must have a sign and a zero, and {fmt.name} has not")
    say = progress or (lambda _: None)
    asked = Asked(unit, pair, memory, target, length)
    found = Measurement(asked)
    say("probes")
    found.measure()
    found.structures = structures_of(found)
    found.conclude()
    random = np.random.default_rng([seed, length])
    say("random rows")
    rows = _drawn(asked, -(-random_rows // len(FAMILIES)), random)
    answers = *rows, asked(*rows)
    found.withdraw(answers)
    search = _Search(found, nan, answers, say)
    candidates = list(presets) if presets is not None else presets_for(pair, memory, length)
    if presets is None:
        candidates += registers(np.asarray(bits.decode(answers[3], target)), memory)
    search.try_presets(candidates)
    if not search.fits:
        search.describe()
    say("telling candidates apart")
    search.tell_apart(random)
    search.ask_again()
    search.confirm()
    return search.result()


def _check_unit(unit: Any) -> None:
    """TypeError if `unit` cannot be called as one is."""
    wanted = f"unit must be callable as unit(a, b, c): {CODES_IN}; it returns codes of shape (rows,)"
    if not callable(unit):
        raise TypeError(f"{wanted}, got {unit!r}")
    try:
        taken = inspect.signature(unit)
    except (TypeError, ValueError):  # functions of C have none
        return
    try:
        taken.bind(None, None, None)
    except TypeError:
        raise TypeError(f"{wanted}, got {getattr(unit, '__name__', type(unit).__name__)}{taken}") from None


def _drawn(asked: Asked, each: int, random: np.random.Generator) -> tuple[Codes, Codes, Codes]:
    """Random rows of every family, so many of each."""
    drawn = [draw_rows(x, each, asked.formats, asked.partials, asked.output, asked.length, random) for x in FAMILIES]
    a, b, c = (np.concatenate(x) for x in zip(*drawn, strict=True))
    return a, b, c


class _Search:
    """The phases of `identify` once the unit has answered random rows: each changes what fits."""

    def __init__(self, found: Measurement, nan: str, answers: Answers, say: Callable[[str], None]) -> None:
        self.found, self.asked, self.nan, self.answers, self.say = found, found.asked, nan, answers, say
        self.judge = _Judge(self.asked, nan)
        self.tried: list[Candidate] = []
        self.likely: list[Candidate] = []
        self.fits: list[Candidate] = []
        self.judged = self.searched = 0

    def try_presets(self, accumulators: Sequence[Accumulator]) -> None:
        """Those that fit, each once, under the options that the probes show where they decide anything."""
        defaults = {"rounding": "nearest_even", "overflow": "infinity", "daz": False, "ftz": False}
        settings = {name: x for name, x in self.found.settings.items() if x != defaults[name]}
        variants = [settings]
        if (
            "overflow" in settings
        ):  # modes that stay finite, and sums in formats without infinity, look like other rules
            variants.insert(0, {name: x for name, x in settings.items() if name != "overflow"})
        plain: list[dict[str, Any]] = [{}]
        tried = [(x, variants if _is_open(x) else plain) for x in accumulators]
        # a coarse register looks as if it flushed subnormals and rounded otherwise
        tried = [(x, [*plain, *(y for y in options if y)] if x.fixed is not None else options) for x, options in tried]
        self.tried = [Candidate(x, options) for x, several in tried for options in several]
        self.judged = len(self.tried)
        everything = self.asked.everything()
        few = _every(everything, 300)
        self.likely = []
        for number, x in enumerate(self.tried, 1):
            self.say(f"presets, {number} of {len(self.tried)}: {x}")
            if not self.judge.wrong(x, few)[1].any():
                self.likely.append(x)
        self.say(f"{len(self.likely)} of {len(self.tried)} presets on all rows")
        fitting = self.judge.fitting(self.likely, everything)
        named = {(x.accumulator.name, x.accumulator): x for x in reversed(fitting)}
        self.fits = list(named.values())[::-1]

    def describe(self) -> None:
        """Accumulators made up from what the probes show."""
        everything = self.asked.everything()
        self.likely, count = _described(self.found, self.judge, everything, self.say)
        self.tried, self.judged = self.tried + self.likely, self.judged + count
        self.fits = self.judge.fitting(self.likely, everything)

    def tell_apart(self, random: np.random.Generator) -> None:
        """Ask rows on which those that fit differ, until one is left or random rows show no difference."""
        self.searched = 0
        for _ in range(4):
            if len(self.fits) < 2 or self.asked.calls >= MAXIMUM_CALLS - 1:
                break
            each = max(1, FRESH // len(FAMILIES))
            a, b, c = _drawn(self.asked, each, random)
            predicted = [self.judge.predict(x, a, b, c) for x in self.fits]
            differing = np.flatnonzero(np.any([self.judge.differ(predicted[0], x) for x in predicted[1:]], axis=0))
            if not differing.size:
                self.searched += len(c)
                if self.searched >= 2 * each * len(FAMILIES):
                    break
                continue
            chosen = random.permutation(differing)[:32]
            answers = self.asked(a[chosen], b[chosen], c[chosen])
            judged = zip(self.fits, predicted, strict=True)
            self.fits = [x for x, codes in judged if not self.judge.differ(codes[chosen], answers).any()]
            self.searched = 0

    def ask_again(self) -> None:
        """Whether the unit repeats itself."""
        a, b, c, answers = _every(self.answers, 200)
        again = self.asked(a, b, c)
        nans = np.asarray(bits.isnan(answers, self.asked.output) & bits.isnan(again, self.asked.output))
        different = answers != again
        evidence = f"{len(again)} rows asked again, beside other rows"
        if (different & ~nans).any():
            value = "no"
        elif different.any():
            value, evidence = "yes, but for codes of NaNs", f"{evidence}: {int(different.sum())} NaNs have other codes"
        else:
            value = "yes"
        self.found.say("repeatable", value, evidence)

    def confirm(self) -> None:
        """Hold what is left against every answer, and say what NaNs came."""
        everything = self.asked.everything()
        self.fits = self.judge.fitting(self.fits, everything)
        if not self.fits and self.judge.nan != self.nan:  # some gave the codes of NaNs, but not on the rows asked last
            self.judge.nan = self.nan
            self.fits = self.judge.fitting(self.likely, everything)
        answers = self.answers[3]
        nans = np.unique(answers[np.asarray(bits.isnan(answers, self.asked.output))])
        if nans.size:
            shown = ", ".join(f"{code:#x}" for code in nans[:4].tolist()) + (" ..." if nans.size > 4 else "")
            unexplained = "; what fits gives other codes" if self.fits and self.judge.nan != "payload" else ""
            self.found.say("NaN", shown, f"results of random rows with special operands{unexplained}")

    def result(self) -> Identification:
        """What was found; the nearest candidates if nothing fits."""
        nearest: list[Near] = []
        if not self.fits:
            everything = self.asked.everything()
            judgements = (self.judge.near(x, everything) for x in self.tried)
            nearest = sorted(judgements, key=lambda x: (x.wrong_values, x.wrong))[:3]
        return Identification(
            self.asked.formats,
            self.asked.partials,
            self.asked.output,
            self.asked.length,
            tuple(self.found.properties),
            tuple(self.fits),
            tuple(nearest),
            self.judged,
            self.asked.rows,
            self.searched,
            self.asked.calls,
            self.asked.rows,
            self.judge.nan,
        )


def _every(answers: Answers, count: int) -> Answers:
    """About so many of them, evenly spread."""
    step = max(1, len(answers[3]) // count)
    a, b, c, d = answers
    return a[::step], b[::step], c[::step], d[::step]


def _is_open(accumulator: Accumulator) -> bool:
    """Whether the call's options decide anything."""
    stages = [accumulator.running, accumulator.product, accumulator.block_sum, accumulator.store]
    stages += [x for level in accumulator.reduction for x in (level.running, level.store)]
    return any(x is not None and x.rounding is None for x in stages)


def _described(
    found: Measurement, judge: _Judge, answers: Answers, say: Callable[[str], None]
) -> tuple[list[Candidate], int]:
    """The best descriptions, those that fit in front, and how many were looked at."""
    few = _every(answers, 300)
    best: list[tuple[int, int, Candidate]] = []
    count = 0
    for group in descriptions(found):
        for candidate in group:
            count += 1
            say(f"descriptions, number {count}: {candidate}")
            wrong = int(judge.wrong(candidate, few)[1].sum())
            if wrong == 0:
                wrong = -1 if judge.settled(candidate, answers) else int(judge.wrong(candidate, answers)[1].sum())
            best.append((wrong, count, candidate))
        if any(wrong < 0 for wrong, _, _ in best):
            break
    best.sort(key=lambda x: x[:2])
    fitting = [x for x in best if x[0] < 0]
    kept = [x[2] for x in (fitting or best)[:4]]
    return [Candidate(x.accumulator.replace(name=spelled(x.accumulator)), x.options, False) for x in kept], count
