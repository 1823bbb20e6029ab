"""What a run is doing now, where no bars show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dsage.cli.errors import note
from dsage.result.events import Event, Phase, PhaseStarted

PHASES = {
    Phase.GRAPH: "Learning the graph ...",
    Phase.SAMPLER: "Scoring samplers ...",
    Phase.ESTIMATE: "Estimating ...",
}
"""The phases of a run, in words."""


def tell_phases(words: Mapping[Phase, str]) -> Callable[[Event], None]:
    """Return a listener that notes each phase in `words` when it starts."""

    def listen(event: Event) -> None:
        if isinstance(event, PhaseStarted) and event.phase in words:
            note(words[event.phase])

    return listen
