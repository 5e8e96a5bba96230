"""Recipes by environment variables, and what they leave written down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from softfloat.recipes import Graph, Node, Recipe, RecipeError, as_recipe, colour, dump_used, recipe_from_environment
from softfloat.recipes.lists import LISTS
from softfloat.recipes.variables import CONVERSION, DUMP_PATH


@pytest.mark.parametrize("value", [None, "", "0"])
def test_no_recipe_is_asked_for(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv(CONVERSION, raising=False)
    if value is not None:
        monkeypatch.setenv(CONVERSION, value)
    assert recipe_from_environment() is None


@pytest.mark.parametrize("name", LISTS)
def test_recipes_by_name(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("SOFTFLOAT_BF16_CONVERSION", name)
    assert recipe_from_environment() == getattr(Recipe, name)() == as_recipe(name)


def test_recipes_by_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    Recipe(["MatMul"]).dump(path)
    monkeypatch.setenv("SOFTFLOAT_BF16_CONVERSION", str(path))
    assert recipe_from_environment() == Recipe(["MatMul"])
    path.write_text('{"allowlist": ["MatMull"]}')
    with pytest.raises(RecipeError, match=r"mine\.json: allowlist\[0\]: unknown op type 'MatMull'"):
        recipe_from_environment()
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"mine\.json"):
        recipe_from_environment()


def test_habana_s_names_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where ours are not set; where both are and differ, ours counts and a warning says so."""
    for name in (CONVERSION, DUMP_PATH):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TF_BF16_CONVERSION", "bert")
    monkeypatch.setenv("TF_BF16_DUMP_PATH", str(tmp_path / "theirs.json"))
    assert recipe_from_environment() == Recipe.bert()
    assert dump_used(colour(*coloured("MatMul"))) == (tmp_path / "theirs.json", tmp_path / "theirs.verdicts.json")
    for value in ("", "bert"):
        monkeypatch.setenv(CONVERSION, value)
        assert recipe_from_environment() == Recipe.bert()
    for value, expected in (("unet", Recipe.unet()), ("0", None)):
        monkeypatch.setenv(CONVERSION, value)
        with pytest.warns(
            UserWarning, match=f"^SOFTFLOAT_BF16_CONVERSION={value} counts, and TF_BF16_CONVERSION=bert does"
        ):
            assert recipe_from_environment() == expected
    monkeypatch.setenv(DUMP_PATH, str(tmp_path / "ours.json"))
    with pytest.warns(UserWarning, match=r"ours\.json counts, and TF_BF16_DUMP_PATH=.*theirs\.json does not"):
        assert dump_used(colour(*coloured("MatMul"))) == (tmp_path / "ours.json", tmp_path / "ours.verdicts.json")
    monkeypatch.delenv(CONVERSION)
    monkeypatch.setenv("TF_BF16_CONVERSION", "1")
    with pytest.raises(ValueError, match="TF_BF16_CONVERSION must be one of basic, full, bert, unet, the path"):
        recipe_from_environment()


@pytest.mark.parametrize("name", ["Full", "ful", "BERT"])
def test_what_is_no_name_and_no_path(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    nearest = {"Full": "full", "ful": "full", "BERT": "bert"}[name]
    message = rf"recipe must be one of 'basic', .* or the path of a file, got '{name}'; did you mean '{nearest}'\?"
    with pytest.raises(ValueError, match=message):
        as_recipe(name)
    monkeypatch.setenv(CONVERSION, name)
    with pytest.raises(ValueError, match=message) as caught:
        recipe_from_environment()
    assert caught.value.__notes__ == ["named by the environment variable SOFTFLOAT_BF16_CONVERSION"]
    for path in (f"{name}.json", f"nowhere/{name}", Path(name)):
        with pytest.raises(FileNotFoundError, match=name):
            as_recipe(path)


def test_one_names_no_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTFLOAT_BF16_CONVERSION", "1")
    with pytest.raises(ValueError, match="SOFTFLOAT_BF16_CONVERSION must be one of basic, full, bert, unet, the path"):
        recipe_from_environment()


def test_what_is_no_recipe() -> None:
    with pytest.raises(TypeError, match=r"recipe must be a Recipe, one of 'basic', .* or the path of a file, got 3"):
        as_recipe(3)


def coloured(op_type: str) -> tuple[Graph, Recipe]:
    graph = Graph([Node("n", op_type, ["x"], ["y"])], {"x": "float32", "y": "float32"}, ["x"], ["y"])
    return graph, Recipe.basic()


def test_what_was_used_is_written_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = colour(*coloured("MatMul"))
    monkeypatch.delenv("SOFTFLOAT_BF16_DUMP_PATH", raising=False)
    assert dump_used(done) is None
    monkeypatch.setenv(DUMP_PATH, str(tmp_path / "used.json"))
    assert DUMP_PATH == "SOFTFLOAT_BF16_DUMP_PATH"
    assert dump_used(done) == (tmp_path / "used.json", tmp_path / "used.verdicts.json")
    assert Recipe.load(tmp_path / "used.json") == Recipe.basic()
    written = json.loads((tmp_path / "used.verdicts.json").read_text())
    assert written == json.loads(json.dumps(done.verdicts()))
    assert [x["op_type"] for x in written["after"]] == ["Cast", "MatMul", "Cast"]
    dump_used(colour(*coloured("Exp")))
    assert json.loads((tmp_path / "used.verdicts.json").read_text())["verdicts"][0]["verdict"] == "keep"
    assert sorted(x.name for x in tmp_path.iterdir()) == ["used.json", "used.verdicts.json"]


def test_a_folder_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(DUMP_PATH, str(tmp_path / "nowhere" / "used.json"))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        dump_used(colour(*coloured("MatMul")))
