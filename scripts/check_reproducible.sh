#!/usr/bin/env bash
# Build the packages again, from the source distribution in dist/, in another folder and without a
# compiler cache, and check that the bytes are the same. Takes as long as a first `make packages`.
#
# PYTHON, BINDINGS, ARCHITECTURES, AARCH64_CUDA and CMAKE_ARGS are the same as for make_packages.sh,
# with the values that dist/ was made with.
set -euo pipefail
cd "$(dirname "$0")/.."

dist=$PWD/dist
version=$(sed -n 's/^#define RBC_VERSION_[A-Z]* //p' include/robocache/base.h | paste -sd.)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Unpacked sources do not contain their commit.
SOURCE_COMMIT=${SOURCE_COMMIT:-$(git rev-parse HEAD)}
export SOURCE_COMMIT

# The folder, time zone, language and umask must not matter.
tar --directory "$folder" -xf "$dist/robocache-$version.tar.gz"
cd "$folder/robocache-$version"
(umask 077 && TZ=Asia/Tokyo CCACHE_DISABLE=1 scripts/make_packages.sh)

# Provenance has the time of the build, and therefore differs.
sums() { grep -v '[.]intoto[.]json$' "$1/SHA256SUMS"; }
diff <(sums "$dist") <(sums dist)
echo "Same bytes: $(sums dist | wc -l) files"
