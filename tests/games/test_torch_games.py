import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

from devices import DEVICES, TOLERANCES  # noqa: E402
from dsage.estimate import as_stopping, run  # noqa: E402
from dsage.games import LossGame  # noqa: E402
from dsage.games.base import Along, Coalitions, ask  # noqa: E402
from dsage.games.cached import in_turn  # noqa: E402
from dsage.games.output import OutputGame  # noqa: E402
from dsage.models import as_model  # noqa: E402
from dsage.models.torch_module import TorchPredictor  # noqa: E402
from dsage.samplers import Gaussian  # noqa: E402
from exact_values import shapley  # noqa: E402
from given import all_coalitions  # noqa: E402

N_ROWS = 60
GENERATOR = np.random.default_rng(0)
X = pd.DataFrame(
    GENERATOR.normal(size=(N_ROWS, 4)) @ GENERATOR.normal(size=(4, 4)) + 1, columns=list("abcd")
)
Y = np.abs(X["a"]) + X["b"] * X["c"] + GENERATOR.normal(size=N_ROWS)
CODES = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
SAMPLER = Gaussian().fit(X)
EVERY = all_coalitions(4)
ROWS = np.arange(N_ROWS)
ORDERS = np.array([[2, 0, 3, 1], [1, 3, 0, 2]])
WEIGHTS = GENERATOR.normal(size=(4, 8))
TOPS = {"squared_error": GENERATOR.normal(size=(8, 1)), "cross_entropy": np.eye(8)[:, 2:5]}


def function(loss):
    """A small network in NumPy."""

    def network(frame):
        out = np.tanh(np.asarray(frame) @ WEIGHTS) @ TOPS[loss]
        if loss == "squared_error":
            return out[:, 0]
        return np.exp(out) / np.exp(out).sum(axis=1, keepdims=True)

    return network


def module(loss, dtype=torch.float64, device="cpu"):
    """The same network as a module."""
    layers = []
    for weights in (WEIGHTS, TOPS[loss]):
        layer = torch.nn.Linear(*weights.shape, bias=False)
        layer.weight = torch.nn.Parameter(torch.from_numpy(weights.T.copy()))
        layers += [layer, torch.nn.Tanh()]
    layers[-1] = torch.nn.Softmax(dim=1) if loss == "cross_entropy" else torch.nn.Identity()
    return torch.nn.Sequential(*layers).to(device, dtype)


def game_of(model, loss, **options):
    y = Y if loss == "squared_error" else CODES
    # On a device there is no control of the draws.
    defaults = {"n_draws": 6, "n_replicates": 3, "random_state": 5, "draw_control": "none"}
    options = defaults | {"loss": loss} | options
    return LossGame(model, SAMPLER, X, y, **options)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("draws", ["host", "module"])
@pytest.mark.parametrize(("dtype", "atol"), TOLERANCES)
@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
def test_risks_of_a_module_are_those_of_its_formula(device, draws, dtype, atol, loss):
    plain = game_of(function(loss), loss)
    game = game_of(TorchPredictor(module(loss, dtype, device), draws=draws), loss)
    # Squared errors are of the order of 100 here, and a pseudo-value is a difference of three. The
    # CPU rounds factors for coalitions to 1e-8.
    atol *= 10
    np.testing.assert_allclose(
        game.risks(EVERY, ROWS, 1), plain.risks(EVERY, ROWS, 1), rtol=0, atol=max(atol, 1e-6)
    )
    needed = np.array([[True, False, True, True, True], [True, True, True, False, True]])
    found = game.path_risks(ORDERS, ROWS, 1, needed)
    expected = plain.path_risks(ORDERS, ROWS, 1, needed)
    np.testing.assert_allclose(found[needed], expected[needed], rtol=0, atol=atol)
    assert game.n_predicted == plain.n_predicted


@pytest.mark.parametrize("draws", ["host", "module"])
def test_values_of_a_module_are_those_of_its_formula(draws):
    options = {"random_state": 0, "exact": "never", "stopping": as_stopping(n_orderings=20)}
    plain = run(game_of(function("squared_error"), "squared_error"), **options)
    found = run(
        game_of(TorchPredictor(module("squared_error"), draws=draws), "squared_error"), **options
    )
    np.testing.assert_allclose(found.values, plain.values, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.se, plain.se, rtol=1e-6)


def test_values_from_draws_on_the_device_are_exact_but_for_the_draws():
    """The risks of a linear module are known: nothing but the draws is random."""
    weights = np.array([1.0, -2.0, 0.5, 0.3])
    layer = torch.nn.Linear(4, 1, bias=False).double()
    layer.weight = torch.nn.Parameter(torch.from_numpy(weights[None]))

    def risk(coalition):
        known = np.isin(np.arange(4), list(coalition))
        return float(np.mean((Y - SAMPLER.mean(X, known) @ weights) ** 2))

    game = game_of(
        TorchPredictor(layer, draws="module"), "squared_error", n_draws=64, n_replicates=16
    )
    assert game.is_drawn
    found = run(game, random_state=0, audit=False)
    error = found.values - shapley(risk, 4)
    assert (np.abs(error) <= 5 * found.se + 1e-9).all()
    assert np.abs(error).max() < 0.02 * np.ptp(found.values)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
@pytest.mark.parametrize("max_bytes", [2**28, 20_000])
def test_requests_that_are_answered_together_have_the_same_answers(device, loss, max_bytes):
    game = game_of(
        TorchPredictor(module(loss, device=device), draws="module"), loss, max_bytes=max_bytes
    )
    some = np.array([[True, False, True, True, True], [False, True, True, False, True]])
    requests = [
        Along(ORDERS, ROWS[:20], 1, some),
        Coalitions(EVERY, ROWS[20:38], 1),
        Along(ORDERS[:1], ROWS[40:59], 1, np.ones((1, 5), bool)),
    ]
    before = game.n_predicted
    together = game.answers(requests)
    n_predicted = game.n_predicted - before
    for found, request in zip(together, requests, strict=True):
        expected = ask(game, request)
        is_asked = request.needed if isinstance(request, Along) else slice(None)
        np.testing.assert_allclose(found[is_asked], expected[is_asked], rtol=0, atol=1e-9)
    assert n_predicted == game.n_predicted - before - n_predicted


def test_an_accelerator_is_asked_for_much_at_a_time(monkeypatch):
    game = game_of(TorchPredictor(module("squared_error"), draws="module"), "squared_error")
    asked = []
    monkeypatch.setattr(
        type(game), "answers", lambda self, some: asked.append(len(some)) or [None] * len(some)
    )
    requests = [Coalitions(EVERY, ROWS, epoch) for epoch in range(5)]
    in_turn(game, requests)
    game.pairs_at_once = 2 * 16 * N_ROWS
    in_turn(game, requests)
    game.pairs_at_once = 1
    in_turn(game, requests[:2])
    assert asked == [1, 1, 1, 1, 1, 2, 2, 1, 1, 1]


def test_probabilities_of_zero_are_drawn_again_where_requests_are_answered_together():
    steep = torch.nn.Sequential(*module("cross_entropy")[:-1], torch.nn.Threshold(0.0, -1e4))
    sharp = torch.nn.Sequential(steep, torch.nn.Softmax(dim=1))
    game = game_of(TorchPredictor(sharp, draws="module"), "cross_entropy")
    requests = [Along(ORDERS, ROWS[part::2], 0, np.ones((2, 5), bool)) for part in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found, request in zip(game.answers(requests), requests, strict=True):
            np.testing.assert_allclose(found, ask(game, request), rtol=0, atol=1e-9)


def test_small_chunks_change_nothing_but_rounding():
    predictor = TorchPredictor(module("cross_entropy"), draws="module")
    whole = game_of(predictor, "cross_entropy")
    parts = game_of(predictor, "cross_entropy", max_bytes=20_000)
    needed = np.ones((2, 5), bool)
    np.testing.assert_allclose(
        parts.risks(EVERY, ROWS), whole.risks(EVERY, ROWS), rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(
        parts.path_risks(ORDERS, ROWS, 0, needed),
        whole.path_risks(ORDERS, ROWS, 0, needed),
        rtol=0,
        atol=1e-10,
    )


def test_a_pickled_game_of_a_module_has_the_same_risks():
    game = game_of(TorchPredictor(module("squared_error"), draws="module"), "squared_error")
    again = pickle.loads(pickle.dumps(game))
    np.testing.assert_array_equal(again.risks(EVERY, ROWS), game.risks(EVERY, ROWS))


def test_a_module_alone_is_a_model():
    game = LossGame(module("cross_entropy", torch.float32), SAMPLER, X, CODES, random_state=0)
    assert game.loss.name == "cross_entropy"
    assert game.predictions.shape == (N_ROWS, 3)
    named = as_model(module("cross_entropy"), "cross_entropy", classes=["x", "y", "z"])
    labelled = LossGame(named, SAMPLER, X, np.array(["x", "y", "z"])[CODES], loss="cross_entropy")
    np.testing.assert_array_equal(labelled.target, CODES)


def test_logits_are_refused_by_the_game():
    logits = torch.nn.Sequential(*module("cross_entropy"))[:-1]
    with pytest.raises(ValueError, match=r"must be probabilities.*torch\.nn\.Softmax\(dim=1\)"):
        game_of(logits, "cross_entropy")


@pytest.mark.parametrize("draws", ["host", "module"])
@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
def test_outputs_of_a_module_are_those_of_its_formula(draws, loss):
    options = {"output": 1 if loss == "cross_entropy" else None, "random_state": 5}
    options["draw_control"] = "none"
    plain = OutputGame(function(loss), SAMPLER, X, **options)
    game = OutputGame(TorchPredictor(module(loss), draws=draws), SAMPLER, X, **options)
    needed = np.ones((2, 5), bool)
    for found, expected, atol in (
        (game.risks(EVERY, ROWS), plain.risks(EVERY, ROWS), 1e-7),
        (
            game.path_risks(ORDERS, ROWS, 0, needed),
            plain.path_risks(ORDERS, ROWS, 0, needed),
            1e-10,
        ),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def test_outputs_come_from_draws_on_the_device(monkeypatch):
    predictor = TorchPredictor(module("cross_entropy"), draws="module")
    games = [
        OutputGame(predictor, SAMPLER, X, output=2, random_state=0),
        game_of(predictor, "cross_entropy"),
    ]
    monkeypatch.setattr(Gaussian, "draw", None)
    for game in games:
        game.risks(EVERY, ROWS)


def test_a_module_in_worker_processes_gives_the_same_to_the_bit():
    options = {"random_state": 0, "exact": "never", "stopping": as_stopping(n_orderings=8)}
    found = []
    for n_jobs in (1, 2):
        with joblib.parallel_config(n_jobs=n_jobs):
            game = game_of(module("squared_error", torch.float32), "squared_error")
            found.append(run(game, **options).values)
    np.testing.assert_array_equal(*found)


def test_runs_hold_modules_at_one_thread():
    """With more of them, a module has other last digits."""
    seen = set()
    spied = module("squared_error")
    game = game_of(spied, "squared_error")
    spied.register_forward_pre_hook(lambda *_: seen.add(torch.get_num_threads()))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run(game, random_state=0, stopping=as_stopping(n_orderings=2))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen == {1}
