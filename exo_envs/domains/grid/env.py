"""The Gymnasium shells of ExoGrid."""

from __future__ import annotations

from typing import Any, ClassVar

from exo_envs.domains.floor import PICTURES
from exo_envs.domains.grid.model import GridMDP
from exo_envs.domains.grid.parameters import GridParameters
from exo_envs.shells.env import DomainEnv
from exo_envs.shells.vector_env import VectorTwin


class GridEnv(DomainEnv):
    """A robot looks for an object that somebody carries about, past a guard in one of two doors.

    ## Description
    The paper's small domain (section 6.1): "a small gridworld representation of our experimental
    domain, with only ~600 states and 5 exogenous variables, in which we can plan exactly". The
    paper fixes no more than that; the layout, the numbers and the names are ours::

        T D . T        T  a table; the object lies on one of the three
        . # . .        D  a door; the guard stands in one of the two
        R D . T        #  wall
                       R  where the robot starts

    There are 13 * 48 = 624 states. The variables play the roles that make masks interesting:

    | variable       | values | what it does                                   | role            |
    |----------------|--------|------------------------------------------------|-----------------|
    | `object`       | 3      | the table with the object                      | pays            |
    | `carrier`      | 2      | which way round the object is carried next     | predicts object |
    | `guard`        | 2      | the door where the guard stands                | pays            |
    | `guard_intent` | 2      | the door where the guard wants to stand        | predicts guard  |
    | `weather`      | 2      | changes now and then                           | noise           |

    What the reduced policy of a mask earns in the full model, computed exactly (40 steps), and
    the cost per variable (the paper's lambda) for which the mask is the best of all 32. As in the
    paper, the reduced model pays nothing for what the mask ignores (`ignored_rewards="zero"`):

    | mask                              | return | best for lambda |
    |-----------------------------------|--------|-----------------|
    | nothing, blind: averages instead  | 71     |                 |
    | none                              | 0.0    | above 45.4      |
    | object                            | 45.4   | 29.8 to 45.4    |
    | object, guard                     | 75.2   | 1.3 to 29.8     |
    | object, carrier, guard            | 76.6   | 0.5 to 1.3      |
    | all but the weather               | 77.1   | below 0.5       |

    With averages instead, the planners' default, who sees nothing waits for the object at the
    table on its own side of the doors and earns about 71; so does who sees the object alone.

    ## Action Space
    `Discrete(5)`: stay, up, down, left, right (:class:`exo_envs.domains.floor.Move`). With
    probability `slip` the robot stays where it is.

    ## Observation Space
    `Dict(endogenous=MultiDiscrete([13]), exogenous=MultiDiscrete([3, 2, 2, 2, 2]))`: the robot's
    cell, row by row from the upper left, or 12 when the episode is over; and the five variables.

    ## Rewards
    `goal_reward` for any action taken at the table with the object, which ends the episode;
    `-crash_cost` for a move into the door where the guard stands, which then does not happen.

    ## Starting State
    The robot in the lower left corner, the exogenous variables uniformly anywhere.

    ## Episode End
    Terminates when the object has been found; truncated after `horizon` steps.

    ## Arguments
    Every field of :class:`GridParameters`: `gym.make("ExoGrid-v0", slip=0.0, horizon=100)`.

    ## Version History
    * v0: initial version.
    """

    model = GridMDP
    parameters = GridParameters
    metadata: ClassVar[dict[str, Any]] = PICTURES  # type: ignore[misc]
    viewer_place = "exo_envs.domains.grid.viewer:GridViewer"


class GridVectorEnv(VectorTwin):
    """The vector twin of :class:`GridEnv`: ``gym.make_vec("ExoGrid-v0", num_envs=512)``."""

    single = GridEnv
