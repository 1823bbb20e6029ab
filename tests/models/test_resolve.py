"""The model and its loss are resolved in one step, which also records them."""

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dsage.data.inputs import check_inputs
from dsage.models import LossReason, LossSource
from dsage.models.resolve import find_model

X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
Y = np.where(X["a"] > 0, "yes", "no")
CLASSIFIER = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)


def test_a_pipeline_is_recorded_with_its_steps_classes_and_chosen_loss():
    loss, source, model, info, reason = find_model(
        CLASSIFIER, "auto", None, check_inputs(X, Y, X, Y)
    )
    assert (loss.name, source) == ("cross_entropy", LossSource.CHOSEN)
    assert reason is LossReason.CLASSIFIER
    assert (model.name, info.name) == ("Pipeline", "Pipeline")
    assert info.type_name == "sklearn.pipeline.Pipeline"
    assert info.steps == ("StandardScaler", "LogisticRegression")
    assert info.classes == ("no", "yes")
    assert info.packages == ("sklearn",)
    assert json.loads(json.dumps(asdict(info)))["classes"] == ["no", "yes"]


def test_a_given_loss_and_a_function_are_recorded():
    y = X["a"].to_numpy()
    inputs = check_inputs(X, y, X, y)
    loss, source, _, info, reason = find_model(
        lambda rows: rows["a"], "absolute_error", None, inputs
    )
    assert (loss.name, source, reason) == ("absolute_error", LossSource.GIVEN, None)
    assert (info.name, info.steps, info.classes) == ("the function", (), None)


def test_labels_that_the_model_does_not_know_are_refused_with_their_argument():
    other = np.where(X["b"] > 0, "yes", "maybe")
    with pytest.raises(ValueError, match="got 'maybe'") as refused:
        find_model(CLASSIFIER, "auto", None, check_inputs(X, Y, X, other))
    assert "This is about y_test." in refused.value.__notes__
