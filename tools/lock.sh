#!/usr/bin/env bash
# Writes requirements-dev.lock from pyproject.toml: every package of the `dev` extra and of the build, with hashes, for Python 3.11 and
# later on every platform. No index address goes in, so it installs from whatever index the machine uses.
set -eu
cd "$(dirname "$0")/.."
new=$(mktemp)
trap 'rm -f "$new"' EXIT
cp requirements-dev.lock "$new" 2>/dev/null || true  # what is locked stays, unless UPGRADE=1
"${1:-uv}" pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet ${UPGRADE:+--upgrade} --output-file "$new" >/dev/null
{
    echo "# Made by \`make lock\` from pyproject.toml: do not edit. \`make lock UPGRADE=1\` takes newer versions."
    cat "$new"
} > requirements-dev.lock.new
mv requirements-dev.lock.new requirements-dev.lock
