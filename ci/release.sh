#!/usr/bin/env bash
# Build what is released into dist/, check it, and try the wheel in a plain environment, by the
# commands of the guide to installing: `ci/release.sh`.
# Needs Python and pip only.
#
#   PYTHON            the Python to try it with                     (default: python3)
#   GPFLOW_DWP_URL    where the repository is, for links of the package
#                     (default: GitHub's, in its workflows; else that of the remote "origin", if it
#                     has an https address; else the package has no links)
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="${PYTHON:-python3}"
most_bytes=500000
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

url="${GPFLOW_DWP_URL:-}"
if [[ -z "$url" && -n "${GITHUB_REPOSITORY:-}" ]]; then
    url="$GITHUB_SERVER_URL/$GITHUB_REPOSITORY"
elif [[ -z "$url" ]]; then
    url="$(git -C "$root" remote get-url origin 2>/dev/null | grep '^https://' | sed 's/\.git$//' || true)"
fi
[[ -n "$url" ]] || echo "no GPFLOW_DWP_URL: the package gets no links" >&2
ref="$(git -C "$root" describe --tags --exact-match 2>/dev/null || git -C "$root" rev-parse HEAD)"

"$python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet --require-hashes --requirement "$root/ci/requirements-release.txt"
# From a copy of what is committed, so that nothing else gets in.
git -C "$root" archive HEAD | tar -x -C "$work" --one-top-level=source
"$work/tools/bin/python" "$root/ci/describe.py" "$work/source" "$url" "$ref"
"$work/tools/bin/python" -m build --no-isolation --outdir "$work/dist" "$work/source"
"$work/tools/bin/python" -m twine check --strict "$work"/dist/*
mkdir -p "$root/dist"
cp "$work"/dist/* "$root/dist"

wheel="$(echo "$work"/dist/*.whl)"
if (($(stat --format %s "$wheel") > most_bytes)); then
    echo "$wheel has more than $most_bytes bytes: $(stat --format %s "$wheel")" >&2
    exit 1
fi

# Of the guide, the command that installs a wheel, and from Python 3.13 on the one that adds GPflow.
"$python" -m venv "$work/plain"
# shellcheck disable=SC1091
source "$work/plain/bin/activate"
cd "$work/dist"
installing="$(grep '^python -m pip install .*\.whl\[' "$root/notebooks/how-to/install.md")"
if python -c 'import sys; sys.exit(sys.version_info < (3, 13))'; then
    installing+=$'\n'"$(grep -m 1 '^python -m pip install --no-deps' "$root/notebooks/how-to/install.md")"
fi
while read -r command; do
    echo "$command"
    PIP_QUIET=1 bash -c "$command" </dev/null
done <<<"$installing"

cd "$work"
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-2}"
python - <<'PYTHON'
import numpy as np

from gpflow_dwp import build_deep_wishart_process, fit, load_model, save_model

X = np.linspace(-2.0, 2.0, 20)[:, None]
model = build_deep_wishart_process((X, np.sin(X)), depth=2, num_inducing=5)
fit(model, (X, np.sin(X)), num_steps=5, progress=False)
save_model(model, "model")
print(load_model("model").predict_y(X[:1]))
PYTHON
gpflow-dwp fit --out run --num-steps 20 --depth 2 --num-inducing 10 >/dev/null
gpflow-dwp info run >/dev/null
du --bytes "$wheel"
for part in "$work/plain"/lib/python*/site-packages/{,tensorflow}; do
    du --summarize --block-size 1M "$part"
done
