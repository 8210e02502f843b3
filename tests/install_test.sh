#!/usr/bin/env bash
# Install, move the tree, then build and run the examples with find_package and with pkg-config.
# Usage: install_test.sh SOURCE_DIR BUILD_DIR (CC, CXX and CMAKE may name the tools)
set -euo pipefail

source_dir=$1
build_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake=${CMAKE:-cmake}

# An example prints the same wherever it runs, examples/expected has it; or why it cannot.
run_example() { # PROGRAM NAME
  "$1" | tee "$work/output"
  grep -q '^SKIPPED: ' "$work/output" || diff "$source_dir/examples/expected/$2.txt" "$work/output"
}

for component in Runtime Development; do
  "$cmake" --install "$build_dir" --prefix "$work/staged" --component "$component"
done
mv "$work/staged" "$work/prefix"

echo "== find_package(robocache)"
"$cmake" -S "$source_dir/examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix"
"$cmake" --build "$work/build"
for example in "$work"/build/bin/*; do
  name=${example##*/}
  echo "-- $name"
  run_example "$example" "${name%_*}"
done

echo "== pkg-config robocache"
if ! command -v pkg-config >/dev/null; then
  echo "pkg-config is not installed: this half is skipped"
  exit 0
fi
pc_file=$(find "$work/prefix" -name robocache.pc)
export PKG_CONFIG_PATH=${pc_file%/*}
read -ra cflags <<<"$(pkg-config --cflags robocache)"
read -ra libs <<<"$(pkg-config --libs robocache)"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir robocache)
export LD_LIBRARY_PATH
for source in "$source_dir"/examples/c/*.c "$source_dir"/examples/cpp/*.cpp; do
  compiler=("${CXX:-c++}" -std=c++17)
  if [[ $source == *.c ]]; then
    compiler=("${CC:-cc}" -std=c11)
  fi
  echo "-- ${source##*/}"
  "${compiler[@]}" -Wall -Wextra -Werror "${cflags[@]}" "$source" "${libs[@]}" -lm -o "$work/example"
  name=${source##*/}
  run_example "$work/example" "${name%.*}"
done
