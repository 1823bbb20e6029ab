"""Cross-validated explanations: fit and explain a model in every fold, and pool the values."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import clone

from dsage._check import (
    AuditWarning,
    SamplerWarning,
    check_member,
    make_bar,
    name_place,
    record_warnings,
    refusal,
    warn,
)
from dsage._random import RandomState, RngLike, Streams, one_seed
from dsage.data.frames import Frame, take_rows
from dsage.data.inputs import name_argument
from dsage.data.targets import Array, values
from dsage.estimate import PlanOptions
from dsage.explain import explain
from dsage.games import GameOptions
from dsage.games.base import Floats
from dsage.games.options import check_weights
from dsage.result.explanation import Explanation
from dsage.result.folded import FoldedExplanation
from dsage.result.pooling import number_repeats
from dsage.workflows.fold_files import FoldFiles
from dsage.workflows.splits import Fold, make_folds, take_targets

# Short enough to be read and typed.
_SEED_BITS = 32


def explain_cv(
    estimator: Any,  # noqa: ANN401
    X: Any,  # noqa: ANN401
    y: Any,  # noqa: ANN401
    cv: Any = 5,  # noqa: ANN401
    *,
    cv_groups: npt.ArrayLike | None = None,
    models: Sequence[Any] | None = None,
    fit_params: Mapping[str, Any] | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_jobs: int | None = None,
    checkpoint: str | Path | None = None,
    random_state: RandomState = None,
    rng: RngLike = None,
    progress: bool = True,
    **options: Any,  # noqa: ANN401
) -> FoldedExplanation:
    """Explain a learning procedure by cross-validation.

    In every fold, a copy of the estimator is fitted to the training rows, graph and sampler are
    learned from the same rows, and the model is explained on the other rows with
    :func:`dsage.explain`. So every row is evaluated once per repeat, by a model that was not fitted
    to it. The seed is the same in all folds, so they share orderings and noise.

    The result has the pooled values, the values of each fold, their spread, and intervals for two
    questions: what are these models worth on new rows, and what would the learning procedure be
    worth with new training rows? See :class:`dsage.FoldedExplanation`.

    Parameters
    ----------
    estimator : estimator
        An unfitted estimator or pipeline with a method ``fit``; it is copied for every fold. None
        if `models` are given.
    X, y : data frame or array of shape (n_rows, n_features), array of shape (n_rows,)
        All rows and their targets.
    cv : int, splitter or iterable, default=5
        A number of folds (stratified for a classifier, as in scikit-learn); any splitter, such as
        ``GroupKFold``, ``TimeSeriesSplit`` or ``RepeatedKFold``; or pairs of training rows and
        evaluation rows.
    cv_groups : array of shape (n_rows,), optional
        The group of each row, for splitters that keep groups together. (The option `groups` of
        :func:`dsage.explain` is about features.)
    models : sequence of fitted models, optional
        The fitted models of the folds, in order, as in ``cross_validate(...,
        return_estimator=True)["estimator"]``. `cv` must produce the same folds again.
    fit_params : mapping of str to objects, optional
        Passed to ``fit``. Values with one entry per row are split like the rows.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows in the evaluation; to fit with them as well, repeat them in
        `fit_params`.
    n_jobs : int, optional
        Number of folds that are explained at the same time, in separate processes; results do not
        depend on it.
    checkpoint : str or Path, optional
        A folder, which is created if it does not exist. It stores the explanation of each finished
        fold, and the state of unfinished ones: the same call resumes where it stopped.
    random_state : int, numpy Generator or None, default=None
        Seed of everything except the estimator and the splitter, which have their own.
    rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
        Another name for `random_state`, as in SciPy; pass one of the two.
    progress : bool, default=True
        Show a progress bar of the folds.
    **options
        As for :func:`dsage.explain`: `graph`, `sampler`, `loss`, `groups` of features,
        `tolerance`, and so on.

    Returns
    -------
    FoldedExplanation
        An interrupt (Ctrl-C) returns the folds so far, if there are any and `n_jobs` is 1.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> X = X[["age", "bmi", "bp", "s5"]]
    >>> folded = explain_cv(LinearRegression(), X, y, sampler="gaussian", graph=None,
    ...                     sampler_check=False, random_state=0, progress=False)
    >>> folded.fold_values.shape
    (5, 4)
    >>> folded.to_frame()["feature"].tolist()
    ['bmi', 's5', 'bp', 'age']
    """
    _check_options(options)
    target = _check_rows(X, y)
    fitted = _check_models(estimator, models)
    first = estimator if fitted is None else next(iter(fitted), None)
    folds = make_folds(cv, X, target, cv_groups, first, is_fitted=fitted is not None)
    if fitted is not None and len(fitted) != len(folds):
        advice = "Pass one model per fold, with the cv that they were fitted with"
        raise refusal("models", f"{len(folds)} models, one per fold", len(fitted), advice)
    if fitted is not None and estimator is not None:
        found, advice = type(estimator).__name__, "Pass None: the models are fitted already"
        raise refusal("estimator", "None if models are given", found, advice, TypeError)
    weights = check_weights(sample_weight, len(target))
    files = None
    if checkpoint is not None:
        files = FoldFiles(checkpoint, estimator if fitted is None else fitted, X, target, folds)
        files.open(options, weights)
    seed = _make_seed(one_seed(random_state, rng), files)
    run = _FoldRun(
        X=X,
        y=y,
        estimator=estimator,
        fit_params=_check_fit_params(fit_params),
        weights=None if sample_weight is None else weights,
        options={**options, "random_state": seed, "progress": False},
        files=files,
    )
    given = [None] * len(folds) if fitted is None else fitted
    with nullcontext() if files is None else files.hold():
        explanations = _run_all(run, folds, given, n_jobs, progress=progress)
    done = folds[: len(explanations)]
    sizes = np.array([weights[fold.test].sum() for fold in done])
    folded = FoldedExplanation(
        folds=tuple(explanations),
        repeats=number_repeats(fold.test for fold in done),
        weights=sizes / sizes.sum(),
        n_planned=len(folds),
    )
    _warn_of_folds(folded, folds)
    return folded


@dataclass(frozen=True, eq=False)
class _FoldRun:
    """The settings that all folds share; calling it explains one fold."""

    X: Any
    y: Any
    estimator: Any
    fit_params: dict[str, Any]
    weights: Floats | None
    options: dict[str, Any]
    files: FoldFiles | None

    def __call__(self, fold: Fold, model: Any) -> Explanation:  # noqa: ANN401
        # The warnings of all folds are shown together at the end.
        with name_place(fold.name), record_warnings(show=False):
            if self.files is None:
                return self._explain(fold, model)
            finished = self.files.finished(fold)
            if finished is not None:
                return finished
            found = self.files.run(fold, partial(self._explain, fold, model))
            if not found.estimate.interrupted:
                self.files.finish(fold, found)
            return found

    def _explain(
        self,
        fold: Fold,
        model: Any,  # noqa: ANN401
        checkpoint: Path | None = None,
    ) -> Explanation:
        train, test = fold.train, fold.test
        X_train, y_train = take_rows(self.X, train), take_targets(self.y, train)
        if self.estimator is not None:
            copied = _copy(self.estimator)
            model = copied.fit(X_train, y_train, **self._fit_params(train))
            # Not every class follows scikit-learn's convention that fit returns the object.
            model = copied if model is None else model
        options = dict(self.options)
        if self.weights is not None:
            options["sample_weight"] = self.weights[test]
        rows = take_rows(self.X, test), take_targets(self.y, test)
        return explain(model, X_train, y_train, *rows, checkpoint=checkpoint, **options)

    def _fit_params(self, rows: npt.NDArray[np.intp]) -> dict[str, Any]:
        n_rows = len(values(self.y))
        return {
            name: take_targets(value, rows) if _is_per_row(value, n_rows) else value
            for name, value in self.fit_params.items()
        }


def _run_all(
    run: _FoldRun,
    folds: Sequence[Fold],
    models: Sequence[Any],
    n_jobs: int | None,
    *,
    progress: bool,
) -> list[Explanation]:
    """Return the explanations of the folds; fewer if the user interrupts them."""
    PlanOptions(n_jobs=n_jobs)  # refuses a wrong number
    pairs = list(zip(folds, models, strict=True))
    done: list[Explanation] = []
    results: Iterator[Explanation] = (run(*pair) for pair in pairs)
    if n_jobs not in (None, 1) and len(folds) > 1:
        results = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(run)(*pair) for pair in pairs
        )
    with make_bar(total=len(folds), desc="folds", unit="fold", disable=not progress) as bar:
        try:
            for explanation in results:
                done.append(explanation)
                bar.update()
                if explanation.estimate.interrupted:
                    break
        except KeyboardInterrupt:
            if not done:
                raise
    return done


def _check_rows(X: Any, y: Any) -> Array:  # noqa: ANN401
    """Return the targets; refuse anything but rows, and targets of another length."""
    with name_argument("X"):
        n_rows = Frame(X).n_rows
    target = values(y)
    if len(target) != n_rows:
        raise refusal("y", f"of {n_rows} rows, as X is", len(target), "Pass one target per row")
    return target


def _check_models(
    estimator: Any,  # noqa: ANN401
    models: Sequence[Any] | None,
) -> list[Any] | None:
    """Return the fitted models, or None if an estimator is to be fitted; refuse anything else."""
    if models is None:
        if isinstance(estimator, type) or not hasattr(estimator, "fit"):
            advice = "Pass an unfitted estimator; fitted models go to models="
            found = type(estimator).__name__
            if isinstance(estimator, type):
                advice, found = f"Pass an instance: {estimator.__name__}()", estimator.__name__
            raise refusal("estimator", "an object with a method fit", found, advice, TypeError)
        return None
    if isinstance(models, (str, Mapping)) or not isinstance(models, Iterable):
        advice = "Pass a list of models, one for each fold"
        raise refusal("models", "several models", type(models).__name__, advice, TypeError)
    return list(models)


def _check_fit_params(fit_params: object) -> dict[str, Any]:
    if fit_params is not None and not isinstance(fit_params, Mapping):
        advice = "Pass a dict, such as {'sample_weight': weights}"
        found = type(fit_params).__name__
        raise refusal("fit_params", "a mapping of names", found, advice, TypeError)
    return {} if fit_params is None else dict(fit_params)


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse names that are not options of `explain`."""
    known = [*(explain.__kwdefaults__ or ()), *GameOptions.names(), *PlanOptions.names()]
    for option in options:
        check_member(option, known, "each option", "the options of explain")


def _make_seed(random_state: RandomState, files: FoldFiles | None) -> int:
    """Return the given seed, the seed of the run to resume, or a new one."""
    given = None if random_state is None else Streams(random_state).entropy
    if files is not None:
        return files.agree_on_seed(given, secrets.randbits(_SEED_BITS))
    return secrets.randbits(_SEED_BITS) if given is None else given


def _copy(estimator: Any) -> Any:  # noqa: ANN401
    """Return an unfitted copy of an estimator."""
    return clone(estimator) if hasattr(estimator, "get_params") else deepcopy(estimator)


def _is_per_row(value: object, n_rows: int) -> bool:
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
        return False
    return len(value) == n_rows


def _warn_of_folds(folded: FoldedExplanation, folds: Sequence[Fold]) -> None:
    """Repeat the warnings of the folds, each text once, with the folds that it is about."""
    texts: dict[str, list[str]] = {}
    audits: dict[str, list[str]] = {}
    samplers: dict[str, list[str]] = {}
    for fold, each in zip(folds, folded.folds, strict=False):
        number = str(fold.number)
        for text in each.warnings:
            texts.setdefault(text, []).append(number)
        if each.estimate.audit is not None and each.estimate.estimand == "d-sage":
            frame = each.estimate.audit_frame()
            for name in frame.loc[frame["matters"], "feature"]:
                audits.setdefault(name, []).append(number)
        if each.sampler_check is not None:
            for name in each.sampler_check.exceeds(each.estimate):
                samplers.setdefault(name, []).append(number)
    for text, numbers in texts.items():
        warn(f"{_name_folds(numbers, len(folds))}: {text}")
    if audits:
        warn(
            f"Skipping by separation changes values: {_list(audits, len(folds))}. Look at "
            f"folds[{_first(audits)}].plot.audit(), or use estimand='sage'.",
            AuditWarning,
        )
    if samplers:
        warn(
            "Another sampler that scores as well would change values by more than their other "
            f"errors: {_list(samplers, len(folds))}. Look at "
            f"folds[{_first(samplers)}].sampler_check.",
            SamplerWarning,
        )


def _list(found: Mapping[str, Sequence[str]], n_folds: int) -> str:
    return "; ".join(f"{name} in {_name_folds(each, n_folds)}" for name, each in found.items())


def _first(found: Mapping[str, Sequence[str]]) -> int:
    """Return the position of the first fold that is named."""
    return min(int(number) for numbers in found.values() for number in numbers) - 1


def _name_folds(numbers: Sequence[str], n_folds: int) -> str:
    if len(numbers) == n_folds:
        return "all folds"
    return f"fold{'s' * (len(numbers) > 1)} {', '.join(numbers)} of {n_folds}"
