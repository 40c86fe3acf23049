#!/usr/bin/env bash
# Everything a change has to pass: lint, format, types, doctests, tests, and the wheel by itself.
# With arguments, pytest alone, which gets them:   bash scripts/test.sh -k grid
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-}" in
-h | --help)
    cat <<'HELP'
usage: bash scripts/test.sh [ARGUMENT ...]

Everything a change has to pass: lint, format, types, doctests, tests, and the
wheel in a clean environment. With arguments pytest alone, which gets them:

    bash scripts/test.sh -k grid

With --lowest, tests with the lowest versions of the dependencies that
pyproject.toml allows, in an environment of their own (scripts/lowest.sh):

    bash scripts/test.sh --lowest [ARGUMENT ...]
HELP
    exit
    ;;
--lowest)
    shift
    exec bash scripts/lowest.sh "$@"
    ;;
esac

bash scripts/setup.sh dev
python="$PWD/.venv/bin/python"

# Parallel test processes share the cores: one BLAS thread each. Numba has two, because parallel
# kernels on a single thread would hide their races.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" NUMBA_NUM_THREADS="${NUMBA_NUM_THREADS:-2}"

if (($# > 0)); then
    exec "$python" -m pytest "$@"
fi

announce() { printf '\n== %s\n' "$*"; }

announce "lint and format"
"$python" -m ruff check
"$python" -m ruff format --check

announce "types"
if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    "$python" -m mypy
else
    echo "left out: they are those of NumPy 2.3 and newer, which need Python 3.11"
fi

announce "doctests and tests"
"$python" -m pytest --numprocesses auto --maxprocesses 4

announce "the wheel, installed in a clean environment and used from another directory"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
"$python" -m build --no-isolation --quiet --outdir "$scratch/dist" .
"$python" -m venv --without-pip "$scratch/venv"
"$python" -m pip --python "$scratch/venv/bin/python" install --no-compile --quiet --quiet \
    "$scratch"/dist/*.whl
cd "$scratch"
venv/bin/python -I -W error - <<'PYTHON'
from importlib.metadata import files
from importlib.util import find_spec
from pathlib import Path

import gymnasium as gym

with gym.make("exo_envs:ExoGrid-v0") as env:
    env.reset(seed=0)
    env.step(env.action_space.sample())

import exo_envs, planners, wrappers

for package in (exo_envs, planners, wrappers):
    assert Path(package.__file__).is_relative_to(Path.cwd() / "venv"), package.__file__
    assert Path(package.__file__).with_name("py.typed").exists(), package.__name__
# The command exo-mask lies outside of site-packages.
shipped = {path.parts[0] for path in files("exo-envs") if path.parts[0] != ".."}
expected = {"exo_envs", "planners", "wrappers", f"exo_envs-{exo_envs.__version__}.dist-info"}
assert shipped == expected, shipped
assert find_spec("tests") is None and find_spec("scripts") is None
PYTHON
venv/bin/exo-mask ExoGrid-v0 --rollouts 20 --data 100 --quiet >/dev/null
venv/bin/python -m exo_envs --help >/dev/null

announce "all is well"
