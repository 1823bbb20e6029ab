"""Games: from coalitions of known features to the risks, or the outputs, of a model."""

from dsage.games.base import Game
from dsage.games.cached import Cached
from dsage.games.difference import Difference
from dsage.games.grouped import Grouped
from dsage.games.linear import LinearOutput
from dsage.games.loss import LossGame
from dsage.games.moment import CheapGame, MomentGame
from dsage.games.output import OutputGame
from dsage.games.wrap import Boundary

__all__ = [
    "Boundary",
    "Cached",
    "CheapGame",
    "Difference",
    "Game",
    "Grouped",
    "LinearOutput",
    "LossGame",
    "MomentGame",
    "OutputGame",
]
