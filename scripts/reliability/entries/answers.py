"""What a fitted learner is asked about its choice: explanations and price curves."""

from __future__ import annotations

from matplotlib.figure import Figure

from reliability import subjects
from reliability.entries.users import LEARNERS
from reliability.odd import Odd
from reliability.registry import entry
from reliability.user_models import Market
from wrappers import CalibratedMaskLearner, Explanation, MaskPath
from wrappers.reports.explanation import ExplainedVariable
from wrappers.reports.path import PathPoint


@entry("learners/explanation", weight=0.5, limit=60.0)
def explanation(odd: Odd) -> None:
    """Why variables were kept or dropped, in all forms, before a fit and after."""
    kind = odd.below(4)
    if kind == 0:
        odd.must_fail(odd.pick(LEARNERS)(**subjects.TINY).explain)
        return
    learner = subjects.learner()
    if kind == 1:
        learner = CalibratedMaskLearner(**subjects.TINY, cost_weight=0.5).fit(Market(), rng=1)
        odd.call(learner.explain, try_alone=odd.sound_or(True))
    found: Explanation = odd.must_work(learner.explain)
    row: ExplainedVariable = odd.pick(found.rows)
    odd.must_work(lambda: (str(found), len(found), list(found), found.kept, found.dropped))
    odd.must_work(lambda: (row.in_words(row.effect), row.in_words(None), str(row)))
    odd.must_work(lambda: (found.to_pandas(), found.to_html()))
    odd.must_work(lambda: [record.worth(0.5) for record in learner.history_[:2]])
    odd.call(found.to_markdown, sentences=odd.sound_or(True))
    odd.call(found.__getitem__, odd.sound_or(row.variable))
    odd.call(found.plot, odd.pick((Figure().add_subplot(), odd.text(), 3, [])))


@entry("learners/path", weight=0.5, limit=60.0)
def path(odd: Odd) -> None:
    """The price curve with odd prices and sizes, in all forms."""
    learner = subjects.learner()
    kind = odd.below(4)
    if kind == 0:
        odd.must_fail(odd.pick(LEARNERS)(**subjects.TINY).path)
        return
    weights = odd.pick((None, [1.0], (0, 0.5, 2), [odd.number_()], odd.anything()))
    odd.call(learner.path, weights, odd.sound_or(odd.pick((None, 0, 1, 2))))
    found: MaskPath = odd.must_work(learner.path)
    point: PathPoint = found[0]
    odd.must_work(lambda: (str(found), len(found), list(found), point.size, point.value))
    odd.must_work(lambda: (found.to_pandas(), found.to_markdown(), found.to_html()))
    odd.call(found.at, odd.sound_or(1.0))
    odd.call(point.value_at, odd.sound_or(1.0))
    odd.call(found.plot, odd.pick((Figure().add_subplot(), odd.text(), 3, [])))
