"""Files of arrays and JSON: limits before anything is read, and writing that leaves no half."""

import json
import os
import resource
import stat
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from dsage._check import refusal, visible, warn
from dsage._files import read_arrays, read_json, write_arrays, write_bytes, write_file


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "run.dsage"
    write_arrays(file, {"kind": "a"}, {"x": np.arange(6.0).reshape(2, 3), "names": np.array(["a"])})
    return file


def add_member(path, name, content, how=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "a", how) as file:
        file.writestr(name, content)


def npy(header, data=b""):
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def test_arrays_come_back_and_can_be_changed(path):
    header, arrays = read_arrays(path)
    assert header == {"kind": "a"}
    np.testing.assert_array_equal(arrays["x"], np.arange(6.0).reshape(2, 3))
    assert arrays["names"].tolist() == ["a"]
    arrays["x"][0, 0] = 5.0


def test_a_member_that_would_be_far_larger_than_the_file_is_refused(path):
    big = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (100000000,), }", bytes(10**8))
    add_member(path, "unused.npy", big, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 200_000
    with pytest.raises(ValueError, match="declares 100,"):
        read_arrays(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000,), }"), "its shape"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }"), "a negative length"),
        (
            npy("{'descr': '|O', 'fortran_order': False, 'shape': (), }", b"12345678"),
            "numbers and texts",
        ),
        (npy("{'descr': '<f8', 'fortran_order'"), "no valid header"),
        (npy("(" * 300 + ")" * 300), "no valid header"),
        (b"\x93NUMPY\x09\x00", "unknown version"),
        (b"text", "magic string"),
    ],
)
def test_an_array_that_is_not_what_its_header_says_is_refused(content, message, path):
    add_member(path, "more.npy", content)
    with pytest.raises(ValueError, match=message):
        read_arrays(path)


def test_other_archives_and_headers_are_refused(tmp_path, path):
    add_member(path, "note.txt", b"a")
    with pytest.raises(ValueError, match="not arrays"):
        read_arrays(path)
    np.savez(tmp_path / "other.npz", x=np.zeros(2))
    with pytest.raises(ValueError, match="no header"):
        read_arrays(tmp_path / "other.npz")
    np.save(tmp_path / "plain.npy", np.zeros(2))
    with pytest.raises(ValueError, match="not a whole archive"):
        read_arrays(tmp_path / "plain.npy")


def test_deeply_nested_json_and_constants_that_are_no_json_are_refused():
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json("[" * 100_000 + "]" * 100_000)
    with pytest.raises(ValueError, match="NaN is not JSON"):
        read_json('{"a": NaN}')
    assert read_json(json.dumps({"a": [1, None]})) == {"a": [1, None]}


# Writing


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    file = tmp_path / "report.html"
    file.write_text("old")

    def fail(stream):
        stream.write(b"half")
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_file(file, fail)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_links_and_permissions_are_kept(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o600)
    link.symlink_to(file)
    write_bytes(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_pipe_is_written_to_directly(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    write_bytes(pipe, b"text")
    assert reader.communicate(timeout=20)[0] == b"text"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_limit_of_the_size_of_files_leaves_no_half_of_a_graph(tmp_path):
    file = tmp_path / "graph.json"
    program = (
        "import resource, signal, sys; from dsage import Graph\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "graph = Graph([f'name{i}' for i in range(500)], [])\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (1000, {resource.RLIM_INFINITY}))\n"
        "graph.save(sys.argv[1])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, str(file)], check=False, capture_output=True, text=True
    )
    assert "File too large" in found.stderr
    assert not any(tmp_path.iterdir())


# Texts


def test_control_characters_are_escaped_in_texts_for_terminals():
    assert visible("a\x1b[31m\x9b\u202e\ud800\tb\n") == "a\\x1b[31m\\x9b\\u202e\\ud800\tb\n"
    assert "\x1b" not in str(refusal("the column \x1b[2J", "there", "x", "Look \x07"))
    with pytest.warns(UserWarning, match=r"a \\x1b"):
        warn("a \x1b")
