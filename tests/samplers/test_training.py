"""Rows that several samplers are fitted to: read once, and as each of them would read them."""

import numpy as np
import pandas as pd
import pytest

from dsage._check import DsageWarning, record_warnings
from dsage.data.layout import Layout
from dsage.samplers import Gaussian, Marginal, Neighbors
from dsage.samplers.training import Training

ROWS = pd.DataFrame({"a": [0.5, 1.5, -2.0, 4.0], "b": [1, 2, 1, 2]})


def test_samplers_with_the_same_options_share_what_is_learned_of_columns():
    training = Training(ROWS)
    one, other = (each.fit_training(training) for each in (Marginal(), Neighbors()))
    assert one.layout_ is other.layout_
    apart = Marginal(discrete=["b"]).fit_training(training)
    assert apart.layout_ is not one.layout_
    assert (one.n_categories_.tolist(), apart.n_categories_.tolist()) == ([0, 0], [0, 2])


def test_a_fit_to_shared_rows_is_the_fit_to_the_rows():
    training = Training(ROWS)
    noise, known = np.random.default_rng(0).random((4, 3, 2)), np.array([True, False])
    for sampler in (Gaussian(), Gaussian(), Neighbors()):
        expected = sampler.clone().fit(ROWS).draw(ROWS, known, noise)
        shared = sampler.clone().fit_training(training)
        np.testing.assert_array_equal(shared.draw(ROWS, known, noise), expected)


def test_each_reader_has_rows_of_its_own():
    training = Training(ROWS)
    _, first = training.read(discrete=())
    first[:] = 0.0
    np.testing.assert_array_equal(training.read(discrete=())[1], Layout.of(ROWS).encode(ROWS))


def test_options_that_cannot_be_compared_are_read_each_time():
    training = Training(ROWS)
    one, other = (training.read(discrete=np.array(["b"]))[0] for _ in range(2))
    assert one is not other
    assert one.n_categories.tolist() == other.n_categories.tolist() == [0, 2]


def test_every_sampler_is_warned():
    training = Training(pd.DataFrame({"a": np.array([1, 2, 3, 1], object), "b": [0.5, 1, 2, 3]}))
    for _ in range(2):
        with record_warnings(show=False) as told:
            training.read(discrete=())
        assert ["holds numbers as objects" in str(each) for each in told] == [True]
    with pytest.warns(DsageWarning, match="holds numbers as objects"):
        training.read(discrete=())


def test_a_sampler_with_a_fit_of_its_own_is_fitted_by_it():
    class Counting(Gaussian):
        def fit(self, X, y=None):
            self.n_rows_ = len(X)
            return super().fit(X)

    assert Counting().fit_training(Training(ROWS)).n_rows_ == 4
