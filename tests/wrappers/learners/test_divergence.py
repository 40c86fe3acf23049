"""The paper's score, in both readings, against slow independent versions of it."""

import math
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from factored import random_mdp
from scipy.stats import chi2
from scripted import Watched
from sklearn.metrics import mutual_info_score

from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters
from planners import Memory, ReducedMDP
from planners.dependence.contingency import Rows
from planners.dependence.parents import TransitionCounts
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from wrappers.learners.correlational import (
    EndogenousTransitions,
    factored_divergence,
    joint_divergence,
    joint_exogenous_divergence,
)


def rollouts(mdp, number, seed=0):
    return ExogenousData.collect(mdp, number, np.random.default_rng(seed))


def columns(data):
    """x and x' of the transitions that are not held out, (samples, m) each."""
    m, values = len(data.names), data.values[data.fitted]
    return values[:, :-1].reshape(-1, m), values[:, 1:].reshape(-1, m)


def counted(data):
    return TransitionCounts(data, 1, Memory())


def exogenous_divergence(data, mask, candidates):
    return joint_exogenous_divergence(counted(data), np.array(mask, int), np.array(candidates))


def plug_in(data, mask, candidates):
    """The exogenous part of the joint reading, in nats."""
    return exogenous_divergence(data, mask, candidates).nats(bias_corrected=False)


def codes(values, sizes):
    """The joint value of some columns."""
    return np.ravel_multi_index(tuple(values.T.astype(int)), tuple(sizes)) if len(sizes) else 0


def dense_divergence(data, mask, j):
    """E KL( P(s',x'|s,x) || P(s'|s) P(x'|x) ) from one dense table of counts."""
    now, later = columns(data)
    sizes = data.sizes[list(mask)]
    states = int(np.prod(sizes))
    counts = np.zeros((states, data.sizes[j], states, data.sizes[j]))
    s, s_next = (
        np.broadcast_to(codes(part[:, list(mask)], sizes), len(now)) for part in (now, later)
    )
    np.add.at(counts, (s, now[:, j], s_next, later[:, j]), 1)
    joint = counts / counts.sum()
    present = joint.sum(axis=(2, 3), keepdims=True)
    s_moves = joint.sum(axis=(1, 3), keepdims=True)
    x_moves = joint.sum(axis=(0, 2), keepdims=True)
    product = (
        s_moves / s_moves.sum(axis=2, keepdims=True) * x_moves / x_moves.sum(axis=3, keepdims=True)
    )
    seen = joint > 0
    ratio = (joint / present)[seen] / np.broadcast_to(product, joint.shape)[seen]
    return float((joint[seen] * np.log(ratio)).sum())


@pytest.mark.parametrize("mask", [(), (2,), (0, 3), (3, 1, 0)])
def test_the_score_is_the_divergence_of_the_paper(mask):
    mdp = random_mdp(np.random.default_rng(4), sizes=(2, 3, 4, 2), sparse=0.2, max_parents=3)
    data = rollouts(mdp, 60)
    candidates = [j for j in range(4) if j not in mask]
    scores = plug_in(data, mask, candidates)
    with np.errstate(invalid="ignore"):  # values that do not occur
        wanted = [dense_divergence(data, mask, j) for j in candidates]
    assert scores == pytest.approx(wanted, abs=1e-9)
    assert bool(mask) == (max(wanted) > 1e-3)


def information(a, b, given=None):
    """I(a ; b | given), by scikit-learn and the chain rule."""
    if given is None:
        return mutual_info_score(a, b)
    both = given * (a.max() + 1) + a
    return mutual_info_score(both, b) - mutual_info_score(given, b)


def test_the_score_splits_into_three_informations():
    """I(x;s'|s) + I(s;x'|x) + I(s';x'|s,x), each of them by scikit-learn."""
    mdp = random_mdp(np.random.default_rng(5), sizes=(3, 2, 4), max_parents=3)
    data = rollouts(mdp, 100)
    now, later = (part.astype(np.int64) for part in columns(data))
    for (s, j), score in zip(
        [(0, 1), (0, 2), (2, 1)],
        [*plug_in(data, [0], [1, 2]), *plug_in(data, [2], [1])],
        strict=True,
    ):
        told = information(now[:, j], later[:, s], now[:, s])
        copied = information(now[:, s], later[:, j], now[:, j])
        linked = information(later[:, s], later[:, j], now[:, s] * 8 + now[:, j])
        assert score == pytest.approx(told + copied + linked, abs=1e-9)


def test_without_a_past_the_score_is_the_mutual_information():
    rng = np.random.default_rng(6)
    values = np.zeros((500, 2, 3), dtype=np.uint8)
    values[:, 1, 0] = rng.integers(5, size=500)
    values[:, 1, 1] = (values[:, 1, 0] + (rng.random(500) < 0.3)) % 5
    values[:, 1, 2] = rng.integers(5, size=500)
    sizes = np.array([5, 5, 5])
    data = ExogenousData(("s", "x", "y"), sizes, values, np.zeros((500, 1), dtype=np.int64), 0)
    _, later = columns(data)
    wanted = [mutual_info_score(later[:, 0], later[:, j]) for j in (1, 2)]
    assert plug_in(data, [0], [1, 2]) == pytest.approx(wanted, abs=1e-9)


def test_the_plug_in_score_is_biased():
    """Independent coins: 2 * samples * score is chi-squared with 4*3 - 2*1 - 2*1 = 8 degrees.

    Outside of the interval once in 500,000 times for each candidate. The paper's 1e-5 is below
    the noise, and more values look like more information.
    """
    rng = np.random.default_rng(7)
    values = rng.integers([2] * 7 + [32], size=(400, 51, 8)).astype(np.uint8)
    data = ExogenousData(
        tuple("abcdefgh"), np.array([2] * 7 + [32]), values, np.zeros((400, 1), dtype=np.int64), 0
    )
    found = exogenous_divergence(data, [0], list(range(1, 8)))
    scores, statistic = found.nats(bias_corrected=False), found.statistic
    assert found.samples == 350 * 50  # an eighth is held out
    assert (statistic[:-1] > chi2.ppf(1e-6, 8)).all()
    assert (statistic[:-1] < chi2.isf(1e-6, 8)).all()
    assert scores[:-1].mean() > 1e-5
    assert scores.argmax() == 6
    freedom = 64 * 63 - 32 * 31 - 2 * 1  # nearly all cells are filled: about four samples each
    assert statistic[-1] == pytest.approx(freedom, rel=0.2)
    assert found.freedom == pytest.approx([*[8] * 6, freedom], rel=0.05)
    # Without the bias the variable of 32 values is one of several: 5 standard deviations of 2 f.
    corrected = 2 * found.samples * found.nats(bias_corrected=True)
    assert (np.abs(corrected) < 0.2 * freedom).all()
    assert (np.abs(corrected[:-1]) < 5 * np.sqrt(2 * 8)).all()


class Asked(NamedTuple):
    """A model, its data, and n' that was drawn for the transitions that are counted."""

    watched: Watched
    data: ExogenousData
    counts: TransitionCounts
    survey: EndogenousSurvey
    endogenous_transitions: EndogenousTransitions
    memory: Memory

    @classmethod
    def about(cls, mdp, number, seed=0):
        watched, memory, rng = Watched(mdp), Memory(), np.random.default_rng(seed)
        data = rollouts(watched, number, seed)
        survey = EndogenousSurvey.collect(watched, data, rng)
        memory.bind(data=data, survey=survey)
        counts = TransitionCounts(data, 1, memory)
        moves = EndogenousTransitions.draw(watched, counts, survey, rng)
        return cls(watched, data, counts, survey, moves, memory)

    def endogenous(self):
        """The joint value of n and a, and that of n', in each sample."""
        (n, x), action, following = self.watched.asked["endogenous"]
        sizes = self.watched.endogenous_sizes
        assert (x == columns(self.data)[0]).all()
        return codes(n, sizes) * self.watched.num_actions + action, codes(following, sizes)

    def reduced(self, mask):
        rng = np.random.default_rng(0)
        return ReducedMDP.estimate(self.watched, mask, rng=rng, memory=self.memory)


def test_the_endogenous_part_of_the_joint_score():
    """I(x ; n' | n, a, mask), by scikit-learn from what the model was asked and answered."""
    asked = Asked.about(
        random_mdp(np.random.default_rng(8), sizes=(2, 3, 2), endogenous=(2, 2)), 200
    )
    mask, others = np.array([2]), np.array([0, 1])
    found = joint_divergence(asked.counts, asked.endogenous_transitions, mask, others)
    pair, following = asked.endogenous()
    x, _ = columns(asked.data)
    rows = pair * 2 + x[:, 2]
    wanted = [information(x[:, j].astype(int), following, rows) for j in (0, 1)]
    exogenous = plug_in(asked.data, [2], [0, 1])
    assert found.nats(bias_corrected=False) == pytest.approx(exogenous + wanted, abs=1e-9)
    assert max(wanted) > 1e-3


def test_the_factored_score_is_what_a_variable_adds_to_each_prediction():
    """The sum of I(x ; x'_i | parents) and of I(x ; n' | n, a, what moves n' there)."""
    mdp = random_mdp(np.random.default_rng(9), sizes=(2, 3, 2, 3, 2), endogenous=(3,))
    asked = Asked.about(mdp, 300)
    names = asked.data.names
    mask = (names[0], names[2], names[3])
    others = np.array([1, 4])
    reduced = asked.reduced(mask)
    found = factored_divergence(
        asked.counts, asked.endogenous_transitions, asked.survey, reduced, others
    )
    now, later = (part.astype(np.int64) for part in columns(asked.data))
    pair, following = asked.endogenous()
    rows = pair
    for j in (0, 2, 3):
        seen = np.where(asked.survey.relevant[pair, j], now[:, j], 0)
        rows = np.unique(rows * asked.data.sizes[j] + seen, return_inverse=True)[1]
    wanted = np.zeros(2)
    for k, j in enumerate(others):
        wanted[k] = information(now[:, j], following, rows)
        for name, parents in reduced.parents.items():
            at = asked.data.positions(parents)
            given = np.broadcast_to(codes(now[:, at], asked.data.sizes[at]), len(now))
            (i,) = asked.data.positions([name])
            wanted[k] += information(now[:, j], later[:, i], given)
    assert any(reduced.parents.values())
    assert found.nats(bias_corrected=False) == pytest.approx(wanted, abs=1e-9)
    assert wanted.max() > 1e-3


def noisy_parents(seed, members=40):
    """Many coins that pay and one that is copied by the first; noise of 32 values beside them."""
    rng = np.random.default_rng(seed)
    sizes = np.array([2] * members + [2, 32])
    values = rng.integers(sizes, size=(400, 51, members + 2)).astype(np.uint8)
    values[:, 1:, 0] = np.where(rng.random((400, 50)) < 0.2, values[:, 1:, 0], values[:, :-1, -2])
    names = (*(f"coin_{k}" for k in range(members)), "source", "noise")
    return ExogenousData(names, sizes, values, np.zeros((400, 1), dtype=np.int64), 0)


def test_joint_values_of_a_large_mask_say_nothing_and_factors_do():
    """With 40 coins all joint values are unique: all of H(x'|x) seems to be told, whatever x is.

    The factored score, less its bias, tells the source (0.37 nats: a copy that is right nine
    times in ten) from noise, whose standard deviation is sqrt(2 * 40 * 31) / (2 * 17,500) = 0.0014.
    """
    data = noisy_parents(0)
    coins, others = data.names[:40], np.array([40, 41])
    assert plug_in(data, range(40), others) == pytest.approx(np.log([2, 32]), rel=0.02)
    counts = counted(data)
    still = Rows.of(counts.count)  # n never moves
    moves = EndogenousTransitions(still, np.zeros(counts.count, np.intp), still)
    survey = SimpleNamespace(relevant=np.zeros((1, 42), dtype=bool))
    reduced = SimpleNamespace(parents=dict.fromkeys(coins, ()), columns=np.arange(40))
    found = factored_divergence(counts, moves, survey, reduced, others)
    source, noise = found.nats(bias_corrected=True)
    right = np.array([0.9, 0.1])
    assert source == pytest.approx(math.log(2) + right @ np.log(right), abs=0.02)
    assert abs(noise) < 5 * 0.0014
    assert found.nats(bias_corrected=False)[1] > 20 * 0.0014


def test_the_divergence_does_not_see_who_follows_whom():
    """What merely copies the mask scores like what predicts it.

    One of them has 2 * samples * score > 38 with probability 1 - 1e-100, the other one 1e-6.
    """
    size = {"num_noise": 1, "noise_size": 2, "num_copies": 1, "num_correlated": 0}
    core = {"num_paying": 1, "num_xor_pairs": 0, "num_moving": 0, "generations": 0}
    mdp = SyntheticMDP(SyntheticParameters(**size, **core))
    data = rollouts(mdp, 200)
    places = data.positions(["pays_0", "copy_0", "noise_0"]).tolist()
    copy, unrelated = exogenous_divergence(data, places[:1], places[1:]).statistic
    assert copy > 1000
    assert unrelated < chi2.isf(1e-6, 8) < 50
