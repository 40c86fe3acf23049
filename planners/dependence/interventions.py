"""Which variables x_j act on, found by changing it.

The model can be asked about any x. So take states that occur, change x_j alone, and see which x'_i
change. Unlike information this finds variables that act only together with others (XOR), one at a
time. It says what may matter; whether it does in the data is for a test to decide.

Both x' are drawn with *common random numbers*, the same seed for the changed states and for the
unchanged: then a difference is an effect. That needs a model that draws the same amount of noise
whatever the state, as batched models do. States that were left alone show whether it does; if it
does not, distributions are compared instead. Of very many variables, whole groups are changed at
first, and groups of other variables next: what acts on a target is in those that do each time.

Tests and plans see a variable of very many values in bins (:mod:`planners.discretization.coarse`).
That is as good as seeing values if what it does changes from bin to bin, and of no use if it
changes within them, as with a price of which only the last digit matters. So the model is asked
about values of the same bin and about values of other bins, too (:func:`hidden_in_bins`).

Where x was recorded (``mdp.is_recorded``) nobody can change it, and nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.checked_mdp import checked
from exo_envs.core.arguments import as_positions
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State
from exo_envs.core.statistics import g_test
from planners.core.memory import MORE_BYTES, Memory, Shelf, every_variable
from planners.dependence.contingency import Rows, count_table
from planners.discretization.bins import NUM_STAND_INS, Bins
from planners.discretization.coarse import CoarseMDP, coarsened
from planners.samples.rollouts import ExogenousData

#: States in which a variable is changed.
NUM_CHANGED = 128
#: States, in the same call of the model, that are left alone.
NUM_UNCHANGED = 32
#: States in which a variable is given the value that it has in another state, and how many of
#: these values have to be other ones.
NUM_SWAPPED, MIN_SWAPPED = 512, 16
#: Without common random numbers: states in which a variable is changed, and draws from each.
NUM_STATES, NUM_DRAWS = 16, 32
#: Without common random numbers: the level of the test, as a logarithm.
LOG_LEVEL = np.log(1e-4)
#: Variables that are changed one at a time at most; of more, many are changed at once.
MAX_ONE_BY_ONE = 1_000
#: Variables that are changed at once then, and how often all variables are put in groups anew.
GROUP_SIZE, NUM_GROUPINGS = 32, 3
#: States in which a target has to change with a group, of NUM_CHANGED.
MIN_CHANGED = 2

#: States in which a variable is changed, within its bin and beyond.
NUM_WITHIN = 256
#: Effects in fewer states than this share are not looked at.
RARE_SHARE = 0.05

#: number of states -> that many x from the rollouts, and the x' that follow them.
BASE_STATES = Shelf[int, tuple[IntArray, IntArray]]("base_states", MORE_BYTES, about=every_variable)
#: j -> how much a change of x_j changes each variable, (m,).
INFLUENCE = Shelf[int, FloatArray]("influence", MORE_BYTES, about=every_variable)
#: k -> the k-th groups of variables, (m,), and which variables each of these acts on.
GROUP_INFLUENCE = Shelf[int, tuple[NDArray[np.int64], NDArray[np.bool_]]](
    "group_influence", MORE_BYTES, about=every_variable
)


def actors_of(
    mdp: ExoMDP,
    data: ExogenousData,
    targets: Sequence[int],
    *,
    memory: Memory | None = None,
    among: Sequence[int] | None = None,
) -> list[dict[int, float]]:
    """The variables that act on each target, with the strength of the effect (0 to 1).

    The strength is the share of the states in which x'_i changed with x_j; without common random
    numbers, the total variation between the distributions of x'_i where it is significant.

    More than ``MAX_ONE_BY_ONE`` variables are first changed in groups, and one by one where a group
    acts on a target. A variable that changes a target in a tenth of the states is overlooked with a
    probability of 4 %, in a fifth of them with 1 in 10,000; variables that act more rarely are
    mostly not found. If the model does not honour common random numbers none of so many are found.

    Args:
        mdp: the model.
        data: rollouts of all its variables, where the states come from.
        targets: positions of the targets in the data.
        memory: of these rollouts, to share with other masks; by default a new one.
        among: positions of the variables that may act; by default all.
    """
    mdp, memory = checked(mdp), Memory() if memory is None else memory
    targets = as_positions("targets", targets, len(data.names)).tolist()
    if mdp.is_recorded:
        return [{} for _ in targets]
    changed = as_positions("among", among, len(data.names))
    coarse = coarsened(mdp, data.bins)
    memory.bind(data=data)

    def influence_of(j: int) -> FloatArray:
        if (found := memory.find(INFLUENCE, j)) is None:
            found = memory.keep(INFLUENCE, j, _influence(coarse, data, j, memory))
        return found

    if len(data.names) <= MAX_ONE_BY_ONE:
        effects = np.stack([influence_of(j) for j in changed.tolist()])
        return [
            {int(changed[k]): float(effects[k, i]) for k in np.flatnonzero(effects[:, i])}
            for i in targets
        ]
    base, base_next = _base(coarse, data, memory)
    others = data.sample(NUM_CHANGED, np.random.default_rng([data.seed, len(data.names) + 1]))
    again = np.concatenate([others, base[NUM_CHANGED:]])
    following = coarse.sample_exogenous(again, np.random.default_rng(data.seed))
    if (following != base_next)[NUM_CHANGED:].any():
        return [{} for _ in targets]
    suspected = np.zeros((len(targets), len(data.names)), dtype=np.bool_)
    suspected[:, changed] = True
    for k in range(NUM_GROUPINGS):
        if (grouped := memory.find(GROUP_INFLUENCE, k)) is None:
            grouped = memory.keep(GROUP_INFLUENCE, k, _group_influence(coarse, data, k))
        group, acts = grouped
        suspected &= acts[:, targets][group].T
    found: list[dict[int, float]] = []
    for i, row in zip(targets, suspected, strict=True):
        own = {j: float(influence_of(j)[i]) for j in np.flatnonzero(row).tolist()}
        found.append({j: effect for j, effect in own.items() if effect > 0})
    return found


def _group_influence(
    mdp: ExoMDP, data: ExogenousData, number: int
) -> tuple[NDArray[np.int64], BoolArray]:
    """Which variables change if some of a group are changed, for groups of the variables.

    Every variable of a group is changed in half of the states. So one of two that make up for each
    other, such as parts of a parity, is seen where only one of them is changed.

    Returns:
        The group of each variable, (m,); and whether each group acts on each variable, (groups, m):
        whether this one was another one in MIN_CHANGED states or more.
    """
    width = len(data.names)
    rng = np.random.default_rng([data.seed, width + 2 + number])
    order = rng.permutation(width)
    group = np.empty(width, dtype=np.int64)
    group[order] = np.arange(width) // GROUP_SIZE
    x = data.sample(NUM_CHANGED, rng)
    before = mdp.sample_exogenous(x, np.random.default_rng(data.seed))
    acts = np.zeros((-(-width // GROUP_SIZE), width), dtype=np.bool_)
    for k in range(len(acts)):
        own = order[k * GROUP_SIZE : (k + 1) * GROUP_SIZE]
        kept, sizes = x[:, own], data.sizes[own]
        other = (kept + 1 + (rng.random(kept.shape) * (sizes - 1)).astype(np.int64)) % sizes
        x[:, own] = np.where(rng.random(kept.shape) < 0.5, other, kept)
        after = mdp.sample_exogenous(x, np.random.default_rng(data.seed))
        acts[k] = np.count_nonzero(after != before, axis=0) >= MIN_CHANGED
        x[:, own] = kept
    return group, acts


def influence_given(mdp: ExoMDP, data: ExogenousData, cause: int, target: int, rows: Rows) -> float:
    """How often x'_i changes with x_j, if x_j changes to what it is in a state of the same row.

    Unlike :func:`actors_of`, this changes x_j only to values that occur together with what the rows
    are made of. If there are hardly any, without common random numbers, or if x was recorded,
    nothing can be said, and the share is 0.

    Args:
        mdp: the model.
        data: rollouts of all its variables.
        cause: j, by its position in the data.
        target: i, likewise.
        rows: the transitions that are not held out, by the joint value of some variables.
    """
    if mdp.is_recorded:
        return 0.0
    mdp = coarsened(mdp, data.bins)
    rng = np.random.default_rng([data.seed, cause, target])
    order, starts = rows.grouped
    sample = rng.integers(len(rows.row), size=NUM_SWAPPED + NUM_UNCHANGED)
    row = rows.row[sample]
    mate = order[starts[row] + (rng.random(len(sample)) * np.diff(starts)[row]).astype(np.int64)]

    def states(samples: IntArray) -> IntArray:
        rollout, step = np.divmod(samples, data.num_steps)
        return data.values[data.fitted[rollout], step].astype(np.int64)

    x, y = states(sample), states(sample)
    y[:NUM_SWAPPED, cause] = states(mate)[:NUM_SWAPPED, cause]
    before, after = (mdp.sample_exogenous(z, np.random.default_rng(data.seed)) for z in (x, y))
    changed = np.flatnonzero(x[:, cause] != y[:, cause])
    if (before != after)[NUM_SWAPPED:].any() or len(changed) < MIN_SWAPPED:
        return 0.0
    return float((before != after)[changed, target].mean())


def _influence(mdp: ExoMDP, data: ExogenousData, j: int, memory: Memory) -> FloatArray:
    if data.sizes[j] < 2:
        return np.zeros(len(data.names))
    base, base_next = _base(mdp, data, memory)
    rng = np.random.default_rng([data.seed, j])
    changed = np.concatenate([_change(data, base[:NUM_CHANGED], j, rng), base[NUM_CHANGED:]])
    differs = mdp.sample_exogenous(changed, np.random.default_rng(data.seed)) != base_next
    if differs[NUM_CHANGED:].any():
        return _compare_distributions(mdp, data, j, base, rng)
    return differs[:NUM_CHANGED].mean(axis=0)


def _base(mdp: ExoMDP, data: ExogenousData, memory: Memory) -> tuple[IntArray, IntArray]:
    """States that occur, and what follows them under the seed of the data."""
    number = NUM_CHANGED + NUM_UNCHANGED
    if (found := memory.find(BASE_STATES, number)) is None:
        rng = np.random.default_rng([data.seed, len(data.names)])  # no variable has that number
        base = data.sample(number, rng)
        following = mdp.sample_exogenous(base, np.random.default_rng(data.seed))
        found = memory.keep(BASE_STATES, number, (base, following))
    return found


def _change(data: ExogenousData, x: IntArray, j: int, rng: np.random.Generator) -> IntArray:
    """The same states with other values of x_j, each as likely."""
    changed = x.copy()
    changed[:, j] = (x[:, j] + rng.integers(1, data.sizes[j], size=len(x))) % data.sizes[j]
    return changed


def _compare_distributions(
    mdp: ExoMDP, data: ExogenousData, j: int, base: IntArray, rng: np.random.Generator
) -> FloatArray:
    """The same by many draws from each of a few states: a G-test for each x'_i."""
    states = base[:NUM_STATES]
    x = np.repeat(np.concatenate([states, _change(data, states, j, rng)]), NUM_DRAWS, axis=0)
    following = mdp.sample_exogenous(x, rng)
    row = np.repeat(np.arange(2 * NUM_STATES), NUM_DRAWS)
    effect = np.zeros(len(data.names))
    for i, size in enumerate(data.sizes):
        counts = count_table(row, 2 * NUM_STATES, following[:, i], int(size))
        first, second = counts.reshape(2, NUM_STATES, -1)
        if g_test(first, second).log_p < LOG_LEVEL:
            effect[i] = np.abs(first - second).sum(axis=-1).mean() / (2 * NUM_DRAWS)
    return effect


def hidden_in_bins(
    mdp: ExoMDP, data: ExogenousData, name: str, targets: Sequence[str], endogenous: IntArray
) -> float:
    """How much of what a variable does happens within its bins: about 0 if nothing, 1 if all.

    It is the largest ratio of two effects, that of another value in the same bin and that of
    another bin, on x' of the targets, on n', and on what the variable pays, by itself or together
    with others. An effect is the share of states in which something changes; of numbers and bins,
    the mean square of the change. Without common random numbers nothing can be said, and it is 0;
    if x was recorded, nothing can be said about x'.

    Args:
        mdp: the model, of values.
        data: rollouts of all its variables.
        name: the variable, one of those in bins.
        targets: the variables whose x' matters.
        endogenous: the n to ask about, shape (S, k).
    """
    coarse = CoarseMDP(mdp, data.bins)
    in_bins = [own.name for own in data.bins if isinstance(own, Bins)]  # the others are grids of n
    j, k = data.names.index(name), in_bins.index(name)
    rng = np.random.default_rng([data.seed, j])
    number = NUM_WITHIN + NUM_UNCHANGED
    x, changed = data.sample(number, rng), np.arange(number) < NUM_WITHIN
    chosen = rng.integers(NUM_STAND_INS, size=(number, len(in_bins)))
    other = chosen.copy()
    other[changed, k] = (
        chosen[changed, k] + rng.integers(1, NUM_STAND_INS, size=NUM_WITHIN)
    ) % NUM_STAND_INS
    elsewhere = x.copy()
    elsewhere[changed, j] = data.sample(number, rng)[changed, j]
    values = [coarse.values(*asked) for asked in ((x, chosen), (x, other), (elsewhere, chosen))]
    n = coarse.at_points(endogenous[rng.integers(len(endogenous), size=number)])
    action = rng.integers(mdp.num_actions, size=number)
    targets = () if mdp.is_recorded else tuple(targets)
    columns = data.positions(targets)
    endogenous_names = [variable.name for variable in mdp.endogenous_variables]
    own_terms = [k for k, scope in enumerate(mdp.scope_indices) if j in scope]

    def answers(exogenous: IntArray) -> tuple[IntArray, FloatArray]:
        """What follows, (states, variables), and what is paid, (states,)."""
        state, noise = State(n, exogenous), np.random.default_rng(data.seed)
        following = exogenous if mdp.is_recorded else mdp.sample_exogenous(exogenous, noise)
        after = coarse.in_bins(following)[:, columns]
        moved = coarse.on_grid(mdp.sample_endogenous(state, action, noise), noise)
        paid = mdp.reward_terms(state, action)[:, own_terms].sum(axis=1)
        return np.concatenate([after, moved], axis=1), paid

    (here, paid), *rest = map(answers, values)
    if any((there[~changed] != here[~changed]).any() for there, _ in rest):
        return 0.0
    binned = {own.name for own in data.bins}
    ranked = np.array([own in binned for own in (*targets, *endogenous_names)], dtype=np.bool_)
    within, beyond = (_effects(here, there, ranked) for there, _ in rest)
    within_pay, beyond_pay = (((pays - paid) ** 2).mean() for _, pays in rest)
    ratios = within[beyond > RARE_SHARE] / beyond[beyond > RARE_SHARE]
    hidden = float(ratios.max(initial=0.0))
    return max(hidden, float(within_pay / beyond_pay)) if beyond_pay > 0 else hidden


def _effects(here: IntArray, there: IntArray, ranked: BoolArray) -> FloatArray:
    """How much each of some variables (last axis) changes; ranked ones have an order."""
    squared = ((there - here).astype(np.float64) ** 2).mean(axis=0)
    return np.asarray(np.where(ranked, squared, (there != here).mean(axis=0)))
