#!/usr/bin/env bash
# Runs zeroshard and its peers in turn on this machine and prints ratios: PyTorch training, AdamW, collectives (gloo, Open MPI), and
# OpenBLAS products. Under eight minutes on two quiet cores.
#
#   bench/peers/run.sh                   everything
#   bench/peers/run.sh --quick           the small models and sizes, about a minute
#   bench/peers/run.sh --only train      one of: start train memory adamw collectives sgemm
#   bench/peers/run.sh --json FILE       also the figures, one JSON object on a line
#
# PyTorch and numpy come from PyPI, the newest, into a virtual environment outside the tree (PEERS_CACHE; 5 GB with PyTorch's GPU
# libraries, which nothing here uses). Where PyPI cannot be reached the comparison is skipped, and says so. Open MPI and DeepSpeed are
# compared where they are installed already: mpicc and mpirun on the PATH, deepspeed in the environment.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${PEERS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/zeroshard-bench}
venv=$cache/venv

skip() { echo "skipped: $*"; exit 0; }

command -v python3 >/dev/null || skip 'there is no python3'
mkdir -p "$cache"
if [ ! -x "$venv/bin/python" ]; then
	python3 -m venv "$venv" || skip 'python3 makes no virtual environment (Debian: python3-venv)'
fi
if ! "$venv/bin/python" -c 'import torch, numpy, threadpoolctl' 2>/dev/null; then
	echo 'installing PyTorch from PyPI (some gigabytes, once)'
	"$venv/bin/pip" install --quiet 'torch>=2,<3' numpy threadpoolctl >"$cache/pip.log" 2>&1 ||
		skip "PyTorch cannot be installed from PyPI: $(tail -n 1 "$cache/pip.log")"
fi
(cd "$root" && CGO_ENABLED=0 go build -o "$cache/zeroshard" ./cmd/zeroshard)
export PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" "$here/compare.py" --zeroshard "$cache/zeroshard" --cache "$cache" "$@"
