"""`softfloat identify --scales`: which rule made the scales in a file."""

from __future__ import annotations

import argparse
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

import softfloat
from softfloat.blocks import BlockFormat
from softfloat.commands.cases import refused
from softfloat.commands.output import FAILED, CommandError, console, one_line, print_json
from softfloat.markup import grouped

if TYPE_CHECKING:
    from rich.console import RenderableType

    from softfloat.testing.identification.scales import ScaleFit, ScaleIdentification

__all__ = ["identify_scales", "render_scales"]

Codes = np.ndarray[Any, Any]
SHOWN = 3


def identify_scales(options: argparse.Namespace) -> int:
    """Run the command; 0 if a rule explains every scale, 1 if none does."""
    from softfloat.testing.identification import scales

    if options.format is None:
        raise CommandError("--scales needs --format, a block format such as mxfp4")
    try:
        fmt = BlockFormat.from_name(options.format)
        x, codes, tensor = _read(options.scales, fmt)
        known: dict[str, Any] = {"axis": options.axis, "block": options.block}
        given = options.tensor_scale if tensor is None else tensor
        if given is not None:
            known["tensor_scale"] = given
        found = scales.identify_scales(x, codes, fmt, **known)
    except OSError as error:
        raise refused(options.scales, "read", error) from None
    except (ValueError, TypeError) as error:
        raise CommandError(one_line(str(error))) from None
    if options.json:
        print_json({"version": softfloat.__version__, "file": options.scales, **found.as_dict()})
    else:
        console().print(render_scales(found))
    return 0 if found.fits else FAILED


def _read(file: str, fmt: BlockFormat) -> tuple[Codes, Codes, float | None]:
    """Numbers, codes of scales, and the tensor's scale: of an archive with x and scales, or of rows of `block_scale`."""
    from softfloat.testing.vectors.files import read_vectors
    from softfloat.testing.vectors.operations import resolve

    arrays = _archive(file)
    if arrays is not None and "scales" in arrays:
        if "x" not in arrays:
            raise CommandError(
                one_line(f"{file} has no array x; accepted: x, scales, and tensor_scale where there is one")
            )
        scales = arrays["scales"]
        if scales.dtype.kind not in "ui" and scales.dtype.itemsize == fmt.scale.dtype.itemsize:
            scales = scales.view(fmt.scale.dtype)
        tensor = arrays.get("tensor_scale")
        return arrays["x"], scales, None if tensor is None else float(tensor.reshape(-1)[0])
    case = resolve("block_scale", fmt)
    chunks = list(read_vectors(file, case, flags=False))
    if not chunks:
        raise CommandError(one_line(f"{file} has no rows"))
    x = np.concatenate([chunk.operands[0] for chunk in chunks]).view(np.float32)
    return x, np.concatenate([chunk.results for chunk in chunks]).reshape(-1, 1), None


def _archive(file: str) -> dict[str, Codes] | None:
    """The arrays of an archive; None of another file. Nothing is unpickled."""
    if file == "-" or not zipfile.is_zipfile(file):
        return None
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files if name in ("x", "scales", "tensor_scale")}
    except (ValueError, OSError, zipfile.BadZipFile, KeyError, EOFError) as error:
        raise CommandError(one_line(f"cannot read {file}: {error}")) from None


def render_scales(found: ScaleIdentification) -> RenderableType:
    """What was found, for a rich console."""
    from rich.console import Group
    from rich.text import Text

    total = sum(found.blocks.values())
    kinds = ", ".join(f"{name} {grouped(count)}" for name, count in found.blocks.items() if count)
    parts: list[RenderableType] = [Text(f"{grouped(total)} blocks of {found.format.name}: {kinds}"), Text()]
    if not found.fits:
        parts.append(Text("no rule explains every scale", "bold red"))
    elif len(found.fits) == 1:
        parts.append(Text("this rule explains every scale", "green"))
    else:
        parts.append(Text("each of these explains every scale", "green"))
    for fit in found.fits or found.nearest:
        parts += _described(fit)
    for entry in found.undecided:
        codes = ", ".join(f"{name} {code:#04x}" for name, code in entry["codes"].items())
        parts.append(Text(f"a block whose largest magnitude is {entry['amax']} tells them apart: {codes}", "dim"))
    return Group(*parts)


def _described(fit: ScaleFit) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    lines: list[RenderableType] = [
        Padding(
            Text.assemble((str(fit), "bold"), ("" if fit.named else "  (no rule of the table)", "dim")), (0, 0, 0, 2)
        ),
        Padding(Text(fit.meaning, "dim"), (0, 0, 0, 4)),
    ]
    for name, values in fit.open:
        lines.append(Padding(Text(f"{name}: {' or '.join(values)}, these blocks do not tell", "dim"), (0, 0, 0, 4)))
    if fit.mismatches:
        wrong = ", ".join(f"{name} {grouped(count)}" for name, count in fit.wrong.items() if count)
        lines.append(Padding(Text(f"wrong on {grouped(fit.mismatches)} blocks: {wrong}"), (0, 0, 0, 4)))
    for example in fit.examples[:SHOWN]:
        expected = "no scale" if example["expected"] is None else f"{example['expected']:#04x}"
        place = ", ".join(map(str, example["block"]))
        text = f"block [{place}], largest magnitude {example['amax']}: {example['found']:#04x}, and by this rule {expected}"
        lines.append(Padding(Text(text), (0, 0, 0, 4)))
    return lines
