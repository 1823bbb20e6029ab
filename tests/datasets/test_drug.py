import hashlib
from io import BytesIO
from urllib.error import URLError

import pytest

from drug_data import drug_file
from dsage.datasets import DRUG_CATEGORICAL, DRUG_FEATURES, DRUG_SUBSTANCES, drug, drug_consumption


def made_up(n_rows=1885):
    numbers = ",".join(["0.5"] * len(DRUG_FEATURES))
    classes = ",".join(["CL0"] * len(DRUG_SUBSTANCES))
    return "".join(f"{row},{numbers},{classes}\n" for row in range(1, n_rows + 1)).encode()


@pytest.fixture
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("DSAGE_DRUG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def internet(monkeypatch, _empty_cache):
    """What the source answers with: an entry of bytes, or an error; and what was asked."""
    at = {"content": made_up(), "asked": []}

    def urlopen(url, timeout):
        at["asked"].append(url)
        if isinstance(at["content"], Exception):
            raise at["content"]
        return BytesIO(at["content"])

    monkeypatch.setattr(drug, "urlopen", urlopen)
    monkeypatch.setattr(drug, "_SHA256", hashlib.sha256(made_up()).hexdigest())
    return at


def check(frame):
    assert frame.shape == (1885, 31)
    assert tuple(frame.columns) == (*DRUG_FEATURES, *DRUG_SUBSTANCES)
    assert frame.index.name == "ID"


def test_a_path_is_read(tmp_path, internet):
    path = tmp_path / "data.csv"
    path.write_bytes(made_up())
    check(drug_consumption(path))
    check(drug_consumption(str(path)))
    assert not internet["asked"]


def test_the_environment_variable_is_read(tmp_path, internet, monkeypatch):
    path = tmp_path / "data.csv"
    path.write_bytes(made_up())
    monkeypatch.setenv("DSAGE_DRUG_DATA", str(path))
    check(drug_consumption())
    assert not internet["asked"]


def test_a_download_is_kept(internet, tmp_path):
    check(drug_consumption())
    assert internet["asked"] == [drug.SOURCE]
    assert (tmp_path / "cache" / "dsage" / "drug_consumption.data").read_bytes() == made_up()
    check(drug_consumption())
    assert len(internet["asked"]) == 1


def test_a_damaged_copy_in_the_cache_is_fetched_again(internet, tmp_path):
    drug_consumption()
    (tmp_path / "cache" / "dsage" / "drug_consumption.data").write_bytes(b"1,2\n")
    check(drug_consumption())
    assert len(internet["asked"]) == 2


def test_another_file_from_the_source_is_refused_and_not_kept(internet, tmp_path):
    internet["content"] = made_up() + b" "
    with pytest.raises(ValueError, match=r"the download must be the file with the SHA-256"):
        drug_consumption()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("error", [URLError("no route"), TimeoutError("timed out")])
def test_without_a_connection_the_error_says_what_to_do(internet, error):
    internet["content"] = error
    with pytest.raises(ConnectionError, match=r"could not be downloaded .*set DSAGE_DRUG_DATA"):
        drug_consumption()


def test_a_path_without_a_file_is_refused(tmp_path, internet, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"path must be a file of the drug consumption"):
        drug_consumption(tmp_path / "nothing.csv")
    monkeypatch.setenv("DSAGE_DRUG_DATA", str(tmp_path / "nothing.csv"))
    with pytest.raises(FileNotFoundError, match=r"DSAGE_DRUG_DATA must be a file"):
        drug_consumption()


def test_a_file_of_another_shape_is_refused(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(made_up(n_rows=3))
    with pytest.raises(ValueError, match=r"must be of 1885 rows and 32 columns.*got \(3, 32\)"):
        drug_consumption(path)


def test_the_real_file_has_the_checksum_and_the_classes():
    path = drug_file()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == drug._SHA256
    frame = drug_consumption(path)
    check(frame)
    assert set(frame["Nicotine"]) == {f"CL{level}" for level in range(7)}
    assert frame[list(DRUG_CATEGORICAL)].nunique().tolist() == [2, 9, 7, 7]
