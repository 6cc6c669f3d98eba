#!/usr/bin/env bash
# Without arguments: emulate a simulator with ridges, and look at it. `ci/demo.sh --table yacht` fits
# sailing yachts, and `ci/demo.sh [arguments of gpflow-dwp fit]` what they say.
# Needs Python and pip only; ci/environment.sh says what may be chosen.
set -euo pipefail

# shellcheck source=ci/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

what="a simulator with ridges, of which a hundred runs are seen"
trained="An exact Gaussian process and a deep Wishart process are trained: a minute."
if (($#)); then
    what="a table"
    trained="Linear regression, boosting, a Gaussian process and the deep model are trained: a minute."
fi
cat >&2 <<END
A deep Wishart process is fitted to $what.
1. Python's packages are installed in $environment: 2 to 5 minutes, once.
2. TensorFlow is imported: 10 seconds.
3. $trained
4. Scores of what was held out are printed; what is made goes to a folder in runs.
END
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
make_environment cli >"$log" 2>&1 || { cat "$log" >&2; exit 1; }

export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-2}"
if (($# == 0)); then
    python "$root/ci/demo.py"
elif [[ "$*" == "--table yacht" ]]; then
    gpflow-dwp fit
else
    gpflow-dwp fit "$@"
fi
