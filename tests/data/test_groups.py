import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.data.groups import Groups

FEATURES = ("age", "sex", "height", "weight", "income")
GROUPS = {"body": ["weight", "height"], "person": ["sex"]}


def test_groups_come_first_and_other_features_stay_players_of_their_own():
    assert Groups(GROUPS, FEATURES).names == ("body", "person", "age", "income")
    assert Groups({}, FEATURES).names == FEATURES


def test_a_group_may_have_the_name_of_a_member():
    assert Groups({"age": ["age", "sex"]}, FEATURES).names == ("age", "height", "weight", "income")


def test_a_coalition_of_players_is_the_union_of_their_members():
    known = np.array([[True, False, False, True], [False, True, False, False]])
    np.testing.assert_array_equal(
        Groups(GROUPS, FEATURES).expanded(known),
        [[False, False, True, True, True], [False, True, False, False, False]],
    )


@st.composite
def partitions(draw):
    """Groups of some of the features v0, v1, ..., and all of these."""
    n_features = draw(st.integers(1, 7))
    features = [f"v{number}" for number in range(n_features)]
    owner = draw(st.lists(st.integers(0, 3), min_size=n_features, max_size=n_features))
    groups = {
        f"g{number}": [name for name, at in zip(features, owner, strict=True) if at == number]
        for number in range(3)
    }
    return {name: members for name, members in groups.items() if members}, features


@settings(max_examples=50, deadline=None)
@given(partitions(), st.integers(0, 2**32 - 1))
def test_sets_and_orderings_are_translated_by_definition(partition, seed):
    groups, features = partition
    made = Groups(groups, features)
    members = [set(groups.get(name, [name])) for name in made.names]
    rng = np.random.default_rng(seed)
    chosen = rng.random((5, len(features))) < 0.6
    for row, touched, filled in zip(chosen, made.touched(chosen), made.filled(chosen), strict=True):
        inside = {name for name, is_in in zip(features, row, strict=True) if is_in}
        assert touched.tolist() == [bool(each & inside) for each in members]
        assert filled.tolist() == [each <= inside for each in members]
    orders = np.stack([rng.permutation(len(members)) for _ in range(4)])
    expanded, ends = made.orders(orders)
    for order, row, stops in zip(orders, expanded, ends, strict=True):
        assert sorted(row) == list(range(len(features)))
        for k, stop in enumerate(stops):
            before = set().union(*(members[player] for player in order[:k]))
            assert {features[at] for at in row[:stop]} == before


@pytest.mark.parametrize(
    ("groups", "error", "text"),
    [
        ([["age"]], TypeError, "groups must be a dict of lists of features"),
        ({"g": []}, ValueError, r"groups\['g'\] must be at least one feature; got \[\]"),
        ({"g": "age"}, TypeError, r"groups\['g'\] must be an iterable of strings; got 'age'"),
        ({"g": ["age", "age"]}, ValueError, r"groups\['g'\] must be distinct; got 'age'"),
        ({"g": ["agee"]}, ValueError, "one of the features; got 'agee'. Did you mean 'age'?"),
        (
            {"g": ["age", "sex"], "h": ["sex"]},
            ValueError,
            "without a feature in common; got 'sex'. It is in 'g' and in 'h'",
        ),
        ({"age": ["sex"]}, ValueError, "the features outside them; got 'age'. Rename"),
        (
            {"age": ["sex"], "g": ["age"]},
            ValueError,
            "the features outside them; got 'age'. Rename",
        ),
        ({"": ["sex"]}, ValueError, "groups must be non-empty strings"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups, error, text):
    with pytest.raises(error, match=text):
        Groups(groups, FEATURES)
