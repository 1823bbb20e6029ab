"""From plain data to one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any, Literal, NamedTuple

_ASSETS = resources.files("dsage.report") / "assets"


class _Page(NamedTuple):
    """What differs between pages: the name, the skip link, the sections and the scripts.

    The scripts are concatenated in their order.
    """

    brand: str
    skip: str
    links: Mapping[str, str]
    scripts: tuple[str, ...]


_PAGES = {
    "report": _Page(
        "dsage report",
        "Skip to the ranking",
        {
            "ranking": "Ranking",
            "meaning": "Meaning",
            "causal": "Set features",
            "errors": "Errors",
            "savings": "Savings",
            "audit": "Audit",
            "graph": "Graph",
            "convergence": "Convergence",
            "sampler": "Sampler",
            "columns": "Data",
            "assumptions": "Assumptions",
            "choices": "Choices",
        },
        (
            "tools.js",
            "page.js",
            "highlight.js",
            "charts.js",
            "lines.js",
            "graph.js",
            "tables.js",
            "report.js",
        ),
    ),
    "rows": _Page(
        "dsage report of rows",
        "Skip to the rows",
        {"row": "One row", "all": "All rows", "notes": "Notes", "choices": "Choices"},
        ("tools.js", "page.js", "swarm.js", "rows.js"),
    ),
    "flow": _Page(
        "dsage report of a flow",
        "Skip to the edges",
        {
            "edges": "Edges",
            "nodes": "Columns",
            "mechanisms": "Mechanisms",
            "meaning": "Meaning",
            "choices": "Computation",
        },
        ("tools.js", "page.js", "highlight.js", "tables.js", "flow.js"),
    ),
    "comparison": _Page(
        "dsage report of a comparison",
        "Skip to the differences",
        {
            "differences": "Differences",
            "values": "Values",
            "meaning": "Meaning",
            "choices": "Computation",
        },
        ("tools.js", "page.js", "highlight.js", "charts.js", "tables.js", "comparison.js"),
    ),
}
_SLOT = re.compile(r"\{\{ (\w+) \}\}")
# Escaped, so that the data cannot close their script element.
_MARKUP = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def to_html(
    data: Mapping[str, Any], page: Literal["report", "rows", "comparison", "flow"] = "report"
) -> str:
    """Return a report as one HTML page.

    Parameters
    ----------
    data : mapping
        The result of :func:`report_data`, :func:`row_report_data`,
        :func:`comparison_report_data` or :func:`flow_report_data`.
    page : {"report", "rows", "comparison", "flow"}, default="report"
        The page of a ranking, of single rows, of a comparison, or of a flow.

    Returns
    -------
    str
        The page, with style, script and data inside. A content security policy prevents it from
        loading anything and from running any other script.

    Examples
    --------
    >>> page = to_html({"title": "Wealth <script>", "headline": ["income contributes most"]})
    >>> "<title>Wealth &lt;script&gt;</title>" in page
    True
    """
    own = _PAGES[page]
    script = (
        "(function () {\n" + "\n".join(_asset(f"js/{name}") for name in own.scripts) + "\n})();"
    )
    style = _asset("report.css")
    parts = {
        "policy": html.escape(_policy(script, style), quote=True),
        "title": html.escape(str(data["title"])),
        "headline": html.escape(" ".join(data["headline"])),
        "brand": own.brand,
        "skip": own.skip,
        "first": next(iter(own.links)),
        "links": "".join(
            f'      <li><a href="#{place}">{text}</a></li>\n' for place, text in own.links.items()
        ),
        "body": _asset(f"{page}.html"),
        "style": style,
        "script": script,
        "data": _embed(data),
    }
    # In one pass: inserted text is not searched for slots.
    return _SLOT.sub(lambda slot: parts[slot[1]], _asset("frame.html"))


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _embed(data: Mapping[str, Any]) -> str:
    """Return the data as JSON in ASCII, without letters that could end the script element."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).translate(_MARKUP)


def _policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
