#!/usr/bin/env bash
# Installs MetaGPT (nearly 1 GB: too much for each CI run) and runs its conformance suite: record, identity gate,
# counterfactual rerun, retries, against the simulator. Needs Python 3.11. Ends with the suite's own exit status.
set -euo pipefail
cd "$(dirname "$0")/../.."
started=$(date +%s)
npx tsx src/cli/bin.ts install metagpt
printf 'installed after %s s\n' "$(($(date +%s) - started))"
npx vitest run tests/synth/frameworks/metagpt.test.ts
printf 'done after %s s\n' "$(($(date +%s) - started))"
