# shellcheck shell=bash
# For scripts that make virtual environments, to be sourced.

# Where environments are kept.
rootstep_cache() {
  echo "${ROOTSTEP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rootstep}"
}

# A Python 3.12: ROOTSTEP_PYTHON312, or one that is found.
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
