"""What the target is taken for, and how to change it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import dsage as package
from dsage.cli.tables import Asked, take_target

FAST = (
    *("--sampler", "gaussian", "--tolerance", 0.4, "--resamples", 0, "--graph", "none"),
    "--no-sampler-check",
)
RNG = np.random.default_rng(0)


def column(values):
    return pd.Series(values, name="y")


# fmt: off
TARGETS = {
    "texts": (["u", "v", "w"] * 20, True, "its values are not numbers (3 different ones)."),
    "booleans": ([True, False] * 20, True, "its values are not numbers (2 different ones)."),
    "two numbers": ([0.5, 2.5] * 20, True, "it has two values (0.5, 2.5). If they are numbers, add --loss squared_error."),
    "few whole numbers": ([0, 1, 2] * 20, True, "it has only 3 different values, all whole numbers (0, 1, 2). If they are numbers, add --loss squared_error."),
    "whole floats": ([1.0, 2.0, 3.0] * 20, True, "it has only 3 different values"),
    "few fractions": ([0.0, 0.5, 1.0] * 20, False, "it has 3 different ones. If they are classes, add --discrete y."),
    "many whole numbers": (list(range(12)) * 20, False, "it has 12 different ones."),
    "few rows": ([0, 1, 2] * 9, False, "it has 3 different ones."),
    "numbers": (RNG.normal(size=60), False, "it has 60 different ones. If they are classes, add --discrete y."),
}
# fmt: on


@pytest.mark.parametrize(("values", "is_classification", "reason"), TARGETS.values(), ids=TARGETS)
def test_the_values_of_a_target_decide_where_nothing_else_does(values, is_classification, reason):
    taken = take_target(column(values))
    kind = "classes" if is_classification else "numbers"
    assert taken.is_classification == is_classification
    assert taken.text.startswith(f"The target 'y' is taken for {kind}: {reason}")


@pytest.mark.parametrize(
    ("asked", "kind", "reason"),
    [
        (Asked("--fit", "lm", False), "numbers", "--fit lm asks for them"),
        (Asked("--fit", "logistic", True), "classes", "--fit logistic asks for them"),
        (Asked("--loss", "pinball(0.9)", False), "numbers", "--loss 'pinball(0.9)' asks for them"),
        (Asked("--model", "m.skops", True), "classes", "the model in m.skops predicts them"),
    ],
)
def test_options_decide_about_numbers(asked, kind, reason):
    taken = take_target(column([0, 1, 2] * 20), asked=asked)
    assert taken.text == f"The target 'y' is taken for {kind}: {reason}."
    assert taken.is_classification == (kind == "classes")


def test_a_column_named_as_discrete_is_classes():
    taken = take_target(column(range(60)), said=Asked("--discrete", "y", True))
    assert taken == (True, "The target 'y' is taken for classes: --discrete y says so.")


@pytest.fixture(scope="module")
def iris():
    return load_iris(as_frame=True).frame.iloc[::2]


def test_codes_of_iris_are_classes_and_can_be_numbers(dsage, iris):
    iris.to_csv("iris.csv", index=False)
    options = ("--target", "target", "--fit", "hgb", *FAST, "--out", "run.dsage")
    ran = dsage("explain", "iris.csv", *options)
    assert ran.code == 0, ran.err
    assert "'target' is taken for classes: it has only 3 different values, all whole" in ran.err
    assert "add --loss squared_error" in ran.err
    assert package.load("run.dsage").choices.loss.name == "cross_entropy"
    ran = dsage("explain", "iris.csv", *options, "--loss", "squared_error")
    assert "'target' is taken for numbers: --loss squared_error asks for them." in ran.err
    assert package.load("run.dsage").choices.loss.name == "squared_error"


def test_quiet_hides_it(dsage, iris):
    iris.to_csv("iris.csv", index=False)
    ran = dsage("explain", "iris.csv", "--target", "target", "--fit", "lm", *FAST, "--quiet")
    assert ran.err == ""
