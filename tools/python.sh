#!/usr/bin/env bash
# Prints the first Python on PATH that runs and is 3.11 or later.
# "Runs" is tried, not believed: the shims of version managers exist for Pythons that are not switched on.
set -u
for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3.14 python3 python; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        command -v "$candidate"
        exit 0
    fi
done
echo "No Python 3.11 or later with the venv module was found on PATH. Install one, or name it: make PYTHON=/path/to/python3" >&2
exit 1
