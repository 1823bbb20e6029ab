"""Configuration of the documentation."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.application import Sphinx

import dsage

project = "dsage"
author = "The dsage developers"
copyright = "2026, The dsage developers"
version = release = dsage.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"dsage {release}"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
# Shapes such as (n_rows, n_features) in docstrings are words, not references.
suppress_warnings = ["ref.python"]
html_math_renderer = "mathml"


def setup(app: Sphinx) -> None:
    """Write formulas as MathML, which browsers draw without scripts from elsewhere."""

    def renderer(display: str) -> tuple[Any, None]:
        def visit(writer: Any, node: Any) -> None:  # noqa: ANN401
            writer.body.append(convert(node.astext(), display=display))
            raise SkipNode

        return visit, None

    app.add_html_math_renderer("mathml", renderer("inline"), renderer("block"))
