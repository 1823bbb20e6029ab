"""PyTorch modules as models: in large batches, on their own device, without gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dsage._check import check_count, check_member, refusal, warn
from dsage.data.columns import dtype_kind, is_boolean
from dsage.data.frames import Frame
from dsage.models.torch_tools import is_module, module_place, require_torch

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

BATCH_ROWS = 2**16
"""Rows that a module sees at a time on an accelerator."""

CPU_BATCH_ROWS = 2**12
"""Rows that a module sees at a time on a CPU, whose caches are small."""

DRAWS = ("auto", "module", "host")

_SOFTMAX = "torch.nn.Sequential(module, torch.nn.Softmax(dim=1))"
_SIGMOID = "torch.nn.Sequential(module, torch.nn.Sigmoid())"


class TorchPredictor:
    """The predictions of a PyTorch module for rows, as an array.

    Rows become a tensor of the dtype of the module's parameters, on the device of these, a batch at
    a time. The module is called in eval mode, so that dropout is off and batch normalisation uses
    what it has learned, and without gradients; afterwards each of its parts is back in the mode
    that it was in. Where an accelerator runs out of memory, the batches are halved, with a warning,
    and stay so.

    :func:`~dsage.models.as_model` makes one of a module. Make it yourself to choose the options.

    Parameters
    ----------
    module : torch.nn.Module
        It takes a tensor (n_rows, n_features) and returns one of shape (n_rows,), (n_rows, 1) or
        (n_rows, n_outputs). It is called itself: methods such as its own `predict` are not used.
    batch_rows : int, optional
        Rows at a time; by default 65,536, and 4,096 on the CPU.
    draws : {"auto", "module", "host"}, default="auto"
        Where a game makes the draws that the module predicts for. On the module's device, they
        need not travel; that takes a ``Gaussian`` sampler and columns of floats. ``"auto"`` does so
        where that is possible and the device is not the CPU.

    Attributes
    ----------
    name : str
        The class of the module.

    Examples
    --------
    A module and rows::

        module = torch.nn.Linear(2, 1)
        TorchPredictor(module)(np.zeros((3, 2)))  # of shape (3, 1)
    """

    def __init__(
        self,
        module: Any,  # noqa: ANN401
        *,
        batch_rows: int | None = None,
        draws: Literal["auto", "module", "host"] = "auto",
    ) -> None:
        require_torch("TorchPredictor")
        if not is_module(module):
            raise refusal(
                "module",
                "a torch.nn.Module",
                module,
                "Give other models as they are, without TorchPredictor",
                TypeError,
            )
        self.module = module
        self.name = type(module).__name__
        self.draws = check_member(draws, DRAWS, "draws", "the places")
        self._batch_rows = None if batch_rows is None else check_count(batch_rows, "batch_rows")
        self._has_warned = False
        self._n_running = 0
        self._modes: list[tuple[Any, bool]] = []
        self._lock = Lock()

    @property
    def is_single(self) -> bool:
        """Whether the module computes in single precision, or less."""
        _, dtype = module_place(self.module)
        return bool(dtype.itemsize < 8)

    def __repr__(self) -> str:
        return f"TorchPredictor({self.name}, draws={self.draws!r})"

    def __getstate__(self) -> dict[str, object]:
        state = self.__dict__.copy()
        del state["_lock"]
        state["_n_running"], state["_modes"] = 0, []
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._lock = Lock()

    def __call__(self, X: Any) -> Array:  # noqa: ANN401
        """Return the predictions for rows.

        Parameters
        ----------
        X : data frame or array of shape (n_rows, n_features)
            Columns of numbers or booleans.

        Returns
        -------
        array of n_rows
            What the module gives: floats in double precision, whole numbers as they are.
        """
        torch = require_torch("TorchPredictor")
        matrix = _to_numbers(X, self.name)
        device, dtype = module_place(self.module)
        near = np.float32 if self.is_single else np.float64

        def load(start: int, stop: int) -> Any:  # noqa: ANN401
            # A copy: tensors cannot share memory that is read-only.
            rows = np.array(matrix[start:stop], near)
            return torch.from_numpy(rows).to(dtype).to(device)

        def keep(output: Any) -> Array:  # noqa: ANN401
            output = output.cpu()
            kept: Array = (output.double() if output.is_floating_point() else output).numpy()
            return kept

        return np.concatenate(list(self._batches(len(matrix), load, keep)))

    def on_device(self, rows: Any) -> Any:  # noqa: ANN401
        """Return the module's output for a tensor of rows, both on its device.

        Parameters
        ----------
        rows : tensor of shape (n_rows, n_features)
            Of the device and the dtype of the module.

        Returns
        -------
        tensor of n_rows
        """
        torch = require_torch("TorchPredictor")
        parts = self._batches(len(rows), lambda start, stop: rows[start:stop], lambda part: part)
        return torch.cat(list(parts))

    def _batches(
        self, n_rows: int, load: Callable[[int, int], Any], keep: Callable[[Any], Any]
    ) -> Iterator[Any]:
        """Yield what is kept of the output for each batch of rows; of none for no rows."""
        torch = require_torch("TorchPredictor")
        at = 0
        while True:
            stop = min(at + self._size(), n_rows)
            part = None
            # The error holds the tensors of the batch, so it must be gone before the next try.
            try:
                with self._evaluating(), torch.no_grad():
                    part = keep(self._checked(self.module(load(at, stop)), stop - at))
            except torch.OutOfMemoryError:
                if stop - at <= 1:
                    raise
            if part is None:
                self._shrink((stop - at) // 2)
                continue
            yield part
            at = stop
            if at >= n_rows:
                return

    def _size(self) -> int:
        if self._batch_rows is not None:
            return self._batch_rows
        device, _ = module_place(self.module)
        return CPU_BATCH_ROWS if device.type == "cpu" else BATCH_ROWS

    def _shrink(self, n_rows: int) -> None:
        torch = require_torch("TorchPredictor")
        self._batch_rows = n_rows
        torch.cuda.empty_cache()
        if not self._has_warned:
            self._has_warned = True
            warn(
                f"The device of {self.name} ran out of memory, so it now predicts for {n_rows} "
                "rows at a time, or fewer. TorchPredictor(module, batch_rows=...) says how many "
                "from the start."
            )

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Hold the module in eval mode until all threads that are in here have left."""
        with self._lock:
            if not self._n_running:
                self._modes = [(part, part.training) for part in self.module.modules()]
                if any(is_training for _, is_training in self._modes):
                    # A module that was exported has its mode built in, and says that it has none.
                    with suppress(NotImplementedError):
                        self.module.eval()
            self._n_running += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_running -= 1
                if not self._n_running:
                    for part, is_training in self._modes:
                        if part.training != is_training:
                            part.training = is_training
                    self._modes = []

    def _checked(self, output: Any, n_rows: int) -> Any:  # noqa: ANN401
        torch = require_torch("TorchPredictor")
        if not isinstance(output, torch.Tensor):
            raise refusal(
                f"the output of {self.name}",
                "a tensor",
                type(output).__name__,
                "Wrap the module in one that returns the tensor of predictions",
                TypeError,
            )
        if not output.ndim or len(output) != n_rows:
            raise refusal(
                f"the output of {self.name}",
                f"of {n_rows} rows, as its input is",
                tuple(output.shape),
                "Return one prediction, or one row of predictions, for each row",
            )
        return output.detach()  # a module may turn gradients on for itself


class Probabilities:
    """The predictions of a module for a loss of classes: they must be probabilities.

    Modules that were trained on logits give logits, and the mean of logits over draws means
    nothing: these are refused, whenever they show. What 16-bit floats give sums to one but for
    rounding, and is made to do so.
    """

    def __init__(self, predictor: TorchPredictor) -> None:
        self.predictor = predictor

    def __call__(self, X: Any) -> Array:  # noqa: ANN401
        """Return the probabilities of rows."""
        output = self.predictor(X)
        return self.check(output, has_columns=output.ndim == 2 and output.shape[1] > 1)

    def check(self, output: Array, *, has_columns: bool) -> Array:
        """Return an output, or means of it, once it is probabilities.

        Where it has columns, the last axis is that of the classes; else it is the probability of
        the second class.
        """
        if output.dtype.kind != "f" or not np.isfinite(output).all():
            return output  # for the checks that all models share
        _, dtype = module_place(self.predictor.module)
        is_coarse = dtype.itemsize < 4
        tolerance = 2e-2 if is_coarse else 1e-4
        low, high = float(output.min(initial=0.0)), float(output.max(initial=0.0))
        if low < -tolerance or high > 1 + tolerance:
            raise self._error(
                "probabilities, in [0, 1]", low if low < -tolerance else high, has_columns
            )
        if not has_columns:
            return output
        sums = output.sum(axis=-1, keepdims=True)
        worst = float(sums.ravel()[np.argmax(np.abs(sums - 1))]) if sums.size else 1.0
        if abs(worst - 1) > tolerance:
            raise self._error("probabilities that sum to one", f"a sum of {worst:.6g}", has_columns)
        return output / sums if is_coarse else output

    def _error(self, condition: str, value: object, has_columns: bool) -> Exception:
        wrap = _SOFTMAX if has_columns else _SIGMOID
        return refusal(
            f"the output of {self.predictor.name}",
            condition,
            value,
            f"If it gives logits, explain {wrap}",
        )


def as_predictor(model: object) -> TorchPredictor | None:
    """Return the predictor that a module, or a predictor, is; None for any other model."""
    if isinstance(model, TorchPredictor):
        return model
    return TorchPredictor(model) if is_module(model) else None


def ends_in(model: object) -> str:
    """Return the class of the last layer of a module, as far as ``Sequential`` shows it.

    It is empty for what is no module.
    """
    module = model.module if isinstance(model, TorchPredictor) else model
    if not is_module(module):
        return ""
    while type(module).__name__ == "Sequential" and len(module):  # type: ignore[arg-type]
        module = module[-1]  # type: ignore[index]
    return type(module).__name__


def _to_numbers(X: Any, name: str) -> Array:  # noqa: ANN401
    """Return rows as an array of numbers; refuse other columns by name."""
    frame = Frame(X)
    others = [
        column
        for column, dtype in frame.dtypes.items()
        if not (dtype_kind(dtype) == "number" or is_boolean(dtype))
    ]
    if others:
        raise refusal(
            f"the columns for {name}",
            "of numbers",
            others,
            "Pass a function that encodes these columns as in training, and calls the module",
            TypeError,
        )
    matrix = frame.matrix()
    return matrix if matrix.dtype.kind in "fiub" else matrix.astype(np.float64)
