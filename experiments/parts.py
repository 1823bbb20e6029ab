"""List all experiments in the order of the page."""

from __future__ import annotations

from experiments.beyond import BEYOND
from experiments.convergence import CONVERGENCE
from experiments.drug import DRUG
from experiments.graphs import GRAPHS
from experiments.independence import INDEPENDENCE
from experiments.models import MODELS_PART
from experiments.part import Part
from experiments.runtime import RUNTIME
from experiments.structure import STRUCTURE
from experiments.values import VALUES

PARTS: dict[str, Part] = {
    part.name: part
    for part in (
        GRAPHS,
        STRUCTURE,
        MODELS_PART,
        RUNTIME,
        VALUES,
        CONVERGENCE,
        DRUG,
        INDEPENDENCE,
        BEYOND,
    )
}
