"""Models in ONNX files, run by onnxruntime (extra ``onnx``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._check import check_shape, import_extra, refusal
from dsage.data.categories import sort_labels
from dsage.data.columns import dtype_kind, is_boolean
from dsage.data.frames import Frame, check_columns, is_frame

onnxruntime = import_extra("onnxruntime", "Loading ONNX files", "onnx")

Array = npt.NDArray[Any]

_DTYPES: dict[str, Any] = {
    "tensor(bool)": np.bool_,
    "tensor(double)": np.float64,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(string)": object,
}
_FLOATS = ("tensor(float)", "tensor(double)", "tensor(float16)")
_LABELS = ("tensor(int64)", "tensor(string)", "tensor(int32)", "tensor(bool)")
_ONLY_FATAL = 4


class OnnxRegressor:
    """An ONNX model that predicts numbers; :func:`load_onnx` returns one.

    Its input is one matrix of all columns, in their order, or one input per column, matched by
    name. It runs in one thread: with several, onnxruntime sums the trees of a forest in an order
    that depends on the number of rows, which changes the last digits.
    """

    def __init__(self, content: bytes, name: str) -> None:
        self._content = content
        self.__name__ = name
        self._open()
        self._check_inputs()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__name__!r})"

    def __getstate__(self) -> dict[str, Any]:
        # Sessions cannot be sent to another process, but their bytes can.
        unsent = ("_session", "_inputs", "_outputs")
        return {name: value for name, value in self.__dict__.items() if name not in unsent}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def _open(self) -> None:
        self._session = _open_session(self._content)
        self._inputs = self._session.get_inputs()
        self._outputs = self._session.get_outputs()

    def predict(self, X: Any) -> Array:  # noqa: ANN401
        """Return the first output for rows, (n_rows,) or (n_rows, n_outputs)."""
        output: Array = np.asarray(self._run(X)[0])
        return output[:, 0] if output.ndim == 2 and output.shape[1] == 1 else output

    def _run(self, X: Any) -> list[Any]:  # noqa: ANN401
        feed = self._feed_matrix(X) if len(self._inputs) == 1 else self._feed_columns(X)
        outputs: list[Any] = self._session.run(None, feed)
        return outputs

    def _feed_matrix(self, X: Any) -> dict[str, Array]:  # noqa: ANN401
        frame, one = Frame(X), self._inputs[0]
        columns = [self._cast(frame, name, one.type) for name in frame.names]
        dtype = _DTYPES[one.type]
        matrix = np.stack(columns, axis=1) if columns else np.empty((frame.n_rows, 0), dtype)
        width = one.shape[1] if len(one.shape) == 2 else None
        if isinstance(width, int):
            advice = f"Pass the columns of its input {one.name!r}, in the order of training"
            check_shape(matrix, ("n_rows", width), f"the data for {self.__name__}", advice)
        return {one.name: matrix}

    def _feed_columns(self, X: Any) -> dict[str, Array]:  # noqa: ANN401
        names = [one.name for one in self._inputs]
        frame = Frame(X) if is_frame(X) else Frame(X, names)
        check_columns(frame.names, names, f"the columns for {self.__name__}", only=True)
        types = {one.name: one.type for one in self._inputs}
        return {name: self._cast(frame, name, types[name]).reshape(-1, 1) for name in names}

    def _cast(self, frame: Frame, name: str, wanted: str) -> Array:
        """Return a column in the type of an input, if nothing but digits is lost."""
        dtype = frame.dtypes[name]
        kind, is_flag = dtype_kind(dtype), is_boolean(dtype)
        array = frame.matrix([name])[:, 0]
        if wanted == "tensor(string)":
            if kind == "class" and not is_flag:
                return array.astype(object)
        elif is_flag or (kind == "number" and wanted != "tensor(bool)"):
            is_float = wanted in _FLOATS
            cast: Array = array.astype(np.float64 if is_float else _DTYPES[wanted])
            if is_float or (cast == array).all():
                return cast.astype(_DTYPES[wanted])
        condition = f"of the type of its input, {wanted}"
        advice = "Pass the columns in the types that the model was exported with"
        raise refusal(f"{name!r} for {self.__name__}", condition, str(dtype), advice, TypeError)

    def _check_inputs(self) -> None:
        name = f"the inputs of {self.__name__}"
        for one in self._inputs:
            if one.type not in _DTYPES or len(one.shape) not in (1, 2):
                condition = "one matrix of all columns, or one column each"
                found = f"{one.name!r}: {one.type} of shape {one.shape}"
                raise refusal(name, condition, found, "Export a model of tabular data")
            if isinstance(one.shape[0], int):
                found, advice = f"{one.name!r} of {one.shape[0]}", "Leave its first dimension free"
                raise refusal(name, "of any number of rows", found, advice)


class OnnxClassifier(OnnxRegressor):
    """An ONNX model that predicts classes: labels in one output, probabilities in another.

    It has `classes_`, in the order of the columns, only if probabilities come with their labels
    (``ZipMap``) and the model accepts a row of zeros and empty strings.
    """

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content, name)
        labels = self._find_labels()
        if labels is not None:
            self.classes_: Array = np.asarray(labels)

    def predict_proba(self, X: Any) -> Array:  # noqa: ANN401
        """Return the probabilities of rows, (n_rows, n_classes)."""
        _, *outputs = self._run(X)
        if len(outputs) > 1:  # one output per class
            return np.stack([np.asarray(output).reshape(-1) for output in outputs], axis=1)
        if not isinstance(outputs[0], list):
            return np.asarray(outputs[0])
        maps: list[dict[Any, float]] = outputs[0]
        labels = sort_labels(list(maps[0])) if maps else []
        return np.array([[each[label] for label in labels] for each in maps])

    def _find_labels(self) -> list[Any] | None:
        """Return the labels of a model whose probabilities come with labels."""
        if not self._outputs[1].type.startswith("seq(map("):
            return None
        feed = {}
        for one in self._inputs:
            width = one.shape[1] if len(one.shape) == 2 else 1
            empty = "" if one.type == "tensor(string)" else 0
            feed[one.name] = np.full((1, width or 1), empty, _DTYPES[one.type])
        try:
            maps = self._session.run(None, feed)[1]
        # onnxruntime has an error class for each status; the row may be invalid for the model.
        except Exception:
            return None
        return sort_labels(list(maps[0]))


def load_onnx(content: bytes, name: str) -> OnnxRegressor:
    """Return the model in an ONNX file: a classifier if it puts out labels and probabilities."""
    outputs = _open_session(content, name).get_outputs()
    others = [output.type for output in outputs[1:]]
    gives_maps = len(others) == 1 and others[0].startswith("seq(map(")
    has_labels = outputs[0].type in _LABELS and len(others) > 0
    if has_labels and (gives_maps or all(other in _FLOATS for other in others)):
        return OnnxClassifier(content, name)
    if outputs[0].type not in _FLOATS:
        condition = "numbers, or labels and their probabilities"
        found = [f"{output.name}: {output.type}" for output in outputs]
        raise refusal(f"the outputs of {name}", condition, found, "Export it with probabilities")
    return OnnxRegressor(content, name)


def _open_session(content: bytes, name: str = "the model") -> Any:  # noqa: ANN401
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _ONLY_FATAL
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    # onnxruntime has an error class for each status.
    except Exception as error:
        found = f"{name}: " + str(error).rpartition(" : ")[2].rstrip(".")
        raise refusal("the model file", "an ONNX model", found, "Export it again") from error
