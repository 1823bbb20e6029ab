"""Choose a sampler for the data by its scores on held-out rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import joblib
import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dsage._check import (
    DsageWarning,
    check_count,
    check_real,
    record_warnings,
    refusal,
    warn,
)
from dsage._random import RandomState, RngLike, Streams, one_seed
from dsage.data.groups import Groups
from dsage.data.layout import Layout
from dsage.samplers.base import AdaptedSampler, Sampler, check_sampler
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.comparing import Table, compare_candidates
from dsage.samplers.info import Basis, Decision
from dsage.samplers.marginal import Marginal
from dsage.samplers.race import Budget, name_contenders
from dsage.samplers.recent import Recent
from dsage.samplers.registry import SAMPLERS
from dsage.samplers.scorer import Predict

# With fewer rows than this, samplers are not scored.
MIN_ROWS = 20
# Number of choices that are kept, and the largest size of their tables.
_KEPT, _KEPT_BYTES = 4, 2**26


@dataclass(frozen=True, eq=False)
class Choice:
    """The sampler that was chosen, and why.

    Parameters
    ----------
    sampler : Sampler
        The sampler, fitted to all rows.
    decision : Decision
        Which sampler was chosen, by which rule, and why.
    scores : pandas.DataFrame
        One line per candidate, simplest first, and one for ``Marginal``, which is not a candidate
        but shows what conditioning gains: ``energy_score`` and ``msev`` on held-out rows (the MSEv
        as a share of the variance of the predictions, NaN without a model); their differences from
        the best candidate, paired on common rows, with standard errors over rows; the number of
        rows, which is smaller for candidates that were dropped early; seconds to fit and to draw;
        a ``verdict``, the error of a candidate that failed, and the warnings of the others. The
        chosen sampler warns again when it is fitted to all rows.
    tied : dict of str to Sampler
        The candidates, not fitted, that tie with the chosen one, the best energy score first.
    """

    sampler: Sampler
    decision: Decision
    scores: pd.DataFrame = field(repr=False)
    tied: dict[str, Sampler] = field(repr=False, default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the chosen sampler."""
        return self.decision.chosen

    @property
    def reason(self) -> str:
        """Why it was chosen, in sentences."""
        return self.decision.words()

    def to_frame(self) -> pd.DataFrame:
        """Return the scores."""
        return self.scores


def make_sampler(name: str, **options: Any) -> Sampler:  # noqa: ANN401
    """Make a sampler by its registered name, with the options that it accepts."""
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
    predict: Predict | None = None,
    groups: Mapping[str, Iterable[str]] | None = None,
    n_coalitions: int = 8,
    n_draws: int = 8,
    test_share: float = 0.25,
    max_rows: int = 4000,
    seconds: float = 2.0,
    discrete: str | Iterable[str] = (),
    kinds: Mapping[str, str] | None = None,
    dtype: npt.DTypeLike = np.float64,
    max_bytes: int = 2**28,
    random_state: RandomState = 0,
    rng: RngLike = None,
    progress: bool = False,
) -> Choice:
    """Fit candidates to some of the rows, score them on the rest, and choose the simplest good one.

    With a model, candidates are compared by their MSEv, how close the mean prediction over draws is
    to the prediction for the row itself, and by their energy score. Without a model, the energy
    score alone decides. See :class:`~dsage.samplers.Decision` for the rule. The chosen sampler is
    fitted to all rows.

    The candidates race: all are scored on a few rows, then those that are clearly worse than
    another are dropped, and the others are scored on more rows and coalitions until they can be
    distinguished, or the budget is spent. How much is scored depends on counts, not on the clock.
    The same call on the same data, with a model of the same predictions, returns the same choice
    at once.

    Parameters
    ----------
    X : data frame or array of shape (n_rows, n_features)
        The rows. With fewer than 20 nothing is scored, and the simplest candidate is chosen.
    candidates : dict from str to sampler, or iterable of samplers, optional
        Simplest first; copies are fitted. By default, the registered candidates for the data: for
        numbers `Gaussian`, `GaussianCopula`, `Mix`, `Neighbors`; for classes, and for both, `Mix`,
        `Neighbors`.
    predict : callable, optional
        The model: a function from rows to predictions, of shape (n_rows,) or (n_rows, n_outputs),
        such as ``model.predict`` or ``model.predict_proba``.
    groups : mapping of str to iterables of str, optional
        Features that are known or unknown together.
    n_coalitions : int, default=8
        Coalitions for each block of up to 64 rows, as random orderings give them.
    n_draws : int, default=8
        Draws for each row and coalition, an even number: the MSEv needs two sets.
    test_share : float, default=0.25
        Share of the rows that are held out. Of fewer than 400 rows each is held out once. Rows
        with a category that no training row has stay among the training rows: samplers cannot
        condition on categories they have not seen.
    max_rows : int, default=4000
        Maximal number of rows for the choice, taken at random. Candidates are fitted to at most
        3,000 of them, and to fewer if there are more than 20 columns.
    seconds : float, default=2.0
        About how long the comparison may take on a common machine. Candidates that would take
        longer are not tried, and listed as such.
    discrete, kinds, dtype, max_bytes
        Options of the default candidates, see :class:`~dsage.samplers.base.BaseSampler`.
    random_state : int, numpy Generator or None, default=0
        Seed.
    rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
        Another name of `random_state`; pass one of the two.
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
    check_options(n_coalitions, n_draws, test_share, max_rows, seconds)
    columns: dict[str, Any] = {"discrete": discrete, "kinds": kinds, "groups": groups}
    layout = Layout.of(X, **columns)
    streams = Streams(one_seed(random_state, rng, default=0))
    players = None if groups is None else Groups(groups, layout.names)
    table = Table.of(
        X,
        layout,
        columns=columns,
        players=players,
        test_share=test_share,
        max_rows=max_rows,
        streams=streams,
    )
    if candidates is None:
        named = default_candidates(table, dtype=dtype, max_bytes=max_bytes)
    else:
        named = _name_candidates(candidates)
    return choose_among(
        table,
        named,
        predict,
        n_coalitions=n_coalitions,
        n_draws=n_draws,
        budget=Budget(seconds),
        is_kept=candidates is None,
        progress=progress,
    )


def default_candidates(table: Table, **options: Any) -> dict[str, Sampler]:  # noqa: ANN401
    """Make the registered candidates for a table, simplest first."""
    seed = int(table.streams("choose-seed").integers(2**31))
    n_categories = table.layout.n_categories
    return candidates_for(n_categories, random_state=seed, **table.columns, **options)


def check_options(
    n_coalitions: int, n_draws: int, test_share: float, max_rows: int, seconds: float
) -> None:
    """Refuse options that do not fit."""
    check_count(n_coalitions, "n_coalitions")
    if check_count(n_draws, "n_draws", minimum=2) % 2:
        raise refusal("n_draws", "an even number", n_draws, "The MSEv needs two sets of draws")
    check_count(max_rows, "max_rows", minimum=MIN_ROWS)
    check_real(test_share, "test_share", above=0.0, high=0.9)
    check_real(seconds, "seconds", above=0.0, high=math.inf)


def choose_among(
    table: Table,
    named: Mapping[str, Sampler],
    predict: Predict | None,
    *,
    n_coalitions: int = 8,
    n_draws: int = 8,
    budget: Budget,
    is_kept: bool = False,
    progress: bool = False,
) -> Choice:
    """Choose one of several samplers, given simplest first; see :func:`choose_sampler`.

    If `is_kept`, a previous choice for the same table, predictions and options is returned.
    """
    if len(table.matrix) < MIN_ROWS or not table.parts:
        return _choose_simplest(table, named)
    scorer = table.scorer(predict, n_draws)

    def choose() -> tuple[Choice, list[DsageWarning]]:
        with record_warnings(show=False) as told:
            outcome = compare_candidates(
                table,
                name_contenders(dict(named)),
                scorer,
                n_coalitions=n_coalitions,
                budget=budget,
                progress=progress,
            )
            decision = outcome.decision()
            sampler = fit_to_all(named[decision.chosen], table.X)
        tied = {name: named[name] for name in decision.tied}
        return Choice(sampler, decision, outcome.scores(decision.chosen, "chosen"), tied), told

    if is_kept and table.matrix.nbytes <= _KEPT_BYTES:
        data = (table.layout, table.matrix, table.players.members, scorer.outputs)
        options = table.streams.entropy, n_coalitions, n_draws, budget.seconds, scorer.has_model
        makes = tuple((name, type(each), repr(each)) for name, each in named.items())
        key = joblib.hash(data), joblib.hash([part.at for part in table.parts]), options, makes
        choice, told = _choices.get(key, choose)
    else:
        choice, told = choose()
    for each in told:
        warn(each.text, type(each))
    # Refitting the returned sampler must not change the cached one.
    return replace(choice, sampler=copy.copy(choice.sampler))


_choices: Recent[tuple[Choice, list[DsageWarning]]] = Recent(_KEPT)


def fit_to_all(sampler: Sampler, X: Any, y: Any = None) -> Any:  # noqa: ANN401
    """Return a copy that is fitted to all rows; a user's object is unwrapped.

    `y` is the target, which few samplers need.
    """
    fitted = sampler.clone().fit_rows(X, y)
    return fitted.given if isinstance(fitted, AdaptedSampler) else fitted


def _choose_simplest(table: Table, named: Mapping[str, Sampler]) -> Choice:
    """Return the first candidate that can be fitted, of a table with too few rows for scores."""
    failed = []
    last = {Marginal.__name__: Marginal(**table.columns)}
    for name, sampler in {**named, **last}.items():
        try:
            fitted = fit_to_all(sampler, table.X)
        except (ValueError, TypeError, np.linalg.LinAlgError) as error:
            failed.append(f"{name} ({type(error).__name__}: {error})")
            continue
        n_rows = len(table.matrix)
        few = f"{n_rows} {'row is' if n_rows == 1 else 'rows are'} too few"
        if n_rows >= MIN_ROWS:
            few = f"Too few of the {n_rows} rows have categories that occur more than once"
        warn(
            f"{few} to score samplers: {name}, the simplest one for such columns, is used, and how "
            "well it fits is not known."
        )
        decision = Decision(name, name, math.nan, basis=Basis.FEW_ROWS)
        return Choice(fitted, decision, pd.DataFrame(), {})
    raise refusal("candidates", "able to draw such data", failed, "Pass other candidates")


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


@dataclass(kw_only=True, eq=False, repr=False)
class Auto(BaseEstimator, Sampler):  # type: ignore[misc]
    """Choose a sampler during `fit`, and draw from it.

    Parameters
    ----------
    candidates, predict, groups, n_coalitions, n_draws, test_share, max_rows, seconds, discrete
        See :func:`choose_sampler`.
    dtype, max_bytes
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
    predict: Predict | None = None
    groups: Mapping[str, Sequence[str]] | None = None
    n_coalitions: int = 8
    n_draws: int = 8
    test_share: float = 0.25
    max_rows: int = 4000
    seconds: float = 2.0
    discrete: str | Iterable[str] = ()
    kinds: Mapping[str, str] | None = None
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

    def draw_rows(self, rows: Floats, known: Mask, noise: Floats) -> Floats:
        """Draw from the chosen sampler; see :meth:`Sampler.draw_rows`."""
        check_is_fitted(self)
        return self._chosen.draw_rows(rows, known, noise)

    @property
    def has_mean(self) -> bool:  # type: ignore[override]
        """Whether the chosen sampler has a `mean`."""
        return self.is_fitted and self._chosen.has_mean

    def mean(self, X: Any, known: Mask) -> Floats:  # noqa: ANN401
        """Return the conditional expectation, if the chosen sampler has it."""
        check_is_fitted(self)
        return self._chosen.mean(X, known)
