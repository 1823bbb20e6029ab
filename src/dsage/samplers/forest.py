"""Draw mixed, non-linear data from densities in the leaves of a forest."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from dsage._check import check_count, check_real, warn
from dsage._random import RandomState, Streams
from dsage.samplers.base import BaseSampler
from dsage.samplers.checks import Floats, Ints, Mask, pick, warn_of_copies
from dsage.samplers.leaves import Boxes, Leaves, Posterior, choose_leaves
from dsage.samplers.registry import ANY_DATA, SAMPLERS

# With this accuracy or less, the forest cannot tell real from synthetic rows.
_UNDECIDED = 0.5


@SAMPLERS.register(
    "forest",
    summary="densities in the leaves of an adversarial random forest",
    fits=ANY_DATA,
    draw_cost=1.2,
    call_cost=120.0,
    fit_cost=80.0,
)
@dataclass(kw_only=True, eq=False, repr=False)
class Forest(BaseSampler):
    """Draw from the leaves of a forest that was trained to tell real rows from synthetic ones.

    The adversarial random forest of Watson, Blesch, Kapar & Wright (AISTATS 2023). A forest learns
    to tell the rows from rows whose columns were drawn independently; then, in rounds, from rows
    whose columns were drawn independently within the leaves of the previous forest. Once it fails,
    features are nearly independent within leaves, and

        ``p(x) = sum_l weight_l prod_j p_lj(x_j)``

    is the density: `weight_l` is a leaf's share of the rows, `p_lj` a normal truncated to the leaf
    for a continuous feature and a table of frequencies for a discrete one. Given the known
    features, a leaf has the weight ``weight_l prod_(j known) p_lj(x_j)``, and the unknown ones are
    drawn from the distributions within one leaf, so that they depend on each other through it.

    Parameters
    ----------
    n_trees : int, default=30
        Number of trees of the forest.
    min_leaf : int, optional
        Minimal number of rows of a leaf: by default 10, or one in a thousand rows if that is more,
        which bounds time and memory of draws. A split that would leave fewer on a side is not made:
        the other side takes all rows.
    n_rounds : int, default=10
        Maximal number of rounds after the first forest. They end when at most half of the
        out-of-bag predictions are right, or when the accuracy rises; the previous forest is used.
    smoothing : float, default=1.0
        Number of pseudo-rows added to each leaf's table of frequencies, with the overall shares of
        the categories that the leaf allows. With 0, a category that a leaf has not seen excludes
        the leaf.
    random_state : int, numpy Generator or None, default=None
        Seed of the forest; draws depend on their noise only.
    n_jobs : int, optional
        Number of jobs that fit the forest.
    discrete, dtype, max_bytes
        As in :class:`~dsage.samplers.base.BaseSampler`.

    Attributes
    ----------
    accuracies_ : tuple of float
        Out-of-bag accuracies of the first forest and of each round.
    n_leaves_ : int
        Number of leaves of all trees.

    Notes
    -----
    Means and deviations of the truncated normals are matched to those of the rows in the leaf. A
    feature that is constant in a leaf is drawn as that constant; for densities, its deviation is
    0.01 of the feature's overall deviation (or of that of its middle half, if smaller).

    A leaf is chosen by halves: leaves are arranged as a balanced tree, each node split by the
    feature whose means differ most, and that feature's uniform chooses the half. The position of
    the uniform within the half's share is uniform again and independent of the half. It is used for
    the next choice or the draw within the leaf, so that equal noise gives similar draws for
    different coalitions.

    Copies of a column are not drawn equal to it. With fewer than twice `min_leaf` rows there are no
    splits, and features are drawn independently. `fit` warns about both.

    Rows whose known values have no density in any leaf (values so far out that it underflows, or,
    without smoothing, a combination of categories never seen) are drawn as if nothing were known,
    with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, 2000)
    >>> X = np.column_stack([x, x**2 + 0.1 * rng.standard_normal(2000)])
    >>> sampler = Forest(random_state=0).fit(X)
    >>> noise = rng.random((3, 1000, 2))
    >>> known = np.array([True, False])
    >>> at = np.array([[-1.5, 0.0], [0.0, 0.0], [1.5, 0.0]])
    >>> means = sampler.draw(at, known, noise)[:, :, 1].mean(axis=1)
    >>> bool(np.abs(means - at[:, 0] ** 2).max() < 0.2)
    True
    """

    n_trees: int = 30
    min_leaf: int | None = None
    n_rounds: int = 10
    smoothing: float = 1.0
    random_state: RandomState = None
    n_jobs: int | None = None

    def _fit(self, X: Floats) -> None:
        check_count(self.n_trees, "n_trees")
        if self.min_leaf is None:
            self._min_leaf = max(10, len(X) // 1000)
        else:
            self._min_leaf = check_count(self.min_leaf, "min_leaf")
        check_count(self.n_rounds, "n_rounds", minimum=0)
        smoothing = check_real(self.smoothing, "smoothing", low=0.0, high=1e9)
        self._warn_of_limits(X)
        continuous = self.n_categories_ == 0
        # The median of a constant column is its value, to the bit.
        self._center = np.where(continuous, np.median(X, axis=0), 0.0)
        self._scale = np.where(continuous, robust_scale(X), 1.0)
        scaled = (X - self._center) / self._scale
        boxes = self._grow(scaled)
        self._leaves = Leaves(scaled, self.n_categories_, boxes, smoothing)
        self.n_leaves_ = len(self._leaves)

    def _warn_of_limits(self, X: Floats) -> None:
        warn_of_copies(X, self.layout_, "Draws do not keep them equal: leave the copies out.")
        if len(X) < 2 * self._min_leaf and X.shape[1] > 1:
            warn(
                f"A forest cannot split {len(X)} rows into leaves of {self._min_leaf}: features "
                "are drawn as if they were independent. Pass more rows, or a smaller min_leaf."
            )

    def _grow(self, X: Floats) -> Boxes:
        """Alternate between training forests and drawing synthetic rows, until a forest fails."""
        streams = Streams(self.random_state)
        rng = streams("forest-synthetic", 0)
        synthetic = np.column_stack([rng.permutation(column) for column in X.T])
        forest, accuracy = self._train(X, synthetic, streams("forest-trees", 0))
        boxes = find_boxes(forest, X, self._min_leaf)
        accuracies = [accuracy]
        for number in range(1, self.n_rounds + 1):
            synthetic = draw_within(X, boxes.leaf_of, streams("forest-synthetic", number))
            forest, accuracy = self._train(X, synthetic, streams("forest-trees", number))
            accuracies.append(accuracy)
            # The last forest that could tell rows apart is kept, not the one that failed.
            if accuracy <= _UNDECIDED or accuracy > accuracies[-2]:
                break
            boxes = find_boxes(forest, X, self._min_leaf)
        self.accuracies_ = tuple(accuracies)
        return boxes

    def _train(
        self, X: Floats, synthetic: Floats, rng: np.random.Generator
    ) -> tuple[RandomForestClassifier, float]:
        """Return a forest trained to tell real from synthetic rows, and its accuracy."""
        n_features = X.shape[1]
        forest = RandomForestClassifier(
            n_estimators=self.n_trees,
            min_samples_leaf=self._min_leaf,
            max_features=min(n_features, max(2, int(np.sqrt(n_features)))),
            oob_score=True,
            random_state=int(rng.integers(2**31)),
            n_jobs=self.n_jobs,
        )
        both = np.concatenate([X, synthetic])
        is_real = np.repeat([True, False], len(X))
        with warnings.catch_warnings():
            # With few trees some rows are in all bags; the accuracy is that of the other rows.
            warnings.filterwarnings("ignore", "Some inputs do not have OOB", UserWarning)
            with np.errstate(invalid="ignore"):
                forest.fit(both, is_real)
        votes = forest.oob_decision_function_
        has_votes = np.isfinite(votes).all(axis=1) & (votes.sum(axis=1) > 0)
        right = (votes[:, 1] > 0.5) == is_real
        return forest, float(right[has_votes].mean()) if has_votes.any() else 1.0

    def _draw(self, X: Floats, known: Mask, noise: Floats) -> Floats:
        unknown = np.flatnonzero(~known)
        draws = np.empty((*noise.shape[:2], len(unknown)))
        for rows, posterior in self._posteriors(X, known):
            leaf, rest = choose_leaves(posterior, self._leaves.split_on, noise[rows])
            for position, feature in enumerate(unknown.tolist()):
                values = self._leaves.draw(leaf, feature, rest[:, :, feature])
                draws[rows, :, position] = values * self._scale[feature] + self._center[feature]
        return draws

    def _bytes_per_row(self, known: Mask, n_draws: int) -> int:
        # Noise and draws, about twenty numbers for the search of a draw's leaf, and the weight of
        # each leaf, before and after summing.
        return 8 * (n_draws * (20 + 3 * len(known)) + 4 * self.n_leaves_)

    def _mean(self, X: Floats, known: Mask) -> Floats:
        unknown = np.flatnonzero(~known)
        means = np.empty((len(X), len(unknown)))
        for rows, posterior in self._posteriors(X, known):
            means[rows] = self._leaves.mean_given(posterior, unknown.tolist())
        return means * self._scale[unknown] + self._center[unknown]

    def _posteriors(self, X: Floats, known: Mask) -> Iterator[tuple[slice, Posterior]]:
        """Yield chunks of rows, as slices, with their weights of the leaves."""
        if not known.any():
            yield slice(None), self._leaves.posterior(np.zeros((1, len(known))), known)[0]
            return
        scaled = (np.where(known, X, self._center) - self._center) / self._scale
        n_impossible = 0
        for start in range(0, len(X), self._leaves.chunk_size):
            rows = slice(start, start + self._leaves.chunk_size)
            posterior, impossible = self._leaves.posterior(scaled[rows], known)
            n_impossible += int(impossible.sum())
            yield rows, posterior
        if n_impossible:
            names = pick(self.feature_names_, known)
            warn(
                f"{n_impossible} rows have values of {names} that no leaf of the forest allows; "
                "they were drawn as if nothing were known."
            )


def robust_scale(X: Floats) -> Floats:
    """Return the deviation of each column, or that of its middle half if less; 1 for a constant.

    A few outliers make the deviation far too large for all other values.
    """
    deviation = X.std(axis=0)
    low, high = np.quantile(X, [0.25, 0.75], axis=0)
    # The quartiles of a normal are 1.349 deviations apart.
    middle = (high - low) / 1.349
    scale = np.where(middle > 0, np.minimum(middle, deviation), deviation)
    # Trees compare in single precision, which overflows at 3e38.
    scale = np.maximum(scale, 1e-30 * np.ptp(X, axis=0))
    return np.where(X.min(axis=0) < X.max(axis=0), scale, 1.0)


def find_boxes(forest: RandomForestClassifier, X: Floats, min_leaf: int) -> Boxes:
    """Route the rows through the trees and return the leaves with at least `min_leaf` of them.

    A split that leaves fewer rows on one side is not made: the other side's subtree takes all.
    (Forests split off regions without real rows; pruning the tree there would lose the rest.)
    """
    trees = [estimator.tree_ for estimator in forest.estimators_]
    offsets = np.cumsum([0, *[tree.node_count for tree in trees]])
    left = np.concatenate([t.children_left + o for t, o in zip(trees, offsets, strict=False)])
    right = np.concatenate([t.children_right + o for t, o in zip(trees, offsets, strict=False)])
    split_on = np.concatenate([tree.feature for tree in trees])
    threshold = np.concatenate([tree.threshold for tree in trees])

    n_rows, n_features = X.shape
    cell_of = np.repeat(np.arange(len(trees)), n_rows)
    node = offsets[:-1].copy()
    low, high = (np.full((len(trees), n_features), sign * np.inf) for sign in (-1, 1))
    row = np.tile(np.arange(n_rows), len(trees))
    active = split_on[node] >= 0
    while active.any():
        moving = np.flatnonzero(active[cell_of])
        cell = cell_of[moving]
        goes_left = X[row[moving], split_on[node[cell]]] <= threshold[node[cell]]
        n_left = np.bincount(cell[goes_left], minlength=len(node))
        n_right = np.bincount(cell[~goes_left], minlength=len(node))
        split = np.flatnonzero(active & (n_left >= min_leaf) & (n_right >= min_leaf))
        at, cut = split_on[node[split]], threshold[node[split]]
        new = np.full(len(node), -1)
        new[split] = len(node) + np.arange(len(split))
        to_new = (new[cell] >= 0) & ~goes_left
        cell_of[moving[to_new]] = new[cell[to_new]]
        right_low, right_high = low[split].copy(), high[split].copy()
        steps = np.arange(len(split))
        right_low[steps, at] = np.maximum(right_low[steps, at], cut)
        high[split, at] = np.minimum(high[split, at], cut)
        low, high = np.concatenate([low, right_low]), np.concatenate([high, right_high])
        right_node = right[node[split]]
        keeps_left = n_left >= n_right
        keeps_left[split] = True
        followed = np.where(keeps_left, left[node], right[node])
        node = np.concatenate([np.where(active, followed, node), right_node])
        active = np.concatenate([active, np.ones(len(split), dtype=bool)])
        active &= split_on[node] >= 0
    return Boxes(low, high, cell_of.reshape(len(trees), n_rows))


def draw_within(X: Floats, leaf_of: Ints, rng: np.random.Generator) -> Floats:
    """Return as many rows as `X`, each with columns drawn independently from one leaf's rows.

    The leaf is that of a random row in a random tree, so leaves have their shares of the rows.
    """
    n_trees, n_rows = leaf_of.shape
    flat = leaf_of.ravel()
    order = np.argsort(flat, kind="stable") % n_rows
    count = np.bincount(flat)
    start = np.cumsum(count) - count
    leaf = leaf_of[rng.integers(n_trees, size=n_rows), rng.integers(n_rows, size=n_rows)]
    columns = [column[order[start[leaf] + rng.integers(count[leaf])]] for column in X.T]
    return np.column_stack(columns)
