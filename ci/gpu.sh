#!/usr/bin/env bash
# Ask a machine with a GPU all at once: `ci/gpu.sh [FOLDER] [TURNS]`.
# Makes an environment of its own, runs the tests that are about devices, compares bounds of the two
# kinds of devices, and measures steps, memory and a training run on both. FOLDER (gpu) gets a JSON
# file or a log of each, with versions. Without a GPU all of it runs on the CPU twice.
set -euo pipefail

folder="$(realpath -m "${1:-gpu}")"
turns="${2:-9}"
# shellcheck source=ci/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
make_environment all
python -m pip install --quiet "tensorflow[and-cuda]==$(python -c 'import importlib.metadata as m; print(m.version("tensorflow"))')"
mkdir -p "$folder"
cd "$root"
nvidia-smi >"$folder/nvidia-smi.txt" 2>&1 || true

pytest tests/training/test_device.py tests/training/test_distribution.py tests/training/test_gpu_kernels.py \
    --runslow 2>&1 | tee "$folder/tests.log" || true

shapes=(yacht-2 yacht-5 protein-5 large-3 larger-3 largest-3)
for device in GPU CPU; do
    if [[ "$device" == CPU ]]; then
        export CUDA_VISIBLE_DEVICES=-1
        unset 'shapes[5]' # minutes a step
    fi
    python - "$folder/bounds-$device.json" <<'PYTHON'
import json
import sys

import gpflow
import numpy as np
import tensorflow as tf

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.data import load_yacht

table = load_yacht()
X, Y = ((part - part.mean(0)) / part.std(0) for part in (table.X, table.Y))
found = {"devices": [device.name for device in tf.config.list_logical_devices()]}
for dtype in (np.float64, np.float32):
    gpflow.config.set_default_float(dtype)
    for output in ("pseudo_targets", "regression"):
        model = build_deep_wishart_process((X, Y), depth=3, output=output)
        bound = float(model.elbo((X, Y), seed=0))
        history = fit(model, (X, Y), num_steps=500, progress=False)
        found[f"{dtype.__name__}, {output}"] = {
            "bound": bound,
            "after 500 steps": float(history.elbo_per_datum[-100:].mean()),
            "seconds": history.seconds,
        }
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(found, file, indent=1)
print(json.dumps(found, indent=1))
PYTHON
    gpflow-dwp benchmark step --models AB A-whitened DGP --dtypes float64 float32 --turns "$turns" \
        --shapes "${shapes[@]}" --json "$folder/step-$device.json"
    gpflow-dwp benchmark memory --shapes yacht-5 protein-5 --json "$folder/memory-$device.json"
done
