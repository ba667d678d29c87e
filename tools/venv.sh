#!/usr/bin/env bash
# Makes the virtual environment in $1 from the lock file, or brings an existing one up to it:
# Python makes it, pip installs uv into it, uv installs the rest within seconds. If uv cannot, pip does, within minutes.
# Both refuse a package whose hash is not in the lock file. Both ask the index that pip is configured for.
set -eu
cd "$(dirname "$0")/.."
venv=$1
lock=requirements-dev.lock

pip() { "$venv/bin/python" -m pip --disable-pip-version-check --no-input "$@"; }

uv_pip() { "$venv/bin/uv" --quiet pip "$1" --python "$venv/bin/python" "${@:2}"; }

uv_line() { awk '/^uv==/ { found = 1 } found { print; if (!/\\$/) exit }' "$lock"; }

install_with() {  # $1: pip or uv_pip
    "$1" install --quiet --require-hashes --no-deps -r "$lock" &&
        "$1" install --quiet --no-deps --no-build-isolation -e .
}

# The value of pip's setting $1: the environment comes before the files.
setting() {
    local place
    for place in :env: install global; do
        sed -nE "/^$place\.$1=/ { s/^[^=]*=['\"](.*)['\"]\$/\1/; s/(\\\\n|[[:space:]])+/ /g; p; q; }" <<<"$settings" | grep . && return
    done
    true
}

# uv does not read pip's settings. What is set for uv itself stays.
tell_uv_where_to_look() {
    local settings
    settings=$(pip config list)
    local index more links certificates cache
    index=$(setting index-url) more=$(setting extra-index-url) links=$(setting find-links) certificates=$(setting cert)
    if [ -n "$index" ]; then export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"; fi
    if [ -n "$more" ]; then export UV_INDEX="${UV_INDEX:-$more}"; fi
    if [ -n "$links" ]; then export UV_FIND_LINKS="${UV_FIND_LINKS:-${links// /,}}"; fi
    if [ -n "$certificates" ]; then export SSL_CERT_FILE="${SSL_CERT_FILE:-$certificates}"; fi
    case $(setting no-index) in 1 | true | yes | on) export UV_NO_INDEX=1 ;; esac
    # A home that cannot be written to has no cache.
    cache=$("$venv/bin/uv" cache dir)
    if ! mkdir -p "$cache" 2>/dev/null || [ ! -w "$cache" ]; then export UV_NO_CACHE=1; fi
}

if ! pip --version >/dev/null 2>&1; then
    python=$(bash tools/python.sh)
    echo "making $venv with $("$python" -V) ($python)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi
echo "installing what $lock names"
if pip install --quiet --require-hashes --no-deps -r <(uv_line) && tell_uv_where_to_look && install_with uv_pip; then
    uv_pip check >/dev/null 2>&1 || uv_pip check
else
    echo "uv could not install it: pip does, which takes minutes" >&2
    install_with pip
    pip check >/dev/null || pip check
fi
