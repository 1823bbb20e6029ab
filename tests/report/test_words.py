import math

from dsage.report import words


def test_numbers_have_significant_digits():
    found = [words.number(value) for value in (0.123456, 1234.5, math.nan, 0.0)]
    assert found == ["0.123", "1,234", "unknown", "0"]
    assert words.number(1.234e-7).startswith("1.23")
    assert words.number(1.234e-7).endswith("10⁻⁷")


def test_the_numbers_of_a_column_have_the_same_decimals():
    scale = words.Scale([0.6123, 0.01])
    assert (scale(0.6123), scale(0.01)) == ("0.6123", "0.0100")
    assert scale(-0.5) == words.MINUS + "0.5000"


def test_shares_are_in_percent_and_a_part_is_not_the_whole():
    found = [words.percent(share).split() for share in (0.3361, 0.0421, 0.9999, 0.00001)]
    assert [" ".join(each) for each in found] == ["34 %", "4.2 %", "99.9 %", "under 0.1 %"]


def test_counts_have_their_noun_and_huge_ones_are_powers_of_ten():
    assert words.count(12345) == "12,345"
    assert words.count(10**60).endswith("10⁶⁰")
    assert words.counted(1, "row") == "1 row"
    assert words.counted(2, "row") == "2 rows"
    assert words.counted(2, "surplus", "es") == "2 surpluses"


def test_p_values_have_the_usual_format():
    assert (words.p_value(0.0000001), words.p_value(0.0321)) == ("< 0.001", "0.032")


def test_names_are_listed_up_to_a_number():
    found = [words.listed(list(names)) for names in ("a", "ab", "abcdefg")]
    assert found == ["a", "a and b", "a, b, c, d, e and 2 more"]


def test_durations_have_units():
    found = [words.duration(seconds) for seconds in (0.42, 75, 8000)]
    assert found == ["0.42 seconds", "1 min 15 s", "2 h 13 min"]
