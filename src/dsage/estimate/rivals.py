"""Compare the sampler of a run with other samplers, and warn if the values depend on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dsage._check import SamplerWarning, Setting, Text, warn
from dsage._random import Streams
from dsage.data.frames import take_rows
from dsage.data.inputs import Inputs
from dsage.estimate.options import PlanOptions
from dsage.estimate.result import Estimate
from dsage.estimate.sampler_check import Other, SamplerCheck, check_by_others
from dsage.games.base import Game, Rows
from dsage.graphs.separation import Oracle
from dsage.samplers.base import check_sampler
from dsage.samplers.choose import fit_to_all
from dsage.samplers.resolve import SamplerFound

# With fewer training rows, a fit to half of them is not informative.
_FEWEST_ROWS = 40
# Evaluation rows of a comparison: it visits few of very many, and both games hold and predict all.
# With many features fewer, as there are sums for each row and feature.
_MOST_ROWS, _FEWER_ROWS, _CELLS = 1 << 14, 1 << 12, 1 << 19


def check_sampler_of_run(
    found: SamplerFound,
    estimate: Estimate,
    game: Game,
    make_game: Callable[..., Game],
    inputs: Inputs,
    *,
    oracle: Oracle | None,
    n_draws: int,
    options: PlanOptions,
    seed: int,
    is_wanted: bool,
    n_draws_of_run: int | None = None,
) -> SamplerCheck:
    """Estimate how much the values of a run would change with another sampler, and warn of it.

    The other samplers are those that score as well as the sampler of the run, or the best of the
    candidates if it scores clearly better. If no other scores as well, it is the same sampler
    fitted to half of the rows: as the variance of a fit falls with the number of rows, the
    difference has the variance of the fit to all rows.
    """
    names = estimate.feature_names
    if not is_wanted:
        return SamplerCheck.none(names, "it was turned off")
    if check_sampler(found.sampler).is_marginal:
        text = "the sampler is marginal: with other samplers the estimand would be different"
        return SamplerCheck.none(names, text)
    streams = Streams(seed)
    try:
        # Draws of two samplers share most of their noise, unless a control removes part of it.
        make_game = partial(make_game, is_controlled=False)
        most = min(_MOST_ROWS, max(_FEWER_ROWS, _CELLS // len(names)))
        if game.n_rows > most:
            chosen = streams("rows-of-the-check").choice(game.n_rows, most, replace=False)
            make_game = partial(make_game, rows=np.sort(chosen))
        game = make_game(found.sampler)
        check = check_by_others(
            game,
            make_game,
            _find_others(found, inputs, streams),
            estimate,
            sampler=check_sampler(found.sampler),
            oracle=oracle,
            n_draws=n_draws,
            n_draws_of_run=n_draws_of_run,
            options=options,
            seed=int(streams("sampler-check").integers(2**31)),
        )
    except KeyboardInterrupt:
        check = SamplerCheck.none(names, "the comparison with other samplers was interrupted")
    # The values are already estimated and must not be lost: a model may fail in any way on draws
    # of another sampler.
    except Exception as error:
        reason = f"the comparison with other samplers failed ({type(error).__name__}: {error})"
        check = SamplerCheck.none(names, reason)
        warn(f"The error of the sampler is unknown: {reason}.")
    _warn(check, estimate, found.info.name)
    return check


def _find_others(found: SamplerFound, inputs: Inputs, streams: Streams) -> list[Other]:
    n_rows = len(inputs.y_train)
    others = [
        Other(
            rival.name,
            rival.sampler,
            partial(fit_to_all, rival.sampler, inputs.X_train, inputs.y_train),
            n_rows,
            rival.is_better,
        )
        for rival in found.rivals
    ]
    if others or found.unfitted is None or n_rows < _FEWEST_ROWS:
        return others
    rows = _half(inputs, streams)
    name = f"{found.info.name}, fitted to half of the rows"
    fit = partial(fit_to_all, found.unfitted, take_rows(inputs.X_train, rows), inputs.y_train[rows])
    return [Other(name, found.unfitted, fit, len(rows), is_own=True)]


def _half(inputs: Inputs, streams: Streams) -> Rows:
    """Return a random half of the training rows, and a row of each category."""
    n_rows = len(inputs.y_train)
    rows = [streams("half-of-the-rows").permutation(n_rows)[: n_rows // 2]]
    matrix = inputs.layout.encode(inputs.X_train)
    for column in np.flatnonzero(inputs.layout.n_categories):
        rows.append(np.unique(matrix[:, column], return_index=True)[1])
    return np.unique(np.concatenate(rows))


def _warn(check: SamplerCheck, estimate: Estimate, name: str) -> None:
    """Warn of the features whose value depends on the sampler more than on anything else."""
    features = check.exceeds(estimate)
    if not features:
        return
    better = [other for other, is_so in zip(check.others, check.are_better, strict=True) if is_so]
    if better:
        start = f"{better[0]} scores clearly better than {name} on held-out rows, and with it"
    elif check.is_own:
        start = f"With {name} fitted to half of the rows"
    else:
        start = f"With {' or '.join(check.others)}, which scores as well as {name},"
    text = f"{start} the values of {features} would change by more than their other errors. "
    if better:
        remedy = Setting("sampler", "auto")
        warn(Text([text, "Choose the sampler by its scores: ", remedy, "."]), SamplerWarning)
    else:
        ending = "Look at explanation.sampler_check; more training rows would reduce this error."
        warn(f"{text}{ending}", SamplerWarning)
