"""Why each variable was kept or dropped: what rows say, and what they must never say."""

import dataclasses
import math
import sys
import warnings

import numpy as np
import pytest
from learners import LEARNERS, TINY, each_learner, fresh
from scripted import ScriptedStudy

from exo_envs import ExoMDP, State, Variable
from planners import Estimate
from wrappers import CalibratedMaskLearner, Explanation, NotFittedError, UndecidedWarning
from wrappers.reports.doubts import NOTABLE_NATS
from wrappers.reports.explanation import closest_trials

TEMPERATURES = 8


class Kiosk(ExoMDP):
    """An ice-cream seller opens or not: demand pays, the weather tells it, eight rooms cool down.

    The door is the seller's own, and only the key says whether it opens.
    """

    num_actions = 2
    discount = 0.9
    horizon = 20
    endogenous_variables = (Variable("door", 2), Variable("day", 3))

    def __init__(self, hint=0.9, push=0.0):
        self.hint, self.push = hint, push
        names = ["demand", "weather", "key", "lottery", "roof"]
        names += [f"temperature_{i}" for i in range(TEMPERATURES)]
        self.exogenous_variables = tuple(Variable(name, 2) for name in names)

    def sample_initial(self, size, rng):
        x = rng.integers(2, size=(size, len(self.exogenous_variables)))
        x[:, 4] = 1  # the roof is always there
        return State(np.zeros((size, 2), dtype=np.int64), x)

    def sample_exogenous(self, exogenous, rng):
        thrown = rng.random(exogenous.shape)
        following = (thrown < 0.5).astype(np.int64)
        likely = np.where(exogenous[..., 1] == 1, self.hint, 1 - self.hint)
        likely += self.push * (2 * exogenous[..., 3] - 1)  # by the lottery
        following[..., 0] = thrown[..., 0] < likely
        following[..., 4] = exogenous[..., 4]
        return following

    def sample_endogenous(self, state, action, rng):
        door = (np.asarray(action) == 1) & (state.exogenous[..., 2] == 1)
        day = (state.endogenous[..., 1] + 1) % 3
        return np.stack(np.broadcast_arrays(door, day), axis=-1).astype(np.int64)

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        terms[..., 0] = 3.0 * state.exogenous[..., 0] * state.endogenous[..., 0]
        terms[..., 5:] = -0.1 * state.exogenous[..., 5:] * (np.asarray(action) == 1)[..., None]
        return terms


def scripted(worth, *, error=0.4, cost_weight=1.0, **settings):
    """A learner of the kiosk, whose masks earn what the test says."""
    study = ScriptedStudy(Kiosk(), worth, error=error, n_data_rollouts=400)
    return CalibratedMaskLearner(cost_weight=cost_weight, **settings).fit(study)


@pytest.fixture(scope="module")
def nothing():
    """No mask earns anything, so nothing is worth its price."""
    return scripted(lambda mask: 0.0)


# --- what rows say --------------------------------------------------------------------------------


@each_learner
def test_every_variable_has_a_row_in_the_models_order(name):
    learner = fresh(name).fit(TINY, 0)
    explanation = learner.explain()
    assert [row.variable for row in explanation] == list(TINY.exogenous_names)
    assert len(explanation) == len(explanation.rows) == 4
    assert tuple(row.variable for row in explanation.kept) == learner.mask_
    assert {*explanation.kept, *explanation.dropped} == {*explanation}
    for row in explanation:
        assert explanation[row.variable] is row
        assert row.decision.partition(":")[0] == ("kept" if row.kept else "dropped")
        assert row.price == LEARNERS[name].cost_weight
        assert row.variable in row.sentence
        assert row.sentence.endswith(".")
        assert str(row) in str(explanation)
    with pytest.raises(ValueError, match="unknown variable 'nose'"):
        explanation["nose"]


@each_learner
def test_roles_are_told_whatever_the_learner_looks_at(name):
    """Which are the model's own: one pays, its parent predicts it, a copy and noise do nothing."""
    explanation = fresh(name).fit(TINY, 0).explain()
    roles = {row.variable: row.role for row in explanation}
    assert roles == {"parent_0_0": "predicts", "pays_0": "pays", "copy_0": None, "noise_0": None}
    assert explanation["pays_0"].acts_on == ("reward",)
    assert explanation["parent_0_0"].acts_on == ("pays_0",)


def test_what_a_variable_does_is_told_with_its_unit_and_what_would_have_been_found(nothing):
    explanation = nothing.explain()
    demand, key, weather = (explanation[name] for name in ("demand", "key", "weather"))
    assert (demand.role, demand.acts_on) == ("pays", ("reward",))
    assert (demand.unit, demand.evidence, demand.detectable) == ("variance of its payment", 0, 0)
    assert demand.effect == pytest.approx(3.0**2 / 4 / 2)  # a fair coin, and half of all doors
    assert (key.role, key.unit, key.evidence) == ("moves", "share of (n, a)", 0)
    assert key.acts_on == ("door",)  # and not the day
    assert key.effect == pytest.approx(1 / 2)  # where the seller opens
    assert key.detectable == pytest.approx(1 / 12)  # of 2 doors, 3 days and 2 actions
    assert (weather.role, weather.unit, weather.acts_on) == ("predicts", "nats", ("demand",))
    exact = math.log(2) + 0.9 * math.log(0.9) + 0.1 * math.log(0.1)
    assert weather.effect == pytest.approx(exact, rel=0.1)
    assert weather.evidence < 1e-6
    assert 0 < weather.detectable < weather.effect


def test_what_nothing_speaks_for_is_told_with_what_would_have_been_found(nothing):
    explanation = nothing.explain()
    lottery, roof = explanation["lottery"], explanation["roof"]
    assert lottery.decision == "dropped: no sign"
    assert (lottery.role, lottery.acts_on, lottery.worth) == (None, (), None)
    assert lottery.evidence > 0.05
    assert lottery.effect < lottery.detectable < NOTABLE_NATS
    assert "would have been found" in lottery.sentence
    assert roof.decision == "dropped: never varied"
    assert "7,000 transitions" in roof.sentence  # of 400 rollouts, an eighth is held out


def test_data_that_cannot_tell_says_how_much_would():
    study = ScriptedStudy(Kiosk(), lambda mask: 0.0, n_data_rollouts=3)
    with pytest.warns(UserWarning, match="n_data_rollouts"):
        learner = CalibratedMaskLearner().fit(study)
    row = learner.explain()["lottery"]
    assert row.decision == "dropped: cannot tell with this data"
    assert row.detectable > NOTABLE_NATS
    assert f"about {row.needed:,} transitions would do" in row.sentence
    enough = ScriptedStudy(Kiosk(), lambda mask: 0.0, n_data_rollouts=2 * row.needed // 20)
    row = CalibratedMaskLearner().fit(enough).explain()["lottery"]
    assert row.decision == "dropped: no sign"
    assert row.needed is None
    assert row.detectable <= NOTABLE_NATS


def test_what_acts_too_weakly_to_be_seen_is_not_called_silent():
    study = ScriptedStudy(Kiosk(hint=0.53), lambda mask: 0.0, n_data_rollouts=100)
    row = CalibratedMaskLearner().fit(study).explain()["weather"]
    assert row.decision == "dropped: too little to see"
    assert (row.role, row.acts_on) == ("predicts", ("demand",))
    assert row.effect < row.detectable
    assert row.sentence.startswith("weather changes demand if it is changed itself")


def test_what_a_table_has_no_place_for_is_not_called_silent():
    """The lottery moves demand's chances by 4 %: seen in the data, and no clear cause."""
    study = ScriptedStudy(Kiosk(hint=0.8, push=0.04), lambda mask: 0.0, n_data_rollouts=4000)
    study.max_parents = 1
    row = CalibratedMaskLearner().fit(study).explain()["lottery"]
    assert row.decision == "dropped: no place in a table"
    assert (row.role, row.acts_on) == ("predicts", ("demand",))
    assert row.evidence < 0.05
    assert row.effect > row.detectable
    study = ScriptedStudy(Kiosk(hint=0.7, push=0.2), lambda mask: 0.0, n_data_rollouts=4000)
    study.max_parents = 1
    with pytest.warns(UndecidedWarning, match="'demand' without 'lottery'"):
        learner = CalibratedMaskLearner().fit(study)
    row = learner.explain()["lottery"]
    assert (row.decision, row.unit) == ("kept", "share of states")  # a clear cause
    assert row.effect > row.detectable == 0.1


# --- worth ----------------------------------------------------------------------------------------


def test_a_groups_worth_is_never_a_variables(nothing):
    """Of eight temperatures a quarter of the mask was tried first, and no one of them alone."""
    explanation = nothing.explain()
    for row in explanation:
        if row.worth is None:
            continue
        tried = closest_trials(nothing)[row.variable]
        assert {row.variable, *row.tried_with} == set(tried.names)
        if row.tried_with:
            assert "together with" in row.sentence
            assert "it was not tried alone" in row.sentence
        else:
            assert "together with" not in row.sentence
    groups = {frozenset((r.variable, *r.tried_with)) for r in explanation if r.worth is not None}
    tried = {frozenset(r.candidate) for r in nothing.history_ if r.gain is not None}
    assert groups <= tried


def test_worth_is_in_return_and_before_the_price():
    def earned(mask):
        return 10.0 * ("demand" in mask) + 5.0 * ({"demand", "weather"} <= set(mask))

    learner = scripted(earned, cost_weight=2.0)
    explanation = learner.explain()
    weather = explanation["weather"]
    assert (weather.kept, weather.decision, weather.tried_with) == (True, "kept", ())
    assert (weather.worth.mean, weather.worth.standard_error) == (5.0, 0.4)
    assert weather.price == 2.0
    assert "it is worth 5.0 ± 0.8 in return, against a price of 2" in weather.sentence
    for row in explanation.dropped:
        if row.variable.startswith("temperature"):
            assert row.worth.mean == 0.0
            assert row.decision == "dropped: not worth its price"


def test_what_predicts_a_dropped_variable_says_so(nothing):
    row = nothing.explain()["weather"]
    assert not nothing.explain()["demand"].kept
    assert (row.role, row.acts_on) == ("predicts", ("demand",))
    assert "predicts demand (" in row.sentence
    assert "which was dropped" in row.sentence
    learner = scripted(lambda mask: 0.0)
    learner.history_[:] = [record for record in learner.history_ if record.action == "find"]
    row = learner.explain()["weather"]
    assert row.decision == "dropped: predicts what was dropped"
    assert learner.explain()["demand"].decision == "dropped: never tried"


@pytest.mark.parametrize(
    ("worth", "decision"),
    [
        (Estimate(1.0, 0.1), "dropped: not worth its price"),
        (Estimate(3.0, 2.0), "dropped: gain in doubt"),
        (Estimate(-3.0, 0.5), "dropped: earns less with it"),
    ],
)
def test_decisions_follow_from_worth_and_price(nothing, worth, decision):
    learner = scripted(lambda mask: 0.0, cost_weight=2.0)
    step = next(record for record in learner.history_ if record.action == "drop")
    gain = worth.mean - 2.0  # J of a mask with it less J of the mask without
    learner.history_[:] = [
        *(record for record in learner.history_ if record.action == "find"),
        dataclasses.replace(
            step,
            action="add",
            accepted=False,
            candidate=("key",),
            gain=gain,
            gain_error=worth.standard_error,
        ),
    ]
    row = learner.explain()["key"]
    assert row.decision == decision
    assert row.worth == worth


def test_plans_that_ran_out_of_time_decide_nothing():
    learner = scripted(lambda mask: 0.0)
    step = next(record for record in learner.history_ if record.action == "drop")
    reason = "not decided; its plan ran out of time"
    late = dataclasses.replace(
        step, action="add", accepted=False, candidate=("key",), gain=-1.0, reason=reason
    )
    learner.history_[:] = [*(r for r in learner.history_ if r.action == "find"), late]
    row = learner.explain()["key"]
    assert row.decision == "dropped: not decided"
    assert "a plan ran out of time" in row.sentence


def test_each_variable_can_be_tried_alone():
    learner = fresh("priced").fit(TINY, 0)
    before = learner.explain()
    after = learner.explain(try_alone=True)
    for row in after:
        if row.role is None:
            assert row == before[row.variable]
            continue
        assert row.tried_with == ()
        mask = {*learner.mask_} ^ {row.variable}
        other = tuple(name for name in TINY.exogenous_names if name in mask)
        compared = learner.study_.evaluator.compare(other, learner.mask_).returns
        sign = 1.0 if row.variable in mask else -1.0
        assert row.worth.mean == pytest.approx(sign * compared.mean)
    with pytest.raises(TypeError, match="try_alone"):
        learner.explain(try_alone="yes")


def test_what_brute_force_tried_is_told_one_by_one():
    learner = fresh("brute force").fit(TINY, 0)
    assert all(row.worth is not None and row.tried_with == () for row in learner.explain())


# --- stopped, and other forms ---------------------------------------------------------------------


@each_learner
@pytest.mark.parametrize("limit", [1e-9, 0.02, 0.2])
def test_a_learner_that_was_stopped_says_what_it_did_not_get_to(name, limit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = fresh(name, time_limit=limit).fit(TINY, 0)
    samples = learner.study_.samples
    explanation = learner.explain()
    assert len(explanation) == 4
    if learner.status_ == "time limit":
        assert learner.study_.samples == samples  # nothing was asked
        untested = [row for row in explanation if row.evidence is None]
        assert all("learning was stopped (time limit) before" in str(row) for row in untested)
    if limit == 1e-9:
        assert {row.decision for row in explanation} == {"dropped: not tested"}
        assert explanation.transitions == 0
    assert len(learner.path()) > 0


def test_before_fit_there_is_nothing_to_explain():
    for ask in (CalibratedMaskLearner().explain, CalibratedMaskLearner().path):
        with pytest.raises(NotFittedError, match="call fit first"):
            ask()


def test_it_is_a_table_for_pandas_and_in_markdown(nothing):
    explanation = nothing.explain()
    frame = explanation.to_pandas().set_index("variable")
    assert list(frame.index) == list(nothing.feature_names_in_)
    assert set(frame.columns) >= {"kept", "role", "acts_on", "evidence", "effect", "sentence"}
    tried = [row for row in explanation if row.worth is not None]
    for row in tried:
        told = frame.loc[row.variable, ["worth_low", "worth", "worth_high"]].tolist()
        low, high = row.worth.interval()
        assert told == pytest.approx([low, row.worth.mean, high])
    lines = explanation.to_markdown().splitlines()
    assert len(lines) == 2 + len(explanation)
    assert all(line.startswith("| ") and line.count(" | ") == 7 for line in lines)
    told = explanation.to_markdown(sentences=True)
    assert all(row.sentence in told for row in explanation)
    odd = dataclasses.replace(explanation.rows[0], variable="a|b")
    table = Explanation((odd,), 1.0, 0.05, 10, "finished").to_markdown()
    assert "a\\|b" in table
    assert explanation.to_html().count("<tr>") == 1 + len(explanation)
    odd = dataclasses.replace(odd, variable="<b>")
    assert "<td>&lt;b&gt;</td>" in Explanation((odd,), 1.0, 0.05, 10, "finished").to_html()


def test_without_pandas_or_matplotlib_the_error_says_what_to_install(nothing, monkeypatch):
    explanation = nothing.explain()
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"to_pandas.* needs pandas: pip install pandas"):
        explanation.to_pandas()
    with pytest.raises(ImportError, match=r"plot.* needs matplotlib: pip install matplotlib"):
        explanation.plot()
    with pytest.raises(TypeError, match="ax is axes of matplotlib, not int"):
        explanation.plot(3)


def test_the_plot_has_a_line_for_each_trial_and_one_for_all_that_were_never_tried(nothing):
    import matplotlib.pyplot as plt

    explanation = nothing.explain()
    ax = explanation.plot()
    labels = [label.get_text() for label in ax.get_yticklabels()]
    groups = {
        frozenset((row.variable, *row.tried_with)) for row in explanation if row.worth is not None
    }
    silent = {row.decision for row in explanation if row.worth is None}
    assert len(labels) == len(groups) + len(silent)
    assert any("tried together" in label for label in labels)
    assert silent <= {text.get_text() for text in ax.texts}
    assert explanation.plot(ax) is ax
    plt.close(ax.figure)
