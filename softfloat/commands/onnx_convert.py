"""`softfloat onnx convert`: a saved float32 model converted to half precision or bfloat16."""

from __future__ import annotations

import argparse
from typing import Any

import softfloat
from softfloat.commands.arguments import format_name
from softfloat.commands.output import CommandError, console, one_line, print_json
from softfloat.files import replacing

__all__ = ["add_parser"]


def add_parser(subcommands: Any) -> None:
    """Add the subcommand to `softfloat onnx`."""
    convert = subcommands.add_parser(
        "convert",
        help="convert a float32 model to half precision or bfloat16",
        description="Converts a model of float32: weights to nearest even, casts where types differ. Prints which nodes stay in "
        "float32 and why, the weights that leave the format's range, and why each cast is there.",
        epilog="recipes: a JSON file of Gaudi's lists; basic, full, bert, unet; paddle, onnxconverter, onnxruntime: these "
        "tools' own rules, clamps of weights included (default: every operator that ONNX has a kernel for; no clamps)",
    )
    convert.add_argument("model", metavar="IN", help="the model; external data are read from its own folder")
    convert.add_argument("output", metavar="OUT", help="where the converted model goes, in one file")
    convert.add_argument(
        "--to", type=format_name, default="float16", metavar="NAME", help="float16 (default) or bfloat16"
    )
    convert.add_argument("--recipe", metavar="NAME", help="what decides which nodes convert, see below")
    convert.add_argument("--convert-io", action="store_true", help="convert inputs and outputs of the model too")
    ops = "types of operators that stay in float32, instead of the recipe's own"
    convert.add_argument("--block-op", nargs="+", action="extend", metavar="TYPE", help=ops)
    nodes = "names of nodes that stay in float32"
    convert.add_argument("--block-node", nargs="+", action="extend", default=[], metavar="NODE", help=nodes)
    clamp = "least and greatest magnitude of weights, instead of the recipe's"
    convert.add_argument("--clamp", nargs=2, type=float, metavar=("LEAST", "GREATEST"), help=clamp)
    convert.add_argument("--json", action="store_true", help="print the report as one JSON document")
    convert.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    try:
        from softfloat.onnx.conversion import convert
    except ImportError as error:
        raise CommandError(one_line(str(error))) from None
    try:
        model, report = convert(
            options.model,
            options.to,
            options.recipe,
            keep_io_types=not options.convert_io,
            op_block_list=options.block_op,
            node_block_list=options.block_node,
            clamp=options.clamp,
        )
        data = model.SerializeToString()
    except OSError as error:
        name = error.filename if error.filename is not None else options.model
        raise CommandError(f"cannot read {name}: {error.strerror or one_line(str(error))}") from None
    except ValueError as error:
        raise CommandError(one_line(str(error))) from None
    try:
        with replacing(options.output) as file:
            file.write(data)
    except OSError as error:
        raise CommandError(f"cannot write {options.output}: {error.strerror or error}") from None
    if options.json:
        print_json({"version": softfloat.__version__, "output": options.output, "report": report})
    else:
        console().print(report)
    return 0
