"""A reproduction of section 6.1 that is small enough for a test."""

from reproduction import runner
from reproduction.settings import Settings

TINY = Settings(
    trials=3,
    n_rollouts=20,
    n_data_rollouts=60,
    n1=50,
    greedy_trials=2,
    small_cost_weights=(1.0, 20.0),
)


def run(folder, settings=TINY, *, jobs=1, **options):
    told = []
    runner.run(settings, ["small"], folder, jobs=jobs, hidden=True, tell=told.append, **options)
    return told
