"""The formats that dsage reads: whole files of each, their mutations, and what reads them."""

from __future__ import annotations

import functools
import io
import json
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tools.fuzz import mutations
from tools.fuzz.mutations import Mutate, mutate_bytes

Files = dict[str, bytes]
"""The contents of whole files by name."""


@dataclass(frozen=True)
class Format:
    """How a format is made, changed and read.

    `make` writes whole files into a folder; `read` reads one of them, and uses what it has read;
    `mutate` changes the parts of a file.
    """

    make: Callable[[Path], Files]
    read: Callable[[Path], object]
    mutate: Mutate
    suffixes: tuple[str, ...] = ()


@functools.cache
def numbers() -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Return a small table and a target."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 4)), columns=["a", "b", "c", "d"])
    return X, (X["a"] + X["b"] ** 2 + 0.1 * rng.normal(size=120)).to_numpy()


@functools.cache
def mixed() -> pd.DataFrame:
    """Return the table with a class."""
    kinds = np.random.default_rng(1).choice(["u", "v", "w", "x", "y", "z"], 120)
    return numbers()[0].assign(kind=pd.Categorical(kinds))


# Types that skops does not trust by itself: forests, boosting and neighbours need them.
_TRUSTED = (
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._kd_tree.KDTree",
)


def _predict(path: Path) -> None:
    """Load a model and ask it as a run does, for rows of numbers, and of numbers and a class.

    A model that was read may still fail at rows: the error has to be one of the package, too, and
    to name the file.
    """
    from dsage.cli.models import align_columns
    from dsage.data.layout import Layout
    from dsage.models import as_model
    from dsage.models.files import load_model
    from dsage.models.losses.choose import decide_loss, gives_classes

    model = load_model(path, trusted=_TRUSTED if path.suffix == ".skops" else ())
    refused = []
    for rows in (numbers()[0], mixed()):
        try:
            votes = gives_classes(model) and not hasattr(model, "predict_proba")
            found = as_model(model, "zero_one" if votes else decide_loss(model).loss)
            found.predict(align_columns(model, rows))
            layout = Layout.of(rows)
            found.affine(layout, rows)
            found.leaves(layout, layout.encode(rows))
        except Exception as error:
            if not hasattr(error, "problem"):
                raise
            refused.append(error)
    # A model of a class cannot predict rows without it, and the other way around.
    if len(refused) == 2:
        raise refused[0]


# Boosters


def _boosters() -> dict[str, Any]:
    import xgboost as xgb

    X, y = numbers()
    cells = mixed()
    codes = cells["kind"].cat.codes.to_numpy()
    once = {"max_depth": 3, "nthread": 1}
    classes = {**once, "objective": "multi:softprob", "num_class": 3}
    return {
        "tree": xgb.train(once, xgb.DMatrix(X, y), 3),
        "classes": xgb.train({**classes, "booster": "dart"}, xgb.DMatrix(X, codes % 3), 2),
        "sets": xgb.train(
            {**once, "max_cat_to_onehot": 1},
            xgb.DMatrix(cells, y + np.sin(5 * codes), enable_categorical=True),
            2,
        ),
        "linear": xgb.train({**once, "booster": "gblinear"}, xgb.DMatrix(X, y), 2),
        "outputs": xgb.train(
            {**once, "multi_strategy": "multi_output_tree", "tree_method": "hist"},
            xgb.DMatrix(X, np.stack([y, -y], axis=1)),
            2,
        ),
    }


def _xgboost(folder: Path) -> Files:
    del folder
    return {f"{name}.json": bytes(each.save_raw("json")) for name, each in _boosters().items()}


def _xgboost_binary(folder: Path) -> Files:
    del folder
    return {f"{name}.ubj": bytes(each.save_raw("ubj")) for name, each in _boosters().items()}


def _lightgbm(folder: Path) -> Files:
    import lightgbm as lgb

    X, y = numbers()
    cells = mixed()
    codes = cells["kind"].cat.codes.to_numpy()
    once = {"verbosity": -1, "num_threads": 1, "num_leaves": 5, "min_data_in_leaf": 3}
    sets = {**once, "min_data_per_group": 3, "cat_smooth": 1}
    classes = {**once, "objective": "multiclass", "num_class": 3}
    trained = {
        "tree": lgb.train(once, lgb.Dataset(X, y), 3),
        "sets": lgb.train(sets, lgb.Dataset(cells, y + np.sin(5 * codes)), 2),
        "linear": lgb.train({**once, "linear_tree": True}, lgb.Dataset(X, y), 3),
        "classes": lgb.train(classes, lgb.Dataset(X, codes % 3), 2),
    }
    del folder
    return {f"{name}.txt": each.model_to_string().encode() for name, each in trained.items()}


# Models of scikit-learn


def _estimators() -> dict[str, Any]:
    from sklearn.ensemble import (
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from sklearn.linear_model import LinearRegression
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, y = numbers()
    label = (y > 1).astype(int)
    return {
        "line": make_pipeline(StandardScaler(), LinearRegression()).fit(X, y),
        "forest": RandomForestClassifier(2, max_depth=3, random_state=0).fit(X, label),
        "boosting": HistGradientBoostingRegressor(max_iter=2, max_depth=3).fit(X, y),
        "trees": RandomForestRegressor(2, max_depth=3, random_state=0).fit(X, y),
        "neighbors": KNeighborsRegressor(3, algorithm="kd_tree").fit(X, y),
        "svm": SVC().fit(X, label),
    }


def _skops(folder: Path) -> Files:
    import skops.io

    del folder
    return {f"{name}.skops": skops.io.dumps(each) for name, each in _estimators().items()}


def _onnx(folder: Path) -> Files:
    from skl2onnx import to_onnx

    del folder
    X = numbers()[0].to_numpy(dtype=np.float32)
    found = {}
    for name, each in _estimators().items():
        if name in ("line", "forest", "trees"):
            made = to_onnx(each, X[:1])
            found[f"{name}.onnx"] = made.SerializeToString()
    return found


def _mutate_onnx(content: bytes, rng: random.Random) -> bytes:
    """Change attributes of the nodes of a graph, and its names and shapes."""
    import onnx

    model = onnx.load_model_from_string(content)
    node = rng.choice(model.graph.node)
    kind = rng.randrange(6)
    if kind < 4 and len(node.attribute):
        attribute = rng.choice(node.attribute)
        values = attribute.floats if len(attribute.floats) else attribute.ints
        if len(values) and rng.random() < 0.8:
            at = rng.randrange(len(values))
            new = rng.choice(mutations.NUMBERS)
            if len(attribute.floats):
                values[at] = max(min(float(new), 3e38), -3e38)
            else:
                values[at] = max(min(int(new), 2**63 - 1), -(2**63))
        elif len(values):
            del values[rng.randrange(len(values)) :]
        else:
            attribute.i = rng.choice((0, -1, 2**31, 10))
    elif kind == 4:
        node.input[0] = rng.choice(("", "nothing", node.output[0]))
    else:
        node.op_type = rng.choice(("Add", "Nothing", "TreeEnsembleClassifier", "Loop"))
    return bytes(model.SerializeToString())


# Files of dsage


@functools.cache
def _explanations(folder: Path) -> Files:
    from sklearn.linear_model import LinearRegression
    from sklearn.tree import DecisionTreeRegressor

    import dsage

    X, y = numbers()
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    options: dict[str, Any] = {"random_state": 0, "progress": False, "n_orderings": 16}
    parts = (X[:60], y[:60], X[60:], y[60:])
    dsage.explain(tree, *parts, **options).save(folder / "explanation.dsage")
    dsage.explain_cv(LinearRegression(), X, y, cv=2, **options).save(folder / "folds.dsage")
    rows = dsage.explain_rows(tree, X[:60], y[:60], X[60:64], **options)
    rows.save(folder / "rows.dsage")
    names = ("explanation.dsage", "folds.dsage", "rows.dsage")
    return {name: (folder / name).read_bytes() for name in names}


def _read_explanation(path: Path) -> None:
    import dsage
    from dsage.report import report_data, row_report_data, to_html

    name = path.name.partition(".")[0].rpartition("-")[2]
    if name == "folds":
        folded = dsage.FoldedExplanation.load(path)
        repr(folded)
        folded.to_frame()
    elif name == "rows":
        explained = dsage.RowExplanation.load(path)
        repr(explained)
        explained.to_frame()
        to_html(row_report_data(explained), "rows")
    else:
        explanation = dsage.load(path)
        repr(explanation)
        explanation.to_frame()
        to_html(report_data(explanation))


def _run_with(path: Path) -> None:
    from sklearn.tree import DecisionTreeRegressor

    from dsage.estimate import Checkpoint, as_stopping, run
    from dsage.games import LossGame
    from dsage.samplers import Gaussian

    X, y = numbers()
    if not _kept:
        tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
        _kept.append((tree, Gaussian().fit(X)))
    tree, sampler = _kept[0]
    game = LossGame(tree, sampler, X[:30], y[:30], random_state=0)
    rule = as_stopping(n_orderings=24)
    options: dict[str, Any] = {"exact": "never", "first_level": "none", "random_state": 0}
    run(game, stopping=rule, checkpoint=Checkpoint(path, every=0.0), **options)


_kept: list[Any] = []


def _checkpoints(folder: Path) -> Files:
    path = folder / "run.state"
    _run_with(path)
    return {"run.state": path.read_bytes()}


def _graphs(folder: Path) -> Files:
    from dsage import Graph

    edges = [("a", "b"), ("b", "y"), ("c", "y")]
    Graph(["a", "b", "c", "y"], edges, [("a", "c")]).save(folder / "graph.json")
    Graph(["a", "r", "y"], [("a", "y")], (), {"r": ["a"]}).save(folder / "gaps.json")
    return {name: (folder / name).read_bytes() for name in ("graph.json", "gaps.json")}


def _read_graph(path: Path) -> None:
    from dsage import Graph

    graph = Graph.load(path)
    graph.to_dot()
    for name in graph.names[:1]:
        graph.oracle(name)


def _groups(folder: Path) -> Files:
    del folder
    return {"groups.json": json.dumps({"one": ["a", "b"], "two": ["c"]}).encode()}


def _read_groups(path: Path) -> None:
    from dsage.cli.explain import read_groups

    read_groups(path)


def _open_run(folder: Path) -> None:
    from dsage.workflows.fold_files import FoldFiles

    X, y = numbers()
    folder.mkdir(exist_ok=True)
    files = FoldFiles(folder, None, X, y, [])
    files.open({}, np.ones(len(y)))
    files.agree_on_seed(None, 1)


def _runs_of_folds(folder: Path) -> Files:
    _open_run(folder / "folds")
    return {"run.json": (folder / "folds" / "run.json").read_bytes()}


def _read_run(path: Path) -> None:
    folder = path.with_suffix(".folder")
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_bytes(path.read_bytes())
    _open_run(folder)


# Tables


def _csv(folder: Path) -> Files:
    del folder
    plain = mixed().head(40).assign(day="2024-01-31").to_csv(index=False).encode()
    packed = {f"table.csv.{name}": pack(plain) for name, pack in mutations.PACKERS.items()}
    return {"table.csv": plain, "more.csv": plain, **packed}


def _mutate_table(content: bytes, rng: random.Random) -> bytes:
    try:
        return mutations.mutate_csv(content, rng)
    except UnicodeDecodeError:
        return mutate_bytes(content, rng)


def _read_table(path: Path) -> None:
    from dsage.data import describe
    from dsage.data.files import read_table

    describe(read_table(path))


def _parquet(folder: Path) -> Files:
    table = mixed().assign(day=pd.Timestamp("2024-01-31"), flag=True)
    found = {}
    for packing in ("snappy", "zstd", "gzip"):
        file = folder / f"{packing}.parquet"
        table.to_parquet(file, compression=packing)
        found[file.name] = file.read_bytes()
    return found


def _mutate_parquet(content: bytes, rng: random.Random) -> bytes:
    """Change what the file says of the columns of pandas."""
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(content))
    metadata = dict(table.schema.metadata or {})
    metadata[b"pandas"] = mutations.mutate_json(metadata[b"pandas"], rng)
    if rng.random() < 0.2:
        names = [rng.choice(("a", "", "x", "ü")) for _ in table.column_names]
        table = table.rename_columns(names)
    stream = pa.BufferOutputStream()
    parquet.write_table(table.replace_schema_metadata(metadata), stream)
    return bytes(stream.getvalue().to_pybytes())


def _read_parquet(path: Path) -> None:
    from dsage.structure import Stream

    _read_table(path)
    # The table is valid: its batches must be.
    stream = Stream(path, batch_rows=50)
    for name in stream.discrete:
        stream.categories(name)


_OF_DSAGE = mutations.archives("header.npy", is_array=True)

FORMATS: dict[str, Format] = {
    "XGBoost JSON": Format(_xgboost, _predict, mutations.mutate_json),
    "XGBoost binary JSON": Format(_xgboost_binary, _predict, mutations.mutate_ubjson),
    "LightGBM": Format(_lightgbm, _predict, mutations.mutate_fields),
    "skops": Format(_skops, _predict, mutations.archives("schema.json", is_array=False)),
    "ONNX": Format(_onnx, _predict, _mutate_onnx),
    "results (.dsage)": Format(_explanations, _read_explanation, _OF_DSAGE),
    "checkpoints": Format(_checkpoints, _run_with, _OF_DSAGE),
    "graphs (JSON)": Format(_graphs, _read_graph, mutations.mutate_json),
    "groups (JSON)": Format(_groups, _read_groups, mutations.mutate_json),
    "runs of folds (JSON)": Format(_runs_of_folds, _read_run, mutations.mutate_json),
    "CSV": Format(_csv, _read_table, _mutate_table),
    "Parquet": Format(_parquet, _read_parquet, _mutate_parquet),
}


def make_files(name: str, folder: Path) -> Files:
    """Return the whole files of a format; each of them can be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FORMATS[name].make(folder)


def mutant(name: str, files: Files, seed: int, number: int) -> tuple[str, bytes]:
    """Return the name and the content of the mutant of a number, the same in every run."""
    rng = random.Random(f"{name} {seed} {number}")
    form = FORMATS[name]
    chosen = sorted(files)[number % len(files)]
    content = files[chosen]
    if rng.random() < 0.4:
        return chosen, mutate_bytes(content, rng)
    return chosen, form.mutate(content, rng)
