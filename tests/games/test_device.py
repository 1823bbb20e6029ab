import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

from devices import DEVICES, NEEDS_CUDA, TOLERANCES  # noqa: E402
from dsage._random import Streams  # noqa: E402
from dsage.data.layout import Layout  # noqa: E402
from dsage.games import device as device_module  # noqa: E402
from dsage.games.device import DeviceMeans, device_means  # noqa: E402
from dsage.models import as_model  # noqa: E402
from dsage.models.torch_module import TorchPredictor  # noqa: E402
from dsage.samplers import Gaussian, Marginal, normal_scores  # noqa: E402
from dsage.samplers.device import send_noise  # noqa: E402
from dsage.samplers.noise import Noise  # noqa: E402
from given import all_coalitions  # noqa: E402

GENERATOR = np.random.default_rng(0)
X = pd.DataFrame(
    GENERATOR.normal(size=(40, 4)) @ GENERATOR.normal(size=(4, 4)) + 1, columns=list("abcd")
)
SAMPLER = Gaussian().fit(X)
ROWS = np.arange(40)
LAYOUT = Layout.of(X)
ORDER = np.array([2, 0, 3, 1])


def network(*last, n_outputs=1, dtype=torch.float32, device="cpu"):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, n_outputs), *last]
        return torch.nn.Sequential(*layers).to(device, dtype)


def means_of(model, draws, n_replicates):
    """Mean predictions of replicates of draws (n_rows, n_draws, n_features), in plain NumPy."""
    frame = pd.DataFrame(draws.reshape(-1, 4), columns=X.columns)
    predicted = model.predict(frame)
    return predicted.reshape(40, n_replicates, 6 // n_replicates, *predicted.shape[1:]).mean(axis=2)


def noise_of(n_replicates):
    return Noise(Streams(0), 4, n_replicates=n_replicates, n_draws=6 // n_replicates)


def means_at_coalitions(model, n_replicates=2, max_bytes=2**28):
    means = DeviceMeans(model, SAMPLER, LAYOUT.encode(X), n_replicates, max_bytes)
    known = all_coalitions(4)
    out = {}
    for chunk in means.chunks(known, np.arange(16), ROWS, 0, noise_of(n_replicates)):
        for at, found in zip(chunk.at.tolist(), chunk.means, strict=True):
            out.setdefault(at, []).append(found)
    return np.stack([np.concatenate(out[at]) for at in range(16)])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dtype", "atol"), TOLERANCES)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("n_replicates", [1, 3])
def test_means_are_those_of_draws_on_the_cpu(device, dtype, atol, n_outputs, n_replicates):
    last = [torch.nn.Softmax(dim=1)] if n_outputs > 1 else []
    module = network(*last, n_outputs=n_outputs, dtype=dtype, device=device)
    model = as_model(module, "brier" if last else "squared_error")
    noise = noise_of(n_replicates)
    # The CPU rounds the factors of coalitions.
    for known, means in zip(
        all_coalitions(4), means_at_coalitions(model, n_replicates), strict=True
    ):
        expected = means_of(model, SAMPLER.draw(X, known, noise(ROWS, 0)), n_replicates)
        assert means.dtype == np.float64
        np.testing.assert_allclose(means, expected, rtol=0, atol=max(atol, 1e-7))
    means_on = DeviceMeans(model, SAMPLER, LAYOUT.encode(X), n_replicates)
    orders, needed = np.stack([ORDER, ORDER[::-1]]), np.zeros((2, 5), bool)
    needed[0, [0, 2, 3]] = needed[1, [1, 3, 4]] = True
    found = dict(means_on.paths(orders, needed, ROWS, 0, noise))
    for number, lengths in ((0, [0, 2, 3]), (1, [1, 3])):
        assert found[number].at.tolist() == lengths
        drawn = SAMPLER.ordering(orders[number]).prefixes(X, normal_scores(noise(ROWS, 0)), lengths)
        for means, (_, draws) in zip(found[number].means, drawn, strict=True):
            expected = means_of(model, draws, n_replicates)
            np.testing.assert_allclose(means, expected, rtol=0, atol=atol)


def test_little_memory_changes_nothing_but_rounding():
    model = as_model(network(dtype=torch.float64), "squared_error")
    whole = means_at_coalitions(model)
    for max_bytes in (1, 3_000, 30_000):
        found = means_at_coalitions(model, max_bytes=max_bytes)
        np.testing.assert_allclose(found, whole, rtol=0, atol=1e-12)


def test_rows_and_noise_are_sent_once(monkeypatch):
    sent = []
    monkeypatch.setattr(
        device_module, "send_noise", lambda *given: sent.append(given[1:3]) or send_noise(*given)
    )
    model = as_model(network(), "squared_error")
    means, noise = DeviceMeans(model, SAMPLER, LAYOUT.encode(X), 2), noise_of(2)
    for order in (ORDER, ORDER[::-1]):
        list(means.paths(order[None], np.ones((1, 5), bool), ROWS, 0, noise))
    assert len(sent) == 1
    list(means.paths(ORDER[None], np.ones((1, 5), bool), ROWS, 1, noise))
    assert len(sent) == 2


def test_means_of_equal_predictions_are_these():
    module = torch.nn.Linear(4, 1).double()
    torch.nn.init.zeros_(module.weight)
    torch.nn.init.constant_(module.bias, 0.1)
    assert (means_at_coalitions(as_model(module, "squared_error")) == 0.1).all()


def test_draws_are_predicted_in_batches():
    sizes = []
    module = network()
    module.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    model = as_model(TorchPredictor(module, batch_rows=100), "squared_error")
    means, needed = DeviceMeans(model, SAMPLER, LAYOUT.encode(X), 2), np.zeros((1, 5), bool)
    needed[0, 1] = True
    list(means.paths(ORDER[None], needed, ROWS, 0, noise_of(2)))
    assert sizes == [100, 100, 40]


def test_logits_are_refused():
    model = as_model(network(n_outputs=3), "cross_entropy")
    with pytest.raises(ValueError, match=r"Sequential must be probabilities.*Softmax\(dim=1\)"):
        means_at_coalitions(model)


def test_means_that_are_not_finite_are_refused():
    class Root(torch.nn.Module):
        def forward(self, rows):
            return rows[:, 0].sqrt()

    model = as_model(Root(), "squared_error")
    with pytest.raises(ValueError, match=r"prediction of Root must be finite; got .* means that"):
        means_at_coalitions(model)


def test_other_models_are_refused():
    with pytest.raises(TypeError, match=r"model must be a PyTorch module .*; got 'the function'"):
        DeviceMeans(as_model(lambda X: X, "squared_error"), SAMPLER, LAYOUT.encode(X), 2)


# Where draws are made


def chosen(module, draws, sampler=SAMPLER, layout=LAYOUT):
    model = as_model(TorchPredictor(module, draws=draws), "squared_error")
    return device_means(model, sampler, layout, LAYOUT.encode(X), 2)


def test_draws_for_a_module_on_the_cpu_are_made_by_the_sampler_unless_asked_otherwise():
    assert chosen(network(), "auto") is None
    assert chosen(network(), "host") is None
    assert isinstance(chosen(network(), "module"), DeviceMeans)
    assert device_means(as_model(len, "squared_error"), SAMPLER, LAYOUT, X.to_numpy(), 2) is None


def accelerated(monkeypatch):
    place = (torch.device("cuda"), torch.float32)
    monkeypatch.setattr(device_module, "module_place", lambda module: place)


def test_draws_for_a_module_on_an_accelerator_are_made_there_where_possible(monkeypatch):
    accelerated(monkeypatch)
    whole = Layout.of(X.assign(a=1))
    assert isinstance(chosen(network(), "auto"), DeviceMeans)
    assert chosen(network(), "host") is None
    assert chosen(network(), "auto", sampler=Marginal().fit(X)) is None
    assert chosen(network(), "auto", layout=whole) is None


def test_draws_that_cannot_be_made_on_the_device_are_refused_if_asked_for():
    with pytest.raises(TypeError, match=r"draws='module' of Sequential .*; got 'Marginal'"):
        chosen(network(), "module", sampler=Marginal().fit(X))
    with pytest.raises(TypeError, match=r"columns of floats, .*; got \['a', 'c'\]"):
        chosen(network(), "module", layout=Layout.of(X.assign(a=1, c=2)))
    codes = X.assign(b=np.where(X["b"] > 0, 1.0, -1.0))
    with pytest.raises(TypeError, match=r"need not be whole numbers or codes; got \['b'\]"):
        chosen(network(), "module", sampler=Gaussian().fit(codes), layout=Layout.of(codes))


def test_rows_whose_missing_values_are_new_are_drawn_on_the_cpu():
    missing = X.to_numpy().copy()
    missing[3, 1] = np.nan
    for matrix, is_usable in ((missing, True), (X.to_numpy(), False), (missing, False)):
        given = SAMPLER, LAYOUT, matrix, 2
        model = as_model(TorchPredictor(network(), draws="module"), "squared_error")
        with pytest.raises(TypeError, match="rows whose missing values occur in training"):
            device_means(model, *given, is_usable=is_usable)


def test_columns_in_single_precision_are_for_modules_in_single_precision():
    single = Layout.of(X.astype(np.float32))
    assert isinstance(chosen(network(), "module", layout=single), DeviceMeans)
    with pytest.raises(TypeError, match="no shorter than the module's"):
        chosen(network(dtype=torch.float64), "module", layout=single)


@NEEDS_CUDA
def test_cuda_is_an_accelerator():
    assert isinstance(chosen(network(device="cuda"), "auto"), DeviceMeans)


def test_draws_take_no_more_memory_than_they_may():
    model, noise = as_model(network(), "squared_error"), noise_of(2)
    # A row has six draws of four numbers, eight copies of four bytes each.
    n_bytes = 6 * 4 * 8 * 4
    for n_rows in (17, 40):
        for spare in (0, n_bytes - 1):
            given = model, SAMPLER, LAYOUT.encode(X), 2, n_rows * n_bytes + spare
            chunks = list(
                DeviceMeans(*given).chunks(all_coalitions(4)[:3], np.arange(3), ROWS, 0, noise)
            )
            assert max(chunk.here.stop - chunk.here.start for chunk in chunks) == min(n_rows, 40)
