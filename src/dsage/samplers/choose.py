"""Choose a sampler for the data at hand, by how well it predicts rows it has not seen."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from tqdm.auto import tqdm

from dsage._check import check_count, check_real, refusal, warn
from dsage._random import RandomState, Streams
from dsage.data.frames import take_rows
from dsage.data.layout import Layout
from dsage.samplers.base import Floats, Mask, Sampler, check_sampler
from dsage.samplers.categorical import Categorical
from dsage.samplers.copula import GaussianCopula
from dsage.samplers.evaluation import Evaluation, evaluate
from dsage.samplers.forest import Forest
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.marginal import Marginal
from dsage.samplers.mixture import GaussianMixture
from dsage.samplers.neighbors import Neighbors
from dsage.samplers.sequential import Sequential

_REFERENCE = "Marginal"


@dataclass(frozen=True, eq=False)
class Choice:
    """Which sampler was chosen, and why.

    Parameters
    ----------
    name : str
        Of the sampler chosen.
    sampler : Sampler
        The sampler itself, fitted to all rows.
    reason : str
        Why it was chosen, in words.
    scores : pandas.DataFrame
        One line a candidate, simplest first, and one for ``Marginal``, which is no candidate but
        shows what conditioning gains: held-out energy score, its difference to the best one, the
        paired standard error of that, seconds to fit and to draw, the error of those that
        failed, and what the others warned of. The one chosen warns again when it is fitted to
        all rows.
    evaluations : dict from str to Evaluation
        The evaluations behind the scores.
    """

    name: str
    sampler: Sampler
    reason: str
    scores: pd.DataFrame = field(repr=False)
    evaluations: dict[str, Evaluation] = field(repr=False)

    def to_frame(self) -> pd.DataFrame:
        """Return the scores."""
        return self.scores


def candidates_for(
    n_categories: npt.NDArray[np.intp],
    random_state: int,
    **options: Any,  # noqa: ANN401
) -> dict[str, Sampler]:
    """Return the samplers that can draw such columns, simplest and fastest first.

    They are given the options: `discrete`, where they have it, `dtype` and `max_bytes`.

    Examples
    --------
    >>> list(candidates_for(np.array([0, 3]), 0))
    ['Sequential', 'Neighbors', 'Forest']
    """
    shared: list[Sampler] = [
        Sequential(random_state=random_state, **options),
        Neighbors(**options),
        Forest(random_state=random_state, **options),
    ]
    first: list[Sampler] = []
    if (n_categories == 0).all():
        options.pop("discrete", None)
        mixture = GaussianMixture(random_state=random_state, **options)
        # In the order given, one regression after the other adds little to the Gaussian.
        first, shared = [Gaussian(**options), GaussianCopula(**options), mixture], shared[1:]
    elif (n_categories > 0).all():
        first, shared = [Categorical(**options)], [shared[0], shared[2]]
    return {type(sampler).__name__: sampler for sampler in [*first, *shared]}


def choose_sampler(
    X: Any,  # noqa: ANN401
    candidates: Mapping[str, Any] | Iterable[Any] | None = None,
    *,
    n_coalitions: int = 24,
    n_draws: int = 20,
    test_share: float = 0.25,
    max_rows: int = 4000,
    discrete: str | Iterable[str] = (),
    dtype: npt.DTypeLike = np.float64,
    max_bytes: int = 2**28,
    random_state: RandomState = 0,
    progress: bool = False,
) -> Choice:
    """Fit candidates to a part of the rows, score them on the rest, and take the simplest good one.

    The one-standard-error rule: of the candidates whose score is within one (paired) standard error
    of the best one's, the first is chosen. It is then fitted to all rows.

    Parameters
    ----------
    X : data frame or array of shape (n_rows, n_features)
        The rows.
    candidates : dict from str to sampler, or iterable of samplers, optional
        Simplest first; copies are fitted. By default, those that suit the data: for numbers
        `Gaussian`, `GaussianCopula`, `GaussianMixture`, `Neighbors`, `Forest`; for classes
        `Categorical`, `Sequential`, `Forest`; for both `Sequential`, `Neighbors`, `Forest`.
    n_coalitions, n_draws : int, default=24, 20
        See :func:`~dsage.samplers.evaluate`.
    test_share : float, default=0.25
        Share of the rows that are held out. Rows with a level that no other training row has
        are not: no sampler could be asked about it.
    max_rows : int, default=4000
        At most so many rows take part in the choice, at random.
    discrete, dtype, max_bytes
        Options of the default candidates; see :class:`~dsage.samplers.base.BaseSampler`.
    random_state : int, numpy Generator or None, default=0
        Seed.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Choice

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(400)
    >>> X = np.column_stack([x, x + 0.5 * rng.standard_normal(400)])
    >>> choice = choose_sampler(X, [Marginal(), Gaussian()])
    >>> choice.name
    'Gaussian'
    """
    check_count(max_rows, "max_rows", minimum=20)
    check_real(test_share, "test_share", above=0.0, high=0.9)
    layout = Layout.of(X, discrete=discrete)
    streams = Streams(random_state)
    seed = int(streams("choose-seed").integers(2**31))
    named = _named(
        candidates, layout, seed, {"discrete": discrete, "dtype": dtype, "max_bytes": max_bytes}
    )
    matrix = layout.encode(X)
    order = streams("choose-rows").permutation(len(matrix))[:max_rows]
    test, train = (
        take_rows(X, np.sort(part))
        for part in _split(matrix, layout.n_categories, order, round(test_share * len(order)))
    )
    evaluations: dict[str, Evaluation] = {}
    lines: dict[str, dict[str, Any]] = {}
    reference = {} if _REFERENCE in named else {_REFERENCE: Marginal(discrete=discrete)}
    tried = [*named.items(), *reference.items()]
    for name, candidate in tqdm(tried, desc="scoring samplers", disable=not progress):
        lines[name] = _tried(candidate, train, test, (n_coalitions, n_draws, seed))
        if "evaluation" in lines[name]:
            evaluations[name] = lines[name].pop("evaluation")
    chosen, scores, reason = _decided(list(named), lines, evaluations)
    return Choice(chosen, _copied(named[chosen]).fit(X), reason, scores, evaluations)


def _split(
    X: Floats, n_categories: npt.NDArray[np.intp], order: npt.NDArray[np.intp], n_test: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return rows held out and rows to train with; all levels of the former are in the latter."""
    test, train = order[:n_test], order[n_test:]
    unseen = np.zeros(n_test, bool)
    for column in np.flatnonzero(n_categories):
        unseen |= ~np.isin(X[test, column], X[train, column])
    test, train = test[~unseen], np.concatenate([test[unseen], train])
    if len(test) < 5 or len(train) < 5:
        advice = "Give some 20 whose levels occur more than once, or a sampler"
        raise refusal("X", "of more rows to choose a sampler", len(X), advice)
    return test, train


def _named(
    candidates: Mapping[str, Any] | Iterable[Any] | None,
    layout: Layout,
    seed: int,
    options: dict[str, Any],
) -> dict[str, Sampler]:
    if candidates is None:
        return candidates_for(layout.n_categories, seed, **options)
    if isinstance(candidates, Mapping):
        named = dict(candidates)
    else:
        named = {}
        for candidate in candidates:
            kind = type(candidate).__name__
            again = sum(name.split(" ")[0] == kind for name in named)
            named[f"{kind} {again + 1}" if again else kind] = candidate
    if not named:
        raise refusal("candidates", "at least one", candidates, "Give a sampler")
    return {name: check_sampler(one, f"candidate {name!r}") for name, one in named.items()}


def _copied(sampler: Any) -> Any:  # noqa: ANN401
    return clone(sampler) if hasattr(sampler, "get_params") else copy.deepcopy(sampler)


def _tried(
    candidate: Sampler,
    train: Any,  # noqa: ANN401
    test: Any,  # noqa: ANN401
    options: tuple[int, int, int],
) -> dict[str, Any]:
    """Return the evaluation of a candidate with its times, or its error."""
    n_coalitions, n_draws, seed = options
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        # All candidates say the same of the same columns; the one chosen says it to the user.
        warnings.simplefilter("always")
        try:
            fitted = _copied(candidate).fit(train)
            between = time.perf_counter()
            evaluation = evaluate(
                fitted, test, n_coalitions=n_coalitions, n_draws=n_draws, random_state=seed
            )
        except (ValueError, TypeError, np.linalg.LinAlgError) as error:
            return {"error": f"{type(error).__name__}: {error}", "warnings": ""}
    return {
        "evaluation": evaluation,
        "fit_seconds": between - start,
        "draw_seconds": time.perf_counter() - between,
        "error": "",
        "warnings": "; ".join(dict.fromkeys(str(warning.message) for warning in caught)),
    }


def _decided(
    names: list[str], lines: dict[str, dict[str, Any]], evaluations: dict[str, Evaluation]
) -> tuple[str, pd.DataFrame, str]:
    able = [name for name in names if name in evaluations]
    failed = [f"{name} ({lines[name]['error']})" for name in lines if name not in evaluations]
    if not able:
        raise refusal("candidates", "able to draw such data", failed, "Give other candidates")
    if failed:
        warn(f"These samplers failed and were left out of the choice: {'; '.join(failed)}")
    best = min(able, key=lambda name: evaluations[name].score)
    for name, evaluation in evaluations.items():
        difference = evaluation.compare(evaluations[best]).loc["all"]
        lines[name] |= {
            "energy_score": evaluation.score,
            "difference": difference["difference"],
            "se": difference["se"],
        }
    chosen = next(n for n in able if n == best or lines[n]["difference"] <= lines[n]["se"])
    columns = ["energy_score", "difference", "se", "fit_seconds", "draw_seconds"]
    columns += ["error", "warnings"]
    scores = pd.DataFrame.from_dict(lines, orient="index").reindex(columns=columns)
    scores.index.name = "sampler"
    score = evaluations[best].score
    if chosen == best:
        reason = f"{best} has the lowest held-out energy score, {score:.4f}"
        reason += ", and no simpler one is within a standard error of it."
    else:
        off, se = lines[chosen]["difference"], lines[chosen]["se"]
        reason = (
            f"{chosen} is the simplest whose held-out energy score is within one standard error "
        )
        reason += f"({off:.4f} <= {se:.4f}) of the lowest, {score:.4f} of {best}."
    return chosen, scores, reason


def _has_mean(sampler: Any) -> bool:  # noqa: ANN401
    return hasattr(sampler.sampler_, "mean")


class Auto(BaseEstimator):  # type: ignore[misc]
    """Choose a sampler when it is fitted, and draw from the one chosen.

    Parameters
    ----------
    candidates, n_coalitions, n_draws, test_share, max_rows, discrete, dtype, max_bytes
        See :func:`choose_sampler`.
    random_state : int, numpy Generator or None, default=0
        Seed of the choice and of the fit.

    Attributes
    ----------
    choice_ : Choice
        Which sampler was chosen, why, and the scores of all.
    sampler_ : Sampler
        The one chosen. Its `layout_`, `feature_names_`, `n_features_` and `n_levels_` are here too.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(400)
    >>> X = np.column_stack([x, x + 0.5 * rng.standard_normal(400)])
    >>> Auto(candidates=[Gaussian(), GaussianCopula()]).fit(X).choice_.name
    'Gaussian'
    """

    def __init__(
        self,
        *,
        candidates: Mapping[str, Any] | Iterable[Any] | None = None,
        n_coalitions: int = 24,
        n_draws: int = 20,
        test_share: float = 0.25,
        max_rows: int = 4000,
        discrete: str | Iterable[str] = (),
        dtype: npt.DTypeLike = np.float64,
        max_bytes: int = 2**28,
        random_state: RandomState = 0,
    ) -> None:
        self.candidates = candidates
        self.n_coalitions = n_coalitions
        self.n_draws = n_draws
        self.test_share = test_share
        self.max_rows = max_rows
        self.discrete = discrete
        self.dtype = dtype
        self.max_bytes = max_bytes
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ANN401, ARG002
        """Choose a sampler for these rows and fit it to them."""
        self.choice_ = choose_sampler(X, **self.get_params(deep=False))
        self.sampler_: Any = self.choice_.sampler
        for name in ("layout_", "feature_names_", "n_features_", "n_levels_"):
            if hasattr(self.sampler_, name):
                setattr(self, name, getattr(self.sampler_, name))
        return self

    def draw(self, X: Any, known: Mask, noise: Floats) -> Floats:  # noqa: ANN401
        """Draw from the sampler chosen; see :class:`Sampler`."""
        check_is_fitted(self)
        drawn: Floats = self.sampler_.draw(X, known, noise)
        return drawn

    @available_if(_has_mean)  # type: ignore[untyped-decorator]
    def mean(self, X: Any, known: Mask) -> Floats:  # noqa: ANN401
        """Return the conditional expectation; there if the sampler chosen has it."""
        means: Floats = self.sampler_.mean(X, known)
        return means
