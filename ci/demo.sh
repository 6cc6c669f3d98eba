#!/usr/bin/env bash
# Fit a deep Wishart process: `ci/demo.sh [arguments of gpflow-dwp fit]`.
# Needs Python and pip only; ci/environment.sh says what may be chosen.
set -euo pipefail

# shellcheck source=ci/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

cat >&2 <<END
A deep Wishart process is fitted to a table: by default the resistance of 308 sailing yachts.
1. Python's packages are installed in $environment: 2 to 5 minutes, once.
2. TensorFlow is imported: 10 seconds.
3. Linear regression, boosting, a Gaussian process and the deep model are trained: a minute.
4. Scores of rows that were held out are printed; model and figures go to a folder in runs.
END
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
make_environment cli >"$log" 2>&1 || { cat "$log" >&2; exit 1; }

export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-2}"
gpflow-dwp fit "$@"
