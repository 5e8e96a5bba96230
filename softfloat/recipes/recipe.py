"""What is to be converted: lists of op types and of exceptions, and the files that hold them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from softfloat.checks import check_choice
from softfloat.files import replacing
from softfloat.frozen import settle
from softfloat.recipes.lists import KEEP, LISTS, Pairs
from softfloat.recipes.vocabularies import VOCABULARIES, suggestion, vocabulary_of

__all__ = ["Recipe", "RecipeError"]

TYPE_LISTS = ("allowlist", "conditional_list", "strict_conditional_list")
EXCEPTIONS = ("non_convertible_exceptions", "convertible_exceptions")
OWN_KEYS = ("vocabulary", "extra_types")
KEYS = (*TYPE_LISTS, *EXCEPTIONS, *OWN_KEYS)
SYNONYMS = {
    "allow_list": "allowlist",
    "whitelist": "allowlist",
    "graylist": "conditional_list",
    "input_only_exceptions": "strict_conditional_list",
}
"""What else keys are called: in Habana's documentation, and in its files before they were renamed."""


class RecipeError(ValueError):
    """A recipe that cannot be read.

    Attributes
    ----------
    place : str
        Where: the file's name, and what is wrong in it, such as "bert.json: allowlist[3]".
    reason : str
    """

    def __init__(self, reason: str, place: str) -> None:
        self.reason, self.place = reason, place
        super().__init__(reason, place)

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True)
class Recipe:
    """Which operations of a graph are converted to a low precision: the five lists of Gaudi's mixed-precision recipes.

    `softfloat.recipes.colour` says what they decide of a graph, and in what order they are asked.

    Parameters
    ----------
    allowlist : sequence of str
        Op types that convert.
    conditional_list : sequence of str
        Op types that convert where a neighbour does.
    strict_conditional_list : sequence of str
        Op types that convert where all that they take converts, or is a parameter or constant; those of `conditional_list`
        too, if they are in both.
    non_convertible_exceptions, convertible_exceptions : sequence of (str, str)
        Nodes that are kept, and nodes that convert, whatever their type: a regular expression that the node's full name
        matches as a whole, and an op type, or "" for any.
    vocabulary : {"tensorflow", "onnx", "aten"}
        Whose names the types are, where several have one: "Max" is a reduction in TensorFlow and elementwise in ONNX. A
        name that only another vocabulary has is that one's. aten's are written "aten.mm".
    extra_types : sequence of str
        Op types that none of the vocabularies has, and the lists may name all the same. A graph's types of these names are
        meant.

    Raises
    ------
    RecipeError
        A `ValueError` that names the place of an unknown type, a malformed pair, a regular expression that is none.

    Notes
    -----
    Files are those that Habana's models come with: a JSON object of the five lists, of which any may be missing. "allow_list" in
    Habana's documentation, "allowlist" in its files: both are read, "allowlist" is written; and so are the names in files of
    before, "whitelist", "graylist" and "input_only_exceptions". "vocabulary" and "extra_types"
    are keys of our own, written where they are not what they are by default.

    >>> recipe = Recipe(allowlist=["MatMul"], non_convertible_exceptions=[("head/.*", "")])
    >>> recipe.allowlist, recipe.non_convertible_exceptions
    (('MatMul',), (('head/.*', ''),))
    >>> len(Recipe.full().allowlist), len(Recipe.basic().allowlist)
    (75, 9)
    >>> Recipe(allowlist=["MatMull"])
    Traceback (most recent call last):
    softfloat.recipes.recipe.RecipeError: Recipe: allowlist[0]: unknown op type 'MatMull'; did you mean 'MatMul'? Name your own in extra_types
    """

    allowlist: Sequence[str] = ()
    conditional_list: Sequence[str] = ()
    strict_conditional_list: Sequence[str] = ()
    non_convertible_exceptions: Sequence[tuple[str, str]] = ()
    convertible_exceptions: Sequence[tuple[str, str]] = ()
    vocabulary: str = "tensorflow"
    extra_types: Sequence[str] = ()
    _place: str = field(default="Recipe", repr=False, compare=False)

    def __post_init__(self) -> None:
        check = _Checks(self._place)
        settle(self, extra_types=tuple(check.names("extra_types", self.extra_types)))
        try:
            check_choice("vocabulary", self.vocabulary, VOCABULARIES)
        except ValueError as error:
            raise RecipeError(str(error), f"{self._place}: vocabulary") from None
        for key in TYPE_LISTS:
            names = check.names(key, getattr(self, key))
            for i, name in enumerate(names):
                check.known(f"{key}[{i}]", name, self)
            settle(self, **{key: names})
        for key in EXCEPTIONS:
            pairs = check.pairs(key, getattr(self, key))
            for i, (_, name) in enumerate(pairs):
                if name:
                    check.known(f"{key}[{i}][1]", name, self)
            settle(self, **{key: pairs})

    # -- where they come from -----------------------------------------------------------------------------------------

    @classmethod
    def basic(cls) -> Recipe:
        """Gaudi's Basic: matrix products and convolutions; clamps and nearest resizing beside them."""
        return cls._named("basic")

    @classmethod
    def full(cls) -> Recipe:
        """Gaudi's Full: most operations; sums of tensors only where all that they add is converted or a parameter."""
        return cls._named("full")

    @classmethod
    def bert(cls) -> Recipe:
        """Gaudi's for BERT: matrix products, softmax, GELU, layer norms; no products of elements but those it names."""
        return cls._named("bert")

    @classmethod
    def unet(cls) -> Recipe:
        """Gaudi's for U-Net: convolutions in two and three dimensions, their activations and pools."""
        return cls._named("unet")

    @classmethod
    def _named(cls, name: str) -> Recipe:
        lists = LISTS[name]
        found: dict[str, Any] = {key: str(lists[key]).split() for key in TYPE_LISTS}
        found |= {"non_convertible_exceptions": KEEP, "convertible_exceptions": lists["convertible_exceptions"]}
        return cls(**found, _place=name)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recipe:
        """Read a file.

        Parameters
        ----------
        path : str or PathLike
            A JSON object as `dump` writes it, or as Habana's models come with it.

        Raises
        ------
        OSError
            If it cannot be read.
        RecipeError
            A `ValueError` that names file and place: no JSON, an unknown key, a key that is there twice, an unknown op type, a
            pair that is none, a regular expression that is none.
        """
        place = str(path)
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise RecipeError(f"must be text in UTF-8, got byte {error.object[error.start]:#04x}", place) from None
        try:
            data = json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, place))
        except json.JSONDecodeError as error:
            raise RecipeError(f"no JSON: {error.msg}", f"{place}: line {error.lineno}, column {error.colno}") from None
        except RecursionError:
            raise RecipeError("no JSON object of lists: it is nested too deeply", place) from None
        return cls.from_dict(data, place=place)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, place: str = "recipe") -> Recipe:
        """What a file holds; `place` is named in errors.

        Raises
        ------
        RecipeError
            As `load` does.
        """
        if not isinstance(data, Mapping):
            raise RecipeError(f"must be a JSON object with any of {', '.join(KEYS)}, got {_short(data)}", place)
        found: dict[str, Any] = {}
        for key, value in data.items():
            name = SYNONYMS.get(key, key)
            if name not in KEYS:
                raise RecipeError(f"unknown key; known are {', '.join((*KEYS, *SYNONYMS))}", f"{place}: {key}")
            if name in found:
                raise RecipeError(f"{name} is there already, under its other name", f"{place}: {key}")
            found[name] = value
        if "vocabulary" in found and not isinstance(found["vocabulary"], str):
            raise RecipeError(f"must be a string, got {_short(found['vocabulary'])}", f"{place}: vocabulary")
        return cls(**found, _place=place)

    def dump(self, path: str | os.PathLike[str]) -> None:
        """Write a file that `load` reads, and Habana's tools where the vocabulary is TensorFlow's.

        The file is replaced as a whole, or stays as it is.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        with replacing(path) as file:
            file.write((json.dumps(self.to_dict(), indent=4) + "\n").encode())

    def to_dict(self) -> dict[str, Any]:
        """What a file holds: lists of strings, and of lists of two."""
        found: dict[str, Any] = {key: list(getattr(self, key)) for key in TYPE_LISTS}
        found |= {key: [list(pair) for pair in getattr(self, key)] for key in EXCEPTIONS}
        if self.vocabulary != "tensorflow":
            found["vocabulary"] = self.vocabulary
        if self.extra_types:
            found["extra_types"] = list(self.extra_types)
        return found

    # -- what they say -------------------------------------------------------------------------------------------------

    def read_type(self, name: str) -> tuple[str, str]:
        """Vocabulary and name of a type as the lists write it; the vocabulary is "" for `extra_types`."""
        if name in self.extra_types:
            return "", name
        return vocabulary_of(name, self.vocabulary) or "", name

    @cached_property
    def types(self) -> dict[str, dict[tuple[str, str], str]]:
        """By list, the types that it names, read; each with its place, such as 'allowlist "MatMul"'."""
        return {key: {self.read_type(x): f'{key} "{x}"' for x in getattr(self, key)} for key in TYPE_LISTS}

    @cached_property
    def patterns(self) -> dict[str, tuple[tuple[re.Pattern[str], tuple[str, str] | None, str], ...]]:
        """By list of exceptions: expression, type (None: any), and its place."""
        return {
            key: tuple(
                (re.compile(name), self.read_type(kind) if kind else None, f'{key} ["{name}", "{kind}"]')
                for name, kind in getattr(self, key)
            )
            for key in EXCEPTIONS
        }


def _unique(pairs: list[tuple[str, Any]], place: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise RecipeError("this key is there twice", f"{place}: {key}")
        found[key] = value
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Checks:
    """What lists may hold, refused by place."""

    def __init__(self, place: str) -> None:
        self._place = place

    def refuse(self, where: str, reason: str) -> RecipeError:
        return RecipeError(reason, f"{self._place}: {where}")

    def listed(self, key: str, value: Any) -> list[Any]:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise self.refuse(key, f"must be a list, got {_short(value)}")
        return list(value)

    def names(self, key: str, value: Any) -> tuple[str, ...]:
        found = self.listed(key, value)
        for i, x in enumerate(found):
            if not isinstance(x, str) or not x or x != x.strip():
                raise self.refuse(f"{key}[{i}]", f"must be the name of an op type, got {_short(x)}")
        return tuple(found)

    def known(self, where: str, name: str, recipe: Recipe) -> None:
        if name not in recipe.extra_types and vocabulary_of(name, recipe.vocabulary) is None:
            hint = suggestion(name, recipe.vocabulary)
            ending = f"{hint} Name" if hint else "; name"
            raise self.refuse(where, f"unknown op type {name!r}{ending} your own in extra_types")

    def pairs(self, key: str, value: Any) -> Pairs:
        found = []
        for i, pair in enumerate(self.listed(key, value)):
            where = f"{key}[{i}]"
            if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise self.refuse(
                    where, f"must be a pair: a regular expression of names, and an op type or '', got {_short(pair)}"
                )
            name, kind = pair
            for j, x in enumerate((name, kind)):
                if not isinstance(x, str):
                    raise self.refuse(f"{where}[{j}]", f"must be a string, got {_short(x)}")
            try:
                re.compile(name)
            except (re.error, RecursionError, OverflowError) as error:
                raise self.refuse(f"{where}[0]", f"no regular expression: {error}, got {_short(name)}") from None
            found.append((name, kind))
        return tuple(found)
