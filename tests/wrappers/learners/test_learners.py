"""The learners' vocabulary, which is scikit-learn's, and the paper's simple strategies."""

import inspect
import itertools
import math
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from harbour import adapt
from models import CounterMDP
from scripted import ScriptedStudy, Sites
from sklearn.base import clone

from exo_envs import ExoEnv, ExoMDP, State
from exo_envs.domains.grid import GridMDP
from planners import ValueIteration
from wrappers import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    GreedyMaskLearner,
    MaskLearner,
    RewardVariableMaskLearner,
    Study,
)
from wrappers.fitting.history import History, Progress, Record

LEARNERS = (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    GreedyMaskLearner,
    RewardVariableMaskLearner,
)
each_learner = pytest.mark.parametrize("cls", LEARNERS)
SMALL = {"n_rollouts": 20, "n_data_rollouts": 30}
COINS = ("coin_0", "coin_1", "coin_2")
NAMES = (*COINS, "rain")


def additive(**worth):
    """J of a mask is the sum over its variables."""
    return lambda mask: sum(worth.get(name, 0.0) for name in mask)


# --- hyper-parameters -------------------------------------------------------------------------


@each_learner
def test_init_only_stores(cls):
    nonsense = {name: object() for name in inspect.signature(cls).parameters}
    learner = cls(**nonsense)
    assert all(getattr(learner, name) is value for name, value in nonsense.items())
    assert vars(learner) == nonsense
    with pytest.raises(TypeError):
        cls(1.0)  # names only


@each_learner
def test_parameters_can_be_read_and_changed(cls):
    learner = cls(cost_weight=2.5)
    assert learner.get_params() == {
        name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()
    } | {"cost_weight": 2.5}
    assert learner.set_params(n_rollouts=7, cost="time") is learner
    assert (learner.n_rollouts, learner.cost) == (7, "time")
    with pytest.raises(ValueError, match="unknown hyper-parameter 'n_rollout'; did you mean 'n_ro"):
        learner.set_params(n_rollout=3)
    assert cls.__name__ in repr(learner)
    assert "cost_weight=2.5" in repr(learner)


@each_learner
def test_scikit_learn_clones_it(cls):
    mdp = Sites(coins=2)
    learner = cls(cost_weight=3.0, planner=ValueIteration(), **SMALL).fit(mdp)
    twin = clone(learner)
    assert type(twin) is cls
    assert twin.get_params().keys() == learner.get_params().keys()
    assert (twin.cost_weight, twin.n_rollouts) == (3.0, 20)
    assert not hasattr(twin, "mask_")
    assert twin.fit(mdp).mask_ == learner.mask_


WRONG = [
    ({"cost_weight": -1.0}, "cost_weight"),
    ({"cost_weight": math.nan}, "cost_weight"),
    ({"cost_weight": math.inf}, "cost_weight"),
    ({"cost_weight": "much"}, "cost_weight"),
    ({"cost": "sizes"}, "unknown cost 'sizes'; did you mean 'size'"),
    ({"reward": "totals"}, "did you mean 'total'"),
    ({"ignored_rewards": "averages"}, "did you mean 'average'"),
    ({"n_rollouts": 0}, "n_rollouts"),
    ({"n_rollouts": 2.5}, "n_rollouts"),
    ({"n_data_rollouts": 0}, "n_data_rollouts"),
    ({"time_limit": 0}, "time_limit"),
    ({"time_limit": -3.0}, "time_limit"),
    ({"time_limit": math.nan}, "time_limit"),
    ({"planning_time_limit": 0.0}, "planning_time_limit"),
]
WRONG_FIRST_PHASE = [
    ({"n1": 0}, "n1"),
    ({"n2": 1}, "n2"),
    ({"tau_variance": -1e-9}, "tau_variance"),
    ({"tau_variance": math.nan}, "tau_variance"),
    ({"sampling": "visit"}, "unknown sampling 'visit'; did you mean 'visited'"),
    ({"uniform_share": -0.1}, "uniform_share"),
    ({"uniform_share": 1.5}, "uniform_share"),
    ({"uniform_share": math.nan}, "uniform_share"),
]
WRONG_OF = {
    BruteForceMaskLearner: [({"max_variables": 4}, "2 \\*\\* 5 masks")],
    GreedyMaskLearner: [
        ({"trials": 0}, "trials"),
        ({"initial_mask": ["objekt"]}, "did you mean 'object'"),
        ({"initial_mask": [7]}, "7"),
        ({"initial_mask": ["guard", "guard"]}, "more than once"),
    ],
    RewardVariableMaskLearner: WRONG_FIRST_PHASE,
    CorrelationalMaskLearner: [
        *WRONG_FIRST_PHASE,
        ({"tau_correl": -1.0}, "tau_correl"),
        ({"patience": 0}, "patience"),
        ({"transition_model": "factor"}, "unknown transition_model 'factor'; did you mean 'fact"),
    ],
    CalibratedMaskLearner: [
        ({"level": 0.0}, "level"),
        ({"level": 1.0}, "level"),
        ({"level": math.nan}, "level"),
        ({"level": 5}, "level"),
        ({"patience": 0}, "patience"),
    ],
}


@pytest.mark.parametrize(
    ("cls", "wrong", "message"),
    [(cls, *case) for cls in LEARNERS for case in WRONG + WRONG_OF[cls]],
    ids=lambda value: getattr(value, "__name__", None) or str(value),
)
def test_fit_refuses_nonsense(cls, wrong, message):
    learner = cls(**{**SMALL, **wrong})
    with pytest.raises(ValueError, match=message):
        learner.fit(GridMDP())
    assert not hasattr(learner, "mask_")


class Untouchable(GridMDP):
    """A model that is not to be asked anything."""

    def sample_initial(self, size, rng):
        raise AssertionError("the model was asked")


@pytest.mark.parametrize("wrong", [wrong for wrong, _ in WRONG], ids=str)
def test_nonsense_is_refused_before_the_model_is_asked(wrong):
    """Asking may take minutes."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RewardVariableMaskLearner(**wrong).fit(Untouchable())


# --- results ----------------------------------------------------------------------------------


@each_learner
def test_results(cls):
    mdp = GridMDP()
    learner = cls(**SMALL)
    for question in (learner.get_support, lambda: learner.save("x"), lambda: learner.mask_):
        with pytest.raises(AttributeError, match="mask"):
            question()
    assert learner.fit(mdp, rng=3) is learner
    assert learner.feature_names_in_ == mdp.exogenous_names
    assert learner.n_features_in_ == 5
    support = learner.get_support()
    assert support.dtype == bool
    assert support.shape == (5,)
    assert tuple(np.array(mdp.exogenous_names)[support]) == learner.mask_
    assert learner.get_support(indices=True).tolist() == np.flatnonzero(support).tolist()
    assert learner.objective_.mask == learner.policy_.mask == learner.mask_
    assert len(learner.objective_.returns) == 20
    assert learner.status_ == "finished"
    assert learner.seconds_ >= learner.history_[-1].seconds > 0
    assert learner.history_[-1].mask == learner.mask_
    assert learner.study_.seed == 3
    assert isinstance(learner, MaskLearner)


def test_j_is_estimated_on_trajectories_that_had_no_part_in_the_choice():
    learner = BruteForceMaskLearner(**SMALL).fit(GridMDP())
    study = learner.study_
    shared = study.evaluator.objective(learner.mask_).returns
    assert not np.array_equal(learner.objective_.returns, shared)
    fresh = study.evaluator.objective(
        learner.mask_, scenarios=study.evaluator.fresh_scenarios()
    ).returns
    assert np.array_equal(learner.objective_.returns, fresh)


@each_learner
def test_env_model_and_study_are_the_same(cls):
    mdp = Sites(coins=2)
    by_env = cls(**SMALL).fit(TimeLimit(ExoEnv(mdp), 100), rng=4)
    by_mdp = cls(**SMALL).fit(mdp, rng=4)
    by_study = cls().fit(Study(mdp, 4, ignored_rewards=cls().ignored_rewards, **SMALL))
    assert by_env.mask_ == by_mdp.mask_ == by_study.mask_
    for other in (by_mdp, by_study):
        assert np.array_equal(by_env.objective_.returns, other.objective_.returns)


def test_the_spec_of_an_environment_is_remembered():
    env = gym.make("exo_envs:ExoGrid-v0", slip=0.2)
    spec = RewardVariableMaskLearner(**SMALL).fit(env).study_.spec
    assert (spec["id"], spec["kwargs"]["slip"]) == ("ExoGrid-v0", 0.2)
    assert Study(env.unwrapped.mdp).spec is None
    assert Study(ExoEnv(Sites())).spec is None


def test_an_environment_of_somebody_else():
    """Both of its variables pay."""
    study = CalibratedMaskLearner(n_rollouts=5, n_data_rollouts=10).fit(adapt(), rng=0).study_
    names = study.mdp.exogenous_names
    assert len(names) == 2
    for cls in LEARNERS:
        learner = cls().fit(study)
        assert set(learner.mask_) <= set(names)
        assert len(learner.objective_.returns) == 5
        if issubclass(cls, (CalibratedMaskLearner, RewardVariableMaskLearner)):
            assert learner.mask_ == names


def test_a_learner_can_be_fitted_again():
    learner = RewardVariableMaskLearner(**SMALL)
    first = learner.fit(GridMDP(), 0).history_
    assert learner.fit(CounterMDP(), 0).mask_ == ("clock",)
    assert learner.feature_names_in_ == ("clock", "die")
    assert learner.fit(GridMDP(), 0).history_ is not first


class NoWeather(ExoMDP):
    """Nothing exogenous at all."""

    endogenous_variables = CounterMDP.endogenous_variables
    exogenous_variables = ()
    num_actions = 3
    discount = 0.9
    horizon = 7

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 2), dtype=np.int64), np.zeros((size, 0), dtype=np.int64))

    def sample_exogenous(self, exogenous, rng):
        return exogenous.copy()

    sample_endogenous = CounterMDP.sample_endogenous
    endogenous_reward = CounterMDP.endogenous_reward

    def reward_terms(self, state, action):
        return np.zeros(state.exogenous.shape)


@each_learner
def test_a_model_without_exogenous_variables_has_an_empty_mask(cls):
    assert cls(**SMALL).fit(NoWeather()).mask_ == ()


# --- history ----------------------------------------------------------------------------------


def test_the_history_is_a_table():
    pd = pytest.importorskip("pandas")
    history = CalibratedMaskLearner(cost_weight=2.0, **SMALL).fit(GridMDP()).history_
    table = history.to_pandas()
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == list(Record.__dataclass_fields__)
    assert len(table) == len(history)
    assert table["candidate"].tolist() == [record.candidate for record in history]
    assert History().to_pandas().shape == (0, len(table.columns))


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        History().to_pandas()


def test_the_callback_sees_every_step():
    told = []
    learner = CalibratedMaskLearner(callback=told.append, cost_weight=1.0, **SMALL)
    learner.fit(GridMDP())
    assert all(isinstance(progress, Progress) for progress in told)
    steps = [progress.record for progress in told if progress.record is not None]
    assert steps == learner.history_
    assert len(told) > len(steps)  # and what goes on in between
    seconds = [progress.seconds for progress in told]
    assert seconds == sorted(seconds)
    assert all(progress.stage for progress in told)
    counted = [progress for progress in told if progress.total is not None]
    assert counted
    assert all(0 <= progress.done <= progress.total for progress in counted)


def test_a_callback_takes_one_argument():
    for odd in (lambda: None, lambda progress, record: None):
        with pytest.raises(TypeError, match="cannot be called with a Progress"):
            RewardVariableMaskLearner(callback=odd).fit(Untouchable())


# --- Mask-Learning-Greedy ---------------------------------------------------------------------


def greedy(worth, seed=0, **arguments):
    study = ScriptedStudy(Sites(coins=3), worth, seed)
    return GreedyMaskLearner(**arguments).fit(study), study


def test_greedy_adds_at_random_while_j_increases():
    """The mask of each of 60 runs is the longest prefix of its order that increased J.

    Each of the four variables comes first in some run: that one does not, 4 * 0.75^60 = 1e-7.
    """
    first = set()
    for seed in range(60):
        learner, study = greedy(additive(coin_0=1, coin_1=2, coin_2=3, rain=-1), seed)
        start, *adds, end = learner.history_
        assert (start.action, start.candidate, start.value) == ("start", (), 0)
        order = [name for record in adds for name in record.candidate]
        assert len(set(order)) == len(order)
        stop = order.index("rain") if "rain" in order else 4
        assert set(learner.mask_) == set(order[:stop])
        assert [record.accepted for record in adds] == [name != "rain" for name in order]
        assert len(adds) == min(stop + 1, 4)  # it ends at the first that does not increase J
        assert study.estimates[: len(adds) + 1] == [
            tuple(n for n in NAMES if n in order[:k]) for k in range(len(adds) + 1)
        ]
        assert end.mask == learner.mask_
        first.add(order[0])
    assert first == set(NAMES)


def test_as_high_is_not_higher():
    learner, _ = greedy(lambda mask: 1.0)
    assert learner.mask_ == ()
    assert len(learner.history_) == 3


def test_greedy_with_heuristics_starts_from_the_initial_mask():
    worth = additive(coin_0=1, coin_1=2, coin_2=3, rain=4)
    for mask in (["coin_2", "coin_0"], [0, 2], [True, False, True, False]):
        learner, study = greedy(worth, initial_mask=mask)
        assert learner.history_[0].candidate == ("coin_0", "coin_2")
        assert study.estimates[0] == ("coin_0", "coin_2")
        assert learner.mask_ == NAMES
    learner, study = greedy(worth, initial_mask=NAMES)
    assert learner.mask_ == NAMES
    assert set(study.estimates) == {NAMES}


def test_the_result_is_the_mode_over_trials():
    """Trials end with what comes before the rain; the mode of them, the first of equals."""
    for seed in range(5):
        learner, _ = greedy(additive(coin_0=1, coin_1=2, rain=-9), seed, trials=9)
        ends = [r for r in learner.history_ if r.action == "try"]
        assert len(ends) == 9
        masks = [record.candidate for record in ends]
        counts = {mask: masks.count(mask) for mask in dict.fromkeys(masks)}
        assert learner.mask_ == next(m for m in counts if counts[m] == max(counts.values()))
        assert len(counts) > 1  # trials differ


def test_every_estimate_of_greedy_has_rollouts_of_its_own():
    """Unless they are paired."""
    for paired in (False, True):
        learner = GreedyMaskLearner(initial_mask=["coin_0"], trials=2, paired=paired, **SMALL)
        history = learner.fit(Sites(coins=2)).history_
        first, second = (record.value for record in history if record.action == "start")
        assert (first == second) == paired


# --- Mask-Learning-Brute-Force ----------------------------------------------------------------


def test_brute_force_is_the_argmax_over_all_masks():
    rng = np.random.default_rng(0)
    for _ in range(20):
        masks = [m for k in range(5) for m in itertools.combinations(NAMES, k)]
        worth = dict(zip(masks, rng.integers(6, size=16).tolist(), strict=True))
        study = ScriptedStudy(Sites(coins=3), worth.__getitem__)
        learner = BruteForceMaskLearner(cost_weight=0.5).fit(study)
        assert study.estimates[:16] == masks
        best = max(worth[mask] - 0.5 * len(mask) for mask in masks)
        assert worth[learner.mask_] - 0.5 * len(learner.mask_) == best
        assert learner.mask_ == next(m for m in masks if worth[m] - 0.5 * len(m) == best)


def test_brute_force_refuses_too_many_variables():
    with pytest.raises(ValueError, match=r"22 exogenous variables .* CalibratedMaskLearner"):
        BruteForceMaskLearner().fit(gym.make("exo_envs:ExoFactory-v0"))
