#!/usr/bin/env bash
# Build the CPU library and the C++ tests with several compilers, warnings as errors, and run a share of the tests.
#
#   scripts/test_compilers.sh [COMPILER]...    such as gcc-11 clang-19 (default: kCompilers below)
#
# Missing compilers and a missing libc++ are listed with the command that installs them. If a
# compiler fails, the others still run, but the script fails. The table of results comes last. The
# script also fails when nothing was tested. scripts/test_debian.sh runs it on another release of
# Debian.
#
#   LIBRARIES="libstdc++ libc++"  C++ standard libraries; libc++ with Clang only (default: both)
#   TARGETS="robocache ..."       targets of CMake (default: all); robocache_tests and robocache_abi_tests are run
#   SHARE=0/16                    ROBOCACHE_TEST_SHARE of that run
#   JOBS=2                        compilers' processes at a time (default: all processors)
#   BUILD_DIR=dir                 holds a build folder and a log for each pair (default build/compilers)
set -uo pipefail
cd "$(dirname "$0")/.." || exit

kCompilers="gcc-11 gcc-12 gcc-14 gcc-15 clang-14 clang-16 clang-19"
kTests="robocache_tests robocache_abi_tests"
kMissing=3
compilers=${*:-$kCompilers}
LIBRARIES=${LIBRARIES:-libstdc++ libc++}
TARGETS=${TARGETS:-all}
SHARE=${SHARE:-0/16}
JOBS=${JOBS:-$(nproc)}
BUILD_DIR=${BUILD_DIR:-build/compilers}

for compiler in $compilers; do
  if [[ ! $compiler =~ ^(gcc|clang)(-[0-9]+)?$ ]]; then
    echo "test_compilers.sh: \"$compiler\": expected gcc or clang with a version, such as gcc-12 or clang-19" >&2
    exit 2
  fi
done
for library in $LIBRARIES; do
  if [[ $library != libstdc++ && $library != libc++ ]]; then
    echo "test_compilers.sh: LIBRARIES has \"$library\", expected libstdc++ or libc++" >&2
    exit 2
  fi
done
mkdir -p "$BUILD_DIR"

cxx_of() {  # gcc-12 -> g++-12, clang-19 -> clang++-19
  local name=${1/#clang/clang++}
  echo "${name/#gcc/g++}"
}

how_to_install() {  # PACKAGE
  local candidate
  candidate=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p')
  if [[ $candidate && $candidate != "(none)" ]]; then
    echo "apt-get install $1"
  else
    echo "$1 is not a package of this system; try scripts/test_debian.sh trixie"
  fi
}

# Prints how to install this compiler or its library if missing, and returns kMissing.
look_for() {  # COMPILER LIBRARY
  local cxx package
  cxx=$(cxx_of "$1")
  package=$1
  if [[ $1 == gcc* ]]; then package=$cxx; fi
  if ! command -v "$1" >/dev/null || ! command -v "$cxx" >/dev/null; then
    how_to_install "$package"
    return $kMissing
  fi
  if [[ $2 == libc++ ]] &&
    ! echo '#include <version>' | "$cxx" -stdlib=libc++ -x c++ -fsyntax-only - 2>/dev/null; then
    how_to_install "${1/#clang/libc++}-dev"
    return $kMissing
  fi
}

# Sets $result.
test_one() {  # COMPILER LIBRARY BUILD_FOLDER
  local flags="" target
  if [[ $2 == libc++ ]]; then flags=-stdlib=libc++; fi
  result="does not configure"
  cmake -S . -B "$3" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$1" \
    -DCMAKE_CXX_COMPILER="$(cxx_of "$1")" -DCMAKE_CXX_FLAGS="$flags" -DROBOCACHE_CUDA=OFF \
    -DROBOCACHE_WERROR=ON -DROBOCACHE_BUILD_TESTS=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON || return
  result="does not compile"
  # shellcheck disable=SC2086 # a word each
  cmake --build "$3" -j "$JOBS" --target $TARGETS -- -k 0 || return
  result="tests fail"
  for target in $kTests; do
    if [[ $TARGETS == all || " $TARGETS " == *" $target "* ]]; then
      ROBOCACHE_TEST_SHARE=$SHARE timeout 1800 "$3/tests/$target" || return
    fi
  done
  result=passed
}

rows=()
tested=0
failed=0
for compiler in $compilers; do
  for library in $LIBRARIES; do
    if [[ $library == libc++ && $compiler == gcc* ]]; then continue; fi
    name=$compiler-$library
    if install=$(look_for "$compiler" "$library"); then
      log=$BUILD_DIR/$name.log
      echo "== $name: $log"
      begin=$SECONDS
      # No subshell: $result is set in this one.
      if test_one "$compiler" "$library" "$BUILD_DIR/$name" >"$log" 2>&1; then
        tested=$((tested + 1))
      else
        failed=$((failed + 1))
        grep -E 'error:|FAILED|ERROR|Error' "$log" | head -n 20
        tail -n 5 "$log"
      fi
      rows+=("$(printf '%-10s %-10s %7d  %s' "$compiler" "$library" $((SECONDS - begin)) "$result")")
    else
      rows+=("$(printf '%-10s %-10s %7s  skipped: %s' "$compiler" "$library" - "$install")")
    fi
  done
done

printf '\n%-10s %-10s %7s  %s\n' compiler library seconds result
((${#rows[@]} == 0)) || printf '%s\n' "${rows[@]}"
if ((failed)); then
  echo "Failed: $failed"
  exit 1
fi
if ((tested == 0)); then
  echo "Nothing was tested"
  exit 1
fi
