#!/usr/bin/env bash
# A Ray head with the Jobs REST API on loopback for tests: start.sh VENV DASHBOARD_PORT GCS_PORT FOLDER. The token is read
# from RAY_AUTH_TOKEN. End it by its process group; never by `ray stop`, which ends every Ray on the host.
set -euo pipefail
venv=$1 dashboard=$2 gcs=$3 folder=$4
: "${RAY_AUTH_TOKEN:?a token that callers must show}"
unset PYTHONDONTWRITEBYTECODE
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN RAY_USAGE_STATS_ENABLED=0
# Else the address 127.0.0.1 is replaced by the machine's outside address.
export RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0
exec "$venv/bin/ray" start --head --block --node-ip-address=127.0.0.1 --port="$gcs" --dashboard-host=127.0.0.1 \
  --dashboard-port="$dashboard" --include-dashboard=true --disable-usage-stats --dashboard-agent-listen-port=0 \
  --min-worker-port=0 --max-worker-port=0 --num-cpus=2 --object-store-memory=100000000 --temp-dir="$folder"
