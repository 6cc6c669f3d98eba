#!/usr/bin/env bash
# Ask a machine with a GPU all at once: `ci/gpu.sh [FOLDER] [TURNS]`.
# Makes an environment of its own, runs the tests of what computes on the GPU, compares bounds,
# gradients and trainings with those on the CPU, and times steps on both. FOLDER (gpu) gets a JSON
# file or a log of each.
set -euo pipefail

folder="$(realpath -m "${1:-gpu}")"
turns="${2:-5}"
# shellcheck source=ci/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
make_environment all
python -m pip install --quiet "tensorflow[and-cuda]==$(python -c 'import importlib.metadata as m; print(m.version("tensorflow"))')"
mkdir -p "$folder"
cd "$root"
nvidia-smi >"$folder/nvidia-smi.txt"

for device in GPU CPU; do
    python - "$device" "$folder/bounds-$device.json" <<'PYTHON'
import json
import sys

import gpflow
import numpy as np
import tensorflow as tf

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.data import load_yacht

if sys.argv[1] == "CPU":
    tf.config.set_visible_devices([], "GPU")
elif not tf.config.list_physical_devices("GPU"):
    sys.exit("TensorFlow finds no GPU.")
table = load_yacht()
X, Y = ((part - part.mean(0)) / part.std(0) for part in (table.X, table.Y))
found = {}
for dtype in (np.float64, np.float32):
    gpflow.config.set_default_float(dtype)
    for output in ("pseudo_targets", "regression"):
        model = build_deep_wishart_process((X, Y), depth=3, output=output)
        with tf.GradientTape() as tape:
            bound = model.elbo((X, Y), seed=0)
        gradients = tape.gradient(bound, model.trainable_variables, unconnected_gradients="zero")
        history = fit(model, (X, Y), num_steps=300, progress=False)
        found[f"{dtype.__name__}, {output}"] = {
            "bound": float(bound),
            "gradient norm": float(tf.linalg.global_norm(gradients)),
            "per datum after 100 steps": float(history.elbo_per_datum[99]),
            "mean of the last 100 of 300": float(history.elbo_per_datum[-100:].mean()),
            "seconds": history.seconds,
        }
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump(found, file, indent=1)
print(json.dumps(found, indent=1))
PYTHON
done
python ci/benchmark.py gpu --turns "$turns" --out "$folder/steps.csv"
python ci/benchmark.py gpu --turns "$turns" --shapes largest-3 --out "$folder/steps.csv"

# Many processes share the GPU.
export TF_FORCE_GPU_ALLOW_GROWTH=true
pytest -n auto tests/test_golden.py tests/test_linalg.py tests/test_objectives.py tests/test_random.py \
    tests/bijectors tests/distributions tests/estimator tests/iterates tests/kernels \
    tests/latent_variable_deep_gp tests/layers tests/likelihoods tests/matrix_gaussian tests/models \
    tests/selection tests/training 2>&1 | tee "$folder/tests.log"
