"""Choices of exported dot products, filled in by number, are those that the engine fills in by name."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import numpy as np
import pytest
from softfloat.kernels import dot_state, dots, entries, rules

from softfloat import ROSTER, bits
from softfloat.accumulators import PRESETS, Accumulator, Reduction, Stage
from softfloat.engine import elementwise, programs, units
from softfloat.engine.native import Job
from softfloat.export.library import request
from softfloat.testing.vectors.operations import parse_accumulator

CALLED = {
    "kind": "length.kind",
    "block": "length.block",
    "has_addend": "has_c",
    "first": "position",
    "payloads": "1 if carries else 0",
}
"""What an exported dot product says by itself; of all others it has what the engine settles."""

SUMS = (
    *('tensor_core("H100")', 'tensor_core("V100")', 'amp("half")', 'fma("float16")', 'mul_add("float32")', 'exact("float32")'),
    *('pairwise("float16")', 'chunked(4, fma("float16"), "float32")', 'amp("float", mode="aligned")'),
    *('compensated("float32", "kahan")', 'fixed_point(32, -24, "float32")', 'arm_fdot()', 'amd_mfma("CDNA3", "float16")'),
)  # fmt: skip


def assigned() -> dict[str, str]:
    """Field -> the expression that `dot_entry` puts there."""
    found: dict[str, str] = {}
    function = ast.parse(inspect.getsource(entries.dot_entry)).body[0]
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        for target, value in zip(targets, values, strict=False):
            text = ast.unparse(target)
            if text.startswith("choices["):
                name = text.removeprefix("choices[").removesuffix("]")
                found[dot_state.Choices._fields[getattr(entries, name)]] = ast.unparse(value)
    return found


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn"])
def test_leading_powers_are_those_of_the_engine(name: str) -> None:
    fmt, accumulator = ROSTER[name], parse_accumulator('tensor_core("H100")')
    codes = np.arange(2**fmt.bits) if fmt.bits < 16 else np.random.default_rng(1).integers(0, 2**16, 2000)
    values = np.append(
        bits.decode(codes, fmt), [0.0, -0.0, np.inf, np.nan, float(fmt.tiny), float(fmt.smallest_subnormal)]
    )
    with np.errstate(all="ignore"):
        found = [entries.lead(value, float(fmt.tiny), 0.0) for value in values]
    np.testing.assert_array_equal(found, units.leads(values, fmt, accumulator, None))


def test_every_number_is_of_its_field() -> None:
    assert assigned() == CALLED


class Seen(Exception):
    """A loop was called."""


def filled(monkeypatch: pytest.MonkeyPatch, text: str) -> Any:
    """What the engine makes of an accumulator: the choices that its loop is called with."""

    def passed(call: Any) -> None:
        raise Seen(call.how)

    with monkeypatch.context() as patch:
        patch.setattr(elementwise, "FAST", False)
        patch.setattr(dots, "passed", passed)
        patch.setattr(programs.plain_loop(), "_left", 0)  # Python's few products are done
        with pytest.raises(Seen) as seen:
            bits.matmul(np.full((2, 33), 0x3C00), np.full((33, 2), 0x3C01), "float16", parse_accumulator(text))
    return dot_state.Choices(*map(int, seen.value.args[0]))


@pytest.mark.parametrize("text", SUMS)
def test_what_exports_have_is_what_the_engine_has(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (dot,) = request([], ["float16"], [text], [33]).dots
    job = Job()
    start, _ = job.plan(dot.accumulator, dot.format, dot.output, [33])
    choices = job.integers[start + rules.Plan._fields.index("choices")]
    kept = dot_state.Choices(*job.integers[choices : choices + dot_state.CHOICES])
    how = filled(monkeypatch, text)
    same = [x for x in kept._fields if x not in {*CALLED, "paired", "row_stride", "column_stride"}]
    assert {x: getattr(kept, x) for x in same} == {x: getattr(how, x) for x in same}
    assert (kept.paired, kept.row_stride, kept.column_stride) == (0, 1, 1)


def test_only_scales_of_segments_are_refused() -> None:
    """Every preset is exported, in some format that it takes."""
    for preset in PRESETS.values():
        accumulator = parse_accumulator(preset.example)
        fmt = accumulator.inputs[0] if accumulator.inputs else ROSTER["float16"]
        assert request([], [fmt], [accumulator], [4]).dots
    level = Reduction(Stage("float32"), scaling="scales_added")
    scaled = Accumulator(name="scaled", running=Stage("float32"), segment=4, reduction=(level,))
    with pytest.raises(ValueError, match="has scaling, which no library has"):
        request([], ["float16"], [scaled], [4])
