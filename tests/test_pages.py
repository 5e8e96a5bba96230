"""What pages tell readers to type: every command is parsed and, where that is cheap, run; every import is executed; every name is there.

Lines with >>> are run by doctest. What is not run here is in `NOT_RUN`, with the reason.
"""

from __future__ import annotations

import ast
import doctest
import importlib.util
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from commands import Run

import softfloat.testing
from softfloat import bits
from softfloat.commands.output import CommandError
from softfloat.commands.parser import build_parser

CHECKOUT = Path(__file__).parent.parent
DOCS = CHECKOUT / "docs"
PAGES = [
    *(CHECKOUT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "notebooks/README.md")),
    *sorted(path for path in DOCS.rglob("*.md") if "made" not in path.parts),
]
NAMES = [path.relative_to(CHECKOUT).as_posix() for path in PAGES]

NOT_RUN = {
    ".ci/release": "takes minutes, and builds what is published: tests/test_gate.py has what it refuses",
    "python -m twine upload": "publishes",
    "git tag": "releases",
    "git push": "releases",
    "mkdir -p .github/workflows": "is for GitHub",
    "cp .ci/release.yml": "is for GitHub",
    "softfloat explore": "opens a browser: tests/commands/test_explore_command.py",
    "softfloat hardware": "takes minutes: tests/conformance/test_hardware.py",
    "softfloat reproduce": "takes a minute: tests/commands/test_commands.py",
    "softfloat export": "compiles a library: tests/export",
    "softfloat identify --python": "compiles loops of all accumulators: tests/testing/test_identification.py",
    "softfloat onnx": "needs a model: tests/commands/test_onnx_command.py and test_onnx_convert.py",
    "softfloat vectors fma --format half --level 1": "writes 1.6 million rows: tests/testing/test_corners.py",
    "softfloat coverage FILE": "FILE is the reader's",
    "softfloat check faulty.txt": "is of a unit in Verilog: tests/export/test_designs.py",
    "pip": "changes the environment; the extras that it names are checked",
    "python -m pytest": "are these tests",
    "pytest": "are these tests",
    "python -m softfloat.examples": "train for minutes: tests/examples; the module must be there",
    "python benchmarks": "measure for minutes; the file must be there",
    "ruff": "is no part of the tests' extra: the gate runs it",
    "sphinx-build": "takes minutes: the gate runs it",
    "jupyter": "serves until it is stopped",
    "verilator": "may be missing: tests/export",
    "unit1/Vbench": "is what verilator makes",
    "unit0/Vbench": "is what verilator makes",
    "apt-get": "changes the machine",
}
"""How commands begin that are parsed, or looked at, and not run; and why."""

RUN = {"softfloat reproduce numerics --quick"}
"""Commands that begin so, and are run."""

OPTIONAL = {
    "torch",
    "dask",
    "distributed",
    "pandas",
    "pyarrow",
    "zarr",
    "onnx",
    "matplotlib",
    "ml_dtypes",
    "jax",
    "cupy",
}
"""Modules of extras, which may be missing."""
OTHERS = {
    "ray": "a cluster's, of docs/ray.md",
    "pyspark": "a cluster's, of docs/spark.md",
    "sf": "what `softfloat export` writes",
}
"""Modules that no extra brings, and whose they are."""

FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.S | re.M)
STARTS = ("softfloat", "python", "pip", "pytest", "ruff", "jupyter", "sphinx-build", "apt-get", "verilator")


class Page(NamedTuple):
    """What is to be typed of a page: blocks of shell and Python, and what stands between backquotes in the text."""

    shell: list[str]
    python: list[str]
    inline: list[str]


def page(name: str) -> Page:
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    blocks = FENCE.findall(text)
    spans = re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    return Page([x for kind, x in blocks if kind == "sh"], [x for kind, x in blocks if kind == "python"], spans)


def commands_of(block: str) -> Iterator[list[str]]:
    """The words of each command of a block, without what loops are made of."""
    for line in block.replace("\\\n", " ").splitlines():
        for part in line.split("&&"):
            words = shlex.split(part, comments=True)
            if words and words[0] not in ("for", "do", "done"):
                yield words


def commands(name: str) -> Iterator[tuple[list[str], bool]]:
    """Commands of a page, and whether they stand in a block."""
    found = page(name)
    for block in found.shell:
        for words in commands_of(block):
            yield words, True
    for span in found.inline:
        if span.split()[0] in STARTS and (" " in span.strip()):
            for words in commands_of(span):
                yield words, False


def reason_not_to_run(words: list[str]) -> str | None:
    text = shlex.join(words)
    return next(
        (
            why
            for start, why in NOT_RUN.items()
            if text not in RUN and (text == start or text.startswith((f"{start} ", f"{start}/", f"{start}.")))
        ),
        None,
    )


def mentions_a_command(words: list[str]) -> bool:
    """Whether words name a command and no more, as text does that speaks of it."""
    parser: Any = build_parser()
    for word in words[1:]:
        choices = next((x.choices for x in parser._actions if isinstance(x.choices, dict)), {})
        if word not in choices:
            return False
        parser = choices[word]
    return True


# -- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_commands_parse(name: str) -> None:
    for words, _ in commands(name):
        if words[0] != "softfloat":
            assert reason_not_to_run(words), (
                f"{name}: {shlex.join(words)} is neither softfloat's nor explained in NOT_RUN"
            )
        elif "..." not in words and not mentions_a_command([x for x in words if x != "--help"]):
            try:
                build_parser().parse_args(words[1:])
            except CommandError as error:
                pytest.fail(f"{name}: {shlex.join(words)}: {error}")


def fixtures(words: list[str]) -> None:
    """The files that a command reads and that are the reader's: what a right device answered, a tensor in blocks."""
    if words[1:3] == ["check", "device.txt"]:
        given = words[words.index("--op") + 1 :] if "--op" in words else ["mul", "--format", "half"]
        if "--junit" in given:
            at = given.index("--junit")
            given = given[:at] + given[at + 2 :]
        assert Run("vectors", *given, "--count", "100", "--output", "device.txt").status == 0
    if "tensor.npz" in words:
        x = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
        np.savez("tensor.npz", x=x, scales=bits.quantize(x, "mxfp4", "even")[0].scales)


@pytest.mark.parametrize("name", NAMES)
def test_commands_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the page, in one folder: what a command writes a later one may read."""
    monkeypatch.chdir(tmp_path)
    for words, _ in commands(name):
        if words[0] != "softfloat" or reason_not_to_run(words) is not None or "..." in words:
            continue
        fixtures(words)
        run = Run(*words[1:])
        spoken_of = run.status == 2 and mentions_a_command(words)  # "`softfloat check` says": not to be typed like this
        assert run.status == 0 or spoken_of, (name, shlex.join(words), run.out, run.err)


def test_extras_and_files_of_other_commands_are_there() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    markers = {x.partition(":")[0].partition("(")[0] for x in project["tool"]["pytest"]["ini_options"]["markers"]}
    seen = set()
    for name in NAMES:
        for words, _ in commands(name):
            text = shlex.join(words)
            for extra in re.findall(r"\[([\w,]+)\]", text) if words[0] == "pip" else []:
                assert set(extra.split(",")) <= set(extras), (name, text)
                seen.add("extra")
            if words[:2] == ["python", "-m"] and words[2].startswith("softfloat"):
                assert importlib.util.find_spec(words[2]) is not None, (name, text)
                seen.add("module")
            if words[0] == "python" and words[1].startswith("benchmarks/") and "NAME" not in words[1]:
                assert (CHECKOUT / words[1]).is_file(), (name, text)
                seen.add("file")
            if "pytest" in words and "-m" in words[words.index("pytest") :]:
                assert words[words.index("-m", words.index("pytest")) + 1] in markers, (name, text)
                seen.add("marker")
    assert seen == {"extra", "module", "file", "marker"}


# -- Python ----------------------------------------------------------------------------------------------------------


def statements(name: str) -> Iterator[ast.Module]:
    """The Python of a page, as trees: blocks, examples of doctest, imports between backquotes."""
    found = page(name)
    for block in found.python:
        examples = doctest.DocTestParser().get_examples(block) if ">>>" in block else []
        yield ast.parse("".join(x.source for x in examples) if examples else block)
    for span in found.inline:
        if re.fullmatch(r"(import|from) [\w., ]+( import [\w., ]+)?", span):
            yield ast.parse(span)


def excused(error: ImportError) -> bool:
    """Whether what is missing is a module of an extra that is not installed, or one that no extra brings."""
    module = str(error.name or "").partition(".")[0]
    if module in OPTIONAL:
        return importlib.util.find_spec(module) is None
    return module in OTHERS or "numba-softfloat[" in str(error)


@pytest.mark.parametrize("name", NAMES)
def test_imports_are_executed(name: str) -> None:
    for tree in statements(name):
        for node in ast.walk(tree):
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            try:
                exec(ast.unparse(node), {})
            except ImportError as error:
                if not excused(error):
                    pytest.fail(f"{name}: {ast.unparse(node)}: {error}")


def dotted(tree: ast.Module) -> Iterator[str]:
    """Names such as softfloat.torch.emulate, as far as they are attributes of softfloat and of what is in it."""
    for node in ast.walk(tree):
        parts, inner = [], node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id == "softfloat" and parts:
            yield ".".join(["softfloat", *reversed(parts)])


def resolve(name: str) -> None:
    """Unlike `pkgutil.resolve_name` it says which package a module lacks, not that the module is none."""
    found, parts = softfloat, name.split(".")
    for count, part in enumerate(parts[1:], 2):
        path = ".".join(parts[:count])
        if not hasattr(found, part) and hasattr(found, "__path__") and importlib.util.find_spec(path):
            importlib.import_module(path)
        found = getattr(found, part)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_there(name: str) -> None:
    """In code, and between backquotes in the text."""
    names = {x for tree in statements(name) for x in dotted(tree)}
    for span in page(name).inline:
        names |= set(re.findall(r"(?<![\w./-])softfloat(?:\.[A-Za-z_]\w*)+(?![\w/]|\.\w)", span))
    for one in sorted(names):
        try:
            resolve(one)
        except (ImportError, AttributeError) as error:
            if not (isinstance(error, ImportError) and excused(error)):
                pytest.fail(f"{name}: {one}: {error}")


def test_pages_have_something_to_type() -> None:
    """The expressions above would find nothing without a word if pages were written otherwise."""
    found = [words for name in NAMES for words, _ in commands(name)]
    assert sum(words[0] == "softfloat" for words in found) > 50
    assert (
        sum(isinstance(x, (ast.Import, ast.ImportFrom)) for n in NAMES for t in statements(n) for x in ast.walk(t)) > 50
    )
    used = {start for start in NOT_RUN for words in found if reason_not_to_run(words) == NOT_RUN[start]}
    assert used == set(NOT_RUN), "a reason that no command needs any more"


def test_strategies_are_offered_where_the_page_says() -> None:
    pytest.importorskip("hypothesis")
    from softfloat.testing import codes, matrices, near_ties, strategies

    assert (codes, matrices, near_ties) == (strategies.codes, strategies.matrices, strategies.near_ties)
    offered = {name for name in strategies.__all__ if getattr(softfloat.testing, name) is getattr(strategies, name)}
    assert set(strategies.__all__) - offered == {"edges"}  # of formats, where operands are drawn


def test_the_map_of_the_house_is_short() -> None:
    page = (CHECKOUT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 120
    trips = page.partition("## Six trips\n\n")[2].partition("\n\n## ")[0].split("\n\n")
    assert len(trips) == 6
    assert max(len(trip.splitlines()) for trip in trips) <= 8
