"""Attribute the reduction of the risk to the edges of a causal graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from dsage._check import check_member, record_warnings
from dsage._random import RandomState, RngLike, one_seed
from dsage.data.inputs import Inputs, check_inputs
from dsage.estimate import Stopping, as_stopping
from dsage.estimate.running.stopping import DataTolerance
from dsage.flow import FlowGame, Network, estimate_flow
from dsage.flow.estimate import MIN_PAIRS
from dsage.games import GameOptions
from dsage.models.losses import Loss
from dsage.models.resolve import ResolvedModel, find_model
from dsage.result.flow import SOURCES, FlowEdge, FlowExplanation
from dsage.samplers.choose import fit_to_all
from dsage.samplers.resolve import parse_sampler
from dsage.steps import make_seed
from dsage.structure.constraints import Edges
from dsage.structure.knowledge import Knowledge
from dsage.workflows.flow_parts import Nodes, fit_nodes, resolve_graph

# The game draws only noise, which has no control variate.
_OPTIONS = tuple(
    name for name in GameOptions.names() if name not in ("draw_control", "random_state")
)


def explain_flow(
    model: Any,  # noqa: ANN401
    X_train: Any,  # noqa: ANN401
    y_train: Any,  # noqa: ANN401
    X_test: Any = None,  # noqa: ANN401
    y_test: Any = None,  # noqa: ANN401
    *,
    graph: Any,  # noqa: ANN401
    sources: Literal["noise", "do"] = "noise",
    model_first: bool = False,
    loss: str | Callable[..., Any] | Loss = "auto",
    tolerance: float | None = None,
    absolute: float | None = None,
    seconds: float | None = None,
    n_orderings: int | None = None,
    tiers: Iterable[Iterable[str]] | None = None,
    forbidden: Edges = (),
    required: Edges = (),
    target: str | None = None,
    classes: Sequence[Any] | None = None,
    discrete: str | Iterable[str] = (),
    kinds: Mapping[str, str] | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    rng: RngLike = None,
    progress: bool = True,
    **options: Any,  # noqa: ANN401
) -> FlowExplanation:
    """Attribute the reduction of a model's risk to the edges of a causal graph.

    This is Shapley flow (Wang, Wiens & Lundberg, 2021) for a loss instead of a prediction. Each
    node of the graph is a function of its parents and of independent noise, learned from the
    training rows. At first all noise is drawn at random: the model knows nothing about the row.
    Then the noise of one node after the other is set to the row's noise. A node whose value changes
    sends it to its children and to the model. When a message arrives at the model, the reduction of
    the loss is credited to every edge on its path. The flow is the mean over all orders in which
    messages travel depth first. The flow into a node equals the flow out of it, and the flow into
    the model is the reduction of the risk.

    Parameters
    ----------
    model, X_train, y_train, X_test, y_test
        As for :func:`dsage.explain`. The mechanisms are learned from the training rows.
    graph : Graph or other graph, str or callable
        A DAG over the features and the target, see :func:`dsage.graphs.as_graph`. Cycles,
        bidirected and undirected edges are refused. ``"learn"``, or a method of
        :func:`dsage.learn_graph`, learns one; a warning names the edges whose direction the data do
        not determine. In addition, every feature has an edge to the model.
    sources : {"noise", "do"}, default="noise"
        How the flow starts. ``"noise"``: the noise of a node is set to the row's noise; the flow
        from a source is the node's own contribution, beyond its causes. ``"do"``: a feature is set
        to its value in the row, regardless of its parents; the flow from a source is the feature's
        causal SAGE value.
    model_first : bool, default=False
        Whether a node sends its value to the model before it sends it to other nodes. By default
        this order is random, too. If it is true, and ``sources="do"``, the direct parts are the
        direct effects of Heskes et al. (2020).
    loss, target, classes, discrete, kinds
        As for :func:`dsage.explain`.
    tiers, forbidden, required
        Constraints on a learned graph, as for :func:`dsage.explain`.
    tolerance, absolute, seconds, n_orderings : float or int, optional
        Stop at the first of these limits that is met, as for :func:`dsage.explain`; they apply to
        the values of the edges. By default, stop when the error from computing is small compared
        with the error from the choice of the rows. A time limit is checked after each pair of
        passes over the rows.
    n_jobs : int, optional
        Number of parallel jobs; results do not depend on it.
    random_state : int, numpy Generator or None, default=None
        Seed of everything.
    rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
        Another name for `random_state`, as in SciPy; pass one of the two.
    progress : bool, default=True
        Show a progress bar.
    **options
        `n_draws`, `n_replicates`, `noise`, `sample_weight` and `max_bytes`, see
        :class:`dsage.games.GameOptions`.

    Returns
    -------
    FlowExplanation
        An interrupt (Ctrl-C) of the estimation returns the values so far.

    Examples
    --------
    >>> import numpy as np
    >>> import dsage
    >>> from sklearn.linear_model import LinearRegression
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(1000, 2))
    >>> X[:, 1] += X[:, 0]  # the first feature acts on the second
    >>> y = X[:, 1] + generator.normal(size=1000)
    >>> model = LinearRegression().fit(X[:500], y[:500])
    >>> graph = dsage.Graph(["X1", "X2", "target"], [("X1", "X2"), ("X2", "target")])
    >>> found = explain_flow(model, X[:500], y[:500], X[500:], y[500:], graph=graph,
    ...                      random_state=0, progress=False)
    >>> found["X1", "X2"]["value"].round(1)
    np.float64(1.0)
    >>> found.node_table().loc["X2", ["own", "through"]].round(1).tolist()
    [0.9, 1.0]
    """
    check_member(sources, SOURCES, "sources", "the sources")
    others = [name for name in explain_flow.__kwdefaults__ or () if name != "graph"]
    for option in options:
        check_member(option, [*_OPTIONS, *others], "each option", "the options of a flow")
    stopping = _stopping(
        tolerance=tolerance, absolute=absolute, seconds=seconds, n_orderings=n_orderings
    )
    seed = make_seed(one_seed(random_state, rng), None)
    with record_warnings() as warned:
        columns: dict[str, Any] = {"discrete": discrete, "kinds": kinds}
        inputs = check_inputs(X_train, y_train, X_test, y_test, target=target, **columns)
        resolved = find_model(model, loss, classes, inputs)
        is_of_classes = resolved.loss.is_of_classes
        checked = GameOptions.read({**options, "random_state": seed})
        checked.row_weights(len(inputs.y_test))
        found = resolve_graph(
            graph,
            inputs,
            is_of_classes=is_of_classes,
            n_jobs=n_jobs,
            seed=seed,
            progress=progress,
            knowledge=Knowledge.read(
                [*inputs.names, inputs.target], tiers=tiers, forbidden=forbidden, required=required
            ),
        )
        network = Network(
            found,
            inputs.names,
            inputs.target,
            is_set=sources == "do",
            model_first=model_first,
        )
        nodes = fit_nodes(network, inputs, is_of_classes=is_of_classes)
        game = _make_game(resolved, inputs, network, nodes, checked, seed)
        estimate = estimate_flow(game, stopping, seed=seed, n_jobs=n_jobs, progress=progress)
    carrying = [FlowEdge(*network.names(edge)) for edge in network.listed]
    idle = [FlowEdge("edge", *edge) for edge in network.idle]
    return FlowExplanation(
        edges=(*carrying, *idle),
        nodes=network.nodes,
        estimate=estimate,
        sources=sources,
        model_first=model_first,
        graph=found,
        target=inputs.target,
        loss=resolved.loss.name,
        model=resolved.info.name,
        feature_names=inputs.names,
        mechanisms=nodes.table,
        n_rows=len(inputs.y_test),
        seed=str(seed),
        warnings=tuple(dict.fromkeys(str(each) for each in warned)),
    )


def _make_game(
    resolved: ResolvedModel,
    inputs: Inputs,
    network: Network,
    nodes: Nodes,
    options: GameOptions,
    seed: int,
) -> FlowGame:
    """Return the game of messages along the edges, with a marginal sampler."""
    marginal = parse_sampler("marginal", inputs, seed=seed).sampler
    if marginal is None:
        raise RuntimeError("the marginal sampler has no object")
    return FlowGame(
        resolved.model,
        fit_to_all(marginal, inputs.X_train),
        inputs.X_test,
        inputs.y_test,
        network=network,
        mechanisms=nodes.mechanisms,
        values=nodes.values,
        loss=resolved.loss,
        **vars(options),
    )


def _stopping(**limits: Any) -> Stopping:  # noqa: ANN401
    """Return the stopping rule for the given limits; units are pairs of passes."""
    given = {name: limit for name, limit in limits.items() if limit is not None}
    return (
        as_stopping(**given, min_units=MIN_PAIRS) if given else DataTolerance(min_units=MIN_PAIRS)
    )
