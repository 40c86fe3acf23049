"""What is shared by the tests of one domain."""

import pytest


@pytest.fixture(scope="session")
def planted():
    """ExoSynthetic as it is registered."""
    from planted import make

    return make()
