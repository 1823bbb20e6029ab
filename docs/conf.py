"""Configuration of the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import dsage
from dsage.data.registry import Registry
from dsage.models import LOSSES
from dsage.orderings import KINDS
from dsage.samplers import SAMPLERS
from dsage.structure import METHODS, SCORES

project = "dsage"
author = "The dsage developers"
copyright = "2026, The dsage developers"
version = release = dsage.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "substitution"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "dsage"
html_static_path = ["_static"]
html_css_files = ["dsage.css"]
html_show_sourcelink = False
# Pages without pages below them have nothing to list on the left.
html_sidebars = {
    name: []
    for name in ("index", "getting_started", "method", "api", "contributing", "paper", "changelog")
}
html_theme_options = {
    "logo": {"text": f"dsage {release}"},
    "header_links_before_dropdown": 9,
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    # The pictures are shown, not what they are called.
    "ignore_repr_types": r"matplotlib|numpy\.ndarray",
    "write_computation_times": False,
    "image_srcset": ["2x"],
    "remove_config_comments": True,
}

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
# Shapes such as (n_rows, n_features) in docstrings are words, not references.
suppress_warnings = ["ref.python"]
html_math_renderer = "mathml"


def registry_table(registry: Registry[Any], **traits: str) -> str:
    """Return the registered parts as a table in Markdown, with columns for some of their traits."""
    lines = [f"| name | {' | '.join(traits)}{' | ' if traits else ''}summary |"]
    lines.append("|---" * (len(traits) + 2) + "|")
    for name in sorted(registry):
        found = registry.traits(name)
        cells = [", ".join(found.get(trait, ())) for trait in traits.values()]
        lines.append(f"| {' | '.join([f'`{name!r}`', *cells, registry.summary(name)])} |")
    return "\n".join(lines)


# A new part appears on its page without a change there.
myst_substitutions = {
    "table_of_losses": registry_table(LOSSES),
    "table_of_orderings": registry_table(KINDS),
    "table_of_samplers": registry_table(SAMPLERS, fits="fits"),
    "table_of_scores": registry_table(SCORES, fits="fits"),
    "table_of_searches": registry_table(METHODS),
}


def refuse_remote(app: Sphinx, exception: Exception | None) -> None:
    """Refuse pages that fetch something when they are read."""
    if exception is not None or app.builder.format != "html":
        return
    fetched = re.compile(
        r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["']?https?://[^>]*"""
    )
    for page in Path(app.outdir).rglob("*.html"):
        if found := fetched.search(page.read_text(encoding="utf-8")):
            raise ExtensionError(f"{page} fetches something when it is read: {found[0]}")


def setup(app: Sphinx) -> None:
    """Write formulas as MathML, which browsers draw without scripts from elsewhere."""
    app.connect("build-finished", refuse_remote)

    def renderer(display: str) -> tuple[Any, None]:
        def visit(writer: Any, node: Any) -> None:  # noqa: ANN401
            formula = convert(node.astext(), display=display)
            is_inline = display == "inline"
            writer.body.append(formula if is_inline else f'<div class="formula">{formula}</div>')
            raise SkipNode

        return visit, None

    app.add_html_math_renderer("mathml", renderer("inline"), renderer("block"))
