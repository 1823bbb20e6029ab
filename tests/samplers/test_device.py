from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from devices import DEVICES, TOLERANCES, on_host  # noqa: E402
from dsage._random import Streams  # noqa: E402
from dsage.samplers import Gaussian, GaussianCopula, Marginal, Mix, normal_scores  # noqa: E402
from dsage.samplers.device import Place, send_noise, to_scores  # noqa: E402
from dsage.samplers.device.mix import _Blocks  # noqa: E402
from dsage.samplers.noise import Noise  # noqa: E402
from given import all_coalitions  # noqa: E402


def case(n_features=5, n_rows=9, n_draws=4, seed=0):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((n_features, n_features + 2))
    sampler = Gaussian.from_moments(rng.standard_normal(n_features), factor @ factor.T)
    X = rng.standard_normal((n_rows, n_features))
    return sampler, X, rng.random((n_rows, n_draws, n_features))


def fitted(kind, n_features=5):
    """A sampler of curved, clustered data, some rows and noise."""
    rng = np.random.default_rng(3)
    side = rng.choice([-3.0, 3.0], 300)
    Z = side[:, None] + rng.standard_normal((300, n_features)) @ np.triu(np.ones((n_features,) * 2))
    X = np.column_stack([np.exp(Z[:, 0] / 4), Z[:, 1:]])
    if kind == "curved mix":
        X = ((Z - side[:, None]) / 4) ** 3
    samplers = {
        "gaussian": Gaussian(),
        "copula": GaussianCopula(),
        "mix": Mix(n_components=3, n_fits=2),
        "curved mix": Mix(n_fits=1),
        "one component": Mix(n_components=1, n_fits=1),
    }
    return samplers[kind].fit(X), X[:9], rng.random((9, 4, n_features))


def load(sampler, X, noise, device="cpu", dtype=torch.float64):
    return sampler.on_device(device, dtype).load(X).pick(np.arange(len(X)), noise)


KINDS = ["gaussian", "copula", "mix", "curved mix", "one component"]
PRECISE = pytest.mark.parametrize(("dtype", "atol"), TOLERANCES)


@pytest.mark.parametrize("device", DEVICES)
@PRECISE
@pytest.mark.parametrize("kind", KINDS)
def test_prefixes_of_orderings_are_those_of_the_cpu_but_for_rounding(kind, device, dtype, atol):
    sampler, X, noise = fitted(kind)
    scores = sampler.prepare(noise)
    orders = np.array([np.random.default_rng(seed).permutation(5) for seed in range(3)])
    which, lengths = np.repeat([2, 0, 1], 6), np.tile(np.arange(6), 3)
    draws = load(sampler, X, noise, device, dtype).along(orders).draw(which, lengths)
    assert (draws.dtype, draws.device.type) == (dtype, device)
    found = iter(on_host(draws))
    # Of data whose standard deviations are at most 10. The CPU rounds the factors of mixtures.
    atol = max(10 * atol, 2e-6) if isinstance(sampler, Mix) else 10 * atol
    for order in orders[[2, 0, 1]]:
        for _, expected in sampler.ordering(order).prefixes(X, scores):
            np.testing.assert_allclose(next(found), expected, rtol=0, atol=atol)


@pytest.mark.parametrize("device", DEVICES)
@PRECISE
@pytest.mark.parametrize("kind", KINDS)
def test_draws_of_coalitions_are_those_of_the_cpu_but_for_rounding(kind, device, dtype, atol):
    sampler, X, noise = fitted(kind)
    every = all_coalitions(5)
    draws = load(sampler, X, noise, device, dtype).draw(every)
    assert (draws.dtype, draws.device.type) == (dtype, device)
    assert draws.shape == (32, 9, 4, 5)
    # The CPU rounds the factors of a Gaussian to 1e-8.
    atol = max(10 * atol, 2e-6)
    for known, found in zip(every, on_host(draws), strict=True):
        np.testing.assert_allclose(found, sampler.draw(X, known, noise), rtol=0, atol=atol)


@pytest.mark.parametrize(("n_cells", "n_groups"), [(1, 3), (40, 7), (5_000, 6), (3_000, 700)])
def test_every_block_has_cells_of_one_group_and_every_cell_a_place(n_cells, n_groups):
    # Group 0 has most of the cells, the last one none.
    groups = np.random.default_rng(0).geometric(0.4, n_cells) - 1
    groups = torch.from_numpy(np.minimum(groups, n_groups - 2))
    blocks = _Blocks(groups, n_groups)
    assert 16 <= blocks.size <= 512
    assert len(blocks.cells) == len(blocks.of_block) * blocks.size
    assert torch.equal(blocks.cells[blocks.places], torch.arange(n_cells))
    assert torch.equal(blocks.of_block[blocks.places // blocks.size], groups)


def test_many_orderings_of_a_mixture_are_drawn_together_as_one_by_one():
    sampler, X, noise = fitted("mix")
    rows = load(sampler, X, noise)
    orders = np.array([np.random.default_rng(seed).permutation(5) for seed in range(150)])
    together = rows.along(orders).draw(np.arange(150), np.full(150, 2))
    for order, found in zip(orders[::30], together[::30], strict=True):
        torch.testing.assert_close(found, rows.along([order]).draw([0], [2])[0])


def test_numbers_of_curved_margins_are_drawn_as_on_the_cpu():
    rng = np.random.default_rng(0)
    X = np.exp(rng.standard_normal((300, 2)) @ np.triu(np.ones((2, 2))))
    sampler = Mix(n_fits=1).fit(X)
    assert len(sampler.fit_.margins.knots[0]) > 2
    noise = rng.random((7, 5, 2))
    draws = load(sampler, X[:7], noise).draw(all_coalitions(2)).numpy()
    for known, found in zip(all_coalitions(2), draws, strict=True):
        np.testing.assert_allclose(found, sampler.draw(X[:7], known, noise), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_that_of_the_tensors_and_some_copies(kind):
    sampler, X, noise = fitted(kind, n_features=7)
    rows = load(sampler, X, noise)
    paths = rows.along([np.arange(7)])
    held = sum(t.nbytes for t in vars(paths).values() if isinstance(t, torch.Tensor))
    assert held <= rows.bytes_per_ordering <= 10 * held
    drawn = paths.draw([0], [3]).nbytes
    assert drawn <= rows.bytes_per_prefix <= 15 * drawn


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
    rows = load(sampler, X, noise)
    known = rng.random((3, n_features)) < 0.5
    draws = rows.draw(known).numpy()
    assert draws.shape == (3, n_rows, n_draws, n_features)
    order, lengths = rng.permutation(n_features), [0, int(rng.integers(n_features + 1))]
    prefixes = rows.along([order]).draw([0, 0], lengths).numpy()
    assert prefixes.shape == (2, n_rows, n_draws, n_features)
    for mask, one in zip(known, draws, strict=True):
        assert (one[:, :, mask] == X[:, None, mask]).all()
    for length, one in zip(lengths, prefixes, strict=True):
        assert (one[:, :, order[:length]] == X[:, None, order[:length]]).all()


def singular():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    X[:, 2] = 2 * X[:, 0] + 1
    with pytest.warns(UserWarning, match="follow from the columns before"):
        return Gaussian().fit(X), X, rng.random((40, 3, 3))


def test_a_copied_column_stays_a_copy():
    rows = load(*singular())
    orders, sizes = np.array([[2, 1, 0]]), np.arange(4)
    prefixes = rows.along(orders).draw(np.zeros(4, int), sizes)
    for draws in (*rows.draw(all_coalitions(3)), *prefixes):
        found = draws.numpy()
        np.testing.assert_allclose(found[..., 2], 2 * found[..., 0] + 1, atol=1e-6)


def test_rows_that_contradict_a_copied_column_are_drawn_for_as_on_the_cpu():
    sampler, X, noise = singular()
    X = X + np.random.default_rng(1).standard_normal(X.shape)
    draws = load(sampler, X, noise).draw(all_coalitions(3)).numpy()
    for known, found in zip(all_coalitions(3), draws, strict=True):
        np.testing.assert_allclose(found, sampler.draw(X, known, noise), rtol=0, atol=1e-6)


def test_values_far_from_all_components_are_drawn_for_as_on_the_cpu():
    sampler, X, noise = fitted("mix")
    X = X.copy()
    X[0], X[1, 2] = 1e6, -1e5
    orders = np.array([[3, 1, 0, 4, 2]])
    draws = load(sampler, X, noise).along(orders).draw(np.zeros(6, int), np.arange(6)).numpy()
    for length, expected in sampler.ordering(orders[0]).prefixes(X, noise):
        scale = np.abs(expected).max(axis=(0, 1))
        np.testing.assert_allclose(draws[length] / scale, expected / scale, rtol=0, atol=1e-6)


def test_mixtures_have_the_margins_that_their_names_say():
    curves = {kind: fitted(kind)[0].on_device("cpu", torch.float64).curves for kind in KINDS[2:]}
    assert {kind for kind, each in curves.items() if each is not None} == {"curved mix"}
    assert len(fitted("one component")[0].fit_.components) == 1


@pytest.mark.parametrize(("value", "is_near"), [(0.0, True), (60.0, True), (500.0, False)])
def test_rows_are_near_if_no_ordering_has_them_far(value, is_near):
    sampler, X, _ = fitted("mix")
    at, X = sampler.on_device("cpu", torch.float64), X.copy()
    X[0, 1] = value
    scores = torch.from_numpy(sampler.fit_.margins.to_scores(X))
    assert at.are_near(scores) == is_near
    covariances, means = sampler.fit_.components.covariances, sampler.fit_.components.means
    farthest = max(
        np.abs(
            np.linalg.solve(np.linalg.cholesky(each[np.ix_(order, order)]), off[:, order].T)
        ).max()
        for order in map(list, permutations(range(5)))
        for each, off in ((c, scores.numpy() - m) for c, m in zip(covariances, means, strict=True))
    )
    assert (farthest < 128.0) == is_near


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_floats_are_rounded_last(dtype):
    sampler, X, noise = case()
    exact, short = (load(sampler, X, noise, dtype=kind) for kind in (torch.float32, dtype))
    known = all_coalitions(5)[[0, 7]]
    assert torch.equal(short.draw(known), exact.draw(known).to(dtype))
    given_to = [3, 1, 0, 2, 4], [0, 0], [1, 3]
    one, other = (rows.along([given_to[0]]).draw(*given_to[1:]) for rows in (short, exact))
    assert torch.equal(one, other.to(dtype))


def test_columns_of_a_frame_are_found_by_name():
    sampler, X, noise = case(3)
    frame = pd.DataFrame(X, columns=sampler.feature_names_)
    known = all_coalitions(3)
    reversed_columns = load(sampler, frame.iloc[:, ::-1], noise)
    assert torch.equal(reversed_columns.draw(known), load(sampler, X, noise).draw(known))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["sobol", "independent"])
def test_noise_made_on_the_device_is_that_of_the_cpu(kind, device):
    noise = Noise(Streams(4), 3, n_replicates=2, n_draws=4, kind=kind)
    rows = np.array([700, 3, 255, 256])
    place = Place(device, torch.float32)
    np.testing.assert_array_equal(on_host(send_noise(noise, rows, 5, place)), noise(rows, 5))


def test_scores_are_those_of_the_cpu():
    noise = np.random.default_rng(0).random(10_000)
    noise[:3] = 2.0**-53, 1 - 2.0**-53, 0.5
    found = to_scores(torch.from_numpy(noise.copy())).numpy()
    # A logarithm may differ in its last digit, and so may a score that is between two steps.
    apart = np.abs(found - normal_scores(noise))
    assert apart.max() <= 2.0**-20
    assert (apart > 0).mean() < 1e-3


def test_samplers_that_cannot_are_refused():
    assert Gaussian().draws_on_device
    assert Mix().draws_on_device
    assert not Marginal().draws_on_device
    with pytest.raises(TypeError, match=r"draws on a device; got 'Marginal'.*'host'"):
        Marginal().fit(np.zeros((3, 2))).on_device("cpu", torch.float32)


def test_a_mixture_with_special_values_draws_on_the_cpu():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    X[:40, 1] = 0.0
    sampler = Mix(n_components=1, n_fits=1).fit(X)
    assert not sampler.draws_on_device
    with pytest.raises(TypeError, match="draws on a device; got 'Mix'"):
        sampler.on_device("cpu", torch.float32)


def test_wrong_arguments_are_refused():
    sampler, X, noise = case(3)
    table = sampler.on_device("cpu", torch.float32).load(X)
    with pytest.raises(ValueError, match="noise must be of shape"):
        table.pick(np.arange(2), noise)
    rows = table.pick(np.arange(9), noise)
    with pytest.raises(ValueError, match=r"known must be of shape \(n_coalitions, 3\)"):
        rows.draw(np.zeros((1, 2), bool))
    with pytest.raises(ValueError, match="orders must be permutations"):
        rows.along([[0, 0, 1]])
    with pytest.raises(ValueError, match="lengths must be from 0 to 3; got 4"):
        rows.along([[0, 2, 1]]).draw([0], [4])


def test_memory_is_counted_for_an_ordering_and_for_a_prefix():
    sampler, X, noise = case(n_features=5, n_rows=9, n_draws=4)
    rows = load(sampler, X, noise)
    # Four arrays of 5 columns in double precision: of 9 rows, and of a factor.
    assert rows.bytes_per_ordering == 4 * 8 * 5 * (9 + 5)
    # Four arrays of draws, the rows, and the factor.
    assert rows.bytes_per_prefix == 8 * 5 * (4 * 9 * 4 + 9 + 5)
    short = load(sampler, X, noise, dtype=torch.float32)
    assert short.bytes_per_prefix == rows.bytes_per_prefix // 2
    assert short.bytes_per_ordering == rows.bytes_per_ordering


def test_memory_of_a_mixture_grows_with_its_components():
    sampler, X, noise = fitted("mix")
    n_components = len(sampler.fit_.components)
    rows = load(sampler, X, noise)
    assert rows.bytes_per_ordering == n_components * 4 * 8 * 5 * (9 + 5)
    # Arrays of draws, five of rows and components, and eight numbers of each draw.
    n_copies = 5 if rows.at.curves is None else 7
    assert rows.bytes_per_prefix == n_copies * 8 * 36 * 5 + 5 * 8 * 9 * n_components + 8 * 8 * 36


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_beyond_the_features_are_refused(kind):
    sampler, X, noise = fitted(kind)
    paths = load(sampler, X, noise).along([[0, 1, 2, 3, 4]])
    for length, odd in ((6, "6"), (-1, "-1")):
        with pytest.raises(ValueError, match=f"lengths must be from 0 to 5; got {odd}"):
            paths.draw([0, 0], [2, length])
    assert paths.draw([0, 0], [0, 5]).shape == (2, 9, 4, 5)
    assert paths.draw([], []).shape == (0, 9, 4, 5)


@pytest.mark.parametrize(
    "orders", [[0, 1, 2, 3, 4], [[0, 1, 2, 3, 3]], [[0.0, 1, 2, 3, 4]], [[1, 2, 3, 4, 5]]]
)
def test_orderings_that_are_none_are_refused(orders):
    sampler, X, noise = case()
    with pytest.raises(ValueError, match=r"permutations of 0 \.\. 4"):
        load(sampler, X, noise).along(orders)


@pytest.mark.parametrize("n_sets", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_orderings_draw_for_their_own_sets_of_rows(kind, n_sets):
    sampler, X, _ = fitted(kind)
    rng = np.random.default_rng(0)
    table = sampler.on_device("cpu", torch.float64).load(X)
    rows = np.array([[0, 3], [8, 1], [5, 5]])[:n_sets]
    noise = rng.random((2 * n_sets, 4, 5))
    orders = np.array([rng.permutation(5) for _ in range(4)])
    sets = np.array([2, 0, 1, 2]) % n_sets
    which, lengths = np.array([0, 1, 2, 3, 3, 0]), np.array([2, 0, 3, 5, 1, 4])
    together = table.pick(rows, noise)
    assert (together.n_sets, together.shape) == (n_sets, (2, 4, 5))
    draws = together.along(orders, sets).draw(which, lengths).numpy()
    for found, number, length in zip(draws, which, lengths, strict=True):
        at = sets[number]
        alone = table.pick(rows[at], noise[2 * at : 2 * at + 2]).along(orders[[number]])
        np.testing.assert_allclose(found, alone.draw([0], [length])[0].numpy(), rtol=1e-9)
    # By default orderings are about the first set.
    first = together.along(orders).draw([1], [3]).numpy()
    alone = table.pick(rows[0], noise[:2]).along(orders[[1]]).draw([0], [3]).numpy()
    np.testing.assert_allclose(first, alone, rtol=1e-9)
