"""Results held against the right ones: which differ, by how much, and of which kind the difference is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from softfloat import bits
from softfloat.bits.operations import ELEMENTWISE
from softfloat.status import Flags
from softfloat.testing.vectors.columns import Number
from softfloat.testing.vectors.operations import Case

__all__ = ["CLASSES", "NAN_MODES", "Comparison", "classify", "distances", "is_nan", "kappa_of", "wrong_results"]

Codes = np.ndarray[Any, Any]
Pair: TypeAlias = tuple[Codes, Codes | None]

NAN_MODES = ("any", "canonical", "payload")
CODE_OPERATIONS = {row.name for row in ELEMENTWISE.values() if row.result == "float" and not row.flags}
"""Operations on codes: their NaNs have the payloads of operands, and nothing else will do."""

CLASSES = (
    "flags only",
    "NaN payload",
    "signalling NaN",
    "number instead of NaN",
    "NaN instead of number",
    "overflow",
    "sign of zero",
    "sign",
    "subnormal flushed",
    "subnormal",
    "one ulp",
    "several ulps",
    "invalid integer",
    "integer off by one",
    "integer",
    "answer",
)
"""Kinds of mismatch; the first that fits counts."""


def is_nan(codes: Codes, number: Number) -> Codes:
    """Which codes are NaN."""
    if number.kind == "float64":
        return np.isnan(codes.view(np.float64))
    if number.format is None:
        return np.zeros(codes.shape, bool)
    return np.asarray(bits.isnan(codes, number.format))


def is_signalling(codes: Codes, number: Number) -> Codes:
    """Which codes are signalling NaNs."""
    if number.kind == "float64":
        return np.isnan(codes.view(np.float64)) & (codes & np.uint64(1 << 51) == 0)
    if number.format is None:
        return np.zeros(codes.shape, bool)
    return np.asarray(bits.issnan(codes, number.format))


def canonical_nan(number: Number) -> int:
    """The NaN that results have under `nan="canonical"`."""
    return 0x7FF8 << 48 if number.format is None else number.format.nan_code


def wrong_results(right: Codes, results: Codes, number: Number, nan: str) -> Codes:
    """Where codes differ, NaNs compared as `nan`, one of `NAN_MODES`, says."""
    wrong: Codes = results != right
    if nan == "any":
        candidates = np.flatnonzero(wrong)
        if candidates.size:
            r, e = results[candidates], right[candidates]
            same = is_nan(r, number) & is_nan(e, number) & ~is_signalling(r, number)
            wrong[candidates[same]] = False
    elif nan == "canonical":
        expected = is_nan(right, number)
        if expected.any():
            wrong[expected] = results[expected] != canonical_nan(number)
    return wrong


@dataclass(frozen=True)
class Comparison:
    """What counts as different.

    Attributes
    ----------
    case : Case
    flags : {"exact", "subset", "ignore"}
        "subset": flags may be missing, but not be raised without reason.
    nan : {"any", "canonical", "payload"}
        "any": one quiet NaN is as good as another; "canonical": NaNs must be the format's positive quiet one;
        "payload": to the bit as the environment's NaN policy has it.
    """

    case: Case
    flags: str
    nan: str

    def __call__(self, expected: Pair, found: Pair) -> tuple[Codes, Codes]:
        """Where results differ, and where flags do."""
        (right, right_flags), (results, flags) = expected, found
        number = self.case.target
        loose = number.kind in ("float", "float64") and self.case.operation.name not in CODE_OPERATIONS
        wrong = wrong_results(right, results, number, self.nan if loose else "payload")
        if self.flags == "ignore" or flags is None or right_flags is None:
            return wrong, np.zeros(wrong.shape, bool)
        return wrong, (flags & ~right_flags != 0) if self.flags == "subset" else flags != right_flags


def ranks(codes: Codes, number: Number) -> Codes:
    """Places of codes among the numbers of their type, in order, as uint64; both zeros have the same."""
    middle = np.uint64(1 << 63)
    if number.kind in ("unsigned", "bool") or (number.format is not None and not number.format.signed):
        return codes.astype(np.uint64)
    if number.kind == "signed":
        return codes.view(np.dtype(f"i{codes.dtype.itemsize}")).astype(np.int64).view(np.uint64) ^ middle
    top = codes.dtype.type(number.bits - 1)
    magnitude = (codes & codes.dtype.type((1 << (number.bits - 1)) - 1)).astype(np.uint64)
    return np.where(codes >> top != 0, middle - magnitude, middle + magnitude)


def distances(right: Codes, results: Codes, number: Number) -> Codes:
    """Numbers of steps from one to the other, as uint64. Between numbers: a NaN's place means nothing."""
    first, second = ranks(right, number), ranks(results, number)
    return np.where(first > second, first - second, second - first)


def kappa_of(right: Codes, results: Codes, number: Number) -> Codes:
    """Distances as IEEE P3109 declares them, as float64: numbers of value steps; NaN for one NaN, infinity for one infinity.

    Both zeros are one value; so are NaNs. Steps beyond 2^53 are rounded.
    """
    steps = distances(right, results, number).astype(np.float64)
    nan, found_nan = is_nan(right, number), is_nan(results, number)
    if number.kind == "float64" or (number.format is not None and number.format.infinities):
        infinite, found_infinite = (_is_infinite(x, number) for x in (right, results))
        steps = np.where((infinite | found_infinite) & (steps > 0), np.inf, steps)
    return np.where(nan & found_nan, 0.0, np.where(nan | found_nan, np.nan, steps))


def _is_infinite(codes: Codes, number: Number) -> Codes:
    if number.format is None:
        return np.isinf(codes.view(np.float64))
    return np.asarray(bits.isinf(codes, number.format))


def classify(case: Case, right: Codes, right_flags: Codes, results: Codes, wrong: Codes) -> Codes:
    """The kind of each mismatch, as an index into `CLASSES`."""
    number = case.target
    conditions: list[tuple[str, Codes]] = [("flags only", ~wrong)]
    if number.kind in ("bool", "flags") or case.operation.result == "class":
        fallback = "answer"
    elif number.kind in ("signed", "unsigned"):
        off = distances(right, results, number) == 1
        invalid = right_flags & Flags.INVALID != 0
        conditions += [("invalid integer", invalid), ("integer off by one", off)]
        fallback = "integer"
    else:
        fallback = "several ulps"
        conditions += _float_conditions(number, right, results)
    index = [CLASSES.index(name) for name, _ in conditions]
    return np.select([condition for _, condition in conditions], index, CLASSES.index(fallback))


def _float_conditions(number: Number, right: Codes, results: Codes) -> list[tuple[str, Codes]]:
    nan, found_nan = is_nan(right, number), is_nan(results, number)
    sign = (1 << (number.bits - 1)) if number.format is None else number.format.sign_bit
    keep = right.dtype.type(((1 << number.bits) - 1) & ~sign)
    size, found_size = right & keep, results & keep
    if number.format is None:
        infinite, found_infinite = (np.isinf(x.view(np.float64)) for x in (right, results))
        tiny, found_tiny = ((x > 0) & (x < 1 << 52) for x in (size, found_size))
        zero, found_zero = size == 0, found_size == 0
    else:
        infinite, found_infinite = (np.asarray(bits.isinf(x, number.format)) for x in (right, results))
        tiny, found_tiny = (np.asarray(bits.issubnormal(x, number.format)) for x in (right, results))
        zero, found_zero = (np.asarray(bits.iszero(x, number.format)) for x in (right, results))
    return [
        ("signalling NaN", found_nan & nan & is_signalling(results, number)),
        ("NaN payload", found_nan & nan),
        ("number instead of NaN", nan),
        ("NaN instead of number", found_nan),
        ("overflow", infinite != found_infinite),
        ("sign of zero", zero & found_zero),
        ("sign", size == found_size),
        ("subnormal flushed", tiny & found_zero),
        ("subnormal", tiny | found_tiny),
        ("one ulp", distances(right, results, number) == 1),
    ]
