#!/usr/bin/env bash
# Bootstraps, builds the release and trains a small vision-language model on this machine's CPU: vision encoder on two
# sequence-parallel ranks, text decoder on two tensor-parallel ranks, sharing two slots. Then shows what it learned.
set -euo pipefail
cd "$(dirname "$0")/.."
deploy/bootstrap.sh
echo "quickstart: building (about ten minutes on two cores the first time)"
cmake --preset release -DTROUPE_TESTS=OFF ${TROUPE_DEPS:+-DTROUPE_DEPS="$TROUPE_DEPS"} >/dev/null
cmake --build --preset release --target troupe troupe-actor
exec deploy/quickstart_run.sh build/release/bin/troupe
