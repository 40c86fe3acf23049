"""Planted problems of all structures, and what happens in them, by the rules."""

from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters

PASS = 0
STRUCTURES = [
    {},
    {"instance": 1, "parents_per_paying": 2},
    {"generations": 1, "num_moving": 2},
    {"generations": 3, "num_xor_pairs": 0, "num_paying": 1},
    {"generations": 0, "persistence": 0.7},
    {"num_paying": 2, "num_xor_pairs": 2, "num_moving": 2},
    {"parents_per_paying": 3, "generations": 1, "num_moving": 0},
    {"persistence": 0.0},
    {"instance": 2, "num_pairs": 2, "num_moving": 2},
    {"num_pairs": 3, "parents_per_paying": 2, "generations": 1},
    {"num_pairs": 3, "generations": 0, "instance": 4},
]
# Two sites with one distractor of each kind: small enough to enumerate all at once.
SMALL = {
    "num_paying": 2,
    "generations": 1,
    "num_copies": 1,
    "num_noise": 1,
    "noise_size": 2,
    "num_correlated": 1,
    "horizon": 12,
}


def make(**parameters):
    return SyntheticMDP(SyntheticParameters(**parameters))


def without(mdp, name):
    return [other for other in mdp.required_mask if other != name]


def reference_outcomes(mdp, n, x, action):
    """P(n'|n,a,x) as the documentation says it: a dict of n' -> probability."""
    site, left, bet = n
    if left == 0:
        following = (site + 1) % len(mdp.sites)
        return {(following, mdp.sites[following].delay, 0): 1.0}
    if left == mdp.sites[site].delay:
        bet = action
    elif action == PASS:
        bet = 0
    if left > 1 or bet == 0:
        return {(site, left - 1, bet): 1.0}
    switch = mdp.sites[site].switch
    slip = mdp.parameters.slip
    on = switch is not None and x[mdp.exogenous_names.index(switch)] == 1
    turned = 1 - slip if on else slip
    return {(site, 0, bet): 1 - turned, (site, 0, {1: 2, 2: 1}[bet]): turned}


def reference_reward(mdp, n, x, action):
    site, left, bet = n
    stake = mdp.sites[site].stake
    if left == 0:
        if bet == 0:
            return 0.0
        scope = mdp.sites[site].scope
        values = [x[mdp.exogenous_names.index(name)] for name in scope]
        outcome = values[0] if len(scope) == 1 else mdp.sites[site].outcomes[values[0]][values[1]]
        won = outcome == bet - 1
        return stake if won else -stake
    deciding = left == mdp.sites[site].delay
    held = action if deciding else (0 if action == PASS else bet)
    return -mdp.parameters.fee * stake if held else 0.0
