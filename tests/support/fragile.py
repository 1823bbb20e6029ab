"""Models for the tests of clusters: they die, and count how often they travelled.

A module of its own, so that workers can import it.
"""

import os
import signal
from pathlib import Path

import numpy as np


class Mortal:
    """A model that ends the process of a worker: the one that takes the file, or every one.

    A number in the file is that of another process, which is ended instead.
    """

    def __init__(self, model, file=None):
        self.model, self.file, self.home = model, file, os.getpid()

    def predict(self, X):
        if os.getpid() != self.home:
            self.strike()
        return self.model.predict(X)

    def strike(self):
        text = ""
        if self.file is not None:
            try:
                text = Path(self.file).read_text()
                Path(self.file).unlink()
            except FileNotFoundError:
                return
        os.kill(int(text or os.getpid()), signal.SIGKILL)


class Traveller:
    """A model that notes every process that unpacks it, and every one that asks it."""

    def __init__(self, folder):
        self.unpacked, self.asked = Path(folder) / "unpacked", Path(folder) / "asked"
        self.home = os.getpid()

    def __getstate__(self):
        return self.__dict__.copy()

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.note(self.unpacked)

    def predict(self, X):
        if os.getpid() != self.home:
            self.note(self.asked)
        return np.tanh(np.asarray(X)).sum(axis=1)

    def note(self, file):
        with file.open("a") as notes:
            notes.write(f"{os.getpid()}\n")


class Clinging:
    """A model that can be packed, and unpacked only where it comes from."""

    def __init__(self):
        self.home = os.getpid()

    def __getstate__(self):
        return self.__dict__.copy()

    def __setstate__(self, state):
        self.__dict__.update(state)
        if os.getpid() != self.home:
            raise FileNotFoundError("weights.bin")

    def predict(self, X):
        return np.tanh(np.asarray(X)).sum(axis=1)


class OddError(Exception):
    """An error that can be pickled and not unpickled."""

    def __init__(self, what, where):
        super().__init__(f"{what} in {where}")


class Odd:
    """A model that raises it, once it is elsewhere."""

    def __init__(self):
        self.home = os.getpid()

    def predict(self, X):
        if os.getpid() != self.home:
            raise OddError("no luck", "a worker")
        return np.asarray(X).sum(axis=1)


class Calls:
    """A rule that calls a function as an estimate reaches some orderings, and then another rule."""

    def __init__(self, rule, n_orderings, call):
        self.rule, self.n_orderings, self.call = rule, n_orderings, call

    def reason(self, progress):
        if self.call is not None and progress.n_orderings >= self.n_orderings:
            call, self.call = self.call, None
            call(progress)
        return self.rule.reason(progress)


def forgets(token, payload, piece):
    """Work on nothing: the payload is never there."""
