"""Options that say which operation a file of vectors is of, and what commands say of such files."""

from __future__ import annotations

import argparse
import os
import stat
from typing import Any

from softfloat.blocks import SCALE_RULES
from softfloat.commands.arguments import choice, number, positive
from softfloat.commands.output import CommandError, one_line
from softfloat.environments import Environment, InfiniteInput, Overflow, Rounding, Tininess, as_member
from softfloat.kernels.spec import NAN_POLICIES
from softfloat.testing.vectors.block_operations import QUANTIZE, SPECIAL
from softfloat.testing.vectors.operations import TESTFLOAT_NAME, Case, as_rounding_mode, resolve

__all__ = [
    "add_block_options",
    "add_case_options",
    "add_rounding_options",
    "asked",
    "case_of",
    "headed",
    "refused",
    "rounding_settings",
    "size_of",
]


def add_case_options(parser: argparse.ArgumentParser) -> None:
    """Options that say what is computed, as `case_of` reads them."""
    add = parser.add_argument
    add(
        "--format",
        "-f",
        metavar="NAME",
        help="of the operands, or block format; vecdot takes two, with a comma between",
    )
    add("--to", metavar="NAME", help="what convert converts to; what vecdot's result is in")
    add("--rounding", "-r", metavar="MODE", help=f"{_names(Rounding)} (default: nearest_even), or TestFloat's names")
    add_rounding_options(parser, "infinity; of block_quantize saturate")
    add("--daz", action="store_true", help="subnormal operands count as zero")
    add("--nan-policy", metavar="NAME", help=f"{', '.join(NAN_POLICIES)} (default: canonical)")
    exact = "raise inexact when rounding to integers (default; not with TestFloat's names)"
    add("--exact", action=argparse.BooleanOptionalAction, default=None, help=exact)
    accumulator = 'how vecdot sums, such as amp("half"), tensor_core("H100"), fma("float16")'
    add("--accumulator", metavar="PRESET", help=accumulator)
    add("--length", type=positive, metavar="K", help="products of vecdot (default: 16)")
    add("--addend", action="store_true", help="vecdot has an operand c, where sums start")
    add_block_options(parser)


def add_rounding_options(parser: argparse.ArgumentParser, overflow: str = "infinity") -> None:
    """Options that say how results are rounded, beside --rounding, as `rounding_settings` reads them."""
    add = parser.add_argument
    add("--overflow", metavar="RULE", help=f"{_names(Overflow)} (default: {overflow})")
    add("--tininess", metavar="WHEN", help=f"{_names(Tininess)} rounding (default: after)")
    add(
        "--infinite-input",
        metavar="RULE",
        help=f"what an infinity becomes when it is converted: {_names(InfiniteInput)}",
    )
    add("--ftz", action="store_true", help="subnormal results become zero")
    add("--sr-bits", type=positive, metavar="N", help="width of the random numbers of stochastic rounding")


def rounding_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Settings of an environment that these options give.

    Raises
    ------
    ValueError
        Naming what is accepted.
    """
    settings: dict[str, Any] = {}
    for name, kind in (("overflow", Overflow), ("tininess", Tininess), ("infinite_input", InfiniteInput)):
        if getattr(options, name) is not None:
            settings[name] = as_member(kind, getattr(options, name), name)
    if options.ftz:
        settings["ftz"] = True
    if options.sr_bits is not None:
        settings["sr_bits"] = options.sr_bits
    return settings


def add_block_options(parser: argparse.ArgumentParser) -> None:
    """Options of blocks' scales."""
    add = parser.add_argument
    add("--rule", metavar="RULE", help=f"of blocks' scales: {', '.join(SCALE_RULES)} (default: the format's)")
    add("--tensor-scale", type=number, metavar="X", help="of block formats whose tensor has one, a number of float32")
    choices = "; ".join(f"{name}: {', '.join(values)}" for name, values in SPECIAL.items())
    add("--special", type=choice, action="append", metavar="NAME=VALUE", help=f"special numbers in blocks. {choices}")


def _names(kind: Any) -> str:
    return ", ".join(member.name.lower() for member in kind)


def case_of(operation: str, options: argparse.Namespace) -> Case:
    """The case that options describe."""
    try:
        settings = rounding_settings(options) | {"daz": options.daz}
        if options.rounding is not None:
            settings["rounding"] = as_rounding_mode(options.rounding)
        if options.nan_policy is not None:
            settings["nan"] = options.nan_policy
        if operation == QUANTIZE:
            settings.setdefault("overflow", Overflow.SATURATE)
        formats = options.format
        if formats is not None and "," in formats:
            formats = [name.strip() for name in formats.split(",")]
        return resolve(
            operation,
            formats,
            options.to,
            environment=Environment(**settings),
            exact=options.exact,
            accumulator=options.accumulator,
            length=options.length,
            addend=options.addend,
            rule=options.rule,
            tensor_scale=options.tensor_scale,
            special=None if options.special is None else dict(options.special),
        )
    except (ValueError, TypeError) as error:
        raise CommandError(one_line(str(error))) from None


def asked(options: argparse.Namespace) -> Case | None:
    """The case that --op and the options beside it describe; None where they leave it to the file."""
    if options.op is not None:
        return case_of(options.op, options)
    usual = argparse.ArgumentParser()
    add_case_options(usual)
    given = [name for name, value in vars(usual.parse_args([])).items() if getattr(options, name) != value]
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise CommandError(f"{names} without --op; accepted: --op too, or nothing of a file that says what it holds")
    return None


def headed(options: argparse.Namespace) -> bool:
    """Whether a file that is written has a first line: one under TestFloat's names is what TestFloat's tools read."""
    if options.heading is not None:
        return bool(options.heading)
    return TESTFLOAT_NAME.fullmatch(options.operation) is None


def refused(file: str, doing: str, error: OSError | ValueError) -> CommandError:
    """Why a file cannot be read or written."""
    reason = getattr(error, "strerror", None) or str(error)
    return CommandError(one_line(f"cannot {doing} {file}: {reason}"))


def size_of(file: str) -> int | None:
    """Bytes of rows in a file; None where nobody knows before the end."""
    from softfloat.testing.vectors.files import is_compressed

    try:
        known = file != "-" and stat.S_ISREG(os.stat(file).st_mode) and not is_compressed(file)
        return os.stat(file).st_size if known else None
    except (OSError, ValueError):
        return None
