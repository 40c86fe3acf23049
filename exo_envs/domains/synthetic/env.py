"""The Gymnasium shells of ExoSynthetic and ExoSyntheticReal."""

from __future__ import annotations

from exo_envs.domains.synthetic.model import SyntheticMDP
from exo_envs.domains.synthetic.parameters import RealSyntheticParameters, SyntheticParameters
from exo_envs.domains.synthetic.real import RealSyntheticMDP
from exo_envs.shells.env import DomainEnv
from exo_envs.shells.vector_env import VectorTwin


class SyntheticEnv(DomainEnv):
    """A planted problem: thirty variables, eleven of which matter, and one knows which.

    ## Description
    Problems to score mask learners on: `env.unwrapped.mdp.required_mask` is the right mask, so what
    a learner found has a precision and a recall. Nothing here is the paper's but the question.

    The agent goes round a ring of sites. At a site it may bet on the value that the site's paying
    variable will have some steps later, must pay for holding the bet until then, and may give it up
    on the way. So it has to foresee the paying variable, and what foretells it one step ahead is
    its parents, two steps ahead its grandparents. The exogenous variables form a dynamic Bayes net:
    each one follows its parents of the step before, or, with some probability, is drawn anew,
    independently of all others. Their roles (`mdp.roles`):

    | role          | example           | what it does                                           |
    |---------------|-------------------|--------------------------------------------------------|
    | `pays`        | `pays_0`          | settles the bets at site 0                             |
    | `parent`      | `parent_0_0`      | `pays_0` turns on when all its parents are on          |
    | `grandparent` | `grandparent_0_0` | the parent follows it                                  |
    | `xor`         | `xor_2_a`         | `pays_2` is the XOR of two fair bits: one says nothing |
    | `moves`       | `moves_0`         | a switch: 1 turns the bets at site 0 round             |
    | `copy`        | `copy_0`          | follows one of the above: what it tells is known       |
    | `noise`       | `noise_0`         | independent of everything; some have many values       |
    | `correlated`  | `correlated_0`    | follow each other in chains, and nothing else          |

    With `num_pairs`, the first sites pay by two variables together: the bet is on the XOR of
    `pays_0` and `partner_0`, or on whether both are on. Such a site has one reward term that looks
    at both (`mdp.reward_scopes`), so both are required, with the ancestors of each.

    The required mask is all that pays (condition 1 of Theorem 1) or moves n (condition 2), closed
    under parents (all that the theorem needs of condition 3). The last three roles are distractors.
    The order of the variables is shuffled.

    `mdp.parents` and `mdp.table(name)` are the true net, `mdp.endogenous_outcomes` is the true
    P(n'|n,a,x), and :func:`exo_envs.domains.synthetic.exact_return` computes what any mask is
    worth, even where there are many variables. For the default arguments:

    | mask                                  | return |
    |---------------------------------------|--------|
    | none                                  | 0.0    |
    | all that pays                         | 1.7    |
    | all that pays or moves                | 1.7    |
    | ... and their parents, XOR pair apart | 22.7   |
    | ... and the grandparents              | 33.7   |
    | ... and the XOR pair: required        | 58.9   |

    Dropping a single variable of the required mask costs, in per cent of the optimal return, over
    the instances 0 to 19: a paying variable 19 to 49, one of the XOR pair 34 to 47, a parent of a
    paying variable 15 to 25, a grandparent 7 to 12, the switch 10 to 33, its parent 7 to 11.
    Variables in the middle of a longer ancestry (`generations=3`) cost less, down to 0.4: their
    neighbours on both sides stand in for them. All this is with the paper's reduced reward, the sum
    of the terms in the mask. If the terms left out are averaged instead, a parent can stand in for
    what pays, and with `generations=1` dropping a paying variable may cost nothing.

    ## Action Space
    `Discrete(3)`: 0 passes: no bet, or the bet in hand is given up. 1 and 2 bet on the value 0 or 1
    when the agent has just come to a site, and hold on to the bet in hand afterwards.

    ## Observation Space
    `Dict(endogenous=MultiDiscrete([3, 3, 3]), exogenous=MultiDiscrete(...))` for the default
    arguments: the site, the steps left until a bet there is settled, the bet (0: none, 1: on the
    value 0, 2: on the value 1); and the exogenous variables, `mdp.exogenous_variables`.

    The agent stays at each site for as many steps as a bet takes, whether it bets or not, and then
    moves on. Between the last step and the settlement the bet may be turned round (1 becomes 2):
    with probability `slip`, or `1 - slip` if the site has a switch that is 1.

    ## Rewards
    At the settlement the stake of the site if the paying variable has the value that was bet on,
    minus the stake if not: the term of that variable, or of the pair. Every step that a
    bet is placed or held costs `fee` times the stake.

    ## Starting State
    At any site, without a bet; the exogenous variables from their stationary distribution, exactly.

    ## Episode End
    Never terminates; truncated after `horizon` steps.

    ## Arguments
    Every field of :class:`SyntheticParameters`: `gym.make("ExoSynthetic-v0", instance=3,
    num_noise=400)`. The `instance` is the problem, the seed given to `reset` what happens in it.

    ## Version History
    * v0: initial version.
    """

    model = SyntheticMDP
    parameters = SyntheticParameters


class SyntheticVectorEnv(VectorTwin):
    """The vector twin of :class:`SyntheticEnv`: ``gym.make_vec("ExoSynthetic-v0", num_envs=9)``."""

    single = SyntheticEnv


class RealSyntheticEnv(DomainEnv):
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
    That of `ExoSynthetic-v0`; 1 and 2 bet on a low or a high outcome.

    ## Observation Space
    `Dict(endogenous=MultiDiscrete([3, 3, 3]), exogenous=Box(...))` for the default arguments: the
    site, the steps left until a bet there is settled, the bet (0: none, 1: low, 2: high); and the
    exogenous variables, `mdp.exogenous_variables`, with whole floats for those that are whole. If
    all are (`whole_share=1`) it is a `MultiDiscrete`. The agent moves, and bets are turned round,
    as in `ExoSynthetic-v0`; a switch is on while it is above its threshold.

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

    model = RealSyntheticMDP
    parameters = RealSyntheticParameters


class RealSyntheticVectorEnv(VectorTwin):
    """The vector twin of :class:`RealSyntheticEnv`."""

    single = RealSyntheticEnv
