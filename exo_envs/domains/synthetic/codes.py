"""What models and kernels of the planted problems agree on."""

from __future__ import annotations

SITE, LEFT, BET = range(3)  # the endogenous variables
PASS = 0  # the action; 1 + v is a bet on the value v
NO_BET = 0  # the value of BET; 1 + v is a bet on the value v
TURNED = 3  # minus a bet is the opposite bet
NO_SWITCH = -1  # in the place of a variable that turns bets round
SHORT = -1  # in the place of a start in a table: see exo_envs.domains.synthetic.kernels
