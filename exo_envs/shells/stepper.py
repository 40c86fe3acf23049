"""A whole step of a batch in one compiled call, for the models of the suite.

A step is made of five methods of a model, each of which looks at its arguments, allocates what it
returns, and has that checked. For a few lanes this takes longer than the step itself. A model whose
values are in range by construction may offer all of it as one kernel. What comes out is the same,
byte for byte: ``tests/exo_envs/test_compiled_step.py`` compares the two. (Three terms that pay in
one lane may be added in another order.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.answers import EPISODE
from exo_envs.core.errors import ArgumentError
from exo_envs.core.kernels import MANY_VALUES, CompiledStep, Noise, drawing_in_parts
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, State, is_as_new

#: Values of x that are stepped in the time that another thread takes to wake up.
VALUES_AHEAD = 80_000


class CompiledStepper:
    """Steps batches of ``num_lanes`` states of a model by its compiled step.

    Large arrays that are allocated anew in each step cost more than the step: the system hands out
    their memory page by page. So the next state is written to the arrays of the one before.
    """

    def __init__(self, mdp: ExoMDP, step: CompiledStep, num_lanes: int) -> None:
        self._mdp, self._step, self._num_lanes = mdp, step, num_lanes
        self._noise = tuple(np.empty((num_lanes, number)) for number in step.uniforms)
        self._spare: State | None = None

    @classmethod
    def of(cls, mdp: ExoMDP, num_lanes: int) -> CompiledStepper | None:
        """What steps so many lanes of a model, or None if it has no compiled step.

        A class that changes how its parent moves or pays has another step: the parent's counts only
        if no method that it follows from was written later.
        """
        known = is_as_new(mdp, "compiled_step", ("sample_initial", *EPISODE))
        step = mdp.compiled_step() if known else None
        return None if step is None else cls(mdp, step, num_lanes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles have arrays of their own, and find the kernel where it is now."""
        return CompiledStepper.of, (self._mdp, self._num_lanes)

    def step(
        self, state: State, actions: NDArray[np.int64], noise: Noise
    ) -> tuple[State, State, FloatArray, BoolArray]:
        """One step, as :meth:`ExoMDP.transition` makes it.

        Args:
            state: states that are in range, (B, k) and (B, m). Their arrays are the stepper's from
                now on; they are written to in the step after this one.
            actions: (B,), in range; they belong to the caller.
            noise: where the random numbers come from.

        Returns:
            The next states; the same in arrays for the caller; the rewards, (B,); and which lanes
            are over, (B,).

        """
        n, x = state
        following = self._spare
        if following is None or following is state:  # the step from it was interrupted
            following = State(*map(np.empty_like, state))
        rewards = np.empty(self._num_lanes)
        terminal = np.empty(self._num_lanes, dtype=np.bool_)
        for_n, for_x = self._noise
        if for_n.size:
            noise.endogenous.random(out=for_n)
        given = (n, x, actions, for_n, for_x, *following, rewards, terminal, *self._step.arguments)
        if x.size < MANY_VALUES:
            noise.exogenous.random(out=for_x)
            in_range = self._step.kernel(0, self._num_lanes, *given)
            shown = following.exogenous.copy()
        else:
            shown = np.empty_like(x)
            in_range = self._step_in_threads(noise.exogenous, given, following.exogenous, shown)
        if not in_range:
            raise ArgumentError("a state of the environment is out of range: it was written to")
        self._spare = state
        return following, State(following.endogenous.copy(), shown), rewards, terminal

    def _step_in_threads(
        self,
        rng: np.random.Generator,
        given: tuple[Any, ...],
        x: NDArray[Any],
        shown: NDArray[Any],
    ) -> bool:
        """Draw the noise of x', call the kernel, and copy the new x.

        One thread does all three for its lanes: what it needs is then in the cache of its core.
        """
        from exo_envs.compiled.threads import in_parts

        draw = drawing_in_parts(rng, self._noise[1])

        def part(first: int, last: int) -> bool:
            draw(first, last)
            in_range = self._step.kernel(first, last, *given)
            shown[first:last] = x[first:last]
            return in_range

        return all(in_parts(part, self._num_lanes, ahead=VALUES_AHEAD // x.shape[1]))
