"""Score the draws of samplers on held-out rows: energy scores and calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import check_count, check_known, refusal
from dsage._random import RandomState, RngLike, Streams, one_seed
from dsage.data.layout import Layout
from dsage.samplers.base import check_sampler
from dsage.samplers.checks import Floats, Ints, Mask, check_draws, pick
from dsage.samplers.coalitions import random_coalitions
from dsage.samplers.energy import column_scales, energy_scores, has_gaps

# Nominal coverages of the central intervals whose calibration is checked.
COVERAGES = (0.5, 0.9)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The scores of a sampler, from :func:`evaluate`.

    Parameters
    ----------
    feature_names : tuple of str
        The columns.
    known : bool array of shape (n_coalitions, n_features)
        The coalitions.
    row_scores : array of shape (n_coalitions, n_rows)
        Energy scores; lower is better.
    calibration : pandas.DataFrame
        One line per feature and measure. ``coverage`` of numbers: the share of rows whose value is
        in the central interval of the draws (``observed``), and the share that should be
        (``nominal``); a missing number is below all others. ``match`` of classes: how often a draw
        equals the class of the row (``observed``), and how often it equals another draw
        (``nominal``), which should be the same; it is less if the draws are overconfident. ``se``
        is the standard error of the difference, over rows.
    """

    feature_names: tuple[str, ...]
    known: Mask = field(repr=False)
    row_scores: Floats = field(repr=False)
    calibration: pd.DataFrame = field(repr=False)

    @property
    def score(self) -> float:
        """The mean energy score over coalitions and rows."""
        return float(self.row_scores.mean())

    @property
    def se(self) -> float:
        """Its standard error over rows, for these coalitions."""
        return _mean_and_se(self.row_scores)[1]

    def to_frame(self) -> pd.DataFrame:
        """Return one line per coalition: known features, mean score and its standard error."""
        lines = []
        for known, scores in zip(self.known, self.row_scores, strict=True):
            names = pick(self.feature_names, known)
            score, se = _mean_and_se(scores[None])
            lines.append((", ".join(names), len(names), score, se))
        return pd.DataFrame(lines, columns=["known", "n_known", "energy_score", "se"])

    def summary(self) -> pd.DataFrame:
        """Return the mean score and its standard error by size of the coalition, and overall."""
        return _group_by_size(self.known, self.row_scores, "energy_score")

    def compare(self, other: Evaluation) -> pd.DataFrame:
        """Return this score minus another by size of the coalition, with paired standard errors.

        Both must come from :func:`evaluate` with the same rows, coalitions and seed, so that most
        of the randomness cancels.
        """
        same = self.row_scores.shape == other.row_scores.shape
        if not (same and np.array_equal(self.known, other.known)):
            condition = "an evaluation with the same coalitions and rows"
            advice = "Call evaluate with the same X, n_coalitions, n_draws and random_state"
            raise refusal("other", condition, other, advice)
        return _group_by_size(self.known, self.row_scores - other.row_scores, "difference")

    def plot(self, *, label: str | None = None, ax: Any = None) -> Any:  # noqa: ANN401
        """Plot the score by size of the coalition, with two standard errors; return the axes."""
        return plot_evaluations({label or "sampler": self}, ax=ax)


def evaluate(
    sampler: Any,  # noqa: ANN401
    X: Any,  # noqa: ANN401
    *,
    n_coalitions: int = 32,
    n_draws: int = 20,
    coalitions: npt.ArrayLike | None = None,
    random_state: RandomState = 0,
    rng: RngLike = None,
) -> Evaluation:
    r"""Score a fitted sampler on rows that it has not seen.

    For a row :math:`x`, a coalition and draws :math:`y_1..y_m` given the known features, the energy
    score (Gneiting & Raftery, JASA 2007, in its unbiased form) is

    .. math:: \frac1m \sum_k |y_k - x| - \frac{1}{2m(m-1)} \sum_{k \ne l} |y_k - y_l|,

    divided by the square root of the number of unknown features. Distances are Euclidean, over the
    unknown features: numbers divided by their standard deviation in `X`, classes as one column per
    category. A missing number lies one standard deviation from the mean of those that are
    present, in a separate direction: its squared distance from one that is present is 2 on average,
    as between two classes. Draws of integer columns are rounded, as they are for a model.
    The expected score is minimal for draws from the true conditional distribution, for any number
    of draws.

    Parameters
    ----------
    sampler : Sampler
        A fitted sampler.
    X : data frame or array of shape (n_rows, n_features)
        Rows not used to fit it; they may have categories and missing values that training lacks.
        For a sampler without `layout_`, classes are coded as in `X`.
    n_coalitions : int, default=32
        Number of random coalitions, all different, of sizes 0, 1, .., n_features - 1, 0, 1, ..
    n_draws : int, default=20
        Draws per row, at least 2.
    coalitions : bool array of shape (n_coalitions, n_features), optional
        Use these instead.
    random_state : int, numpy Generator or None, default=0
        Seed of coalitions and noise. Use the same int for samplers that are compared by
        :meth:`Evaluation.compare`.
    rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
        Another name of `random_state`; pass one of the two.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from dsage.samplers.mix import Mix
    >>> from dsage.samplers.clustered import ClusteredGaussian
    >>> truth = ClusteredGaussian.random(3, 2, random_state=0)
    >>> holdout = truth.sample(200, random_state=1)
    >>> best = evaluate(truth, holdout, n_coalitions=8)
    >>> mix = Mix(random_state=0).fit(truth.sample(1000, random_state=2))
    >>> difference = evaluate(mix, holdout, n_coalitions=8).compare(best)
    >>> bool(difference.loc["all", "difference"] > -2 * difference.loc["all", "se"])
    True
    """
    checked = check_sampler(sampler)
    n_draws = check_count(n_draws, "n_draws", minimum=2)
    layout = Layout.of(X) if checked.layout_ is None else checked.layout_.extend(X)
    matrix = layout.encode(X)
    if len(matrix) < 2:
        raise refusal("X", "of at least two rows", len(matrix), "Pass more rows")
    streams = Streams(one_seed(random_state, rng, default=0))
    n_features = len(layout.names)
    if coalitions is None:
        known = random_coalitions(n_features, check_count(n_coalitions, "n_coalitions"), streams)
    else:
        known = check_known(coalitions, layout.names)
    scale, may_miss = column_scales(matrix), layout.may_miss | has_gaps(matrix)
    scores = np.zeros((len(known), len(matrix)))
    calibration = _Calibration(layout, matrix)
    for number, coalition in enumerate(known):
        noise = streams("evaluate-noise", number).random((len(matrix), n_draws, n_features))
        # The generator may return 0, which is not in (0, 1).
        draws = np.asarray(checked.draw(X, coalition, np.maximum(noise, 2.0**-54)), np.float64)
        check_draws(draws, noise.shape, ~coalition, layout.names, may_miss)
        unknown = np.flatnonzero(~coalition)
        if layout.is_whole.any():
            draws = np.where(layout.is_whole, np.rint(draws), draws)
        scores[number] = energy_scores(matrix, draws, unknown, layout.n_categories, scale)
        calibration.add(draws, unknown)
    return Evaluation(layout.names, known, scores, calibration.to_frame())


class _Calibration:
    """Observed and nominal shares of each row, summed over coalitions."""

    def __init__(self, layout: Layout, X: Floats) -> None:
        self._layout, self._X = layout, X
        self._count = np.zeros(len(layout.names))
        self._observed = np.zeros((len(layout.names), len(COVERAGES), len(X)))
        self._nominal = np.zeros_like(self._observed)

    def add(self, draws: Floats, unknown: Ints) -> None:
        n_draws = draws.shape[1]
        for feature in unknown:
            # A missing number is below all others.
            x, y = (
                np.where(np.isnan(each), -np.inf, each)
                for each in (self._X[:, feature, None], draws[:, :, feature])
            )
            self._count[feature] += 1
            n_categories = self._layout.n_categories[feature]
            if n_categories:
                self._observed[feature, 0] += (y == x).mean(axis=1)
                for category in range(n_categories):
                    equal = (y == category).sum(axis=1)
                    self._nominal[feature, 0] += equal * (equal - 1) / (n_draws * (n_draws - 1))
                continue
            # If the row is distributed like the draws, its rank is uniform; ties share theirs.
            low = (y < x).sum(axis=1) / (n_draws + 1)
            high = ((y <= x).sum(axis=1) + 1) / (n_draws + 1)
            for position, share in enumerate(COVERAGES):
                inside = np.minimum(high, (1 + share) / 2) - np.maximum(low, (1 - share) / 2)
                self._observed[feature, position] += np.maximum(inside, 0.0) / (high - low)
                self._nominal[feature, position] += share

    def to_frame(self) -> pd.DataFrame:
        lines = []
        for feature, name in enumerate(self._layout.names):
            count = self._count[feature]
            is_class = bool(self._layout.n_categories[feature])
            for position, share in enumerate(COVERAGES[:1] if is_class else COVERAGES):
                if not count:
                    continue
                observed = self._observed[feature, position] / count
                nominal = self._nominal[feature, position] / count
                _, se = _mean_and_se((observed - nominal)[None])
                measure = "match" if is_class else f"coverage {share:.0%}"
                lines.append((name, measure, nominal.mean(), observed.mean(), se))
        return pd.DataFrame(lines, columns=["feature", "measure", "nominal", "observed", "se"])


def plot_evaluations(evaluations: dict[str, Evaluation], *, ax: Any = None) -> Any:  # noqa: ANN401
    """Plot energy scores by size of the coalition, a line per sampler, with two standard errors.

    Parameters
    ----------
    evaluations : dict from str to Evaluation
        The evaluations, by their labels in the legend.
    ax : matplotlib Axes, optional
        The axes; by default the axes of a new figure.

    Returns
    -------
    matplotlib Axes
    """
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(
            "plot_evaluations needs matplotlib; install it with: pip install 'dsage[plot]'."
        ) from error
    if ax is None:
        _, ax = plt.subplots(figsize=(6.0, 3.6), layout="constrained")
    # Okabe & Ito's palette, which is safe for all kinds of color vision; markers differ, too.
    colors = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#D55E00", "#0072B2", "#CC79A7")
    markers = "osD^vPX"
    for number, (label, evaluation) in enumerate(evaluations.items()):
        by_size = evaluation.summary().drop(index="all")
        # Shifted, so that bars do not hide each other.
        shift = 0.06 * (number - (len(evaluations) - 1) / 2)
        ax.errorbar(
            by_size.index.to_numpy(dtype=float) + shift,
            by_size["energy_score"],
            yerr=2 * by_size["se"],
            color=colors[number % len(colors)],
            marker=markers[number % len(markers)],
            markersize=5,
            linewidth=1.2,
            capsize=2,
            label=label,
        )
    ax.set_xlabel("known features")
    ax.set_ylabel("energy score (lower is better)")
    ax.xaxis.get_major_locator().set_params(integer=True)
    if len(evaluations) > 1:
        ax.legend(frameon=False)
    return ax


def _mean_and_se(scores: Floats) -> tuple[float, float]:
    """Return mean and standard error over rows of scores (n_coalitions, n_rows)."""
    rows = scores.mean(axis=0)
    return float(rows.mean()), float(rows.std(ddof=1) / math.sqrt(len(rows)))


def _group_by_size(known: Mask, scores: Floats, name: str) -> pd.DataFrame:
    sizes = known.sum(axis=1)
    lines: list[tuple[object, int, float, float]] = []
    for size in np.unique(sizes):
        of_size = sizes == size
        lines.append((int(size), int(of_size.sum()), *_mean_and_se(scores[of_size])))
    lines.append(("all", len(sizes), *_mean_and_se(scores)))
    frame = pd.DataFrame(lines, columns=["n_known", "n_coalitions", name, "se"])
    return frame.set_index("n_known")
