#!/usr/bin/env bash
# Build the CPU library and the C++ tests with several compilers, warnings as errors, and run a share of the tests.
#
#   scripts/test_compilers.sh [COMPILER]...    such as gcc-11 clang-19 (default: kCompilers below)
#
# Missing compilers and a missing libc++ are listed with the command that installs them. Debian
# installs libc++ of one version at a time, so only the Clang of that version is tested with it. If a
# compiler fails, the others still run, but the script fails. The table of results comes last. The
# script also fails when nothing was tested. scripts/test_debian.sh runs it on another release of
# Debian.
#
#   LIBRARIES="libstdc++ libc++"  C++ standard libraries; libc++ with Clang only (default: both)
#   TARGETS="robocache ..."       targets of CMake (default: all); the tests of these are run
#   SHARE=0/16                    ROBOCACHE_TEST_SHARE of that run
#   JOBS=2                        compilers' processes at a time (default: all processors)
#   BUILD_DIR=dir                 holds a build folder and a log for each pair (default build/compilers)
set -uo pipefail
cd "$(dirname "$0")/.." || exit

kCompilers="gcc-11 gcc-12 gcc-14 gcc-15 clang-14 clang-16 clang-19"
kTests="robocache_tests robocache_abi_tests"
kPrograms="live_soak|unload|store_faults|store_files|fuzz_regressions|fuzz_random|faults|conditions"
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

how_to_install() {  # PACKAGE...
  local package candidate
  for package in "$@"; do
    candidate=$(apt-cache policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: //p')
    if [[ ! $candidate || $candidate == "(none)" ]]; then
      echo "$package is not a package of this system; try scripts/test_debian.sh trixie"
      return
    fi
  done
  echo "apt-get install $*"
}

# Whether a program with this Clang's own libc++ can be built. Debian installs libc++ of one version
# at a time, and every Clang finds its headers, but supports the versions around its own only.
has_libcxx() {  # CXX
  local program
  program=$(mktemp) || return
  "$1" -stdlib=libc++ -x c++ -o "$program" - 2>/dev/null <<'END'
#include <stdexcept>
#include <version>
#if _LIBCPP_VERSION / 10000 != __clang_major__ && _LIBCPP_VERSION / 1000 != __clang_major__  // since 16, before
#error
#endif
int main(int argc, char**) {
  if (argc > 9) throw std::runtime_error("");
}
END
  local status=$?
  rm -f "$program"
  return $status
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
  if [[ $2 == libc++ ]] && ! has_libcxx "$cxx"; then
    how_to_install "${1/#clang/libc++}-dev" "${1/#clang/libc++abi}-dev"
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
  if [[ $TARGETS == all ]]; then
    ctest --test-dir "$3" --output-on-failure --no-tests=error -R "^($kPrograms)$" || return
  fi
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
