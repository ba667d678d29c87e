#!/usr/bin/env bash
# Builds Pulumi's CLI and its hosts for Python and Node.js programs from public Go modules, into the directory $1.
# `go install` refuses modules with replace directives, so each part is built from a small module of ours that pins it.
# Nothing is installed until all is built: a `pulumi` without the host for Python would be found, and fail.
set -eu
into=$(mkdir -p "$1" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
sdk=github.com/pulumi/pulumi/sdk/v3

command -v go >/dev/null || { echo "this builds with Go, which is not on PATH. Next: install Go 1.25 or later, or Pulumi itself" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GOFLAGS="-mod=mod${JOBS:+ -p=$JOBS}" CGO_ENABLED=0  # JOBS=1: leave the other cores alone

for part in hosts cli; do
    cp -r "$here/$part" "$work/$part"
    cd "$work/$part"
    version=$(go list -m -f '{{.Version}}' "$sdk")
    echo "building $part $version, which takes minutes the first time"
    nice go build -o "$work/bin/" -ldflags "-s -w -X $sdk/go/common/version.Version=$version" tool
done

# What the host for Python starts is Python and shell. It is taken from the CLI's version, so that it fits today's SDK.
scripts=$(go list -m -f '{{.Dir}}' "$sdk")
for script in python/cmd/pulumi-language-python-exec python/dist/pulumi-resource-pulumi-python nodejs/dist/pulumi-resource-pulumi-nodejs; do
    install -m 755 "$scripts/$script" "$work/bin/"
done

install -m 755 "$work"/bin/* "$into/"
echo "pulumi $("$into/pulumi" version) is in $into"
