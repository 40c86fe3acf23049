"""Files of arrays with a JSON header."""

import json
import re
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planners.files import read_file, write_file

HEADER = {"names": ["a", "b"], "sizes": [2, 3], "none": None}
ARRAYS = {
    "floats": np.linspace(0.0, 1.0, 7).reshape(7, 1),
    "bytes": np.arange(5, dtype=np.uint8),
    "nothing": np.zeros((0, 3)),
    "names": np.array(["x", "yz"]),
    "number": np.array(3.5),
}


def check(path):
    header, arrays = read_file(path, "Thing")
    assert header == HEADER
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "thing"  # no suffix is added
    write_file(path, "Thing", HEADER, ARRAYS)
    check(path)
    assert [file.name for file in tmp_path.iterdir()] == ["thing"]


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        write_file(tmp_path / name, "Thing", HEADER, ARRAYS)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "thing"
    write_file(path, "Thing", HEADER, ARRAYS)

    def full_disk(file, **arrays):
        file.write(b"half of it")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="no space"):
        write_file(path, "Thing", {}, {})
    check(path)
    assert [file.name for file in tmp_path.iterdir()] == ["thing"]


@given(data=st.data())
def test_damage_is_noticed_or_harmless(tmp_path_factory, data):
    """One bit turned, or the end missing: an error that names the file, or the same content."""
    path = tmp_path_factory.getbasetemp() / "thing"
    write_file(path, "Thing", HEADER, ARRAYS)
    whole = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        whole[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del whole[place:]
    path.write_bytes(whole)
    try:
        read_file(path, "Thing")
    except ValueError:
        with pytest.raises(ValueError, match=re.escape(str(path))):
            read_file(path, "Thing")
    else:
        check(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"not an archive", bytes(1000)])
def test_foreign_files_are_refused(tmp_path, content):
    path = tmp_path / "thing"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="thing' is damaged or not a file of exo-envs"):
        read_file(path, "Thing")


def test_archives_of_others_are_refused(tmp_path):
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="has no header"):
        read_file(tmp_path / "arrays.npz", "Thing")
    np.savez(tmp_path / "header.npz", header=np.frombuffer(b'{"format": "else"}', np.uint8))
    with pytest.raises(ValueError, match="header is not one of exo-envs"):
        read_file(tmp_path / "header.npz", "Thing")
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("header", "text")
    with pytest.raises(ValueError, match="'header' is not an array"):
        read_file(tmp_path / "zip", "Thing")


def test_pickles_are_never_read(tmp_path):
    np.savez(tmp_path / "pickle.npz", header=np.array([{"format": "exo-envs"}], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        read_file(tmp_path / "pickle.npz", "Thing")
    with pytest.raises(ValueError, match="'a' holds Python objects"):
        write_file(tmp_path / "thing", "Thing", {}, {"a": np.array([{}], dtype=object)})


def test_other_kinds_and_versions_are_named(tmp_path):
    path = tmp_path / "thing"
    write_file(path, "Thing", HEADER, ARRAYS)
    with pytest.raises(ValueError, match="cannot be read as a Other: it holds a 'Thing'"):
        read_file(path, "Other")
    head = {"format": "exo-envs", "version": 99, "kind": "Thing", "arrays": {}, "content": {}}
    np.savez(tmp_path / "new.npz", header=np.frombuffer(json.dumps(head).encode(), np.uint8))
    with pytest.raises(ValueError, match="version is 99"):
        read_file(tmp_path / "new.npz", "Thing")


def test_arrays_that_are_missing_are_noticed(tmp_path):
    content = {"a": ["<f8", [3]]}
    head = {"format": "exo-envs", "version": 1, "kind": "T", "arrays": content, "content": {}}
    np.savez(tmp_path / "less.npz", header=np.frombuffer(json.dumps(head).encode(), np.uint8))
    with pytest.raises(ValueError, match="should hold the arrays"):
        read_file(tmp_path / "less.npz", "T")


def test_the_headers_place_is_taken(tmp_path):
    with pytest.raises(ValueError, match="cannot be named 'header'"):
        write_file(tmp_path / "thing", "Thing", {}, {"header": np.zeros(1)})


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "nowhere", "Thing")
