"""Draws as models see them: a frame like the one they were trained on, down to the categories."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from dsage.samplers import Auto, Marginal, Mix, Neighbors, Sequential

N_ROWS, N_DRAWS = 200, 4
SAMPLERS = {
    "Marginal": Marginal(),
    "Neighbors": Neighbors(),
    "Mix": Mix(random_state=0),
    "Sequential": Sequential(random_state=0),
    "Auto": Auto(candidates=[Sequential(), Marginal()], n_coalitions=3),
}
every = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)


def patients():
    """Rows with all kinds of columns, a level that never occurs, and a target of all of them."""
    rng = np.random.default_rng(0)
    ill = rng.normal(size=N_ROWS)
    ward = np.digitize(ill + rng.normal(size=N_ROWS), [-0.5, 0.5])
    frame = pd.DataFrame(
        {
            "age": np.rint(50 + 10 * ill).astype("int16"),
            "dose": np.exp(ill + 0.5 * rng.normal(size=N_ROWS)).astype("float32"),
            # Neither in the order of the alphabet nor all of them used.
            "ward": pd.Categorical.from_codes(ward, ["west", "east", "north", "attic"]),
            "grade": pd.Categorical.from_codes(
                np.digitize(ill, [-1, 1]), ["low", "mid", "high"], ordered=True
            ),
            "smokes": ill + rng.normal(size=N_ROWS) > 0.5,
        }
    )
    return frame, (ill + (ward == 1) + rng.normal(size=N_ROWS) > 0.5).astype(int)


def drawn(sampler, frame, known):
    """Draws of a fitted sampler, flat: codes, and the frame made of them."""
    noise = np.random.default_rng(1).random((N_ROWS, N_DRAWS, len(known)))
    codes = sampler.draw(frame, np.array(known), noise).reshape(-1, len(known))
    return codes, sampler.layout_.decode(codes)


@every
def test_lightgbm_takes_draws_with_the_categories_it_was_trained_on(sampler):
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    frame, y = patients()
    model = lightgbm.LGBMClassifier(n_estimators=20, min_child_samples=5, verbose=-1, n_jobs=1)
    model.fit(frame, y)
    sampler = clone(sampler).fit(frame)
    _, same = drawn(sampler, frame, [True] * 5)
    expected = np.repeat(model.predict_proba(frame), N_DRAWS, axis=0)
    np.testing.assert_array_equal(model.predict_proba(same), expected)
    codes, frames = drawn(sampler, frame, [True, False, False, False, False])
    assert frames.dtypes.equals(frame.dtypes)
    by_hand = pd.DataFrame(
        {
            "age": np.repeat(frame["age"].to_numpy(), N_DRAWS),
            "dose": codes[:, 1].astype("float32"),
            "ward": pd.Categorical.from_codes(codes[:, 2].astype(int), dtype=frame["ward"].dtype),
            "grade": pd.Categorical.from_codes(codes[:, 3].astype(int), dtype=frame["grade"].dtype),
            "smokes": codes[:, 4] == 1,
        }
    )
    answers = model.predict_proba(frames)
    np.testing.assert_array_equal(answers, model.predict_proba(by_hand))
    # The categories count: other ones, with the same codes, are other answers.
    other = by_hand.assign(ward=by_hand["ward"].cat.rename_categories(["east", "west", "a", "b"]))
    assert (model.predict_proba(other) != answers).any()


@every
@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_a_pipeline_of_column_transformers_takes_draws(sampler, convert):
    frame, y = patients()
    frame = convert(frame)
    prepare = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["age", "dose"]),
            # Both refuse levels that they were not fitted with.
            ("classes", OneHotEncoder(categories=[["attic", "east", "north", "west"]]), ["ward"]),
            ("grade", OrdinalEncoder(categories=[["low", "mid", "high"]]), ["grade"]),
        ],
        remainder="passthrough",
    )
    model = make_pipeline(prepare, LogisticRegression(max_iter=1000)).fit(frame, y)
    sampler = clone(sampler).fit(frame)
    _, same = drawn(sampler, frame, [True] * 5)
    assert type(same) is type(frame)
    expected = np.repeat(model.predict_proba(frame), N_DRAWS, axis=0)
    np.testing.assert_allclose(model.predict_proba(same), expected, rtol=1e-12)
    codes, frames = drawn(sampler, frame, [False, True, False, True, False])
    answers = model.predict_proba(frames)
    # polars declares no order of the levels: theirs is sorted, of those that occur.
    is_polars = isinstance(frame, pl.DataFrame)
    levels = ["east", "north", "west"] if is_polars else ["west", "east", "north", "attic"]
    for code, level in enumerate(levels):
        rows = codes[:, 2] == code
        if rows.any():
            told = (
                frames.with_columns(ward=pl.lit(level)) if is_polars else frames.assign(ward=level)
            )
            np.testing.assert_allclose(model.predict_proba(told)[rows], answers[rows], rtol=1e-12)
