"""Risks on a device against the formulas of their pseudo-values, one by one, in NumPy."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dsage.games.device_loss import MOST_SPREAD, DeviceLoss  # noqa: E402
from dsage.models import as_loss  # noqa: E402

RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(0.5, 1.5, 9)
ROWS = np.array([[4, 0, 7], [1, 2, 8]])
SQUARED, ENTROPY = as_loss("squared_error"), as_loss("cross_entropy")


def risks_of(loss, target, means, rows=ROWS, *, is_coarse=False):
    outputs = means.shape[3:]
    found, are_fine = DeviceLoss(loss, target, WEIGHTS, outputs)(
        torch.from_numpy(means), rows, is_coarse=is_coarse
    )
    return found.numpy(), bool(are_fine.item())


def test_pseudo_values_of_squared_errors_leave_one_replicate_out():
    target, means = RNG.normal(size=9), RNG.normal(size=(2, 3, 4))
    found, are_fine = risks_of(SQUARED, target, means)
    assert are_fine
    for prefix in range(2):
        for row in range(3):
            y, f = target[ROWS[prefix, row]], means[prefix, row]
            whole = (y - f.mean()) ** 2
            without = np.array([(y - np.delete(f, at).mean()) ** 2 for at in range(4)])
            wanted = WEIGHTS[ROWS[prefix, row]] * (4 * whole - 3 * without)
            np.testing.assert_allclose(found[prefix, row], wanted, atol=1e-12)


def entropies_by_hand(p, weight):
    n, mean = len(p), p.mean()
    variance = p.var(ddof=1) / n
    spread = np.std(np.log(np.minimum(p, 1.0)), ddof=1) / np.std(p / mean, ddof=1)
    factor = np.clip(spread, 1.0, MOST_SPREAD)
    # With l = -log, l' = -1 / f and l'' = 1 / f^2.
    return weight * (-np.log(mean) - variance / mean**2 / 2 - factor * (p - mean) / mean)


@pytest.mark.parametrize("n_classes", [1, 3])
def test_pseudo_values_of_cross_entropies_follow_their_slopes(n_classes):
    target = RNG.integers(max(n_classes, 2), size=9)
    p = RNG.dirichlet([0.6] * max(n_classes, 2), size=(2, 3, 4)) * 0.98 + 0.02 / max(n_classes, 2)
    means = p[..., 1] if n_classes == 1 else p
    found, are_fine = risks_of(ENTROPY, target, means)
    assert are_fine
    for prefix in range(2):
        for row in range(3):
            at = ROWS[prefix, row]
            wanted = entropies_by_hand(p[prefix, row, :, target[at]], WEIGHTS[at])
            np.testing.assert_allclose(found[prefix, row], wanted, atol=1e-12)


def test_replicates_that_agree_have_the_loss_itself():
    means = np.full((2, 3, 4), 0.25)
    found, are_fine = risks_of(ENTROPY, np.ones(9, int), means)
    assert are_fine
    np.testing.assert_allclose(found, WEIGHTS[ROWS][..., None] * np.log(4.0) * np.ones(4))


@pytest.mark.parametrize(
    ("value", "is_coarse", "are_fine"),
    [(1 + 5e-5, False, True), (1 + 2e-4, False, False), (1 + 1e-2, True, True), (1.03, True, False),
     (-1e-3, False, False), (np.nan, False, False)],
)  # fmt: skip
def test_probabilities_are_checked(value, is_coarse, are_fine):
    means = np.full((2, 3, 4), 0.5)
    means[1, 2, 3] = value
    assert risks_of(ENTROPY, np.ones(9, int), means, is_coarse=is_coarse)[1] == are_fine


@pytest.mark.parametrize(
    ("excess", "is_coarse", "are_fine"),
    [(5e-5, False, True), (2e-4, False, False), (1e-2, True, True), (3e-2, True, False)],
)
def test_sums_of_probabilities_are_checked(excess, is_coarse, are_fine):
    means = np.full((2, 3, 4, 3), 1 / 3)
    means[0, 1, 2, 0] += excess
    found, is_fine = risks_of(ENTROPY, np.zeros(9, int), means, is_coarse=is_coarse)
    assert is_fine == are_fine
    if is_coarse and is_fine:
        # They are divided by their sum.
        p = np.full(4, 1 / 3)
        p[2] = (1 / 3 + excess) / (1 + excess)
        wanted = entropies_by_hand(p, WEIGHTS[ROWS[0, 1]])
        np.testing.assert_allclose(found[0, 1], wanted, atol=1e-12)


def test_probabilities_of_the_class_that_are_too_low_are_not_fine():
    means = np.full((2, 3, 4), 0.5)
    means[0, 0, 0] = ENTROPY.lowest / 2
    assert not risks_of(ENTROPY, np.ones(9, int), means)[1]
    for enough in (1.0, 2.0):
        means[0, 0, 0] = ENTROPY.lowest * enough
        assert risks_of(ENTROPY, np.ones(9, int), means)[1]


def test_very_large_predictions_are_not_fine():
    means = np.full((2, 3, 4), 1e61)
    assert not risks_of(SQUARED, np.zeros(9), means)[1]
    assert risks_of(SQUARED, np.zeros(9), means / 100)[1]


@pytest.mark.parametrize(
    ("name", "target", "predictions", "n_replicates", "can"),
    [
        ("squared_error", np.zeros(3), np.zeros(3), 2, True),
        ("squared_error", np.zeros(3), np.zeros(3), 1, False),
        ("squared_error", np.zeros((3, 2)), np.zeros((3, 2)), 2, False),
        ("squared_error", np.zeros(3), np.zeros((3, 2)), 2, False),
        ("absolute_error", np.zeros(3), np.zeros(3), 2, False),
        ("cross_entropy", np.zeros(3, int), np.zeros((3, 2)), 2, True),
        ("cross_entropy", np.zeros(3), np.zeros((3, 2)), 2, False),
    ],
)
def test_which_risks_are_computed_there(name, target, predictions, n_replicates, can):
    assert DeviceLoss.can_compute(as_loss(name), target, predictions, n_replicates) == can
