import json
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dsage.result.saving
from dsage import Graph, _files
from dsage.data.kinds import Kind
from dsage.estimate import Estimate, SamplerCheck, StopKind, TermKind
from dsage.models.resolve import LossSource
from dsage.result.saving import load
from dsage.samplers.info import Decision, SamplerSource
from dsage.structure.info import GraphSource
from explanations import make_explanation, with_check


@pytest.fixture(scope="module")
def explanation():
    return make_explanation(4, ["alter", "größe", "名前", "a/b"])


def assert_same(one, other):
    pd.testing.assert_frame_equal(one.to_frame(), other.to_frame())
    for field in fields(Estimate):
        first, second = getattr(one.estimate, field.name), getattr(other.estimate, field.name)
        if isinstance(first, np.ndarray):
            np.testing.assert_array_equal(first, second)
            assert first.dtype == second.dtype
        elif isinstance(first, (int, str, float, bool)):
            assert first == second
            assert type(first) is type(second)
    pd.testing.assert_frame_equal(
        one.estimate.skipped_surpluses, other.estimate.skipped_surpluses, check_dtype=False
    )
    assert one.estimate.reason == other.estimate.reason
    np.testing.assert_array_equal(one.estimate.history.values, other.estimate.history.values)
    assert one.estimate.history.n_units.tolist() == other.estimate.history.n_units.tolist()
    for first, second in zip(one.estimate.terms, other.estimate.terms, strict=True):
        assert (first.kind, first.n_orderings, first.df) == (
            second.kind,
            second.n_orderings,
            second.df,
        )
        np.testing.assert_array_equal(first.values, second.values)
    assert one.graph == other.graph
    assert one.choices == other.choices
    assert one.choices.to_dict() == other.choices.to_dict()
    for first, second in (
        (one.edge_strength, other.edge_strength),
        (one.sampler_scores, other.sampler_scores),
    ):
        assert (first is None) == (second is None)
        if first is not None:
            pd.testing.assert_frame_equal(first, second)
    assert (one.target, one.groups, one.warnings) == (other.target, other.groups, other.warnings)


def test_what_is_saved_is_loaded(explanation, tmp_path):
    path = explanation.save(tmp_path / "run.dsage")
    assert path == tmp_path / "run.dsage"
    assert_same(explanation, load(path))
    assert repr(load(path)) == repr(explanation)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.dsage"]


def test_plain_values_and_groups_are_kept(tmp_path):
    for each in (
        make_explanation(2, audited=False),
        make_explanation(3, groups={"both": ["feature 0", "feature 2"]}),
    ):
        assert_same(each, load(each.save(str(tmp_path / "run.dsage"))))


def test_a_file_is_json_and_arrays_without_pickles(explanation, tmp_path):
    path = explanation.save(tmp_path / "run.dsage")
    with zipfile.ZipFile(path) as file:
        assert {name.rsplit(".", 1)[1] for name in file.namelist()} == {"npy"}
    header, arrays = _files.read_arrays(path)
    json.dumps(header, allow_nan=False)
    assert all(array.dtype.kind in "fiub" for array in arrays.values())


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"path must be .*nothing\.dsage'"):
        load(tmp_path / "nothing.dsage")


def test_a_folder_that_is_not_there_is_refused(explanation, tmp_path):
    with pytest.raises(ValueError, match=r"existing folder.*nowhere"):
        explanation.save(tmp_path / "nowhere" / "run.dsage")


@pytest.mark.parametrize("content", [b"", b"no zip at all", b"PK\x03\x04 half a zip"])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other.dsage"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="the file of an explanation"):
        load(path)


def test_an_archive_of_somebody_else_is_refused(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, values=np.ones(3))
    with pytest.raises(ValueError, match="the file of an explanation"):
        load(path)
    _files.write_arrays(path, {"kind": "recipes"}, {})
    with pytest.raises(ValueError, match=r"explanation\.save"):
        load(path)


def test_every_cut_and_every_flipped_part_is_noticed(explanation, tmp_path):
    whole = explanation.save(tmp_path / "run.dsage").read_bytes()
    path = tmp_path / "damaged.dsage"
    generator = np.random.default_rng(0)
    for length in generator.integers(0, len(whole), 20):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="damaged"):
            load(path)
    for at in generator.integers(0, len(whole), 40):
        flipped = bytearray(whole)
        flipped[at] ^= 0xFF
        path.write_bytes(bytes(flipped))
        try:
            found = load(path)
        except ValueError as error:
            assert "the file of an explanation" in str(error)  # noqa: PT017
        else:
            assert_same(explanation, found)  # a byte that means nothing, such as a date


def test_kinds_and_missing_values_are_kept_and_absent_in_earlier_files(explanation, tmp_path):
    names = explanation.estimate.feature_names
    data = replace(
        explanation.choices.data,
        kinds=dict(zip(names, (Kind.CODES, Kind.ORDERED_CLASS, Kind.TIME, Kind.COPY), strict=True)),
        share_missing=dict(zip(names, (0.0, 0.25, 1 / 3, 1.0), strict=True)),
    )
    told = replace(explanation, choices=replace(explanation.choices, data=data))
    path = told.save(tmp_path / "run.dsage")
    assert_same(told, load(path))
    header, arrays = _files.read_arrays(path)
    for name in ("kinds", "share_missing"):
        del header["choices"]["data"][name]
    header["format"] = 2
    _files.write_arrays(tmp_path / "earlier.dsage", header, arrays)
    earlier = load(tmp_path / "earlier.dsage").choices.data
    assert (earlier.kinds, earlier.share_missing) == ({}, {})
    header["choices"]["data"]["kinds"] = {"alter": "colour"}
    _files.write_arrays(tmp_path / "odd.dsage", header, arrays)
    with pytest.raises(ValueError, match="damaged"):
        load(tmp_path / "odd.dsage")


def test_a_header_that_lacks_something_is_noticed(explanation, tmp_path):
    header, arrays = _files.read_arrays(explanation.save(tmp_path / "run.dsage"))
    for name in set(header) - {"kind", "format", "version"}:
        rest = {key: value for key, value in header.items() if key != name}
        _files.write_arrays(tmp_path / "less.dsage", rest, arrays)
        with pytest.raises(ValueError, match="damaged"):
            load(tmp_path / "less.dsage")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("choices",), {}),
        (("estimate", "terms"), []),
        (("estimate", "feature_names"), ["alter"]),
        (("estimate", "estimand"), "foo"),
        (("estimate", "n_orderings"), "5"),
        (("target",), 3),
        (("target",), "nobody"),
        (("warnings",), [1]),
        (("graph",), {"names": ["a"], "edges": [], "bidirected": []}),
    ],
)
def test_parts_that_do_not_fit_together_are_noticed(explanation, tmp_path, place, value):
    header, arrays = _files.read_arrays(explanation.save(tmp_path / "run.dsage"))
    owner = header
    for name in place[:-1]:
        owner = owner[name]
    owner[place[-1]] = value
    _files.write_arrays(tmp_path / "edited.dsage", header, arrays)
    with pytest.raises(ValueError, match="the file of an explanation"):
        load(tmp_path / "edited.dsage")


@pytest.mark.parametrize(
    "change", [lambda a: a[:-1], lambda a: np.full_like(a, np.nan), lambda a: a > 0]
)
def test_values_that_are_not_finite_numbers_are_noticed(explanation, tmp_path, change):
    header, arrays = _files.read_arrays(explanation.save(tmp_path / "run.dsage"))
    arrays["estimate/values"] = change(arrays["estimate/values"])
    _files.write_arrays(tmp_path / "edited.dsage", header, arrays)
    with pytest.raises(ValueError, match="damaged"):
        load(tmp_path / "edited.dsage")


def test_no_unsafe_way_of_reading_is_advised(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("root:x:0:0\n")
    with pytest.raises(ValueError, match=r"explanation\.save") as caught:
        load(path)
    assert "pickle" not in str(caught.value)


def test_folders_are_refused(explanation, tmp_path):
    with pytest.raises(FileNotFoundError, match="folder"):
        load(tmp_path)
    with pytest.raises(ValueError, match="folder"):
        explanation.save(tmp_path)


def test_a_later_format_is_refused_with_the_version_that_wrote_it(
    explanation, tmp_path, monkeypatch
):
    monkeypatch.setattr(dsage.result.saving, "_FORMAT", 7)
    path = explanation.save(tmp_path / "run.dsage")
    monkeypatch.undo()
    with pytest.raises(ValueError, match=f"format 1 to 6; got 7.*{dsage.__version__}"):
        load(path)


def test_the_error_of_the_sampler_is_kept(explanation, tmp_path):
    checked = with_check(explanation, 0.1, others=("Copula", "Forest"), are_better=(False, True))
    again = load(checked.save(tmp_path / "run.dsage"))
    np.testing.assert_array_equal(again.se_sampler, checked.se_sampler)
    assert again.sampler_check.others == ("Copula", "Forest")
    assert again.sampler_check.are_better == (False, True)
    pd.testing.assert_frame_equal(again.sampler_check.to_frame(), checked.sampler_check.to_frame())
    nothing = SamplerCheck.none(explanation.feature_names, "it was turned off")
    unchecked = replace(explanation, sampler_check=nothing)
    again = load(unchecked.save(tmp_path / "run.dsage"))
    assert again.se_sampler is None
    assert again.sampler_check.reason == "it was turned off"


def test_a_file_of_the_second_format_lacks_what_was_added_later(explanation, tmp_path):
    header, arrays = _files.read_arrays(explanation.save(tmp_path / "run.dsage"))
    header["format"] = 2
    del header["sampler_check"]
    choices = header["choices"]
    for section, name in (
        ("sampler", "msev"),
        ("sampler", "compared_with"),
        ("seconds", "check"),
        ("graph", "why"),
        ("evaluations", "n_sampler_check"),
    ):
        del choices[section][name]
    choices["sampler"]["decision"] = {
        "chosen": "Gaussian", "best": "Forest", "best_score": 0.4, "difference": 0.01, "se": 0.02,
    }  # fmt: skip
    _files.write_arrays(tmp_path / "old.dsage", header, arrays)
    old = load(tmp_path / "old.dsage")
    assert old.se_sampler is None
    assert old.choices.sampler.decision == Decision("Gaussian", "Forest", 0.4, 0.01, 0.02)
    assert old.choices.sampler.compared_with == ()
    pd.testing.assert_frame_equal(old.to_frame(), explanation.to_frame())
    # In a file of today the same would be damage.
    _files.write_arrays(tmp_path / "new.dsage", {**header, "format": 6}, arrays)
    with pytest.raises(ValueError, match="damaged"):
        load(tmp_path / "new.dsage")
    assert old.report(tmp_path / "report.html").exists()


def test_a_file_of_the_first_release_is_loaded():
    explanation = load(Path(__file__).with_name("explained_0.1.0.dsage"))
    assert explanation.target == "target"
    assert explanation.to_frame()["feature"].tolist()[:3] == ["bmi", "bp", "serum"]
    assert explanation.groups == {"serum": ("s1", "s2", "s3")}
    assert explanation.estimate.reason.kind is StopKind.OTHER
    assert "40320 orderings are done" in str(explanation.estimate.reason)
    assert explanation.estimate.terms[-1].kind in TermKind
    np.testing.assert_allclose(explanation.values.sum(), 2261.0, atol=1.0)
    choices = explanation.choices
    assert (choices.model.name, choices.loss.name) == ("RandomForestRegressor", "squared_error")
    assert choices.loss.source is LossSource.CHOSEN
    assert (choices.data.n_rows_train, choices.data.n_rows_evaluation) == (300, 142)
    assert choices.graph.source is GraphSource.LEARNED
    assert choices.graph.method == "auto"
    assert choices.graph.markov_blanket == ("sex", "bmi", "bp", "s3", "s4", "s5")
    assert (choices.sampler.name, choices.sampler.source) == (
        "GaussianCopula",
        SamplerSource.CHOSEN,
    )
    assert choices.estimate.stopping == "NOrderings(n=32)"
    assert choices.evaluations.n_surpluses == 322_560
    assert choices.seconds.total == pytest.approx(4.07, abs=0.01)
    assert "40320 orderings" in str(explanation.estimate.reason)
    assert explanation.estimate.df_rows == pytest.approx(141.0)


def test_a_file_of_the_first_release_can_be_shown_and_saved_again(tmp_path):
    explanation = load(Path(__file__).with_name("explained_0.1.0.dsage"))
    assert "squared_error, 142 evaluation rows" in repr(explanation)
    assert explanation.report(tmp_path / "report.html").stat().st_size > 10_000
    assert_same(explanation, load(explanation.save(tmp_path / "again.dsage")))


def test_indicators_of_missing_values_are_saved(explanation, tmp_path):
    names = [*explanation.graph.names, "alter is missing"]
    indicators = {"alter is missing": ["alter"]}
    graph = Graph(names, explanation.graph.edges, indicators=indicators)
    replace(explanation, graph=graph).save(tmp_path / "run.dsage")
    assert load(tmp_path / "run.dsage").graph == graph


def test_a_graph_without_indicators_can_be_read(explanation, tmp_path):
    explanation.save(tmp_path / "run.dsage")
    header, arrays = _files.read_arrays(tmp_path / "run.dsage")
    del header["graph"]["indicators"]
    _files.write_arrays(tmp_path / "earlier.dsage", header, arrays)
    assert load(tmp_path / "earlier.dsage").graph == explanation.graph
