"""The drug consumption data of section 5.3 of the paper, found locally or downloaded."""

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
"""The twelve features, all coded as numbers in the file."""

DRUG_CATEGORICAL = ("Gender", "Education", "Country", "Ethnicity")
"""The features whose numbers are codes of categories."""

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
_ADVICE = f"Download {SOURCE} and pass its path, or set {VARIABLE} to the path"


def drug_consumption(path: str | Path | None = None) -> pd.DataFrame:
    """Return the UCI data set "Drug consumption (quantified)", 1,885 rows.

    The file is read from `path`, from the path in the environment variable ``DSAGE_DRUG_DATA``, or
    from the cache (``$XDG_CACHE_HOME/dsage`` or ``~/.cache/dsage``). Otherwise it is downloaded
    from UCI, verified by its checksum, and cached.

    Parameters
    ----------
    path : str or Path, optional
        The original file of UCI: no header, 32 columns.

    Returns
    -------
    pandas.DataFrame
        The columns of :data:`DRUG_FEATURES` and :data:`DRUG_SUBSTANCES`; ``ID`` is the index.

    Raises
    ------
    FileNotFoundError
        If the named file does not exist.
    ValueError
        If the file has other content.
    ConnectionError
        If the download fails; the error says what to do.

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
        return _read_table(place.read_bytes(), str(place))
    kept = _cache() / _NAME
    if kept.is_file():
        content = kept.read_bytes()
        if _is_original(content):
            return _read_table(content, str(kept))
    return _read_table(_download(kept), SOURCE)


def _cache() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME")
    return (Path(folder) if folder else Path.home() / ".cache") / "dsage"


def _is_original(content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == _SHA256


def _download(kept: Path) -> bytes:
    """Download the file and cache it."""
    try:
        with urlopen(SOURCE, timeout=_TIMEOUT) as answer:
            content: bytes = answer.read()
    except (URLError, OSError) as error:
        raise ConnectionError(
            f"The drug consumption data could not be downloaded ({error}). {_ADVICE}."
        ) from error
    if not _is_original(content):
        found = hashlib.sha256(content).hexdigest()
        condition = f"the file with the SHA-256 checksum {_SHA256}"
        raise refusal("the download", condition, found, _ADVICE)
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.with_suffix(".partial")
    partial.write_bytes(content)
    partial.replace(kept)
    return content


def _read_table(content: bytes, place: str) -> pd.DataFrame:
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
