"""The pages of the site that tables of the package make: one for each format, accumulator and module, and copies of what lives outside docs/.

Everything goes to docs/made/, which is not kept. A page that would not change is left alone, so that Sphinx does not read it again.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpydoc.docscrape import NumpyDocString
from sphinx.ext.autodoc.mock import mock, undecorate
from sphinx.util.inspect import stringify_signature

import softfloat
from softfloat import ROSTER, Format, accumulators, bits, display
from softfloat.accumulators import PRESETS
from softfloat.accumulators.roster import STANDINGS
from softfloat.blocks.formats import BLOCK_ROSTER, block_text
from softfloat.commands.accumulators import example_of
from softfloat.display.pages import page_html
from softfloat.formats import format_facts
from softfloat.markup import general

HERE = Path(__file__).parent
CHECKOUT = HERE.parent
MADE = HERE / "made"

MODULES = {
    "softfloat": "Formats, arrays, environments, flags",
    "softfloat.bits": "Functions on codes: arithmetic, conversions, sums",
    "softfloat.accumulators": "Accumulators: ways to sum dot products",
    "softfloat.analysis": "Rounding errors, bounded and measured",
    "softfloat.blocks": "Block formats",
    "softfloat.scaling": "fp8, MXFP8 and NVFP4 training recipes",
    "softfloat.chop": "chop, CPFloat and pychop: their options",
    "softfloat.cuda": "On an NVIDIA GPU",
    "softfloat.dask": "Dask: arrays in blocks, on clusters",
    "softfloat.display": "Pictures and tables",
    "softfloat.experiments": "Experiments on rounding and swamping",
    "softfloat.experiments.figures": "Pictures of experiments",
    "softfloat.experiments.numerics": "Numbers of papers, computed again",
    "softfloat.export": "Golden model for C, C++ and SystemVerilog",
    "softfloat.interchange": "Files of arrays",
    "softfloat.interchange.columns": "Columns of Arrow and pandas",
    "softfloat.interchange.stores": "Arrays of Zarr",
    "softfloat.jit": "Operations inside numba.njit",
    "softfloat.linalg": "Factorizations, solvers, refinement",
    "softfloat.onnx": "ONNX models",
    "softfloat.recipes": "Mixed-precision recipes",
    "softfloat.reference": "The oracle, on exact fractions",
    "softfloat.testing": "Vectors, checks, hypothesis strategies",
    "softfloat.testing.vectors": "Test vectors and what they cover",
    "softfloat.testing.verdicts": "What a device made of test vectors",
    "softfloat.testing.hardware": "Instructions of this machine against the model",
    "softfloat.testing.identification": "The accumulator of an unknown unit",
    "softfloat.torch": "PyTorch models",
}
"""Public module -> what is in it, a page of the reference each."""

OUTSIDE = ("dask", "distributed", "onnx", "pandas", "pyarrow", "torch", "zarr")
"""Packages that extras bring, on which public modules stand."""

BRINGS = "pip install '.[examples,dask]' brings what notebooks need"
"""Of the site's own pages."""

EXPLORER = "explore/index.html"
"""Where the site has the explorer's page, from its root."""

LARGEST_TABLE = 8  # bits of a format whose page shows every code


def put(path: Path, text: str) -> None:
    """Write a page unless it stands there already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def table(head: list[str], rows: Iterator[list[str]] | list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def contents(names: list[str], depth: int = 1) -> str:
    """The tree below a page, which its tables link."""
    return "\n".join(["```{toctree}", ":hidden:", f":maxdepth: {depth}", "", *names, "```"])


# -- formats -----------------------------------------------------------------------------------------------------------


def neighbours(fmt: Format) -> str:
    """Values around landmarks."""
    rows = []
    marks = {"1": fmt.one_code, "smallest": fmt.smallest_subnormal_code, "largest": int(bits.encode(fmt.max, fmt)[0])}
    for name, code in marks.items():
        value = bits.decode(code, fmt)
        below, above = (bits.decode(step(code, fmt)[0], fmt) for step in (bits.next_down, bits.next_up))
        beyond = f"{above:.9g}" if above != value else "no number"
        rows.append([name, f"`{code:#x}`", f"{value:.9g}", f"{below:.9g}", beyond])
    return table(["number", "code", "value", "below", "above"], rows)


def codes_table(fmt: Format) -> str:
    """Every code of a short format, eight to a row."""
    values = bits.decode(np.arange(2**fmt.bits, dtype=fmt.dtype), fmt)
    width = 8
    head = ["code", *(f"+{i}" for i in range(width))]
    rows = [
        [f"**{start:#04x}**", *(general(value, 5) for value in values[start : start + width])]
        for start in range(0, values.size, width)
    ]
    return table(head, rows)


def format_page(fmt: Format) -> str:
    """One format: what it is, where its numbers lie, all of them if they are few."""
    facts = [[name, text] for name, text in format_facts(fmt)]
    fields = "the sign, the exponent and the fraction" if fmt.signed and fmt.mantissa_bits else "the exponent"
    parts = [
        f"# {fmt.name}",
        f"`{fmt.layout}`: {fields}, bit by bit.",
        table(["property", "value"], facts),
    ]
    if fmt.zero and fmt.signed:
        picture = MADE / "formats" / f"{fmt.name}.svg"
        if not picture.exists():
            figure = display.number_line(fmt, scale="log")
            display.save(figure, picture)
        parts.append(f"```{{image}} {fmt.name}.svg\n:alt: where the numbers of {fmt.name} lie\n:class: picture\n```")
        parts += ["## Neighbours", neighbours(fmt)]
    if fmt.bits <= LARGEST_TABLE:
        said = "The code of a number is the sum of its row's and its column's. Numbers are rounded to five digits."
        parts += ["## Every code", said, codes_table(fmt)]
    parts.append(f'<a href="../../{EXPLORER}#format={fmt.name}">Click its bits in the explorer</a>')
    parts += [
        "## In Python",
        f'```python\nimport softfloat\n\n# An array that computes in the format:\nsoftfloat.array([0.1, 1.5], "{fmt.name}")\n'
        f'# A code and its flags:\nsoftfloat.bits.encode(0.1, "{fmt.name}", overflow="saturate")\n```',
    ]
    return "\n\n".join(parts) + "\n"


def formats() -> None:
    """The gallery of formats."""
    (MADE / "formats").mkdir(parents=True, exist_ok=True)
    rows = []
    for fmt in ROSTER.values():
        put(MADE / "formats" / f"{fmt.name}.md", format_page(fmt))
        rows.append(
            [
                f"[{fmt.name}]({fmt.name}.md)",
                f"`{fmt.layout}`",
                general(fmt.max, 6),
                f"{fmt.tiny:.3g}",
                f"{fmt.eps:.3g}",
            ]
        )
    blocks = [
        [f"`{fmt.name}`", str(fmt.element), str(fmt.scale), block_text(fmt.block), f"{fmt.bits_per_element:.6g}"]
        for fmt in BLOCK_ROSTER.values()
    ]
    text = [
        "# Formats",
        "The named formats. `softfloat.Format(name, exponent_bits=..., mantissa_bits=...)` makes any other. Formats up to float64 are "
        "[wide](../../howto/own_format.md#up-to-float64); some functions refuse them.",
        table(["format", "layout", "largest", "smallest normal", "spacing above 1"], rows),
        "## Block formats",
        "Elements that share a scale; [what the scale rules do](../../blocks.md).",
        table(["format", "element", "scale", "block", "bits an element"], blocks),
        contents(list(ROSTER)),
    ]
    put(MADE / "formats" / "index.md", "\n\n".join(text) + "\n")


# -- accumulators ------------------------------------------------------------------------------------------------------


def accumulators_pages() -> None:
    """The gallery of accumulators."""
    rows = []
    for name, row in PRESETS.items():
        how = example_of(name)
        make = getattr(accumulators, name)
        standing = f"{row.standing}: {(how.note or STANDINGS[row.standing]).removeprefix(row.standing + ': ')}"
        parameters = "; ".join(f"{x}: {', '.join(map(str, values)) or 'any'}" for x, values in row.parameters.items())
        facts = [["example", f"`{row.example}`"], ["parameters", parameters or "none"]]
        text = [
            f"# {name}",
            (row.meaning if row.meaning.startswith("x86") else row.meaning[0].upper() + row.meaning[1:]).rstrip(" .")
            + ".",
            table(["property", "value"], [*facts, ["source", row.source], ["standing", standing]]),
            "## What the example does",
            f"> {how.describe()}",
            f"```{{raw}} html\n{display.summation_order(how).svg}\n```",
            f"`display.summation_order({row.example})` draws it: products from left to right; a mark is a rounding.",
            "## Reference",
            f"```{{eval-rst}}\n.. autofunction:: softfloat.accumulators.{make.__name__}\n   :no-index:\n```",
        ]
        put(MADE / "accumulators" / f"{name}.md", "\n\n".join(text) + "\n")
        rows.append([f"[{name}]({name}.md)", f"`{row.example}`", row.meaning, row.standing, row.source])
    text = [
        "# Accumulators",
        "Ways to sum a dot product: definitions first, then what was measured on hardware, what manuals define, and last what is assumed. "
        "[What the column standing means](../../explanation/unknown.md); [what an accumulator is](../../explanation/accumulators.md).",
        table(["accumulator", "example", "meaning", "standing", "source"], rows),
        contents(list(PRESETS)),
    ]
    put(MADE / "accumulators" / "index.md", "\n\n".join(text) + "\n")


# -- the reference -----------------------------------------------------------------------------------------------------


def missing() -> list[str]:
    """The packages of extras that are not installed here."""
    return [name for name in OUTSIDE if importlib.util.find_spec(name) is None]


@contextmanager
def standing_in(names: Iterable[str]) -> Iterator[None]:
    """What looks like these packages, of any version: enough to import what stands on them, and to read its signatures and texts."""
    with mock(list(names)):
        for name in names:
            importlib.import_module(name).__version__ = "9999.0"  # type: ignore[attr-defined]
        yield


def offered(module: Any, name: str) -> Any:
    """What a module offers under a name, without the decorators of packages that are not here."""
    return undecorate(getattr(module, name))


def public(module: Any) -> list[str]:
    """What a module offers, by its __all__."""
    return [name for name in module.__all__ if not isinstance(getattr(module, name), type(pkgutil))]


def home_of(found: Any, name: str) -> str:
    """The module whose page has it: the longest of those below which it is defined."""
    defined = getattr(found, "__module__", name) or name
    homes = [module for module in MODULES if module != name and (defined + ".").startswith(module + ".")]
    return max([*homes, name], key=len) if name in ("softfloat", "softfloat.testing") else name


def directives(module: str, members: Iterable[str], directive: str) -> list[str]:
    """What has Sphinx read docstrings."""
    lines = ["```{eval-rst}"]
    for member in members:
        lines.append(f".. {directive}:: {module}.{member}")
        if directive == "autoclass":
            lines += ["   :members:", ""]
    return [*lines, "```"]


def slug(title: str) -> str:
    """The file of a page with this title."""
    return "-".join("".join(x if x.isalnum() else " " for x in title.lower()).split())


def families(name: str, module: Any) -> list[str]:
    """A page for each family of functions on codes, and what the module's page says of them."""
    rows, pages = [], []
    for title, members in bits.signatures.FAMILIES.items():
        page = f"{name}.{slug(title)}"
        classes = [member for member in members if isinstance(getattr(module, member), type)]
        functions = [member for member in members if callable(getattr(module, member)) and member not in classes]
        data = [member for member in members if member not in (*functions, *classes)]
        lines = [
            f"# {title}",
            f"Of [{name}]({name}.md), which describes the options.",
            f"```{{eval-rst}}\n.. py:currentmodule:: {name}\n```",
        ]
        lines += directives(name, functions, "autofunction")
        if classes:
            lines += directives(name, classes, "autoclass")
        if data:
            lines.append("Values: " + ", ".join(f"`{member}`" for member in data) + ".")
        put(MADE / "api" / f"{page}.md", "\n\n".join(lines[:3]) + "\n\n" + "\n".join(lines[3:]) + "\n")
        links = [f"{{py:obj}}`{x} <{name}.{x}>`" for x in (*functions, *classes)]
        rows.append([f"[{title}]({page}.md)", " ".join([*links, *(f"`{x}`" for x in data)])])
        pages.append(page)
    return [table(["page", "what it has"], rows), "", contents(pages)]


def reference(without: Iterable[str] | None = None) -> None:
    """A page for each public module. What stands on packages `without` which this is done, those that are missing, has one all the same."""
    with standing_in(missing() if without is None else without):
        modules = {name: importlib.import_module(name) for name in MODULES}
    for name, module in modules.items():
        title = MODULES[name]
        functions, classes, data = [], [], []
        elsewhere = []
        for member in public(module):
            found = offered(module, member)
            home = home_of(found, name)
            if home != name and member in modules[home].__all__:
                elsewhere.append(f"[{member}]({home}.md)")
                LINKS[f"{name}.{member}"] = f"{home}.{member}"
                continue
            if isinstance(found, type):
                classes.append(member)
            elif callable(found):
                functions.append(member)
            else:
                data.append(member)
                continue
            LINKS[f"{name}.{member}"] = f"{name}.{member}"
        lines = [f"# {name}", f"{title}."]
        if module is bits:
            lines += ["", *families(name, module), ""]
            functions, classes, data = [], [], []
        lines += ["```{eval-rst}", f".. automodule:: {name}", "   :no-members:", "```"]
        if functions:
            lines += ["## Functions", *directives(name, functions, "autofunction")]
        if classes:
            lines += ["## Classes", *directives(name, classes, "autoclass")]
        if elsewhere:
            lines += ["## Also here", ", ".join(elsewhere)]
        if data:
            lines += ["## Values", ", ".join(f"`{member}`" for member in data)]
        put(MADE / "api" / f"{name}.md", "\n".join(lines) + "\n")
    rows = [[f"[{name}]({name}.md)", title] for name, title in MODULES.items()]
    put(
        MADE / "api" / "index.md",
        "# Reference\n\n" + table(["module", "what is in it"], rows) + "\n\n" + contents(list(MODULES)) + "\n",
    )


# -- what lives outside docs/ --------------------------------------------------------------------------------------------


def unmet(notebook: dict[str, Any]) -> str:
    """Why a notebook cannot run here: what its import statements say; nothing if they succeed."""
    code = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    imports: list[ast.stmt] = [x for x in ast.walk(ast.parse(code)) if isinstance(x, ast.Import | ast.ImportFrom)]
    try:
        exec(compile(ast.Module(imports, []), "imports", "exec"), {})
    except ImportError as error:
        return str(error)
    return ""


@cache
def without_results() -> dict[str, str]:
    """Notebook that cannot run here -> why. It is told once, before anything is built: pages are made without what it would show."""
    found = {}
    for path in sorted((CHECKOUT / "notebooks").glob("*.ipynb")):
        reason = unmet(json.loads(path.read_text(encoding="utf-8")))
        if reason:
            found[path.stem] = reason
            print(f"{path.name} is not run, and its page shows no results: {reason}", file=sys.stderr)
    if found:
        print(BRINGS, file=sys.stderr)
    return found


def copies() -> None:
    """Notebooks and the changelog."""
    folder = MADE / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for path in sorted((CHECKOUT / "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8").replace("](../docs/", "](../../"))
        if path.stem in without_results():
            text = (
                f"```{{note}}\nThis build has no results of this page: {without_results()[path.stem]} ({BRINGS}).\n```"
            )
            notebook["cells"].insert(1, {"cell_type": "markdown", "id": "no-results", "metadata": {}, "source": text})
        put(folder / path.name, json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
        names.append(path.stem)
    text = "# Notebooks\n\nEach opens with a question and runs from top to bottom on an installed package.\n\n"
    listed = "\n".join(["```{toctree}", ":maxdepth: 1", "", *names, "```"])
    put(folder / "index.md", text + listed + "\n")
    put(MADE / "changelog.md", (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8"))


def explorer(app: Any = None, config: Any = None) -> None:
    """The explorer's page, before Sphinx looks for what it is to copy."""
    put(MADE / "extra" / EXPLORER, page_html())


def make(app: Any = None) -> None:
    """Make every page."""
    formats()
    accumulators_pages()
    reference()
    copies()


def sitemap(app: Any, error: Exception | None) -> None:
    """`sitemap.xml`, for search engines: the pages' addresses, if it is known where the site will be."""
    root = app.config.html_baseurl.rstrip("/")
    if error is None and root and app.builder.format == "html":
        pages = "".join(
            f"<url><loc>{root}/{app.builder.get_target_uri(x)}</loc></url>\n" for x in sorted(app.env.found_docs)
        )
        head = '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        put(Path(app.outdir) / "sitemap.xml", f"{head}{pages}</urlset>\n")


LINKS: dict[str, str] = {}
"""Name, as a docstring may have it -> the one under which a page has it."""
IN_BACKTICKS = re.compile(r"(?<![`:\w])`([A-Za-z_][\w.]*)`(?![`\w])")


def linked(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """What docstrings have in backticks becomes a link where a page has it, under its whole name or one of the same module."""
    module = max((x for x in MODULES if (name + ".").startswith(x + ".")), key=len, default="softfloat")
    own = {
        *getattr(getattr(found, "__code__", None), "co_varnames", ()),
        name.rpartition(".")[2],
        *bits.signatures.OPTIONS,
    }

    def link(match: re.Match[str]) -> str:
        text = match[1]
        target = LINKS.get(text) or (LINKS.get(f"{module}.{text}") if text not in own else None)
        return f":py:obj:`{text} <{target}>`" if target else match[0]

    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = IN_BACKTICKS.sub(link, line)


def without_options(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """On the site, options are described once, on the page of the module: a function's signature names its own."""
    if "Other Parameters" in lines and name.startswith("softfloat.bits."):
        start = lines.index("Other Parameters")
        stop = lines.index("", start) if "" in lines[start:] else len(lines)
        lines[start:stop] = ["The options in its signature are described on the page of :py:mod:`softfloat.bits`."]


def aliased(app: Any, what: str, name: str, found: Any, skip: bool, options: Any) -> bool | None:
    """Fields of a NamedTuple are in its signature; Python's own text of one says nothing more."""
    return True if str(getattr(found, "__doc__", "")).startswith("Alias for field number") else None


def sourced(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """numpydoc knows no section "Source": here it is one of references."""
    for i, line in enumerate(lines[:-1]):
        if line.strip() == "Source" and set(lines[i + 1].strip()) == {"-"}:
            lines[i : i + 2] = ["References", "----------"]


LISTS = {"Parameters", "Other Parameters", "Returns", "Yields", "Raises", "Warns", "Attributes", "Methods"}
"""Sections of docstrings that numpydoc takes for lists of names, whatever is in them."""


def exemplified(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Examples after a list of names, a blank line between them, are a section of their own."""
    section = ""
    for i, line in enumerate(lines):
        if i and line and set(line) == {"-"}:
            section = lines[i - 1].strip()
        elif section in LISTS and line.startswith(">>>") and not lines[i - 1].strip():
            lines[i:i] = ["Examples", "--------"]
            return


def signed(
    app: Any, what: str, name: str, found: Any, options: Any, signature: str, returned: str
) -> tuple[str, str] | None:
    """The arguments of a class that stands on one of a package which is not here, whose own say nothing."""
    if what != "class" or signature != "(*args, **kwargs)":
        return None
    return stringify_signature(inspect.signature(found), show_annotation=False), returned


NumpyDocString.sections["Source"] = []  # read before `sourced` has a say, for members of classes


def setup(app: Any) -> dict[str, Any]:
    """Sphinx's hook."""
    app.connect("config-inited", explorer, priority=100)
    app.connect("builder-inited", make)
    app.connect("autodoc-skip-member", aliased)
    app.connect("autodoc-process-docstring", without_options, priority=90)
    app.connect("autodoc-process-docstring", sourced, priority=100)
    app.connect("autodoc-process-docstring", exemplified, priority=100)
    app.connect("autodoc-process-docstring", linked, priority=110)
    app.connect("autodoc-process-signature", signed)
    app.connect("build-finished", sitemap)
    return {"version": softfloat.__version__, "parallel_read_safe": True}
