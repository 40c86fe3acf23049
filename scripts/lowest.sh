#!/usr/bin/env bash
# Tests with the lowest versions of the dependencies that pyproject.toml allows, in an environment
# of their own that is thrown away:
#     bash scripts/lowest.sh [ARGUMENT ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ " $* " =~ \ (-h|--help)\  ]]; then
    cat <<'HELP'
usage: bash scripts/lowest.sh [ARGUMENT ...]

Installs exo-envs with the lowest versions of its dependencies that
pyproject.toml allows into an environment that is thrown away, and runs the
tests of the packages there, but those that need PyTorch. Arguments go to
pytest. PYTHON chooses the interpreter, python3.11 otherwise; the lowest
versions have wheels for Python 3.10 to 3.12.
HELP
    exit
fi

python="${PYTHON:-python3.11}"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

# "numpy>=1.26" becomes "numpy==1.26"; what a marker leaves out stays left out.
sed -n '/^dependencies = \[/,/^\]/s/^ *"\([^">]*\)>=\([^";]*\)\(;[^"]*\)\{0,1\}".*/\1==\2\3/p' \
    pyproject.toml >"$scratch/lowest.txt"
echo "with $("$python" --version) and"
sed 's/^/    /' "$scratch/lowest.txt"

"$python" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check \
    --constraint "$scratch/lowest.txt" --editable ".[human,reproduce]" \
    hypothesis pandas pytest pytest-xdist pyyaml quantecon scikit-learn tomli

export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" NUMBA_NUM_THREADS="${NUMBA_NUM_THREADS:-2}"
export NUMBA_CACHE_DIR="$scratch/cache" # other versions share nothing
if (($# == 0)); then
    set -- --numprocesses auto --maxprocesses 4 tests/exo_envs tests/planners tests/wrappers \
        tests/test_package.py
fi
"$scratch/venv/bin/python" -m pytest -p no:cacheprovider "$@"
