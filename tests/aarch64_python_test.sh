#!/usr/bin/env bash
# Build the Python package for 64-bit ARM and run a few of its tests under QEMU's user mode.
# Usage: aarch64_python_test.sh PYTHON_FOLDER BUILD_FOLDER (the first as scripts/aarch64_python.sh makes it)
set -euo pipefail
cd "$(dirname "$0")/.."

root=$(realpath "$1")
build=$2
cmake --preset aarch64 -B "$build" -DROBOCACHE_BUILD_PYTHON=ON \
  -DROBOCACHE_AARCH64_PYTHON="$root" -DPython_EXECUTABLE="$(command -v "${PYTHON:-python3}")"
cmake --build "$build" --target robocache_python
rm -rf "$build/package"
cmake --install "$build" --component Python --prefix "$build/package"
cp -r bindings/python/robocache/. "$build/package/robocache"
export PYTHONPATH=$build/package:$root/site
qemu-aarch64-static -L "$root" "$root/usr/bin/python3" -c \
  'import robocache as rbc; info = rbc.Context("cpu").info; print(info); assert info.simd == "neon"'
qemu-aarch64-static -L "$root" "$root/usr/bin/python3" -m pytest -q -p no:cacheprovider --noconftest \
  tests/python/operations/test_golden.py tests/python/operations/test_live.py
