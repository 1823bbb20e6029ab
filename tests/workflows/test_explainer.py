"""`Explainer`: graph and sampler learned once, for many models."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

import dsage
from dsage import Explainer
from dsage.data.inputs import check_inputs
from dsage.estimate import PlanOptions
from dsage.games import GameOptions
from dsage.samplers import Gaussian
from dsage.samplers.info import SamplerSource
from dsage.structure.info import GraphSource
from explain_case import CHECKED, QUIET, chain, mixed


@pytest.fixture(scope="module")
def rows():
    X, y = chain()
    return X[:200], y[:200], X[200:], y[200:]


@pytest.fixture(scope="module")
def model(rows):
    return LinearRegression().fit(*rows[:2])


@pytest.fixture(scope="module")
def explainer(rows):
    return Explainer(sampler="gaussian", graph="learn", **QUIET).fit(*rows[:2])


def test_an_explainer_says_the_same_as_explain(model, rows):
    rows = tuple(each[:70] for each in rows)
    options = {"sampler": "auto", "graph": "auto", "n_orderings": 8, "exact": "never", **CHECKED}
    at_once = dsage.explain(model, *rows, **options)
    explainer = Explainer(**options).fit(*rows[:2], model=model)
    in_steps = explainer.explain(model, *rows[2:])
    np.testing.assert_array_equal(in_steps.values, at_once.values)
    np.testing.assert_array_equal(in_steps.se, at_once.se)
    pd.testing.assert_frame_equal(in_steps.to_frame(), at_once.to_frame())
    assert in_steps.choices.sampler == at_once.choices.sampler
    assert in_steps.choices.graph.is_used == at_once.choices.graph.is_used
    # The sampler was chosen in the terms of the model.
    assert explainer.sampler_scores_["msev"].notna().any()


def test_options_are_those_of_explain_with_its_defaults():
    of_run = {"checkpoint", "rng"}
    own = {**dsage.explain.__kwdefaults__}
    engine = {
        name: getattr(kind, name) for kind in (GameOptions, PlanOptions) for name in kind.names()
    }
    expected = {**engine, **own}
    expected.pop("sample_weight")
    assert Explainer().get_params() == {k: v for k, v in expected.items() if k not in of_run}


def test_an_explainer_can_be_cloned_changed_and_pickled(explainer, model, rows):
    copy = clone(explainer)
    assert not hasattr(copy, "sampler_")
    assert copy.set_params(tolerance=0.1).tolerance == 0.1
    assert explainer.tolerance is None
    again = pickle.loads(pickle.dumps(explainer))
    one, other = (each.explain(model, *rows[2:]) for each in (explainer, again))
    np.testing.assert_array_equal(one.values, other.values)


def test_parts_are_learned_once_and_used_for_each_model(explainer, model, rows, monkeypatch):
    monkeypatch.setattr(Gaussian, "_fit", lambda *_: pytest.fail("fitted again"))
    monkeypatch.setattr(
        "dsage.structure.resolve.search_graph", lambda *_, **__: pytest.fail("learned")
    )
    for each in (model, Ridge(50.0).fit(*rows[:2])):
        found = explainer.explain(each, *rows[2:])
        assert found.sampler is explainer.sampler_
        assert found.graph is explainer.graph_
        assert found.choices.graph.source is GraphSource.LEARNED
        assert found.choices.sampler.source is SamplerSource.NAMED
        assert found.choices.run.random_state == str(explainer.seed_)


def test_a_new_seed_is_drawn_once_and_kept(model, rows):
    options = {"graph": None, "sampler": "gaussian", "sampler_check": False, "progress": False}
    explainer = Explainer(**options, n_orderings=4, exact="never").fit(*rows[:2])
    one, other = (explainer.explain(model, *rows[2:]) for _ in range(2))
    np.testing.assert_array_equal(one.values, other.values)


def test_without_a_model_the_energy_score_decides(rows):
    explainer = Explainer(graph=None, **QUIET).fit(rows[0][["a", "b"]][:60], rows[1][:60])
    assert explainer.sampler_scores_["energy_score"].notna().any()
    assert explainer.sampler_scores_["msev"].isna().all()


def test_parts_of_an_explanation_serve_another_call(explainer, model, rows):
    found = explainer.explain(model, *rows[2:])
    again = dsage.explain(model, *rows, sampler=found.sampler, graph=found.graph, **QUIET)
    np.testing.assert_array_equal(again.values, found.values)
    parts = {"sampler": explainer.sampler_, "graph": explainer.graph_}
    third = dsage.explain(model, *rows, **parts, **QUIET)
    np.testing.assert_array_equal(third.values, found.values)
    assert again.choices.sampler.source is SamplerSource.GIVEN


def test_options_of_a_run_can_be_changed(explainer, model, rows):
    weights = np.arange(100.0) + 1.0
    found = explainer.explain(model, *rows[2:], sample_weight=weights, keep_losses=True)
    assert found.choices.estimate.is_weighted
    assert len(found.row_losses) == 100


@pytest.mark.parametrize(
    ("y", "options", "is_class"),
    [
        (np.array(["a", "b"] * 30), {}, True),
        (np.array([True, False] * 30), {}, True),
        (np.array([0, 1, 2] * 20), {}, True),
        (np.array([0.5, 1.5] * 30), {}, False),
        (np.arange(60), {}, False),
        (np.array([0, 1, 2] * 20), {"loss": "squared_error"}, False),
        (np.arange(60), {"classes": list(range(60))}, True),
    ],
)
def test_the_target_is_a_class_where_that_shows(y, options, is_class):
    X = np.random.default_rng(0).normal(size=(60, 2))
    assert Explainer(**options)._is_class(check_inputs(X, y, X, y)) is is_class


def test_a_classifier_is_explained_without_having_been_seen():
    X, y = mixed()
    model = LogisticRegression().fit(X[["size"]], y)

    def probability(frame):
        return model.predict_proba(frame[["size"]])

    explainer = Explainer(sampler="marginal", n_orderings=8, classes=list(model.classes_), **QUIET)
    found = explainer.fit(X[:160], y[:160]).explain(probability, X[160:], y[160:])
    assert found.to_frame()["feature"][0] == "size"
    assert found.choices.loss.name == "cross_entropy"


def test_an_explainer_that_is_not_fitted_says_so(model, rows):
    with pytest.raises(NotFittedError):
        Explainer().explain(model, *rows[2:])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sampler": "gaussian"}, "sampler must be an option of the explainer itself"),
        ({"rng": 3}, "rng must be an option of the explainer itself"),
        ({"tolerence": 0.1}, "Did you mean 'tolerance'"),
    ],
)
def test_what_was_learned_cannot_be_changed_afterwards(explainer, model, rows, options, text):
    with pytest.raises(ValueError, match=text):
        explainer.explain(model, *rows[2:], **options)


def test_other_columns_are_refused(explainer, model, rows):
    X = rows[2].rename(columns={"d": "e"})
    with pytest.raises(ValueError, match="'d'"):
        explainer.explain(model, X, rows[3])


def test_bad_options_are_named_when_it_is_fitted(rows):
    for options, text in (
        ({"sampler": "gausian"}, "Did you mean 'gaussian'"),
        ({"estimand": "dsage"}, "Did you mean 'd-sage'"),
        ({"tolerance": 2}, "tolerance must be in"),
    ):
        with pytest.raises(ValueError, match=text), warnings.catch_warnings():
            Explainer(**{**QUIET, **options}).fit(*rows[:2])
