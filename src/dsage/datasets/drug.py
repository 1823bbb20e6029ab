"""The drug consumption data of the paper's section 5.3: found, or fetched and checked."""

from __future__ import annotations

import hashlib
import os
from io import BytesIO
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pandas as pd

from dsage._check import refusal

DRUG_FEATURES = (
    *("Age", "Gender", "Education", "Country", "Ethnicity"),
    *("Nscore", "Escore", "Oscore", "Ascore", "Cscore", "Impulsive", "SS"),
)
"""The twelve features; the file codes all of them by numbers."""

DRUG_CATEGORICAL = ("Gender", "Education", "Country", "Ethnicity")
"""Those of them whose numbers are names of classes."""

DRUG_SUBSTANCES = (
    *("Alcohol", "Amphet", "Amyl", "Benzos", "Caff", "Cannabis", "Choc", "Coke", "Crack"),
    *("Ecstasy", "Heroin", "Ketamine", "Legalh", "LSD", "Meth", "Mushrooms", "Nicotine"),
    *("Semer", "VSA"),
)
"""The nineteen substances: ``CL0`` (never used) to ``CL6`` (used in the last day)."""

VARIABLE = "DSAGE_DRUG_DATA"
SOURCE = "https://archive.ics.uci.edu/ml/machine-learning-databases/00373/drug_consumption.data"
_SHA256 = "90b8cf500b07ad455baf9fe1dc519998c75a1df6d87f6bd7069176f0826ea8c1"
_NAME = "drug_consumption.data"
_N_ROWS = 1885
_TIMEOUT = 30.0
_ADVICE = f"Save {SOURCE} and give its path, or set {VARIABLE} to it"


def drug_consumption(path: str | Path | None = None) -> pd.DataFrame:
    """Return the UCI data set "Drug consumption (quantified)", 1,885 rows.

    The file is looked for at `path`; else where the environment variable ``DSAGE_DRUG_DATA``
    points to; else in the cache (``$XDG_CACHE_HOME/dsage`` or ``~/.cache/dsage``). Else it is
    downloaded from UCI, compared with a checksum, and kept in the cache.

    Parameters
    ----------
    path : str or Path, optional
        The file as UCI has it: no header, 32 columns.

    Returns
    -------
    pandas.DataFrame
        The columns of :data:`DRUG_FEATURES` and :data:`DRUG_SUBSTANCES`; ``ID`` is the index.

    Raises
    ------
    FileNotFoundError
        Where there is no file at the place that was named.
    ValueError
        Where a file is another one.
    ConnectionError
        Where it can be had from nowhere; the error says what to do.

    References
    ----------
    Fehrman, Muhammad, Mirkes, Egan & Gorban (2017). The five factor model of personality and
    evaluation of drug consumption risk. doi:10.24432/C5TC7S.
    """
    parameter, named = "path", path
    if named is None:
        parameter, named = VARIABLE, os.environ.get(VARIABLE) or None
    if named is not None:
        place = Path(named).expanduser()
        if not place.is_file():
            raise refusal(
                parameter,
                "a file of the drug consumption data",
                str(named),
                _ADVICE,
                FileNotFoundError,
            )
        return _table(place.read_bytes(), str(place))
    kept = _cache() / _NAME
    if kept.is_file():
        content = kept.read_bytes()
        if _is_whole(content):
            return _table(content, str(kept))
    return _table(_downloaded(kept), SOURCE)


def _cache() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME")
    return (Path(folder) if folder else Path.home() / ".cache") / "dsage"


def _is_whole(content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == _SHA256


def _downloaded(kept: Path) -> bytes:
    """Return the file from its source, and keep it."""
    try:
        with urlopen(SOURCE, timeout=_TIMEOUT) as answer:
            content: bytes = answer.read()
    except (URLError, OSError) as error:
        raise ConnectionError(
            f"The drug consumption data could not be downloaded ({error}). {_ADVICE}."
        ) from error
    if not _is_whole(content):
        found = hashlib.sha256(content).hexdigest()
        condition = f"the file with the SHA-256 checksum {_SHA256}"
        raise refusal("the download", condition, found, _ADVICE)
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.with_suffix(".partial")
    partial.write_bytes(content)
    partial.replace(kept)
    return content


def _table(content: bytes, place: str) -> pd.DataFrame:
    names = ("ID", *DRUG_FEATURES, *DRUG_SUBSTANCES)
    frame = pd.read_csv(BytesIO(content), header=None)
    if frame.shape != (_N_ROWS, len(names)):
        raise refusal(
            place,
            f"of {_N_ROWS} rows and {len(names)} columns, without a header",
            frame.shape,
            _ADVICE,
        )
    frame.columns = pd.Index(names)
    return frame.set_index("ID")
