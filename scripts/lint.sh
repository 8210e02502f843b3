#!/usr/bin/env bash
# What reads sources without running them. Each tool that is missing is named and left out; with STRICT=yes
# that is a failure too.
#
#   scripts/lint.sh [quick|ruff|mypy|bandit|secrets|licences|shellcheck|cppcheck|analyzer|clang-tidy]...
#
# All of them by default, side by side; `quick` is all but clang-tidy, which takes minutes and needs build/clang
# configured, or another preset in TIDY_BUILD.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

quick=(ruff mypy bandit secrets licences shellcheck cppcheck analyzer)
if (($# == 0)); then set -- "${quick[@]}" clang-tidy; fi
if [[ $* == quick ]]; then set -- "${quick[@]}"; fi
kMissing=3

run() {  # PROGRAM ARGUMENTS...
  command -v "$1" >/dev/null || return $kMissing
  "$@"
}

# GCC's analyzer knows C only.
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
    xargs -0 detect-secrets-hook) || { echo "$found"; return 1; }
}

tidy() {
  local build=${TIDY_BUILD:-build/clang}
  if [[ ! -f $build/compile_commands.json ]]; then
    cmake --preset clang -DROBOCACHE_BUILD_TESTS=OFF >/dev/null || return 1
  fi
  git ls-files 'src/core/*.cpp' 'src/api/*.cpp' |
    xargs -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet 2>/dev/null
}

check() {
  case $1 in
    ruff) run ruff check . ;;
    mypy) run mypy ;;
    bandit) run bandit -q -c pyproject.toml -r bindings/python/robocache scripts -ll ;;
    secrets)
      command -v detect-secrets-hook >/dev/null || return $kMissing
      secrets
      ;;
    licences) run reuse lint -q ;;
    shellcheck) git ls-files -z '*.sh' .ci/run | run xargs -0 shellcheck ;;
    cppcheck)
      # It does not know that rbc::fail() throws: what follows a check seems to be reached.
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
    *)
      echo "lint.sh: unknown part '$1'" >&2
      exit 2
      ;;
  esac
}

logs=$(mktemp -d)
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

((${#left_out[@]} == 0)) || echo "Left out, not installed: ${left_out[*]}"
((${#failed[@]} == 0)) || { echo "Failed: ${failed[*]}"; exit 1; }
if [[ ${STRICT:-no} == yes ]] && ((${#left_out[@]} > 0)); then exit 1; fi
echo "Clean"
