#!/usr/bin/env bash
# Build every package into dist/, all around the same librobocache.so: wheel, source distribution,
# jar, nupkg, a tree for C and C++ as a tarball, a bill of materials, and SHA-256 sums.
#
#   PYTHON=python3   has what requirements/packages.txt lists
#   BINDINGS=AUTO    ON: fail where the JDK or Mono is missing, instead of leaving the jar or nupkg out
#   CMAKE_ARGS       more for CMake, such as -DROBOCACHE_CUDA=OFF
#
# The same sources and tools give the same bytes, wherever and whenever: check_reproducible.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
BINDINGS=${BINDINGS:-AUTO}
build=build/packages
stage=$build/stage
version=$(sed -n 's/^#define RBC_VERSION_[A-Z]* //p' include/robocache/base.h | paste -sd.)
tree=robocache-$version-linux-$(uname -m)
# In a source distribution, which alone has PKG-INFO, every file has the time of the commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(stat --format=%Y PKG-INFO 2>/dev/null ||
  git log -1 --format=%ct 2>/dev/null || true)}
if [[ -z $SOURCE_DATE_EPOCH ]]; then
  echo "make_packages.sh: neither git nor PKG-INFO tells the time of these sources:" \
    "set SOURCE_DATE_EPOCH" >&2
  exit 1
fi
export SOURCE_DATE_EPOCH
export CMAKE_GENERATOR=Ninja LC_ALL=C TZ=UTC
umask 022

rm -rf dist "$stage"
mkdir -p dist "$stage"

echo "== Wheel and source distribution"
# It configures for all of the packages, so that they share what is compiled.
"$PYTHON" -m build --no-isolation --sdist --wheel --outdir "$stage" -C build-dir="$build" \
  -C cmake.define.ROBOCACHE_PORTABLE=ON \
  -C cmake.define.ROBOCACHE_JAVA="$BINDINGS" -C cmake.define.ROBOCACHE_CSHARP="$BINDINGS"
# Gives it the oldest glibc that it runs on as its tag.
"$PYTHON" -m auditwheel repair --wheel-dir dist "$stage"/*.whl
mv "$stage"/*.tar.gz dist

echo "== jar and nupkg"
cmake --build "$build"
targets=$(cmake --build "$build" --target help)
if [[ $targets == *robocache_java_publish* ]]; then
  cmake --build "$build" --target robocache_java_publish
  cp "$build/bindings/java/robocache-$version"*.jar dist
else
  echo "Left out: the jar, for want of a JDK"
fi
if [[ $targets == *robocache_csharp_package* ]]; then
  cmake --build "$build" --target robocache_csharp_package
  "$PYTHON" scripts/make_nupkg.py "$build/bindings/csharp/nupkg" dist
else
  echo "Left out: the nupkg, for want of Mono"
fi

echo "== $tree.tar.gz"
for component in Runtime Development; do
  cmake --install "$build" --component "$component" --prefix "$stage/$tree"
done
tar --directory "$stage" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
  --numeric-owner --create "$tree" | gzip -n9 >"dist/$tree.tar.gz"

echo "== Bill of materials and sums"
"$PYTHON" scripts/sbom.py "$build" >"dist/robocache-$version.cdx.json"
sums=$(cd dist && sha256sum -- *)
echo "$sums" | tee dist/SHA256SUMS
