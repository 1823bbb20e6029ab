import pytest

from dsage.estimate import Plan, PlanOptions
from dsage.orderings import Order
from tables import Table


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"estimand": "sag"}, "estimand must be .* Did you mean 'sage'"),
        ({"semantics": "skipped"}, "semantics must be .* Did you mean 'skip'"),
        ({"first_level": "linear"}, "first_level must be .*'auto', 'none'"),
        ({"exact": True}, "exact must be .*; got True"),
        ({"rows_per_ordering": 0}, "rows_per_ordering must be at least 1"),
        ({"cache_bytes": -1}, "cache_bytes must be at least 0"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_options_are_checked_without_a_game(options, text):
    with pytest.raises(ValueError, match=text):
        PlanOptions(**options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"orderings": "antithetc"}, "orderings must be .* Did you mean 'antithetic'"),
        ({"orderings": [["a", "b", "z"]]}, "z"),
        ({"orderings": Order(["a", "b"], [("a", "b")])}, "c"),
        ({"orderings": [["a", "b", "c"]], "exact": "always"}, "exact must be 'auto' or 'never'"),
    ],
)
def test_orderings_are_checked_against_features_without_a_game(options, text):
    with pytest.raises(ValueError, match=text):
        PlanOptions(**options).check_features(["a", "b", "c"])


def test_unknown_options_of_a_plan_are_refused_by_name():
    with pytest.raises(
        ValueError, match=r"options of an estimate; got 'exct'. Did you mean 'exact'"
    ):
        Plan(Table(), exct="never")
