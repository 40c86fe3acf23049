"""What a broken contract is told in, the same everywhere; and bugs that used to pass silently."""

import numpy as np
import pytest
from models import CoinMDP

from exo_envs import ExoEnv, ExoVectorEnv, State, Variable
from exo_envs.contract.check import check_quickly
from exo_envs.domains.grid import GridMDP
from exo_envs.testing import ContractError, check_mdp
from planners import estimate_objective
from wrappers import CalibratedMaskLearner

LOOKS = {
    "fit": lambda mdp: CalibratedMaskLearner(n_rollouts=20, n_data_rollouts=50).fit(mdp, rng=0),
    "estimate_objective": lambda mdp: estimate_objective(mdp, (), rng=0, n_rollouts=20),
    "check_mdp": check_mdp,
    "check_quickly": check_quickly,
}


@pytest.fixture(params=LOOKS)
def look(request):
    """Everything that looks at a model's contract."""
    return LOOKS[request.param]


class WithoutClip(CoinMDP):
    """The commonest mistake: a random walk that leaves its range."""

    exogenous_variables = (Variable("price", 5), Variable("weather", 2))

    def sample_initial(self, size, rng):
        return State(rng.integers(6, size=(size, 1)), rng.integers([5, 2], size=(size, 2)))

    def sample_exogenous(self, exogenous, rng):
        return exogenous + rng.integers([2, 1], size=exogenous.shape)


def test_the_commonest_mistake_is_named_with_what_was_asked(look):
    wanted = (
        r"^rule 'shapes' is broken: sample_exogenous returned 5 for 'price' \(values 0 \.\.\. 4\), "
        r"for x = \(price=4, weather=\d\)$"
    )
    with pytest.raises(ContractError, match=wanted):
        look(WithoutClip())


class PaysOnce(CoinMDP):
    """The reward is summed already."""

    def reward_terms(self, state, action):
        return super().reward_terms(state, action).sum(axis=-1)


def test_a_summed_reward_is_told_where_it_belongs(look):
    with pytest.raises(ContractError, match="zeros for those that do not pay; what depends on non"):
        look(PaysOnce())


# --- methods that follow from others --------------------------------------------------------------


class PaysTogether(CoinMDP):
    """Overrides the sum instead of the terms."""

    def reward_terms(self, state, action):
        return np.zeros(state.exogenous.shape)

    def reward(self, state, action):
        return float(state.exogenous[..., 0].sum())


class FollowsTheAction(CoinMDP):
    """Overrides the whole step: x follows the action."""

    def sample_next(self, state, action, rng):
        x = np.repeat(np.asarray(action)[..., None], 2, axis=-1)
        return State(self.sample_endogenous(state, action, rng), x)


class Steps(CoinMDP):
    def transition(self, state, action, rng, **settings):
        return super().transition(state, action, rng, **settings)


@pytest.mark.parametrize(
    ("model", "method", "advice"),
    [
        (PaysTogether, "reward", "put it into reward_terms, in a column for .* reward_scopes"),
        (FollowsTheAction, "sample_next", "put it into sample_endogenous and sample_exogenous"),
        (Steps, "transition", "put it into sample_endogenous, sample_exogenous and reward_terms"),
    ],
)
def test_a_method_that_follows_from_others_is_not_overridden(model, method, advice, look):
    wanted = rf"rule 'declaration' is broken: {model.__name__} has a method '{method}' of its own"
    for take in (look, ExoEnv, lambda mdp: ExoVectorEnv(mdp, 2)):
        with pytest.raises(ContractError, match=f"{wanted}, .*; {advice}"):
            take(model())


def test_nor_on_the_object():
    model = GridMDP()
    model.reward = lambda state, action: np.zeros(state.endogenous.shape[:-1])
    with pytest.raises(ContractError, match="GridMDP has a method 'reward' of its own"):
        check_quickly(model)


# --- memory ---------------------------------------------------------------------------------------


class RemembersTheAction(CoinMDP):
    """The first coin shows what the agent did last."""

    last = None

    def sample_endogenous(self, state, action, rng):
        self.last = np.asarray(action)
        return super().sample_endogenous(state, action, rng)

    def sample_exogenous(self, exogenous, rng):
        following = super().sample_exogenous(exogenous, rng)
        if self.last is not None and self.last.shape == exogenous.shape[:-1]:
            following[..., 0] = self.last
        return following


class RemembersWhatPaid(RemembersTheAction):
    """The same, but it is the reward that is asked with the action."""

    def sample_endogenous(self, state, action, rng):
        return CoinMDP.sample_endogenous(self, state, action, rng)

    def reward_terms(self, state, action):
        self.last = np.asarray(action)
        return super().reward_terms(state, action)


class CountsCalls(CoinMDP):
    """The die shows how often it was thrown."""

    endogenous_variables = (Variable("die", 24),)
    period, calls = 2, 0

    def sample_endogenous(self, state, action, rng):
        self.calls += 1
        return np.full_like(state.endogenous, self.calls % self.period)


REMEMBERS = r"rule '(memory|determinism)' is broken: sample_exogenous"


@pytest.mark.parametrize("model", [RemembersTheAction, RemembersWhatPaid])
def test_a_model_that_remembers_is_found_out(model, look):
    with pytest.raises(ContractError, match=REMEMBERS):
        look(model())


@pytest.mark.parametrize("period", range(2, 20))
def test_a_model_that_counts_is_found_out_at_any_period(period):
    model = CountsCalls()
    model.period = period
    with pytest.raises(ContractError, match="rule 'determinism' is broken: sample_endogenous"):
        check_quickly(model)


class RemembersOneByOne(RemembersTheAction):
    """The same, in a model that answers one state at a time."""

    is_batched = False

    def sample_endogenous(self, state, action, rng):
        following = CoinMDP.sample_endogenous(self, state, action, rng)
        self.last = np.ravel(action)[-1]
        return following

    def sample_exogenous(self, exogenous, rng):
        following = CoinMDP.sample_exogenous(self, exogenous, rng)
        following[..., 0] = 0 if self.last is None else self.last
        return following


def test_a_slow_model_that_remembers_is_found_out(look):
    with pytest.raises(ContractError, match=REMEMBERS):
        look(RemembersOneByOne())


# --- batches of any shape -------------------------------------------------------------------------


class TakesRows(CoinMDP):
    def sample_exogenous(self, exogenous, rng):
        following = rng.integers(2, size=exogenous.shape)
        following[:, 0] = exogenous[:, 1]
        return following


def test_a_model_for_rows_only_is_told_how_to_write_it(look):
    wanted = (
        r"rule 'shapes' is broken: sample_exogenous fails for a single state, with x of shape "
        r"\(2,\): too many indices .* write x\[\.\.\., 0\], not x\[:, 0\]"
    )
    with pytest.raises(ContractError, match=wanted) as caught:
        look(TakesRows())
    assert isinstance(caught.value.__cause__, IndexError)


class Fails(CoinMDP):
    def sample_exogenous(self, exogenous, rng):
        raise IndexError("no such shelf")


def test_what_fails_for_rows_too_is_the_users_own_error(look):
    with pytest.raises(IndexError, match=r"^no such shelf$"):
        look(Fails())
