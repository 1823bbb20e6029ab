"""Functions of rows: the loss that suits what they return, and labels as votes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from dsage.data.inputs import check_inputs
from dsage.games import LossGame
from dsage.models import LossReason, as_model, choose_loss
from dsage.models.losses import decide_loss
from dsage.models.resolve import find_model
from dsage.samplers import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 2))
CODES = (X[:, 0] + 0.3 * RNG.normal(size=90) > 0).astype(int)
THREE = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=90), [-0.5, 0.5])
NAMES = np.array(["lo", "mid", "hi"])[THREE]
BINARY, TERNARY = LogisticRegression().fit(X, CODES), LogisticRegression().fit(X, THREE)
NAMED, TREE = LogisticRegression().fit(X, NAMES), DecisionTreeClassifier().fit(X, CODES)


def second(rows):
    return BINARY.predict_proba(rows)[:, 1]


CHOICES = {
    "probabilities of two": (BINARY.predict_proba, CODES, "cross_entropy", LossReason.PROBABILITIES),
    "of booleans": (BINARY.predict_proba, CODES > 0, "cross_entropy", LossReason.PROBABILITIES),
    "of floats": (BINARY.predict_proba, CODES.astype(float), "cross_entropy", LossReason.PROBABILITIES),
    "of the second": (second, CODES, "cross_entropy", LossReason.PROBABILITIES),
    "of the second, in a column": (lambda rows: second(rows)[:, None], CODES, "cross_entropy", LossReason.PROBABILITIES),
    "of the second of booleans": (second, CODES > 0, "cross_entropy", LossReason.PROBABILITIES),
    "of three": (TERNARY.predict_proba, THREE, "cross_entropy", LossReason.PROBABILITIES),
    "of three names": (NAMED.predict_proba, NAMES, "cross_entropy", LossReason.PROBABILITIES),
    "of the second of two names": (second, np.where(CODES, "yes", "no"), "cross_entropy", LossReason.CLASSES),
    "names": (NAMED.predict, NAMES, "zero_one", LossReason.LABELS),
    "names in a column": (lambda rows: NAMED.predict(rows)[:, None].astype(object), NAMES, "zero_one", LossReason.LABELS),
    "codes": (BINARY.predict, CODES, "zero_one", LossReason.LABELS),
    "codes of booleans": (lambda rows: second(rows) > 0.5, CODES > 0, "zero_one", LossReason.LABELS),
    "certain probabilities": (lambda rows: TREE.predict_proba(rows)[:, 1], CODES, "zero_one", LossReason.LABELS),
    "three codes": (TERNARY.predict, THREE, "zero_one", LossReason.LABELS),
    "numbers": (lambda rows: rows[:, 0], X[:, 0], "squared_error", LossReason.NUMBERS),
    "numbers for codes": (lambda rows: rows[:, 0], CODES, "squared_error", LossReason.NUMBERS),
    "whole numbers for numbers": (lambda rows: rows[:, 0].astype(int), X[:, 0], "squared_error", LossReason.NUMBERS),
    "whole numbers that are no labels": (lambda rows: TERNARY.predict(rows) + 7, THREE, "squared_error", LossReason.NUMBERS),
    "shares for numbers": (second, X[:, 0], "squared_error", LossReason.NUMBERS),
}  # fmt: skip


@pytest.mark.parametrize(("function", "y", "name", "reason"), CHOICES.values(), ids=CHOICES)
def test_the_loss_of_a_function_is_chosen_by_what_it_returns(function, y, name, reason):
    found = decide_loss(function, y, X)
    assert (found.loss.name, found.reason) == (name, reason)
    assert choose_loss(function, y, X).name == name


def test_an_object_with_predict_alone_is_asked_like_a_function():
    class Wrapped:
        def predict(self, rows):
            return BINARY.predict_proba(rows)

    assert decide_loss(Wrapped(), CODES, X).reason is LossReason.PROBABILITIES


def test_counts_of_many_values_are_no_labels():
    counts = np.arange(90) // 3
    assert choose_loss(lambda rows: counts[: len(rows)], counts, X).name == "squared_error"


def test_without_rows_the_target_decides():
    assert choose_loss(BINARY.predict_proba, CODES).name == "squared_error"


def test_a_function_that_fails_is_named():
    def fails(rows):
        raise RuntimeError("out of order")

    with pytest.raises(RuntimeError, match="out of order") as caught:
        choose_loss(fails, CODES, X)
    assert "Raised by fails" in caught.value.__notes__[0]


# Votes

VOTES = {
    "texts": (NAMED.predict, ["hi", "lo", "mid"]),
    "objects": (lambda rows: NAMED.predict(rows).astype(object), ["hi", "lo", "mid"]),
    "a column": (lambda rows: NAMED.predict(rows)[:, None], ["hi", "lo", "mid"]),
    "a series": (lambda rows: pd.Series(NAMED.predict(rows)), ["hi", "lo", "mid"]),
    "codes": (TERNARY.predict, [0, 1, 2]),
    "floats": (lambda rows: TERNARY.predict(rows).astype(float), [0, 1, 2]),
    "two codes": (BINARY.predict, [0, 1]),
    "two other floats": (lambda rows: BINARY.predict(rows) + 1.0, [1, 2]),
    "booleans": (lambda rows: second(rows) > 0.5, [False, True]),
    "booleans for codes": (lambda rows: second(rows) > 0.5, [0, 1]),
}


@pytest.mark.parametrize(("function", "classes"), VOTES.values(), ids=VOTES)
def test_labels_are_votes_for_zero_one(function, classes):
    model = as_model(function, "zero_one", classes=classes)
    labels = np.asarray(function(X)).ravel()
    expected = np.stack([labels == label for label in classes], axis=1)
    np.testing.assert_array_equal(model.predict(X), expected)
    assert model.has_voted


@pytest.mark.parametrize("function", [BINARY.predict_proba, second])
def test_probabilities_are_no_votes(function):
    model = as_model(function, "zero_one", classes=[0, 1])
    np.testing.assert_array_equal(model.predict(X), function(X))
    assert not model.has_voted


def test_labels_that_are_no_class_are_refused():
    model = as_model(NAMED.predict, "zero_one", classes=["hi", "lo"])
    with pytest.raises(
        ValueError, match=r"one of the classes, 'hi', 'lo'; got \['mid'\].*classes="
    ):
        model.predict(X)


def test_labels_are_refused_by_losses_of_probabilities():
    model = as_model(NAMED.predict, "cross_entropy", classes=["hi", "lo", "mid"])
    with pytest.raises(TypeError, match='must be probabilities for cross_entropy; got "labels'):
        model.predict(X)


@pytest.mark.parametrize(
    ("function", "y"), [(NAMED.predict, NAMES), (TERNARY.predict, THREE), (BINARY.predict, CODES)]
)
def test_the_classes_of_votes_are_found_in_the_target(function, y):
    model = find_model(function, "zero_one", None, check_inputs(X, y, X, y)).model
    assert model.classes.tolist() == sorted(set(y.tolist()))
    wrong = 1 - model.predict(X)[np.arange(90), np.searchsorted(model.classes, y)]
    np.testing.assert_array_equal(wrong, function(X) != y)


def test_a_chosen_loss_of_votes_is_told():
    with pytest.warns(
        UserWarning, match="LogisticRegression.predict returns classes, .*loss='zero_one'"
    ):
        found = find_model(NAMED.predict, "auto", None, check_inputs(X, NAMES, X, NAMES))
    assert (found.loss.name, found.loss_reason) == ("zero_one", LossReason.LABELS)


def test_named_classes_make_a_target_of_numbers_one_of_classes():
    y = CODES + 1
    found = find_model(second, "auto", [1, 2], check_inputs(X, y, X, y))
    assert (found.loss.name, found.loss_reason) == ("cross_entropy", LossReason.CLASSES)


# Games


def test_games_choose_like_explain():
    sampler = Gaussian().fit(X)
    game = LossGame(BINARY.predict_proba, sampler, X, CODES)
    assert game.loss.name == "cross_entropy"
    votes = LossGame(NAMED.predict, sampler, X, NAMES)
    assert votes.loss.name == "zero_one"
    same = LossGame(NAMED.predict_proba, sampler, X, NAMES, loss="zero_one")
    everything = np.ones((1, 2), dtype=bool)
    np.testing.assert_array_equal(
        votes.risks(everything, np.arange(90)).mean(axis=2),
        same.risks(everything, np.arange(90)).mean(axis=2),
    )


def test_the_loss_of_a_model_is_its_own():
    model = as_model(second, "brier", classes=[0, 1])
    assert LossGame(model, Gaussian().fit(X), X, CODES).loss.name == "brier"
    assert find_model(model, "auto", None, check_inputs(X, CODES, X, CODES)).loss.name == "brier"
