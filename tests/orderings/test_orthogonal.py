import numpy as np
import pytest

from dsage._random import Streams
from dsage.orderings import Antithetic, Orthogonal
from dsage.orderings.orthogonal import orthonormal


@pytest.mark.parametrize("n_features", [2, 3, 8, 11])
def test_the_second_half_of_a_batch_reverses_the_first(n_features):
    batch = Orthogonal(n_features, Streams(0), n_vectors=n_features - 1).batch(4)
    assert len(batch) == 2 * (n_features - 1)
    np.testing.assert_array_equal(batch[n_features - 1 :], batch[: n_features - 1, ::-1])


def test_the_vectors_are_orthonormal_and_have_no_preferred_sign():
    vectors = np.array([orthonormal(Streams(0)("x", k), 6, 4) for k in range(400)])
    products = vectors @ np.swapaxes(vectors, 1, 2)
    np.testing.assert_allclose(products, np.broadcast_to(np.eye(4), products.shape), atol=1e-12)
    # Every entry is uniform on a sphere: mean zero, variance 1 / 6, and of either sign.
    se = np.sqrt(1 / 6 / 400)
    assert np.abs(vectors.mean(axis=0)).max() < 4 * se
    np.testing.assert_allclose((vectors**2).mean(axis=0), 1 / 6, atol=5 * np.sqrt(0.05 / 400))


def test_orderings_of_a_batch_are_nearly_orthogonal_where_independent_ones_are_not():
    """The squared correlation of the positions is 1 / (d - 1) on average for independent ones."""
    n_features = 20

    def squared_correlation(batch):
        position = np.argsort(batch, axis=1)
        return np.corrcoef(position)[0, 1] ** 2

    code = Orthogonal(n_features, Streams(0))
    found = np.mean([squared_correlation(code.batch(number)) for number in range(200)])
    assert found < 0.2 / (n_features - 1)


def test_one_vector_gives_antithetic_batches():
    for number in range(4):
        np.testing.assert_array_equal(
            Orthogonal(7, Streams(3), n_vectors=1).batch(number),
            Antithetic(7, Streams(3)).batch(number),
        )


@pytest.mark.parametrize(("n_features", "batch_size"), [(1, 2), (2, 2), (3, 4), (9, 4)])
def test_few_features_have_few_vectors(n_features, batch_size):
    orderings = Orthogonal(n_features, Streams(0))
    assert orderings.batch_size == batch_size
    assert orderings.batch(0).shape == (batch_size, n_features)


@pytest.mark.parametrize(
    ("n_vectors", "error", "text"),
    [
        (5, ValueError, "n_vectors must be at most 4; got 5"),
        (0, ValueError, "n_vectors must be at least 1; got 0"),
        (2.0, TypeError, "n_vectors must be an integer"),
    ],
)
def test_numbers_of_vectors_that_do_not_exist_are_refused(n_vectors, error, text):
    with pytest.raises(error, match=text):
        Orthogonal(5, Streams(0), n_vectors=n_vectors)
