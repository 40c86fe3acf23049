"""Files of arrays with a JSON header."""

import os
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from forgery import file_of
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from planners.core import files
from planners.core.files import read_file, replacing, write_file


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass(frozen=True)
class Named:
    name: str
    pairs: tuple[Pair, ...]


ARRAYS = {
    "floats": np.linspace(0.0, 1.0, 7).reshape(7, 1),
    "bytes": np.arange(5, dtype=np.uint8),
    "nothing": np.zeros((0, 3)),
    "number": np.array(3.5),
}
PLAIN = {"strings": ("a", "b"), "sizes": (2, 3), "none": None, "table": {3: (0.5, True)}}
CONTENT = {
    **PLAIN,
    **ARRAYS,
    "record": Named("n", (Pair(1, np.arange(3)), Pair(None, ()))),
    "scalar": np.float64(0.1),
}


def read(path, kind="Thing"):
    return read_file(path, kind, {kind: dict}, (Named, Pair))


def check(path):
    content = read(path)
    assert list(content) == list(CONTENT)
    assert {name: content[name] for name in PLAIN} == PLAIN
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(content[name], array)
        assert content[name].dtype == array.dtype
    record = content["record"]
    assert isinstance(record, Named)
    assert (record.name, record.pairs[1]) == ("n", Pair(None, ()))
    assert isinstance(record.pairs[0], Pair)
    np.testing.assert_array_equal(record.pairs[0].second, np.arange(3))
    assert content["scalar"] == 0.1


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "thing"  # no suffix is added
    write_file(path, "Thing", CONTENT)
    check(path)
    assert [file.name for file in tmp_path.iterdir()] == ["thing"]


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        write_file(tmp_path / name, "Thing", CONTENT)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "thing"
    write_file(path, "Thing", CONTENT)

    def full_disk(number):
        raise OSError("no space left on device")

    monkeypatch.setattr(files.os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        write_file(path, "Thing", {})
    check(path)
    assert [file.name for file in tmp_path.iterdir()] == ["thing"]


@given(data=st.data())
def test_damage_is_noticed_or_harmless(tmp_path_factory, data):
    """One bit turned, or the end missing: an error that names the file, or the same content."""
    path = tmp_path_factory.getbasetemp() / "thing"
    write_file(path, "Thing", CONTENT)
    whole = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        whole[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del whole[place:]
    path.write_bytes(whole)
    try:
        read(path)
    except ValueError:
        with pytest.raises(ValueError, match=re.escape(str(path))):
            read(path)
    else:
        check(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"not an archive", bytes(1000)])
def test_foreign_files_are_refused(tmp_path, content):
    path = tmp_path / "thing"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="thing' is damaged or not a file of exo-envs"):
        read(path)


def head_of(**changes):
    return {"format": "exo-envs", "version": 2, "kind": "T", "content": {}, "texts": {}, **changes}


def test_files_of_others_are_refused(tmp_path):
    save_file({"a": np.zeros(3)}, tmp_path / "arrays")
    with pytest.raises(ValueError, match="has no head"):
        read(tmp_path / "arrays")
    (tmp_path / "else").write_bytes(file_of(head_of(format="else"), {}))
    with pytest.raises(ValueError, match="head is not one of exo-envs"):
        read(tmp_path / "else")


def test_arrays_of_objects_or_texts_are_not_written(tmp_path):
    for array in (np.array([{}], dtype=object), np.array(["x", "yz"])):
        with pytest.raises(ValueError, match=r"'content\.a' is of .*; files hold plain numbers"):
            write_file(tmp_path / "thing", "Thing", {"a": array})


def test_other_kinds_and_versions_are_named(tmp_path):
    path = tmp_path / "thing"
    write_file(path, "Thing", CONTENT)
    with pytest.raises(ValueError, match="cannot be read as a Other: it holds a 'Thing'"):
        read(path, "Other")
    (tmp_path / "new").write_bytes(file_of(head_of(version=99), {}))
    with pytest.raises(ValueError, match="version is 99"):
        read(tmp_path / "new")


@pytest.mark.parametrize(
    "content",
    [
        {"array": "content.a"},
        {"Other": []},
        {"dict": [["a", {"Pair": [["first", 1]]}]]},
        {"dict": [["a", {"Pair": 3}]]},
        {"dict": [[[], 1]]},
        {"dict": [["a", {"array": []}]]},
        {},
        [1, 2],
        3,
        None,
    ],
)
def test_content_that_is_not_whole_is_refused(tmp_path, content):
    (tmp_path / "less").write_bytes(file_of(head_of(content=content), {}))
    with pytest.raises(ValueError, match="less' does not hold a whole T"):
        read(tmp_path / "less", "T")


def test_what_makes_a_thing_may_refuse_it(tmp_path):
    write_file(tmp_path / "thing", "Thing", {"name": "n", "others": 3})
    with pytest.raises(ValueError, match="thing' does not hold a whole Thing: TypeError"):
        read_file(tmp_path / "thing", "Thing", {"Thing": Named})


def test_only_known_kinds_of_values_are_written(tmp_path):
    with pytest.raises(TypeError, match=r"'content\.a\.b' is a object, which no file can hold"):
        write_file(tmp_path / "thing", "Thing", {"a": {"b": object()}})
    assert not list(tmp_path.iterdir())


def test_a_part_may_have_any_name(tmp_path):
    content = {name: np.arange(3) for name in ("header", "file", "content", "array", "dict")}
    write_file(tmp_path / "thing", "Thing", content)
    for name, array in read(tmp_path / "thing").items():
        np.testing.assert_array_equal(array, content[name])


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nowhere")


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_folder_is_no_file_to_write(path):
    with pytest.raises(ValueError, match="names no file to write"), replacing(path):
        pass


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "runs").mkdir()
    target, link = tmp_path / "runs" / "thing", tmp_path / "latest"
    link.symlink_to(target)
    for _ in range(2):  # the target is made, then replaced
        write_file(link, "Thing", {"a": 1})
        assert link.is_symlink()
        assert not target.is_symlink()
        assert read(target) == read(link) == {"a": 1}
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["thing"]


@pytest.mark.parametrize("is_link", [False, True])
def test_what_is_no_regular_file_is_not_replaced(tmp_path, is_link):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path = pipe
    if is_link:
        path = tmp_path / "link"
        path.symlink_to(pipe)
    with pytest.raises(ValueError, match=f"{path.name}' is no regular file, and would be replaced"):
        write_file(path, "Thing", {"a": 1})
    assert pipe.is_fifo()
    with pytest.raises(ValueError, match="is a folder; name a file to write"):
        write_file(tmp_path, "Thing", {"a": 1})


def test_a_link_to_itself_is_no_file(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(ValueError, match="is no regular file"):
        write_file(loop, "Thing", {"a": 1})
    assert loop.is_symlink()


def test_a_name_that_no_file_can_have(tmp_path):
    with pytest.raises(ValueError, match="names no file to write"):
        write_file(f"{tmp_path}/a\0b", "Thing", {"a": 1})
