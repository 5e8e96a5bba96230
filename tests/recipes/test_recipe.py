"""Recipes and their files: Habana's shapes, round trips, and what is refused, by place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softfloat.recipes import Recipe, RecipeError
from softfloat.recipes.lists import LISTS
from softfloat.recipes.vocabularies import VOCABULARIES, aliases

NAMES = sorted({name for alias in aliases() for names in alias.names.values() for name in names})
PATTERNS = ["", ".*", "a/b_[0-9]+", ".*KEEP_FP32_PRECISION.*", 'quotes " and \\\\', "ünïcode\n"]


def recipes() -> st.SearchStrategy[Recipe]:
    types = st.lists(st.sampled_from([*NAMES, "my.Own"]), max_size=5)
    pairs = st.lists(st.tuples(st.sampled_from(PATTERNS), st.sampled_from(["", "my.Own", *NAMES])), max_size=3)
    return st.builds(
        Recipe, types, types, types, pairs, pairs, vocabulary=st.sampled_from(VOCABULARIES), extra_types=st.just(["my.Own"])
    )  # fmt: skip


@given(recipes())
def test_files_hold_all_of_a_recipe(tmp_path_factory: pytest.TempPathFactory, recipe: Recipe) -> None:
    path = tmp_path_factory.getbasetemp() / "round_trip.json"
    recipe.dump(path)
    assert Recipe.load(path) == recipe
    assert Recipe.from_dict(recipe.to_dict()) == recipe


@pytest.mark.parametrize("name", LISTS)
def test_recipes_of_the_package_round_trip(tmp_path: Path, name: str) -> None:
    recipe = getattr(Recipe, name)()
    recipe.dump(tmp_path / "recipe.json")
    assert Recipe.load(tmp_path / "recipe.json") == recipe
    assert list(json.loads((tmp_path / "recipe.json").read_text())) == [
        "allowlist",
        "conditional_list",
        "strict_conditional_list",
        "non_convertible_exceptions",
        "convertible_exceptions",
    ]


def test_lists_have_as_many_types_as_gaudis() -> None:
    """Counted in the files of release 1.3.0."""
    counts = {
        name: tuple(len(set(getattr(getattr(Recipe, name)(), key))) for key in ("allowlist", "conditional_list"))
        for name in LISTS
    }
    assert counts == {"basic": (9, 4), "full": (75, 63), "bert": (31, 11), "unet": (26, 40)}
    assert set(Recipe.full().strict_conditional_list) == {"Add", "AddN", "AddV2", "BiasAddGrad", "Sub"}
    for name in LISTS:
        recipe = getattr(Recipe, name)()
        lists = [*recipe.allowlist, *recipe.conditional_list, *recipe.strict_conditional_list]
        assert len(lists) == len(set(lists))
        assert recipe.non_convertible_exceptions == ((".*KEEP_FP32_PRECISION.*", ""),)
        assert recipe.convertible_exceptions[-1] == (".*FORCE_BF16_PRECISION.*", "")


HABANA = """{
    "%s": [
        "_ScopedAllocatorSplit",
        "BatchMatMul",
        "HabanaConv2DWithPadding",
        "MatMul"
    ],
    "conditional_list": [],
    "strict_conditional_list": [],
    "non_convertible_exceptions": [
        [".*KEEP_FP32_PRECISION.*", ""]
    ],
    "convertible_exceptions": [
        ["encoder/layer_[0-9]+/attention/self/add", "AddV2"]
    ]
}"""


@pytest.mark.parametrize("key", ["allowlist", "allow_list"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_habanas_files_load_as_they_are(tmp_path: Path, key: str, encoding: str) -> None:
    (tmp_path / "recipe.json").write_text(HABANA % key, encoding=encoding)
    assert Recipe.load(tmp_path / "recipe.json") == Recipe(
        ["_ScopedAllocatorSplit", "BatchMatMul", "HabanaConv2DWithPadding", "MatMul"],
        non_convertible_exceptions=[(".*KEEP_FP32_PRECISION.*", "")],
        convertible_exceptions=[("encoder/layer_[0-9]+/attention/self/add", "AddV2")],
    )


def test_keys_of_earlier_files() -> None:
    old = {"whitelist": ["MatMul"], "graylist": ["Add", "Reshape"], "input_only_exceptions": ["Add"]}
    assert Recipe.from_dict(old) == Recipe(["MatMul"], ["Add", "Reshape"], ["Add"])


def test_the_empty_template_converts_nothing(tmp_path: Path) -> None:
    keys = (
        "allow_list",
        "conditional_list",
        "strict_conditional_list",
        "non_convertible_exceptions",
        "convertible_exceptions",
    )
    (tmp_path / "template.json").write_text(json.dumps({key: [] for key in keys}))
    assert Recipe.load(tmp_path / "template.json") == Recipe()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"blocklist": []}, "recipe: blocklist: unknown key; known are allowlist, conditional_list"),
        ({"allowlist": [], "allow_list": []}, "recipe: allow_list: allowlist is there already, under its other name"),
        ({"allowlist": "MatMul"}, "recipe: allowlist: must be a list, got 'MatMul'"),
        ({"allowlist": {"MatMul": 1}}, "recipe: allowlist: must be a list, got {'MatMul': 1}"),
        ({"allowlist": ["MatMul", 3]}, r"recipe: allowlist\[1\]: must be the name of an op type, got 3"),
        ({"allowlist": [""]}, r"recipe: allowlist\[0\]: must be the name of an op type, got ''"),
        ({"conditional_list": ["Reshap"]}, r"recipe: conditional_list\[0\]: unknown op type 'Reshap'; did you mean 'Reshape'\?"),
        ({"conditional_list": ["%%%"]}, r"unknown op type '%%%'; name your own in extra_types"),
        ({"convertible_exceptions": ["abc"]}, r"convertible_exceptions\[0\]: must be a pair"),
        ({"convertible_exceptions": [["a", "", ""]]}, r"convertible_exceptions\[0\]: must be a pair"),
        ({"convertible_exceptions": [["a", None]]}, r"convertible_exceptions\[0\]\[1\]: must be a string, got None"),
        ({"convertible_exceptions": [["a", "MatMull"]]}, r"convertible_exceptions\[0\]\[1\]: unknown op type 'MatMull'"),
        ({"non_convertible_exceptions": [["ok", ""], ["a(", ""]]}, r"non_convertible_exceptions\[1\]\[0\]: no regular exp"),
        ({"vocabulary": "jax"}, "recipe: vocabulary: vocabulary must be one of"),
        ({"vocabulary": []}, r"recipe: vocabulary: must be a string, got \[\]"),
        ({"extra_types": [1]}, r"recipe: extra_types\[0\]: must be the name"),
        ([], r"recipe: must be a JSON object with any of allowlist, .*, got \[\]"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(data: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        Recipe.from_dict(data)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{\n "allowlist": [,]}', r"bad\.json: line 2, column 16: no JSON"),
        (b'{"allowlist": [], "allowlist": []}', r"bad\.json: allowlist: this key is there twice"),
        (b"", r"bad\.json: line 1, column 1: no JSON"),
        (b'{"allowlist": ["\xff"]}', r"bad\.json: must be text in UTF-8, got byte 0xff"),
        (b"null", r"bad\.json: must be a JSON object"),
        (b"[" * 100_000, r"bad\.json: no JSON object of lists: it is nested too deeply"),
    ],
)
def test_files_that_are_none_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(RecipeError, match=message):
        Recipe.load(tmp_path / "bad.json")


def test_a_file_that_cannot_be_written_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no_folder"):
        Recipe.basic().dump(tmp_path / "no_folder" / "recipe.json")
    with pytest.raises(FileNotFoundError):
        Recipe.load(tmp_path / "recipe.json")


def test_names_are_the_vocabularys_first() -> None:
    assert Recipe(["Max"]).read_type("Max") == ("tensorflow", "Max")
    assert Recipe(["Max"], vocabulary="onnx").read_type("Max") == ("onnx", "Max")
    assert Recipe(["Gemm"]).read_type("Gemm") == ("onnx", "Gemm")
    assert Recipe(["aten.mm"]).read_type("aten.mm") == ("aten", "aten.mm")
    assert Recipe(["mine"], extra_types=["mine"]).read_type("mine") == ("", "mine")


def test_recipes_are_values() -> None:
    assert Recipe(["MatMul"]) == Recipe(("MatMul",)) != Recipe()
    assert len({Recipe.basic(), Recipe.basic(), Recipe.full()}) == 2
