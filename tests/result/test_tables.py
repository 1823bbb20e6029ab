import math
import re
from dataclasses import replace

import numpy as np
import pytest

from dsage.estimate import SamplerCheck, StopKind, StopReason
from dsage.models import LossSource
from dsage.result.run_info import plain, word
from dsage.result.tables import format_table
from explanations import make_explanation, with_check


@pytest.fixture(scope="module")
def explanation():
    return make_explanation(4)


def test_the_table_has_each_feature_with_value_and_error(explanation):
    text = repr(explanation)
    frame = explanation.to_frame()
    lines = [line for line in text.splitlines() if line.startswith("feature ")]
    assert [line.split("  ")[0] for line in lines] == ["feature", *frame["feature"]]
    for line, value in zip(lines[1:], frame["value"], strict=True):
        assert f"{value:.4f} ±" in line
    assert "SAGE values of RandomForestRegressor: target, squared_error, 64 evaluation rows" in text
    assert str(explanation.estimate.reason) in text
    assert "audit:" in text


def test_columns_stand_under_each_other_also_with_wide_letters():
    names = ["a", "名前の長い特徴", "e\u0301tat"]
    lines = repr(make_explanation(3, names)).splitlines()
    rule = next(at for at, line in enumerate(lines) if set(line) == {"-"})
    at = {line.index("±") + sum(letter in names[1] for letter in line) - line.count("\u0301")
          for line in lines[rule + 1 : rule + 4]}  # fmt: skip
    assert len(at) == 1


def test_a_table_has_a_rule_and_numbers_to_the_right():
    lines = format_table(["edge", "share"], [["a -> b", "90%"], ["b", "5%"]])
    assert lines == ["edge    share", "-------------", "a -> b    90%", "b          5%"]


def test_choices_are_worded():
    found = [word(value) for value in (0.123456, 1234567, True, ("a", "b"), LossSource.CHOSEN)]
    assert found == ["0.1235", "1,234,567", "yes", "a, b", "chosen for the model and the target"]
    assert word(math.factorial(200)) == "10^374.9"


def test_plain_data_have_no_nan():
    data = {"a": np.float64("nan"), "b": (np.int64(3), np.bool_(True), math.inf)}
    assert plain(data) == {"a": None, "b": [3, True, None]}


def test_many_features_are_cut_and_said_to_be():
    explanation = make_explanation(3)
    known = explanation.estimate
    n_features = 30
    wide = {
        name: np.resize(getattr(known, name), n_features)
        for name in ("values", "se_orderings", "se_draws", "se_rows", "df", "share_skipped")
    }
    names = tuple(f"f{number}" for number in range(n_features))
    many = replace(explanation, estimate=replace(known, feature_names=names, audit=None, **wide))
    assert "... and 10 more; to_frame() has them all" in repr(many)
    assert "audit" not in repr(many)


def test_a_notebook_gets_a_table_with_names_as_text():
    names = ["<script>alert(1)</script>", "a & b", '"c"']
    html = make_explanation(3, names)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "a &amp; b" in html
    assert len(re.findall("<tr>", html)) == 4


def test_an_interrupted_run_says_so(explanation):
    broken = replace(
        explanation, estimate=replace(explanation.estimate, reason=StopReason(StopKind.INTERRUPTED))
    )
    assert "interrupted: these are the values so far" in repr(broken)


def test_a_difference_that_matters_is_marked_where_it_is_not_corrected(explanation):
    known = explanation.estimate
    audit = replace(known.audit, values=np.r_[-5.0, np.zeros(3)], se=np.full(4, 1e-9))
    marked = replace(explanation, estimate=replace(known, audit=audit, estimand="d-sage"))
    text = repr(marked)
    assert "d-SAGE and SAGE differ for feature 0 (!)" in text
    line = next(line for line in text.splitlines() if line.startswith("feature 0"))
    assert line.endswith("+5.0000!")
    corrected = repr(replace(marked, estimate=replace(marked.estimate, estimand="sage")))
    assert "d-SAGE and SAGE differ for feature 0" in corrected
    assert "estimand='sage'" not in corrected


def test_pictures_are_reached_by_their_names(explanation):
    assert repr(explanation.plot).startswith("Plotter(bar")


def test_an_audit_that_is_too_rough_says_for_how_many_features(explanation):
    known = explanation.estimate
    rough = replace(known.audit, values=np.zeros(4), se=np.array([9.0, 9.0, 0.0, 0.0]))
    text = repr(replace(explanation, estimate=replace(known, audit=rough)))
    assert "2 of 4 features" in text
    fine = replace(known.audit, values=np.zeros(4), se=np.zeros(4))
    text = repr(replace(explanation, estimate=replace(known, audit=fine)))
    assert "all differences" in text


def test_the_error_of_the_sampler_has_a_column_and_a_note(explanation):
    assert "sampler" not in repr(explanation)
    small = with_check(explanation, 0.01)
    heads = repr(small).splitlines()[2].split()
    assert "sampler" in heads
    assert "sampler: how much a value would change with Copula" in repr(small)
    large = with_check(explanation, 5.0, others=("Copula", "Mix"))
    (line,) = [line for line in repr(large).splitlines() if line.startswith("sampler:")]
    assert "with Copula or Mix the values of" in line
    assert line.endswith("would change by more than their other errors (!)")
    assert "± 5.0000!" in repr(large)


def test_a_check_that_was_not_made_says_why(explanation):
    nothing = SamplerCheck.none(explanation.feature_names, "the run was interrupted")
    text = repr(replace(explanation, sampler_check=nothing))
    assert "sampler: its error was not estimated: the run was interrupted" in text


def test_what_is_zero_by_the_graph_has_no_error_and_no_test(explanation):
    known = explanation.estimate
    skipped = np.array([1.0, 0.5, 0.0, 0.0])
    values = np.where(skipped == 1.0, 0.0, known.values)
    separated = replace(known, values=values, share_skipped=skipped, estimand="d-sage")
    (line,) = [each for each in lines_of(separated, explanation) if each.startswith("feature 0")]
    assert line.split()[2:6] == ["0", "by", "the", "graph"]
    assert "±" not in line
    assert "1.000" not in line
    # Corrected values have errors: those of the correction.
    corrected = lines_of(replace(separated, estimand="sage"), explanation)
    assert all("±" in each for each in corrected if each.startswith("feature "))


def lines_of(estimate, explanation):
    return repr(replace(explanation, estimate=estimate)).splitlines()[4:]
