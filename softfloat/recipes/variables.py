"""Recipes by the process's environment, for programs that are to stay as they are."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

from softfloat.checks import nearest
from softfloat.files import replacing
from softfloat.recipes.colouring import Colouring
from softfloat.recipes.lists import LISTS
from softfloat.recipes.recipe import Recipe

__all__ = ["CONVERSION", "DUMP_PATH", "as_recipe", "dump_used", "recipe_from_environment"]

CONVERSION = "SOFTFLOAT_BF16_CONVERSION"
DUMP_PATH = "SOFTFLOAT_BF16_DUMP_PATH"
GAUDI = {CONVERSION: "TF_BF16_CONVERSION", DUMP_PATH: "TF_BF16_DUMP_PATH"}
"""What Habana's documentation calls them. They are read where ours are not set."""


def _read(name: str) -> tuple[str, str]:
    """(the variable that counts, its value). Warns where the other one says something else."""
    own, theirs = os.environ.get(name, ""), os.environ.get(GAUDI[name], "")
    if own and theirs and own != theirs:
        warnings.warn(
            f"{name}={own} counts, and {GAUDI[name]}={theirs} does not: both are set, and the first comes before",
            stacklevel=4,
        )
    return (name, own) if own or not theirs else (GAUDI[name], theirs)


def as_recipe(recipe: Any) -> Recipe:
    """A recipe as functions take it: one, the name of one that comes with the package, or the path of a file.

    Parameters
    ----------
    recipe : Recipe, str or PathLike
        Strings "basic", "full", "bert", "unet" are names; `Path("basic")` is a file.

    Raises
    ------
    TypeError, ValueError, OSError, RecipeError
        If it is none: a string that is no name and looks like no path is a ValueError.
    """
    if isinstance(recipe, Recipe):
        return recipe
    if isinstance(recipe, str) and recipe in LISTS:
        made: Recipe = getattr(Recipe, recipe)()
        return made
    if not isinstance(recipe, (str, os.PathLike)):
        raise TypeError(
            f"recipe must be a Recipe, one of {', '.join(map(repr, LISTS))}, or the path of a file, got {recipe!r}"
        )
    if (
        isinstance(recipe, str)
        and Path(recipe).name == recipe
        and not Path(recipe).suffix
        and not Path(recipe).exists()
    ):
        raise ValueError(
            f"recipe must be one of {', '.join(map(repr, LISTS))}, or the path of a file, got {recipe!r}{nearest(recipe, LISTS)}"
        )
    return Recipe.load(recipe)


def recipe_from_environment() -> Recipe | None:
    """The recipe that `SOFTFLOAT_BF16_CONVERSION` names, or else Gaudi's `TF_BF16_CONVERSION`; None where neither is set, or it is empty or 0.

    Where both are set and differ, the first counts, and a warning says so. It holds the name of a recipe ("basic", "full",
    "bert", "unet") or the path of a file, and is read at each call.

    Raises
    ------
    ValueError
        Naming the variable; if it is 1, which does not say what to convert, or no name of a recipe.
    OSError, RecipeError
        If the file cannot be read.
    """
    name, value = _read(CONVERSION)
    if value in ("", "0"):
        return None
    if value == "1":
        raise ValueError(
            f"{name} must be one of {', '.join(LISTS)}, the path of a recipe, or 0, got 1, which names no lists"
        )
    try:
        return as_recipe(value)
    except (OSError, ValueError) as error:
        error.add_note(f"named by the environment variable {name}")
        raise


def dump_used(colouring: Colouring) -> tuple[Path, Path] | None:
    """Write down what was used, where `SOFTFLOAT_BF16_DUMP_PATH` or Gaudi's `TF_BF16_DUMP_PATH` is set: what conversions do when they are done.

    Where both are set and differ, the first counts, and a warning says so.

    Returns
    -------
    tuple of Path, or None
        The variable's path, with the lists as `Recipe.load` reads them; and beside it, with the ending .verdicts.json, the
        verdict of each node with its reason, and the nodes before and after with their tensors' types. A later
        conversion replaces both. None where the variable is not set or empty.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    _, value = _read(DUMP_PATH)
    if not value:
        return None
    lists = Path(value)
    verdicts = lists.with_name(f"{lists.name.removesuffix('.json')}.verdicts.json")
    with replacing(verdicts) as file:
        file.write((json.dumps(colouring.verdicts(), indent=1) + "\n").encode())
    colouring.recipe.dump(lists)
    return lists, verdicts
