import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.tree import DecisionTreeClassifier

from dsage.games import LossGame
from dsage.models import as_model
from dsage.models.losses import choose_loss
from dsage.models.torch_module import BATCH_ROWS, CPU_BATCH_ROWS, TorchPredictor
from dsage.models.torch_tools import one_thread
from dsage.samplers import Gaussian

torch = pytest.importorskip("torch")

NAMES = ["age", "dose", "weight"]
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal([0.0, 5.0, -3.0], [1.0, 0.1, 4.0], (50, 3))
LABELS = np.array(["no", "maybe", "yes"])[np.digitize(X[:, 0], [-0.5, 0.5])]

CONTAINERS = {
    "numpy": lambda X: X,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "pyarrow": lambda X: pa.table({name: X[:, i] for i, name in enumerate(NAMES)}),
}


def mlp(*last, n_outputs=1, dtype=torch.float32):
    """A small network, the same each time, with dropout and batch normalisation."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        layers = [torch.nn.Linear(3, 16), torch.nn.BatchNorm1d(16), torch.nn.Tanh()]
        layers += [torch.nn.Dropout(0.5), torch.nn.Linear(16, n_outputs), *last]
        return torch.nn.Sequential(*layers).to(dtype)


def by_hand(module, rows=X):
    """The formula of the small network, in float64 NumPy."""
    first, norm, _, _, second, *_ = module
    w1, b1, w2, b2 = (
        each.detach().double().numpy()
        for each in (first.weight, first.bias, second.weight, second.bias)
    )
    hidden = (rows @ w1.T + b1 - norm.running_mean.double().numpy()) / np.sqrt(
        norm.running_var.double().numpy() + norm.eps
    )
    return np.tanh(hidden) @ w2.T + b2


class Spy(torch.nn.Module):
    """Note what is seen, and under which circumstances."""

    def __init__(self, most=10**9):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)
        self.inner = torch.nn.Dropout(0.5)
        self.most = most
        self.sizes, self.dtypes, self.modes = [], set(), set()

    def forward(self, rows):
        self.sizes.append(len(rows))
        self.dtypes.add(rows.dtype)
        self.modes.add((self.training, self.inner.training, torch.is_grad_enabled()))
        if len(rows) > self.most:
            raise torch.OutOfMemoryError("too many")
        return self.layer(rows)


def returns(function):
    class Made(torch.nn.Module):
        def forward(self, rows):
            return function(rows)

    return Made()


# Predictions


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float64, 1e-13)])
def test_a_module_predicts_what_its_formula_says(container, dtype, atol):
    module = mlp(dtype=dtype)
    predicted = as_model(module, "squared_error").predict(CONTAINERS[container](X))
    assert predicted.dtype == np.float64
    np.testing.assert_allclose(predicted, by_hand(module)[:, 0], rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_rows_arrive_in_the_dtype_of_the_parameters(dtype):
    spy = Spy().to(dtype)
    as_model(spy, "squared_error").predict(X)
    assert spy.dtypes == {dtype}


def test_a_module_without_parameters_takes_the_default_dtype():
    seen = []
    module = returns(lambda rows: seen.append(rows.dtype) or rows.sum(dim=1))
    np.testing.assert_allclose(
        as_model(module, "squared_error").predict(X), X.sum(axis=1), atol=1e-4
    )
    assert seen == [torch.get_default_dtype()]


def test_buffers_of_floats_tell_the_dtype_where_there_are_no_parameters():
    module = returns(lambda rows: rows.sum(dim=1))
    module.register_buffer("count", torch.tensor(1))
    module.register_buffer("scale", torch.ones(3, dtype=torch.float64))
    predicted = as_model(module, "squared_error").predict(X)
    np.testing.assert_allclose(predicted, X.sum(axis=1), rtol=1e-14)


def test_integers_and_booleans_are_numbers():
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": [0.5, 1.5]})
    module = returns(lambda rows: rows @ torch.tensor([100.0, 10.0, 1.0]))
    for rows in (frame, pl.from_pandas(frame), pa.table({c: frame[c] for c in frame})):
        assert as_model(module, "squared_error").predict(rows).tolist() == [110.5, 201.5]


def test_read_only_rows_are_taken():
    rows = X.copy()
    rows.flags.writeable = False
    assert len(as_model(mlp(), "squared_error").predict(rows)) == len(X)


def test_rows_that_a_module_changes_stay_as_they_are():
    rows = X.copy()
    as_model(returns(lambda rows: rows.mul_(2).sum(dim=1)).double(), "squared_error").predict(rows)
    np.testing.assert_array_equal(rows, X)


# Mode, gradients and batches


def test_modules_run_in_eval_mode_without_gradients_and_keep_their_modes():
    spy = Spy().train()
    spy.layer.eval()  # a part that was frozen by the user
    as_model(spy, "squared_error").predict(X)
    assert spy.modes == {(False, False, False)}
    assert (spy.training, spy.layer.training, spy.inner.training) == (True, False, True)


def test_a_module_may_need_gradients_for_itself():
    class Slope(torch.nn.Module):
        def forward(self, rows):
            with torch.enable_grad():
                rows = rows.requires_grad_()
                (slopes,) = torch.autograd.grad((rows**2).sum(), rows, create_graph=True)
                return slopes.sum(dim=1)

    predicted = as_model(Slope(), "squared_error").predict(X)
    np.testing.assert_allclose(predicted, 2 * X.sum(axis=1), atol=1e-4)


def test_modes_are_restored_after_an_error():
    spy = Spy().train()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught:
        as_model(spy, "squared_error").predict(X[:, :2])
    assert "Raised by Spy when dsage asked it" in caught.value.__notes__[0]
    assert spy.training
    assert spy.inner.training


def test_a_thread_that_ends_does_not_change_the_mode_for_another():
    entered, release = threading.Event(), threading.Event()
    modes = []

    class Slow(torch.nn.Module):
        def forward(self, rows):
            if len(rows) == 2:
                entered.set()
                release.wait(10)
                modes.append(self.training)
            return rows.sum(dim=1)

    module = Slow().train()
    predict = as_model(module, "squared_error").predict
    thread = threading.Thread(target=predict, args=(X[:2],))
    thread.start()
    assert entered.wait(10)
    predict(X[:1])
    release.set()
    thread.join(10)
    assert modes == [False]
    assert module.training


def test_batches_are_no_larger_than_asked_for():
    spy = Spy()
    predictor = TorchPredictor(spy, batch_rows=20)
    np.testing.assert_allclose(predictor(X), TorchPredictor(spy)(X), atol=1e-5)
    assert spy.sizes == [20, 20, 10, 50]


def test_batches_of_the_cpu_fit_its_caches():
    spy = Spy()
    TorchPredictor(spy)(np.zeros((CPU_BATCH_ROWS + 1, 3)))
    assert spy.sizes == [CPU_BATCH_ROWS, 1]
    assert CPU_BATCH_ROWS < BATCH_ROWS


def test_no_rows_give_no_predictions():
    assert as_model(mlp(), "squared_error").predict(X[:0]).shape == (0,)


def test_batches_shrink_where_memory_runs_out_with_one_warning():
    spy = Spy(most=15)
    predictor = TorchPredictor(spy)
    with pytest.warns(UserWarning, match="Spy ran out of memory.*25 rows at a time") as caught:
        predicted = predictor(X)
    assert len(caught) == 1
    assert spy.sizes == [50, 25, 12, 12, 12, 12, 2]
    spy.most = 10**9
    np.testing.assert_allclose(predicted, TorchPredictor(spy)(X), atol=1e-5)
    spy.most, spy.sizes = 5, []
    predictor(X[:12])
    assert spy.sizes == [12, 6, 3, 3, 3, 3]


def test_a_single_row_that_does_not_fit_is_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(torch.OutOfMemoryError, match="too many"):
            TorchPredictor(Spy(most=0))(X)


def test_pickled_predictors_predict_the_same():
    model = as_model(mlp(), "squared_error")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.predictor.draws == "auto"


def test_torch_is_held_at_one_thread_and_let_go():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


# Probabilities and losses


def test_probabilities_of_a_softmax_are_taken():
    module = mlp(torch.nn.Softmax(dim=1), n_outputs=3)
    model = as_model(module, "cross_entropy", classes=["no", "maybe", "yes"])
    scores = np.exp(by_hand(module))
    np.testing.assert_allclose(
        model.predict(X), scores / scores.sum(axis=1, keepdims=True), atol=1e-6
    )
    assert model.classes.tolist() == ["no", "maybe", "yes"]


@pytest.mark.parametrize("loss", ["cross_entropy", "brier", "zero_one"])
def test_logits_are_refused_for_losses_of_classes(loss):
    with pytest.raises(ValueError, match=r"Sequential must be probabilities.*Softmax\(dim=1\)\)"):
        as_model(mlp(n_outputs=3), loss).predict(X)
    with pytest.raises(ValueError, match=r"Sequential must be probabilities.*Sigmoid\(\)\)"):
        as_model(mlp(), loss).predict(X)


def test_positive_scores_are_refused_by_their_sum():
    module = mlp(torch.nn.Sigmoid(), n_outputs=3)
    with pytest.raises(ValueError, match=r"must be probabilities that sum to one; got 'a sum of"):
        as_model(module, "brier").predict(X)


def test_logits_that_show_only_later_are_refused():
    model = as_model(returns(lambda rows: rows[:, 0]), "cross_entropy")
    assert model.predict(np.full((2, 3), 0.5)).tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match=r"in \[0, 1\]; got 1\.5"):
        model.predict(np.full((2, 3), 1.5))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_probabilities_of_short_floats_are_made_to_sum_to_one(dtype):
    module = mlp(torch.nn.Softmax(dim=1), n_outputs=3, dtype=dtype)
    raw = TorchPredictor(module)(X)
    assert np.abs(raw.sum(axis=1) - 1).max() > 1e-4
    predicted = as_model(module, "cross_entropy").predict(X)
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(predicted, raw, atol=1e-2)


def test_labels_are_no_probabilities():
    model = as_model(returns(lambda rows: (rows[:, 0] > 0).long()), "cross_entropy")
    with pytest.raises(TypeError, match="must be probabilities for cross_entropy; got 'labels"):
        model.predict(X)


def test_not_finite_probabilities_are_named_as_such():
    model = as_model(returns(lambda rows: rows[:, 0] / 0), "cross_entropy")
    with pytest.raises(ValueError, match="must be finite"):
        model.predict(X)


def test_the_last_layer_and_the_target_choose_the_loss():
    softmax, sigmoid = mlp(torch.nn.Softmax(dim=1), n_outputs=3), mlp(torch.nn.Sigmoid())
    codes = np.digitize(X[:, 0], [-0.5, 0.5])
    assert choose_loss(softmax, codes).name == "cross_entropy"
    assert choose_loss(torch.nn.Sequential(softmax), codes).name == "cross_entropy"
    assert choose_loss(TorchPredictor(softmax), codes).name == "cross_entropy"
    assert choose_loss(softmax).name == "cross_entropy"
    assert choose_loss(sigmoid, codes > 0).name == "cross_entropy"
    assert choose_loss(sigmoid, (codes > 0).astype(float)).name == "cross_entropy"
    assert choose_loss(sigmoid, X[:, 0]).name == "squared_error"
    assert choose_loss(sigmoid).name == "squared_error"
    assert choose_loss(mlp(), X[:, 0]).name == "squared_error"
    assert choose_loss(mlp(n_outputs=3), LABELS).name == "cross_entropy"
    assert choose_loss(torch.nn.Sequential(), X[:, 0]).name == "squared_error"


def test_a_module_is_called_whatever_methods_it_has():
    module = mlp()
    module.predict = module.predict_proba = None
    assert choose_loss(module, X[:, 0]).name == "squared_error"
    assert as_model(module, "squared_error").predict(X).shape == (len(X),)


# Affine modules


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float32, 1e-4), (torch.float64, 1e-9)])
def test_a_linear_layer_said_to_be_affine_is(dtype, rtol):
    module = torch.nn.Linear(3, 1).to(dtype)
    model = as_model(module, "squared_error", affine=True)
    game = LossGame(model, Gaussian().fit(X), X, X[:, 0])
    assert not game.is_drawn
    found = model.affine(game.layout, X)
    np.testing.assert_allclose(
        found.weights.T, module.weight.detach().double().numpy(), rtol=rtol, atol=1e-6
    )


def test_a_network_said_to_be_affine_is_refused():
    with pytest.raises(ValueError, match="affine must be False for Sequential"):
        LossGame(as_model(mlp(), "squared_error", affine=True), Gaussian().fit(X), X, X[:, 0])


# Refusals


def test_what_is_no_module_is_refused():
    with pytest.raises(TypeError, match=r"module must be a torch\.nn\.Module; got Decision.*Pass"):
        TorchPredictor(DecisionTreeClassifier())


def test_a_class_is_no_module():
    with pytest.raises(TypeError, match="Fit an instance: Linear"):
        as_model(torch.nn.Linear, "squared_error")


def test_options_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="batch_rows must be at least 1; got 0"):
        TorchPredictor(mlp(), batch_rows=0)
    with pytest.raises(ValueError, match="draws must be one of the places; got 'gpu'"):
        TorchPredictor(mlp(), draws="gpu")


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_columns_of_classes_are_refused_by_name(make):
    frame = pd.DataFrame({"age": [1.0, 2.0], "sex": ["m", "f"], "site": pd.Categorical([1, 2])})
    if make is pl.from_pandas:
        frame["site"] = frame["site"].astype(str)
    with pytest.raises(TypeError, match=r"columns for Linear must be of numbers; got \['sex', 's"):
        as_model(torch.nn.Linear(3, 1), "squared_error").predict(make(frame))


def test_arrays_of_strings_are_refused():
    with pytest.raises(TypeError, match=r"columns for Linear must be of numbers; got \['X1'"):
        as_model(torch.nn.Linear(2, 1), "squared_error").predict(np.array([["a", "b"]]))


def test_outputs_that_are_no_tensor_are_refused():
    with pytest.raises(TypeError, match="output of Made must be a tensor; got 'tuple'"):
        as_model(returns(lambda rows: (rows, rows)), "squared_error").predict(X)


@pytest.mark.parametrize("function", [lambda rows: rows.sum(), lambda rows: rows[:-1].sum(dim=1)])
def test_outputs_of_another_length_are_refused(function):
    with pytest.raises(ValueError, match="output of Made must be of 50 rows, as its input is; got"):
        as_model(returns(function), "squared_error").predict(X)
