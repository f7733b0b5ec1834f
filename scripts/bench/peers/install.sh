#!/usr/bin/env bash
# Installs a peer that replay.ts measures into the user's cache, and prints the folder of its virtual environment.
#   scripts/bench/peers/install.sh tracefork|litellm
# The folder is named by the hash of the lock: a second call finds it ready. Needs uv, Python 3.12 and PyPI; takes 10 to 60 s.
# Set ROOTSTEP_PYTHON312 where Python 3.12 is not found. A lock is made anew with
#   uv pip compile --python 3.12 --generate-hashes --no-header --no-annotate PEER.in -o PEER.lock.txt
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
peer=${1:-}
lock="$here/$peer.lock.txt"
if [ -z "$peer" ] || [ ! -e "$lock" ]; then
  echo "usage: install.sh tracefork|litellm" >&2
  exit 2
fi
cache=${ROOTSTEP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rootstep}
venv="$cache/bench-peers/$peer-$(sha256sum "$lock" | cut -c1-12)"

python312() {
  local candidate
  for candidate in "${ROOTSTEP_PYTHON312:-}" python3.12 python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "Python 3.12 was not found; install it, or name it in ROOTSTEP_PYTHON312" >&2
  return 1
}

if [ ! -e "$venv/finished" ]; then
  python=$(python312)
  mkdir -p "$cache/bench-peers"
  rm -rf "$venv"
  uv venv --quiet --no-project --no-python-downloads --python "$python" "$venv" >&2
  uv pip install --quiet --python "$venv/bin/python" --compile-bytecode --require-hashes -r "$lock" >&2
  touch "$venv/finished"
fi
echo "$venv"
