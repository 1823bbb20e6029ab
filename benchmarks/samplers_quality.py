"""How near samplers come to the true conditional distribution of mixed data, and what they cost.

Run: python -m benchmarks.samplers_quality
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from benchmarks.table import markdown, publish
from dsage.samplers.base import Sampler
from dsage.samplers.choose import choose_sampler
from dsage.samplers.clustered import ClusteredGaussian
from dsage.samplers.evaluation import Evaluation, evaluate
from dsage.samplers.forest import Forest
from dsage.samplers.marginal import Marginal
from dsage.samplers.neighbors import Neighbors
from dsage.samplers.sequential import Sequential

N_ROWS = (300, 1_000, 3_000, 10_000)
N_HOLDOUT = 500
N_COALITIONS = 24


def with_forests() -> Sequential:
    """Return the sequential sampler with random forests as its models."""
    return Sequential(
        classifier=RandomForestClassifier(50, min_samples_leaf=10),
        regressor=RandomForestRegressor(50, min_samples_leaf=10),
        random_state=0,
    )


SAMPLERS: dict[str, tuple[Callable[[], Sampler], int]] = {
    "Marginal": (Marginal, N_ROWS[-1]),
    "Sequential, linear": (lambda: Sequential(random_state=0), N_ROWS[-1]),
    "Sequential, forests": (with_forests, N_ROWS[2]),
    "Neighbors": (Neighbors, N_ROWS[-1]),
    "Forest": (lambda: Forest(random_state=0), N_ROWS[-1]),
}
"""By name: how to make it, and the most rows that it is given (forests take their time)."""


def truths() -> dict[str, ClusteredGaussian]:
    """Return two models of mixed data: one where the sequence is linear exactly, and one not."""
    model = ClusteredGaussian.random(3, 4, random_state=3)
    shared = np.repeat(model.covariances[:1], 3, axis=0)
    return {
        "the same covariance in all clusters": ClusteredGaussian(
            model.weights, model.means, shared, model.child
        ),
        "covariances differ by cluster": model,
    }


def measured(truth: ClusteredGaussian) -> tuple[list[list[str]], list[list[str]], list[list[str]]]:
    """Return lines of scores above the truth's: by rows, by size at the most rows; calibration."""
    holdout = truth.sample(N_HOLDOUT, random_state=99)
    best = evaluate(truth, holdout, n_coalitions=N_COALITIONS)
    by_rows, by_size, calibration = [], [], []
    for name, (make, most) in SAMPLERS.items():
        cells = []
        for n_rows in N_ROWS:
            if n_rows > most:
                cells.append("")
                continue
            start = time.perf_counter()
            sampler = make().fit(truth.sample(n_rows, random_state=5))
            fitted = time.perf_counter()
            found = evaluate(sampler, holdout, n_coalitions=N_COALITIONS)
            took = time.perf_counter() - fitted
            off = found.compare(best).loc["all"]
            cells.append(f"{off['difference']:.4f} ± {off['se']:.4f}")
        per_coalition = f"{1000 * took / N_COALITIONS:.0f}"
        by_rows.append([name, *cells, f"{fitted - start:.2f}", per_coalition])
        sizes = found.compare(best).drop(index="all")["difference"]
        by_size.append([f"{name} ({most:,})", *[f"{value:.3f}" for value in sizes]])
        calibration.append([f"{name} ({most:,})", *calibrated(found)])
    calibration.append(["the truth", *calibrated(best)])
    by_size.append(["score of the truth", *by_size_of(best)])
    return by_rows, by_size, calibration


def by_size_of(found: Evaluation) -> list[str]:
    """Return the scores by size of the coalition."""
    return [f"{value:.3f}" for value in found.summary().drop(index="all")["energy_score"]]


def calibrated(found: Evaluation) -> list[str]:
    """Return mean coverages of numbers, and how often draws of classes match, and should."""
    means = found.calibration.groupby("measure")[["nominal", "observed"]].mean()
    cover = [f"{means.loc[f'coverage {level}%', 'observed']:.1%}" for level in (50, 90)]
    return [*cover, f"{means.loc['match', 'observed']:.1%} / {means.loc['match', 'nominal']:.1%}"]


def chosen(truth: ClusteredGaussian) -> str:
    """Return the scores of the default candidates, as `choose_sampler` has them."""
    choice = choose_sampler(truth.sample(3_000, random_state=5))
    lines = [
        [
            f"**{name}**" if name == choice.name else str(name),
            f"{line['energy_score']:.4f}",
            f"{line['difference']:.4f} ± {line['se']:.4f}",
            f"{line['fit_seconds']:.2f}",
            f"{line['draw_seconds']:.2f}",
        ]
        for name, line in choice.scores.iterrows()
    ]
    header = ["sampler", "energy score", "above the best", "fit, s", "scoring, s"]
    return markdown(header, lines) + f"\n\n{choice.reason}"


def main() -> None:
    """Measure everything and publish the tables."""
    warnings.simplefilter("ignore")
    about_scores = (
        "A group, four numbers and a class that depends on the group. Energy score above that of "
        f"the true conditional, {N_HOLDOUT} held-out rows, {N_COALITIONS} coalitions, 20 draws, "
        "± paired standard error, by training rows."
    )
    about_calibration = (
        "Calibration: how often held-out values are in central intervals of the draws; and how "
        "often a draw of a class is the held-out one / another draw."
    )
    by_rows_header = [
        "sampler",
        *[f"{n_rows:,}" for n_rows in N_ROWS],
        "last fit, s",
        "ms a coalition, with scoring",
    ]
    sections = []
    for title, truth in truths().items():
        by_rows, by_size, calibration = measured(truth)
        sizes = [str(size) for size in range(len(truth.feature_names_))]
        sections += [
            (f"## Mixed data: {title}\n\n{about_scores}", markdown(by_rows_header, by_rows)),
            (
                "The same by number of known features, for the most rows (in brackets).",
                markdown(["sampler", *sizes], by_size),
            ),
            (
                about_calibration,
                markdown(["sampler", "50 %", "90 %", "match / nominal"], calibration),
            ),
            ("What `choose_sampler` says about 3,000 rows.", chosen(truth)),
        ]
    packages = ["dsage", "numpy", "scikit-learn"]
    publish("samplers_quality", "Quality of samplers", sections, packages)


if __name__ == "__main__":
    main()
