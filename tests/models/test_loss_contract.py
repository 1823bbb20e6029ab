"""What every loss of the registry has to do, whoever adds it."""

import pickle

import numpy as np
import pytest

from dsage.models.losses import LOSSES, Loss, as_loss, register

N_ROWS = 6


@pytest.fixture(params=LOSSES)
def loss(request):
    found = LOSSES[request.param]
    return found if isinstance(found, Loss) else found(LOSSES.traits(request.param)["example"])


@pytest.fixture
def rows(loss):
    """A target and three sets of predictions that suit the loss."""
    rng = np.random.default_rng(0)
    if loss.output == "value":
        y, predictions = rng.normal(size=N_ROWS), rng.normal(size=(3, N_ROWS))
        return (
            (y, predictions) if loss.prediction_bound is None else (np.exp(y), np.exp(predictions))
        )
    if loss.output == "score":
        return rng.integers(4, size=N_ROWS), rng.normal(size=(3, N_ROWS, 4))
    weights = rng.random((3, N_ROWS, 4))
    return rng.integers(4, size=N_ROWS), weights / weights.sum(axis=-1, keepdims=True)


def test_it_has_what_tables_and_reports_need(loss):
    name = loss.name.partition("(")[0]
    assert LOSSES.summary(name)
    assert {"title", "unit", "synonyms"} <= LOSSES.traits(name).keys()


def test_it_is_found_by_its_own_name_and_survives_pickling(loss):
    assert as_loss(loss.name) == loss
    assert pickle.loads(pickle.dumps(loss)) == loss


def test_it_gives_one_finite_loss_per_row_for_one_and_for_many_predictions(loss, rows):
    y, predictions = rows
    losses = loss.many(y, predictions)
    assert losses.shape == (3, N_ROWS)
    assert np.isfinite(losses).all()
    np.testing.assert_array_equal(losses, [loss(y, prediction) for prediction in predictions])


def test_no_prediction_is_better_than_the_target(loss, rows):
    y, predictions = rows
    best = y.astype(float) if loss.output == "value" else np.eye(4)[y]
    assert (loss(y, best) <= loss.many(y, predictions).min(axis=0)).all()


@pytest.mark.filterwarnings("ignore:.* is explained by loss=")
def test_names_of_other_libraries_are_understood(loss):
    name, _, rest = loss.name.partition("(")
    for synonym in LOSSES.traits(name)["synonyms"]:
        assert as_loss(f"{synonym}({rest}" if rest else synonym) == loss


def test_notes_are_about_its_synonyms(loss):
    traits = LOSSES.traits(loss.name.partition("(")[0])
    assert traits["notes"].keys() <= set(traits["synonyms"])


def test_a_loss_that_is_linear_or_quadratic_is_so(loss, rows):
    """The jackknife over two replicates is then exact."""
    if loss.curve not in ("linear", "quadratic"):
        pytest.skip("it is neither")
    y, (a, b, c) = rows
    one, other = a - b, c - b
    second = [
        loss(y, b + one + other) - loss(y, b + one) - loss(y, b + other) + loss(y, b),
        loss(y, c + one + other) - loss(y, c + one) - loss(y, c + other) + loss(y, c),
    ]
    np.testing.assert_allclose(second[0], second[1], atol=1e-12)
    if loss.curve == "linear":
        np.testing.assert_allclose(second[0], 0.0, atol=1e-12)


def test_derivatives_are_those_of_the_kernel(loss, rows):
    if loss.derivatives is None:
        pytest.skip("it has none")
    y, predictions = rows
    first, second = loss.bend(y, predictions)
    step = 1e-4
    if loss.output == "value":
        first, second = first[..., None], second[..., None]
    for at in range(first.shape[-1]):
        shift = step * (np.arange(first.shape[-1]) == at)
        up, middle, down = (loss.many(y, predictions + k * shift) for k in (1, 0, -1))
        np.testing.assert_allclose(first[..., at], (up - down) / (2 * step), rtol=1e-4, atol=1e-6)
        curved = (up - 2 * middle + down) / step**2
        np.testing.assert_allclose(second[..., at], curved, rtol=1e-3, atol=1e-4)


def test_a_registered_kernel_is_a_loss_of_that_name():
    @register("cubed", "value", summary="cubed distance", title="cubed error", unit="")
    def cubed(y, prediction):
        return np.abs(prediction - y) ** 3

    try:
        assert as_loss("cubed")(np.zeros(1), np.array([2.0])).tolist() == [8.0]
        assert ("cubed", "cubed distance") in LOSSES.table()
    finally:
        LOSSES.remove("cubed")
