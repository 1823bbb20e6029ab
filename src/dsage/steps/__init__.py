"""Steps of a run between the inputs and the estimate, shared by `explain` and the workflows."""

from dsage.steps.causal import find_range, warn_of_open_directions
from dsage.steps.clock import Clock
from dsage.steps.games import GameMaker, need_draws, row_losses
from dsage.steps.learning import Learned, learn_parts
from dsage.steps.record import record_run
from dsage.steps.separations import group_oracle, use_graph
from dsage.steps.settings import Settings, make_seed, split_options

__all__ = [
    "Clock",
    "GameMaker",
    "Learned",
    "Settings",
    "find_range",
    "group_oracle",
    "learn_parts",
    "make_seed",
    "need_draws",
    "record_run",
    "row_losses",
    "split_options",
    "use_graph",
    "warn_of_open_directions",
]
