"""Explanations in MLflow, with its local store, and in a stand-in for Weights & Biases."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import dsage
from dsage.result import tracking
from explanations import make_explanation


@pytest.fixture(scope="module")
def explanation():
    return make_explanation(3, ["größe (cm)", "gr__e _cm_", "c"])


def test_names_that_a_tracker_refuses_are_changed_and_stay_apart(explanation):
    found = tracking.metrics(explanation, "forest")
    assert list(found)[:3] == [
        "forest/value/gr__e _cm_", "forest/value/gr__e _cm__2", "forest/value/c",
    ]  # fmt: skip
    assert list(found.values())[:3] == explanation.values.tolist()
    assert found["forest/se/c"] == explanation.se[2]


@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_metrics_parameters_and_files(explanation, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: dsage[mlflow]")
    # Its store of plain files is in maintenance mode, and refused without this since version 3.
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as active:
        explanation.log("mlflow", prefix="forest", step=3)
    client = mlflow.MlflowClient()
    run = client.get_run(active.info.run_id)
    assert run.data.metrics["forest/value/c"] == explanation.values[2]
    assert client.get_metric_history(active.info.run_id, "forest/value/c")[0].step == 3
    assert run.data.params["forest/loss"] == "squared_error"
    files = client.list_artifacts(active.info.run_id, "forest")
    assert sorted(each.path for each in files) == [
        "forest/explanation.dsage", "forest/explanation.json", "forest/ranking.png",
    ]  # fmt: skip
    path = client.download_artifacts(active.info.run_id, "forest/explanation.dsage", str(tmp_path))
    pd.testing.assert_frame_equal(dsage.load(path).to_frame(), explanation.to_frame())


class _Run:
    """Records what is logged, as a run of Weights & Biases does."""

    def __init__(self):
        self.config, self.logged, self.artifacts = {}, [], []
        self.config = SimpleNamespace(update=self._update)
        self.chosen = {}

    def _update(self, values, allow_val_change):
        assert allow_val_change
        self.chosen |= values

    def log(self, values, step=None):
        self.logged.append((values, step))

    def log_artifact(self, artifact):
        self.artifacts.append(artifact)


class _Artifact:
    def __init__(self, name, **options):
        self.name, self.type, self.files = name, options["type"], {}

    def add_file(self, path):
        self.files[Path(path).name] = Path(path).read_bytes()


@pytest.fixture
def wandb(monkeypatch):
    """Stand in for the package, which needs a service."""
    module = SimpleNamespace(
        run=_Run(), Table=lambda dataframe: dataframe, Artifact=_Artifact, Image=lambda path: path
    )
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


def test_weights_and_biases_gets_metrics_a_table_a_picture_and_files(explanation, wandb):
    explanation.log("wandb", prefix="forest", step=2)
    ((values, step),) = wandb.run.logged
    assert step == 2
    assert values["forest/value/c"] == explanation.values[2]
    pd.testing.assert_frame_equal(values["forest/table"], explanation.to_frame())
    assert values["forest/ranking"].endswith("ranking.png")
    assert wandb.run.chosen["forest/sampler"] == "Gaussian"
    (artifact,) = wandb.run.artifacts
    assert (artifact.name, artifact.type) == ("forest", "explanation")
    assert set(artifact.files) == {"explanation.dsage", "explanation.json", "ranking.png"}


def test_weights_and_biases_needs_a_run(explanation, wandb):
    wandb.run = None
    with pytest.raises(RuntimeError, match=r"Call wandb.init\(\) first"):
        explanation.log("wandb")


def test_a_tracker_that_is_not_installed_is_named(explanation, monkeypatch):
    for name in ("mlflow", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=rf"pip install 'dsage\[{name}\]'"):
            explanation.log(name)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"to": "mlfow"}, ValueError, "Did you mean 'mlflow'"),
        ({"to": "wandb", "prefix": "a:b"}, ValueError, "prefix must be letters"),
        ({"to": "wandb", "prefix": ""}, ValueError, "prefix must be letters"),
        ({"to": "wandb", "step": -1}, ValueError, "step must be at least 0"),
    ],
)
def test_bad_arguments_are_named(explanation, arguments, error, text):
    with pytest.raises(error, match=text):
        explanation.log(**arguments)


def test_errors_that_are_not_known_are_left_out(explanation):
    estimate = replace(explanation.estimate, se_draws=explanation.se * float("nan"))
    assert not [
        name
        for name in tracking.metrics(replace(explanation, estimate=estimate), "a")
        if "/se/" in name
    ]
