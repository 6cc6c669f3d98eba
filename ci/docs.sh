#!/usr/bin/env bash
# Build the documentation: `ci/docs.sh [--fast|--no-execution]` writes build/docs/index.html.
# The pages are notebooks/*.md, the notebooks, docstrings, README.md and CHANGELOG.md. Every warning,
# every link within the site that leads nowhere, every public name that is missing from the reference,
# every example whose output differs and, where there is a Chromium, whatever ci/docs/check_browser.py
# sees on a page is an error. GPFLOW_DWP_BROWSER=required makes a missing Chromium one, too.
#
#   --fast            notebooks run shortened; their figures mean nothing
#   --no-execution    notebooks do not run
#
# Needs Python and pip only; ci/environment.sh says what may be chosen. GPFLOW_DWP_NO_VENV=1 takes the
# tools that are on the path instead.
set -euo pipefail

# shellcheck source=ci/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
if [[ -z "${GPFLOW_DWP_NO_VENV:-}" ]]; then
    make_environment docs
fi
cd "$root"

case "${1:-}" in
"") export GPFLOW_DWP_DOCS_EXECUTION=force ;;
--fast) export GPFLOW_DWP_DOCS_EXECUTION=force GPFLOW_DWP_FAST=1 ;;
--no-execution) export GPFLOW_DWP_DOCS_EXECUTION=off ;;
*)
    echo "usage: ci/docs.sh [--fast|--no-execution]" >&2
    exit 2
    ;;
esac
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-2}"

rm -rf build/docs # pages that were removed or renamed must not stay
sphinx-build -b html -c ci/docs -W --keep-going -E -q -d build/doctrees notebooks build/docs
python ci/docs/check_links.py build/docs
python ci/docs/check_browser.py build/docs
pytest -q --runslow tests/test_guides.py
echo "build/docs/index.html"
