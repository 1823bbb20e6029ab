"""Parity with bnlearn 5.2.1 (R 4.2.2): scores of fixed, empty and learned structures."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris

from dsage.graphs import Graph
from dsage.structure.scores.choose import choose_score, graph_score

# bnlearn's figures are known to ten digits after the point.
RELATIVE = 1e-10


@functools.cache
def data(name: str) -> pd.DataFrame:
    if name == "iris_mixed":
        frame = load_iris(as_frame=True).frame
        frame.columns = [
            column.replace(" ", "_").replace("(", "").replace(")", "") for column in frame.columns
        ]
        return frame.assign(target=frame["target"].astype(str))
    frame = load_diabetes(as_frame=True).frame
    return frame if name == "diabetes" else frame.apply(_three_classes).astype(str)


def _three_classes(column: pd.Series) -> pd.Series:
    order = np.argsort(column.to_numpy(), kind="stable")
    ranks = np.argsort(order, kind="stable")
    return pd.Series(3 * ranks // len(column), index=column.index)


def graph_of(name: str, arcs: str) -> Graph:
    edges = [tuple(arc.split(" > ")) for arc in arcs.split(", ")] if arcs else []
    return Graph(data(name).columns, edges)


DIABETES = "bmi > target, s5 > target, bp > target, age > bp, s1 > s2"
IRIS = (
    "target > petal_length_cm, target > petal_width_cm, petal_length_cm > petal_width_cm, "
    "target > sepal_length_cm, petal_length_cm > sepal_length_cm"
)

FIXED = [
    ("diabetes", "loglik", {}, 5173.9894672009),
    ("diabetes", "bic", {}, 5091.7567837929),
    ("diabetes", "aic", {}, 5146.9894672009),
    ("diabetes", "bge", {}, 3944.8044720978),
    ("diabetes_disc3", "loglik", {}, -4963.6915316494),
    ("diabetes_disc3", "bic", {}, -5213.4352368146),
    ("diabetes_disc3", "aic", {}, -5045.6915316494),
    ("diabetes_disc3", "k2", {}, -5101.1634012631),
    ("diabetes_disc3", "bde", {}, -5267.9023180664),
    ("diabetes_disc3", "bdeu", {"iss": 5.0}, -5170.2283224582),
    ("diabetes_disc3", "bdeu", {"iss": 10.0}, -5136.7408312682),
    ("iris_mixed", "loglik", {}, -278.6949781336),
    ("iris_mixed", "bic", {}, -348.8438722509),
    ("iris_mixed", "aic", {}, -306.6949781336),
]

EMPTY = [
    ("diabetes", "bic", 4575.9100731163),
    ("diabetes", "aic", 4620.9144818191),
    ("diabetes", "bge", 3744.4801408523),
    ("diabetes_disc3", "bic", -5408.4324880342),
    ("diabetes_disc3", "aic", -5363.4280793314),
    ("diabetes_disc3", "bde", -5414.7006310141),
    ("diabetes_disc3", "k2", -5398.7763372489),
    ("iris_mixed", "bic", -930.8692514013),
    ("iris_mixed", "aic", -915.8160749308),
]

# Structures that bnlearn's tabu search found: families of up to ten parents.
LEARNED = [
    (
        "diabetes",
        "bic",
        6351.9758872512,
        (
            "s1 > s2, s3 > s4, s1 > s4, s3 > s2, s5 > s2, s5 > s6, s5 > target, s1 > s5, s3 > "
            "bmi, bmi > s6, s6 > age, s3 > s5, s1 > age, s1 > target, s4 > s2, s2 > bmi, s3 > "
            "sex, target > sex, s2 > target, target > bmi, bp > sex, bp > age, s5 > bp, bp > "
            "s6, bp > bmi, s4 > s6, bp > target"
        ),
    ),
    (
        "diabetes",
        "bge",
        4332.3328827590,
        (
            "s1 > s2, s3 > s4, bmi > target, s2 > s4, target > s5, s5 > s1, target > bp, s5 > "
            "s6, s5 > s4, target > s3, sex > s3, bp > age, bp > s6, s3 > s2, s1 > s4, s4 > s6, "
            "s6 > age, s3 > s5, s3 > s1, bmi > s6, bp > s5, s1 > age, bmi > bp, bmi > s3, bmi > "
            "s1, sex > s4, bmi > s5, bmi > s4, s1 > s6, sex > age, bp > s1, sex > s6, sex > s2, "
            "s5 > s2, bmi > s2, s5 > age, bp > s3, sex > s5, s2 > age, bmi > sex, s2 > s6, s3 > "
            "s6, bp > s4, bp > s2, s3 > age, s4 > age, sex > s1, bmi > age, sex > bp"
        ),
    ),
    (
        "diabetes_disc3",
        "bic",
        -4723.6340618694,
        (
            "s4 > s5, s5 > target, target > bmi, s5 > s6, target > bp, bp > age, s4 > sex, s4 > "
            "s2, s4 > s3, s1 > s3, s2 > s1"
        ),
    ),
    (
        "diabetes_disc3",
        "bde",
        -4742.4603527078,
        (
            "s4 > s5, s5 > target, target > bmi, s5 > s6, target > bp, s4 > s2, bp > age, s4 > "
            "sex, s4 > s3, s1 > s3, s2 > s1"
        ),
    ),
    (
        "diabetes_disc3",
        "k2",
        -4649.8372353688,
        (
            "s1 > s2, s3 > s4, s1 > s4, s4 > s5, s5 > target, target > bmi, s5 > s6, target > "
            "bp, s4 > s2, bp > age, s4 > sex, s4 > bmi, s1 > s5, s2 > s5, s6 > bp, s4 > s6"
        ),
    ),
    (
        "iris_mixed",
        "bic",
        -283.4909081202,
        (
            "target > petal_length_cm, target > petal_width_cm, petal_length_cm > "
            "sepal_length_cm, target > sepal_width_cm, sepal_width_cm > sepal_length_cm, "
            "petal_length_cm > petal_width_cm, petal_width_cm > sepal_width_cm, petal_width_cm "
            "> sepal_length_cm"
        ),
    ),
    (
        "iris_mixed",
        "aic",
        -228.5829971976,
        (
            "target > petal_length_cm, target > petal_width_cm, petal_length_cm > "
            "sepal_length_cm, target > sepal_width_cm, sepal_length_cm > sepal_width_cm, "
            "petal_length_cm > petal_width_cm, target > sepal_length_cm, petal_width_cm > "
            "sepal_width_cm"
        ),
    ),
]


@pytest.mark.parametrize(("name", "score", "options", "expected"), FIXED)
def test_a_fixed_structure_scores_as_in_bnlearn(name, score, options, expected):
    graph = graph_of(name, IRIS if name == "iris_mixed" else DIABETES)
    reached = graph_score(choose_score(data(name), score, **options), graph)
    assert reached == pytest.approx(expected, rel=RELATIVE)


@pytest.mark.parametrize(("name", "score", "expected"), EMPTY)
def test_the_empty_graph_scores_as_in_bnlearn(name, score, expected):
    reached = graph_score(choose_score(data(name), score), graph_of(name, ""))
    assert reached == pytest.approx(expected, rel=RELATIVE)


@pytest.mark.parametrize(("name", "score", "expected", "arcs"), LEARNED)
def test_a_learned_structure_scores_as_in_bnlearn(name, score, expected, arcs):
    reached = graph_score(choose_score(data(name), score), graph_of(name, arcs))
    assert reached == pytest.approx(expected, rel=RELATIVE)
