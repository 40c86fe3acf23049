"""Other tasks over the same exogenous process: refitted learners, and masks that change."""

from __future__ import annotations

from typing import Any

from exo_envs import ExoEnv
from reliability import subjects
from reliability.entries.learners import odd_mask
from reliability.entries.users import LEARNERS
from reliability.odd import Odd
from reliability.registry import entry
from reliability.user_models import Ferry, Market
from wrappers import CalibratedMaskLearner, RemaskingObservation


class Sale(Market):
    """The same prices, seasons and news; selling pays twice."""

    def reward_terms(self, state: Any, action: Any) -> Any:
        return 2.0 * super().reward_terms(state, action)


@entry("tasks/refit", weight=0.5, limit=60.0)
def refit(odd: Odd) -> None:
    """A learner before and after its fit, and what is another task or none."""
    kind, learner = odd.below(4), subjects.learner()
    if kind == 0:
        odd.must_fail(odd.pick(LEARNERS)(**subjects.TINY).refit, Sale())
    elif kind == 1:
        again = odd.must_work(learner.refit, Sale(), with_policy=odd.chance(0.5))
        odd.must_work(again.get_support)
    elif kind == 2:
        given = {odd.pick(("with_policy", "check")): odd.sound_or(True)}
        other = odd.pick((Sale(), Ferry(), Market, None, subjects.env("market"), odd.anything()))
        odd.call(learner.refit, other, **given)
    else:
        study = subjects.study()
        odd.must_work(study.of_task, Sale())
        odd.must_work(study.with_carried_end)
        odd.call(study.of_task, odd.anything())


@entry("tasks/remasking", weight=0.5, limit=60.0)
def remasking(odd: Odd) -> None:
    """Tasks and masks of which one is odd; then episodes of tasks that there are, or are not."""
    tasks: Any = {"plain": {}, "sale": odd.pick((Sale(), ExoEnv(Sale()), {}))}
    given: dict[str, Any] = {"masks": {"plain": ["price"], "sale": ["price", "season"]}}
    if odd.chance(0.2):
        given = {"learner": CalibratedMaskLearner(**subjects.TINY), "rng": 0}
    kind = odd.below(6)
    if kind == 0:
        tasks = odd.pick(({}, {3: {}}, {"plain": odd.anything()}, {"far": Ferry()}, odd.anything()))
    elif kind == 1:
        given["masks"] = odd.pick(({"plain": odd_mask(odd, Market().exogenous_names)}, {}, 3))
        tasks = {"plain": {}}
    elif kind == 2:
        name = odd.pick(("learner", "rng", "observe_task", "show_mask"))
        given[name] = odd.anything()
    env = odd.call(RemaskingObservation, ExoEnv(Market()), tasks, **given)
    odd.must_work(env.reset, seed=0, options={"task": odd.pick(sorted(tasks))})
    odd.must_work(env.step, 0)
    odd.must_work(lambda: (env.current_mask, env.policy, env.spec))
    if odd.chance(0.5):
        odd.must_work(env.close)
    elif odd.chance(0.5):
        odd.call(env.reset, seed=odd.sound_or(0), options=odd.sound_or({"task": odd.text()}))
    else:
        seen = odd.pick(({}, None, {"exogenous": [0, 0, 0]}, {"exogenous": 3}, 3))
        odd.call(env.observation, seen)
