"""All experiments, in the order of the page."""

from __future__ import annotations

from experiments.graphs import GRAPHS
from experiments.independence import INDEPENDENCE
from experiments.part import Part
from experiments.structure import STRUCTURE

PARTS: dict[str, Part] = {part.name: part for part in (GRAPHS, STRUCTURE, INDEPENDENCE)}
