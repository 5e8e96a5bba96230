"""How Sphinx builds the site: `sphinx-build -W -n docs build/site`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from pages import without_results

import softfloat

project = "softfloat"
author = "the softfloat authors"
release = version = softfloat.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "pages",
    "words",
    "ahead",
]
exclude_patterns = ["README.md"]
nitpicky = True

autosummary_generate = False  # no page asks for it, and it imports what pages name before these are made anew
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # docstrings name the types, in words
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "build" / "notebooks")
nb_execution_timeout = 600
nb_execution_excludepatterns = [f"**/{name}.ipynb" for name in without_results()]
nb_execution_raise_on_error = True
nb_execution_show_tb = True  # where it fails, the reason, and not only the file that has it
nb_merge_streams = True
nb_output_stderr = "remove"  # that loops were compiled is true of the machine that builds, and of one run there

html_theme = "pydata_sphinx_theme"
html_title = "softfloat"
html_baseurl = os.environ.get("SITE_URL", "")  # where it will be, for its map: pages do not need it
html_static_path = ["static"]
html_extra_path = ["made/extra"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("tutorial", "glossary", "search", "genindex", "py-modindex")}  # alone
html_search_scorer = str(HERE / "search" / "scorer.js")
html_theme_options = {
    "navbar_align": "left",
    "navigation_with_keys": True,
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
}
