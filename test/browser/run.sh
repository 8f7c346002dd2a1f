#!/usr/bin/env bash
# Opens the memory report and the live page in headless Chromium: light and dark, wide and narrow, keyboard, console, reconnects.
# ZEROSHARD_SHOTS=DIR keeps screenshots. With --install, a missing Chromium is installed from Debian's packages.
set -euo pipefail
cd "$(dirname "$0")"
found() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
if ! found >/dev/null && [ "${1:-}" = --install ] && command -v apt-get >/dev/null; then
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } ||
		echo 'Chromium cannot be installed here'
fi
if ! found >/dev/null; then
	echo 'skipped: no Chromium (apt-get install chromium, or run with --install)'
	exit 0
fi
go test -tags browser -count=1 -timeout 10m ./...
