#!/usr/bin/env bash
# Run tests that are slow, or beside what is not released or not a dependency: `ci/nightly.sh WHAT`.
#
#   tfp-nightly    all tests, with the nightly build of TensorFlow Probability
#   trieste        Trieste's loop over our models, in an environment that Trieste chooses
#   guides         guides that need Optuna or MLflow
#   slow           all tests, the slow ones too
#   cases          the default model on six cases, which must not be far behind what is kept
#
# Each makes an environment of its own, .venv-nightly-WHAT. Needs Python and pip only.
set -euo pipefail

what="${1:-}"
export GPFLOW_DWP_VENV="${GPFLOW_DWP_VENV:-$(dirname "${BASH_SOURCE[0]}")/../.venv-nightly-$what}"
# shellcheck source=ci/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "$root"
export TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1 OMP_NUM_THREADS=1

case "$what" in
tfp-nightly)
    make_environment all
    pip uninstall --quiet --yes tensorflow-probability
    pip install --quiet --upgrade tfp-nightly
    pytest --numprocesses 2 --dist worksteal
    ;;
trieste)
    make_virtual_environment "$(find_python)"
    # shellcheck disable=SC1091
    source "$environment/bin/activate"
    python -m pip install --quiet "trieste>=4" "pytest>=9" "hypothesis>=6.160" --editable ".[cli,sklearn]"
    pytest -W default --runslow tests/test_guides.py tests/serving/test_bayesian_optimization.py -k "trieste or bayesian"
    ;;
guides)
    make_environment all
    pip install --quiet "optuna>=4" "mlflow>=3" # which moves some pins
    pytest -W default --runslow tests/test_guides.py # what they warn of themselves is theirs
    ;;
slow)
    make_environment all
    pytest --numprocesses 2 --dist worksteal --runslow
    ;;
cases)
    make_environment all
    python ci/default_model.py --problems step cliff schaffer4 borehole ratings share \
        --methods default --seeds 0 --out "build/nightly-$(date +%s).jsonl" --check
    ;;
*)
    echo "usage: ci/nightly.sh tfp-nightly|trieste|guides|slow|cases" >&2
    exit 2
    ;;
esac
