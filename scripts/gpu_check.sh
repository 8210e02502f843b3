#!/usr/bin/env bash
# Build, test and benchmark on a machine with a GPU, in one command and without a network.
#
#   scripts/gpu_check.sh [build] [test] [sanitize] [bench [--against FILE] [--record FILE]] [peers]
#                        [training]    (all by default)
#
#   build     the library for this GPU, tests, benchmarks, and the Python package
#   test      every test; those on CUDA run here
#   sanitize  some CUDA tests under compute-sanitizer's memcheck, racecheck, initcheck and
#             synccheck
#   bench     robocache_bench, the CUDA part. After it --against FILE fails where a case is slower by
#             more than 8 % than bench_against.py has recorded, in times of a copy of the same run;
#             --record FILE records this run
#   peers     benchmarks/peers.py, which writes a JSON file for each set of tables: on CUDA
#             resample, fuse and calls (peers-cuda), sparse voxels (sparse-cuda) and grids
#             (voxels-cuda); on two CPU cores all of them (peers-cpu); within 400 s
#   training  benchmarks/training.py: a training loop with RoboCache and with others (about 90 s); real
#             episodes from ROBOCACHE_DATA/unitree_g1
#
# If a stage fails, later ones still run, but the script fails. Tables and the stages' results come
# last.
#
#   LOG_DIR=dir         logs, JSON and tables (default build/gpu)
#   PYTHON=python3      has torch, numpy, scipy, pandas, tabulate, pytest, hypothesis, tqdm, matplotlib
#                       and scikit-build-core; the package is installed into it
#   ROBOCACHE_COMMIT=c  the commit in tables (default: from git)
#   CUDA_ARCH=90        build for this architecture instead of the GPU's
#   ROBOCACHE_PREFIX=d  a prefix with headers and CMake packages that the system lacks
#                       (d/include/hwy, ...)
#   ROBOCACHE_CARRY=d   other missing files: *.deb are unpacked into build/gpu/prefix, *.whl
#                       installed without their dependencies. For Highway, xxHash and SWIG, from a machine
#                       with a network:
#                         apt-get download libhwy-dev libxxhash-dev
#                         pip download --no-deps 'swig>=4.2'
#                       and spconv, cumm, pccm, ccimport, fire, lark, termcolor, portalocker for
#                       one more peer
#   SANITIZE_TESTS=f    doctest's filter (default: tests of the operations on CUDA, except those that
#                       repeat the same cases, or use random ones)
#   SANITIZE_SECONDS=s  the limit of its runs, which are parallel (default 300)
#   SANITIZE_SHARE=n    each run takes one in n of the cases (default 4), different ones per tool
#   BENCH_FILTER=regex  only benchmarks and peers whose name matches, such as fuse,
#                       methods, 'fuse/B=1:', 'voxelize/sparse' or 'fuse|methods'
#   BENCH_ARGS, PEERS_ARGS, TRAINING_ARGS   further arguments of robocache_bench, of peers.py, and
#                       of training.py
# shellcheck disable=SC2317 # the stages are called by their names
set -uo pipefail
cd "$(dirname "$0")/.." || exit

PYTHON=${PYTHON:-python3}
LOG_DIR=${LOG_DIR:-build/gpu}
CUDA_ARCH=${CUDA_ARCH:-$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null \
  | head -n 1 | tr -d .)}
SANITIZE_SECONDS=${SANITIZE_SECONDS:-300}
SANITIZE_SHARE=${SANITIZE_SHARE:-4}
BENCH_FILTER=${BENCH_FILTER:-}
ALL_STAGES=(build test sanitize bench peers training)

stages=()
compare=() # of bench_against.py
while (($#)); do
  case $1 in
    --against | --record)
      compare+=("$1" "${2:?gpu_check.sh: $1 takes a file}")
      shift
      ;;
    *) stages+=("$1") ;;
  esac
  shift
done
((${#stages[@]})) || stages=("${ALL_STAGES[@]}")
for stage in "${stages[@]}"; do
  if [[ " ${ALL_STAGES[*]} " != *" $stage "* ]]; then
    echo "gpu_check.sh: unknown stage '$stage', expected some of: ${ALL_STAGES[*]}" >&2
    exit 2
  fi
done
if [[ -z $CUDA_ARCH ]]; then
  echo "gpu_check.sh: nvidia-smi lists no GPU; set CUDA_ARCH to build without one" >&2
  exit 1
fi
mkdir -p "$LOG_DIR"
LOG_DIR=$(cd "$LOG_DIR" && pwd)
PREFIX=$PWD/build/gpu/prefix
# CMake reads it from the environment, also when pip runs it.
export CMAKE_PREFIX_PATH="$PREFIX/usr${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
[[ -z ${ROBOCACHE_PREFIX:-} ]] || CMAKE_PREFIX_PATH=$ROBOCACHE_PREFIX:$CMAKE_PREFIX_PATH
export PATH=/usr/local/cuda/bin:$PATH
export PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

# --- Stages ---------------------------------------------------------------------------------------

unpack_carried() {
  local file
  mkdir -p "$PREFIX"
  for file in "$ROBOCACHE_CARRY"/*.deb; do
    [[ -e $file ]] || continue
    dpkg -x "$file" "$PREFIX" || return
  done
  if compgen -G "$ROBOCACHE_CARRY/*.whl" >/dev/null; then
    "$PYTHON" -m pip install -q --no-index --no-deps "$ROBOCACHE_CARRY"/*.whl || return
  fi
}

build_native() {
  cmake --preset release -DCMAKE_CUDA_ARCHITECTURES="$CUDA_ARCH-real" -DROBOCACHE_CUDA=ON \
    -DROBOCACHE_BUILD_TESTS=ON -DROBOCACHE_BUILD_BENCHMARKS=ON \
    -DROBOCACHE_TEST_PYTHON="$(command -v "$PYTHON")" &&
    cmake --build --preset release
}

build_package() {
  env --default-signal=INT make package DEPS=no PYTHON="$PYTHON" CUDA_ARCH="$CUDA_ARCH"
}

# The library is compiled twice, for its tests and for Python; in parallel this takes no longer.
run_build() {
  local package failed=0
  if [[ -n ${ROBOCACHE_CARRY:-} ]]; then unpack_carried || return; fi
  build_package >"$LOG_DIR/package.log" 2>&1 &
  package=$!
  build_native || failed=1
  wait "$package" || failed=1
  echo "--- The Python package:"
  cat "$LOG_DIR/package.log"
  rm -f "$LOG_DIR/package.log"
  return "$failed"
}

run_test() {
  local failed=0
  rm -rf build/release/junit build/release/ctest.xml
  ctest --preset release -j "$(nproc)" --output-junit "$PWD/build/release/ctest.xml" || failed=1
  note=$("$PYTHON" scripts/test_summary.py build/release/ctest.xml)
  return "$failed"
}

run_sanitize() {
  local tool filter run number share failed=0 log=$LOG_DIR/sanitize.log # where this function writes to
  local tools=(memcheck racecheck initcheck synccheck)
  local filters=("resample cuda*" "missing samples*cuda*" "fuse cuda*" "voxelize cuda*,tsdf cuda*"
    "voxelize sparse cuda*" "clouds cuda*" "windows cuda*,convert rotations cuda*"
    "statistics cuda*" "images cuda*" "causal*cuda*")
  # Tests that repeat the tables of cases, and tests that take minutes under a sanitizer.
  local repeats="*random*,*the bits of the CPU*,*workspace do not matter*,*keys of every width*,large*,*to the bit,*2^32*"
  local -A runs=()
  [[ -z ${SANITIZE_TESTS:-} ]] || filters=("$SANITIZE_TESTS")
  for filter in "${filters[@]}"; do
    for number in "${!tools[@]}"; do
      tool=${tools[number]}
      share=$SANITIZE_SHARE
      # These tests take the longest by far.
      [[ $filter != statistics* && $filter != clouds* ]] || share=$((share * 4))
      run="$tool-${filter%% cuda*}"
      run=${run//[^a-z-]/_}
      ROBOCACHE_TEST_SHARE=$((number % share))/$share timeout "$SANITIZE_SECONDS" \
        compute-sanitizer --tool "$tool" --error-exitcode 9 build/release/tests/robocache_tests \
        --test-case="$filter" --test-case-exclude="$repeats" --duration=true \
        >"$LOG_DIR/$run.log" 2>&1 &
      runs[$run]=$!
    done
  done
  for run in "${!runs[@]}"; do
    wait "${runs[$run]}" || failed=1
    echo "--- $run"
    cat "$LOG_DIR/$run.log"
    rm -f "$LOG_DIR/$run.log"
  done
  # All runs must have finished without findings, and the tests must have run.
  [[ $(grep -cE '(ERROR|RACECHECK) SUMMARY: 0 ' "$log") == "${#runs[@]}" ]] || failed=1
  [[ $(grep -c 'Status: SUCCESS' "$log") == "${#runs[@]}" ]] || failed=1
  ! grep -qE 'SKIPPED|test cases: +0 ' "$log" || failed=1
  note=$(sed -n 's/^=* \([A-Z]* SUMMARY.*\)/\1/p' "$log" | cut -d'(' -f1 | sort | uniq -c | paste -sd';')
  return "$failed"
}

run_bench() {
  rm -f "$LOG_DIR/bench.json"
  # shellcheck disable=SC2086 # several arguments
  build/release/benchmarks/robocache_bench --benchmark_filter="^cuda/(copy|.*(${BENCH_FILTER:-.}))" \
    --benchmark_out="$LOG_DIR/bench.json" --benchmark_out_format=json --seconds=0.1 \
    --benchmark_context=commit="${ROBOCACHE_COMMIT:-$(git describe --always --dirty || echo unknown)}" \
    ${BENCH_ARGS:-}
  local status=$?
  tables+=("$LOG_DIR/bench.json")
  if ((status == 0 && ${#compare[@]})); then
    "$PYTHON" scripts/bench_against.py --measured "$LOG_DIR/bench.json" \
      --bench build/release/benchmarks/robocache_bench "${compare[@]}"
    status=$?
  fi
  # Copies are in every filter.
  ((status == 0)) && (($(grep '"name": "cuda/' "$LOG_DIR/bench.json" | grep -cv '"cuda/copy') > 0))
}

# If the time is up, the results so far are kept.
run_peers() {
  local failed=0 name seconds only arguments status
  local -A cuda=([peers-cuda]='(resample|fuse)/' [sparse-cuda]=voxelize/sparse
    [voxels-cuda]='voxelize/(?!sparse)')
  while read -r name seconds; do
    only="^(?=${cuda[$name]:-})(?=.*(${BENCH_FILTER:-}))"
    arguments=(--device cuda)
    [[ $name != peers-cpu ]] || arguments=(--device cpu --cores 2 --rounds 9)
    if [[ $name != peers-cuda || -n $BENCH_FILTER ]]; then
      arguments+=(--no-overhead --no-changing-shapes)
    fi
    rm -f "$LOG_DIR/$name.json"
    echo "--- $name"
    # shellcheck disable=SC2086 # several arguments
    timeout "$seconds" "$PYTHON" benchmarks/peers.py "${arguments[@]}" --only "$only" \
      --json "$LOG_DIR/$name.json" ${PEERS_ARGS:-} </dev/null
    status=$?
    echo "--- $name: status $status"
    # 3: the filter excludes all of its cases.
    [[ $status == 0 || ($status == 3 && -n $BENCH_FILTER) ]] || failed=1
    tables+=("$LOG_DIR/$name.json")
  done <<'END'
peers-cuda 180
sparse-cuda 60
voxels-cuda 80
peers-cpu 80
END
  return "$failed"
}

run_training() {
  rm -f "$LOG_DIR/training.json"
  tables+=("$LOG_DIR/training.json")
  # shellcheck disable=SC2086 # several arguments
  timeout 180 "$PYTHON" benchmarks/training.py --device cuda --json "$LOG_DIR/training.json" ${TRAINING_ARGS:-}
}

# --- All of them ----------------------------------------------------------------------------------

results=()
tables=()
failures=0
for stage in "${stages[@]}"; do
  echo "== $stage: $LOG_DIR/$stage.log"
  start=$SECONDS
  note=
  if "run_$stage" >"$LOG_DIR/$stage.log" 2>&1; then
    outcome=ok
  else
    outcome=FAILED
    failures=$((failures + 1))
    echo "--- $stage failed; the first errors in its log, and the end of the log:"
    grep -nE 'error:|ERROR:|FAILED' "$LOG_DIR/$stage.log" | cut -c -300 | head -n 10
    echo "..."
    tail -n 20 "$LOG_DIR/$stage.log" | cut -c -300
  fi
  results+=("$(printf '%-10s %-7s %5d s  %s' "$stage" "$outcome" $((SECONDS - start)) "$note")")
  echo "${results[-1]}"
done

existing=()
for file in ${tables[@]+"${tables[@]}"}; do
  [[ ! -s $file ]] || existing+=("$file")
done
if ((${#existing[@]})); then
  echo
  "$PYTHON" benchmarks/render.py "${existing[@]}" | tee "$LOG_DIR/tables.md"
fi
echo
printf '%s\n' "${results[@]}"
exit $((failures > 0))
