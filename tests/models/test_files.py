import json
import os
import pickle
import re
import sys

import joblib
import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
import xgboost as xgb
from skl2onnx import to_onnx
from skl2onnx.common.data_types import (
    BooleanTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dsage.models import as_model
from dsage.models.files import load_model
from dsage.models.files.damage import DamagedModelError
from dsage.models.files.lightgbm_text import check_text
from dsage.models.losses import choose_loss
from tools.fuzz.mutations import to_ubjson

NAMES = ["age", "dose", "weight"]


def numbers(n_rows=80):
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(n_rows, 3)), columns=NAMES)
    return X, (2 * X["age"] - X["dose"] + random.normal(0, 0.1, n_rows)).to_numpy()


def write(folder, name, content):
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def exported(folder, model, X, **options):
    graph = to_onnx(model, X, target_opset={"": 21, "ai.onnx.ml": 3}, **options)
    graph.ir_version = 10  # that of the oldest allowed onnxruntime
    return write(folder, "model.onnx", graph.SerializeToString())


# Files in general


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^the model file must be a file that exists"):
        load_model(tmp_path / "no.skops")
    with pytest.raises(IsADirectoryError, match="It is a folder"):
        load_model(tmp_path)
    with pytest.raises(ValueError, match="It is empty"):
        load_model(write(tmp_path, "empty.onnx", ""))


@pytest.mark.parametrize("name", ["model.pt", "model", "model.h5"])
def test_an_unknown_suffix_is_refused_with_those_that_are_known(tmp_path, name):
    with pytest.raises(ValueError, match=r"one of \.skops, \.onnx, .*; got 'model.*Save the model"):
        load_model(write(tmp_path, name, "something"))


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("text.skops", "a skops file; got 'text.skops: it is not an archive'"),
        ("text.onnx", "an ONNX model; got 'text.onnx: Failed to load model"),
        ("text.json", "an XGBoost model; got 'text.json: it is something else'"),
        ("text.ubj", "an XGBoost model"),
        ("text.txt", "a whole LightGBM model; got \"text.txt: its first line is not 'tree'\""),
    ],
)
def test_a_foreign_file_is_refused(tmp_path, name, error):
    with pytest.raises(ValueError, match=error):
        load_model(write(tmp_path, name, "age,dose\n1,2\n"))


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("model.skops", "skops"),
        ("model.json", "xgboost"),
        ("model.txt", "lightgbm"),
        ("model.onnx", "onnx"),
    ],
)
def test_the_extra_is_named_where_a_package_is_absent(tmp_path, monkeypatch, name, module):
    file = write(tmp_path, name, "anything")
    for each in ("skops.io", "xgboost", "lightgbm", "onnxruntime"):
        monkeypatch.setitem(sys.modules, each, None)
    monkeypatch.delitem(sys.modules, "dsage.models.files.onnx_model", raising=False)
    with pytest.raises(ImportError, match=rf"install it with: pip install 'dsage\[{module}\]'"):
        load_model(file)


# Skops


def test_an_estimator_comes_back_from_skops(tmp_path):
    X, y = numbers()
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(X, y)
    skops.io.dump(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "model.skops").predict(X), model.predict(X))


class Untold(LinearRegression):
    pass


def test_types_that_skops_does_not_trust_are_listed_and_refused_until_named(tmp_path):
    X, y = numbers()
    model = make_pipeline(FunctionTransformer(np.tanh), Untold()).fit(X, y)
    skops.io.dump(model, tmp_path / "model.skops")
    own = f"{Untold.__module__}.Untold"
    with pytest.raises(ValueError, match="trusted, since each can") as refused:
        load_model(tmp_path / "model.skops")
    assert own in str(refused.value)
    assert f"trusted=['{own}'" in str(refused.value)
    with pytest.raises(ValueError, match=rf"got \['{own}'\]"):
        load_model(tmp_path / "model.skops", trusted="another.Type")
    loaded = load_model(tmp_path / "model.skops", trusted=[own])
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_damaged_skops_file_is_refused(tmp_path):
    X, y = numbers()
    skops.io.dump(LinearRegression().fit(X, y), tmp_path / "model.skops")
    whole = (tmp_path / "model.skops").read_bytes()
    with pytest.raises(ValueError, match="a skops file"):
        load_model(write(tmp_path, "cut.skops", whole[:-50]))
    with pytest.raises(ValueError, match="a skops file"):
        load_model(write(tmp_path, "hole.skops", whole[:200] + bytes(300) + whole[500:]))


def test_what_is_no_model_is_refused(tmp_path):
    skops.io.dump({"a": 1}, tmp_path / "dict.skops")
    with pytest.raises(ValueError, match="a fitted model, with predict; got 'dict'"):
        load_model(tmp_path / "dict.skops")


# Pickles


def test_a_pickle_is_not_even_opened_without_trust(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    for name in ("trap.pkl", "trap.pickle", "trap.joblib"):
        file = write(tmp_path, name, pickle.dumps(Trap()))
        with pytest.raises(ValueError, match=r"can run any program .* trust_pickle=True"):
            load_model(file)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["model.pkl", "model.joblib"])
def test_a_trusted_pickle_is_loaded(tmp_path, name):
    X, y = numbers()
    model = LinearRegression().fit(X, y)
    file = tmp_path / name
    if name.endswith("pkl"):
        file.write_bytes(pickle.dumps(model))
    else:
        joblib.dump(model, file, compress=3)
    loaded = load_model(file, trust_pickle=True)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_pickles_that_cannot_be_loaded_say_why(tmp_path):
    whole = pickle.dumps(LinearRegression().fit(*numbers()))
    with pytest.raises(ValueError, match=r"a whole pickle; got 'cut\.pkl'"):
        load_model(write(tmp_path, "cut.pkl", whole[:-40]), trust_pickle=True)
    with pytest.raises(ImportError, match="Install nowhere_to_be_found"):
        load_model(
            write(tmp_path, "far.pkl", b"\x80\x04cnowhere_to_be_found\nModel\n."), trust_pickle=True
        )
    with pytest.raises(ValueError, match="package versions"):
        load_model(write(tmp_path, "old.pkl", b"\x80\x04cnumpy\nNoSuchThing\n."), trust_pickle=True)
    with pytest.raises(ValueError, match="a fitted model, with predict; got 'list'"):
        load_model(write(tmp_path, "list.pkl", pickle.dumps([1])), trust_pickle=True)


# XGBoost and LightGBM


@pytest.mark.parametrize("suffix", ["json", "ubj"])
@pytest.mark.parametrize("final", ["", "xgb"])
def test_a_booster_of_xgboost_comes_back(tmp_path, suffix, final):
    X, y = numbers()
    booster = xgb.train({"nthread": 1}, xgb.DMatrix(X, label=y), 3)
    file = tmp_path / f"model.{suffix}"
    booster.save_model(file)
    if final:
        file = file.rename(tmp_path / f"model.{final}")
    model = as_model(load_model(file), "squared_error")
    np.testing.assert_array_equal(model.predict(X), booster.predict(xgb.DMatrix(X)))


def test_a_classifier_of_xgboost_comes_back_as_a_booster_of_classes(tmp_path):
    X, y = numbers()
    classifier = xgb.XGBClassifier(n_estimators=3, n_jobs=1).fit(X, (y > 0).astype(int))
    classifier.save_model(tmp_path / "model.json")
    booster = load_model(tmp_path / "model.json")
    assert choose_loss(booster).name == "cross_entropy"
    predicted = as_model(booster, "cross_entropy").predict(X)
    np.testing.assert_allclose(predicted, classifier.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_a_damaged_model_of_xgboost_is_refused(tmp_path, suffix):
    X, y = numbers()
    xgb.train({"nthread": 1}, xgb.DMatrix(X, label=y), 3).save_model(tmp_path / f"model.{suffix}")
    whole = (tmp_path / f"model.{suffix}").read_bytes()
    with pytest.raises(ValueError, match="a whole XGBoost model"):
        load_model(write(tmp_path, f"cut.{suffix}", whole[: len(whole) // 2]))
    with pytest.raises(ValueError, match="a whole XGBoost model"):
        load_model(write(tmp_path, f"other.{suffix}", b'{"learner": {}, "version": [3, 0, 0]}'))


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("left_children", 1_000_000, "a node that does not exist"),
        ("left_children", 0, "is not a tree"),
        ("right_children", 2**31, "right_children of tree 0 is out of range"),
        ("split_indices", 1_000_000, "split_indices of tree 0 is out of range"),
        ("split_conditions", float("nan"), "split_conditions of tree 0 is not finite"),
        ("base_weights", float("inf"), "base_weights of tree 0 is not finite"),
        ("parents", 3, "name other parents"),
        ("split_type", 1, "the categories of tree 0 are incomplete"),
    ],
)
@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_damage_to_a_tree_of_xgboost_is_found_before_it_ends_the_process(
    tmp_path, suffix, name, value, error
):
    X, y = numbers()
    booster = xgb.train({"nthread": 1}, xgb.DMatrix(X, label=y), 2)
    model = json.loads(booster.save_raw("json"))
    model["learner"]["gradient_booster"]["model"]["trees"][0][name][0] = value
    content = json.dumps(model).encode() if suffix == "json" else to_ubjson(model)
    with pytest.raises(ValueError, match=f"a whole XGBoost model; .*{error}"):
        load_model(write(tmp_path, f"model.{suffix}", content))


def test_trees_of_xgboost_with_one_number_are_refused(tmp_path):
    X, y = numbers()
    model = json.loads(xgb.train({}, xgb.DMatrix(X, label=y), 2).save_raw("json"))
    model["learner"]["gradient_booster"]["model"]["trees"][1]["id"] = 0
    with pytest.raises(ValueError, match="not numbered from 0"):
        load_model(write(tmp_path, "model.json", json.dumps(model)))


def lightgbm_text():
    X, y = numbers()
    X["kind"] = pd.Categorical(np.random.default_rng(1).choice(list("uvwxyz"), len(X)))
    options = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 3, "min_data_per_group": 3}
    data = lgb.Dataset(X, label=y + 3 * X["kind"].cat.codes)
    return lgb.train({**options, "num_leaves": 5}, data, 3), X


@pytest.mark.parametrize("name", ["model.txt", "model.lgb"])
def test_a_booster_of_lightgbm_comes_back(tmp_path, name):
    booster, X = lightgbm_text()
    booster.save_model(tmp_path / name)
    model = as_model(load_model(tmp_path / name), "squared_error")
    np.testing.assert_array_equal(model.predict(X.astype({"kind": str})), booster.predict(X))


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("end of trees", "", "no line 'end of trees'"),
        ("Tree=1\n", "Tre\n", "lines that are not fields"),
        ("Tree=1\n", "", "tree 0 has lines that are not fields"),
        ("Tree=1", "Tree=0", "trees are not numbered from 0"),
        (r"\nleaf_weight=.*", "", "length of leaf_weight of tree 0"),
        ("objective=regression", "objective=", "its objective is malformed"),
        (r"\[learning_rate: 0.1\]", "[learning_ra", "its parameters are incomplete"),
        ("num_leaves=5", "num_leaves=6", "length of leaf_value of tree 0"),
        ("num_leaves=5", "num_leaves=x", "is not a whole number"),
        ("num_leaves=5", "num_leaves=5 5", "is not a whole number"),
        ("num_leaves=5", "num_leaves=inf", "is not a whole number"),
        ("max_feature_idx=3", "max_feature_idx=0", "length of feature_names"),
        (r"left_child=\S+", "left_child=0", "tree 0 is not a tree"),
        (r"left_child=\S+", "left_child=9", "the children of tree 0 is out of range"),
        ("cat_boundaries=0", "cat_boundaries=1", "sets of categories"),
        ("leaf_weight=", "leaf_weight=x", "leaf_weight of tree 0 is not numeric"),
        ("tree_sizes=", "tree_sizes=1 ", "number or lengths of its trees"),
        ("\nshrinkage=1", "\nshrinkage=12", "number or lengths of its trees"),
    ],
)
def test_damage_to_a_model_of_lightgbm_is_found_before_it_ends_the_process(old, new, error):
    text = lightgbm_text()[0].model_to_string()
    check_text(text)
    damaged = re.sub(old, new, text, count=1)
    assert damaged != text
    if not error.startswith("number or"):
        line = next(line for line in text.splitlines() if line.startswith("tree_sizes="))
        damaged = damaged.replace(line + "\n", "", 1)
    with pytest.raises(DamagedModelError, match=error):
        check_text(damaged)


def test_other_trees_of_lightgbm_are_whole():
    X, y = numbers()
    for options in ({"linear_tree": True}, {"min_data_in_leaf": 1000}, {"boosting": "dart"}):
        data = lgb.Dataset(X, label=y)
        check_text(lgb.train({"verbosity": -1, **options}, data, 2).model_to_string())


def test_a_damaged_model_of_lightgbm_is_refused(tmp_path):
    text = lightgbm_text()[0].model_to_string()
    for name, content in (
        ("cut.txt", text[: len(text) // 4]),
        ("bytes.txt", b"tree\n\xff\xfe"),
        ("hole.txt", text.replace("threshold=", "threshold=x", 1)),
    ):
        with pytest.raises(ValueError, match=r"LightGBM model; got .*Save the model again"):
            load_model(write(tmp_path, name, content))


# ONNX


@pytest.mark.parametrize("container", ["numpy", "pandas", "polars"])
def test_a_regressor_in_onnx_takes_one_matrix(tmp_path, container):
    X, y = numbers()
    forest = RandomForestRegressor(5, random_state=0).fit(X.to_numpy(), y)
    model = load_model(exported(tmp_path, forest, X.to_numpy(np.float32)[:1]))
    assert repr(model) == "OnnxRegressor('model.onnx')"
    assert choose_loss(model, y).name == "squared_error"
    rows = {"numpy": X.to_numpy(), "pandas": X, "polars": pl.from_pandas(X)}[container]
    predicted = as_model(model, "squared_error").predict(rows)
    np.testing.assert_allclose(predicted, forest.predict(X.to_numpy(np.float32)), rtol=1e-5)


@pytest.mark.parametrize("zipmap", [True, False, "columns"])
@pytest.mark.parametrize("labels", [["high", "low", "middle"], [1, 2, 10]])
def test_a_classifier_in_onnx_gives_probabilities(tmp_path, zipmap, labels):
    X, y = numbers()
    matrix = X.to_numpy(np.float32)
    named = np.array(labels)[np.digitize(y, [-1, 1])]
    tree = DecisionTreeClassifier(max_depth=3).fit(matrix, named)
    model = load_model(exported(tmp_path, tree, matrix[:1], options={"zipmap": zipmap}))
    assert choose_loss(model, named).name == "cross_entropy"
    checked = as_model(model, "cross_entropy")
    np.testing.assert_allclose(checked.predict(X), tree.predict_proba(matrix), rtol=1e-6)
    assert (checked.classes is None) == (zipmap is not True)
    if zipmap is True:
        assert checked.classes.tolist() == labels
    assert model.predict(X).tolist() == tree.predict(matrix).tolist()


def mixed(n_rows=80):
    X, y = numbers(n_rows)
    random = np.random.default_rng(1)
    X["kind"] = random.choice(["mild", "strong"], n_rows)
    X["count"] = random.integers(0, 5, n_rows)
    X["old"] = X["age"] > 0
    return X, np.where(y + 2 * (X["kind"] == "strong") > 0, "yes", "no")


def of_columns(folder, handle_unknown="error"):
    X, y = mixed()
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown=handle_unknown), ["kind"]),
        (StandardScaler(), [*NAMES, "count"]),
    )
    pipeline = make_pipeline(steps, LogisticRegression()).fit(X.drop(columns="old"), y)
    types = [
        ("kind", StringTensorType([None, 1])),
        ("count", Int64TensorType([None, 1])),
        *((name, FloatTensorType([None, 1])) for name in NAMES),
    ]
    return load_model(exported(folder, pipeline, None, initial_types=types)), pipeline


@pytest.mark.parametrize("container", ["pandas", "polars", "categories"])
def test_columns_of_several_types_are_found_by_name(tmp_path, container):
    X, _ = mixed()
    X = X.drop(columns="old")
    model, pipeline = of_columns(tmp_path)
    rows = {
        "pandas": X,
        "polars": pl.from_pandas(X).with_columns(pl.col("kind").cast(pl.Categorical)),
        "categories": X.astype({"kind": "category", "count": "float64"}),
    }[container]
    np.testing.assert_allclose(
        as_model(model, "cross_entropy").predict(rows), pipeline.predict_proba(X), rtol=1e-4
    )


def test_classes_are_known_where_the_model_takes_an_empty_row(tmp_path):
    assert not hasattr(of_columns(tmp_path)[0], "classes_")
    assert of_columns(tmp_path, "ignore")[0].classes_.tolist() == ["no", "yes"]


def test_columns_that_do_not_fit_the_inputs_are_named(tmp_path):
    X, _ = mixed()
    X = X.drop(columns="old")
    model, _ = of_columns(tmp_path)
    with pytest.raises(ValueError, match=r"exactly 'kind'.* These are missing: 'dose'"):
        model.predict(X.drop(columns="dose"))
    with pytest.raises(ValueError, match="Drop 'height'"):
        model.predict(X.assign(height=1.0))
    with pytest.raises(ValueError, match=r"got \(3, 2\)"):
        model.predict(np.zeros((3, 2)))
    with pytest.raises(TypeError, match=r"'count' for model\.onnx must be .*tensor\(int64\); got"):
        model.predict(X.assign(count=0.5))
    with pytest.raises(TypeError, match=r"'kind' .* tensor\(string\)"):
        model.predict(X.assign(kind=1))
    with pytest.raises(TypeError, match=r"'dose' .* tensor\(float\)"):
        model.predict(X.assign(dose="much"))


def test_a_matrix_of_another_width_or_type_is_refused(tmp_path):
    X, y = numbers()
    line = LinearRegression().fit(X.to_numpy(), y)
    model = load_model(exported(tmp_path, line, X.to_numpy(np.float32)[:1]))
    with pytest.raises(ValueError, match=r"of shape \(n_rows, 3\); got \(80, 2\).*'X'"):
        model.predict(X[["age", "dose"]])
    with pytest.raises(TypeError, match=r"'dose' for model\.onnx must be of the type of its input"):
        model.predict(X.assign(dose="much"))
    with pytest.raises(TypeError, match=r"'X1' for model\.onnx must be of the type"):
        model.predict(np.full((2, 3), "much"))


def test_inputs_that_are_no_columns_are_refused(tmp_path):
    X, y = numbers()
    line = LinearRegression().fit(X.to_numpy(), y)
    fixed = exported(tmp_path, line, None, initial_types=[("X", FloatTensorType([1, 3]))])
    with pytest.raises(ValueError, match="of any number of rows; got \"'X' of 1\""):
        load_model(fixed)


def test_booleans_reach_an_input_of_booleans(tmp_path):
    X = pd.DataFrame({"a": [True, False, True, False], "b": [True, True, False, False]})
    tree = DecisionTreeClassifier().fit(X, X["a"].astype(int))
    model = load_model(
        exported(tmp_path, tree, None, initial_types=[("X", BooleanTensorType([None, 2]))])
    )
    assert model.predict_proba(X).argmax(axis=1).tolist() == [1, 0, 1, 0]
    with pytest.raises(TypeError, match=r"tensor\(bool\)"):
        model.predict(X.astype(float))


def test_a_model_in_onnx_gives_the_same_bits_in_any_batch_and_in_workers(tmp_path):
    X, y = numbers(2000)
    forest = RandomForestRegressor(20, max_depth=6, random_state=0).fit(X.to_numpy(), y)
    model = load_model(exported(tmp_path, forest, X.to_numpy(np.float32)[:1]))
    whole = model.predict(X)
    parts = np.concatenate([model.predict(X[at : at + 7]) for at in range(0, len(X), 7)])
    np.testing.assert_array_equal(whole, parts)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), whole)


def test_a_damaged_onnx_file_is_refused(tmp_path):
    X, y = numbers()
    file = exported(tmp_path, LinearRegression().fit(X.to_numpy(), y), X.to_numpy(np.float32)[:1])
    content = file.read_bytes()
    with pytest.raises(ValueError, match=r"an ONNX model; got 'cut\.onnx: "):
        load_model(write(tmp_path, "cut.onnx", content[: len(content) // 2]))


def test_a_classifier_without_probabilities_is_refused(tmp_path):
    X, y = numbers()
    tree = DecisionTreeClassifier(max_depth=2).fit(X.to_numpy(), y > 0)
    graph = to_onnx(tree, X.to_numpy(np.float32)[:1], target_opset=21)
    graph.ir_version = 10
    del graph.graph.output[1:]
    file = write(tmp_path, "model.onnx", graph.SerializeToString())
    with pytest.raises(ValueError, match="labels and their probabilities; got"):
        load_model(file)
