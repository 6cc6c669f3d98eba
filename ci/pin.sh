#!/usr/bin/env bash
# Write the two pinned sets anew, for all Python versions of pyproject.toml at once:
#   requirements-newest.txt   the newest version of everything that fits together
#   requirements-oldest.txt   the oldest version that pyproject.toml allows of what it names
# Without the extra rivals, whose packages hold pandas below 3 for all others.
# Needs uv (pip install uv). Run ci/test.sh with both sets afterwards.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# A bare copy, so that uv leaves no lock file and no environment in the checkout.
cp "$root/LICENSE" "$work"
grep -v '^rivals = ' "$root/pyproject.toml" >"$work/pyproject.toml"
touch "$work/README.md"
mkdir "$work/gpflow_dwp"
touch "$work/gpflow_dwp/__init__.py"
cd "$work"

pin() {
    local name="$1" resolution="$2"
    rm -f uv.lock
    uv lock --quiet --resolution "$resolution"
    {
        echo "# Made by ci/pin.sh: uv lock --resolution $resolution, then uv export, with $(uv --version | cut -d' ' -f1,2)."
        echo "# Every dependency of every extra of gpflow-dwp but peers and rivals, for CPython 3.10, 3.11 and 3.12; CPU wheels on Linux."
        # Peers bring PyTorch, gigabytes that nothing else needs.
        uv export --quiet --frozen --all-extras --no-extra peers --no-emit-project \
            --no-hashes --no-annotate --no-header
    } >"$root/ci/requirements-$name.txt"
}

pin newest highest
pin oldest lowest-direct
