"""An explanation as a mapping, as JSON, and in a notebook; the losses of its rows."""

import base64
import json
import math
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

import dsage
from explain_case import QUIET, chain
from explanations import make_explanation


@pytest.fixture(scope="module")
def explanation():
    return make_explanation(3, ["größe", "b", "c"])


@pytest.fixture(scope="module")
def kept():
    X, y = chain()
    model = LinearRegression().fit(X[:200], y[:200])
    options = {"sampler": "gaussian", "graph": None, **QUIET}
    rows = (X[:200], y[:200], X[200:], y[200:])
    return dsage.explain(model, *rows, keep_losses=True, **options), model, rows


def test_an_explanation_maps_features_to_records(explanation):
    assert len(explanation) == 3
    assert list(explanation) == list(explanation.feature_names) == ["größe", "b", "c"]
    assert "b" in explanation
    assert "z" not in explanation
    for at, name in enumerate(explanation):
        record = explanation[name]
        assert (record.feature, record.value, record.se) == (
            name, explanation.values[at], explanation.se[at],
        )  # fmt: skip
    line = explanation.to_frame().set_index("feature").loc["c"]
    assert (record.lower_total, record.upper_total) == (line["lower_total"], line["upper_total"])
    assert record.p_value == line["p_value"]
    assert math.isnan(record.se_sampler)


def test_an_unknown_feature_is_named(explanation):
    with pytest.raises(KeyError, match="Did you mean 'größe'"):
        explanation["grösse"]


def test_json_holds_the_table_and_the_choices(explanation, tmp_path):
    text = explanation.to_json(tmp_path / "run.json", confidence=0.9)
    assert (tmp_path / "run.json").read_text(encoding="utf-8") == text
    found = json.loads(text)
    assert found == explanation.to_dict(0.9)
    frame = explanation.to_frame(0.9)
    assert [line["feature"] for line in found["features"]] == frame["feature"].tolist()
    assert [line["lower"] for line in found["features"]] == frame["lower"].tolist()
    assert found["features"][0]["se_sampler"] is None
    assert found["choices"]["loss"]["name"] == "squared_error"
    assert (found["target"], found["confidence"], found["row_losses"]) == ("target", 0.9, None)


def test_json_needs_a_folder_that_exists(explanation, tmp_path):
    with pytest.raises(ValueError, match="path must be in an existing folder"):
        explanation.to_json(tmp_path / "nowhere" / "run.json")


def test_row_losses_are_those_of_the_model_and_of_the_mean_prediction(kept):
    explanation, model, (X, _, X_test, y_test) = kept
    losses = explanation.row_losses
    assert losses["row"].tolist() == list(range(100))
    y = y_test.to_numpy()
    np.testing.assert_allclose(losses["everything"], (y - model.predict(X_test)) ** 2)
    # The mean over a Gaussian is that of the training rows.
    np.testing.assert_allclose(losses["nothing"], (y - model.predict(X).mean()) ** 2)
    # All orderings were averaged over: efficiency is exact.
    assert losses["gain"].mean() == pytest.approx(explanation.values.sum())


def test_row_losses_are_saved_and_the_sampler_is_not(kept, tmp_path):
    explanation = kept[0]
    again = dsage.load(explanation.save(tmp_path / "run.dsage"))
    pd.testing.assert_frame_equal(again.row_losses, explanation.row_losses)
    assert explanation.sampler.is_fitted
    assert again.sampler is None
    assert len(again.to_dict()["row_losses"]["gain"]) == 100


def test_rows_of_classes_and_groups_have_losses_without_their_weights():
    X, y = chain()
    X, y = X.to_numpy(), np.where(y > 0, "yes", "no")
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X[:200], y[:200])
    found = dsage.explain(
        model, X[:200], y[:200], X[200:], y[200:], groups={"g": ["X1", "X2"]}, graph=None,
        sampler="gaussian", n_orderings=4, keep_losses=True,
        sample_weight=np.arange(100.0), **QUIET,
    )  # fmt: skip
    p = model.predict_proba(X[200:])[np.arange(100), (y[200:] == "yes").astype(int)]
    np.testing.assert_allclose(found.row_losses["everything"], -np.log(p), rtol=1e-6)
    assert found.row_losses["nothing"].nunique() == 2


def test_losses_are_not_kept_unless_asked_for(explanation):
    assert explanation.row_losses is None


def test_a_notebook_shows_the_picture_and_no_open_figure(explanation):
    plt.close("all")
    html = explanation._repr_html_()
    (data,) = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    assert base64.b64decode(data)[:8] == b"\x89PNG\r\n\x1a\n"
    assert "<table>" in html
    assert plt.get_fignums() == []


def test_without_matplotlib_a_notebook_shows_the_table(explanation, monkeypatch):
    monkeypatch.setattr("dsage.result.pictures.find_spec", lambda _: None)
    html = replace(explanation)._repr_html_()
    assert "<img" not in html
    assert "<table>" in html
    assert "matplotlib" in sys.modules
