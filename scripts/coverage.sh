#!/usr/bin/env bash
# The lines of src and of the public headers that the fuzzed calls reach, by llvm-cov: those of the corpus,
# random ones, and calls whose memory gives out.
#
#   scripts/coverage.sh [CALLS]     30000 random calls by default
#
# Code that only CUDA reaches is not compiled here, and does not count. build/coverage/lines.txt has the
# lines that nothing reached.
set -euo pipefail
cd "$(dirname "$0")/.."

calls=${1:-30000}
build=build/coverage
cmake --preset coverage -DROBOCACHE_TEST_PYTHON= >/dev/null
cmake --build --preset coverage --target robocache_fuzz_replay robocache_faults
rm -f "$build"/*.profraw
LLVM_PROFILE_FILE=$build/%p.profraw "$build/tests/fuzz/robocache_fuzz_replay" tests/fuzz/corpus.hex \
  --calls "$calls" --seed 1 | tail -1
LLVM_PROFILE_FILE=$build/%p.profraw "$build/tests/fuzz/robocache_faults" 30
llvm-profdata merge -sparse "$build"/*.profraw -o "$build/profile"
of=("$build/librobocache.so" "-instr-profile=$build/profile")
llvm-cov export "${of[@]}" -format=lcov src include |
  awk -F'[:,]' -v root="$PWD/" '
    /^SF:/ { file = $2; sub(root, "", file) }
    /^DA:/ { ++lines; if ($3 > 0) ++reached; else print file ":" $2 >"'"$build/lines.txt"'" }
    END { printf "%d of %d lines reached: %.2f %%\n", reached, lines, 100 * reached / lines }'
