#!/usr/bin/env bash
# Makes the virtual environment in $1 from the lock file, or brings an existing one up to it.
set -eu
cd "$(dirname "$0")/.."
venv=$1
if ! "$venv/bin/python" -c '' >/dev/null 2>&1; then
    python=$(bash tools/python.sh)
    echo "making $venv with $("$python" -V) ($python)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi
pip=("$venv/bin/python" -m pip --disable-pip-version-check --no-input)
echo "installing what requirements-dev.lock names"
"${pip[@]}" install --quiet --require-hashes --no-deps -r requirements-dev.lock
"${pip[@]}" install --quiet --no-deps --no-build-isolation -e .
"${pip[@]}" check >/dev/null || "${pip[@]}" check
