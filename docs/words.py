"""What the site knows of words: the first use on a page of one in the glossary is a link, and words of other libraries are in the search index.

Tables of docs/coming/ have words of others in their first column, between backquotes. Each is an entry of the index, so that the site's
search finds it first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

GLOSSARY = "glossary"
FOREIGN = "coming/"
"""Where tables have words of others: the beginning of the pages' names."""

COMMON = frozenset({"code", "draw", "environment", "flag", "plan", "recipe", "status", "way"})
"""Words of the glossary that pages use in their ordinary sense as well: they are looked up, and not linked."""

APART = (
    nodes.title,
    nodes.reference,
    nodes.literal,
    nodes.literal_block,
    nodes.raw,
    nodes.term,
    nodes.topic,
    nodes.comment,
    addnodes.pending_xref,
    addnodes.desc_signature,
    addnodes.toctree,
)
"""Where no word becomes a link."""


def runs(node: nodes.Node) -> Iterator[nodes.Text]:
    """The text of a page in its order, without what stands apart."""
    for child in node.children:
        if isinstance(child, nodes.Text):
            yield child
        elif not isinstance(child, APART) and not (isinstance(child, nodes.Element) and "design_component" in child):
            yield from runs(child)  # a card is a link already


def link_first_uses(tree: nodes.document, places: Mapping[str, str]) -> None:
    """Make the first use of each word a link to its place; a word is found in the plural, too, and with a capital."""
    wanted = dict(places)
    for text in list(runs(tree)):
        rest, made = str(text), []
        while wanted:
            words = "|".join(sorted(map(re.escape, wanted), key=len, reverse=True))
            found = re.search(rf"(?<![\w.`-])({words})s?(?![\w(-]|\.\w)", rest, re.IGNORECASE)
            if found is None:
                break
            word = next(x for x in wanted if x.lower() == found[1].lower())
            link = nodes.reference("", found[0], internal=True, refuri=wanted.pop(word), classes=["glossary-word"])
            made += [nodes.Text(rest[: found.start()]), link]
            rest = rest[found.end() :]
        if made:
            text.parent.replace(text, [*made, nodes.Text(rest)])


def words_of_the_glossary(app: Any, tree: nodes.document, page: str) -> None:
    """On every page but the glossary and the changelog."""
    if page in (GLOSSARY, "made/changelog") or app.builder.format != "html":
        return
    terms = app.env.domains["std"].objects
    places = {
        word: f"{app.builder.get_relative_uri(page, GLOSSARY)}#{anchor}"
        for (kind, word), (home, anchor) in terms.items()
        if kind == "term" and home == GLOSSARY and word not in COMMON
    }
    link_first_uses(tree, places)


class ForeignWords(SphinxTransform):
    """An entry of the index for each word of others, which leads to its row."""

    default_priority = 800  # before Sphinx collects entries

    def apply(self, **_: Any) -> None:
        """Put them in front of the first cells."""
        if not self.env.docname.startswith(FOREIGN) or self.env.docname == f"{FOREIGN}index":
            return
        for number, row in enumerate(self.document.findall(nodes.row)):
            first = next(row.findall(nodes.entry))
            words = [literal.astext() for literal in first.findall(nodes.literal)]
            if words:
                anchor = f"word-{number}"
                row["ids"].append(anchor)
                entries = [("single", word.replace(";", ","), anchor, "main", None) for word in words]
                first.insert(0, addnodes.index(entries=entries))


def outdated(app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Pages of foreign words are read each time: Sphinx forgets entries of pages that it does not read again."""
    return [page for page in env.found_docs if page.startswith(FOREIGN)]


def setup(app: Any) -> dict[str, Any]:
    """Sphinx's hook."""
    app.add_transform(ForeignWords)
    app.connect("env-get-outdated", outdated)
    app.connect("doctree-resolved", words_of_the_glossary)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
