#!/usr/bin/env bash
# Installs a real server that tests run against into the user's cache, and prints the folder of its virtual environment.
#   scripts/engines/install.sh vllm|skyrl|ray
# The folder is named by the hash of the lock: a second call finds it ready. Needs Python 3.12 and PyPI; takes 10 s (ray)
# to some minutes (vllm, 6 GB). Set ROOTSTEP_PYTHON312 where Python 3.12 is not found.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
. "$here/../python312.sh"
engine=${1:-}
case "$engine" in
  vllm) flags=(--overrides "$here/vllm/overrides.txt") ;;
  skyrl | ray) flags=(--no-deps) ;;
  *)
    echo "usage: install.sh vllm|skyrl|ray" >&2
    exit 2
    ;;
esac

cache=$(rootstep_cache)
hash=$(cat "$here/$engine/"*.txt | sha256sum | cut -c1-12)
venv="$cache/engines/$engine-$hash"

mkdir -p "$cache/engines"
exec 9>"$venv.lock"
flock 9
if [ ! -e "$venv/finished" ]; then
  rm -rf "$venv"
  "$(python312)" -m venv "$venv" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check uv >&2
  for attempt in 1 2 3; do
    VIRTUAL_ENV="$venv" "$venv/bin/uv" pip install --quiet "${flags[@]}" -r "$here/$engine/lock.txt" >&2 && break
    [ "$attempt" -lt 3 ] || exit 1
    echo "installing $engine failed, attempt $attempt; trying again" >&2
  done
  touch "$venv/finished"
fi
echo "$venv"
