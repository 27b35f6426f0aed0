#!/usr/bin/env bash
# Make sure that the browser tests have a Chromium and a Korean font, or say in one sentence why they are skipped.
# `browser.sh required` fails where there is none.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }

missing() {
    if [ "$need" = required ]; then
        say "$1 Nothing may be skipped here."
        exit 1
    fi
    say "$1 The browser tests are skipped."
    exit 0
}

need=${1:-}

runs() { [ -n "$1" ] && "$1" --version >/dev/null 2>&1; }

for candidate in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
    if runs "$candidate"; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "Installing Chromium for the browser tests"
    if apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-noto-cjk >/dev/null; then
        exit 0
    fi
    missing "Chromium could not be installed."
fi
missing "No Chromium found. Install one (apt-get install chromium fonts-noto-cjk) or set CHROMIUM=/path/to/it."
