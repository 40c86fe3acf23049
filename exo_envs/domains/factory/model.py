"""The model of ExoFactory: the paper's Factory (section 6.2), a stream of tasks for a robot."""

from __future__ import annotations

import numpy as np

from exo_envs.core.batches import as_size
from exo_envs.core.kernels import CompiledStep, LazyModule
from exo_envs.core.mdp import State, Variable
from exo_envs.domains.factory.parameters import NUM_STATIONS, WORK, FactoryParameters, World
from exo_envs.domains.floor import Floor, FloorMDP


class FactoryMDP(FloorMDP):
    """A robot works where the live order wants it, if the machine there is up.

    See :class:`exo_envs.domains.factory.FactoryEnv` for the domain.

    **Why the clock never stalls at its last value.** The robot's flag ``fulfilled`` must be
    cleared exactly when the belt moves. But n' is drawn from P(n' | n, a, x): it sees neither x'
    nor the noise that made it, so whether the belt moves in a step must follow from x alone. It
    does: the clock counts down ``clock_size - 1 ... 0``, stalls may happen at every value but 0,
    and at 0 the belt moves for certain. So ``clock == 0`` reads "the belt moves in this step", to
    the belt (orders move up, the clock starts again) as well as to the robot (the flag is
    cleared). All the randomness of how long an order stays live is spent before the clock reaches
    0: an order is live for 1 + 4 / 0.9 = 5.4 steps on average. A stall at 0 would put the move
    into the noise, and clearing the flag a step later, when the clock shows its first value,
    would forget what was done in that step and, in a stall, clear it again.

    Whoever works while the clock shows 0 is paid for the order that leaves; the flag of the next
    order starts clear.

    Attributes:
        parameters: the numbers.
        floor: the cells that the robot walks on.
        station_cells: the cell of each station, shape (5,).
        order_slice: where the orders are in x; ``clock_index``, ``machine_slice``,
            ``technician_slice`` and ``noise_slice`` likewise.
    """

    kernels = LazyModule("exo_envs.domains.factory.kernels")
    parameters: FactoryParameters
    num_actions = WORK + 1

    def __init__(self, parameters: FactoryParameters | None = None) -> None:
        self.parameters = p = parameters or FactoryParameters()
        self.floor = Floor(p.rows, p.columns)
        bottom, right = p.rows - 1, p.columns - 1
        stations = ((0, 0), (0, right), (bottom, 0), (bottom, right), (p.rows // 2, p.columns // 2))
        self.station_cells = np.array([self.floor.cell(*station) for station in stations])

        self.endogenous_variables = (
            Variable("robot", self.floor.num_cells),
            Variable("fulfilled", 2),
        )
        self.exogenous_variables = (
            *(Variable(f"order_{i}", NUM_STATIONS + 1) for i in range(p.queue_length)),
            Variable("clock", p.clock_size),
            *(Variable(f"machine_{i}", 2) for i in range(NUM_STATIONS)),
            *(Variable(f"technician_{i}", NUM_STATIONS) for i in range(p.num_technicians)),
            *(Variable(f"noise_{i}", 2) for i in range(p.num_noise)),
        )
        self.order_slice = slice(0, p.queue_length)
        self.clock_index = p.queue_length
        self.machine_slice = slice(self.clock_index + 1, self.clock_index + 1 + NUM_STATIONS)
        self.technician_slice = slice(
            self.machine_slice.stop, self.machine_slice.stop + p.num_technicians
        )
        self.noise_slice = slice(self.technician_slice.stop, len(self.exogenous_variables))
        self.noise = (0, len(self.exogenous_variables))

        station_at = np.full(self.floor.num_cells, -1)
        station_at[self.station_cells] = np.arange(NUM_STATIONS)
        arrival = (1 - p.no_order) / NUM_STATIONS
        self._order_cdf = np.cumsum([p.no_order, *[arrival] * NUM_STATIONS])
        self._order_cdf[-1] = 1.0  # whatever the rounding, every uniform finds its value
        self._set_up(
            World,
            order_cdf=self._order_cdf,
            noise_flips=np.where(np.arange(p.num_noise) % 2, p.noise_flip, 0.5),
            targets=np.column_stack([self.floor.moves, np.arange(self.floor.num_cells)]),
            station_at=station_at,
        )

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """The robot is anywhere with nothing done; the belt is full as if it had always run."""
        size = as_size(self, size)
        endogenous = np.zeros((size, 2), dtype=np.int64)
        endogenous[:, 0] = rng.integers(self.floor.num_cells, size=size)
        exogenous = rng.integers(self.exogenous_sizes, size=(size, len(self.exogenous_sizes)))
        entering = rng.random((size, self.parameters.queue_length))
        exogenous[:, self.order_slice] = self._order_cdf.searchsorted(entering, side="right")
        return State(endogenous, exogenous)

    def compiled_step(self) -> CompiledStep:
        return CompiledStep(self.kernels.step, (self._world,), self.noise)
