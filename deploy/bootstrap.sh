#!/usr/bin/env bash
# Installs what building Troupe needs and is not there yet: distribution packages and the LibTorch wheel set.
# Safe to run twice: what is present is left alone.
#
#   deploy/bootstrap.sh            what a build needs
#   deploy/bootstrap.sh --parquet  also Arrow's C++ library, with which Parquet files are read
#   deploy/bootstrap.sh --tests    also that, and what the tests need (transformers, Catch2)
#   deploy/bootstrap.sh --benches  also Ray and datasets, which benches compare with
#   deploy/bootstrap.sh --cuda     also the CUDA libraries that LibTorch runs with on GPUs (the toolkit and NCCL are yours to install)
#
# Python packages go to .deps/python inside the repository (TROUPE_DEPS chooses another folder).
set -euo pipefail
cd "$(dirname "$0")/.."
source deploy/versions.sh
with_parquet=0
with_tests=0
with_benches=0
with_cuda=0
for arg in "$@"; do
  case "$arg" in
    --parquet) with_parquet=1 ;;
    --tests) with_tests=1 with_parquet=1 ;;
    --benches) with_benches=1 ;;
    --cuda) with_cuda=1 ;;
    -h|--help) sed -n '2,11p' "$0"; exit 0 ;;
    *) echo "bootstrap.sh: unknown option '$arg' (valid: --parquet, --tests, --benches, --cuda)" >&2; exit 2 ;;
  esac
done
deps="${TROUPE_DEPS:-$PWD/.deps}"
say() { printf 'bootstrap: %s\n' "$*"; }

command -v apt-get >/dev/null || { echo "bootstrap.sh: needs Debian 12 or Ubuntu 24.04 (apt-get not found)" >&2; exit 2; }
packages="$TROUPE_APT_BUILD"
[ $with_tests = 1 ] && packages="$packages $TROUPE_APT_TESTS"
if grep -qi '^ID=ubuntu' /etc/os-release; then
  for rename in $TROUPE_APT_UBUNTU_RENAMES; do packages="${packages//${rename%%=*}/${rename##*=}}"; done
fi
missing=()
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "bootstrap.sh: these packages are missing; run this and start again:" >&2
    echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  say "installing ${#missing[@]} distribution packages"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

mkdir -p "$deps"
python="$deps/python/bin/python"
[ -x "$python" ] || python3 -m venv "$deps/python"
stamp() { printf '%s' "$*" | sha256sum | cut -c1-16; }
install() {  # NAME PIP-ARGUMENTS... : once for each set of arguments
  local name="$1"; shift
  local mark="$deps/$name-$(stamp "$*").done"
  [ -f "$mark" ] && return
  say "installing $name (python packages)"
  "$python" -m pip install --quiet --disable-pip-version-check "$@"
  rm -f "$deps/$name"-*.done
  touch "$mark"
}
# shellcheck disable=SC2086
install libtorch --no-deps $TROUPE_LIBTORCH_WHEELS
# shellcheck disable=SC2086
[ $with_tests = 0 ] || install tests $TROUPE_TEST_WHEELS
[ $with_parquet = 0 ] || install arrow --no-deps "$TROUPE_ARROW_WHEEL"
[ $with_cuda = 0 ] || install cuda "$TROUPE_TORCH"
if [ $with_benches = 1 ]; then
  [ -x "$deps/benches/bin/python" ] || python3 -m venv "$deps/benches"
  # shellcheck disable=SC2086
  python="$deps/benches/bin/python" install benches $TROUPE_BENCH_WHEELS
fi

# The wheel's include folder carries other libraries' headers, which would shadow the distribution's: only these are shown to the compiler.
torch="$("$python" -c 'import importlib.util,os;print(os.path.dirname(importlib.util.find_spec("torch").origin))')"
links="$deps/libtorch/include"
mkdir -p "$links"
for name in ATen c10 caffe2 torch kineto; do
  [ -e "$torch/include/$name" ] && ln -sfn "$torch/include/$name" "$links/$name"
done
ln -sfn "$torch/lib" "$deps/libtorch/lib"
if [ $with_parquet = 1 ]; then
  arrow="$("$python" -c 'import importlib.util,os;print(os.path.dirname(importlib.util.find_spec("pyarrow").origin))')"
  mkdir -p "$deps/arrow"
  ln -sfn "$arrow/include" "$deps/arrow/include"
  ln -sfn "$arrow" "$deps/arrow/lib"
fi
say "ready ($deps)"
