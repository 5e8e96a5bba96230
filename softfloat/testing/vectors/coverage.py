"""What rows reach, and what they do not: bins of `softfloat.testing.vectors.measures`, counted.

>>> from softfloat.testing.vectors.operations import resolve
>>> case = resolve("sqrt", "float8_e4m3fn")
>>> coverage = Coverage(case)
>>> rows = coverage.fill()
>>> len(rows[0]), coverage.empty("rounding"), coverage.reason("rounding", "tie, odd")
(21, ['tie, even', 'tie, odd'], 'a root that ends one bit beyond the last has a square that ends two beyond')
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from softfloat.environments import Rounding
from softfloat.formats import Format
from softfloat.status import Flags
from softfloat.testing.vectors.block_measures import block_dimensions, ladder, measure_blocks, no_such_row
from softfloat.testing.vectors.block_operations import SCALE
from softfloat.testing.vectors.distributions import draw_operands
from softfloat.testing.vectors.files import UNSAID, File, Progress, described, read_vectors
from softfloat.testing.vectors.levels import corners_of
from softfloat.testing.vectors.measures import dimensions, flag_names, followed, measure, products_of_a_step
from softfloat.testing.vectors.operations import Case
from softfloat.testing.vectors.text import Chunk, VectorError

__all__ = ["Coverage", "coverage_of"]

Codes = np.ndarray[Any, Any]

EXHAUSTED = 20
"""Bits of operands up to which all rows are looked at before a bin is called unreachable."""
CODES = 1 << 16  # operands looked at together
SEARCHED = 1 << 19  # operands of random rows that a search for empty bins looks at after the corner rows
POLES = {"div", "log", "log2", "log10", "log1p", "pow", "rsqrt", "reciprocal", "atanh", "logb"}
"""Operations that can raise DIVBYZERO."""


class Coverage:
    """Counts of rows in each bin.

    Attributes
    ----------
    case : Case
    dimensions : list of Dimension
    counts : dict of str to array of int64
        For each dimension, the numbers of rows (of steps, in sums) in its bins.
    rows : int
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.dimensions = dimensions(case) if case.blocks is None else block_dimensions(case)
        self.counts = {x.name: np.zeros(len(x.bins), np.int64) for x in self.dimensions}
        self.rows = 0
        self._searched = ""
        self._whole = case.operand_bits <= EXHAUSTED

    def add(self, operands: Sequence[Codes], results: Codes, flags: Codes | None) -> None:
        """Count some rows."""
        self.rows += len(results)
        for name, places in _measured(self.case, operands, results, flags).items():
            counts = self.counts[name]
            counts += np.bincount(places[places >= 0].ravel(), minlength=len(counts))

    def empty(self, name: str) -> list[str]:
        """The bins of a dimension that no row is in; sets of flags that nothing raises do not count."""
        (bins,) = (x.bins for x in self.dimensions if x.name == name)
        return [
            label
            for label, count in zip(bins, self.counts[name], strict=True)
            if not count and self._asked(name, label)
        ]

    def fillable(self, name: str) -> list[str]:
        """The empty bins of a dimension that are not known to be unreachable."""
        return [label for label in self.empty(name) if not self.unreachable(name, label)]

    def _asked(self, name: str, label: str) -> bool:
        return name != "flags" or label in _ORDINARY

    def reason(self, name: str, label: str) -> str:
        """Why an empty bin cannot be filled, or ""; what was looked at, where a search found nothing."""
        return _impossible(self.case, name, label) or self._searched

    def unreachable(self, name: str, label: str) -> bool:
        """Whether it is known that no row is in a bin: by a rule, or because all rows were looked at."""
        return bool(_impossible(self.case, name, label)) or (self._whole and bool(self._searched))

    def fill(self, seed: int = 0) -> list[Codes]:
        """Operands of rows that fill bins that are empty, a row for each at most; they are counted.

        Corner rows of level 1 are looked at, then random ones; all rows, where operands have few bits.
        """
        wanted = {x.name: self.counts[x.name] == 0 for x in self.dimensions}
        for name, missing in wanted.items():
            labels = next(x.bins for x in self.dimensions if x.name == name)
            missing &= [self._asked(name, label) and not _impossible(self.case, name, label) for label in labels]
        taken: list[list[Codes]] = []
        looked = 0
        for operands in self._candidates(seed):
            if not any(missing.any() for missing in wanted.values()):
                break
            looked += len(operands[0])
            rows = self._choose(operands, wanted)
            if rows.size:
                taken.append([x[rows] for x in operands])
        else:
            number = f"{looked:,}".replace(",", " ")
            self._searched = f"none of all {number} rows" if self._whole else f"none of {number} rows tried"
        if not taken:
            return [np.zeros(column.shape(0), column.dtype) for column in self.case.operands]
        chosen = [np.concatenate(columns) for columns in zip(*taken, strict=True)]
        self.add(chosen, *self.case.run(chosen))
        return chosen

    def _candidates(self, seed: int) -> Iterator[list[Codes]]:
        case = self.case
        width = max(1, sum(column.length or 1 for column in case.operands))
        step = max(1, CODES // width)
        if self._whole:
            for first in range(0, 1 << case.operand_bits, step):
                yield _codes(case, np.arange(first, min(first + step, 1 << case.operand_bits), dtype=np.uint64))
            return
        if case.operation.name == SCALE:
            yield ladder(case)
        rows = corners_of(case, 1)
        for first in range(0, rows.count, step):
            yield rows.operands(np.arange(first, min(first + step, rows.count)))
        for number in range(max(1, SEARCHED // CODES)):
            yield draw_operands(case, "mixed", step, [seed, number])

    def _choose(self, operands: list[Codes], wanted: dict[str, Codes]) -> Codes:
        """Rows that are the first in a bin that is wanted, which then is no more."""
        chosen: set[int] = set()
        found = _measured(self.case, operands, *self.case.run(operands))
        flat = {name: places.reshape(len(operands[0]), -1) for name, places in found.items()}
        for name, places in flat.items():
            missing = wanted[name]
            if not missing.any():
                continue
            hits = (places >= 0) & missing[places]
            _, first = np.unique(places[hits], return_index=True)  # no other row can be the first in a bin
            for row in np.unique(np.nonzero(hits)[0][first]).tolist():
                if not missing[places[row][places[row] >= 0]].any():
                    continue
                chosen.add(row)
                for other, others in flat.items():
                    mine = others[row]
                    wanted[other][mine[mine >= 0]] = False
        return np.array(sorted(chosen), np.int64)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = []
        for dimension in self.dimensions:
            bins = dict(zip(dimension.bins, self.counts[dimension.name].tolist(), strict=True))
            empty = self.empty(dimension.name)
            kept = {label: count for label, count in bins.items() if count or label in empty}
            entry: dict[str, Any] = {"name": dimension.name, "bins": kept, "empty": empty}
            entry["unreachable"] = {
                x: self.reason(dimension.name, x) for x in empty if self.unreachable(dimension.name, x)
            }
            found.append(entry)
        return {"title": self.case.title, "rows": self.rows, "searched": self._searched or None, "dimensions": found}


def _measured(case: Case, operands: Sequence[Codes], results: Codes, flags: Codes | None) -> dict[str, Codes]:
    return (measure if case.blocks is None else measure_blocks)(case, operands, results, flags)


def _codes(case: Case, index: Codes) -> list[Codes]:
    """Rows of all there are."""
    found: list[Codes] = []
    for column in reversed(case.operands):
        mask, parts = np.uint64((1 << column.number.bits) - 1), []
        for _ in range(column.length or 1):
            parts.append((index & mask).astype(column.dtype))
            index = index >> np.uint64(column.number.bits)
        found.insert(0, np.stack(parts[::-1], axis=1).reshape(column.shape(len(index))))
    return found


_ORDINARY = {
    flag_names(int(x))
    for x in (
        0,
        Flags.INEXACT,
        Flags.UNDERFLOW | Flags.INEXACT,
        Flags.OVERFLOW | Flags.INEXACT,
        Flags.INVALID,
        Flags.DIVBYZERO,
    )
}
"""Sets of flags that one operation can raise."""


# -- what no row reaches ---------------------------------------------------------------------------------------------


SUM_TOO_SMALL = "the sum of the largest products is below the largest number"
TINY_EXACT = "terms are multiples of the least subnormal: tiny sums are exact"
ROOTS_INSIDE = "roots are nearer to 1 than their squares"
ROOT_TIES = "a root that ends one bit beyond the last has a square that ends two beyond"
QUOTIENT_TIES = "a quotient that ends one bit beyond the last, times the divisor, has more bits than a dividend"


def _impossible(case: Case, name: str, label: str) -> str:
    """A proof that no row is in a bin, in a few words; or ""."""
    if case.blocks is not None:
        return no_such_row(case, name, label)
    if name == "flags":
        return _no_flags(case, label)
    if case.operation.result == "sum":
        return _no_step(case, name, label) if name != "result" else _no_sum(case, label)
    operation, fmt = case.operation.name, case.target.format
    if fmt is None:
        return ""
    if operation == "sqrt" and _roots_inside(fmt):
        if name == "rounding of subnormals":
            return ROOTS_INSIDE
        if name == "rounding" and label.startswith("tie"):
            return ROOT_TIES
        if name == "result" and label not in ("+ zero", "- zero", "+ normal", "+ infinity", "NaN", "zero"):
            return "roots are not negative" if label[0] == "-" else ROOTS_INSIDE
    rounded = label != "exact"
    if name == "rounding of subnormals" and operation in ("add", "sub") and rounded and fmt.subnormals:
        return TINY_EXACT
    if name == "rounding" and label.startswith("tie") and operation == "div" and fmt.subnormals and fmt.p > 1:
        return QUOTIENT_TIES
    return ""


def _roots_inside(fmt: Format) -> bool:
    """Whether roots stay away from both ends of the range, however they are rounded."""
    least = fmt.emin - fmt.mantissa_bits
    return fmt.p > 2 and least // 2 > fmt.emin and fmt.emax // 2 + 2 < fmt.emax


def _no_flags(case: Case, label: str) -> str:
    fmt, name = case.target.format, case.operation.name
    if label == "DIVBYZERO" and name not in POLES:
        return "only quotients and functions with poles raise it"
    if not case.operation.rounds and label not in ("none", "INVALID"):
        return "the operation does not round"
    if case.operation.result == "sum":
        if "OVERFLOW" in label and not _overflows(case, _formats(case)):
            return SUM_TOO_SMALL
        assert fmt is not None
        if "UNDERFLOW" in label and _exact_products(case) and all(_exact_below(case, x) for x in _formats(case)):
            return TINY_EXACT
        return ""
    plain = fmt is not None and fmt.subnormals and not case.environment.ftz and not case.environment.daz
    if "UNDERFLOW" in label and name in ("add", "sub") and plain:
        return TINY_EXACT
    if name == "sqrt" and fmt is not None and _roots_inside(fmt) and ("UNDERFLOW" in label or "OVERFLOW" in label):
        return ROOTS_INSIDE
    if "OVERFLOW" in label and fmt is None:
        return "integers that do not fit are INVALID"
    if "UNDERFLOW" in label and fmt is None:
        return "integers have no range below them"
    return ""


def _no_step(case: Case, name: str, label: str) -> str:
    """What no step of a sum does."""
    how = case.accumulator
    assert how is not None
    running = how.running.format
    alone = products_of_a_step(case) == 1 and not case.addend
    if (
        alone
        and name in ("cancels at step", "cancels to zero at step", "carry at step")
        and label in ("0", "+ 0", "- 0")
    ):
        return "the first step has a single term"
    if name == "overflow at step" and not _overflows(case, [running]):
        return SUM_TOO_SMALL
    tiny = _exact_below(case, running)
    if name == "underflow at step" and tiny and _exact_products(case):
        return TINY_EXACT
    if name == "rounding of subnormals" and tiny:
        if label != "exact":
            return TINY_EXACT
        if not case.addend and _least_term(case) >= running.emin:
            return "terms are multiples of a normal number"
    down = case.environment.rounding is Rounding.TOWARD_NEGATIVE or how.running.rounding is Rounding.TOWARD_NEGATIVE
    if name == "negative zero at step" and tiny and not down:
        if products_of_a_step(case) > 1:
            return "an exact sum of several terms is +0 where it is zero"
        if not case.addend:
            return "a sum that starts at +0 stays there"
    return ""


def _no_sum(case: Case, label: str) -> str:
    """Which results no sum has."""
    fmt = case.target.format
    assert fmt is not None
    if case.addend or len(_formats(case)) > 1:
        return ""
    if not _overflows(case, [fmt]) and label.endswith(" largest"):
        return SUM_TOO_SMALL
    low = {
        "least subnormal": fmt.emin - fmt.mantissa_bits,
        "subnormal": fmt.emin - 1,
        "largest subnormal": fmt.emin - fmt.mantissa_bits,
    }
    low["least normal"] = fmt.emin
    if low.get(label[2:], 1 << 20) < _least_term(case):
        return "terms are multiples of a larger number"
    if label == "- zero" and followed(case):
        return _no_step(case, "negative zero at step", "")
    return ""


def _formats(case: Case) -> list[Format]:
    """Of all roundings of a sum."""
    how, fmt = case.accumulator, case.target.format
    assert how is not None
    assert fmt is not None
    stages = [how.running, how.product, how.store, *(y for x in how.reduction for y in (x.running, x.store))]
    return list(dict.fromkeys([*(x.format for x in stages if x is not None), fmt]))


def _overflows(case: Case, formats: Sequence[Format]) -> bool:
    """Whether a sum can pass the largest number of one of these formats."""
    assert case.length is not None
    a, b = case.formats
    # c may be anything; a sum that is rounded on its way is at most twice the exact one
    return case.addend or any(2 * case.length * a.max * b.max >= fmt.max for fmt in formats)


def _least_term(case: Case) -> int:
    """The exponent of which all terms of a sum are multiples; c may be a smaller one."""
    how = case.accumulator
    assert how is not None
    if how.product is not None:
        return how.product.format.emin - how.product.format.mantissa_bits
    least = sum(fmt.emin - fmt.mantissa_bits for fmt in case.formats)
    stored = how.store.format if how.store is not None else None
    return least if stored is None else min(least, stored.emin - stored.mantissa_bits)


def _exact_products(case: Case) -> bool:
    """Whether products are exact, but for overflow and the bits beyond the last."""
    how = case.accumulator
    assert how is not None
    factors = sum(fmt.emin - fmt.mantissa_bits for fmt in case.formats)
    return how.product is None or factors >= how.product.format.emin - how.product.format.mantissa_bits


def _exact_below(case: Case, fmt: Format) -> bool:
    """Whether tiny sums of terms are exact in a format."""
    how = case.accumulator
    assert how is not None
    flushes = case.environment.ftz or case.environment.daz
    return not flushes and fmt.subnormals and _least_term(case) >= fmt.emin - fmt.mantissa_bits


# -- files -----------------------------------------------------------------------------------------------------------


def coverage_of(
    file: File | Iterable[Chunk], case: Case | None = None, *, flags: bool = False, progress: Progress | None = None
) -> Coverage:
    """What the rows of a file reach.

    Parameters
    ----------
    file : path, "-", binary stream, or iterable of Chunk
        As `read_vectors` takes it, or what it yields. Results and flags are the file's.
    case : Case, optional
        By default what the file says by its first line.
    flags : bool
        Whether rows must have flags; if not, they may.
    progress : callable, optional
        As of `read_vectors`.

    Raises
    ------
    VectorError
        For malformed rows, and files without rows are no error; for one that does not say what it holds.
    OSError
        If the file cannot be read.
    """
    is_file = isinstance(file, (str, bytes)) or hasattr(file, "read") or hasattr(file, "__fspath__")
    if case is None and is_file:
        file, case, _, _, trouble = described(file)  # type: ignore[arg-type]
        if case is None:
            raise VectorError(trouble or UNSAID)
    if case is None:
        raise ValueError("case must be given for rows that come from no file")
    found = Coverage(case)
    chunks: Any = read_vectors(file, case, flags=flags, progress=progress) if is_file else file  # type: ignore[arg-type]
    for chunk in chunks:
        found.add(chunk.operands, chunk.results, chunk.flags)
    return found
