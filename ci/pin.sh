#!/usr/bin/env bash
# Write the two pinned sets anew, with hashes, each for several Python versions at once:
#   requirements-newest.txt   the newest version of everything that fits together
#   requirements-oldest.txt   the oldest version that pyproject.toml allows of what it names
# and requirements-release.txt, the tools of the release, and requirements-tools.txt: uv, which this
# script runs, and virtualenv, for Pythons that come without their own.
# Without the extra rivals, whose packages hold pandas below 3 for all others.
# Needs Python and pip only. Run ci/test.sh with both sets afterwards.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/tools"
sed -n '/^uv==/,/[^\\]$/p' "$root/ci/requirements-tools.txt" >"$work/uv.txt"
"$work/tools/bin/python" -m pip install --quiet --require-hashes --requirement "$work/uv.txt"
PATH="$work/tools/bin:$PATH"

# A bare copy, so that uv leaves no lock file and no environment in the checkout.
cp "$root/LICENSE" "$work"
grep -v '^rivals = ' "$root/pyproject.toml" >"$work/pyproject.toml"
touch "$work/README.md"
mkdir "$work/gpflow_dwp"
touch "$work/gpflow_dwp/__init__.py"
cd "$work"

pin() {
    local name="$1" resolution="$2" newest_python="$3"
    rm -f uv.lock
    sed -i "s/^requires-python = .*/requires-python = \">=3.10,<3.$((newest_python + 1))\"/
        /python_version >= '3.$((newest_python + 1))'/d" pyproject.toml
    uv lock --quiet --resolution "$resolution"
    {
        echo "# Made by ci/pin.sh: uv lock --resolution $resolution, then uv export, with $(uv --version | cut -d' ' -f1,2)."
        echo "# Every dependency of every extra of gpflow-dwp but peers and rivals, for CPython 3.10 to 3.$newest_python; CPU wheels on Linux."
        # Peers bring PyTorch, gigabytes that nothing else needs.
        uv export --quiet --frozen --all-extras --no-extra peers --no-emit-project \
            --no-annotate --no-header
    } >"$root/ci/requirements-$name.txt"
}

pin_tools() {
    local name="$1" purpose="$2"
    shift 2
    {
        echo "# Made by ci/pin.sh with $(uv --version | cut -d' ' -f1,2): $purpose, for CPython 3.10 and later."
        printf '%s\n' "$@" | uv pip compile - --quiet --generate-hashes --universal \
            --python-version 3.10 --no-annotate --no-header
    } >"$root/ci/requirements-$name.txt"
}

pin_tools tools "what ci/pin.sh and ci/environment.sh run" uv virtualenv
pin_tools release "what ci/release.sh builds and checks with" build twine setuptools wheel
pin newest highest 13
pin oldest lowest-direct 12 # no TensorFlow before 2.20 has wheels for 3.13
