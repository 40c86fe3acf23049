"""Masks of every environment."""

import pytest

from exo_envs import as_mdp
from exo_envs.domains import ENVIRONMENTS

each_id = pytest.mark.parametrize("env_id", sorted(ENVIRONMENTS))


def some_mask(env):
    """Every third variable."""
    return as_mdp(env).exogenous_names[::3]


MASKS = {
    "some": some_mask,
    "empty": lambda env: (),
    "full": lambda env: as_mdp(env).exogenous_names,
}
each_mask = pytest.mark.parametrize("choose", MASKS.values(), ids=MASKS)
