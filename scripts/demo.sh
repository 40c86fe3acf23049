#!/usr/bin/env bash
# Sets up .venv and runs the demonstration; arguments go to it:   bash scripts/demo.sh --help
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ " $* " =~ \ (-h|--help)\  ]]; then
    cat <<'HELP'
usage: bash scripts/demo.sh [OPTION ...]

Sets up .venv, learns which of the 124 variables of a crowd are worth knowing to
a robot, and shows what it keeps, why, and what the robot earns with it; a
picture and a short film stay in outputs/. Options are those of
scripts/learn_mask.py:

    bash scripts/demo.sh --output FOLDER --seed N --no-film
    python scripts/learn_mask.py --help    all of them, once .venv is there
HELP
    exit
fi

bash scripts/setup.sh human
exec .venv/bin/python scripts/demo.py "$@"
