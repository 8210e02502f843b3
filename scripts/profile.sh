#!/usr/bin/env bash
# Profile every kind of CUDA kernel with ncu, on a machine with a GPU: the load of memory, the L2
# cache and the multiprocessors, and the stalls of warps, as a Markdown table.
#
#   scripts/profile.sh [robocache_bench]     (default build/release/benchmarks/robocache_bench)
#
#   LOG_DIR=dir           profile.csv, profile.log and profile.md (default build/gpu)
#   PROFILE_SECONDS=s     the limit of the run (default 90)
#   PYTHON=python3        makes the table
#
# ncu needs permission to read the performance counters: root, or the driver's option
# NVreg_RestrictProfilingToAdminUsers=0. For the compiler's numbers, see scripts/registers.py.
set -euo pipefail
cd "$(dirname "$0")/.."

bench=${1:-build/release/benchmarks/robocache_bench}
PYTHON=${PYTHON:-python3}
LOG_DIR=${LOG_DIR:-build/gpu}
PROFILE_SECONDS=${PROFILE_SECONDS:-90}
export PATH=$PATH:/usr/local/cuda/bin
mkdir -p "$LOG_DIR"

# The clocks and the caches are not controlled, as in normal use. A kernel runs about ten times,
# once for each set of counters, on the same memory.
status=0
timeout "$PROFILE_SECONDS" ncu --profile-from-start off --nvtx --clock-control none \
  --cache-control none --section SpeedOfLight --section Occupancy --section WarpStateStats \
  --csv --page raw --print-units base --print-kernel-base function \
  --log-file "$LOG_DIR/profile.csv" "$bench" --profile >"$LOG_DIR/profile.log" 2>&1 || status=$?
if ((status != 0)); then
  echo "profile.sh: ncu ended with $status; the end of its output:" >&2
  tail -n 5 "$LOG_DIR/profile.log" >&2
  grep -h '^==' "$LOG_DIR/profile.csv" | tail -n 5 >&2 || true
fi
"$PYTHON" benchmarks/profile_table.py "$LOG_DIR/profile.csv" | tee "$LOG_DIR/profile.md"
exit "$status"
