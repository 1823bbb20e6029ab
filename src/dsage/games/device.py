"""Mean predictions of a PyTorch module for draws that are made on the module's device."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dsage._check import refusal
from dsage.data.layout import Layout
from dsage.games.base import Floats, Mask, Orders, Rows
from dsage.games.chunk import Chunk
from dsage.games.device_loss import DeviceLoss
from dsage.games.predictor import Predictor
from dsage.models.affine import column_precision
from dsage.models.torch_module import TorchPredictor
from dsage.models.torch_tools import module_place, require_torch
from dsage.samplers.base import Sampler
from dsage.samplers.device.paths import DeviceRows, DeviceTable
from dsage.samplers.device.place import Copied, send_noise
from dsage.samplers.noise import Noise
from dsage.samplers.recent import Recent

# Memory of an accelerator for draws, and the largest share of what is free.
_BYTES, _SHARE = 2**31, 8
# The part of it for what the prefixes of orderings have in common, which is computed once.
_ORDERINGS_SHARE = 4
_PAIRS = 2**18
# Number of chunks that the device works on while the CPU processes the previous one.
_AHEAD = 2


Begun = tuple[slice, Callable[[], Any]]
"""A chunk of prefixes, and a function that finishes their draws."""


class Prefixes(NamedTuple):
    """Prefixes of orderings, (n_prefixes,) each: numbers of orderings, ascending, and lengths."""

    which: Rows
    lengths: Rows


class Asked(NamedTuple):
    """A request to a device.

    Parameters
    ----------
    orders : int array of shape (n_orderings, n_features)
        Orderings.
    prefixes : Prefixes
        Prefixes of them.
    rows : int array of shape (n_sets, n_rows)
        Sets of rows.
    sets : int array of shape (n_orderings,)
        The set on which each ordering is evaluated.
    """

    orders: Orders
    prefixes: Prefixes
    rows: Rows
    sets: Rows


class Found(NamedTuple):
    """Means of some of the prefixes on some of the rows, or the risks computed from them."""

    some: slice
    here: slice
    means: Floats
    is_risk: bool

    def by_ordering(self, prefixes: Prefixes) -> Iterator[tuple[int, Chunk]]:
        """Yield the numbers of orderings, with their part of what was found."""
        numbers, lengths = (part[self.some] for part in prefixes)
        for number in np.unique(numbers).tolist():
            part = slice(*np.searchsorted(numbers, [number, number + 1]).tolist())
            yield number, Chunk(lengths[part], self.here, self.means[part], is_risk=self.is_risk)


class DeviceMeans:
    """The mean predictions of a module over replicates of draws, computed on its device.

    Rows are sent once. Noise, draws and predictions are made on the device and stay there; only
    means come back, ``n_draws * n_features`` times fewer numbers, or the risks that a loss makes of
    them. Only these wait for the device, which continues in the meantime. The draws of
    a replicate are adjacent.

    Parameters
    ----------
    model : Predictor
        The model of a module.
    sampler : Sampler
        A sampler that draws on devices.
    matrix : array of shape (n_rows, n_features)
        The evaluation rows, encoded.
    n_replicates : int
        Number of replicates.
    max_bytes : int
        Memory for draws on a CPU.

    Attributes
    ----------
    loss : DeviceLoss or None
        The loss of the game, if it can be computed on the device.
    """

    loss: DeviceLoss | None = None

    def __init__(
        self,
        model: Predictor,
        sampler: Sampler,
        matrix: Floats,
        n_replicates: int,
        max_bytes: int = 2**28,
    ) -> None:
        if model.predictor is None:
            advice = "Pass other models to a game, which calls them"
            raise refusal("model", "a PyTorch module on a device", model.name, advice, TypeError)
        self._model, self._predictor = model, model.predictor
        self._sampler, self._matrix = sampler, matrix
        self._n_replicates, self._max_bytes = n_replicates, max_bytes
        # Made again in other processes.
        self._tables: Recent[DeviceTable] = Recent(1)
        self._rows: Recent[DeviceRows] = Recent(1)

    @property
    def pairs_at_once(self) -> int | None:
        """Pairs of a coalition and a row that keep an accelerator busy; None for a CPU."""
        device, _ = module_place(self._predictor.module)
        return None if device.type == "cpu" else _PAIRS

    def paths(
        self,
        orders: Orders,
        needed: Mask,
        rows: Rows,
        epoch: int,
        noise: Noise,
        *,
        with_loss: bool = False,
    ) -> Iterator[tuple[int, Chunk]]:
        """Yield the numbers of orderings, with the means of their needed proper prefixes.

        All orderings are drawn together. `with_loss` says whether risks may take their place.
        """
        prefixes = Prefixes(*np.nonzero(needed[:, :-1]))
        given = Asked(orders, prefixes, rows[None], np.zeros(len(orders), np.intp))
        for found in self.results(given, epoch, noise, with_loss=with_loss):
            yield from found.by_ordering(prefixes)

    def chunks(
        self,
        known: Mask,
        left: Rows,
        rows: Rows,
        epoch: int,
        noise: Noise,
        *,
        with_loss: bool = False,
    ) -> Iterator[Chunk]:
        """Yield the means of the coalitions in the lines `left` of `known`; see `paths`."""
        orders = self.orders_of(known[left])
        prefixes = Prefixes(np.arange(len(left)), known[left].sum(axis=1))
        given = Asked(orders, prefixes, rows[None], np.zeros(len(orders), np.intp))
        for found in self.results(given, epoch, noise, with_loss=with_loss):
            yield Chunk(left[found.some], found.here, found.means, is_risk=found.is_risk)

    def orders_of(self, known: Mask) -> Orders:
        """Return orderings that begin with coalitions, as the sampler draws for them."""
        return self._table().at.along_of(known)

    def _table(self) -> DeviceTable:
        """Return the rows on the device of the module, which can be moved."""
        place = module_place(self._predictor.module)
        return self._tables.get(place, lambda: self._sampler.on_device(*place).load(self._matrix))

    def results(
        self, asked: Asked, epoch: int, noise: Noise, *, with_loss: bool = False
    ) -> Iterator[Found]:
        """Yield results for prefixes of orderings, in chunks.

        With a loss they are risks, unless probabilities are too low for them: then they are means.
        """
        pending: deque[_Pending] = deque()
        for found in self._submit(asked, epoch, noise, with_loss=with_loss):
            pending.append(found)
            if len(pending) > _AHEAD:
                yield pending.popleft().get()
        # What probably comes next, while the device works.
        noise.prepare(asked.rows, epoch + 1)
        while pending:
            yield pending.popleft().get()

    def _submit(
        self, asked: Asked, epoch: int, noise: Noise, *, with_loss: bool
    ) -> Iterator[_Pending]:
        """Yield chunks that were submitted to the device, but may not be finished."""
        at, budget = self._table(), self._budget()
        most_rows = max(1, budget // (_bytes_per_row(at, noise) * len(asked.rows)))
        loss, is_coarse = self.loss if with_loss else None, at.at.place.dtype.itemsize < 4
        n_rows = asked.rows.shape[1]
        for first in range(0, n_rows, most_rows):
            here = slice(first, min(first + most_rows, n_rows))
            chosen = asked.rows[:, here]
            loaded = self._load(at, chosen, epoch, noise)
            for some, draw in _one_ahead(self._begin(loaded, asked, budget)):
                means, made = self._means(draw()), None
                if loss is not None and tuple(means.shape[3:]) == loss.outputs:
                    which = asked.prefixes.which[some]
                    own = chosen if len(chosen) == 1 else chosen[asked.sets[which]]
                    made = loss(means, own, is_coarse=is_coarse)
                yield _Pending(self._model, some, here, means, made)

    def _load(self, at: DeviceTable, rows: Rows, epoch: int, noise: Noise) -> DeviceRows:
        """Return rows with their noise, which are kept for the next orderings."""
        key = (id(at), noise.key, rows.shape, rows.tobytes(), epoch)
        return self._rows.get(
            key, lambda: at.pick(rows, send_noise(noise, rows.ravel(), epoch, at.at.place))
        )

    @staticmethod
    def _begin(loaded: DeviceRows, asked: Asked, budget: int) -> Iterator[Begun]:
        """Begin to draw chunks of prefixes."""
        which, lengths = asked.prefixes
        if not len(which):
            return
        most = max(1, budget // loaded.bytes_per_prefix)
        most_orders = max(1, budget // _ORDERINGS_SHARE // loaded.bytes_per_ordering)
        end = int(which[-1]) + 1
        for first in range(int(which[0]), end, most_orders):
            here = slice(first, min(first + most_orders, end))
            paths = loaded.along(asked.orders[here], asked.sets[here])
            start, stop = np.searchsorted(which, [here.start, here.stop]).tolist()
            for begin in range(start, stop, most):
                some = slice(begin, min(begin + most, stop))
                yield some, paths.begin(which[some] - first, lengths[some])

    def _budget(self) -> int:
        """Return the memory for draws at a time."""
        torch = require_torch("DeviceMeans")
        device, _ = module_place(self._predictor.module)
        if device.type != "cuda":
            return self._max_bytes
        free, _ = torch.cuda.mem_get_info(device)
        most = max(_BYTES, self._max_bytes)
        if free >= most * _SHARE:
            return most
        # Memory that torch still holds for deleted tensors is free, too.
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(min(most, max(free // _SHARE, 1)))

    def _means(self, draws: Any) -> Any:  # noqa: ANN401
        """Return the means (n_coalitions, n_rows, n_replicates, ...) of draws on the device.

        The draws are a tensor (n_coalitions, n_rows, n_draws, n_features). Several outputs have
        their own axis.
        """
        torch = require_torch("DeviceMeans")
        output = self._predictor.on_device(draws.reshape(-1, draws.shape[-1]))
        if output.ndim == 2 and output.shape[1] == 1:
            output = output[:, 0]
        # Apple's devices have no double precision.
        output = output.to(torch.float32 if output.device.type == "mps" else torch.float64)
        replicates = output.reshape(*draws.shape[:2], self._n_replicates, -1, *output.shape[1:])
        # As for NumPy arrays, the mean of equal values is exactly their value.
        low, high = torch.aminmax(replicates, dim=3)
        return torch.clamp(replicates.mean(dim=3), low, high)


class _Pending:
    """Results on their way from the device."""

    def __init__(
        self,
        model: Predictor,
        some: slice,
        here: slice,
        means: Any,  # noqa: ANN401
        made: tuple[Any, Any] | None,
    ) -> None:
        self._model, self._some, self._here, self._means = model, some, here, means
        wanted = (means,) if made is None else made
        self._has_risks = made is not None
        self._copies = [Copied(tensor) for tensor in wanted]

    def get(self) -> Found:
        """Wait for the results and return them."""
        found = [copy.get().double().numpy() for copy in self._copies]
        if self._has_risks:
            risks, (are_fine,) = found
            if are_fine:
                return Found(self._some, self._here, risks, is_risk=True)
            # Some are to be drawn again, or to be refused.
            found = [self._means.cpu().double().numpy()]
        means = self._model.check_means(found[0], tuple(self._means.shape[3:]))
        return Found(self._some, self._here, means, is_risk=False)


def _one_ahead(begun: Iterator[Begun]) -> Iterator[Begun]:
    """Yield what was begun, each after the next."""
    last: Begun | None = None
    for now in begun:
        if last is not None:
            yield last
        last = now
    if last is not None:
        yield last


def _bytes_per_row(at: DeviceTable, noise: Noise) -> int:
    """Return the memory of the draws of a row for one prefix, with their inputs."""
    n_draws, size = noise.n_replicates * noise.n_draws, at.at.place.n_bytes
    return 8 * size * n_draws * noise.n_features


def device_means(
    model: Predictor,
    sampler: Sampler,
    layout: Layout,
    matrix: Floats,
    n_replicates: int,
    max_bytes: int = 2**28,
    *,
    is_usable: bool = True,
) -> DeviceMeans | None:
    """Return an object that computes means on a module's device; None if the CPU draws.

    Raises a TypeError if the module asks for draws on the device that cannot be made there. The
    layout has the columns as the model sees them; `is_usable` says whether draws can depend on all
    values of the rows.
    """
    predictor = model.predictor
    if predictor is None or predictor.draws == "host":
        return None
    if predictor.draws == "auto" and module_place(predictor.module)[0].type == "cpu":
        return None
    obstacle = _find_obstacle(predictor, sampler, layout)
    if obstacle is None and not (is_usable and np.isfinite(matrix).all()):
        obstacle = ("used with rows whose missing values occur in training", "others")
    if obstacle is None:
        return DeviceMeans(model, sampler, matrix, n_replicates, max_bytes)
    if predictor.draws == "auto":
        return None
    advice = "Leave draws='module' out to draw on the CPU"
    raise refusal(f"draws='module' of {predictor.name}", *obstacle, advice, TypeError)


def _find_obstacle(
    predictor: TorchPredictor, sampler: Sampler, layout: Layout
) -> tuple[str, object] | None:
    """Return the condition for draws on a device that is not met, and what is there instead.

    The CPU rounds draws of integer columns, and draws of single precision columns to that
    precision; a device does neither.
    """
    if not sampler.draws_on_device:
        if moved := _moved(sampler):
            return "used with columns whose draws need not be whole numbers or codes", moved
        return "used with a sampler that draws on a device, such as Gaussian", sampler.name
    needed = 1 if predictor.is_single else 2
    short = [layout.names[at] for at in np.flatnonzero(column_precision(layout) < needed)]
    if short:
        return "used with columns of floats, no shorter than the module's", short
    return None


def _moved(sampler: Sampler) -> list[str]:
    """Return the columns whose draws are moved to possible values."""
    if sampler.layout_ is None:
        return []
    possible = sampler.layout_.possible
    together = {int(column) for each in possible.exclusive for column in each.columns}
    return [sampler.layout_.names[at] for at in sorted(together | possible.columns.keys())]
