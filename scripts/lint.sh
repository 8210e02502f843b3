#!/usr/bin/env bash
# Check the sources without running them. Missing tools are named and skipped; with STRICT=yes they
# are failures.
#
#   scripts/lint.sh [quick|ruff|mypy|secrets|licences|shellcheck|cppcheck|analyzer|wording|clang-tidy|includes]...
#
# By default all run in parallel; `quick` is all except mypy, which the tests run on more files, and
# the last two, which take minutes. clang-tidy needs build/clang configured, or another preset in
# TIDY_BUILD. `includes` needs clang-tidy 17 or later.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

quick=(ruff secrets licences shellcheck cppcheck analyzer wording)
if (($# == 0)); then set -- "${quick[@]}" mypy clang-tidy includes; fi
if [[ $* == quick ]]; then set -- "${quick[@]}"; fi
kMissing=3

run() {  # PROGRAM ARGUMENTS...
  command -v "$1" >/dev/null || return $kMissing
  "$@"
}

# GCC's analyzer only supports C.
analyze() {
  local source status=0
  for source in examples/c/*.c tests/unload/*.c; do
    gcc -std=gnu11 -fanalyzer -O1 -Wall -Wextra -Werror -Iinclude -c "$source" -o /dev/null || status=1
  done
  return $status
}

secrets() {
  local found
  found=$(git ls-files -z ':!docs/images' ':!tests/golden' |
    xargs -0 python3 scripts/find_secrets.py) || { echo "$found"; return 1; }
}

tidy() {
  local build=${TIDY_BUILD:-build/clang}
  if [[ ! -f $build/compile_commands.json ]]; then
    cmake --preset clang -DROBOCACHE_BUILD_TESTS=OFF >/dev/null || return 1
  fi
  git ls-files 'src/core/*.cpp' 'src/api/*.cpp' |
    xargs -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet 2>/dev/null
}

# Checks that each file includes the headers of the standard library that it uses: the headers that
# other headers include differ between libraries and their releases. Uses the newest installed
# clang-tidy that has the check.
includes() {
  local tidy output
  for tidy in clang-tidy-{22,21,20,19,18,17} clang-tidy none; do
    if "$tidy" --checks='-*,misc-include-cleaner' --list-checks 2>/dev/null | grep -q include-cleaner; then break; fi
  done
  if [[ $tidy == none ]]; then return $kMissing; fi
  # Files are parsed on their own, headers too, so only missing headers count as errors. CMake
  # writes some.
  # shellcheck disable=SC2016 # expanded by the shell inside
  output=$(git ls-files 'src/*.h' 'src/*.cpp' 'tests/*.h' 'tests/*.cpp' 'include/*.hpp' |
    xargs -P "$(nproc)" -n 8 bash -c '
      "$0" --config="{Checks: \"-*,misc-include-cleaner\"}" --quiet "$@" -- -x c++ -std=c++17 \
        -I{include,src/{core,math,problem,api,cpu},kernels,tests} -DRBC_WITH_CUDA=0 2>/dev/null; true' "$tidy" |
    grep -E 'no header providing "std::|file not found' | grep -vE "'(entry_points.h|(exported_operations|layouts|numbered_structs).inc)'" | sort -u)
  if [[ $output ]]; then
    echo "$output"
    return 1
  fi
}

check() {
  case $1 in
    ruff) run ruff check . ;;
    mypy) run mypy ;;
    secrets)
      command -v detect-secrets-hook >/dev/null || return $kMissing
      secrets
      ;;
    licences) run reuse lint -q ;;
    shellcheck) git ls-files -z '*.sh' .ci/run | run xargs -0 shellcheck ;;
    cppcheck)
      # cppcheck does not detect that rbc::fail() throws: the code after a check seems to be
      # reached.
      run cppcheck --quiet --error-exitcode=1 --std=c++17 --inline-suppr -Iinclude -Isrc/core \
        --enable=warning,portability --suppress=uninitMemberVar --suppress=missingIncludeSystem --suppress=memsetClassFloat --suppress=nullPointerRedundantCheck \
        --suppress=ctunullpointer --suppress=arrayIndexOutOfBoundsCond --suppress=objectIndex \
        src/core src/api examples/c
      ;;
    analyzer) analyze ;;
    clang-tidy)
      command -v clang-tidy >/dev/null || return $kMissing
      tidy
      ;;
    includes) includes ;;
    wording) run scripts/plain_english.py ;;
    *)
      echo "lint.sh: unknown part '$1'" >&2
      exit 2
      ;;
  esac
}

logs=$(mktemp -d) || exit
trap 'rm -rf "$logs"' EXIT
declare -A running=()
for part in "$@"; do
  check "$part" >"$logs/$part" 2>&1 &
  running[$part]=$!
done
failed=()
left_out=()
for part in "$@"; do
  echo "== $part"
  wait "${running[$part]}"
  status=$?
  cat "$logs/$part"
  case $status in
    0) ;;
    "$kMissing") left_out+=("$part") ;;
    *) failed+=("$part") ;;
  esac
done

((${#left_out[@]} == 0)) || echo "Skipped, not installed: ${left_out[*]}"
((${#failed[@]} == 0)) || { echo "Failed: ${failed[*]}"; exit 1; }
if [[ ${STRICT:-no} == yes ]] && ((${#left_out[@]} > 0)); then exit 1; fi
echo "Clean"
