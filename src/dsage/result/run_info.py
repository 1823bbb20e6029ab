"""The record of a run: every choice that was made, as typed attributes."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import Any

import numpy as np

from dsage._version import __version__
from dsage.data.groups import Groups
from dsage.data.inputs import Inputs
from dsage.data.kinds import Kind
from dsage.data.portions import encoded_portions
from dsage.estimate import Estimate, LocalEstimate, PlanOptions, SamplerCheck, Stopping
from dsage.games import GameOptions
from dsage.models.losses import LossReason
from dsage.models.resolve import LossSource, ModelInfo
from dsage.orderings import Order
from dsage.samplers.info import Decision, SamplerInfo, SamplerSource
from dsage.structure.info import GraphInfo, GraphSource
from dsage.structure.searches.base import METHODS

# Scanning the installed packages takes half a second.
_distributions = cache(packages_distributions)

# The options of the game and the plan that are recorded as they are.
_RECORDED = (
    "semantics", "first_level", "exact", "rows_per_ordering", "cache_bytes",
    "n_draws", "n_replicates", "noise", "max_bytes",
)  # fmt: skip

_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "networkx")
# Distributions whose names differ from their packages; others are searched for.
_NAMES = {"sklearn": "scikit-learn"}
# Larger counts are shown as powers of ten.
_LARGEST_SHOWN = 10**15
# Longer lists of names are cut.
_MOST_LISTED = 20
# A str enum equals its value, so its class is part of the key.
_WORDS: dict[tuple[type[Enum], str], str] = {
    (GraphSource, "none"): "none: nothing is skipped",
    (GraphSource, "learned"): "learned from the training rows",
    (GraphSource, "vote"): "given: a vote of graphs",
    (LossSource, "chosen"): "chosen for the model and the target",
    (LossReason, "classifier"): "the model is a classifier",
    (LossReason, "regressor"): "the model is a regressor",
    (LossReason, "objective"): "the model was fitted with it",
    (LossReason, "last layer"): "the last layer of the module gives probabilities",
    (LossReason, "probabilities"): "the model returns probabilities of the target's classes",
    (LossReason, "labels"): "the model returns classes",
    (LossReason, "classes"): "the target has classes",
    (LossReason, "numbers"): "target and predictions are numbers",
    (SamplerSource, "chosen"): "chosen by its held-out score",
    (SamplerSource, "named"): "given by name",
}


@dataclass(frozen=True)
class DataInfo:
    """The rows of a run.

    `class_numbers` are the features that are numbers and were declared to be classes, `digest` is a
    hash of the evaluation rows and their targets, `container` the kind of data frame or array,
    `is_shared` whether graph and sampler were learned from the evaluation rows, and
    `outputs` the columns of the target, if it has several. `kinds` and `share_missing`, the share
    of missing values in all rows, have an entry per feature, or none in files of earlier versions.
    """

    target: str
    n_features: int
    n_class_features: int
    class_numbers: tuple[str, ...]
    n_groups: int | None
    n_rows_train: int
    n_rows_evaluation: int
    digest: str | None
    container: str
    kinds: dict[str, Kind] = field(default_factory=dict)
    share_missing: dict[str, float] = field(default_factory=dict)
    is_shared: bool = False
    outputs: tuple[str, ...] = ()

    @classmethod
    def of(cls, inputs: Inputs, groups: Groups | None) -> DataInfo:
        """Describe the rows."""
        return cls(
            target=inputs.target,
            n_features=len(inputs.names),
            n_class_features=int((inputs.layout.n_categories > 0).sum()),
            class_numbers=tuple(inputs.discrete),
            n_groups=None if groups is None else len(groups.members),
            n_rows_train=len(inputs.y_train),
            n_rows_evaluation=len(inputs.y_test),
            digest=_digest(inputs),
            container=inputs.layout.kind,
            kinds=dict(zip(inputs.names, inputs.layout.kinds, strict=True)),
            share_missing=inputs.share_missing(),
            is_shared=inputs.is_shared,
            outputs=inputs.outputs,
        )


@dataclass(frozen=True)
class LossInfo:
    """The loss, whether it was given or chosen, and why it was chosen."""

    name: str
    source: LossSource
    reason: LossReason | None = None


@dataclass(frozen=True)
class EstimateInfo:
    """The estimand, the options of the estimation, and why it ended.

    `is_asymmetric` says whether the orderings respect a partial order, `is_exact` whether all of
    them were averaged, and `stopped_because` the reason for stopping in words (`Estimate.reason`
    has it for programs). The options are those of :class:`dsage.estimate.PlanOptions` and
    :class:`dsage.games.GameOptions`.
    """

    estimand: str
    orderings: str
    is_asymmetric: bool
    n_orderings: int
    is_exact: bool
    stopping: str
    stopped_because: str
    has_audit: bool
    semantics: str
    first_level: str
    exact: str
    rows_per_ordering: int | None
    cache_bytes: int
    n_draws: int
    n_replicates: int
    noise: str
    max_bytes: int
    is_weighted: bool

    @classmethod
    def of(
        cls,
        estimate: Estimate | LocalEstimate,
        stopping: Stopping | None,
        game: GameOptions,
        plan: PlanOptions,
    ) -> EstimateInfo:
        """Describe an estimate."""
        options = vars(plan) | vars(game)
        orderings = plan.orderings
        is_named = isinstance(orderings, (str, Order))
        return cls(
            estimand=estimate.estimand,
            orderings=str(orderings) if is_named else f"given: {type(orderings).__name__}",
            is_asymmetric=isinstance(orderings, Order),
            n_orderings=estimate.n_orderings,
            is_exact=estimate.is_exact,
            stopping="default" if stopping is None else repr(stopping),
            stopped_because=str(estimate.reason),
            has_audit=estimate.audit is not None,
            is_weighted=game.sample_weight is not None,
            **{name: options[name] for name in _RECORDED},
        )


@dataclass(frozen=True)
class EvaluationInfo:
    """How much was evaluated, reused and skipped.

    `n_made` and `n_shared` are the pairs of a coalition and a row that were evaluated, and that
    were taken from memory. `n_skipped` surpluses are zero by separation; `share_skipped` is the
    mean of their shares over the features. `n_sampler_check` are the pairs on which the sampler was
    compared with others, each evaluated with both.
    """

    n_made: int
    n_shared: int
    n_surpluses: int
    n_skipped: int
    share_skipped: float
    n_sampler_check: int = 0

    @classmethod
    def of(cls, estimate: Estimate, check: SamplerCheck | None = None) -> EvaluationInfo:
        """Count the evaluations of an estimate."""
        shares = map(Fraction, estimate.share_skipped)
        return cls(
            n_made=estimate.n_evaluated,
            n_shared=estimate.n_shared,
            n_surpluses=estimate.n_surpluses * len(estimate.feature_names),
            n_skipped=round(sum(shares, Fraction(0)) * estimate.n_surpluses),
            share_skipped=float(estimate.share_skipped.mean()),
            n_sampler_check=0 if check is None else check.n_evaluated,
        )

    @classmethod
    def of_rows(cls, estimates: Sequence[LocalEstimate]) -> EvaluationInfo:
        """Count the evaluations of estimates of single rows, one for each output."""
        skipped, counts = [], []
        for each in estimates:
            n_rows, n_features = each.values.shape
            shares = sum(map(Fraction, each.share_skipped), Fraction(0))
            skipped.append(round(shares * each.n_orderings * n_rows))
            counts.append(each.n_orderings * n_rows * n_features)
        return cls(
            n_made=sum(each.n_evaluated for each in estimates),
            n_shared=sum(each.n_shared for each in estimates),
            n_surpluses=sum(counts),
            n_skipped=sum(skipped),
            share_skipped=float(np.mean([each.share_skipped.mean() for each in estimates])),
        )


@dataclass(frozen=True)
class SecondsInfo:
    """The time that each phase took, and the whole call; `check` compares samplers."""

    graph: float
    sampler: float
    estimate: float
    total: float
    check: float = 0.0


@dataclass(frozen=True)
class SessionInfo:
    """How to repeat the run; the seed is text, since some programs cannot read large integers."""

    random_state: str
    n_jobs: int | None
    checkpoint: str | None


@dataclass(frozen=True, repr=False)
class RunInfo:
    """Every choice of a run, whether it was made by the user or by `explain`.

    It shows as a listing of all attributes that apply.

    Attributes
    ----------
    model : ModelInfo
        The model.
    data : DataInfo
        The rows.
    graph : GraphInfo
        How the graph was found.
    sampler : SamplerInfo
        How the sampler was found.
    loss : LossInfo
        The loss.
    estimate : EstimateInfo
        The estimand, and the options of the estimation.
    evaluations : EvaluationInfo
        How much was evaluated, reused and skipped.
    seconds : SecondsInfo
        The time that each phase took.
    versions : dict of str to str
        The versions of Python and of the packages.
    run : SessionInfo
        Seed, jobs and checkpoint.
    """

    model: ModelInfo
    data: DataInfo
    graph: GraphInfo
    sampler: SamplerInfo
    loss: LossInfo
    estimate: EstimateInfo
    evaluations: EvaluationInfo
    seconds: SecondsInfo
    versions: dict[str, str]
    run: SessionInfo

    def to_dict(self) -> dict[str, Any]:
        """Return nested dictionaries of plain values, which JSON can store."""
        return {name: plain(value) for name, value in asdict(self).items()}

    def listing(self) -> dict[str, dict[str, str]]:
        """Return section -> name -> value in words; values that do not apply are left out."""
        found = {
            section.name: {
                name: text
                for name, value in _items(getattr(self, section.name))
                if value is not None and value != () and (text := word(value))
            }
            for section in fields(self)
        }
        method = self.graph.method
        if method is not None and method in METHODS:
            found["graph"]["method"] += f": {METHODS.summary(method)}"
        return found

    def __repr__(self) -> str:
        lines: list[str] = []
        for section, named in self.listing().items():
            width = max(map(len, named), default=0)
            lines.append(section)
            lines += [f"  {name:<{width}}  {text}" for name, text in named.items()]
        return "\n".join(lines)


def find_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python, dsage, its dependencies, and the packages of the model."""
    found = {"dsage": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        if (own := _version(name)) is not None:
            found[name] = own
    for package in packages:
        name = _NAMES.get(package, package)
        # Looking into all distributions takes most of a second.
        is_known = name in found or _version(name) is not None
        for each in [name] if is_known else _distributions().get(package, []):
            if (own := _version(each)) is not None:
                found.setdefault(each, own)
    return found


@cache
def _version(name: str) -> str | None:
    """Return the version of a distribution; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def word(value: Any) -> str:  # noqa: ANN401
    """Return a choice in words."""
    if isinstance(value, Enum):
        return _WORDS.get((type(value), value.value), str(value.value))
    if isinstance(value, Decision):
        return value.words()
    if isinstance(value, tuple):
        return ", ".join([*map(word, value[:_MOST_LISTED]), *["..."] * (len(value) > _MOST_LISTED)])
    if isinstance(value, Mapping):
        return _word_columns(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        is_shown = abs(value) < _LARGEST_SHOWN
        return f"{value:,}" if is_shown else f"10^{math.log10(abs(value)):.1f}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def _word_columns(values: Mapping[str, Any]) -> str:
    """Return an attribute of columns in words: the columns of each kind, or shares above zero."""
    if all(isinstance(value, float) for value in values.values()):
        return word(tuple(f"{name} {value:.1%}" for name, value in values.items() if value))
    kinds = dict.fromkeys(values.values())
    parts = {kind: tuple(name for name, each in values.items() if each is kind) for kind in kinds}
    return "; ".join(f"{word(kind)}: {word(names)}" for kind, names in parts.items())


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return `value` in a form that JSON can store; NaN and infinities become None."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _items(section: Any) -> Iterable[tuple[str, Any]]:  # noqa: ANN401
    if is_dataclass(section):
        return [(each.name, getattr(section, each.name)) for each in fields(section)]
    return section.items()  # type: ignore[no-any-return]


def _digest(inputs: Inputs) -> str:
    """Return a hash of the evaluation rows and their targets."""
    found, y = hashlib.sha256(), inputs.y_test
    for matrix in encoded_portions(inputs.layout, inputs.X_test, len(y)):
        found.update(matrix.data)
    found.update(y.tobytes() if y.dtype.kind in "fiub" else repr(y.tolist()).encode())
    return found.hexdigest()[:16]
