"""With which other samplers a run is compared, and what is said about it."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dsage._check import SamplerWarning
from dsage._random import Streams
from dsage.data.inputs import check_inputs
from dsage.estimate import SamplerCheck, rivals
from dsage.estimate.rivals import _find_others, _half, _warn, check_sampler_of_run
from dsage.samplers import Gaussian, Marginal

NAMES = ("a", "b")


def inputs_of(n_train=41, n_test=20):
    rng = np.random.default_rng(0)
    n_rows = n_train + n_test
    kind = np.array(["often"] * n_rows)
    kind[3] = "once"
    X = pd.DataFrame({"a": rng.normal(size=n_rows), "b": kind})
    y = pd.Series(X["a"], name="y")
    return check_inputs(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def found_of(rivals=(), unfitted=None, sampler=None):
    info = SimpleNamespace(name="Gaussian")
    return SimpleNamespace(rivals=rivals, unfitted=unfitted, info=info, sampler=sampler)


def test_half_of_the_rows_has_a_row_of_each_class():
    for seed in range(5):
        inputs = inputs_of()
        rows = _half(inputs, Streams(seed))
        # 20 of 41, and the first row of each of two classes, if they are not among them.
        assert 20 <= len(rows) <= 22
        assert {0, 3} <= set(rows.tolist())
        assert (np.diff(rows) > 0).all()
    assert _half(inputs, Streams(0)).tolist() != _half(inputs, Streams(1)).tolist()


def test_rivals_are_fitted_to_all_rows_and_the_sampler_itself_to_half():
    rival = SimpleNamespace(name="Rival", sampler=Marginal(), is_better=True)
    (other,) = _find_others(found_of([rival], Gaussian()), inputs_of(), Streams(0))
    assert (other.name, other.n_rows, other.is_better, other.is_own) == ("Rival", 41, True, False)
    inputs = inputs_of()
    (own,) = _find_others(found_of(unfitted=Marginal()), inputs, Streams(0))
    assert own.name == "Gaussian, fitted to half of the rows"
    assert own.n_rows == len(_half(inputs, Streams(0)))
    assert (own.is_own, own.is_better) == (True, False)
    assert len(own.fit().equal_rows) == own.n_rows


@pytest.mark.parametrize(("n_train", "n_others"), [(39, 0), (40, 1)])
def test_few_rows_are_not_halved(n_train, n_others):
    found = _find_others(found_of(unfitted=Marginal()), inputs_of(n_train), Streams(0))
    assert len(found) == n_others
    assert _find_others(found_of(), inputs_of(n_train), Streams(0)) == []


def check_of(others, are_better, *, is_own=False, size=1.0):
    n_others = len(others)
    arrays = np.full((n_others, 2), size), np.zeros((n_others, 2)), np.full((n_others, 2), 50.0)
    return SamplerCheck(NAMES, others, are_better, *arrays, 10, is_own=is_own)


ESTIMATE = SimpleNamespace(
    feature_names=NAMES, values=np.array([0.0, 3.0]), se=np.full(2, 0.1), se_rows=np.full(2, 0.1)
)


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (check_of(("X", "Y"), (False, True)), r"Y scores clearly better than Mix .*sampler='auto'"),
        (check_of(("X", "Y"), (False, False)), "With X or Y, which scores as well as Mix, .*more"),
        (check_of(("Half",), (False,), is_own=True), "With Mix fitted to half of the rows .*more"),
    ],
)
def test_a_warning_says_which_sampler_would_change_what(check, words):
    with pytest.warns(SamplerWarning, match=words) as seen:
        _warn(check, ESTIMATE, "Mix")
    assert "the values of ['a', 'b'] would change" in str(seen[0].message)


def test_small_differences_are_not_worth_a_warning(recwarn):
    _warn(check_of(("X",), (True,), size=0.1), ESTIMATE, "Mix")
    assert len(recwarn) == 0


def checked(sampler, n_rows, *, is_wanted=True):
    made = []

    def make_game(fitted, **options):
        made.append((fitted, options))
        return SimpleNamespace(n_rows=n_rows)

    found = check_sampler_of_run(
        found_of(sampler=sampler), ESTIMATE, SimpleNamespace(n_rows=n_rows), make_game, inputs_of(),
        oracle=None, n_draws=8, options=None, seed=0, is_wanted=is_wanted,
    )  # fmt: skip
    return found, made


def test_very_many_rows_are_not_all_compared(monkeypatch):
    nothing = SamplerCheck.none(NAMES, "nothing")
    monkeypatch.setattr(rivals, "check_by_others", lambda *_, **__: nothing)
    sampler = Gaussian.from_moments(np.zeros(2), np.eye(2), list(NAMES))
    _, ((_, few),) = checked(sampler, 2**14)
    assert few == {"is_controlled": False}
    found, ((_, many),) = checked(sampler, 2**14 + 1)
    assert found is nothing
    assert len(many["rows"]) == 2**14
    assert (np.diff(many["rows"]) > 0).all()


def test_marginal_samplers_have_no_rivals_and_a_check_can_be_turned_off():
    sampler = Marginal().fit(pd.DataFrame({"a": [1.0, 2.0], "b": [0.5, 2.5]}))
    found, made = checked(sampler, 10)
    assert "the sampler is marginal" in found.reason
    off, _ = checked(sampler, 10, is_wanted=False)
    assert (off.reason, made) == ("it was turned off", [])


def test_a_comparison_that_fails_or_is_interrupted_costs_no_values(monkeypatch):
    def ended(error):
        def check(*_, **__):
            raise error

        return check

    sampler = Gaussian.from_moments(np.zeros(2), np.eye(2), list(NAMES))
    monkeypatch.setattr(rivals, "check_by_others", ended(KeyboardInterrupt()))
    assert "was interrupted" in checked(sampler, 10)[0].reason
    monkeypatch.setattr(rivals, "check_by_others", ended(RuntimeError("odd draws")))
    with pytest.warns(UserWarning, match="The error of the sampler is unknown.*odd draws"):
        assert "RuntimeError: odd draws" in checked(sampler, 10)[0].reason
