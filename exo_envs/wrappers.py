"""The package ``wrappers``, also where something else is called so (:mod:`exo_envs.beside`)."""

import sys

from exo_envs.beside import package_beside

sys.modules[__name__] = package_beside("wrappers")
