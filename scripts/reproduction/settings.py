"""The numbers of the experiments: the paper's (section 6) where it gives them, ours elsewhere."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

GRID, FACTORY, CROWD = "ExoGrid-v0", "ExoFactory-v0", "ExoCrowd-v0"

EXPERIMENTS = ("small", "large", "goals", "readings")

#: Trials of a method that a run may have: there are 56 of them in "small" alone.
MOST_TRIALS = 10_000

#: How the methods are called in tables, in the order in which they are shown.
METHODS = MappingProxyType(
    {
        "brute force": "Brute force",
        "greedy": "Greedy",
        "greedy + heuristics": "Greedy + heuristics",
        "first phase": "First phase",
        "paper": "Full, the paper's rule",
        "ours": "Full, ours",
        "curve": "Growing masks",
        "joint": "The paper's rule with joint transition models",
        "joint, biased": "The paper's rule with joint models and scores that are not corrected",
        "biased": "The paper's rule with scores that are not corrected",
        "unpaired": "The paper's rule with trajectories of its own for each mask",
        "impatient": "The paper's rule with a patience of 1",
        "narrow": "The paper's rule with all four",
    }
)

#: Other readings of the paper's rule: what CorrelationalMaskLearner is given besides.
READINGS = MappingProxyType[str, dict[str, Any]](
    {
        "joint": {"transition_model": "joint"},
        "joint, biased": {"transition_model": "joint", "bias_corrected": False},
        "biased": {"bias_corrected": False},
        "unpaired": {"paired": False},
        "impatient": {"patience": 1},
        "narrow": {
            "transition_model": "joint",
            "bias_corrected": False,
            "paired": False,
            "patience": 1,
        },
    }
)

#: Seconds that a trial may take: what starts first, and a first guess of the time that is left.
EXPECTED_SECONDS = {
    (GRID, "brute force"): 2.0,
    (GRID, "greedy"): 0.7,
    (GRID, "paper"): 0.3,
    (GRID, "ours"): 0.3,
    (FACTORY, "greedy"): 0.5,
    (FACTORY, "first phase"): 0.5,
    (FACTORY, "paper"): 4.0,
    (FACTORY, "ours"): 3.0,
    (CROWD, "greedy + heuristics"): 10.0,
    (CROWD, "first phase"): 8.0,
    (CROWD, "paper"): 20.0,
    (CROWD, "ours"): 11.0,
    (CROWD, "curve"): 40.0,
    **{(domain, reading): 15.0 for domain in (FACTORY, CROWD) for reading in READINGS},
}


@dataclass(frozen=True)
class Published:
    """What the paper's table (section 6.2) says."""

    mean_return: float
    seconds: float | None = None


#: The paper's table, by domain and method; its full algorithm stands beside both of our rules.
PAPER = MappingProxyType(
    {
        (FACTORY, "greedy"): Published(0, 13.4),
        (FACTORY, "first phase"): Published(186),
        (FACTORY, "paper"): Published(226, 53.8),
        (FACTORY, "ours"): Published(226, 53.8),
        (CROWD, "greedy + heuristics"): Published(188, 43.7),
        (CROWD, "first phase"): Published(260),
        (CROWD, "paper"): Published(545, 123.5),
        (CROWD, "ours"): Published(545, 123.5),
    }
)


@dataclass(frozen=True)
class Settings:
    """Everything that the results depend on, apart from the code.

    Attributes:
        trials: of each method, each with a seed of its own (paper: 50).
        seed: what the trials' seeds are derived from.
        n_rollouts: episodes for each estimate of J (paper: 500).
        n_data_rollouts: rollouts that models are estimated from; None is the learners' default.
        n1: *Estimate-Reward-Variables*: samples of everything but one variable (paper: 250).
        n2: settings of that variable in each (paper: 5).
        tau_variance: threshold of the first phase (paper: 0).
        tau_correl: threshold of the second phase (paper: 1e-5).
        planning_time_limit: for one plan, in seconds (paper: 60).
        greedy_trials: Greedy on the small domain is the mode over so many (paper: 10).
        small_cost_weights: the range of lambda on the small domain.
        cost_weights: lambda on the large domains.
        sampling: of the first phase, on the large domains; on the small one it is uniform.
        goal_trials: of the comparison of goals (section 6.3), at most ``trials``.
        reading_trials: of other readings of the paper's rule, at most ``trials``.
        curve_patience: how many variables the Crowd curve goes on without J increasing.
    """

    trials: int = 50
    seed: int = 0
    n_rollouts: int = 500
    n_data_rollouts: int | None = None
    n1: int = 250
    n2: int = 5
    tau_variance: float = 0.0
    tau_correl: float = 1e-5
    planning_time_limit: float = 60.0
    greedy_trials: int = 10
    small_cost_weights: tuple[float, ...] = (
        *(0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0),
        *(20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0),
    )
    cost_weights: dict[str, float] = field(default_factory=lambda: {FACTORY: 1.0, CROWD: 3.0})
    sampling: dict[str, str] = field(default_factory=lambda: {FACTORY: "visited", CROWD: "visited"})
    goal_trials: int = 20
    reading_trials: int = 10
    curve_patience: int = 10

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        names = ("trials", "goal_trials", "reading_trials", "greedy_trials", "curve_patience")
        for name in names:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is a positive number, not {getattr(self, name)!r}")
        if self.trials > MOST_TRIALS:
            raise ValueError(f"trials are at most {MOST_TRIALS:,}, not {self.trials:,}")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed is a whole number from 0 to 2 ** 63 - 1, not {self.seed!r}")

    def quick(self) -> Settings:
        """All of it, small enough for a test."""
        return replace(
            self,
            n_rollouts=50,
            n_data_rollouts=100,
            small_cost_weights=(0.5, 5.0, 20.0, 50.0),
            goal_trials=1,
            reading_trials=1,
            curve_patience=3,
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def describe_quick(parameters: dict[str, Any]) -> str:
    """What a reader must know of figures that fewer rollouts than the paper's made; or nothing."""
    rollouts = parameters.get("n_rollouts", Settings.n_rollouts)
    if rollouts >= Settings.n_rollouts:
        return ""
    return (
        f"A smoke test, not results: it was made with --quick or other small settings "
        f"({rollouts} rollouts for each estimate of J instead of {Settings.n_rollouts})."
    )
