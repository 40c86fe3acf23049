"""Tasks to train in, learning curves, and how runs keep theirs."""

import dataclasses
import functools
import math
import pickle
import time

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from models import CounterMDP

from planners import ReducedMDP, evaluate

pytest.importorskip("stable_baselines3")
pytest.importorskip("tensorboard")

import torch
from scipy import stats

from shared.intervals import Interval
from training import curves, runs, study, task
from training.curves import Curve, Point
from training.task import Reference, Task
from wrappers import AgentPolicy

GRID = Task("ExoGrid-v0", rollouts=200)


def always(action):
    return lambda state: np.full(len(state.endogenous), action)


still = always(0)


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# --- tasks ------------------------------------------------------------------------------------


def test_all_agents_meet_the_same_trajectories():
    same, other = pickle.loads(pickle.dumps(GRID)), Task("ExoGrid-v0", rollouts=200, seed=1)
    for part in ("endogenous", "exogenous"):
        ours = getattr(GRID.scenarios, part)
        np.testing.assert_array_equal(getattr(same.scenarios, part), ours)
    assert (other.scenarios.exogenous != GRID.scenarios.exogenous).any()
    assert len(GRID.scenarios) == 200
    expected = evaluate(always(1), GRID.mdp, scenarios=GRID.scenarios)
    np.testing.assert_array_equal(same.evaluate(always(1)), expected)
    assert Task("exo_envs:ExoGrid-v0", ("slip=0.5",)).name == "ExoGrid-v0,slip=0.5"
    assert Task("ExoGrid-v0", ("slip=0.5",)).mdp.parameters.slip == 0.5


@pytest.mark.parametrize("env_id", ["ExoGrid-v0", "ExoCrowd-v0"])
def test_who_idles_stays_where_they_are(env_id):
    task = Task(env_id, rollouts=20)
    actions = range(task.mdp.num_actions)
    assert sum((task.evaluate(always(action)) != 0).any() for action in actions) > 1
    np.testing.assert_array_equal(task.idle_returns(), 0.0)


def test_rewards_are_scaled_to_the_returns_of_random_actions():
    rng = np.random.default_rng(5)
    returns = GRID.evaluate(lambda state: rng.integers(5, size=len(state.endogenous)))
    assert GRID.reward_scale * returns.std() == pytest.approx(1, rel=0.5)


@pytest.mark.parametrize("mask", [None, ("object", "guard"), ()])
def test_lanes_are_of_the_full_model_or_of_a_reduced_one(mask):
    seen = GRID.mdp.exogenous_names if mask is None else mask
    sizes = [GRID.mdp.exogenous_sizes[GRID.mdp.exogenous_names.index(name)] for name in seen]
    for world in task.WORLDS:
        env = GRID.vector_env(mask, world, 3, autoreset_mode=AutoresetMode.SAME_STEP)
        space = env.single_observation_space
        assert (list(space["exogenous"].nvec) if seen else []) == sizes
        assert ("exogenous" in space.spaces) == bool(seen)
        assert (env.num_envs, env.metadata["autoreset_mode"]) == (3, AutoresetMode.SAME_STEP)
        if world == "full":
            assert env.unwrapped.mdp is GRID.mdp
        else:
            assert isinstance(env.unwrapped.mdp, ReducedMDP)
            assert env.unwrapped.mdp.exogenous_names == seen
        assert AgentPolicy(len, env).mask == seen


reference = functools.partial(Reference, {}, 1.0, planner=[], idle=[])


def test_observations_have_masks():
    wanted = ["none", "oracle", "full", "learned"]
    masks = task.masks_of(GRID, reference(("weather",)), wanted, "guard*,object")
    oracle = ("object", "guard", "guard_intent")
    assert list(masks) == wanted
    assert masks == {"none": (), "oracle": oracle, "full": None, "learned": ("weather",)}
    synthetic = Task("ExoSynthetic-v0")
    required = synthetic.mdp.required_mask
    assert 0 < len(required) < len(synthetic.mdp.exogenous_names)
    for given, oracle in ((None, required), (required[0], required[:1])):
        assert task.masks_of(synthetic, reference(()), ["oracle"], given) == {"oracle": oracle}
    assert task.masks_of(GRID, reference(()), ["full"], None) == {"full": None}
    with pytest.raises(SystemExit, match=r"ExoGrid-v0 does not tell .*--mask 'object' or"):
        task.masks_of(GRID, reference(()), ["full", "oracle"], None)
    with pytest.raises(ValueError, match=r"no exogenous variable matches 'gard\*'"):
        task.masks_of(GRID, reference(()), ["oracle"], "gard*")


# --- curves -----------------------------------------------------------------------------------


def curve_of(*means, seed=0, every=100):
    points = [Point(every * k, float(k), mean, 0.1) for k, mean in enumerate(means)]
    return Curve("full", seed, points=points)


@pytest.mark.parametrize(
    ("level", "steps"),
    [(0.0, 0.0), (-1.0, 0.0), (2.0, 50.0), (4.0, 100.0), (3.0, 75.0), (6.0, 350.0), (9.0, None)],
)
def test_steps_to_a_level_are_read_off_the_line_between_evaluations(level, steps):
    assert curve_of(0.0, 4.0, 1.0, 4.0, 8.0).steps_to(level) == steps


def test_a_curve_is_saved_and_loaded(tmp_path):
    curve = Curve("full", 3, {"mask": None, "hyperparameters": {"rate": 0.1}})
    curve.add(10, 0.5, np.array([1.0, 2.0, 6.0]))
    assert curve.points == [Point(10, 0.5, 3.0, pytest.approx(stats.sem([1.0, 2.0, 6.0])))]
    curve.add(20, 0.7, np.array([2.0]))
    assert curve.points[1] == (20, 0.7, 2.0, 0.0)
    curve.save(tmp_path / "curve.json")
    assert Curve.load(tmp_path / "curve.json") == curve
    assert [path.name for path in tmp_path.iterdir()] == ["curve.json"]


HEAD = '{"label": "full", "seed": 0, '
DAMAGED = ["", "{", "[]", "3", "{}", "\x80", "[" * 10**5, HEAD + '"points": [[1, 2]]}']
DAMAGED += [HEAD + '"points": [[0, "a", 1, 1]]}', HEAD + '"points": 3}', HEAD + '"returns": [[]]}']


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_curve_is_named(tmp_path, text):
    file = tmp_path / "curve.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(SystemExit, match=r"^error: .*is damaged") as raised:
        Curve.load(file)
    assert str(file) in str(raised.value)


def test_intervals_are_students():
    values = [3.0, 5.0, 4.0, 9.0]
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    interval = Interval.of(values)
    assert (interval.low, interval.high) == (pytest.approx(low), pytest.approx(high))
    assert f"{Interval(12.44, 3.61, 4):.1f}" == "12.4 ± 3.6"
    assert Interval.of([2.0]) == (2.0, pytest.approx(math.nan, nan_ok=True), 1)
    assert f"{Interval.of([2.0]):.1f}" == "2.0"


def test_ratios_are_welchs():
    slower, faster = [900.0, 1500.0, 1100.0, 2000.0], [300.0, 500.0, 450.0]
    test = stats.ttest_ind(np.log(slower), np.log(faster), equal_var=False)
    low, high = test.confidence_interval(0.95)
    times = stats.gmean(slower) / stats.gmean(faster)
    assert curves.ratio(slower, faster) == pytest.approx((times, np.exp(low), np.exp(high)))
    one = curves.ratio([10.0], [5.0, 5.0])
    assert one == pytest.approx((2.0, math.nan, math.nan), nan_ok=True)
    assert curves.ratio([10.0, 10.0], [5.0, 5.0]) == pytest.approx((2.0, 2.0, 2.0))
    assert curves.geometric_mean(slower) == pytest.approx(stats.gmean(slower))
    assert curves.geometric_mean([3.0, 0.0]) == 0.0


def test_curves_are_averaged_where_all_have_been_evaluated():
    group = [curve_of(1.0, 2.0, 3.0), curve_of(3.0, 6.0, 9.0, seed=1), curve_of(2.0, 7.0, seed=2)]
    group[1].points.pop(1)
    assert curves.average(group) == [(0, Interval.of([1.0, 3.0, 2.0]))]
    assert [steps for steps, _ in curves.average(group[:2])] == [0, 200]
    other = Curve("none", 0)
    assert curves.by_label([*group[:1], other, *group[1:]]) == {"full": group, "none": [other]}


# --- runs -------------------------------------------------------------------------------------


def make_run(output, **changes):
    settings = {"mask": None, "world": "full", "seed": 0, "steps": 1000, "evaluations": 4}
    settings |= {"hyperparameters": {"lanes": 8, "rate": 0.1}, **changes}
    return runs.Run(GRID, "ppo", "full", output=output, **settings)


def test_evaluations_are_due_once_in_every_share_of_the_steps(tmp_path):
    recorder = runs.Recorder(make_run(tmp_path))
    done = []
    for steps in range(0, 1200, 24):
        if recorder.due(steps):
            recorder.record(steps, still)
            done.append(steps)
            assert not recorder.due(steps)
    assert done == [0, 264, 504, 768, 1008]
    assert recorder.finished
    assert runs.Recorder(recorder.run).finished  # from the file


def test_a_recorder_evaluates_in_the_full_model_and_keeps_the_curve(tmp_path, capsys):
    recorder = runs.Recorder(make_run(tmp_path, mask=("object",), world="reduced"))
    estimate = recorder.record(0, still)
    returns = evaluate(still, GRID.mdp, scenarios=GRID.scenarios)
    kept = Curve.load(recorder.run.folder / runs.CURVE)
    assert kept == recorder.curve
    assert kept.returns == returns.tolist()
    assert kept.points[0].mean == estimate.mean == returns.mean()
    assert kept.label == "full, in the reduced model"
    assert "full, in the reduced model, seed 0" in capsys.readouterr().out


def test_a_run_is_taken_up_at_a_checkpoint(tmp_path):
    run = make_run(tmp_path)
    curve = Curve(run.label, run.seed, run.settings())
    curve.points = [Point(0, 100.0, 1.0, 0.1), Point(256, 200.0, 2.0, 0.1)]
    curve.returns = [2.0] * GRID.rollouts
    run.folder.mkdir()
    curve.save(run.folder / runs.CURVE)
    began = time.perf_counter()
    recorder = runs.Recorder(run)
    assert not recorder.due(256)
    recorder.rewind(0)
    assert recorder.due(256)
    recorder.record(256, still)
    first, second = recorder.curve.points
    assert first == curve.points[0]
    assert 100 <= second.seconds <= 100 + time.perf_counter() - began
    recorder.rewind(-1)
    assert recorder.curve.points == []


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 999},
        {"evaluations": 5},
        {"mask": ("guard",)},
        {"hyperparameters": {"lanes": 9, "rate": 0.1}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_run_with_other_settings_is_not_taken_up(tmp_path, changes):
    run = make_run(tmp_path)
    runs.Recorder(run).record(0, still)
    other = dataclasses.replace(run, **changes)
    with pytest.raises(SystemExit, match=f"^error: .* another {next(iter(changes))}; choose"):
        runs.Recorder(other)
    runs.Recorder(dataclasses.replace(run, threads=7))  # nothing depends on them


def test_the_way_from_idling_to_the_planner_may_lie_below_zero():
    reference = Reference({}, 1.0, (), planner=[-90.0, -110.0], idle=[-300.0])
    assert study.targets_of(reference) == {0.5: -200.0, 0.8: pytest.approx(-140.0)}


WRONG = ["lanes=0", "lanes=x", "lanes=True", "lanes=1.5", "lanes=1000000000", "lanes=10**9"]
WRONG += ["rate=-1", "rate=1e999", "rate=nan", "encoding=foo", "foo=1"]


@pytest.mark.parametrize("setting", WRONG)
def test_settings_that_cannot_be_end_with_one_line(setting):
    defaults = {"lanes": 8, "rate": 0.1, "encoding": "one-hot"}
    with pytest.raises(SystemExit, match=r"^error: .*(cannot be|is one of)"):
        study.given_settings([setting], defaults)
    assert study.given_settings(["lanes=2", "rate=1"], defaults) == {"lanes": 2, "rate": 1}


NUMBERS = {
    "--steps": ("1.5", "many", "inf", "nan", "-1", "0", "1e99", "10**9"),
    "--seeds": ("-1", "0.5", "1e20"),
    "--evaluations": ("0", "1e9"),
    "--rollouts": ("1", "1e9"),
    "--jobs": ("0", "-1", "1e9"),
    "--cost-weight": ("nan", "-1", "inf", "x"),
}


@pytest.mark.parametrize(
    ("option", "text"), [(option, text) for option in NUMBERS for text in NUMBERS[option]]
)
def test_numbers_that_make_no_sense_are_refused(option, text, capsys):
    with pytest.raises(SystemExit, match="2"):
        study.make_parser("", steps=1).parse_args(["ExoGrid-v0", f"{option}={text}"])
    assert f"argument {option}: {text!r} is not a" in capsys.readouterr().err


def test_numbers_may_have_an_exponent():
    given = ["ExoGrid-v0", "--steps", "2e6", "--seeds", "1_0", "2"]
    arguments = study.make_parser("", steps=1).parse_args(given)
    assert (arguments.steps, arguments.seeds) == (2_000_000, [10, 2])


class Constant(CounterMDP):
    """Whatever is done, nothing is paid."""

    def reward_terms(self, state, action):
        return np.zeros(state.exogenous.shape)

    def endogenous_reward(self, endogenous, action):
        return np.zeros(endogenous.shape[:-1])


def test_returns_that_do_not_vary_are_not_scaled(monkeypatch):
    task = Task("ExoGrid-v0", rollouts=5)
    monkeypatch.setitem(task.__dict__, "mdp", Constant())
    assert task.reward_scale == 1.0


# --- what is said of runs -----------------------------------------------------------------------


def trained(first, last, label="full", seed=0):
    curve = Curve(label, seed)
    rng = np.random.default_rng(seed)
    curve.add(0, 0.0, rng.normal(first, 5.0, size=200))
    curve.add(512, 1.0, rng.normal(last, 5.0, size=200))
    return curve


REFERENCE = Reference({}, 1.0, ("guard",), planner=[70.0] * 199 + [71.0], idle=[0.0] * 200)


def study_of(tmp_path, *curves):
    mask = {"full": None, "none": ()}
    return [
        runs.Run(GRID, "ppo", curve.label, mask[curve.label], "full", curve.seed, 512, 1, tmp_path)
        for curve in curves
    ]


def test_runs_that_learned_nothing_are_named(tmp_path, capsys):
    idle, worse, late = (
        trained(-50.0, 0.0),
        trained(60.0, 50.0, seed=1),
        trained(-9.0, 30.0, "none"),
    )
    found = [idle, worse, late]
    study.show(GRID, REFERENCE, study_of(tmp_path, *found), found)
    printed = capsys.readouterr().out
    assert "full: 2 of 2 runs ended no better than idling, or than they began: 512" in printed
    assert "none: 1" not in printed
    assert not study.learned_nothing(found, REFERENCE)
    assert study.learned_nothing([idle, worse], REFERENCE)
    study.show(GRID, REFERENCE, study_of(tmp_path, idle, trained(0.0, 30.0, seed=2)), found[:2])
    assert all(len(line) <= 80 for line in printed.splitlines())


def test_where_nothing_can_be_learned_nobody_is_blamed(tmp_path, capsys):
    nothing = dataclasses.replace(REFERENCE, planner=REFERENCE.idle)
    found = [trained(0.0, 0.0)]
    study.show(GRID, nothing, study_of(tmp_path, *found), found)
    assert "no better" not in capsys.readouterr().out
    assert not study.learned_nothing(found, nothing)


def test_one_seed_has_no_interval():
    groups = {"full": [trained(0.0, 50.0)], "none": [trained(0.0, 60.0, "none")]}
    (line,) = study.ratios(groups, 30.0)
    assert line.endswith("(one seed: no interval)")
    groups["none"].append(trained(0.0, 60.0, "none", 1))
    groups["full"].append(trained(0.0, 50.0, seed=2))
    assert "(95 %: " in study.ratios(groups, 30.0)[0]
