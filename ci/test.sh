#!/usr/bin/env bash
# Check style and types, then run the tests: `ci/test.sh [arguments of pytest]`.
# Needs Python and pip only; ci/environment.sh says what may be chosen.
set -euo pipefail

# shellcheck source=ci/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
make_environment all
cd "$root"

# With the oldest versions and with numpy 2 only behaviour is checked: their type hints are others.
if [[ "${GPFLOW_DWP_PINS:-newest}" == newest ]] &&
    python -c 'import sys, numpy; sys.exit(not numpy.__version__.startswith("1."))'; then
    ci/check.sh
fi

# Two workers, one thread each: TensorFlow would give every worker a thread for every core.
export TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1 OMP_NUM_THREADS=1
pytest --numprocesses 2 --dist worksteal --durations 15 "$@"
