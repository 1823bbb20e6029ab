"""Dates, durations and times of day are counted from the first one, and come back exactly."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal as assert_polars_equal

from dsage.data.kinds import Kind
from dsage.data.layout import Layout

DAYS = ["2020-02-29", "2021-01-01", None, "1999-12-31"]
MOMENTS = ["2020-02-29 12:34:56.789", "2021-01-01", None, "1999-12-31 23:59:59.999"]


def pandas_times():
    moments = pd.Series(pd.to_datetime(MOMENTS, format="ISO8601"))
    gaps = moments - moments[1]
    times = {"days": pd.Series(pd.to_datetime(DAYS))}
    for unit in ("s", "ms", "us", "ns"):
        times[f"date {unit}"] = moments.dt.as_unit(unit)
        times[f"gap {unit}"] = gaps.dt.as_unit(unit)
        times[f"zone {unit}"] = moments.dt.as_unit(unit).dt.tz_localize("Europe/Berlin")
    types = [pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.date32(), pa.date64()]
    for kind in types:
        stamps = pa.array(times["days"]).cast(pa.timestamp("ms")).cast(kind)
        times[str(kind)] = pd.Series(pd.arrays.ArrowExtensionArray(stamps))
    clock = pa.array([dt.time(1, 2), None, dt.time(23, 59, 59), dt.time(0)])
    for kind in (pa.time32("s"), pa.time64("ns")):
        times[str(kind)] = pd.Series(pd.arrays.ArrowExtensionArray(clock.cast(kind)))
    length = pa.array([1, None, -5, 2**40]).cast(pa.duration("ms"))
    times["length"] = pd.Series(pd.arrays.ArrowExtensionArray(length))
    return times


PANDAS = pandas_times()
CLOCK = [dt.time(1, 2), None, dt.time(23, 59, 59, 999_999)]
POLARS = {
    "date": pl.Series([dt.date(2020, 2, 29), None, dt.date(1999, 1, 1)]),
    "ms": pl.Series([5, None, -7]).cast(pl.Datetime("ms")),
    "zone": pl.Series([5, None, 10**15]).cast(pl.Datetime("us", "Europe/Berlin")),
    "gap": pl.Series([5, None, 10**15]).cast(pl.Duration("ns")),
    "time": pl.Series(CLOCK),
}
ARROW = {
    "timestamp": pa.array([5, None, 10**15]).cast(pa.timestamp("us")),
    "zone": pa.array([5, None, 10**15]).cast(pa.timestamp("us", "Asia/Tokyo")),
    "date32": pa.array([dt.date(2020, 2, 29), None, dt.date(1999, 1, 1)]),
    "date64": pa.array([dt.date(2020, 2, 29), None, dt.date(1999, 1, 1)]).cast(pa.date64()),
    "time32": pa.array([5, None, 86399], pa.int32()).cast(pa.time32("s")),
    "time64": pa.array(CLOCK),
    "duration": pa.array([5, None, -7]).cast(pa.duration("s")),
}


@pytest.mark.parametrize("name", PANDAS)
def test_times_of_pandas_come_back(name):
    frame = PANDAS[name].to_frame("t")
    layout = Layout.of(frame)
    matrix = layout.encode(frame)
    assert layout.kinds == (Kind.TIME,)
    assert layout.n_categories.tolist() == [0]
    assert np.nanmin(matrix) == 0.0
    pd.testing.assert_frame_equal(layout.decode(matrix), frame)
    complete = frame[frame["t"].notna()].reset_index(drop=True)
    pd.testing.assert_frame_equal(layout.decode(layout.encode(complete)), complete)


@pytest.mark.parametrize("name", POLARS)
def test_times_of_polars_come_back(name):
    frame = pl.DataFrame({"t": POLARS[name]})
    layout = Layout.of(frame)
    assert layout.kinds == (Kind.TIME,)
    assert_polars_equal(layout.decode(layout.encode(frame)), frame)


@pytest.mark.parametrize("name", ARROW)
def test_times_of_pyarrow_come_back(name):
    table = pa.table({"t": ARROW[name]})
    layout = Layout.of(table)
    assert layout.kinds == (Kind.TIME,)
    assert layout.decode(layout.encode(table)).equals(table)


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "10s", "s", "ns", "ps"])
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_times_of_arrays_come_back(unit, kind):
    array = np.array([[5, 7], [-3, 2], [2**40, 9]]).astype(f"{kind}[{unit}]")
    array[1, 1] = "NaT"
    layout = Layout.of(array)
    decoded = layout.decode(layout.encode(array))
    assert decoded.dtype == array.dtype
    np.testing.assert_array_equal(decoded, array)


def test_days_are_counted_in_days_and_minutes_in_minutes():
    days = pd.DataFrame({"t": pd.to_datetime(["2020-01-05", "2020-01-01", "2020-03-01"])})
    layout = Layout.of(days)
    np.testing.assert_array_equal(layout.encode(days)[:, 0], [4, 0, 60])
    finer = pd.DataFrame({"t": pd.to_datetime(["2020-01-01 06:00", "2019-12-31 00:00"])})
    np.testing.assert_array_equal(layout.encode(finer)[:, 0], [0.25, -1])
    decoded = layout.decode(layout.encode(finer))
    pd.testing.assert_frame_equal(decoded, finer)
    minutes = Layout.of(
        pd.DataFrame({"t": pd.to_datetime(["2020-01-01 00:02", "2020-01-01 00:00"])})
    )
    assert minutes.decode(np.array([[7.0]]))["t"][0] == pd.Timestamp("2020-01-01 00:07")


@given(
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5),
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.sampled_from([1, 1000, 3600 * 10**9, 86400 * 10**9]),
)
@settings(deadline=None, max_examples=150)
@pytest.mark.filterwarnings("ignore:Column 't' has times")
def test_times_are_exact_as_far_as_floats_can_count_them(ticks, unit, multiple):
    ticks = np.array([tick // multiple * multiple for tick in ticks])
    frame = pd.DataFrame({"t": ticks.view(f"M8[{unit}]")})
    layout = Layout.of(frame)
    decoded = layout.decode(layout.encode(frame))["t"].to_numpy().view(np.int64)
    span = int(ticks.max()) - int(ticks.min())
    error = max(abs(int(a) - int(b)) for a, b in zip(ticks, decoded, strict=True))
    assert error == 0 if span < 2**53 else error <= span // 2**52


def test_times_too_fine_for_floats_are_told():
    frame = pd.DataFrame({"t": np.array([0, 2**60 + 1]).view("M8[ns]")})
    with pytest.warns(UserWarning, match="Column 't' has times that are too fine"):
        Layout.of(frame)


def test_draws_stay_within_what_the_type_can_hold():
    clock = pl.DataFrame({"t": [dt.time(1), dt.time(2)]})
    decoded = Layout.of(clock).decode(np.array([[-100.0], [1e9]]))["t"].to_list()
    assert decoded == [dt.time(0), dt.time(23, 59, 59, 999_999)]
    far = Layout.of(pd.DataFrame({"t": pd.to_datetime(["2020-01-01", "2020-01-02"]).as_unit("ns")}))
    assert far.decode(np.array([[1e300]]))["t"][0].year == 2262


def test_other_units_libraries_and_zones_mean_the_same_moments():
    train = pd.DataFrame({"t": pd.to_datetime(["2020-01-01", "2020-01-05"]).as_unit("s")})
    layout = Layout.of(train)
    for other in (
        train.assign(t=train["t"].dt.as_unit("ns")),
        pl.from_pandas(train),
        pa.Table.from_pandas(train.assign(t=train["t"].dt.as_unit("ms"))),
        pl.DataFrame({"t": [dt.date(2020, 1, 1), dt.date(2020, 1, 5)]}),
    ):
        np.testing.assert_array_equal(layout.encode(other)[:, 0], [0, 4])
    fine = Layout.of(train.assign(t=train["t"].dt.as_unit("ns")))
    np.testing.assert_array_equal(fine.encode(train)[:, 0], [0, 4])
    zoned = train.assign(t=train["t"].dt.tz_localize("UTC"))
    tokyo = zoned.assign(t=zoned["t"].dt.tz_convert("Asia/Tokyo"))
    np.testing.assert_array_equal(Layout.of(zoned).encode(tokyo)[:, 0], [0, 4])


def test_times_of_another_sort_are_refused():
    layout = Layout.of(pd.DataFrame({"t": pd.to_datetime(["2020-01-01", "2020-01-05"])}))
    zoned = pd.DataFrame({"t": pd.to_datetime(["2020-01-01"]).tz_localize("UTC")})
    with pytest.raises(
        TypeError, match=r"column 't' must be a date, .* got 'date with a time zone'"
    ):
        layout.encode(zoned)
    with pytest.raises(TypeError, match=r"column 't' must be a date, .* got 'duration'"):
        layout.encode(pd.DataFrame({"t": pd.to_timedelta([1], "s")}))
    with pytest.raises(TypeError, match="column 't' must be of dates or times, as in training"):
        layout.encode(pd.DataFrame({"t": [1.0]}))
    years = Layout.of(np.array([["2020"], ["2021"]], "M8[Y]"))
    with pytest.raises(TypeError, match=r"column 'X1' must be of type datetime64\[Y\]"):
        years.encode(np.array([["2020-01-01"]], "M8[D]"))
