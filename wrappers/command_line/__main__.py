"""``python -m wrappers.command_line`` is the command ``exo-mask``."""

import sys

from wrappers.command_line import main

sys.exit(main())
