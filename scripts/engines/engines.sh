#!/usr/bin/env bash
# Real servers for the tests, on loopback, each in a process group of its own.
#   engines.sh start FOLDER    installs and starts them in the background; returns at once
#   engines.sh wait FOLDER     until all are ready; fails with their logs if one is not within 10 minutes
#   engines.sh stop FOLDER
#   engines.sh restart FOLDER vllm|skyrl|ray    kills one at once and starts it on the same port; `wait` as before
# FOLDER/env holds what tests read: `. FOLDER/env && npm test`. FOLDER should have a short path (Ray's sockets live there).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
verb=${1:-} folder=${2:-}
if [ -z "$folder" ]; then
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
engines=(vllm skyrl ray)
ready_within=600

free_ports() {
  node -e '
    const net = require("net");
    const servers = Array.from({ length: Number(process.argv[1]) }, () => net.createServer().listen(0, "127.0.0.1"));
    Promise.all(servers.map((s) => new Promise((r) => s.on("listening", () => r(s.address().port)))))
      .then((ports) => { console.log(ports.join(" ")); servers.forEach((s) => s.close()); });
  ' "$1"
}

# Installs one engine, then becomes it.
run_engine() {
  local venv
  venv=$("$here/install.sh" "$1")
  # shellcheck disable=SC1091
  . "$folder/env"
  case "$1" in
    vllm) exec "$here/vllm/start.sh" "$venv" "$ROOTSTEP_TINY_MODEL" "$vllm_port" ;;
    skyrl) exec "$here/skyrl/start.sh" "$venv" "$ROOTSTEP_TINY_MODEL" "$skyrl_port" "$folder/skyrl" ;;
    ray)
      # On a busy machine its parts may not find each other within its own limit of 30 s.
      for _ in 1 2 3 4; do
        RAY_AUTH_TOKEN=$ROOTSTEP_RAY_TOKEN "$here/ray/start.sh" "$venv" "$ray_port" "$gcs_port" "$folder/ray" && return
      done
      return 1
      ;;
  esac
}

start() {
  mkdir -p "$folder"
  folder=$(cd "$folder" && pwd)
  read -r vllm_port skyrl_port ray_port gcs_port < <(free_ports 4)
  # Either of the two Python engines has what the tiny model's script needs; SkyRL is the smaller.
  local venv
  venv=$("$here/install.sh" skyrl)
  "$venv/bin/python" "$here/tiny_qwen3.py" "$folder/tiny-0" 0
  "$venv/bin/python" "$here/tiny_qwen3.py" "$folder/tiny-1" 1
  cat >"$folder/env" <<ENV
export ROOTSTEP_REQUIRE_ENGINES=1
export ROOTSTEP_ENGINES_FOLDER="$folder"
export ROOTSTEP_ENGINE_PYTHON="$venv/bin/python"
export ROOTSTEP_TINY_MODEL="$folder/tiny-0"
export ROOTSTEP_TINY_MODEL_OTHER="$folder/tiny-1"
export ROOTSTEP_VLLM_URL="http://127.0.0.1:$vllm_port"
export ROOTSTEP_SKYRL_URL="http://127.0.0.1:$skyrl_port"
export ROOTSTEP_SKYRL_STATE="$folder/skyrl"
export ROOTSTEP_RAY_URL="http://127.0.0.1:$ray_port"
export ROOTSTEP_RAY_TOKEN="$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')"
vllm_port=$vllm_port skyrl_port=$skyrl_port ray_port=$ray_port gcs_port=$gcs_port
ENV
  local engine
  for engine in "${engines[@]}"; do begin "$engine"; done
}

begin() {
  setsid "$0" run-engine "$folder" "$1" >>"$folder/$1.log" 2>&1 </dev/null &
  echo $! >"$folder/$1.pid"
}

restart() {
  local pid
  pid=$(cat "$folder/$1.pid")
  kill -KILL -- "-$pid" 2>/dev/null || true
  # The port is free when the last of the group is gone.
  for _ in $(seq 40); do
    kill -0 -- "-$pid" 2>/dev/null || break
    sleep 0.5
  done
  begin "$1"
}

ready() {
  # shellcheck disable=SC1091
  . "$folder/env"
  case "$1" in
    vllm) curl -sf -o /dev/null "$ROOTSTEP_VLLM_URL/health" ;;
    skyrl) curl -sf -o /dev/null "$ROOTSTEP_SKYRL_URL/api/v1/healthz" ;;
    ray) curl -sf -o /dev/null -H "Authorization: Bearer $ROOTSTEP_RAY_TOKEN" "$ROOTSTEP_RAY_URL/api/jobs/" ;;
  esac
}

wait_ready() {
  local engine waited=0
  for engine in "${engines[@]}"; do
    until ready "$engine"; do
      if [ "$waited" -ge "$ready_within" ] || ! kill -0 "$(cat "$folder/$engine.pid")" 2>/dev/null; then
        echo "$engine is not ready after $waited s; the end of its log:" >&2
        tail -n 40 "$folder/$engine.log" >&2
        return 1
      fi
      sleep 2
      waited=$((waited + 2))
    done
    echo "$engine is ready"
  done
}

stop() {
  local engine pid
  for engine in "${engines[@]}"; do
    [ -e "$folder/$engine.pid" ] || continue
    pid=$(cat "$folder/$engine.pid")
    kill -TERM -- "-$pid" 2>/dev/null || continue
    for _ in $(seq 40); do
      kill -0 -- "-$pid" 2>/dev/null || break
      sleep 0.5
    done
    kill -KILL -- "-$pid" 2>/dev/null || true
    rm -f "$folder/$engine.pid"
  done
}

case "$verb" in
  start) start ;;
  wait) wait_ready ;;
  stop) stop ;;
  restart) restart "$3" ;;
  run-engine) run_engine "$3" ;;
  *)
    echo "unknown verb $verb" >&2
    exit 2
    ;;
esac
