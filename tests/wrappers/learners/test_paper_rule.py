"""The loop of *Mask-Learning-Correlational*, on masks whose worth the test writes down."""

import numpy as np
import pytest
from scripted import ScriptedStudy, Sites

from wrappers import CorrelationalMaskLearner


def paper(worth, scores, monkeypatch, **arguments):
    """The rule on Sites with the rain not paying: what masks are worth and how they score."""

    class Dry(Sites):
        def reward_terms(self, state, action):
            terms = super().reward_terms(state, action)
            terms[..., self.coins :] = 0.0
            return terms

    class Pieces(Dry):
        def __init__(self):
            super().__init__(coins=2)
            more = [type(self.exogenous_variables[0])(name, 2) for name in ("p", "q", "r")]
            self.exogenous_variables = (*self.exogenous_variables, *more)

    asked = []

    def score(self, study, reduced, candidates):
        asked.append(tuple(candidates))
        return np.array([scores.get(name, 0.0) for name in candidates])

    monkeypatch.setattr(CorrelationalMaskLearner, "_scores", score)
    study = ScriptedStudy(Pieces(), worth)
    learner = CorrelationalMaskLearner(sampling="uniform", **arguments).fit(study)
    return learner, asked, study


def test_the_largest_score_is_added_while_j_increases(monkeypatch):
    scores = {"p": 0.1, "q": 0.3, "r": 0.2, "rain": 0.05}
    worth = {2: 10, 3: 11, 4: 12, 5: 12, 6: 99}  # by size: the fifth does not increase J
    learner, asked, _ = paper(lambda mask: worth[len(mask)], scores, monkeypatch, patience=1)
    assert learner.mask_ == ("coin_0", "coin_1", "q", "r")
    tried = [(r.candidate, r.accepted) for r in learner.history_ if r.action == "add"]
    assert tried == [(("q",), True), (("r",), True), (("p",), False)]
    assert learner.history_[-1].reason == "J does not increase"
    assert asked == [("rain", "p", "q", "r"), ("rain", "p", "r"), ("rain", "p")]


def test_patience_waits_for_variables_that_pay_together(monkeypatch):
    scores = {"p": 0.1, "q": 0.3, "r": 0.2, "rain": 0.05}
    worth = {2: 10, 3: 9, 4: 12, 5: 11, 6: 11.5}
    masks = {}
    for patience in (1, 2, 3):
        learner, _, _ = paper(lambda mask: worth[len(mask)], scores, monkeypatch, patience=patience)
        masks[patience] = learner.mask_
        tried = [(r.candidate, r.accepted) for r in learner.history_ if r.action == "add"]
        wanted = [(("q",), False), (("q", "r"), True), (("p",), False), (("p", "rain"), False)]
        assert tried == wanted[: 1 if patience == 1 else 4]
        gains = [r.gain for r in learner.history_ if r.action == "add"]
        assert gains == [-1, 2, -1, -0.5][: len(gains)]  # against the best mask so far
        assert learner.objective_.mean_return == worth[len(learner.mask_)]
    paying = ("coin_0", "coin_1")
    assert masks == {1: paying, 2: (*paying, "q", "r"), 3: (*paying, "q", "r")}


@pytest.mark.parametrize("paired", [True, False])
def test_masks_are_played_on_the_same_trajectories_or_not(paired, monkeypatch):
    """The gain of a variable that nobody can do anything about is exactly 0, if it is paired."""

    def rain_first(self, study, reduced, candidates):
        return np.array([name == "rain" for name in candidates], dtype=float)

    monkeypatch.setattr(CorrelationalMaskLearner, "_scores", rain_first)
    learner = CorrelationalMaskLearner(
        paired=paired, sampling="uniform", tau_variance=1e9, n_rollouts=40, n_data_rollouts=40
    )
    start, rain, *_ = (r for r in learner.fit(Sites(coins=2), 0).history_ if r.value is not None)
    assert (start.mask, rain.candidate) == ((), ("rain",))
    assert (rain.gain == 0) == paired


def test_it_stops_below_tau_correl(monkeypatch):
    scores = {"p": 0.1, "q": 0.3, "r": 0.2}
    learner, _, study = paper(len, scores, monkeypatch, tau_correl=0.2)
    assert learner.mask_ == ("coin_0", "coin_1", "q", "r")  # 0.2 is not below 0.2
    assert learner.history_[-1].action == "try"
    assert "tau_correl" in learner.history_[-1].reason
    assert learner.history_[-1].score == 0.1
    assert ("coin_0", "coin_1", "p", "q", "r") not in study.estimates


def test_it_ends_when_nothing_is_left(monkeypatch):
    learner, _, _ = paper(len, {}, monkeypatch, tau_correl=0.0)
    assert learner.mask_ == learner.feature_names_in_


def test_the_cost_is_part_of_what_must_increase(monkeypatch):
    scores = {"p": 0.1, "q": 0.3, "r": 0.2}
    worth = {2: 10.0, 3: 11.5, 4: 12.0, 5: 13.4, 6: 99.0}
    learner, _, _ = paper(lambda mask: worth[len(mask)], scores, monkeypatch, cost_weight=1.0)
    assert learner.mask_ == ("coin_0", "coin_1", "q")
