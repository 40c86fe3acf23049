"""Functions that take long to compile, and no time to run."""

import time

from numba import njit
from numba.extending import overload

#: Seconds that each takes at least.
COMPILING = 0.8


def slow_to_compile():
    """Two functions that are not compiled yet, the second of which calls the first."""

    def stub(x):
        raise NotImplementedError

    @overload(stub)
    def implementation(x):
        time.sleep(COMPILING)
        return lambda x: x + 1

    @njit
    def inner(x):
        return stub(x)

    @njit
    def outer(x):
        return inner(x) + stub(1.5 * x)

    return inner, outer
