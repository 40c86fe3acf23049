"""The Gymnasium shells of ExoSyntheticReal."""

from __future__ import annotations

from typing import Any

from exo_envs.core.arguments import as_parameters
from exo_envs.domains.synthetic.real.model import RealSyntheticMDP
from exo_envs.domains.synthetic.real.parameters import RealSyntheticParameters
from exo_envs.shells.env import ExoEnv
from exo_envs.shells.vector_env import VectorTwin


class RealSyntheticEnv(ExoEnv):
    """A planted problem with real variables: thirty of them, eleven of which matter.

    ## Description
    Problems to score mask learners on that see real numbers in bins:
    `env.unwrapped.mdp.required_mask` is the right mask. Nothing here is the paper's but the
    question.

    The agent goes round a ring of sites and bets, as in `ExoSynthetic-v0`, on what the site's
    paying variable will be some steps later. The exogenous variables form a dynamic Bayes net.
    Behind each of them is a *latent* value z, a standard normal number in the long run and an
    increasing function of what is shown: a real number between two bounds (the share of the range
    is a logistic function of z), a real number without bounds (a linear function), or a whole
    number (the cell of that share). `mdp.latent(x)` is z. Roles (`mdp.roles`):

    | role          | example           | what it does                                            |
    |---------------|-------------------|---------------------------------------------------------|
    | `pays`        | `pays_0`          | settles the bets at site 0                              |
    | `parent`      | `parent_0_0`      | `pays_0` follows it, or is high when all parents are    |
    | `grandparent` | `grandparent_0_0` | the parent follows it                                   |
    | `sign`        | `sign_2_a`        | `pays_2` is high if two signs agree, or as far from its |
    |               |                   | middle as one of the pair, on the side of the other     |
    | `moves`       | `moves_0`         | turns the bets at site 0 round while above a threshold  |
    | `copy`        | `copy_0`          | follows one of the above: what it tells is known        |
    | `noise`       | `noise_0`         | depends on nothing but its own past                     |
    | `correlated`  | `correlated_0`    | follow each other in chains, and nothing else           |

    The required mask is all that pays (condition 1 of Theorem 1) or moves n (condition 2), closed
    under parents (all that the theorem needs of condition 3); `mdp.parents` is the true net. The
    last three roles are distractors. The order of the variables is shuffled.

    If z_1, z_2 ... are the parents and e is new normal noise, the next latent value is

    | `node.rule`       | z'                                                                   |
    |-------------------|----------------------------------------------------------------------|
    | `"sum"`           | b (w_1 z_1 + w_2 z_2 + ...) + sqrt(1 - b^2) e                        |
    | `"all high"`      | abs(e) if all w_i z_i are above a threshold, else -abs(e)            |
    | `"signs"`         | abs(e) if z_1 z_2 has the sign of the weights, else -abs(e)          |
    | `"size and sign"` | b abs(z_1) sign(w_2 z_2) + sqrt(1 - b^2) e                           |

    where the second and third take e itself with probability 1 - b. Variables without parents are a
    "sum" of themselves: autoregressive. Two variables that act by their signs say nothing one by
    one; the first of "size and sign" has no correlation with what it acts on. All of it is a
    standard normal number in the long run, but for whole variables of few values.

    ## Action Space
    `Discrete(3)`: 0 passes: no bet, or the bet in hand is given up. 1 and 2 bet on a low or a high
    outcome when the agent has just come to a site, and hold on to the bet in hand afterwards.

    ## Observation Space
    `Dict(endogenous=MultiDiscrete([3, 3, 3]), exogenous=Box(...))` for the default arguments: the
    site, the steps left until a bet there is settled, the bet (0: none, 1: low, 2: high); and the
    exogenous variables, `mdp.exogenous_variables`, with whole floats for those that are whole. If
    all are (`whole_share=1`) it is a `MultiDiscrete`.

    The agent stays at each site for as many steps as a bet takes, whether it bets or not, and then
    moves on. Between the last step and the settlement the bet may be turned round (1 becomes 2):
    with probability `slip`, or `1 - slip` if the site has a switch that is above its threshold.

    ## Rewards
    At the settlement a bet on a high outcome wins, in stakes, and one on a low outcome loses

    | `site.payoff` | of                       | wins                                              |
    |---------------|--------------------------|---------------------------------------------------|
    | `"high"`      | `pays_0`                 | 1 if it is above its middle, else -1              |
    | `"height"`    | `pays_0`                 | from -1.5 to 1.5, the higher the more             |
    | `"both high"` | `pays_0` and `partner_0` | 1 if both are above a threshold, else -1          |
    | `"same side"` | `pays_0` and `partner_0` | 1 if both are on one side of their middle, or -1  |
    | `"product"`   | `pays_0` and `partner_0` | from -2.25 to 2.25, the product of both heights   |

    The last three are those of `num_pairs`; such a site has one term that looks at both variables
    (`mdp.reward_scopes`). Every step that a bet is placed or held costs `fee` times the stake.

    ## Starting State
    At any site, without a bet; the exogenous variables after they have moved for some steps.

    ## Episode End
    Never terminates; truncated after `horizon` steps.

    ## Arguments
    Every field of :class:`RealSyntheticParameters`: `gym.make("ExoSyntheticReal-v0", instance=3,
    num_noise=400)`. The `instance` is the problem, the seed given to `reset` what happens in it.

    ## Version History
    * v0: initial version.
    """

    def __init__(self, *, render_mode: str | None = None, **parameters: Any) -> None:
        """Take the fields of :class:`RealSyntheticParameters` as keyword arguments."""
        model = RealSyntheticMDP(as_parameters(RealSyntheticParameters, parameters))
        super().__init__(model, render_mode)


class RealSyntheticVectorEnv(VectorTwin):
    """The vector twin of :class:`RealSyntheticEnv`."""

    single = RealSyntheticEnv
