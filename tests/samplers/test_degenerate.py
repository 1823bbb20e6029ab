"""What every sampler does with data that are hard to learn: an error, a warning, or sound draws."""

import functools
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from sampler_cases import CASES, data, make


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
APART = r"The columns \[{}\] are constant or determine one another: distances leave out"
ALL = APART.format("'c0', 'c1', 'c2', 'c3', 'c4'")
REPEATS = "copies: 'copy' repeats '{}'"
COINCIDE = "copies: 'word' repeats 'flag'"  # as they do in the first rows
SIMPLEST = r"too few to score samplers: {}, the simplest"
# The warnings of samplers; all others must fit and draw without a warning.
WARNINGS = {
    "constant": {
        "gaussian-numbers": [CONSTANT],
        "gaussian-shrunk": [CONSTANT],
        "copula-numbers": [CONSTANT],
        "mixture-numbers": [CONSTANT],
        "neighbors-numbers": [APART.format("'c0'")],
        "neighbors-nearest": [APART.format("'c0'")],
        "auto-numbers": [CONSTANT],
    },
    "copied": {
        "gaussian-numbers": [COPIED],
        "copula-numbers": [COPIED],
        "mixture-numbers": [COPIED],
        "neighbors-numbers": [APART.format("'c4', 'copy'")],
        "neighbors-nearest": [APART.format("'c4', 'copy'")],
        "neighbors-classes": [REPEATS.format("word")],
        "neighbors-mixed": [REPEATS.format("weight")],
        "sequential-classes": [REPEATS.format("word")],
        "auto-numbers": [COPIED],
    },
    "few": {
        "gaussian-numbers": [FOLLOW],
        "copula-numbers": [FOLLOW],
        "mixture-numbers": [FOLLOW, "The smallest of 2 components has about 1 rows"],
        "neighbors-numbers": [ALL],
        "neighbors-nearest": [ALL],
        "neighbors-classes": [COINCIDE],
        "neighbors-mixed": [COINCIDE],
        "sequential-classes": [COINCIDE],
        "sequential-mixed": [COINCIDE],
        "auto-numbers": [FOLLOW, SIMPLEST.format("Gaussian")],
        "auto-mixed": [SIMPLEST.format("Mix")],
    },
    "one": {
        "neighbors-numbers": [ALL],
        "neighbors-nearest": [ALL],
        "auto-numbers": [SIMPLEST.format("Mix")],
        "auto-mixed": [SIMPLEST.format("Mix")],
    },
}
TWO_ROWS = "X must be of at least 2 rows; got 1. Pass more training rows"
# The data that samplers refuse.
REFUSALS = {
    "one": {
        "gaussian-numbers": TWO_ROWS,
        "gaussian-shrunk": TWO_ROWS,
        "copula-numbers": TWO_ROWS,
        "mixture-numbers": TWO_ROWS,
        "function": r"codes from 0 to n_categories - 1; got \['word'\]",
    },
}
# These draw a copy equal to its column, whether either is known or not. The others warn that they
# do not, ignore what is known, shrink or smooth.
KEEP_COPIES = (
    "gaussian-numbers",
    "copula-numbers",
    "mixture-numbers",
    "mix-numbers",
    "mix-classes",
    "mix-mixed",
    "sequential-numbers",
    "sequential-mixed",
    "auto-numbers",
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


# The samplers whose rules are in docs/samplers.md.
DOCUMENTED = [
    "auto",
    "copula",
    "function",
    "gaussian",
    "marginal",
    "mix",
    "mixture",
    "neighbors",
    "sequential",
]
documented = pytest.mark.parametrize(
    "case", [case for case in CASES if case.split("-")[0] in DOCUMENTED]
)


@documented
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
        if trouble == "constant" and case != "function":
            assert (draws[:, :, 0] == encoded[0, 0]).all()
        if trouble == "copied" and case in KEEP_COPIES:
            np.testing.assert_allclose(draws[:, :, -1], draws[:, :, -2], rtol=0, atol=1e-6)
        if trouble == "one":
            np.testing.assert_array_equal(draws, np.repeat(encoded[:, None], 20, axis=1))
