"""Certificates of masks of all kinds."""

from __future__ import annotations

import dataclasses
from typing import Any

from exo_envs.domains.synthetic import SyntheticMDP
from reliability import subjects
from reliability.entries.learners import odd_mask, spend
from reliability.odd import Odd
from reliability.registry import entry
from reliability.user_models import Ferry, Market
from wrappers import Certificate, Study, certify
from wrappers.reports.certificate import Check


@entry("certificates/arguments", limit=60.0)
def arguments(odd: Odd) -> None:
    """Odd masks and arguments; what comes out is read."""
    if odd.number % 50 == 0:  # now and then, as it takes a while
        known = odd.must_work(certify, Ferry(), ("wind",), rng=0, n_samples=30)
        odd.must_work(lambda: known.cost_of_ignoring)
    models = (Market(), Ferry(), subjects.model("tabulated"), subjects.model("factored"))
    mdp = odd.pick((*models, SyntheticMDP(), subjects.model("battery")))
    given: dict[str, Any] = {"rng": odd.sound_or(0, 0.8), "n_samples": 30}
    if odd.chance(0.5):
        names = ("level", "power", "n_samples", "exact", "rng")
        given[odd.pick(names)] = spend(odd.anything())
    sound = odd.chance(0.5)
    mask = mdp.exogenous_names[:1] if sound else odd_mask(odd, mdp.exogenous_names)
    study = odd.chance(0.3)
    certificate: Certificate = odd.call(certify, Study(mdp, 0) if study else mdp, mask, **given)
    odd.must_work(lambda: (certificate.holds, certificate.violations, certificate.detectable))
    odd.must_work(lambda: (str(certificate), certificate.to_markdown(), certificate.to_pandas()))
    odd.must_work(certificate.to_html)
    for check in certificate.checks[:3]:
        again: Check = odd.must_work(Check, **dataclasses.asdict(check))
        odd.must_work(getattr, again, "reason")
    names = ("mask", "ignored", "checks", "level", "power")
    odd.must_work(Certificate, *(getattr(certificate, name) for name in names), lambda: None)


@entry("certificates/tables", weight=0.3)
def tables(odd: Odd) -> None:
    """Tables that models give of themselves."""
    mdp: Any = odd.pick((SyntheticMDP(), subjects.model("factored")))
    odd.must_work(mdp.exogenous_table, mdp.exogenous_names[0])
    odd.call(mdp.exogenous_table, odd.anything())
