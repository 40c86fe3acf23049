"""What can be done with a reduced model, and what cannot be reduced."""

import numpy as np
import pytest
from factored import arrays
from models import CoinMDP, CounterMDP
from reduced import all_x, factor_tables, move_table, shared, total_variation

from exo_envs import AdaptedMDP, ExoEnv
from exo_envs.domains.factory import FactoryMDP
from exo_envs.domains.grid import GridMDP
from exo_envs.testing import check_mdp
from planners.core.policy import Policy
from planners.reduced.reduced_mdp import ReducedMDP
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData


def assert_same(first, second):
    """The same tables, byte for byte."""
    for one, other in zip(first.factors, second.factors, strict=True):
        assert one.parents == other.parents
        for part in ("starts", "values", "probabilities"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    lists = arrays(first.decision_lists), arrays(second.decision_lists)
    for one, other in zip(*lists, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(first.base_reward, second.base_reward)
    assert first.terms.keys() == second.terms.keys()
    for i, table in first.terms.items():
        np.testing.assert_array_equal(table, second.terms[i])
    np.testing.assert_array_equal(first.data.values, second.data.values)
    np.testing.assert_array_equal(first.log_loss, second.log_loss)
    assert first.describe() == second.describe()


def test_the_same_seed_gives_the_same_model():
    mdp = FactoryMDP()
    mask = ("order_0", "order_1", "machine_0", "technician_0")
    one, again, other = (
        ReducedMDP.estimate(mdp, mask, rng=np.random.default_rng(seed), num_rollouts=200)
        for seed in (0, 0, 1)
    )
    assert_same(one, again)
    assert (one.data.values != other.data.values).any()


def test_masks_that_share_data_do_not_influence_each_other():
    mdp = GridMDP()
    given = shared(mdp, rollouts=300)
    for mask in (("object",), ("guard", "object"), tuple(mdp.exogenous_names), ("object",)):
        fresh = shared(mdp, rollouts=300)
        assert_same(
            ReducedMDP.estimate(mdp, mask, **given), ReducedMDP.estimate(mdp, mask, **fresh)
        )


def test_save_and_load(tmp_path):
    mdp = GridMDP()
    reduced = ReducedMDP.estimate(
        mdp, ("object", "guard"), rng=np.random.default_rng(0), num_rollouts=200
    )
    path = tmp_path / "reduced"
    reduced.save(path)
    loaded = ReducedMDP.load(path)
    assert_same(reduced, loaded)
    for name in ("full_names", "mask", "samples", "discount", "horizon", "endogenous_variables"):
        assert getattr(loaded, name) == getattr(reduced, name)
    rng, state = np.random.default_rng(1), reduced.sample_uniform(200, np.random.default_rng(2))
    action = rng.integers(mdp.num_actions, size=200)
    one, other = (
        part.transition(state, action, np.random.default_rng(3)) for part in (reduced, loaded)
    )
    assert all((a == b).all() for a, b in zip(one.state, other.state, strict=True))
    np.testing.assert_array_equal(one.reward, other.reward)
    again = tmp_path / "again"
    loaded.save(again)
    assert again.read_bytes() == path.read_bytes()


def test_files_that_cannot_be_loaded(tmp_path):
    reduced = ReducedMDP.estimate(
        GridMDP(), ("object",), rng=np.random.default_rng(0), num_rollouts=20
    )
    path = tmp_path / "reduced"
    reduced.save(path)
    content = path.read_bytes()
    with pytest.raises(FileNotFoundError):
        ReducedMDP.load(tmp_path / "nowhere")
    for wrong in (content[: len(content) // 2], b"not ours", content[:-40] + b"x" * 40):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match="damaged or not a file of"):
            ReducedMDP.load(path)


def test_a_reduced_model_can_be_masked_again():
    mdp = GridMDP()
    rng = np.random.default_rng(0)
    once = ReducedMDP.estimate(mdp, ("object", "carrier", "guard"), rng=rng)
    twice = ReducedMDP.estimate(once, ("object", "carrier"), rng=rng)
    direct = ReducedMDP.estimate(mdp, ("object", "carrier"), rng=rng)
    assert twice.full_names == ("object", "carrier", "guard")
    assert twice.columns.tolist() == [0, 1]
    assert Policy.names_of(twice) == (("object", "carrier"), ("object", "carrier", "guard"), 1)
    assert direct.full_names == mdp.exogenous_names
    x = all_x(twice)
    for found, truth in zip(factor_tables(twice, x), factor_tables(direct, x), strict=True):
        assert total_variation(found, truth).max() < 0.03
    assert total_variation(move_table(twice, x), move_table(direct, x)).max() < 0.05
    check_mdp(twice)


def test_a_reduced_model_makes_an_environment():
    reduced = ReducedMDP.estimate(
        GridMDP(), ("object",), rng=np.random.default_rng(0), num_rollouts=100
    )
    env = ExoEnv(reduced)
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert observation["exogenous"].shape == (1,)
    for _ in range(10):
        observation, *_ = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation)


@pytest.mark.parametrize("model", [CounterMDP, CoinMDP])
def test_models_without_noise_and_with_nothing_else(model):
    mdp = model()
    reduced = ReducedMDP.estimate(
        mdp, mdp.exogenous_names, rng=np.random.default_rng(0), num_rollouts=100
    )
    check_mdp(reduced, num_samples=60)
    x = mdp.sample_uniform(500, np.random.default_rng(1))
    action = np.random.default_rng(2).integers(mdp.num_actions, size=500)
    np.testing.assert_allclose(reduced.reward(x, action), mdp.reward(x, action))


def test_an_environment_of_somebody_else_can_be_reduced():
    mdp = AdaptedMDP(ExoEnv(CounterMDP()), horizon=7)
    rng = np.random.default_rng(0)
    data = ExogenousData.collect(mdp, 20, rng)
    survey = EndogenousSurvey.collect(mdp, data, rng, num_tests=8)
    reduced = ReducedMDP.estimate(mdp, [0], rng=rng, data=data, survey=survey)
    clock = np.arange(4)[:, None]
    table = np.concatenate(factor_tables(reduced, clock))
    assert (table.argmax(axis=1) == [1, 2, 3, 0]).all()
    assert survey.paying == mdp.exogenous_names  # the die always costs the same


def test_it_says_what_it_was_made_from():
    reduced = ReducedMDP.estimate(
        GridMDP(), ("object", "weather"), rng=np.random.default_rng(0), num_rollouts=80
    )
    assert reduced.samples.exogenous == 70 * 40
    assert reduced.samples.held_out == 10 * 40
    assert reduced.samples.endogenous > 0
    assert reduced.samples.reward > 0
    text = reduced.describe()
    assert "2 of 5 exogenous variables" in text
    assert "2800 transitions counted, 400 held out" in text
    assert "object: log-loss" in text
    assert "pays, moves n" in text


def test_too_little_data_to_hold_anything_out():
    reduced = ReducedMDP.estimate(
        GridMDP(), ("object",), rng=np.random.default_rng(0), num_rollouts=1
    )
    assert np.isnan(reduced.log_loss).all()
    assert reduced.samples.held_out == 0
    check_mdp(reduced, num_samples=60)


@pytest.mark.parametrize(
    ("mask", "settings", "message"),
    [
        (("objct",), {}, "unknown exogenous variable 'objct'; did you mean 'object'"),
        (("object", "object"), {}, "the mask names 'object' more than once"),
        ((7,), {}, "there is no variable 7"),
        (("object",), {"num_rollouts": 0}, "num_rollouts is a whole number, at least 1, not 0"),
        (("object",), {"smoothing": 0}, "smoothing is a positive number, not 0"),
        (("object",), {"level": 0}, "level is a probability"),
        (("object",), {"reward": "all"}, "unknown kind of reward 'all'"),
    ],
)
def test_bad_arguments_are_refused(mask, settings, message):
    with pytest.raises(ValueError, match=message):
        ReducedMDP.estimate(
            GridMDP(), mask, rng=np.random.default_rng(0), **{"num_rollouts": 5, **settings}
        )


def test_what_belongs_to_another_model_is_refused():
    rng = np.random.default_rng(0)
    mine, other = (shared(model, rollouts=10) for model in (GridMDP(), CounterMDP()))
    with pytest.raises(ValueError, match="the data is of 'clock', 'die', not of this model"):
        ReducedMDP.estimate(GridMDP(), (), rng=rng, data=other["data"])
    with pytest.raises(ValueError, match="the survey is of 'clock', 'die', not of this model"):
        ReducedMDP.estimate(GridMDP(), (), rng=rng, data=mine["data"], survey=other["survey"])
    with pytest.raises(ValueError, match="give data or num_rollouts=5, not both"):
        ReducedMDP.estimate(GridMDP(), (), rng=rng, data=mine["data"], num_rollouts=5)
