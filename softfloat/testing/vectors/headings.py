"""The first line of a file of vectors: what the rows are, so that options need not say it again.

>>> from softfloat.testing.vectors.operations import resolve
>>> line = heading(resolve("mul", "bfloat16", environment=Environment(rounding="toward_zero")))
>>> line
'# softfloat {"operation": "mul", "format": "bfloat16", "environment": {"rounding": "toward_zero"}}'
>>> case_from(line).title
'mul bfloat16, toward_zero'

Berkeley TestFloat's tools know no such line: testfloat_ver reads rows alone, testfloat_gen writes one where `-prefix` gives it.
"""

from __future__ import annotations

import json
from typing import Any

from softfloat.blocks import BlockFormat
from softfloat.descriptions import (
    block_format_from,
    described_block_format,
    described_environment,
    described_format,
    environment_from,
    format_from,
)
from softfloat.environments import Environment
from softfloat.formats import Format
from softfloat.testing.vectors.block_operations import QUANTIZE
from softfloat.testing.vectors.columns import Number
from softfloat.testing.vectors.expressions import parse_accumulator
from softfloat.testing.vectors.operations import IN_BLOCKS, STREAM, Case, resolve

__all__ = ["COMMENTS", "MARK", "case_from", "heading"]

COMMENTS = (b"#", b"//")
"""How a first line begins that is no row; one that others wrote may say anything."""
MARK = "# softfloat "
"""How one begins that says what the rows are."""
KEYS = ("operation", "format", "to", "environment", "exact", "accumulator", "length", "addend", "rule", "tensor_scale")


def heading(case: Case) -> str:
    """The line, without its end.

    Raises
    ------
    ValueError
        If the accumulator is no call of a preset, or the environment has settings that are not stored.
    """
    sums = case.accumulator is not None
    found: dict[str, Any] = {"operation": STREAM if case.stream else case.operation.name}
    if case.blocks is not None:
        formats = [described_block_format(x) for x in (case.blocks.format, case.blocks.second)]
        found["format"] = formats if formats[0] != formats[1] else formats[0]
    else:
        numbers = [_described(x) for x in (case.source, case.second)]
        found["format"] = numbers if numbers[0] != numbers[1] else numbers[0]
    if case.operation.name == "convert" or sums:
        found["to"] = _described(case.target)
    settings = described_environment(case.environment)
    if settings != default_settings(case.operation.name):
        found["environment"] = settings
    if case.operation.exact and not case.exact:
        found["exact"] = False
    if sums:
        found |= {"accumulator": repr(case.accumulator), "length": case.length}
        if parse_accumulator(found["accumulator"]) != case.accumulator:
            raise ValueError(f"accumulator {case.accumulator!r} is no call of a preset: the first line cannot hold it")
        if case.addend and not case.stream:
            found["addend"] = True
    if case.blocks is not None:
        found |= {
            "rule": case.blocks.rule,
            "tensor_scale": case.blocks.tensor_scale,
            "special": dict(case.blocks.special) or None,
        }
    return MARK + json.dumps({name: x for name, x in found.items() if x is not None})


def default_settings(operation: Any) -> dict[str, Any]:
    """The environment of a line that says none."""
    return described_environment(IN_BLOCKS if operation == QUANTIZE else Environment())


def _described(number: Number) -> Any:
    return number.name if number.format is None else described_format(number.format)


def case_from(line: str) -> Case | None:
    """The case that a first line says; None of one that says nothing of the kind.

    Raises
    ------
    ValueError
        If it begins as `heading`'s do, and what follows is no case.
    """
    if not line.startswith(MARK):
        return None
    try:
        said = json.loads(line.removeprefix(MARK))
    except (ValueError, RecursionError):
        raise ValueError("the first line is no JSON after '# softfloat'") from None
    if not isinstance(said, dict) or not {"operation", "format"} <= set(said) <= {*KEYS, "special"}:
        raise ValueError(f"the first line must have operation and format, and may have {', '.join(KEYS[2:])}, special")
    given = dict(said)
    operation = given.pop("operation")
    blocks = isinstance(operation, str) and operation.startswith("block_")
    given["format"] = _formats(given["format"], blocks)
    if "to" in given:
        given["to"] = _format(given["to"], False)
    settings = given.get("environment", default_settings(operation))
    given["environment"] = environment_from(settings, "environment of the first line")
    try:
        return resolve(operation, **given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the first line describes no rows: {error}") from None


def _formats(said: Any, blocks: bool) -> Any:
    return [_format(x, blocks) for x in said] if isinstance(said, list) else _format(said, blocks)


def _format(said: Any, blocks: bool) -> Format | BlockFormat | str:
    if blocks:
        return block_format_from(said, "format of the first line")
    return said if isinstance(said, str) else format_from(said, "format of the first line")
