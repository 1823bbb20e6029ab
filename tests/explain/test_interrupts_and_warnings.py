"""`explain` interrupted, warning, and quiet."""

import logging
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import dsage
from dsage.estimate import StopKind
from dsage.structure import SearchResult, stability
from explain_case import QUIET, mixed


def test_warnings_are_kept_and_passed_on(rows):
    X_train, y_train, X_test, y_test = rows
    X_train, X_test = X_train.assign(one=1.0), X_test.assign(one=1.0)
    model = LinearRegression().fit(X_train, y_train)
    with pytest.warns(UserWarning, match="one") as caught:
        found = dsage.explain(
            model, X_train, y_train, X_test, y_test, sampler="gaussian", n_resamples=0, **QUIET
        )
    assert any("one" in text for text in found.warnings)
    assert {str(each.message) for each in caught} >= set(found.warnings)
    assert caught[0].filename == __file__


def test_runs_in_threads_keep_their_own_warnings_and_change_nothing_global(model, rows):
    X_train, y_train, X_test, y_test = rows
    before = (list(warnings.filters), warnings.showwarning)

    def explain(number):
        name = f"one_{number}"
        wide = X_train.assign(**{name: 1.0}), X_test.assign(**{name: 1.0})
        options = {"sampler": "gaussian", "n_resamples": 2, "n_orderings": 4, **QUIET}
        fitted = LinearRegression().fit(wide[0], y_train)
        return dsage.explain(fitted, wide[0], y_train, wide[1], y_test, **options).warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(explain, range(4)))
    assert (list(warnings.filters), warnings.showwarning) == before
    for number, texts in enumerate(found):
        assert any(f"one_{number}" in text for text in texts)
        assert not any(
            f"one_{other}" in text for other in {0, 1, 2, 3} - {number} for text in texts
        )


def test_nothing_is_shown_on_request_and_bars_otherwise(model, rows, capsys, caplog, monkeypatch):
    # Bars are cut to the width of the terminal, which is 80 in some processes that run tests.
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("LINES", "24")
    with caplog.at_level(logging.INFO, logger="dsage"):
        dsage.explain(model, *rows, sampler="gaussian", n_resamples=2, **QUIET)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")
    assert any(line.startswith("PhaseFinished(phase=<Phase.GRAPH") for line in caplog.messages)
    dsage.explain(
        model, *rows, sampler="mix", n_resamples=2, n_orderings=8, random_state=0, progress=True
    )
    shown = capsys.readouterr()
    assert shown.out == ""
    assert all(
        word in shown.err for word in ("learning the graph", "resamples", "estimating", "error")
    )


def test_classes_of_a_function_are_taken_sorted_with_a_warning_or_as_named():
    X, y = mixed()
    X = X[["size"]]
    fitted = LogisticRegression().fit(X[:160], (y == "light")[:160])

    def light(rows):
        return fitted.predict_proba(rows)[:, 1]

    rows = (X[:160], y[:160], X[160:], y[160:])
    options = {"graph": None, "sampler": "gaussian", "n_orderings": 4, **QUIET}
    with pytest.warns(UserWarning, match="to be 'heavy', 'light', in this order"):
        right = dsage.explain(light, *rows, **options)
    assert right.values[0] > 0
    assert right.choices.model.classes == ("heavy", "light")
    named = dsage.explain(light, *rows, classes=["heavy", "light"], **options)
    np.testing.assert_array_equal(named.values, right.values)
    swapped = dsage.explain(light, *rows, classes=["light", "heavy"], **options)
    assert swapped.values[0] < 0


@pytest.mark.interrupts
def test_an_interrupted_search_ends_the_call(model, rows, monkeypatch):
    def interrupted(*_, **__):
        return SearchResult(dsage.Graph(list("abcdy"), []), 0.0, (), 0, 0.0, True, "auto")

    monkeypatch.setattr("dsage.structure.resolve.search_graph", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dsage.explain(model, *rows, **QUIET)


@pytest.mark.interrupts
def test_an_interrupt_before_the_first_units_ends_the_call_and_a_later_one_tells(model, rows):
    calls = []

    def interrupted_at(number):
        def predict(X):
            calls.append(len(X))
            if len(calls) == number:
                raise KeyboardInterrupt
            return model.predict(X)

        return predict

    options = {"graph": None, "sampler": "gaussian", "rows_per_ordering": 20, **QUIET}
    # The first four calls are for some rows (three times), and for all.
    with pytest.raises(KeyboardInterrupt):
        dsage.explain(interrupted_at(5), *rows, exact="never", **options)
    calls.clear()
    found = dsage.explain(interrupted_at(300), *rows, exact="never", tolerance=1e-6, **options)
    assert found.estimate.interrupted
    assert "interrupted: these are the values so far" in repr(found)
    assert found.estimate.reason.kind is StopKind.INTERRUPTED


def test_interrupted_resamples_are_counted_as_they_were(model, rows, monkeypatch):
    monkeypatch.setattr(
        "dsage.structure.resolve.stability",
        lambda table, n, **options: stability(table, 3, random_state=0),
    )
    found = dsage.explain(model, *rows, sampler="gaussian", n_orderings=4, n_resamples=20, **QUIET)
    assert found.choices.graph.n_resamples == 3


def test_what_is_ignored_is_kept_and_what_is_an_error_is_raised(rows):
    X_train, y_train, X_test, y_test = rows
    X_train, X_test = X_train.assign(one=1.0), X_test.assign(one=1.0)
    model = LinearRegression().fit(X_train, y_train)
    options = {"sampler": "gaussian", "n_resamples": 0, **QUIET}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = dsage.explain(model, X_train, y_train, X_test, y_test, **options)
    assert any("one" in text for text in found.warnings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="one"):
            dsage.explain(model, X_train, y_train, X_test, y_test, **options)
