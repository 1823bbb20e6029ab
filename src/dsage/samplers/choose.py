"""Choose a sampler for the data, by how well it predicts rows that it has not seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from tqdm.auto import tqdm

from dsage._check import check_count, check_real, record_warnings, refusal, warn
from dsage._random import RandomState, Streams
from dsage.data.frames import take_rows
from dsage.data.layout import Layout
from dsage.samplers.base import AdaptedSampler, Sampler, check_sampler
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.evaluation import Evaluation, evaluate
from dsage.samplers.info import Decision
from dsage.samplers.marginal import Marginal
from dsage.samplers.registry import SAMPLERS

_REFERENCE = Marginal.__name__


@dataclass(frozen=True, eq=False)
class Choice:
    """The sampler that was chosen, and why.

    Parameters
    ----------
    sampler : Sampler
        The sampler, fitted to all rows.
    decision : Decision
        Which sampler was chosen, and why.
    scores : pandas.DataFrame
        One line per candidate, simplest first, and one for ``Marginal``, which is not a candidate
        but shows what conditioning gains: the held-out energy score, its difference from the best
        score and the paired standard error of that, the seconds to fit and to draw, the error of
        a candidate that failed, and the warnings of the others. The chosen sampler warns again
        when it is fitted to all rows.
    evaluations : dict from str to Evaluation
        The evaluations behind the scores.
    """

    sampler: Sampler
    decision: Decision
    scores: pd.DataFrame = field(repr=False)
    evaluations: dict[str, Evaluation] = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the chosen sampler."""
        return self.decision.chosen

    @property
    def reason(self) -> str:
        """Why it was chosen, as a sentence."""
        return self.decision.words()

    def to_frame(self) -> pd.DataFrame:
        """Return the scores."""
        return self.scores


def make_sampler(name: str, **options: Any) -> Sampler:  # noqa: ANN401
    """Make a sampler by its registered name, with those of the options that it takes."""
    kind = SAMPLERS[name]
    takes = kind().get_params()
    return kind(**{key: value for key, value in options.items() if key in takes})


def candidates_for(n_categories: Ints, **options: Any) -> dict[str, Sampler]:  # noqa: ANN401
    """Make the candidates for columns with these numbers of categories, simplest first."""
    is_class = n_categories > 0
    kind = "numbers" if not is_class.any() else "classes" if is_class.all() else "mixed"
    traits = {name: SAMPLERS.traits(name) for name in SAMPLERS}
    names = [name for name in SAMPLERS if kind in traits[name].get("candidate_for", ())]
    names.sort(key=lambda name: traits[name]["complexity"])
    made = (make_sampler(name, **options) for name in names)
    return {sampler.name: sampler for sampler in made}


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
    """Fit candidates to some of the rows, score them on the rest, and choose the simplest good one.

    The one-standard-error rule: of the candidates whose score is within one (paired) standard error
    of the best score, the first is chosen. It is then fitted to all rows.

    Parameters
    ----------
    X : data frame or array of shape (n_rows, n_features)
        The rows.
    candidates : dict from str to sampler, or iterable of samplers, optional
        Simplest first; copies are fitted. By default, the registered candidates for the data: for
        numbers `Gaussian`, `GaussianCopula`, `GaussianMixture`, `Neighbors`, `Forest`; for classes
        `Categorical`, `Sequential`, `Forest`; for both `Sequential`, `Neighbors`, `Forest`.
    n_coalitions, n_draws : int, default=24, 20
        See :func:`~dsage.samplers.evaluate`.
    test_share : float, default=0.25
        Share of the rows that are held out. Rows with a category that no training row has stay
        among the training rows: samplers cannot condition on categories they have not seen.
    max_rows : int, default=4000
        Maximal number of rows for the choice, taken at random.
    discrete, dtype, max_bytes
        Options of the default candidates, see :class:`~dsage.samplers.base.BaseSampler`.
    random_state : int, numpy Generator or None, default=0
        Seed.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Choice

    Examples
    --------
    >>> from dsage.samplers import Gaussian
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
    if candidates is None:
        options = {"discrete": discrete, "dtype": dtype, "max_bytes": max_bytes}
        named = candidates_for(layout.n_categories, random_state=seed, **options)
    else:
        named = _name_candidates(candidates)
    matrix = layout.encode(X)
    order = streams("choose-rows").permutation(len(matrix))[:max_rows]
    parts = _split(matrix, layout.n_categories, order, round(test_share * len(order)))
    test, train = (take_rows(X, np.sort(part)) for part in parts)
    score = partial(evaluate, X=test, n_coalitions=n_coalitions, n_draws=n_draws, random_state=seed)
    evaluations: dict[str, Evaluation] = {}
    lines: dict[str, dict[str, Any]] = {}
    reference = {} if _REFERENCE in named else {_REFERENCE: Marginal(discrete=discrete)}
    tried = [*named.items(), *reference.items()]
    for name, candidate in tqdm(tried, desc="scoring samplers", disable=not progress):
        lines[name] = _try(candidate, train, score)
        if "evaluation" in lines[name]:
            evaluations[name] = lines[name].pop("evaluation")
    decision, scores = _decide(list(named), lines, evaluations)
    fitted = named[decision.chosen].clone().fit(X)
    if isinstance(fitted, AdaptedSampler):
        fitted = fitted.given
    return Choice(fitted, decision, scores, evaluations)


def _split(X: Floats, n_categories: Ints, order: Ints, n_test: int) -> tuple[Ints, Ints]:
    """Return held-out rows and training rows, which have all categories of the former."""
    test, train = order[:n_test], order[n_test:]
    unseen = np.zeros(n_test, bool)
    for column in np.flatnonzero(n_categories):
        unseen |= ~np.isin(X[test, column], X[train, column])
    test, train = test[~unseen], np.concatenate([test[unseen], train])
    if len(test) < 5 or len(train) < 5:
        advice = "Pass about 20 whose categories occur more than once, or name a sampler"
        raise refusal("X", "of more rows to choose a sampler", len(X), advice)
    return test, train


def _name_candidates(candidates: Mapping[str, Any] | Iterable[Any]) -> dict[str, Sampler]:
    if isinstance(candidates, Mapping):
        named = dict(candidates)
    else:
        named = {}
        for candidate in candidates:
            kind = type(candidate).__name__
            again = sum(name.split(" ")[0] == kind for name in named)
            named[f"{kind} {again + 1}" if again else kind] = candidate
    if not named:
        raise refusal("candidates", "at least one", candidates, "Pass a sampler")
    return {name: check_sampler(one, f"candidate {name!r}") for name, one in named.items()}


def _try(
    candidate: Sampler,
    train: Any,  # noqa: ANN401
    score: Callable[[Sampler], Evaluation],
) -> dict[str, Any]:
    """Return the evaluation of a candidate with its times, or its error."""
    start = time.perf_counter()
    # All candidates warn about the same columns; the chosen one warns the user.
    with record_warnings(show=False) as caught:
        try:
            fitted = candidate.clone().fit(train)
            between = time.perf_counter()
            evaluation = score(fitted)
        except (ValueError, TypeError, np.linalg.LinAlgError) as error:
            return {"error": f"{type(error).__name__}: {error}", "warnings": ""}
    return {
        "evaluation": evaluation,
        "fit_seconds": between - start,
        "draw_seconds": time.perf_counter() - between,
        "error": "",
        "warnings": "; ".join(dict.fromkeys(map(str, caught))),
    }


def _decide(
    names: list[str], lines: dict[str, dict[str, Any]], evaluations: dict[str, Evaluation]
) -> tuple[Decision, pd.DataFrame]:
    able = [name for name in names if name in evaluations]
    failed = [f"{name} ({lines[name]['error']})" for name in lines if name not in evaluations]
    if not able:
        raise refusal("candidates", "able to draw such data", failed, "Pass other candidates")
    if failed:
        warn(f"These samplers failed and were left out of the choice: {'; '.join(failed)}")
    best = min(able, key=lambda name: evaluations[name].score)
    for name, evaluation in evaluations.items():
        difference = evaluation.compare(evaluations[best]).loc["all", ["difference", "se"]]
        lines[name] |= {"energy_score": evaluation.score, **difference}
    chosen = next(n for n in able if n == best or lines[n]["difference"] <= lines[n]["se"])
    columns = ["energy_score", "difference", "se", "fit_seconds", "draw_seconds"]
    columns += ["error", "warnings"]
    scores = pd.DataFrame.from_dict(lines, orient="index").reindex(columns=columns)
    scores.index.name = "sampler"
    off, se = (float(lines[chosen][column]) for column in ("difference", "se"))
    return Decision(chosen, best, evaluations[best].score, off, se), scores


@dataclass(kw_only=True, eq=False, repr=False)
class Auto(BaseEstimator, Sampler):  # type: ignore[misc]
    """Choose a sampler during `fit`, and draw from it.

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
        The chosen one.
    layout_, feature_names_, n_features_, n_categories_
        As in :class:`~dsage.samplers.base.BaseSampler`, if the chosen sampler knows its columns.

    Examples
    --------
    >>> from dsage.samplers import Gaussian, GaussianCopula
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(400)
    >>> X = np.column_stack([x, x + 0.5 * rng.standard_normal(400)])
    >>> Auto(candidates=[Gaussian(), GaussianCopula()]).fit(X).choice_.name
    'Gaussian'
    """

    candidates: Mapping[str, Any] | Iterable[Any] | None = None
    n_coalitions: int = 24
    n_draws: int = 20
    test_share: float = 0.25
    max_rows: int = 4000
    discrete: str | Iterable[str] = ()
    dtype: npt.DTypeLike = np.float64
    max_bytes: int = 2**28
    random_state: RandomState = 0

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ANN401, ARG002
        """Choose a sampler for these rows and fit it to them."""
        self.choice_ = choose_sampler(X, **self.get_params(deep=False))
        self.sampler_ = self.choice_.sampler
        self._chosen = check_sampler(self.sampler_)
        if (layout := self._chosen.layout_) is not None:
            self.layout_, self.feature_names_ = layout, layout.names
            self.n_features_, self.n_categories_ = len(layout.names), layout.n_categories
        return self

    def draw(self, X: Any, known: Mask, noise: Floats) -> Floats:  # noqa: ANN401
        """Draw from the chosen sampler; see :class:`Sampler`."""
        check_is_fitted(self)
        return self._chosen.draw(X, known, noise)

    @property
    def has_mean(self) -> bool:  # type: ignore[override]
        """Whether the chosen sampler has a `mean`."""
        return self.is_fitted and self._chosen.has_mean

    def mean(self, X: Any, known: Mask) -> Floats:  # noqa: ANN401
        """Return the conditional expectation, if the chosen sampler has it."""
        check_is_fitted(self)
        return self._chosen.mean(X, known)
