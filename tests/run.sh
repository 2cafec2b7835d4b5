#!/usr/bin/env bash
# Bootstraps, builds and runs the tests. Arguments go to ctest, such as -L parity or -R boundary.
#   tests/run.sh              everything but the nightly label
#   tests/run.sh -L unit      one label: unit, contract, multiproc, parity, chaos, gpu, nightly
# TROUPE_PRESET chooses the CMake preset (default: release, the one that the quickstart builds).
set -euo pipefail
cd "$(dirname "$0")/.."
preset="${TROUPE_PRESET:-release}"
deploy/bootstrap.sh --tests
cmake --preset "$preset" -DTROUPE_TESTS=ON ${TROUPE_DEPS:+-DTROUPE_DEPS="$TROUPE_DEPS"} >/dev/null
cmake --build --preset "$preset"
if [ $# -eq 0 ]; then set -- -LE nightly; fi
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j2 "$@"
