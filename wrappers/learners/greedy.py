"""*Mask-Learning-Greedy* (section 5.1 of the paper)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from exo_envs.core.arguments import Constraints, check_flag, whole
from exo_envs.core.batches import as_mask
from planners.core.policy import Mask
from planners.reduced.ignored_rewards import IgnoredRewards
from wrappers.fitting.history import Record
from wrappers.fitting.session import Session
from wrappers.learners.base import MaskLearner


@dataclass(kw_only=True)
class GreedyMaskLearner(MaskLearner):
    """*Mask-Learning-Greedy*: add a variable at random while J increases.

    The mask of a trial is the last one for which J increased. As in the paper every estimate of J
    has rollouts of its own, unless ``paired``; and the result is the mode over the trials (the
    first of those that are as frequent). A mask whose plan ran out of time does not end a trial:
    whether J increases is not known.

    Args:
        initial_mask: where each trial starts: names, patterns, indices or booleans. A good guess is
            what the paper calls "Greedy + heuristics".
        trials: how many times to try; the paper's small experiment has 10.
        paired: compare masks on the same trajectories.
    """

    ignored_rewards: IgnoredRewards = "zero"
    initial_mask: Sequence[str | int | bool] = ()
    trials: int = 1
    paired: bool = False

    constraints: ClassVar[Constraints] = {
        "trials": whole(1, 1_000_000),  # all are kept in the history
        "paired": check_flag,
    }

    def _steps(self, session: Session) -> Iterator[Record]:
        study = session.study
        initial = as_mask(study.mdp, self.initial_mask)
        objective = partial(session.objective, independent=not self.paired)
        found: Counter[Mask] = Counter()
        for trial in range(self.trials):
            rng = study.rng("greedy", trial)
            mask, best = initial, objective(initial)
            yield session.record(
                "start",
                initial,
                reason=f"trial {trial + 1}: J of {len(initial)} variables",
                mask=_mode(found) if trial else initial,
                objective=best,
            )
            rest = [name for name in study.mdp.exogenous_names if name not in mask]
            for name in rng.permutation(rest).tolist():
                tried, before = session.in_order((*mask, name)), best
                worth = objective(tried)
                accepted = worth.value > before.value
                if accepted:
                    mask, best = tried, worth
                yield session.record(
                    "add",
                    (name,),
                    accepted=accepted,
                    reason=f"trial {trial + 1}: J {'rose' if accepted else 'did not rise'}",
                    mask=_mode(found) if trial else mask,
                    objective=worth,
                    gain=worth.gain_over(before),
                )
                if not accepted and not worth.plan.out_of_time:
                    break
            found[mask] += 1
            yield session.record(
                "try",
                mask,
                accepted=_mode(found) == mask,
                reason=f"trial {trial + 1} ended with {len(mask)} variables",
                mask=_mode(found),
            )


def _mode(found: Counter[Mask]) -> Mask:
    return found.most_common(1)[0][0]
