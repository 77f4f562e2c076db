#!/bin/sh
# Records in peer/ what llama.cpp's benchmark programs print (here: commit b21e4de7).
#   record_peer_output.sh FOLDER_OF_ITS_PROGRAMS
set -eu
cd "$(dirname "$0")/models"
"$1/llama-bench" -m stories260K.gguf -t 1 -p 0 -n 4 -d 32 -r 3 -o json >../peer/llama_bench.json
"$1/llama-batched-bench" -m stories260K.gguf -t 1 -npp 16 -ntg 4 -npl 2,2,2 -c 40 \
  --output-format jsonl >../peer/llama_batched_bench.jsonl
