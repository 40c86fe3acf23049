"""``python -m wrappers.cli`` is the command ``exo-mask``."""

import sys

from wrappers.cli.command import main

sys.exit(main())
