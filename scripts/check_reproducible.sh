#!/usr/bin/env bash
# Build the packages again, from the source distribution in dist/, in another folder and without a
# compiler cache, and compare: same bytes. Takes as long as a first `make packages`.
#
# PYTHON, BINDINGS, ARCHITECTURES, AARCH64_CUDA and CMAKE_ARGS as for make_packages.sh, and as they were when dist/ was made.
set -euo pipefail
cd "$(dirname "$0")/.."

dist=$PWD/dist
version=$(sed -n 's/^#define RBC_VERSION_[A-Z]* //p' include/robocache/base.h | paste -sd.)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Unpacked sources do not know their commit.
SOURCE_COMMIT=${SOURCE_COMMIT:-$(git rev-parse HEAD)}
export SOURCE_COMMIT

# Whose folder, time zone, language and umask it is must not matter.
tar --directory "$folder" -xf "$dist/robocache-$version.tar.gz"
cd "$folder/robocache-$version"
(umask 077 && TZ=Asia/Tokyo CCACHE_DISABLE=1 scripts/make_packages.sh)

# How and when it was made is another story each time.
sums() { grep -v '[.]intoto[.]json$' "$1/SHA256SUMS"; }
diff <(sums "$dist") <(sums dist)
echo "The same bytes: $(sums dist | wc -l) files"
