"""PyTorch modules as models: in large batches, on their own device, without gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dsage._check import check_count, check_member, refusal, warn
from dsage.data.columns import is_numeric
from dsage.data.frames import Frame
from dsage.models.torch_tools import is_module, module_place, require_torch

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

BATCH_ROWS = 2**18
"""Rows per call of a module on an accelerator."""

CPU_BATCH_ROWS = 2**12
"""Rows per call of a module on a CPU, whose caches are small."""

DRAWS = ("auto", "module", "host")


class TorchPredictor:
    """The predictions of a PyTorch module for rows, as an array.

    Rows become tensors in the dtype and on the device of the module's parameters, one batch at a
    time. The module is called without gradients and in eval mode, so that dropout is off and batch
    normalization uses its running statistics; afterwards each submodule is back in its previous
    mode. If an accelerator runs out of memory, batches are halved for good, with a warning.

    :func:`~dsage.models.as_model` wraps modules by itself. Wrap one yourself to choose the options.

    Parameters
    ----------
    module : torch.nn.Module
        It maps a tensor (n_rows, n_features) to a tensor of shape (n_rows,), (n_rows, 1) or
        (n_rows, n_outputs). The module itself is called, not methods such as `predict`.
    batch_rows : int, optional
        Rows per call; by default 262,144, and 4,096 on the CPU.
    draws : {"auto", "module", "host"}, default="auto"
        Where a game makes the draws that the module predicts for. On the module's device they need
        not be copied there; this requires a ``Gaussian``, ``GaussianCopula`` or ``Mix`` sampler and
        columns of floats. ``"auto"`` does so if possible, unless the device is the CPU.

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
            advice = "Pass other models without TorchPredictor"
            raise refusal("module", "a torch.nn.Module", module, advice, TypeError)
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
        """Return the predictions for rows whose columns are numbers or booleans.

        Floats are returned in double precision, integers unchanged.
        """
        torch = require_torch("TorchPredictor")
        matrix = _to_numbers(X, self.name)
        device, dtype = module_place(self.module)
        near = np.float32 if self.is_single else np.float64

        def load(start: int, stop: int) -> Any:  # noqa: ANN401
            # A copy, since tensors cannot share read-only memory.
            rows = np.array(matrix[start:stop], near)
            return torch.from_numpy(rows).to(dtype).to(device)

        def keep(output: Any) -> Array:  # noqa: ANN401
            output = output.cpu()
            kept: Array = (output.double() if output.is_floating_point() else output).numpy()
            return kept

        return np.concatenate(list(self._batches(len(matrix), load, keep)))

    def on_device(self, rows: Any) -> Any:  # noqa: ANN401
        """Return the output for a tensor (n_rows, n_features) on the device, in its dtype."""
        torch = require_torch("TorchPredictor")
        # In eval mode once for all batches: changing it may take longer than a batch.
        with self._evaluating():
            found = self._batches(len(rows), lambda start, stop: rows[start:stop], _same)
            parts = list(found)
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _batches(
        self, n_rows: int, load: Callable[[int, int], Any], keep: Callable[[Any], Any]
    ) -> Iterator[Any]:
        """Yield the output that `keep` returns for each batch; one empty batch for no rows."""
        torch = require_torch("TorchPredictor")
        at = 0
        while True:
            stop = min(at + self._size(), n_rows)
            part = None
            # The error refers to the tensors of the batch, so it must be gone before the next try.
            try:
                with self._evaluating(), torch.no_grad():
                    part = keep(self._check_output(self.module(load(at, stop)), stop - at))
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
                f"The device of {self.name} ran out of memory, so it now predicts at most {n_rows} "
                "rows at a time. Set this from the start with "
                "TorchPredictor(module, batch_rows=...)."
            )

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Keep the module in eval mode until all threads have left this context."""
        with self._lock:
            if not self._n_running:
                self._modes = [(part, part.training) for part in self.module.modules()]
                if any(is_training for _, is_training in self._modes):
                    # An exported module has a fixed mode and does not support this call.
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

    def _check_output(self, output: Any, n_rows: int) -> Any:  # noqa: ANN401
        name = f"the output of {self.name}"
        if not isinstance(output, require_torch("TorchPredictor").Tensor):
            advice = "Wrap the module in one that returns the tensor of predictions"
            raise refusal(name, "a tensor", type(output).__name__, advice, TypeError)
        if not output.ndim or len(output) != n_rows:
            advice = "Return one prediction, or one row of predictions, per row"
            raise refusal(name, f"of {n_rows} rows, as its input is", tuple(output.shape), advice)
        return output.detach()  # a module may enable gradients itself


class Probabilities:
    """The predictions of a module for a loss of classes, which must be probabilities.

    Logits are refused, since their mean over draws has no meaning. Probabilities in 16-bit floats
    sum to one up to rounding only, and are normalized.
    """

    def __init__(self, predictor: TorchPredictor) -> None:
        self.predictor = predictor

    def __call__(self, X: Any) -> Array:  # noqa: ANN401
        """Return the probabilities of rows."""
        output = self.predictor(X)
        return self.check(output, has_columns=output.ndim == 2 and output.shape[1] > 1)

    def check(self, output: Array, *, has_columns: bool) -> Array:
        """Return an output, or means of it, after checking that it consists of probabilities.

        With columns, the last axis is that of the classes; without, it is the probability of the
        second class.
        """
        if output.dtype.kind != "f" or not np.isfinite(output).all():
            return output  # left to the checks of all models
        _, dtype = module_place(self.predictor.module)
        is_coarse = dtype.itemsize < 4
        tolerance = 2e-2 if is_coarse else 1e-4
        low, high = float(output.min(initial=0.0)), float(output.max(initial=0.0))
        if low < -tolerance or high > 1 + tolerance:
            odd = low if low < -tolerance else high
            raise self._refuse("probabilities, in [0, 1]", odd, has_columns)
        if not has_columns:
            return output
        sums = output.sum(axis=-1, keepdims=True)
        worst = float(sums.ravel()[np.argmax(np.abs(sums - 1))]) if sums.size else 1.0
        if abs(worst - 1) > tolerance:
            found = f"a sum of {worst:.6g}"
            raise self._refuse("probabilities that sum to one", found, has_columns)
        return output / sums if is_coarse else output

    def _refuse(self, condition: str, value: object, has_columns: bool) -> Exception:
        layer = "Softmax(dim=1)" if has_columns else "Sigmoid()"
        advice = f"If these are logits, explain torch.nn.Sequential(module, torch.nn.{layer})"
        return refusal(f"the output of {self.predictor.name}", condition, value, advice)


def _same(part: Any) -> Any:  # noqa: ANN401
    return part


def as_predictor(model: object) -> TorchPredictor | None:
    """Return a module or a predictor as a predictor; None for any other model."""
    if isinstance(model, TorchPredictor):
        return model
    return TorchPredictor(model) if is_module(model) else None


def ends_in(model: object) -> str:
    """Return the class of the last layer of nested ``Sequential`` modules; "" for other objects."""
    module = model.module if isinstance(model, TorchPredictor) else model
    if not is_module(module):
        return ""
    while type(module).__name__ == "Sequential" and len(module):  # type: ignore[arg-type]
        module = module[-1]  # type: ignore[index]
    return type(module).__name__


def _to_numbers(X: Any, name: str) -> Array:  # noqa: ANN401
    """Return rows as an array of numbers; refuse other columns by name."""
    frame = Frame(X)
    if others := [column for column, dtype in frame.dtypes.items() if not is_numeric(dtype)]:
        advice = "Pass a function that encodes these columns as in training, and calls the module"
        raise refusal(f"the columns for {name}", "of numbers", others, advice, TypeError)
    matrix = frame.matrix()
    return matrix if matrix.dtype.kind in "fiub" else matrix.astype(np.float64)
