"""Compare ways of resampling for a consensus of graphs.

Run: python -m benchmarks.stability
"""

from __future__ import annotations

import numpy as np
from tqdm.auto import tqdm

from benchmarks.structure_problems import fresh_models
from benchmarks.table import markdown, publish
from dsage import learn_graph
from dsage.graphs import Graph, Oracle, compare_graphs
from dsage.structure import stability

N_GRAPHS = 20
N_QUERIES = 50_000
N_ROWS = 1_000
SHARES = (0.5, 0.9, 1.0)


def main() -> None:
    """Compare one graph with the consensus of graphs of resamples, for strong and weak edges."""
    sections = []
    for title, weights in (("weights from 0.5", (0.5, 2.0)), ("weights from 0.05", (0.05, 2.0))):
        results: dict[str, list[tuple[float, float, float]]] = {}
        models = [case for case in fresh_models(weight_range=weights) if len(case[0].graph) <= 50]
        for number, (model, target) in enumerate(tqdm(models, desc=title)):
            data = model.sample(N_ROWS, random_state=number)
            for score, options in (("extended BIC", {}), ("BIC", {"strict": True})):
                oracles: dict[str, Graph | Oracle] = {
                    f"one graph, {score}": learn_graph(data, **options)
                }
                for resample in ("half", "bootstrap"):
                    found = stability(
                        data, N_GRAPHS, resample=resample, random_state=number, n_jobs=2, **options
                    )
                    for share in SHARES:
                        label = f"{resample}, share {share:g}, {score}"
                        oracles[label] = found.oracle(target, share=share)
                for label, oracle in oracles.items():
                    result = compare_graphs(model.graph, oracle, target, N_QUERIES, random_state=0)
                    rates = (result.f1, result.recall, result.false_discovery_rate)
                    results.setdefault(label, []).append(rates)
        rows = [
            [label, *(f"{value:.3f}" for value in np.nanmean(rates, axis=0))]
            for label, rates in results.items()
        ]
        about = (
            f"{len(models)} random graphs of 10 to 50 nodes, n = {N_ROWS:,}, {title}, {N_GRAPHS} "
            "resamples."
        )
        sections.append((about, markdown(["oracle", "F1", "recall", "FDR"], rows)))
    publish("stability", "Consensus of resampled graphs", sections, ["dsage"])


if __name__ == "__main__":
    main()
