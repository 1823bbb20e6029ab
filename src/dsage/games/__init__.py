"""Games: from coalitions of known features to the risks, or the outputs, of a model."""

from dsage.games.base import Game, Wrapped, as_game
from dsage.games.boundary import Boundary
from dsage.games.cached import Cached
from dsage.games.difference import Difference
from dsage.games.grouped import Grouped
from dsage.games.linear import LinearOutput
from dsage.games.loss import LossGame
from dsage.games.model_game import ModelGame
from dsage.games.moment import MomentGame
from dsage.games.options import GameOptions
from dsage.games.output import OutputGame

__all__ = [
    "Boundary",
    "Cached",
    "Difference",
    "Game",
    "GameOptions",
    "Grouped",
    "LinearOutput",
    "LossGame",
    "ModelGame",
    "MomentGame",
    "OutputGame",
    "Wrapped",
    "as_game",
]
