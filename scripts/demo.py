"""The demonstration: which variables of a crowd are worth knowing to a robot?

    bash scripts/demo.sh [--output FOLDER] [--seed N] ...

It learns the mask of ExoCrowd-v0 and shows what it keeps, why, and what the
robot earns with it; a picture and a short film stay in the folder. All options
of scripts/learn_mask.py can be given, which does the same for any environment.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

INTRODUCTION = """\
A robot looks for an object in a crowd. Porters carry objects about; wanderers
are in the way. Finding the object pays 1000, a crash costs 100, and each
variable that the robot keeps an eye on costs 3. Which ones are worth it? (The
first run compiles too: it takes a minute or two.)
"""
SETTINGS = ("ExoCrowd-v0", "--cost-weight=3", "--frames=25")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    _, options = parser.parse_known_args(argv)
    print(INTRODUCTION, flush=True)
    try:
        import learn_mask  # takes a second or two, in which there is something to read
    except KeyboardInterrupt:
        return 130
    return learn_mask.main([*SETTINGS, *options])


if __name__ == "__main__":
    sys.exit(main())
