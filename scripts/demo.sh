#!/usr/bin/env bash
# Sets up .venv and runs the demonstration; arguments go to it:   bash scripts/demo.sh --help
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/setup.sh human
exec .venv/bin/python scripts/demo.py "$@"
