"""Own data, no simulator: `python scripts/example.py battery`, `inventory`, `building`.

Each makes a model from a table and two small functions, learns which columns are worth looking at,
and judges that on later time. Two pictures go to outputs/examples. The battery and the building
take data that other packages ship; --generated makes data instead.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from examples import battery, building, generated, inventory, recorded
from shared.script import ScriptError, run_script

#: Each example, the data that was recorded, and what is generated instead.
EXAMPLES = {
    "battery": (battery.main, recorded.dutch_year, generated.dutch_like),
    "inventory": (inventory.main, generated.shop, generated.shop),
    "building": (building.main, recorded.city, generated.city_like),
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("example", choices=EXAMPLES)
    parser.add_argument("--generated", action="store_true", help="take generated data")
    parser.add_argument("--share", type=float, default=1.0, help="of the rows that are read")
    parser.add_argument("--seed", type=int, default=0, help="of learning and planning")
    parser.add_argument("--output", type=Path, default=Path("outputs/examples"))
    arguments = parser.parse_args(argv)
    if not 0 < arguments.share <= 1:
        raise ScriptError(f"--share is above 0 and at most 1, not {arguments.share}.")
    run, read, make = EXAMPLES[arguments.example]
    table = make() if arguments.generated else read()
    table = table[: int(arguments.share * len(table))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(table, arguments.output, arguments.seed)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"note: {message}")
    return 0


if __name__ == "__main__":
    sys.exit(run_script(main))
