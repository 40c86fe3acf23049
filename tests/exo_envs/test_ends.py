"""Models whose episodes end by what x is, and the same with that end in n."""

import numpy as np
import pytest
from closing import Closing

from exo_envs import ExoEnv, ExoMDP, State, Variable, carry_end
from exo_envs.core.ends import CarriedEnd
from exo_envs.testing import check_mdp
from planners import Scenarios, evaluate


class Ending(ExoMDP):
    """Eight variables of four values, thrown anew; a condition on x, and on n, ends the episode."""

    endogenous_variables = (Variable("n", 4),)
    exogenous_variables = tuple(Variable(f"x{i}", 4) for i in range(8))
    num_actions, discount, horizon = 2, 0.9, 10

    def __init__(self, ends):
        self.ends = ends

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 1), dtype=np.int64), rng.integers(4, size=(size, 8)))

    def sample_exogenous(self, exogenous, rng):
        return rng.integers(4, size=exogenous.shape)

    def sample_endogenous(self, state, action, rng):
        return (state.endogenous + np.asarray(action)[..., None]) % 4

    def reward_terms(self, state, action):
        return state.exogenous * 1.0

    def is_terminal(self, state):
        return self.ends(state.endogenous[..., 0], state.exogenous)


@pytest.mark.parametrize(
    ("ends", "looks_at"),
    [
        (lambda n, x: x[..., 5] == 3, ["x5"]),
        (lambda n, x: (x[..., 2] == 3) & (n == 3), ["x2"]),
        (lambda n, x: (x[..., 0] == 0) & (x[..., 3] == 1) & (x[..., 7] == 2), ["x0", "x3", "x7"]),
        (lambda n, x: (x[..., 1] + x[..., 4] + x[..., 6]) % 2 == 0, ["x1", "x4", "x6"]),
        (lambda n, x: x[..., 2] > x[..., 6], ["x2", "x6"]),
    ],
    ids=["one", "with n", "three together", "parity", "a comparison"],
)
def test_what_the_end_looks_at_is_found(ends, looks_at):
    carried = carry_end(Ending(ends))
    assert isinstance(carried, CarriedEnd)
    assert list(carried.looks_at) == looks_at
    for scope, name in zip(carried.reward_scopes, carried.exogenous_names, strict=True):
        assert set(scope) == {name, *looks_at}


@pytest.mark.parametrize("ends", [lambda n, x: n == 3, lambda n, x: np.zeros(n.shape, dtype=bool)])
def test_a_model_whose_end_looks_at_n_alone_stays_as_it_is(ends):
    mdp = Ending(ends)
    assert carry_end(mdp) is mdp
    assert carry_end(mdp, looks_at=()) is mdp


def test_what_a_slow_model_is_asked_is_little():
    class Slow(Ending):
        is_batched = False
        asked = 0

        def sample_endogenous(self, state, action, rng):
            self.asked += len(state.endogenous)
            return super().sample_endogenous(state, action, rng)

    mdp = Slow(lambda n, x: x[..., 0] == 3)
    carried = carry_end(mdp)
    assert isinstance(carried, CarriedEnd)
    assert carried.looks_at == ("x0",)
    assert mdp.asked <= 40


def test_the_model_with_its_end_in_n_keeps_the_contract():
    carried = carry_end(Closing())
    assert [v.name for v in carried.endogenous_variables] == ["place", "done"]
    assert carried.reward_scopes == (("tide",), ("tide", "moon"), ("tide", "radio"), ("tide",))
    check_mdp(carried)
    check_mdp(Closing())  # nothing is wrong with that one either


def test_every_policy_earns_the_same_in_both():
    mdp, carried = Closing(), carry_end(Closing())
    table = np.random.default_rng(0).integers(3, size=(3, 3, 2, 4))

    def policy(state):
        values = np.concatenate([state.endogenous[..., :1], state.exogenous], axis=-1)
        return table[tuple(np.moveaxis(values, -1, 0))]

    own = Scenarios.sample(mdp, 300, np.random.default_rng(1))
    start = np.concatenate([own.endogenous, np.zeros_like(own.endogenous)], axis=1)
    returns = evaluate(policy, mdp, scenarios=own)
    others = evaluate(policy, carried, scenarios=Scenarios(start, own.exogenous, own.seed))
    assert np.array_equal(returns, others)
    assert len(np.unique(returns)) > 100


def test_a_state_that_is_over_takes_one_step_that_pays_nothing():
    carried, rng = carry_end(Closing()), np.random.default_rng(0)
    low_tide = np.tile([0, 1, 3], (3, 1))
    state = State(np.array([[0, 0], [1, 0], [2, 0]]), low_tide)
    assert carried.is_terminal(state).tolist() == [False, False, False]
    assert carried.reward(state, np.full(3, 2)).tolist() == [0.0, 0.0, 0.0]
    following = carried.sample_next(state, np.full(3, 2), rng)
    assert following.endogenous.tolist() == [[1, 0], [1, 1], [2, 1]]
    assert carried.is_terminal(following).tolist() == [False, True, True]
    told = carried.endogenous_distribution(state, np.full(3, 2))
    assert told.endogenous[:, 0].tolist() == following.endogenous.tolist()


def episode(env, seed):
    """The number of steps outwards, and what they paid."""
    env.reset(seed=seed)
    paid, terminated, truncated = [], False, False
    while not (terminated or truncated):
        _, reward, terminated, truncated, _ = env.step(2)
        paid.append(reward)
    return len(paid), terminated, sum(paid)


def test_in_an_environment_the_end_comes_one_step_later():
    own, carried = ExoEnv(Closing()), ExoEnv(carry_end(Closing()))
    ends = 0
    for seed in range(20):
        (length, ended, paid), (later, _, same) = episode(own, seed), episode(carried, seed)
        assert (later, same) == (length + ended, paid)
        ends += ended
    assert ends >= 15


def test_what_is_held_out_has_its_end_in_n_as_well():
    class Recorded(Closing):
        @property
        def held_out(self):
            return Closing()

    carried = carry_end(Recorded())
    assert isinstance(carried.held_out, CarriedEnd)
    assert isinstance(carried.held_out.model, Closing)
    plain = carry_end(Closing())
    assert plain.held_out is plain


def test_a_name_that_is_taken_is_refused():
    class Named(Closing):
        exogenous_variables = (Variable("tide", 3), Variable("done", 2), Variable("radio", 4))

    with pytest.raises(ValueError, match=r"variable 'done'.*give it another name"):
        carry_end(Named())


def test_odd_arguments_are_refused_by_name():
    with pytest.raises(TypeError, match="mdp is an ExoMDP, not 3"):
        carry_end(3)
    with pytest.raises(ValueError, match="unknown exogenous variable 'tides'; did you mean 'tide'"):
        carry_end(Closing(), looks_at=["tides"])
    with pytest.raises(TypeError, match="names of variables are a collection"):
        carry_end(Closing(), looks_at="tide")
    with pytest.raises(TypeError, match="rng"):
        carry_end(Closing(), rng="now")
