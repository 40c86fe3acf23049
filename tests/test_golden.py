"""The golden record: what must stay the same while the code behind it changes.

Bytes of 1,000 steps of every id under a seed, and masks and returns of the calls of the README.
`python tests/test_golden.py` writes `golden.json` anew; a commit that changes it says why.
"""

import hashlib
import json
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import exo_envs  # noqa: F401, registers the ids
from planners import Scenarios, estimate_objective
from wrappers import CalibratedMaskLearner, CorrelationalMaskLearner, LearnedMask

RECORD = Path(__file__).with_name("golden.json")
STEPPED = {
    "grid": ("ExoGrid-v0", {}),
    "factory": ("ExoFactory-v0", {}),
    "crowd, movable goal": ("ExoCrowd-v0", {"goal": "movable"}),
    "crowd, fixed goal": ("ExoCrowd-v0", {"goal": "fixed"}),
    "synthetic": ("ExoSynthetic-v0", {}),
    "synthetic, real values": ("ExoSyntheticReal-v0", {}),
}
LEARNED = {
    "grid, calibrated, cost 0": ("ExoGrid-v0", CalibratedMaskLearner, {}),
    "grid, paper, cost 1": ("ExoGrid-v0", CorrelationalMaskLearner, {"cost_weight": 1.0}),
    "factory, calibrated, cost 1": ("ExoFactory-v0", CalibratedMaskLearner, {"cost_weight": 1.0}),
    "crowd, calibrated, cost 3": ("ExoCrowd-v0", CalibratedMaskLearner, {"cost_weight": 3.0}),
    "synthetic, calibrated, cost 0": ("ExoSynthetic-v0", CalibratedMaskLearner, {}),
}


def digest_of_steps(env_id: str, arguments: dict, lanes: int | None) -> str:
    """Digest of 1,000 steps of random actions: observations, rewards, ends."""
    digest = hashlib.sha256()

    def add(observation: dict, *rest: object) -> None:
        for key in ("endogenous", "exogenous"):
            array = np.asarray(observation[key])
            kind = np.float64 if array.dtype.kind == "f" else np.int64
            digest.update(np.ascontiguousarray(array, kind).tobytes())
        for value in rest:
            digest.update(np.asarray(value, np.float64).tobytes())

    if lanes is None:
        env = gym.make(env_id, **arguments)
    else:
        env = gym.make_vec(env_id, num_envs=lanes, **arguments)
    actions = np.random.default_rng(0)
    num_actions = env.unwrapped.mdp.num_actions
    add(env.reset(seed=0)[0])
    for _ in range(1_000):
        observation, reward, ended, cut, _ = env.step(actions.integers(num_actions, size=lanes))
        add(observation, reward, ended, cut)
        if lanes is None and (ended or cut):
            add(env.reset()[0])
    env.close()
    return digest.hexdigest()


def learned(env_id: str, learner: type, arguments: dict) -> dict:
    """Mask and return of one learned mask."""
    env = LearnedMask(gym.make(env_id), learner=learner(**arguments), rng=0)
    objective = env.learner.objective_
    return {"mask": list(env.mask), **earned(objective)}


def earned(objective: object) -> dict:
    return {
        "mean_return": float(objective.mean_return),
        "standard_error": float(objective.standard_error),
        "method": str(objective.plan.method),
    }


def judged(mask: list[str]) -> dict:
    """The README's worth of a mask of ExoGrid, with its bracket."""
    mdp = gym.make("ExoGrid-v0").unwrapped.mdp
    rng = np.random.default_rng(0)
    scenarios = Scenarios.sample(mdp, 5000, rng)
    objective = estimate_objective(mdp, mask, rng=rng, scenarios=scenarios)
    bracket = objective.bracket
    return {**earned(objective), "lower": bracket.lower.mean, "upper": bracket.upper.mean}


def record() -> dict:
    return {
        "steps": {
            name: {kind: digest_of_steps(*what, lanes) for kind, lanes in KINDS.items()}
            for name, what in STEPPED.items()
        },
        "learned": {name: learned(*what) for name, what in LEARNED.items()},
        "judged": {", ".join(mask): judged(mask) for mask in JUDGED},
    }


KINDS = {"one": None, "3 lanes": 3, "64 lanes": 64}
JUDGED: list[list[str]] = [[], ["object", "guard"], ["object", "guard", "carrier"]]


@pytest.fixture(scope="module")
def golden() -> dict:
    return json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STEPPED)
def test_a_seed_gives_the_same_bytes(golden, name, kind):
    assert digest_of_steps(*STEPPED[name], KINDS[kind]) == golden["steps"][name][kind]


@pytest.mark.parametrize("name", LEARNED)
def test_learners_find_the_same_masks(golden, name):
    now, before = learned(*LEARNED[name]), golden["learned"][name]
    assert now["mask"] == before["mask"]
    assert_equal_within_error(now, before)


@pytest.mark.parametrize("mask", JUDGED, ids=", ".join)
def test_masks_are_worth_the_same(golden, mask):
    now, before = judged(mask), golden["judged"][", ".join(mask)]
    assert_equal_within_error(now, before)
    for end in ("lower", "upper"):
        assert abs(now[end] - before[end]) <= 4 * before["standard_error"] + 1e-9


def assert_equal_within_error(now: dict, before: dict) -> None:
    error = np.hypot(now["standard_error"], before["standard_error"])
    assert abs(now["mean_return"] - before["mean_return"]) <= 4 * error + 1e-9
    assert now["standard_error"] == pytest.approx(before["standard_error"], rel=0.25)
    assert now["method"] == before["method"]


if __name__ == "__main__":
    RECORD.write_text(json.dumps(record(), indent=1) + "\n", encoding="utf-8")
