"""Models of float32 converted to half or bfloat16: which nodes, which weights, and a cast wherever the types of an edge differ.

>>> from onnx import TensorProto, helper
>>> x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
>>> graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"], name="exp")], "graph", [x], [y])
>>> model, report = convert(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), to="float16")
>>> [node.op_type for node in model.graph.node]
['Cast', 'Exp', 'Cast']
>>> [cast.reason for cast in report.casts]
["input 'x' stays float32, and Exp 'exp' takes float16", "output 'y' stays float32"]
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

import onnx
import onnx.inliner
from onnx import ModelProto

from softfloat.checks import check_kind
from softfloat.formats import Format, check_format
from softfloat.onnx.behaviours import BEHAVIOURS, Behaviour, Weights
from softfloat.onnx.colours import coloured
from softfloat.onnx.graphs import load
from softfloat.onnx.reports import ConversionReport
from softfloat.onnx.rewriting import Converter
from softfloat.onnx.scopes import FLOAT, type_of
from softfloat.recipes import Recipe, as_recipe, dump_used, recipe_from_environment
from softfloat.recipes.lists import LISTS

__all__ = ["convert"]

CHECKS = (onnx.checker.ValidationError, onnx.shape_inference.InferenceError)
"""What ONNX's checker raises."""


def convert(
    model: ModelProto | str | os.PathLike[str],
    to: Format | str = "float16",
    recipe: Any = None,
    *,
    keep_io_types: bool | Collection[str] = True,
    op_block_list: Collection[str] | None = None,
    node_block_list: Collection[str] = (),
    clamp: tuple[float, float] | None = None,
) -> tuple[ModelProto, ConversionReport]:
    """A model whose nodes compute in half precision or bfloat16, with casts where it meets what stays in float32.

    Parameters
    ----------
    model : onnx.ModelProto or path
        Of float32. It is not changed. Model-local functions are inlined.
    to : Format or str
        "float16" or "bfloat16"; "float16" alone for the recipes of other tools.
    recipe : Recipe, path, or str, optional
        Which nodes convert: those that the recipe's lists say, as `softfloat.recipes.colour` decides; "basic", "full", "bert"
        and "unet" are those of `softfloat.recipes`. "paddle", "onnxconverter" and "onnxruntime" follow PaddlePaddle's float16
        transpiler, onnxconverter-common and onnxruntime.transformers in everything. Default: the recipe that
        `SOFTFLOAT_BF16_CONVERSION` (or `TF_BF16_CONVERSION`) names, of bfloat16; else every operator that ONNX has a kernel of the format for.
    keep_io_types : bool or collection of str
        Whether inputs and outputs of the model stay float32; or the names of those that do. Sequences always do, except with
        the recipes of Microsoft's tools.
    op_block_list, node_block_list : collection of str
        Types of operators, and names of nodes, that stay in float32, graphs inside them too. A node without a name goes by
        the first tensor that it makes. Types replace those of the recipe.
    clamp : (float, float), optional
        The least and the greatest magnitude of weights that are neither zero nor infinite, applied before they are
        rounded. Default: that of the recipe, (1e-7, 1e4) for "onnxconverter", (5.96e-8, 65504) for "onnxruntime", none else.

    Returns
    -------
    model : onnx.ModelProto
        Sorted, and checked by `onnx.checker`. Weights are rounded to nearest even.
    report : ConversionReport

    Raises
    ------
    KernelError
        With "paddle", for an operator without a kernel for the format; lists those that exist.
    ValueError, TypeError
        Naming the argument; for a model that has half or bfloat16 tensors already, or tensors of unknown type where a cast
        might be needed.

    Source
    ------
    As the rows of `softfloat.onnx.behaviours` say.
    """
    fmt = check_format(to, "to", what="convert")
    row, colours = _behaviour(recipe, fmt)
    if fmt.name not in row.formats:
        raise ValueError(
            f"to must be {' or '.join(row.formats)} with recipe {row.name!r}, got {fmt.name}; ONNX has no kernels of its"
            " arithmetic for other formats"
        )
    made = load(model)
    if made.functions:
        made = onnx.inliner.inline_local_functions(made)
    strict = _is_sound(made)
    blocked = row.blocked if op_block_list is None else _names("op_block_list", op_block_list)
    least = row.clamp if clamp is None else _clamp(clamp)
    converter = Converter(made, fmt, row, least, _kept_io(made, keep_io_types, row))
    converter.block(blocked, _names("node_block_list", node_block_list))
    if colours is None:
        converter.decide(lambda node: (True, "every operator converts"))
        report = converter.run(row.name)
    else:
        colouring = coloured(converter, colours)
        report = converter.run("recipe")
        dump_used(colouring)
    try:
        onnx.checker.check_model(made, full_check=strict)
    except CHECKS as error:
        raise ValueError(f"the converted model would not be valid: {error}") from error
    return made, report


def _is_sound(model: ModelProto) -> bool:
    """Whether onnx can check the types of a model: it cannot where it does not know an operator."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except CHECKS:
        return False
    return True


def _behaviour(recipe: Any, fmt: Format) -> tuple[Behaviour, Recipe | None]:
    """The row, and the lists that decide where there are any."""
    if recipe is None and fmt.name == "bfloat16":
        recipe = recipe_from_environment()
    if recipe is None or (isinstance(recipe, str) and recipe in BEHAVIOURS):
        return BEHAVIOURS[recipe or "softfloat"], None
    if isinstance(recipe, str) and recipe not in LISTS and not os.path.exists(recipe):
        accepted = ", ".join(map(repr, [*BEHAVIOURS, *LISTS]))
        raise ValueError(f"recipe must be a Recipe, the path of a file, None, or one of {accepted}; got {recipe!r}")
    return BEHAVIOURS["softfloat"], as_recipe(recipe)


def _names(argument: str, names: Any) -> frozenset[str]:
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f"{argument} must be a collection of str, got {names!r}")
    found = list(names)
    for name in found:
        check_kind(argument, name, str)
    return frozenset(found)


def _clamp(clamp: Any) -> tuple[float, float]:
    try:
        least, greatest = map(float, clamp)
    except (TypeError, ValueError):
        raise TypeError(f"clamp must be two numbers or None, got {clamp!r}") from None
    if not 0 <= least <= greatest:
        raise ValueError(f"clamp must be two magnitudes, the smaller first, got {clamp!r}")
    return least, greatest


def _kept_io(model: ModelProto, keep: Any, row: Behaviour) -> frozenset[str]:
    kinds = {x.name: type_of(x.type) for x in (*model.graph.input, *model.graph.output)}
    ends = {name for name, kind in kinds.items() if FLOAT in kind}
    always = {name for name in ends if kinds[name] != FLOAT and row.weights is Weights.EACH}
    if isinstance(keep, bool):
        return frozenset(ends if keep else always)
    kept = _names("keep_io_types", keep)
    if kept - ends:
        raise ValueError(
            f"keep_io_types names {min(kept - ends)!r}, which is no float32 input or output; those are {', '.join(sorted(ends)) or 'none'}"
        )
    return kept | always
