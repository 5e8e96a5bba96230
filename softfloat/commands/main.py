"""The command line: `softfloat reproduce`, `softfloat inspect`, `softfloat formats` and `softfloat accumulators`.

Exit status: 0 if all is well, 1 if a verdict fails, 2 for an error in what was asked, 130 after Ctrl-C, 141 if nobody
reads the output.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import softfloat
from softfloat.commands.accumulators import run_accumulators
from softfloat.commands.formats import run_formats
from softfloat.commands.hardware import add_parsers
from softfloat.commands.inspect import run_inspect
from softfloat.commands.output import Parser, exit_status
from softfloat.commands.reproduce import run_reproduce
from softfloat.commands.vectors import add_parsers
from softfloat.environments import Rounding, as_rounding
from softfloat.formats import ROSTER, Format

__all__ = ["main"]


SEED_HELP = "of stochastic rounding, 0 to 2^64 - 1 (default: 0)"


def _format(name: str) -> Format:
    try:
        return Format.from_name(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _rounding(name: str) -> Rounding:
    try:
        return as_rounding(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seed(text: str) -> int:
    try:
        seed = int(text, 0)
    except ValueError:
        seed = -1
    if not 0 <= seed < 2**64:
        raise argparse.ArgumentTypeError(f"must be an integer from 0 to 2^64 - 1, got {text.strip()!r}")
    return seed


def _preset(name: str) -> str:
    from softfloat.accumulators import PRESETS

    if name not in PRESETS:
        raise argparse.ArgumentTypeError(f"unknown accumulator {name.strip()!r}; accepted: {', '.join(PRESETS)}")
    return name


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = Parser(prog="softfloat", description="Bit-exact software floating point for narrow formats.")
    parser.add_argument("--version", action="version", version=f"softfloat {softfloat.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    reproduce = commands.add_parser(
        "reproduce",
        help="check the numbers that tutorials publish about half precision",
        description="Runs the numeric claims of public tutorials about half precision on the emulator and compares "
        "published, exact and emulated values; then measures errors of long sums beside the bounds of error analysis. "
        "Exit status 1 if the emulator disagrees with an exact value or a bound does not hold.",
    )
    seed_help = SEED_HELP.replace("rounding", "rounding and of random vectors")
    reproduce.add_argument("--seed", type=_seed, default=0, metavar="N", help=seed_help)
    reproduce.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    plot_help = "draw the running sums; .png, .svg or .pdf (needs matplotlib)"
    reproduce.add_argument("--plot", metavar="FILE.png", help=plot_help)
    plots_help = "draw everything: the running sums and each measurement of long sums, as .png files in that folder"
    reproduce.add_argument("--plots", metavar="FOLDER", help=plots_help)
    reproduce.set_defaults(run=run_reproduce)

    inspect = commands.add_parser(
        "inspect",
        help="show the fields, value and neighbours of a code or number",
        description="Shows sign, exponent, fraction, value, class, neighbours and spacing of codes (0x3c00, 0b0011) "
        "or of numbers (0.1, 1e-8, 1/3, -0.0, inf, nan, 0x1.8p-3) encoded in a format.",
        epilog=f"formats: {', '.join(ROSTER)}",
    )
    inspect.add_argument("values", nargs="+", metavar="VALUE", help="a code or a number")
    inspect.add_argument("--format", "-f", type=_format, default="float16", metavar="NAME", help="default: float16")
    rounding = f"of numbers: {', '.join(mode.name.lower() for mode in Rounding)} (default: nearest_even)"
    inspect.add_argument("--rounding", "-r", type=_rounding, default="nearest_even", metavar="MODE", help=rounding)
    inspect.add_argument("--seed", type=_seed, default=0, metavar="N", help=SEED_HELP)
    inspect.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    inspect.set_defaults(run=run_inspect)

    formats = commands.add_parser(
        "formats",
        help="compare formats: layout, range, precision, special values",
        description="Compares formats: fields, precision, exponents, largest and smallest numbers, how infinities and "
        "NaN are coded.",
        epilog=f"formats: {', '.join(ROSTER)}",
    )
    names = "these alone (default: all named formats)"
    formats.add_argument("--format", "-f", type=_format, nargs="+", action="extend", metavar="NAME", help=names)
    formats.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    formats.set_defaults(run=run_formats)

    accumulators = commands.add_parser(
        "accumulators",
        help="list how dot products can be summed, and where each rule comes from",
        description="Lists the presets of softfloat.accumulators: how to call them, what they mean, and their sources. "
        "With a name, what that one does, and for hardware its table.",
    )
    accumulators.add_argument("name", nargs="?", type=_preset, metavar="NAME", help="one preset, such as tensor_core")
    accumulators.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    accumulators.set_defaults(run=run_accumulators)
    add_parsers(commands)
    add_parsers(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; default those of the process.

    Returns
    -------
    int
        The exit status.
    """

    def run(arguments: Sequence[str]) -> int:
        options = build_parser().parse_args(arguments)
        return int(options.run(options))

    return exit_status("softfloat", run, argv)


if __name__ == "__main__":
    sys.exit(main())
