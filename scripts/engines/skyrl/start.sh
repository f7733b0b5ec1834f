#!/usr/bin/env bash
# SkyRL's Tinker server (JAX on CPU) for contract tests: start.sh VENV MODEL_FOLDER PORT STATE_FOLDER. Loopback only.
# /api/v1/healthz answers before the engine is ready; requests wait. End it by its process group.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$1 model=$2 port=$3 state=$4
mkdir -p "$state"
unset PYTHONDONTWRITEBYTECODE
export SKYRL_PYTHON="$venv/bin/python" PATH="$here/bin:$PATH" PYTHONPATH="$here/shims"
export JAX_PLATFORMS=cpu HF_HUB_OFFLINE=1 HF_HUB_DISABLE_TELEMETRY=1 DO_NOT_TRACK=1
# Compiled programs are kept: a cold start compiles for two minutes.
export JAX_COMPILATION_CACHE_DIR="${JAX_COMPILATION_CACHE_DIR:-$venv/jax-cache}"
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
exec "$venv/bin/python" "$here/launch.py" -- --base-model "$model" --backend jax \
  --backend-config '{"max_lora_adapters":4,"max_lora_rank":8,"train_micro_batch_size":1,"sample_max_num_sequences":4}' \
  --checkpoints-base "$state/checkpoints" --database-url "sqlite:///$state/tinker.db" --host 127.0.0.1 --port "$port"
