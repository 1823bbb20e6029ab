"""What every sampler does with data that are hard to learn: an error, a warning, or nothing wrong."""

import functools
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from sampler_cases import CASES, data, every, make


@functools.cache
def degenerate(kind):
    """Frames that are hard to learn: constant and copied columns, few rows."""
    frame = data(kind)
    constant = frame.assign(**{frame.columns[0]: frame.iloc[0, 0]})
    if isinstance(frame.dtypes.iloc[0], pd.CategoricalDtype):
        constant = constant.astype({frame.columns[0]: frame.dtypes.iloc[0]})
    return {
        "constant": constant,
        "copied": frame.assign(copy=frame.iloc[:, -1]),
        "few": frame.iloc[: len(frame.columns) - 1],
        "one": frame.iloc[:1],
    }


CONSTANT = r"The columns \['c0'\] are constant"
COPIED = r"The columns \['copy'\] follow from the columns before"
FOLLOW = r"The columns \['c\d', 'c4'\] follow from the columns before"
ALL = r"got \['c0', 'c1', 'c2', 'c3', 'c4'\]. Distances leave out"
REPEATS = "copies: 'copy' repeats '{}'"
COINCIDE = "copies: 'word' repeats 'flag'"  # as they do in the first rows
UNSPLIT = r"cannot split \d rows into leaves of 10"
# What a sampler warns of, for those that do; all others must fit and draw without a warning.
WARNINGS = {
    "constant": {
        "Gaussian": [CONSTANT],
        "Gaussian-shrunk": [CONSTANT],
        "GaussianCopula": [CONSTANT],
        "GaussianMixture": [CONSTANT],
        "Neighbors-continuous": [r"got \['c0'\]. Distances leave out"],
        "Neighbors-nearest": [r"got \['c0'\]. Distances leave out"],
        "Auto-continuous": [CONSTANT],
    },
    "copied": {
        "Gaussian": [COPIED],
        "GaussianCopula": [COPIED],
        "GaussianMixture": [COPIED],
        "Neighbors-continuous": [r"got \['c4', 'copy'\]. Distances leave out"],
        "Neighbors-nearest": [r"got \['c4', 'copy'\]. Distances leave out"],
        "Neighbors-mixed": [REPEATS.format("weight")],
        "Forest-continuous": [REPEATS.format("c4")],
        "Forest-discrete": [REPEATS.format("word")],
        "Forest-mixed": [REPEATS.format("weight")],
        "Sequential-discrete": [REPEATS.format("word")],
        "Auto-continuous": [COPIED],
        "Auto-mixed": [REPEATS.format("weight")],
    },
    "few": {
        "Gaussian": [FOLLOW],
        "GaussianCopula": [FOLLOW],
        "GaussianMixture": [FOLLOW, "The smallest of 2 components has about 1 rows"],
        "Neighbors-continuous": [ALL],
        "Neighbors-nearest": [ALL],
        "Neighbors-mixed": [COINCIDE],
        "Forest-continuous": [UNSPLIT],
        "Forest-discrete": [COINCIDE, UNSPLIT],
        "Forest-mixed": [COINCIDE, UNSPLIT],
        "Sequential-discrete": [COINCIDE],
        "Sequential-mixed": [COINCIDE],
    },
    "one": {
        "Neighbors-continuous": [ALL],
        "Neighbors-nearest": [ALL],
        "Forest-continuous": [UNSPLIT],
        "Forest-discrete": [UNSPLIT],
        "Forest-mixed": [UNSPLIT],
    },
}
NO_CHOICE = "X must be of more rows to choose a sampler; got {}. Give some 20"
TWO_ROWS = "X must be of at least 2 rows; got 1. Give more training rows"
# What it refuses, for those that do.
REFUSALS = {
    "few": {"Auto-continuous": NO_CHOICE.format(4), "Auto-mixed": NO_CHOICE.format(5)},
    "one": {
        "Gaussian": TWO_ROWS,
        "Gaussian-shrunk": TWO_ROWS,
        "GaussianCopula": TWO_ROWS,
        "GaussianMixture": TWO_ROWS,
        "FunctionSampler": r"codes from 0 to n_categories - 1 .*; got \['word'\]",
        "Auto-continuous": NO_CHOICE.format(1),
        "Auto-mixed": NO_CHOICE.format(1),
    },
}
# Which draw a copy equal to its column, whether either is known or not. The others say that they
# do not (a warning above), or ignore what is known, or were told to shrink or to smooth.
KEEP_COPIES = (
    "Gaussian",
    "GaussianCopula",
    "GaussianMixture",
    "Categorical",
    "Sequential-continuous",
    "Sequential-mixed",
    "Auto-continuous",
)


def draws_of(case, frame):
    """Draws for several coalitions, with the rows."""
    sampler = make(case).fit(frame)
    X, n_features = frame.iloc[:4], frame.shape[1]
    encoded = sampler.layout_.encode(X)
    noise = np.random.default_rng(0).uniform(0.01, 0.99, (len(X), 20, n_features))
    last = np.arange(n_features) == n_features - 1
    for known in (last & False, last, ~last, np.arange(n_features) % 2 == 0):
        draws = sampler.draw(X, known, noise)
        assert np.isfinite(draws).all()
        sampler.layout_.decode(draws.reshape(-1, n_features))
        yield encoded, draws


@every
@pytest.mark.parametrize("trouble", ["constant", "copied", "few", "one"])
def test_degenerate_data_are_refused_or_told_of_and_drawn_as_documented(case, trouble):
    frame = degenerate(CASES[case][0])[trouble]
    if refusal := REFUSALS.get(trouble, {}).get(case):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match=refusal):
                list(draws_of(case, frame))
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        drawn = list(draws_of(case, frame))
    told = [str(warning.message) for warning in caught]
    expected = WARNINGS[trouble].get(case, [])
    assert len(told) == len(expected), told
    for text, pattern in zip(told, expected, strict=True):
        assert re.search(pattern, text)
    for encoded, draws in drawn:
        if trouble == "constant" and case != "FunctionSampler":
            assert (draws[:, :, 0] == encoded[0, 0]).all()
        if trouble == "copied" and case in KEEP_COPIES:
            np.testing.assert_allclose(draws[:, :, -1], draws[:, :, -2], rtol=0, atol=1e-6)
        if trouble == "one" and not case.startswith("Forest"):
            np.testing.assert_array_equal(draws, np.repeat(encoded[:, None], 20, axis=1))
