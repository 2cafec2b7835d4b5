#!/usr/bin/env bash
# Checks on a GPU. The machine with the GPU needs no compiler and no development package, only Python with torch and transformers:
# programs and libraries come in a bundle that is made where the CUDA build was made; scripts and examples are this repository's.
#   tests/gpu.sh --bundle [BUILD] [--nccl LIBRARY]   packs .carry/ out of BUILD (default: build/cuda; without FFmpeg); LIBRARY: a libnccl.so.2 of 2.30 or
#                                                    newer, which lets several ranks share a GPU
#   tests/gpu.sh [BUNDLE]                            runs what is in BUNDLE (default: .carry); exit code 77 without a GPU
#   tests/gpu.sh --build BUILD                       both, for ctest
# TROUPE_GPU_PYTHON: the interpreter (default: python3). TROUPE_GPU_PARTS: some of "unit parity train bench" (default: all).
set -euo pipefail
cd "$(dirname "$0")/.."
python="${TROUPE_GPU_PYTHON:-python3}"
tests="row_functions_gpu_test vision_gpu_test nccl_test"
bench_shape="--images 8 --grid 32x32 --text 512"

# Libraries that a program needs and that no LibTorch, CUDA toolkit or C++ runtime on the other side brings.
foreign_libraries() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
    grep -Ev '/(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv|libutil|libgcc_s|libstdc\+\+|libgomp)\.so' |
    grep -Ev '/(torch|nvidia)/|/libtorch/|/cuda[^/]*/|/lib(cuda|cudart|cublas|cublasLt|cudnn|cufft|cupti|curand|cusolver|cusparse|nccl|nvrtc|nvJitLink|nvToolsExt)[-._]'
}

# Programs use only ICU's normalization, whose tables stand inside libicuuc; its data library, 30 MiB, travels as an empty archive.
empty_icu_data() {  # libicudata.so.VERSION
  local version="${1##*.so.}"
  gcc -shared -fPIC -Wl,-soname,"$(basename "$1")" -x c -o "$1" - <<SOURCE
const struct {
  unsigned short header_size; unsigned char magic[2];
  unsigned short info_size, reserved; unsigned char big_endian, ascii_family, code_unit_size, reserved_byte;
  unsigned char format[4], format_version[4], data_version[4];
  unsigned padding[2], entries[4];
} icudt${version}_dat = {32, {0xda, 0x27}, 20, 0, 0, 0, 2, 0, {'T', 'o', 'C', 'P'}, {1, 0, 0, 0}, {0, 0, 0, 0}, {0, 0}, {0, 0, 0, 0}};
SOURCE
}

bundle() {  # BUILD TARGET [NCCL]
  local build="$1" target="$2" stage
  stage="$(mktemp -d)"
  mkdir -p "$stage/bin" "$stage/lib"
  local programs=("$build/bin/troupe" "$build/bin/troupe-actor")
  for name in $tests; do programs+=("$(find "$build/tests" -name "$name" -type f -perm -u+x | head -1)"); done
  for program in "${programs[@]}"; do
    [ -x "$program" ] || { echo "tests/gpu.sh: '$program' is missing; build the cuda preset with its tests first" >&2; exit 2; }
    strip -o "$stage/bin/$(basename "$program")" "$program"
  done
  foreign_libraries "${programs[@]}" | while read -r library; do
    cp -L "$library" "$stage/lib/$(basename "$library")"
    strip --strip-unneeded "$stage/lib/$(basename "$library")" 2>/dev/null || true
  done
  for library in "$stage"/lib/libicudata.so.*; do [ ! -e "$library" ] || empty_icu_data "$library"; done
  if [ -n "${3:-}" ]; then mkdir "$stage/nccl"; cp -L "$3" "$stage/nccl/libnccl.so.2"; fi
  mkdir -p "$target"
  tar -C "$stage" -c . | xz -T0 -9e > "$target/troupe-gpu.tar.xz"
  rm -rf "$stage"
  local bytes
  bytes="$(stat -c %s "$target/troupe-gpu.tar.xz")"
  echo "$target/troupe-gpu.tar.xz: $((bytes >> 20)) MiB"
}

small_enough() {  # BUILD TARGET
  [ "$(stat -c %s "$2/troupe-gpu.tar.xz")" -lt $((64 << 20)) ] && return
  echo "tests/gpu.sh: the bundle is larger than 64 MiB" >&2
  ! ldd "$1/bin/troupe-actor" | grep -q libavformat || echo "FFmpeg's libraries are most of it; configure with -DTROUPE_FFMPEG=OFF" >&2
  exit 1
}

libraries_of_torch() {
  "$python" - <<'PYTHON'
import glob, os, torch
root = os.path.dirname(torch.__file__)
print(":".join([os.path.join(root, "lib"), *sorted(glob.glob(os.path.join(os.path.dirname(root), "nvidia", "*", "lib")))]))
PYTHON
}

failed=0
part() {  # NAME COMMAND...: runs it when it was asked for; a failure does not stop the others
  local name="$1"
  shift
  case " ${TROUPE_GPU_PARTS:-unit parity train bench} " in *" ${name%%:*} "*) ;; *) return 0 ;; esac
  echo; echo "== $name"
  local begin=$SECONDS
  if "$@"; then echo "-- $name: passed in $((SECONDS - begin)) s"; else failed=1; echo "-- $name: FAILED after $((SECONDS - begin)) s"; fi
}

# The shipped example for 150 steps; its loss must fall below half of where it began.
train() {  # FOLDER RUN ARGUMENTS...
  local folder="$1" run="$2"
  shift 2
  "$folder/bin/troupe" run "examples/shapes/quickstart.yaml" --set device=cuda --set training.steps=150 --set eval.every=0 --run-dir "$run" "$@" | tail -25
  "$python" - "$run" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
lines = [line for line in lines if "loss" in line]
first, last = lines[0], lines[-1]
print(json.dumps({key: [first.get(key), last.get(key)] for key in ("step", "loss", "step_ms", "peak_memory_mib", "activation_peak_mib")}))
sys.exit(0 if last["step"] == 150 and last["loss"] < 0.5 * first["loss"] else 1)
PYTHON
}

# Two ranks in each group on the one GPU, which two "nodes" of one slot each offer.
train_two_ranks() {  # FOLDER RUN
  printf '%s\n' 'launch: local' 'network: {control: "127.0.0.1:7732"}' 'nodes:' '  - {name: a, devices: {cuda: 0}}' '  - {name: b, devices: {cuda: 0}}' > "$1/two-slots.yaml"
  train "$1" "$2" --cluster "$1/two-slots.yaml"
}

bench() {  # FOLDER
  local model="configs/models/qwen2.5-vl-3b"
  # Each program alone on the GPU; the first and the last are the same, so that the spread is seen.
  local ours="$1/bin/troupe bench step --device cuda --dtype bf16-pure --random --threads 16 --steps 5 --json --model $model $bench_shape"
  local theirs="$python tests/bench/hf_gpu_step.py --model $model $bench_shape"
  $ours && $theirs --variant varlen && $theirs --variant compile && $ours
}

run_bundle() {  # BUNDLE
  if ! "$python" -c 'import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)' 2>/dev/null; then
    echo "skipped: $python finds no GPU (torch.cuda.is_available())"
    exit 77
  fi
  [ -f "$1/troupe-gpu.tar.xz" ] || { echo "tests/gpu.sh: no $1/troupe-gpu.tar.xz; make it with tests/gpu.sh --bundle where the CUDA build is" >&2; exit 2; }
  folder="$(mktemp -d)"
  trap 'rm -rf "$folder"' EXIT
  "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2], filter="tar")' "$1/troupe-gpu.tar.xz" "$folder"
  # Python itself must not see these: its own modules bring other versions of some of them.
  local libraries preload=""
  libraries="$(libraries_of_torch):$folder/lib"
  [ -f "$folder/nccl/libnccl.so.2" ] && preload="$folder/nccl/libnccl.so.2"
  mv "$folder/bin" "$folder/programs"
  mkdir "$folder/bin"
  for program in "$folder"/programs/*; do
    printf '%s\n' '#!/bin/sh' "export LD_LIBRARY_PATH='$libraries' LD_PRELOAD='$preload' NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_SOCKET_IFNAME=lo" \
      "exec '$program' \"\$@\"" > "$folder/bin/$(basename "$program")"
    chmod +x "$folder/bin/$(basename "$program")"
  done
  "$folder/bin/troupe" --version
  for name in $tests; do part "unit: $name" "$folder/bin/$name"; done
  if [ -n "$preload" ]; then
    part parity "$python" tests/parity/gpu.py --troupe "$folder/bin/troupe" --ranks 2
    part "train: two ranks in each group" train_two_ranks "$folder" "$folder/runs/two"
  else
    part parity "$python" tests/parity/gpu.py --troupe "$folder/bin/troupe"
  fi
  part "train: one rank in each group" train "$folder" "$folder/runs/one" --set groups.vision.mesh.sp=1 --set groups.text.mesh.tp=1
  part bench bench "$folder"
  echo; [ "$failed" = 0 ] && echo "all GPU checks passed"
  exit "$failed"
}

nccl=""
arguments=()
while [ $# -gt 0 ]; do
  case "$1" in
    --nccl) nccl="$2"; shift 2 ;;
    *) arguments+=("$1"); shift ;;
  esac
done
case "${arguments[0]:-}" in
  --bundle)
    bundle "${arguments[1]:-build/cuda}" "${arguments[2]:-.carry}" "$nccl"
    small_enough "${arguments[1]:-build/cuda}" "${arguments[2]:-.carry}" ;;
  --build)
    # Nothing is packed in vain: without a GPU this ends at once.
    compgen -G '/dev/nvidia[0-9]*' >/dev/null || { echo "skipped: no GPU here (there is no /dev/nvidia0 or higher)"; exit 77; }
    bundle "${arguments[1]}" "${arguments[1]}/carry" "$nccl"
    run_bundle "${arguments[1]}/carry" ;;
  *) run_bundle "${arguments[0]:-.carry}" ;;
esac
