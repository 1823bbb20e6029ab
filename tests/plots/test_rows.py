import matplotlib as mpl
import numpy as np

mpl.use("agg")

from dsage.plots.rows import as_rows, n_shown
from dsage.plots.style import percent, text_width


def test_rows_stand_below_each_other():
    np.testing.assert_allclose(as_rows(["a", "b"]).centers, [0.13, 0.39])


def test_one_other_feature_is_shown_itself():
    assert (n_shown(100, 20), n_shown(21, 20), n_shown(3, 20)) == (20, 21, 3)


def test_text_has_a_width_and_shares_are_in_percent():
    assert round(text_width(36), 1) == 2.8
    assert percent(0.95) == "95 %"
