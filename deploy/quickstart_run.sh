#!/usr/bin/env bash
# The quickstart without building: quickstart_run.sh TROUPE [FOLDER]. Trains, evaluates the exported model with the pictures in
# their places and out of them, then trains the same model on separate slots and lays the losses side by side.
set -euo pipefail
cd "$(dirname "$0")/.."
troupe="$1"
folder="${2:-runs/quickstart-$(date +%Y%m%d-%H%M%S)}"
spec=examples/shapes/quickstart.yaml
begin=$SECONDS

echo; echo "== 1. Train: encoder sp=2 + ZeRO-1, decoder tp=2, on the same two CPU slots"
"$troupe" run "$spec" --run-dir "$folder/colocated"
trained=$((SECONDS - begin))

echo; echo "== 2. The exported Hugging Face folder answers held-out questions"
"$troupe" eval "$spec" --model "$folder/colocated/export" --show 5
"$troupe" eval "$spec" --model "$folder/colocated/export" --json > "$folder/eval.json"
echo; echo "== 3. The same questions with the pictures shuffled between records"
"$troupe" eval "$spec" --model "$folder/colocated/export" --shuffle-images --json > "$folder/eval-shuffled.json"

echo; echo "== 4. Fifty steps again: colocated, and on slots of their own with 3 vision ranks feeding 2 text ranks"
"$troupe" run "$spec" --set training.steps=50 --set eval.every=0 --set checkpoint.export=never --run-dir "$folder/colocated-50"
"$troupe" run examples/shapes/quickstart-disjoint.yaml --set checkpoint.export=never --run-dir "$folder/disjoint-50"

python3 deploy/quickstart_report.py "$folder" "$trained"
