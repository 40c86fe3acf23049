"""``python -m exo_envs`` is the command ``exo-mask``.

The command learns masks, so it is in the package ``wrappers``. It is run by its name: this package
imports nothing that is made of it.
"""

import runpy

runpy.run_module("wrappers.cli.command", run_name="__main__")
