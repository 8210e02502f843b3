#!/usr/bin/env bash
# What reads sources without running them. Each tool that is missing is named and left out; with STRICT=yes
# that is a failure too.
#
#   scripts/lint.sh [quick|ruff|mypy|bandit|secrets|licences|shellcheck|cppcheck|analyzer|clang-tidy]...
#
# All of them by default; `quick` is all but clang-tidy, and takes about a minute of one core: secrets 25 s,
# cppcheck 11 s, mypy 9 s, the others less than 4 s each. clang-tidy takes minutes and needs build/clang
# configured, or another preset in TIDY_BUILD.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

quick=(ruff mypy bandit secrets licences shellcheck cppcheck analyzer)
if (($# == 0)); then set -- "${quick[@]}" clang-tidy; fi
if [[ $* == quick ]]; then set -- "${quick[@]}"; fi
failed=()
left_out=()

run() {  # NAME PROGRAM ARGUMENTS...
  local name=$1
  shift
  if ! command -v "$1" >/dev/null; then
    left_out+=("$name ($1)")
    return
  fi
  echo "== $name"
  "$@" || failed+=("$name")
}

# It is for C alone. tests/abi/growth takes headers that are made, and ends in its own way.
analyze() {
  local source status=0
  for source in examples/c/*.c tests/unload/*.c; do
    gcc -std=gnu11 -fanalyzer -O1 -Wall -Wextra -Werror -Iinclude -c "$source" -o /dev/null || status=1
  done
  return $status
}

secrets() {
  local found
  found=$(git ls-files -z ':!docs/images' ':!tests/golden' | xargs -0 detect-secrets-hook) ||
    { echo "$found"; return 1; }
}

tidy() {
  local build=${TIDY_BUILD:-build/clang}
  if [[ ! -f $build/compile_commands.json ]]; then
    cmake --preset clang -DROBOCACHE_BUILD_TESTS=OFF >/dev/null || return 1
  fi
  git ls-files 'src/core/*.cpp' 'src/api/*.cpp' |
    xargs -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet 2>/dev/null
}

for part in "$@"; do
  case $part in
    ruff) run ruff ruff check . ;;
    mypy) run mypy mypy ;;
    bandit) run bandit bandit -q -c pyproject.toml -r bindings/python/robocache scripts -ll ;;
    secrets)
      if command -v detect-secrets-hook >/dev/null; then run secrets secrets; else left_out+=(secrets); fi
      ;;
    licences) run licences reuse lint -q ;;
    shellcheck) git ls-files -z '*.sh' .ci/run | run shellcheck xargs -0 shellcheck ;;
    cppcheck)
      # It does not know that rbc::fail() throws: what follows a check seems to be reached.
      run cppcheck cppcheck --quiet --error-exitcode=1 --std=c++17 --inline-suppr -Iinclude -Isrc/core \
        --enable=warning,portability --suppress=uninitMemberVar --suppress=missingIncludeSystem --suppress=memsetClassFloat --suppress=nullPointerRedundantCheck \
        --suppress=ctunullpointer --suppress=arrayIndexOutOfBoundsCond --suppress=objectIndex \
        src/core src/api examples/c
      ;;
    analyzer) run analyzer analyze ;;
    clang-tidy) run clang-tidy tidy ;;
    *)
      echo "lint.sh: unknown part '$part'" >&2
      exit 2
      ;;
  esac
done

((${#left_out[@]} == 0)) || echo "Left out, not installed: ${left_out[*]}"
((${#failed[@]} == 0)) || { echo "Failed: ${failed[*]}"; exit 1; }
if [[ ${STRICT:-no} == yes ]] && ((${#left_out[@]} > 0)); then exit 1; fi
echo "Clean"
