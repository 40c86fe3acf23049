"""The Gymnasium shells of ExoCrowd."""

from __future__ import annotations

from typing import Any, ClassVar

from exo_envs.domains.crowd.model import CrowdMDP
from exo_envs.domains.crowd.parameters import CrowdParameters
from exo_envs.domains.floor import PICTURES, RENDER_BACKENDS
from exo_envs.shells.env import DomainEnv
from exo_envs.shells.vector_env import VectorTwin


class CrowdEnv(DomainEnv):
    """A robot looks for an object among agents who walk about and carry objects.

    ## Description
    The paper's Crowd domain (section 6.2), "in which a robot must navigate to target objects
    among a crowd of agents executing their own fixed stochastic policies". The paper's are: 124
    exogenous variables and 10^80 states; a binary occupancy grid, the states of the agents,
    objects on tables and which of them is the goal; a reward for reaching the goal, which changes
    on each episode, and a penalty for crashes; no need to go to the lower left quarter. What
    follows, all numbers included, is ours.

    Six tables stand on a floor of 8 x 8 cells, spread out by
    :func:`exo_envs.domains.crowd.model.place_tables`, none in the lower left quarter::

        . . T . . . . T        T  a table
        . . . . . . . .        R  where the robot starts
        . . . . T . . .
        T . . . R . . .
        . . . . . . T .
        . . . . . . . .
        . . . . . . . .
        . . . . . T . .

    Sixteen agents walk from table to table; they ignore the robot and each other, and may share
    a cell. An agent on its way stands still with probability `stand_still` and otherwise goes
    one cell along a shortest path; where two cells lie on one, each is as likely.

    - The ten **wanderers** choose another table, each as likely, when they are at theirs. That
      takes a step. They carry nothing.
    - The six **porters** own an object each: porter i owns `object_i`. At its object's table a
      porter picks it up with probability `pick_up` a step, and chooses another table as it does.
      It carries the object there and puts it down, which takes a step. Then it picks it up
      again; or, with probability `stroll` (by default never), it first strolls to another table
      and back while its object stays behind. The other six objects never move.

    So a porter's object is on its way for most of the time, and whoever knows the porter's state
    can tell on which table it will be put down, and be there to meet it. That shows in what the
    policies of some masks earn (2,000 rollouts, +- half of the 95 % interval; the command is
    `python scripts/objective.py ExoCrowd-v0 --rollouts 2000 --mask 'object_*' ...`; what a mask
    ignores pays its average in the reduced model):

    | mask                                  | `goal="movable"` | `goal="fixed"` |
    |---------------------------------------|------------------|----------------|
    | nothing, blind                        | 4 +- 21          | -173 +- 22     |
    | objects                               | 42 +- 20         | 520 +- 16      |
    | occupancy and objects: all that pays  | 292 +- 13        | 810 +- 4       |
    | ... and the porters                   | 619 +- 8         | 810 +- 4       |
    | ... and the wanderers: everything     | 619 +- 8         | 810 +- 4       |

    ## Action Space
    `Discrete(5)`: stay, up, down, left, right (:class:`exo_envs.domains.floor.Move`).

    ## Observation Space
    `Dict(endogenous=MultiDiscrete, exogenous=MultiDiscrete)`. Cells are numbered row by row from
    the upper left. Endogenous is `robot`: its cell, or 64 when the episode is over. Exogenous,
    in this order:

    | variable                                     | values | meaning                           |
    |----------------------------------------------|--------|-----------------------------------|
    | `occupancy_{row}_{column}`                   | 2      | whether an agent is in the cell   |
    | `porter_{i}_cell`, `wanderer_{i}_cell`       | 64     | where the agent is                |
    | `..._destination`                            | 6      | the table it goes to              |
    | `..._carrying`                               | 2      | whether it has its object in hand |
    | `object_{i}`                                 | 14     | place + 7 * is_goal               |

    (the three variables of one agent follow each other). The place of an object is the number of
    a table, or 6 for a hand; :meth:`CrowdMDP.decode_object` takes values apart.

    Any combination of values is a state. Occupancy follows from the agents' cells one step on,
    whatever it was. A porter and its object may contradict each other: the object is in a hand
    that carries nothing, or on a table while the porter carries. Then the porter stands still
    for a step, after which it carries nothing, the object lies on the table where it was (or,
    from a hand, on the one that the porter was going to) and the porter goes for it. A wanderer
    that carries stops doing so. An object without a porter stays in a hand if it is in one.
    Every object flagged as the goal pays.

    ## Rewards
    - `goal_reward` for any action in a cell with the table on which the goal lies.
    - `-crash_cost` for a move into a cell that is occupied now; the robot stays where it is. It
      may stand where agents walk: that costs nothing.

    Each is the term of one variable, the object's or the cell's occupancy. They may come
    together: a robot that has reached the goal had better stay.

    ## Starting State
    The robot is next to the centre, in row `grid_size // 2 - 1` and column `grid_size // 2`. The
    paper does not say where; we keep it out of the lower left quarter, which a robot that starts
    there would need, and which the paper's (Figure 3) never does. On floors of other sizes a
    table may stand in that cell.

    Agents are on the straight line between two tables chosen at random, as far along it as a walk
    is at a random time. A porter carries its object, strolls, returns or is with its object with
    the probability that it does so in the long run (0.8, 0, 0 and 0.2). The objects that lie are
    on random tables. The goal is drawn from the porters' objects (`goal="movable"`, the paper's
    Goal 2) or from the other ones (`goal="fixed"`, its Goal 1).

    ## Episode End
    Terminates one step after the robot has reached the goal, with the step that pays; truncated
    after `horizon` steps.

    ## Arguments
    Every field of :class:`CrowdParameters`. `gym.make("ExoCrowd-v0", grid_size=16,
    num_agents=64)` is a bigger crowd; it still has 6 porters unless `num_porters` says otherwise.

    `render_mode` is "human", "rgb_array" or "ansi"; `render_backend` is "bullet" for the scene in
    3-D by PyBullet or "flat" for a quick floor plan.

    ## Version History
    * v0: initial version.
    """

    model = CrowdMDP
    parameters = CrowdParameters
    metadata: ClassVar[dict[str, Any]] = PICTURES  # type: ignore[misc]
    viewer_place = "exo_envs.domains.crowd.viewer:CrowdViewer"
    backends = RENDER_BACKENDS


class CrowdVectorEnv(VectorTwin):
    """The vector twin of :class:`CrowdEnv`: ``gym.make_vec("ExoCrowd-v0", num_envs=512)``."""

    single = CrowdEnv
