"""`explain(model, X, y)`: all rows for everything."""

import warnings

import numpy as np
import pytest

import dsage
from explain_case import QUIET

OPTIONS = {"graph": None, "sampler": "gaussian", **QUIET}
WARNING = "and to evaluate the model"


def test_without_evaluation_rows_all_rows_serve_for_everything(model, rows):
    X, y = rows[2:]
    with pytest.warns(UserWarning, match=WARNING) as caught:
        found = dsage.explain(model, X, y, **OPTIONS)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = dsage.explain(model, X, y, X, y, **OPTIONS)
    np.testing.assert_array_equal(found.values, same.values)
    assert found.choices.data.n_rows_train == found.choices.data.n_rows_evaluation == 100
    assert (found.choices.data.is_shared, same.choices.data.is_shared) == (True, False)
    assert any(WARNING in text for text in found.warnings)


def test_one_of_the_two_alone_is_refused(model, rows):
    with pytest.raises(TypeError, match=r"y_test must be given if X_test is; got None\. Pass both"):
        dsage.explain(model, *rows[:3], **OPTIONS)
    with pytest.raises(TypeError, match="X_test must be given if y_test is"):
        dsage.explain(model, *rows[:2], y_test=rows[3], **OPTIONS)


def test_a_graph_is_learned_and_the_file_says_that_rows_were_shared(model, rows, tmp_path):
    with pytest.warns(UserWarning, match=WARNING):
        found = dsage.explain(model, *rows[2:], sampler="gaussian", n_resamples=0, **QUIET)
    assert found.graph is not None
    again = dsage.load(found.save(tmp_path / "run.dsage"))
    assert again.choices.data.is_shared
