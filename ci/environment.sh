# shellcheck shell=bash
# Sourced by the scripts beside it. After `make_environment EXTRA` the environment is active and
# holds gpflow-dwp[EXTRA], with this checkout as an editable install and all else as pinned.
#
#   PYTHON             the Python to make it with           (default: the first that will do)
#   GPFLOW_DWP_VENV    where it lies                        (default: .venv-ci in the checkout)
#   GPFLOW_DWP_PINS    newest or oldest: which pinned set   (default: newest)
#
# What it holds is noted inside it, so a second run installs nothing. It is made anew when the pins,
# pyproject.toml, Python, the place of the checkout or this file changed, or when an earlier run was
# stopped while installing.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
environment="${GPFLOW_DWP_VENV:-$root/.venv-ci}"
pins="$root/ci/requirements-${GPFLOW_DWP_PINS:-newest}.txt"

describe_environment() {
    "$1" -c 'import sys; print(sys.version, sys.base_prefix)'
    echo "$root"
    cat "$pins" "$root/ci/requirements-tools.txt" "$root/pyproject.toml" "$root/ci/environment.sh"
}

find_python() {
    local name
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
        if "$name" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null
        then
            echo "$name"
            return
        fi
    done
    echo "gpflow-dwp needs Python 3.10, 3.11, 3.12 or 3.13; name one in PYTHON" >&2
    return 2
}

make_virtual_environment() {
    local python="$1" needed="$notes/virtualenv.txt"
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        "$python" -m venv "$environment"
    else # some Linux distributions ship Python without these two
        sed '/^uv==/,/[^\\]$/d' "$root/ci/requirements-tools.txt" >"$needed"
        "$python" -m pip install --quiet --require-hashes --target "$environment/.virtualenv" --requirement "$needed"
        PYTHONPATH="$environment/.virtualenv" "$python" -m virtualenv --quiet "$environment"
    fi
}

check_environment() {
    local complaints
    complaints="$(pip check | grep -v -e '^No broken requirements' -e '^gpflow .* has requirement numpy<2' || true)"
    if [[ -n "$complaints" ]]; then
        echo "$complaints" >&2
        return 1
    fi
}

# The names of what an extra lacks, by the pinned versions; nothing is installed.
needed_by() {
    local versions="$notes/versions.txt" report="$notes/report.json"
    sed -e '/^ /d' -e 's/ *\\$//' "$pins" >"$versions"
    pip install --quiet --dry-run --report "$report" --constraint "$versions" \
        --no-build-isolation --editable "${root}[$1]" >&2
    python - "$report" <<'PYTHON'
import json, re, sys

names = {each["metadata"]["name"] for each in json.load(open(sys.argv[1]))["install"]}
print(*sorted(re.sub("[-_.]+", "-", name).lower() for name in names - {"gpflow-dwp"}))
PYTHON
}

# Install packages by name: archives whose hashes are not those that are pinned are refused.
install_pinned() {
    awk -v names=" $* " '/^[^ #]/ { split($1, part, "=="); on = index(names, " " part[1] " ") } on' \
        "$pins" | sed '/^gpflow==/s/ ;[^\\]*/ /' >"$notes/requirements.txt"
    if [[ -s "$notes/requirements.txt" ]]; then
        pip install --quiet --require-hashes --no-deps --requirement "$notes/requirements.txt"
    fi
}

make_environment() {
    local extra="$1" notes="$environment/.gpflow-dwp" python description

    if [[ ! -f "$pins" ]]; then
        echo "GPFLOW_DWP_PINS must be newest or oldest, got ${GPFLOW_DWP_PINS:-}" >&2
        return 2
    fi
    python="$(find_python)"
    export PIP_DISABLE_PIP_VERSION_CHECK=1

    description="$(describe_environment "$python")"
    if [[ -e "$notes/installing" || ! -e "$notes/description" ||
        "$(<"$notes/description")" != "$description" ]]; then
        if [[ ! -e "$notes" && -n "$(ls -A "$environment" 2>/dev/null)" ]]; then
            echo "$environment was not made by this script; it stays as it is" >&2
            return 2
        fi
        echo "making $environment" >&2
        mkdir -p "$notes"
        touch "$notes/installing"
        # The note of being unfinished stays until the end, wherever this is stopped.
        find "$environment" -mindepth 1 -maxdepth 1 ! -path "$notes" -exec rm -rf {} +
        rm -f "$notes/description" "$notes"/has-*
        make_virtual_environment "$python"
        echo "$description" >"$notes/description"
        rm "$notes/installing"
    fi
    # shellcheck disable=SC1091
    source "$environment/bin/activate"

    if [[ ! -e "$notes/has-$extra" ]]; then
        touch "$notes/installing"
        # setuptools first: building the editable install with it fetches nothing that is not pinned.
        install_pinned setuptools wheel
        # shellcheck disable=SC2046
        install_pinned $(needed_by "$extra")
        pip install --quiet --no-deps --no-build-isolation --editable "${root}[$extra]"
        # On Python 3.13 pyproject.toml leaves GPflow to a command of its own, which ignores its numpy < 2.
        if ! python -c 'import gpflow' 2>/dev/null; then
            install_pinned gpflow
        fi
        check_environment
        touch "$notes/has-$extra"
        rm "$notes/installing"
    fi
}
