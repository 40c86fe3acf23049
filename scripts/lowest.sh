#!/usr/bin/env bash
# Tests with the lowest versions of the dependencies that pyproject.toml allows, in an environment
# of their own that is thrown away:
#     bash scripts/lowest.sh [ARGUMENT ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ " $* " =~ \ (-h|--help)\  ]]; then
    cat <<'HELP'
usage: bash scripts/lowest.sh [ARGUMENT ...]

Installs exo-envs with the lowest versions of its dependencies, and of those of
its extras, that pyproject.toml allows into an environment that is thrown away,
and runs tests there. Arguments go to pytest, instead of the tests of the
packages. EXTRAS=real,rl chooses the extras; otherwise it is all but rl and
browser, which are large. PYTHON chooses the interpreter, python3.11 otherwise;
the lowest versions have wheels for Python 3.10 to 3.12.
HELP
    exit
fi

python="${PYTHON:-python3.11}"
extras="${EXTRAS:-cluster,data,human,rddl,reproduce,video}"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

"$python" scripts/shared/floors.py ${extras//,/ } test >"$scratch/lowest.txt"
"$python" scripts/shared/floors.py --needs test >"$scratch/tests.txt"
echo "with $("$python" --version) and"
sed 's/^/    /' "$scratch/lowest.txt"

"$python" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check \
    --constraint "$scratch/lowest.txt" --editable ".[$extras]" --requirement "$scratch/tests.txt"

export PATH="$scratch/venv/bin:$PATH" # where Dask looks for its command
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" NUMBA_NUM_THREADS="${NUMBA_NUM_THREADS:-2}"
export NUMBA_CACHE_DIR="$scratch/cache" # other versions share nothing
if (($# == 0)); then
    set -- --numprocesses auto --maxprocesses 4 tests/exo_envs tests/planners tests/wrappers \
        tests/test_package.py tests/scripts/test_reproduce_cluster.py \
        tests/scripts/test_reproduce_tables.py tests/scripts/test_report.py
fi
# Old releases of one package use what new ones of another deprecate.
"$scratch/venv/bin/python" -m pytest -p no:cacheprovider -W ignore::DeprecationWarning "$@"
