"""A game given by a table, which records what it is asked for."""

import numpy as np

from dsage.games import Game

NAMES = tuple("abcd")


class Table(Game):
    """Random risks, one for each coalition, row, replicate and epoch; `asked` records the questions."""

    def __init__(self, feature_names=NAMES, *, n_rows=6, n_replicates=2, n_epochs=3, seed=0):
        self.feature_names = tuple(feature_names)
        self.n_rows, self.n_replicates = n_rows, n_replicates
        shape = (n_epochs, 2 ** len(self.feature_names), n_rows, n_replicates)
        self.table = np.random.default_rng(seed).normal(size=shape)
        self.asked = []

    def risk(self, coalition, rows, epoch=0):
        """The risks of one coalition, given by the positions of its members."""
        return self.table[epoch, sum(2**member for member in coalition)][rows]

    def risks(self, known, rows, epoch=0):
        members = [tuple(np.flatnonzero(coalition).tolist()) for coalition in known]
        self.asked += members
        return np.stack([self.risk(each, rows, epoch) for each in members])


class PathTable(Table):
    """The same with all prefixes at once."""

    has_paths = True

    def path_risks(self, orders, rows, epoch, needed):
        out = np.full((*needed.shape, len(rows), self.n_replicates), np.nan)
        for at, length in np.argwhere(needed):
            coalition = tuple(sorted(orders[at, :length].tolist()))
            self.asked.append(coalition)
            out[at, length] = self.risk(coalition, rows, epoch)
        return out
