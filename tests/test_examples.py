import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

GALLERY = Path(__file__).parents[1] / "examples" / "gallery"
SCRIPTS = sorted(GALLERY.glob("plot_*.py"))


@pytest.fixture
def drawing(monkeypatch):
    plt.close("all")
    """Draw into memory and close all figures afterwards."""
    monkeypatch.setattr(plt, "show", lambda: None)
    with mpl.rc_context({"figure.max_open_warning": 0}):
        plt.switch_backend("agg")
        yield
        plt.close("all")


def test_the_gallery_has_an_example_of_each_kind():
    assert [path.stem.split("_", 2)[2] for path in SCRIPTS] == [
        "regression",
        "classification",
        "cluster",
        "groups",
        "hidden_cause",
        "comparing",
        "folds",
        "rows",
        "selecting",
        "measures",
        "causal",
        "flow",
    ]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_compiles_and_has_a_title(path):
    code = path.read_text(encoding="utf-8")
    compile(code, path, "exec")
    _, title, underline, *_ = code.splitlines()
    assert title
    assert underline == "=" * len(title)


def test_the_audit_detects_the_hidden_cause_and_the_bidirected_edge_repairs_it(drawing, capsys):
    found = runpy.run_path(str(GALLERY / "plot_5_hidden_cause.py"))
    assert "changes the values of ['fuel', 'price']" in capsys.readouterr().out
    plain, naive, right = (found["table"][column].to_numpy() for column in found["table"])
    assert naive[0] < 0.01 < 0.1 < plain[0]
    assert abs(right - plain).max() < 0.01
    assert (found["skipped"]["surplus"] > 0).mean() > 0.9


def test_the_species_of_a_penguin_is_the_source_of_what_a_model_knows(drawing):
    found = runpy.run_path(str(GALLERY / "plot_9c_flow.py"))
    table = found["found"].node_table()
    assert table.index[0] == "species"
    assert table.loc["species", "own"] > 0.9 * found["found"].reduction
    edges = found["acting"].to_frame().query("source == 'species'")
    assert (edges["value"] == 0).all()
    assert len(plt.get_fignums()) == 1


def test_models_differ_if_the_forest_uses_a_feature_less(drawing):
    found = runpy.run_path(str(GALLERY / "plot_6_comparing.py"))
    frame = found["comparison"].to_frame().set_index("feature")
    assert frame.loc["sex", "upper"] < 0
    assert len(plt.get_fignums()) == 1


def test_a_selector_keeps_measurements_and_leaves_noise(drawing):
    found = runpy.run_path(str(GALLERY / "plot_8_selecting.py"))
    names = found["pipeline"][:-1].get_feature_names_out().tolist()
    assert {"bmi", "bp", "s5"} <= set(names)
    assert not [name for name in names if name.startswith("noise")]
    # Fewer features explain less, but most of what all of them explain.
    assert 0.8 * found["scores"]["all 15"] < found["scores"]["selected"] < found["scores"]["all 15"]
    assert len(plt.get_fignums()) == 1
