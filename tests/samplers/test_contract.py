"""What every sampler of the package must do, whatever its distribution."""

import inspect
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dsage import samplers
from dsage.samplers import SAMPLERS, Sampler, check_sampler
from sampler_cases import (
    CASES,
    N_DRAWS,
    N_ROWS,
    coalitions,
    data,
    every,
    fitted,
    make,
    noise_for,
    rows_of,
)


def test_every_sampler_of_the_package_is_under_contract():
    concrete = {
        name
        for name in samplers.__all__
        if inspect.isclass(thing := getattr(samplers, name))
        and hasattr(thing, "draw")
        and thing not in (samplers.BaseSampler, samplers.Sampler)
    }
    assert concrete <= {kind.__name__ for _, kind, _ in CASES.values()}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_registered_sampler_says_which_data_it_fits_and_refuses_others(name):
    traits = SAMPLERS.traits(name)
    assert set(traits["fits"]) <= {"numbers", "classes", "mixed"}
    assert set(traits.get("candidate_for", ())) <= set(traits["fits"])
    assert SAMPLERS.summary(name)
    for kind in {"numbers", "classes", "mixed"} - set(traits["fits"]):
        with pytest.raises((TypeError, ValueError), match=r"X must be .* columns"):
            SAMPLERS[name]().fit(data(kind))


@every
def test_it_is_a_sampler(case):
    sampler = make(case)
    assert isinstance(sampler, Sampler)
    assert check_sampler(sampler) is sampler


@every
def test_the_same_noise_gives_the_same_draws_from_two_fits(case):
    X, noise = rows_of(case), noise_for(case)
    again = make(case).fit(data(CASES[case][0]))
    for known in coalitions(case):
        first = fitted(case).draw(X, known, noise)
        np.testing.assert_array_equal(first, fitted(case).draw(X, known, noise))
        np.testing.assert_array_equal(first, again.draw(X, known, noise))


@every
def test_other_noise_gives_other_draws(case):
    known = np.zeros(fitted(case).n_features_, bool)
    X = rows_of(case)
    one, other = (fitted(case).draw(X, known, noise_for(case, seed)) for seed in (1, 2))
    assert (one != other).any()


@every
def test_known_features_keep_their_values_and_unknown_ones_are_possible(case):
    sampler, X, noise = fitted(case), rows_of(case), noise_for(case)
    encoded = sampler.layout_.encode(X)
    for known in coalitions(case):
        draws = sampler.draw(X, known, noise)
        assert draws.shape == noise.shape
        assert draws.dtype == np.float64
        np.testing.assert_array_equal(
            draws[:, :, known], np.repeat(encoded[:, None, known], N_DRAWS, axis=1)
        )
        assert np.isfinite(draws).all()
        for j in np.flatnonzero(sampler.n_categories_):
            assert set(np.unique(draws[:, :, j])) <= set(range(sampler.n_categories_[j]))


@every
@given(pieces=st.data())
@settings(max_examples=5, deadline=None)
def test_any_split_into_batches_gives_the_same_draws_to_the_bit(case, pieces):
    sampler, X, noise = fitted(case), rows_of(case), noise_for(case)
    known = np.array(
        pieces.draw(st.lists(st.booleans(), min_size=len(X.columns), max_size=len(X.columns)))
    )
    cuts = sorted(pieces.draw(st.sets(st.integers(1, N_ROWS - 1))))
    whole = sampler.draw(X, known, noise)
    bounds = list(zip([0, *cuts], [*cuts, N_ROWS], strict=True))
    parts = [sampler.draw(X.iloc[a:b], known, noise[a:b]) for a, b in bounds]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    if sampler.has_mean and not (sampler.n_categories_[~known] > 0).any():
        means = [sampler.mean(X.iloc[a:b], known) for a, b in bounds]
        np.testing.assert_array_equal(sampler.mean(X, known), np.concatenate(means))


@every
def test_a_batch_of_many_rows_gives_the_same_draws_as_single_rows(case):
    # Vectorized loops treat the rest that does not fill a vector or a chunk in another way.
    sampler = fitted(case)
    X = pd.concat([data(CASES[case][0])] * 3, ignore_index=True)
    noise = noise_for(case, seed=3, n_rows=len(X))
    for known in coalitions(case)[2:]:
        whole = sampler.draw(X, known, noise)
        for row in (0, 1, 100, len(X) - 1):
            alone = sampler.draw(X.iloc[row : row + 1], known, noise[row : row + 1])
            np.testing.assert_array_equal(whole[row], alone[0])


@every
def test_a_small_byte_budget_gives_the_same_draws(case):
    X, noise = rows_of(case), noise_for(case)
    tight = make(case).set_params(max_bytes=1).fit(data(CASES[case][0]))
    for known in coalitions(case):
        np.testing.assert_array_equal(
            tight.draw(X, known, noise), fitted(case).draw(X, known, noise)
        )


@every
def test_draws_along_an_ordering_depend_on_their_row_and_prefix_only(case):
    sampler, X, noise = fitted(case), rows_of(case), noise_for(case)
    order = np.random.default_rng(4).permutation(sampler.n_features_)
    if not sampler.has_orderings:
        with pytest.raises(TypeError, match="sampler must be one that draws along orderings"):
            sampler.ordering(order)
        return
    encoded, scores = sampler.layout_.encode(X), sampler.prepare(noise)
    assert scores.shape == noise.shape
    ordering = sampler.ordering(order)
    whole = {length: draws.copy() for length, draws in ordering.prefixes(X, scores)}
    assert list(whole) == list(range(len(order) + 1))
    for length, draws in whole.items():
        known = np.isin(np.arange(len(order)), order[:length])
        np.testing.assert_array_equal(
            draws[:, :, known], np.repeat(encoded[:, None, known], N_DRAWS, axis=1)
        )
        moved = draws.copy()
        sampler.layout_.possible.snap(moved, known)
        np.testing.assert_array_equal(moved, draws)
    for rows in (slice(0, 1), slice(1, N_ROWS)):
        for length, draws in ordering.prefixes(X[rows], scores[rows], [1, 2]):
            np.testing.assert_array_equal(draws, whole[length][rows])


@every
def test_a_byte_budget_bounds_the_working_memory(case):
    budget, n_rows = 2**18, 2000
    sampler = make(case).set_params(max_bytes=budget).fit(data(CASES[case][0]))
    X = sampler.layout_.encode(data(CASES[case][0], n_rows, 1))
    known = np.arange(sampler.n_features_) % 2 == 0
    noise = noise_for(case, n_rows=n_rows)
    sampler.draw(X[:10], known, noise[:10])
    tracemalloc.start()
    try:
        draws = sampler.draw(X, known, noise)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Beside the chunks: the result and the checked rows. What a chunk needs is an estimate, to
    # which what does not grow with the rows is added.
    assert peak <= draws.nbytes + 2 * X.nbytes + 1.5 * budget


@every
def test_unknown_columns_are_not_looked_at(case):
    sampler, X, noise = fitted(case), rows_of(case), noise_for(case)
    for known in coalitions(case):
        hidden = X.astype(object)
        hidden.iloc[:, np.flatnonzero(~known)] = None
        typed = hidden.astype({name: X[name].dtype for name in X.columns[known]})
        np.testing.assert_array_equal(
            sampler.draw(typed, known, noise), sampler.draw(X, known, noise)
        )


@every
def test_rows_that_were_checked_before_get_the_same_draws(case):
    sampler, noise = fitted(case), noise_for(case)
    rows = sampler.layout_.encode(rows_of(case))
    for known in coalitions(case):
        np.testing.assert_array_equal(
            sampler.draw_rows(rows, known, noise), sampler.draw(rows, known, noise)
        )


@every
def test_arguments_are_left_as_they_were(case):
    X, noise = rows_of(case).copy(), noise_for(case)
    known = coalitions(case)[2]
    encoded = fitted(case).layout_.encode(X)
    copies = encoded.copy(), known.copy(), noise.copy()
    for array in (encoded, known, noise):
        array.flags.writeable = False
    fitted(case).draw(encoded, known, noise)
    for array, copy in zip((encoded, known, noise), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@every
def test_options_can_be_cloned_and_fitted_samplers_pickled(case):
    sampler, X, noise = fitted(case), rows_of(case), noise_for(case)
    fresh = clone(sampler)
    # A sampler within a sampler is cloned, too.
    assert repr(fresh.get_params()) == repr(sampler.get_params())
    assert sampler.is_fitted
    assert not fresh.is_fitted
    assert not sampler.clone().is_fitted
    copy = pickle.loads(pickle.dumps(sampler))
    for known in coalitions(case):
        np.testing.assert_array_equal(copy.draw(X, known, noise), sampler.draw(X, known, noise))


@every
def test_threads_share_a_fitted_sampler(case):
    X, noise = rows_of(case), noise_for(case)
    masks = coalitions(case) * 2
    fresh = make(case).fit(data(CASES[case][0]))
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda known: fresh.draw(X, known, noise), masks))
    for known, draws in zip(masks, together, strict=True):
        np.testing.assert_array_equal(draws, fitted(case).draw(X, known, noise))


@every
def test_float32_is_the_rounded_result(case):
    X, noise = rows_of(case), noise_for(case)
    small = make(case).set_params(dtype=np.float32).fit(data(CASES[case][0]))
    known = coalitions(case)[2]
    draws = small.draw(X, known, noise)
    assert draws.dtype == np.float32
    np.testing.assert_array_equal(draws, fitted(case).draw(X, known, noise).astype(np.float32))


@every
@pytest.mark.parametrize(
    "convert", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"]
)
def test_frames_of_all_kinds_give_the_same_draws(case, convert):
    frame, noise = data(CASES[case][0]), noise_for(case)
    sampler = make(case).fit(convert(frame))
    known = coalitions(case)[2]
    draws = sampler.draw(convert(rows_of(case)), known, noise)
    np.testing.assert_array_equal(draws, fitted(case).draw(rows_of(case), known, noise))
    decoded = sampler.layout_.decode(draws.reshape(-1, draws.shape[-1]))
    assert type(decoded) is type(convert(frame))
    schema = convert(frame).schema
    assert decoded.schema == (schema if convert is pl.from_pandas else schema.remove_metadata())


@every
def test_the_order_of_columns_and_further_columns_do_not_matter(case):
    X, noise = rows_of(case), noise_for(case)
    known = coalitions(case)[2]
    shuffled = X[X.columns[::-1]].assign(target=1.0)
    np.testing.assert_array_equal(
        fitted(case).draw(shuffled, known, noise), fitted(case).draw(X, known, noise)
    )


@every
def test_no_rows_give_no_draws(case):
    known = coalitions(case)[2]
    draws = fitted(case).draw(rows_of(case).iloc[:0], known, noise_for(case)[:0])
    assert draws.shape == (0, N_DRAWS, len(known))


@every
def test_bad_input_is_refused(case):
    sampler, X, noise = fitted(case), rows_of(case), noise_for(case)
    n_features = sampler.n_features_
    known = np.ones(n_features, bool)
    known[-1] = False
    first = X.columns[0]
    with pytest.raises(NotFittedError):
        make(case).draw(X, known, noise)
    with pytest.raises(ValueError, match=f"These are missing: '{first}'"):
        sampler.draw(X.drop(columns=first), known, noise)
    with pytest.raises(ValueError, match=rf"known must be of shape \({n_features},\)"):
        sampler.draw(X, known[1:], noise)
    with pytest.raises(TypeError, match="known must be a boolean array"):
        sampler.draw(X, known.astype(int), noise)
    with pytest.raises(ValueError, match="noise must be of shape"):
        sampler.draw(X, known, noise[1:])
    with pytest.raises(ValueError, match=r"noise must be strictly between 0 and 1; got 1\.0"):
        sampler.draw(X, known, np.ones_like(noise))
    with pytest.raises(ValueError, match=r"X must be of (at least one row|more rows)"):
        make(case).fit(X.iloc[:0])


@every
def test_draws_do_not_depend_on_known_values_that_training_lacks(case):
    sampler, X, noise = fitted(case), rows_of(case), noise_for(case)
    n_features = sampler.n_features_
    some = np.arange(n_features) % 2 == 0
    first = X.columns[0]
    new = X.astype({first: object}) if sampler.n_categories_[0] else X
    gone = new.assign(**{first: new[first].where(X.index > 2)})
    frames = [gone, X.assign(**{first: "odd"})] if sampler.n_categories_[0] else [gone]
    for frame in frames:
        draws = sampler.draw(frame, some, noise)
        without = sampler.draw(X, some & (np.arange(n_features) > 0), noise)
        is_new = frame[first].isna().to_numpy() | (frame[first] == "odd").to_numpy()
        np.testing.assert_array_equal(draws[is_new][..., 1:], without[is_new][..., 1:])
        np.testing.assert_array_equal(
            draws[~is_new], sampler.draw(X[~is_new], some, noise[~is_new])
        )
        decoded = sampler.layout_.extend(frame).decode(draws[:, 0])[first]
        assert (decoded.isna() == frame[first].isna()).all()
        assert ((decoded == "odd") == (frame[first] == "odd")).all()


@every
def test_a_mean_is_that_of_the_draws(case):
    sampler = fitted(case)
    if not sampler.has_mean:
        with pytest.raises(TypeError, match="sampler must be one that knows conditional means"):
            sampler.mean(rows_of(case), coalitions(case)[2])
        return
    X = rows_of(case).iloc[:3]
    n_features, n_draws = sampler.n_features_, 4000
    noise = np.random.default_rng(11).uniform(1e-9, 1 - 1e-9, (3, n_draws, n_features))
    for known in coalitions(case):
        if (sampler.n_categories_[~known] > 0).any():
            with pytest.raises(ValueError, match="Classes have no mean"):
                sampler.mean(X, known)
            continue
        draws = sampler.draw(X, known, noise)
        error = draws.std(axis=1) / np.sqrt(n_draws)
        # Five standard errors; a sampler that interpolates or truncates is off by less than that.
        assert (np.abs(draws.mean(axis=1) - sampler.mean(X, known)) <= 5 * error + 1e-12).all()
