import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dsage.models.losses import EPSILON, Loss, as_loss, choose_loss, pinball

OF_NUMBERS = ["squared_error", "absolute_error", "pinball(0.2)"]
OF_CLASSES = ["cross_entropy", "zero_one", "brier"]

finite = st.floats(-1e6, 1e6)
pairs = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.float64, n, elements=finite), hnp.arrays(np.float64, n, elements=finite)
    )
)


@st.composite
def classified(draw, min_classes=2):
    """Codes and probabilities of some rows."""
    n_rows = draw(st.integers(1, 6))
    n_classes = draw(st.integers(min_classes, 5))
    weights = draw(hnp.arrays(np.float64, (n_rows, n_classes), elements=st.floats(2.0**-20, 1.0)))
    y = draw(hnp.arrays(np.intp, n_rows, elements=st.integers(0, n_classes - 1)))
    return y, weights / weights.sum(axis=1, keepdims=True)


def by_row(metric, y, prediction, **options):
    return [metric(y[i : i + 1], prediction[i : i + 1], **options) for i in range(len(y))]


# Values


@given(pairs)
def test_losses_of_numbers_are_those_of_sklearn_row_by_row(pair):
    y, prediction = pair
    expected = {
        "squared_error": by_row(metrics.mean_squared_error, y, prediction),
        "absolute_error": by_row(metrics.mean_absolute_error, y, prediction),
        "pinball(0.2)": by_row(metrics.mean_pinball_loss, y, prediction, alpha=0.2),
    }
    for name, losses in expected.items():
        np.testing.assert_allclose(as_loss(name)(y, prediction), losses, rtol=1e-12, atol=1e-12)


@given(classified())
def test_losses_of_classes_are_those_of_sklearn_row_by_row(pair):
    y, prediction = pair
    labels = list(range(prediction.shape[1]))
    expected = {
        "cross_entropy": by_row(metrics.log_loss, y, prediction, labels=labels),
        "zero_one": by_row(metrics.zero_one_loss, y, prediction.argmax(axis=1)),
        "brier": by_row(metrics.brier_score_loss, y, prediction, labels=labels),
    }
    for name, losses in expected.items():
        np.testing.assert_allclose(as_loss(name)(y, prediction), losses, rtol=1e-9, atol=1e-9)


@given(classified())
def test_a_target_of_certain_probabilities_has_the_loss_of_its_labels(pair):
    y, prediction = pair
    certain = np.eye(prediction.shape[1])[y]
    for name in ("cross_entropy", "brier"):
        loss = as_loss(name)
        target = loss.target(certain)
        np.testing.assert_allclose(loss(target, prediction), loss(y, prediction), atol=1e-12)


@given(classified())
def test_a_soft_target_has_the_mean_loss_of_its_labels(pair):
    _, prediction = pair
    soft = prediction[:, ::-1].copy()
    n_classes = prediction.shape[1]
    loss = as_loss("cross_entropy")
    each = [loss(np.full(len(soft), k), prediction) for k in range(n_classes)]
    np.testing.assert_allclose(
        loss(loss.target(soft), prediction), (soft * np.transpose(each)).sum(axis=1), atol=1e-9
    )


@given(hnp.arrays(np.float64, 5, elements=st.floats(0, 1)))
def test_one_probability_a_row_is_that_of_the_second_class(second):
    both = np.column_stack((1 - second, second))
    y = np.array([0, 1, 1, 0, 1])
    for name in OF_CLASSES:
        loss = as_loss(name)
        np.testing.assert_array_equal(loss(y, second), loss(y, both))
    np.testing.assert_allclose(as_loss("brier")(y, second), (second - y) ** 2, atol=1e-15)


@given(classified())
def test_many_predictions_at_once_have_the_losses_of_each(pair):
    y, prediction = pair
    several = np.stack((prediction, prediction[:, ::-1], np.full_like(prediction, 0.25)))
    losses = [as_loss(name) for name in OF_CLASSES]
    losses.append(as_loss(lambda y, p: p[np.arange(len(y)), y], output="probability"))
    for loss in losses:
        expected = [loss(y, one) for one in several]
        np.testing.assert_array_equal(loss.many(y, several), expected)


@given(pairs)
def test_many_predictions_of_numbers_have_the_losses_of_each(pair):
    y, prediction = pair
    several = np.stack((prediction, prediction + 1))
    for loss in [*map(as_loss, OF_NUMBERS), as_loss(lambda y, p: abs(y - p))]:
        np.testing.assert_array_equal(loss.many(y, several), [loss(y, one) for one in several])


def test_many_second_class_probabilities_are_not_taken_for_a_matrix():
    loss, y = as_loss("brier"), np.array([0, 1])
    np.testing.assert_allclose(loss.many(y, np.array([[0.5, 0.75]] * 3)), [[0.25, 0.0625]] * 3)


def test_cross_entropy_of_an_impossible_class_is_bounded():
    loss = as_loss("cross_entropy")
    bound = -np.log(EPSILON)
    np.testing.assert_allclose(
        loss(np.array([1, 0]), np.array([[1.0, 0.0], [1.0, 0.0]])), [bound, 0]
    )
    np.testing.assert_allclose(loss(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]])), [bound / 2])


def test_zero_one_takes_the_first_of_equal_classes():
    loss = as_loss("zero_one")
    equal = np.full((3, 3), 1 / 3)
    assert loss(np.array([0, 1, 2]), equal).tolist() == [0, 1, 1]
    assert loss(np.array([0, 1]), np.array([0.5, 0.5])).tolist() == [0, 1]


def test_a_loss_stays_as_it_is():
    assert as_loss(loss := as_loss("brier")) is loss


def test_pinball_by_name_and_by_quantile_are_the_same():
    assert as_loss("pinball", quantile=0.9) == pinball(0.9) == as_loss("pinball(0.9)")


# Targets


@pytest.mark.parametrize(
    "y",
    [
        ["b", "a", "b"],
        np.array(["b", "a", "b"], object),
        pd.Series(["b", "a", "b"], index=[7, 8, 9]),
        pd.Series(["b", "a", "b"], dtype="category"),
        pd.DataFrame({"y": ["b", "a", "b"]}),
        pl.Series(["b", "a", "b"]),
        pl.Series(["b", "a", "b"], dtype=pl.Categorical),
        pl.DataFrame({"y": ["b", "a", "b"]}),
        pa.chunked_array([["b"], ["a", "b"]]),
        pa.table({"y": ["b", "a", "b"]}),
    ],
    ids=lambda y: f"{type(y).__module__.split('.')[0]}.{type(y).__name__}",
)
def test_labels_of_any_container_become_positions_among_the_classes(y):
    loss = as_loss("cross_entropy")
    assert loss.target(y, classes=["c", "b", "a"]).tolist() == [1, 2, 1]
    assert loss.target(y).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([True, False], [0, 1]),
        ([1, 0], [False, True]),
        ([1.0, 0.0], [0, 1]),
        ([1, 0], np.array([0.0, 1.0])),
        (pd.Series([1, 0], dtype="Int64"), [0, 1]),
        (pd.Series([True, False], dtype="boolean"), [False, True]),
    ],
)
def test_equal_labels_of_another_type_are_the_same_class(y, classes):
    assert as_loss("brier").target(y, classes).tolist() == [1, 0]


def test_labels_of_different_types_stay_apart():
    y = np.array(["a", 1, "1"], object)
    assert as_loss("zero_one").target(y, classes=["1", 1, "a"]).tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    "y",
    [
        [1, 2],
        (1.0, 2.0),
        np.array([[1.0], [2.0]]),
        pd.Series([1, 2], dtype="Int64"),
        pl.Series([1, 2]),
        pa.array([1, 2]),
        np.array([1, 2.0], object),
    ],
)
def test_numbers_of_any_container_become_floats(y):
    target = as_loss("squared_error").target(y)
    assert target.dtype == np.float64
    assert target.tolist() == [1, 2]


def test_a_boolean_target_is_zero_and_one_for_losses_of_numbers():
    assert as_loss("absolute_error").target([True, False]).tolist() == [1, 0]


def test_a_function_receives_the_target_as_it_is_unless_it_asked_for_probabilities():
    labels = np.array(["b", "a"])
    assert as_loss(lambda y, p: p).target(labels).tolist() == ["b", "a"]
    assert as_loss(lambda y, p: p, output="probability").target(labels).tolist() == [1, 0]
    assert as_loss(lambda y, p: p, output="value").target([1, 2]).dtype == np.float64


@pytest.mark.parametrize("name", [*OF_NUMBERS, *OF_CLASSES])
@pytest.mark.parametrize("y", [[1.0, np.nan, 3.0], ["a", None, "b"], [1.0, np.inf, 0.0]])
def test_missing_and_infinite_targets_are_refused(name, y):
    with pytest.raises(
        ValueError, match=r"y must be finite and without missing values; got '1 of 3"
    ):
        as_loss(name).target(y)


@pytest.mark.parametrize("y", [3.0, [], np.zeros((2, 2, 2))])
def test_targets_that_are_not_one_value_a_row_are_refused(y):
    with pytest.raises(ValueError, match=r"y must be of shape \(n_rows,\), with at least one row"):
        as_loss("squared_error").target(y)


@pytest.mark.parametrize(
    "y", [["a", "b"], np.array(["1", "2"], object), pd.date_range("2020", periods=2)]
)
def test_losses_of_numbers_refuse_labels(y):
    with pytest.raises(TypeError, match=r"y must be numbers for squared_error; .*'cross_entropy'"):
        as_loss("squared_error").target(y)


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_losses_of_numbers_are_summed_over_several_targets(name):
    loss, random = as_loss(name), np.random.default_rng(0)
    y = loss.target(random.normal(size=(4, 2)))
    several = random.normal(size=(3, 4, 2))
    each = [loss.many(y[:, at], several[..., at]) for at in (0, 1)]
    np.testing.assert_array_equal(loss.by_output(y, several), np.stack(each, axis=-1))
    np.testing.assert_allclose(loss.many(y, several), each[0] + each[1])
    np.testing.assert_allclose(loss(y, several[0]), (each[0] + each[1])[0])


def test_predictions_must_have_a_column_for_each_target():
    loss = as_loss("squared_error")
    assert loss.target_for(np.zeros((3, 2)), np.ones((3, 2))).shape == (3, 2)
    for shape in ((3,), (3, 3)):
        with pytest.raises(ValueError, match=r"of shape \(n_rows, 2\); .*one column for each col"):
            loss.target_for(np.zeros(shape), np.ones((3, 2)))


def test_a_function_as_a_loss_of_numbers_takes_one_target():
    loss = as_loss(lambda y, p: abs(y - p), output="value")
    with pytest.raises(ValueError, match=r"y must be of shape \(n_rows,\).*one output at a time"):
        loss.target(np.zeros((3, 2)))


def test_a_label_that_the_model_does_not_know_is_named():
    with pytest.raises(ValueError, match=r"y must be of the model's classes \('a', 'b'\); got 'z'"):
        as_loss("cross_entropy").target(["a", "z"], classes=["a", "b"])
    with pytest.raises(ValueError, match=r"got \[3, 4\]"):
        as_loss("cross_entropy").target([3, 4, 1], classes=[0, 1])


def test_unnamed_classes_must_be_as_many_as_the_columns():
    loss = as_loss("cross_entropy")
    with pytest.raises(ValueError, match=r"of the 3 classes .*; got \[0, 2\]. Name the model's"):
        loss.target([0, 2, 2], n_classes=3)
    assert loss.target([0, 2, 2], classes=[0, 1, 2], n_classes=3).tolist() == [0, 2, 2]


def test_zero_one_refuses_a_soft_target():
    with pytest.raises(
        ValueError, match=r"y must be class labels, of shape \(n_rows,\), for zero_one"
    ):
        as_loss("zero_one").target(np.full((3, 2), 0.5))


@pytest.mark.parametrize("y", [[[0.5, 0.6]], [[1.5, -0.5]], [[0.2, 0.3, 0.5]]])
def test_soft_targets_must_be_probabilities_of_the_classes(y):
    with pytest.raises(
        ValueError,
        match=r"y must be class labels, or rows of probabilities that sum to one, of shape \(n_rows, 2\)",
    ):
        as_loss("brier").target(y, classes=["a", "b"])


# Predictions


@pytest.mark.parametrize("name", [*OF_NUMBERS, *OF_CLASSES])
def test_sound_predictions_pass_as_floats(name):
    checked = as_loss(name).check(np.array([0.25, 0.5], np.float32))
    assert checked.dtype == np.float64
    assert checked.tolist() == [0.25, 0.5]


def test_predictions_of_no_rows_pass():
    for name in OF_CLASSES:
        assert as_loss(name).check(np.empty((0, 3)), ["a", "b", "c"]).shape == (0, 3)


def test_predictions_of_single_precision_pass():
    prediction = np.full((4, 1000), 1e-3, np.float32)
    assert as_loss("cross_entropy").check(prediction).shape == (4, 1000)


@pytest.mark.parametrize(
    ("name", "advice"), [("cross_entropy", "predict_proba"), ("squared_error", "'cross_entropy'")]
)
def test_labels_are_refused_as_predictions(name, advice):
    with pytest.raises(TypeError, match=rf"prediction must be numbers for {name}; .*{advice}"):
        as_loss(name).check(["a", "b"])


def test_losses_of_numbers_refuse_several_outputs():
    with pytest.raises(ValueError, match=r"of shape \(n_rows,\) for squared_error; .* per output"):
        as_loss("squared_error").check(np.zeros((4, 2)))


@pytest.mark.parametrize("loss", ["brier", lambda y, p: p])
def test_predictions_of_three_dimensions_are_refused(loss):
    with pytest.raises(ValueError, match=r"of shape \(n_rows,\) or \(n_rows, n_"):
        as_loss(loss).check(np.zeros((2, 3, 4)))


@pytest.mark.parametrize("name", ["squared_error", "brier"])
def test_predictions_that_are_not_finite_are_refused(name):
    with pytest.raises(ValueError, match="prediction must be finite; got '2 rows that are not'"):
        as_loss(name).check([0.5, np.nan, np.inf])


@pytest.mark.parametrize("prediction", [[1.0, 2.0], [0.5, -0.1], [[0.5, 3.0], [0.1, 0.9]]])
def test_labels_and_scores_are_no_probabilities(prediction):
    with pytest.raises(
        ValueError, match=r"probabilities, in \[0, 1\], for cross_entropy; .*logits"
    ):
        as_loss("cross_entropy").check(prediction)


def test_probabilities_that_do_not_sum_to_one_are_refused():
    with pytest.raises(
        ValueError, match=r"sum to one in each row for brier; got 'a sum of 0\.7 in row 1'"
    ):
        as_loss("brier").check([[0.5, 0.5], [0.5, 0.2]])


@pytest.mark.parametrize("prediction", [[0.5, 0.5], [[0.5, 0.5]], [[1.0], [1.0]]])
def test_probabilities_need_one_column_a_class(prediction):
    with pytest.raises(ValueError, match=r"of shape \(n_rows, 3\), one column per class"):
        as_loss("zero_one").check(prediction, classes=["a", "b", "c"])


def test_one_column_is_no_table_of_probabilities():
    with pytest.raises(ValueError, match=r"of shape \(n_rows, n_classes\), one column per class"):
        as_loss("zero_one").check([[1.0], [1.0]])


def test_predictions_and_target_must_have_as_many_rows():
    y = np.zeros(3)
    with pytest.raises(ValueError, match="prediction must be of 3 rows, as y is; got 1"):
        as_loss("squared_error")(y, np.zeros(1))
    with pytest.raises(ValueError, match=r"of shape \(n_predictions, 3\) .*; got \(3, 2\)"):
        as_loss("squared_error").many(y, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="y must be of 2 rows, as X is; got 3"):
        as_loss("squared_error").target_for(np.zeros(2), [1, 2, 3])


def test_target_for_checks_the_prediction_and_counts_its_columns():
    loss = as_loss("cross_entropy")
    assert loss.target_for(np.array([0.5, 0.5]), ["n", "y"]).tolist() == [0, 1]
    with pytest.raises(ValueError, match="of the 3 classes"):
        loss.target_for(np.full((2, 3), 1 / 3), ["n", "y"])
    with pytest.raises(ValueError, match="sum to one"):
        loss.target_for(np.full((2, 3), 0.5), ["n", "y"], ["n", "y", "z"])


def test_without_a_target_the_output_of_the_model_is_explained():
    prediction = np.array([[0.25, 0.75], [0.5, 0.5]])
    assert as_loss("squared_error").target_for(np.array([3.0, 4.0])).tolist() == [3, 4]
    np.testing.assert_array_equal(as_loss("cross_entropy").target_for(prediction), prediction)
    np.testing.assert_array_equal(as_loss("brier").target_for(prediction[:, 1]), prediction)
    assert as_loss("zero_one").target_for(prediction).tolist() == [1, 0]
    loss = as_loss("brier")
    assert loss(loss.target_for(prediction), prediction).tolist() == [0, 0]


# Losses of the user


def test_a_function_is_a_loss_named_after_it():
    def cubed(y, prediction):
        return abs(y - prediction) ** 3

    loss = as_loss(cubed)
    assert isinstance(loss, Loss)
    assert (loss.name, loss.output) == ("cubed", "any")
    assert loss(np.array([1.0]), np.array([3.0])).tolist() == [8]


def test_whole_numbers_of_a_function_become_floats():
    assert as_loss(lambda y, p: y != p)(np.array([1, 2]), np.array([1, 1])).dtype == np.float64


def test_a_function_that_averages_over_rows_is_refused():
    with pytest.raises(
        ValueError,
        match=r"'mean_squared_error' must be one number per row, of shape \(2,\); got \(\)",
    ):
        as_loss(metrics.mean_squared_error)(np.zeros(2), np.ones(2))


def test_a_function_that_gives_no_numbers_is_refused():
    with pytest.raises(
        ValueError, match=r"must be one number per row, of shape \(2,\); got dtype\('<U1'\)"
    ):
        as_loss(lambda y, p: np.array(["a", "b"]))(np.zeros(2), np.ones(2))


def test_a_function_that_gives_nan_is_refused():
    with pytest.raises(ValueError, match="must be finite; got '1 rows that are not'"):
        as_loss(lambda y, p: np.array([np.nan, 1.0]))(np.zeros(2), np.ones(2))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("squared_eror", "squared_error"),
        ("cross_entrpy", "cross_entropy"),
        ("possion", "poisson"),
    ],
)
def test_an_unknown_name_is_met_with_the_one_meant(name, meant):
    with pytest.raises(
        ValueError, match=f"loss must be one of the losses; got '{name}'. Did you mean '{meant}'?"
    ):
        as_loss(name)


@pytest.mark.parametrize("loss", [3, None, Loss])
def test_a_loss_is_a_name_or_a_function(loss):
    with pytest.raises(TypeError, match="loss must be a name or a function"):
        as_loss(loss)


def test_options_are_refused_where_they_mean_nothing():
    with pytest.raises(TypeError, match=r"quantile must be given for 'pinball' only; got 0.5"):
        as_loss("brier", quantile=0.5)
    with pytest.raises(TypeError, match="output must be given for a function only; got 'value'"):
        as_loss("brier", output="value")
    with pytest.raises(ValueError, match="output must be one of the kinds; got 'values'"):
        as_loss(lambda y, p: p, output="values")


def test_pinball_needs_a_quantile_inside_the_unit_interval():
    with pytest.raises(TypeError, match="quantile must be given for 'pinball'; got None"):
        as_loss("pinball")
    for quantile in (0.0, 1.0, 2.0):
        with pytest.raises(ValueError, match="quantile must be in"):
            pinball(quantile)


# The loss that suits a model


class WithProbabilities:
    def predict_proba(self, X):
        return X


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (Ridge(), "squared_error"),
        (make_pipeline(StandardScaler(), Ridge()), "squared_error"),
        (GridSearchCV(Ridge(), {"alpha": [1.0]}), "squared_error"),
        (LogisticRegression(), "cross_entropy"),
        (make_pipeline(StandardScaler(), RandomForestClassifier()), "cross_entropy"),
        (CalibratedClassifierCV(RidgeClassifier()), "cross_entropy"),
        (WithProbabilities(), "cross_entropy"),
        (lambda X: X, "squared_error"),
    ],
)
def test_classifiers_get_cross_entropy_and_others_squared_error(model, name):
    assert choose_loss(model).name == name
    assert choose_loss(model, np.array([0, 1])).name == name


def test_a_function_for_a_target_of_labels_gets_cross_entropy():
    assert choose_loss(lambda X: X, ["yes", "no"]).name == "cross_entropy"
    assert choose_loss(lambda X: X, [True, False]).name == "cross_entropy"


def test_a_regressor_that_also_has_probabilities_is_a_regressor():
    class Both(Ridge):
        def predict_proba(self, X):
            return X

    assert choose_loss(Both()).name == "squared_error"


def test_classifiers_of_other_libraries_are_known_by_their_declaration():
    class Declared:
        _estimator_type = "classifier"

    class Mixed(ClassifierMixin):
        def predict_proba(self, X):
            return X

    class Based(BaseEstimator):
        def predict_proba(self, X):
            return X

    assert choose_loss(Mixed()).name == choose_loss(Based()).name == "cross_entropy"
    with pytest.raises(TypeError, match="got 'Declared'"):
        choose_loss(Declared())


def test_a_classifier_without_probabilities_needs_a_loss():
    with pytest.raises(TypeError, match=r"got 'RidgeClassifier'. Wrap it in .*loss='zero_one'"):
        choose_loss(RidgeClassifier())


def test_a_function_is_taken_to_have_kinks_unless_it_is_declared():
    def own(y, prediction):
        return (y - prediction) ** 4

    assert as_loss(own).curve == "kinked"
    assert as_loss(own, curve="smooth").curve == "smooth"
    with pytest.raises(ValueError, match="curve must be one of the kinds of curves; got 'bent'"):
        as_loss(own, curve="bent")
    with pytest.raises(TypeError, match="curve must be given for a function only"):
        as_loss("brier", curve="smooth")
    with pytest.raises(TypeError, match="loss must be one with derivatives"):
        as_loss(own).bend(np.zeros(1), np.zeros((1, 1)))


def test_the_linear_loss_is_one_minus_the_probability_of_the_class():
    loss = as_loss("linear")
    prediction = np.array([[0.2, 0.8], [0.6, 0.4]])
    np.testing.assert_allclose(loss(np.array([1, 1]), prediction), [0.2, 0.6])
    soft = np.array([[0.5, 0.5], [1.0, 0.0]])
    np.testing.assert_allclose(loss(soft, prediction), [0.5, 0.4])


def test_derivatives_by_output_stand_side_by_side():
    from dsage.models.losses import Loss

    loss = Loss(
        "quartic", "value", lambda y, p: (p - y) ** 4, curve="smooth",
        derivatives=lambda y, p: (4 * (p - y) ** 3, 12 * (p - y) ** 2),
    )  # fmt: skip
    y, prediction = np.array([[0.0, 1.0]]), np.array([[[2.0, 4.0]]])
    first, second = loss.bend(y, prediction)
    np.testing.assert_allclose(first, [[[32.0, 108.0]]])
    np.testing.assert_allclose(second, [[[48.0, 108.0]]])
