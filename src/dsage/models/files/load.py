"""Models from files, by suffix; nothing in a file is executed unless the user trusts it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import joblib

from dsage._check import Setting, Text, check_names, import_extra, refusal
from dsage.data.files import check_file
from dsage.models.files.damage import DamagedModelError
from dsage.models.files.estimators import check_estimator
from dsage.models.files.lightgbm_text import check_text
from dsage.models.files.xgboost_model import check_content
from dsage.models.origin import remember_file

_SKOPS = (".skops",)
_ONNX = (".onnx",)
_XGBOOST = (".json", ".ubj", ".xgb")
_LIGHTGBM = (".txt", ".lgb")
_PICKLE = (".pkl", ".pickle", ".joblib")
# Arrays of models are hardly compressed more than this; small files may be.
_RATIO, _SPARE = 200, 2**26
_AGAIN = "Save the model again"


def load_model(
    path: str | PathLike[str],
    *,
    trusted: str | Iterable[str] = (),
    trust_pickle: bool = False,
) -> Any:  # noqa: ANN401
    """Load a fitted model from a file.

    Skops, ONNX, XGBoost and LightGBM files hold data from which a model is rebuilt. A pickle is a
    program that runs when it is loaded.

    Parameters
    ----------
    path : str or path
        The file. Its suffix determines the format:

        - ``.skops``: an estimator or pipeline, saved with ``skops.io.dump``.
        - ``.onnx``: see :class:`~dsage.models.files.onnx_model.OnnxRegressor`.
        - ``.json``, ``.ubj``, ``.xgb``: a model of XGBoost, saved with ``save_model``.
        - ``.txt``, ``.lgb``: a booster of LightGBM, saved with ``save_model``.
        - ``.pkl``, ``.pickle``, ``.joblib``: any object, with `trust_pickle` only.
    trusted : str or iterable of str, default=()
        Types that a skops file may hold in addition to those that skops itself trusts. The error
        that refuses a file names them.
    trust_pickle : bool, default=False
        Whether to load pickles. They can run any program with your rights: load a pickle only if
        you made it yourself, or trust whoever made it.

    Returns
    -------
    object
        A model for :func:`dsage.models.as_model`. Errors that it raises there, since a file can be
        damaged in ways that only predictions show, name the file.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If there is no such file.
    ValueError
        If the file has another format, is damaged or not trusted.
    ImportError
        If the package that reads it is not installed.

    Examples
    --------
    >>> import tempfile, skops.io
    >>> from sklearn.linear_model import LinearRegression
    >>> file = Path(tempfile.mkdtemp()) / "line.skops"
    >>> skops.io.dump(LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0]), file)
    >>> load_model(file).predict([[2.0]])
    array([5.])
    """
    file = check_file(path, "the model file")
    types = check_names([trusted] if isinstance(trusted, str) else trusted, "trusted")
    loaders: dict[tuple[str, ...], Callable[[Path], Any]] = {
        _SKOPS: partial(_load_skops, trusted=types),
        _ONNX: _load_onnx,
        _XGBOOST: _load_xgboost,
        _LIGHTGBM: _load_lightgbm,
        _PICKLE: partial(_load_pickle, trust=trust_pickle),
    }
    suffix = file.suffix.lower()
    for suffixes, loader in loaders.items():
        if suffix in suffixes:
            return remember_file(loader(file), file.name)
    condition = f"one of {', '.join(each for suffixes in loaders for each in suffixes)}"
    advice = "Save the model with skops or ONNX, or load it and call dsage.explain in Python"
    raise refusal("the model file", condition, file.name, advice)


def _load_skops(file: Path, trusted: tuple[str, ...]) -> Any:  # noqa: ANN401
    skops = import_extra("skops.io", f"Loading {file.name}", "skops")
    if not is_zipfile(file):
        raise _refuse_file(file, "a skops file", "it is not an archive")
    _check_archive(file)
    try:
        unknown = sorted(set(skops.get_untrusted_types(file=file)) - set(trusted))
    # Damaged archives raise many errors: absent members, invalid JSON, unknown nodes.
    except Exception as error:
        raise _refuse_file(file, "a skops file", _first_line(error)) from error
    if unknown:
        condition = "trusted, since each can run code of its own or harm the process"
        advice = Text(["Name those that you trust, with ", Setting("trusted", unknown)])
        raise refusal(f"the types in {file.name}", condition, unknown, advice)
    try:
        model = skops.load(file, trusted=list(trusted))
        check_estimator(model)
    # Checks of parts fail in many ways where arrays are missing.
    except Exception as error:
        raise _refuse_file(file, "a skops file", _first_line(error)) from error
    return _check_model(model, file)


def _check_archive(file: Path) -> None:
    """Refuse an archive whose members are far larger than the file."""
    n_bytes = file.stat().st_size
    try:
        with ZipFile(file) as archive:
            declared = sum(member.file_size for member in archive.infolist())
    # Zip files can raise many errors when names are decoded and offsets computed.
    except Exception as error:
        raise _refuse_file(file, "a skops file", _first_line(error)) from error
    if declared > _RATIO * n_bytes + _SPARE:
        found = f"its parts have {declared:,} bytes, and the file {n_bytes:,}"
        raise _refuse_file(file, "a skops file", found)


def _load_onnx(file: Path) -> Any:  # noqa: ANN401
    # onnxruntime is optional.
    onnx = import_module("dsage.models.files.onnx_model")
    return onnx.load_onnx(file.read_bytes(), file.name)


def _load_xgboost(file: Path) -> Any:  # noqa: ANN401
    xgboost = import_extra("xgboost", f"Loading {file.name}", "xgboost")
    content = bytearray(file.read_bytes())
    if not content.startswith(b"{") or b"learner" not in content:
        raise _refuse_file(file, "an XGBoost model", "it is something else")
    try:
        check_content(bytes(content))
        return xgboost.Booster(model_file=content)
    except DamagedModelError as error:
        raise _refuse_file(file, "a whole XGBoost model", str(error)) from error
    # XGBoost passes on errors of C++ and decoders.
    except Exception as error:
        raise _refuse_file(file, "a whole XGBoost model", _first_line(error)) from error


def _load_lightgbm(file: Path) -> Any:  # noqa: ANN401
    lightgbm = import_extra("lightgbm", f"Loading {file.name}", "lightgbm")
    try:
        # Line ends are kept, since the header counts the bytes of the trees.
        text = file.read_bytes().decode()
        check_text(text)
        return lightgbm.Booster(model_str=text)
    except UnicodeDecodeError as error:
        raise _refuse_file(file, "a LightGBM model", "it is not text") from error
    except DamagedModelError as error:
        raise _refuse_file(file, "a whole LightGBM model", str(error)) from error
    # LightGBM passes on errors of C++ and of decoders.
    except Exception as error:
        raise _refuse_file(file, "a whole LightGBM model", _first_line(error)) from error


def _load_pickle(file: Path, trust: bool) -> Any:  # noqa: ANN401
    if not trust:
        start = (
            "A pickle can run any program with your rights when it is loaded, read and send your"
            " files. If you made it yourself, or trust who did, add "
        )
        end = "; otherwise ask for a skops or ONNX file"
        advice = Text([start, Setting("trust_pickle", value=True), end])
        raise refusal("the model file", "of a kind that is safe to load", file.name, advice)
    try:
        model = joblib.load(file)
    except ModuleNotFoundError as error:
        name, remedy = f"the packages of {file.name}", f"Install {error.name}"
        raise refusal(name, "installed", error.name, remedy, ImportError) from error
    except (EOFError, pickle.UnpicklingError) as error:
        raise _refuse_file(file, "a whole pickle", "") from error
    # A pickle can call anything, so any error can be raised.
    except Exception as error:
        remedy = "Load it with the package versions that it was saved with"
        raise _refuse_file(file, "a whole pickle", _first_line(error), remedy) from error
    return _check_model(model, file)


def _check_model(model: Any, file: Path) -> Any:  # noqa: ANN401
    if isinstance(model, type) or not (hasattr(model, "predict") or callable(model)):
        name, condition = f"the object in {file.name}", "a fitted model, with predict"
        raise refusal(name, condition, type(model).__name__, "Save the model itself")
    return model


def _refuse_file(file: Path, condition: str, reason: str, advice: str = _AGAIN) -> Exception:
    value = f"{file.name}: {reason}" if reason else file.name
    return refusal("the model file", condition, value, advice)


def _first_line(error: Exception) -> str:
    """Return the first line of an error, without the location in XGBoost's sources."""
    lines = str(error).strip().splitlines()
    return lines[0].rpartition(": ")[2].rstrip(". ") if lines else type(error).__name__
