"""More than 200 bugs that users' models have, made of two models that are right.

A bug is *named* if ``fit`` ends in a ValueError or TypeError whose message has the method or the
attribute, and the variable where there is one. An exception of the user's own comes out unchanged.
"""

from reliability.bugs.answers import ANSWERS
from reliability.bugs.bug import Bug, missed
from reliability.bugs.habits import HABITS
from reliability.bugs.rewards import REWARDS

BUGS: tuple[Bug, ...] = (*ANSWERS, *REWARDS, *HABITS)
KINDS = tuple(dict.fromkeys(bug.kind for bug in BUGS))

__all__ = ["BUGS", "KINDS", "Bug", "missed"]
