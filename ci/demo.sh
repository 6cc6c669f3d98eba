#!/usr/bin/env bash
# Fit a deep Wishart process: `ci/demo.sh [arguments of gpflow-dwp fit]`.
# Needs Python and pip only; ci/environment.sh says what may be chosen.
set -euo pipefail

# shellcheck source=ci/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
make_environment cli

export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-2}"
exec gpflow-dwp fit "$@"
