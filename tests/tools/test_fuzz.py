"""A small part of `make fuzz`: every format has mutants, and dsage reads or refuses them."""

import pytest

from tools.fuzz.child import outcome_of, read_mutants
from tools.fuzz.formats import FORMATS, make_files, mutant

FAST = [
    *("XGBoost JSON", "XGBoost binary JSON", "LightGBM", "checkpoints"),
    *("graphs (JSON)", "groups (JSON)", "runs of folds (JSON)", "CSV", "Parquet"),
]
LIBRARIES = {"XGBoost JSON": "xgboost", "XGBoost binary JSON": "xgboost", "LightGBM": "lightgbm"}


@pytest.mark.parametrize("name", FAST)
def test_damaged_files_are_read_or_refused_in_the_words_of_the_package(name, tmp_path):
    pytest.importorskip(LIBRARIES.get(name, "numpy"))
    files = make_files(name, tmp_path)
    for chosen, content in files.items():
        whole = tmp_path / f"0-{chosen}"
        whole.write_bytes(content)
        assert outcome_of(name, whole) == ("read", "")
    found = read_mutants(name, files, 0, range(24), tmp_path)
    assert [each for each in found if each[1] == "raw"] == []
    assert sum(each[1] == "refused" for each in found) >= 8


def test_mutants_are_the_same_in_every_run(tmp_path):
    files = make_files("graphs (JSON)", tmp_path)
    first = [mutant("graphs (JSON)", files, 0, number) for number in range(20)]
    assert first == [mutant("graphs (JSON)", files, 0, number) for number in range(20)]
    assert len({content for _, content in first}) > 15
    assert first[0] != mutant("graphs (JSON)", files, 1, 0)


def test_every_format_has_a_name_of_its_own():
    assert len(FORMATS) >= 12
