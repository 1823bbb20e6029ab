"""Games: from coalitions of known features to the risks of a model."""

from dsage.games.base import Game
from dsage.games.cached import Cached
from dsage.games.loss import LossGame
from dsage.games.moment import MomentGame
from dsage.games.wrap import Boundary

__all__ = ["Boundary", "Cached", "Game", "LossGame", "MomentGame"]
