#!/usr/bin/env bash
# Build what is released into dist/, check it, and try the wheel in a plain environment: `ci/release.sh`.
# Needs Python and pip only.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet build twine
# From a copy of what is committed, so that nothing else gets in.
git -C "$root" archive HEAD | tar -x -C "$work" --one-top-level=source
"$work/tools/bin/python" -m build --outdir "$root/dist" "$work/source"
"$work/tools/bin/python" -m twine check --strict "$root"/dist/*

wheel="$(find "$root/dist" -name '*.whl' -newer "$work/tools/pyvenv.cfg")"
python3 -m venv "$work/plain"
"$work/plain/bin/python" -m pip install --quiet "$wheel"
cd "$work" && "$work/plain/bin/python" - <<'PYTHON'
import numpy as np

from gpflow_dwp import build_deep_wishart_process, fit, load_model, save_model

X = np.linspace(-2.0, 2.0, 20)[:, None]
model = build_deep_wishart_process((X, np.sin(X)), depth=2, num_inducing=5)
fit(model, (X, np.sin(X)), num_steps=5, progress=False)
save_model(model, "model")
print(load_model("model").predict_y(X[:1]))
PYTHON
du --bytes "$wheel"
