"""``python -m exo_envs`` is the command ``exo-mask``, which is in the package ``wrappers``.

This package imports nothing that is made of it: the command is run by its name.
"""

import runpy

from exo_envs.beside import package_beside

package_beside("wrappers")
runpy.run_module("wrappers.cli.command", run_name="__main__")
