#!/usr/bin/env bash
# Runs a Python test with the interpreter given first, or says why it cannot and skips (77).
set -euo pipefail
python="$1"
shift
if [ ! -x "$python" ]; then
  echo "skipped: no $python; deploy/bootstrap.sh --tests installs it"
  exit 77
fi
exec "$python" "$@"
