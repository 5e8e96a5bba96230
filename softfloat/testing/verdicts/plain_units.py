"""Adders and multipliers as they are often written: parts that differ from the right unit's, alone and together.

A `Unit` has a choice for each of its `PARTS`; "" is the right one. `unit_causes` are the units that differ in one part. Open designs of
narrow formats mostly differ in several, and `likeliest` finds which: part by part, as long as more rows agree.

>>> from softfloat.testing.vectors.operations import resolve
>>> unit = Unit(operands="daz", alignment="late sticky, 3 guard bits")
>>> unit.name
'daz + late sticky, 3 guard bits'
>>> results, flags = unit.run(resolve("sub", "float8_e4m3fn"), [np.array([0x40, 0x41], np.uint8), np.array([0x01, 0x09], np.uint8)])
>>> [hex(x) for x in results]
['0x40', '0x41']
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.accumulators import fma
from softfloat.environments import Overflow, Rounding, as_rounding
from softfloat.formats import Format
from softfloat.status import Flags
from softfloat.testing.vectors.columns import as_number
from softfloat.testing.vectors.operations import Case
from softfloat.testing.verdicts.cause import Cause, Pair

__all__ = ["PARTS", "Unit", "likeliest", "unit_causes"]

Codes = np.ndarray[Any, Any]
Reals = np.ndarray[Any, Any]

SUMS = ("add", "sub", "fma")
OPERATIONS = (*SUMS, "mul")
GUARD_BITS = range(6)
LONGEST_SUM = 64  # products, of sums whose steps are done one by one
WORTH_A_PART = 0.01  # of the wrong rows that a further part must settle


def _guards(count: int) -> str:
    return f"{count} guard {'bit' if count == 1 else 'bits'}"


PARTS: dict[str, dict[str, str]] = {
    "rounding": {
        "rounding toward_zero": "results are truncated",
        "rounding nearest_away": "ties go away from zero",
    },
    "operands": {
        "daz": "subnormal operands count as zero",
        "hidden 1 in subnormals": "subnormal operands are read with a hidden 1",
        "hidden 1 in subnormals and zeros": "subnormal operands and zeros are read with a hidden 1",
        "subnormals halved": "exponent field 0 is taken as it stands, one too low, in operands and results",
    },
    "special": {
        "no special codes": "codes of NaN and infinity are read as numbers, and so come out",
        "top exponent special": "the top exponent field holds nothing but infinity and NaN",
    },
    "alignment": {
        **{
            f"no alignment sticky, {_guards(n)}": f"what alignment shifts out beyond {_guards(n)} is forgotten"
            for n in GUARD_BITS
        },
        **{
            f"late sticky, {_guards(n)}": f"what alignment shifts out beyond {_guards(n)} is not borrowed: "
            "it counts where the difference is rounded only"
            for n in GUARD_BITS[1:4]
        },
    },
    "tiny": {
        "subnormal results flushed": "subnormal results become zero once they are rounded",
        "subnormal results flushed to +0": "subnormal results become +0 once they are rounded",
        "ftz": "results that are subnormal before rounding become zero",
    },
    "overflow": {
        "overflow saturate": "overflow gives the largest finite number",
        "overflow infinity": "overflow gives infinity",
        "overflow nan": "overflow gives NaN",
        "exponent wraps": "exponents that are too large lose their high bits",
    },
    "zero": {
        "no negative zero": "results -0 become +0",
        "sign of a in x - x": "x - x has the sign of a",
    },
}
"""Part -> its other choices: name and meaning."""

PREDICTED_ELSEWHERE = (
    "rounding",
    "overflow saturate",
    "overflow infinity",
    "overflow nan",
    "daz",
    "ftz",
    "no negative zero",
)
"""Beginnings of the names of choices that are causes of the environment already."""


@dataclass(frozen=True)
class Unit:
    """A unit by its parts; each is "" or one of `PARTS`."""

    rounding: str = ""
    operands: str = ""
    special: str = ""
    alignment: str = ""
    tiny: str = ""
    overflow: str = ""
    zero: str = ""

    @property
    def chosen(self) -> dict[str, str]:
        """Parts that are not the right ones."""
        return {part: choice for part in PARTS if (choice := getattr(self, part))}

    @property
    def name(self) -> str:
        """Of its choices."""
        return " + ".join(self.chosen.values())

    @property
    def meaning(self) -> str:
        """What they mean."""
        return "; ".join(PARTS[part][choice] for part, choice in self.chosen.items())

    def run(self, case: Case, operands: Sequence[Codes]) -> Pair:
        """Results and flags of a case that it takes, as of `Case.run`."""
        case = self._settled(case)
        operands = operands[: len(case.operands)]
        results, flags = case.run(operands)
        if self.alignment or self.operands not in ("", "daz"):
            run = self._summed if case.operation.result == "sum" else self._computed
            found, raised, changed = run(case, operands)
            results, flags = np.where(changed, found, results), np.where(changed, raised, flags)
        return self._patched(case, operands, results, flags)

    def _settled(self, case: Case) -> Case:
        """The case with what settings and formats can say."""
        settings: dict[str, Any] = {}
        if self.rounding:
            settings["rounding"] = self.rounding.removeprefix("rounding ")
        if self.operands == "daz":
            settings["daz"] = True
        if self.tiny == "ftz":
            settings["ftz"] = True
        if self.overflow.startswith("overflow "):
            settings["overflow"] = self.overflow.removeprefix("overflow ")
        case = case.under(**settings) if settings else case
        if self.special:
            number = as_number(_other_special(case.format, self.special))
            case = case.replace(source=number, second=number, target=number)
        return case

    def _read(self, codes: Codes, fmt: Format) -> tuple[Reals, Codes]:
        """Values of operands, and which are not what the format says."""
        values = np.asarray(bits.decode(codes, fmt), np.float64)
        if self.operands in ("", "daz"):
            return values, np.zeros(codes.shape, bool)
        field = codes >> fmt.mantissa_bits & codes.dtype.type((1 << fmt.exponent_bits) - 1)
        low = (field == 0) & (codes & codes.dtype.type(fmt.sign_bit - 1) != 0)
        if self.operands == "subnormals halved":
            return np.where(low, values / 2, values), low
        if self.operands.endswith("zeros"):
            low = field == 0
        return np.where(low, values / 2 + np.copysign(2.0 ** (fmt.emin - 1), values), values), low

    def _computed(self, case: Case, operands: Sequence[Codes]) -> tuple[Codes, Codes, Codes]:
        """Results and flags of rows whose operands or sums are other ones, and which rows these are."""
        fmt = case.format
        read = [self._read(x, fmt) for x in operands[: len(case.operation.operands)]]
        values, changed = [x for x, _ in read], np.logical_or.reduce([x for _, x in read])
        with np.errstate(invalid="ignore"):
            total, lost = self._total(_terms(case.operation.name, values), fmt.p)
        if case.environment.rounding is Rounding.TOWARD_NEGATIVE and len(values) > 1:
            total = np.where((total == 0) & (values[0] != 0) & changed, -0.0, total)
        changed = (changed | lost | self._low(total, fmt)) & np.isfinite(total)
        results, flags = self._encoded(total, case, operands)
        return results, flags, changed

    def _low(self, total: Reals, fmt: Format) -> Codes:
        """Results that have exponent field 0 where fields are taken as they stand."""
        return (self.operands == "subnormals halved") & (np.abs(total) < 2.0**fmt.emin)

    def _encoded(self, total: Reals, case: Case, operands: Sequence[Codes]) -> tuple[Codes, Codes]:
        fmt = case.format
        options: Any = {"environment": case.environment}
        if case.draws:
            options["random_bits"] = operands[-1]
        total = np.where(np.isfinite(total), total, 0)
        results, flags = (np.asarray(x) for x in bits.encode(total, fmt, **options))
        if self.operands == "subnormals halved":
            lower = dataclasses.replace(fmt, name=f"{fmt.name}_lower", bias=fmt.bias + 1)
            codes, raised = (np.asarray(x) for x in bits.encode(total, lower, **options))
            low = np.abs(total) < 2.0**fmt.emin
            kept = codes & fmt.dtype.type(fmt.sign_bit | ((1 << fmt.mantissa_bits) - 1))
            results, flags = np.where(low, kept, results), np.where(low, raised, flags)
        return results, flags

    def _total(self, terms: Sequence[Reals], p: int) -> tuple[Reals, Codes]:
        """The sum of one term or two, rounded to odd where float64 cannot hold it; and where alignment lost anything."""
        if len(terms) == 1:
            return terms[0], np.zeros(terms[0].shape, bool)
        first, second = terms
        if not self.alignment:
            return _odd_sum(first, second), np.zeros(first.shape, bool)
        guard = int(self.alignment.partition(", ")[2].split()[0])
        swapped = np.abs(first) < np.abs(second)
        large, small = np.where(swapped, second, first), np.where(swapped, first, second)
        _, exponent = np.frexp(large)
        step = exponent.astype(np.float64) - p - guard  # of the last guard bit
        aligned = np.ldexp(np.trunc(np.ldexp(small, -step.astype(np.int64))), step.astype(np.int64))
        lost = np.isfinite(first) & np.isfinite(second) & (aligned != small)
        total = large + aligned
        zero = np.copysign(0.0, small)
        total = np.where(aligned == 0, np.where(large == 0, large + zero, large), total)
        if self.alignment.startswith("late"):
            total = np.where(lost, np.nextafter(total, np.copysign(np.inf, total)), total)
        return total, lost

    def _summed(self, case: Case, operands: Sequence[Codes]) -> tuple[Codes, Codes, Codes]:
        """A sum of products, one fused step after the other."""
        fmt = case.target.format
        assert fmt is not None
        a, b, *c = operands
        step = Case(case.operation, as_number(fmt), as_number(fmt), as_number(fmt), case.environment)
        codes = c[0] if c else np.zeros(len(a), fmt.dtype)
        flags, changed = np.zeros(len(a), np.uint8), np.zeros(len(a), bool)
        rest = case.replace(length=1, addend=True)
        for k in range(a.shape[1]):
            x, y = (np.asarray(bits.decode(z[:, k], f), np.float64) for z, f in zip((a, b), case.formats, strict=True))
            with np.errstate(invalid="ignore"):
                total, lost = self._total((x * y, np.asarray(bits.decode(codes, fmt), np.float64)), fmt.p)
            right, raised = rest.run([a[:, k : k + 1], b[:, k : k + 1], codes])
            found, other = self._encoded(total, step, ())
            codes, flags = np.where(lost, found, right), flags | np.where(lost, other, raised)
            changed |= lost
        return codes, flags, changed

    def _patched(self, case: Case, operands: Sequence[Codes], results: Codes, flags: Codes) -> Pair:
        """What is done to results once they are rounded."""
        fmt = case.target.format
        assert fmt is not None
        sign = fmt.dtype.type(fmt.sign_bit)
        if self.overflow == "exponent wraps":
            over = flags & Flags.OVERFLOW != 0
            half = 1 << (fmt.exponent_bits - 1)
            with np.errstate(invalid="ignore"):
                values = [self._read(x, case.format)[0] for x in operands[: len(case.operation.operands)]]
                total, _ = self._total(_terms(case.operation.name, values), fmt.p)
            codes, _ = self._encoded(np.where(over, total * 2.0**-half, 0), case, operands)
            wrapped = codes ^ fmt.dtype.type(half << fmt.mantissa_bits)
            results = np.where(over, wrapped, results)
        if self.tiny.startswith("subnormal results flushed"):
            tiny = np.asarray(bits.issubnormal(results, fmt))
            results = np.where(tiny, results & sign if self.tiny.endswith("flushed") else fmt.dtype.type(0), results)
        if self.zero == "no negative zero":
            results = np.where(results == sign, fmt.dtype.type(0), results)
        elif self.zero == "sign of a in x - x":
            a, b = operands[:2]
            if case.environment.daz:
                a, b = (np.where(np.asarray(bits.issubnormal(x, case.format)), x & sign, x) for x in (a, b))
            b = b if case.operation.name == "sub" else b ^ sign
            results = np.where((results & ~sign == 0) & (a == b), a & sign, results)
        return results.astype(fmt.dtype), flags.astype(np.uint8)

    def predict(self, case: Case) -> Callable[[Sequence[Codes], tuple[Codes, Codes]], Pair]:
        """As a `Cause` has it."""
        return lambda operands, right: self.run(case, operands)


def _terms(operation: str, values: Sequence[Reals]) -> tuple[Reals, ...]:
    """What is added: each exact in float64."""
    if operation == "mul":
        return (values[0] * values[1],)
    if operation == "fma":
        return values[0] * values[1], values[2]
    return values[0], -values[1] if operation == "sub" else values[1]


def _odd_sum(a: Reals, b: Reals) -> Reals:
    """a + b rounded to odd in float64."""
    total = a + b
    part = total - a
    rest = (a - (total - part)) + (b - part)
    odd = np.asarray(total).view(np.int64) & 1 != 0
    beside = np.nextafter(total, np.copysign(np.inf, rest))
    return np.where(np.isfinite(total) & (rest != 0) & ~odd, beside, total)


def _other_special(fmt: Format, special: str) -> Format:
    kept = {name: getattr(fmt, name) for name in ("exponent_bits", "mantissa_bits", "bias")}
    if special == "no special codes":
        return Format(f"{fmt.name}_numbers", nan="none", infinities=False, **kept)
    return Format(f"{fmt.name}_ieee", **kept)


def _applies(case: Case, part: str, choice: str) -> bool:
    """Whether a unit of this case can have that choice."""
    fmt, name, settings = case.format, case.operation.name, case.environment
    summed = name in SUMS or case.operation.result == "sum"
    if part == "alignment":
        return summed
    if case.operation.result == "sum":
        return False
    if part == "rounding":
        return as_rounding(choice.removeprefix("rounding ")) != settings.rounding
    if part == "operands":
        return not settings.daz and fmt.mantissa_bits > 0
    if part == "special":
        ieee = fmt.nan == "ieee"
        return fmt.nan in ("ieee", "fn") and (choice == "no special codes" or (not ieee and fmt.mantissa_bits > 0))
    if part == "tiny":
        return not settings.ftz and fmt.mantissa_bits > 0
    if part == "overflow":
        if choice == "exponent wraps":
            return name in ("add", "sub", "mul")
        found = Overflow[choice.removeprefix("overflow ").upper()]
        return found != settings.overflow and (found is not Overflow.NAN or fmt.has_nan)
    return fmt.signed_zero and (choice == "no negative zero" or name in ("add", "sub"))


def _takes(case: Case) -> bool:
    """Whether cases of this kind are computed by units, which need a float64 with bits to spare."""
    if case.blocks is not None:
        return False
    if case.operation.result == "sum":
        fmt, how = case.target.format, case.accumulator
        one = how is not None and fmt is not None and how == fma(fmt) and (case.length or 0) <= LONGEST_SUM
        return one and not case.environment.settings.rounding.draws
    fmt = case.source.format
    usual = fmt is not None and fmt.signed and fmt.zero and fmt.subnormals and fmt.signed_zero and not fmt.wide
    return case.operation.name in OPERATIONS and bool(usual)


def _choices(case: Case) -> Iterator[tuple[str, str]]:
    if _takes(case):
        for part, choices in PARTS.items():
            for choice in choices:
                if _applies(case, part, choice):
                    yield part, choice


def unit_causes(case: Case) -> Iterator[Cause]:
    """Units that differ in one part, but for those that are causes of the environment."""
    for part, choice in _choices(case):
        if not choice.startswith(PREDICTED_ELSEWHERE):
            unit = Unit(**{part: choice})
            yield Cause(unit.name, unit.meaning, unit.predict(case))


def likeliest(case: Case, operands: Sequence[Codes], agree: Callable[[Pair], Codes]) -> Unit:
    """The unit whose results agree in the most rows, found part by part.

    Parameters
    ----------
    case : Case
    operands : sequence of arrays
        Of some rows.
    agree : callable
        (results, flags) -> which rows of the device have these results.
    """
    best, choices = Unit(), list(_choices(case))
    if not choices:
        return best

    def score(unit: Unit) -> int:
        try:
            return int(agree(unit.run(case, operands)).sum())
        except (ValueError, TypeError):  # settings that the format refuses
            return -1

    most = score(best)
    least = max(1.0, WORTH_A_PART * (len(operands[0]) - most))
    while True:
        tried = [dataclasses.replace(best, **{part: choice}) for part, choice in choices]
        scores = [score(unit) for unit in tried]
        top = max(range(len(tried)), key=lambda i: scores[i])
        if scores[top] < most + least:
            return best
        best, most = tried[top], scores[top]
