"""Adders and multipliers with mistakes in them: built here from integers, and named by `check`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pytest

from softfloat import Environment, Flags, bits
from softfloat.testing.vectors.distributions import draw_operands
from softfloat.testing.vectors.operations import Case, resolve
from softfloat.testing.vectors.text import Chunk
from softfloat.testing.verdicts.causes import causes_of
from softfloat.testing.verdicts.check import check_vectors
from softfloat.testing.verdicts.plain_units import PARTS, Unit, unit_causes
from softfloat.testing.verdicts.reports import Report

E4M3_ADD = resolve("add", "float8_e4m3fn")


def verdict(case: Case, operands: list[np.ndarray], results: object, flags: object = None, **options: object) -> Report:
    codes = np.asarray(results, case.target.dtype)
    raised = None if flags is None else np.asarray(flags, np.uint8)
    chunk = Chunk(np.arange(1, len(codes) + 1), operands, codes, raised)
    how = {"flags": "ignore"} if flags is None else {}
    return check_vectors([chunk], case, **how, **options)


@lru_cache
def rows(case: Case, count: int = 6000) -> tuple[list[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    operands = draw_operands(case, "mixed", count, [0, 0])
    return operands, case.run(operands)


def named(report: Report) -> list[str]:
    return [x.name for x in report.findings if x.named]


# -- units built from integers, by nothing of the package ------------------------------------------------------------


def every_pair() -> list[np.ndarray]:
    first, second = np.meshgrid(np.arange(256), np.arange(256), indexing="ij")
    return [x.ravel().astype(np.uint8) for x in (first, second)]


class Adder:
    """An adder of e4m3 as it is written in a hurry, with integers; what it does is said where it is made."""

    def __init__(
        self,
        subnormal_exponent: int = 1,
        guard: int = 24,
        sticky: bool = True,
        truncate: bool = False,
        specials: bool = True,
    ) -> None:
        self.lowest, self.guard, self.sticky, self.truncate, self.specials = (
            subnormal_exponent,
            guard,
            sticky,
            truncate,
            specials,
        )

    def __call__(self, a: int, b: int) -> int:
        if self.specials and 0x7F in (a & 0x7F, b & 0x7F):
            return 0x7F
        signs, fields = [a >> 7, b >> 7], [a >> 3 & 15, b >> 3 & 15]
        exponents = [x or self.lowest for x in fields]
        numbers = [(8 * (field > 0) + (x & 7)) << self.guard for field, x in zip(fields, (a, b), strict=True)]
        big = int(exponents[1] > exponents[0])
        distance = exponents[big] - exponents[1 - big]
        aligned = numbers[1 - big] >> distance
        lost = self.sticky and aligned << distance != numbers[1 - big]
        total = (-1) ** signs[big] * numbers[big] + (-1) ** signs[1 - big] * aligned
        sign = int(total < 0) if total else signs[0] & signs[1]
        return sign << 7 | self.rounded(abs(total), exponents[big], lost)

    def rounded(self, total: int, exponent: int, lost: bool) -> int:
        if not total:
            return 0
        shift = total.bit_length() - 4 - self.guard  # to a significand of four bits
        lowest = max(exponent + shift, self.lowest)
        total, drop = total << 8, 8 + self.guard + lowest - exponent
        kept, rest, half = total >> drop, total & ((1 << drop) - 1), 1 << (drop - 1)
        if not self.truncate and (rest > half or (rest == half and (lost or kept & 1))):
            kept += 1
        code = kept + ((lowest - 1) << 3)
        if not self.specials:
            return code & 0x7F
        return code if code <= 0x7E else 0x7E if self.truncate else 0x7F


@pytest.mark.parametrize(
    ("adder", "name", "fmt"),
    [
        (Adder(guard=0, sticky=False), "no alignment sticky, 0 guard bits", "float8_e4m3fn"),
        (Adder(guard=1, sticky=False), "no alignment sticky, 1 guard bit", "float8_e4m3fn"),
        (Adder(guard=3, sticky=False), "no alignment sticky, 3 guard bits", "float8_e4m3fn"),
        (Adder(truncate=True), "rounding toward_zero", "float8_e4m3fn"),
    ],
)
def test_adders_of_integers_are_named(adder: Callable[[int, int], int], name: str, fmt: str) -> None:
    """All 65 536 rows, and not one unexplained."""
    case, operands = resolve("add", fmt), every_pair()
    found = [adder(a, b) for a, b in zip(*(x.tolist() for x in operands), strict=True)]
    report = verdict(case, operands, found)
    assert report.mismatches > 300
    assert named(report)[0] == name
    assert report.findings[0].share == 1
    assert not report.findings[0].contradictions


def test_the_adder_of_integers_is_right_without_mistakes() -> None:
    operands = every_pair()
    found = [Adder()(a, b) for a, b in zip(*(x.tolist() for x in operands), strict=True)]
    assert verdict(E4M3_ADD, operands, found).passed


def test_several_mistakes_in_one_unit_are_named_together() -> None:
    """As open designs of fp8 have them: their wrong rows have no single cause."""
    operands = every_pair()

    def first(a: int, b: int) -> int:
        """Subnormals are zero, the sticky bit is not borrowed, overflow saturates, x - x has the sign of a."""
        signs, fields, fractions = [a >> 7, b >> 7], [a >> 3 & 15, b >> 3 & 15], [a & 7, b & 7]
        if 0x7F in (a & 0x7F, b & 0x7F):
            return 0x7F
        big = int(fields[1] > fields[0])
        numbers = [(8 | fraction) << 3 if field else 0 for field, fraction in zip(fields, fractions, strict=True)]
        distance = min(fields[big] - fields[1 - big], 7)
        aligned = numbers[1 - big] >> distance
        lost = aligned << distance != numbers[1 - big]
        total = (-1) ** signs[big] * numbers[big] + (-1) ** signs[1 - big] * aligned
        sign, size, exponent = int(total < 0) if total else signs[big], abs(total), fields[big]
        if not size:
            return sign << 7
        if size >= 128:
            size, lost, exponent = size >> 1, lost or bool(size & 1), exponent + 1
        while size < 64:
            size, exponent = size << 1, exponent - 1
        kept, rest = size >> 3, size & 7
        kept += rest > 4 or (rest == 4 and (lost or kept & 1))
        code = (exponent << 3) + kept - 8
        return sign << 7 | (0 if exponent < 1 and code < 8 else min(code, 0x7E))

    report = verdict(E4M3_ADD, operands, [first(a, b) for a, b in zip(*(x.tolist() for x in operands), strict=True)])
    (finding,) = report.findings
    assert finding.name == (
        "daz + late sticky, 3 guard bits + subnormal results flushed + overflow saturate + sign of a in x - x"
    )
    assert finding.share > 0.99
    assert finding.named

    second = Adder(subnormal_exponent=0, guard=5, sticky=False, truncate=True, specials=False)
    report = verdict(E4M3_ADD, operands, [second(a, b) for a, b in zip(*(x.tolist() for x in operands), strict=True)])
    assert report.findings[0].name.startswith("rounding toward_zero + subnormals halved + no special codes")
    assert report.findings[0].share > 0.95


# -- every cause against every other ---------------------------------------------------------------------------------

CONFUSED = [
    (operation, fmt)
    for operation in ("add", "sub", "mul", "fma")
    for fmt in ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16")
]
ALSO = {
    "UNDERFLOW by the delivered result",
    "UNDERFLOW when exact",
    "no UNDERFLOW",
    "tininess before",
    "tininess after",
}
"""Causes that are no unit's, planted besides."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("operation", "fmt"), CONFUSED)
def test_no_cause_is_taken_for_another(operation: str, fmt: str) -> None:
    """A matrix of plants and names: a plant's own name has a share of 1; another may stand beside it where it gives the same rows."""
    case = resolve(operation, fmt)
    operands, right = rows(case)
    planted = [
        *unit_causes(case),
        *(x for x in causes_of(case) if x.name.startswith(tuple(ALSO)) or "sticky bit" in x.name),
    ]
    assert len({x.name for x in planted}) == len(planted)
    for cause in planted:
        results, flags = cause.predict(operands, right)
        report = verdict(case, operands, results, flags, first=0)
        if report.passed:  # makes no difference to this operation
            continue
        found = {x.name: x for x in report.findings}
        assert cause.name in found, (cause.name, list(found))
        assert found[cause.name].named
        assert found[cause.name].share == 1
        for other in causes_of(case):
            if other.name in found and other.name != cause.name:
                same, other_flags = other.predict(operands, right)
                nan = np.asarray(bits.isnan(same, case.format)) & np.asarray(bits.isnan(results, case.format))
                agree = (same == results) | nan
                assert agree.mean() > 0.99, (cause.name, other.name)
                assert other_flags is None or (other_flags == flags).mean() > 0.99, (cause.name, other.name)


def test_parts_have_names_of_their_own() -> None:
    names = [name for choices in PARTS.values() for name in choices]
    assert len(set(names)) == len(names)
    unit = Unit(operands="daz", tiny="subnormal results flushed")
    assert unit.name == "daz + subnormal results flushed"
    assert "; " in unit.meaning


# -- what the names are about ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", ["float16", "bfloat16"])
@pytest.mark.parametrize("kept", [True, False])
def test_flushed_results_with_right_flags(fmt: str, kept: bool) -> None:
    """A multiplier whose subnormal results become zero once they are rounded, though its flags are right: one verdict."""
    from softfloat.commands.vectors import render_report

    case = resolve("mul", fmt)
    operands, (right, flags) = rows(case)
    tiny = np.asarray(bits.issubnormal(right, fmt))
    zero = right & case.format.sign_bit if kept else 0
    report = verdict(case, operands, np.where(tiny, zero, right), flags)
    assert set(report.classes) == {"subnormal flushed"}
    assert named(report) == ["subnormal results flushed" + ("" if kept else " to +0")]
    assert report.findings[0].share == 1
    assert "No known mistake" not in printed(render_report(report))


def printed(report: object) -> str:
    import io

    from rich.console import Console

    console = Console(width=200, record=True, file=io.StringIO())
    console.print(report)
    return console.export_text()


def test_underflow_judged_by_the_delivered_result() -> None:
    """0x00800000 * 0x3F7FFFFF rounds to the smallest normal number, and is tiny (IEEE 754-2019 7.5): cvfpu issue 94's rows."""
    case = resolve("f32_mul")
    a = np.array([0x00800000, 0x00800000, 0x00FFFFFF, 0x3F800000, 0x00800001], np.uint32)
    b = np.array([0x3F7FFFFF, 0xBF7FFFFF, 0x3F000000, 0x3F800001, 0x3F000001], np.uint32)
    right, flags = case.run([a, b])
    wrong = np.array([3, 3, 3, 0, 3], np.uint8)
    assert flags.tolist() == wrong.tolist()
    inexact = flags & Flags.INEXACT != 0
    delivered = np.where(inexact & (right << 1 >> 24 == 0), 3, flags & 1)
    report = verdict(case, [a, b], right, delivered)
    assert report.mismatches == 3
    assert "UNDERFLOW by the delivered result" in named(report)
    assert "no UNDERFLOW" not in named(report)  # the last row has it


def test_a_sticky_bit_that_alignment_drops_is_a_class_of_its_own() -> None:
    """Of bfloat16 addition, results alone and with the flags that come of it: not double rounding through float64."""
    case = resolve("add", "bfloat16")
    operands, right = rows(case)
    dropped = Unit(alignment="no alignment sticky, 2 guard bits")
    results, flags = dropped.run(case, operands)
    assert flags is not None
    for raised in (flags, right[1]):
        report = verdict(case, operands, results, raised)
        assert named(report) == ["no alignment sticky, 2 guard bits"]
        assert report.findings[0].result_share == 1
    one, far = np.array([0x3F80], np.uint16), np.array([0x3B01], np.uint16)  # 1 + (2^-9 + 2^-16): the last bit decides
    codes, raised = dropped.run(case, [one, far])
    assert codes.tolist() == [0x3F80]
    assert raised is not None
    assert raised.tolist() == [1]
    assert case.run([one, np.array([0x3B81], np.uint16)])[0].tolist() == [0x3F81]
    assert dropped.run(case, [one, np.array([0x3B81], np.uint16)])[0].tolist() == [0x3F80]


@pytest.mark.parametrize("length", [1, 3])
def test_sums_step_by_step(length: int) -> None:
    """The running sum of a multiply-accumulate unit, with NaNs, infinities and zeros among its operands."""
    case = resolve("vecdot", "bfloat16", accumulator="fma('float32')", length=length, addend=True)
    operands, right = rows(case, 3000)
    results, flags = Unit(alignment="no alignment sticky, 3 guard bits").run(case, operands)
    special = np.asarray(bits.isnan(right[0], "float32")) | np.asarray(bits.isinf(right[0], "float32"))
    assert (results[special] == right[0][special]).all()
    report = verdict(case, operands, results, flags, first=0)
    assert report.mismatches > 100
    assert named(report) == ["no alignment sticky, 3 guard bits"]


def test_the_exponent_of_a_result_that_is_too_large_wraps() -> None:
    """2^15 * 2^15 in half has exponent field 45, of which five bits are 13."""
    case = resolve("mul", "float16")
    codes, _ = Unit(overflow="exponent wraps").run(case, [np.array([0x7800], np.uint16), np.array([0x7801], np.uint16)])
    assert codes.tolist() == [13 << 10 | 1]


def test_toward_negative_sums_of_misread_operands_keep_their_sign() -> None:
    case = resolve("add", "float8_e4m3fn", environment=Environment(rounding="toward_negative"))
    a, b = np.array([0x01], np.uint8), np.array([0x81], np.uint8)
    for name in ("subnormals halved", "hidden 1 in subnormals"):
        assert Unit(operands=name).run(case, [a, b])[0].tolist() == [0x80]
