import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from devices import DEVICES, TOLERANCES, on_host  # noqa: E402
from dsage.samplers import Gaussian, Marginal, normal_scores  # noqa: E402
from dsage.samplers.device import DeviceGaussian  # noqa: E402
from given import all_coalitions  # noqa: E402


def case(n_features=5, n_rows=9, n_draws=4, seed=0):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((n_features, n_features + 2))
    sampler = Gaussian.from_moments(rng.standard_normal(n_features), factor @ factor.T)
    X = rng.standard_normal((n_rows, n_features))
    return sampler, X, rng.random((n_rows, n_draws, n_features))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dtype", "atol"), TOLERANCES)
def test_prefixes_are_those_of_the_cpu_but_for_rounding(device, dtype, atol):
    sampler, X, noise = case(12)
    scores = normal_scores(noise)
    order = np.random.default_rng(1).permutation(12)
    drawn = DeviceGaussian(sampler, device, dtype).load(X, scores).ordering(order)
    draws = drawn.draw(range(13))
    assert (draws.dtype, draws.device.type) == (dtype, device)
    for length, expected in sampler.ordering(order).prefixes(X, scores):
        np.testing.assert_allclose(on_host(draws[length]), expected, rtol=0, atol=10 * atol)
        some = drawn.draw([length])
        np.testing.assert_allclose(on_host(some[0]), expected, rtol=0, atol=10 * atol)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dtype", "atol"), TOLERANCES)
def test_draws_of_coalitions_are_those_of_the_cpu_but_for_rounding(device, dtype, atol):
    sampler, X, noise = case()
    every = all_coalitions(5)
    draws = DeviceGaussian(sampler, device, dtype).load(X, normal_scores(noise)).draw(every)
    assert (draws.dtype, draws.device.type) == (dtype, device)
    assert draws.shape == (32, 9, 4, 5)
    for known, found in zip(every, on_host(draws), strict=True):
        np.testing.assert_allclose(found, sampler.draw(X, known, noise), rtol=0, atol=10 * atol)


@settings(max_examples=30, deadline=None)
@given(
    n_features=st.integers(1, 8),
    n_rows=st.integers(0, 20),
    n_draws=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_shapes_and_known_values_are_kept(n_features, n_rows, n_draws, seed):
    sampler, X, noise = case(n_features, n_rows, n_draws, seed)
    rng = np.random.default_rng(seed)
    rows = DeviceGaussian(sampler, "cpu", torch.float64).load(X, normal_scores(noise))
    known = rng.random((3, n_features)) < 0.5
    draws = rows.draw(known).numpy()
    assert draws.shape == (3, n_rows, n_draws, n_features)
    order, lengths = rng.permutation(n_features), sorted({0, int(rng.integers(n_features + 1))})
    prefixes = rows.ordering(order).draw(lengths).numpy()
    assert prefixes.shape == (len(lengths), n_rows, n_draws, n_features)
    for mask, one in zip(known, draws, strict=True):
        assert (one[:, :, mask] == X[:, None, mask]).all()
    for length, one in zip(lengths, prefixes, strict=True):
        assert (one[:, :, order[:length]] == X[:, None, order[:length]]).all()


def test_a_copied_column_stays_a_copy():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    X[:, 2] = 2 * X[:, 0] + 1
    with pytest.warns(UserWarning, match="follow from the columns before"):
        sampler = Gaussian().fit(X)
    rows = DeviceGaussian(sampler, "cpu", torch.float64).load(
        X, normal_scores(rng.random((40, 3, 3)))
    )
    for draws in (*rows.draw(all_coalitions(3)), *rows.ordering([2, 1, 0]).draw(range(4))):
        found = draws.numpy()
        np.testing.assert_allclose(found[..., 2], 2 * found[..., 0] + 1, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_floats_are_rounded_last(dtype):
    sampler, X, noise = case()
    scores = normal_scores(noise)
    exact = DeviceGaussian(sampler, "cpu", torch.float32).load(X, scores)
    short = DeviceGaussian(sampler, "cpu", dtype).load(X, scores)
    known = all_coalitions(5)[[0, 7]]
    assert torch.equal(short.draw(known), exact.draw(known).to(dtype))
    order = [3, 1, 0, 2, 4]
    assert torch.equal(
        short.ordering(order).draw([1, 3]), exact.ordering(order).draw([1, 3]).to(dtype)
    )


def test_columns_of_a_frame_are_found_by_name():
    sampler, X, noise = case(3)
    frame = pd.DataFrame(X, columns=sampler.feature_names_)
    at, scores = DeviceGaussian(sampler, "cpu", torch.float64), normal_scores(noise)
    known = all_coalitions(3)
    assert torch.equal(
        at.load(frame.iloc[:, ::-1], scores).draw(known), at.load(X, scores).draw(known)
    )


def test_other_samplers_are_refused():
    assert Gaussian().draws_on_device
    assert not Marginal().draws_on_device
    with pytest.raises(TypeError, match=r"draws on a device; got 'Marginal'.*'host'"):
        Marginal().fit(np.zeros((3, 2))).on_device("cpu", torch.float32)


def test_wrong_arguments_are_refused():
    sampler, X, noise = case(3)
    scores = normal_scores(noise)
    at = DeviceGaussian(sampler, "cpu", torch.float32)
    with pytest.raises(ValueError, match="scores must be of shape"):
        at.load(X[:2], scores)
    rows = at.load(X, scores)
    with pytest.raises(ValueError, match=r"known must be of shape \(n_coalitions, 3\)"):
        rows.draw(np.zeros((1, 2), bool))
    with pytest.raises(ValueError, match="order must be a permutation"):
        rows.ordering([0, 0, 1])
    with pytest.raises(ValueError, match="lengths must be ascending"):
        rows.ordering([0, 2, 1]).draw([2, 1])
