"""ONNX's own backend node tests, which the installed onnx makes, run through the evaluator; and the tables of docs/onnx.md.

    PYTHONPATH=tests/helpers python -m onnx_cases

writes those tables.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from softfloat import Format, bfloat16
from softfloat.accumulators import Accumulator, fma
from softfloat.onnx import KINDS, OPERATORS, Evaluator, UnemulatedOperatorError
from softfloat.onnx.graphs import element_of
from softfloat.onnx.tensors import NARROW

PAGE = Path(__file__).parents[2] / "docs" / "onnx.md"


def as_the_data(fmt: Format) -> Accumulator:
    """How the sums came about that the expected outputs hold: NumPy adds half numbers in float32, ml_dtypes bfloat16 ones in bfloat16."""
    return fma("bfloat16") if fmt == bfloat16 else fma("float32")


AS_THE_DATA: dict[str, Any] = {"inner": "format", "reduction": as_the_data}


@lru_cache(maxsize=1)
def cases() -> dict[str, Any]:
    """Every case, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of dividing by zero, in making the data
        import onnx.backend.test.case.node as made

        return {case.name: case for case in made.collect_testcases(None)}


def elements(case: Any) -> set[int]:
    """Element types of a case's inputs and outputs."""
    graph = case.model.graph
    return {element_of(value.type) for value in [*graph.input, *graph.output]}


def narrow_cases() -> dict[str, Any]:
    """Those that take or make numbers narrower than float32."""
    return {name: case for name, case in cases().items() if elements(case) & set(NARROW)}


def single_cases() -> dict[str, Any]:
    """The others that take or make float32."""
    found = {name: case for name, case in cases().items() if onnx.TensorProto.FLOAT in elements(case)}
    return {name: case for name, case in found.items() if name not in narrow_cases()}


def plain(x: Any) -> Any:
    """A value as the evaluator takes and gives it."""
    if isinstance(x, onnx.TensorProto):
        return onnx.numpy_helper.to_array(x)
    if isinstance(x, onnx.SequenceProto):
        return onnx.numpy_helper.to_list(x)
    return onnx.numpy_helper.to_optional(x) if isinstance(x, onnx.OptionalProto) else x


def close(found: Any, wanted: Any, case: Any) -> bool:
    """Whether a value is the expected one, within the case's tolerance."""
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(close(a, b, case) for a, b in zip(found, wanted, strict=True))
    if found is None or wanted is None:
        return found is wanted
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    if found.dtype.kind in "OUSbiu":
        return bool(np.array_equal(found, wanted))
    if found.dtype.kind != "c":
        found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    return bool(np.allclose(found, wanted, rtol=case.rtol, atol=case.atol, equal_nan=True))


def outputs(case: Any, **options: Any) -> list[tuple[list[Any], list[Any]]]:
    """(found, expected) for each data set."""
    evaluator = Evaluator(case.model, **options)
    names = [x.name for x in case.model.graph.input]
    return [
        (evaluator.run(None, dict(zip(names, map(plain, given), strict=False))), [plain(x) for x in wanted])
        for given, wanted in case.data_sets
    ]


@dataclass(frozen=True)
class Verdict:
    """What became of a case: "passed", "refused" with the operator, or "failed"; "left out" if ONNX's own evaluator fails it."""

    outcome: str
    why: str = ""


def passes(case: Any, found: list[tuple[list[Any], list[Any]]]) -> bool:
    """Whether all outputs are the expected ones."""
    return all(
        len(made) == len(wanted) and all(close(a, b, case) for a, b in zip(made, wanted, strict=True))
        for made, wanted in found
    )


def own_evaluator_passes(case: Any) -> bool:
    """Whether ONNX's own evaluator does."""
    names = [x.name for x in case.model.graph.input]
    try:
        evaluator = ReferenceEvaluator(case.model)
        found = [
            (evaluator.run(None, dict(zip(names, map(plain, given), strict=False))), [plain(x) for x in wanted])
            for given, wanted in case.data_sets
        ]
    except Exception:  # of any kind
        return False
    return passes(case, found)


def verdict(case: Any, **options: Any) -> Verdict:
    """Run a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ONNX's own implementations divide by zero
        try:
            if passes(case, outputs(case, **options)):
                return Verdict("passed")
            found = Verdict("failed", case.name)
        except UnemulatedOperatorError as refused:
            found = Verdict("refused", refused.operator)
            if refused.operator not in OPERATORS:
                return found
        return found if own_evaluator_passes(case) else Verdict("left out", case.name)


@lru_cache(maxsize=2)
def verdicts(single: bool) -> dict[str, Verdict]:
    """Of all narrow cases, or of those on float32 with float32 emulated."""
    chosen = single_cases() if single else narrow_cases()
    options = {"emulate_float32": True} if single else AS_THE_DATA
    return {name: verdict(case, **options) for name, case in chosen.items()}


# -- the page --------------------------------------------------------------------------------------------------------


def operators_table() -> str:
    """Every row of the evaluator's table, by kind."""
    lines = ["| operators | what each computes |", "| --- | --- |"]
    for kind, meaning in KINDS.items():
        rows = [row for row in OPERATORS.values() if row.kind == kind]
        lines.append(f"| **{kind}**: {meaning} | |")
        by_stages: dict[str, list[str]] = {}
        for row in rows:
            by_stages.setdefault(row.stages, []).append(row.name)
        lines += [
            f"| {', '.join(names)} | {stages.replace('|', chr(92) + '|')} |" for stages, names in by_stages.items()
        ]
    return "\n".join(lines)


def cases_row(single: bool) -> str:
    """Passed, refused and failed, and the operators refused."""
    found = verdicts(single)
    count = Counter(x.outcome for x in found.values())
    refused = Counter(x.why for x in found.values() if x.outcome == "refused")
    named = ", ".join(f"{name} {number}" for name, number in sorted(refused.items()))
    which = "on float32, in the format float32" if single else "on narrower numbers"
    cells = (which, len(found) - count["left out"], count["passed"], count["refused"], count["failed"], named)
    return f"| {' | '.join(map(str, cells))} |"


def cases_table() -> str:
    """The table of cases."""
    head = (
        f"| cases of onnx {onnx.__version__} | all | passed | refused | failed | refused operators, and their cases |"
    )
    return "\n".join([head, "| --- | --- | --- | --- | --- | --- |", cases_row(False), cases_row(True)])


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, made in (("operators", operators_table()), ("cases", cases_table())):
        start = text.index(f"<!-- {name} -->\n") + len(f"<!-- {name} -->\n")
        text = text[:start] + made + text[text.index("\n<!-- end -->", start) :]
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
