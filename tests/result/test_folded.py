"""What the folds of a cross-validation say together: errors, intervals, tables, files."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import RepeatedKFold

import dsage
from fold_case import QUICK, table


@pytest.fixture(scope="module")
def folded():
    return dsage.explain_cv(LinearRegression(), *table(), cv=4, **QUICK)


@pytest.fixture(scope="module")
def repeated():
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    return dsage.explain_cv(LinearRegression(), *table(), cv=cv, **QUICK)


def in_order(folded):
    return folded.to_frame().set_index("feature").loc[list(folded.feature_names)]


def test_the_error_of_the_procedure_is_that_of_nadeau_and_bengio(folded):
    deviation = folded.fold_values.std(axis=0, ddof=1)
    np.testing.assert_allclose(folded.spread, deviation)
    # 15 rows are evaluated, and 45 are fitted to; a linear model has no error from computing.
    expected = np.sqrt(1 / 4 + 15 / 45) * deviation
    np.testing.assert_allclose(folded.se_procedure, np.hypot(expected, folded.se))


def test_repeats_count_as_folds_in_the_error_of_the_procedure(repeated):
    deviation = repeated.fold_values.std(axis=0, ddof=1)
    expected = np.sqrt(1 / 6 + 20 / 40) * deviation
    np.testing.assert_allclose(repeated.se_procedure, np.hypot(expected, repeated.se))


def test_errors_from_rows_are_independent_in_a_repeat_and_add_up_over_repeats(folded, repeated):
    own = np.stack([each.estimate.se_rows for each in folded.folds])
    np.testing.assert_allclose(folded.se_rows, np.sqrt((own**2).sum(axis=0)) / 4)
    own = np.stack([each.estimate.se_rows for each in repeated.folds])
    halves = [np.sqrt((own[at] ** 2).sum(axis=0)) / 3 for at in (slice(3), slice(3, 6))]
    np.testing.assert_allclose(repeated.se_rows, np.mean(halves, axis=0))


def test_intervals_have_the_quantiles_of_student(folded):
    frame = in_order(folded)
    half = stats.t.ppf(0.975, 3) * folded.se_procedure
    models = np.stack([frame["lower_total"], frame["upper_total"]])
    lower = np.minimum(folded.values - half, models[0])
    upper = np.maximum(folded.values + half, models[1])
    np.testing.assert_allclose(frame["lower_procedure"], lower)
    np.testing.assert_allclose(frame["upper_procedure"], upper)
    assert (models[0] < folded.values).all()
    np.testing.assert_allclose(models.mean(axis=0), folded.values)


def test_folds_that_agree_by_chance_do_not_shorten_the_interval(folded):
    one = folded.folds[0]
    same = dataclasses.replace(folded, folds=(one,) * 4)
    frame = in_order(same)
    np.testing.assert_array_equal(same.spread, 0.0)
    np.testing.assert_allclose(frame["lower_procedure"], frame["lower_total"])
    np.testing.assert_allclose(frame["upper_procedure"], frame["upper_total"])


def test_a_single_fold_has_no_interval_for_the_procedure():
    X, y = table()
    pairs = [(np.arange(40), np.arange(40, 60))]
    folded = dsage.explain_cv(LinearRegression(), X, y, cv=pairs, **QUICK)
    frame = folded.to_frame()
    unknown = ["spread", "se_procedure", "lower_procedure", "upper_procedure"]
    assert frame[unknown].isna().all(axis=None)
    assert (frame["p_value"] == 1.0).all()
    assert frame[["lower_total", "upper_total"]].notna().all(axis=None)
    assert "unknown" in repr(folded)


def test_a_fold_of_a_single_row_leaves_the_error_from_rows_unknown():
    X, y = table(12)
    pairs = [(np.arange(10), [10]), (np.arange(10), [11])]
    folded = dsage.explain_cv(LinearRegression(), X, y, cv=pairs, **QUICK)
    frame = folded.to_frame()
    assert frame[["se_rows", "lower_total", "upper_total"]].isna().all(axis=None)
    assert frame[["lower_procedure", "upper_procedure"]].notna().all(axis=None)


def test_errors_from_computing_are_not_reduced_by_folds():
    X, y = table()
    options = {**QUICK, "n_orderings": 4, "exact": "never", "first_level": "none"}
    folded = dsage.explain_cv(_predict_squares(), X, y, cv=2, **options)
    own = np.stack([each.se for each in folded.folds])
    assert (folded.se > 0).any()
    np.testing.assert_allclose(folded.se, own.mean(axis=0))


def _predict_squares():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    return make_pipeline(PolynomialFeatures(2), LinearRegression())


def test_tables_have_the_ranking_and_say_what_intervals_mean(folded):
    frame = folded.to_frame()
    assert frame["feature"].tolist()[0] == "much"
    assert frame["value"].is_monotonic_decreasing
    text = repr(folded)
    assert text.startswith("SAGE values of LinearRegression, 4 folds: outcome, squared_error, 60")
    assert "learning procedure" in text
    assert "<table>" in folded._repr_html_()
    lines = folded.fold_frame()
    assert lines["fold"].unique().tolist() == [1, 2, 3, 4]
    assert set(lines["n_test"]) == {15}


def test_repeats_are_named_in_the_table(repeated):
    assert "in 2 repeats" in repr(repeated)


def test_a_saved_result_is_the_same(folded, tmp_path):
    file = folded.save(tmp_path / "folds.dsage")
    loaded = dsage.FoldedExplanation.load(file)
    assert repr(loaded) == repr(folded)
    np.testing.assert_array_equal(loaded.fold_values, folded.fold_values)
    assert loaded.repeats == folded.repeats


def test_files_of_folds_and_of_explanations_are_told_apart(folded, tmp_path):
    folds, one = folded.save(tmp_path / "folds.dsage"), folded.folds[0].save(tmp_path / "one.dsage")
    with pytest.raises(ValueError, match=r"Read it with dsage\.FoldedExplanation\.load"):
        dsage.load(folds)
    with pytest.raises(ValueError, match=r"Read it with dsage\.load"):
        dsage.FoldedExplanation.load(one)


def test_a_file_whose_parts_do_not_fit_is_refused(folded, tmp_path):
    bad = dataclasses.replace(folded, repeats=(1, 1))
    with pytest.raises(ValueError, match="the numbers of folds differ"):
        dsage.FoldedExplanation.load(bad.save(tmp_path / "bad.dsage"))
