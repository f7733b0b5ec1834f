#!/usr/bin/env bash
# Installs the packages of the agent systems that the framework tests start for real, but for the heavy ones. What is
# installed already is left alone, so it may be run again and again. Needs a build (npm ci makes one).
#
#   scripts/ci/install-systems.sh >systems.log 2>&1 &   # beside the static checks
#   wait $!                                             # before the tests, which get ROOTSTEP_REQUIRE_SYSTEMS=1
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

for attempt in 1 2 3; do
  if node dist/src/cli/bin.js install --all; then exit 0; fi
  echo "install of the agent systems failed, attempt $attempt" >&2
  if [ "$attempt" -lt 3 ]; then sleep 10; fi
done
exit 1
