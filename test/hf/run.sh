#!/usr/bin/env bash
# Checks models/gpt/hf against transformers and torch, checkpoint/safetensors against the format's reference reader, and the commands
# export, import, generate and prepare end to end: folders written there give the same logits, loss, ids and greedy text here, and folders
# written here give the same there.
#
# The Python packages come from PyPI into a virtual environment outside the tree (PEERS_CACHE, shared with bench/peers: 6 GB, most of it
# PyTorch's GPU libraries, which nothing here uses; about a minute and a half, once). Where that cannot be, the check is skipped, and says why.
# ZEROSHARD_HF_PYTHON names an interpreter that has the packages already. --within SECONDS bounds the installation (600).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
within=600
[ "${1:-}" != --within ] || within=$2

skip() { echo "skipped: $*"; exit 0; }
have() { "$1" -c 'import torch, transformers, safetensors, numpy' 2>/dev/null; }

python=${ZEROSHARD_HF_PYTHON:-}
if [ -n "$python" ]; then
	have "$python" || { echo "$python does not have torch, transformers, safetensors and numpy" >&2; exit 1; }
else
	command -v python3 >/dev/null || skip 'there is no python3'
	cache=${PEERS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/zeroshard-bench}
	mkdir -p "$cache"
	python=$cache/venv/bin/python
	if [ ! -x "$python" ]; then
		python3 -m venv "$cache/venv" >"$cache/venv.log" 2>&1 || skip 'python3 makes no virtual environment (Debian: python3-venv)'
	fi
	if ! have "$python"; then
		echo 'installing PyTorch and transformers from PyPI (6 GB, once)'
		limit=; ! command -v timeout >/dev/null || limit="timeout $within"
		$limit "$python" -m pip install --quiet --retries 1 'torch>=2,<3' 'transformers>=4.45,<6' safetensors numpy threadpoolctl >"$cache/pip.log" 2>&1 ||
			skip "PyPI does not give the packages within $within s: $(tail -n 1 "$cache/pip.log")"
		have "$python" || skip 'the packages from PyPI do not load on this machine'
	fi
fi
cd "$root"
export ZEROSHARD_HF_PYTHON=$python PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error TQDM_DISABLE=1
go test -count=1 -v -run '^TestPython' ./models/gpt/hf ./checkpoint/safetensors
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
CGO_ENABLED=0 go build -o "$tmp/zeroshard" ./cmd/zeroshard
mkdir "$tmp/work"
"$python" "$here/commands.py" "$tmp/zeroshard" "$tmp/work"
