#!/usr/bin/env bash
# Builds the collection's documentation as HTML, with its guides, into $1 by the programs in $2. A warning is an error.
set -eu
cd "$(dirname "$0")/.."
into=$1
export PATH=$2:$PATH ANSIBLE_COLLECTIONS_PATH=$PWD LC_ALL=C.UTF-8
rm -rf "$into"
mkdir -p "$into"
install -d -m 755 "$into/rst"  # antsibull-docs refuses others
antsibull-docs collection --use-current --output-format ansible-docsite --use-html-blobs --squash-hierarchy --fail-on-error \
    --dest-dir "$into/rst" hosting.cloud >/dev/null
# Labels of Ansible's own documentation are not known here, so they are no mistakes; those of the collection are checked by antsibull-docs.
sphinx-build -q -W --keep-going -C -D project=hosting.cloud -D extensions=sphinx_antsibull_ext -D html_theme=alabaster \
    -D html_theme_options.page_width=auto -D suppress_warnings=ref.ref,ref.envvar -b html "$into/rst" "$into/html"
