#!/usr/bin/env bash
# The lines of src and of the public headers that fuzzed calls reach, by llvm-cov: the regressions,
# the corpus of `make fuzz` if it exists, random calls, and calls with failing allocations.
#
#   scripts/coverage.sh [CALLS]     30000 random calls by default
#
# Kernels are not compiled here, and do not count. The CUDA parts of src count, and are not reached.
# build/coverage/lines.txt has the lines that were not reached. Highway includes a source again for
# each SIMD level, and Clang has no counters for files that system headers include: the preset
# declares them headers of the project, but they are not counted.
set -euo pipefail
cd "$(dirname "$0")/.."

calls=${1:-30000}
build=build/coverage
cmake --preset coverage -DROBOCACHE_TEST_PYTHON= >/dev/null
cmake --build --preset coverage --target robocache_fuzz_replay robocache_faults
rm -f "$build"/*.profraw
shopt -s nullglob
LLVM_PROFILE_FILE=$build/%p.profraw "$build/tests/fuzz/robocache_fuzz_replay" tests/fuzz/regressions.hex \
  build/fuzz/corpus/* --calls "$calls" --seed 1 | tail -1
LLVM_PROFILE_FILE=$build/%p.profraw "$build/tests/fuzz/robocache_faults" 30
llvm-profdata merge -sparse "$build"/*.profraw -o "$build/profile"
llvm-cov export "$build/librobocache.so" "-instr-profile=$build/profile" -format=text -skip-expansions |
  scripts/coverage_lines.py src include --missed "$build/lines.txt"
