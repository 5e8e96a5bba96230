"""Recipes by the process's environment, for programs that are to stay as they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from softfloat.files import replacing
from softfloat.recipes.colouring import Colouring
from softfloat.recipes.lists import LISTS
from softfloat.recipes.recipe import Recipe

__all__ = ["CONVERSION", "DUMP_PATH", "as_recipe", "dump_used", "recipe_from_environment"]

CONVERSION = "SOFTFLOAT_BF16_CONVERSION"
DUMP_PATH = "SOFTFLOAT_BF16_DUMP_PATH"


def as_recipe(recipe: Any) -> Recipe:
    """A recipe as functions take it: one, the name of one that comes with the package, or the path of a file.

    Parameters
    ----------
    recipe : Recipe, str or PathLike
        Strings "basic", "full", "bert", "unet" are names; `Path("basic")` is a file.

    Raises
    ------
    TypeError, OSError, RecipeError
        If it is none.
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
    return Recipe.load(recipe)


def recipe_from_environment() -> Recipe | None:
    """The recipe that `SOFTFLOAT_BF16_CONVERSION` names; None where the variable is not set, empty or 0.

    It holds the name of a recipe ("basic", "full", "bert", "unet") or the path of a file, and is read at each call.

    Raises
    ------
    ValueError
        Naming the variable; if it is 1, which does not say what to convert.
    OSError, RecipeError
        If the file cannot be read.
    """
    value = os.environ.get(CONVERSION, "")
    if value in ("", "0"):
        return None
    if value == "1":
        raise ValueError(
            f"{CONVERSION} must be one of {', '.join(LISTS)}, the path of a recipe, or 0, got 1, which names no lists"
        )
    return as_recipe(value)


def dump_used(colouring: Colouring) -> tuple[Path, Path] | None:
    """Write down what was used, where `SOFTFLOAT_BF16_DUMP_PATH` is set: what conversions do when they are done.

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
    value = os.environ.get(DUMP_PATH, "")
    if not value:
        return None
    lists = Path(value)
    verdicts = lists.with_name(f"{lists.name.removesuffix('.json')}.verdicts.json")
    with replacing(verdicts) as file:
        file.write((json.dumps(colouring.verdicts(), indent=1) + "\n").encode())
    colouring.recipe.dump(lists)
    return lists, verdicts
