"""The other commands, and the program itself."""

import re
import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import typer
from sklearn.linear_model import LinearRegression

import dsage as package
from cli_case import table
from dsage.cli.app import app
from dsage.models import LOSSES
from dsage.orderings import KINDS
from dsage.samplers import SAMPLERS
from dsage.structure import METHODS, SCORES


def program(*arguments, code="from dsage.cli import main; main()"):
    """Run the program in a process of its own."""
    command = [sys.executable, *(("-c", code) if code else ("-m", "dsage.cli"))]
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, check=False
    )


# The program


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((), ("demo", "explain", "describe", "graph", "score-samplers", "report", "compare")),
        (("explain",), ("--target", "gaussian, ", "antithetic")),
    ],
)
def test_the_help_comes_at_once_and_is_complete(arguments, names):
    code = "import sys; sys.argv[0] = 'dsage'; from dsage.cli.app import app\n"
    code += "try:\n app()\nexcept SystemExit as end: sys.exit(end.code or 'numpy' in sys.modules)"
    ran = program(*arguments, "--help", code=code)
    assert (ran.returncode, ran.stderr) == (0, "")
    for name in names:
        assert f" {name}" in ran.stdout


def test_the_program_runs_as_a_module(tmp_path):
    table().to_parquet(tmp_path / "data.parquet")
    ran = program(
        *("graph", tmp_path / "data.parquet", "--target", "outcome", "--resamples", 0), code=""
    )
    assert ran.returncode == 0, ran.stderr
    assert "Markov blanket of outcome: dose, age" in ran.stdout
    ran = program("explain", "data.csv", "--targt", "outcome", code="")
    assert ran.returncode == 2
    assert ran.stderr.startswith("Error: No such option: --targt")
    assert ran.stderr.count("\n") == 1


def test_the_extra_is_named_where_typer_is_absent():
    code = "import sys; sys.modules['typer'] = None; from dsage.cli import main; main()"
    ran = program("demo", code=code)
    assert ran.returncode == 2
    assert ran.stderr.startswith("Error: ")
    assert "pip install 'dsage[cli]'" in ran.stderr


def test_the_version_is_shown(dsage):
    ran = dsage("--version")
    assert (ran.code, ran.out) == (0, f"dsage {package.__version__}\n")


@pytest.mark.parametrize("arguments", [(), ("explain",), ("graph",), ("compare",)])
def test_nothing_given_shows_the_help(dsage, arguments):
    ran = dsage(*arguments)
    assert ran.code == 0
    assert "Usage:" in ran.out
    assert "Error" not in ran.err


def test_every_command_and_option_has_a_help_text():
    commands = typer.main.get_command(app).commands
    assert set(commands) == {
        "demo", "explain", "explain-rows", "measures", "flow", "describe", "graph", "score-samplers", "report", "compare",
    }  # fmt: skip
    for command in commands.values():
        assert command.help
        assert "debug" in [option.name for option in command.params]
        assert [option.name for option in command.params if not option.help] == []


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("explain", (*SAMPLERS, *LOSSES, *KINDS)),
        ("graph", (*METHODS, *SCORES)),
    ],
)
def test_the_help_of_a_command_lists_the_names_in_the_registries(dsage, command, names):
    shown = set(re.findall(r"[\w-]+", dsage(command, "--help").out))
    assert shown >= set(names)


# Graphs and samplers


def test_the_graph_is_shown_saved_and_drawn(dsage, tmp_path):
    ran = dsage(
        *("graph", "data.csv", "--target", "outcome", "--resamples", 4),
        *("--out", "g.json", "--plot", "g.png", "--dot", "g.dot"),
    )
    assert ran.code == 0, ran.err
    assert "Markov blanket of outcome: dose, age" in ran.out
    assert "dose -> outcome      100%        100%" in ran.out
    assert package.Graph.load("g.json").markov_blanket("outcome") == ("dose", "age")
    assert (tmp_path / "g.dot").read_text().startswith("digraph {")
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")
    assert "The graph is in g.json." in ran.err


def test_the_extra_is_named_where_matplotlib_is_absent(dsage, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("dsage.plots")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(package, "plots", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    error = dsage("graph", "data.csv", "--target", "outcome", "--plot", "g.png").error
    assert "pip install 'dsage[plot]'" in error


def test_a_graph_without_edges_or_resamples_is_shown(dsage):
    random = np.random.default_rng(0)
    pd.DataFrame(random.normal(size=(60, 2)), columns=["a", "b"]).to_csv("none.csv", index=False)
    ran = dsage("graph", "none.csv", "--target", "b", "--resamples", 0, "--quiet")
    assert ran.out.startswith("2 columns, 0 edges\nMarkov blanket of b: empty")
    ran = dsage("graph", "data.csv", "--target", "outcome", "--resamples", 0)
    assert "\ndose -> outcome\n" in ran.out


def test_a_large_parquet_file_is_read_in_batches(dsage, monkeypatch):
    table().to_parquet("data.parquet")
    command = ("graph", "data.parquet", "--target", "outcome", "--resamples", 0)
    expected = dsage(*command)
    monkeypatch.setattr("dsage.cli.data.MANY_ROWS", 10)
    monkeypatch.setattr("dsage.cli.data.read_rows", None)
    ran = dsage(*command)
    assert (ran.code, ran.out, ran.err) == (0, expected.out, expected.err)
    assert "no_such" in dsage(*command, "--drop", "no_such").error
    assert "no_such" in dsage("graph", *command[1:3], "no_such", "--resamples", 0).error


def test_samplers_are_scored_without_the_target(dsage):
    ran = dsage("score-samplers", "data.csv", "--target", "outcome")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0].split("  ")[0] == "sampler"
    assert [line.split()[0] for line in lines[2:7]] == [
        "Gaussian",
        "GaussianCopula",
        "Mix",
        "Neighbors",
        "Marginal",
    ]
    assert "energy score" in lines[-1]


# Saved runs


@pytest.fixture(scope="module")
def explanations():
    """Two explanations of different models on the same rows."""
    X = table()
    y = X.pop("outcome")
    options = {"sampler": "gaussian", "n_resamples": 0, "sampler_check": False}
    options |= {"random_state": 0, "progress": False}
    return [
        package.explain(LinearRegression().fit(X[at::2], y[at::2]), X, y, X, y, **options)
        for at in (0, 1)
    ]


@pytest.fixture
def runs(dsage, explanations):
    """The same, saved."""
    names = ("one.dsage", "two.dsage")
    for name, explanation in zip(names, explanations, strict=True):
        explanation.save(name)
    return names


def test_two_runs_are_compared(dsage, runs, tmp_path):
    ran = dsage("compare", *runs, "--csv", "both.csv", "--plot", "both.png")
    assert ran.code == 0, ran.err
    assert ran.out.split()[:3] == ["feature", "one", "two"]
    assert "two minus one" in ran.out
    assert "dsage.compare in Python" in ran.err
    first, second = (package.load(run) for run in runs)
    frame = pd.read_csv("both.csv").set_index("feature").loc[list(first.feature_names)]
    np.testing.assert_allclose(frame["difference"], second.values - first.values, atol=1e-12)
    total = np.hypot(first.estimate.se_total, second.estimate.se_total)
    np.testing.assert_allclose(frame["se_total"], total)
    assert (frame["lower_total"] <= frame["difference"]).all()
    assert (frame["upper_total"] >= frame["difference"]).all()
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")


def test_runs_on_other_rows_are_compared_for_the_population(dsage, runs, explanations):
    same = dsage("compare", *runs).out
    assert "intervals for these evaluation rows" in same
    other = explanations[1]
    data = replace(other.choices.data, digest="others")
    replace(other, choices=replace(other.choices, data=data)).save("others.dsage")
    apart = dsage("compare", "one.dsage", "others.dsage", "--csv", "apart.csv").out
    assert "intervals for the population" in apart
    line = pd.read_csv("apart.csv").iloc[0]
    assert f"[{line['lower_total']:.4g}, {line['upper_total']:.4g}]" in apart
    assert f"[{line['lower']:.4g}, {line['upper']:.4g}]" in same


def test_runs_with_unknown_errors_for_the_population_are_compared(dsage, explanations):
    one = explanations[0]
    unknown = replace(one.estimate, se_rows=np.full(len(one.values), np.nan))
    replace(one, estimate=unknown).save("unknown.dsage")
    ran = dsage("compare", "unknown.dsage", "unknown.dsage", "--csv", "both.csv")
    assert ran.code == 0, ran.err
    assert pd.read_csv("both.csv")["se_total"].isna().all()


def test_runs_that_mean_different_things_are_not_compared(dsage, runs, explanations):
    one = explanations[0]
    replace(one, target="age").save("age.dsage")
    assert "the target must be the same" in dsage("compare", "one.dsage", "age.dsage").error
    choices = replace(one.choices, loss=replace(one.choices.loss, name="absolute_error"))
    replace(one, choices=choices).save("loss.dsage")
    assert "the loss must be the same" in dsage("compare", "one.dsage", "loss.dsage").error
    renamed = replace(one.estimate, feature_names=("a", "b", "c"))
    replace(one, estimate=renamed).save("renamed.dsage")
    assert "partly the same" in dsage("compare", "one.dsage", "renamed.dsage").error


def test_the_report_of_a_saved_run_is_written_beside_it(dsage, runs, tmp_path):
    ran = dsage("report", "one.dsage")
    assert (ran.code, ran.err) == (0, "The report is in one.html.\n")
    assert "<html" in (tmp_path / "one.html").read_text()
    ran = dsage("report", "one.dsage", "--out", "other.html", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert (tmp_path / "other.html").exists()


# The demo


def test_the_demo_ends_with_a_report(dsage, monkeypatch, tmp_path):
    quick = {"sampler": "marginal", "n_resamples": 0, "n_orderings": 2, "n_draws": 2}
    monkeypatch.setattr(package, "explain", partial(package.explain, **quick))
    ran = dsage("demo", "--report", "demo.html", "--tolerance", 1.0)
    assert ran.code == 0, ran.err
    assert "flipper_length_mm" in ran.out
    assert "The sex of 9 is missing." in ran.err
    assert f"The report is in {tmp_path / 'demo.html'}. Open it in a browser." in ran.out
    assert (tmp_path / "demo.html").stat().st_size > 1000
