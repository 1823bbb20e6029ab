"""Whether the target is treated as classes or numbers, and how to change it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import dsage as package
from dsage.cli.tables import TargetRequest, decide_target

FAST = (
    *("--sampler", "gaussian", "--tolerance", 0.4, "--resamples", 0, "--graph", "none"),
    "--no-sampler-check",
)
RNG = np.random.default_rng(0)


def column(values):
    return pd.Series(values, name="y")


# fmt: off
TARGETS = {
    "texts": (["u", "v", "w"] * 20, True, "its 3 different values are not numbers."),
    "booleans": ([True, False] * 20, True, "its 2 different values are not numbers."),
    "two numbers": ([0.5, 2.5] * 20, True, "it has two values (0.5, 2.5). If they are numbers, add --loss squared_error."),
    "few whole numbers": ([0, 1, 2] * 20, True, "it has only 3 different values, all whole numbers (0, 1, 2). If they are numbers, add --loss squared_error."),
    "whole floats": ([1.0, 2.0, 3.0] * 20, True, "it has only 3 different values"),
    "few fractions": ([0.0, 0.5, 1.0] * 20, False, "it has 3 different values. If they are classes, add --discrete y."),
    "many whole numbers": (list(range(12)) * 20, False, "it has 12 different values."),
    "few rows": ([0, 1, 2] * 9, False, "it has 3 different values."),
    "numbers": (RNG.normal(size=60), False, "it has 60 different values. If they are classes, add --discrete y."),
}
# fmt: on


@pytest.mark.parametrize(("values", "is_classification", "reason"), TARGETS.values(), ids=TARGETS)
def test_the_values_of_a_target_decide_where_nothing_else_does(values, is_classification, reason):
    found = decide_target(column(values))
    kind = "classes" if is_classification else "numbers"
    assert found.is_classification == is_classification
    assert f"'y' is treated as {kind}: {reason}" in found.text


@pytest.mark.parametrize(
    ("option", "kind", "reason"),
    [
        (TargetRequest("--fit", "lm", False), "numbers", "--fit lm "),
        (TargetRequest("--fit", "logistic", True), "classes", "--fit logistic "),
        (TargetRequest("--loss", "pinball(0.9)", False), "numbers", "--loss 'pinball(0.9)' "),
        (TargetRequest("--model", "m.skops", True), "classes", "the model in m.skops "),
    ],
)
def test_options_decide_about_numbers(option, kind, reason):
    found = decide_target(column([0, 1, 2] * 20), request=option)
    assert f"'y' is treated as {kind}: {reason}" in found.text
    assert found.is_classification == (kind == "classes")


def test_a_column_named_as_discrete_is_classes():
    found = decide_target(column(range(60)), declared=TargetRequest("--discrete", "y", True))
    assert found.is_classification
    assert "'y' is treated as classes" in found.text
    assert "--discrete y" in found.text


@pytest.fixture(scope="module")
def iris():
    return load_iris(as_frame=True).frame.iloc[::2]


def test_codes_of_iris_are_classes_and_can_be_numbers(dsage, iris):
    iris.to_csv("iris.csv", index=False)
    options = ("--target", "target", "--fit", "hgb", *FAST, "--out", "run.dsage")
    ran = dsage("explain", "iris.csv", *options)
    assert ran.code == 0, ran.err
    assert "'target' is treated as classes: it has only 3 different values, all whole" in ran.err
    assert "add --loss squared_error" in ran.err
    assert package.load("run.dsage").choices.loss.name == "cross_entropy"
    ran = dsage("explain", "iris.csv", *options, "--loss", "squared_error")
    assert "'target' is treated as numbers: --loss squared_error" in ran.err
    assert package.load("run.dsage").choices.loss.name == "squared_error"


def test_quiet_hides_it(dsage, iris):
    iris.to_csv("iris.csv", index=False)
    ran = dsage("explain", "iris.csv", "--target", "target", "--fit", "lm", *FAST, "--quiet")
    assert ran.err == ""
