"""The site's generated pages: one for each format, accumulator and module, from tables, linked from the lists."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Event, Thread
from types import ModuleType, SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from softfloat import ROSTER, bits
from softfloat.accumulators import PRESETS
from softfloat.display.pages import page_html

CHECKOUT = Path(__file__).parent.parent
DOCS = CHECKOUT / "docs"


def module_of_docs(name: str, needed: str) -> ModuleType:
    """A file of docs/, which is no package."""
    pytest.importorskip(needed, reason="the extra docs")
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    return module_of_docs("pages", "numpydoc")


def test_every_page_is_linked_and_no_link_is_broken() -> None:
    """Links between pages that are kept; those to made/ are Sphinx's to check."""
    written = {path for path in DOCS.rglob("*.md") if "made" not in path.parts}
    named = {"index"}
    for path in written:
        for tree in re.findall(r"```\{toctree\}(.*?)```", path.read_text(encoding="utf-8"), re.S):
            lines = [line.strip() for line in tree.splitlines() if line.strip() and not line.startswith(":")]
            lines = [re.sub(r".*<(.*)>", r"\1", line) for line in lines]  # a title of its own before the page
            named |= {(path.parent / line).relative_to(DOCS).as_posix() for line in lines}
    assert {path.relative_to(DOCS).with_suffix("").as_posix() for path in written} <= named
    for path in written:
        for link in re.findall(r"\]\(([^)#:]+\.md)\)", path.read_text(encoding="utf-8")):
            assert "made/" in link or (path.parent / link).resolve().exists(), (path, link)


@pytest.mark.parametrize(
    "question",
    [
        "Round to e4m3 with saturation",
        "Sum as an H100 does",
        "Check a device's file",
        "Train a model under stochastic rounding",
        "What INV means on the IPU",
    ],
)
def test_what_newcomers_look_for_is_the_title_of_a_page(question: str) -> None:
    """Sphinx's search takes a title with all words of a question for the best answer, and how-to pages first among equals."""
    titles = [path.read_text(encoding="utf-8").splitlines()[0] for path in DOCS.glob("howto/*.md")]
    assert titles.count(f"# {question}") == 1
    assert f"[{question}](" in (DOCS / "howto" / "index.md").read_text(encoding="utf-8")
    assert 'startsWith("howto/") ? 2' in (DOCS / "search" / "scorer.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def words() -> ModuleType:
    return module_of_docs("words", "sphinx")


def test_the_first_use_of_a_word_is_a_link(words: Any) -> None:
    """In the order of the page, and once; not in headings, code and links, nor as a part of another word or name."""
    nodes = words.nodes
    tree = nodes.document(None, None)
    tree += nodes.title("", "Stages")
    tree += nodes.container("", nodes.paragraph("", "A stage on a card, which is a link."), design_component="card")
    first = nodes.paragraph(
        "", "", nodes.literal("", "stage"), nodes.Text(" is stage(1); backstage, stage.py. Stages and a ")
    )
    first += [nodes.reference("", "stream", refuri="elsewhere"), nodes.Text(" of a stream, and a stage.")]
    tree += first
    words.link_first_uses(tree, {"stage": "glossary.html#stage", "stream": "glossary.html#stream", "trap": "nowhere"})
    links = [(x.astext(), x["refuri"]) for x in tree.findall(nodes.reference)]
    assert links == [("Stages", "glossary.html#stage"), ("stream", "elsewhere"), ("stream", "glossary.html#stream")]
    assert tree.astext().endswith(
        "stage is stage(1); backstage, stage.py. Stages and a stream of a stream, and a stage."
    )


def glossary() -> list[str]:
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    return re.findall(r"^(\w[^\n]*)\n  ", text[text.index("{glossary}\n") :], re.MULTILINE)


def test_the_glossary_has_the_words_of_this_package(words: Any) -> None:
    found = glossary()
    assert found == sorted(found)
    assert {"stage", "way", "plan", "draw", "standing", "position", "stream", "accumulator", "carrier"} <= set(found)
    assert set(found) >= words.COMMON


def foreign_words() -> list[tuple[str, str]]:
    """Words of other libraries in the tables of docs/coming/, with their page."""
    return [
        (word, f"coming/{path.stem}")
        for path in sorted((DOCS / "coming").glob("*.md"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if path.stem != "index" and line.startswith("| ")
        for word in re.findall(r"`([^`]+)`", line.split("|")[1])
    ]


ASKED = """partialsType, poplar_options, esr, nanoo, REPLICA_IDENTICAL_ONLY, $FP_STS, oflo, div0, inv, use_stable_statistics, set_all,
fp32_parameter_getter, IPUOutfeedQueue, print_tensor, stochastic_rounding.py, float32_parameter_updates.py, ipuestimator_fp16.py,
--use-float16-partials, TF_BF16_CONVERSION, TF_BF16_DUMP_PATH, KEEP_FP32_PRECISION, FORCE_BF16_PRECISION, allow_list, conditional_list,
strict_conditional_list, non_convertible_exceptions, convertible_exceptions, float16_transpile, InferenceTranspiler, float_to_half_rn,
half_to_float, amp_level, keep_batchnorm_fp32, to_float, loss_scale_manager, FixedLossScaleManager, DynamicLossScaleManager, get_loss_scale,
update_loss_scale, drop_overflow_update, scale_window, device_target, explim, rmode, float_quantize, DelayedScaling, NVFP4BlockScaling"""
"""Words of the documents that people come from."""


def test_words_of_other_libraries_have_a_row() -> None:
    found = [word for word, _ in foreign_words()]
    assert [word for word in re.split(r",\s+", ASKED) if found.count(word) != 1] == []
    assert len(found) > 150


def search(questions: list[str]) -> list[list[dict[str, Any]]]:
    """What the search of the built site finds, best first."""
    node, site = shutil.which("node"), CHECKOUT / "build" / "site"
    if node is None:
        pytest.skip("node is not installed")
    index = site / "searchindex.js"
    if not index.exists() or index.stat().st_mtime < max(x.stat().st_mtime for x in DOCS.glob("coming/*.md")):
        pytest.skip("build/site is not there, or older than its pages: sphinx-build -q -W -n docs build/site")
    command = [node, str(CHECKOUT / "tests" / "helpers" / "site_search.js"), str(site)]
    done = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, check=True)
    found: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return found


def test_the_search_finds_words_of_other_libraries_first() -> None:
    words = foreign_words()
    for (word, page), found in zip(words, search([word for word, _ in words]), strict=True):
        places = [x["page"] for x in found if x["score"] == found[0]["score"]] if found else []
        assert page in places, (word, page, found[:3])


TASKS = {
    "install": "index",
    "saturate": "howto/saturate",
    "loss scale": "howto/loss_scale",
    "custom format": "howto/own_format",
    "check a device's file": "howto/device_file",
    "stochastic rounding training": "howto/train_stochastic",
    "partialsType half": "coming/graphcore",
    "chop": "coming/chop",
    "H100 torch.mm": "howto/torch_mm",
    "swamping": "howto/researcher",
}
"""What newcomers type -> the page that they mean."""


def test_the_search_finds_tasks_first() -> None:
    for (question, page), found in zip(TASKS.items(), search(list(TASKS)), strict=True):
        assert found[0]["page"] == page, (question, found[:3])


TABLE_HEAD = re.compile(r"^(\|.*\|)\n\|[\s:|-]*---[\s:|-]*\|$", re.MULTILINE)


VISIBLE = 96
"""Columns of code that a page shows on a screen of 1280 pixels."""


def test_comments_of_code_are_seen() -> None:
    """Longer lines go on below, where a comment at their end would not be told from code."""
    for path in (path for path in DOCS.rglob("*.md") if "made" not in path.parts):
        for block in re.findall(r"^```(?:python|sh)\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S):
            typed = [x for x in block.splitlines() if ">>>" not in block or x.startswith((">>> ", "... "))]
            assert [x for x in typed if len(x) > VISIBLE and "# " in x] == [], path


def test_the_map_of_the_site(pages: Any, tmp_path: Path) -> None:
    builder = SimpleNamespace(format="html", get_target_uri=lambda page: f"{page}.html")
    env = SimpleNamespace(found_docs={"index", "howto/saturate"})
    for address, made in (("https://example.org/softfloat/", True), ("", False)):
        folder = tmp_path / str(made)
        app = SimpleNamespace(
            config=SimpleNamespace(html_baseurl=address), builder=builder, env=env, outdir=str(folder)
        )
        pages.sitemap(app, None)
        assert (folder / "sitemap.xml").exists() is made
    found = ElementTree.parse(tmp_path / "True" / "sitemap.xml").iter(
        "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"
    )
    root = "https://example.org/softfloat"
    assert [x.text for x in found] == [f"{root}/howto/saturate.html", f"{root}/index.html"]


def nameless(path: Path) -> list[str]:
    """Heads of tables with a column that has no name."""
    heads: list[str] = TABLE_HEAD.findall(path.read_text(encoding="utf-8"))
    return [head for head in heads if not all(cell.strip() for cell in head.strip("|").split("|"))]


def test_no_column_of_a_table_is_without_a_name(tmp_path: Path) -> None:
    """Those of generated pages are in the tests of these, and those that notebooks show in the tests of what they show."""
    for path in sorted((CHECKOUT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        page = tmp_path / f"{path.stem}.md"
        page.write_text(
            "\n\n".join("".join(x["source"]) for x in cells if x["cell_type"] == "markdown"), encoding="utf-8"
        )
        assert nameless(page) == [], path
    kept = [CHECKOUT / x for x in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "notebooks/README.md")]
    for path in [*kept, *(path for path in DOCS.rglob("*.md") if "made" not in path.parts)]:
        assert nameless(path) == [], path
    assert len(TABLE_HEAD.findall((DOCS / "performance.md").read_text(encoding="utf-8"))) > 30


def score_in_node(question: str, titles: list[tuple[str, str]]) -> list[float]:
    """What the site's scorer makes of pages that Sphinx takes for equally good."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    scorer = (DOCS / "search" / "scorer.js").read_text(encoding="utf-8")
    place = f"const location = {{ search: '?' + new URLSearchParams({{ q: {json.dumps(question)} }}) }};"
    results = json.dumps([[page, title, "", None, 5, page] for page, title in titles])
    script = f"{place}\n{scorer}\nconsole.log(JSON.stringify({results}.map(Scorer.score)));"
    done = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True)
    scores: list[float] = json.loads(done.stdout)
    return scores


def test_of_equals_the_title_that_answers_comes_first() -> None:
    titles = [
        ("howto/researcher", "Research: rounding and swamping"),
        ("howto/train_stochastic", "Train a model under stochastic rounding"),
        ("made/notebooks/03", "3. What does stochastic rounding give, and what does it cost?"),
        ("made/changelog", "Train a model under stochastic rounding"),
    ]
    for question in ("how to train a model under stochastic rounding", "stochastic rounding training"):
        scores = score_in_node(question, titles)
        assert scores.index(max(scores)) == 1
    assert score_in_node("", titles) == [7, 7, 5, 3]


def test_the_site_has_the_explorer(pages: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MADE", tmp_path)
    pages.explorer()
    assert (tmp_path / "extra" / pages.EXPLORER).read_text(encoding="utf-8") == page_html()
    for name in ("index.md", "explorer.md"):
        assert f'href="{pages.EXPLORER}"' in (DOCS / name).read_text(encoding="utf-8")


def test_formats(pages: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MADE", tmp_path)
    pages.formats()
    index = (tmp_path / "formats" / "index.md").read_text(encoding="utf-8")
    for name, fmt in ROSTER.items():
        text = (tmp_path / "formats" / f"{name}.md").read_text(encoding="utf-8")
        assert f"({name}.md)" in index
        assert nameless(tmp_path / "formats" / f"{name}.md") == []
        assert fmt.layout in text
        assert f'href="../../{pages.EXPLORER}#format={name}"' in text
        if fmt.bits <= pages.LARGEST_TABLE:
            assert f"{bits.decode(fmt.one_code, fmt):.5g}" in text
    e2m1 = (tmp_path / "formats" / "float4_e2m1fn.md").read_text(encoding="utf-8")
    assert (
        "| **0x00** | 0 | 0.5 | 1 | 1.5 | 2 | 3 | 4 | 6 |\n| **0x08** | -0 | -0.5 | -1 | -1.5 | -2 | -3 | -4 | -6 |"
        in e2m1
    )
    assert "| largest | `0x7` | 6 | 4 | no number |" in e2m1


def test_accumulators(pages: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MADE", tmp_path)
    pages.accumulators_pages()
    for name, row in PRESETS.items():
        text = (tmp_path / "accumulators" / f"{name}.md").read_text(encoding="utf-8")
        assert nameless(tmp_path / "accumulators" / f"{name}.md") == []
        assert row.example in text
        assert row.source.replace("|", "\\|") in text
        assert pages.example_of(name).describe() in text
    assert nameless(tmp_path / "accumulators" / "index.md") == []


REFERENCE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import pages
pages.MADE = Path(sys.argv[2])
pages.reference(pages.OUTSIDE if sys.argv[3] else None)
for name in pages.MODULES:
    print(name, *pages.public(sys.modules[name]))
"""


@pytest.mark.parametrize("without", ["", "packages of extras"])
@pytest.mark.usefixtures("pages")
def test_the_reference_has_every_public_name(without: str, tmp_path: Path) -> None:
    """In a process of its own, which then has what stands in for packages that are missing, or would be for a newcomer."""
    command = [sys.executable, "-c", REFERENCE, str(DOCS), str(tmp_path), without]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    offered = {name: names for name, *names in map(str.split, done.stdout.splitlines())}
    assert {"softfloat.torch", "softfloat.dask", "softfloat.interchange.columns"} <= offered.keys()
    assert {"emulate", "Model", "GradScaler", "scale_hyperparameters"} <= set(offered["softfloat.torch"])
    for module, names in offered.items():
        families = [
            x for x in (tmp_path / "api").glob(f"{module}.*.md") if x.stem not in offered
        ]  # of functions on codes
        text = "".join(x.read_text(encoding="utf-8") for x in (tmp_path / "api" / f"{module}.md", *families))
        for name in names:
            assert re.search(rf"\b{name}\b", text), (module, name)
    functions = (tmp_path / "api" / "softfloat.torch.md").read_text(encoding="utf-8").partition("## Classes")[0]
    assert ".. autofunction:: softfloat.torch.scale_hyperparameters\n" in functions  # under a decorator of PyTorch's


def test_examples_after_a_list_are_examples(pages: Any) -> None:
    """numpydoc would take them for exceptions, or results, of that name."""
    raises = ["What it does.", "", "Raises", "------", "ValueError", "    Naming it.", ""]
    notes = ["Notes", "-----", "Exact.", ""]
    example = [">>> 1 + 1", "2"]
    for before, made in ((raises, [*raises, "Examples", "--------", *example]), ([*raises, *notes], None), ([], None)):
        lines = [*before, *example]
        pages.exemplified(None, "function", "f", None, None, lines)
        assert lines == (made or [*before, *example])


def docstrings(modules: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Of what public modules offer, as far as the packages of extras are here."""
    for name in modules:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        for found in (getattr(module, x) for x in module.__all__):
            members = vars(found) if isinstance(found, type) else {}
            for key, one in {"": found, **{key: x for key, x in members.items() if key[0] != "_"}}.items():
                if not isinstance(one, (int, str, tuple)) and (text := inspect.getdoc(one)):
                    yield f"{name}: {getattr(found, '__name__', found)} {key}", text.splitlines()


def test_docstrings_are_read_as_they_are_meant(pages: Any) -> None:
    """Names between backquotes stand alone, and nothing but names stands in lists of names, once examples are sections."""
    seen = 0
    for name, lines in docstrings(pages.MODULES):
        pages.exemplified(None, "", name, None, None, lines)
        section = ""
        for before, line, after in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
            if line and set(line) == {"-"}:
                section = before
            spans = [] if line.lstrip().startswith((">>>", "...")) else re.finditer(r"`+[^`]+`+", line)
            around = [(line[: x.start()][-1:], line[x.end() :][:1]) for x in spans]
            alone = all(re.match(r"[\s'\"(\[{<\-/:*]?$", x) and not re.match(r"\w", y) for x, y in around)
            assert alone, (name, line)
            a_paragraph = section in pages.LISTS and line[:1].strip() and not before and after[:1] != "-"
            assert not (a_paragraph and line.endswith((".", ":"))), (name, line)
            assert not (section in pages.LISTS and line.startswith(">>>")), (name, line)
        seen += 1
    assert seen > 400


NOTEBOOKS = """
import sys
sys.path.insert(0, sys.argv[1])
sys.modules.update(dict.fromkeys(sys.argv[2:]))
import pages
print(*pages.without_results())
"""


@pytest.mark.usefixtures("pages")
def test_notebooks_that_cannot_run_are_known_before_the_site_is_built() -> None:
    """By their own import statements, whatever is behind these; others are not left out."""
    command = [sys.executable, "-c", NOTEBOOKS, str(DOCS), "torch", "dask"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    wanted = {"07_network_gradients", "08_training_methods", "09_recipes", "10_blocks_and_scales"}
    assert set(done.stdout.split()) == wanted | {"11_beyond_one_process"}
    *told, last = done.stderr.splitlines()
    assert len(told) == 5
    assert all("torch" in line or "dask" in line for line in told)
    assert "pip install" in last


def test_notebooks_run_ahead_and_are_read_when_they_have_run() -> None:
    """The last first; one that fails keeps no page waiting; what reads in processes of its own begins after all of them."""
    ahead = module_of_docs("ahead", "jupyter_cache")
    begun: list[str] = []
    read: list[str] = []
    may_end = Event()

    def run(path: Path) -> None:
        begun.append(path.stem)
        assert may_end.wait(60)
        if path.stem == "03":
            raise RuntimeError("no kernel")

    ahead.run_ahead(run, [Path(f"{name}.ipynb") for name in ("01", "02", "03")], 1)
    pages = ["guides", "made/notebooks/03", "made/notebooks/01", "tutorial", "made/notebooks/02"]
    ahead.last(SimpleNamespace(parallel=1), None, pages)
    assert pages[:2] == ["guides", "tutorial"]

    def reading() -> None:
        for page in pages:
            ahead.wait(None, page, [])
            read.append(page)

    reader = Thread(target=reading)
    reader.start()
    while len(read) < 2 or not begun:
        assert reader.is_alive()
    assert begun == ["03"]
    assert read == ["guides", "tutorial"]
    may_end.set()
    ahead.last(SimpleNamespace(parallel=2), None, pages)
    assert all(done.is_set() for done in ahead.DONE.values())
    reader.join()
    assert read == pages
    assert begun == ["03", "02", "01"]


def test_what_notebooks_that_ran_ahead_show_is_kept(tmp_path: Path) -> None:
    ahead = module_of_docs("ahead", "jupyter_cache")
    nbformat, jupyter_cache = pytest.importorskip("nbformat"), pytest.importorskip("jupyter_cache")
    cache = jupyter_cache.get_cache(tmp_path / "cache")
    for name, source in (("sum", "1 + 1"), ("fails", "1 / 0")):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")
        ahead.results(tmp_path / f"{name}.ipynb", cache, 60)
    assert [Path(x.uri).stem for x in cache.list_cache_records()] == ["sum"]
    _, shown = cache.merge_match_into_notebook(nbformat.read(tmp_path / "sum.ipynb", 4))
    assert shown.cells[0].outputs[0].data["text/plain"] == "2"


def test_pages_say_that_they_show_no_results(pages: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MADE", tmp_path)
    monkeypatch.setattr(pages, "without_results", lambda: {"07_network_gradients": "No module named 'torch'"})
    pages.copies()
    for path in sorted((CHECKOUT / "notebooks").glob("*.ipynb")):
        made = json.loads((tmp_path / "notebooks" / path.name).read_text(encoding="utf-8"))["cells"]
        kept = json.loads(path.read_text(encoding="utf-8").replace("](../docs/", "](../../"))["cells"]
        if path.stem == "07_network_gradients":
            note = made.pop(1)
            assert "No module named 'torch'" in note["source"]
            assert pages.BRINGS in note["source"]
        assert made == kept


def test_a_page_that_would_not_change_is_left_alone(pages: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    pages.put(page, "once\n")
    before = page.stat().st_mtime_ns
    pages.put(page, "once\n")
    assert page.stat().st_mtime_ns == before
    pages.put(page, "twice\n")
    assert page.read_text(encoding="utf-8") == "twice\n"
