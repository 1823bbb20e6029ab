"""Draws are values that can occur, whatever the sampler's distribution."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dsage.samplers import SAMPLERS, BaseSampler, Gaussian, GaussianCopula, normal_scores
from mix_stand_in import near_rows  # noqa: F401


def whole_numbers(n_rows=300):
    """Numbers, whole numbers, codes and a one-hot class, all dependent."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal(n_rows)
    species = np.digitize(a + rng.standard_normal(n_rows), [-0.5, 0.5])
    return pd.DataFrame(
        {
            "a": a,
            "count": rng.poisson(np.exp(1 + a)),
            "grade": np.digitize(a + rng.standard_normal(n_rows), [-1, 1]) * 5.0,
            **{f"is_{k}": (species == k).astype(int) for k in range(3)},
        }
    )


X = whole_numbers()
NOISE = np.random.default_rng(1).random((40, 6, X.shape[1]))


def coalitions(n_features, n_random=12):
    masks = np.random.default_rng(2).random((n_random, n_features)) < 0.5
    return [np.zeros(n_features, bool), np.ones(n_features, bool), *masks]


def assert_possible(draws):
    count, grade, species = draws[..., 1], draws[..., 2], draws[..., 3:]
    assert (count == np.rint(count)).all()
    assert count.min() >= X["count"].min()
    assert count.max() <= X["count"].max()
    assert np.isin(grade, [0.0, 5.0, 10.0]).all()
    assert np.isin(species, [0.0, 1.0]).all()
    assert (species.sum(axis=-1) == 1).all()


@pytest.mark.parametrize("kind", [Gaussian, GaussianCopula])
@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
def test_parametric_draws_are_moved_to_possible_values(kind):
    sampler = kind().fit(X)
    for known in coalitions(6):
        draws = sampler.draw(X[:40], known, NOISE)
        assert_possible(draws)
        np.testing.assert_array_equal(
            draws[:, :, known], np.repeat(X.to_numpy()[:40, None, known], 6, axis=1)
        )


@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
def test_draws_from_scores_are_moved_in_the_same_way():
    sampler = Gaussian().fit(X)
    for known in coalitions(6):
        scores = normal_scores(NOISE)
        np.testing.assert_array_equal(
            sampler.draw_scores(X[:40], known, scores), sampler.draw(X[:40], known, NOISE)
        )


@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
def test_draws_along_an_ordering_are_moved_but_the_next_step_goes_on_from_those_that_are_not():
    sampler = Gaussian().fit(X)
    free = Gaussian.from_moments(sampler.mean_, sampler.covariance_, list(X.columns))
    order, scores = [4, 0, 2, 3, 1, 5], normal_scores(NOISE)
    steps = zip(
        sampler.ordering(order).prefixes(X[:40], scores),
        free.ordering(order).prefixes(X[:40].astype(float), scores),
        strict=True,
    )
    for (length, moved), (_, as_they_are) in steps:
        known = np.isin(np.arange(6), order[:length])
        assert_possible(moved)
        expected = as_they_are.copy()
        sampler.layout_.possible.snap(expected, known)
        np.testing.assert_allclose(moved, expected, rtol=0, atol=1e-12)
        assert not moved.flags.writeable


class Between(BaseSampler):
    """Draws that lie just above the middle of two codes."""

    def _fit(self, X):
        pass

    def _draw(self, X, known, noise):
        return np.full((*noise.shape[:2], int((~known).sum())), 0.5 + 2.0**-40)


def test_draws_are_moved_before_they_are_rounded_to_single_precision():
    codes = np.repeat([[0.0], [1.0]], 20, axis=0)
    draws = (
        Between(dtype=np.float32).fit(codes).draw(codes[:1], np.zeros(1, bool), NOISE[:1, :1, :1])
    )
    assert draws.dtype == np.float32
    assert draws.item() == 1.0


@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
def test_the_mean_is_that_of_the_distribution():
    sampler = Gaussian().fit(X)
    nothing = np.zeros(6, bool)
    np.testing.assert_allclose(sampler.mean(X[:1], nothing)[0], X.mean())


@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
def test_draws_that_have_to_be_moved_are_not_made_on_a_device():
    assert Gaussian().fit(X[["a"]].to_numpy()).draws_on_device
    sampler = Gaussian().fit(X)
    assert not sampler.draws_on_device
    with pytest.raises(TypeError, match="sampler must be one that draws on a device"):
        sampler.on_device("cpu", None)


# Every kind of column, with every sampler that takes it


def every_kind(n_rows=240, seed=0):
    """A frame with a column of each kind, all dependent."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(n_rows)

    def near(spread=1.0):
        return z + spread * rng.standard_normal(n_rows)

    color = np.digitize(near(), [-0.7, 0.7])
    number, kind = near(), np.digitize(near(), [-1, 0, 1])
    gap = rng.random(n_rows) < np.where(z < 0, 0.4, 0.05)
    return pd.DataFrame(
        {
            "number": number,
            "whole": rng.poisson(np.exp(1 + 0.5 * z)),
            "codes": np.digitize(near(), [-1, 0.5]) * 2.5,
            "when": pd.Timestamp("2020-02-28") + pd.to_timedelta(np.rint(near() * 200), "D"),
            "lasting": pd.to_timedelta(np.rint(np.exp(z) * 1000), "s"),
            "fixed": 0.1 + 0.2,
            "copy": number,
            **{f"one_{k}": (color == k).astype("int8") for k in range(3)},
            **{f"or_none_{k}": 1.0 * (kind == k) for k in range(2)},
            "gap": np.where(gap, np.nan, near()),
            "gap_whole": pd.array(np.where(gap, None, rng.poisson(3, n_rows)), "Int64"),
            "gap_codes": np.where(gap, np.nan, (near() > 0) * 4.0),
            "nothing": np.nan,
            "flag": near() > 0.3,
            "word": np.array(["x", "y", "z"])[np.digitize(near(), [-0.5, 0.5])],
            "size": pd.Categorical(
                np.array(["s", "m", "l"])[color], ["s", "m", "l", "xl"], ordered=True
            ),
            "city": np.char.add("c", np.digitize(near(), np.linspace(-2, 2, 59)).astype(str)),
            "gap_word": np.where(gap, None, np.where(near() > 0, "u", "v")),
            **{f"is_{k}": kind == k for k in range(4)},
        }
    )


FRAME = every_kind()
CLASSES = ["flag", "word", "size", "city", "gap_word", "is_0", "is_1", "is_2", "is_3"]
COLUMNS = {
    "numbers": [name for name in FRAME if name not in CLASSES],
    "classes": CLASSES,
    "mixed": list(FRAME),
}
OPTIONS = {
    "mixture": {"n_components": 2, "covariance_type": "diag"},
}
# Looked up here: the stand-in takes the place of the mixture that fills gaps.
REGISTERED = {name: (SAMPLERS[name], SAMPLERS.traits(name)["fits"]) for name in SAMPLERS}
EVERY = [(name, data) for name, (_, fits) in REGISTERED.items() for data in fits]


def fit_to(name, frame):
    kind, _ = REGISTERED[name]
    seed = {"random_state": 0} if "random_state" in kind().get_params() else {}
    with warnings.catch_warnings():
        # Of constants, copies and identifiers, which are there on purpose.
        warnings.simplefilter("ignore")
        return kind(**seed, **OPTIONS.get(name, {})).fit(frame)


def assert_observed(layout, draws, training, unknown):
    """No value of unknown columns, and no pattern of exclusive ones, that training does not have."""
    flat, seen = draws.reshape(-1, draws.shape[-1]), layout.encode(training)
    for at in np.flatnonzero(unknown):
        name, kind = layout.names[at], layout.value_kinds[at]
        drawn, known = (each[~np.isnan(each)] for each in (flat[:, at], seen[:, at]))
        assert len(drawn) == len(flat) or layout.may_miss[at]
        if kind in ("class", "ordered class", "boolean", "codes"):
            assert np.isin(drawn, known).all(), name
        elif kind in ("integer", "time") and len(drawn):
            assert (drawn == np.rint(drawn)).all(), name
            assert drawn.min() >= known.min(), name
            assert drawn.max() <= known.max(), name
    for each in layout.exclusive:
        patterns = {tuple(line) for line in each.states.tolist()}
        assert {tuple(line) for line in flat[:, each.columns].tolist()} <= patterns


@pytest.mark.usefixtures("near_rows")
@pytest.mark.parametrize(("name", "data"), EVERY)
def test_no_sampler_draws_what_cannot_occur(name, data):
    training = FRAME[COLUMNS[data]]
    sampler = fit_to(name, training)
    n_blocks = {"numbers": 2, "classes": 1, "mixed": 3}[data]
    assert len(sampler.layout_.exclusive) == n_blocks
    n_features = training.shape[1]
    rows = every_kind(8, seed=1)[COLUMNS[data]]
    noise = np.random.default_rng(3).uniform(1e-9, 1, (8, 4, n_features))
    for known in coalitions(n_features):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draws = sampler.draw(rows, known, noise)
        encoded = sampler.layout_.extend(rows).encode(rows)
        np.testing.assert_array_equal(draws[:, 0][:, known], encoded[:, known])
        assert_observed(sampler.layout_, draws, training, ~known)


@pytest.mark.usefixtures("near_rows")
@pytest.mark.parametrize(("name", "data"), EVERY)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_draws_are_decoded_to_the_types_of_the_training_rows(name, data, library):
    training = FRAME[COLUMNS[data]]
    if library == "polars":
        training = pl.from_pandas(training)
        if "when" in training.columns:
            training = training.with_columns(pl.col("when").cast(pl.Date))
    sampler = fit_to(name, training)
    n_features = training.shape[1]
    draws = sampler.draw(
        training[:5],
        np.zeros(n_features, bool),
        np.random.default_rng(3).uniform(1e-9, 1, (5, 3, n_features)),
    )
    decoded = sampler.layout_.decode(draws.reshape(-1, n_features))
    assert type(decoded) is type(training)
    if library == "polars":
        assert decoded.schema == training.schema
    else:
        pd.testing.assert_series_equal(decoded.dtypes, training.dtypes)
