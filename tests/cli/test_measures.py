"""``dsage measures`` from files to measures."""

import json
from pathlib import Path

import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LinearRegression

from cli_case import table
from dsage import Measures

LM = ("data.csv", "--target", "outcome", "--fit", "lm", "--sampler", "gaussian")
FEW = ("--measure", "total", "--measure", "pfi")


def test_measures_are_shown_and_written(dsage):
    files = ("--out", "m.dsage", "--csv", "m.csv", "--json", "m.json", "--plot", "m.png")
    ran = dsage("measures", *LM, *FEW, "--measure", "loco", "--interactions", *files)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Measures of outcome by squared_error, sampler Gaussian:")
    assert "Interactions, the strongest first:" in ran.out
    frame = pd.read_csv("m.csv")
    assert frame["measure"].unique().tolist() == ["total", "pfi", "loco"]
    assert len(json.loads(Path("m.json").read_text())) == len(frame)
    assert Measures.load("m.dsage").names == ("total", "pfi", "loco")
    assert Path("m.png").read_bytes().startswith(b"\x89PNG")


def test_all_measures_but_loco_are_the_default(dsage):
    ran = dsage("measures", *LM, "--tolerance", 0.3, "--quiet")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[1].split() == ["shapley", "total", "first-order", "cfi", "pfi"]


def test_a_loaded_model_is_measured(dsage):
    data = table()
    X, y = data.drop(columns="outcome"), data["outcome"]
    skops.io.dump(LinearRegression().fit(X, y), "model.skops")
    options = ("--target", "outcome", "--model", "model.skops", "--sampler", "gaussian")
    ran = dsage("measures", "data.csv", *options, *FEW, "--test", "test.csv")
    assert ran.code == 0, ran.err
    wrong = dsage("measures", "data.csv", *options, "--measure", "loco")
    assert "--measure loco must be used without --model" in wrong.error


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--measure", "pif"), "--measure must be one of the measures; got 'pif'. Did you mean"),
        (("--measure", "pfi", "--tolerance", 0.1), "--tolerance must be given for 'shapley' only"),
        (("--out", "m.txt"), "--out must be a name that ends in .dsage"),
        (("--csv", "data.csv"), "--csv must be a different file from DATA"),
        (("--graph", "none"), "No such option: --graph"),
        (("--cv", "3"), "No such option: --cv"),
    ],
)
def test_wrong_options_are_refused(dsage, options, text):
    assert text in dsage("measures", *LM, *options).error
