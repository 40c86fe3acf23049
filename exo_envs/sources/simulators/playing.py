"""An adapted environment as it is played: episodes of the environment itself, and single steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from exo_envs.core.arguments import check_function, check_horizon, check_lanes, check_whole
from exo_envs.core.batches import as_batch
from exo_envs.core.ends import EndCarryingMDP
from exo_envs.core.mdp import BoolArray, FloatArray, IntArray, State
from exo_envs.core.original import WatchStep
from exo_envs.sources.simulators.episodes import NUM_SEEDS, Episodes, play
from exo_envs.sources.simulators.foreign import Env, ForeignEnv, Rows
from exo_envs.sources.simulators.payment import Payment
from exo_envs.sources.simulators.played import check_played, find_differences

#: The share of actions that are taken at random where a policy leads the way.
EXPLORED = 0.1


class PlayableMDP(EndCarryingMDP):
    """A model of an environment that can be put into states, and that can be played itself.

    It is an :class:`exo_envs.core.original.HasOriginal`.

    Attributes:
        env: the environment.
        foreign: the environment as something to be put into states.
        payment: its rewards.
        reward_samples: the number of seeds a reward is averaged over.
        reference: the pair (n, x) that x' and the reward terms are relative to, without ``done``.
        reference_action: the action with which x' is drawn.
        differences: whether to "refuse" or to "warn" if its episodes are not what the model says.
        is_played_as_claimed: whether that was looked at.
    """

    env: Env
    foreign: ForeignEnv
    payment: Payment
    reward_samples: int
    reference: State
    reference_action: int
    differences: str
    is_played_as_claimed: bool

    @property
    def tick(self) -> Callable[[], object] | None:
        """Is called before every step of the environment if it is set: what it raises ends all."""
        return self.foreign.tick

    @tick.setter
    def tick(self, tick: Callable[[], object] | None) -> None:
        self.foreign.tick = tick

    # --- single steps -----------------------------------------------------------------------

    def observed_step(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> tuple[State, FloatArray]:
        """One step of the environment itself from each state: s' and the reward.

        Here n' and x' come from one step, with the reward that it paid: the truth that the
        factored model claims to equal. States that are ``done`` stay and pay nothing. After the
        end of an episode, a variable whose value is out of range stays as it was.
        """
        batch, rows, alive, actions = self._flatten(state, action)
        seeds = draw_seeds(rng, len(rows))
        done, reward = ~alive, np.zeros(len(rows))
        steps = self.foreign.step(rows[alive], actions[alive], seeds[alive])
        nowhere = self.foreign.out_of_range(steps.following)
        rows[alive] = np.where(nowhere, rows[alive], steps.following)
        done[alive] = steps.terminated
        reward[alive] = steps.reward
        return self.as_state(rows, done, batch), reward.reshape(batch)

    def sample_outcome(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> tuple[IntArray, FloatArray]:
        """The n' (and ``done``) of one step of the environment, and the reward that it paid.

        That is how a policy is played in the model: noise in the reward is drawn anew in each
        step, so nobody can count on it, and one step is asked for instead of many.
        """
        following, reward = self.observed_step(state, action, rng)
        return following.endogenous, reward

    # --- episodes ---------------------------------------------------------------------------

    def play(
        self, policy: Callable[[State], Any], episodes: int = 100, seed: int = 0
    ) -> FloatArray:
        """Discounted returns of episodes of the environment itself, shape (episodes,).

        Nothing of the model is asked: the environment is reset and stepped, and the policy acts
        on what its observations show (:meth:`state_of`). Episodes end when the environment says
        so, or at the model's horizon. :func:`planners.evaluate` does this for such a model.

        Args:
            policy: maps a :class:`State` to an action; a :class:`planners.Policy`, say.
            episodes: how many.
            seed: of the resets.
        """
        return np.array(list(self.play_episodes(policy, episodes, seed)), dtype=np.float64)

    def play_episodes(
        self,
        policy: Callable[[State], Any],
        episodes: int,
        seed: int,
        *,
        horizon: int | None = None,
        watch: WatchStep | None = None,
    ) -> Iterator[float]:
        """The same, one episode after another.

        Args:
            policy: maps a :class:`State` to an action.
            episodes: how many.
            seed: of the resets.
            horizon: the length of an episode; by default the model's.
            watch: is shown every step: its number in the episode, the state and the action.
        """
        check_function("policy", policy)
        check_function("watch", watch, optional=True)
        num_variables = len(self.endogenous_sizes) + len(self.exogenous_sizes)
        episodes = check_lanes("episodes", episodes, num_variables, least=1)
        steps = check_horizon("horizon", self.horizon if horizon is None else horizon)
        return play(self, policy, episodes, check_whole("seed", seed, 0), steps, watch)

    def record(
        self, num_steps: int, seed: int = 0, policy: Callable[[State], Any] | None = None
    ) -> Episodes:
        """Steps of the environment itself.

        Args:
            num_steps: how many.
            seed: of the episodes.
            policy: leads the way, with one random action in ten; by default all are random.
        """
        check_function("policy", policy, optional=True)

        def follow(row: Rows, rng: np.random.Generator) -> int:
            if policy is None or rng.random() < EXPLORED:
                return int(rng.integers(self.num_actions))
            state = self.as_state(row[None], np.zeros(1, dtype=np.bool_), ())
            return int(np.asarray(policy(state)).item())

        chosen = None if policy is None else follow
        return Episodes.record(self.foreign, num_steps, seed, self.horizon, chosen)

    def state_of(self, observation: Any, env: Env | None = None) -> State:
        """The state that an observation of the environment shows, for a policy to act on.

        >>> from exo_envs import AdaptedMDP, Variable
        >>> from gymnasium.envs.toy_text.taxi import TaxiEnv
        >>> mdp = AdaptedMDP(
        ...     TaxiEnv(),
        ...     split=lambda s: ((s // 4,), (s % 4,)),
        ...     set_state=lambda taxi, n, x: setattr(taxi, "s", 4 * n[0] + x[0]),
        ...     endogenous_variables=[Variable("place and rider", 125)],
        ...     exogenous_variables=[Variable("destination", 4)],
        ...     horizon=200,
        ... )
        >>> mdp.state_of(41)  # not done
        State(endogenous=array([10,  0]), exogenous=array([1]))

        Args:
            observation: what ``reset`` or ``step`` of the environment, or of another one of its
                kind, showed while the episode goes on.
            env: the environment that showed it, which ``get_state`` reads; by default the one that
                was adapted. Where observations tell the state it is not needed.
        """
        row = self.foreign.in_range(self.foreign.read(observation, env))
        return self.as_state(row[None], np.zeros(1, dtype=np.bool_), ())

    # --- claims -----------------------------------------------------------------------------

    def check_claims(self) -> None:
        """Look, once, whether episodes are what the model says (:func:`check_played`)."""
        check_played(self)

    def why_different(self, policy: Callable[[State], Any]) -> str:
        """In which way the environment is not what the model says, where a policy leads.

        Episodes of random actions need not show it: they may never come so far. Empty if there is
        nothing to be found in a few hundred steps.
        """
        found = next(find_differences(self, policy=policy), None)
        return "" if found is None else f"{found.message} (reason: {found.reason})"

    # --- rows -------------------------------------------------------------------------------

    def _flatten(
        self, state: State, action: IntArray
    ) -> tuple[tuple[int, ...], Rows, BoolArray, IntArray]:
        """The batch, its rows of n (without ``done``) and x, which are alive, and the actions."""
        batch, n, x, actions = as_batch(self, state, action)
        return batch, np.concatenate([n[:, :-1], x], axis=1), n[:, -1] == 0, actions

    def as_state(self, rows: Rows, done: BoolArray, batch: tuple[int, ...]) -> State:
        """The states of rows (B, k + m) of n and x."""
        n, x = self.foreign.split_row(rows)
        n = self._with_end(n, done)
        return State(n.reshape(*batch, n.shape[1]), x.reshape(*batch, x.shape[1]))


def draw_seeds(rng: np.random.Generator, size: int) -> IntArray:
    """Seeds that every environment takes."""
    return rng.integers(NUM_SEEDS, size=size)
