import io
import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dsage import Graph
from dsage.estimate import SamplerCheck, StopKind, StopReason, TermEstimate, TermKind
from dsage.report import report_data
from dsage.report.network import MOST_NODES
from dsage.report.words import MINUS, Scale, count, listed, named, number, percent
from explanations import make_explanation, with_check
from report_cases import synthetic_explanation


@pytest.fixture(scope="module")
def explanation():
    return make_explanation(4)


def of_estimate(explanation, **changes):
    return replace(explanation, estimate=replace(explanation.estimate, **changes))


def topics(data):
    return [caution["about"] for caution in data["cautions"]]


def spaced(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_the_data_are_json_and_the_same_each_time(explanation):
    data = report_data(explanation)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert json.dumps(report_data(explanation)) == json.dumps(data)


def test_features_come_in_the_order_of_the_frame_with_all_of_its_numbers(explanation):
    data = report_data(explanation)
    frame = explanation.to_frame()
    assert [feature["name"] for feature in data["features"]] == list(frame["feature"])
    for feature, line in zip(data["features"], frame.to_dict("records"), strict=True):
        for key in ("value", "lower", "upper_total", "audit_difference", "share"):
            assert feature[key] == line[key]
        assert len(feature["cells"]) == len(data["columns"])
    read = pd.read_csv(io.StringIO(data["csv"]))
    pd.testing.assert_frame_equal(read, frame)


def test_the_headline_names_the_largest_value_and_its_share(explanation):
    first = explanation.to_frame().iloc[0]
    sentence = report_data(explanation)["headline"][0]
    assert sentence.startswith(f"{first['feature']} contributes most")
    assert f"{100 * first['share']:.0f} % of what the features explain" in spaced(sentence)
    assert "squared error" in sentence


def test_the_headline_says_when_the_lead_is_open_and_when_it_is_not():
    sure = synthetic_explanation(3, values=np.array([9.0, 1.0, 0.5]))
    assert not any("overlap" in sentence for sentence in report_data(sure)["headline"])
    close = of_estimate(sure, values=np.array([9.0, 8.99, 0.5]))
    told = " ".join(report_data(close)["headline"])
    assert "interval of feature_0 overlaps with that of feature_1" in told


def test_the_headline_does_not_praise_what_may_be_nothing():
    values = np.array([0.02, 0.01, 0.005])
    told = report_data(synthetic_explanation(3, values=values, se_rows=np.full(3, 1.0)))["headline"]
    assert "feature_0 is not significantly above zero" in told[-1]


def test_values_below_zero_get_no_share_and_no_winner():
    data = report_data(synthetic_explanation(3, values=np.array([-1.0, -2.0, -3.0])))
    assert "features raise the squared error by 6.00" in data["headline"][0]
    assert data["figures"][1]["figure"] == "6.00"
    assert data["figures"][1]["note"] == "higher squared error"
    meant = {each["term"]: each["text"] for each in data["meaning"]}
    assert f"sum to {MINUS}6.00" in meant["The sum"]
    assert "raise the squared error" in meant["The sum"]
    assert "meaningless" in meant["The share"]
    assert all(feature["share"] is None for feature in data["features"])
    assert {feature["words"]["share"] for feature in data["features"]} == {"none"}
    assert "negative" in topics(data)


def test_one_feature_is_said_to_be_the_only_one():
    data = report_data(make_explanation(1))
    assert data["headline"][0].endswith("It is the only feature.")
    assert "computing" not in topics(data)


def test_an_audit_that_matters_is_a_warning_for_d_sage_and_a_note_where_it_corrects(explanation):
    assert explanation.to_frame()["audit_matters"].any()
    corrected = report_data(explanation)
    (note,) = [each for each in corrected["cautions"] if each["about"] == "audit"]
    assert note["kind"] == "note"
    assert "corrected" in corrected["audit"]["sentences"][-1]
    skipping = report_data(of_estimate(explanation, estimand="d-sage"))
    warning = skipping["cautions"][0]
    assert (warning["about"], warning["kind"]) == ("audit", "warning")
    assert all(name in warning["text"] for name in explanation.feature_names)
    assert 'estimand="sage"' in warning["advice"]


def test_warnings_of_the_run_are_notes_each_once(explanation):
    data = report_data(replace(explanation, warnings=("One.", "Two.", "One.")))
    notes = [each for each in data["cautions"] if each["about"] == "run"]
    assert [(each["kind"], each["text"]) for each in notes] == [("note", "One."), ("note", "Two.")]


def test_verdicts_say_the_direction_and_fit_the_features():
    values, se = np.arange(6.0)[::-1], np.array([0.01, 0.01, 0.01, 1.0, 0.06, 0.0])
    changes = np.array([0.5, -0.5, 0.02, 0.1, 0.15, 0.0])
    audit = TermEstimate(TermKind.CORRECTION, changes, se, 50, 1, 30.0)
    data = report_data(synthetic_explanation(6, values=values, audit=audit))
    low, high, small, wide, likely, none = map(spaced, data["audit"]["verdicts"])
    assert low.startswith("Matters")
    assert "too low by 0.50 (10 % of the range)" in low
    assert "too high by 0.50" in high
    assert small.startswith("Small")
    assert wide.startswith("Undecided")
    assert "43 %" in wide
    assert likely.startswith("Undecided")
    assert "0.15 (3 % of the range)" in likely
    assert none.startswith("None")
    assert "undecided for feature_3 and feature_4" in data["audit"]["sentences"][-1]


def test_an_audit_that_cannot_tell_does_not_speak_for_the_model():
    values = np.array([3.0, 2.0, 1.0])
    wide = TermEstimate(TermKind.CORRECTION, np.zeros(3), np.full(3, 1.0), 50, 1, 30.0)
    data = report_data(synthetic_explanation(3, values=values, audit=wide))
    assert "audit" in topics(data)
    assert data["assumptions"][0]["status"] == "open"
    sure = TermEstimate(TermKind.CORRECTION, np.zeros(3), np.full(3, 0.001), 50, 1, 30.0)
    data = report_data(synthetic_explanation(3, values=values, audit=sure))
    assert data["assumptions"][0]["status"] == "for"
    assert topics(data) == []


def test_no_graph_and_no_audit_are_said_in_words():
    data = report_data(make_explanation(2, audited=False))
    assert data["graph"]["nodes"] == []
    assert "No graph was used" in data["graph"]["sentences"][0]
    assert "nothing to audit" in data["audit"]["sentences"][0]
    assert "plain SAGE" in data["savings"][0]
    assert not data["skips"]
    statuses = [each["status"] for each in data["assumptions"]]
    assert statuses[:3] == ["unneeded"] * 3
    skipped = report_data(synthetic_explanation(3, audit=None))
    assert "audit" in topics(skipped)
    assert skipped["audit"]["verdicts"] == []


def test_interrupts_wide_errors_and_few_rows_are_warned_of():
    quiet = synthetic_explanation(
        3, values=np.array([3.0, 2.0, 1.0]), audit=None, share_skipped=np.zeros(3)
    )
    assert report_data(quiet)["cautions"] == []
    interrupted = report_data(of_estimate(quiet, reason=StopReason(StopKind.INTERRUPTED)))
    assert topics(interrupted) == ["interrupt"]
    unsettled = report_data(of_estimate(quiet, se_orderings=np.full(3, 0.3)))
    assert topics(unsettled) == ["computing"]
    assert "15 % of the range" in spaced(unsettled["cautions"][0]["text"])
    few = report_data(of_estimate(quiet, se_rows=np.full(3, 0.5)))
    assert topics(few) == ["rows"]
    assert "200 evaluation rows" in few["cautions"][0]["text"]


def test_errors_that_are_not_known_are_null_and_said_in_words():
    unknown = np.full(3, math.nan)
    data = report_data(synthetic_explanation(3, se_rows=unknown, se_orderings=unknown))
    assert {"computing", "rows"} <= set(topics(data))
    assert data["features"][0]["lower_total"] is None
    assert data["features"][0]["words"]["interval"] == "unknown"


def test_errors_of_nearly_equal_values_are_held_against_the_largest():
    for values in (np.ones(3), np.array([1.0, 0.999, 0.998])):
        explanation = synthetic_explanation(3, values=values, se_rows=np.full(3, 0.2))
        data = report_data(of_estimate(explanation, se_orderings=np.full(3, 0.1)))
        assert "ties" in topics(data)
        told = spaced(" ".join(each["text"] for each in data["cautions"]))
        assert "is 10 % of the largest value" in told
        assert "up to 20 % of the largest value" in told
        assert spaced(data["figures"][-1]["figure"]) == "10 %"
        assert data["figures"][-1]["note"] == "at most, of the largest value"
    apart = report_data(synthetic_explanation(3, values=np.array([1.0, 0.9, 0.8])))
    assert "ties" not in topics(apart)


def test_values_that_are_all_zero_have_no_size_to_be_held_against():
    data = report_data(synthetic_explanation(3, values=np.zeros(3), se_rows=np.zeros(3)))
    (caution,) = [each for each in data["cautions"] if each["about"] == "computing"]
    assert "all values are zero" in caution["text"]
    assert "do not lower the squared error" in data["headline"][0]
    assert data["figures"][1]["note"] == "no lower squared error"


def test_shares_beyond_the_whole_are_explained_and_not_in_the_headline():
    trifle = report_data(synthetic_explanation(4, values=np.array([5.0, 1.0, 0.5, -0.001])))
    assert "77 % of what the features explain" in spaced(trifle["headline"][0])
    for values in ([5.0, 1.0, -1.0, -4.0], [5.0, 4.0, -0.5, -3.0]):
        mixed = report_data(synthetic_explanation(4, values=np.array(values)))
        assert mixed["headline"][0].endswith("lowers the squared error by 5.00 on average.")
        assert mixed["figures"][0]["note"] == ""
        assert not any("make up" in sentence for sentence in mixed["headline"])
    meant = {each["term"]: each["text"] for each in mixed["meaning"]}
    assert "not parts of a whole" in meant["The share"]
    assert "some are negative" in mixed["columns"][1]["hint"]
    worse = report_data(synthetic_explanation(3, values=np.array([1.0, -2.0, -3.0])))["headline"]
    assert "raise the squared error by 4.00" in worse[0]
    assert "feature_0 lowers it by 1.00" in worse[-1]
    plain = report_data(synthetic_explanation(3, values=np.array([3.0, 2.0, 1.0])))
    assert "negative" not in plain["columns"][1]["hint"]
    meant = {each["term"]: each["text"] for each in plain["meaning"]}
    assert "parts of a whole" not in meant["The share"]
    assert "over all orders" in meant["Near zero, negative"]


def test_one_feature_has_no_range_and_no_rivals():
    audit = TermEstimate(TermKind.CORRECTION, np.array([0.5]), np.array([0.01]), 50, 1, 30.0)
    changes = {"audit": audit, "se_rows": np.array([0.5]), "share_skipped": np.array([0.3])}
    explanation = synthetic_explanation(1, values=np.array([2.0]), with_graph=False, **changes)
    for each in (explanation, of_estimate(explanation, values=np.array([-2.0]), estimand="sage")):
        data = report_data(each)
        told = json.dumps([data[key] for key in ("headline", "figures", "cautions", "audit")])
        assert "range" not in told
        assert "similar" not in told
        assert "features" not in told
    assert "feature_0 raises the squared error by 2.00" in data["headline"][0]
    assert "different from zero" in " ".join(data["audit"]["sentences"])
    terms = [each["term"] for each in data["meaning"]]
    assert terms == ["The value of a feature", "The two intervals", "What it is not"]
    assert "orders" not in data["meaning"][0]["text"]
    assert "25 % of the value" in spaced(data["audit"]["verdicts"][0])


def test_nothing_skipped_is_no_support_for_model_and_graph():
    sure = TermEstimate(TermKind.CORRECTION, np.zeros(3), np.zeros(3), 50, 1, 30.0)
    values = np.array([3.0, 2.0, 1.0])
    explanation = synthetic_explanation(3, values=values, audit=sure, share_skipped=np.zeros(3))
    model, graph, hidden, sampler, rows = report_data(explanation)["assumptions"]
    assert [model["status"], graph["status"]] == ["unneeded"] * 2
    assert "nothing was skipped" in model["here"]
    assert [hidden["status"], sampler["status"], rows["status"]] == ["silent"] * 3
    assert "32 % better" in spaced(sampler["here"])


def test_the_orderings_are_those_of_the_surpluses_and_others_are_named():
    explanation = synthetic_explanation(3, values=np.array([3.0, 2.0, 1.0]), n_orderings=5000)
    told = " ".join(report_data(explanation)["savings"])
    assert "of 3,000 surpluses" in told
    assert " 1,000 orderings" in told
    assert "5,000" not in told
    longer = TermEstimate(TermKind.FIRST_LEVEL, np.zeros(3), np.zeros(3), 5000, 1, 30.0)
    explanation = of_estimate(explanation, terms=(*explanation.estimate.terms, longer))
    told = " ".join(report_data(explanation)["savings"])
    assert "moments, has 5,000 orderings." in told


def test_exact_results_with_huge_counts_are_said_by_their_size(explanation):
    n_all = math.factorial(200)
    levels = (TermEstimate(TermKind.SAMPLED, explanation.values, explanation.se, 10**60, 3),)
    exact = of_estimate(explanation, n_orderings=n_all, is_exact=True, terms=levels)
    told = " ".join(report_data(exact)["savings"])
    assert "10\N{SUPERSCRIPT SIX}\N{SUPERSCRIPT ZERO} orderings" in told
    assert "not a sample" in told


def test_groups_are_called_groups_and_carry_their_members():
    groups = {"first": ["feature 0", "feature 1"], "last": ["feature 2"]}
    data = report_data(make_explanation(3, groups=groups))
    assert data["noun"] == "group"
    members = {feature["name"]: feature["members"] for feature in data["features"]}
    assert members == {name: list(held) for name, held in groups.items()}
    player = {node["name"]: node["feature"] for node in data["graph"]["nodes"]}
    assert player["feature 1"] == "first"
    assert player["target"] is None
    assert any(each["term"] == "Groups" for each in data["meaning"])


def test_the_graph_has_every_edge_with_its_strength_and_the_blanket_marked(explanation):
    graph = report_data(explanation)["graph"]
    roles = {node["name"]: node["role"] for node in graph["nodes"]}
    assert roles == {"target": "target", "feature 3": "blanket"} | {
        f"feature {number}": "other" for number in range(3)
    }
    assert {(edge["from"], edge["to"]) for edge in graph["edges"]} == set(explanation.graph.edges)
    strength = explanation.edge_strength.set_index(["from", "to"])["share_either"]
    for edge in graph["edges"]:
        assert edge["strength"] == pytest.approx(strength[edge["from"], edge["to"]])
    assert "The Markov blanket of target is feature 3." in " ".join(graph["sentences"])


def test_an_edge_only_found_reversed_is_as_strong_as_either_direction(explanation):
    reversed_only = pd.DataFrame(
        {"from": ["target"], "to": ["feature 3"], "share": [0.8], "share_either": [0.8]}
    )
    data = report_data(replace(explanation, edge_strength=reversed_only))
    (edge,) = [edge for edge in data["graph"]["edges"] if edge["to"] == "target"]
    assert edge["strength"] == 0.8
    assert "In 0 % of the resamples, 80 % in either direction" in spaced(edge["words"][0])


def test_hidden_causes_and_cycles_are_drawn(explanation):
    names = [*explanation.feature_names, "target"]
    cycle = [("feature 0", "feature 1"), ("feature 1", "feature 0"), ("feature 1", "target")]
    graph = Graph(names, cycle, [("feature 2", "target")])
    data = report_data(replace(explanation, graph=graph, edge_strength=None))
    (hidden,) = [edge for edge in data["graph"]["edges"] if edge["both"]]
    assert hidden["words"] == ["An unobserved common cause"]
    assert not data["graph"]["has_strength"]
    assert "1 bidirected edge" in data["assumptions"][2]["here"]


def test_indicators_of_missing_values_belong_to_their_features(explanation):
    names = ("no 1", "no 2", *explanation.graph.names)
    indicators = {"no 1": ["feature 1"], "no 2": ["feature 2"]}
    graph = Graph(names, [*explanation.graph.edges, ("no 1", "target")], indicators=indicators)
    data = report_data(replace(explanation, graph=graph, edge_strength=None))["graph"]
    nodes = {node["name"]: (node["feature"], node["role"]) for node in data["nodes"]}
    assert nodes["no 1"] == ("feature 1", "blanket")
    assert nodes["no 2"] == ("feature 2", "other")
    assert "2 nodes tell whether values are missing." in data["sentences"][0]
    assert "blanket of target is no 1 and feature 3." in " ".join(data["sentences"])


def test_a_large_graph_is_cut_to_what_is_near_the_target_and_that_is_said():
    explanation = synthetic_explanation(100)
    graph = report_data(explanation)["graph"]
    shown = {node["name"] for node in graph["nodes"]}
    assert shown >= {"target", *explanation.graph.markov_blanket("target")}
    assert len(shown) <= MOST_NODES
    assert any(f"{len(shown)} of 101 nodes" in sentence for sentence in graph["sentences"])
    star = Graph(explanation.graph.names, [(name, "target") for name in explanation.feature_names])
    whole = report_data(replace(explanation, graph=star))["graph"]
    assert len(whole["nodes"]) == 101


def test_weak_edges_speak_against_the_graph(explanation):
    weak = explanation.edge_strength.assign(share=0.2, share_either=0.3)
    here = report_data(replace(explanation, edge_strength=weak))["assumptions"][1]["here"]
    assert "fewer than half of the resamples" in here
    assert "feature 3 \N{RIGHTWARDS ARROW} target" in here


def test_the_course_ends_with_the_values_and_skips_looks_without_evaluations(explanation):
    history = explanation.estimate.history
    n_evaluated = history.n_evaluated.copy()
    n_evaluated[1] = n_evaluated[0]
    again = of_estimate(explanation, history=replace(history, n_evaluated=n_evaluated))
    data = report_data(again)
    course = data["convergence"]
    assert course["at"] == np.unique(n_evaluated).tolist()
    for line, feature in zip(course["lines"], data["features"], strict=True):
        assert line["values"][-1] == feature["value"]
        assert len(line["values"]) == len(course["at"]) == len(line["words"])


def test_a_single_look_is_no_course(explanation):
    history = explanation.estimate.history
    last = replace(history, **{name: looks[-1:] for name, looks in vars(history).items()})
    course = report_data(of_estimate(explanation, history=last))["convergence"]
    assert course["at"] == []
    assert "once" in course["sentences"][0]


def test_the_sampler_is_held_against_marginal_draws_and_failures_are_shown():
    explanation = synthetic_explanation(3)
    data = report_data(explanation)["sampler"]
    assert any("32 % better" in spaced(sentence) for sentence in data["sentences"])
    assert [line["chosen"] for line in data["lines"]] == [True, False, False]
    assert data["lines"][1]["cells"][-1] == "ValueError: it failed"
    worse = explanation.sampler_scores.assign(energy_score=[0.7, 0.9, 0.6])
    told = report_data(replace(explanation, sampler_scores=worse))
    assert told["assumptions"][3]["status"] == "against"
    assert any("no better than draws" in each for each in told["sampler"]["sentences"])
    unscored = report_data(replace(explanation, sampler_scores=None))
    assert "No sampler was scored" in unscored["sampler"]["sentences"][-1]
    assert unscored["assumptions"][3]["status"] == "silent"


def test_every_choice_is_listed(explanation):
    listed_choices = {
        (part["section"], line["name"]): line["value"]
        for part in report_data(explanation)["choices"]
        for line in part["lines"]
    }
    n_choices = sum(len(section) for section in explanation.choices.listing().values())
    assert len(listed_choices) == n_choices
    assert listed_choices["data", "number of rows train"] == "240"
    assert listed_choices["estimate", "number of replicates"] == "2"


def test_columns_are_listed_with_their_kind_and_what_is_missing(explanation):
    table = report_data(explanation)["table"]
    assert table["lines"][0] == ["feature 0", "number", "none"]
    assert table["sentences"][-1] == "No values are missing."
    shares = {"feature 0": 0.0, "feature 1": 0.125, "feature 2": 0.5, "feature 3": 0.0}
    data = replace(explanation.choices.data, share_missing=shares)
    gaps = replace(explanation, choices=replace(explanation.choices, data=data))
    table = report_data(gaps)["table"]
    assert [spaced(line[2]) for line in table["lines"]] == ["none", "12 %", "50 %", "none"]
    assert spaced(table["sentences"][1]).startswith(
        "feature 2 and feature 1 have missing values, feature 2 in 50 % of the rows."
    )
    one = replace(data, share_missing={"feature 1": 0.125})
    single = replace(explanation, choices=replace(explanation.choices, data=one))
    assert spaced(report_data(single)["table"]["sentences"][1]).startswith(
        "feature 1 has missing values, in 12 % of the rows."
    )
    earlier = replace(data, kinds={}, share_missing={})
    old = replace(explanation, choices=replace(explanation.choices, data=earlier))
    assert report_data(old)["table"]["lines"] == []


def test_numbers_are_written_for_readers():
    assert number(-0.5) == MINUS + "0.500"
    assert number(2.5e9).startswith("2.50")
    assert Scale([1e-9])(1e-9).endswith("\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT NINE}")
    assert Scale([123.4, 0.01])(-0.001) == "0.0"
    assert Scale([1.0]).interval(-math.inf, 1.0) == "unknown"
    assert spaced(percent(-0.125)) == MINUS + "12 %"
    assert count(3.0) == "3"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert named("age") == "age"
    assert named("دخل").startswith("\N{FIRST STRONG ISOLATE}")


def errors_of(data):
    return {each["name"]: each for each in data["errors"]}


def test_the_four_errors_are_told_in_plain_words(explanation):
    data = report_data(with_check(explanation, 0.05))
    found = errors_of(data)
    assert list(found) == ["Orderings and draws", "Rows", "Sampler", "Graph"]
    assert "what Copula would change" in found["Sampler"]["what"]
    assert spaced(found["Sampler"]["largest"]).startswith("0.050 (")
    assert "of the range of the values" in found["Sampler"]["largest"]
    assert "corrected" in found["Graph"]["what"]
    labels = [column["label"] for column in data["columns"]]
    assert [label for label in labels if label.startswith("Error")] == [
        "Error, computing",
        "Error, rows",
        "Error, sampler",
        "Error, graph",
    ]
    at = labels.index("Error, sampler")
    assert {feature["cells"][at]["text"] for feature in data["features"]} == {"0.0500"}


def test_errors_that_are_not_known_are_said_to_be_so():
    plain = make_explanation(2, audited=False)
    found = errors_of(report_data(plain))
    assert found["Sampler"]["largest"] == "unknown"
    assert found["Graph"]["largest"] == "none"
    off = SamplerCheck.none(plain.feature_names, "it was turned off")
    data = report_data(replace(plain, sampler_check=off))
    assert "not estimated: it was turned off." in errors_of(data)["Sampler"]["what"]
    assert "was not estimated: it was turned off." in " ".join(data["sampler"]["sentences"])
    labels = [column["label"] for column in data["columns"]]
    cells = data["features"][0]["cells"]
    assert cells[labels.index("Error, graph")]["text"] == "none"
    assert cells[labels.index("Error, sampler")]["text"] == "unknown"


def test_values_that_depend_on_the_sampler_are_a_warning_and_speak_against_it(explanation):
    data = report_data(with_check(explanation, [5.0, 0.0, 0.0, 0.0], are_better=[True]))
    (warning,) = [each for each in data["cautions"] if each["about"] == "sampler"]
    assert warning["kind"] == "warning"
    assert warning["text"].startswith("Copula scores clearly better than Gaussian")
    assert "feature 0" in warning["text"]
    fits = {each["name"]: each for each in data["assumptions"]}["The sampler fits"]
    assert fits["status"] == "against"
    assert "value of feature 0 would change" in " ".join(data["sampler"]["sentences"])
    tied = report_data(with_check(explanation, [5.0, 0.0, 0.0, 0.0]))
    (warning,) = [each for each in tied["cautions"] if each["about"] == "sampler"]
    assert re.search("Copula .* from Gaussian", warning["text"])


def test_a_sampler_that_others_agree_with_is_tested(explanation):
    data = report_data(with_check(explanation, 0.0))
    assert "sampler" not in topics(data)
    fits = {each["name"]: each for each in data["assumptions"]}["The sampler fits"]
    assert fits["status"] == "for"
    assert "Copula would change no value" in fits["here"]


def test_scores_in_the_terms_of_the_model_are_shown_where_there_are_any(explanation):
    data = report_data(explanation)
    assert "MSEv" not in data["sampler"]["columns"]
    scores = explanation.sampler_scores.assign(
        msev=[0.2, 0.25, 0.5], msev_difference=[0.0, 0.05, 0.3], msev_se=[0.0, 0.01, 0.02],
        verdict=["used", "clearly worse in MSEv", "for reference"],
    )  # fmt: skip
    shown = report_data(replace(explanation, sampler_scores=scores))["sampler"]
    assert shown["columns"][1:4] == ["MSEv", "MSEv above the best", "MSEv error"]
    assert [line["cells"][1] for line in shown["lines"]] == ["0.2000", "0.2500", "0.5000"]
    assert [line["cells"][-1] for line in shown["lines"]] == [
        "",
        "clearly worse in MSEv",
        "for reference",
    ]
    assert any(sentence.startswith("The MSEv is") for sentence in shown["sentences"])


def test_a_run_with_a_graph_tests_all_but_what_no_run_can_test(explanation):
    data = report_data(with_check(explanation, 0.0))
    silent = [each["name"] for each in data["assumptions"] if each["status"] == "silent"]
    assert silent == [
        "No hidden common causes (causal sufficiency)",
        "The rows represent the population",
    ]
    assert len({each["here"] for each in data["assumptions"]}) == 5


def test_what_is_zero_by_the_graph_has_no_interval_and_no_test():
    skipped = np.array([0.0, 0.5, 1.0])
    explanation = synthetic_explanation(
        3, values=np.array([3.0, 2.0, 0.0]), share_skipped=skipped, estimand="d-sage"
    )
    data = report_data(explanation)
    labels = [each["label"] for each in data["columns"]]
    for feature, given in zip(data["features"], skipped == 1.0, strict=True):
        cells = {label: cell["text"] for label, cell in zip(labels, feature["cells"], strict=True)}
        told = [label for label, text in cells.items() if text == "by the graph"]
        assert len(told) == (3 if given else 0)
