#!/usr/bin/env bash
# Style and types, with the tools on the path; ci/test.sh runs it in the pinned environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ruff format --check
ruff check
mypy
shellcheck --external-sources ci/*.sh .ci/run
