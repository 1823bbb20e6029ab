"""``dsage explain`` from files to rankings."""

import json

import joblib
import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

import dsage as package
from cli_case import table
from dsage.estimate import Estimation

FAST = (
    *("--sampler", "gaussian", "--tolerance", 0.4, "--resamples", 0),
    "--no-sampler-check",
)
LM = ("--target", "outcome", "--fit", "lm", *FAST)


@pytest.mark.parametrize("data", ["data.csv", "data.parquet"])
def test_a_table_becomes_a_ranking(dsage, data):
    ran = dsage("explain", data, *LM)
    assert ran.code == 0
    head, *lines = ran.out.splitlines()
    assert "outcome" in head
    ranked = [line.split()[0] for line in lines if line.startswith(("dose", "age", "idle"))]
    assert ranked == ["dose", "age", "idle"]
    assert "linear regression of numbers to 68 rows" in ran.err
    assert "R2 on the 22 evaluation rows is 0.9" in ran.err


def test_the_same_seed_gives_the_same_result_and_another_another(dsage):
    first, again, other = (
        dsage("explain", "data.csv", *LM, "--seed", seed).out for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


def test_all_results_are_written(dsage, tmp_path):
    ran = dsage(
        "explain", "data.csv", *LM, "--out", "run.dsage", "--csv", "run.csv", "--json", "run.json"
    )
    assert ran.code == 0
    explanation = package.load("run.dsage")
    assert repr(explanation) == ran.out.rstrip("\n")
    frame = explanation.to_frame()
    np.testing.assert_allclose(pd.read_csv("run.csv")["value"], frame["value"])
    assert {"se", "se_rows", "se_sampler", "sampler_matters"} <= set(pd.read_csv("run.csv").columns)
    lines = json.loads((tmp_path / "run.json").read_text())
    assert {"se_sampler", "sampler_matters"} <= set(lines[0])
    assert [line["feature"] for line in lines] == frame["feature"].tolist()
    assert "The run is in run.dsage." in ran.err


def test_the_report_is_written(dsage, tmp_path):
    ran = dsage("explain", "data.csv", *LM, "--report", "run.html")
    assert ran.code == 0
    assert "<html" in (tmp_path / "run.html").read_text()
    assert ran.err.endswith("The report is in run.html.\n")


def test_quiet_leaves_the_ranking_alone(dsage):
    ran = dsage("explain", "data.csv", *LM, "--estimand", "sage", "--quiet", "--out", "run.dsage")
    assert ran.code == 0
    assert ran.err == ""
    assert "dose" in ran.out


def test_without_a_model_a_forest_is_fitted_and_the_user_is_told(dsage):
    ran = dsage("explain", "data.csv", "--target", "outcome", *FAST)
    assert ran.code == 0
    assert (
        "random forest of numbers to 68 rows, since neither --model nor --fit is given" in ran.err
    )


def mixed(n_rows=90):
    random = np.random.default_rng(2)
    X = table(n_rows)
    X["kind"] = random.choice(["mild", "strong", "none"], n_rows)
    X["smokes"] = X["dose"] > 0
    X["level"] = random.integers(1, 4, n_rows)
    X["outcome"] = np.where(X["outcome"] + (X["kind"] == "strong") > 0, "ill", "well")
    return X


@pytest.mark.parametrize("fit", ["rf", "hgb", "logistic"])
def test_classes_are_encoded_and_predicted(dsage, fit):
    mixed().to_csv("mixed.csv", index=False)
    ran = dsage(
        *("explain", "mixed.csv", "--target", "outcome", "--fit", fit, "--discrete", "level"),
        *("--graph", "none", "--sampler", "sequential", "--time", "0.05", "--out", "run.dsage"),
        "--no-sampler-check",
    )
    assert ran.code == 0, ran.err
    assert "treated as classes: 'kind', 'smokes'." in ran.err
    assert "accuracy" in ran.err
    run = package.load("run.dsage")
    assert run.choices.loss.name == "cross_entropy"
    assert run.choices.data.n_class_features == 3


def test_a_number_with_two_values_is_a_class_unless_the_model_says_otherwise(dsage):
    X = table()
    X.assign(outcome=(X["outcome"] > 0).astype(int)).to_csv("two.csv", index=False)
    options = ("--target", "outcome", "--graph", "none", *FAST, "--out", "run.dsage")
    ran = dsage("explain", "two.csv", "--fit", "hgb", *options)
    assert "'outcome' is treated as classes: it has two values (0, 1)." in ran.err
    assert package.load("run.dsage").choices.loss.name == "cross_entropy"
    ran = dsage("explain", "two.csv", "--fit", "lm", *options)
    assert "two values" not in ran.err
    assert package.load("run.dsage").choices.loss.name == "squared_error"


def test_a_label_that_occurs_once_is_never_held_out(dsage):
    X = table()
    X.assign(outcome=np.where(X["outcome"] > 0, "ill", "well")).to_csv("rare.csv", index=False)
    X = pd.read_csv("rare.csv")
    X.loc[[3, 50], "outcome"] = ["odd", "strange"]
    X.to_csv("rare.csv", index=False)
    for seed in range(3):
        ran = dsage(
            *("explain", "rare.csv", "--target", "outcome", "--fit", "rf", "--test-size", 0.5),
            *("--graph", "none", "--sampler", "marginal", "--time", 0.01, "--seed", seed),
        )
        assert ran.code == 0, ran.err


# Rows to evaluate on


def test_a_file_gives_the_rows_to_evaluate_on(dsage):
    ran = dsage("explain", "data.csv", *LM, "--test", "test.csv")
    assert "to 90 rows" in ran.err
    assert "40 evaluation rows" in ran.out


@pytest.mark.parametrize(("size", "n_rows"), [("0.5", 45), ("30", 30)])
def test_the_size_is_a_share_or_a_number(dsage, size, n_rows):
    assert f"{n_rows} evaluation rows" in dsage("explain", "data.csv", *LM, "--test-size", size).out


# Models from files


def saved(name="model.skops", columns=("dose", "age", "idle")):
    X = table()
    model = LinearRegression().fit(X[list(columns)], X["outcome"])
    if name.endswith("skops"):
        skops.io.dump(model, name)
    else:
        joblib.dump(model, name)
    return name


def test_a_model_is_loaded_and_the_user_is_warned_of_rows_that_it_may_have_seen(dsage):
    model = saved(columns=("idle", "dose", "age"))
    options = ("--model", model, "--target", "outcome", *FAST)
    ran = dsage("explain", "data.csv", *options)
    assert ran.code == 0, ran.err
    assert "Warning: all rows of data.csv are used both to learn" in ran.err
    assert "only if the model in model.skops was not fitted to these" in ran.err
    assert "--test" in ran.err
    assert "X and y" not in ran.err
    assert "90 evaluation rows" in ran.out
    ran = dsage("explain", "data.csv", *options, "--test-size", 0.5)
    assert "Warning: data.csv is split at random into rows to learn" in ran.err
    assert "45 evaluation rows" in ran.out
    ran = dsage("explain", "data.csv", *options, "--test", "test.csv")
    assert ran.code == 0
    assert "Warning" not in ran.err


def test_the_rows_of_a_loaded_model_are_explained_as_in_python(dsage):
    model = saved()
    fast = ("--graph", "none", "--sampler", "gaussian", "--no-sampler-check", "--out", "run.dsage")
    ran = dsage("explain", "data.csv", "--model", model, "--target", "outcome", *fast)
    assert ran.code == 0, ran.err
    found = package.load("run.dsage")
    assert found.choices.data.is_shared
    X = pd.read_csv("data.csv")
    y = X.pop("outcome")
    with pytest.warns(UserWarning, match="used both"):
        same = package.explain(
            LinearRegression().fit(table()[X.columns], table()["outcome"]), X, y, graph=None,
            sampler="gaussian", sampler_check=False, random_state=0, progress=False,
        )  # fmt: skip
    np.testing.assert_allclose(found.values, same.values, rtol=1e-9)


def test_a_pickle_is_loaded_where_it_is_trusted(dsage):
    ran = dsage(
        *("explain", "data.csv", "--model", saved("model.joblib"), "--target", "outcome"),
        *(*FAST, "--trust-pickle", "--test", "test.csv"),
    )
    assert ran.code == 0, ran.err


def test_types_in_a_skops_file_are_trusted_by_name(dsage):
    X = table()
    forest = RandomForestRegressor(2, random_state=0).fit(X.iloc[:, :3], X["outcome"])
    skops.io.dump(forest, "forest.skops")
    options = ("--model", "forest.skops", "--target", "outcome", "--test", "test.csv", *FAST)
    refused = dsage("explain", "data.csv", *options)
    assert "--trust sklearn.tree._tree.Tree" in refused.error
    ran = dsage("explain", "data.csv", *options, "--trust", "sklearn.tree._tree.Tree")
    assert ran.code == 0, ran.err


def test_the_classes_of_a_loaded_classifier_are_those_of_the_table(dsage):
    X = table()
    model = LogisticRegression().fit(X.iloc[:, :3], np.where(X["outcome"] > 0, 2, 1))
    skops.io.dump(model, "model.skops")
    X.assign(outcome=np.where(X["outcome"] > 0, 2, 1)).to_csv("two.csv", index=False)
    ran = dsage(
        *("explain", "two.csv", "--model", "model.skops", "--target", "outcome"),
        *(*FAST, "--out", "run.dsage"),
    )
    assert ran.code == 0, ran.err
    assert package.load("run.dsage").choices.loss.name == "cross_entropy"


def test_a_booster_is_given_the_texts_that_it_was_trained_with(dsage):
    X = table().assign(kind=np.random.default_rng(0).choice(["mild", "strong"], 90))
    X["outcome"] += 3 * (X["kind"] == "strong")
    X.to_csv("kinds.csv", index=False)
    features = X.drop(columns="outcome").astype({"kind": "category"})
    data = lgb.Dataset(features, label=X["outcome"])
    lgb.train({"verbosity": -1, "num_threads": 1}, data, 5).save_model("model.txt")
    ran = dsage(
        *("explain", "kinds.csv", "--model", "model.txt", "--target", "outcome"),
        *("--graph", "none", "--sampler", "marginal", "--tolerance", 0.4, "--out", "run.dsage"),
    )
    assert ran.code == 0, ran.err
    values = package.load("run.dsage").to_frame().set_index("feature")["value"]
    assert values["kind"] > values["idle"]


def test_rows_to_evaluate_on_may_have_more_columns_and_few_classes(dsage):
    X = table().assign(kind=np.resize(["a", "b", "c"], 90))
    X.to_csv("kinds.csv", index=False)
    X[:4].assign(more=np.nan).to_csv("few.csv")
    ran = dsage(
        *("explain", "kinds.csv", "--target", "outcome", "--fit", "lm", "--test", "few.csv"),
        *("--graph", "none", "--sampler", "marginal", "--tolerance", 0.4),
    )
    assert ran.code == 0, ran.err
    assert "4 evaluation rows" in ran.out


# Graphs, groups, checkpoints, interrupts


def test_a_saved_graph_is_used(dsage):
    package.Graph(
        ["dose", "age", "idle", "outcome"], [("dose", "outcome"), ("age", "outcome")]
    ).save("graph.json")
    ran = dsage("explain", "data.csv", *LM, "--graph", "graph.json", "--out", "run.dsage")
    assert ran.code == 0, ran.err
    run = package.load("run.dsage")
    assert run.graph.markov_blanket("outcome") == ("dose", "age")
    assert run.values[2] == 0


def test_the_comparison_with_other_samplers_can_be_left_out(dsage):
    ran = dsage("explain", "data.csv", *LM, "--sampler", "gaussian", "--no-sampler-check")
    assert "sampler: its error was not estimated: it was turned off" in ran.out


def test_orderings_are_chosen_by_name(dsage):
    options = ("--target", "outcome", "--fit", "lm", "--graph", "none", *FAST)
    runs = [
        dsage("explain", "data.csv", *options, "--orderings", name, "--out", "run.dsage")
        for name in ("antithetic", "uniform")
    ]
    assert [ran.code for ran in runs] == [0, 0]
    assert package.load("run.dsage").choices.estimate.orderings == "uniform"


def test_no_graph_is_plain_sage(dsage):
    ran = dsage("explain", "data.csv", *LM, "--graph", "none")
    assert ran.out.startswith("SAGE values")


def test_groups_are_explained_together(dsage, tmp_path):
    (tmp_path / "groups.json").write_text('{"real": ["dose", "age"]}')
    ran = dsage("explain", "data.csv", *LM, "--groups", "groups.json")
    assert ran.code == 0, ran.err
    assert "real" in ran.out
    assert "\ndose" not in ran.out


def test_columns_are_left_out(dsage):
    ran = dsage("explain", "data.csv", *LM, "--drop", "idle", "--test", "test.csv")
    assert ran.code == 0, ran.err
    assert "idle" not in ran.out


def test_a_checkpoint_is_resumed(dsage):
    X = table()
    data = lgb.Dataset(X.iloc[:, :3], label=X["outcome"])
    lgb.train({"verbosity": -1, "num_threads": 1}, data, 5).save_model("model.txt")
    options = ("--model", "model.txt", "--target", "outcome", "--test", "test.csv")
    options = (*options, "--graph", "none", "--sampler", "gaussian", "--no-sampler-check")
    first = dsage("explain", "data.csv", *options, "--tolerance", 0.4, "--checkpoint", "run.check")
    assert first.code == 0, first.err
    on = dsage("explain", "data.csv", *options, "--tolerance", 0.1, "--checkpoint", "run.check")
    whole = dsage("explain", "data.csv", *options, "--tolerance", 0.1)
    assert on.code == 0, on.err
    assert on.out.splitlines()[:6] == whole.out.splitlines()[:6]
    assert on.out != first.out


@pytest.mark.interrupts
def test_an_interrupt_shows_and_saves_the_values_so_far(dsage, monkeypatch):
    steps = Estimation.steps

    def interrupted(self):
        yield next(steps(self))
        raise KeyboardInterrupt

    monkeypatch.setattr(Estimation, "steps", interrupted)
    ran = dsage(
        *("explain", "data.csv", "--target", "outcome", "--fit", "lm", "--graph", "none"),
        *("--sampler", "gaussian", "--no-sampler-check", "--out", "run.dsage"),
    )
    assert ran.code == 130
    assert "dose" in ran.out
    assert package.load("run.dsage").estimate.interrupted


@pytest.mark.interrupts
def test_an_interrupt_before_there_is_a_result_says_so(dsage, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("dsage.cli.explain.read_rows", interrupted)
    ran = dsage("explain", "data.csv", *LM)
    assert ran.code == 130
    assert ran.err.startswith("Interrupted")
    assert ran.out == ""


def test_causal_values_with_tiers(dsage, tmp_path):
    options = [
        "--target",
        "outcome",
        "--fit",
        "lm",
        "--sampler",
        "gaussian",
        "--estimand",
        "causal",
    ]
    options += ["--no-sampler-check", "--report", "report.html", "--resamples", 0]
    ran = dsage("explain", "data.csv", *options, "--tiers", "dose;age,idle;outcome")
    assert ran.code == 0, ran.err
    assert "causal SAGE values" in ran.out
    assert "indirect" in ran.out
    assert (tmp_path / "report.html").exists()
    (tmp_path / "tiers.json").write_text('[["dose"], ["age", "idle"], ["outcome"]]')
    again = dsage("explain", "data.csv", *options, "--tiers", "tiers.json")
    assert again.out == ran.out


def test_what_is_known_about_causes_is_checked(dsage):
    options = ["--target", "outcome", "--fit", "lm", "--estimand", "causal"]
    ran = dsage("explain", "data.csv", *options, "--tiers", "dose;height")
    assert "--tiers must be one of the variables; got 'height'" in ran.error
    ran = dsage("explain", "data.csv", *options, "--required", "dose")
    assert "--required must be two names; got 'dose'" in ran.error
    ran = dsage("explain", "data.csv", *options, "--graph", "none")
    assert "--graph must be a graph for causal values" in ran.error
