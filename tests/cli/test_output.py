"""No result is lost, and no file is destroyed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import skops.io
from sklearn.linear_model import LinearRegression

import dsage as package
from cli_case import table
from dsage.result.explanation import Explanation

FAST = (
    *("--sampler", "gaussian", "--tolerance", 0.4, "--resamples", 0),
    "--no-sampler-check",
)
LM = ("explain", "data.csv", "--target", "outcome", "--fit", "lm", *FAST)


@pytest.fixture
def files(dsage, tmp_path):
    """Files of every kind that a command reads, named as if they were results."""
    X = table()
    skops.io.dump(LinearRegression().fit(X.iloc[:, :3], X["outcome"]), "model.skops")
    package.Graph(list(X.columns), [("dose", "outcome")]).save("graph.json")
    (tmp_path / "groups.json").write_text('{"both": ["dose", "age"]}')
    os.link("data.csv", "linked.csv")
    return {path.name: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("arguments", "option", "other"),
    [
        (("--csv", "data.csv"), "--csv", "DATA"),
        (("--csv", "../{folder}/./data.csv"), "--csv", "DATA"),
        (("--csv", "linked.csv"), "--csv", "DATA"),
        (("--test", "test.csv", "--json", "test.csv"), "--json", "--test"),
        (("--model", "model.skops", "--csv", "model.skops"), "--csv", "--model"),
        (("--graph", "graph.json", "--json", "graph.json"), "--json", "--graph"),
        (("--groups", "groups.json", "--json", "groups.json"), "--json", "--groups"),
        (("--checkpoint", "data.csv"), "--checkpoint", "DATA"),
        (("--checkpoint", "run.dsage", "--out", "run.dsage"), "--out", "--checkpoint"),
        (("--csv", "run.csv", "--json", "run.csv"), "--json", "--csv"),
    ],
)
def test_a_result_never_takes_the_place_of_another_file(
    dsage, files, tmp_path, arguments, option, other
):
    given = [argument.format(folder=tmp_path.name) for argument in arguments]
    error = dsage("explain", "data.csv", "--target", "outcome", *given).error
    assert error.startswith(f"Error: {option} must be a different file from {other}; got ")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_the_other_commands_keep_their_inputs_too(dsage, files, tmp_path):
    error = dsage("graph", "data.csv", "--target", "outcome", "--out", "data.csv").error
    assert "--out must be a different file from DATA" in error
    both = ("--out", "g", "--dot", "g")
    assert (
        "a different file from --out" in dsage("graph", "data.csv", "--target", "age", *both).error
    )
    shutil.copy("data.csv", "run.html")
    assert "--out must be a different file from RUN" in dsage("report", "run.html").error
    error = dsage("compare", "one.dsage", "data.csv", "--csv", "data.csv").error
    assert "--csv must be a different file from the second RUN" in error


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody may write to")
def test_a_place_that_cannot_be_written_is_known_before_anything_is_read(dsage):
    error = dsage("explain", "no.csv", "--target", "outcome", "--csv", "/proc/run.csv").error
    assert error.startswith("Error: --csv must be a file that can be written; got '/proc/run.csv'")


def test_a_pipe_is_written_to(dsage):
    ran = dsage(*LM, "--csv", "/dev/null", "--quiet")
    assert ran.code == 0, ran.err


def failing(self, path):
    raise OSError(28, "No space left on device")


def test_a_file_that_cannot_be_written_does_not_prevent_the_others(dsage, monkeypatch, tmp_path):
    monkeypatch.setattr(Explanation, "save", failing)
    ran = dsage(*LM, "--out", "run.dsage", "--csv", "run.csv", "--report", "run.html")
    assert "--out run.dsage could not be written: [Errno 28] No space left" in ran.error
    assert "dose" in ran.out
    assert (tmp_path / "run.csv").exists()
    assert "The report is in run.html." in ran.err


def test_files_are_written_before_anything_is_shown(dsage, monkeypatch, tmp_path):
    def shown(text):
        assert (tmp_path / "run.dsage").exists()

    monkeypatch.setattr("dsage.cli.output.show", shown)
    ran = dsage(*LM, "--out", "run.dsage")
    assert ran.code == 0, ran.exception


def test_a_reader_that_has_gone_is_not_an_error():
    read, write = os.pipe()
    os.close(read)
    code = "from dsage.cli.output import show; show('some\\nlines'); show('and more')"
    ran = subprocess.run(
        [sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (ran.returncode, ran.stderr) == (0, "")
