"""Reproduce the paper's section 5.3: which features predict the use of nicotine."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from dsage.datasets import DRUG_CATEGORICAL, DRUG_FEATURES, drug_consumption
from dsage.estimate import Estimate, NOrderings, enumerate_boundaries
from dsage.games import LossGame
from dsage.graphs import Oracle
from dsage.samplers import Sequential
from experiments.drug_figures import (
    AUTHORS,
    GRAPHS,
    MISSING,
    MODEL,
    OURS,
    RUNS,
    SETTINGS,
    VALUES,
    WAYS,
    describe,
    draw,
)
from experiments.part import Part
from experiments.problem import (
    ALGORITHM_1,
    Search,
    round_digits,
    run_quietly,
    time_search,
    uniform_orderings,
)
from experiments.store import Line, Store, seed_of

TARGET = "Nicotine"
_USERS = ("CL4", "CL5", "CL6")
# Keep the models of all coalitions.
_MOST_MODELS = 2 ** len(DRUG_FEATURES)
# More orderings than can be sampled: only an average over all of them reaches this number.
_ALL = 10**15


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment.

    Attributes
    ----------
    n_runs, n_orderings : int
        Number of runs, and orderings per run.
    n_rows : int or None
        Number of test rows, or None for all.
    n_draws : int
        Draws per row and coalition.
    n_splits : int
        Number of splits of the rows for which a graph is learned.
    exact : sequence of str
        Values that are also averaged over all orderings.
    """

    n_runs: int = 5
    n_orderings: int = 100
    n_rows: int | None = None
    n_draws: int = 10
    n_splits: int = 20
    exact: Sequence[str] = tuple(WAYS)


class Split:
    """A split into 70 % training and 30 % test rows, with model, graph and sampler.

    Parameters
    ----------
    rows : pandas.DataFrame
        The data.
    number : int
        Number of the split.
    setting : str
        One of `SETTINGS`: how classes are encoded and which data the graph is learned from.
    """

    def __init__(self, rows: pd.DataFrame, number: int, setting: str) -> None:
        self.seed = seed_of("drug", "split", number) % 2**31
        self.setting = setting
        X = rows[list(DRUG_FEATURES)].copy()
        for name in DRUG_CATEGORICAL:
            classes = [f"{value:.5f}" for value in sorted(X[name].unique())]
            X[name] = pd.Categorical(X[name].map("{:.5f}".format), categories=classes)
        self._all = X.assign(**{TARGET: rows[TARGET].astype("category")})
        y = rows[TARGET].isin(_USERS).astype(int)
        self.X_train, self.X, self.y_train, self.y = train_test_split(
            X, y, test_size=0.3, random_state=self.seed
        )

    @cached_property
    def model(self) -> Pipeline:
        """Logistic regression on class codes (the authors) or one column per class (ours)."""
        if self.setting == AUTHORS:
            classes = [self.X_train[name].cat.categories for name in DRUG_CATEGORICAL]
            encoder: Any = OrdinalEncoder(categories=classes)
            numbers: Any = "passthrough"
        else:
            encoder, numbers = OneHotEncoder(handle_unknown="ignore"), StandardScaler()
        columns = make_column_transformer((encoder, list(DRUG_CATEGORICAL)), remainder=numbers)
        model = make_pipeline(columns, LogisticRegression(max_iter=1_000))
        return model.fit(self.X_train, self.y_train)

    @cached_property
    def search(self) -> Search:
        """Graph learned by TABU with the conditional-Gaussian BIC.

        The authors learn it from all rows and the seven original classes of the target; we use
        the training rows and the two classes that the model predicts.
        """
        if self.setting == AUTHORS:
            rows = self._all
        else:
            target = self.y_train.astype(str).astype("category")
            rows = self.X_train.assign(**{TARGET: target})
        return time_search(rows)

    def sampler(self) -> Sequential:
        """Return a sequential sampler, which fits its regressions on demand.

        Each run needs a new sampler without fitted regressions, so that times are comparable.
        """
        return Sequential(random_state=self.seed, max_models=_MOST_MODELS).fit(self.X_train)

    @property
    def oracle(self) -> Oracle:
        """Separation from the target in the learned graph."""
        return self.search.graph.oracle(TARGET, features=list(DRUG_FEATURES))

    def game(self, sizes: Sizes, seed: int) -> LossGame:
        """Return the game with the cross entropy as loss."""
        X, y = self.X[: sizes.n_rows], self.y[: sizes.n_rows]
        return LossGame(
            self.model,
            self.sampler(),
            X,
            y,
            loss="cross_entropy",
            n_draws=sizes.n_draws,
            random_state=seed,
        )


def run(store: Store, sizes: Sizes) -> None:
    """Compute the tables, or warn if the data are not available."""
    try:
        rows = drug_consumption()
    except (OSError, ValueError) as error:
        warnings.warn(str(error), stacklevel=2)
        return
    for setting in SETTINGS:
        _run_setting(store, sizes, rows, setting)


def _run_setting(store: Store, sizes: Sizes, rows: pd.DataFrame, setting: str) -> None:
    split = Split(rows, 0, setting)
    key = {"setting": setting}
    store.unit(MODEL, key, partial(_model, split), seed=split.seed)
    # The authors' graph does not depend on the split.
    for number in range(sizes.n_splits if setting == OURS else 1):
        other = Split(rows, number, setting)
        store.unit(GRAPHS, key | {"split": number}, partial(_graph, other), seed=other.seed)
    for number in range(sizes.n_runs):
        seed = seed_of("drug", number)
        work = partial(_run, split, sizes, seed)
        store.unit(RUNS, key | {"run": number}, work, seed=seed)
    seed = seed_of("drug", "exact")
    for way in sizes.exact:
        work = partial(_exact, split, sizes, way, seed)
        store.unit(VALUES, key | {"way": way}, work, seed=seed)


def _model(split: Split) -> list[Line]:
    predicted = split.model.predict_proba(split.X)[:, 1]
    share = float(split.y_train.mean())
    return [
        {
            "n_train": len(split.y_train),
            "n_test": len(split.y),
            "share_of_users": float(split.y.mean()),
            "accuracy": accuracy_score(split.y, predicted > 0.5),
            "cross_entropy": log_loss(split.y, predicted),
            "cross_entropy_of_share": log_loss(split.y, np.full(len(split.y), share)),
        }
    ]


def _graph(split: Split) -> list[Line]:
    graph = split.search.graph
    # Exact shares over all orderings.
    skipped = enumerate_boundaries(split.oracle).skipped
    shares = dict(zip(DRUG_FEATURES, skipped, strict=True))
    return [
        {
            "seconds_graph": split.search.seconds,
            "n_edges": len(graph.edges),
            "neighbours": " ".join((*graph.parents(TARGET), *graph.children(TARGET))),
            "blanket": " ".join(graph.markov_blanket(TARGET)),
            "share_skipped": float(np.mean(skipped)),
            "share_skipped_education": float(shares["Education"]),
        }
    ]


def _run(split: Split, sizes: Sizes, seed: int) -> list[Line]:
    """Return d-SAGE by Algorithm 1 and SAGE, along the same orderings."""
    game = split.game(sizes, seed)
    start = time.perf_counter()
    estimate = run_quietly(
        game,
        oracle=split.oracle,
        orderings=uniform_orderings(len(DRUG_FEATURES), sizes.n_orderings, seed),
        random_state=seed,
        **ALGORITHM_1,
    )
    took = time.perf_counter() - start
    if estimate.audit is None:
        raise RuntimeError("the estimate has no audit")
    return [
        {
            "feature": feature,
            "n_orderings": sizes.n_orderings,
            "n_rows": game.n_rows,
            "dsage": round_digits(value),
            "sage": round_digits(value + more),
            "share_skipped": round_digits(skipped),
            "seconds": took,
        }
        for feature, value, more, skipped in zip(
            DRUG_FEATURES,
            estimate.values,
            estimate.audit.values,
            estimate.share_skipped,
            strict=True,
        )
    ]


def _exact(split: Split, sizes: Sizes, way: str, seed: int) -> list[Line]:
    """Return values over all orderings, whose only errors are those of draws and rows."""
    start = time.perf_counter()
    game = split.game(sizes, seed)
    options = {} if way == "SAGE" else {"oracle": split.oracle, "semantics": WAYS[way]}
    estimate: Estimate = run_quietly(
        game,
        exact="always",
        first_level="none",
        audit=False,
        # A single shard, so that each model of the sampler is fitted once.
        rows_per_ordering=game.n_rows,
        stopping=NOrderings(_ALL),
        random_state=seed,
        **options,
    )
    took = time.perf_counter() - start
    frame = estimate.to_frame().set_index("feature")
    return [
        {
            "feature": feature,
            "value": round_digits(line["value"]),
            "se": round_digits(line["se"], 3),
            "lower": round_digits(line["lower"]),
            "upper": round_digits(line["upper"]),
            "se_rows": round_digits(line["se_rows"], 3),
            "share_skipped": round_digits(line["share_skipped"]),
            "n_coalitions": estimate.n_evaluated // game.n_rows,
            "is_exact": estimate.is_exact,
            "seconds": took,
        }
        for feature, line in frame.iterrows()
    ]


DRUG = Part(
    name="drug",
    title="Drug consumption: who uses nicotine? (Section 5.3)",
    run=run,
    quick=Sizes(n_orderings=8, n_rows=150, n_splits=5, exact=("d-SAGE, boundary",)),
    full=Sizes(),
    draw=draw,
    describe=describe,
    missing=MISSING,
)
