"""Flows from their definition, over all orderings: plain, slow, to be read.

Messages travel depth first. `Linear` computes with means, which is exact for linear mechanisms and
models; `Discrete` with all combinations of the noise of binary nodes.
"""

import itertools
from collections import defaultdict

import numpy as np


def all_orderings(sources, leaving):
    """Every order of the sources, with every order of the edges that leave each node."""
    nodes = sorted(leaving)
    for order in itertools.permutations(sources):
        for orders in itertools.product(*(itertools.permutations(leaving[node]) for node in nodes)):
            yield order, dict(zip(nodes, orders, strict=True))


class Linear:
    """Nodes that are linear in their parents, and a linear model.

    `parents` maps nodes, in a topological order, to {parent: slope}; `noise` to the noise of the
    rows; `middle` to the mean of the noise; `weights` maps nodes to those of the model, and
    `constant` is its intercept.
    """

    def __init__(self, parents, noise, middle, weights, y, constant=0.0, is_set=False):
        self.parents, self.noise, self.middle = parents, noise, middle
        self.weights, self.y, self.constant = weights, y, constant
        self.is_set = is_set
        self.rows = {}
        for node, slopes in parents.items():
            self.rows[node] = noise[node] + sum(b * self.rows[p] for p, b in slopes.items())

    def leaving(self):
        found = {node: [] for node in self.parents}
        for node, slopes in self.parents.items():
            for parent in slopes:
                found[parent].append(node)
        for node in self.weights:
            found[node].insert(0, "model")
        return found

    def loss(self, inputs):
        predicted = self.constant + sum(self.weights[node] * inputs[node] for node in inputs)
        return float(np.mean((self.y - predicted) ** 2))

    def run(self, sources, leaving):
        """The credits of the edges in one ordering."""
        value, active, sent = {}, set(), {}
        for node, slopes in self.parents.items():
            value[node] = np.zeros(len(self.y)) + self.middle[node]
            for parent, slope in slopes.items():
                sent[parent, node] = value[parent]
                value[node] = value[node] + slope * value[parent]
        inputs = {node: value[node] for node in self.weights}
        credit, risk = defaultdict(float), self.loss(inputs)

        def compute(node):
            if node in active and self.is_set:
                return self.rows[node]
            noise = self.noise[node] if node in active else self.middle[node]
            return noise + sum(b * sent[p, node] for p, b in self.parents[node].items())

        def send(node, path):
            nonlocal risk
            for head in leaving[node]:
                way = [*path, (node, head)]
                if head == "model":
                    inputs[node] = value[node]
                    now = self.loss(inputs)
                    for edge in way:
                        credit[edge] += risk - now
                    risk = now
                elif not (self.is_set and head in active):
                    sent[node, head] = value[node]
                    value[head] = compute(head)
                    send(head, way)

        for node in sources:
            active.add(node)
            value[node] = compute(node)
            send(node, [("do" if self.is_set else "noise", node)])
        return credit

    def flows(self, *, model_first=False):
        """The mean credits of all edges, over all orderings."""
        total, n_orderings = defaultdict(float), 0
        sources = [node for node in self.parents if not self.is_set or node in self.weights]
        for order, leaving in all_orderings(sources, self.leaving()):
            if model_first and any("model" in heads[1:] for heads in leaving.values()):
                continue
            n_orderings += 1
            for edge, value in self.run(order, leaving).items():
                total[edge] += value
        return {edge: value / n_orderings for edge, value in total.items()}

    def set_risk(self, features):
        """The risk if features are set to their values, others follow: from the definition."""
        means = {}
        for node, slopes in self.parents.items():
            means[node] = self.middle[node] + sum(b * means[p] for p, b in slopes.items())
            if node in features:
                means[node] = self.rows[node]
            means[node] = np.broadcast_to(means[node], len(self.y))
        return self.loss({node: means[node] for node in self.weights})


class Discrete:
    """Binary nodes: 1 if a uniform exceeds ``zero(node, values of the parents)``.

    The uniform of a node is cut into cells within which it answers all values of the parents alike:
    all combinations of cells, of background noise and of the noise of a row, are the worlds.
    """

    def __init__(self, parents, zero, model, rows, y):
        self.parents, self.model = parents, model
        self.rows, self.y = rows, y
        self.zeros, self.cells = {}, {}
        for node, names in parents.items():
            given = list(itertools.product((0.0, 1.0), repeat=len(names)))
            self.zeros[node] = {values: zero(node, values) for values in given}
            ends = sorted({0.0, 1.0, *self.zeros[node].values()})
            self.cells[node] = [
                (high - low, (low + high) / 2) for low, high in itertools.pairwise(ends)
            ]

    def answer(self, node, uniforms, values):
        """The values of a node in all worlds."""
        found = np.zeros(len(uniforms))
        for given, end in self.zeros[node].items():
            here = np.all([np.equal(*each) for each in zip(values, given, strict=True)], axis=0)
            found = np.where(here, uniforms > end, found)
        return found

    def posterior(self, node, row):
        end = self.zeros[node][tuple(row[parent] for parent in self.parents[node])]
        cells = [each for each in self.cells[node] if (each[1] > end) == row[node]]
        total = sum(weight for weight, _ in cells)
        return [(weight / total, middle) for weight, middle in cells]

    def worlds(self, row):
        """The probability of each world, and the two uniforms of each node in it."""
        options = [
            [
                (one * other, background, own)
                for one, background in self.cells[node]
                for other, own in self.posterior(node, row)
            ]
            for node in self.parents
        ]
        chosen = np.array(list(itertools.product(*options)))  # (n_worlds, n_nodes, 3)
        uniforms = dict(zip(self.parents, np.moveaxis(chosen[:, :, 1:], 1, 0), strict=True))
        return chosen[:, :, 0].prod(axis=1), uniforms

    def inputs(self, uniforms, sources, leaving):
        """The inputs of the model after each message, with the path of the message."""
        value, sent, active = {}, {}, set()

        def compute(node):
            own = uniforms[node][:, 1 if node in active else 0]
            return self.answer(node, own, [sent[p, node] for p in self.parents[node]])

        for node, parents in self.parents.items():
            for parent in parents:
                sent[parent, node] = value[parent]
            value[node] = compute(node)
        inputs = dict(value)
        found = [((), dict(inputs))]

        def send(node, path):
            for head in leaving[node]:
                way = (*path, (node, head))
                if head == "model":
                    inputs[node] = value[node]
                    found.append((way, dict(inputs)))
                else:
                    sent[node, head] = value[node]
                    value[head] = compute(head)
                    send(head, way)

        for node in sources:
            active.add(node)
            value[node] = compute(node)
            send(node, (("noise", node),))
        return found

    def flows(self):
        """The mean credits of all edges: squared error of the mean prediction."""
        leaving = {node: ["model"] for node in self.parents}
        for node, parents in self.parents.items():
            for parent in parents:
                leaving[parent].append(node)
        total, orderings = defaultdict(float), list(all_orderings(list(self.parents), leaving))
        for row, y in zip(self.rows, self.y, strict=True):
            weights, uniforms = self.worlds(row)
            for order, way in orderings:
                states = self.inputs(uniforms, order, way)
                means = np.array([weights @ self.model(state) for _, state in states])
                losses = (y - means) ** 2
                reductions = losses[:-1] - losses[1:]
                for (path, _), reduced in zip(states[1:], reductions, strict=True):
                    for edge in path:
                        total[edge] += reduced
        n_all = len(orderings) * len(self.rows)
        return {edge: value / n_all for edge, value in total.items()}
