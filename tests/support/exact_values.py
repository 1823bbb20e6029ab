"""Exact SAGE values, from the definitions, for two kinds of model: plain, slow, to be read.

A coalition is a frozenset of feature positions, and a risk function maps it to L(S).
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np


def coalitions(n_features):
    """Every coalition, the smaller ones first."""
    return [
        frozenset(members)
        for size in range(n_features + 1)
        for members in itertools.combinations(range(n_features), size)
    ]


def mask(coalition, n_features):
    """A coalition as one row of `known`."""
    known = np.zeros((1, n_features), dtype=bool)
    known[0, list(coalition)] = True
    return known


def boundary(oracle, coalition):
    """M(S) as a frozenset."""
    known = mask(coalition, len(oracle.feature_names))
    return frozenset(np.flatnonzero(oracle.boundary(known)[0]).tolist())


def is_separated(oracle, coalition, feature):
    return bool(oracle.separated(mask(coalition, len(oracle.feature_names)))[0, feature])


def surplus(risk, coalition, feature, oracle=None, semantics="boundary"):
    """L(S) - L(S + j): plain without an oracle, else by `semantics`."""
    larger = coalition | {feature}
    if oracle is None:
        return risk(coalition) - risk(larger)
    if semantics == "skip":
        if is_separated(oracle, coalition, feature):
            return 0.0
        return risk(coalition) - risk(larger)
    return risk(boundary(oracle, coalition)) - risk(boundary(oracle, larger))


def shapley(risk, n_features, oracle=None, semantics="boundary"):
    """phi_j = sum over S without j of |S|! (d - |S| - 1)! / d! times the surplus of j at S."""
    values = np.zeros(n_features)
    for feature in range(n_features):
        for coalition in coalitions(n_features):
            if feature in coalition:
                continue
            size = len(coalition)
            weight = factorial(size) * factorial(n_features - size - 1) / factorial(n_features)
            values[feature] += weight * surplus(risk, coalition, feature, oracle, semantics)
    return values


def shapley_by_orderings(risk, n_features, oracle=None, semantics="boundary"):
    """The same as a mean over all d! orderings: the definition, for very few features."""
    orderings = list(itertools.permutations(range(n_features)))
    return values_over(orderings, risk, n_features, oracle, semantics)


def tabulated(risk, n_features):
    """The same risk function, every coalition evaluated once."""
    table = {coalition: risk(coalition) for coalition in coalitions(n_features)}
    return table.__getitem__


@dataclass(frozen=True, eq=False)
class LinearGaussianCase:
    """Squared error of f(x) = intercept + weights'x under a joint normal law of (X, Y).

    The last entry of `mean`, and the last row and column of `covariance`, belong to Y.
    """

    mean: np.ndarray
    covariance: np.ndarray
    intercept: float
    weights: np.ndarray

    @classmethod
    def of(cls, model, target, weights=None, intercept=None, mean=0.0):
        """The case of a `LinearGaussian` and its target; the optimal linear model by default."""
        features = [name for name in model.graph.names if name != target]
        order = [*features, target]
        covariance = model.covariance().loc[order, order].to_numpy()
        mean = np.broadcast_to(np.asarray(mean, dtype=float), len(order))
        if weights is None:
            weights = np.linalg.solve(covariance[:-1, :-1], covariance[:-1, -1])
        weights = np.asarray(weights, dtype=float)
        if intercept is None:
            intercept = mean[-1] - weights @ mean[:-1]
        return cls(mean, covariance, float(intercept), weights)

    @property
    def n_features(self):
        return len(self.weights)

    def predict(self, X):
        return self.intercept + np.asarray(X) @ self.weights

    def reduced(self, coalition):
        """Intercept and slopes of f_S(x) = intercept + weights'E[X | x_S], a function of x_S."""
        inside = sorted(coalition)
        mean, covariance = self.mean[:-1], self.covariance[:-1, :-1]
        slopes = np.linalg.solve(
            covariance[np.ix_(inside, inside)], covariance[inside] @ self.weights
        )
        return self.intercept + self.weights @ mean - slopes @ mean[inside], slopes

    def predict_given(self, X, coalition):
        """f_S of each row."""
        intercept, slopes = self.reduced(coalition)
        return intercept + np.asarray(X)[:, sorted(coalition)] @ slopes

    def risk(self, coalition):
        """E (Y - f_S(X_S))^2 in the population: squared bias plus variance."""
        inside = sorted(coalition)
        intercept, slopes = self.reduced(coalition)
        bias = self.mean[-1] - intercept - slopes @ self.mean[inside]
        covariance = self.covariance
        return float(
            bias**2
            + covariance[-1, -1]
            - 2 * slopes @ covariance[inside, -1]
            + slopes @ covariance[np.ix_(inside, inside)] @ slopes
        )

    def risk_on(self, X, y):
        """The risk function of given evaluation rows: the mean of (y - f_S(x))^2 over them."""
        return lambda coalition: float(
            np.mean((np.asarray(y) - self.predict_given(X, coalition)) ** 2)
        )

    def values(self, oracle=None, semantics="boundary", data=None):
        """SAGE values of the population, or on the evaluation rows ``data = (X, y)``."""
        risk = self.risk if data is None else self.risk_on(*data)
        risk = tabulated(risk, self.n_features)
        return shapley(risk, self.n_features, oracle, semantics)

    def sample(self, n_rows, rng):
        """Rows X (n_rows, n_features) and y (n_rows,)."""
        rows = rng.multivariate_normal(self.mean, self.covariance, size=n_rows, method="cholesky")
        return rows[:, :-1], rows[:, -1]


@dataclass(frozen=True, eq=False)
class BinaryCase:
    """Cross entropy of a tabulated classifier under a law of binary X_1..X_d and Y.

    ``joint[x_1, ..., x_d, y]`` is a probability; ``classifier[x_1, ..., x_d]`` is the predicted
    probability of Y = 1, strictly between 0 and 1.
    """

    joint: np.ndarray
    classifier: np.ndarray

    @classmethod
    def of(cls, graph, target, rng, classifier=None):
        """A Bayesian network on a DAG with random tables; the Bayes classifier by default."""
        order = [*(name for name in graph.names if name != target), target]
        tables = {
            name: rng.uniform(0.1, 0.9, size=(2,) * len(graph.parents(name))) for name in order
        }
        joint = np.zeros((2,) * len(order))
        for states in itertools.product([0, 1], repeat=len(order)):
            state = dict(zip(order, states, strict=True))
            probability = 1.0
            for name in order:
                one = tables[name][tuple(state[parent] for parent in graph.parents(name))]
                probability *= one if state[name] == 1 else 1 - one
            joint[states] = probability
        if classifier is None:
            classifier = joint[..., 1] / joint.sum(axis=-1)
        return cls(joint, classifier)

    @property
    def n_features(self):
        return self.classifier.ndim

    @cached_property
    def states(self):
        """Every state of the features, (2 ** n_features, n_features)."""
        return np.array(list(itertools.product([0, 1], repeat=self.n_features)))

    def predict(self, X):
        """P(Y = 1) of each row."""
        return self.classifier[tuple(np.asarray(X, dtype=int).T)]

    def predict_given(self, X, coalition):
        """f_S(x_S) = sum over x' that agree with x on S of p(x' | x_S) f(x'), for each row."""
        inside = sorted(coalition)
        law = self.joint.sum(axis=-1)
        reduced = np.empty_like(self.classifier)
        for state in self.states:
            agree = [other for other in self.states if (other[inside] == state[inside]).all()]
            mass = np.array([law[tuple(other)] for other in agree])
            outputs = np.array([self.classifier[tuple(other)] for other in agree])
            reduced[tuple(state)] = mass @ outputs / mass.sum()
        return reduced[tuple(np.asarray(X, dtype=int).T)]

    def risk(self, coalition):
        """E[-log P_S(Y)] in the population."""
        one = self.predict_given(self.states, coalition)
        total = 0.0
        for state, p in zip(self.states, one, strict=True):
            total -= self.joint[(*state, 1)] * np.log(p)
            total -= self.joint[(*state, 0)] * np.log(1 - p)
        return float(total)

    def risk_on(self, X, y):
        """The risk function of given evaluation rows."""

        def risk(coalition):
            one = self.predict_given(X, coalition)
            return float(-np.mean(np.log(np.where(np.asarray(y) == 1, one, 1 - one))))

        return risk

    def values(self, oracle=None, semantics="boundary", data=None):
        """SAGE values of the population, or on the evaluation rows ``data = (X, y)``."""
        risk = self.risk if data is None else self.risk_on(*data)
        risk = tabulated(risk, self.n_features)
        return shapley(risk, self.n_features, oracle, semantics)

    def sample(self, n_rows, rng):
        """Rows X (n_rows, n_features) and y (n_rows,), integers 0 and 1."""
        cells = rng.choice(self.joint.size, size=n_rows, p=self.joint.ravel())
        rows = np.stack(np.unravel_index(cells, self.joint.shape), axis=1)
        return rows[:, :-1], rows[:, -1]


def extensions(n_features, pairs):
    """Every ordering of the features that has a before b for each of the pairs (a, b)."""
    needs = {
        feature: {one for one, other in pairs if other == feature} for feature in range(n_features)
    }

    def begun(ordering):
        if len(ordering) == n_features:
            yield ordering
        for feature in set(range(n_features)) - set(ordering):
            if needs[feature] <= set(ordering):
                yield from begun((*ordering, feature))

    return list(begun(()))


def values_over(orderings, risk, n_features, oracle=None, semantics="boundary"):
    """The mean over some orderings of the surplus of each feature."""
    total = np.zeros(n_features)
    for ordering in orderings:
        for position, feature in enumerate(ordering):
            total[feature] += surplus(
                risk, frozenset(ordering[:position]), feature, oracle, semantics
            )
    return total / len(orderings)
