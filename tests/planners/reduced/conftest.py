"""What several files of this folder look at."""

import pytest
from surveys import survey_of

from exo_envs.domains.crowd import CrowdMDP


@pytest.fixture(scope="session")
def crowd_survey():
    mdp = CrowdMDP()
    return mdp, survey_of(mdp, rollouts=1000)
