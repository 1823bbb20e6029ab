"""Tests of partial correlation compared with separation queries, at a tiny size."""

import numpy as np
import pytest
from scipy import stats

from dsage.datasets import paper_graph
from experiments import independence_tables, partial_correlation
from experiments.independence import INDEPENDENCE
from experiments.independence_tables import Sizes
from experiments.partial_correlation import p_values, partial_correlations
from experiments.simulate import Questions
from experiments.store import Store

TINY = Sizes(
    graphs=("dag_s(2)", "dag_sm(4)"),
    n_rows=2_000,
    n_runs=2,
    n_orderings=10,
    n_networkx=2,
    n_pingouin=20,
    published=("dag_s(2)",),
)

# A stand-in for pingouin: correlates the residuals of regressions.
STAND_IN = """
import numpy as np
import pandas as pd
from scipy import stats

def partial_corr(data, x, y, covar):
    rows = data[[x, y]].to_numpy()
    given = np.column_stack([np.ones(len(data)), data[list(covar)].to_numpy()])
    left = rows - given @ np.linalg.lstsq(given, rows, rcond=None)[0]
    r = np.corrcoef(left.T)[0, 1]
    freedom = len(data) - 2 - len(covar)
    p = 2 * stats.t.sf(abs(r) * np.sqrt(freedom / (1 - r**2)), freedom)
    return pd.DataFrame({"n": len(data), "r": r, "p_val": p}, index=["pearson"])
"""


@pytest.fixture(scope="module")
def messages():
    return []


@pytest.fixture(scope="module")
def store(tmp_path_factory, messages):
    """Return the tables of a run without pingouin."""
    store = Store(tmp_path_factory.mktemp("independence"), say=messages.append)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partial_correlation, "find_spec", lambda name: None)
        with pytest.warns(UserWarning, match=r"pingouin is not installed.* 'dsage\[paper\]'"):
            INDEPENDENCE.run(store, TINY)
    return store


@pytest.fixture
def with_stand_in(monkeypatch, tmp_path):
    (tmp_path / "pingouin.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(tmp_path)


def test_partial_correlations_equal_correlations_of_residuals():
    model = paper_graph("dag_s(4)")
    X = model.sample(300, random_state=0).to_numpy()
    questions = Questions.draw(9, 3, seed=0)
    correlations = partial_correlations(np.cov(X.T), questions)
    tests = p_values(correlations, 300)
    for row, ordering in enumerate(questions.orderings):
        for k, feature in enumerate(ordering):
            given = np.column_stack([np.ones(300), X[:, ordering[:k]]])
            pair = X[:, [feature, 9]]
            left = pair - given @ np.linalg.lstsq(given, pair, rcond=None)[0]
            r = np.corrcoef(left.T)[0, 1]
            slope = stats.linregress(left[:, 0], left[:, 1])
            t = slope.slope / slope.stderr * np.sqrt((298 - k) / 298)
            assert correlations[row, k] == pytest.approx(r, abs=1e-10)
            assert tests[row, k] == pytest.approx(2 * stats.t.sf(abs(t), 298 - k), rel=1e-6)


def test_accuracies_follow_from_counts(store):
    table = store.read("independence")
    counts = table[["tp", "tn", "fp", "fn"]].sum(axis=1)
    assert (counts == table["n_tests"]).all()
    assert ((table["tp"] + table["tn"]) / counts - table["accuracy"]).abs().max() < 1e-8
    ways = {"graph: tabu", "graph: default", "networkx: tabu"}
    assert set(table["way"]) == ways | {"test: 0.05", "test: 0.01", "test: 0.001"}
    assert (table["seconds"] > 0).all()


def test_networkx_agrees_with_the_oracle(store, tmp_path):
    same = Sizes(graphs=("dag_s(3)",), n_rows=500, n_runs=1, n_orderings=5, published=())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(independence_tables, "has_pingouin", lambda: False)
        INDEPENDENCE.run(Store(tmp_path), same)
    counts = Store(tmp_path).read("independence").set_index("way")[["tp", "tn", "fp", "fn"]]
    assert counts.loc["networkx: tabu"].tolist() == counts.loc["graph: tabu"].tolist()


def test_lower_levels_find_more_independence(store):
    table = store.read("independence")
    found = (table["tp"] + table["fp"]).groupby(table["way"]).sum()
    assert found["test: 0.05"] < found["test: 0.01"] < found["test: 0.001"]


def test_rule_of_the_script_reproduces_the_papers_accuracy_with_a_million_rows(store):
    table = store.read("independence_published")
    rule = table[table["way"] == "rule"].set_index("n_rows")["accuracy"]
    paper = paper_graph("dag_s(2)").printed["accuracy_partial_correlation"]
    assert rule[1_000_000] == pytest.approx(paper, abs=0.02)
    assert rule[2_000] < 0.8


def test_without_pingouin_only_its_column_is_missing(store):
    assert store.read("independence_pingouin").empty
    section = INDEPENDENCE.describe(store)
    assert "**pingouin was not installed in this run**" in section
    assert "| - | 46.82 s |" in section


def test_with_pingouin_the_rest_is_not_computed_again(store, messages, tmp_path, with_stand_in):
    copy = Store(tmp_path / "tables", say=messages.append)
    for path in store.folder.iterdir():
        (copy.folder / path.name).write_bytes(path.read_bytes())
    messages.clear()
    INDEPENDENCE.run(copy, TINY)
    assert [text.split(":")[0] for text in messages] == ["independence_pingouin"] * 2
    table = copy.read("independence_pingouin")
    assert table["n_tests"].tolist() == [2 * 9, 1 * 19]
    assert table["n_other"].tolist() == [0, 0]
    section = INDEPENDENCE.describe(copy)
    assert "The times of pingouin are extrapolated from 1 and 2 orderings." in section
    assert "Of 37 tests with pingouin at level 0.05, our tests agree with all" in section
    messages.clear()
    INDEPENDENCE.run(copy, TINY)
    assert messages == []


def test_figure_is_small(store, tmp_path):
    INDEPENDENCE.draw(store, tmp_path)
    (figure,) = tmp_path.iterdir()
    text = figure.read_text()
    assert "test, covariances" in text
    assert "test, pingouin" not in text
    assert len(text) < 60_000


def test_section_has_our_accuracies_and_the_papers(store):
    table = store.read("independence")
    mean = table[(table["graph"] == "dag_sm(4)")].groupby("way")["accuracy"].mean()
    begin = f"| dag_sm(4) | {mean['graph: default']:.3f} | {mean['graph: tabu']:.3f} | 1.000 |"
    section = INDEPENDENCE.describe(store)
    assert begin in section
    assert "The closest is this rule with 1,000,000 rows. So the paper's tests seem" in section


def test_verdict_on_the_rule_depends_on_the_results(store, tmp_path):
    for name in ("independence", "independence_published"):
        table = store.read(name)
        table["accuracy"] = table["way"].map({"rule": 0.5}).fillna(1.0)
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    section = INDEPENDENCE.describe(Store(tmp_path))
    assert "this rule with 1,000,000 rows 0.5000 (0.500)" in section
    assert "So the script does not explain the paper's results." in section


def test_rule_is_optional(store, tmp_path):
    store.read("independence").to_csv(tmp_path / "independence.csv", index=False)
    section = INDEPENDENCE.describe(Store(tmp_path))
    assert "The rule of the paper's script was not applied in this run." in section
