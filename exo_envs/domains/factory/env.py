"""The Gymnasium shells of ExoFactory."""

from __future__ import annotations

from typing import Any, ClassVar

from exo_envs.domains.factory.model import FactoryMDP
from exo_envs.domains.factory.parameters import FactoryParameters
from exo_envs.domains.floor import PICTURES, RENDER_BACKENDS
from exo_envs.shells.env import DomainEnv
from exo_envs.shells.vector_env import VectorTwin


class FactoryEnv(DomainEnv):
    """A robot fulfils tasks that are issued in a stream, with machines that break down.

    ## Description
    The paper's Factory (section 6.2): "a robot must fulfill manipulation tasks being issued in a
    stream", with 22 exogenous variables and 10^11 states. The paper fixes no more than that; the
    layout, the numbers and the names are ours::

        0 . . . . 1        0-4  a station with its machine
        . . . . . .        .    floor
        . . . 4 . .
        . . . . . .
        2 . . . . 3

    A belt shows the live order and the three behind it. Its clock counts down, 4 ... 0; before
    0 it stalls with probability 0.1, and in the step that is taken while it shows 0 the orders
    move up by one and a new one enters at the end, whatever the robot does: none or one of the
    stations, all six equally likely. An up machine fails with probability 0.1 in every step; a
    down one comes up with probability 0.6 where a technician stands and with 0.03 where none
    does. Technicians go to another station with probability 0.2.

    | variables                      | values | what they say                                  |
    |--------------------------------|--------|------------------------------------------------|
    | `order_0`                      | 6      | the live order: 0 none, v wants station v - 1  |
    | `order_1` ... `order_3`        | 6      | the orders behind it, likewise                 |
    | `clock`                        | 5      | ticks left; at 0 the belt moves in this step   |
    | `machine_0` ... `machine_4`    | 2      | 0 the machine is down, 1 it is up              |
    | `technician_0`, `technician_1` | 5      | the station where the technician stands        |
    | `noise_0` ... `noise_9`        | 2      | nothing: the even-numbered are coins tossed in |
    |                                |        | every step, the odd ones change with 0.1       |

    Only `order_0` and the machines pay; the other orders and the clock tell what `order_0` will
    be and when, the technicians which machines will be up; the noise never matters. With the
    robot's two variables there are 6^4 * 5 * 2^5 * 5^2 * 2^10 * 60 = 3.2 * 10^11 states.

    What the reduced policy of a mask earns in this environment. The policies come from value
    iteration on the reduced MDP, computed from the true probabilities with the dropped variables
    marginalised under their stationary distribution. As in the paper, it pays nothing for what the
    mask ignores (`ignored_rewards="zero"`); where actions are worth the same, the
    policy takes the first, so one that sees nothing to gain stays. 20,000 rollouts each, on the
    same exogenous trajectories; mean discounted return and standard error:

    | mask                                                | return          |
    |-----------------------------------------------------|-----------------|
    | nothing, blind: averages instead (idling)           | 0               |
    | none, or any one variable but `order_0` (idling)    | 0               |
    | `order_0`                                           | -477.3 +- 4.5   |
    | the orders and the clock                            | -1052.4 +- 6.1  |
    | the machines                                        | 0               |
    | the machines, the clock and the technicians         | 0               |
    | `order_0` and four of the machines (not the middle) | -38.1 +- 2.9    |
    | `order_0` and the machines: all that pays           | 167.6 +- 0.6    |
    | ... and the clock                                   | 178.7 +- 0.6    |
    | ... and `order_1`                                   | 210.1 +- 0.5    |
    | ... and `order_1`, the clock                        | 252.7 +- 0.6    |
    | ... and `order_1`, `order_2`, the clock             | 253.9 +- 0.6    |
    | ... and `order_1` ... `order_3`, the clock          | 254.2 +- 0.6    |
    | ... and `order_1`, the clock, the technicians       | 259.2 +- 0.6    |

    So no variable helps alone: whoever sees only the order works at machines that are down, and
    whoever sees only machines has nothing to work for. A learner that adds one variable at a time
    never starts; the paper reports 0 for it, 186 for the variables that pay and 226 for its mask.
    Knowing the coming order and when it comes is worth half as much again. Random actions earn
    -107. With averages of what is ignored, the planners' default, who sees only the order stays
    for 0, and who sees only machines works at those that are up, and earns 77.

    ## Action Space
    `Discrete(6)`: stay, up, down, left, right (:class:`exo_envs.domains.floor.Move`) and 5, work
    (:data:`exo_envs.domains.factory.WORK`). All of them succeed; a move off the floor, and work
    away from the stations, leave the robot where it is.

    ## Observation Space
    `Dict(endogenous=MultiDiscrete([30, 2]), exogenous=MultiDiscrete([6] * 4 + [5] + [2] * 5 +
    [5] * 2 + [2] * 10))`: the robot's cell, row by row from the upper left, and whether the live
    order is fulfilled; and the variables of the table, in its order. The flag is set by work at
    the live order's station while the machine is up, and cleared when the belt moves
    (:class:`FactoryMDP` says how that can be exact).

    ## Rewards
    - `order_reward` for work at the live order's station, unless the order is fulfilled already:
      the term of `order_0`;
    - `-down_cost` for work at a station whose machine is down: the term of that machine.

    Both can be due at once: work on the live order with its machine down earns 100 - 400 and does
    not fulfil it.

    ## Starting State
    The robot anywhere and nothing fulfilled. The orders as they arrive; the clock, the machines,
    the technicians and the noise uniformly anywhere.

    ## Episode End
    Never terminates; truncated after `horizon` steps.

    ## Arguments
    Every field of :class:`FactoryParameters`, for example
    `gym.make("ExoFactory-v0", queue_length=8, num_noise=100)`; and `render_backend`: "bullet"
    draws in 3-D, "flat" a floor plan, which is faster and needs no PyBullet.

    ## Version History
    * v0: initial version.
    """

    model = FactoryMDP
    parameters = FactoryParameters
    metadata: ClassVar[dict[str, Any]] = PICTURES  # type: ignore[misc]
    viewer_place = "exo_envs.domains.factory.viewer:FactoryViewer"
    backends = RENDER_BACKENDS


class FactoryVectorEnv(VectorTwin):
    """The vector twin of :class:`FactoryEnv`: ``gym.make_vec("ExoFactory-v0", num_envs=512)``."""

    single = FactoryEnv
