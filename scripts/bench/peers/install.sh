#!/usr/bin/env bash
# Installs a peer that replay.ts measures into the user's cache, and prints the folder of its virtual environment.
#   scripts/bench/peers/install.sh tracefork|litellm
# The folder is named by the hash of the lock: a second call finds it ready. Needs uv, Python 3.12 and PyPI; takes 10 to 60 s.
# Set ROOTSTEP_PYTHON312 where Python 3.12 is not found. A lock is made anew with
#   uv pip compile --python 3.12 --generate-hashes --no-header --no-annotate PEER.in -o PEER.lock.txt
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
. "$here/../../python312.sh"
peer=${1:-}
lock="$here/$peer.lock.txt"
if [ -z "$peer" ] || [ ! -e "$lock" ]; then
  echo "usage: install.sh tracefork|litellm" >&2
  exit 2
fi
cache=$(rootstep_cache)
venv="$cache/bench-peers/$peer-$(sha256sum "$lock" | cut -c1-12)"

if [ ! -e "$venv/finished" ]; then
  python=$(python312)
  mkdir -p "$cache/bench-peers"
  rm -rf "$venv"
  uv venv --quiet --no-project --no-python-downloads --python "$python" "$venv" >&2
  uv pip install --quiet --python "$venv/bin/python" --compile-bytecode --require-hashes -r "$lock" >&2
  touch "$venv/finished"
fi
echo "$venv"
