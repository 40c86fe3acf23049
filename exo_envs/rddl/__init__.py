"""RDDL descriptions as models: :func:`from_rddl`."""

from exo_envs.rddl.errors import NoExogenousFluentsWarning, RDDLRefusedError
from exo_envs.rddl.importing import from_rddl
from exo_envs.rddl.loading import load
from exo_envs.rddl.model import RDDLMDP

__all__ = ["RDDLMDP", "NoExogenousFluentsWarning", "RDDLRefusedError", "from_rddl", "load"]
