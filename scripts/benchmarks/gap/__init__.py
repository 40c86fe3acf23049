"""`python scripts/benchmark.py gap`: what masks are worth, and what anybody could earn.

masks: what policies earn, in each domain, and what no policy can exceed · rivals: other ways to
plan with the same variables (``hindsight`` is one of them) · chains: whether larger masks earn
less · weights: ExoGrid at every λ · small: the bound where the best value is
known. ``domains`` has what is shared by all, ``tables`` how results are shown.
"""

from benchmarks.gap.command import add_command

__all__ = ["add_command"]
