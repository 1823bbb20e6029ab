"""CFI, PFI and LOCO agree with figures of hidimstat, whose version is in the file."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

import dsage

FROZEN = json.loads(Path(__file__).with_name("hidimstat_measures.json").read_text())
X, Y = load_diabetes(return_X_y=True)
TRAIN, TEST = (X[:300], Y[:300]), (X[300:], Y[300:])
MODEL = LinearRegression().fit(*TRAIN)


def measured(rows, **options):
    return dsage.explain_measures(MODEL, *rows, *TEST, sampler="gaussian", random_state=0,
                                  progress=False, **options)  # fmt: skip


def test_loco_is_the_same():
    found = measured(TRAIN, measures="loco").averages["loco"].values
    np.testing.assert_allclose(found, FROZEN["measures"]["loco"]["values"], rtol=1e-8)


@pytest.mark.parametrize("name", ["cfi", "pfi"])
def test_redrawn_features_lose_as_much_up_to_the_error_of_the_draws(name):
    """Both draw from what the evaluation rows show, by regression and by permutation."""
    found = measured(TEST, measures=name, n_draws=64).averages[name]
    frozen = {key: np.array(numbers) for key, numbers in FROZEN["measures"][name].items()}
    error = np.hypot(found.se, frozen["se"])
    assert (np.abs(found.values - frozen["values"]) < 4 * error).all()
    assert error.max() < 0.03 * np.ptp(frozen["values"])
