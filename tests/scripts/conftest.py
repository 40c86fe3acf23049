"""What is expensive and shared by the tests of several scripts."""

import pytest


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
    """The folder of a small reproduction that one process made without interruption."""
    from reproductions import run

    folder = tmp_path_factory.mktemp("reference")
    assert run(folder) == []
    return folder
