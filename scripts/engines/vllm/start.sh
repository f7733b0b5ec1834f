#!/usr/bin/env bash
# A vLLM server on CPU for contract tests: start.sh VENV MODEL_FOLDER PORT [more vLLM flags]. Loopback only.
# Ready when GET /health answers 200, which takes minutes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$1 model=$2 port=$3
shift 3
# Without compiled bytecode each start takes minutes longer.
unset PYTHONDONTWRITEBYTECODE
# Weight transfer without GPUs: a backend that reads a folder.
export PYTHONPATH="$here/folder-transfer"
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
export VLLM_CPU_KVCACHE_SPACE=1 VLLM_SERVER_DEV_MODE=1 VLLM_ALLOW_RUNTIME_LORA_UPDATING=True
# A seeded request whose prompt is read in parts ends the engine on CPU ("CPU Generator does not use offset").
# The package is named vllm-cpu, so that the command `vllm` does not find itself; the module does.
exec "$venv/bin/python" -m vllm.entrypoints.openai.api_server --model "$model" --served-model-name tiny \
  --host 127.0.0.1 --port "$port" --dtype float32 --max-model-len 1024 --max-num-seqs 64 --enforce-eager --no-enable-chunked-prefill \
  --logprobs-mode processed_logprobs --enable-lora --max-loras 2 --max-cpu-loras 4 --max-lora-rank 8 --weight-transfer-config '{"backend": "folder"}' "$@"
