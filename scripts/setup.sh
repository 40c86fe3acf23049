#!/usr/bin/env bash
# Makes .venv in the project's root and installs exo-envs there, editable, with the named extras:
#     bash scripts/setup.sh [EXTRA ...]
# A stamp for each choice of extras makes a second run do nothing. A .venv whose set-up was cut
# short, or that cannot run pip, is made anew. PYTHON=python3.12 chooses another interpreter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

known="$(sed -n '/^\[project.optional-dependencies\]/,/^\[/s/^\([a-z0-9-]*\) = \[.*/\1/p' pyproject.toml)"
if [[ " $* " =~ \ (-h|--help)\  ]]; then
    cat <<HELP
usage: bash scripts/setup.sh [EXTRA ...]

Makes .venv in the project's root and installs exo-envs there, editable, with
the named extras. A second run does nothing. PYTHON=python3.12 chooses another
interpreter. The extras are:

$(echo $known | fold -s -w 76 | sed 's/^/  /')
HELP
    exit
fi
for extra in ${*//,/ }; do
    if ! grep -qxF -- "$extra" <<<"$known"; then
        echo "error: unknown extra '$extra'; bash scripts/setup.sh --help names them" >&2
        exit 2
    fi
done

# Installed before anything that depends on torch, or pip would choose a newer and larger build.
torch="torch==2.13.0"

extras="$(IFS=,; echo "$*")"
stamp=".venv/.exo-envs-${extras:-core}"
unfinished=".venv/.exo-envs-unfinished"
# The path counts too: an editable install does not survive a move of the project.
wanted="$({ pwd; cat pyproject.toml scripts/setup.sh; } | cksum)"

is_supported() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }

find_python() {
    local candidate candidates=(python3.11 python3)
    if [[ -n ${PYTHON:-} ]]; then candidates=("$PYTHON"); fi
    for candidate in "${candidates[@]}"; do
        if is_supported "$candidate"; then
            echo "$candidate"
            return
        fi
        echo "$candidate: $("$candidate" --version 2>/dev/null || echo "not found")" >&2
    done
    echo "error: exo-envs needs Python 3.10 or newer, best 3.11 (for PyBullet);" \
        "install it, or set PYTHON to the path of one" >&2
    return 1
}

pip_install() {
    echo "installing $* ..."
    # After an error of its own pip leaves .venv in order; only an interrupted pip may not.
    if ! .venv/bin/python -m pip install --quiet --quiet --disable-pip-version-check "$@"; then
        rm -f "$unfinished"
        echo "error: could not install $*" >&2
        exit 1
    fi
}

is_ready() {
    [[ ! -e $unfinished && -x .venv/bin/python && -e $stamp && "$(<"$stamp")" == "$wanted" ]]
}

if is_ready; then exit; fi
trap 'exit 130' INT TERM # or an interrupted pip would pass for a failed one

if [[ -e $unfinished ]] || ! is_supported .venv/bin/python ||
    ! .venv/bin/python -m pip --version &>/dev/null; then
    python="$(find_python)"
    echo "making .venv with $("$python" --version) ..."
    rm -rf .venv
    mkdir .venv
    touch "$unfinished"
    "$python" -m venv .venv
fi

touch "$unfinished"
if [[ ,$extras, =~ ,(rl|test|dev), ]]; then pip_install "$torch"; fi
pip_install --editable ".${extras:+[$extras]}"
echo "$wanted" >"$stamp"
rm "$unfinished"
