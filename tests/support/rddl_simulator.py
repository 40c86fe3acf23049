"""pyRDDLGym's own simulator, asked about single states, and compared with an imported model."""

import warnings

import numpy as np
from pyRDDLGym.core.simulator import RDDLSimulator

from exo_envs.core.mdp import State
from exo_envs.sources.rddl.loading import load


class Simulator:
    """Draws of pyRDDLGym from any state."""

    def __init__(self, domain, instance, seed=0):
        self.lifted = load(domain, instance)
        self.simulator = RDDLSimulator(
            self.lifted,
            rng=np.random.default_rng(seed),
            keep_tensors=True,
            objects_as_strings=False,
        )

    def tensors(self, grounded, fluents):
        """Values of grounded fluents as the arrays of the lifted ones."""
        arrays = {}
        for name in fluents:
            example = np.asarray(self.simulator.init_values[name])
            values = [grounded[g] for g in self.lifted.variable_groundings[name]]
            array = np.array(values, dtype=example.dtype).reshape(example.shape)
            arrays[name] = array if array.shape else array[()]
        return arrays

    def draw(self, state, action, count):
        """Fluents and rewards after a step, from one state: (count,) each."""
        state = self.tensors(state, self.lifted.state_fluents)
        action = self.tensors(action, self.lifted.action_fluents)
        following = {name: [] for name in self.lifted.state_fluents}
        rewards, ended = [], []
        for _ in range(count):
            self.simulator.subs = {**self.simulator.init_values, **state}
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                values, reward, done = self.simulator.step(dict(action))
            rewards.append(reward)
            ended.append(done)
            for name, rows in following.items():
                rows.append(np.ravel(values[name]))
        fluents = {}
        for name, rows in following.items():
            columns = np.array(rows).T
            fluents.update(zip(self.lifted.variable_groundings[name], columns, strict=True))
        return fluents, np.array(rewards), np.array(ended)


def visited_states(mdp, count, rng, steps=None):
    """States of random walks, at different times, with actions to take there."""
    steps = min(mdp.horizon - 1, 12) if steps is None else steps
    state = mdp.sample_initial(count, rng)
    for step in range(steps):
        action = rng.integers(mdp.num_actions, size=count)
        following = mdp.sample_next(state, action, rng)
        moves = np.arange(count) > step * count // max(steps, 1)  # lane 0 stays at the start
        state = State(
            *(np.where(moves[:, None], new, old) for new, old in zip(following, state, strict=True))
        )
    return state, rng.integers(mdp.num_actions, size=count)


def distance(first, second):
    """The largest distance of two empirical distribution functions."""
    values = np.unique(np.concatenate([first, second]))
    below = (np.searchsorted(np.sort(a), values, side="right") / len(a) for a in (first, second))
    return np.abs(np.subtract(*below)).max()


def largest_distance(n, m, error_probability):
    """Exceeded by two samples of one distribution with at most this probability (DKW, Massart)."""
    return np.sqrt(np.log(4 / error_probability) / 2) * (1 / np.sqrt(n) + 1 / np.sqrt(m))


def disagreements(mdp, simulator, *, states, samples, seed=0, error_probability=1e-6):
    """Fluents (and the reward) whose distributions after a step differ; with what was seen."""
    rng = np.random.default_rng(seed)
    batch, actions = visited_states(mdp, states, rng)
    decoded = mdp.fluents(batch)
    found = []
    for lane in np.flatnonzero(~mdp.is_terminal(batch)):
        grounded = {name: values[lane] for name, values in decoded.items()}
        theirs, rewards, ended = simulator.draw(
            grounded, mdp.action_fluents(int(actions[lane])), samples
        )
        state = State(*(np.repeat(part[[lane]], 20 * samples, axis=0) for part in batch))
        action = np.repeat(actions[[lane]], 20 * samples)
        following = mdp.sample_next(state, action, rng)
        ours = mdp.fluents(following)
        weights = rng.normal(size=(3, len(ours)))  # looks at fluents together
        pairs = {name: (ours[name], theirs[name]) for name in ours}
        for k, weight in enumerate(weights):
            pairs[f"combination {k}"] = tuple(
                np.round(sum(w * side[n] for w, n in zip(weight, ours, strict=True)), 6)
                for side in (ours, theirs)
            )
        pairs["the end"] = (mdp.is_terminal(following) * 1, ended * 1)
        limit = largest_distance(20 * samples, samples, error_probability / states / len(pairs))
        for name, (own, other) in pairs.items():
            gap = distance(
                np.round(np.asarray(own, float), 6), np.round(np.asarray(other, float), 6)
            )
            if gap > limit:
                found.append((lane, name, gap, own[:5], other[:5]))
        mean, spread = rewards.mean(), rewards.std(ddof=1) / np.sqrt(samples)
        own = mdp.reward(state, action)[0]
        if abs(mean - own) > 6 * spread + 1e-6 * (1 + abs(own)):
            found.append((lane, "reward", own, mean, spread))
    return found
