import io

import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st

mpl.use("agg")

from matplotlib import pyplot as plt

from dsage.plots import fonts
from dsage.plots.fonts import n_columns, n_lines, text_style, wrap


@given(
    st.text(
        alphabet=st.characters(codec="latin-1", categories=["L", "N", "P", "S", "Zs"]), min_size=1
    ),
    st.integers(2, 40),
)
def test_wrapping_leaves_nothing_out_and_keeps_to_the_width(name, width):
    lines = wrap(name, width).split("\n")
    assert "".join("".join(lines).split()) == "".join(name.split())
    assert all(n_columns(line) <= width for line in lines)


def test_lines_end_after_separators_and_are_about_equally_long():
    long = "mean_daily_temperature_of_the_last_seven_days"
    assert wrap(long, 24).split("\n") == ["mean_daily_temperature_", "of_the_last_seven_days"]
    assert (n_lines("age"), n_lines(long, 24)) == (1, 2)
    assert wrap("age_at_first_visit_in_years", 16) == "age_at_first_\nvisit_in_years"
    assert wrap("a" * 41, 40) == "a" * 21 + "\n" + "a" * 20


@pytest.mark.parametrize(
    "name", ["\U0001f321\ufe0f", "平均", "a\tb\nc", "\x00", "\u200d", "e\u0301"]
)
def test_no_name_fails_or_warns(name):
    figure, ax = plt.subplots()
    ax.text(0.5, 0.5, wrap(name), **text_style())
    figure.savefig(io.BytesIO())
    plt.close(figure)


def test_letters_without_a_font_become_boxes_and_those_with_one_stay(monkeypatch):
    monkeypatch.setattr(fonts, "_letters", lambda path: frozenset(map(ord, "ab ")))
    assert wrap("a\U0001f321\ufe0fb\tc") == "a□b □"


def test_a_font_that_has_the_letters_is_used_where_it_is_installed(monkeypatch):
    monkeypatch.setattr(fonts.font_manager, "get_font_names", lambda: ["Noto Emoji", "Comic"])
    assert text_style()["fontfamily"] == [*mpl.rcParams["font.family"], "DejaVu Sans", "Noto Emoji"]


def test_the_font_of_the_user_comes_first():
    with mpl.rc_context({"font.family": ["serif"]}):
        assert text_style()["fontfamily"][0] == "serif"


def test_names_are_not_read_as_formulas():
    figure = plt.figure()
    written = figure.text(0.0, 0.0, "$x$ a_{", **text_style())
    figure.draw_without_rendering()
    assert written.get_text() == "$x$ a_{"
    assert not written.get_parse_math()
    plt.close(figure)


def test_the_widest_line_counts_and_east_asian_characters_twice():
    assert (n_columns("ab"), n_columns("\u6e29\u5ea6"), n_columns("a\nbcd")) == (2, 4, 3)
