import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from dsage.report import report_data, to_html, write_report
from explanations import make_explanation
from report_cases import IMAGE, ODD_NAMES, SCRIPT, synthetic_explanation


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text of each kind."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.found, self.texts, self._open = [], {}, []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)


@pytest.fixture(scope="module")
def odd():
    return synthetic_explanation(names=ODD_NAMES)


def test_the_data_come_back_from_the_page_unchanged(odd):
    data = report_data(odd)
    page = to_html(data)
    (embedded,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', page, re.S
    )
    assert not set("<>&\u2028\u2029") & set(embedded)
    assert json.loads(embedded) == data


def test_names_open_no_element_and_fill_no_slot(odd):
    page = to_html(report_data(odd))
    plain = to_html(report_data(synthetic_explanation(len(ODD_NAMES))))
    assert [tag for tag, _ in Elements(page).found] == [tag for tag, _ in Elements(plain).found]
    assert SCRIPT not in page
    assert IMAGE not in page
    assert page.count('id="data"') == 1


def test_a_target_with_markup_is_escaped_in_the_title():
    data = report_data(synthetic_explanation(2)) | {
        "title": "</title>" + SCRIPT,
        "headline": [IMAGE],
    }
    elements = Elements(to_html(data))
    assert [tag for tag, _ in elements.found].count("script") == 2
    assert "</title>" + SCRIPT in elements.texts["title"]


def test_a_policy_lets_only_this_script_and_this_style_run(odd):
    elements = Elements(to_html(report_data(odd)))
    policies = [
        attributes["content"]
        for tag, attributes in elements.found
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    (policy,) = policies
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


def test_the_page_refers_to_nothing_outside_of_it(odd):
    page = to_html(report_data(odd))
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a namespace, never fetched
    for tag, attributes in Elements(page).found:
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith(("#", "data:")), tag
    assert "@import" not in page
    assert "url(" not in page.replace("url(#plot)", "")


def test_a_hundred_features_stay_well_under_two_megabytes():
    assert len(to_html(report_data(synthetic_explanation(100))).encode()) < 500_000


def test_the_same_record_gives_the_same_file(tmp_path):
    explanation = make_explanation(2)
    first = write_report(explanation, tmp_path / "first.html")
    second = write_report(explanation, str(tmp_path / "second.html"))
    assert first.read_bytes() == second.read_bytes()
    assert first == tmp_path / "first.html"


@pytest.mark.parametrize(
    ("path", "wrong"), [("no/report.html", "existing folder"), (".", "must be a file")]
)
def test_a_place_that_cannot_be_written_to_is_refused(tmp_path, path, wrong):
    with pytest.raises(ValueError, match=wrong):
        write_report(synthetic_explanation(2), tmp_path / path)


def test_a_target_that_utf8_cannot_hold_is_still_written(tmp_path):
    explanation = replace(synthetic_explanation(2, with_graph=False), target="\ud800 half")
    path = write_report(explanation, tmp_path / "odd.html")
    data = json.loads(re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"), re.S)[1])
    assert "\ud800 half" in data["title"]
