"""Summarize which of the paper's claims hold here, from the tables alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pandas as pd

from experiments import graphs, models
from experiments.convergence_figures import ERRORS, at_the_end
from experiments.drug_figures import AUTHORS, GRAPHS, OURS, RUNS, education_change
from experiments.independence_figures import beside
from experiments.independence_tables import LEVELS
from experiments.prose import duration, markdown, percent
from experiments.runtime_figures import ABOUT, savings
from experiments.store import Store
from experiments.structure import F1_AT_DEGREE_2, ROWS_FROM, VIRTUALLY_NONE
from experiments.structure_tables import TABLE as STRUCTURE
from experiments.values_figures import by_case


class Claim(NamedTuple):
    """A claim of the paper, our result, and whether the claim holds."""

    paper: str
    here: str
    verdict: str


def summary(store: Store, done: list[str]) -> str:
    """Tabulate the claims of the completed parts."""
    claims = _claims(store, done)
    return markdown(["claim of the paper", "our result", "holds?"], claims, numbers=False)


def overview(store: Store, done: list[str]) -> str:
    """Summarize the page: the question, the approach, and which claims hold."""
    claims = [claim for claim in _claims(store, done) if claim.verdict != "-"]
    holds = [claim for claim in claims if claim.verdict.startswith("yes")]
    partly = [claim for claim in claims if claim.verdict in ("mostly", "in part")]
    fails = [claim for claim in claims if claim.verdict == "no"]
    sections = [
        (
            "**The paper** learns a causal graph once and skips every surplus of a feature that "
            "the graph separates from the target given the coalition. It claims that the graph "
            "can be learned well, that the time saved is about the share of skipped surpluses, "
            "and that the values hardly change."
        ),
        (
            f"**Here**, every experiment is repeated with this library. Of {len(claims)} claims, "
            f"{len(holds)} hold, {len(partly)} hold mostly or in part, and {len(fails)} "
            f"{'does' if len(fails) == 1 else 'do'} not hold. The table below gives the numbers."
        ),
        _list_claims("What holds", holds),
        _list_claims("What holds mostly or in part", partly),
        _list_claims("What does not hold", fails),
        (
            "**How to read the differences.** The authors time each surplus separately, with both "
            "of its risks. In a loop where neighboring surpluses share a risk, plain SAGE is "
            "already faster, and skipping saves less. The larger gain comes from a cheap first "
            "level, which is not part of the paper; see the last section. On the drug data, the "
            "result depends on how the graph is learned: from all rows and the original classes, "
            "as the authors did, or from the training rows and the target of the model."
        ),
    ]
    return "\n\n".join(section for section in sections if section)


def _claims(store: Store, done: list[str]) -> list[Claim]:
    return [claim for name in _CLAIMS if name in done for claim in _CLAIMS[name](store)]


def _list_claims(title: str, claims: list[Claim]) -> str:
    if not claims:
        return ""
    return "\n".join([f"**{title}**", "", *(f"- {claim.paper}" for claim in claims)])


def verdict(n_good: int, n_all: int) -> str:
    """Return whether a claim that holds in `n_good` of `n_all` cases holds.

    Examples
    --------
    >>> verdict(12, 12), verdict(9, 12), verdict(4, 12), verdict(2, 12)
    ('yes', 'mostly', 'in part', 'no')
    """
    if n_good == n_all:
        return "yes"
    return "mostly" if n_good > n_all / 2 else "in part" if n_good >= n_all / 4 else "no"


def _graphs(store: Store) -> Iterator[Claim]:
    table = graphs.beside(store)
    same = table["agrees"] & (table["target_degree"] == table["paper_degree"])
    gap = (table["share"] - table["paper_share"]).abs().max()
    yield Claim(
        "degree of the target and share of separations in twelve graphs",
        f"both agree in {same.sum()} of {len(table)}; the shares differ by at most {gap:.4f}",
        verdict(same.sum(), len(table)),
    )


def _structure(store: Store) -> Iterator[Claim]:
    table = store.read(STRUCTURE)
    claimed = table[(table["average_degree"] == 2) & (table["n_rows"] >= ROWS_FROM)]
    good = (claimed["f1"] > F1_AT_DEGREE_2).groupby(claimed["method"]).agg(["sum", "size"])
    if not claimed.empty:
        details = {way: f"{good.loc[way, 'sum']} of {good.loc[way, 'size']}" for way in good.index}
        yield Claim(
            f"F1 of separations > {F1_AT_DEGREE_2} at degree 2 and {ROWS_FROM:,} rows or more",
            f"with TABU in {details['tabu']} runs, with our default in {details['default']}",
            verdict(good.loc["tabu", "sum"], good.loc["tabu", "size"]),
        )
    theirs = table[table["method"] != "default"]
    few = theirs["false_discovery_rate"] <= VIRTUALLY_NONE
    yield Claim(
        "virtually no false discoveries",
        f"{percent(theirs['false_discovery_rate'].mean())} on average; more than "
        f"{percent(VIRTUALLY_NONE)} in {(~few).sum()} of {len(theirs)} runs, "
        f"{(~few & (theirs['n_rows'] >= ROWS_FROM)).sum()} of them with {ROWS_FROM:,} or more rows",
        verdict(few.sum(), len(theirs)),
    )
    f1 = table.pivot_table(index=["graph", "n_rows", "run"], columns="method", values="f1")
    as_good = f1["tabu"] >= f1["hc"] - 1e-9
    yield Claim(
        "TABU is at least as good as HC",
        f"in {as_good.sum()} of {len(f1)} runs; mean F1 {f1['tabu'].mean():.3f} against "
        f"{f1['hc'].mean():.3f} (our default: {f1['default'].mean():.3f})",
        verdict(as_good.sum(), len(f1)),
    )


def _models(store: Store) -> Iterator[Claim]:
    table = models.beside(store)
    near = table["deviation"].abs() <= 3
    yield Claim(
        "errors of the linear model and the forest",
        f"within three standard errors in {near.sum()} of {len(table)} cases",
        verdict(near.sum(), len(table)),
    )


def _runtime(store: Store) -> Iterator[Claim]:
    table = savings(store)
    ways = {
        "one surplus at a time, as the authors measure it": table["saving_alone"] - table["share"],
        "along whole orderings": table["saving"] - table["share"],
    }
    for way, gap in ways.items():
        near = gap.abs() <= ABOUT
        yield Claim(
            f"the time saved is about the share of skipped surpluses ({way})",
            f"within {100 * ABOUT:.0f} points in {near.sum()} of {len(table)} cases",
            verdict(near.sum(), len(table)),
        )


def _values(store: Store) -> Iterator[Claim]:
    table = by_case(store).pivot_table(index="graph", columns="model", values="orders")
    far = table["lm"] >= 2.5
    yield Claim(
        "linear model: differences between d-SAGE and SAGE are about three orders of magnitude "
        "smaller than the values",
        f"{table['lm'].median():.1f} orders in the median graph; at least 2.5 in {far.sum()} of "
        f"{len(table)}",
        verdict(far.sum(), len(table)),
    )
    larger = table["rf"] < table["lm"]
    yield Claim(
        "forest: somewhat larger differences",
        f"{table['rf'].median():.1f} orders in the median graph; larger differences in "
        f"{larger.sum()} of {len(table)}",
        verdict(larger.sum(), len(table)),
    )


def _convergence(store: Store) -> Iterator[Claim]:
    end = at_the_end(store.read(ERRORS))
    faster = end["SAGE: smallest"] > 1.05 * end["d-SAGE: smallest"]
    yield Claim(
        "d-SAGE's small values converge faster",
        f"their errors are smaller by at least 5 % in {faster.sum()} of {len(end)} cases",
        verdict(faster.sum(), len(end)),
    )


def _drug(store: Store) -> Iterator[Claim]:
    found = store.read(GRAPHS)
    first = found[found["split"] == 0].set_index("setting")
    changes = {setting: education_change(store, setting) for setting in (AUTHORS, OURS)}
    took = store.read(RUNS).drop_duplicates(["setting", "run"])
    took = took[took["setting"] == AUTHORS]["seconds"]
    share = first["share_skipped"]
    ours = found[found["setting"] == OURS]
    splits, never = ours["share_skipped"], int((ours["share_skipped_education"] == 0).sum())
    yield Claim(
        "drug data: 38 % of the surpluses can be skipped",
        f"{percent(share[AUTHORS])} with a graph learned as the authors did; "
        f"{percent(share[OURS])} ({percent(splits.min())} to {percent(splits.max())} over "
        f"{len(splits)} splits) with a graph learned from the training rows and the model's target",
        verdict(int(abs(share[AUTHORS] - 0.38) <= 0.01), 1),
    )
    yield Claim(
        "drug data: d-SAGE reduces Education's value by about a third",
        f"{percent(changes[AUTHORS])} with a graph learned as the authors did; "
        f"{percent(changes[OURS])} with the other graph (Education is never skipped in {never} "
        f"of {len(splits)} splits)",
        verdict(int(abs(changes[AUTHORS] + 1 / 3) <= 0.1), 1),
    )
    yield Claim(
        "drug data: five runs take 12 h 14 min, the graph 0.035 s",
        f"{len(took)} runs with fewer orderings take {duration(took.sum())}, the graph "
        f"{duration(first.loc[AUTHORS, 'seconds_graph'])}",
        "-",
    )


def _independence(store: Store) -> Iterator[Claim]:
    table = beside(store)
    whole = table["before graph: tabu"] + table["seconds graph: tabu"]
    slower = {
        name: table[column].dropna() > whole[table[column].dropna().index]
        for name, column in {"pingouin": "seconds pingouin", "ours": "seconds test"}.items()
        if column in table
    }
    counts = {name: f"{found.sum()} of {len(found)}" for name, found in slower.items()}
    if "pingouin" in slower:
        yield Claim(
            "tests of partial correlation take longer than learning and querying the graph",
            f"with pingouin in {counts['pingouin']} graphs, with our tests in {counts['ours']}",
            verdict(slower["pingouin"].sum(), len(slower["pingouin"])) + ", with pingouin",
        )
    test, tabu = table["accuracy test: 0.05"], table["accuracy graph: tabu"]
    as_good: pd.Series = test >= tabu
    best = max(int((table[f"accuracy test: {level}"] >= tabu).sum()) for level in LEVELS)
    printed = table["paper accuracy_partial_correlation"] >= table["paper accuracy_d_separation"]
    yield Claim(
        f"tests are at least as accurate as TABU's graph ({printed.sum()} of {len(table)} graphs)",
        f"with the same rows in {as_good.sum()} of {len(table)} graphs at level {LEVELS[0]}, in "
        f"{best} at the best of three levels; the paper's tests seem to use 1,000,000 rows",
        verdict(best, len(table)),
    )


_CLAIMS: dict[str, Callable[[Store], Iterator[Claim]]] = {
    "graphs": _graphs,
    "structure": _structure,
    "models": _models,
    "runtime": _runtime,
    "values": _values,
    "convergence": _convergence,
    "drug": _drug,
    "independence": _independence,
}
